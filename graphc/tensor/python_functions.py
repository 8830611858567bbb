"""Python's own functions of numbers, `math.*`, `max`, `min`, `float` and `int`, as a traced program calls them with
tensors.

    math.log(x.sum())           a node, which is NumPy's value where math.log raises an error: of 0 it is -inf
    max(level + x[i], 0.0)      a node: the later one where it is larger, else the first
    float(x.mean())             a node of float64 that stands for a Python number

Python asks for the value of a number, or for the truth of a comparison, which a tensor has not. So while a function is
traced, these functions are others (`creations.replace`): those of `math` in its module, the others among the names of
the program's module. In: their arguments. Out: what Python's own give where these are known, or follow from sizes at
hand, which is a question; else nodes, which stand for Python's numbers as Python's results do.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Sequence
from dis import Bytecode, get_instructions, opmap
from functools import lru_cache, reduce, wraps
from itertools import pairwise
from types import CodeType
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir.node import FUNCTIONS, Node, constant_value, describe, literal
from graphc.ir.source_lines import PACKAGE, TRACE, program_line
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.identity import checked
from graphc.ops.questions import Number, found, told
from graphc.tensor import boundary, elementary
from graphc.tensor.handles import UNKNOWN, known

# --- math -------------------------------------------------------------------------------------------------------------

FLOATS = (
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 fabs fmod gamma "
    "hypot lgamma log log10 log1p log2 pow radians sin sinh sqrt tan tanh".split()
)
"""Functions of Python's math that give floats."""
NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "degrees": "rad2deg", "fabs": "abs", "lgamma": "gammaln", "radians": "deg2rad",
}  # fmt: skip
WHOLE = "ceil floor trunc".split()
"""Those that give whole numbers."""
TESTS = "isfinite isinf isnan".split()
TOTAL = frozenset("asinh atan atan2 cbrt copysign degrees erf erfc fabs hypot radians tanh".split())
"""Those that raise no error of numbers."""
MATHS = {name: own for name in (*FLOATS, *WHOLE, *TESTS) if (own := getattr(math, name, None)) is not None}
"""Python's own."""


def of_tensors(function: Any) -> Callable[..., Any] | None:
    """The function of tensors that computes one of Python's math that gives floats; None for others."""
    name = getattr(function, "__name__", "")
    if name not in FLOATS or getattr(function, "__wrapped__", function) is not MATHS.get(name):
        return None
    known_as = NAMES.get(name, name)
    result: Callable[..., Any] = getattr(elementary, known_as, None) or FUNCTIONS["later"](known_as)
    return result


def is_open(value: Any) -> bool:
    """True for a number that is computed from values of arguments: nothing says what it is."""
    if not isinstance(value, Node) or value.ndim or known(value) is not UNKNOWN:
        return False
    node = boundary.given(value)
    return constant_value(node) is None and found(node) is None


def is_tried() -> bool:
    """True if the program called the calling function, or what calls it, in a `try`."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        if any(start <= frame.f_lasti < end for start, end in tried(frame.f_code)):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@lru_cache(maxsize=1024)
def tried(code: CodeType) -> list[tuple[int, int]]:
    """The instructions within a `try` of the code: the offset of the first, and of what comes after the last."""
    names = {each.offset: each.opname for each in get_instructions(code)}
    handlers = {offset: following for offset, following in pairwise(names) if names[offset] == "PUSH_EXC_INFO"}
    return [
        (entry.start, entry.end)
        for entry in Bytecode(code).exception_entries  # type: ignore[attr-defined]
        if entry.target in handlers and names[handlers[entry.target]] != "WITH_EXCEPT_START"
    ]


def number(node: Node) -> Node:
    """A new node that stands for a Python number."""
    node.__class__ = Number
    return node


def _math(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any) -> Any:
        if not TRACE.depth or not any(map(is_open, args)):
            return function(*args)
        nodes = [cast(as_node(each), "float64") for each in boundary.given(args)]
        if name in TESTS:
            return elementwise(name, *nodes)
        if name not in TOTAL and is_tried():
            raise GraphTypeError(
                f"math.{name} raises an error for some values, which the `try` around it would catch and compiled code "
                f"does not raise; compare the value before, by np.where or lax.cond (at {program_line()})"
            )
        return number(whole_number(name, nodes[0]) if name in WHOLE else _float(name, nodes))

    return call


def _float(name: str, nodes: Sequence[Node]) -> Node:
    """A function that gives a float, of nodes of float64."""
    function = of_tensors(MATHS[name])
    assert function is not None
    if name == "log" and len(nodes) == 2:
        made = elementwise("true_div", *(_float("log", [each]) for each in nodes))
    elif name == "hypot" and len(nodes) != 2:
        made = reduce(function, nodes, literal(0.0, "float64"))
    else:
        made = function(*nodes)
    return elementwise("add", made, 0.0) if made in nodes else made


def whole_number(name: str, node: Node, called: str = "") -> Node:
    """A function that gives a whole number, of a node of float64. called: what the program calls it."""
    holds = elementwise("less", elementwise("abs", node), 2.0**63)
    made = cast(elementwise(name, node), "int64")
    told = describe(node).partition(" (")[0]
    message = f"{called or f'math.{name}'}({told}) is no whole number of 64 bits"
    return checked(made, [cast(holds, "int64")], message, "value")


# --- max and min ------------------------------------------------------------------------------------------------------


def _extreme(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    relation, of_arrays = ("greater", "nanmax") if name == "max" else ("less", "nanmin")

    def larger(first: Any, later: Any) -> Any:
        takes = elementwise(relation, later, first) if isinstance(later, Node) or isinstance(first, Node) else None
        if takes is None or not is_open(takes):
            return function(first, later)
        if not have_one_dtype(first, later):
            return of_two_dtypes(name, first, later, takes)
        made = elementwise("where", takes, later, first)
        return number(made) if is_number(first) and is_number(later) else made

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not TRACE.depth or kwargs or not args:
            return function(*args, **kwargs)
        if len(args) == 1 and isinstance(args[0], Node) and args[0].ndim == 1 and known(args[0]) is UNKNOWN:
            vector = boundary.given(args[0])
            if vector.type.dtype[0] != "f":
                return vector.max() if name == "max" else vector.min()
            first = vector[0]  # Python keeps a first one that is NaN, and passes over others
            return elementwise("where", elementwise("isnan", first), first, FUNCTIONS["later"](of_arrays)(vector))
        items = list(args[0]) if len(args) == 1 else list(args)
        if not any(map(is_open, items)):
            return function(items) if items else function(args[0])
        return reduce(larger, boundary.given(items))

    return call


def have_one_dtype(first: Any, later: Any) -> bool:
    """True if the larger of two numbers has one dtype, whichever it is."""
    numbers = [each for each in (first, later) if hasattr(each, "dtype") and not is_number(each)]
    typed = [each.type.dtype if isinstance(each, Node) else str(each.dtype) for each in numbers]
    return not typed or set(typed) == {as_node(elementwise("add", first, later)).type.dtype}


def of_two_dtypes(name: str, first: Any, later: Any, takes_later: Node) -> Any:
    """The larger of two numbers that have different dtypes, where a call tells which one it is; else GraphTypeError."""
    answer = told(takes_later)
    if answer is not None:
        return later if answer else first
    both = " and ".join(
        describe(each).partition(" (")[0] + f", {each.type.dtype}," if isinstance(each, Node) else repr(each)
        for each in (first, later)
    )
    ufunc = {"max": "np.maximum", "min": "np.minimum"}[name]
    raise GraphTypeError(
        f"{name} of {both} has the dtype of the one that it is, which is not known while the function is traced; "
        f"{ufunc}(a, b) has one dtype (at {program_line()})"
    )


# --- float and int ----------------------------------------------------------------------------------------------------


def _conversion(kind: type, convert: Callable[[Node], Node]) -> type:
    """A class in place of `float` or `int`. It is equal to the class, has its instances and its dtype, and makes them;
    of an open number it makes a node."""

    def make(_: type, *args: Any, **kwargs: Any) -> Any:
        if not TRACE.depth or len(args) != 1 or kwargs or not is_open(args[0]):
            return kind(*args, **kwargs)
        node = boundary.given(args[0])
        if node.type.dtype[0] == "c" or (kind is int and TRACE.values is not None and TRACE.values.is_once):
            return kind(args[0])
        return number(convert(node))

    return class_for(kind, make)


def class_for(kind: type, make: Callable[..., Any]) -> type:
    """A class in place of one of numbers, which is equal to it, has its instances and its dtype. `make` makes them."""
    own = {
        # Python's own methods, without a frame: a tensor that is asked for its class looks at who asks
        "__instancecheck__": kind.__instancecheck__,
        "__subclasscheck__": kind.__subclasscheck__,
        "__eq__": lambda cls, other: other is kind or other is cls or NotImplemented,  # dtypes know
        "__hash__": lambda _: hash(kind),
    }
    named = {"__module__": __name__, "__new__": make, "__doc__": kind.__doc__, "dtype": np.dtype(kind)}
    made: type = type("Kind", (type,), own)(kind.__name__, (kind,), named)
    return made


def _to_float(node: Node) -> Node:
    return elementwise("positive", node) if node.type.dtype == "float64" else cast(node, "float64")


def _to_int(node: Node) -> Node:
    if node.type.dtype[0] == "f":
        return whole_number("trunc", cast(node, "float64"), "int")
    return elementwise("positive", node) if node.type.dtype == "int64" else cast(node, "int64")


IS_OP = opmap["IS_OP"]


@lru_cache(maxsize=4096)
def tells_apart(code: CodeType) -> frozenset[str]:
    """Those of `float`, `int` and `numpy` (for all that is in NumPy's module) that a code may compare by `is`, which
    tells a class from what stands for it."""
    found = frozenset[str]().union(*(tells_apart(part) for part in code.co_consts if isinstance(part, CodeType)))
    if IS_OP not in code.co_code[::2]:
        return found
    instructions = [*get_instructions(code)]
    compared = {first.argval for first, then in pairwise(instructions) if then.opname == "IS_OP"}  # type(x) is float
    if compared <= {None, True, False, Ellipsis, *CONVERSIONS}:
        return found | (compared & CONVERSIONS.keys())
    return found | (CONVERSIONS.keys() & set(code.co_names)) | {"numpy"}  # kind is other


REPLACED = [(math, name, own, _math(name, own)) for name, own in MATHS.items()]
"""The module, the name, Python's own function, and what takes its place while a function is traced."""
CONVERSIONS = {"float": _conversion(float, _to_float), "int": _conversion(int, _to_int)}
PYTHONS: dict[str, Any] = {name: _extreme(name, getattr(builtins, name)) for name in ("max", "min")} | CONVERSIONS
"""What takes the place of functions of Python's that have no module, by name."""
