"""Theano's module of NanGuardMode."""

from __future__ import annotations

from graphc.functions.checked import NanGuardMode

__all__ = ["NanGuardMode"]
