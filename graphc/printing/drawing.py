"""Pictures of graphs: a layered drawing as SVG, made without any other program.

In: boxes with texts, and arrows between them. Out: the text of an SVG file. Layers follow the longest path (Sugiyama,
Tagawa and Toda 1981): arrows that cross several layers get points between, each layer is put into the order of the
means of its neighbours, and boxes are moved towards these means as far as their neighbours in the layer let them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from graphc.startup.record import record

CHARACTER, LINE, PADDING = 7.2, 17.0, 9.0
"""The width of a letter and the height of a line of the font, and the space around a text."""
ACROSS, DOWN, MARGIN = 22.0, 52.0, 16.0
"""Space between boxes of a layer, between layers, and around the picture."""
SWEEPS = 12
"""The number of sweeps over the orders of layers."""

Key: TypeAlias = Any


@record()
class NodePicture:
    """The picture of a node: lines of text, a shape ("box" or "ellipse"), colours, and what a pointer is told."""

    lines: tuple[str, ...]
    shape: str = "box"
    fill: str = "#ffffff"
    stroke: str = "#555555"
    hint: str = ""

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 2 * PADDING * (1.6 if self.shape == "ellipse" else 1)

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + PADDING * (1.6 if self.shape == "ellipse" else 1)


@record()
class Arrow:
    """From one box to another, with a text beside it."""

    tail: Key
    head: Key
    text: str = ""


def draw(boxes: Mapping[Key, NodePicture], arrows: Sequence[Arrow], title: str = "") -> str:
    """An SVG of boxes, the tails of arrows above their heads. `arrows` must have no cycle."""
    layers, chains = into_layers(boxes, arrows)
    order_layers(layers, chains)
    widths = {key: boxes[key].width if key in boxes else 4.0 for layer in layers for key in layer}
    x = place(layers, chains, widths)
    tops = [MARGIN]
    heights = [max((boxes[key].height for key in layer if key in boxes), default=LINE) for layer in layers]
    for height in heights:
        tops.append(tops[-1] + height + DOWN)
    y = {key: tops[row] + heights[row] / 2 for row, layer in enumerate(layers) for key in layer}
    left = min((x[key] - widths[key] / 2 for key in x), default=0.0) - MARGIN
    wide = max((x[key] + widths[key] / 2 for key in x), default=0.0) + MARGIN - left
    x = {key: value - left for key, value in x.items()}
    parts = [line_of(arrow, chain, boxes, x, y) for arrow, chain in zip(arrows, chains, strict=True)]
    parts += [shape_of(boxes[key], x[key], y[key]) for layer in layers for key in layer if key in boxes]
    high = tops[-1] - DOWN + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}" font-family="DejaVu Sans Mono, monospace" font-size="12">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#777777"/></marker></defs>'
    )
    named = [f"<title>{escaped(title)}</title>"] if title else []
    ground = f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>'
    return "\n".join([head, *named, marker, ground, *parts, "</svg>", ""])


def into_layers(boxes: Mapping[Key, NodePicture], arrows: Sequence[Arrow]) -> tuple[list[list[Key]], list[list[Key]]]:
    """The boxes in layers, with the points between that arrows need, and for each arrow what it goes through."""
    below: dict[Key, list[Key]] = {key: [] for key in boxes}
    above: dict[Key, list[Key]] = {key: [] for key in boxes}
    for arrow in arrows:
        below[arrow.tail].append(arrow.head)
        above[arrow.head].append(arrow.tail)
    waiting = {key: len(above[key]) for key in boxes}
    ready = [key for key in boxes if not waiting[key]]
    row: dict[Key, int] = {}
    for key in ready:
        row[key] = max((row[tail] + 1 for tail in above[key]), default=0)
        for head in below[key]:
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    for key in reversed(ready):  # what nothing leads to stands just above what needs it
        if not above[key] and below[key]:
            row[key] = min(row[head] for head in below[key]) - 1
    layers: list[list[Key]] = [[] for _ in range(max(row.values(), default=-1) + 1)]
    for key in ready:
        layers[row[key]].append(key)
    chains: list[list[Key]] = []
    for number, arrow in enumerate(arrows):
        points: list[Key] = [(number, step) for step in range(row[arrow.tail] + 1, row[arrow.head])]
        for step, point in enumerate(points, row[arrow.tail] + 1):
            layers[step].append(point)
        chains.append([arrow.tail, *points, arrow.head])
    return layers, chains


def neighbours(chains: Sequence[Sequence[Key]]) -> tuple[dict[Key, list[Key]], dict[Key, list[Key]]]:
    """The neighbours of each point in the layer above, and in that below."""
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    return above, below


def order_layers(layers: list[list[Key]], chains: Sequence[Sequence[Key]]) -> None:
    """Put each layer into the order of the mean positions of its neighbours, from above and from below in turn."""
    above, below = neighbours(chains)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            position = {key: number for each in layers for number, key in enumerate(each)}
            near = above if down else below
            means = {
                key: sum(position[other] for other in near[key]) / len(near[key]) if near.get(key) else position[key]
                for key in layer
            }
            layer.sort(key=means.__getitem__)


def place(layers: list[list[Key]], chains: Sequence[Sequence[Key]], widths: Mapping[Key, float]) -> dict[Key, float]:
    """The middle of each point across: near the mean of its neighbours, apart from those beside it."""
    above, below = neighbours(chains)
    x: dict[Key, float] = {}
    for layer in layers:
        spread(layer, dict.fromkeys(layer, 0.0), widths, x)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = {key: sum(x[o] for o in near[key]) / len(near[key]) if near.get(key) else x[key] for key in layer}
            spread(layer, wanted, widths, x)
    return x


def spread(layer: Sequence[Key], wanted: Mapping[Key, float], widths: Mapping[Key, float], x: dict[Key, float]) -> None:
    """Positions in the order of the layer, each box apart from the next, the whole where it is wanted on the average:
    neighbours that would overlap are moved as one group."""
    groups: list[tuple[list[Key], list[float], float]] = []
    for key in layer:
        members, offsets, middle = [key], [0.0], wanted[key]
        while groups:
            before, its, where = groups[-1]
            last = where + its[-1]
            if last + widths[before[-1]] / 2 + ACROSS <= middle + offsets[0] - widths[members[0]] / 2:
                break
            groups.pop()
            step = its[-1] + widths[before[-1]] / 2 + ACROSS + widths[members[0]] / 2
            offsets = [*its, *(step + offset - offsets[0] for offset in offsets)]
            members = [*before, *members]
            middle = sum(wanted[m] - offset for m, offset in zip(members, offsets, strict=True)) / len(members)
        groups.append((members, offsets, middle))
    for members, offsets, middle in groups:
        x.update((key, middle + offset) for key, offset in zip(members, offsets, strict=True))


def line_of(
    arrow: Arrow, chain: Sequence[Key], boxes: Mapping[Key, NodePicture], x: Mapping[Key, float], y: Mapping[Key, float]
) -> str:
    """A curve from the lower edge of its first point to the upper one of its last, and its text."""
    spots = [(x[key], y[key]) for key in chain]
    spots[0] = (spots[0][0], spots[0][1] + boxes[arrow.tail].height / 2)
    spots[-1] = (spots[-1][0], spots[-1][1] - boxes[arrow.head].height / 2)
    path = f"M{spots[0][0]:.1f},{spots[0][1]:.1f}"
    for (ax, ay), (bx, by) in pairwise(spots):
        bend = (by - ay) / 2
        path += f" C{ax:.1f},{ay + bend:.1f} {bx:.1f},{by - bend:.1f} {bx:.1f},{by:.1f}"
    line = f'<path d="{path}" fill="none" stroke="#777777" marker-end="url(#head)"/>'
    if not arrow.text:
        return line
    (ax, ay), (bx, by) = spots[-2:]
    at = f'x="{(ax + bx) / 2 + 5:.1f}" y="{(ay + by) / 2 + 4:.1f}"'
    return f'{line}\n<text {at} font-size="10" fill="#777777">{escaped(arrow.text)}</text>'


def shape_of(box: NodePicture, x: float, y: float) -> str:
    """A box or an ellipse with its text."""
    style = f'fill="{box.fill}" stroke="{box.stroke}"'
    if box.shape == "ellipse":
        shape = f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{box.width / 2:.1f}" ry="{box.height / 2:.1f}" {style}/>'
    else:
        corner = f'x="{x - box.width / 2:.1f}" y="{y - box.height / 2:.1f}"'
        shape = f'<rect {corner} width="{box.width:.1f}" height="{box.height:.1f}" rx="4" {style}/>'
    first = y - (len(box.lines) - 1) * LINE / 2 + 4
    texts = [
        f'<text x="{x:.1f}" y="{first + number * LINE:.1f}" text-anchor="middle">{escaped(line)}</text>'
        for number, line in enumerate(box.lines)
    ]
    hint = [f"<title>{escaped(box.hint)}</title>"] if box.hint else []
    return "\n".join(["<g>", *hint, shape, *texts, "</g>"])


def escaped(text: str) -> str:
    """Text as XML has it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
