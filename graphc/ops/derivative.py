"""Values whose derivative is what the user says.

In: values, and what is to be passed on in place of their cotangents. Out: nodes of the same values. `zero_grad` and its
kin are ops that rewriting takes away; `overridden` stands before values that were computed in any way, and is taken
away when a function is made (`without_overrides`), so that neither the compiler nor the cache knows of it.
"""

from __future__ import annotations

from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from graphc.errors import GradientError
from graphc.ir.body import ITEM, bodies_of, item, items_of, make_body
from graphc.ir.lowering import Scalar
from graphc.ir.node import (
    OPS,
    Argument,
    Attributes,
    Body,
    Lowering,
    Node,
    Op,
    Sample,
    Samples,
    Type,
    define_op,
    describe,
    make,
    tuple_of,
)
from graphc.ir.walk import nodes_of, rebuilt, renamed
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.missing import Absent, undefined
from graphc.ops.scan import SCAN
from graphc.ops.shape import zeros

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
        samples=Samples(lambda: (Sample(name, build, (Argument((2, 3)),), differentiable=False),)),
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
        return overridden([node], [node], lambda inputs, results, given, wanted: [_scaled(node, given[0], multiplier)])[
            0
        ]
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


def held(x: Node) -> Node:
    """`x`, which counts as connected, though no derivative goes through it."""
    return make(HELD, (x,))


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
HELD = _identity(
    "held",
    lambda node, cotangent: None,
    held,
    "x, which counts as connected, though no derivative goes through it.",
)
IDENTITIES = ("zero_grad", "grad_scale", "grad_clip", "undefined_grad", "held")
"""Ops whose value is that of their argument."""


# Values of any ops ----------------------------------------------------------------------------------------------------

Rule = Callable[[Sequence[Node], Sequence[Node], Mapping[int, Node], Collection[int]], Sequence[Any]]
"""(inputs, results, cotangents of some results, positions of wanted inputs) -> a cotangent, None or `Absent` for each
input."""
NAME = "overridden"


class Direction(local):
    """Whether this thread is making a forward product (autodiff.jvp): then what the user says of those holds."""

    def __init__(self) -> None:
        self.is_forward = False


DIRECTION = Direction()


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

    evaluate.made = overriding, (count, rule, user)  # type: ignore[attr-defined]  # how a pickle makes it anew
    if user is not None:
        evaluate.user, evaluate.hidden = user, count  # type: ignore[attr-defined]  # as an owner shows it (theano/owners.py)
    return Op(NAME, _tuple_of_values(count), evaluate, _no_lowering, vjps=vjps, cost=0.0)


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


def _tuple_of_values(count: int) -> Callable[[Sequence[Node], Attributes], Type]:
    return lambda args, attrs: tuple_of([value.type for value in args[:count]])


def _no_lowering(node: Node) -> Lowering:
    raise GradientError(f"{describe(node)} has no loops")


def is_overriding(node: Node) -> bool:
    """Whether a node stands before values whose derivative the user has given."""
    return node.is_tuple and node.op.name == NAME


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
