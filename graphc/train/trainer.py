"""Minibatches of examples through a step that moves parameters, with evaluation between.

In: a network (`graphc.layers.Sequential`, or any object with its `input`, `target`, `cost`, `output`, `objective`,
`params`, `state` and `updates`), an optimiser, arrays. Out: rows of a table, printed as they come.

The order of the examples of an epoch follows from the seed and its number, so that training goes on from a
checkpoint as if it had never ended: a checkpoint has the values of all shared variables of the step, random streams
and the optimiser's state among them, and the place in the epoch.

A checkpoint is a file in NumPy's format npz. It is written beside its place, flushed to the disk, and then renamed, so
that a reader finds the last or the previous file, whole, when the process is killed meanwhile.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from graphc import optim
from graphc.autodiff import grad
from graphc.errors import GraphValueError
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.ir.node import Node
from graphc.shared import SharedVariable, shared
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record, replace

# --- checkpoints ------------------------------------------------------------------------------------------------------

SAID = "said"
"""The name of the json text in the file."""


def save(path: str | Path, arrays: Mapping[str, Any], said: Any = None) -> None:
    """Write a file that `load` reads. arrays: {name: array}. said: data that json can write. If the process is killed
    meanwhile, the old file stays. Raises OSError where the file cannot be written."""
    place = Path(path)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    _clear(place)
    try:
        with beside.open("wb") as file:
            held: dict[str, Any] = {f"of {name}": array for name, array in arrays.items()}
            held[SAID] = np.array(json.dumps(said))
            np.savez(file, **held)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, is to be on the disk
    finally:
        os.close(folder)


def _clear(place: Path) -> None:
    """Remove unfinished files of processes that were killed."""
    prefix = f".{place.name}."
    for left in place.parent.iterdir():
        number = left.name.removeprefix(prefix)
        if left.name != number and number.isdecimal():
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)
            except OSError:  # it is another user's
                continue


def load(path: str | Path) -> tuple[dict[str, Any], Any]:
    """Return the arrays and the json data of a checkpoint. Raises GraphValueError for another file, OSError where there
    is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name.removeprefix("of "): file[name] for name in file.files if name != SAID}
            return arrays, json.loads(str(file[SAID]))
    except (ValueError, KeyError, EOFError) as error:
        raise GraphValueError(f"{path} is no checkpoint: {error}") from None


# --- training ---------------------------------------------------------------------------------------------------------


Optimiser = Callable[..., dict[SharedVariable, Node]]


@record()
class Row:
    """A row of the training table. epoch: the number of the current epoch, from 1. batch: the batches so far. loss,
    score: means over the batches since the row before. gradient, parameters: norms at the last batch. rate: the
    learning rate. eval_loss, eval_score: of the evaluation data, NaN without. seconds: since training began."""

    epoch: int
    batch: int
    loss: float
    score: float
    gradient: float
    parameters: float
    rate: float
    eval_loss: float = math.nan
    eval_score: float = math.nan
    seconds: float = 0.0


HEAD = f"{'epoch':>5} {'batch':>7} {'loss':>10} {'score':>8} {'eval loss':>10} {'eval':>8} {'|grad|':>9} {'|param|':>9}"
HEAD += f" {'rate':>9} {'seconds':>8}"


def line_of(row: Row) -> str:
    """A row as a line below `HEAD`."""
    losses, scores = (f"{row.eval_loss:.5f}", f"{row.eval_score:.4f}") if row.eval_loss == row.eval_loss else ("", "")
    text = f"{row.epoch:5d} {row.batch:7d} {row.loss:10.5f} {row.score:8.4f} {losses:>10} {scores:>8}"
    return text + f" {row.gradient:9.3g} {row.parameters:9.4g} {row.rate:9.3g} {row.seconds:8.1f}"


@record(frozen=False)
class Progress:
    """The progress of training, as a checkpoint keeps it."""

    epoch: int = 0
    batch: int = 0
    """The number of batches of this epoch that are done."""
    steps: int = 0
    loss: float = 0.0
    score: float = 0.0
    counted: int = 0
    """Examples since the last row, over which loss and score are summed."""
    best: float = math.inf
    waited: int = 0
    """The number of evaluations since the best."""
    ended: bool = False


class Trainer:
    """Trains a network in minibatches.

    optimizer: a function of `graphc.optim`, or one with the same arguments. rate: a number, or a function of the number
    of the step (`graphc.optim.cosine`). batch_size: examples of a batch; the last of an epoch may be smaller.
    eval_size: the number (or part, below 1) of the examples kept for evaluation, where `train` gets no evaluation data.
    eval_every: the batches between two rows; None for an epoch. metric: a function from output and target to a scalar
    node, in place of the score of the cost. clip_norm: an upper bound of the gradient's norm. l2: weight decay.
    patience: the evaluations without a smaller loss after which training ends, with the best parameters. checkpoint: a
    file, written every `checkpoint_every` batches (None: with each row); where it exists, training resumes from it.
    out: called with each line; None prints nothing. progress: show a bar of tqdm's.

    Raises GraphValueError for a `batch_size` below 1; `train` raises it for examples and targets of different numbers.

        net = Sequential(input_shape=(4,)).add(Dense(3)).add_cost("softmax")
        rows = Trainer(net, rate=0.01, out=None).train(x, classes, epochs=5)
        rows[-1].loss, rows[-1].score
    """

    def __init__(
        self,
        model: Any,
        optimizer: Optimiser = optim.adam,
        rate: float | optim.Schedule = 0.001,
        batch_size: int = 32,
        eval_size: float = 0,
        eval_every: int | None = None,
        metric: Callable[[Any, Any], Node] | None = None,
        clip_norm: float | None = None,
        l2: float = 0.0,
        patience: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        seed: int = 0,
        out: Callable[[str], object] | None = print,
        progress: bool = False,
    ) -> None:
        if batch_size < 1 or (eval_every is not None and eval_every < 1):
            raise GraphValueError(f"batch_size={batch_size} and eval_every={eval_every} are at least 1")
        self.model, self.optimizer, self.batch_size, self.eval_size = model, optimizer, batch_size, eval_size
        self.eval_every, self.clip_norm, self.l2, self.patience = eval_every, clip_norm, l2, patience
        if model.objective is None:
            raise GraphValueError(
                "the network has no cost: say what it is trained for, as Sequential(layers, cost='softmax') or "
                "network.add_cost('softmax')"
            )
        self.metric = metric or model.objective.score
        self.learning_rate = None if callable(rate) else float(rate)
        """The learning rate where it is a number; `schedule` gives that of each step."""
        self.schedule: optim.Schedule = rate if callable(rate) else lambda step: float(rate)
        self.rate = shared(np.asarray(self.schedule(0), model.dtype), "rate")
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.checkpoint_every, self.seed, self.out, self.progress = checkpoint_every, seed, out, progress
        self.history: list[Row] = []
        """All rows so far."""
        self.best: list[Any] | None = None
        """The values of parameters and states at the smallest loss of an evaluation."""
        self.at = Progress()
        self.began = perf_counter()

    # Functions ----------------------------------------------------------------------------------------------------

    @cached_property
    def step(self) -> Function:
        """The function of a training step: updates the parameters, and returns the loss and the score of the batch and
        the norms of gradient and parameters before the update."""
        model, cost = self.model, self.model.cost
        gradients = grad(cost, model.params)
        moved = gradients if self.clip_norm is None else optim.clip_norm(gradients, self.clip_norm)
        updates = {**self.optimizer(moved, model.params, self.rate, l2=self.l2), **model.updates}
        told = [cost, self.metric(model.trained_output, model.target), optim.norm(gradients), optim.norm(model.params)]
        return function([model.input, model.target], told, updates=updates, name="step")

    @cached_property
    def evaluate(self) -> Function:
        """The function that returns the loss and the score of examples."""
        model = self.model
        told = [model.objective.cost(model.output, model.target), self.metric(model.output, model.target)]
        return function([model.input, model.target], told, name="evaluate")

    # Training -----------------------------------------------------------------------------------------------------

    def train(self, x: Any, y: Any, epochs: int = 1, validation: tuple[Any, Any] | None = None) -> list[Row]:
        """Train until `epochs` epochs are done, earlier ones included, and return the rows of all of them.

        x: (n, …) examples; y: (n, …) targets; validation: a pair of both for evaluation. Raises GraphValueError for
        different numbers of examples and targets, for none, and for a checkpoint of another network.
        """
        inputs, targets = self._arrays(x, y)
        if validation is None and self.eval_size:
            (inputs, targets), validation = self._kept(inputs, targets)
        held = None if validation is None else self._arrays(*validation)
        if self.checkpoint is not None and self.checkpoint.exists():
            self._restore()
        self.began, at = perf_counter(), self.at
        if self.out and at.epoch < epochs and not at.ended:
            self.out(HEAD)
        bar = import_module("tqdm").tqdm(total=epochs, initial=at.epoch, unit="epoch") if self.progress else None
        while at.epoch < epochs and not at.ended:
            self._epoch(inputs, targets, held)
            if bar is not None:
                bar.update()
        if bar is not None:
            bar.close()
        if self.patience is not None and self.best is not None:
            self.model.set_values(self.best)
        return self.history

    def _epoch(self, inputs: Any, targets: Any, held: tuple[Any, Any] | None) -> None:
        """Run the rest of an epoch; stop where patience ends."""
        at = self.at
        if at.batch * self.batch_size >= len(inputs):  # of a training that was saved when its last row was told
            at.epoch, at.batch = at.epoch + 1, 0
            return
        for picked in self._batches(len(inputs)):
            last = (at.batch + 1) * self.batch_size >= len(inputs)
            self._batch(inputs[picked], targets[picked])
            told = at.batch % self.eval_every == 0 if self.eval_every else last
            if told:
                self._row(held)
            if last:
                at.epoch, at.batch = at.epoch + 1, 0
            every = self.checkpoint_every
            if self.checkpoint is not None and (told if every is None else at.steps % every == 0):
                self._save()
            if at.ended:
                return

    def _arrays(self, x: Any, y: Any) -> tuple[Any, Any]:
        inputs, targets = np.asarray(x, self.model.input.dtype), np.asarray(y, self.model.target.dtype)
        if not len(inputs) or len(inputs) != len(targets):
            raise GraphValueError(f"there are {len(inputs)} examples and {len(targets)} targets")
        return inputs, targets

    def _kept(self, x: Any, y: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Split the examples at random, by the seed, into those for training and those for evaluation."""
        count = int(self.eval_size if self.eval_size >= 1 else round(self.eval_size * len(x)))
        if not 0 < count < len(x):
            raise GraphValueError(f"eval_size={self.eval_size} of {len(x)} examples leaves none on one side")
        order = np.random.default_rng((self.seed, 2**31)).permutation(len(x))
        train, held = order[count:], order[:count]
        return (x[train], y[train]), (x[held], y[held])

    def _batches(self, count: int) -> Iterator[Any]:
        """The indices of the examples of each batch that is left in this epoch."""
        order = np.random.default_rng((self.seed, self.at.epoch)).permutation(count)
        for begin in range(self.at.batch * self.batch_size, count, self.batch_size):
            yield order[begin : begin + self.batch_size]

    def _batch(self, x: Any, y: Any) -> None:
        at = self.at
        rate = self.schedule(at.steps)
        self.rate.set_value(np.asarray(rate, self.rate.type.dtype))
        loss, score, self._gradient, self._parameters = (float(each) for each in self.step(x, y))
        at.loss, at.score = at.loss + loss * len(x), at.score + score * len(x)
        at.counted, at.batch, at.steps = at.counted + len(x), at.batch + 1, at.steps + 1

    def _row(self, held: tuple[Any, Any] | None) -> None:
        at = self.at
        row = Row(
            at.epoch + 1,
            at.steps,
            at.loss / at.counted,
            at.score / at.counted,
            self._gradient,
            self._parameters,
            float(self.rate.get_value()),
            seconds=perf_counter() - self.began,
        )
        if held is not None:
            loss, score = (float(each) for each in self.evaluate(*held))
            row = replace(row, eval_loss=loss, eval_score=score)
            at.waited += 1
            if loss < at.best:
                at.best, at.waited = loss, 0
                self.best = self.model.get_values() if self.patience is not None else None
            at.ended = self.patience is not None and at.waited >= self.patience
        at.loss = at.score = 0.0
        at.counted = 0
        self.history.append(row)
        if self.out:
            self.out(line_of(row))

    # Files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write the training to a file. `graphc.load(path)` is a trainer that goes on as this one would, to the bit:
        with the optimiser's state, random streams and the table so far. Its `model` predicts; it prints its table
        unless its `out` is set to None. values, targets: as `Function.save`.

        A learning rate that is a function of the step is not in the file: set `trainer.schedule` after loading. Raises
        GraphValueError for a network or a metric that calls Python functions of the program.

            trainer.save("run.graphc")
            graphc.load("run.graphc").train(x, y, epochs=10)
        """
        import_module("graphc.functions.saved_networks").save_trainer(self, path, values, targets)

    def state(self) -> dict[str, Any]:
        """Return how far the training is, the table and the settings, of numbers and text."""
        return {
            "learning_rate": self.learning_rate,
            "settings": {name: getattr(self, name) for name in SETTINGS},
            **self._told(),
        }

    # Checkpoints --------------------------------------------------------------------------------------------------

    def _variables(self) -> list[SharedVariable]:
        """All shared variables that a step reads or updates."""
        return list(dict.fromkeys((*self.step.shared, *self.model.params, *self.model.state)))

    def _save(self) -> None:
        assert self.checkpoint is not None
        values = {f"{n} {v.name or ''}": v.get_value(borrow=True) for n, v in enumerate(self._variables())}
        best = {f"best {n}": value for n, value in enumerate(self.best or ())}
        save(self.checkpoint, values | best, {**self._told(), "best": len(best)})

    def _told(self) -> dict[str, Any]:
        """Return the progress and the table in JSON."""
        return {
            "progress": {name: getattr(self.at, name) for name in Progress.__annotations__},
            "rows": [[getattr(row, name) for name in Row.__annotations__] for row in self.history],
        }

    def _take(self, said: Mapping[str, Any]) -> None:
        self.at = Progress(**said["progress"])
        self.history = [Row(*values) for values in said["rows"]]

    def _restore(self) -> None:
        assert self.checkpoint is not None
        arrays, said = load(self.checkpoint)
        for number, variable in enumerate(self._variables()):
            name = f"{number} {variable.name or ''}"
            if name not in arrays or arrays[name].shape != variable.get_value(borrow=True).shape:
                raise GraphValueError(
                    f"{self.checkpoint} is of another network: it has no {variable!r} like this one's"
                )
            variable.set_value(arrays[name])
        self._take(said)
        self.best = [arrays[f"best {number}"] for number in range(said["best"])] or None

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure of loss, scores and norms over the batches, by matplotlib; saved where a path is given."""
        return plot(self.history, path)


SETTINGS = (
    *("batch_size", "eval_size", "eval_every", "clip_norm", "l2", "patience", "checkpoint_every", "seed", "progress"),
)
"""The arguments of a trainer that stand in a file as they are."""


def resumed(model: Any, state: Mapping[str, Any], parts: Mapping[str, Any]) -> Trainer:
    """Return a trainer from what a file has: its state, and its functions, its rate and its best values by name."""
    rate = state["learning_rate"]
    made = Trainer(model, rate=rate or 0.0, **state["settings"])
    if rate is None:
        made.learning_rate, made.schedule = None, _absent
    vars(made).update(parts)
    made._take(state)
    return made


def _absent(step: int) -> float:
    raise GraphValueError(
        "the learning rate of this training was a function of the program, which no file has: set trainer.schedule"
    )


HOOKS.resumed_trainer = resumed

# pictures -------------------------------------------------------------------------------------------------------------

PANELS = (
    ("loss", (("training", "loss"), ("evaluation", "eval_loss")), "log"),
    ("score", (("training", "score"), ("evaluation", "eval_score")), "linear"),
    ("norm", (("gradient", "gradient"), ("parameters", "parameters")), "log"),
)


def plot(history: Sequence[Row], path: str | Path | None = None) -> Any:
    """Return a figure with panels for loss, score and norms, by matplotlib; saved where a path is given. Raises
    OSError where the file cannot be written."""
    figure = import_module("matplotlib.figure").Figure(figsize=(12, 3.6), layout="constrained")
    panels(figure, history)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def panels(figure: Any, history: Sequence[Row]) -> None:
    """Draw the panels in a figure, or in a part of one."""
    batches = [row.batch for row in history]
    for axes, (title, lines, scale) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for label, name in lines:
            values = [getattr(row, name) for row in history]
            if not all(map(math.isnan, values)):
                axes.plot(batches, values, label=label)
        axes.set(title=title, xlabel="batches", yscale=scale)
        axes.grid(alpha=0.3)
        axes.legend()
