"""NumPy's functions of tensors: `np.exp(x)`, `np.sum(x, axis=0)`, `np.add.reduce(x)` build the graph.

In: what NumPy hands over (NEP 13, NEP 18): a ufunc with the method of it that was called, or a function, with the
arguments. Out: nodes, made by the function of the same name in `graphc.tensor` (in `graphc.tensor.linalg` for those of
`np.linalg`), so that a function that is added there needs no line here; or a GraphTypeError that names NumPy's function
and the tensor. `graphc.tensor.fft` is Theano's, whose results have another shape than NumPy's, and is not asked.

Arguments go over by name, as NumPy's function has them; a name that graphc's function lacks goes by its position. What
is about NumPy's memory alone is dropped. `ALIASES` has what has another name, `Own` what has another meaning or form.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from graphc import tensor
from graphc.errors import ArgumentError
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node, cast
from graphc.ops.questions import Number, asked_size, asked_values
from graphc.ops.recur import EXTREMES
from graphc.startup.hooks import HOOKS, nearest
from graphc.startup.record import record
from graphc.tensor.forms import OWN, name_tensor, refuse, tensors_in
from graphc.tensor.reductions import running_extreme

Function = Callable[..., Any]

ALIASES = {
    "absolute": "abs", "amax": "max", "amin": "min", "around": "round", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "concat": "concatenate",
    "conjugate": "conj", "cumulative_prod": "cumprod", "cumulative_sum": "cumsum", "empty_like": "zeros_like",
    "floor_divide": "floor_div", "permute_dims": "transpose", "row_stack": "vstack", "true_divide": "true_div",
}  # fmt: skip
"""NumPy's names for functions that `graphc.tensor` may have under another one only."""
KEYWORDS = {"a_min": "min", "a_max": "max", "correction": "ddof"}
"""NumPy's keywords that graphc's functions have under another name."""
DROPPED = {"casting", "copy", "device", "optimize", "order", "stable", "subok"}
"""Keywords about NumPy's memory and speed, where graphc's function has none of the name."""
MEMORY = ("casting", "order", "subok")
"""Keywords of ufuncs about memory."""
IN_PLACE = {
    "copyto": "T.set_subtensor(x[:], y)", "fill_diagonal": "T.fill_diagonal(x, value)",
    "place": "T.where(mask, value, x)", "put": "T.set_subtensor(x.flatten()[indices], y)",
    "put_along_axis": "T.set_subtensor(x[indices], y)", "putmask": "T.where(mask, value, x)",
}  # fmt: skip
"""Functions that change an array, with what makes a changed copy."""
REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
    "logaddexp": "logsumexp",
}  # fmt: skip
"""The function that reduces as a ufunc's method `reduce` does."""
ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}

SIGNATURES = {
    "arange": "start stop step dtype device like", "asfortranarray": "a dtype like",
    "bincount": "x weights minlength", "can_cast": "from_ to casting", "concatenate": "arrays axis out dtype casting",
    "copyto": "dst src casting where", "dot": "a b out", "inner": "a b", "lexsort": "keys axis",
    "empty": "shape dtype order device like", "empty_like": "prototype dtype order subok shape device",
    "min_scalar_type": "a", "putmask": "a mask values", "packbits": "a axis bitorder",
    "ravel_multi_index": "multi_index dims mode order", "unpackbits": "a axis count bitorder",
    "unravel_index": "indices shape order", "vdot": "a b", "where": "condition x y",
    "zeros": "shape dtype order device like",
}  # fmt: skip
"""The parameters of functions that are not written in Python."""


# --- what NumPy was asked -------------------------------------------------------------------------------------------


@record()
class Parameters:
    """The parameters of a function: `names` may be given by position, `rest` takes the other positions."""

    names: tuple[str, ...]
    keywords: tuple[str, ...]
    rest: str | None
    any_keyword: bool
    defaults: Mapping[str, Any]

    @classmethod
    @lru_cache(maxsize=2048)
    def of(cls, function: Any) -> Parameters:
        """Read from the code: `inspect` takes long to import."""
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        if code is None:
            names = tuple(SIGNATURES.get(function.__name__, "").split())
            defaults = {"out": None, "axis": 0} if "out" in names else {}
            return cls(names, (), None if names else "args", not names, defaults)
        function = getattr(function, "__wrapped__", function)
        count, keywords = code.co_argcount, code.co_kwonlyargcount
        names = code.co_varnames[:count]
        defaults = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
        has_rest, more = bool(code.co_flags & 4), bool(code.co_flags & 8)
        return cls(
            names,
            code.co_varnames[count : count + keywords],
            code.co_varnames[count + keywords] if has_rest else None,
            more,
            {**defaults, **(function.__kwdefaults__ or {})},
        )


@lru_cache(maxsize=2048)
def title(function: Any) -> str:
    """The name of one of NumPy's functions, as programs write it."""
    module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
    return f"{module}.{function.__name__}" if module.startswith("np") else function.__name__


# --- functions ------------------------------------------------------------------------------------------------------


def call_function(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Apply one of NumPy's functions to tensors (NEP 18)."""
    name, what = function.__name__, title(function)
    changes = name in IN_PLACE and what == f"np.{name}"
    target = OWN.get(what) or find_target(function)
    if target is None and not changes:
        known = HOOKS.absent("graphc.tensor", name)[1]
        instead = known or "compose it of those in graphc.tensor, or make an op of a Python function with graphc.op"
        refuse(what, (args, kwargs), f"graphc has no function {what.removeprefix('np.')}; {instead}")
    theirs = Parameters.of(function)
    names = theirs.names + theirs.keywords
    unknown = next((key for key in kwargs if key not in names), None)
    if unknown is not None and not theirs.any_keyword:
        meant = nearest(unknown, names) or f"it has {', '.join(names)}"
        raise ArgumentError(f"{what} of {name_tensor(args, kwargs)}: there is no argument {unknown!r}; {meant}")
    if target is None or changes:
        refuse(what, (args, kwargs), f"it would be changed in place; {IN_PLACE[name]} makes a changed copy")
    given, rest = bind(theirs, args, kwargs)
    return with_fields(what, apply(target, function, given, rest))


def with_fields(what: str, result: Any) -> Any:
    """Results that NumPy names, under its names."""
    if not isinstance(result, tuple) or what not in FIELDS:
        return result
    kind, *fields = FIELDS[what].split()
    return namedtuple(kind, fields)(*result)


FIELDS = {
    "np.linalg.eig": "EigResult eigenvalues eigenvectors", "np.linalg.eigh": "EighResult eigenvalues eigenvectors",
    "np.linalg.qr": "QRResult Q R", "np.linalg.slogdet": "SlogdetResult sign logabsdet",
    "np.linalg.svd": "SVDResult U S Vh", "np.unique_all": "UniqueAllResult values indices inverse_indices counts",
    "np.unique_counts": "UniqueCountsResult values counts",
    "np.unique_inverse": "UniqueInverseResult values inverse_indices",
}  # fmt: skip
"""The names of NumPy's results."""


@lru_cache(maxsize=2048)
def find_target(function: Any) -> Function | None:
    """The function of graphc that has the name of one of NumPy's, in the module of the same name."""
    name = function.__name__
    module = (getattr(function, "__module__", None) or "numpy").split(".")
    homes = [tensor]
    if module[0] == "numpy" and len(module) > 1:
        homes = [tensor.linalg] if module[1] == "linalg" else []
        homes += [tensor] if name in SHARED_NAMES else []
    for home in homes:
        for known in (name, ALIASES.get(name, name)):
            found = vars(home).get(known) or getattr(home, known, None)
            if callable(found) and not isinstance(found, type):
                target: Function = found
                return target
    return None


SHARED_NAMES = {"cross", "matmul", "multi_dot", "outer", "tensordot", "vecdot", "matrix_transpose"}
"""Functions of np.linalg that NumPy has at its top too, or that nothing else could mean."""


def bind(parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The arguments by NumPy's names, without those that are its defaults; and those beyond all names."""
    given = dict(zip(parameters.names, args, strict=False)) | dict(kwargs)
    kept = {
        name: value
        for name, value in given.items()
        if name not in parameters.defaults or not is_default(value, parameters.defaults[name])
    }
    return kept, list(args[len(parameters.names) :])


def is_default(value: Any, default: Any) -> bool:
    simple = isinstance(value, str | int | float | bool | tuple) and type(value) is type(default)
    return value is default or (simple and next(tensors_in(value), None) is None and bool(value == default))


def apply(target: Function, function: Any, given: dict[str, Any], rest: Sequence[Any]) -> Any:
    """Call a function of graphc with arguments that have NumPy's names."""
    name, what = ALIASES.get(function.__name__, function.__name__), title(function)
    theirs, ours = Parameters.of(function), Parameters.of(target)
    if given.pop("out", None) is not None:
        refuse(what, (given, rest), "its value cannot be written to an array (out=) while the graph is built")
    order = theirs.names + theirs.keywords
    placed: dict[int, Any] = {}
    named: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for key, value in given.items():
        known = KEYWORDS.get(key, key)
        position = order.index(key) if key in order else len(order)
        theirs_too = position < len(theirs.names) and position >= len(ours.names) and ours.rest
        if known in ours.names or known in ours.keywords:
            named[known] = value
        elif position < len(ours.names) and ours.names[position] not in map(KEYWORDS.get, order, order):
            placed[position] = value
        elif key in WRAPPED or not (theirs_too or ours.any_keyword):
            left[key] = value
        elif theirs_too:
            placed[position] = value
        else:
            named[known] = value
    count = max([*placed, len(ours.names) - 1 if rest and theirs.names else -1]) + 1
    positional = []
    for position in range(count):
        if position in placed:
            positional.append(placed[position])
        elif position < len(ours.names) and ours.names[position] in named:
            positional.append(named.pop(ours.names[position]))
        else:
            refuse(what, (given, rest), "its arguments leave a gap; name them")
    return call_with_rest(target, name, what, [*positional, *rest], named, left)


WRAPPED = {"initial", "where", "dtype", *DROPPED}
"""Keywords that stand for themselves alone, never for an argument at the same position."""


def call_with_rest(
    target: Function, name: str, what: str, args: list[Any], named: dict[str, Any], left: dict[str, Any]
) -> Any:
    """Call a function of graphc, and convert its result to the dtype in `left`."""
    left = {key: value for key, value in left.items() if key not in DROPPED}
    dtype = left.pop("dtype", None)
    if left:
        refuse(what, (args, named), f"graphc's {name} has no argument {', '.join(left)}")
    result = target(*args, **named)
    return result if dtype is None else cast(as_node(result), str(np.dtype(dtype)))


# --- ufuncs ---------------------------------------------------------------------------------------------------------


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Apply a ufunc, or one of its methods, to tensors (NEP 13)."""
    what = ufunc_title(ufunc) + ("" if method == "__call__" else f".{method}")
    given = {key: kwargs[key] for key in kwargs if key == "axis" or not (key in MEMORY or kwargs[key] is None)}
    out = given.pop("out", None)
    if any(each is not None for each in (out if isinstance(out, tuple) else (out,))) or method == "at":
        refuse_change(what, method, (inputs, out))
    methods: dict[str, Function] = {
        "__call__": elementwise,
        "reduce": reduce,
        "accumulate": accumulate,
        "outer": outer,
        "reduceat": reduceat,
    }
    if method not in methods:
        refuse(what, inputs, "graphc has no such reduction")
    if method == "__call__" and kwargs.get("casting"):
        given["casting"] = kwargs["casting"]
    return methods[method](ufunc, what, *inputs, **given)


def ufunc_title(ufunc: Any) -> str:
    """The name of a ufunc, as programs write it, by the module that has it."""
    name = ufunc.__name__
    home = next((home for home, module in ufunc_homes() if getattr(module, name, None) is ufunc), None)
    return f"the ufunc {name}" if home is None else f"{home}.{name}"


def ufunc_homes() -> list[tuple[str, Any]]:
    """The modules whose ufuncs graphc knows by name, and how programs name them."""
    return [("np", np), ("scipy.special", sys.modules.get("scipy.special"))]


def refuse_change(what: str, method: str, given: Any) -> NoReturn:
    if method == "at":
        refuse(what, given, "an array would be changed in place; T.inc_subtensor(x[indices], y) makes a changed copy")
    refuse(
        what,
        given,
        "an array cannot take a value that is not computed yet, as `a += x` and out= ask for; write a = a + x",
    )


def ufunc_target(ufunc: Any) -> Function | None:
    """The function of graphc for a ufunc of NumPy, or of scipy.special, by its name."""
    name = ufunc.__name__
    homes = [home for home, module in ufunc_homes() if getattr(module, name, None) is ufunc]
    if homes != ["np"]:
        return HOOKS.scipys.ufunc(name) if homes else None
    own = UFUNCS.get(name)
    found = own or getattr(tensor, ALIASES.get(name, name), None)
    return found if callable(found) else None


def elementwise(ufunc: Any, what: str, *inputs: Any, **given: Any) -> Any:
    """A call of a ufunc."""
    target = ufunc_target(ufunc)
    if target is None:
        foreign = what.startswith("the ufunc ")
        home = "graphc.scipy.special" if what.startswith("scipy") else "graphc.tensor"
        problem = "what it computes is not known" if foreign else f"{home} has no {ufunc.__name__}"
        refuse(
            what,
            inputs,
            f"{problem}; compose it of functions of graphc.tensor, or make an op of a Python function with graphc.op",
        )
    if given.get("where", True) is not True:
        refuse(what, inputs, "where= leaves elements without a value; use T.where(condition, value, other)")
    given.pop("where", None)
    dtype, casting = given.pop("dtype", None), given.pop("casting", "same_kind")
    if "axis" in given and ufunc.__name__ == "vecdot":
        return target(*inputs, axis=given["axis"])
    if given:
        refuse(what, inputs, f"{', '.join(given)}= is not supported")
    if dtype is None:
        return target(*inputs)
    wanted = np.dtype(dtype)
    kinds = _loop(ufunc, what, inputs, wanted, casting)
    return cast(
        as_node(target(*(cast(as_node(x), str(each)) for x, each in zip(inputs, kinds, strict=True)))), str(wanted)
    )


def _loop(ufunc: Any, what: str, inputs: Sequence[Any], wanted: np.dtype[Any], casting: str) -> Sequence[np.dtype[Any]]:
    """The dtypes in which a ufunc takes its inputs, if its result has the one that was asked for; GraphTypeError where
    NumPy has no such loop, or does not cast the inputs to it."""
    given = [
        type(each) if isinstance(each, (bool, int, float)) and not isinstance(each, np.generic)
        else {"f": float, "b": bool}.get(np.dtype(as_node(each).type.dtype).kind, int) if type(each) is Number
        else np.dtype(as_node(each).type.dtype)
        for each in inputs
    ]  # fmt: skip
    signature = (*(None for _ in inputs), *(wanted for _ in range(ufunc.nout)))
    try:
        found = ufunc.resolve_dtypes((*given, *(None for _ in range(ufunc.nout))), signature=signature, casting=casting)
    except TypeError as error:
        refuse(what, inputs, str(error))
    return [wanted if each is None else each for each in found[: len(inputs)]]


def reduce(
    ufunc: Any,
    what: str,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """`ufunc.reduce`: graphc's reduction where it has one, else one call for each element of an axis of known size."""
    node, name = as_node(array), ufunc.__name__
    target = getattr(tensor, REDUCTIONS.get(name, ""), None)
    if target is not None:
        ours, named = Parameters.of(target), {"axis": axis, "keepdims": keepdims}
        asked_for = {"dtype": dtype, "initial": initial, "where": None if where is True else where}
        left = {key: value for key, value in asked_for.items() if value is not None}
        named |= {key: left.pop(key) for key in asked_for if key in left and key in ours.names + ours.keywords}
        return call_with_rest(target, REDUCTIONS[name], what, [node], named, left)
    if where is not True:
        refuse(what, node, "graphc reduces so over all elements of an axis")
    if not isinstance(axis, int | np.integer):
        return reduce_axes(ufunc, what, node, axis, dtype, keepdims, initial)
    items = steps(ufunc, what, node if dtype is None else cast(node, str(np.dtype(dtype))), int(axis), initial)
    result = items[-1] if items else as_node(initial if initial is not None else ufunc.identity)
    return tensor.expand_dims(result, axis) if keepdims else result


def reduce_axes(
    ufunc: Any, what: str, node: Node, axes: tuple[int, ...] | None, dtype: Any, keepdims: bool, initial: Any
) -> Any:
    """`ufunc.reduce` over several axes, as one."""
    chosen = [range(node.ndim)[axis] for axis in (range(node.ndim) if axes is None else axes)]
    others = [axis for axis in range(node.ndim) if axis not in chosen]
    rows = tensor.transpose(node, [*others, *chosen])
    rows = tensor.reshape(rows, (*(node.type.shape[axis] for axis in others), -1), ndim=len(others) + 1)
    made = reduce(ufunc, what, rows, len(others), dtype, False, initial)
    return tensor.expand_dims(made, tuple(chosen)) if keepdims else made


def reduceat(ufunc: Any, what: str, array: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """`ufunc.reduceat`: a reduction of each slice, whose bounds are known."""
    node = tensor.moveaxis(as_node(array), axis, 0)
    is_known = next(tensors_in(indices), None) is None
    bounds = np.asarray(indices) if is_known else asked_values(as_node(indices))
    if bounds is None:
        refuse(what, (indices, array), "the bounds of its slices must be known")
    starts = [int(each) for each in bounds.reshape(-1)]
    made = []
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else None
        part = node[start:end] if end is None or start < end else node[start : start + 1]
        made.append(reduce(ufunc, what, part, 0, dtype))
    return tensor.moveaxis(tensor.stack(made), 0, axis)


def accumulate(ufunc: Any, what: str, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """`ufunc.accumulate`: a running sum, product or extreme, else a call for each element of an axis of known size."""
    node = as_node(array)
    target = getattr(tensor, ACCUMULATIONS.get(ufunc.__name__, ""), None)
    if target is not None:
        return target(node, axis=axis, dtype=dtype)
    node = node if dtype is None else cast(node, str(np.dtype(dtype)))
    if ufunc.__name__ in EXTREMES:
        return running_extreme(node, ufunc.__name__, int(axis))
    return tensor.stack(steps(ufunc, what, node, int(axis), None), axis=axis)


def steps(ufunc: Any, what: str, node: Node, axis: int, initial: Any) -> list[Node]:
    """The results of a function of two arguments, folded along an axis, one for each step."""
    rows = tensor.moveaxis(node, axis, 0)
    target = ufunc_target(ufunc)
    if target is None or ufunc.nin != 2 or not isinstance(asked_size(rows.type.shape[0]), int):
        refuse(what, node, "it needs a function of two arguments that graphc has, and an axis of known size")
    done: list[Node] = []
    for row in rows:
        before = done[-1] if done else initial
        done.append(row if before is None else as_node(target(before, row)))
    return done


def outer(ufunc: Any, what: str, a: Any, b: Any, dtype: Any = None) -> Any:
    """`ufunc.outer`: the function of each element of `a` with each of `b`."""
    left, right = as_node(a), as_node(b)
    spread = left[(..., *(None,) * right.ndim)] if right.ndim else left
    return elementwise(ufunc, what, spread, right, **({} if dtype is None else {"dtype": dtype}))


def truth(relation: str) -> Function:
    """`array == x`: a comparison of elements, whose own truth is whether the two are one tensor (`Comparison`)."""

    def compare(a: Any, b: Any) -> Any:
        node, other = (a, b) if isinstance(a, Node) else (b, a)
        return node == other if relation == "equal" else node != other

    return compare


UFUNCS: dict[str, Function] = {"equal": truth("equal"), "not_equal": truth("not_equal")}

HOOKS.ufunc, HOOKS.array_function = call_ufunc, call_function
