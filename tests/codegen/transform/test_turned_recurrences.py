"""Recurrences of minima and maxima: the numbers of NumPy's loops, of NaN, infinities and zeros of both signs too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as gnp
import graphc.tensor as T
from graphc import lax
from graphc.arrays.numerics import maximum, minimum

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-300, 2.0**53, -3.0]
EXTREMES = {"minimum": minimum, "maximum": maximum}


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, -1e-320, -3])
@pytest.mark.parametrize("which", EXTREMES)
def test_tables(which: str, number: float) -> None:
    rng = np.random.default_rng(7)

    def filled(rows: Any, columns: Any) -> Any:
        def row(i: Any, table: Any) -> Any:
            def cell(j: Any, table: Any) -> Any:
                extreme = getattr(gnp, which)
                near = extreme(table[i, j + 1], table[i + 1, j]) + number
                return table.at[i + 1, j + 1].set(extreme(near, table[i, j] + rows[i] * columns[j]))

            return lax.fori_loop(0, columns.shape[0], cell, table)

        table = gnp.zeros((rows.shape[0] + 1, columns.shape[0] + 1)).at[0, 1:].set(columns).at[1:, 0].set(rows)
        return lax.fori_loop(0, rows.shape[0], row, table)

    native = graphc.jit(filled)
    extreme = EXTREMES[which]
    for shape in ((40, 50), (1, 3), (3, 0)):
        rows, columns = (rng.choice(SPECIAL, size=length) for length in shape)
        found = native(rows, columns)
        table = np.zeros((shape[0] + 1, shape[1] + 1))
        table[0, 1:], table[1:, 0] = columns, rows
        with np.errstate(all="ignore"):
            for i, j in np.ndindex(shape):
                near = extreme(table[i, j + 1], table[i + 1, j]) + number
                table[i + 1, j + 1] = extreme(near, table[i, j] + rows[i] * columns[j])
        np.testing.assert_array_equal(found, table)
        np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(table) & ~np.isnan(table))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_elements_are_computed_before_a_running_sum(dtype: str) -> None:
    """The bits of a sum are those of the function by itself, added up one after the other."""
    x, rows = T.vector("x", dtype), T.matrix("rows", dtype)

    def step(value: Any, carry: Any) -> Any:
        return carry * T.tanh(value) + value

    decayed, _ = graphc.scan(step, sequences=[x], outputs_info=[x[0]])
    sums = T.cumsum(T.exp(x)), T.cumsum(T.log1p(T.abs(rows)), axis=1)
    f = graphc.function([x, rows], [*sums, decayed])
    plain = graphc.function([x, rows], [*sums, decayed], mode="interpreted")
    alone = graphc.function([x], T.exp(x))
    rng = np.random.default_rng(1)
    for length in (1, 2, 7, 9, 60, 700):
        x_value, rows_value = (rng.normal(size=shape).astype(dtype) for shape in (length, (9, length)))
        x_value[length // 2 :: 5] = -np.inf if length == 60 else -0.0
        got = f(x_value, rows_value)
        np.testing.assert_array_equal(got[0], np.add.accumulate(alone(x_value), dtype="float64").astype(dtype))
        with np.errstate(all="ignore"):
            for one, other in zip(got, plain(x_value, rows_value), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4 if dtype == "float32" else 1e-12)


def test_values_that_are_read_twice_are_not_written_out_before_a_recurrence() -> None:
    """Forty values, each read twice by the next: written out they would be 2**40 expressions."""
    x = T.dvector("x")
    value = x
    for _ in range(40):
        value = value * value * 0.25 + value * 0.5
    given, made = np.linspace(0.5, 1.0, 100), T.cumsum(T.exp(value))
    fast, plain = graphc.function([x], made), graphc.function([x], made, mode="interpreted")
    np.testing.assert_allclose(fast(given), plain(given), rtol=1e-13)
