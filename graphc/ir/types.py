"""The values that a node holds besides other nodes: types as users see them (Theano's `TensorType`), tags, constant
arrays; the table of interned nodes; and what an op says of its use to tests and rules.

In: `Type` of nodes, `TensorType` and the constructors (`dmatrix`), all subclasses of `UserType`. Out: equality by dtype
and broadcasting pattern, fresh variables, values checked and compared.

In: an array; keys, nodes. Out: an immutable copy (`FrozenArray`) that is compared and hashed by its contents, of which
those of a large array are read once, for their digest; the one node of a key, while it is referenced (`Interned`).
`watch` installs a callback for each node made by changing the table's class; without one, `make` pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from math import copysign
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from graphc.arrays.dtypes import Array, as_array, is_float, name_of
from graphc.errors import GraphTypeError
from graphc.ir.symbol import FUNCTIONS
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record
from graphc.startup.versions import digest_of

# --- types as users see them ------------------------------------------------------------------------------------------


class UserType:
    """A dtype and a shape whose sizes may be unknown. A type of the user's own without these makes no variables."""

    __slots__ = ()

    dtype: Any
    shape: Any

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, True if its size is known to be 1."""
        return tuple(size == 1 if isinstance(size, int) else False for size in self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserType):
            return NotImplemented
        if not (is_of_arrays(self) and is_of_arrays(other)):
            return self is other
        return bool(self.dtype == other.dtype) and self.broadcastable == other.broadcastable

    def __hash__(self) -> int:
        return hash((self.dtype, self.broadcastable)) if is_of_arrays(self) else id(self)

    def __call__(self, name: str | None = None) -> Any:
        """A fresh variable of this type."""
        return self.make_variable(name)

    def make_variable(self, name: str | None = None) -> Any:
        """A fresh variable of this dtype and broadcasting pattern. Other sizes are not kept, since types are equal
        without them: an op whose result is declared as `x.type()` may return other sizes than those of `x`. Raises
        GraphTypeError for a type that does not describe arrays."""
        if not is_of_arrays(self):
            raise GraphTypeError(_not_of_arrays(self))
        sizes = tuple(1 if one else None for one in self.broadcastable)
        return FUNCTIONS["variable"](self.dtype, sizes, name)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """NumPy's dtype."""
        return np.dtype(str(self.dtype))

    if not TYPE_CHECKING:  # mypy is to report unknown attributes

        def __getattr__(self, name: str) -> Any:
            said = _not_of_arrays(self) if name in ("dtype", "shape", "broadcastable", "numpy_dtype") else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{said and ': '}{said}")

    def clone(self, dtype: Any = None, broadcastable: Sequence[bool] | None = None) -> Any:
        """A type of another dtype or broadcasting pattern."""
        kept = tuple(size if isinstance(size, int) else None for size in self.shape)
        sizes = kept if broadcastable is None else tuple(1 if one else None for one in broadcastable)
        return FUNCTIONS["tensor_type"](self.dtype if dtype is None else dtype, sizes)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Array:
        """`value` as an array of this type. Raises TypeError if it cannot be one."""
        what = f"a value of type {self}"
        allowed_by = "call filter with allow_downcast=True"
        array = as_array(
            value, str(self.dtype), what, strict=strict, allow_downcast=allow_downcast, allowed_by=allowed_by
        )
        wrong = array.ndim != len(self.shape) or any(
            isinstance(size, int) and size != actual for size, actual in zip(self.shape, array.shape, strict=True)
        )
        if wrong:
            raise TypeError(f"{what}: its shape is {array.shape}")
        return array

    def filter_variable(self, other: Any, allow_convert: bool = True) -> Any:
        """`other`, a tensor or a value, as a tensor of this type, possibly with more axes of size 1. Raises TypeError
        if it is neither."""
        tensor = FUNCTIONS["as_tensor"](other if hasattr(other, "owner") else self.filter(other))
        pairs = zip(self.broadcastable, tensor.broadcastable, strict=False)
        fits = tensor.dtype == self.dtype and tensor.ndim == len(self.shape) and all(ours <= its for ours, its in pairs)
        if not fits or not (allow_convert or tensor.type == self):
            raise TypeError(f"{tensor} of type {tensor.type} is no tensor of type {self}")
        return tensor

    def is_valid_value(self, value: Any) -> bool:
        """True if `filter(value, strict=True)` accepts the value."""
        try:
            self.filter(value, strict=True)
        except (TypeError, ValueError):
            return False
        return True

    def values_eq(self, a: Any, b: Any) -> bool:
        """True if two values have equal shapes and elements, NaN equal to NaN. A class without a dtype compares with
        `==`."""
        if not hasattr(self, "dtype"):
            return bool(a == b)
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b, equal_nan=is_float(str(self.dtype))))

    def values_eq_approx(self, a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
        """True if two values are equal up to rounding: rtol and atol are 1e-5 for float64, 1e-4 for float32."""
        if not hasattr(self, "dtype") or np.shape(a) != np.shape(b) or not is_float(str(self.dtype)):
            return self.values_eq(a, b)
        near = 1e-5 if self.dtype == "float64" else 1e-4
        return bool(np.allclose(a, b, near if rtol is None else rtol, near if atol is None else atol, equal_nan=True))


def is_of_arrays(type_: Any) -> bool:
    """True if a type has a dtype and a shape. A type of the user's own may have neither."""
    return hasattr(type_, "dtype") and hasattr(type_, "shape")


def _not_of_arrays(type_: UserType) -> str:
    return (
        f"type {type(type_).__name__} has no dtype and no shape: variables of other types than arrays of numbers are "
        "not in graphc; what an op needs besides, it can hold itself"
    )


class Scratchpad:
    """A namespace for user attributes (`x.tag`)."""

    def clear(self) -> None:
        """Remove all attributes."""
        vars(self).clear()

    def update(self, other: Scratchpad) -> None:
        """Copy the attributes of another one into this one."""
        vars(self).update(vars(other))

    def copied(self) -> Scratchpad:
        """A new Scratchpad with the same attributes."""
        new = Scratchpad()
        new.update(self)
        return new

    def __repr__(self) -> str:
        return f"scratchpad{vars(self)}"


# --- constants and the table of nodes ---------------------------------------------------------------------------------


LARGE_BYTES = 2**16
"""A larger array is compared by the digest of its bytes."""


@record(eq=False)
class FrozenArray:
    """The value of a constant, compared and hashed by dtype, shape and bits. `key` holds the bits, or their digest."""

    value: Array
    key: tuple[str, tuple[int, ...], bytes]

    @classmethod
    def of(cls, value: Array) -> FrozenArray:
        dtype = np.dtype(
            name_of(value.dtype)
        )  # NumPy's own object, which native code knows; a pickled array has another
        frozen = np.array(value, dtype, order="C", copy=True).view(dtype)
        frozen.flags.writeable = False
        large = frozen.nbytes > LARGE_BYTES
        bits = digest_of(frozen.reshape(-1).view(np.uint8).data).encode() if large else frozen.tobytes()
        return cls(frozen, (name_of(frozen.dtype), frozen.shape, bits))

    @property
    def digest(self) -> str | None:
        """The hexadecimal digest of a large array's bits; None for a small array."""
        return self.key[2].decode() if self.value.nbytes > LARGE_BYTES else None

    def __repr__(self) -> str:
        return f"FrozenArray({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def frozen_number(value: float, dtype: str | None) -> FrozenArray:
    """The value of a constant that is one of Python's numbers, which programs repeat."""
    return _frozen_number(value, dtype, copysign(1.0, value) if type(value) is float else 1.0)  # 0.0 equals -0.0


@lru_cache(maxsize=1024, typed=True)
def _frozen_number(value: float, dtype: str | None, sign: float) -> FrozenArray:
    return FrozenArray.of(np.asarray(value, dtype=dtype))


Note = Callable[[Any], None]


class Interned(WeakValueDictionary[Hashable, Any]):
    """Nodes by key, weakly referenced. `make` uses `get`, which reports to the callback; all others use `find`."""

    note: Note | None = None
    find = WeakValueDictionary.get

    def watch(self, note: Note | None) -> Note | None:
        """Call `note` with each node that `make` returns, new or interned before; None removes the callback. Returns
        the previous one."""
        before, self.note = self.note, note
        self.__class__ = Interned if note is None else Watched
        return before


class Watched(Interned):
    """The table while a callback is installed."""

    def get(self, key: Hashable, default: Any = None) -> Any:
        value = self.find(key, default)
        if value is not None and self.note is not None:
            self.note(value)
        return value

    def __setitem__(self, key: Hashable, node: Any) -> None:
        super().__setitem__(key, node)
        if self.note is not None:
            self.note(node)


# --- samples and laws of ops ------------------------------------------------------------------------------------------
# In: how to draw arguments and build a node of them. Out: records that an op carries (node.py).


@record()
class Argument:
    """An argument of a sample, drawn at random: its shape, category of dtype, and the interval of its elements."""

    shape: tuple[int, ...]
    category: Literal["float", "int", "bool", "index"] = "float"
    low: float = -2.0
    high: float = 2.0


@record()
class Sample:
    """One application of an op that tests check: value, dtype, layouts, and gradients up to second order if
    differentiable."""

    name: str
    build: Callable[..., Any]
    args: tuple[Argument, ...]
    differentiable: bool = True


Row: TypeAlias = "tuple[str, Callable[..., Any], *tuple[Argument | tuple[int, ...], ...]]"
"""A name, a function, and its arguments; a shape stands for an array of floats."""


class Samples(Sequence[Sample]):
    """A sequence of samples built on first access: programs never look at them, and a start would build a thousand."""

    def __init__(self, build: Callable[[], Iterable[Sample]]) -> None:
        self._build = build
        self._made: tuple[Sample, ...] | None = None

    def _all(self) -> tuple[Sample, ...]:
        if self._made is None:
            self._made = tuple(self._build())
        return self._made

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, position: Any) -> Any:
        return self._all()[position]


def samples(*rows: Row, others: Sequence[Row] = ()) -> Samples:
    """Samples as rows of a table. others: those without a derivative."""

    def build() -> Iterable[Sample]:
        for differentiable, own in ((True, rows), (False, others)):
            for name, function, *args in own:
                arguments = tuple([arg if isinstance(arg, Argument) else Argument(arg) for arg in args])
                yield Sample(name, function, arguments, differentiable)

    return Samples(build)


@record()
class Laws:
    """Algebraic laws of an op. Elements are numbers; op names refer to `OPS`.

    identity: f(x, e) = x. left_identity: f(e, x) = x. zero: f(x, z) = z (for real numbers; for IEEE numbers only where
    the rules say so). inverse: g with g(f(x)) = x. involution: f(f(x)) = x. idempotent: f(f(x)) = f(x).
    """

    identity: float | None = None
    left_identity: float | None = None
    zero: float | None = None
    inverse: str | None = None
    commutative: bool = False
    involution: bool = False
    idempotent: bool = False


# --- parts of nodes ---------------------------------------------------------------------------------------------------


@record()
class Guard:
    """A condition on sizes that is checked before its node runs. `message` may contain {left} and {right}, which become
    the values; it may be a lazy text (`lazy_text`). `error` selects the class of the error."""

    left: Any  # a number or a node, as `right`
    relation: Literal["==", "<=", "<"]
    right: Any
    message: str
    error: Literal["shape", "index", "assertion", "value"] = "shape"


class Lowering:
    """The base class of the records in lowering.py, which describe an op as loops."""

    __slots__ = ()


class Body:
    """A graph inside a node: results over parameters and nothing else. Interned, like nodes: equal bodies are one
    object. Values from outside are parameters too, bound to the node's operands (`body.close`).

    checks: of a rewritten body, the guards it had before it was rewritten; None otherwise. verified: it has passed
    `ir.verify`.
    """

    __slots__ = ("__weakref__", "checks", "params", "results", "verified")

    def __init__(
        self, params: tuple[Any, ...], results: tuple[Any, ...], checks: tuple[Guard, ...] | None = None
    ) -> None:
        self.params, self.results, self.checks, self.verified = params, results, checks, False

    def __repr__(self) -> str:
        return f"<body of {len(self.params)} parameters and {len(self.results)} results>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return HOOKS.reduced(self)
