"""Functions that delegate to others: counted iterations, trees of arguments, several kernels in turn.

In: a `Function`, or the stages of a kernel. Out: a `Function`.

    Counted   profile=True and loops in the graph: the number of iterations is one more result, which is added up
    Nested    an input or output is a tree: function([{"a": x, "b": y}], x + y), called as f({"a": 1, "b": 2})
    Staged    sizes follow from values: in zeros(v.sum()) a first kernel computes the sum, a second one the zeros
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from graphc import errors
from graphc.codegen.call.bind import Keywords
from graphc.codegen.call.recipes import REFUSED, UnknownFormError, arguments_recipe, refused, results_recipe
from graphc.codegen.pipeline.kernel import Kernel
from graphc.codegen.schedule.nodes import all_nodes
from graphc.functions.callables import Function, Memory
from graphc.functions.convention import REQUIRED, Convention, In, Out
from graphc.functions.native import Compiled, Lowered
from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.interpret import CHECKED, check_guards, interpret
from graphc.ir.node import Array, Node, Size
from graphc.ir.walk import as_size_node, nodes_of
from graphc.ops.elementwise import describe_origin
from graphc.ops.scan import SCAN, loop_of
from graphc.startup.record import replace
from graphc.trees import is_nested, leaves, like, outline, paths, reader, up_to


class Wrapper(Function):
    """A function that delegates to `whole`."""

    whole: Function

    @property
    def trust_input(self) -> bool:
        """The switch of `whole`, for copies and pickles are made of that."""
        return self.whole.trust_input

    @trust_input.setter
    def trust_input(self, trusts: bool) -> None:
        self.whole.trust_input = trusts

    @property
    def kind(self) -> type[Function]:
        return self.whole.kind

    @property
    def is_ready(self) -> bool:
        return self.whole.is_ready

    def cancel(self) -> None:
        self.whole.cancel()

    def when_ready(self, follow: Callable[[Function], object]) -> None:
        self.whole.when_ready(lambda _: follow(self))

    def memory(self, *sizes: Any) -> Memory:
        return self.whole.memory(*sizes)

    def free(self) -> None:
        self.whole.free()

    @property
    def source(self) -> str:
        return self.whole.source

    @property
    def assembly(self) -> str:
        return self.whole.assembly

    def explain(self) -> str:
        return self.whole.explain()


# --- counted iterations -----------------------------------------------------------------------------------------------


Make = Callable[[type[Function], Kernel, Convention, bool], Function]
"""The type of `factory.make_function`."""


class Counted(Wrapper):
    """Adds up the iterations of the loops of the graph as it was written; not those of loops within loops.

    `whole` returns their number as one more result, for only a loop with a condition knows when it ended.
    """

    def __init__(self, kernel: Kernel, call: Convention, class_: type[Function], make: Make) -> None:
        super().__init__(kernel, call, profile=True)
        self.mode = class_.mode
        loops = [node for node in nodes_of(kernel.results) if node.op is SCAN]
        total = as_size_node(reduce(sizes.add, map(trip_count, loops)))
        whole = replace(kernel, outputs=(*kernel.outputs, total), returns="list")
        self.whole = make(class_, whole, replace(call, keys=None), False)
        self.foreign = self.whole.foreign

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        *outputs, steps = self.whole.run_values(values, [*given, None])
        assert self.profile is not None
        self.profile.steps += int(steps)
        return outputs


def trip_count(node: Node) -> Size:
    """The number of iterations of a scan."""
    loop = loop_of(node.args, node.attrs)
    if loop.repeat.until:
        return items_of(node)[-1]
    count = sizes.as_size(loop.count)
    return count if loop.limit is None else sizes.maximum(sizes.minimum(count, sizes.as_size(loop.limit)), 0)


# --- trees of arguments -----------------------------------------------------------------------------------------------


def nested_function(function: Callable[..., Function], inputs: Any, outputs: Any, given: Mapping[str, Any]) -> Function:
    """Return `function(inputs, outputs, **given)` for trees: a `Nested` around the function of all leaves in order."""
    named = isinstance(inputs, Mapping)
    items: list[Any] = list(inputs.values()) if named else [inputs] if isinstance(inputs, Node | In) else list(inputs)
    names = list(inputs) if named else [_name(item) for item in items]
    trees = [item.variable if _is_record_of_tree(item) else item for item in items]
    outputs = _without_records(outputs)
    records = []
    for place, (item, tree, name) in enumerate(zip(items, trees, names, strict=True)):
        whole = name or f"argument {place}"
        known = _records(item) if _is_record_of_tree(item) else leaves(tree)
        for leaf, path in zip(known, paths(tree, whole), strict=True):
            if not isinstance(leaf, Node | In):
                raise errors.GraphTypeError(f"inputs must be variables; {path} is {leaf!r}")
            record = leaf if isinstance(leaf, In) else In(leaf)
            records.append(record if record.name or record.variable.name else replace(record, name=path))
    return Nested(function(records, leaves(outputs), **given), trees, names, outputs)


def _is_record_of_tree(item: Any) -> bool:
    return isinstance(item, In) and (not isinstance(item.variable, Node) or is_nested(item.variable))


def _records(item: In) -> list[In]:
    """Split the `In` of a tree into one `In` for each leaf."""
    parts = leaves(item.variable)
    values = parts if item.value is REQUIRED else up_to(item.variable, item.value)
    updates = [None] * len(parts) if item.update is None else up_to(item.variable, item.update)
    return [
        replace(item, variable=leaf, name=None, value=item.value if item.value is REQUIRED else value, update=update)
        for leaf, value, update in zip(parts, values, updates, strict=True)
    ]


def _without_records(outputs: Any) -> Any:
    """Replace each `Out` by its variable."""
    if isinstance(outputs, Out):
        return outputs.variable
    if isinstance(outputs, Mapping):
        return {key: _without_records(value) for key, value in outputs.items()}
    return type(outputs)(map(_without_records, outputs)) if type(outputs) in (list, tuple) else outputs


def _name(item: Any) -> str | None:
    """The keyword of an input: the name of the variable, or of a tree that has one (sparse matrices)."""
    name = (item.name or item.variable.name) if isinstance(item, In) else getattr(item, "name", None)
    return name if isinstance(name, str) else None


class Nested(Wrapper):
    """A function of trees. It calls `whole` with the leaves of its arguments, and returns results as in `form`."""

    def __init__(self, whole: Function, trees: Sequence[Any], names: Sequence[str | None], outputs: Any) -> None:
        super().__init__(whole.kernel, whole.call, False)
        self.whole, self.trees, self.names, self.form = whole, trees, names, outputs
        self.readers = [*map(reader, trees)]
        self.mode, self.name, self.profile, self.foreign = whole.mode, whole.name, whole.profile, whole.foreign
        self.is_tree = is_nested(outputs)
        self.exact: Callable[..., Any] | None = None
        """The native entry point for arrays of exactly the inputs' types, by position. Made by the first call."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Nested, (self.whole, self.trees, self.names, self.form)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and self.exact is not None:
            results = self.exact(*args)
            if results is not REFUSED:
                return results if self.is_tree else results[0]
        elif self.exact is None and self.whole.is_ready:
            self.exact = _exact_entry(self.whole, self.trees, self.form)
        named = {}
        if "out" in kwargs and "out" not in self.names:
            out = kwargs.pop("out")
            named["out"] = tuple(self.up_to(self.form, reader(self.form), out, "out")) if out is not None else None
        return like(self.form, self.whole(*self.flat(args, kwargs), **named))

    def wait_with(self, values: Mapping[int, Array]) -> None:
        self.whole.wait_with(values)

    def default_of(self, place: int) -> Any:
        return self.whole.default_of(place)

    def copy(self, *args: Any, **kwargs: Any) -> Nested:
        """Return `Function.copy` of `whole`, for the same trees."""
        return Nested(self.whole.copy(*args, **kwargs), self.trees, self.names, self.form)

    def flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return one value for each leaf of the inputs, from positions, names and defaults."""
        if len(args) > len(self.trees):
            raise errors.ArgumentError(f"{self.label} takes {len(self.trees)} arguments; got {len(args)}")
        given = dict(enumerate(args))
        for name, value in kwargs.items():
            if self.names.count(name) != 1:
                known = ", ".join(filter(None, self.names)) or "given by position"
                raise errors.ArgumentError(f"{self.label} has no one input called {name!r}; its inputs are {known}")
            if self.names.index(name) in given:
                raise errors.ArgumentError(f"{self.label}: argument {name} is given twice")
            given[self.names.index(name)] = value
        values: list[Any] = []
        for place, tree in enumerate(self.trees):
            what = self.names[place] or f"argument {place}"
            if place in given:
                values += self.up_to(tree, self.readers[place], given[place], what)
                continue
            defaults = [self.default_of(len(values) + number) for number in range(len(leaves(tree)))]
            if any(value is REQUIRED for value in defaults):
                raise errors.ArgumentError(f"{self.label}: {what} is missing")
            values += defaults
        return values

    def up_to(self, tree: Any, read: Callable[[Any], list[Any]], value: Any, what: str) -> list[Any]:
        """Return the parts of `value` for the leaves of `tree`; `read` is the reader of that tree. Raises ArgumentError
        for a value of another structure."""
        try:
            return read(value)
        except errors.GraphcError:
            raise
        except ValueError:
            wanted = f"must be {outline(tree)}, with values for the asterisks"
            raise errors.ArgumentError(f"{self.label}: {what} {wanted}; got {outline(value)}") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return Nested(self.whole.__deepcopy__(memo), self.trees, self.names, self.form)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        return self.whole.run_values(values, given)


def _exact_entry(whole: Function, trees: Sequence[Any], form: Any) -> Callable[..., Any]:
    """Return an entry point that takes trees apart, and puts results together; `refused` where there is none."""
    if not isinstance(whole, Compiled) or not whole.has_exact_entry:
        return refused
    try:
        keywords = Keywords(arguments=arguments_recipe(trees, {}, ()))
        if is_nested(form):
            keywords = replace(keywords, results=results_recipe(form, scalars=False))
    except UnknownFormError:
        return refused
    entry: Callable[..., Any] = whole.exact_entry(refused, keywords, scalars=False)
    return entry


# --- several kernels in turn ------------------------------------------------------------------------------------------


class Staged(Function):
    """Runs the stages of a kernel (codegen/pipeline/stages.py) one after the other: each takes the arguments of the
    call and the results of the stage before.

    Each stage has its own code, cache entry and temporaries. The locks of all shared variables are held during the
    whole call. Errors speak of the whole graph. There is one stage alone where a graph was rewritten so that no size
    follows from values any more.
    """

    def __init__(
        self, kernel: Kernel, call: Convention, profile: bool, stages: Sequence[Kernel], class_: type[Lowered]
    ) -> None:
        super().__init__(kernel, call, profile)
        self.mode = class_.mode
        # The last is the largest: the compile process starts while it is rewritten, and is there for the others.
        self.stages = [class_(stage, _by_position(stage, call), False) for stage in reversed(stages)][::-1]
        self.foreign = any(stage.foreign for stage in self.stages)

    @property
    def kind(self) -> type[Function]:
        return self.stages[0].kind

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        try:
            return self.run_stages(values, given)
        except tuple(CHECKED.values()) as error:
            failure = error
        self.explain_failure(values)
        raise failure

    def run_stages(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """Run the stages and return the outputs; errors speak of one stage."""
        *before, last = self.stages
        measured: list[Array] = []
        for stage in before:
            measured = stage.run_values([*values, *measured], [None] * len(stage.kernel.outputs))
        return last.run_values([*values, *measured], given)

    def explain_failure(self, values: Sequence[Any]) -> None:
        """Raise the error that the interpreter finds in a call; return where it finds none."""
        known = self.values(self.convert_all(values))
        check_guards(self.graph, known)
        interpret(self.graph, known)

    def memory(self, *sizes: Any) -> Memory:
        *before, _ = self.stages
        valued = {leaf for stage in before for leaf in all_nodes(stage.kernel.outputs)}
        read = {number for number, leaf in enumerate(self.kernel.inputs) if leaf in valued}
        arrays = self.sized_arguments(sizes, read.union(*(stage.built.signature.reads for stage in self.stages)))
        return self.locked(self.add_up, arrays)

    def add_up(self, arrays: list[Array]) -> Memory:
        """Return the memory of all stages. Arguments of which only the shape matters may be arrays without memory."""
        *before, last = self.stages
        measured: list[Array] = []
        arena = 0
        for stage in before:
            need = stage.memory_for([*arrays, *measured])
            arena += need.total
            measured = interpret(stage.graph, stage.values([*arrays, *measured]))
        need = last.memory_for([*arrays, *measured])
        return Memory(arena + need.arena, need.outputs, arena + need.total)

    def free(self) -> None:
        for stage in self.stages:
            stage.free()

    @property
    def source(self) -> str:
        return "\n\n".join(stage.source for stage in self.stages)

    @property
    def plan(self) -> str:
        """The plans of all stages."""
        return "\n".join(stage.plan for stage in self.stages)

    def explain(self) -> str:
        *before, last = self.stages
        if not before:
            return last.explain()
        values = ", ".join(describe_origin(node) for stage in before for node in stage.kernel.outputs)
        lines = [repr(self), f"{len(self.stages)} stages: sizes or positions follow from the values of {values}"]
        return "\n".join((*lines, *(stage.explain() for stage in self.stages)))


def _by_position(stage: Kernel, call: Convention) -> Convention:
    """The convention of a stage: the inputs of the whole function, then the results of the stage before."""
    hidden = map(In, stage.inputs[len(call.inputs) :])
    return Convention((*call.inputs, *hidden), {}, None)
