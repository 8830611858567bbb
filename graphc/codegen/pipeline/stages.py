"""Kernels that run one after the other, where sizes follow from values that a kernel has to compute.

In: a `Kernel`. Out: the stages it runs in. The function `sizes` works before there is any memory, element by element
and in loops of its own. For integers, and for what arguments hold, that gives the very numbers that the kernel will
see. Other values are results of a stage before, and inputs of the stage that takes them as sizes or positions: those
of calls, running sums, joined and changed arrays, and what is rounded in a way that may differ where it is computed
twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.arrays.dtypes import is_float
from graphc.codegen.pipeline.kernel import Kernel, shared_of
from graphc.codegen.schedule.nodes import all_nodes
from graphc.ir.lowering import Fold, Iota, Scalar, View
from graphc.ir.node import LEAVES, Node, variable
from graphc.ir.walk import Graph, nodes_of, reachable, substitute, type_sizes
from graphc.ops.branch import given_sizes, without_unused
from graphc.rewrite import without_counts
from graphc.startup.record import replace

ROUNDED_ONCE = frozenset({"cast", "ceil", "floor", "sqrt", "trunc"})
"""Ops that IEEE 754 defines to the bit and that no compiler merges with others, `fast_math` or not: of float64."""


def split_stages(kernel: Kernel) -> tuple[Kernel, ...]:
    """The stages of a kernel in order. Each takes the inputs of the kernel and the results of the stage before. The
    last row of an `until` loop is no stage of its own: the loop would run twice and keep all its rows."""
    graph = without_counts(Graph(kernel.inputs, tuple(kernel.results)))
    if any(after is not before for after, before in zip(graph.outputs, kernel.results, strict=True)):
        kernel = replace(_with_results(kernel, graph.outputs), returns="list")
    stages: list[Kernel] = []
    while measured := measured_values(kernel.results):
        hidden = {node: variable(node.type.dtype, (), node.name or node.op.name) for node in measured}
        results = without_unused(substitute(kernel.results, hidden))
        known = set(all_nodes(results))
        taken = tuple(node for node in measured if hidden[node] in known)
        inputs = (*kernel.inputs, *(hidden[node] for node in taken))
        stages.append(replace(_with_results(kernel, results), inputs=inputs, returns="list"))
        name = kernel.name if len(stages) > 1 else f"sizes of {kernel.name}"
        taken = tuple(without_unused(taken))
        kernel = Kernel(
            name, kernel.inputs, shared_of(taken, ()), taken, (), "list", kernel.threads, (), kernel.fast_math
        )
    return (kernel, *reversed(stages))


def _with_results(kernel: Kernel, results: Sequence[Node]) -> Kernel:
    """A kernel of other outputs and new values of shared variables."""
    outputs, news = tuple(results[: len(kernel.outputs)]), results[len(kernel.outputs) :]
    updates = tuple((leaf, new) for (leaf, _), new in zip(kernel.updates, news, strict=True))
    return replace(kernel, shared=shared_of(outputs, updates), outputs=outputs, updates=updates)


def measured_values(outputs: Sequence[Node]) -> list[Node]:
    """The scalars that sizes and guards of a graph are computed from and `sizes` cannot compute."""
    nodes = all_nodes(outputs)
    sides = (side for node in nodes for guard in node.op.guards(node) for side in (guard.left, guard.right))
    roots = [size for node in nodes for size in type_sizes(node)]
    roots += [side for side in sides if isinstance(side, Node)]
    roots += [size for node in nodes if node.is_tuple for size in given_sizes(node)]
    certain = certain_nodes(roots)

    def needs(node: Node) -> Iterable[Node]:
        return () if node in certain or is_measured(node) else node.args

    return [node for node in reachable(roots, needs) if node not in certain and is_measured(node)]


def is_measured(node: Node) -> bool:
    """True where a scalar that `sizes` cannot compute is handed over itself, not what it is computed from."""
    return is_float(node.type.dtype) or not isinstance(node.op.lower(node), Scalar)


def certain_nodes(roots: Sequence[Node]) -> set[Node]:
    """Return the nodes that `roots` need and `sizes` computes to the same bits as a kernel."""
    certain: set[Node] = set()
    for node in nodes_of(roots):
        if node.op in LEAVES or (is_certain(node) and certain.issuperset(node.args)):
            certain.add(node)
    return certain


def is_certain(node: Node) -> bool:
    """True where an op's elements need no memory, and are the same bits wherever they are computed."""
    lowering = node.op.lower(node)
    if isinstance(lowering, Scalar) and is_float(node.type.dtype):
        return node.op.name in ROUNDED_ONCE and node.type.dtype == "float64"
    return isinstance(lowering, View | Iota) or (isinstance(lowering, Scalar | Fold) and not is_float(node.type.dtype))
