"""The check that iterations are independent where their source says so: it sees those that are not. In all tests it
looks after functions of mode `python` (conftest.py)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.independence import Dependence, bind_recorded
from tests.support.vector_loops import MOST, arguments, draw_loops

BAD = {
    "one element": "for i in independent(n):\n        x[0] = y[i]",
    "the one before": "for i in independent(1, n):\n        x[i] = x[i - 1]",
    "rows that meet": "for j in independent(n):\n        for i in independent(n):\n            x[i + j] = y[i]",
}
GOOD = {
    "in place": "for i in independent(n):\n        x[i] = x[i] + y[i]",
    "read by all": "for i in independent(n):\n        x[i] = y[0]",
    "conflicts between rows alone": "for j in range(n):\n        for i in independent(n):\n            x[i] = y[j]",
    "left": "for i in independent(n):\n        x[0] = y[i]\n        break",
}


def run(body: str) -> None:
    function = bind_recorded(f"def f(x, y, n):\n    {body}\n    return 0\n", "<a loop>")["f"]
    function(np.zeros(9), np.arange(9.0), 4)


@pytest.mark.parametrize("name", BAD)
def test_iterations_that_meet_are_seen(name: str) -> None:
    with pytest.raises(Dependence):
        run(BAD[name])


@pytest.mark.parametrize("name", GOOD)
def test_iterations_that_do_not_meet_pass(name: str) -> None:
    run(GOOD[name])


@pytest.mark.slow
def test_random_loops_for_the_vectoriser_say_the_truth() -> None:
    for seed in range(3):
        for loop in draw_loops(seed):
            function = bind_recorded(loop.source("f"), "<a loop>")["f"]
            for n in (0, 1, 9, MOST):
                function(*(array.copy() for array in arguments(loop, seed).values()), n, n % 5)
