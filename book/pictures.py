"""The pictures of the tutorial, drawn from the programs that stand in it: `python -m book.pictures [CHAPTER ...]`.

In: docs/tutorial/*.md, whose programs are run. Out: a picture beside each page that has one, `curve.svg` for instance.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from book.navigation import ROOT

mpl.use("svg")
from matplotlib import pyplot as plt

FOLDER = ROOT / "docs" / "tutorial"
STYLE: Any = {"svg.hashsalt": "graphc", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
BLUE, RED, GREY = "#2a78b5", "#c8553d", "#888888"
Axes = Any


def variables(page: Path) -> dict[str, Any]:
    """Run the programs of a page, and return their variables."""
    found: dict[str, Any] = {}
    for code in re.findall(r"<!-- \w+ -->\n```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, str(page), "exec"), found)
    return found


def curve(v: dict[str, Any], left: Axes, right: Axes) -> None:
    """The data with two curves, and what the fit leaves."""
    t = np.linspace(0.0, 60.0, 200)
    left.plot(t, v["temperature"](v["guess"], t), "--", color=GREY, label="first guess")
    left.plot(t, v["temperature"](v["found"].x, t), color=BLUE, label="fit")
    left.plot(v["minutes"], v["measured"], ".", color=RED, label="measured")
    left.set(xlabel="minutes", ylabel="degrees")
    left.legend(frameon=False)
    right.axhline(0.0, color=GREY, lw=0.8)
    right.plot(v["minutes"], v["measured"] - v["temperature"](v["found"].x, v["minutes"]), ".", color=RED)
    right.set(xlabel="minutes", ylabel="measured - fit, degrees")


def likelihood(v: dict[str, Any], left: Axes, right: Axes) -> None:
    """Samples of two coefficients; the distribution of the factor."""
    samples = np.array(v["samples"])[::2]
    left.plot(samples[:, 1], samples[:, 2], ".", ms=2, color=BLUE)
    left.plot(*v["best"][[1, 2]], "+", ms=12, color=RED)
    left.set(xlabel="coefficient of traffic", ylabel="coefficient of lights")
    right.hist(v["factor"], bins=30, color=BLUE)
    right.set(xlabel="fraction of accidents that remains with lights", yticks=[])


def network(v: dict[str, Any], left: Axes, right: Axes) -> None:
    """The classes with the boundary; the loss."""
    x, y = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.2, 1.6, 90))
    scores = np.asarray(v["score"](v["params"], np.c_[x.ravel(), y.ravel()])).reshape(x.shape)
    left.contourf(x, y, scores, levels=[-1e9, 0.0, 1e9], colors=["#dbe9f4", "#f6dfd9"])
    for value, color in ((0, BLUE), (1, RED)):
        left.plot(*v["points"][v["upper"] == value].T, ".", ms=3, color=color)
    left.set(xticks=[], yticks=[])
    right.semilogy(np.arange(1, 41), v["history"], color=BLUE)
    right.set(xlabel="epoch", ylabel="loss")


def equation(v: dict[str, Any], left: Axes, right: Axes) -> None:
    """The motion; the misfit by length."""
    for params, color, name in (([1.5, 0.05], GREY, "first guess"), (v["found"].x, BLUE, "fit")):
        fine = v["odeint"](v["motion"], np.array([1.2, 0.0]), np.linspace(0.0, 9.5, 300), *map(float, params))
        left.plot(np.linspace(0.0, 9.5, 300), np.asarray(fine)[:, 0], color=color, label=name)
    left.plot(v["times"], v["seen"], ".", color=RED, label="measured")
    left.set(xlabel="seconds", ylabel="angle", ylim=(-1.3, 1.8))
    left.legend(frameon=False, loc="upper right", ncols=3)
    lengths = np.linspace(1.3, 2.2, 60)
    right.semilogy(lengths, [v["misfit"](np.array([each, v["found"].x[1]])) for each in lengths], color=BLUE)
    right.set(xlabel="length, m", ylabel="sum of squares")


def kalman(v: dict[str, Any], left: Axes, right: Axes) -> None:
    """Errors of place; speeds."""
    minutes = np.arange(1, 120)
    left.plot(minutes, v["seen"][1:] - v["place"][1:], ".", ms=3, color=GREY, label="radar")
    left.plot(minutes, v["states"][:, 0] - v["place"][1:], color=BLUE, label="filter")
    left.set(xlabel="minutes", ylabel="error of the position, m")
    left.legend(frameon=False)
    right.plot(minutes, v["speed"][1:], color=GREY, label="true")
    right.plot(minutes, v["states"][:, 1], color=BLUE, label="filter")
    right.set(xlabel="minutes", ylabel="speed, m/min", ylim=(60, 150))
    right.legend(frameon=False)


DRAWN: dict[str, Callable[[dict[str, Any], Axes, Axes], None]] = {
    each.__name__: each for each in (curve, likelihood, network, equation, kalman)
}


def main(names: list[str]) -> None:
    """Draw the pictures of some chapters, of all where none is named."""
    for name in names or DRAWN:
        with mpl.rc_context(STYLE):
            figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
            DRAWN[name](variables(FOLDER / f"{name}.md"), *axes)
            figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
