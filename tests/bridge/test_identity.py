"""What a model's functions are kept under: a text that tells it from all others, or none (`make test-bridge`)."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pymc = pytest.importorskip("pymc", reason="make test-bridge has PyMC")

import pytensor.tensor as pt  # noqa: E402
from pymc.logprob.abstract import _logprob  # noqa: E402
from pymc.logprob.rewriting import measurable_ir_rewrites_db  # noqa: E402
from pytensor.gradient import grad_clip, grad_scale  # noqa: E402
from pytensor.graph.rewriting.basic import node_rewriter  # noqa: E402
from pytensor.graph.traversal import ancestors  # noqa: E402
from pytensor.tensor.random.basic import NormalRV  # noqa: E402

import graphc.pymc  # noqa: E402
from graphc.options import options  # noqa: E402
from graphc.pymc.model import STATES, Serializer, state, text_of  # noqa: E402
from graphc.startup.versions import digest_of  # noqa: E402
from tests.support.bridge_models import MODELS, eight_schools  # noqa: E402


def built(name: str) -> Any:
    with pymc.Model() as model:
        MODELS[name](np.random.default_rng(3))
    return model


def text(write: Callable[[], object], **options: Any) -> str | None:
    with pymc.Model(**options) as model:
        write()
    found = text_of(model)
    return None if found is None else found[0]


DIGESTS = """
import warnings
warnings.simplefilter("ignore")
from tests.bridge.test_identity import MODELS, built, digest_of, text_of
for name in MODELS:
    print(name, digest_of(text_of(built(name))[0].encode()))
"""


@pytest.mark.slow
def test_every_model_has_a_text_that_is_the_same_in_another_process() -> None:
    mine = {name: digest_of(text_of(built(name))[0].encode()) for name in MODELS}  # type: ignore[index]
    assert len(set(mine.values())) == len(MODELS)
    root = Path(__file__).parents[2]
    other = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", DIGESTS], env=other, capture_output=True, text=True, check=True)
    assert dict(line.split() for line in done.stdout.splitlines()) == mine


def ops_of(outputs: list[Any]) -> Iterator[Any]:
    for variable in ancestors(outputs):
        if variable.owner is not None:
            op = variable.owner.op
            yield op
            for name in ("scalar_op", "core_op"):
                if hasattr(op, name):
                    yield getattr(op, name)
            if hasattr(op, "fgraph"):
                yield from ops_of(op.fgraph.outputs)


def changed(value: Any) -> Any:
    return not value if isinstance(value, bool) else (value, "changed")


def test_every_attribute_of_every_op_enters_the_text() -> None:
    seen: dict[type, int] = {}
    for name in MODELS:
        model = built(name)
        for op in ops_of([*model.basic_RVs, *model.potentials]):
            if type(op) in seen:
                continue
            before = Serializer()
            before.of(op)
            attributes = state(op)
            seen[type(op)] = len(attributes)
            for attribute, value in attributes.items():
                twin = copy.copy(op)
                vars(twin)[attribute] = "changed" if attribute in ("fgraph", "info") else changed(value)
                after = Serializer()
                after.of(twin)
                assert after.lines != before.lines, (type(op), attribute)
    assert len(seen) > 80 and sum(seen.values()) > 150
    assert set(STATES) <= {kind.__name__ for kind in seen} | {"Composite", "GradClip", "GradScale"}


Y = np.array([0.5, 1.5, 0.0])
MU = pt.constant(0.5) * 2.0


def plain(
    mu: Any = 0.0, y: Any = Y, kind: Any = None, shape: Any = (), cost: float = 1.0, name: str = "data", **options: Any
) -> Callable[[], object]:
    def write() -> None:
        x = pymc.Normal("x", mu, 1.0, shape=shape)
        scale = (kind or pymc.HalfNormal)("scale", 1.0, **options)
        data = pymc.Data(name, np.ones(3))
        pymc.Normal("y", pt.sum(x) * data[:3], scale, observed=y)
        pymc.Potential("cost", cost * scale)

    return write


def test_models_that_differ_have_texts_that_do() -> None:
    zero = Y.copy()
    zero[2] = -0.0
    ordered = pymc.distributions.transforms.Ordered
    changes = [grad_scale(MU, 2.0), grad_scale(MU, 3.0), grad_clip(MU, -1.0, 2.0), grad_clip(MU, -1.0, 3.0)]
    others = [
        text(plain()), text(plain(mu=1e-300)), text(plain(y=zero)),
        text(plain(y=np.nextafter(Y, 9.0))), text(plain(shape=2)), text(plain(kind=pymc.HalfCauchy)),
        text(plain(cost=2.0)), text(plain(name="other")), text(plain(default_transform=None)),
        text(plain(shape=3), check_bounds=False), text(plain(shape=3)), text(plain(kind=pymc.Exponential)),
        text(lambda: pymc.Normal("x", 0, 1, shape=2, transform=ordered())),
        text(lambda: pymc.Normal("x", 0, 1, shape=2, transform=ordered(positive=True))),
        text(lambda: pymc.Uniform("x", 0, 1)), text(lambda: pymc.Uniform("x", 0, 2)),
        *[text(plain(mu=mu)) for mu in changes],
        text(lambda: pymc.Uniform("x", pt.zeros(()), 2)),
        text(lambda: pymc.Uniform("x", 0, 2, transform=pymc.distributions.transforms.Interval(0, 3))),
        text(lambda: pymc.AR("x", [0.5, 0.1], steps=5)), text(lambda: pymc.AR("x", [0.5, 0.1], steps=5, constant=True)),
    ]  # fmt: skip
    assert None not in others and len(set(others)) == len(others)
    assert text(plain()) == others[0]


def test_constants_are_told_by_type_and_bits() -> None:
    constants = [np.float64(0.0), np.float32(0.0), np.float64(-0.0), np.zeros(1), np.zeros((1, 1)), np.zeros(1, ">f8")]
    constants += [np.int64(0), np.int8(0), np.bool_(False), np.float64(np.nan), np.array([0.0, 1.0]), np.arange(2)]
    texts = []
    for value in constants:
        teller = Serializer()
        teller.of([value])
        texts.append(teller.of([value]))
    kinds = [pt.TensorType("float64", shape)("x") for shape in ((None,), (1,), (2,), (None, None))]
    for free in [*kinds, pt.fvector("x"), pt.lvector("x")]:
        teller = Serializer()
        teller.of(free)
        texts.append("\n".join(teller.lines))
    assert len(set(texts)) == len(texts)


def test_what_no_text_decides_has_none() -> None:
    def own_density(value: Any, mu: Any) -> Any:
        return -((value - mu) ** 2)

    assert text(lambda: pymc.CustomDist("x", 0.0, logp=own_density)) is None
    ends = pymc.distributions.transforms.Interval(bounds_fn=lambda *args: (args[-1], None))
    assert text(lambda: pymc.Normal("x", 0, 1, transform=ends)) is None

    class Own(pymc.Model):  # type: ignore[misc, name-defined]
        def logp(self, *args: Any, **kwargs: Any) -> Any:
            return 2.0 * super().logp(*args, **kwargs)

    with Own() as model:
        eight_schools(np.random.default_rng(0))
    assert text_of(model) is None


def test_what_users_tell_pymc_of_log_densities_is_seen() -> None:
    model = built("eight_schools")
    before, kept = text_of(model), _logprob.dispatch(NormalRV)
    try:
        _logprob.register(NormalRV, lambda op, values, *args, **kwargs: values[0])
        assert text_of(model) is None
    finally:
        _logprob.register(NormalRV, kept)
    assert text_of(model) == before

    @node_rewriter(None)  # type: ignore[untyped-decorator]
    def nothing(fgraph: Any, node: Any) -> None:
        return None

    measurable_ir_rewrites_db.register("nothing", nothing, "basic")
    try:
        assert text_of(model) is None
    finally:
        for name, found in list(measurable_ir_rewrites_db.__db__.items()):
            found.discard(nothing)
            if not found:
                del measurable_ir_rewrites_db.__db__[name]
    assert text_of(model) == before


def test_a_function_that_was_kept_needs_no_log_density(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def model_of(scale: float) -> Any:
        with pymc.Model() as model:
            eight_schools(np.random.default_rng(0))
            pymc.Data("unused", np.zeros(2))
            x = pymc.Data("x", np.arange(3.0))
            pymc.Normal("more", scale * x * model["mu"], 1.0, observed=np.ones(3))
        return model

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the log-density was written down")

    with options.change(cache_dir=str(tmp_path)):
        first = graphc.pymc.compile(model_of(1.0))
        q = first.flat(first.model.initial_point()) + 0.1
        wanted = [first.logp(q), first.dlogp(q), *first.logp_dlogp(q), first.d2logp(q)]
        second = graphc.pymc.compile(model_of(1.0))
        with monkeypatch.context() as patch:
            patch.setattr(pymc.Model, "logp", refuse)
            found = [second.logp(q), second.dlogp(q), *second.logp_dlogp(q), second.d2logp(q)]
            pointer = second.pointer()
        for mine, own in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, own)
        gradient, value = np.zeros(len(q)), np.zeros(1)
        arrays = [array.ctypes.data for array in (q, gradient, value)]
        assert pointer.ctypes(len(q), *arrays, None) == 0 and value[0] == wanted[2]
        np.testing.assert_array_equal(gradient, wanted[3])
        assert "def kernel" in second.logp_dlogp.function.source  # which the log-density is written down for
        with second.model:
            pymc.set_data({"x": np.ones(3)})
        assert second.logp(q) != wanted[0]
        assert second.logp(q) == graphc.pymc.compile(second.model).logp(q)
        other = graphc.pymc.compile(model_of(2.0))
        assert other.logp(q) != wanted[0]
