"""Calls from kernels back to Python and to the user's functions: ops of the user, and safepoints of long loops.

In: a node whose value a Python function of the user computes. Out: a C function of pointers and sizes; the same over
flat arrays, for generated source under CPython. An exception cannot cross native code: it is kept for its thread, the
function returns 1, and the kernel stops. An op that numba compiles has a C function of its own, with no Python between.

For safepoints: the names of the functions that they call (exits.py), and the work between two of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.bind import Failures
from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.body import outputs_of
from graphc.ir.node import Array, Node, describe
from graphc.ops.custom import native_of

CALLBACK = "callback"
"""The name of callbacks in generated source, followed by a number."""


def split_sizes(operands: Sequence[Node], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The shape of each operand, from all their sizes in one sequence."""
    left = list(sizes)
    return [tuple(left.pop(0) for _ in range(operand.ndim)) for operand in operands]


def run(node: Node, arrays: Sequence[Array], failures: Failures) -> int:
    """Compute `node` from the first arrays into the others; 1 where the user's function raised."""
    count = len(node.args)
    try:
        results: Any = node.op.eval(node, *arrays[:count])
        for value, array in zip(results if node.is_tuple else (results,), arrays[count:], strict=True):
            if value.shape != array.shape:
                shapes = f"shape {value.shape}, not {array.shape}"
                raise ShapeError(f"op {node.op.name} computed {shapes}: {describe(node)}")
            array[...] = value
    except BaseException as error:  # whatever it is, it is raised again where the call began
        error.add_note(f"while computing {describe(node)}")
        failures.raised.append(error)
        return 1
    return 0


def native_callback(node: Node, failures: Failures) -> Any:
    """Return a ctypes function that computes a node; its address is valid as long as it lives. An op that numba
    compiles has native code of its own."""
    compute = native_of(node.op)
    if compute is not None:
        return native_function(node, compute)
    operands = (*node.args, *outputs_of(node))
    count = sum(operand.ndim for operand in operands)
    signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(operands), *[ctypes.c_int64] * count)

    forms = [(operand.type.dtype, operand.ndim) for operand in operands]

    def call(*args: Any) -> int:
        first, arrays = len(forms), []
        for address, (dtype, rank) in zip(args, forms, strict=False):
            arrays.append(view(address, dtype, args[first : first + rank]))
            first += rank
        return run(node, arrays, failures)

    return signature(call)


def view(address: int | None, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return the array of this dtype and shape at an address."""
    length = prod(shape) * itemsize(dtype)
    if not length or address is None:
        return np.empty(shape, dtype)
    return np.ndarray(shape, np.dtype(dtype), MEMORY(address, length, WRITABLE))


MEMORY = ctypes.pythonapi.PyMemoryView_FromMemory
"""A view of some bytes at an address; a ctypes array would be a class of its own for each length."""
MEMORY.restype, MEMORY.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
WRITABLE = 0x200


def python_callback(node: Node, failures: Failures) -> Callable[..., int]:
    """Return `native_callback` for flat arrays. An array may be longer than its value: a temporary holds values of
    several sizes."""
    operands = (*node.args, *outputs_of(node))

    def call(*args: Any) -> int:
        shapes = split_sizes(operands, [int(size) for size in args[len(operands) :]])
        flat = args[: len(operands)]
        arrays = [a[: prod(shape)].reshape(shape) for a, shape in zip(flat, shapes, strict=True)]
        return run(node, arrays, failures)

    return call


def address(callback: Any) -> int:
    """The address of a ctypes function."""
    return ctypes.cast(callback, ctypes.c_void_p).value or 0


# --- ops that numba compiles ------------------------------------------------------------------------------------------
# What a function of numba's returns decides as that of a callback does: 0, or 1 where it raised or made another shape,
# and then the interpreter says what. numba is imported when the first such function is bound, by each process that has
# one.


Forms = tuple[tuple[str, int], ...]
"""The dtype and the rank of each operand, then of the result."""


def native_function(node: Node, compute: Callable[..., Any]) -> Any:
    """The C function of a node's op; its address stays valid for as long as this process lives. Raises GraphTypeError
    where numba does not compile the function, or finds that it makes another dtype or rank."""
    forms = tuple((operand.type.dtype, operand.ndim) for operand in (*node.args, node))
    try:
        return compiled(compute, forms)
    except import_module("numba").core.errors.NumbaError as error:
        raise GraphTypeError(f"numba does not compile op {node.op.name}: {error} ({describe(node)})") from None


@cache
def compiled(compute: Callable[..., Any], forms: Forms) -> Any:
    """The C function of a Python function, for operands of these dtypes and ranks."""
    numba = import_module("numba")
    inner = compute if hasattr(compute, "py_func") else numba.njit(compute)
    check_result(inner, forms)
    count = sum(rank for _, rank in forms)
    signature = numba.types.int64(*[numba.types.voidptr] * len(forms), *[numba.types.int64] * count)
    names: dict[str, Any] = {f"dtype{number}": np.dtype(dtype).type for number, (dtype, _) in enumerate(forms)}
    names |= {"carray": numba.carray, "compute": inner}
    exec(source_of(forms), names)  # numba has no call of several arguments that are pointers to several dtypes
    callback = numba.cfunc(signature)(names["call"])
    function = callback.ctypes
    function.made = callback
    return function


def check_result(inner: Any, forms: Forms) -> None:
    """GraphTypeError where a function makes another dtype or rank than its node has. numba tells what it makes."""
    numba = import_module("numba")
    args = [numba_type(numba, dtype, rank) for dtype, rank in forms[:-1]]
    inner.compile(tuple(args))
    result = inner.overloads[tuple(args)].signature.return_type
    rank, dtype = getattr(result, "ndim", 0), getattr(result, "dtype", result)
    wanted, axes = forms[-1]
    if rank != axes or not np.can_cast(np.dtype(str(dtype)), wanted, "same_kind"):
        raise GraphTypeError(
            f"op of {inner.__name__}: numba finds that it makes {result} where {wanted}[{axes}] is meant"
        )


def numba_type(numba: Any, dtype: str, rank: int) -> Any:
    """numba's type of an operand: a number where it has no axes, else an array that is C-contiguous."""
    scalar = numba.from_dtype(np.dtype(dtype))
    return numba.types.Array(scalar, rank, "C") if rank else scalar


def source_of(forms: Forms) -> str:
    """The source of the C function."""
    sizes = [[f"n{number}_{axis}" for axis in range(rank)] for number, (_, rank) in enumerate(forms)]
    pointers = [f"p{number}" for number in range(len(forms))]
    lines = [f"def call({', '.join([*pointers, *(size for group in sizes for size in group)])}):", "    try:"]
    for number, ((_, rank), group) in enumerate(zip(forms, sizes, strict=True)):
        shape = f"({', '.join(group)},)" if rank else "(1,)"
        lines.append(f"        a{number} = carray(p{number}, {shape}, dtype{number})")
    operands = ", ".join(f"a{number}" if rank else f"a{number}[0]" for number, (_, rank) in enumerate(forms[:-1]))
    last = f"a{len(forms) - 1}"
    lines.append(f"        result = compute({operands})")
    if forms[-1][1]:
        lines += [f"        if result.shape != {last}.shape:", "            return 1", f"        {last}[...] = result"]
    else:
        lines.append(f"        {last}[0] = result")
    return "\n".join([*lines, "    except Exception:", "        return 1", "    return 0", ""])


# --- safepoints -------------------------------------------------------------------------------------------------------
# The places in long loops where a kernel ends when the handler of a signal raises, as that of Ctrl-C does. A loop is
# left where the function returns anything but 0. The exception is then set in the thread, as C functions of Python's
# leave it, and the entry point returns no result.
#
# Threads that share a loop nest call STOPPED with one address for all of them: once one thread got an answer other
# than 0, all do, so that the chunks that are left end quickly. The kernel asks once more when all threads have ended.
#
# A handler may use the shared variables of the call that it interrupts, or make that call itself. So a call with
# safepoints takes its locks from Python (locks.py), which knows of calls within calls.


INTERRUPTED = "gc_interrupted"
STOPPED = "gc_stopped"
SAFEPOINT_CALLS: dict[str, tuple[str, ...]] = {INTERRUPTED: (), STOPPED: ("int64*",)}
"""The parameter types of these functions."""

POLLED = 5 * 10**7
"""Work between two safepoints of a scan (schedule/cost.py): some milliseconds, at worst a tenth of a second.
Threads that share the work between two safepoints are started anew for each."""
LONG_NEST = 3
"""A loop nest without steps has safepoints where it goes over this many sizes."""
PATIENT = POLLED // 8
"""Work of loops up to which a call reaches no safepoint."""


def answer_no(*_: object) -> int:
    """The safepoint of generated source under CPython, which handles signals itself: 0."""
    return 0
