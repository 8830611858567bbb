"""NumPy programs that write into arrays: stencils, a sieve, elimination, dynamic programs, particles in cells.

graphc compiles the text that NumPy runs (`graphc.jit`), but for the table of edits, whose cells are a `fori_loop`.
JAX, whose arrays cannot be written, has its usual form: `.at`, and loops of `lax`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.workload import Array, Builder, Data, Program, Size, Workload

ABSENT = {"torch": "it has no such loops", "pytensor": "it has no function of NumPy's text"}
STEPS = 50
CELLS = 64

# --- stencils ---------------------------------------------------------------------------------------------------------


def plane(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.normal(size=size).astype(dtype),))


def mean_of_neighbours(u: Array) -> Array:
    v = np.zeros_like(u)
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return v


def mean_in_jax(library: Any) -> Callable[..., Any]:
    jnp = library.numpy

    def call(u: Any) -> Any:
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return jnp.zeros_like(u).at[1:-1, 1:-1].set(inner)

    return call


def heat(u: Array) -> Array:
    u = u.copy()
    for _ in range(STEPS):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def heat_in_jax(library: Any) -> Callable[..., Any]:
    def step(_: Any, u: Any) -> Any:
        return u.at[1:-1].add(0.2 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return lambda u: library.jax.lax.fori_loop(0, STEPS, step, u)


def heat_slope(u: Array) -> Array:
    """The gradient of half the sum of squares after all steps."""
    slope = heat(u)
    for _ in range(STEPS):
        moved = 0.2 * slope[1:-1]
        slope[1:-1] -= 2 * moved
        slope[2:] += moved
        slope[:-2] += moved
    return slope


def energy(last: Any) -> Any:
    return (last**2).sum() / 2


# --- a sieve, elimination ---------------------------------------------------------------------------------------------


def flags(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((np.ones(size, np.int64),))


def sieve(flags: Array) -> Array:
    limit = flags.shape[0]
    is_prime = flags > 0
    is_prime[:2] = False
    for p in range(2, int(limit**0.5) + 1):
        is_prime[p * p :: p] = False
    return is_prime.astype(np.int8)


def sieve_in_jax(library: Any) -> Callable[..., Any]:
    def call(flags: Any) -> Any:
        is_prime = (flags > 0).at[:2].set(False)
        for p in range(2, int(flags.shape[0] ** 0.5) + 1):
            is_prime = is_prime.at[p * p :: p].set(False)
        return is_prime.astype("int8")

    return call


def matrix(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    (n,) = size
    return Data((rng.normal(size=(n, n)).astype(dtype) + n * np.eye(n, dtype=dtype),))


def factors(a: Array) -> Array:
    """L without its diagonal and U in one array, without exchanges of rows."""
    a = a.copy()
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return a


def factors_in_jax(library: Any) -> Callable[..., Any]:
    jnp = library.numpy

    def call(a: Any) -> Any:
        places = jnp.arange(a.shape[0])

        def column(k: Any, a: Any) -> Any:
            below = places > k
            scaled = jnp.where(below, a[:, k] / a[k, k], a[:, k])
            a = a.at[:, k].set(scaled)
            return a - jnp.where(below, scaled, 0)[:, None] * jnp.where(below, a[k], 0)[None]

        return library.jax.lax.fori_loop(0, a.shape[0] - 1, column, a)

    return call


# --- dynamic programs -------------------------------------------------------------------------------------------------


def letters(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data(tuple(rng.integers(4, size=length) for length in size))


def edit_table(left: Array, right: Array) -> Any:
    n, m = left.shape[0], right.shape[0]
    t = np.zeros((n + 1, m + 1))
    t[:, 0], t[0, :] = np.arange(n + 1), np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            changed = t[i - 1, j - 1] + (left[i - 1] != right[j - 1])
            t[i, j] = min(t[i - 1, j] + 1, t[i, j - 1] + 1, changed)
    return t[n, m]


def edit_table_in_loops(numpy: Any, lax: Any) -> Callable[..., Any]:
    def call(left: Any, right: Any) -> Any:
        n, m = left.shape[0], right.shape[0]
        t = numpy.zeros((n + 1, m + 1)).at[:, 0].set(numpy.arange(n + 1.0)).at[0, :].set(numpy.arange(m + 1.0))

        def row(i: Any, t: Any) -> Any:
            def cell(j: Any, t: Any) -> Any:
                changed = t[i - 1, j - 1] + (left[i - 1] != right[j - 1])
                return t.at[i, j].set(numpy.minimum(numpy.minimum(t[i - 1, j], t[i, j - 1]) + 1, changed))

            return lax.fori_loop(1, m + 1, cell, t)

        return lax.fori_loop(1, n + 1, row, t)[n, m]

    return call


def things(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    count, capacity = size
    return Data((rng.integers(1, capacity // 4, count), rng.random(count), np.zeros(capacity + 1)))


def knapsack(weights: Array, values: Array, best: Array) -> Array:
    best, room = best.copy(), np.arange(best.shape[0])
    for i in range(weights.shape[0]):
        best = np.where(weights[i] <= room, np.maximum(best, best[room - weights[i]] + values[i]), best)
    return best


def knapsack_in_jax(library: Any) -> Callable[..., Any]:
    jnp = library.numpy

    def call(weights: Any, values: Any, best: Any) -> Any:
        room = jnp.arange(best.shape[0])

        def thing(i: Any, best: Any) -> Any:
            return jnp.where(weights[i] <= room, jnp.maximum(best, best[room - weights[i]] + values[i]), best)

        return library.jax.lax.fori_loop(0, weights.shape[0], thing, best)

    return call


# --- particles in cells -----------------------------------------------------------------------------------------------


def particles(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    return Data((rng.random(size) * CELLS, rng.normal(size=size)))


def particle_step(x: Array, v: Array) -> tuple[Array, Array]:
    """Charges go to two cells each, the field is their integral, particles are moved by it."""
    rho = np.zeros(CELLS)
    i = np.floor(x).astype(np.int64) % CELLS
    f = x - np.floor(x)
    np.add.at(rho, i, 1 - f)
    np.add.at(rho, (i + 1) % CELLS, f)
    field = np.cumsum(rho / x.shape[0] * CELLS - 1)
    field = field - field.mean()
    v = v - 0.1 * (field[i] * (1 - f) + field[(i + 1) % CELLS] * f)
    return (x + 0.1 * v) % float(CELLS), v


def particle_step_in_jax(library: Any) -> Callable[..., Any]:
    jnp = library.numpy

    def call(x: Any, v: Any) -> Any:
        i = jnp.floor(x).astype("int64") % CELLS
        f = x - jnp.floor(x)
        rho = jnp.zeros(CELLS).at[i].add(1 - f).at[(i + 1) % CELLS].add(f)
        field = jnp.cumsum(rho / x.shape[0] * CELLS - 1)
        field = field - field.mean()
        v = v - 0.1 * (field[i] * (1 - f) + field[(i + 1) % CELLS] * f)
        return (x + 0.1 * v) % CELLS, v

    return call


# --- workloads --------------------------------------------------------------------------------------------------------


def builders(text: Callable[..., Any], in_jax: Callable[[Any], Callable[..., Any]]) -> Mapping[str, Builder]:
    """NumPy runs the text, graphc compiles it, JAX has its own form."""

    def run(library: Any, data: Data) -> Program:
        return Program(text)

    def compiled(library: Any, data: Data) -> Program:
        return Program(library.jit(text))

    def jax(library: Any, data: Data) -> Program:
        return Program(library.jit(in_jax(library)))

    return {"numpy": run, "symbolic": compiled, "jax": jax}


def edits_in_graphc(library: Any, data: Data) -> Program:
    return Program(library.jit(edit_table_in_loops(library.numpy, library.lax)))


def heat_gradient(library: Any, data: Data) -> Program:
    return Program(library.jit(library.grad(lambda u: energy(heat(u)))))


def heat_gradient_in_jax(library: Any) -> Callable[..., Any]:
    """Through loops of known length, which JAX makes scans."""
    last = heat_in_jax(library)
    slope: Callable[..., Any] = library.jax.grad(lambda u: energy(last(u)))
    return slope


_WORKLOADS = (
    Workload(
        "stencil",
        "mean of four neighbours, 200 x 200",
        plane,
        (200, 200),
        (6, 7),
        builders(mean_of_neighbours, mean_in_jax),
    ),
    Workload("heat", "50 steps of heat on 1,000 points, by slices", plane, (1000,), (9,), builders(heat, heat_in_jax)),
    Workload(
        "heat-gradient",
        "gradient through 50 steps of heat on 1,000 points",
        plane,
        (1000,),
        (9,),
        {**builders(heat_slope, heat_gradient_in_jax), "symbolic": heat_gradient},
    ),
    Workload("sieve", "a sieve up to 1,000", flags, (1000,), (30,), builders(sieve, sieve_in_jax)),
    Workload("lu-8", "elimination of 8 x 8, by slices", matrix, (8,), (4,), builders(factors, factors_in_jax)),
    Workload("lu-64", "elimination of 64 x 64, by slices", matrix, (64,), (5,), builders(factors, factors_in_jax)),
    Workload(
        "edit-table",
        "edit distance by a table of 100 x 100 cells",
        letters,
        (100, 100),
        (5, 6),
        {
            **builders(edit_table, lambda library: edit_table_in_loops(library.numpy, library.jax.lax)),
            "symbolic": edits_in_graphc,
        },
    ),
    Workload(
        "knapsack", "20 things in a knapsack of 100", things, (20, 100), (4, 20), builders(knapsack, knapsack_in_jax)
    ),
    Workload(
        "particle-step",
        "10,000 particles in 64 cells, a step",
        particles,
        (10_000,),
        (50,),
        builders(particle_step, particle_step_in_jax),
    ),
)
WORKLOADS = tuple(replace(workload, absent=ABSENT) for workload in _WORKLOADS)
