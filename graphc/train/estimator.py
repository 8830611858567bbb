"""Networks as estimators of scikit-learn: `fit`, `predict`, `predict_proba`, `score`, in pipelines and searches.

In: arrays, as scikit-learn's own estimators take them. Out: `Classifier` and `Regressor`, dense networks whose layers
are said by their sizes. Features are standardised. Code is compiled for any sizes: a second fit compiles nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from graphc.layers.sequential import Sequential
from graphc.train.trainer import Trainer


class _Network(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """The base of both estimators. hidden: the sizes of the hidden layers; activation, normalize, dropout: of these.
    Other parameters as in `Trainer`."""

    def __init__(
        self,
        hidden: Sequence[int] = (100,),
        activation: str = "relu",
        normalize: bool = False,
        dropout: float = 0.0,
        epochs: int = 100,
        batch_size: int = 32,
        rate: float = 0.003,
        l2: float = 1e-4,
        patience: int | None = None,
        eval_size: float = 0.1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.normalize = normalize
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.rate = rate
        self.l2 = l2
        self.patience = patience
        self.eval_size = eval_size
        self.random_state = random_state
        self.verbose = verbose

    def _train(self, x: Any, targets: Any, outputs: int, cost: str) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.mean_, deviation = x.mean(0), x.std(0)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        net = Sequential(dtype="float64", seed=seed, static=False)
        sizes = (x.shape[1], *self.hidden, outputs)
        for before, after in pairwise(sizes[:-1]):
            net.add_fc(before, after, self.activation, self.normalize, self.dropout)
        self.network_ = net.add_fc(sizes[-2], outputs).add_cost(cost)
        trainer = Trainer(
            net,
            rate=self.rate,
            batch_size=min(self.batch_size, len(x)),
            eval_size=self.eval_size if self.patience is not None else 0,
            patience=self.patience,
            l2=self.l2,
            seed=seed,
            out=print if self.verbose else None,
        )
        trainer.train(self._scaled(x), targets, self.epochs)
        self.history_ = trainer.history
        self.n_iter_ = trainer.at.epoch

    def save(self, path: Any, values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write what predicts to a file: `graphc.load(path)` has `predict`, and of a classifier `predict_proba`, in any
        process, without scikit-learn. values, targets: as `Function.save`. Raises NotFittedError before `fit`."""
        check_is_fitted(self)
        write = import_module("graphc.functions.saved_networks").save
        write(self.network_, path, values, targets, *self._around())

    def export(
        self,
        path: Any,
        language: str = "c",
        part: str = "predict",
        target: str | None = None,
        blas: bool = False,
        strided: Any = (),
    ) -> list[str]:
        """Write what predicts as a C library, or as a Python module, and return the paths of the files. It takes
        examples as they are, of float64, and standardises them itself. part: "predict", or of a classifier
        "probabilities", what `predict_proba` returns. The other arguments, and errors, are those of `Function.export`.

        Where the classes are texts, "predict" gives their places in a table, `model_classes` in the header and
        `classes` in the module. Raises NotFittedError before `fit`; GraphcError for another part.

            model.export("lib/model")                                lib/model.h, lib/libmodel.so and others
            model.export("lib/model", language="python")             model.py in lib
        """
        write: Any = import_module("graphc.functions.saved_networks").export
        check_is_fitted(self)
        written: list[str] = write(self.network_, path, part, (language, target, blas, strided), *self._around())
        return written

    def _around(self) -> tuple[dict[str, Any], Any, bool]:
        """Return what stands around the network: scales, the names of classes, and if predictions have no axis of
        outputs."""
        scales = {"mean": self.mean_, "scale": self.scale_}
        if hasattr(self, "y_mean_"):
            scales |= {"y_mean": self.y_mean_, "y_scale": self.y_scale_}
        return scales, getattr(self, "classes_", None), getattr(self, "outputs_", 0) == 1

    def _scaled(self, x: Any) -> Any:
        return (x - self.mean_) / self.scale_

    def _examples(self, x: Any) -> Any:
        check_is_fitted(self)
        return self._scaled(validate_data(self, x, reset=False, dtype="float64"))


class Classifier(ClassifierMixin, _Network):  # type: ignore[misc]
    """A dense network that predicts classes.

    `fit` raises ValueError for a single class, for NaN in `x`, and for `x` and `y` of different lengths;
    GraphValueError for an activation that is not there. `predict` raises NotFittedError before `fit`.

    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) // 10
    >>> Classifier(hidden=(8,), epochs=2, random_state=0).fit(x, y).predict(x).shape
    (20,)
    """

    def fit(self, x: Any, y: Any) -> Any:
        """Train on examples and their classes. Raises ValueError for less than two classes, or wrong arrays."""
        x, y = validate_data(self, x, y, dtype="float64")
        check_classification_targets(y)
        self.classes_, targets = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {self.classes_}")
        self._train(x, targets, len(self.classes_), "softmax")
        return self

    def predict(self, x: Any) -> Any:
        """The class of each example."""
        examples = self._examples(x)
        return self.classes_[self.network_.predict(examples)]

    def predict_proba(self, x: Any) -> Any:
        """The probability of each class, a row for each example."""
        examples = self._examples(x)
        return self.network_.predict_probabilities(examples)


class Regressor(RegressorMixin, _Network):  # type: ignore[misc]
    """A dense network that predicts one or several numbers for each example.

    `fit` raises ValueError for `x` and `y` of different lengths; `predict` raises NotFittedError before `fit`.

    >>> x = np.arange(40.0).reshape(20, 2)
    >>> Regressor(hidden=(8,), epochs=2, random_state=0).fit(x, x[:, 0]).predict(x).shape
    (20,)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, x: Any, y: Any) -> Any:
        """Train on examples and their numbers, (n) or (n, outputs). Raises ValueError for wrong arrays."""
        x, y = validate_data(self, x, y, dtype="float64", multi_output=True, y_numeric=True)
        targets = np.asarray(y, "float64").reshape(len(y), -1)
        self.outputs_ = y.ndim
        self.y_mean_, deviation = targets.mean(0), targets.std(0)
        self.y_scale_ = np.where(deviation > 0, deviation, 1.0)
        self._train(x, (targets - self.y_mean_) / self.y_scale_, targets.shape[1], "norm")
        return self

    def predict(self, x: Any) -> Any:
        """The numbers of each example."""
        examples = self._examples(x)
        found = self.network_.predict(examples) * self.y_scale_ + self.y_mean_
        return found[:, 0] if self.outputs_ == 1 else found
