"""The rule of reads of an array with changed regions: the read becomes the value that was written there.

    b = set_subtensor(a[3], v)      b[3] becomes v, b[4] becomes a[4]

In: nothing. Out: `CHANGED`. Programs that write to one element after the other, as unrolled loops do, make long chains
of such arrays. A read of a known element finds the last write to it in a table (`Writes`). For other regions a few
changes are compared one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import sizes
from graphc.ir.node import Node, Size
from graphc.ops.index import subtensor
from graphc.ops.scalar import elementwise
from graphc.rewrite.rules.engine import EXACT, Transformation, Uses
from graphc.startup.record import record

CHANGES = ("inc_subtensor", "set_subtensor")
MOST_CHANGES = 16
"""The most changed regions that are compared, and the most changes of one element that are added up."""

Position = tuple[int, ...]


@record(frozen=False, eq=False)
class Chain:
    """Arrays that are each made of the one before by a write to one element. base: the array before the first write.
    places: the writes to each element, each with its number in the chain. length: the number of writes."""

    base: Node
    places: dict[Position, list[tuple[int, Node]]]
    length: int


class Writes:
    """The chains of a graph. An array belongs to one chain, with the number of the write that made it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.chains = dict[Node, tuple[Chain, int]]()

    def of(self, array: Node) -> tuple[Chain, int] | None:
        """The chain of an array, and the number of its writes; None if no write to one element made it."""
        behind, node = [], array
        while node not in self.chains and (position := written(node)) is not None:
            behind.append((node, position))
            node = node.args[0]
        for node, position in reversed(behind):
            chain, number = self.chains.get(node.args[0], (None, 0))
            if chain is None or number != chain.length:  # another array is made of it as well
                chain, number = Chain(node.args[0], {}, 0), 0
            chain.length = number + 1
            chain.places.setdefault(position, []).append((chain.length, node))
            self.chains[node] = chain, chain.length
        return self.chains.get(array)


def written(node: Node) -> Position | None:
    """The position of the one known element that a node changes."""
    if node.op.name not in CHANGES or any(size != 1 for size in node.args[1].type.shape):
        return None
    return known([sizes.as_size(place) for place in node.args[2:]])


def known(starts: Sequence[Size]) -> Position | None:
    """Positions as numbers; None if one of them is not known."""
    numbers = [start for start in starts if isinstance(start, int)]
    return tuple(numbers) if len(numbers) == len(starts) else None


def part_of_changed(writes: Writes, node: Node, uses: Uses) -> Node | None:
    """A region of an array with changed regions becomes the changed value of the region, or a region of the array
    before the changes."""
    starts, shape, steps = region(node)
    position = known(starts) if all(size == 1 for size in shape) else None
    found = None if position is None else element(writes, node.args[0], position)
    before, made = found or compared(node.args[0], starts, shape, (*steps,))
    if (before is node.args[0] and not made) or (made and node.type.dtype == "bool"):
        return None
    last = made.pop() if made and made[-1].op.name == "set_subtensor" else None
    value = subtensor(before, starts, shape, steps) if last is None else last.args[1]
    for each in reversed(made):
        value = elementwise("add", value, each.args[1])
    return value


def element(writes: Writes, array: Node, position: Position) -> tuple[Node, list[Node]] | None:
    """The array before all writes to single elements, and the writes to this element, the last one first, back to one
    that sets it. None if there are no such writes."""
    made = list[Node]()
    before = array
    for _ in range(MOST_CHANGES):
        found = writes.of(before)
        if found is None:
            break
        chain, length = found
        for number, change in reversed(chain.places.get(position, ())):
            if number <= length:
                made.append(change)
            if len(made) > MOST_CHANGES or (made and made[-1].op.name == "set_subtensor"):
                return (before, made) if len(made) <= MOST_CHANGES else (array, [])
        before = chain.base
    return None if before is array else (before, made)


def compared(
    array: Node, starts: Sequence[Size], shape: Sequence[Size], steps: tuple[int, ...]
) -> tuple[Node, list[Node]]:
    """The array before changed regions that are all equal to a region or disjoint from it, and the equal ones, the last
    one first. The array itself if one of them is neither."""
    changed, made = array, list[Node]()
    for _ in range(MOST_CHANGES):
        if changed.op.name not in CHANGES:
            break
        before, piece, *places = changed.args
        at = [sizes.as_size(place) for place in places]
        sides = list(zip(starts, shape, at, piece.type.shape, strict=True))
        if any(step != 1 for step in (*steps, *changed.attrs["steps"])):
            return array, []
        if all(sizes.equal(start, place) and sizes.equal(size, extent) for start, size, place, extent in sides):
            made.append(changed)
            if changed.op.name == "set_subtensor":
                return before, made
        elif not any(
            sizes.known_at_least(place, sizes.add(start, size)) or sizes.known_at_least(start, sizes.add(place, extent))
            for start, size, place, extent in sides
        ):
            return array, []
        changed = before
    return (array, []) if changed.op.name in CHANGES else (changed, made)


def region(node: Node) -> tuple[list[Size], list[Size], tuple[int, ...]]:
    """The starts, the sizes and the steps of a subtensor."""
    numbers = [sizes.as_size(arg) for arg in node.args[1:]]
    return numbers[: node.ndim], numbers[node.ndim :], node.attrs["steps"]


CHANGED = (Transformation("subtensor_of_changed", ("subtensor",), part_of_changed, EXACT, CHANGES, survey=Writes),)
