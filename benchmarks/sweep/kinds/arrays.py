"""Rows and columns: softmax, running sums, order, gathers and scatters, sums over other axes, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

TABLE = {"rows": (5, 3000), "columns": (3, 300)}


def table(rng: Numbers, rows: int, columns: int) -> tuple[Any, ...]:
    return (rng.normal(size=(rows, columns)),)


# --- softmax of rows --------------------------------------------------------------------------------------------------


def softmax_by_hand(lib: Any, x: Any) -> Any:
    powers = lib.np.exp(x - lib.np.max(x, axis=1, keepdims=True))
    return powers / lib.np.sum(powers, axis=1, keepdims=True)


def softmax_named(lib: Any, x: Any) -> Any:
    return lib.special.softmax(x, axis=1)


def softmax_logsumexp(lib: Any, x: Any) -> Any:
    return lib.np.exp(x - lib.special.logsumexp(x, axis=-1)[:, None])


def softmax_loops(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        most = -np.inf
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - most)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


# --- the cross entropy of rows with labels ----------------------------------------------------------------------------


def labels_data(rng: Numbers, rows: int, columns: int) -> tuple[Any, ...]:
    return rng.normal(size=(rows, columns)), rng.integers(0, columns, rows)


def labels_gather(lib: Any, x: Any, y: Any) -> Any:
    return lib.np.mean(lib.special.logsumexp(x, axis=1) - x[lib.np.arange(x.shape[0]), y])


def labels_onehot(lib: Any, x: Any, y: Any) -> Any:
    shifted = x - lib.np.max(x, axis=1, keepdims=True)
    logs = shifted - lib.np.log(lib.np.sum(lib.np.exp(shifted), axis=1, keepdims=True))
    chosen = y[:, None] == lib.np.arange(x.shape[1])
    return -lib.np.sum(lib.np.where(chosen, logs, 0.0)) / x.shape[0]


def labels_loops(x: Any, y: Any) -> Any:
    whole = 0.0
    for i in range(x.shape[0]):
        most = -np.inf
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += np.exp(x[i, j] - most)
        whole += np.log(total) + most - x[i, y[i]]
    return whole / x.shape[0]


def labels_slopes(x: Any, y: Any) -> Any:
    whole, slopes = 0.0, np.empty_like(x)
    for i in range(x.shape[0]):
        most = -np.inf
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            slopes[i, j] = np.exp(x[i, j] - most)
            total += slopes[i, j]
        for j in range(x.shape[1]):
            slopes[i, j] /= total * x.shape[0]
        slopes[i, y[i]] -= 1 / x.shape[0]
        whole += np.log(total) + most - x[i, y[i]]
    return whole / x.shape[0], slopes


# --- rows of mean 0 and variance 1 ------------------------------------------------------------------------------------


def standard_moments(lib: Any, x: Any) -> Any:
    off = x - lib.np.mean(x, axis=1, keepdims=True)
    return off / lib.np.sqrt(lib.np.mean(off**2, axis=1, keepdims=True) + 1e-5)


def standard_named(lib: Any, x: Any) -> Any:
    return (x - x.mean(-1)[:, None]) / lib.np.sqrt(x.var(-1) + 1e-5)[:, None]


def standard_loops(x: Any) -> Any:
    out, n = np.empty_like(x), x.shape[1]
    for i in range(x.shape[0]):
        total, squares = 0.0, 0.0
        for j in range(n):
            total += x[i, j]
        for j in range(n):
            squares += (x[i, j] - total / n) ** 2
        deviation = np.sqrt(squares / n + 1e-5)
        for j in range(n):
            out[i, j] = (x[i, j] - total / n) / deviation
    return out


# --- running sums and the deepest fall --------------------------------------------------------------------------------


def running_rows(lib: Any, x: Any) -> Any:
    return lib.np.cumsum(x, axis=1)


def running_turned(lib: Any, x: Any) -> Any:
    return lib.np.cumsum(x.T, axis=0).T


def running_loops(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            out[i, j] = total
    return out


def fall_sums(lib: Any, x: Any) -> Any:
    worth = lib.np.cumsum(x, axis=0)
    return lib.np.max(lib.np.maximum.accumulate(worth, axis=0) - worth, axis=0)


def fall_scan(lib: Any, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        worth, most, deepest = carry
        worth = worth + row
        most = lib.np.maximum(most, worth)
        return (worth, most, lib.np.maximum(deepest, most - worth)), None

    zero = lib.np.zeros_like(x[0])
    return lib.lax.scan(step, (zero, zero - np.inf, zero), x)[0][2]


def fall_loops(x: Any) -> Any:
    out = np.empty_like(x[0])
    for j in range(x.shape[1]):
        worth, most, deepest = 0.0, -np.inf, 0.0
        for i in range(x.shape[0]):
            worth += x[i, j]
            most = max(most, worth)
            deepest = max(deepest, most - worth)
        out[j] = deepest
    return out


# --- columns in order -------------------------------------------------------------------------------------------------


def order_columns(lib: Any, x: Any) -> Any:
    return lib.np.sort(x, axis=0)


def order_taken(lib: Any, x: Any) -> Any:
    return lib.np.take_along_axis(x, lib.np.argsort(x, axis=0), axis=0)


def order_loops(x: Any) -> Any:
    out = np.empty_like(x)
    for j in range(x.shape[1]):
        out[:, j] = np.sort(x[:, j])
    return out


# --- counts and sums by group -----------------------------------------------------------------------------------------


def groups_data(rng: Numbers, rows: int, groups: int) -> tuple[Any, ...]:
    return rng.integers(0, groups, rows), rng.normal(size=rows), np.zeros(groups)


def groups_added(lib: Any, group: Any, x: Any, zero: Any) -> Any:
    return lib.add_at(zero, group, x), lib.add_at(zero, group, x * x)


def groups_counted(lib: Any, group: Any, x: Any, zero: Any) -> Any:
    chosen = group[:, None] == lib.np.arange(zero.shape[0])
    both = lib.np.where(chosen, x[:, None], 0.0)
    return lib.np.sum(both, axis=0), lib.np.sum(both**2, axis=0)


def groups_loops(group: Any, x: Any, zero: Any) -> Any:
    sums, squares = zero.copy(), zero.copy()
    for i in range(x.shape[0]):
        sums[group[i]] += x[i]
        squares[group[i]] += x[i] * x[i]
    return sums, squares


def histogram_data(rng: Numbers, rows: int, bins: int) -> tuple[Any, ...]:
    return rng.uniform(0, 1, rows), np.zeros(bins, np.int64)


def histogram_added(lib: Any, x: Any, zero: Any) -> Any:
    place = lib.np.minimum((x * zero.shape[0]).astype("int64"), zero.shape[0] - 1)
    return lib.add_at(zero, place, 1)


def histogram_search(lib: Any, x: Any, zero: Any) -> Any:
    n = zero.shape[0]
    place = lib.np.clip(lib.np.floor(x * n), 0, n - 1).astype("int64")
    return lib.add_at(lib.np.zeros(n, "int64"), place, lib.np.ones_like(place))


def histogram_loops(x: Any, zero: Any) -> Any:
    out, n = zero.copy(), zero.shape[0]
    for i in range(x.shape[0]):
        out[min(int(x[i] * n), n - 1)] += 1
    return out


# --- sums over the first axis, over turned and over every other row ---------------------------------------------------


def turned_sums(lib: Any, x: Any) -> Any:
    return lib.np.sum(x.T * x.T, axis=1), lib.np.max(x[::2], axis=0)


def turned_moments(lib: Any, x: Any) -> Any:
    return (x**2).sum(axis=0), x.T[:, ::2].max(axis=1)


def turned_loops(x: Any) -> Any:
    sums, most = np.zeros_like(x[0]), x[0].copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            sums[j] += x[i, j] * x[i, j]
            if i % 2 == 0:
                most[j] = max(most[j], x[i, j])
    return sums, most


def cube_data(rng: Numbers, first: int, second: int, third: int) -> tuple[Any, ...]:
    return (rng.normal(size=(first, second, third)),)


def cube_middle(lib: Any, x: Any) -> Any:
    return lib.np.transpose(x, (2, 0, 1)).mean(axis=2)


def cube_swapped(lib: Any, x: Any) -> Any:
    return lib.np.mean(lib.np.swapaxes(x, 0, 2), axis=1)


def cube_loops(x: Any) -> Any:
    out = np.zeros((x.shape[2], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[k, i] += x[i, j, k]
    return out / x.shape[1]


# --- a polynomial, by points ------------------------------------------------------------------------------------------


def polynomial_data(rng: Numbers, points: int, degree: int) -> tuple[Any, ...]:
    return rng.normal(size=degree + 1), rng.uniform(-1, 1, points)


def polynomial_horner(lib: Any, c: Any, x: Any) -> Any:
    total = 0.0 * x
    for k in range(c.shape[0]):
        total = total * x + c[k]
    return lib.np.sum(total**2)


def polynomial_named(lib: Any, c: Any, x: Any) -> Any:
    return lib.np.sum(lib.np.polyval(c, x) ** 2)


def polynomial_powers(lib: Any, c: Any, x: Any) -> Any:
    degree = c.shape[0] - 1
    return lib.np.sum(sum(c[k] * x ** (degree - k) for k in range(degree + 1)) ** 2)


def polynomial_loops(c: Any, x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        value = 0.0
        for k in range(c.shape[0]):
            value = value * x[i] + c[k]
        total += value * value
    return total


def polynomial_slopes(c: Any, x: Any) -> Any:
    total, slopes = 0.0, np.zeros_like(c)
    for i in range(x.shape[0]):
        value = 0.0
        for k in range(c.shape[0]):
            value = value * x[i] + c[k]
        total += value * value
        power = 2 * value
        for k in range(c.shape[0] - 1, -1, -1):
            slopes[k] += power
            power *= x[i]
    return total, slopes


# --- a loop in Python, unrolled ---------------------------------------------------------------------------------------


def unrolled_data(rng: Numbers, points: int, turns: int) -> tuple[Any, ...]:
    return rng.normal(size=points), np.zeros(turns)


def unrolled_range(lib: Any, x: Any, turns: Any) -> Any:
    for i in range(turns.shape[0]):
        x = lib.np.sin(x) * 0.9 + 0.01 * i
    return lib.np.sum(x)


def unrolled_rows(lib: Any, x: Any, turns: Any) -> Any:
    for i, _ in enumerate(turns):
        x = 0.01 * i + 0.9 * lib.np.sin(x)
    return x.sum()


def unrolled_loops(x: Any, turns: Any) -> Any:
    total = 0.0
    for j in range(x.shape[0]):
        value = x[j]
        for i in range(turns.shape[0]):
            value = np.sin(value) * 0.9 + 0.01 * i
        total += value
    return total


def unrolled_slopes(x: Any, turns: Any) -> Any:
    total, slopes = 0.0, np.empty_like(x)
    for j in range(x.shape[0]):
        value, slope = x[j], 1.0
        for i in range(turns.shape[0]):
            slope *= 0.9 * np.cos(value)
            value = np.sin(value) * 0.9 + 0.01 * i
        total += value
        slopes[j] = slope
    return total, slopes


KINDS = (
    Kind(
        "softmax",
        TABLE,
        table,
        {"by hand": softmax_by_hand, "named": softmax_named, "logsumexp": softmax_logsumexp},
        softmax_loops,
    ),
    Kind(
        "labels",
        TABLE,
        labels_data,
        {"gather": labels_gather, "one-hot": labels_onehot},
        labels_loops,
        labels_slopes,
        wrt=(0,),
    ),
    Kind("standard", TABLE, table, {"moments": standard_moments, "named": standard_named}, standard_loops),
    Kind("running", TABLE, table, {"rows": running_rows, "turned": running_turned}, running_loops),
    Kind("fall", TABLE, table, {"sums": fall_sums, "scan": fall_scan}, fall_loops),
    Kind("order", TABLE, table, {"columns": order_columns, "taken": order_taken}, order_loops),
    Kind(
        "groups",
        {"rows": (100, 50000), "groups": (3, 40)},
        groups_data,
        {"added": groups_added, "compared": groups_counted},
        groups_loops,
    ),
    Kind(
        "histogram",
        {"rows": (100, 100000), "bins": (5, 500)},
        histogram_data,
        {"added": histogram_added, "clipped": histogram_search},
        histogram_loops,
    ),
    Kind("turned", TABLE, table, {"sums": turned_sums, "moments": turned_moments}, turned_loops),
    Kind(
        "cube",
        {"first": (3, 60), "second": (3, 60), "third": (3, 60)},
        cube_data,
        {"middle": cube_middle, "swapped": cube_swapped},
        cube_loops,
    ),
    Kind(
        "polynomial",
        {"points": (50, 50000), "degree": (2, 16)},
        polynomial_data,
        {"horner": polynomial_horner, "named": polynomial_named, "powers": polynomial_powers},
        polynomial_loops,
        polynomial_slopes,
        wrt=(0,),
        asks=(0,),
    ),
    Kind(
        "unrolled",
        {"points": (1, 3000), "turns": (5, 120)},
        unrolled_data,
        {"range": unrolled_range, "rows": unrolled_rows},
        unrolled_loops,
        unrolled_slopes,
        wrt=(0,),
        asks=(1,),
    ),
)
