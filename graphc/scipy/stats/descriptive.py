"""Functions of samples under SciPy's names: moments, means, scores, ranks.

    zscore(x)          (x - mean) / deviation along the first axis
    skew(x, axis=1)

In: tensors, with SciPy's `axis`, `ddof`, `bias` and `keepdims`; None as axis stands for all elements. Out: tensors. Of
what SciPy does about missing values graphc has nan_policy="propagate" alone: another is a GraphValueError.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from graphc.errors import GraphValueError
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.scipy.special import addressed as by, composed
from graphc.scipy.stats.distribution import floats
from graphc.tensor import elementary as el, special as sp
from graphc.tensor.inspection import Assert
from graphc.tensor.shaping import flatten, moveaxis, squeeze
from graphc.tensor.statistics import median, quantile

__all__ = [
    "boxcox_llf", "chisquare", "circmean", "circstd", "circvar", "entropy", "f_oneway", "gmean", "gstd", "gzscore",
    "hmean", "iqr", "kstat", "kurtosis", "linregress", "median_abs_deviation", "moment", "pearsonr", "pmean",
    "rankdata", "sem", "skew", "spearmanr", "tmean", "tstd", "ttest_1samp", "ttest_ind", "ttest_rel", "tvar",
    "variation", "zmap", "zscore",
]  # fmt: skip

Axis = Any


def _sample(name: str, a: Any, axis: Axis, nan_policy: str = "propagate") -> tuple[Node, int]:
    """The elements as floats, and the axis along which they are one sample."""
    if nan_policy != "propagate":
        raise GraphValueError(f"{name} of a tensor: nan_policy={nan_policy!r} is not supported, only 'propagate'")
    node = floats(a)
    return (flatten(node), 0) if axis is None else (node, axis)


def _count(x: Node, axis: int) -> Node:
    return el.cast(x.shape[range(x.ndim)[axis]], x.type.dtype)


def _kept(value: Node, a: Any, axis: Axis, keepdims: bool) -> Node:
    """A result that has its axis yet, as it is asked for."""
    if axis is not None:
        return value if keepdims else squeeze(value, axis)
    return value.reshape([1] * as_node(a).ndim) if keepdims else value.reshape(())


def _central(x: Node, axis: int, order: int, center: Any = None) -> Node:
    middle = x.mean(axis, keepdims=True) if center is None else center
    return ((x - middle) ** order).mean(axis, keepdims=True)


def moment(
    a: Any, order: Any = 1, axis: Axis = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False
) -> Node:
    """The mean of (a - center)**order, by default about the mean, where the first one is 0."""
    x, along = _sample("moment", a, axis, nan_policy)
    result = _central(x, along, order, center)
    if order == 1 and center is None:
        result = 0 * result
    return _kept(result, a, axis, keepdims)


def skew(a: Any, axis: Axis = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Node:
    """The third standardised moment; bias=False corrects it for the size of the sample."""
    x, along = _sample("skew", a, axis, nan_policy)
    n, second, third = _count(x, along), _central(x, along, 2), _central(x, along, 3)
    result = third / second**1.5
    if not bias:
        result = el.where(n > 2, el.sqrt((n - 1) * n) / (n - 2) * result, result)
    return _kept(result, a, axis, keepdims)


def kurtosis(
    a: Any,
    axis: Axis = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Node:
    """The fourth standardised moment, less 3 for `fisher`; bias=False corrects it for the size of the sample."""
    x, along = _sample("kurtosis", a, axis, nan_policy)
    n, second, fourth = _count(x, along), _central(x, along, 2), _central(x, along, 4)
    result = fourth / (second * second)
    if not bias:
        corrected = 3 + ((n * n - 1) * result - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3))
        result = el.where(n > 3, corrected, result)
    return _kept(result - 3 if fisher else result, a, axis, keepdims)


def sem(a: Any, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Node:
    """The standard error of the mean."""
    x, along = _sample("sem", a, axis, nan_policy)
    return _kept(x.std(along, ddof=ddof, keepdims=True) / el.sqrt(_count(x, along)), a, axis, keepdims)


def variation(
    a: Any, axis: Axis = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False
) -> Node:  # fmt: skip
    """The deviation over the mean."""
    x, along = _sample("variation", a, axis, nan_policy)
    return _kept(x.std(along, ddof=ddof, keepdims=True) / x.mean(along, keepdims=True), a, axis, keepdims)


def zmap(scores: Any, compare: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Node:
    """`scores` less the mean of `compare`, over its deviation."""
    x, _ = _sample("zmap", compare, 0, nan_policy)
    return (floats(scores) - x.mean(axis, keepdims=True)) / x.std(axis, ddof=ddof, keepdims=True)


def zscore(a: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Node:
    """Each element less the mean, over the deviation."""
    return zmap(a, a, axis, ddof, nan_policy)


def gzscore(a: Any, *, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Node:
    """`zscore` of the logarithms."""
    return zscore(el.log(a), axis, ddof, nan_policy)


def gstd(a: Any, axis: Axis = 0, ddof: int = 1, *, keepdims: bool = False, nan_policy: str = "propagate") -> Node:
    """The geometric standard deviation."""
    x, along = _sample("gstd", a, axis, nan_policy)
    return _kept(el.exp(el.log(x).std(along, ddof=ddof, keepdims=True)), a, axis, keepdims)


def _mean(x: Node, along: int, weights: Any) -> Node:
    if weights is None:
        return x.mean(along, keepdims=True)
    w = floats(weights)
    return (x * w).sum(along, keepdims=True) / (w + 0 * x).sum(along, keepdims=True)


def gmean(
    a: Any, axis: Axis = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The geometric mean."""
    x, along = _sample("gmean", a, axis, nan_policy)
    return _kept(el.exp(_mean(el.log(x), along, weights)), a, axis, keepdims)


def hmean(
    a: Any, axis: Axis = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The harmonic mean."""
    x, along = _sample("hmean", a, axis, nan_policy)
    return _kept(1 / _mean(1 / x, along, weights), a, axis, keepdims)


def pmean(
    a: Any, p: Any, *, axis: Axis = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The power mean of exponent p, a Python number; the geometric one for 0."""
    if p == 0:
        return gmean(a, axis, weights=weights, nan_policy=nan_policy, keepdims=keepdims)
    x, along = _sample("pmean", a, axis, nan_policy)
    return _kept(_mean(x**p, along, weights) ** (1 / p), a, axis, keepdims)


def _without_limits(name: str, limits: Any) -> None:
    if limits is not None:
        raise GraphValueError(f"{name} of a tensor: limits are not supported; select the elements before")


def tmean(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Axis = None, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The mean. Raises GraphValueError for limits."""
    _without_limits("tmean", limits)
    x, along = _sample("tmean", a, axis, nan_policy)
    return _kept(x.mean(along, keepdims=True), a, axis, keepdims)


def tvar(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Axis = 0, ddof: int = 1, *,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Node:  # fmt: skip
    """The variance. Raises GraphValueError for limits."""
    _without_limits("tvar", limits)
    x, along = _sample("tvar", a, axis, nan_policy)
    return _kept(x.var(along, ddof=ddof, keepdims=True), a, axis, keepdims)


def tstd(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Axis = 0, ddof: int = 1, **how: Any) -> Node:
    """The root of `tvar`."""
    return el.sqrt(tvar(a, limits, inclusive, axis, ddof, **how))


def iqr(
    x: Any, axis: Axis = None, rng: Any = (25, 75), scale: float = 1.0, nan_policy: str = "propagate",
    interpolation: str = "linear", keepdims: bool = False,
) -> Node:  # fmt: skip
    """The distance of two percentiles, over `scale`."""
    sample, along = _sample("iqr", x, axis, nan_policy)
    low, high = (quantile(sample, q / 100, axis=along, keepdims=True, method=interpolation) for q in rng)
    return _kept((high - low) / scale, x, axis, keepdims)


def median_abs_deviation(
    x: Any, axis: Axis = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The median of the distances from the median. scale: a number to divide by, or "normal"."""
    if center is not None:
        raise GraphValueError("median_abs_deviation of a tensor: center is not supported")
    sample, along = _sample("median_abs_deviation", x, axis, nan_policy)
    result = median(el.abs(sample - median(sample, along, keepdims=True)), along, keepdims=True)
    return _kept(result / (0.6744897501960817 if scale == "normal" else scale), x, axis, keepdims)


# --- of angles --------------------------------------------------------------------------------------------------------


def _direction(name: str, samples: Any, high: Any, low: Any, axis: Axis, nan_policy: str) -> tuple[Node, Node]:
    """Mean sine and cosine."""
    x, along = _sample(name, samples, axis, nan_policy)
    angle = (x - low) * (2 * math.pi / (high - low))
    return el.sin(angle).mean(along, keepdims=True), el.cos(angle).mean(along, keepdims=True)


def circmean(
    samples: Any, high: Any = 2 * math.pi, low: Any = 0, axis: Axis = None, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The mean of angles between `low` and `high`."""
    sine, cosine = _direction("circmean", samples, high, low, axis, nan_policy)
    angle = el.mod(el.arctan2(sine, cosine), 2 * math.pi)
    return _kept(angle * ((high - low) / (2 * math.pi)) + low, samples, axis, keepdims)


def circvar(
    samples: Any, high: Any = 2 * math.pi, low: Any = 0, axis: Axis = None, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Node:  # fmt: skip
    """The variance of angles: 1 less the length of their mean."""
    sine, cosine = _direction("circvar", samples, high, low, axis, nan_policy)
    return _kept(1 - el.hypot(sine, cosine), samples, axis, keepdims)


def circstd(
    samples: Any, high: Any = 2 * math.pi, low: Any = 0, axis: Axis = None, nan_policy: str = "propagate", *,
    normalize: bool = False, keepdims: bool = False,
) -> Node:  # fmt: skip
    """The deviation of angles."""
    sine, cosine = _direction("circstd", samples, high, low, axis, nan_policy)
    result = el.sqrt(-2 * el.log(el.hypot(sine, cosine)))
    return _kept(result if normalize else result * ((high - low) / (2 * math.pi)), samples, axis, keepdims)


# --- of pairs, and of distributions -----------------------------------------------------------------------------------

PearsonRResult = namedtuple("PearsonRResult", "statistic pvalue")
SignificanceResult = namedtuple("SignificanceResult", "statistic pvalue")
LinregressResult = namedtuple("LinregressResult", "slope intercept rvalue pvalue stderr")


def _correlation(x: Node, y: Node, axis: int) -> Node:
    a, b = x - x.mean(axis, keepdims=True), y - y.mean(axis, keepdims=True)
    return (a * b).sum(axis) / el.sqrt((a * a).sum(axis) * (b * b).sum(axis))


def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Axis = 0) -> Any:
    """`(statistic, pvalue)`: the correlation, and the probability of one as large from independent normal variables.

    Raises GraphValueError for another alternative or method.
    """
    if alternative != "two-sided" or method is not None:
        raise GraphValueError("pearsonr of a tensor: alternative and method are not supported")
    (a, along), (b, _) = _sample("pearsonr", x, axis), _sample("pearsonr", y, axis)
    r = _correlation(a, b, along)
    half = 0.5 * _count(a, along) - 1
    return PearsonRResult(r, 2 * sp.betainc(half, half, 0.5 * (1 - el.abs(r))))


def linregress(x: Any, y: Any, alternative: str = "two-sided", *, axis: int = 0, nan_policy: str = "propagate") -> Any:
    """`(slope, intercept, rvalue, pvalue, stderr)` of the line that fits best."""
    if alternative != "two-sided":
        raise GraphValueError("linregress of a tensor: alternative is not supported")
    (a, along), (b, _) = _sample("linregress", x, axis, nan_policy), _sample("linregress", y, axis, nan_policy)
    first, second = a - a.mean(along, keepdims=True), b - b.mean(along, keepdims=True)
    square, r = (first * first).sum(along), _correlation(a, b, along)
    slope, n = (first * second).sum(along) / square, _count(a, along)
    error = el.sqrt((1 - r * r) * (second * second).sum(along) / square / (n - 2))
    p = 2 * sp.stdtr(n - 2, -el.abs(slope / error))
    return LinregressResult(slope, b.mean(along) - slope * a.mean(along), r, p, error)


def rankdata(a: Any, method: str = "average", *, axis: Axis = None, nan_policy: str = "propagate") -> Node:
    """The ranks from 1 on; of equal elements by `method`: "average", "min", "max" or "dense". All pairs along the axis
    are compared. Ranks have no derivatives. Raises GraphValueError for another method."""
    x, along = _sample("rankdata", a, axis, nan_policy)
    if method not in ("average", "min", "max", "dense"):
        raise GraphValueError(f"rankdata of a tensor: method={method!r} is none of average, min, max, dense")
    rows = moveaxis(x, along, -1)
    first, second = rows[..., None, :], rows[..., :, None]
    below, alike = (first < second).astype("int64"), el.equal(first, second).astype("int64")
    if method == "dense":
        shown = 1.0 / alike.sum(-1)
        ranks = el.rint((below * shown[..., None, :]).sum(-1)).astype("int64") + 1
    else:
        lowest, count = below.sum(-1) + 1, alike.sum(-1)
        ranks = {"average": lowest + 0.5 * (count - 1), "min": lowest, "max": lowest + count - 1}[method]
    return moveaxis(ranks, -1, along)


def spearmanr(
    a: Any, b: Any = None, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> Any:
    """`(statistic, pvalue)`: the correlation of the ranks of two samples. Raises GraphValueError for one."""
    if b is None or alternative != "two-sided":
        raise GraphValueError("spearmanr of a tensor: it takes two samples, and no alternative")
    first, second = (rankdata(each, axis=axis, nan_policy=nan_policy) for each in (a, b))
    r = _correlation(first, second, 0 if axis is None else axis)
    df = _count(first, 0 if axis is None else axis) - 2
    t = r * el.sqrt(df / ((1 + r) * (1 - r)))
    return SignificanceResult(r, 2 * sp.stdtr(df, -el.abs(t)))


# --- tests ------------------------------------------------------------------------------------------------------------

TtestResult = namedtuple("TtestResult", "statistic pvalue")
F_onewayResult = namedtuple("F_onewayResult", "statistic pvalue")
Power_divergenceResult = namedtuple("Power_divergenceResult", "statistic pvalue")


def _of_t(name: str, t: Node, df: Any, alternative: str) -> Any:
    """The result for a statistic of Student's distribution."""
    sides = {"two-sided": lambda: 2 * sp.stdtr(df, -el.abs(t)), "less": lambda: sp.stdtr(df, t)}
    sides["greater"] = lambda: sp.stdtr(df, -t)
    if alternative not in sides:
        raise GraphValueError(f"{name} of a tensor: alternative={alternative!r} is none of {', '.join(sides)}")
    return TtestResult(t, sides[alternative]())


def ttest_1samp(
    a: Any, popmean: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """`(statistic, pvalue)`: whether the mean of a sample is `popmean`. Raises GraphValueError for another alternative
    than "two-sided", "less" and "greater"."""
    x, along = _sample("ttest_1samp", a, axis, nan_policy)
    n = _count(x, along)
    middle, deviation = x.mean(along, keepdims=True), x.std(along, ddof=1, keepdims=True)
    t = _kept((middle - popmean) / (deviation / el.sqrt(n)), a, axis, keepdims)
    return _of_t("ttest_1samp", t, n - 1, alternative)


def ttest_rel(
    a: Any, b: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """`(statistic, pvalue)`: whether the mean of the differences of pairs is 0. Raises GraphValueError as
    `ttest_1samp`."""
    return ttest_1samp(floats(a) - floats(b), 0.0, axis, nan_policy, alternative, keepdims=keepdims)


def ttest_ind(
    a: Any, b: Any, *, axis: Axis = 0, equal_var: bool = True, nan_policy: str = "propagate",
    alternative: str = "two-sided", trim: Any = 0, method: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """`(statistic, pvalue)`: whether two independent samples have the same mean; by Welch's test unless `equal_var`.

    Raises GraphValueError as `ttest_1samp`, and for `trim` and `method`.
    """
    if method is not None or not isinstance(trim, int | float) or trim:
        raise GraphValueError("ttest_ind of a tensor: trim and method are not supported")
    (x, along), (y, _) = _sample("ttest_ind", a, axis, nan_policy), _sample("ttest_ind", b, axis, nan_policy)
    counts = n, m = _count(x, along), _count(y, along)
    first, second = (each.var(along, ddof=1, keepdims=True) for each in (x, y))
    df: Any = sum(counts) - 2
    if equal_var:
        square = ((n - 1) * first + (m - 1) * second) / df * (1 / n + 1 / m)
    else:
        parts = first / n, second / m
        square = parts[0] + parts[1]
        df = _kept(square**2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1)), a, axis, keepdims)
    t = (x.mean(along, keepdims=True) - y.mean(along, keepdims=True)) / el.sqrt(square)
    return _of_t("ttest_ind", _kept(t, a, axis, keepdims), df, alternative)


def f_oneway(*samples: Any, axis: int = 0) -> Any:
    """`(statistic, pvalue)`: whether several samples have the same mean. Raises GraphValueError for fewer than two."""
    if len(samples) < 2:
        raise GraphValueError("f_oneway of a tensor: it compares at least two samples")
    groups = [floats(each) for each in samples]
    counts = [_count(each, axis) for each in groups]
    count: Any = sum(counts)
    middle = sum(each.sum(axis, keepdims=True) for each in groups) / count
    means = [each.mean(axis, keepdims=True) for each in groups]
    pairs = list(zip(groups, means, counts, strict=True))
    between: Any = sum(n * (mean - middle) ** 2 for _, mean, n in pairs)
    within: Any = sum(((each - mean) ** 2).sum(axis, keepdims=True) for each, mean, _ in pairs)
    first, second = len(groups) - 1, count - len(groups)
    statistic = squeeze(between / first / (within / second), axis)
    return F_onewayResult(statistic, sp.betainc(second / 2, first / 2, second / (second + first * statistic)))


def chisquare(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Axis = 0, *, sum_check: bool = True) -> Any:
    """`(statistic, pvalue)`: whether counts are those expected, by default all equal. A call raises AssertionFailed
    where counts and expected ones have other sums, unless `sum_check` is False."""
    counts, along = _sample("chisquare", f_obs, axis)
    expected = counts.mean(along, keepdims=True) if f_exp is None else _sample("chisquare", f_exp, axis)[0]
    if f_exp is not None and sum_check:
        sums = counts.sum(along), expected.sum(along)
        agree = el.less_equal(el.abs(sums[0] - sums[1]), 2.0**-26 * el.minimum(*sums)).all()
        counts = Assert("chisquare: counts and expected counts have other sums")(counts, agree)
    statistic = ((counts - expected) ** 2 / expected).sum(along)
    return Power_divergenceResult(statistic, sp.gammaincc((_count(counts, along) - 1 - ddof) / 2, statistic / 2))


def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Axis = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Node:
    """The entropy of probabilities, which are divided by their sum; with `qk` the relative one."""
    p, along = _sample("entropy", pk, axis, nan_policy)
    p = p / p.sum(along, keepdims=True)
    if qk is None:
        terms = composed.entr(p)
    else:
        q, _ = _sample("entropy", qk, axis)
        terms = composed.rel_entr(p, q / q.sum(along, keepdims=True))
    result = terms.sum(along, keepdims=True)
    return _kept(result if base is None else result / el.log(base), pk, axis, keepdims)


def kstat(data: Any, n: int = 2, *, axis: Axis = None, nan_policy: str = "propagate", keepdims: bool = False) -> Node:
    """The unbiased estimate of the n-th cumulant, 1 to 4. Raises GraphValueError for another n."""
    x, along = _sample("kstat", data, axis, nan_policy)
    if n not in (1, 2, 3, 4):
        raise GraphValueError(f"kstat: n is 1, 2, 3 or 4, not {n}")
    count, m = _count(x, along), [_central(x, along, order) for order in (2, 3, 4)]
    if n == 1:
        result = x.mean(along, keepdims=True)
    elif n == 2:
        result = count / (count - 1) * m[0]
    elif n == 3:
        result = count * count / ((count - 1) * (count - 2)) * m[1]
    else:
        result = count * count * ((count + 1) * m[2] - 3 * (count - 1) * m[0] ** 2)
        result = result / ((count - 1) * (count - 2) * (count - 3))
    return _kept(result, data, axis, keepdims)


def boxcox_llf(
    lmb: Any, data: Any, *, axis: Axis = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Node:  # fmt: skip
    """The logarithm of the likelihood of data whose Box-Cox transformation is normal."""
    x, along = _sample("boxcox_llf", data, axis, nan_policy)
    logs, lmb = el.log(x), floats(lmb)
    spread = el.log(by.boxcox(x, lmb).var(along, keepdims=True))
    n = _count(x, along)
    return _kept((lmb - 1) * logs.sum(along, keepdims=True) - 0.5 * n * spread, data, axis, keepdims)
