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
pages = [path.read_text(encoding="utf-8") for path in (root / "README.md", *sorted(root.glob("docs/**/*.md")))]
text = "\n".join(line for page in pages for line in page.splitlines() if not line.startswith("|"))  # no tables
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
columns = codes[: len(codes) // BATCH * BATCH].reshape(BATCH, -1).T
epochs = int(sys.argv[1]) if sys.argv[1:] else 40
for epoch in range(1, epochs + 1):
    begins = range(0, len(columns) - STEPS, STEPS)
    losses = [train(columns[n : n + STEPS], columns[n + 1 : n + STEPS + 1]) / np.log(2) for n in begins]
    if epoch % 8 == 0 or epoch == epochs:
        sample = "".join(letters[write(0, rng.random(300, "float32"))])
        print(f"after {epoch} epochs, {np.mean(losses):.2f} bits a letter:\n{sample}\n")
assert np.mean(losses) < (5.0 if epochs < 40 else 2.0) < np.log2(len(letters))
