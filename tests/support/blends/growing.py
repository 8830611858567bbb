"""Values grown one by one, in a program or in the body of a loop, each with what the interpreter says that it is.

In: a source of random numbers, leaves with their arrays. Out: nodes whose values are finite, small enough and not too
many: what a maker proposes and the interpreter refuses is dropped.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphc.errors import GraphcError
from graphc.ir.interpret import interpret, watched
from graphc.ir.node import NODES, Node
from graphc.ir.walk import Graph

Array = NDArray[Any]
Maker = Callable[["Grower"], "Node | Sequence[Node] | None"]
LARGEST, MOST = 4000, 1e4
REFUSALS = (GraphcError, ValueError, TypeError, IndexError, np.linalg.LinAlgError, ZeroDivisionError, OverflowError)


MOST_WORK = 60_000
"""Nodes that a maker asks for, and values that the interpreter computes for it, at most: most of a second."""


class Late(BaseException):
    """What a block is left with that takes too long."""


@dataclass(slots=True)
class Grower:
    """The values so far with their arrays, and the arrays of all leaves that they may depend on."""

    draw: random.Random
    makers: Sequence[Maker]
    leaves: dict[Node, Array]
    values: list[tuple[Node, Array]] = field(default_factory=list)
    depth: int = 0
    trouble: list[str] = field(default_factory=list)
    known: dict[Node, Array] = field(default_factory=dict)

    def value(self, node: Node) -> Array:
        """The array of a node, which is kept: the interpreter begins anew each time."""
        found = self.leaves.get(node)
        if found is None:
            found = self.known.get(node)
        if found is None:
            found = self.known[node] = interpret(Graph((), (node,)), self.leaves)[0]
        return found

    def pick(self, kinds: str = "f", ndim: int | None = None, least: int = 0, like: Node | None = None) -> Node | None:
        """One of the last values, mostly: of these kinds of dtypes, of this rank, or of the type of another."""
        other = None if like is None else self.value(like)
        found = [
            node
            for node, array in self.values
            if array.dtype.kind in kinds
            and (array.ndim == ndim if ndim is not None else array.ndim >= least)
            and (other is None or (array.dtype, array.shape) == (other.dtype, other.shape))
        ]
        if not found:
            return None
        return self.draw.choice(found[-5:] if self.draw.random() < 0.6 else found)

    def fits(self, node: Node, kinds: str = "f") -> Node | None:
        """A value of the same shape, of any dtype of these kinds."""
        shape = self.value(node).shape
        found = [other for other, array in self.values if array.dtype.kind in kinds and array.shape == shape]
        return self.draw.choice(found) if found else None

    def grow(self, count: int) -> None:
        for _ in range(count * 4):
            if count <= 0:
                return
            count -= self.once()

    def once(self) -> bool:
        maker = self.draw.choice(self.makers)
        try:
            with nullcontext() if self.depth else working(MOST_WORK):
                return self.made_by(maker)
        except REFUSALS:
            return False
        except Exception as error:
            self.trouble.append(f"{getattr(maker, '__name__', maker)}: {type(error).__name__}: {error}")
            return False
        except Late:
            if self.depth:
                raise
            return False

    def made_by(self, maker: Maker) -> bool:
        made = maker(self)
        if made is None:
            return False
        nodes = [made] if isinstance(made, Node) else list(made)
        if not nodes:
            return False
        arrays = interpret(Graph((), tuple(nodes)), self.leaves)
        if not all(fit(array) for array in arrays):
            return False
        self.values += zip(nodes, arrays, strict=True)
        self.known.update(zip(nodes, arrays, strict=True))
        return True


@contextmanager
def working(most: int) -> Iterator[None]:
    """The block makes so many nodes and computes so many values at most, or is refused. Time would not do: what is
    drawn next must not depend on how fast a machine is."""
    done = 0

    def work(*_: Any) -> None:
        nonlocal done
        done += 1
        if done > most:
            raise Late

    def note(node: Node) -> None:
        if before is not None:
            before(node)
        work()

    before = NODES.watch(note)
    try:
        with watched(work):
            yield
    finally:
        NODES.watch(before)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block takes so much of the processor's time at most, or is refused; 0 for any."""
    if seconds:
        signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        if seconds:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _late(*_: Any) -> None:
    raise Late


def fit(array: Array) -> bool:
    if array.size > LARGEST or array.ndim > 4:
        return False
    return array.dtype.kind != "f" or bool(np.all(np.abs(array) < MOST))
