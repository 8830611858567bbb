"""Functions whose graph is lowered to generated source: the base of two modes, and the python mode.

In: a `Kernel` and a `Convention`. Out: `Lowered`, the base class, which reports on the plan, on memory and on failed
checks; `Generated`, the python mode, which runs the generated source under CPython.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.bind import Failures
from graphc.codegen.call.signature import Need, overlapping
from graphc.codegen.pipeline.kernel import Built, Kernel
from graphc.errors import GraphcError
from graphc.functions.callables import Function, Memory, building, interpreting
from graphc.functions.convention import Convention, check_shapes, label, write_results
from graphc.ir.node import Array, describe
from graphc.ir.walk import nodes_of
from graphc.shared import SharedVariable
from graphc.startup.record import record


@record()
class Declined:
    """The result of a variant's entry point for arguments that it does not take."""


@record()
class Failed:
    """The result of a variant's entry point where check number `code` failed."""

    code: int


def decline(*args: Any, **kwargs: Any) -> Declined:
    """Called by the entry point for arguments that it does not take: the caller copies them instead."""
    return Declined()


def fail(code: int, *args: Any) -> Failed:
    """Called by the entry point for a failed check: the caller explains it by the arguments that the user gave."""
    return Failed(code)


class Lowered(Function):
    """A function whose graph is lowered to generated source.

    cells: one-element lists with the values of the shared variables, then the constants. failures: exceptions that
    Python ops of the user raised when generated code called them.
    """

    built: Built
    cells: list[list[Any]]
    failures: Failures

    def take(self, built: Built) -> None:
        """Keep the result of a build, and the arrays that the code reads besides its arguments."""
        own = [node.cell for node in self.kernel.shared if isinstance(node, SharedVariable)]
        self.built, self.failures, self.foreign = built, Failures(), bool(built.calls)
        self.cells = [*own, *([constant] for constant in built.constants)]

    @property
    def source(self) -> str:
        if not self.built.source:  # from the cache: generated again, so that its comments name this program's lines
            source: str = building().build_python(self.kernel).source
            return source
        return self.built.source

    @property
    def plan(self) -> str:
        """The plan as text: what is materialised, fused and updated in place, with the reasons. Code from the cache has
        no plan: it is made again."""
        plan: str = self.built.report.plan or building().build_python(self.kernel).report.plan
        return plan

    def explain(self) -> str:
        report = self.built.report
        phases = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in report.phases.items())
        lines = [repr(self), f"{report.origin}: {phases}"]
        lines += ["rules that fired:", *(f"  {line}" for line in report.fired or ["none"])]
        lines += ["plan:", *(f"  {line}" for line in self.plan.splitlines())]
        return "\n".join(lines)

    def memory(self, *sizes: Any) -> Memory:
        return self.locked(self.memory_for, self.sized_arguments(sizes, self.built.signature.reads))

    def memory_for(self, arrays: Sequence[Array]) -> Memory:
        """Return the memory of a call with arrays of these sizes; raises as a call does where they do not fit."""
        need = self.measure(arrays)
        if need is None:
            interpreting().check_guards(self.graph, self.values(arrays))
            raise self.without_memory(arrays)
        outputs = self.built.signature.outputs
        taken = sum(prod(shape) * itemsize(y.dtype) for shape, y in zip(need.shapes, outputs, strict=True))
        return Memory(need.arena, taken, need.arena + taken)

    def without_memory(self, arrays: Sequence[Array]) -> MemoryError:
        """Return the error of a call that needs more memory than there is. It names the arguments and the largest
        result."""
        given = ", ".join(
            f"{label(item)} {f'of shape {array.shape}' if array.ndim else array[()]}"
            for item, array in zip(self.call.inputs, arrays, strict=False)
        )
        what, need = f"{self.label}{given and f': for {given}'}", self.measure(arrays)
        if need is None:
            return MemoryError(f"{what} a result would need more memory than there can be")
        outputs = zip(self.built.signature.outputs, need.shapes, self.kernel.outputs, strict=False)
        taken = [(prod(shape) * itemsize(y.dtype), shape, node) for y, shape, node in outputs]
        results = sum(size for size, _, _ in taken)
        text = f"{what} there is no memory for results of {_bytes(results)} and temporaries of "
        text += f"{_bytes(need.arena)} (f.explain() lists these)"
        largest = max(taken, key=itemgetter(0), default=None)
        if largest is not None and results > need.arena:
            text += f"; the largest result, {describe(largest[2])}, has shape {largest[1]}"
        return MemoryError(text)

    def measure(self, arrays: Sequence[Array]) -> Need | None:
        """Return the shapes of the outputs and the bytes of the arena of a call with arrays of these sizes; None where
        a check of sizes fails."""
        raise NotImplementedError

    def separate(self, arrays: list[Array]) -> None:
        """Copy the arguments and shared values that share memory with a buffer that the call is to overwrite."""
        for number in overlapping(self.built.signature, arrays, self.cells):
            if number < len(arrays):
                arrays[number] = arrays[number].copy()
            else:
                cell = self.cells[number - len(arrays)]
                cell[0] = cell[0].copy()

    def make_way(self, given: Sequence[Array | None]) -> None:
        """Copy updated shared values that share memory with arrays given for results."""
        for leaf in self.kernel.updated:
            assert isinstance(leaf, SharedVariable)
            if any(array is not None and np.may_share_memory(array, leaf.cell[0]) for array in given):
                leaf.cell[0] = leaf.cell[0].copy()

    def explain_failure(self, arrays: Sequence[Array]) -> Any:
        """Raise the error behind a failed check in generated code: the exception of a user's op, else that of the
        interpreter, which runs the same call."""
        raised = self.failures.raised
        if raised:
            error = raised[0]
            raised.clear()
            raise error
        values = self.values(arrays)
        interpreting().check_guards(self.graph, values)
        interpreting().interpret(self.graph, values)
        factorisations = import_module("graphc.ops.linalg.routine")
        nearly = factorisations.near_failures(nodes_of(self.graph.outputs))
        if nearly:
            raise factorisations.LinAlgError(f"{nearly}, by rounding: the interpreter finds it just in order")
        raise GraphcError(f"{self.label}: a check failed that the interpreter finds in order; please report this")

    def launch(
        self, sizes: Callable[..., int], kernel: Callable[..., int], arrays: list[Array], given: list[Array | None]
    ) -> list[Array]:
        """Run `run_converted` by two functions over flat arrays: `sizes` writes the sizes of outputs and temporaries,
        `kernel` computes."""
        self.separate(arrays)
        self.make_way(given)
        try:
            results = python_calls().launch_python(
                self.built.signature,
                sizes,
                kernel,
                arrays,
                self.cells,
                lambda code, *_: self.explain_failure(arrays),
                lambda shapes: check_shapes(given, shapes, self.kernel.outputs),
            )
        except MemoryError as error:
            raise self.without_memory(arrays) from error
        return write_results(given, results)


def _bytes(size: float) -> str:
    """A number of bytes for messages, in the largest unit that makes it 1 or more: 1536 is "1.5 KiB"."""
    units = iter(("bytes", "KiB", "MiB", "GiB"))
    while size >= 1024 and next(units, ""):
        size /= 1024
    return f"{size:.3g} {next(units, 'TiB')}"


def python_calls() -> Any:
    """The module that calls generated source under CPython, imported when first needed: a warm start needs none."""
    return import_module("graphc.codegen.call.launch_python")


class Generated(Lowered, mode="python"):
    """The python mode: runs the generated source under CPython, the same statements as native code, for pdb."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.take(building().build_python(kernel))
        self.functions = building().generation().bind_python(self.built, self.failures)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        return self.launch(self.functions["sizes"], self.functions["kernel"], arrays, given)

    def measure(self, arrays: Sequence[Array]) -> Need | None:
        need: Need | None = python_calls().measure_python(
            self.built.signature, self.functions["sizes"], arrays, self.cells
        )
        return need
