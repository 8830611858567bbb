"""Python's questions about tensors: `if x`, `x == y`, `x in list`, `x.shape` while tracing.

    if x.shape[0] >= 0: ...     True in every call
    if x.shape[0] == 3: ...     in a function that is traced for arrays: as it is for these, and noted
    if x > 0: ...               GraphTypeError, with the tensor and the line

In: a tensor that is asked for its truth, or is compared. Out: an answer that holds whatever a call gives, from bounds
of sizes (none is negative) and from constants; one that holds for the arguments at hand; identity, where Theano's
programs look variables up; else a GraphTypeError with the tensor and the line. Nothing is made up.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, SupportsIndex

import numpy as np

from graphc.errors import GraphAttributeError, GraphcError
from graphc.ir import sizes
from graphc.ir.interpret import check_guard
from graphc.ir.node import (
    CONSTANT,
    FUNCTIONS,
    INPUT,
    OPS,
    SHARED,
    SIZE,
    Comparison,
    Node,
    Scalar,
    Size,
    Type,
    constant_value,
    describe,
    make,
    plain,
    size_owner,
)
from graphc.ir.source_lines import (
    TRACE,
    TRACED,
    OfArrays,
    Where,
    asked_by_user,
    by_program,
    program_line,
    traced_from,
    user_line,
    warn_user,
)
from graphc.ir.symbol import METHODS, asked
from graphc.ir.walk import args_of, as_size_node, computed
from graphc.startup.hooks import HOOKS
from graphc.startup.process import temporarily
from graphc.startup.record import record

# --- sizes at hand ----------------------------------------------------------------------------------------------------
# In: the sizes of a call's arguments, while the function is traced for them; what a program asks of values that follow
# from them alone. Out: the answer, and a note of it. The caller makes guards of the notes (tracing/variants.py).
#
#     with sizes_at_hand({n: 3, m: 5}) as notes:      n, m: the sizes of x
#         answered("greater", n * 2, 4)               True
#         asked_number(m)                             5
#     notes                                           [n * 2 > 4, m == 5], each with the line that asked


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
def sizes_at_hand(numbers: Mapping[Node, int]) -> Iterator[list[Note]]:
    """While the block runs, answer questions about what follows from these sizes, and from those of the traces around
    it. Gives the list of the notes about these sizes."""
    outer, notes = TRACE.at_hand, list[Note]()
    values = {size: (np.int64(value), frozenset((size,))) for size, value in numbers.items()}
    if outer is not None:
        values = {**outer.values, **values}
    fixed = outer.fixed if outer else set[Node]()
    hand = AtHand(values, {**(outer.notes if outer else {}), **dict.fromkeys(numbers, notes)}, fixed)
    with temporarily(TRACE, at_hand=hand):
        yield notes


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

    def compute(node: Node) -> tuple[Any, frozenset[Node]]:
        pairs = [values[arg] for arg in node.args]
        return _evaluated(node, [each for each, _ in pairs]), frozenset[Node]().union(*(each for _, each in pairs))

    return computed(values, root, args_of, compute)


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
    sources = frozenset().union(*(each[1] for each in (known, other) if each is not None))
    _note(left, relation if answer else OPPOSITES[relation], right, sources)
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


OF_NUMBERS = frozenset("as_integer_ratio bit_count bit_length hex is_integer to_bytes".split())
"""Methods of Python's numbers that a tensor has where it is a size: a call asks for the number."""


def asked_attribute(node: Node, name: str) -> Any:
    """An attribute of the number that a tensor is for the sizes at hand. AttributeError for any other, in the words of
    the program where it asks."""
    if name in OF_NUMBERS and (number := asked_number(node)) is not None:
        return getattr(np.asarray(number).item(), name)
    if asked_by_user(4):
        described = describe(node)
        raise GraphAttributeError(f"{described}: a tensor has no attribute {name!r}{asked(described)}")
    raise AttributeError(f"a tensor has no attribute {name!r}")


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


def asked_length(size: Size) -> Size:
    """`asked_size` for a program that asks, of a size that depends on values too."""
    asked = asked_size(size)
    number = TRACE.values.whole(asked) if isinstance(asked, Node) and TRACE.values is not None else None
    return asked if number is None else int(number)


def told(node: Node) -> bool | None:
    """The truth of a value, which is a guard then; None where no arguments are at hand."""
    truth: bool | None = None if TRACE.values is None else TRACE.values.truth(node)
    return truth


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


def _note(left: Node, relation: str, right: Any, sources: frozenset[Node]) -> None:
    """Note what holds. If sizes of several traces decide it, each of them is noted as it is."""
    hand, where = TRACE.at_hand, program_line()
    numbers = {size: int(hand.values[size][0]) for size in sources}
    lists = {id(hand.notes[size]): hand.notes[size] for size in sources}
    if len(lists) == 1:
        (notes,) = lists.values()
        note = Note(plain(left), relation, right, numbers, where)
        notes.append(note)
        if relation == "equal" and (line := line_of(note)) is not None:
            hand.fixed.add(line[0])
        return
    hand.fixed.update(numbers)
    for size, number in numbers.items():
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


FUNCTIONS.update(
    asked_attribute=asked_attribute, asked_length=asked_length, asked_number=asked_number, asked_values=asked_values
)


# --- truth ------------------------------------------------------------------------------------------------------------


MOST_SIZES = 32
"""The longest vector whose elements are looked at."""
MOST_NODES = 200
"""The most nodes that a size is computed from."""


class Number(Scalar):
    """A scalar that stands for a Python number, which has a kind and no dtype of its own; nor has what Python's
    operators make of it and of other numbers."""

    __slots__ = ()

    __getitem__, __array__ = OfArrays(Node.__getitem__), OfArrays(Node.__array__)
    shape, dtype, ndim = OfArrays(Node.shape), OfArrays(Node.dtype), OfArrays(Node.ndim)
    size, T = OfArrays(Node.size), OfArrays(Node.T)


def truth(asked: Comparison) -> bool:
    """The truth of `a == b` or `a != b`, which a program asks for."""
    left, right, relation = *asked.operands, asked.relation
    if left is right and not (TRACE.depth and left.type.dtype[0] == "f"):  # NaN is not itself
        return relation == "equal"
    known = decided(relation, left, right)
    if known is None:
        known = answered(relation, left, right)
    if known is not None:
        return known
    if isinstance(right, Node):
        made_up = asked.is_written and is_size(left) and is_size(right)
        if TRACE.depth:
            made_up = not (is_outside(left) and is_outside(right))
    else:
        made_up = bool(TRACE.depth) or is_size(left)
    if made_up or any(traced_from(each) for each in (left, right) if isinstance(each, Node)):
        value: bool | None = None if TRACE.values is None else TRACE.values.truth(asked)
        if value is not None:
            return value
        symbol = "==" if relation == "equal" else "!="
        line = user_line()
        asked_of = f"{named(left)} {symbol} {named(right)}"
        now, other = _present(left), _present(right)
        if now is not None and other is not None and not TRACE.depth:
            holds = (now == other) == (relation == "equal")
            warn_user(f"{asked_of} is {holds} of the values that shared variables have now; others may come")
            return holds
        raise left.has_no_truth(f"{asked_of} ({line})" if line else asked_of)
    return relation != "equal"


def _present(value: Any) -> int | None:
    """A whole number, or the present size where it is that of a shared variable."""
    if not isinstance(value, Node):
        return value if isinstance(value, int) else None
    owner: Any = size_owner(plain(value)) if value.op is SIZE else None
    if owner is None or owner.op is not SHARED:
        return None
    sizes_now = zip(owner.type.shape, owner.cell[0].shape, strict=True)
    return next(now for size, now in sizes_now if size is plain(value))


def named(value: Any) -> str:
    """A tensor or another value in a message, without a line."""
    return describe(value).partition(" (")[0] if isinstance(value, Node) else repr(value)


def truth_of(node: Node) -> bool | None:
    """The truth of a tensor where it is known: of a whole number or a bool that is constant, of a size, of a comparison
    of sizes, of what is computed from sizes at hand."""
    if type(node) is Comparison or node.type.shape:
        return None
    value = constant_value(node)
    if value is not None and node.type.dtype[0] != "f":
        return bool(value) if TRACE.depth else None  # Theano's programs ask so whether there is one
    compares = node.op.name in RELATIONS
    relation, sides = (node.op.name, node.args) if compares else ("not_equal", (node, 0))
    known = decided(relation, *sides) if compares or node.type.dtype == "int64" else None
    return answered(relation, *sides) if known is None else known


def decided(relation: str, left: Any, right: Any) -> bool | None:
    """Tell whether a relation of two values holds in every call, or in none; None where that is not known."""
    if isinstance(right, Node) and not right.type.shape:
        known = constant_value(right)
        right = right if known is None or right.type.dtype == "float32" else known.item()
    many = [right] if isinstance(right, (list, tuple)) else [each for each in (left, right) if is_vector(each)]
    if many and is_vector(left) and (isinstance(right, (list, tuple)) or is_vector(right)):
        return _decided_for_all(relation, left, right)
    if not isinstance(left, Node) or left.type.shape:
        return None
    value = constant_value(left)
    if isinstance(right, (bool, int, float, np.generic)):
        if value is not None:
            return bool(getattr(np, relation)(value, right))
        if not isinstance(right, (int, np.integer)):
            if left.type.dtype != "int64" or relation not in ("equal", "not_equal") or float(right).is_integer():
                return None
            return None if isinstance(right, np.bool_) else relation == "not_equal"
        right = int(right)
    elif not isinstance(right, Node) or right.type.dtype != "int64" or right.type.shape:
        return None
    return _by_bounds(relation, left, right) if left.type.dtype == "int64" else None


def _by_bounds(relation: str, left: Node, right: Size) -> bool | None:
    terms, number = sizes.difference(left, right)
    natural = all(map(sizes.known_nonnegative, terms))
    least = number if natural and all(factor > 0 for factor in terms.values()) else None
    most = number if natural and all(factor < 0 for factor in terms.values()) else None
    if isinstance(right, int) and most is None:
        bound = sizes.known_most(left)
        most = None if bound is None else bound - right
    if relation in ("less", "less_equal", "greater", "greater_equal"):
        if relation[0] == "l":
            least, most = (None if most is None else -most), (None if least is None else -least)
        strict = int(not relation.endswith("equal"))
        if least is not None and least >= strict:
            return True
        return False if most is not None and most < strict else None
    if least is not None and least == most:
        return (least == 0) == (relation == "equal")
    if (least is not None and least > 0) or (most is not None and most < 0):
        return relation == "not_equal"
    return None


def is_vector(value: Any) -> bool:
    """Tell whether a value is a vector of sizes, or of as many other whole numbers as its type says."""
    return (
        isinstance(value, Node)
        and type(value) is not Comparison
        and value.type.dtype == "int64"
        and len(value.type.shape) == 1
        and isinstance(value.type.shape[0], int)
        and value.type.shape[0] <= MOST_SIZES
    )


def _decided_for_all(relation: str, left: Node, right: Any) -> bool | None:
    """Tell whether two tuples of sizes are equal, or are not."""
    if relation not in ("equal", "not_equal"):
        return None
    pairs = [_items(left), _items(right)]
    if len(pairs[0]) != len(pairs[1]):
        return relation == "not_equal"
    answers = [decided("equal", a, b) if isinstance(a, Node) else a == b for a, b in zip(*pairs, strict=True)]
    if False in answers:
        return relation == "not_equal"
    return None if None in answers else relation == "equal"


def _items(vector: Any) -> Sequence[Any]:
    if not isinstance(vector, Node):
        return list(vector)
    return [FUNCTIONS["getitem"](vector, place) for place in range(vector.type.shape[0])]


def is_size(node: Any) -> bool:
    """Tell whether a number or a vector is computed from nothing but sizes and constants."""
    pending, seen, is_found = [node], set[Node](), False
    while pending:
        current = pending.pop()
        if not isinstance(current, Node):
            return False
        current = plain(current)
        if current in seen:
            continue
        seen.add(current)
        is_leaf = current.op is SIZE or sizes.is_natural(current)
        is_found |= is_leaf
        whole = current.type.dtype[0] != "f" and len(current.type.shape) < 2 and len(seen) < MOST_NODES
        if not is_leaf and (not whole or not (current.args or current.op is CONSTANT)):
            return False
        pending += current.args
    return is_found


def is_outside(node: Node) -> bool:
    """Tell whether a variable was there before the function that is traced: another program's, which looks it up."""
    return node.op is SHARED or (node.op is INPUT and node not in TRACED and "_declared" in node.__dict__)


def class_of(node: Any) -> type:
    """The class of NumPy's or Python's object that a tensor stands for in a traced function."""
    if type(node) is not Comparison and (type(node.type) is not Type or is_outside(plain(node))):
        return type(node)
    dtype = np.dtype(node.type.dtype)
    if type(node) is Number:
        return {"f": float, "b": bool}.get(dtype.kind, int)
    if node.type.shape or type(node) not in (Node, Scalar, Comparison):
        return np.ndarray
    class_: type | None = node.__dict__.get("_given")
    TRACE.has_asked_class |= class_ is not None
    return class_ or dtype.type


def rounded(node: Node, digits: int | None, is_traced: bool) -> Node:
    """Python's `round` of a tensor: of a number in a traced function, without digits, one of Python's integers."""
    number: Node = FUNCTIONS["round"](node, digits or 0)
    if digits is None and is_traced and class_of(node) is not np.ndarray:
        number = make(OPS["cast"], (number,), {"dtype": "int64"})
        number.__class__ = Number
    return number


FUNCTIONS.update(class_of=class_of, rounded=rounded, truth=truth, truth_of=truth_of, decided=decided, is_size=is_size)


# --- plain shape ------------------------------------------------------------------------------------------------------
# The shape of a tensor in a function of arrays that is traced: a tuple, as NumPy's.
#
# In: a node. Out: a `Shape`, whose elements are numbers where sizes are known and tensors elsewhere, which stand for
# Python's integers.


class Shape(tuple[Any, ...]):
    """The sizes of a tensor, as a tuple. NumPy's functions take it for a vector: `np.prod(x.shape[1:])`; so do those of
    graphc, and it has the methods of a vector, as `x.shape` has in Theano's programs."""

    __slots__ = ()

    def vector(self) -> Node:
        """The sizes as an int64 vector."""
        vector: Node = FUNCTIONS["as_tensor"](list(self), dtype="int64")
        return vector

    def __add__(self, other: Any) -> Any:
        return Shape(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Shape(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Any:
        return Shape(tuple.__mul__(self, count)) if isinstance(count, int) else NotImplemented

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        items = tuple.__getitem__(self, key)
        return Shape(items) if isinstance(key, slice) else items

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a shape, which is a tuple of sizes, has no attribute {name!r}")
        return getattr(self.vector(), name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if by_program():
            return HOOKS.handles.apply_function(function, args, kwargs)
        return FUNCTIONS["array_function"](function, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operands = [each.vector() if isinstance(each, Shape) else each for each in inputs]
        return FUNCTIONS["array_ufunc"](ufunc, method, operands, kwargs)

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def plain_shape(node: Node) -> Shape:
    """The sizes of a node as a tuple."""
    return Shape(map(_as_integer, node.type.shape))


def _as_integer(size: Size) -> Size:
    """A size, which takes part in arithmetic as Python's integers do."""
    if type(size) in (Node, Scalar):
        size.__class__ = Number
    return size


FUNCTIONS["plain_shape"] = plain_shape
