"""Likelihoods of regressions: a product with some 5 to 50 features, a term for each row, a sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

SIZES = {"rows": (50, 20000), "features": (3, 50)}


def features(rng: Numbers, rows: int, count: int) -> tuple[Any, Any]:
    """Weights and a matrix whose products with them are about normal."""
    return 0.5 * rng.normal(size=count) / np.sqrt(count), rng.normal(size=(rows, count))


# --- least squares with a ridge ---------------------------------------------------------------------------------------


def linear_data(rng: Numbers, **sizes: int) -> tuple[Any, ...]:
    return *features(rng, sizes["rows"], sizes["features"]), rng.normal(size=sizes["rows"])


def ridge_product(lib: Any, w: Any, x: Any, y: Any) -> Any:
    return lib.np.sum((x @ w - y) ** 2) / 2 + 0.1 * lib.np.sum(w**2)


def ridge_dots(lib: Any, w: Any, x: Any, y: Any) -> Any:
    off = y - lib.np.dot(x, w)
    return lib.np.dot(off, off) / 2 + 0.1 * lib.np.dot(w, w)


def ridge_broadcast(lib: Any, w: Any, x: Any, y: Any) -> Any:
    off = lib.np.sum(x * w, axis=1) - y
    return 0.5 * (off * off).sum() + 0.1 * (w * w).sum()


def ridge_einsum(lib: Any, w: Any, x: Any, y: Any) -> Any:
    off = lib.np.einsum("ij,j->i", x, w) - y
    return 0.5 * lib.np.einsum("i,i->", off, off) + 0.1 * lib.np.linalg.norm(w) ** 2


def ridge_loops(w: Any, x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        off = -y[i]
        for j in range(x.shape[1]):
            off += x[i, j] * w[j]
        total += off * off / 2
    for j in range(x.shape[1]):
        total += 0.1 * w[j] * w[j]
    return total


def ridge_slopes(w: Any, x: Any, y: Any) -> Any:
    total, slopes = 0.0, 0.2 * w
    for i in range(x.shape[0]):
        off = -y[i]
        for j in range(x.shape[1]):
            off += x[i, j] * w[j]
        total += off * off / 2
        for j in range(x.shape[1]):
            slopes[j] += off * x[i, j]
    for j in range(x.shape[1]):
        total += 0.1 * w[j] * w[j]
    return total, slopes


# --- a regression with Student's errors -------------------------------------------------------------------------------


def student_product(lib: Any, w: Any, x: Any, y: Any) -> Any:
    return 2.5 * lib.np.sum(lib.np.log1p((y - x @ w) ** 2 / 4))


def student_mean(lib: Any, w: Any, x: Any, y: Any) -> Any:
    off = y - lib.np.matmul(x, w)
    return 2.5 * y.shape[0] * lib.np.mean(lib.np.log(1 + lib.np.square(off) * 0.25))


def student_loops(w: Any, x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        off = y[i]
        for j in range(x.shape[1]):
            off -= x[i, j] * w[j]
        total += 2.5 * np.log1p(off * off / 4)
    return total


def student_slopes(w: Any, x: Any, y: Any) -> Any:
    total, slopes = 0.0, np.zeros_like(w)
    for i in range(x.shape[0]):
        off = y[i]
        for j in range(x.shape[1]):
            off -= x[i, j] * w[j]
        total += 2.5 * np.log1p(off * off / 4)
        outer = 5 * off / (4 + off * off)
        for j in range(x.shape[1]):
            slopes[j] -= outer * x[i, j]
    return total, slopes


# --- a logistic posterior ---------------------------------------------------------------------------------------------


def logistic_data(rng: Numbers, **sizes: int) -> tuple[Any, ...]:
    w, x = features(rng, sizes["rows"], sizes["features"])
    return w, x, (rng.uniform(size=sizes["rows"]) < 0.5) * 1.0


def logistic_logaddexp(lib: Any, w: Any, x: Any, y: Any) -> Any:
    eta = x @ w
    return lib.np.sum(lib.np.logaddexp(0.0, eta) - y * eta) + 0.5 * lib.np.sum(w * w)


def logistic_stable(lib: Any, w: Any, x: Any, y: Any) -> Any:
    eta = x.dot(w)
    each = lib.np.maximum(eta, 0) - eta * y + lib.np.log1p(lib.np.exp(-lib.np.abs(eta)))
    return each.sum() + 0.5 * w @ w


def logistic_probability(lib: Any, w: Any, x: Any, y: Any) -> Any:
    p = 1 / (1 + lib.np.exp(-(x @ w)))
    return -lib.np.sum(y * lib.np.log(p) + (1 - y) * lib.np.log(1 - p)) + 0.5 * lib.np.sum(w**2)


def logistic_sigmoid(lib: Any, w: Any, x: Any, y: Any) -> Any:
    return -lib.np.sum(lib.np.log(lib.special.expit((2 * y - 1) * (x @ w)))) + 0.5 * lib.np.dot(w, w)


def logistic_loops(w: Any, x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        total += np.log1p(np.exp(-abs(eta))) + max(eta, 0.0) - y[i] * eta
    for j in range(x.shape[1]):
        total += 0.5 * w[j] * w[j]
    return total


def logistic_slopes(w: Any, x: Any, y: Any) -> Any:
    total, slopes = 0.0, w.copy()
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        small = np.exp(-abs(eta))
        total += np.log1p(small) + max(eta, 0.0) - y[i] * eta
        off = (1 / (1 + small) if eta >= 0 else small / (1 + small)) - y[i]
        for j in range(x.shape[1]):
            slopes[j] += off * x[i, j]
    for j in range(x.shape[1]):
        total += 0.5 * w[j] * w[j]
    return total, slopes


# --- Cox's partial likelihood, the rows ordered by time ---------------------------------------------------------------


def cox_data(rng: Numbers, **sizes: int) -> tuple[Any, ...]:
    w, x = features(rng, sizes["rows"], sizes["features"])
    return w, x, (rng.uniform(size=sizes["rows"]) < 0.6) * 1.0


def cox_flipped(lib: Any, w: Any, x: Any, event: Any) -> Any:
    eta = x @ w
    risk = lib.np.cumsum(lib.np.exp(eta)[::-1])[::-1]
    return lib.np.sum(event * (lib.np.log(risk) - eta))


def cox_shifted(lib: Any, w: Any, x: Any, event: Any) -> Any:
    eta = lib.np.dot(x, w)
    most = lib.np.max(eta)
    risk = lib.np.flip(lib.np.cumsum(lib.np.flip(lib.np.exp(eta - most))))
    return lib.np.dot(event, lib.np.log(risk) + most - eta)


def cox_loops(w: Any, x: Any, event: Any) -> Any:
    risk, total = 0.0, 0.0
    for i in range(x.shape[0] - 1, -1, -1):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        risk += np.exp(eta)
        total += event[i] * (np.log(risk) - eta)
    return total


def cox_slopes(w: Any, x: Any, event: Any) -> Any:
    risk, total, means, slopes = 0.0, 0.0, np.zeros_like(w), np.zeros_like(w)
    for i in range(x.shape[0] - 1, -1, -1):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        weight = np.exp(eta)
        risk += weight
        total += event[i] * (np.log(risk) - eta)
        for j in range(x.shape[1]):
            means[j] += weight * x[i, j]
            slopes[j] += event[i] * (means[j] / risk - x[i, j])
    return total, slopes


# --- an ordered answer of several levels ------------------------------------------------------------------------------


def ordinal_data(rng: Numbers, levels: int, **sizes: int) -> tuple[Any, ...]:
    w, x = features(rng, sizes["rows"], sizes["features"])
    cuts = np.linspace(-1.5, 1.5, levels - 1)
    return w, cuts, x, rng.integers(0, levels, sizes["rows"])


def ordinal_padded(lib: Any, w: Any, cuts: Any, x: Any, y: Any) -> Any:
    edge = lib.np.full(1, 30.0, cuts.dtype)
    all_cuts = lib.np.concatenate([-edge, cuts, edge])
    eta = x @ w
    above, below = lib.special.expit(all_cuts[y + 1] - eta), lib.special.expit(all_cuts[y] - eta)
    return -lib.np.sum(lib.np.log(above - below))


def ordinal_matrix(lib: Any, w: Any, cuts: Any, x: Any, y: Any) -> Any:
    below = 1 / (1 + lib.np.exp(-(cuts - (x @ w)[:, None])))
    one = lib.np.ones_like(below[:, :1])
    p = lib.np.concatenate([below, one], axis=1) - lib.np.concatenate([0 * one, below], axis=1)
    return -lib.np.sum(lib.np.log(p[lib.np.arange(y.shape[0]), y]))


def ordinal_loops(w: Any, cuts: Any, x: Any, y: Any) -> Any:
    total, last = 0.0, cuts.shape[0]
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        above = 1 / (1 + np.exp(eta - cuts[y[i]])) if y[i] < last else 1.0
        below = 1 / (1 + np.exp(eta - cuts[y[i] - 1])) if y[i] > 0 else 0.0
        total -= np.log(above - below)
    return total


def ordinal_slopes(w: Any, cuts: Any, x: Any, y: Any) -> Any:
    total, last, slopes, to_cuts = 0.0, cuts.shape[0], np.zeros_like(w), np.zeros_like(cuts)
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        above = 1 / (1 + np.exp(eta - cuts[y[i]])) if y[i] < last else 1.0
        below = 1 / (1 + np.exp(eta - cuts[y[i] - 1])) if y[i] > 0 else 0.0
        p = above - below
        total -= np.log(p)
        rise, fall = above * (1 - above) / p, below * (1 - below) / p
        if y[i] < last:
            to_cuts[y[i]] -= rise
        if y[i] > 0:
            to_cuts[y[i] - 1] += fall
        for j in range(x.shape[1]):
            slopes[j] += (rise - fall) * x[i, j]
    return total, slopes, to_cuts


# --- counts: the negative binomial distribution -----------------------------------------------------------------------


def counts_data(rng: Numbers, **sizes: int) -> tuple[Any, ...]:
    w, x = features(rng, sizes["rows"], sizes["features"])
    return w, np.array(1.5), x, rng.integers(0, 12, sizes["rows"])


def counts_plain(lib: Any, w: Any, r: Any, x: Any, y: Any) -> Any:
    gammaln = lib.special.gammaln
    mu = lib.np.exp(x @ w)
    each = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0) + r * lib.np.log(r / (r + mu)) + y * lib.np.log(mu / (r + mu))
    return -lib.np.sum(each)


def counts_logarithms(lib: Any, w: Any, r: Any, x: Any, y: Any) -> Any:
    gammaln = lib.special.gammaln
    eta = x @ w
    both = lib.np.logaddexp(lib.np.log(r), eta)
    return lib.np.sum((y + r) * both - y * eta - gammaln(y + r) + gammaln(y + 1.0) + gammaln(r) - r * lib.np.log(r))


def counts_loops(w: Any, r: Any, x: Any, y: Any) -> Any:
    total, rate = 0.0, r[()]
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        mu = np.exp(eta)
        total -= math.lgamma(y[i] + rate) - math.lgamma(rate) - math.lgamma(y[i] + 1.0)
        total -= rate * np.log(rate / (rate + mu)) + y[i] * np.log(mu / (rate + mu))
    return total


def counts_slopes(w: Any, r: Any, x: Any, y: Any) -> Any:
    total, rate, slopes = 0.0, r[()], np.zeros_like(w)
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * w[j]
        mu = np.exp(eta)
        total -= math.lgamma(y[i] + rate) - math.lgamma(rate) - math.lgamma(y[i] + 1.0)
        total -= rate * np.log(rate / (rate + mu)) + y[i] * np.log(mu / (rate + mu))
        off = (rate + y[i]) * mu / (rate + mu) - y[i]
        for j in range(x.shape[1]):
            slopes[j] += off * x[i, j]
    return total, slopes


KINDS = (
    Kind(
        "ridge",
        SIZES,
        linear_data,
        {"product": ridge_product, "dots": ridge_dots, "broadcast": ridge_broadcast, "einsum": ridge_einsum},
        ridge_loops,
        ridge_slopes,
        wrt=(0,),
    ),
    Kind(
        "student",
        SIZES,
        linear_data,
        {"product": student_product, "mean": student_mean},
        student_loops,
        student_slopes,
        wrt=(0,),
    ),
    Kind(
        "logistic",
        SIZES,
        logistic_data,
        {
            "logaddexp": logistic_logaddexp,
            "stable": logistic_stable,
            "probability": logistic_probability,
            "sigmoid": logistic_sigmoid,
        },
        logistic_loops,
        logistic_slopes,
        wrt=(0,),
    ),
    Kind(
        "cox",
        SIZES,
        cox_data,
        {"flipped": cox_flipped, "shifted": cox_shifted},
        cox_loops,
        cox_slopes,
        wrt=(0,),
    ),
    Kind(
        "ordinal",
        {**SIZES, "levels": (3, 7)},
        ordinal_data,
        {"padded": ordinal_padded, "matrix": ordinal_matrix},
        ordinal_loops,
        ordinal_slopes,
        wrt=(0, 1),
    ),
    Kind(
        "counts",
        SIZES,
        counts_data,
        {"plain": counts_plain, "logarithms": counts_logarithms},
        counts_loops,
        counts_slopes,
        wrt=(0,),
    ),
)
