"""Numbers of a matrix brought together for tiles, as LLVM IR.

In: the suffix of a dtype (f64, f32, i64, i32). Out: IR text of internal functions. A lane is a row of the left operand
of a product, or a column of the right one.

    pack            a group of lanes, one number of each after the other
    panels          how many panels hold so many lanes
    pack_panels     panels of lanes, in the order in which tiles read them
"""

from __future__ import annotations

from string import Template

from graphc.codegen.gemm.microkernel import ARITHMETIC, words_of
from graphc.codegen.llvm.counted import expand_loops

GROUP = 8
"""Lanes that are packed at a time."""


def pack_ir(suffix: str) -> str:
    """pack_<t>(lanes, depth, from, lane_step, depth_step, to, lead)."""
    words = words_of(suffix)
    return expand_loops(Template(PACK).substitute(words, group=GROUP, turn=_turn_ir(suffix)))


def panels_ir(suffix: str) -> str:
    """panels_<t>(lanes, size), and pack_panels_<t>(begin, end, size, depth, step, lead, source, lane_step, depth_step,
    target): the panels of `lead` lanes from begin to end, of `depth` numbers each, `step` of them at a time."""
    return expand_loops(Template(PANELS).substitute(words_of(suffix), group=GROUP))


def _turn_ir(suffix: str) -> str:
    """Eight rows of eight numbers, read at %from.here and %lane_step apart, to columns at %to.here, %lead apart."""
    element, align = ARITHMETIC[suffix].element, ARITHMETIC[suffix].align
    vector = f"<{GROUP} x {element}>"
    lines = []
    for row in range(GROUP):
        lines += [
            f"%row{row}.offset = mul i64 %lane_step, {row}",
            f"%row{row}.at = getelementptr {element}, ptr %from.here, i64 %row{row}.offset",
            f"%v0.{row} = load {vector}, ptr %row{row}.at, align {align}",
        ]
    for stage in range(3):
        apart = 1 << stage
        for row in range(GROUP):
            first, other = row & ~apart, row | apart
            low = 0 if row == first else apart
            picks = [(lane & ~apart) + low + (GROUP if lane & apart else 0) for lane in range(GROUP)]
            mask = ", ".join(f"i32 {pick}" for pick in picks)
            lines.append(
                f"%v{stage + 1}.{row} = shufflevector {vector} %v{stage}.{first}, {vector} %v{stage}.{other}, "
                f"<{GROUP} x i32> <{mask}>"
            )
    for row in range(GROUP):
        lines += [
            f"%column{row}.offset = mul i64 %lead, {row}",
            f"%column{row}.at = getelementptr {element}, ptr %to.here, i64 %column{row}.offset",
            f"store {vector} %v3.{row}, ptr %column{row}.at, align {align}",
        ]
    return "\n".join("  " + line for line in lines)


PACK = """
; Copies so many lanes, at most $group, of so many numbers each: number p of lane i goes to to[p * lead + i]. Lanes that
; are missing are 0.
define internal void @pack_$s(i64 %lanes, i64 %depth, ptr noalias %from, i64 %lane_step, i64 %depth_step,
    ptr noalias %to, i64 %lead) noinline {
start:
  %full = icmp eq i64 %lanes, $group
  %beside = icmp eq i64 %lane_step, 1
  %along = icmp eq i64 %depth_step, 1
  %copied = and i1 %full, %beside
  %some = icmp sgt i64 %depth, 0
  %copies = and i1 %copied, %some
  %turned = and i1 %full, %along
  %long = icmp sge i64 %depth, $group
  %turns = and i1 %turned, %long
  br i1 %copies, label %copy, label %look
copy:
  repeat %p from 0 to %depth by 1 {
    %p.offset = mul i64 %p, %depth_step
    %p.lead = mul i64 %p, %lead
    %p.from = getelementptr $t, ptr %from, i64 %p.offset
    %p.to = getelementptr $t, ptr %to, i64 %p.lead
    %numbers = load <$group x $t>, ptr %p.from, align $align
    store <$group x $t> %numbers, ptr %p.to, align $align
  }
  ret void
look:
  br i1 %turns, label %turn, label %ones
turn:
  %q = phi i64 [0, %look], [%q.next, %turn]
  %q.lead = mul i64 %q, %lead
  %from.here = getelementptr $t, ptr %from, i64 %q
  %to.here = getelementptr $t, ptr %to, i64 %q.lead
$turn
  %q.next = add nsw i64 %q, $group
  %q.after = add nsw i64 %q.next, $group
  %q.more = icmp sle i64 %q.after, %depth
  br i1 %q.more, label %turn, label %ones
ones:
  %turned.already = phi i64 [0, %look], [%q.next, %turn]
  for %r from %turned.already to %depth by 1 {
    %r.offset = mul i64 %r, %depth_step
    %r.lead = mul i64 %r, %lead
    %r.from = getelementptr $t, ptr %from, i64 %r.offset
    %r.to = getelementptr $t, ptr %to, i64 %r.lead
    repeat %i from 0 to $group by 1 {
      %there = icmp slt i64 %i, %lanes
      br i1 %there, label %lane.read, label %lane.end
lane.read:
      %i.offset = mul i64 %i, %lane_step
      %i.from = getelementptr $t, ptr %r.from, i64 %i.offset
      %number = load $t, ptr %i.from
      br label %lane.end
lane.end:
      %value = phi $t [$zero, %i.turn], [%number, %lane.read]
      %i.to = getelementptr $t, ptr %r.to, i64 %i
      store $t %value, ptr %i.to
    }
  }
  ret void
}
"""

PANELS = """
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; How many panels of that size hold so many lanes.
define internal i64 @panels_$s(i64 %lanes, i64 %size) alwaysinline {
  %padded = add i64 %lanes, %size
  %above = sub i64 %padded, 1
  %count = udiv i64 %above, %size
  ret i64 %count
}

; Packs the panels from begin to end of one operand, $group numbers of each lane at a time where its lanes stand apart.
; Where they stand beside each other, a number of all lanes at a time, so that memory is read in order.
define internal void @pack_panels_$s(i64 %begin, i64 %end, i64 %size, i64 %depth, i64 %step, i64 %lead, ptr %source,
    i64 %lane_step, i64 %depth_step, ptr %target) noinline {
start:
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %look, label %done
look:
  %panels = call i64 @panels_$s(i64 %size, i64 %lead)
  %all = mul i64 %panels, %lead
  %whole.most = udiv i64 %size, %lead
  %last = call i64 @llvm.smin.i64(i64 %end, i64 %whole.most)
  %unit = icmp eq i64 %lane_step, 1
  %beside = select i1 %unit, i64 %last, i64 %begin
  repeat %p from 0 to %depth by %p.depth {
    %p.left = sub i64 %depth, %p
    %p.depth = call i64 @llvm.smin.i64(i64 %p.left, i64 %step)
    %p.offset = mul i64 %p, %depth_step
    %p.from = getelementptr $t, ptr %source, i64 %p.offset
    %p.start = mul i64 %p, %all
    %p.to = getelementptr $t, ptr %target, i64 %p.start
    %numbers = mul i64 %p.depth, %lead
    %any = icmp slt i64 %begin, %beside
    br i1 %any, label %together, label %apart
together:
    repeat %r from 0 to %p.depth by 1 {
      %r.offset = mul i64 %r, %depth_step
      %r.from = getelementptr $t, ptr %p.from, i64 %r.offset
      %r.place = mul i64 %r, %lead
      %r.to = getelementptr $t, ptr %p.to, i64 %r.place
      repeat %q from %begin to %beside by 1 {
        %q.lane = mul i64 %q, %lead
        %q.from = getelementptr $t, ptr %r.from, i64 %q.lane
        %q.place = mul i64 %q, %numbers
        %q.to = getelementptr $t, ptr %r.to, i64 %q.place
        repeat %i from 0 to %lead by $group {
          %i.from = getelementptr $t, ptr %q.from, i64 %i
          %i.to = getelementptr $t, ptr %q.to, i64 %i
          %lanes.here = load <$group x $t>, ptr %i.from, align $align
          store <$group x $t> %lanes.here, ptr %i.to, align $align
        }
      }
    }
    br label %apart
apart:
    ; what is left, by groups of lanes; those beyond the last are read nowhere
    %first = mul i64 %beside, %lead
    %beyond = mul i64 %end, %lead
    for %g from %first to %beyond by $group {
      %g.left = sub i64 %size, %g
      %g.most = call i64 @llvm.smin.i64(i64 %g.left, i64 $group)
      %lanes = call i64 @llvm.smax.i64(i64 %g.most, i64 0)
      %missing = icmp eq i64 %lanes, 0
      %inside = select i1 %missing, i64 0, i64 %g
      %g.offset = mul i64 %inside, %lane_step
      %g.from = getelementptr $t, ptr %p.from, i64 %g.offset
      %panel = udiv i64 %g, %lead
      %within = urem i64 %g, %lead
      %panel.place = mul i64 %panel, %numbers
      %g.place = add i64 %panel.place, %within
      %g.to = getelementptr $t, ptr %p.to, i64 %g.place
      call void @pack_$s(i64 %lanes, i64 %p.depth, ptr %g.from, i64 %lane_step, i64 %depth_step, ptr %g.to, i64 %lead)
    }
  }
  ret void
done:
  ret void
}
"""
