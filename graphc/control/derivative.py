"""The derivative of a scan: a scan over the same steps in the opposite direction.

In: a scan, and the cotangents of some of its results. Out: the cotangents of its operands. For h[t] = exp(h[t-1]) *
x[t] with the initial value h0, and cotangents g[t] of the stacked outputs, the cotangent of h0 is the last state of the
backward scan:

    forward                                       backward, from the last step to the first
      states      h, from h0                        states      c, from 0: the cotangent of h
      sequences   x                                 sequences   e = exp(h[t-1]), which the forward scan keeps; x; g
      step        h -> exp(h) * x                   step        c -> (c + g) * x * e

The backward scan carries the cotangent of each state and, for each constant, the sum of its cotangents so far; the
cotangents of sequences are its outputs. It reads the sequences, the cotangents of the forward outputs, and the *kept*
values that the derivative uses: states, and intermediate values that are expensive to recompute. Kept values become
additional outputs of the forward scan, which is a new node; `rewrite.loops` merges it with the original. Nothing is
kept of a `recomputed` loop within a step (checkpointing): the backward scan runs it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from graphc.arrays.dtypes import is_float
from graphc.autodiff import jvp, pulled_back
from graphc.errors import GradientError
from graphc.ir import sizes
from graphc.ir.body import ITEM, close, item, make_body, needed_of, param
from graphc.ir.lowering import Scalar, View
from graphc.ir.node import (
    FUNCTIONS,
    LEAVES,
    OPS,
    SIZE,
    Node,
    Size,
    Type,
    constant_value,
    define_op,
    describe,
    make,
    next_serial,
    tuple_of,
    variable,
)
from graphc.ir.walk import dependents, node_set, nodes_of, reachable, substitute, type_sizes
from graphc.ops.branch import resized
from graphc.ops.custom import DIRECTION
from graphc.ops.index import set_subtensor
from graphc.ops.scan import UNKNOWN, Loop, is_recomputed, loop_of, make_scan, outside_shape, scan_node, with_body
from graphc.ops.shape import zeros
from graphc.startup.record import record, replace

KNOWN_LATE = "and their number is known only at the end; scan with n_steps, the most there can be, and until() has one"
KEPT = 4.0
"""The values of ops that cost more than this are kept, not recomputed."""


@record()
class Unrolled:
    """One step of a scan as a graph over variables. elements: one for each sequence. states: one for each state. fixed:
    for each constant a variable (if its derivative is wanted or it is computed) or the operand itself. results: the
    results of the body."""

    loop: Loop
    elements: tuple[Node, ...]
    states: tuple[Node, ...]
    fixed: tuple[Node, ...]
    results: tuple[Node, ...]

    @property
    def varying(self) -> tuple[Node, ...]:
        return (*self.elements, *self.states)

    @property
    def operands(self) -> Mapping[Node, Node]:
        """The variables in `fixed`, mapped to the constants they stand for."""
        pairs = zip(self.fixed, self.loop.constants, strict=True)
        return {variable_: operand for variable_, operand in pairs if variable_ is not operand}


def step_of(loop: Loop, separate: Collection[Node]) -> Unrolled:
    """One step of a scan; the constants in `separate` become variables.

    So do computed constants, unless they may occur in sizes. Otherwise the nodes that compute a constant could move
    into a branch within the step and be recomputed in every step.
    """
    within = node_set([size for node in nodes_of(loop.body.results) for size in type_sizes(node)])

    def stand_in(param: Node) -> Node:
        return variable(param.type.dtype, outside_shape(loop, param), param.name)

    def is_separate(param: Node, operand: Node) -> bool:
        may_be_size = param in within or (param.type.dtype == "int64" and not param.ndim)
        return param in separate or bool(operand.args and not may_be_size)

    elements, states = tuple(map(stand_in, loop.elements)), tuple(map(stand_in, loop.states))
    pairs = zip(loop.fixed, loop.constants, strict=True)
    fixed = tuple(stand_in(param) if is_separate(param, operand) else operand for param, operand in pairs)
    replaced = dict(zip(loop.body.params, (*elements, *states, *fixed), strict=True))
    return Unrolled(loop, elements, states, fixed, tuple(substitute(loop.body.results, replaced)))


@record()
class BackwardStep:
    """One backward step. after, made: variables for the cotangents of the next states and of outputs, by number.
    totals: variables for the accumulated cotangents of constants. results: the cotangents of states, the new totals,
    the cotangents of elements. carried, summed, taken: the numbers of the states, constants and sequences these belong
    to."""

    after: Mapping[int, Node]
    made: Mapping[int, Node]
    totals: Sequence[Node]
    carried: Sequence[int]
    summed: Sequence[int]
    taken: Sequence[int]
    results: Sequence[Node]

    @property
    def variables(self) -> list[Node]:
        return [*self.after.values(), *self.made.values(), *self.totals]


def scan_vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    """The cotangents of a scan's operands at the positions `wanted`. Raises GradientError if they need kept values of a
    loop without a bound on its trip count."""
    since = next_serial()
    loop = loop_of(node.args, node.attrs)
    first = len(node.args) - len(loop.operands)
    asked = {param for place, param in enumerate(loop.body.params, first) if place in wanted}
    step = step_of(loop, [param for param in loop.fixed if param in asked])
    states = len(step.states)
    rows = {n: row for n in range(len(loop.outputs)) if (row := cotangents.get(states + n)) is not None}
    back = _step_back(step, asked, rows)
    kept = _stored_values(step, back.results, back.variables)
    if kept and constant_value(loop.count) == UNKNOWN:
        if DIRECTION.is_transposed:
            return _transposed(node, cotangents, wanted)
        raise GradientError(f"{describe(node)}: its derivative needs what each step has left, {KNOWN_LATE}")
    backward = _loop_back(node, step, back, cotangents, rows, kept, since)
    result: list[Node | None] = [None] * len(node.args)
    places = [
        *(first + len(step.elements) + n for n in back.carried),
        *(first + len(step.varying) + n for n in back.summed),
        *(first + n for n in back.taken),
    ]
    for number, place in enumerate(places):
        cotangent = item(backward, number)
        result[place] = cotangent if place >= first + len(step.elements) else _padded(cotangent, node.args[place].type)
    return result


def _step_back(step: Unrolled, asked: Collection[Node], rows: Mapping[int, Node]) -> BackwardStep:
    """The derivative of a step by its float states and the parameters in `asked`. rows: the cotangents of outputs."""
    loop = step.loop
    carried = [n for n, state in enumerate(loop.states) if is_float(state.type.dtype)]
    taken = [n for n, param in enumerate(loop.elements) if param in asked]
    summed = [n for n, param in enumerate(loop.fixed) if param in asked]
    after = {n: variable(step.states[n].type.dtype, step.states[n].type.shape) for n in carried}
    row_cotangents = {n: variable(row.type.dtype, row.type.shape[1:]) for n, row in rows.items()}
    ends = [(step.results[n], cotangent) for n, cotangent in after.items()]
    ends += [(step.results[len(step.states) + n], cotangent) for n, cotangent in row_cotangents.items()]
    seeds: dict[Node, Node] = {}
    for end, cotangent in ends:
        seeds[end] = make(OPS["add"], (seeds[end], cotangent)) if end in seeds else cotangent
    targets = [step.states[n] for n in carried], [step.fixed[n] for n in summed], [step.elements[n] for n in taken]
    every = [target for group in targets for target in group]
    pairs = zip(pulled_back(seeds, every), every, strict=True)
    gradients = iter([_with_invariant_sizes(each, target.type.shape, step.varying) for each, target in pairs])
    of_states, of_fixed, of_elements = ([next(gradients) for _ in group] for group in targets)
    totals = [variable(step.fixed[n].type.dtype, step.fixed[n].type.shape) for n in summed]
    sums = [make(OPS["add"], (total, part)) for total, part in zip(totals, of_fixed, strict=True)]
    return BackwardStep(after, row_cotangents, totals, carried, summed, taken, (*of_states, *sums, *of_elements))


def _loop_back(
    node: Node,
    step: Unrolled,
    back: BackwardStep,
    cotangents: Mapping[int, Node],
    rows: Mapping[int, Node],
    kept: Sequence[Node],
    since: int,
) -> Node:
    """The backward scan. kept: the values of the forward scan that it reads."""
    loop = step.loop
    forward, stacks = _with_stored_outputs(node, step, kept)
    inputs = {value: variable(value.type.dtype, value.type.shape, value.name) for value in kept}
    results = substitute(back.results, {**inputs, **step.operands})
    used = node_set(results)
    sequences = [
        *zip(inputs.values(), stacks, strict=True),
        *((e, s) for e, s in zip(step.elements, loop.sequences, strict=True) if e in used),
        *((back.made[n], rows[n]) for n in back.made),
    ]
    begin = [cotangents[n] if n in cotangents else _zeros_like(loop.initial[n]) for n in back.carried]
    begin += [_zeros_like(loop.constants[n]) for n in back.summed]
    elements = [element for element, _ in sequences]
    body, captured = close([*elements, *back.after.values(), *back.totals], results, since)
    return scan_node(
        sizes.as_size(loop.count),
        body,
        [sequence for _, sequence in sequences],
        begin,
        captured,
        reverse=not loop.repeat.reverse,
        limit=_steps_taken(loop, forward),
        recomputed=loop.recomputed,
    )


def _zeros_like(node: Node) -> Node:
    return zeros(node.type.dtype, node.type.shape)


def _steps_taken(loop: Loop, forward: Node) -> Node | None:
    """The trip count of the forward scan, if it may be less than `count`; else None."""
    if loop.repeat.until:
        return item(forward, len(forward.type.parts) - 1)  # type: ignore[attr-defined]
    return loop.limit


def _padded(rows: Node, type: Type) -> Node:
    """The cotangent of a sequence: its rows, followed by zeros for the elements that no step has read."""
    if sizes.equal(rows.type.shape[0], type.shape[0]):
        return rows
    starts: list[Size] = [0] * len(type.shape)
    return set_subtensor(zeros(type.dtype, type.shape), rows, starts, [1] * len(starts))


def _stored_values(step: Unrolled, results: Sequence[Node], cotangents: Collection[Node]) -> list[Node]:
    """The values of the forward scan that the backward scan reads: states, and what is expensive to recompute."""
    order = nodes_of(results)
    varying, backward = dependents(order, step.varying), dependents(order, cotangents)
    read = [arg for node in order if node in backward for arg in node.args if arg not in backward]
    read += [result for result in results if result not in backward]
    changing = {*step.varying}  # sizes of types need not be nodes of the graph, so `varying` may lack them

    def is_kept(node: Node) -> bool:
        if node in step.states:
            return True
        may_be = node.args and not node.is_tuple and not (node.op is ITEM and is_recomputed(node.args[0]))
        return bool(may_be) and changing.isdisjoint(node_set(type_sizes(node))) and is_stored(node)

    needed = reachable(read, lambda node: node.args if node in varying and not is_kept(node) else ())
    return sorted((node for node in needed if node in varying and is_kept(node)), key=lambda node: node.serial)


def is_stored(node: Node) -> bool:
    """True if the value of a node is stored instead of recomputed: its op is expensive, or is neither elementwise nor a
    view. A concatenation is recomputed, since its parts are available."""
    if node.op.cost > KEPT:
        return True
    if node.op.name == "concatenate":
        return False
    return node.op not in LEAVES and not isinstance(node.op.lower(node), Scalar | View)


def _with_stored_outputs(node: Node, step: Unrolled, kept: Sequence[Node]) -> tuple[Node, list[Node]]:
    """The forward scan with the kept values as additional outputs, and these outputs, stacked."""
    loop = step.loop
    if not kept:
        return node, []
    inside: dict[Node, Node] = {}
    for operand, own in zip((*step.varying, *step.fixed), loop.body.params, strict=True):
        inside.setdefault(operand, own)
    added = _outside_sizes(step, kept, inside)
    stored = substitute(kept, {**inside, **added})
    results, end = loop.body.results, len(loop.body.results) - loop.repeat.until
    body = make_body((*loop.body.params, *added.values()), (*results[:end], *stored, *results[end:]))
    wider = make_scan(replace(with_body(loop, body), constants=(*loop.constants, *added)))
    return wider, [item(wider, end + place) for place in range(len(stored))]


def _with_invariant_sizes(node: Node, shape: Iterable[Size], varying: Iterable[Node]) -> Node:
    """A value under loop-invariant sizes. Its own type may name an equal size that varies from step to step."""
    return node if node_set(type_sizes(node)).isdisjoint(varying) else resized(node, list(shape))


def _outside_sizes(step: Unrolled, kept: Sequence[Node], inside: Mapping[Node, Node]) -> dict[Node, Node]:
    """Nodes outside the scan that kept values use besides its operands, mapped to new parameters. They arise where a
    size was computed inside a branch of the step."""
    needed = needed_of(inside.keys(), kept)
    params = {node: node for node in needed if node not in inside}
    known = dict(inside)
    first = len(step.loop.body.params)
    sized = dict.fromkeys(size for node in params for size in type_sizes(node) if size not in inside)
    for number, node in enumerate(sorted({**params, **sized}, key=lambda node: node.ndim), first):
        shape = tuple(known[size] if isinstance(size, Node) else size for size in node.type.shape)
        params[node] = known[node] = param(
            number, Type(node.type.dtype, shape), node.name, node in sized or node.op is SIZE
        )
    return {node: params[node] for node in sorted(params, key=lambda node: params[node].attrs["index"])}


# --- loops without a bound on their trip count, in forward products ---------------------------------------------------
# A forward product is the derivative of the transposed product by its cotangents (autodiff.jvp). The transposed product
# of such a loop would go back over steps that are not kept. Nobody computes it: it is a node that only its derivative
# is asked of, which is a loop that carries tangents beside its states.
#
#     while x * x > 2: x = x - f(x) / 2        x and the tangent t: (x, t) -> (x - f(x) / 2, t - f'(x) t / 2)


def _transposed(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    """The cotangents of operands at the positions `wanted`, as results of one node."""
    places = tuple(place for place in sorted(wanted) if is_float(node.args[place].type.dtype))
    attrs = {**node.attrs, "given": tuple(cotangents), "wanted": places}
    transposed = make(TRANSPOSED, (*node.args, *cotangents.values()), attrs)
    result: list[Node | None] = [None] * len(node.args)
    for number, place in enumerate(places):
        result[place] = item(transposed, number)
    return result


def _tangents(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    """The tangents of a loop's last states, for the operands of `TRANSPOSED` that are their cotangents; `cotangents`
    are tangents of the loop's operands."""
    since = next_serial()
    chosen = node.attrs["given"]
    first = len(node.args) - len(chosen)
    loop = loop_of(node.args[:first], node.attrs)
    by_place = {node.attrs["wanted"][number]: tangent for number, tangent in cotangents.items()}
    begin = first - len(loop.operands)
    of_states = {n: by_place.get(begin + n) for n, state in enumerate(loop.states) if is_float(state.type.dtype)}
    places = {begin + len(loop.states) + n: n for n in range(len(loop.fixed))}
    of_fixed = {n: by_place[place] for place, n in places.items() if place in by_place}
    step = step_of(loop, [loop.fixed[n] for n in of_fixed])
    inputs = [*(step.states[n] for n in of_states), *(step.fixed[n] for n in of_fixed)]
    along = [variable(each.type.dtype, each.type.shape) for each in inputs]
    count = len(step.states)
    products = jvp([step.results[n] for n in of_states], inputs, along, "ignore")
    products = [
        _with_invariant_sizes(each, step.states[n].type.shape, step.varying)
        for each, n in zip(products, of_states, strict=True)
    ]
    replaced = {**step.operands, **dict(zip(along[len(of_states) :], of_fixed.values(), strict=True))}
    results = substitute((*step.results[:count], *products, *step.results[count:]), replaced)
    body, captured = close([*step.states, *along[: len(of_states)]], results, since)
    starts = [
        _zeros_like(loop.initial[n]) if tangent is None else resized(tangent, list(loop.initial[n].type.shape))
        for n, tangent in of_states.items()
    ]
    repeat = loop.repeat
    both = scan_node(
        sizes.as_size(loop.count),
        body,
        [],
        [*loop.initial, *starts],
        captured,
        reverse=repeat.reverse,
        until=repeat.until,
        limit=loop.limit,
    )
    numbers = {n: count + number for number, n in enumerate(of_states)}
    ends = [item(both, numbers[n]) if first + number in wanted else None for number, n in enumerate(chosen)]
    return [None] * first + ends


def _not_computed(node: Node, *_: object) -> NoReturn:
    raise GradientError(
        f"{describe(node)}: the derivative needs what each step of a loop within a loop has left, {KNOWN_LATE}"
    )


TRANSPOSED = define_op(
    "scan_transposed",
    infer=lambda args, attrs: tuple_of([args[place].type for place in attrs["wanted"]]),
    eval=_not_computed,
    lower=_not_computed,
    cost=1000.0,
    doc="The transposed product of a loop without a bound on its trip count: only its derivative is computed.",
    vjps=_tangents,
)

FUNCTIONS["scan_vjps"] = scan_vjps
