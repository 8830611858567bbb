"""A recurrent network that learns to write graphc's documentation, letter by letter (Karpathy, 2015)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
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
sizes = {"w_in": (len(letters), 3 * HIDDEN), "w_state": (HIDDEN, 3 * HIDDEN), "w_out": (HIDDEN, len(letters))}
normal = {name: rng.normal(scale=HIDDEN**-0.5, size=size).astype("float32") for name, size in sizes.items()}
w_in, w_state, w_out = (graphc.shared(value, name=name) for name, value in normal.items())
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


def write_letter(draw: Any, letter: Any, state: Any) -> Any:
    """A letter, drawn by a number between 0 and 1, and how likely it was."""
    state = gru(w_in[letter], state)
    chances = guess(state).flatten()
    drawn = T.argmax(T.cumsum(chances) > draw)
    return drawn, state, chances.take(drawn)


# Rows of letters, one for each of BATCH places, are read from where the last ones left their states.
read, following = T.lmatrix("read"), T.lmatrix("following")
last = graphc.shared(np.zeros((BATCH, HIDDEN), "float32"), name="last")
states, _ = graphc.scan(gru, sequences=w_in[read], outputs_info=last)
loss = nnet.categorical_crossentropy(guess(states), following).mean()
updates = {**optim.adam(loss, [w_in, w_state, w_out, b_out], learning_rate=4e-3), last: states[-1]}
train = graphc.function([read, following], loss / np.log(2), updates=updates, name="train")
first, draws, begin = T.lscalar("first"), T.fvector("draws"), T.zeros(HIDDEN, dtype="float32")
(written, _, chances), _ = graphc.scan(write_letter, sequences=draws, outputs_info=[first, begin, None])
write = graphc.function([first, draws], [written, chances], name="write")

columns, bits = codes[: len(codes) // BATCH * BATCH].reshape(BATCH, -1).T, []
begins = range(0, len(columns) - STEPS, STEPS)
epochs = int(sys.argv[1]) if sys.argv[1:] else 40
for epoch in range(1, epochs + 1):
    bits += [float(train(columns[n : n + STEPS], columns[n + 1 : n + STEPS + 1])) for n in begins]
    if epoch % 8 == 0 or epoch == epochs:
        sample, likely = write(0, rng.random(300, "float32"))
        print(f"after {epoch} epochs, {np.mean(bits[-len(begins) :]):.2f} bits a letter:\n{''.join(letters[sample])}\n")
assert np.mean(bits[-len(begins) :]) < (5.0 if epochs < 40 else 2.0) < np.log2(len(letters))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.4), width_ratios=(2, 3), layout="constrained")
left.plot(bits, linewidth=0.5)
left.set(xlabel="batches", ylabel="bits a letter", ylim=0)
for n, (letter, chance) in enumerate(zip(letters[sample], likely, strict=True)):
    shown, color = letter.translate({10: "\u21b5", 36: r"\$"}), (1 - chance, 0.1, chance)
    right.text(n % 50, -(n // 50), shown, color=color, family="monospace")
right.set(xlim=(-1, 51), ylim=(-6, 1), xticks=[], yticks=[], title="what it wrote: blue it was sure of, red it was not")
figure.savefig("char_rnn.png")
