"""What a program asks of tensors, and writes to them: true answers, or an error with the line; in functions of arrays
that are traced, where sizes are at hand, and in graphs as Theano's programs build them."""
# ruff: noqa: C416, E501, E711, E712, PLR0124, PLR1714, PLW0108, PLW0177, RUF005, SIM201, UP031 - programs as people write them

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphcError, GraphTypeError

X, Y = T.matrix("X"), T.matrix("Y")
N, M = X.shape[0], Y.shape[0]
LINE = r"test_questions\.py:\d+"

UNKNOWN: list[Callable[[Any], Any]] = [
    lambda n: n == 3, lambda n: n != 3, lambda n: n in (2, 3), lambda n: n not in [4], lambda n: not n, bool,
    lambda n: n * 2 == 4, lambda n: n - 1 == 0, lambda n: n < 3, lambda n: n >= 1, lambda n: 1 < n < 5, lambda n: n - 1,
    lambda n: (2, n) == (2, 3), lambda n: [n] == [3], lambda n: (1, 2, 3).index(n), lambda n: [3, 4].count(n),
    lambda n: any(n == k for k in (3, 4)), lambda n: all(n != k for k in (3, 4)), lambda n: max(n, 3), lambda n: min(3, n),
    lambda n: sorted([n, 3]), range, lambda n: [1, 2, 0, 3][n], lambda n: [0] * n, int, float, math.sqrt,
    lambda n: "ab"[:n], lambda n: n == 3 or n == 4, lambda n: n and 3 - n, lambda n: n == np.int64(3), lambda n: n == 3.0,
    lambda n: {True: 1, False: 0}[bool(n == 3)], lambda n: n == True, lambda n: f"{n:3d}" == "  3", lambda n: divmod(7, n) == (2, 1),
]  # fmt: skip
"""Questions of a size whose answer a call must give."""

NUMBERS: list[Callable[[Any], Any]] = [
    lambda n: "%d" % n == "3", lambda n: 7 % n == 1, lambda n: {3: 1}.get(n), lambda n: {3: 0, 4: 1}[n], lambda n: n in {3, 4},
    lambda n: len({n, 3}) == 1, lambda n: hash((n,)) == hash((3,)), lambda n: functools.cache(lambda n: n)(n) == 3,
    lambda n: {3}.discard(n), lambda n: n / 2 > 1, lambda n: int(n / 2) == 1, lambda n: n ** 2 == 9, lambda n: np.log2(n + 1) == 2,
    lambda n: operator.index(n) == 3, lambda n: (n > 2) & (n < 4), lambda n: (n == 3) == True, lambda n: n < 2.5,
    lambda n: n != math.nan, lambda n: n < math.nan, lambda n: n == 10**30, lambda n: (n % 3, n // 3) == (0, 1),
    lambda n: np.zeros(n).sum() == n, lambda n: np.array([n, 2]).max() == 3, lambda n: -n < -2, lambda n: abs(n - 4) == 1,
    lambda n: len([0] * n) == 3, lambda n: len(range(n)) == 4, lambda n: math.sqrt(n) > 1.5, lambda n: sorted([n, 3])[0] == 3,
]  # fmt: skip
"""Others, in which a size of a graph is a tensor as others."""

SIZES = [*UNKNOWN, *NUMBERS]


@pytest.mark.parametrize("place", range(len(SIZES)))
def test_what_a_size_is_is_answered_for_arrays(place: int) -> None:
    """By jit and its kin, in loops and branches, within each other; with other sizes by the same function."""
    question = SIZES[place]

    def plain(x: Any) -> Any:
        return x * 10.0 if question(x.shape[0]) else x * 1.0

    jitted, mapped, slope = graphc.jit(plain), graphc.vmap(plain), graphc.grad(lambda x: plain(x).sum())
    pair = graphc.value_and_grad(lambda x: plain(x).sum())
    scanned = graphc.jit(lambda rows: lax.scan(lambda c, x: (c, plain(x)), 0.0, rows)[1])
    chosen = graphc.jit(lambda p, x: lax.cond(p, plain, lambda x: x, x))
    ways: list[Callable[..., Any]] = [
        jitted,
        graphc.jit(lambda x: jitted(x)),
        lambda x: slope(x) * x,
        lambda x: pair(x)[1] * x,
        lambda x: mapped(np.stack([x, x]))[1],
        lambda x: scanned(np.stack([x, x]))[1],
        lambda x: chosen(True, x),
    ]
    with graphc.options.change(mode="interpreted"):
        for count in (3, 4, 0, 3):
            x = np.arange(1.0, count + 1)
            try:
                wanted = plain(x)
            except Exception as error:
                for way in ways:
                    with pytest.raises(type(error)):
                        way(x)
                continue
            for way in ways:
                npt.assert_array_equal(way(x), wanted)


@pytest.mark.parametrize("place", range(len(UNKNOWN)))
def test_what_a_size_is_is_never_made_up(place: int) -> None:
    """In a graph, for which no array is at hand."""

    def plain(x: Any) -> Any:
        return x * 10 if UNKNOWN[place](x.shape[0]) else x

    programs: list[Callable[[], Any]] = [
        lambda: plain(X),
        lambda: graphc.jit(plain)(X),
        lambda: lax.scan(lambda c, x: (c, plain(x)), 0.0, X),
        lambda: graphc.scan(lambda x: plain(x), [X]),
    ]
    for program in programs:
        with pytest.raises(GraphcError, match=LINE):
            program()


TRUE: list[Callable[[Any], Any]] = [
    lambda n: n != -1, lambda n: n >= 0, lambda n: n > -1, lambda n: n >= 0, lambda n: n + 1, lambda n: n + 1 > n,
    lambda n: n == n, lambda n: n <= n, lambda n: n != n + 1, lambda n: n != 2.5, lambda n: n is not None,
    lambda n: n != None, lambda n: n != "3", lambda n: (n, 2) != (n, 3), lambda n: (n, 2) == (n, 2), lambda n: n in [n, 3],
    lambda n: not n == -1, lambda n: sum(k == -1 for k in (n * 2, -1)) == 1, lambda n: n * n >= 0, lambda n: -1 not in (n,),
    lambda n: n - n == 0,
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(TRUE)))
def test_what_bounds_decide_is_answered(place: int) -> None:
    with graphc.options.change(mode="interpreted"):
        found = graphc.jit(lambda x: x * 10 if TRUE[place](x.shape[0]) else x)(np.ones(3))
    npt.assert_array_equal(found, 10 * np.ones(3))
    assert bool(TRUE[place](N)) is True


def test_what_a_slice_may_have_at_most_is_known() -> None:
    first = X[:3].shape[0]
    assert isinstance(first == 4, bool) and not first == 4 and not first > 3 and first <= 3 and first != 7
    with pytest.raises(GraphTypeError, match=r"has no truth value .*T\.eq.*x\.type"):
        bool(first == 3)


def test_shapes_are_compared_as_tuples() -> None:
    known = T.matrix("known", shape=(3, 2))
    half = T.tensor("float64", (3, None), "half")
    assert known.shape == (3, 2) and known.shape != (3, 3) and not known.shape == [3, 3]
    assert half.shape != (4, 2) and half.shape != (3,) and half.shape[0] == 3 and half.shape[0] != 4
    assert X.shape == X.shape and X.shape != T.vector().shape and X.shape != (3,) and X.shape != (3, -1)
    for asked in (X.shape == Y.shape, X.shape == (3, 2), half.shape != (3, 2)):
        with pytest.raises(GraphTypeError, match=LINE):
            bool(asked)
    assert isinstance(T.eq(X.shape, Y.shape), T.Variable)


def test_variables_are_found_by_identity() -> None:
    assert X in [Y, X] and X not in [Y] and [Y, X].index(X) == 1 and {X: 1, Y: 2}[Y] == 2 and X in {X, Y}
    assert N in [M, N] and [M, N].index(N) == 1 and {N: 1, M: 2}[M] == 2 and N not in (M, M)
    assert [X, Y] == [X, Y] and [X, Y] != [Y, X] and not X == Y and X != Y and X == X
    assert X != None and X != "X" and X not in [None, "X"] and bool(X) and not (X == [])
    assert operator.eq(N, N)
    for asked in (lambda: N == M, lambda: (N, 2) == (M, 2), lambda: all(a == b for a, b in [(N, M)])):
        with pytest.raises(GraphTypeError, match=LINE):
            bool(asked())


def test_a_shape_is_a_tuple_in_a_function_of_arrays() -> None:
    def f(x: Any, xp: Any = jnp) -> Any:
        n, m = x.shape
        more = xp.zeros(x.shape + (2,)).shape, (1, *x.shape), x.shape * 2, x.shape[::-1], x.shape[:1] + (m,)
        sums = np.prod(x.shape), np.prod(x.shape[1:]), sum(x.shape), math.prod(x.shape), np.add(x.shape, 1)
        return (
            more,
            sums,
            len(x.shape),
            isinstance(x.shape, tuple),
            np.shape(x),
            xp.shape(x),
            n * x,
            x.reshape(x.shape),
        )

    traced = graphc.jit(f, mode="interpreted")
    for shape in ((2, 3), (4, 0), (1, 1)):
        x = np.ones(shape, "float32")
        got, wanted = graphc.trees.flatten(traced(x)), graphc.trees.flatten(f(x, np))
        assert len(got[0]) == len(wanted[0])
        for a, b in zip(got[0], wanted[0], strict=True):
            npt.assert_array_equal(a, b)
    assert graphc.jit(lambda x: x * x.shape.prod(), mode="interpreted")(np.ones(2))[0] == 2
    assert graphc.jit(f, mode="interpreted")(X)[0][2][0] == X.shape[0]


HASHED: list[Callable[[Any], Any]] = [
    lambda x: {x.sum(): 1}, lambda x: {True: 1, False: 2}[x.sum() > 0], lambda x: {1.0: 1}.get(x[0]),
    lambda x: {True: 1}.get(x.sum() == 3), lambda x: hash((x.shape[0], x[0])), lambda x: functools.cache(lambda n: n)(x[0] + len(x)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(HASHED)))
def test_a_number_that_is_not_known_is_not_looked_up(place: int) -> None:
    with pytest.raises(GraphTypeError, match=rf"a dict, a set or a cache .*{LINE}"):
        graphc.jit(HASHED[place]).lower(np.ones(3))


def test_what_is_traced_can_be_hashed_afterwards() -> None:
    kept: Any = []
    graphc.jit(lambda x: (kept.append(x.sum()), x * x.shape[0])[1], mode="interpreted")(np.ones(3))
    assert {kept[0]: 1}[kept[0]] == 1 and type(kept[0]).__name__ == "Node"


SHAPES: list[Callable[[Any], Any]] = [
    lambda x: len(x) == 3, lambda x: [row for row in x], lambda x: x.shape.index(3) == 0, lambda x: x.shape.count(3),
    lambda x: dict(zip("abc", x, strict=True)), lambda x: np.zeros(x.shape).sum() == 0, lambda x: x.shape == (3,), lambda x: x.size == 3,
    lambda x: {(3,): 1}.get(x.shape), lambda x: x.shape != x[1:].shape, lambda x: x[1:].shape == x[:2].shape, lambda x: x[:2].size == 2,
    lambda x: np.prod(x.shape) == 3, lambda x: x.shape[-1] == x.size, lambda x: x.T.shape == (3,), lambda x: np.shape(x) == (3,),
    lambda x: not x.shape[0], lambda x: np.full(x.size, 1.0).sum() == 3, lambda x: len([*x]) == 3, lambda x: np.squeeze(x).ndim,
    lambda x: max(k for k, row in enumerate(x)) == 2, lambda x: x[x > 0].ndim == 1, lambda x: np.size(x) == 3, lambda x: x.reshape(1, -1).shape == (1, 3),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_what_a_shape_is_is_answered(place: int) -> None:
    def plain(x: Any) -> Any:
        return x * 10 if SHAPES[place](x) else x

    with graphc.options.change(mode="interpreted"):
        traced = graphc.jit(plain)
        for count in (3, 1, 4, 0, 3):
            x = np.arange(1.0, count + 1)
            try:
                wanted = plain(x)
            except Exception as error:
                with pytest.raises(type(error)):
                    traced(x)
            else:
                npt.assert_array_equal(traced(x), wanted)


VALUES: list[Callable[[Any], Any]] = [
    lambda x: x.any(), lambda x: x.sum() == 3, lambda x: x[0] in (1.0, 2.0), lambda x: x == 1, lambda x: x == x + 1,
    lambda x: np.allclose(x, x), lambda x: np.array_equal(x, x + 1), lambda x: x.sum() != x.sum(), lambda x: sum(x),
    lambda x: float(x[0]), lambda x: x.tolist()[0] > 0, lambda x: int(x[0]), lambda x: random.shuffle(x), lambda x: np.array([x[0], 2]),
    lambda x: x.nonsense, lambda x: x in [x + 1], lambda x: x[0] == 1j, lambda x: x.item() == 1, lambda x: len(x[x > 0]),
    lambda x: x[x > 0].size == 3, lambda x: [row for row in x[x > 0]], lambda x: x.shape[0] == x.sum(), lambda x: sorted((x[0], len(x))),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_a_value_that_is_not_known_is_refused_with_the_line(place: int) -> None:
    """Where no arguments are at hand; a call of `jit` answers (test_value_questions.py)."""
    with pytest.raises(GraphcError, match=LINE):
        graphc.jit(lambda x: x if VALUES[place](x) else -x).lower(np.ones(3))


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_a_call_of_jit_tells_a_value_or_refuses_it(place: int) -> None:
    def plain(x: Any) -> Any:
        return x if VALUES[place](x) else -x

    traced = graphc.jit(plain, mode="interpreted")
    for x in (np.ones(3), -np.ones(3), np.zeros(1), np.array([2.0, 1.0]), np.ones(3)):
        try:
            found = traced(x)
        except GraphcError as error:
            if not re.search(LINE, str(error)):
                raise
        except (TypeError, ValueError, AttributeError):
            with pytest.raises((TypeError, ValueError, AttributeError)):
                plain(x)
        else:
            npt.assert_array_equal(found, plain(x))


def test_patterns_ask_too() -> None:
    def by_shape(x: Any) -> Any:
        match x.shape:
            case (n,):
                return x * n
            case (3, _):
                return x * 10
            case _:
                return x

    traced = graphc.jit(by_shape, mode="interpreted")
    npt.assert_array_equal(traced(np.ones(4)), 4 * np.ones(4))
    npt.assert_array_equal(traced(np.ones((2, 2, 2))), np.ones((2, 2, 2)))
    npt.assert_array_equal(traced(np.ones((3, 2))), 10 * np.ones((3, 2)))
    npt.assert_array_equal(traced(np.ones((4, 2))), np.ones((4, 2)))
    with pytest.raises(GraphTypeError, match=LINE):
        traced(X)


def test_sizes_are_written_where_numbers_are() -> None:
    def f(x: Any) -> Any:
        a, b, c = np.zeros(3, int), [0] * (x.size + 1), {}
        a[0], b[x.size], c[x.size] = x.shape[0], 5, 7
        return x * a[0] + b[3] + c[3]

    npt.assert_array_equal(graphc.jit(f, mode="interpreted")(np.ones(3)), f(np.ones(3)))


# --- writes -----------------------------------------------------------------------------------------------------------

WRITES = """
x[0] = 1 | x[...] = 1 | x[0] += 1 | x += 1 | x *= x | x @= x | x |= 1 | y -= 1 | x.sort() | x.fill(3) | x.partition(1) | x.flat = 1
x.put([0], 1) | x.itemset(0, 1) | x.resize((2,)) | x.shape = (3, 1) | x.flat[0] = 1 | x.real = 1 | x.real[0] = 1 | x.imag = 0
x.dtype = int | x.T[0] = 1 | x.strides = (8,) | x.setflags(write=False) | x.byteswap(True) | x.ravel()[0] = 1 | del x[0]
np.copyto(x, 1) | np.put(x, 0, 1) | np.place(x, x > 0, 1) | np.putmask(x, x > 0, 1) | np.add.at(x, 0, 1) | np.add(x, 1, out=x)
np.fill_diagonal(x[:, None], 1) | np.random.shuffle(x) | random.shuffle(x) | x.clip(0, 1, out=x) | np.sum(x, out=x[0])
a = own((2, 2)); a[0, 0] = x[0] | a = np.zeros((2, 2)); a[0, 0] = x | a = own(3); a[:] = x | z = x[0:2]; z += 1
a = own(3); a += x | a = own(3); np.add(a, x, out=a)
a = own(3) > 5; a[0] = x[0] > 0 | a = own(3); a.fill(x[0]) | a = own(3); a[x > 0] = 1
"""


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("text", [each.strip() for each in WRITES.strip().replace("\n", " | ").split(" | ")])
def test_writes_are_refused_with_the_line(text: str) -> None:
    scope: dict[str, Any] = {"np": np, "random": random, "own": np.random.default_rng(0).random}
    body = text.replace("; ", "\n    ")
    exec(compile(f"def f(x):\n    y = x\n    {body}\n    return x", "written.py", "exec"), scope)
    with pytest.raises(GraphcError, match=r"written\.py:\d+"):
        graphc.jit(scope["f"])(np.ones(3))


def test_numbers_may_be_added_to() -> None:
    def f(x: Any, k: Any) -> Any:
        total, n = 0.0, x.shape[0]
        total += x.sum()
        total *= 2
        n += 1
        k += 1
        return total + n + k

    assert graphc.jit(f, mode="interpreted")(np.ones(3), 2) == 13.0
    cumulated = graphc.jit(lambda x: lax.scan(_added, 0.0, x)[1], mode="interpreted")(np.ones(3))
    npt.assert_array_equal(cumulated, [1, 2, 3])


def _added(total: Any, x: Any) -> Any:
    total += x
    return total, total


def test_theanos_words_keep_their_meaning_in_graphs() -> None:
    ordered, filled, y = X.sort(), X.fill(3), X
    y += 1
    assert y is not X and ordered.ndim == filled.ndim == 2 and [X.sort(axis=0)][0].ndim == 2
    npt.assert_array_equal(ordered.eval({X: [[2.0, 1.0]]}), [[1.0, 2.0]])
    for text in (
        "X.sort()",
        "X.fill(2)",
        "X.sort(axis=0)",
        "X.shape = (2,)",
        "X.flat = 2",
        "X.partition(1)",
        "X.put(0, 1)",
    ):
        with pytest.raises(GraphcError, match=r"program\.py:1"):
            exec(compile(text, "program.py", "exec"), {"X": X})
    assert not hasattr(X, "partition") and not hasattr(X, "strides")


# --- dtypes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_answer_as_numpys(dtype: str) -> None:
    def facts(x: Any) -> Any:
        kinds = (np.floating, np.integer, np.signedinteger, np.unsignedinteger, np.bool_, np.float32, np.number)
        others = (
            *DTYPES,
            *map(np.dtype, DTYPES),
            *(np.dtype(name).type for name in DTYPES),
            float,
            int,
            bool,
            "f4",
            "d",
            "i8",
        )
        limits = np.finfo if np.issubdtype(x.dtype, np.floating) else np.iinfo
        return (
            [np.issubdtype(x.dtype, kind) for kind in kinds],
            [(x.dtype == other, x.dtype != other, other == x.dtype, x.dtype in (other,)) for other in others],
            (x.dtype.kind, x.dtype.itemsize, x.dtype.char, x.dtype.name, x.dtype.type, x.dtype.num, x.dtype.str),
            [np.result_type(x.dtype, other) for other in ("float32", np.int8, np.dtype("int64"))],
            (np.zeros(2, x.dtype).dtype, np.dtype(x.dtype), str(x.dtype), f"{x.dtype}"),
            None if dtype == "bool" else limits(x.dtype).max, np.can_cast(x.dtype, np.float64),
        )  # fmt: skip

    found: Any = []
    wanted = facts(np.zeros((2, 2), dtype))
    graphc.jit(lambda x: (found.append(facts(x)), x)[1], mode="interpreted")(np.zeros((2, 2), dtype))
    assert found[0] == wanted and facts(T.matrix(dtype=dtype)) == wanted


def test_a_dtype_is_a_name_in_graphs_and_numpys_in_functions_of_arrays() -> None:
    dtype = X.dtype
    assert dtype.startswith("float") and dtype + "" == "float64" and repr(dtype) == "'float64'" and "64" in dtype
    assert {"float64": 1}[dtype] == 1 and dtype in {"float64"} and dtype != "nonsense" and dtype != 3
    for copied in (pickle.loads(pickle.dumps(dtype)), copy.copy(dtype), copy.deepcopy(dtype)):
        assert copied == np.float64 and type(copied) is type(dtype)
    found: Any = []
    graphc.jit(lambda x: (found.append(x.dtype), x)[1], mode="interpreted")(np.zeros(2, "float32"))
    assert found[0] is np.dtype("float32") and {np.dtype("float32"): 1}[found[0]] == 1
    assert T.zeros(3, dtype=T.fvector().dtype).dtype == "float32" and T.cast(X, T.ivector().dtype).dtype == np.int32


@pytest.mark.parametrize(
    "question",
    [
        lambda n: [*range(n - 1)], lambda n: [1, 2, 3, 4, 5][n + 1 - 2], lambda n: float(n / 2), lambda n: f"{n * 2:3d}",
        lambda n: int(n // 2 * n), lambda n: "abcd"[: n - 1], lambda n: math.sqrt(n * n),
    ],
)  # fmt: skip
def test_numbers_that_follow_from_known_sizes_are_known_while_a_graph_is_built(question: Callable[[Any], Any]) -> None:
    """As those of sizes at hand are in a traced function; others are refused."""
    assert question(T.tensor("float64", (4,), "x").shape[0]) == question(4)
    with pytest.raises(GraphcError, match=LINE):
        question(T.dvector("x").shape[0])


class Refused(Exception):
    """An error of a program."""


def _sum_or_first(x: Any, y: Any) -> Any:
    try:
        return x + y
    except ValueError:
        return x * 10


def _product(x: Any, y: Any) -> Any:
    try:
        return x @ y
    except ValueError:
        return -x


def _both(x: Any, y: Any) -> Any:
    try:
        return np.concatenate([x, y])
    except ValueError as error:
        raise Refused("of one width") from error


def _sixth(x: Any) -> Any:
    try:
        return x[5]
    except IndexError:
        return x.sum()


def _pairs(x: Any) -> Any:
    try:
        return x.reshape(2, -1).sum(0)
    except ValueError:
        return x


def _three_times(x: Any, y: Any) -> Any:
    for start in range(3):
        try:
            x = x + y[start:]
        except ValueError:
            x = x - 1
    return x


CAUGHT = [
    (_sum_or_first, [((3,), (3,)), ((3,), (4,)), ((4,), (4,)), ((3,), (1,)), ((2,), (5,)), ((1,), (4,))]),
    (_product, [((2, 3), (3, 2)), ((2, 3), (2, 2)), ((2, 1), (3, 2))]),
    (_both, [((2, 3), (3, 3)), ((2, 3), (2, 2)), ((1, 2), (3, 2))]),
    (_sixth, [((9,),), ((3,),), ((6,),), ((2,),)]),
    (_pairs, [((4,),), ((3,),), ((8,),)]),
    (_three_times, [((3,), (3,)), ((3,), (4,)), ((3,), (5,)), ((2,), (4,))]),
]


@pytest.mark.parametrize(("function", "calls"), CAUGHT, ids=[function.__name__ for function, _ in CAUGHT])
def test_a_program_may_catch_errors_of_sizes(function: Any, calls: Any) -> None:
    jitted = graphc.jit(function)
    for shapes in (*calls, *calls):
        values = [np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes]
        try:
            wanted = function(*values)
        except Refused:
            with pytest.raises(Refused):
                jitted(*values)
        else:
            np.testing.assert_allclose(jitted(*values), wanted)
    assert len(jitted.variants()) <= len(calls) + 1
