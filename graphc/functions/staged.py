"""Functions of several kernels: values that sizes follow from are computed first.

In: the stages of a `Kernel` (codegen/pipeline/stages.py), in the compiled or the python mode. Out: a `Function`. Each
stage is a function with code, cache entry and temporaries of its own; a call runs them in order, and holds the locks of
all shared variables from beginning to end. What goes wrong is told in terms of the whole graph. One stage alone is that
of a graph that was changed so that no size follows from values any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.pipeline.kernel import Kernel
from graphc.codegen.schedule.sizes import all_nodes
from graphc.errors import AssertionFailed, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.functions.callables import Function
from graphc.functions.convention import Convention, In
from graphc.functions.lowered import Lowered
from graphc.functions.usage import Memory
from graphc.ir.interpret import check_guards, interpret
from graphc.ir.node import Array
from graphc.ops.elementwise import describe_origin


class Staged(Function):
    """Runs `stages` one after the other: each takes the arguments of the call and the results of the one before."""

    def __init__(
        self, kernel: Kernel, call: Convention, profile: bool, stages: Sequence[Kernel], kind: type[Lowered]
    ) -> None:
        super().__init__(kernel, call, profile)
        self.mode = kind.mode
        # The last is the largest: the compile process starts while it is rewritten, and is there for the others.
        self.stages = [kind(stage, _by_position(stage, call), False) for stage in reversed(stages)][::-1]
        self.foreign = any(stage.foreign for stage in self.stages)

    @property
    def kind(self) -> type[Function]:
        return self.stages[0].kind

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        try:
            return self.run_stages(values, given)
        except (ShapeError, IndexOutOfBounds, AssertionFailed, GraphValueError) as error:
            failure = error
        self.explain_failure(values)
        raise failure

    def run_stages(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        """The outputs; errors are told in terms of one stage."""
        *before, last = self.stages
        measured: list[Array] = []
        for stage in before:
            measured = stage.run_values([*values, *measured], [None] * len(stage.kernel.outputs))
        return last.run_values([*values, *measured], given)

    def explain_failure(self, values: Sequence[Any]) -> None:
        """Raise what the interpreter says of a call, if it finds anything."""
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
        """The memory of all stages: arguments of which only the shape matters may be no more than shapes."""
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
    """How a stage is called: with a value for each input of the whole, then with what it takes of the stage before."""
    hidden = map(In, stage.inputs[len(call.inputs) :])
    return Convention((*call.inputs, *hidden), {}, None)
