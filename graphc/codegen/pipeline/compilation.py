"""Compiling: what happens only where the cache does not have a graph or a part. Loaded at the first miss.

In: a `Program`; the name of a part (runtime.py). Out: objects and images; the machine code of a kernel as text.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from platform import machine
from types import ModuleType
from typing import TypeAlias, cast

from graphc.codegen.call.c_interface import CALM, POINTER, Form
from graphc.codegen.call.entry import entry_ir, out_of_line_ir
from graphc.codegen.call.pointer_ir import pointer_ir
from graphc.codegen.gemm import blocks_name, free_name
from graphc.codegen.gemm.blocked import blocks_ir
from graphc.codegen.link.elf import link
from graphc.codegen.llvm.functions import module_text, split
from graphc.codegen.llvm.module import AHEAD, IR, Module
from graphc.codegen.llvm.target import emit_object, has_vector_products
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.program import Program, generate_program
from graphc.codegen.pipeline.runtime import ENTRY_POINTS, OUT_OF_LINE_OPT, missing_parts
from graphc.codegen.routines import family_of, routine_exports, routine_functions, routine_prototypes
from graphc.codegen.server.client import compile_assembly, compile_request, lower_source
from graphc.codegen.server.protocol import ELEMENTARY_OPT, Request
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import PARALLEL, POOL_EXPORTS
from graphc.errors import CompileError
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record


@record()
class Elementary:
    """The module of an elementary function, by its name: who compiles it writes it."""

    name: str


Source: TypeAlias = IR | Elementary
Job: TypeAlias = tuple[tuple[str | int, int], Source, int]
"""The name of a part, or of a kernel the number of the attempt, and the module's own; the module; LLVM's level for it.
"""

KERNEL_OPT = 3
PRODUCTS_OPT = 1
"""LLVM's level for what is no kernel: products and calls from C, which gain nothing by more."""
POOL_OPT = RARE_OPT = ENTRY_OPT = 0 if machine() == "x86_64" else 1
"""The pool's, whose code waits for threads or memory more than it runs: at level 0 machine code takes a fifth of the
time to make, which a first start waits for. For other processors LLVM then forgets which stores are non-temporal.
So does straight code that runs once for a launch or computes sizes, and launches are as fast. The entry point has its
values in registers at this level too, and calls are as fast as at level 1."""


def build_assembly(kernel: Kernel) -> str:
    """The machine code of a kernel as text."""
    program = generate_program(kernel, Report(kernel.name))
    return compile_assembly(program.source, program.prototypes, externals=program.externals, fast_math=kernel.is_fast)


class Work:
    """Modules of IR that are to be compiled, each with LLVM's level, as they come from `sources` sources."""

    def __init__(self, sources: int) -> None:
        self.jobs: deque[Job] = deque()
        self.sources = sources
        self.complete = False
        self.changed = threading.Condition()

    def add(self, job: Job) -> None:
        with self.changed:
            if not self.complete:
                self.jobs.append(job)
                self.changed.notify()

    def finish(self) -> None:
        """No more are to come from one of the sources."""
        with self.changed:
            self.sources -= 1
            self.complete = self.complete or self.sources == 0
            self.changed.notify_all()

    def abandon(self) -> None:
        """None of those left is wanted, nor any that would come."""
        with self.changed:
            self.complete = True
            self.jobs.clear()
            self.changed.notify_all()

    def take(self, last: bool) -> Job | None:
        """The last that is left, or the first, which is waited for; None where there will be no more."""
        with self.changed:
            while not self.jobs and not self.complete:
                self.changed.wait()
            return None if not self.jobs else self.jobs.pop() if last else self.jobs.popleft()


class Ahead:
    """Parts that a kernel is likely to need, compiled in the compile process while that waits for the kernel."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.made: dict[tuple[str | int, int], bytes] = {}
        self.stopped = not names or options.compile != "process"
        self.worker = threading.Thread(target=self._make, name=AHEAD)
        if not self.stopped:
            self.worker.start()

    def _make(self) -> None:
        for name in self.names:
            texts, opt = part_ir(name)
            for number, text in enumerate(texts):
                if self.stopped:
                    return
                try:
                    self.made[name, number] = emit_beside(text, opt)
                except CompileError:  # it will be said again by whoever needs the part
                    return

    def stop(self) -> None:
        """Begin no more modules."""
        self.stopped = True

    def finish(self) -> dict[tuple[str | int, int], bytes]:
        """The modules that were made, when the last one is."""
        self.stop()
        if self.worker.ident is not None:
            self.worker.join()
        return self.made


class Compilation:
    """The modules of a kernel, as they are lowered, and of parts; what they were compiled to."""

    def __init__(self) -> None:
        self.work = Work(sources=2)
        self.made: dict[tuple[str | int, int], bytes] = {}
        self.attempts: list[int] = []
        """The number of modules that each attempt to lower the kernel gave."""
        self.counts: dict[str, int] = {}
        """The number of modules of each part."""
        self.called: dict[str, None] = {}
        """The elementary functions that the kernel calls."""

    def add_part(self, name: str) -> None:
        texts, opt = part_ir(name)
        self.counts[name] = len(texts)
        for number, text in enumerate(texts):
            if (name, number) not in self.made:
                self.work.add(((name, number), text, opt))

    def add_module(self, number: int, module: Module) -> None:
        """The next module of the kernel, and the functions that it calls where they are missing."""
        if number == 0:
            self.attempts.append(0)
        self.attempts[-1] = number + 1
        self.work.add(((len(self.attempts), number), module, RARE_OPT if module.is_rare else KERNEL_OPT))
        new = [name for name in module.calls if name not in self.called]
        self.called |= dict.fromkeys(new)
        for name in missing_parts(new):
            self.add_part(name)

    def compile_all(self, emit: Callable[[Source, int], bytes], last: bool) -> None:
        """Compile modules until there will be no more, from the last that is there or from the first."""
        while (job := self.work.take(last)) is not None:
            name, source, opt = job
            self.made[name] = emit(source, opt)

    def kernel(self) -> list[bytes]:
        """The objects of the kernel's last attempt."""
        return [self.made[len(self.attempts), number] for number in range(self.attempts[-1])]

    def parts(self) -> dict[str, bytes]:
        """The code of each part."""
        return {
            name: finish_part(name, [self.made[name, number] for number in range(count)])
            for name, count in self.counts.items()
        }


@record()
class Compiled:
    """A program compiled: the objects of its kernel and its entry point; the names of the parts with the elementary
    functions that they call; the code of the parts that were missing."""

    objects: list[bytes]
    called: list[str]
    parts: dict[str, bytes]


def compile_program(program: Program, parts: Sequence[str], fast_math: bool, ahead: Ahead) -> Compiled:
    """A program compiled, with these parts, which it needs beside. `fast_math` lets arithmetic be done in any order.
    `ahead`: the parts that were begun.

    The compile process lowers the kernel, module by module, while this one makes the entry point, then takes parts and
    modules from the first on. When all are lowered, the compile process takes modules and parts too, from the last on.
    """
    compilation = Compilation()
    work = compilation.work
    problems: list[BaseException] = []

    def compile_beside() -> None:
        try:
            ahead.finish()
            lower_source(
                program.source,
                program.prototypes,
                compilation.add_module,
                externals=program.externals,
                fast_math=fast_math,
            )
            work.finish()
            compilation.compile_all(emit_beside, last=True)
        except BaseException as error:  # raised again below, in the thread that asked
            problems.append(error)
            work.abandon()

    worker = threading.Thread(target=compile_beside)
    try:
        worker.start()  # an interrupt in here finds the worker waiting for modules
        entry = entry_object(entry_ir(program.signature, whole=False, poison=options.poison != "off"), options.target)
        compilation.made |= ahead.finish()
        for name in parts:
            compilation.add_part(name)
        work.finish()
        compilation.compile_all(emit_here, last=False)
    except BaseException:
        work.abandon()
        raise
    finally:
        if worker.ident is not None:
            worker.join()
    if problems:
        raise problems[0]
    return Compiled([*compilation.kernel(), entry], list(compilation.called), compilation.parts())


@lru_cache(maxsize=256)
def entry_object(ir: str, target: str) -> bytes:
    """The object of an entry point, compiled in this process. Its IR follows from the signature alone, so that
    functions with equal ones, and the variants of a traced function, share it."""
    return emit_here(Module(ir, is_straight=True, is_rare=True, in_registers=True), ENTRY_OPT)


def vecmath() -> ModuleType:
    """Return the module that writes elementary functions. It is imported late: most programs call none that is missing,
    and of others the compile process takes some."""
    return import_module("graphc.codegen.vecmath.table")


def emit_here(source: Source, opt: int) -> bytes:
    """The object of a module, compiled in this process."""
    if isinstance(source, Elementary):
        source = cast("str", vecmath().math_ir(source.name))
    return emit_object([source], opt)


def emit_beside(source: Source, opt: int) -> bytes:
    """The same, compiled in the compile process."""
    if isinstance(source, Elementary):
        return compile_request(Request(elementary=(source.name,), opt=opt))
    return compile_request(Request(modules=(source,), opt=opt))


def products_of(program: Program) -> list[str]:
    """The external routines that a program calls."""
    return [name for name in program.externals if name in routine_prototypes()]


LARGE_PRODUCTS = {blocks_name(suffix): suffix for suffix in ("f64", "f32")}
"""The suffix of each. They are ours where the CPU has registers that make them as fast as any BLAS, whatever BLAS there
is: a bit of a result depends neither on that, nor on its threads, nor on a clock."""


def part_ir(name: str) -> tuple[Sequence[Source], int]:
    """The IR of a part (runtime.py), in modules, and LLVM's level for it."""
    if name == ENTRY_POINTS:
        return [out_of_line_ir()], OUT_OF_LINE_OPT
    if name.startswith(POINTER):
        return [pointer_ir(Form.from_name(name), options.poison != "off")], PRODUCTS_OPT
    if name == PARALLEL:
        return [pool_ir(options.poison != "off")], POOL_OPT
    if name in routine_prototypes():
        family, functions = family_of(name), routine_functions([name])
        if family.modules == 1:
            return [module_text(functions, poison=options.poison != "off")], PRODUCTS_OPT
        texts = split(functions, family.modules, options.poison != "off")
        return [Module(text, is_ordered=family.is_products) for text in texts], PRODUCTS_OPT
    if name in LARGE_PRODUCTS:
        texts = [blocks_ir(LARGE_PRODUCTS[name], options.poison != "off")] if has_vector_products() else []
        return [Module(text, is_ordered=True) for text in texts], PRODUCTS_OPT
    return [Elementary(name)], ELEMENTARY_OPT


def finish_part(name: str, objects: Sequence[bytes]) -> bytes:
    """The code of a part, from the objects of its modules; that of large products is empty where BLAS computes them."""
    if name in LARGE_PRODUCTS:
        return link(objects, [name, free_name(LARGE_PRODUCTS[name])]) if objects else b""
    if name == PARALLEL:
        return link(objects, POOL_EXPORTS)
    if name.startswith(POINTER):
        return link(objects, [POINTER, CALM])
    return link(objects, routine_exports(name)) if name in routine_prototypes() else objects[0]


def compile_part(name: str) -> bytes:
    """The code of a part, compiled in this process."""
    texts, opt = part_ir(name)
    return finish_part(name, [emit_here(text, opt) for text in texts])


def part_names() -> list[str]:
    """The names of all parts that are compiled ahead for whoever may need them (release/parts.py)."""
    table = vecmath()
    functions = (*table.VECTOR_MATH, *table.JOINT_MATH)
    elementary = [f"gc_{name}_{suffix}" for name in functions for suffix in ("f32", "f64")]
    elementary += [f"gc_{name}_f64" for name in table.COUNTED]
    return [ENTRY_POINTS, PARALLEL, *LARGE_PRODUCTS, *routine_prototypes(), *elementary]


HOOKS.compiled_part = compile_part
