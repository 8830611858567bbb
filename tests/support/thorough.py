"""A part of the cases of a test, the rest in `make test-all`.

    @pytest.mark.parametrize("seed", some(range(60)))        30 seeds; 60 with --thorough

In: values of a parameter. Out: the same, those that are left out marked thorough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], every: int = 2) -> list[Any]:
    """Keep the first of every so many values."""
    return [value if place % every == 0 else left_out(value) for place, value in enumerate(values)]


def those(keep: Callable[[Any], bool], values: Iterable[Any]) -> list[Any]:
    """Keep the values of which `keep` is true."""
    return [value if keep(value) else left_out(value) for value in values]


def left_out(value: Any) -> Any:
    """Return a parameter of a thorough case; a tuple is one of several parameters."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.thorough)
