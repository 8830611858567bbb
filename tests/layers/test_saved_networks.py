"""Trained networks and fitted estimators as files: the same predictions to the bit, without layers and scikit-learn."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import optim
from graphc.errors import GraphcError, GraphValueError
from graphc.functions.saved_networks import Predictor
from graphc.layers import Sequential
from graphc.options import options
from graphc.train import Trainer
from tests.support.exported_library import Called

X = np.random.default_rng(3).normal(size=(30, 4))


def network(cost: str) -> Sequential:
    net = Sequential(dtype="float64", seed=1).add_fc(4, 6, "relu", normalize=True, dropout=0.3)
    return net.add_fc(6, 3).add_cost(cost)


@pytest.mark.parametrize("cost", ["softmax", "norm"])
def test_a_network_predicts_the_same(cost: str, tmp_path: Path) -> None:
    with options.change(mode="interpreted"):
        net = network(cost)
        net.set_values([value + 0.25 for value in net.get_values()])
        net.save(tmp_path / "net.graphc", values="beside")
        loaded = graphc.load(tmp_path / "net.graphc")
        assert isinstance(loaded, Predictor) and len(loaded.shared) == 8, "one of each parameter that predictions read"
        np.testing.assert_array_equal(loaded.predict(X), net.predict(X), strict=True)
        if cost == "softmax":
            np.testing.assert_array_equal(loaded.predict_proba(X), net.predict_probabilities(X), strict=True)
            return
        with pytest.raises(GraphValueError, match="what was saved has no probabilities"):
            loaded.predict_probabilities(X)
        with pytest.raises(GraphValueError, match="the network has no cost"):
            Sequential().add_fc(2, 1).save(tmp_path / "none")


LOADED = """
    import sys
    import numpy as np, graphc
    x = np.load(sys.argv[1] + "/x.npy")
    for name in ("texts", "numbers", "one", "two"):
        model = graphc.load(f"{sys.argv[1]}/{name}.graphc", recompile=False)
        np.save(f"{sys.argv[1]}/{name}.npy", model.predict(x))
        if name in ("texts", "numbers"):
            np.save(f"{sys.argv[1]}/{name}_chances.npy", model.predict_proba(x))
    assert not {"sklearn", "scipy", "numba", "llvmlite", "graphc.train", "graphc.layers"} & set(sys.modules)
"""


@pytest.mark.slow
def test_estimators_predict_the_same_in_a_process_without_their_packages(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    estimators = vars(importlib.import_module("graphc.train.estimator"))
    how: dict[str, Any] = {"hidden": (5,), "epochs": 3, "random_state": 0}
    kinds = np.arange(30) % 3
    targets = {
        "texts": np.array(["low", "middle", "high"])[kinds],
        "numbers": kinds * 10,
        "one": X[:, 0],
        "two": X[:, :2],
    }
    fitted = {name: estimators["Regressor" if name in ("one", "two") else "Classifier"](**how) for name in targets}
    np.save(tmp_path / "x.npy", X)
    for name, model in fitted.items():
        model.fit(X, targets[name]).save(tmp_path / f"{name}.graphc")
    program = [sys.executable, "-c", textwrap.dedent(LOADED), str(tmp_path)]
    environment = {**os.environ, "GRAPHC_CACHE": "off"}
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    for name, model in fitted.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), model.predict(X), strict=True)
    for name in ("texts", "numbers"):
        chances = fitted[name].predict_proba(X)
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}_chances.npy"), chances, strict=True)
    for name, part, expected in (
        ("numbers", "predict", fitted["numbers"].predict(X)),
        ("texts", "probabilities", fitted["texts"].predict_proba(X)),
        ("one", "predict", fitted["one"].predict(X)),
        ("two", "predict", fitted["two"].predict(X)),
    ):
        whole = graphc.load(tmp_path / f"{name}.graphc").whole(part)
        fitted[name].export(tmp_path / f"c_{name}", part=part, strided=["x"])
        code, made = Called(whole, tmp_path, f"c_{name}", written=True).call([np.repeat(X, 2, axis=1)[:, ::2]])
        assert code == 0
        np.testing.assert_allclose(made[0], expected, rtol=1e-12, strict=True)
        fitted[name].export(tmp_path / f"as_{name}", language="python", part=part)
        np.testing.assert_allclose(imported(tmp_path, f"as_{name}")(X), expected, rtol=1e-12, strict=True)
    names = fitted["texts"].classes_ = np.array(["hoch ü", 'a "b"\\', "low\n"])
    fitted["texts"].export(tmp_path / "named")
    fitted["texts"].export(tmp_path / "as_named", language="python")
    source = """
        #include <stdio.h>
        #include "named.h"
        int main(void) { for (int i = 0; i < 3; i++) printf("%s|", named_classes[i]); return 0; }
    """
    (tmp_path / "names.c").write_text(textwrap.dedent(source))
    built = ["cc", "-Wall", "-Werror", "-o", str(tmp_path / "names"), str(tmp_path / "names.c")]
    subprocess.run(built, check=True, timeout=60)
    printed = subprocess.run([str(tmp_path / "names")], capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed.split("|")[:3] == list(names)
    predict = imported(tmp_path, "as_named")
    assert predict.__globals__["classes"] == tuple(names)
    np.testing.assert_array_equal(names[predict(X)], fitted["texts"].predict(X), strict=True)
    with pytest.raises(ValueError, match="Call 'fit'"):
        estimators["Regressor"]().export(tmp_path / "none")
    fitted["texts"].classes_ = np.array([None, "a", "b"], object)
    with pytest.raises(GraphcError, match="classes of dtype object cannot be saved"):
        fitted["texts"].save(tmp_path / "none")


@pytest.mark.parametrize("cost", ["softmax", "norm"])
def test_a_loaded_network_is_trained_on_as_the_saved_one(cost: str, tmp_path: Path) -> None:
    """Weights, statistics of the normalisation and the dropout's stream go on; what was trained on is saved again.
    Gradients are added up in another order, so 8 steps of `sgd` may differ by some roundings each."""
    targets = np.arange(30) % 3 if cost == "softmax" else X[:, :3]
    how: dict[str, Any] = {"batch_size": 10, "out": None, "seed": 5, "optimizer": optim.sgd, "rate": 0.01}
    near: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
    with options.change(mode="interpreted"):
        net = network(cost)
        Trainer(net, **how).train(X, targets, epochs=2)
        net.save(tmp_path / "net.graphc")
        loaded = graphc.load(tmp_path / "net.graphc")
        before = net.predict_probabilities(X) if cost == "softmax" else net.predict(X)
        rows = [Trainer(each, eval_size=10, **how).train(X, targets, epochs=2) for each in (net, loaded)]
        losses = [[(row.loss, row.score, row.eval_loss) for row in each] for each in rows]
        np.testing.assert_allclose(losses[1], losses[0], **near)
        for old, new in zip(net.get_values(), loaded.get_values(), strict=True):
            assert old.dtype == new.dtype
            np.testing.assert_allclose(new, old, **near)
        loaded.save(tmp_path / "again.graphc")
        again = graphc.load(tmp_path / "again.graphc")
        last = [Trainer(each, **how).train(X, targets)[-1].loss for each in (net, again)]
        np.testing.assert_allclose(last[1], last[0], **near)
        found = again.predict_proba(X) if cost == "softmax" else again.predict(X)
        assert np.abs(found - before).max() > 1e-3, "training changes what the loaded network predicts"


def test_a_network_whose_cost_is_the_programs_is_loaded_for_predictions(tmp_path: Path) -> None:
    as_op: Any = importlib.import_module("graphc.compile.ops").as_op
    ask = as_op([T.dmatrix, T.dmatrix], [T.dscalar], infer_shape=lambda node, shapes: [()])
    mine = ask(lambda output, target: np.asarray(((output - target) ** 2).sum()))
    with options.change(mode="interpreted"):
        net = network("norm").add_cost(mine)
        net.save(tmp_path / "net.graphc")
        loaded = graphc.load(tmp_path / "net.graphc")
        np.testing.assert_array_equal(loaded.predict(X), net.predict(X), strict=True)
        with pytest.raises(GraphValueError, match="saved for predictions only: .* a Python function of the program"):
            Trainer(loaded)


def imported(folder: Path, name: str) -> Any:
    """The function of an exported module."""
    spec: Any = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_a_network_is_exported(tmp_path: Path) -> None:
    net = network("softmax")
    net.export(tmp_path / "net", language="python")
    net.export(tmp_path / "chances", language="python", part="probabilities")
    for name, expected in (("net", net.predict(X)), ("chances", net.predict_probabilities(X))):
        np.testing.assert_allclose(imported(tmp_path, name)(X), expected, rtol=1e-12)
    assert {"net.h", "libnet.so"} <= {os.path.basename(path) for path in net.export(tmp_path / "c" / "net")}
    with pytest.raises(GraphcError, match="no part 'chances' of what predicts to export: it has predict, prob"):
        net.export(tmp_path / "net", part="chances")
    with pytest.raises(GraphValueError, match="the network has no cost"):
        Sequential().add_fc(2, 1).export(tmp_path / "none")
