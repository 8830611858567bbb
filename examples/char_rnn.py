"""A recurrent network that learns to write graphc's documentation, letter by letter (Karpathy, 2015).

One loop reads the text, and is differentiated; another, of the same step, writes samples.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc import nnet, optim

BATCH, STEPS, HIDDEN = 32, 48, 128
root = Path(__file__).parent.parent
text = "".join(path.read_text(encoding="utf-8") for path in (root / "README.md", *sorted(root.glob("docs/*.md"))))
letters, codes = np.unique(list(text), return_inverse=True)
rng = np.random.default_rng(0)


def weights(name: str, *shape: int) -> graphc.SharedVariable:
    return graphc.shared(rng.normal(scale=HIDDEN**-0.5, size=shape).astype("float32"), name=name)


w_in, w_state = weights("w_in", len(letters), 3 * HIDDEN), weights("w_state", HIDDEN, 3 * HIDDEN)
w_out = weights("w_out", HIDDEN, len(letters))
b_out = graphc.shared(np.zeros(len(letters), "float32"), name="b_out")


def gru(seen: Any, state: Any) -> Any:
    """A gated recurrent unit (Cho et al., 2014): its next state, from the row of w_in of the letter that it sees."""
    kept = T.dot(state, w_state)
    update, reset = (nnet.sigmoid(seen[..., n : n + HIDDEN] + kept[..., n : n + HIDDEN]) for n in (0, HIDDEN))
    new = T.tanh(seen[..., 2 * HIDDEN :] + reset * kept[..., 2 * HIDDEN :])
    return update * state + (1 - update) * new


def guess(state: Any) -> Any:
    """The probabilities of the next letter."""
    return nnet.softmax(T.dot(state, w_out) + b_out)


def training() -> graphc.Function:
    """A step on some rows of letters, one for each of BATCH places, where the last step left its states."""
    read, following = T.lmatrix("read"), T.lmatrix("following")
    state = graphc.shared(np.zeros((BATCH, HIDDEN), "float32"), name="state")
    states, _ = graphc.scan(gru, sequences=w_in[read], outputs_info=state)
    loss = nnet.categorical_crossentropy(guess(states), following).mean()
    updates = optim.adam(loss, [w_in, w_state, w_out, b_out], learning_rate=4e-3)
    return graphc.function([read, following], loss, updates={**updates, state: states[-1]}, name="train")


def writing() -> graphc.Function:
    """Letters that follow the first, each drawn by a number between 0 and 1."""
    first, draws = T.lscalar("first"), T.fvector("draws")

    def write(draw: Any, letter: Any, state: Any) -> Any:
        state = gru(w_in[letter], state)
        return T.argmax(T.cumsum(guess(state)) > draw), state

    (written, _), _ = graphc.scan(write, sequences=draws, outputs_info=[first, T.zeros(HIDDEN, dtype="float32")])
    return graphc.function([first, draws], written, name="write")


train, write = training(), writing()
steps = int(sys.argv[1]) if sys.argv[1:] else 2000
columns = codes[: len(codes) // BATCH * BATCH].reshape(BATCH, -1).T
losses = []
for step in range(steps):
    begin = step * STEPS % (len(columns) - STEPS)
    losses.append(train(columns[begin : begin + STEPS], columns[begin + 1 : begin + STEPS + 1]) / np.log(2))
    if (step + 1) % (steps // 5) == 0:
        sample = "".join(letters[write(0, rng.random(300, "float32"))])
        print(f"after {step + 1} steps, {np.mean(losses[-steps // 5 :]):.2f} bits a letter:\n{sample}\n")
assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 1 and (steps < 1000 or losses[-1] < 2.5)
