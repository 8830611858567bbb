"""A training from a file goes on as if it had never ended, to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import optim
from graphc.errors import GraphValueError
from graphc.layers import Sequential
from graphc.options import options
from graphc.train import Trainer

X = np.random.default_rng(3).normal(size=(30, 4))
CLASSES = np.arange(30) % 3


def trainer(**how: Any) -> Trainer:
    """Layers with statistics and a stream of their own, an optimiser with means and a number of steps."""
    net = Sequential(dtype="float64", seed=1).add_fc(4, 6, "relu", normalize=True, dropout=0.3)
    given: dict[str, Any] = {"optimizer": optim.adam, "rate": 0.01, "batch_size": 8, "seed": 5, "out": None, **how}
    return Trainer(net.add_fc(6, 3).add_cost("softmax"), **given)


def told(made: Trainer) -> list[tuple[Any, ...]]:
    """All of the table but the seconds, NaN as a text."""
    return [tuple(map(repr, (getattr(row, name) for name in row.__match_args__[:-1]))) for row in made.history]


def assert_same(one: Trainer, other: Trainer) -> None:
    assert told(one) == told(other)
    for old, new in zip(one._variables(), other._variables(), strict=True):
        assert old.name == new.name
        np.testing.assert_array_equal(new.get_value(), old.get_value(), strict=True)
    np.testing.assert_array_equal(other.model.predict(X), one.model.predict(X), strict=True)


@pytest.mark.parametrize(
    "how",
    [
        {"clip_norm": 0.5, "l2": 1e-3},
        {"optimizer": optim.rmsprop, "eval_size": 6, "patience": 2, "rate": 0.3},
        {"optimizer": optim.momentum, "eval_every": 1},
    ],
    ids=["adam", "rmsprop with patience", "momentum"],
)
def test_a_training_goes_on_to_the_bit(how: dict[str, Any], tmp_path: Path) -> None:
    with options.change(mode="interpreted"):
        whole, begun = trainer(**how), trainer(**how)
        whole.train(X, CLASSES, epochs=5)
        begun.train(X, CLASSES, epochs=2)
        begun.save(tmp_path / "run.graphc", values="beside")
        for epochs in (3, 5):  # what goes on is saved again
            loaded = graphc.load(tmp_path / "run.graphc")
            loaded.out = None
            loaded.train(X, CLASSES, epochs=epochs)
            loaded.save(tmp_path / "run.graphc")
        assert_same(whole, loaded)
        assert (whole.best is None) == (loaded.best is None) and whole.at == loaded.at


def test_a_training_that_is_saved_when_a_row_is_told_goes_on(tmp_path: Path) -> None:
    """In the middle of an epoch, and after its last batch."""
    with options.change(mode="interpreted"):
        whole = trainer(eval_every=2)
        whole.train(X, CLASSES, epochs=3)
        saved = trainer(eval_every=2)
        saved.out = lambda line: saved.save(tmp_path / f"{len(saved.history)}.graphc") if saved.history else None
        saved.train(X, CLASSES, epochs=2)
        for number in (1, 2, 3):
            loaded = graphc.load(tmp_path / f"{number}.graphc")
            loaded.out = None
            loaded.train(X, CLASSES, epochs=3)
            assert_same(whole, loaded)


def test_a_rate_of_the_program_is_asked_for(tmp_path: Path) -> None:
    schedule = optim.cosine(0.02, 30)
    with options.change(mode="interpreted"):
        whole, begun = trainer(rate=schedule), trainer(rate=schedule)
        whole.train(X, CLASSES, epochs=2)
        begun.train(X, CLASSES, epochs=1)
        begun.save(tmp_path / "run.graphc")
        loaded = graphc.load(tmp_path / "run.graphc")
        loaded.out = None
        with pytest.raises(GraphValueError, match=r"was a function of the program, .*: set trainer.schedule"):
            loaded.train(X, CLASSES, epochs=2)
        loaded.schedule = schedule
        loaded.train(X, CLASSES, epochs=2)
        assert_same(whole, loaded)


GO_ON = """
    import sys
    import numpy as np, graphc
    trainer = graphc.load(sys.argv[1] + "/run.graphc", recompile=False)
    assert not {"numba", "graphc.layers", "graphc.optimizers"} & set(sys.modules)
    trainer.out = None
    x = np.random.default_rng(3).normal(size=(30, 4))
    trainer.train(x, np.arange(30) % 3, epochs=4)
    assert graphc.compilations() == 0
    np.savez(sys.argv[1] + "/found.npz", *[each.get_value() for each in trainer._variables()], trainer.model.predict(x))
"""


@pytest.mark.slow
def test_another_process_goes_on_with_the_code_of_the_file(tmp_path: Path) -> None:
    whole, begun = trainer(), trainer()
    whole.train(X, CLASSES, epochs=4)
    begun.train(X, CLASSES, epochs=1)
    begun.save(tmp_path / "run.graphc")
    program = [sys.executable, "-c", textwrap.dedent(GO_ON), str(tmp_path)]
    environment = {**os.environ, "GRAPHC_CACHE": "off"}
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "found.npz") as found:
        expected = [each.get_value() for each in whole._variables()]
        for old, new in zip([*expected, whole.model.predict(X)], found.values(), strict=True):
            np.testing.assert_array_equal(new, old, strict=True)
