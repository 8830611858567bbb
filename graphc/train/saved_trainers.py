"""Trainings as files: the network, the step with the optimiser's state, and how far the training is.

In: a `Trainer`. Out: a file; from it a trainer that goes on as if training had never ended, to the bit, in a process
that has neither the layers nor the optimiser.

    trainer.train(x, y, epochs=5)
    trainer.save("run.graphc")
    trainer = graphc.load("run.graphc")      in this process or another one
    trainer.train(x, y, epochs=10)           five more epochs

The step is a function over shared variables: parameters, states of layers, random streams, Adam's means and numbers of
steps. All are values of the file, once each. The order of the examples follows from the seed and the number of the
epoch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.errors import GraphValueError
from graphc.functions.archive import Opened, blobs_for
from graphc.functions.loaded import restored_function
from graphc.functions.saved import function_row, write
from graphc.functions.saved_networks import Network, prediction_functions, prediction_rows, training_row
from graphc.startup.hooks import HOOKS
from graphc.train.trainer import Progress, Row, Trainer

SETTINGS = (
    *("batch_size", "eval_size", "eval_every", "clip_norm", "l2", "patience", "checkpoint_every", "seed", "progress"),
)
"""The arguments of a trainer that stand in the file as they are."""


def save(trainer: Trainer, path: str | os.PathLike[str], values: str, targets: Sequence[str]) -> None:
    """Write a trainer to a file. `Trainer.save` tells more."""
    blobs = blobs_for(values)
    training = training_row(trainer.model, blobs)
    if "reason" in training:
        raise GraphValueError(f"training cannot be saved: {training['reason']}")
    header = {
        "kind": "trainer",
        **prediction_rows(trainer.model, blobs),
        "training": training,
        "step": function_row(trainer.step, blobs),
        "evaluate": function_row(trainer.evaluate, blobs),
        "rate": blobs.add_variable(trainer.rate),
        "learning_rate": trainer.learning_rate,
        "settings": {name: getattr(trainer, name) for name in SETTINGS},
        "at": {name: getattr(trainer.at, name) for name in Progress.__annotations__},
        "rows": [[getattr(row, name) for name in Row.__annotations__] for row in trainer.history],
        "best": [blobs.add_array(value) for value in trainer.best or ()],
    }
    write(path, header, blobs, targets)


def restored_trainer(opened: Opened, recompile: bool) -> Trainer:
    """Return the trainer of a file."""
    header: Mapping[str, Any] = opened.header
    model = Network(opened, prediction_functions(opened, recompile))
    rate = header["learning_rate"]
    made = Trainer(model, rate=rate or 0.0, **header["settings"])
    if rate is None:
        made.learning_rate, made.schedule = None, _absent
    made.step = restored_function(opened, header["step"], recompile)
    made.evaluate = restored_function(opened, header["evaluate"], recompile)
    made.rate = opened.variable(header["rate"])
    made.at = Progress(**header["at"])
    made.history = [Row(*values) for values in header["rows"]]
    made.best = [opened.array(row).copy() for row in header["best"]] or None
    return made


def _absent(step: int) -> float:
    raise GraphValueError(
        "the learning rate of this training was a function of the program, which no file has: set trainer.schedule"
    )


HOOKS.restored_trainer = restored_trainer
