"""Random numbers and sorting: arrays of numbers, dropout, the price of an option whose paths are drawn, and orders.

Peers draw numbers of their own; what is compared of these are their mean, their deviation, and the share above 1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Array, Builder, Data, Program, Size, Workload

NO_LOOPS = {"numba": "its kernels would be NumPy's generator, or NumPy's sort"}
STREAM = 11


def seed(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """A seed for all calls, and how many numbers are wanted."""
    return Data((np.array(STREAM), np.array(size[0])))


def shares(results: list[Array]) -> list[Array]:
    return [np.array([1 + r.mean(), r.std(), (r > 0.5).mean()]) for r in results]


def drawn(name: str, of_numpy: str, of_torch: str) -> dict[str, Builder]:
    """A program of each peer that fills an array; new numbers with each call, or with each seed."""

    def build_numpy(library: Any, data: Data) -> Program:
        draw = getattr(np.random.default_rng(STREAM), of_numpy)
        return Program(lambda seed, count: draw(int(count)))

    def build_symbolic(library: Any, data: Data) -> Program:
        T, R = library.tensor, library.random  # noqa: N806 - as users write it
        start, count = T.lscalar("seed"), T.lscalar("count")
        return Program(library.function([start, count], getattr(R, name)(R.key(start), (count,))))

    def build_jax(library: Any, data: Data) -> Program:
        R, count = library.jax.random, int(data.arguments[1])  # noqa: N806
        return Program(library.jit(lambda start, _: getattr(R, name)(R.key(start), (count,), library.numpy.float64)))

    def build_torch(library: Any, data: Data) -> Program:
        torch, count = library.torch, int(data.arguments[1])
        draw = library.compile(lambda: getattr(torch, of_torch)(count, dtype=torch.float64))
        return Program(lambda seed, _: draw())

    return {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch}


# --- dropout ----------------------------------------------------------------------------------------------------------

KEPT = 0.8


def layer(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((np.array(STREAM), rng.normal(size=size)))


def dropout_numpy(library: Any, data: Data) -> Program:
    generator = np.random.default_rng(STREAM)

    def call(seed: Array, x: Array) -> Any:
        return np.where(generator.random(x.shape) < KEPT, np.tanh(x) / KEPT, 0.0)

    return Program(call)


def dropout_symbolic(library: Any, data: Data) -> Program:
    T, R = library.tensor, library.random  # noqa: N806
    start, x = T.lscalar("seed"), T.dvector("x")
    kept = R.bernoulli(R.key(start), KEPT, x.shape)
    return Program(library.function([start, x], T.switch(kept, T.tanh(x) / KEPT, 0.0)))


def dropout_jax(library: Any, data: Data) -> Program:
    jnp, R = library.numpy, library.jax.random  # noqa: N806

    def call(start: Any, x: Any) -> Any:
        return jnp.where(R.bernoulli(R.key(start), KEPT, x.shape), jnp.tanh(x) / KEPT, 0.0)

    return Program(library.jit(call))


def dropout_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    drop = library.compile(lambda x: torch.nn.functional.dropout(torch.tanh(x), 1 - KEPT))
    return Program(lambda seed, x: drop(x))


# --- a barrier option -------------------------------------------------------------------------------------------------

RATE, VOLATILITY, BARRIER = 0.02, 0.2, 130.0


def option(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """size: paths, steps. A seed, spot and strike, and the size."""
    return Data((np.array(STREAM), np.array(100.0), np.array(100.0), *map(np.array, size)))


def terms(steps: Any) -> tuple[Any, Any]:
    """The drift and the deviation of a step."""
    return (RATE - 0.5 * VOLATILITY**2) / steps, VOLATILITY * steps**-0.5


def barrier_numpy(library: Any, data: Data) -> Program:
    generator, (paths, steps) = np.random.default_rng(STREAM), map(int, data.arguments[3:])
    drift, width = terms(steps)

    def call(seed: Array, spot: Array, strike: Array, *size: Array) -> Any:
        x, alive = np.full(paths, np.log(spot)), np.ones(paths, bool)
        for _ in range(steps):
            x += drift + width * generator.standard_normal(paths)
            alive &= x < np.log(BARRIER)
        return np.exp(-RATE) * np.where(alive, np.maximum(np.exp(x) - strike, 0), 0).mean()

    return Program(call)


def barrier_symbolic(library: Any, data: Data) -> Program:
    T, R = library.tensor, library.random  # noqa: N806
    start, spot, strike = T.lscalar("seed"), T.dscalar("spot"), T.dscalar("strike")
    paths, steps = T.lscalar("paths"), T.lscalar("steps")
    drift, width = terms(steps)
    key = R.key(start)

    def step(number: Any, x: Any, alive: Any) -> Any:
        x = x + drift + width * R.normal(R.fold_in(key, number), (paths,))
        return x, T.and_(alive, T.lt(x, T.log(BARRIER)))

    begin = [T.zeros((paths,)) + T.log(spot), T.ones((paths,), "bool")]
    x, alive = library.scan(step, sequences=[T.arange(steps)], outputs_info=begin)
    paid = T.switch(alive[-1], T.maximum(T.exp(x[-1]) - strike, 0), 0)
    return Program(library.function([start, spot, strike, paths, steps], T.exp(-RATE) * paid.mean()))


def barrier_jax(library: Any, data: Data) -> Program:
    jnp, R = library.numpy, library.jax.random  # noqa: N806
    paths, steps = map(int, data.arguments[3:])
    drift, width = terms(steps)

    def call(start: Any, spot: Any, strike: Any, *size: Any) -> Any:
        key = R.key(start)

        def step(carry: Any, number: Any) -> Any:
            x, alive = carry
            x = x + drift + width * R.normal(R.fold_in(key, number), (paths,), jnp.float64)
            return (x, alive & (x < jnp.log(BARRIER))), None

        begin = jnp.full(paths, jnp.log(spot)), jnp.full(paths, True)
        (x, alive), _ = library.jax.lax.scan(step, begin, jnp.arange(steps))
        return jnp.exp(-RATE) * jnp.where(alive, jnp.maximum(jnp.exp(x) - strike, 0), 0).mean()

    return Program(library.jit(call))


def barrier_torch(library: Any, data: Data) -> Program:
    torch, (paths, steps) = library.torch, map(int, data.arguments[3:])
    drift, width = terms(steps)

    def step(x: Any, alive: Any) -> Any:
        x = x + drift + width * torch.randn(paths, dtype=torch.float64)
        return x, alive & (x < float(np.log(BARRIER)))

    step = library.compile(step)

    def call(seed: Any, spot: Any, strike: Any, *size: Any) -> Any:
        x, alive = torch.log(spot).expand(paths), torch.ones(paths, dtype=torch.bool)
        for _ in range(steps):
            x, alive = step(x, alive)
        return np.exp(-RATE) * torch.where(alive, torch.clamp(torch.exp(x) - strike, min=0), 0.0).mean()

    return Program(call)


# --- orders -----------------------------------------------------------------------------------------------------------

FIRST = 100
Order = Callable[[Any, Any], Any]


def unordered(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.normal(size=size),))


def ordered(of_numpy: Order, symbolic: Order, of_jax: Order, of_torch: Order) -> dict[str, Builder]:
    """Programs of one array, each written in its library's words."""

    def build_symbolic(library: Any, data: Data) -> Program:
        x = (library.tensor.dvector if data.arguments[0].ndim == 1 else library.tensor.dmatrix)("x")
        return Program(library.function([x], symbolic(library.tensor, x)))

    def build_torch(library: Any, data: Data) -> Program:
        return Program(library.compile(lambda x: of_torch(library.torch, x)))

    return {
        "numpy": lambda library, data: Program(lambda x: of_numpy(np, x)),
        "symbolic": build_symbolic,
        "jax": lambda library, data: Program(library.jit(lambda x: of_jax(library, x))),
        "torch": build_torch,
    }


def along(axis: int, name: str) -> dict[str, Builder]:
    def plainly(library: Any, x: Any) -> Any:
        return getattr(library, name)(x, axis)

    def of_torch(torch: Any, x: Any) -> Any:
        return torch.sort(x, axis).values if name == "sort" else torch.argsort(x, axis)

    return ordered(plainly, plainly, lambda jax, x: plainly(jax.numpy, x), of_torch)


TOP = ordered(
    lambda _, x: -np.sort(np.partition(-x, FIRST - 1)[:FIRST]),
    lambda T, x: T.topk(x, FIRST),  # noqa: N803
    lambda library, x: library.jax.lax.top_k(x, FIRST)[0],
    lambda torch, x: torch.topk(x, FIRST).values,
)

# ----------------------------------------------------------------------------------------------------------------------

MANY, FEW = (10_000_000,), (100_000,)

WORKLOADS = (
    Workload(
        "uniform",
        "1e7 uniform numbers, float64",
        seed,
        MANY,
        FEW,
        drawn("uniform", "random", "rand"),
        absent=NO_LOOPS,
        traffic=lambda size: 8 * size[0],
        tolerance=0.02,
        summary=shares,
    ),
    Workload(
        "normal",
        "1e7 normal numbers, float64",
        seed,
        MANY,
        FEW,
        drawn("normal", "standard_normal", "randn"),
        absent=NO_LOOPS,
        traffic=lambda size: 8 * size[0],
        tolerance=0.02,
        summary=shares,
    ),
    Workload(
        "dropout",
        "tanh of 1e7 numbers with dropout, float64",
        layer,
        MANY,
        FEW,
        {"numpy": dropout_numpy, "symbolic": dropout_symbolic, "jax": dropout_jax, "torch": dropout_torch},
        absent=NO_LOOPS,
        traffic=lambda size: 16 * size[0],
        tolerance=0.02,
        summary=shares,
    ),
    Workload(
        "barrier-option",
        "price of a barrier option, 1e5 paths of 250 steps, float64",
        option,
        (100_000, 250),
        (20_000, 5),
        {"numpy": barrier_numpy, "symbolic": barrier_symbolic, "jax": barrier_jax, "torch": barrier_torch},
        absent=NO_LOOPS,
        tolerance=0.05,
    ),
    *(
        Workload(
            f"{name}-{label}",
            f"{name} of {title}, float64",
            unordered,
            size,
            small,
            along(axis, name),
            absent=NO_LOOPS,
        )
        for name in ("sort", "argsort")
        for label, title, size, small, axis in (
            ("vector", "1e6 numbers", (1_000_000,), (1000,), -1),
            ("columns", "the columns of 1000 x 1000", (1000, 1000), (50, 30), 0),
            ("rows", "the rows of 1000 x 1000", (1000, 1000), (50, 30), 1),
        )
    ),
    Workload("topk", "the 100 largest of 1e6 numbers, float64", unordered, (1_000_000,), (1000,), TOP, absent=NO_LOOPS),
)
