"""Rewriting: an equal graph, cheaper and more stable, by rules that are data."""

from __future__ import annotations

from graphc.rewrite.engine import Fired, tell_of
from graphc.rewrite.pipeline import PIPELINE, RULES, rewrite

__all__ = ["PIPELINE", "RULES", "Fired", "rewrite", "tell_of"]
