"""The cold path: what happens only where the cache does not have a graph. Loaded at the first miss.

In: a `Kernel` as the user wrote it. Out: its generated source, its objects, its machine code as text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from graphc.codegen.blas import PROTOTYPES, PYTHON_SHIMS, blocks_name
from graphc.codegen.callback import CALLBACK, python_callback
from graphc.codegen.compile import SERVER, compile_assembly, compile_source
from graphc.codegen.entry import entry_ir
from graphc.codegen.kernel import Built, Kernel, Report
from graphc.codegen.launch import EXPORTS
from graphc.codegen.link import link
from graphc.codegen.objects import apart_ir
from graphc.codegen.pool import POOL_EXPORTS
from graphc.codegen.pool_ir import pool_ir
from graphc.codegen.prelude import bind_source
from graphc.codegen.product_blocks import blocks_ir
from graphc.codegen.products import blas_ir, effort_of
from graphc.codegen.program import Program, generate
from graphc.codegen.target import emit_object, has_avx512
from graphc.ir.walk import Graph
from graphc.options import options
from graphc.record import replace
from graphc.rewrite import rewrite

ENTRY_EFFORT = 2
"""LLVM's level for the entry point: it is short and runs at every call."""
APART_EFFORT = POOL_EFFORT = BLOCKS_EFFORT = 1
"""What is compiled once for a machine, but waited for at the first start: no loop in it gains from more."""


def start_compiler() -> None:
    """Let the compile process import numba while this one rewrites the graph."""
    if options.compile == "process":
        SERVER.start()


def rewrite_kernel(kernel: Kernel, report: Report) -> Kernel:
    graph, fired = rewrite(
        Graph(kernel.inputs, kernel.results), fast_math=options.fast_math, excluding=options.excluding
    )
    report.fired = [str(fire) for fire in fired]
    count = len(kernel.outputs)
    news = graph.outputs[count:]
    updates = tuple((leaf, new) for (leaf, _), new in zip(kernel.updates, news, strict=True))
    return replace(kernel, outputs=graph.outputs[:count], updates=updates)


def generate_program(kernel: Kernel, report: Report) -> Program:
    with report.phase("rewrite"):
        rewritten = rewrite_kernel(kernel, report)
    with report.phase("generate"):
        program = generate(kernel, rewritten, options.outline)
    report.plan = program.plan
    return program


def build_python(kernel: Kernel) -> Built:
    """What the `python` mode runs: the generated source, nothing compiled."""
    report = Report("generated")
    program = generate_program(kernel, report)
    return Built(program.signature, program.source, program.constants, program.calls, report)


def bind_python(built: Built, failures: list[BaseException]) -> dict[str, Callable[..., Any]]:
    """The functions of a generated source, run by CPython; what the user's ops raise goes to `failures`."""
    own = {f"{CALLBACK}{n}": python_callback(node, failures) for n, node in enumerate(built.calls)}
    name = f"<generated source of {built.signature.name}>"
    return bind_source(built.source, name, {**PYTHON_SHIMS, **own})


def build_assembly(kernel: Kernel) -> str:
    """The machine code of a kernel as text."""
    program = generate_program(kernel, Report())
    return compile_assembly(
        program.source, program.prototypes, externals=program.externals, fast_math=options.fast_math
    )


def compile_program(program: Program, meanwhile: Callable[[], bytes]) -> bytes:
    """The code of a program: its kernel, compiled by the compile process while this one compiles the entry point and
    does what else there is to do, of which the result is the object that entry points call."""
    kernel: list[bytes] = []
    problems: list[BaseException] = []

    def compile_kernel() -> None:
        try:
            kernel.append(
                compile_source(
                    program.source, program.prototypes, externals=program.externals, fast_math=options.fast_math
                )
            )
        except BaseException as error:  # raised again below, in the thread that asked
            problems.append(error)

    worker = threading.Thread(target=compile_kernel)
    worker.start()
    entry = emit_object([entry_ir(program.signature, whole=False)], ENTRY_EFFORT)
    shared = meanwhile()
    worker.join()
    if problems:
        raise problems[0]
    return link([kernel[0], entry, shared], EXPORTS)


def products_of(program: Program) -> list[str]:
    """The matrix products that a program calls."""
    return [name for name in program.externals if name in PROTOTYPES]


def compile_product(name: str) -> bytes:
    """The code of one of the matrix products."""
    return link([emit_object([blas_ir([name])], effort_of(name))], [name])


def compile_blocks(suffix: str) -> bytes:
    """The code of large products; empty where this CPU has no registers that make them faster than BLAS."""
    if not has_avx512():
        return b""
    return link([emit_object([blocks_ir(suffix)], BLOCKS_EFFORT)], [blocks_name(suffix)])


def compile_objects() -> bytes:
    """The object of what entry points call."""
    return emit_object([apart_ir()], APART_EFFORT)


def compile_pool() -> bytes:
    """The code of the pool of threads."""
    return link([emit_object([pool_ir()], POOL_EFFORT)], POOL_EXPORTS)
