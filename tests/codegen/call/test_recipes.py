"""Calls with trees, static arguments and arguments by name: taken apart and put together by native code."""

import gc
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import tree as tree_util
from graphc.codegen.call.recipes import REFUSED, UnknownFormError, arguments_recipe, results_recipe


class Pair(NamedTuple):
    left: Any
    right: Any


class Swapped(Pair):
    """A named tuple whose constructor is its own."""

    def __new__(cls, left: Any, right: Any) -> "Swapped":
        return super().__new__(cls, left, right)


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = field(default="relu", metadata={"static": True})


@dataclass
class Known:
    w: Any
    size: Any = 1


tree_util.register_dataclass(Known, data_fields=["w"], meta_fields=["size"])


class Text(str):
    __slots__ = ()


class Hostile:
    """A key that collides with `w` and cannot be compared."""

    def __hash__(self) -> int:
        return hash("w")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")


class Getting(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        found = super().__getitem__(key)
        return 10 * found if key == "w" else found


def spelled_anew(text: str) -> str:
    """An equal string that is another object."""
    return "".join(list(text))


def shortcut(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function, and return the native entry point that its last variant has for calls of this form."""
    function(*args, **kwargs)
    return function.variants()[-1].shortcut


@pytest.fixture(scope="module")
def forms() -> Any:
    """Many forms in one argument; the results as deep."""

    def computed(p: Any, n: Any, *, scale: Any, mode: str) -> Any:
        w, pair, layer = p["w"] * n, p["pair"], p["layer"]
        total = w + pair.left + layer.b + p["rest"][0] * scale
        first = {"z": total, "a": [Pair(total + 1, None), (layer.w,)], "swapped": Swapped(w, total)}
        return first, Layer(total, w, mode), Known(w, (1, mode))

    return graphc.jit(computed, static_argnums=1, static_argnames="mode")


def arguments() -> tuple[tuple[Any, ...], dict[str, Any]]:
    a = np.arange(3.0)
    tree = {"w": a, "pair": Pair(a + 1, None), "layer": Layer(a + 2, a + 3), "rest": [a + 4, (a + 5,), {}]}
    return (tree, 3), {"scale": np.float64(2.0), "mode": "same"}


def test_a_call_of_the_form_of_the_trace_is_native_and_right(forms: Any) -> None:
    args, kwargs = arguments()
    native = shortcut(forms, *args, **kwargs)
    for given in (kwargs, dict(reversed(kwargs.items()))):
        first, layer, known = native(*args, **given)
        a = np.arange(3.0)
        total = 3 * a + a + 1 + a + 3 + 2 * (a + 4)
        assert list(first) == ["z", "a", "swapped"]
        assert type(first["a"][0]) is Pair and first["a"][0].right is None and type(first["swapped"]) is Swapped
        assert type(layer) is Layer and type(known) is Known and (layer.name, known.size) == ("same", (1, "same"))
        pairs = [(first["z"], total), (first["a"][0].left, total + 1), (first["a"][1][0], a + 2), (layer.b, 3 * a)]
        for found, expected in [*pairs, (known.w, 3 * a), (first["swapped"].right, total), (layer.w, total)]:
            np.testing.assert_array_equal(found, expected)
    assert gc.is_tracked(first["a"][0]) and first["a"][0]._replace(left=1) == Pair(1, None)


def test_keys_in_another_order_and_equal_strings_are_taken(forms: Any) -> None:
    (tree, n), kwargs = arguments()
    native = shortcut(forms, tree, n, **kwargs)
    expected = native(tree, n, **kwargs)[0]["z"]
    built = {spelled_anew(key): value for key, value in reversed(tree.items())}
    spelled = {spelled_anew(key): value for key, value in tree.items()}
    for other in (dict(reversed(tree.items())), built, spelled):
        np.testing.assert_array_equal(native(other, n, **kwargs)[0]["z"], expected)
    named = {spelled_anew(key): value for key, value in kwargs.items()}
    named["mode"] = spelled_anew("same")
    np.testing.assert_array_equal(native(tree, n, **named)[0]["z"], expected)


def test_other_forms_are_refused_and_answered_by_python(forms: Any) -> None:
    (tree, n), kwargs = arguments()
    native = shortcut(forms, tree, n, **kwargs)
    a = tree["w"]
    without = {key: value for key, value in tree.items() if key != "w"}
    trees: list[Any] = [
        without,
        {**without, Text("w"): a},
        {**without, "v": a},
        {**tree, "v": a},
        {**without, 1: a},
        OrderedDict(tree),
        Getting(tree),
        {**tree, "pair": (a, None)},
        {**tree, "pair": Pair(a, a)},
        {**tree, "pair": Swapped(a, None)},
        {**tree, "rest": (a, (a,), {})},
        {**tree, "rest": [a, (a,)]},
        {**tree, "rest": [a, (a,), {"a": a}]},
        {**tree, "layer": Layer(a, a, "tanh")},
        {**tree, "layer": Known(a, a)},
        {**tree, "w": a.astype("float32")},
        {**tree, "w": a[None]},
        {**tree, "w": [1.0, 2.0, 3.0]},
        {**tree, "w": None},
        [*tree.values()],
        None,
    ]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((each, n), kwargs) for each in trees]
    calls += [((tree, other), kwargs) for other in (4, 3.0, np.int64(3), True, "3", None)]
    calls += [((tree,), kwargs), ((tree, n, n), kwargs), ((tree, n), {}), ((tree, n), {**kwargs, "more": 1})]
    calls += [((tree, n), {"scale": kwargs["scale"], "kind": "same"}), ((tree, n), {**kwargs, "mode": "full"})]
    calls += [((tree, n), {**kwargs, "mode": Text("same")}), ((), {}), ((tree, n), {**kwargs, "scale": 2.0})]
    for args, given in calls:
        assert native(*args, **given) is REFUSED
    wide = {**tree, "w": np.ones((2, 1))}
    assert forms(wide, n, **kwargs)[0]["z"].shape == (2, 3)
    assert forms(Getting(tree), n, **kwargs)[0]["z"][1] == forms(tree, n, **kwargs)[0]["z"][1] + 27


def test_static_values_are_compared_by_type_and_value() -> None:
    seen: list[Any] = []

    def repeated(x: Any, n: Any) -> Any:
        seen.append(n)
        return Known(x + 1, len(seen))

    function: Any = graphc.jit(repeated, static_argnums=1)
    x, nan = np.zeros(2), float("nan")
    big, pairs = 10**30, (1, "a")
    values = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        nan,
        big,
        "a",
        b"a",
        None,
        False,
        pairs,
        (True, "a"),
        (1.0, "a"),
        np.float64,
        len,
    ]
    expected = [function(x, value).size for value in values]
    assert expected == [*range(1, len(values) + 1)]
    equal = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        nan,
        10**29 * 10,
        spelled_anew("a"),
        bytes([97]),
        None,
        False,
        (1, spelled_anew("a")),
    ]
    for _ in range(2):
        assert [function(x, value).size for value in equal] == expected[: len(equal)]
    for variant, value in zip(function.variants(), equal, strict=False):
        assert type(variant.shortcut(x, value)) is Known, value
        others = [other for other in values if other is not value and repr(other) != repr(value)]
        assert all(variant.shortcut(x, other) is REFUSED for other in others)


def test_no_reference_is_lost_or_kept(forms: Any) -> None:
    (tree, n), kwargs = arguments()
    n, kwargs["mode"] = 10**9, spelled_anew("full")
    native = shortcut(forms, tree, n, **kwargs)
    assert native(tree, n, **kwargs) is not REFUSED
    held = [tree, *tree.values(), *tree["pair"], *tree["layer"].__dict__.values(), *tree["rest"], *kwargs.values()]
    held += [*tree, *kwargs, n, Layer, Known, Pair, Swapped, dict, list, tuple, None, np.dtype("float64"), np.ndarray]
    other = {**tree, "rest": [*tree["rest"][:2], {"more": 1}]}
    strided = {**tree, "w": np.zeros(6)[::2]}
    short = {**tree, "w": np.zeros(4)}

    def calls() -> None:  # so many that a lost reference stands out from what others hold of classes
        for _ in range(100):
            native(tree, n, **kwargs)
            assert native(other, n, **kwargs) is REFUSED  # behind what is held already
            assert native(short, n, **kwargs) is REFUSED  # the check of sizes fails
            native(strided, n, **kwargs)
            forms(tree, n, **kwargs)
        gc.collect()

    calls()
    before = [sys.getrefcount(each) for each in held]
    calls()
    changes = [now - count for now, count in zip([sys.getrefcount(each) for each in held], before, strict=True)]
    assert all(abs(change) < 50 for change, each in zip(changes, held, strict=True) if each is not None), changes
    alike = ({"z": object(), "a": [Pair(object(), None)]}, Layer(object(), 0), Known(object()))
    made: list[Any] = [native(tree, n, **kwargs), alike]
    counts = [
        [
            *(sys.getrefcount(first["z"]), sys.getrefcount(first["a"]), sys.getrefcount(first["a"][0])),
            *(sys.getrefcount(first["a"][0].left), sys.getrefcount(layer.w), sys.getrefcount(known.w)),
        ]
        for first, layer, known in made
    ]
    assert counts[0] == counts[1]


def test_native_code_compares_no_keys_of_other_types() -> None:
    function: Any = graphc.jit(lambda p: p["w"] + 1)
    native = shortcut(function, {"w": np.ones(2)})
    assert native({Hostile(): np.ones(2)}) is REFUSED
    with pytest.raises(Exception, match="compared"):
        function({Hostile(): np.ones(2)})
    np.testing.assert_array_equal(function({"w": np.ones(2)}), [2, 2])


def test_attributes_are_asked_for_as_getattr_does() -> None:
    @dataclass
    class Model:
        w: Any
        b: Any

    rest: list[Any] = []

    def model(p: Any, q: Any) -> Any:
        return p[0] + p[1].w * p[1].b + q

    function: Any = graphc.jit(model)
    a = np.ones(2)
    native = shortcut(function, [a, Model(a, a)], a)
    np.testing.assert_array_equal(native([a, Model(a, 2 * a)], a), [4, 4])
    part = Model(a, a)
    del part.b
    with pytest.raises(AttributeError, match="b"):
        native([a, part], a)
    with pytest.raises(AttributeError, match="b"):
        function([a, part], a)

    def emptied(self: Any) -> Any:
        rest.append(len(rest))
        given.clear()
        return np.full(2, 7.0)

    Model.w = property(emptied, lambda self, value: None)
    given = [np.full(2, 3.0), Model(a, np.full(2, 5.0))]
    np.testing.assert_array_equal(native(given, a), [3 + 35 + 1] * 2)
    assert rest == [0] and not given

    def interrupted(self: Any) -> Any:
        raise KeyboardInterrupt

    Model.w = property(interrupted, lambda self, value: None)
    before = sys.getrefcount(a)
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            function([a, Model(a, a)], a)
    assert sys.getrefcount(a) == before


def test_a_constructor_that_fails_ends_the_call() -> None:
    @dataclass
    class Checked:
        w: Any

        def __post_init__(self) -> None:
            if broken:
                raise ValueError("broken")

    tree_util.register_dataclass(Checked)
    broken = np.zeros(1)
    function: Any = graphc.jit(lambda x: {"a": x + 1, "b": Checked(x * 2), "c": [x]})
    x = np.ones(2)
    native = shortcut(function, x)
    assert native(x)["b"].w[0] == 2
    broken[0] = 1
    before = sys.getrefcount(x)
    for _ in range(5):
        with pytest.raises(ValueError, match="broken"):
            native(x)
    assert sys.getrefcount(x) == before


def registered(kind: Any) -> Any:
    return tree_util.register_dataclass(kind)


begun: list[str] = []


@dataclass(slots=True)
class Slots:
    u: Any
    v: Any = 3


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    u: Any
    v: Any
    w: Any = None


@registered
@dataclass
class Assigned:
    b: Any
    a: Any = field(metadata={"static": True})
    c: Any = field(default_factory=list)


@registered
@dataclass(frozen=True, kw_only=True)
class FrozenAssigned:
    b: Any
    a: Any = None


@registered
@dataclass(slots=True)
class SlotsAssigned:
    b: Any
    a: Any = 2


@registered
@dataclass
class Begun:
    u: Any
    v: Any

    def __post_init__(self) -> None:
        begun.append("post")


@registered
@dataclass
class BegunBySetting:
    u: Any
    v: Any

    def __setattr__(self, name: str, value: Any) -> None:
        begun.append(name)
        super().__setattr__(name, value)


@registered
@dataclass(init=False)
class BegunByHand:
    u: Any
    v: Any

    def __init__(self, v: Any, u: Any, *more: Any) -> None:
        begun.append("hand")
        self.u, self.v, self.more = u, v, more


class Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        begun.append("meta")
        return super().__call__(*args, **kwargs)


@registered
@dataclass
class BegunByMeta(metaclass=Meta):
    u: Any
    v: Any


OBJECTS: list[tuple[Any, Any]] = [
    (Slots, lambda x: Slots(x + 1, [x])),
    (FrozenSlots, lambda x: FrozenSlots(x, x + 1, (x, None))),
    (Assigned, lambda x: Assigned(x + 1, "name", {"a": x})),
    (FrozenAssigned, lambda x: FrozenAssigned(b=x, a=[x])),
    (SlotsAssigned, lambda x: SlotsAssigned(x, [x + 1])),
    (Begun, lambda x: Begun(x, {"a": x + 1})),
    (BegunBySetting, lambda x: BegunBySetting(x, x + 1)),
    (BegunByHand, lambda x: BegunByHand(x + 1, x)),
    (BegunByMeta, lambda x: BegunByMeta(x + 1, x)),
]


@pytest.mark.parametrize(("kind", "made"), OBJECTS, ids=[kind.__name__ for kind, _ in OBJECTS])
def test_objects_are_made_as_their_classes_make_them(kind: Any, made: Any) -> None:
    function: Any = graphc.jit(made)
    x = np.arange(3.0)
    native = shortcut(function, x)
    begun.clear()
    expected = made(x)
    by_class = [*begun]
    begun.clear()
    found = native(x)
    assert type(found) is kind and begun == by_class
    assert repr(found) == repr(expected) and gc.is_tracked(found)
    assert list(getattr(found, "__dict__", ())) == list(getattr(expected, "__dict__", ()))
    leaf = tree_util.leaves(found)[0]
    assert sys.getrefcount(leaf) == 3  # the object, the name, the argument
    counts = [sys.getrefcount(each) for each in (kind, None, "name")]
    for _ in range(1000):
        native(x)
    changes = [sys.getrefcount(each) - count for each, count in zip((kind, None, "name"), counts, strict=True)]
    assert all(abs(change) < 500 for change in changes), changes


def test_a_class_that_begins_otherwise_now_is_called() -> None:
    @registered
    @dataclass
    class Changed:
        w: Any

        def __post_init__(self) -> None:
            begun.append("old")

    function: Any = graphc.jit(lambda x: Changed(x + 1))
    x = np.ones(2)
    native = shortcut(function, x)

    def fresh(self: Any, w: Any) -> Any:
        self.w = w
        return 3

    begun.clear()
    Changed.__init__ = fresh  # type: ignore[method-assign]
    with pytest.raises(TypeError, match="should return None"):
        native(x)
    Changed.__init__ = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError, match="not callable"):
        native(x)
    Changed.__init__ = lambda self, w: begun.append("new")  # type: ignore[method-assign]
    assert type(native(x)) is Changed and begun == ["new"]


def test_dicts_of_results_are_dicts_like_any_other() -> None:
    keys: list[Any] = [*(f"k{place}" for place in range(40)), 1, (2, "a"), None, b"b"]
    for some in (keys[:1], keys[:6], keys, []):
        function: Any = graphc.jit(lambda x, some=some: {"d": {key: x + n for n, key in enumerate(some)}, "x": [x]})
        native = shortcut(function, np.zeros(1))
        for given in (0.0, 1.0):
            made = native(np.full(1, given))
            assert list(made) == ["d", "x"] and list(made["d"]) == some
            assert [float(made["d"][key][0]) for key in some] == [given + n for n in range(len(some))]
            assert gc.is_tracked(made) and gc.is_tracked(made["d"]) == gc.is_tracked({1: np.zeros(1)})
            made["d"]["more"] = 1
            made["d"].pop(some[0] if some else "more")
            assert len(made["d"]) == max(len(some), 0)


def test_large_dicts_and_many_containers() -> None:
    names = [f"k{place}" for place in range(100)]
    function: Any = graphc.jit(lambda p: {"t": p["k0"] - p["k99"]})
    tree: dict[str, Any] = {name: np.full(1, float(place)) for place, name in enumerate(names)}
    native = shortcut(function, tree)
    assert native(dict(zip(map(spelled_anew, names), tree.values(), strict=True)))["t"] == -99
    assert native(dict(reversed(tree.items()))) is REFUSED  # too many to be sought
    assert function(dict(reversed(tree.items())))["t"] == -99
    with pytest.raises(UnknownFormError):
        arguments_recipe([[[] for _ in range(600)]], {}, ())
    with pytest.raises(UnknownFormError):
        results_recipe([[] for _ in range(600)])
    for unknown in (OrderedDict(a=1.0), Getting(a=1.0), type("Items", (list,), {})([1.0])):
        with pytest.raises(UnknownFormError):
            arguments_recipe([unknown], {}, ())
        with pytest.raises(UnknownFormError):
            results_recipe((unknown,))


def test_keys_that_are_no_strings_must_be_the_same_objects() -> None:
    key: Any = (1, "a")
    other = (*key,)
    function: Any = graphc.jit(lambda p: {key: p[1] + p[key]})
    native = shortcut(function, {1: np.ones(1), key: np.ones(1)})
    assert native({key: np.ones(1), 1: np.ones(1)}) == {key: 2}
    for tree in (
        {True: np.ones(1), key: np.ones(1)},
        {1.0: np.ones(1), key: np.ones(1)},
        {1: np.ones(1), other: np.ones(1)},
    ):
        assert native(tree) is REFUSED
        assert function(tree) == {key: 2}


def test_threads_call_while_another_changes_the_dict() -> None:
    function: Any = graphc.jit(lambda p: {"s": p["a"] + p["b"], "t": [p["a"] - p["b"]]})
    tree = {"a": np.ones(50_000), "b": np.zeros(50_000)}
    function(tree)
    stop, wrong = threading.Event(), []

    def change() -> None:
        while not stop.is_set():
            tree["a"] = np.ones(50_000)
            tree["b"] = np.zeros(50_000)

    def call() -> None:
        for _ in range(150):
            made = function(tree)
            if not (made["s"] == 1).all() or not (made["t"][0] == 1).all():
                wrong.append(made)

    changer = threading.Thread(target=change, daemon=True)
    callers = [threading.Thread(target=call, daemon=True) for _ in range(2)]
    changer.start()
    for each in callers:
        each.start()
    for each in callers:
        each.join(60)
    stop.set()
    changer.join(10)
    assert not wrong and not any(each.is_alive() for each in (*callers, changer))


def test_calls_of_every_form_give_what_the_function_gives() -> None:
    """Each form twice, so that the second call goes the short way; forms in turn, so that none is taken for another."""
    a, b = np.arange(3.0), np.arange(3.0, 6.0)

    def plain(x: Any, y: Any = 2.0) -> Any:
        return (x * y, np.sum(x))

    def tree(p: Any, *, n: int = 1) -> Any:
        return {"q": p["w"] * n, "p": [p["b"] + 1, p["w"]]}

    jitted: Any = graphc.jit(plain)
    trees: Any = graphc.jit(tree, static_argnames="n")
    calls: list[tuple[Any, Any, tuple[Any, ...], dict[str, Any]]] = [
        (jitted, plain, (a, b), {}),
        (jitted, plain, (a,), {"y": b}),
        (jitted, plain, (), {"y": b, "x": a}),
        (jitted, plain, (a, 2.5), {}),
        (jitted, plain, (a, 3), {}),
        (jitted, plain, (a, True), {}),
        (jitted, plain, (a, np.float64(1.5)), {}),
        (jitted, plain, (a, np.array(1.5)), {}),
        (jitted, plain, (a,), {}),
        (jitted, plain, (a.astype("float32"), 2.5), {}),
        (jitted, plain, (a[:, None] * b, b), {}),
        (trees, tree, ({"w": a, "b": b},), {"n": 2}),
        (trees, tree, ({"b": b, "w": a},), {"n": 3}),
        (trees, tree, ({"b": b, "w": 2.0},), {}),
    ]
    for _ in range(3):
        for function, model, args, kwargs in calls:
            for _ in range(2):
                got, wanted = function(*args, **kwargs), model(*args, **kwargs)
                assert type(got) is type(wanted)
                pairs = zip(tree_util.leaves(got), graphc.tree.leaves(wanted), strict=True)
                for one, other in pairs:
                    assert type(one) is type(np.asarray(other)[()])
                    assert one.dtype == np.asarray(other).dtype
                    np.testing.assert_allclose(one, other, rtol=1e-6)
    with pytest.raises(TypeError):
        jitted(a, b, z=b)
    with pytest.raises(TypeError):
        jitted(a, x=a)


def test_arguments_by_name_of_a_derivative_are_not_taken_by_position() -> None:
    slope: Any = graphc.grad(lambda x, y: np.sum(x * x * y))
    ones = np.ones(2)
    np.testing.assert_array_equal(slope(ones, 3 * ones), [6.0, 6.0])
    np.testing.assert_array_equal(slope(ones, y=3 * ones), [6.0, 6.0])
    with pytest.raises(graphc.errors.GraphValueError, match="argument"):
        slope(y=ones, x=ones)


COMPLEX_VALUES: list[Any] = [
    *(np.array(values, dtype) for values in (3j, [], [1j, 2, -1]) for dtype in ("complex64", "complex128")),
    *(np.complex64(2 - 1j), np.complex128(1 + 3j), 2 + 1j),
    *(np.arange(12.0).reshape(2, 3, 2) * (1 + 2j), np.ones((3, 4), complex).T[::-1], np.arange(6)[::2] * 1j),
]


@pytest.mark.parametrize("value", COMPLEX_VALUES, ids=lambda value: f"{type(value).__name__}{np.shape(value)}")
def test_complex_values_are_taken_and_made_by_native_code(value: Any) -> None:
    function: Any = graphc.jit(lambda z, p: {"turned": z * 1j, "parts": (p["x"] + 1, p["z"] - z), "size": abs(z).sum()})
    tree = {"z": np.asarray(value), "x": np.arange(3.0)}
    native = shortcut(function, value, tree)
    found = native(value, tree)
    expected = {"turned": value * 1j, "parts": (tree["x"] + 1, tree["z"] - value), "size": np.sum(abs(value))}
    for one, other in zip(graphc.tree.leaves(found), graphc.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (type(one), one.dtype) == (type(np.asarray(other)[()]), np.asarray(other).dtype)
    parts = np.zeros((*np.shape(value), 2), np.asarray(value).real.dtype)
    others = [parts, parts[..., 0], [value], np.asarray(value)[None], np.asarray(value).astype(">c16"), None, "z"]
    others += [np.asarray(value)] if type(value) is complex else [complex(value)] if np.ndim(value) == 0 else []
    assert all(native(other, tree) is REFUSED for other in others)


def test_no_reference_to_complex_values_is_lost_or_kept() -> None:
    function: Any = graphc.jit(lambda z, n: (z * n, [z.sum()]))
    z, strided, number = np.arange(3) * 1j, (np.arange(6) * 1j)[::2], complex(0.25, 1e9)
    native = shortcut(function, z, number)
    held = [z, strided, strided.base, number, complex, np.ndarray, *map(np.dtype, ("complex128", "float64"))]

    def calls() -> None:
        for _ in range(100):
            native(z, number)
            native(strided, number)
            assert native(z, 3.0) is REFUSED and native(z[None], number) is REFUSED

    calls()
    before = [sys.getrefcount(each) for each in held]
    calls()
    assert all(abs(sys.getrefcount(each) - count) < 50 for each, count in zip(held, before, strict=True))
    made, (total,) = native(z, number)
    alike = np.empty(3, complex)
    assert sys.getrefcount(made) == sys.getrefcount(alike) and sys.getrefcount(total) == 2
    view = np.empty((3, 2)).view(complex)[:, 0]
    counts = [sys.getrefcount(each.base) for each in (made, view)]
    assert counts[0] == counts[1] and made.flags.writeable
    del made, total
    frozen = z.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(native(frozen, number)[0], z * number)


def test_functions_of_trees_and_complex_inputs_are_called_natively(tmp_path: Path) -> None:
    z, x, y = T.zvector("z"), T.dvector("x"), T.dvector("y")
    total: Any = graphc.function([z], abs(z).sum())
    whole: Any = graphc.function([{"x": x, "y": y}, z], {"sum": x + y, "dot": (x * y).sum(), "all": [z * x, z.sum()]})
    whole.save(tmp_path / "f.graphc")
    tree, turned = {"x": np.arange(3.0), "y": np.ones(3)}, np.arange(3) * 1j
    for function in (whole, graphc.load(tmp_path / "f.graphc")):
        by_python = function(tree, turned)
        by_native = function.exact(tree, turned)
        assert list(by_python) == list(by_native) == ["sum", "dot", "all"]
        for one, other in zip(graphc.tree.leaves(by_native), graphc.tree.leaves(by_python), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
            assert type(one) is type(other) is np.ndarray
        with pytest.raises(graphc.errors.ShapeError, match="sizes 3 and 2"):
            function({**tree, "y": np.ones(2)}, turned)
        np.testing.assert_array_equal(function({"y": [1, 2, 3], "x": [1.0, 1, 1]}, [1, 2, 3])["sum"], [2, 3, 4])
    assert type(total(turned)) is type(total(turned)) is np.ndarray and total(turned) == 3 == total([1j, 2j])
    assert total.exact is not None and total.exact([1j, 2j]) is REFUSED
