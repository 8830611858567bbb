"""Relocations: references between parts of a program, written into machine code, by processor.

In: the number of a processor in the header of an ELF object. Out: its `Architecture`: what each relocation that LLVM
emits for position-independent code means, and a stub for calls that go farther than an instruction reaches.

Sources: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", 4.4; "ELF for the Arm 64-bit
Architecture", 5.7. Names are theirs, without R_X86_64_ and R_AARCH64_.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import NamedTuple, TypeAlias

from graphc.startup.record import record

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
