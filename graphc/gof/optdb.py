"""Theano's ways to register rewriting of one's own, which programs go through on their way: `local_optimizer`,
`register_canonicalize`, `OpRemove`, `optdb.register`.

In: functions of nodes, patterns of ops. Out: the same, kept and never applied: rewriting is graphc's own, and what a
program registers here would not change its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "EquilibriumOptimizer", "LocalOptimizer", "MergeOptimizer", "OpRemove", "OpSub", "OptimizationDatabase",
    "Optimizer", "PatternSub", "SeqOptimizer", "TopoOptimizer", "in2out", "local_optimizer", "optdb", "out2in",
    "register_canonicalize", "register_specialize", "register_specialize_device", "register_stabilize",
    "register_uncanonicalize", "register_useless",
]  # fmt: skip


class Optimizer:
    """A change of whole graphs; programs derive theirs from it and register them. Further arguments are kept."""

    name: str | None = None

    def __init__(self, *parts: Any, **given: Any) -> None:
        self.parts, self.given = parts, given

    def add_requirements(self, fgraph: Any) -> None:
        """What a graph is prepared with."""

    def apply(self, fgraph: Any) -> Any:
        """The change itself, which nothing calls."""

    def optimize(self, fgraph: Any, *args: Any, **kwargs: Any) -> Any:
        """Prepare a graph and change it, when a program does so itself."""
        self.add_requirements(fgraph)
        return self.apply(fgraph, *args, **kwargs)

    __call__ = optimize


class SeqOptimizer(Optimizer):
    """Changes one after the other."""


class EquilibriumOptimizer(Optimizer):
    """Changes until none of them finds anything."""


class MergeOptimizer(Optimizer):
    """Equal computations as one, which graphs of graphc have from the start."""


class TopoOptimizer(Optimizer):
    """A change of single applications, in order."""


def in2out(*local_opts: Any, **given: Any) -> TopoOptimizer:
    """Changes of single applications, from the inputs on."""
    return TopoOptimizer(*local_opts, order="in_to_out", **given)


def out2in(*local_opts: Any, **given: Any) -> TopoOptimizer:
    """Changes of single applications, from the outputs on."""
    return TopoOptimizer(*local_opts, order="out_to_in", **given)


class LocalOptimizer:
    """A change of single applications. tracks: the ops that it looks for. transform(node): what is put in their place,
    or False."""

    def __init__(self, transform: Callable[[Any], Any] | None = None, tracks: Sequence[Any] | None = None) -> None:
        self._transform, self._tracks = transform, tracks
        self.__name__ = getattr(transform, "__name__", type(self).__name__)

    def tracks(self) -> Sequence[Any] | None:
        """The ops that it looks for; None for all."""
        return self._tracks

    def transform(self, node: Any) -> Any:
        """What is put in an application's place; False where nothing is."""
        return False if self._transform is None else self._transform(node)

    def __call__(self, node: Any) -> Any:
        """As `transform`."""
        return self.transform(node)


class OpSub(LocalOptimizer):
    """One op in place of another, on the same inputs."""

    def __init__(self, op1: Any, op2: Any, transfer_tags: bool = True) -> None:
        super().__init__(tracks=[op1])
        self.op1, self.op2 = op1, op2


class OpRemove(LocalOptimizer):
    """An op's inputs in place of its outputs."""

    def __init__(self, op: Any) -> None:
        super().__init__(tracks=[op])
        self.op = op


class PatternSub(LocalOptimizer):
    """One pattern of ops, as (op, argument, …), in place of another."""

    def __init__(self, in_pattern: Any, out_pattern: Any, *args: Any, **given: Any) -> None:
        super().__init__()
        self.in_pattern, self.out_pattern = in_pattern, out_pattern


def local_optimizer(
    tracks: Sequence[Any] | None, inplace: bool = False, requirements: Any = ()
) -> Callable[[Callable[[Any], Any]], LocalOptimizer]:
    """A decorator: a function of an application becomes a `LocalOptimizer`."""
    return lambda transform: LocalOptimizer(transform, tracks)


class OptimizationDatabase:
    """What was registered, under its names. Nothing of it is applied."""

    def __init__(self) -> None:
        self.registered: dict[str, Any] = {}

    def register(self, name: str, obj: Any, *tags: Any, **given: Any) -> Any:
        """Keep a rewriting. Raises ValueError for a name that is taken."""
        if name in self.registered:
            raise ValueError(
                "The name of the object cannot be an existing tag or the name of another existing object.", name
            )
        self.registered[name] = obj
        return obj

    def __contains__(self, name: str) -> bool:
        return name in self.registered

    def __getitem__(self, name: str) -> Any:
        return self.registered[name]


optdb = OptimizationDatabase()


def register_canonicalize(lopt: Any, *tags: Any, **given: Any) -> Any:
    """Keep a rewriting, or be a decorator that does where the first argument is a tag."""
    if isinstance(lopt, str):
        return lambda found: register_canonicalize(found, lopt, *tags, **given)
    name = given.pop("name", None) or getattr(lopt, "__name__", repr(lopt))
    return optdb.register(name, lopt) if name not in optdb else lopt


register_specialize = register_stabilize = register_uncanonicalize = register_useless = register_canonicalize
register_specialize_device = register_canonicalize
