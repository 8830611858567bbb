"""Whether chains agree: R-hat and effective sample sizes of samples.

In: draws, an array [chains, draws, ...]. Out: for each element a number.

    r_hat(draws)       near 1 where chains have mixed; above 1.01 they have not
    effective(draws)   as many independent draws would tell the mean as well

The formulas are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Rank-normalization, folding, and
localization: An improved R-hat, equations 1 to 14; autocovariances are cut by Geyer's (1992) monotone sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.scipy import special


def r_hat(draws: Any) -> Any:
    """Return the larger of the R-hat of split chains by ranks, and by ranks of the distance from the median. NaN for
    fewer than 4 draws, and for an element that never changes."""
    halves = _split(draws)
    far = abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_mixed(_ranked(halves)), _mixed(_ranked(far)))


def effective(draws: Any) -> Any:
    """Return the effective sample size for the mean, by ranks (bulk-ESS). NaN as for `r_hat`."""
    chains = _ranked(_split(draws))
    count, size = chains.shape[:2]
    flat = chains.reshape(count, size, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.array([_effective_of(flat[..., k]) for k in range(flat.shape[2])])
    return found.reshape(chains.shape[2:])[()]


def _split(draws: Any) -> Any:
    """Return the halves of all chains as chains, without the middle draw of an odd number."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _ranked(chains: Any) -> Any:
    """Return the normal quantiles of the ranks among all draws; equal draws have their mean rank."""
    flat = chains.reshape(chains.shape[0] * chains.shape[1], -1)
    made = np.empty(flat.shape)
    for k in range(flat.shape[1]):
        _, places, counts = np.unique(flat[:, k], return_inverse=True, return_counts=True)
        made[:, k] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    found: Any = special.ndtri((made - 3 / 8) / (len(flat) + 1 / 4))
    return found.reshape(chains.shape)


def _mixed(chains: Any) -> Any:
    """Return R-hat: the standard deviation of all draws over that within chains."""
    size = chains.shape[1]
    if size < 2:
        return np.full(chains.shape[2:], np.nan)[()]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt((size - 1) / size + between / within)


def _effective_of(chains: Any) -> float:
    """Return the effective size of chains of one number."""
    count, size = chains.shape
    if size < 2:
        return np.nan
    centred = chains - chains.mean(axis=1, keepdims=True)
    waves = np.fft.rfft(centred, n=2 * size)
    covariances = np.fft.irfft(waves * waves.conj(), n=2 * size)[:, :size] / size
    within = covariances[:, 0].mean() * size / (size - 1)
    total = within * (size - 1) / size + (chains.mean(axis=1).var(ddof=1) if count > 1 else 0.0)
    related = 1 - (within - covariances.mean(axis=0) * size / (size - 1)) / total
    related[0] = 1.0
    pairs = related[: size // 2 * 2].reshape(-1, 2).sum(axis=1)
    if np.isnan(pairs).any():
        return np.nan
    last = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    sums = np.minimum.accumulate(pairs[: max(last, 1)])
    time = max(2 * sums.sum() - 1, 1 / np.log10(count * size))
    return float(count * size / time)
