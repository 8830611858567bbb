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

from collections.abc import Sequence
from typing import Any

from graphc.codegen.pipeline.background import QUEUE, Job
from graphc.errors import GraphcError
from graphc.functions.callables import Function, Interpreted, Wanted
from graphc.functions.native import Compiled
from graphc.ir.node import Array
from graphc.ir.source_lines import warn_user
from graphc.options import options


class Background(Interpreted):
    """A function that is compiled in other processes: interpreted until its code is in the cache, native then."""

    def __init__(self, wanted: Wanted, jobs: Sequence[Job]) -> None:
        super().__init__(wanted.kernel, wanted.call, wanted.profile)
        self.mode, self.make = "compiled", wanted.make
        self.jobs = list(jobs)
        self.whole: Function | None = None

    @property
    def kind(self) -> type[Function]:
        return Compiled

    @property
    def is_ready(self) -> bool:
        """True where the next call runs native code."""
        if self.whole is None and self.jobs and all(job.poll() for job in self.jobs):
            self.take_code()
        return self.whole is not None

    def take_code(self) -> None:
        """Load the code that was compiled. Where it could not be, the function stays interpreted, with a warning."""
        self.jobs = []
        try:
            with options.change(compile="inline"):
                self.whole = self.make()
        except GraphcError as error:
            warn_user(f"{self.name} could not be compiled, and runs in the interpreted mode: {error}", RuntimeWarning)

    def cancel(self) -> None:
        """Give up compiling: the function stays interpreted."""
        for job in self.jobs:
            job.cancel()
        self.jobs = []

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
        state = f"{len(self.jobs)} kernels are being compiled" if self.jobs else "compiling was given up"
        return f"{super().explain()}\n{state}"


def begun(wanted: Wanted) -> Function | None:
    """Return a function whose stages are being compiled; None where other processes cannot compile them."""
    jobs = [QUEUE.add(stage, options.target) for stage in wanted.stages]
    started = [job for job in jobs if job is not None]
    if len(started) < len(jobs):
        for job in started:
            job.cancel()
        return None
    return Background(wanted, started)


def wait(timeout: float | None = None) -> bool:
    """Wait until all functions made with `options.compile = "background"` are compiled, at most `timeout` seconds.
    Return whether they are."""
    return QUEUE.wait(timeout)
