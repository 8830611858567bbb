"""Functions that count the steps of their loops, as those made with profile=True do.

In: a function's graph with loops. Out: a `Function` in any mode. The number of steps is a result more, which is taken
off: a loop that ends by itself knows it alone. The loops inside a step are not counted, nor what rewriting makes of
loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from graphc.codegen.pipeline.kernel import Kernel
from graphc.functions.callables import Function
from graphc.functions.convention import Convention
from graphc.functions.making import make_function
from graphc.functions.wrapped import Wrapped
from graphc.ir import sizes
from graphc.ir.body import items_of
from graphc.ir.node import Array, Node, Size
from graphc.ir.walk import as_size_node, nodes_of
from graphc.ops.scan import SCAN, loop_of
from graphc.startup.record import replace


class Counted(Wrapped):
    """Runs `whole`, which has one result more."""

    def __init__(self, kernel: Kernel, call: Convention, kind: type[Function]) -> None:
        super().__init__(kernel, call, profile=True)
        self.mode = kind.mode
        total = as_size_node(reduce(sizes.add, map(steps_of, loops_of(kernel))))
        whole = replace(kernel, outputs=(*kernel.outputs, total), returns="list")
        self.whole = make_function(kind, whole, replace(call, keys=None), profile=False)
        self.foreign = self.whole.foreign

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        *outputs, steps = self.whole.run_values(values, [*given, None])
        assert self.profile is not None
        self.profile.steps += int(steps)
        return outputs


def loops_of(kernel: Kernel) -> list[Node]:
    """The loops of a function."""
    return [node for node in nodes_of(kernel.results) if node.op is SCAN]


def steps_of(node: Node) -> Size:
    """How many steps a loop takes."""
    loop = loop_of(node.args, node.attrs)
    if loop.repeat.until:
        return items_of(node)[-1]
    count = sizes.as_size(loop.count)
    return count if loop.limit is None else sizes.maximum(sizes.minimum(count, sizes.as_size(loop.limit)), 0)
