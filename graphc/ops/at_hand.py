"""Sizes at hand: questions that a traced program asks about sizes, answered for the arguments of the call.

In: the sizes of a call's arguments, while the function is traced for them; what a program asks of values that follow
from them alone. Out: the answer, and a note of it. The caller makes guards of the notes (tracing/guards.py).

    with sizes_at_hand({n: 3, m: 5}) as notes:      n, m: the sizes of x
        answered("greater", n * 2, 4)               True
        asked_number(m)                             5
    notes                                           [n * 2 > 4, m == 5], each with the line that asked
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.errors import GraphcError
from graphc.ir import sizes
from graphc.ir.interpret import check_guard
from graphc.ir.node import CONSTANT, FUNCTIONS, SIZE, Node, Size, constant_value, plain
from graphc.ir.source_lines import TRACE, Where, program_line
from graphc.ir.walk import as_size_node
from graphc.startup.record import record

RELATIONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
OPPOSITES = {"equal": "not_equal", "less": "greater_equal", "less_equal": "greater"}
OPPOSITES |= {false: true for true, false in OPPOSITES.items()}
NAMES = {"==": "equal", "<": "less", "<=": "less_equal"}
DIVISIONS = ("floor_div", "mod", "true_div")


@record(eq=False)
class Note:
    """A fact about sizes for the arguments at hand: `relation` (of RELATIONS) between two values. sizes: those that it
    follows from. where: the line that asked."""

    left: Node
    relation: str
    right: Any
    sizes: Mapping[Node, int]
    where: Where | None


@record(eq=False)
class AtHand:
    """Values that follow from sizes at hand, each with the sizes that it follows from. notes: for each size the list
    of its trace. fixed: the sizes of which a note says the number."""

    values: dict[Node, tuple[Any, frozenset[Node]]]
    notes: dict[Node, list[Note]]
    fixed: set[Node]


@contextmanager
def sizes_at_hand(given: Mapping[Node, int]) -> Iterator[list[Note]]:
    """While the block runs, answer questions about what follows from these sizes, and from those of the traces around
    it. Gives the list of the notes about these sizes."""
    outer, notes = TRACE.at_hand, list[Note]()
    values = {size: (np.int64(value), frozenset((size,))) for size, value in given.items()}
    if outer is not None:
        values = {**outer.values, **values}
    fixed = outer.fixed if outer else set[Node]()
    TRACE.at_hand = AtHand(values, {**(outer.notes if outer else {}), **dict.fromkeys(given, notes)}, fixed)
    try:
        yield notes
    finally:
        TRACE.at_hand = outer


def found(value: Any) -> tuple[Any, frozenset[Node]] | None:
    """The value of a tensor that follows from sizes at hand alone, with these sizes; None for any other."""
    hand = TRACE.at_hand
    if hand is None or not isinstance(value, Node):
        return None
    root = plain(value)
    if not _follows(root, hand.values):
        return None
    result = _computed(root, hand.values)
    return result if result[1] else None


def _computed(root: Node, values: dict[Node, tuple[Any, frozenset[Node]]]) -> tuple[Any, frozenset[Node]]:
    """Compute a tensor, and the sizes that it follows from, with those in `values`, which is extended."""
    pending = [root]
    while pending:
        node = pending[-1]
        missing = [arg for arg in node.args if arg not in values] if node not in values else []
        if missing:
            pending += missing
            continue
        pending.pop()
        if node not in values:
            pairs = [values[arg] for arg in node.args]
            own = frozenset[Node]().union(*(each for _, each in pairs))
            values[node] = _evaluated(node, [each for each, _ in pairs]), own
    return values[root]


def _follows(root: Node, known: Mapping[Node, Any]) -> bool:
    """Tell whether a number or a vector is computed from nothing but known values and constants."""
    pending, seen = [root], set[Node]()
    while pending:
        node = pending.pop()
        if node in known or node in seen:
            continue
        if len(node.type.shape) > 1 or not (node.args or node.op is CONSTANT):
            return False
        seen.add(node)
        pending += node.args
    return True


def _evaluated(node: Node, args: list[Any]) -> Any:
    if node.op.name in DIVISIONS and not args[1].any():
        raise ZeroDivisionError("division by zero")  # as of Python's numbers, which sizes are in NumPy
    with np.errstate(all="ignore"):
        return node.op.eval(node, *args)


def answered(relation: str, left: Any, right: Any) -> bool | None:
    """Tell whether a relation holds for the sizes at hand, and note the answer. None where it is not one of numbers
    that follow from them."""
    if not isinstance(left, Node):
        return None
    known, other = found(left), found(right)
    if known is None and other is None:
        return None
    values = [_number(*pair) for pair in ((left, known), (right, other))]
    if None in values:
        return None
    answer = bool(RELATIONS[relation](*values))
    if values[1] != values[1]:  # NaN: the answer is the same for all sizes
        return answer
    own = frozenset().union(*(each[1] for each in (known, other) if each is not None))
    _note(left, relation if answer else OPPOSITES[relation], right, own)
    return answer


def _number(value: Any, known: tuple[Any, Any] | None) -> Any:
    """The number that a side of a comparison is; None where it is none."""
    if known is None:
        known = (constant_value(value) if isinstance(value, Node) else value), None
    number = known[0]
    if isinstance(number, np.ndarray | np.generic):
        return None if number.ndim else number.item()
    return number if isinstance(number, bool | int | float) else None


def asked_number(node: Any) -> Any:
    """The number that a tensor is for the sizes at hand, which is noted, or of constants alone; None for any other."""
    known = found(node)
    if known is None and isinstance(node, Node) and _follows(plain(node), {}):
        return _number(node, _computed(plain(node), {}))
    number = None if known is None else _number(node, known)
    if known is not None and number is not None:
        _note(node, "equal", number, known[1])
    return number


def asked_values(node: Any) -> Any:
    """The array that a vector is, or the number that a tensor is, for the sizes at hand, which are noted. None
    where it does not follow from them."""
    known = found(node)
    if known is None or not known[0].ndim:
        return asked_number(node)
    for size in known[1]:
        asked_number(size)
    return known[0]


def asked_size(size: Size) -> Size:
    """A size as a number where it is known, or at hand, which is noted. For functions that need a number: others leave
    sizes open, so that one kernel serves all."""
    if isinstance(size, int):
        return size
    number = asked_number(size)
    return size if number is None else int(number)


def fixed_size(size: Size) -> int | None:
    """A size as a number if the types or the notes so far say it: nothing is asked. None for an open one."""
    if not isinstance(size, Node):
        return int(size)
    known = found(size)
    return int(known[0]) if known is not None and known[1] <= TRACE.at_hand.fixed else None


def asked_equal(left: Size, right: Size) -> bool | None:
    """Tell whether two sizes are equal: in every run, or for the sizes at hand, which is noted. None where neither is
    known."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return sizes.equal(left, right) or answered("equal", *((left, right) if isinstance(left, Node) else (right, left)))


def agreeing(node: Node) -> Node:
    """Return a node whose sizes agree, as far as those at hand tell. Otherwise raise here what a call would raise, so
    that the program's own `except` sees it, and note it."""
    for guard in node.op.guards(node):
        left, right = as_size_node(guard.left), as_size_node(guard.right)
        known = {side: pair[0] for side in (left, right) if (pair := found(side)) is not None}
        if not known or any(side not in known and constant_value(side) is None for side in (left, right)):
            continue
        try:
            check_guard(guard, known)
        except GraphcError:
            answered(NAMES[guard.relation], left, right)
            for side in (left, right) if guard.relation == "==" else ():
                answered("not_equal", side, 1)  # of which the axis might broadcast
            raise
    return node


def _note(left: Node, relation: str, right: Any, own: frozenset[Node]) -> None:
    """Note what holds. If sizes of several traces decide it, each of them is noted as it is."""
    hand, where = TRACE.at_hand, program_line()
    given = {size: int(hand.values[size][0]) for size in own}
    lists = {id(hand.notes[size]): hand.notes[size] for size in own}
    if len(lists) == 1:
        (notes,) = lists.values()
        note = Note(plain(left), relation, right, given, where)
        notes.append(note)
        if relation == "equal" and (line := line_of(note)) is not None:
            hand.fixed.add(line[0])
        return
    hand.fixed.update(given)
    for size, number in given.items():
        hand.notes[size].append(Note(size, "equal", number, {size: number}, where))


def line_of(note: Note) -> tuple[Node, int, bool] | None:
    """A note that says one number of one size: `n + 1 == 4` that n is 3, `4 > n` that it is at most 3. Returns the
    size, the number, and True where the number is the least that the size may be."""
    right = note.right
    if isinstance(right, Node):
        whole = right.type.dtype == "int64" and not right.type.shape
    else:
        whole = isinstance(right, int | np.integer) and not isinstance(right, bool)
    if not whole or note.left.type.dtype != "int64":
        return None
    terms, number = sizes.difference(note.left, right if isinstance(right, Node) else int(right))
    if len(terms) != 1:
        return None
    ((size, factor),) = terms.items()
    if size.op is not SIZE or factor not in (1, -1):
        return None
    up = note.relation.startswith("greater") == (factor == 1)
    strict = note.relation in ("less", "greater")
    return size, -factor * number + (strict if up else -strict), up


FUNCTIONS.update(asked_number=asked_number, asked_size=asked_size, asked_values=asked_values)
