"""Theano's scalar ops and types: here scalars are tensors of no axes, and a scalar op is the function of tensors.

    exp, float64("x")                            T.exp, a variable of no axes
    class Xlogx(UnaryScalarOp): impl(self, x)    an op of each element, called back
    Composite([a, b], [a * b + exp(a)])          a function of elements that `T.Elemwise` takes

In: names as Theano has them; a class with `impl`, a Python function of numbers, and where wanted `grad`; scalar
variables and what is computed of them. Out: the functions of `graphc.tensor` of these names, constructors of scalars by
dtype, callables of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc import tensor
from graphc.arrays import dtypes as dt
from graphc.errors import GraphTypeError, MissingInputError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import CONSTANT, INPUT, Array, Node, Type, describe, literal, make, variable
from graphc.ir.walk import toposort
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast_safely, elementwise
from graphc.startup.record import record
from graphc.tensor.elementary import cast
from graphc.tensor.elemwise import Elemwise, Family, scalar_op
from graphc.tensor.variables import TensorType
from graphc.theano.user_ops import Apply, MethodNotDefined, Op, not_computed

# ops of the user ------------------------------------------------------------------------------------------------------

Kinds = Sequence[Type]
"""Types of results."""


def upgrade_to_float(*types: Type) -> Kinds:
    """The preference of results in floats: the smallest float dtype that the types are computed in."""
    return [Type(dt.promote(*(dt.floating(kind.dtype) for kind in types)), ())]


upgrade_to_float_no_complex = upgrade_to_float


def upgrade_to_float64(*types: Type) -> Kinds:
    """The preference of results in float64."""
    return [Type("float64", ())]


def same_out(kind: Type) -> Kinds:
    """The preference of results in the type of the argument."""
    return [kind]


def same_out_float_only(kind: Type) -> Kinds:
    """The preference of results in the type of the argument. Raises TypeError where that is no float."""
    if not dt.is_float(kind.dtype):
        raise GraphTypeError(f"only floats are taken, not {kind}")
    return [kind]


def upcast_out(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments."""
    return [Type(dt.promote(*(kind.dtype for kind in types)), ())]


def upcast_out_nobool(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments. Raises TypeError where that is bool."""
    found = upcast_out(*types)
    if found[0].dtype == "bool":
        raise GraphTypeError("an op of bools has no bool result")
    return found


def upcast_out_min8(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments, int8 in place of bool."""
    return [Type("int8", ()) if kind.dtype == "bool" else kind for kind in upcast_out(*types)]


def same_out_nobool(kind: Type) -> Kinds:
    """The preference of results in the type of the argument. Raises TypeError where that is bool."""
    return upcast_out_nobool(kind)


def same_out_min8(kind: Type) -> Kinds:
    """The preference of results in the type of the argument, int8 in place of bool."""
    return upcast_out_min8(kind)


@record()
class specific_out:  # noqa: N801 - Theano's name
    """The preference of results of these types whatever the arguments are: `specific_out(scalar.float32)`."""

    spec: tuple[Any, ...]

    def __init__(self, *spec: Any) -> None:
        object.__setattr__(self, "spec", spec)

    def __call__(self, *types: Type) -> Kinds:
        """The types that were given."""
        return list(self.spec)


def int_out(*types: Type) -> Kinds:
    """The preference of results in int64."""
    return [Type("int64", ())]


def float_out(*types: Type) -> Kinds:
    """The preference of results in float64."""
    return [Type("float64", ())]


class ScalarOp(Op):
    """The base of a user's scalar ops. A subclass has `impl(x, ...)`, of Python numbers, and for a derivative
    `grad(inputs, output_grads)`, of tensors. output_types_preference: from the types of scalars to a list of those of
    the results; `upgrade_to_float` where None. The operands are broadcast; each element costs a call of Python. With
    `nout` results `impl` gives a tuple of as many. A subclass need not call this `__init__`.

    Two ops without `__props__` of their own are equal where their class and all their attributes are.

        >>> class Xlogx(UnaryScalarOp):
        ...     def impl(self, x):
        ...         return x * math.log(x) if x else 0.0
        ...     def grad(self, inputs, output_grads):
        ...         return [output_grads[0] * (1 + T.log(inputs[0]))]
        >>> y = Xlogx()(T.dmatrix("x"))
    """

    __props__: tuple[str, ...] = ("output_types_preference", "name")
    nin: int | None = None
    nout: int = 1
    name: str | None = None
    output_types_preference: Any = staticmethod(upgrade_to_float)

    def __init__(self, output_types_preference: Any = None, name: str | None = None) -> None:
        if output_types_preference is not None:
            self.output_types_preference = output_types_preference
        self.name = name

    def impl(self, *values: Any) -> Any:
        """The value for numbers; subclasses say it."""
        raise MethodNotDefined(f"scalar op {self} has no impl")

    def output_types(self, types: Sequence[Type]) -> Sequence[Any]:
        """The types of the results for arguments of these types. Raises GraphTypeError for another number than
        `nout`."""
        found = list(self.output_types_preference(*types))
        if len(found) != self.nout:
            raise GraphTypeError(f"scalar op {self} has {self.nout} results; its output types are {found}")
        return found

    def make_node(self, *inputs: Any) -> Apply:
        """The op on each element of tensors."""
        nodes = [as_node(value) for value in inputs]
        if self.nin is not None and self.nin >= 0 and len(nodes) != self.nin:
            raise GraphTypeError(f"scalar op {self} takes {self.nin} operands; got {len(nodes)}")
        kinds = self.output_types([Type(node.type.dtype, ()) for node in nodes])
        shape = broadcast_sizes(str(self), nodes)
        static = [n if isinstance(n, int) else None for n in shape]
        operands = [broadcast_node(node, shape) for node in nodes]
        return Apply(self, operands, [variable(kind.dtype, static) for kind in kinds])

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """The shape of the operands, which is one."""
        return [input_shapes[0]] * self.nout

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """`impl` of each element."""
        if type(self).impl is ScalarOp.impl:
            raise not_computed(self, "impl", node)
        rows = zip(*(array.ravel().tolist() for array in inputs), strict=True)
        values = [self.impl(*row) for row in rows]
        columns = [values] if self.nout == 1 else [list(column) for column in zip(*values, strict=True)]
        for place, storage in enumerate(output_storage):
            made = np.array(columns[place] if values else [], node.outputs[place].type.dtype)
            storage[0] = made.reshape(inputs[0].shape)

    def _identity(self) -> tuple[Any, ...] | None:
        if type(self).__props__ is not ScalarOp.__props__:
            return super()._identity()
        rest = sorted(name for name in vars(self) if name not in ScalarOp.__props__)
        said = (type(self), *self._props(), *((name, vars(self)[name]) for name in rest))
        try:
            hash(said)
        except TypeError:
            return None
        return said

    def __str__(self) -> str:
        told = [f"{name}={value}" for name, value in vars(self).items() if name not in ScalarOp.__props__]
        return self.name or type(self).__name__ + (f"{{{', '.join(told)}}}" if told else "")


class UnaryScalarOp(ScalarOp):
    """A scalar op of one operand."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """A scalar op of two operands."""

    nin = 2


# scalar ops that are graphs -------------------------------------------------------------------------------------------


class Composite:
    """A function of single elements that is put together from others.

    inputs: variables of no axes. outputs: what is computed of them by elementwise ops and scalar ops of the user. Of
    operands that broadcast it gives the result for their elements, or the list of results where there are several;
    an operand whose dtype converts safely to that of its input is converted; with another one, all that is computed of
    it has a dtype that is wide enough. All is differentiated, fused and compiled as if it were written with the
    operands. Raises GraphTypeError for inputs with axes and for ops that are not of single elements, MissingInputError
    for a variable that is not among the inputs.

        >>> a, b = scalar.float64("a"), scalar.float64("b")
        >>> y = T.Elemwise(scalar.Composite([a, b], [a * b + scalar.exp(a)]))(T.dvector("x"), 2.0)
    """

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str | None = None) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(map(as_node, outputs))
        self.name = self.__name__ = name or "Composite"
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        for node in self.inputs:
            if not isinstance(node, Node) or node.op is not INPUT or node.ndim:
                raise GraphTypeError(f"{self.name}: an input is a scalar variable, not {as_text(node)}")
        if not self.outputs:
            raise GraphTypeError(f"{self.name}: there is no output")
        self.order = toposort(self.outputs, _arguments, describe)
        for node in self.order:
            self._check(node)

    def _check(self, node: Node) -> None:
        if node.op is INPUT and node not in self.inputs:
            raise MissingInputError(f"{self.name} needs {describe(node)}, which is not among its inputs")
        if node.op in (INPUT, CONSTANT) and not node.ndim:
            return
        if node.ndim or not (node.op.name in Elemwise.ops or _user_op(node) is not None):
            raise GraphTypeError(
                f"{self.name}: {describe(node)} of type {node.type} is made by no op of single elements"
            )

    def __call__(self, *operands: Any) -> Any:
        """The outputs for operands, broadcast: one, or a list of several. Raises GraphTypeError for another number of
        operands, or for dtypes that an op within does not take."""
        if len(operands) != self.nin:
            raise GraphTypeError(f"{self.name} takes {self.nin} operands, not {len(operands)}")
        given = [cast_safely(as_node(value), own.type.dtype) for own, value in zip(self.inputs, operands, strict=True)]
        done = dict(zip(self.inputs, given, strict=True))
        for node in self.order:
            if node not in done:
                done[node] = _applied(node, [done[arg] for arg in _arguments(node)])
        shape = broadcast_sizes(self.name, given) if given else ()
        results = [broadcast_node(done[node], shape) for node in self.outputs]
        return results[0] if self.nout == 1 else results

    def make_node(self, *operands: Any) -> Apply:
        """The application that gives the first output."""
        made = self(*operands)
        owner: Apply = (made if self.nout == 1 else made[0]).owner
        return owner

    def __eq__(self, other: object) -> bool:
        """True where two are the same function: what they make of the same variables is one node."""
        if not isinstance(other, Composite) or [n.dtype for n in self.inputs] != [n.dtype for n in other.inputs]:
            return False
        theirs = other(*self.inputs)
        return len(self.outputs) == other.nout and all(
            one is two for one, two in zip(self.outputs, theirs if other.nout > 1 else [theirs], strict=True)
        )

    def __hash__(self) -> int:
        return hash((tuple(node.dtype for node in self.inputs), tuple(node.op.name for node in self.order)))

    def __repr__(self) -> str:
        return f"{self.name}{{{', '.join(map(str, self.outputs))}}}"


def as_text(value: Any) -> str:
    """The text of a message for what should be a variable."""
    return f"{describe(value)} of type {value.type}" if isinstance(value, Node) else repr(value)


def _user_op(node: Node) -> Callable[..., Any] | None:
    """The scalar op of the user that makes a node; None for another."""
    user = None if node.op in (INPUT, CONSTANT) else node.owner.op
    return user if isinstance(user, Op) and hasattr(user, "impl") else None


def _arguments(node: Node) -> list[Node]:
    return list(node.args) if _user_op(node) is None else node.owner.inputs


def _applied(node: Node, args: Sequence[Node]) -> Node:
    """The op of a node on other arguments, broadcast."""
    user = _user_op(node)
    if user is not None:
        place = next(place for place, each in enumerate(node.owner.outputs) if each is node)
        made: Node = user(*args, return_list=True)[place]
        return made
    if not args:
        return node
    if any(arg.type.dtype != own.type.dtype for arg, own in zip(args, node.args, strict=True)):
        return _widened(node, args)
    shape = broadcast_sizes(node.op.name, args)
    return make(node.op, [broadcast_node(arg, shape) for arg in args], node.attrs)


def _widened(node: Node, args: Sequence[Node]) -> Node:
    """The op of a node on arguments of other dtypes. A conversion that loses nothing loses nothing of them
    either: it may be one that the op which takes it has asked for."""
    if node.op.name != "cast":
        return elementwise(node.op.name, *args)
    widens = dt.can_cast_safely(node.args[0].type.dtype, node.type.dtype)
    return cast(args[0], dt.promote(args[0].type.dtype, node.type.dtype) if widens else node.type.dtype)


# names and types ------------------------------------------------------------------------------------------------------

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

_types = {dtype: TensorType(dtype, (), dtype) for dtype in dt.NUMPY_DTYPES}
"""For each dtype the constructor of scalars: `scalar.float64("x")`."""
int_types = [_types[dtype] for dtype in dt.SIGNED]
uint_types = [_types[dtype] for dtype in dt.UNSIGNED]
float_types = [_types[dtype] for dtype in dt.FLOATS]
complex_types = [_types[dtype] for dtype in dt.COMPLEX]
integer_types = (*int_types, *uint_types)
discrete_types = [_types[dtype] for dtype in ("bool", *dt.INTEGERS)]
continuous_types = float_types
all_types = (*discrete_types, *continuous_types, *complex_types)


def get_scalar_type(dtype: Any) -> TensorType:
    """The type of scalars of a dtype; calling it makes a variable. Raises KeyError for other dtypes."""
    return _types[np.dtype(dtype).name]


Scalar = get_scalar_type


def upcast(dtype: Any, *dtypes: Any) -> str:
    """The dtype that values of these dtypes, names or NumPy's, are combined in, as NumPy has it: its name. Raises
    GraphTypeError for other dtypes."""
    return dt.promote(*(dt.check_dtype(each) for each in (dtype, *dtypes)))


def as_common_dtype(*variables: Any) -> tuple[Node, ...]:
    """Variables in the dtype that they are combined in."""
    nodes = [as_node(each) for each in variables]
    common = dt.promote(*(node.type.dtype for node in nodes))
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


def round_half_away_from_zero_vec(a: Any) -> Any:
    """The values of an array rounded, halves away from zero, as `round_half_away_from_zero` rounds those of tensors.

    >>> round_half_away_from_zero_vec(np.array([0.5, -1.5, 2.4]))
    array([ 1., -2.,  2.])
    """
    whole = np.trunc(a)
    with np.errstate(invalid="ignore"):  # an infinity is whole
        half = np.abs(a - whole) >= 0.5
    return np.where(half, whole + np.sign(a), whole)


round_half_away_from_zero_ = round_half_away_from_zero_vec


def _scalar_op(kind: Any, output_types_preference: Any = None, name: str | None = None) -> Any:
    """The scalar op of a class of Theano's, whose results have graphc's dtypes: `GammaLn(upgrade_to_float)`."""
    (op,) = kind.ops
    return scalar_op(getattr(tensor, op))


def __getattr__(name: str) -> Any:
    if name in _types:
        return _types[name]
    if name in CLASSES:
        own = {"ops": frozenset({CLASSES[name]}), "__new__": _scalar_op, "__module__": __name__}
        found = globals()[name] = Family(name, (), own)
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
