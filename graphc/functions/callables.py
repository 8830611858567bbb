"""What `function` returns: a graph that can be called, in each of the modes.

In: a `Kernel` and a `Convention`. Out: a `Function`, whose call goes straight to native code where its arguments are
arrays of the declared types, and through Python, which converts or explains, where not.
"""

from __future__ import annotations

from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from math import prod
from time import perf_counter
from typing import Any, Literal, TypeVar

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.cache.key import Key
from graphc.codegen.call import result_memory
from graphc.codegen.call.bind import ABSENT, OUT, Keywords, Locking, bind, measure
from graphc.codegen.call.callback import CALLBACK, Failures, address, native_callback
from graphc.codegen.call.locks import OPEN, run
from graphc.codegen.call.signature import Need, Signature, overlapping, result_shapes
from graphc.codegen.call.vectorcall import Direct, attach, vectorcall_type
from graphc.codegen.gemm.lazy import free_panels
from graphc.codegen.pipeline.build import (
    Lookup,
    build_native,
    build_python,
    compilation,
    generation,
    look_up,
    stages_of,
)
from graphc.codegen.pipeline.kernel import Built, Kernel
from graphc.codegen.threads.chunking import NONTEMPORAL
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.check_arguments import (
    check_shapes,
    convert,
    label,
    list_inputs,
    results_given,
    stand_in,
    write_results,
)
from graphc.functions.convention import REQUIRED, Convention
from graphc.functions.usage import Memory, Profile
from graphc.functions.variants import Declined, Failed, Variants, arguments, decline, fail
from graphc.ir.interpret import Steps, check_guards, interpret, plan_steps, run_steps
from graphc.ir.node import Array, Node, user_line
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, nodes_of, substitute
from graphc.ops.scan import SCAN
from graphc.options import options
from graphc.shared import SharedVariable, deep_copy
from graphc.startup.record import replace

T = TypeVar("T")
Mode = Literal["compiled", "interpreted", "python"]
MODES: dict[str, Mode] = {
    "compiled": "compiled",
    "interpreted": "interpreted",
    "python": "python",
    "FAST_RUN": "compiled",
    "FAST_COMPILE": "interpreted",
    "JIT": "compiled",
    "Mode": "compiled",
}


PUBLIC = (
    "assembly", "container", "copy", "explain", "free", "graph", "maker", "memory", "mode", "name", "profile", "shared",
    "source", "text", "value", "where",
)  # fmt: skip
"""What a user asks of a function besides calling it."""


class Description:
    """The docstring of a class of functions; that of a function is what it says of itself."""

    def __init__(self, doc: str | None) -> None:
        self.doc = doc

    def __get__(self, function: Function | None, kind: object) -> str | None:
        return self.doc if function is None else function.describe()


class Function:
    """A compiled, interpreted or generated graph. Call it with one argument for each input, by position or name.

    mode: how it runs. name: what it was called. where: the line of the program that made it. profile: how many calls
    there were, how long they took, and how many steps its loops, where it was made with profile=True.
    """

    mode: Mode = "interpreted"
    trust_input = False
    """Theano's switch that leaves out checks of arguments; here they cost nothing, and it changes nothing."""

    def __init_subclass__(cls) -> None:
        cls.__doc__ = Description(cls.__doc__)  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return [*(name for name in super().__dir__() if name.startswith("__")), *PUBLIC]

    def describe(self) -> str:
        """What `help` shows of the function."""
        results = ", ".join(str(node.type) for node in self.kernel.outputs) or "nothing"
        changed = ", ".join(leaf.name or str(leaf.type) for leaf, _ in self.kernel.updates)
        made = f", made at {self.where}" if self.where else ""
        lines = [f"A {self.mode} function{made}. It returns {results}{changed and ' and updates '}{changed}.", ""]
        for name, item in ((name, vars(Function).get(name)) for name in PUBLIC):
            if callable(item) or isinstance(item, property):
                said, _, _ = (item.__doc__ or "").partition("\n\n")
                lines.append(f"{name}{'()' * callable(item)}: {' '.join(said.split())}")
        return "\n".join(lines)

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        self.kernel = kernel
        self.call = call
        self.name = kernel.name
        self.where = user_line()
        self.profile = Profile() if profile else None
        self.steps: Steps | None = None
        updated = {leaf for leaf, _ in kernel.updates}
        variables = [leaf for leaf in kernel.shared if isinstance(leaf, SharedVariable)]
        self.wanted = {leaf.lock: leaf in updated for leaf in variables}
        self.foreign = False

    def locked(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """What `call` gives while no other thread changes the shared variables, or sees them being changed. The user's
        functions may call others, which update what this one reads: then it has its variables alone."""
        if not self.wanted:
            return call(*args, **kwargs)
        wanted = dict.fromkeys(self.wanted, True) if self.foreign else self.wanted
        return run(wanted, self.foreign, call, *args, **kwargs)

    @property
    def kind(self) -> type[Function]:
        """What `make_function` makes a function like this of."""
        return next(kind for kind in (Guarded, Compiled, Generated, Interpreted) if isinstance(self, kind))

    @property
    def graph(self) -> Graph:
        """The graph as it was written: inputs, then outputs and the new values of the updated variables."""
        return Graph(self.kernel.inputs, self.kernel.results)

    @property
    def text(self) -> str:
        """The graph, printed."""
        return print_graph(self.graph)

    @property
    def shared(self) -> tuple[SharedVariable, ...]:
        """The shared variables that the function reads or updates."""
        return tuple(leaf for leaf in self.kernel.shared if isinstance(leaf, SharedVariable))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        given = self.take_out(kwargs)
        results = self.pack(self.locked(self.run_arguments, args, kwargs, given))
        if self.profile is not None:
            self.profile.add(perf_counter() - start)
        return results

    def take_out(self, kwargs: dict[str, Any]) -> list[Array | None]:
        """The arrays given for the results, taken out of the keywords unless an input is called `out`."""
        outputs = self.kernel.outputs
        out = None if OUT in self.call.positions else kwargs.pop(OUT, None)
        if out is None:
            return [None] * len(outputs)
        return results_given(out, outputs, self.call.keys, self.kernel.returns == "one")

    @property
    def label(self) -> str:
        """The name and the line that made the function, for messages."""
        return f"{self.name} ({self.where})" if self.where else self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """The same function over deep copies of its shared variables."""
        kernel, news = self.kernel, [new for _, new in self.kernel.updates]
        twins = {leaf: deep_copy(leaf, memo) for leaf in kernel.shared}
        results = substitute([*kernel.outputs, *news], twins)
        updates = zip((twins[leaf] for leaf, _ in kernel.updates), results[len(kernel.outputs) :], strict=True)
        outputs = tuple(results[: len(kernel.outputs)])
        shared = tuple(twins[leaf] for leaf in kernel.shared)
        copied = replace(kernel, outputs=outputs, shared=shared, updates=tuple(updates))
        twin = make_function(self.kind, copied, self.call, self.profile is not None)
        twin.name = self.name
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickle has the graph with its shared variables and their values; the code is found in the cache, or
        compiled, where it is read."""
        return restored, (self.mode, packed(self.kernel), self.call, self.profile is not None, self.name)

    def copy(
        self,
        share_memory: bool = False,
        swap: Mapping[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Function:
        """The same function once more, over other shared variables or without its updates; nothing is compiled for it.

        swap: other shared variables of the same types in place of some of its own. delete_updates: leave the updates
        out (another graph, which is compiled). name: that of this one and " copy" where None. States that are its own
        (`In(update=...)`) begin anew. share_memory: for Theano's sake. Raises ArgumentError for a variable that is not
        its own, GraphTypeError for one of another type.
        """
        made: Function = states().copy_function(self, swap or {}, delete_updates, name, profile)
        return made

    @property
    def value(self) -> Any:
        """The values of its states and shared variables, by variable or by name: `f.value[w]`, which is `f[w]`."""
        return states().Values(self)

    @property
    def container(self) -> Any:
        """Where they are kept: `f.container[w]` may be the value of an `In` of another function, which shares it."""
        return states().Containers(self)

    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that it reads or updates."""
        return list(self.shared)

    @property
    def maker(self) -> Any:
        """What the function was made of, in Theano's words: `f.maker.fgraph` is its graph after rewriting."""
        return import_module("graphc.compile.function_module").FunctionMaker(self)

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value[key] = value

    def __contains__(self, key: Any) -> bool:
        return key in self.value

    def __repr__(self) -> str:
        inputs = (f"{item.name or item.variable.name or '?'}: {item.variable.type}" for item in self.call.inputs)
        return f"<{self.mode} function {self.name}({', '.join(inputs)})>"

    def in_order(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], convention: Convention | None = None
    ) -> list[Any]:
        """What is given for each input, by position, name or default; ArgumentError where that is not one each."""
        call = convention or self.call
        records, given = call.inputs, dict(enumerate(args))
        if len(args) > len(records):
            wanted = f"{len(records)} arguments ({list_inputs(records)})"
            raise ArgumentError(f"{self.label} takes {wanted}; got {len(args)}")
        for key, value in kwargs.items():
            position = call.positions.get(key)
            if position is None:
                known = list_inputs(records)
                raise ArgumentError(f"{self.label} has no one input called {key!r}; its inputs are {known}")
            if position in given:
                raise ArgumentError(f"{self.label}: argument {label(records[position])} is given twice")
            given[position] = value
        values = []
        for position, item in enumerate(records):
            value = given.get(position, item.value)
            if value is REQUIRED:
                raise ArgumentError(f"{self.label}: argument {label(item)} is missing")
            values.append(value)
        return values

    def bind_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Array]:
        """The arguments of a call as arrays in the order of the inputs; an error where they do not fit."""
        return self.convert_all(self.in_order(args, kwargs))

    def convert_all(self, values: Sequence[Any]) -> list[Array]:
        """A value for each input as arrays of the inputs' types."""
        return self.with_shared([convert(value, item) for value, item in zip(values, self.call.inputs, strict=True)])

    def with_shared(self, arrays: list[T]) -> list[T]:
        """`arrays`, after the values of shared variables were brought into order."""
        for leaf in self.kernel.shared:
            if isinstance(leaf, SharedVariable):
                leaf.mend()
        return arrays

    def values(self, arrays: Sequence[Array]) -> dict[Node, Array]:
        """What the leaves of the graph stand for in a call."""
        own: dict[Node, Array] = {node: node.cell[0] for node in self.kernel.shared if isinstance(node, SharedVariable)}
        return {**dict(zip(self.kernel.inputs, arrays, strict=True)), **own}

    def run_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], given: list[Array | None]) -> list[Array]:
        """The outputs for the arguments of a call, in the arrays given for them; the updates are made."""
        return self.run_values(self.in_order(args, kwargs), given)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """The outputs for a value for each input, in the arrays given for them; the updates are made."""
        return self.run_converted(self.convert_all(values), given)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        """The outputs for arrays of the inputs' types, in the arrays given for them; the updates are made."""
        if self.steps is None:
            self.steps = plan_steps(self.graph)
        results = run_steps(self.steps, self.values(arrays))
        count = len(self.kernel.outputs)
        check_shapes(given, [value.shape for value in results[:count]], self.kernel.outputs)
        outputs = write_results(given, results[:count])
        for (leaf, _), value in zip(self.kernel.updates, results[count:], strict=True):
            assert isinstance(leaf, SharedVariable)
            leaf.cell[0] = value
        return outputs

    def pack(self, results: list[Array]) -> Any:
        """Results in the form the outputs were asked for."""
        if self.call.keys is not None:
            return dict(zip(self.call.keys, results, strict=True))
        return {"one": results[0] if results else None, "list": results, "none": None}[self.kernel.returns]

    @property
    def source(self) -> str:
        """The generated Python source, that of all stages; the interpreted mode has none but gives the one it would
        have."""
        return "\n\n".join(build_python(stage).source for stage in stages_of(self.kernel))

    @property
    def assembly(self) -> str:
        """The machine code as text, that of all stages; a mode without gives the one it would have."""
        return "\n".join(compilation().build_assembly(stage) for stage in stages_of(self.kernel))

    def memory(self, *sizes: Any) -> Memory:
        """The bytes that a call would allocate for inputs of these sizes, found out without one.

        sizes: the shape of each input in order, or one dict of shapes by name. Where sizes of results follow from the
        value of an input (`zeros((n,))`), that value is needed in place of its shape. Raises ArgumentError, ShapeError
        or GraphTypeError, which name the variable, and GraphcError in interpreted mode, where every value of the graph
        is an array of its own.
        """
        raise GraphcError(f"{self.label}: the memory of a function in {self.mode} mode is not planned")

    def sized_arguments(self, sizes: Sequence[Any], read: Collection[int]) -> list[Array]:
        """What `memory` is given as arrays: shapes become arrays that take no memory, but for the inputs `read`, by
        number, whose values are needed."""
        if len(sizes) == 1 and isinstance(sizes[0], Mapping):
            given = self.in_order((), sizes[0])
        else:
            given = self.in_order(sizes, {})
        arrays = []
        for number, (value, item) in enumerate(zip(given, self.call.inputs, strict=True)):
            if number in read and isinstance(value, tuple):
                what = f"sizes follow from the value of {label(item)}"
                raise ArgumentError(f"{self.label}: {what}; give it in place of its shape")
            arrays.append(convert(value, item) if number in read else stand_in(value, item))
        return arrays

    def free(self) -> None:
        """Give back the memory that is kept between calls: for this function's temporaries, and for large results and
        large matrix products of all functions. The next call allocates it anew."""

    def explain(self) -> str:
        """How the function came about: phases with their times, rules that fired, and the plan with its reasons."""
        return f"{self!r}\ninterpreted: one NumPy call for each of {len(nodes_of(self.kernel.results))} nodes"


def states() -> Any:
    """What few functions are asked for. Not an import statement: a warm start needs none of it."""
    return import_module("graphc.functions.states")


def make_function(kind: type[Function], kernel: Kernel, call: Convention, profile: bool) -> Function:
    """A function of this kind; of several stages where sizes follow from values that have to be computed. With a
    profile one that counts the steps of its loops, where it has any."""
    if profile and any(node.op is SCAN for node in nodes_of(kernel.results)):
        counted: Function = import_module("graphc.functions.counted").Counted(kernel, call, kind)
        return counted
    stages: tuple[Kernel, ...] = (kernel,)
    if issubclass(kind, Compiled):
        found = look_up(kernel)
        if found.entry is not None or len(stages := stages_of(kernel)) == 1:
            return kind(kernel, call, profile, found)
    elif not issubclass(kind, Lowered) or len(stages := stages_of(kernel)) == 1:
        return kind(kernel, call, profile)
    made: Function = import_module("graphc.functions.staged").Staged(kernel, call, profile, stages, kind)
    return made


def packed(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel as values that can be pickled, its graph in one piece."""
    graph = import_module("graphc.ir.pickling").pack([*kernel.inputs, *kernel.shared, *kernel.results])
    counts = (len(kernel.inputs), len(kernel.shared), len(kernel.outputs))
    updated = tuple(kernel.shared.index(leaf) for leaf, _ in kernel.updates)
    return kernel.name, graph, counts, updated, kernel.returns, kernel.threads, kernel.mutable


def restored(mode: Mode, fields: tuple[Any, ...], call: Convention, profile: bool, name: str) -> Function:
    """The function of a pickle."""
    function = make_function(kind_of(mode), restored_kernel(fields), call, profile)
    function.name = name
    return function


def restored_kernel(fields: tuple[Any, ...]) -> Kernel:
    """What `packed` was given."""
    shown, graph, (inputs, shared, outputs), updated, returns, threads, mutable = fields
    nodes = tuple(import_module("graphc.ir.pickling").unpack(graph))
    leaves, variables, results = nodes[:inputs], nodes[inputs : inputs + shared], nodes[inputs + shared :]
    updates = tuple(zip((variables[number] for number in updated), results[outputs:], strict=True))
    return Kernel(shown, leaves, variables, results[:outputs], updates, returns, threads, mutable)


def kind_of(mode: Mode) -> type[Function]:
    """The class of the functions of a mode."""
    native = Guarded if options.poison == "guard" else Compiled
    kinds: dict[Mode, type[Function]] = {"compiled": native, "interpreted": Interpreted, "python": Generated}
    return kinds[mode]


class Interpreted(Function):
    """Runs one NumPy call for each node."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.foreign = any(node.op.version for node in nodes_of(kernel.results))


class Lowered(Function):
    """A function whose graph has been lowered to statements.

    `cells` hold the values of the shared variables, then the constants; `failures` what the user's ops raised within
    the generated code.
    """

    built: Built
    cells: list[list[Any]]
    failures: Failures

    def take(self, built: Built) -> None:
        """Keep what was built, and the arrays it runs on besides its arguments."""
        own = [node.cell for node in self.kernel.shared if isinstance(node, SharedVariable)]
        self.built, self.failures, self.foreign = built, Failures(), bool(built.calls)
        self.cells = [*own, *([constant] for constant in built.constants)]

    @property
    def source(self) -> str:
        if not self.built.source:  # from the cache: generated again, so that its comments name this program's lines
            return build_python(self.kernel).source
        return self.built.source

    @property
    def plan(self) -> str:
        """What is materialised, fused and updated in place, with the reasons; made again where the code was cached."""
        return self.built.report.plan or build_python(self.kernel).report.plan

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
        """The memory of a call with arrays of these sizes."""
        need = self.measure(arrays)
        if need is None:
            check_guards(self.graph, self.values(arrays))
            raise MemoryError(f"{self.label}: a result would need more memory than there can be")
        outputs = self.built.signature.outputs
        taken = sum(prod(shape) * itemsize(y.dtype) for shape, y in zip(need.shapes, outputs, strict=True))
        return Memory(need.arena, taken, need.arena + taken)

    def measure(self, arrays: Sequence[Array]) -> Need | None:
        """What a call with arrays of these sizes needs; None where a check of sizes would fail."""
        raise NotImplementedError

    def separate(self, arrays: list[Array]) -> None:
        """Copy what shares memory with a buffer that is about to be written."""
        for number in overlapping(self.built.signature, arrays, self.cells):
            if number < len(arrays):
                arrays[number] = arrays[number].copy()
            else:
                cell = self.cells[number - len(arrays)]
                cell[0] = cell[0].copy()

    def make_way(self, given: Sequence[Array | None]) -> None:
        """Move variables that are updated out of the arrays that results will be written to."""
        for leaf, _ in self.kernel.updates:
            assert isinstance(leaf, SharedVariable)
            if any(array is not None and np.may_share_memory(array, leaf.cell[0]) for array in given):
                leaf.cell[0] = leaf.cell[0].copy()

    def explain_failure(self, arrays: Sequence[Array]) -> Any:
        """A check failed in generated code: raise what a user's op raised, or what the interpreter says of the call."""
        raised = self.failures.raised
        if raised:
            error = raised[0]
            raised.clear()
            raise error
        values = self.values(arrays)
        check_guards(self.graph, values)
        interpret(self.graph, values)
        factorisations = import_module("graphc.ops.linalg.routine")
        nearly = factorisations.near_failures(nodes_of(self.graph.outputs))
        if nearly:
            raise factorisations.LinAlgError(f"{nearly}, by rounding: the interpreter finds it just in order")
        raise GraphcError(f"{self.label}: a check failed that the interpreter finds in order; please report this")

    def launch(
        self, sizes: Callable[..., int], kernel: Callable[..., int], arrays: list[Array], given: list[Array | None]
    ) -> list[Array]:
        """`run_converted` by functions over flat arrays."""
        self.separate(arrays)
        self.make_way(given)
        results = python_calls().launch_python(
            self.built.signature,
            sizes,
            kernel,
            arrays,
            self.cells,
            lambda code, *_: self.explain_failure(arrays),
            lambda shapes: check_shapes(given, shapes, self.kernel.outputs),
        )
        return write_results(given, results)


def python_calls() -> Any:
    """How generated source is called under CPython. Not an import statement: a warm start needs none of it."""
    return import_module("graphc.codegen.call.launch_python")


class Generated(Lowered):
    """Runs the generated source under CPython: the same statements as the native code, for pdb and for reading."""

    mode: Mode = "python"

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.take(build_python(kernel))
        self.functions = generation().bind_python(self.built, self.failures)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        return self.launch(self.functions["sizes"], self.functions["kernel"], arrays, given)

    def measure(self, arrays: Sequence[Array]) -> Need | None:
        need: Need | None = python_calls().measure_python(
            self.built.signature, self.functions["sizes"], arrays, self.cells
        )
        return need


class Compiled(Lowered, Direct):
    """Runs native code. A call goes straight to it, but where it is to be timed or returns a dict; what native code
    refuses comes here."""

    mode: Mode = "compiled"
    entry: Any
    key: Key

    def __new__(cls, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> Compiled:
        return object.__new__(cls if profile or call.keys is not None else _direct())

    def __init__(self, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> None:
        super().__init__(kernel, call, profile)
        found = found or look_up(kernel)
        self.key = found.key
        built, load_code = build_native(kernel, found)
        self.take(built)
        self.callbacks: list[Any] = []
        self.library = load_code(self.callback_addresses(built))
        words = [leaf.lock.words for leaf in kernel.shared if isinstance(leaf, SharedVariable)]
        words += [OPEN] * (len(self.cells) - len(words))
        locking = Locking(tuple(words), self.contended, self.foreign) if self.wanted else None
        keywords = keywords_of(call)
        self.entry = bind(self.library, built.signature, self.cells, self.refuse, self.failed, keywords, locking)
        self.variants = Variants(kernel, self.bind_variant)
        if isinstance(self, _direct()):
            attach(self, self.entry.__self__)

    def callback_addresses(self, built: Built) -> dict[str, int]:
        """The addresses of the user's functions that native code calls, which are kept with this function."""
        own = {f"{CALLBACK}{n}": native_callback(node, self.failures) for n, node in enumerate(built.calls)}
        self.callbacks += own.values()
        return {name: address(callback) for name, callback in own.items()}

    @cached_property
    def held_entry(self) -> Any:
        """The entry point for calls that have their locks."""
        if not self.wanted:
            return self.entry
        keywords, signature = keywords_of(self.call), self.built.signature
        beside = self.entry.__self__
        return bind(self.library, signature, self.cells, self.refuse, self.failed_again, keywords, beside=beside)

    def exact_entry(self, refuse: Callable[..., Any]) -> Any:
        """The entry point for arrays of exactly the inputs' types, given by position; for others `refuse` is called. Of
        a function without shared variables."""
        beside = self.entry.__self__
        exact = Keywords(exact=True)
        return bind(self.library, self.built.signature, self.cells, refuse, self.failed_again, exact, beside=beside)

    def contended(self, /, *args: Any, **kwargs: Any) -> Any:
        """Another thread uses a shared variable: wait."""
        return self.locked(self.held_entry, *args, **kwargs)

    def bind_variant(self, kernel: Kernel) -> tuple[Any, Signature]:
        """The entry point of another kernel of the function, over the same shared variables, and its signature."""
        built, load_code = build_native(kernel, look_up(kernel))
        cells = [*self.cells[: len(kernel.shared)], *([constant] for constant in built.constants)]
        library = load_code(self.callback_addresses(built))
        keywords = Keywords(out=OUT not in self.call.positions)
        return bind(library, built.signature, cells, decline, fail, keywords), built.signature

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        if OUT in kwargs and OUT not in self.call.positions:
            given = self.take_out(kwargs)
            kwargs[OUT] = given[0] if self.kernel.returns == "one" else tuple(given)
        results = self.entry(*args, **kwargs)
        if self.profile is not None:
            self.profile.add(perf_counter() - start)
        return dict(zip(self.call.keys, results, strict=True)) if self.call.keys is not None else results

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """For a stage, which returns a list and is called with the locks of the whole function."""
        named = {} if all(array is None for array in given) else {OUT: tuple(given)}
        results: list[Array] = self.held_entry(*values, **named)
        return results

    def refuse(self, /, *args: Any, **kwargs: Any) -> Any:
        """Arguments that the entry point does not take as they are: convert them, or say what is wrong."""
        return self.locked(self.convert_and_run, args, kwargs)

    def convert_and_run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self in _converted.functions:
            raise GraphcError(f"{self.name}: converted arguments were refused; please report this")
        given = self.take_out(kwargs)
        self.make_way(given)
        values = self.in_order(args, kwargs)
        result = self.run_where_it_stands(values, given)
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

    def run_where_it_stands(self, values: Sequence[Any], given: Sequence[Array | None]) -> Any:
        """A call with large arrays that are not contiguous, or are results too, none of which is copied; Declined where
        that cannot be."""
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
        result = entry(*arguments(bases, arrays), **named)
        return self.failed_again(result.code, *values) if isinstance(result, Failed) else result

    def run_into(self, given: Sequence[Array | None], arrays: list[Array]) -> Any:
        """Run, and copy the results to the arrays given for them, which the entry point does not take as they are."""
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
        self.variants.free()
        result_memory.free()
        free_panels()

    def failed(self, code: int, *args: Any) -> Any:
        """A check failed; or it would not, now that no other thread can change the variables."""
        return self.locked(self.held_entry, *args) if self.wanted else self.failed_again(code, *args)

    def failed_again(self, code: int, *args: Any) -> Any:
        """Check number `code` failed, or a size is absurd (-1): raise what explains it."""
        _converted.functions.discard(self)
        arrays = self.bind_arguments(args, {})
        if code < 0 and not self.failures.raised:
            check_guards(self.graph, self.values(arrays))
            given = ", ".join(
                f"{label(item)} {array[()] if not array.ndim else f'of shape {array.shape}'}"
                for item, array in zip(self.call.inputs, arrays, strict=False)
            )
            raise MemoryError(f"{self.label}: for {given} a result would need more memory than there can be")
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


class Guarded(Compiled):
    """Runs native code under CPython's eyes, on arrays between pages that nobody may touch
    (codegen/call/guard_pages.py)."""

    def __new__(cls, kernel: Kernel, call: Convention, profile: bool, found: Lookup | None = None) -> Guarded:
        return object.__new__(cls)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return Function.__call__(self, *args, **kwargs)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        return Function.run_values(self, values, given)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        guard = import_module("graphc.codegen.call.guard_pages")
        sizes, kernel = guard.guarded_functions(self.library, self.built.signature)
        return self.launch(sizes, kernel, arrays, given)


@cache
def _direct() -> type[Compiled]:
    direct: Any = vectorcall_type(Compiled)
    direct.__doc__ = Description(Compiled.__doc__)
    kind: type[Compiled] = direct
    return kind


def keywords_of(call: Convention) -> Keywords:
    """How the entry point may be called: as `bind_arguments` has it."""
    names = {position: name for name, position in call.positions.items()}
    return Keywords(
        names=tuple(names.get(position) for position in range(len(call.inputs))),
        defaults=tuple(ABSENT if item.value is REQUIRED else item.value for item in call.inputs),
        exact=any(item.strict or item.allow_downcast is False for item in call.inputs),
        out=OUT not in call.positions,
    )


class _Converted(local):
    """The functions whose converted arguments are on their way to the entry point, in each thread."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()


_converted = _Converted()
