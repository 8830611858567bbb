"""Arrays of a traced program: handles on versions of a value, so that NumPy's programs may write to them.

    a = jnp.zeros(3)      Handle of a Storage, whose node is zeros(3)
    b = a[1:]             Handle of the same Storage, a view of a by [1:]
    b[0] = x              the node of b becomes set_subtensor(b[0], x); that is carried back to a, whose node becomes
                          set_subtensor(a[1:], ...): version 1 of the storage
    a.sum()               reads version 1

In: what graphc gives a traced program (results of operators and functions), and the program's writes. Out: handles,
which the program holds in place of nodes; nodes, where a handle goes into a graph. The program's boundary is where
graphc asks `by_program()`: arguments are unwrapped there (`given`), results are wrapped (`owned`, `Call.finished`).
This is functionalisation, as PyTorch has it; the plan makes the writes in place again.

Arguments of the program and constants from outside are plain nodes, and so are views of them: they refuse writes
(`ir/writes.py`). Numbers are never handles. NumPy says what is a view (`VIEWS`). Where that depends on the order of
elements in memory, which is not always known here, the arrays are relatives: once one of them is written to, the others
can no longer be read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from graphc.arrays.trees import leaves, like
from graphc.errors import GraphcError, GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import place
from graphc.ir.node import FUNCTIONS, Comparison, Constant, Guard, Node, Proxy, describe, plain
from graphc.ir.source_lines import program_line
from graphc.ir.symbol import asked
from graphc.ir.traced import TRACE, asked_by_user
from graphc.ir.writes import refuse_write
from graphc.ops.elementwise import Number, as_node, broadcast_node, cast
from graphc.ops.questions import is_outside
from graphc.ops.shape import broadcast_to, held_to, iota, reshape
from graphc.startup.hooks import HOOKS
from graphc.tensor.indexing import getitem, put_back, put_item

# --- values and views -------------------------------------------------------------------------------------------------


class Storage:
    """An array of a program. node: its value now. version: the number of writes so far. level: the traced function that
    made it. relatives: storages that may share its memory. stale: the write, in words, that it may or may not see."""

    __slots__ = ("__weakref__", "level", "node", "relatives", "stale", "version")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.version = 0
        self.level = TRACE.levels[-1] if TRACE.levels else None
        self.relatives: WeakSet[Storage] | None = None
        self.stale: str | None = None


class Item:
    """The step from an array to its view `x[key]`."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def read(self, whole: Node) -> Node:
        """The view of a value."""
        return getitem(whole, self.key)

    def put(self, whole: Node, value: Node) -> Node | None:
        """The value after a write to the view; None where NumPy refuses it."""
        return put_item(whole, self.key, value)


class Applied(Item):
    """The step from an array to a view that a function makes, such as a transpose."""

    __slots__ = ("apply", "is_written")

    def __init__(self, apply: Callable[[Node], Node], is_written: bool = True) -> None:
        super().__init__(None)
        self.apply = apply
        self.is_written = is_written

    def read(self, whole: Node) -> Node:
        return self.apply(whole)

    def put(self, whole: Node, value: Node) -> Node | None:
        marked = getitem(whole, ...)
        return put_back(marked, self.apply(marked), value) if self.is_written else None


def _slot(name: str) -> Any:
    """An attribute of the node that a handle stands for."""
    return property(lambda self: getattr(self.node(), name), lambda self, value: setattr(self.node(), name, value))


class Handle(Proxy):
    """An array of a traced program: a storage, or a view of another handle by a step.

    of, step: that handle and step; None of an array of its own. version, current: the version read last, and its node.
    is_dense: True if its elements are known to lie in C order without gaps. masked: of `a[mask]`, the array, its node,
    the mask and what the array would be with every element changed so; None after any change but one by a number.
    """

    __slots__ = ("current", "is_dense", "masked", "of", "step", "storage", "version")

    op, args, attrs, type = _slot("op"), _slot("args"), _slot("attrs"), _slot("type")
    serial, where, _name = _slot("serial"), _slot("where"), _slot("_name")
    mentioned, verified = _slot("mentioned"), _slot("verified")

    def __init__(self, node: Node, is_dense: bool, of: Handle | None = None, step: Item | None = None) -> None:
        self.storage: Storage = Storage(node) if of is None else of.storage
        self.version = self.storage.version
        self.current, self.is_dense, self.of, self.step = node, is_dense, of, step
        self.masked: tuple[Handle, Node, Node, Node] | None = None

    def node(self) -> Node:
        """The value now. Raises GraphTypeError if that depends on how arrays lie in memory."""
        storage = self.storage
        if storage.stale is not None:
            raise GraphTypeError(f"{describe(self.current)} {storage.stale}{asked(describe(self.current))}")
        if self.version == storage.version:
            return self.current
        behind = [self]
        while (of := behind[-1].of) is not None and of.version != storage.version:
            behind.append(of)
        for each in reversed(behind):
            each.current = storage.node if each.step is None else each.step.read(each.of.current)  # type: ignore[union-attr]
            each.version = storage.version
        return self.current

    def write(self, value: Node, what: str) -> None:
        """Make `value`, which has the dtype and the shape of this array, its value, and that of what it is a view of.
        `what`: the write as a program has it, for messages."""
        storage = self.storage
        told = describe(self.current)
        if storage.level is not (TRACE.levels[-1] if TRACE.levels else None):
            why = "is traced by itself" if storage.level in TRACE.levels else "made it has returned"
            where = "it belongs outside of the function, loop or branch that" if TRACE.levels else "the function that"
            raise GraphTypeError(f"{told} cannot be written to by `{what}`: {where} {why}{asked(told)}")
        self.node()
        changed, each = [(self, value)], self
        while each.of is not None and each.step is not None:
            made = each.step.put(each.of.node(), value)
            if made is None:
                raise GraphTypeError(
                    f"{told} cannot be written to by `{what}`: it is a view that NumPy makes read-only; write "
                    f"x = x.copy() first{asked(told)}"
                )
            value, each = made, each.of
            changed.append((each, value))
        storage.node, self.masked = value, None
        storage.version += 1
        for each, node in changed:
            each.current, each.version = node, storage.version
        for other in storage.relatives or ():
            if other is not storage:
                other.stale = (
                    f"may be a view of an array that `{what}` ({program_line()}) has changed, which depends on the "
                    "order of elements in memory: make it a copy, by x.copy(), before the write"
                )

    def view(self, node: Node, step: Item, is_dense: bool) -> Handle:
        """A view of this array, whose value is `node` now."""
        return Handle(node, is_dense, self, step)

    def __iter__(self) -> Iterator[Any]:
        if not asked_by_user():
            return iter(self.node())
        count = len(self)
        return (item(self, position) for position in range(count))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Handle) and value.of is self and value.step is not None and value.step.key is key:
            return None  # the end of `x[key] += y`, which has changed the view
        if isinstance(value, Handle) and value.masked is not None:
            of, before, mask, whole = value.masked
            if of is self and before is self.node() and mask is plain(key):  # the same with a mask: nothing is counted
                wide = mask.part((..., *(None,) * (self.ndim - mask.ndim)))
                return self.write(FUNCTIONS["where"](wide, whole, before), "x[mask] = value")
        key, value = given(key), given(value)
        try:
            part = self.node().part(key)
            self.write(put_item(self.node(), key, assigned(value, part)), "x[key] = value")
        except GraphcError as error:
            place(error, "x[key] = value", (self, value))
            raise

    def __copy__(self) -> Handle:
        return Handle(self.node(), self.is_dense)

    def __deepcopy__(self, memo: dict[int, Any]) -> Handle:
        return self.__copy__()

    def fill(self, value: Any) -> None:  # type: ignore[override]
        """Give every element a value."""
        self[...] = value

    def sort(self, axis: Any = -1, kind: Any = None, order: None = None) -> None:  # type: ignore[override]
        """Sort along an axis."""
        self.write(FUNCTIONS["later"]("sort")(self.node(), axis), "x.sort()")

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Put element `kth` along an axis where sorting would; all of the axis is sorted."""
        self.write(FUNCTIONS["later"]("partition")(self.node(), kth, axis), "x.partition(k)")

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write to elements by their places in C order."""
        apply_function(np.put, (self, indices, values), {"mode": mode})

    def _flat(self) -> Flat:
        """All elements in C order."""
        flatten = FUNCTIONS["flatten"]
        return Flat(flatten(self.node()), True, self, Applied(flatten))

    def _set_flat(self, value: Any) -> None:
        self._flat()[...] = value

    def _real(self) -> Handle:
        """The array itself: there are no complex dtypes."""
        return self

    def _set_real(self, value: Any) -> None:
        self[...] = value

    def _turned(self, name: str) -> Handle:
        turn = FUNCTIONS.get(name) or FUNCTIONS["later"](name)
        return self.view(turn(self.node()), Applied(turn), self.is_dense and self.ndim < 2)

    flat: Any = property(_flat, _set_flat)
    real: Any = property(_real, _set_real)
    T: Any = property(lambda self: self._turned("transpose"))
    mT: Any = property(lambda self: self._turned("matrix_transpose"))  # noqa: N815 - NumPy's name


class Flat(Handle):
    """`x.flat`: writes go to the array, what is read is a copy."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return owned(self.node().part(given(key)))


def changing(symbol: str, function: str) -> Callable[[Handle, Any], Any]:
    """The operator `x {symbol}= y` of a handle."""

    def operator(self: Handle, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", self) is None:
            return NotImplemented
        what = f"x {symbol}= y"
        try:
            if type(self) is Flat:
                raise GraphTypeError(f"`{what}` of x.flat is no operation of NumPy's; write x.flat[...] {symbol}= y")
            made: Node = FUNCTIONS[function](self.node(), plain(other))
            masked = self.masked if not as_node(other).type.shape else None
            if symbol == "@" and as_node(other).ndim < 2:
                raise RankError(f"{describe(self)}: `{what}` cannot take a y of {as_node(other).ndim} axes")
            self.write(fitted(made, self.node(), what, symbol == "@"), what)
            if masked is not None:
                whole = FUNCTIONS[function](masked[3], plain(other))
                self.masked = (*masked[:3], cast(whole, self.type.dtype))
        except GraphcError as error:
            place(error, f"{function} in place", (self, other))
            raise
        return self

    return operator


for _name, _symbol, _function in (
    ("add", "+", "add"), ("sub", "-", "sub"), ("mul", "*", "mul"), ("truediv", "/", "true_div"), ("mod", "%", "mod"),
    ("floordiv", "//", "floor_div"), ("pow", "**", "pow"), ("matmul", "@", "matmul"), ("and", "&", "bitwise_and"),
    ("or", "|", "bitwise_or"), ("xor", "^", "bitwise_xor"), ("lshift", "<<", "left_shift"),
    ("rshift", ">>", "right_shift"),
):  # fmt: skip
    setattr(Handle, f"__i{_name}__", changing(_symbol, _function))


# --- what is written --------------------------------------------------------------------------------------------------


def assigned(value: Any, part: Node) -> Node:
    """A value in the dtype of the part of an array that it goes to, with no more axes: as NumPy assigns, any dtype is
    cast, and first axes of size 1 are dropped."""
    dtype = part.type.dtype
    is_number = isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)
    if isinstance(value, float) and dtype[0] not in "fb" and not np.isfinite(value):
        raise GraphTypeError(f"{describe(part)}: {value} is no integer that an element of {dtype} could be")
    node = as_node(value, dtype) if is_number else cast(as_node(value), dtype)
    while node.ndim > part.ndim and sizes.equal(node.type.shape[0], 1):
        node = node.part(0)
    return node


def fitted(made: Node, x: Node, what: str, is_product: bool = False, casting: str = "same_kind") -> Node:
    """A result in the dtype and shape of `x`, to which it is written by `what`. Raises RankError or ShapeError where it
    has more axes or elements, GraphTypeError where NumPy does not cast it so."""
    told, line = f"{describe(x)} of type {x.type}: `{what}`", asked(describe(x))
    if made.ndim > x.ndim:
        raise RankError(f"{told} cannot take {made.ndim} axes, since x keeps its shape{line}")
    if not np.can_cast(made.type.dtype, x.type.dtype, casting):  # type: ignore[arg-type]
        raise GraphTypeError(
            f"{told} would give {made.type.dtype}, which {x.type.dtype} does not take; write x = x.astype(dtype) first"
            f"{line}"
        )
    made = broadcast_node(made, (*x.type.shape[: x.ndim - made.ndim], *made.type.shape))
    for axis, own in enumerate(x.type.shape):
        size = made.type.shape[axis]
        if sizes.equal(size, own) or (sizes.equal(size, 1) and not is_product):
            continue
        if isinstance(size, int) and isinstance(own, int):
            raise ShapeError(f"{told} gives {size} elements along axis {axis}, where x keeps its {own}{line}")
        message = f"`{what}` gives {{left}} elements along axis {axis}, where x keeps its {{right}}{line}"
        made = held_to(made, axis, Guard(size, "==", own, message))
    return cast(broadcast_to(made, x.type.shape), x.type.dtype)


# --- the boundary -----------------------------------------------------------------------------------------------------


def given(value: Any) -> Any:
    """A value of the program with nodes in place of handles, at any depth of lists, tuples, dicts and dataclasses."""
    if isinstance(value, Proxy):
        return value.node()
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([given(each) for each in value])
    if isinstance(value, (Node, np.ndarray, np.generic, int, float, str, slice)) or value is None or callable(value):
        return value
    found = leaves(value)
    return like(value, list(map(plain, found))) if any(isinstance(each, Handle) for each in found) else value


_ARRAYS = (Node, Constant)


def owned(result: Any, operands: Sequence[Any] = (), is_dense: bool = False) -> Any:
    """A result as the program has it, with a handle for each array in it. It is dense if its `operands` are."""
    if isinstance(result, Node):
        if type(result) is Comparison and result.operands[0].type.shape:
            result = result.node()
        if type(result) not in _ARRAYS or not result.type.shape:
            return result
        return Handle(result, is_dense or result.ndim == 1 or (bool(operands) and all(map(_is_dense, operands))))
    if result is None or isinstance(result, (str, int, float, np.ndarray, np.generic)):
        return result
    found = leaves(result)
    if not any(type(each) in _ARRAYS and each.type.shape for each in found):
        return result
    return like(result, [owned(each) for each in found])


def _is_dense(operand: Any) -> bool:
    """True if an operand leaves the elements of a result in C order: NumPy's operators keep the order of operands."""
    if isinstance(operand, Handle):
        return operand.is_dense
    if isinstance(operand, np.ndarray):
        return bool(operand.flags.c_contiguous)
    return getattr(operand, "ndim", 0) < 2 and not isinstance(operand, (list, tuple))


def is_array(left: Any, right: Any) -> bool:
    """True if a traced program compares arrays of its own, not variables that it looks up."""
    if isinstance(left, Handle) or isinstance(right, Handle):
        return True
    return not is_outside(left) and not (isinstance(right, Node) and is_outside(right))


def item(x: Node, key: Any) -> Any:
    """`x[key]` of a program: a number, a view, or a copy of what integer arrays and masks select."""
    key = given(key)
    made = plain(x).part(key)
    keys = key if type(key) is tuple else (key,)
    if not all(map(_is_basic, keys)):
        copied = owned(made)
        if isinstance(x, Handle) and isinstance(key, Node) and key.type.dtype == "bool" and key.type.shape:
            copied.masked = (x, x.node(), key, x.node())
        return copied
    if not isinstance(x, Handle) or not (made.type.shape or any(each is Ellipsis for each in keys)):
        return made
    return x.view(made, Item(key), x.is_dense and _keeps_order(keys))


def _is_basic(each: Any) -> bool:
    """True for a part of a key that selects without a copy."""
    if isinstance(each, Node):
        return not each.type.shape and each.type.dtype != "bool"
    whole = isinstance(each, (int, np.integer, slice)) and not isinstance(each, bool)
    return whole or each is None or each is Ellipsis


def _keeps_order(keys: Sequence[Any]) -> bool:
    """True if a key takes elements that follow one another: integers, then at most one slice without a step."""
    found = [each for each in keys if each is not None and each is not Ellipsis]
    cut = [isinstance(each, slice) for each in found]
    steps = all(each.step in (None, 1) for each in found if isinstance(each, slice))
    whole = all(each == slice(None) for each in found[cut.index(True) + 1 :]) if True in cut else True
    return steps and whole and (Ellipsis not in keys[:-1])


CREATIONS = {
    "arange",
    "array",
    "copy",
    "empty",
    "eye",
    "flatten",
    "full",
    "identity",
    "linspace",
    "ones",
    "tri",
    "zeros",
}
"""Functions whose results lie in C order."""

ARRAYS_OF_ONE = CREATIONS | {"empty_like", "full_like", "ones_like", "where", "zeros_like"}
"""Functions that give an array, which can be written to, where it has no axes, too."""

VIEWS = dict.fromkeys(
    "transpose swapaxes moveaxis rollaxis matrix_transpose permute_dims dimshuffle squeeze expand_dims atleast_1d "
    "atleast_2d atleast_3d flip fliplr flipud rot90 split array_split hsplit vsplit dsplit unstack".split(),
    "view",
)
VIEWS |= dict.fromkeys("reshape ravel ascontiguousarray asfortranarray require".split(), "by order")
VIEWS |= dict.fromkeys(
    "asarray asanyarray as_tensor as_tensor_variable conj conjugate real real_if_close".split(), "itself"
)
VIEWS |= dict.fromkeys("broadcast_to diagonal diag".split(), "read only")
VIEWS |= dict.fromkeys("einsum trim_zeros ix_ diff broadcast_arrays meshgrid sliding_window_view".split(), "perhaps")
"""NumPy's functions that may return a view: `view` always, `by order` depending on the order of elements, `itself` the
argument where its dtype is wanted, `perhaps` in cases that are not told apart. All others return new arrays."""

DENSE = {"squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d"}
"""Views of arrays in C order that are in C order."""


class Call:
    """A call of a graphc function by a traced program. args, kwargs: without handles, for the function."""

    __slots__ = ("args", "function", "given", "kwargs", "name", "out", "where")

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.function, self.name, self.given = function, function.__name__, (*args, *kwargs.values())
        self.out: Any = None
        named = dict(kwargs)
        if kwargs.get("out") is not None:
            self.out = named.pop("out")
        if self.name == "cast":  # the method astype
            self.name = "astype" if named.pop("copy", True) else "asarray"
        self.args, self.kwargs = [given(each) for each in args], {name: given(each) for name, each in named.items()}

    def finished(self, result: Any) -> Any:
        """The result as the program has it: handles on new arrays, views, or the array that was asked for by `out`."""
        if self.out is not None:
            return store(self.out, result, self.name, self.kwargs)
        kind, subject = VIEWS.get(self.name), self.given[0] if self.given else None
        if self.name in ("astype", "array", "asarray", "nan_to_num") and self.kwargs.get("copy", True) is not True:
            kind = "itself"
        if isinstance(subject, Handle) and self.name == "nan_to_num" and kind == "itself":
            subject.write(as_node(result), "nan_to_num(x, copy=False)")
            return subject
        if kind is None or self.copies():
            return self.new(result)
        if not any(isinstance(each, Handle) for each in leaves(self.given)):  # of an argument, perhaps a view of it
            is_cast = kind == "itself" and result.type.dtype != getattr(subject, "dtype", result.type.dtype)
            return result if isinstance(subject, (Node, np.ndarray)) and not is_cast else self.new(result)
        return self.viewed(kind, subject, result)

    def copies(self) -> bool:
        """True if this call of a function that may return a view gives a new array."""
        count = sum(isinstance(each, (Node, np.ndarray)) and each.ndim > 0 for each in self.given)
        if self.name == "diag":
            return bool(self.given[0].ndim == 1)
        if self.name == "einsum":
            return count > 1
        if self.name == "diff":
            return bool(self.kwargs.get("n", [*self.args, 1, 1][1]) != 0)
        return self.kwargs.get("copy", self.name == "meshgrid") is True

    def new(self, result: Any) -> Any:
        """A result that shares no memory with an argument."""
        is_array = self.name in ARRAYS_OF_ONE and (self.name != "copy" or isinstance(self.given[0], Handle))
        if is_array and isinstance(result, Node) and not result.type.shape and type(result) is not Number:
            return Handle(as_node(result), True)
        return owned(result, (), self.name in CREATIONS)

    def viewed(self, kind: str, subject: Any, result: Any) -> Any:
        """A result that is a view of the first argument, or may be one of any."""
        if kind == "itself" and isinstance(subject, Handle):
            return subject if result.type.dtype == subject.type.dtype else self.new(result)
        is_dense = isinstance(subject, Handle) and subject.is_dense
        in_order = is_dense and self.kwargs.get("order", "C") == "C" and self.name != "asfortranarray"
        exact = kind in ("view", "read only") or (kind == "by order" and in_order)
        several = self.name[:7] == "atleast" and len(self.args) > 1
        if not exact or several or not isinstance(subject, Handle):
            return related([each for each in leaves(self.given) if isinstance(each, Handle)], owned(result))
        is_dense = is_dense and (self.name in DENSE or kind == "by order" or subject.ndim < 2)
        args, kwargs = (self.args[1:], self.kwargs) if self.args else ([], dict([*self.kwargs.items()][1:]))
        known = [*self.kwargs][:1] if not self.args else []

        def part(position: int) -> Callable[[Node], Node]:
            def apply(whole: Node) -> Node:
                made = self.function(*(() if known else (whole,)), *args, **dict.fromkeys(known, whole), **kwargs)
                node: Node = as_node(leaves(made)[position])
                return node

            return apply

        made = [
            subject.view(as_node(node), Applied(part(position), kind != "read only"), is_dense)
            for position, node in enumerate(leaves(result))
        ]
        return like(result, made)


def related(handles: Sequence[Handle], result: Any) -> Any:
    """A result that may share memory with handles: none of them is read after another one was written to."""
    made = [each for each in leaves(result) if isinstance(each, Handle)]
    family = WeakSet[Storage]()
    for each in (*handles, *made):
        family |= each.storage.relatives or {each.storage}
    for storage in family:
        storage.relatives = family
    for each in made:
        each.is_dense = False
    return result


def store(out: Any, result: Any, name: str, kwargs: Mapping[str, Any], where: Any = True) -> Any:
    """The array that was asked for by `out`, after the result was written to it."""
    outs, results = (out, result) if isinstance(out, tuple) and len(out) > 1 else ((out,), (result,))
    outs = tuple(each[0] if isinstance(each, tuple) else each for each in outs)
    for each, made in zip(outs, results, strict=True):
        target = own(each, f"{name}(out=x)")
        node = fitted(as_node(made), target.node(), f"{name}(out=x)", casting=kwargs.get("casting") or "same_kind")
        if where is not True:
            node = FUNCTIONS["where"](where, node, target.node())
        target.write(node, f"{name}(out=x)")
    return outs[0] if len(outs) == 1 else outs


def own(target: Any, what: str) -> Handle:
    """The array that is to be written to. Raises GraphTypeError if it is none of the program's own."""
    if isinstance(target, Handle):
        return target
    if isinstance(target, Node):
        raise refuse_write(target, what)
    raise GraphTypeError(
        f"`{what}`: an array of NumPy's, of type {type(target).__name__}, cannot take a value that is not computed "
        f"yet; jnp.zeros(shape) makes one that can (called at {program_line()})"
    )


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One of NumPy's functions of elements, or a method of it, called by a traced program."""
    named, out = {name: given(value) for name, value in kwargs.items() if name != "out"}, kwargs.get("out")
    if method == "at":
        return add_at(ufunc, *inputs)
    outs = [each for each in (out if isinstance(out, tuple) else (out,)) if each is not None]
    if not outs:
        return owned(HOOKS.ufunc(ufunc, method, [given(each) for each in inputs], named), inputs)
    where = named.pop("where", True) if method == "__call__" else True
    casting = named.pop("casting", None)
    for each in outs:
        own(each, f"np.{ufunc.__name__}(out=x)")
    made = HOOKS.ufunc(ufunc, method, [given(each) for each in inputs], named)
    return store(tuple(outs), made, f"np.{ufunc.__name__}", {"casting": casting}, where)


def add_at(ufunc: Any, x: Any, indices: Any, values: Any = None) -> None:
    """`np.add.at(x, indices, values)`, of `np.subtract` too: where an index repeats, all values are added."""
    what = f"np.{ufunc.__name__}.at(x, indices, values)"
    target = own(x, what)
    if ufunc not in (np.add, np.subtract):
        raise GraphTypeError(
            f"{describe(target)}: `{what}` is not supported, only those of np.add and np.subtract"
            f"{asked(describe(target))}"
        )
    part = target.node().part(given(indices))
    value = as_node(given(values))
    if not np.can_cast(np.result_type(value.type.dtype, part.type.dtype), part.type.dtype, "same_kind"):
        raise GraphTypeError(f"{describe(target)}: `{what}` would give {value.type.dtype}{asked(describe(target))}")
    value = cast(value, part.type.dtype)
    target.write(FUNCTIONS["inc_subtensor"](part, value if ufunc is np.add else FUNCTIONS["neg"](value)), what)


def apply_function(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One of NumPy's functions, called by a traced program."""
    if function in WRITERS:
        names, write = WRITERS[function]
        bound = dict(zip(names.split(), args, strict=False)) | dict(kwargs)
        target, what = (
            own(bound.pop(names.split()[0]), f"np.{function.__name__}(x, …)"),
            f"np.{function.__name__}(x, …)",
        )
        made = write(target.node(), **{name: given(value) for name, value in bound.items()})
        target.write(fitted(made, target.node(), what, casting="unsafe"), what)
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        return HOOKS.array_function(function, args, kwargs)

    call.__name__ = function.__name__
    done = Call(call, args, kwargs)
    return done.finished(call(*done.args, **done.kwargs))


# --- NumPy's functions that write -------------------------------------------------------------------------------------


def _copyto(dst: Node, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    value = as_node(src) if not isinstance(src, (bool, int, float)) else assigned(src, dst)
    new = fitted(value, dst, "np.copyto(x, y)", casting=casting)
    return new if where is True else as_node(FUNCTIONS["where"](where, new, dst))


def _put(a: Node, ind: Any, v: Any, mode: str = "raise") -> Node:
    flat, value = FUNCTIONS["flatten"](a), FUNCTIONS["flatten"](assigned(v, a) if np.isscalar(v) else as_node(v))
    places = FUNCTIONS["flatten"](as_node(ind))
    if mode != "raise":
        size = FUNCTIONS["size"](a)
        places = places % size if mode == "wrap" else FUNCTIONS["clip"](places, 0, size - 1)
    value = cast(_cycled(value, places.type.shape[0]), a.type.dtype)
    return reshape(put_item(flat, places, value), a.type.shape)


def _cycled(values: Node, count: Any) -> Node:
    """The first `count` elements of a vector that begins again where it ends."""
    if sizes.equal(values.type.shape[0], count) or sizes.equal(values.type.shape[0], 1):
        return values
    return values.part(iota(count) % values.type.shape[0])


def _place(arr: Node, mask: Any, vals: Any) -> Node:
    values, chosen = FUNCTIONS["flatten"](as_node(vals)), cast(as_node(mask), "bool")
    flat = FUNCTIONS["flatten"](chosen)
    number = FUNCTIONS["cumsum"](flat) - 1
    return _where(chosen, values.part(FUNCTIONS["maximum"](number, 0) % values.type.shape[0]), arr)


def _putmask(a: Node, mask: Any, values: Any) -> Node:
    given = FUNCTIONS["flatten"](as_node(values))
    return _where(cast(as_node(mask), "bool"), _cycled(given, sizes.product(a.type.shape)), a)


def _where(mask: Node, flat: Node, a: Node) -> Node:
    """`a` with the elements of a vector, in C order, where the mask is true."""
    wide = reshape(flat, a.type.shape) if not sizes.equal(flat.type.shape[0], 1) else flat.part(0)
    made: Node = FUNCTIONS["where"](mask, cast(wide, a.type.dtype), a)
    return made


def _put_along_axis(arr: Node, indices: Any, values: Any, axis: Any = -1) -> Node:
    if axis is None:
        return reshape(put_item(FUNCTIONS["flatten"](arr), indices, as_node(values)), arr.type.shape)
    places, axis = as_node(indices), range(arr.ndim)[axis]
    key: list[Any] = []
    for each in range(arr.ndim):
        line = iota(places.type.shape[each])
        key.append(
            places if each == axis else line.part((None,) * each + (slice(None),) + (None,) * (arr.ndim - 1 - each))
        )
    part = arr.part(tuple(key))
    return put_item(arr, tuple(key), assigned(values, part))


def _fill_diagonal(a: Node, val: Any, wrap: bool = False) -> Node:
    if wrap:
        raise GraphTypeError("np.fill_diagonal: wrap=True is not supported")
    part = FUNCTIONS["diagonal"](a) if a.ndim == 2 else a
    filled: Node = FUNCTIONS["later"]("fill_diagonal")(a, assigned(val, part))
    return filled


WRITERS: dict[Any, tuple[str, Callable[..., Node]]] = {
    np.copyto: ("dst src casting where", _copyto), np.put: ("a ind v mode", _put), np.place: ("arr mask vals", _place),
    np.putmask: ("a mask values", _putmask), np.fill_diagonal: ("a val wrap", _fill_diagonal),
    np.put_along_axis: ("arr indices values axis", _put_along_axis),
}  # fmt: skip
"""NumPy's functions that write to their first argument: their parameters, and the function that gives its new value."""

HOOKS.handles = sys.modules[__name__]
