"""Theano's place for shared variables of tensors, as in `isinstance(v, T.sharedvar.SharedVariable)`.

In: nothing. Out: the class under its names; there is one for all ranks.
"""

from graphc.shared import SharedVariable, shared

TensorSharedVariable = ScalarSharedVariable = SharedVariable

__all__ = ["ScalarSharedVariable", "SharedVariable", "TensorSharedVariable", "shared"]
