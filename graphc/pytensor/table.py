"""PyTensor's ops of tensors as functions of nodes, a row for each (tensors.py, matrices.py, loops.py).

In: an Apply of PyTensor and its operands: nodes, or what stands in its place where PyTensor has no tensor (slices,
None). Out: a node for each of its results. Rows are found by the name of an op's class, or of one that it derives from.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

import graphc.tensor as T
from graphc.ir.interpret import interpret
from graphc.ir.node import LEAVES, Node, constant_value
from graphc.ir.walk import Graph
from graphc.pytensor.unknown import Unknown

Row: TypeAlias = Callable[..., Any]
ROWS: dict[str, Row] = {}
NESTED: set[Row] = set()
"""Rows that convert graphs within ops, and take the table too."""


def row(*names: str, nested: bool = False) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(names, function))
        if nested:
            NESTED.add(function)
        return function

    return add


class Table:
    """The rows, some of them replaced by those given."""

    def __init__(self, **replaced: Row) -> None:
        self.rows = ChainMap(replaced, ROWS)
        self.found: dict[type, Row] = {}

    def row_of(self, kind: type) -> Row:
        """The row of an op's class, or of one that it derives from."""
        if kind not in self.found:
            name = next((base.__name__ for base in kind.__mro__ if base.__name__ in self.rows), None)
            if name is None:
                raise Unknown(kind.__name__)
            self.found[kind] = self.rows[name]
        return self.found[kind]

    def convert(self, apply: Any, args: Sequence[Any]) -> list[Any]:
        """The values of an Apply's results; raises Unknown where they are PyTensor's to compute."""
        function = self.row_of(type(apply.op))
        made = function(apply, list(args), self) if function in NESTED else function(apply, list(args))
        results = made if isinstance(made, list) else [made]
        return [folded(held(value, out.type), args) for value, out in zip(results, apply.outputs, strict=True)]

    def values_of(self, outputs: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
        """The nodes of a graph's outputs, where those of its inputs are given; raises Unknown where PyTensor would have
        to compute a part."""
        for apply in applys(list(values), outputs):
            args = [values[arg] if arg in values else constant(arg) for arg in apply.inputs]
            values.update(zip(apply.outputs, self.convert(apply, args), strict=True))
        return [values[out] if out in values else constant(out) for out in outputs]


def known(value: Any) -> Any:
    """The number of a constant scalar, else the value itself."""
    constant = constant_value(value) if isinstance(value, Node) and not value.ndim else None
    return value if constant is None else constant.item()


def held(value: Any, kind: Any) -> Any:
    """A value of the dtype and with the static sizes that PyTensor gives it."""
    if not isinstance(value, Node):
        return value
    if value.dtype != kind.dtype:
        value = T.cast(value, kind.dtype)
    own = value.type.shape
    sizes = getattr(kind, "shape", ())
    if any(size is not None and not isinstance(there, int) for size, there in zip(sizes, own, strict=True)):
        value = T.specify_shape(value, sizes)
    return value


CONSTANT_KINDS = (np.ndarray, np.generic, int, float, bool)
"""What a constant may hold that becomes a node; None and slices stay as they are."""


def applys(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[Any]:
    """The Applys that compute outputs from inputs, each after those whose results it takes."""
    done, pending = set(inputs), list(reversed(outputs))
    while pending:
        variable = pending[-1]
        apply = variable.owner
        if variable in done or apply is None:
            done.add(variable)
            pending.pop()
            continue
        left = [arg for arg in apply.inputs if arg not in done]
        if left:
            pending += reversed(left)
            continue
        done.update(apply.outputs)
        yield apply
        pending.pop()


def folded(value: Any, args: Sequence[Any]) -> Any:
    """A value that is computed of constants, where it is no larger than they are: a constant."""
    if not isinstance(value, Node) or value.op in LEAVES or not args:
        return value
    arrays = [constant_value(arg) if isinstance(arg, Node) else None for arg in args]
    most = sum(array.size for array in arrays if array is not None)
    sizes = [size for size in value.type.shape if isinstance(size, int)]
    if any(array is None for array in arrays) or len(sizes) < value.ndim or prod(sizes) > most:
        return value
    return T.constant(interpret(Graph((), (value,)), {})[0], dtype=value.dtype)


def constant(variable: Any) -> Any:
    """The value of a constant: a node, a slice or None."""
    if not hasattr(variable, "data"):
        raise Unknown(f"{variable} is neither an input nor a constant")
    data = variable.data
    if isinstance(data, CONSTANT_KINDS):
        return held(T.constant(data, dtype=variable.type.dtype), variable.type)
    if data is None or isinstance(data, slice):
        return data
    raise Unknown(f"a constant of type {type(data).__name__}")
