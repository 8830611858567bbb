"""PyMC's models compiled by graphc against PyTensor's log-densities (`make test-bridge`)."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

pymc = pytest.importorskip("pymc", reason="make test-bridge has PyMC")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.gradient import disconnected_grad, grad_clip, grad_scale, zero_grad  # noqa: E402

import graphc.pymc  # noqa: E402
from graphc.errors import ArgumentError  # noqa: E402
from tests.support.bridge_models import MODELS, eight_schools, hilbert_space_process  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_log_density_and_gradient_are_pytensors(name: str) -> None:
    with pymc.Model() as built:
        MODELS[name](np.random.default_rng(3))
    compare(built)


def compare(built: Any) -> None:
    compiled = graphc.pymc.compile(built)
    rng = np.random.default_rng(5)
    inputs = [built.rvs_to_values[variable] for variable in built.free_RVs]
    density = built.logp()
    with built:
        own = pymc.pytensorf.compile(
            inputs, [density, *pytensor.grad(density, inputs)], mode=Mode("py", optimizer="fast_compile")
        )
    for scale in (0.0, 0.3):
        q = compiled.flat(built.initial_point()) + scale * rng.normal(size=compiled.dimension)
        value, gradient = compiled.logp_dlogp(q)
        given = [
            q[part.start : part.end].reshape(part.shape).astype(variable.dtype)
            for part, variable in zip(compiled.parameters, inputs, strict=True)
        ]
        wanted, *parts = own(*given)
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
        wide = np.concatenate([np.ravel(part) for part in parts])
        np.testing.assert_allclose(gradient, wide, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(wide).max()))


def test_the_functions_of_a_model() -> None:
    with pymc.Model() as built:
        eight_schools(np.random.default_rng(0))
    compiled = graphc.pymc.compile(built)
    q = compiled.flat(built.initial_point()) + 0.1
    value, gradient = compiled.logp_dlogp(q)
    np.testing.assert_allclose(compiled.logp(q), value, rtol=1e-14)
    np.testing.assert_allclose(compiled.dlogp(q), gradient, rtol=1e-12)
    curvature = compiled.d2logp(q)
    step = 1e-6 * np.eye(compiled.dimension)
    near = np.array([(compiled.dlogp(q + row) - compiled.dlogp(q - row)) / 2e-6 for row in step])
    np.testing.assert_allclose(curvature, near, atol=1e-6)
    values = compiled.values()(q)
    np.testing.assert_allclose(values["theta"], values["mu"] + values["tau"] * values["z"])
    assert set(compiled.values(["tau"])(q)) == {"tau"}
    with pytest.raises(ArgumentError, match="no variable 'nothing'"):
        compiled.values(["nothing"])


def test_data_may_change_between_calls() -> None:
    with pymc.Model() as built:
        x = pymc.Data("x", np.arange(3.0))
        pymc.Normal("y", pymc.Normal("b", 0, 1) * x, 1.0, observed=np.ones(3))
    compiled = graphc.pymc.compile(built)
    before = compiled.logp(np.array([0.5]))
    with built:
        pymc.set_data({"x": np.arange(3.0) + 1.0})
    after = compiled.logp(np.array([0.5]))
    assert before != after
    np.testing.assert_allclose(after - before, -0.5 * (0.25 + 0.0 + 0.25) + 0.5 * (1.0 + 0.25 + 0.0), atol=1e-12)


def test_derivatives_that_a_model_replaces() -> None:
    a = pt.dvector("a")
    square = OpFromGraph([a], [a**2], lop_overrides=lambda inputs, outputs, given: [7.0 * given[0] * inputs[0]])
    with pymc.Model() as built:
        x = pymc.Normal("x", 0, 1, shape=3, initval=[0.4, -1.5, 2.5])
        steps = pytensor.scan(
            lambda h, x: pt.tanh(h * x[0]) + 0.1,
            outputs_info=x[1],
            non_sequences=x,
            n_steps=6,
            truncate_gradient=2,
            return_updates=False,
        )
        parts = [x * disconnected_grad(x), x * zero_grad(x**2), grad_clip(3.0 * x, -1.0, 1.0) ** 2, grad_scale(x, 0.5)]
        for number, part in enumerate([*parts, square(x), x * square(pt.sin(x)), steps[-1]]):
            pymc.Potential(f"p{number}", part)
    compare(built)
    with pymc.Model() as twice:
        pymc.Potential("p", square(pymc.Flat("x", shape=3)))
    np.testing.assert_allclose(graphc.pymc.compile(twice).d2logp(np.ones(3)), 7.0 * np.eye(3))


def test_parameters_whose_sizes_data_decide() -> None:
    """PyMC gives the shapes of transformed variables twice, before and after the transformation."""
    with pymc.Model(coords={"group": range(4), "kind": range(3)}) as built:
        scale = pymc.HalfNormal("scale", 1, dims="group")
        weights = pymc.Dirichlet("weights", np.ones(3), dims=("group", "kind"))
        pymc.Normal("y", weights.sum(0)[:, None] * scale, 1.0, observed=np.ones((3, 4)))
    compiled = graphc.pymc.compile(built)
    found = [(part.name, part.shape, part.start) for part in compiled.parameters]
    assert found == [("scale_log__", (4,), 0), ("weights_simplex__", (4, 2), 4)]
    point = built.initial_point()
    own = built.compile_logp(mode=Mode("py", optimizer="fast_compile"))
    np.testing.assert_allclose(compiled.logp(compiled.flat(point)), own(point), rtol=1e-12)


def test_discrete_variables_are_refused_by_name() -> None:
    with pymc.Model() as built:
        pymc.Poisson("n", 3.0)
    with pytest.raises(ArgumentError, match="n: discrete variables"):
        graphc.pymc.compile(built)


@pytest.mark.slow
def test_sampling_takes_the_mode() -> None:
    with pymc.Model():
        eight_schools(np.random.default_rng(0))
        trace = pymc.sample(
            300, tune=300, chains=2, cores=1, progressbar=False, random_seed=1, compile_kwargs={"mode": "GRAPHC"}
        )
    assert abs(float(trace.posterior["mu"].mean()) - 4.4) < 1.5


def test_the_pointer_gives_what_the_function_does_in_four_threads() -> None:
    with pymc.Model() as built:
        pymc.Data("unused", np.arange(3.0))
        x = pymc.Data("x", np.random.default_rng(1).normal(size=30))
        hilbert_space_process(np.random.default_rng(2))
        pymc.Normal("more", pymc.Normal("slope", 0, 1) * x, 1.0, observed=np.ones(30))
    compiled = graphc.pymc.compile(built)
    pointer = compiled.pointer()
    call = pointer.ctypes
    count = compiled.dimension
    points = compiled.flat(built.initial_point()) + np.random.default_rng(0).normal(size=(40, count)) / 2
    wanted = [compiled.logp_dlogp(q) for q in points]
    with built:
        pymc.set_data({"x": np.zeros(30)})  # the pointer has the data that were
    problems: list[int] = []

    def work(first: int) -> None:
        gradient, value = np.zeros(count), np.zeros(1)
        for number in [*range(first, 40, 4)] * 50:
            q = points[number]
            status = call(count, q.ctypes.data, gradient.ctypes.data, value.ctypes.data, None)
            if status or value[0] != wanted[number][0] or not np.array_equal(gradient, wanted[number][1]):
                problems.append(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert call(count + 1, points.ctypes.data, points.ctypes.data, points.ctypes.data, None) == -1


def test_a_point_without_density_is_rejected_by_number() -> None:
    with pymc.Model() as built:
        pymc.Potential("p", pt.log(pymc.Normal("x", 0, 1)))
    compiled = graphc.pymc.compile(built)
    call, out, value = compiled.pointer().ctypes, np.zeros(1), np.zeros(1)
    for x, status in ((1.0, 0), (-1.0, 4), (0.0, 3), (np.nan, 3)):
        assert call(1, np.array([x]).ctypes.data, out.ctypes.data, value.ctypes.data, None) in (
            status,
            3 * bool(status),
        )


def nutpie_trace(model: Any, **options: Any) -> Any:
    nutpie = pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    return nutpie.sample(model, progress_bar=False, seed=3, **options)


def test_nutpie_samples_a_model_of_graphcs() -> None:
    pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model(coords={"school": list("abcdefgh"), "pair": [1, 2]}) as built:
        eight_schools(np.random.default_rng(0))
        scale = pymc.Data("scale", 1.0)
        pymc.Deterministic("both", pt.stack([built["mu"], built["tau"] * scale]), dims="pair")
    model = graphc.pymc.nutpie(built)
    assert model.n_dim == 10 and model.shapes["theta"] == (8,) and model.n_expanded == 21
    assert list(model.coords["pair"]) == [1, 2]
    assert list(model.coords["unconstrained_parameter"][:3]) == ["mu", "tau_log__", "z_0"]
    trace = nutpie_trace(model, draws=1500, tune=1000, chains=4, cores=2)
    mean, spread = float(trace.posterior["mu"].mean()), float(trace.posterior["mu"].std())
    assert abs(mean - 4.4) < 0.35 and abs(spread - 3.3) < 0.3  # sampled by PyMC at length
    both = trace.posterior["both"]
    assert both.dims == ("chain", "draw", "pair")
    np.testing.assert_allclose(both.values[..., 0], trace.posterior["mu"].values)
    np.testing.assert_allclose(both.values[..., 1], trace.posterior["tau"].values)
    np.testing.assert_allclose(
        trace.posterior["theta"], trace.posterior["mu"] + trace.posterior["tau"] * trace.posterior["z"]
    )
    changed = nutpie_trace(model.with_data(scale=-2.0), draws=20, tune=20, chains=1)
    np.testing.assert_allclose(changed.posterior["both"].values[..., 1], -2.0 * changed.posterior["tau"].values)
    with pytest.raises(KeyError, match="no data 'scales' in the model; there are scale"):
        model.with_data(scales=1.0)


def test_options_of_nutpies_own_compiler() -> None:
    pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model() as built:
        eight_schools(np.random.default_rng(0))
    fixed = graphc.pymc.nutpie(built, initial_points={"mu": 3.0}, jitter_rvs=set())
    np.testing.assert_allclose(fixed.initial_point_func(1)[:1], 3.0)
    trace = nutpie_trace(graphc.pymc.nutpie(built, var_names=["theta"]), draws=20, tune=20, chains=2)
    assert set(trace.posterior) == {"mu", "tau_log__", "z", "theta"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["radon", "correlated", "hidden_states", "censored_and_truncated_tails"])
def test_posteriors_are_those_of_pytensors_own_code(name: str) -> None:
    nutpie = pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model() as built:
        MODELS[name](np.random.default_rng(3))
    options = {"draws": 1500, "tune": 1000, "chains": 4, "cores": 2}
    mine, own = (nutpie_trace(m, **options) for m in (graphc.pymc.nutpie(built), nutpie.compile_pymc_model(built)))
    assert set(mine.posterior) == set(own.posterior)
    for key in own.posterior:
        means, spread = [t.posterior[key].mean(("chain", "draw")) for t in (mine, own)], own.posterior[key].std()
        assert float(abs(means[0] - means[1]).max()) < 0.25 * float(spread) + 1e-9, key
