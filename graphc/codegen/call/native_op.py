"""Ops of the user that numba compiles: machine code that kernels call, with no Python between.

In: a node whose op has such a function, with the dtypes and ranks of its operands and result. Out: a C function of
pointers and sizes, as `callback.py` makes one that calls back into Python. What it returns decides as much: 0, or 1
where the function raised or made another shape, and then the interpreter says what. numba is imported when the first
such function is bound, by each process that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe

Kinds = tuple[tuple[str, int], ...]
"""The dtype and the rank of each operand, then of the result."""


def native_function(node: Node, compute: Callable[..., Any]) -> Any:
    """The C function of a node's op; its address stays valid for as long as this process lives. Raises GraphTypeError
    where numba does not compile the function, or finds that it makes another dtype or rank."""
    kinds = tuple((operand.type.dtype, operand.ndim) for operand in (*node.args, node))
    try:
        return compiled(compute, kinds)
    except import_module("numba").core.errors.NumbaError as error:
        raise GraphTypeError(f"numba does not compile op {node.op.name}: {error} ({describe(node)})") from None


@cache
def compiled(compute: Callable[..., Any], kinds: Kinds) -> Any:
    """The C function of a Python function, for operands of these kinds."""
    numba = import_module("numba")
    inner = compute if hasattr(compute, "py_func") else numba.njit(compute)
    check_result(inner, kinds)
    count = sum(rank for _, rank in kinds)
    signature = numba.types.int64(*[numba.types.voidptr] * len(kinds), *[numba.types.int64] * count)
    names: dict[str, Any] = {f"dtype{number}": np.dtype(dtype).type for number, (dtype, _) in enumerate(kinds)}
    names |= {"carray": numba.carray, "compute": inner}
    exec(source_of(kinds), names)  # numba has no call of several arguments that are pointers to several dtypes
    made = numba.cfunc(signature)(names["call"])
    function = made.ctypes
    function.made = made
    return function


def check_result(inner: Any, kinds: Kinds) -> None:
    """GraphTypeError where a function makes another dtype or rank than its node has. numba tells what it makes."""
    numba = import_module("numba")
    args = [kind_of(numba, dtype, rank) for dtype, rank in kinds[:-1]]
    inner.compile(tuple(args))
    result = inner.overloads[tuple(args)].signature.return_type
    rank, dtype = getattr(result, "ndim", 0), getattr(result, "dtype", result)
    wanted, axes = kinds[-1]
    if rank != axes or not np.can_cast(np.dtype(str(dtype)), wanted, "same_kind"):
        raise GraphTypeError(
            f"op of {inner.__name__}: numba finds that it makes {result} where {wanted}[{axes}] is meant"
        )


def kind_of(numba: Any, dtype: str, rank: int) -> Any:
    """numba's type of an operand: a number where it has no axes, else an array that is C-contiguous."""
    scalar = numba.from_dtype(np.dtype(dtype))
    return numba.types.Array(scalar, rank, "C") if rank else scalar


def source_of(kinds: Kinds) -> str:
    """The source of the C function."""
    sizes = [[f"n{number}_{axis}" for axis in range(rank)] for number, (_, rank) in enumerate(kinds)]
    pointers = [f"p{number}" for number in range(len(kinds))]
    lines = [f"def call({', '.join([*pointers, *(size for group in sizes for size in group)])}):", "    try:"]
    for number, ((_, rank), group) in enumerate(zip(kinds, sizes, strict=True)):
        shape = f"({', '.join(group)},)" if rank else "(1,)"
        lines.append(f"        a{number} = carray(p{number}, {shape}, dtype{number})")
    given = ", ".join(f"a{number}" if rank else f"a{number}[0]" for number, (_, rank) in enumerate(kinds[:-1]))
    last = f"a{len(kinds) - 1}"
    lines.append(f"        result = compute({given})")
    if kinds[-1][1]:
        lines += [f"        if result.shape != {last}.shape:", "            return 1", f"        {last}[...] = result"]
    else:
        lines.append(f"        {last}[0] = result")
    return "\n".join([*lines, "    except Exception:", "        return 1", "    return 0", ""])
