"""Matrices: chains of small ones, batches of systems, a net's step, a Gaussian process, products away from square."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

# --- a chain of small matrices ----------------------------------------------------------------------------------------


def chain_data(rng: Numbers, matrices: int, side: int) -> tuple[Any, ...]:
    return rng.normal(size=(matrices, side, side)) / np.sqrt(side), rng.normal(size=side)


def chain_matrices(lib: Any, parts: Any, x: Any) -> Any:
    def step(product: Any, part: Any) -> Any:
        product = product @ part
        return product / lib.np.linalg.norm(product), None

    return lib.lax.scan(step, lib.np.eye(x.shape[0], dtype=x.dtype), parts)[0]


def chain_loop(lib: Any, parts: Any, x: Any) -> Any:
    def step(t: Any, product: Any) -> Any:
        product = lib.np.dot(product, parts[t])
        return product / lib.np.sqrt((product * product).sum())

    return lib.lax.fori_loop(0, parts.shape[0], step, lib.np.eye(x.shape[0], dtype=x.dtype))


def chain_loops(parts: Any, x: Any) -> Any:
    n = x.shape[0]
    product, new = np.eye(n), np.empty((n, n))
    for t in range(parts.shape[0]):
        squares = 0.0
        for i in range(n):
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += product[i, k] * parts[t, k, j]
                new[i, j] = total
                squares += total * total
        product[:] = new / np.sqrt(squares)
    return product


# --- a batch of small systems -----------------------------------------------------------------------------------------


def systems_data(rng: Numbers, batch: int, side: int) -> tuple[Any, ...]:
    return rng.normal(size=(batch, side, side)) + 3 * side * np.eye(side), rng.normal(size=(batch, side))


def systems_solve(lib: Any, a: Any, b: Any) -> Any:
    return lib.np.linalg.solve(a, b[:, :, None])[:, :, 0]


def systems_inverse(lib: Any, a: Any, b: Any) -> Any:
    return (lib.np.linalg.inv(a) @ b[..., None])[..., 0]


def systems_loops(a: Any, b: Any) -> Any:
    """Gauss with the largest of a column as the pivot."""
    a, x, n = a.copy(), b.copy(), a.shape[1]
    for s in range(a.shape[0]):
        for i in range(n):
            p = i
            for j in range(i + 1, n):
                if abs(a[s, j, i]) > abs(a[s, p, i]):
                    p = j
            for k in range(n):
                a[s, i, k], a[s, p, k] = a[s, p, k], a[s, i, k]
            x[s, i], x[s, p] = x[s, p], x[s, i]
            for j in range(i + 1, n):
                factor = a[s, j, i] / a[s, i, i]
                for k in range(i + 1, n):
                    a[s, j, k] -= factor * a[s, i, k]
                x[s, j] -= factor * x[s, i]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                x[s, i] -= a[s, i, j] * x[s, j]
            x[s, i] /= a[s, i, i]
    return x


# --- a step of a net with one hidden layer ----------------------------------------------------------------------------


def net_data(rng: Numbers, rows: int, inputs: int, hidden: int) -> tuple[Any, ...]:
    weights = rng.normal(size=(inputs, hidden)) / np.sqrt(inputs), np.zeros(hidden), rng.normal(size=hidden)
    return *weights, rng.normal(size=(rows, inputs)), rng.normal(size=rows)


def net_tanh(lib: Any, w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
    return lib.np.mean((lib.np.tanh(x @ w + b) @ v - y) ** 2)


def net_dots(lib: Any, w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
    off = y - lib.np.dot(lib.np.tanh(b + lib.np.dot(x, w)), v)
    return lib.np.sum(off * off) / x.shape[0]


def net_loops(w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(np.dot(x, w) + b)
    off = np.dot(hidden, v) - y
    return np.mean(off * off)


def net_slopes(w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(np.dot(x, w) + b)
    off = np.dot(hidden, v) - y
    outer = off * (2 / x.shape[0])
    back = np.outer(outer, v).astype(x.dtype) * (1 - hidden * hidden)
    return np.mean(off * off), np.dot(x.T, back), back.sum(axis=0), np.dot(hidden.T, outer.astype(x.dtype))


# --- the likelihood of a Gaussian process -----------------------------------------------------------------------------


def process_data(rng: Numbers, points: int) -> tuple[Any, ...]:
    return np.array(0.5), np.array(0.2), np.sort(rng.uniform(0, 5, points)), rng.normal(size=points)


def process_triangular(lib: Any, scale: Any, noise: Any, x: Any, y: Any) -> Any:
    cov = lib.np.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + noise * lib.np.eye(x.shape[0], dtype=x.dtype)
    root = lib.np.linalg.cholesky(cov)
    white = lib.linalg.solve_triangular(root, y, lower=True)
    return 0.5 * lib.np.sum(white**2) + lib.np.sum(lib.np.log(lib.np.diag(root)))


def process_solve(lib: Any, scale: Any, noise: Any, x: Any, y: Any) -> Any:
    apart = (x[:, None] - x[None, :]) ** 2
    cov = lib.np.exp(-apart / (2 * scale**2)) + noise * lib.np.eye(x.shape[0], dtype=x.dtype)
    return 0.5 * y @ lib.np.linalg.solve(cov, y) + 0.5 * lib.np.linalg.slogdet(cov)[1]


# --- products with a short side ---------------------------------------------------------------------------------------


def products_data(rng: Numbers, rows: int, inner: int, columns: int) -> tuple[Any, ...]:
    return rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns)), rng.normal(size=(columns, inner))


def products_plain(lib: Any, a: Any, b: Any, c: Any) -> Any:
    return a @ b + a @ c.T


def products_turned(lib: Any, a: Any, b: Any, c: Any) -> Any:
    return (b.T @ a.T).T + lib.np.einsum("ik,jk->ij", a, c)


def products_loops(a: Any, b: Any, c: Any) -> Any:
    return np.dot(a, b) + np.dot(a, c.T)


KINDS = (
    Kind(
        "chain",
        {"matrices": (10, 500), "side": (2, 10)},
        chain_data,
        {"scan": chain_matrices, "loop": chain_loop},
        chain_loops,
        dtypes=("float64",),
    ),
    Kind(
        "systems",
        {"batch": (5, 2000), "side": (2, 8)},
        systems_data,
        {"solve": systems_solve, "inverse": systems_inverse},
        systems_loops,
    ),
    Kind(
        "net",
        {"rows": (10, 1000), "inputs": (2, 64), "hidden": (4, 128)},
        net_data,
        {"tanh": net_tanh, "dots": net_dots},
        net_loops,
        net_slopes,
        wrt=(0, 1, 2),
    ),
    Kind(
        "process",
        {"points": (10, 200)},
        process_data,
        {"triangular": process_triangular, "solve": process_solve},
        wrt=(0, 1),
        dtypes=("float64",),
    ),
    Kind(
        "products",
        {"rows": (1, 1000), "inner": (1, 300), "columns": (1, 300)},
        products_data,
        {"plain": products_plain, "turned": products_turned},
        products_loops,
    ),
)
