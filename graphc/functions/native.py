"""Functions that run native code: `Compiled`, and `Guarded`, which finds accesses outside of arrays.

In: a `Kernel` and a `Convention`. Out: a function whose calls go to native code first; Python sees the rest:

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
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from graphc.codegen.cache.key import Key
from graphc.codegen.call import result_memory
from graphc.codegen.call.bind import ABSENT, OUT, Direct, Keywords, Locking, attach, bind, measure, vectorcall_type
from graphc.codegen.call.layout import ABSURD
from graphc.codegen.call.locks import OPEN
from graphc.codegen.call.signature import Need, Signature, result_shapes
from graphc.codegen.pipeline.kernel import Built, Kernel
from graphc.codegen.pipeline.restore import Lookup, restored
from graphc.codegen.threads.chunking import NONTEMPORAL
from graphc.errors import GraphcError
from graphc.functions.callables import Description, Function, building, interpreting
from graphc.functions.convention import REQUIRED, Convention, check_shapes, convert, write_results
from graphc.functions.lowered import Declined, Failed, Lowered, decline, fail
from graphc.ir.node import Array
from graphc.shared import SharedVariable
from graphc.startup.lazy import once
from graphc.startup.process import PROCESS
from graphc.startup.record import replace

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
        made: Variants = import_module("graphc.functions.variants").Variants(self.kernel, self.bind_variant)
        return made

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

    def exact_entry(self, refuse: Callable[..., Any], taken: Keywords) -> Any:
        """Return an entry point for arrays of exactly the inputs' types, whose results without axes are NumPy's
        scalars. It calls `refuse` for others, and where a check fails. taken: the names of the inputs, those that take
        numbers, and the form of arguments and results. The function must have no shared variables."""
        beside = self.entry.__self__
        exact = replace(taken, exact=True, scalars=True)
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
        results: list[Array] = self.held_entry(*values, **named)
        return results

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
        result_memory.free()
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
    direct: type[F] = made
    return direct


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
    """For each thread, the functions that call their entry point with converted arguments: a second refusal of these is
    a defect, not a loop."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()


_converted = _Converted()
