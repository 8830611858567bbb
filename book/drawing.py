"""Drawings of boxes, text and arrows, as SVG that is the same to the byte wherever it is made.

In: boxes and lines, in pixels. Out: the text of an SVG file. All text is monospaced, so its width is known without a
font: a character of size 13 takes CHARACTER pixels.

    drawing = Drawing(300)
    first = drawing.box(10, 10, ["x"], BLUE)
    second = drawing.box(10, 80, ["exp(x)"], RED)
    drawing.arrow(first.below, second.above)
    drawing.svg("the graph of exp(x)")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple, TypeAlias

CHARACTER, LINE, MARGIN = 7.85, 17, 7
"""The width of a character, the height of a line, and the space around the text of a box."""

Point: TypeAlias = tuple[float, float]


class Colour(NamedTuple):
    """The colours of a box: inside, and of its edge."""

    fill: str
    edge: str


BLUE = Colour("#dbe9f6", "#2a78b5")
RED = Colour("#f8dfd8", "#c8553d")
GREEN = Colour("#dcefdc", "#3f8f4f")
YELLOW = Colour("#fbf0cc", "#a87f00")
GREY = Colour("#eeeeee", "#777777")
PLAIN = Colour("#ffffff", "#777777")


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def above(self) -> Point:
        """The middle of the upper edge."""
        return self.x + self.width / 2, self.y

    @property
    def below(self) -> Point:
        """The middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height

    @property
    def left(self) -> Point:
        """The middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> Point:
        """The middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


class Drawing:
    """A drawing of a given width, as high as what is drawn."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.height = 0.0
        self.parts: list[str] = []
        self.texts: list[str] = []

    def frame(self, x: float, y: float, width: float, height: float, colour: Colour, dashed: bool = False) -> Box:
        """A rectangle without text."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{colour.fill}" '
            f'stroke="{colour.edge}"{dash}/>'
        )
        self.height = max(self.height, y + height)
        return Box(x, y, width, height)

    def box(self, x: float, y: float, lines: Sequence[str], colour: Colour, width: float | None = None) -> Box:
        """Lines of text in a rectangle; without a width it is as wide as they are."""
        wide = max(map(len, lines)) * CHARACTER + 2 * MARGIN if width is None else width
        found = self.frame(x, y, round(wide), len(lines) * LINE + 2 * MARGIN - 3, colour)
        for number, line in enumerate(lines):
            self.text(x + MARGIN, y + MARGIN + 10 + number * LINE, line)
        return found

    def text(
        self, x: float, y: float, line: str, colour: str = "#111111", bold: bool = False, middle: bool = False
    ) -> None:
        """A line of text that begins at x, or has its middle there, on the base line y."""
        self.texts.append(line)
        x += (len(line) - len(line.lstrip())) * CHARACTER  # browsers drop spaces
        weight = ' font-weight="bold"' if bold else ""
        written = re.sub("  +", lambda run: "\u00a0" * len(run[0]), escape(line.strip(), quote=False))
        anchor = ' text-anchor="middle"' if middle else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{colour}"{weight}{anchor}>{written}</text>')
        self.height = max(self.height, y + 4)

    def note(self, x: float, y: float, *lines: str) -> None:
        """Lines of explanation, in grey."""
        for number, line in enumerate(lines):
            self.text(x, y + number * LINE, line, "#555555")

    def arrow(self, begin: Point, end: Point, dashed: bool = False, colour: str = "#444444") -> None:
        """An arrow from one point to another."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<line x1="{begin[0]:g}" y1="{begin[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="{colour}"{dash} '
            f'marker-end="url(#head)"/>'
        )

    def svg(self, title: str) -> str:
        """The file."""
        height = round(self.height + 12)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{height}" '
            f'viewBox="0 0 {self.width} {height}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
            f'font-size="13">\n<title>{escape(title)}</title>\n'
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="#444444"/></marker></defs>\n'
            f'<rect width="{self.width}" height="{height}" fill="#ffffff"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"
