"""Random streams as Theano's programs have them: `RandomStreams(seed).normal((3, n))`.

In: a seed. Out: variables that have other numbers at each call of a function, of each of which the state is a shared
variable with an update of its own. The state is a key and a count of draws; a draw's key is made of both, so that the
numbers of draw t can be had without those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.numerics import philox_low
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, literal
from graphc.ops.elementwise import as_node, broadcast_node, cast, elementwise
from graphc.options import options
from graphc.random import distributions, rejection, vectors
from graphc.random.distributions import FOLDING, fold_in, word
from graphc.shared import SharedVariable, own_variable
from graphc.startup.hooks import HOOKS
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.shaping import as_shape


class State(np.ndarray[Any, Any]):
    """The value of a stream's state, with what programs ask of NumPy's generators in Theano."""

    def seed(self, seed: int) -> None:
        """Begin anew with another seed."""
        self[:] = _hash(int(seed) % 2**64, 0), 0

    def get_state(self) -> Any:
        """A copy, as an array."""
        return np.array(self)

    def set_state(self, state: Any) -> None:
        """Go on from what `get_state` gave."""
        self[:] = state


class StateVariable(SharedVariable):
    """The state of one stream: `noise.rng` of a `noise` that a stream made. Its value is a `State`."""

    __slots__ = ()

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        return super().get_value(borrow, return_internal_type).view(State)


HOOKS.shared_generator = StateVariable


class RandomStreams:
    """Streams of random variables.

    seed: a whole number; None for one of the system's. Two of the same seed give the same numbers, whatever the mode
    and the number of threads. Each method makes a variable of its own stream:

        rng = RandomStreams(seed=234)
        noise = rng.normal((2, 2))
        f = graphc.function([], noise)      # other numbers at each call
        g = graphc.function([], noise, no_default_updates=True)     # the same numbers until `f` is called

    size: a shape, which may be symbolic; None for that of the parameters. ndim: how many axes, where a symbolic shape
    does not tell. nstreams, target: Theano's, change nothing. dtype: floatX for floats, int64 for whole numbers.
    """

    def __init__(
        self, seed: int | Sequence[int] | None = None, use_cuda: bool | None = None, no_warn: bool = False
    ) -> None:
        self.state_updates: list[tuple[SharedVariable, Node]] = []
        """The state of each variable with its next value."""
        self.default_instance_seed: Any = seed
        if seed is None:
            self.default_instance_seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self._key = 0
        self.seed()

    def seed(self, seed: Any = None) -> None:
        """Begin all streams anew, those made so far included; without a seed with that of the beginning."""
        self.set_rstate(self.default_instance_seed if seed is None else seed)
        for place, (state, _) in enumerate(self.state_updates):
            state.set_value(self._first(place))

    def set_rstate(self, seed: Any) -> None:
        """The streams that are made from now on are those of another seed."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            if np.asarray(seed).dtype.kind not in "iu":
                raise GraphTypeError(f"a seed is a whole number or several, not {seed!r}")
            parts = [int(part) for part in np.ravel(np.asarray(seed))]
            seed = sum(part << 32 * place for place, part in enumerate(parts))
        self._key, left = _hash(int(seed) % 2**64, 0), int(seed) >> 64
        while left not in (0, -1):
            self._key, left = _hash(left % 2**64, self._key), left >> 64

    @property
    def rstate(self) -> Any:
        """The state from which streams are made from now on, as an array; it may be set to that of others."""
        return np.array([self._key], np.uint64)

    @rstate.setter
    def rstate(self, state: Any) -> None:
        self._key = int(np.asarray(state, np.uint64)[0])

    def inc_rstate(self) -> None:
        """The streams that are made from now on are others."""
        self._key = _hash(FOLDING, self._key)

    def get_substream_rstates(self, n_streams: int, dtype: Any = None, inc_rstate: bool = True) -> Any:
        """The states of streams that nothing has drawn from, one in each row; no two calls give the same, unless
        `inc_rstate` is false."""
        own = _hash(FOLDING - 1, self._key)
        states = np.array([(_hash(place, own), 0) for place in range(int(n_streams))], np.uint64)
        if inc_rstate:
            self.inc_rstate()
        return states.reshape(-1, 2)

    def __getitem__(self, state: Any) -> Any:
        """The value of the state of one of the streams, `noise.rng`: it may be seeded."""
        return self._own(state).get_value(borrow=True)

    def __setitem__(self, state: Any, value: Any) -> None:
        self._own(state).set_value(value)

    def _own(self, state: Any) -> SharedVariable:
        state_variable: SharedVariable | None = next((own for own, _ in self.state_updates if own is state), None)
        if state_variable is None:
            raise KeyError(state)
        return state_variable

    def updates(self) -> list[tuple[SharedVariable, Node]]:
        """The updates of all states, for functions that are made without default updates."""
        return list(self.state_updates)

    def gen(self, op: Callable[..., Node], *args: Any, **kwargs: Any) -> Node:
        """A variable of a stream of its own: `op(key, *args, **kwargs)`. Its `rng` and `rstate` are the state, its
        `update` that and what follows on it."""
        place = len(self.state_updates)
        state = own_variable(self._first(place), (2,), f"random state {place}", made=StateVariable)
        following = set_subtensor(state[1], state[1] + word(1))
        state.default_update = following
        self.state_updates.append((state, following))
        drawn = op(fold_in(state[0], state[1]), *args, **kwargs)
        drawn.__dict__.update(rng=state, rstate=state, update=(state, following))
        return drawn

    def _first(self, place: int) -> Any:
        return np.array([_hash(place, self._key), 0], np.uint64)

    # What programs draw --------------------------------------------------------------------------------------------

    def uniform(
        self, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None,
        nstreams: Any = None, target: Any = None,
    ) -> Node:  # fmt: skip
        """Numbers from `low` to below `high`."""
        return self.gen(distributions.uniform, _shape(size, ndim), dtype or options.floatX, low, high)

    def normal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None,
        nstreams: Any = None, truncate: bool = False, target: Any = None,
    ) -> Node:  # fmt: skip
        """Normal numbers of mean `avg` and standard deviation `std`. truncate: those beyond two standard deviations are
        drawn anew, so that the deviation of what comes out is smaller than `std`."""
        return self.gen(_truncated_normal if truncate else _normal, _shape(size, ndim), avg, std, dtype)

    def truncated_normal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None,
        nstreams: Any = None, target: Any = None,
    ) -> Node:  # fmt: skip
        """Normal numbers, cut at two standard deviations from their mean `avg` and then as wide as to deviate by `std`
        again."""
        return self.gen(_truncated_normal, _shape(size, ndim), avg, as_node(std) / WITHIN_TWO, dtype)

    def binomial(
        self, size: Any = None, n: Any = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64", prob: Any = None,
        nstreams: Any = None, target: Any = None,
    ) -> Node:  # fmt: skip
        """The number of `n` trials of chance `p` that succeed."""
        chance = p if prob is None else prob
        return self.gen(_binomial, _shape(size, ndim), n, chance, dtype)

    def random_integers(
        self, size: Any = None, low: Any = 0, high: Any = 1, ndim: Any = None, dtype: Any = "int64"
    ) -> Node:
        """Whole numbers from `low` to `high`, both among them."""
        return self.gen(distributions.randint, _shape(size, ndim), low, as_node(high) + 1, dtype)

    def randint(self, size: Any = None, low: Any = 0, high: Any = None, ndim: Any = None, dtype: Any = "int64") -> Node:
        """Whole numbers from `low` to below `high`; from 0 to below `low` where there is no `high`."""
        limits = (0, low) if high is None else (low, high)
        return self.gen(distributions.randint, _shape(size, ndim), *limits, dtype)

    def poisson(self, size: Any = None, lam: Any = 1.0, ndim: Any = None, dtype: Any = "int64") -> Node:
        """Poisson numbers of mean `lam`."""
        return self.gen(rejection.poisson, lam, _shape(size, ndim), dtype)

    def exponential(self, size: Any = None, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Exponential numbers of mean `scale`."""
        return self.gen(_exponential, _shape(size, ndim), 0.0, scale, dtype)

    def gamma(self, size: Any = None, a: Any = 1.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Gamma numbers of shape parameter `a`, times `scale`."""
        own = _own("gamma", _shape(size, ndim), a, scale)
        return self.gen(lambda key: as_node(scale) * rejection.gamma(key, a, own, dtype))

    def beta(self, size: Any = None, a: Any = 1.0, b: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Beta numbers."""
        return self.gen(rejection.beta, a, b, _shape(size, ndim), dtype)

    def lognormal(
        self, size: Any = None, mean: Any = 0.0, sigma: Any = 1.0, ndim: Any = None, dtype: Any = None
    ) -> Node:
        """exp of normal numbers of mean `mean` and standard deviation `sigma`."""
        shape = _shape(size, ndim)
        return self.gen(lambda key: elementwise("portable_exp", _normal(key, shape, mean, sigma, dtype)))

    def laplace(self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Laplace numbers about `loc`."""
        return self.gen(_laplace, _shape(size, ndim), loc, scale, dtype)

    def logistic(self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Logistic numbers about `loc`."""
        return self.gen(_logistic, _shape(size, ndim), loc, scale, dtype)

    def gumbel(self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Gumbel numbers, the most likely of which is `loc`."""
        return self.gen(_gumbel, _shape(size, ndim), loc, scale, dtype)

    def cauchy(self, size: Any = None, loc: Any = 0.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Cauchy numbers about `loc`."""
        return self.gen(_cauchy, _shape(size, ndim), loc, scale, dtype)

    def t(
        self, size: Any = None, df: Any = 1.0, loc: Any = 0.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None
    ) -> Node:
        """Student's t numbers of `df` degrees of freedom about `loc`."""
        own = _own("t", _shape(size, ndim), df, loc, scale)
        return self.gen(lambda key: loc + scale * rejection.t(key, df, own, dtype))

    def chisquare(self, size: Any = None, df: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Chi-square numbers of `df` degrees of freedom."""
        return self.gen(rejection.chisquare, df, _shape(size, ndim), dtype)

    def f(self, size: Any = None, dfnum: Any = 1.0, dfden: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """F numbers."""
        return self.gen(rejection.f, dfnum, dfden, _shape(size, ndim), dtype)

    def weibull(self, size: Any = None, a: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Weibull numbers of shape parameter `a` and scale 1."""
        return self.gen(distributions.weibull_min, 1.0, a, _shape(size, ndim), dtype)

    def pareto(self, size: Any = None, b: Any = 1.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Pareto numbers, `scale` at least, with a tail of power `b`."""
        own = _own("pareto", _shape(size, ndim), b, scale)
        return self.gen(lambda key: scale * distributions.pareto(key, b, own, dtype))

    def vonmises(self, size: Any = None, mu: Any = 0.0, kappa: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Angles about `mu` of concentration `kappa`, from -pi to pi."""
        return self.gen(rejection.vonmises, mu, kappa, _shape(size, ndim), dtype)

    def wald(self, size: Any = None, mean: Any = 1.0, scale: Any = 1.0, ndim: Any = None, dtype: Any = None) -> Node:
        """Inverse Gaussian numbers."""
        return self.gen(distributions.wald, mean, scale, _shape(size, ndim), dtype)

    def bernoulli(self, size: Any = None, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64") -> Node:
        """1 with chance `p`, else 0."""
        return self.gen(_binomial, _shape(size, ndim), 1, p, dtype)

    def geometric(self, size: Any = None, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64") -> Node:
        """The number of trials of chance `p` until one succeeds."""
        return self.gen(distributions.geometric, p, _shape(size, ndim), dtype)

    def negative_binomial(
        self, size: Any = None, n: Any = 1, p: Any = 0.5, ndim: Any = None, dtype: Any = "int64"
    ) -> Node:
        """The number of trials of chance `p` that fail before `n` succeed."""
        return self.gen(rejection.negative_binomial, n, p, _shape(size, ndim), dtype)

    def categorical(self, size: Any = None, p: Any = (0.5, 0.5), ndim: Any = None, dtype: Any = "int64") -> Node:
        """The number of a category of chances `p`, along their last axis."""
        logits, shape = elementwise("portable_log", as_node(p)), _shape(size, ndim)
        return self.gen(lambda key: cast(distributions.categorical(key, logits, -1, shape), _name(dtype)))

    def dirichlet(self, size: Any = None, alpha: Any = (1.0, 1.0), ndim: Any = None, dtype: Any = None) -> Node:
        """Vectors of sum 1, along a last axis that `size` does not count."""
        return self.gen(rejection.dirichlet, alpha, _shape(size, ndim), dtype)

    def multivariate_normal(
        self, size: Any = None, mean: Any = (0.0,), cov: Any = ((1.0,),), ndim: Any = None, dtype: Any = None
    ) -> Node:
        """Normal vectors of a mean and a covariance, along a last axis that `size` does not count."""
        return self.gen(vectors.multivariate_normal, mean, cov, _shape(size, ndim), dtype)

    def wishart(
        self, size: Any = None, df: Any = 1.0, scale: Any = ((1.0,),), ndim: Any = None, dtype: Any = None
    ) -> Node:
        """Wishart matrices, along two last axes that `size` does not count."""
        return self.gen(vectors.wishart, df, scale, _shape(size, ndim), dtype)

    def shuffle(self, x: Any) -> Node:
        """The rows of an array in random order."""
        return self.gen(vectors.permutation, x)

    def choice(
        self, size: Any = 1, a: Any = None, replace: bool = True, p: Any = None, ndim: Any = None, dtype: Any = "int64",
        nstreams: Any = None, target: Any = None,
    ) -> Node:  # fmt: skip
        """Items of `a`, a vector or a number that stands for 0 … a - 1 (as many as chances; 2 without), with chances
        `p` where given. A matrix of chances and replace=False: `size` different categories for each row."""
        if not replace and p is not None and a is None and as_node(p).ndim == 2:
            return self.gen(vectors.without_replacement, size, p, dtype)
        if a is None:
            a = 2 if p is None else as_node(p).shape[-1]
        return self.gen(vectors.choice, a, _shape(size, ndim), replace, p, dtype)

    def permutation(self, size: Any = (), n: Any = 1, ndim: Any = None, dtype: Any = "int64") -> Node:
        """For each element of `size` the numbers 0 … n - 1 in random order, along the last axis."""
        shape = _shape(() if size is None else size, ndim)
        return self.gen(lambda key: cast(vectors.orders(key, shape, n), _name(dtype)))

    def shuffle_row_elements(self, input: Any) -> Node:
        """Each row of a matrix in random order, of a vector its elements."""
        return self.gen(vectors.shuffled_rows, input)

    def multinomial(
        self, size: Any = None, n: Any = 1, pvals: Any = (0.5, 0.5), ndim: Any = None, dtype: Any = "int64",
        nstreams: Any = None, target: Any = None,
    ) -> Node:  # fmt: skip
        """Counts of the categories of chances `pvals`, along the last axis, in `n` trials."""
        return self.gen(vectors.multinomial, n, pvals, _shape(size, ndim), dtype)

    def multinomial_wo_replacement(
        self, size: Any = None, n: Any = 1, pvals: Any = (0.5, 0.5), ndim: Any = None, dtype: Any = "int64",
        replace: bool = False,
    ) -> Node:  # fmt: skip
        """`n` different categories for each row of chances `pvals`."""
        return self.gen(vectors.without_replacement, n, pvals, dtype)

    choice_wo_replacement = multinomial_wo_replacement


class MRG_RandomStreams(RandomStreams):  # noqa: N801 - Theano's name
    """Streams with one seed where none is given, as Theano's have it; the generator is that of `RandomStreams`."""

    def __init__(
        self, seed: int | Sequence[int] | None = 12345, use_cuda: bool | None = None, no_warn: bool = False
    ) -> None:
        super().__init__(seed, use_cuda, no_warn)


MRG_RandomStream = MRG_RandomStreams
"""Theano-PyMC's name."""


class CURAND_RandomStreams(RandomStreams):  # noqa: N801 - Theano's name
    """Theano's name for streams on GPUs."""


def _hash(number: int, key: int) -> int:
    """64 bits of a number and a key."""
    return int(philox_low(*(np.array(each, np.uint64) for each in (number, FOLDING, key))))


def _name(dtype: Any) -> str:
    return str(np.dtype(dtype).name)


def _shape(size: Any, ndim: int | None) -> Any:
    """A shape as `as_shape` takes it, or None."""
    if size is None:
        return None
    if isinstance(size, int | np.integer) or (isinstance(size, Node) and not size.ndim):
        size = (size,)
    sizes = as_shape(size, "size", ndim)
    if ndim is not None and ndim != len(sizes):
        raise GraphValueError(f"size has {len(sizes)} axes, and ndim={ndim} says otherwise")
    return sizes


def _own(name: str, shape: Any, *parameters: Any) -> Any:
    """The shape of numbers that are scaled after they are drawn: one for each element, whatever it is scaled by."""
    return distributions.sized(name, shape, *parameters)[0]


def _binomial(key: Node, shape: Any, n: Any, p: Any, dtype: Any) -> Node:
    if isinstance(n, int | np.integer) and n == 1:
        chance, name = as_node(p), _name(dtype)
        drawn = distributions.bernoulli(key, chance, shape)
        if name == "bool":
            return drawn
        is_chance = elementwise(
            "logical_and", elementwise("greater_equal", chance, 0), elementwise("less_equal", chance, 1)
        )
        none = literal(np.int64(-1).astype(name), name)
        return elementwise("where", broadcast_node(is_chance, drawn.type.shape), cast(drawn, name), none)
    return rejection.binomial(key, n, p, shape, dtype)


def _scaled(name: str, draw: Callable[..., Node]) -> Callable[..., Node]:
    """A draw that is moved and scaled."""

    def scaled(key: Node, shape: Any, place: Any, scale: Any, dtype: Any) -> Node:
        own, (begin, width) = distributions.sized(name, shape, place, scale)
        real = distributions.float_of(name, dtype or options.floatX)
        return cast(begin, real) + cast(width, real) * draw(key, own, real)

    return scaled


WITHIN_TWO = 0.87962566103423978
"""The standard deviation of a standard normal number between -2 and 2."""


_normal = _scaled("normal", distributions.normal)
_truncated_normal = _scaled(
    "truncated_normal", lambda key, shape, kind: rejection.truncated_normal(key, -2.0, 2.0, shape, kind)
)
_exponential = _scaled("exponential", distributions.exponential)
_laplace = _scaled("laplace", distributions.laplace)
_logistic = _scaled("logistic", distributions.logistic)
_gumbel = _scaled("gumbel", distributions.gumbel)
_cauchy = _scaled("cauchy", distributions.cauchy)

explain_all(globals())
