"""Which loops over rows follow a product a block of rows at a time, while what it made is in cache.

In: the parts of a plan, in order, and what their nests read. Out: the same parts, in which a product or convolution
and the loop that reads it first may be one loop over blocks of rows: in each the function computes some rows, then
the loop reads them. So bias, activation and pooling go over a result that is still in cache. It has memory for one
block only, or that of what is computed over it; where somebody else reads it, it is kept as it is, for then nothing
is gained.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphc.arrays.dtypes import itemsize
from graphc.codegen.schedule.fusion import Access, Sharing
from graphc.codegen.schedule.plan import Draft, Nest, Part, Rows, call_of, first_reduced, nests_of
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.node import Index, Node, Size
from graphc.startup.record import replace

BLOCK_BYTES = 2**19
"""Memory of a block: it fits into the second cache, beside what is read and written with it."""
SPARED = 4
"""A block has this many elements for each that the function handles besides, as often as it is called."""
SHORT_ROW = 32
"""A loop over shorter rows is better one loop over all elements."""


def in_blocks(
    sharing: Sharing, drafts: Sequence[Draft], access: Access, chained: Collection[Node], sizing: Sizing
) -> Sharing:
    """The parts with such blocks. chained: values that share a buffer with others already."""
    index = {draft.number: draft.index for draft in drafts}
    parts, blocks, over = list(sharing.parts), dict[Node, Size](), dict[Node, Node]()
    for call in [part for part in parts if isinstance(part, Nest)]:
        length = block_length(call, sizing)
        if length is None or call.roots[0] in access.needed:
            continue
        here, (root,) = parts.index(call), call.roots
        there = next((place for place in range(here + 1, len(parts)) if _reads(parts[place], root, access)), None)
        if there is None or any(nest.number in access.after[call.number] for nest in _nests(parts[here + 1 : there])):
            continue
        reader = as_rows(parts[there])
        if reader is None or not follows(reader, call, index, access, sizing):
            continue
        parts[here : there + 1] = [*parts[here + 1 : there], replace(reader, makes=call, block=length)]
        taker = taker_of(root, reader, index, access, sizing)
        if taker is not None and taker not in chained and not sharing.depths[taker]:
            over[root] = taker
        else:
            blocks[root] = length
    made = {part.makes.number for part in parts if isinstance(part, Rows) and part.makes is not None}
    apart = {number: other for number, other in sharing.apart.items() if other[0] not in made}
    return replace(sharing, parts=tuple(parts), apart=apart, blocks=blocks, over=over)


def block_length(nest: Nest, sizing: Sizing) -> Size | None:
    """How many rows a function should compute at a time; None where it computes all, or they are few anyway."""
    call = call_of(nest.roots[0]) if nest.kind == "call" and len(nest.roots) == 1 and not nest.in_place else None
    by_rows = call.by_rows(nest.roots[0]) if call is not None else None
    if by_rows is None:
        return None
    (root,) = nest.roots
    count, *rest = sizing.shape(root)
    row = sizes.maximum(sizes.product(rest), 1)
    most = BLOCK_BYTES // itemsize(root.dtype)
    if isinstance(row, int) and (row < SHORT_ROW or (isinstance(count, int) and count * row <= most)):
        return None
    fitting = sizes.floor_divide(most, row)
    spared = sizes.floor_divide(sizes.multiply(by_rows.besides, SPARED), row)
    return sizing.of(sizes.maximum(sizes.minimum(sizes.maximum(fitting, spared), count), 1))


def as_rows(part: Part) -> Rows | None:
    """A part as a loop over its rows; None where it is none, or one over blocks already."""
    if isinstance(part, Rows):
        return part if part.makes is None else None
    if part.kind != "loops" or not part.space:
        return None
    return Rows(0, part.vars[0], part.space[0], (part,))


def follows(rows: Rows, call: Nest, index: Mapping[int, Index], access: Access, sizing: Sizing) -> bool:
    """Whether a loop alone needs a result, each iteration the same row of it, and changes nothing that the function
    reads."""
    (root,) = call.roots
    if not access.readers[root] <= {nest.number for nest in nests_of(rows)}:
        return False
    if rows.size != sizing.shape(root)[0] or rows.size == 1:
        return False
    for nest in nests_of(rows):
        if nest.kind != "loops" and first_reduced(nest.roots[0]) == 0:
            return False
        if any(each in access.overwrites for each in nest.roots):
            return False
        if any(node is root and at[0] != index[nest.number][0] for node, at in access.reads[nest.number]):
            return False
    return True


def taker_of(root: Node, rows: Rows, index: Mapping[int, Index], access: Access, sizing: Sizing) -> Node | None:
    """A value that may be computed over a result: where only its nest reads that, each time the element at hand."""
    readers = [nest for nest in nests_of(rows) if nest.number in access.readers[root]]
    if len(readers) != 1 or readers[0].kind != "loops":
        return None
    (nest,) = readers
    if any(node is root and at != index[nest.number] for node, at in access.reads[nest.number]):
        return None
    alike = (each for each in nest.roots if each.dtype == root.dtype and sizing.shape(each) == sizing.shape(root))
    return next(alike, None)


def _reads(part: Part, root: Node, access: Access) -> bool:
    return any(nest.number in access.readers[root] for nest in nests_of(part))


def _nests(parts: Sequence[Part]) -> list[Nest]:
    return [nest for part in parts for nest in nests_of(part)]
