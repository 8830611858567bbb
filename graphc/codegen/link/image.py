"""Machine code that was linked when it was compiled: mapped into a process with a few words patched, and no linker.

In: the bytes that `elf.py` made, the addresses of what they import. Out: the addresses of what they export, and an
owner whose end unmaps the code. The file of an image holds, all numbers little-endian:

    MAGIC
    HEADER      bytes of code, constants and data; zeros after the data; patches, imports, exports; bytes of names
    patches     PATCH each: the word at an offset becomes the address of import number k, or the image's own (BASE),
                plus a number
    exports     EXPORT each: an offset
    names       of the imports, then of the exports, each ended by a newline
    the code, the constants, the data

In memory the three segments begin on pages of their own: code may be run, constants read, data written. All is
written before it is protected, so that nothing can ever be both written and run. Where instructions are cached apart,
as on Arm, the cache is told in between, by a barrier behind all that was written: a thread that sees the address of
such code, by whatever word, sees the code and its data too.

What is no image holds relocatable objects, which LLVM loads (`link`): those in another format, or with relocations
that `elf.py` does not know.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from graphc.errors import GraphcError
from graphc.startup.record import record

MAGIC = b"graphc image 1\n\0"
HEADER = struct.Struct("<8I")
PATCH = struct.Struct("<Iiq")
EXPORT = struct.Struct("<I")
WORD = struct.Struct("<Q")
BASE = -1
X86 = ("x86_64", "AMD64")
PAGE = 2**12 if platform.machine() in X86 else 2**16
"""The alignment of segments, since offsets between them are fixed when they are linked: the largest page that the
processor's systems have, since an entry of the cache may come from another one."""
MOST_BYTES = 2**30
"""The largest image in memory: distances fit the 32 bits that an instruction has."""

OBJECTS_MAGIC = b"graphc objects\n\0"
LENGTH = struct.Struct("<I")


@record()
class Image:
    """A linked program. Offsets are from the beginning of the code; `zeros` bytes of 0 follow the data.

    patches: (offset, number of an import or BASE, what is added to its address).
    """

    code: bytes
    constants: bytes
    data: bytes
    zeros: int
    imports: tuple[str, ...]
    patches: tuple[tuple[int, int, int], ...]
    exports: Mapping[str, int]

    @property
    def constants_at(self) -> int:
        return in_pages(len(self.code))

    @property
    def data_at(self) -> int:
        return self.constants_at + in_pages(len(self.constants))

    @property
    def size(self) -> int:
        return self.data_at + in_pages(len(self.data) + self.zeros)


@record(eq=False)
class Loaded:
    """Code in this process: the addresses of its exports, valid as long as `owner` lives.

    `owner` is an array of one object because the garbage collector does not look into arrays: it must not finalize
    what unmaps the code before other finalizers that may still call it.
    """

    addresses: Mapping[str, int]
    owner: Any


def in_pages(size: int) -> int:
    """`size` rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


def encode(image: Image) -> bytes:
    """The file of an image."""
    names = "".join(f"{name}\n" for name in (*image.imports, *image.exports)).encode()
    segments = (image.code, image.constants, image.data)
    counts = (len(image.patches), len(image.imports), len(image.exports), len(names))
    header = HEADER.pack(*map(len, segments), image.zeros, *counts)
    patches = b"".join(PATCH.pack(*patch) for patch in image.patches)
    exports = b"".join(map(EXPORT.pack, image.exports.values()))
    return b"".join((MAGIC, header, patches, exports, names, *segments))


def decode(content: bytes) -> Image:
    """The image of a file. Every offset and size is checked: GraphcError where one cannot be right."""
    try:
        image = _read(content)
    except (struct.error, ValueError) as error:
        raise GraphcError(f"the compiled object cannot be loaded: {error}") from error
    size, imports = image.size, len(image.imports)
    ends = [offset + WORD.size for offset, _, _ in image.patches]
    targets = [target for _, target, _ in image.patches]
    outside = max(ends, default=0) > size or any(not BASE <= target < imports for target in targets)
    if outside or max(image.exports.values(), default=0) >= size or not 0 < size <= MOST_BYTES:
        raise GraphcError("the compiled object cannot be loaded: it points beyond itself")
    return image


def _read(content: bytes) -> Image:
    *lengths, zeros, patched, imported, exported, named = HEADER.unpack_from(content, len(MAGIC))
    parts = []
    begin = len(MAGIC) + HEADER.size
    for length in (patched * PATCH.size, exported * EXPORT.size, named, *lengths):
        parts.append(content[begin : begin + length])
        begin += length
    patches, offsets, texts, code, constants, data = parts
    names = texts.decode().split("\n")[:-1]
    if begin != len(content) or len(names) != imported + exported:
        raise ValueError("it has another length than it says")
    exports = dict(zip(names[imported:], (offset for (offset,) in EXPORT.iter_unpack(offsets)), strict=True))
    return Image(code, constants, data, zeros, tuple(names[:imported]), tuple(PATCH.iter_unpack(patches)), exports)


def load(content: bytes, symbols: Mapping[str, int], exports: Sequence[str]) -> Loaded:
    """Brings an image, or joined objects, into this process.

    symbols: the addresses of what it needs besides the C and mathematics libraries. exports: the names of what is
    wanted of it. Raises GraphcError where the bytes are neither, or a symbol is missing.
    """
    if not content.startswith(MAGIC):
        return link(split(content), symbols, exports)
    image = decode(content)
    if not image.exports.keys() >= set(exports):
        raise GraphcError(f"the compiled object cannot be loaded: it lacks one of {', '.join(exports)}")
    return map_image(image, symbols)


def map_image(image: Image, symbols: Mapping[str, int]) -> Loaded:
    """Maps a checked image; GraphcError where a symbol is missing or the system gives no memory to run code in."""
    addresses = [symbols[name] if name in symbols else process_symbol(name) for name in image.imports]
    try:
        memory = mmap.mmap(-1, image.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError as error:
        raise GraphcError(f"no memory for the compiled object: {error}") from error
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for begin, segment in ((0, image.code), (image.constants_at, image.constants), (image.data_at, image.data)):
        memory[begin : begin + len(segment)] = segment
    for offset, target, addend in image.patches:
        WORD.pack_into(memory, offset, (addend + (base if target == BASE else addresses[target])) % 2**64)
    if (flush := _flush()) is not None:
        flush(base, base + len(image.code))
    _protect(base, image.constants_at, mmap.PROT_READ | mmap.PROT_EXEC)
    _protect(base + image.constants_at, image.data_at - image.constants_at, mmap.PROT_READ)
    owner = np.empty(1, object)
    owner[0] = memory
    return Loaded({name: base + offset for name, offset in image.exports.items()}, owner)


def _protect(address: int, size: int, protection: int) -> None:
    if size and mprotect(address, size, protection):
        raise GraphcError("this system does not let graphc run the code that it compiles; use mode='interpreted'")


def mprotect(address: int, size: int, protection: int) -> int:
    """Set the access to pages of memory; returns 0 where the system does so."""
    function = ctypes.pythonapi["mprotect"]
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    status: int = function(address, size, protection)
    return status


@cache
def _flush() -> Any:
    """The function that makes a processor fetch instructions that were written as data; None for x86-64,
    which needs nothing. Where the compiler's library is not found it is left to Linux, which does it for fresh pages
    that may be run for the first time, as these are."""
    if platform.machine() in X86:
        return None
    for library in (None, "libgcc_s.so.1"):
        with suppress(OSError, AttributeError):
            function = ctypes.CDLL(library)["__clear_cache"]
            function.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
            function.restype = None
            return function
    return None


@cache
def process_symbol(name: str) -> int:
    """The address of a function of this process's libraries, C's and the mathematics one among them."""
    try:
        return ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0
    except AttributeError as error:
        raise GraphcError(f"the compiled object cannot be loaded: there is no symbol {name}") from error


def join(objects: Sequence[bytes]) -> bytes:
    """Relocatable objects as one, for LLVM to load."""
    return b"".join((OBJECTS_MAGIC, *(part for code in objects for part in (LENGTH.pack(len(code)), code))))


def split(content: bytes) -> list[bytes]:
    """The objects that were joined; a lone object is taken as it is."""
    if not content.startswith(OBJECTS_MAGIC):
        return [content]
    objects = []
    begin = len(OBJECTS_MAGIC)
    while begin < len(content):
        (length,) = LENGTH.unpack_from(content.ljust(begin + LENGTH.size), begin)
        begin += LENGTH.size
        objects.append(content[begin : begin + length])
        begin += length
    return objects


# --- LLVM's linker ----------------------------------------------------------------------------------------------------
#
# LLVM has two. RuntimeDyld, which llvmlite takes by default, ends the process where one section of an object lies too
# far from another, as those for 64-bit Arm do; JITLink says what is wrong.


LIBRARIES_OF_A_LINKER = 64
"""LLVM keeps 9 kB of tables for each library that is gone, until its linker goes too, with its last library."""

_library_numbers = count()


def _llvm() -> Any:
    return import_module("graphc.codegen.llvm.target").llvm


@lru_cache(maxsize=1)
def linker(generation: int) -> Any:
    """The linker of objects into this process. The libraries of one that is replaced stay."""
    llvm = _llvm()
    llvm.initialize_native_target()
    return llvm.create_lljit_compiler(use_jit_link=True)


def link(objects: Sequence[bytes], symbols: Mapping[str, int], exports: Sequence[str]) -> Loaded:
    """Links objects into this process.
    Raises GraphcError where the objects are none of this machine, or a symbol is missing."""
    builder = _llvm().JITLibraryBuilder()
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
    return Loaded({name: tracker[name] for name in exports}, owner)
