"""Scans and branches in JAX's form (`jax.lax`), over pytrees of tensors.

In: functions, traced once with variables in the structure of their arguments. Out: tensors in the structure that the
functions return; `graphc.lax` has the same functions, which compute at once of arrays. Loops make the `scan` node of
`ops/scan.py`, as Theano's `scan` does; branches the `cond` node of `ops/branch.py`, as `ifelse` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.arrays.dtypes import INTEGERS
from graphc.control.branch import choose, choose_among
from graphc.control.loop import Checkpoint, Returned, State, Step, as_step, at, called, flat, make_loop, settle, title
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import INPUT, Guard, Node, Size, describe, literal, next_serial, variable
from graphc.ir.pairs import with_pairs
from graphc.ir.source_lines import TRACE
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.identity import Frame, attached
from graphc.ops.scan import UNKNOWN
from graphc.ops.shape import guard_axis, label
from graphc.startup.hooks import HOOKS
from graphc.startup.record import replace
from graphc.tensor.indexing import flip
from graphc.trees import leaves, like, map_leaves, outline, paths, structure


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    checkpoint: Checkpoint = None,
) -> tuple[Any, Any]:
    """Call `carry, y = f(carry, x)` for each element x of `xs`, and return the final carry and the stacked `ys`.

    init: the initial carry. xs: the sequences, of equal length along their first axis. These, and what `f` returns, are
    tensors or pytrees of them: tuples, lists, dicts, dataclasses; None has no tensors. length: the trip count if there
    are no `xs`. reverse: go from the last element to the first; row t of `ys` still belongs to element t. checkpoint:
    as in `graphc.scan`. Returns the final carry, and the `ys` of all steps, stacked.

    Raises GraphTypeError if the carry changes its structure or a type, ShapeError if sequences differ in length,
    GraphValueError if there are neither `xs` nor `length`.

        >>> last, sums = scan(lambda total, x: (total + x, total + x), T.constant(0.0), T.constant([1.0, 2.0, 3.0]))
        >>> last.eval(), sums.eval()
        (array(6.), array([1., 3., 6.]))
    """
    init, xs = with_pairs(init), with_pairs(xs)
    since, states = next_serial(), _states(init)
    rows = [as_node(leaf) for leaf in leaves(xs)]
    count = _count(rows, length)
    rows = [_checked_length(row, count) for row in rows]
    elements = [variable(row.type.dtype, row.type.shape[1:], at(row.name, 0)) for row in rows]
    shape: list[Any] = []

    def call(past: list[list[Node]]) -> Returned:
        result = _trace("scan", f, carry=like(init, flat(past)), x=like(xs, elements))
        if not isinstance(result, tuple) or len(result) != 2:
            raise GraphTypeError(f"scan: {title(f)} returns {result!r}; it must return the next carry and an output")
        shape[:] = [result[1]]
        outputs = [as_node(leaf) for leaf in leaves(result[1])]
        return Returned([*_matched("scan", f, init, result[0]), *outputs], {}, None, "scan")

    step, initial = traced_step(elements, states, call, since)
    backwards = reverse and checkpoint is not None
    if backwards:
        rows = [flip(row, 0) for row in rows]
    done = make_loop(step, count, rows, initial, checkpoint=checkpoint, reverse=reverse and not backwards)
    stacked = [flip(row, 0) for row in done.stacked] if backwards else done.stacked
    return like(init, done.last), like(shape[0], stacked)


def map(f: Callable[..., Any], xs: Any) -> Any:
    """`f` of each element of `xs`, stacked; both may be pytrees, as in `scan`."""
    return scan(lambda _, x: (None, _trace("map", f, x=x)), None, xs)[1]


def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """Return the final carry of `carry = body(i, carry)` for i from `lower` to `upper` - 1.

    lower, upper: integers or integer scalars. init: the initial carry, a tensor or a pytree, as in `scan`; it is the
    result where `upper` is not above `lower`. Raises GraphTypeError for bounds that are no integers, and where the
    carry changes its structure or a type.

        >>> fori_loop(0, 5, lambda i, total: total + i, T.constant(0)).eval()
        array(10)
    """
    begin, end = (_bound(name, value) for name, value in (("lower", lower), ("upper", upper)))
    count = sizes.maximum(sizes.subtract(sizes.as_size(end), sizes.as_size(begin)), 0)
    init = with_pairs(init)
    since, states = next_serial(), [State(begin, (-1,)), *_states(init)]

    def call(past: list[list[Node]]) -> Returned:
        place, *carry = flat(past)
        after = _matched("for_loop", body, init, _trace("for_loop", body, i=place, carry=like(init, carry)))
        return Returned([place + 1, *after], {}, None, "for_loop")

    step, initial = traced_step([], states, call, since)
    return like(init, make_loop(step, count, [], initial).last[1:])


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    """Repeat `carry = body(carry)` while `cond(carry)` holds, and return the final carry.

    init: the initial carry, a tensor or a pytree, as in `scan`. Forward products (`jvp`, `jacfwd`) are a loop of their
    own. The trip count is unknown in advance, so `grad` is there only if it needs no values of the steps; that of
    `graphc.scan` with `until` always is.

    Raises GraphTypeError where the carry changes its structure or a type, RankError for a condition that is no scalar.

        >>> while_loop(lambda x: x < 100, lambda x: 2 * x, T.constant(3)).eval()
        array(192)
    """
    init = with_pairs(init)
    since, states = next_serial(), _states(init)

    def call(past: list[list[Node]]) -> Returned:
        after = _matched("while_loop", body, init, _trace("while_loop", body, carry=like(init, flat(past))))
        return Returned(after, {}, None, "while_loop")

    step, initial = traced_step([], states, call, since)
    on = [_condition(cond, like(init, carry)) for carry in (initial, step.after)]
    step = replace(step, condition=elementwise("logical_not", on[1]))
    most = literal(UNKNOWN, "int64")
    limit = elementwise("where", on[0], most, literal(0, "int64"))
    return like(init, make_loop(step, UNKNOWN, [], initial, limit=limit, name="while_loop").last)


# --- branches ---------------------------------------------------------------------------------------------------------


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`; only the branch that is taken is computed.

    pred: a scalar; any number except zero is true. operands: tensors or pytrees, as in `scan`; other tensors may be
    used as closures. Both functions are called once, while the graph is built, and must return the same structure, with
    equal dtypes and ranks; sizes may differ. A Python number takes the dtype of the other branch if that can hold it.
    JAX's former order, `cond(pred, operand, true_fun, operand, false_fun)`, gives each function an operand of its own.

    Raises GraphTypeError if the results differ in structure or type; the message shows both.

        >>> w, loss = T.dvector("w"), T.dscalar("loss")
        >>> kept = {"w": T.zeros(2), "best": T.constant(3.0)}
        >>> y = lax.cond(T.lt(loss, kept["best"]), lambda s: {"w": w, "best": loss}, lambda s: s, kept)
        >>> y["best"].eval({w: [1, 2], loss: 2.0})
        array(2.)
    """
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and callable(operands[1]):
        (first, second), given = (false_fun, operands[1]), (true_fun, operands[0])  # JAX's former order
        return cond(pred, lambda one, other: first(one), lambda one, other: second(other), *given)
    return _chosen("cond", pred, [true_fun, false_fun], operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`, with `index` clamped to the valid range; only that branch is computed.

    index: an integer scalar. operands: as those of `cond`. branches: functions, as those of `cond`.

    Raises GraphTypeError for an index that is no integer scalar, and where results differ in structure or type;
    GraphValueError where there are no branches.

        >>> lax.switch(T.constant(5), [lambda x: x + 1, lambda x: x * 10], T.constant(3.0)).eval()
        array(30.)
    """
    place = as_node(index)
    if place.ndim or place.type.dtype not in INTEGERS:
        raise GraphTypeError(f"switch: the index must be an integer, not {describe(place)} of type {place.type}")
    if not branches:
        raise GraphValueError("switch: there are no branches")
    return _chosen("switch", place, branches, operands)


def _chosen(by: str, which: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    """Call all branches on the operands and select among their results: by truth for `cond`, by number for `switch`."""
    values = [map_leaves(as_node, with_pairs(operand)) for operand in operands]
    named = {f"operand {number}": each for number, each in enumerate(values)}
    first, *others = [with_pairs(_trace(by, branch, which, **named)) for branch in branches]
    for branch, other in zip(branches[1:], others, strict=True):
        if structure(other) != structure(first):
            raise GraphTypeError(
                f"{by}: the branches must return the same structure; {title(branches[0])} returns {outline(first)}, "
                f"{title(branch)} {outline(other)}"
            )
    results = [leaves(each) for each in (first, *others)]
    return like(first, choose(by, which, *results) if by == "cond" else choose_among(by, which, results))


# --- steps ------------------------------------------------------------------------------------------------------------


def _states(init: Any) -> list[State]:
    return [State(as_node(leaf), (-1,), is_number(leaf)) for leaf in leaves(init)]


def traced_step(
    elements: Sequence[Node], states: Sequence[State], call: Callable[[list[list[Node]]], Returned], since: int
) -> tuple[Step, list[Node]]:
    """The step and the initial values of its states. `call` returns the next states first; these are not stacked."""
    settled, past, returned = settle(states, call)
    rows = len(returned.outputs) - len(states)
    step, initial = as_step(elements, [*settled, *[State(None, ())] * rows], [*past, *[[]] * rows], returned, since)
    return replace(step, outputs=step.outputs[len(states) :]), initial


def _trace(by: str, fn: Callable[..., Any], which: Any = None, **given: Any) -> Any:
    """The result of a traced function. given: arguments, with names for messages. which: the condition of a branch."""
    if which is None:
        _name(fn, given)
    anchor = next((leaf for leaf in leaves([*given.values(), which]) if isinstance(leaf, Node)), None)
    with TRACE, Frame(anchor) as frame:  # a carry and operands are the function's own, which it may write to
        arguments = [HOOKS.handles.owned(each) if name[0] in "co" else each for name, each in given.items()]
        result = called(f"{by} calls", fn, arguments, [*given])
    return attached(result, frame)


def _name(fn: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Give the variables of a loop that have no name that of the parameter of its step, for messages."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    names = code.co_varnames[: code.co_argcount][hasattr(fn, "__self__") :]
    for name, tree in zip(names, arguments.values(), strict=False):
        for leaf, path in zip(leaves(tree), paths(tree, name), strict=True):
            if isinstance(leaf, Node) and leaf.op is INPUT and leaf.name is None:
                leaf.name = path


def _condition(cond: Callable[..., Any], carry: Any) -> Node:
    node = as_node(_trace("while_loop", cond, carry=carry))
    if node.ndim:
        raise RankError(f"while_loop: {title(cond)} returns {describe(node)} of type {node.type}, not a scalar")
    return cast(node, "bool")


def _bound(name: str, value: Any) -> Node:
    node = as_node(value)
    if node.ndim or node.type.dtype not in INTEGERS:
        raise GraphTypeError(f"for_loop: {name} is {describe(node)} of type {node.type}, not an integer scalar")
    return cast(node, "int64")


def _count(rows: Sequence[Node], length: Any) -> Size:
    for row in rows:
        if not row.ndim:
            raise RankError(f"scan: {describe(row)} among xs is a scalar, which has no elements")
    if length is not None:
        return sizes.as_size(_bound("length", length))
    if not rows:
        raise GraphValueError("scan: the number of steps is not known; give length or xs")
    known = [size for row in rows if isinstance(size := row.type.shape[0], int)]
    return known[0] if known else rows[0].type.shape[0]


def _checked_length(row: Node, count: Size) -> Node:
    """A sequence checked to have as many elements as there are steps."""
    size = row.type.shape[0]
    if sizes.equal(size, count):
        return row
    if isinstance(size, int) and isinstance(count, int):
        raise ShapeError(f"scan: {describe(row)} has {size} elements, and there are {count} steps")
    message = f"scan: {label(row)} has {{left}} elements, and there are {{right}} steps"
    return guard_axis(row, 0, Guard(size, "==", count, message))


def _matched(by: str, fn: Callable[..., Any], tree: Any, other: Any) -> list[Node]:
    """The leaves of the carry that a step returns. Raises GraphTypeError if it changes its structure."""
    other = with_pairs(other)
    if structure(tree) != structure(other):
        raise GraphTypeError(
            f"{by}: {title(fn)} must return a carry of the structure that it is given, {outline(tree)}, not "
            f"{outline(other)}"
        )
    return [as_node(leaf) for leaf in leaves(other)]


__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]

explain_all(globals())
