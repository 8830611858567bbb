"""Values whose derivative is what the user says; shifts and masks that derivatives need not go through.

    grad_clip(x, -1, 1)     x, with a cotangent that is clipped

In: values, and what is to be passed on in place of their cotangents. Out: nodes of the same values. `zero_grad` and its
kin are ops that rewriting takes away; `overridden` stands before values that were computed in any way, and is taken
away when a function is made (`without_overrides`), so that neither the compiler nor the cache knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import chain
from operator import or_
from typing import Any, Literal, TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.errors import GradientError
from graphc.ir.body import ITEM, bodies_of, item, items_of, make_body
from graphc.ir.facts import scalar_number
from graphc.ir.lowering import Scalar, View
from graphc.ir.node import (
    OPS,
    Attributes,
    Body,
    Lowering,
    Node,
    Op,
    Type,
    define_op,
    describe,
    make,
    next_serial,
    remade,
    tuple_of,
)
from graphc.ir.types import samples
from graphc.ir.walk import computed, nodes_of, rebuilt, renamed, substitute
from graphc.ops.custom import Absent, undefined
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.reduce import reduced_axes
from graphc.ops.scan import SCAN
from graphc.ops.shape import broadcast_to, drop, zeros
from graphc.startup.record import record, replace

# Identities ----------------------------------------------------------------------------------------------------------


def _identity(
    name: str, vjp: Callable[[Node, Node], Node | Absent | None], build: Callable[[Any], Node], doc: str
) -> Op:
    return define_op(
        name,
        infer=lambda args, attrs: args[0].type,
        eval=lambda node, value: value,
        lower=lambda node: Scalar("_0"),
        vjp=lambda node, cotangent: [vjp(node, cotangent)],  # type: ignore[list-item]  # autodiff knows of Absent
        cost=0.0,
        samples=samples(others=[(name, build, (2, 3))]),
        doc=doc,
    )


def zero_grad(x: Any) -> Node:
    """`x`, whose derivative is zero: what it is made of counts as connected, with gradient zero (Theano's word for it;
    with `disconnected_grad` it counts as disconnected, and is never looked into).

        >>> x = T.dscalar("x")
        >>> T.grad(zero_grad(x) ** 2, x).eval({x: 3.0})
        array(0.)
    """
    return make(ZERO_GRAD, (as_node(x),))


def grad_scale(x: Any, multiplier: Any) -> Node:
    """`x`, whose derivative is multiplied by a number, or a tensor, on its way back.

    >>> x = T.dscalar("x")
    >>> T.grad(grad_scale(T.sin(x), -1.0), x).eval({x: 0.0})
    array(-1.)
    """
    node = as_node(x)
    if isinstance(multiplier, Node):

        def rule(inputs: Any, results: Any, cotangents: Mapping[int, Node], wanted: Any) -> list[Node]:
            return [_scaled(node, cotangents[0], multiplier)]

        return overridden([node], [node], rule)[0]
    return make(GRAD_SCALE, (node,), {"multiplier": float(multiplier)})


def _scaled(node: Node, cotangent: Node, multiplier: Any) -> Node:
    return cast(elementwise("mul", cotangent, multiplier), node.type.dtype)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Node:
    """`x`, whose derivative is held between two bounds, element by element, on its way back.

    Raises GradientError where the bounds are in the wrong order.

        >>> x = T.dscalar("x")
        >>> T.grad(grad_clip(x, -1, 1) ** 2, x).eval({x: 3.0})
        array(1.)
    """
    if not lower_bound <= upper_bound:
        raise GradientError(f"grad_clip: the lower bound {lower_bound} is above the upper bound {upper_bound}")
    return make(GRAD_CLIP, (as_node(x),), {"lower": float(lower_bound), "upper": float(upper_bound)})


def undefined_grad(x: Any) -> Node:
    """`x`, of which a derivative is an error (NullTypeGradError), or is returned as null (`null_gradients`)."""
    return make(UNDEFINED_GRAD, (as_node(x),))


def kept_connected(x: Node) -> Node:
    """`x`, which counts as connected, though no derivative goes through it."""
    return make(KEPT_CONNECTED, (x,))


ZERO_GRAD = _identity(
    "zero_grad",
    lambda node, cotangent: zeros(cotangent.type.dtype, cotangent.type.shape),
    zero_grad,
    "x, whose derivative is zero.",
)
GRAD_SCALE = _identity(
    "grad_scale",
    lambda node, cotangent: _scaled(node, cotangent, node.attrs["multiplier"]),
    lambda x: grad_scale(x, -0.5),
    "x, whose derivative is multiplied by a number.",
)
GRAD_CLIP = _identity(
    "grad_clip",
    lambda node, cotangent: elementwise(
        "minimum", elementwise("maximum", cotangent, node.attrs["lower"]), node.attrs["upper"]
    ),
    lambda x: grad_clip(x, -0.5, 0.25),
    "x, whose derivative is held between bounds.",
)
UNDEFINED_GRAD = _identity(
    "undefined_grad",
    lambda node, cotangent: undefined("undefined_grad", 0, node.args[0]),
    undefined_grad,
    "x, whose derivative is undefined.",
)
KEPT_CONNECTED = _identity(
    "kept_connected",
    lambda node, cotangent: None,
    kept_connected,
    "x, which counts as connected, though no derivative goes through it.",
)
IDENTITIES = ("zero_grad", "grad_scale", "grad_clip", "undefined_grad", "kept_connected", "checkpoint_name")
"""Ops whose value is that of their argument (`named` is in identity.py)."""


# Values of any ops ----------------------------------------------------------------------------------------------------

Rule = Callable[[Sequence[Node], Sequence[Node], Mapping[int, Node], Collection[int]], Sequence[Any]]
"""(inputs, results, cotangents of some results, positions of wanted inputs) -> a cotangent, None or `Absent` for each
input."""
NAME = "overridden"


def overriding(count: int, rule: Rule, user: Any = None) -> Op:
    """The op that stands before `count` values, whose derivatives a rule gives; they may be those of an op of the
    user's."""

    def vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
        inputs = node.args[count:]
        parts = rule(inputs, items_of(node), cotangents, [place - count for place in wanted if place >= count])
        if len(parts) != len(inputs):
            raise GradientError(f"a derivative gives {len(parts)} cotangents for {len(inputs)} inputs")
        return [*(None for _ in range(count)), *parts]

    def evaluate(node: Node, *arrays: Any) -> Any:
        return arrays[:count]

    evaluate.made = overriding, (count, rule, user)  # type: ignore[attr-defined]  # how a pickle, and a batch, makes it anew
    if user is not None:
        evaluate.user, evaluate.hidden = user, count  # type: ignore[attr-defined]  # as an owner shows it (theano/owners.py)

    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        return tuple_of([value.type for value in args[:count]])

    return Op(NAME, infer, evaluate, _no_lowering, vjps=vjps, cost=0.0)


def overridden(
    values: Sequence[Node],
    inputs: Sequence[Node],
    rule: Rule,
    connected: Sequence[Sequence[bool]] | None = None,
    user: Any = None,
) -> list[Node]:
    """The values, whose derivatives by `inputs`, and by nothing else, are those that `rule` gives.

    connected: for each input, for each value, whether the value depends on it; all do where None. user: the op of the
    user's that these are the values of.
    """
    count = len(values)
    op = overriding(count, rule, user)
    attrs: dict[str, Any] = {"values": count}
    if connected is not None:
        attrs["connected"] = tuple(tuple(map(bool, row)) for row in connected)
    whole = make(op, [*values, *inputs], attrs)
    results = [item(whole, place) for place in range(count)]
    for result, value in zip(results, values, strict=True):
        result.name = value.name
    return results


def _no_lowering(node: Node) -> Lowering:
    raise GradientError(f"{describe(node)} has no loops")


def is_overriding(node: Node) -> bool:
    """Tell whether a node stands before values whose derivative the user has given."""
    return node.is_tuple and node.op.name == NAME


def rule_of_override(node: Node) -> Rule:
    """Return the rule that gives the derivatives of values for which `is_overriding`."""
    _, (_, rule, _) = node.op.eval.made  # type: ignore[attr-defined]
    checked_rule: Rule = rule
    return checked_rule


def routes(node: Node) -> Sequence[Node]:
    """The arguments through which a node depends on others, as far as derivatives go: those of an op with several
    results for each of these."""
    if node.op is not ITEM:
        return node.args[node.attrs["values"] :] if is_overriding(node) else node.args
    whole, place = node.args[0], node.attrs["index"]
    if whole.op is SCAN:
        first = len(whole.args) - len(whole.attrs["body"].params)
        ways = _ways(whole.attrs["body"], whole.attrs["sequences"], whole.attrs["carries"])[place]
        return [arg for n, arg in enumerate(whole.args, -first) if n < 0 or ways >> n & 1]
    if "connected" in whole.attrs and is_overriding(whole):
        return [arg for arg, row in zip(routes(whole), whole.attrs["connected"], strict=True) if row[place]]
    return routes(whole)


@lru_cache(maxsize=256)
def _ways(body: Body, sequences: int, carries: int) -> Sequence[int]:
    """The parameters that each result of a loop with this body depends on when all steps are taken, as bits."""
    reach = {param: 1 << n for n, param in enumerate(body.params)}
    for node in nodes_of(body.results):
        if node not in reach:
            args = () if node.op is OPS["stop_gradient"] else routes(node)
            reach[node] = reduce(or_, (reach[arg] for arg in args), 0)
    states = [(1 << sequences + n, reach[body.results[n]]) for n in range(carries)]

    def of_all_steps(ways: int) -> int:
        while (wider := reduce(or_, (after for state, after in states if ways & state), ways)) != ways:
            ways = wider
        return ways

    begin = [state for state, _ in states]  # what the last states are after no steps
    begin += [0] * (len(body.results) - carries)
    return [of_all_steps(own | reach[result]) for own, result in zip(begin, body.results, strict=True)]


def without_overrides(roots: Sequence[Node]) -> list[Node]:
    """The roots over the values themselves, in bodies too."""
    done: dict[Node, Node] = {}
    for node in nodes_of(roots):
        if node.op is ITEM and is_overriding(node.args[0]):
            value = node.args[0].args[node.attrs["index"]]
            done[node] = rebuilt(done, value)
        elif bodies := bodies_of(node):
            inner = {name: make_body(b.params, without_overrides(b.results), b.checks) for name, b in bodies.items()}
            new = rebuilt(done, node)
            if any(inner[name] is not body for name, body in bodies.items()):
                done[node] = renamed(make(new.op, new.args, {**new.attrs, **inner}), node)
    return [rebuilt(done, root) for root in roots]


# --- shifts -----------------------------------------------------------------------------------------------------------
# In: nodes to be differentiated. Out: equal nodes, in which shifts are held: what is subtracted before exponentials,
# and cancels. `m + log(exp(a - m) + exp(b - m))` with m = maximum(a, b), written out so that nothing overflows, does
# not depend on m, nor does `exp(x - m) / sum(exp(x - m))`. Their derivatives by m are differences of equal numbers, for
# which the exponentials are multiplied once more, and the maximum differentiated, ties and all. A value contains a
# shift with a multiple of it added, or multiplied by a power of its exponential. Where that comes to nothing the shift
# is held, in this value alone: elsewhere m is differentiated as ever.


Axes: TypeAlias = "tuple[int | None, ...]"

EXTREMES = ("maximum", "max")
"""Ops whose results are shifts."""


@record()
class Share:
    """The way a value contains a shift: `times` it is added, or its exponential to that power is a factor. axes: for
    each axis of the value that of the shift which is read along it."""

    shift: Node
    axes: Axes
    kind: Literal["added", "factor"]
    times: int = 1


def hold_shifts(roots: Sequence[Node], others: Sequence[Node]) -> dict[Node, Node]:
    """Return values equal to `roots` and to `others`, on which the roots depend, in which shifts that cancel are held;
    empty if none cancels. All of these nodes stay in the graph, so none is part of what is rebuilt."""
    order = nodes_of(roots)
    names = {node.op.name for node in order}
    if "exp" not in names or names.isdisjoint(EXTREMES):
        return {}
    kept = {*roots, *others}
    shares: dict[Node, Share] = {}
    done: dict[Node, Node] = {}
    for node in order:
        share = _share(node, shares) if is_float(node.type.dtype) and not node.is_tuple else None
        if share is not None and not share.times:
            done[node] = _with_held(node, share.shift, shares, done)
        elif share is not None and node not in kept:
            shares[node] = share
    return {node: rebuilt(done, node) for node in kept} if done else {}


def release(nodes: Sequence[Node]) -> list[Node]:
    """Replace held shifts by the shifts themselves in all nodes over them."""
    return substitute(nodes, {node: node.args[0] for node in nodes_of(nodes) if node.op is KEPT_CONNECTED})


def _with_held(root: Node, shift: Node, shares: Mapping[Node, Share], done: dict[Node, Node]) -> Node:
    """The value with its shift held, wherever it cancels, and what is beside that as `done` has it."""

    def contains(node: Node) -> bool:
        return node in shares and shares[node].shift is shift

    def over_held(node: Node) -> Node:
        args = tuple(held[arg] if contains(arg) else rebuilt(done, arg) for arg in node.args)
        return renamed(remade(node, args), node)

    held = {shift: kept_connected(shift)}
    return computed(held, root, lambda node: filter(contains, node.args), over_held)


def _share(node: Node, shares: Mapping[Node, Share]) -> Share | None:
    """The shift that a node contains, from those of its arguments; 0 times where it cancels. None: not at all, or in a
    way that says nothing."""
    name = node.op.name
    if name in EXTREMES:
        sizes = node.type.shape
        return Share(node, tuple(None if size == 1 else axis for axis, size in enumerate(sizes)), "added")
    parts = [shares.get(arg) for arg in node.args]
    match name, parts:
        case "add" | "sub", [Share(kind="added") | None, Share(kind="added") | None]:
            return _joined(parts, -1 if name == "sub" else 1)
        case "mul" | "true_div", [Share(kind="factor") | None, Share(kind="factor") | None]:
            return _joined(parts, -1 if name == "true_div" else 1)
        case "add" | "sub", [Share(kind="factor") as left, right] if left == right:
            return left
        case "exp", [Share(kind="added") as share]:
            return replace(share, kind="factor")
        case "log", [Share(kind="factor") as share]:
            return replace(share, kind="added")
        case "neg", [Share(kind="added") as share]:
            return replace(share, times=-share.times)
        case "neg", [Share(kind="factor") as share]:
            return share
        case "sum", [Share(kind="factor") as share]:
            reduced = node.attrs["axes"]
            axes = tuple(axis for place, axis in enumerate(share.axes) if place not in reduced)
            alike = all(share.axes[place] is None for place in reduced)
            return replace(share, axes=axes) if alike else None
        case "dimshuffle", [Share() as share]:
            order = node.attrs["order"]
            return replace(share, axes=tuple(None if place == "x" else share.axes[place] for place in order))
        case "broadcast_to", [Share() as share, *_] if node.ndim == len(share.axes):
            return share
    return None


def _joined(parts: Sequence[Share | None], sign: int) -> Share | None:
    """Return the share of a sum or a product, or with `sign` -1 a difference or quotient, of two values. Where they
    contain different shifts it is the second's."""
    left, right = parts
    if right is None:
        return left
    if left is None or left.shift is not right.shift:
        return replace(right, times=sign * right.times)
    return replace(left, times=left.times + sign * right.times) if left.axes == right.axes else None


# --- masks ------------------------------------------------------------------------------------------------------------
# Cotangents that are zero where a condition says so, whatever they are multiplied by.
#
# `where(c, sqrt(x), 0)` has the cotangent `where(c, g, 0)` of `sqrt(x)`, whose zeros times an infinite derivative would
# be NaN. So a derivative multiplies what the mask lets through, and the mask is put around the product:
# `where(c, g * d, 0)`, which is the same wherever `d` is finite.
#
# In: cotangents. Out: `Masks`, which tells under which conditions one is not zero, and what it is there.


Mask: TypeAlias = tuple[Node, bool]
"""A condition of the sizes of a value, and what it is where that value counts; elsewhere there is zero."""

Parts: TypeAlias = tuple[tuple[Mask, ...], Node]
"""Masks, all of which must let an element through, the outermost first, and the value that they are put around."""


class Masks:
    """The masks of the nodes of one derivative. Nodes that were there before it are values that the program may need
    anyway: they are taken as they are, so that nothing is computed twice."""

    __slots__ = ("known", "since")

    def __init__(self) -> None:
        self.since = next_serial()
        self.known: dict[Node, Parts] = {}

    def outward(self, derivative: Callable[[Node], Sequence[Node | None]], cotangent: Node) -> Sequence[Node | None]:
        """The derivative of an elementwise op applied to a cotangent, whose masks are put around it."""
        masks, value = self.of(cotangent)
        if not masks:
            return derivative(cotangent)
        if value is cotangent:
            return [masked(masks, part) if isinstance(part, Node) else part for part in derivative(value)]
        same = {value: cotangent, make(OPS["neg"], (value,)): make(OPS["neg"], (cotangent,))}
        parts = derivative(value)
        return [
            part if not isinstance(part, Node) else same[part] if part in same else masked(masks, part)
            for part in parts
        ]

    def of(self, node: Node) -> Parts:
        """The masks of a node, and what they are put around."""
        known, stack = self.known, [node]
        while stack:
            waiting = [arg for arg in _factors(stack[-1]) if arg not in known]
            if waiting:
                stack += waiting
            else:
                top = stack.pop()
                masks, value = _split_masks(top, known)
                known[top] = masks, value if masks and top.serial > self.since else top
        return known[node]


def masked(masks: Sequence[Mask], value: Node) -> Node:
    """The value where all masks let it through, zero elsewhere."""
    for condition, wanted in reversed(masks):
        value = elementwise("where", condition, *((value, 0) if wanted else (0, value)))
    return value


def _factors(node: Node) -> Sequence[Node]:
    """The arguments whose zeros are zeros of the node, both where it is a sum."""
    name = node.op.name
    if not is_float(node.type.dtype) or OPS.get(name) is not node.op:
        return ()
    if name == "where":
        several = [arg for arg in node.args[1:] if scalar_number(arg) != 0]
        return several if len(several) == 1 else ()
    if name in ("mul", "add"):
        return node.args
    return node.args[:1] if name in ("strong_mul", "true_div", "neg", "cast", "sum") or _is_view(node) else ()


def _is_view(node: Node) -> bool:
    """Tell whether each element of a node is one of its first argument, whatever these are."""
    others = any(is_float(arg.type.dtype) for arg in node.args[1:])
    return bool(node.args) and node.op.cost == 0.0 and not others and isinstance(node.op.lower(node), View)


def _split_masks(node: Node, known: dict[Node, Parts]) -> Parts:
    """Split a node into its masks and the value that they mask, given the same of its arguments."""
    name = node.op.name
    parts = [known[arg] for arg in _factors(node)]
    if name == "where" and parts:
        ((masks, value),) = parts
        return (*dict.fromkeys([(node.args[0], scalar_number(node.args[1]) != 0), *masks]),), value
    if not any(masks for masks, _ in parts):
        return (), node
    if name == "mul":
        return (*dict.fromkeys(chain(*(masks for masks, _ in parts))),), make(node.op, [value for _, value in parts])
    if name == "add":
        return _of_sum(node, *parts)
    ((masks, value),) = parts
    if name == "sum":
        along = {mask: _along(node, mask[0]) for mask in masks}
        rest = masked([mask for mask in masks if along[mask] is None], value)
        masks = tuple((condition, wanted) for (_, wanted), condition in along.items() if condition is not None)
        return masks, make(node.op, (rest,), node.attrs)
    if _is_view(node):
        masks = tuple((make(node.op, (condition, *node.args[1:]), node.attrs), wanted) for condition, wanted in masks)
    return masks, renamed(make(node.op, (value, *node.args[1:]), node.attrs), node)


def _of_sum(node: Node, left: Parts, right: Parts) -> Parts:
    """A sum is zero where both terms are: its masks are those of both, and one that lets through what either does."""
    common = tuple(mask for mask in left[0] if mask in right[0])
    rests = [tuple(mask for mask in masks if mask not in common) for masks, _ in (left, right)]
    value = make(node.op, [masked(rest, value) for rest, (_, value) in zip(rests, (left, right), strict=True)])
    if not all(rests) or any((condition, not wanted) in rests[1] for condition, wanted in rests[0]):
        return common, value
    return (*common, (elementwise("logical_or", *map(_all_of, rests)), True)), value


def _all_of(masks: Sequence[Mask]) -> Node:
    """The condition that all masks let an element through."""
    conditions = [condition if wanted else elementwise("logical_not", condition) for condition, wanted in masks]
    return reduce(partial(elementwise, "logical_and"), conditions)


def _along(node: Node, condition: Node) -> Node | None:
    """A condition of the sizes of a sum's argument as one of the sum's, where it is the same along the summed axes."""
    axes = reduced_axes(node)
    source = condition.args[0] if condition.op.name == "broadcast_to" else condition
    if not all(source.broadcastable[axis] for axis in axes):
        return None
    return broadcast_to(drop(source, axes), node.type.shape)
