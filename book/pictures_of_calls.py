"""The pictures of machine code at work: the checks of a call, the files of the cache, the memory of a call, threads.

In: a `Followed`. Out: SVG.
"""

from __future__ import annotations

import re
from typing import Any

from book.drawing import BLUE, GREEN, GREY, LINE, PLAIN, RED, YELLOW, Colour, Drawing
from book.followed import Followed
from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key
from graphc.codegen.call.bind import EXPORTS
from graphc.codegen.call.entry import Call
from graphc.codegen.call.signature import ALIGNMENT, Array
from graphc.codegen.frontend.language import PRELUDE

WIDTH = 800


def array_text(array: Array) -> str:
    """What the entry point expects of an array."""
    axes = len(array.shape)
    return f"{array.name}: {array.dtype}, {axes} {'axis' if axes == 1 else 'axes'}"


def checks_of(source: Followed) -> list[str]:
    """The comparisons of sizes in the generated function `sizes`."""
    return re.findall(r"^    if (.*?): return \d+", source.program.source, re.MULTILINE)


def kept(relation: str) -> str:
    """The relation that holds where a check does not fail: `x_1 == w_0` of `x_1 != w_0`."""
    opposite = {"!=": "==", "<": ">=", ">": "<=", "==": "!=", "<=": ">", ">=": "<"}
    left, operator, right = relation.split(" ", 2)
    return f"{left} {opposite[operator]} {right}"


def entry(source: Followed) -> str:
    """The steps of the entry point, and the exits of a call that cannot go on."""
    drawing = Drawing(WIDTH)
    signature = source.program.signature
    operands = [array_text(array) for array in (*signature.inputs, *signature.shared)]
    written = [array.name for array in (*signature.inputs, *signature.shared) if array.written]
    others = [array.name for array in signature.inputs if not array.written]
    temps = ", ".join(temp.name for temp in signature.temps)
    steps: list[tuple[str, list[str], str]] = [
        ("sort_arguments", ["an argument for each input"], "refuse"),
        ("take", [*operands, "all contiguous and aligned"], "refuse"),
        ("compare", [f"{', '.join(written)} overlaps none of {', '.join(others)}"], "refuse"),
        ("call_sizes", [kept(each) for each in checks_of(source)], "failed"),
        ("make", [f"a new array: {array_text(array)}" for array in signature.outputs], "empty"),
        ("allocate", [f"the arena: {temps}"], "empty"),
        ("enter", [f"no other thread writes {', '.join(written)}"], "contended"),
        ("run", ["the kernel; a long one without Python's lock"], "failed"),
        ("deliver", [f"returns {array.name}" for array in signature.outputs], ""),
    ]
    missing = [name for name, _, _ in steps if not hasattr(Call, name)]
    assert not missing, f"the entry point has no step {missing}"
    y = 12.0
    before = None
    ends = {"refuse": RED, "failed": YELLOW, "empty": GREY, "contended": GREY}
    for name, lines, leaves in steps:
        drawing.text(14, y + 17, name, bold=True)
        box = drawing.box(140, y, lines, GREEN if name == "run" else BLUE, 450)
        if leaves:
            out = drawing.box(650, y, [leaves], ends[leaves], 110)
            drawing.arrow((box.x + box.width, out.left[1]), out.left, dashed=True)
        if before is not None:
            drawing.arrow(before.below, box.above)
        before, y = box, box.bottom + 18
    drawing.note(14, y + 16, "refuse: Python converts the arguments or raises a TypeError")
    drawing.note(14, y + 16 + LINE, "failed: the interpreted mode says which check failed, and names your line")
    return drawing.svg("What the entry point does in a call")


def files(source: Followed) -> str:
    """The key, the modules that are linked, and the files of an entry of the cache."""
    drawing = Drawing(WIDTH)
    drawing.text(10, 22, "the key", bold=True)
    said = {
        "graph": "the graph as it was written",
        "settings": "options of the function",
        "fingerprint": "versions, target, processor",
    }
    parts = [f"{name}: {said[name]}" for name in Key.__annotations__]
    key = drawing.box(10, 32, parts, YELLOW, 330)
    digest = drawing.box(440, 45, ["64 digits, which name the folder"], YELLOW)
    drawing.arrow(key.right, digest.left)
    drawing.text(10, 130, "objects", bold=True)
    functions = [prototype.name for prototype in source.program.prototypes]
    kernel = drawing.box(10, 140, functions, BLUE, 160)
    point = drawing.box(10, kernel.bottom + 12, [*(name for name in EXPORTS if name not in functions)], GREEN, 160)
    lines = [line for line in source.program.source.splitlines() if not re.match(r' *("""|#)', line)]
    calls = sorted(set(re.findall(r"\b(softplus|sigmoid)\(", "\n".join(lines))))
    drawing.box(10, point.bottom + 12, [*calls, "thread pool"], GREY, 160)
    drawing.note(180, 158, "the source's functions,", "compiled by numba and LLVM")
    drawing.note(180, kernel.bottom + 29, "what Python calls")
    drawing.note(180, point.bottom + 29, "shared by all functions:", "kept in the cache once")
    drawing.text(440, 130, "the folder of the entry", bold=True)
    meanings = {
        store.METADATA: "signature, digests of the files",
        store.OBJECT: "the linked machine code",
        "graph.txt": "f.text",
        "plan.txt": "f.explain()",
        "source.py": "f.source",
    }
    rows = [f"{name:<11}{meanings[name]}" for name in store.FILES]
    folder = drawing.box(440, 140, rows, PLAIN, 350)
    drawing.arrow((385, kernel.left[1]), (438, kernel.left[1]))
    drawing.note(388, kernel.left[1] + 20, "link")
    drawing.arrow(digest.below, (digest.below[0], 118))
    drawing.note(
        440,
        folder.bottom + 24,
        "A later process reads the folder, maps",
        "kernel.o into memory and calls it. It",
        "imports neither numba nor LLVM.",
    )
    return drawing.svg("The key, the objects, and the entry of the cache")


def call(source: Followed) -> str:
    """The parameters of the kernel in a call, and the memory that each points to."""
    drawing = Drawing(WIDTH)
    program = source.program
    found = re.search(r"^def kernel\((.*?)\):", program.source, re.MULTILINE)
    assert found
    names = found[1].split(", ")
    signature = program.signature
    owners: dict[str, tuple[str, Colour]] = {}
    owners |= {array.name: ("the caller's array", BLUE) for array in signature.inputs}
    owners |= {array.name: ("the shared variable's array, changed in place", RED) for array in signature.shared}
    owners |= {array.name: ("a new array, which the call returns", GREEN) for array in signature.outputs}
    owners |= {temp.name: (f"the arena, at a multiple of {ALIGNMENT} bytes", YELLOW) for temp in signature.temps}
    drawing.text(10, 22, "loss = step(data, labels)", bold=True)
    drawing.note(240, 22, "calls kernel with these parameters:")
    y = 34.0
    groups: dict[tuple[str, Colour], list[float]] = {}
    for name in names:
        owner = owners.get(name, (f"the size of {name.rpartition('_')[0]} along axis {name[-1]}", GREY))
        kind = "int64" if name not in owners else "pointer"
        box = drawing.box(10, y, [f"{kind:<9}{name}"], owner[1], 240)
        groups.setdefault(owner, []).append(box.right[1])
        y += 34
    for (text, colour), heights in groups.items():
        middle = sum(heights) / len(heights)
        target = drawing.box(400, middle - 14, [text], colour)
        for height in heights:
            drawing.arrow((250, height), target.left)
    return drawing.svg("The parameters of the kernel, and their memory")


ROWS, COLUMNS = 20_000, 3
"""The sizes of `x` in the picture of threads."""


def threads(source: Followed) -> str:
    """The chunks of the loop over rows, which threads take, and the sum of what they leave."""
    drawing = Drawing(WIDTH)
    text = source.program.source
    known: dict[str, Any] = {**PRELUDE, "x_0": ROWS, "x_1": COLUMNS}
    size_name = re.findall(r"parallel\(nest_\w*matmul\w*, shared, (\w+)", text)[0]
    formulas = [re.search(rf"^    {name} = (.*)$", text, re.MULTILINE) for name in ("most", size_name)]
    drawing.text(10, 22, f"x has {ROWS} rows and {COLUMNS} columns", bold=True)
    for number, formula in enumerate(formulas):
        assert formula
        name = ("most", size_name)[number]
        known[name] = int(eval(formula[1], known))
        drawing.text(10, 46 + number * LINE, f"{name} = {formula[1]}")
        drawing.text(560, 46 + number * LINE, f"= {known[name]}")
    size = known[size_name]
    count = -(-ROWS // size)
    drawing.text(10, 100, f"{count} chunks of {size} rows; the last has {ROWS - (count - 1) * size}", bold=True)
    wide = 770 / ROWS
    boxes = []
    for chunk in range(count):
        begin, end = chunk * size, min((chunk + 1) * size, ROWS)
        box = drawing.frame(10 + begin * wide, 112, (end - begin) * wide - 3, 30, (BLUE, GREEN)[chunk % 2])
        drawing.text(box.above[0], 132, str(chunk), middle=True)
        boxes.append(box)
    for chunk, box in enumerate(boxes):
        copy = drawing.frame(box.x, 172, box.width, 30, YELLOW)
        drawing.text(copy.above[0], 192, f"t1.{chunk}", middle=True)
        drawing.arrow(box.below, copy.above)
        drawing.arrow(copy.below, (395, 262))
    drawing.box(370, 264, ["t1"], YELLOW, 50)
    said = ("A thread takes the next chunk that nobody has taken.", "Each chunk adds into its own copy of t1.")
    more = ("The copies are added in the order of the chunks.", "The chunks follow from the sizes alone, not from the")
    drawing.note(10, 326, *said, *more, "threads: a result has the same bits with 1 and with 64.")
    return drawing.svg("Threads share the chunks of a loop")
