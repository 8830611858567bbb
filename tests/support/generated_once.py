"""Programs that mode `python` takes over from compiled functions of equal graphs, while a block runs.

In: nothing. Out: a context. Generating a program takes a third of the time of a small compiled function, and tests
compare both modes: so mode `python` runs the very statements that were compiled. Programs that call Python functions of
the user, and those that somebody watches being made, are generated each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from graphc.codegen.pipeline import program
from graphc.codegen.pipeline.build import key_of
from graphc.codegen.pipeline.kernel import Built, Kernel, Report
from graphc.ir import verify
from graphc.startup.record import replace

KEPT = 100
"""As many programs are remembered."""


@contextmanager
def generated_once() -> Iterator[None]:
    made: OrderedDict[str, tuple[program.Program, Report]] = OrderedDict()
    generate = program.generate_program

    def remembered(kernel: Kernel, report: Report, digest: str) -> program.Program:
        found = generate(kernel, report)
        if not found.calls:
            made[digest] = replace(found, checks=()), report  # these know the graph and its variables
        if len(made) > KEPT:
            made.popitem(last=False)
        return found

    def generated(kernel: Kernel, report: Report) -> program.Program:
        digest = key_of(kernel).digest
        known = known_program(digest)
        if known is None or known[1].key:  # one that was compiled is not compiled again
            return remembered(kernel, report, digest)
        found, before = known
        report.fired, report.plan = before.fired, before.plan
        report.phases.update(before.phases)
        return found

    def build_python(kernel: Kernel) -> Built:
        report = Report(kernel.name, "generated")
        digest = key_of(kernel).digest
        known = known_program(digest)
        if known is None:
            found = remembered(kernel, report, digest)
        else:
            found, before = known
            report.fired, report.plan = before.fired, found.plan
        return Built(found.signature, found.source, found.constants, found.calls, report)

    def known_program(digest: str) -> tuple[program.Program, Report] | None:
        return made.get(digest) if not verify._watchers else None

    for each in (remembered, generated, build_python):  # the line that made a function is looked for outside of graphc
        each.__code__ = each.__code__.replace(co_filename=program.__file__)
    with (
        mock.patch.object(program, "generate_program", generated),
        mock.patch.object(program, "build_python", build_python),
    ):
        yield
