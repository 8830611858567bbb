"""PyTensor's ops of tensors as functions of nodes, a row for each.

In: an Apply of PyTensor and its operands: nodes, or what stands in its place where PyTensor has no tensor (slices,
None). Out: a node for each of its results. Rows are found by the name of an op's class, or of one that it derives from.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

import graphc.tensor as T
from graphc.control.batch import batched
from graphc.ifelse import ifelse
from graphc.ir.interpret import interpret
from graphc.ir.node import LEAVES, Node, Size, constant_value, variable
from graphc.ir.walk import Graph, as_size_node
from graphc.ops.checked import checked
from graphc.pytensor.scalars import scalar
from graphc.pytensor.unknown import Unknown

Row: TypeAlias = Callable[..., Any]
ROWS: dict[str, Row] = {}
NESTED: set[Row] = set()
"""Rows that convert graphs within ops, and take the table too."""


def row(*names: str, nested: bool = False) -> Callable[[Row], Row]:
    def add(function: Row) -> Row:
        ROWS.update(dict.fromkeys(names, function))
        if nested:
            NESTED.add(function)
        return function

    return add


class Table:
    """The rows, some of them replaced by those given."""

    def __init__(self, **replaced: Row) -> None:
        self.rows = ChainMap(replaced, ROWS)
        self.found: dict[type, Row] = {}

    def row_of(self, kind: type) -> Row:
        """The row of an op's class, or of one that it derives from."""
        if kind not in self.found:
            name = next((base.__name__ for base in kind.__mro__ if base.__name__ in self.rows), None)
            if name is None:
                raise Unknown(kind.__name__)
            self.found[kind] = self.rows[name]
        return self.found[kind]

    def convert(self, apply: Any, args: Sequence[Any]) -> list[Any]:
        """The values of an Apply's results; raises Unknown where they are PyTensor's to compute."""
        function = self.row_of(type(apply.op))
        made = function(apply, list(args), self) if function in NESTED else function(apply, list(args))
        results = made if isinstance(made, list) else [made]
        return [folded(held(value, out.type), args) for value, out in zip(results, apply.outputs, strict=True)]

    def values_of(self, outputs: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
        """The nodes of a graph's outputs, where those of its inputs are given; raises Unknown where PyTensor would have
        to compute a part."""
        for apply in applys(list(values), outputs):
            args = [values[arg] if arg in values else constant(arg) for arg in apply.inputs]
            values.update(zip(apply.outputs, self.convert(apply, args), strict=True))
        return [values[out] if out in values else constant(out) for out in outputs]


def held(value: Any, kind: Any) -> Any:
    """A value of the dtype and with the static sizes that PyTensor gives it."""
    if not isinstance(value, Node):
        return value
    if value.dtype != kind.dtype:
        value = T.cast(value, kind.dtype)
    own = value.type.shape
    sizes = getattr(kind, "shape", ())
    if any(size is not None and not isinstance(there, int) for size, there in zip(sizes, own, strict=True)):
        value = T.specify_shape(value, sizes)
    return value


def known(value: Any) -> Any:
    """The number of a constant scalar, else the value itself."""
    constant = constant_value(value) if isinstance(value, Node) and not value.ndim else None
    return value if constant is None else constant.item()


# Elements and reductions. ---------------------------------------------------------------------------------------------


@row("Elemwise")
def _elemwise(apply: Any, args: list[Any]) -> Any:
    if len(apply.outputs) > 1:
        raise Unknown("an elementwise op with several results")
    return scalar(apply.op.scalar_op, apply.outputs[0].type.dtype, args)


@row("ScalarOp")
def _scalar(apply: Any, args: list[Any]) -> Any:
    return scalar(apply.op, apply.outputs[0].type.dtype, args)


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
    """The size of an axis along which operands broadcast; PyTensor broadcasts what is known to be 1 alone."""
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


@row("SearchsortedOp")
def _searchsorted(apply: Any, args: list[Any]) -> Any:
    return T.searchsorted(args[0], args[1], apply.op.side, args[2] if len(args) > 2 else None)


# Indices. -------------------------------------------------------------------------------------------------------------


@row("MakeSlice")
def _slice(apply: Any, args: list[Any]) -> Any:
    return [slice(*map(known, args))]


def _indices(op: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """What x is indexed by: integers, slices, arrays."""
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
    """The op for every element of leading axes: of one element, then of all (control/batch.py)."""
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
        element = variable(arg.dtype, inner, None)
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


# Rows of matrices and linear algebra. ---------------------------------------------------------------------------------


@row("Dot")
def _dot(apply: Any, args: list[Any]) -> Any:
    dtype = apply.outputs[0].type.dtype
    return T.dot(*[T.cast(arg, dtype) for arg in args])


@row("BatchedDot")
def _batched_dot(apply: Any, args: list[Any]) -> Any:
    return T.batched_dot(*args)


@row("Gemv", "Gemm")
def _gemm(apply: Any, args: list[Any]) -> Any:
    z, alpha, x, y, beta = args
    return beta * z + alpha * T.dot(x, y)


@row("Dot22")
def _matrix_product(apply: Any, args: list[Any]) -> Any:
    return T.dot(*args)


@row("Dot22Scalar")
def _scaled_product(apply: Any, args: list[Any]) -> Any:
    return args[2] * T.dot(*args[:2])


@row("Ger")
def _outer(apply: Any, args: list[Any]) -> Any:
    a, alpha, x, y = args
    return a + alpha * T.outer(x, y)


@row("Cholesky")
def _cholesky(apply: Any, args: list[Any]) -> Any:
    """NaN where a matrix has no factor, as PyTensor's."""
    return T.linalg.cholesky(args[0], lower=apply.op.lower, on_error="nan")


@row("SolveTriangular")
def _solve_triangular(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    return T.linalg.solve_triangular(*args, lower=op.lower, unit_diagonal=op.unit_diagonal, on_error="nan")


@row("Solve")
def _solve(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    return T.linalg.solve(*args, assume_a=op.assume_a, lower=op.lower, on_error="nan")


@row("CholeskySolve")
def _solve_by_cholesky(apply: Any, args: list[Any]) -> Any:
    return T.linalg.cho_solve((args[0], apply.op.lower), args[1])


@row("MatrixInverse")
def _inverse(apply: Any, args: list[Any]) -> Any:
    return T.linalg.inv(args[0])


@row("MatrixPinv")
def _pseudo_inverse(apply: Any, args: list[Any]) -> Any:
    return T.linalg.pinv(args[0])


@row("Det")
def _determinant(apply: Any, args: list[Any]) -> Any:
    return T.linalg.det(args[0])


@row("SLogDet")
def _log_determinant(apply: Any, args: list[Any]) -> Any:
    return list(T.linalg.slogdet(args[0]))


@row("Eigh")
def _eigenvalues(apply: Any, args: list[Any]) -> Any:
    return list(T.linalg.eigh(args[0], UPLO=apply.op.UPLO))


@row("SVD")
def _singular_values(apply: Any, args: list[Any]) -> Any:
    if not apply.op.compute_uv:
        return T.linalg.svdvals(args[0])
    return list(T.linalg.svd(args[0], full_matrices=apply.op.full_matrices))


@row("QR")
def _orthogonal(apply: Any, args: list[Any]) -> Any:
    op = apply.op
    if op.pivoting or op.mode == "raw":
        raise Unknown("a QR factorisation with pivots, or LAPACK's own form of it")
    q, r = T.linalg.qr(args[0], "reduced" if op.mode == "economic" else "complete")
    return r if op.mode == "r" else [q, r]


@row("BlockDiagonal")
def _block_diagonal(apply: Any, args: list[Any]) -> Any:
    return T.linalg.block_diag(*args)


@row("Expm")
def _exponential(apply: Any, args: list[Any]) -> Any:
    return T.linalg.expm(args[0])


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


# Graphs. --------------------------------------------------------------------------------------------------------------


CONSTANT_KINDS = (np.ndarray, np.generic, int, float, bool)
"""What a constant may hold that becomes a node; None and slices stay as they are."""


def applys(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[Any]:
    """The Applys that compute outputs from inputs, each after those whose results it takes."""
    done, pending = set(inputs), list(reversed(outputs))
    while pending:
        variable = pending[-1]
        apply = variable.owner
        if variable in done or apply is None:
            done.add(variable)
            pending.pop()
            continue
        left = [arg for arg in apply.inputs if arg not in done]
        if left:
            pending += reversed(left)
            continue
        done.update(apply.outputs)
        yield apply
        pending.pop()


def folded(value: Any, args: Sequence[Any]) -> Any:
    """A value that is computed of constants, where it is no larger than they are: a constant."""
    if not isinstance(value, Node) or value.op in LEAVES or not args:
        return value
    arrays = [constant_value(arg) if isinstance(arg, Node) else None for arg in args]
    most = sum(array.size for array in arrays if array is not None)
    sizes = [size for size in value.type.shape if isinstance(size, int)]
    if any(array is None for array in arrays) or len(sizes) < value.ndim or prod(sizes) > most:
        return value
    return T.constant(interpret(Graph((), (value,)), {})[0], dtype=value.dtype)


def constant(variable: Any) -> Any:
    """The value of a constant: a node, a slice or None."""
    if not hasattr(variable, "data"):
        raise Unknown(f"{variable} is neither an input nor a constant")
    data = variable.data
    if isinstance(data, CONSTANT_KINDS):
        return held(T.constant(data, dtype=variable.type.dtype), variable.type)
    if data is None or isinstance(data, slice):
        return data
    raise Unknown(f"a constant of type {type(data).__name__}")


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
"""Checks of parameters raise."""
OUTSIDE = Table(CheckParameterValue=density_outside)
"""Checks of parameters give a log-density of minus infinity."""
UNCHECKED = Table(CheckParameterValue=_same)
"""Nothing is checked."""
