"""Theano's place for scalar ops: `theano.scalar.basic.upcast`, where graphc is imported as theano."""

from __future__ import annotations

from typing import Any

from graphc import scalar
from graphc.scalar import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(scalar, name)
