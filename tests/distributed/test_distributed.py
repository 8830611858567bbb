"""`graphc.distributed` on the threads of this process: what it computes, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import distributed
from graphc.distributed.sampling import effective, r_hat
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, ShapeError
from graphc.scipy import optimize
from tests.support.deadlines import deadline

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    """What is computed is the point here: test_cluster.py has compiled kernels."""
    with deadline(300), graphc.options.change(mode="interpreted"), dask.config.set(num_workers=2):
        yield


def sharded(seed: int = 0, rows: int = 100) -> tuple[Any, Any, da.Array, da.Array]:
    """Rows and labels of a logistic regression, as arrays of NumPy's and of dask's."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    y = (rng.random(rows) < 1 / (1 + np.exp(-x @ [1.0, -2.0, 0.5]))).astype(float)
    return x, y, da.from_array(x, chunks=(9, 2)), da.from_array(y, chunks=9)


def loss(params: Any, x: Any, y: Any) -> Any:
    return jnp.sum(jnp.logaddexp(0.0, (1 - 2 * y) * (x @ params["w"] + params["b"])))


def penalty(params: Any) -> Any:
    return 0.01 * jnp.sum(params["w"] ** 2)


START = {"w": np.zeros(3), "b": 0.0}
SHORT = {"w": np.zeros(2), "b": 0.0}


def test_blocks_are_what_numpy_has_of_the_whole() -> None:
    x, _, blocks, _ = sharded()
    np.testing.assert_array_equal(distributed.map_blocks(lambda b: 2 * b + 1, blocks), 2 * x + 1)
    short = distributed.map_blocks(lambda b: jnp.argmax(b, 1), blocks.rechunk({1: -1}), drop_axis=1)
    assert short.dtype == np.int64 and (short.compute() == x.argmax(1)).all()
    w = graphc.shared(3.0, name="w")
    b = T.dmatrix("b")
    np.testing.assert_array_equal(distributed.map_blocks(graphc.function([b], b * w), blocks), 3 * x)
    large = blocks.rechunk((50, 2))
    product = distributed.blockwise(lambda p, q: p @ q, "ik", large, "ij", large.T, "jk")
    np.testing.assert_allclose(product, x @ x.T, rtol=1e-13, atol=1e-13)
    for axis in (None, 0, -1, (0, 1)):
        largest = distributed.reduction(blocks, jnp.max, axis=axis, split_every=2)
        np.testing.assert_array_equal(largest, x.max(axis))
    spread = distributed.reduction(
        blocks,
        lambda b, axis, keepdims: jnp.sum(b * b, axis=axis, keepdims=keepdims),
        jnp.sum,
        lambda b, axis, keepdims: jnp.sqrt(jnp.sum(b, axis=axis, keepdims=keepdims)),
        axis=0,
        keepdims=True,
    )
    np.testing.assert_allclose(spread, np.linalg.norm(x, axis=0, keepdims=True), rtol=1e-14)
    whole = blocks.rechunk({1: -1})
    total, pair = distributed.apply_gufunc(lambda r: (jnp.sum(r), jnp.stack([r[0], r[2]])), "(i)->(),(k)", whole)
    np.testing.assert_allclose(total, x.sum(1), rtol=1e-14)
    np.testing.assert_array_equal(pair, x[:, [0, 2]])


def test_columns_of_frames_keep_their_index() -> None:
    x, y, _, _ = sharded()
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "n": np.arange(100), "y": y}, index=np.arange(100) + 7)
    frame = dd.from_pandas(table, npartitions=4)
    found = distributed.map_columns(lambda a, n: a * n, frame, ["a", "n"], name="c").compute()
    pd.testing.assert_series_equal(found, (table.a * table.n).rename("c"))
    value, slope = distributed.value_and_grad(lambda w, x, y: jnp.sum((x @ w - y) ** 2))(
        np.ones(2), frame[["a", "b"]], frame.y
    )
    rest = x[:, :2].sum(1) - y
    np.testing.assert_allclose(value, rest @ rest, rtol=1e-13)
    np.testing.assert_allclose(slope, 2 * x[:, :2].T @ rest, rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"no column 'z'; it has \['a', 'b', 'n', 'y'\]"):
        distributed.map_columns(lambda z: z, frame, ["z"])
    with pytest.raises(ArgumentError, match="column 'a' is Float64, not of a dtype of NumPy's"):
        distributed.map_columns(lambda a: a, frame.astype({"a": "Float64"}), ["a"])


def test_a_sum_and_its_gradient_are_those_of_the_whole_in_any_order_of_work() -> None:
    x, y, blocks, labels = sharded(1)
    at = {"w": np.array([0.3, -0.2, 0.1]), "b": np.float32(0.5)}
    value, slope = graphc.value_and_grad(loss)(at, x, y)
    summed = distributed.value_and_grad(loss)
    found, gradient = summed(at, blocks, labels)
    np.testing.assert_allclose(found, value, rtol=1e-13)
    np.testing.assert_allclose(gradient["w"], slope["w"], rtol=1e-12)
    assert gradient["b"].dtype == np.float32 and abs(gradient["b"] - slope["b"]) < 1e-5
    for settings in ({"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 7}):
        with dask.config.set(settings):
            again, other = summed(at, blocks, labels)
        assert again == found and (other["w"] == gradient["w"]).all()


def test_fits_find_the_same_minimum_by_every_method() -> None:
    x, y, blocks, labels = sharded(2)
    seen: list[tuple[int, float]] = []
    by = {
        method: distributed.fit(
            loss, START, blocks, labels, method=method, penalty=penalty, tol=1e-8, callback=lambda *at: seen.append(at)
        )
        for method in ("l-bfgs", "newton", "BFGS")
    }
    plain = distributed.fit(loss, START, blocks, labels, method="newton", tol=1e-8)
    rate = 1 / (1 + np.exp(-(x @ plain.params["w"] + plain.params["b"])))
    assert np.linalg.norm(x.T @ (rate - y) / 100) < 1e-7, "without a penalty"
    w, b = by["newton"].params["w"], by["newton"].params["b"]
    chance = 1 / (1 + np.exp(-(x @ w + b)))
    slope = np.append(x.T @ (chance - y) / 100 + 0.02 * w, np.mean(chance - y))
    assert np.linalg.norm(slope) < 1e-7 and all(each.success for each in by.values())
    for each in by.values():
        np.testing.assert_allclose(each.params["w"], w, atol=1e-6)
    assert by["newton"].steps < by["l-bfgs"].steps
    assert seen == [(k + 1, v) for each in by.values() for k, v in enumerate(each.history)]


def test_fits_by_an_optimiser_go_on_from_their_state() -> None:
    _, _, blocks, labels = sharded(3)
    adam = graphc.optimizers.adam(0.1)
    options: dict[str, Any] = {"method": adam, "batch": 5, "seed": 4}
    whole = distributed.fit(loss, START, blocks, labels, epochs=3, **options)
    part = distributed.fit(loss, START, blocks, labels, epochs=1, **options)
    rest = distributed.fit(loss, START, blocks, labels, epochs=2, state=part.state, **options)
    assert part.history + rest.history == whole.history and len(whole.history) == 9
    assert (rest.params["w"] == whole.params["w"]).all() and whole.history[-1] < whole.history[0]
    apart = labels.rechunk(50)
    assert distributed.fit(loss, START, blocks, apart, epochs=3, **options).history == whole.history


def test_samples_have_the_moments_of_their_distribution_and_go_on_from_their_state() -> None:
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    precision = np.linalg.inv(covariance)

    def density(params: Any) -> Any:
        off = params["x"] - 1.0
        return -off @ precision @ off / 2

    graphc.options.mode = "compiled"  # of thousands of steps
    options: dict[str, Any] = {"chains": 2, "leaps": 6, "every": 50, "seed": 5}
    found = distributed.sample(density, {"x": np.zeros(2)}, draws=300, tune=100, **options)
    draws = found.draws["x"]
    assert draws.shape == (2, 300, 2) and found.log_density.shape == (2, 300)
    flat = draws.reshape(-1, 2)
    # Five deviations of means of 600 draws, were every fourth independent of the others.
    assert (abs(flat.mean(0) - 1) < 5 * np.sqrt(np.diag(covariance) / 150)).all()
    assert (abs(np.cov(flat.T) - covariance) < 5 * 2 * np.sqrt(2 / 150)).all()
    np.testing.assert_allclose(found.log_density[0, 7], density({"x": draws[0, 7]}), rtol=1e-12)
    assert (found.accepted > 0.5).all()
    more = distributed.sample(density, {"x": np.zeros(2)}, draws=100, state=found.state, **options)
    longer = distributed.sample(density, {"x": np.zeros(2)}, draws=400, tune=100, **options)
    assert (longer.draws["x"][:, 300:] == more.draws["x"]).all()


def test_temperatures_bring_a_chain_from_one_mode_to_the_other() -> None:
    def density(x: Any) -> Any:
        return jnp.logaddexp(-((x - 6) ** 2) / 2, -((x + 6) ** 2) / 2)

    graphc.options.mode = "compiled"
    options: dict[str, Any] = {"draws": 400, "tune": 60, "chains": 1, "leaps": 4, "every": 10, "seed": 1}
    cold = distributed.sample(density, np.float64(6.0), **options)
    warm = distributed.sample(density, np.float64(6.0), temperatures=(1.0, 4.0, 16.0), **options)
    assert (cold.draws > 0).all()
    assert 0.1 < (warm.draws > 0).mean() < 0.9
    assert warm.swapped.shape == (1, 2) and (warm.swapped > 0.2).all()


def test_tuning_scales_parameters_and_chains_tell_whether_they_agree() -> None:
    def density(x: Any) -> Any:
        return -jnp.sum((x / jnp.array([0.1, 10.0])) ** 2) / 2

    graphc.options.mode = "compiled"
    found = distributed.sample(density, np.zeros(2), draws=200, tune=150, chains=2, leaps=6, every=350)
    # Of a last window worth some ten independent draws: five standard deviations of the logarithm, (2 / 10)**0.5 / 2.
    assert found.scales.shape == (2, 2) and (abs(np.log(found.scales / [0.1, 10.0])) < 1.2).all()
    assert (found.r_hat < 1.2).all() and (found.effective > 20).all()


def test_diagnostics_of_known_chains() -> None:
    """Of independent draws R-hat is 1 and the size that of all, within four standard errors; of an autoregression with
    coefficient r the size is n (1 - r) / (1 + r)."""
    rng = np.random.default_rng(1)
    white = rng.normal(size=(4, 1000, 3))
    assert (abs(r_hat(white) - 1) < 0.01).all() and (abs(effective(white) / 4000 - 1) < 0.25).all()
    slow = np.empty((4, 2000))
    slow[:, 0] = rng.normal(size=4) / (1 - 0.64) ** 0.5
    for k in range(1, 2000):
        slow[:, k] = 0.8 * slow[:, k - 1] + rng.normal(size=4)
    assert abs(effective(slow) / (8000 * 0.2 / 1.8) - 1) < 0.3
    apart = white + np.arange(4)[:, None, None]
    assert (r_hat(apart) > 1.5).all() and (effective(apart) < 50).all()
    wide = white * np.array([1, 1, 1, 9])[:, None, None]
    assert (r_hat(wide) > 1.1).all(), "chains of one mean and different widths"
    assert np.isnan(r_hat(np.ones((2, 10)))) and np.isnan(r_hat(white[:, :3])).all()


def test_searches_take_the_methods_of_one_search() -> None:
    def valley(p: Any) -> Any:
        return (1.0 - p["a"]) ** 2 + 10.0 * (p["b"] - p["a"] ** 2) ** 2

    starts = [{"a": 0.5, "b": 0.1}, {"a": 1.2, "b": 1.4}]
    for method in (None, "L-BFGS-B", "trust-ncg", "trust-exact", "Nelder-Mead"):
        found = distributed.minimize(valley, starts, method=method, tol=1e-8)
        for each in found.all_params:
            np.testing.assert_allclose([each["a"], each["b"]], 1, atol=1e-4, err_msg=str(method))
    for method in (None, "TNC"):
        held = distributed.minimize(valley, starts, method=method, bounds={"a": (None, 0.5)})
        np.testing.assert_allclose([held.params["a"], held.params["b"]], [0.5, 0.25], atol=1e-4)
    line = optimize.LinearConstraint({"a": 1.0, "b": 1.0}, 2.0, 2.0)
    ball = optimize.NonlinearConstraint(lambda p: p["a"] ** 2, 0.0, 9.0)
    met = distributed.minimize(valley, starts, constraints=[line, ball])
    np.testing.assert_allclose([met.params["a"], met.params["b"]], 1, atol=1e-4)


def test_searches_give_results_in_the_order_of_what_they_are_given() -> None:
    starts = [0.5, 9.0, -3.0]
    found = distributed.minimize(lambda x: jnp.cos(x) + 0.01 * (x - 1) ** 2, starts)
    assert found.value == found.values.min() and found.success.all()
    for each in found.all_params:
        assert abs(-np.sin(each) + 0.02 * (each - 1)) < 1e-5
    points = distributed.grid(a=[1.0, 2.0], b=[3.0, 4.0])
    assert distributed.sweep(lambda a, b: a * b, points).results == (3, 4, 6, 8)
    w, r = graphc.shared(1.0, name="w"), T.dscalar("r")
    grown = graphc.function([r], w + r, updates=[(w, w * r)])
    swept = distributed.sweep(grown, [2.0, 3.0], calls=3)
    assert swept.results == (6, 12) and [each["w"] for each in swept.states] == [8, 27]
    assert w.get_value() == 1


def test_what_cannot_be_done_is_refused_before_anything_runs() -> None:
    _, _, blocks, labels = sharded()
    w, b = graphc.shared(1.0), T.dmatrix("b")
    counted = graphc.function([b], b.sum(), updates=[(w, w + 1)])
    sgd = graphc.optimizers.sgd(1.0)
    refused: list[tuple[type[Exception], str, Any]] = [
        (GraphcError, "has updates", lambda: distributed.map_blocks(counted, blocks)),
        (ArgumentError, "returns 2 arrays, not one", lambda: distributed.map_blocks(lambda b: (b, b), blocks)),
        (ArgumentError, "gives 1 axes, and 'ij' names 2", lambda: distributed.blockwise(jnp.ravel, "ij", blocks, "ij")),
        (ArgumentError, "it has to keep them", lambda: distributed.reduction(blocks, lambda b, axis, **_: b[0])),
        (ArgumentError, "has not axis 2", lambda: distributed.reduction(blocks, jnp.sum, axis=2)),
        (ArgumentError, "is no signature", lambda: distributed.apply_gufunc(jnp.sum, "i->()", blocks)),
        (ArgumentError, "has 2 arguments", lambda: distributed.apply_gufunc(jnp.dot, "(i),(i)->()", blocks)),
        (ArgumentError, "there are no rows", lambda: distributed.fit(loss, START)),
        (ArgumentError, "not of ndarray", lambda: distributed.fit(loss, START, np.ones((3, 3)), labels)),
        (ArgumentError, "none of", lambda: distributed.fit(loss, START, blocks, labels, method="powell")),
        (ShapeError, "summed axis has sizes 3 and 2", lambda: distributed.fit(loss, SHORT, blocks, labels)),
        (ArgumentError, "the loss is NaN", lambda: distributed.fit(loss, START, blocks * np.nan, labels)),
        (ArgumentError, "batch=0", lambda: distributed.fit(loss, START, blocks, labels, method=sgd, batch=0)),
        (GraphTypeError, "parameters are floats", lambda: distributed.value_and_grad(loss)(1, blocks)),
        (GraphTypeError, "parameters are floats", lambda: distributed.minimize(jnp.sum, [3])),
        (ArgumentError, "no constraints here", lambda: distributed.minimize(
            jnp.sum, [np.ones(2)], method="COBYQA", constraints={"type": "eq", "fun": jnp.sum}
        )),
        (GraphcError, "no option 'maxls'", lambda: distributed.minimize(jnp.sum, [np.ones(2)], maxls=3)),
        (ArgumentError, "of one form", lambda: distributed.minimize(jnp.sum, [np.ones(2), np.ones(3)])),
        (GraphcError, "density is nan", lambda: distributed.sample(lambda x: jnp.log(x - 1), 0.0, 3, 3, 1, leaps=1)),
        (ArgumentError, "there is no start", lambda: distributed.minimize(jnp.sum, [])),
        (ArgumentError, "the first is 1.0", lambda: distributed.sample(jnp.sum, 0.0, temperatures=(2.0,))),
        (ArgumentError, "are 1 or more", lambda: distributed.sample(jnp.sum, 0.0, draws=0)),
        (ArgumentError, "need names", lambda: distributed.sweep(counted, [np.ones((2, 2))])),
        (ArgumentError, "which have states", lambda: distributed.sweep(jnp.sum, [1.0], calls=2)),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
