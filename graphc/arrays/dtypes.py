"""The dtypes a tensor may have, and NumPy's rules for combining them.

In: dtype names or Python scalars. Out: dtype names. Internally a dtype is its NumPy name, a plain string; users get a
`Dtype`, a string that also compares with NumPy's dtypes and scalar types.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError

DTYPES = tuple("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
"""The supported dtypes. Family and width are read from the name, since the compile process has no NumPy to ask."""
NUMPY_DTYPES = {name: np.dtype(name) for name in DTYPES}
BOOL, SIGNED, UNSIGNED, FLOATS = (
    tuple([name for name in DTYPES if name.rstrip("0123456789") == family])
    for family in ("bool", "int", "uint", "float")
)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + FLOATS
DISCRETE = BOOL + INTEGERS

Scalar = bool | int | float
"""A Python number, which is weak in type promotion (NEP 50)."""


_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, from a table: `dtype.name` takes microseconds."""
    return _NAMES.get(dtype) or str(dtype.name)


def check_dtype(dtype: object) -> str:
    """The name of `dtype` (a name, a NumPy dtype or a scalar type). Raises GraphTypeError if graphc has no such
    dtype."""
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError as error:
        raise GraphTypeError(f"{dtype!r} is not a dtype") from error
    if name not in DTYPES:
        raise GraphTypeError(f"dtype {name} is not supported; graphc has {', '.join(DTYPES)}")
    return str(name)


class Dtype(str):
    """A dtype's name as Theano's programs expect it, which also answers as NumPy's dtype does.

    It equals the string, NumPy's dtype, and anything NumPy converts to that dtype: `np.float32`, `float`, `"f4"`. It
    has the attributes of the dtype (`kind`, `itemsize`, `type`) except those that strings have, and the hash of the
    string: a dict of strings finds it, a dict of NumPy dtypes does not.

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
def _made_of(value: Any) -> np.dtype[Any] | None:
    """The dtype that NumPy makes of a name or a type; None if it makes none."""
    try:
        made: np.dtype[Any] = np.dtype(value)
        return made
    except (TypeError, ValueError):
        return None


SHOWN = {name: Dtype(name) for name in DTYPES}
"""The dtype objects that user code gets."""


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def lowest(dtype: str) -> str:
    """The literal that no element is below; for NaN's sake -inf where there is one."""
    if is_float(dtype):
        return "-inf"
    return "False" if dtype == "bool" else str(np.iinfo(dtype).min)


def highest(dtype: str) -> str:
    if is_float(dtype):
        return "inf"
    return "True" if dtype == "bool" else str(np.iinfo(dtype).max)


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


def promote(*operands: str | Scalar) -> str:
    """The dtype NumPy computes in for these operands: dtype names are strong, Python scalars weak (NEP 50)."""
    if all(isinstance(o, str | bool | float) or 0 <= o < 128 for o in operands):  # a larger int may overflow a dtype
        return _promote(tuple(o if isinstance(o, str) else type(o) for o in operands))
    return _result_type(*operands)


@lru_cache(maxsize=512)
def _promote(operands: tuple[str | type[Scalar], ...]) -> str:
    """`promote`, cached, of dtypes and types of Python scalars."""
    return _result_type(*(each if isinstance(each, str) else each(0) for each in operands))


def _result_type(*operands: str | Scalar) -> str:
    try:
        result = np.result_type(*(np.dtype(o) if isinstance(o, str) else o for o in operands))
    except OverflowError as error:
        raise GraphTypeError(f"{error} (operands {', '.join(map(str, operands))})") from error
    return check_dtype(result)


def fits(value: Scalar, dtype: str) -> bool:
    """False if `dtype` is an integer dtype that would wrap the integer `value`; True otherwise."""
    if dtype in INTEGERS and isinstance(value, int):
        info = np.iinfo(dtype)
        return int(info.min) <= value <= int(info.max)
    return True


def floating(dtype: str) -> str:
    """The float dtype in which a function like exp computes for an argument of `dtype`.

    NumPy's rule, except that float32 replaces float16 (8-bit arguments).
    """
    if dtype in FLOATS:
        return dtype
    return "float32" if itemsize(dtype) < 4 else "float64"


def accumulator(dtype: str) -> str:
    """The dtype of a sum or product of elements of `dtype`: NumPy's rule, integers widen to 64 bits."""
    if dtype in FLOATS:
        return dtype
    return "uint64" if dtype in UNSIGNED else "int64"


def accumulated_in(dtype: str) -> str:
    """The dtype of the accumulator of a sum or product: float64 for float32, which is as fast and more accurate."""
    return "float64" if dtype == "float32" else dtype


def can_cast_safely(source: str, target: str) -> bool:
    """True if every value of `source` is exactly representable in `target` (NumPy's "safe" casting)."""
    return bool(np.can_cast(np.dtype(source), np.dtype(target), casting="safe"))
