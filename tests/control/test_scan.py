"""The argument forms of `scan`, `map`, `reduce`, `foldl` and `foldr`, against loops in NumPy, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import unwrap
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc as theano
import graphc.tensor as T
from graphc.errors import (
    GraphTypeError,
    GraphValueError,
    IndexOutOfBounds,
    MissingInputError,
    ShapeError,
    UnusedInputError,
)
from graphc.random.streams import RandomStreams

Make = Callable[..., Any]
X = np.array([1.0, 2.0, 3.0, 5.0])


def test_no_steps(function: Make) -> None:
    n, x = T.iscalar("n"), T.dmatrix("x")
    rows, sums = graphc.scan(lambda row, s: [s + row, row.sum()], x, [T.zeros((2,)), None], n_steps=n)[0]
    call = function([n, x], [rows, sums])
    for steps in (0, 1, 3):
        got = call(steps, X[:3, None] * [1.0, 10.0])
        npt.assert_array_equal(got[0], np.cumsum(X[:3, None] * [1.0, 10.0], 0)[:steps])
        npt.assert_array_equal(got[1], 11 * X[:steps])
    static = graphc.scan(lambda row: row * 2, x, n_steps=0)[0]
    assert function([x], static)(np.ones((3, 2))).shape == (0, 2)
    assert function([x], graphc.scan(lambda row: row * 2, x)[0])(np.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("n_steps", [None, 3, 3.0, "symbolic", np.int32(3)])
def test_the_number_of_steps(function: Make, n_steps: Any) -> None:
    """As many as the shortest sequence has elements, or as told; backwards, these are the last."""
    x, n = T.dvector("x"), T.iscalar("n")
    steps: Any = n if n_steps == "symbolic" else n_steps
    forwards = graphc.scan(lambda a, i: a * 10 + i, [x, T.arange(9)], n_steps=steps)[0]
    backwards = graphc.scan(lambda a, i: a * 10 + i, [x, T.arange(9)], n_steps=steps, go_backwards=True)[0]
    count = 4 if n_steps is None else 3
    there, back = function([x, n], [forwards, backwards], on_unused_input="ignore")(X, 3)
    npt.assert_array_equal(there, (X * 10 + np.arange(4.0))[:count])
    npt.assert_array_equal(back, X[::-1][:count] * 10 + np.arange(8.0, 4.0, -1.0)[:count])


def test_one_sequence_backwards(function: Make) -> None:
    x = T.dvector("x")
    both = graphc.scan(lambda a, b: a * 10 + b, [x, {"input": x, "go_backwards": True}])[0]
    npt.assert_array_equal(function([x], both)(X), X * 10 + X[::-1])


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("taps", [[0], [-2, 0], [1], [-1, 2], [2, 0, -1], [-3, -1], [1, 2], 1])
def test_taps_of_a_sequence(function: Make, taps: Any, backwards: bool) -> None:
    """A step is given the elements at all of them, so that there are fewer steps than elements."""
    x = T.dvector("x")
    distances = taps if isinstance(taps, list) else [taps]
    rows = graphc.scan(lambda *each: T.stack(each), {"input": x, "taps": taps}, go_backwards=backwards)[0]
    values = np.arange(10.0, 17.0)
    first, last = -min(0, *distances, 0), 7 - max(0, *distances, 0)
    steps = range(first, last)[::-1] if backwards else range(first, last)
    npt.assert_array_equal(function([x], rows)(values), [[values[t + tap] for tap in distances] for t in steps])


@pytest.mark.parametrize("taps", [[-1], [-2], [-1, -2], [-3, -1], [-2, -4, -1]])
def test_taps_of_a_state(function: Make, taps: list[int]) -> None:
    x, begin = T.dvector("x"), T.dvector("begin")
    weights = 0.3 * np.arange(1.0, len(taps) + 1)

    def step(x: Any, *old: Any) -> Any:
        return x + sum(weight * value for weight, value in zip(weights, old, strict=True))

    initial = begin[-1] if taps == [-1] else begin
    rows = graphc.scan(step, x, {"initial": initial, "taps": taps})[0]
    history = list(np.arange(1.0, 1.0 - min(taps)))
    start = np.array(history)
    for value in X:
        history.append(step(value, *(history[tap] for tap in taps)))
    npt.assert_allclose(function([x, begin], rows)(X, start), history[-4:])


def test_the_rows_of_an_initial_value_that_has_more_than_needed(function: Make) -> None:
    """The first are taken, as in Theano."""
    begin = T.dvector("begin")
    rows = graphc.scan(lambda a, b: a + b, None, {"initial": begin, "taps": [-2, -1]}, n_steps=3)[0]
    npt.assert_array_equal(function([begin], rows)([1.0, 1.0, 50.0]), [2, 3, 5])


@pytest.mark.parametrize("info", [None, [], [None], [None, None], {}, [{}, {"taps": None}]])
def test_outputs_that_no_step_reads(function: Make, info: Any) -> None:
    x = T.dvector("x")
    two = isinstance(info, list) and len(info) == 2
    found = graphc.scan(lambda a: [a, a * 2] if two else a, x, info, return_list=True)[0]
    assert len(found) == 1 + two
    npt.assert_array_equal(function([x], found[-1])(X), X * (1 + two))


NUMBERS = [(0, "int64"), (0.0, "float64"), (True, "int64"), (np.float64(0), "float64"), (np.int64(0), "int64")]


@pytest.mark.parametrize(("number", "dtype"), NUMBERS)
def test_numbers_that_states_begin_with(function: Make, number: Any, dtype: str) -> None:
    """A Python number takes the dtype of the steps; a NumPy number has its own."""
    k, x, n = T.lvector("k"), T.dvector("x"), T.lvector("n")
    for form in (number, [number], {"initial": number}):
        rows = graphc.scan(lambda k, s: s + k, k, form)[0]
        assert rows.dtype == dtype
        npt.assert_array_equal(function([k], rows)([1, 2, 3]), int(number) + np.array([1, 3, 6]))
    if not isinstance(number, np.integer):
        rows = graphc.scan(lambda x, s: s * 2 + x, x, number)[0]
        assert rows.dtype == "float64"
        npt.assert_array_equal(function([x], rows)([1.0, 2.0]), 4 * int(number) * np.array([0.5, 1]) + [1, 4])
    assert graphc.scan(lambda s: s, None, number, n_steps=3)[0].dtype == {True: "bool"}.get(number is True, dtype)
    assert graphc.scan(lambda n, s: s + n, n, T.constant(0.0))[0].dtype == "float64"


@pytest.mark.parametrize(
    ("state", "step"), [("float64", "float32"), ("int64", "int8"), ("float64", "int32"), ("int8", "bool")]
)
def test_what_a_step_returns_is_widened(function: Make, state: str, step: str) -> None:
    x = T.tensor(step, (None,), "x")
    rows = graphc.scan(lambda x, s: x, x, np.zeros((), state))[0]
    assert rows.dtype == state
    npt.assert_array_equal(function([x], rows)(np.array([1, 0, 1], step)), [1, 0, 1])


RETURNS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a dict": lambda x, s, a: (s + x, {a: a * x}),
    "pairs": lambda x, s, a: (s + x, [(a, a * x)]),
    "lists of pairs": lambda x, s, a: ([s + x], [[a, a * x]]),
    "a list of both": lambda x, s, a: [[s + x], {a: a * x}],
    "updates first": lambda x, s, a: ({a: a * x}, s + x),
    "all": lambda x, s, a: ([s + x], {a: a * x}, graphc.until(x > 2)),
    "flat": lambda x, s, a: (s + x, {a: a * x}, graphc.until(x > 2)),
}


@pytest.mark.parametrize("form", RETURNS)
def test_what_a_step_returns(function: Make, form: str) -> None:
    a, x = graphc.shared(2.0, name="a"), T.dvector("x")
    rows, updates = graphc.scan(lambda x, s: RETURNS[form](x, s, a), x, 0.0)
    count = 3 if form in ("all", "flat") else 4
    npt.assert_array_equal(function([x], rows, updates=updates)(X), np.cumsum(X)[:count])
    assert a.get_value() == 2 * np.prod(X[:count])


def test_what_is_given_does_not_follow_the_updates(function: Make) -> None:
    """A value of `non_sequences` is what it was before the loop, as in Theano; one that is used as it is is computed
    anew."""
    a = graphc.shared(1.0, name="a")
    value = a * 2
    given, _ = graphc.scan(lambda v: (v, {a: a + 1}), non_sequences=value, n_steps=3)
    seen, updates = graphc.scan(lambda: (value, {a: a + 1}), n_steps=3)
    call = function([], [given, seen], updates=updates)
    for begin in (1.0, 4.0):
        npt.assert_array_equal(call(), [np.full(3, 2 * begin), 2 * begin + np.array([0.0, 2.0, 4.0])])


def test_updates_are_seen_by_the_next_step(function: Make) -> None:
    a, b = graphc.shared(1, name="a"), graphc.shared(10, name="b")
    rows, updates = graphc.scan(lambda: (a + b, {a: b, b: a + 1}), n_steps=3)
    call = function([], [rows, a], updates=updates)
    got, before = call()
    npt.assert_array_equal(got, [11, 12, 13])
    assert (int(before), int(a.get_value()), int(b.get_value())) == (1, 11, 3)


def test_what_is_given_is_the_same_in_all_steps(function: Make) -> None:
    """Though it is computed from a variable that they update. That itself is not, nor what they compute from it."""
    c = graphc.shared(1.0, name="c")
    twice = 2 * c

    def step(given: Any, itself: Any) -> Any:
        return [given, itself, c + 1], {c: c + given}, graphc.until(given > 2)

    (given, itself, own), updates = graphc.scan(step, non_sequences=[twice, c], n_steps=3)
    call = function([], [given, itself, own, twice], updates=updates)
    for start in (1.0, 7.0):
        got = call()
        steps = 3 if start == 1 else 1
        npt.assert_array_equal(got[0], [2 * start] * steps)
        npt.assert_array_equal(got[1], [start, start + 2, start + 4][:steps])
        npt.assert_array_equal(got[2], got[1] + 1)
        assert got[3] == 2 * start and c.get_value() == start + 2 * start * steps


def test_rows_of_a_jacobian_of_what_is_drawn(function: Make) -> None:
    """They belong to the numbers that were drawn, which the steps neither draw again nor leave out."""
    x = T.dvector("x")
    drawn = x**2 * RandomStreams(5).normal(x.shape)
    inner = graphc.scan(lambda a, b: a * T.cos(b), x, non_sequences=drawn)[0][-1]
    for what in (drawn, inner):
        rows, updates = graphc.scan(lambda i, y, x: T.grad(y[i], x), T.arange(x.shape[0]), non_sequences=[what, x])
        got = function([x], [rows, graphc.jacobian(what, x)], updates=updates)(X)
        npt.assert_allclose(got[0], got[1])
        assert not updates and np.count_nonzero(got[0])


def test_what_steps_do_not_use_is_used_by_the_program(function: Make) -> None:
    x, y, z = T.dvector("x"), T.dscalar("y"), T.dmatrix("z")
    rows = graphc.scan(lambda a, i, y, z: a, [x, T.arange(3)], non_sequences=[T.exp(y), z])[0]
    npt.assert_array_equal(function([x, y, z], rows)(X, 1.0, [[]]), X[:3])
    v = T.dscalar("v")
    graphc.scan(lambda a, v: a * v, x, non_sequences=v)
    with pytest.raises(UnusedInputError, match="do not use v"):
        function([x, v], x * 2)


def test_an_update_without_an_output_in_a_nested_loop(function: Make) -> None:
    a, n = graphc.shared(0, name="a"), T.iscalar("n")

    def outer(k: Any) -> Any:
        return graphc.scan(lambda: {a: a + k}, n_steps=k)[1]

    updates = graphc.scan(outer, T.arange(n))[1]
    function([n], [], updates=updates)(4)
    assert a.get_value() == 1 + 4 + 9


@pytest.mark.parametrize("name", ["until", "scan_module.until", "scan_utils.until", "scan_module.scan_utils.until"])
def test_until(function: Make, name: str) -> None:
    until: Any = theano
    for part in name.split("."):
        until = getattr(until, part)
    x = T.dvector("x")
    rows, twice = theano.scan(lambda x, s: ([s + x, 2 * x], until(x >= 3)), x, [0.0, None])[0]
    call = function([x], [rows, twice, rows[-1]])
    for values, count in ((X, 3), (X[:2], 2), (X[::-1], 1)):
        got = call(values)
        npt.assert_array_equal(got[0], np.cumsum(values)[:count])
        npt.assert_array_equal(got[1], 2 * values[:count])
        assert got[2] == values[:count].sum()


@pytest.mark.parametrize("mode", ["compiled", "python", "interpreted"])
def test_errors_of_states_that_no_result_needs(mode: str) -> None:
    """Those of sizes are raised in every mode, those of numbers where each step is carried out as it is written; where
    another state reads them, both are."""
    x, y, k = T.dvector("x"), T.dvector("y"), T.lvector("k")

    def step(i: Any, used: Any, other: Any, fits: Any) -> Any:
        return used * 0.5 + 1.0, other + x[i], fits + y

    begin = [T.constant(0.0), T.constant(0.0), T.zeros((3,))]
    used, other, _ = graphc.scan(step, k, begin)[0]
    call, both = (graphc.function([x, y, k], out[-1], mode=mode) for out in (used, used + other))
    given, inside, beyond = np.arange(3.0), np.array([1, 2, 0]), np.array([1, 7, 0])
    assert call(given, given, inside) == 1.75 and both(given, given, inside) == 4.75
    for f in (call, both):
        with pytest.raises(ShapeError):
            f(given, np.arange(4.0), inside)
    with pytest.raises(IndexOutOfBounds, match="index 7"):
        both(given, given, beyond)
    if mode != "interpreted":
        assert call(given, given, beyond) == 1.75


def test_nested(function: Make) -> None:
    """A table of binomial coefficients: rows of sums of the row before."""
    n = T.iscalar("n")

    def row(before: Any) -> Any:
        sums = graphc.scan(lambda a, b: a + b, {"input": before, "taps": [-1, 0]})[0]
        return T.concatenate([before[:1], sums])

    rows = graphc.scan(row, None, T.eye(1, 6)[0], n_steps=n)[0]
    npt.assert_array_equal(function([n], rows)(5)[-1], [1, 5, 10, 10, 5, 1])


PIECES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "flat": (lambda piece: T.cumsum(piece.flatten()).sum(), lambda piece: np.cumsum(piece).sum()),
    "outer": (
        lambda piece: T.cumsum(T.outer(piece[:, 0], piece[:, 1]).flatten()).sum(),
        lambda piece: np.cumsum(np.outer(piece[:, 0], piece[:, 1])).sum(),
    ),
    "every second": (
        lambda piece: T.cumsum(piece[::2], axis=0).sum(),
        lambda piece: np.cumsum(piece[::2], axis=0).sum(),
    ),
}
"""What is computed of rows whose number changes from step to step, in memory whose size is a product with that number,
or a part of it."""


@pytest.mark.parametrize("name", PIECES)
def test_sizes_that_follow_from_those_of_pieces(function: Make, name: str) -> None:
    x, lengths = T.dmatrix("x"), T.lvector("lengths")
    of_nodes, of_arrays = PIECES[name]
    found = graphc.map(lambda length: of_nodes(x[:length]), lengths)[0]
    given, counts = np.arange(8.0).reshape(4, 2), [0, 3, 4, 1]
    npt.assert_array_equal(function([x, lengths], found)(given, counts), [of_arrays(given[:n]) for n in counts])


ARRANGED: dict[str, tuple[Callable[..., Any], Callable[..., Any], bool]] = {
    "windows": (lambda k, x: x[k - 1 : k + 1], lambda k, x: x[k - 1 : k + 1], False),
    "turned": (lambda k, x: T.concatenate([x[k:], x[:k]]), lambda k, x: np.roll(x, -k, axis=0), False),
    "begun anew": (
        lambda k, x: T.concatenate([x[:k][::-1], x[k:]]),
        lambda k, x: np.concatenate([x[:k][::-1], x[k:]]),
        False,
    ),
    "rolled": (lambda k, x: T.roll(x, k, axis=0), lambda k, x: np.roll(x, k, axis=0), False),
    "left out": (lambda k, x: T.concatenate([x[:k], x[k + 1 :]]), lambda k, x: np.delete(x, k, axis=0), False),
    "of a state": (
        lambda k, s, x: T.concatenate([s[:k], x[k:]]) * 2,
        lambda k, s, x: np.concatenate([s[:k], x[k:]]) * 2,
        True,
    ),
}
"""Pieces of arrays, which are as long together in each step, though no one of them is; whether a step has a state."""


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", ARRANGED)
def test_results_whose_sizes_are_the_same_in_all_steps(function: Make, name: str, backwards: bool) -> None:
    x, places = T.dmatrix("x"), T.ivector("places")
    of_nodes, of_arrays, has_state = ARRANGED[name]
    rows = graphc.scan(of_nodes, places, x if has_state else None, x, go_backwards=backwards)[0]
    slope = graphc.grad(T.sqr(rows).sum(), x)
    f = function([x, places], [rows, slope])
    given, numbers = np.arange(8.0).reshape(4, 2) + 1, np.array([2, 1, 3], np.int32)

    def specified(x: Any) -> Any:
        state, found = x, []
        for k in numbers[::-1] if backwards else numbers:
            state = of_arrays(k, state, x) if has_state else of_arrays(k, x)
            found.append(state)
        return np.array(found)

    got, got_slope = f(given, numbers)
    npt.assert_array_equal(got, specified(given))
    along = np.cos(np.arange(8.0)).reshape(4, 2)
    change = (np.square(specified(given + along)).sum() - np.square(specified(given - along)).sum()) / 2  # of a square
    npt.assert_allclose((got_slope * along).sum(), change)
    assert f(given, np.zeros(0, np.int32))[0].shape[0] == 0


def test_strict_asks_for_shared_variables() -> None:
    w, v, x = graphc.shared(2.0, name="w"), T.dscalar("v"), T.dvector("x")
    graphc.scan(lambda x, s, a, b: s * a + b * x, x, 0.0, [w * 2, v], strict=True)
    graphc.scan(lambda x: {w: w + x}, x, strict=True)
    graphc.scan(lambda x, s, *_: s * w + v * x, x, 0.0, [w], strict=True)
    draws = RandomStreams(3)  # whose states are no arguments
    rows, updates = graphc.scan(lambda x: x + draws.uniform(()), x, strict=True)
    assert len(updates) == 1 and graphc.function([x], rows, updates=updates, mode="interpreted")([1.0]).shape == (1,)
    refused = pytest.raises(
        MissingInputError, match=r"the step uses w \(test_scan.py:\d+\), which is shared and not in"
    )
    for others in ([], [v]):
        with refused:
            graphc.scan(lambda x, s, *_: s * w + v * x, x, 0.0, others, strict=True)
    with refused:
        graphc.scan(lambda x: (x, graphc.until(x > w)), x, strict=True)


def test_one_output_alone_or_in_a_list() -> None:
    x = T.dvector("x")
    assert isinstance(graphc.scan(lambda x: x, x)[0], graphc.Node)
    assert isinstance(graphc.scan(lambda x: x, x, return_list=True)[0], list)
    assert isinstance(graphc.scan(lambda x: [x, x], x)[0], list)
    named = graphc.scan(lambda x: x + 1, x, name="my_loop", mode="FAST_RUN", profile=True, allow_gc=False)[0]
    assert named.args[0].name == "my_loop"


def test_folds(function: Make) -> None:
    """10 s + x from either side; sequences in a list, several results."""
    x = T.dvector("x")
    found = [fold(lambda x, s: 10 * s + x, x, 0.0)[0] for fold in (graphc.foldl, graphc.foldr, graphc.reduce)]
    found.append(graphc.reduce(lambda x, s: 10 * s + x, [x], [0.0], go_backwards=True)[0])
    found += graphc.foldl(lambda x, y, s, p: [s + x * y, p * x], [x, x], [0.0, {"initial": 1.0}])[0]
    got = function([x], found)(X)
    assert [float(value) for value in got] == [1235, 5321, 1235, 5321, 39, 30]


def test_map(function: Make) -> None:
    x, k = T.dvector("x"), T.dscalar("k")
    plain = graphc.map(lambda x, k: x * k, x, k)[0]
    two = graphc.map(lambda a, b, k: [a + b, k], [x, x[::-1]], non_sequences=[k], go_backwards=True)[0]
    got = function([x, k], [plain, *two])(X, 3.0)
    for value, wanted in zip(got, (3 * X, X + X[::-1], [3.0] * 4), strict=True):
        npt.assert_array_equal(value, wanted)


# --- errors -----------------------------------------------------------------------------------------------------------


def two(x: Any, s: Any) -> Any:
    return s, x


M, V, S, N, W = T.dmatrix("M"), T.dvector("V"), T.dscalar("S"), T.iscalar("N"), graphc.shared(np.zeros(3), name="W")
HERE = r"\(test_scan.py:\d+\)"
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "another dtype": (
        lambda: graphc.scan(lambda x, s: s + x, V, np.int64(0)),
        GraphTypeError,
        (
            rf"it begins as int64\[\], 0, and the step returns float64\[\], .+ {HERE}; cast the "
            r"initial value with \.astype\('float64'\), or what is returned with \.astype\('int64'\)"
        ),
    ),
    "another rank": (
        lambda: graphc.scan(lambda x, s: s + x, M, 0.0),
        GraphTypeError,
        (
            rf"it begins as float64\[\], 0.0, and the step returns float64\[M.1\], .+ {HERE}; give the "
            "initial value the shape that a step returns"
        ),
    ),
    "another shape": (
        lambda: graphc.scan(lambda s: T.concatenate([s, s]), None, T.zeros(3), n_steps=3),
        GraphTypeError,
        r"it begins as float64\[3\], .* and the step returns float64\[6\]",
    ),
    "another shape at a call": (
        lambda: call([V], graphc.scan(lambda s: T.concatenate([s, s]), None, V, n_steps=3)[0], X),
        ShapeError,
        rf"scan {HERE}: V\[t-1\] {HERE} has 4 elements along axis 0, after a step 8",
    ),
    "too few entries": (
        lambda: graphc.scan(two, V, 0.0),
        GraphValueError,
        rf"outputs_info has 1 entry, and the step two {HERE} returns 2 outputs; there is one entry for each output",
    ),
    "too many entries": (
        lambda: graphc.scan(lambda x, s: x, V, [0.0, None]),
        GraphValueError,
        rf"outputs_info has 2 entries, and the step <lambda> {HERE} returns 1 output",
    ),
    "nothing": (lambda: graphc.scan(lambda x: None, V), GraphTypeError, f"<lambda> {HERE} returns no output"),
    "a word": (lambda: graphc.scan(lambda x: "word", V), GraphTypeError, f"{HERE} returns 'word', which is no tensor"),
    "None": (lambda: graphc.scan(lambda x: [x, None], V), GraphTypeError, f"{HERE} returns None, which is no tensor"),
    "an update of a variable": (
        lambda: graphc.scan(lambda x: {M: x}, V),
        GraphTypeError,
        "can update shared variables only, not <M",
    ),
    "an update of another type": (
        lambda: graphc.scan(lambda x: {W: x}, V),
        GraphTypeError,
        rf"update of W {HERE} must have its type float64\[W.0\], not float64\[\]",
    ),
    "until before": (lambda: graphc.scan(lambda x: (graphc.until(x > 0), x), V), GraphValueError, "it must come last"),
    "until of a vector": (lambda: graphc.scan(lambda x: (x, graphc.until(x > 0)), M), GraphTypeError, "a scalar, not"),
    "no number of steps": (lambda: graphc.scan(lambda s: s, None, 0.0), GraphValueError, "give n_steps or a sequence"),
    "half a step": (
        lambda: graphc.scan(lambda s: s, None, 0.0, n_steps=2.5),
        GraphTypeError,
        r"n_steps must be an integer, not 2.5 of type float64\[\]",
    ),
    "steps of a vector": (lambda: graphc.scan(lambda s: s, None, 0.0, n_steps=V), GraphTypeError, "integer, not V"),
    "steps below zero": (
        lambda: graphc.scan(lambda s: s, None, 0.0, n_steps=-2),
        ShapeError,
        "the number of steps is -2, which is negative",
    ),
    "steps below zero at a call": (
        lambda: call([N], graphc.scan(lambda s: s + 1, None, 0.0, n_steps=N)[0], -2),
        ShapeError,
        f"scan {HERE}: the number of steps, N {HERE}, is -2, which is negative",
    ),
    "a scalar as a sequence": (
        lambda: graphc.scan(lambda x: x, S),
        GraphTypeError,
        f"the sequence S {HERE} is a scalar, which has no elements; what is the same in all steps goes to non_sequ",
    ),
    "a short sequence": (
        lambda: graphc.scan(lambda x: x, T.zeros(3), n_steps=4),
        ShapeError,
        "there are 4 steps, and .* has 3 elements",
    ),
    "a short sequence at a call": (
        lambda: call([V, N], graphc.scan(lambda x: x, V, n_steps=N)[0], X, 5),
        ShapeError,
        f"scan {HERE}: there are 5 steps, and V {HERE} has 4 elements",
    ),
    "a short sequence backwards": (
        lambda: call([V, N], graphc.scan(lambda x: x, V, n_steps=N, go_backwards=True)[0], X, 5),
        ShapeError,
        rf"there are 5 steps, and V\[::-1\] {HERE} has 4 elements",
    ),
    "too few initial values": (
        lambda: call([V], graphc.scan(lambda a: a, None, {"initial": V, "taps": [-5]}, n_steps=2)[0], X),
        IndexOutOfBounds,
        "of V .*index 4 is out of bounds for axis 0, whose size is 4",
    ),
    "a scalar for several taps": (
        lambda: graphc.scan(lambda a, b: a, None, {"initial": 0.0, "taps": [-3, -1]}, n_steps=2),
        GraphTypeError,
        r"of output 0 is the scalar 0.0; for the taps \[-3, -1\] it needs a first axis of 3 values",
    ),
    "a tap of now": (
        lambda: graphc.scan(lambda a, b: a, None, {"initial": V, "taps": [0, -1]}, n_steps=2),
        GraphValueError,
        r"the taps of output 0 are \[0, -1\]; a step reads what others before it made",
    ),
    "a tap twice": (
        lambda: graphc.scan(lambda a, b: a, None, {"initial": V, "taps": [-1, -1]}, n_steps=2),
        GraphValueError,
        "negative and differ",
    ),
    "taps of letters": (
        lambda: graphc.scan(lambda a: a, {"input": V, "taps": "a"}),
        GraphValueError,
        "taps='a'; taps are",
    ),
    "taps of nothing": (
        lambda: graphc.scan(lambda a: a, None, {"taps": [-1]}, n_steps=2),
        GraphValueError,
        r"output 0 has the taps \[-1\], and no initial value",
    ),
    "a derivative of fewer than no steps": (
        lambda: graphc.scan(lambda a: a, None, S, n_steps=3, truncate_gradient=-2),
        GraphTypeError,
        "truncate_gradient is a number of steps, or -1 for all, not -2",
    ),
    "a wrong key": (
        lambda: graphc.scan(lambda a: a, {"inputs": V}),
        GraphValueError,
        "a sequence has the key 'inputs'",
    ),
    "a size that changes": (
        lambda: call([V], graphc.scan(lambda k: V[:k] * 2, T.arange(1, 4))[0], np.ones(4)),
        ShapeError,
        rf"the size of .+ {HERE} along axis 0 changes from step to step; it must be the same in all steps: fill",
    ),
    "a state whose size changes": (
        lambda: call([V], graphc.scan(lambda k, s: V[:k] * 2, T.arange(4, 2, -1), V)[0], np.ones(4)),
        ShapeError,
        rf"the size of .+ {HERE} along axis 0 changes from step to step; it must be the same in all steps: fill",
    ),
    "an index": (
        lambda: call([V], graphc.scan(lambda k: V[k], T.arange(9))[0], X),
        IndexOutOfBounds,
        f"subtensor {HERE} of V {HERE}: index 4.* is out of bounds for axis 0, whose size is 4",
    ),
    "sizes within a step": (
        lambda: call([M, V], graphc.scan(lambda row: row + V, M)[0], np.ones((2, 3)), X),
        ShapeError,
        rf"add {HERE}: M\[t\] {HERE} and V {HERE} differ along axis 0: sizes 3 and 4",
    ),
}


def call(inputs: Any, output: Any, *values: Any) -> Any:
    return graphc.function(inputs, output, mode="interpreted")(*values)


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    build, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        build()


STEPS: dict[str, Callable[..., Any]] = {
    "set": lambda k, s, x: T.set_subtensor(s[:k], x[:k] * 2),
    "increased": lambda k, s, x: T.inc_subtensor(s[:k], x[:k] * 2),
    "joined, and not taken": lambda k, s, x: s + T.stack([s[:k], x[:k]])[0].sum(),
    "a part of a sum": lambda k, s, x: s + (s[:k] + x[:k])[::-1][:1].sum(),
    "nested": lambda k, s, x: graphc.scan(lambda r: T.set_subtensor(r[:k], x[:k] * 2), None, s, n_steps=2)[0][-1],
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_sizes_that_change_from_step_to_step_must_fit_in_each(function: Make, step: Callable[..., Any]) -> None:
    """Whatever becomes of the step: nothing is read or written where there is nothing."""
    x, s = T.dvector("x"), T.dvector("s")
    rows = graphc.scan(step, T.arange(x.shape[0] + 1), s, x)[0]
    make = function([x, s], [rows, graphc.grad(rows.sum(), x)])
    assert np.isfinite(make(np.ones(3), np.ones(3))[0]).all()
    for size in (4, 2000):
        with pytest.raises(ShapeError, match=rf"sizes? .*{HERE}|{HERE}.* sizes? "):
            make(np.ones(size), np.ones(3))


def test_a_step_that_takes_other_arguments() -> None:
    with pytest.raises(TypeError, match="takes 2 positional arguments but 4 were given") as raised:
        graphc.scan(two, V, 0.0, [W, M])
    assert raised.value.__notes__[0].endswith("with 4 arguments: V[t], s, W, M")


def test_an_error_within_a_step_is_the_users_own() -> None:
    def broken(x: Any) -> Any:
        return two(x)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="missing 1 required") as raised:
        graphc.scan(broken, V)
    assert not hasattr(raised.value, "__notes__")


def test_the_place_of_scan() -> None:
    """As programs import it: `from theano.scan_module import until`."""
    module = import_module("graphc.scan_module")
    for name in "foldl foldr map reduce scan until".split():
        found = getattr(module, name)  # a path that is called is the function of its name
        assert unwrap(getattr(found, "_function", found)) is unwrap(getattr(theano, name))
    assert theano.scan_module is module


def test_a_body_does_not_depend_on_what_is_alive() -> None:
    """`h + 0.5` repeats the number. An equal node that something else holds is the same object, and not the program's:
    the body has it all the same. What is listed in `non_sequences` stays an operand, for derivatives by it."""

    def text() -> str:
        return graphc.print_graph(graphc.scan(lambda h: h + 0.3719, outputs_info=V, n_steps=3)[0])

    alone = text()
    alive = T.constant(0.3719).dimshuffle("x")
    assert text() == alone and alive.op.name == "dimshuffle"
    zeros = T.zeros((3,))
    y = graphc.scan(lambda a, z: (a * z).sum(), V, non_sequences=zeros)[0].sum()
    assert theano.function([V], graphc.grad(y, zeros), mode="interpreted")([1.0, 2.0]).tolist() == [3.0] * 3
