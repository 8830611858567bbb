"""Theano's ways to register rewriting of a program's own, of which graphc applies none.

    @local_optimizer([T.Dot])            a function of an application, which the program may call itself
    @register_canonicalize               GraphcError, with the line: what to do instead
    PatternSub((T.exp, "x"), "x")        the same; to import the name, or to derive from the class, is no error

In: functions of nodes, patterns of ops. Out: a callable, or the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.errors import GraphcError
from graphc.ir.call_errors import explain_all

__all__ = [
    "EquilibriumOptimizer", "LocalOptimizer", "MergeOptimizer", "OpRemove", "OpSub", "OptimizationDatabase",
    "Optimizer", "PatternSub", "SeqOptimizer", "TopoOptimizer", "in2out", "local_optimizer", "optdb", "out2in",
    "register_canonicalize", "register_specialize", "register_specialize_device", "register_stabilize",
    "register_uncanonicalize", "register_useless",
]  # fmt: skip

INSTEAD = (
    "graphc applies no rewriting that a program registers, its own rules do the work (docs/rooms/rewrite.md); "
    "graphc.clone(output, replace={x: y}) changes a graph before it is compiled"
)


class LocalOptimizer:
    """A change of single applications. tracks: the ops that it looks for. transform(node): what is put in their place,
    or False. graphc never calls it."""

    def __init__(self, transform: Callable[[Any], Any] | None = None, tracks: Sequence[Any] | None = None) -> None:
        self._transform, self._tracks = transform, tracks
        self.__name__ = getattr(transform, "__name__", type(self).__name__)

    def tracks(self) -> Sequence[Any] | None:
        """The ops that it looks for; None for all."""
        return self._tracks

    def transform(self, node: Any) -> Any:
        """The replacement of an application; False where it stays."""
        return False if self._transform is None else self._transform(node)

    def __call__(self, node: Any) -> Any:
        """Same as `transform`."""
        return self.transform(node)


def local_optimizer(
    tracks: Sequence[Any] | None, inplace: bool = False, requirements: Any = ()
) -> Callable[[Callable[[Any], Any]], LocalOptimizer]:
    """A decorator: a function of an application becomes a `LocalOptimizer`."""
    return lambda transform: LocalOptimizer(transform, tracks)


class Optimizer:
    """A change of whole graphs. A program may derive from it; making one raises GraphcError."""

    def __init__(self, *parts: Any, **given: Any) -> None:
        raise GraphcError(INSTEAD)


class EquilibriumOptimizer(Optimizer):
    """Changes until none of them finds anything."""


class MergeOptimizer(Optimizer):
    """Equal computations as one, which graphs of graphc have from the start."""


class OpRemove(Optimizer):
    """An op's inputs in place of its outputs."""


class OpSub(Optimizer):
    """One op in place of another, on the same inputs."""


class PatternSub(Optimizer):
    """One pattern of ops in place of another."""


class SeqOptimizer(Optimizer):
    """Changes one after the other."""


class TopoOptimizer(Optimizer):
    """A change of single applications, in order."""


class OptimizationDatabase:
    """A place for rewriting, in which there is none."""

    def register(self, name: str, obj: Any, *tags: Any, **given: Any) -> Any:
        """Raises GraphcError."""
        raise GraphcError(INSTEAD)

    def __contains__(self, name: str) -> bool:
        return False


optdb = OptimizationDatabase()


def in2out(*local_opts: Any, **given: Any) -> Any:
    """Raises GraphcError; Theano's changes of single applications, from the inputs on."""
    raise GraphcError(INSTEAD)


def out2in(*local_opts: Any, **given: Any) -> Any:
    """Raises GraphcError; Theano's changes of single applications, from the outputs on."""
    raise GraphcError(INSTEAD)


def register_canonicalize(lopt: Any, *tags: Any, **given: Any) -> Any:
    """Raises GraphcError, under each of Theano's names for it."""
    raise GraphcError(INSTEAD)


register_specialize = register_stabilize = register_uncanonicalize = register_useless = register_canonicalize
register_specialize_device = register_canonicalize

explain_all(globals())
