"""Python's questions about tensors: `if x`, `x == y`, `x in list`, `x.shape` while tracing.

    if x.shape[0] >= 0: ...     True in every call
    if x.shape[0] == 3: ...     in a function that is traced for arrays: as it is for these, and noted (at_hand.py)
    if x > 0: ...               GraphTypeError, with the tensor and the line

In: a tensor that is asked for its truth, or is compared. Out: an answer that holds whatever a call gives, from bounds
of sizes (none is negative) and from constants; one that holds for the arguments at hand; identity, where Theano's
programs look variables up; else a GraphTypeError with the tensor and the line. Nothing is made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

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
)
from graphc.ir.sizes import difference, is_natural, known_most, known_nonnegative
from graphc.ir.source_lines import TRACE, TRACED, by_program, traced_from, user_line
from graphc.ir.symbol import METHODS
from graphc.ops.at_hand import RELATIONS, answered
from graphc.ops.elementwise import Number
from graphc.startup.hooks import HOOKS

MOST_SIZES = 32
"""The longest vector whose elements are looked at."""
MOST_NODES = 200
"""The most nodes that a size is computed from."""


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
        symbol = "==" if relation == "equal" else "!="
        line = user_line()
        asked_of = f"{named(left)} {symbol} {named(right)}"
        raise left.has_no_truth(f"{asked_of} ({line})" if line else asked_of)
    return relation != "equal"


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
    terms, number = difference(left, right)
    natural = all(map(known_nonnegative, terms))
    least = number if natural and all(factor > 0 for factor in terms.values()) else None
    most = number if natural and all(factor < 0 for factor in terms.values()) else None
    if isinstance(right, int) and most is None:
        bound = known_most(left)
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
    found = [decided("equal", a, b) if isinstance(a, Node) else a == b for a, b in zip(*pairs, strict=True)]
    if False in found:
        return relation == "not_equal"
    return None if None in found else relation == "equal"


def _items(vector: Any) -> Sequence[Any]:
    if not isinstance(vector, Node):
        return list(vector)
    return [FUNCTIONS["getitem"](vector, place) for place in range(vector.type.shape[0])]


def is_size(node: Any) -> bool:
    """Tell whether a number or a vector is computed from nothing but sizes and constants."""
    pending, seen, found = [node], set[Node](), False
    while pending:
        current = pending.pop()
        if not isinstance(current, Node):
            return False
        current = plain(current)
        if current in seen:
            continue
        seen.add(current)
        is_leaf = current.op is SIZE or is_natural(current)
        found |= is_leaf
        whole = current.type.dtype[0] != "f" and len(current.type.shape) < 2 and len(seen) < MOST_NODES
        if not is_leaf and (not whole or not (current.args or current.op is CONSTANT)):
            return False
        pending += current.args
    return found


def is_outside(node: Node) -> bool:
    """Tell whether a variable was there before the function that is traced: another program's, which looks it up."""
    return node.op is SHARED or (node.op is INPUT and node not in TRACED and "_declared" in node.__dict__)


def class_of(node: Any) -> type:
    """The class of NumPy's or Python's object that a tensor stands for in a traced function."""
    if type(node) is not Comparison and (type(node.type) is not Type or is_outside(plain(node))):
        return type(node)
    kind = np.dtype(node.type.dtype)
    if type(node) is Number:
        return {"f": float, "b": bool}.get(kind.kind, int)
    if node.type.shape or type(node) not in (Node, Scalar, Comparison):
        return np.ndarray
    given: type | None = node.__dict__.get("_given")
    TRACE.has_asked_class |= given is not None
    return given or kind.type


def rounded(node: Node, digits: int | None, is_traced: bool) -> Node:
    """Python's `round` of a tensor: of a number in a traced function, without digits, one of Python's integers."""
    made: Node = FUNCTIONS["round"](node, digits or 0)
    if digits is None and is_traced and class_of(node) is not np.ndarray:
        made = make(OPS["cast"], (made,), {"dtype": "int64"})
        made.__class__ = Number
    return made


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
        made: Node = FUNCTIONS["as_tensor"](list(self), dtype="int64")
        return made

    def __add__(self, other: Any) -> Any:
        return Shape(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Shape(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Any:
        return Shape(tuple.__mul__(self, count)) if isinstance(count, int) else NotImplemented

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Shape(found) if isinstance(key, slice) else found

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a shape, which is a tuple of sizes, has no attribute {name!r}")
        return getattr(self.vector(), name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if by_program():
            return HOOKS.handles.apply_function(function, args, kwargs)
        return FUNCTIONS["array_function"](function, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [each.vector() if isinstance(each, Shape) else each for each in inputs]
        return FUNCTIONS["array_ufunc"](ufunc, method, given, kwargs)

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def plain_shape(node: Node) -> Shape:
    """The sizes of a node as a tuple."""
    return Shape(map(_number, node.type.shape))


def _number(size: Size) -> Size:
    """A size, which takes part in arithmetic as Python's integers do."""
    if type(size) in (Node, Scalar):
        size.__class__ = Number
    return size


FUNCTIONS["plain_shape"] = plain_shape
