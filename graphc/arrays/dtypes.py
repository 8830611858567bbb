"""The dtypes a tensor may have, and NumPy's rules for combining them.

In: dtype names or Python scalars. Out: dtype names. A dtype is always its NumPy name, a plain string; programs that ask
a tensor for its dtype get one that is compared with NumPy's dtypes and scalar types, too (`Dtype`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError

DTYPES = tuple("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
"""The one list of dtypes. A name says the kind of numbers and their bits: the compile process has no NumPy to ask."""
NUMPY_DTYPES = {name: np.dtype(name) for name in DTYPES}
BOOL, SIGNED, UNSIGNED, FLOATS = (
    tuple([name for name in DTYPES if name.rstrip("0123456789") == kind]) for kind in ("bool", "int", "uint", "float")
)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + FLOATS
DISCRETE = BOOL + INTEGERS

Scalar = bool | int | float
"""A Python number: it takes part in promotion by its kind only (NEP 50)."""


_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype; NumPy takes microseconds to put it together."""
    return _NAMES.get(dtype) or str(dtype.name)


def check_dtype(dtype: object) -> str:
    """The name of `dtype` (a name, a NumPy dtype or a scalar type); an error where graphc has no such dtype."""
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError as error:
        raise GraphTypeError(f"{dtype!r} is not a dtype") from error
    if name not in DTYPES:
        raise GraphTypeError(f"dtype {name} is not supported; graphc has {', '.join(DTYPES)}")
    return str(name)


class Dtype(str):
    """The name of a dtype, as Theano's programs take it, that answers as NumPy's dtype does.

    It equals the string, NumPy's dtype and whatever NumPy makes that dtype of: `np.float32`, `float`, `"f4"`. It has
    the attributes of the dtype (`kind`, `itemsize`, `type`), but for those that strings have, and the hash of the
    string: in a dict of strings it is found, in a dict of NumPy's dtypes it is not.

        >>> T.fmatrix().dtype == np.float32, T.fmatrix().dtype.startswith("float")
        (True, True)
    """

    __slots__ = ()

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            return True
        if not isinstance(other, (str, type, np.dtype)):
            return NotImplemented
        made = _made_of(other)
        return made is not None and made == NUMPY_DTYPES[str(self)]

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __getattr__(self, name: str) -> Any:
        return getattr(NUMPY_DTYPES[str(self)], name)

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[Dtype], tuple[str]]:
        return Dtype, (str(self),)


@lru_cache(maxsize=256)
def _made_of(kind: Any) -> np.dtype[Any] | None:
    """The dtype that NumPy makes of a name or a type, or None."""
    try:
        made: np.dtype[Any] = np.dtype(kind)
        return made
    except (TypeError, ValueError):
        return None


SHOWN = {name: Dtype(name) for name in DTYPES}
"""What programs get that ask for a dtype."""


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


def promote(*operands: str | Scalar) -> str:
    """The dtype NumPy computes in for these operands: dtype names are strong, Python scalars weak (NEP 50)."""
    if all(isinstance(o, str | bool | float) or 0 <= o < 128 for o in operands):  # an int may be one too many elsewhere
        return _promote(tuple(o if isinstance(o, str) else type(o) for o in operands))
    return _result_type(*operands)


@lru_cache(maxsize=512)
def _promote(kinds: tuple[str | type[Scalar], ...]) -> str:
    """`promote` of dtypes and types of Python scalars."""
    return _result_type(*(kind if isinstance(kind, str) else kind(0) for kind in kinds))


def _result_type(*operands: str | Scalar) -> str:
    try:
        result = np.result_type(*(np.dtype(o) if isinstance(o, str) else o for o in operands))
    except OverflowError as error:
        raise GraphTypeError(f"{error} (operands {', '.join(map(str, operands))})") from error
    return check_dtype(result)


def fits(value: Scalar, dtype: str) -> bool:
    """Whether the Python integer `value` can be held by `dtype` without wrapping."""
    if dtype in INTEGERS and isinstance(value, int):
        info = np.iinfo(dtype)
        return int(info.min) <= value <= int(info.max)
    return True


def floating(dtype: str) -> str:
    """The float dtype in which a function like exp computes for an argument of `dtype`.

    NumPy's rule, but where NumPy has float16 (8-bit arguments) graphc has float32.
    """
    if dtype in FLOATS:
        return dtype
    return "float32" if itemsize(dtype) < 4 else "float64"


def accumulator(dtype: str) -> str:
    """The dtype of the sum or product of elements of `dtype`: NumPy's rule, integers widen to 64 bits."""
    if dtype in FLOATS:
        return dtype
    return "uint64" if dtype in UNSIGNED else "int64"


def accumulated_in(dtype: str) -> str:
    """The dtype in which sums and products are carried: float64 for float32, which costs nothing and loses nothing."""
    return "float64" if dtype == "float32" else dtype


def can_cast_safely(source: str, target: str) -> bool:
    """Whether every value of `source` is exactly a value of `target` (NumPy's "safe" casting)."""
    return bool(np.can_cast(np.dtype(source), np.dtype(target), casting="safe"))
