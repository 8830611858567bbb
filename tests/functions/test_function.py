"""`function`: every argument it takes, every form of inputs, outputs, updates and givens, in all modes.

Values are compared with what NumPy computes from the same numbers.
"""

from __future__ import annotations

import gc
import keyword
import os
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES
from graphc.errors import ArgumentError, GraphTypeError, MissingInputError, UnusedInputError
from graphc.functions.callables import MODES, Function
from graphc.functions.native import Lowered
from graphc.options import options
from graphc.startup.process import PROCESS

Array = NDArray[Any]
ALL_MODES = sorted(set(MODES.values()))
A = np.arange(6.0).reshape(2, 3)


@pytest.fixture(params=ALL_MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=ALL_MODES)
def function(request: pytest.FixtureRequest) -> Callable[..., Function]:
    """`graphc.function` in one of the modes."""

    return partial(graphc.function, mode=request.param)


Make = Callable[..., Function]


def same(got: Any, want: Any, dtype: str = "float64") -> None:
    assert isinstance(got, np.ndarray) and got.dtype == dtype
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-13)


# Inputs -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_forms_of_inputs(function: Make) -> None:
    x, y = T.dmatrix("x"), T.dscalar("y")
    for inputs, args in [
        ([x, y], (A, 2)), ((x, y), (A, 2.0)), (iter([x, y]), (A, np.float64(2))), ([y, x], (2, A)),
        ([graphc.In(x), graphc.In(y)], (A, np.array(2.0))),
    ]:  # fmt: skip
        same(function(inputs, x * y)(*args), A * 2)
    same(function(x, x.sum())(A), 15.0)
    same(function(graphc.In(x), x.sum())(A), 15.0)
    same(function([], T.constant(3.0) * 2)(), 6.0)
    same(function((), T.ones((2, 2)))(), np.ones((2, 2)))


def test_inputs_that_are_tuples() -> None:
    function = partial(graphc.function, mode="interpreted")
    x, y, z = T.dscalar("x"), T.dscalar(), T.dscalar("z")
    assert function([x, (y, 3.0)], x * y)(2.0) == 6 and function([x, ("y", y)], x * y)(2.0, y=5.0) == 10
    assert function([x, ("y", y, 3.0)], x * y)(2.0, y=5.0) == 10 and function([(x, y)], x * y)((2.0, 5.0)) == 10
    f = function([x, (z, 0.0), ((y, y + x), 0.0)], x + y + z)
    assert (f(1.0), f[y], f(1.0), f[y]) == (1, 1, 2, 2)


def test_keyword_names(function: Make) -> None:
    x, y, z = T.dscalars("x", "y", "z")
    call = function([x, y, graphc.In(z, name="last")], x - y * z)
    same(call(7, 2, 3), 1.0)
    same(call(7, 2, last=3), 1.0)
    same(call(7, last=3, y=2), 1.0)
    same(call(last=3, y=2, x=7), 1.0)


def test_names_that_python_gives_to_arguments(function: Make) -> None:
    names = ["self", "args", "kwargs", "code", "lambda"]
    xs = [T.dscalar(name) for name in names]
    for outputs in (sum(xs), {"sum": sum(xs)}):
        found = function(xs, outputs)(**{name: float(2**k) for k, name in enumerate(names)})
        same(found["sum"] if isinstance(found, dict) else found, 31.0)


def test_default_values(function: Make) -> None:
    x, rate = T.dvector("x"), T.dscalar("rate")
    call = function([x, graphc.In(rate, value=0.5)], x * rate)
    same(call([2.0, 4.0]), [1.0, 2.0])
    same(call([2.0, 4.0], 2), [4.0, 8.0])
    same(call([2.0, 4.0], rate=3), [6.0, 12.0])
    same(call([2.0, 4.0]), [1.0, 2.0])
    call = function([graphc.In(x, value=[1, 2]), graphc.In(rate, value=3, name="by")], x * rate)
    same(call(), [3.0, 6.0])
    same(call(by=1), [1.0, 2.0])
    with pytest.raises(ArgumentError):
        call(rate=1)


def test_a_default_is_converted_like_an_argument(function: Make) -> None:
    x = T.dvector("x")
    call = function([graphc.In(x, value="text")], x + 1)
    same(call([1.0]), [2.0])
    with pytest.raises(GraphTypeError, match="x"):
        call()


STRANGE = [
    *"ijklSRr", "i2", "r0", "out", "out2", "t0", "x_0", "x0", "row", "kernel", "sizes", "exp", "select", "accumulate",
    "int64", "float64", "range", "inf", "nan", "self", "args", "cast", "matmul", "print", "lambda", "None", "__name__",
    "a b", "W*x+b", "1st", "", " ", "'", '"', "\n", "#", "{}", "%s", "%0", "\\", "é", "\u210c", "日本語",
    "²", "x.0", "a: float64[2], b", "x" * 300, *keyword.softkwlist,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE, ids=ascii)
def test_any_name_will_do(name: str, function: Make) -> None:
    """Names of variables meet those of the generated code, and are no identifiers: it makes no difference."""
    x, y = T.dmatrix(name), T.lscalar(name)
    w = graphc.shared(np.arange(3.0), name)
    total = T.exp(x - w).sum(axis=1)
    total.name = name
    call = function([x, y], [total[y], T.dot(x, w), (total * y).sum()], updates=[(w, w + x[y])])
    sums = np.exp(A - np.arange(3)).sum(1)
    first, product, last = call(A, 1)
    same(first, sums[1])
    same(product, A @ np.arange(3))
    same(last, sums.sum())
    same(w.get_value(), np.arange(3) + A[1])


@pytest.mark.slow
def test_every_name_at_once(function: Make) -> None:
    """Variables may all have names that are taken, or one name."""
    for names in (STRANGE, ["x"] * 20, [None] * 20):
        xs = [T.dvector(name) for name in names]
        total = T.stack([x * n for n, x in enumerate(xs)]).sum(axis=0)
        values = [np.full(2, float(n)) for n in range(len(xs))]
        same(function(xs, total)(*values), np.full(2, sum(n * n for n in range(len(xs)))))


def test_inputs_without_names(function: Make) -> None:
    x, y = T.dvector(), T.dscalar()
    call = function([x, y], x * y)
    same(call([1.0, 2.0], 3), [3.0, 6.0])
    with pytest.raises(GraphTypeError, match=r"^argument without a name \(test_function.py:\d+\) must have 1 dim"):
        call(1.0, 3)
    with pytest.raises(ArgumentError, match=r"argument without a name \(test_function.py:\d+\) is missing"):
        call([1.0])


def test_an_intermediate_value_as_input(function: Make) -> None:
    x = T.dvector("x")
    squares = T.sqr(x)
    same(function([squares], squares.sum() + 1)([1.0, 2.0]), 4.0)
    same(function([x, squares], (squares * x).sum())([1.0, 2.0], [10.0, 20.0]), 50.0)
    squares.name = "squares"
    same(function([squares], squares * 2)(squares=[1.0]), [2.0])


def test_sizes_alone_are_a_use(function: Make) -> None:
    x = T.dmatrix("x")
    w = graphc.shared(np.ones((4, 2)), "w")
    for output, want in [(x.shape[0] * 2, 4), (x.size, 6), (w.shape[1] + x.shape[1], 5), (T.zeros_like(x).sum(), 0)]:
        assert function([x], output)(A) == want
    same(function([], T.zeros_like(w))(), np.zeros((4, 2)))
    w.set_value(np.ones((1, 5)))
    same(function([], T.ones_like(w).sum())(), 5.0)


def test_unused_inputs(function: Make) -> None:
    x, y = T.dvectors("x", "y")
    with pytest.raises(UnusedInputError):
        function([x, y], x)
    for allowed in ("ignore", "warn"):
        with options.change(on_unused_input=allowed):
            if allowed == "ignore":
                call = function([x, y], x * 2)
            else:
                with pytest.warns(UserWarning, match="y"):
                    call = function([x, y], x * 2)
        same(call([1.0], [2.0, 3.0]), [2.0])


# What arguments become ----------------------------------------------------------------------------------------------


def frozen(a: Array) -> Array:
    copied = a.copy()
    copied.flags.writeable = False
    return copied


def unaligned(a: Array) -> Array:
    memory = np.zeros(a.nbytes + 1, "uint8")[1:]
    result = memory.view(a.dtype).reshape(a.shape)
    result[...] = a
    assert not result.flags.aligned
    return result


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a)),
    "integers": lambda a: a.astype("int64"),
    "bytes": lambda a: a.astype("uint8"),
    "bools": lambda a: a > 2,
    "float32": lambda a: a.astype("float32"),
    "big-endian": lambda a: a.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "read-only": frozen,
    "a matrix": np.asmatrix,
    "a subclass": lambda a: a.view(type("Special", (np.ndarray,), {})),
    "unaligned": unaligned,
    "a memory view": lambda a: memoryview(bytearray(a.tobytes())).cast("d", a.shape),
    "an array-like": lambda a: type("Like", (), {"__array__": lambda self, dtype=None, copy=None: a})(),
    "empty": lambda a: a[:0],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout(layout: str, function: Make) -> None:
    x = T.dmatrix("x")
    w = graphc.shared(np.zeros(3), "w")
    call = function([x], [x * 2, T.dot(x, w + 1)], updates=[(w, w + x.sum(axis=0))])
    value = LAYOUTS[layout](A)
    before = np.array(value, copy=True) if isinstance(value, np.ndarray) else None
    number = np.asarray(value, "float64")
    total = np.zeros(3)
    for _ in range(2):
        doubled, product = call(value)
        same(doubled, number * 2)
        same(product, number @ (total + 1))
        total += number.sum(0)
        same(w.get_value(), total)
    if before is not None:
        np.testing.assert_array_equal(value, before)


def test_input_downcast(mode: str) -> None:
    x, n = T.fvector("x"), T.ivector("n")
    wide, text = np.array([0.1, 3.0]), "without loss"

    def make(allow: bool | None) -> Function:
        return graphc.function([x, n], x * n, mode=mode, allow_input_downcast=allow)

    same(make(True)(wide, [1.9, 2.0]), [np.float32(0.1) * 1.0, 6.0])
    for allow in (None, False):
        with pytest.raises(GraphTypeError, match=f"x .*{text}"):
            make(allow)(wide, [1, 1])
        with pytest.raises(GraphTypeError, match=f"n .*{text}"):
            make(allow)(wide.astype("float32"), [1.5, 1])
    assert make(None)([0.1], [2])[0] == np.float32(0.1) * np.float64(2)
    with pytest.raises(GraphTypeError, match=f"x .*{text}"):
        make(False)([0.1], [2])
    assert make(False)([0.5], [2])[0] == 1.0  # no loss


def test_downcast_of_one_input_goes_before_that_of_all(function: Make) -> None:
    x, y = T.fvectors("x", "y")
    call = function([graphc.In(x, allow_downcast=True), y], x + y)
    same(call(np.ones(2), [1.0, 2.0]), [2.0, 3.0], "float32")
    with pytest.raises(GraphTypeError, match="argument y"):
        call(np.ones(2), np.ones(2))
    call = function([graphc.In(x, allow_downcast=False), y], x + y, allow_input_downcast=True)
    same(call([1.0, 2.0], np.ones(2)), [2.0, 3.0], "float32")
    with pytest.raises(GraphTypeError, match="argument x"):
        call(np.ones(2), np.ones(2))


def test_strict_inputs(function: Make) -> None:
    x = T.dvector("x")
    call = function([graphc.In(x, strict=True)], x + 1)
    same(call(np.ones(2)), [2.0, 2.0])
    same(call(np.ones(4)[::2]), [2.0, 2.0])
    for value in ([1.0, 2.0], np.ones(2, "float32"), np.ones(2, "int64")):
        with pytest.raises(GraphTypeError, match="strictly"):
            call(value)


def test_arguments_for_theano_alone(function: Make) -> None:
    x = T.dvector("x")
    call = function(
        [graphc.In(x, borrow=True)], graphc.Out(x * 2, borrow=True), accept_inplace=True,
        rebuild_strict=False, trust_input=True,
    )  # fmt: skip
    value = np.ones(2)
    same(call(value), [2.0, 2.0])
    same(call([1.0]), [2.0])
    same(value, [1.0, 1.0])


# Outputs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_forms_of_outputs(function: Make) -> None:
    x = T.dvector("x")
    total = x.sum()
    same(function([x], total)([1.0, 2.0]), 3.0)
    for outputs in ([total], (total,)):
        found = function([x], outputs)([1.0, 2.0])
        assert type(found) is list and len(found) == 1
        same(found[0], 3.0)
    found = function([x], [total, x * 2])([1.0, 2.0])
    assert type(found) is list
    same(found[0], 3.0)
    same(found[1], [2.0, 4.0])
    found = function([x], {"total": total, "double": x * 2})([1.0, 2.0])
    assert type(found) is dict and list(found) == ["total", "double"]
    same(found["double"], [2.0, 4.0])
    assert function([x], [], on_unused_input="ignore")([1.0]) == []
    assert function([x], (), on_unused_input="ignore")([1.0]) == []
    assert function([x], {}, on_unused_input="ignore")([1.0]) == {}
    for call in (function([x], None, on_unused_input="ignore"), function([x], on_unused_input="ignore")):
        assert call([1.0]) == []


def test_outputs_that_are_no_graph(function: Make) -> None:
    found = function([], [1, 2.5, True, [1, 2], np.ones(2, "float32"), [[1.5]]])()
    wants = [np.asarray(want) for want in (1, 2.5, True, [1, 2], np.ones(2, "float32"), [[1.5]])]
    assert [array.ndim for array in found] == [want.ndim for want in wants]
    for got, want in zip(found, wants, strict=True):
        np.testing.assert_array_equal(got, want)
        got[...] = 0  # an array of its own
    again = function([], [1, 2.5, True, [1, 2], np.ones(2, "float32"), [[1.5]]])()
    for got, want in zip(again, wants, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.slow
def test_outputs_are_arrays_of_their_own(function: Make) -> None:
    """Whatever the outputs are, they share memory with nothing, and writing to them changes nothing."""
    x = T.dmatrix("x")
    w = graphc.shared(np.arange(6.0).reshape(2, 3), "w")
    one = T.constant(np.ones((2, 3)))
    product = x * 3
    outputs = [x, x, w, w, product, product, x.T, x[0], x.reshape((6,)), one, one, w[::-1], x[:, ::-1], x * 1, w + 0]
    call = function([x], outputs)
    value = A.copy()
    for _ in range(2):
        found = call(value)
        wants = [A, A, A, A, 3 * A, 3 * A, A.T, A[0], A.ravel(), A * 0 + 1, A * 0 + 1, A[::-1], A[:, ::-1], A, A]
        everything = [*found, value, w.get_value(borrow=True)]
        for position, (got, want) in enumerate(zip(found, wants, strict=True)):
            same(got, want)
            assert got.flags.c_contiguous and got.flags.writeable and type(got) is np.ndarray
            others = everything[:position] + everything[position + 1 :]
            assert not any(np.shares_memory(got, other) for other in others)
        for got in found:
            got[...] = -1
    same(value, A)
    same(w.get_value(), A)


def test_outputs_of_earlier_calls_stay(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.zeros(2), "w")
    call = function([x], [x + w, w, w.sum()], updates=[(w, w + x)])
    kept = [call([1.0, 2.0]) for _ in range(3)]
    for number, (total, before, sum_) in enumerate(kept):
        same(before, [1.0 * number, 2.0 * number])
        same(total, [1.0 * number + 1, 2.0 * number + 2])
        same(sum_, 3.0 * number)


# Updates ------------------------------------------------------------------------------------------------------------


def test_forms_of_updates(function: Make) -> None:
    for form in (dict, OrderedDict, list, tuple, lambda pairs: [list(pair) for pair in pairs], iter):
        a, b = graphc.shared(1.0, "a"), graphc.shared(2.0, "b")
        call = function([], a + b, updates=form([(a, a + b), (b, a * 10)]))
        for want in [(3, 3, 10), (13, 13, 30), (43, 43, 130)]:
            same(call(), want[0])
            same(a.get_value(), want[1])
            same(b.get_value(), want[2])


def test_updates_without_outputs(function: Make) -> None:
    x, w = T.dvector("x"), graphc.shared(np.zeros(2), "w")
    assert function([x], updates=[(w, w + x)])([1.0, 2.0]) == []
    assert function([x], [], updates={w: w + x})([1.0, 2.0]) == []
    same(w.get_value(), [2.0, 4.0])


N = 5


def simultaneous() -> dict[str, tuple[int, Callable[..., list[Any]]]]:
    """How many vectors, and their new values from the old; the same function serves nodes and arrays."""
    return {
        "swap": (2, lambda a, b: [b, a]),
        "rotate": (3, lambda a, b, c: [b, c, a]),
        "rotate the other way": (3, lambda a, b, c: [c, a, b]),
        "one takes the other's old value": (2, lambda a, b: [b, b + a]),
        "both sums": (2, lambda a, b: [a + b, a - b]),
        "reverse": (1, lambda a: [a[::-1]]),
        "reverse and swap": (2, lambda a, b: [b[::-1], a[::-1]]),
        "shift": (1, lambda a: [a[[N - 1, *range(N - 1)]]]),
        "add own reverse": (1, lambda a: [a + a[::-1]]),
        "by its sum": (1, lambda a: [a / (1 + a.sum())]),
        "by the other's sum": (2, lambda a, b: [a + b.sum(), b - a.sum()]),
        "by its first": (1, lambda a: [a - a[0]]),
        "by its last": (2, lambda a, b: [a - a[-1], b * a[1]]),
        "the same value for two": (2, lambda a, b: [a + b, a + b]),
        "a constant": (2, lambda a, b: [a * 0 + 7, a]),
        "itself": (2, lambda a, b: [a, b + a]),
        "halves exchanged": (1, lambda a: [a[[3, 4, 2, 0, 1]]]),
        "outer product's sum": (2, lambda a, b: [(a[:, None] * b).sum(1), (a[:, None] * b[None, :]).sum(0)]),
        "a chain of five": (5, lambda a, b, c, d, e: [b + 1, c * 2, d - a, e + b, a * c]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", simultaneous())
def test_updates_are_simultaneous(name: str, function: Make) -> None:
    """New values and outputs are computed from the old values alone."""
    count, new = simultaneous()[name]
    values = [np.linspace(k + 1, 2 * k + 3, N) for k in range(count)]
    variables = [graphc.shared(value, "abcde"[k]) for k, value in enumerate(values)]
    call = function([], [*variables, sum(variables)], updates=list(zip(variables, new(*variables), strict=True)))
    for _ in range(3):
        *found, total = call()
        for got, value in zip(found, values, strict=True):
            same(got, value)
        same(total, sum(values))
        values = [np.array(value) for value in new(*values)]
        for variable, value in zip(variables, values, strict=True):
            same(variable.get_value(), value)


@pytest.mark.slow
@pytest.mark.parametrize("name", simultaneous())
def test_updates_of_matrices_are_simultaneous(name: str, function: Make) -> None:
    """As above, the vectors being diagonals of matrices that are multiplied: products read what updates write."""
    count, new = simultaneous()[name]
    values = [np.linspace(k + 1, 2 * k + 3, N) for k in range(count)]
    matrices = [np.diag(value) + k for k, value in enumerate(values)]
    variables = [graphc.shared(matrix, "abcde"[k]) for k, matrix in enumerate(matrices)]

    def updated(these: Any, dot: Any) -> list[Any]:
        vectors = new(*(one.sum(axis=1) for one in these))
        products = [dot(one, other) / 50 for one, other in zip(these, these[::-1], strict=True)]
        return [product + vector for product, vector in zip(products, vectors, strict=True)]

    call = function([], variables, updates=list(zip(variables, updated(variables, T.dot), strict=True)))
    for _ in range(2):
        for got, matrix in zip(call(), matrices, strict=True):
            same(got, matrix)
        matrices = updated(matrices, np.dot)
        for variable, matrix in zip(variables, matrices, strict=True):
            same(variable.get_value(), matrix)


def test_updates_change_sizes(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.zeros(1), "w")
    m = graphc.shared(np.ones((1, 1)), "m")
    grow = function([x], w.shape[0], updates=[(w, T.concatenate([w, x])), (m, T.zeros((2, 2)) + m.sum())])
    want = np.zeros(1)
    compiled = PROCESS.compilations
    for number in range(4):
        assert grow(np.full(number, 1.0)) == want.size
        want = np.concatenate([want, np.full(number, 1.0)])
        same(w.get_value(), want)
        assert m.get_value().shape == (2, 2)
    shrink = function([], [], updates=[(w, w[1:])])
    for number in range(want.size):
        shrink()
        same(w.get_value(), want[number + 1 :])
    shrink()
    same(w.get_value(), [])
    assert PROCESS.compilations <= compiled + 1


def test_updates_are_cast_where_nothing_is_lost(function: Make) -> None:
    counts = graphc.shared(np.zeros(2), "counts")
    small = graphc.shared(np.int8(1), "small")
    flag = graphc.shared(False, "flag")
    n = T.ivector("n")
    call = function([n], [], updates=[(counts, counts.shape[0] * n), (small, 3), (flag, True)])
    call([1, 2])
    same(counts.get_value(), [2.0, 4.0])
    same(small.get_value(), 3, "int8")
    same(flag.get_value(), True, "bool")


@pytest.mark.slow
def test_the_dtypes_of_shared_variables(function: Make) -> None:
    for dtype in DTYPES:
        w = graphc.shared(np.ones(3, dtype), "w")
        new = ~w if dtype == "bool" else w + w
        call = function([], w, updates=[(w, new)])
        same(call(), np.ones(3), dtype)
        same(w.get_value(), np.full(3, 0 if dtype == "bool" else 2), dtype)


def test_an_update_of_what_is_not_read(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.zeros(7), "w")
    call = function([x], x.sum(), updates=[(w, x * 2)])
    same(call([1.0, 2.0]), 3.0)
    same(w.get_value(), [2.0, 4.0])
    v = graphc.shared(np.ones(3), "v")
    copy = function([], v, updates=[(w, v)])
    copy()
    v.get_value(borrow=True)[0] = 5
    same(w.get_value(), [1.0, 1.0, 1.0])
    assert not np.shares_memory(w.get_value(borrow=True), v.get_value(borrow=True))


@pytest.mark.slow
def test_an_input_that_simplifies_away_was_used(function: Make) -> None:
    """Where the program asked for something of it that has an answer without it, as Theano's graphs keep it."""
    x, y, s = T.dscalar("x"), T.dvector("y"), T.tensor("float64", (3,), "s")
    gone: list[tuple[list[Any], Any, Any]] = [
        ([x], graphc.grad(3 * x, x), 3.0),
        ([x], T.zeros_like(x), 0.0),
        ([x], T.fill(x, 2.0), 2.0),
        ([s], T.ones_like(s * 2), np.ones(3)),
        ([s], s.shape, [3]),
        ([s], s.shape[0] + s.size, 6),
        ([s], graphc.hessian((s * 2).sum(), s), np.zeros((3, 3))),
        ([y, x], graphc.grad((3 * y).sum() + x, y), [3.0, 3.0]),
    ]
    values = {x: 2.0, y: [1.0, 2.0], s: [1.0, 2.0, 3.0]}
    for inputs, output, expected in gone:
        np.testing.assert_array_equal(function(inputs, output)(*(values[node] for node in inputs)), expected)
    with pytest.raises(UnusedInputError, match="do not use z"):
        function([x, T.dscalar("z")], x)
    whole = y * 2
    np.testing.assert_array_equal(function([whole], graphc.grad((3 * whole).sum(), whole))([1.0, 2.0]), [3.0, 3.0])


def test_comparisons_by_their_operators(function: Make) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    values = np.array([0.0, 1.0, np.nan, -0.0]), np.array([0.0, 2.0, np.nan, 0.0])
    outputs = [T.where(x == 0, 5.0, x), (x != y).sum(), x == y, (x == 0) & (y == 2), x == y[::-1], values[1] != y]
    expected = [
        *([5.0, 1.0, np.nan, 5.0], 2, [True, False, False, True]),
        *([False] * 4, [True, False, False, True], [False, False, True, False]),
    ]
    for found, wanted in zip(function([x, y], outputs)(*values), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_givens_reach_default_updates(function: Make) -> None:
    count, step, more = graphc.shared(1.0, "count"), graphc.shared(10.0, "step"), graphc.shared(3.0, "more")
    count.default_update = count + step
    call = function([], count * 2, givens={step: T.constant(20.0) + more})
    assert [(float(call()), float(count.get_value())) for _ in range(2)] == [(2.0, 24.0), (48.0, 47.0)]


def test_default_updates(function: Make) -> None:
    def fresh() -> tuple[Any, Any, Any]:
        a, b, c = (graphc.shared(1.0, name) for name in "abc")
        a.default_update = a + b
        b.default_update = b * 2
        return a, b, c

    def values(*variables: Any) -> list[float]:
        return [float(variable.get_value()) for variable in variables]

    a, b, c = fresh()
    call = function([], a, updates=[(c, c + 10)])
    same(call(), 1.0)
    assert values(a, b, c) == [2.0, 2.0, 11.0]
    same(call(), 2.0)
    assert values(a, b, c) == [4.0, 4.0, 21.0]
    a, b, c = fresh()
    function([], a, no_default_updates=True)()
    assert values(a, b) == [1.0, 1.0]
    function([], a + b, no_default_updates=[a])()
    assert values(a, b) == [1.0, 2.0]
    function([], a, updates=[(a, a * 100)])()
    assert values(a, b) == [100.0, 2.0]
    function([], c)()
    assert values(a, b, c) == [100.0, 2.0, 1.0]
    function([], [], updates=[(c, a)])()
    assert values(a, b, c) == [102.0, 4.0, 100.0]


def test_functions_share_their_variables(function: Make, mode: str) -> None:
    x = T.dscalar("x")
    w = graphc.shared(0.0, "w")
    add, read = function([x], w, updates=[(w, w + x)]), graphc.function([], w * 10, mode=mode)
    for number in range(4):
        same(add(1), number)
        same(read(), 10.0 * (number + 1))
    w.set_value(-1.0)
    same(read(), -10.0)
    same(add(3), -1.0)
    same(w.get_value(), 2.0)


# Aliases ------------------------------------------------------------------------------------------------------------


def test_an_argument_that_is_the_value_of_an_updated_variable(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.arange(4.0), "w")
    call = function([x], [x, w], updates=[(w, w[::-1] * 2 + x)])
    for _ in range(3):
        before = w.get_value()
        got, old = call(w.get_value(borrow=True))
        same(got, before)
        same(old, before)
        same(w.get_value(), before[::-1] * 2 + before)


def test_an_argument_that_overlaps_an_updated_variable(function: Make) -> None:
    x = T.dvector("x")
    memory = np.arange(6.0)
    for part in (slice(0, 4), slice(2, 6), slice(5, 1, -1), slice(1, 5)):
        memory[:] = np.arange(6.0)
        w = graphc.shared(memory[1:5], "w", borrow=True)
        call = function([x], x.sum(), updates=[(w, w + x[::-1] + w[0])])
        value, before = memory[part].copy(), w.get_value()
        same(call(memory[part]), value.sum())
        same(w.get_value(), before + value[::-1] + before[0])


def test_two_variables_on_one_array(function: Make) -> None:
    memory = np.arange(4.0)
    a, b = (graphc.shared(memory, name, borrow=True) for name in "ab")
    call = function([], [a + b], updates=[(a, a + 1), (b, b[::-1] * 2)])
    (total,) = call()
    same(total, 2 * np.arange(4.0))
    same(a.get_value(), np.arange(4.0) + 1)
    same(b.get_value(), np.arange(4.0)[::-1] * 2)
    (total,) = call()
    same(total, np.arange(4.0) + 1 + np.arange(4.0)[::-1] * 2)


def test_a_borrowed_value_may_be_updated_in_place_or_left(function: Make) -> None:
    memory = np.arange(4.0)
    w = graphc.shared(memory, "w", borrow=True)
    function([], [], updates=[(w, w + 1)])()
    same(w.get_value(), np.arange(4.0) + 1)
    w.get_value(borrow=True)[0] = 100
    same(function([], w * 1)()[:1], [100.0])


def swap_value(w: Any, value: Any) -> None:
    w.cell[0] = value


SPOILT: dict[str, tuple[Callable[[Any], Any], Array | None]] = {
    "read-only": (lambda w: w.get_value(borrow=True).setflags(write=False), np.ones((2, 3))),
    "resized": (lambda w: w.get_value(borrow=True).resize((1, 2), refcheck=False), np.ones((1, 2))),
    "a transpose": (lambda w: swap_value(w, A.T), A.T),
    "a list": (lambda w: swap_value(w, [[1, 2.5]]), np.array([[1, 2.5]])),
    "float32": (lambda w: swap_value(w, np.ones((2, 2), "float32")), np.ones((2, 2))),
    "of another rank": (lambda w: swap_value(w, np.ones(3)), None),
    "of complex numbers": (lambda w: swap_value(w, np.ones((2, 2), complex)), None),
    "None": (lambda w: swap_value(w, None), None),
    "gone": (lambda w: w.cell.clear(), None),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_value_that_was_changed_from_outside(name: str, function: Make) -> None:
    """Borrowed arrays and the cell itself are in the user's hands: what is found there is used, or refused by name."""
    x, w = T.dscalar("x"), graphc.shared(np.ones((2, 3)), "w")
    call = function([x], w.sum() * x, updates=[(w, w + 1)])
    spoil, want = SPOILT[name]
    spoil(w)
    if want is None:
        with pytest.raises(GraphTypeError, match=r"shared variable w \(test_function.py:\d+\)"):
            call(2.0)
        return
    same(call(2.0), want.sum() * 2)
    same(w.get_value(), want + 1)


def test_one_array_for_two_inputs(function: Make) -> None:
    x, y = T.dmatrices("x", "y")
    call = function([x, y], [x * 2 + y, T.dot(x, y.T)])
    value = A.copy()
    for first, second in [(value, value), (value, value[::-1]), (value[:, ::-1], value)]:
        total, product = call(first, second)
        same(total, first * 2 + second)
        same(product, first @ second.T)
    same(value, A)


def test_an_output_given_back_as_an_argument(function: Make) -> None:
    x = T.dvector("x")
    call = function([x], x[::-1] + x)
    got = want = np.arange(3.0)
    for _ in range(4):
        got, want = call(got), want[::-1] + want
    same(got, want)


# Givens -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_givens(function: Make) -> None:
    x, y = T.dmatrices("x", "y")
    data = graphc.shared(A, "data")
    i = T.lscalar("i")
    total = (x * 2).sum() + x[0, 0]
    want = A.sum() * 2 + A[0, 0]
    for form in (dict, list, tuple):
        same(function([], total, givens=form([(x, T.constant(A))]))(), want)
    same(function([], total, givens={x: A})(), want)
    same(function([], total, givens={x: data})(), want)
    same(function([y], total, givens={x: y})(A), want)
    same(function([i], total, givens={x: data[i : i + 1]})(1), A[1:].sum() * 2 + A[1, 0])
    same(function([x], total, givens={x: x + 1})(A), (A + 1).sum() * 2 + 1)
    same(function([y], [total, y.sum()], givens={x: y.T})(A)[0], want)
    data.set_value(A + 1)
    same(function([], total, givens={x: data}, updates=[(data, data - x)])(), (A + 1).sum() * 2 + 1)
    same(data.get_value(), A * 0)


def test_givens_of_givens(function: Make) -> None:
    x, y, z = T.dscalars("x", "y", "z")
    for pairs in ([(x, y * 2), (y, z + 1)], [(y, z + 1), (x, y * 2)]):
        same(function([z], x + y, givens=pairs)(4), 15.0)
    same(function([], x + y, givens={x: y * 2, y: 3})(), 9.0)


@pytest.mark.slow
def test_givens_of_intermediate_values_and_of_shared_variables(function: Make) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    w = graphc.shared(np.ones(2), "w")
    hidden = T.tanh(x * w)
    output = hidden.sum() + w.sum()
    same(function([y], output, givens={hidden: y})([1.0, 2.0]), 5.0)
    same(function([x, y], output, givens={w: y})([0.0, 0.0], [1.0, 2.0]), 3.0)
    function([x, y], [], givens={x: y}, on_unused_input="ignore", updates=[(w, w + x)])([9.0], [1.0, 2.0])
    same(w.get_value(), [2.0, 3.0])
    same(function([y], hidden * 2, givens={hidden: y})([1.0, 2.0]), [2.0, 4.0])
    train = T.bscalar("train")
    both = T.where(T.eq(train, 1), x * 0.5, x)
    same(function([x], both, givens={train: np.int8(1)})([2.0]), [1.0])
    same(function([x], both, givens={train: np.int8(0)})([2.0]), [2.0])


@pytest.mark.slow
def test_givens_change_sizes_and_types_where_nothing_is_lost(function: Make) -> None:
    x = T.dmatrix("x")
    n = T.imatrix("n")
    same(function([n], x.mean(), givens={x: n})([[1, 2]]), 1.5)
    same(function([], x.shape, givens={x: np.ones((2, 5))})(), [2, 5], "int64")
    same(function([], T.zeros_like(x), givens={x: np.ones((1, 3))})(), np.zeros((1, 3)))
    held = T.matrix("held", shape=(2, None), dtype="float64")
    same(function([x], held * 2, givens={held: x})(A), A * 2)
    with pytest.raises(graphc.GraphcError, match="given value of held"):
        function([x], held * 2, givens={held: x})(A.T)


def test_givens_do_not_change_the_graph(function: Make) -> None:
    x = T.dscalar("x")
    output = x * 2
    same(function([], output, givens={x: 5.0})(), 10.0)
    same(function([x], output)(1), 2.0)


# The rest -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_and_texts(function: Make, mode: str) -> None:
    x = T.dvector("x")
    call = function([x], x * 2, name="twice")
    assert call.name == "twice" and "twice" in repr(call) and "x: float64[x.0]" in repr(call)
    assert "def kernel" in call.source and "twice" in call.source
    assert "mul" in call.text and graphc.print_graph(call.graph) == call.text
    assert "twice" in call.explain()
    for name in ("a name", "日本", "kernel", "", "'"):
        same(function([x], x * 2, name=name)([1.0]), [2.0])


def test_profile(function: Make) -> None:
    x = T.dvector("x")
    assert function([x], x * 2).profile is None
    for outputs in (x * 2, [x * 2], {"double": x * 2}, None):
        call = function([x], outputs, profile=True, on_unused_input="ignore")
        assert call.profile is not None and call.profile.calls == 0
        call([1.0])
        call(x=np.ones(3))
        assert call.profile.calls == 2 and 0 < call.profile.seconds < 60
        assert str(call.profile).startswith("2 calls, ")
    same(function([x], x * 2, profile=True)([1.0]), [2.0])


@pytest.mark.slow
def test_profile_counts_steps(function: Make) -> None:
    x, n, w = T.dvector("x"), T.lscalar("n"), graphc.shared(0.0)
    sums, _ = graphc.scan(lambda e, s: s + e, sequences=x, outputs_info=0.0)
    halves, _ = graphc.scan(lambda s: (s / 2, graphc.until(s < 3.0)), outputs_info=16.0, n_steps=n)
    nested, _ = graphc.map(lambda e: graphc.scan(lambda s: s + e, outputs_info=0.0, n_steps=n)[0].sum(), sequences=x)
    cases: list[tuple[Any, int]] = [
        (sums, 3),
        ([halves[0], x], 4),
        ({"a": sums[-1], "b": halves[0]}, 7),
        (nested, 3),
        (graphc.grad(sums[-1], x), 3),
        (None, 0),
    ]
    for outputs, steps in cases:
        plain, call = (
            function([x, n], outputs, updates=[(w, w + 1)], profile=profile, on_unused_input="ignore")
            for profile in (False, True)
        )
        want = plain(np.arange(3.0), 6)
        found = call([0, 1, 2], n=6)
        assert type(found) is type(want)
        for each in want if isinstance(want, dict) else range(len(want)) if isinstance(want, list) else ():
            same(found[each], want[each])
        call(np.arange(3.0), 6)
        assert call.profile is not None and call.profile.calls == 2 and call.profile.steps == 2 * steps
        assert ("steps" in str(call.profile)) == bool(steps)
    call = function([x, n], sums * n, profile=True)
    out = np.empty(3)
    assert call(np.arange(3.0), 2, out=out) is out and call.profile is not None and call.profile.steps == 3
    same(out, [0.0, 2.0, 6.0])
    assert "steps" not in call.explain().splitlines()[0] and "float64" in call.text


@pytest.mark.parametrize("name", MODES)
def test_modes(name: str) -> None:
    x = T.dvector("x")
    call = graphc.function([x], x + 1, mode=name)
    assert call.mode == MODES[name]
    same(call([1.0]), [2.0])
    with options.change(mode=MODES[name]):
        assert graphc.function([x], x + 1).mode == MODES[name]
        assert graphc.function([x], x + 1, mode="interpreted").mode == "interpreted"


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_MODES)
def test_the_mode_of_the_environment(name: str) -> None:
    program = "import graphc, graphc.tensor as T; x = T.dvector('x'); print(graphc.function([x], x + 1).mode)"
    environment = {**os.environ, "GRAPHC_MODE": name}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == name


def test_evaluation(mode: str) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.ones(2), "w")
    with options.change(mode=mode):
        same((x * w).sum().eval({x: [1.0, 2.0]}), 3.0)
        same((w * 2).eval(), [2.0, 2.0])
        same((x * 2).eval({x: np.ones(2)}), [2.0, 2.0])
        with pytest.raises(MissingInputError, match="x"):
            (x * 2).eval()


@pytest.mark.slow
def test_a_function_is_freed_with_all_it_holds(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.zeros(2), "w")
    call = function([x], x.sum(), updates=[(w, w + x)])
    call([1.0, 2.0])
    there = weakref.ref(w)
    del call, w
    gc.collect()
    assert there() is None


# Threads ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_call_one_function(function: Make) -> None:
    """Results are each caller's own, whatever the sizes and forms of the others' arguments."""
    x, y = T.dmatrix("x"), T.dvector("y")
    call = function([x, y], [T.exp(x - x.max(axis=1, keepdims=True)).sum(), T.dot(x, y), x * 2])
    rng = np.random.default_rng(0)

    def work(number: int) -> None:
        rows, columns = 1 + number % 7, 1 + number % 5
        a, b = rng.normal(size=(rows, columns)), np.arange(columns, dtype=float)
        total, product, double = call(a.tolist(), b) if number % 3 else call(a, y=b)
        same(total, np.exp(a - a.max(1, keepdims=True)).sum())
        np.testing.assert_allclose(product, a @ b, rtol=1e-12, atol=1e-12)
        same(double, a * 2)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(200)))


def test_threads_fail_apart(function: Make) -> None:
    """An error in one thread is not another's."""
    x, i = T.dvector("x"), T.lvector("i")
    call = function([x, i], x[i].sum())

    def work(number: int) -> None:
        if number % 2:
            with pytest.raises(IndexError, match=f"index {number + 3} of i"):
                call(np.ones(3), np.array([0, number + 3]))
        else:
            same(call(np.full(3, float(number)), [0, 2]), 2.0 * number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(120)))


def test_threads_whose_ops_raise_get_their_own_exceptions(function: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    x = T.dvector("x")
    both_raised, explain = threading.Barrier(2), Lowered.explain_failure

    def explain_later(self: Lowered, arrays: Any) -> Any:
        both_raised.wait(60)
        return explain(self, arrays)

    monkeypatch.setattr(Lowered, "explain_failure", explain_later)

    @graphc.op(infer=lambda kind: kind)
    def refuse(values: Any) -> Any:
        raise LookupError(values[0])

    call = function([x], refuse(x) + 1)

    def work(number: float) -> None:
        for _ in range(20):
            with pytest.raises(LookupError) as caught:
                call(np.full(2, number))
            assert caught.value.args == (number,)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (1.0, 2.0)))


def test_threads_update_without_a_crash(function: Make) -> None:
    x = T.dvector("x")
    w = graphc.shared(np.zeros(50), "w")
    lock = threading.Lock()
    call = function([x], w.sum(), updates=[(w, w + x)])

    def work(number: int) -> None:
        with lock:
            call(np.ones(50))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    same(w.get_value(), np.full(50, 100.0))
    with ThreadPoolExecutor(4) as pool:
        totals = list(pool.map(lambda number: call(np.ones(50) if number % 2 else [1.0] * 50), range(100)))
    assert all(5000 <= total <= 10000 for total in totals)
    assert w.get_value().shape == (50,) and np.isfinite(w.get_value()).all()


@pytest.mark.slow
def test_threads_make_functions(function: Make) -> None:
    x = T.dvector("x")

    def work(number: int) -> Any:
        return function([x], x * (number % 4) + 1)(np.ones(2))

    with ThreadPoolExecutor(4) as pool:
        for number, got in enumerate(pool.map(work, range(16))):
            same(got, [number % 4 + 1.0] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_what_has_no_elements_passes_no_cotangent_on(mode: str) -> None:
    """The derivative of std is infinite where all elements are equal: times the sum over nothing that was NaN."""
    x = T.dvector("x")
    spread = T.std(x)
    for empty in (
        T.set_subtensor(x[5:3], spread),
        T.inc_subtensor(x[-1:-2], spread),
        T.set_subtensor(x[1:4:-1], spread),
        T.set_subtensor(x[np.zeros(0, "int64")], spread),
        T.concatenate([x, T.fill(T.zeros(0), spread)]),
    ):
        call = graphc.function([x], graphc.grad(empty.sum(), x), mode=mode)
        np.testing.assert_array_equal(call(np.array([2.0])), [1.0])
        np.testing.assert_array_equal(call(np.full(6, 3.0)), np.ones(6))
