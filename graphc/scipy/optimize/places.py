"""Functions of a vector for SciPy, from a kernel that computes all at one place; the last place is remembered.

    objective = Objective(packing, kernel, order=1)
    objective.value(x), objective.slope(x)      the kernel runs once, the gradient is new memory at each place
    objective.constraint(0)(x)                  from the same run

In: a kernel, vectors. Out: values and derivatives as SciPy takes them. The parts of a vector are views of it, and so
are those of a gradient: nothing is copied between SciPy and the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.arrays.values import Array
from graphc.errors import GraphValueError
from graphc.scipy.optimize.kernels import Kernel
from graphc.scipy.optimize.packing import Packing

__all__ = ["Objective", "Residuals", "check_start"]

Watch = Callable[[Any], None] | None


class Objective:
    """The value, gradient and constraints of an objective."""

    def __init__(self, packing: Packing, kernel: Kernel, order: int) -> None:
        self.packing, self.kernel, self.order = packing, kernel, order
        step = 1 + len(packing.names) if order else 1
        self.sizes = [each.shape[0] for each in kernel.first[step::step]]
        out = self._receive()
        for array, value in zip(out, kernel.first, strict=True):
            array[...] = value
        self.key = packing.start.tobytes()
        check_start(packing, self.number, self.gradient if order else None)

    def _receive(self) -> list[Array]:
        """Make memory for the results at a new place."""
        self.number = np.empty(())
        self.gradient = np.empty(self.packing.size) if self.order else np.empty(0)
        self.values = [np.empty(size) for size in self.sizes]
        shapes = self.packing.shapes if self.order else []
        self.rows = [[np.empty((size, *shape)) for shape in shapes] for size in self.sizes]
        out = [self.number, *(self.packing.receivers(self.gradient) if self.order else [])]
        for value, rows in zip(self.values, self.rows, strict=True):
            out += [value, *rows]
        return out

    def at(self, x: Array) -> None:
        """Compute all at a place, where that is not the last one."""
        if x.tobytes() != self.key:
            self.kernel(self.packing.views(x), self._receive())
            self.key = x.tobytes()

    def value(self, x: Array) -> float:
        """Return the value."""
        self.at(x)
        return float(self.number)

    def slope(self, x: Array) -> Array:
        """Return the gradient."""
        self.at(x)
        return self.gradient

    def constraint(self, place: int) -> Callable[[Array], Array]:
        """Return the function of a constraint."""

        def call(x: Array) -> Array:
            self.at(x)
            return self.values[place]

        return call

    def jacobian(self, place: int) -> Callable[[Array], Array]:
        """Return the Jacobian of a constraint, as a function."""

        def call(x: Array) -> Array:
            self.at(x)
            rows = [part.reshape(part.shape[0], -1) for part in self.rows[place]]
            return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)

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
    for name, span in zip(packing.names, packing.spans, strict=True):
        if gradient is not None and np.isnan(gradient[span]).any():
            raise GraphValueError(f"{packing.by}: the gradient by {name} is NaN at x0")
