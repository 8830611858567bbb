"""Whole programs as notebooks have them, of images, series, models and tables: NumPy's text, unchanged, compiled."""
# ruff: noqa: E731, N803, N806, PLW0108 - programs as people write them

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc.errors import GraphcError
from graphc.trees import leaves

DRAW = np.random.RandomState(0)
IMAGE = DRAW.rand(6, 7)
POINTS = DRAW.randn(20, 3)
LABELS = (POINTS[:, 0] > 0).astype(int)
SERIES = np.cumsum(DRAW.randn(20)) + 100
PATHS = (
    np.array([[0.7, 0.3], [0.4, 0.6]]),
    np.array([[0.1, 0.4, 0.5], [0.7, 0.2, 0.1]]),
    np.array([0.6, 0.4]),
    np.array([0, 1, 2, 0]),
)


def sobel(image: Any) -> Any:
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    ky = kx.T
    h, w = image.shape
    gx = np.zeros_like(image)
    gy = np.zeros_like(image)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            patch = image[i - 1 : i + 2, j - 1 : j + 2]
            gx[i, j] = np.sum(patch * kx)
            gy[i, j] = np.sum(patch * ky)
    return np.sqrt(gx**2 + gy**2)


def median_filter(image: Any) -> Any:
    p = np.pad(image, 1, mode="edge")
    stack = [p[i : i + image.shape[0], j : j + image.shape[1]] for i in range(3) for j in range(3)]
    return np.median(np.stack(stack), axis=0)


def gaussian_blur(image: Any, sigma: Any = 1.0) -> Any:
    ax = np.arange(-2, 3)
    xx, yy = np.meshgrid(ax, ax)
    kernel = np.exp(-(xx**2 + yy**2) / (2 * sigma**2))
    kernel /= kernel.sum()
    out = np.zeros((image.shape[0] - 4, image.shape[1] - 4))
    for i in range(5):
        for j in range(5):
            out += kernel[i, j] * image[i : i + out.shape[0], j : j + out.shape[1]]
    return out


def hist_equal(im: Any) -> Any:
    hist, _ = np.histogram(im.flatten(), 256, (0, 256))
    cdf = hist.cumsum()
    cdf_m = (cdf - cdf.min()) * 255 / (cdf.max() - cdf.min())
    return cdf_m[im].astype("uint8")


def pca(X: Any) -> Any:
    Xc = X - X.mean(axis=0)
    cov = np.cov(Xc.T)
    vals, vecs = np.linalg.eigh(cov)
    order = np.argsort(vals)[::-1]
    vals, vecs = (vals[order], vecs[:, order])
    vecs = vecs * np.sign(vecs[0])
    return (Xc @ vecs[:, :2], vals / vals.sum())


def returns_drawdown(prices: Any) -> Any:
    returns = np.diff(prices) / prices[:-1]
    log_ret = np.log(prices[1:] / prices[:-1])
    cum = np.cumprod(1 + returns) - 1
    peak = np.maximum.accumulate(prices)
    drawdown = (prices - peak) / peak
    sharpe = np.sqrt(252) * returns.mean() / returns.std(ddof=1)
    return (cum, log_ret.sum(), drawdown.min(), sharpe)


def moving_averages(a: Any, n: Any = 5) -> Any:
    ret = np.cumsum(a, dtype=float)
    ret[n:] = ret[n:] - ret[:-n]
    sma = ret[n - 1 :] / n
    conv = np.convolve(a, np.ones(n) / n, mode="valid")
    ema = np.zeros_like(a)
    ema[0] = a[0]
    alpha = 2 / (n + 1)
    for i in range(1, len(a)):
        ema[i] = alpha * a[i] + (1 - alpha) * ema[i - 1]
    return (sma, conv, ema)


def life(grid: Any) -> Any:
    for _ in range(3):
        n = sum(np.roll(np.roll(grid, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i != 0 or j != 0)
        grid = ((n == 3) | (grid == 1) & (n == 2)).astype(int)
    return grid


def ransac(x: Any, y: Any) -> Any:
    rng = np.random.default_rng(3)
    models, counts = ([], [])
    for _ in range(10):
        i, j = rng.choice(len(x), 2, replace=False)
        m = (y[j] - y[i]) / (x[j] - x[i])
        b = y[i] - m * x[i]
        counts.append(np.sum(np.abs(y - m * x - b) < 0.1))
        models.append(np.array([m, b]))
    return np.array(models)[np.argmax(counts)]


def spectral(X: Any) -> Any:
    d = ((X[:, None] - X[None]) ** 2).sum(-1)
    W = np.exp(-d / 2)
    np.fill_diagonal(W, 0)
    D = np.diag(W.sum(axis=1))
    L = D - W
    Dinv = np.diag(1 / np.sqrt(np.diag(D)))
    Ls = Dinv @ L @ Dinv
    vals, vecs = np.linalg.eigh(Ls)
    f = vecs[:, 1]
    return (vals, (f * np.sign(f[0]) > 0).astype(int))


def lda(X: Any, y: Any) -> Any:
    mean = X.mean(0)
    Sw = np.zeros((X.shape[1], X.shape[1]))
    Sb = np.zeros((X.shape[1], X.shape[1]))
    for c in (0, 1):
        m = (y == c).astype(float)
        mu = (m[:, None] * X).sum(0) / m.sum()
        Z = (X - mu) * m[:, None]
        Sw += Z.T.dot(Z)
        dm = (mu - mean).reshape(-1, 1)
        Sb += m.sum() * dm.dot(dm.T)
    return np.linalg.inv(Sw).dot(Sb)


def lda_masks(X: Any, y: Any) -> Any:
    Sw = np.zeros((3, 3))
    for c in np.unique([0, 1]):
        Xc = X[y == c]
        Sw += (Xc - Xc.mean(0)).T @ (Xc - Xc.mean(0))
    return Sw


def kalman(z: Any) -> Any:
    n = len(z)
    xhat, Pm = (np.zeros(n), np.zeros(n))
    xhatm, Pmin, K = (np.zeros(n), np.zeros(n), np.zeros(n))
    Q, R = (1e-05, 0.1**2)
    xhat[0] = 100.0
    Pm[0] = 1.0
    for k in range(1, n):
        xhatm[k] = xhat[k - 1]
        Pmin[k] = Pm[k - 1] + Q
        K[k] = Pmin[k] / (Pmin[k] + R)
        xhat[k] = xhatm[k] + K[k] * (z[k] - xhatm[k])
        Pm[k] = (1 - K[k]) * Pmin[k]
    return (xhat, Pm)


def kalman_matrix(F: Any, zs: Any) -> Any:
    x = np.zeros((2, 1))
    Pm = np.eye(2) * 1000.0
    H = np.array([[1.0, 0.0]])
    R = np.array([[5.0]])
    Q = np.eye(2) * 0.01
    out = []
    for z in zs:
        x = np.dot(F, x)
        Pm = np.dot(F, Pm).dot(F.T) + Q
        S = np.dot(H, Pm).dot(H.T) + R
        K = np.dot(Pm, H.T).dot(np.linalg.inv(S))
        x = x + np.dot(K, z.reshape(-1, 1) - H.dot(x))
        Pm = Pm - np.dot(np.dot(K, H), Pm)
        out.append(x.ravel())
    return np.array(out)


def hmm_forward(A: Any, B: Any, pi: Any, V: Any) -> Any:
    alpha = np.zeros((V.shape[0], A.shape[0]))
    alpha[0, :] = pi * B[:, V[0]]
    for t in range(1, V.shape[0]):
        for j in range(A.shape[0]):
            alpha[t, j] = alpha[t - 1].dot(A[:, j]) * B[j, V[t]]
    return alpha


def viterbi(A: Any, B: Any, pi: Any, V: Any) -> Any:
    T, M = (V.shape[0], A.shape[0])
    omega = np.zeros((T, M))
    omega[0, :] = np.log(pi * B[:, V[0]])
    prev = np.zeros((T - 1, M), dtype=int)
    for t in range(1, T):
        for j in range(M):
            p = omega[t - 1] + np.log(A[:, j]) + np.log(B[j, V[t]])
            prev[t - 1, j] = np.argmax(p)
            omega[t, j] = np.max(p)
    S = np.zeros(T, dtype=int)
    last = np.argmax(omega[T - 1, :])
    S[0] = last
    for i, t in enumerate(range(T - 2, -1, -1)):
        S[i + 1] = prev[t, last]
        last = prev[t, last]
    return np.flip(S, axis=0)


def knapsack(w: Any, v: Any) -> Any:
    cap = 8
    dp = np.zeros((len(w) + 1, cap + 1), dtype=int)
    for i in range(1, len(w) + 1):
        for c in range(cap + 1):
            take = np.where(w[i - 1] <= c, v[i - 1] + dp[i - 1, np.maximum(c - w[i - 1], 0)], 0)
            dp[i, c] = np.maximum(dp[i - 1, c], take)
    return dp[-1, -1]


def random_walk(start: Any) -> Any:
    rng = np.random.default_rng(0)
    steps = rng.choice([-1, 1], size=(3, 50))
    walk = start[:, None] + np.cumsum(steps, axis=1)
    hit = np.abs(walk) >= 6
    return (walk[:, -1], hit.any(axis=1), hit.argmax(axis=1))


def gram_schmidt(A: Any) -> Any:
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]))
    for j in range(A.shape[1]):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ A[:, j]
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return (Q, R)


def simplex_pivots(T: Any) -> Any:
    T = T.copy()
    for r, c in ((0, 0), (1, 1)):
        T[r] /= T[r, c]
        for i in range(T.shape[0]):
            if i != r:
                T[i] -= T[i, c] * T[r]
    return T


def window_conv(a: Any, k: Any) -> Any:
    return np.einsum("ijkl,kl->ij", np.lib.stride_tricks.sliding_window_view(a, k.shape), k)


def rolling_std(a: Any) -> Any:
    w = np.lib.stride_tricks.sliding_window_view(a, 7)
    return (w.std(axis=-1), w.mean(-1), np.percentile(w, 75, axis=-1))


def one_hots(labels: Any) -> Any:
    eye = np.eye(3)[labels]
    z = np.zeros((labels.size, 3))
    z[np.arange(labels.size), labels] = 1
    return (eye, z, np.argmax(z, axis=1))


def bootstrap(data: Any) -> Any:
    rng = np.random.default_rng(7)
    idx = rng.integers(0, len(data), size=(50, len(data)))
    means = data[idx].mean(axis=1)
    return (np.percentile(means, [2.5, 97.5]), means.std())


def munging(col: Any) -> Any:
    filled = np.where(np.isnan(col), np.nanmean(col), col)
    z = (filled - filled.mean()) / filled.std()
    ranks = filled.argsort().argsort()
    binned = np.digitize(filled, [2, 4, 6])
    col2 = col.copy()
    col2[np.isnan(col2)] = 0
    return (z, ranks, binned, col2, np.clip(filled, 2, 5), np.interp(2.5, [0, 5], [0, 10]))


def groupby(keys: Any, vals: Any) -> Any:
    sums = np.bincount(keys, weights=vals, minlength=3)
    counts = np.bincount(keys, minlength=3)
    acc = np.zeros(3)
    np.add.at(acc, keys, vals)
    return (sums / counts, acc)


def linreg(X: Any, y: Any) -> Any:
    Xb = np.c_[np.ones((len(X), 1)), X]
    theta = np.linalg.inv(Xb.T.dot(Xb)).dot(Xb.T).dot(y)
    beta, *_ = np.linalg.lstsq(Xb, y, rcond=None)
    r2 = 1 - ((y - Xb @ theta) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return (theta, beta, r2)


def naive_bayes(X: Any, y: Any) -> Any:
    out = []
    for c in [0, 1]:
        m = y == c
        n = m.sum()
        mu = np.sum(X, axis=0, where=m[:, None]) / n
        var = np.var(X, axis=0, where=m[:, None])
        out.append(
            np.log(n / len(y)) - 0.5 * np.sum(np.log(2 * np.pi * var)) - 0.5 * np.sum((X - mu) ** 2 / var, axis=1)
        )
    return np.argmax(np.array(out).T, axis=1)


def gmm_em(X: Any) -> Any:
    K, n = (2, len(X))
    mu = X[:K].copy()
    sigma = np.array([np.eye(3)] * K)
    pi = np.ones(K) / K
    for _ in range(3):
        r = np.zeros((n, K))
        for k in range(K):
            diff = X - mu[k]
            e = np.einsum("ij,jk,ik->i", diff, np.linalg.inv(sigma[k]), diff)
            r[:, k] = pi[k] * np.exp(-0.5 * e) / np.sqrt((2 * np.pi) ** 3 * np.linalg.det(sigma[k]))
        r /= r.sum(axis=1, keepdims=True)
        N = r.sum(axis=0)
        mu = r.T @ X / N[:, None]
        for k in range(K):
            diff = X - mu[k]
            sigma[k] = (r[:, k, None] * diff).T @ diff / N[k] + 1e-06 * np.eye(3)
        pi = N / n
    return (mu, sigma, pi)


def rk4(y0: Any) -> Any:
    f: Any = lambda t, y: np.array([y[1], -y[0]])
    t = np.linspace(0, 1, 11)
    h = t[1] - t[0]
    ys = np.zeros((len(t), 2))
    ys[0] = y0
    for i in range(len(t) - 1):
        k1 = f(t[i], ys[i])
        k2 = f(t[i] + h / 2, ys[i] + h * k1 / 2)
        k3 = f(t[i] + h / 2, ys[i] + h * k2 / 2)
        k4 = f(t[i] + h, ys[i] + h * k3)
        ys[i + 1] = ys[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return ys


def nbody(pos: Any, mass: Any) -> Any:
    n = len(mass)
    acc = np.zeros_like(pos)
    for i in range(n):
        for j in range(n):
            if i != j:
                d = pos[j] - pos[i]
                acc[i] += mass[j] * d / (np.sum(d**2) + 0.1) ** 1.5
    x = pos[:, 0:1]
    dx = x.T - x
    return (acc, dx)


def lu_solve(A: Any, b: Any) -> Any:
    n = len(b)
    A = A.copy()
    b = b.astype(float).copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(A[i, i + 1 :], x[i + 1 :])) / A[i, i]
    return x


def floyd(d: Any) -> Any:
    d = d.copy()
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k, np.newaxis] + d[np.newaxis, k, :])
    return d


def sieve(n: Any) -> Any:
    is_prime = np.ones(31, dtype=bool)
    is_prime[:2] = False
    for i in range(2, 6):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return np.nonzero(is_prime)[0]


def polygon_hull_area(p: Any) -> Any:
    x, y = (p[:, 0], p[:, 1])
    area = 0.5 * np.abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    c = p.mean(axis=0)
    order = np.argsort(np.arctan2(y - c[1], x - c[0]))
    return (area, p[order])


def attention(x: Any) -> Any:
    q = k = v = x
    s = q @ k.transpose(0, 2, 1) / np.sqrt(k.shape[-1])
    s = np.where(np.tril(np.ones(s.shape[-2:], dtype=bool)), s, -1000000000.0)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def tfidf_als(R: Any) -> Any:
    tf = R / np.maximum(R.sum(axis=1, keepdims=True), 1)
    df = np.count_nonzero(R, axis=0)
    idf = np.log((1 + len(R)) / (1 + df)) + 1
    w = tf * idf
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return w @ w.T


def portfolio(w: Any, R: Any) -> Any:
    mu, S = (R.mean(axis=0) * 252, np.cov(R, rowvar=False) * 252)
    ret, vol = (w @ mu, np.sqrt(w.T @ S @ w))
    L = np.linalg.cholesky(S)
    var95 = np.percentile(R @ w, 5)
    corr = np.corrcoef(R.T)
    return (ret, vol, L, var95, corr)


def histogram_entropy(x: Any) -> Any:
    counts, _ = np.histogram(x, bins=5)
    p = counts / counts.sum()
    p = p[p > 0]
    return -np.sum(p * np.log2(p))


def rotate(points: Any, theta: Any) -> Any:
    R = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    return (points @ R.T, np.deg2rad(45) * theta, np.round(theta, 2))


def masks(im: Any, f: Any) -> Any:
    t = im.mean()
    binary = im > t
    out = np.where(binary, 255, 0).astype(np.uint8)
    neg = 255 - im
    rgb = np.dstack([im, im, neg])
    gray = rgb @ np.array([0.299, 0.587, 0.114])
    crop = im[2:-2, 3:-3][::2, ::2]
    return (out, neg, gray, crop, np.flipud(f), np.fliplr(f), np.rot90(f))


PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (sobel, (IMAGE,)),
    (median_filter, (IMAGE,)),
    (gaussian_blur, (IMAGE,)),
    (hist_equal, ((IMAGE * 255).astype(np.uint8),)),
    (pca, (POINTS,)),
    (returns_drawdown, (SERIES,)),
    (moving_averages, (SERIES,)),
    (life, ((IMAGE > 0.6).astype(int),)),
    (
        ransac,
        (
            POINTS[:, 0],
            2 * POINTS[:, 0] + 1,
        ),
    ),
    (spectral, (POINTS[:6],)),
    (
        lda,
        (
            POINTS,
            LABELS,
        ),
    ),
    (
        lda_masks,
        (
            POINTS,
            LABELS,
        ),
    ),
    (kalman, (SERIES,)),
    (
        kalman_matrix,
        (
            np.array([[1.0, 0.1], [0, 1.0]]),
            IMAGE[:, :1],
        ),
    ),
    (hmm_forward, (*PATHS,)),
    (viterbi, (*PATHS,)),
    (
        knapsack,
        (
            np.array([1, 3, 4]),
            np.array([10, 40, 50]),
        ),
    ),
    (random_walk, (np.array([1.0, 2.0, 3.0]),)),
    (gram_schmidt, (IMAGE[:, :4],)),
    (simplex_pivots, (np.array([[2.0, 1, 1, 0, 8], [1, 2, 0, 1, 8], [-3, -2, 0, 0, 0]]),)),
    (
        window_conv,
        (
            IMAGE,
            POINTS[:2, :2],
        ),
    ),
    (rolling_std, (SERIES,)),
    (one_hots, (np.array([2, 0, 1, 1]),)),
    (bootstrap, (SERIES,)),
    (munging, (np.array([3.0, np.nan, 1.0, np.nan, 7.0]),)),
    (
        groupby,
        (
            np.array([1, 2, 1, 0, 2]),
            np.array([10.0, 20, 30, 40, 50]),
        ),
    ),
    (
        linreg,
        (
            POINTS,
            POINTS @ np.array([1.0, -2, 3]),
        ),
    ),
    (
        naive_bayes,
        (
            POINTS,
            LABELS,
        ),
    ),
    (gmm_em, (POINTS,)),
    (rk4, (np.array([1.0, 0.0]),)),
    (
        nbody,
        (
            POINTS[:4],
            np.array([1.0, 2, 1, 3]),
        ),
    ),
    (
        lu_solve,
        (
            IMAGE[:4, :4] + 4 * np.eye(4),
            IMAGE[0, :4],
        ),
    ),
    (floyd, (np.array([[0, 3, 9.0], [3, 0, 2], [9, 2, 0]]),)),
    (sieve, (30,)),
    (polygon_hull_area, (IMAGE[:, :2],)),
    (attention, (POINTS.reshape(2, 5, 6),)),
    (tfidf_als, (np.array([[1, 5, 0], [0, 2, 0], [3, 0, 0.0]]),)),
    (
        portfolio,
        (
            np.array([0.2, 0.3, 0.5]),
            POINTS * 0.01,
        ),
    ),
    (histogram_entropy, (SERIES,)),
    (
        rotate,
        (
            IMAGE[:, :2],
            0.3,
        ),
    ),
    (
        masks,
        (
            (IMAGE * 255).astype(np.uint8),
            IMAGE,
        ),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_program_gives_what_numpy_gives(program: Any, args: tuple[Any, ...]) -> None:
    wanted = leaves(program(*map(np.copy, args)))
    found = leaves(graphc.jit(program, mode="interpreted")(*args))
    for got, want in zip(found, wanted, strict=True):
        assert np.shape(got) == np.shape(want) and np.asarray(got).dtype == np.asarray(want).dtype
        npt.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


REFUSED: list[tuple[Any, str]] = [
    (lambda x: x[0] if x[0] > 0 else x[1], r"jnp.where\(condition, a, b\), lax.cond, lax.while_loop"),
    (lambda x: x.strides[0] // x.itemsize, "x.strides are of the memory"),
    (lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)), "as x.strides alone, where x is the same array"),
    (lambda x: np.lib.stride_tricks.as_strided(x[::-1], (2,), x.strides), "where x is the same array"),
    (lambda x: [x[x == k].sum() for k in np.unique(x)], "has no length"),
    (lambda x: IMAGE.dot(x), r"IMAGE.dot\(x\) asks for: write IMAGE @ x"),
    (lambda x: IMAGE[x.astype(int)], r"jnp.asarray\(IMAGE\)\[key\] takes it"),
    (lambda x: f"{x[0]:.2f}", "graphc.debug.print"),
]


@pytest.mark.parametrize(("program", "told"), REFUSED)
def test_what_cannot_be_traced_says_what_to_write(program: Any, told: str) -> None:
    with pytest.raises(GraphcError, match=told) as error:
        graphc.jit(program, mode="interpreted").lower(np.ones(7))
    assert "test_whole_programs.py:" in str(error.value)
