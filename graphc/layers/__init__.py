"""Layers of neural networks: objects with parameters, thin over the functions of `graphc.tensor`.

In: sizes, initialisers, a seed. Out: layers, which map a tensor to a tensor; `Sequential`, a chain of layers with a
cost and predictions, which `graphc.train.Trainer` trains. A layer makes its parameters, shared variables of float32, at
the first call, from the static sizes of its input.

    dense = Dense(10, activation="relu")
    y = dense(T.matrix("x", shape=(None, 64)))     y: float32[?, 10]; dense.w: float32[64, 10], dense.b: float32[10]

Read standard.py, then sequential.py; initial.py has the initialisers.
"""

from graphc.ir.call_errors import explain_all
from graphc.layers import initial as initial, standard
from graphc.layers.sequential import Cost as Cost, Sequential as Sequential
from graphc.layers.standard import *  # noqa: F403

__all__ = ["Cost", "Sequential", "initial"]
__all__ += standard.__all__


def __dir__() -> list[str]:
    return sorted(__all__)


explain_all(globals())
