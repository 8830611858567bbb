"""Theano's classes of ops: what they compute, and which ops of a graph are their instances."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import scalar, tensor
from graphc.errors import ArgumentError
from graphc.theano import opclasses

T: Any = tensor
gradient: Any = import_module("graphc.gradient")
CORR: Any = import_module("graphc.tensor.nnet.corr")
M = np.arange(12.0).reshape(3, 4)
V = np.array([0.5, -1.0, 2.0, 4.0])
ROWS = np.array([2, 0])
PADDED = np.pad(M, ((1, 1), (0, 0)))
CORRELATED = [[[[(PADDED[i : i + 2, j : j + 2] * M[:2, :2]).sum() for j in (0, 2)] for i in range(4)]]]
"""The correlation of M with its corner, a row of zeros on either side, in every second column."""
E_M = np.exp(M) / np.exp(M).sum(1, keepdims=True)
CLASSES = np.array([1, 3, 0])
HOT = np.eye(4)[CLASSES]

APPLIED: list[tuple[Any, tuple[Any, ...], Any]] = [
    (T.ARange("int64"), (1, 9, 3), [1, 4, 7]),
    (T.AdvancedSubtensor1(), (M, ROWS), M[ROWS]),
    (T.AdvancedSubtensor(), (M, ROWS, ROWS), M[ROWS, ROWS]),
    (T.advanced_inc_subtensor1, (M, np.ones((2, 4)), ROWS), M + np.array([[1.0], [0.0], [1.0]])),
    (T.advanced_set_subtensor, (M, 0.0, ROWS, ROWS), M * (1 - np.eye(3, 4) * (np.arange(3) != 1)[:, None])),
    (T.Alloc(), (2.0, 2, 3), np.full((2, 3), 2.0)),
    (T.AllocDiag(), (V,), np.diag(V)),
    (T.AllocDiag(-2), (V,), np.diag(V, -2)),
    (T.AllocDiag(1, 1, 0), (V,), np.diag(V, 1).T),
    (T.Argmax(axis=1), (M,), [3, 3, 3]),
    (T.Bartlett(), (5,), np.bartlett(5)),
    (T.BatchedDot(), (M[None], M.T[None]), (M @ M.T)[None]),
    (T.Choose("clip"), (np.array([0, 5]), [V[:2], V[2:]]), np.array([0.5, 4.0])),
    (CORR.CorrMM((1, 0), (1, 2)), (M[None, None], M[None, None, :2, :2]), CORRELATED),
    (T.CumOp(axis=1), (M,), M.cumsum(1)),
    (T.CumOp(axis=0, mode="mul"), (M,), M.cumprod(0)),
    (T.CumsumOp(), (M,), M.cumsum()),
    (T.CumprodOp(1), (M,), M.cumprod(1)),
    (T.DiffOp(2, 0), (M,), np.diff(M, 2, 0)),
    (T.Dot(), (M, V), M @ V),
    (T.Dot22Scalar(), (M, M.T, 0.5), M @ M.T * 0.5),
    (T.ExtractDiag(1), (M,), np.diagonal(M, 1)),
    (T.Eye("float64"), (2, 3, 1), np.eye(2, 3, 1)),
    (T.FillDiagonal(), (M, 7.0), np.where(np.eye(3, 4, dtype=bool), 7.0, M)),
    (T.Flatten(1), (M,), M.ravel()),
    (T.gemm_no_inplace, (np.ones((3, 3)), 2.0, M, M.T, 0.5), 0.5 + 2 * M @ M.T),
    (T.gemv, (np.ones(3), 2.0, M, V, 0.5), 0.5 + 2 * M @ V),
    (T.ger, (M, 2.0, np.ones(3), V), M + 2 * V),
    (T.Join(), (0, M, M), np.concatenate([M, M])),
    (T.MakeVector("float64"), (1, 2.5), [1.0, 2.5]),
    (T.Mean(0), (M,), M.mean(0)),
    (T.Prepend_scalar_constant_to_each_row(3.0), (M,), np.hstack([np.full((3, 1), 3.0), M])),
    (T.Prepend_scalar_to_each_row(), (3.0, M), np.hstack([np.full((3, 1), 3.0), M])),
    (T.RavelMultiIndex(), (ROWS, ROWS, (3, 4)), [10, 0]),
    (T.Rebroadcast((0, True)), (M[:1],), M[:1]),
    (T.RepeatOp(axis=0), (M, 2), M.repeat(2, 0)),
    (T.Reshape(2), (M, (4, 3)), M.reshape(4, 3)),
    (T.SearchsortedOp("right"), (np.sort(V), 2.0), 3),
    (T.Shape(), (M,), [3, 4]),
    (T.Shape_i(1), (M,), 4),
    (T.Softmax(), (M,), E_M),
    (T.LogSoftmax(), (M,), np.log(E_M)),
    (T.softmax_grad, (M, E_M), M * E_M - (M * E_M).sum(1, keepdims=True) * E_M),
    (T.SpecifyShape(), (M, (3, 4)), M),
    (T.Tile(2), (M, (2, 1)), np.tile(M, (2, 1))),
    (T.Tri(), (3, 3, 0), np.tri(3)),
    (T.Unique(), (np.array([2, 1, 2]),), [1, 2]),
    (T.nnet.SoftmaxWithBias(), (M, V), np.exp(M + V) / np.exp(M + V).sum(1, keepdims=True)),
    (T.nnet.CrossentropyCategorical1Hot(), (E_M, CLASSES), -np.log(E_M[range(3), CLASSES])),
    (T.nnet.CrossentropyCategorical1HotGrad(), (V[:3], E_M, CLASSES), -V[:3, None] / E_M * HOT),
    (T.nnet.CrossentropySoftmax1HotWithBiasDx(), (V[:3], E_M, CLASSES), V[:3, None] * (E_M - HOT)),
    (T.SortOp("quicksort"), (M[::-1], 0), M),
    (T.xlogx, (np.array([0.0, 2.0]),), [0.0, 2 * np.log(2.0)]),
]  # fmt: skip


def test_ops_of_classes_compute_what_the_functions_do() -> None:
    results = [op(*operands) for op, operands, _ in APPLIED]
    values = graphc.function([], results, mode="interpreted")()
    for (op, _, wanted), value in zip(APPLIED, values, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, err_msg=repr(op))


def test_several_results() -> None:
    x = T.dmatrix("x")
    parts = T.Split(2)(x, 0, [1, 2])
    assert isinstance(parts, list) and [part.ndim for part in parts] == [2, 2]
    loss, chances, best = T.nnet.CrossentropySoftmaxArgmax1HotWithBias()(x, V, CLASSES)
    found = graphc.function([x], [loss, chances, best], mode="interpreted")(M)
    biased = np.exp(M + V) / np.exp(M + V).sum(1, keepdims=True)
    for got, want in zip(found, (-np.log(biased[range(3), CLASSES]), biased, biased.argmax(1)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    values, places = T.MaxAndArgmax([0])(x)
    assert values.ndim == places.ndim == 1
    assert [
        len(T.TopKOp(return_values=v, return_indices=i)(x, 1, return_list=True)) for v, i in ((1, 1), (1, 0), (0, 1))
    ] == [2, 1, 1]
    assert [one.eval() for one in T.UnravelIndex(2)(np.int64(5), np.array([3, 4]))] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "slope"),
    [
        (gradient.GradClip(-1.0, 0.5), 0.5), (gradient.GradScale(3.0), 6.0), (gradient.ZeroGrad(), 0.0),
        (gradient.DisconnectedGrad(), 0.0), (gradient.ConsiderConstant(), 0.0),
    ],
)  # fmt: skip
def test_classes_of_derivatives(op: Any, slope: float) -> None:
    x = T.dvector("x")
    cost = (2 * op(x)).sum()
    made = graphc.function([x], [cost, graphc.grad(cost, x, disconnected_inputs="ignore")])
    total, found = made(V)
    np.testing.assert_allclose([total, *found], [2 * V.sum(), *([slope] * 4)])


def test_the_class_of_branches() -> None:
    x = T.dscalar("x")
    chosen = graphc.ifelse(x > 0, x, -x)
    assert isinstance(chosen.owner.op, import_module("graphc.ifelse").IfElse)


def test_ops_are_equal_by_their_parameters() -> None:
    x = T.dmatrix("x")
    assert T.Reshape(2) == T.Reshape(ndim=2) != T.Reshape(3) and len({T.CumOp(1), T.CumOp(axis=1), T.CumOp()}) == 2
    assert repr(T.CumOp(axis=1)) == "CumOp{axis=1, mode='add'}" and T.CumOp(1).axis == 1
    assert T.Dot()(x, x, name="square").name == "square" and T.Dot().make_node(x, x).op.name == "matmul"
    assert isinstance(T.Dot(), T.Dot) and not isinstance(T.Dot(), T.Reshape)
    with pytest.raises(ArgumentError, match=r"Reshape\(ndim, name=None\): too many positional"):
        T.Reshape(2, "a", 3)
    with pytest.raises(ArgumentError, match="Subtensor is there to ask"):
        T.Subtensor([slice(1, 2)])
    assert pickle.loads(pickle.dumps(T.Dot)) is T.Dot


def test_a_graph_is_asked_for_its_ops() -> None:
    x, i = T.dmatrix("x"), T.lvector("i")
    loops, _ = graphc.scan(lambda row: row * 2, x)
    graph = graphc.function(
        [x, i],
        [T.exp(x).sum(), T.dot(x, x), x[i], x[1:], x.T.prod(axis=0), loops, graphc.ifelse(x.sum() > 0, x, 2 * x)],
        mode="interpreted",
    ).maker.fgraph
    ops = [node.op for node in graph.toposort()]
    for kind in (
        T.Elemwise, T.Sum, T.Prod, T.CAReduce, T.CAReduceDtype, T.DimShuffle, T.Dot, T.AdvancedSubtensor1, T.Subtensor,
        opclasses.Scan, opclasses.IfElse,
    ):  # fmt: skip
        assert any(isinstance(op, kind) for op in ops), kind
    assert not any(isinstance(op, T.IncSubtensor | T.All) for op in ops)
    scalars = [op.scalar_op for op in ops if isinstance(op, T.Elemwise)]
    assert any(isinstance(op, scalar.Exp) and op == scalar.exp for op in scalars)
    assert not any(isinstance(op, scalar.Log) for op in scalars)
    with pytest.raises(AttributeError, match="sum is not elementwise"):
        _ = next(op for op in ops if isinstance(op, T.Sum)).scalar_op


def test_names_of_nnet_and_private_ones() -> None:
    assert T.nnet.Softmax is T.Softmax and T.nnet.softmax_grad == T.softmax_grad
    asarray: Any = vars(graphc)["__getattr__"]("_asarray")
    assert T._shared(1.0).get_value() == 1.0 and asarray([1], "float32").dtype == np.float32
    assert asarray(2, "floatX").dtype == graphc.config.floatX
    close = T._allclose
    assert close(1.0, 1 + 1e-9) and not close(1.0, 1.001) and close(np.float32(1), 1.000001) and close(1, 2, atol=2)
