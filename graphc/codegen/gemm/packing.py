"""Numbers of a matrix brought together for tiles.

In: the suffix of a dtype (f64, f32, i64, i32). Out: internal functions of LLVM IR. A lane is a row of the left operand
of a product, or a column of the right one.

    pack            a group of lanes, one number of each after the other
    pack_panels     panels of lanes, in the order in which tiles read them
"""

from __future__ import annotations

from graphc.codegen.gemm.microkernel import ARITHMETIC
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external, function
from graphc.codegen.llvm.typed import I64, NoAlias, Ptr, vector

GROUP = 8
"""Lanes that are packed at a time."""

least = external("llvm.smin.i64", I64, I64, I64)
most = external("llvm.smax.i64", I64, I64, I64)


def pack(suffix: str) -> Function[..., None]:
    """pack_<t>(lanes, depth, from, lane_step, depth_step, to, lead)."""
    own = ARITHMETIC[suffix]
    kind, group = own.kind, vector(own.kind, GROUP)

    @function("noinline", name=f"pack_{suffix}")
    def write(
        code: Code, lanes: I64, depth: I64, source: NoAlias, lane_step: I64, depth_step: I64, target: NoAlias, lead: I64
    ) -> None:
        """Copies `lanes` lanes, at most GROUP, of `depth` numbers each: number p of lane i goes to place p * lead + i
        of the target. Lanes that are missing are 0."""
        is_full = lanes == GROUP
        with code.when(is_full & (lane_step == 1) & (depth > 0)):
            with code.count(0, depth, sure=True) as p:
                numbers = source.at(p * depth_step, kind).load(group, align=own.align)
                target.at(p * lead, kind).store(numbers, align=own.align)
            code.ret()
        turned = code.variable(I64.of(0))
        with code.when(is_full & (depth_step == 1) & (depth >= GROUP)), code.loop() as iteration:
            here = turned.value
            _transpose(suffix, source.at(here, kind), lane_step, target.at(here * lead, kind), lead)
            turned.value += GROUP
            iteration.leave.unless(turned.value + GROUP <= depth)
        with code.count(turned.value, depth) as r:
            from_, to = source.at(r * depth_step, kind), target.at(r * lead, kind)
            with code.count(0, GROUP, sure=True) as i:
                number = code.variable(kind.of(0))
                with code.when(i < lanes):
                    number.value = from_.at(i * lane_step, kind).load(kind)
                to.at(i, kind).store(number.value)

    return write


def _transpose(suffix: str, source: Ptr, lane_step: I64, target: Ptr, lead: I64) -> None:
    """Eight rows of eight numbers, `lane_step` apart, to columns `lead` apart."""
    own, group = ARITHMETIC[suffix], vector(ARITHMETIC[suffix].kind, GROUP)
    rows = [source.at(lane_step * row, own.kind).load(group, align=own.align) for row in range(GROUP)]
    for apart in (1, 2, 4):
        places = [
            [(lane & ~apart) + low + (GROUP if lane & apart else 0) for lane in range(GROUP)] for low in (0, apart)
        ]
        rows = [rows[row & ~apart].pick(rows[row | apart], places[row & apart > 0]) for row in range(GROUP)]
    for number, column in enumerate(rows):
        target.at(lead * number, own.kind).store(column, align=own.align)


def panels(lanes: I64, size: I64 | int) -> I64:
    """The number of panels of `size` lanes that hold `lanes`."""
    return (lanes + size - 1) // size


def pack_panels(suffix: str) -> Function[..., None]:
    """pack_panels_<t>(begin, end, size, depth, step, lead, source, lane_step, depth_step, target): the panels of `lead`
    lanes from begin to end, of `depth` numbers each, `step` of them at a time."""
    own = ARITHMETIC[suffix]
    kind, group = own.kind, vector(own.kind, GROUP)

    @function("noinline", name=f"pack_panels_{suffix}")
    def write(
        code: Code,
        begin: I64,
        end: I64,
        size: I64,
        depth: I64,
        step: I64,
        lead: I64,
        source: Ptr,
        lane_step: I64,
        depth_step: I64,
        target: Ptr,
    ) -> None:
        """Packs the panels from begin to end of one operand, GROUP numbers of each lane at a time where its lanes stand
        apart. Where they stand beside each other, a number of all lanes at a time, so that memory is read in order."""
        with code.when(begin >= end):
            code.ret()
        all_ = panels(size, lead) * lead
        beside = (lane_step == 1).choose(least(code, end, size // lead), begin)
        p = code.variable(I64.of(0))
        with code.loop() as iteration:
            height = least(code, depth - p.value, step)
            from_, to = source.at(p.value * depth_step, kind), target.at(p.value * all_, kind)
            numbers = height * lead
            with code.when(begin < beside), code.count(0, height, sure=True) as r:
                r_from, r_to = from_.at(r * depth_step, kind), to.at(r * lead, kind)
                with code.count(begin, beside, sure=True) as q:
                    q_from, q_to = r_from.at(q * lead, kind), r_to.at(q * numbers, kind)
                    with code.count(0, lead, GROUP, sure=True) as i:
                        q_to.at(i, kind).store(q_from.at(i, kind).load(group, align=own.align), align=own.align)
            # what is left, by groups of lanes; those beyond the last are read nowhere
            with code.count(beside * lead, end * lead, GROUP) as g:
                lanes = most(code, least(code, size - g, I64.of(GROUP)), I64.of(0))
                inside = (lanes == 0).choose(I64.of(0), g)
                place = (g // lead) * numbers + g % lead
                given = from_.at(inside * lane_step, kind), lane_step, depth_step, to.at(place, kind), lead
                pack(suffix)(code, lanes, height, *given)
            p.value += height
            iteration.leave.unless(p.value < depth)

    return write
