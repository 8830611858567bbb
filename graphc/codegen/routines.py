"""THE TABLE of external routines: the families of functions that kernels call and that are compiled apart from them.

In: nothing. Out: `FAMILIES`; the prototypes of all routines, their meaning under CPython, the functions in LLVM IR and
the addresses that one needs at load.

A family is a room and a module of definitions in it, each imported when it is first asked for: a start from the cache
needs neither, but for the addresses. A new family is a row here.

    routine_prototypes()["gc_special_jv_f64"]    ("int64", "float64*", "float64*", "float64*")
    family_of("gc_special_jv_f64").room          "graphc.codegen.special"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.startup.hooks import once
from graphc.startup.record import record


@record()
class Family:
    """Routines whose names begin with `prefix`, or one of several.

    `room` is the package that has PROTOTYPES, the types of the arguments by name (a pointer's ends with "*"; the result
    is an int64, 0 where all is well), PYTHON_SHIMS, the functions over flat arrays for CPython, and, with
    `has_symbols`, `symbols(name)`: the addresses that the object of a routine needs at load besides those of all
    products. `definitions` is the module whose `functions(names)` writes routines in LLVM IR. `modules`: into how many
    modules of IR a routine is split, for two processes to compile. `is_products`: they are products of matrices, which
    need fewer of LLVM's passes (llvm/target.py). `frees`: routines of floats keep memory, which a function of this name
    and their suffix, in the same object, gives back.
    """

    prefix: str | tuple[str, ...]
    room: str
    definitions: str
    modules: int = 1
    is_products: bool = False
    has_symbols: bool = False
    frees: str = ""


FAMILIES = (
    Family("gc_lapack_", "graphc.codegen.lapack", "graphc.codegen.lapack.batch", modules=2, has_symbols=True),
    Family("gc_order_", "graphc.codegen.sort", "graphc.codegen.sort.lines", has_symbols=True),
    Family("gc_fourier_", "graphc.codegen.fourier", "graphc.codegen.fourier.transform"),
    Family("gc_special_", "graphc.codegen.special", "graphc.codegen.special.batch", has_symbols=True),
    Family(
        ("gc_conv_", "gc_grouped_conv_"),
        "graphc.codegen.convolution",
        "graphc.codegen.convolution.convolution",
        frees="gc_blocks_free_",
    ),
    Family("gc_", "graphc.codegen.gemm", "graphc.codegen.gemm.dispatch", modules=2, is_products=True),
)
"""The first whose prefix fits is that of a routine: products stand last."""


def family_of(name: str) -> Family:
    """The family of a routine."""
    return next(family for family in FAMILIES if name.startswith(family.prefix))


@once
def routine_prototypes() -> Mapping[str, tuple[str, ...]]:
    """The types of the arguments of every routine, by its name."""
    return {name: kinds for family in FAMILIES for name, kinds in import_module(family.room).PROTOTYPES.items()}


@once
def routine_shims() -> Mapping[str, Callable[..., int]]:
    """The routines for generated source under CPython."""
    return {name: shim for family in FAMILIES for name, shim in import_module(family.room).PYTHON_SHIMS.items()}


def routine_symbols(name: str) -> Mapping[str, int]:
    """The addresses that the object of a routine needs at load besides those of all products."""
    family = family_of(name)
    symbols: Mapping[str, int] = import_module(family.room).symbols(name) if family.has_symbols else {}
    return symbols


def routine_exports(name: str) -> tuple[str, ...]:
    """The symbols of the object of a routine: its own, and that of what gives back the memory that it keeps, if any."""
    frees, suffix = family_of(name).frees, name.rpartition("_")[2]
    return (name, frees + suffix) if frees and suffix in ("f32", "f64") else (name,)


def routine_functions(names: Sequence[str]) -> list[Any]:
    """Routines of one family in LLVM IR (llvm/functions.py)."""
    functions: list[Any] = import_module(family_of(names[0]).definitions).functions(names)
    return functions
