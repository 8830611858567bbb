"""What a function was made of, in Theano's words: `f.maker`.

In: a `Function`. Out: its inputs and outputs as records, its mode, its graph.
"""

from __future__ import annotations

from graphc.compile.mode import Mode
from graphc.compile.ops import deep_copy_op
from graphc.errors import ArgumentError, UnusedInputError
from graphc.functions.callables import Function
from graphc.functions.convention import In, Out
from graphc.functions.states import states_of
from graphc.gof.fg import FunctionGraph
from graphc.ir.walk import Graph
from graphc.options import options
from graphc.rewrite.pipeline import rewrite


class FunctionMaker:
    """inputs: an `In` for each argument, then for each shared variable. outputs: an `Out` for each. mode, function."""

    def __init__(self, function: Function) -> None:
        if not isinstance(function, Function):
            raise ArgumentError(f"FunctionMaker describes a function that graphc.function has made, not {function!r}")
        self.function = function
        news = dict(function.kernel.updates)
        own = [leaf for leaf in function.shared if leaf not in states_of(function).values()]
        shared = [In(leaf, update=news.get(leaf), implicit=True, value=leaf.container, shared=True) for leaf in own]
        self.inputs = [*function.call.inputs, *shared]
        self.outputs = [Out(node) for node in function.kernel.outputs]
        self.expanded_inputs = self.inputs
        self.mode = getattr(function, "checks", None) or Mode(function.mode)
        self.name = function.name

    @property
    def fgraph(self) -> FunctionGraph:
        """The graph: inputs and shared variables, outputs and the new values of those. As rewriting leaves it, or of an
        interpreted function as it was written; what rules and passes did is `function.explain()`."""
        kernel = self.function.kernel
        graph = Graph((*kernel.inputs, *kernel.shared), kernel.results)
        if self.function.mode != "interpreted":
            graph, _ = rewrite(graph, options.fast_math, options.excluding)
        made = FunctionGraph(graph.inputs, graph.outputs)
        made.name = self.name
        return made


__all__ = ["Function", "FunctionMaker", "In", "Out", "UnusedInputError", "deep_copy_op"]
