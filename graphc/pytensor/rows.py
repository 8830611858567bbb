"""Rows of the table (table.py) for elementwise ops, shapes, indices, checks, linear algebra, graphs in ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.null_type import NullType

import graphc.tensor as T
from graphc.control.batch import batched
from graphc.control.branch import ifelse
from graphc.control.scan import scan, until
from graphc.ir.node import Node, Size, variable
from graphc.ir.walk import as_size_node
from graphc.ops.derivative import grad_clip, grad_scale, overridden, undefined_grad, zero_grad
from graphc.ops.identity import checked
from graphc.pytensor.table import ROWS, Table, Unknown, as_declared, folded, known, row, scalars
from graphc.tensor.signal import conv as signal

SHORT: dict[str, Callable[..., Any]] = {
    # shapes
    "Shape": lambda op, x: T.shape(x),
    "Shape_i": lambda op, x: as_size_node(x.type.shape[op.i]),
    "SpecifyShape": lambda op, x, *sizes: T.specify_shape(x, [known(size) for size in sizes]),
    "Reshape": lambda op, x, shape: T.reshape(x, shape, ndim=op.ndim),
    "Unbroadcast TypeCastingOp ViewOp DeepCopyOp OutputGuard CpuContiguous": lambda op, x: x,
    # values whose derivatives are others
    "ZeroGrad": lambda op, x: zero_grad(x),
    "DisconnectedGrad": lambda op, x: T.disconnected_grad(x),
    "UndefinedGrad": lambda op, x: undefined_grad(x),
    "GradClip": lambda op, x: grad_clip(x, op.clip_lower_bound, op.clip_upper_bound),
    "GradScale": lambda op, x: grad_scale(x, op.multiplier),
    "TensorFromScalar ScalarFromTensor": lambda op, x: x,
    # making
    "Alloc": lambda op, value, *shape: T.alloc(value, *map(known, shape)),
    "AllocEmpty": lambda op, *shape: T.zeros(tuple(map(known, shape)), op.dtype),
    "ARange": lambda op, start, stop, step: T.arange(known(start), known(stop), known(step), dtype=op.dtype),
    "Bartlett": lambda op, size: T.bartlett(known(size)),
    "Eye": lambda op, rows, columns, k: T.eye(known(rows), known(columns), known(k), dtype=op.dtype),
    "ExtractDiag": lambda op, x: T.diagonal(x, op.offset, op.axis1, op.axis2),
    "Repeat": lambda op, x, count: T.repeat(x, known(count), axis=op.axis),
    "Unique": lambda op, x: T.unique(x, op.return_index, op.return_inverse, op.return_counts, op.axis),
    "SearchsortedOp": lambda op, x, wanted, order=None: T.searchsorted(x, wanted, op.side, order),
    # indices
    "MakeSlice": lambda op, *ends: [slice(*map(known, ends))],
    "Subtensor AdvancedSubtensor AdvancedSubtensor1": lambda op, x, *places: x[_indices(op, places)],
    "Choose": lambda op, index, choices: T.choose(index, choices, mode=op.mode),
    "PermuteRowElements": lambda op, x, order: T.permute_row_elements(x, order, op.inverse),
    "FillDiagonal": lambda op, x, value: T.fill_diagonal(x, value),
    "FillDiagonalOffset": lambda op, x, value, offset: T.fill_diagonal_offset(x, value, known(offset)),
    "Nonzero": lambda op, x: T.nonzero(x),
    # softmax
    "Softmax": lambda op, x: _along(T.nnet.softmax, x, op.axis),
    "LogSoftmax": lambda op, x: _along(T.nnet.logsoftmax, x, op.axis),
    "SoftmaxGrad": lambda op, given, y: given * y - T.sum(given * y, axis=op.axis, keepdims=True) * y,
    # transforms
    "RFFTOp": lambda op, *args: import_module("graphc.theano.fft").rfft_op(*args),
    "IRFFTOp": lambda op, *args: import_module("graphc.theano.fft").irfft_op(*args),
    # products
    "BatchedDot": lambda op, x, y: T.batched_dot(x, y),
    "Gemv Gemm": lambda op, z, alpha, x, y, beta: beta * z + alpha * T.dot(x, y),
    "Dot22": lambda op, x, y: T.dot(x, y),
    "Dot22Scalar": lambda op, x, y, factor: factor * T.dot(x, y),
    "Ger": lambda op, a, alpha, x, y: a + alpha * T.outer(x, y),
    # linear algebra: NaN where a matrix has no factor, as PyTensor's
    "Cholesky": lambda op, a: T.linalg.cholesky(a, lower=op.lower, on_error="nan"),
    "SolveTriangular": lambda op, a, b: T.linalg.solve_triangular(
        a, b, lower=op.lower, unit_diagonal=op.unit_diagonal, on_error="nan"
    ),
    "Solve": lambda op, a, b: T.linalg.solve(a, b, assume_a=op.assume_a, lower=op.lower, on_error="nan"),
    "CholeskySolve": lambda op, factor, b: T.linalg.cho_solve((factor, op.lower), b),
    "MatrixInverse": lambda op, a: T.linalg.inv(a),
    "MatrixPinv": lambda op, a: T.linalg.pinv(a),
    "Det": lambda op, a: T.linalg.det(a),
    "SLogDet": lambda op, a: T.linalg.slogdet(a),
    "Eigh": lambda op, a: T.linalg.eigh(a, UPLO=op.UPLO),
    "Eigvalsh": lambda op, a, b=None: T.linalg.eigvalsh(a, _triangle(op), b=b),
    "SVD": lambda op, a: T.linalg.svd(a, full_matrices=op.full_matrices) if op.compute_uv else T.linalg.svdvals(a),
    "LU": lambda op, a: T.linalg.lu(a, permute_l=op.permute_l, p_indices=op.p_indices),
    "Lstsq": lambda op, a, b, rcond: T.linalg.lstsq(a, b, known(rcond)),
    "TRSYL": lambda op, *args: T.linalg.solve_sylvester(*args),
    "TensorInv": lambda op, a: T.linalg.tensorinv(a, op.ind),
    "TensorSolve": lambda op, a, b: T.linalg.tensorsolve(a, b, op.axes),
    "BlockDiagonal": lambda op, *blocks: T.linalg.block_diag(*blocks),
    "Expm": lambda op, a: T.linalg.expm(a),
}
"""Rows that need an op and its inputs alone: functions of these, by names of ops."""


def _along(function: Callable[..., Node], x: Node, axis: int | None) -> Node:
    if axis is None:
        return T.reshape(function(T.flatten(x), axis=-1), x.type.shape)
    return function(x, axis=axis)


def _of_op(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda apply, args: function(apply.op, *args)


ROWS.update({name: _of_op(function) for names, function in SHORT.items() for name in names.split()})


@row("Elemwise", "ScalarOp")
def _elementwise(apply: Any, args: list[Any]) -> Any:
    op = getattr(apply.op, "scalar_op", apply.op)
    return scalars(op, [out.type.dtype for out in apply.outputs], args)


@row("CumOp")
def _cumulative(apply: Any, args: list[Any]) -> Any:
    function = {"add": T.cumsum, "mul": T.cumprod}[apply.op.mode]
    return function(T.cast(args[0], apply.outputs[0].type.dtype), axis=apply.op.axis)


REDUCTIONS: dict[str, Callable[..., Node]] = {
    "Add": T.sum, "Mul": T.prod, "Maximum": T.max, "Minimum": T.min, "ScalarMaximum": T.max, "ScalarMinimum": T.min,
    "AND": T.all, "OR": T.any,
}  # fmt: skip


@row("CAReduce")
def _reduce(apply: Any, args: list[Any]) -> Any:
    kind, dtype = type(apply.op.scalar_op).__name__, apply.outputs[0].type.dtype
    if kind not in REDUCTIONS or (kind in ("AND", "OR") and args[0].dtype != "bool"):
        raise Unknown(f"reduction by {kind}")
    x, axis = args[0], _axes(apply, args[0])
    if kind in ("Add", "Mul"):
        return REDUCTIONS[kind](T.cast(x, getattr(apply.op, "acc_dtype", None) or dtype), axis=axis, dtype=dtype)
    return REDUCTIONS[kind](x, axis=axis)


def _axes(apply: Any, x: Node) -> Any:
    """Return the axes of a reduction. PyTensor takes the axis 0 of a scalar, as NumPy does."""
    return apply.op.axis if x.ndim else None


@row("ProdWithoutZeros")
def _product_of_nonzeros(apply: Any, args: list[Any]) -> Any:
    x = T.cast(args[0], apply.op.acc_dtype or apply.outputs[0].type.dtype)
    return T.prod(T.switch(T.eq(x, 0), T.ones_like(x), x), axis=_axes(apply, x))


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


@row("DimShuffle")
def _dimshuffle(apply: Any, args: list[Any]) -> Any:
    x, order = args[0], tuple(apply.op.new_order)
    gone = [axis for axis in range(x.ndim) if axis not in order and x.type.shape[axis] != 1]
    return T.dimshuffle(T.addbroadcast(x, *gone) if gone else x, *order)


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


@row("MakeVector")
def _vector(apply: Any, args: list[Any]) -> Any:
    dtype = apply.outputs[0].type.dtype
    return T.stack([T.cast(arg, dtype) for arg in args]) if args else T.zeros((0,), dtype)


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
    return T.split(x, sizes, apply.op.len_splits, axis=known(axis))


@row("SortOp", "ArgSortOp")
def _sort(apply: Any, args: list[Any]) -> Any:
    x, axis = args
    if not isinstance(known(axis), int):
        raise Unknown("sort along an axis that is not known")
    kind = apply.op.kind if apply.op.kind == "stable" else None
    return (T.sort if apply.op.__class__.__name__ == "SortOp" else T.argsort)(x, known(axis), kind)


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


@row("RavelMultiIndex")
def _ravel_index(apply: Any, args: list[Any]) -> Any:
    *places, sizes = args
    sizes = [known(sizes[axis]) for axis in range(len(places))]
    return T.ravel_multi_index(tuple(places), tuple(sizes), apply.op.mode, apply.op.order)


@row("UnravelIndex")
def _unravel_index(apply: Any, args: list[Any]) -> Any:
    sizes = [known(args[1][axis]) for axis in range(len(apply.outputs))]
    return T.unravel_index(args[0], tuple(sizes), apply.op.order)


# Checks, branches, graphs within nodes. -------------------------------------------------------------------------------


@row("CheckAndRaise")
def _check(apply: Any, args: list[Any]) -> Any:
    value, *conditions = args
    return checked(value, [T.cast(each, "int64") for each in conditions], apply.op.msg)


@row("IfElse")
def _if_else(apply: Any, args: list[Any]) -> Any:
    count = len(apply.outputs)
    return ifelse(args[0], args[1 : 1 + count], args[1 + count :])


@row("OpFromGraph", nested=True)
def _inlined(apply: Any, args: list[Any], table: Table) -> Any:
    op, graph = apply.op, apply.op.fgraph
    values = table.values_of(graph.outputs, dict(zip(graph.inputs, args, strict=True)))
    if op.lop_overrides is None and op.grad_overrides is None:
        return values

    def rule(inputs: Sequence[Node], results: Sequence[Node], given: Any, wanted: Collection[int]) -> list[Node | None]:
        own = [variable.type() for variable in apply.inputs]
        outs = op(*own, return_list=True)
        cotangents = [out.type() if place in given else disconnected_type() for place, out in enumerate(outs)]
        parts = op.L_op(own, outs, cotangents)
        for place in wanted:
            if isinstance(parts[place].type, NullType):
                raise Unknown(f"the derivative of {op} by its input {place}")
        kept = [place for place in wanted if not isinstance(parts[place].type, DisconnectedType)]
        known = dict(zip([*own, *outs], [*inputs, *results], strict=True))
        known.update((cotangents[place], node) for place, node in given.items())
        made = dict(zip(kept, table.values_of([parts[place] for place in kept], known), strict=True))
        return [made.get(place) for place in range(len(inputs))]

    return overridden(values, args, rule)


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


# --- products, linear algebra -----------------------------------------------------------------------------------------


@row("Dot")
def _dot(apply: Any, args: list[Any]) -> Any:
    dtype = apply.outputs[0].type.dtype
    return T.dot(*[T.cast(arg, dtype) for arg in args])


@row("QR")
def _orthogonal(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    if op.mode == "raw":
        raise Unknown("a QR factorisation in LAPACK's own form")
    found = list(T.linalg.qr(args[0], "reduced" if op.mode == "economic" else "complete", pivoting=op.pivoting))
    return found[1:] if op.mode == "r" else found


@row("EighGrad")
def _eigenvalues_gradient(apply: Any, args: list[Any]) -> Any:
    """v (diag(cotangent of w) + the cotangent of v along other vectors, over their distance) v', of which the triangle
    that is read has all: Giles, "An extended collection of matrix derivative results", 3.1."""
    _, w, v, of_w, of_v = args
    is_own = T.eye(w.shape[0], dtype="bool")
    apart = T.switch(is_own, 1, w[None] - w[:, None])
    inner = T.switch(is_own, T.diag(of_w), T.dot(v.T, of_v) / apart)
    return _folded_over(T.dot(T.dot(v, inner), v.T), apply.op.UPLO)


@row("EigvalshGrad")
def _eigenvalues_alone_gradient(apply: Any, args: list[Any]) -> Any:
    a, b, of_w = args
    w, v = T.linalg.eigh(a, _triangle(apply.op), b=b)
    return [_folded_over(T.dot(v * scale, v.T), _triangle(apply.op)) for scale in (of_w, -of_w * w)]


def _triangle(op: Any) -> str:
    return "L" if op.lower else "U"


def _folded_over(gradient: Node, triangle: str) -> Node:
    """The gradient of a symmetric matrix where one of its triangles is read alone."""
    if triangle == "L":
        return T.tril(gradient) + T.triu(gradient, 1).T
    return T.triu(gradient) + T.tril(gradient, -1).T


@row("LUFactor")
def _packed_factors(apply: Any, args: list[Any]) -> Any:
    """NaN for a singular matrix, as PyTensor's. LAPACK's pivots say with which row each was exchanged in turn."""
    packed, order = T.linalg.lu_factor(args[0])
    singular = T.any(T.eq(T.diagonal(packed), 0))

    numbers = T.arange(order.shape[0])

    def exchange(row: Node, wanted: Node, rows: Node) -> list[Node]:
        other = T.sum(T.switch(T.eq(rows, wanted), numbers, 0))  # there may be no rows: no argmax
        return [_exchanged(rows, row, other), other]

    (_, pivots), _ = scan(exchange, [numbers, order], [numbers, None], return_list=True)
    return [T.switch(singular, T.cast(np.nan, packed.dtype), packed), pivots]


@row("PivotToPermutations")
def _order_of_pivots(apply: Any, args: list[Any]) -> Any:
    numbers = T.arange(args[0].shape[0])
    rows, _ = scan(lambda row, other, rows: _exchanged(rows, row, other), [numbers, args[0]], numbers)
    order = T.concatenate([numbers[None], rows])[-1]
    return order if apply.op.inverse else T.argsort(order)


def _exchanged(rows: Node, row: Node, other: Node) -> Node:
    """Return a vector with two elements swapped."""
    return T.set_subtensor(T.set_subtensor(rows[row], rows[other])[other], rows[row])


@row("Schur")
def _schur(apply: Any, args: list[Any]) -> Any:
    """NaN for a matrix that is not finite, as PyTensor's."""
    a, op = args[0], apply.op
    if op.output != "real" or op.sort is not None:
        raise Unknown("complex or sorted Schur forms")
    is_finite = T.all(T.isfinite(a))
    schur = import_module("graphc.ops.linalg.equations").schur
    found = schur(T.switch(is_finite, a, T.zeros_like(a)), on_error="nan")
    return [T.switch(is_finite, part, T.cast(np.nan, part.dtype)) for part in found]


# --- Scan -------------------------------------------------------------------------------------------------------------


@row("Scan", nested=True)
def _scan(apply: Any, args: list[Any], table: Table) -> list[Node]:
    """Convert a Scan to graphc's scan. A state with taps becomes a state with the same taps. A buffer that steps read
    and write in several places (`mit_mot`, in gradients of loops) becomes one state, of which each step writes rows.
    Results are buffers as PyTensor has them before its rewrites: initial values first, zeros where nothing is written.
    """
    op, info, inner = apply.op, apply.op.info, apply.op.fgraph
    for arg in args:
        if not isinstance(arg, Node):
            raise Unknown("a loop over what is no tensor")
    steps = known(args[0])
    buffers, sequences = op.outer_mitmot(args), op.outer_seqs(args)
    states = [*op.outer_mitsot(args), *op.outer_sitsot(args)]
    taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
    untraced = op.outer_untraced_sit_sot(args)
    sizes = op.outer_nitsot(args)
    reads, writes = info.mit_mot_in_slices, info.mit_mot_out_slices

    def step(time: Node, *variables: Node) -> Any:
        elements, carried, past, last = parted(
            variables, len(sequences), len(buffers), sum(map(len, taps)), len(untraced)
        )
        rows = [buffer[time + (tap - min(own))] for buffer, own in zip(carried, reads, strict=True) for tap in own]
        values = [*elements, *rows, *past, *last, *op.outer_non_seqs(args)]
        values = [as_declared(value, variable.type) for value, variable in zip(values, inner.inputs, strict=True)]
        results = table.values_of(inner.outputs, dict(zip(inner.inputs, values, strict=True)))
        new_rows, new_states, outputs, new_untraced, ends = parted(
            results, sum(map(len, writes)), len(states), len(sizes), len(untraced), int(info.as_while)
        )
        for number, own in enumerate(reads):
            for tap in writes[number]:
                carried[number] = T.set_subtensor(carried[number][time + (tap - min(own))], new_rows.pop(0))
        results = [*carried, *new_states, *new_untraced, *outputs]
        return (results, until(*ends)) if ends else results

    initial: list[Any] = [{"initial": value, "taps": [-1]} for value in buffers]
    for state, own in zip(states, taps, strict=True):
        before = -min(own)
        initial.append({"initial": state[:before] if before > 1 else state[0], "taps": list(own)})
    initial += [*({"initial": value, "taps": [-1]} for value in untraced), *[None] * len(sizes)]
    elements = [T.arange(steps), *[rows[:steps] for rows in sequences]]
    results, _ = scan(step, elements, initial, n_steps=steps, truncate_gradient=op.truncate_gradient, return_list=True)
    ended, traced, last, outputs = parted(results, len(buffers), len(states), len(untraced), len(sizes))
    traced = [T.concatenate([state[: -min(own)], rows]) for state, own, rows in zip(states, taps, traced, strict=True)]
    if op.truncate_gradient != -1:
        outputs = [filled(rows, size, args[0]) for rows, size in zip(outputs, sizes, strict=True)]
    return [*(rows[-1] for rows in ended), *traced, *outputs, *(rows[-1] for rows in last)]


def parted(values: Iterable[Node], *counts: int) -> list[list[Node]]:
    """Values in lists, one after the other, with so many in each."""
    rest = iter(values)
    return [list(islice(rest, count)) for count in counts]


def filled(rows: Node, size: Node, steps: Node) -> Node:
    """The rows of an output, and zeros where its buffer, of `size` rows, has more than there are steps: so have
    gradients that go back through some steps only."""
    more = T.maximum(size - steps, 0)
    return T.concatenate([rows, T.zeros((more, *rows.shape[1:]), rows.type.dtype)])


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
UNCHECKED = Table(CheckParameterValue=lambda apply, args: args[0])
"""The table in which parameters are not checked."""
