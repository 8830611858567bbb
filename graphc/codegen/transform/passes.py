"""The way of a function through the passes over its loops: all of them are carried out here, or told of.

In: a pass by its name, and the statements it is to change, or has changed. Out: the changed statements, verified and
shown to those who watch (ir/passes.py), who are given whole functions.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from graphc.ir.passes import Step, passed, watched
from graphc.loopir.ir import INDEX, Buffer, Function, Stmt, Var

Body: TypeAlias = tuple[Stmt, ...]
Change: TypeAlias = Callable[[Body], Body]
"""A pass that needs to know the statements only."""
Run: TypeAlias = Callable[[str, Change, Body], Body]
"""What carries out passes."""
Externals: TypeAlias = Mapping[str, Sequence[str]]
"""The kinds of the parameters of external functions, by their names."""


def apply(name: str, change: Change, body: Body) -> Body:
    """Carry out a pass that nobody watches."""
    return change(body)


class Passes:
    """The passes over one function: its name, its buffers, to which passes may add some, and its sizes;
    `externals` tells what external functions take. `results`: the buffers that hold nothing when the function begins,
    besides temporaries. `latest`: what the last pass has made."""

    __slots__ = ("buffers", "externals", "latest", "name", "results", "sizes")

    def __init__(
        self,
        name: str,
        buffers: Iterable[Buffer],
        sizes: Sequence[str],
        externals: Callable[[], Externals],
        results: Container[str] = (),
    ) -> None:
        self.name, self.buffers, self.sizes, self.externals = name, [*dict.fromkeys(buffers)], sizes, externals
        self.results = results
        self.latest: tuple[Function, ...] = ()

    def know(self, changed: Mapping[Buffer, Buffer], new: Iterable[Buffer]) -> None:
        """Buffers are known as others, and there are new ones."""
        self.buffers = [*(changed.get(buffer, buffer) for buffer in self.buffers), *new]

    def run(self, name: str, change: Change, body: Body) -> Body:
        """Carry out a pass."""
        after = change(body)
        self.ran(name, after)
        return after

    def ran(self, name: str, body: Body, callees: Sequence[Function] = ()) -> None:
        """A pass was carried out, and made these statements, which call these functions."""
        if watched():
            sizes = (Var(size, INDEX) for size in self.sizes)
            params: tuple[Var | Buffer, ...] = (*self.buffers, *sizes)
            self.made(name, (*callees, Function(self.name, params, body, "")))

    def made(self, name: str, functions: tuple[Function, ...]) -> None:
        """A pass was carried out, and made these functions."""
        if not watched() or functions == self.latest:
            return

        def verify() -> None:
            # Imported here: nobody needs it who does not ask for it.
            verifier = import_module("graphc.loopir.verify")
            unwritten = [each.name for each in self.buffers if each.is_temporary or each.name in self.results]
            verifier.verify_functions(functions, self.externals(), unwritten)

        before, self.latest = self.latest, functions
        passed(Step(name, before, functions), verify)
