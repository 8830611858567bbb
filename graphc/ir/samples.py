"""What tests and algebra know of an op: samples of its use, and laws.

In: how arguments are drawn, how a node is built of them. Out: records that an op carries (node.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from graphc.startup.record import record


@record()
class Argument:
    """How tests draw an argument of a sample: its shape, dtype kind and the interval of its elements."""

    shape: tuple[int, ...]
    kind: Literal["float", "int", "bool", "index"] = "float"
    low: float = -2.0
    high: float = 2.0


@record()
class Sample:
    """An application of an op on which it is tested: value, dtype, layouts, gradient to second order."""

    name: str
    build: Callable[..., Any]
    args: tuple[Argument, ...]
    differentiable: bool = True


class Samples(Sequence[Sample]):
    """Samples that are made when somebody looks at them: programs do not, and would make a thousand when they start."""

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


@record()
class Laws:
    """What algebra knows of an op. Elements are numbers; op names refer to `OPS`.

    identity: f(x, e) = x. zero: f(x, z) = z (true of real numbers; of IEEE numbers only where noted by the rules).
    inverse: g with g(f(x)) = x. involution: f(f(x)) = x. idempotent: f(f(x)) = f(x).
    """

    identity: float | None = None
    left_identity: float | None = None
    zero: float | None = None
    inverse: str | None = None
    commutative: bool = False
    associative: bool = False
    involution: bool = False
    idempotent: bool = False
