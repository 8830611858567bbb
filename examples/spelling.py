"""The right word for a misspelt one: edit distances (Levenshtein 1966) to many words at once, and the table for one.

Writes spelling.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.numpy as jnp
from graphc import lax

mpl.use("Agg")  # no screen is needed

WORDS = (
    "accommodate believe calendar definitely embarrass foreign government harass independent jewellery knowledge "
    "liaison millennium necessary occurrence parliament questionnaire receive separate tendency until vacuum weird"
).split()
LONGEST = max(map(len, WORDS))


def letters(word: str) -> np.ndarray:
    """A word as numbers, filled up with 0."""
    return np.array([ord(letter) for letter in word.ljust(LONGEST, "\0")])


@graphc.jit
def table(one: Any, other: Any) -> Any:
    """Element [i, j] is the number of edits between the first i letters of `one` and the first j of `other`."""
    places = np.arange(LONGEST + 1)

    def row(above: Any, letter: Any) -> Any:
        best = jnp.minimum(above[1:] + 1, above[:-1] + (other != letter))
        start = jnp.concatenate([above[:1] + 1, best])
        now = jnp.minimum.accumulate(start - places) + places  # letters that are only in `other`
        return now, now

    return jnp.concatenate([places[None], lax.scan(row, places, one)[1]])


def distance(one: str, other: str) -> int:
    return int(table(letters(one), letters(other))[len(one), len(other)])


def by_hand(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row = row, [i]
        for j, right in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != right)))
    return row[-1]


MISSPELT = {"acommodate": "accommodate", "goverment": "government", "seperate": "separate", "wierd": "weird",
            "milenium": "millennium", "beleive": "believe", "questionaire": "questionnaire"}  # fmt: skip
for wrong, right in MISSPELT.items():
    edits = {word: distance(wrong, word) for word in WORDS}
    assert edits == {word: by_hand(wrong, word) for word in WORDS}
    found = min(edits, key=lambda word: edits[word])
    print(f"{wrong:13} {found:14} {edits[found]} edits")
    assert found == right

one, other = "questionaire", "questionnaire"
values = table(letters(one), letters(other))[: len(one) + 1, : len(other) + 1]
figure, axes = plt.subplots(figsize=(6, 5))
axes.imshow(values, cmap="Blues")
for (i, j), edits in np.ndenumerate(values):
    axes.text(j, i, str(edits), ha="center", va="center", fontsize=8)
axes.set_xticks(range(len(other) + 1), " " + other)
axes.set_yticks(range(len(one) + 1), " " + one)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "spelling.png", dpi=80)
print(f"{len(MISSPELT)} of {len(MISSPELT)} words are found; plotted in {target}")
