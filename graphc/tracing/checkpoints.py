"""`checkpoint`: a function whose derivative computes its values again instead of keeping them.

    def block(w, x): return jnp.tanh(jnp.tanh(x @ w) @ w)

    grad(block)                 the derivative reads both tanh, which are kept until then
    grad(checkpoint(block))     the derivative computes them again from w and x, when their cotangent is known

In: a function of arrays, and a policy: which of its values are kept all the same. Out: a function of the same arguments
and values. The derivative of its values is given by a rule (`ops/derivative.py: overridden`). The rule calls the
function with fresh variables, differentiates what it gives, and puts `again` of the arguments in place of the variables
(`ops/identity.py`), and the values that are kept in place of those that the policy names.

What is not kept of a step of a loop is not kept for any of its steps: there a checkpoint saves a row for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graphc.autodiff import pulled_back
from graphc.errors import GraphTypeError
from graphc.ir.node import LEAVES, Node, variable
from graphc.ir.walk import nodes_since, substitute
from graphc.ops.derivative import overridden
from graphc.ops.identity import again, named
from graphc.tracing.interface import P, R
from graphc.tracing.programs import Given, by_position, is_float_node, rebuilt_over, traced
from graphc.tracing.traced import Jitted, builder_of, transformed
from graphc.trees import like, map_leaves

Policy = Callable[[Node], bool]
"""Tells whether a value is kept. A value is a node: `node.op.name` is the name of its op."""


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Jitted[P, R]:
    """Return `fun` as a function whose derivative computes again what it needs of the values, instead of keeping them.

    fun: a function of arrays, or trees of them. The values, and the derivatives, are those of `fun`. policy: which
    values are kept all the same, one of `graphc.checkpoint_policies`, or a function that is given a node and returns a
    bool; None keeps nothing but the arguments. Static arguments as in `jit`. prevent_cse: for JAX's sake; graphc never
    makes what is computed again one with what was computed before. The result is compiled when it is called with
    arrays, as by `jit`.

    It makes the memory of a derivative smaller and its time longer: use it for the steps of a long loop, or the layers
    of a deep network. Raises GraphTypeError for a policy that is no function.

        >>> block = graphc.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        >>> graphc.grad(block)(0.0)
        np.float64(1.0)
    """
    if policy is not None and not callable(policy):
        raise GraphTypeError(f"checkpoint: policy is a function, one of graphc.checkpoint_policies, not {policy!r}")
    inner, keeps = builder_of(fun), policy or nothing_saveable

    def build(*args: Any, **kwargs: Any) -> Any:
        return _checkpointed(inner, Given(fun, by_position(fun, args, kwargs)), keeps)

    return transformed(fun, build, static_argnums, static_argnames)


def _checkpointed(inner: Callable[..., Any], given: Given, keeps: Policy) -> Any:
    done = traced("checkpoint", inner, given, given.nodes)
    values, count = rebuilt_over(done, given.nodes), len(given.nodes)

    def rule(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node | None]:
        step = traced("checkpoint", inner, given, inputs[:count])
        around = [variable(node.type.dtype, node.type.shape, node.name) for node in inputs[count:]]
        stand_ins = [*step.variables, *around]
        ends = substitute(step.results, dict(zip(done.captured, around, strict=True)))
        targets = [stand_in for place, stand_in in enumerate(stand_ins) if place in wanted and is_float_node(stand_in)]
        found = pulled_back(_seeds(ends, cotangents), targets)
        kept = [node for node in _values_of(ends, step.since) if keeps(node)]
        # A value that is kept is the one that the function has computed, for the inputs themselves.
        forward = dict(zip(kept, substitute(kept, dict(zip(stand_ins, inputs, strict=True))), strict=True))
        late = dict(zip(stand_ins, again(inputs, [*cotangents.values()]), strict=True))
        parts = dict(zip(targets, substitute(found, {**late, **forward}), strict=True))
        return [parts.get(stand_in) for stand_in in stand_ins]

    return like(done.made, overridden(values, [*given.nodes, *done.captured], rule)) if values else done.made


def _seeds(ends: Sequence[Node], cotangents: Mapping[int, Node]) -> dict[Node, Node]:
    seeds: dict[Node, Node] = {}
    for place, cotangent in cotangents.items():
        end = ends[place]
        seeds[end] = seeds[end] + cotangent if end in seeds else cotangent
    return seeds


def _values_of(ends: Sequence[Node], since: int) -> list[Node]:
    """Return the arrays that a call has computed, whose first node has the serial number `since`."""
    order = nodes_since(ends, since)
    return [node for node in order if node.serial >= since and node.op not in LEAVES and not node.is_tuple]


# --- policies ---------------------------------------------------------------------------------------------------------


def checkpoint_name(x: Any, name: str) -> Any:
    """Return `x`, an array or a tree of them, under a name by which the policies `save_only_these_names` and
    `save_anything_except_these_names` know it. Raises GraphTypeError for a value that is no array of numbers.

        >>> keep = graphc.checkpoint_policies.save_only_these_names("inner")
        >>> f = graphc.checkpoint(lambda x: jnp.sin(graphc.checkpoint_name(jnp.cos(x), "inner")), policy=keep)
        >>> graphc.grad(f)(0.0)
        np.float64(-0.0)
    """
    return map_leaves(lambda leaf: named(leaf, name), x)


def nothing_saveable(node: Node) -> bool:
    """Keep nothing but the arguments."""
    return False


def everything_saveable(node: Node) -> bool:
    """Keep every value, as without a checkpoint."""
    return True


PRODUCTS = ("matmul", "gemm", "dot", "conv")


def dots_saveable(node: Node) -> bool:
    """Keep the results of matrix products and convolutions, which take longest."""
    return node.op.name in PRODUCTS


def dots_with_no_batch_dims_saveable(node: Node) -> bool:
    """Keep the results of products of matrices and vectors, not those of stacks of them."""
    return node.op.name in PRODUCTS and node.op.name != "conv" and node.ndim <= 2


def save_only_these_names(*names: str) -> Policy:
    """Return the policy that keeps the values that `checkpoint_name` gave one of these names."""
    return lambda node: node.op.name == "checkpoint_name" and node.attrs["name"] in names


def save_anything_except_these_names(*names: str) -> Policy:
    """Return the policy that keeps all values but those that `checkpoint_name` gave one of these names."""
    return lambda node: node.op.name != "checkpoint_name" or node.attrs["name"] not in names


def save_any_names_but_these(*names: str) -> Policy:
    """Return the policy that keeps the values that have any other name by `checkpoint_name`, and no value without."""
    return lambda node: node.op.name == "checkpoint_name" and node.attrs["name"] not in names


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Return the policy that keeps what one of two policies keeps."""
    return lambda node: first(node) or second(node)


class Policies:
    """The policies of `checkpoint`: each is a function of a node that tells whether its value is kept.

    nothing_saveable, everything_saveable; dots_saveable, dots_with_no_batch_dims_saveable;
    save_only_these_names(*names), save_any_names_but_these(*names), save_anything_except_these_names(*names), which go
    by `checkpoint_name`; save_from_both_policies(first, second).
    """

    nothing_saveable = staticmethod(nothing_saveable)
    everything_saveable = staticmethod(everything_saveable)
    dots_saveable = checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    save_only_these_names = staticmethod(save_only_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)


checkpoint_policies = Policies()
remat = checkpoint

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]
