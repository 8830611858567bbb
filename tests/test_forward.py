"""Values that are taken from where they were computed, and temporaries that nothing reads any more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from bounds import assert_within

import graphc
import graphc.tensor as T
from graphc.codegen.forward import forward_stores
from graphc.codegen.simplify import read_buffers, stored_buffers
from graphc.ir.loops import INDEX, Apply, Const, Expr, Let, Load, Loop, Set, Stmt, Store, Var, add

TURN, J, K, N = (Var(name, INDEX) for name in "ijkn")
TOTAL, GIVEN = Var("total", "float64"), Var("given", "float64")


def load(index: Expr, buffer: str = "row") -> Load:
    return Load(buffer, index, "float64")


def squared(value: Expr) -> Expr:
    return Apply("_0 * _0", (value,), "float64")


def added(value: Expr) -> Set:
    return Set(TOTAL, Apply("accumulate(_0, _1)", (TOTAL, value), "float64"))


def forwarded(*body: Stmt, temporaries: Sequence[str] = ("row",)) -> tuple[Stmt, ...]:
    return forward_stores([Loop(TURN, N, body)], temporaries, lambda name: name)


def test_a_row_that_only_its_own_turn_reads_is_not_written() -> None:
    stored = Store("row", TURN, squared(load(TURN, "x")))
    (loop,) = forwarded(stored, Let(K, TURN), added(load(K)))
    assert isinstance(loop, Loop)
    value = Var("value", "float64")
    assert loop.body == (Let(value, squared(load(TURN, "x"))), Let(K, TURN), added(value))


def test_a_row_that_is_read_elsewhere_stays() -> None:
    stored = Store("row", TURN, squared(load(TURN, "x")))
    kept = forward_stores(
        [Loop(TURN, N, (stored, added(load(TURN)))), Loop(J, N, (Store("out", J, load(J)),))],
        ["row"],
        lambda name: name,
    )
    assert stored_buffers(kept) == {"row", "out"}
    first, second = kept
    assert read_buffers([first]) == {"x"}
    assert read_buffers([second]) == {"row"}


@pytest.mark.parametrize(
    "between",
    [
        [Store("row", J, GIVEN)],
        [Loop(J, N, (Store("row", J, GIVEN),))],
        [Store("row", TURN, GIVEN), Store("row", add(TURN, Const("1", INDEX)), GIVEN)],
    ],
    ids=["another place", "all places", "two stores"],
)
def test_what_may_have_been_written_since_is_read(between: Sequence[Stmt]) -> None:
    result = forwarded(Store("row", TURN, squared(load(TURN, "x"))), *between, added(load(TURN)))
    assert "row" in read_buffers(result)


def test_an_index_that_changes_is_no_place() -> None:
    moving = Set(K, add(K, TURN))
    for index in (K, Load("table", TURN, INDEX)):
        result = forwarded(Store("row", index, squared(load(TURN, "x"))), moving, added(load(index)))
        assert "row" in read_buffers(result)


def test_a_sum_under_way_is_taken_as_it_was() -> None:
    result = forwarded(Store("row", TURN, TOTAL), added(GIVEN), Store("out", TURN, load(TURN)))
    (loop,) = result
    assert isinstance(loop, Loop)
    value = Var("value", "float64")
    assert loop.body == (Let(value, TOTAL), added(GIVEN), Store("out", TURN, value))


def test_results_are_written_whether_they_are_read_or_not() -> None:
    result = forwarded(Store("out", TURN, squared(load(TURN, "x"))), added(load(TURN, "out")))
    assert stored_buffers(result) == {"out"}


def test_a_loop_that_only_filled_an_unread_row_goes() -> None:
    assert forwarded(Let(K, TURN), Store("row", K, GIVEN)) == ()
    assert len(forwarded(Store("row", TURN, GIVEN), Store("out", TURN, GIVEN))) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_not_kept(dtype: str) -> None:
    """Deviations are kept for the second pass over a row; what is made of them there is used at once."""
    x = T.matrix("x", dtype=dtype)
    apart = x - x.mean(axis=1, keepdims=True)
    normal = apart / T.sqrt(T.sqr(apart).mean(axis=1, keepdims=True))
    outputs = [T.exp(normal), (normal * x).sum(axis=1), T.sqr(normal).sum(axis=1)]
    f = graphc.function([x], outputs)
    rng = np.random.default_rng(2)
    for shape in ((1, 1), (3, 255), (40, 300), (0, 5), (4, 0)):
        value = rng.normal(size=shape).astype(dtype)
        with np.errstate(all="ignore"):
            assert_within(f(value), outputs, {x: value})


def test_distances_between_points_write_one_row_for_their_exponentials() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    energy = T.exp(-0.5 * ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)).sum()
    f = graphc.function([x, y], [energy, graphc.grad(energy, x)])
    assert f.source.count(" exp(") == 1
    after = f.source[f.source.index(" exp(") :]
    assert after[: after.index("for j in")].count("] = ") == 1
