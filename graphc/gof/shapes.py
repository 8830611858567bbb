"""Theano's `tensor.utils`: the shapes of what a graph computes, for inputs of given shapes.

In: a `FunctionGraph`, shapes. Out: the shape of each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.values import Array
from graphc.errors import ArgumentError
from graphc.function import function
from graphc.gof.fg import FunctionGraph
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ir.walk import as_size_node

__all__ = ["shape_of_variables"]


def shape_of_variables(fgraph: FunctionGraph, input_shapes: Mapping[Node, Sequence[int]]) -> dict[Node, Any]:
    """The shape of each variable of a graph, a tuple of 0-d arrays, for inputs of these shapes. Nothing is computed but
    sizes; those that follow from values are taken of inputs that are 0.

    Raises ArgumentError for an input without a shape.
    """
    missing = [each for each in fgraph.inputs if each not in input_shapes]
    if missing:
        raise ArgumentError(f"shape_of_variables: no shape is given for {', '.join(map(describe, missing))}")
    nodes = [each for each in fgraph.variables if not each.is_tuple]
    sizes = [as_size_node(size) for each in nodes for size in each.type.shape]
    find = function(fgraph.inputs, sizes, mode="interpreted", on_unused_input="ignore")
    values: list[Array] = [
        np.broadcast_to(np.zeros((), each.dtype), tuple(input_shapes[each])) for each in fgraph.inputs
    ]
    found = iter(find(*values))
    return {each: tuple(next(found) for _ in each.type.shape) for each in nodes}


explain_all(globals())
