"""What calls of a function take: memory, and where it is asked for, time.

In: numbers of bytes; the seconds of each call. Out: records that a user reads as `f.memory` and `f.profile`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from graphc.codegen.call.bind import OUT
from graphc.codegen.call.locks import run
from graphc.codegen.pipeline.build import build_python, compilation, stages_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.convention import (
    REQUIRED,
    Convention,
    check_shapes,
    convert,
    label,
    list_inputs,
    results_given,
    stand_in,
    write_results,
)
from graphc.ir.interpret import Steps, plan_steps, run_steps
from graphc.ir.node import Array, Node, user_line
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, node_set
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record


@record()
class Memory:
    """The bytes of a call: the arena of its temporaries, which is kept for the next, its results, and both."""

    arena: int
    outputs: int
    total: int


class Profile:
    """Calls of a function made with profile=True, the seconds they took, and the steps of its loops."""

    __slots__ = ("calls", "seconds", "steps")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.steps = 0

    def add(self, seconds: float) -> None:
        self.calls += 1
        self.seconds += seconds

    def summary(self, file: Any = None, **kwargs: Any) -> None:
        """Print what there is to say, to stderr or an open `file`. Other arguments are Theano's and change nothing."""
        print(self, file=file or sys.stderr)

    def __str__(self) -> str:
        each = self.seconds / self.calls * 1e6 if self.calls else 0.0
        loops = f", {self.steps} steps of loops" if self.steps else ""
        return f"{self.calls} calls, {self.seconds:.6f} s, {each:.2f} microseconds a call{loops}"


# --- callables --------------------------------------------------------------------------------------------------------
# What `function` returns: a graph that can be called.
#
# In: a `Kernel` and a `Convention`. Out: a `Function`, which converts arguments and explains what is wrong with them;
# `Interpreted`, which runs the graph node by node.


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
    "assembly", "container", "copy", "explain", "finder", "free", "graph", "input_storage", "maker", "memory", "mode",
    "name", "outputs", "profile", "shared", "source", "text", "value", "where",
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
    waiting: Mapping[int, Array] = MappingProxyType({})
    """What the next call takes for inputs that it leaves out, by position, in place of their defaults."""

    trust_input = False
    """Theano's switch that leaves out checks of arguments; here they cost nothing, and it changes nothing."""

    of_mode: ClassVar[type[Function]]
    """The class that a mode has, of which this is one (making.py)."""

    def __init_subclass__(cls, mode: Mode | None = None) -> None:
        cls.__doc__ = Description(cls.__doc__)  # type: ignore[assignment]
        if mode is not None:
            cls.mode, cls.of_mode = mode, cls

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
        return self.of_mode

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

    def __copy__(self) -> Function:
        """`copy`, whose states are its own."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """The same function over deep copies of its shared variables."""
        twin: Function = HOOKS.states.deep_copied(self, memo)
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickle has the graph with its shared variables and their values; the code is found in the cache, or
        compiled, where it is read."""
        return HOOKS.states.reduced(self)

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
        made: Function = HOOKS.states.copy_function(self, swap or {}, delete_updates, name, profile)
        return made

    @property
    def value(self) -> Any:
        """The values of its states and shared variables, by variable or by name: `f.value[w]`, which is `f[w]`. The
        value of an input with a default may be set as well: the next call takes it, and later ones the default."""
        return HOOKS.states.Values(self)

    @property
    def container(self) -> Any:
        """Where they are kept: `f.container[w]` may be the value of an `In` of another function, which shares it. What
        is given at each call is kept nowhere: None, or its default."""
        return HOOKS.states.Containers(self)

    finder = container

    @property
    def input_storage(self) -> list[Any]:
        """Where the inputs are kept, in their order, as `finder` has them."""
        return [self.finder[place] for place in range(len(self.call.inputs))]

    @property
    def unpack_single(self) -> bool:
        """Whether a call gives its one result, and no list (Theano's name)."""
        return self.kernel.returns == "one"

    @property
    def outputs(self) -> Any:
        """An `Out` for each result."""
        return self.maker.outputs

    def fn(self, n_calls: int = 1) -> None:
        """Call it, `n_calls` times, without arguments: what Theano's programs time."""
        for _ in range(n_calls):
            self()

    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that it reads or updates."""
        return list(self.shared)

    @property
    def maker(self) -> Any:
        """What the function was made of, in Theano's words: `f.maker.fgraph` is its graph after rewriting."""
        return HOOKS.maker(self)

    def __getitem__(self, key: Any) -> Any:
        """The value of a state, of a shared variable, or of the default of an input, by variable, name or position."""
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
            value = given.get(position, self.waiting.get(position, item.value))
            if value is REQUIRED:
                raise ArgumentError(f"{self.label}: argument {label(item)} is missing")
            values.append(value)
        return values

    def take_arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], convention: Convention | None = None
    ) -> list[Any]:
        """As `in_order`, of a call that is carried out: the next one has the defaults again."""
        values = self.in_order(args, kwargs, convention)
        if self.waiting:
            self.wait_with({})
        return values

    def wait_with(self, values: Mapping[int, Array]) -> None:
        """Keep what the next call is to take for inputs that it leaves out, and that call alone. Of containers that
        other functions share, these see it too."""
        refilled = getattr(self.waiting, "refilled", None)
        self.waiting = values if refilled is None else refilled(values)

    def default_of(self, place: int) -> Any:
        """What the next call takes for an input that it leaves out."""
        return self.waiting.get(place, self.call.inputs[place].value)

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
        return self.run_values(self.take_arguments(args, kwargs), given)

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
        return f"{self!r}\ninterpreted: one NumPy call for each of {len(node_set(self.kernel.results))} nodes"


class Interpreted(Function, mode="interpreted"):
    """Runs one NumPy call for each node."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.foreign = any(node.op.version for node in node_set(kernel.results))
