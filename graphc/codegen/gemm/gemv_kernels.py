"""A few rows or columns of a matrix read at a time, at the speed of memory, as LLVM IR.

In: the suffix of a dtype (f64, f32, i64, i32), and how many. Out: IR text of internal functions:

    dots_of_rows_<count>_<t>(n, a, a_row, x)                    the inner products of so many contiguous rows with x
    add_columns_<count>_<t>(m, alpha, x0, ..., a, a_col, y)     y plus alpha times the sum of so many contiguous
                                                                columns, each times a number
    add_short_<count>_<t>(m, n, alpha, a, a_col, x, x_step, y)  y plus alpha a x, whose columns fill so many registers

What is read next is asked for ahead: with several streams that is a tenth to a quarter faster than what the processor
sees for itself. An inner product has the same bits whatever the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.codegen.gemm.microkernel import ARITHMETIC, lanes_of, splat
from graphc.codegen.llvm.counted import expand_loops
from graphc.codegen.llvm.target import has_avx512

SUMS = {False: 2, True: 4}
"""Registers with partial sums of a row: for four rows half of those that there are, without AVX-512 and with it."""
AHEAD = 1024
"""Bytes ahead of what is read that are asked for. Past the end of a matrix that does nothing."""
LINE_BYTES = 64
SHORT_SUMS = 8
"""Registers with sums of columns that are short."""


def rows_ir(count: int, suffix: str) -> str:
    """dots_of_rows: 1 or 4 of them, as a vector. Each element of x is loaded once for all."""
    own, lanes, sums = ARITHMETIC[suffix], lanes_of(suffix), SUMS[has_avx512()]
    vector, width = f"<{lanes} x {own.element}>", lanes * sums
    rows, parts = range(count), range(sums)

    def carry(name: str, begin: str, then: str) -> str:
        """Vectors of a loop, one for each row, whose number stands for #."""
        return ", ".join(f"{vector} {name} = {begin} then {then}".replace("#", str(i)) for i in rows)

    carried = ", ".join(carry(f"%s#.{p}", "zeroinitializer", f"%m#.{p}") for p in parts)
    turn = [line for i in rows for line in _ask_row(f"%a{i}", "%j", width, suffix)]
    for p in parts:
        turn.append(f"%j.{p} = add nsw i64 %j, {p * lanes}")
        turn += _add_rows(rows, f"%j.{p}", f"%s#.{p}", f"%m#.{p}", suffix)
    added: list[str] = []
    for i in rows:
        totals = [f"%m{i}.0", *(f"%w{i}.{p}" for p in parts[1:])]
        added += [f"%w{i}.{p} = {own.join} {vector} {totals[p - 1]}, %m{i}.{p}" for p in parts[1:]]
    begun = [f"%v{i} = phi {vector} [zeroinitializer, %start], [%w{i}.{sums - 1}, %j.done]" for i in rows]
    rest = [*_reach("%n", "%r", lanes), *_add_rows(rows, "%r", "%u#", "%h#", suffix, masked=True)]
    lines, result = _add_lanes([f"%u{i}" for i in rows], suffix)
    text = f"""{_declarations(suffix)}
define internal <{count} x {own.element}> @dots_of_rows_{count}_{suffix}(i64 %n, ptr noalias %a, i64 %a_row,
    ptr noalias %x) noinline {{
start:
  %beyond = urem i64 %n, {width}
  %whole = sub i64 %n, %beyond
  %beyond.one = urem i64 %n, {lanes}
  %vectors = sub i64 %n, %beyond.one
{_text(_streams("%a_row", rows, own.element))}
  %long = icmp sgt i64 %whole, 0
  br i1 %long, label %wide, label %ones
wide:
  repeat %j from 0 to %whole by {width} with {carried} {{
{_text(turn)}
  }}
{_text(added)}
  br label %ones
ones:
{_text(begun)}
  for %q from %whole to %vectors by {lanes} with {carry("%t#", "%v#", "%g#")} {{
{_text(_add_rows(rows, "%q", "%t#", "%g#", suffix))}
  }}
  for %r from %vectors to %n by {lanes} with {carry("%u#", "%t#", "%h#")} {{
{_text(rest)}
  }}
{_text(lines)}
  ret <{count} x {own.element}> {result}
}}
"""
    return expand_loops(text)


def _ask_row(row: str, place: str, width: int, suffix: str) -> list[str]:
    """Lines that ask for as many numbers of a row as a turn reads, some turns ahead."""
    own = ARITHMETIC[suffix]
    lines = [f"{row}.now = getelementptr {own.element}, ptr {row}, i64 {place}"]
    for apart in range(0, width * own.align, LINE_BYTES):
        lines += _ask(f"{row}.now", f"{row}.ahead{apart}", AHEAD + apart)
    return lines


def _add_rows(rows: Iterable[int], place: str, sums: str, made: str, suffix: str, *, masked: bool = False) -> list[str]:
    """Lines that add, for each row, whose number stands for #, a vector of it at a place times that of x to a sum."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    vector = f"<{lanes} x {own.element}>"

    def load(name: str, base: str) -> list[str]:
        read = f"{name} = load {vector}, ptr {name}.at, align {own.align}"
        at = f"{name}.at = getelementptr {own.element}, ptr {base}, i64 {place}"
        return [at, _load(name, f"{name}.at", suffix) if masked else read]

    lines = load(f"{place}.x", "%x")
    for i in rows:
        lines += [
            *load(f"{place}.e{i}", f"%a{i}"),
            f"{place}.p{i} = {own.times} {vector} {place}.e{i}, {place}.x",
            f"{made} = {own.plus} {vector} {sums}, {place}.p{i}".replace("#", str(i)),
        ]
    return lines


def columns_ir(count: int, suffix: str) -> str:
    """add_columns: any number of them."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    t, vector, columns = own.element, f"<{lanes} x {own.element}>", range(count)
    turn = [f"%y.at = getelementptr {t}, ptr %y, i64 %i", f"%y.old = load {vector}, ptr %y.at, align {own.align}"]
    rest = [*_reach("%m", "%r", lanes), f"%y.to = getelementptr {t}, ptr %y, i64 %r", _load("%y.left", "%y.to", suffix)]
    for j in columns:
        turn += [
            f"%e{j}.at = getelementptr {t}, ptr %a{j}, i64 %i",
            *_ask(f"%e{j}.at", f"%ahead{j}", AHEAD),
            f"%e{j} = load {vector}, ptr %e{j}.at, align {own.align}",
        ]
        rest += [f"%f{j}.at = getelementptr {t}, ptr %a{j}, i64 %r", _load(f"%f{j}", f"%f{j}.at", suffix)]
    made, last = _add_products("%y.old", "%e", "%p", "%s", count, suffix)
    made_rest, last_rest = _add_products("%y.left", "%f", "%q", "%u", count, suffix)
    numbers = ", ".join(f"{t} %x{j}" for j in columns)
    splats = [line for name in ("%alpha", *(f"%x{j}" for j in columns)) for line in splat(name, t, lanes)]
    text = f"""{_declarations(suffix)}
define internal void @add_columns_{count}_{suffix}(i64 %m, {t} %alpha, {numbers}, ptr noalias %a, i64 %a_col,
    ptr noalias %y) noinline {{
start:
  %beyond = urem i64 %m, {lanes}
  %whole = sub i64 %m, %beyond
{_text(_streams("%a_col", columns, t))}
{_text(splats)}
  for %i from 0 to %whole by {lanes} {{
{_text([*turn, *made, f"store {vector} {last}, ptr %y.at, align {own.align}"])}
  }}
  for %r from %whole to %m by {lanes} {{
{_text([*rest, *made_rest])}
  {_store(last_rest, "%y.to", suffix)}
  }}
  ret void
}}
"""
    return expand_loops(text)


def short_ir(vectors: int, suffix: str) -> str:
    """add_short: m is at most what so many registers hold. y stays there, as several sums, while the columns go by."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    t, vector, count = own.element, f"<{lanes} x {own.element}>", SHORT_SUMS // vectors
    columns, places = range(count), range(vectors)
    reach = [line for v in places for line in _reach("%m", f"{v * lanes}", lanes, f".{v}")]
    carried = ", ".join(f"{vector} %s{j}.{v} = zeroinitializer then %m{j}.{v}" for j in columns for v in places)
    alone = ", ".join(f"{vector} %t{v} = %s0.{v} then %n0.{v}" for v in places)

    def add(j: int, column: str, sums: str, made: str) -> list[str]:
        """Lines that add column j behind the one that is named."""
        lines = [
            f"%{made}{j}.number = add nsw i64 {column}, {j}",
            f"%{made}{j}.x.offset = mul i64 %{made}{j}.number, %x_step",
            f"%{made}{j}.x.at = getelementptr {t}, ptr %x, i64 %{made}{j}.x.offset",
            f"%{made}{j}.x = load {t}, ptr %{made}{j}.x.at",
            *splat(f"%{made}{j}.x", t, lanes),
            f"%{made}{j}.offset = mul i64 %{made}{j}.number, %a_col",
        ]
        for v in places:
            name = f"%{made}{j}.{v}"
            lines += [
                f"{name}.place = add i64 %{made}{j}.offset, {v * lanes}",
                f"{name}.at = getelementptr {t}, ptr %a, i64 {name}.place",
                _load(f"{name}.e", f"{name}.at", suffix, f".{v}"),
                f"{name}.p = {own.times} {vector} {name}.e, %{made}{j}.x.all",
                f"{name} = {own.plus} {vector} {sums.replace('#', str(v))}, {name}.p",
            ]
        return lines

    after = splat("%alpha", t, lanes)
    for v in places:
        sums = [f"%t{v}", *(f"%s{j}.{v}" for j in columns[1:])]
        names = [sums[0], *(f"%w{j}.{v}" for j in columns[1:])]
        after += [f"%w{j}.{v} = {own.join} {vector} {names[j - 1]}, {sums[j]}" for j in columns[1:]]
        after += [
            f"%y{v}.at = getelementptr {t}, ptr %y, i64 {v * lanes}",
            _load(f"%y{v}", f"%y{v}.at", suffix, f".{v}"),
            f"%v{v} = {own.scale} {vector} %w{count - 1}.{v}, %alpha.all",
            f"%z{v} = {own.join} {vector} %y{v}, %v{v}",
            _store(f"%z{v}", f"%y{v}.at", suffix, f".{v}"),
        ]
    text = f"""{_declarations(suffix)}
define internal void @add_short_{vectors}_{suffix}(i64 %m, i64 %n, {t} %alpha, ptr noalias %a, i64 %a_col,
    ptr noalias %x, i64 %x_step, ptr noalias %y) noinline {{
start:
{_text(reach)}
  %beyond = urem i64 %n, {count}
  %whole = sub i64 %n, %beyond
  for %j from 0 to %whole by {count} with {carried} {{
{_text([line for j in columns for line in add(j, "%j", f"%s{j}.#", "m")])}
  }}
  for %k from %whole to %n by 1 with {alone} {{
{_text(add(0, "%k", "%t#", "n"))}
  }}
{_text(after)}
  ret void
}}
"""
    return expand_loops(text)


def _text(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _declarations(suffix: str) -> str:
    """What all of them need declared."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    vector, bits = f"<{lanes} x {own.element}>", f"<{lanes} x i1>"
    return f"""
declare {vector} @llvm.masked.load.v{lanes}{own.short}.p0(ptr, i32, {bits}, {vector})
declare void @llvm.masked.store.v{lanes}{own.short}.p0({vector}, ptr, i32, {bits})
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.smax.i64(i64, i64)
"""


def _streams(step: str, numbers: Iterable[int], element: str) -> list[str]:
    """Lines with the beginnings of rows or columns a step apart: %a0, %a1 ..."""
    return [
        line
        for number in numbers
        for line in (
            f"%offset{number} = mul i64 {step}, {number}",
            f"%a{number} = getelementptr {element}, ptr %a, i64 %offset{number}",
        )
    ]


def _ask(address: str, name: str, ahead: int) -> list[str]:
    """Lines that ask for what stands so many bytes behind an address."""
    return [
        f"{name} = getelementptr i8, ptr {address}, i64 {ahead}",
        f"call void @llvm.prefetch.p0(ptr {name}, i32 0, i32 3, i32 1)",
    ]


def _reach(size: str, place: str, lanes: int, which: str = "") -> list[str]:
    """Lines that say which lanes from a place on are within the size: %there."""
    numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
    return [
        f"%left{which}.long = sub i64 {size}, {place}",
        f"%left{which}.above = call i64 @llvm.smax.i64(i64 %left{which}.long, i64 0)",
        f"%left{which} = trunc i64 %left{which}.above to i32",
        *splat(f"%left{which}", "i32", lanes),
        f"%there{which} = icmp ult <{lanes} x i32> <{numbers}>, %left{which}.all",
    ]


def _load(name: str, address: str, suffix: str, which: str = "") -> str:
    """A line that reads the lanes that are there; 0 is in the others."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    vector = f"<{lanes} x {own.element}>"
    rest = f"i32 {own.align}, <{lanes} x i1> %there{which}, {vector} zeroinitializer"
    return f"{name} = call {vector} @llvm.masked.load.v{lanes}{own.short}.p0(ptr {address}, {rest})"


def _store(value: str, address: str, suffix: str, which: str = "") -> str:
    """A line that writes the lanes that are there."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    rest = f"ptr {address}, i32 {own.align}, <{lanes} x i1> %there{which}"
    return f"call void @llvm.masked.store.v{lanes}{own.short}.p0(<{lanes} x {own.element}> {value}, {rest})"


def _add_products(start: str, e: str, p: str, s: str, count: int, suffix: str) -> tuple[list[str], str]:
    """Lines that add alpha times the sum of vectors e0, e1 ... times the numbers of the columns to a vector, and the
    name of what that makes. p and s: names of products and sums. The products come first, since what they are added to
    was just written; alpha comes last, since a number times it may be more or less than the dtype holds."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    vector = f"<{lanes} x {own.element}>"
    lines, total = [f"{p}0 = {own.times} {vector} {e}0, %x0.all"], f"{p}0"
    for j in range(1, count):
        lines += [
            f"{p}{j} = {own.times} {vector} {e}{j}, %x{j}.all",
            f"{s}{j} = {own.plus} {vector} {total}, {p}{j}",
        ]
        total = f"{s}{j}"
    lines += [
        f"{s}.scaled = {own.scale} {vector} {total}, %alpha.all",
        f"{s}.all = {own.join} {vector} {start}, {s}.scaled",
    ]
    return lines, f"{s}.all"


def _add_lanes(names: Sequence[str], suffix: str) -> tuple[list[str], str]:
    """Lines that add up the lanes of each of 1 or 4 vectors, and the name of the vector of their sums. Of each vector
    they are added in the same order: neighbours, then neighbouring pairs, then halves."""
    own, lanes = ARITHMETIC[suffix], lanes_of(suffix)
    lines: list[str] = []

    def add(first: str, other: str, size: int, low: Sequence[int], high: Sequence[int]) -> str:
        vector, wide = f"<{size} x {own.element}>", f"<{len(low)} x {own.element}>"
        number, kind = len(lines) // 3, f"<{len(low)} x i32>"
        for side, picks in (("low", low), ("high", high)):
            mask = ", ".join(f"i32 {pick}" for pick in picks)
            lines.append(f"%{side}{number} = shufflevector {vector} {first}, {vector} {other}, {kind} <{mask}>")
        lines.append(f"%sum{number} = {own.join} {wide} %low{number}, %high{number}")
        return f"%sum{number}"

    left, size = list(names), lanes
    for apart in (1, 2):
        if len(names) > 1:
            # those of two vectors beside each other, so that the sums of all come to be neighbours
            picks = [(lane & ~apart) + (size if lane & apart else 0) for lane in range(size)]
            pairs = zip(left[::2], left[1::2], strict=True)
            left = [add(first, other, size, picks, [pick + apart for pick in picks]) for first, other in pairs]
        else:
            left = [add(left[0], "poison", size, range(0, size, 2), range(1, size, 2))]
            size //= 2
    while size > len(names):
        size //= 2
        left = [add(left[0], "poison", 2 * size, range(size), range(size, 2 * size))]
    return lines, left[0]
