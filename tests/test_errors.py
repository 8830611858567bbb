"""Bad input: each gives one clear error that names the variable and the user's line, the same in all modes, and changes
nothing.

The tables hold what is built and called, the class of the error, the variables that its message must name together with
the line that made them, and a pattern for the rest of the message.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import (
    ArgumentError,
    CycleError,
    DisconnectedInputError,
    GradientError,
    GraphcError,
    GraphTypeError,
    GraphValueError,
    IndexOutOfBounds,
    MissingInputError,
    ShapeError,
    UnusedInputError,
    UpdateError,
)
from graphc.functions.callables import MODES, Function
from graphc.ir.node import Node
from graphc.ir.walk import toposort
from graphc.options import options

FILE = Path(__file__).name
ALL_MODES = sorted(set(MODES.values()))
Make = Callable[..., Function]

# The variables that messages must name, one a line.
X = T.dmatrix("x")
Y = T.dmatrix("y")
ROW = T.drow("row")
FIXED = T.matrix("fixed", shape=(2, 3), dtype="float64")
CUBE = T.dtensor3("cube")
V = T.dvector("v")
SINGLE = T.fvector("single")
WHOLE = T.ivector("whole")
N = T.lscalar("n")
I = T.lscalar("i")  # noqa: E741
IDX = T.lvector("idx")
BYTES = T.tensor("uint8", (None,), "bytes")
LONELY = T.dmatrix("lonely")
FORGOTTEN = T.dvector("forgotten")
W = graphc.shared(np.ones((3, 2)), "w")
COUNTS = graphc.shared(np.zeros(3, "int32"), "counts")
HELD = graphc.shared(np.zeros(3), "held", shape=(3,))

DECLARED = re.compile(r'^[A-Z]+ = (?:T|graphc)\..*?"(\w+)"(?:, shape=.*)?\)(?:  #.*)?$')
LINES = {
    found[1]: number
    for number, line in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1)
    if (found := DECLARED.match(line))
}
"""The line of each variable, read from this file."""

A = np.arange(6.0).reshape(2, 3)


@dataclass(frozen=True)
class Bad:
    """`build` makes a function by the maker it gets; where there are `args`, their call fails, else the making does."""

    build: Callable[[Make], Any]
    error: type[Exception]
    names: str
    text: str
    args: tuple[Any, ...] | None = None

    def blamed(self) -> Iterator[str]:
        return (f"{name} ({FILE}:{LINES[name]})" for name in self.names.split())


def check(case: Bad, mode: str) -> None:
    """The message is one line that names the variables with their lines."""
    make = partial(graphc.function, mode=mode)
    call: Callable[[], Any] = partial(case.build, make)
    if case.args is not None:
        call = partial(call(), *case.args)
    with pytest.raises(GraphcError) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, case.error), message
    assert "\n" not in message and len(message) < 400
    for blamed in case.blamed():
        assert blamed in message
    assert re.search(case.text, message), message


def double(make: Make) -> Function:
    return make([X], X * 2.0)


# Arguments of calls -------------------------------------------------------------------------------------------------

NO_DTYPE = "dtype {} is not supported; graphc has bool, int8, .*float64"
LOSS = r"without loss; convert it with np.asarray\(value\).astype\("

ARGUMENTS = {
    "scalar for a matrix": Bad(double, GraphTypeError, "x", r"2 dimensions.*shape \(\)", (1.0,)),
    "vector for a matrix": Bad(double, GraphTypeError, "x", r"2 dimensions.*shape \(3,\)", (np.zeros(3),)),
    "list for a matrix": Bad(double, GraphTypeError, "x", r"2 dimensions.*shape \(2,\)", ([1, 2],)),
    "cube for a matrix": Bad(double, GraphTypeError, "x", r"2 dimensions.*\(1, 2, 3\)", (np.zeros((1, 2, 3)),)),
    "complex": Bad(double, GraphTypeError, "x", "complex128 cannot become float64", (np.zeros((2, 2), complex),)),
    "half": Bad(double, GraphTypeError, "x", NO_DTYPE.format("float16"), (np.zeros((2, 2), "float16"),)),
    "long double": Bad(double, GraphTypeError, "x", "dtype float(96|128) is not", (np.zeros((2, 2), np.longdouble),)),
    "None": Bad(double, GraphTypeError, "x", "None.*not an array of numbers", (None,)),
    "text": Bad(double, GraphTypeError, "x", "'12'.*not an array of numbers", ("12",)),
    "bytes": Bad(double, GraphTypeError, "x", "b'12'.*not an array of numbers", (b"12",)),
    "lists of text": Bad(double, GraphTypeError, "x", "not an array of numbers", ([["1"]],)),
    "an object": Bad(double, GraphTypeError, "x", "object.*not an array of numbers", (object(),)),
    "a dict": Bad(double, GraphTypeError, "x", "not an array of numbers", ({1: 2.0},)),
    "a set": Bad(double, GraphTypeError, "x", "not an array of numbers", ({1.0},)),
    "a generator": Bad(double, GraphTypeError, "x", "generator.*not an array of numbers", ((k for k in [1]),)),
    "array of objects": Bad(double, GraphTypeError, "x", "not an array of numbers", (np.array([[None]]),)),
    "dates": Bad(double, GraphTypeError, "x", "not an array of numbers", (np.array([["2020"]], "M8[D]"),)),
    "records": Bad(double, GraphTypeError, "x", "not an array of numbers", (np.zeros((2, 2), [("a", "f8")]),)),
    "a variable": Bad(double, GraphTypeError, "x y", "is symbolic, and a value is needed", (Y,)),
    "rows of two lengths": Bad(double, GraphValueError, "x", r"\[\[1, 2\], \[3\]\].*inhomogeneous", ([[1, 2], [3]],)),
    "whole numbers of 100 bits": Bad(double, GraphTypeError, "x", "64 bits", ([[2**100]],)),
    "a masked array": Bad(double, GraphTypeError, "x", r"masked.*filled\(\)", (np.ma.masked_array(A, A > 2),)),
    "float64 for float32": Bad(lambda f: f([SINGLE], SINGLE + 1), GraphTypeError, "single", LOSS, (np.ones(2),)),
    "floats for integers": Bad(lambda f: f([WHOLE], WHOLE + 1), GraphTypeError, "whole", LOSS, (np.ones(2),)),
    "a fraction for an integer": Bad(lambda f: f([WHOLE], WHOLE + 1), GraphTypeError, "whole", LOSS, ([1.5],)),
    "a large integer": Bad(lambda f: f([WHOLE], WHOLE + 1), GraphTypeError, "whole", LOSS, ([2**31],)),
    "NaN for an integer": Bad(lambda f: f([WHOLE], WHOLE + 1), GraphTypeError, "whole", LOSS, ([float("nan")],)),
    "NaN, any loss allowed": Bad(
        lambda f: f([WHOLE], WHOLE + 1, allow_input_downcast=True), GraphValueError, "whole", "nan is no int32",
        ([1.5, float("nan")],),
    ),
    "2**31 as a float, any loss allowed": Bad(
        lambda f: f([WHOLE], WHOLE + 1, allow_input_downcast=True),
        GraphValueError,
        "whole",
        "2147483648.0 is no int32",
        ([2.0**31],),
    ),
    "a list, strictly": Bad(
        lambda f: f([graphc.In(X, strict=True)], X + 1), GraphTypeError, "x", "strictly an array of float64", ([[1.0]],)
    ),
    "a static size": Bad(
        lambda f: f([FIXED], FIXED + 1), ShapeError, "fixed", r"size 3 along axis 1.*shape \(2, 4\)", (np.ones((2, 4)),)
    ),
    "two rows for one": Bad(lambda f: f([ROW], ROW + 1), ShapeError, "row", r"size 1 along axis 0.*\(2, 3\)", (A,)),
    "one too few": Bad(lambda f: f([X, Y], X + Y), ArgumentError, "y", rf"{FILE}:\d+\): argument y.*missing", (A,)),
    "none": Bad(lambda f: f([X, Y], X + Y, name="adder"), ArgumentError, "x", "^adder .*x.* is missing", ()),
    "one too many": Bad(double, ArgumentError, "x", r"^function .*takes 1 arguments \(x .*; got 2", (A, A)),
    "any for none": Bad(lambda f: f([], W.sum()), ArgumentError, "", r"takes 0 arguments \(none\); got 1", (A,)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("case", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments(case: Bad, mode: str) -> None:
    check(case, mode)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_keywords(mode: str) -> None:
    call = graphc.function([X, Y, graphc.In(N, name="x")], X + Y * N, mode=mode)
    named = [f"{name} ({FILE}:{LINES[name]})" for name in "xyn"]
    for args, kwargs, text in [
        ((A, A, 1), {"z": A}, "no one input called 'z'"),
        ((A, A, 1), {"x": A}, "no one input called 'x'"),  # two have that name
        ((A, A, 1), {"y": A}, rf"argument y \({FILE}:\d+\) is given twice"),
        ((A,), {"y": A}, r"argument n .*is missing"),
    ]:
        with pytest.raises(ArgumentError, match=text) as caught:
            call(*args, **kwargs)
        assert str(caught.value).startswith(f"function ({FILE}:")
        assert "called" not in text or all(name in str(caught.value) for name in named)


# Sizes that do not agree --------------------------------------------------------------------------------------------

GRAPHS = {
    "a sum": Bad(lambda f: f([X, Y], X + Y), ShapeError, "x y", "along axis 0: sizes 2 and 1; only", (A, A[:1])),
    "a sum with a vector": Bad(lambda f: f([X, V], X * V), ShapeError, "x v", "axis 1: sizes 3 and 2", (A, [1.0, 2.0])),
    "a choice": Bad(
        lambda f: f([X, Y], T.where(X > 0, X, Y)), ShapeError, "y", r"x > 0.*sizes 3 and 2", (A, A[:, :2])
    ),
    "a sum with a shared variable": Bad(lambda f: f([X], X + W), ShapeError, "x w", "sizes 2 and 3", (A,)),
    "a product": Bad(lambda f: f([X], T.dot(X, W)), ShapeError, "x w", "summed axis has sizes 2 and 3", (A.T,)),
    "a product with a vector": Bad(lambda f: f([X, V], X @ V), ShapeError, "x v", "sizes 3 and 1", (A, [1.0])),
    "a batch of products": Bad(
        lambda f: f([CUBE], T.batched_dot(CUBE, CUBE)), ShapeError, "cube",
        "axis 1 of cube.* has size 2, axis 2 of cube.* has size 3",
        (np.ones((2, 2, 3)),),
    ),
    "rows one below the other": Bad(
        lambda f: f([X, Y], T.concatenate([X, Y])), ShapeError, "x y", "axis 1 has sizes 3 and 2", (A, A[:, :2])
    ),
    "a stack": Bad(lambda f: f([X, Y], T.stack([X, Y])), ShapeError, "x y", "sizes 2 and 1", (A, A[:1])),
    "elements of a reshape": Bad(
        lambda f: f([X, N], X.reshape((N, 2))), ShapeError, "x", "6 elements cannot become 8", (A, 4)
    ),
    "the rest of a reshape": Bad(lambda f: f([X, N], X.reshape((N, -1))), ShapeError, "x", "6 elements", (A, 4)),
    "a part to be set": Bad(
        lambda f: f([X, V], T.set_subtensor(X[0], V)), ShapeError, "v", "axis 0.* size 2, not 3", (A, [1.0, 2.0])
    ),
    "a declared size": Bad(lambda f: f([X], T.specify_shape(X, (4, None))), ShapeError, "x", "size 2, not 4", (A,)),
    "a size that shall broadcast": Bad(lambda f: f([X], T.addbroadcast(X, 0)), ShapeError, "x", "2, not 1", (A,)),
    "two index arrays": Bad(
        lambda f: f([X, IDX, BYTES], X[IDX, BYTES]), ShapeError, "bytes", "axis 0 of bytes.* 2, not 1", (A, [0], [0, 1])
    ),
    "classes and rows": Bad(
        lambda f: f([X, IDX], T.nnet.categorical_crossentropy(X, IDX)), ShapeError, "idx", "3.*2", (A, [0, 1, 1])
    ),
    "what is multiplied by zero": Bad(lambda f: f([X, Y], (X + Y) * 0), ShapeError, "x y", "sizes", (A, A[:1])),
    "what cancels": Bad(lambda f: f([X, Y], (X + Y) - (X + Y)), ShapeError, "x y", "sizes 2 and 1", (A, A[:1])),
    "the maximum of nothing": Bad(lambda f: f([X], X.max()), ShapeError, "x", "zero-size.*axis 0", (A[:0],)),
    "the least of nothing": Bad(lambda f: f([X], X.argmin(1)), ShapeError, "x", "zero-size.*axis 1", (A[:, :0],)),
    "zeros": Bad(lambda f: f([N], T.zeros((N,))), ShapeError, "n", "axis 0, n .* is -3, which is negative", (-3,)),
    "ones": Bad(lambda f: f([N], T.ones((2, N + 1))), ShapeError, "", r"axis 1, n \+ 1 .* is -2", (-3,)),
    "alloc": Bad(lambda f: f([N], T.alloc(1.0, N, 2)), ShapeError, "n", "axis 0, n .* is -1", (-1,)),
    "full": Bad(lambda f: f([N], T.full((N, N), 2)), ShapeError, "n", "axis 0, n .* is -1", (-1,)),
    "an element of an input": Bad(
        lambda f: f([WHOLE], T.ones((3, WHOLE[1]))), ShapeError, "", r"axis 1, whole\[1\] .* is -2, which", ([1, -2],)
    ),
    "the last element of an input": Bad(
        lambda f: f([WHOLE], T.zeros(WHOLE[-1] * 2)), ShapeError, "", r"0, whole\[-1\] \* 2 .* is -4, which", ([1, -2],)
    ),
    "eye": Bad(lambda f: f([N], T.eye(N)), ShapeError, "n", "^range .* n .* is -1, which is negative", (-1,)),
    "reshape": Bad(lambda f: f([X, N], X.reshape((N, -6))), ShapeError, "x", "axis 1 is -6|negative"),
    "reshape at the call": Bad(lambda f: f([X, N], X.reshape((N, 2))), ShapeError, "x n", "0, n .* is -3", (A, -3)),
    "elements that no number counts": Bad(
        lambda f: f([V, N], V.reshape((N, N)).sum()), ShapeError, "v", "more elements than there can be", ([], 2**32)
    ),
    "a vector's size": Bad(lambda f: f([V, N], T.broadcast_to(V, (N,))), ShapeError, "v", "1, not -1", ([1.0], -1)),
    "an update of another size": Bad(
        lambda f: f([V], [], updates=[(HELD, V)]), ShapeError, "v", "update of held.* size 1, not 3", ([1.0],)
    ),
    "a range without a step": Bad(lambda f: f([N], T.arange(0, 5, N)), ShapeError, "n", "step, n .*, is 0", (0,)),
    "a slice without a step": Bad(lambda f: f([V, N], V[::N]), ShapeError, "n", "step, n .*, is 0", ([1.0], 0)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("case", GRAPHS.values(), ids=GRAPHS)
def test_sizes(case: Bad, mode: str) -> None:
    check(case, mode)


# Indices ------------------------------------------------------------------------------------------------------------

OUTSIDE = "index {} .*out of bounds for axis {}"

INDICES = {
    "of a known size": Bad(lambda f: f([FIXED], FIXED[2]), IndexOutOfBounds, "fixed", "index 2.*size 2"),
    "of a constant": Bad(lambda f: f([N], T.constant([1, 2, 41])[-4]), IndexOutOfBounds, "", f"x -4.*{FILE}.*size 3"),
    "a number": Bad(lambda f: f([X], X[2]), IndexOutOfBounds, "x", "index 2 is out.*axis 0, whose size is 2", (A,)),
    "a negative number": Bad(lambda f: f([X], X[:, -4]), IndexOutOfBounds, "x", "index -4 .*axis 1.*size is 3", (A,)),
    "a scalar": Bad(lambda f: f([X, I], X[I]), IndexOutOfBounds, "x i", "index 2, i .*axis 0, whose size is 2", (A, 2)),
    "a negative scalar": Bad(
        lambda f: f([X, I], X[:, I]), IndexOutOfBounds, "x i", "index -4, i .*axis 1, which begins at -3", (A, -4)
    ),
    "the least scalar": Bad(lambda f: f([X, I], X[I]), IndexOutOfBounds, "x i", "index -9223", (A, -(2**63))),
    "the greatest scalar": Bad(lambda f: f([X, I], X[I]), IndexOutOfBounds, "x i", "index 9223", (A, 2**63 - 1)),
    "of nothing": Bad(lambda f: f([X], X[0]), IndexOutOfBounds, "x", "index 0 .*whose size is 0", (A[:0],)),
    "an array": Bad(lambda f: f([X, IDX], X[IDX]), IndexOutOfBounds, "x idx", "index 7 of idx.*axis 0", (A, [0, 7])),
    "a negative in an array": Bad(
        lambda f: f([X, IDX], X[:, IDX]), IndexOutOfBounds, "x idx", "index -4 of idx.*axis 1.*size is 3", (A, [0, -4])
    ),
    "two arrays": Bad(
        lambda f: f([X, IDX, BYTES], X[BYTES, IDX]), IndexOutOfBounds, "x idx", "index 3 of idx.*axis 1", (A, [3], [1])
    ),
    "an array of bytes": Bad(lambda f: f([X, BYTES], X[BYTES]), IndexOutOfBounds, "x bytes", "255", (A, [255])),
    "one array of two axes": Bad(
        lambda f: f([X, V, IDX], X[IDX].sum() + V[IDX].sum()),
        IndexOutOfBounds, "v idx", "index 1 of idx", (A, [1.0], [1]),
    ),
    "of the first of two axes": Bad(
        lambda f: f([X, V, IDX], X[IDX].sum() + V[IDX].sum()),
        IndexOutOfBounds, "x idx", "index 2 of idx", (A, [1.0, 1.0, 1.0], [2]),
    ),
    "a range that is longer than the axis": Bad(
        lambda f: f([V, N], V[T.arange(N)]), IndexOutOfBounds, "v", "index 3 .*size is 3", ([1.0, 2.0, 3.0], 4)
    ),
    "take": Bad(lambda f: f([X, IDX], T.take(X, IDX)), IndexOutOfBounds, "x idx", "index 6.*size is 6", (A, [6])),
    "set at a scalar": Bad(
        lambda f: f([X, I], T.set_subtensor(X[I], 0.0)), IndexOutOfBounds, "x i", "index 2, i.*size is 2", (A, 2)
    ),
    "inc at a number": Bad(lambda f: f([X], T.inc_subtensor(X[5], 0.0)), IndexOutOfBounds, "x", "index 5", (A,)),
    "set at an array": Bad(
        lambda f: f([X, IDX], T.set_subtensor(X[IDX], 0.0)), IndexOutOfBounds, "x idx", "index 7", (A, [0, 7])
    ),
    "inc at an array": Bad(
        lambda f: f([X, IDX], T.inc_subtensor(X[IDX], 1.0)), IndexOutOfBounds, "x idx", "index -3", (A, [0, -3])
    ),
    "a class": Bad(
        lambda f: f([X, IDX], T.nnet.categorical_crossentropy(T.nnet.softmax(X), IDX)), IndexOutOfBounds, "idx",
        "index 3 of idx.*axis 1.*size is 3", (A, [0, 3]),
    ),
    "what is multiplied by zero": Bad(lambda f: f([X, IDX], X[IDX] * 0), IndexOutOfBounds, "x idx", "", (A, [9])),
    "a part that is cut off": Bad(lambda f: f([X, IDX], X[IDX][:1]), IndexOutOfBounds, "x idx", "", (A, [0, 9])),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("case", INDICES.values(), ids=INDICES)
def test_indices(case: Bad, mode: str) -> None:
    check(case, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
def test_a_failing_line_is_named_with_its_operands(mode: str) -> None:
    """Beside the variables' lines stands the line of the operation."""
    x, y = T.dmatrices("x", "y")
    here = sys._getframe().f_lineno
    for offset, output in enumerate([
        x + y,
        x[5],
        x.reshape((4, 2)),
        T.dot(x, y),
    ], 2):  # fmt: skip
        with pytest.raises(GraphcError, match=rf"^\w+ \({FILE}:{here + offset}\).* x \({FILE}:{here - 1}\)"):
            graphc.function([x, y], [output, y], mode=mode)(A, A[:1])


@pytest.mark.parametrize("mode", ALL_MODES)
def test_equal_steps_are_named_by_the_lines_of_their_own(mode: str) -> None:
    """A step that was written before, in another graph or in this one, lends its lines to nobody."""
    calls, here = [], sys._getframe().f_lineno
    for number in range(2):
        at, table = T.lvector("at"), T.dvector("table")
        if number:
            rows = graphc.scan(lambda k, table: T.exp(table[k]), at, None, table)[0]
        else:
            rows = graphc.scan(lambda k, table: T.exp(table[k]), at, None, table)[0]
        calls.append(graphc.function([at, table], rows, mode=mode))
    for call, line in zip(calls, (here + 6, here + 4), strict=True):
        blamed = rf"^subtensor \({FILE}:{line}\) of table \({FILE}:{here + 2}\): index 9, at\[t\] \({FILE}:{line}\)"
        with pytest.raises(IndexOutOfBounds, match=blamed):
            call(np.array([0, 9]), np.ones(3))


# Functions ----------------------------------------------------------------------------------------------------------

MADE = {
    "an input left out": Bad(lambda f: f([X], X + Y), MissingInputError, "y", "not an input"),
    "an input whose size is needed": Bad(
        lambda f: f([X], X + Y.shape[0]), MissingInputError, "y", "the size of y along axis 0, but y .* is not an input"
    ),
    "an input twice": Bad(lambda f: f([X, X], X), UnusedInputError, "x", "twice"),
    "an input too many": Bad(lambda f: f([X, LONELY], X), UnusedInputError, "lonely", "on_unused_input='ignore'"),
    "an input that is given": Bad(lambda f: f([X, Y], X * 2, givens={X: Y}), UnusedInputError, "x", "do not use x"),
    "two too many": Bad(lambda f: f([X, LONELY, FORGOTTEN], X), UnusedInputError, "lonely forgotten", "do not use"),
    "a constant input": Bad(lambda f: f([T.constant(1.0)], X), GraphTypeError, "", "1.0 cannot be an input"),
    "a shared input": Bad(lambda f: f([W], W), GraphTypeError, "w", "shared.*givens"),
    "a name for an input": Bad(lambda f: f(["x"], X), GraphTypeError, "", "'x'"),
    "no inputs": Bad(lambda f: f(None, W), GraphTypeError, "", "inputs.*None"),
    "text for inputs": Bad(lambda f: f("x", W), GraphTypeError, "", "inputs.*'x'"),
    "text for an output": Bad(lambda f: f([X], "x"), GraphTypeError, "", "'x'"),
    "an object for an output": Bad(lambda f: f([X], [X, None]), GraphTypeError, "", "None"),
    "numbers for keys": Bad(lambda f: f([X], {1: X}), GraphTypeError, "", "keys.*strings"),
    "a mode": Bad(lambda f: graphc.function([X], X, mode="quick"), GraphValueError, "", "'quick'.*compiled.*python"),
    "an answer to unused inputs": Bad(
        lambda f: f([X, Y], X, on_unused_input="shout"), GraphValueError, "", "'shout'.*'raise', 'warn' or 'ignore'"
    ),
    "an update of an input": Bad(lambda f: f([X], X, updates=[(X, X + 1)]), UpdateError, "x", "only a shared"),
    "an update of a name": Bad(lambda f: f([X], X, updates={"w": X}), UpdateError, "", "only a shared.*'w'"),
    "an update of another dtype": Bad(
        lambda f: f([], [], updates=[(COUNTS, COUNTS * 0.5)]), UpdateError, "counts", "int32.*float64"
    ),
    "an update by a float": Bad(lambda f: f([], [], updates=[(COUNTS, 0.5)]), UpdateError, "counts", "int32.*float64"),
    "an update of another rank": Bad(lambda f: f([], [], updates=[(W, W.sum())]), UpdateError, "w", r"float64\[\]"),
    "an update of another size": Bad(
        lambda f: f([], [], updates=[(HELD, T.zeros(4))]), UpdateError, "held", "size 3 along axis 0.*4"
    ),
    "two updates of one": Bad(lambda f: f([], [], updates=[(W, W), (W, W + 1)]), UpdateError, "w", "updated twice"),
    "an update without a value": Bad(lambda f: f([], [], updates=[W]), GraphTypeError, "w", "pairs"),
    "one pair for updates": Bad(lambda f: f([], [], updates=(W, W + 1)), GraphTypeError, "w", "pairs"),
    "a number for updates": Bad(lambda f: f([], [], updates=5), GraphTypeError, "", "updates.*5"),
    "a given of another dtype": Bad(
        lambda f: f([], N, givens={N: T.constant(1.5)}), GraphTypeError, "n", "1.5 of rank 0 and type float64"
    ),
    "a given of another rank": Bad(lambda f: f([V], X, givens={X: V}), GraphTypeError, "x v", "rank 1 .* of rank 2"),
    "a given of another size": Bad(
        lambda f: f([], FIXED, givens={FIXED: np.ones((2, 4))}), GraphTypeError, "fixed", "2, 4"
    ),
    "a given for a name": Bad(lambda f: f([X], X, givens={"x": X}), GraphTypeError, "", "givens.*'x'"),
    "givens that are no pairs": Bad(lambda f: f([X], X, givens=[X]), GraphTypeError, "x", "givens.*pairs"),
    "givens in a circle": Bad(
        lambda f: f([], X + Y, givens={X: Y + 1, Y: X + 1}), CycleError, "x y", "cycle: (x|y) .* -> "
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("case", MADE.values(), ids=MADE)
def test_functions(case: Bad, mode: str) -> None:
    check(case, mode)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_an_unused_input_can_be_warned_of_or_ignored(mode: str) -> None:
    with pytest.warns(UserWarning, match=rf"do not use lonely \({FILE}:{LINES['lonely']}\)") as warned:
        call = graphc.function([X, LONELY], X * 2, mode=mode, on_unused_input="warn")
    assert [Path(warning.filename).name for warning in warned] == [FILE]
    np.testing.assert_array_equal(call(A, A), A * 2)
    for ignoring in (graphc.function([X, LONELY], X * 2, mode=mode, on_unused_input="ignore"), None):
        with options.change(on_unused_input="ignore"):
            call = ignoring or graphc.function([X, LONELY], X * 2, mode=mode)
        np.testing.assert_array_equal(call(A, A), A * 2)
        with pytest.raises(ArgumentError, match="lonely .*missing"):
            call(A)


# Gradients and nodes ------------------------------------------------------------------------------------------------

BUILT = {
    "a cost that is no scalar": Bad(lambda f: graphc.grad(X, X), GradientError, "x", "scalar"),
    "a cost that is a number": Bad(lambda f: graphc.grad(3.0, X), GradientError, "", "3.0"),
    "a cost that is not there": Bad(lambda f: graphc.grad(None, X), GradientError, "", "cost"),
    "what the cost is without": Bad(lambda f: graphc.grad(X.sum(), Y), DisconnectedInputError, "y", "does not depend"),
    "one of two": Bad(lambda f: graphc.grad(X.sum(), [X, W]), DisconnectedInputError, "w", "does not depend"),
    "by a name": Bad(lambda f: graphc.grad(X.sum(), "x"), GraphTypeError, "", "'x' is not"),
    "a strange option": Bad(
        lambda f: graphc.grad(X.sum(), Y, disconnected_inputs="drop"),  # type: ignore[call-overload]
        GradientError, "", "'drop'.*'raise', 'warn'",
    ),
    "sizes in a vector": Bad(lambda f: T.ones(WHOLE), GraphTypeError, "whole", r"length of whole.*\(n\[0\], n\[1\]\)"),
    "a vector among sizes": Bad(lambda f: T.ones((WHOLE, 4)), GraphTypeError, "whole", r"a size .* not whole .*int32"),
    "an element that is no size": Bad(lambda f: T.ones((V[0], 4)), GraphTypeError, "", r"a size .*v\[0\] .*float64"),
    "truth": Bad(lambda f: 1 if X > 0 else 2, GraphTypeError, "", f"{FILE}.*no truth value.*where"),
    "length": Bad(lambda f: len(X), GraphTypeError, "x", "no length"),
    "iteration": Bad(lambda f: list(X), GraphTypeError, "x", "cannot be iterated over"),
    "a sum of known sizes": Bad(lambda f: FIXED + np.ones((2, 4)), ShapeError, "fixed", "3.*4"),
    "an unknown dtype": Bad(lambda f: T.matrix("m", dtype="float16"), GraphTypeError, "", "float16"),
    "an unknown name for floats": Bad(lambda f: X.astype("single precision"), GraphTypeError, "", "single precision"),
    "a shared nothing": Bad(lambda f: graphc.shared(None, "lost"), GraphTypeError, "", "lost: None"),
    "another rank": Bad(lambda f: W.set_value([1.0]), GraphTypeError, "w", "1 axes, the variable 2"),
    "another static size": Bad(lambda f: HELD.set_value(np.ones(4)), ShapeError, "held", "size 4.*has 3"),
    "no value": Bad(lambda f: X.eval(), MissingInputError, "x", "not an input"),
    "a value of another rank": Bad(lambda f: X.eval({X: [1.0]}), GraphTypeError, "x", r"shape \(1,\)"),
    "a value by name": Bad(lambda f: X.eval({"x": A}), GraphTypeError, "", "'x'"),  # type: ignore[dict-item]
    "an option": Bad(lambda f: setattr(options, "mode", "quick"), GraphcError, "", "mode='quick'.*compiled"),
    "an option that is not": Bad(lambda f: setattr(options, "speed", 2), GraphcError, "", "'speed'.*floatX"),
}  # fmt: skip


@pytest.mark.parametrize("case", BUILT.values(), ids=BUILT)
def test_what_is_built(case: Bad) -> None:
    check(case, "interpreted")


def test_a_disconnected_gradient_can_be_warned_of_or_ignored() -> None:
    with pytest.warns(UserWarning, match=rf"does not depend on y \({FILE}:{LINES['y']}\)") as warned:
        zeros = graphc.grad(X.sum(), Y, disconnected_inputs="warn")
    assert [Path(warning.filename).name for warning in warned] == [FILE]
    assert zeros is graphc.grad(X.sum(), Y, disconnected_inputs="ignore")
    assert not zeros.eval({Y: A}).any()


def test_an_op_without_a_derivative_is_named() -> None:
    @graphc.op()
    def rank_of(x: Any) -> Any:
        return x.argsort(kind="stable").astype(x.dtype)

    with pytest.raises(GradientError, match=rf"rank_of has no derivative.*{FILE}"):
        graphc.grad(rank_of(V).sum(), V)


def test_a_cycle_is_named() -> None:
    arrows = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
    with pytest.raises(CycleError, match=r"cycle: \w -> \w -> \w -> \w") as caught:
        toposort(["d"], arrows.__getitem__)
    members = str(caught.value).partition(": ")[2].split(" -> ")
    assert members[0] == members[-1] and set(members) == set("abc")
    assert toposort(["a"], {"a": ["b", "b"], "b": []}.__getitem__) == ["b", "a"]


# What failed has changed nothing ------------------------------------------------------------------------------------


def updates_of(u: Node, w: Node) -> dict[str, list[tuple[Node, Node]]]:
    """Updates of which each can fail, by index or size, among some that cannot."""
    return {
        "in the last update": [(u, u + 1), (w, T.inc_subtensor(w[IDX], 1.0))],
        "in the first update": [(w, T.set_subtensor(w[IDX], 1.0)), (u, u * 2)],
        "in two updates": [(u, u + w[IDX].sum()), (w, w * 2 + u.sum())],
        "in an output": [(u, u + 1), (w, w * 2)],
        "by a scalar": [(u, u + 1), (w, T.set_subtensor(w[IDX[0]], 1.0))],
        "by a size": [(u, u + 1), (w, w + T.zeros(IDX.shape[0]))],
        "by a static size": [(u, u - 1), (w, T.concatenate([w[:2], T.cast(IDX, "float64")]))],
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("place", updates_of(V, V))
def test_a_failing_call_changes_nothing(place: str, mode: str) -> None:
    u = graphc.shared(np.arange(4.0), "u")
    w = graphc.shared(np.arange(3.0), "w", shape=(3,) if place == "by a static size" else None)
    outputs = [w[IDX].sum(), u] if place == "in an output" else [u.sum()]
    call = graphc.function([IDX], outputs, updates=updates_of(u, w)[place], mode=mode, on_unused_input="ignore")
    wrong = [1, 0, 2, 5] if place == "by a static size" else [7, 0]
    for _ in range(2):
        before = [u.get_value(borrow=True), w.get_value(borrow=True)]
        copies = [array.copy() for array in before]
        with pytest.raises((IndexOutOfBounds, ShapeError), match=rf"({FILE}:\d+).*({FILE}:\d+)?"):
            call(wrong)
        for array, copy, variable in zip(before, copies, (u, w), strict=True):
            np.testing.assert_array_equal(variable.get_value(borrow=True), copy)
            np.testing.assert_array_equal(array, copy)
        call([2] if place == "by a static size" else [0, 1, 2])
        assert not np.array_equal(u.get_value(), copies[0])


@graphc.op
def picky(x: Any) -> Any:
    """Twice x, which it does not take above 2."""
    if x.max() > 2:
        raise ZeroDivisionError("that is too much")
    return 2 * x


@graphc.op()
def misshapen(x: Any) -> Any:
    """Not what an op of this type computes."""
    return x[:1]


@graphc.op()
def greedy(x: Any) -> Any:
    """An op that would change its argument."""
    x[0] = 7
    return x


@pytest.mark.slow
@pytest.mark.parametrize("mode", ALL_MODES)
def test_what_an_op_of_the_user_raises_says_where(mode: str) -> None:
    w = graphc.shared(np.zeros(3), "w")
    for op, error in [(picky, ZeroDivisionError), (misshapen, GraphTypeError), (greedy, ValueError)]:
        result = op(V)
        call = graphc.function([V], result.sum(), updates=[(w, w + 1)], mode=mode)
        value = np.arange(4.0)
        with pytest.raises(error) as caught:
            call(value)
        assert type(caught.value) is error
        assert any(re.search(rf"{op.__name__}\(v\) \({FILE}:\d+\)", note) for note in caught.value.__notes__)
        np.testing.assert_array_equal(w.get_value(), np.zeros(3))
        np.testing.assert_array_equal(value, np.arange(4.0))
    call = graphc.function([V], picky(V).sum(), mode=mode)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="too much"):
            call([3.0])
        assert call([1.0, 2.0]) == 6.0


DEEP = """
    import numpy as np
    import graphc
    import graphc.tensor as T

    v, idx = T.dvector("v"), T.lvector("idx")
    call = graphc.function([v, idx], v[idx][idx].max())
    try:
        call(np.ones(2), np.array([1, 10**15]))
    except IndexError as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
def test_indices_of_indices_are_checked_before_they_are_used() -> None:
    program = [sys.executable, "-c", textwrap.dedent(DEEP)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "IndexOutOfBounds\n"), done.stderr


# Sizes that no memory holds -----------------------------------------------------------------------------------------

HUGE = """
    import resource, sys
    import numpy as np
    import graphc
    import graphc.tensor as T

    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    n, v = T.lscalar("n"), T.dvector("v")
    w = graphc.shared(np.ones(3), "w")
    cases = [
        (T.zeros((n,)), 2**61), (T.zeros((n,)), 2**44), (T.zeros((n, n)), 2**40), (T.ones((n, n)) + 1, 2**32),
        (T.zeros((n, n)), 2**62), (T.arange(n), 2**62), (T.arange(n), 2**45), (T.eye(n), 2**31),
        (T.zeros((n, n, n, n)), 2**16), (T.zeros((n, 0, n)), 2**62),
        (T.dot(T.outer(T.arange(n), T.arange(n)), T.eye(n)).sum(), 2**24),
        (T.tile(w, n), 2**50),
    ]
    for mode in sys.argv[1:]:
        for output, size in cases:
            call = graphc.function([n], output, updates=[(w, w + 1)], mode=mode, name="huge")
            before = w.get_value()
            try:
                found = call(size)
                print(mode, "result", found.shape)
            except MemoryError as error:
                print(mode, "MemoryError", (w.get_value() == before).all(), error)
            else:
                w.set_value(before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the operating system")
@pytest.mark.parametrize("mode", ALL_MODES)
def test_huge_sizes_are_memory_errors(mode: str) -> None:
    program = [sys.executable, "-c", textwrap.dedent(HUGE), mode]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 12
    assert [line.split()[1:3] for line in lines] == [["MemoryError", "True"]] * 12


def test_a_bad_environment_variable_is_named() -> None:
    program = [sys.executable, "-c", "import graphc"]
    for name, value, text in [
        ("MODE", "quick", "option mode='quick': must be one of compiled, interpreted, python"),
        ("CACHE_MEGABYTES", "many", "option cache_megabytes='many': must be a whole number, 1 or more"),
        ("FAST_MATH", "maybe", "option fast_math='maybe': must be true or false"),
    ]:
        environment = {**os.environ, f"GRAPHC_{name}": value}
        done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode != 0
        assert text in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_an_empty_environment_variable_counts_for_nothing() -> None:
    program = [sys.executable, "-c", "import graphc; print(graphc.options.mode, graphc.options.cache_dir)"]
    environment = {**os.environ, "GRAPHC_MODE": "", "GRAPHC_CACHE_DIR": ""}
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    mode, folder = done.stdout.split()
    assert (mode, os.path.basename(folder)) == ("compiled", "graphc")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_indices_of_uint64_do_not_wrap(mode: str) -> None:
    x, many, one = T.dvector("x"), T.vector("many", dtype="uint64"), T.scalar("one", dtype="uint64")
    value = np.arange(4.0)
    gathered = graphc.function([x, many], x[many], mode)
    np.testing.assert_array_equal(gathered(value, np.array([3, 0], "uint64")), [3.0, 0.0])
    for index in (2**63, 2**64 - 1, 4):
        with pytest.raises(IndexOutOfBounds, match="many"):
            gathered(value, np.array([0, index], "uint64"))
        for output in (x[one], T.set_subtensor(x[one], 0.5), T.take(x, one)):
            with pytest.raises(IndexOutOfBounds, match="one"):
                graphc.function([x, one], output, mode)(value, np.uint64(index))


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_sizes_do_not_wrap(mode: str) -> None:
    n, m = T.lscalar("n"), T.lscalar("m")
    quadruple = graphc.function([n], T.zeros((n * 4,)), mode)
    assert quadruple(3).shape == (12,)
    for size in (2**61, 2**62, -(2**62)):
        with pytest.raises(ShapeError, match="axis 0"):
            quadruple(size)
    table = graphc.function([n, m], T.zeros((n * m,)), mode)
    assert [table(*sizes).shape for sizes in ((3, 4), (0, 5), (5, 0), (0, 2**62))] == [(12,), (0,), (0,), (0,)]
    for sizes in ((2**32, 2**32), (2**33, 2**31), (3, -4)):
        with pytest.raises(ShapeError, match="axis 0"):
            table(*sizes)


def test_an_op_of_a_name_without_a_value_says_which() -> None:
    def define() -> object:
        @graphc.op()
        def scaled(x: object) -> object:
            return x * factor  # type: ignore[operator]

        factor = 2.0
        return scaled, factor

    with pytest.raises(GraphTypeError, match=r"scaled uses factor, which has no value yet"):
        define()


def test_lines_of_notebooks_are_told_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython compiles each cell under the name of a file that nobody has."""
    file = os.path.join("ipykernel_7", "4174971289.py")
    names = {file: ("Cell", "In[3]")}
    compiler = SimpleNamespace(format_code_name=names.get)
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler))
    program = compile("def f(x):\n    return x if x > 0 else -x\ngraphc.jit(f).lower(1.0)", file, "exec")
    for module, line in ((notebook, "(cell 3, line 2)"), (SimpleNamespace(), "(4174971289.py:2)")):
        monkeypatch.setitem(sys.modules, "IPython", module)
        with pytest.raises(GraphTypeError) as raised:
            exec(program, {"graphc": graphc})
        assert str(raised.value).startswith(f"x > 0 {line} is symbolic")
        assert line.replace("2)", "1)") in str(raised.value)  # that of the function
        with pytest.raises(ArgumentError) as wrong:
            exec(compile("x = T.dvector('x')\nT.sum(x, axes=0)", file, "exec"), {"T": T})
        assert f"called at {line[1:-1]}: there is no argument 'axes'" in str(wrong.value)
