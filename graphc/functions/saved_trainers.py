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

from collections.abc import Sequence
from typing import Any

from graphc.errors import GraphValueError
from graphc.functions.archive import Opened, Place, blobs_for
from graphc.functions.loaded import restored_function
from graphc.functions.saved import function_row, write
from graphc.functions.saved_networks import Network, prediction_functions, prediction_rows, training_row
from graphc.startup.hooks import HOOKS


def save(trainer: Any, path: Place, values: str, targets: Sequence[str]) -> None:
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
        "best": [blobs.add_array(value) for value in trainer.best or ()],
        "state": trainer.state(),
    }
    write(path, header, blobs, targets)


def restored_trainer(opened: Opened, recompile: bool) -> Any:
    """Return the trainer of a file."""
    header = opened.header
    parts = {
        "step": restored_function(opened, header["step"], recompile),
        "evaluate": restored_function(opened, header["evaluate"], recompile),
        "rate": opened.variable(header["rate"]),
        "best": [opened.array(row).copy() for row in header["best"]] or None,
    }
    model = Network(opened, prediction_functions(opened, recompile))
    return HOOKS.resumed_trainer(model, header["state"], parts)


HOOKS.restored_trainer = restored_trainer
