"""The arena of temporaries: values that live at once never share memory, and the others do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES, itemsize
from graphc.codegen.call.signature import ALIGNMENT, MOST, Array, Signature, Temp, need_of
from graphc.codegen.schedule.memory import Temporary, lay_out, nominal_bytes
from graphc.ir.node import Size, variable
from graphc.loopir.ir import Target, integer

N, M = (variable("float64", (None,), name).type.shape[0] for name in "nm")
ADDED = (Target(integer(3), integer(8)), 3)
LIVES = st.tuples(
    st.sampled_from(DTYPES),
    st.lists(st.sampled_from([1, 3, 100, N]), max_size=3),
    st.integers(0, 9),
    st.integers(0, 4),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(LIVES, max_size=12))
def test_values_that_live_at_once_lie_apart(lives: list[Any]) -> None:
    kept = [Temporary(dtype, tuple(shape), first, first + length) for dtype, shape, first, length in lives]
    numbers = count()
    layout = lay_out(kept, lambda name: f"{name}_{next(numbers)}")
    slots = {slot.buffer: slot for slot in layout.slots}
    held_in = layout.buffers
    for (a, held), (b, other) in combinations(zip(kept, held_in, strict=True), 2):
        assert held != other or a.last < b.first or b.last < a.first
    for value, held in zip(kept, held_in, strict=True):
        assert held.dtype == value.dtype
        assert key(value.dtype, value.shape) in [key(*extent) for extent in slots[held].extents]
    meeting = max((sum(v.first <= now <= v.last for v in kept) for now in range(20)), default=0)
    assert meeting <= len(slots) <= len(kept)


def key(dtype: str, shape: Sequence[Size], *more: object) -> tuple[object, ...]:
    """What tells values apart that a slot holds: symbolic sizes by identity."""
    return dtype, tuple(size if isinstance(size, int) else id(size) for size in shape), *more


def plainly(kept: list[Temporary]) -> list[int]:
    """The slots by the rule of schedule/memory.py, every one of them looked at for every value."""
    order = sorted(range(len(kept)), key=lambda n: (-nominal_bytes(kept[n]), kept[n].first))
    slots: list[list[Temporary]] = []
    held_in: dict[int, int] = {}
    for number in order:
        value = kept[number]
        free = [
            slot
            for slot, held in enumerate(slots)
            if held[0].dtype == value.dtype
            and all(other.last < value.first or value.last < other.first for other in held)
            and (
                all(key(*other.size_class) == key(*value.size_class) for other in held)
                or not (value.is_particular or any(other.is_particular for other in held))
            )
        ]

        def misfit(slot: int, value: Temporary = value) -> tuple[bool, bool, int]:
            longest = max(map(nominal_bytes, slots[slot]))
            like = any(key(*other.size_class) == key(*value.size_class) for other in slots[slot])
            return not (like and longest == nominal_bytes(value)), not like, longest

        held = min(free, key=misfit) if free else len(slots)
        if not free:
            slots.append([])
        slots[held].append(value)
        held_in[number] = held
    names = list(dict.fromkeys(held_in[number] for number in range(len(kept))))
    return [names.index(held_in[number]) for number in range(len(kept))]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(LIVES, st.sampled_from([None, None, 7]), st.booleans()), max_size=25))
def test_slots_are_found_as_if_all_were_looked_at(values: list[Any]) -> None:
    kept = [
        Temporary(dtype, tuple(shape), first, first + length, rows, ADDED if added else None)
        for (dtype, shape, first, length), rows, added in values
    ]
    layout = lay_out(kept, str)
    assert [int(buffer.name.removeprefix("t")) for buffer in layout.buffers] == plainly(kept)


def test_equal_values_come_first_and_a_slot_has_one_dtype() -> None:
    kept = [
        Temporary("float32", (N, N), 0, 1),
        Temporary("float64", (N, N), 0, 1),
        Temporary("float32", (N, N), 2, 3),
        Temporary("int64", (N,), 2, 3),
        Temporary("float64", (N,), 4, 5),
    ]
    layout = lay_out(kept, str)
    assert [buffer.name for buffer in layout.buffers] == ["t0", "t1", "t0", "t2", "t1"]
    assert [slot.extents for slot in layout.slots] == [
        (("float32", (N, N)),),
        (("float64", (N, N)), ("float64", (N,))),
        (("int64", (N,)),),
    ]


SIZES = st.one_of(st.integers(-2, 50), st.sampled_from([2**20, 2**31, 2**58, 2**62, -(2**63), 2**63 - 1]))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_a_call_needs(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.lists(SIZES, max_size=3), max_size=4))
    temps = tuple(
        Temp(f"t{number}", "uint8", tuple((data.draw(st.sampled_from(DTYPES)), len(shape)) for shape in (shape, shape)))
        for number, shape in enumerate(shapes[1:])
    )
    outputs = tuple(Array("y", "int32", (None,) * len(shape)) for shape in shapes[:1])
    signature = Signature("f", (), (), outputs, temps, (), "list")
    extents = [size for shape in shapes[:1] for size in shape]
    extents += [size for shape in shapes[1:] for _ in range(2) for size in shape]
    need = need_of(signature, extents)

    def length(shape: list[int], dtype: str) -> int:
        product = itemsize(dtype)
        for size in shape:
            product *= size
        return product

    wanted = [
        max(length(shape, dtype) for dtype, _ in temp.extents) for shape, temp in zip(shapes[1:], temps, strict=True)
    ]
    negative = any(size < 0 for shape in shapes for size in shape)
    lengths = [*wanted, *(length(shape, "int32") for shape in shapes[:1])]
    if need is None:
        empty = any(0 in shape for shape in shapes)  # a product may be too large before it meets the 0
        assert negative or empty or max(lengths, default=0) > MOST or sum(wanted) > MOST
    else:
        assert not negative
        assert list(need.temps) == wanted
        assert need.arena == (ALIGNMENT + sum(-(-want // ALIGNMENT) * ALIGNMENT for want in wanted) if wanted else 0)


def chain(dtype: str = "float64") -> graphc.Function:
    """Values of several sizes and dtypes that follow one another, none of which can be fused with the next."""
    x = T.matrix("x", dtype=dtype)
    a = T.dot(x, x.T)
    order = T.cast(a.sum(axis=0) * 0, "int64")
    b = T.dot(T.exp(a), a[order] * 0.5)
    c = T.dot(b.T, T.tanh(x))
    return graphc.function([x], T.dot(c.T, c).sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_right_at_all_sizes(dtype: str) -> None:
    f = chain(dtype)
    slow = graphc.function([f.kernel.inputs[0]], f.kernel.outputs[0], "interpreted")
    plain = graphc.function([f.kernel.inputs[0]], f.kernel.outputs[0], "python")
    rng = np.random.default_rng(0)
    for shape in ((0, 0), (0, 3), (3, 0), (1, 1), (7, 3), (3, 7), (40, 5), (2, 60)):
        x = (rng.normal(size=shape) * 0.1).astype(dtype)
        np.testing.assert_allclose(f(x), slow(x), rtol=1e-3)
        np.testing.assert_allclose(plain(x), slow(x), rtol=1e-3)


def test_rows_share_a_slot_with_rows_only() -> None:
    """Threads have a row each, so that the slot of a row is several times as long."""
    rows = [Temporary("float64", (N,), number, number, rows=M) for number in (0, 2, 4)]
    others = [
        Temporary("float64", (N,), 1, 1),
        Temporary("float64", (N,), 3, 3, rows=N),
        Temporary("float32", (N,), 5, 5, rows=M),
    ]
    kept = [*rows, *others]
    layout = lay_out(kept, lambda name: name)
    assert len(set(layout.buffers[:3])) == 1
    assert len(set(layout.buffers)) == len(layout.slots) == 4


def test_a_state_that_nobody_reads_keeps_its_memory() -> None:
    """What the loop hands on in it is written to the last step, so that nothing else may lie there meanwhile."""
    x = T.dvector("x")

    def residuals(x: Any) -> Any:
        return T.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    def step(state: Any) -> Any:
        x, values, count = state
        rows = T.stack([T.stack([-20 * x[0], T.constant(10.0)]), T.set_subtensor(T.zeros_like(x)[:1], -1.0)])
        after = x - 0.1 * T.dot(rows.T, values)
        return after, residuals(after), count + 1

    last, *_ = graphc.while_loop(lambda state: state[2] < 2, step, (x, residuals(x), T.constant(0)))
    compiled, plain = (graphc.function([x], last, mode=mode) for mode in ("compiled", "interpreted"))
    np.testing.assert_allclose(compiled(np.array([-1.2, 1.0])), plain(np.array([-1.2, 1.0])), rtol=1e-12)


@pytest.mark.slow
def test_gradients_of_weights_are_made_while_their_operands_are_there() -> None:
    """The gradient of a chain of products needs the activations and a few cotangents; with checkpoints those of one
    part, and the arrays between parts."""
    layers, shape = 15, (50, 8)
    elements = shape[0] * shape[1] * 8
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(8, 8)) for _ in range(layers)]
    x = rng.normal(size=shape)

    def block(ws: Any, x: Any) -> Any:
        for w in ws:
            x = T.tanh(T.dot(x, w))
        return x

    def memory(part: Any) -> float:
        def loss(ws: Any, x: Any) -> Any:
            for first in range(0, layers, 3):
                x = part(ws[first : first + 3], x)
            return T.sum(x**2)

        return graphc.jit(graphc.grad(loss), mode="python").memory(weights, x).arena / elements

    whole, parts = memory(block), memory(graphc.checkpoint(block))
    assert whole < layers + 4
    # four arrays between parts, three in a part, as many cotangents, and what both are made of
    assert parts < 4 + 3 + 3 + 3 < layers < whole
