"""Theano's path of the functions of indexing in graphc.tensor."""

from __future__ import annotations

from typing import Any

from graphc import tensor


def __getattr__(name: str) -> Any:
    return getattr(tensor, name)


def __dir__() -> list[str]:
    return dir(tensor)
