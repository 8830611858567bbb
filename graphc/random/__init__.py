"""Random numbers, in JAX's functional form, and streams of them, in Theano's.

In: keys and shapes, or a seed. Out: arrays, where no argument is a tensor and no function is traced; else nodes like
any others: they fuse, are compiled and cached, and give the same numbers in every mode, on every machine and for every
number of threads.

    key = graphc.random.key(0)                   a np.uint64
    graphc.random.normal(key, (3, 4))            an array
    noise = graphc.random.normal(key, (3, n))    a tensor, where the scalar n is one

distributions.py has the generator, what is a function of uniform numbers, and derivatives by parameters, rejection.py
what takes trials, vectors.py orders, choices and vectors of a covariance, streams.py Theano's RandomStreams, raw.py
Theano's raw_random.
"""

from typing import TYPE_CHECKING

from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.random import distributions, rejection, vectors
from graphc.startup.hooks import telling

HOMES = {
    distributions: """
        bernoulli bits categorical cauchy exponential fold_in geometric gumbel key laplace logistic lognormal normal
        pareto rademacher randint rayleigh split triangular uniform wald weibull_min
    """,
    rejection: """
        beta binomial chisquare dirichlet double_sided_maxwell f gamma generalized_normal maxwell negative_binomial
        poisson t truncated_normal vonmises
    """,
    vectors: "ball choice multinomial multivariate_normal orthogonal permutation wishart",
}
"""The modules that have the functions, and the names of each."""

if TYPE_CHECKING:
    from graphc.random.names import *  # noqa: F403 - arrays or tensors (tests/test_stubs.py)
else:
    globals().update({name: getattr(home, name) for home, names in HOMES.items() for name in names.split()})
    loggamma = rejection.log_gamma_number

__all__ = sorted(["loggamma", *" ".join(HOMES.values()).split()])  # noqa: PLE0605 - the names are in the table

all_at_once(globals())
explain_all(globals())
PRNGKey = globals()["key"]
"""JAX's older name of `key`."""
if not TYPE_CHECKING:
    __getattr__ = telling(__name__, "clone", "key_", "wrap_key")
