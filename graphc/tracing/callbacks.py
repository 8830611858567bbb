"""Calls back into Python from traced functions: `pure_callback`, `debug.print`, `debug.callback`.

In: a Python function of arrays, and tensors. Out: of `pure_callback` tensors, for which compiled code calls the
function; of the others nothing: what they do is attached to the results of the function that is traced
(ops/identity.py), so that it is done where and as often as these are computed.

    y = graphc.pure_callback(scipy_function, graphc.ShapeDtypeStruct(x.shape, x.dtype), x)
    graphc.debug.print("x = {}", x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from graphc.arrays.dtypes import check_dtype, read_only
from graphc.errors import GradientError, GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Array, Complex, Node, Op, Size, Type, describe, make
from graphc.ir.source_lines import TRACE
from graphc.ir.walk import as_size_node
from graphc.ops.custom import PYTHON, fingerprint
from graphc.ops.elementwise import as_node
from graphc.ops.identity import EFFECTS
from graphc.ops.questions import asked_equal
from graphc.ops.shape import reshape
from graphc.startup.hooks import HOOKS
from graphc.tensor.shaping import as_size
from graphc.tracing.arguments import with_parts
from graphc.trees import has_kind, leaves, like, outline, structure

_TAKEN: WeakValueDictionary[str, Callable[..., Any]] = WeakValueDictionary()
"""The functions that are called back, under the names of the ops, which no two have."""


class ShapeDtypeStruct:
    """The shape and the dtype of an array, without its elements. shape: sizes, which may be tensors. sharding,
    weak_type: for programs written for JAX; they say nothing here. Raises TypeError for a dtype that NumPy does not
    know."""

    sharding = None
    weak_type = False

    def __init__(self, shape: Sequence[Any], dtype: Any, *, sharding: Any = None, weak_type: bool = False) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return sizes.product([as_size(each) for each in self.shape])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct) or (self.ndim, self.dtype) != (other.ndim, other.dtype):
            return False
        return all(asked_equal(as_size(n), as_size(m)) for n, m in zip(self.shape, other.shape, strict=True))

    def __hash__(self) -> int:
        return hash((self.ndim, self.dtype))  # equal ones may have other tensors for their sizes

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def _op(what: str, called: Sequence[Any], infer: Any, evaluate: Callable[..., Any], vjp: Any = None) -> Op:
    """Return a new op whose values a Python function computes."""
    digits = fingerprint(*(each for each in called if callable(each)))
    base = f"{what}_{digits[:8]}"
    names = (base if not number else f"{base}_{number}" for number in range(len(_TAKEN) + 1))
    name = next(name for name in names if name not in _TAKEN)
    _TAKEN[name] = evaluate
    return Op(name, infer, evaluate, lambda node: PYTHON, vjp=vjp, cost=100.0, version=digits)


# --- values -----------------------------------------------------------------------------------------------------------


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, vmap_method: str | None = None, **kwargs: Any
) -> Any:
    """Return what a Python function of arrays gives, which compiled code calls back.

    callback: takes NumPy arrays in the structure of the arguments, and returns arrays in that of `result_shape_dtypes`,
    a tree of `ShapeDtypeStruct`, arrays or tensors, whose shapes and dtypes the results have. It must be pure: it may
    be called more or less often than it is written. Under `vmap` it is called for each element, whatever `vmap_method`
    says. Of arrays alone, outside of traced functions, it is called at once.

    A call raises GraphTypeError and ShapeError where a result is another than was said. A derivative raises
    GradientError: `custom_vjp` and `custom_jvp` give it one.

        >>> def largest(x):
        ...     return np.sort(x)[-1]
        >>> f = graphc.jit(lambda x: 2 * graphc.pure_callback(largest, graphc.ShapeDtypeStruct((), x.dtype), x))
        >>> f(np.array([1.0, 3.0, 2.0]))
        np.float64(6.0)
    """
    args, named = with_parts(args, kwargs)
    kwargs = dict(named)
    ((result_shape_dtypes,), _) = with_parts((result_shape_dtypes,), {})
    has_complex = has_kind(Complex, structure(result_shape_dtypes))
    kinds = [_kind(leaf) for leaf in leaves(result_shape_dtypes)]
    given = leaves((args, kwargs))

    def compute(*arrays: Array) -> list[Array]:
        own, named = like((args, kwargs), arrays)
        made = callback(*own, **named)
        made = HOOKS.pairs.taken(made) if has_complex else made
        if structure(made) != structure(result_shape_dtypes):
            wanted = outline(result_shape_dtypes)
            raise GraphTypeError(f"pure_callback of {_name(callback)}: it returned {outline(made)}, not {wanted}")
        return [np.asarray(leaf) for leaf in leaves(made)]

    if not TRACE.depth and not any(
        isinstance(leaf, Node) for leaf in (*given, *(n for _, shape in kinds for n in shape))
    ):
        found = compute(*map(np.asarray, given))
        pairs = zip(found, kinds, strict=True)
        results: list[Any] = [_checked(callback, each, dtype, shape) for each, (dtype, shape) in pairs]
    else:
        results = [*_called_back(callback, compute, [as_node(leaf) for leaf in given], kinds)]
    return like(result_shape_dtypes, results)


def _kind(leaf: Any) -> tuple[str, tuple[Size, ...]]:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise GraphTypeError(f"pure_callback: results are described by ShapeDtypeStruct(shape, dtype), not by {leaf!r}")
    shape = leaf.type.shape if isinstance(leaf, Node) else tuple(as_size(size) for size in leaf.shape)
    return check_dtype(str(np.dtype(leaf.dtype))), shape


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _checked(callback: Any, value: Array, dtype: str, shape: Sequence[Any]) -> Array:
    """Return a result in its dtype. Raises the errors of `pure_callback`."""
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        raise GraphTypeError(f"pure_callback of {_name(callback)}: it gave {value.dtype}, and {dtype} was said")
    if value.shape != tuple(shape):
        raise ShapeError(
            f"pure_callback of {_name(callback)}: it gave the shape {value.shape}, and {tuple(shape)} was said"
        )
    return np.array(value, dtype, order="C")


def _called_back(
    callback: Any,
    compute: Callable[..., list[Array]],
    given: Sequence[Node],
    kinds: Sequence[tuple[str, Sequence[Size]]],
) -> list[Node]:
    """Return the results: one op for each dtype, whose results are laid out one behind the other."""
    found: list[Any] = [None] * len(kinds)
    told = [as_size_node(size) for _, shape in kinds for size in shape]
    for dtype in dict.fromkeys(dtype for dtype, _ in kinds):
        places = [place for place, (own, _) in enumerate(kinds) if own == dtype]
        flat = make(
            _packing(callback, compute, [(own, len(shape)) for own, shape in kinds], places, dtype), [*given, *told]
        )
        begin: Size = 0
        for place in places:
            end = sizes.add(begin, sizes.product(kinds[place][1]))
            found[place] = reshape(flat[as_size_node(begin) : as_size_node(end)], kinds[place][1])
            begin = end
    return found


def _packing(
    callback: Any,
    compute: Callable[..., list[Array]],
    kinds: Sequence[tuple[str, int]],
    places: Sequence[int],
    dtype: str,
) -> Op:
    """Return the op of the results at `places`. Its last operands are the sizes of all results."""
    count = sum(rank for _, rank in kinds)

    def shapes_of(told: Sequence[Any]) -> list[tuple[Any, ...]]:
        left = iter(told)
        return [tuple(next(left) for _ in range(rank)) for _, rank in kinds]

    def infer(args: Sequence[Node], attrs: Any) -> Type:
        shapes = shapes_of([sizes.as_size(each) for each in args[len(args) - count :]])
        total: Size = 0
        for place in places:
            total = sizes.add(total, sizes.product(shapes[place]))
        return Type(dtype, (total,))

    def evaluate(node: Node, *values: Array) -> Array:
        own = values[: len(values) - count]
        shapes = shapes_of([int(each) for each in values[len(values) - count :]])
        made = compute(*map(read_only, own))
        parts = [_checked(callback, made[place], dtype, shapes[place]).ravel() for place in places]
        return np.concatenate([np.zeros(0, dtype), *parts])

    def vjp(node: Node, cotangent: Node) -> Any:
        raise GradientError(
            f"pure_callback of {_name(callback)} has no derivative; give its caller one, by graphc.custom_vjp"
        )

    return _op("callback", (callback,), infer, evaluate, vjp)


# --- effects ----------------------------------------------------------------------------------------------------------


class Debug:
    """Actions of a program while it computes, for its author to see.

    print(form, *args, **kwargs): prints text with the values of tensors. callback(function, *args, **kwargs): calls a
    Python function with them. Both are done whenever the results of the traced function are computed in which they
    stand: in each step of a loop, in the branch that is taken, for each element of a batch; not where a derivative does
    not need these results.
    """

    def print(self, form: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
        """Print `form.format(*args, **kwargs)` with arrays in place of tensors, at each call of compiled code. ordered:
        changes nothing; effects are in the order in which their values are known. Raises GraphTypeError for tensors
        outside of traced functions.

            >>> @graphc.jit
            ... def f(x):
            ...     graphc.debug.print("x = {}, twice {y}", x, y=2 * x)
            ...     return x + 1
            >>> f(np.arange(2))
            x = [0 1], twice [0 2]
            array([1, 2])
        """

        def say(*arrays: Any, **named: Any) -> None:
            print(form.format(*arrays, **named))

        _done("debug.print", say, (form,), args, kwargs)

    def callback(self, function: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any) -> None:
        """Call `function(*args, **kwargs)` with arrays in place of tensors, at each call of compiled code; what it
        returns is not looked at. ordered, errors: as of `print`.

            >>> seen = []
            >>> f = graphc.jit(lambda x: [graphc.debug.callback(seen.append, x.sum()), x * 2][1])
            >>> f(np.ones(2)), seen
            (array([2., 2.]), [array(2.)])
        """
        _done("debug.callback", function, (), args, kwargs)


debug = Debug()


def _done(by: str, function: Callable[..., Any], text: Sequence[str], args: Any, kwargs: Any) -> None:
    """Do something with values, now or when compiled code has them."""
    tree = (args, kwargs)
    tensors = [leaf for leaf in leaves(tree) if isinstance(leaf, Node)]
    if not EFFECTS.frames:
        if tensors:
            raise GraphTypeError(
                f"{by} of {describe(as_node(tensors[0]))}: outside of traced functions no value needs it; "
                "graphc.printing.Print(message)(x) is x, and prints it when it is computed"
            )
        function(*args, **kwargs)
        return
    count, frame = len(tensors), EFFECTS.frames[-1]

    def evaluate(node: Node, *values: Array) -> Array:
        left = iter(np.array(value) for value in values[:count])
        own, named = like(tree, [next(left) if isinstance(leaf, Node) else leaf for leaf in leaves(tree)])
        function(*own, **named)
        return np.zeros(())

    op = _op(by.replace(".", "_"), (function,), lambda args, attrs: Type("float64", ()), evaluate)
    anchor = [] if frame.anchor is None else [as_node(frame.anchor)]
    frame.found.append(make(op, [*map(as_node, tensors), *anchor]))


__all__ = ["ShapeDtypeStruct", "debug", "pure_callback"]
