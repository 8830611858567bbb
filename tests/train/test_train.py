"""The trainer: its numbers against NumPy's, its table and its pictures, checkpoints that survive a kill; preprocessing;
scikit-learn's checks of estimators."""

from __future__ import annotations

import os
import random
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA as OtherPCA  # noqa: N811 - two of one name
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import graphc
import graphc.tensor as T
from graphc import layers, optim, preprocess, train
from graphc.errors import GraphValueError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = (X[:, :1] * 2 - X[:, 1:2]) + 0.5


def linear(**more: Any) -> layers.Sequential:
    return layers.Sequential(dtype="float64", **more).add_fc(3, 1).add_cost("norm")


@pytest.mark.slow
def test_a_training_is_numpys() -> None:
    net = linear(seed=3)
    w, b = (param.get_value() for param in net.params)
    trainer = train.Trainer(net, optim.sgd, lambda step: 0.1 / (1 + step), 16, clip_norm=0.5, seed=5, out=None)
    rows = trainer.train(X, Y, epochs=2, validation=(X[:7], Y[:7]))
    step, losses = 0, []
    for epoch in range(2):
        order, sums = np.random.default_rng((5, epoch)).permutation(50), 0.0
        for begin in range(0, 50, 16):
            x, y = X[order[begin : begin + 16]], Y[order[begin : begin + 16]]
            error = x @ w + b - y
            gradients = [x.T @ error / len(x), error.mean(0)]
            norm = np.sqrt(sum((g**2).sum() for g in gradients))
            size = np.sqrt((w**2).sum() + (b**2).sum())
            sums += (error**2).sum() / 2
            w, b = (p - 0.1 / (1 + step) * g * min(1, 0.5 / norm) for p, g in zip((w, b), gradients, strict=True))
            step += 1
        losses.append(((X[:7] @ w + b - Y[:7]) ** 2).sum() / 14)
        assert rows[epoch].loss == pytest.approx(sums / 50) and rows[epoch].gradient == pytest.approx(norm)
        assert rows[epoch].parameters == pytest.approx(size) and rows[epoch].eval_loss == pytest.approx(losses[-1])
    np.testing.assert_allclose(net.params[0].get_value(), w, rtol=1e-12)
    assert [row.epoch for row in rows] == [1, 2] and rows[-1].batch == 8 and rows[-1].rate == pytest.approx(0.1 / 8)


@pytest.mark.slow
def test_its_table_and_its_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = train.Trainer(linear(), optim.adam, 0.05, 10, eval_size=0.2, eval_every=1, progress=True)
    trainer.train(X, Y, epochs=2)
    table, bar = capsys.readouterr()
    head, *lines = table.splitlines()
    assert head.split()[:4] == ["epoch", "batch", "loss", "score"] and len(lines) == 8 == len(trainer.history)
    assert all(len(line.split()) == 10 for line in lines) and "epoch" in bar
    trainer.plot(tmp_path / "training.png")
    assert (tmp_path / "training.png").stat().st_size > 10_000
    trainer.train(X, Y, epochs=3)
    assert len(trainer.history) == 12


@pytest.mark.slow
def test_it_stops_early_with_the_best() -> None:
    net = linear()
    trainer = train.Trainer(net, optim.sgd, lambda step: 0.1 if step < 40 else -0.5, 10, patience=3, out=None)
    rows = trainer.train(X, Y, 100, validation=(X, Y))
    losses = [row.eval_loss for row in rows]
    assert len(rows) < 20 and np.argmin(losses) == len(rows) - 4
    assert ((net.predict(X) - Y) ** 2).sum() / 100 == pytest.approx(min(losses))
    assert trainer.train(X, Y, 100) == rows


@pytest.mark.slow
def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(GraphValueError, match="50 examples and 49 targets"):
        train.Trainer(linear(), out=None).train(X, Y[1:])
    with pytest.raises(GraphValueError, match="leaves none on one side"):
        train.Trainer(linear(), eval_size=50, out=None).train(X, Y)
    with pytest.raises(GraphValueError, match="at least 1"):
        train.Trainer(linear(), batch_size=0)
    (tmp_path / "it.npz").write_bytes(b"spoilt")
    with pytest.raises(GraphValueError, match="no checkpoint"):
        train.Trainer(linear(), checkpoint=tmp_path / "it.npz", out=None).train(X, Y)
    train.Trainer(linear(), optim.sgd, checkpoint=tmp_path / "other.npz", out=None).train(X, Y)
    with pytest.raises(GraphValueError, match="another network"):
        train.Trainer(linear(), optim.adam, checkpoint=tmp_path / "other.npz", out=None).train(X, Y)


PROGRAM = """
import sys
import numpy as np
from graphc import layers, optim, train

rng = np.random.default_rng(0)
x, y = rng.normal(size=(200, 4)), rng.integers(0, 3, 200)
net = layers.Sequential(seed=2).add_fc(4, 16, "tanh", normalize=True, dropout=0.3).add_fc(16, 3).add_cost("softmax")
trainer = train.Trainer(
    net, optim.adam, optim.cosine(0.01, 400), 16, eval_size=40, eval_every=5, patience=1000, seed=7,
    checkpoint=sys.argv[1], checkpoint_every=3, out=lambda line: print("line", flush=True),
)
trainer.train(x, y, epochs=30)
rows = [[getattr(row, name) for name in train.Row.__annotations__ if name != "seconds"] for row in trainer.history]
np.savez(sys.argv[2], *net.get_values(), rows=np.array(rows))
"""


@pytest.mark.slow
def test_killed_at_random_it_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    def start(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "program.py", f"{name}.checkpoint", f"{name}.npz"]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)

    whole_one = start("whole")
    assert len(whole_one.communicate(timeout=300)[0].splitlines()) == 61 and whole_one.returncode == 0
    chance, kills = random.Random(4), 0
    while not (tmp_path / "killed.npz").exists() and kills < 3:
        process = start("killed")
        assert process.stdout is not None
        for _ in range(chance.randrange(3, 30)):
            process.stdout.readline()
        time.sleep(chance.random() * 0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        process.stdout.close()
        kills += 1
    (tmp_path / f".killed.checkpoint.{whole_one.pid}").write_bytes(b"half of it")
    last = start("killed")
    last.communicate(timeout=300)
    assert last.returncode == 0 and kills > 1
    assert not [*tmp_path.glob(".killed*")], "what a killed process was writing is removed"
    whole, killed = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "killed.npz")
    assert whole.files == killed.files and len(whole["rows"]) == 60
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], killed[name])


def test_a_file_is_whole_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.npz"
    train.save(path, {"a": np.arange(3)}, {"n": 1})
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        train.save(path, {"a": np.arange(9)}, {"n": 2})
    arrays, said = train.load(path)
    assert arrays["a"].tolist() == [0, 1, 2] and said == {"n": 1} and [*tmp_path.iterdir()] == [path]


def test_schedules_and_clipping() -> None:
    cosine = optim.cosine(1.0, 10, warmup=2, least=0.2)
    assert [round(cosine(step), 3) for step in (0, 1, 2, 6, 10, 99)] == [0.5, 1.0, 1.0, 0.6, 0.2, 0.2]
    assert optim.exponential(2.0, 0.5, 10)(5) == pytest.approx(2 * 0.5**0.5)
    assert optim.exponential(2.0, 0.5, 10, staircase=True)(19) == 1.0
    steps = optim.piecewise([3.0, 2.0, 1.0], [5, 8])
    assert [steps(step) for step in (0, 4, 5, 7, 8)] == [3, 3, 2, 2, 1]
    with pytest.raises(GraphValueError, match="piecewise"):
        optim.piecewise([1.0], [2])
    a, b = T.dvector("a"), T.fmatrix("b")
    outputs = [optim.norm([a, b]), *optim.clip_norm([a, b], 2.0), *optim.clip([a, b], 0.5)]
    f = graphc.function([a, b], outputs, mode="interpreted")
    norm, *clipped = f([3.0, 0.0], np.array([[4.0]], "float32"))
    assert norm == 5 and [each.round(6).ravel()[0] for each in clipped] == [1.2, np.float32(1.6), 0.5, 0.5]
    assert [each.ravel()[0] for each in f([0.3, 0.0], np.array([[0.4]], "float32"))[1:3]] == [0.3, np.float32(0.4)]
    with pytest.raises(GraphValueError, match="no tensors"):
        optim.norm([])


def test_preprocessing(tmp_path: Path) -> None:
    x = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 4)) + 3
    pca, other = preprocess.PCA(2).fit(x), OtherPCA(2, svd_solver="full").fit(x)
    np.testing.assert_allclose(np.abs(pca.transform(x)), np.abs(other.transform(x)), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(pca.variance, other.explained_variance_)
    np.testing.assert_allclose(preprocess.PCA().fit(x).inverse(preprocess.PCA().fit_transform(x)), x)
    assert len(preprocess.PCA(0.999).fit(x).components) <= 4 and len(preprocess.PCA(0.01).fit(x).components) == 1
    white = preprocess.Whiten(epsilon=0).fit(x)
    np.testing.assert_allclose(np.cov(white.transform(x).T), np.eye(4), atol=1e-10)
    zca = preprocess.Whiten(zca=True, epsilon=0).fit(x)
    factor = np.linalg.inv(np.linalg.cholesky(np.cov(x.T)))
    np.testing.assert_allclose(np.cov(zca.transform(x).T), factor @ np.cov(x.T) @ factor.T, atol=1e-8)
    np.testing.assert_allclose(zca.inverse(zca.transform(x)), x)
    v = T.fmatrix("v")
    symbolic = graphc.function([v], [zca.transform(v), zca.inverse(v)], mode="interpreted")(x.astype("float32"))
    assert symbolic[0].dtype == "float32"
    np.testing.assert_allclose(symbolic[0], zca.transform(x), rtol=1e-3, atol=1e-3)
    for refuse, error in (
        (lambda: preprocess.PCA().fit(x[:1]), GraphValueError),
        (lambda: preprocess.PCA(5).fit(x), GraphValueError),
        (lambda: pca.transform(x[:, :3]), ShapeError),
        (lambda: pca.export(tmp_path / "pca", part="fit"), GraphValueError),
    ):
        with pytest.raises(error):
            refuse()
    unfitted = preprocess.Whiten()
    for name in ("transform", "inverse", "export"):
        with pytest.raises(GraphValueError, match=rf"Whiten.{name} before fit: call fit\(x\) first"):
            getattr(unfitted, name)(x)
    for part, rows in (("transform", x), ("inverse", pca.transform(x))):
        (path,) = pca.export(tmp_path / f"as_{part}", language="python", part=part)
        made = runpy.run_path(path)[f"as_{part}"](rows)
        np.testing.assert_allclose(made, getattr(pca, part)(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [train.Classifier, train.Regressor])
@pytest.mark.filterwarnings("ignore")
def test_they_are_estimators(kind: Any) -> None:
    results = check_estimator(kind(epochs=8, rate=0.02), on_skip=None)
    assert len(results) > 40 and {result["status"] for result in results} == {"passed", "skipped"}


@pytest.mark.slow
def test_estimators() -> None:
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    net = train.Classifier((8,), epochs=60, rate=0.01, random_state=0, patience=50).fit(x, names)
    assert net.score(x, names) > 0.9 and net.predict_proba(x).shape == (150, 3) and set(net.predict(x)) <= {*names}
    twice = train.Regressor((8,), epochs=20, random_state=1).fit(x[:, :2], x[:, 2:])
    assert twice.predict(x[:5, :2]).shape == (5, 2) and twice.score(x[:, :2], x[:, 2:]) > 0.5
    search = GridSearchCV(train.Classifier(epochs=3, random_state=0), {"hidden": [(4,), ()]}, cv=2).fit(x, y)
    assert search.best_params_["hidden"] in ((4,), ())
