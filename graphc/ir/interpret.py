"""The interpreter: one NumPy call for each node. It is the specification that compiled code is tested against.

In: a graph and the arrays of its inputs and shared variables. Out: the arrays of its outputs: C-contiguous, owned by
the caller, of exactly the declared dtype and rank:

    x = T.dvector("x"); y = (x * 2).sum()
    interpret(Graph((x,), (y,)), {x: np.arange(3.0)})   ->  [array(6.)]

`plan_steps` orders the graph once; `run_steps` evaluates it. Sizes are read from the arrays. A guard over sizes and
other scalars is checked before any array is computed; every other guard just before its node.
"""

from __future__ import annotations

import operator
from _thread import _local as local  # threading.local, without importing threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np

from graphc import errors
from graphc.ir.body import ITEM, guard_sides
from graphc.ir.facts import below_broadcasts
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    PARAM,
    SHARED,
    SIZE,
    Array,
    Guard,
    Node,
    Size,
    TupleType,
    Type,
    constant_value,
    describe,
)
from graphc.ir.walk import Graph, toposort, type_sizes
from graphc.startup.process import temporarily
from graphc.startup.record import record

Bindings: TypeAlias = dict[Node, Array]
"""The values computed so far."""

_RELATIONS: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "<=": operator.le, "<": operator.lt}
_INDEXED = {"gather": 1, "set_gather": 2, "inc_gather": 2}
"""Ops with index arrays: the position of the first one. They index consecutive axes, from the attribute `axis` on."""
_TOO_LARGE = ("array is too big", "iterator is too large", "Maximum allowed dimension")
"""Beginnings of NumPy's messages for a size beyond the address space."""


Seen: TypeAlias = Callable[[Node, Sequence[Array], Any], None]
"""A callback: the node, the values of its arguments, and its own value (a tuple if it has several results)."""


class Watch(local):
    """The callback of this thread, called for every computed value, inside bodies too."""

    def __init__(self) -> None:
        self.seen: Seen | None = None


WATCH = Watch()


def watched(seen: Seen) -> AbstractContextManager[None]:
    """While the block runs, call `seen` with each value as it is computed."""
    return temporarily(WATCH, seen=seen)


@record()
class Steps:
    """A graph in evaluation order.

    `early`: the scalar nodes that `checks` depend on, computed first. `order`: the other nodes. `guards[i]`: the guards
    to check before `order[i]`. `drop[i]`: the nodes that die after `order[i]`.
    """

    graph: Graph
    leaves: tuple[Node, ...]
    early: tuple[Node, ...]
    checks: tuple[Guard, ...]
    order: tuple[Node, ...]
    guards: tuple[tuple[Guard, ...], ...]
    drop: tuple[tuple[Node, ...], ...]


def interpret(graph: Graph, values: Mapping[Node, Array]) -> list[Array]:
    """The values of the graph's outputs.

    `values` holds an array for each input and shared variable that the outputs need. Raises MissingInputError,
    GraphTypeError, ShapeError or IndexOutOfBounds, each naming the variable and the user's line.
    """
    return run_steps(plan_steps(graph), values)


def check_guards(graph: Graph, values: Mapping[Node, Array]) -> None:
    """Raise ShapeError or IndexOutOfBounds for the first guard over sizes and scalars that does not hold."""
    _run_checks(plan_steps(graph), values)


def evaluate_sizes(sizes: Iterable[Size], values: Mapping[Node, Array]) -> list[int]:
    """The values of sizes for these arrays of inputs and shared variables."""
    wanted = list(sizes)
    nodes = tuple(size for size in wanted if isinstance(size, Node))
    results = dict(zip(nodes, interpret(Graph((), nodes), values), strict=True))
    return [int(results[size]) if isinstance(size, Node) else size for size in wanted]


def bindings(values: Mapping[Node, Array]) -> Bindings:
    """The known values for arrays of variables: these, and the sizes of their types."""
    return _bind(values, ())[0]


def extend(known: Bindings, root: Node, stand_ins: Mapping[Node, Node]) -> Array:
    """The value of a node. It is added to the known ones, with all values on the way, so that many questions about one
    graph take the work of one evaluation. stand_ins: variables that have the values of other nodes.

    Raises MissingInputError where the node follows from a variable that is not known.
    """

    def needs(node: Node) -> Iterable[Node]:
        if node in known or constant_value(node) is not None:
            return ()
        if node in stand_ins:
            return (stand_ins[node],)
        if node.op in (INPUT, SHARED, SIZE, PARAM):
            raise errors.MissingInputError(f"no value is given for {describe(node)}")
        return (*node.args, *(side for guard in node.op.guards(node) for side in guard_sides(guard)))

    with np.errstate(all="ignore"):
        for node in toposort((root,), needs):
            if node in known or constant_value(node) is not None:
                continue
            if node in stand_ins:
                known[node] = _value_of(stand_ins[node], known)
                continue
            for guard in node.op.guards(node):
                check_guard(guard, known)
            known[node] = _evaluate(node, [_value_of(arg, known) for arg in node.args])
    return _value_of(root, known)


def plan_steps(graph: Graph) -> Steps:
    """Order a graph for evaluation, once for any number of runs."""
    guards: dict[Node, tuple[Guard, ...]] = {}

    def needs(node: Node) -> Iterable[Node]:
        """The arguments of a node and the sides of its guards, which are checked before it."""
        if node.op in (INPUT, SHARED, PARAM):
            return ()
        if node not in guards:
            guards[node] = tuple(node.op.guards(node))
        return (*node.args, *(side for guard in guards[node] for side in guard_sides(guard)))

    leaves = [node for node in toposort(graph.outputs, needs) if node.op in (INPUT, SHARED, PARAM)]
    computed = [size for leaf in leaves for size in type_sizes(leaf)]
    order = toposort((*computed, *graph.outputs), needs)
    scalar: dict[Node, bool] = {}
    for node in order:
        scalar[node] = node.ndim == 0 and not node.is_tuple and all(scalar[arg] for arg in needs(node))
    deciding = [node for node in order if scalar[node]]
    checks = [guard for node in order for guard in guards.get(node, ()) if all(map(scalar.get, guard_sides(guard)))]
    wanted = [side for guard in checks for side in guard_sides(guard)] + [size for size in computed if scalar[size]]
    first = dict.fromkeys(toposort(wanted, needs))
    early = tuple(node for node in deciding if node in first and node.op not in LEAVES)
    rest = tuple(node for node in order if node not in first and node.op not in (INPUT, SHARED, SIZE, PARAM))
    late = tuple(
        tuple(guard for guard in guards.get(node, ()) if not all(map(scalar.get, guard_sides(guard)))) for node in rest
    )
    return Steps(graph, tuple(leaves), early, tuple(checks), rest, late, _last_uses(graph, rest, needs))


def _last_uses(
    graph: Graph, order: Sequence[Node], needs: Callable[[Node], Iterable[Node]]
) -> tuple[tuple[Node, ...], ...]:
    """For each node of `order`, the nodes whose last use it is."""
    kept = set(graph.outputs)
    drop: list[tuple[Node, ...]] = []
    for node in reversed(order):
        used = dict.fromkeys((node, *needs(node)))
        drop.append(tuple(item for item in used if item not in kept))
        kept.update(used)
    return tuple(reversed(drop))


def run_steps(steps: Steps, values: Mapping[Node, Array]) -> list[Array]:
    """Evaluate a planned graph. Arguments, result and errors are those of `interpret`."""
    known = _run_checks(steps, values)
    fresh: set[Node] = set()
    with np.errstate(all="ignore"):
        for node, guards, drop in zip(steps.order, steps.guards, steps.drop, strict=True):
            for guard in guards:
                check_guard(guard, known)
            args = [_value_of(arg, known) for arg in node.args]
            result = known[node] = _evaluate(node, args)
            may_share = node.is_tuple or node.op in (ITEM, CONSTANT)
            if not may_share and result.base is None and all(result is not arg for arg in args):
                fresh.add(node)
            for item in drop:
                known.pop(item, None)
    return _copy_aliases(steps.graph.outputs, known, fresh)


def _copy_aliases(outputs: Sequence[Node], known: Bindings, fresh: set[Node]) -> list[Array]:
    """The results, copied if they alias an argument or another value, or are not C-contiguous."""
    results: list[Array] = []
    for node in outputs:
        value = _value_of(node, known)
        owned = node in fresh and value.flags.c_contiguous
        results.append(value if owned else _copied(node, value))
        fresh.discard(node)
    return results


def _copied(node: Node, value: Array) -> Array:
    try:
        return np.array(value, order="C", copy=True)
    except MemoryError as error:
        raise MemoryError(f"{describe(node)}: {error}") from error


def _run_checks(steps: Steps, values: Mapping[Node, Array]) -> Bindings:
    """Bind the leaves, compute the early nodes, check the early guards."""
    known, computed = _bind(values, steps.leaves)
    with np.errstate(all="ignore"):
        for node in steps.early:
            known[node] = _evaluate(node, [_value_of(arg, known) for arg in node.args])
    for leaf, axis, size in computed:
        actual = known[leaf].shape[axis]
        if size in known and int(known[size]) != actual:
            raise errors.ShapeError(f"{describe(leaf)}: size {actual} along axis {axis} must be {int(known[size])}")
    for guard in steps.checks:
        check_guard(guard, known)
    return known


def _bind(values: Mapping[Node, Array], leaves: Iterable[Node]) -> tuple[Bindings, list[tuple[Node, int, Node]]]:
    """The arrays of leaves and their sizes; then (leaf, axis, size) for each computed size, to be compared later."""
    known: Bindings = {}
    computed: list[tuple[Node, int, Node]] = []
    for leaf, value in values.items():
        known[leaf] = array = np.asarray(value)
        if array.dtype != leaf.type.dtype or array.ndim != leaf.ndim:
            raise errors.GraphTypeError(f"{describe(leaf)} must be {leaf.type}, got {_array_type(array)}")
        for axis, (size, actual) in enumerate(zip(leaf.type.shape, array.shape, strict=True)):
            if isinstance(size, int):
                expected = size
            elif size.op is SIZE:
                expected = int(known.setdefault(size, np.asarray(actual, "int64")))
            else:
                computed.append((leaf, axis, size))
                continue
            if actual != expected:
                raise errors.ShapeError(
                    f"{describe(leaf)} must be {leaf.type}, got {_array_type(array)}: "
                    f"size {actual} along axis {axis} must be {expected}"
                )
    for leaf in leaves:
        _value_of(leaf, known)
    return known, computed


def _array_type(array: Array) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _value_of(node: Node, known: Bindings) -> Array:
    """The value of a computed node or a constant. Raises MissingInputError for a leaf without a value."""
    value = known.get(node)
    if value is None:
        value = constant_value(node)
    if value is None:
        raise errors.MissingInputError(f"no value is given for {describe(node)}")
    return value


CHECKED: dict[str, type[errors.GraphcError]] = {
    "shape": errors.ShapeError,
    "index": errors.IndexOutOfBounds,
    "assertion": errors.AssertionFailed,
    "value": errors.GraphValueError,
}


def check_guard(guard: Guard, known: Bindings) -> None:
    """Raise the error of a guard that does not hold for known values."""
    left, right = (int(_value_of(s, known)) if isinstance(s, Node) else s for s in (guard.left, guard.right))
    if not _RELATIONS[guard.relation](left, right):
        raise CHECKED[guard.error](str(guard.message).format(left=left, right=right))


def _evaluate(node: Node, args: Sequence[Array]) -> Array:
    """The value of a node; a tuple of arrays if it has several results."""
    try:
        result: Any = node.op.eval(node, *args)
    except errors.IndexOutOfBounds:  # of a node within a body
        raise
    except IndexError as error:
        raise errors.IndexOutOfBounds(_explain_index(node, args) or f"{describe(node)}: {error}") from error
    except MemoryError as error:
        raise MemoryError(f"{describe(node)}: {error}") from error
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE):
            raise MemoryError(f"{describe(node)} would need more memory than there can be") from error
        error.add_note(f"while computing {describe(node)}")
        raise
    if isinstance(node.type, TupleType):
        value: Any = tuple(_declared(node, each, type_) for each, type_ in zip(result, node.type.parts, strict=True))
    else:
        value = _declared(node, result, node.type)
    if WATCH.seen is not None:
        WATCH.seen(node, args, value)
    return value


def _declared(node: Node, value: Any, type_: Type) -> Array:
    array = np.asarray(value)
    if array.dtype != type_.dtype or array.ndim != type_.ndim:
        raise errors.GraphTypeError(
            f"op {node.op.name} made {_array_type(array)} of {describe(node)}, declared {type_}"
        )
    return array


def _explain_index(node: Node, args: Sequence[Array]) -> str | None:
    """The message for a gather with an index out of bounds: the index, its tensor, the axis and its size."""
    first = _INDEXED.get(node.op.name)
    if first is None:
        return None
    for axis, position in enumerate(range(first, len(args)), start=node.attrs["axis"]):
        size, indices = args[0].shape[axis], args[position]
        outside = indices[(indices < -size) | (indices >= size)]
        if outside.size and not size:
            whole = _origin(node.args[0])
            return f"elements are taken along axis {axis} of {whole}, whose size is 0: {describe(node)}"
        if outside.size:
            return (
                f"index {outside.flat[0]} of {_origin(node.args[position])} is out of bounds for axis {axis} of "
                f"{_origin(node.args[0])}, whose size is {size}: {describe(node)}"
            )
    return None


def _origin(node: Node) -> str:
    """A description of the value beneath unnamed casts, broadcasts and reshapes, which the user knows."""
    return describe(below_broadcasts(node, ("cast", "reshape"), named=False))
