"""Names that Theano has for what is one thing in graphc, or in Python 3: `paths.py` gives them to its modules.

In: import statements of Theano's programs. Out: classes and functions of graphc and of the standard library; for
those that ask for graphics cards, that there are none.
"""

# ruff: noqa: F822 - classes are made of a table
from __future__ import annotations

import configparser
import operator
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from importlib import reload
from io import BytesIO
from typing import Any

import numpy as np

from graphc.errors import CycleError, GraphcError, GraphTypeError, GraphValueError, MissingInputError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Constant, Node, describe
from graphc.ir.types import UserType
from graphc.ops.custom import DisconnectedType, NullType, not_implemented as grad_not_implemented
from graphc.ops.elementwise import as_node
from graphc.shared import Container, SharedVariable, shared
from graphc.sparse.variable import sparse_shared
from graphc.tensor import elementary, products, variables
from graphc.theano.user_ops import Apply, MethodNotDefined, Op

# types, and what Theano's modules of tensors have besides functions ---------------------------------------------------

_shared = shared
Type = UserType
Tensor = variables.TensorType
Variable = variables.Variable
disconnected_type, null_type = DisconnectedType(), NullType()
InconsistencyError = CycleError
OpenMPOp = Op


def hashtype(op: Any) -> int:
    """The hash of an op without parameters: a number of its class."""
    return hash((type(op).__name__, type(op).__module__))


_TOLERANCES = {"float32": (1e-5, 1e-5), "float64": (1.0000000000000001e-06, 1e-10)}
"""The relative and the absolute tolerance of each dtype, of which the larger of two operands' are taken."""


def _get_atol_rtol(a: Any, b: Any) -> tuple[float, float]:
    """The absolute and the relative tolerance with which values of the less precise of two dtypes are close."""
    found = [_TOLERANCES.get(np.asarray(array).dtype.name, _TOLERANCES["float64"]) for array in (a, b)]
    relative, absolute = (max(pair) for pair in zip(*found, strict=True))
    return absolute, relative


def _asarray(a: Any, dtype: Any, order: Any = None) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of a dtype; "floatX" is `options.floatX`."""
    return np.asarray(a, variables.as_tensor(0, dtype=dtype).dtype, order)


def _allclose(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """True where arrays are close, by default as close as the less precise of their dtypes lets them be."""
    absolute, relative = _get_atol_rtol(a, b)
    return np.allclose(a, b, relative if rtol is None else rtol, absolute if atol is None else atol)


def __getattr__(name: str) -> Any:
    """The modules that theano.tensor imports for itself."""
    package = sys.modules["graphc"]
    if name not in ("compile", "config", "gof", "printing", "theano"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return package if name == "theano" else getattr(package, name)


def walk(
    nodes: Iterable[Any],
    expand: Callable[[Any], Iterable[Any] | None],
    bfs: bool = True,
    return_children: bool = False,
    hash_fn: Callable[[Any], Any] = id,
) -> Iterator[Any]:
    """Theano-PyMC's walk through a graph: what is reached from `nodes` by `expand`, each once, in breadth or in depth;
    with what `expand` gave for it if `return_children`."""
    waiting, seen = deque(nodes), set[Any]()
    while waiting:
        node = waiting.popleft() if bfs else waiting.pop()
        if (known := hash_fn(node)) in seen:
            continue
        seen.add(known)
        children = expand(node)
        yield (node, children) if return_children else node
        waiting.extend(children or ())


# shared variables -----------------------------------------------------------------------------------------------------

TensorSharedVariable = ScalarSharedVariable = SharedVariable
sparse_constructor = sparse_shared


def tensor_constructor(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    broadcastable: Sequence[bool] | None = None,
    target: str = "cpu",
) -> SharedVariable:
    """`shared`, its arguments in the order of Theano's constructor. Raises TypeError for what is no array."""
    return shared(value, name, borrow, strict, allow_downcast, broadcastable=broadcastable)


scalar_constructor = tensor_constructor


def cpu_contiguous(x: Any) -> Node:
    """`x` itself: graphc decides on memory itself."""
    return as_node(x)


# matrices, and graphics cards -----------------------------------------------------------------------------------------

cuda_available = cuda_enabled = pygpu_activated = False
imported_scipy = True


class CudaNdarrayType:
    """The type of arrays on graphics cards, which no variable has."""


class GpuOp:
    """The class of ops on graphics cards, of which there are none."""


def dnn_available(context_name: Any = None) -> bool:
    """False: there is no library of layers for graphics cards."""
    return False


def dnn_present() -> bool:
    """False: there is no library of layers for graphics cards."""
    return False


dnn_available.msg = dnn_present.msg = "there are no GPUs: functions run on the CPU"  # type: ignore[attr-defined]


def psd(v: Any) -> Node:
    """The matrix itself, of which the caller says that it is symmetric and has no negative eigenvalue."""
    return as_node(v)


def spectral_radius_bound(X: Any, log2_exponent: int) -> Node:  # noqa: N803 - Theano's
    """A number that no eigenvalue of the symmetric matrix X exceeds: the closer, the larger `log2_exponent`, the number
    of times that X is squared (Pan, Computers Math. Applic. 17, 1990). Raises GraphTypeError for another rank
    and an exponent that is no whole number, GraphValueError where it is not positive."""
    squared = as_node(X)
    if squared.ndim != 2:
        raise GraphTypeError(f"spectral_radius_bound: {describe(squared)} of type {squared.type} is not a matrix")
    if not isinstance(log2_exponent, int):
        raise GraphTypeError(f"spectral_radius_bound: {log2_exponent!r} is not a whole number")
    if log2_exponent <= 0:
        raise GraphValueError(f"spectral_radius_bound: {log2_exponent} is not positive")
    for _ in range(log2_exponent):
        squared = products.dot(squared, squared)
    return elementary.pow(products.trace(squared), 2.0**-log2_exponent)


# Python 2 -------------------------------------------------------------------------------------------------------------

PY3 = True
izip, imap, ifilter = zip, map, filter
operator_div = operator.truediv


class DefaultOrderedDict(OrderedDict[Any, Any]):
    """A dict that keeps its order and makes what it misses."""

    def __init__(self, default_factory: Callable[[], Any] | None = None, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.default_factory = default_factory

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = made = self.default_factory()
        return made


def cmp(x: Any, y: Any) -> int:
    """-1, 0 or 1, as x is below, equal to or above y."""
    return int(x > y) - int(x < y)


def exc_message(error: BaseException) -> Any:
    """The first argument of an exception."""
    return error.args[0]


def get_unbound_function(method: Any) -> Any:
    """The function behind a method."""
    return getattr(method, "__func__", method)


def decode(text: Any) -> Any:
    """The text itself."""
    return text


def decode_iter(texts: Iterable[Any]) -> Iterable[Any]:
    """The texts themselves."""
    return texts


def decode_with(text: Any, encoding: str) -> Any:
    """Bytes as text; text itself."""
    return text.decode(encoding) if isinstance(text, bytes) else text


__all__ = [
    "PY3", "Apply", "BytesIO", "Callable", "Constant", "Container", "Counter", "CudaNdarrayType", "DefaultOrderedDict",
    "DisconnectedType", "EquilibriumOptimizer", "GpuOp", "InconsistencyError", "Iterable", "LocalOptimizer", "Mapping",
    "MergeOptimizer", "MethodNotDefined", "MissingInputError", "NullType", "Op", "OpRemove", "OpSub", "OpenMPOp",
    "OptimizationDatabase", "Optimizer", "OrderedDict", "PatternSub", "ScalarSharedVariable", "SeqOptimizer", "Tensor",
    "TensorSharedVariable", "TopoOptimizer", "Type", "ValuesView", "Variable", "cmp", "configparser", "cpu_contiguous",
    "cuda_available", "cuda_enabled", "decode", "decode_iter", "decode_with", "defaultdict", "disconnected_type",
    "dnn_available", "dnn_present", "exc_message", "get_unbound_function", "grad_not_implemented", "hashtype",
    "ifilter", "imap", "imported_scipy", "in2out", "izip", "local_optimizer", "null_type", "operator_div", "optdb",
    "out2in", "partial", "psd", "pygpu_activated", "register_canonicalize", "register_specialize",
    "register_specialize_device", "register_stabilize", "register_uncanonicalize", "register_useless", "reload",
    "scalar_constructor", "sparse_constructor", "spectral_radius_bound", "tensor_constructor",
]  # fmt: skip


# --- rewriting --------------------------------------------------------------------------------------------------------


INSTEAD = (
    "graphc applies no rewriting that a program registers, its own rules do the work (docs/rooms/rewrite.md); "
    "graphc.clone(output, replace={x: y}) changes a graph before it is compiled"
)


class LocalOptimizer:
    """A change of single applications. tracks: the ops that it looks for. transform(node): what is put in their place,
    or False. graphc never calls it."""

    def __init__(self, transform: Callable[[Any], Any] | None = None, tracks: Sequence[Any] | None = None) -> None:
        self._transform, self._tracks = transform, tracks
        self.__name__ = getattr(transform, "__name__", type(self).__name__)

    def tracks(self) -> Sequence[Any] | None:
        """The ops that it looks for; None for all."""
        return self._tracks

    def transform(self, node: Any) -> Any:
        """The replacement of an application; False where it stays."""
        return False if self._transform is None else self._transform(node)

    def __call__(self, node: Any) -> Any:
        """Same as `transform`."""
        return self.transform(node)


def local_optimizer(
    tracks: Sequence[Any] | None, inplace: bool = False, requirements: Any = ()
) -> Callable[[Callable[[Any], Any]], LocalOptimizer]:
    """A decorator: a function of an application becomes a `LocalOptimizer`."""
    return lambda transform: LocalOptimizer(transform, tracks)


class Optimizer:
    """A change of whole graphs. A program may derive from it; making one raises GraphcError."""

    def __init__(self, *parts: Any, **given: Any) -> None:
        raise GraphcError(INSTEAD)


KINDS = {
    "EquilibriumOptimizer": "Changes until none of them finds anything.",
    "MergeOptimizer": "Equal computations as one, which graphs of graphc have from the start.",
    "OpRemove": "An op's inputs in place of its outputs.",
    "OpSub": "One op in place of another, on the same inputs.",
    "PatternSub": "One pattern of ops in place of another.",
    "SeqOptimizer": "Changes one after the other.",
    "TopoOptimizer": "A change of single applications, in order.",
}
"""Kinds of optimizers, and what each changes."""
for _name, _doc in KINDS.items():
    globals()[_name] = type(_name, (Optimizer,), {"__doc__": _doc, "__module__": __name__})


class OptimizationDatabase:
    """A place for rewriting, in which there is none."""

    def register(self, name: str, obj: Any, *tags: Any, **given: Any) -> Any:
        """Raises GraphcError."""
        raise GraphcError(INSTEAD)

    def __contains__(self, name: str) -> bool:
        return False


optdb = OptimizationDatabase()


def in2out(*local_opts: Any, **given: Any) -> Any:
    """Raises GraphcError; Theano's changes of single applications, from the inputs on."""
    raise GraphcError(INSTEAD)


def out2in(*local_opts: Any, **given: Any) -> Any:
    """Raises GraphcError; Theano's changes of single applications, from the outputs on."""
    raise GraphcError(INSTEAD)


def register_canonicalize(lopt: Any, *tags: Any, **given: Any) -> Any:
    """Raises GraphcError, under each of Theano's names for it."""
    raise GraphcError(INSTEAD)


register_specialize = register_stabilize = register_uncanonicalize = register_useless = register_canonicalize
register_specialize_device = register_canonicalize


explain_all(globals())
