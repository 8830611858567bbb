"""The distributions of `scipy.stats` that are used most, and descriptive functions, of arrays and of tensors.

    stats.norm.logpdf(x, mu, sigma)      a tensor of tensors, with derivatives in all three
    stats.norm(mu, sigma).cdf(x)         the same distribution, with its parameters
    stats.zscore(x)

In: what SciPy's functions of these names take. Out: SciPy's results. distribution.py has the methods, and distributions
of vectors, laws.py a record of formulas for each distribution, descriptive.py functions of samples. Random numbers take
a key of `graphc.random` as `random_state`.
"""

from __future__ import annotations

from typing import Any

from graphc.scipy.named import offer
from graphc.scipy.stats import descriptive, laws
from graphc.scipy.stats.distribution import Discrete, Distribution, dirichlet, multinomial, multivariate_normal
from graphc.startup.hooks import lazily, nearest

DISTRIBUTIONS: dict[str, Any] = {
    **{law.name: Distribution(law) for law in laws.CONTINUOUS},
    **{law.name: Discrete(law) for law in laws.DISCRETE},
    "dirichlet": dirichlet,
    "multinomial": multinomial,
    "multivariate_normal": multivariate_normal,
    "reciprocal": Distribution(next(law for law in laws.CONTINUOUS if law.name == "loguniform")),
}
"""The distributions by their names."""

__all__ = sorted([*DISTRIBUTIONS, *descriptive.__all__])  # noqa: PLE0605 - the names are SciPy's

globals().update(DISTRIBUTIONS)
globals().update({name: getattr(descriptive, name) for name in descriptive.__all__})


_INSTEAD = {
    "gaussian_kde": "jnp.mean(norm.pdf(x[:, None], samples, width), axis=1) is such a density",
    "mode": "jnp.unique(x, return_counts=True) counts values",
}
"""Names that do not exist here, with what to use instead."""
_OTHERS = "graphc has the distributions that are used most, and functions of samples that have derivatives"
__getattr__ = lazily(__name__, {}, lambda name: _INSTEAD.get(name) or nearest(name, __all__) or _OTHERS)


offer(globals())
