"""The functions of `scipy.special` of real arguments, of arrays and of tensors.

In: what SciPy's functions of these names take. Out: SciPy's values; of tensors those of the same functions, which
kernels call by address (graphc/ops/custom.py) or which are composed of others, with derivatives. A derivative that has
no formula is an error that names the function and the argument.

    special.gammaln(np.array([1.0, 5.0]))       array([0.        , 3.17805383])
    graphc.grad(special.gammaln)(5.0)           digamma(5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.scipy.named import offer
from graphc.scipy.special.composed import log_softmax, logsumexp, softmax
from graphc.startup.lazy import nearest
from graphc.tensor.elementary import (
    cbrt,
    digamma,
    erf,
    erfc,
    erfcx,
    exp2,
    expit,
    expm1,
    gammaln,
    log1p,
    logit,
    psi,
    softplus,
    xlog1py,
    xlogy,
)
from graphc.tensor.special import (
    betainc,
    betaincinv,
    betaln,
    erfcinv,
    erfinv,
    gamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    hyp2f1,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kv,
    kve,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    polygamma,
    sinc,
    stdtr,
    y0,
    y1,
    yv,
)

__all__ = [
    "betainc", "betaincinv", "betaln", "cbrt", "digamma", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "hyp2f1", "i0",
    "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "k0", "k0e", "k1", "k1e", "kv", "kve", "log1p", "log_ndtr",
    "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "owens_t", "polygamma", "psi", "sinc", "softmax",
    "softplus", "stdtr", "xlog1py", "xlogy", "y0", "y1", "yv",
]  # fmt: skip


if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        near = nearest(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near and ': '}{near}")


offer(globals())
