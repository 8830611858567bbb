"""graphc as a linker of PyTensor, and the mode "GRAPHC".

In: a PyTensor graph as it was written, without PyTensor's rewrites. Out: one thunk that computes it.

The graph is split into stages (`Stage`). Each stage is a graph of nodes, which becomes one function of graphc's, and
the Applys after it that the table (table.py) does not know, which PyTensor's own Python code computes. The next stage
takes the results of both. A graph without such Applys is one stage.

    sum(exp(x))                 one stage: a function of graphc's
    sum(unknown_op(exp(x)))     two stages: exp(x) by graphc, unknown_op by PyTensor; then the sum by graphc
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pytensor import config
from pytensor.compile.mode import Mode, optdb, predefined_linkers, predefined_modes, register_linker, register_mode
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.ifelse import IfElse
from pytensor.link.basic import JITLinker

import graphc.tensor as T
from graphc.errors import ArgumentError, AssertionFailed, GraphcError
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.ir.node import Node
from graphc.pytensor.rows import CHECKED, OUTSIDE, UNCHECKED
from graphc.pytensor.table import Table, Unknown, applys, constant
from graphc.startup.record import record


class Stage:
    """A graph of nodes, and the Applys after it (`left`). leaves: {PyTensor variable it takes: node}; asked: {PyTensor
    variable it must compute: node}."""

    def __init__(self) -> None:
        self.leaves: dict[Any, Node] = {}
        self.values: dict[Any, Any] = {}
        self.asked: dict[Any, Node] = {}
        self.left: list[Any] = []


class Stages:
    """The stages of a graph.

    refused: for each kind of op that is left to PyTensor, why. checks: the exceptions of checks by their messages.
    """

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], strict: bool = False, table: Table = CHECKED
    ) -> None:
        self.stages = [Stage()]
        self.stage_of = dict.fromkeys(inputs, 0)
        self.refused: dict[str, str] = {}
        self.checks: dict[str, type[Exception]] = {}
        self.strict, self.table = strict, table
        for apply in applys(inputs, outputs):
            self._add(apply)
        for out in outputs:
            self._ask(out)

    def _add(self, apply: Any) -> None:
        number = max((self.stage_of[arg] for arg in apply.inputs if arg in self.stage_of), default=0)
        stage = self.stages[number]
        if hasattr(apply.op, "exc_type"):
            self.checks[apply.op.msg] = apply.op.exc_type
        try:
            results = self.table.convert(apply, [self._value(arg, number) for arg in apply.inputs])
        except (Unknown, GraphcError) as error:
            if self.strict:
                raise
            self.refused[type(apply.op).__name__] = str(error)
        else:
            for out, value in zip(apply.outputs, results, strict=True):
                stage.values[out] = value
                self.stage_of[out] = number
            return
        for arg in apply.inputs:
            self._ask(arg)
        stage.left.append(apply)
        if len(self.stages) == number + 1:
            self.stages.append(Stage())
        self.stage_of.update(dict.fromkeys(apply.outputs, number + 1))

    def _value(self, variable: Any, number: int) -> Any:
        """Return the node, or constant, of a variable in a stage; a leaf where another stage computes it."""
        if variable not in self.stage_of:
            return constant(variable)
        stage = self.stages[number]
        if variable not in stage.values:
            if self.stage_of[variable] < number:
                self._ask(variable)
            stage.values[variable] = stage.leaves[variable] = leaf(variable)
        return stage.values[variable]

    def _ask(self, variable: Any) -> None:
        """Make a variable an output of the stage that computes it, if one does."""
        stage = self.stages[self.stage_of.get(variable, 0)]
        value = stage.values.get(variable)
        if value is not None and variable not in stage.leaves:
            if not isinstance(value, Node):
                raise Unknown(f"{variable} is no tensor")
            stage.asked[variable] = value


def leaf(variable: Any) -> Node:
    """An input of a graph of nodes."""
    kind = variable.type
    if not hasattr(kind, "dtype") or hasattr(kind, "format"):
        raise Unknown(f"{variable}, of type {kind}, is no tensor")
    return T.tensor(kind.dtype, getattr(kind, "shape", ()), name=variable.name)


# --- linker -----------------------------------------------------------------------------------------------------------

NAME = "GRAPHC"
BOUNDS = "graphc_table"
"""The attribute of a PyTensor graph with the table for its conversion."""
TABLES = {"local_check_parameter_to_ninf_switch": OUTSIDE, "local_remove_check_parameter": UNCHECKED}
"""The tables that PyMC asks for by including rewrites of these names."""
MADE = "graphc_parts"
"""The attribute of a PyTensor graph with the ops left to PyTensor and the steps made of it, for `explain`."""
WARNED: set[str] = set()
"""The classes of ops that a warning was given for."""


class GraphcLinker(JITLinker):  # type: ignore[misc]
    """Computes a graph by functions of graphc. strict: raise where PyTensor would have to compute a part."""

    required_rewrites = ()
    incompatible_rewrites = ()

    def __init__(self, strict: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.strict = strict

    def clone(self, allow_gc: Any = None) -> GraphcLinker:
        return GraphcLinker(self.strict, allow_gc=self.allow_gc if allow_gc is None else allow_gc)

    def fgraph_convert(self, fgraph: Any, **_: Any) -> Callable[..., Any]:
        walk = walk_of(fgraph.inputs, fgraph.outputs, self.strict, getattr(fgraph, BOUNDS, CHECKED))
        steps = [step for stage in walk.stages for step in steps_of(stage)]
        setattr(fgraph, MADE, (walk.refused, steps))
        return joined(steps, walk, fgraph.inputs, fgraph.outputs)

    def create_thunk_inputs(self, storage_map: dict[Any, list[Any]]) -> list[list[Any]]:
        return [storage_map[variable] for variable in self.fgraph.inputs]

    def jit_compile(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn


def compiled(
    inputs: Sequence[Any], outputs: Sequence[Any], strict: bool = False, table: Table = CHECKED
) -> Callable[..., Sequence[Any]]:
    """A function of the values of PyTensor's inputs that gives those of its outputs."""
    walk = walk_of(inputs, outputs, strict, table)
    return joined([step for stage in walk.stages for step in steps_of(stage)], walk, inputs, outputs)


def walk_of(inputs: Sequence[Any], outputs: Sequence[Any], strict: bool, table: Table) -> Stages:
    """The stages of a graph, and a warning of each kind of op that is left to PyTensor, once."""
    walk = Stages(inputs, outputs, strict, table)
    for kind, why in walk.refused.items():
        if kind not in WARNED:
            WARNED.add(kind)
            warnings.warn(f"graphc has no {kind} of PyTensor's ({why}): its Python code computes it", stacklevel=2)
    return walk


def joined(
    steps: Sequence[Step], walk: Stages, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., Sequence[Any]]:
    """The function that takes the steps of a walk."""
    if len(steps) == 1 and list(steps[0].takes) == list(inputs) and list(steps[0].gives) == list(outputs):
        run: Callable[..., Sequence[Any]] = steps[0].run
    else:
        run = in_turn(steps, inputs, outputs)
    return raising(run, walk.checks) if walk.checks else run


def explain(function: Any) -> str:
    """Return a report of a PyTensor function in the mode "GRAPHC": the ops that PyTensor computes, with the reasons,
    and `explain` of each of graphc's functions. Raises ArgumentError for a function in another mode."""
    refused, steps = getattr(function.maker.fgraph, MADE, (None, ()))
    if refused is None:
        raise ArgumentError(f"{function}: it was not compiled in the mode {NAME!r}")
    lines = [f"PyTensor computes {kind}: {why}" for kind, why in refused.items()]
    functions = [step.run for step in steps if isinstance(step.run, Function)]
    return "\n".join([*(lines or ["graphc computes all of it"]), *(each.explain() for each in functions)])


@record(eq=False)
class Step:
    """A function from the values of the variables `takes` to those of the variables `gives`."""

    takes: Sequence[Any]
    gives: Sequence[Any]
    run: Callable[..., Sequence[Any]]


def steps_of(stage: Stage) -> list[Step]:
    """Return graphc's function of a stage, then the ops of PyTensor's that follow it, as steps."""
    made = []
    if stage.asked:
        leaves, results = list(stage.leaves.values()), list(stage.asked.values())
        run = function(leaves, results, on_unused_input="ignore", name="pytensor")
        made.append(Step(list(stage.leaves), list(stage.asked), run))
    return [*made, *(Step(apply.inputs, apply.outputs, performed(apply)) for apply in stage.left)]


def performed(apply: Any) -> Callable[..., Sequence[Any]]:
    """Return a function that runs PyTensor's own computation of an Apply."""

    if isinstance(apply.op, IfElse):  # of what is no tensor: it has a thunk of its own, and no `perform`
        count = len(apply.outputs)
        return lambda condition, *values: values[:count] if condition else values[count:]

    def run(*values: Any) -> Sequence[Any]:
        storage: list[list[Any]] = [[None] for _ in apply.outputs]
        apply.op.perform(apply, list(values), storage)
        return [cell[0] for cell in storage]

    return run


def in_turn(steps: Sequence[Step], inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """Return a function that runs the steps in order."""
    constants = {v: v.data for step in steps for v in step.takes if hasattr(v, "data")}
    constants.update({out: out.data for out in outputs if hasattr(out, "data")})

    def run(*values: Any) -> Sequence[Any]:
        known = {**constants, **dict(zip(inputs, values, strict=True))}
        for step in steps:
            known.update(zip(step.gives, step.run(*[known[variable] for variable in step.takes]), strict=True))
        return [known[variable] for variable in outputs]

    return run


def raising(run: Callable[..., Any], checks: dict[str, type[Exception]]) -> Callable[..., Any]:
    """Return `run` with the exceptions of PyTensor's check ops in place of AssertionFailed."""

    def call(*values: Any) -> Any:
        try:
            return run(*values)
        except AssertionFailed as error:
            for message, kind in checks.items():
                if message in str(error):
                    raise kind(message) from error
            raise

    return call


class NoRewrites(RewriteDatabaseQuery):  # type: ignore[misc]
    """A rewriter without rewrites, except those that choose the table for checks of parameters (TABLES)."""

    def including(self, *tags: str) -> NoRewrites:
        return NoRewrites(self.include.union([f"graphc_{tag}" for tag in tags if tag in TABLES]))

    def excluding(self, *tags: str) -> NoRewrites:
        return self


class Choice(GraphRewriter):  # type: ignore[misc]
    """A rewrite that notes a table for the linker on the graph."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def apply(self, fgraph: Any, *args: Any, **kwargs: Any) -> None:
        setattr(fgraph, BOUNDS, self.table)


def register() -> None:
    """Register the linker and the mode "GRAPHC" with PyTensor."""
    if NAME not in predefined_linkers:
        register_linker(NAME, GraphcLinker())
    if NAME not in predefined_modes:
        register_mode(NAME, Mode(GraphcLinker(), optimizer=NoRewrites([])))
        for tag, table in TABLES.items():
            optdb.register(f"graphc_{tag}", Choice(table), position=0, use_db_name_as_tag=False)
        admit(config._config_var_dict["mode"])


def admit(setting: Any) -> None:
    """Add "GRAPHC" to the values that a setting of PyTensor's allows."""
    others = setting._apply
    setting._apply = lambda value: value if isinstance(value, str) and value == NAME else others(value)
