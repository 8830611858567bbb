"""Functions that other processes compile while the program goes on: `options.compile = "background"`.

In: a kernel that is not in the cache. Out: a function that runs in the interpreted mode until its code is in the cache,
and from the next call on as native code. Its results have the same dtypes and shapes before and after, and the values
of shared variables go on from where they were; sums may differ in their last bits.

    graphc.options.compile = "background"
    f = graphc.function([x], T.exp(x).sum())     at once
    f(data)             interpreted
    f.is_ready          False
    graphc.wait()       True: all functions are compiled
    f(data)             native code
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, sleep
from typing import Any

import numpy as np

from graphc.codegen.call.bind import Direct, attach, detach
from graphc.codegen.pipeline.background import PAUSE, QUEUE, Job
from graphc.codegen.pipeline.build import work_of
from graphc.codegen.pipeline.kernel import progress
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.callables import Function, FunctionRequest, Interpreted
from graphc.functions.native import Compiled, direct_type
from graphc.ir.node import Array
from graphc.ir.source_lines import warn_user
from graphc.options import options
from graphc.startup.hooks import once


class Background(Interpreted, Direct):
    """A function that is compiled in other processes: interpreted until its code is in the cache, native then. Calls go
    to native code without Python where those of a compiled function do."""

    def __new__(cls, wanted: FunctionRequest, jobs: Sequence[Job]) -> Background:
        return object.__new__(cls if wanted.profile or wanted.call.keys is not None else _direct())

    def __init__(self, wanted: FunctionRequest, jobs: Sequence[Job]) -> None:
        super().__init__(wanted.kernel, wanted.call, wanted.profile)
        self.mode, self.make = "compiled", wanted.make
        self.jobs = list(jobs)
        self.whole: Function | None = None
        self.followers: list[Callable[[Function], object]] = []
        """Functions that are called once with that of the code."""

    @property
    def kind(self) -> type[Function]:
        return Compiled

    @property
    def is_ready(self) -> bool:
        if self.whole is None and self.jobs and all(job.poll() for job in self.jobs):
            self.take_code()
        return self.whole is not None

    def take_code(self) -> None:
        """Load the code that was compiled. Where it could not be, the function stays interpreted, with a warning."""
        jobs, self.jobs = self.jobs, []
        error: Any = next((job.error for job in jobs if job.error), None)
        if error is None:
            try:
                with options.change(compile="inline"):
                    whole = self.make()
                whole.name, whole.where = self.name, self.where
                self.whole = whole
                self.enter_native_code()
                followers, self.followers = self.followers, []
                for follow in followers:
                    follow(whole)
                return
            except GraphcError as raised:
                error = raised
        warn_user(f"{self.name} could not be compiled, and runs in the interpreted mode: {error}", RuntimeWarning)

    def enter_native_code(self) -> None:
        """From now on calls go to native code, unless Python has to add something to them."""
        if isinstance(self, _direct()):
            if isinstance(self.whole, Compiled) and not self.waiting:
                attach(self, self.whole.entry.__self__)
            else:
                detach(self)

    def wait_with(self, values: Mapping[int, Array]) -> None:
        super().wait_with(values)
        self.enter_native_code()

    def cancel(self) -> None:
        for job in self.jobs:
            job.cancel()
        self.jobs, self.followers = [], []

    def when_ready(self, follow: Callable[[Function], object]) -> None:
        self.followers.append(follow)

    def finished(self) -> Function:
        while self.jobs and not self.is_ready:
            sleep(PAUSE)
        return self if self.whole is None else self.whole

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        if self.is_ready and self.whole is not None:
            results: Any = self.whole.run_values(values, given)
            if isinstance(self.whole, Compiled) and self.kernel.returns == "one":
                return [results]
            return results or []
        return super().run_values(values, given)

    def memory(self, *sizes: Any) -> Any:
        return super().memory(*sizes) if self.whole is None else self.whole.memory(*sizes)

    def free(self) -> None:
        if self.whole is not None:
            self.whole.free()

    def explain(self) -> str:
        if self.whole is not None:
            return self.whole.explain()
        lines = [super().explain(), *map(_awaited, self.jobs)]
        return "\n".join(lines if self.jobs else [*lines, "compiling was given up"])


def _awaited(job: Job) -> str:
    """The line of `explain` about a kernel that is being compiled."""
    if job.process is None:
        return f"{job.kernel.name} waits for its turn to be compiled"
    return f"{job.kernel.name} is being compiled, {progress(perf_counter() - job.began, work_of(job.kernel))}"


@once
def _direct() -> type[Background]:
    return direct_type(Background)


def begun(wanted: FunctionRequest) -> Function | None:
    """Return a function whose stages are being compiled; None where other processes cannot compile them."""
    jobs = [QUEUE.add(stage, options.target) for stage in wanted.stages]
    started = [job for job in jobs if job is not None]
    if len(started) < len(jobs):
        for job in started:
            job.cancel()
        return None
    return Background(wanted, started)


def wait(timeout: float | None = None) -> bool:
    """Wait until all functions made with `options.compile = "background"` are compiled, and return True if they are.

    timeout: the longest wait, in seconds; None waits until all are compiled.

        >>> graphc.wait(timeout=1.0)
        True
    """
    if timeout is not None and not isinstance(timeout, (int, float, np.number)):
        raise ArgumentError(f"wait: timeout is {timeout!r}, which is no number of seconds, and not None")
    return QUEUE.wait(None if timeout is None else float(timeout))
