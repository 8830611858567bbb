"""`function`: a graph to a callable.

In: inputs, outputs, updates and the rest of Theano's arguments. Out: a `Function`, whose call goes straight to native
code where its arguments are arrays of the declared types, and through Python, which converts or explains, where not.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

from graphc.codegen.build import build_native, build_python, cold, shared_of
from graphc.codegen.callback import CALLBACK, address, native_callback
from graphc.codegen.kernel import Built, Kernel
from graphc.codegen.launch import bind, launch_python, overlapping
from graphc.dtypes import can_cast_safely, fits, is_float
from graphc.errors import (
    ArgumentError,
    GraphcError,
    GraphTypeError,
    MissingInputError,
    ShapeError,
    UnusedInputError,
    UpdateError,
)
from graphc.interpret import Steps, check_guards, interpret, plan_steps, run_steps
from graphc.ir.node import (
    FUNCTIONS,
    INPUT,
    LEAVES,
    SHARED,
    SIZE,
    Array,
    Node,
    describe,
    size_owner,
    user_line,
    variable,
)
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, as_size_node, nodes_of, substitute, toposort
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import broadcast_to
from graphc.options import options
from graphc.record import record, replace
from graphc.shared import SharedVariable
from graphc.values import as_array

Mode = Literal["compiled", "interpreted", "python"]
MODES: dict[str, Mode] = {
    "compiled": "compiled",
    "interpreted": "interpreted",
    "python": "python",
    "FAST_RUN": "compiled",
    "FAST_COMPILE": "interpreted",
    "JIT": "compiled",
}


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()
"""The default of an input that every call must give."""


@record(eq=False)
class In:
    """An input with more to say: a default `value`, a `name` for keyword calls, whether a lossy cast is allowed.

    `strict` refuses any conversion. `borrow` and `mutable` are accepted for Theano's sake: graphc writes no input.
    """

    variable: Node
    value: Any = REQUIRED
    name: str | None = None
    allow_downcast: bool | None = None
    strict: bool = False
    borrow: bool = False
    mutable: bool = False


@record(eq=False)
class Out:
    """An output. `borrow` is accepted for Theano's sake: every call returns arrays of its own."""

    variable: Any
    borrow: bool = False


@record()
class Convention:
    """How a function is called: its inputs, the position of each name, and the keys of a dict of outputs."""

    inputs: tuple[In, ...]
    positions: Mapping[str, int]
    keys: tuple[str, ...] | None


def function(
    inputs: Sequence[Any] | Node = (),
    outputs: Any = None,
    mode: str | None = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: bool | Sequence[Node] = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: bool | None = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
) -> Function:
    """A callable that computes `outputs` from `inputs` and then carries out `updates`.

    inputs: variables, or `In` records. outputs: one value (the call returns an array), a list or tuple (a list), a dict
    (a dict), or None (None). updates: a dict, list or tuple of pairs (shared variable, new value); outputs are computed
    from the values before the updates, which are all made at once. givens: pairs (variable, replacement), replaced
    before anything else. mode: "compiled", "interpreted" or "python"; options.mode where None. no_default_updates:
    leave out the default updates of all, or of the listed, shared variables. allow_input_downcast: True converts
    arguments with loss, False never, None only Python numbers to floats. on_unused_input: "raise", "warn" or "ignore".
    profile: count and time the calls (`f.profile`). accept_inplace, rebuild_strict, trust_input: for Theano's sake.

    Raises ArgumentError, GraphTypeError, MissingInputError, UnusedInputError or UpdateError, which name the variable
    and the line that made it. Calls raise ArgumentError, GraphTypeError, ShapeError or IndexOutOfBounds.
    """
    records = [item if isinstance(item, In) else In(item) for item in _listed(inputs)]
    values, keys, returns = _outputs(outputs)
    pairs = _updates(updates)
    replaced = _givens(givens)
    records, replaced = _free_inputs(records, replaced)
    values, pairs = _replace(values, pairs, _with_sizes(_resolve(replaced), {record.variable for record in records}))
    pairs = _default_updates(values, pairs, no_default_updates)
    _check_inputs(records, values, pairs, replaced, on_unused_input or options.on_unused_input)
    graph_inputs = tuple(record.variable for record in records)
    kernel = Kernel(name or "function", graph_inputs, shared_of(values, pairs), tuple(values), tuple(pairs), returns)
    chosen = MODES.get(mode or options.mode)
    if chosen is None:
        raise ArgumentError(f"mode {mode!r}: must be one of {', '.join(MODES)}")
    records = [_with_downcast(record, allow_input_downcast) for record in records]
    call = Convention(tuple(records), _names(records), keys)
    kind: type[Function] = {"compiled": Compiled, "interpreted": Interpreted, "python": Generated}[chosen]
    return kind(kernel, call, bool(profile))


# The arguments of `function` ----------------------------------------------------------------------------------------


def _listed(inputs: Any) -> list[Any]:
    if isinstance(inputs, str) or not isinstance(inputs, Iterable | In):
        raise GraphTypeError(f"inputs must be a list of variables; got {inputs!r}")
    items = [inputs] if isinstance(inputs, Node | In) else list(inputs)
    for item in items:
        variable = item.variable if isinstance(item, In) else item
        if not isinstance(variable, Node):
            raise GraphTypeError(f"inputs must be variables; got {variable!r}")
    return items


def _outputs(outputs: Any) -> tuple[list[Node], tuple[str, ...] | None, str]:
    def node(value: Any) -> Node:
        return as_node(value.variable if isinstance(value, Out) else value)

    if outputs is None:
        return [], None, "none"
    if isinstance(outputs, Mapping):
        if not all(isinstance(key, str) for key in outputs):
            raise GraphTypeError("the keys of a dict of outputs must be strings")
        return [node(value) for value in outputs.values()], tuple(outputs), "list"
    if isinstance(outputs, list | tuple):
        return [node(value) for value in outputs], None, "list"
    return [node(outputs)], None, "one"


def _pairs(what: str, items: Any) -> list[tuple[Any, Any]]:
    if items is None:
        return []
    if isinstance(items, Node | str) or not isinstance(items, Iterable):
        raise GraphTypeError(f"{what} must be a dict or pairs; got {items!r}")
    found = list(items.items()) if isinstance(items, Mapping) else list(items)
    for pair in found:
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            raise GraphTypeError(f"{what} must be a dict or pairs; got {pair!r} among them")
    return [(left, right) for left, right in found]


def _updates(updates: Any) -> list[tuple[Node, Node]]:
    result: dict[Node, Node] = {}
    for shared, new in _pairs("updates", updates):
        if not isinstance(shared, SharedVariable):
            what = describe(shared) if isinstance(shared, Node) else repr(shared)
            raise UpdateError(f"only a shared variable can be updated; got {what}")
        if shared in result:
            raise UpdateError(f"{describe(shared)} is updated twice")
        result[shared] = _update_value(shared, new)
    return list(result.items())


def _update_value(shared: SharedVariable, new: Any) -> Node:
    value = new if isinstance(new, Node) else as_node(new)
    if isinstance(new, bool | int) or (isinstance(new, float) and is_float(shared.dtype)):
        value = cast(value, shared.dtype) if fits(new, shared.dtype) else value
    if value.dtype != shared.dtype and can_cast_safely(value.dtype, shared.dtype):
        value = cast(value, shared.dtype)
    if value.dtype != shared.dtype or value.ndim != shared.ndim:
        raise UpdateError(
            f"the update of {describe(shared)} must have its type {shared.type}; "
            f"{describe(value)} has type {value.type}"
        )
    axis = _differing_axis(shared, value)
    if axis is not None:
        raise UpdateError(
            f"the update of {describe(shared)} must have size {shared.type.shape[axis]} along axis {axis}; "
            f"{describe(value)} has type {value.type}"
        )
    return _held_to(shared, value, "update")


def _differing_axis(variable_: Node, value: Node) -> int | None:
    """The first axis along which the two have different static sizes."""
    for axis, (size, new_size) in enumerate(zip(variable_.type.shape, value.type.shape, strict=True)):
        if isinstance(size, int) and isinstance(new_size, int) and size != new_size:
            return axis
    return None


def _held_to(variable_: Node, value: Node, what: str) -> Node:
    """`value`, checked at each call to have the static sizes of `variable_`."""
    pairs = zip(variable_.type.shape, value.type.shape, strict=True)
    target = tuple(size if isinstance(size, int) else own for size, own in pairs)
    if target == value.type.shape:
        return value
    checked = broadcast_to(value, target)
    checked.name = checked.name or f"{what} of {variable_.name or 'an unnamed variable'}"
    return checked


def _givens(givens: Any) -> dict[Node, Node]:
    result: dict[Node, Node] = {}
    for variable_, value in _pairs("givens", givens):
        if not isinstance(variable_, Node):
            raise GraphTypeError(f"givens replace variables; got {variable_!r}")
        node = as_node(value)
        if node.dtype != variable_.dtype and can_cast_safely(node.dtype, variable_.dtype):
            node = cast(node, variable_.dtype)
        same = node.dtype == variable_.dtype and node.ndim == variable_.ndim
        if not same or _differing_axis(variable_, node) is not None:
            raise GraphTypeError(
                f"givens: {describe(node)} of type {node.type} cannot replace {describe(variable_)} "
                f"of type {variable_.type}"
            )
        result[variable_] = _held_to(variable_, node, "given value")
    return result


def _resolve(replaced: Mapping[Node, Node]) -> dict[Node, Node]:
    """Replacements in which what is replaced itself has been; a variable within its own replacement stays.

    Raises CycleError where variables would replace each other.
    """
    needs = {
        node: [other for other in nodes_of([value]) if other in replaced and other is not node]
        for node, value in replaced.items()
    }
    done: dict[Node, Node] = {}
    for node in toposort(replaced, needs.__getitem__, describe):
        (done[node],) = substitute([replaced[node]], {other: done[other] for other in needs[node]})
    return done


def _with_sizes(replaced: Mapping[Node, Node], inputs: set[Node]) -> dict[Node, Node]:
    """`replaced`, and where a computed value is replaced whose sizes come from leaves that are no inputs, its sizes."""

    def is_known(size: Node) -> bool:
        owners = [size_owner(leaf) for leaf in nodes_of([size]) if leaf.op is SIZE]
        return all(owner is not None and (owner.op is SHARED or owner in inputs) for owner in owners)

    result = dict(replaced)
    for before, after in replaced.items():
        for old, new in zip(before.type.shape, after.type.shape, strict=True):
            if before.args and isinstance(old, Node) and old is not new and not is_known(old):
                result.setdefault(old, as_size_node(new))
    return result


def _free_inputs(records: list[In], replaced: dict[Node, Node]) -> tuple[list[In], dict[Node, Node]]:
    """Inputs that are values of the graph become fresh variables that replace them."""
    free = []
    for item in records:
        node = item.variable
        if node.op is SHARED:
            raise GraphTypeError(f"{describe(node)} is shared and cannot be an input; use givens or set_value")
        if node.op is not INPUT:
            if node.op in LEAVES:
                raise GraphTypeError(f"{describe(node)} cannot be an input")
            sizes = tuple(size if isinstance(size, int) else None for size in node.type.shape)
            fresh = variable(node.dtype, sizes, node.name)
            replaced = {**replaced, node: fresh}
            item = replace(item, variable=fresh)
        free.append(item)
    return free, replaced


def _with_downcast(record: In, allow: bool | None) -> In:
    return record if record.allow_downcast is not None else replace(record, allow_downcast=allow)


def _replace(
    values: list[Node], pairs: list[tuple[Node, Node]], replaced: Mapping[Node, Node]
) -> tuple[list[Node], list[tuple[Node, Node]]]:
    if not replaced:
        return values, pairs
    new = substitute([*values, *(value for _, value in pairs)], replaced)
    return new[: len(values)], [(leaf, value) for (leaf, _), value in zip(pairs, new[len(values) :], strict=True)]


def _default_updates(
    values: list[Node], pairs: list[tuple[Node, Node]], excluded: bool | Sequence[Node]
) -> list[tuple[Node, Node]]:
    """The updates with those that shared variables in the graph bring along."""
    if excluded is True:
        return pairs
    skip = set(() if isinstance(excluded, bool) else excluded)
    while True:
        roots = [*values, *(value for _, value in pairs)]
        known = {leaf for leaf, _ in pairs} | skip
        extra = [
            (node, _update_value(node, node.default_update))
            for node in nodes_of(roots)
            if isinstance(node, SharedVariable) and node not in known and node.default_update is not None
        ]
        if not extra:
            return pairs
        pairs = [*pairs, *extra]


def _check_inputs(
    records: Sequence[In],
    values: Sequence[Node],
    pairs: Sequence[tuple[Node, Node]],
    replaced: Mapping[Node, Node],
    on_unused: str,
) -> None:
    if on_unused not in ("raise", "warn", "ignore"):
        raise ArgumentError(f"on_unused_input={on_unused!r}: must be 'raise', 'warn' or 'ignore'")
    inputs = [record.variable for record in records]
    for position, node in enumerate(inputs):
        if node in inputs[:position]:
            raise ArgumentError(f"{describe(node)} is an input twice")
    nodes = nodes_of([*values, *(new for _, new in pairs)])
    sizes = {node: leaf for leaf in inputs for node in leaf.type.shape if isinstance(node, Node)}
    known = set(inputs)
    owned = {size for node in nodes if node.op in (INPUT, SHARED) for size in node.type.shape}
    for node in nodes:
        if node.op is INPUT and node not in known:
            raise MissingInputError(f"the graph needs {describe(node)} of type {node.type}, which is not an input")
        if node.op is SIZE and node not in sizes and node not in owned:
            owner = size_owner(node)
            if owner is not None and owner.op is SHARED:
                continue
            whose = f", but {describe(owner)} is not an input" if owner is not None else ", which is not an input"
            raise MissingInputError(f"the graph needs {describe(node)}{whose}")
    used = set(nodes) | {sizes[node] for node in nodes if node in sizes} | set(replaced)
    unused = [node for node in inputs if node not in used]
    if unused and on_unused != "ignore":
        message = f"the outputs and updates do not use {', '.join(map(describe, unused))}, given as input"
        if on_unused == "raise":
            raise UnusedInputError(f"{message}; on_unused_input='ignore' allows it")
        warnings.warn(message, stacklevel=3)


def _names(records: Sequence[In]) -> dict[str, int]:
    """The keyword of each input; a name two inputs share is no keyword."""
    names = [record.name or record.variable.name for record in records]
    return {name: position for position, name in enumerate(names) if name is not None and names.count(name) == 1}


# Calls --------------------------------------------------------------------------------------------------------------


def _label(record: In) -> str:
    if record.variable.name or not record.name:
        return describe(record.variable).replace("an unnamed input", "without a name")
    return repr(record.name)


def _list(records: Sequence[In]) -> str:
    return ", ".join(map(_label, records)) or "none"


def convert(value: Any, record: In) -> Array:
    """An argument as an aligned C-contiguous array of its input's type; an error that names the input where not."""
    node = record.variable
    what = f"argument {_label(record)}"
    array = as_array(value, node.dtype, what, strict=record.strict, allow_downcast=record.allow_downcast)
    if array.ndim != node.ndim:
        raise GraphTypeError(f"{what} must have {node.ndim} dimensions ({node.type}); got shape {array.shape}")
    for axis, size in enumerate(node.type.shape):
        if isinstance(size, int) and array.shape[axis] != size:
            raise ShapeError(f"{what} must have size {size} along axis {axis} ({node.type}); got shape {array.shape}")
    return array


class Function:
    """A compiled, interpreted or generated graph. Call it with one argument for each input, by position or name."""

    mode: Mode = "interpreted"

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        self.kernel = kernel
        self.call = call
        self.name = kernel.name
        self.where = user_line()
        self.profile = Profile() if profile else None
        self.steps: Steps | None = None

    @property
    def graph(self) -> Graph:
        """The graph as it was written: inputs, then outputs and the new values of the updated variables."""
        return Graph(self.kernel.inputs, self.kernel.results)

    @property
    def text(self) -> str:
        """The graph, printed."""
        return print_graph(self.graph)

    @property
    def shared(self) -> tuple[Node, ...]:
        """The shared variables that the function reads or updates."""
        return self.kernel.shared

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        results = self.run_converted(self.bind_arguments(args, kwargs))
        if self.profile is not None:
            self.profile.add(perf_counter() - start)
        return results

    @property
    def label(self) -> str:
        """The name and the line that made the function, for messages."""
        return f"{self.name} ({self.where})" if self.where else self.name

    def __repr__(self) -> str:
        inputs = (f"{item.name or item.variable.name or '?'}: {item.variable.type}" for item in self.call.inputs)
        return f"<{self.mode} function {self.name}({', '.join(inputs)})>"

    def bind_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Array]:
        """The arguments of a call as arrays in the order of the inputs; ArgumentError where they do not fit."""
        records, given = self.call.inputs, dict(enumerate(args))
        if len(args) > len(records):
            raise ArgumentError(f"{self.label} takes {len(records)} arguments ({_list(records)}); got {len(args)}")
        for key, value in kwargs.items():
            position = self.call.positions.get(key)
            if position is None:
                raise ArgumentError(f"{self.label} has no one input called {key!r}; its inputs are {_list(records)}")
            if position in given:
                raise ArgumentError(f"{self.label}: argument {_label(records[position])} is given twice")
            given[position] = value
        arrays = []
        for position, item in enumerate(records):
            value = given.get(position, item.value)
            if value is REQUIRED:
                raise ArgumentError(f"{self.label}: argument {_label(item)} is missing")
            arrays.append(convert(value, item))
        for leaf in self.kernel.shared:
            if isinstance(leaf, SharedVariable):
                leaf.mend()
        return arrays

    def values(self, arrays: Sequence[Array]) -> dict[Node, Array]:
        """What the leaves of the graph stand for in a call."""
        own: dict[Node, Array] = {
            node: node.cell[0] for node in self.kernel.shared if isinstance(node, SharedVariable)
        }
        return {**dict(zip(self.kernel.inputs, arrays, strict=True)), **own}

    def run_converted(self, arrays: list[Array]) -> Any:
        """Run on arrays of the inputs' types."""
        if self.steps is None:
            self.steps = plan_steps(self.graph)
        results = run_steps(self.steps, self.values(arrays))
        count = len(self.kernel.outputs)
        for (leaf, _), value in zip(self.kernel.updates, results[count:], strict=True):
            assert isinstance(leaf, SharedVariable)
            leaf.cell[0] = value
        return self.pack(results[:count])

    def pack(self, results: list[Array]) -> Any:
        """Results in the form the outputs were asked for."""
        if self.call.keys is not None:
            return dict(zip(self.call.keys, results, strict=True))
        return {"one": results[0] if results else None, "list": results, "none": None}[self.kernel.returns]

    @property
    def source(self) -> str:
        """The generated Python source; the interpreted mode has none but gives the one it would have."""
        return build_python(self.kernel).source

    def explain(self) -> str:
        """How the function came about: phases with their times, rules that fired, and the plan with its reasons."""
        return f"{self!r}\ninterpreted: one NumPy call for each of {len(nodes_of(self.kernel.results))} nodes"


class Interpreted(Function):
    """Runs one NumPy call for each node."""


@dataclass(slots=True)
class Profile:
    """Calls of a function made with profile=True, and the seconds they took."""

    calls: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.calls += 1
        self.seconds += seconds

    def __str__(self) -> str:
        each = self.seconds / self.calls * 1e6 if self.calls else 0.0
        return f"{self.calls} calls, {self.seconds:.6f} s, {each:.2f} microseconds a call"


class Generated(Function):
    """Runs the generated source under CPython: the same statements as the native code, for pdb and for reading."""

    mode: Mode = "python"

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.built = build_python(kernel)
        self.failures: list[BaseException] = []
        self.functions = cold().bind_python(self.built, self.failures)
        self.cells = cells_of(kernel, self.built)

    @property
    def source(self) -> str:
        return self.built.source

    def explain(self) -> str:
        return explain(self, self.built)

    def run_converted(self, arrays: list[Array]) -> Any:
        signature = self.built.signature
        separate(self, arrays, self.cells)
        functions = self.functions
        results = launch_python(
            signature, functions["sizes"], functions["kernel"], arrays, self.cells, lambda code, *_: self.fail(arrays)
        )
        return dict(zip(self.call.keys, results, strict=True)) if self.call.keys is not None else results

    def fail(self, arrays: Sequence[Array]) -> Any:
        return explain_failure(self, arrays, self.failures)


def cells_of(kernel: Kernel, built: Built) -> list[list[Any]]:
    """The cells of the shared variables, then those of the constants."""
    own = [node.cell for node in kernel.shared if isinstance(node, SharedVariable)]
    return [*own, *([constant] for constant in built.constants)]


def separate(function: Function, arrays: list[Array], cells: Sequence[list[Any]]) -> bool:
    """Copy what shares memory with a buffer that is about to be written. Whether anything was copied."""
    built = function.built  # type: ignore[attr-defined]
    numbers = overlapping(built.signature, arrays, cells)
    for number in numbers:
        if number < len(arrays):
            arrays[number] = arrays[number].copy()
        else:
            cell = cells[number - len(arrays)]
            cell[0] = cell[0].copy()
    return bool(numbers)


def explain_failure(function: Function, arrays: Sequence[Array], failures: list[BaseException]) -> Any:
    """A check failed in generated code: raise what the interpreter says of the same call."""
    if failures:
        error = failures[0]
        failures.clear()
        raise error
    values = function.values(arrays)
    check_guards(function.graph, values)
    interpret(function.graph, values)
    raise GraphcError(f"{function.label}: a check failed that the interpreter finds in order; please report this")


class Compiled(Function):
    """Runs native code. Calls of the class below go to it directly; what it refuses comes here."""

    mode: Mode = "compiled"
    entry: Any

    def __new__(cls, kernel: Kernel, call: Convention, profile: bool) -> Compiled:
        # A class of its own for each function: its __call__ is the native entry point, with no Python frame between.
        return object.__new__(type("Compiled", (Compiled,), {"__call__": cls.__call__}))

    def __init__(self, kernel: Kernel, call: Convention, profile: bool) -> None:
        super().__init__(kernel, call, profile)
        self.built, load_code = build_native(kernel)
        self.failures: list[BaseException] = []
        self.callbacks = {
            f"{CALLBACK}{n}": native_callback(node, self.failures) for n, node in enumerate(self.built.calls)
        }
        self.library = load_code({name: address(callback) for name, callback in self.callbacks.items()})
        self.cells = cells_of(kernel, self.built)
        self.entry = bind(self.library, self.built.signature, self.cells, self.refuse, self.failed)
        if self.profile is None and call.keys is None:
            type(self).__call__ = self.entry  # type: ignore[method-assign]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        results = self.entry(*args, **kwargs)
        if self.profile is not None:
            self.profile.add(perf_counter() - start)
        return dict(zip(self.call.keys, results, strict=True)) if self.call.keys is not None else results

    def refuse(self, /, *args: Any, **kwargs: Any) -> Any:
        """Arguments that the entry point does not take as they are: convert them, or say what is wrong."""
        if self in _converted.functions:
            raise GraphcError(f"{self.name}: converted arguments were refused; please report this")
        arrays = self.bind_arguments(args, kwargs)
        separate(self, arrays, self.cells)
        _converted.functions.add(self)
        try:
            return self.entry(*arrays)
        finally:
            _converted.functions.discard(self)

    def failed(self, code: int, *args: Any) -> Any:
        """Check number `code` failed, or a size is absurd (-1): raise what explains it."""
        _converted.functions.discard(self)
        arrays = self.bind_arguments(args, {})
        if code < 0 and not self.failures:
            check_guards(self.graph, self.values(arrays))
            raise MemoryError(f"{self.label}: a result would need more memory than there can be")
        return explain_failure(self, arrays, self.failures)

    @property
    def source(self) -> str:
        if not self.built.source:  # from the cache: generated again, so that its comments name this program's lines
            return build_python(self.kernel).source
        return self.built.source

    @property
    def assembly(self) -> str:
        """The machine code as text."""
        text: str = cold().build_assembly(self.kernel)
        return text

    def explain(self) -> str:
        return explain(self, self.built)


class _Converted(threading.local):
    """The functions whose converted arguments are on their way to the entry point, in each thread."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()


_converted = _Converted()


def explain(function: Function, built: Built) -> str:
    """The report of a build as text."""
    report = built.report
    phases = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in report.phases.items())
    lines = [repr(function), f"{report.origin}: {phases}"]
    lines += ["rules that fired:", *(f"  {line}" for line in report.fired or ["none"])]
    lines += ["plan:", *(f"  {line}" for line in plan_of(function, built).splitlines())]
    return "\n".join(lines)


def plan_of(function: Function, built: Built) -> str:
    """The plan, made again where the code came from the cache."""
    return built.report.plan or build_python(function.kernel).report.plan


def evaluate(node: Node, inputs_to_values: Mapping[Node, Any] | None = None, mode: str | None = None) -> Array:
    """The value of a node, given those of the inputs it needs: a function made, called once and dropped."""
    given = dict(inputs_to_values or {})
    result: Array = function(list(given), node, mode=mode, on_unused_input="ignore")(*given.values())
    return result


FUNCTIONS["eval"] = evaluate
