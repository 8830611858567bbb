"""The pictures of a graph: as it is written, with its gradient, rewritten, in nests, and in memory.

In: a `Followed`. Out: SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from book.drawing import BLUE, CHARACTER, GREEN, GREY, LINE, PLAIN, RED, YELLOW, Box, Colour, Drawing
from book.followed import Followed, Named, computed, size_text, type_text
from graphc.codegen.schedule.plan import Nest, Part, SharedLoop
from graphc.ir.node import LEAVES, SIZE, Node
from graphc.ir.walk import Graph

WIDTH = 760
SHADES = (BLUE, RED, GREEN, YELLOW)


def graph(source: Followed) -> str:
    """The nodes of the cost, below the lines that made them."""
    drawing = Drawing(WIDTH)
    cost = source.variables["cost"]
    nodes = computed(cost)
    numbers = sorted({node.where.line for node in nodes if node.where})
    colours = dict(zip(numbers, SHADES, strict=False))
    y = 12.0
    for number in numbers:
        y = drawing.box(10, y, [source.lines[number]], colours[number]).bottom + 6
    leaves = [arg for node in nodes for arg in node.args if arg.op in LEAVES and arg.op is not SIZE]
    places = placed(nodes, [*dict.fromkeys(leaves)], cost)
    boxes: dict[Node, Box] = {}
    for node, (column, level) in places.items():
        colour = colours[node.where.line] if node.where and node in nodes else GREY
        title = Named()(node) if node.op in LEAVES else node.op.name
        lines = [title, type_text(node, source)]
        wide = max(map(len, lines)) * CHARACTER + 14
        boxes[node] = drawing.box(column - wide / 2, y + 16 + level * 74, lines, colour)
    for node in nodes:
        for arg in node.args:
            if arg in boxes:
                drawing.arrow(boxes[arg].below, boxes[node].above)
    return drawing.svg("The graph of the cost: each operation is a node")


def placed(nodes: list[Node], leaves: list[Node], root: Node) -> dict[Node, tuple[float, int]]:
    """The column and the level of each node: operands above what uses them, near it."""
    levels: dict[Node, int] = {}
    for node in reversed([*leaves, *nodes]):
        users = [levels[user] for user in nodes if node in user.args and user in levels]
        levels[node] = max(users, default=-1) + 1
    most = max(levels.values())
    columns: dict[Node, float] = {root: WIDTH / 2}
    for level in range(1, most + 1):
        row = [node for node in levels if levels[node] == level]
        readers = {node: [user for user in nodes if node in user.args] for node in row}
        wanted = {node: sum(map(columns.__getitem__, readers[node])) / len(readers[node]) for node in row}
        order = sorted(row, key=lambda node: (wanted[node], readers[node][0].args.index(node)))
        middle = sum(wanted.values()) / len(row)
        columns |= {node: middle + (place - (len(row) - 1) / 2) * 190 for place, node in enumerate(order)}
    return {node: (columns[node], most - level) for node, level in levels.items()}


def gradient(source: Followed) -> str:
    """The nodes of the cost on the left, downwards; those of its slope on the right, upwards."""
    drawing = Drawing(WIDTH)
    forward = computed(source.variables["cost"])
    backward = [node for node in computed(source.variables["slope"]) if node not in forward]
    named, slopes = Named("v"), Named("g")
    texts = {node: named.line(node) for node in forward}
    slopes.names.update(named.names)
    for number, node in enumerate(backward, 1):
        slopes.names[node] = f"g{number}"
    texts |= {node: slopes.line(node) for node in backward}
    drawing.text(40, 20, "cost, from above", bold=True)
    drawing.text(430, 20, "slope, from below", bold=True)
    height = 42
    rows = max(len(forward), len(backward))
    boxes = {node: drawing.box(40, 34 + n * height, [texts[node]], BLUE, 250) for n, node in enumerate(forward)}
    for number, node in enumerate(backward):
        boxes[node] = drawing.box(430, 34 + (rows - 1 - number) * height, [texts[node]], RED, 290)
    for group in (forward, backward):
        for before, after in pairwise(group):
            first, second = boxes[before], boxes[after]
            if before in after.args:
                drawing.arrow(*((first.below, second.above) if group is forward else (first.above, second.below)))
    for node in backward:
        for arg in node.args:
            if arg in boxes and arg in forward:
                drawing.arrow(boxes[arg].right, boxes[node].left, dashed=True, colour="#2a78b5")
    return drawing.svg("The gradient is more nodes of the same graph")


def rewrites(source: Followed) -> str:
    """The nodes before and after rewriting, and the rules between."""
    drawing = Drawing(WIDTH)
    forms = [step.after for step in source.steps if isinstance(step.after, Graph)]
    before, after = computed(*source.written.results), computed(*forms[-1].outputs)
    named = Named("v")
    left = [(named.line(node), node not in after) for node in before]
    right = [(named.line(node), node not in before) for node in after]
    for x, title, lines, colour in ((10, "as written", left, RED), (470, "rewritten", right, GREEN)):
        drawing.text(x, 20, f"{title}: {len(lines)} nodes", bold=True)
        for number, (line, is_changed) in enumerate(lines):
            drawing.box(x, 32 + number * 31, [line], colour if is_changed else PLAIN, 280)
    y = 60.0
    drawing.text(310, y - 16, "rules", bold=True)
    for rule in dict.fromkeys(line.partition(":")[0] for line in source.report.fired):
        for number, part in enumerate(in_parts(rule)):
            drawing.text(310, y + number * LINE, part)
        y += LINE * len(in_parts(rule)) + 8
    drawing.arrow((310, y + 10), (455, y + 10))
    drawing.note(310, y + 36, "red: replaced", "green: new", "white: kept")
    return drawing.svg("Rules replace parts of the graph")


def in_parts(rule: str, most: int = 18) -> list[str]:
    """A name of a rule in lines of a few characters."""
    lines = [""]
    for word in rule.split("_"):
        if lines[-1] and len(lines[-1]) + len(word) > most:
            lines[-1] += "_"
            lines.append(word)
        else:
            lines[-1] += ("_" if lines[-1] else "") + word
    return lines


def fusion(source: Followed) -> str:
    """The nests, each around the nodes that it computes, and the buffers between them."""
    drawing = Drawing(WIDTH)
    plan, named = source.plan, Named("v")
    for node in computed(*source.rewritten.results):
        named(node)
    numbers = {nest.number: place for place, nest in enumerate(plan.nests)}

    def draw(part: Part, x: float, y: float, width: float) -> float:
        if isinstance(part, SharedLoop):
            place = len(drawing.parts)
            bottom = y + 28
            for inner in part.body:
                bottom = draw(inner, x + 14, bottom, width - 28) + 8
            drawing.frame(x, y, width, bottom - y + 4, YELLOW)
            drawing.parts.insert(place, drawing.parts.pop())
            drawing.text(x + 10, y + 18, f"for each of {size_text(part.size, source)} rows, in turn:", bold=True)
            return bottom + 4
        sizes = ", ".join(size_text(size, source) for size in part.space)
        lines = [f"nest {numbers[part.number]}: {part.kind} over [{sizes}]"]
        lines += [f"  {named.line(node)}{goes(node)}" for node in nodes_of_nest(source, part)]
        return drawing.box(x, y, lines, BLUE, width).bottom

    def goes(node: Node) -> str:
        buffer = plan.memory.buffers.get(node)
        return f"   -> {buffer.name}" if buffer else ""

    y = 12.0
    for part in plan.parts:
        y = draw(part, 10, y, 460) + 14
    notes = [
        (f"{buffer.name}: {plan.reasons.materialised[node]}")
        for node, buffer in plan.memory.buffers.items()
        if node in plan.reasons.materialised
    ]
    drawing.text(490, 26, "stored, because it is", bold=True)
    top = 46.0
    for note in notes:
        lines = folded(note, 33)
        drawing.note(490, top, *lines)
        top += LINE * len(lines) + 8
    return drawing.svg("Nodes that share loops are one nest")


def folded(text: str, most: int) -> list[str]:
    """Text in lines of at most so many characters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= most:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def nodes_of_nest(source: Followed, nest: Nest) -> list[Node]:
    """The nodes that a nest computes: its roots, and what they need that is stored nowhere."""
    stored = source.plan.memory.buffers
    found: dict[Node, None] = {}
    pending = [*nest.roots]
    while pending:
        node = pending.pop()
        if node not in found and (node in nest.roots or (node not in stored and node.op not in LEAVES)):
            found[node] = None
            pending += node.args
    return [node for node in computed(*source.rewritten.results) if node in found]


def memory(source: Followed) -> str:
    """The buffers, the nests that read and write them, and the block of memory that temporaries share."""
    drawing = Drawing(WIDTH)
    plan = source.plan
    made = {buffer.name: node for node, buffer in plan.memory.buffers.items()}
    owners = {**{buffer.name: leaf for leaf, buffer in plan.memory.leaves.items()}}
    temporary = [slot.buffer.name for slot in plan.memory.arena]
    names = dict.fromkeys([*owners, *temporary, *made])
    uses = uses_of(source)
    drawing.text(10, 22, "buffer", bold=True)
    drawing.text(80, 22, "size", bold=True)
    for place, _ in enumerate(plan.nests):
        drawing.text(250 + place * 85, 22, f"nest {place}", bold=True)
    y = 32.0
    for name in names:
        node = owners.get(name, made.get(name))
        assert node is not None
        drawing.text(10, y + 18, name)
        drawing.text(80, y + 18, type_text(node, source))
        for place, _ in enumerate(plan.nests):
            text, colour = kind_of_use(uses, name, place)
            cell = drawing.frame(246 + place * 85, y, 77, 26, colour)
            drawing.text(cell.x + 38, y + 18, text, middle=True)
        drawing.note(600, y + 18, whose(name, owners, temporary, plan.memory.overwritten))
        y += 32
    y += 14
    drawing.text(10, y + 18, "arena", bold=True)
    x = 80.0
    for slot in plan.memory.arena:
        x = drawing.box(x, y, [f"{slot.buffer.name}: {type_text(made[slot.buffer.name], source)}"], YELLOW).right[0] + 4
    drawing.note(80, y + 46, "one block of memory for all temporaries; each begins at a multiple of 64 bytes")
    return drawing.svg("Buffers, and the nests that read and write them")


def whose(name: str, owners: Mapping[str, Node], temporary: Iterable[str], overwritten: Mapping[str, Node]) -> str:
    """The kind of memory of a buffer."""
    if name in overwritten:
        return "shared: in place"
    return "the caller's" if name in owners else "the arena's" if name in temporary else "the result's"


def uses_of(source: Followed) -> dict[tuple[str, int], set[str]]:
    """For a buffer and a nest "reads", "writes" or both."""
    plan = source.plan
    names = {node: buffer.name for node, buffer in plan.memory.leaves.items()}
    found: dict[tuple[str, int], set[str]] = {}
    for place, nest in enumerate(plan.nests):
        inside = nodes_of_nest(source, nest)
        for node in inside:
            for arg in node.args:
                name = names.get(arg) or (plan.memory.buffers[arg].name if arg in plan.memory.buffers else "")
                if name and arg not in nest.roots:
                    found.setdefault((name, place), set()).add("reads")
            if node in plan.memory.buffers and node in nest.roots:
                found.setdefault((plan.memory.buffers[node].name, place), set()).add("writes")
    return found


def kind_of_use(uses: Mapping[tuple[str, int], set[str]], name: str, place: int) -> tuple[str, Colour]:
    """The text and the colour of a cell."""
    found = uses.get((name, place), set())
    colours = {(): GREY, ("reads",): BLUE, ("writes",): RED, ("reads", "writes"): GREEN}
    both = tuple(sorted(found))
    return ("both" if len(both) == 2 else both[0] if both else ""), colours[both]
