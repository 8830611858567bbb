"""By hand: of a row of edits only the running minimum goes element by element; CTC backward over kept weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.by_hand.vecmath import exp, log
from benchmarks.workload import Data, Program

# --- edit distance ----------------------------------------------------------------------------------------------------


@serial
def edits(left: Any, right: Any) -> Any:
    """Elements of a row are held less their place, so that going right costs nothing, down 1 and both -1 or 0."""
    n = right.size
    letters = right.astype(np.int32)
    row, best = np.zeros(n + 1, np.int32), np.empty(n, np.int32)
    one = np.int32(1)
    for k in range(left.size):
        letter = np.int32(left[k])
        for j in range(n):
            across = row[j] - one if letters[j] == letter else row[j]
            down = row[j + 1] + one
            best[j] = across if across < down else down
        least = row[0] + one
        row[0] = least
        for j in range(n):
            least = best[j] if best[j] < least else least
            row[j + 1] = least
    return row[n] + n


# --- connectionist temporal classification ----------------------------------------------------------------------------

NEVER = -1e30


@serial
def distribute(scores: Any, chances: Any) -> Any:
    """The exponentials of a row, over their sum; the logarithm of what they were divided by."""
    highest, total = scores[0], 0.0
    for c in range(scores.size):
        highest = scores[c] if scores[c] > highest else highest
    for c in range(scores.size):
        chances[c] = exp(scores[c] - highest)
        total += chances[c]
    inverse = 1.0 / total
    for c in range(scores.size):
        chances[c] *= inverse
    return highest + np.log(total)


@serial
def go_on(before: Any, skips: Any, seen: Any, after: Any, stays: Any, goes: Any, leaps: Any) -> None:
    """A frame further, and what each place has from itself, the one before, and two before."""
    for s in range(seen.size):
        stay, go, leap = before[s + 2], before[s + 1], before[s] + skips[s]
        highest = stay if stay > go else go
        highest = highest if highest > leap else leap
        a, b, c = exp(stay - highest), exp(go - highest), exp(leap - highest)
        total = a + b + c
        inverse = 1.0 / total
        stays[s], goes[s], leaps[s] = a * inverse, b * inverse, c * inverse
        after[s + 2] = highest + log(total) + seen[s]


@serial
def go_back(here: Any, stays: Any, goes: Any, leaps: Any, there: Any) -> None:
    for s in range(here.size - 2):
        there[s] = here[s] * stays[s] + here[s + 1] * goes[s + 1] + here[s + 2] * leaps[s + 2]


@serial
def ctc(scores: Any, labels: Any, chances: Any, seen: Any, skips: Any, alphas: Any, weights: Any, pulls: Any) -> Any:
    """Rows of `alphas` begin, and those of `weights` and `pulls` end, with two places that are never reached; all end
    with some more, so that vectors fill them."""
    frames, places = len(scores), labels.size
    for t in range(frames):
        shift = distribute(scores[t], chances[t])
        for s in range(places):
            seen[t, s] = scores[t, labels[s]] - shift
    seen[:, places:] = NEVER
    skips[:] = NEVER
    for s in range(places):
        skips[s] = 0.0 if s > 1 and labels[s] != 0 and labels[s] != labels[s - 2] else NEVER
    alphas[0, :] = NEVER
    alphas[:, :2] = NEVER
    alphas[0, 2], alphas[0, 3] = seen[0, 0], seen[0, 1]
    for t in range(1, frames):
        go_on(alphas[t - 1], skips, seen[t], alphas[t], weights[t, 0], weights[t, 1], weights[t, 2])
    stay, go = alphas[frames - 1, places + 1], alphas[frames - 1, places]
    highest = max(stay, go)
    cost = highest + np.log(np.exp(stay - highest) + np.exp(go - highest))
    pulls[:, :] = 0.0
    here, there = pulls[0], pulls[1]
    here[places - 1], here[places - 2] = np.exp(stay - cost), np.exp(go - cost)
    for back in range(frames):
        t = frames - 1 - back
        for s in range(places):
            chances[t, labels[s]] -= here[s]
        if t > 0:
            go_back(here, weights[t, 0], weights[t, 1], weights[t, 2], there)
            here, there = there, here
    return -cost


def build_ctc(library: Any, data: Data) -> Program:
    scores, labels = data.arguments
    frames, width = len(scores), (len(labels) + 15) // 16 * 16
    shapes = (frames, width), (width,), (frames, width + 2), (frames, 3, width + 2), (2, width + 2)
    work = tuple(np.zeros(shape) for shape in shapes)

    def call(scores: Any, labels: Any) -> Any:
        chances = np.empty_like(scores)
        return ctc(scores, labels, chances, *work), chances

    return Program(call)


BUILDERS = {"edit-distance": lambda library, data: Program(edits), "ctc-gradient": build_ctc}
