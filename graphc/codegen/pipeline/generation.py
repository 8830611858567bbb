"""From a graph to its generated source: rewriting, then program.py. Nothing is compiled, and no compiler imported.

In: a `Kernel` as the user wrote it. Out: its `Program`; for the `python` mode the functions of its source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.codegen.call.callback import CALLBACK, Failures, python_callback
from graphc.codegen.call.interrupt import KINDS, answer_no
from graphc.codegen.frontend.language import bind_source
from graphc.codegen.pipeline.kernel import Built, Kernel, Report
from graphc.codegen.pipeline.program import Program, generate
from graphc.codegen.routines import routine_shims
from graphc.ir.verify import verify
from graphc.ir.walk import Graph
from graphc.options import options
from graphc.rewrite import rewrite, tell_of
from graphc.startup.garbage import uncollected
from graphc.startup.record import replace


def rewrite_kernel(kernel: Kernel, report: Report) -> Kernel:
    graph, fired = rewrite(Graph(kernel.inputs, kernel.results), fast_math=kernel.is_fast, excluding=options.excluding)
    report.fired = tell_of(fired)
    count = len(kernel.outputs)
    news = graph.outputs[count:]
    updates = tuple((leaf, new) for (leaf, _), new in zip(kernel.updates, news, strict=True))
    return replace(kernel, outputs=graph.outputs[:count], updates=updates)


def generate_program(kernel: Kernel, report: Report) -> Program:
    if options.verify:
        verify(Graph(kernel.inputs, kernel.results), kernel.shared)
    with uncollected():
        with report.phase("rewrite"):
            rewritten = rewrite_kernel(kernel, report)
        with report.phase("generate"):
            program = generate(kernel, rewritten, options.outline)
    report.plan = program.plan
    return program


def build_python(kernel: Kernel) -> Built:
    """The generated source, for the `python` mode; nothing is compiled."""
    report = Report(kernel.name, "generated")
    program = generate_program(kernel, report)
    return Built(program.signature, program.source, program.constants, program.calls, report)


def bind_python(built: Built, failures: Failures) -> dict[str, Callable[..., Any]]:
    """The functions of a generated source, run by CPython; what the user's ops raise goes to `failures`."""
    own = {f"{CALLBACK}{n}": python_callback(node, failures) for n, node in enumerate(built.calls)}
    name = f"<generated source of {built.signature.name}>"
    shims = {**routine_shims(), **dict.fromkeys(KINDS, answer_no), **own}
    return bind_source(built.source, name, shims)
