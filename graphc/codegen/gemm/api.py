"""Matrix products for generated source, by pointer and element strides.

In: names of PROTOTYPES that a source calls, whose definitions are in dispatch.py. Out: `blas_symbols`, the addresses
that their objects need when they are loaded; PYTHON_SHIMS, their meaning over flat arrays.

    gc_gemm_<t>(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col)
        c[i, j] = alpha * sum_p a[i, p] * b[p, j] + beta * c[i, j]          i < m, j < n, p < k
    gc_gemv_<t>(m, n, alpha, a, a_row, a_col, x, x_step, beta, y, y_step)
        y[i] = alpha * sum_j a[i, j] * x[j] + beta * y[i]                   i < m, j < n
    gc_batched_gemm_<t>(count, m, n, k, alpha, a, a_batch, a_row, a_col, b, b_batch, b_row, b_col,
                        beta, c, c_batch, c_row, c_col)
        a gc_gemm for each of count matrices that many elements apart; a batch stride 0 repeats one matrix

    gc_conv_<t>(images, groups, outs, channels, x and its steps, w and its steps, y and its steps, and for each of three
                spatial axes size, taps, count, stride, dilation, spread, low)
        y[n, g, o, p...] = sum of x[n, g, c, i...] * w[g, o, c, k...] as the op of graphc/ops/conv.py says

t is f64, f32, i64 or i32. Element (i, j) of a stands at a[i * a_row + j * a_col]: a transposed or sliced operand needs
no copy. c must not overlap a or b. Where beta is 0, c is written but its old values do not count, NaN or not; all else
is IEEE arithmetic, or wraps. Each returns 0.

Large products of matrices may go to the BLAS that NumPy itself has loaded, small ones, and layouts that no BLAS takes,
to loops of their own; so do those with a vector (dispatch.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]
from numpy.lib.stride_tricks import as_strided

from graphc.codegen.threads.chunking import SETTINGS_WORDS
from graphc.ops.conv import MOST_SPATIAL, convolve_arrays

ROUTINES = ("sgemm", "dgemm", "sgemv", "dgemv", "ssyrk", "dsyrk")
"""The first entries of the table of addresses behind the symbol gc_blas; 0 where there is no BLAS."""
DEFERRED = ("blocks f32", "blocks f64", "parallel")
"""Functions of our own that are loaded at first need (lazy.py), 0 before that and where there are none."""
FINDERS = tuple(f"find {name}" for name in DEFERRED)
"""What is to be called where one of DEFERRED is 0 and needed; 0 where that has been done."""
ENTRIES = (*ROUTINES, *DEFERRED, *FINDERS)

Flat = np.ndarray[Any, np.dtype[Any]]

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32"}
"""By suffix; an unsigned product has the bits of the signed one."""


ALONG = ("size", "taps", "count", "stride", "dilation", "spread", "low")
"""What a convolution is told of each spatial axis."""
ARGUMENTS = {
    "gemm": "m n k alpha a a_row a_col b b_row b_col beta c c_row c_col",
    "gemv": "m n alpha a a_row a_col x x_step beta y y_step",
    "batched_gemm": "count m n k alpha a a_batch a_row a_col b b_batch b_row b_col beta c c_batch c_row c_col",
    "conv": " ".join(
        (
            "images groups outs channels",
            "x x_n x_g x_c x_0 x_1 x_2 w w_g w_o w_c w_0 w_1 w_2 y y_n y_g y_o y_0 y_1 y_2",
            *(f"{word}_{axis}" for axis in range(MOST_SPATIAL) for word in ALONG),
        )
    ),
}
"""Those of each routine, in order."""


def _kind(argument: str, dtype: str) -> str:
    if argument in ("alpha", "beta"):
        return dtype
    return f"{dtype}*" if argument in ("a", "b", "c", "x", "y", "w") else "int64"


PROTOTYPES: dict[str, tuple[tuple[str, ...], str]] = {
    f"gc_{routine}_{suffix}": (tuple(_kind(argument, dtype) for argument in arguments.split()), "int64")
    for suffix, dtype in DTYPES.items()
    for routine, arguments in ARGUMENTS.items()
}
"""By name: the types of the arguments, "*" after those that are pointers, and of the result."""


def blocks_name(suffix: str) -> str:
    """The symbol of large products of floats (blocked.py)."""
    return f"gc_blocks_{suffix}"


def free_name(suffix: str) -> str:
    """The symbol of the function that gives back the memory that large products keep."""
    return f"gc_blocks_free_{suffix}"


def product_exports(name: str) -> tuple[str, ...]:
    """The symbols of the object of a product: its own, and what gives back the memory that it keeps, if it does."""
    routine, _, suffix = name.removeprefix("gc_").rpartition("_")
    return (name, free_name(suffix)) if routine == "conv" and suffix in ("f64", "f32") else (name,)


CALLED = {"batched_gemm": "gemm"}
"""What products call in objects of their own."""
VECTORS = {suffix: SETTINGS_WORDS + place for place, suffix in enumerate(DTYPES)}
"""The words of the products' settings, after those of threads/chunking.py, that hold the addresses of the products with
a vector, which those of matrices need where one has a single row or column; 0 before that is so for the first time."""
VECTOR_FINDERS = {suffix: word + len(VECTORS) for suffix, word in VECTORS.items()}
"""The words that hold what is to be called then; 0 where that has been done."""
PRODUCT_WORDS = SETTINGS_WORDS + 2 * len(VECTORS)


def vector_name(suffix: str) -> str:
    """The symbol of a product with a vector."""
    return f"gc_gemv_{suffix}"


def with_callees(name: str) -> tuple[str, ...]:
    """A product and those that it calls, each after all that it calls itself."""
    routine, _, suffix = name.removeprefix("gc_").rpartition("_")
    called = CALLED.get(routine)
    return (*(with_callees(f"gc_{called}_{suffix}") if called else ()), name)


@cache
def blas_symbols() -> Mapping[str, int]:
    """The addresses that an object of a product needs at load, besides those of its settings and of what it calls.

    SciPy is imported only where NumPy's own BLAS has no Fortran interface.
    """
    return {"gc_blas": ctypes.addressof(blas_table())}


@cache
def blas_table() -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of ENTRIES; those of our own functions are 0 until they are set."""
    return (ctypes.c_void_p * len(ENTRIES))(*find_routines(ROUTINES)[0])


def find_routines(names: Sequence[str]) -> tuple[list[int], int]:
    """The addresses of routines of BLAS or LAPACK, and the bytes of their integers: NumPy's, or SciPy's where NumPy's
    library has not all of them. ([], 8) where they are not found."""
    return routines_of_numpy(names) or routines_of_scipy(names) or ([], 8)


def routines_of_numpy(names: Sequence[str]) -> tuple[list[int], int] | None:
    """The routines of the library that NumPy is linked with.

    Its own extension module is asked, which answers for all that it has loaded. NumPy's wheels prefix the names of
    their OpenBLAS and mark 64-bit integers; other builds have plain or suffixed names.
    """
    library = ctypes.CDLL(_multiarray_umath.__file__)
    for spelling in ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}64_", "{}_"):
        spelt = [spelling.format(name) for name in names]
        if all(hasattr(library, name) for name in spelt):
            return [
                ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in spelt
            ], 8 if "64" in spelling else 4
    return None


def routines_of_scipy(names: Sequence[str]) -> tuple[list[int], int] | None:
    """SciPy's own routines, by the capsules that Cython exports; None where there is no SciPy.

    The imports stand here because they cost 0.2 s, and hardly any installation needs them.
    """
    try:
        capsules = import_module("scipy.linalg.cython_lapack").__pyx_capi__
        capsules = {**capsules, **import_module("scipy.linalg.cython_blas").__pyx_capi__}
    except ImportError:
        return None
    get_name, get_pointer = ctypes.pythonapi["PyCapsule_GetName"], ctypes.pythonapi["PyCapsule_GetPointer"]
    get_name.argtypes, get_name.restype = (ctypes.py_object,), ctypes.c_char_p
    get_pointer.argtypes, get_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return [get_pointer(capsules[name], get_name(capsules[name])) for name in names], 4


OPERANDS = {
    "gemm": {"a": "m k", "b": "k n", "c": "m n"},
    "gemv": {"a": "m n", "x": "n", "y": "m"},
    "batched_gemm": {"a": "count m k", "b": "count k n", "c": "count m n"},
}
"""The sizes of two factors and of what their product is added to."""


def _product(routine: str, scalar: Callable[[float], np.number[Any]], *values: Any) -> int:
    given = dict(zip(ARGUMENTS[routine].split(), values, strict=True))

    def view(name: str, sizes: str) -> Flat:
        flat = given[name]
        steps = [step * flat.itemsize for argument, step in given.items() if argument.startswith(f"{name}_")]
        return as_strided(flat, [given[size] for size in sizes.split()], steps)

    left, right, result = (view(name, sizes) for name, sizes in OPERANDS[routine].items())
    alpha, beta = scalar(given["alpha"]), scalar(given["beta"])
    product = alpha * (left @ right)
    result[...] = product if beta == 0 else product + beta * result
    return 0


def _convolution(*values: Any) -> int:
    given = dict(zip(ARGUMENTS["conv"].split(), values, strict=True))

    def spatial(word: str) -> list[int]:
        return [int(given[f"{word}_{axis}"]) for axis in range(MOST_SPATIAL)]

    def view(name: str, letters: str, sizes: Sequence[int]) -> Flat:
        flat, places = given[name], (*letters, *map(str, range(MOST_SPATIAL)))
        return as_strided(flat, sizes, [int(given[f"{name}_{place}"]) * flat.itemsize for place in places])

    images, groups, outs, channels = (int(given[name]) for name in ("images", "groups", "outs", "channels"))
    x = view("x", "ngc", [images, groups, channels, *spatial("size")])
    w = view("w", "goc", [groups, outs, channels, *spatial("taps")])
    y = view("y", "ngo", [images, groups, outs, *spatial("count")])
    y[...] = 0
    words = ("size", "count", "stride", "dilation", "spread", "low")
    convolve_arrays(x, w, y, list(zip(*map(spatial, words), strict=True)))
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    f"gc_{routine}_{suffix}": _convolution if routine == "conv" else partial(_product, routine, np.dtype(dtype).type)
    for suffix, dtype in DTYPES.items()
    for routine in ARGUMENTS
}
"""The functions for generated source under CPython. A pointer is a flat array whose first element it points to (`x[i
* n :]`)."""
