"""Matrix products for generated source, by pointer and element strides; their symbols, and parts that are loaded late.

In: names that a source calls, whose definitions are in dispatch.py. Out: PROTOTYPES, their types; PYTHON_SHIMS, their
meaning over flat arrays; the symbols of the objects that they need; `blas_symbols`, the addresses of these that are not
ours. dispatch.py chooses by size among small.py (and batches), gemv.py (products with a vector) and blocked.py (large
products), all made of tiles.py, which also has the words that threads get.

    gc_gemm_<t>(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, c_col)
        c[i, j] = alpha * sum_p a[i, p] * b[p, j] + beta * c[i, j]          i < m, j < n, p < k
    gc_gemv_<t>(m, n, alpha, a, a_row, a_col, x, x_step, beta, y, y_step)
        y[i] = alpha * sum_j a[i, j] * x[j] + beta * y[i]                   i < m, j < n
    gc_batched_gemm_<t>(count, m, n, k, alpha, a, a_batch, a_row, a_col, b, b_batch, b_row, b_col,
                        beta, c, c_batch, c_row, c_col)
        a gc_gemm for each of count matrices that many elements apart; a batch stride 0 repeats one matrix

t is f64, f32, i64 or i32. Element (i, j) of a stands at a[i * a_row + j * a_col]: a transposed or sliced operand needs
no copy. c must not overlap a or b. Where beta is 0, c is written but its old values do not count, NaN or not; all else
is IEEE arithmetic, or wraps. Each returns 0. Large products of matrices may go to the BLAS that NumPy itself has
loaded, small ones, and layouts that no BLAS takes, to loops of their own; so do those with a vector.

Large products and the pool of threads are loaded when machine code first needs them. In: functions that make and load
a part (`defer`). Out: its address in `blas_table`. Beside the entry of each there is the address of a function of
Python that fills it: so what is seldom needed costs nothing before. Machine code calls that, looks again, and does
without where there is nothing still. It never depends on how Python's function ends.
"""

from __future__ import annotations

import ctypes
import warnings
from _thread import interrupt_main, start_new_thread
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]
from numpy.lib.stride_tricks import as_strided

from graphc.codegen.link.image import load
from graphc.codegen.threads.settings import PARALLEL, SETTINGS_WORDS, Pool
from graphc.startup.hooks import once
from graphc.startup.process import PROCESS

ROUTINES = ("sgemm", "dgemm", "sgemv", "dgemv", "ssyrk", "dsyrk")
"""The first entries of the table of addresses behind the symbol gc_blas; 0 where there is no BLAS."""
DEFERRED = ("blocks f32", "blocks f64", "parallel")
"""Functions of our own that are loaded at first need, 0 before that and where there are none."""
FINDERS = tuple(f"find {name}" for name in DEFERRED)
"""Addresses of the functions to call when one of DEFERRED is needed and still 0; 0 after that."""
ENTRIES = (*ROUTINES, *DEFERRED, *FINDERS)

Flat = np.ndarray[Any, np.dtype[Any]]

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32"}
"""By suffix; an unsigned product has the bits of the signed one."""


def blocks_name(suffix: str) -> str:
    """The symbol of large products of floats (blocked.py)."""
    return f"gc_blocks_{suffix}"


def free_name(suffix: str) -> str:
    """The symbol of the function that gives back the memory that large products keep."""
    return f"gc_blocks_free_{suffix}"


CALLED = {"batched_gemm": "gemm"}
"""Functions that products call in objects of their own."""
VECTORS = {suffix: SETTINGS_WORDS + place for place, suffix in enumerate(DTYPES)}
"""The words of the products' settings, after those of threads/settings.py, that hold the addresses of the products with
a vector, which those of matrices need where one has a single row or column; 0 before that is so for the first time."""
VECTOR_FINDERS = {suffix: word + len(VECTORS) for suffix, word in VECTORS.items()}
"""The words that hold what is to be called then; 0 where that has been done."""
PRODUCT_WORDS = SETTINGS_WORDS + 2 * len(VECTORS)


LARGE_USERS = ("gc_gemm_", "gc_lapack_cholesky_f", "gc_lapack_triangular_solve_f", "gc_lapack_lu_f")
"""The beginnings of the names of routines that use large products."""


def vector_name(suffix: str) -> str:
    """The symbol of a product with a vector."""
    return f"gc_gemv_{suffix}"


def with_callees(name: str) -> tuple[str, ...]:
    """A product and those that it calls, each after all that it calls itself."""
    routine, _, suffix = name.removeprefix("gc_").rpartition("_")
    callee = CALLED.get(routine)
    return (*(with_callees(f"gc_{callee}_{suffix}") if callee else ()), name)


@once
def blas_symbols() -> Mapping[str, int]:
    """The addresses that an object of a product needs at load, besides those of its settings and of what it calls.

    SciPy is imported only where NumPy's own BLAS has no Fortran interface.
    """
    return {"gc_blas": ctypes.addressof(blas_table())}


@once
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


def find_thread_count() -> tuple[int, int]:
    """The addresses of the functions of NumPy's OpenBLAS that set and give its number of threads, 0 in any other
    library. They are those for Fortran: the number is given by address."""
    library = ctypes.CDLL(_multiarray_umath.__file__)
    for spelling in ("scipy_openblas_{}_num_threads_64_", "scipy_openblas_{}_num_threads_", "openblas_{}_num_threads_"):
        names = [spelling.format(verb) for verb in ("set", "get")]
        if all(hasattr(library, name) for name in names):
            set_count, get_count = (ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names)
            return set_count, get_count
    return 0, 0


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


# --- parts that are loaded when they are needed -----------------------------------------------------------------------


SUFFIXES = ("f64", "f32")
FINDER = ctypes.CFUNCTYPE(None)


def defer(blocks: Callable[[str], int], pool: Callable[[], Pool]) -> None:
    """Let machine code find large products, and the pool. `blocks` gives the address of large products of a dtype, 0
    where BLAS is to compute them."""
    if blas_table()[ENTRIES.index("find parallel")] or blas_table()[ENTRIES.index("parallel")]:
        return
    _defer("parallel", lambda: pool().parallel)
    for suffix in SUFFIXES:
        _defer(f"blocks {suffix}", partial(blocks, suffix))


def _defer(name: str, find: Callable[[], int]) -> None:
    defer_word(blas_table(), ENTRIES.index(name), ENTRIES.index(f"find {name}"), find)


def defer_word(words: Any, place: int, finder: int, find: Callable[[], int]) -> None:
    """Let machine code that needs the address at a place of an array call what stands at another, which finds it."""

    def fill() -> None:
        try:
            words[place] = find()
        except KeyboardInterrupt:
            # by another thread, so that it is raised when this function, whose exceptions nobody gets, is left
            start_new_thread(interrupt_main, ())
            return
        except BaseException as problem:
            with suppress(Warning):
                warnings.warn(f"graphc goes on without faster products: {problem!r}", RuntimeWarning, stacklevel=1)
        words[finder] = 0

    function = FINDER(fill)
    PROCESS.kept.append(function)
    words[finder] = ctypes.cast(function, ctypes.c_void_p).value or 0


def find_all(products: Sequence[str]) -> None:
    """Find now what these products would ask for at their first need, for threads that are to run without Python."""
    suffixes = {name.rpartition("_")[2] for name in products}
    wanted = {"find parallel", *(f"find blocks {suffix}" for suffix in suffixes)} if products else set()
    table = blas_table() if products else ()
    pending = [address for name, address in zip(ENTRIES, table, strict=False) if name in wanted]
    for loaded in PROCESS.products.values():
        pending += [int(loaded.settings[VECTOR_FINDERS[suffix]]) for suffix in suffixes & VECTOR_FINDERS.keys()]
    for address in pending:
        if address:
            FINDER(address)()


def load_blocks(suffix: str, code: bytes, pool: Pool) -> int:
    """Load the code of `blocked.blocks_ir`; the address of its function."""
    name, free = blocks_name(suffix), free_name(suffix)
    loaded = load(code, {PARALLEL: pool.parallel}, [name, free])
    PROCESS.kept.append(loaded.owner)
    PROCESS.givers.append(FINDER(loaded.addresses[free]))
    return loaded.addresses[name]


# --- prototypes -------------------------------------------------------------------------------------------------------


ARGUMENTS = {
    "gemm": "m n k alpha a a_row a_col b b_row b_col beta c c_row c_col",
    "gemv": "m n alpha a a_row a_col x x_step beta y y_step",
    "batched_gemm": "count m n k alpha a a_batch a_row a_col b b_batch b_row b_col beta c c_batch c_row c_col",
}
"""The arguments of each routine, in order."""


def parameter_type(argument: str, dtype: str) -> str:
    """The type of an argument, by its name."""
    if argument in ("alpha", "beta"):
        return dtype
    return f"{dtype}*" if argument in ("a", "b", "c", "x", "y", "w") else "int64"


PROTOTYPES: dict[str, tuple[str, ...]] = {
    f"gc_{routine}_{suffix}": tuple(parameter_type(argument, dtype) for argument in arguments.split())
    for suffix, dtype in DTYPES.items()
    for routine, arguments in ARGUMENTS.items()
}
"""The types of the arguments, "*" after those that are pointers."""


OPERANDS = {
    "gemm": {"a": "m k", "b": "k n", "c": "m n"},
    "gemv": {"a": "m n", "x": "n", "y": "m"},
    "batched_gemm": {"a": "count m k", "b": "count k n", "c": "count m n"},
}
"""The sizes of two factors and of what their product is added to."""


def _product(routine: str, scalar: Callable[[float], np.number[Any]], *values: Any) -> int:
    args = dict(zip(ARGUMENTS[routine].split(), values, strict=True))

    def view(name: str, sizes: str) -> Flat:
        flat = args[name]
        steps = [step * flat.itemsize for argument, step in args.items() if argument.startswith(f"{name}_")]
        return as_strided(flat, [args[size] for size in sizes.split()], steps)

    left, right, result = (view(name, sizes) for name, sizes in OPERANDS[routine].items())
    alpha, beta = scalar(args["alpha"]), scalar(args["beta"])
    product = alpha * (left @ right)
    result[...] = product if beta == 0 else product + beta * result
    return 0


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    f"gc_{routine}_{suffix}": partial(_product, routine, np.dtype(dtype).type)
    for suffix, dtype in DTYPES.items()
    for routine in ARGUMENTS
}
"""The functions for generated source under CPython. A pointer is a flat array whose first element it points to (`x[i
* n :]`)."""
