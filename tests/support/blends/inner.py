"""Values that are graphs within graphs: loops, branches, mapped functions; and derivatives.

In: a `Grower`. Out: as in `makers.py`, whose table this one continues. A step is grown by a `Grower` of its own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.blends.growing import Grower, Maker
from tests.support.blends.makers import (
    COMMON,
    algebra,
    along,
    binary,
    broadcast,
    convolved,
    gather_rows,
    part,
    random_numbers,
    reduce,
    sparse_products,
    unary,
    write,
)


def slope(g: Grower) -> Any:
    """A gradient of a scalar cost by values from which it is made, as values; so the next is one of second order."""
    y, wrt = g.pick("f"), [g.pick("f") for _ in range(2)]
    if y is None or wrt[0] is None:
        return None
    weights = T.cos(T.arange(y.size).reshape(tuple(y.shape[k] for k in range(y.ndim))) * 0.7) if y.ndim else 1.0
    cost = (T.cast(y, "float64") * weights).sum()
    return graphc.grad(cost, list(dict.fromkeys(wrt)), disconnected_inputs="ignore")


def forward_slope(g: Grower) -> Any:
    y, x = g.pick("f"), g.pick("f")
    if y is None or x is None:
        return None
    return graphc.Rop(y, x, T.cos(x))


def branch(g: Grower) -> Any:
    a = g.pick("f")
    b = None if a is None else g.pick("f", like=a)
    s = g.pick("fi", ndim=0)
    if a is None or b is None or s is None:
        return None
    first, second = inside(g, [a], 2), inside(g, [b], 2)
    condition = s > 0.4321 if np.dtype(s.dtype).kind == "f" else T.eq(s % 2, 0)
    if g.draw.random() < 0.3:
        return graphc.switch_case(T.cast(s, "int64") % 4, [lambda v: v, T.sin, lambda v: v * 0.5 + first.sum()], b)
    return graphc.ifelse(condition, first, second if g.value(second).shape == g.value(first).shape else first * 0.5)


def inside(g: Grower, given: Sequence[Node], count: int) -> Node:
    """A value grown from these alone, of the type of the first."""
    inner = Grower(g.draw, SMALL, g.leaves, [(node, g.value(node)) for node in given], g.depth + 1, g.trouble)
    inner.grow(count)
    return next(
        node
        for node, array in reversed(inner.values)
        if array.shape == inner.values[0][1].shape and node.dtype == given[0].dtype
    )


def bounded(x: Node, like: Node) -> Node:
    return T.cast(T.tanh(x), like.dtype) if np.dtype(like.dtype).kind == "f" else T.cast(x, like.dtype)


@dataclass(frozen=True, slots=True)
class Body:
    """What a step of a scan is grown from: sequences with their taps, states with those they have, and a seed."""

    rows: list[tuple[Node, list[int] | None]]
    states: list[tuple[Node, list[int] | None]]
    seed: int
    outputs: int
    count: int
    ends: bool

    def step(self, g: Grower, args: Sequence[Node]) -> Any:
        """What the step returns for these variables; the same each time it is called."""
        draw = random.Random(self.seed)
        inner = Grower(draw, BODY, dict(g.leaves), [], g.depth + 1, g.trouble)
        variables, priors = iter(args), []
        for x, taps in self.rows:
            for k in range(len(taps or [0])):
                inner.leaves[next_ := next(variables)] = g.value(x)[min(k, len(g.value(x)) - 1)]
                inner.values.append((next_, inner.leaves[next_]))
        for x, taps in self.states:
            for k in range(len(taps or [0])):
                inner.leaves[next_ := next(variables)] = g.value(x)[k] if taps else g.value(x)
                inner.values.append((next_, inner.leaves[next_]))
            priors.append(next_)
        inner.values[:0] = draw.sample(g.values, min(2, len(g.values)))
        inner.grow(self.count)
        returned = [self.next_of(inner, prior) for prior in priors]
        returned += [draw.choice(inner.values[-4:])[0] for _ in range(self.outputs)]
        scalars = [node for node, each in inner.values if each.ndim == 0 and each.dtype.kind == "f"]
        return (returned, graphc.until(scalars[-1] > 0.7713)) if self.ends and scalars else returned

    def next_of(self, inner: Grower, prior: Node) -> Node:
        array = inner.leaves[prior]
        alike = [n for n, each in inner.values if (each.shape, each.dtype.kind) == (array.shape, array.dtype.kind)]
        node = inner.draw.choice(alike[-3:]) if inner.draw.random() < 0.8 else prior
        return bounded(node, prior) if inner.draw.random() < 0.7 or node.dtype != prior.dtype else node


def loop(g: Grower) -> Any:
    if g.depth > 1:
        return None
    draw = g.draw
    rows = [x for x in (g.pick("f", least=1) for _ in range(draw.randrange(3))) if x is not None]
    kinds = ["f" if draw.random() < 0.8 else "i" for _ in range(draw.randrange(1, 4))]
    begin = [x for x in map(g.pick, kinds) if x is not None]
    sizes = [len(g.value(x)) for x in rows]
    n_steps: Any = draw.choice([None, None, min(sizes, default=4), max(min(sizes, default=4) - 1, 0), 1])
    if 0 in sizes:
        return None
    if not rows and n_steps is None:
        n_steps = 3
    if rows and draw.random() < 0.2:
        n_steps = rows[sizes.index(min(sizes))].shape[0]

    def taps_of(x: Node) -> list[int] | None:
        deep = x.ndim and len(g.value(x)) >= 2 and draw.random() < 0.25
        return draw.choice([[-2, -1], [-2], [-1, -2]]) if deep else None

    body = Body([(x, draw.choice([None, None, None, [-1, 0], [0, 1]])) for x in rows], [(x, taps_of(x)) for x in begin],
                draw.getrandbits(60), draw.randrange(3), draw.randrange(1, 7), draw.random() < 0.2)  # fmt: skip
    made, updates = graphc.scan(
        lambda *args: body.step(g, args),
        [x if taps is None else {"input": x, "taps": taps} for x, taps in body.rows],
        [x if taps is None else {"initial": x, "taps": taps} for x, taps in body.states] + [None] * body.outputs,
        n_steps=n_steps,
        return_list=True,
        truncate_gradient=draw.choice([-1, -1, -1, -1, 2]),
        go_backwards=draw.random() < 0.2,
        checkpoint=None if body.ends else draw.choice([None, None, None, 2, "sqrt"]),
    )
    wanted = draw.sample(made, draw.randrange(1, len(made) + 1))
    return None if updates else [node[-1] if draw.random() < 0.3 else node for node in wanted]


def while_loop(g: Grower) -> Any:
    x = g.pick("f")
    if x is None or g.depth > 1:
        return None
    seed = g.draw.getrandbits(60)
    most = g.draw.randrange(5)

    def body(state: Any) -> Any:
        k, v = state
        draw = type(g.draw)(seed)
        inner = Grower(
            draw, SMALL, {**g.leaves, v: g.value(x), k: np.asarray(0)}, [(v, g.value(x))], g.depth + 1, g.trouble
        )
        inner.grow(3)
        found = [node for node, array in inner.values if array.shape == g.value(x).shape and node.dtype == x.dtype]
        return k + 1, bounded(found[-1], v)

    if g.draw.random() < 0.5:
        return graphc.while_loop(lambda s: s[0] < most, body, (T.as_tensor(np.int64(0)), x))[1]
    return graphc.for_loop(0, most, lambda i, v: body((i, v))[1], x)


def mapped(g: Grower) -> Any:
    """A function grown over an axis more."""
    x = g.pick("f", least=1)
    if x is None or g.depth > 1:
        return None
    seed = g.draw.getrandbits(60)
    first = g.value(x)[:1]
    if not first.size:
        return None

    def grown(v: Node) -> Node:
        draw = type(g.draw)(seed)
        inner = Grower(draw, BODY, {**g.leaves, v: first[0]}, [(v, first[0])], g.depth + 1, g.trouble)
        inner.grow(3)
        return inner.values[-1][0]

    if g.draw.random() < 0.5:
        return graphc.map(grown, x)[0]
    return graphc.vmap(grown)(x)


SMALL: tuple[Maker, ...] = (unary, unary, binary, broadcast, along, part, write, reduce, gather_rows)
BODY: tuple[Maker, ...] = (*COMMON, algebra, loop, branch, random_numbers, slope, slope, while_loop)
MAKERS: tuple[Maker, ...] = (
    *COMMON, *COMMON, algebra, algebra, convolved, random_numbers, sparse_products, *[slope] * 4, forward_slope,
    branch, branch, *[loop] * 4, while_loop, mapped,
)  # fmt: skip
