"""In-place changes of arrays, which variables and constants refuse because they are immutable.

In: an operator, method or attribute that would write to an array. Out: an error that names the function for a changed
copy. Some of these have another meaning in Theano's programs (`x.sort()` returns a sorted tensor, `x += y` rebinds the
name); they keep it outside traced functions. Arrays that a traced function has made itself are handles, which take
writes (`tensor/handles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from graphc.errors import GraphAttributeError, GraphTypeError
from graphc.ir.symbol import FUNCTIONS, METHODS, Symbol, asked
from graphc.ir.traced import TRACE, TRACED, asked_by_user, traced_from, traced_hint
from graphc.startup.hooks import HOOKS

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
    "view": "x.view(dtype) is of the memory of an array, and a tensor has none; x.astype(dtype) converts",
    "strides": "x.strides are of the memory of an array, and a tensor has none",
    "flags": "x.flags are of the memory of an array, and a tensor has none",
    "data": "x.data is the memory of an array, and a tensor has none",
    "base": "x.base is of the memory of an array, and a tensor has none",
}
"""Attributes of NumPy's arrays that concern memory, with the message that says what to use instead."""


NAMED_X = r"\bx\b"
"""The name of the target in the messages below, which the name of the argument replaces."""


def refuse_write(node: Symbol, what: str) -> GraphTypeError:
    """The error for a write to a tensor that is no array of the program's own: a variable, or what may be a view."""
    name, found = node.facts()[0], traced_from(node)
    whose = "comes from outside of the function" if found is None else f"is {found}, or may be a view of it"
    argument = "x" if found is None else found.partition(", an argument of ")[0]
    copied = f"write {argument} = {argument}.copy()" if argument.isidentifier() else f"copy it, as {argument}.copy(),"
    if node in TRACED:  # no view of it
        what = re.sub(NAMED_X, argument, what)
    return GraphTypeError(
        f"{name} cannot be written to by `{what}`: it {whose}, and the array of a caller is "
        f"not changed; {copied} first{asked(name)}"
    )


def in_place(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not (TRACE.depth and self.type.shape and asked_by_user()):
            return NotImplemented  # Python then evaluates x + y and rebinds the name
        raise refuse_write(self, f"x {name}= y")

    return operator


def unwritten(name: str, read: Callable[[Any], T]) -> T:
    """A read-only property for an attribute that NumPy's arrays let programs assign."""

    def write(self: Any, value: Any) -> None:
        who = self.facts()[0]
        raise GraphAttributeError(
            f"{who} is symbolic, its {name} cannot be written; {WRITES[name]}{traced_hint(self)}{asked(who, True)}"
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
        number = FUNCTIONS["asked_number"](self)
        if number is not None:
            return hash(number)
        name = self.facts()[0]
        raise GraphTypeError(
            f"{name} is symbolic: it has no value while the graph is built that a dict, a set or a cache could find it "
            f"by; use T.where(condition, a, b) or jnp.stack(values)[index]{traced_hint(self)}{asked(name)}"
        )
    return object.__hash__(self)


def refuse_in_place(name: str, node: Symbol) -> GraphAttributeError | GraphTypeError:
    """The error for an operation that NumPy's arrays do in place."""
    who = node.facts()[0]
    kind = GraphTypeError if name in METHODS else GraphAttributeError
    return kind(f"{who} is symbolic and has no memory: {IN_PLACE[name]}{traced_hint(node)}{asked(who, True)}")


def of_memory(name: str, node: Symbol) -> Any:
    """An attribute that concerns memory: `tolist` of what follows from sizes at hand. Any other is refused."""
    values = FUNCTIONS["asked_values"](node) if name == "tolist" else None
    if values is None:
        raise refuse_in_place(name, node)
    return np.asarray(values).tolist


class Immutable(Symbol):
    """A tensor that refuses in-place operators and assignments to attributes."""

    __slots__ = ()

    __iadd__, __isub__, __imul__ = in_place("+"), in_place("-"), in_place("*")
    __itruediv__, __ifloordiv__ = in_place("/"), in_place("//")
    __imod__, __ipow__, __imatmul__ = in_place("%"), in_place("**"), in_place("@")
    __iand__, __ior__, __ixor__ = in_place("&"), in_place("|"), in_place("^")
    __ilshift__, __irshift__ = in_place("<<"), in_place(">>")

    def __setitem__(self, key: Any, value: Any) -> None:
        if TRACE.depth and asked_by_user():
            raise refuse_write(self, "x[key] = value")
        super().__setitem__(key, value)

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return np.dtype(self.type.dtype).itemsize  # type: ignore[attr-defined]

    @property
    def nbytes(self) -> Any:
        """The number of bytes of all elements."""
        return FUNCTIONS["size"](self) * self.itemsize

    @property
    def device(self) -> str:
        """ "cpu", as of NumPy's arrays."""
        return "cpu"

    def view(self, dtype: Any = None) -> Any:
        """The same array, by another name. Raises GraphAttributeError for a dtype that would read its bytes anew."""
        if not (dtype in (None, np.ndarray) or np.dtype(dtype) == np.dtype(self.type.dtype)):  # type: ignore[attr-defined]
            raise refuse_in_place("view", self)
        return HOOKS.handles.item(self, ...) if TRACE.depth else self

    def _flat(self) -> Any:
        """All elements in C order, as a vector."""
        return FUNCTIONS["flatten"](self)

    def _strides(self) -> Any:
        raise refuse_in_place("strides", self)

    def _real(self) -> Any:
        """The tensor itself: there are no complex dtypes."""
        return self

    def _imag(self) -> Any:
        """Zeros: there are no complex dtypes."""
        return FUNCTIONS["imag"](self)

    flat, strides = unwritten("flat", _flat), unwritten("strides", _strides)
    real, imag = unwritten("real", _real), unwritten("imag", _imag)
