"""Arrays of a traced program: handles on versions of a value, so that NumPy's programs may write to them.

    a = jnp.zeros(3)      Handle of a Storage, whose value is zeros(3)
    b = a[1:]             Handle of the same Storage, a view of a by [1:]
    b[0] = x              the value of b becomes set_subtensor(b[0], x); that is carried back to a, whose value becomes
                          set_subtensor(a[1:], ...): version 1 of the storage
    a.sum()               reads version 1

In: arrays that a traced program makes, and its writes to them. Out: handles, which the program holds in place of
nodes; nodes, where a handle goes into a graph (`Handle.node`). `boundary.py` makes handles and takes them apart. This
is functionalisation, as in PyTorch; the plan makes the writes in place again.

A value is a node, or an array of NumPy's where nothing that is traced has gone into it: `np.zeros(3)` of the program
(`creations.py`). Such an array never changes either, a write makes another one. All questions about it have an answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np

from graphc.errors import GraphcError, GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import add_call
from graphc.ir.node import (
    FUNCTIONS,
    OPS,
    Array,
    Complex,
    Guard,
    Node,
    Proxy,
    Type,
    describe,
    literal,
    make,
    pair,
    plain,
)
from graphc.ir.pairs import OF_PAIRS
from graphc.ir.source_lines import TRACE, asked_by_user, instruction, program_line
from graphc.ir.symbol import METHODS, asked, refuse_write
from graphc.ops.elementwise import as_node, broadcast_node, cast, narrowed
from graphc.ops.index import set_subtensor
from graphc.ops.questions import Number, fixed_size
from graphc.ops.shape import broadcast_to, dimshuffle, filled, guard_axis
from graphc.startup.hooks import HOOKS
from graphc.tensor.indexing import getitem, put_back, put_item
from graphc.trees import REGISTERED

Content: TypeAlias = "Node | Array"

# --- values and views -------------------------------------------------------------------------------------------------


class Storage:
    """An array of a program. content: its value before the `pending` writes to single elements, by position. elements:
    all such writes since its value was `base`; by these, reads go past the chain of writes. version: the number of
    writes so far. level: the traced function that made it. outside: the argument that it is a part of; None of an array
    of the program's. relatives: storages that may share its memory. has_views: the program has, or had, a view of it.
    stale: the write, in words, that it may or may not see."""

    __slots__ = (
        "__weakref__", "base", "content", "elements", "has_views", "level", "outside", "pending", "relatives", "stale",
        "version",
    )  # fmt: skip

    def __init__(self, content: Content) -> None:
        self.set(content)
        self.version = 0
        self.level = TRACE.levels[-1] if TRACE.levels else None
        self.outside: Node | None = None
        self.has_views = False
        self.relatives: WeakSet[Storage] | None = None
        self.stale: str | None = None

    def set(self, content: Content) -> None:
        """Take a value in place of all that was written."""
        self.base = self.content = content
        self.elements, self.pending = dict[tuple[int, ...], Any](), dict[tuple[int, ...], Any]()

    def value(self) -> Content:
        """The value now, with the pending writes: numbers in an array of NumPy's, and one node for each tensor."""
        content, pending = self.content, self.pending
        if pending and isinstance(content, np.ndarray):
            content = content.copy()
            for position, element in pending.items():
                content[position] = 0 if isinstance(element, Node) else element
            pending = {position: element for position, element in pending.items() if isinstance(element, Node)}
        for position, element in pending.items():
            one = dimshuffle(as_node(element), ["x"] * len(position))
            content = set_subtensor(node_of(content), one, position, [1] * len(position))
        self.content, self.pending = content, {}
        return content

    def check_written(self, what: str, node: Callable[[], Node]) -> None:
        """Raise GraphTypeError if the program may not write here. what: the write; node: gives the array."""
        if self.outside is not None:
            raise refuse_write(self.outside, what)
        level = TRACE.levels[-1] if TRACE.levels else None
        if self.level is not level and not (isinstance(level, Region) and level.takes(self)):
            told = describe(node())
            why = "is traced by itself" if self.level in TRACE.levels else "made it has returned"
            where = "it belongs outside of the function, loop or branch that" if TRACE.levels else "the function that"
            raise GraphTypeError(f"{told} cannot be written to by `{what}`: {where} {why}{asked(told)}")

    def was_written(self, what: str) -> None:
        """Count a write, which those that may share the memory may or may not see."""
        self.version += 1
        for other in self.relatives or ():
            if other is not self:
                other.stale = (
                    f"may be a view of an array that `{what}` ({program_line()}) has changed, which depends on the "
                    "order of elements in memory: make it a copy, by x.copy(), before the write"
                )


def relate(storages: Iterable[Storage]) -> None:
    """Let storages, and the relatives that they have, be relatives."""
    family = WeakSet[Storage]()
    for each in storages:
        family |= each.relatives or {each}
    level = TRACE.levels[-1] if TRACE.levels else None
    for each in family:
        if isinstance(level, Region):
            level.related.setdefault(each, each.relatives)
        each.relatives = family


class Region:
    """A level of a trace whose writes to arrays of the levels around it are kept, and taken back at its end: the body
    of a loop or a branch of the program that becomes a node. kept: the values of these arrays before. related: their
    relatives before. hidden: arrays that cannot be read meanwhile, with what made them stale before."""

    def __init__(self, hidden: Iterable[Storage]) -> None:
        self.kept: dict[Storage, Content] = {}
        self.related: dict[Storage, WeakSet[Storage] | None] = {}
        self.hidden = {each: each.stale for each in hidden}
        for each in self.hidden:
            each.stale = "is written to under another name in a loop that is compiled"

    @staticmethod
    def enter(hidden: Iterable[Storage] = ()) -> Region:
        """Let the level that a trace has just begun be a region."""
        TRACE.levels[-1] = region = Region(hidden)
        return region

    @staticmethod
    def is_open() -> bool:
        """True within a region."""
        return any(isinstance(level, Region) for level in TRACE.levels)

    def takes(self, storage: Storage) -> bool:
        """Keep the value of an array that is to be written to. False if a level that is no region is between."""
        for level in reversed(TRACE.levels):
            if level is storage.level:
                self.keep(storage)
                return True
            if not isinstance(level, Region):
                return False
        return False

    def keep(self, storage: Storage) -> None:
        """Keep the value of an array. Raises GraphTypeError if it may share its memory with another one."""
        if any(each is not storage for each in storage.relatives or ()):
            raise GraphTypeError("an array that is written to may share its memory with another one")
        if storage not in self.kept:
            self.kept[storage] = storage.value()

    def replace(self, storage: Storage, content: Content) -> None:
        """Let an array have another value until the end of the region."""
        self.keep(storage)
        storage.set(content)
        storage.version += 1

    def written(self) -> dict[Storage, Content]:
        """The arrays that were written to, with their values now."""
        return {storage: storage.value() for storage in self.kept}

    def take_back(self) -> None:
        """Give all arrays the values that they had before."""
        for storage, content in self.kept.items():
            storage.set(content)
            storage.version += 1
        for storage, relatives in self.related.items():
            storage.relatives = relatives
        for storage, stale in self.hidden.items():
            storage.stale = stale


UNKNOWN: Any = object()
"""The mark for a value that follows from something traced."""


def known(value: Any) -> Any:
    """A value of the program with arrays of NumPy's in place of handles, at any depth; UNKNOWN if one has none."""
    if isinstance(value, Node):
        content = value.content() if isinstance(value, Handle) else value
        return UNKNOWN if isinstance(content, Node) else content
    kind = type(value)
    if isinstance(value, (tuple, list)):
        found = []
        for each in value:
            if (one := known(each)) is UNKNOWN:
                return UNKNOWN
            found.append(one)
        return found if kind is list else tuple(found) if kind is tuple else value
    if isinstance(value, dict):
        found = [known(each) for each in value.values()]
        return UNKNOWN if any(each is UNKNOWN for each in found) else dict(zip(value, found, strict=True))
    if kind is slice and any(isinstance(each, Node) for each in (value.start, value.stop, value.step)):
        return UNKNOWN
    return value


def node_of(content: Content) -> Node:
    """The node of a value. Of an array whose elements are all equal it is one number, repeated."""
    if isinstance(content, Node):
        return content
    if content.size > 1:
        first = content.flat[0]
        if (content == first).all() and (content.dtype.kind != "f" or len({*np.signbit(content).flat}) == 1):
            return filled(literal(first), content.shape)
    return literal(content)


def frozen(array: Array) -> Array:
    """An array that nothing writes to."""
    own = array if array.flags.owndata else array.copy()
    own.flags.writeable = False
    return own


def numbers_of(key: Any) -> tuple[int, ...] | None:
    """The numbers in a key; None if there is something else in it, such as a tensor that is no known size."""
    made = list[int]()
    for each in key if type(key) is tuple else (key,):
        is_size = isinstance(each, Node) and not each.type.shape and each.type.dtype == "int64"
        number = fixed_size(each) if is_size or type(each) is int or isinstance(each, np.integer) else None
        if number is None:
            return None
        made.append(number)
    return tuple(made)


class Item:
    """The step from an array to its view `x[key]`. written: the key as the program has it. place: the numbers in it, if
    it is of nothing else."""

    __slots__ = ("is_known", "key", "place", "written")

    def __init__(self, key: Any, written: Any = None) -> None:
        self.key, self.written = key, written
        self.is_known = known(key) is not UNKNOWN
        self.place = numbers_of(key)

    def is_of(self, key: Any) -> bool:
        """True for the key as the program has it. From Python 3.12 on `x[a:b] += y` makes two slices of `a` and `b`."""
        if type(key) is slice and type(self.written) is slice:
            return all(getattr(key, each) is getattr(self.written, each) for each in ("start", "stop", "step"))
        return self.written is key

    def read(self, whole: Content) -> Content:
        """The view of a value."""
        if self.is_known and isinstance(whole, np.ndarray):
            return np.asarray(whole[self.key])
        return getitem(node_of(whole), self.key)

    def put(self, whole: Content, value: Content) -> Content | None:
        """The value after a write to the view; None where NumPy refuses it."""
        if self.is_known and isinstance(whole, np.ndarray) and isinstance(value, np.ndarray):
            changed = whole.copy()
            changed[self.key] = value
            return changed
        return put_item(node_of(whole), self.key, node_of(value))


class Applied(Item):
    """The step from an array to a view that a function makes, such as a transpose. native: that function of arrays, if
    NumPy has it."""

    __slots__ = ("apply", "is_written", "native")

    def __init__(
        self, apply: Callable[[Node], Node], native: Callable[[Array], Array] | None = None, is_written: bool = True
    ) -> None:
        super().__init__(None)
        self.apply, self.native, self.is_written = apply, native, is_written

    def read(self, whole: Content) -> Content:
        if self.native is not None and isinstance(whole, np.ndarray):
            return self.native(whole)
        return self.apply(node_of(whole))

    def put(self, whole: Content, value: Content) -> Content | None:
        if not self.is_written:
            return None
        if self.native is not None and isinstance(whole, np.ndarray) and isinstance(value, np.ndarray):
            changed = whole.copy()
            self.native(changed)[...] = value
            return changed
        marked = getitem(node_of(whole), ...)
        return put_back(marked, self.apply(marked), node_of(value))


class Half(Item):
    """The step from a complex array to its real part, or with `place` 1 its imaginary part, which are views of it."""

    __slots__ = ("half",)

    def __init__(self, half: int) -> None:
        super().__init__(None)
        self.half = half

    def read(self, whole: Content) -> Content:
        if isinstance(whole, np.ndarray):
            return whole.imag if self.half else whole.real
        return whole.args[self.half]

    def put(self, whole: Content, value: Content) -> Content:
        if isinstance(whole, np.ndarray) and isinstance(value, np.ndarray):
            changed = whole.copy()
            (changed.imag if self.half else changed.real)[...] = value
            return changed
        parts = [*node_of(whole).args]
        parts[self.half] = node_of(value)
        return pair(*parts)


NODE_SHAPE: Any = Node.shape


def _slot(name: str) -> Any:
    """An attribute of the node that a handle stands for."""
    return property(lambda self: getattr(self.node(), name), lambda self, value: setattr(self.node(), name, value))


class Handle(Proxy):
    """An array of a traced program: a storage, or a view of another handle by a step.

    of, step: that handle and step; None of an array of its own. version, current: the version read last, and its value.
    made: the node of a value that is an array. is_dense: True if its elements are known to lie in C order without gaps.
    masked: of `a[mask]`, the array, its value, the mask and what the array would be with every element changed so; None
    after any change but one by a number.
    """

    __slots__ = ("current", "is_dense", "made", "masked", "of", "step", "storage", "version")

    op, args, attrs = _slot("op"), _slot("args"), _slot("attrs")
    serial, where, _name = _slot("serial"), _slot("where"), _slot("_name")
    mentioned, verified = _slot("mentioned"), _slot("verified")

    def __new__(cls, content: Content, *rest: Any) -> Handle:
        is_complex = type(content) is Complex if isinstance(content, Node) else content.dtype.kind == "c"
        return object.__new__(ComplexHandle if is_complex else cls)

    def __init__(self, content: Content, is_dense: bool, of: Handle | None = None, step: Item | None = None) -> None:
        if of is None and not isinstance(content, Node):
            content = frozen(content)
        self.storage: Storage = Storage(content) if of is None else of.storage
        self.version = self.storage.version
        self.current, self.is_dense, self.of, self.step = content, is_dense, of, step
        self.made: tuple[Array, Node] | None = None
        self.masked: tuple[Handle, Content, Node, Node] | None = None

    def content(self) -> Content:
        """The value now. Raises GraphTypeError if that depends on how arrays lie in memory."""
        storage = self.storage
        if storage.stale is not None:
            told = describe(node_of(self.current))
            raise GraphTypeError(f"{told} {storage.stale}{asked(told)}")
        if self.version == storage.version:
            return self.current
        behind = [self]
        while (of := behind[-1].of) is not None and of.version != storage.version:
            behind.append(of)
        for each in reversed(behind):
            whole = storage.value() if each.of is None else each.of.current
            each.current = whole if each.step is None else each.step.read(whole)
            each.version = storage.version
        return self.current

    def node(self) -> Node:
        """The node of the value now."""
        content = self.content()
        if isinstance(content, Node):
            return content
        if self.made is None or self.made[0] is not content:
            self.made = content, node_of(content)
        return self.made[1]

    @property
    def type(self) -> Type:  # type: ignore[override]
        """The dtype and the sizes."""
        content = self.content()
        return content.type if isinstance(content, Node) else Type(str(content.dtype), content.shape)

    def write(self, value: Content, what: str) -> None:
        """Make `value`, which has the dtype and the shape of this array, its value, and that of what it is a view of.
        `what`: the write as a program has it, for messages."""
        storage = self.storage
        storage.check_written(what, self.node)
        self.content()
        changed, each = [(self, value)], self
        while each.of is not None and each.step is not None:
            made = each.step.put(each.of.content(), value)
            if made is None:
                told = describe(self.node())
                raise GraphTypeError(
                    f"{told} cannot be written to by `{what}`: it is a view that NumPy makes read-only; write "
                    f"x = x.copy() first{asked(told)}"
                )
            value, each = made, each.of
            changed.append((each, value))
        storage.set(value)
        storage.was_written(what)
        for each, content in changed:
            each.current, each.version, each.masked = content, storage.version, None

    # --- single elements of arrays whose sizes are known ---

    def place(self, keys: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The position in the storage of the part of this array at some numbers: one number for each of its first axes.
        None if this is another view than a row, or it is not known that there is such a part."""
        each = self
        while keys is not None and each.of is not None:
            before = None if type(each.step) is not Item else each.step.place
            keys, each = None if before is None else (*before, *keys), each.of
        base = self.storage.base
        shape = base.shape if isinstance(base, np.ndarray) else base.type.shape
        if keys is None or self.storage.stale is not None or len(keys) > len(shape):
            return None
        position = list[int]()
        for number, length in zip(keys, map(fixed_size, shape), strict=False):
            if length is None or not -length <= number < length:
                return None
            position.append(number % length)
        return tuple(position)

    def part_at(self, step: Item, is_dense: bool) -> Any:
        """The part at a known position, if there were writes to single elements: the element that was written, or a row
        that is not made yet. None of anything else."""
        elements, base = self.storage.elements, self.storage.base
        if not elements or (position := self.place(step.place)) is None:
            return None
        if len(position) < base.ndim:
            row = self.derived(base, step, is_dense)
            row.version = -1
            return row
        if position in elements:
            return elements[position]
        return base[position] if isinstance(base, np.ndarray) else base.part(position)

    def put_at(self, key: Any, value: Any) -> bool:
        """Write one element at a known position, if it or another one is a tensor. False if this is another write."""
        storage, value = self.storage, HOOKS.handles.given(value)
        if isinstance(value, (tuple, list)) or not (isinstance(value, Node) or storage.elements) or np.ndim(value):
            return False
        position = self.place(numbers_of(key))
        if position is None or len(position) < storage.base.ndim:
            return False
        storage.check_written("x[key] = value", self.node)
        element = np.zeros((), str(storage.base.dtype))
        if isinstance(value, Node):
            value = assigned(value, literal(element))
            if type(value) is Number:  # a number of NumPy's from here on
                value = make(OPS["cast"], (value,), {"dtype": value.type.dtype})
        else:
            element[()] = value
            value = element[()]
        storage.elements[position] = storage.pending[position] = value
        storage.was_written("x[key] = value")
        return True

    def derived(self, content: Content, step: Item, is_dense: bool) -> Handle:
        """A view of this array, whose value is `content` now."""
        self.storage.has_views = True
        return Handle(content, is_dense, self, step)

    def changed(self, change: Callable[..., Any], *given: Any) -> bool:
        """Apply a function that changes an array to the value, if it and the arguments are known."""
        values, content = known(given), self.content()
        if values is UNKNOWN or not isinstance(content, np.ndarray):
            return False
        copy = content.copy()
        change(copy, *values)
        self.write(copy, f"{getattr(change, '__name__', 'x[key] = value')}")
        return True

    # --- Python's protocols ---

    def __iter__(self) -> Iterator[Any]:
        if not asked_by_user():
            return iter(self.node())
        return (HOOKS.handles.item(self, position) for position in range(len(self)))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Handle) and value.of is self and value.step is not None and value.step.is_of(key):
            return  # the end of `x[key] += y`, which has changed the view
        if instruction()[0] not in SETTING:
            raise GraphTypeError(
                f"{describe(self.node())}: its elements are written by a function in C, which might take a row for a "
                f"copy; write x[key] = value{asked(describe(self.node()))}"
            )
        if self.put_at(key, value) or self.changed(operator.setitem, key, value) or self._set_masked(key, value):
            return
        key, value = HOOKS.handles.given(key), HOOKS.handles.given(value)
        try:
            self.write(put_item(self.node(), key, partial(assigned, value)), "x[key] = value")
        except GraphcError as error:
            add_call(error, "x[key] = value", (self, value))
            raise

    def _set_masked(self, key: Any, value: Any) -> bool:
        """Write `x[mask] = value` for a value that is `x[mask]` changed by numbers: nothing has to be counted."""
        if not isinstance(value, Handle) or value.masked is None:
            return False
        of, before, mask, whole = value.masked
        if of is not self or before is not self.content() or mask is not plain(key):
            return False
        wide = mask.part((..., *(None,) * (self.ndim - mask.ndim)))
        self.write(FUNCTIONS["where"](wide, whole, before), "x[mask] = value")
        return True

    def __copy__(self) -> Handle:
        return Handle(self.content(), self.is_dense)

    def __deepcopy__(self, memo: dict[int, Any]) -> Handle:
        return self.__copy__()

    def facts(self) -> tuple[str, Array | None, bool]:
        content = self.content()
        return super().facts() if isinstance(content, Node) else (describe(self.node()), content, False)

    def known(self) -> Array | None:
        content = self.content()
        return None if isinstance(content, Node) else content

    def __getattr__(self, name: str) -> Any:
        if name in Handle.__slots__:
            raise AttributeError(name)
        if self.known() is None or name not in NATIVE or not asked_by_user():
            return self.found(name)
        return HOOKS.handles.attribute(self, name)

    # --- methods and attributes of NumPy's arrays that write or are views ---

    def fill(self, value: Any) -> None:  # type: ignore[override]
        """Give every element a value."""
        self._assign(value)

    def _shape(self) -> Node:
        shape: Node = FUNCTIONS["plain_shape" if TRACE.depth and asked_by_user() else "shape"](self)
        return shape

    def _reshape(self, shape: Any) -> None:
        """Give the array another shape, if there is no view of it, which would have to change as well. NumPy's elements
        lie in order, or it raises an error."""
        storage, content = self.storage, self.content()
        is_own = storage.outside is None and storage.level is (TRACE.levels[-1] if TRACE.levels else None)
        if not (is_own and self.of is None) or storage.has_views or storage.relatives:
            NODE_SHAPE.__set__(self, shape)  # the error
        new = content.reshape(shape) if isinstance(content, np.ndarray) else FUNCTIONS["reshape"](content, shape)
        self.current = new
        storage.set(new)
        storage.version += 1
        self.version, self.masked = storage.version, None

    def _assign(self, value: Any) -> None:
        if not self.changed(operator.setitem, ..., value):
            node = self.node()
            self.write(put_item(node, ..., partial(assigned, HOOKS.handles.given(value))), "x[...] = value")

    def sort(self, axis: Any = -1, kind: Any = None, order: None = None) -> None:  # type: ignore[override]
        """Sort along an axis."""
        if not self.changed(np.ndarray.sort, axis):
            self.write(FUNCTIONS["later"]("sort")(self.node(), axis), "x.sort()")

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Put element `kth` along an axis where sorting would; all of the axis is sorted."""
        if not self.changed(np.ndarray.partition, kth, axis):
            self.write(FUNCTIONS["later"]("partition")(self.node(), kth, axis), "x.partition(k)")

    def view(self, dtype: Any = None) -> Handle:
        """A view of all of the array."""
        super().view(dtype)  # refuses another dtype
        made: Handle = HOOKS.handles.item(self, ...)
        return made

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write to elements by their places in C order."""
        HOOKS.handles.apply_function(np.put, (self, indices, values), {"mode": mode})

    def _flat(self) -> Flat:
        """All elements in C order."""
        step = Applied(FUNCTIONS["flatten"], lambda array: array.reshape(-1))
        return Flat(step.read(self.content()), True, self, step)

    def _set_flat(self, value: Any) -> None:
        self._flat()._assign(value)

    def _real(self) -> Handle:
        """The array itself, if it is real."""
        return self

    def _turned(self, name: str) -> Handle:
        step = Applied(FUNCTIONS.get(name) or FUNCTIONS["later"](name), getattr(np, name))
        return self.derived(step.read(self.content()), step, self.is_dense and self.ndim < 2)

    shape: Any = property(_shape, _reshape)
    flat: Any = property(_flat, _set_flat)
    real: Any = property(_real, _assign)
    T: Any = property(lambda self: self._turned("transpose"))
    mT: Any = property(lambda self: self._turned("matrix_transpose"))  # noqa: N815 - NumPy's name


class ComplexHandle(Handle):
    """A handle whose value is complex. In trees it is taken apart as that value is (ops/pairs.py)."""

    __slots__ = ()

    def _half(self, place: int) -> Handle:
        step = Half(place)
        return self.derived(step.read(self.content()), step, False)

    real: Any = property(lambda self: self._half(0), lambda self, value: self._half(0)._assign(value))
    imag: Any = property(lambda self: self._half(1), lambda self, value: self._half(1)._assign(value))


REGISTERED[ComplexHandle] = OF_PAIRS


NATIVE = {*METHODS, "tolist", "item", "tobytes", "nbytes", "itemsize", "conjugate"}
"""Methods and attributes of NumPy's arrays that a handle whose value is known has from them."""

SETTING = {"STORE_SUBSCR", "STORE_SLICE"}
"""The instructions by which a program writes to elements."""


class Flat(Handle):
    """`x.flat`: writes go to the array, what is read is a copy."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        made = HOOKS.handles.item(self, key)
        return made.__copy__() if isinstance(made, Handle) else made


def changing(symbol: str, function: str, native: Callable[[Any, Any], Any]) -> Callable[[Handle, Any], Any]:
    """The operator `x {symbol}= y` of a handle."""
    what = f"x {symbol}= y"

    def change(self: Handle, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", self) is None:
            return NotImplemented
        if self.changed(native, other):
            return self
        try:
            if type(self) is Flat:
                raise GraphTypeError(f"`{what}` of x.flat is no operation of NumPy's; write x.flat[...] {symbol}= y")
            node, by = self.node(), as_node(other)
            masked = self.masked if not by.type.shape else None
            if symbol == "@" and by.ndim < 2:
                raise RankError(f"{describe(self)}: `{what}` cannot take a y of {by.ndim} axes")
            self.write(fitted(FUNCTIONS[function](node, plain(other)), node, what, symbol == "@"), what)
            if masked is not None:
                self.masked = (*masked[:3], cast(FUNCTIONS[function](masked[3], plain(other)), node.type.dtype))
        except GraphcError as error:
            add_call(error, f"{function} in place", (self, other))
            raise
        return self

    return change


for _name, _symbol, _function in (
    ("add", "+", "add"), ("sub", "-", "sub"), ("mul", "*", "mul"), ("truediv", "/", "true_div"), ("mod", "%", "mod"),
    ("floordiv", "//", "floor_div"), ("pow", "**", "pow"), ("matmul", "@", "matmul"), ("and", "&", "bitwise_and"),
    ("or", "|", "bitwise_or"), ("xor", "^", "bitwise_xor"), ("lshift", "<<", "left_shift"),
    ("rshift", ">>", "right_shift"),
):  # fmt: skip
    setattr(Handle, f"__i{_name}__", changing(_symbol, _function, getattr(operator, f"__i{_name}__")))


# --- what is written --------------------------------------------------------------------------------------------------


def assigned(value: Any, part: Node) -> Node:
    """A value in the dtype of the part of an array that it goes to, with no more axes: as NumPy assigns, any dtype is
    cast, and first axes of size 1 are dropped."""
    dtype = part.type.dtype
    if isinstance(value, float) and dtype[0] not in "fb" and not np.isfinite(value):
        raise GraphTypeError(f"{describe(part)}: {value} is no integer that an element of {dtype} could be")
    node = as_node(value, dtype)
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
    if not is_product:
        (made,) = narrowed([made], x.type.shape)
    made = broadcast_node(made, (*x.type.shape[: x.ndim - made.ndim], *made.type.shape))
    for axis, own in enumerate(x.type.shape):
        size = made.type.shape[axis]
        if sizes.equal(size, own) or (sizes.equal(size, 1) and not is_product):
            continue
        if isinstance(size, int) and isinstance(own, int):
            raise ShapeError(f"{told} gives {size} elements along axis {axis}, where x keeps its {own}{line}")
        message = f"`{what}` gives {{left}} elements along axis {axis}, where x keeps its {{right}}{line}"
        made = guard_axis(made, axis, Guard(size, "==", own, message))
    return cast(broadcast_to(made, x.type.shape), x.type.dtype)
