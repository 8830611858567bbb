"""Derivatives of Python functions: `grad`, `value_and_grad`, `jacrev`, `jacfwd`, `hessian`.

In: a function of arrays or trees of them, and the positions of the arguments to differentiate by. Out: a function of
the same arguments; results have the structure of the value and of these arguments.

While the function runs, fresh variables stand for the leaves of these arguments (`opened`). A value that the function
takes from its surroundings, or that is given again in another argument, is therefore a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc import autodiff
from graphc.arrays.dtypes import is_float
from graphc.control.batch import batched
from graphc.control.loop import title
from graphc.errors import GradientError, GraphValueError
from graphc.ir import sizes
from graphc.ir.node import OPS, Complex, Node, Size, describe, make, next_serial, plain, variable
from graphc.ir.pairs import conjugated, is_pair
from graphc.ir.source_lines import LEFT, TRACE
from graphc.ir.walk import rebuilt
from graphc.ops.elementwise import as_node, cast
from graphc.ops.identity import Frame, attached
from graphc.ops.index import subtensor
from graphc.ops.questions import asked_equal
from graphc.ops.scan import depends_on_loop
from graphc.ops.shape import concatenate, dimshuffle, expand, filled, iota, reshape
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record
from graphc.tracing.arguments import Unchanged, names_of, settings_for
from graphc.tracing.interface import P, remembered
from graphc.tracing.programs import stand_in
from graphc.tracing.traced import Jitted, builder_of, transformed
from graphc.trees import children, has_kind, leaves, like, map_leaves, outline, paths, structure, with_children

Build = Callable[..., Any]


@record(eq=False)
class Opened:
    """The result of a call with fresh variables in place of the arguments to differentiate by.

    targets: these variables. tree: the argument whose leaves they replace, or a tuple of several. outputs: the value,
    aux: the second item of a result with `has_aux`. replaced: {variable: node of the argument}. since: the serial
    number from which on nodes belong to this call. effects: what the call does (ops/identity.py). results: the leaves
    of outputs, where they are wanted.
    """

    targets: list[Node]
    tree: Any
    outputs: Any
    aux: Any
    replaced: dict[Node, Node]
    since: int
    effects: Sequence[Node] = ()
    results: Sequence[Node] = ()

    def restored(self, tree: Any) -> Any:
        """Put the arguments back in place of the variables in a tree of nodes. What the call does is done with them."""
        whole, effects = map_leaves(
            lambda node: rebuilt(self.replaced, as_node(node), self.since), (tree, self.effects)
        )
        return attached(whole, effects)


def opened(
    by: str,
    function: Any,
    argnums: int | Sequence[int],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    floats_only: bool = True,
) -> Opened:
    """Call a function with fresh variables in place of the arguments at `argnums`. floats_only: what is not floating
    among them is an error; otherwise it stays, and is its own target."""
    build, since = builder_of(function), next_serial()
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not isinstance(number, int) or not -len(args) <= number < len(args):
            raise GraphValueError(
                f"{by} of {title(function)}: argnums={argnums!r}, and there are {len(args)} arguments by position"
            )
    places = [number % len(args) for number in numbers]
    names = iter(names_of(function, args, {}))
    names_at = [[next(names) for _ in leaves(value)] for value in args]
    given = {place: [as_node(leaf) for leaf in leaves(args[place])] for place in places}
    targets = {  # one variable for each leaf, though its argument may be chosen twice
        place: [
            node if not floats_only and not is_float(node.type.dtype) else _target(by, function, node, name)
            for node, name in zip(nodes, names_at[place], strict=True)
        ]
        for place, nodes in given.items()
    }
    replaced = {own: node for place, nodes in given.items() for own, node in zip(targets[place], nodes, strict=True)}
    whole = [like(value, targets[place]) if place in targets else value for place, value in enumerate(args)]
    chosen = [args[place] for place in places]
    tree = chosen[0] if isinstance(argnums, int) else tuple(chosen)
    try:
        with TRACE, Frame() as effects:
            returned = build(*whole, **kwargs)
    finally:
        LEFT.update(replaced)
    aux = None
    if has_aux:
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise GradientError(
                f"{by} of {title(function)} with has_aux: it must return its value and what else there is, not "
                f"{outline(returned)}"
            )
        returned, aux = returned
    return Opened([own for place in places for own in targets[place]], tree, returned, aux, replaced, since, effects)


def _target(by: str, function: Any, node: Node, name: str) -> Node:
    """Return a fresh variable of the type of a leaf. Raises GradientError where its dtype is not a floating one."""
    if not is_float(node.type.dtype):
        raise GradientError(
            f"{by} of {title(function)}: the argument {name} is {node.type.dtype}; only floating values have "
            "derivatives: give floats, or choose others by argnums"
        )
    own = stand_in(node, name, function)
    if TRACE.values is not None:
        TRACE.values.stand_ins[own] = plain(node)
    return own


def others_than(argnums: int | Sequence[int]) -> Unchanged:
    """The arguments that are not differentiated by."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    known = [number for number in numbers if isinstance(number, int)]
    return Unchanged(lambda count: set(range(count)) - {n % count for n in known if count}, True)


def retraceable(function: Callable[P, Any], *args: Any, **kwargs: Any) -> Jitted[P, Any]:
    """`transformed`, for a function that may draw random numbers or ask for values in each call, if it is no compiled
    one. Of one of `jit` it asks for values as that does, by variants."""
    made = transformed(function, *args, **kwargs)
    made.retraces = not isinstance(function, Jitted) or function.retraces
    made.answers = isinstance(function, Jitted) and function.answers
    return made


# --- gradients --------------------------------------------------------------------------------------------------------


@remembered
def value_and_grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return a function that computes `(value, gradient)` of `fun`. With `has_aux`, `fun` returns `(value, aux)`, and
    the result is `((value, aux), gradient)`. The arguments are those of `grad`. A call raises GradientError where `fun`
    returns no floating scalar, GraphValueError for an argument that is not there.

        >>> graphc.value_and_grad(lambda x: (x**2).sum())(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """

    def build(*args: Any, **kwargs: Any) -> Any:
        return _value_and_slopes("value_and_grad", fun, argnums, has_aux, args, kwargs)

    settings = settings_for(mode, threads)
    return retraceable(
        fun, build, static_argnums, static_argnames, settings, "value_and_grad_of_", others_than(argnums)
    )


@remembered
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return a function that computes the gradient of `fun`, which must return a floating scalar, or one element.

    argnums: the position of the argument to differentiate by; the gradient has its structure, shapes and dtypes.
    Several positions give a tuple. An argument that `fun` does not depend on has gradient zero. has_aux: `fun` returns
    `(value, aux)`, and the result is `(gradient, aux)`. Static arguments, `mode` and `threads` as in `jit`. The result
    is compiled when it is called, as by `jit`. Calls raise GradientError for an argument that is not floating, and for
    a value that is no floating scalar; GraphValueError for a position that is no argument.

        >>> slope = graphc.grad(lambda x: (x**2).sum())
        >>> slope(np.arange(3.0))
        array([0., 2., 4.])
    """

    def build(*args: Any, **kwargs: Any) -> Any:
        value, slopes = _value_and_slopes("grad", fun, argnums, has_aux, args, kwargs)
        return (slopes, value[1]) if has_aux else slopes

    settings = settings_for(mode, threads)
    return retraceable(fun, build, static_argnums, static_argnames, settings, "grad_of_", others_than(argnums))


def _value_and_slopes(
    by: str, fun: Any, argnums: int | Sequence[int], has_aux: bool, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    done = opened(by, fun, argnums, has_aux, args, kwargs)
    found = leaves(done.outputs)
    value = as_node(found[0]) if len(found) == 1 and found[0] is done.outputs else None
    if value is None or not is_float(value.type.dtype) or not all(asked_equal(n, 1) for n in value.type.shape):
        if isinstance(done.outputs, Node):
            value = as_node(done.outputs)
        what = outline(done.outputs) if value is None else f"{describe(value)} of type {value.type}"
        raise GradientError(
            f"{by} of {title(fun)}: it returns {what}, not a floating scalar; take the sum or the mean, or jacrev"
        )
    slopes = autodiff.grad(reshape(value, ()), done.targets, disconnected_inputs="ignore")
    own, slopes, aux = done.restored((value, conjugated(like(done.tree, slopes)), done.aux))
    return ((own, aux) if has_aux else own), slopes


# --- Jacobians --------------------------------------------------------------------------------------------------------


@remembered
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    holomorphic: bool = False,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return a function that computes the Jacobian of `fun` by the argument at `argnums`, in reverse mode.

    For each leaf of the value the result has a tree in the structure of the argument (a tuple of them for several). Its
    arrays have the shape of the value followed by that of the argument. Reverse mode takes a pass for each element of
    the value: use `jacfwd` where the argument has fewer elements. The other arguments are those of `grad`. It raises
    GradientError for a value or an argument that is not floating. With `holomorphic` all of them are complex, the
    function is analytic, and the result has its derivatives.

        >>> graphc.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """

    def build(*args: Any, **kwargs: Any) -> Any:
        return _jacobians("jacrev", _rows_of, fun, argnums, has_aux, args, kwargs, holomorphic)

    settings = settings_for(mode, threads)
    return retraceable(fun, build, static_argnums, static_argnames, settings, "jacobian_of_", others_than(argnums))


@remembered
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    holomorphic: bool = False,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return a function that computes the same Jacobian as `jacrev` in forward mode, all columns at once: for a value
    of more elements than the argument. A call raises GradientError for a value or an argument that is not floating.

        >>> graphc.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """

    def build(*args: Any, **kwargs: Any) -> Any:
        return _jacobians("jacfwd", _columns_of, fun, argnums, has_aux, args, kwargs, holomorphic)

    settings = settings_for(mode, threads)
    return retraceable(fun, build, static_argnums, static_argnames, settings, "jacobian_of_", others_than(argnums))


jacobian = jacrev


@remembered
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return a function that computes the second derivatives of `fun`, as `jacrev` of `jacrev`: the shape of the value,
    followed twice by that of the argument. Other arguments and errors are those of `grad`.

        >>> graphc.hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    inner = jacrev(fun, argnums, has_aux, static_argnums=static_argnums, static_argnames=static_argnames)
    build = jacrev(inner, argnums, has_aux).build
    return retraceable(inner, build, settings=settings_for(mode, threads), unchanged=others_than(argnums))


def _jacobians(
    by: str,
    make_parts: Callable[[Opened, list[Node]], list[list[Node]]],
    fun: Any,
    argnums: int | Sequence[int],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    holomorphic: bool = False,
) -> Any:
    done = opened(by, fun, argnums, has_aux, args, kwargs)
    outputs = [as_node(leaf) for leaf in leaves(done.outputs)]
    for output, path in zip(outputs, paths(done.outputs, "result"), strict=True):
        if not is_float(output.type.dtype):
            raise GradientError(
                f"{by} of {title(fun)}: {path} is {output.type.dtype}; only floating values have derivatives"
            )
    form = done.outputs
    if holomorphic:
        form = _leaf_for_each(by, fun, form)
        _leaf_for_each(by, fun, done.tree)
    elif has_kind(Complex, structure((done.tree, form))):
        raise GradientError(
            f"{by} of {title(fun)}: Jacobians by complex numbers, or of them, are those of analytic functions, with "
            "holomorphic=True; take the parts of others"
        )
    parts = make_parts(done, outputs)
    if holomorphic:
        rows = zip(parts, outputs, strict=True)
        parts = [[_of_real_direction(part, output.ndim) for part in row] for row, output in rows]
    found = like(form, [like(done.tree, part) for part in parts])
    return done.restored((found, done.aux)) if has_aux else done.restored(found)


def _leaf_for_each(by: str, fun: Any, tree: Any) -> Any:
    """A tree with a leaf in place of each complex tensor. Raises GradientError for a real one."""
    if is_pair(tree):
        return HOOKS.pairs.real_of(tree)
    parts = children(tree)
    if not parts:
        if leaves(tree):
            raise GradientError(f"{by} of {title(fun)}: holomorphic=True is of complex arguments and values alone")
        return tree
    return with_children(tree, [_leaf_for_each(by, fun, part) for part in parts])


def _of_real_direction(part: Node, place: int) -> Node:
    """The parts of the derivative of an analytic function: those along real directions. In: the derivatives of the
    parts of a value, along axis `place - 1`, by the parts of an argument, along the last axis."""
    along = part.part((..., 0))
    axes = [axis for axis in range(along.ndim) if axis != place - 1]
    return dimshuffle(along, (*axes, place - 1))


def _rows_of(done: Opened, outputs: list[Node]) -> list[list[Node]]:
    """Return for each output its derivatives by all targets, in reverse mode."""
    shared = {number: place for place, number in enumerate(_numbers_after_loops(outputs, outputs))}
    if shared:
        dtype = np.result_type(*(each.type.dtype for each in shared)).name
        vector = concatenate([expand(cast(each, dtype), (0,)) for each in shared], 0)
        together = autodiff.jacobian(vector, done.targets, disconnected_inputs="ignore")
    parts = []
    for output in outputs:
        if output in shared:
            pairs = zip(together, done.targets, strict=True)
            parts.append([reshape(_row(rows, shared[output]), target.type.shape) for rows, target in pairs])
        elif not output.ndim:
            parts.append(autodiff.grad(output, done.targets, disconnected_inputs="ignore"))
        else:
            flat = reshape(output, (sizes.product(output.type.shape),))
            rows = autodiff.jacobian(flat, done.targets, disconnected_inputs="ignore")
            shapes = [(*output.type.shape, *target.type.shape) for target in done.targets]
            parts.append([reshape(row, shape) for row, shape in zip(rows, shapes, strict=True)])
    return parts


def _numbers_after_loops(nodes: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """Return the nodes without axes whose derivatives are computed together, as those of one vector: several, where
    `outputs` depend on a loop, which is then written once and not once for each number."""
    numbers = [node for node in dict.fromkeys(nodes) if not node.ndim]
    return numbers if len(numbers) > 1 and depends_on_loop(outputs) else []


def _row(rows: Node, place: int) -> Node:
    """Return the part of an array at a place of its first axis, with an axis of length one."""
    return subtensor(rows, (place, *(0,) * (rows.ndim - 1)), (1, *rows.type.shape[1:]), (1,) * rows.ndim)


def _columns_of(done: Opened, outputs: list[Node]) -> list[list[Node]]:
    """Return for each output its derivatives by all targets, in forward mode: the products of the Jacobian with all
    vectors of the standard basis."""
    columns = columns_by(done.targets, outputs)
    return [
        [_axis_last(each[place], output, target) for each, target in zip(columns, done.targets, strict=True)]
        for place, output in enumerate(outputs)
    ]


def _axis_last(columns: Node, output: Node, target: Node) -> Node:
    """Return derivatives with the axis of the elements of a target last, in its shape."""
    moved = dimshuffle(columns, (*range(1, columns.ndim), 0))
    return reshape(moved, (*output.type.shape, *target.type.shape))


def columns_by(targets: Sequence[Node], outputs: Sequence[Node]) -> list[list[Node]]:
    """Return for each target and each output the derivatives by all elements of the target, in forward mode: the shape
    of the output after an axis of the elements."""
    shared = {number: place for place, number in enumerate(_numbers_after_loops(targets, outputs))}
    units = np.eye(len(shared))
    basis = {number: as_node(unit.astype(number.type.dtype)) for number, unit in zip(shared, units, strict=True)}
    together = _products(basis, len(shared), outputs) if shared else []
    return [
        [_row(each, shared[target]) for each in together] if target in shared else _columns_by(target, outputs)
        for target in targets
    ]


def _columns_by(target: Node, outputs: Sequence[Node]) -> list[Node]:
    if not target.ndim:
        one = cast(as_node(1.0), target.type.dtype)
        products = autodiff.jvp(list(outputs), [target], [one], disconnected_inputs="ignore")
        return [expand(each, (0,)) for each in products]
    size = sizes.product(target.type.shape)
    return _products({target: reshape(_identity(target.type.dtype, size), (size, *target.type.shape))}, size, outputs)


def _products(basis: Mapping[Node, Node], size: Size, outputs: Sequence[Node]) -> list[Node]:
    """Return for each output its derivatives along `size` directions, which are the rows of the targets' arrays."""
    tangents = [variable(target.type.dtype, target.type.shape) for target in basis]
    products = autodiff.jvp(list(outputs), list(basis), tangents, disconnected_inputs="ignore")
    given = {tangent: (rows, True) for tangent, rows in zip(tangents, basis.values(), strict=True)}
    made = []
    for (value, has), output in zip(batched(products, given, size), outputs, strict=True):
        # an output that does not depend on the targets has product zero with every vector
        zero = cast(as_node(0.0), output.type.dtype)
        made.append(value if has else filled(zero, (size, *output.type.shape)))
    return made


def _identity(dtype: str, size: Size) -> Node:
    """The identity matrix of a size that may be symbolic."""
    shape = (size, size)
    rows, columns = (
        make(OPS["broadcast_to"], (expand(iota(size), (axis,)), *map(_as_size_node, shape))) for axis in (1, 0)
    )
    return cast(make(OPS["equal"], (rows, columns)), dtype)


_as_size_node = partial(as_node, dtype="int64")

__all__ = ["grad", "hessian", "jacfwd", "jacobian", "jacrev", "value_and_grad"]
