"""Theano's path of the functions in graphc.sparse."""

from __future__ import annotations

from typing import Any

from graphc import sparse


def __getattr__(name: str) -> Any:
    return getattr(sparse, name)


def __dir__() -> list[str]:
    return dir(sparse)
