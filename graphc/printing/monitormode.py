"""Theano's module of MonitorMode: functions of the user's see each value of a call.

In: a function's graph. Out: a `Function` that carries it out node by node and calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.codegen.pipeline.kernel import Kernel
from graphc.functions.callables import Function
from graphc.functions.convention import Convention
from graphc.functions.debug_modes import Checked
from graphc.ir.call_errors import explain_all
from graphc.ir.interpret import check_guards, run_steps, watched
from graphc.ir.node import Array, Node
from graphc.printing import debugprint
from graphc.startup.record import record
from graphc.theano.owners import Apply, apply_of


@record()
class Step:
    """The values that a monitoring function is told: `step.inputs[0][0]` is the first argument's array."""

    inputs: list[list[Any]]
    outputs: list[list[Any]]


Monitor = Callable[[int, Apply, Step], Any]
"""Is called with the number of a step within the call, what is applied, and the values."""


class MonitorMode:
    """`function(..., mode=MonitorMode(pre_func, post_func))`: in each call, `post_func(i, node, fn)` is called for each
    node of the graph as it is rewritten, with the arrays that went in, `fn.inputs[0][0]`, and that came out,
    `fn.outputs[0][0]`; `pre_func` likewise, to which outputs are None. What happens within a loop is one node.
    optimizer, linker: Theano's, they change nothing, as do the methods that choose optimizations.

        >>> def look(i, node, fn):
        ...     print(i, node, [value[0] for value in fn.outputs])
        >>> f = graphc.function([x], T.log(x) * x, mode=MonitorMode(post_func=look))
    """

    name = "MonitorMode"

    def __init__(
        self,
        pre_func: Monitor | None = None,
        post_func: Monitor | None = None,
        optimizer: Any = "default",
        linker: Any = None,
    ) -> None:
        self.pre_func, self.post_func = pre_func, post_func

    def make_function(self, kernel: Kernel, call: Convention, profile: bool) -> Function:
        """The function of a graph in this mode."""
        return Monitored(kernel, call, profile, self)

    def including(self, *tags: str) -> MonitorMode:
        """The mode itself."""
        return self

    excluding = requiring = including

    def __repr__(self) -> str:
        return "MonitorMode()"


class Monitored(Checked):
    """Tells the user's functions of each node."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool, checks: MonitorMode) -> None:
        super().__init__(kernel, call, profile, checks)
        self.places = {node: place for place, node in enumerate((*self.plan.early, *self.plan.order))}

    def compute(self, arrays: list[Array]) -> list[Array]:
        values = self.values(arrays)
        check_guards(self.graph, values)

        def look(node: Node, args: Sequence[Array], value: Any) -> None:
            if node not in self.places or not node.args:
                return
            made, given = value if isinstance(value, tuple) else (value,), [[arg] for arg in args]
            for tell, results in (
                (self.checks.pre_func, [[None] for _ in made]),
                (self.checks.post_func, [[each] for each in made]),
            ):
                if tell is not None:
                    tell(self.places[node], apply_of(node), Step(given, results))

        with watched(look):
            return run_steps(self.plan, values)


def detect_nan(i: int, node: Apply, fn: Step) -> None:
    """A `post_func` that prints what has made a NaN, and of what."""
    if any(np.isnan(output[0]).any() for output in fn.outputs):
        print("*** NaN detected ***")
        debugprint(node)
        print(f"Inputs : {[value[0] for value in fn.inputs]}")
        print(f"Outputs: {[value[0] for value in fn.outputs]}")


__all__ = ["MonitorMode", "detect_nan"]

explain_all(globals())
