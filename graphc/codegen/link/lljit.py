"""Loading relocatable objects by LLVM's linker, where they could not be made an image.

LLVM has two. RuntimeDyld, which llvmlite takes by default, ends the process where one section of an object lies too far
from another, as those for 64-bit Arm do; JITLink says what is wrong.

In: objects, the addresses of what they need. Out: what `image.py` gives for an image. llvmlite is imported here, so
this module is imported only where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from graphc.codegen.llvm.target import llvm
from graphc.errors import GraphcError

LIBRARIES_OF_A_LINKER = 64
"""LLVM keeps 9 kB of tables for each library that is gone, until its linker goes too, with its last library."""

_library_numbers = count()


@lru_cache(maxsize=1)
def linker(generation: int) -> llvm.LLJIT:
    """The linker of objects into this process. The libraries of one that is replaced stay."""
    llvm.initialize_native_target()
    return llvm.create_lljit_compiler(use_jit_link=True)


def link(objects: Sequence[bytes], symbols: Mapping[str, int], exports: Sequence[str]) -> tuple[dict[str, int], Any]:
    """Links objects into this process: the addresses of the exports, and what keeps the code (`image.Loaded`).
    Raises GraphcError where the objects are none of this machine, or a symbol is missing."""
    builder = llvm.JITLibraryBuilder()
    for code in objects:
        builder.add_object_img(code)
    builder.add_current_process()
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    number = next(_library_numbers)
    try:
        tracker = builder.link(linker(number // LIBRARIES_OF_A_LINKER), f"graphc{number}")
    except RuntimeError as error:
        raise GraphcError(f"the compiled object cannot be loaded: {error}") from error
    owner = np.empty(1, object)
    owner[0] = tracker
    return {name: tracker[name] for name in exports}, owner
