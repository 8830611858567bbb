"""Calls by numba and by NumPy's ufuncs against the kernel alone.

    python -m benchmarks.callers

In: nothing. Out: a line for each pair. Each pair of loops takes turns, and the fastest round of each counts.

`as_numba`: numba compiles a loop over calls of a function of a vector, and the same loop over calls of its kernel by
address, into memory that is there. The same of a value and its gradient by the C function of `pointer`, and by
`as_numba`, where numba makes the array of the gradient in each call. The ufunc: its inner loop is called by address as
NumPy calls it, and so is the C function of the same expression of vectors. A call of the whole ufunc has NumPy's own
work in it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numba
import numpy as np

import graphc
import graphc.tensor as T
from graphc.functions.ufuncs import loop_of

CALLS, ROUNDS, ELEMENTS = 1_000_000, 25, 1_000_000


def best(*calls: Callable[[], Any]) -> list[float]:
    """The least seconds of each of some calls, which take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, taken in zip(calls, times, strict=True):
            start = perf_counter()
            call()
            taken.append(perf_counter() - start)
    return [min(taken) for taken in times]


def numba_calls(length: int) -> tuple[float, float]:
    """The nanoseconds of a call through `as_numba`, and of the kernel itself, with a vector."""
    v = T.dvector("v")
    f: Any = graphc.function([v], T.exp(v).sum(), name="sum_of_exp")
    through, kept = f.as_numba(), f.pointer()
    signature = f.built.signature
    assert (signature.sizes, len(signature.temps)) == (((0, 0),), 1)
    words = [ctypes.c_void_p] * 3
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, *words, ctypes.c_int64)(kept.library.kernel)

    @numba.njit
    def by_graphc(values: Any, count: int) -> float:
        total = 0.0
        for k in range(count):
            values[0] = k * 1e-9
            total += through(values)
        return total

    @numba.njit
    def by_kernel(values: Any, out: Any, temporary: Any, count: int) -> float:
        total = 0.0
        for k in range(count):
            values[0] = k * 1e-9
            kernel(values.ctypes, out.ctypes, temporary.ctypes, values.size)
            total += out[0]
        return total

    values, out, temporary = np.zeros(length), np.zeros(1), np.zeros(2 * length + 512)
    assert by_graphc(values, 100) == by_kernel(values, out, temporary, 100)
    took = best(lambda: by_graphc(values, CALLS), lambda: by_kernel(values, out, temporary, CALLS))
    return took[0] / CALLS * 1e9, took[1] / CALLS * 1e9


def gradient_calls(length: int) -> list[float]:
    """The nanoseconds of a value and its gradient by the C function, by `as_numba`, and by the kernel itself."""
    v = T.dvector("v")
    cost = (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum()
    f: Any = graphc.function([v], [cost, graphc.grad(cost, v)], name="rosenbrock")
    through, pointer = f.as_numba(), f.pointer()
    signature = f.built.signature
    assert (signature.sizes, len(signature.temps)) == (((0, 0),), 2)
    call = pointer.ctypes
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5, ctypes.c_int64)(pointer.library.kernel)

    @numba.njit
    def by_pointer(values: Any, value: Any, slope: Any, count: int) -> None:
        for k in range(count):
            values[0] = k * 1e-9
            call(values.size, values.size, values.ctypes, value.ctypes, slope.ctypes)

    @numba.njit
    def by_graphc(values: Any, count: int) -> float:
        total = 0.0
        for k in range(count):
            values[0] = k * 1e-9
            value, slope = through(values)
            total += value + slope[0]
        return total

    @numba.njit
    def by_kernel(values: Any, value: Any, slope: Any, one: Any, two: Any, count: int) -> None:
        for k in range(count):
            values[0] = k * 1e-9
            kernel(values.ctypes, value.ctypes, slope.ctypes, one.ctypes, two.ctypes, values.size)

    values, value, slope = np.linspace(0.0, 1.0, length), np.zeros(1), np.zeros(length)
    one, two = np.zeros(2 * length + 1024), np.zeros(2 * length + 1024)
    by_pointer(values, value, slope, 100)
    found = value[0], slope.tolist()
    by_kernel(values, value, slope, one, two, 100)
    assert (value[0], slope.tolist()) == found and by_graphc(values, 1) == sum((f(values)[0], f(values)[1][0]))
    took = best(
        lambda: by_pointer(values, value, slope, CALLS),
        lambda: by_graphc(values, CALLS),
        lambda: by_kernel(values, value, slope, one, two, CALLS),
    )
    return [seconds / CALLS * 1e9 for seconds in took]


def ufunc_loops(size: int) -> list[float]:
    """The nanoseconds of an element in the inner loop of a ufunc, the C function over vectors, and the whole ufunc."""
    x, y, v, w = T.dscalar("x"), T.dscalar("y"), T.dvector("v"), T.dvector("w")
    scaled = graphc.function([x, y], x * T.exp(y) + y, name="scaled")
    loop, ufunc = loop_of(scaled), scaled.as_ufunc()
    vectors = graphc.function([v, w], v * T.exp(w) + w, name="vectors", threads=1)
    whole = vectors.pointer("int64_t f(int64_t n, const double v[n], const double w[n], double out[n])").ctypes
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=size), rng.normal(size=size), np.zeros(size)]
    data = np.array([array.ctypes.data for array in arrays])
    dims, strides = np.array([size]), np.array([8, 8, 8])
    inner = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(loop.address)
    given = None, data.ctypes.data, dims.ctypes.data, strides.ctypes.data, None
    addresses = size, *data.tolist()
    repeats = max(1, ELEMENTS // size)

    def by_ufunc() -> None:
        for _ in range(repeats):
            inner(*given)

    def by_kernel() -> None:
        for _ in range(repeats):
            whole(*addresses)

    def by_numpy() -> None:
        for _ in range(repeats):
            ufunc(arrays[0], arrays[1], out=arrays[2])

    found = []
    for call in (by_ufunc, by_kernel, by_numpy):
        arrays[2].fill(0.0)
        call()
        found.append(arrays[2].copy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    return [taken / size / repeats * 1e9 for taken in best(by_ufunc, by_kernel, by_numpy)]


def main() -> None:
    calls, kernel = numba_calls(8)
    print(f"as_numba, a vector of 8: {calls:.1f} ns a call, the kernel {kernel:.1f}: {calls - kernel:.1f} more")
    by_c, by_numba, kernel = gradient_calls(8)
    print(
        f"value and gradient of 8: C function {by_c:.1f} ns, as_numba {by_numba:.1f}, the kernel {kernel:.1f}: "
        f"{by_c - kernel:.1f} and {by_numba - kernel:.1f} more"
    )
    for size in (10_000, 100_000):
        loop, alone, whole = ufunc_loops(size)
        print(
            f"ufunc, {size} elements: {loop:.3f} ns an element, the kernel {alone:.3f}: {loop / alone:.3f} times; "
            f"called by NumPy {whole:.3f}"
        )


if __name__ == "__main__":
    main()
