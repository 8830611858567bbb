"""A text, compiled by each library. One class for each; `compiled(kind, program, arguments)` gives what is called.

    Library        np            lax              special               a program becomes
    NumpyLibrary   numpy         loops in Python  scipy.special         its text
    GraphcLibrary  graphc.numpy  graphc.lax       graphc.scipy.special  jit, or function with open or static sizes
    JaxLibrary     jax.numpy     jax.lax          jax.scipy.special     jax.jit
    NumbaLibrary   -             -                -                     njit(fastmath=False) of the loops by hand

A library is imported when its object is made: JAX lives in another environment than graphc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.sweep.program import Array, Kind, Program, of_gradient


def scan(step: Callable[..., Any], carry: Any, xs: Any, length: int | None = None) -> tuple[Any, Any]:
    """`lax.scan` in Python, for NumPy."""
    items = xs if isinstance(xs, tuple) else (xs,)
    outputs = []
    for t in range(len(items[0]) if length is None else length):
        rows = tuple(item[t] for item in items) if xs is not None else (None,)
        carry, output = step(carry, rows if isinstance(xs, tuple) else rows[0])
        outputs.append(output)
    if not outputs or outputs[0] is None:
        return carry, None
    if isinstance(outputs[0], tuple):
        return carry, tuple(np.stack(column) for column in zip(*outputs, strict=True))
    return carry, np.stack(outputs)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """`lax.fori_loop` in Python, for NumPy."""
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


def flat(result: Any) -> list[Any]:
    """The arrays of nested tuples and lists, in order."""
    if isinstance(result, tuple | list):
        return [array for item in result for array in flat(item)]
    return [result]


class NumpyLibrary:
    """NumPy itself; it has no gradients."""

    np: Any
    lax: Any
    special: Any
    linalg: Any

    def __init__(self) -> None:
        self.np, self.lax = np, SimpleNamespace(scan=scan, fori_loop=fori_loop)
        self.special, self.linalg = import_module("scipy.special"), import_module("scipy.linalg")

    def add_at(self, target: Any, index: Any, values: Any) -> Any:
        """The array with values added at places, which may repeat."""
        target = target.copy()
        np.add.at(target, index, values)
        return target

    def whole(self, kind: Kind, program: Program) -> Callable[..., Any]:
        """The text of a program as a function of its inputs."""
        text = kind.ways[program.way]

        def whole(*values: Any) -> Any:
            return text(self, *values)

        return whole

    def compiled(self, kind: Kind, program: Program, inputs: Sequence[Array]) -> Callable[..., Any] | None:
        if program.gradient:
            return None
        return self.whole(kind, program)

    def convert(self, array: Array) -> Any:
        return array

    def wait(self, result: Any) -> Any:
        """The result when it is there."""
        return result


class JaxLibrary(NumpyLibrary):
    """JAX with float64, on arrays of its own."""

    def __init__(self) -> None:
        self.jax = import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.np, self.lax = import_module("jax.numpy"), import_module("jax.lax")
        self.special, self.linalg = import_module("jax.scipy.special"), import_module("jax.scipy.linalg")

    def add_at(self, target: Any, index: Any, values: Any) -> Any:
        return target.at[index].add(values)

    def compiled(self, kind: Kind, program: Program, inputs: Sequence[Array]) -> Callable[..., Any] | None:
        whole, wrt = self.whole(kind, program), of_gradient(kind, len(inputs))
        return self.jax.jit(self.jax.value_and_grad(whole, wrt) if program.gradient else whole)

    def convert(self, array: Array) -> Any:
        return self.np.asarray(array)

    def wait(self, result: Any) -> Any:
        return self.jax.block_until_ready(result)


class GraphcLibrary(NumpyLibrary):
    """graphc. front: "jit" traces, "function" declares variables of open sizes, "static" those of known sizes."""

    def __init__(self) -> None:
        self.graphc, self.tensor = import_module("graphc"), import_module("graphc.tensor")
        self.np, self.lax = import_module("graphc.numpy"), import_module("graphc.lax")
        self.special, self.linalg = import_module("graphc.scipy.special"), import_module("graphc.scipy.linalg")

    add_at = JaxLibrary.add_at

    def compiled(
        self, kind: Kind, program: Program, inputs: Sequence[Array], mode: str | None = None
    ) -> Callable[..., Any] | None:
        whole, wrt = self.whole(kind, program), of_gradient(kind, len(inputs))
        if program.front == "jit":
            return self.graphc.jit(self.graphc.value_and_grad(whole, wrt) if program.gradient else whole, mode=mode)
        known = range(len(inputs)) if program.front == "static" else kind.asks
        variables = [
            self.tensor.tensor(x.dtype, x.shape if place in known else (None,) * x.ndim)
            for place, x in enumerate(inputs)
        ]
        value = whole(*variables)
        outputs = [value, *self.graphc.grad(value, [variables[i] for i in wrt])] if program.gradient else flat(value)
        return self.graphc.function(variables, outputs, mode=mode, on_unused_input="ignore")


class NumbaLibrary(NumpyLibrary):
    """The loops by hand."""

    def __init__(self) -> None:
        self.numba = import_module("numba")

    def compiled(self, kind: Kind, program: Program, inputs: Sequence[Array]) -> Callable[..., Any] | None:
        loops = kind.by_hand(program.gradient)
        return None if loops is None else self.numba.njit(fastmath=False)(loops)


LIBRARIES = {"graphc": GraphcLibrary, "jax": JaxLibrary, "numba": NumbaLibrary, "numpy": NumpyLibrary}
