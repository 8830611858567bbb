"""Random programs of products and convolutions that are read by rows, in the generated source and in compiled code,
against the interpreter.

In: a seed. Out: `program`, a graph with arguments for it; `differences`, where a mode departs from the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc.ir.node import Node
from graphc.tensor import nnet
from graphc.tensor.signal.pool import pool_2d

ROWS = (0, 1, 2, 3, 5, 9, 17)


class Program:
    """What a seed makes: inputs, their values, outputs, and updates of shared variables."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: list[Node] = []
        self.values: list[Any] = []
        self.updates: list[tuple[Any, Node]] = []
        self.dtype = self.pick("float64", "float32")
        self.static = bool(self.rng.random() < 0.4)
        make = self.convolution if self.rng.random() < 0.35 else self.product
        self.outputs = [make() for _ in range(int(self.rng.integers(1, 3)))]
        if self.rng.random() < 0.3:
            wrt = [x for x in self.inputs if x.ndim]
            cost = T.cast(sum((T.sin(out).sum() for out in self.outputs[1:]), T.sin(self.outputs[0]).sum()), self.dtype)
            found = graphc.grad(cost, wrt, disconnected_inputs="ignore")
            self.outputs += found if self.rng.random() < 0.5 else [found[0]]

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def variable(self, *shape: int) -> Node:
        """An input, one of before where it fits now and then, or a shared variable."""
        known = [x for x, v in zip(self.inputs, self.values, strict=True) if v.shape == shape]
        if known and self.rng.random() < 0.4:
            chosen: Node = self.pick(*known)
            return chosen
        sizes = tuple(n if self.static else None for n in shape)
        made = T.TensorType(self.dtype, shape=sizes)(f"x{len(self.inputs)}")
        self.inputs.append(made)
        self.values.append(self.rng.standard_normal(shape).astype(self.dtype))
        return made

    def product(self) -> Node:
        rows, inner, columns = self.pick(*ROWS), self.pick(0, 1, 3, 4, 6), self.pick(1, 2, 4, 7, 40)
        x, w = self.variable(rows, inner), self.variable(inner, columns)
        left: Callable[[Node], Node] = self.pick(lambda v: v, lambda v: v + 1, T.tanh, lambda v: v[::-1])
        right: Callable[[Node], Node] = self.pick(lambda v: v, lambda v: v, lambda v: v * 2, lambda v: v[:, ::-1])
        z = T.dot(left(x), right(w))
        if self.rng.random() < 0.2:
            z = T.dot(right(w).T, left(x).T).T
        if self.rng.random() < 0.25:
            self.updates.append(self.updated(z, rows, columns))
        return self.read(z, rows, columns)

    def updated(self, z: Node, rows: int, columns: int) -> tuple[Any, Node]:
        kept = graphc.shared(self.rng.standard_normal((rows, columns)).astype(self.dtype), name=f"s{len(self.updates)}")
        new = self.pick(lambda: kept + z, lambda: T.set_subtensor(kept[1:], z[1:]), lambda: T.maximum(z, kept))()
        return kept, T.cast(new, self.dtype)

    def read(self, z: Node, rows: int, columns: int) -> Node:
        """Something that reads a matrix, now and then another thing after it."""
        b, c = self.variable(columns), self.variable(rows)
        m = self.variable(rows, columns)
        ways: tuple[Callable[[], Node], ...] = (
            lambda: nnet.relu(z + b),
            lambda: nnet.softmax(z + b),
            lambda: T.tanh(z) * m,
            lambda: (z + b).max(axis=1) if columns else z,
            lambda: (z - z.mean(axis=1, keepdims=True)) * 2,
            lambda: T.sqr(z + c.dimshuffle(0, "x")).sum(axis=0),
            lambda: (z * m).sum(axis=1),
            lambda: T.exp(z * 0.1).sum(),
            lambda: z[1:] - z[:-1] if rows else z,
            lambda: (z + b).T + 1,
            lambda: T.concatenate([z + 1, m * 2], axis=self.pick(0, 1)),
            lambda: z[::-1] * m,
            lambda: T.dot(nnet.relu(z), self.variable(columns, 3)),
            lambda: T.set_subtensor(m[:, :1], z[:, :1] + 1),
            lambda: T.inc_subtensor(z[:1], m[:1]),
            lambda: T.argmax(z + b, axis=1),
            lambda: T.cumsum(z + b, axis=self.pick(0, 1)),
            lambda: T.switch(z > 0, T.log(abs(z) + 1), m),
            lambda: T.sort(z, axis=1),
            lambda: (z + b).reshape((z.shape[0] * z.shape[1],)) + 1,
            lambda: graphc.map(lambda e: nnet.softmax(T.outer(e, b)).sum(axis=0) + e, z)[0],
            lambda: graphc.scan(lambda e, s: T.tanh(e + s), [z], [T.zeros_like(b)])[0],
            lambda: nnet.softmax(z + 1) + nnet.softmax(z * m),
            lambda: z + T.dot(z, T.dot(z.T, m)),
            lambda: (z[:, :, None] * T.stack([b, b + 1], axis=1)).sum(axis=2),
            lambda: graphc.ifelse(z.sum() > 0, z + 1, m),
        )
        made: Node = self.pick(*ways)()
        if self.rng.random() < 0.3:
            made = made + self.pick(*ways)().sum()
        return made

    def convolution(self) -> Node:
        images, channels, filters = self.pick(0, 1, 2, 5), self.pick(1, 3), self.pick(1, 2, 5)
        height, width, side = self.pick(6, 9), self.pick(6, 7), self.pick(1, 3)
        x, w = self.variable(images, channels, height, width), self.variable(filters, channels, side, side)
        b = self.variable(filters)
        padding, stride = self.pick("same", "valid"), self.pick(1, 1, 2)
        z = nnet.convolution(x, w, padding=padding, stride=stride)
        y = z + b.dimshuffle("x", 0, "x", "x")
        ways: tuple[Callable[[], Node], ...] = (
            lambda: nnet.relu(y),
            lambda: pool_2d(nnet.relu(y), (2, 2), ignore_border=self.pick(True, False)),
            lambda: nnet.softmax(y.flatten(2)),
            lambda: T.tanh(y).sum(axis=0),
            lambda: y.mean(axis=(2, 3)),
            lambda: (y - y.mean(axis=(0, 2, 3), keepdims=True)) * 2,
            lambda: T.dot(nnet.relu(y).flatten(2), T.ones((y.shape[1] * y.shape[2] * y.shape[3], 2), dtype=self.dtype)),
            lambda: nnet.convolution(nnet.relu(y), self.variable(2, filters, 1, 1)) + 1,
            lambda: y[:, :, ::2] * 2,
            lambda: y.dimshuffle(0, 2, 3, 1) + b,
            lambda: graphc.map(lambda e: T.tanh(e).sum(axis=0), y)[0],
        )
        chosen: Node = self.pick(*ways)()
        return chosen


def differences(program: Program, mode: str) -> str:
    """How a mode departs from the interpreter in a program's outputs and in what two calls leave in its variables."""
    found = []
    starts = [kept.get_value() for kept, _ in program.updates]
    for each in (mode, "interpreted"):
        for (kept, _), start in zip(program.updates, starts, strict=True):
            kept.set_value(start)
        f = graphc.function(
            program.inputs, program.outputs, updates=program.updates, mode=each, on_unused_input="ignore"
        )
        results = [*f(*program.values), *f(*program.values)]
        found.append([*map(np.asarray, results), *(kept.get_value() for kept, _ in program.updates)])
    for place, (got, want) in enumerate(zip(*found, strict=True)):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{place}: {got.dtype}{got.shape} for {want.dtype}{want.shape}"
        rtol = 2e-3 if program.dtype == "float32" else 1e-9
        if not np.allclose(got, want, rtol=rtol, atol=rtol, equal_nan=True):
            return f"{place}: {got} for {want}"
    return ""
