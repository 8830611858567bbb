"""Trains a network on scikit-learn's scanned digits; then times its step, compiled and interpreted.

The step is compiled in the first run. In the second it comes from the cache, and no compiler is imported.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import graphc
import graphc.tensor as T
from graphc import nnet, optim

BATCH, HIDDEN = 16, 128


def build(mode: str, rate: graphc.SharedVariable) -> tuple[graphc.Function, graphc.Function]:
    """The training step of a network 64-128-10, which gives the mean loss of a batch, and its prediction."""
    rng = np.random.default_rng(0)
    w_hidden = graphc.shared(rng.normal(scale=(2 / 64) ** 0.5, size=(64, HIDDEN)), name="w_hidden")
    b_hidden = graphc.shared(np.zeros(HIDDEN), name="b_hidden")
    w_out = graphc.shared(rng.normal(scale=HIDDEN**-0.5, size=(HIDDEN, 10)), name="w_out")
    b_out = graphc.shared(np.zeros(10), name="b_out")

    images, labels = T.dmatrix("images"), T.lvector("labels")
    hidden = nnet.relu(T.dot(images, w_hidden) + b_hidden)
    scores = T.dot(hidden, w_out) + b_out
    loss = nnet.categorical_crossentropy(nnet.softmax(scores), labels).mean()
    updates = optim.momentum(loss, [w_hidden, b_hidden, w_out, b_out], rate, momentum=0.9, l2=1e-4)
    step = graphc.function([images, labels], loss, mode, updates, name="step")
    return step, graphc.function([images], T.argmax(scores, axis=1), mode, name="predict")


def microseconds(step: graphc.Function, batches: list[Any]) -> float:
    """The median time of a step."""
    ends = [perf_counter(), *(perf_counter() for batch in batches if step(*batch) is not None)]
    return float(np.median(np.diff(ends))) * 1e6


def main(epochs: int) -> None:
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, stratify=labels, random_state=0)
    train, test, train_labels, test_labels = split
    rate = graphc.shared(0.05, name="rate")
    begin = perf_counter()
    bar = tqdm(total=14, desc="building")
    with bar, graphc.on_phase(lambda phase: bar.set_postfix_str(phase) or bar.update()):
        step, predict = build("compiled", rate)
        bar.total = bar.n
    seconds = perf_counter() - begin

    rng = np.random.default_rng(1)
    for _ in (bar := tqdm(range(epochs), desc="training")):
        order = rng.permutation(len(train))
        batches = [(train[part], train_labels[part]) for part in np.array_split(order, len(order) // BATCH)]
        loss = np.mean([step(*batch) for batch in batches])
        accuracy = np.mean(predict(test) == test_labels)
        bar.set_postfix_str(f"loss {loss:.4f}, test accuracy {accuracy:.2%}")
        rate.set_value(0.9 * rate.get_value())

    slow, fast = (microseconds(build(mode, rate)[0], batches) for mode in ("interpreted", "compiled"))
    origin, phases = step.explain().splitlines()[1].split(": ")
    print(f"accuracy      {accuracy:.2%} of {len(test)} test images")
    print(f"{'warm start' if origin == 'cache' else 'cold compile':14}{seconds * 1e3:.0f} ms; the step: {phases}")
    print(f"a step        {slow:.0f} us interpreted, {fast:.0f} us compiled, {slow / fast:.1f} times as fast")
    assert accuracy >= 0.97 or epochs < 20


if __name__ == "__main__":
    main(epochs=int(sys.argv[1]) if sys.argv[1:] else 30)
