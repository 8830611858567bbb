"""Relocatable objects to an image that a later process maps without a linker.

In: the ELF objects for x86-64 that LLVM emits, the names to export. Out: the bytes of an image (`image.py`), or the
objects joined where they hold what is not known here, which LLVM then loads: another format or processor, storage of
threads, constructors, a relocation beyond the list below.

Sections keep their order within three segments: code, constants, data; a fourth is nothing but zeros. What is relative
to the place of an instruction is settled here, calls and references between the objects too. A reference to a name
that no object defines goes by a slot among the constants, which is patched when the image is mapped; a call of one by
a stub behind the code that jumps where its slot says, because a library may be further away than an instruction
reaches. Tables for unwinding are left out: no exception crosses compiled code.

The format: "System V Application Binary Interface", chapters 4 and 5, and its "AMD64 Architecture Processor
Supplement", 4.4 (relocation).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graphc.codegen.image import BASE, MOST_BYTES, WORD, Image, encode, in_pages, join
from graphc.record import record

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")

ELF64_LITTLE = b"\x7fELF\x02\x01\x01"
RELOCATABLE, X86_64 = 1, 62
PROGRAM, SYMBOL_TABLE, RELOCATIONS, NO_BITS, UNWIND = 1, 2, 4, 8, 0x70000001  # types of sections
WRITABLE, ALLOCATED, EXECUTABLE, OF_THREADS, COMPRESSED = 0x1, 0x2, 0x4, 0x400, 0x800  # their flags
UNDEFINED, SPECIAL, COMMON = 0, 0xFF00, 0xFFF2  # numbers of sections in symbols
LOCAL, GLOBAL, WEAK = 0, 1, 2
PLAIN_SYMBOLS = frozenset({0, 1, 2, 3, 4})
"""Kinds of symbols: none, data, function, section, file. Others belong to threads, or are found by running code."""

WORD_64, RELATIVE_32, CALL_32, RELATIVE_64 = 1, 2, 4, 24
SLOT_32 = frozenset({9, 41, 42})
"""Relocations that read an address from a slot; the last two may be relaxed, and are not."""
DISTANCES = {RELATIVE_64: "<q", **dict.fromkeys((RELATIVE_32, CALL_32, *SLOT_32), "<i")}

JUMP = b"\xff\x25"
"""jmp through the word at a distance of 32 bits, which follows."""
STUB_BYTES = 8
LARGEST_ALIGNMENT = 64
CODE, CONSTANTS, DATA, ZEROS = range(4)


class UnknownObject(Exception):
    """An object that must be left to LLVM."""


class Section(NamedTuple):
    """The header of a section, without the address, which only a linked file has."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class Place(NamedTuple):
    """An offset in a segment."""

    segment: int
    offset: int

    def offset_from(self, begins: Sequence[int]) -> int:
        """The offset in an image whose segments begin there."""
        return begins[self.segment] + self.offset


Target: TypeAlias = Place | str
"""What code refers to: a place, or a global name, which stays one where no object defines it."""


class Relocation(NamedTuple):
    """What is to be written at a place."""

    at: Place
    kind: int
    target: Target
    addend: int


@record(frozen=False)
class Program:
    """The objects laid out: the bytes of each segment, where global names are defined, what remains to be written."""

    segments: tuple[bytearray, bytearray, bytearray, bytearray]
    defined: dict[str, Place]
    relocations: list[Relocation]

    def begins(self) -> tuple[int, int, int, int]:
        """Where the segments lie in memory."""
        code, constants, data, _ = map(len, self.segments)
        data_at = in_pages(code) + in_pages(constants)
        return 0, in_pages(code), data_at, data_at + data


def link(objects: Sequence[bytes], exports: Sequence[str]) -> bytes:
    """The image of a program that exports these names, or its objects joined."""
    try:
        return encode(link_image(objects, exports))
    except (UnknownObject, struct.error, ValueError, IndexError):
        return join(objects)


def link_image(objects: Sequence[bytes], exports: Sequence[str]) -> Image:
    """The image of a program; UnknownObject where it cannot be one."""
    program = Program((bytearray(), bytearray(), bytearray(), bytearray()), {}, [])
    for item in objects:
        add_object(program, item)
    if not program.defined.keys() >= set(exports):
        raise UnknownObject(f"no object defines all of {', '.join(exports)}")
    relocations = [
        r._replace(target=program.defined.get(r.target, r.target)) if isinstance(r.target, str) else r
        for r in program.relocations
    ]
    slots = add_slots(program, (r.target for r in relocations if needs_slot(r)))
    stubs = add_stubs(program, slots, (r.target for r in relocations if r.kind == CALL_32))
    pad(program.segments[DATA], LARGEST_ALIGNMENT if program.segments[ZEROS] else 1)
    begins = program.begins()
    for stub, slot in stubs.values():
        end = stub.offset + len(JUMP) + 4
        distance = slot.offset_from(begins) - end
        program.segments[CODE][stub.offset : end] = JUMP + struct.pack("<i", distance)
    for relocation in relocations:
        if relocation.kind != WORD_64:
            write_distance(program, begins, relocation, near(relocation, slots, stubs))
    words = [(slot, target, 0) for target, slot in slots.items()]
    words += [(r.at, r.target, r.addend) for r in relocations if r.kind == WORD_64]
    imports = tuple(dict.fromkeys(target for _, target, _ in words if isinstance(target, str)))
    patches = tuple((at.offset_from(begins), *address(target, addend, begins, imports)) for at, target, addend in words)
    exported = {name: program.defined[name].offset_from(begins) for name in exports}
    code, constants, data = map(bytes, program.segments[:ZEROS])
    zeros = len(program.segments[ZEROS])
    if begins[ZEROS] + zeros > MOST_BYTES:
        raise UnknownObject("it is larger than instructions reach")
    return Image(code, constants, data, zeros, imports, patches, exported)


def near(relocation: Relocation, slots: Mapping[Target, Place], stubs: Mapping[Target, tuple[Place, Place]]) -> Place:
    """The place within the image that an instruction refers to."""
    target = relocation.target
    if relocation.kind in SLOT_32:
        return slots[target]
    if not isinstance(target, str):
        return target
    if relocation.kind == CALL_32:
        return stubs[target][0]
    raise UnknownObject(f"{target} may be further away than an instruction reaches")


def write_distance(program: Program, begins: Sequence[int], relocation: Relocation, there: Place) -> None:
    at = relocation.at
    distance = there.offset_from(begins) + relocation.addend - at.offset_from(begins)
    struct.pack_into(DISTANCES[relocation.kind], program.segments[at.segment], at.offset, distance)


def address(target: Target, addend: int, begins: Sequence[int], imports: Sequence[str]) -> tuple[int, int]:
    """An address as a patch says it: the number of an import, or BASE, and what is added to that."""
    if isinstance(target, str):
        return imports.index(target), addend
    return BASE, target.offset_from(begins) + addend


def needs_slot(relocation: Relocation) -> bool:
    return relocation.kind in SLOT_32 or (relocation.kind == CALL_32 and isinstance(relocation.target, str))


def add_slots(program: Program, targets: Iterable[Target]) -> dict[Target, Place]:
    """Words among the constants for addresses, one for each target."""
    constants = program.segments[CONSTANTS]
    slots: dict[Target, Place] = {}
    for target in targets:
        if target not in slots:
            slots[target] = Place(CONSTANTS, pad(constants, WORD.size))
            constants.extend(bytes(WORD.size))
    return slots


def add_stubs(
    program: Program, slots: dict[Target, Place], targets: Iterable[Target]
) -> dict[Target, tuple[Place, Place]]:
    """Room behind the code for a stub of each name, with the slot that it jumps by."""
    code = program.segments[CODE]
    stubs: dict[Target, tuple[Place, Place]] = {}
    for target in targets:
        if isinstance(target, str) and target not in stubs:
            stubs[target] = Place(CODE, pad(code, STUB_BYTES)), slots[target]
            code.extend(bytes(STUB_BYTES))
    return stubs


def pad(segment: bytearray, alignment: int) -> int:
    """Lengthen a segment to a multiple of the alignment; its length."""
    segment.extend(bytes(-len(segment) % alignment))
    return len(segment)


# Reading an object -----------------------------------------------------------------------------------------------


def add_object(program: Program, code: bytes) -> None:
    """Lay out the sections of an object behind those before it, and note its names and relocations."""
    sections = read_sections(code)
    places = [place_section(program, section, code) for section in sections]
    symbols: list[Target | None] = []
    for section in sections:
        if section.kind == SYMBOL_TABLE:
            symbols += read_symbols(program, code, sections, section, places)
    for section in sections:
        place = places[section.info] if section.kind == RELOCATIONS else None
        if place is not None:
            program.relocations += read_relocations(code, section, place, sections[section.info].size, symbols)


def read_sections(code: bytes) -> list[Section]:
    """The headers of all sections of an object."""
    head = FILE_HEADER.unpack_from(code)
    (identity, kind, machine), first, (size, count, names) = head[:3], head[6], head[11:14]
    if not identity.startswith(ELF64_LITTLE) or (kind, machine, size) != (RELOCATABLE, X86_64, SECTION.size):
        raise UnknownObject("it is no ELF object for x86-64")
    rows = list(SECTION.iter_unpack(part(code, first, size * count)))
    texts = part(code, rows[names][4], rows[names][5])
    return [
        Section(text_at(texts, name), kind, flags, offset, length, link, info, max(alignment, 1))
        for name, kind, flags, _, offset, length, link, info, alignment, _ in rows
    ]


def part(code: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(code):
        raise UnknownObject("it is cut off")
    return code[offset : offset + size]


def text_at(texts: bytes, offset: int) -> str:
    return texts[offset : texts.index(b"\0", offset)].decode()


def place_section(program: Program, section: Section, code: bytes) -> Place | None:
    """Copy a section to its segment; None for one that is not needed in memory."""
    if not section.flags & ALLOCATED or section.kind == UNWIND or section.name == ".eh_frame":
        return None
    run_by_loader = section.name.startswith((".ctors", ".dtors"))
    if section.kind not in (PROGRAM, NO_BITS) or section.flags & (OF_THREADS | COMPRESSED) or run_by_loader:
        raise UnknownObject(f"section {section.name} is of an unknown kind")
    if section.alignment > LARGEST_ALIGNMENT or section.size > MOST_BYTES:
        raise UnknownObject(f"section {section.name} is too large")
    if section.flags & EXECUTABLE:
        segment = CODE
    elif section.kind == NO_BITS:
        segment = ZEROS
    else:
        segment = DATA if section.flags & WRITABLE and not section.name.startswith(".data.rel.ro") else CONSTANTS
    target = program.segments[segment]
    place = Place(segment, pad(target, section.alignment))
    target.extend(bytes(section.size) if section.kind == NO_BITS else part(code, section.offset, section.size))
    return place


def read_symbols(
    program: Program, code: bytes, sections: Sequence[Section], table: Section, places: Sequence[Place | None]
) -> Iterator[Target | None]:
    """What each symbol of an object stands for: a place, a global name, or nothing that can be referred to."""
    texts = part(code, sections[table.link].offset, sections[table.link].size)
    for name_at, info, _, index, value, size in SYMBOL.iter_unpack(part(code, table.offset, table.size)):
        name, binding, kind = text_at(texts, name_at), info >> 4, info & 15
        if kind not in PLAIN_SYMBOLS or binding not in (LOCAL, GLOBAL, WEAK):
            raise UnknownObject(f"symbol {name} is of an unknown kind")
        place = place_symbol(program, places, index, value, size)
        if binding == LOCAL:
            yield place
            continue
        if place is not None and binding == GLOBAL and program.defined.setdefault(name, place) != place:
            raise UnknownObject(f"{name} is defined twice")
        if binding == WEAK:
            raise UnknownObject(f"{name} may be replaced or missing")
        yield name


def place_symbol(program: Program, places: Sequence[Place | None], index: int, value: int, size: int) -> Place | None:
    """Where a symbol of section `index` is defined, None for one that is not."""
    if index == COMMON:  # its value is its alignment
        if not 0 < value <= LARGEST_ALIGNMENT or size > MOST_BYTES:
            raise UnknownObject("a symbol of its own room is too large")
        zeros = program.segments[ZEROS]
        place = Place(ZEROS, pad(zeros, value))
        zeros.extend(bytes(size))
        return place
    if index == UNDEFINED or index >= SPECIAL:
        return None
    section = places[index]
    return None if section is None else Place(section.segment, section.offset + value)


def read_relocations(
    code: bytes, section: Section, place: Place, size: int, symbols: Sequence[Target | None]
) -> Iterator[Relocation]:
    """The relocations of the section that lies at `place` and is `size` bytes long."""
    for offset, info, addend in RELOCATION.iter_unpack(part(code, section.offset, section.size)):
        kind, target = info & 0xFFFFFFFF, symbols[info >> 32]
        if kind != WORD_64 and kind not in DISTANCES:
            raise UnknownObject(f"relocation {kind} is not known")
        if target is None or offset + (4 if DISTANCES.get(kind) == "<i" else 8) > size:
            raise UnknownObject("a relocation points nowhere")
        yield Relocation(Place(place.segment, place.offset + offset), kind, target, addend)
