"""Branches: Theano's `ifelse`, and the building blocks of JAX's `cond` and `switch` (functional.py).

In: a condition, and the values of each branch. Out: the values of the branch that is taken, as results of one `cond`
node (`ops/branch.py`). Nodes that only one branch uses are evaluated lazily: `ops/branch.py` moves them into its body
when the graph is compiled or differentiated.

The derivative of a branch is a branch on the same condition, between the derivatives of the two bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphc.arrays.dtypes import fits, is_float, promote
from graphc.autodiff import pulled_back
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.body import item, opened
from graphc.ir.node import FUNCTIONS, OPS, Complex, Node, constant_value, describe, make, variable
from graphc.ir.walk import type_sizes
from graphc.ops.branch import cond_node, resized
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.questions import Number
from graphc.ops.shape import broadcast_to
from graphc.trees import as_list, has_kind, leaves, like, structure


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """`then_branch` if `condition` holds, else `else_branch`; only the branch that is taken is computed.

    condition: a scalar; any number except zero is true. The branches are tensors or numbers, or lists or tuples of
    equal length; the results have the form of `then_branch`. Corresponding values must have the same dtype and rank;
    their sizes may differ. A Python number takes the dtype of the other branch if that can hold it. Compare `where`
    (and `switch`), which selects element by element and computes both.

    Raises GraphTypeError if the branches do not match; the message names both types.

        >>> a, x, y = T.dscalar("a"), T.dvector("x"), T.dvector("y")
        >>> ifelse(T.lt(a, 0), T.mean(x), T.mean(y)).eval({a: 1.0, x: [1, 2], y: [3, 5]})
        array(4.)
    """
    several = isinstance(then_branch, list | tuple), isinstance(else_branch, list | tuple)
    then, orelse = as_list(then_branch), as_list(else_branch)
    if several[0] != several[1] or len(then) != len(orelse):
        raise GraphValueError(
            f"ifelse: the branches must have as many results; one has {_describe_results(then_branch)}, the other "
            f"{_describe_results(else_branch)}"
        )
    if has_kind(Complex, structure((then, orelse))):
        kinds = [promote(as_node(a).type.dtype, as_node(b).type.dtype) for a, b in zip(then, orelse, strict=True)]
        then, orelse = ([as_node(a, dtype) for a, dtype in zip(side, kinds, strict=True)] for side in (then, orelse))
        results = like(then, choose("ifelse", condition, leaves(then), leaves(orelse)))
    else:
        results = choose("ifelse", condition, then, orelse)
    if len(results) == 1 and name is not None:
        as_node(results[0], name=name)  # a known condition gives the branch itself, which keeps its name
    return type(then_branch)(results) if several[0] else results[0]


def choose_among(by: str, place: Node, results: Sequence[Sequence[Any]], first: int = 0) -> list[Any]:
    """The results numbered `place`, which is clamped to the valid range. Results are numbered from `first`. A binary
    search: a tree of `cond` nodes."""
    if len(results) == 1:
        return [as_node(result) for result in results[0]]
    half = len(results) // 2
    below, above = choose_among(by, place, results[:half], first), choose_among(by, place, results[half:], first + half)
    return choose(by, elementwise("less", place, first + half), below, above)


FUNCTIONS["choose_among"] = choose_among


# --- the two branches -------------------------------------------------------------------------------------------------


def _describe_results(branch: Any) -> str:
    return f"a {type(branch).__name__} of {len(branch)}" if isinstance(branch, list | tuple) else "one value"


def _matched(by: str, chosen: Any, other: Any) -> tuple[Node, Node]:
    """The two values of a result, numbers cast to the dtype of the other. Raises GraphTypeError if types differ."""
    then, orelse = as_node(chosen), as_node(other)
    if _adapts(chosen, orelse.type.dtype):
        then = cast(then, orelse.type.dtype)
    elif _adapts(other, then.type.dtype):
        orelse = cast(orelse, then.type.dtype)
    if (then.type.dtype, then.ndim) != (orelse.type.dtype, orelse.ndim):
        how = f"; cast one, as with .astype('{then.type.dtype}')" if then.ndim == orelse.ndim else ""
        raise GraphTypeError(
            f"{by}: the branches must have the same dtype and rank; one is {then.type}, {describe(then)}, and the "
            f"other {orelse.type}, {describe(orelse)}{how}"
        )
    return then, orelse


def _adapts(value: Any, dtype: str) -> bool:
    """True if `value` is a Python number that `dtype` can hold."""
    if type(value) is Number:
        return {"bool": True, "int64": dtype == "int64" or is_float(dtype)}.get(value.type.dtype, is_float(dtype))
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return dtype != "bool" and fits(value, dtype)
    return isinstance(value, float) and is_float(dtype)


def choose(by: str, condition: Any, then: Sequence[Any], orelse: Sequence[Any]) -> list[Node]:
    """The values of one branch or the other. by: the name of the calling function, for messages."""
    pairs = [_matched(by, chosen, other) for chosen, other in zip(then, orelse, strict=True)]
    holds = as_node(condition)
    if holds.ndim:
        raise RankError(f"{by}: the condition must be a scalar, not {describe(holds)} of type {holds.type}")
    holds = cast(holds, "bool")
    known = constant_value(holds)
    if known is not None:
        return [chosen if known else other for chosen, other in pairs]
    if not pairs:
        return []
    results = [chosen for chosen, _ in pairs], [other for _, other in pairs]
    node = cond_node(holds, *results, {*results[0], *results[1]})
    return [item(node, place) for place in range(len(pairs))]


# --- the derivative ---------------------------------------------------------------------------------------------------


def cond_vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    """The cotangents of a cond's operands at the positions `wanted`."""
    asked = [place for place in wanted if place]
    inputs = [*node.args]
    for place in asked:
        inputs[place] = variable(node.args[place].type.dtype, node.args[place].type.shape, node.args[place].name)
    targets = [inputs[place] for place in asked]
    then, orelse = (
        _pulled_back(opened(node.attrs[name], inputs[1:]), cotangents, targets) for name in ("then", "orelse")
    )
    at_hand = {*inputs, *cotangents.values(), *(size for arg in inputs for size in type_sizes(arg))}
    derived = cond_node(node.args[0], then, orelse, at_hand)
    operands = dict(zip(targets, (node.args[place] for place in asked), strict=True))
    (derived,) = [make(derived.op, [operands.get(arg, arg) for arg in derived.args], derived.attrs)]
    result: list[Node | None] = [None] * len(node.args)
    for number, place in enumerate(asked):
        result[place] = item(derived, number)
    return result


def _pulled_back(results: Sequence[Node], cotangents: Mapping[int, Node], targets: Sequence[Node]) -> list[Node]:
    """The cotangents of `targets` from those of a body's results."""
    seeds: dict[Node, Node] = {}
    for place, cotangent in cotangents.items():
        end = results[place]
        whole = broadcast_to(cotangent, end.type.shape)
        seeds[end] = make(OPS["add"], (seeds[end], whole)) if end in seeds else whole
    gradients = pulled_back(seeds, targets)
    return [resized(each, target.type.shape) for each, target in zip(gradients, targets, strict=True)]


FUNCTIONS["cond_vjps"] = cond_vjps

__all__ = ["choose", "choose_among", "ifelse"]
