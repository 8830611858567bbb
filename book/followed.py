"""One small program in every form that the compiler gives it, for the pictures of docs/how_it_works.md.

In: the program that stands on that page. Out: `follow()`: its nodes, the forms between passes, the plan, the source,
LLVM's IR for one named processor. All are the compiler's own records, made by the calls that make them in a
compilation. Nothing depends on this machine.
"""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import graphc
from book.navigation import ROOT
from graphc.codegen.pipeline import program as generation
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.schedule.nodes import all_nodes, size_up
from graphc.codegen.schedule.plan import Plan, labels_of
from graphc.ir.node import CONSTANT, LEAVES, SIZE, Node, Size
from graphc.ir.verify import Step, on_pass
from graphc.ir.walk import nodes_of
from graphc.loopir.syntax import Names

PAGE = ROOT / "docs" / "how_it_works.md"
TARGET = "haswell"
"""The processor of the picture of vectors: four float64 in a register."""


@dataclass(frozen=True)
class Followed:
    """The forms of the program. lines: the program's, by their numbers on the page. written, rewritten: the kernel
    before and after rewriting. steps: each pass with the form before and after it."""

    lines: dict[int, str]
    variables: dict[str, Any]
    written: Kernel
    rewritten: Kernel
    report: Report
    steps: tuple[Step, ...]
    plan: Plan
    program: generation.Program


@cache
def follow() -> Followed:
    """Run the program of the page as far as the generated source."""
    text = PAGE.read_text("utf-8")
    found = re.search(r"<!-- program -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found
    before = text[: found.start(1)].count("\n")
    variables: dict[str, Any] = {}
    with graphc.options.change(mode="interpreted"), contextlib.redirect_stdout(io.StringIO()):
        exec(compile("\n" * before + found[1], str(PAGE), "exec"), variables)
    x, y, w = (variables[name] for name in ("x", "y", "w"))
    written = Kernel("step", (x, y), (w,), (variables["cost"],), ((w, variables["better"]),), "one")
    report = Report("step")
    steps: list[Step] = []
    with on_pass(steps.append):
        program = generation.generate_program(written, report)
    rewritten = generation.rewrite_kernel(written, Report("step"))
    lines = {before + n: line for n, line in enumerate(found[1].splitlines(), 1)}
    return Followed(lines, variables, written, rewritten, report, tuple(steps), plan_of(written, rewritten), program)


def plan_of(written: Kernel, kernel: Kernel) -> Plan:
    """The plan, as `generate` of the compiler makes it."""
    nodes = all_nodes(kernel.results)
    sizing = size_up(all_nodes(written.results), nodes)
    names = Names(generation.reserved_names(nodes))
    leaves = (*kernel.inputs, *kernel.shared, *generation.materialised_constants(kernel, sizing))
    buffers = {leaf: names.fresh(leaf.name or "const") for leaf in leaves}
    dims = generation.dims_of(leaves, buffers, names)
    size_names = {dim.size: dim.name for dim in reversed(dims) if dim.size.op is SIZE}
    return generation.plan_results(kernel, sizing, buffers, size_names, names, labels_of(nodes))[1]


def llvm_function(source: Followed, name: str) -> str:
    """The LLVM IR of one function of the generated source, vectorised for TARGET."""
    lower_modules = import_module("graphc.codegen.frontend.lowering").lower_modules  # it imports numba
    program = source.program
    with graphc.options.change(target=TARGET):
        for module in lower_modules(program.source, program.prototypes, program.externals, False):
            if found := re.search(rf'^define i64 @"{name}"\(.*?^}}', str(module.ir), re.DOTALL | re.MULTILINE):
                return found[0]
    raise LookupError(name)


# --- the text of graphs -----------------------------------------------------------------------------------------------


def computed(*results: Node) -> list[Node]:
    """The nodes that compute results, in order, without leaves."""
    return [node for node in nodes_of(results) if node.op not in LEAVES]


class Named:
    """Names of nodes in pictures: those of variables, and `v1`, `v2` and so on for what is computed."""

    def __init__(self, prefix: str = "v") -> None:
        self.prefix = prefix
        self.names: dict[Node, str] = {}

    def __call__(self, node: Node) -> str:
        if node.op is CONSTANT:
            return f"{float(node.attrs['value'].value):g}"
        if node.op in LEAVES:
            return node.name or str(node)
        return self.names.setdefault(node, f"{self.prefix}{len(self.names) + 1}")

    def line(self, node: Node) -> str:
        """A node as an assignment."""
        return f"{self(node)} = {self.call(node)}"

    def call(self, node: Node) -> str:
        """The op of a node with its operands; the sizes that something is broadcast to are left out."""
        operands = node.args[:1] if node.op.name == "broadcast_to" else node.args
        return f"{node.op.name}({', '.join(map(self, operands))})"


def type_text(node: Node, source: Followed) -> str:
    """The dtype and the sizes of a node, under the names that sizes have in generated source."""
    return f"{node.type.dtype}[{', '.join(size_text(size, source) for size in node.type.shape)}]"


def size_text(size: Size, source: Followed) -> str:
    """A size under the name that it has in generated source."""
    return source.plan.size_names.get(size, str(size)) if isinstance(size, Node) else str(size)
