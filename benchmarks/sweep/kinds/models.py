"""Statistical models with structure: groups, parameters cut from one vector, many named numbers, splines, prices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

# --- a mixed model whose parameters are one vector --------------------------------------------------------------------


def mixed_data(rng: Numbers, rows: int, groups: int) -> tuple[Any, ...]:
    parameters = 0.3 * rng.normal(size=groups + 4)
    return parameters, rng.normal(size=rows), rng.normal(size=rows), rng.integers(0, groups, rows)


def mixed_slices(lib: Any, p: Any, x: Any, y: Any, group: Any) -> Any:
    a, mean, slope, log_noise, log_spread = p[:-4], p[-4], p[-3], p[-2], p[-1]
    off = y - (mean + a[group] + slope * x)
    fit = lib.np.sum(off**2) * lib.np.exp(-2 * log_noise) / 2 + y.shape[0] * log_noise
    return fit + lib.np.sum(a**2) * lib.np.exp(-2 * log_spread) / 2 + a.shape[0] * log_spread


def mixed_normals(lib: Any, p: Any, x: Any, y: Any, group: Any) -> Any:
    def surprise(value: Any, mean: Any, deviation: Any) -> Any:
        return 0.5 * ((value - mean) / deviation) ** 2 + lib.np.log(deviation)

    a, rest = p[:-4], p[-4:]
    noise, spread = lib.np.exp(rest[2]), lib.np.exp(rest[3])
    expected = rest[0] + a[group] + rest[1] * x
    return lib.np.sum(surprise(y, expected, noise)) + lib.np.sum(surprise(a, 0.0, spread))


def mixed_loops(p: Any, x: Any, y: Any, group: Any) -> Any:
    k = p.shape[0] - 4
    total, squares = 0.0, 0.0
    for i in range(x.shape[0]):
        off = y[i] - (p[k] + p[group[i]] + p[k + 1] * x[i])
        total += off * off
    for j in range(k):
        squares += p[j] * p[j]
    fit = total * np.exp(-2 * p[k + 2]) / 2 + x.shape[0] * p[k + 2]
    return fit + squares * np.exp(-2 * p[k + 3]) / 2 + k * p[k + 3]


def mixed_slopes(p: Any, x: Any, y: Any, group: Any) -> Any:
    k, slopes = p.shape[0] - 4, np.zeros_like(p)
    total, squares, precise, spread = 0.0, 0.0, np.exp(-2 * p[-2]), np.exp(-2 * p[-1])
    for i in range(x.shape[0]):
        off = y[i] - (p[k] + p[group[i]] + p[k + 1] * x[i])
        total += off * off
        slopes[group[i]] -= off * precise
        slopes[k] -= off * precise
        slopes[k + 1] -= off * x[i] * precise
    for j in range(k):
        squares += p[j] * p[j]
        slopes[j] += p[j] * spread
    slopes[k + 2], slopes[k + 3] = x.shape[0] - total * precise, k - squares * spread
    fit = total * precise / 2 + x.shape[0] * p[k + 2]
    return fit + squares * spread / 2 + k * p[k + 3], slopes


# --- item response ----------------------------------------------------------------------------------------------------


def items_data(rng: Numbers, persons: int, items: int) -> tuple[Any, ...]:
    answers = (rng.uniform(size=(persons, items)) < 0.5) * 1.0
    return rng.normal(size=persons), rng.uniform(0.5, 2, items), rng.normal(size=items), answers


def items_outer(lib: Any, ability: Any, sharp: Any, hard: Any, y: Any) -> Any:
    eta = sharp * (ability[:, None] - hard)
    return lib.np.sum(lib.np.logaddexp(0, eta) - y * eta)


def items_long(lib: Any, ability: Any, sharp: Any, hard: Any, y: Any) -> Any:
    n, k = y.shape
    person, item = lib.np.repeat(lib.np.arange(n), k), lib.np.tile(lib.np.arange(k), n)
    eta = sharp[item] * (ability[person] - hard[item])
    return lib.np.sum(lib.np.log1p(lib.np.exp(eta)) - y.reshape(-1) * eta)


def items_loops(ability: Any, sharp: Any, hard: Any, y: Any) -> Any:
    total = 0.0
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            eta = sharp[j] * (ability[i] - hard[j])
            total += np.log1p(np.exp(-abs(eta))) + max(eta, 0.0) - y[i, j] * eta
    return total


def items_slopes(ability: Any, sharp: Any, hard: Any, y: Any) -> Any:
    total, to_ability, to_sharp, to_hard = 0.0, np.zeros_like(ability), np.zeros_like(sharp), np.zeros_like(hard)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            eta = sharp[j] * (ability[i] - hard[j])
            small = np.exp(-abs(eta))
            total += np.log1p(small) + max(eta, 0.0) - y[i, j] * eta
            off = (1 / (1 + small) if eta >= 0 else small / (1 + small)) - y[i, j]
            to_ability[i] += off * sharp[j]
            to_hard[j] -= off * sharp[j]
            to_sharp[j] += off * (ability[i] - hard[j])
    return total, to_ability, to_sharp, to_hard


# --- a curve of truncated cubes ---------------------------------------------------------------------------------------


def spline_data(rng: Numbers, rows: int, knots: int) -> tuple[Any, ...]:
    return rng.normal(size=knots), np.linspace(-1, 1, knots), rng.uniform(-1, 1.2, rows), rng.normal(size=rows)


def spline_matrix(lib: Any, c: Any, knots: Any, x: Any, y: Any) -> Any:
    basis = lib.np.maximum(x[:, None] - knots, 0) ** 3
    return lib.np.sum((y - basis @ c) ** 2)


def spline_where(lib: Any, c: Any, knots: Any, x: Any, y: Any) -> Any:
    apart = x[None, :] - knots[:, None]
    curve = lib.np.sum(c[:, None] * lib.np.where(apart > 0, apart**3, 0.0), axis=0)
    return lib.np.sum((curve - y) ** 2)


def spline_loops(c: Any, knots: Any, x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        off = -y[i]
        for k in range(c.shape[0]):
            apart = max(x[i] - knots[k], 0.0)
            off += c[k] * apart * apart * apart
        total += off * off
    return total


def spline_slopes(c: Any, knots: Any, x: Any, y: Any) -> Any:
    total, slopes, cubes = 0.0, np.zeros_like(c), np.empty_like(c)
    for i in range(x.shape[0]):
        off = -y[i]
        for k in range(c.shape[0]):
            apart = max(x[i] - knots[k], 0.0)
            cubes[k] = apart * apart * apart
            off += c[k] * cubes[k]
        total += off * off
        for k in range(c.shape[0]):
            slopes[k] += 2 * off * cubes[k]
    return total, slopes


# --- linear interpolation in a table ----------------------------------------------------------------------------------


def table_data(rng: Numbers, rows: int, knots: int) -> tuple[Any, ...]:
    return np.sort(rng.uniform(0, 1, knots)), rng.normal(size=knots), rng.uniform(0, 1, rows)


def table_search(lib: Any, knots: Any, values: Any, x: Any) -> Any:
    place = lib.np.clip(lib.np.searchsorted(knots, x), 1, knots.shape[0] - 1)
    low, high = knots[place - 1], knots[place]
    share = (lib.np.clip(x, knots[0], knots[-1]) - low) / (high - low)
    return lib.np.sum((1 - share) * values[place - 1] + share * values[place])


def table_interp(lib: Any, knots: Any, values: Any, x: Any) -> Any:
    return lib.np.sum(lib.np.interp(x, knots, values))


def table_loops(knots: Any, values: Any, x: Any) -> Any:
    total, last = 0.0, knots.shape[0] - 1
    for i in range(x.shape[0]):
        point = min(max(x[i], knots[0]), knots[last])
        place = min(max(np.searchsorted(knots, point), 1), last)
        share = (point - knots[place - 1]) / (knots[place] - knots[place - 1])
        total += (1 - share) * values[place - 1] + share * values[place]
    return total


# --- many parameters, each a number of its own ------------------------------------------------------------------------


def scalars_data(rng: Numbers, rows: int, parameters: int) -> tuple[Any, ...]:
    return rng.normal(size=rows), *rng.normal(size=parameters)


def scalars_sums(lib: Any, x: Any, *p: Any) -> Any:
    total = 0.0
    for i, value in enumerate(p):
        total = total + lib.np.sum((x - value) ** 2) * (0.1 + i)
    return total


def scalars_norms(lib: Any, x: Any, *p: Any) -> Any:
    return sum((0.1 + i) * lib.np.sum(lib.np.square(value - x)) for i, value in enumerate(p))


def scalars_slopes(x: Any, *p: Any) -> Any:
    total, slopes = 0.0, np.zeros(len(p))
    for k in range(len(p)):
        value, off = p[k][()], 0.0
        for i in range(x.shape[0]):
            off += value - x[i]
            total += (value - x[i]) ** 2 * (0.1 + k)
        slopes[k] = 2 * off * (0.1 + k)
    return total, slopes


def scalars_loops(x: Any, *p: Any) -> Any:
    total = 0.0
    for k in range(len(p)):
        value = p[k][()]
        for i in range(x.shape[0]):
            total += (value - x[i]) ** 2 * (0.1 + k)
    return total


# --- prices of options ------------------------------------------------------------------------------------------------


def options_data(rng: Numbers, options: int) -> tuple[Any, ...]:
    spot, strike = rng.uniform(50, 150, size=(2, options))
    return spot, strike, rng.uniform(0.1, 2, options), np.array(0.03), np.array(0.25)


def options_erf(lib: Any, spot: Any, strike: Any, years: Any, rate: Any, vol: Any) -> Any:
    def normal(x: Any) -> Any:
        return 0.5 * (1 + lib.special.erf(x / math.sqrt(2)))

    spread = vol * lib.np.sqrt(years)
    d1 = (lib.np.log(spot / strike) + (rate + vol**2 / 2) * years) / spread
    return lib.np.sum(spot * normal(d1) - strike * lib.np.exp(-rate * years) * normal(d1 - spread))


def options_ndtr(lib: Any, spot: Any, strike: Any, years: Any, rate: Any, vol: Any) -> Any:
    spread = vol * years**0.5
    forward = spot * lib.np.exp(rate * years)
    d1 = lib.np.log(forward / strike) / spread + spread / 2
    d2 = d1 - spread
    prices = lib.np.exp(-rate * years) * (forward * lib.special.ndtr(d1) - strike * lib.special.ndtr(d2))
    return prices.sum()


def options_loops(spot: Any, strike: Any, years: Any, rate: Any, vol: Any) -> Any:
    total, r, v = 0.0, rate[()], vol[()]
    for i in range(spot.shape[0]):
        spread = v * np.sqrt(years[i])
        d1 = (np.log(spot[i] / strike[i]) + (r + v * v / 2) * years[i]) / spread
        one, other = 0.5 * (1 + math.erf(d1 / math.sqrt(2))), 0.5 * (1 + math.erf((d1 - spread) / math.sqrt(2)))
        total += spot[i] * one - strike[i] * np.exp(-r * years[i]) * other
    return total


def options_slopes(spot: Any, strike: Any, years: Any, rate: Any, vol: Any) -> Any:
    total, r, v = 0.0, rate[()], vol[()]
    to_spot, to_rate, to_vol = np.empty_like(spot), 0.0, 0.0
    for i in range(spot.shape[0]):
        spread = v * np.sqrt(years[i])
        d1 = (np.log(spot[i] / strike[i]) + (r + v * v / 2) * years[i]) / spread
        one, other = 0.5 * (1 + math.erf(d1 / math.sqrt(2))), 0.5 * (1 + math.erf((d1 - spread) / math.sqrt(2)))
        owed = strike[i] * np.exp(-r * years[i]) * other
        total += spot[i] * one - owed
        to_spot[i] = one
        to_rate += years[i] * owed
        to_vol += spot[i] * np.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi) * np.sqrt(years[i])
    return total, to_spot, to_rate, to_vol


KINDS = (
    Kind(
        "mixed",
        {"rows": (50, 20000), "groups": (3, 60)},
        mixed_data,
        {"slices": mixed_slices, "normals": mixed_normals},
        mixed_loops,
        mixed_slopes,
        wrt=(0,),
    ),
    Kind(
        "items",
        {"persons": (20, 1000), "items": (5, 60)},
        items_data,
        {"outer": items_outer, "long": items_long},
        items_loops,
        items_slopes,
        wrt=(0, 1, 2),
    ),
    Kind(
        "spline",
        {"rows": (50, 10000), "knots": (4, 20)},
        spline_data,
        {"matrix": spline_matrix, "where": spline_where},
        spline_loops,
        spline_slopes,
        wrt=(0,),
    ),
    Kind(
        "table",
        {"rows": (100, 50000), "knots": (4, 200)},
        table_data,
        {"search": table_search, "interp": table_interp},
        table_loops,
        dtypes=("float64",),
    ),
    Kind(
        "scalars",
        {"rows": (20, 500), "parameters": (5, 60)},
        scalars_data,
        {"sums": scalars_sums, "norms": scalars_norms},
        scalars_loops,
        scalars_slopes,
        wrt=lambda count: tuple(range(1, count)),
        dtypes=("float64",),
    ),
    Kind(
        "options",
        {"options": (100, 50000)},
        options_data,
        {"erf": options_erf, "ndtr": options_ndtr},
        options_loops,
        options_slopes,
        wrt=(0, 3, 4),
    ),
)
