"""Batches: every sample of every op for many elements at once, against a loop over the elements in Python, with the
derivatives; loops, branches and ops of users; what no batch can be."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.arrays.dtypes import is_float
from graphc.autodiff import pulled_back
from graphc.control.batch import RULES, batched
from graphc.errors import GraphTypeError, IndexOutOfBounds
from graphc.ir.interpret import interpret
from graphc.ir.node import OPS, Array, Node, Sample, variable
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.elementwise import ROWS
from graphc.ops.shape import zeros
from graphc.testing import draw

SAMPLES = [
    pytest.param(sample, id=f"{name}: {sample.name}")
    for name, op in OPS.items()
    for sample in op.samples
    if sample.args and (name not in ROWS or "of " not in sample.name)
]
RULED = """
broadcast_to dimshuffle reshape concatenate subtensor set_subtensor inc_subtensor gather set_gather inc_gather sum prod
max min supremum max_or_lowest min_or_highest any all argmax argmin running_sum running_prod linear_recurrence
segment_sum matmul cast
stop_gradient scan cond
""".split()
"""Ops besides those of single elements that act on all elements at once; others are carried out by a loop."""


def run(outputs: Sequence[Node], given: dict[Node, Array]) -> list[Array]:
    return interpret(Graph(tuple(given), tuple(outputs)), given)


def with_slopes(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """Outputs, and the derivatives of the sum of all their elements and of these squared."""
    floating = [node for node in outputs if is_float(node.dtype)]
    targets = [node for node in wrt if is_float(node.dtype)]
    if not floating or not targets:
        return list(outputs)
    seeds = {node: 2.0 * node + zeros(node.dtype, node.type.shape) + 1 for node in floating}
    return [*outputs, *pulled_back(seeds, targets)]


def check(
    build: Callable[..., Any], arrays: Sequence[Array], flags: Sequence[bool], open_: bool = True, slopes: bool = True
) -> list[Node]:
    """`build` of what `flags` marks, elements along first axes, as a batch and as a loop, with derivatives in both."""
    leaves = []
    for place, (array, has) in enumerate(zip(arrays, flags, strict=True)):
        shape = array.shape[1:] if has else array.shape
        sizes = [size if size == 1 or not open_ else None for size in shape]
        leaves.append(variable(array.dtype.name, [None, *sizes] if has else sizes, f"v{place}"))
    size = next(leaf.type.shape[0] for leaf, has in zip(leaves, flags, strict=True) if has)
    elements = [
        variable(leaf.dtype, leaf.type.shape[1:], leaf.name) if has else leaf
        for leaf, has in zip(leaves, flags, strict=True)
    ]
    made = build(*elements)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    own = with_slopes(outputs, elements) if slopes else outputs
    pairs = {e: (leaf, True) for e, leaf, has in zip(elements, leaves, flags, strict=True) if has}
    whole = [
        value if has else T.broadcast_to(T.shape_padleft(value), (size, *value.type.shape))
        for value, has in batched(outputs, pairs, size)
    ]
    found = run(with_slopes(whole, leaves) if slopes else whole, dict(zip(leaves, arrays, strict=True)))
    each = []
    count = next(len(array) for array, has in zip(arrays, flags, strict=True) if has)
    for row in range(count):
        values = [array[row] if has else array for array, has in zip(arrays, flags, strict=True)]
        each.append(run(own, {e: np.asarray(value) for e, value in zip(elements, values, strict=True)}))
    shared = [not has for leaf, has in zip(leaves, flags, strict=True) if is_float(leaf.dtype)]
    for place, got in enumerate(found):
        rows = [results[place] for results in each]
        if not rows:
            assert got.shape[0] == 0 or place >= len(outputs)
            continue
        wanted = np.sum(rows, axis=0) if place >= len(outputs) and shared[place - len(outputs)] else np.stack(rows)
        assert got.dtype == wanted.dtype or got.dtype == rows[0].dtype
        npt.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
    return whole


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_samples(sample: Sample) -> None:
    rng = np.random.default_rng(zlib.crc32(sample.name.encode()))
    places = range(len(sample.args))
    for count in places:
        for chosen in combinations(places, count + 1):
            if len(places) > 3 and 1 < count + 1 < len(places):
                continue
            flags = [place in chosen for place in places]
            arrays = [
                np.stack([draw(argument, rng) for _ in range(3)]) if has else draw(argument, rng)
                for argument, has in zip(sample.args, flags, strict=True)
            ]
            check(sample.build, arrays, flags, slopes=sample.differentiable)
            check(sample.build, arrays, flags, open_=False, slopes=False)


def test_every_op_of_a_program_has_a_rule() -> None:
    ops = [OPS[name] for name in (*ROWS, *RULED)]
    assert [op for op in ops if op.batch is None and op not in RULES] == []


E = np.random.default_rng(3)


def test_starts_and_indices_of_each_element() -> None:
    x, y, i, j = (
        E.normal(size=(3, 5, 4)),
        E.normal(size=(3, 2)),
        np.array([1, 0, -3]),
        np.array([[0, 1], [2, 2], [-1, 0]]),
    )
    for flags in [(1, 0, 1, 0), (0, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 1), (1, 0, 0, 1)]:
        arrays = [a if f else a[0] for a, f in zip((x, y, i, j), flags, strict=True)]
        check(
            lambda x, y, i, j: (
                x[i] + y.sum() * j.sum(),
                x[:, i],
                T.set_subtensor(x[i, 1:3], y),
                T.inc_subtensor(x[1:3, i], y),
                x[j],
                x[:, j],
                T.set_subtensor(x[j, i], y),
                T.inc_subtensor(x[:, j], y[0]),
                T.inc_subtensor(x[i][::-2], y),
            ),
            arrays,
            [bool(flag) for flag in flags],
        )
    a, k = T.dmatrix("a"), T.lvector("k")
    element = variable("int64", (), "k")
    ((picked, _),) = batched([a[element]], {element: (k, True)}, k.type.shape[0])
    assert nodes_of([picked]) and OPS["scan"] not in {node.op for node in nodes_of([picked])}
    for wrong in (5, -6):
        with pytest.raises(IndexOutOfBounds):
            run([picked], {a: np.zeros((5, 4)), k: np.array([0, wrong])})


def steps(x: Node, h: Node, w: Node) -> Any:
    rows, _ = graphc.scan(lambda e, h: T.tanh(T.dot(w, h) + e), [x], [h])
    (total, count), seen = lax.scan(lambda c, e: ((c[0] + (e * w).sum(), c[1] + 1), c[1]), (0.0, 0), x)
    backwards = lax.scan(lambda c, e: (c + e * h, None), T.zeros_like(h), x, reverse=True)[0]
    return rows, total, count, seen, backwards


@pytest.mark.parametrize("flags", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
@pytest.mark.parametrize("size", [3, 0])
def test_loops(flags: Sequence[int], size: int) -> None:
    arrays = [
        E.normal(size=(size, *shape) if has else shape)
        for shape, has in zip([(5, 2), (2,), (2, 2)], flags, strict=True)
    ]
    whole = check(steps, arrays, [bool(flag) for flag in flags])
    bodies = [node for node in nodes_of(whole) if node.op is OPS["scan"]]
    assert 1 <= len(bodies) <= 3


@pytest.mark.slow
def test_steps_that_index_and_multiply_states_of_symbolic_sizes() -> None:
    """What a step makes for all elements takes its sizes from the step's own variables."""
    rows = E.integers(0, 3, (2, 4, 3))

    def each(x: Node) -> Any:
        begun = T.arange(x.shape[1])
        kept = graphc.scan(lambda e, h: T.set_subtensor(h[e[0]], h[e[1]] + 1), [x], [begun])[0]
        turned = graphc.scan(lambda e, h: T.dot(h, h) + e, [x[:3]], [T.cast(x[:3], "float64")])[0]
        product = graphc.scan(lambda e, h: T.dot(h, x[:3]) + e, [x[:3]], [x[:3]])[0]
        return kept, begun[x[0]] + x[1], turned, product

    array = T.ltensor3("array")
    element = variable("int64", array.type.shape[1:], "element")
    found = batched(each(element), {element: (array, True)}, array.type.shape[0])
    for mode in ("python", None):
        values = graphc.function([array], [value for value, _ in found], mode=mode)(rows)
        alone = graphc.function([array], each(array[0]), mode=mode)
        for place, value in enumerate(values):
            npt.assert_array_equal(value, [alone(rows[number : number + 1])[place] for number in range(2)])


def test_loops_of_other_lengths() -> None:
    x, n = E.normal(size=(4, 3)), np.array([0, 1, 5, 2])

    def each(x: Node, n: Node) -> Any:
        powered = lax.fori_loop(0, n, lambda i, c: c * x, T.ones_like(x))
        halved = lax.while_loop(lambda c: c.sum() > 0.5, lambda c: 0.5 * c, abs(x))
        ended, _ = graphc.scan(lambda h: (h + x, graphc.until(h.sum() > 2)), outputs_info=[T.ones_like(x)], n_steps=4)
        return powered, halved, ended[-1]

    check(lambda x, n: each(x, n)[0], [x, n], [True, True])
    check(lambda x, n: each(x, n)[:2], [x, n], [True, True], slopes=False)
    check(lambda x, n: each(x, n)[0], [x[0], n], [False, True])
    check(
        lambda x, n: lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * x, c[1] + 1), (x, 0))[0],
        [x, np.array(3)],
        [True, False],
        slopes=False,
    )


def branches(c: Node, x: Node, y: Node) -> Any:
    return graphc.ifelse(c, [x * 2, T.log(y)], [x * y, y + x.sum()])


@pytest.mark.parametrize("flags", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_branches(flags: Sequence[int]) -> None:
    for holds in ([1, 0, 1], [0, 0, 0]):
        arrays = [np.array(holds), E.normal(size=(3, 2)), E.uniform(1, 2, size=(3, 2))]
        chosen = [a if has else a[0] for a, has in zip(arrays, flags, strict=True)]
        check(branches, chosen, [bool(flag) for flag in flags])


def test_ops_of_users() -> None:
    calls = []

    @graphc.op(vjp=lambda node, g: g * 2 * node.args[0])
    def batch_square(x: Array) -> Array:
        calls.append(x.shape)
        return x * x

    total = graphc.custom_op("batch_total", lambda x: x.sum(), lambda kind: type(kind)(kind.dtype, ()))
    check(lambda x: batch_square(x), [E.normal(size=(3, 2))], [True])  # noqa: PLW0108 - not of arrays
    assert (3, 2) in calls
    check(lambda x: total(x), [E.normal(size=(3, 2))], [True], slopes=False)  # noqa: PLW0108


def test_a_size_that_is_another_for_each_element() -> None:
    n, x = T.lvector("n"), T.dvector("x")
    element = variable("int64", (), "n")
    for made in (
        T.zeros((element,)),
        x[:element],
        T.arange(element),
        lax.scan(lambda c, _: (c, c), 0.0, None, element)[1],
    ):
        with pytest.raises(GraphTypeError, match=r"vmap: the size of .* along axis 0 is another for each element"):
            batched([made], {element: (n, True)}, n.type.shape[0])


@pytest.mark.slow
def test_compiled() -> None:
    x, w, k = T.dmatrix("x"), T.dmatrix("w"), T.lvector("k")
    e, i = variable("float64", x.type.shape[1:], "e"), variable("int64", (), "i")
    made = [
        T.dot(w, e).sum(),
        graphc.grad(T.tanh(T.dot(w, e)).sum(), e),
        e[i],
        w[i, 1:],
        lax.fori_loop(0, i, lambda n, c: c * e, e),
    ]
    whole = [value for value, _ in batched(made, {e: (x, True), i: (k, True)}, x.type.shape[0])]
    f = graphc.function([x, w, k], whole)
    for rows in (3, 1, 0):
        given = E.normal(size=(rows, 4)), E.normal(size=(4, 4)), np.array([2, 1, 0])[:rows]
        for got, wanted in zip(f(*given), run(whole, dict(zip((x, w, k), given, strict=True))), strict=True):
            npt.assert_allclose(got, wanted, rtol=1e-12)
