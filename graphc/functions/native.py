"""Functions that run generated code: `Compiled` (machine code), `Guarded`, which finds accesses outside of arrays, and
`Generated` (the source, under CPython).

In: a `Kernel` and a `Convention`. Out: a function. `Lowered`, the base class, reports on the plan, on memory and on
failed checks. Calls of `Compiled` go to native code first; Python sees the rest:

    f = graphc.function([x], x * 2)     x = dvector
    f(array)             a float64 array, C-contiguous: native code alone (codegen/call/entry.py), no Python
    f([1, 2])            `refuse`: the argument is converted, then the entry point is called again
    f(array[::-1])       the same for small arrays, which are copied; a large one goes to a variant (variants.py)
    f(matrix)            `refuse`: the conversion raises RankError

A failed check comes to `failed`, which runs the interpreter to find the message; `contended` is called while another
thread holds the lock of a shared variable.
"""

from __future__ import annotations

from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from math import prod
from operator import itemgetter
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.cache.key import Key
from graphc.codegen.call.bind import (
    ABSENT,
    OUT,
    Direct,
    Failures,
    Keywords,
    Locking,
    attach,
    bind,
    free as free_blocks,
    measure,
    vectorcall_type,
)
from graphc.codegen.call.layout import ABSURD
from graphc.codegen.call.locks import OPEN
from graphc.codegen.call.signature import Need, Signature, overlapping, result_shapes
from graphc.codegen.pipeline.kernel import Built, Kernel
from graphc.codegen.pipeline.restore import Lookup, restored
from graphc.codegen.threads.settings import NONTEMPORAL
from graphc.errors import GraphcError
from graphc.functions.callables import Description, Function, Memory, building, interpreting
from graphc.functions.convention import REQUIRED, Convention, check_shapes, convert, label, write_results
from graphc.ir.node import Array, describe
from graphc.ir.walk import nodes_of
from graphc.shared import SharedVariable
from graphc.startup.hooks import once
from graphc.startup.process import PROCESS
from graphc.startup.record import record, replace


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
            return building().build_python(self.kernel).source
        return self.built.source

    @property
    def plan(self) -> str:
        """The plan as text: what is materialised, fused and updated in place, with the reasons. Code from the cache has
        no plan: it is made again."""
        return self.built.report.plan or building().build_python(self.kernel).report.plan

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
        """Return the error of a call that needs too much memory. It names the arguments and the largest result."""
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
        """Raise the error behind a failed check: the exception of a user's op, else that of the interpreter."""
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
        return python_calls().measure_python(self.built.signature, self.functions["sizes"], arrays, self.cells)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from graphc.functions.variants import Variants

F = TypeVar("F", bound=Direct)


class Compiled(Lowered, Direct, mode="compiled"):
    """A function of native code. A call enters it without Python (vectorcall), unless it is timed or returns a dict.
    Calls that native code refuses come to the methods of this class."""

    entry: Any
    key: Key

    def __new__(cls, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> Compiled:
        return object.__new__(cls if profile or call.keys is not None else _direct())

    def __init__(self, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> None:
        super().__init__(kernel, call, profile)
        found = found or building().look_up(kernel)
        assert found is not None
        self.key = found.key
        built, load_code = restored(kernel, found) or building().build_native(kernel, found)
        self.take(built)
        self.callbacks: list[Any] = []
        self.library = load_code(self.callback_addresses(built))
        words = [leaf.lock.words for leaf in kernel.shared if isinstance(leaf, SharedVariable)]
        words += [OPEN] * (len(self.cells) - len(words))
        locking = Locking(tuple(words), self.contended, self.foreign) if self.wanted else None
        keywords = keywords_of(call)
        self.entry = bind(self.library, built.signature, self.cells, self.refuse, self.failed, keywords, locking)
        if isinstance(self, _direct()):
            attach(self, self.entry.__self__)

    def callback_addresses(self, built: Built) -> dict[str, int]:
        """Return the address of each Python op that native code calls back, by its symbol. The callbacks live as long
        as this function."""
        if not built.calls:
            return {}
        callback = import_module("graphc.codegen.call.callback")
        own = [callback.native_callback(node, self.failures) for node in built.calls]
        self.callbacks += own
        return {f"{callback.CALLBACK}{n}": callback.address(each) for n, each in enumerate(own)}

    def wait_with(self, values: Mapping[int, Array]) -> None:
        super().wait_with(values)
        if isinstance(self, _direct()):
            attach(self, (self.closed_entry if self.waiting else self.entry).__self__)

    @cached_property
    def variants(self) -> Variants:
        """The kernels for other layouts of arguments; most functions have none."""
        return import_module("graphc.functions.variants").Variants(self.kernel, self.bind_variant)

    @cached_property
    def closed_entry(self) -> Any:
        """An entry point that passes every call to `refuse`: in use while values wait for the next call."""
        beside, signature = self.entry.__self__, self.built.signature
        return bind(self.library, signature, self.cells, self.refuse, self.failed_again, beside=beside, closed=True)

    @cached_property
    def held_entry(self) -> Any:
        """The entry point for calls whose thread holds the locks of the shared variables already."""
        if not self.wanted:
            return self.entry
        keywords, signature = keywords_of(self.call), self.built.signature
        beside = self.entry.__self__
        return bind(self.library, signature, self.cells, self.refuse, self.failed_again, keywords, beside=beside)

    @property
    def has_exact_entry(self) -> bool:
        """False where each call needs Python: for locks, functions of Python, a profile, or the checks of a mode."""
        return self.kind is Compiled and not (self.wanted or self.foreign) and self.profile is None

    def exact_entry(self, refuse: Callable[..., Any], taken: Keywords, scalars: bool = True) -> Any:
        """Return an entry point for arrays of exactly the inputs' types. It calls `refuse` for others, and where a
        check fails. taken: the names of the inputs, those that take numbers, and the form of arguments and results.
        scalars: results without axes are NumPy's scalars. The function must have one (`has_exact_entry`)."""
        beside = self.entry.__self__
        exact = replace(taken, exact=True, scalars=scalars)
        return bind(self.library, self.built.signature, self.cells, refuse, None, exact, beside=beside)

    def contended(self, /, *args: Any, **kwargs: Any) -> Any:
        """Called where another thread holds the lock of a shared variable: wait for it, then run."""
        return self.locked(self.held_entry, *args, **kwargs)

    def bind_variant(self, kernel: Kernel) -> tuple[Any, Signature]:
        """Compile another kernel of this function over the same shared variables. Returns its entry point, which gives
        `Declined` or `Failed` in place of errors, and its signature."""
        built, load_code = building().build_native(kernel, building().look_up(kernel))
        cells = [*self.cells[: len(kernel.shared)], *([constant] for constant in built.constants)]
        library = load_code(self.callback_addresses(built))
        keywords = Keywords(out=OUT not in self.call.positions)
        return bind(library, built.signature, cells, decline, fail, keywords), built.signature

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        if OUT in kwargs and OUT not in self.call.positions:
            given = self.take_out(kwargs)
            kwargs[OUT] = given[0] if self.kernel.returns == "one" else tuple(given)
        results = (self.refuse if self.waiting else self.entry)(*args, **kwargs)
        if self.profile is not None:
            self.profile.add(perf_counter() - start)
        return dict(zip(self.call.keys, results, strict=True)) if self.call.keys is not None else results

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """Run as a stage: it returns a list, and its caller holds the locks."""
        named = {} if all(array is None for array in given) else {OUT: tuple(given)}
        return self.held_entry(*values, **named)

    def refuse(self, /, *args: Any, **kwargs: Any) -> Any:
        """Called for arguments that the entry point does not take as they are: convert them and run, or raise."""
        return self.locked(self.convert_and_run, args, kwargs)

    def convert_and_run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self in _converted.functions:
            raise GraphcError(f"{self.name}: converted arguments were refused; please report this")
        given = self.take_out(kwargs)
        self.make_way(given)
        values = self.take_arguments(args, kwargs)
        result = self.run_without_copies(values, given)
        if not isinstance(result, Declined):
            return result
        arrays = self.convert_all(values)
        self.separate(arrays)
        _converted.functions.add(self)
        try:
            if all(array is None for array in given):
                return self.held_entry(*arrays)
            return self.run_into(given, arrays)
        finally:
            _converted.functions.discard(self)

    def run_without_copies(self, values: Sequence[Any], given: Sequence[Array | None]) -> Any:
        """Run on large arguments that are not contiguous, or are arrays for results too, without copying them. Returns
        `Declined` where no variant does that.

        Where all arrays have their axes in one other order (Fortran order), an elementwise function runs on their
        transposes; else a variant runs (variants.py).
        """
        order = self.variants.common_order(values) if all(array is None for array in given) else None
        if order is not None:
            back = np.argsort(order)
            results = self.held_entry(*(value.transpose(order) if np.ndim(value) else value for value in values))
            if self.kernel.returns == "one":
                return results.transpose(back)
            return [result.transpose(back) for result in results]
        in_place = self.variants.find_in_place(values, given)
        found = self.variants.find(values) if in_place is None else (in_place, [None] * len(values))
        if found is None:
            return Declined()
        entry, bases = found
        records = zip(values, self.call.inputs, bases, strict=True)
        arrays = self.with_shared([None if based else convert(value, item) for value, item, based in records])
        named = {}
        if any(array is not None for array in given):
            named[OUT] = given[0] if self.kernel.returns == "one" else tuple(given)
        result = entry(*self.variants.arguments(bases, arrays), **named)
        return self.failed_again(result.code, *values) if isinstance(result, Failed) else result

    def run_into(self, given: Sequence[Array | None], arrays: list[Array]) -> Any:
        """Run, then copy results to their arrays in `given`, which the entry point may not take (another layout, an
        overlap)."""
        need = self.measure(arrays)
        if need is not None:
            check_shapes(given, result_shapes(self.built.signature, need, arrays), self.kernel.outputs)
        results = self.held_entry(*arrays)
        single = self.kernel.returns == "one"
        written = write_results(given, [results] if single else results)
        return written[0] if single else written

    def measure(self, arrays: Sequence[Array]) -> Need | None:
        return measure(self.library, self.built.signature, arrays, self.cells)

    def free(self) -> None:
        self.entry.__self__.arena[0] = None
        if "variants" in vars(self):
            self.variants.free()
        free_blocks()
        for give in tuple(PROCESS.givers):  # memory of large products that no other thread is using
            give()

    def failed(self, code: int, *args: Any) -> Any:
        """Called where check number `code` failed. With shared variables the call is repeated under the locks: another
        thread may have changed a value between the check and its use."""
        return self.locked(self.held_entry, *args) if self.wanted else self.failed_again(code, *args)

    def failed_again(self, code: int, *args: Any) -> Any:
        """Raise the error of check number `code`; negative codes tell of an absurd size or of missing memory."""
        _converted.functions.discard(self)
        arrays = self.bind_arguments(args, {})
        if code < 0 and not self.failures.raised:
            if code == ABSURD:
                interpreting().check_guards(self.graph, self.values(arrays))
            raise self.without_memory(arrays)
        return self.explain_failure(arrays)

    def explain(self) -> str:
        text = "\n".join((super().explain(), *self.variants.lines()))
        settings = self.library.settings
        if settings is None:
            return text
        threads, chunks, work, _, least = settings.tolist()
        shared = f"{threads} threads share a loop of {chunks * work} units of work or more, an addition being 1"
        streamed = (
            f"\nnon-temporal stores write what has {least / 2**20:.3g} MiB or more" if NONTEMPORAL in text else ""
        )
        return f"{text}\n{shared}{streamed}"


class Guarded(Compiled, mode="compiled"):
    """Runs native code on copies of its arrays between inaccessible pages, so that an access outside of an array ends
    the process (options.poison="guard", codegen/call/launch_python.py)."""

    def __new__(cls, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> Guarded:
        return object.__new__(cls)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return Function.__call__(self, *args, **kwargs)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        return Function.run_values(self, values, given)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        guard = import_module("graphc.codegen.call.launch_python")
        sizes, kernel = guard.guarded_functions(self.library, self.built.signature)
        return self.launch(sizes, kernel, arrays, given)


def direct_type(kind: type[F]) -> type[F]:
    """Return the subtype of a class of functions whose calls go to native code (`codegen/call/bind.py`)."""
    made: Any = vectorcall_type(kind)
    made.__doc__ = Description(kind.__doc__)
    return made


@once
def _direct() -> type[Compiled]:
    return direct_type(Compiled)


def keywords_of(call: Convention) -> Keywords:
    """The keywords and defaults of a convention as the entry point takes them; they agree with `in_order`."""
    names = {position: name for name, position in call.positions.items()}
    return Keywords(
        names=tuple(names.get(position) for position in range(len(call.inputs))),
        defaults=tuple(ABSENT if item.value is REQUIRED else item.value for item in call.inputs),
        exact=any(item.strict or item.allow_downcast is False for item in call.inputs),
        out=OUT not in call.positions,
    )


class _Converted(local):
    """For each thread, the functions called with converted arguments: to refuse these again is a defect, not a loop."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()


_converted = _Converted()
