"""What stands between two passes of the compiler: the verifiers, and whoever watches.

In: a pass by its name, what it was given, what it made of that. Out: nothing, or a VerifyError that names the pass.
With the option `verify` off and nobody watching a pass costs one question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from graphc.errors import GraphcError, VerifyError
from graphc.ir.walk import Graph
from graphc.loopir.ir import Function
from graphc.options import options
from graphc.startup.record import record

Form: TypeAlias = Graph | tuple[Function, ...]
"""What passes are given: a graph, or the functions of loops that stand in one source."""


@record()
class Step:
    """One pass over one form; nothing comes before the first."""

    name: str
    before: Form
    after: Form


_watchers: list[Callable[[Step], object]] = []


@contextmanager
def on_pass(watcher: Callable[[Step], object]) -> Iterator[None]:
    """While the block runs, `watcher` is told of every pass that has changed something."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def watched() -> bool:
    """Whether anybody wants to know of passes."""
    return options.verify or bool(_watchers)


def passed(step: Step, verify: Callable[[], None]) -> None:
    """Check what a pass made, and tell the watchers."""
    if options.verify:
        try:
            verify()
        except GraphcError as error:
            raise VerifyError(f"after the pass {step.name}: {error}; please report this") from error
    for watcher in tuple(_watchers):
        watcher(step)
