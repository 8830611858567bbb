"""The smaller and the larger of two floats in few instructions of x86-64, and of the numbers of two vectors.

    %c = call double @llvm.minimum.f64(double %a, double %b)      in; out:
    %c.l = fcmp olt double %a, %b          minsd %a, %b           %b where they are equal, or one is NaN
    %c.m = select i1 %c.l, ...
    %c.r = fcmp olt double %b, %a          minsd %b, %a           %a there
    %c.n = select i1 %c.r, ...
    %c   = the bits of both, by `or`

In: optimised LLVM IR as text, in which loops of such calls are vectors already. Out: the same with such instructions in
place of the calls, for operands that are not constants. Where the numbers differ, both halves are the smaller one. Of
0.0 and -0.0 the bits together are -0.0; of a NaN and a number they are a NaN. The larger number is the negative of the
smaller one of both negatives. LLVM's own code for these calls moves signs through integer or mask registers, and takes
three times as long from a number to the result.
"""

from __future__ import annotations

import re

CALL = re.compile(
    r'^( *)(%"?)([\w.]+)("?) = (?:tail )?call (double|float|<\d+ x (?:double|float)>)'
    r' @"?llvm\.(minimum|maximum)\.\w+"?\(\5 (%[\w."]+), \5 (%[\w."]+)\)(?: #\d+)?(.*)$',
    re.MULTILINE,
)
EXTREMES = ("llvm.minimum.", "llvm.maximum.")
"""The beginnings of the names of the functions that are called."""
INTEGERS = {"double": "i64", "float": "i32"}


def with_short_extremes(ir: str) -> str:
    """Return the module with the instructions in place of the calls."""
    return CALL.sub(_instructions, ir)


def _instructions(found: re.Match[str]) -> str:
    """The instructions in place of one call."""
    space, begin, name, end, kind, which, first, second, more = found.groups()
    whole, truth = (re.sub("double|float", name, kind) for name in (INTEGERS[kind.strip("<>").split()[-1]], "i1"))

    def own(part: str) -> str:
        return f"{begin}{name}.{part}{end}" if begin == '%"' or not name.isdigit() else f'%"{name}.{part}"'

    made, result = list[str](), f"{begin}{name}{end}"
    if which == "maximum":
        made += [f"{own('x')} = fneg {kind} {first}", f"{own('y')} = fneg {kind} {second}"]
        first, second = own("x"), own("y")
    for less, one, bits, left, right in (("l", "m", "p", first, second), ("r", "n", "q", second, first)):
        made += [
            f"{own(less)} = fcmp olt {kind} {left}, {right}",
            f"{own(one)} = select {truth} {own(less)}, {kind} {left}, {kind} {right}",
            f"{own(bits)} = bitcast {kind} {own(one)} to {whole}",
        ]
    made.append(f"{own('o')} = or {whole} {own('p')}, {own('q')}")
    if which == "maximum":
        made += [f"{own('s')} = bitcast {whole} {own('o')} to {kind}", f"{result} = fneg {kind} {own('s')}{more}"]
    else:
        made.append(f"{result} = bitcast {whole} {own('o')} to {kind}{more}")
    return "\n".join(space + line for line in made)
