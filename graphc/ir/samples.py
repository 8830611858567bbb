"""Facts about an op for tests and for algebraic rules: samples of its use, and its laws.

In: how to draw arguments and build a node of them. Out: records that an op carries (node.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from graphc.startup.record import record


@record()
class Argument:
    """An argument of a sample, drawn at random: its shape, category of dtype, and the interval of its elements."""

    shape: tuple[int, ...]
    category: Literal["float", "int", "bool", "index"] = "float"
    low: float = -2.0
    high: float = 2.0


@record()
class Sample:
    """One application of an op that tests check: value, dtype, layouts, and gradients up to second order if
    differentiable."""

    name: str
    build: Callable[..., Any]
    args: tuple[Argument, ...]
    differentiable: bool = True


Row: TypeAlias = "tuple[str, Callable[..., Any], *tuple[Argument | tuple[int, ...], ...]]"
"""A name, a function, and its arguments; a shape stands for an array of floats."""


class Samples(Sequence[Sample]):
    """A sequence of samples built on first access: programs never look at them, and a start would build a thousand."""

    def __init__(self, build: Callable[[], Iterable[Sample]]) -> None:
        self._build = build
        self._made: tuple[Sample, ...] | None = None

    def _all(self) -> tuple[Sample, ...]:
        if self._made is None:
            self._made = tuple(self._build())
        return self._made

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, position: Any) -> Any:
        return self._all()[position]


def samples(*rows: Row, others: Sequence[Row] = ()) -> Samples:
    """Samples as rows of a table. others: those without a derivative."""

    def build() -> Iterable[Sample]:
        for differentiable, own in ((True, rows), (False, others)):
            for name, function, *args in own:
                given = tuple([arg if isinstance(arg, Argument) else Argument(arg) for arg in args])
                yield Sample(name, function, given, differentiable)

    return Samples(build)


@record()
class Laws:
    """Algebraic laws of an op. Elements are numbers; op names refer to `OPS`.

    identity: f(x, e) = x. left_identity: f(e, x) = x. zero: f(x, z) = z (for real numbers; for IEEE numbers only where
    the rules say so). inverse: g with g(f(x)) = x. involution: f(f(x)) = x. idempotent: f(f(x)) = f(x).
    """

    identity: float | None = None
    left_identity: float | None = None
    zero: float | None = None
    inverse: str | None = None
    commutative: bool = False
    associative: bool = False
    involution: bool = False
    idempotent: bool = False
