"""Factorisations of matrices for generated source, by pointer and strides: loops for small ones, LAPACK for others.

In: the routines of `ops/linalg/routine.py`. Out: PROTOTYPES of their functions, whose definitions are in batch.py;
`symbols`, the addresses that their objects need when they are loaded; PYTHON_SHIMS, their meaning over flat
arrays. The order of their arguments stands in `ops/linalg/routine.py`. batch.py: what the definitions have in common,
and the threads that share a batch; elimination.py: Cholesky, triangular systems and LU; orthogonal.py: QR, eigenvalues
and singular values, and how routines of LAPACK are called; equations.py: bands, constant diagonals, Schur's form.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import graphc.ops.linalg.equations
import graphc.ops.linalg.factor
import graphc.ops.linalg.matrices  # noqa: F401 - they fill ROUTINES
from graphc.codegen.gemm import Flat, find_routines, find_thread_count
from graphc.errors import GraphcError
from graphc.ops.linalg.routine import ROUTINES, Routine, symbol
from graphc.startup.hooks import once
from graphc.startup.record import record

NAMES = (
    "potrf",
    "potri",
    "getrf",
    "geqrf",
    "geqp3",
    "orgqr",
    "syevd",
    "gesdd",
    "geev",
    "gbtrf",
    "gbtrs",
    "pbsv",
    "gees",
    "trsyl",
)
"""The routines of LAPACK, and in front of each letter's those of BLAS."""
SOLVERS = ("trsm", "trsv")
LETTERS = {"f64": "d", "f32": "s"}
DTYPES = {"f64": "float64", "f32": "float32"}
BLAS = tuple(letter + name for letter in LETTERS.values() for name in SOLVERS)
LAPACK = tuple(letter + name for letter in LETTERS.values() for name in NAMES)
WIDTH = "width"
ENTRIES = (*BLAS, *LAPACK, WIDTH)
"""The table behind the symbol gc_lapack: addresses, 0 where there is none, and the bytes of LAPACK's integers."""
ALONE = ("set threads", "get threads", "owner", "kept threads", "resume")
"""The words behind the symbol gc_alone (batch.py)."""
SET_THREADS, GET_THREADS, OWNER, KEPT_THREADS, RESUME = ALONE


@record()
class Argument:
    """An argument of a function: its name, and its type as a prototype has it. of: what its name is made of."""

    name: str
    kind: str
    of: str


def arguments(routine: Routine, suffix: str) -> list[Argument]:
    """Return the arguments of the function of a routine, in order."""
    dtype = DTYPES[suffix]
    names = ["count", *routine.letters, *routine.flags, *(["nan"] if routine.failures else [])]
    names += ["slots"] if routine.spaces else []
    args = [Argument(name, "int64", "size") for name in names]
    for place, axes in enumerate(routine.operands):
        args.append(Argument(f"a{place}", f"{dtype}*", "operand"))
        args += [Argument(f"a{place}_{axis}", "int64", "stride") for axis in ("batch", *map(str, range(len(axes))))]
    for place, (_, declared) in enumerate(routine.parts):
        args.append(Argument(f"r{place}", f"{declared or dtype}*", "result"))
    for place, declared in enumerate(routine.spaces):
        args.append(Argument(f"w{place}", f"{declared or dtype}*", "workspace"))
        args.append(Argument(f"w{place}_each", "int64", "size"))
    return args


FUNCTIONS: dict[str, tuple[str, str]] = {symbol(name, suffix): (name, suffix) for name in ROUTINES for suffix in DTYPES}
"""The routine and the suffix of each function."""

PROTOTYPES: dict[str, tuple[str, ...]] = {
    name: tuple(argument.kind for argument in arguments(ROUTINES[routine], suffix))
    for name, (routine, suffix) in FUNCTIONS.items()
}
"""The types of the arguments, "*" after those that are pointers."""


def symbols(name: str) -> Mapping[str, int]:
    """The addresses that an object of a factorisation needs at load, besides those of all products."""
    return {"gc_lapack": ctypes.addressof(lapack_table()), "gc_alone": ctypes.addressof(alone_table())}


@once
def lapack_table() -> ctypes.Array[ctypes.c_int64]:
    """ENTRIES. SciPy is imported only where NumPy's own library has not all of them."""
    solvers, _ = find_routines(BLAS)
    routines, width = find_routines(LAPACK)
    if not solvers or not routines:
        raise GraphcError("NumPy's library has no LAPACK, and there is no SciPy that has one")
    return (ctypes.c_int64 * len(ENTRIES))(*solvers, *routines, width)


@once
def alone_table() -> ctypes.Array[ctypes.c_int64]:
    """ALONE: addresses, then what calls write there."""
    return (ctypes.c_int64 * len(ALONE))(*find_thread_count())


# --- under CPython ----------------------------------------------------------------------------------------------------


def _run(routine: Routine, suffix: str, *values: Any) -> int:
    args = {argument.name: value for argument, value in zip(arguments(routine, suffix), values, strict=True)}
    count = int(args["count"])
    letters = {letter: int(args[letter]) for letter in routine.letters}
    letters |= routine.derived(letters)  # type: ignore[arg-type]
    stacks = []
    for place, axes in enumerate(routine.operands):
        flat: Flat = args[f"a{place}"]
        names = ("batch", *map(str, range(len(axes))))
        steps = [int(args[f"a{place}_{name}"]) * flat.itemsize for name in names]
        shape = (count, *(letters[letter] for letter in axes))
        empty = not all(shape)
        stacks.append(np.empty(shape, flat.dtype) if empty else as_strided(flat, shape, steps, writeable=False))
    results = []
    for place, (axes, _) in enumerate(routine.parts):
        shape = (count, *(letters[letter] for letter in axes))
        results.append(args[f"r{place}"][: int(np.prod(shape))].reshape(shape))
    flags = {name: int(args[name]) for name in routine.flags}
    status = 0
    for number in range(count):
        try:
            with np.errstate(all="ignore"):
                parts = routine.compute(*(stack[number].copy() for stack in stacks), **flags)
            for result, part in zip(results, parts if isinstance(parts, tuple) else (parts,), strict=True):
                result[number] = part
        except np.linalg.LinAlgError as error:
            for result in results:
                result[number] = np.nan if result.dtype.kind == "f" else 0
            words = [place for place, failure in enumerate(routine.failures, 1) if failure == str(error)]
            status = status or (0 if args["nan"] else (words or [1])[0])
    return status


PYTHON_SHIMS: dict[str, Callable[..., int]] = {
    name: partial(_run, ROUTINES[routine], suffix) for name, (routine, suffix) in FUNCTIONS.items()
}
"""The functions for generated source under CPython."""
