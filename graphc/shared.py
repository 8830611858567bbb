"""Shared variables: leaves of a graph that keep a value between calls.

In: a number, a list or an array. Out: a `SharedVariable`, whose value functions read and update.

    w = graphc.shared(np.zeros(3), "w")
    step = graphc.function([], [], updates=[(w, w + 1)])
    step(), w.get_value()      [], array([1., 1., 1.])

The current value is the one item of `cell`, a list that compiled code reads at each call: an array of exactly the
variable's dtype and rank, C-contiguous, aligned, writeable, in native byte order. Calls in several threads take the
variable's `lock` (codegen/call/locks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any
from weakref import ref

import numpy as np

from graphc.arrays.dtypes import COMPLEX, NUMPY_DTYPES, Array, as_array, natural_dtype
from graphc.codegen.call.locks import ACTIVITY, Lock, run
from graphc.codegen.pipeline.kernel import shared_of
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir.call_errors import explained
from graphc.ir.node import FUNCTIONS, SHARED, Leaves, Node, Type, Where, describe, leaf_type, own_sizes
from graphc.ir.walk import substitute
from graphc.startup.hooks import HOOKS

Sizes = tuple[int | None, ...]

COPIED_AT_ONCE = 256
"""The most elements that `copy` is used for: NumPy releases the GIL for more than 500."""
MOVED_AT_ONCE = 2**17
"""The most bytes that a memoryview copies, which keeps the GIL, in a few microseconds."""


class Container:
    """The container of a value, as Theano has it: `storage`, a list of the value, and the lock of its updates."""

    def __init__(self, storage: list[Any], lock: Lock) -> None:
        self.storage = storage
        self.lock = lock

    @property
    def value(self) -> Any:
        """A copy of the value. A new value must have its dtype and rank."""
        return kept_in(self)

    @value.setter
    def value(self, new: Any) -> None:
        keep(self, new)

    data = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the value, once for all that share the container. A copy has a lock of its own."""
        return _container, (_copied(self.storage, self.lock),)


def kept_in(container: Container) -> Array:
    """Return a copy of a container's value, taken between two updates."""
    return _copied(container.storage, container.lock)


def keep(container: Container, new: Any) -> None:
    """Set the value of a container. Raises RankError for another rank, and the errors of `as_array`."""
    old = container.storage[0]
    array = as_array(new, old.dtype.name, "the value of a container")
    if array.ndim != old.ndim:
        raise RankError(f"the value of a container has {old.ndim} axes, not {array.ndim}")
    run({container.lock: True}, False, container.storage.__setitem__, slice(None), [array.copy()])


def _copied(cell: list[Array], lock: Lock) -> Array:
    """Return a copy of the array in a cell, taken between two updates."""
    value = cell[0]
    if value.size <= COPIED_AT_ONCE:
        if not ACTIVITY[0] and not ACTIVITY[1] and cell[0] is value:
            return value.copy()
    elif value.nbytes <= MOVED_AT_ONCE and value.flags.c_contiguous:
        new = np.empty(value.shape, value.dtype)
        target, source = new.reshape(-1).data, value.reshape(-1).data
        if not ACTIVITY[0] and not ACTIVITY[1] and cell[0] is value:
            target[:] = source
            return new
    return run({lock: False}, False, _copy, cell)


def _copy(cell: list[Array]) -> Array:
    return cell[0].copy()


class SharedVariable(Node, metaclass=Leaves):
    """A variable with a value of its own. `shared` makes one, as does Theano's `SharedVariable(name, type, value,
    strict, allow_downcast=None, container=None)`. Raises GraphTypeError for a value that is not of the type;
    `set_value` raises GraphTypeError for no array of numbers, RankError for another number of axes.

        w = graphc.shared([1.0, 2.0], "w")
        w.set_value([3.0]), w.get_value()     # None, array([3.])"""

    __slots__ = {
        "allow_downcast": "Whether values that are set may lose precision.",
        "cell": "A list of the current value.",
        "default_update": "The value after each call of a function that has no update of its own; None for the same.",
        "free_rank": "The rank of the values that are taken as they are, -1 where a size is static.",
        "keeper": "The container, once one was asked for: variables that share a value share it.",
        "lock": "What calls that use the variable wait for.",
        "sizes": "The size along each axis, None where a value decides.",
        "strict": "Whether values that are set must be arrays of exactly its dtype.",
        "wanted": "The dtype of its values, as an object.",
    }

    cell: list[Array]
    lock: Lock
    keeper: Container | None
    default_update: Node | None
    free_rank: int
    sizes: Sizes
    strict: bool
    allow_downcast: bool | None
    wanted: np.dtype[Any]

    @property
    def container(self) -> Container:
        """The cell under Theano's name."""
        if self.keeper is None:
            self.keeper = Container(self.cell, self.lock)
        return self.keeper

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Array:
        """Return the current value: a copy, taken between two updates of any threads; with `borrow` the array itself,
        which later updates may overwrite or replace.

        return_internal_type: Theano's; it changes nothing, for the internal type is NumPy's.
        """
        return self.cell[0] if borrow else _copied(self.cell, self.lock)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Set the value. It may have other sizes, unless these are static.

        The value is copied; with `borrow` an array of the right dtype and layout is taken itself, and updates may
        overwrite it. Raises RankError for another rank, GraphTypeError for a dtype that does not convert without loss,
        ShapeError for another static size.
        """
        if (
            not borrow
            and type(new_value) is np.ndarray
            and new_value.dtype is self.wanted
            and new_value.ndim == self.free_rank
        ):
            cell, new = self.cell, [new_value.copy()]  # which is contiguous, whatever the layout
        else:
            array = new_value if self._is_ready(new_value) else self._converted(new_value)
            cell, new = self.cell, [array if borrow else array.copy()]
        if not ACTIVITY[0] and not ACTIVITY[1]:
            cell[:] = new
        else:
            run({self.lock: True}, False, cell.__setitem__, slice(None), new)

    def _is_ready(self, value: Any) -> bool:
        """True for an array that the cell can hold as it is, where all sizes may change."""
        if type(value) is not np.ndarray or value.dtype is not self.wanted:
            return False
        return value.ndim == self.free_rank and value.flags.carray

    def _converted(self, value: Any) -> Array:
        """Convert a value to an array of the variable's type, or raise."""
        array = as_array(
            value,
            self.type.dtype,
            self._label(),
            strict=self.strict,
            allow_downcast=self.allow_downcast,
            allowed_by="make the variable with graphc.shared(value, allow_downcast=True)",
        )
        if array.ndim != self.ndim:
            raise RankError(f"{self._label()}: the value has {array.ndim} axes, the variable {self.ndim}")
        _check_static(self.sizes, array, self._label())
        return array

    def mend(self) -> None:
        """Convert the value again where it no longer has the form that functions need. The array may have been changed
        from outside: its dtype, shape and flags can be set, and a borrowed one has other owners. Raises as `set_value`.
        """
        value: Any = self.cell[0] if self.cell else None
        if not self._is_ready(value):
            self.set_value(value, borrow=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedVariable:
        """Return a variable with a copy of the value; its default update is over copied variables as well."""
        settings = (self.sizes, self.name, self.strict, self.allow_downcast, type(self))
        value = _copied(self.cell, self.lock) if self.keeper is None else deep_copy(self.keeper, memo)
        twin = memo[id(self)] = _variable(value, *settings)
        twin.default_update = deep_copy(self.default_update, memo)
        return twin

    def clone(self) -> SharedVariable:
        """Return another variable over the same value: setting one sets both."""
        twin = _variable(self.container, self.sizes, self.name, self.strict, self.allow_downcast, type(self))
        twin.default_update = self.default_update
        twin.__dict__.update(self.attributes())
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the value, taken between two updates, or the container, which others may share. The default update
        follows as state, for it may refer to the variable itself."""
        value = self.keeper or _copied(self.cell, self.lock)
        made = (value, self.sizes, self.name, self.strict, self.allow_downcast, self.where, type(self))
        return _restored, made, (self.attributes() or None, {"default_update": self.default_update})

    def zero(self, borrow: bool = False) -> None:
        """Set every element to zero."""
        self.set_value(np.zeros_like(self.cell[0]), borrow=True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "value":  # what the first Theanos had: a free attribute of that name would be lost
            raise AttributeError(f"{self._label()}: set_value(...) sets its value, get_value() has it")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name == "default_update":
            self.default_update = None
        else:
            super().__delattr__(name)

    def _label(self) -> str:
        return f"shared variable {describe(self)}"


def shared(
    value: Any,
    name: str | None = None,
    borrow: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    *,
    broadcastable: Sequence[bool] | None = None,
    shape: Sequence[int | None] | None = None,
) -> SharedVariable:
    """Return a shared variable with the dtype and rank of `value`: a number (rank 0), a list, or an array.

    Python integers become int64, Python floats `options.floatX`. name: for messages, and for `f.value[name]`. borrow:
    share the memory of `value` where its layout allows; otherwise it is copied. strict: later values must be arrays of
    exactly this dtype. allow_downcast: later values may lose precision (True), not even Python floats may (False).
    shape: static sizes, None for one that may change; broadcastable: True for a static size 1. All sizes may change by
    default. Raises GraphTypeError for a value that is no array of numbers, ShapeError for another size than a static
    one.

        >>> w = graphc.shared(np.zeros((2, 3)), "w")
        >>> w.type.dtype, w.ndim, w.get_value().shape
        ('float64', 2, (2, 3))
    """
    what = f"shared variable {name}" if name else "shared"
    if name is not None and not isinstance(name, str):
        raise GraphTypeError(f"a shared variable's name is a string, not {name!r}")
    if hasattr(value, "tocsr"):
        return HOOKS.shared_matrix(value, name, strict, allow_downcast, borrow)
    if hasattr(value, "get_state") or hasattr(value, "bit_generator"):
        return own_variable(as_array(value, "uint64", what), (2,), name, made=HOOKS.shared_generator)
    if isinstance(value, Node):
        raise GraphTypeError(f"{what}: {describe(value)} is symbolic; a shared variable begins with a value")
    dtype = natural_dtype(value, what)
    if dtype in COMPLEX:
        return _complex(np.asarray(value, dtype), name, broadcastable, shape, what)
    array = as_array(value, dtype, what)
    sizes = _static_sizes(array.ndim, broadcastable, shape, what)
    _check_static(sizes, array, what)
    return own_variable(array if borrow else array.copy(), sizes, name, strict, allow_downcast)


def _complex(array: Array, name: str | None, broadcastable: Any, shape: Any, what: str) -> Any:
    """A complex tensor over a shared variable that holds its parts: `get_value` and `set_value` are those of it."""
    sizes = _static_sizes(array.ndim, broadcastable, shape, what)
    _check_static(sizes, array, what)
    parts = HOOKS.pairs.parts_in(array)
    return HOOKS.pairs.from_parts(own_variable(parts.copy(), (*sizes, 2), name))


def deep_copy(value: Any, memo: dict[int, Any]) -> Any:
    """Return `copy.deepcopy(value, memo)`, with a late import of `copy`."""
    return import_module("copy").deepcopy(value, memo)


def _deepcopy(node: Node, memo: dict[int, Any]) -> Node:
    """Return the graph of a node over deep copies of its shared variables; the node itself where there are none."""
    return substitute([node], {leaf: deep_copy(leaf, memo) for leaf in shared_of([node], ())})[0]


FUNCTIONS["deepcopy"] = _deepcopy


def own_variable(
    array: Array,
    sizes: Sizes,
    name: str | None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    made: type[SharedVariable] = SharedVariable,
) -> SharedVariable:
    """Return a shared variable of class `made` over `array` itself. sizes: the static ones, None for others."""
    kind = leaf_type(array.dtype.name, sizes, name)
    settings = (sizes, name, strict, allow_downcast)
    variable = _new(kind, Container([array], Lock()), settings, made)
    variable.keeper = None
    return variable


Settings = tuple[Sizes, str | None, bool, bool | None]
"""The static sizes, the name, `strict` and `allow_downcast` of a shared variable."""


def _new(kind: Type, container: Container, settings: Settings, made: type[SharedVariable]) -> SharedVariable:
    """Return a new shared variable that owns the sizes of its type."""
    variable = _of_type(kind, container, settings, made)
    if None in settings[0]:
        own_sizes(variable, _Owner(variable, settings))
    return variable


def _of_type(kind: Type, container: Container, settings: Settings, made: type[SharedVariable]) -> SharedVariable:
    """Return a shared variable of class `made` over the value of a container."""
    sizes, name, strict, allow_downcast = settings
    variable = made(SHARED, (), {"type": kind}, kind, name)
    variable.cell, variable.lock, variable.keeper = container.storage, container.lock, container
    variable.default_update = None
    variable.sizes = sizes
    variable.free_rank = len(sizes) if sizes.count(None) == len(sizes) else -1
    variable.wanted = NUMPY_DTYPES[kind.dtype]
    variable.strict = strict
    variable.allow_downcast = allow_downcast
    return variable


class _Owner:
    """The owner of the sizes of a shared variable: the variable, made anew over its value where the program has dropped
    it and kept a size, as in `zeros_like(shared(value))`. It holds neither the variable nor its sizes."""

    __slots__ = ("cell", "dtype", "leaf", "lock", "made", "settings", "shape", "where")

    def __init__(self, variable: SharedVariable, settings: Settings) -> None:
        self.cell = variable.cell
        self.lock = variable.lock
        self.made = type(variable)
        self.settings = settings
        self.where = variable.where
        self.dtype = variable.type.dtype
        self._refer(variable)

    def _refer(self, variable: SharedVariable) -> None:
        self.leaf = ref(variable)
        self.shape = [ref(size) if isinstance(size, Node) else size for size in variable.type.shape]

    def __call__(self) -> SharedVariable:
        variable = self.leaf()
        if variable is None:
            sizes = [size() if isinstance(size, ref) else size for size in self.shape]
            kind = leaf_type(self.dtype, sizes, self.settings[1])
            variable = _of_type(kind, Container(self.cell, self.lock), self.settings, self.made)
            variable.where = self.where
            self._refer(variable)
            own_sizes(variable, self)
        return variable


def _shared_of(
    name: str | None,
    type: Any,
    value: Any,
    strict: bool,
    allow_downcast: bool | None = None,
    container: Container | None = None,
) -> SharedVariable:
    """Return a shared variable of a type, with a copy of `value`, or over the value of `container`. Raises TypeError
    for a value of another type, GraphValueError where both or neither are given."""
    kind = import_module("graphc.tensor.variables").kind_of_arrays(type, f"shared variable {name or ''}".rstrip())
    sizes = tuple(size if isinstance(size, int) else None for size in kind.shape)
    if (container is None) == (value is None):
        raise GraphValueError(f"shared variable {name or ''}: give a value or a container, and not both")
    if container is None:
        return own_variable(kind.filter(value, strict, allow_downcast).copy(), sizes, name, strict, allow_downcast)
    kind.filter(container.storage[0], strict=True)
    return _variable(container, sizes, name, strict, allow_downcast, SharedVariable)


_shared_of.__name__ = "SharedVariable"
FUNCTIONS["make SharedVariable"] = explained(_shared_of, "")


def variable_of(container: Container, sizes: Sizes, name: str | None) -> SharedVariable:
    """Return a shared variable over the value of a container; several variables may share one."""
    _check_static(sizes, container.storage[0], f"shared variable {name or ''}".rstrip())
    return _variable(container, sizes, name, False, None, SharedVariable)


def _variable(
    value: Array | Container,
    sizes: Sizes,
    name: str | None,
    strict: bool,
    allow_downcast: bool | None,
    made: type[SharedVariable],
) -> SharedVariable:
    """Return a variable over an array, or over the value of a container."""
    if not isinstance(value, Container):
        return own_variable(value, sizes, name, strict, allow_downcast, made)
    kind = leaf_type(value.storage[0].dtype.name, sizes, name)
    return _new(kind, value, (sizes, name, strict, allow_downcast), made)


def _container(value: Any) -> Container:
    """Rebuild a container from its pickle."""
    return Container([value], Lock())


def _restored(
    value: Array | Container,
    sizes: Sizes,
    name: str | None,
    strict: bool,
    allow_downcast: bool | None,
    where: Where | None,
    made: type[SharedVariable],
) -> SharedVariable:
    if not isinstance(value, Container):
        value = as_array(value, value.dtype.name, "a pickled value")
    variable = _variable(value, sizes, name, strict, allow_downcast, made)
    variable.where = where
    return variable


def _static_sizes(
    rank: int, broadcastable: Sequence[bool] | None, shape: Sequence[int | None] | None, what: str
) -> Sizes:
    if broadcastable is not None and shape is not None:
        raise GraphValueError(f"{what}: broadcastable and shape both say which sizes are static; give one of them")
    if broadcastable is not None:
        sizes: Sizes = tuple(1 if is_one else None for is_one in broadcastable)
    else:
        sizes = (None,) * rank if shape is None else tuple(shape)
    if len(sizes) != rank:
        raise GraphValueError(f"{what}: {len(sizes)} sizes are given for a value of {rank} axes")
    return sizes


def _check_static(sizes: Sizes, array: Array, what: str) -> None:
    for axis, (wanted, size) in enumerate(zip(sizes, array.shape, strict=True)):
        if wanted is not None and wanted != size:
            raise ShapeError(f"{what}: the value has size {size} along axis {axis}, where the variable has {wanted}")


class Parameters:
    """An object with parameters and states, whose values are read and set together."""

    @property
    def params(self) -> list[SharedVariable]:
        """The parameters that an optimiser updates."""
        raise NotImplementedError

    @property
    def state(self) -> list[SharedVariable]:
        """The shared variables that training updates without gradients."""
        raise NotImplementedError

    def get_values(self) -> list[Any]:
        """Return copies of the values of all parameters and states."""
        return [variable.get_value() for variable in (*self.params, *self.state)]

    def set_values(self, values: Sequence[Any]) -> None:
        """Set all parameters and states to values of `get_values`. Raises GraphValueError for another number of
        them."""
        variables = [*self.params, *self.state]
        if len(values) != len(variables):
            raise GraphValueError(f"{len(values)} values are given for {len(variables)} parameters and states")
        for own, value in zip(variables, values, strict=True):
            own.set_value(value)
