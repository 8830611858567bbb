"""Theano's classes of ops, for programs that apply `ARange("int64")(0, n, 1)` or ask `isinstance(node.op, T.Dot)`.

In: the parameters of a class, then tensors. Out: what the function of `graphc.tensor` gives for them. An op of graphc
is an instance of the class that does its work: nothing else of Theano's ops is there.
"""

# ruff: noqa: F822 - classes are made when they are asked for
from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

from graphc.control.branch import ifelse
from graphc.errors import ArgumentError, GraphValueError
from graphc.ir.node import Node
from graphc.ops.derivative import grad_clip, grad_scale, undefined_grad, zero_grad
from graphc.ops.elementwise import as_node
from graphc.tensor import (
    calculus,
    creation,
    elementary,
    indexing,
    inspection,
    joining,
    keys,
    products,
    reductions,
    selecting,
    shaping,
    special,
    variables,
)
from graphc.tensor.elementary import stop_gradient
from graphc.tensor.elemwise import Family
from graphc.tensor.nnet import abstract_conv, losses, scores
from graphc.tensor.nnet.losses import prepend_scalar_to_each_row
from graphc.tensor.nnet.scores import logsoftmax, softmax
from graphc.tensor.sorting import argsort, argtopk, searchsorted, sort, topk, topk_and_argtopk, unique

__all__ = [
    "ARange", "AdvancedBooleanIncSubtensor", "AdvancedBooleanSubtensor", "AdvancedIncSubtensor",
    "AdvancedIncSubtensor1", "AdvancedSubtensor", "AdvancedSubtensor1", "Alloc", "AllocDiag", "AllocEmpty",
    "ArgSortOp", "Argmax", "Bartlett", "BaseAdvancedIncSubtensor", "BaseAdvancedSubtensor", "BatchedDot", "Choose",
    "CpuContiguous", "CumOp", "CumprodOp", "CumsumOp", "Default", "DiffOp", "Dot", "Dot22", "Dot22Scalar",
    "ExtractDiag", "Eye", "FillDiagonal", "FillDiagonalOffset", "Flatten", "Gemm", "Gemv", "Ger", "IfElse",
    "IncSubtensor", "Join", "LogSoftmax", "MakeVector", "MaxAndArgmax", "Mean", "Nonzero", "PermuteRowElements",
    "Prepend_scalar_constant_to_each_row", "Prepend_scalar_to_each_row", "RavelMultiIndex", "Rebroadcast",
    "RepeatOp", "Reshape", "ScalarFromTensor", "Scan", "SearchsortedOp", "Shape", "Shape_i", "Softmax",
    "SoftmaxGrad", "SortOp", "SpecifyShape", "Split", "Subtensor", "TensorFromScalar", "Tile", "TopKOp", "Tri",
    "Unique", "UnravelIndex", "advanced_boolean_inc_subtensor", "advanced_boolean_set_subtensor",
    "advanced_boolean_subtensor", "advanced_inc_subtensor", "advanced_inc_subtensor1", "advanced_set_subtensor",
    "advanced_set_subtensor1", "advanced_subtensor", "advanced_subtensor1", "bartlett_", "fill_diagonal_",
    "fill_diagonal_offset_", "gemm_inplace", "gemm_no_inplace", "gemv", "gemv_inplace", "gemv_no_inplace", "ger",
    "ger_destructive", "join_", "make_vector", "softmax_grad",
]  # fmt: skip

Make = Callable[..., Callable[..., Any]]


class Parametrised(metaclass=Family):
    """An op of Theano's with its parameters: called with tensors, it gives what the function of graphc does.

    Two are equal where their class and parameters are. Raises ArgumentError for parameters that the class does not
    have, and where it is a class only of what graphc's graphs hold.
    """

    make: Make | None = None

    def __init__(self, *parameters: Any, **named: Any) -> None:
        make = type(self).make
        name = type(self).__name__
        if make is None:
            raise ArgumentError(f"{name} is there to ask for the ops of a graph: x[...] and the functions make them")
        try:
            bound = signature(make).bind(*parameters, **named)
        except TypeError as error:
            raise ArgumentError(f"{name}{signature(make)}: {error}") from None
        bound.apply_defaults()
        self.parameters = {key: tuple(v) if isinstance(v, list) else v for key, v in bound.arguments.items()}
        self.__dict__.update(self.parameters)
        self.function = make(*bound.args, **bound.kwargs)

    def __call__(self, *operands: Any, name: str | None = None, return_list: bool = False, **named: Any) -> Any:
        """The result for these tensors, or a list of results."""
        if named:
            try:
                signature(self.function).bind(*operands, **named)
            except TypeError as error:
                raise ArgumentError(f"{self!r}: {error}") from None
        made = self.function(*operands, **named)
        if name is not None and isinstance(made, Node):
            made = as_node(made, name=name)
        return list(made) if isinstance(made, tuple) else [made] if return_list else made

    def make_node(self, *operands: Any) -> Any:
        """The application that gives the result."""
        return self(*operands, return_list=True)[0].owner

    @property
    def name(self) -> str:
        """The name of the class, as ops of graphs have names."""
        return type(self).__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters == vars(other)["parameters"]

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.parameters.items())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}{{{shown}}}" if shown else type(self).__name__


def _alloc_diag(offset: int = 0, axis1: int = 0, axis2: int = 1) -> Callable[[Any], Any]:
    def make(values: Any) -> Any:
        x = variables.as_tensor(values)
        size = x.shape[-1] + abs(offset)
        where = creation.arange(x.shape[-1])
        wide = creation.zeros((*(x.shape[axis] for axis in range(x.ndim - 1)), size, size), x.type.dtype)
        key = (..., where + max(-offset, 0), where + max(offset, 0))
        return shaping.moveaxis(indexing.set_subtensor(wide[key], x), (-2, -1), (axis1, axis2))

    return make


def _rebroadcast(*axes: tuple[int, bool]) -> Callable[[Any], Any]:
    def make(x: Any) -> Any:
        for axis, is_one in axes:
            x = shaping.addbroadcast(x, axis) if is_one else shaping.unbroadcast(x, axis)
        return x

    return make


def _top_k(
    axis: int = -1, sorted: bool = True, idx_dtype: str = "int64", return_values: bool = True,
    return_indices: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    found = topk_and_argtopk if return_values and return_indices else topk if return_values else argtopk
    return lambda x, kth: found(x, kth, axis, sorted, idx_dtype)


def _increased(inplace: bool = False, set_instead_of_inc: bool = False) -> Callable[..., Any]:
    change = indexing.set_subtensor if set_instead_of_inc else indexing.inc_subtensor
    return lambda x, y, *index: change(variables.as_tensor(x)[index], y)


def _cumulated(axis: Any = None, mode: str = "add") -> Callable[..., Any]:
    if mode not in ("add", "mul"):
        raise GraphValueError(f"CumOp: mode {mode!r} is neither 'add' nor 'mul'")
    return lambda x: (reductions.cumsum if mode == "add" else reductions.cumprod)(x, axis)


def _convolution(rank: int, by: str = "") -> Make:
    """The convolution over `rank` axes, or its derivative by "inputs" or "weights", of which the operator is told the
    sizes along these axes."""

    def make(
        imshp: Any = None, kshp: Any = None, border_mode: Any = "valid", subsample: Any = None,
        filter_flip: bool = True, filter_dilation: Any = None, num_groups: int = 1, unshared: bool = False,
    ) -> Callable[..., Any]:  # fmt: skip
        ones = (1,) * rank
        how = [border_mode, subsample or ones, filter_flip, filter_dilation or ones, num_groups]
        how += [unshared] if rank == 2 else []
        if not by:
            forward = getattr(abstract_conv, f"conv{rank}d")
            return lambda img, kern: forward(img, kern, imshp, kshp, *how)
        backward = getattr(abstract_conv, f"conv{rank}d_grad_wrt_{by}")
        told, other = (imshp, kshp) if by == "inputs" else (kshp, imshp)

        def apply(first: Any, topgrad: Any, shape: Any, add_assert_shape: bool = True) -> Any:
            spatial = [shape[axis] for axis in range(rank)]
            whole = (*(told[:2] if told else (None, None)), *spatial)
            operands = (topgrad, first) if by == "inputs" else (first, topgrad)
            return backward(*operands, whole, other, *how)

        return apply

    return make


def _correlation(rank: int, by: str = "") -> Make:
    """The same of filters that are not flipped, of which the operator is not told the sizes."""

    def make(
        border_mode: Any = "valid", subsample: Any = None, filter_dilation: Any = None, num_groups: int = 1,
        unshared: bool = False,
    ) -> Callable[..., Any]:  # fmt: skip
        return _convolution(rank, by)(None, None, border_mode, subsample, False, filter_dilation, num_groups, unshared)

    return make


_TABLE: dict[str, tuple[str, Make | None]] = {
    "ARange": ("iota", lambda dtype: lambda start, stop, step: creation.arange(start, stop, step, dtype)),
    "AbstractConv2d": ("conv", _convolution(2)),
    "AbstractConv2d_gradInputs": ("", _convolution(2, "inputs")),
    "AbstractConv2d_gradWeights": ("", _convolution(2, "weights")),
    "AbstractConv3d": ("conv", _convolution(3)),
    "AbstractConv3d_gradInputs": ("", _convolution(3, "inputs")),
    "AbstractConv3d_gradWeights": ("", _convolution(3, "weights")),
    "AdvancedBooleanIncSubtensor": ("set_gather inc_gather", _increased),
    "AdvancedBooleanSubtensor": ("gather", lambda: lambda x, *index: variables.as_tensor(x)[index]),
    "AdvancedIncSubtensor": ("set_gather inc_gather", _increased),
    "AdvancedIncSubtensor1": ("set_gather inc_gather", _increased),
    "AdvancedSubtensor": ("gather", lambda: lambda x, *index: variables.as_tensor(x)[index]),
    "AdvancedSubtensor1": ("gather", lambda sparse_grad=False: lambda x, rows: indexing.take(x, rows, axis=0)),
    "Alloc": ("broadcast_to", lambda: creation.alloc),
    "AllocDiag": ("", _alloc_diag),
    "AllocEmpty": ("", lambda dtype: lambda *shape: creation.empty(shape, dtype)),
    "ArgSortOp": ("argsort", lambda kind=None, order=None: lambda x, axis=-1: argsort(x, axis, kind, order)),
    "Argmax": ("argmax", lambda axis=None: lambda x: reductions.argmax(x, axis)),
    "Bartlett": ("", lambda: selecting.bartlett),
    "BaseAdvancedIncSubtensor": ("set_gather inc_gather", _increased),
    "BaseAdvancedSubtensor": ("gather", lambda: lambda x, *index: variables.as_tensor(x)[index]),
    "BatchedDot": ("matmul", lambda: products.batched_dot),
    "Choose": ("", lambda mode="raise": lambda a, choices: selecting.choose(a, choices, mode=mode)),
    "Corr3dMM": ("conv", _correlation(3)),
    "Corr3dMM_gradInputs": ("", _correlation(3, "inputs")),
    "Corr3dMM_gradWeights": ("", _correlation(3, "weights")),
    "CorrMM": ("conv", _correlation(2)),
    "CorrMM_gradInputs": ("", _correlation(2, "inputs")),
    "CorrMM_gradWeights": ("", _correlation(2, "weights")),
    "ConsiderConstant": ("zero_grad", lambda: zero_grad),
    "CpuContiguous": ("", lambda: variables.as_tensor),
    "CrossentropyCategorical1Hot": ("", lambda: losses.crossentropy_categorical_1hot),
    "CrossentropyCategorical1HotGrad": ("", lambda: losses.crossentropy_categorical_1hot_grad),
    "CrossentropySoftmax1HotWithBiasDx": ("", lambda: scores.crossentropy_softmax_1hot_with_bias_dx),
    "CrossentropySoftmaxArgmax1HotWithBias": ("", lambda: scores.crossentropy_softmax_argmax_1hot_with_bias),
    "CumOp": ("running_sum running_prod", _cumulated),
    "CumprodOp": ("running_prod", lambda axis=None: _cumulated(axis, "mul")),
    "CumsumOp": ("running_sum", lambda axis=None: _cumulated(axis)),
    "Default": ("", lambda: special.default),
    "DiffOp": ("", lambda n=1, axis=-1: lambda x: calculus.diff(x, n, axis)),
    "DisconnectedGrad": ("stop_gradient", lambda: stop_gradient),
    "Dot": ("matmul", lambda: products.dot),
    "Dot22": ("matmul", lambda: products.dot),
    "Dot22Scalar": ("gemm", lambda: lambda x, y, scale: products.dot(x, y) * scale),
    "ExtractDiag": (
        "",
        lambda offset=0, axis1=0, axis2=1, view=False: lambda x: indexing.diagonal(x, offset, axis1, axis2),
    ),
    "Eye": ("", lambda dtype=None: lambda n, m, k: creation.eye(n, m, k, dtype)),
    "FillDiagonal": ("", lambda: selecting.fill_diagonal),
    "FillDiagonalOffset": ("", lambda: selecting.fill_diagonal_offset),
    "Flatten": ("reshape", lambda outdim=1: lambda x: shaping.flatten(x, outdim)),
    "Gemm": ("gemm", lambda inplace=False: lambda z, a, x, y, b: b * z + a * products.dot(x, y)),
    "Gemv": ("gemm", lambda inplace=False: lambda y, a, matrix, x, b: b * y + a * products.dot(matrix, x)),
    "Ger": ("gemm", lambda destructive=False: lambda matrix, a, x, y: matrix + a * products.outer(x, y)),
    "GradClip": ("grad_clip", lambda low, high: lambda x: grad_clip(x, low, high)),
    "GradScale": ("grad_scale", lambda multiplier: lambda x: grad_scale(x, multiplier)),
    "IfElse": (
        "cond",
        lambda n_outs, as_view=False, gpu=False, name=None: (
            lambda condition, *values: (
                ifelse(condition, values[0], values[1], name)
                if n_outs == 1
                else ifelse(condition, list(values[:n_outs]), list(values[n_outs:]), name)
            )
        ),
    ),
    "IncSubtensor": ("set_subtensor inc_subtensor", None),
    "Join": ("concatenate", lambda view=-1: joining.join),
    "LogSoftmax": ("", lambda: logsoftmax),
    "MakeVector": (
        "concatenate",
        lambda dtype="int64": lambda *parts: joining.stack([elementary.cast(p, dtype) for p in parts]),
    ),
    "MaxAndArgmax": ("max argmax", lambda axis=None: lambda x: reductions.max_and_argmax(x, axis)),
    "Mean": ("", lambda axis=None: lambda x: reductions.mean(x, axis)),
    "Nonzero": ("", lambda: keys.nonzero),
    "PermuteRowElements": ("", lambda: selecting.permute_row_elements),
    "Prepend_scalar_constant_to_each_row": ("", lambda val=0: lambda mat: prepend_scalar_to_each_row(val, mat)),
    "Prepend_scalar_to_each_row": ("", lambda: prepend_scalar_to_each_row),
    "RavelMultiIndex": (
        "",
        lambda mode="raise", order="C": lambda *given: selecting.ravel_multi_index(given[:-1], given[-1], mode, order),
    ),
    "Rebroadcast": ("", _rebroadcast),
    "RepeatOp": ("", lambda axis=None: lambda x, repeats: joining.repeat(x, repeats, axis)),
    "Reshape": ("reshape", lambda ndim, name=None: lambda x, shape: shaping.reshape(x, shape, ndim=ndim)),
    "ScalarFromTensor": ("", lambda: inspection.scalar_from_tensor),
    "Scan": ("scan", None),
    "SearchsortedOp": (
        "searchsorted_left searchsorted_right",
        lambda side="left": lambda x, v, sorter=None: searchsorted(x, v, side, sorter),
    ),
    "Shape": ("", lambda: shaping.shape),
    "Shape_i": ("size", lambda i: lambda x: shaping.shape(x)[i]),
    "Softmax": ("", lambda: softmax),
    "SoftmaxGrad": ("", lambda: lambda dy, sm: dy * sm - (dy * sm).sum(axis=1, keepdims=True) * sm),
    "SoftmaxWithBias": ("", lambda: scores.softmax_with_bias),
    "SortOp": ("sort", lambda kind=None, order=None: lambda x, axis=-1: sort(x, axis, kind, order)),
    "SpecifyShape": ("", lambda: shaping.specify_shape),
    "Split": ("", lambda len_splits: lambda x, axis, sizes: joining.split(x, sizes, len_splits, axis)),
    "Subtensor": ("subtensor", None),
    "TensorFromScalar": ("", lambda: inspection.tensor_from_scalar),
    "Tile": ("", lambda ndim: lambda x, reps: joining.tile(x, reps, ndim)),
    "TopKOp": ("top argtop", _top_k),
    "Tri": ("", lambda dtype=None: lambda n, m, k: creation.tri(n, m, k, dtype)),
    "UndefinedGrad": ("undefined_grad", lambda: undefined_grad),
    "Unique": (
        "",
        lambda return_index=False, return_inverse=False, return_counts=False, axis=None: (
            lambda x: unique(x, return_index, return_inverse, return_counts, axis)
        ),
    ),
    "UnravelIndex": (
        "",
        lambda ndim, order="C": lambda indices, shape: selecting.unravel_index(indices, shape, order, ndim=ndim),
    ),
    "ZeroGrad": ("zero_grad", lambda: zero_grad),
}
"""For each class the names of the ops of graphc that are its instances, and what its parameters make of tensors."""


APPLIED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "advanced_boolean_inc_subtensor": ("AdvancedBooleanIncSubtensor", ()),
    "advanced_boolean_set_subtensor": ("AdvancedBooleanIncSubtensor", (False, True)),
    "advanced_boolean_subtensor": ("AdvancedBooleanSubtensor", ()),
    "advanced_inc_subtensor": ("AdvancedIncSubtensor", ()),
    "advanced_inc_subtensor1": ("AdvancedIncSubtensor1", ()),
    "advanced_set_subtensor": ("AdvancedIncSubtensor", (False, True)),
    "advanced_set_subtensor1": ("AdvancedIncSubtensor1", (False, True)),
    "advanced_subtensor": ("AdvancedSubtensor", ()),
    "advanced_subtensor1": ("AdvancedSubtensor1", ()),
    "bartlett_": ("Bartlett", ()),
    "fill_diagonal_": ("FillDiagonal", ()),
    "fill_diagonal_offset_": ("FillDiagonalOffset", ()),
    "gemm": ("Gemm", ()),
    "gemm_inplace": ("Gemm", (True,)),
    "gemm_no_inplace": ("Gemm", ()),
    "gemv": ("Gemv", ()),
    "gemv_inplace": ("Gemv", (True,)),
    "gemv_no_inplace": ("Gemv", ()),
    "ger": ("Ger", ()),
    "ger_destructive": ("Ger", (True,)),
    "join_": ("Join", ()),
    "make_vector": ("MakeVector", ()),
    "softmax_grad": ("SoftmaxGrad", ()),
    "_dot": ("Dot", ()),
    "_dot22": ("Dot22", ()),
    "_dot22scalar": ("Dot22Scalar", ()),
    "_nonzero": ("Nonzero", ()),
    "_permute_row_elements": ("PermuteRowElements", ()),
}
"""Names of ops that are there with their parameters."""


def __getattr__(name: str) -> Any:
    """The class, or the op, of that name."""
    if name in APPLIED:
        kind, parameters = APPLIED[name]
        return getattr(sys.modules[__name__], kind)(*parameters)
    if name not in _TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    ops, make = _TABLE[name]
    doc = f"Theano's op {name}, as the function of graphc that does its work."
    own = {"ops": frozenset(ops.split()), "make": None if make is None else staticmethod(make), "__doc__": doc}
    made = globals()[name] = Family(name, (Parametrised,), {**own, "__module__": __name__})
    return made
