"""Random numbers, in JAX's functional form, and streams of them, in Theano's.

In: keys and shapes, or a seed. Out: arrays, where no argument is a tensor and no function is traced; else nodes like
any others: they fuse, are compiled and cached, and give the same numbers in every mode, on every machine and for every
number of threads.

    key = graphc.random.key(0)                   a np.uint64
    graphc.random.normal(key, (3, 4))            an array
    noise = graphc.random.normal(key, (3, n))    a tensor, where the scalar n is one

distributions.py has the generator and what is a function of uniform numbers, rejection.py what takes trials,
vectors.py orders, choices and vectors of a covariance, derivatives.py derivatives by parameters, streams.py Theano's
RandomStreams, raw.py Theano's raw_random.
"""

from typing import TYPE_CHECKING

from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.startup.hooks import telling

if TYPE_CHECKING:
    from graphc.random.names import *  # noqa: F403 - arrays or tensors (tests/test_stubs.py)
else:
    from graphc.random.distributions import (
        bernoulli,
        bits,
        categorical,
        cauchy,
        exponential,
        fold_in,
        geometric,
        gumbel,
        key,
        laplace,
        logistic,
        lognormal,
        normal,
        pareto,
        randint,
        split,
        uniform,
        wald,
        weibull_min,
    )
    from graphc.random.rejection import (
        beta,
        binomial,
        chisquare,
        dirichlet,
        f,
        gamma,
        log_gamma_number as loggamma,
        negative_binomial,
        poisson,
        t,
        truncated_normal,
        vonmises,
    )
    from graphc.random.vectors import choice, multinomial, multivariate_normal, permutation, wishart

__all__ = [
    "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet", "exponential",
    "f", "fold_in", "gamma", "geometric", "gumbel", "key", "laplace", "loggamma", "logistic", "lognormal",
    "multinomial", "multivariate_normal", "negative_binomial", "normal", "pareto", "permutation", "poisson", "randint",
    "split", "t", "truncated_normal", "uniform", "vonmises", "wald", "weibull_min", "wishart",
]  # fmt: skip


all_at_once(globals())
explain_all(globals())
if not TYPE_CHECKING:
    __getattr__ = telling(__name__, "PRNGKey", "key_", "wrap_key")
