"""Programs run to fill the cache ahead of time, or to see why it lacks their functions: `graphc compile`, `cache why`.

In: a program's path and arguments. Out: what became of each function, as records.

    compile_program("model.py", [], ["haswell", "skylake-avx512"])
        [Outcome(name="train", where="model.py:12", target="haswell", seconds=1.4, error=""), ...]
    explain_program("model.py", [])
        (7, [Missing(name="train", where="model.py:12", why="differences from the most similar of 3 ...")])

The program runs to its end as it would alone. Functions that are not in the cache run in the interpreted mode
meanwhile: `compile_program` has other processes compile them, several at a time, for one target or more, also for
processors that this machine cannot run.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from graphc.codegen.cache.files import make_folder
from graphc.codegen.cache.key import for_target
from graphc.codegen.cache.manage import explain_miss, note_targets
from graphc.codegen.cache.store import holds
from graphc.codegen.llvm.cpu import lacking
from graphc.codegen.pipeline.background import QUEUE, Job, can_build
from graphc.codegen.pipeline.build import key_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import GraphcError
from graphc.functions.background import Background
from graphc.functions.callables import Function, FunctionRequest, Interpreted
from graphc.ir.node import user_line
from graphc.options import NATIVE, TARGETS, options
from graphc.startup.process import PROCESS
from graphc.startup.record import record


@record()
class Outcome:
    """A function's kernel and a target. seconds: of the process that compiled it, 0.0 where the cache had it. error:
    why it could not be compiled, else ""."""

    name: str
    where: str
    target: str
    seconds: float
    error: str


@record()
class Missing:
    """A function that the cache lacks. why: the difference from the most similar entry."""

    name: str
    where: str
    why: str


class Filling:
    """The planner of `compile_program`: it has kernels compiled for all targets, and makes functions that run
    interpreted until this machine has code for one of the targets that it runs."""

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = targets
        self.known: list[Outcome] = []
        self.jobs: list[tuple[str, Job]] = []

    def __call__(self, wanted: FunctionRequest) -> Function | None:
        where = str(user_line() or wanted.kernel.name)
        own = [job for stage in wanted.stages for job in self.added(stage, where) if job.target == options.target]
        if wanted.is_cached and options.target in self.targets:
            return None
        return Background(wanted, own) if own else Interpreted(wanted.kernel, wanted.call, wanted.profile)

    def added(self, kernel: Kernel, where: str) -> list[Job]:
        """Have a kernel compiled for those targets for which the cache has no code; return the jobs."""
        jobs, key = [], key_of(kernel)
        for target in self.targets:
            job = None if holds(for_target(key, target)) else QUEUE.add(kernel, target)
            if job is not None:
                jobs.append(job)
            elif can_build(kernel):
                self.known.append(Outcome(kernel.name, where, target, 0.0, ""))
            else:
                self.known.append(Outcome(kernel.name, where, target, 0.0, "it calls Python functions of the program"))
        self.jobs += [(where, job) for job in jobs]
        return jobs

    def outcomes(self) -> list[Outcome]:
        """Wait for all, and return what became of them."""
        QUEUE.wait()
        made = [Outcome(job.kernel.name, where, job.target, job.seconds, job.error) for where, job in self.jobs]
        return [*self.known, *made]


class Asking:
    """The planner of `explain_program`: it counts the kernels that the cache has, and explains why it lacks others."""

    def __init__(self) -> None:
        self.hits = 0
        self.missing: list[Missing] = []

    def __call__(self, wanted: FunctionRequest) -> Function | None:
        if wanted.is_cached:
            self.hits += 1
            return None
        for stage in wanted.stages:
            key = key_of(stage)
            if holds(key):
                self.hits += 1
            else:
                self.missing.append(Missing(stage.name, str(user_line() or stage.name), explain_miss(key)))
        return Interpreted(wanted.kernel, wanted.call, wanted.profile)


def compile_program(path: str, arguments: Sequence[str], targets: Sequence[str]) -> list[Outcome]:
    """Run a program, and compile all functions that it makes for each of `targets` into the cache.

    Code for named targets then serves functions of the target "native" too where there is none for them, as after an
    import. Where code depends on the values of a call (sizes that a traced function asks for), it is compiled for those
    that the program gives. Raises GraphcError for an unknown target, and where the cache is switched off; ProgramError
    where the program raises, when all that it made until then is compiled.
    """
    unknown = [target for target in targets if target not in TARGETS]
    if unknown:
        raise GraphcError(f"--target {unknown[0]}: must be one of {', '.join(TARGETS)}")
    if not options.cache:
        raise GraphcError("the cache is switched off (option cache): nothing can be compiled ahead")
    runs_here = [target for target in targets if not lacking(target)]
    options.target = runs_here[0] if runs_here else NATIVE
    filling = Filling(targets)
    make_folder(options.cache_dir)
    note_targets(options.cache_dir, set(targets))
    try:
        run_program(path, arguments, filling)
    except ProgramError as error:
        error.outcomes = filling.outcomes()
        raise
    return filling.outcomes()


def explain_program(path: str, arguments: Sequence[str]) -> tuple[int, list[Missing]]:
    """Run a program without compiling anything. Return the number of its kernels that the cache has, and those that it
    lacks; these run in the interpreted mode. Raises ProgramError where the program raises."""
    asking = Asking()
    run_program(path, arguments, asking)
    return asking.hits, asking.missing


class ProgramError(GraphcError):
    """A program raised an exception, which is the cause. outcomes: what was compiled before."""

    outcomes: Sequence[Outcome] = ()


def run_program(path: str, arguments: Sequence[str], planner: Any) -> None:
    """Run a program as `python path arguments` does, with a planner in place of the compiler."""
    if not os.path.isfile(path):
        raise GraphcError(f"there is no program {path}")
    before = sys.argv, sys.path[:], PROCESS.planner
    sys.argv, sys.path[0:0], PROCESS.planner = [path, *arguments], [os.path.dirname(os.path.abspath(path))], planner
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise ProgramError(f"{path} ended with code {end.code}") from end
    except Exception as error:
        raise ProgramError(f"{path}: {type(error).__name__}: {error}") from error
    finally:
        sys.argv, sys.path[:], PROCESS.planner = before
