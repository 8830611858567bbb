"""Scalar ops under their names, as Theano's `scalar` has them: `scalar.add`, `scalar.maximum`, `scalar.mul`, …

In: a name. Out: the op, for `Elemwise` and `CAReduce` (tensor/elemwise.py), which may also be applied to tensors.
"""

from __future__ import annotations

from graphc.ops.elementwise import ROWS
from graphc.tensor import elementary
from graphc.tensor.elemwise import ScalarOp

_OTHERS = "and_ or_ xor eq neq lt le gt ge inv switch int_div cast round_half_to_even round_half_away_from_zero psi sqr"


def __getattr__(name: str) -> ScalarOp:
    if name in ROWS or name in _OTHERS.split():
        return ScalarOp(name, getattr(elementary, name))
    raise AttributeError(f"graphc has no scalar op {name!r}")


def __dir__() -> list[str]:
    return sorted({*ROWS, *_OTHERS.split()})
