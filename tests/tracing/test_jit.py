"""`jit`: what NumPy gives, in dtypes too; one compilation for all sizes; what is static, and what is refused."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.errors import GraphTypeError, GraphValueError, MissingInputError, ShapeError
from graphc.ir.node import Node

Pair = namedtuple("Pair", "a b")


@dataclass
class Layer:
    w: Any
    b: Any
    kind: str = field(default="dense", metadata={"static": True})


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


@pytest.fixture
def interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


PROGRAMS: list[Callable[..., Any]] = [
    lambda x, y: (x * y + 2).sum(axis=0),
    lambda x, y: (x - y) / 3,
    lambda x, y: (2 * x, 0.5 * x, x + True, (1 - x) ** 2),
    lambda x, y: x @ y.T if x.ndim == 2 else x @ y,
    lambda x, y: x[..., None] * y,
    lambda x, y: [x.mean(), x.T, {"largest": y.max(), "half": y[: y.shape[0] // 2]}],
    lambda x, y: (x > y, x >= 1, -x if x.dtype != "bool" else x, abs(y)),
]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("program", range(len(PROGRAMS)))
@pytest.mark.usefixtures("interpreted")
def test_values_and_dtypes_are_numpys(program: int, dtype: str) -> None:
    rng = np.random.default_rng(program)
    f = PROGRAMS[program]
    traced = graphc.jit(f)
    for shape in ((3,), (2, 2), (1, 2)):
        x, y = (rng.integers(0, 5, shape).astype(dtype) for _ in range(2))
        try:
            wanted = f(x, y)
        except (TypeError, ValueError):
            continue
        found = traced(x, y)
        for got, expected in zip(graphc.trees.leaves(found), graphc.trees.leaves(wanted), strict=True):
            assert got.dtype == np.asarray(expected).dtype
            npt.assert_allclose(got, expected, rtol=1e-6)
        assert graphc.trees.structure(found) == graphc.trees.structure(wanted)


NUMBERS: list[Any] = [2, 0.5, True, np.float32(0.5), np.float64(0.5), np.int64(3), np.uint8(1)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda value: f"{type(value).__name__} {value}")
@pytest.mark.usefixtures("interpreted")
def test_numbers_take_part_as_in_numpy(number: Any) -> None:
    def f(x: Any, k: Any) -> Any:
        return x * k, x + (1 - k) * 2, (k - x) / (k + 3), k * 2, x < k

    traced = graphc.jit(f)
    for dtype in ("float32", "float64", "int64", "int32"):
        x = np.arange(1, 4).astype(dtype)
        for got, wanted in zip(traced(x, number), f(x, number), strict=True):
            assert got.dtype == np.asarray(wanted).dtype or type(wanted) in (int, float, bool)
            npt.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.usefixtures("interpreted")
def test_sizes_and_numbers_take_the_dtype_of_integers_that_can_hold_them() -> None:
    def f(x: Any, k: Any) -> Any:
        rows, columns = x.shape
        once = x * rows
        return once - columns, x // rows, np.maximum(x, rows), np.power(x, columns), x[0] * (rows + 1) % k, x + k, k - x

    traced = graphc.jit(f)
    for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64"):
        x = np.arange(12).reshape(3, 4).astype(dtype) % 3
        for got, wanted in zip(traced(x, 7), f(x, 7), strict=True):
            assert got.dtype == wanted.dtype
            npt.assert_array_equal(got, wanted)
    for function, args in (
        (lambda x: x * x.shape[1], (np.zeros((1, 200), "int8"),)),
        (f, (np.zeros((2, 2), "uint8"), -1)),
    ):
        with pytest.raises(OverflowError):
            function(*args)
        with pytest.raises(GraphValueError, match="a Python integer, is out of bounds for u?int8"):
            graphc.jit(function)(*args)


def test_trees(each_mode: str) -> None:
    @graphc.jit
    def f(layers: Any, x: Any, *, scale: Any = 1.0) -> Any:
        for layer in layers:
            assert layer.kind == "dense"
            x = x @ layer.w + layer.b["bias"]
        return Pair(Layer(x * scale, None), {"z": (x.sum(), [2, x.shape[0]]), "a": None})

    layers = [Layer(np.ones((2, 3)), {"bias": np.ones(3)}), Layer(np.ones((3, 1)), {"bias": 0.5})]
    for rows in (4, 1, 0):
        found = f(layers, np.ones((rows, 2)), scale=2.0)
        assert type(found) is Pair and type(found.a) is Layer and found.a.b is None and list(found.b) == ["z", "a"]
        npt.assert_array_equal(found.a.w, np.full((rows, 1), 19.0))
        assert found.b["z"][0] == rows * 9.5 and found.b["z"][1][1] == rows
    assert len(f.functions) == 1
    assert f(layers, np.ones((4, 2))).a.w[0, 0] == 9.5
    assert f(scale=3.0, x=np.ones((4, 2)), layers=layers).a.w[0, 0] == 28.5
    assert len(f.functions) == 3 and f.functions[0].mode == each_mode


def test_a_new_size_compiles_nothing(each_mode: str) -> None:
    calls = []

    @graphc.jit
    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return (x * y).sum(axis=1), x.shape[0]

    for shape in ((3, 4), (5, 2), (1, 1), (0, 3), (1, 7), (2, 0)):
        x, y = np.random.default_rng(0).normal(size=(2, *shape))
        total, rows = f(x, y)
        npt.assert_allclose(total, (x * y).sum(axis=1))
        assert rows == shape[0]
    assert len(calls) == len(f.functions) == 1
    f(x.astype("float32"), y.astype("float32"))
    f(x, y.astype("float32"))
    f(x[:, 0, None] if x.size else x, y)
    assert len(calls) == len(f.functions) == 3


def test_axes_of_one_element_broadcast(each_mode: str) -> None:
    f = graphc.jit(lambda x, y: (x + y, x))
    x, y = np.arange(3.0), np.ones(1)
    for _ in range(2):
        npt.assert_array_equal(f(x, x)[0], x + x)
        npt.assert_array_equal(f(x, y)[0], x + 1)
        npt.assert_array_equal(f(y, x)[0], x + 1)
        npt.assert_array_equal(f(y, y)[0], [2.0])
        with pytest.raises(ShapeError, match="x .* and y .* differ along axis 0: sizes 3 and 2"):
            f(x, x[:2])
    assert len(f.functions) == 3
    outer = graphc.jit(lambda x, y: x * y)
    assert outer(np.ones((3, 1)), np.ones((1, 4))).shape == (3, 4)
    assert outer(np.ones((3, 4)), np.ones((1, 4))).shape == (3, 4)


@pytest.mark.usefixtures("interpreted")
def test_static_arguments() -> None:
    calls = []

    def power(x: Any, n: int = 2, *, minus: bool = False) -> Any:
        calls.append(n)
        result = x
        for _ in range(n - 1):
            result = result * x
        return -result if minus else result

    x = np.arange(3.0)
    for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (-1,)}):
        more: Any = (
            {"static_argnames": ["minus"]} if "static_argnums" in options else {"static_argnames": ["n", "minus"]}
        )
        f = graphc.jit(power, **{**options, **more})
        calls.clear()
        for _ in range(2):
            npt.assert_array_equal(f(x, 3), x**3)
            npt.assert_array_equal(f(x, n=2, minus=True), -(x**2))
            npt.assert_array_equal(f(x), x**2)
            npt.assert_array_equal(f(x, 1), x)
        assert calls == [3, 2, 2, 1]
    f(x, True)
    assert calls == [3, 2, 2, 1, True]
    with pytest.raises(
        GraphTypeError, match=r"power .* a static argument is \{2\} of type set, which cannot be hashed"
    ):
        f(x, {2})  # type: ignore[call-overload]
    with pytest.raises(graphc.GraphcError, match="no parameter 'm', which static_argnames lists"):
        graphc.jit(power, static_argnames="m")


MISUSES: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (lambda x: x if x > 0 else -x, (1.0,), GraphTypeError, r"x > 0 .* truth value .* follows from x, an argument of"),
    (lambda x: x if x == 0 else -x, (1.0,), GraphTypeError, r"x == 0 .* truth value .* only static_argnames would"),
    (lambda x: 1 if x != x * 2 else 2, (1.0,), GraphTypeError, "truth value"),
    (lambda x: x if x else -x, (True,), GraphTypeError, "x .* truth value"),
    (lambda x: float(x), (1.0,), TypeError, "float|symbolic"),  # noqa: PLW0108 - of tensors
    (lambda x: [1, 2][x], (1,), TypeError, "int|symbolic"),
    (lambda x: range(x), (1,), TypeError, "int|symbolic"),  # noqa: PLW0108
    (
        lambda x: [*map(np._core.multiarray.array, [x])],
        (1.0,),
        GraphTypeError,
        "has no elements .* it is x, an argument of",
    ),
    (lambda x: "text", (1.0,), GraphTypeError, "result that it returns is no array"),
    (lambda x, how: x, (1.0, "up"), GraphTypeError, "how is 'up' of type str, no array.* static_argnames='how'"),
    (lambda x: x, ({"a": object()},), GraphTypeError, r"x\['a'\] is <object"),
    (lambda x: x, (np.ones(2, np.float16),), GraphTypeError, "x: dtype float16 is not supported"),
    (lambda x: x, (), TypeError, "missing"),
    (lambda x: len(x), (1.0,), GraphTypeError, "no length"),  # noqa: PLW0108
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
@pytest.mark.usefixtures("interpreted")
def test_misuses(number: int) -> None:
    function, args, error, words = MISUSES[number]
    with pytest.raises(error, match=words):
        graphc.jit(function).lower(*args)


@pytest.mark.usefixtures("interpreted")
def test_comparisons_outside_of_functions_stay_theanos() -> None:
    x, y = T.dvectors("x", "y")
    assert x not in [y] and x in [y, x] and bool(x == x) and bool(x != y)  # noqa: PLR0124


@pytest.mark.usefixtures("interpreted")
def test_containers_of_tensors_that_are_not_traced_go_by_identity() -> None:
    """Also while a function is traced, and where the tensors' sizes differ."""
    short, long = T.tensor("float64", shape=(2,)), T.tensor("float64", shape=(3,))

    @graphc.jit
    def f(x: Any) -> Any:
        return x + [short, long].index(long)

    assert f(1.0) == 2.0


def test_tensors_make_graphs(each_mode: str) -> None:
    f = graphc.jit(lambda x, k: x * k)
    x, w = T.dvector("x"), graphc.shared(2.0, "w")
    made = f(x, 3.0)
    assert isinstance(made, Node)
    npt.assert_array_equal(graphc.function([x], made)([1.0]), [3.0])
    inside = graphc.jit(lambda y: y * x)
    assert isinstance(inside(np.ones(2)), Node)
    npt.assert_array_equal(graphc.function([x], inside(np.ones(2)))([1.0, 2.0]), [1.0, 2.0])
    nested = graphc.jit(lambda a: f(a, 2.0) + graphc.jit(lambda b: a * b)(np.ones(2)))
    npt.assert_array_equal(nested(np.ones(2)), [3.0, 3.0])
    of_shared = graphc.jit(lambda x: x * w)
    assert of_shared(np.float64(2.0)) == 4.0
    w.set_value(3.0)
    assert of_shared(np.float64(2.0)) == 6.0


@pytest.mark.usefixtures("interpreted")
def test_decorators_methods_and_defaults() -> None:
    class Model:
        @graphc.jit
        def at(self, x: Any) -> Any:
            raise AssertionError

        @graphc.jit(static_argnames=("self",))
        def scaled(self, x: Any, *more: Any) -> Any:
            """A method."""
            return x * 2 + sum(more)

    assert Model().scaled(np.ones(2), 1.0, 2.0)[0] == 5.0 and Model.scaled.__doc__ == "A method."
    assert Model.scaled.__name__ == "scaled" and "scaled (test_jit.py" in repr(Model.scaled)
    with pytest.raises(GraphTypeError, match="self is <.*Model object"):
        Model().at(1.0)

    @dataclass
    class Line:
        slope: Any
        start: Any

        @graphc.jit
        def __call__(self, x: Any) -> Any:
            return self.slope * x + self.start

    assert Line(2.0, np.ones(2))(3.0)[1] == 7.0
    slopes = graphc.grad(lambda line: line(3.0).sum())(Line(2.0, np.ones(2)))
    assert slopes.slope == 6.0 and slopes.start[0] == 1.0
    nothing = graphc.jit(lambda x: {"a": None})
    assert nothing(1.0) == {"a": None} and nothing.functions == []
    assert graphc.jit(lambda x: 3)(1.0) == 3
    with pytest.raises(GraphTypeError, match="a function is to be transformed"):
        graphc.jit(3)  # type: ignore[call-overload]


@pytest.mark.slow
def test_calls_of_all_kinds() -> None:
    """The entry point for exact types, and what it leaves to the table."""
    f = graphc.jit(lambda x, y: x + y)
    x = np.arange(6.0)
    assert f(x, x)[1] == 2 and f.entries and f(x, y=x)[1] == 2
    compiled = f.function_for(x, x)
    assert compiled.mode == "compiled" and "kernel" in compiled.source
    for given in (x[::2], x[:3].astype(">f8"), x.reshape(2, 3).T[:, 0]):
        npt.assert_array_equal(f(given, np.zeros(3)), np.asarray(given, float))
    big = np.ones((600, 600)).T
    two = graphc.jit(lambda a, b: (a, [a * b]))
    a, (b,) = two(big, big)
    assert a.shape == b.shape == big.shape and type(two(x, x)) is tuple
    for _ in range(3):
        assert f(x.astype("float32"), x.astype("float32")).dtype == "float32" and f(x, x).dtype == "float64"
    assert f(np.float64(1), np.float64(2)) == 3 and f(1, 2) == 3 and f(1, 2).dtype == "int64" and f(1, 2.5) == 3.5
    donated = graphc.jit(lambda x, y: x + y, donate_argnums=0)
    z = np.ones(1000)
    assert donated(z, np.ones(1000)) is z and z[0] == 2


@pytest.mark.usefixtures("interpreted")
def test_threads_and_errors_within() -> None:
    f = graphc.jit(lambda x: x[3], mode="interpreted", threads=1)
    assert f(np.arange(5.0)) == 3.0
    with pytest.raises(IndexError):
        f(np.arange(2.0))
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(f)


@pytest.mark.usefixtures("interpreted")
def test_sizes_are_numbers() -> None:
    def f(x: Any) -> Any:
        n, m = x.shape
        return x.sum() / n, x * (n - 1) / x.size, x / len(x.T.shape), x[: n // 2], 1 / m, n * m < x.size + 1

    traced = graphc.jit(f)
    for dtype in ("float32", "float64", "int64", "uint8", "int32"):
        x = np.arange(12).reshape(4, 3).astype(dtype)
        for got, wanted in zip(traced(x), f(x), strict=True):
            assert got.dtype == np.asarray(wanted).dtype
            npt.assert_allclose(got, wanted, rtol=1e-6)
    npt.assert_array_equal(graphc.jit(lambda x: x + x.shape[0])(np.full(3, 255, "uint8")), np.full(3, 2, "uint8"))


@pytest.mark.usefixtures("interpreted")
def test_numbers_in_loops_and_branches() -> None:
    def f(x: Any, start: Any, flag: Any) -> Any:
        last, _ = lax.scan(lambda c, e: (c + e, c), start, x)
        return last, lax.cond(flag, lambda: x, lambda: T.zeros_like(x)), lax.cond(flag, lambda: x[0], lambda: start)

    traced = graphc.jit(f)
    for dtype in ("float32", "float64"):
        x = np.arange(1, 4).astype(dtype)
        for start, flag in ((0, True), (2.5, False), (1, False)):
            last, either, one = traced(x, start, flag)
            assert last == start + 6 and either.dtype == one.dtype == dtype
            assert one == (1 if flag else start)
    with pytest.raises(GraphTypeError, match="the branches must have the same dtype"):
        graphc.jit(lambda k: lax.cond(True, lambda: np.int32(1), lambda: k))(3.5)


@pytest.mark.slow
def test_static_values_that_python_takes_for_equal() -> None:
    """1, 1.0 and True, 0.0 and -0.0 are traced apart, in tuples and in fields of dataclasses too."""

    @dataclass(frozen=True)
    class Scale:
        x: Any
        sign: float = field(metadata={"static": True})

    signed = graphc.jit(lambda x, s: x * np.copysign(2.0, s), static_argnums=1)
    assert [signed(3.0, s) for s in (0.0, -0.0, np.float64(-0.0), np.float64(0.0))] == [6.0, -6.0, -6.0, 6.0]
    kinds = {int: 1.0, bool: 2.0, float: 3.0}
    typed = graphc.jit(lambda x, s=(1,): x * kinds[type(s[0][0])], static_argnames="s")
    assert [typed(1.0, s=((s,),)) for s in (1, True, 1.0)] == [1.0, 2.0, 3.0]
    scaled = graphc.jit(lambda scale: scale.x * np.copysign(1.0, scale.sign))
    assert [scaled(Scale(5.0, sign)) for sign in (0.0, -0.0)] == [5.0, -5.0]


def test_keys_that_are_equal_and_not_the_same() -> None:
    seen: list[Any] = []

    @graphc.jit
    def first(tree: dict[Any, Any]) -> Any:
        seen.append(next(iter(tree)))
        return tree[next(iter(tree))] * (2 if type(next(iter(tree))) is bool else 3)

    one = np.ones(2)
    assert [first({key: one}).tolist() for key in (1, True, 1, True)] == [[3, 3], [2, 2], [3, 3], [2, 2]]
    assert seen == [1, True] and list(map(type, seen)) == [int, bool]
    assert first({2: one, "a": one}).tolist() == first({"a": one, 2: one}).tolist() == [3, 3]


LEAKED: list[Any] = []


def leaking(x: Any) -> Any:
    LEAKED[:] = [x * 2, x.shape[0]]
    return x.sum()


@pytest.mark.parametrize("transform", [graphc.jit, graphc.grad, lambda f: graphc.vmap(graphc.grad(f))])
def test_what_leaks_from_a_trace_is_told_where_it_is_used(transform: Any) -> None:
    transform(leaking)(np.ones((2, 3) if transform not in (graphc.jit, graphc.grad) else 3))
    kept, size = LEAKED
    traced = r"x, an argument of leaking \(test_jit.py:\d+\), which has returned: what is used outside it must be"
    uses: tuple[Callable[[], Any], ...] = (
        kept.eval,
        lambda: graphc.function([], kept + 1),
        lambda: float(kept[0]),
        lambda: np.asarray(kept),
        lambda: bool(kept[0] > 0),
    )
    for use in uses:
        with pytest.raises((GraphTypeError, MissingInputError), match=traced):
            use()
    if isinstance(size, Node):
        with pytest.raises(MissingInputError, match=traced):
            graphc.function([], size + 1)

    def other(x: Any) -> Any:
        return (x * kept.sum()).sum()

    for again in (graphc.jit(other), graphc.grad(other)):
        with pytest.raises(MissingInputError, match=rf"^other \(test_jit.py:\d+\) uses x .*; it is {traced}"):
            again(np.ones(3))


def test_what_fails_leaves_nothing_behind_that_counts_as_known() -> None:
    def failing(x: Any) -> Any:
        LEAKED[:] = [x]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        graphc.jit(failing)(1.0)
    with pytest.raises(MissingInputError, match="x, an argument of .*failing .* which has returned"):
        LEAKED[0].eval()


def test_a_trace_within_a_trace_uses_what_is_around_it() -> None:
    @graphc.jit
    def outer(x: Any) -> Any:
        inner = graphc.jit(lambda y: y * x)
        return inner(x) + inner(2.0)

    assert outer(3.0) == 15.0 and graphc.grad(outer)(3.0) == 8.0
