"""Training: minibatches, evaluation, checkpoints, plots; and estimators for scikit-learn.

In: a network of `graphc.layers`, or anything with its nodes, and arrays. Out: parameters that were moved, and a table
of what happened. Read trainer.py. The estimators (estimator.py), which need scikit-learn, are
imported when they are named.
"""

from graphc.ir.call_errors import explain_all, explained
from graphc.startup.hooks import lazily
from graphc.train.trainer import Row, Trainer, load, plot, save

LAZY = {"estimator": "Classifier Regressor"}
"""The module that needs a package of its own, with the names that it gives."""
__getattr__ = lazily("graphc.train", LAZY, public=explained)
__all__ = ["Classifier", "Regressor", "Row", "Trainer", "load", "plot", "save"]


def __dir__() -> list[str]:
    return __all__


explain_all(globals())
