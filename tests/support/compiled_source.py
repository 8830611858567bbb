"""Object code of source in the generated language, and its functions, callable with arrays.

In: source, prototypes. Out: `load(source, Prototype("kernel", ("float64*", "int64"))).call("kernel", x, 3)`.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from graphc.codegen.llvm.module import IR, Prototype
from graphc.codegen.server.client import compile_request
from graphc.codegen.server.protocol import Request

Array = np.ndarray[Any, np.dtype[Any]]


def compile_source(
    source: str,
    functions: Sequence[Prototype],
    *,
    modules: Sequence[IR] = (),
    externals: Mapping[str, Prototype] = {},
    opt: int = 3,
    fast_math: bool = False,
) -> bytes:
    """An object that exports `functions`; `modules` of IR are linked in before optimisation."""
    given = tuple(functions), tuple(externals.items()), tuple(modules)
    return compile_request(Request(source, *given, (), opt, fast_math))


@cache
def _jit() -> llvm.LLJIT:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    return llvm.create_lljit_compiler(machine, use_jit_link=True)


_loaded = itertools.count()


def link_in_process(builder: llvm.JITLibraryBuilder) -> Any:
    """The library of an object, under a name of its own."""
    return builder.link(_jit(), f"test{next(_loaded)}")


class Loaded:
    """The functions of an object, callable with arrays and ints."""

    def __init__(self, binary: bytes, names: list[str]) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process()
        for name in names:
            builder.export_symbol(name)
        self.library = link_in_process(builder)
        self.names = names
        self.binary = binary

    def call(self, name: str, *args: Array | int) -> int:
        values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
        return int(ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(self.library[name])(*values))


def load(source: str, *functions: Prototype, **more: Any) -> Loaded:
    return Loaded(compile_source(source, functions, **more), [f.name for f in functions])
