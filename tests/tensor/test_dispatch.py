"""NumPy's functions of tensors: each expression gives, of tensors, what it gives of their values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError

A = np.arange(6.0).reshape(2, 3) - 2
B = np.array([1.0, 2.0, 3.0])
N = np.int64(2)
X, Y, I = T.dmatrix("X"), T.dvector("Y"), T.lscalar("I")  # noqa: E741

EXPRESSIONS = """
np.exp(X); np.square(X); np.abs(X); np.negative(X); np.sign(X); np.exp2(X); np.isfinite(X); np.conj(X); np.fix(X)
np.maximum(X, 0); np.fmod(X, 2); np.arctan2(X, A); np.hypot(X, 3); np.heaviside(X, 0.5); np.logaddexp(X, A)
np.true_divide(X, 2); np.floor_divide(X, 2); np.remainder(X, 2); np.divmod(X, 2)[1]; np.modf(X)[0]; np.modf(X)[1]
np.add(A, X); np.add(A, X, dtype="float32"); np.power(np.abs(X), 2.5); np.equal(X, A); np.less(A, X, dtype=bool)
A * X; A - X; A + Y; A / Y; A // Y; A % Y; np.abs(A) ** Y; A > X; A <= X; A == X; A != X; A @ Y; X @ B; B @ Y
np.float64(2) * X; np.float32(2) * X; np.int64(2) ** Y; np.float64(1) - Y; np.float64(2) < Y; np.float64(2) == Y
np.int8(3) * I; np.bool_(True) & (X > 0); [1.0, 2.0, 3.0] * Y; Y / [1.0, 2.0, 3.0]; divmod(A, Y)[0]
np.matmul(A, Y); np.vecdot(X, Y); np.matvec(X, Y); np.vecmat(Y, A.T)
np.add.reduce(X); np.add.reduce(X, axis=1, keepdims=True); np.add.reduce(X, axis=None); np.add.reduce(X > 0)
np.add.reduce(X, dtype="float32"); np.add.reduce(X, initial=5.0, where=X > 0); np.multiply.reduce(X, axis=1)
np.maximum.reduce(X, axis=0); np.minimum.reduce(X, axis=(0, 1)); np.logical_and.reduce(X > 0); np.logaddexp.reduce(Y)
np.hypot.reduce(np.stack([Y, B])); np.subtract.reduce(np.stack([Y, B]), axis=0, keepdims=True)
np.add.accumulate(X, axis=1); np.multiply.accumulate(Y); np.maximum.accumulate(np.stack([Y, B]))
np.multiply.outer(Y, B); np.add.outer(Y, X); np.subtract.outer(B, Y); np.less.outer(Y, B)
np.sum(X, axis=0); np.sum(X, axis=None, keepdims=True); np.sum(X, 1, dtype="float32"); np.sum(X, initial=3.0)
np.sum(X, where=X > 0); np.prod(X, where=X > 0, initial=2); np.max(X, where=X > 0, initial=-1); np.min(X, initial=-9)
np.mean(X); np.mean(X, where=X > -1); np.mean(X, 1, where=A > -9, keepdims=True); np.std(X, axis=0, ddof=1)
np.var(X, axis=1, correction=1); np.var(X, axis=1, where=X > -5); np.std(X, where=X > -1, ddof=1); np.any(X > 0, 0)
np.all(X > 0, axis=0); np.any(X > 0, where=A > 9); np.count_nonzero(X, axis=1); np.average(X, axis=1, weights=B)
np.amax(X, 0); np.amin(X, axis=1); np.ptp(X, axis=0); np.argmax(X, axis=1); np.argmin(X); np.argmax(X, keepdims=True)
np.cumsum(X); np.cumsum(X, axis=1); np.cumsum(X, 1, "float32"); np.cumprod(Y); np.diff(Y); np.diff(X, 1, 0)
np.where(X > 0, X, 0.0); np.where(X > 0, 1, 0); np.clip(X, 0, 1); np.clip(X, a_min=0, a_max=None); np.clip(X, min=0)
np.round(X, 1); np.around(X); np.nan_to_num(X); np.nan_to_num(X, copy=False, nan=1.0); np.real(X); np.imag(X)
np.concatenate([X, A]); np.concatenate((X, A), axis=None); np.concatenate([X, A], axis=1, dtype="float32")
np.concat([X, A]); np.stack([Y, Y], axis=1); np.vstack([Y, B]); np.hstack([X, A]); np.column_stack([Y, B])
np.dstack([X, A]); np.split(X, 3, axis=1)[1]; np.split(Y, [1, 2])[2]; np.array_split(X, 2, axis=1)[0]
np.hsplit(X, [1])[1]; np.hsplit(Y, 3)[0]; np.vsplit(X, 2)[1]; np.tile(Y, 2); np.tile(Y, (2, 2)); np.repeat(Y, 2)
np.repeat(X, 2, axis=1); np.roll(X, 1, axis=0); np.flip(X, 0); np.flip(X); np.pad(Y, (1, 2), constant_values=4)
np.reshape(X, (3, 2)); np.reshape(X, -1); np.reshape(X, shape=(3, 2)); np.ravel(X); np.transpose(X)
np.ravel(X, "F"); np.ravel(X, order="F"); np.einsum("ij->ji", X, order="F")
np.reshape(X, (3, -1), order="F"); np.reshape(X, (3, 1, 2), "F")
np.transpose(X, (1, 0)); np.permute_dims(X, (1, 0)); np.swapaxes(X, 0, 1); np.moveaxis(X, 0, 1)
np.matrix_transpose(X); np.squeeze(X[:, None][:, 0], ()); np.expand_dims(Y, 0); np.broadcast_to(Y, (2, 3))
np.broadcast_arrays(X, Y)[1]; np.atleast_1d(I); np.atleast_2d(Y); np.take(Y, [0, 2]); np.take(X, [0, 1], axis=1)
np.diag(Y); np.diagonal(X); np.trace(X); np.tril(X); np.triu(X, 1); np.kron(Y, B); np.inner(Y, B); np.vdot(Y, B)
np.dot(A, Y); np.outer(B, Y); np.tensordot(X, Y, axes=1); np.tensordot(X, A, axes=([0, 1], [0, 1]))
np.einsum("ij,j->i", X, Y); np.einsum("ij,j", A, Y, optimize=True); np.linalg.norm(Y); np.linalg.norm(X)
np.linalg.norm(X, axis=1); np.linalg.norm(Y, 1); np.linalg.outer(Y, B); np.linalg.trace(X); np.linalg.diagonal(X)
np.linalg.matrix_transpose(X); np.zeros_like(X); np.ones_like(X, dtype="int32"); np.full_like(X, 7)
np.zeros_like(X, shape=(2, 2)); np.full_like(X, I, dtype="int64"); np.linspace(Y[0], 5.0, 4)
np.linspace(Y[0], 5.0, 4, retstep=True)[1]; np.meshgrid(Y, B)[0]; np.meshgrid(Y, B, indexing="ij")[1]
np.isclose(X, A); np.allclose(X, A); np.array_equal(X, A); np.array_equal(X, Y); np.array_equal(X, A, equal_nan=True)
np.shape(X)[1]; np.size(X); np.size(X, 1); np.copy(X)
"""


def evaluated(expression: str, **names: Any) -> Any:
    return eval(expression, {"np": np, "A": A, "B": B, **names})


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # of NumPy 2.5
def test_each_expression_gives_of_tensors_what_it_gives_of_values() -> None:
    expressions = [part.strip() for part in EXPRESSIONS.replace("\n", ";").split(";") if part.strip()]
    results = [evaluated(each, X=X, Y=Y, I=I) for each in expressions]
    assert all(isinstance(result, graphc.Node) for result in results)
    f = graphc.function([X, Y, I], results, mode="interpreted")
    with np.errstate(all="ignore"):
        wanted = [np.asarray(evaluated(each, X=A, Y=B, I=N)) for each in expressions]
    for expression, value, want in zip(expressions, f(A, B, 2), wanted, strict=True):
        assert (expression, value.dtype, value.shape) == (expression, want.dtype, want.shape)
        np.testing.assert_allclose(value, want, rtol=1e-6, err_msg=expression)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values", [np.zeros((0, 3)), np.array([[np.nan, -0.0, np.inf]]), np.array([[1, -2, 3]], "float32")]
)
def test_other_values_and_dtypes(values: Any) -> None:
    x = T.tensor(values.dtype, (None, None), "x")
    makers: list[Callable[[Any], Any]] = [
        np.sqrt, np.signbit, lambda v: np.sum(v, axis=0), lambda v: np.prod(v, where=v > 0), lambda v: np.cumsum(v, 1),
        np.add.reduce, lambda v: np.modf(v)[0], lambda v: np.modf(v)[1], lambda v: np.float64(2) * v,
        lambda v: np.mean(v, 1, where=v > 0), lambda v: np.ones((2, 3), "float32")[:1] - v,
    ]  # fmt: skip
    f = graphc.function([x], [make(x) for make in makers])
    with np.errstate(all="ignore"):
        for value, make in zip(f(values), makers, strict=True):
            want = make(values)
            assert value.dtype == want.dtype
            np.testing.assert_array_equal(value, want)
            np.testing.assert_array_equal(np.signbit(value), np.signbit(want))


def test_scipys_ufuncs_are_found_by_their_names() -> None:
    special = pytest.importorskip("scipy.special")
    f = graphc.function([Y], [special.expit(Y), special.gammaln(Y), special.erf(Y)], mode="interpreted")
    for value, want in zip(f(B), (special.expit(B), special.gammaln(B), special.erf(B)), strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-12)


def test_what_needs_no_value_is_told() -> None:
    assert np.ndim(X) == 2 and np.result_type(X, np.float32) == np.float64
    assert np.isrealobj(X) and not np.iscomplexobj(X) and np.can_cast(I, "int32") is False
    assert [int(size) for size in np.shape(T.dmatrix(shape=(2, 3)))] == [2, 3]


def test_an_array_and_a_tensor_are_told_apart_by_identity() -> None:
    assert X in [A, X] and I not in [X, Y] and (A == X).node() is T.equal(X, A)


REFUSED = {
    "np.add(A, X, out=A)": "np.add of X .*write a = a \\+ x",
    "operator.iadd(A, X)": "np.add of X .*a \\+= x.*write a = a \\+ x",
    "np.exp(X, where=A > 0)": "np.exp of X .*T.where",
    "np.add.at(A, [0], X)": "np.add.at of X .*T.inc_subtensor",
    "np.hypot.reduce(X)": "np.hypot.reduce of X .*known size",
    "np.sum(X, out=A)": "np.sum of X .*out=",
    "np.max(X, where=X > 0)": "max of X .*initial=",
    "np.fill_diagonal(X, 1)": "np.fill_diagonal of X .*changed copy",
    "np.copyto(A, X)": "np.copyto of X .*in place",
    "np.save('file', X)": "np.save of X .*no function save",
    "np.frompyfunc(abs, 1, 1)(X)": " of X .*graphc.op",
    "np.array(X)": "X .*no elements.*T.stack",
    "np.array([X, 1.0])": "X .*no elements",
    "A.dot(Y)": "Y .*np.dot\\(a, x\\)",
    "A[I]": "I .*T.constant\\(a\\)\\[x\\]",
    "[1, 2, 3][I]": "I .*no value.*index of a list",
    "range(I)": "I .*no value.*T.arange",
    "np.zeros((I, 2))": "I .*no value",
    "np.random.normal(Y)": "Y .*no elements",
    "float(X[0, 0])": "no value.*float",
    "int(I)": "I .*no value.*int",
    "complex(I)": "I .*no value",
    "math.exp(I)": "I .*T.exp",
    "f'{Y:.3f}'": "Y .*'.3f'.*Print",
    "len(X)": "X .*no length.*x.shape\\[0\\]",
    "list(X)": "X .*cannot be iterated.*size is not known.*scan",
    "iter(I)": "I .*cannot be iterated.*no axes",
    "1 if X > 0 else 2": "no truth value.*where",
    "1 < I < 3": "no truth value.*chained",
    "bool(T.isnan(X) & (X > 0))": "no truth value",
}
"""What cannot be symbolic, and what the one error says. Each names the tensor and this file."""


@pytest.mark.parametrize("expression", REFUSED)
def test_what_cannot_be_symbolic_is_one_error(expression: str) -> None:
    math = __import__("math")
    with pytest.raises(GraphTypeError, match=f"(?s){REFUSED[expression]}") as caught:
        evaluated(expression, X=X, Y=Y, I=I, T=T, math=math, operator=operator)
    assert isinstance(caught.value, TypeError)
    assert "test_dispatch.py:" in str(caught.value) or "<string>" in str(caught.value)


def test_known_sizes_and_constants_are_values() -> None:
    known = T.dmatrix("known", shape=(2, 3))
    first, second = known
    assert len(known) == 2 and first.ndim == second.ndim == 1
    assert list(range(known.shape[1])) == [0, 1, 2] and [7, 8, 9][T.constant(1)] == 8
    assert int(T.constant(3)) == 3 and float(T.constant(2.5)) == 2.5 and f"{X}"
    with pytest.raises(GraphTypeError):
        range(T.constant(1.5))


def test_only_computed_truth_values_have_no_truth() -> None:
    assert X and I and T.exp(X) and T.constant(0) and graphc.shared(False) and X != I


def test_a_list_of_symbols_is_an_index() -> None:
    x, i, j = T.dmatrix("x"), T.iscalar("i"), T.iscalar("j")
    data = np.arange(9.0).reshape(3, 3)
    rows, columns, none = graphc.function([x, i, j], [x[[i, j], :], x[:, [j, 0]], x[[]]], mode="interpreted")(
        data, 2, 0
    )
    np.testing.assert_array_equal(rows, data[[2, 0]])
    np.testing.assert_array_equal(columns, data[:, [0, 0]])
    assert none.shape == (0, 3)
