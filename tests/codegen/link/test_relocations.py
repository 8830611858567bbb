"""Relocations: what is written into an instruction is what a processor's manual says."""

from __future__ import annotations

import struct
from functools import cache

import pytest

from graphc.codegen.link.elf import AARCH64, X86_64, UnknownObject, link, link_image
from graphc.codegen.link.image import BASE, MAGIC, Image, in_pages
from graphc.codegen.llvm.target import llvm

# Number of the relocation, the word before, where it stands, what it refers to, the word after: by hand, from the Arm
# Architecture Reference Manual for A-profile, C6.2.
ARM = {
    "a call forwards": (283, 0x94000000, 0x1000, 0x2000, 0x94000400),
    "a call backwards": (283, 0x94000000, 0x2000, 0x1000, 0x97FFFC00),
    "the farthest call": (283, 0x94000000, 0, 0x7FFFFFC, 0x95FFFFFF),
    "the farthest call backwards": (283, 0x94000000, 0x8000000, 0, 0x96000000),
    "a jump": (282, 0x14000000, 0, 8, 0x14000002),
    "a page beyond adr": (275, 0x90000000, 0x1004, 0x40002008, 0xB0200000),
    "a page beyond adr, backwards": (275, 0x90000003, 0x40001FF8, 0x1FFF, 0x90E00003),
    "a page within adr": (275, 0x90000001, 0x1004, 0x3010, 0x1000FFE1),
    "a page behind": (275, 0x90000010, 0x3FF8, 0x3010, 0x10FF8050),
    "its own page": (275, 0x90000000, 0x1FFC, 0x1010, 0x10FF8020),
    "an offset to add": (277, 0x91000000, 0, 0x3010, 0x91004000),
    "a byte": (278, 0x39400000, 0, 0x3011, 0x39404400),
    "2 bytes": (284, 0x79400000, 0, 0x3012, 0x79402400),
    "4 bytes": (285, 0xB9400000, 0, 0x3014, 0xB9401400),
    "8 bytes": (286, 0xF9400000, 0, 0x3010, 0xF9400800),
    "16 bytes": (299, 0x3DC00000, 0, 0x3020, 0x3DC00800),
    "the last word of a page": (286, 0xF9400000, 0, 0x3FF8, 0xF947FC00),
    "a slot's page": (311, 0x90000000, 0, 0x2008, 0x10010000),
    "a slot's offset": (312, 0xF9400000, 0, 0x2008, 0xF9400400),
    "an address": (274, 0x10000000, 0x10, 0xF, 0x70FFFFE0),
    "a constant": (273, 0x58000000, 0, 0x10, 0x58000080),
    "a bit tested": (279, 0x36000000, 0x100, 0xFC, 0x3607FFE0),
    "a condition": (280, 0x54000000, 0, 0x40, 0x54000200),
    "a distance": (261, 0, 0x10, 0, 0xFFFFFFF0),
    "a field that was set before": (283, 0x97FFFFFF, 0, 4, 0x94000001),
}
OUT_OF_REACH = {
    "a call": (283, 0, 0x8000000),
    "a call backwards": (283, 0x8000004, 0),
    "a call between instructions": (283, 0, 6),
    "a page": (275, 0, 1 << 32),
    "an address": (274, 0, 1 << 20),
    "a word between words": (286, 0, 12),
    "a condition": (280, 0, 1 << 20),
    "a distance": (261, 0, 1 << 31),
    "an address of the process": (257, 0, 0),
}


@pytest.mark.parametrize(("number", "before", "at", "there", "after"), ARM.values(), ids=ARM.keys())
def test_instructions_of_arm(number: int, before: int, at: int, there: int, after: int) -> None:
    segment = bytearray(struct.pack("<3I", 1, before, 2))
    AARCH64.forms[number].write(segment, 4, at, there)
    assert [f"{word:08x}" for word in struct.unpack("<3I", segment)] == ["00000001", f"{after:08x}", "00000002"]


@pytest.mark.parametrize(("number", "at", "there"), OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
def test_what_is_out_of_reach_is_not_written(number: int, at: int, there: int) -> None:
    with pytest.raises((ValueError, struct.error)):
        AARCH64.forms[number].write(bytearray(16), 0, at, there)


def test_distances_of_x86() -> None:
    segment = bytearray(12)
    X86_64.forms[2].write(segment, 4, 0x1004, 0x1000)
    assert struct.unpack("<3i", segment) == (0, -4, 0)
    X86_64.forms[24].write(segment, 4, 8, 1 << 40)
    assert struct.unpack_from("<q", segment, 4) == ((1 << 40) - 8,)
    with pytest.raises(struct.error):
        X86_64.forms[4].write(segment, 4, 0, 1 << 31)


MODULE = """
@number = internal global i64 7
@table = internal constant [2 x ptr] [ptr @own, ptr @far]
@given = external global i64
declare i64 @far(i64)
define internal i64 @own(i64 %n) noinline {
  %at = getelementptr ptr, ptr @table, i64 %n
  %function = load ptr, ptr %at
  %r = call i64 %function(i64 %n)
  ret i64 %r
}
define i64 @near(i64 %n) {
  %a = load i64, ptr @number
  %b = load i64, ptr @given
  %c = call i64 @own(i64 %a)
  %d = call i64 @far(i64 %b)
  %e = add i64 %c, %d
  ret i64 %e
}
"""


@cache
def arm_object(text: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
    return bytes(machine.emit_object(llvm.parse_assembly(text)))


def words(image: Image) -> dict[int, int]:
    """The instructions of an image by their offsets."""
    return {4 * n: word for n, (word,) in enumerate(struct.iter_unpack("<I", image.code))}


def field(word: int, lowest: int, bits: int) -> int:
    """A signed field of an instruction."""
    value = word >> lowest & (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def is_adr(word: int) -> bool:
    return word & 0x9F000000 == 0x10000000


def referred(code: dict[int, int], at: int) -> int:
    """What the adr at an offset, with the load or addition of its register behind it, refers to."""
    word = code[at]
    assert is_adr(word)
    register = word & 31
    user = next(code[later] for later in range(at + 4, len(code) * 4, 4) if code[later] >> 5 & 31 == register)
    scale = 0 if user & 0x7F800000 == 0x11000000 else user >> 30
    return at + (field(word, 5, 19) << 2 | word >> 29 & 3) + ((user >> 10 & 0xFFF) << scale)


def test_an_image_for_arm() -> None:
    """Decoded by the test: what its instructions refer to are slots for names, a stub for calls of one, and data."""
    image = link_image([arm_object(MODULE)], ["near"])
    code = words(image)
    patched = {offset: (target, addend) for offset, target, addend in image.patches}
    far, given = image.imports.index("far"), image.imports.index("given")
    stub = max(code) - 12
    assert [code[stub + 8], stub % 16] == [0xD61F0200, 0], "br x16"
    assert patched[referred(code, stub)] == (far, 0)
    own, called = sorted(at + 4 * field(word, 0, 26) for at, word in code.items() if word >> 26 == 0b100101)
    assert (called, own < image.exports["near"]) == (stub, True)
    table = next(offset for offset, what in patched.items() if what == (BASE, own))
    assert patched[table + 8] == (far, 0)
    slots = {offset for offset, (target, _) in patched.items() if target in (far, given)} - {table + 8}
    data_at = in_pages(len(image.code)) + in_pages(len(image.constants))
    assert image.data[:8] == (7).to_bytes(8, "little")
    assert {referred(code, at) for at, word in code.items() if is_adr(word)} == {data_at, table} | slots


def test_objects_of_two_processors_are_no_program() -> None:
    code = bytearray(arm_object(MODULE))
    code[18] = 62  # e_machine of x86-64
    with pytest.raises(UnknownObject, match="processor"):
        link_image([arm_object(MODULE), bytes(code)], ["near"])


def test_an_offset_from_a_slot_is_left_to_llvm() -> None:
    """It would be added to the slot's place, and not to what the slot holds."""
    whole = arm_object(MODULE)
    place = next(place for place in range(len(whole)) if whole[place : place + 4] == (311).to_bytes(4, "little"))
    code = bytearray(whole)
    struct.pack_into("<q", code, place + 8, 8)
    with pytest.raises(UnknownObject, match="slot"):
        link_image([bytes(code)], ["near"])
    assert link([whole], ["near"]).startswith(MAGIC)
