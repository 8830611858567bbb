"""Records of the sweep: a kind is a row of a table, a program is a kind with all that was drawn for it.

In: a seed. Out: programs that any process can make again, since a program is drawn from numbers alone:

    draw(7, 3) == [Program("garch", "carry", "float64", {"n": 1210}, ...), Program("nbody", ...), Program("cox", ...)]

A kind has one text in several ways, each a function `text(lib, *arguments)` in NumPy's words. `lib` (see
`libraries.py`) is NumPy, graphc or JAX. `loops` is the same computation in plain loops, for numba; `slopes` computes
the value and the gradient with respect to the arguments `wrt` in plain loops. Both take the arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    sizes: the least and the largest of each size; sizes are drawn with even logarithms. data: the arguments, from
    random numbers and sizes, in float64 and int64. ways: the text, by the name of the way it is written in. loops,
    slopes: by hand, or None where no loop in numba says the same. wrt: the arguments that a gradient is taken of, or
    their positions by the number of arguments; without them the kind has no gradient. dtypes: to draw from. tolerance:
    of the largest element of a result, in float64. asks: the arguments whose sizes the text asks for in Python: they
    are declared with known sizes always.
    """

    name: str
    sizes: Mapping[str, tuple[int, int]]
    data: Callable[..., tuple[Any, ...]]
    ways: Mapping[str, Callable[..., Any]]
    loops: Callable[..., Any] | None = None
    slopes: Callable[..., Any] | None = None
    wrt: Callable[..., tuple[int, ...]] | tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ("float64", "float64", "float32")
    tolerance: float = 1e-8
    asks: tuple[int, ...] = ()

    def by_hand(self, gradient: bool) -> Callable[..., Any] | None:
        return self.slopes if gradient else self.loops


@dataclass(frozen=True)
class Program:
    """A kind, one of its ways, and what was drawn. front: how graphc is called, see `libraries.py`."""

    kind: str
    way: str
    dtype: str
    sizes: Mapping[str, int]
    front: str
    gradient: bool
    seed: int = field(default=0)

    @property
    def title(self) -> str:
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        gradient = ", gradient" if self.gradient else ""
        return f"{self.kind} ({self.way}) {self.dtype} {sizes}, {self.front}{gradient}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


FRONTS = ("jit", "jit", "function", "static")


def arguments(kind: Kind, program: Program) -> list[Array]:
    """The program's inputs, floats in its dtype."""
    made = kind.data(np.random.default_rng(program.seed), **program.sizes)
    arrays = [np.asarray(value) for value in made]
    return [array.astype(program.dtype) if array.dtype.kind == "f" else array for array in arrays]


def of_gradient(kind: Kind, count: int) -> tuple[int, ...]:
    """The positions of the arguments that the gradient is taken of."""
    return kind.wrt(count) if callable(kind.wrt) else kind.wrt


def draw_one(kind: Kind, rng: Numbers) -> Program:
    """A program of the kind."""
    bounds = kind.sizes.items()
    sizes = {name: round(float(np.exp(rng.uniform(*np.log(both))))) for name, both in bounds}
    gradient = bool(kind.wrt) and rng.uniform() < 0.6
    picked = [str(rng.choice(options)) for options in (list(kind.ways), kind.dtypes, FRONTS)]
    way, dtype, front = picked
    return Program(kind.name, way, dtype, sizes, front, gradient, int(rng.integers(2**31)))


def draw(seed: int, count: int, kinds: Mapping[str, Kind]) -> list[Program]:
    """Programs, all kinds equally often: each time through the kinds in another order."""
    rng = np.random.default_rng(seed)
    names: list[str] = []
    while len(names) < count:
        names += [str(name) for name in rng.permutation(list(kinds))]
    return [draw_one(kinds[name], rng) for name in names[:count]]
