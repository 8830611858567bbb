"""Loading of compiled graphs, and binding to shared variables as Python callables.

In: machine code that exports `sizes`, `kernel` and the native entry point `entry` (entry.py), and the `Signature` it
was compiled for. Out: a builtin function whose call checks its arguments, allocates, runs the kernel and returns
arrays, without a Python frame in between. No compiler is needed.

    library = load(code, symbols={})                               addresses of entry, vectorcall, sizes, kernel
    call = bind(library, signature, cells=[], refuse=..., fail=...)
    call(array)     the result of the kernel
    call("text")    the result of refuse("text"): the entry point does not convert this
    call(array)     the result of fail(3, array), where check number 3 fails for this array

The entry point reads Python's and NumPy's objects by offset. It reaches every address of this process through its
record: an array of words laid out as layout.RECORD tells, followed by the cells of the shared variables.
"""

from __future__ import annotations

import ctypes
import sys
from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from graphc.arrays.array import ndarray
from graphc.arrays.dtypes import DTYPES, NUMPY_DTYPES
from graphc.codegen.call import layout, locks
from graphc.codegen.call.signature import AnyArray, Cell, Need, Signature, need_of
from graphc.codegen.link import image
from graphc.errors import GraphcError
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import record, replace

OUT = sys.intern("out")
"""The keyword of the arrays for results."""

BEGIN = sys.intern("__init__")
"""The method of a class that fills a new object."""

METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002


@record(eq=False)
class Library:
    """A loaded program: the addresses of its functions. They are valid as long as this record lives, for `owner` unmaps
    the code when it is collected (link/image.py). settings: read by parallel loops at each call (threads/settings.py),
    None without such loops. code: the program's code, kept for functions of equal graphs (pipeline/build.py).
    """

    entry: int
    vectorcall: int
    sizes: int
    kernel: int
    owner: AnyArray
    settings: AnyArray | None = None
    code: object = None


ABSENT = object()
"""The default of an input that has none."""


@record(eq=False)
class Recipe:
    """Words by which native code takes a tree apart, or puts one together (recipes.py), and the objects whose addresses
    are among them."""

    words: AnyArray
    held: tuple[Any, ...]


@record(eq=False)
class Keywords:
    """The keyword of each input (None for none) and its default (`ABSENT` for none); () where there are none at all.
    exact: nothing is converted but contiguous copies of arrays. out: `out=` gives arrays for results. scalars: results
    without axes are NumPy's scalars, not arrays, and the others arrays of graphc.numpy where an argument is one; only
    without `out` and updates. own: also where no argument is. tuples: several results are a tuple, not a list. numbers:
    for each input the type of the numbers that it takes though it is exact, None for arrays; () where all take arrays.
    arguments: takes the arguments of a call apart, which are given in its form alone; results: puts several results
    together.
    """

    names: tuple[str | None, ...] = ()
    defaults: tuple[Any, ...] = ()
    exact: bool = False
    out: bool = False
    scalars: bool = False
    own: bool = False
    tuples: bool = False
    numbers: tuple[type | None, ...] = ()
    arguments: Recipe | None = None
    results: Recipe | None = None


POSITIONAL = Keywords()


@record(eq=False)
class Locking:
    """The locking of calls from several threads (locks.py). words: those of the lock of each shared variable.
    contended: called in place of the kernel where a lock is in use. always: every call goes to `contended`, for the
    kernel calls Python functions.
    """

    words: tuple[AnyArray, ...]
    contended: Callable[..., Any]
    always: bool = False


class Binding(tuple[Any, ...]):
    """The `__self__` of a bound function: every object that it keeps alive.

    A tuple because the garbage collector never clears one: the definition must outlive the builtin that points to it.
    `record` is the item that the entry point reads. `arena[0]` is the buffer of temps kept between calls; set it to
    None to give the memory back. It is no NamedTuple, whose definition takes half a millisecond of every start.
    """

    __slots__ = ()
    record: AnyArray
    library: Library
    arena: Cell
    busy: AnyArray


HELD = "record definition name library arena busy cells refuse fail keywords locking".split()
for _place, _name in enumerate(HELD):
    setattr(Binding, _name, property(itemgetter(_place)))


TAKEN = (
    "ndarray",
    "own array",
    "list",
    "tuple",
    "float",
    "int",
    "true",
    "false",
    *(f"{dtype} scalar" for dtype in DTYPES),
)
"""The words of RECORD that arguments are compared with. Where they are 0, no argument is taken."""

EXPORTS = ("entry", "vectorcall", "sizes", "kernel", "layout")
"""The symbols that the code of a graph exports."""


def load(code: bytes, symbols: Mapping[str, int], settings: AnyArray | None = None) -> Library:
    """Load the code of a graph into this process.

    symbols: the addresses of external symbols besides those of the C and mathematics libraries. settings: kept in the
    `Library`.

    Raises GraphcError where the bytes are no code for this machine, a symbol is missing, or the entry point was
    compiled for another layout of Python's objects.
    """
    loaded = image.load(code, {"bad_call": image.process_symbol("PyErr_BadInternalCall"), **symbols}, EXPORTS)
    addresses = loaded.addresses
    if layout.word_at(addresses["layout"]) != layout.layout_tag():
        raise GraphcError("the compiled object is for another Python or another version of graphc")
    entry, vectorcall, sizes, kernel = (addresses[name] for name in EXPORTS[:4])
    return Library(entry, vectorcall, sizes, kernel, loaded.owner, settings)


def bind(
    library: Library,
    signature: Signature,
    cells: Sequence[Cell],
    refuse: Callable[..., Any],
    fail: Callable[..., Any] | None,
    keywords: Keywords = POSITIONAL,
    locking: Locking | None = None,
    beside: Binding | None = None,
    closed: bool = False,
) -> BuiltinFunctionType:
    """Return the builtin function of a loaded graph over these shared variables.

    cells: for each shared variable a list whose only item is its current ndarray. refuse(*args, **kwargs): called, and
    its result returned, where the entry point does not take an argument or a shared value as it is. fail(code, *args):
    called where check `code` failed; with ABSURD where an output or temp would have a negative size or more elements
    than memory can hold; with NO_MEMORY where an allocation failed. None: `refuse` is called then. Their exceptions
    reach the caller. keywords: POSITIONAL takes arguments by position alone. locking: None where the caller holds the
    locks. beside: a binding whose arena this one shares. closed: refuse every call (of a function with inputs).
    """
    if len(cells) != len(signature.shared) or not all(type(cell) is list and len(cell) == 1 for cell in cells):
        raise GraphcError(f"{signature.name}: {len(signature.shared)} cells of one item are needed")
    arena: Cell = [None] if beside is None else beside.arena
    busy = np.zeros(1, np.intp) if beside is None else beside.busy
    inputs = len(signature.inputs)
    interned = tuple(name if name is None else sys.intern(name) for name in (keywords.names or (None,) * inputs))
    keywords = replace(keywords, names=interned, defaults=keywords.defaults or (ABSENT,) * inputs)
    addresses = [id(cell) for cell in cells]
    addresses += [0 if name is None else id(name) for name in keywords.names]
    addresses += [0 if value is ABSENT else id(value) for value in keywords.defaults]
    addresses += [0 if class_ is None else id(class_) for class_ in (keywords.numbers or (None,) * inputs)]
    fields = {
        **_process_fields(),
        "busy": address_of(busy),
        "arena": id(arena),
        "refuse": id(refuse),
        "fail": 0 if fail is None else id(fail),
        "arguments": 0 if keywords.arguments is None else address_of(keywords.arguments.words),
        "results": 0 if keywords.results is None else address_of(keywords.results.words),
        "exact": keywords.exact,
        "scalars": keywords.scalars,
        "tuples": keywords.tuples,
        "out name": id(OUT) if keywords.out else 0,
        "activity": 0,
        "contended": 0,
    }
    if locking is not None:
        addresses += [address_of(locks.CLOSED if locking.always else words) for words in locking.words]
        fields["activity"] = address_of(locks.CLOSED if locking.always else locks.activity)
        fields["contended"] = id(locking.contended)
    if keywords.scalars:
        fields |= {"made": id(ndarray if keywords.own else np.ndarray), "made of own": id(ndarray)}
    if closed:
        fields |= dict.fromkeys(TAKEN, 0)
    words = np.array([*map(fields.__getitem__, layout.RECORD), *addresses], np.intp)
    name = signature.name.encode()
    name_address = ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p).value
    definition = np.array([name_address, library.entry, METH_FASTCALL_KEYWORDS, 0], np.intp)
    owned = (arena, busy, tuple(cells), refuse, fail, keywords, locking)
    binding = Binding((words, definition, name, library, *owned))
    new_function = ctypes.pythonapi["PyCFunction_NewEx"]
    new_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    new_function.restype = ctypes.py_object
    function: BuiltinFunctionType = new_function(address_of(definition), binding, None)
    return function


@cache
def _process_fields() -> Mapping[str, int]:
    """The words of RECORD that are the same for every function of this process."""
    layout.verify_layout()
    table = _array_api()
    return {
        "block": id(block),
        "wake": id(locks.wake),
        "ndarray": id(np.ndarray),
        "own array": id(ndarray),
        "made": id(np.ndarray),
        "made of own": id(np.ndarray),
        "list": id(list),
        "tuple": id(tuple),
        "float": id(float),
        "int": id(int),
        "str": id(str),
        "true": id(True),
        "false": id(False),
        "none": id(None),
        "begin": id(BEGIN),
        "function": id(FunctionType),
        "true scalar": id(np.True_),
        "false scalar": id(np.False_),
        "memory error": id(MemoryError),
        **{name: ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0 for name in layout.PYTHON_API},
        **{name: layout.word_at(table + 8 * slot) for name, slot in layout.ARRAY_API.items()},
        **{f"{name} descriptor": id(dtype) for name, dtype in NUMPY_DTYPES.items()},
        **{f"{name} scalar": id(dtype.type) for name, dtype in NUMPY_DTYPES.items()},
    }


def _array_api() -> int:
    """The address of NumPy's table of C functions; GraphcError where its ABI is not the one known here."""
    get_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get_pointer.restype = ctypes.c_void_p
    table: int = get_pointer(_multiarray_umath._ARRAY_API, None)
    abi = ctypes.CFUNCTYPE(ctypes.c_uint)(layout.word_at(table + 8 * layout.ARRAY_ABI_SLOT))()
    if abi != layout.ARRAY_ABI:
        raise GraphcError(f"NumPy {np.__version__} has the C interface {abi:#x}; graphc knows {layout.ARRAY_ABI:#x}")
    return table


def address_of(array: AnyArray) -> int:
    """The address of the elements of an array."""
    address: int = array.__array_interface__["data"][0]
    return address


class Failures(local):
    """Exceptions that functions of the user raised, for each thread: calls in several may fail at the same time."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []


def measure(library: Library, signature: Signature, arrays: Sequence[AnyArray], cells: Sequence[Cell]) -> Need | None:
    """Return the need of a call with these arrays; None where a check of sizes fails. Only elements of the operands
    `signature.reads` are read, so that others may be arrays without memory."""
    slots = measure_sizes(library, signature, [*arrays, *(cell[0] for cell in cells)])
    return None if slots is None else need_of(signature, slots)


def measure_sizes(library: Library, signature: Signature, operands: Sequence[AnyArray]) -> list[int] | None:
    """Call `sizes` on these inputs and shared values; return the numbers it writes, None where a check fails."""
    dims = [operands[index].shape[axis] for index, axis in signature.sizes]
    slots = np.zeros(signature.extents, np.int64)
    types = [ctypes.c_void_p] * len(operands) + [ctypes.c_int64] * len(dims) + [ctypes.c_void_p]
    code = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(library.sizes)(*map(address_of, operands), *dims, address_of(slots))
    return None if code else slots.tolist()


# --- vectorcall -------------------------------------------------------------------------------------------------------
# A type whose instances are called as cheaply as builtin functions.
#
# In: a class that derives from `Direct`. Out: a subtype whose calls jump to the address that each instance holds, in
# the form of CPython's vectorcall:
#
#     PyObject *call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
#
# A class statement cannot make one: a class of Python's only inherits that form, from Python 3.12 on, and never has it
# of its own. `PyType_FromSpecWithBases` can.


HAVE_VECTORCALL, HAVE_VERSION_TAG = 1 << 11, 1 << 18
TP_MEMBERS = 72
T_PYSSIZET, READONLY = 19, 1


class Direct:
    """An object whose first slot holds its binding, at a fixed offset for native code."""

    __slots__ = ("binding",)

    binding: Binding


T = TypeVar("T", bound=Direct)


class Slot(ctypes.Structure):
    """CPython's PyType_Slot."""

    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def vectorcall_type(base: type[T]) -> type[T]:
    """Return a subtype of `base` whose instances end in the address that calls jump to. It is 0 until `attach` and
    after `detach`: calls go to `__call__` then."""
    offset = base.__basicsize__
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", T_PYSSIZET, offset, READONLY, None), _Member())
    slots = (Slot * 2)(Slot(TP_MEMBERS, ctypes.addressof(members)), Slot(0, None))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    size = offset + ctypes.sizeof(ctypes.c_void_p)
    spec = _Spec(name, size, 0, HAVE_VECTORCALL | HAVE_VERSION_TAG, ctypes.addressof(slots))
    PROCESS.kept.append((name, members, slots, spec))  # Python reads the names of members where they lie
    make = ctypes.pythonapi["PyType_FromSpecWithBases"]
    make.argtypes = (ctypes.c_void_p, ctypes.py_object)
    make.restype = ctypes.py_object
    type_: type[T] = make(ctypes.addressof(spec), (base,))
    return type_


def attach(item: Direct, binding: Binding) -> None:
    """Let calls of an instance of a `vectorcall_type` go to the binding's library. A thread that calls it meanwhile
    finds the old binding with its library, or `__call__`."""
    detach(item)
    item.binding = binding
    if ctypes.c_void_p.from_address(id(item) + layout.CALLABLE_BINDING).value != id(binding):
        raise GraphcError("this Python lays out the slots of its objects unexpectedly; use mode='interpreted'")
    _jump(item).value = binding.library.vectorcall


def detach(item: Direct) -> None:
    """Let calls of an instance of a `vectorcall_type` go to `__call__`."""
    _jump(item).value = 0


def _jump(item: Direct) -> ctypes.c_void_p:
    """The memory of the address that calls of an instance jump to."""
    return ctypes.c_void_p.from_address(id(item) + type(item).__basicsize__ - ctypes.sizeof(ctypes.c_void_p))


# --- reuse of the memory of large results, once nobody holds the result in it -----------------------------------------
# In: a number of bytes. Out: a block, an array of bytes whose memory a result may take. The C library maps a large
# array anew and unmaps it when it goes, so that each fresh one costs the first touch of all its pages: a third of the
# time of a call that memory limits. A block is a result's `base`; it is idle when only the list here holds it, and so
# needs no finalizer.
#
# Threads: a block is taken out of the deque before it is looked at, and put back when a local variable holds it, so
# that no two calls find the same one idle.

Block = np.ndarray[Any, np.dtype[np.uint8]]

LARGE = 2**25
"""Bytes above which a result lies in a block. Up to there glibc learns to keep the memory of arrays that are dropped:
its threshold for mappings of their own grows no further."""


def _references(block: Any) -> int:
    return sys.getrefcount(block)


def _idle() -> int:
    """The references to a block that one local variable holds, as `_references` counts them in this Python."""
    block = np.empty(0, np.uint8)
    return _references(block)


IDLE = _idle()


def block(size: int) -> Block:
    """Return an idle block of at least `size` bytes and at most a quarter more, or a new one.

    New blocks are kept within `options.results_megabytes`; the oldest go first. Raises MemoryError.
    """
    for _ in range(len(PROCESS.blocks)):
        try:
            oldest: Block = PROCESS.blocks.popleft()
        except IndexError:  # another thread has it
            break
        fits = size <= oldest.nbytes <= size + size // 4 and _references(oldest) == IDLE
        PROCESS.blocks.append(oldest)
        if fits:
            return oldest
    most = options.results_megabytes * 10**6
    _keep_within(most - size)
    memory = np.empty(size, np.uint8)
    if size <= most:
        PROCESS.blocks.append(memory)
    return memory


def free() -> None:
    """Release all blocks: idle ones at once, others with their results."""
    PROCESS.blocks.clear()


def _keep_within(most: int) -> None:
    while PROCESS.blocks and sum(each.nbytes for each in list(PROCESS.blocks)) > most:
        try:
            PROCESS.blocks.popleft()
        except IndexError:
            return
