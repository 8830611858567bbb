"""Costs: keep a value or compute it again, and the work of a loop at run time.

In: a node, how often it is used, where it would be kept. Out: `materialising_pays`. The unit is one addition in a
vectorised loop over elements, a tenth of a nanosecond on the machines of 2020 to 2026, in which ops state their costs
too (`Op.cost`: a division 4, an exponential 20). As an example, `exp(x)` in float64, used twice: to keep a row of it in
cache costs (0.5 + 0.15 * 2) * 8 = 6.4, to compute it a second time 20 and a load, so it is kept.

- Computing an element again costs its op and those below it, down to what lies in memory anyway (arguments of the
  kernel, results of external functions, reductions), and reading that. Values of fewer axes are for an outer loop.
- Keeping an element costs writing it once and reading it at every further use. Sizes are not known when a kernel is
  compiled. A value that is made and read in the same iteration of an outer loop is taken to stay in the first two
  levels of cache, as a row of up to some ten thousand elements does; any other is taken to go out to the last level,
  where a core moves some 30 bytes in a nanosecond, and a write moves its bytes twice: the line is fetched before it is
  written.

`work_of` and `work_of_loops` estimate the work of a step of a scan, and of all loops of a kernel, as sizes that a call
computes: long loops ask in time whether their call must end. What is computed again is counted once, what is fused is
not known yet, and a number of elements or steps that is known only within the kernel is taken to be GUESS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.codegen.call.callback import LONG_NEST
from graphc.codegen.schedule.nodes import is_written_out, lowering_of
from graphc.ir import sizes
from graphc.ir.body import outside
from graphc.ir.facts import below_broadcasts, is_place_near
from graphc.ir.lowering import Branch, Call, Fold, Part, Recur, Repeat, Scalar, SegmentNumber, Segments, View, Writes
from graphc.ir.node import CONSTANT, INPUT, LEAVES, SHARED, SIZE, Node, Size
from graphc.ir.walk import as_size_node, node_set, nodes_of
from graphc.ops.branch import given_sizes
from graphc.ops.scan import loop_of
from graphc.startup.record import record


@record()
class Traffic:
    """The cost of moving one byte."""

    read: float
    write: float


ROW = Traffic(read=0.15, write=0.5)
"""A row in cache: a load, and a store with the loop around it."""
WHOLE = Traffic(read=0.3, write=0.6)
"""An array of its own."""
EXPENSIVE = 10.0
"""A single op that costs more than this is not done twice."""
MANY = 8
"""The number of iterations assumed for a loop around a value that does not depend on it."""


def materialising_pays(node: Node, times: int, traffic: Traffic, is_materialised: Callable[[Node], bool]) -> bool:
    """Tell whether storing a value that is used `times` times, with this memory traffic, is cheaper than computing it
    at each use. `is_materialised` tells which other values are stored."""
    size = np.dtype(node.type.dtype).itemsize
    limit = (traffic.write + traffic.read * times) * size / (times - 1)
    return recompute_cost(node, traffic, is_materialised, limit) > limit


def recompute_cost(node: Node, traffic: Traffic, is_materialised: Callable[[Node], bool], limit: float) -> float:
    """The cost of computing an element again, counted until it is more than `limit`."""
    if is_place_near(node) or is_choice(node):
        return 0.0
    total, pending, seen = 0.0, [node], {node}
    while pending and total <= limit:
        current = pending.pop()
        if _axes(current) < _axes(node):
            continue
        if current is not node and (lies_in_memory(current) or is_materialised(current)):
            total += traffic.read * np.dtype(current.dtype).itemsize
            continue
        if any(isinstance(lowering_of(arg), SegmentNumber) for arg in current.args):
            continue  # once for all of a segment
        total += current.op.cost
        for arg in current.args:
            if arg.ndim and arg not in seen:
                seen.add(arg)
                pending.append(arg)
    return total


def is_choice(node: Node) -> bool:
    """Tell whether a value says which place is the one of a row, as `label[:, None] == arange(n)` does: loops that add
    a number at that place alone must see it (codegen/transform/sums.py)."""
    if node.op.name != "equal":
        return False
    places = [is_place_near(below_broadcasts(arg)) for arg in node.args]
    return sum(places) == 1 and _axes(below_broadcasts(node.args[places.index(False)])) < _axes(node)


def _axes(node: Node) -> int:
    """The number of axes of a value, without those that are known to have one element."""
    return sum(not (isinstance(size, int) and size == 1) for size in node.type.shape)


def lies_in_memory(node: Node) -> bool:
    """Tell whether an element is read rather than computed, wherever it is used."""
    lowering = lowering_of(node)
    if isinstance(lowering, Fold):
        return not is_written_out(node, lowering.sizes(node))
    return node.op in LEAVES or isinstance(lowering, Call | Writes | Recur | Segments)


# Work at run time ------------------------------------------------------------------------------------------

STEP_WORK = 20
"""The work of a step that does nothing."""
SCALAR_WORK = 10
"""The work of an op on one element is this multiple of its work in a vector."""
GUESS = 1000
MOST_STEPS = 2**20
"""The most steps that are counted of a loop in a loop."""


def work_of(results: Sequence[Node], varying: Collection[Node] = (), known: Mapping[Node, Node] = {}) -> Size:
    """The work of a step with these results: `varying` are the leaves that change from step to step, `known` is what
    parameters in its sizes stand for."""
    parts: dict[Size, int] = {1: STEP_WORK}
    for node in nodes_of(results):
        has_bodies = node.is_tuple and not isinstance(lowering_of(node), Call)
        elements, cost = (_work_inside(node, varying, known), 1) if has_bodies else _elements(node, varying, known)
        if isinstance(elements, int):
            elements, cost = 1, elements * cost
        parts[elements] = parts.get(elements, 0) + cost
    return sizes.total(sizes.multiply(elements, cost) for elements, cost in parts.items())


def work_of_loops(results: Sequence[Node], known: Mapping[Node, Node] = {}, nests: bool = False) -> Size:
    """The work of the loops that the results of a kernel need, without that of nested loops. `nests`: also count values
    whose loops go over several sizes that only a call can tell."""
    work_of_each: list[Size] = []
    for node in nodes_of(results):
        lowering = lowering_of(node)
        if nests and _goes_over_several_sizes(node):
            work_of_each.append(sizes.multiply(*_elements(node, (), known)))
        if isinstance(lowering, Branch):
            inside = _size_params(node, node.attrs["then"].params, node.args[1:], known)
            work_of_each += [work_of_loops(node.attrs[side].results, inside) for side in ("then", "orelse")]
        elif isinstance(lowering, Repeat):
            loop = loop_of(node.args, node.attrs)
            work = work_of(loop.body.results, (), _size_params(node, loop.body.params, loop.operands, known))
            count = _size_outside(sizes.as_size(loop.count), (), known)
            work_of_each.append(sizes.multiply(sizes.minimum(count, 2**31), sizes.minimum(work, 2**24)))
    return sizes.total(work_of_each)


def _goes_over_several_sizes(node: Node) -> bool:
    """Tell whether the loops of a value go over several sizes that only a call can tell."""
    if node.is_tuple:
        return False
    lowering = lowering_of(node)
    shape = (*node.type.shape, *(lowering.sizes(node) if isinstance(lowering, Fold) else ()))
    return sum(isinstance(size, Node) for size in shape) >= LONG_NEST


def _size_params(
    node: Node, params: Sequence[Node], operands: Sequence[Node], known: Mapping[Node, Node]
) -> Mapping[Node, Node]:
    """The sizes outside that parameters of a body stand for which are sizes. A condition or a float by which a size is
    chosen or rounded is no size itself: what follows from it is taken to be GUESS."""
    passed = {operand for operand in given_sizes(node) if operand.dtype in INTEGERS}
    pairs = [(param, operand) for param, operand in zip(params, operands, strict=True) if operand in passed]
    return {param: as_size_node(_size_outside(sizes.as_size(operand), (), known)) for param, operand in pairs}


def _work_inside(node: Node, varying: Collection[Node], known: Mapping[Node, Node]) -> Size:
    """The work of a loop, or of both bodies of a branch."""
    if isinstance(lowering_of(node), Branch):
        inside = _size_params(node, node.attrs["then"].params, node.args[1:], known)
        return sizes.total(work_of(node.attrs[side].results, varying, inside) for side in ("then", "orelse"))
    loop = loop_of(node.args, node.attrs)
    count = _size_outside(sizes.as_size(loop.count), varying, known)
    inside = _size_params(node, loop.body.params, loop.operands, known)
    return sizes.multiply(sizes.minimum(count, MOST_STEPS), work_of(loop.body.results, varying, inside))


def _elements(node: Node, varying: Collection[Node], known: Mapping[Node, Node]) -> tuple[Size, int]:
    """The number of elements that a node computes, and the work of each."""
    lowering, shape = lowering_of(node), node.type.shape
    cost = round(node.op.cost)
    if isinstance(lowering, View | Part | None):
        return 1, 0
    if isinstance(lowering, Fold):
        shape = (*shape, *lowering.sizes(node))
    elif isinstance(lowering, Segments):
        shape = node.args[0].type.shape
    elif isinstance(lowering, Call):
        shape, cost = tuple(lowering.work(node)), 1
    elements = sizes.product(_size_outside(size, varying, known) for size in shape)
    return elements, cost if shape else cost * SCALAR_WORK


def _size_outside(size: Size, varying: Collection[Node], known: Mapping[Node, Node]) -> Size:
    """A size of a body in terms of what its parameters stand for, where it is known before the loops begin."""
    if isinstance(size, int):
        return size
    inside = _is_arithmetic(size, {*known})
    outer = outside(size, known) if inside else GUESS
    return outer if isinstance(outer, int) or _is_arithmetic(outer, (), varying) else GUESS


def _is_arithmetic(size: Node, known: Collection[Node], varying: Collection[Node] = ()) -> bool:
    """Tell whether a size is computed from sizes, and from the nodes of `known`, by arithmetic of integers."""
    for node in node_set([size]):
        leaf = node.op in (SIZE, CONSTANT, INPUT, SHARED) and node not in varying and not node.ndim
        computed = node.args and not is_float(node.type.dtype) and isinstance(lowering_of(node), Scalar)
        if not (leaf or computed or node in known):
            return False
    return True
