"""A call of generated source without graphc: what `f.export(path, language="python")` copies into its module.

In: arguments, the functions `sizes` and `kernel`, a dict that tells of the arrays. Out: the results. It needs NumPy
alone, and may import nothing of graphc. The dict, for f(x) of float64[?, 3] whose one result has the shape of x:

    {"name": "f", "inputs": [("x", "float64", (None, 3))], "shared": [], "changed": [], "outputs": [("float64", 2)],
     "replaces": {}, "temps": [], "dims": [(0, 0)], "words": 2, "checks": ["an array has ..."], "returns": "one"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
MOST = 2**58
"""Elements or bytes above which a size is absurd."""


def run(
    facts: Mapping[str, Any],
    functions: Sequence[Callable[..., int]],
    values: Sequence[Any],
    state: MutableMapping[str, Any],
    constants: Sequence[Array],
) -> Any:
    """Call a function with values; state has its shared variables by name, and is updated where all went well."""
    arrays = [argument(value, *known) for value, known in zip(values, facts["inputs"], strict=True)]
    shared = [argument(state[known[0]], *known) for known in facts["shared"]]
    for number in facts["changed"]:  # the kernel writes in place
        shared[number] = shared[number].copy()
    operands = [*arrays, *shared, *constants]
    pointers = [array.reshape(-1) for array in operands]
    dims = [operands[number].shape[axis] for number, axis in facts["dims"]]
    words = np.zeros(facts["words"], np.int64)
    with np.errstate(all="ignore"):
        code = int(functions[0](*pointers, *dims, words))
        if code:
            pairs = zip(facts["inputs"], arrays, strict=True)
            shapes = ", ".join(f"{name}: {array.shape}" for (name, *_), array in pairs)
            raise ValueError(f"{facts['name']}: {facts['checks'][code - 1]} (sizes: {shapes})")
        outputs, temps = memory(facts, words.tolist())
        code = int(functions[1](*pointers, *(each.reshape(-1) for each in outputs), *temps, *dims))
    if code:
        raise ValueError(
            f"{facts['name']}: a check of values failed, as of an index outside of an array or of a number of steps"
        )
    for number in facts["changed"]:
        state[facts["shared"][number][0]] = shared[number]
    for place, number in facts["replaces"].items():
        state[facts["shared"][number][0]] = outputs[place]
    results = [each for place, each in enumerate(outputs) if place not in facts["replaces"]]
    return results[0] if facts["returns"] == "one" else results if facts["returns"] == "list" else None


def argument(value: Any, name: str, dtype: str, shape: Sequence[int | None]) -> Array:
    """A value as a contiguous array of a dtype, where nothing is lost: arrays by NumPy's safe casts, Python numbers and
    lists of them where they fit, floats rounded."""
    if hasattr(value, "filled"):
        raise TypeError(f"{name}: a masked array has elements without a value")
    array = np.asarray(value)
    known = array.dtype.name in DTYPES
    safe = known and np.can_cast(array.dtype, dtype, "safe")
    if known and not safe and is_of_numbers(value):
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
        floats = array.dtype.kind == converted.dtype.kind == "f"
        fits = np.isinf(converted) <= np.isinf(array) if floats else converted == array
        safe = dtype != "bool" and bool(np.all(fits))
    if not safe:
        raise TypeError(f"{name}: {array.dtype} cannot become {dtype} without loss; convert it with astype")
    if array.ndim != len(shape):
        raise TypeError(f"{name}: an array of {len(shape)} axes is needed, not of {array.ndim}")
    if any(size not in (None, given) for size, given in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name}: the shape is {array.shape}, not {tuple('?' if n is None else n for n in shape)}")
    return np.require(array, dtype, ("C", "A"))


def is_of_numbers(value: Any) -> bool:
    """True for a Python number, and for lists of them."""
    if isinstance(value, list | tuple):
        return all(map(is_of_numbers, value))
    return type(value) in (bool, int, float)


def memory(facts: Mapping[str, Any], words: list[int]) -> tuple[list[Array], list[Array]]:
    """New arrays for the outputs, and flat ones for temporaries, of the sizes that `sizes` wrote."""
    left = iter(words)

    def take(dtype: str, rank: int) -> tuple[tuple[int, ...], int]:
        shape = tuple(next(left) for _ in range(rank))
        products = [*accumulate((*shape, np.dtype(dtype).itemsize), mul)]
        if min(shape, default=0) < 0 or max(products) > MOST:
            raise ValueError(f"{facts['name']}: a result or a temporary would have the shape {shape}")
        return shape, products[-1]

    outputs = [np.empty(take(dtype, rank)[0], dtype) for dtype, rank in facts["outputs"]]
    temps = [
        np.empty(max(take(*each)[1] for each in held) // np.dtype(dtype).itemsize, dtype)
        for dtype, held in facts["temps"]
    ]
    return outputs, temps
