"""The parameters of a C declaration matched with the inputs and results of a compiled graph.

In: a declaration, a function, the values of the inputs that are bound. Out: a `Form` and its words, which
codegen/call/pointer.py describes.

    int64_t f(int64_t n, const double x[n], double *out)      of [x: dvector] -> sum
    x is parameter 1, whose size is parameter 0; the result is parameter 2

Array parameters are the inputs in their order, then the results. A vector may also be several scalar inputs in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.bind import measure_sizes
from graphc.codegen.call.pointer import BOUND, GROUPS, PARAM, VALUE, Form
from graphc.codegen.call.signature import ALIGNMENT, extents_of, need_of
from graphc.errors import ArgumentError
from graphc.functions.declaration import LETTERS, Declaration
from graphc.ir.node import Array, Node, describe

Dim = tuple[int, int]
"""A size: (parameter, 0), or (-1, the number)."""


def fit(
    text: str, declaration: Declaration, function: Any, bound: Sequence[Array], loop: bool
) -> tuple[Form, dict[str, list[int]], int]:
    """Match a declaration with a function. bound: the values of its last inputs, then its constants. Returns the form,
    its words by group, and the bytes of the arena. Raises ArgumentError, which names the parameter or the input."""
    return Fitting(text, declaration, function, bound).form(loop)


class Fitting:
    """The match, as it is made: parameters are taken one after the other."""

    def __init__(self, text: str, declaration: Declaration, function: Any, bound: Sequence[Array]) -> None:
        self.text, self.declaration, self.function, self.bound = text, declaration, function, bound
        self.signature = function.built.signature
        known = self.signature.inputs + self.signature.shared
        self.given: Sequence[Node] = function.kernel.inputs[: len(known) - len(bound)]
        self.checks: list[Dim] = []
        self.shown: list[tuple[int, int]] = []
        self.spans: list[tuple[int, list[Dim], int, bool]] = []
        self.sources: list[tuple[str, int, int]] = []
        self.dims: list[list[Dim]] = []
        if text in ("density", "vector"):
            self.check_kind()
        self.left = declaration.arrays
        self.match_inputs()
        self.measure()
        self.match_results()

    def wrong(self, message: str) -> ArgumentError:
        return ArgumentError(f"{self.function.name}: signature {self.text!r}: {message}")

    def check_kind(self) -> None:
        """Raise ArgumentError for a function that is not what samplers call."""
        x = self.function.kernel.inputs[0]
        wanted = [("float64", 0), ("float64", 1)] if self.text == "density" else [("float64", 1)]
        found = [(result.dtype, len(result.shape)) for result in self.signature.outputs]
        length = x.type.shape[0] if x.ndim == 1 and x.type.dtype == "float64" else None
        if not isinstance(length, int) or found != wanted:
            made = ", ".join(str(node.type) for node in self.function.kernel.outputs)
            raise ArgumentError(
                f"{self.function.name}: it takes {x.type} and gives {made}; a {self.text} is wanted, of a vector of "
                "float64 whose length is known"
            )
        if len(self.given) != 1:
            count = len(self.function.kernel.inputs)
            raise ArgumentError(
                f"{self.function.name}: {count - len(self.given)} values are given for {count - 1} inputs"
            )

    # Inputs. ---------------------------------------------------------------------------------------------------------

    def match_inputs(self) -> None:
        while len(self.sources) < len(self.given):
            node = self.given[len(self.sources)]
            if not self.left:
                raise self.wrong(f"there is no parameter for {describe(node)}")
            number = self.left.pop(0)
            param = self.declaration.params[number]
            if param.dtype != node.type.dtype:
                raise self.wrong(f"{param.spelling}{param.name} is given for {describe(node)}, which is {node.type}")
            if not param.is_pointer:
                if node.ndim:
                    raise self.wrong(f"{describe(node)} is {node.type}, which is passed by address: {param.type} *")
                self.sources.append((VALUE, number, 0))
                self.dims.append([])
            elif node.ndim == 0 and param.dims:
                self.spread(number)
            else:
                dims = self.sizes_of(number, node.type.shape, describe(node))
                self.sources.append((PARAM, number, 0))
                self.dims.append(dims)
                self.spans.append((number, dims, itemsize(param.dtype), False))

    def spread(self, number: int) -> None:
        """Take the scalar inputs that are left as the elements of a vector, all of them or as many as it says."""
        param = self.declaration.params[number]
        rest = self.given[len(self.sources) :]
        count = int(param.dims[0]) if param.dims[0].isdigit() else len(rest)
        taken = rest[:count]
        if len(param.dims) != 1 or len(taken) != count:
            raise self.wrong(f"{param.name or param.spelling} has {count} elements; {len(rest)} inputs are left")
        for node in taken:
            if node.ndim or node.type.dtype != param.dtype:
                raise self.wrong(f"{describe(node)} is {node.type}, no {param.dtype} that a vector may hold")
        self.sources += [(PARAM, number, k * itemsize(param.dtype)) for k in range(count)]
        self.dims += [[] for _ in taken]
        dim = self.dim(number, param.dims[0], count, param.name)
        self.spans.append((number, [dim], itemsize(param.dtype), False))

    def sizes_of(self, number: int, shape: Sequence[Any], name: str) -> list[Dim]:
        """The sizes of the array that a parameter gives, for the shape that is known of it."""
        param = self.declaration.params[number]
        if param.dims and len(param.dims) != len(shape):
            raise self.wrong(f"{param.name} has {len(param.dims)} sizes; {name} has {len(shape)} axes")
        if param.dims:
            return [self.dim(number, word, size, name) for word, size in zip(param.dims, shape, strict=True)]
        if not all(isinstance(size, int) for size in shape):
            raise self.wrong(
                f"the sizes of {name} are known at the call only: write them as {param.type} "
                f"{param.name or 'x'}{'[n]' * len(shape)}, where n is a parameter"
            )
        return [(-1, size) for size in shape]

    def dim(self, number: int, word: str, size: Any, name: str) -> Dim:
        """A size that is declared, where `size` is the number that is known, or anything else."""
        is_known = isinstance(size, int)
        if not word.isdigit():
            at = self.declaration.sizes[word]
            if is_known:
                self.checks.append((at, size))
                return -1, size
            return at, 0
        if is_known and int(word) != size:
            raise self.wrong(f"{self.declaration.params[number].name} has size {word}; {name} has {size}")
        return -1, int(word)

    # Sizes. ----------------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Find the source of each dim that the functions take, and all sizes where none of them is a parameter."""
        first = len(self.given)
        self.sizes: list[Dim] = [
            self.dims[index][axis] if index < first else (-1, self.bound[index - first].shape[axis])
            for index, axis in self.signature.sizes
        ]
        may_change = bool(self.signature.reads) and self.text not in ("density", "vector")
        self.fixed = all(param < 0 for param, _ in self.sizes) and not may_change
        self.slots: list[int] = []
        if self.fixed:
            shapes = [[size for _, size in dims] for dims in self.dims]
            made = [np.zeros(shape, node.type.dtype) for shape, node in zip(shapes, self.given, strict=True)]
            slots = measure_sizes(self.function.library, self.signature, [*made, *self.bound])
            need = None if slots is None else need_of(self.signature, slots)
            if slots is None or need is None:
                count = len(self.function.kernel.inputs) - first
                self.function(*made, *self.bound[:count])  # raises the error that explains it
                raise ArgumentError(f"{self.function.name}: its sizes do not agree for these values")
            self.slots, self.need = slots, need

    # Results. --------------------------------------------------------------------------------------------------------

    def match_results(self) -> None:
        outputs = self.signature.outputs
        is_value = self.declaration.returns in ("double", "float")
        if is_value and (len(outputs) != 1 or outputs[0].shape or outputs[0].dtype != self.declaration.dtype):
            made = ", ".join(str(node.type) for node in self.function.kernel.outputs)
            raise self.wrong(f"it returns one {self.declaration.returns}; the function gives {made}")
        if is_value:
            self.results = [-1]
        else:
            if len(self.left) != len(outputs):
                raise self.wrong(f"{len(self.left)} parameters are left for {len(outputs)} results")
            self.results = self.left[::-1] if self.text == "density" else self.left
            self.left = []
        if self.left:
            raise self.wrong(f"the parameter {self.declaration.params[self.left[0]].name!r} belongs to no input")
        slot = 0
        for place, (number, output) in enumerate(zip(self.results, outputs, strict=True)):
            if number >= 0:
                self.match_result(number, place, slot)
            slot += len(output.shape)

    def match_result(self, number: int, place: int, slot: int) -> None:
        param, output = self.declaration.params[number], self.signature.outputs[place]
        name = f"result {place}"
        if not param.is_pointer or param.dtype != output.dtype:
            raise self.wrong(f"{param.spelling} {param.name} is given for {name}, which is {output.dtype}")
        shape: list[Any] = self.slots[slot : slot + len(output.shape)] if self.fixed else list(output.shape)
        if not param.dims and not shape:
            dims: list[Dim] = []
        elif param.dims == ("1",) and not shape:
            dims = [(-1, 1)]
        else:
            dims = self.sizes_of(number, shape, name)
        for axis, ((dim, _), size) in enumerate(zip(dims, shape, strict=False)):
            if size is None and dim < 0:
                raise self.wrong(f"size {axis} of {name} is known at the call only: name a parameter in its place")
            if size is None:
                self.shown.append((slot + axis, dim))
        self.spans.append((number, dims, itemsize(output.dtype), True))

    # The form. -------------------------------------------------------------------------------------------------------

    def form(self, loop: bool) -> tuple[Form, dict[str, list[int]], int]:
        declaration, signature = self.declaration, self.signature
        arena, starts = 0, []
        if self.fixed:
            padded = [-(-length // ALIGNMENT) * ALIGNMENT for length in self.need.temps]
            *starts, end = accumulate(padded, initial=0)
            arena = end + ALIGNMENT
        groups: dict[str, list[int]] = {
            "operands": [array.ctypes.data for array in self.bound],
            "sizes": [size for _, size in self.sizes],
            "slots": self.slots,
            "starts": starts,
            "table": [] if self.fixed else extents_of(signature),
            "checks": [size for _, size in self.checks],
            "spans": [item * prod(size for param, size in dims if param < 0) for _, dims, item, _ in self.spans],
        }
        answer = "value" if self.results == [-1] else "success" if declaration.succeeds else "code"
        items = [itemsize(each.dtype) for each in (*signature.inputs, *signature.outputs)]
        form = Form(
            "".join(param.letter for param in declaration.params),
            LETTERS[declaration.dtype],
            "loop" if loop else answer,
            (*self.sources, *[(BOUND, 0, 0)] * len(self.bound)),
            tuple(self.results),
            tuple(param for param, _ in self.sizes),
            tuple(param for param, _ in self.checks),
            tuple(self.shown),
            tuple((n, tuple(param for param, _ in dims if param >= 0), last) for n, dims, _, last in self.spans),
            self.fixed,
            signature.extents,
            len(signature.outputs),
            len(signature.temps),
            tuple(len(groups[name]) for name in GROUPS),
            tuple(items) if loop else (),
            self.text == "density",
        )
        return form, groups, arena
