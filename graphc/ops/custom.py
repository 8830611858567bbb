"""Ops that call functions: the user's Python functions, and SciPy's by address; marks of derivatives that are missing.

    twice = custom_op("twice", lambda x: 2 * x, vjp=lambda node, g: [2 * g])

In: the function and what the graph must know of it. Out: a function of nodes, and its op in `OPS`. Compiled code calls
back into Python for it. The op's version is a fingerprint of the user's code, so that what is cached never outlives it.
"""

from __future__ import annotations

import re
from _thread import _local as local
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, overload

import numpy as np

from graphc.arrays.dtypes import floating, promote, read_only
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.body import outputs_of
from graphc.ir.lowering import SUFFIXES, Call, Extent, Passed, Result, Whole
from graphc.ir.node import OPS, Array, Attributes, Infer, Node, Op, Type, Vjp, describe, make
from graphc.ops.elementwise import aligned, as_node, broadcast_node, broadcast_sizes, cast, common_shape, equal_sizes
from graphc.startup.record import record
from graphc.startup.versions import Digest


class Direction(local):
    """Tell whether this thread is making a forward product (autodiff.jvp): then what the user says of those holds.
    is_transposed: it makes the derivative that is then transposed, which must be linear in its cotangents."""

    def __init__(self) -> None:
        self.is_forward = False
        self.is_transposed = False


DIRECTION = Direction()


OF_A_USER = 10**6
"""The additions that a function of the user may take the time of."""


def _passed(node: Node) -> list[Passed]:
    """Every operand and result as a pointer, then all their sizes."""
    results = outputs_of(node)
    places = (Result(place) for place in range(len(results)))
    sizes = (Extent(size) for each in (*node.args, *results) for size in each.type.shape)
    return [*map(Whole, node.args), *places, *sizes]


PYTHON = Call(lambda node: "", _passed, lambda node: [*outputs_of(node)[0].type.shape, OF_A_USER], is_python=True)
"""The lowering of every op of the user: a call of its Python function."""


OWN = "own"
"""The version of ops of graphc's."""


def custom_op(
    name: str,
    compute: Callable[..., Any],
    infer: Callable[..., Type] | None = None,
    vjp: Callable[[Node, Node], Any] | None = None,
    native: bool = False,
    own: bool = False,
    call: Call | None = None,
) -> Callable[..., Node]:
    """A function of nodes whose value `compute(*arrays)` gives; the arrays are read-only.

    `infer(*types)` gives the type of the result from the types of the operands. Without it the op works element by
    element: operands are cast to a common float dtype and broadcast, and the result has their dtype and shape.
    `vjp(node, cotangent)` gives the cotangent of each of `node.args` (or the only one), None where there is none;
    without it the op has no derivative. Defining an op of the user again replaces it; raises GraphTypeError where
    graphc has an op of that name, and, when it runs, where `compute` gives another type than was said.

    native: `compute`, a Python function that numba compiles in its nopython mode (or what `numba.njit` made of one), is
    called as machine code, with no Python between; operands without axes come to it as numbers. It must not write its
    operands. The other modes run it as Python. Each process that has such a function imports numba and compiles it.

    own: all that the value depends on are graphc's own sources, which every key covers. call: what compiled code calls
    instead of Python.

        >>> @graphc.op(native=True, infer=lambda x: T.dscalar().type)
        ... def longest_run(x):
        ...     most = run = 0.0
        ...     for value in x:
        ...         run = run + 1.0 if value > 0.0 else 0.0
        ...         most = max(most, run)
        ...     return most
        >>> longest_run(T.constant([1.0, 1.0, -1.0])).eval()
        array(2.)
    """
    compiled, compute = compute, getattr(compute, "py_func", compute)
    if name in OPS and OPS[name].lower is not _lower:
        raise GraphValueError(f"there is an op {name!r} already")
    code = [compute, *(f for f in (infer, vjp) if f is not None)]
    op = OPS[name] = Op(
        name,
        infer=_elementwise_type if infer is None else _infer(name, infer),
        eval=_evaluate(compute, compiled if native else None),
        lower=_lower if call is None else lambda node: call,
        vjp=None if vjp is None else _vjp(vjp),
        guards=equal_sizes if infer is None else lambda node: (),
        cost=100.0,
        doc=compute.__doc__ or "",
        version=OWN if own else fingerprint(*code),
        batch=aligned if infer is None else None,
    )

    def function(*operands: Any) -> Node:
        nodes = [as_node(operand) for operand in operands]
        return make(op, _alike(name, nodes) if infer is None else nodes)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = compute.__doc__
    return function


@overload
def op(name: Callable[..., Any]) -> Callable[..., Node]: ...


@overload
def op(
    name: str | None = None,
    infer: Callable[..., Type] | None = None,
    vjp: Callable[[Node, Node], Any] | None = None,
    native: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Node]]: ...


def op(
    name: str | Callable[..., Any] | None = None,
    infer: Callable[..., Type] | None = None,
    vjp: Callable[[Node, Node], Any] | None = None,
    native: bool = False,
) -> Callable[..., Any]:
    """Make an op of a Python function: `custom_op` as a decorator, as `@op` or `@op(vjp=...)`.

    The arguments are those of `custom_op`. The op raises GraphTypeError for an argument that is no tensor,
    array or number.

        >>> double = graphc.op(lambda x: x * 2)
        >>> double(T.constant([1.0, 2.0])).eval()
        array([2., 4.])
    """
    if callable(name):
        return custom_op(name.__name__, name)

    def define(compute: Callable[..., Any]) -> Callable[..., Node]:
        return custom_op(name or compute.__name__, compute, infer, vjp, native)

    return define


def fingerprint(*functions: Callable[..., Any]) -> str:
    """A digest of what functions compute: their code and constants, and what they take from around them."""
    digest = Digest()
    pending: list[Any] = list(functions)
    seen: set[int] = set()
    while pending:
        item = pending.pop(0)
        if id(item) in seen:
            continue
        match item:
            case FunctionType():
                seen.add(id(item))
                around = [item.__globals__[n] for n in item.__code__.co_names if n in item.__globals__]
                cells = [value for value in _closed_over(item) if value is not item]
                pending += [item.__code__, item.__defaults__, item.__kwdefaults__, *cells, *around]
            case CodeType():
                digest.add(item.co_code + repr(item.co_names).encode())
                pending += item.co_consts
            case np.ndarray():
                digest.add(repr((item.dtype, item.shape)).encode() + item.tobytes())
            case tuple() | list():
                digest.add(f"{type(item).__name__}{len(item)}".encode())
                pending += item
            case None | bool() | int() | float() | complex() | str() | bytes() | np.generic():
                digest.add(f"{type(item).__name__}:{item!r};".encode())
            case _:
                digest.add(str(getattr(item, "__qualname__", type(item).__qualname__)).encode())
    return digest.digits()[:16]


def _closed_over(function: FunctionType) -> list[Any]:
    """The values that a function takes from the functions around it; GraphTypeError where a name has no value yet."""
    values: list[Any] = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values.append(cell.cell_contents)
        except ValueError:
            raise GraphTypeError(
                f"the user's function {function.__qualname__} uses {name}, which has no value yet; an op is made of "
                f"what its functions use, so make it after {name} is bound"
            ) from None
    return values


def _alike(name: str, nodes: Sequence[Node]) -> list[Node]:
    """The operands cast to one float dtype and broadcast to one shape."""
    dtype = promote(*(floating(node.type.dtype) for node in nodes))
    shape = broadcast_sizes(name, nodes)
    return [broadcast_node(cast(node, dtype), shape) for node in nodes]


def _elementwise_type(args: Sequence[Node], attrs: Attributes) -> Type:
    return Type(args[0].type.dtype, common_shape("a user's op", args))


def _infer(name: str, infer: Callable[..., Type]) -> Infer:
    def infer_type(args: Sequence[Node], attrs: Attributes) -> Type:
        result = infer(*(arg.type for arg in args))
        if not isinstance(result, Type):
            raise GraphTypeError(f"the infer function of op {name} gave {result!r}, not a Type")
        return result

    return infer_type


def native_of(op: Op) -> Any:
    """The function of an op that numba compiles; None of other ops."""
    return getattr(op.eval, "native", None)


def _evaluate(compute: Callable[..., Any], native: Any = None) -> Callable[..., Array]:
    def evaluate(node: Node, *values: Array) -> Array:
        arrays = map(read_only, values)
        result = np.array(compute(*(value[()] if native and not value.ndim else value for value in arrays)))
        wrong = sizes.shapes_differ(node.type.shape, result.shape)
        if node.op.infer is _elementwise_type:
            wrong |= result.shape != values[0].shape
        if wrong or not np.can_cast(result.dtype, node.type.dtype, "same_kind"):
            raise GraphTypeError(
                f"op {node.op.name} computed {result.dtype}{list(result.shape)} where its type is {node.type}: "
                f"{describe(node)}"
            )
        return result.astype(node.type.dtype, order="C", copy=False)

    # the op has no other place for what few have
    evaluate.native = native  # type: ignore[attr-defined]
    return evaluate


def _vjp(vjp: Callable[[Node, Node], Any]) -> Vjp:
    def cotangents(node: Node, cotangent: Node) -> Sequence[Node | None]:
        parts = vjp(node, cotangent)
        return list(parts) if isinstance(parts, list | tuple) else [parts]

    return cotangents


def _lower(node: Node) -> Call:
    return PYTHON


# --- missing ----------------------------------------------------------------------------------------------------------
# What stands for a derivative that does not exist, or that nobody has written.
#
# In: an op, the argument that is differentiated by, and a reason. Out: a variable of `NullType`, of which `grad` makes
# an error that names both, or of `DisconnectedType`.


@record(eq=False)
class NullType:
    """The type of a derivative that is not defined, or not implemented. why_null: the reason, for messages."""

    why_null: str = "(no explanation given)"

    def __call__(self, name: str | None = None) -> Absent:
        """A variable of this type."""
        return Absent(self, name)

    def __str__(self) -> str:
        return "NullType"


@record(eq=False)
class DisconnectedType:
    """The type of a derivative by what a value does not depend on."""

    def __call__(self, name: str | None = None) -> Absent:
        """A variable of this type."""
        return Absent(self, name)

    def __str__(self) -> str:
        return "DisconnectedType"


@record(eq=False)
class Absent:
    """The mark of a derivative that does not exist: Theano's variables of the types above."""

    type: NullType | DisconnectedType
    name: str | None = None

    def __str__(self) -> str:
        return self.name or f"<{self.type}>"

    @property
    def is_null(self) -> bool:
        """Tell whether it is undefined, and not merely zero."""
        return isinstance(self.type, NullType)


def undefined(op: object, position: int, node: object, comment: str = "") -> Absent:
    """The derivative of an op by its argument at a position, where it has none. Raises no error: `grad` raises
    GradientError where the cost depends on the argument."""
    return _null("mathematically undefined", op, position, node, comment)


def not_implemented(op: object, position: int, node: object, comment: str = "") -> Absent:
    """The derivative of an op by its argument at a position, where nobody has written it. Raises no error: `grad`
    raises GradientError where the cost depends on the argument."""
    return _null("not implemented", op, position, node, comment)


def _null(what: str, op: object, position: int, node: object, comment: str) -> Absent:
    label = describe(node) if isinstance(node, Node) else str(node)
    return NullType(f"the derivative of op {op} by argument {position}, {label}, is {what}. {comment}".rstrip(" ."))()


# --- special ----------------------------------------------------------------------------------------------------------
# Functions of SciPy's, element by element, that kernels call by address.
#
# In: operands of one dtype and one shape. Out: the op of each, whose kernels pass their elements to
#
#     gc_special_<name>_<t>(count, operands…, result) -> status
#
# (codegen/special). Numbers of fewer bits are computed as float64 in every mode.


@record()
class Source:
    """A function of SciPy's. operands: "d" for a float64, "l" for an integer, in order. count: its results, of which
    the op gives the one of number `place`. options: True if it may be given options."""

    name: str
    operands: str
    place: int = 0
    count: int = 1
    options: bool = False


_TABLE = """
d: bei beip ber berp cosdg cosm1 cotdg dawsn ellipe ellipk ellipkm1 erfcinv erfi erfinv exp1 expi exprel gamma gammasgn
   i0 i0e i1 i1e it2struve0 itmodstruve0 itstruve0 j0 j1 k0 k0e k1 k1e kei keip ker kerp kolmogi kolmogorov loggamma
   ndtri ndtri_exp rgamma sindg spence tandg wrightomega y0 y1 zetac
dd: agm beta betaln binom boxcox boxcox1p chdtriv ellipeinc ellipkinc elliprc eval_chebyt eval_chebyu eval_laguerre
    eval_legendre expn gammainc gammaincc gammainccinv gammaincinv hyp0f1 inv_boxcox inv_boxcox1p iv ive jv jve kn kv
    kve mathieu_a mathieu_b modstruve owens_t pdtrik poch powm1 pseudo_huber smirnov smirnovi stdtr stdtridf stdtrit
    struve tklmbda yn yv yve
ddd: bdtrik bdtrin besselpoly betainc betaincc betainccinv betaincinv btdtria btdtrib chndtr chndtridf chndtrinc
     chndtrix elliprd elliprf elliprg eval_gegenbauer eval_genlaguerre fdtridfd gdtria gdtrib gdtrix hyp1f1 hyperu
     log_wright_bessel lpmv nbdtrik nbdtrin nctdtr nctdtridf nctdtrinc nctdtrit nrdtrimn nrdtrisd
     voigt_profile wright_bessel
dddd: elliprj eval_jacobi hyp2f1 ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc
ld: eval_hermite eval_hermitenorm
ld?: spherical_in spherical_jn spherical_kn spherical_yn
"""
_OF_INTEGERS = """
ld: eval_chebyt eval_chebyu eval_laguerre eval_legendre
ldd: eval_gegenbauer eval_genlaguerre
lddd: eval_jacobi
"""
"""Functions that SciPy computes in another way of an integer: ops of their own, "_n" after the name."""
_SEVERAL = """
d 2: fresnel it2i0k0 it2j0y0 iti0k0 itj0y0 shichi sici
d 4: airy airye itairy
dd 2: pbdv pbvv pbwa
dd 4: ellipj
"""
"""Functions of several results: an op for each, "_0", "_1", … after the name."""


def _rows(table: str) -> list[tuple[str, str]]:
    """The kinds and the name of each function of a table."""
    rows = [line.partition(":") for line in re.sub(r"\n +", " ", table).split("\n") if line]
    return [(kinds, name) for kinds, _, names in rows for name in names.split()]


SOURCES: Mapping[str, Source] = {
    **{name: Source(name, kinds.strip("?"), options="?" in kinds) for kinds, name in _rows(_TABLE)},
    **{f"{name}_n": Source(name, kinds) for kinds, name in _rows(_OF_INTEGERS)},
    **{
        f"{name}_{place}": Source(name, kinds.split()[0], place, int(kinds[-1]))
        for kinds, name in _rows(_SEVERAL)
        for place in range(int(kinds[-1]))
    },
}
"""The functions that kernels call, by the names of their ops."""
PREFIX = "special_"
"""The beginning of the names of the ops."""
ELEMENT_WORK = 200
"""The additions that an element may take the time of."""


def symbol(name: str, dtype: str) -> str:
    """The function that computes all elements."""
    return f"gc_special_{name}_{SUFFIXES[dtype]}"


def value_of(name: str, arrays: Sequence[Array]) -> Any:
    """The value of SciPy's function of arrays."""
    source = SOURCES[name]
    with np.errstate(invalid="ignore"):
        operands = [
            array.astype("float64" if kind == "d" else "int64")
            for array, kind in zip(arrays, source.operands, strict=True)
        ]
    values = getattr(import_module("scipy.special"), source.name)(*operands)
    return values if source.count == 1 else values[source.place]


CALL = Call(
    lambda node: symbol(node.op.name.removeprefix(PREFIX), node.type.dtype),
    lambda node: [Extent(sizes.product(node.type.shape)), *map(Whole, node.args), Result()],
    lambda node: [*node.type.shape, ELEMENT_WORK],
)


def special_op(name: str, doc: str, vjp: Callable[[Node, Node], Any]) -> Callable[..., Node]:
    """A function of nodes that SciPy's function of that name computes."""

    def compute(*arrays: Array) -> Any:
        return value_of(name, arrays)

    compute.__doc__ = doc
    return custom_op(f"{PREFIX}{name}", compute, vjp=vjp, own=True, call=CALL)
