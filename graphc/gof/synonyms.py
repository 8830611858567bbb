"""Names that Theano has for what is one thing here: its modules find them through `graphc.startup.paths`.

In: nothing. Out: classes of shared variables, `cpu_contiguous`.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.shared import SharedVariable
from graphc.sparse.variable import sparse_shared

__all__ = ["ScalarSharedVariable", "TensorSharedVariable", "cpu_contiguous", "sparse_constructor"]

TensorSharedVariable = ScalarSharedVariable = SharedVariable
sparse_constructor = sparse_shared


def cpu_contiguous(x: Any) -> Node:
    """`x` itself: graphc decides on memory itself."""
    return as_node(x)
