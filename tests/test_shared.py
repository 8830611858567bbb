"""Shared variables: their type, how they take and give values, and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES, as_array
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir.node import SHARED, SIZE, Node, describe_size, literal
from graphc.options import options
from graphc.shared import SharedVariable, shared


def assert_ready(variable: SharedVariable) -> None:
    """The cell holds what compiled code relies on."""
    assert len(variable.cell) == 1
    array = variable.cell[0]
    assert type(array) is np.ndarray
    assert (array.dtype, array.ndim) == (np.dtype(variable.dtype), variable.ndim)
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable and array.dtype.isnative


@pytest.mark.parametrize(
    ("value", "dtype", "rank"),
    [
        (-2.0, "float64", 0),
        (3, "int64", 0),
        (True, "bool", 0),
        ([5, -5], "int64", 1),
        ([[3, 2], [4, 3]], "int64", 2),
        ([1, 2.5], "float64", 1),
        ([], "float64", 1),
        (((1.0,),), "float64", 2),
        (np.float32(1), "float32", 0),
        (np.zeros((2, 0, 3), "uint8"), "uint8", 3),
        (np.arange(3.0, dtype=">f8"), "float64", 1),
    ],
)
def test_the_type_is_that_of_the_value(value: Any, dtype: str, rank: int) -> None:
    variable = shared(value)
    assert (variable.dtype, variable.ndim, variable.op) == (dtype, rank, SHARED)
    assert_ready(variable)
    np.testing.assert_array_equal(variable.get_value(), value)


def test_python_floats_follow_the_option_and_numpy_does_not() -> None:
    with options.change(floatX="float32"):
        assert [shared(value).dtype for value in (0.1, [0.1, 2], 3)] == ["float32", "float32", "int64"]
        assert [shared(value).dtype for value in (np.float64(0.1), np.zeros(2), [np.float64(0.1)])] == ["float64"] * 3


@pytest.mark.slow
@given(arrays.arrays(st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_any_array_in_any_layout_comes_back(value: Any) -> None:
    for layout in (value, value.T, value[..., ::-1] if value.ndim else value, value.astype(value.dtype.newbyteorder())):
        variable = shared(layout)
        assert_ready(variable)
        np.testing.assert_array_equal(variable.get_value(), layout)
        variable.set_value(layout.copy(), borrow=True)
        assert_ready(variable)


@pytest.mark.parametrize(
    "value",
    [None, "text", [1, "a"], [[1], [1, 2]], np.float16(1), object(), [10**30], {1: 2},
     np.array("2020", "M8[D]"), np.ma.masked_array([1, 2], mask=[False, True])],
)  # fmt: skip
def test_what_is_no_array_of_numbers_is_refused_by_name(value: Any) -> None:
    with pytest.raises((GraphTypeError, GraphValueError), match="shared variable W"):
        shared(value, "W")
    variable = shared(0.0, "W")
    with pytest.raises((GraphTypeError, GraphValueError), match="shared variable W"):
        variable.set_value(value)


def test_a_node_is_no_value() -> None:
    with pytest.raises(GraphTypeError, match="symbolic"):
        shared(literal(1.0))
    with pytest.raises(GraphTypeError, match="name"):
        shared(1.0, 2)  # type: ignore[arg-type]


def test_sizes_are_leaves_named_after_the_variable() -> None:
    variable = shared(np.zeros((2, 3)), "W")
    sizes = variable.type.shape
    assert all(isinstance(size, Node) and size.op is SIZE for size in sizes)
    assert list(map(describe_size, sizes)) == ["W.0", "W.1"]
    assert str(variable.type) == "float64[W.0, W.1]"
    assert "W" in repr(variable)


def test_variables_of_equal_value_are_different() -> None:
    first, second = shared(1.0, "a"), shared(1.0, "a")
    assert first is not second and first != second
    assert copy.copy(first) is first


def test_values_are_copied_in_and_out() -> None:
    value = np.zeros(3)
    variable = shared(value)
    value[0] = 1
    variable.get_value()[1] = 1
    np.testing.assert_array_equal(variable.get_value(), [0, 0, 0])
    variable.set_value(value)
    value[2] = 1
    np.testing.assert_array_equal(variable.get_value(), [1, 0, 0])


def test_borrowed_values_share_memory() -> None:
    value = np.zeros(3)
    variable = shared(value, borrow=True)
    assert variable.get_value(borrow=True) is variable.cell[0]
    variable.get_value(borrow=True, return_internal_type=True)[0] = 1
    assert value[0] == 1
    other = np.ones(3)
    variable.set_value(other, borrow=True)
    assert variable.cell[0] is other
    assert variable.container.storage is variable.cell


def test_a_buffer_is_copied() -> None:
    memory = bytearray(8)
    variable = shared(memoryview(memory))
    memory[0] = 1
    assert variable.dtype == "uint8" and not variable.get_value().any()


@pytest.mark.parametrize("make", [lambda a: a[::2], lambda a: a.astype("float32"), lambda a: a.astype(">f8")])
def test_what_cannot_be_borrowed_is_copied(make: Any) -> None:
    value = make(np.arange(6.0))
    variable = shared(np.zeros(1), borrow=True)
    variable.set_value(value, borrow=True)
    assert_ready(variable)
    assert not np.shares_memory(variable.cell[0], value)


def test_a_read_only_array_is_copied() -> None:
    value = np.zeros(3)
    value.flags.writeable = False
    assert_ready(shared(value, borrow=True))
    assert_ready(shared(np.broadcast_to(1.0, (2, 2)), borrow=True))


def test_subclasses_of_arrays_become_arrays() -> None:
    class Special(np.ndarray[Any, Any]):
        pass

    for borrow in (False, True):
        assert_ready(shared(np.zeros(3).view(Special), borrow=borrow))


def test_sizes_may_change_and_the_rank_may_not() -> None:
    variable = shared(np.zeros((2, 3)), "W")
    variable.set_value(np.ones((5, 0)))
    assert variable.get_value().shape == (5, 0)
    with pytest.raises(GraphTypeError, match="shared variable W .*: the value has 1 axes, the variable 2"):
        variable.set_value(np.ones(5))


@pytest.mark.parametrize("static", [{"shape": (None, 1)}, {"broadcastable": (False, True)}])
def test_static_sizes_stay(static: Any) -> None:
    variable = shared(np.zeros((2, 1)), "W", **static)
    assert variable.broadcastable == (False, True)
    variable.set_value(np.zeros((7, 1)))
    with pytest.raises(ShapeError, match="W .*: the value has size 2 along axis 1, where the variable has 1"):
        variable.set_value(np.zeros((7, 2)))
    with pytest.raises(ShapeError, match="axis 1"):
        shared(np.zeros((2, 3)), **static)
    with pytest.raises(GraphValueError, match="2 sizes are given for a value of 1 axes"):
        shared(np.zeros(2), **static)


def test_static_sizes_are_said_once() -> None:
    with pytest.raises(GraphValueError, match="one of them"):
        shared(np.zeros(1), shape=(1,), broadcastable=(True,))


KEPT = [
    (np.float32(0.5), "float64"), (np.arange(2, dtype="int32"), "float64"), (np.array([True]), "int8"), (3, "float32"),
    ([1, 2], "uint8"), (2.0, "int64"), (0.1, "float32"), ([0.1], "float32"), (1, "bool"), (float("nan"), "float32"),
]  # fmt: skip
LOST = [
    (np.float64(0.5), "float32"), (np.zeros(1), "float32"), (np.arange(2), "int32"), (np.ones(1), "bool"),
    (0.5, "int64"), (300, "uint8"), ([-1], "uint8"), (2, "bool"), (np.uint64(1), "int64"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype"), KEPT)
def test_conversions_that_keep_the_value(value: Any, dtype: str) -> None:
    variable = shared(np.zeros(np.shape(value), dtype))
    variable.set_value(value)
    assert_ready(variable)
    np.testing.assert_array_equal(variable.get_value(), np.asarray(value, dtype))


@pytest.mark.parametrize(("value", "dtype"), LOST)
def test_conversions_that_may_lose_it_need_leave(value: Any, dtype: str) -> None:
    variable = shared(np.zeros(np.shape(value), dtype), "W")
    with pytest.raises(GraphTypeError, match=f"shared variable W .* cannot become {dtype} without loss"):
        variable.set_value(value)
    assert not variable.get_value().any()
    lenient = shared(np.zeros(np.shape(value), dtype), allow_downcast=True)
    lenient.set_value(value)
    assert_ready(lenient)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**63, -1e300])
def test_what_is_no_integer_is_none_whatever_is_allowed(value: float) -> None:
    variable = shared(7, "W", allow_downcast=True)
    with pytest.raises(GraphValueError, match="shared variable W .* is no int64"):
        variable.set_value(value)
    assert variable.get_value() == 7
    variable.set_value(-(2.0**63))
    assert variable.get_value() == -(2**63)


def test_python_floats_are_not_rounded_where_that_is_forbidden() -> None:
    assert as_array(0.5, "float32", "x", allow_downcast=False) == 0.5
    with pytest.raises(GraphTypeError, match="without loss"):
        as_array(0.1, "float32", "x", allow_downcast=False)


def test_strict_variables_take_their_own_dtype_only() -> None:
    variable = shared(np.zeros(2, "float32"), "W", strict=True)
    variable.set_value(np.ones(2, "float32"))
    for value in ([1.0, 2.0], np.ones(2, "float16"), np.ones(2, "int8"), np.ones(2)):
        with pytest.raises(GraphTypeError, match="strictly an array of float32"):
            variable.set_value(value)


def test_a_variable_has_no_value_attribute() -> None:
    with pytest.raises(AttributeError):
        _ = shared(1.0).value  # type: ignore[attr-defined]


# Copies


def test_a_deep_copy_is_independent() -> None:
    w = graphc.shared(np.arange(3.0), "w", strict=True, shape=(3,))
    w.default_update = w + 1.0
    step = graphc.function([], w.sum())
    twin, again = copy.deepcopy([w, [w]])
    assert isinstance(twin, SharedVariable) and again == [twin] and twin is not w
    step()
    assert twin.get_value().tolist() == [0.0, 1.0, 2.0] and w.get_value().tolist() == [1.0, 2.0, 3.0]
    assert (twin.name, twin.strict, twin.type.shape) == ("w", True, (3,))
    graphc.function([], twin.sum())()
    assert twin.get_value().tolist() == [1.0, 2.0, 3.0] and w.get_value().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_what_is_copied_together_stays_together(mode: str) -> None:
    x = T.dvector("x")
    w, unused = graphc.shared(np.ones(3), "w"), graphc.shared(np.ones(2))
    cost = T.sqr(T.dot(w, x)).sum() / w.shape[0]
    step = graphc.function([x], {"cost": cost}, updates=[(w, w + x)], mode=mode, name="step")
    model: dict[str, Any] = copy.deepcopy({"w": w, "cost": cost, "step": step, "x": x, "none": unused})
    assert model["x"] is x
    assert model["step"](np.ones(3))["cost"] == 3.0
    assert model["w"].get_value().tolist() == [2.0] * 3 and w.get_value().tolist() == [1.0] * 3
    assert (model["step"].name, model["step"].mode) == ("step", mode)
    gradient = graphc.function([x], graphc.grad(model["cost"], model["w"]), mode=mode)
    np.testing.assert_allclose(gradient(np.ones(3)), [4.0] * 3)
    assert step(np.ones(3))["cost"] == 3.0


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_sizes_outlive_their_variable(mode: str) -> None:
    zeros = T.zeros_like(graphc.shared(np.ones((2, 3)), "w", shape=(2, None)))
    w = graphc.shared(np.ones((2, 3)))
    cell, rows, total = w.container, w.shape[0], w.shape.sum()
    w.set_value(np.ones((4, 1)))
    del w
    gc.collect()
    assert zeros.eval(mode=mode).shape == (2, 3)
    step = graphc.function([], [rows, total, pickle.loads(pickle.dumps(zeros))], mode=mode)
    assert [step()[0], step()[1], step()[2].shape] == [4, 5, (2, 3)]
    cell.storage[0] = np.ones((6, 1))
    assert [step()[0], step()[1]] == [6, 7]


def test_sizes_of_a_dropped_variable_do_not_keep_its_value_alive() -> None:
    value = np.ones((2, 3))
    alive = weakref.ref(value)
    zeros = T.zeros_like(graphc.shared(value, borrow=True))
    del value
    assert zeros.eval().shape == (2, 3) and alive() is not None
    del zeros
    gc.collect()
    assert alive() is None


# What NumPy hands out ------------------------------------------------------------------------------------------------


def strange_arrays() -> dict[str, np.ndarray[Any, Any]]:
    """Arrays whose dtype equals the one of their name, but is another object or has something attached."""
    plain = np.arange(48.0).reshape(8, 6)
    noted = plain.astype(np.dtype("float64", metadata={"unit": "m"}))
    fields = plain.astype("<f8").reshape(-1).view(np.dtype([("value", "<f8")], align=True))["value"].reshape(8, 6)
    frozen = pickle.loads(pickle.dumps(plain))
    frozen.flags.writeable = False
    return {
        "unpickled": pickle.loads(pickle.dumps(plain)),
        "with metadata": noted,
        "a field": fields,
        "read-only": frozen,
        "byte-swapped": plain.astype(">f8"),
        "unpickled and byte-swapped": pickle.loads(pickle.dumps(plain.astype(">f8"))),
        "unaligned": np.frombuffer(b"x" + plain.tobytes(), np.uint8)[1:].view("<f8").reshape(8, 6),
    }


@pytest.mark.parametrize("name", strange_arrays())
def test_any_dtype_object_in_any_layout(name: str) -> None:
    x, s = T.dmatrix("x"), T.dscalar("s")
    w = graphc.shared(np.zeros((1, 1)), "w")
    double, read, scale = graphc.function([x], x * 2), graphc.function([], w * 2), graphc.function([s], s * 2)
    into = graphc.function([graphc.In(x, mutable=True)], x * 2)
    array = strange_arrays()[name]
    for view in (array, array.T, array[::2], array[:, ::-1], array[:, :0], np.tile(array, (40, 40)).T):
        plain = np.array(view, "float64")
        np.testing.assert_array_equal(double(view), plain * 2)
        np.testing.assert_array_equal(into(view.copy(order="K")), plain * 2)
        for borrow in (False, True):
            w.set_value(view, borrow=borrow)
            np.testing.assert_array_equal(read(), plain * 2)
    assert scale(array[2, 3].reshape(())) == 30.0
    out = np.zeros((6, 8), array.dtype) if name != "byte-swapped" and "and" not in name else np.zeros((6, 8))
    np.testing.assert_array_equal(double(array.T, out=out), array.T * 2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_unpickled_arrays_of_every_dtype(dtype: str) -> None:
    x = T.matrix("x", dtype=dtype)
    array = pickle.loads(pickle.dumps(np.array([[0, 1], [1, 1], [0, 0]], dtype)))
    np.testing.assert_array_equal(graphc.function([x], x.T)(array.T), array)


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")  # NumPy 2.5 would rather have a view
def test_a_borrowed_array_of_which_the_dtype_was_set_is_read() -> None:
    array = np.zeros(4)
    w = graphc.shared(array, "w", borrow=True)
    read = graphc.function([], w + 1)
    w.get_value(borrow=True).dtype = np.dtype("float64", metadata={"unit": "m"})  # type: ignore[misc]
    np.testing.assert_array_equal(read(), np.ones(4))


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
V = T.dvector("v")


@pytest.mark.parametrize(
    "use",
    [
        lambda: graphc.shared(MASKED),
        lambda: graphc.shared(np.ones(2)).set_value(MASKED),
        lambda: graphc.function([V], V)(MASKED),
        lambda: graphc.function([V], V)([MASKED[0], MASKED[1]]),
        lambda: graphc.function([V], V, mode="interpreted")(MASKED),
        lambda: graphc.function([V], V * 2)(np.ones(2), out=MASKED),
        lambda: graphc.function([graphc.In(V, value=MASKED)], V * 2)().sum(),
        lambda: V + MASKED,
        lambda: T.dot(V, MASKED),
        lambda: T.stack([V, MASKED]),
        lambda: V[np.ma.masked_array([0, 1], mask=[False, True])],
        lambda: graphc.function([], V, givens={V: MASKED}),
        lambda: graphc.function([], updates=[(graphc.shared(np.ones(2)), MASKED)]),
        lambda: T.constant([[np.ma.masked, 1.0]]),
    ],
)
def test_masks_are_never_lost(use: Callable[[], object]) -> None:
    with pytest.raises(GraphTypeError, match="masked array has elements without a value"):
        use()
    with pytest.raises(GraphTypeError, match="v .*no elements"):
        _ = MASKED + V


def test_the_place_of_the_class() -> None:
    """As programs tell shared variables from others, after Theano's module."""
    module = import_module("graphc.tensor.sharedvar")
    assert T.sharedvar is module and module.TensorSharedVariable is module.ScalarSharedVariable  # type: ignore[attr-defined]
    made = module.tensor_constructor(np.zeros((1, 2)), "w", False, None, True, (True, False))
    assert made.name == "w" and made.broadcastable == (True, False)
    assert isinstance(graphc.shared(np.zeros(2)), module.SharedVariable)
    assert not isinstance(T.dvector("x"), module.TensorSharedVariable)


def test_zero_and_the_first_name_of_values() -> None:
    w = graphc.shared(np.ones((2, 3), np.float32), "w")
    w.zero()
    np.testing.assert_array_equal(w.get_value(), np.zeros((2, 3), np.float32))
    with pytest.raises(AttributeError, match=r"shared variable w .*set_value\(\.\.\.\) sets its value"):
        w.value = 3
    assert not hasattr(w, "value")
