"""Theano's module of DebugMode."""

from __future__ import annotations

from graphc.errors import DebugModeError
from graphc.functions.checked import DebugMode

__all__ = ["DebugMode", "DebugModeError"]
