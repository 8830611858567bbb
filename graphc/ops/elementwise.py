"""The common part of all scalar ops: dtypes, sizes, broadcasting, and the conversion of operands into nodes.

In: the rows of the table (`graphc.ops.scalar`), and operands: nodes, NumPy arrays and scalars (strong dtypes), Python
numbers and lists of them (weak, by kind only, as NumPy's NEP 50 has it). Out: `elementwise(name, *operands)` makes the
node with every cast and broadcast spelled out as a node of its own.

    elementwise("add", A, i)      %0 = cast(i; dtype='float64')                    A: float64[n, m], i: int64[m]
                                  %1 = dimshuffle(%0; order=('x', 0))
                                  %2 = broadcast_to(%1, A.0, i.0)
                                  %3 = add(A, %2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from graphc.arrays.dtypes import (
    BOOL,
    COMPLEX,
    DISCRETE,
    DTYPES,
    FLOATS,
    INTEGERS,
    SIGNED,
    Scalar as Number_,
    can_cast_safely,
    check_dtype,
    fits,
    floating,
    is_float,
    is_inexact,
    promote,
    refuse_masked,
)
from graphc.arrays.numerics import convert
from graphc.errors import GraphTypeError, GraphValueError, IntegerTooLarge, ShapeError, plural
from graphc.ir import sizes
from graphc.ir.facts import below_broadcasts
from graphc.ir.node import (
    CONSTANT,
    OPS,
    Array,
    Batch,
    Comparison,
    Constant,
    Guard,
    Laws,
    Node,
    Scalar as Scalar_,
    Size,
    constant_value,
    describe,
    describe_size,
    lazy_text,
    literal,
    make,
    plain,
)
from graphc.ir.pairs import is_python_number
from graphc.ir.source_lines import TRACE, TRACED, by_program, program_line, traced_from
from graphc.ir.walk import as_size_node
from graphc.ops.questions import Number, asked_size, found as at_hand
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record

# --- promotion --------------------------------------------------------------------------------------------------------
# The one dtype that an op casts its operands to, by NumPy's rules, from their dtypes and kinds of Python numbers:
#
#     ANY.compute(["int8", 2])            "int8": a Python number has a kind, and no dtype
#     FLOAT.compute(["int8"])             "float32": the smallest float that holds it
#     QUOTIENT.compute(["int8", "int8"])  "float64", as NumPy's true_divide


Operand = str | Number_
"""The facts that promotion knows of an operand: the name of its dtype (strong), or a Python number of its kind
(weak)."""


@record()
class Rule:
    """The dtypes of an op.

    compute(operands): the one dtype its arguments are cast to. accepts: the dtypes it exists for. result: the dtype of
    the result where it is not that of the arguments. leading: dtypes of first arguments that do not take part.
    """

    compute: Callable[[Sequence[Operand]], str]
    accepts: tuple[str, ...]
    result: str | None = None
    leading: tuple[str, ...] = ()


def _common(operands: Sequence[Operand]) -> str:
    return promote(*operands)


def _of_numbers(operands: Sequence[Operand]) -> str:
    """Promote as NumPy's ufuncs without a bool loop: bools count as int8."""
    dtype = promote(*operands)
    return "int8" if dtype == "bool" else dtype


def _of_floats(operands: Sequence[Operand]) -> str:
    """The smallest float dtype that NumPy finds a loop for: each operand asks for its own."""
    numbers = [o for o in operands if not isinstance(o, str)]
    strong = [o for o in operands if isinstance(o, str)]
    if not strong and not any(isinstance(o, complex) for o in numbers):
        return options.floatX
    if any(map(is_inexact, strong)):
        return promote(*map(floating, strong))
    if any(isinstance(o, complex) for o in numbers):
        return promote(*operands)
    return promote(*(floating(promote(dtype, *numbers)) for dtype in strong))


def _of_quotients(operands: Sequence[Operand]) -> str:
    """Promote as NumPy's true_divide: quotients of integers are float64 (floatX where all are Python numbers)."""
    if not any(isinstance(o, str | complex) for o in operands):
        return options.floatX
    dtype = promote(*operands)
    return dtype if is_inexact(dtype) else "float64"


ANY = Rule(_common, DTYPES)
NO_BOOL = Rule(_common, INTEGERS + FLOATS)
NUMBER = Rule(_of_numbers, INTEGERS + FLOATS)
INTEGER = Rule(_common, INTEGERS)
SHIFT = Rule(_of_numbers, INTEGERS)
BITS = Rule(_common, DISCRETE)
BITS64 = Rule(_common, ("uint64",))
DRAWN = Rule(_common, ("uint64",), "float64")
FLOAT = Rule(_of_floats, FLOATS)
QUOTIENT = Rule(_of_quotients, FLOATS)
DOUBLE = Rule(lambda operands: "float64", ("float64",))
COMPARISON = Rule(_common, DTYPES, "bool")
FLOAT_TEST = Rule(_of_floats, FLOATS, "bool")
LOGIC = Rule(lambda operands: "bool", BOOL)
CHOICE = Rule(_common, DTYPES, leading=("bool",))


Partial = Callable[..., Any]
"""(cotangent, node, *args) -> the cotangent of one argument."""


# --- Python's numbers -------------------------------------------------------------------------------------------------


WEAK: dict[str, Number_] = {"bool": False, "int64": 0, "float32": 0.0, "float64": 0.0}
"""The stand-in for a `Number` of a dtype in promotion."""


def is_number(value: Any) -> bool:
    """Tell whether a value is a Python number, or stands for one, and has no dtype of its own."""
    if type(value) is Comparison:
        return all(map(is_number, value.operands))
    return type(value) is Number or (
        isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    )


def _integer(value: Any) -> Any:
    """A Python number that is a bool as an int, which it is in arithmetic; others as they are."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, Node) or value.type.dtype != "bool":
        return value
    number = make(OPS["cast"], (value,), {"dtype": "int64"})
    number.__class__ = Number
    return number


def _kept(name: str) -> Callable[..., Any]:
    operator = getattr(Node, name)
    of_bits = name.strip("_") in ("and", "or", "xor", "rand", "ror", "rxor")

    def method(self: Node, *others: Any) -> Any:
        if others and isinstance(others[0], SEQUENCES) and is_number(self):
            return NotImplemented  # [0] * n repeats, as with a Python number
        weak = is_number(self) and all(map(is_number, others))
        if others and not weak and name not in COMPARED and by_program():
            self, *others = with_sizes_fitted((self, *others))  # type: ignore[assignment]
        if weak and not of_bits:
            self, *others = map(_integer, (self, *others))  # type: ignore[assignment]
        result = operator(self, *others)
        if isinstance(result, Node) and result.type.shape and by_program():
            return HOOKS.handles.owned(result, others)
        for each in result if isinstance(result, tuple) else (result,):
            if weak and type(each) in (Node, Scalar_) and each.dtype in WEAK:
                each.__class__ = Number
        return result

    return method


SEQUENCES = (list, tuple, str, bytes)
COMPARED = frozenset("__lt__ __le__ __gt__ __ge__ less less_equal greater greater_equal equal not_equal".split())
"""Methods and functions that compare integers exactly, whatever their dtypes."""
FEWER_BITS = frozenset(INTEGERS) - {"int64"}


def with_sizes_fitted(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of a program's operator, where sizes that meet integers of fewer bits have their dtype, as Python's
    integers take it."""
    if Number not in map(type, operands):
        return operands
    dtypes = [str(getattr(each, "dtype", "")) for each in operands if not is_number(each)]
    if not dtypes or not FEWER_BITS.issuperset(dtypes):
        return operands
    dtype = promote(*dtypes)
    return [_fitted(each, dtype) if type(each) is Number and each.type.dtype == "int64" else each for each in operands]


def _fitted(number: Node, dtype: str) -> Node:
    """A Python integer in a dtype. That the dtype holds it is checked by each call, where bounds do not tell."""
    least, most = np.iinfo(dtype).min, min(np.iinfo(dtype).max, np.iinfo("int64").max)
    conditions = [elementwise("less_equal", number, int(most))]
    if not sizes.known_nonnegative(number):
        conditions.append(elementwise("greater_equal", number, int(least)))
    said = f"{_bare(number)}, a Python integer, is out of bounds for {dtype}"
    checks = [cast(condition, "int64") for condition in conditions]
    return make(OPS["checked"], (cast(number, dtype), *checks), {"message": said, "error": "value"})


_BINARY = "add sub mul truediv floordiv mod divmod pow and or xor".split()
for _name in (*_BINARY, *(f"r{_name}" for _name in _BINARY), *"lt le gt ge neg pos abs invert".split()):
    for _class in (Number, Comparison):
        setattr(_class, f"__{_name}__", _kept(f"__{_name}__"))


# --- rows -------------------------------------------------------------------------------------------------------------


_LAWLESS = Laws()


@record()
class Row:
    """One scalar op.

    function: its meaning in NumPy. template: its Python source, which may depend on the dtype it computes in. partials:
    for each argument the function that gives its cotangent, None where the derivative is zero almost everywhere; the
    whole None where graphc does not know the derivative. domain: the interval from which each float argument is drawn
    in tests; integers: the same for integer arguments. has_pole(*args): whether the graph lets a derivative be infinite
    where the value is defined; None where none can be.
    """

    name: str
    function: Callable[..., Any]
    template: str | Callable[[str], str]
    rule: Rule
    partials: tuple[Partial | None, ...] | None
    doc: str
    laws: Laws = _LAWLESS
    cost: float = 1.0
    domain: tuple[tuple[float, float], ...] = ()
    integers: tuple[tuple[int, int], ...] = ()
    arity: int = 1
    has_pole: Callable[..., bool] | None = None


ROWS: dict[str, Row] = {}
"""Every scalar op that a user calls on operands, by name."""


# --- sizes ------------------------------------------------------------------------------------------------------------


def list_types(args: Sequence[Node]) -> str:
    return " and ".join(f"{describe_origin(arg)} of type {arg.type}" for arg in args)


def describe_origin(node: Node) -> str:
    """`describe` of what the user wrote: casts and broadcasts that graphc put around it are left out, and an element
    of a variable is shown as one."""
    node = below_broadcasts(node, ("cast",), named=False)
    return _element(node) or describe(node)


def _element(node: Node) -> str | None:
    """`k[1]`, where a node is one element of a variable, or one from its end."""
    if node.name is not None or node.op.name != "subtensor" or node.args[0].name is None:
        return None
    whole, starts = node.args[0], node.args[1 : 1 + node.ndim]
    places = [
        start.args[1] if start.op.name == "add" and start.args[0] is size else start
        for start, size in zip(starts, whole.type.shape, strict=True)
    ]
    known = [constant_value(place) for place in places]
    if any(number is None for number in known) or any(size != 1 for size in node.type.shape):
        return None
    shown = f"{whole.name}[{', '.join(map(str, known))}]"
    return f"{shown} ({node.where})" if node.where else shown


def common_shape(name: str, args: Sequence[Node]) -> tuple[Size, ...]:
    """Return the common shape of arguments of equal rank. Raises ShapeError, naming two that are known to differ."""
    first = args[0].type.shape
    if all(arg.type.shape == first for arg in args):
        return first
    shape = list(first)
    holders = [args[0]] * len(shape)
    for arg in args[1:]:
        if arg.ndim != len(shape):
            raise ShapeError(f"{name}: ranks differ: {list_types((args[0], arg))}")
        for axis, size in enumerate(arg.type.shape):
            if isinstance(size, int) and isinstance(shape[axis], int) and size != shape[axis]:
                raise ShapeError(
                    f"{name}: {list_types((holders[axis], arg))}: "
                    f"sizes {describe_size(shape[axis])} and {describe_size(size)} differ along axis {axis}"
                )
            if isinstance(size, int) and not isinstance(shape[axis], int):
                shape[axis], holders[axis] = size, arg
    return tuple(shape)


ONLY_STATIC = "only a size that the type says is 1 (row, col, or a 1 in shape=) broadcasts"
"""The hint where sizes differ that NumPy might broadcast."""


def equal_sizes(node: Node) -> list[Guard]:
    """Guards for the sizes of a node's arguments that must be equal and are not known to be."""
    first, guards = node.args[0], []
    for axis, left in enumerate(first.type.shape):
        compared = [left]
        for arg in node.args[1:]:
            right = arg.type.shape[axis]
            if not any(sizes.equal(right, other) for other in compared):
                compared.append(right)
                message = lazy_text(partial(_disagreement, node, first, arg, axis))
                guards.append(Guard(left, "==", right, message))
    return guards


def _disagreement(node: Node, left: Node, right: Node, axis: int) -> str:
    label = f"{node.op.name} ({node.where})" if node.where else node.op.name
    text = f"{label}: {describe_origin(left)} and {describe_origin(right)} differ along axis {axis}: sizes "
    return text.replace("{", "{{").replace("}", "}}") + "{left} and {right}; " + ONLY_STATIC


def broadcast_sizes(name: str, nodes: Sequence[Node]) -> tuple[Size, ...]:
    """The shape to which operands broadcast: ranks filled up on the left, static sizes of 1 giving way."""
    first = nodes[0].type.shape
    if all(node.type.shape == first for node in nodes):
        return first
    shape: list[Size] = []
    for axis, aligned in enumerate(zip_longest(*(node.type.shape[::-1] for node in nodes), fillvalue=1), 1):
        wide = [size for size in aligned if not (isinstance(size, int) and size == 1)]
        numbers = [size for size in wide if isinstance(size, int)]
        if len(set(numbers)) > 1:
            raise ShapeError(f"{name}: {list_types(_differing(nodes, axis))} do not broadcast along axis -{axis}")
        shape.append(numbers[0] if numbers else wide[0] if wide else 1)
    return tuple(reversed(shape))


def narrowed(nodes: Sequence[Node], shape: Sequence[Size] = ()) -> Sequence[Node]:
    """Operands of a function that is traced, in which an axis whose size is computed, is 1 for the sizes at hand, and
    meets another size, of an operand or of `shape`, has the static size 1: `x[:, :1] * x`. It broadcasts then, as in
    NumPy."""
    first = tuple(shape) or nodes[0].type.shape
    if TRACE.at_hand is None or all(node.type.shape == first for node in nodes):
        return nodes
    narrow_nodes: list[Node] = []
    shapes = (shape, *(node.type.shape for node in nodes))
    for node in nodes:
        current = node
        for place in range(-node.ndim, 0):
            current = narrow(current, place + node.ndim, [each[place] for each in shapes if len(each) >= -place])
        narrow_nodes.append(current)
    return narrow_nodes


def narrow(node: Node, axis: int, others: Sequence[Size]) -> Node:
    """`node`, in a function that is traced, with an axis of static size 1 if its size is computed, is 1 for the sizes
    at hand, and meets one of `others` that is not always as large: it may be 1 too, and need not be so at the next
    call."""
    size = node.type.shape[axis]
    # Of the sizes of arguments `tracing` finds out itself that they broadcast.
    is_computed = isinstance(size, Node) and not (size.op.name == "size" and size.sized() in TRACED)
    if TRACE.at_hand is None or not is_computed or _at_hand(size) != 1:
        return node
    if all(
        each == 1 if isinstance(each, int) else sizes.equal(size, each) or _at_hand(each) is None for each in others
    ):
        return node
    asked_size(size)
    return node.part((slice(None),) * axis + (0, None))


def _at_hand(size: Size) -> int | None:
    """The number that a size is for the sizes at hand, if it follows from them, and no size is divided by 0."""
    try:
        known = (size,) if isinstance(size, int) else at_hand(size)
    except ZeroDivisionError:
        return None
    return None if known is None else int(known[0])


def _differing(nodes: Sequence[Node], axis: int) -> list[Node]:
    """The first two nodes whose static sizes along the axis, counted from the last, differ and are not 1."""
    holders: dict[Size, Node] = {}
    for node in nodes:
        size = node.type.shape[-axis] if node.ndim >= axis else 1
        if isinstance(size, int) and size != 1:
            holders.setdefault(size, node)
    return list(holders.values())[:2]


def broadcast_node(node: Node, shape: Sequence[Size]) -> Node:
    """`node` with axes of size 1 put in front and static sizes of 1 expanded, as `shape` asks. Other sizes stay."""
    if node.type.shape == shape:
        return node
    missing = len(shape) - node.ndim
    if missing:
        node = make(OPS["dimshuffle"], (node,), {"order": ("x",) * missing + tuple(range(node.ndim))})
    target = tuple(new if old == 1 else old for old, new in zip(node.type.shape, shape, strict=True))
    if target == node.type.shape:
        return node
    return make(OPS["broadcast_to"], (node, *map(as_size_node, target)))


# --- batches ----------------------------------------------------------------------------------------------------------


def repeated(args: Sequence[Node], batched: Sequence[bool], size: Size) -> list[Node]:
    """The arguments, all with a first axis of that size: those that have none are repeated along it."""
    pairs = zip(args, batched, strict=True)
    return [arg if has else broadcast_node(arg, (size, *arg.type.shape)) for arg, has in pairs]


def aligned(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """The `batch` of ops that look at each element by itself."""
    return make(node.op, repeated(args, batched, size), node.attrs)


def shifted(attribute: str) -> Batch:
    """The `batch` of ops that have an attribute for the axis, or the axes, along which they work."""

    def batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        axes = node.attrs[attribute]
        after = axes + 1 if isinstance(axes, int) else tuple(axis + 1 for axis in axes)
        return make(node.op, repeated(args, batched, size), {**node.attrs, attribute: after})

    return batch


# --- operands ---------------------------------------------------------------------------------------------------------


def _holds(value: Any, classes: type | tuple[type, ...]) -> bool:
    """Tell whether a value, or an item of a nested list, is of one of these types."""
    return isinstance(value, classes) or (
        isinstance(value, (list, tuple)) and any(_holds(item, classes) for item in value)
    )


def _array(value: Any) -> Array:
    """The array of a number, a list or an array; an error that names what cannot be one."""
    refuse_masked(value, "a constant")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise GraphValueError(f"{value!r} is not an array: its rows have different lengths") from error
    if isinstance(value, int) and array.dtype.kind == "O":
        raise IntegerTooLarge(f"64 bits cannot hold the integer {value}; the float {float(value):g} can stand for it")
    if array.dtype.kind not in "biuf" and array.dtype.name not in COMPLEX:
        raise GraphTypeError(f"{value!r} of type {type(value).__name__} is not a tensor")
    return array


def _weigh(value: Any) -> Operand:
    """The operand that `value` is in promotion."""
    if isinstance(value, Node):
        if is_python_number(value):
            return 0j
        return WEAK[value.type.dtype] if type(value) is Number else value.type.dtype
    if isinstance(value, (np.ndarray, np.generic)):
        return check_dtype(value.dtype)
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, (list, tuple)) and _holds(value, Node):
        weights = [_weigh(item) for item in value]
        if TRACE.depth:  # the list becomes an array, as in NumPy: its numbers have a dtype
            weights = [each if isinstance(each, str) else str(np.asarray(each).dtype) for each in weights]
        return promote(*_settle(weights))
    array = _array(value)
    if isinstance(value, (list, tuple)) and not _holds(value, (Node, np.ndarray, np.generic)):
        if TRACE.depth:  # the list becomes an array, as in NumPy
            return options.floatX if array.dtype.kind == "f" else check_dtype(array.dtype)
        return {"b": False, "f": 0.0, "c": 0j}.get(array.dtype.kind, 0)
    return check_dtype(array.dtype)


def _settle(operands: Sequence[Operand]) -> list[Operand]:
    """Python floats become floatX where no operand brings a float dtype."""
    if any(isinstance(o, str) and is_inexact(o) for o in operands):
        return list(operands)
    natural = {float: options.floatX, complex: "complex64" if options.floatX == "float32" else "complex128"}
    return [o if isinstance(o, str) else natural.get(type(o), o) for o in operands]


def convert_to(name: str, value: Any, dtype: str) -> Node:
    """`value` as a node of `dtype`; weak integers must fit, but for `where`, which wraps them as NumPy's does."""
    if isinstance(value, Node):
        is_integer = type(value) is Number and value.type.dtype == "int64"
        return (_fitted if is_integer and name != "where" and dtype in FEWER_BITS else cast)(value, dtype)
    if isinstance(value, (list, tuple)) and _holds(value, Node):
        return cast(_stack(name, value, dtype), dtype)
    class_ = type(value)
    if (class_ is float and dtype == "float64") or (class_ is int and dtype in WIDEST and abs(value) < EXACT):
        return literal(value, dtype)
    array = _array(value)
    if dtype in INTEGERS and array.dtype.kind in "iu" and not isinstance(value, (np.ndarray, np.generic)):
        for number in (int(array.min(initial=0)), int(array.max(initial=0))):
            if not fits(number, dtype) and name != "where":
                text = f"Python integer {number} is out of bounds for {dtype}"
                is_own = name == "constant" and TRACE.depth
                raise IntegerTooLarge(f"{text} (at {program_line()})" if is_own else f"{name}: {text}")
    with np.errstate(all="ignore"):
        return literal(array.astype(dtype, copy=False))


def _stack(name: str, items: Sequence[Any], dtype: str) -> Node:
    """The items, all of one rank, as the rows of one node."""
    rows = [convert_to(name, item, dtype) for item in items]
    for row in rows[1:]:
        if row.ndim != rows[0].ndim:
            raise ShapeError(f"the items of a list differ in rank: {list_types((rows[0], row))}")
    order = ("x", *range(rows[0].ndim))
    raised = [make(OPS["dimshuffle"], (row,), {"order": order}) for row in rows]
    return make(OPS["concatenate"], raised, {"axis": 0}) if len(raised) > 1 else raised[0]


EXACT = 2.0**53
"""Integers below it are floats of 64 bits."""
WIDEST = ("int64", "float64")


def as_node(value: Any, dtype: str | None = None, name: str | None = None) -> Node:
    """`value` as a node: nodes pass, numbers, lists and arrays become constants, lists that hold nodes are stacked, an
    application stands for its one result.

    Python floats get `options.floatX`, Python integers int64; `dtype` casts. Raises GraphTypeError for anything else.
    """
    wanted = dtype and check_dtype(dtype)
    class_ = type(value)
    if class_ is float or (class_ is int and abs(value) < EXACT):  # which programs use most
        node = convert_to("constant", value, wanted or ("int64" if class_ is int else options.floatX))
    elif not isinstance(value := result_of(value), Node):
        natural = promote(*_settle([_weigh(value)]))
        node = convert_to("constant", value, wanted or natural)
    else:
        node = plain(value)
        node = convert_to("constant", node, wanted) if wanted else node
    if name is not None and node.name is None:
        if node.op is CONSTANT:  # equal constants are one node: a name of its own makes another
            return Constant(CONSTANT, (), dict(node.attrs), node.type, name)
        node.name = name
    return node


def result_of(value: Any) -> Any:
    """The result of an application (`Apply`, which is known by its `default_output`) that has one; what is no
    application as it is. Raises GraphValueError where there are several."""
    if isinstance(value, Node) or not hasattr(value, "default_output"):
        return value
    if len(value.outputs) != 1:
        raise GraphValueError(f"{value!r} has {len(value.outputs)} results: say which one, as in node.outputs[0]")
    return value.outputs[0]


def cast(node: Node, dtype: str) -> Node:
    """`node` converted to `dtype`, itself where it has that dtype. Constants are converted at once."""
    if node.type.dtype == dtype:
        return node
    if dtype in COMPLEX or node.type.dtype in COMPLEX:
        converted: Node = HOOKS.pairs.cast(node, dtype)
        return converted
    value = constant_value(node)
    if value is not None:
        with np.errstate(all="ignore"):
            return literal(convert(value, dtype))
    return make(OPS["cast"], (node,), {"dtype": check_dtype(dtype)})


def cast_safely(node: Node, dtype: str) -> Node:
    """`node` converted to `dtype` where no value changes by it; else `node`."""
    return cast(node, dtype) if can_cast_safely(node.type.dtype, dtype) else node


def in_floats(x: Any) -> Node:
    """`x` as a node of a float dtype: integers as `sigmoid` has them, those of 8 and 16 bits in float32."""
    node = as_node(x)
    return node if is_float(node.type.dtype) else cast(node, floating(node.type.dtype))


# --- the user functions -----------------------------------------------------------------------------------------------


def elementwise(name: str, *operands: Any) -> Node:
    """The scalar op `name` applied to operands after NumPy's promotion and broadcasting.

    Operands are nodes, NumPy arrays and scalars, Python numbers and lists. Only a size known to be 1 broadcasts. Raises
    GraphTypeError for dtypes that NumPy's function does not take, ShapeError for sizes known to differ.
    """
    row = ROWS[name]
    if len(operands) != row.arity:
        raise GraphTypeError(f"{name}() takes {plural(row.arity, 'argument', 'arguments')}, not {len(operands)}")
    if alike(row, operands):
        checks = name == "pow" and operands[0].dtype in SIGNED
        return make(OPS[name], _with_natural_exponent(*operands) if checks else operands)
    operands = tuple(map(result_of, operands))
    weights = _settle([_weigh(operand) for operand in operands])
    if any(type(operand) is Number for operand in operands):
        weights = _with_exact_integers(row, operands, weights)
    if row.rule.result == "bool" and row.arity == 2:
        exact = _compare_exactly(name, operands, weights)
        if exact is not None:
            return exact
    leading = row.rule.leading
    dtype = row.rule.compute(weights[len(leading) :])
    is_paired = dtype in COMPLEX and HOOKS.pairs.has(name)
    if dtype not in row.rule.accepts and not is_paired:
        described = (f"{describe(o)} of dtype {o.type.dtype}" if isinstance(o, Node) else repr(o) for o in operands)
        raise GraphTypeError(f"{name} is not defined for {' and '.join(described)}, as in NumPy")
    targets = (*leading, *(dtype,) * (row.arity - len(leading)))
    if name == "pow" and dtype in SIGNED:
        operands = _with_natural_exponent(*operands)
    nodes = [convert_to(name, o, t) for o, t in zip(operands, targets, strict=True)]
    return HOOKS.pairs.apply(name, nodes) if is_paired else _apply(name, nodes)


def _with_exact_integers(row: Row, operands: Sequence[Any], weights: Sequence[Operand]) -> list[Operand]:
    """The weights, a `Number` that is an integer that of int64 where it meets integers and their dtype may be too
    narrow for it: in comparisons, and where it is a size, which no user has given a dtype."""
    pairs = list(zip(operands, weights, strict=True))
    if not all(weight in INTEGERS or type(weight) is int for _, weight in pairs):
        return list(weights)
    compares = row.rule.result == "bool"
    return [
        o.type.dtype
        if type(o) is Number and o.type.dtype == "int64" and (compares or traced_from(o, False) is None)
        else weight
        for o, weight in pairs
    ]


def alike(row: Row, operands: Sequence[Any]) -> bool:
    """Tell whether the operands are nodes of one type for which the op has a loop: the common case, quickly."""
    first = operands[0]
    if not isinstance(first, Node) or row.rule.leading or first.type.dtype not in row.rule.accepts:
        return False
    type_ = first.type
    return all(isinstance(o, Node) and (o.type is type_ or o.type.is_same(type_)) for o in operands[1:])


def _apply(name: str, nodes: Sequence[Node]) -> Node:
    """The op on nodes of the right dtypes, broadcast to one shape."""
    nodes = narrowed(nodes)
    shape = broadcast_sizes(name, nodes)
    return make(OPS[name], [broadcast_node(node, shape) for node in nodes])


def _with_natural_exponent(base: Any, power: Any) -> tuple[Any, Any]:
    """The operands of a power of integers, of which there is none with a negative exponent: that is an error, of the
    call where it is not known before. What is looked at is the exponent before it was broadcast."""
    node = as_node(power)
    exponent = below_broadcasts(node)
    value = constant_value(exponent)
    said = "pow: integers to negative integer powers are not allowed"
    if value is not None and np.any(value < 0):
        raise GraphValueError(f"{said}; cast the base to a float dtype")
    if value is not None or exponent.type.dtype not in SIGNED:
        return base, power
    natural = elementwise("greater_equal", exponent, 0)
    if exponent.ndim:
        natural = make(OPS["all"], (natural,), {"axes": tuple(range(exponent.ndim))})
    of = _bare(as_node(base))
    said += f": {_bare(exponent)}, the exponent of {of}, is below 0; cast {of} to a float dtype"
    return base, make(OPS["checked"], (node, cast(natural, "int64")), {"message": said, "error": "value"})


def _bare(node: Node) -> str:
    """A node for the text of a check, without its line: that is part of a graph, which a line does not change."""
    return describe(node).removesuffix(f" ({node.where})")


def _compare_exactly(name: str, operands: Sequence[Any], weights: Sequence[Operand]) -> Node | None:
    """Comparisons that no common dtype can make exactly; None where the ordinary promotion can.

    A Python integer outside the range of the other operand's dtype is above or below all its values. A signed integer
    against a uint64 is below it where it is negative, and compares as uint64 elsewhere.
    """

    def outcome(left: int, right: int) -> bool:
        return bool(ROWS[name].function(left, right))

    left, right = weights
    for position, (weight, other) in enumerate(((left, right), (right, left))):
        if isinstance(weight, int) and isinstance(other, str) and other in INTEGERS and not fits(weight, other):
            always = literal(outcome(weight, 0) if position == 0 else outcome(0, weight))
            return broadcast_node(always, as_node(operands[1 - position]).type.shape)
    if {left, right} & set(SIGNED) and "uint64" in (left, right):
        position = 0 if left in SIGNED else 1
        signed, unsigned = as_node(operands[position]), as_node(operands[1 - position])
        pair = (cast(signed, "uint64"), unsigned)[:: 1 if position == 0 else -1]
        compared = _apply(name, pair)
        negative = elementwise("less", signed, 0)
        if outcome(-1, 0) if position == 0 else outcome(0, -1):
            return elementwise("logical_or", negative, compared)
        return elementwise("logical_and", elementwise("logical_not", negative), compared)
    return None
