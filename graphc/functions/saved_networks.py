"""Trained networks, estimators and trainings as files: what predicts, without layers, training or scikit-learn.

In: a `Sequential` that was trained, or an estimator that was fitted. Out: a file; from it a `Predictor`, which gives
the same predictions to the bit. A network can be trained on.

    net.save("net.graphc")
    loaded = graphc.load("net.graphc")
    loaded.predict(x)                           as net.predict(x)
    Trainer(loaded).train(x, y)                 as Trainer(net).train(x, y): see training_row
    model.save("model.graphc")                  Classifier or Regressor
    graphc.load("model.graphc").predict(x)      as model.predict(x): features are standardised, classes have their names
    trainer.train(x, y, epochs=5)
    trainer.save("run.graphc")
    graphc.load("run.graphc").train(x, y, epochs=10)    five more epochs, as if training had never ended, to the bit

The step of a training is a function over shared variables: parameters, states of layers, random streams, Adam's means
and numbers of steps. All are values of the file, once each. The order of the examples follows from the seed and the
number of the epoch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphcError, GraphValueError
from graphc.functions.archive import Blobs, Opened, Place, blobs_for
from graphc.functions.callables import Function
from graphc.functions.loaded import restored_function
from graphc.functions.saved import function_row, write
from graphc.ir.node import Array, Node, variable
from graphc.ir.walk import substitute
from graphc.shared import Parameters, SharedVariable
from graphc.startup.hooks import HOOKS

# Writing


def save(
    net: Any,
    path: str | os.PathLike[str],
    values: str,
    targets: Sequence[str],
    scales: Mapping[str, Array] | None = None,
    classes: Any = None,
    is_flat: bool = False,
) -> None:
    """Write the functions of a network to a file. scales: of an estimator, the means and scales of features and
    results, by name. classes: the names of its classes. is_flat: its predictions have no axis of outputs."""
    blobs = blobs_for(values)
    header = {
        "kind": "network" if scales is None else "estimator",
        **prediction_rows(net, blobs),
        "scales": {name: blobs.add_array(np.asarray(value)) for name, value in (scales or {}).items()},
        "classes": None if classes is None else _classes(classes, blobs),
        "is_flat": is_flat,
        "training": None if scales is not None else training_row(net, blobs),
    }
    write(path, header, blobs, targets)


def export(
    net: Any,
    path: str | os.PathLike[str],
    part: str,
    options_: tuple[Any, ...],
    scales: Mapping[str, Array] | None = None,
    classes: Any = None,
    is_flat: bool = False,
) -> list[str]:
    """Write the files of one of the functions of a network or an estimator that predict. options_: language, target,
    blas, strided. The other arguments are those of `save`."""
    functions = {"predict": net._predict}
    if net.objective and net.objective.probabilities:
        functions["probabilities"] = net._probabilities
    return Predictor(functions, scales or {}, classes, is_flat).export(path, options_[0], part, *options_[1:])


def prediction_rows(net: Any, blobs: Blobs) -> dict[str, Any]:
    """Return the rows of the functions that predict."""
    objective = net.objective
    return {
        "predict": function_row(net._predict, blobs),
        "probabilities": function_row(net._probabilities, blobs) if objective and objective.probabilities else None,
    }


def training_row(net: Any, blobs: Blobs) -> dict[str, Any]:
    """Return what training needs: the graph of the outputs of prediction and of training, and that of the cost and the
    score over an output and a target; both without code, for they are parts of other functions. Else the reason."""
    objective, output = net.objective, net.output
    made = variable(
        output.type.dtype, [size if isinstance(size, int) else None for size in output.type.shape], "output"
    )
    asked = [objective.cost(made, net.target), objective.score(made, net.target)]
    make = import_module("graphc.functions.function").function
    how: dict[str, Any] = {"mode": "interpreted", "on_unused_input": "ignore"}
    try:
        return {
            "network": function_row(
                make([net.input], [output, net.trained_output], updates=net.updates, name="network", **how), blobs
            ),
            "costs": function_row(make([made, net.target], asked, name="costs", **how), blobs),
            "params": [blobs.add_variable(leaf) for leaf in net.params],
            "state": [blobs.add_variable(leaf) for leaf in net.state],
            "dtype": net.dtype,
        }
    except GraphcError as error:  # of an op of the program
        return {"reason": str(error)}


def _classes(names: Array, blobs: Blobs) -> dict[str, Any]:
    """Return what the header says of the classes: an array of numbers, or texts."""
    if names.dtype.name in DTYPES:
        return blobs.add_array(names)
    return {"texts": _texts(names), "dtype": names.dtype.str}


def _texts(names: Array) -> list[str]:
    texts: list[str] = names.tolist()
    if not all(type(each) is str for each in texts):
        raise GraphcError(f"classes of dtype {names.dtype} cannot be saved: these can be numbers or texts")
    return texts


# Reading


class Predictor:
    """A trained network or estimator as loaded from a file.

    functions: the compiled ones, by name: "predict" and, for classes, "probabilities". shared: the parameters.

        model = graphc.load("model.graphc")
        model.predict(x)
    """

    def __init__(
        self, functions: Mapping[str, Function], scales: Mapping[str, Array], classes: Array | None, is_flat: bool
    ) -> None:
        self.functions = dict(functions)
        self.scales = dict(scales)
        self.classes_ = classes
        self.is_flat = is_flat

    @property
    def shared(self) -> tuple[SharedVariable, ...]:
        """The parameters and states that predictions read."""
        return tuple(dict.fromkeys(leaf for each in self.functions.values() for leaf in each.shared))

    def predict(self, x: Any) -> Any:
        """Return the predictions for examples, as the network or the estimator that was saved does."""
        found = self._run("predict", x)
        if "y_mean" in self.scales:
            found = found * self.scales["y_scale"] + self.scales["y_mean"]
        if self.classes_ is not None:
            return self.classes_[found]
        return found[:, 0] if self.is_flat else found

    def predict_probabilities(self, x: Any) -> Any:
        """Return the probabilities of the classes, a row for each example. Raises GraphValueError for a network that
        has none."""
        return self._run("probabilities", x)

    predict_proba = predict_probabilities

    def export(
        self,
        path: str | os.PathLike[str],
        language: str = "c",
        part: str = "predict",
        target: str | None = None,
        blas: bool = False,
        strided: Any = (),
    ) -> list[str]:
        """Write what predicts as a C library or a Python module, as `Sequential.export` does. An estimator's takes
        examples as they are: the means and scales of features and results are constants in it. Of classes that are
        texts it gives the places, and the header and the module have the texts."""
        write: Any = import_module("graphc.functions.exported").export
        written: list[str] = write(self.whole(part), path, language, target, blas, strided, (), self.labels())
        return written

    def labels(self) -> tuple[str, ...]:
        """Return the classes where they are texts, which are no values of functions."""
        if self.classes_ is None or self.classes_.dtype.name in DTYPES:
            return ()
        return tuple(_texts(self.classes_))

    def whole(self, part: str) -> Function:
        """Return the function of a part from examples to predictions, without steps in Python. Raises GraphcError for
        a part that is not there."""
        function = self.functions.get(part)
        if function is None:
            known = ", ".join(self.functions)
            raise GraphcError(f"there is no part {part!r} of what predicts to export: it has {known}")
        if not self.scales:
            return function
        named = self.classes_ if part == "predict" and not self.labels() else None
        T: Any = import_module("graphc.tensor")  # noqa: N806 - as users write it
        x = variable("float64", (None, len(self.scales["mean"])), "x")
        examples: Any = (x - self.scales["mean"]) / self.scales["scale"]
        found: Any = substitute(function.kernel.outputs, {function.kernel.inputs[0]: examples})[0]
        if "y_mean" in self.scales:
            found = found * self.scales["y_scale"] + self.scales["y_mean"]
        if named is not None:
            found = T.constant(named)[found]
        if part == "predict" and self.is_flat:
            found = found[:, 0]
        make = import_module("graphc.functions.function").function
        made: Function = make([x], found, name=function.name)
        return made

    def _run(self, name: str, x: Any) -> Any:
        function = self.functions.get(name)
        if function is None:
            raise GraphValueError(f"what was saved has no {name}")
        examples = np.asarray(x, function.kernel.inputs[0].type.dtype)
        if "mean" in self.scales:
            examples = (examples - self.scales["mean"]) / self.scales["scale"]
        return function(examples)

    def __repr__(self) -> str:
        return f"<predictor of {self.functions['predict']!r}>"


class Costs:
    """The objective of a loaded network: its cost and its score, as functions of an output and a target."""

    def __init__(self, function: Function, probabilities: bool) -> None:
        self.function, self.probabilities = function, probabilities

    def cost(self, output: Node, target: Node) -> Node:
        """The scalar to minimise."""
        return self._over(0, output, target)

    def score(self, output: Node, target: Node) -> Node:
        """A scalar to report, larger for better."""
        return self._over(1, output, target)

    def _over(self, place: int, *given: Node) -> Node:
        kernel = self.function.kernel
        return substitute([kernel.outputs[place]], dict(zip(kernel.inputs, given, strict=True)))[0]


class Network(Predictor, Parameters):
    """A trained network as loaded from a file. It predicts, and `graphc.train.Trainer` trains it on: its parameters are
    the shared variables that predictions read. After that it can be saved again.

        net = graphc.load("net.graphc")
        Trainer(net, rate=0.001).train(x, y)
        net.save("better.graphc")

    What only training needs raises GraphValueError if the cost calls Python functions of the program.
    """

    def __init__(self, opened: Opened, functions: Mapping[str, Function]) -> None:
        super().__init__(functions, {}, None, False)
        self._opened = opened

    @cached_property
    def _training(self) -> Mapping[str, Any]:
        row: Mapping[str, Any] = self._opened.header["training"]
        if "reason" in row:
            raise GraphValueError(f"the network was saved for predictions only: {row['reason']}")
        made = {name: restored_function(self._opened, row[name], True) for name in ("network", "costs")}
        variables = {name: [self._opened.variable(number) for number in row[name]] for name in ("params", "state")}
        return {**row, **made, **variables}

    @property
    def input(self) -> Node:
        """The variable of a batch of examples."""
        return self._training["network"].kernel.inputs[0]

    @property
    def target(self) -> Node:
        """The variable of the targets of a batch."""
        return self._training["costs"].kernel.inputs[1]

    @property
    def output(self) -> Node:
        """The output for prediction."""
        return self._training["network"].kernel.outputs[0]

    @property
    def trained_output(self) -> Node:
        """The output in training."""
        return self._training["network"].kernel.outputs[1]

    @property
    def objective(self) -> Costs:
        """The cost and the score."""
        return Costs(self._training["costs"], "probabilities" in self.functions)

    @property
    def cost(self) -> Node:
        """The cost in training."""
        return self.objective.cost(self.trained_output, self.target)

    @property
    def params(self) -> list[SharedVariable]:
        """The parameters that an optimiser updates."""
        return self._training["params"]

    @property
    def state(self) -> list[SharedVariable]:
        """The shared variables that training updates without gradients."""
        return self._training["state"]

    @property
    def updates(self) -> dict[Node, Node]:
        """The updates of states and of random streams in training."""
        return dict(self._training["network"].kernel.updates)

    @property
    def dtype(self) -> str:
        """The dtype of the parameters."""
        return self._training["dtype"]

    @property
    def _predict(self) -> Function:
        return self.functions["predict"]

    @property
    def _probabilities(self) -> Function:
        return self.functions["probabilities"]

    def save(self, path: Any, values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write the network to a file, as `Sequential.save` does."""
        save(self, path, values, targets)


def prediction_functions(opened: Opened, recompile: bool) -> dict[str, Function]:
    """Return the functions that predict, by name."""
    return {
        name: restored_function(opened, opened.header[name], recompile)
        for name in ("predict", "probabilities")
        if opened.header[name] is not None
    }


def restored_network(opened: Opened, recompile: bool) -> Predictor:
    """Return the network or estimator of a file."""
    header = opened.header
    functions = prediction_functions(opened, recompile)
    if header["kind"] == "network":
        return Network(opened, functions)
    scales = {name: opened.array(row) for name, row in header["scales"].items()}
    named = header["classes"]
    classes = None
    if named is not None:
        classes = np.array(named["texts"], named["dtype"]) if "texts" in named else opened.array(named)
    return Predictor(functions, scales, classes, header["is_flat"])


HOOKS.restored_network = restored_network

# Trainings


def save_trainer(trainer: Any, path: Place, values: str, targets: Sequence[str]) -> None:
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
