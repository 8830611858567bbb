"""The dtypes a tensor may have, NumPy's rules for combining them, and the conversion of user values to arrays of them.

In: dtype names or Python scalars. Out: dtype names. Internally a dtype is its NumPy name, a plain string; users get a
`Dtype`, a string that also compares with NumPy's dtypes and scalar types.

In: a number, a list or an array, and the required dtype. Out: a C-contiguous, aligned, writeable array of that dtype in
native byte order (the given array itself if it is one), or an error that says what is wrong. Its dtype is the object
`np.dtype(name)`, because machine code compares dtypes by address; an unpickled dtype is only equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError, GraphValueError, IntegerTooLarge
from graphc.options import options
from graphc.startup.versions import Digest

DTYPES = tuple("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
"""The supported dtypes. Family and width are read from the name, since the compile process has no NumPy to ask."""
COMPLEX = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of complex tensors, which are pairs of real ones (ops/pairs.py), and the dtypes of their parts."""
NUMPY_DTYPES = {name: np.dtype(name) for name in (*DTYPES, *COMPLEX)}
BOOL, SIGNED, UNSIGNED, FLOATS = (
    tuple([name for name in DTYPES if name.rstrip("0123456789") == family])
    for family in ("bool", "int", "uint", "float")
)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + FLOATS
DISCRETE = BOOL + INTEGERS

Scalar = bool | int | float | complex
"""A Python number, which is weak in type promotion (NEP 50)."""


_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, from a table: `dtype.name` takes microseconds."""
    return _NAMES.get(dtype) or str(dtype.name)


def check_dtype(dtype: object) -> str:
    """The name of `dtype` (a name, a NumPy dtype or a scalar type). Raises GraphTypeError if graphc has no such
    dtype."""
    try:
        name = name_of(np.dtype(dtype))  # type: ignore[call-overload]
    except TypeError as error:
        raise GraphTypeError(f"{dtype!r} is not a dtype") from error
    if name not in NUMPY_DTYPES:
        raise GraphTypeError(f"dtype {name} is not supported; graphc has {', '.join(NUMPY_DTYPES)}")
    return name


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
        dtype = _made_of(other)
        return dtype is not None and dtype == NUMPY_DTYPES[str(self)]

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
        return np.dtype(value)
    except (TypeError, ValueError):
        return None


SHOWN = {name: Dtype(name) for name in NUMPY_DTYPES}
"""The dtype objects that user code gets."""


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_inexact(dtype: str) -> bool:
    """True of floats and of complex numbers."""
    return dtype in FLOATS or dtype in COMPLEX


def lowest(dtype: str) -> str:
    """The literal that no element is below; for NaN's sake -inf where there is one."""
    if is_float(dtype):
        return "-inf"
    return "False" if dtype == "bool" else str(np.iinfo(dtype).min)


def highest(dtype: str) -> str:
    if is_float(dtype):
        return "inf"
    return "True" if dtype == "bool" else str(np.iinfo(dtype).max)


def absent(dtype: str) -> Any:
    """The value that stands for an element out of bounds: NaN, the least signed integer, the greatest unsigned one,
    or True."""
    if is_inexact(dtype):
        return np.nan
    limits = np.iinfo("uint8" if dtype == "bool" else dtype)
    return np.dtype(dtype).type(limits.min if limits.min < 0 else limits.max)


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


def promote(*operands: str | Scalar) -> str:
    """The dtype NumPy computes in for these operands: dtype names are strong, Python scalars weak (NEP 50)."""
    if all(
        isinstance(o, str | bool | float | complex) or 0 <= o < 128 for o in operands
    ):  # a larger int may overflow a dtype
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
    if dtype in FLOATS or dtype in COMPLEX:
        return dtype
    return "float32" if itemsize(dtype) < 4 else "float64"


def accumulator(dtype: str) -> str:
    """The dtype of a sum or product of elements of `dtype`: NumPy's rule, integers widen to 64 bits."""
    if dtype in FLOATS or dtype in COMPLEX:
        return dtype
    return "uint64" if dtype in UNSIGNED else "int64"


def accumulated_in(dtype: str) -> str:
    """The dtype of the accumulator of a sum or product: float64 for float32, which is as fast and more accurate."""
    return "float64" if dtype == "float32" else dtype


def can_cast_safely(source: str, target: str) -> bool:
    """True if every value of `source` is exactly representable in `target` (NumPy's "safe" casting)."""
    return bool(np.can_cast(np.dtype(source), np.dtype(target), casting="safe"))


# --- values of users --------------------------------------------------------------------------------------------------


Array = np.ndarray[Any, np.dtype[Any]]


def natural_dtype(value: Any, what: str) -> str:
    """The dtype of a value that may have any: NumPy's, except that Python floats, alone or in lists, get
    `options.floatX`."""
    array = _numbers(value, what)
    return options.floatX if array.dtype == np.float64 and _is_weak(value) else check_dtype(array.dtype)


def as_array(
    value: Any,
    dtype: str,
    what: str,
    *,
    strict: bool = False,
    allow_downcast: bool | None = None,
    allowed_by: str = "",
) -> Array:
    """`value` as an array of `dtype`, copied only if necessary.

    An array may change its dtype if every value of its own dtype is representable (NumPy's safe casting). Python
    numbers, alone or in lists, may also if they fit exactly, and Python floats may be rounded to float32 unless
    `allow_downcast` is False. allow_downcast=True permits any conversion except of NaN, infinite and too large floats
    to integers. strict: no conversion at all. Raises GraphTypeError, beginning with `what`, for anything else.
    allowed_by: the remedy that the message names.
    """
    if strict and not (isinstance(value, np.ndarray) and value.dtype == dtype):
        raise GraphTypeError(f"{what}: strictly an array of {dtype} is needed, not {_describe(value)}")
    array = _numbers(value, what)
    if (allow_downcast and array.dtype.kind != "c") or array.dtype == dtype:
        _check_defined(array, dtype, what)
        with np.errstate(all="ignore"):
            return _ready(array, np.dtype(dtype))
    source = check_dtype(array.dtype)
    if can_cast_safely(source, dtype) or (_is_weak(value) and _fits(array, dtype, allow_downcast is not False)):
        with np.errstate(over="ignore"):
            return _ready(array, np.dtype(dtype))
    convert = f"convert it with np.asarray(value).astype({dtype!r})" + (f", or {allowed_by}" if allowed_by else "")
    remedy = "np.asarray(value).real is its real part" if array.dtype.kind == "c" else convert
    raise GraphTypeError(f"{what}: {_describe(value)} cannot become {dtype} without loss; {remedy}")


def listed(sizes: Any) -> tuple[Any, ...]:
    """Sizes as a tuple. As in NumPy, a number or a 0-d array is one size."""
    if isinstance(sizes, np.ndarray):
        return tuple(np.atleast_1d(sizes))
    return tuple(sizes) if isinstance(sizes, Iterable) else (sizes,)


def _ready(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array, copied if necessary, in C order with exactly this dtype object (metadata removed)."""
    ready = np.require(array, dtype, ("C", "A", "W"))
    return ready if ready.dtype is dtype else ready.view(dtype)


def refuse_masked(value: Any, what: str) -> None:
    """Raise GraphTypeError for a masked array or element, alone or in lists: NumPy would silently drop the mask."""
    if hasattr(value, "filled"):
        raise GraphTypeError(f"{what}: a masked array has elements without a value; use its filled() or compressed()")
    if isinstance(value, list | tuple):
        for item in value:
            if type(item) not in (float, int, bool):
                refuse_masked(item, what)


def _numbers(value: Any, what: str) -> Array:
    """A number, list or array as an array of a supported dtype."""
    refuse_masked(value, what)
    if hasattr(value, "facts"):
        raise GraphTypeError(f"{what}: {value.facts()[0]} is symbolic, and a value is needed: an array or a number")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        wrong = GraphValueError if isinstance(error, ValueError) else GraphTypeError
        raise wrong(f"{what}: {_describe(value)} is not an array of numbers ({error})") from error
    if array.dtype.name in NUMPY_DTYPES:
        return array
    if array.dtype == object and not array.ndim and (state := _state_of(value)) is not None:
        return state
    if array.dtype.kind in "fc":
        raise GraphTypeError(f"{what}: dtype {array.dtype} is not supported; graphc has {', '.join(NUMPY_DTYPES)}")
    if (
        array.size
        and all(isinstance(item, int) for item in array.flat)
        and any(abs(item) >= 2**63 for item in array.flat)
    ):
        raise IntegerTooLarge(f"{what}: {_describe(value)} has integers that 64 bits cannot hold")
    raise GraphTypeError(f"{what}: {_describe(value)} is not an array of numbers")


def _state_of(value: Any) -> Array | None:
    """A random state derived from a NumPy generator; None for anything else."""
    state = getattr(getattr(value, "bit_generator", None), "state", None)
    state = value.get_state() if state is None and hasattr(value, "get_state") else state
    if state is None:
        return None
    digest = Digest()
    digest.add(import_module("pickle").dumps(state, 4))
    return np.array([int(digest.digits()[:16], 16), 0], np.uint64)


def _check_defined(array: Array, dtype: str, what: str) -> None:
    """Raise GraphValueError if a float would convert to an integer as the processor likes: NaN, infinite, too large."""
    if array.dtype.kind != "f" or dtype not in INTEGERS:
        return
    limits = np.iinfo(dtype)
    undefined = array[~((array >= limits.min) & (array < float(limits.max + 1)))]
    if undefined.size:
        raise GraphValueError(f"{what}: {undefined.flat[0]} is no {dtype}, whatever loss is allowed")


def _is_weak(value: Any) -> bool:
    """True if `value` is a Python number or a list of such, and has no dtype of its own."""
    if isinstance(value, Sequence):
        return all(map(_is_weak, value))
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def _fits(array: Array, dtype: str, may_round: bool) -> bool:
    """True if the elements keep their values in `dtype`, up to rounding if `may_round`."""
    if may_round and dtype in FLOATS:
        return True
    with np.errstate(all="ignore"):
        return bool(np.array_equal(array.astype(dtype), array, equal_nan=array.dtype.kind == "f"))


def _describe(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of {value.dtype}" if value.ndim else f"a number of {value.dtype}"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:40] + '…'} of type {type(value).__name__}"


def read_only(value: Array) -> Array:
    """A view that cannot be written to."""
    view = value.view()
    view.flags.writeable = False
    return view
