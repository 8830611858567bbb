"""Theano's path of the functions in graphc.tensor.nnet."""

from __future__ import annotations

from typing import Any

from graphc.tensor import nnet
from graphc.tensor.nnet import *  # noqa: F403 - it says in its __all__ what it offers


def __getattr__(name: str) -> Any:
    return getattr(nnet, name)
