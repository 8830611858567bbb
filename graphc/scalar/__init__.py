"""Theano's scalar ops and types: here scalars are tensors of no axes, and a scalar op is the function of tensors.

In: names as Theano has them. Out: the functions of `graphc.tensor` of these names, constructors of scalars by dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphc import tensor
from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS, SIGNED, UNSIGNED, check_dtype, promote
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe, literal
from graphc.ops.elementwise import as_node
from graphc.scalar.composite import Composite
from graphc.scalar.ops import (
    BinaryScalarOp,
    ScalarOp,
    UnaryScalarOp,
    float_out,
    int_out,
    same_out,
    same_out_float_only,
    same_out_min8,
    same_out_nobool,
    specific_out,
    upcast_out,
    upcast_out_min8,
    upcast_out_nobool,
    upgrade_to_float,
    upgrade_to_float64,
)
from graphc.tensor.elementary import cast
from graphc.tensor.elemwise import Family
from graphc.tensor.variables import TensorType

OPS = """
abs_ add and_ angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh ceil chi2sf clip complex conj cos cosh deg2rad
eq erf erfc erfcinv erfcx erfinv exp exp2 expm1 floor floor_div gamma gammainc gammaincc gammaln ge gt i0 i1 identity
imag int_div inv invert isinf isnan iv j0 j1 jv le log log10 log1p log2 lt maximum minimum mod mul neg neq or_ pow psi
rad2deg real round_half_away_from_zero round_half_to_even second sgn sin sinh sqr sqrt sub switch tan tanh tri_gamma
true_div trunc xor sigmoid softplus
"""
"""Theano's scalar ops: those that `graphc.tensor` has are there."""
RENAMED = {"identity": "tensor_copy", "conj": "conj", "inv": "inv"}

CLASSES = {
    "Abs": "abs", "Add": "add", "Sub": "sub", "Mul": "mul", "TrueDiv": "true_div", "IntDiv": "floor_div", "Mod": "mod",
    "Pow": "pow", "Neg": "neg", "Sgn": "sign", "Sqr": "sqr", "Sqrt": "sqrt", "Inv": "reciprocal", "Exp": "exp",
    "Exp2": "exp2", "Expm1": "expm1", "Log": "log", "Log2": "log2", "Log10": "log10", "Log1p": "log1p", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "ArcSin": "arcsin", "ArcCos": "arccos", "ArcTan": "arctan", "ArcTan2": "arctan2",
    "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "ArcSinh": "arcsinh", "ArcCosh": "arccosh", "ArcTanh": "arctanh",
    "Maximum": "maximum", "Minimum": "minimum", "Clip": "clip", "Switch": "where", "Cast": "cast", "EQ": "equal",
    "NEQ": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal", "IsNan": "isnan",
    "IsInf": "isinf", "AND": "bitwise_and", "OR": "bitwise_or", "XOR": "bitwise_xor", "Invert": "invert",
    "Floor": "floor", "Ceil": "ceil", "Trunc": "trunc", "RoundHalfToEven": "rint", "Deg2Rad": "deg2rad",
    "Rad2Deg": "rad2deg", "Erf": "erf", "Erfc": "erfc", "GammaLn": "gammaln", "Psi": "digamma", "TriGamma": "trigamma",
    "ScalarSigmoid": "sigmoid", "ScalarSoftplus": "softplus",
}  # fmt: skip
"""Theano's classes of scalar ops, as `isinstance(node.op.scalar_op, theano.scalar.Exp)` asks for them, and the ops."""

_types = {dtype: TensorType(dtype, (), dtype) for dtype in DTYPES}
"""For each dtype the constructor of scalars: `scalar.float64("x")`."""
int_types = [_types[dtype] for dtype in SIGNED]
uint_types = [_types[dtype] for dtype in UNSIGNED]
float_types = [_types[dtype] for dtype in FLOATS]
integer_types = (*int_types, *uint_types)
discrete_types = [_types[dtype] for dtype in ("bool", *INTEGERS)]
continuous_types = float_types
all_types = (*discrete_types, *continuous_types)


def get_scalar_type(dtype: Any) -> TensorType:
    """The type of scalars of a dtype; calling it makes a variable. Raises KeyError for other dtypes."""
    return _types[np.dtype(dtype).name]


Scalar = get_scalar_type


def upcast(dtype: Any, *dtypes: Any) -> str:
    """The dtype that values of these dtypes, names or NumPy's, are combined in, as NumPy has it: its name. Raises
    GraphTypeError for other dtypes."""
    return promote(*(check_dtype(each) for each in (dtype, *dtypes)))


def as_common_dtype(*variables: Any) -> tuple[Node, ...]:
    """Variables in the dtype that they are combined in."""
    nodes = [as_node(each) for each in variables]
    common = promote(*(node.dtype for node in nodes))
    return tuple(cast(node, common) for node in nodes)


def as_scalar(x: Any, name: str | None = None) -> Node:
    """`x` as a scalar. Raises TypeError where it has axes."""
    node = as_node(x)
    if node.ndim:
        raise TypeError(f"{name or describe(node)} has {node.ndim} axes and is no scalar")
    return node


def constant(x: Any, name: str | None = None, dtype: str | None = None) -> Node:
    """A number as a scalar."""
    node = literal(x, dtype)
    node.name = name
    return node


def floats(names: str | Sequence[str], *others: str) -> list[Node]:
    """Scalars of floatX, one a letter of a string, or one for each name."""
    return [tensor.scalar(name) for name in [*names, *others]]


def ints(names: str | Sequence[str], *others: str) -> list[Node]:
    """Scalars of int64, one a letter of a string, or one for each name."""
    return [tensor.lscalar(name) for name in [*names, *others]]


def __getattr__(name: str) -> Any:
    if name in _types:
        return _types[name]
    if name == "basic":
        return import_module("graphc.scalar.basic")
    if name in CLASSES:
        found = globals()[name] = Family(name, (), {"ops": frozenset({CLASSES[name]}), "__module__": __name__})
        return found
    place = RENAMED.get(name, name)
    if name in OPS.split() and hasattr(tensor, place):
        return getattr(tensor, place)
    raise AttributeError(f"graphc.scalar has no {name!r}; its ops are functions of graphc.tensor")


def __dir__() -> list[str]:
    return sorted({*__all__, *_types, *(name for name in OPS.split() if hasattr(tensor, RENAMED.get(name, name)))})


__all__ = [
    "BinaryScalarOp", "Composite", "Scalar", "ScalarOp", "UnaryScalarOp", "all_types", "as_common_dtype", "as_scalar",
    "cast", "constant", "continuous_types", "discrete_types", "float_out", "float_types", "floats", "get_scalar_type",
    "int_out", "int_types", "integer_types", "ints", "same_out", "same_out_float_only", "same_out_min8",
    "same_out_nobool", "specific_out", "uint_types", "upcast", "upcast_out", "upcast_out_min8", "upcast_out_nobool",
    "upgrade_to_float", "upgrade_to_float64",
]  # fmt: skip

explain_all(globals())
