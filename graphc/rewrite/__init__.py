"""Rewriting: an equal graph, cheaper and more stable, by rules that are data."""

from __future__ import annotations

from graphc.rewrite.pipeline import PIPELINE, RULES, rewrite
from graphc.rewrite.rules.engine import RuleUse, tell_of

__all__ = ["PIPELINE", "RULES", "RuleUse", "rewrite", "tell_of"]
