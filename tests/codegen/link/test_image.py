"""Images: they run as LLVM's linker would have it, nothing in memory is both written and run, damage is found."""

from __future__ import annotations

import ctypes
import gc
import math
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from graphc.codegen.link.elf import UnknownObject, link, link_image
from graphc.codegen.link.image import MAGIC, PAGE, Image, Loaded, decode, encode, join, load, map_image, split
from graphc.codegen.llvm.target import emit_object
from graphc.errors import GraphcError

# What an object may hold: constants of every alignment, a table of addresses, data, zeros, a common block, calls within
# the object, to the other, to the libraries, and to a name given at load; an imported variable.
FIRST = """
@given = external global i64
@words = private unnamed_addr constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@wide = private unnamed_addr constant <8 x double> <double 1., double 2., double 3., double 4.,
                                                     double 5., double 6., double 7., double 8.>, align 64
@handlers = internal constant [3 x ptr] [ptr @double_it, ptr @square_it, ptr @elsewhere]
@state = internal global [3 x i64] [i64 7, i64 8, i64 9], align 64
@pointer = internal global ptr getelementptr (i64, ptr @state, i64 2)
@counter = internal global i64 0
@block = common global [100 x i64] zeroinitializer, align 32

declare i64 @elsewhere(i64)
declare i64 @named(i64)
declare double @sin(double)
declare ptr @memset(ptr, i32, i64)

define internal i64 @double_it(i64 %n) noinline {
  %r = shl i64 %n, 1
  ret i64 %r
}
define internal i64 @square_it(i64 %n) noinline {
  %r = mul i64 %n, %n
  ret i64 %r
}
define i64 @handled(i64 %which, i64 %n) {
  %at = getelementptr ptr, ptr @handlers, i64 %which
  %handler = load ptr, ptr %at
  %r = call i64 %handler(i64 %n)
  ret i64 %r
}
define i64 @outside(i64 %n) {
  %a = call i64 @elsewhere(i64 %n)
  %b = call i64 @named(i64 %a)
  %c = load i64, ptr @given
  %r = add i64 %b, %c
  ret i64 %r
}
define double @wave(double %x, i64 %n) {
  %v = load volatile <8 x double>, ptr @wide
  %e = extractelement <8 x double> %v, i64 %n
  %y = fmul double %x, %e
  %r = call double @sin(double %y)
  ret double %r
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %p = load ptr, ptr @pointer
  %last = load i64, ptr %p
  %more = add i64 %last, 100
  store i64 %more, ptr %p
  call ptr @memset(ptr @block, i32 1, i64 800)
  %b = getelementptr i64, ptr @block, i64 99
  %filled = load i64, ptr %b
  %whole = icmp eq i64 %filled, 72340172838076673
  %one = zext i1 %whole to i64
  %s = add i64 %new, %more
  %r = add i64 %s, %one
  ret i64 %r
}
define i64 @jump(i64 %n) {
  switch i64 %n, label %other [i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e]
a:
  ret i64 11
b:
  %r1 = call i64 @named(i64 3)
  ret i64 %r1
c:
  ret i64 17
d:
  %r3 = call i64 @elsewhere(i64 4)
  ret i64 %r3
e:
  ret i64 19
other:
  %i = and i64 %n, 3
  %at = getelementptr i64, ptr @words, i64 %i
  %w = load i64, ptr %at
  ret i64 %w
}
"""
SECOND = """
@own = internal global i64 1000
declare i64 @handled(i64, i64)
define i64 @elsewhere(i64 %n) {
  %a = call i64 @handled(i64 0, i64 %n)
  %b = load i64, ptr @own
  %r = add i64 %a, %b
  ret i64 %r
}
"""
EXPORTS = ("handled", "outside", "wave", "count", "jump")

GIVEN = ctypes.c_int64(5)
NAMED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda n: n * 3)
SYMBOLS = {"given": ctypes.addressof(GIVEN), "named": ctypes.cast(NAMED, ctypes.c_void_p).value or 0}


@cache
def objects(opt: int) -> tuple[bytes, bytes]:
    return emit_object([FIRST], opt), emit_object([SECOND], opt)


def call(loaded: Loaded, name: str, *args: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(loaded.addresses[name])
    return int(function(*args))


def outcomes(loaded: Loaded) -> list[float]:
    wave = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(loaded.addresses["wave"])
    found: list[float] = [call(loaded, "handled", which, 9) for which in range(3)]
    found += [call(loaded, "outside", 4), call(loaded, "count"), call(loaded, "count")]
    found += [call(loaded, "jump", n) for n in range(8)]
    return [*found, *(wave(0.5, n) for n in range(8))]


EXPECTED: list[float] = [18, 81, 1018, 3 * 1008 + 5, 1 + 109 + 1, 2 + 209 + 1, 11, 9, 17, 1008, 19, 20, 30, 40]


@pytest.mark.parametrize("opt", range(4))
def test_an_image_runs_like_what_llvm_links(opt: int) -> None:
    code = link(objects(opt), EXPORTS)
    assert code.startswith(MAGIC)
    mapped, linked = load(code, SYMBOLS, EXPORTS), load(join(objects(opt)), SYMBOLS, EXPORTS)
    found = outcomes(mapped)
    assert found[:14] == EXPECTED and found == outcomes(linked)
    assert found[14] == pytest.approx(math.sin(0.5))
    again = load(code, SYMBOLS, EXPORTS)
    assert outcomes(again) == found, "each has data of its own"


def test_what_is_linked_is_the_same_bytes_each_time() -> None:
    image = link_image(objects(2), EXPORTS)
    assert encode(image) == link(objects(2), EXPORTS) and decode(encode(image)) == image
    assert set(image.exports) == set(EXPORTS) and {"sin", "named", "given"} <= set(image.imports)


def mappings() -> list[tuple[int, int, str]]:
    """Of this process: begin, end, what is allowed."""
    found = re.findall(r"^(\w+)-(\w+) (....)", Path("/proc/self/maps").read_text(), re.MULTILINE)
    return [(int(begin, 16), int(end, 16), allowed) for begin, end, allowed in found]


def allowed_at(address: int) -> str:
    return next((allowed for begin, end, allowed in mappings() if begin <= address < end), "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell")
def test_nothing_is_both_written_and_run_and_all_is_unmapped() -> None:
    image = link_image(objects(2), EXPORTS)
    loaded = map_image(image, SYMBOLS)
    base = loaded.addresses["handled"] - image.exports["handled"]
    begins = (base, base + image.constants_at, base + image.data_at)
    assert [allowed_at(begin)[:3] for begin in begins] == ["r-x", "r--", "rw-"]
    for begin, size in zip(begins, (len(image.code), len(image.constants), len(image.data) + image.zeros), strict=True):
        assert size and allowed_at(begin) == allowed_at(begin + size - 1)
    del loaded
    gc.collect()
    assert "x" not in allowed_at(base)


def test_what_is_missing_is_named() -> None:
    code = link(objects(1), EXPORTS)
    with pytest.raises(GraphcError, match="no symbol named"):
        load(code, {"given": 8}, EXPORTS)
    with pytest.raises(GraphcError, match="lacks one of"):
        load(code, SYMBOLS, (*EXPORTS, "more"))
    with pytest.raises(GraphcError, match="cannot be loaded"):
        load(join(objects(1)), {}, EXPORTS)


LEFT_TO_LLVM = {
    "storage of threads": "@own = thread_local global i64 3\ndefine ptr @f() {\n ret ptr @own\n}",
    "a constructor": "@llvm.global_ctors = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 1, ptr @f,"
    " ptr null}]\n@run = external global i64\ndefine void @f() {\n store i64 1, ptr @run\n ret void\n}",
    "a weak definition": "define weak i64 @f() {\n ret i64 1\n}",
    "a weak reference": "@g = extern_weak global i64\ndefine ptr @f() {\n ret ptr @g\n}",
    "a symbol that code finds": "@f = ifunc i64 (), ptr @find\ndefine internal ptr @find() {\n ret ptr null\n}",
    "nothing of that name": "define i64 @g() {\n ret i64 1\n}",
}


@pytest.mark.parametrize("text", LEFT_TO_LLVM.values(), ids=LEFT_TO_LLVM.keys())
def test_what_is_not_known_is_left_to_llvm(text: str) -> None:
    code = emit_object([text], 1)
    with pytest.raises(UnknownObject):
        link_image([code], ["f"])
    assert split(link([code], ["f"])) == [code]


def test_two_definitions_of_a_name_are_left_to_llvm() -> None:
    code = emit_object(["define i64 @f() {\n ret i64 1\n}"], 1)
    with pytest.raises(UnknownObject, match="twice"):
        link_image([code, code], ["f"])


def test_another_processor_is_left_to_llvm() -> None:
    code = bytearray(objects(1)[0])
    code[18] = 243  # e_machine of RISC-V
    with pytest.raises(UnknownObject, match="processor"):
        link_image([bytes(code)], [])
    with pytest.raises(UnknownObject, match="processor"):
        link_image([objects(1)[0], bytes(code)], [])


def test_an_object_whose_sections_lie_nowhere_is_no_image() -> None:
    code = bytearray(objects(1)[0])
    code[40:48] = b"\xff" * 8  # e_shoff
    with pytest.raises(UnknownObject, match="cut off"):
        link_image([bytes(code)], [])
    assert split(link([bytes(code)], [])) == [bytes(code)]


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(0, 255), st.sampled_from(["change", "cut"]))
def test_a_damaged_object_is_no_image_or_one(place: int, value: int, how: str) -> None:
    """Whatever the linker is given, it ends, with an image whose offsets fit or by leaving it to LLVM."""
    code = bytearray(objects(1)[0])
    place %= len(code)
    if how == "cut":
        del code[place:]
    else:
        code[place] = value
    content = link([bytes(code)], [])
    if content.startswith(MAGIC):
        decode(content)
    else:
        assert split(content) == [bytes(code)]


@given(st.integers(0, 10**6), st.integers(0, 255), st.sampled_from(["change", "cut", "more"]))
def test_a_damaged_image_is_refused_or_fits(place: int, value: int, how: str) -> None:
    whole = link(objects(1), EXPORTS)
    code = bytearray(whole)
    place %= len(code)
    if how == "change":
        code[place] = value
    elif how == "cut":
        del code[place:]
    else:
        code[place:place] = bytes([value])
    try:
        image = decode(bytes(code))
    except GraphcError:
        return
    assert all(0 <= offset <= image.size - 8 for offset, _, _ in image.patches)
    assert all(-1 <= target < len(image.imports) for _, target, _ in image.patches)
    assert all(0 <= offset < image.size for offset in image.exports.values())


@pytest.mark.parametrize(
    "image",
    [
        Image(b"", b"", b"", 0, (), (), {}),
        Image(b"\xc3", b"", b"", 2**31, (), (), {}),
        Image(b"\xc3", b"", b"", 0, (), ((PAGE - 7, -1, 0),), {}),
        Image(b"\xc3", b"", b"", 0, (), ((0, 0, 0),), {}),
        Image(b"\xc3", b"", b"", 0, ("a",), ((0, -2, 0),), {}),
        Image(b"\xc3", b"", b"", 0, (), (), {"f": PAGE}),
    ],
)
def test_offsets_are_checked(image: Image) -> None:
    with pytest.raises(GraphcError, match="cannot be loaded"):
        decode(encode(image))


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


WARM = """
import os, sys
import numpy as np
import graphc, graphc.tensor as T
x = T.dmatrix("x")
f = graphc.function([x], T.tanh(T.dot(x, x)).sum(axis=0))
print(f.built.report.origin, f(np.ones((2, 2))).tolist(), [m for m in ("llvmlite", "numba") if m in sys.modules])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="images are made of ELF objects")
def test_a_warm_start_imports_no_llvmlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    result = [math.tanh(2.0)] * 2
    assert run(WARM).startswith("compiled [") and run(WARM).startswith(f"cache {[2 * r for r in result]} []")


@pytest.mark.slow
def test_a_thread_may_end_within_code_that_cannot_be_unwound() -> None:
    """What pthread_exit does when the interpreter ends under a thread that waits for the GIL: glibc unwinds."""
    run("""
        import ctypes, threading
        from graphc.codegen.link.image import load
        from graphc.codegen.link.elf import link
        from graphc.codegen.llvm.target import emit_object
        text = '''
        declare void @pthread_exit(ptr)
        define void @f() {
          call void @pthread_exit(ptr null)
          ret void
        }
        '''
        loaded = load(link([emit_object([text], 1)], ["f"]), {}, ["f"])
        start = ctypes.pythonapi["pthread_create"]
        thread = ctypes.c_void_p()
        start.argtypes = [ctypes.c_void_p] * 4
        assert start(ctypes.addressof(thread), None, loaded.addresses["f"], None) == 0
        join = ctypes.CDLL(None)["pthread_join"]
        join.argtypes = [ctypes.c_void_p] * 2
        assert join(thread, None) == 0
    """)


def test_objects_are_joined_and_split() -> None:
    for parts in ([], [b"a"], [b"", b"ab", b"c"]):
        assert split(join(parts)) == parts
    assert split(b"\x7fELF") == [b"\x7fELF"]
    assert split(join([b"abc"])[:-1]) == [b"ab"]
