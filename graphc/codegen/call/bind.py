"""Loading a compiled graph and making it a Python callable, without a compiler.

In: an object that exports `sizes`, `kernel` and the native entry point `entry` (see entry.py), and the `Signature` it
was compiled for. Out: a builtin function whose call checks its arguments, allocates, runs the kernel and returns
arrays, with no Python frame between.

    sizes(pointers of inputs and shared, dims named by Signature.sizes, S) -> 0, or k where the k-th check failed
        writes to S every dim of every output in order, then those of all that each temp has to hold
    kernel(pointers of inputs, shared, outputs and temps, the same dims) -> 0, or the number of the failed check

`launch_python` is the same protocol for the generated source under CPython.

The entry point reads Python's and NumPy's objects by offset and reaches every address of this process through its
record: an array of words laid out as layout.RECORD says, followed by the cells of the shared variables.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, islice
from operator import mul
from types import BuiltinFunctionType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from graphc.codegen.call import locks
from graphc.codegen.call.layout import (
    ARRAY_ABI,
    ARRAY_ABI_SLOT,
    ARRAY_API,
    PYTHON_API,
    RECORD,
    layout_tag,
    verify_layout,
    word_at,
)
from graphc.codegen.call.result_memory import block
from graphc.codegen.link import image
from graphc.codegen.llvm.module import POISON
from graphc.dtypes import DTYPES, itemsize
from graphc.errors import GraphcError
from graphc.options import options
from graphc.startup.record import record

AnyArray = np.ndarray[Any, np.dtype[Any]]
Cell = list[Any]

MOST = 2**58
"""Elements or bytes above which a size is absurd: sums of a few such numbers still fit an int64."""

MOST_COPIED = 2**16
"""Bytes up to which an argument that is not contiguous is copied on the spot: some 10 µs. Beyond, Python decides."""

ALIGNMENT = 64
"""Of each temp, in bytes: a cache line, and the widest vector register."""

OUT = sys.intern("out")
"""The keyword of the arrays that results are to be written to."""

METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002


@record()
class Array:
    """An array that crosses the entry point: C-contiguous, of `dtype`, each size a number or None where it is known
    at the call only.

    written: a buffer of a shared variable or an input that the kernel writes in place. replaces (outputs only): the
    array becomes the new value of the shared variable of that number instead of being returned.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    written: bool = False
    replaces: int | None = None


@record()
class Temp:
    """A buffer that the kernel needs for the duration of a call. It holds one value after another: `extents` are their
    dtypes and ranks, of whose sizes the product is the number of elements; one vector of the buffer's own where empty.
    """

    name: str
    dtype: str
    extents: tuple[tuple[str, int], ...] = ()

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """Dtypes and ranks of what the buffer has to hold."""
        return self.extents or ((self.dtype, 1),)


@record()
class Signature:
    """What a compiled graph takes and gives; `sizes` are the dims it is told: (index into inputs + shared, axis)."""

    name: str
    inputs: tuple[Array, ...]
    shared: tuple[Array, ...]
    outputs: tuple[Array, ...]
    temps: tuple[Temp, ...]
    sizes: tuple[tuple[int, int], ...]
    returns: Literal["one", "list", "none"]
    reads: tuple[int, ...] = ()
    """The operands whose elements `sizes` reads: sizes follow from their values."""
    donated: tuple[tuple[int, int], ...] = ()
    """Results that are made in the array of a written input: (position among the results, number of the input)."""

    def __post_init__(self) -> None:
        returned = self.returned
        if returned != {"one": 1, "none": 0}.get(self.returns, returned):
            raise GraphcError(f"{self.name}: {returned} outputs are returned as {self.returns!r}")
        known = self.inputs + self.shared
        if not all(0 <= index < len(known) and 0 <= axis < len(known[index].shape) for index, axis in self.sizes):
            raise GraphcError(f"{self.name}: sizes {self.sizes} of arrays that are not there")
        if any(array.written and not array.shape for array in self.inputs):
            raise GraphcError(f"{self.name}: a scalar input may be a Python number, which cannot be written")
        if not all(place < returned and self.inputs[number].written for place, number in self.donated):
            raise GraphcError(f"{self.name}: results {self.donated} in inputs that are not written")
        replaced = [output.replaces for output in self.outputs if output.replaces is not None]
        if len(set(replaced)) < len(replaced) or not all(0 <= k < len(self.shared) for k in replaced):
            raise GraphcError(f"{self.name}: shared variables {replaced} cannot be replaced")

    def to_fields(self) -> Any:
        """The same as tuples in tuples, for `from_fields` in another process."""
        return fields_of(self)

    @property
    def returned(self) -> int:
        """How many results a call returns."""
        return len(self.donated) + sum(output.replaces is None for output in self.outputs)

    @property
    def results(self) -> tuple[tuple[Literal["input", "output"], int], ...]:
        """Which array each result is, in order: of the output or the written input of that number."""
        donated = dict(self.donated)
        fresh = (number for number, output in enumerate(self.outputs) if output.replaces is None)
        places = range(self.returned)
        return tuple(("input", donated[place]) if place in donated else ("output", next(fresh)) for place in places)

    @property
    def extents(self) -> int:
        """How many numbers `sizes` writes."""
        dims = sum(len(output.shape) for output in self.outputs)
        return dims + sum(rank for temp in self.temps for _, rank in temp.held)

    @staticmethod
    def from_fields(fields: Any) -> Signature:
        """The signature of these `to_fields`; GraphcError, TypeError or ValueError where they are none."""
        name, inputs, shared, outputs, temps, *others = fields
        arrays = [tuple(Array(*array) for array in role) for role in (inputs, shared, outputs)]
        values: list[Any] = [name, *arrays, tuple(Temp(*temp) for temp in temps), *others]
        return Signature(*values)


@record(eq=False)
class Library:
    """A loaded program: the addresses of its functions, valid as long as this record lives; collecting it unmaps the
    code (`owner`, as in link/image.py). `settings` is what its parallel loops read at each call (threads/settings.py),
    None where it has none.
    """

    entry: int
    vectorcall: int
    sizes: int
    kernel: int
    owner: AnyArray
    settings: AnyArray | None = None


def fields_of(value: Any) -> Any:
    """A record as a tuple of its fields, and so the records in its tuples; anything else as it is."""
    if isinstance(value, Signature | Array | Temp):
        value = tuple([getattr(value, name) for name in value.__match_args__])
    return tuple(map(fields_of, value)) if isinstance(value, tuple) else value


ABSENT = object()
"""The default of an input that has none."""


@record(eq=False)
class Keywords:
    """How arguments may be left out or named: the keyword of each input, None for none, and its default, `ABSENT` for
    none. exact: a parameter of rank 0 takes only arrays of its dtype. out: whether `out` names the results.
    """

    names: tuple[str | None, ...] = ()
    defaults: tuple[Any, ...] = ()
    exact: bool = False
    out: bool = False


POSITIONAL = Keywords()


@record(eq=False)
class Locking:
    """How calls from several threads keep apart (locks.py). words: of the lock of each shared variable. contended: what
    is called in place of a call that finds one in use. always: every call goes there, for it runs Python in between.
    """

    words: tuple[AnyArray, ...]
    contended: Callable[..., Any]
    always: bool = False


class Binding(NamedTuple):
    """The `__self__` of a bound function: all that it keeps alive.

    A tuple because the garbage collector never clears one: the definition must outlive the builtin that points to it.
    `record` is the item that the entry point reads. `arena[0]` is the buffer of temps kept between calls; set it to
    None to give the memory back.
    """

    record: AnyArray
    definition: AnyArray
    name: bytes
    library: Library
    arena: Cell
    busy: AnyArray
    cells: tuple[Cell, ...]
    refuse: Callable[..., Any]
    fail: Callable[..., Any]
    keywords: Keywords
    locking: Locking | None


EXPORTS = ("entry", "vectorcall", "sizes", "kernel", "layout")
"""What the code of a graph exports."""


def load(code: bytes, symbols: Mapping[str, int], settings: AnyArray | None = None) -> Library:
    """Brings the code of a graph into this process.

    symbols: the addresses of what it needs besides the C and mathematics libraries. settings: kept with it.

    Raises GraphcError where the bytes are no code for this machine, a symbol is missing, or the entry point was
    compiled for another layout of Python's objects.
    """
    loaded = image.load(code, {"bad_call": image.process_symbol("PyErr_BadInternalCall"), **symbols}, EXPORTS)
    addresses = loaded.addresses
    if word_at(addresses["layout"]) != layout_tag():
        raise GraphcError("the compiled object is for another Python or another version of graphc")
    entry, vectorcall, sizes, kernel = (addresses[name] for name in EXPORTS[:4])
    return Library(entry, vectorcall, sizes, kernel, loaded.owner, settings)


def bind(
    library: Library,
    signature: Signature,
    cells: Sequence[Cell],
    refuse: Callable[..., Any],
    fail: Callable[..., Any],
    keywords: Keywords = POSITIONAL,
    locking: Locking | None = None,
    beside: Binding | None = None,
) -> BuiltinFunctionType:
    """The builtin function of a loaded graph over these shared variables.

    cells: for each shared variable a list whose only item is its current ndarray. refuse(*args, **kwargs) is called,
    and its result returned, where an argument or a shared variable is not on the fast path; fail(code, *args) where
    check `code` failed, or with -1 where an output or temp would have a negative size or more elements than memory
    can hold. Whatever they raise reaches the caller. keywords: where there are none, all arguments are positional.
    locking: None where the caller sees to it that no other call uses the shared variables. beside: the binding whose
    arena is used as well.
    """
    if len(cells) != len(signature.shared) or not all(type(cell) is list and len(cell) == 1 for cell in cells):
        raise GraphcError(f"{signature.name}: {len(signature.shared)} cells of one item are needed")
    arena: Cell = [None] if beside is None else beside.arena
    busy = np.zeros(1, np.intp) if beside is None else beside.busy
    inputs = len(signature.inputs)
    interned = tuple(name if name is None else sys.intern(name) for name in (keywords.names or (None,) * inputs))
    keywords = Keywords(interned, keywords.defaults or (ABSENT,) * inputs, keywords.exact, keywords.out)
    own = [id(cell) for cell in cells]
    own += [0 if name is None else id(name) for name in keywords.names]
    own += [0 if value is ABSENT else id(value) for value in keywords.defaults]
    if locking is not None:
        own += [_address(locks.CLOSED if locking.always else words) for words in locking.words]
    words = np.array([*_process_record(), *own], np.intp)
    for field, item in (("arena", arena), ("refuse", refuse), ("fail", fail)):
        words[RECORD.index(field)] = id(item)
    words[RECORD.index("busy")] = _address(busy)
    if locking is not None:
        words[RECORD.index("activity")] = _address(locks.CLOSED if locking.always else locks.activity)
        words[RECORD.index("contended")] = id(locking.contended)
    words[RECORD.index("exact")] = keywords.exact
    words[RECORD.index("out name")] = id(OUT) if keywords.out else 0
    name = signature.name.encode()
    name_address = ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p).value
    definition = np.array([name_address, library.entry, METH_FASTCALL_KEYWORDS, 0], np.intp)
    held = (arena, busy, tuple(cells), refuse, fail, keywords, locking)
    binding = Binding(words, definition, name, library, *held)
    new_function = ctypes.pythonapi["PyCFunction_NewEx"]
    new_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    new_function.restype = ctypes.py_object
    function: BuiltinFunctionType = new_function(_address(definition), binding, None)
    return function


@cache
def _process_record() -> tuple[int, ...]:
    """The words of RECORD that are the same for every function of this process."""
    verify_layout()
    table = _array_api()
    words = {
        **dict.fromkeys(("busy", "arena", "refuse", "fail", "exact", "out name", "activity", "contended"), 0),
        "block": id(block),
        "wake": id(locks.wake),
        "ndarray": id(np.ndarray),
        "tuple": id(tuple),
        "float": id(float),
        "int": id(int),
        "true": id(True),
        "false": id(False),
        "none": id(None),
        **{name: ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0 for name in PYTHON_API},
        **{name: word_at(table + 8 * slot) for name, slot in ARRAY_API.items()},
        **{f"{dtype} descriptor": id(np.dtype(dtype)) for dtype in DTYPES},
        **{f"{dtype} scalar": id(np.dtype(dtype).type) for dtype in DTYPES},
    }
    return tuple(words[field] for field in RECORD)


def _array_api() -> int:
    """The address of NumPy's table of C functions; GraphcError where its ABI is not the one known here."""
    get_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get_pointer.restype = ctypes.c_void_p
    table: int = get_pointer(_multiarray_umath._ARRAY_API, None)
    abi = ctypes.CFUNCTYPE(ctypes.c_uint)(word_at(table + 8 * ARRAY_ABI_SLOT))()
    if abi != ARRAY_ABI:
        raise GraphcError(f"NumPy {np.__version__} has the C interface {abi:#x}; graphc knows {ARRAY_ABI:#x}")
    return table


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def overlapping(signature: Signature, arrays: Sequence[AnyArray], cells: Sequence[Cell]) -> tuple[int, ...]:
    """The arrays, by number in inputs + shared, that must be copied before a launch because a written buffer shares
    memory with them.

    Of two written buffers that overlap it is the later one.
    """
    operands = [*arrays, *(cell[0] for cell in cells)]
    known = signature.inputs + signature.shared
    written = [number for number, array in enumerate(known) if array.written]

    def clashes(number: int) -> bool:
        others = [w for w in written if w != number and (w < number or not known[number].written)]
        return any(np.may_share_memory(operands[number], operands[other]) for other in others)

    return tuple(number for number in range(len(operands)) if clashes(number))


def launch_python(
    signature: Signature,
    sizes: Callable[..., int],
    kernel: Callable[..., int],
    arrays: Sequence[AnyArray],
    cells: Sequence[Cell],
    fail: Callable[..., Any],
    told: Callable[[list[tuple[int, ...]]], object] | None = None,
) -> Any:
    """One call of the generated source under CPython: the entry point's protocol with flat arrays for pointers.

    arrays: the inputs, already C-contiguous, of the signature's dtypes and free of `overlapping` with written buffers.
    told: what is called with the shapes of the results before anything is computed. Returns the results in a list, or
    what `fail` does.
    """
    operands = [*arrays, *(cell[0] for cell in cells)]
    pointers = [_pointer(operand) for operand in operands]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    slots = np.zeros(signature.extents, np.int64)
    with np.errstate(all="ignore"):
        code = sizes(*pointers, *dims, slots)
    if code:
        return fail(int(code), *arrays)
    need = need_of(signature, slots.tolist())
    if need is None:
        return fail(-1, *arrays)
    shapes = need.shapes
    if told is not None:
        told(result_shapes(signature, need, arrays))
    outputs = [_empty(shape, output.dtype) for shape, output in zip(shapes, signature.outputs, strict=True)]
    temps = [
        _empty((length // itemsize(temp.dtype),), temp.dtype)
        for length, temp in zip(need.temps, signature.temps, strict=True)
    ]
    with np.errstate(all="ignore"):
        code = kernel(*pointers, *map(_pointer, outputs), *temps, *dims)
    if code:
        return fail(int(code), *arrays)
    return _deliver(signature, arrays, outputs, cells)


def _empty(shape: tuple[int, ...], dtype: str) -> AnyArray:
    array = np.empty(shape, dtype)
    if options.poison != "off":
        fill(array, POISON)
    return array


def fill(array: AnyArray, word: int) -> None:
    """Fill a contiguous array with the bytes of a word of 32 bits, again and again."""
    array.reshape(-1).view(np.uint8)[:] = np.resize(np.array([word], "<u4").view(np.uint8), array.nbytes)


@record()
class Need:
    """What a call needs: the shapes of the outputs, and the bytes of each temp."""

    shapes: tuple[tuple[int, ...], ...]
    temps: tuple[int, ...]

    @property
    def arena(self) -> int:
        """The bytes that the entry point allocates for the temps: a part of them aligns the first."""
        return ALIGNMENT + sum(map(_padded, self.temps)) if self.temps else 0


def need_of(signature: Signature, sizes: Sequence[int]) -> Need | None:
    """What `sizes` said, or None where a size is negative or a product too large: the entry point's own arithmetic."""
    left = iter(sizes)

    def take(dtype: str, rank: int) -> tuple[tuple[int, ...], int]:
        shape = tuple(islice(left, rank))
        products = [*accumulate((*shape, itemsize(dtype)), mul)]
        return shape, -1 if min(shape, default=0) < 0 or max(products) > MOST else products[-1]

    outputs = [take(output.dtype, len(output.shape)) for output in signature.outputs]
    lengths = [[take(*extent)[1] for extent in temp.held] for temp in signature.temps]
    if any(length < 0 for length in (*(length for _, length in outputs), *chain(*lengths))):
        return None
    temps = tuple(map(max, lengths))
    return Need(tuple(shape for shape, _ in outputs), temps) if sum(map(_padded, temps)) <= MOST else None


def _padded(length: int) -> int:
    """The bytes of the arena that a temp takes."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def _pointer(array: AnyArray) -> AnyArray:
    """The array's elements as a flat view; an error where that would take a copy, which the kernel's writes would
    miss."""
    return array.reshape(-1, copy=False)


def result_shapes(signature: Signature, need: Need, arrays: Sequence[AnyArray]) -> list[tuple[int, ...]]:
    """The shapes of the arrays that a call returns."""
    return [arrays[number].shape if role == "input" else need.shapes[number] for role, number in signature.results]


def _deliver(
    signature: Signature, arrays: Sequence[AnyArray], outputs: Sequence[AnyArray], cells: Sequence[Cell]
) -> list[AnyArray]:
    for output, array in zip(signature.outputs, outputs, strict=True):
        if output.replaces is not None:
            cells[output.replaces][0] = array
    return [(arrays if role == "input" else outputs)[number] for role, number in signature.results]


def measure(library: Library, signature: Signature, arrays: Sequence[AnyArray], cells: Sequence[Cell]) -> Need | None:
    """What a call with these arrays would need; None where a check would fail. Only the elements of the operands that
    `sizes` reads are looked at."""
    operands = [*arrays, *(cell[0] for cell in cells)]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    slots = np.zeros(signature.extents, np.int64)
    types = [ctypes.c_void_p] * len(operands) + [ctypes.c_int64] * len(dims) + [ctypes.c_void_p]
    code = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(library.sizes)(*map(_address, operands), *dims, _address(slots))
    return None if code else need_of(signature, slots.tolist())


def measure_python(
    signature: Signature, sizes: Callable[..., int], arrays: Sequence[AnyArray], cells: Sequence[Cell]
) -> Need | None:
    """`measure` of the generated source under CPython."""
    operands = [*arrays, *(cell[0] for cell in cells)]
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    pointers = [_pointer(operand) if n in signature.reads else operand for n, operand in enumerate(operands)]
    slots = np.zeros(signature.extents, np.int64)
    with np.errstate(all="ignore"):
        code = sizes(*pointers, *dims, slots)
    return None if code else need_of(signature, slots.tolist())
