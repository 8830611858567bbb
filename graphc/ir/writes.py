"""In-place changes of arrays, which tensors refuse because they are immutable.

In: an operator, method or attribute that would write to an array. Out: an error that names the function for a changed
copy. Some of these have another meaning in Theano's programs (`x.sort()` returns a sorted tensor, `x += y` rebinds the
name); they keep it outside traced functions.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any, TypeVar

from graphc.errors import GraphAttributeError, GraphcError, GraphTypeError
from graphc.ir.call_errors import place
from graphc.ir.symbol import FUNCTIONS, METHODS, Symbol, asked
from graphc.ir.traced import TRACE, after_call, as_view, asked_by_user, is_unaliased, next_serial, traced_hint

T = TypeVar("T")

IN_PLACE = {
    "fill": "x.fill(value) gives every element of an array a value; jnp.full_like(x, value) is a new one",
    "sort": "x.sort() sorts an array in place; jnp.sort(x) is a sorted copy",
    "partition": "x.partition(k) orders an array in place; jnp.partition(x, k) is a copy",
    "put": "x.put(indices, values) writes to an array; T.set_subtensor(x.flatten()[indices], values) is a new one",
    "itemset": "x.itemset(place, value) writes to an array; T.set_subtensor(x[place], value) is a new one",
    "resize": "x.resize(shape) changes an array; jnp.resize(x, shape) is a new one",
    "setfield": "x.setfield() writes to an array; T.set_subtensor(x[key], value) is a new one",
    "setflags": "x.setflags() is of the memory of an array, and a tensor has none",
    "byteswap": "x.byteswap() is of the memory of an array, and a tensor has none",
    "tolist": "x.tolist() takes the elements, which have no values while the graph is built",
    "tobytes": "x.tobytes() takes the elements, which have no values while the graph is built",
    "view": "x.view() is of the memory of an array, and a tensor has none; x.astype(dtype) converts",
    "strides": "x.strides are of the memory of an array, and a tensor has none",
    "flags": "x.flags are of the memory of an array, and a tensor has none",
    "data": "x.data is the memory of an array, and a tensor has none",
    "base": "x.base is of the memory of an array, and a tensor has none",
}
"""Attributes of NumPy's arrays that concern memory, with the message that says what to use instead."""


def in_place(name: str, function: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not (TRACE.depth and self.type.shape and asked_by_user()):
            return NotImplemented  # Python then evaluates x + y and rebinds the name
        references = getrefcount(self)  # on its own line: each use of self adds a reference
        if not is_unaliased(self, references, name, other is self) or getattr(other, "__array_ufunc__", self) is None:
            told = self.told()[0]
            raise GraphTypeError(
                f"{told} is symbolic: `x {name}= y` writes to an array and to all views of it, and makes no new one, "
                "unless x is the new result of an operation, which one local name holds; "
                f"write x = x {name} y{traced_hint(self)}{asked(told)}"
            )
        start = next_serial()
        try:
            return after_call(start, FUNCTIONS["in_place"](name, function, self, other))
        except GraphcError as error:
            place(error, f"{function} in place", (self, other))
            raise

    return operator


def unwritten(name: str, read: Callable[[Any], T]) -> T:
    """A read-only property for an attribute that NumPy's arrays let programs assign."""

    def write(self: Any, value: Any) -> None:
        told = self.told()[0]
        raise GraphAttributeError(
            f"{told} is symbolic, its {name} cannot be written; {WRITES[name]}{traced_hint(self)}{asked(told, True)}"
        )

    made: Any = property(read, write, doc=read.__doc__)
    attribute: T = made
    return attribute


WRITES = {
    "shape": "x = x.reshape(shape) is a tensor of another shape", "dtype": "x = x.astype(dtype) is a tensor of another",
    "flat": "T.set_subtensor(x[:], value) is a changed copy", "real": "T.set_subtensor(x[:], value) is a changed copy",
    "strides": "a tensor has no memory", "imag": "graphc has no complex dtypes",
}  # fmt: skip
"""Attributes that programs assign, with what to write instead."""


def hash_of_a_number(self: Any) -> int:
    """The hash of a tensor. Refused in a traced function, where looking it up would compare values."""
    if TRACE.depth and asked_by_user():
        told = self.told()[0]
        raise GraphTypeError(
            f"{told} is symbolic: it has no value while the graph is built that a dict, a set or a cache could find it "
            f"by; use T.where(condition, a, b) or jnp.stack(values)[index]{traced_hint(self)}{asked(told)}"
        )
    return object.__hash__(self)


def refuse_in_place(name: str, node: Symbol) -> GraphAttributeError | GraphTypeError:
    """The error for an operation that NumPy's arrays do in place."""
    told = node.told()[0]
    kind = GraphTypeError if name in METHODS else GraphAttributeError
    return kind(f"{told} is symbolic and has no memory: {IN_PLACE[name]}{traced_hint(node)}{asked(told, True)}")


class Unchanging(Symbol):
    """A tensor that refuses in-place operators and assignments to attributes."""

    __slots__ = ()

    __iadd__, __isub__, __imul__ = in_place("+", "add"), in_place("-", "sub"), in_place("*", "mul")
    __itruediv__, __ifloordiv__ = in_place("/", "true_div"), in_place("//", "floor_div")
    __imod__, __ipow__, __imatmul__ = in_place("%", "mod"), in_place("**", "pow"), in_place("@", "matmul")
    __iand__, __ior__ = in_place("&", "bitwise_and"), in_place("|", "bitwise_or")
    __ixor__, __ilshift__ = in_place("^", "bitwise_xor"), in_place("<<", "left_shift")
    __irshift__ = in_place(">>", "right_shift")

    def _flat(self) -> Any:
        """All elements in C order, as a vector."""
        return as_view(self, FUNCTIONS["flatten"](self))

    def _strides(self) -> Any:
        raise refuse_in_place("strides", self)

    def _real(self) -> Any:
        """The tensor itself: there are no complex dtypes."""
        return as_view(self, self)

    def _imag(self) -> Any:
        """Zeros: there are no complex dtypes."""
        return FUNCTIONS["imag"](self)

    flat, strides = unwritten("flat", _flat), unwritten("strides", _strides)
    real, imag = unwritten("real", _real), unwritten("imag", _imag)
