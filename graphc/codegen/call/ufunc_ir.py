"""The inner loop of a ufunc of NumPy's, in LLVM IR, over the C function of an elementwise graph of vectors.

In: run(n, inputs, results, NULL). Out: the status of a loop over `data` (addresses), `dims` (how many elements) and
`strides` (bytes). Where all lies contiguous and apart, as for `u(x, y)`,

    run(n, data[0], data[1], data[2])

is the loop. Otherwise blocks of elements are copied to the stack and back. A result that overlaps an input elsewhere
than at the same elements, as in `u.reduce` and `u.accumulate`, makes blocks of one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import I8, I16, I32, I64, NULL, Bool, Int, Ptr

BLOCK = 512
WORD: dict[int, type[Int]] = {1: I8, 2: I16, 4: I32, 8: I64, 16: I64}


def write_loop(
    code: Code, run: Function[..., I64], items: Sequence[int], results: int, given: tuple[Ptr, Ptr, Ptr]
) -> I64:
    """Write the loop. items: the bytes of an element of each operand, results last. Returns the status of `run`."""
    data, dims, strides = given
    n = dims.load(I64)
    status = code.variable(I64.of(0))
    with code.when(n == 0):
        code.ret(I32.of(0))
    places = [data.at(k, I64).load(Ptr) for k in range(len(items))]
    steps = [strides.at(k, I64).load(I64) for k in range(len(items))]
    first = len(items) - results
    spans = [_span(place, step, n, item) for place, step, item in zip(places, steps, items, strict=True)]
    clash, moved = Bool.of(False), Bool.of(False)
    for out in range(first, len(items)):
        for other in range(out):
            meets = spans[out][0].below(spans[other][1]) & spans[other][0].below(spans[out][1])
            same = (places[out] == places[other]) & (steps[out] == steps[other]) & (steps[out] != 0)
            clash = meets if clash.code is None else clash | meets
            shifted = meets & ~same
            moved = shifted if moved.code is None else moved | shifted
    direct = [(step == item) & ~clash for step, item in zip(steps, items, strict=True)]
    is_whole = reduce(and_, direct)
    length = is_whole.choose(n, moved.choose(I64.of(1), I64.of(BLOCK)))
    rooms = [code.local(I8, BLOCK * item, align=64) for item in items]
    begin = code.variable(I64.of(0))
    blocks = (n + (length - 1)) // length
    with code.count(0, blocks):
        left = n - begin.value
        count = (left < length).choose(left, length)
        spots = [place.at(begin.value * step) for place, step in zip(places, steps, strict=True)]
        for k in range(first):
            stays = (steps[k] == 0) & (begin.value != 0) & ~clash
            with code.when(~(direct[k] | stays)):
                _copy(code, rooms[k], I64.of(items[k]), spots[k], steps[k], count, items[k])
        taken = [near.choose(spot, room) for near, spot, room in zip(direct, spots, rooms, strict=True)]
        answer = run(code, count, *taken, NULL)
        status.value = (answer != 0).choose(answer, status.value)
        for k in range(first, len(items)):
            with code.when(~direct[k]):
                _copy(code, spots[k], steps[k], rooms[k], I64.of(items[k]), count, items[k])
        begin.value = begin.value + count
    return status.value


def _span(place: Ptr, step: I64, n: I64, item: int) -> tuple[I64, I64]:
    """The first address of an operand and that behind its last."""
    begin = place.integer()
    end = begin + (n - 1) * step
    is_up = begin.below(end)
    return is_up.choose(begin, end), is_up.choose(end, begin) + item


def _copy(code: Code, to: Ptr, to_step: I64, source: Ptr, step: I64, count: I64, item: int) -> None:
    kind = WORD[item]
    with code.count(0, count) as number:
        for part in range(0, item, min(item, 8)):
            word = source.at(number * step).at(part).load(kind, align=1)
            to.at(number * to_step).at(part).store(word, align=1)
