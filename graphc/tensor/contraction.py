"""`einsum`: sums of products over any axes, as matrix products in an order that costs least.

In: subscripts as text or as lists of numbers, operands. Out: nodes. Sizes that are not known while the graph is built
are taken for one number, so that the order depends on the expression; sizes that are known count as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

from graphc.arrays.dtypes import promote
from graphc.errors import GraphValueError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Guard, Node, Size, describe
from graphc.ir.source_lines import lazy_format
from graphc.ops import shape as ops
from graphc.ops.elementwise import ONLY_STATIC, as_node, cast, elementwise, narrow
from graphc.ops.shape import label_origin
from graphc.startup.record import record
from graphc.tensor.indexing import diagonal
from graphc.tensor.products import contract
from graphc.tensor.reductions import sum as sum_of

__all__ = ["einsum", "einsum_path"]

GUESS = 64
"""The number that a size that is not known is taken for."""
HIDDEN = 0x100
"""The first of the letters that stand for the axes of an ellipsis."""
EXHAUSTIVE = 8
"""Up to this many operands all orders are compared; of more, the pair whose product is smallest goes first."""


@record()
class Expression:
    """Operands with a letter for each axis, and those of the result; axes of size 1 that broadcast are left out."""

    nodes: tuple[Node, ...]
    terms: tuple[str, ...]
    result: str
    lengths: dict[str, Size]


def einsum(subscripts: Any, *operands: Any, optimize: Any = True, dtype: Any = None) -> Node:
    """The sum of products that `subscripts` describes, as `einsum("ij,jk->ik", a, b)`.

    An ellipsis stands for axes that broadcast; without an arrow the result has the letters that occur once, in order.
    Operands and lists of numbers may alternate in place of text: `einsum(a, [0, 1], b, [1, 2], [0, 2])`. Pairs are
    combined, each by one matrix product, in the order of fewest operations; with `optimize` False from left to right,
    and as a path says that `einsum_path` gave. What one operand alone has is summed out of it before, where the sum of
    products might stay finite though that sum does not. Raises GraphTypeError for subscripts that do not fit.

        >>> T.einsum("ij,jk->ik", T.ones((2, 3)), T.ones((3, 4))).eval().shape
        (2, 4)
    """
    text, values = _in_letters(subscripts, operands)
    expression = _parse(text, [as_node(x) for x in values])
    kind = promote(*(node.type.dtype for node in expression.nodes)) if dtype is None else str(dtype)
    parts = [
        _without_repeats(cast(node, kind), term) for node, term in zip(expression.nodes, expression.terms, strict=True)
    ]
    for step in _path(expression, optimize):
        taken = [parts[position] for position in step]
        parts = [part for position, part in enumerate(parts) if position not in step]
        needed = set(expression.result).union(*(letters for _, letters in parts))
        value, letters = taken[0]
        for other, own in taken[1:]:
            value, letters = _combine(value, letters, other, own, needed)
        parts.append((value, letters))
    value, letters = _sum_out(*parts[0], set(expression.result))
    value = ops.dimshuffle(value, [letters.index(k) if k in letters else "x" for k in expression.result])
    return ops.broadcast_to(value, [expression.lengths[letter] for letter in expression.result])


def einsum_path(subscripts: Any, *operands: Any, optimize: Any = True) -> tuple[list[Any], str]:
    """The order in which `einsum` combines operands, as NumPy writes it, and a line for each step."""
    text, values = _in_letters(subscripts, operands)
    expression = _parse(text, [as_node(x) for x in values])
    path = _path(expression, optimize)
    terms = list(expression.terms)
    lines = [f"complete contraction: {text}"]
    for step in path:
        taken = [terms[position] for position in step]
        terms = [term for position, term in enumerate(terms) if position not in step]
        kept = "".join(k for k in dict.fromkeys("".join(taken)) if k in expression.result or k in "".join(terms))
        lines.append(f"{','.join(taken)}->{kept}")
        terms.append(kept)
    return ["einsum_path", *path], "\n".join(lines)


# --- subscripts -----------------------------------------------------------------------------------------------------


def _in_letters(subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Text and operands, also where these alternate with lists of numbers."""
    if isinstance(subscripts, str):
        return subscripts, operands
    items = [subscripts, *operands]
    arrays, lists = items[0 : len(items) // 2 * 2 : 2], items[1::2]

    def term(numbers: Any) -> str:
        return "".join("..." if number is Ellipsis else _letter(number) for number in numbers)

    def _letter(number: Any) -> str:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 52:
            raise GraphValueError(f"einsum: a subscript is a number from 0 to 51, not {number!r}")
        return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)

    text = ",".join(map(term, lists))
    return (f"{text}->{term(items[-1])}" if len(items) % 2 else text), arrays


def _parse(subscripts: str, nodes: Sequence[Node]) -> Expression:
    """The letters of each operand and of the result, with letters for the axes of an ellipsis."""
    text = subscripts.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    terms = inputs.split(",")
    what = f"einsum {subscripts!r}"
    if not (inputs + result).replace("...", "").replace(",", "").isalpha() and (inputs + result).strip(",."):
        raise GraphValueError(f"{what}: subscripts are letters and an ellipsis")
    if not nodes or len(terms) != len(nodes):
        raise _misfit(what, nodes)
    several: list[str] = []
    widest = 0
    for term, node in zip(terms, nodes, strict=True):
        hidden = node.ndim - len(term.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in term) or term.count("...") > 1 or "." in term.replace("...", ""):
            raise _misfit(what, nodes)
        widest = max(widest, hidden if "..." in term else 0)
    spare = "".join(chr(HIDDEN + k) for k in range(widest))  # no letter that a person may have used
    for term, node in zip(terms, nodes, strict=True):
        hidden = node.ndim - len(term.replace("...", ""))
        several.append(term.replace("...", spare[widest - hidden :]))
    if not arrow:
        letters = "".join(terms).replace("...", "")
        result = "..." + "".join(sorted(k for k in set(letters) if letters.count(k) == 1))
    elif widest and "..." not in result:
        raise GraphValueError(f"{what}: the result needs an ellipsis for the axes that broadcast")
    result = result.replace("...", spare)
    if len(set(result)) < len(result) or not set(result) <= set("".join(several)):
        raise GraphValueError(f"{what}: the result's subscripts must each occur once, and in an operand")
    return _sized(what, nodes, several, result)


def _misfit(what: str, nodes: Sequence[Node]) -> GraphValueError:
    shown = ", ".join(f"{describe(node)} of type {node.type}" for node in nodes)
    return GraphValueError(f"{what} does not fit the operands {shown}")


def _sized(what: str, nodes: Sequence[Node], terms: Sequence[str], result: str) -> Expression:
    """The size of every letter; axes of size 1 of which the letter has another size broadcast, so they are dropped."""
    lengths: dict[str, Size] = {}
    places: dict[str, Place] = {}
    nodes = _narrowed(nodes, terms)
    for operand, (node, term) in enumerate(zip(nodes, terms, strict=True)):
        for axis, (letter, size) in enumerate(zip(term, node.type.shape, strict=True)):
            known, place = lengths.get(letter, 1), (operand, node, axis)
            if isinstance(size, int) and isinstance(known, int) and size != known and 1 not in (size, known):
                raise ShapeError(str(_disagreement(what, letter, place, places[letter])).format(left=size, right=known))
            if sizes.equal(known, 1) or (isinstance(size, int) and size != 1):
                lengths[letter], places[letter] = size, place
    nodes = [
        _guard_axes(what, k, node, term, lengths, places)
        for k, (node, term) in enumerate(zip(nodes, terms, strict=True))
    ]
    narrow: list[Node] = []
    shown: list[str] = []
    for node, term in zip(nodes, terms, strict=True):
        pairs = list(enumerate(zip(term, node.type.shape, strict=True)))
        ones = [k for k, (letter, size) in pairs if sizes.equal(size, 1) and not sizes.equal(lengths[letter], 1)]
        narrow.append(ops.drop(node, ones))
        shown.append("".join(letter for k, (letter, _) in pairs if k not in ones))
    return Expression(tuple(narrow), tuple(shown), result, lengths)


def _narrowed(nodes: Sequence[Node], terms: Sequence[str]) -> Sequence[Node]:
    """The operands, in which computed axes of one element broadcast."""
    met: dict[str, list[Size]] = {}
    for node, term in zip(nodes, terms, strict=True):
        for letter, size in zip(term, node.type.shape, strict=True):
            met.setdefault(letter, []).append(size)
    found = []
    for node, term in zip(nodes, terms, strict=True):
        for axis, letter in enumerate(term):
            node = narrow(node, axis, met[letter])
        found.append(node)
    return found


Place: TypeAlias = tuple[int, Node, int]
"""An axis of an operand: the position of the operand, the operand, the axis."""


def _guard_axes(
    what: str, operand: int, node: Node, term: str, lengths: dict[str, Size], places: dict[str, Place]
) -> Node:
    """An operand whose axes have the sizes of their letters, which is checked at each call where it is not known."""
    held = node
    for axis, letter in enumerate(term):
        size, length = node.type.shape[axis], lengths[letter]
        if not sizes.equal(size, 1) and not sizes.equal(size, length):
            message = _disagreement(ops.label_call(what), letter, (operand, node, axis), places[letter])
            held = ops.guard_axis(held, axis, Guard(size, "==", length, message))
    return held


def _disagreement(what: str, letter: str, place: Place, other: Place) -> str:
    """The message about an axis of size {left}, whose letter has size {right} elsewhere."""
    text = (
        "{}: subscript {}: operand {}, {}, has size {{left}} along axis {}, operand {}, {}, has size {{right}} along "
    )
    shown = [part for k, node, axis in (place, other) for part in (k + 1, label_origin(node), axis)]
    name = "of an ellipsis" if ord(letter) >= HIDDEN else letter
    return lazy_format(text + "axis {}; {}", what, name, *shown, ONLY_STATIC)


# --- the order ------------------------------------------------------------------------------------------------------


def _path(expression: Expression, optimize: Any) -> list[tuple[int, ...]]:
    """The operands that are combined in turn, by their positions; their product is put last, as in NumPy's paths."""
    count = len(expression.terms)
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return [tuple(step) for step in optimize[1:]]
    if optimize is False or count <= 2:
        return [(0, 1), *((0, count - k) for k in range(2, count))] if count > 1 else []
    guesses = {letter: size if isinstance(size, int) else GUESS for letter, size in expression.lengths.items()}
    return (_cheapest if count <= EXHAUSTIVE else _greedy)(expression, guesses)


def _kept(letters: frozenset[str], rest: Sequence[frozenset[str]], result: str) -> frozenset[str]:
    """The letters that something outside needs."""
    return letters & frozenset(result).union(*rest)


def _cheapest(expression: Expression, guesses: dict[str, int]) -> list[tuple[int, ...]]:
    """The order of fewest products over all ways to combine pairs, by what subsets of the operands cost."""
    sets = [frozenset(term) for term in expression.terms]
    everything = frozenset(range(len(sets)))
    letters: dict[frozenset[int], frozenset[str]] = {}
    best: dict[frozenset[int], tuple[int, Any]] = {}
    for length in range(1, len(sets) + 1):
        for chosen in map(frozenset, combinations(range(len(sets)), length)):
            own = frozenset().union(*(sets[k] for k in chosen))
            letters[chosen] = _kept(own, [sets[k] for k in everything - chosen], expression.result)
            if length == 1:
                best[chosen] = (0, None)
                continue
            for part in _halves(chosen):
                other = chosen - part
                work = prod(guesses[k] for k in letters[part] | letters[other])
                cost = best[part][0] + best[other][0] + work
                if chosen not in best or cost < best[chosen][0]:
                    best[chosen] = (cost, (part, other))
    steps: list[tuple[int, ...]] = []
    places = [frozenset((k,)) for k in range(len(sets))]

    pending = [everything]
    order: list[frozenset[int]] = []
    while pending:
        chosen = pending.pop()
        if best[chosen][1] is not None:
            order.append(chosen)
            pending.extend(best[chosen][1])
    for chosen in reversed(order):
        part, other = best[chosen][1]
        steps.append(tuple(sorted((places.index(part), places.index(other)))))
        places = [place for place in places if place not in (part, other)] + [chosen]
    return steps


def _halves(chosen: frozenset[int]) -> list[frozenset[int]]:
    """The ways to take a set apart into two, one of each; that of all but the last first."""
    first, *others = sorted(chosen)
    parts = [frozenset((first, *more)) for length in range(len(others)) for more in combinations(others, length)]
    return sorted(parts, key=lambda part: -len(part))


def _greedy(expression: Expression, guesses: dict[str, int]) -> list[tuple[int, ...]]:
    """At each step the pair whose product is least larger than its operands."""
    sets = [frozenset(term) for term in expression.terms]
    steps: list[tuple[int, ...]] = []
    while len(sets) > 1:
        found = None
        for i, j in combinations(range(len(sets)), 2):
            rest = [one for k, one in enumerate(sets) if k not in (i, j)]
            made = _kept(sets[i] | sets[j], rest, expression.result)
            grown = prod(guesses[k] for k in made) - sum(prod(guesses[k] for k in sets[n]) for n in (i, j))
            if found is None or grown < found[0]:
                found = (grown, (i, j), made)
        assert found is not None
        steps.append(found[1])
        sets = [one for k, one in enumerate(sets) if k not in found[1]] + [found[2]]
    return steps


# --- products -------------------------------------------------------------------------------------------------------


def _without_repeats(x: Node, letters: str) -> tuple[Node, str]:
    """Axes that share a letter become their diagonal."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            letters = letters.replace(letter, "", 2) + letter
    return x, letters


def _sum_out(x: Node, letters: str, needed: set[str]) -> tuple[Node, str]:
    """The axes that nothing needs summed."""
    axes = tuple(axis for axis, letter in enumerate(letters) if letter not in needed)
    if not axes:
        return x, letters
    total = cast(sum_of(x, axes), x.type.dtype)
    return total, "".join(letter for letter in letters if letter in needed)


def _combine(a: Node, letters_a: str, b: Node, letters_b: str, needed: set[str]) -> tuple[Node, str]:
    """The product of two operands, summed over the letters that nothing needs any more."""
    a, letters_a = _sum_out(a, letters_a, needed | set(letters_b))
    b, letters_b = _sum_out(b, letters_b, needed | set(letters_a))
    shared = [letter for letter in letters_a if letter in letters_b]
    batch = [letter for letter in shared if letter in needed]
    summed = [letter for letter in shared if letter not in needed]
    rows = [letter for letter in letters_a if letter not in shared]
    columns = [letter for letter in letters_b if letter not in shared]
    letters = "".join(batch + rows + columns)
    if not summed or (batch and not rows and not columns):  # a sum along rows needs no call for each row
        both = "".join(batch + summed + rows + columns)
        wide = [
            ops.dimshuffle(x, [own.index(k) if k in own else "x" for k in both])
            for x, own in ((a, letters_a), (b, letters_b))
        ]
        return _sum_out(elementwise("mul", *wide), both, needed)

    def places(own: str, wanted: Sequence[str]) -> list[int]:
        return [own.index(letter) for letter in wanted]

    product = contract(
        a, b, places(letters_a, batch), places(letters_b, batch), places(letters_a, rows),
        places(letters_a, summed), places(letters_b, summed), places(letters_b, columns), "einsum",
    )  # fmt: skip
    return product, letters
