"""Layers of neural networks: objects with parameters, thin over the functions of `graphc.tensor`.

In: sizes, initialisers, a seed. Out: layers, which map a tensor to a tensor; `Sequential`, a chain of layers with a
cost and predictions, which `graphc.train.Trainer` trains. A layer makes its parameters, shared variables of float32, at
the first call, from the static sizes of its input.

    dense = Dense(10, activation="relu")
    y = dense(T.matrix("x", shape=(None, 64)))     y: float32[?, 10]; dense.w: float32[64, 10], dense.b: float32[10]

Read layer.py, then standard.py, then sequential.py; initial.py has the initialisers.
"""

from graphc.ir.call_errors import explain_all
from graphc.layers import initial
from graphc.layers.layer import Layer
from graphc.layers.sequential import Cost, Sequential
from graphc.layers.standard import (
    GRU,
    LSTM,
    Activation,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    Pool,
    PReLU,
    Recurrent,
)

__all__ = [
    "GRU", "LSTM", "Activation", "BatchNorm", "Conv", "Cost", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm",
    "InstanceNorm", "Layer", "LayerNorm", "PReLU", "Pool", "Recurrent", "Sequential", "initial",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


explain_all(globals())
