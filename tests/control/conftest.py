"""How the programs of this room are carried out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import graphc


@pytest.fixture(params=["interpreted"])
def mode(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def function(mode: str) -> Callable[..., Any]:
    """`graphc.function` in one mode after the other."""
    return partial(graphc.function, mode=mode)
