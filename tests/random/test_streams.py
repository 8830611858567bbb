"""Theano's streams: states with updates, seeds, the methods, within loops and branches."""

from __future__ import annotations

import copy
import pickle
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.errors import RankError
from graphc.random.streams import WITHIN_TWO, RandomStreams

EVERY: dict[str, Any] = {
    "uniform": lambda r: r.uniform((2, 3), -1.0, 1.0),
    "uniform of parameters": lambda r: r.uniform(low=np.zeros(3), high=np.array([1.0, 2.0, 3.0])),
    "normal": lambda r: r.normal((2,), 10.0, 0.1),
    "normal of parameters": lambda r: r.normal(avg=np.array([1.0, 100.0]), std=0.1),
    "truncated normal": lambda r: r.truncated_normal((3,), 1.0, 2.0),
    "binomial": lambda r: r.binomial((4,), 1, 0.5),
    "binomial of many": lambda r: r.binomial(size=(4,), n=10, p=0.5, dtype="int32"),
    "dropout": lambda r: r.binomial(T.constant(np.ones((2, 3))).shape, p=0.8, dtype="float64"),
    "integers": lambda r: r.random_integers((6,), 1, 3),
    "randint": lambda r: r.randint((6,), 4),
    "poisson": lambda r: r.poisson((3,), 4.0),
    "exponential": lambda r: r.exponential((2,), 2.0),
    "gamma": lambda r: r.gamma((2,), 3.0, 2.0),
    "beta": lambda r: r.beta((2,), 3.0, 2.0),
    "choice": lambda r: r.choice((4,), 5),
    "choice with chances": lambda r: r.choice((4,), 3, p=[0.1, 0.1, 0.8]),
    "choice without replacement": lambda r: r.choice((3,), 5, replace=False),
    "choice for rows": lambda r: r.choice(2, replace=False, p=np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
    "permutation": lambda r: r.permutation(n=5),
    "permutations": lambda r: r.permutation((3,), 5),
    "shuffled rows": lambda r: r.shuffle_row_elements(np.arange(12.0).reshape(3, 4)),
    "multinomial": lambda r: r.multinomial(pvals=np.array([[0.2, 0.8], [0.9, 0.1]])),
    "multinomial of many": lambda r: r.multinomial((3,), 10, [0.2, 0.3, 0.5]),
    "categories": lambda r: r.multinomial_wo_replacement(n=2, pvals=np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
}


@pytest.mark.slow
def test_the_tutorial() -> None:
    """Theano's tutorial on random numbers: what changes from call to call, and what does not."""
    rng = RandomStreams(seed=234)
    u, n = rng.uniform((2, 2)), rng.normal((2, 2))
    f, g = graphc.function([], u), graphc.function([], n, no_default_updates=True)
    nearly_zeros = graphc.function([], u + u - 2 * u)
    assert (f() != f()).all()
    np.testing.assert_array_equal(g(), g())
    np.testing.assert_array_equal(nearly_zeros(), np.zeros((2, 2)))
    (state, _), *_ = rng.state_updates
    kept = state.get_value()
    before = f()
    state.set_value(kept)
    np.testing.assert_array_equal(f(), before)
    rng.seed(902340)
    seeded = f()
    rng.seed(902340)
    np.testing.assert_array_equal(f(), seeded)
    np.testing.assert_array_equal(graphc.function([], RandomStreams(902340).uniform((2, 2)))(), seeded)


@pytest.mark.slow
def test_the_state_of_one_variable() -> None:
    """Theano's tutorial again: `u.rng` is seeded, kept and brought back, by itself and through copies and pickles."""
    rng = RandomStreams(seed=234)
    u: Any = rng.uniform((2, 2))
    other = rng.normal((2,))
    f, g = graphc.function([], u), graphc.function([], other, no_default_updates=True)
    first, untouched = f(), g()
    value = u.rng.get_value(borrow=True)
    value.seed(89234)
    u.rng.set_value(value, borrow=True)
    kept = u.rng.get_value().get_state()
    seeded = f()
    assert (seeded != first).all()
    np.testing.assert_array_equal(g(), untouched)
    value = u.rng.get_value(borrow=True)
    value.set_state(kept)
    u.rng.set_value(value, borrow=True)
    np.testing.assert_array_equal(f(), seeded)
    assert u.rng is rng.state_updates[0][0] and u.update == rng.state_updates[0]
    assert f.get_shared() == [u.rng]
    read = pickle.loads(pickle.dumps(u))
    assert read.rng.default_update is read.update[1]
    state: Any
    for state in (read.rng, copy.deepcopy(u.rng), u.rng.clone()):
        state.get_value(borrow=True).set_state(kept)
        assert type(state.get_value()) is type(value)
    np.testing.assert_array_equal(graphc.function([], read)(), seeded)
    assert graphc.function([], u, no_default_updates=[u.rng], updates=[(u.rng, kept)])().shape == (2, 2)


@pytest.mark.slow
def test_every_method_is_the_same_in_all_modes() -> None:
    def outputs() -> list[Any]:
        rng = RandomStreams(7)
        return [draw(rng) for draw in EVERY.values()]

    made, want = (graphc.function([], outputs(), mode=mode) for mode in ("compiled", "interpreted"))
    for _ in range(2):
        for name, found, other in zip(EVERY, made(), want(), strict=True):
            assert found.dtype == other.dtype and found.shape == other.shape, name
            np.testing.assert_array_equal(found, other, err_msg=name)


@pytest.mark.slow
def test_what_methods_promise() -> None:
    rng = RandomStreams(3)
    f = graphc.function([], [draw(rng) for draw in EVERY.values()])
    for _ in range(20):
        found = dict(zip(EVERY, f(), strict=True))
        assert ((found["uniform"] >= -1) & (found["uniform"] < 1)).all()
        assert (abs(found["truncated normal"] - 1) <= 4 / WITHIN_TWO).all()
        assert set(found["binomial"]) <= {0, 1} and found["binomial of many"].dtype == np.int32
        assert set(found["integers"]) <= {1, 2, 3} and set(found["randint"]) <= {0, 1, 2, 3}
        assert found["dropout"].dtype == np.float64 and set(found["dropout"].ravel()) <= {0.0, 1.0}
        assert sorted(found["permutation"]) == [0, 1, 2, 3, 4]
        assert (np.sort(found["permutations"]) == np.arange(5)).all()
        assert (np.sort(found["shuffled rows"]) == np.arange(12.0).reshape(3, 4)).all()
        assert (found["multinomial"].sum(axis=1) == 1).all() and (found["multinomial of many"].sum(axis=1) == 10).all()
        assert all(len(set(row)) == 2 for row in found["categories"])


@pytest.mark.slow
def test_steps_make_the_places_of_their_numbers() -> None:
    """A step's draws go in order, two to a block: no array of places is kept for them."""
    key, n = T.scalar("key", dtype="uint64"), T.lscalar("n")
    walk, _ = graphc.scan(
        lambda step, x: x + graphc.random.normal(graphc.random.fold_in(key, step), (n,)),
        sequences=[T.arange(4)],
        outputs_info=[T.zeros((n,))],
    )
    made, want = (graphc.function([key, n], walk[-1], mode) for mode in ("compiled", "interpreted"))
    assert "gc_philoxnormal_f64_c" in made.assembly
    for size in (1, 7, 40):
        np.testing.assert_array_equal(made(np.uint64(5), size), want(np.uint64(5), size))


COV = np.array([[2.0, 0.5], [0.5, 1.0]])
MEANS: dict[str, tuple[Any, Any]] = {
    # a method, and its mean or, of what has none, its median of no sign
    "lognormal": (lambda r, s: r.lognormal(s, 1.0, 0.5), np.exp(1.125)),
    "laplace": (lambda r, s: r.laplace(s, 3.0, 0.5), 3.0),
    "logistic": (lambda r, s: r.logistic(s, 3.0, 0.5), 3.0),
    "gumbel": (lambda r, s: r.gumbel(s, 3.0, 0.5), 3.0 + 0.5 * np.euler_gamma),
    "cauchy": (lambda r, s: T.sgn(r.cauchy(s, 3.0, 0.5) - 3.0) + 1.0, 1.0),
    "t": (lambda r, s: r.t(s, 5.0, 3.0, 0.5), 3.0),
    "chisquare": (lambda r, s: r.chisquare(s, 4.0), 4.0),
    "f": (lambda r, s: r.f(s, 4.0, 12.0), 1.2),
    "weibull": (lambda r, s: r.weibull(s, 1.0), 1.0),
    "pareto": (lambda r, s: r.pareto(s, 4.0, 3.0), 4.0),
    "vonmises": (lambda r, s: T.cos(r.vonmises(s, 0.0, 2.0)), 0.697775),
    "wald": (lambda r, s: r.wald(s, 2.0, 4.0), 2.0),
    "bernoulli": (lambda r, s: r.bernoulli(s, 0.25), 0.25),
    "geometric": (lambda r, s: r.geometric(s, 0.25), 4.0),
    "negative_binomial": (lambda r, s: r.negative_binomial(s, 3, 0.5), 3.0),
    "categorical": (lambda r, s: r.categorical(s, [0.25, 0.5, 0.25]), 1.0),
    "dirichlet": (lambda r, s: r.dirichlet(s, [1.0, 3.0])[:, 0], 0.25),
    "multivariate_normal": (lambda r, s: r.multivariate_normal(s, [1.0, 2.0], COV), [1.0, 2.0]),
    "wishart": (lambda r, s: r.wishart(s, 3.5, COV), 3.5 * COV),
}


@pytest.mark.slow
def test_means_of_other_methods() -> None:
    rng = RandomStreams(11)
    drawn = [draw(rng, (1500,)) for draw, _ in MEANS.values()]
    found = graphc.function([], drawn)()
    for name, value, (_, want) in zip(MEANS, found, MEANS.values(), strict=True):
        error = value.std(axis=0) / np.sqrt(len(value))
        assert (abs(value.mean(axis=0) - want) < 4.5 * error).all(), (name, value.mean(axis=0), want)
    rows = np.arange(20.0).reshape(10, 2)
    shuffled = graphc.function([], rng.shuffle(rows), mode="interpreted")()
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)


def test_dropout_is_no_pass_of_its_own() -> None:
    x = T.dmatrix("x")
    f = graphc.function([x], x * RandomStreams(1).binomial(x.shape, p=0.8, dtype=x.dtype))
    assert f.source.count("parallel(") == 1
    kept = f(np.ones((100, 100)))
    assert abs(kept.mean() - 0.8) < 5 * np.sqrt(0.16 / 1e4)


@pytest.mark.slow
def test_dropout_of_a_layer_is_no_pass_of_its_own() -> None:
    """Forward and backward: as many nests over all elements, and as many arrays of them, as without."""
    x, w, b = T.fmatrix("x"), T.fmatrix("w"), T.fvector("b")
    hidden = T.nnet.relu(x @ w + b)
    passes = []
    for h in (hidden, T.nnet.dropout(hidden, 0.5, RandomStreams(3)), T.nnet.dropout(hidden, 0.3, RandomStreams(3))):
        cost = T.tanh(h).sum()
        plans = [
            str(graphc.function([x, w, b], of, on_unused_input="ignore").explain())
            for of in (h, [cost, *graphc.grad(cost, [w, b])])
        ]
        found = [re.findall(r"^ *(?:nest \d+: (.*) over|temporary t\d+:) .*x_0.*w_1", plan, re.M) for plan in plans]
        passes.append([sorted(each) for each in found])
    forward, backward = passes[0]
    assert forward == ["call", "loops"] and backward.count("call") == 1
    assert passes[1] == passes[2] == passes[0]


def test_within_loops_and_branches() -> None:
    rng = RandomStreams(5)
    walk, updates = graphc.scan(lambda x: x + rng.normal(()), outputs_info=T.constant(0.0), n_steps=50)
    f = graphc.function([], walk, updates=updates)
    first, second = np.diff(f()), np.diff(f())
    assert len(np.unique([*first, *second])) == 98 and abs(first.mean()) < 5 / np.sqrt(49)
    b = T.bscalar("b")
    g = graphc.function([b], graphc.ifelse(T.eq(b, 1), rng.uniform(()), T.constant(2.0)))
    assert g(0) == 2.0 and g(1) != g(1) and 0 <= g(1) < 1


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    n = T.lscalar("n")
    draw = RandomStreams(1).normal((n,))
    want = graphc.function([n], draw, mode="interpreted", no_default_updates=True)(300_000)
    found = graphc.function([n], draw, threads=threads, no_default_updates=True)(300_000)
    one = graphc.function([n], draw, threads=1, no_default_updates=True)(300_000)
    np.testing.assert_array_equal(found, one)
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("tensor.shared_randomstreams", "RandomStreams"),
        ("sandbox.rng_mrg", "MRG_RandomStreams"),
        ("sandbox.cuda.rng_curand", "CURAND_RandomStreams"),
    ],
)
def test_theanos_names(place: str, name: str) -> None:
    kind = getattr(import_module(f"graphc.{place}"), name)
    assert graphc.function([], kind(1).uniform((2,)))().shape == (2,)


def test_theanos_habits_with_states() -> None:
    """As its tutorial copies states, as its tests take substreams; a seed is used whole."""
    module = import_module("graphc.sandbox.rng_mrg")
    mrg = module.MRG_RandomStreams
    assert not isinstance(RandomStreams(1), mrg)
    np.testing.assert_array_equal(mrg().rstate, mrg(12345).rstate)
    one, other = mrg(1), mrg(2)
    f, g = (graphc.function([], rng.uniform((3,))) for rng in (one, other))
    f()
    other.rstate = one.rstate
    for (own, *_), (new, *_) in zip(one.state_updates, other.state_updates, strict=True):
        new.set_value(own.get_value())
    np.testing.assert_array_equal(f(), g())
    np.testing.assert_array_equal(one.get_substream_rstates(3, "float32", inc_rstate=False),
                                  other.get_substream_rstates(3, "float32"))  # fmt: skip
    states = other.get_substream_rstates(5)
    assert states.shape == (5, 2) and not set(states[:, 0]) & set(one.get_substream_rstates(5)[:, 0])
    noise = one.normal((2,))
    assert noise.rstate is noise.rng
    one[noise.rng].seed(4)
    one[noise.rng] = one[noise.rng].get_state()
    with pytest.raises(KeyError):
        one[states]
    single = graphc.tensor.fscalar("single")
    assert [draw((2,), single, 2 * single).dtype for draw in (one.uniform, one.normal)] == ["float64"] * 2
    with graphc.options.change(floatX="float32"):
        assert [draw((2,), single, single).dtype for draw in (one.uniform, one.normal)] == ["float32"] * 2
    of_seven = RandomStreams(7)
    again = graphc.function([], of_seven.uniform((3,), target="cpu"), mode="interpreted")
    first = again()
    of_seven.seed(8)
    other = again()
    of_seven.seed()
    np.testing.assert_array_equal(again(), first)
    assert not np.array_equal(other, first)
    with pytest.raises(ValueError, match="ndim=1 says otherwise"):
        one.uniform((2, 2), ndim=1)
    keys = {int(RandomStreams(seed).rstate[0]) for seed in ([1, 2, 3], [1, 2, 4], [1, 2], 1, -1, 2**64 + 1)}
    assert len(keys) == 6


@pytest.mark.slow
def test_a_matrix_of_chances_gives_a_row_of_items_for_each_row() -> None:
    chances = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    drawn = graphc.function([], RandomStreams(3).choice(size=2, replace=False, p=chances))()
    np.testing.assert_array_equal(np.sort(drawn, axis=1), [[0, 1], [2, 3]])
    items = graphc.function([], RandomStreams(3).choice(size=(50,), p=[0.0, 0.5, 0.5]))()
    assert set(items.tolist()) == {1, 2}
    with pytest.raises(RankError, match="the chances are a vector"):
        RandomStreams(3).choice(size=2, p=chances)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_trials_of_no_chance(mode: str) -> None:
    """-1 of a number that is no chance, for one trial as for several; no third value in bool."""
    p, rng = T.dvector("p"), RandomStreams(2)
    counts = [
        rng.binomial(p=p),
        rng.binomial(n=2, p=p),
        rng.bernoulli(p=p, dtype="float32"),
        rng.binomial(p=p, dtype="int8"),
    ]
    f = graphc.function([p], [*counts, rng.bernoulli(p=p, dtype="bool")], mode=mode)
    *found, alone = f([-0.1, np.nan, 1.1, 0.0, 1.0])
    for value, n in zip(found, (1, 2, 1, 1), strict=True):
        np.testing.assert_array_equal(value, [-1, -1, -1, 0, n])
    np.testing.assert_array_equal(alone, [False, False, True, False, True])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_normal_numbers_cut_at_two_deviations(mode: str) -> None:
    """Theano's `truncate` cuts and leaves `std` what it was before; `truncated_normal` makes it good."""
    rng, avg, std = RandomStreams(5), T.dscalar("avg"), T.dscalar("std")
    f = graphc.function(
        [avg, std], [rng.normal((4000,), avg, std, truncate=True), rng.truncated_normal((4000,), avg, std)], mode=mode
    )
    cut, same = f(3.0, 2.0)
    assert np.abs(cut - 3.0).max() <= 4.0 and abs(cut.std() - 2 * 0.8796) < 0.08
    assert 4.0 < np.abs(same - 3.0).max() <= 4.0 / 0.8796 and abs(same.std() - 2.0) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_a_size_of_a_parameter(mode: str) -> None:
    """Theano's -1 in a size: what the parameters have along that axis."""
    rng, v, p = RandomStreams(5), T.dvector("v"), T.dmatrix("p")
    f = graphc.function([v, p], [rng.uniform((2, -1), low=v), rng.multinomial((1, -1), pvals=p)], mode=mode)
    assert [each.shape for each in f(np.zeros(4), np.ones((3, 2)) / 2)] == [(2, 4), (1, 3, 2)]
    assert rng.normal((-1, 3), T.constant([[1.0], [2.0]])).type.shape == (2, 3)
    draws: Any = (lambda: rng.multinomial((1, -1)), lambda: rng.uniform((-1, 2), high=v), lambda: rng.choice((-1,), 3))
    for draw in draws:
        with pytest.raises(ValueError, match="no parameter has axis"):
            draw()
    with pytest.raises(ValueError, match="the items and their chances: sizes 3 and 0 differ"):
        rng.choice(a=3, p=[])


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_categories_of_given_numbers(mode: str) -> None:
    """Theano's `MultinomialFromUniform`: the first category at which the sum of chances is above the number."""
    made: Any = import_module("graphc.sandbox.multinomial").MultinomialFromUniform
    p, u, n = T.fmatrix("p"), T.fvector("u"), T.lscalar("n")
    f = graphc.function([p, u, n], [made("auto")(p, u, n), made("int8")(p, u, n)], mode=mode)
    chances = np.array([[0.25, 0.25, 0.5], [0.0, 0.5, 0.25]], "float32")
    counts, small = f(chances, np.array([0.1, 0.0, 0.25, 0.6, 0.9, 0.8], "float32"), 3)
    np.testing.assert_array_equal(counts, [[1, 1, 1], [0, 1, 1]], "none where no sum is above")
    assert counts.dtype == "float32" and small.dtype == "int8"
    assert f(chances[:0], np.zeros(0, "float32"), 2)[0].shape == (0, 3)
    assert made("auto")(p, u).dtype == "float32"
    with pytest.raises(ValueError, match="u"):
        f(chances, np.zeros(3, "float32"), 2)
    with pytest.raises(TypeError, match="a matrix of chances"):
        made("auto")(u, u)


def draws_without_replacement(p: Any, rows: Any, n: Any, count: Any) -> dict[str, Any]:
    """Every function that draws without replacement: of chances `p`, of those of each row, of `count` equal ones."""
    mrg = import_module("graphc.sandbox.rng_mrg").MRG_RandomStreams(5)
    rng, key = RandomStreams(5), graphc.random.key(5)
    raw: Any = import_module("graphc.tensor.raw_random")
    state = graphc.shared(np.random.RandomState(5))
    return {
        "choice": rng.choice((n,), p.shape[0], replace=False, p=p),
        "choice of keys": graphc.random.choice(key, T.arange(p.shape[0]), (n,), replace=False, p=p),
        "choice of a state": raw.choice(state, (n,), p.shape[0], replace=False, p=p)[1],
        "choice for rows": mrg.choice(n, replace=False, p=rows),
        "categories": rng.multinomial_wo_replacement(n=n, pvals=rows),
        "categories of a vector": mrg.choice_wo_replacement(n=n, pvals=p),
        "choice of equal ones": rng.choice((n,), count, replace=False),
        "choice of equal ones, of keys": graphc.random.choice(key, count, (n,), replace=False),
    }


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_is_drawn_twice_without_replacement(mode: str, dtype: str) -> None:
    """As many as have a chance can be drawn, however small it is, and not one more: it is said of which variable and
    in which line."""
    p, rows = T.vector("p", dtype=dtype), T.matrix("rows", dtype=dtype)
    n, count = T.lscalar("n"), T.lscalar("count")
    made = draws_without_replacement(p, rows, n, count)
    f = graphc.function([p, rows, n, count], list(made.values()), mode=mode)
    tiny = np.nextafter(np.zeros((), dtype), np.ones((), dtype))
    chances = np.array([0.5, 0.0, tiny, 0.25, 4 * tiny], dtype)
    for _ in range(5):
        for name, drawn in zip(made, f(chances, np.stack([chances, chances[::-1]]), 4, 4), strict=True):
            lines = drawn if drawn.ndim == 2 else drawn[None]
            assert all(len(set(line)) == 4 for line in lines.tolist()), name
            if "equal" not in name:
                assert 1 not in lines[0] and (len(lines) == 1 or 3 not in lines[1]), name
    assert [value.size for value in f(chances, chances[None], 0, 0)] == [0] * len(made)
    few, wrong = "fewer chances above 0 than there are draws", "a chance that is negative or NaN"
    for name, output in made.items():
        g = graphc.function([p, rows, n, count], output, mode=mode, on_unused_input="ignore")
        full = np.full(5, 0.2, dtype)
        bad: list[tuple[Any, int, str]] = [(full, 6, "fewer categories than draws"), (full, -1, "negative")]
        if "equal" not in name:
            negative, missing = np.array([0.5, 0.7, -0.2], dtype), np.array([0.5, np.nan, 0.5], dtype)
            bad += [(chances, 5, few), (negative, 2, wrong), (missing, 1, wrong)]
        for values, number, said in bad:
            with pytest.raises(ValueError, match=said) as caught:
                g(values, np.stack([full[: len(values)], values]), number, len(values))
            assert "test_streams.py" in str(caught.value)
            if said in (few, wrong):
                assert ("rows" if "row" in name or name == "categories" else "p (") in str(caught.value)


def test_what_sizes_tell_of_draws_without_replacement() -> None:
    rng = RandomStreams(1)
    draws: list[Any] = [
        lambda: rng.choice((5,), 3, replace=False),
        lambda: rng.choice((2, 2), np.arange(3), replace=False, p=np.ones(3) / 3),
        lambda: rng.multinomial_wo_replacement(n=3, pvals=[[0.5, 0.5]]),
    ]
    for draw in draws:
        with pytest.raises(ValueError, match=r"fewer categories than draws without replacement: [345] of [23]"):
            draw()
    with pytest.raises(RankError, match="a vector or a matrix"):
        rng.multinomial_wo_replacement(n=1, pvals=np.ones((1, 1, 1)))


def test_chances_of_draws_are_chances() -> None:
    """A draw from chances that are none, or of which none is above 0, is an error of the call, which names them."""
    p, n, key = T.dmatrix("p"), T.lscalar("n"), R.key(7)
    draws = {
        "categorical": R.categorical(key, T.log(p)),
        "choice": R.choice(key, 3, (4,), p=p[-1]),
        "multinomial": R.multinomial(key, n, p),
        "one trial": R.multinomial(key, 1, p),
    }
    for name, drawn in draws.items():
        f = graphc.function([p, n], drawn, mode="interpreted", on_unused_input="ignore")
        good = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
        assert f(good, 4).tolist() in ([1, 2], [2] * 4, [[0, 4, 0], [0, 0, 4]], [[0, 1, 0], [0, 0, 1]]), name
        for bad in ([0.0, 0.0, 0.0], [0.5, np.nan, 0.5], [0.5, -0.5, 1.0]):
            with pytest.raises(ValueError, match="chance") as caught:
                f(np.array([good[0], bad]), 4)
            assert "test_streams.py" in str(caught.value) and "p" in str(caught.value)
    no_trials = graphc.function([p, n], draws["multinomial"], mode="interpreted")
    assert no_trials(np.zeros((2, 3)), 0).tolist() == [[0] * 3] * 2
