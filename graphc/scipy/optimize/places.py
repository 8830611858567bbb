"""Functions of a vector for SciPy, from a kernel that computes all at one place; the last place is remembered.

    objective = Objective(packing, kernel, order=1)
    objective.value(x), objective.slope(x)      the kernel runs once, the gradient is new memory at each place
    objective.constraint(0)(x)                  from the same run

In: a kernel, vectors. Out: values and derivatives as SciPy takes them. The parts of a vector are views of it, and so
are those of a gradient. The objective of `minimize` calls its kernel with the same arrays at each place: a call copies
one vector in and one out, and makes no trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.errors import GraphValueError
from graphc.scipy.optimize.kernels import Kernel
from graphc.scipy.optimize.packing import Packing

__all__ = ["Objective", "Residuals", "check_start"]

Watch = Callable[[Any], None] | None


class Objective:
    """The value, gradient and constraints of an objective. number: the value at the last place; gradient: new memory
    at each, for SciPy keeps it. The kernel reads and writes arrays that are made once."""

    def __init__(self, packing: Packing, kernel: Kernel, order: int) -> None:
        self.order = order
        count = len(packing.spans) if order else 0
        self.sizes = [each.shape[0] for each in kernel.first[1 + count :: 1 + count]]
        self.results = np.empty(1 + packing.size if order else 1)
        self.values = [np.empty(size) for size in self.sizes]
        self.rows = [[np.empty((size, *shape)) for shape in packing.shapes[:count]] for size in self.sizes]
        out = [self.results[:1].reshape(()), *(packing.receivers(self.results[1:]) if order else [])]
        for value, rows in zip(self.values, self.rows, strict=True):
            out += [value, *rows]
        for array, first in zip(out, kernel.first, strict=True):
            array[...] = first
        self.place = packing.start.copy()
        self.parts = packing.views(self.place)
        views = zip(self.parts, packing.receivers(self.place), strict=True)
        self.converted = [(part, view) for part, view in views if part.dtype != view.dtype]
        self.run = partial(kernel.call, *self.parts, *kernel.rest, out=tuple(out))
        self.key = packing.start.tobytes()
        self.number, self.gradient = float(self.results[0]), self.results[1:].copy()
        check_start(packing, np.asarray(self.number), self.gradient if order else None)

    def at(self, x: Array) -> None:
        """Compute all at a place, where that is not the last one."""
        key = x.tobytes()
        if key != self.key:
            self.place[...] = x
            for part, view in self.converted:
                part[...] = view
            self.key = b""  # until all is there: the kernel may raise
            self.run()
            self.key, self.number, self.gradient = key, float(self.results[0]), self.results[1:].copy()

    def value(self, x: Array) -> float:
        """Return the value."""
        self.at(x)
        return self.number

    def slope(self, x: Array) -> Array:
        """Return the gradient."""
        self.at(x)
        return self.gradient

    def constraint(self, place: int) -> Callable[[Array], Array]:
        """Return the function of a constraint."""

        def call(x: Array) -> Array:
            self.at(x)
            return self.values[place].copy()

        return call

    def jacobian(self, place: int) -> Callable[[Array], Array]:
        """Return the Jacobian of a constraint, as a function."""

        def call(x: Array) -> Array:
            self.at(x)
            return np.concatenate([part.reshape(part.shape[0], -1) for part in self.rows[place]], axis=1)

        return call


class Residuals:
    """A function from a vector to a vector, and its Jacobian. What is handed out is not kept: SciPy writes into it.
    watch: called with each new half of the sum of squares."""

    def __init__(self, packing: Packing, kernel: Kernel, order: int, watch: Watch = None) -> None:
        self.packing, self.kernel, self.order, self.watch = packing, kernel, order, watch
        self.size = kernel.first[0].shape[0]
        for array, value in zip(self._receive(), kernel.first, strict=True):
            array[...] = value
        self.key = packing.start.tobytes()
        check_start(packing, self.found, None)

    def _receive(self) -> list[Array]:
        self.found = np.empty(self.size)
        if not self.order:
            return [self.found]
        self.columns = np.empty((self.packing.size, self.size))
        parts = zip(self.packing.spans, self.packing.shapes, strict=True)
        return [self.found, *(self.columns[span] for span, _ in parts)]

    def at(self, x: Array) -> None:
        """Compute all at a place, where that is not the last one."""
        if x.tobytes() != self.key:
            self.kernel(self.packing.views(x), self._receive())
            self.key = x.tobytes()
            if self.watch is not None:
                self.watch(self.found @ self.found / 2)

    def value(self, x: Array) -> Array:
        """Return the value."""
        self.at(x)
        return self.found.copy()

    def jacobian(self, x: Array) -> Array:
        """Return the matrix of derivatives."""
        self.at(x)
        self.key = b""
        return self.columns.T


def check_start(packing: Packing, value: Array, gradient: Array | None) -> None:
    """Raise GraphValueError where a search would begin with NaN."""
    if np.isnan(value).any():
        place = f" at place {np.flatnonzero(np.isnan(value))[0]}" if value.ndim else ""
        raise GraphValueError(f"{packing.by}: the function is NaN{place} at x0")
    if gradient is not None and np.isnan(gradient).any():
        found = zip(packing.names, packing.spans, strict=True)
        name = next(name for name, span in found if np.isnan(gradient[span]).any())
        raise GraphValueError(f"{packing.by}: the gradient by {name} is NaN at x0")
