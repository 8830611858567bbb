"""Counted loops in LLVM IR, written as loops.

In: IR text in which a loop over an i64 stands in braces. Out: IR text with its blocks, comparisons and phi nodes.

    for %i from 0 to %n by 4 {          turns while i < n, none where n is not above 0
    repeat %i from 0 to %n by 4 {       the first turn is not asked for: n must be above 0
    }

Both may carry values, `for %i from 0 to %n by 1 with double %sum = 0.0 then %more {`: %sum is 0.0 in the first turn,
and in each other what %more was in the turn before. Several are divided by commas. After a `for`, %sum is what it would
be in the next turn; after a `repeat` %more is there. A step may be made in the turn itself. The blocks are %i.turn and
%i.done, and the numbers %i.next and %i.more. Every function with a loop has to name its first block.
"""

from __future__ import annotations

import re

from graphc.startup.record import record

OPEN = re.compile(r"\s*(for|repeat) %(\S+) from (\S+) to (\S+) by (\S+?)(?: with (.+))? \{")
CLOSE = re.compile(r"\s*\}")
LABEL = re.compile(r"([\w.]+):")
CARRIED = re.compile(r"(.+) %(\S+) = (.+) then (\S+)")
APART = re.compile(r", (?=\S+ %|<[^>]*> %)")
"""Between carried values: a comma behind which there is a type."""


@record()
class Opened:
    """A loop whose end is yet to come: what it says of itself, the block before it, and the line where it begins."""

    kind: str
    counter: str
    begin: str
    end: str
    step: str
    carried: str
    before: str
    line: int


def expand_loops(text: str) -> str:
    """The text with its loops as blocks. Raises ValueError where braces do not match."""
    lines: list[str] = []
    opened: list[Opened] = []
    block = ""
    for line in text.split("\n"):
        if found := OPEN.fullmatch(line):
            kind, counter, begin, end, step, carried = found.groups("")
            opened.append(Opened(kind, counter, begin, end, step, carried, block, len(lines)))
            lines.append("")  # written when the last block of a turn is known
            block = f"{counter}.turn"
        elif CLOSE.fullmatch(line) and opened:
            loop = opened.pop()
            lines[loop.line] = _head(loop, block)
            lines.append(_tail(loop))
            block = f"{loop.counter}.done"
        else:
            if label := LABEL.fullmatch(line):
                block = label[1]
            lines.append(line)
    if opened:
        raise ValueError(f"the loop over %{opened[-1].counter} has no end")
    return "\n".join(lines)


def _head(loop: Opened, last: str) -> str:
    i, first = loop.counter, f"{loop.counter}.turn" if loop.kind == "repeat" else f"{loop.counter}.test"
    lines = [
        f"  br label %{first}",
        f"{first}:",
        f"  %{i} = phi i64 [{loop.begin}, %{loop.before}], [%{i}.next, %{last}]",
    ]
    for each in APART.split(loop.carried) if loop.carried else ():
        found = CARRIED.fullmatch(each)
        if found is None:
            raise ValueError(f"the loop over %{i} cannot carry {each!r}")
        kind, name, begin, then = found.groups()
        lines.append(f"  %{name} = phi {kind} [{begin}, %{loop.before}], [{then}, %{last}]")
    if loop.kind == "for":
        lines += [
            f"  %{i}.more = icmp slt i64 %{i}, {loop.end}",
            f"  br i1 %{i}.more, label %{i}.turn, label %{i}.done",
            f"{i}.turn:",
        ]
    return "\n".join(lines)


def _tail(loop: Opened) -> str:
    i = loop.counter
    lines = [f"  %{i}.next = add nsw i64 %{i}, {loop.step}"]
    if loop.kind == "for":
        lines.append(f"  br label %{i}.test")
    else:
        lines += [
            f"  %{i}.more = icmp slt i64 %{i}.next, {loop.end}",
            f"  br i1 %{i}.more, label %{i}.turn, label %{i}.done",
        ]
    return "\n".join([*lines, f"{i}.done:"])
