"""Functions that are traced at every call, and compiled once for each text of a graph.

    rng = np.random.default_rng(0)
    slope = graphc.grad(lambda x: ((x + rng.normal(size=3)) ** 2).sum())
    slope(np.ones(3))       traces the function and compiles; array([…])
    slope(np.ones(3))       traces it again: other numbers are drawn, and nothing is compiled

In: a `Jitted` whose results follow from more than its arguments: from generators, from arrays that change. Out: one
that calls the program's function each time, a millisecond or two for a small one. The arrays of numbers in the graph
are arguments of what is compiled. A step, a branch or the function of an element is traced once and computed many
times: numbers that it draws stay an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.codegen.call.recipes import Outside
from graphc.control.loop import title
from graphc.errors import GraphcError
from graphc.functions.callables import Function
from graphc.functions.function import function as compile_function
from graphc.ir.node import CONSTANT, Node, variable
from graphc.ir.source_lines import TRACE
from graphc.ir.text import graph_key_text
from graphc.ir.walk import Graph, nodes_of, substitute
from graphc.options import options
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.startup.process import temporarily
from graphc.startup.record import replace
from graphc.tracing.answers import Values
from graphc.tracing.arguments import Parts
from graphc.tracing.outside import Reach, Source, as_now, check_unchanged, undo, within_reach
from graphc.tracing.traced import Jitted
from graphc.trees import LEAF, structure

MOST = 256
"""The compiled functions that are kept for one function."""
DIGITS = 10
"""A float with more digits than this is no number that a program writes out: it was computed or drawn."""


def settings_now() -> Hashable:
    """The options that decide what is compiled."""
    return options.mode, options.floatX, options.fast_math, HOOKS.default_mode


def make_room(table: dict[Hashable, Any]) -> None:
    """Drop the oldest items of a full table."""
    while len(table) >= MOST:
        del table[next(iter(table))]


class ByText(Jitted[..., Any]):
    """A `Jitted` that is traced at every call. graphs: what was compiled, by the text of its graph."""

    graphs: dict[Hashable, Function]

    def use(self, variant: Any) -> None:
        """Nothing: the next call is traced."""

    def watched(self, parts: Parts, reach: Reach, changed: Collection[tuple[int, Any]]) -> Sequence[Outside]:
        """Nothing: the next call is traced."""
        return ()

    def is_argument(self, node: Node) -> bool:
        """True for a constant that is an argument of what is compiled, since it may be another one at the next call."""
        return bool(node.ndim) and is_float(node.type.dtype)

    def compiled(
        self, made: Any, results: list[Node], variables: list[Node], donated: list[bool]
    ) -> tuple[Function, Callable[..., Any]]:
        arrays = [node for node in nodes_of(results) if node.op is CONSTANT and self.is_argument(node)]
        inputs = [variable(node.type.dtype, node.type.shape, f"array {number}") for number, node in enumerate(arrays)]
        outputs = substitute(results, dict(zip(arrays, inputs, strict=True)))
        is_single = structure(made) == LEAF
        shared = tuple(node for node in nodes_of(results) if isinstance(node, SharedVariable))
        text = graph_key_text(Graph((*inputs, *variables), tuple(outputs)))
        key = text, shared, is_single, settings_now(), self.settings.mode, self.settings.threads
        if key not in self.graphs:
            make_room(self.graphs)
            self.graphs[key] = compile_function(
                [*inputs, *variables],
                outputs[0] if is_single else outputs,
                mode=self.settings.mode,
                threads=self.settings.threads,
                name=self.__name__,
                on_unused_input="ignore",
            )
        function, values = self.graphs[key], [node.attrs["value"].value for node in arrays]
        return function, partial(function, *values)


class Retraced(ByText):
    """A derivative of a function that draws from generators outside of it, or asks for the truth or the whole number of
    a value, as in `while error > 1e-8`. Each call draws as the function does, and takes its own branches."""

    def __init__(self, of: Jitted[..., Any]) -> None:
        super().__init__(of.__wrapped__, of.build, of.static, of.settings, of.__name__, of.unchanged)
        self.graphs = {}
        self.generators: list[Source] = []
        self.has_few = False

    def dispatch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.entries.clear()
        numpys: Any = sys.modules.get("numpy.random")
        found = within_reach(self.__wrapped__, ()).generators
        found += [Source("np.random", None, each, None) for each in (numpys and numpys.mtrand._rand,) if each]
        self.generators = [as_now(each) for each in found]
        return super().dispatch(args, kwargs)

    def reach(self, parts: Parts) -> Reach:
        return replace(super().reach(parts), generators=[])

    def run_with(
        self,
        variables: Sequence[Node],
        donated: Sequence[bool],
        parts: Parts,
        static: Sequence[int],
        given: Sequence[Any],
    ) -> tuple[Any, list[Node], Sequence[Any]]:
        """Run the function on variables, whose values are at hand."""
        with temporarily(TRACE, values=Values(variables, given)):
            return super().run_with(variables, donated, parts, static, given)

    def run(self, *args: Any) -> Any:
        """Run the function on tensors. Where the call has run it before, it draws the same numbers again."""
        undo(self.generators)
        with temporarily(TRACE, watch=partial(undrawn, self.generators), may_draw=True):
            return super().run(*args)

    def is_argument(self, node: Node) -> bool:
        if super().is_argument(node) or self.has_few:
            return super().is_argument(node)
        return bool(node.ndim) or (is_float(node.type.dtype) and len(repr(float(node.attrs["value"].value))) > DIGITS)

    def compiled(
        self, made: Any, results: list[Node], variables: list[Node], donated: list[bool]
    ) -> tuple[Function, Callable[..., Any]]:
        try:
            return super().compiled(made, results, variables, donated)
        except GraphcError:
            if self.has_few:
                raise
        self.has_few = True  # an op needs one of the numbers itself
        return super().compiled(made, results, variables, donated)


@contextmanager
def undrawn(found: Sequence[Source], function: Any) -> Iterator[None]:
    """Raise GraphTypeError if a function draws in the block, which calls it once in place of many times."""
    before = [as_now(each) for each in found]
    yield
    check_unchanged(title(function), before)


HOOKS.retraced = Retraced
