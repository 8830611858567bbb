"""Python values outside of a traced function: what it changes is an error, a warning or a cache, and what others change
is traced anew. All as NumPy has it, or told."""

from __future__ import annotations

import itertools
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import lax
from graphc.errors import GraphTypeError

CALLS = 0
RATE = 0.5
TABLE = [1.0, 2.0]
SETTINGS: dict[str, Any] = {"rate": 0.5, "powers": [1, 2]}
NAMES = {"double"}
config: Any = types.ModuleType("program_config")
config.scale = 2.0


@lru_cache
def cached(n: int) -> float:
    return n * 0.5


class Model:
    steps = 0
    gain = 2.0

    def __init__(self) -> None:
        self.n = 0
        self.w = np.arange(3.0)
        self.cache: dict[int, float] = {}
        self.lazy: Any = None
        self.hidden: Any = None

    def counts(self, x: Any) -> Any:
        self.n += 1
        return x

    def uses_its_count(self, x: Any) -> Any:
        self.n += 1
        return x / self.n

    def learns(self, x: Any) -> Any:
        self.w = self.w - 0.1 * x
        return self.w.sum()

    def counts_for_all(self, x: Any) -> Any:
        Model.steps += 1
        return x * Model.steps

    def keeps_its_state(self, x: Any) -> Any:
        self.hidden = np.tanh(x if self.hidden is None else x + self.hidden)
        return self.hidden

    def keeps_a_value(self, x: Any) -> Any:
        self.hidden = np.tanh(x)
        return (self.hidden * self.w).sum()

    def makes_when_needed(self, x: Any) -> Any:
        if self.lazy is None:
            self.lazy = np.full(3, 2.0)
        return x * self.lazy

    def fills_a_cache(self, x: Any) -> Any:
        if 3 not in self.cache:
            self.cache[3] = 0.5
        return x * self.cache[3]

    def scaled(self, x: Any) -> Any:
        return x * self.gain + self.w


def _global(x: Any) -> Any:
    global CALLS  # noqa: PLW0603
    CALLS += 1
    return x * CALLS


def _in_a_module(x: Any) -> Any:
    config.scale += 1
    return x * config.scale


class Slotted:
    __slots__ = ("k",)

    def __init__(self) -> None:
        self.k = 2.0

    def counts(self, x: Any) -> Any:
        self.k += 1
        return x * self.k

    def scaled(self, x: Any) -> Any:
        return x * self.k


def _reads_then_binds() -> Callable[..., Any]:
    count = 0

    def counted(x: Any) -> Any:
        nonlocal count
        count += 1
        return x + count

    return counted


def _of(container: Any, change: Callable[[Any], Any], use: Callable[[Any], Any]) -> Callable[..., Any]:
    def changes(x: Any) -> Any:
        change(container)
        return x * use(container)

    return changes


def _numbers() -> Iterator[float]:
    yield from (1.0, 2.0, 3.0, 4.0)


def _next(items: Any) -> Callable[..., Any]:
    return lambda x: x * next(items)


DEPENDS = {
    "a global": (_global, r"^CALLS was changed while _global .*test_outside_changes.py:\d+"),
    "a closure": (_reads_then_binds(), r"^count was changed"),
    "an attribute": (Model().uses_its_count, r"^self.n was changed .*test_outside_changes.py:\d+"),
    "a slot": (Slotted().counts, r"^self.k was changed"),
    "weights": (Model().learns, r"^self.w was changed"),
    "a class": (Model().counts_for_all, r"Model.steps was changed|self.steps was changed"),
    "a state": (Model().keeps_its_state, r"^self.hidden was changed"),
    "a list": (_of([], lambda v: v.append(1), len), r"^container was changed"),
    "a dict": (_of({"n": 1}, lambda v: v.update(n=v["n"] + 1), lambda v: v["n"]), r"^container\['n'\] was changed"),
    "a set": (_of(set(), lambda v: v.add(len(v)), len), r"^container was changed"),
    "a deque": (_of(deque([1.0, 2.0]), lambda v: v.rotate(1), lambda v: v[0]), r"^container was changed"),
    "a stack": (_of([1.0, 2.0, 3.0, 4.0], lambda v: v.pop(), len), r"^container was changed"),
    "a module": (_in_a_module, r"^config.scale was changed"),
    "a generator": (_next(_numbers()), r"^items was changed"),
    "a counter": (_next(itertools.count(1)), r"^items was changed"),
    "items": (_next(iter([1.0, 2.0, 3.0])), r"^items was changed"),
    "a partial": (partial(lambda log, x: log.append(1) or x * len(log), []), r"was changed"),
    "a gradient": (graphc.grad(lambda x: (_global(x) ** 2).sum()), r"^CALLS was changed"),
    "a loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: _global(c), x), r"^CALLS was changed"),
}


@pytest.mark.parametrize(("function", "told"), DEPENDS.values(), ids=DEPENDS)
def test_a_result_that_depends_on_a_change_is_refused(function: Any, told: str) -> None:
    jitted = graphc.jit(function)
    for _ in range(2):
        with pytest.raises(GraphTypeError, match=told):
            jitted(np.ones(3))


def test_a_refused_call_has_changed_nothing() -> None:
    model, log = Model(), [0.0]
    for function in (model.uses_its_count, model.learns, _of(log, lambda v: v.append(1), len)):
        with pytest.raises(GraphTypeError, match="was changed"):
            graphc.jit(function)(np.ones(3))
    assert (model.n, model.w.tolist(), log) == (0, [0.0, 1.0, 2.0], [0.0])


@pytest.mark.parametrize(
    ("container", "change", "after"),
    [
        ([], lambda v: v.append("f"), ["f"]),
        ({"n": 0}, lambda v: v.update(n=v["n"] + 1), {"n": 1}),
        (defaultdict(int), lambda v: v.__setitem__("f", v["f"] + 1), {"f": 1}),
        (deque(), lambda v: v.append("f"), deque(["f"])),
        ([0], lambda v: v.__setitem__(0, v[0] + 1), [1]),
    ],
)
def test_what_only_counts_is_told_and_counts_traces(container: Any, change: Any, after: Any) -> None:
    jitted = graphc.jit(_of(container, change, lambda v: 2.0))
    with pytest.warns(RuntimeWarning, match=r"^container.* was changed while changes .* was traced"):
        assert jitted(np.ones(3)).tolist() == [2.0] * 3
    jitted(np.ones(5))
    assert container == after


def test_attributes_that_only_count_are_told() -> None:
    model = Model()
    with pytest.warns(
        RuntimeWarning, match=r"^self.n was changed while counts .* was traced \(test_outside_changes.py"
    ):
        graphc.jit(model.counts)(np.ones(3))
    assert model.n == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Model().keeps_a_value,
        lambda: Model().makes_when_needed,
        lambda: Model().fills_a_cache,
        lambda: lambda x: x * cached(len(x.shape)),
        lambda: _of([], lambda v: v[:] or v.extend([1.0, 2.0]), sum),
        lambda: _of({}, lambda v: v.setdefault("w", 3.0), lambda v: v["w"]),
    ],
)
def test_caches_and_values_that_are_kept_say_nothing(make: Callable[[], Any]) -> None:
    plain, jitted = make(), graphc.jit(make())
    for _ in range(2):
        np.testing.assert_allclose(jitted(np.arange(3.0)), plain(np.arange(3.0)))
    assert len(jitted.variants()) == 1


def _mean_of(items: list[Any]) -> Any:
    return lambda x: x * sum(items) / len(items)


def _changing() -> dict[str, tuple[Any, list[Callable[[], Any]]]]:
    slotted = Slotted()
    model, cells, items = Model(), types.SimpleNamespace(scale=1.0), [1.0, 2.0]
    scope = globals()
    return {
        "a number": (lambda x: x * RATE, [lambda: scope.update(RATE=2.0), lambda: scope.update(RATE=0.5)]),
        "a list": (lambda x: x * TABLE[0], [lambda: TABLE.__setitem__(0, 7.0), lambda: TABLE.insert(0, 3.0)]),
        "a dict": (
            lambda x: x * SETTINGS["rate"] ** SETTINGS["powers"][1],
            [lambda: SETTINGS.update(rate=2.0), lambda: SETTINGS["powers"].__setitem__(1, 3)],
        ),
        "a set": (
            lambda x: x * 2 if "double" in NAMES else x,
            [lambda: NAMES.discard("double"), lambda: NAMES.add("double")],
        ),
        "attributes": (model.scaled, [lambda: setattr(model, "gain", 5.0), lambda: setattr(model, "w", np.ones(3))]),
        "of a class": (Model().scaled, [lambda: setattr(Model, "gain", 4.0), lambda: setattr(Model, "gain", 2.0)]),
        "a slot": (slotted.scaled, [lambda: setattr(slotted, "k", 7.0)]),
        "a module": (lambda x: x * config.scale, [lambda: setattr(config, "scale", 9.0)]),
        "an object": (
            lambda x: x * cells.scale,
            [lambda: setattr(cells, "scale", 3), lambda: setattr(cells, "scale", 3.0)],
        ),
        "a helper's": (
            graphc.vmap(_helped),
            [lambda: scope.update(RATE=8.0), lambda: scope.update(RATE=0.5)],
        ),
        "closure": (_mean_of(items), [lambda: items.append(9.0), items.pop, lambda: items.append(2.5)]),
        "a kind": (lambda x: x + INTEGER, [lambda: scope.update(INTEGER=1.0), lambda: scope.update(INTEGER=True)]),
    }


INTEGER: Any = 1


def _helped(x: Any) -> Any:
    return x * RATE


@pytest.mark.parametrize("name", _changing())
def test_what_the_program_changes_between_calls_is_traced_anew(name: str) -> None:
    function, changes = _changing()[name]
    plain, jitted = getattr(function, "__wrapped__", function), graphc.jit(function)
    x = np.arange(3)
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            wanted, found = plain(x), jitted(x)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted)


def test_a_loop_of_a_name_that_changes() -> None:
    k = 1.0

    def step(c: Any, x: Any) -> Any:
        return c + k * x, c

    assert lax.scan(step, 0.0, np.ones(3))[0] == 3
    k = 2.0
    assert lax.scan(step, 0.0, np.ones(3))[0] == 6


def test_many_values_are_told_by_name() -> None:
    global RATE  # noqa: PLW0603
    jitted = graphc.jit(lambda x: x * RATE, max_variants=2)
    try:
        with pytest.warns(RuntimeWarning, match="since RATE, which it takes from outside, has changed"):
            for number in range(4):
                RATE = number / 2
                assert jitted(np.ones(2))[0] == RATE
    finally:
        RATE = 0.5


def test_names_cost_no_trace_where_they_stay() -> None:
    jitted = graphc.jit(lambda x: x * RATE + SETTINGS["rate"])
    for size in range(4):
        jitted(np.ones(size))
    assert len(jitted.variants()) == 1
