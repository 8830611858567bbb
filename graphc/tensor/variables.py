"""Variables and constants: where every graph begins.

In: dtypes, names, sizes (None where known only at each call). Out: input nodes; numbers, lists and arrays as constants.
The constructors are Theano's: scalar vector row col matrix tensor3 tensor4 of dtype `options.floatX`, and with a prefix
b (int8) w (int16) i (int32) l (int64) f (float32) d (float64) c (complex64) z (complex128); their plurals make several
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.arrays.dtypes import check_dtype, listed
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir.call_errors import explained, explained_class
from graphc.ir.node import CONSTANT, FUNCTIONS, INPUT, SHARED, Comparison, Constant, Node, describe, leaf_type, variable
from graphc.ir.types import UserType, is_of_arrays
from graphc.ops.elementwise import as_node
from graphc.ops.shape import expand
from graphc.options import options

__all__ = [
    "TensorConstant", "TensorType", "TensorVariable", "Variable", "as_tensor", "constant", "tensor",
]  # fmt: skip

TensorConstant = Constant

if TYPE_CHECKING:
    TensorVariable = Variable = Node
else:

    class Variables(type):
        """Classes that isinstance is asked about: nodes count as their instances."""

        def __instancecheck__(cls, instance: object) -> bool:
            if cls is Variable:
                return isinstance(instance, Node) or super().__instancecheck__(instance)
            if cls is TensorVariable:
                return isinstance(instance, Node) and (
                    isinstance(instance, Comparison) or instance.op not in (SHARED, CONSTANT)
                )
            return super().__instancecheck__(instance)

    class Variable(metaclass=Variables):
        """Every tensor of a graph. `Variable(type)` makes one; of a type that is no tensor's, an object that programs
        may hand on and nothing can be computed from."""

        def __new__(cls, type: Any, owner: Any = None, index: Any = None, name: str | None = None) -> Any:
            if cls is Variable and isinstance(type, UserType) and is_of_arrays(type):
                return TensorVariable(type, owner, index, name)
            return super().__new__(cls)

        def __init__(self, type: Any, owner: Any = None, index: Any = None, name: str | None = None) -> None:
            self.type, self.owner, self.index, self.name = type, owner, index, name

    class TensorVariable(Node, metaclass=Variables):
        """A value that is given at each call or computed: neither a constant nor a shared variable.
        `TensorVariable(type)` makes an input of that type, as do classes derived from it."""

        def __init__(self, type: Any, owner: Any = None, index: Any = None, name: str | None = None) -> None:
            if owner is not None:
                raise GraphTypeError("a variable with an owner is what Apply or a function gives: call that")
            kind = leaf_type(type.dtype, type.shape, _check_name(name))
            super().__init__(INPUT, (), {"type": kind}, kind, name)


Sizes = tuple[int | None, ...]


def resolve_dtype(dtype: Any) -> str:
    """The name of a dtype; None and "floatX" stand for `options.floatX`."""
    return options.floatX if dtype is None or (isinstance(dtype, str) and dtype == "floatX") else check_dtype(dtype)


def _check_sizes(shape: Sequence[Any], ndim: int | None, what: str) -> Sizes:
    """Static sizes as a user gives them; a tuple of bools is Theano's `broadcastable`."""
    items = listed(shape)
    if ndim is not None and len(items) != ndim:
        raise GraphValueError(f"{what}: shape {items} has {len(items)} axes, not {ndim}")
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        return tuple(1 if item else None for item in items)
    for item in items:
        if item is not None and (isinstance(item, bool) or not isinstance(item, (int, np.integer))):
            raise GraphTypeError(f"{what}: a size is a whole number or None, not {item!r}")
        if item is not None and item < 0:
            raise ShapeError(f"{what}: size {item} is negative")
    return tuple(None if item is None else int(item) for item in items)


def _check_name(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise GraphTypeError(f"a variable's name is a string, not {name!r}")
    return name


def declared(made: Node) -> Node:
    """A variable that the program made, and no loop or derivative: one that a test value may be asked of
    (theano/flags.py)."""
    made.__dict__["_declared"] = True
    return made


class Kinds(type):
    """The class of `TensorType`, of which every tensor's type counts as an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, UserType) if cls.__base__ is UserType else type.__instancecheck__(cls, instance)


def shown(kind: UserType) -> str:
    """A type in Theano's words: `TensorType(float64, matrix)`; in sizes where some are known."""
    if any(size not in (None, 1) for size in kind.shape):
        return f"TensorType({kind.dtype}, {kind.shape})"
    ones = kind.broadcastable
    plain = {(): "scalar", (True, False): "row", (False, True): "col"} if len(ones) < 3 else {}
    count = ("", "vector", "matrix", "3D", "4D", "5D")[len(ones)] if len(ones) < 6 else f"{len(ones)}D"
    words = plain.get(ones, str(ones) if any(ones) else count)
    return f"TensorType({kind.dtype}, {words})"


class TensorType(UserType, metaclass=Kinds):
    """A dtype and sizes (None: known at each call); calling it makes a variable.

    `shape` is a tuple of sizes, or of bools in Theano's manner (`broadcastable`): True for an axis of size 1 that
    broadcasts. Types are equal where dtype and broadcasting pattern are: `x.type == T.dvector`. `name` is what the type
    is called.
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(
        self,
        dtype: Any = None,
        shape: Sequence[Any] = (),
        name: str | None = None,
        *,
        broadcastable: Sequence[bool] | None = None,
    ) -> None:
        self.dtype = resolve_dtype(dtype)
        self.shape = _check_sizes(shape if broadcastable is None else broadcastable, None, "TensorType")
        self.name = _check_name(name)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __call__(self, name: str | None = None) -> Node:
        """A fresh variable of this type."""
        return declared(variable(self.dtype, self.shape, _check_name(name)))

    def __reduce__(self) -> Any:
        return TensorType, (self.dtype, self.shape, self.name)

    def __repr__(self) -> str:
        return self.name or shown(self)


FUNCTIONS["tensor_type"] = TensorType
explained_class(TensorType)


def tensor(
    dtype: Any = None,
    shape: Sequence[Any] = (),
    name: str | None = None,
    *,
    broadcastable: Sequence[bool] | None = None,
) -> Node:
    """A variable of any dtype and rank. `shape`: sizes, None where known only at each call, or Theano's bools.

    Raises GraphTypeError for a dtype that graphc has not.

        >>> T.tensor("float32", (None, 3), "x").ndim
        2
    """
    return TensorType(dtype, shape, broadcastable=broadcastable)(name)


class Constructor(UserType):
    """Makes variables of one rank: `matrix("x")`, `matrix(name="x", dtype="float32", shape=(None, 3))`; it is a type,
    too: `x.type == dmatrix`."""

    def __new__(cls, *args: Any, dtype: Any = None, broadcastable: Sequence[bool] | None = None) -> Any:
        """A constructor, or with `broadcastable` a type: Theano's are of one class, `type(T.dmatrix)`."""
        return super().__new__(cls) if broadcastable is None else TensorType(dtype, broadcastable=broadcastable)

    def __init__(self, word: str, sizes: Sizes, dtype: str | None = None) -> None:
        self.__name__ = word
        self.__doc__ = f"A variable of {len(sizes)} axes and dtype {dtype or 'options.floatX, unless given'}."
        self.shape = sizes
        self.fixed = dtype

    @property
    def dtype(self) -> str:
        """The dtype of the variables, `options.floatX` where the constructor has none of its own."""
        return self.fixed or options.floatX

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __reduce__(self) -> Any:
        return _constructor, (self.__name__, self.shape, self.fixed)

    def __call__(self, name: str | None = None, dtype: Any = None, shape: Sequence[Any] | None = None) -> Node:
        """A fresh variable. `shape` fixes sizes that are otherwise known only at each call."""
        what = f"{self.__name__} {_check_name(name) or ''}".strip()
        if dtype is not None and self.fixed is not None and check_dtype(dtype) != self.fixed:
            raise GraphTypeError(f"{what}: its dtype is {self.fixed}, not {check_dtype(dtype)}")
        sizes = self.shape if shape is None else _check_sizes(shape, len(self.shape), what)
        for fixed, given in zip(self.shape, sizes, strict=True):
            if fixed is not None and given != fixed:
                raise GraphValueError(f"{what}: shape {tuple(sizes)} does not fit {self.shape}")
        return declared(variable(self.fixed or resolve_dtype(dtype), sizes, name))

    def __repr__(self) -> str:
        return shown(self)


def _constructor(word: str, sizes: Sizes, dtype: str | None) -> Constructor:
    return Constructor(word, sizes, dtype)


class Constructors:
    """Makes several variables at once: `dmatrices("xy")`, one for each letter, `dmatrices("left right")`, one for each
    word, `dmatrices("x", "y")`, or `dmatrices(2)` without names. One alone is no list, as in Theano."""

    def __init__(self, constructor: Constructor, word: str) -> None:
        self.__name__ = word
        self.__doc__ = f"Several variables, each as from {constructor.__name__}."
        self.constructor = constructor

    def __call__(self, *names: Any) -> Any:
        """One fresh variable for each name."""
        if len(names) == 1 and isinstance(names[0], int):
            made = [self.constructor() for _ in range(names[0])]
        else:
            if len(names) == 1 and isinstance(names[0], str):
                names = tuple(names[0].split() if " " in names[0] else names[0])
            elif len(names) == 1 and isinstance(names[0], list | tuple):
                names = tuple(names[0])
            made = [self.constructor(name) for name in names]
        return made[0] if len(made) == 1 else made

    def __repr__(self) -> str:
        return f"<constructors {self.__name__}>"


explained_class(Constructor)
explained_class(Constructors)

PREFIXES: dict[str, str | None] = {
    "": None, "b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64",
    "c": "complex64", "z": "complex128",
}  # fmt: skip
RANKS: dict[str, tuple[str, Sizes]] = {
    "scalar": ("scalars", ()),
    "vector": ("vectors", (None,)),
    "row": ("rows", (1, None)),
    "col": ("cols", (None, 1)),
    "matrix": ("matrices", (None, None)),
    "tensor3": ("tensor3s", (None,) * 3),
    "tensor4": ("tensor4s", (None,) * 4),
    "tensor5": ("tensor5s", (None,) * 5),
    "tensor6": ("tensor6s", (None,) * 6),
    "tensor7": ("tensor7s", (None,) * 7),
}


def constructors(prefix: str) -> list[Constructor]:
    """The constructors with a prefix, in the order of `RANKS`."""
    return [Constructor(prefix + word, sizes, PREFIXES[prefix]) for word, (_, sizes) in RANKS.items()]


def plural_constructors(prefix: str) -> list[Constructors]:
    """The constructors of several variables with a prefix, in the order of `RANKS`."""
    plurals = (plural for plural, _ in RANKS.values())
    return [Constructors(one, prefix + plural) for one, plural in zip(constructors(prefix), plurals, strict=True)]


def as_tensor(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> Node:
    """`x` as a node: nodes pass, numbers, arrays and lists become constants, lists that hold nodes are stacked; an
    application (`Apply`) of one result is that result.

    `ndim` puts axes of size 1 in front. Python floats become `options.floatX`, Python integers int64. Raises
    GraphTypeError for what is no tensor or has more than `ndim` axes.

        >>> T.as_tensor([1, 2]).dtype
        'int64'
    """
    node = as_node(x, None if dtype is None else resolve_dtype(dtype), _check_name(name))
    if ndim is None or ndim == node.ndim:
        return node
    if node.ndim > ndim:
        raise RankError(f"{describe(node)} of type {node.type} has more than {ndim} axes")
    return expand(node, range(ndim - node.ndim))


FUNCTIONS["as_tensor"] = as_tensor


def constant(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> Node:
    """A number, list or array as a constant. Raises GraphTypeError for a node.

    >>> T.constant([1.0, 2.0]).eval()
    array([1., 2.])
    """
    if isinstance(x, Node):
        raise GraphTypeError(f"{describe(x)} is a variable; a constant is made of numbers")
    return as_tensor(x, name, ndim, dtype)


def _constant_of(type: Any, data: Any, name: str | None = None) -> Node:
    """A constant of a type. Raises TypeError for a value that is not of it."""
    return constant(kind_of_arrays(type, "Constant").filter(data), name)


_constant_of.__name__ = "Constant"
FUNCTIONS["make Constant"] = explained(_constant_of, "")


def kind_of_arrays(kind: Any, what: str) -> Any:
    """A type that a leaf is made of. Raises GraphTypeError for another thing."""
    if not isinstance(kind, UserType) or not is_of_arrays(kind):
        raise GraphTypeError(f"{what}: the type is one of arrays, such as T.dvector or x.type, not {kind!r}")
    return kind
