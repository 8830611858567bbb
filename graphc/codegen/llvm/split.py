"""A module of LLVM IR as several, so that two processes can compile it.

In: IR text, made of functions, declarations, and globals that are declared elsewhere. Out: texts whose objects, linked,
are that of the whole. A function that was internal is hidden instead: nothing beyond the link sees it. What is always
inlined is in every module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphc.startup.record import record

HEADER = re.compile(
    r"define (?P<internal>internal )?(?P<returns>.*?) @(?P<name>[\w.]+)\((?P<given>.*?)\)(?P<rest>[^)]*)\{$",
    re.DOTALL | re.MULTILINE,
)
ARGUMENT = re.compile(r" %[\w.]+(?=,|$)")


@record()
class Function:
    """A function: its text, and how another module declares it."""

    text: str
    declaration: str
    is_inlined: bool


def split(ir: str, count: int) -> list[str]:
    """So many modules, of about the same length, or fewer where there are fewer functions."""
    common, functions = take_apart(ir)
    inlined = [function for function in functions if function.is_inlined]
    others = [function for function in functions if not function.is_inlined]
    count = min(count, max(len(others), 1))
    if count == 1:
        return [ir]
    groups = [set(group) for group in balanced([len(function.text) for function in others], count)]
    return [
        "\n".join(
            [
                common,
                *(function.text for function in inlined),
                *(other.text if place in group else other.declaration for place, other in enumerate(others)),
            ]
        )
        for group in groups
    ]


def take_apart(ir: str) -> tuple[str, list[Function]]:
    """What stands outside the functions, and these."""
    outside: list[str] = []
    functions: list[Function] = []
    end = 0
    while (begin := ir.find("\ndefine ", end)) >= 0:
        outside.append(ir[end:begin])
        end = ir.index("\n}\n", begin) + 2
        functions.append(read(ir[begin + 1 : end]))
    return "".join([*outside, ir[end:]]), functions


def read(text: str) -> Function:
    """A function from its text."""
    header = HEADER.match(text)
    assert header is not None, text[:200]
    given = ", ".join(ARGUMENT.sub("", argument.strip()) for argument in header["given"].split(",") if argument.strip())
    if "alwaysinline" in header["rest"]:
        return Function(text, "", True)
    hidden = text.replace("define internal ", "define hidden ", 1)
    visibility = "hidden " if header["internal"] else ""
    return Function(hidden, f"declare {visibility}{header['returns']} @{header['name']}({given})", False)


def balanced(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The places of sizes in so many groups of about the same sum: the largest first, each to the smallest group."""
    groups: list[list[int]] = [[] for _ in range(count)]
    sums = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        smallest = sums.index(min(sums))
        groups[smallest].append(place)
        sums[smallest] += sizes[place]
    return groups
