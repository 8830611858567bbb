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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from graphc import tensor
from graphc.arrays.dtypes import is_float
from graphc.errors import ArgumentError, GraphTypeError, RankError, ShapeError
from graphc.ir.node import Node, describe
from graphc.ir.symbol import asked
from graphc.ir.traced import TRACE, traced_hint
from graphc.ir.walk import as_size_node
from graphc.ops.at_hand import asked_equal, asked_size
from graphc.ops.elementwise import WEAK, as_node, cast, is_number
from graphc.ops.questions import plain_shape
from graphc.startup.hooks import HOOKS
from graphc.startup.lazy import nearest
from graphc.startup.record import record
from graphc.tensor.absent import why

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


def tensors_in(value: Any) -> Iterator[Node]:
    """The tensors among arguments."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def name_tensor(*values: Any) -> str:
    """The first tensor among arguments, for a message."""
    found = next(tensors_in(values), None)
    return describe(found) if found is not None else "a tensor"


def refuse(name: str, given: Any, why: str) -> NoReturn:
    told = name_tensor(given)
    hint = traced_hint(next(tensors_in(given), None))
    raise GraphTypeError(f"{name} of {told}, which is symbolic: {why}{hint}{asked(told)}")


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
        instead = why(name) or "compose it of those in graphc.tensor, or make an op of a Python function with graphc.op"
        if what.startswith("np.fft."):
            instead = "graphc.tensor.fft has transforms of real values, real and imaginary parts along a last axis"
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
    return value is default or (simple and not any(tensors_in(value)) and bool(value == default))


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


# --- functions of another meaning or form in graphc.tensor ----------------------------------------------------------


def shape_of(a: Any) -> Any:
    """np.shape: a tuple in a function of arrays, elsewhere a vector, which unpacks as one."""
    return plain_shape(as_node(a)) if TRACE.depth else tensor.shape(a)


def ndim_of(a: Any) -> int:
    """np.ndim."""
    return as_node(a).ndim


def size_of(a: Any, axis: Any = None) -> Node:
    """np.size."""
    node = as_node(a)
    return tensor.size(node) if axis is None else as_size_node(node.type.shape[range(node.ndim)[axis]])


def where(condition: Any, *values: Any) -> Any:
    """np.where, of a condition alone too."""
    return tensor.where(condition, *values) if values else tensor.nonzero(condition)


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Node:
    """np.concatenate, whose axis may be None."""
    joined = tensor.concatenate([tensor.flatten(a) for a in arrays], 0) if axis is None else None
    result = tensor.concatenate(list(arrays), axis) if joined is None else joined
    return result if dtype is None else tensor.cast(result, dtype)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Node]:
    """np.split; `tensor.split` is Theano's."""
    node = as_node(ary)
    if not isinstance(indices_or_sections, list | tuple | np.ndarray):
        indices_or_sections = sections = int(indices_or_sections)
        size = node.type.shape[range(node.ndim)[axis]]
        if isinstance(size, int) and sections and size % sections:
            raise ShapeError(
                f"np.split of {describe(node)} of type {node.type}: axis {axis} cannot be divided equally into "
                f"{sections} parts"
            )
        if not isinstance(size, int) and sections > 0:
            shape = list(node.type.shape)
            shape[axis] = tensor.mul(tensor.floor_div(size, sections), sections)
            node = tensor.specify_shape(node, tuple(shape))
    return tensor.array_split(node, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """np.hsplit."""
    return split(ary, indices_or_sections, 1 if as_node(ary).ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """np.vsplit."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """np.dsplit."""
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, axis: int = 0) -> tuple[Node, ...]:
    """np.unstack, along an axis of known size."""
    return tuple(tensor.moveaxis(x, axis, 0))


def matrix_transpose(x: Any) -> Node:
    """np.matrix_transpose."""
    return tensor.swapaxes(x, -1, -2)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Node:
    """np.arange, which is float64 where an argument is of uint64 and no dtype is given."""
    ends = [as_node(value) for value in (start, stop, step) if value is not None]
    wide = dtype is None and any(node.type.dtype == "uint64" for node in ends)
    return tensor.arange(start, stop, step, "float64" if wide else dtype)


def filled(value: Any) -> Function:
    """np.zeros_like and its kin."""

    def like(a: Any, dtype: Any = None, shape: Any = None) -> Node:
        node = as_node(a)
        wanted = node.type.dtype if dtype is None else dtype
        return tensor.full(tensor.shape(node) if shape is None else shape, value, dtype=wanted)

    return like


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Node:
    """np.full_like."""
    if isinstance(a, Node) and shape is None:
        return tensor.full_like(a, fill_value, dtype=dtype)
    made: Node = filled(fill_value)(a, dtype, shape)
    return made


def is_complex(x: Any) -> bool:
    """np.iscomplexobj: graphc has no complex dtypes."""
    return False


def is_real(x: Any) -> bool:
    """np.isrealobj."""
    return True


def real(val: Any) -> Node:
    """np.real."""
    return as_node(val)


def imag(val: Any) -> Node:
    """np.imag."""
    return tensor.zeros_like(val)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """np.result_type: a dtype, as no value is needed for it."""
    return np.result_type(*map(weight, arrays_and_dtypes))


def weight(x: Any) -> Any:
    """What stands for a value in NumPy's promotion: of a tensor its dtype, of a Python number another one."""
    if not isinstance(x, Node):
        return x
    return WEAK[x.type.dtype] if is_number(x) else np.dtype(x.type.dtype)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """np.can_cast, from the dtype of a tensor."""
    return bool(np.can_cast(np.dtype(getattr(from_, "dtype", from_)), to, casting))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Node:
    """np.array_equal; other ranks, and sizes that differ, are unequal; sizes that are not known must agree."""
    left, right = as_node(a1), as_node(a2)
    sizes = zip(left.type.shape, right.type.shape, strict=False)
    differ = left.ndim == right.ndim and any(asked_equal(a, b) is False for a, b in sizes)
    if left.ndim != right.ndim or differ:
        return as_node(False)
    same = tensor.equal(left, right)
    if equal_nan:
        same = tensor.logical_or(same, tensor.logical_and(tensor.isnan(left), tensor.isnan(right)))
    return tensor.all(same)


def clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Node:
    """np.clip by either pair of names."""
    return tensor.clip(a, a_min if min is None else min, a_max if max is None else max)


def linalg_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    """np.linalg.norm of vectors, and Frobenius' of matrices; others are found where `tensor.linalg` has them."""
    node = as_node(x)
    matrices = (axis is None and node.ndim == 2) or (isinstance(axis, tuple) and len(axis) == 2)
    if ord is not None and ord != "fro" and (matrices or (axis is None and node.ndim != 1)):
        refuse("np.linalg.norm", node, f"ord={ord!r} of a matrix is not supported")
    return tensor.norm(node, None if ord == "fro" else ord, axis, keepdims)


def linalg_trace(x: Any, offset: int = 0, dtype: Any = None) -> Node:
    """np.linalg.trace."""
    return tensor.trace(x, offset, -2, -1, dtype)


def linalg_diagonal(x: Any, offset: int = 0) -> Node:
    """np.linalg.diagonal."""
    return tensor.diagonal(x, offset, -2, -1)


def along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """np.apply_along_axis: the function is traced once, for all vectors."""
    node = as_node(arr)
    rows, place = tensor.moveaxis(node, axis, -1), range(node.ndim)[axis]
    others = node.ndim - 1

    def mapped(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    for _ in range(others):
        mapped = HOOKS.of_functions.vmap(mapped)
    made = as_node(mapped(rows))
    new = range(made.ndim - others)
    return tensor.moveaxis(made, [others + k for k in new], [place + k for k in new]) if new else made


def shifted(inverse: bool) -> Function:
    """np.fft.fftshift and its inverse."""

    def shift(x: Any, axes: Any = None) -> Node:
        node = as_node(x)
        chosen = range(node.ndim) if axes is None else [axes] if isinstance(axes, int | np.integer) else axes
        for axis in chosen:
            half = node.shape[axis] // 2
            node = tensor.roll(node, -half if inverse else half, axis)
        return node

    return shift


def frequencies(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    """np.fft.fftfreq."""
    rising = [tensor.arange(0, (n - 1) // 2 + 1), tensor.arange(-(n // 2), 0)]
    return tensor.mul(tensor.concatenate(rising), 1.0 / (n * d))


def real_frequencies(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    """np.fft.rfftfreq."""
    return tensor.mul(tensor.arange(0, n // 2 + 1), 1.0 / (n * d))


def windows(x: Any, window_shape: Any, axis: Any = None) -> Node:
    """np.lib.stride_tricks.sliding_window_view."""
    node = as_node(x)
    lengths = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    axes = range(node.ndim) if axis is None else [axis] if isinstance(axis, int | np.integer) else axis
    for place, length in zip(axes, lengths, strict=True):
        size, place = node.type.shape[range(node.ndim)[place]], range(node.ndim)[place]
        starts = tensor.arange(size - length + 1)
        node = tensor.moveaxis(tensor.take(node, starts[:, None] + tensor.arange(length), place), place + 1, -1)
    return node


def of_arrays(function: Function) -> Function:
    """A product of NumPy's, to which Python's numbers are arrays that have a dtype."""
    return lambda a, b: function(as_node(a), as_node(b))


def bessel(x: Any) -> Node:
    """np.i0, whose integers are of float64."""
    node = as_node(x)
    return tensor.i0(node if is_float(node.type.dtype) else cast(node, "float64"))


OWN: dict[str, Function] = {
    "np.shape": shape_of, "np.ndim": ndim_of, "np.size": size_of, "np.where": where, "np.concatenate": concatenate,
    "np.concat": concatenate, "np.split": split, "np.hsplit": hsplit, "np.vsplit": vsplit, "np.dsplit": dsplit,
    "np.unstack": unstack, "np.matrix_transpose": matrix_transpose, "np.arange": arange,
    "np.i0": bessel, "np.dot": of_arrays(tensor.dot), "np.inner": of_arrays(tensor.inner),
    "np.zeros_like": filled(0), "np.ones_like": filled(1), "np.empty_like": filled(0), "np.full_like": full_like,
    "np.iscomplexobj": is_complex, "np.isrealobj": is_real, "np.real": real, "np.imag": imag,
    "np.result_type": result_type, "np.can_cast": can_cast, "np.array_equal": array_equal, "np.clip": clip,
    "np.apply_along_axis": along_axis, "np.fft.fftshift": shifted(False), "np.fft.ifftshift": shifted(True),
    "np.fft.fftfreq": frequencies, "np.fft.rfftfreq": real_frequencies,
    "np.lib.stride_tricks.sliding_window_view": windows, "np.linalg.matrix_transpose": matrix_transpose,
    "np.linalg.trace": linalg_trace, "np.linalg.diagonal": linalg_diagonal,
    **({} if hasattr(tensor, "linalg") else {"np.linalg.norm": linalg_norm}),
}  # fmt: skip
"""Stand-ins for NumPy's functions where the function of that name in `tensor` is another one or lacks a form."""


# --- ufuncs ---------------------------------------------------------------------------------------------------------


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Apply a ufunc, or one of its methods, to tensors (NEP 13)."""
    what = ufunc_title(ufunc) + ("" if method == "__call__" else f".{method}")
    given = {key: kwargs[key] for key in kwargs if key == "axis" or not (key in MEMORY or kwargs[key] is None)}
    out = given.pop("out", None)
    if any(each is not None for each in (out if isinstance(out, tuple) else (out,))) or method == "at":
        refuse_change(what, method, (inputs, out))
    methods: dict[str, Function] = {"__call__": elementwise, "reduce": reduce, "accumulate": accumulate, "outer": outer}
    if method not in methods:
        refuse(what, inputs, "graphc has no such reduction")
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
    dtype = given.pop("dtype", None)
    if "axis" in given and ufunc.__name__ == "vecdot":
        return target(*inputs, axis=given["axis"])
    if given:
        refuse(what, inputs, f"{', '.join(given)}= is not supported")
    if dtype is None:
        return target(*inputs)
    wanted = str(np.dtype(dtype))
    if wanted == "bool":
        return cast(as_node(target(*inputs)), "bool")
    return cast(as_node(target(*(cast(as_node(x), wanted) for x in inputs))), wanted)


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
    if where is not True or not isinstance(axis, int | np.integer):
        refuse(what, node, "graphc reduces so along one axis and over all of its elements")
    items = steps(ufunc, what, node if dtype is None else cast(node, str(np.dtype(dtype))), int(axis), initial)
    result = items[-1] if items else as_node(initial if initial is not None else ufunc.identity)
    return tensor.expand_dims(result, axis) if keepdims else result


def accumulate(ufunc: Any, what: str, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """`ufunc.accumulate`: a running sum or product, else one call for each element of an axis of known size."""
    node = as_node(array)
    target = getattr(tensor, ACCUMULATIONS.get(ufunc.__name__, ""), None)
    if target is not None:
        return target(node, axis=axis, dtype=dtype)
    node = node if dtype is None else cast(node, str(np.dtype(dtype)))
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


def matvec(a: Any, b: Any) -> Node:
    """np.matvec."""
    left, node = as_node(a), as_node(b)
    if left.ndim < 2:
        raise RankError(f"np.matvec: {describe(left)} of type {left.type} is no matrix")
    return tensor.matmul(left, node[..., None])[..., 0]


def vecmat(a: Any, b: Any) -> Node:
    """np.vecmat."""
    node, right = as_node(a), as_node(b)
    if right.ndim < 2:
        raise RankError(f"np.vecmat: {describe(right)} of type {right.type} is no matrix")
    return tensor.matmul(node[..., None, :], right)[..., 0, :]


UFUNCS: dict[str, Function] = {
    "equal": truth("equal"), "not_equal": truth("not_equal"), "matvec": matvec,
    "vecmat": vecmat,
}  # fmt: skip

HOOKS.ufunc, HOOKS.array_function = call_ufunc, call_function
