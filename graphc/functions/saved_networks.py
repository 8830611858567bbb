"""Trained networks and estimators as files: what predicts, without layers, training or scikit-learn.

In: a `Sequential` that was trained, or an estimator that was fitted. Out: a file; from it a `Predictor`, which gives
the same predictions to the bit.

    net.save("net.graphc")
    graphc.load("net.graphc").predict(x)        as net.predict(x)
    model.save("model.graphc")                  Classifier or Regressor
    graphc.load("model.graphc").predict(x)      as model.predict(x): features are standardised, classes have their names
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphcError, GraphValueError
from graphc.functions.archive import Blobs, Opened, blobs_for
from graphc.functions.callables import Function
from graphc.functions.loaded import restored_function
from graphc.functions.saved import function_row, write
from graphc.ir.node import Array
from graphc.shared import SharedVariable
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
    objective = net.objective
    header = {
        "kind": "network" if scales is None else "estimator",
        "predict": function_row(net._predict, blobs),
        "probabilities": function_row(net._probabilities, blobs) if objective and objective.probabilities else None,
        "scales": {name: blobs.add_array(np.asarray(value)) for name, value in (scales or {}).items()},
        "classes": None if classes is None else _classes(classes, blobs),
        "is_flat": is_flat,
    }
    write(path, header, blobs, targets)


def _classes(names: Array, blobs: Blobs) -> dict[str, Any]:
    """Return what the header says of the classes: an array of numbers, or texts."""
    if names.dtype.name in DTYPES:
        return blobs.add_array(names)
    texts = names.tolist()
    if not all(type(each) is str for each in texts):
        raise GraphcError(f"classes of dtype {names.dtype} cannot be saved: these can be numbers or texts")
    return {"texts": texts, "dtype": names.dtype.str}


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


def restored_network(opened: Opened, recompile: bool) -> Predictor:
    """Return the network or estimator of a file."""
    header = opened.header
    functions = {
        name: restored_function(opened, header[name], recompile)
        for name in ("predict", "probabilities")
        if header[name] is not None
    }
    scales = {name: opened.array(row) for name, row in header["scales"].items()}
    named = header["classes"]
    classes = None
    if named is not None:
        classes = np.array(named["texts"], named["dtype"]) if "texts" in named else opened.array(named)
    return Predictor(functions, scales, classes, header["is_flat"])


HOOKS.restored_network = restored_network
