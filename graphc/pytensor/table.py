"""The table that converts ops of PyTensor to nodes of graphc, and its rows for scalar ops.

In: an Apply of PyTensor, and nodes for its inputs. Out: nodes for its outputs; `Unknown` where an op, or a form of it,
is not in the table, so that PyTensor has to compute it. rows.py has the rows of other ops.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import get_scalar_type

import graphc.tensor as T
from graphc.control.functional import while_loop
from graphc.ir.interpret import interpret
from graphc.ir.node import LEAVES, Node, constant_value
from graphc.ir.walk import Graph
from graphc.ops.derivative import overridden


class Unknown(Exception):
    """An op, or a form of it, that is not in the table; the message names it."""


# --- table ------------------------------------------------------------------------------------------------------------

Row: TypeAlias = Callable[..., Any]
ROWS: dict[str, Row] = {}
NESTED: set[Row] = set()
"""Rows of ops that contain graphs: they take the table as a third argument."""


def row(*names: str, nested: bool = False) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(names, function))
        if nested:
            NESTED.add(function)
        return function

    return add


class Table:
    """The rows by the name of the op's class, or of one of its base classes. replaced: rows in place of others."""

    def __init__(self, **replaced: Row) -> None:
        self.rows = ChainMap(replaced, ROWS)
        self.found: dict[type, Row] = {}

    def row_of(self, kind: type) -> Row:
        """Return the row of an op's class, or of a base class. Raises Unknown without one."""
        if kind not in self.found:
            name = next((base.__name__ for base in kind.__mro__ if base.__name__ in self.rows), None)
            if name is None:
                raise Unknown(kind.__name__)
            self.found[kind] = self.rows[name]
        return self.found[kind]

    def convert(self, apply: Any, args: Sequence[Any]) -> list[Any]:
        """Return the values of an Apply's results. Raises Unknown where PyTensor has to compute them."""
        function = self.row_of(type(apply.op))
        made = function(apply, list(args), self) if function in NESTED else function(apply, list(args))
        results = made if isinstance(made, list | tuple) else [made]
        return [folded(as_declared(value, out.type), args) for value, out in zip(results, apply.outputs, strict=True)]

    def values_of(self, outputs: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
        """Return the nodes of a graph's outputs, from `values` of its inputs. Raises Unknown where PyTensor has to
        compute a part."""
        for apply in applys(list(values), outputs):
            args = [values[arg] if arg in values else constant(arg) for arg in apply.inputs]
            values.update(zip(apply.outputs, self.convert(apply, args), strict=True))
        return [values[out] if out in values else constant(out) for out in outputs]


def known(value: Any) -> Any:
    """Return the number of a constant scalar, else the value itself."""
    constant = constant_value(value) if isinstance(value, Node) and not value.ndim else None
    return value if constant is None else constant.item()


def as_declared(value: Any, kind: Any) -> Any:
    """Return a value with the dtype and the static sizes of its PyTensor type."""
    if not isinstance(value, Node):
        return value
    if value.type.dtype != kind.dtype:
        value = T.cast(value, kind.dtype)
    own = value.type.shape
    sizes = getattr(kind, "shape", ())
    if any(size is not None and not isinstance(there, int) for size, there in zip(sizes, own, strict=True)):
        value = T.specify_shape(value, sizes)
    return value


CONSTANT_KINDS = (np.ndarray, np.generic, int, float, bool)
"""The types of constants that become nodes; None and slices stay as they are."""


def applys(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[Any]:
    """The Applys that compute outputs from inputs, in topological order."""
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
    """Fold a value computed from constants to a constant, where it is no larger than they are."""
    if not isinstance(value, Node) or value.op in LEAVES or not args:
        return value
    arrays = [constant_value(arg) if isinstance(arg, Node) else None for arg in args]
    most = sum(array.size for array in arrays if array is not None)
    sizes = [size for size in value.type.shape if isinstance(size, int)]
    if any(array is None for array in arrays) or len(sizes) < value.ndim or prod(sizes) > most:
        return value
    return T.constant(interpret(Graph((), (value,)), {})[0], dtype=value.type.dtype)


def constant(variable: Any) -> Any:
    """The value of a constant: a node, a slice or None."""
    if not hasattr(variable, "data"):
        raise Unknown(f"{variable} is neither an input nor a constant")
    data = variable.data
    if isinstance(data, CONSTANT_KINDS):
        return as_declared(T.constant(data, dtype=variable.type.dtype), variable.type)
    if data is None or isinstance(data, slice):
        return data
    raise Unknown(f"a constant of type {type(data).__name__}")


# --- scalar ops -------------------------------------------------------------------------------------------------------

NAMES: Mapping[str, str] = {
    "Abs": "abs", "Add": "add", "AND": "bitwise_and", "ArcCos": "arccos", "ArcCosh": "arccosh", "ArcSin": "arcsin",
    "ArcSinh": "arcsinh", "ArcTan": "arctan", "ArcTan2": "arctan2", "ArcTanh": "arctanh", "BetaInc": "betainc",
    "BetaIncInv": "betaincinv", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Deg2Rad": "deg2rad", "Erf": "erf",
    "Erfc": "erfc", "Erfcinv": "erfcinv", "Erfcx": "erfcx", "Erfinv": "erfinv", "Exp": "exp", "Exp2": "exp2",
    "Expm1": "expm1", "Floor": "floor", "Gamma": "gamma", "GammaInc": "gammainc", "GammaIncC": "gammaincc",
    "GammaIncCInv": "gammainccinv", "GammaIncInv": "gammaincinv", "GammaL": "gammal", "GammaLn": "gammaln",
    "GammaU": "gammau", "Hyp2F1": "hyp2f1", "I0": "i0", "I0e": "i0e", "I1": "i1", "I1e": "i1e",
    "IntDiv": "floor_divide", "Invert": "invert", "Iv": "iv", "Ive": "ive", "Kve": "kve", "J0": "j0", "J1": "j1",
    "Jv": "jv", "Log": "log", "Log10": "log10", "Log1mexp": "log1mexp", "Log1p": "log1p", "Log2": "log2",
    "Maximum": "maximum", "Minimum": "minimum", "Mod": "mod", "Mul": "mul", "Neg": "neg", "OR": "bitwise_or",
    "Owens_t": "owens_t", "PolyGamma": "polygamma", "Pow": "pow", "Psi": "psi", "Rad2Deg": "rad2deg",
    "Reciprocal": "reciprocal", "RoundHalfAwayFromZero": "round_half_away_from_zero",
    "RoundHalfToEven": "round_half_to_even", "ScalarMaximum": "maximum", "ScalarMinimum": "minimum",
    "Sigmoid": "sigmoid", "Sign": "sgn", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Sqr": "sqr",
    "Sqrt": "sqrt", "Sub": "sub", "Tan": "tan", "Tanh": "tanh", "TriGamma": "tri_gamma", "TrueDiv": "true_div",
    "Trunc": "trunc", "XOR": "bitwise_xor", "XlogX": "xlogx",
}  # fmt: skip
"""Ops computed in the dtype of their result, by the name of PyTensor's class."""
OF_ANY_NUMBER = ("Add", "AND", "Mul", "OR", "XOR")
ON_OPERANDS: Mapping[str, str] = {
    "EQ": "eq", "GE": "ge", "GT": "gt", "IsInf": "isinf", "IsNan": "isnan", "LE": "le", "LT": "lt", "NEQ": "neq",
}  # fmt: skip
"""Ops computed in the dtypes of their operands, whose result is a bool."""


def _switch(dtype: str, condition: Node, then: Node, other: Node) -> Node:
    return T.switch(condition, T.cast(then, dtype), T.cast(other, dtype))


def _xlogy(dtype: str, x: Node, y: Node) -> Node:
    """Return 0 where x is 0, also for y = NaN, where `T.xlogy` returns NaN."""
    x, y = T.cast(x, dtype), T.cast(y, dtype)
    return T.switch(T.eq(x, 0), T.zeros_like(x * y), x * T.log(y))


def _product_of_others(dtype: str, x: Node, y: Node) -> Node:
    x, y = T.cast(x, dtype), T.cast(y, dtype)
    return T.switch(T.eq(x, 0), y, T.switch(T.eq(y, 0), x, x * y))


def _clip(dtype: str, x: Node, low: Node, high: Node) -> Node:
    """Return `low` below `low`, also where low > high, in which case `T.clip` returns `high`."""
    x, low, high = T.cast(x, dtype), T.cast(low, dtype), T.cast(high, dtype)
    return T.switch(x < low, low, T.switch(x > high, high, x))


FORMS: Mapping[str, Callable[..., Node]] = {
    "Cast": lambda dtype, x: T.cast(x, dtype),
    "Clip": _clip,
    "Identity": lambda dtype, x: x,
    "MulWithoutZeros": _product_of_others,
    "Second": lambda dtype, x, y: T.second(x, T.cast(y, dtype)),
    "Switch": _switch,
    "XlogY0": _xlogy,
}
"""The others: functions of the result's dtype and the operands."""


LOOPS = ("Grad2F1Loop", "ScalarLoop")
BY_PARAMETERS = ("BetaInc", "GammaInc", "GammaIncC", "Hyp2F1")
"""Ops whose derivatives by their parameters are PyTensor's: they are loops, which native code computes. graphc has none
of Hyp2F1; those it has of the others Python computes, and a function that calls Python has no address in C."""


def scalars(op: Any, dtypes: Sequence[str], args: Sequence[Node]) -> list[Node]:
    """Return the results of a scalar op applied elementwise to `args`, cast to `dtypes`. Raises Unknown for an op that
    graphc does not have."""
    kind = type(op).__name__
    if kind == "Composite":
        return _of_graph(op.fgraph, args)
    if kind in LOOPS:
        return _loop(op, args)
    return [_scalar(op, dtypes[0], args)]


def _scalar(op: Any, dtype: str, args: Sequence[Node]) -> Node:
    kind = type(op).__name__
    if kind in FORMS:
        return FORMS[kind](dtype, *args)
    if kind in ON_OPERANDS:
        compared: Node = getattr(T, ON_OPERANDS[kind])(*args)
        return compared
    if kind not in NAMES or not hasattr(T, NAMES[kind]):
        raise Unknown(f"scalar op {kind}")
    if dtype == "bool" and kind in ("Add", "Mul", "Maximum", "Minimum"):
        kind = "OR" if kind in ("Add", "Maximum") else "AND"
    if dtype == "bool" and kind == "Abs":
        return args[0]
    function, operands = getattr(T, NAMES[kind]), [T.cast(arg, dtype) for arg in args]
    if kind in BY_PARAMETERS:
        return _with_pytensors_derivative(op, function, T.broadcast_arrays(*operands))
    return reduce(function, operands) if kind in OF_ANY_NUMBER else function(*operands)


def _of_graph(graph: Any, args: Sequence[Node]) -> list[Node]:
    """Return the results of a graph of scalar ops, applied elementwise."""
    values: dict[Any, Node] = dict(zip(graph.inputs, args, strict=True))

    def value(variable: Any) -> Node:
        if variable not in values and variable.owner is None:
            values[variable] = T.constant(variable.data, dtype=variable.type.dtype)
        return values[variable]

    for node in graph.toposort():
        made = scalars(node.op, [out.type.dtype for out in node.outputs], [value(arg) for arg in node.inputs])
        values.update(zip(node.outputs, made, strict=True))
    return [value(out) for out in graph.outputs]


def _loop(op: Any, args: Sequence[Node]) -> list[Node]:
    """A loop over scalars for each element: one loop over arrays, whose elements stay as they are once theirs has
    ended. The number of steps may be another for each; the condition, the last result, ends a loop that begins."""
    count, *given = T.broadcast_arrays(*args)
    states = len(op.outputs) - op.is_while
    fixed = given[states:]

    def goes(carry: tuple[Node, ...]) -> Node:
        number, ended, *_ = carry
        return T.and_(number < count, T.invert(ended))

    def step(carry: tuple[Node, ...]) -> tuple[Node, ...]:
        number, *before = carry
        ended, *carried = before
        made = _of_graph(op.fgraph, [*carried, *fixed])
        after = [made.pop() if op.is_while else ended, *made]
        pairs = zip(after, before, strict=True)
        return number + 1, *(T.switch(goes(carry), T.cast(new, old.type.dtype), old) for new, old in pairs)

    begin = (T.zeros((), count.type.dtype), count <= 0, *given[:states])
    _, ended, *last = while_loop(lambda carry: T.any(goes(carry)), step, begin)
    return [*last, *([ended] if op.is_while else [])]


def _with_pytensors_derivative(op: Any, function: Callable[..., Node], operands: Sequence[Node]) -> Node:
    """Return function(*operands), of operands of one shape, with the derivatives of PyTensor's op."""

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Any, wanted: Collection[int]) -> list[Node | None]:
        own = [get_scalar_type(each.dtype)() for each in (*inputs, given[0])]
        parts = op.L_op(own[:-1], [op(*own[:-1])], own[-1:])
        made = iter(_of_graph(FunctionGraph(own, [parts[place] for place in wanted]), [*inputs, given[0]]))
        return [T.cast(next(made), each.type.dtype) if place in wanted else None for place, each in enumerate(inputs)]

    return overridden([function(*operands)], operands, rule)[0]
