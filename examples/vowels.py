"""A hidden Markov model of letters (Rabiner 1989) that finds the vowels of English, from the text alone.

Writes vowels.png, or the file that is named.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from graphc import lax
from graphc.scipy.optimize import minimize
from graphc.scipy.special import logsumexp

mpl.use("Agg")  # no screen is needed

with contextlib.redirect_stdout(io.StringIO()):
    import this  # The Zen of Python

LETTERS = " abcdefghijklmnopqrstuvwxyz"
TEXT = "".join(c if c in LETTERS else " " for c in codecs.decode(this.s, "rot13").lower())
TEXT = " ".join(TEXT.split())
SEEN = np.array([LETTERS.index(c) for c in TEXT])


def logarithms(weights: Any) -> Any:
    """Logarithms of probabilities, along the last axis."""
    return weights - logsumexp(weights, axis=-1, keepdims=True)


def surprise(p: Any, seen: Any) -> Any:
    """Minus the logarithm of the likelihood, by letter: the forward algorithm."""
    move, emit = logarithms(p["move"]), logarithms(p["emit"])

    def step(state: Any, letter: Any) -> Any:
        return logsumexp(state[:, None] + move, axis=0) + emit[:, letter], 0.0

    end, _ = lax.scan(step, np.log([0.5, 0.5]) + emit[:, seen[0]], seen[1:])
    return -logsumexp(end) / len(seen)


counts = np.bincount(SEEN, minlength=27) + 0.5
alone = -np.log(counts / counts.sum())[SEEN].mean()
best = None
for seed in range(3):
    rng = np.random.default_rng(seed)
    guess = {"move": rng.normal(size=(2, 2)), "emit": np.log(counts) + 0.3 * rng.normal(size=(2, 27))}
    found = minimize(surprise, guess, args=(SEEN,), method="L-BFGS-B", options={"maxiter": 200})
    if best is None or found.fun < best.fun:
        best = found
assert best is not None
emit = np.asarray(logarithms(best.x["emit"]))
vowel = int(emit[1, LETTERS.index("e")] > emit[0, LETTERS.index("e")])
likely = {c for c in "aeioubdnrt" if emit[vowel, LETTERS.index(c)] > emit[1 - vowel, LETTERS.index(c)]}
print(f"{alone:.3f} nats a letter by frequencies, {best.fun:.3f} with two states; vowels: {' '.join(sorted(likely))}")
assert set("aeio") <= likely
assert not likely & set("bdnrt")
assert best.fun < alone - 0.1

figure, axes = plt.subplots(figsize=(10, 3.5))
for state, label, shift in ((vowel, "vowels", -0.2), (1 - vowel, "consonants", 0.2)):
    axes.bar(np.arange(27) + shift, np.exp(emit[state]), width=0.4, label=label)
axes.set_xticks(range(27), "_" + LETTERS[1:])
axes.set(ylabel="probability of a letter")
axes.legend(frameon=False)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "vowels.png", dpi=80)
print(f"the states are vowels and consonants; plotted in {target}")
