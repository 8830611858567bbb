"""The pictures of loops: in the loop IR, as generated source, and over vectors.

In: a `Followed`. Out: SVG.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from book.drawing import BLUE, GREEN, LINE, RED, YELLOW, Colour, Drawing
from book.followed import TARGET, Followed, llvm_function
from graphc.ir.walk import Graph
from graphc.loopir.ir import Function
from graphc.loopir.syntax import print_functions

WIDTH = 800


def loops(source: Followed) -> str:
    """The loops of the cost as lowering leaves them, and after the passes over loops."""
    drawing = Drawing(WIDTH)
    first = next(step.after for step in source.steps if step.name == "lower")
    last = next(step.after for step in source.steps if step.name == "mark_independent")
    assert not isinstance(first, Graph) and not isinstance(last, Graph)
    before, after = (loops_of_line(source, form, "cost =") for form in (first, last))
    y = listing(drawing, 10, 10, "lowered: one assignment for each node", before, after, RED)
    changed = [
        step.name
        for step in source.steps
        if not isinstance(step.after, Graph) and step.name in ("inline_once", "mark_independent")
    ]
    drawing.arrow((40, y + 8), (40, y + 40))
    drawing.note(56, y + 28, f"passes: {', '.join(changed)}")
    listing(drawing, 10, y + 46, "after the passes", after, before, GREEN)
    return drawing.svg("The loops of the cost, before and after the passes over loops")


def loops_of_line(source: Followed, functions: Sequence[Function], start: str) -> list[str]:
    """The statements that a line of the program led to, without notes."""
    number = next(number for number, line in source.lines.items() if line.startswith(start))
    found: list[str] = []
    is_inside = False
    for line in print_functions(functions).splitlines():
        if re.match(r"    note ", line):
            is_inside = f".md:{number}:" in line
        elif is_inside and line.strip():
            found.append(line[4:])
    return found


def listing(
    drawing: Drawing, x: float, y: float, title: str, lines: Sequence[str], others: Sequence[str], colour: Colour
) -> float:
    """Lines of code, coloured where the other form has no such line; the bottom."""
    drawing.text(x, y + 12, title, bold=True)
    y += 22
    for line in lines:
        if line not in others:
            drawing.frame(x, y, WIDTH - 2 * x, LINE, Colour(colour.fill, colour.fill))
        drawing.text(x + 6, y + 13, line)
        y += LINE
    return y


REMARKS = (
    (r"mine = ", "a chunk may have its own t1", YELLOW),
    (r"for i in range\(begin, end\)", "the rows of one chunk", YELLOW),
    (r"for block in", "blocks of 256 products", BLUE),
    (r"part = accumulate", "x @ w, over vectors", BLUE),
    (r"sum_error\(matmul", "the rounding error of the sum", BLUE),
    (r"t0\[i\] = ", "stored for the cost", RED),
    (r"sigmoid\(", "by a rule, from 1 / (1 + exp(…))", GREEN),
    (r"t1\[mine \+ j\] = accumulate", "the row's part of the slope", GREEN),
)
"""Lines of the generated source by a pattern, with a remark. A pattern that no line has is an error."""


def source(source: Followed) -> str:
    """The function of the shared loop, with remarks."""
    drawing = Drawing(900)
    name = source.program.prototypes[0].name
    found = re.search(rf"^def {name}\(.*?^    return 0", source.program.source, re.DOTALL | re.MULTILINE)
    assert found
    lines = found[0].splitlines()
    remarks = {next(n for n, line in enumerate(lines) if re.search(p, line)): (text, c) for p, text, c in REMARKS}
    for number, line in enumerate(lines):
        y = 10 + number * (LINE + 2)
        if number in remarks:
            text, colour = remarks[number]
            drawing.frame(6, y, 888, LINE + 1, Colour(colour.fill, colour.fill))
            drawing.text(600, y + 13, f"# {text}", "#555555")
        drawing.text(10, y + 13, line)
    return drawing.svg("The generated source of the loop over rows")


ITERATIONS = 23
"""The number of iterations that the picture of vectors shows."""


def vectors(source: Followed) -> str:
    """The loop of the update: which iterations each of its loops does, and the instructions of one."""
    drawing = Drawing(WIDTH)
    name = next(p.name for p in source.program.prototypes if "better" in p.name)
    text = llvm_function(source, name)
    blocks = dict(
        re.findall(r'^"?\w+\.(interleaved|vector|remainder)"?:\n(.*?)\n  br ', text, re.DOTALL | re.MULTILINE)
    )
    steps = {kind: int(re.findall(r"add i64 .*, (\d+)", body)[-1]) for kind, body in blocks.items()}
    line = next(each for each in source.program.source.splitlines() if "w[i] = " in each)
    drawing.text(10, 24, line.strip(), bold=True)
    drawing.note(300, 24, f"for i in 0 … {ITERATIONS - 1}, on the processor {TARGET}")
    begin = 0
    y = 40.0
    for (kind, step), colour in zip(steps.items(), (RED, BLUE, GREEN), strict=True):
        drawing.text(10, y + 18, f"{kind}: {step} at a time" if step > 1 else f"{kind}: one at a time")
        while begin + step <= ITERATIONS:
            for i in range(begin, begin + step):
                drawing.frame(240 + i * 23, y, 23, 26, colour)
                drawing.text(240 + i * 23 + 11, y + 18, str(i), middle=True)
            begin += step
        y += 36
    drawing.text(10, y + 22, "the instructions of `vector`", bold=True)
    drawing.box(10, y + 32, instructions(blocks["vector"]), BLUE, 560)
    drawing.text(590, y + 22, "meaning", bold=True)
    notes = [meaning(each) for each in instructions(blocks["vector"])]
    drawing.note(590, y + 32 + 17, *notes)
    return drawing.svg("One loop becomes three: over long vectors, vectors and numbers")


def instructions(body: str) -> list[str]:
    """The instructions of a block that compute, with short names."""
    kept = [line.strip() for line in body.splitlines() if "phi" not in line and "getelementptr" not in line]
    names: dict[str, str] = {}
    found = []
    for line in kept:
        line = re.sub(r", align \d+|, !.*", "", line)
        line = re.sub(r'%"([\w.$]+)"', lambda each: names.setdefault(each[1], f"%{len(names) + 1}"), line)
        found.append(line.replace("0x3fe0000000000000", "0.5").replace("splat (double 0.5)", "0.5"))
    return found


def meaning(instruction: str) -> str:
    """A word for an instruction."""
    words = {
        "load": "four elements",
        "fmul": "0.5 * t1",
        "fsub": "w - …",
        "store": "into w",
        "add": "the next i",
        "icmp": "the end?",
    }
    return next((said for word, said in words.items() if word in instruction), "")
