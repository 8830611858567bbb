"""`vmap` and `vectorize`: functions of one element, mapped over an axis of arrays.

In: a function of one element, and the axes of its arguments along which the elements lie. Out: a function of arrays
with these axes. The function is traced once, for one element; control/batch.py makes the graph of all elements of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, overload

import numpy as np

from graphc.arrays.dtypes import check_dtype
from graphc.control.batch import all_batched, batched
from graphc.control.loop import title
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Guard, Node, Size, describe, variable
from graphc.ir.pairs import extra_axes
from graphc.ir.source_lines import GIVEN, LEFT, TRACE, TRACED
from graphc.ops.elementwise import as_node, cast
from graphc.ops.identity import Frame, attached
from graphc.ops.shape import dimshuffle, drop, expand, guard_axis, label
from graphc.tracing.arguments import Unchanged, as_given, names_of, settings_for
from graphc.tracing.interface import P, remembered
from graphc.tracing.traced import Jitted, builder_of, transformed
from graphc.trees import leaves, like, outline, paths, spread


@remembered
def vmap(
    fun: Callable[P, Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    *,
    static_argnums: Any = None,
    static_argnames: Any = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]:
    """Return `fun` mapped over an axis: a function of arrays with one more axis, along which the elements lie.

    in_axes: the axis of each argument, None for an argument that is the same for all elements; one number for all
    arguments, or a tuple with an item for each, which may be a tree as deep as needed. Arguments by name have the
    elements along axis 0. out_axes: the axis of each result, in the same form; None for a result that is the same for
    all elements. axis_size: the number of elements, needed where no argument has the axis. Static arguments, `mode` and
    `threads` as in `jit`; a tuple `in_axes` may count static ones or not. The result is compiled when it is called.

    Each op acts on all elements in one step where possible. A branch that elements take differently, and a loop whose
    trip count differs, become a compiled loop over the elements. Calls raise GraphValueError for axes that do not fit
    the arguments, GraphTypeError for a size that would differ from element to element, ShapeError for different numbers
    of elements.

        >>> distances = graphc.vmap(lambda x, y: ((x - y) ** 2).sum(), in_axes=(0, None))
        >>> distances(np.eye(2), np.zeros(2))
        array([1., 1.])
    """

    inner = builder_of(fun)

    def build(*args: Any, **kwargs: Any) -> Any:
        parts, (static, others) = made.static.split(args, kwargs), made.static.places(len(args))
        axes = in_axes
        if isinstance(axes, tuple | list) and len(axes) == len(args):
            axes = tuple(axes[place] for place in others)

        def call(*left: Any, **named: Any) -> Any:
            whole = list(args)
            for place, value in zip(others, left, strict=True):
                whole[place] = value
            return inner(*whole, **named, **dict(parts.fixed))

        return _mapped(fun, call, parts.left, parts.named, axes, out_axes, axis_size, static)

    def same_for_all(count: int) -> list[int]:
        axes = in_axes if isinstance(in_axes, tuple | list) and len(in_axes) == count else ()
        return [place for place, axis in enumerate(axes) if axis is None]

    settings = settings_for(mode, threads)
    made = transformed(fun, build, static_argnums, static_argnames, settings, "vmap_of_", Unchanged(same_for_all))
    return made


def _mapped(
    fun: Any,
    build: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    in_axes: Any,
    out_axes: Any,
    count: Size | None,
    static: Sequence[int] = (),
) -> Any:
    """Return the results of `build` for all elements. static: positions of parameters of `fun` that `args` leaves out;
    count: the number of elements, None to take it from the arguments."""
    axes = _axes("in_axes", fun, in_axes, args)
    given, names = leaves((args, kwargs)), names_of(fun, args, kwargs, static)
    axes += [0] * (len(given) - len(axes))
    if not any(isinstance(axis, int) for axis in axes) and count is None:
        raise GraphValueError(f"vmap of {title(fun)}: no argument has an axis of elements; give in_axes, or axis_size")
    rows = [
        _with_axis_first(fun, as_node(leaf), axis, name, extra) if axis is not None else leaf
        for leaf, axis, name, extra in zip(given, axes, names, extra_axes((args, dict(kwargs))), strict=True)
    ]
    mapped = [axis is not None for axis in axes]
    size = _common_size([row for row, has in zip(rows, mapped, strict=True) if has], count)
    pairs: dict[Node, tuple[Node, bool]] = {}
    elements = []
    for row, has, name in zip(rows, mapped, names, strict=True):
        if has:
            held = _held(row, size)
            element = variable(row.dtype, row.type.shape[1:], row.name)
            if not element.ndim:
                as_given(element, np.dtype(element.type.dtype).type)
            TRACED[element] = f"{name}, an argument of {title(fun)}"
            GIVEN.add(element)
            pairs[element] = held, True
            elements.append(element)
        else:
            elements.append(row)
    placed, keywords = like((args, dict(kwargs)), elements)
    try:
        with TRACE.watch(fun), Frame() as found:
            made = build(*placed, **keywords)
        made = attached(made, found)
    finally:
        LEFT.update(pairs)
    results = batched([as_node(leaf) for leaf in leaves(made)], pairs, size)
    places = _axes("out_axes", fun, out_axes, made)
    out = []
    for value, axis, path, extra in zip(results, places, paths(made, "result"), extra_axes(made), strict=True):
        if axis is None and value[1]:
            raise GraphValueError(f"vmap of {title(fun)}: {path} is another for each element, where out_axes is None")
        (whole,) = [value[0]] if axis is None else all_batched([value], size)
        out.append(whole if axis is None else _with_first_at(fun, whole, axis, path, extra))
    return like(made, out)


def _axes(what: str, fun: Any, axes: Any, tree: Any) -> list[int | None]:
    """Return the axis of each leaf of a tree, from a number or a prefix tree of axes."""
    try:
        found = spread(tuple(axes) if isinstance(axes, list) and isinstance(tree, tuple) else axes, tree)
    except ValueError:
        raise GraphValueError(f"vmap of {title(fun)}: {what} is {axes!r}, which does not fit {outline(tree)}") from None
    for axis in found:
        if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise GraphValueError(f"vmap of {title(fun)}: {what} has {axis!r}, which is neither an axis nor None")
    return found


def _with_axis_first(fun: Any, node: Node, axis: int, name: str, extra: int) -> Node:
    """`node` with an axis first. extra: its last axes that are none of the program's: the parts of complex numbers."""
    if not extra - node.ndim <= axis < node.ndim - extra:
        raise GraphValueError(
            f"vmap of {title(fun)}: {name}, {describe(node)} of type {node.type}, has no axis {axis}; in_axes=None "
            "gives it to every element"
        )
    axis %= node.ndim - extra
    return dimshuffle(node, (axis, *(k for k in range(node.ndim) if k != axis)))


def _with_first_at(fun: Any, node: Node, axis: int, path: str, extra: int) -> Node:
    if not extra - node.ndim <= axis < node.ndim - extra:
        raise GraphValueError(f"vmap of {title(fun)}: out_axes has {axis}, and {path} has {node.ndim - extra} axes")
    rest = list(range(1, node.ndim))
    rest.insert(axis % (node.ndim - extra), 0)
    return dimshuffle(node, rest)


def _common_size(rows: Sequence[Node], count: Size | None) -> Size:
    if count is not None:
        return count
    lengths = [row.type.shape[0] for row in rows]
    return next((length for length in lengths if isinstance(length, int)), lengths[0])


def _held(row: Node, size: Size) -> Node:
    """Return `row` with a check that its first axis has `size` elements."""
    own = row.type.shape[0]
    if sizes.equal(own, size):
        return row
    if isinstance(own, int) and isinstance(size, int):
        raise ShapeError(f"vmap: {describe(row)} has {own} elements, and others have {size}")
    return guard_axis(
        row, 0, Guard(own, "==", size, f"vmap: {label(row)} has {{left}} elements, and others have {{right}}")
    )


# --- broadcasting -----------------------------------------------------------------------------------------------------


@overload
def vectorize(
    fun: Callable[P, Any],
    otypes: Any = None,
    doc: str | None = None,
    excluded: Collection[int | str] = (),
    cache: bool = False,
    signature: str | None = None,
) -> Jitted[P, Any]: ...


@overload
def vectorize(
    fun: None = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Collection[int | str] = (),
    cache: bool = False,
    signature: str | None = None,
) -> Callable[[Callable[P, Any]], Jitted[P, Any]]: ...


@remembered
def vectorize(
    fun: Callable[P, Any] | None = None,
    otypes: Any = None,
    doc: str | None = None,
    excluded: Collection[int | str] = (),
    cache: bool = False,
    signature: str | None = None,
) -> Any:
    """Return `fun` with NumPy's broadcasting, as `numpy.vectorize`: a function of scalars, or of the axes in
    `signature`.

    signature: the core axes of one call, as in "(m,n),(n)->(m)". All axes before these are broadcast against each other
    and mapped over, as by `vmap`. Arguments by name come after those by position. otypes: the dtypes that results are
    converted to: a list with one for each, or a string of NumPy's letters ("dl"). doc: the docstring. excluded: static
    arguments, by number or name. cache: changes nothing, since `fun` is called once. Without `fun`, returns a
    decorator.

    Raises GraphValueError where an argument has fewer axes than the signature, the signature another number of
    arguments, or `otypes` another number of results.

        >>> products = graphc.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")
        >>> products(np.ones((5, 2, 3)), np.ones(3)).shape
        (5, 2)
    """
    kinds = _dtypes(otypes)
    if fun is None:
        return lambda function: vectorize(function, otypes, doc, excluded, cache, signature)
    function = fun
    inner = builder_of(function)

    def build(*args: Any, **kwargs: Any) -> Any:
        static, places = made.static.places(len(args))
        named = {name: value for name, value in kwargs.items() if name not in made.static.names}
        fixed = {name: value for name, value in kwargs.items() if name not in named}
        labels = [*places, *named]
        ranks = _ranks(signature, len(labels))
        nodes = [as_node(each) for each in (*(args[place] for place in places), *named.values())]

        def call(*values: Any) -> Any:
            given = dict(zip(labels, values, strict=True)) | {place: args[place] for place in static}
            whole = [given[place] for place in range(len(args))]
            return inner(*whole, **{name: given[name] for name in named}, **fixed)

        for node, rank, label_ in zip(nodes, ranks, labels, strict=True):
            if node.ndim < rank:
                raise GraphValueError(
                    f"vectorize of {title(function)}: argument {label_}, {describe(node)} of type {node.type}, has "
                    f"{node.ndim} axes, and the signature {signature} takes {rank}"
                )
        return _converted(function, _broadcast(function, call, nodes, ranks), kinds)

    numbers = sorted(item for item in excluded if isinstance(item, int))
    names = sorted(item for item in excluded if isinstance(item, str))
    made = transformed(function, build, numbers or None, names or None, prefix="vectorized_")
    if doc is not None:
        made.__doc__ = doc
    return made


def _dtypes(otypes: Any) -> list[str] | None:
    """Return the dtype names of `otypes`; None where it is None."""
    if otypes is None:
        return None
    if isinstance(otypes, str) and not all(letter in np.typecodes["All"] for letter in otypes):
        raise GraphValueError(f"vectorize: otypes={otypes!r} has letters that are no dtypes; give [{otypes!r}]")
    if not isinstance(otypes, str | list | tuple):
        raise GraphTypeError(f"vectorize: otypes is a list of dtypes or a string of their letters, not {otypes!r}")
    return [check_dtype(kind) for kind in otypes]


def _converted(fun: Any, made: Any, kinds: list[str] | None) -> Any:
    """Cast the results to the dtypes in `kinds`, where that is not None."""
    if kinds is None:
        return made
    results = leaves(made)
    if len(results) != len(kinds):
        raise GraphValueError(f"vectorize of {title(fun)}: {len(results)} results, and otypes has {len(kinds)} dtypes")
    return like(made, [cast(as_node(each), kind) for each, kind in zip(results, kinds, strict=True)])


def _ranks(signature: str | None, count: int) -> list[int]:
    """Return the number of core axes of each argument in a signature; 0 without one."""
    if signature is None:
        return [0] * count
    before = signature.partition("->")[0].replace(" ", "")
    groups = before.strip("()").split("),(") if before else []
    if len(groups) != count:
        raise GraphValueError(
            f"vectorize: the signature {signature} is of {len(groups)} arguments, and there are {count}"
        )
    return [len([name for name in group.split(",") if name]) for group in groups]


def _broadcast(fun: Any, call: Callable[..., Any], nodes: Sequence[Node], ranks: Sequence[int]) -> Any:
    """Map `call` over the axes of each node before its last `ranks`, the outermost axis first."""
    outer = [node.ndim - rank for node, rank in zip(nodes, ranks, strict=True)]
    depth = max(outer, default=0)
    if not depth:
        return call(*nodes)
    here = [own == depth for own in outer]
    wide = [has and node.type.shape[0] != 1 for has, node in zip(here, nodes, strict=True)]
    narrowed = [
        drop(node, (0,)) if has and not mapped else node for node, has, mapped in zip(nodes, here, wide, strict=True)
    ]

    def inner(*values: Any) -> Any:
        return _broadcast(fun, call, values, ranks)

    if not any(wide):
        made = inner(*narrowed)
        return like(made, [expand(as_node(leaf), (0,)) for leaf in leaves(made)])
    return _mapped(fun, inner, tuple(narrowed), {}, tuple(0 if mapped else None for mapped in wide), 0, None)


__all__ = ["vectorize", "vmap"]
