"""Layers: parts of networks that have parameters of their own, thin over the functions of `graphc.tensor`.

In: sizes, initialisers, a seed. Out: objects that are called with a tensor and give one; `Sequential`, a chain of them
with a cost and predictions, which `graphc.train.Trainer` trains. A layer makes its parameters, shared variables of
float32, when it is first called, from the sizes that its input is known to have.

Read layer.py, then dense.py or recurrent.py, then sequential.py. Initialisers are functions of a shape and a generator
of NumPy's (initial.py).
"""

from graphc.ir.call_errors import explain_all
from graphc.layers import initial
from graphc.layers.dense import (
    Activation,
    BatchNorm,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    PReLU,
)
from graphc.layers.layer import Layer
from graphc.layers.recurrent import GRU, LSTM, Recurrent
from graphc.layers.sequential import Cost, Sequential
from graphc.layers.spatial import Conv, Pool

__all__ = [
    "GRU", "LSTM", "Activation", "BatchNorm", "Conv", "Cost", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm",
    "InstanceNorm", "Layer", "LayerNorm", "PReLU", "Pool", "Recurrent", "Sequential", "initial",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


explain_all(globals())
