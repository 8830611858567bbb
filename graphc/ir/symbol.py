"""The protocols of Python and NumPy that ask an object for a value or for memory, which a tensor does not have while a
graph is built.

In: operators, built-in functions (`bool`, `int`, `len`), NumPy functions and in-place changes applied to a tensor. Out:
nodes, where NumPy can be overridden (`__array_ufunc__`, `__array_function__`); elsewhere an error with the tensor's
name and line, and the function for a changed copy. Some in-place forms have another meaning in Theano's programs
(`x.sort()` returns a sorted tensor, `x += y` rebinds the name); they keep it outside traced functions. Arrays that a
traced function has made itself are handles, which take writes (`tensor/handles.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphc.errors import GraphAttributeError, GraphcError, GraphTypeError
from graphc.ir.call_errors import add_call
from graphc.ir.source_lines import (
    PLACED,
    TRACE,
    TRACED,
    asked_by_user,
    by_program,
    called_names,
    instruction,
    program_line,
    traced_from,
    traced_hint,
)
from graphc.startup.hooks import HOOKS, Table

if TYPE_CHECKING:
    from graphc.ir.methods import Methods
else:
    Methods = object

FUNCTIONS: Table[Callable[..., Any]] = Table()
"""The implementations of operators and methods of nodes, by name; filled by the modules that define them, which are
imported at the latest when one is first asked for."""


_TRUE_CLASS = vars(object)["__class__"]

METHODS = {
    name: name
    for name in (
        "all any argmax argmin astype clip copy cumprod cumsum diagonal dimshuffle dot eval fill flatten item max mean "
        "min norm prod ravel repeat reshape round squeeze std sum swapaxes take trace transpose var zeros_like "
        "ones_like conj nonzero exp log sqrt sigmoid tanh ptp arccos arccosh arcsin arcsinh arctan arctanh ceil cos "
        "cosh deg2rad exp2 expm1 floor log10 log1p log2 rad2deg sin sinh tan trunc choose nonzero_values transfer "
        "get_scalar_constant_value argsort searchsorted sort argpartition"
    ).split()
} | {"set": "set_subtensor", "inc": "inc_subtensor", "conjugate": "conj", "compress": "compressed"}
"""The methods of a tensor: each is the function of that name in `FUNCTIONS`, with the tensor as its first argument.
`FUNCTIONS["later"]` imports those that are loaded on demand."""

INTERNAL = {
    "_name", "attributes", "cell", "compared", "facts", "flat", "found", "free_rank", "has_no_truth", "is_tuple",
    "is_written", "keeper", "known", "lock", "mend", "mentioned", "node", "operands", "part", "relation", "serial",
    "sized", "sizes", "stand_back", "strides", "verified", "wanted",
}  # fmt: skip
"""Attributes of nodes that `dir` hides from users."""


class Symbol(Methods):
    """A tensor as Python and NumPy see it."""

    __slots__ = ()

    __array_priority__ = 1000

    @property
    def __class__(self) -> Any:
        """The class that `isinstance` is told beside the true one: in a traced function, that of the array or number
        that the tensor stands for (`ops/questions.py`)."""
        return FUNCTIONS["class_of"](self) if TRACE.depth and asked_by_user() else type(self)

    @__class__.setter
    def __class__(self, class_: Any) -> None:
        _TRUE_CLASS.__set__(self, class_)

    def facts(self) -> tuple[str, np.ndarray[Any, np.dtype[Any]] | None, bool]:
        """Its description for messages; its value if it is constant, else None; and True if it is a computed bool,
        whose truth a program asks for by mistake."""
        raise NotImplementedError

    @property
    def at(self) -> Any:
        """Changed copies under JAX's names: `x.at[key].set(v)`, `.add`, `.multiply`, `.divide`, `.power`, `.min`,
        `.max`, `.apply(f)`, and `.get(mode=...)`; see control/updates.py."""
        return HOOKS.at(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if by_program():
            try:
                return HOOKS.handles.apply_ufunc(ufunc, method, inputs, kwargs)
            except GraphcError as error:
                add_call(error, f"np.{ufunc.__name__}", inputs)
                raise
        return FUNCTIONS["array_ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if by_program():
            return HOOKS.handles.apply_function(function, args, kwargs)
        return FUNCTIONS["array_function"](function, args, kwargs)

    def known(self) -> Any:
        """The value, of an array that nothing traced has gone into; None of any other tensor."""
        return None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = FUNCTIONS["asked_values"](self)
        if values is not None:
            return np.asarray(values, dtype)
        frame = sys._getframe(1)
        kept = "as_strided" in (
            frame.f_code.co_name,
            frame.f_back and frame.f_back.f_code.co_name,
        )  # it keeps the memory
        if (value := self.known()) is not None and not kept:
            value = np.array(value, dtype)
            value.flags.writeable = False  # what is written to it would be lost
            return value
        if instruction()[0] == "STORE_SUBSCR":
            raise self._has_no_value(WRITTEN)
        if TRACE.depth and instruction()[0] == "BINARY_SUBSCR":
            value = None if TRACE.values is None else TRACE.values.of(self)
            if value is not None and value.dtype.kind != "f":
                return np.asarray(value, dtype)
            error = self._has_no_value(
                "has no value while the function is traced, and cannot index an array of NumPy's "
                f"own; jnp.asarray({'.'.join(called_names()) or 'a'})[key] takes it"
            )
            error.asked = True
            raise error
        if TRACE.depth:
            raise self._has_no_value(f"has no elements while the function is traced, {_instead(called_names())}")
        raise self._has_no_value(
            "has no elements while the graph is built, so it is no array for NumPy or SciPy: call the function of "
            "graphc.tensor, write np.dot(a, x) or a @ x for a.dot(x), T.constant(a)[x] for a[x], T.stack([…]) for "
            "np.array([…]); x.eval({…}) gives a value"
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        name = self.facts()[0]
        raise GraphTypeError(
            f"{name} is symbolic and cannot be assigned to; set_subtensor(x[key], value) makes a changed copy"
            f"{traced_hint(self)}{asked(name)}"
        )

    def __delitem__(self, key: Any) -> None:
        name = self.facts()[0]
        raise GraphTypeError(
            f"{name} is symbolic, and its elements cannot be deleted; jnp.delete(x, key) makes a shorter copy"
            f"{asked(name)}"
        )

    def __bool__(self) -> bool:
        if (value := self.known()) is not None:
            return bool(value)
        known: bool | None = FUNCTIONS["truth_of"](self)
        if known is not None:
            return known
        name, _, in_question = self.facts()
        if in_question or traced_from(self) or (asked_by_user() and (TRACE.depth or FUNCTIONS["is_size"](self))):
            known = None if TRACE.values is None else TRACE.values.truth(self)
            if known is None:
                raise self.has_no_truth(name)
            return known
        return True

    def has_no_truth(self, name: str) -> GraphTypeError:
        """The error for `bool(x)` of a tensor that messages call `name`."""
        compared = "; T.eq(a, b) compares in the graph, and x.type.shape has the sizes that are known"
        if not ("size" in name or ((" == " in name or " != " in name) and not TRACE.depth)):
            compared = ""
        error = refused(
            f"{name} is symbolic: it has no truth value {_meanwhile()}, as `if`, `while`, `and`, `or`, `not` and "
            f"chained comparisons ask for; use {_of_order()}{_where_built(*CHOICES)}, or &, |, ~{compared}"
            f"{traced_hint(self)}{asked(name)}"
        )
        error.asked = True
        return error

    def __index__(self) -> int:
        return int(
            self._number(
                "index",
                "cannot be the size of a range, an index of a list or a bound of a slice of NumPy's array; "
                f"{_where_built(*COUNTS)}, jnp.asarray(a)[i:j] a part",
            )
        )

    def __int__(self) -> int:
        return int(self._number("int", "cannot become an int; x.astype('int64') converts it in the graph"))

    def __float__(self) -> float:
        return float(
            self._number(
                "float",
                f"cannot become a float; {_where_built('T.exp and its kin take the place of math.exp', UNFLOATED)}",
            )
        )

    def __complex__(self) -> complex:
        number = FUNCTIONS["asked_number"](self)
        if number is not None:
            return complex(number)
        raise self._has_no_value(f"has no value {_meanwhile()}")

    def _number(self, wanted: str, refused: str) -> Any:
        """The Python number of a constant, or of sizes at hand. Raises GraphTypeError for any other tensor."""
        _, value, _ = self.facts()
        if value is None:
            number = FUNCTIONS["asked_number"](self)
            if number is not None and (wanted != "index" or isinstance(number, int)):
                return number
        if value is None and wanted != "float" and TRACE.values is not None:
            value = TRACE.values.whole(self)
        if value is None or value.ndim or (wanted == "index" and value.dtype.kind not in "iu"):
            written = instruction(3)[0] == "STORE_SUBSCR"
            error = self._has_no_value(WRITTEN if written else f"has no value {_meanwhile()}, and {refused}")
            error.asked = wanted != "float" and value is None
            raise error
        return float(value) if wanted == "float" else int(value)

    def __format__(self, form: str) -> str:
        if (value := self.known()) is not None:
            return format(value, form)
        if form:
            number = FUNCTIONS["asked_number"](self)
            if number is not None:
                return format(number, form)
            raise self._has_no_value(
                f"has no value {_meanwhile()} that could be formatted by {form!r}; {_where_built(*PRINTS)} prints it "
                "in each call"
            )
        return str(self)

    def _has_no_value(self, why: str) -> GraphTypeError:
        name = self.facts()[0]
        return refused(f"{name} is symbolic: it {why}{traced_hint(self)}{asked(name)}")


UNFLOATED = "leave out float(…): results without axes are numbers, and math.exp and its kin take such a tensor"
CHOICES = "T.where(condition, a, b), graphc.ifelse", "jnp.where(condition, a, b), lax.cond, lax.while_loop"
COUNTS = "T.arange makes a range", "lax.fori_loop(0, n, body, init) makes n steps"
PRINTS = "x.eval({…}) gives one, graphc.printing.Print", 'graphc.debug.print("{:.3f}", x)'


def _where_built(in_graphs: str, in_traces: str) -> str:
    """The words for who builds a graph, or for whose function is traced."""
    return in_traces if TRACE.depth else in_graphs


def _meanwhile() -> str:
    return _where_built("while the graph is built", "while the function is traced")


def _of_order() -> str:
    """NumPy's functions in place of Python's that compare, if the program calls one of those."""
    names = called_names() if TRACE.depth else []
    order = ORDERS.get(names[0]) if len(names) == 1 else None
    return "" if order is None else f"{order} in place of {names[0]}, "


ORDERS = {
    "min": "np.minimum(a, b) or x.min()", "max": "np.maximum(a, b) or x.max()", "sorted": "np.sort(x)",
    "any": "np.any(x)", "all": "np.all(x)",
}  # fmt: skip


def _instead(names: list[str]) -> str:
    """The call that asked for elements, and what a traced program writes in its place."""
    text, last = ".".join(names), names[-1] if names else ""
    member = getattr(np, last, None)
    if isinstance(member, type) and issubclass(member, np.generic):
        return f"as {text}(x) asks for; x.astype({last!r}) converts it"
    if isinstance(member, np.ufunc):
        return f"as {text} asks for of a list; np.array([…]) of it makes an array"
    if last == "dot":
        return f"as {text}(x) asks for: write {text.removesuffix('.dot')} @ x"
    if len(names) > 1 and hasattr(np.random.Generator, last):
        return (
            f"as {text} asks for; draw positions for the size, as in x[rng.permutation(len(x))], or use graphc.random"
        )
    asks = f"as {text} asks for" if text else "as NumPy or SciPy asks for"
    return (
        f"{asks}; the functions of NumPy, graphc.numpy, graphc.tensor and graphc.lax that graphc knows take it, "
        "np.array([…]) makes an array of a list, np.where(mask, x, 0) stands for a masked one"
    )


def refused(message: str) -> GraphTypeError:
    """A GraphTypeError about an unknown value, also kept in `TRACE.refused` because NumPy may drop it."""
    if TRACE.values is not None and TRACE.values.is_full:
        message += FULL + (TRACE.loops.told() if TRACE.loops is not None else "")
    error = GraphTypeError(message)
    if TRACE.depth:
        TRACE.refused = error, program_line()
    return error


FULL = "; a trace answers 32 questions about values, and a function has max_variants=16 variants for their answers"


WRITTEN = (
    "has no value while the graph is built, and cannot be written into an array of NumPy's; jnp.stack([…]) makes an "
    "array of tensors, T.set_subtensor(jnp.zeros(shape)[key], x) a changed copy; in a function that is traced "
    "a = np.array(a) makes one that takes it"
)


def asked(name: str, always: bool = False) -> str:
    """ " (asked at FILE:LINE)", the program's line, for a message that calls a tensor `name`. Empty if the name has a
    line already, unless a function is traced or `always`."""
    if not (TRACE.depth or always) and re.search(PLACED, name):
        return ""
    line = program_line()
    return "" if line is None or f"({line})" in name else f" (asked at {line})"


# --- in-place changes -------------------------------------------------------------------------------------------------


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
    name, origin = node.facts()[0], traced_from(node)
    whose = "comes from outside of the function" if origin is None else f"is {origin}, or may be a view of it"
    argument = "x" if origin is None else origin.partition(", an argument of ")[0]
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

    property_: Any = property(read, write, doc=read.__doc__)
    return property_


WRITES = {
    "shape": "x = x.reshape(shape) is a tensor of another shape", "dtype": "x = x.astype(dtype) is a tensor of another",
    "flat": "T.set_subtensor(x[:], value) is a changed copy", "real": "T.set_subtensor(x[:], value) is a changed copy",
    "strides": "a tensor has no memory", "imag": "T.set_subtensor(x[:], value) is a changed copy",
}  # fmt: skip
"""Attributes that programs assign, with what to write instead."""


def hash_of_a_number(self: Any) -> int:
    """The hash of a tensor. In a traced function, where looking it up compares values, that of a known number."""
    if TRACE.depth and asked_by_user():
        number = FUNCTIONS["asked_number"](self)
        if number is None and TRACE.values is not None and (value := TRACE.values.whole(self)) is not None:
            number = value.item()
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
    class_ = GraphTypeError if name in METHODS else GraphAttributeError
    return class_(f"{who} is symbolic and has no memory: {IN_PLACE[name]}{traced_hint(node)}{asked(who, True)}")


def of_memory(name: str, node: Symbol) -> Any:
    """An attribute that concerns memory: `tolist` of what follows from sizes at hand, and in a traced function, where
    it gives a number for each element. Any other is refused."""
    values = FUNCTIONS["asked_values"](node) if name == "tolist" else None
    if values is not None:
        return np.asarray(values).tolist
    if name == "tolist" and TRACE.at_hand is not None:
        return lambda: _numbers(node)
    raise refuse_in_place(name, node)


def _numbers(node: Any) -> Any:
    """The elements of a tensor of known sizes, as lists of numbers of Python's."""
    return [_numbers(each) for each in node] if node.ndim else node.item()


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
        """In a traced function the steps along the axes, for `as_strided`."""
        if TRACE.depth and TRACE.at_hand is not None:
            return FUNCTIONS["strides"](self)
        raise refuse_in_place("strides", self)

    def _real(self) -> Any:
        """The real part; a real tensor itself."""
        return FUNCTIONS["real"](self)

    def _imag(self) -> Any:
        """The imaginary part; of a real tensor zeros."""
        return FUNCTIONS["imag"](self)

    flat, strides = unwritten("flat", _flat), unwritten("strides", _strides)
    real, imag = unwritten("real", _real), unwritten("imag", _imag)
