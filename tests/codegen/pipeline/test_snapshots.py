"""What a person sees of a compilation: the printed graph, the plan with its reasons, the generated source.

The snapshots are files in `snapshots/`. `GRAPHC_UPDATE=1 pytest tests/codegen/pipeline/test_snapshots.py` writes them
anew: read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet, optim
from graphc.ir.node import Node

SNAPSHOTS = Path(__file__).parent / "snapshots"


def xor_step() -> graphc.Function:
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = graphc.shared(np.ones((2, 2)), name="w"), graphc.shared(np.zeros(2), name="b")
    w_out, b_out = graphc.shared(np.ones(2), name="w_out"), graphc.shared(0.0, name="b_out")
    hidden = nnet.sigmoid(T.dot(x, w) + b)
    guess = nnet.sigmoid(T.dot(hidden, w_out) + b_out)
    cost = T.sqr(y - guess).mean()
    return step([x, y], [guess, cost], optim.sgd(cost, [w, b, w_out, b_out], 0.1))


def classifier_step() -> graphc.Function:
    x, labels = T.dmatrix("x"), T.lvector("labels")
    w, b = graphc.shared(np.ones((4, 3)), name="w"), graphc.shared(np.zeros(3), name="b")
    loss = nnet.categorical_crossentropy(nnet.softmax(T.dot(x, w) + b), labels).mean()
    return step([x, labels], loss, optim.momentum(loss, [w, b], 0.1, momentum=0.9))


def embedding_step() -> graphc.Function:
    rows, target = T.lvector("rows"), T.dmatrix("target")
    table = graphc.shared(np.ones((5, 3)), name="table")
    cost = T.sqr(table[rows] - target).sum()
    return step([rows, target], cost, [(table, table - 0.1 * graphc.grad(cost, table))])


def swap() -> graphc.Function:
    a, b = graphc.shared(np.ones(3), name="a"), graphc.shared(np.zeros(3), name="b")
    return step([], [], [(a, b), (b, a)])


def softmax() -> graphc.Function:
    x = T.dmatrix("x")
    return step([x], nnet.softmax(x))


def log_softmax_gradient() -> graphc.Function:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    value = nnet.log_softmax(x)
    return step([x, y], [value, graphc.grad((value * y).sum(), x)])


def layer_norm() -> graphc.Function:
    x, scale = T.fmatrix("x"), T.fvector("scale")
    return step([x, scale], (x - x.mean(axis=1, keepdims=True)) / T.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * scale)


def moments() -> graphc.Function:
    x = T.dmatrix("x")
    return step([x], [x.mean(axis=0), x.var(axis=0), x.sum(), x.max()])


def pairwise_kernel() -> graphc.Function:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    total = T.exp(-0.5 * T.sqr(x[:, None, :] - y[None, :, :]).sum(axis=2)).sum()
    return step([x, y], [total, graphc.grad(total, x)])


def pieces() -> graphc.Function:
    x, start = T.dmatrix("x"), T.lscalar("start")
    return step([x, start], T.concatenate([x[start:], T.set_subtensor(x[:, 0], 1.0)]).T.flatten())


def step(inputs: list[Node], outputs: object, updates: object = None) -> graphc.Function:
    return graphc.function(inputs, outputs, mode="python", updates=updates, name="step")


PROGRAMS: tuple[Callable[[], graphc.Function], ...] = (
    *(xor_step, classifier_step, embedding_step, swap, softmax),
    *(log_softmax_gradient, layer_norm, moments, pairwise_kernel, pieces),
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_snapshot(program: Callable[[], graphc.Function]) -> None:
    call = program()
    plan = call.explain().split("plan:\n", 1)[1]
    text = f"# graph\n\n{call.text}\n# plan\n\n{plan}\n\n# source\n\n{call.source}"
    path = SNAPSHOTS / f"{program.__name__}.txt"
    if os.environ.get("GRAPHC_UPDATE"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.slow
def test_printed_graphs_read_back() -> None:
    for program in PROGRAMS:
        text = program().text
        assert graphc.print_graph(graphc.parse_graph(text)) == text
