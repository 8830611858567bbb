"""`Function`, the base class of all callables that `function` returns, and the interpreted mode.

In: a `Kernel` (the graph) and a `Convention` (its inputs with names and defaults). Out: a callable that converts its
arguments, runs the graph, makes the updates, and explains what is wrong with a call.

    x = T.dvector("x")
    f = graphc.function([x], x * 2, mode="interpreted")
    f([1, 2])       a call with values: array([2., 4.])
    f(x=[1, 2])     the same, by name
    f([[1, 2]])     RankError: argument x (a.py:1) must have 1 dimensions (float64[x.0]); got shape (1, 2)

A call goes through these methods; the modes override the last ones:

    __call__        out= is taken out of the keywords; locks of the shared variables are held meanwhile
    run_arguments   arguments by position and name become one value for each input (in_order)
    run_values      values become aligned, contiguous arrays of the inputs' types (convert_all)
    run_converted   the graph runs on these arrays
    pack            results become one array, a list or a dict
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from time import perf_counter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from graphc.codegen.cache.key import Key
from graphc.codegen.call.bind import OUT
from graphc.codegen.call.locks import run
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
from graphc.ir.node import Array, Node, user_line
from graphc.ir.walk import Graph, node_set
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record


@record()
class Memory:
    """The bytes that a call allocates: `arena` for temporaries (kept for the next call), `outputs`, and their sum."""

    arena: int
    outputs: int
    total: int


class Profile:
    """`f.profile` of a function made with profile=True: its calls, their seconds, the iterations of its loops."""

    __slots__ = ("calls", "seconds", "steps")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.steps = 0

    def add(self, seconds: float) -> None:
        self.calls += 1
        self.seconds += seconds

    def summary(self, file: Any = None, **kwargs: Any) -> None:
        """Print the figures to stderr or an open `file`. Other arguments are Theano's and change nothing."""
        print(self, file=file or sys.stderr)

    def __str__(self) -> str:
        each = self.seconds / self.calls * 1e6 if self.calls else 0.0
        loops = f", {self.steps} steps of loops" if self.steps else ""
        return f"{self.calls} calls, {self.seconds:.6f} s, {each:.2f} microseconds a call{loops}"


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
    "assembly", "cancel", "container", "copy", "explain", "export", "finder", "free", "graph", "input_storage",
    "is_ready", "maker", "memory", "mode", "name", "outputs", "profile", "save", "shared", "source", "text", "value",
    "where",
)  # fmt: skip
"""The public attributes of a function, which `dir` and `help` list."""


def building() -> Any:
    """The module that compiles what is not there. Loaded functions do without it, and without the ops of graphs."""
    return import_module("graphc.codegen.pipeline.build")


def interpreting() -> Any:
    """The interpreter, which compiled functions need for messages alone."""
    return import_module("graphc.ir.interpret")


class Description:
    """The `__doc__` of function classes: the class has its docstring, a function the text of `describe`."""

    def __init__(self, doc: str | None) -> None:
        self.doc = doc

    def __get__(self, function: Function | None, kind: object) -> str | None:
        return self.doc if function is None else function.describe()


class Parameters:
    """The `__signature__` of functions, which `inspect.signature`, `help` and SciPy's fits ask for: the inputs by their
    names, with their defaults. An input without a name can be given by position alone, as can those before it."""

    def __get__(self, function: Function | None, kind: object) -> Any:
        if function is None:
            raise AttributeError("__signature__")
        inspect = import_module("inspect")  # which few programs need
        kinds, call = inspect.Parameter, function.call
        names = {place: name for name, place in call.positions.items() if name.isidentifier()}
        nameless = [place for place in range(len(call.inputs)) if place not in names]
        required = [place for place, item in enumerate(call.inputs) if item.value is REQUIRED]
        parameters = []
        for place, item in enumerate(call.inputs):
            is_nameless = place <= max(nameless, default=-1)
            default = kinds.empty if place <= max(required, default=-1) else item.value
            how = kinds.POSITIONAL_ONLY if is_nameless else kinds.POSITIONAL_OR_KEYWORD
            parameters.append(kinds(names.get(place, f"argument_{place}"), how, default=default))
        return inspect.Signature(parameters)


class Function:
    """A compiled, interpreted or generated graph. Call it with one argument for each input, by position or name.

    mode: "compiled", "interpreted" or "python". name: the argument `name` of `function`. where: the line of the program
    that made it. profile: a `Profile` where it was made with profile=True, else None.
    """

    mode: Mode = "interpreted"
    waiting: Mapping[int, Array] = MappingProxyType({})
    """Values, by position of the input, that replace the defaults in the next call (`f.value[x] = 3` sets one)."""

    trust_input = False
    """Theano's switch to leave out checks of arguments. It changes nothing: native code checks them at no cost."""

    __signature__ = Parameters()
    of_mode: ClassVar[type[Function]]
    """The class of functions in this mode; subclasses made for one purpose (`Direct`) do not count."""

    def __init_subclass__(cls, mode: Mode | None = None) -> None:
        cls.__doc__ = Description(cls.__doc__)  # type: ignore[assignment]
        if mode is not None:
            cls.mode, cls.of_mode = mode, cls

    def __dir__(self) -> list[str]:
        return [*(name for name in super().__dir__() if name.startswith("__")), *PUBLIC]

    def describe(self) -> str:
        """The text that `help(f)` shows: its types, then its public attributes."""
        results = ", ".join(str(node.type) for node in self.kernel.outputs) or "nothing"
        changed = ", ".join(leaf.name or str(leaf.type) for leaf in self.kernel.updated)
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
        self.steps: Any = None
        updated = set(kernel.updated)
        variables = [leaf for leaf in kernel.shared if isinstance(leaf, SharedVariable)]
        self.wanted = {leaf.lock: leaf in updated for leaf in variables}
        self.foreign = False

    def locked(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `call(*args, **kwargs)` under the locks of the shared variables: shared for those that are read,
        exclusive for those that are updated. Exclusive for all where the graph calls Python functions of the user, for
        these may call functions that update what this one reads."""
        if not self.wanted:
            return call(*args, **kwargs)
        wanted = dict.fromkeys(self.wanted, True) if self.foreign else self.wanted
        return run(wanted, self.foreign, call, *args, **kwargs)

    @property
    def kind(self) -> type[Function]:
        """The class of functions in the mode of this one: the first argument of `make_function`."""
        return self.of_mode

    @property
    def graph(self) -> Graph:
        """The graph as it was written: inputs, then outputs and the new values of the updated variables."""
        return Graph(self.kernel.inputs, self.kernel.results)

    @property
    def text(self) -> str:
        """The graph, printed."""
        return import_module("graphc.ir.text").print_graph(self.graph)

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
        """Remove `out=` from the keywords, unless an input has that name; an array or None for each output."""
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
        """`copy.copy(f)` is `f.copy()`: another function with states of its own."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """`copy.deepcopy(f)`: the same function over deep copies of its shared variables."""
        return HOOKS.states.deep_copied(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the graph with the shared variables and their values. Unpickling takes the code from the cache, or
        compiles it."""
        return HOOKS.states.reduced(self)

    def save(self, path: Any, values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write the function to a file: its graph, the values of its shared variables and its machine code.
        `graphc.load` makes the function again in any process, without the source of the program. It needs no compiler
        if the code fits. The file replaces an existing file atomically.

        path: a path, or a file that is open for writing bytes. values: "inside" writes one file; "beside" writes shared
        values and large constants to `path + ".values"`. targets: names of processors ("haswell"; `graphc info` lists
        them) for which code is compiled too. `graphc.load` takes the best code that the processor can run.

        Raises GraphcError for a function that calls Python functions of the program, for a function with a profile of
        its loops or of a checking mode, for trees other than tuples, lists and dicts, and for an unknown target;
        CompileError if code for a target cannot be made; OSError if the file cannot be written.

            x = T.dvector("x")
            graphc.function([x], x * 2).save("double.graphc")
            graphc.load("double.graphc")([1.0, 2.0])      # array([2., 4.])
        """
        HOOKS.save(self, path, values, targets)

    def export(
        self,
        path: Any,
        language: str = "c",
        target: str | None = None,
        blas: bool = False,
        strided: Collection[str] | bool = (),
    ) -> list[str]:
        """Write a C library that computes the function without Python: a header, an object file, a static and a shared
        library, files for pkg-config and CMake, and an example program. Or write a Python module that computes it with
        NumPy or numba alone. Return the paths.

        path: a folder and the name of the new function. "lib/model" gives model(...), in model.h or model.py in lib.
        language: "c" or "python". target: a name of the option `target`, "native" for this processor, or "aarch64".
        The default is the option. blas: large products and factorisations call the BLAS and LAPACK (with 32-bit
        integers) with which the program is linked. Otherwise products are graphc's own. strided: for C, the names of
        the arguments and results (as the header has them) whose strides in bytes are parameters too; True for all
        arrays. The workspace then has room for a contiguous copy of each.

        The C function allocates no memory, and several threads may call it at the same time. Shared variables and
        states (`In(update=...)`) are fields of a struct of the caller. The leaves of trees are parameters, in order.
        The shared library is missing if there is no C compiler for the target.

        The Python module has the generated source. CPython runs its loops, so it is for reading, checks and small
        arrays; its function `use_numba()` compiles them with numba. Shared variables are its dict `state`. Random
        streams give the same numbers.

        Raises GraphcError, before it writes a file, for a function that needs Python, SciPy or LAPACK. The
        message names the op: ops of the program, SciPy's special functions, sizes that depend on values,
        factorisations (in C without `blas`). Also for an unknown target or language, a name in `strided` that no array
        has, and a path that ends in no name.

            x = T.dvector("x")
            graphc.function([x], graphc.grad((x**2).sum(), x)).export("lib/model", target="haswell")
        """
        return HOOKS.export(self, path, language, target, blas, strided)

    def pointer(self, signature: str | None = None, values: Sequence[Any] = ()) -> Any:
        """Return a `Pointer`: the compiled function as a C function. Its `address` is a number. `ctypes`, `capsule`
        (for Cython and cffi) and `scipy` (`scipy.LowLevelCallable`) give it in the forms of other libraries.

        signature: a C declaration, such as "double f(double x)" or "int f(int64_t n, const double x[n], double *out)".
        Its arrays and numbers are first the inputs, then the results. Sizes stand in brackets. By default graphc
        chooses a declaration, which is in `p.declaration`. values: values of the last inputs. They are copied, and
        these inputs are no parameters of the C function.

        A C function of type int or int64_t returns a status: 0 for success (`Pointer` lists the others). A C function
        that returns a number sets a Python exception if it fails. The code lives as long as the `Pointer` or its
        `ctypes`. Several threads may call it at the same time.

        Raises ArgumentError if the declaration does not fit (the message names the parameter), and for a function that
        calls Python, has shared variables, writes its inputs, or is not compiled as one kernel.

            x = T.dscalar("x")
            p = graphc.function([x], x**2).pointer("double f(double x)")
            scipy.integrate.quad(p.scipy, 0, 1)[0]      # 0.33333333333333337
        """
        return HOOKS.pointer(self, signature, values)

    def as_numba(self, status: bool = False) -> Any:
        """Return a function of numba's that calls this one, for use in `@njit` and from Python: nopython, without the
        GIL. Several results are a tuple. Arrays that are not contiguous are copied.

        status: return (status, results...) and raise nothing: 0, or 1 where a check failed, -1 where a size does not
        fit, when the results are anything. Loops over `prange` need it, since numba loses exceptions there. Raises
        ArgumentError as `pointer` does. numba raises its TypingError for arguments of other dtypes. A call raises
        ValueError where sizes of inputs do not agree, RuntimeError where another check fails.

            g = f.as_numba()
            total = numba.njit(lambda x: g(x) + 1.0)
        """
        return HOOKS.as_numba(self, status)

    def as_ufunc(self, *others: Function, identity: int | None = None) -> Any:
        """Return a `numpy.ufunc` with the function, which is one of scalars, as its inner loop. It broadcasts, casts,
        takes `out`, `where` and `axis`, and reduces where it has two inputs and one result.

        others: further functions, whose dtypes differ, for loops of their own. identity: 0 or 1, what a reduction of
        nothing gives; None for an error. Raises ArgumentError for functions of arrays or of shared variables. A call
        raises RuntimeError where a check of the graph fails.

            u = graphc.function([x, y], x * T.exp(y)).as_ufunc()
            u(np.ones((3, 1)), np.arange(4))        an array of 3 times 4
        """
        return HOOKS.as_ufunc(self, others, identity)

    def copy(
        self,
        share_memory: bool = False,
        swap: Mapping[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Function:
        """Return the same function over other shared variables, or without its updates. It shares the compiled code.

        swap: {shared variable of this function: another of the same type}. delete_updates: leave out the updates; this
        is another graph, which is compiled. name: by default the name of this function and " copy". States of its own
        (`In(update=...)`) begin anew. share_memory: accepted for Theano's sake. Raises GraphValueError for a variable
        that the function does not have, GraphTypeError for one of another type.

            w, v = graphc.shared(1.0), graphc.shared(5.0)
            f = graphc.function([], w * 2)
            f.copy(swap={w: v})()     # 10.0
        """
        return HOOKS.states.copy_function(self, swap or {}, delete_updates, name, profile)

    @property
    def value(self) -> Any:
        """The values of states and shared variables, by variable or name: `f.value[w]`, for short `f[w]`. The value of
        an input with a default can be set too: the next call takes it, later ones the default again."""
        return HOOKS.states.Values(self)

    @property
    def container(self) -> Any:
        """The containers of these values. `f.container[w]` as the value of an `In` of another function makes both
        functions share it. The container of an input that each call must give holds None."""
        return HOOKS.states.Containers(self)

    finder = container

    @property
    def input_storage(self) -> list[Any]:
        """The containers of the inputs, in order (Theano's name)."""
        return [self.finder[place] for place in range(len(self.call.inputs))]

    @property
    def unpack_single(self) -> bool:
        """True where a call returns its one result, not a list (Theano's name)."""
        return self.kernel.returns == "one"

    @property
    def outputs(self) -> Any:
        """An `Out` for each result, as Theano has it."""
        return self.maker.outputs

    @property
    def is_ready(self) -> bool:
        """True where the next call runs the code of its mode; False for a function that other processes compile
        (`options.compile = "background"`) until they have done so."""
        return True

    def cancel(self) -> None:
        """Give up compiling in other processes: the function stays interpreted. Does nothing for one that is ready."""

    def finished(self) -> Function:
        """Return the function of the compiled code, which is waited for; itself where there is no other."""
        return self

    def when_ready(self, follow: Callable[[Function], object]) -> None:
        """Call `follow(function)` with the function of the compiled code when that is there; never where it is given
        up."""
        follow(self)

    def fn(self, n_calls: int = 1) -> None:
        """Call it `n_calls` times without arguments, as Theano's programs do to time a function."""
        for _ in range(n_calls):
            self()

    def get_shared(self) -> list[SharedVariable]:
        """The shared variables that it reads or updates."""
        return list(self.shared)

    @property
    def maker(self) -> Any:
        """Theano's record of the parts of a function: `f.maker.fgraph` is the graph after rewriting."""
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
        """Return one value for each input, from positions, names and defaults. Raises ArgumentError for an input that
        has no value or two, and for a name that no input has."""
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
        """Return `in_order`, and forget the values that were set for this call alone (`waiting`)."""
        values = self.in_order(args, kwargs, convention)
        if self.waiting:
            self.wait_with({})
        return values

    def wait_with(self, values: Mapping[int, Array]) -> None:
        """Set the values, by position, that the next call takes in place of defaults, also for shared containers."""
        refilled = getattr(self.waiting, "refilled", None)
        self.waiting = values if refilled is None else refilled(values)

    def default_of(self, place: int) -> Any:
        """The value that the next call takes for the input at `place` where it leaves it out."""
        return self.waiting.get(place, self.call.inputs[place].value)

    def bind_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Array]:
        """Return the arguments of a call as one array for each input, of its type. Raises where they do not fit."""
        return self.convert_all(self.in_order(args, kwargs))

    def convert_all(self, values: Sequence[Any]) -> list[Array]:
        """Convert one value for each input to arrays of the inputs' types: aligned, C-contiguous."""
        return self.with_shared([convert(value, item) for value, item in zip(values, self.call.inputs, strict=True)])

    def with_shared(self, arrays: list[T]) -> list[T]:
        """Return `arrays`, after `SharedVariable.mend` made each shared value an array that native code can use."""
        for leaf in self.kernel.shared:
            if isinstance(leaf, SharedVariable):
                leaf.mend()
        return arrays

    def values(self, arrays: Sequence[Array]) -> dict[Node, Array]:
        """The value of each leaf of the graph: `arrays` for the inputs, the current values of shared variables."""
        own: dict[Node, Array] = {node: node.cell[0] for node in self.kernel.shared if isinstance(node, SharedVariable)}
        return {**dict(zip(self.kernel.inputs, arrays, strict=True)), **own}

    def run_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], given: list[Array | None]) -> list[Array]:
        """Run the graph on the arguments of a call. Results go to the arrays in `given` that are not None."""
        return self.run_values(self.take_arguments(args, kwargs), given)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """Run the graph on one value for each input, which is converted; else as `run_converted`."""
        return self.run_converted(self.convert_all(values), given)

    def run_converted(self, arrays: list[Array], given: list[Array | None]) -> list[Array]:
        """Run the graph on arrays of the inputs' types, make the updates, and return the outputs. An output is written
        to its array in `given`, where that is not None."""
        results = self.compute(arrays)
        count = len(self.kernel.outputs)
        check_shapes(given, [value.shape for value in results[:count]], self.kernel.outputs)
        outputs = write_results(given, results[:count])
        for (leaf, _), value in zip(self.kernel.updates, results[count:], strict=True):
            assert isinstance(leaf, SharedVariable)
            leaf.cell[0] = value
        return outputs

    def compute(self, arrays: list[Array]) -> list[Array]:
        """Run the graph node by node; return the outputs, then the new values of updated variables."""
        interpreter = interpreting()
        if self.steps is None:
            self.steps = interpreter.plan_steps(self.graph)
        return interpreter.run_steps(self.steps, self.values(arrays))

    def pack(self, results: list[Array]) -> Any:
        """Return the results as the outputs were asked for: one array, a list, a dict, or None."""
        if self.call.keys is not None:
            return dict(zip(self.call.keys, results, strict=True))
        return {"one": results[0] if results else None, "list": results, "none": None}[self.kernel.returns]

    @property
    def source(self) -> str:
        """The generated Python source of all stages. The interpreted mode does not use it, but gives it as well."""
        build = building()
        return "\n\n".join(build.build_python(stage).source for stage in build.stages_of(self.kernel))

    @property
    def assembly(self) -> str:
        """The assembly of all stages. The interpreted and python modes do not use it, but give it as well."""
        build = building()
        return "\n".join(build.compilation().build_assembly(stage) for stage in build.stages_of(self.kernel))

    def memory(self, *sizes: Any) -> Memory:
        """Return the bytes that a call with inputs of these sizes would allocate, without running it.

        sizes: the shape of each input in order, or one dict of shapes by name. An input whose value decides sizes
        (`zeros((n,))`) is given by its value in place of its shape. Raises ArgumentError, ShapeError or GraphTypeError,
        which name the variable; GraphcError in interpreted mode, where each value of the graph is an array of its own.

            x = T.dmatrix("x")
            graphc.function([x], x + 1).memory((100, 50))     # Memory(arena=0, outputs=40000, total=40000)
        """
        raise GraphcError(f"{self.label}: the memory of a function in {self.mode} mode is not planned")

    def sized_arguments(self, sizes: Sequence[Any], read: Collection[int]) -> list[Array]:
        """Convert the arguments of `memory` to arrays: a shape becomes a broadcast array without elements of its own.
        read: numbers of the inputs whose values decide sizes, which must be given by value."""
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
        """Free the memory kept between calls: the arena of this function, and that for large results and packed panels
        of large products, which all functions share. The next call allocates it again."""

    def explain(self) -> str:
        """Return a report of the compilation: phases with their times, rules that fired, the plan with its reasons."""
        return f"{self!r}\ninterpreted: one NumPy call for each of {len(node_set(self.kernel.results))} nodes"


@record(eq=False)
class FunctionRequest:
    """A function that is to be made in the compiled mode. stages: the kernels that run one after the other. key: that
    of `kernel` in the cache. is_cached: its code is there. make: makes the function, which compiles what is missing."""

    kernel: Kernel
    call: Convention
    profile: bool
    stages: Sequence[Kernel]
    key: Key
    is_cached: bool
    make: Callable[[], Function]


class Interpreted(Function, mode="interpreted"):
    """A function that runs one NumPy call for each node: the specification of what the other modes compute."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.foreign = any(node.op.version for node in node_set(kernel.results))
