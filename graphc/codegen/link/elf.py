"""Relocatable objects to an image that a later process maps without a linker.

In: the ELF objects that LLVM emits, the names to export. Out: the bytes of an image (`image.py`), or the objects joined
where they hold what is not known here, which LLVM then loads: another format or processor, storage of threads,
constructors, a relocation that is not known here.

Sections keep their order within three segments: code, constants, data; a fourth is nothing but zeros. What is relative
to the place of an instruction is settled here, calls and references between the objects too. A reference to a name that
no object defines goes by a slot among the constants, which is patched when the image is mapped; a call of one by a stub
behind the code that jumps where its slot says, because a library may be further away than an instruction reaches.
Tables for unwinding are left out: no exception crosses compiled code.

The format: "System V Application Binary Interface", chapters 4 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from graphc.codegen.link.image import BASE, MOST_BYTES, WORD, Image, encode, in_pages, join
from graphc.startup.record import record

# --- relocations ------------------------------------------------------------------------------------------------------
# Relocations: references between parts of a program, written into machine code, by processor.
#
# In: the number of a processor in the header of an ELF object. Out: its `Architecture`: what each relocation that
# LLVM emits for position-independent code means, and a stub for calls that go farther than an instruction reaches.
#
# Sources: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", 4.4; "ELF for the Arm
# 64-bit Architecture", 5.7. Names are theirs, without R_X86_64_ and R_AARCH64_.

ADDRESS, PLACE, SLOT, CALL = range(4)
"""By what a reference goes: it is an address, patched when the image is mapped; it says where its target is;
where a slot is that holds the target's address; where the target is, or a stub that jumps there."""

Write: TypeAlias = Callable[[bytearray, int, int, int], None]
"""write(segment, offset, at, there): what stands at an offset in a segment, which is `at` in the image, refers to
`there`. struct.error or ValueError where that is out of reach."""


class Form(NamedTuple):
    """A kind of reference: by what it goes, the bytes it is written in, how."""

    through: int
    size: int
    write: Write


@record()
class Architecture:
    """A processor.

    forms: by the numbers of relocations. stub: the code of one, and what in it refers to its slot: offset, form,
    addend. counts_on: whether the addend of a reference by a slot or stub says how far the instruction goes on; else it
    would be added to the target, which is not done.
    """

    forms: Mapping[int, Form]
    stub: bytes
    stub_references: tuple[tuple[int, Form, int], ...]
    counts_on: bool


def distance(code: str) -> tuple[int, Write]:
    """The size of a signed number, which is the distance, and how it is written."""
    number = Struct(code)

    def write(segment: bytearray, offset: int, at: int, there: int) -> None:
        number.pack_into(segment, offset, there - at)

    return number.size, write


def _never(segment: bytearray, offset: int, at: int, there: int) -> None:
    raise ValueError("the address is known only when the image is mapped")


_ABS64 = Form(ADDRESS, 8, _never)

# x86-64 ----------------------------------------------------------------------------------------------------------

_PC32 = Form(PLACE, *distance("<i"))
_GOTPCREL = _PC32._replace(through=SLOT)

X86_64 = Architecture(
    forms={
        1: _ABS64,  # 64
        2: _PC32,  # PC32
        4: _PC32._replace(through=CALL),  # PLT32
        9: _GOTPCREL,  # GOTPCREL
        24: Form(PLACE, *distance("<q")),  # PC64
        41: _GOTPCREL,  # GOTPCRELX, which may be relaxed, and is not
        42: _GOTPCREL,  # REX_GOTPCRELX
    },
    stub=b"\xff\x25\0\0\0\0\0\0",  # jmp [rip + distance]
    stub_references=((2, _PC32, -4),),
    counts_on=True,
)

# 64-bit Arm ------------------------------------------------------------------------------------------------------

INSTRUCTION = Struct("<I")
ARM_PAGE = 4096
"""The page of `adrp`, whatever the system's are."""


def signed(number: int, bits: int) -> int:
    """The bits of a signed number; ValueError where there are more."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError("out of the reach of an instruction")
    return number & (1 << bits) - 1


def set_bits(segment: bytearray, offset: int, mask: int, bits: int) -> None:
    """Write the bits of an instruction that a mask names."""
    (before,) = INSTRUCTION.unpack_from(segment, offset)
    INSTRUCTION.pack_into(segment, offset, before & ~mask | bits)


def in_words(lowest: int, bits: int) -> tuple[int, Write]:
    """A distance in words of 4 bytes, in `bits` bits of an instruction from the bit `lowest` on."""

    def write(segment: bytearray, offset: int, at: int, there: int) -> None:
        if (there - at) % 4:
            raise ValueError("it is no whole number of instructions away")
        set_bits(segment, offset, (1 << bits) - 1 << lowest, signed(there - at >> 2, bits) << lowest)

    return INSTRUCTION.size, write


def in_page(scale: int) -> tuple[int, Write]:
    """An offset in a page, in units of 2**scale bytes, in bits 10 to 21 of an instruction. Images begin on pages."""

    def write(segment: bytearray, offset: int, at: int, there: int) -> None:
        if there % (1 << scale):
            raise ValueError("it is not aligned")
        set_bits(segment, offset, 0xFFF << 10, there % ARM_PAGE >> scale << 10)

    return INSTRUCTION.size, write


ADR_BITS, IS_PAGE = 0x60FFFFE0, 1 << 31


def adr_bits(number: int) -> int:
    """The bits of `adr` and `adrp` that say how far."""
    field = signed(number, 21)
    return (field & 3) << 29 | field >> 2 << 5


def write_adr(segment: bytearray, offset: int, at: int, there: int) -> None:
    set_bits(segment, offset, ADR_BITS, adr_bits(there - at))


def write_page(segment: bytearray, offset: int, at: int, there: int) -> None:
    """An `adrp` becomes the `adr` of the page where that reaches, as it does in all but the largest images: the first
    of the Cortex-A53 err with some at the end of a page (erratum 843419)."""
    page = there - there % ARM_PAGE
    try:
        set_bits(segment, offset, ADR_BITS | IS_PAGE, adr_bits(page - at))
    except ValueError:
        set_bits(segment, offset, ADR_BITS, adr_bits((page - at // ARM_PAGE * ARM_PAGE) // ARM_PAGE))


_PAGE = Form(PLACE, INSTRUCTION.size, write_page)
_LDST64 = Form(PLACE, *in_page(3))
_CALL = Form(CALL, *in_words(0, 26))

AARCH64 = Architecture(
    forms={
        257: _ABS64,  # ABS64
        260: Form(PLACE, *distance("<q")),  # PREL64
        261: Form(PLACE, *distance("<i")),  # PREL32
        273: Form(PLACE, *in_words(5, 19)),  # LD_PREL_LO19
        274: Form(PLACE, INSTRUCTION.size, write_adr),  # ADR_PREL_LO21
        275: _PAGE,  # ADR_PREL_PG_HI21
        277: Form(PLACE, *in_page(0)),  # ADD_ABS_LO12_NC
        278: Form(PLACE, *in_page(0)),  # LDST8_ABS_LO12_NC
        279: Form(PLACE, *in_words(5, 14)),  # TSTBR14
        280: Form(PLACE, *in_words(5, 19)),  # CONDBR19
        282: _CALL,  # JUMP26
        283: _CALL,  # CALL26
        284: Form(PLACE, *in_page(1)),  # LDST16_ABS_LO12_NC
        285: Form(PLACE, *in_page(2)),  # LDST32_ABS_LO12_NC
        286: _LDST64,  # LDST64_ABS_LO12_NC
        299: Form(PLACE, *in_page(4)),  # LDST128_ABS_LO12_NC
        311: _PAGE._replace(through=SLOT),  # ADR_GOT_PAGE
        312: _LDST64._replace(through=SLOT),  # LD64_GOT_LO12_NC
        314: Form(CALL, *distance("<i")),  # PLT32
    },
    # adrp x16, slot; ldr x16, [x16, slot]; br x16: that register is a linker's between a call and what it calls.
    stub=b"".join(map(INSTRUCTION.pack, (0x90000010, 0xF9400210, 0xD61F0200, 0))),
    stub_references=((0, _PAGE, 0), (4, _LDST64, 0)),
    counts_on=False,
)

ARCHITECTURES = {62: X86_64, 183: AARCH64}
"""By their numbers in an object's header."""


# --- elf --------------------------------------------------------------------------------------------------------------


FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")

ELF64_LITTLE = b"\x7fELF\x02\x01\x01"
RELOCATABLE = 1
PROGRAM, SYMBOL_TABLE, RELOCATIONS, NO_BITS, UNWIND = 1, 2, 4, 8, 0x70000001  # types of sections
WRITABLE, ALLOCATED, EXECUTABLE, OF_THREADS, COMPRESSED = 0x1, 0x2, 0x4, 0x400, 0x800  # their flags
UNDEFINED, SPECIAL, COMMON = 0, 0xFF00, 0xFFF2  # numbers of sections in symbols
LOCAL, GLOBAL, WEAK = 0, 1, 2
PLAIN_SYMBOLS = frozenset({0, 1, 2, 3, 4})
"""Kinds of symbols: none, data, function, section, file. Others belong to threads, or are found by running code."""

LINE = 64
"""The bytes of a cache line. The code of each object begins at one, so that how fast its loops run does not depend on
the length of the objects before it."""
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

    def plus(self, offset: int) -> Place:
        return Place(self.segment, self.offset + offset)


Target: TypeAlias = Place | str
"""The target of a reference: a place, or a global name, which stays one where no object defines it."""


class Relocation(NamedTuple):
    """A value to be written at a place."""

    at: Place
    form: Form
    target: Target
    addend: int


@record(frozen=False)
class Program:
    """The objects laid out: the bytes of each segment, where global names are defined, what remains to be written."""

    segments: tuple[bytearray, bytearray, bytearray, bytearray]
    defined: dict[str, Place]
    relocations: list[Relocation]

    def begins(self) -> tuple[int, int, int, int]:
        """The begins of the segments in memory."""
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
    processor = architecture_of(objects)
    for item in objects:
        add_object(program, processor, item)
    if not program.defined.keys() >= set(exports):
        raise UnknownObject(f"no object defines all of {', '.join(exports)}")
    relocations = [
        r._replace(target=program.defined.get(r.target, r.target)) if isinstance(r.target, str) else r
        for r in program.relocations
    ]
    slots = add_slots(program, (r.target for r in relocations if needs_slot(r)))
    stubs = add_stubs(program, processor, (r.target for r in relocations if r.form.through == CALL))
    pad(program.segments[DATA], LARGEST_ALIGNMENT if program.segments[ZEROS] else 1)
    begins = program.begins()
    for target, stub in stubs.items():
        for offset, form, addend in processor.stub_references:
            write_reference(program, begins, Relocation(stub.plus(offset), form, slots[target], addend), slots[target])
    for relocation in relocations:
        if relocation.form.through != ADDRESS:
            write_reference(program, begins, relocation, near(processor, relocation, slots, stubs))
    words = [(slot, target, 0) for target, slot in slots.items()]
    words += [(r.at, r.target, r.addend) for r in relocations if r.form.through == ADDRESS]
    imports = tuple(dict.fromkeys(target for _, target, _ in words if isinstance(target, str)))
    patches = tuple((at.offset_from(begins), *address(target, addend, begins, imports)) for at, target, addend in words)
    exported = {name: program.defined[name].offset_from(begins) for name in exports}
    code, constants, data = map(bytes, program.segments[:ZEROS])
    zeros = len(program.segments[ZEROS])
    if begins[ZEROS] + zeros > MOST_BYTES:
        raise UnknownObject("it is larger than instructions reach")
    return Image(code, constants, data, zeros, imports, patches, exported)


def near(
    processor: Architecture, relocation: Relocation, slots: Mapping[Target, Place], stubs: Mapping[Target, Place]
) -> Place:
    """The place within the image that an instruction refers to."""
    target, through = relocation.target, relocation.form.through
    if through != SLOT and not isinstance(target, str):
        return target
    if through == PLACE:
        raise UnknownObject(f"{target} may be further away than an instruction reaches")
    if relocation.addend and not processor.counts_on:
        raise UnknownObject("what lies behind a target is reached by its slot")
    return slots[target] if through == SLOT else stubs[target]


def write_reference(program: Program, begins: Sequence[int], relocation: Relocation, there: Place) -> None:
    at = relocation.at
    target = there.offset_from(begins) + relocation.addend
    relocation.form.write(program.segments[at.segment], at.offset, at.offset_from(begins), target)


def address(target: Target, addend: int, begins: Sequence[int], imports: Sequence[str]) -> tuple[int, int]:
    """An address as a patch says it: the number of an import, or BASE, and what is added to that."""
    if isinstance(target, str):
        return imports.index(target), addend
    return BASE, target.offset_from(begins) + addend


def needs_slot(relocation: Relocation) -> bool:
    through = relocation.form.through
    return through == SLOT or (through == CALL and isinstance(relocation.target, str))


def add_slots(program: Program, targets: Iterable[Target]) -> dict[Target, Place]:
    """Words among the constants for addresses, one for each target."""
    constants = program.segments[CONSTANTS]
    slots: dict[Target, Place] = {}
    for target in targets:
        if target not in slots:
            slots[target] = Place(CONSTANTS, pad(constants, WORD.size))
            constants.extend(bytes(WORD.size))
    return slots


def add_stubs(program: Program, processor: Architecture, targets: Iterable[Target]) -> dict[Target, Place]:
    """A stub behind the code for each name."""
    code = program.segments[CODE]
    stubs: dict[Target, Place] = {}
    for target in targets:
        if isinstance(target, str) and target not in stubs:
            stubs[target] = Place(CODE, pad(code, len(processor.stub)))
            code.extend(processor.stub)
    return stubs


def pad(segment: bytearray, alignment: int) -> int:
    """Lengthen a segment to a multiple of the alignment; its length."""
    segment.extend(bytes(-len(segment) % alignment))
    return len(segment)


# Reading an object -----------------------------------------------------------------------------------------------


def architecture_of(objects: Sequence[bytes]) -> Architecture:
    """The processor of all objects; UnknownObject where they are of several, or it is not known here."""
    machines = {read_header(item)[2] for item in objects}
    if len(machines) != 1 or not machines <= ARCHITECTURES.keys():
        raise UnknownObject("the processor is not known")
    return ARCHITECTURES[machines.pop()]


def read_header(code: bytes) -> tuple[Any, ...]:
    """The header of a relocatable object."""
    head = FILE_HEADER.unpack_from(code)
    if not head[0].startswith(ELF64_LITTLE) or head[1] != RELOCATABLE or head[11] != SECTION.size:
        raise UnknownObject("it is no ELF object of a 64-bit processor")
    return head


def add_object(program: Program, processor: Architecture, code: bytes) -> None:
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
            room = sections[section.info].size
            program.relocations += read_relocations(processor, code, section, place, room, symbols)


def read_sections(code: bytes) -> list[Section]:
    """The headers of all sections of an object."""
    head = read_header(code)
    first, (size, count, names) = head[6], head[11:14]
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
    place = Place(segment, pad(target, max(section.alignment, LINE if segment == CODE else 1)))
    target.extend(bytes(section.size) if section.kind == NO_BITS else part(code, section.offset, section.size))
    return place


def read_symbols(
    program: Program, code: bytes, sections: Sequence[Section], table: Section, places: Sequence[Place | None]
) -> Iterator[Target | None]:
    """The targets of an object's symbols: a place, a global name, or None for what cannot be referred to."""
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
    """The place of a symbol of section `index`, None for one that is not defined."""
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
    processor: Architecture, code: bytes, section: Section, place: Place, size: int, symbols: Sequence[Target | None]
) -> Iterator[Relocation]:
    """The relocations of the section that lies at `place` and is `size` bytes long."""
    for offset, info, addend in RELOCATION.iter_unpack(part(code, section.offset, section.size)):
        form, target = processor.forms.get(info & 0xFFFFFFFF), symbols[info >> 32]
        if form is None:
            raise UnknownObject(f"relocation {info & 0xFFFFFFFF} is not known")
        if target is None or offset + form.size > size:
            raise UnknownObject("a relocation points nowhere")
        yield Relocation(place.plus(offset), form, target, addend)
