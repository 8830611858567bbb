"""Sparse matrices against dense ones: values, gradients, what functions take and give, what they refuse."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import graphc
import graphc.tensor as T
from graphc import sparse
from graphc.errors import ArgumentError, GradientError, GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError

CASES = [
    tuple(part.strip() for part in line.split("|"))
    for line in """
    x + y                                   | x + y
    d + x                                   | d + x
    x - y                                   | x - y
    d - y                                   | d - y
    x * y                                   | x * y
    d * y                                   | d * y
    sparse.mul_s_v(x, v)                    | x * v
    2 * x / 3                               | 2 * x / 3
    -x                                      | -x
    sparse.dot(x, e)                        | x @ e
    y @ e                                   | y @ e
    x @ v                                   | x @ v
    y @ v                                   | y @ v
    u @ x                                   | u @ x
    T.dot(x, e)                             | x @ e
    T.dot(u, y)                             | u @ y
    sparse.cast(x, "float64")               | x
    u @ y                                   | u @ y
    sparse.dot(d.T, x)                      | d.T @ x
    sparse.dot(d.T, y)                      | d.T @ y
    sparse.dot(x, z)                        | x @ z
    sparse.structured_dot(x, z)             | x @ z
    sparse.true_dot(y, z)                   | y @ z
    sparse.true_dot(x, e)                   | x @ e
    sparse.usmm(2.0, x, e, d[:, :3])        | 2.0 * x @ e + d[:, :3]
    sparse.sampling_dot(d[:, :3], e, x)     | x * (d[:, :3] @ e.T)
    sparse.sp_sum(x)                        | x.sum()
    sparse.sp_sum(x, 1)                     | x.sum(1)
    x.sum(0)                                | x.sum(0)
    y.sum(0)                                | y.sum(0)
    y.toarray()                             | y
    sparse.csr_from_dense(d)                | d
    sparse.csc_from_dense(v)                | v[None]
    sparse.row_scale(y, u)                  | y * u[:, None]
    sparse.col_scale(x, v)                  | x * v
    sparse.diag(x)                          | np.diag(x)
    sparse.square_diagonal(v)               | np.diag(v)
    sparse.clean(x - x)                     | x - x
    x[1:4, ::2]                             | x[1:4, ::2]
    y[::-1]                                 | y[::-1]
    x[[2, 2, -1]]                           | x[[2, 2, -1]]
    y[[0, 1], [2, -1]]                      | y[[0, 1], [2, -1]]
    x[2, -2]                                | x[2, -2]
    sparse.hstack([x, y])                   | np.hstack([x, y])
    sparse.vstack([x, y], "csr")            | np.vstack([x, y])
    sparse.lt(x, y)                         | x < y
    x >= d                                  | x >= d
    sparse.transpose(x)                     | x.T
    x.tocsc()                               | x
    sparse.sp_ones_like(x)                  | x != 0
    y.zeros_like()                          | 0 * y
    sparse.sqrt(sparse.sqr(x))              | abs(x)
    sparse.structured_pow(x, 2)             | x**2
    sparse.structured_add_s_v(x, v)         | np.where(x != 0, x + v, 0)
    sparse.construct_sparse_from_list(d, e.T, [4, 0, 2]).tocsr()[[0, 2, 4]] | e.T[[1, 2, 0]]
    """.strip().splitlines()
]
COMPILED = ("x + y", "sparse.dot(x, e)", "y @ e", "u @ y", "x.sum(0)")


def matrices(filled: float, dtype: str = "float64") -> dict[str, Any]:
    rng = np.random.default_rng(3)
    found: dict[str, Any] = {}
    for name, shape, format in (("x", (7, 5), "csr"), ("y", (7, 5), "csc"), ("z", (5, 6), "csr")):
        matrix = scipy.sparse.random(*shape, filled, format, rng=rng).astype(dtype)
        matrix.data -= np.asarray(0.3, dtype)
        found[name] = matrix
    shapes = {"d": (7, 5), "v": (5,), "u": (7,), "e": (5, 3)}
    return found | {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def variables(dtype: str = "float64") -> dict[str, Any]:
    formats = {"x": "csr", "y": "csc", "z": "csr"}
    dense = {"d": T.matrix, "v": T.vector, "u": T.vector, "e": T.matrix}
    known = {name: sparse.SparseType(format, dtype)(name) for name, format in formats.items()}
    return known | {name: kind(name, dtype) for name, kind in dense.items()}


def as_dense(value: Any) -> Any:
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def compare(expressions: list[tuple[str, ...]], filled: float, dtype: str, mode: str | None) -> None:
    symbols, values = variables(dtype), matrices(filled, dtype)
    outputs = [eval(text, {"sparse": sparse, "T": T, **symbols}) for text, _ in expressions]
    results = graphc.function(list(symbols.values()), outputs, mode=mode, on_unused_input="ignore")(*values.values())
    dense = {name: as_dense(value) for name, value in values.items()}
    for (text, wanted), output, result in zip(expressions, outputs, results, strict=True):
        assert scipy.sparse.issparse(result) == isinstance(output, sparse.SparseVariable), text
        expected = np.asarray(eval(wanted, {"np": np, **dense}))
        assert as_dense(result).shape == expected.shape, text
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(as_dense(result), expected, tolerance, tolerance, err_msg=text)
        if scipy.sparse.issparse(result):
            result.check_format()
            assert result.format == output.format


@pytest.mark.slow
@pytest.mark.parametrize(("filled", "dtype"), [(0.4, "float64"), (0.4, "float32"), (0.0, "float64"), (1.0, "float64")])
def test_they_are_what_dense_ones_are(filled: float, dtype: str) -> None:
    compare(CASES, filled, dtype, "interpreted")


@pytest.mark.slow
def test_compiled_they_are_the_same() -> None:
    compare([case for case in CASES if case[0] in COMPILED], 0.4, "float64", None)


@pytest.mark.slow
def test_gradients_are_those_of_dense_ones_at_the_entries() -> None:
    symbols, values = variables(), matrices(0.4)
    x, y, v, e = (symbols[name] for name in "xyve")
    cost = (sparse.dot(sparse.structured_exp(x), e) ** 2).sum() + (sparse.sp_sum(x * y, 1) ** 3).sum()
    cost = cost + T.sin(y @ v).sum()
    dense = {name: T.dmatrix(name) for name in "xy"}
    entries = values["x"].toarray() != 0
    there = T.constant(entries * 1.0)
    plain = (T.dot(T.exp(dense["x"]) * there, e) ** 2).sum() + ((dense["x"] * dense["y"]).sum(1) ** 3).sum()
    plain = plain + T.sin(T.dot(dense["y"], v)).sum()
    wrt = [x, e, y, v]
    gradients = graphc.grad(cost, wrt)
    assert isinstance(gradients[0], sparse.SparseVariable) and gradients[0].format == "csr"
    given = [symbols[name] for name in "xyve"]
    results = graphc.function(given, gradients)(*(values[name] for name in "xyve"))
    wanted = graphc.function(
        [dense["x"], dense["y"], v, e], graphc.grad(plain, [dense["x"], e, dense["y"], v]), mode="interpreted"
    )(values["x"].toarray(), values["y"].toarray(), values["v"], values["e"])
    for place, mask in ((0, entries), (1, 1), (2, values["y"].toarray() != 0), (3, 1)):
        np.testing.assert_allclose(as_dense(results[place]), wanted[place] * mask, 1e-10, 1e-12)
    assert results[0].nnz == values["x"].nnz


@pytest.mark.slow
def test_a_shared_one_is_updated() -> None:
    value, vector = matrices(0.4)["x"], np.arange(5.0)
    w: Any = graphc.shared(value, "w")
    v = T.dvector("v")
    cost = ((w @ v - 1.0) ** 2).sum()
    slope = graphc.grad(cost, w)
    step = graphc.function([v], cost, updates=[(w, w.with_data(w.data - 0.01 * slope.data))])
    costs = [float(step(vector)) for _ in range(3)]
    assert costs[0] > costs[1] > costs[2] and w.get_value().nnz == value.nnz
    assert isinstance(w.get_value(), scipy.sparse.csr_matrix)
    w.set_value(value[:3])
    assert step(vector) == pytest.approx(((value[:3] @ vector - 1) ** 2).sum())
    doubled = graphc.function([], [], updates={w: w + w}, mode="interpreted")
    before = w.get_value().toarray()
    doubled()
    np.testing.assert_allclose(w.get_value().toarray(), 2 * before)


def test_what_functions_take() -> None:
    x = sparse.csr_matrix("x", "float32")
    y = sparse.csc_matrix(dtype="float64")
    f = graphc.function([x, y], {"sum": x + y, "rows": x.shape[0]}, mode="interpreted")
    a, b = matrices(0.5, "float32")["x"], matrices(0.5)["y"]
    results = f(a, b)
    assert results["sum"].format == "csr" and results["sum"].dtype == "float64" and results["rows"] == 7
    np.testing.assert_allclose(f(a.tocoo(), b.toarray())["sum"].toarray(), a.toarray() + b.toarray(), 1e-6)
    with pytest.raises(GraphTypeError, match="a matrix of float64 is given for a sparse variable of float32"):
        f(b, b)
    with pytest.raises(ShapeError, match="have different sizes"):
        f(a, b[:3])
    named = graphc.function([x], x.sum(), mode="interpreted")
    assert named(x=a) == pytest.approx(a.sum(), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_numbers_have_the_dtype_of_the_matrix_beside_them(dtype: str) -> None:
    x = sparse.csr_matrix("x", dtype)
    value = matrices(0.5)["x"].astype(dtype)
    given = {"times": x * 2, "by": 2.5 * x, "less": 1 - x, "more": x + 0.5, "same": x * True}
    found = graphc.function([x], given, mode="interpreted")(value)
    dense = value.toarray()
    wanted = {"times": dense * 2, "by": 2.5 * dense, "less": 1 - dense, "more": dense + 0.5, "same": dense * True}
    for name, want in wanted.items():
        got = found[name].toarray() if scipy.sparse.issparse(found[name]) else found[name]
        assert got.dtype == want.dtype, name
        np.testing.assert_array_equal(got, want)


def test_records_of_inputs_and_outputs() -> None:
    x, m = sparse.csr_matrix("x"), sparse.csr_matrix("m")
    eye = scipy.sparse.eye(3, format="csr")
    inputs = [graphc.In(x, "given", eye), graphc.In(m, value=eye, update=m * 2.0)]
    f = graphc.function(inputs, {"both": graphc.Out(x + m), "sum": m.sum()}, mode="interpreted")
    for wanted in (1, 2):
        results = f(given=2 * eye)
        assert results["both"].format == "csr" and results["sum"] == 3 * wanted
        np.testing.assert_array_equal(results["both"].toarray(), (2 + wanted) * np.eye(3))
    assert f()["both"].toarray()[0, 0] == 5
    assert f(eye, 7 * eye)["sum"] == 21 and f()["sum"] == 42


def test_gradients_by_chosen_rows() -> None:
    table, rows = graphc.shared(np.arange(6.0).reshape(3, 2)), T.lvector("rows")
    chosen = graphc.sparse_grad(table[rows])
    step = graphc.function([rows], [], updates=[(table, table - graphc.grad(chosen.sum(), table))], mode="interpreted")
    step([2, 0, 2])
    assert table.get_value().tolist() == [[-1, 0], [2, 3], [2, 3]]
    with pytest.raises(TypeError, match="is not a tensor indexed by a vector"):
        graphc.sparse_grad(table[0])


def test_duplicates_add_up_and_order_does_not_matter() -> None:
    loose = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    x = sparse.csr_dmatrix("x")
    one = sparse.constant(scipy.sparse.csr_matrix(np.ones((2, 3))))
    outputs = [x.toarray(), one * x, x + x, x[0, 2], sparse.ensure_sorted_indices(x), sparse.summed(x)]
    results = graphc.function([x], outputs, mode="interpreted")(loose)
    whole = loose.toarray()
    for result, wanted in zip(results, (whole, whole, 2 * whole, 5.0, whole, whole), strict=True):
        np.testing.assert_array_equal(as_dense(result), wanted)
    assert results[4].indices.tolist() == [0, 2, 2] and results[5].indices.tolist() == [0, 2]


@pytest.mark.slow
def test_of_parts() -> None:
    data, indices, indptr, shape = T.dvector("data"), T.ivector("indices"), T.ivector("indptr"), T.ivector("shape")
    made = sparse.CSR(data, indices, indptr, shape)
    f = graphc.function([data, indices, indptr, shape], [made, *sparse.csm_properties(made), made @ np.ones(3)])
    result, *parts, sums = f([1.0, 2.0], [2, 0], [0, 1, 2], [2, 3])
    assert result.toarray().tolist() == [[0, 0, 1], [2, 0, 0]] and [each.tolist() for each in parts] == [
        [1.0, 2.0], [2, 0], [0, 1, 2], [2, 3],
    ]  # fmt: skip
    assert sums.tolist() == [1.0, 2.0] and {each.dtype.name for each in parts[1:]} == {"int32"}
    for given, error, message in (
        (([1.0, 2.0], [2, 3], [0, 1, 2], [2, 3]), IndexOutOfBounds, "index 3 of .* is out of bounds"),
        (([1.0, 2.0], [2, -1], [0, 1, 2], [2, 3]), IndexOutOfBounds, "is out of bounds"),
        (([1.0, 2.0], [2, 0], [0, 2, 1], [2, 3]), IndexOutOfBounds, "do not ascend from 0"),
        (([1.0, 2.0], [2, 0], [0, 1, 3], [2, 3]), IndexOutOfBounds, "do not ascend from 0"),
        (([1.0, 2.0], [2, 0], [0, 1, 2], [4, 3]), ShapeError, "not one element more"),
        (([1.0, 2.0], [2], [0, 1, 2], [2, 3]), ShapeError, "differ in length"),
    ):
        with pytest.raises(error, match=message):
            f(*given)


def test_theanos_names() -> None:
    assert sparse.enable_sparse and sparse.CSM("csc") is inspect.unwrap(sparse.CSC) and sparse.basic.add is sparse.add
    assert sparse.all_dtypes == {*sparse.float_dtypes, *sparse.int_dtypes, *sparse.uint_dtypes}
    with pytest.raises(ValueError, match="csr and csc"):
        sparse.CSM("bsr")


def test_what_they_refuse() -> None:
    x, d = sparse.csr_dmatrix("x"), T.dmatrix("d")
    assert repr(x) == "<sparse variable x: csr, float64>" and str(x.type) == "Sparse[float64, csr]"
    for build in (
        lambda: sparse.dot(d, d),
        lambda: sparse.as_sparse_variable(d),
        lambda: sparse.constant(np.ones((2, 2))),
        lambda: sparse.csr_from_dense(T.dtensor3()),
        lambda: sparse.CSC(d, d, d, d),
        lambda: x.asformat("lil"),
        lambda: T.exp(x),
    ):
        with pytest.raises((GraphTypeError, GraphValueError)):
            build()
    for format, dtype in (("bsr", "float64"), ("csr", "complex64")):
        with pytest.raises(NotImplementedError):
            sparse.SparseType(format, dtype)
    with pytest.raises(NotImplementedError, match="no sparse vectors"):
        _ = x[1:2, 3]
    with pytest.raises(AttributeError, match="no attribute 'todia'"):
        _ = x.todia


@pytest.mark.slow
def test_rows_of_every_length() -> None:
    """Long rows are added up by partial sums, short ones in order, some have no entries."""
    counts = [0, 1, 31, 32, 33, 0, 100, 2]
    rng, indptr = np.random.default_rng(2), np.cumsum([0, *counts])
    parts = rng.integers(-9, 9, indptr[-1]).astype(float), rng.integers(0, 50, indptr[-1]), indptr
    matrix, vector = scipy.sparse.csr_matrix(parts, shape=(len(counts), 50)), rng.integers(-9, 9, 50).astype(float)
    x, v = sparse.csr_dmatrix("x"), T.dvector("v")
    results = graphc.function([x, v], [x @ v, sparse.sp_sum(x, 1), graphc.grad((x @ v).sum(), v)])(matrix, vector)
    wanted = matrix @ vector, matrix.sum(1).A1, matrix.sum(0).A1
    for result, each in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, each)


def test_rows_are_shared_by_threads() -> None:
    x, v = sparse.csr_dmatrix("x"), T.dvector("v")
    f = graphc.function([x, v], x @ v)
    assert "threads may share nest_segment_sum" in f.explain() and "nest 0: check" in f.explain()
    big = scipy.sparse.random(20000, 300, 0.02, "csr", rng=np.random.default_rng(0))
    vector = np.random.default_rng(1).normal(size=300)
    np.testing.assert_allclose(f(big, vector), big @ vector, 1e-10)
    assert (graphc.function([x, v], x @ v, threads=2)(big, vector) == f(big, vector)).all()


def test_classes_of_ops() -> None:
    """Theano's classes, with their parameters, do what the functions do."""
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]])
    x, v = sparse.csr_dmatrix("x"), T.dmatrix("v")
    results = [
        sparse.DenseFromSparse(structured=False)(sparse.HStack("csr")(x, x)),
        sparse.DenseFromSparse()(sparse.VStack(format="csc", dtype="float32")(x, x)),
        sparse.basic.StructuredDot()(x, v),
        sparse.SpSum(axis=0, sparse_grad=False)(x),
        sparse.SparseFromDense("csc")(v).toarray(),
        sparse.greater_than_s_d(x, 1.0 + v.T * 0),
        sparse.Cast("float32")(x).toarray(),
        sparse.GetItemList()(x, index=[1]).toarray(),
    ]
    f = graphc.function([x, v], results, mode="interpreted")
    found = f(scipy.sparse.csr_matrix(dense), dense.T)
    wanted = [
        np.hstack([dense, dense]), np.vstack([dense, dense]), dense @ dense.T, dense.sum(0), dense.T,
        (dense > 1).astype("uint8"), dense.astype("float32"), dense[[1]],
    ]  # fmt: skip
    for result, each in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(result, each)
    assert sparse.HStack("csr") == sparse.HStack("csr") != sparse.HStack("csc") and repr(sparse.Cast("int8"))
    with pytest.raises(ArgumentError):
        sparse.SparseFromDense()


def test_sizes_of_results_use_what_they_are_of() -> None:
    """An input of which only the sizes of a result are asked is used, as that of a dense graph is."""
    a, b, d, v = sparse.csr_matrix("a"), sparse.csc_matrix("b"), T.dmatrix("d"), T.dvector("v")
    eye = scipy.sparse.csr_matrix(np.eye(3))
    values: dict[Any, Any] = {a: eye, b: eye.tocsc(), d: np.ones((3, 3)), v: np.ones(3)}
    for result, inputs in (
        (sparse.mul(a, d), [a, d]), (sparse.mul(a, b), [a, b]), (a - b, [a, b]), (sparse.row_scale(a, v), [a, v]),
        (sparse.sampling_dot(d, d, a), [d, a]), (sparse.true_dot(a, b), [a, b]), (a.T, [a]),
    ):  # fmt: skip
        for asked, wanted in ((result.shape, [3, 3]), (result.size, 3), (result.shape[0], 3)):
            f = graphc.function(inputs, asked, mode="interpreted")
            assert f(*(values[each] for each in inputs)).tolist() == wanted


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_gradients_at_all_places(mode: str) -> None:
    """Of a matrix that was made of a dense one, and is dense again or summed: also where that is 0."""
    x, c = T.dmatrix("x"), T.dmatrix("c")
    made = [
        T.sin(sparse.dense_from_sparse(matrix, structured=structured))
        for matrix in (sparse.csr_from_dense(x), sparse.csc_from_dense(x))
        for structured in (True, False)
    ]
    turned = sparse.dense_from_sparse(sparse.csr_from_dense(x).T, structured=False)
    costs = [*((each * c).sum() for each in made), (T.sin(turned) * c.T).sum()]
    values, weights = np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]]), np.arange(1.0, 7.0).reshape(2, 3)
    at_entries = np.where(values != 0, np.cos(values), 0) * weights
    wanted = [at_entries, np.cos(values) * weights] * 2 + [np.cos(values) * weights]
    for axis in (None, 1):
        for sparse_grad in (False, True):
            sums = sparse.sp_sum(sparse.csr_from_dense(x), axis, sparse_grad)
            costs.append((sums**2).sum())
            slopes = np.broadcast_to(2 * values.sum(axis, keepdims=True), values.shape)
            wanted.append(np.where(values != 0, slopes, 0) if sparse_grad else slopes)
    found = graphc.function([x, c], [turned, *(graphc.grad(cost, x) for cost in costs)], mode=mode)(values, weights)
    np.testing.assert_array_equal(found[0], values.T)
    for number, (got, want) in enumerate(zip(found[1:], wanted, strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=str(number))


def test_a_gradient_where_there_is_no_entry_is_refused() -> None:
    x, y = sparse.csr_matrix("x"), T.dmatrix("y")
    classes: Any = sparse
    for matrix, by in ((x, x), (sparse.sqr(sparse.csr_from_dense(y)), y)):
        dense = classes.DenseFromSparse(structured=False)(matrix)
        assert graphc.grad(sparse.dense_from_sparse(matrix).sum(), by) is not None
        with pytest.raises(GradientError, match="at all places of .*structured=True takes it at the entries"):
            graphc.grad(dense.sum(), by)


def test_parts_of_a_dense_matrix_have_derivatives_where_it_is_zero() -> None:
    x = T.dmatrix("x")
    value = np.array([[0.0, 1.0], [2.0, 0.0]])
    for matrix in (sparse.csr_from_dense(x), sparse.csc_from_dense(x), sparse.csr_from_dense(x.T).T):
        parts = [sparse.diag(matrix).sum(), matrix[0, -2], matrix[[1, 0], [1, 1]].sum()]
        found = graphc.function([x], [graphc.grad(part, x) for part in parts], mode="interpreted")(value)
        assert [each.tolist() for each in found] == [[[1, 0], [0, 1]], [[1, 0], [0, 0]], [[0, 1], [0, 1]]]
        values = graphc.function([x], parts, mode="interpreted")(value)
        assert [each.item() for each in values] == [0.0, 0.0, 1.0]
