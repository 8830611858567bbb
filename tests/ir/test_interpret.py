"""The interpreter: values, what it refuses and how it says so, and who owns its results."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, MissingInputError, ShapeError
from graphc.ir import sizes
from graphc.ir.interpret import check_guards, evaluate_sizes, interpret, plan_steps, run_steps
from graphc.ir.node import SHARED, Node, Op, Type, leaf_type, literal, make, variable
from graphc.ir.walk import Graph
from graphc.ops.custom import custom_op
from graphc.ops.index import gather, subtensor
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_max, reduce_sum
from graphc.ops.scalar import cast, elementwise, stop_gradient
from graphc.ops.shape import dimshuffle, iota, reshape, transpose

x: Any = variable("float64", (None, None), "x")
v: Any = variable("float64", (None,), "v")
k: Any = variable("int64", (), "k")
X = np.arange(6.0).reshape(2, 3)


def run(*outputs: Node, **values: Any) -> list[np.ndarray[Any, Any]]:
    leaves = {"x": x, "v": v, "k": k}
    given = {leaves[name]: np.asarray(value, leaves[name].dtype) for name, value in values.items()}
    return interpret(Graph(tuple(given), outputs), given)


def test_values_dtypes_and_ranks() -> None:
    total, wide, where, size = run(reduce_sum(x, (0, 1)), cast(x, "float32"), x > 2, x.type.shape[1], x=X)
    assert total.shape == () and total == 15 and isinstance(total, np.ndarray)
    assert wide.dtype == np.float32 and where.dtype == bool
    assert size.dtype == np.int64 and size == 3


def test_results_are_contiguous_and_owned() -> None:
    y = elementwise("exp", x)
    outputs = (
        x,
        stop_gradient(x),
        transpose(x),
        y,
        y,
        stop_gradient(y),
        transpose(y),
        reshape(y, (6,)),
        literal([1.0, 2.0]),
    )
    given = X.copy()
    results = run(*outputs, x=given)
    for number, result in enumerate(results):
        assert result.flags.c_contiguous and result.flags.writeable
        assert not np.may_share_memory(result, given)
        for other in results[:number]:
            assert not np.may_share_memory(result, other)
    results[0][:] = -1
    results[-1][:] = -1
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(run(outputs[-1])[0], [1.0, 2.0])


def test_strided_arguments() -> None:
    np.testing.assert_array_equal(run(x + 1, x=X.T)[0], X.T + 1)
    np.testing.assert_array_equal(run(x + 1, x=X[:, ::-2])[0], X[:, ::-2] + 1)


def test_shared_variables_are_leaves() -> None:
    w = Node(SHARED, (), {"type": leaf_type("float64", (None,), "w")}, leaf_type("float64", (None,), "w"), "w")
    (result,) = interpret(Graph((), (w + 1,)), {w: np.ones(2)})
    np.testing.assert_array_equal(result, [2, 2])


def test_what_is_given_must_fit() -> None:
    with pytest.raises(MissingInputError, match=r"x \(test_interpret.py:\d+\)"):
        run(x + 1)
    with pytest.raises(
        GraphTypeError, match=r"x \(test_interpret.py:\d+\) must be float64\[x.0, x.1\], got float32\[2, 3\]"
    ):
        interpret(Graph((x,), (x,)), {x: X.astype("float32")})
    with pytest.raises(GraphTypeError, match=r"got float64\[3\]"):
        run(x, x=np.ones(3))
    row = variable("float64", (1, None), "row")
    with pytest.raises(ShapeError, match=r"row .*size 2 along axis 0 must be 1"):
        interpret(Graph((row,), (row,)), {row: X})
    square = variable("float64", (v.type.shape[0], v.type.shape[0]), "square")
    with pytest.raises(ShapeError, match=r"square .*size 3 along axis 1 must be 2"):
        interpret(Graph((v, square), (square,)), {v: np.ones(2), square: X})
    double = variable("float64", (sizes.multiply(v.type.shape[0], 2),), "double")
    interpret(Graph((v, double), (double,)), {v: np.ones(2), double: np.ones(4)})
    with pytest.raises(ShapeError, match=r"double .*size 5 along axis 0 must be 4"):
        interpret(Graph((v, double), (double,)), {v: np.ones(2), double: np.ones(5)})


def test_what_is_not_needed_need_not_be_given() -> None:
    np.testing.assert_array_equal(interpret(Graph((x, v), (v * 2,)), {v: np.ones(1)})[0], [2.0])
    with pytest.raises(MissingInputError, match="the size of x along axis 1"):
        interpret(Graph((x,), (x.type.shape[1],)), {})


def test_guards_name_variables_and_lines() -> None:
    with pytest.raises(ShapeError, match=r"^matmul .* of x \(test_interpret.py:\d+\) and v .*sizes 3 and 2"):
        run(matmul(x, v), x=X, v=[1.0, 2.0])
    with pytest.raises(ShapeError, match=r"reshape .* of x .*6 elements cannot become 8"):
        run(reshape(x, (2, 4)), x=X)
    with pytest.raises(ShapeError, match="zero-size reduction"):
        run(reduce_max(v, (0,)), v=[])
    with pytest.raises(ShapeError, match="negative"):
        run(iota(k), k=-1)


def test_guards_come_before_any_work() -> None:
    calls = []

    def note(a: Any) -> Any:
        calls.append(a)
        return a

    noted = custom_op("noted", note)
    with pytest.raises(ShapeError):
        run(noted(x), matmul(x, v), x=X, v=[1.0, 2.0])
    assert not calls


def test_guards_on_computed_sizes() -> None:
    """A size that depends on data is checked as soon as it is known, before the node it guards."""
    count = cast(reduce_sum(v, (0,)), "int64")
    np.testing.assert_array_equal(run(iota(count), v=[1.0, 2.0])[0], [0, 1, 2])
    with pytest.raises(ShapeError, match="^range .*size of axis 0, .* is -3, which is negative"):
        run(iota(count), v=[-1.0, -2.0])
    with pytest.raises(ShapeError, match="sizes 4 and 2"):
        run(cast(iota(count), "float64") + v, v=[1.0, 3.0])


def test_index_out_of_bounds() -> None:
    index = variable("int64", (None,), "index")
    with pytest.raises(
        IndexOutOfBounds, match=r"index -4 of index \(test_interpret.py:\d+\) .*axis 1 of x .*size is 3"
    ):
        interpret(Graph((x, index), (gather(x, (index,), 1),)), {x: X, index: np.asarray([0, -3, -4, 9])})
    with pytest.raises(IndexError, match="subtensor .* of x .*: index 2, k .* is out of bounds for axis 0.* is 2"):
        run(subtensor(x, (k, 0), (1, 3), (1, 1)), x=X, k=2)


def test_check_guards_alone() -> None:
    graph = Graph((x, v), (matmul(x, v),))
    check_guards(graph, {x: X, v: np.ones(3)})
    with pytest.raises(ShapeError, match="sizes 3 and 2"):
        check_guards(graph, {x: X, v: np.ones(2)})


def test_evaluate_sizes() -> None:
    rows, columns = x.type.shape
    assert evaluate_sizes([rows, sizes.multiply(rows, columns), 7, sizes.add(columns, 1)], {x: X}) == [2, 6, 7, 4]
    assert evaluate_sizes([], {}) == []


def test_errors_of_user_functions_say_where() -> None:
    def fail(a: Any) -> Any:
        raise RuntimeError("no")

    failing = custom_op("failing", fail)
    with pytest.raises(RuntimeError) as caught:
        run(failing(x), x=X)
    assert any("failing" in note and "test_interpret.py" in note for note in caught.value.__notes__)


def test_user_ops() -> None:
    def spoil(a: Any) -> Any:
        a[...] = 0
        return a

    spoiling = custom_op("spoiling", spoil)
    with pytest.raises(ValueError, match="read-only"):
        run(spoiling(x), x=X)
    flat = custom_op("flat", lambda a: a.sum(axis=0), infer=lambda kind: Type(kind.dtype, kind.shape[1:]))
    np.testing.assert_array_equal(run(flat(x), x=X)[0], X.sum(axis=0))
    wrong = custom_op("wrong", lambda a: a.sum())
    with pytest.raises(GraphTypeError, match=r"op wrong computed float64\[\]"):
        run(wrong(x), x=X)
    together = custom_op("together", lambda a, b: a * b)
    np.testing.assert_array_equal(run(together(dimshuffle(v, ("x", 0)), 2), v=[1.0, 2.0])[0], [[2, 4]])
    with pytest.raises(GraphValueError, match="already"):
        custom_op("exp", np.exp)


def test_the_key_of_a_user_op_follows_its_code() -> None:
    def version(factor: float, code: str = "a * factor") -> str:
        compute = eval(f"lambda a: {code}", {"factor": factor})
        op: Op = custom_op("scaled", compute)(x).op
        return op.version

    assert version(2.0) == version(2.0)
    assert len({version(2.0), version(3.0), version(2.0, "a + factor"), version(2.0, "a * 1.5")}) == 4


@pytest.mark.slow
def test_intermediates_are_dropped() -> None:
    """After its last use an array is gone: of a chain, two are alive at a time."""
    alive: list[weakref.ref[Any]] = []
    most = 0

    def watch(a: Any) -> Any:
        nonlocal most
        result = np.array(a)
        gc.collect()
        most = max(most, sum(ref() is not None for ref in alive))
        return result

    watched = custom_op("watched", watch)
    node: Any = x
    for _ in range(8):
        node = watched(node) + 1
    evaluate = node.args[0].op.eval

    def tracked(n: Node, *args: Any) -> Any:
        result = evaluate(n, *args)
        alive.append(weakref.ref(result))
        return result

    object.__setattr__(node.args[0].op, "eval", tracked)
    run(node, x=X)
    assert len(alive) == 8
    assert most <= 1


def test_steps_serve_many_runs() -> None:
    steps = plan_steps(Graph((x,), (x + x.type.shape[0],)))
    for rows in (0, 1, 4):
        (result,) = run_steps(steps, {x: np.zeros((rows, 2))})
        np.testing.assert_array_equal(result, np.full((rows, 2), float(rows)))


def test_no_warnings_and_ieee_values() -> None:
    results = run(v / 0, elementwise("log", v), elementwise("exp", v * 1e5), v=[1.0, 0.0, -1.0])
    np.testing.assert_array_equal(results[0], [np.inf, np.nan, -np.inf])
    np.testing.assert_array_equal(results[1], [0.0, -np.inf, np.nan])
    np.testing.assert_array_equal(results[2], [np.inf, 1.0, 0.0])


@pytest.mark.slow
def test_long_chain() -> None:
    node: Any = x
    for _ in range(20_000):
        node = node + 1
    np.testing.assert_array_equal(run(node, x=X)[0], X + 20_000)


def test_a_false_declaration_is_found() -> None:
    liar = Op(
        "liar",
        infer=lambda args, attrs: Type("float32", args[0].type.shape),
        eval=lambda node, value: value,
        lower=lambda node: pytest.fail("never lowered"),
    )
    with pytest.raises(GraphTypeError, match=r"op liar made float64\[2, 3\]"):
        run(make(liar, (x,)), x=X)
