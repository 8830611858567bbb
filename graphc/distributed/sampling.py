"""Samples of a distribution by Hamiltonian Monte Carlo, chains and temperatures spread over workers: `sample`.

In: the logarithm of a density up to a constant, as a function of parameters; where chains begin. Out: `Samples`.

    found = sample(lambda w: -jnp.sum(w**2) / 2, np.zeros(3), draws=1000, chains=4)
    found.draws.shape                        (4, 1000, 3)

    found.r_hat, found.effective             near 1; how many independent draws they are worth

A replica is a chain at a temperature. A task makes some steps of one replica, in one compiled loop, and returns its
place; tasks in a chain hand it on. With several temperatures, replicas of neighbours exchange places between tasks
(Geyer 1991). Tuning finds the size of steps, and the variances of the parameters, by which steps are scaled (the mass
matrix is the diagonal of their inverses). The numbers of step i of a replica follow from the seed, the replica and i:
they are the same wherever the task runs, and again where a worker was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np

import graphc
from graphc import lax, numpy as jnp, random
from graphc.distributed.kernels import Kernel, compute, kernel_of, node_of, raveled
from graphc.errors import ArgumentError, GraphValueError
from graphc.scipy import special
from graphc.startup.record import record

GAMMA, DELAY, DECAY = 0.05, 10.0, 0.75
"""Of dual averaging (Hoffman and Gelman 2014, section 3.2): shrinkage, t0, kappa."""
JITTER = 0.1
"""The share by which the size of a step varies from trajectory to trajectory, so that none is periodic (Neal 2011)."""


@record(eq=False)
class Samples:
    """The result of `sample`. draws: a tree like the parameters, whose leaves have two axes before, of chains and of
    draws. log_density: [chains, draws]. accepted: the mean chance of acceptance after tuning, [chains, temperatures].
    step_size: after tuning, [chains, temperatures]. scales: the standard deviations that steps are scaled by, of the
    first temperature: a tree with an axis of chains. swapped: the share of exchanges that were made, [chains,
    temperatures - 1]. state: from which `sample(..., state=)` goes on without tuning.

    r_hat, effective: trees of the numbers by which one sees whether the chains agree (`r_hat`, `effective`)."""

    draws: Any
    log_density: Any
    accepted: Any
    step_size: Any
    scales: Any
    swapped: Any
    state: Any

    @property
    def r_hat(self) -> Any:
        """R-hat of each element: near 1 where the chains have mixed."""
        return graphc.tree.map(r_hat, self.draws)

    @property
    def effective(self) -> Any:
        """The effective sample size of each element."""
        return graphc.tree.map(effective, self.draws)


NO_VARIANCE, COUNTED, ENDED = range(3)
"""The part of a tuning step in the variances: none, it counts, it is the last that counts."""


def windows(tune: int) -> Any:
    """Return for each step of tuning what it does for the variances: between the first 15 and the last 10 percent,
    each window twice as long as the one before it (Stan's reference manual, "Automatic parameter tuning")."""
    kinds = np.zeros(tune, "int64")
    begin, end, size = int(0.15 * tune), tune - int(0.1 * tune), 25
    while end - begin >= size:
        last = begin + size if end - begin - size >= 2 * size else end
        kinds[begin:last] = COUNTED
        kinds[last - 1] = ENDED
        begin, size = last, 2 * size
    return kinds


class Adapted(NamedTuple):
    """The state of tuning for a replica. step: [log step, log of the averaged step, averaged error, number of steps,
    the value that the log step is shrunk to] of dual averaging. variances: by which steps are scaled. mean, square,
    count: of the places of this window (Welford 1962)."""

    step: Any
    variances: Any
    mean: Any
    square: Any
    count: Any


def untuned(size: int, log_step: float) -> Adapted:
    """Return what is known before the first step."""
    return Adapted(_begun(log_step), np.ones(size), np.zeros(size), np.zeros(size), 0.0)


def _begun(log_step: Any) -> Any:
    return jnp.stack([log_step, log_step, 0.0, 0.0, log_step + np.log(10)])


class _Segment:
    """Steps of one replica: (place, adaptation, key, numbers, kinds, tuned, beta) to what comes after and draws."""

    def __init__(self, log_density: Callable[[Any], Any], unravel: Callable[[Any], Any], leaps: int, target: float):
        self.log_density, self.unravel, self.leaps, self.target = log_density, unravel, leaps, target
        self.__name__ = f"steps_of_{getattr(log_density, '__name__', 'density')}"

    def __call__(self, place: Any, adapted: Adapted, key: Any, numbers: Any, kinds: Any, tuned: Any, beta: Any) -> Any:
        def density(flat: Any) -> Any:
            return self.log_density(self.unravel(flat))

        slope = graphc.value_and_grad(density)

        def step(state: Any, now: Any) -> Any:
            (flat, adapted), (number, kind) = state, now
            is_tuned, variances = number < tuned, adapted.variances
            log_step = jnp.where(is_tuned, adapted.step[0], adapted.step[1])
            push, jitter, luck = random.split(random.fold_in(key, number), 3)
            size = jnp.exp(log_step) * (1 + JITTER * random.uniform(jitter, (), minval=-1.0, maxval=1.0))
            momentum = random.normal(push, flat.shape) / jnp.sqrt(variances)
            value, gradient = slope(flat)

            def leap(_: Any, at: Any) -> Any:
                x, p, g, _value = at
                p = p + size / 2 * beta * g
                x = x + size * variances * p
                value, g = slope(x)
                return x, p + size / 2 * beta * g, g, value

            end, last, _, ended = lax.fori_loop(0, self.leaps, leap, (flat, momentum, gradient, value))
            gain = beta * (ended - value) + jnp.sum(variances * (momentum**2 - last**2)) / 2
            chance = jnp.where(jnp.isfinite(gain), jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
            takes = random.uniform(luck) < chance
            flat, value = jnp.where(takes, end, flat), jnp.where(takes, ended, value)
            averaged = jnp.where(is_tuned, self._averaged(adapted.step, chance), adapted.step)
            return (flat, _varied(adapted._replace(step=averaged), flat, kind)), (flat, value, chance)

        return lax.scan(step, (place, adapted), (numbers, kinds))

    def _averaged(self, step: Any, chance: Any) -> Any:
        """Return dual averaging after one more step (Hoffman and Gelman 2014, algorithm 5)."""
        _, mean, error, count, shrunk = (step[place] for place in range(5))
        count = count + 1
        weight = 1 / (count + DELAY)
        error = (1 - weight) * error + weight * (self.target - chance)
        log_step = shrunk - jnp.sqrt(count) / GAMMA * error
        share = count**-DECAY
        return jnp.stack([log_step, share * log_step + (1 - share) * mean, error, count, shrunk])


def _varied(adapted: Adapted, flat: Any, kind: Any) -> Adapted:
    """Return what is known of the variances after a step. At the end of a window they are used, a little nearer to
    0.001 as Stan has it, and dual averaging begins again."""
    counts, ends = kind != NO_VARIANCE, kind == ENDED
    count = adapted.count + counts
    off = flat - adapted.mean
    mean = adapted.mean + jnp.where(counts, off / jnp.maximum(count, 1.0), 0.0)
    square = adapted.square + jnp.where(counts, off * (flat - mean), 0.0)
    found = square / jnp.maximum(count - 1, 1.0) * (count / (count + 5)) + 1e-3 * (5 / (count + 5))
    return Adapted(
        jnp.where(ends, _begun(adapted.step[1]), adapted.step),
        jnp.where(ends, found, adapted.variances),
        jnp.where(ends, 0.0, mean),
        jnp.where(ends, 0.0, square),
        jnp.where(ends, 0.0, count),
    )


def sample(
    log_density: Callable[[Any], Any],
    start: Any,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    temperatures: Sequence[float] = (1.0,),
    step_size: float = 0.1,
    leaps: int = 16,
    every: int = 100,
    target: float = 0.8,
    seed: int = 0,
    state: Any = None,
) -> Samples:
    """Return samples of a distribution by Hamiltonian Monte Carlo (Duane and others 1987; Neal 2011).

    log_density(params): the logarithm of the density up to a constant, a number. start: a tree of floats where all
    chains begin. draws, tune: of each chain, after and before the size of steps is fixed; tuning by dual averaging aims
    at `target` as the mean chance of acceptance, from `step_size`, and from 35 steps on scales parameters by their
    variances. leaps: steps of a trajectory. temperatures: the
    first is 1.0; a replica at T samples density**(1/T), and neighbours exchange places after each `every` steps (Geyer
    1991; Earl and Deem 2005). every: also the number of steps of a task. state: of earlier samples, to go on from:
    `tune` is 0 then.

    Raises ArgumentError where the first temperature is not 1.0, GraphTypeError for parameters that are no floats,
    GraphValueError where the density is no finite number at the start.

        >>> found = sample(lambda w: -jnp.sum(w**2) / 2, np.zeros(2), draws=200, tune=100, chains=2)
        >>> found.draws.shape, bool(found.accepted.min() > 0.5)
        ((2, 200, 2), True)
    """
    if not temperatures or temperatures[0] != 1.0 or min(temperatures) <= 0:
        raise ArgumentError(f"sample: temperatures={list(temperatures)}: they are above 0, and the first is 1.0")
    if min(draws, chains, leaps, every) < 1 or tune < 0:
        raise ArgumentError("sample: draws, chains, leaps and every are 1 or more, tune is 0 or more")
    flat, unravel = raveled(start, "sample")
    begin, flat = np.log(step_size), flat.astype("float64")
    if state is None:
        first, places = 0, [[(flat, untuned(flat.size, begin))] * len(temperatures)] * chains
    else:
        first, places, tune = state.done, state.places, 0
    betas = [1 / each for each in temperatures]
    key = random.key(seed)
    program = _Segment(log_density, unravel, leaps, target)
    numbers = np.arange(first, first + tune + draws)
    kinds = np.concatenate([windows(tune), np.zeros(draws, "int64")])
    kernel = kernel_of(program, flat, places[0][0][1], key, numbers[:1], kinds[:1], first + tune, betas[0])
    run = _Run(node_of(kernel), key, seed, betas, numbers, kinds, first + tune, every)
    found = compute([run.chain(number, places[number]) for number in range(chains)])
    if not np.isfinite(begun := found[0][1][0]):
        raise GraphValueError(f"sample: the logarithm of the density is {begun} where the chains begin")
    return _gathered(found, unravel, first + tune + draws, tune)


@record(eq=False)
class SamplerState:
    """The state of `Samples`. done: the number of steps made; places: [chains][temperatures] of (place, adaptation)."""

    done: int
    places: Any


@record(eq=False)
class _Run:
    """The arguments that the tasks of all chains share."""

    kernel: Any
    key: Any
    seed: int
    betas: list[float]
    numbers: Any
    kinds: Any
    tuned: int
    every: int

    def chain(self, chain: int, places: Any) -> Any:
        """Return the node of a chain: (parts of draws of the first temperature, places, exchanges)."""
        make, exchange, collect = (dask.delayed(each, pure=False) for each in (_steps, _exchanged, _collected))
        state, own = list(places), random.fold_in(self.key, chain)
        keys = [random.fold_in(own, k) for k in range(len(self.betas))]
        parts, swaps = [], []
        for low in range(0, len(self.numbers), self.every):
            some, kinds = (each[low : low + self.every] for each in (self.numbers, self.kinds))
            first = int(some[0])
            made = [
                make(self.kernel, state[k], keys[k], some, kinds, self.tuned, beta, k == 0)
                for k, beta in enumerate(self.betas)
            ]
            parts.append(made)
            state = [each[0] for each in made]
            if len(self.betas) > 1:
                swapped = exchange(made, self.betas, first // self.every, (self.seed, chain, first))
                swaps.append(swapped[1])
                state = [swapped[0][k] for k in range(len(self.betas))]
        return collect(parts, state, swaps)


def _steps(
    kernel: Kernel, state: Any, key: Any, numbers: Any, kinds: Any, tuned: int, beta: float, is_kept: bool
) -> Any:
    """Make steps of a replica: the task. Returns (state, log density at its end, draws, log densities, acceptance)."""
    place, adapted = state
    (place, adapted), (draws, values, chances) = kernel(place, adapted, key, numbers, kinds, tuned, beta)
    rest = (draws, values) if is_kept else (None, None)
    late = chances[numbers >= tuned]
    return (place, adapted), float(values[-1]), *rest, (float(late.sum()), len(late))


def _exchanged(made: Any, betas: list[float], round_: int, name: Any) -> Any:
    """Exchange the places of neighbours, even or odd pairs by turns, with the chance min(1, exp((b - c) (m - l))) for
    inverse temperatures b, c and log densities l, m. Returns the states, and for each pair None or whether it did."""
    states, values = [each[0] for each in made], [each[1] for each in made]
    generator = np.random.default_rng(name)
    done: list[bool | None] = [None] * (len(betas) - 1)
    for k in range(round_ % 2, len(betas) - 1, 2):
        gain = (betas[k] - betas[k + 1]) * (values[k + 1] - values[k])
        done[k] = bool(np.log(generator.random()) < gain)
        if done[k]:
            (low, tuned), (high, other) = states[k], states[k + 1]
            states[k], states[k + 1] = (high, tuned), (low, other)
    return states, done


def _collected(parts: Any, state: Any, swaps: Any) -> Any:
    """Put the parts of a chain together."""
    draws = np.concatenate([each[0][2] for each in parts])
    values = np.concatenate([each[0][3] for each in parts])
    sums = np.array([[replica[4] for replica in each] for each in parts], float).sum(axis=0)
    pairs = range(len(state) - 1)
    tried = [[each[k] for each in swaps if each[k] is not None] for k in pairs]
    return draws, values, sums[:, 0] / sums[:, 1], state, [float(np.mean(each)) if each else np.nan for each in tried]


def _gathered(found: list[Any], unravel: Callable[[Any], Any], done: int, tune: int) -> Samples:
    draws = np.stack([each[0][tune:] for each in found])
    shape = draws.shape[:2]
    trees = [unravel(each) for each in draws.reshape(-1, draws.shape[-1])]
    tree = graphc.tree.map(lambda *each: np.stack(each).reshape(*shape, *each[0].shape), *trees)
    return Samples(
        tree,
        np.stack([each[1][tune:] for each in found]),
        np.stack([each[2] for each in found]),
        np.exp([[replica[1].step[1] for replica in each[3]] for each in found]),
        graphc.tree.map(lambda *each: np.stack(each), *[unravel(np.sqrt(each[3][0][1].variances)) for each in found]),
        np.array([each[4] for each in found]),
        SamplerState(done, [each[3] for each in found]),
    )


# --- diagnostics of chains --------------------------------------------------------------------------------------------
# Whether chains agree: R-hat and effective sample sizes of samples.
#
# In: draws, an array [chains, draws, ...]. Out: for each element a number.
#
#     r_hat(draws)       near 1 where chains have mixed; above 1.01 they have not
#     effective(draws)   as many independent draws would tell the mean as well
#
# The formulas are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Rank-normalization, folding, and
# localization: An improved R-hat, equations 1 to 14; autocovariances are cut by Geyer's (1992) monotone sequence.


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
