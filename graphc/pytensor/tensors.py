"""Rows of the table (table.py) for elementwise ops, shapes, indices, checks, and ops that contain graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.batch import batched
from graphc.control.branch import ifelse
from graphc.ir.node import Node, Size, variable
from graphc.ir.walk import as_size_node
from graphc.ops.checked import checked
from graphc.pytensor.table import Table, Unknown, folded, known, row, scalars
from graphc.tensor.signal import conv as signal

# Elements and reductions. ---------------------------------------------------------------------------------------------


@row("Elemwise")
def _elemwise(apply: Any, args: list[Any]) -> Any:
    return scalars(apply.op.scalar_op, [out.type.dtype for out in apply.outputs], args)


@row("ScalarOp")
def _scalar(apply: Any, args: list[Any]) -> Any:
    return scalars(apply.op, [out.type.dtype for out in apply.outputs], args)


REDUCTIONS: dict[str, Callable[..., Node]] = {
    "Add": T.sum, "Mul": T.prod, "Maximum": T.max, "Minimum": T.min, "ScalarMaximum": T.max, "ScalarMinimum": T.min,
    "AND": T.all, "OR": T.any,
}  # fmt: skip


@row("CAReduce")
def _reduce(apply: Any, args: list[Any]) -> Any:
    kind, dtype = type(apply.op.scalar_op).__name__, apply.outputs[0].type.dtype
    if kind not in REDUCTIONS or (kind in ("AND", "OR") and args[0].dtype != "bool"):
        raise Unknown(f"reduction by {kind}")
    x, axis = args[0], apply.op.axis
    if kind in ("Add", "Mul"):
        return REDUCTIONS[kind](T.cast(x, getattr(apply.op, "acc_dtype", None) or dtype), axis=axis, dtype=dtype)
    return REDUCTIONS[kind](x, axis=axis)


@row("ProdWithoutZeros")
def _product_of_nonzeros(apply: Any, args: list[Any]) -> Any:
    x = T.cast(args[0], apply.op.acc_dtype or apply.outputs[0].type.dtype)
    return T.prod(T.switch(T.eq(x, 0), T.ones_like(x), x), axis=apply.op.axis)


@row("Argmax")
def _argmax(apply: Any, args: list[Any]) -> Any:
    x, axes = args[0], apply.op.axis
    axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    x = T.transpose(x, (*kept, *axes)) if x.ndim else x
    return T.argmax(T.flatten(x, ndim=len(kept) + 1), axis=-1) if x.ndim else T.zeros((), "int64")


@row("Convolve1d", "Convolve2d")
def _convolve(apply: Any, args: list[Any]) -> Any:
    x, w, is_full = args
    mode = {True: "full", False: "valid"}.get(known(is_full))
    if mode is None:
        raise Unknown("a convolution whose mode is not known")
    return T.convolve(x, w, mode) if x.ndim == 1 else signal.convolve2d(x, w, mode)


@row("RFFTOp")
def _spectrum(apply: Any, args: list[Any]) -> Any:
    return import_module("graphc.theano.fft").rfft_op(*args)


@row("IRFFTOp")
def _of_spectrum(apply: Any, args: list[Any]) -> Any:
    return import_module("graphc.theano.fft").irfft_op(*args)


@row("CumOp")
def _cumulative(apply: Any, args: list[Any]) -> Any:
    function = {"add": T.cumsum, "mul": T.cumprod}[apply.op.mode]
    return function(T.cast(args[0], apply.outputs[0].type.dtype), axis=apply.op.axis)


# Shapes. --------------------------------------------------------------------------------------------------------------


@row("DimShuffle")
def _dimshuffle(apply: Any, args: list[Any]) -> Any:
    x, order = args[0], tuple(apply.op.new_order)
    gone = [axis for axis in range(x.ndim) if axis not in order and x.type.shape[axis] != 1]
    return T.dimshuffle(T.addbroadcast(x, *gone) if gone else x, *order)


@row("Shape")
def _shape(apply: Any, args: list[Any]) -> Any:
    return T.shape(args[0])


@row("Shape_i")
def _size(apply: Any, args: list[Any]) -> Any:
    return as_size_node(args[0].type.shape[apply.op.i])


@row("SpecifyShape")
def _specify_shape(apply: Any, args: list[Any]) -> Any:
    return T.specify_shape(args[0], [known(size) for size in args[1:]])


@row("Reshape")
def _reshape(apply: Any, args: list[Any]) -> Any:
    return T.reshape(args[0], args[1], ndim=apply.op.ndim)


@row("JoinDims")
def _join_axes(apply: Any, args: list[Any]) -> Any:
    x, start, end = args[0], apply.op.start_axis, apply.op.start_axis + apply.op.n_axes
    if start == end:
        return T.expand_dims(x, start)
    sizes = x.type.shape
    return T.reshape(x, (*sizes[:start], _product(sizes[start:end]), *sizes[end:]))


@row("SplitDims")
def _split_axes(apply: Any, args: list[Any]) -> Any:
    x, axis = args[0], apply.op.axis
    count = apply.outputs[0].type.ndim - x.ndim + 1
    inner = [known(args[1][place]) for place in range(count)]
    return T.reshape(x, (*x.type.shape[:axis], *inner, *x.type.shape[axis + 1 :]))


def _common(sizes: Sequence[Size]) -> Size:
    """Return the size of an axis along which operands broadcast. PyTensor broadcasts only sizes known to be 1."""
    return next((size for size in sizes if isinstance(size, int) and size != 1), next((s for s in sizes if s != 1), 1))


def _product(sizes: Sequence[Size]) -> Any:
    total: Any = 1
    for size in sizes:
        total = size * total
    return total


@row("Unbroadcast", "TypeCastingOp", "ViewOp", "DeepCopyOp", "OutputGuard", "CpuContiguous")
@row("TensorFromScalar", "ScalarFromTensor")
def _same(apply: Any, args: list[Any]) -> Any:
    return args[0]


# Making and joining. --------------------------------------------------------------------------------------------------


@row("Alloc")
def _alloc(apply: Any, args: list[Any]) -> Any:
    return T.alloc(args[0], *map(known, args[1:]))


@row("AllocEmpty")
def _alloc_empty(apply: Any, args: list[Any]) -> Any:
    return T.zeros(tuple(map(known, args)), apply.op.dtype)


@row("MakeVector")
def _vector(apply: Any, args: list[Any]) -> Any:
    dtype = apply.outputs[0].type.dtype
    return T.stack([T.cast(arg, dtype) for arg in args]) if args else T.zeros((0,), dtype)


@row("ARange")
def _arange(apply: Any, args: list[Any]) -> Any:
    start, stop, step = map(known, args)
    return T.arange(start, stop, step, dtype=apply.op.dtype)


@row("Bartlett")
def _bartlett(apply: Any, args: list[Any]) -> Any:
    return T.bartlett(known(args[0]))


@row("Eye")
def _eye(apply: Any, args: list[Any]) -> Any:
    rows, columns, offset = map(known, args)
    return T.eye(rows, columns, offset, dtype=apply.op.dtype)


@row("ExtractDiag")
def _extract_diagonal(apply: Any, args: list[Any]) -> Any:
    return T.diagonal(args[0], apply.op.offset, apply.op.axis1, apply.op.axis2)


@row("Join")
def _join(apply: Any, args: list[Any]) -> Any:
    axis, *arrays = args
    if not isinstance(known(axis), int):
        raise Unknown("join along an axis that is not known")
    dtype = apply.outputs[0].type.dtype
    return T.concatenate([T.cast(array, dtype) for array in arrays], axis=known(axis))


@row("Split")
def _split(apply: Any, args: list[Any]) -> Any:
    x, axis, lengths = args
    if not isinstance(known(axis), int):
        raise Unknown("split along an axis that is not known")
    sizes = [known(lengths[place]) for place in range(apply.op.len_splits)]
    return list(T.split(x, sizes, apply.op.len_splits, axis=known(axis)))


@row("Repeat")
def _repeat(apply: Any, args: list[Any]) -> Any:
    return T.repeat(args[0], known(args[1]), axis=apply.op.axis)


@row("SortOp", "ArgSortOp")
def _sort(apply: Any, args: list[Any]) -> Any:
    x, axis = args
    if not isinstance(known(axis), int):
        raise Unknown("sort along an axis that is not known")
    kind = apply.op.kind if apply.op.kind == "stable" else None
    return (T.sort if apply.op.__class__.__name__ == "SortOp" else T.argsort)(x, known(axis), kind)


@row("Unique")
def _unique(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    found = T.unique(args[0], op.return_index, op.return_inverse, op.return_counts, op.axis)
    return list(found) if isinstance(found, tuple) else found


@row("SearchsortedOp")
def _searchsorted(apply: Any, args: list[Any]) -> Any:
    return T.searchsorted(args[0], args[1], apply.op.side, args[2] if len(args) > 2 else None)


# Indices. -------------------------------------------------------------------------------------------------------------


@row("MakeSlice")
def _slice(apply: Any, args: list[Any]) -> Any:
    return [slice(*map(known, args))]


def _indices(op: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index of a Subtensor op: a tuple of integers, slices and arrays."""
    kinds = getattr(op, "idx_list", None)
    left = list(args)
    if kinds is None:
        return tuple(known(arg) for arg in left)

    def filled(entry: Any) -> Any:
        if isinstance(entry, slice):
            return slice(filled(entry.start), filled(entry.stop), filled(entry.step))
        return entry if entry is None or isinstance(entry, int) else known(left.pop(0))

    return tuple([filled(entry) for entry in kinds])


@row("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1")
def _subtensor(apply: Any, args: list[Any]) -> Any:
    return args[0][_indices(apply.op, args[1:])]


@row("IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1")
def _inc_subtensor(apply: Any, args: list[Any]) -> Any:
    x, y, *rest = args
    if getattr(apply.op, "ignore_duplicates", False):
        raise Unknown("increments that ignore duplicates")
    function = T.set_subtensor if apply.op.set_instead_of_inc else T.inc_subtensor
    place = _indices(apply.op, rest)
    if place == () and not apply.op.set_instead_of_inc:
        return x + T.cast(y, x.dtype)
    return function(x[place], T.cast(y, x.dtype))


@row("Choose")
def _choose(apply: Any, args: list[Any]) -> Any:
    return T.choose(args[0], args[1], mode=apply.op.mode)


@row("PermuteRowElements")
def _permute_rows(apply: Any, args: list[Any]) -> Any:
    return T.permute_row_elements(args[0], args[1], apply.op.inverse)


@row("RavelMultiIndex")
def _ravel_index(apply: Any, args: list[Any]) -> Any:
    *places, sizes = args
    sizes = [known(sizes[axis]) for axis in range(len(places))]
    return T.ravel_multi_index(tuple(places), tuple(sizes), apply.op.mode, apply.op.order)


@row("UnravelIndex")
def _unravel_index(apply: Any, args: list[Any]) -> Any:
    sizes = [known(args[1][axis]) for axis in range(len(apply.outputs))]
    return list(T.unravel_index(args[0], tuple(sizes), apply.op.order))


@row("FillDiagonal")
def _fill_diagonal(apply: Any, args: list[Any]) -> Any:
    return T.fill_diagonal(*args)


@row("FillDiagonalOffset")
def _fill_diagonal_offset(apply: Any, args: list[Any]) -> Any:
    return T.fill_diagonal_offset(args[0], args[1], known(args[2]))


@row("Nonzero")
def _nonzero(apply: Any, args: list[Any]) -> Any:
    return list(T.nonzero(args[0]))


# Checks, branches, graphs within nodes. -------------------------------------------------------------------------------


@row("CheckAndRaise")
def _check(apply: Any, args: list[Any]) -> Any:
    value, *conditions = args
    return checked(value, [T.cast(each, "int64") for each in conditions], apply.op.msg)


@row("IfElse")
def _if_else(apply: Any, args: list[Any]) -> Any:
    count = len(apply.outputs)
    results = ifelse(args[0], args[1 : 1 + count], args[1 + count :])
    return list(results) if isinstance(results, list | tuple) else [results]


@row("OpFromGraph", nested=True)
def _inlined(apply: Any, args: list[Any], table: Table) -> Any:
    graph = apply.op.fgraph
    return table.values_of(graph.outputs, dict(zip(graph.inputs, args, strict=True)))


@row("Blockwise", nested=True)
def _blockwise(apply: Any, args: list[Any], table: Table) -> Any:
    """Convert a Blockwise: its op for one element of the leading axes, then for all of them (control/batch.py)."""
    op = apply.op
    rank = op.batch_ndim(apply)
    core = op._create_dummy_core_node(apply.inputs, propagate_unbatched_core_inputs=True)
    if not rank:
        return table.convert(core, args)
    alone = all(size == 1 for arg in args for size in arg.type.shape[:rank])
    if type(core.op).__name__ == "ARange" and not alone:
        return _ranges(args, rank)
    outer = [_common([arg.type.shape[axis] for arg in args]) for axis in range(rank)]
    elements: list[Node] = []
    pairs: dict[Node, tuple[Node, bool]] = {}
    for arg in args:
        own, inner = arg.type.shape[:rank], arg.type.shape[rank:]
        if all(size == 1 for size in own):
            elements.append(folded(T.reshape(arg, inner), [arg]))
            continue
        element = variable(arg.dtype, inner)  # its sizes are those of the argument
        pairs[element] = T.reshape(T.broadcast_to(arg, (*outer, *inner)), (_product(outer), *inner)), True
        elements.append(element)
    count = _product(outer)
    results = batched(table.convert(core, elements), pairs, count)
    return [
        T.reshape(
            value if has else T.repeat(T.expand_dims(value, 0), count, 0), (*outer, *value.type.shape[int(has) :])
        )
        for value, has in results
    ]


def _ranges(args: Sequence[Node], rank: int) -> Node:
    """A range for every element of leading axes, each as long as the first: PyTensor writes triangles of batches so,
    whose sizes are repeated for every element."""
    start, stop, step = args
    numbers = T.arange(*[arg[(0,) * rank] for arg in args])
    sizes = T.maximum(T.ceil(T.true_div(stop - start, step)), 0)
    equal = T.cast(T.all(T.eq(sizes, numbers.shape[0])), "int64")
    start, step = T.expand_dims(start, -1), T.expand_dims(step, -1)
    return checked(start + step * T.arange(numbers.shape[0]), [equal], "ranges of a batch have different sizes")


# Softmax. -------------------------------------------------------------------------------------------------------------


@row("Softmax")
def _softmax(apply: Any, args: list[Any]) -> Any:
    return _along(T.nnet.softmax, args[0], apply.op.axis)


@row("LogSoftmax")
def _log_softmax(apply: Any, args: list[Any]) -> Any:
    return _along(T.nnet.logsoftmax, args[0], apply.op.axis)


def _along(function: Callable[..., Node], x: Node, axis: int | None) -> Node:
    if axis is None:
        return T.reshape(function(T.flatten(x), axis=-1), x.type.shape)
    return function(x, axis=axis)


@row("SoftmaxGrad")
def _softmax_gradient(apply: Any, args: list[Any]) -> Any:
    cotangent, y = args
    product = cotangent * y
    return product - T.sum(product, axis=apply.op.axis, keepdims=True) * y


# The tables. ----------------------------------------------------------------------------------------------------------


def density_outside(apply: Any, args: list[Any]) -> Any:
    """A log-density whose parameters are checked: minus infinity where the check fails, as PyMC has it in samplers."""
    if not getattr(apply.op, "can_be_replaced_by_ninf", False):
        return _check(apply, args)
    value, *conditions = args
    holds = conditions[0]
    for each in conditions[1:]:
        holds = T.and_(holds, each)
    return T.switch(holds, value, T.constant(-np.inf, dtype=value.dtype))


CHECKED = Table()
"""The table in which failed checks of parameters raise."""
OUTSIDE = Table(CheckParameterValue=density_outside)
"""The table in which failed checks of parameters give a log-density of minus infinity."""
UNCHECKED = Table(CheckParameterValue=_same)
"""The table in which parameters are not checked."""
