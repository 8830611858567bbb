"""Functions whose derivatives the program gives, or says how to compute: `custom_vjp`, `custom_jvp`, `checkpoint`.

In: a function of arrays, and functions that compute its derivative. Out: a function of the same arguments and values.
Called with arrays it is compiled, as by `jit`; called with tensors it gives its values behind a node that says what
their derivatives are (`ops/derivative.py: overridden`).

    @graphc.custom_jvp
    def f(x): return jnp.log(1 + jnp.exp(x))            f(x) is overridden([log(1 + exp(x))], [x], rule)
    @f.defjvp
    def slope(primals, tangents): ...                   rule: slope of (x,) and a fresh tangent t, transposed by t

The rule is asked when a derivative is made, for the inputs and the cotangents of that place: within a loop, a branch or
a batch these are not those of the call. It calls the program's functions with them, so that its result can be
differentiated again. The node is taken away when a function is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, Generic

from graphc.autodiff import of_sizes_of, pulled_back
from graphc.control.loop import title
from graphc.errors import GradientError, GraphTypeError, GraphValueError
from graphc.ir.node import LEAVES, Node, describe, variable
from graphc.ir.sizes import shapes_differ
from graphc.ir.source_lines import TRACE
from graphc.ir.walk import nodes_since, substitute
from graphc.ops.custom import DIRECTION, Absent, NullType
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import again, named
from graphc.ops.shape import zeros
from graphc.options import options
from graphc.startup.process import temporarily
from graphc.tensor import boundary
from graphc.tracing.arguments import parameters_of
from graphc.tracing.interface import P, R
from graphc.tracing.programs import (
    Given,
    Traced,
    by_position,
    depend,
    is_float_node,
    nodes_in,
    rebuilt_over,
    run,
    traced,
    with_defaults,
)
from graphc.tracing.traced import Jitted, builder_of, transformed
from graphc.trees import leaves, like, map_leaves, outline, structure, up_to


class Custom(Generic[P, R]):
    """A function of arrays with derivatives of its own: the base of what `custom_vjp` and `custom_jvp` return."""

    by = ""
    how = ""

    def __init__(self, fun: Callable[..., Any], numbers: Sequence[int]) -> None:
        update_wrapper(self, fun, updated=())
        self.fun = fun
        self.nondiff = tuple(numbers)
        self.compiled: dict[tuple[int, ...], Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        given: tuple[Any, ...] = with_defaults(self.fun, by_position(self.fun, args, kwargs))
        self.check_defined()
        if TRACE.depth or any(isinstance(leaf, Node) for leaf in leaves(given)):
            made: R = self.over(*given)
            return boundary.owned(made) if TRACE.depth else made  # it may be written to
        static = tuple(n for n in self.fixed(len(given)) if not hasattr(given[n], "__array__"))
        if static not in self.compiled:
            self.compiled[static] = transformed(self.fun, self.over, static or None)
        found: Callable[..., R] = self.compiled[static]
        try:
            return found(*given)
        except GraphTypeError as error:
            if not error.asked:
                raise
            made = self.fun(*given)  # Python knows the values outside of traces
            if any(isinstance(leaf, Node) for leaf in leaves(made)):
                raise
            self.compiled[static] = self.fun
            return made

    def __reduce__(self) -> str:
        return str(vars(self)["__qualname__"])  # a pickle finds it where it is defined, as functions are

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        call: Callable[..., R] = self
        return self if instance is None else partial(call, instance)

    @property
    def name(self) -> str:
        """The function in messages."""
        return f"{self.by} of {title(self.fun)}"

    def wrong(self, said: str) -> GradientError:
        """Return the error of a derivative that does not fit."""
        return GradientError(f"{self.name}: {said}")

    def check_defined(self) -> None:
        """Raise GraphTypeError where the derivative has not been given yet."""
        raise NotImplementedError

    def parts(self, given: Given, call: Traced, nodes: Sequence[Node], cotangents: Mapping[int, Node]) -> list[Any]:
        """Return a cotangent, or None, for each leaf of the arguments. nodes: the tensors among these."""
        raise NotImplementedError

    def fixed(self, count: int) -> list[int]:
        """Return the positions of the nondifferentiable ones among `count` arguments."""
        return sorted({number % count for number in self.nondiff if -count <= number < count})

    def over(self, *args: Any) -> Any:
        """Return the values for tensors, with the derivatives of their own."""
        given = Given(self.fun, args)
        call = traced(self.by, self.fun, given, given.nodes)
        values = rebuilt_over(call, given.nodes)
        fixed, count = self.fixed(len(args)), len(given.spots)
        absent: dict[int, Absent] = {
            place: self.undefined(f"its argument {given.names[spot]}, which is one of nondiff_argnums")
            for place, spot in enumerate(given.spots)
            if given.places[spot] in fixed
        }
        for place, node in enumerate(call.captured, count):
            absent[place] = self.undefined(f"{describe(node)}, which it takes from around it: make it an argument")

        def rule(
            inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
        ) -> list[Any]:
            found = self.parts(given, call, inputs[:count], cotangents)
            own = [found[spot] for spot in given.spots] + [None] * len(call.captured)
            made = [part for part in own if isinstance(part, Node)]
            placed = iter(substitute(made, dict(zip(call.captured, inputs[count:], strict=True))))
            parts = [next(placed) if isinstance(part, Node) else part for part in own]
            return [absent.get(place, part) for place, part in enumerate(parts)]

        return like(call.made, overridden(values, [*given.nodes, *call.captured], rule)) if values else call.made

    def undefined(self, what: str) -> Absent:
        return NullType(f"{self.name}: it has no derivative by {what}")()

    def matched(self, what: str, call: Traced, returned: Any) -> list[Node]:
        """Return the leaves of a value of a function of the program's that must have the structure of the results.
        Raises GradientError where it has another."""
        if structure(returned) != structure(call.made):
            raise self.wrong(
                f"{what} must be like {outline(call.made)}, the result of the function, not {outline(returned)}"
            )
        return nodes_in(self.fun, returned)


class CustomVjp(Custom[P, R]):
    """A function with a derivative in reverse mode: see `custom_vjp`."""

    by = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the derivative. fwd: takes the arguments of the function, and returns its value and whatever `bwd`
        needs. bwd: takes the nondifferentiable arguments, what `fwd` kept, and a cotangent in the structure of the
        value; it returns a tuple with the cotangent of each other argument, in the structure of this, None for zero."""
        self.fwd, self.bwd = fwd, bwd

    def check_defined(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise GraphTypeError(f"{title(self.fun)} has no derivative yet; give it by defvjp(fwd, bwd)")

    def parts(self, given: Given, call: Traced, nodes: Sequence[Node], cotangents: Mapping[int, Node]) -> list[Any]:
        fixed, whole = self.fixed(len(given.tree)), given.over(nodes)
        others = [place for place in range(len(whole)) if place not in fixed]
        assert self.fwd is not None and self.bwd is not None
        returned = run(self.by, self.fwd, whole)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise self.wrong(
                f"{title(self.fwd)} must return the value and what {title(self.bwd)} needs, not {outline(returned)}"
            )
        value, kept = returned
        results = self.matched(f"the value that {title(self.fwd)} returns", call, value)
        along = [cotangents[place] if place in cotangents else zeros_of(node) for place, node in enumerate(results)]
        first = [*(whole[place] for place in fixed), kept]
        parts = run(self.by, self.bwd, [*first, like(call.made, along)])
        if DIRECTION.is_transposed:
            self.check_linear(first, along, call)
        if isinstance(parts, list):
            parts = tuple(parts)
        if not isinstance(parts, tuple) or len(parts) != len(others):
            raise self.wrong(
                f"{title(self.bwd)} must return a tuple of {len(others)}, "
                f"a cotangent for each argument, not {outline(parts)}"
            )
        by_place = dict(zip(others, parts, strict=True))
        found: list[Any] = []
        for place, own in enumerate(whole):
            found += self.of_argument(given, place, own, by_place.get(place), len(found))
        return found

    def check_linear(self, first: Sequence[Any], along: Sequence[Node], call: Traced) -> None:
        """Raise GradientError where `bwd`, which a forward product transposes, is not linear in the cotangent. first:
        its other arguments. Of a loop that the cotangent goes into it is not known whether it is."""
        assert self.bwd is not None
        fresh = [variable(node.type.dtype, node.type.shape) for node in along]
        made = run(self.by, self.bwd, [*first, like(call.made, fresh)])
        parts = [as_node(leaf) for leaf in leaves(made) if isinstance(leaf, Node) and is_float_node(leaf)]
        seeds = {part: variable(part.type.dtype, part.type.shape) for part in parts}
        with temporarily(DIRECTION, is_transposed=False):  # what `bwd` calls may call `bwd`
            found = pulled_back(seeds, fresh)
        if depend(found, fresh):
            raise self.wrong(
                f"{title(self.bwd)} is not linear in the cotangent, as forward products (jvp, jacfwd, linearize, hvp) "
                "need it; give the derivative by custom_jvp"
            )

    def of_argument(self, given: Given, place: int, own: Any, part: Any, first: int) -> list[Any]:
        """Return the cotangents of the leaves of one argument, from what `bwd` returns for it."""
        count = len(leaves(own))
        try:
            parts = [None] * count if part is None else up_to(own, part)
        except ValueError:
            raise self.wrong(
                f"{title(self.bwd)} returns for argument {place} what must be like {outline(own)}, not {outline(part)}"
            ) from None
        pairs = zip(leaves(own), parts, given.names[first : first + count], strict=True)
        return [self.cotangent(leaf, each, name) for leaf, each, name in pairs]

    def cotangent(self, leaf: Any, part: Any, name: str) -> Any:
        """Return a cotangent as a node of the type of its leaf; None of what has no derivative."""
        if part is None or isinstance(part, Absent) or not isinstance(leaf, Node) or not is_float_node(leaf):
            return part if isinstance(part, Absent) else None
        node = as_node(part)
        if shapes_differ(node.type.shape, leaf.type.shape):
            raise self.wrong(
                f"the cotangent that {title(self.bwd)} returns for {name} must have the "
                f"shape of {name}, {leaf.type}, not that of {describe(node)}, {node.type}"
            )
        return of_sizes_of(leaf, cast(node, leaf.type.dtype))


class CustomJvp(Custom[P, R]):
    """A function with a derivative in forward mode: see `custom_jvp`."""

    by = "custom_jvp"
    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Give the derivative; may be a decorator. jvp: takes the nondifferentiable arguments, the tuple of the others,
        and the tuple of their tangents, each in the structure of its argument; it returns the value and its tangent,
        which must be linear in the tangents."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give the derivative by each argument: functions `jvp(tangent, value, *arguments)` of the tangent of one
        argument, None where it is zero. The function must return one array and have no nondifferentiable arguments."""
        if self.nondiff:
            raise GraphValueError(f"{self.name}: defjvps takes no nondiff_argnums; use defjvp")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            value = self(*primals)  # type: ignore[call-arg]
            if len(jvps) != len(primals):
                raise self.wrong(f"defjvps has {len(jvps)} functions for {len(primals)} arguments")
            pairs = zip(jvps, tangents, strict=True)
            parts = [each(tangent, value, *primals) for each, tangent in pairs if each is not None]
            total: Any = parts[0] if parts else zeros_of(as_node(value))
            for part in parts[1:]:
                total = elementwise("add", total, part)
            return value, total

        self.jvp = jvp

    def check_defined(self) -> None:
        if self.jvp is None:
            raise GraphTypeError(f"{title(self.fun)} has no derivative yet; give it by defjvp(jvp) or defjvps(...)")

    def parts(self, given: Given, call: Traced, nodes: Sequence[Node], cotangents: Mapping[int, Node]) -> list[Any]:
        fixed, whole = self.fixed(len(given.tree)), given.over(nodes)
        others = [place for place in range(len(whole)) if place not in fixed]
        own: dict[int, Node] = {}  # the tangents of floats, by the number of the leaf
        filled: list[Any] = []
        for spot, leaf in enumerate(leaves(whole)):
            if isinstance(leaf, Node) and is_float_node(leaf) and given.places[spot] not in fixed:
                own[spot] = variable(leaf.type.dtype, leaf.type.shape)
            filled.append(
                own[spot] if spot in own else zeros_of(as_node(leaf)) if given.places[spot] in others else leaf
            )
        assert self.jvp is not None
        tangents = like(whole, filled)
        args = [tuple(tree[place] for place in others) for tree in (whole, tangents)]
        returned = run(self.by, self.jvp, [*(whole[place] for place in fixed), *args])
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise self.wrong(f"{title(self.jvp)} must return the value and its tangent, not {outline(returned)}")
        self.matched(f"the value that {title(self.jvp)} returns", call, returned[0])
        ends = self.matched(f"the tangent that {title(self.jvp)} returns", call, returned[1])
        return self.transposed(own, ends, call, cotangents, len(filled))

    def transposed(
        self, own: Mapping[int, Node], ends: Sequence[Node], call: Traced, cotangents: Mapping[int, Node], count: int
    ) -> list[Any]:
        """Return the cotangents of `own`, tangents of the leaves of the arguments, from those of `ends`, tangents of
        the results. Raises GradientError where these are not linear in those."""
        seeds: dict[Node, Node] = {}
        for place, cotangent in cotangents.items():
            result, end = call.results[place], ends[place]
            if end.ndim != result.ndim:
                raise self.wrong(
                    f"the tangent that {title(self.jvp)} returns must have the shape of the "
                    f"value, {result.type}, not that of {describe(end)}, {end.type}"
                )
            end = cast(end, result.type.dtype)
            seeds[end] = elementwise("add", seeds[end], cotangent) if end in seeds else cotangent
        found = pulled_back(seeds, [*own.values()])
        if depend(found, [*own.values()]):
            raise self.wrong(
                f"the tangent that {title(self.jvp)} returns is not linear in the tangents that it is given"
            )
        found = substitute(found, {each: zeros_of(each) for each in own.values()})  # where a loop does not need them
        parts: list[Any] = [None] * count
        for spot, part in zip(own, found, strict=True):
            parts[spot] = part
        return parts


def zeros_of(node: Node) -> Node:
    """Return zeros of the sizes of a node: of its dtype where that is floating."""
    return zeros(node.type.dtype if is_float_node(node) else options.floatX, node.type.shape)


def custom_vjp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomVjp[P, R]:
    """Return `fun` as a function whose derivative in reverse mode the program gives, by `defvjp(fwd, bwd)`.

    fun: a function of arrays, or trees of them, that returns such. nondiff_argnums, nondiff_argnames: the arguments
    that have no derivative: functions, strings and other values, which are given as they are, or arrays. They come
    first among the arguments of `bwd`.

    `fwd(*args)` returns `(value, kept)`, where `kept` may be anything; `bwd(*nondifferentiable, kept, cotangent)` gets
    the cotangent in the structure, shapes and dtypes of the value, and returns a tuple with that of each other
    argument. Both are functions of arrays, and are differentiated themselves for second derivatives. Forward mode
    (`jvp`, `jacfwd`) transposes `bwd`, which must then be linear in the cotangent. Under `jit`, `vmap`, `scan` and
    `cond` the derivative holds as well.

    Derivatives raise GradientError where `fwd` or `bwd` return what does not fit, NullTypeGradError by what `fun`
    takes from around it, or by a nondifferentiable argument. A call raises GraphTypeError before `defvjp`.

        >>> @graphc.custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda kept, g: (jnp.clip(g, -1, 1),))
        >>> graphc.grad(lambda x: 5 * clipped(x))(2.0)
        np.float64(1.0)
    """
    return CustomVjp(_function(fun, "custom_vjp"), _numbers(fun, nondiff_argnums, nondiff_argnames))


def custom_gradient(fun: Callable[P, tuple[R, Callable[..., Any]]]) -> CustomVjp[P, R]:
    """Return a function whose value and derivative in reverse mode come from one call: `fun(*args)` returns the value
    and a function of its cotangent, which returns the cotangents of the arguments: one, or a tuple of several. Raises
    TypeError where `fun` returns no function of the cotangent; GradientError, in the derivative, for another number of
    cotangents than `fun` has arguments.

        >>> @graphc.custom_gradient
        ... def clipped(x):
        ...     return x, lambda g: jnp.clip(g, -1, 1)
        >>> graphc.grad(lambda x: 5 * clipped(x))(2.0)
        np.float64(1.0)
    """

    def value(*args: P.args, **kwargs: P.kwargs) -> R:
        return fun(*args, **kwargs)[0]

    def back(args: Any, cotangent: Any) -> tuple[Any, ...]:
        found = both(*args)[1](cotangent)
        return found if isinstance(found, tuple) else (found,)

    both: Callable[..., tuple[R, Callable[..., Any]]] = fun
    made = custom_vjp(update_wrapper(value, fun))
    made.defvjp(lambda *args: (both(*args)[0], args), back)
    return made


def custom_jvp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomJvp[P, R]:
    """Return `fun` as a function whose derivative in forward mode the program gives, by `defjvp(jvp)` or `defjvps`.

    fun, nondiff_argnums, nondiff_argnames: as of `custom_vjp`. `jvp(*nondifferentiable, primals, tangents)` returns
    `(value, tangent)`; the tangent must be linear in the tangents that are given, so that reverse mode can transpose
    it. `defjvps(*jvps)` takes a function `jvp(tangent, value, *args)` for each argument instead. Errors are as of
    `custom_vjp`; where the tangent is not linear, GradientError.

        >>> @graphc.custom_jvp
        ... def log1pexp(x):
        ...     return jnp.log(1.0 + jnp.exp(x))
        >>> log1pexp.defjvps(lambda t, value, x: t * (1 - 1 / (1 + jnp.exp(x))))
        >>> graphc.grad(log1pexp)(100.0)
        np.float64(1.0)
    """
    return CustomJvp(_function(fun, "custom_jvp"), _numbers(fun, nondiff_argnums, nondiff_argnames))


def _function(fun: Any, by: str) -> Callable[..., Any]:
    if not callable(fun) or isinstance(fun, Node):
        raise GraphTypeError(f"{by}: a function is to get a derivative, not {fun!r}")
    found: Callable[..., Any] = fun
    return found


def _numbers(fun: Callable[..., Any], numbers: int | Sequence[int], names: str | Sequence[str]) -> list[int]:
    """Return positions from positions and names. Raises GraphValueError for a name that is no parameter."""
    known = parameters_of(fun)
    found = [numbers] if isinstance(numbers, int) else list(numbers)
    for name in [names] if isinstance(names, str) else names:
        if name not in known:
            raise GraphValueError(f"{title(fun)} has no parameter {name!r}, which nondiff_argnames lists")
        found.append(known.index(name))
    return found


__all__ = [
    "Custom", "CustomJvp", "CustomVjp", "checkpoint", "checkpoint_name", "checkpoint_policies", "custom_jvp",
    "custom_vjp", "remat",
]  # fmt: skip


# --- checkpoint: values that are computed again instead of kept -------------------------------------------------------
#     def block(w, x): return jnp.tanh(jnp.tanh(x @ w) @ w)
#
#     grad(block)                 the derivative reads both tanh, which are kept until then
#     grad(checkpoint(block))     the derivative computes them again from w and x, when their cotangent is known
#
# In: a function of arrays, and a policy: which of its values are kept all the same. Out: a function of the same
# arguments and values. The derivative of its values is given by a rule (`ops/derivative.py: overridden`). The rule
# calls the function with fresh variables, differentiates what it gives, and puts `again` of the arguments in place of
# the variables (`ops/identity.py`), and the values that are kept in place of those that the policy names.
#
# What is not kept of a step of a loop is not kept for any of its steps: there a checkpoint saves a row for each step.

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
