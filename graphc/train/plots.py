"""Pictures of a training: loss, scores and norms over the batches.

In: the rows of a `Trainer`. Out: a figure of matplotlib, which is imported here alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from graphc.train.trainer import Row

PANELS = (
    ("loss", (("training", "loss"), ("evaluation", "eval_loss")), "log"),
    ("score", (("training", "score"), ("evaluation", "eval_score")), "linear"),
    ("norm", (("gradient", "gradient"), ("parameters", "parameters")), "log"),
)


def plot(history: Sequence[Row], path: str | Path | None = None) -> Any:
    """A figure with a panel each for loss, score and norms; saved where a path is given."""
    figure = import_module("matplotlib.figure").Figure(figsize=(12, 3.6), layout="constrained")
    panels(figure, history)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def panels(figure: Any, history: Sequence[Row]) -> None:
    """Those panels in a figure, or in a part of one."""
    batches = [row.batch for row in history]
    for axes, (title, lines, scale) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for label, name in lines:
            values = [getattr(row, name) for row in history]
            if not all(map(math.isnan, values)):
                axes.plot(batches, values, label=label)
        axes.set(title=title, xlabel="batches", yscale=scale)
        axes.grid(alpha=0.3)
        axes.legend()
