"""Programs grown value by value: what is drawn next, and of which operands.

In: a source of random numbers. Out: a list of steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.corners import bounded as B
from tests.support.corners.axes import CUMULATIONS, NORMALISERS, REDUCTIONS, along, suits
from tests.support.corners.bounded import Bounded
from tests.support.corners.elements import COMPARISONS, OF_FLOATS, OF_INTEGERS, OF_TWO, OF_TWO_INTEGERS
from tests.support.corners.moves import MOVES, random_key
from tests.support.corners.steps import FLOATS, SIGNED, UNSIGNED, Size, Step, broadcast, count_at_most, plus

LARGEST = 20_000
"""Elements of a value at most: what is in corners is there in small arrays too."""


@dataclass(slots=True)
class Builder:
    """The values so far, and what is drawn next."""

    draw: random.Random
    steps: list[Step] = field(default_factory=list)

    def pick(self, wanted: Callable[[Step], bool] = lambda step: True) -> int | None:
        """The place of one of the last values, mostly, of those that are wanted."""
        found = [place for place, step in enumerate(self.steps) if wanted(step)]
        if not found:
            return None
        return self.draw.choice(found[-4:] if self.draw.random() < 0.7 else found)

    def grow(self) -> None:
        """One more value; nothing where what was drawn has no operands."""
        step = self.draw.choice(MAKERS)(self)
        if step is not None and step.ndim <= 5 and count_at_most(step.sizes, dict.fromkeys("nm", 2)) <= LARGEST:
            self.steps.append(step)

    def one(self) -> Step | None:
        place = self.pick(lambda step: step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        pair = self.draw.choice(OF_FLOATS if x.is_float else OF_INTEGERS)
        if not x.is_float and x.dtype in UNSIGNED and pair.name == "neg":
            return None
        return Step(f"{pair.name} of v{place}", (place,), pair.graph, pair.oracle, x.dtype, x.sizes,
                    x.exact and (not x.is_float or pair.name in ("neg", "abs")), pair.smooth)  # fmt: skip

    def operands(self, wanted: Callable[[Step], bool]) -> tuple[int, int, tuple[Size, ...]] | None:
        """Two values that broadcast, and the sizes to which."""
        first = self.pick(wanted)
        if first is None:
            return None
        sizes = self.steps[first].sizes
        second = self.pick(lambda step: wanted(step) and broadcast(sizes, step.sizes) is not None)
        if second is None:
            return None
        result = broadcast(sizes, self.steps[second].sizes)
        return None if result is None else (first, second, result)

    def two(self) -> Step | None:
        found = self.operands(lambda step: step.dtype != "bool")
        if found is None:
            return None
        first, second, sizes = found
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        if a.is_float or b.is_float:
            pair = self.draw.choice(OF_TWO)
        elif dtype == "float64":  # of int64 and uint64
            return None
        else:
            pair = self.draw.choice(OF_TWO_INTEGERS)
        dtype = pair.oracle(*(B.given(np.ones((), step.dtype)) for step in (a, b))).dtype
        exact = a.exact and b.exact and dtype not in FLOATS
        text = f"{pair.name} of v{first}, v{second}"
        return Step(text, (first, second), pair.graph, pair.oracle, dtype, sizes, exact, pair.smooth)

    def compare(self) -> Step | None:
        found = self.operands(lambda step: True)
        if found is None:
            return None
        first, second, sizes = found
        pair, exact = self.draw.choice(COMPARISONS), self.steps[first].exact and self.steps[second].exact
        text = f"{pair.name} of v{first}, v{second}"
        return Step(text, (first, second), pair.graph, pair.oracle, "bool", sizes, exact, smooth=False)

    def choose(self) -> Step | None:
        c, found = self.pick(lambda step: step.dtype == "bool"), self.operands(lambda step: step.dtype != "bool")
        if c is None or found is None:
            return None
        first, second, sizes = found
        result = broadcast(sizes, self.steps[c].sizes)
        if result is None:
            return None
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        exact = self.steps[c].exact and a.exact and b.exact
        return Step(f"where(v{c}, v{first}, v{second})", (c, first, second), T.where, B.where, dtype, result, exact)

    def convert(self) -> Step | None:
        place = self.pick()
        if place is None:
            return None
        x = self.steps[place]
        dtype = self.draw.choice(FLOATS if x.is_float else (*FLOATS, *SIGNED, *UNSIGNED, "bool"))
        exact = x.exact
        return Step(f"cast(v{place}, {dtype})", (place,), lambda v: T.cast(v, dtype), lambda v: B.cast(v, dtype), dtype,
                    x.sizes, exact, smooth=dtype in FLOATS)  # fmt: skip

    def reduce(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0)
        if place is None:
            return None
        x = self.steps[place]
        axes = tuple(sorted(self.draw.sample(range(x.ndim), self.draw.randrange(1, x.ndim + 1))))
        what = self.draw.choice(REDUCTIONS)
        if not suits(what, x, axes):
            return None
        return along(what, place, x, axes, self.draw.random() < 0.5)

    def normalise(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        what = self.draw.choice([*NORMALISERS, *CUMULATIONS])
        count = 1 if what.one_axis or self.draw.random() < 0.7 else self.draw.randrange(1, x.ndim + 1)
        axes = tuple(sorted(self.draw.sample(range(x.ndim), count)))
        return along(what, place, x, axes) if suits(what, x, axes) else None

    def move(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0)
        if place is None:
            return None
        x = self.steps[place]
        move = self.draw.choice(MOVES)(self.draw, x)
        if move is None:
            return None
        text, graph, function, sizes = move
        return Step(f"{text} of v{place}", (place,), graph, lambda v: v.moved(function), x.dtype, sizes, x.exact)

    def join(self) -> Step | None:
        """Two values one after the other, or along a new axis."""
        first = self.pick(lambda step: step.ndim > 0)
        if first is None:
            return None
        a = self.steps[first]
        axis, stacks = self.draw.randrange(a.ndim), self.draw.random() < 0.3

        def fits(step: Step) -> bool:
            return step.ndim == a.ndim and all(
                left == right or (k == axis and not stacks)
                for k, (left, right) in enumerate(zip(a.sizes, step.sizes, strict=True))
            )

        second = self.pick(fits)
        if second is None:
            return None
        b = self.steps[second]
        dtype, exact = np.result_type(a.dtype, b.dtype).name, a.exact and b.exact
        sizes = list(a.sizes)
        if stacks:
            sizes.insert(axis, 2)
        else:
            sizes[axis] = plus(a.sizes[axis], b.sizes[axis])
        graph, function = (T.stack, np.stack) if stacks else (T.concatenate, np.concatenate)

        def oracle(*args: Bounded) -> Bounded:
            alike = B.common(*args)
            num, ref, err = (function([getattr(x, part) for x in alike], axis=axis) for part in ("num", "ref", "err"))
            return Bounded(num, ref, err, exact)

        return Step(f"{graph.__name__}([v{first}, v{second}], axis={axis})", (first, second),
                    lambda *args: graph(list(args), axis=axis), oracle, dtype, tuple(sizes), exact)  # fmt: skip

    def write(self) -> Step | None:
        """A part replaced or increased by a number, or by the part itself doubled or reversed."""
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        key, increments, way = random_key(self.draw, x), self.draw.random() < 0.5, self.draw.randrange(3)
        update = T.inc_subtensor if increments else T.set_subtensor
        at = B.inc_at if increments else B.set_at

        def graph(v: Node) -> Node:
            part = v[key]
            return update(part, (1, part * 2, part[..., ::-1] if part.ndim else part)[way])

        def oracle(v: Bounded) -> Bounded:
            part = v.moved(lambda array: array[key])
            if way == 0:
                new = B.given(np.asarray(1, v.dtype)).moved(lambda one: np.broadcast_to(one, part.num.shape))
            elif way == 1:
                new = B.mul(part, B.given(np.asarray(2, v.dtype)))
            else:
                new = part.moved(lambda array: array[..., ::-1] if array.ndim else array)
            return at(v, key, new)

        what = ("1", "2 * part", "part[..., ::-1]")[way]
        exact = x.exact and (not x.is_float or (way != 1 and not increments))
        return Step(f"{update.__name__}(v{place}[{key}], {what})", (place,), graph, oracle, x.dtype, x.sizes, exact)

    def gather(self) -> Step | None:
        """Rows at integer positions, modulo their number; or increased there."""
        keys = self.pick(lambda step: step.dtype in SIGNED and step.exact and step.ndim in (1, 2))
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if keys is None or place is None:
            return None
        index, x = self.steps[keys], self.steps[place]
        axis = self.draw.randrange(x.ndim)
        if x.sizes[axis] == 0:
            return None
        scatters = self.draw.random() < 0.4

        def key(v: Any, i: Any) -> Any:
            return (*(slice(None) for _ in range(axis)), i % v.shape[axis])

        if scatters:

            def graph(v: Node, i: Node) -> Node:
                part = v[key(v, T.cast(i, "int64"))]
                return T.inc_subtensor(part, part * 2)

            def oracle(v: Bounded, i: Bounded) -> Bounded:
                where = key(v.num, i.num.astype("int64"))
                part = v.moved(lambda array: array[where])
                return B.inc_at(v, where, B.mul(part, B.given(np.asarray(2, v.dtype))))

            return Step(f"inc_subtensor(v{place}[v{keys} % size at {axis}], 2 * part)", (place, keys), graph, oracle,
                        x.dtype, x.sizes, x.exact and not x.is_float)  # fmt: skip
        sizes = (*x.sizes[:axis], *index.sizes, *x.sizes[axis + 1 :])
        return Step(f"v{place}[v{keys} % size at {axis}]", (place, keys),
                    lambda v, i: v[key(v, T.cast(i, "int64"))],
                    lambda v, i: v.moved(lambda array: array[key(v.num, i.num.astype("int64"))]),
                    x.dtype, sizes, x.exact)  # fmt: skip

    def product(self) -> Step | None:
        """A contraction over axes of equal sizes, by the function that has it."""
        first = self.pick(lambda step: 0 < step.ndim <= 3 and step.dtype != "bool")
        second = self.pick(lambda step: 0 < step.ndim <= 3 and step.dtype != "bool")
        if first is None or second is None:
            return None
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        if dtype == "float64" and not (a.is_float or b.is_float):
            return None
        letters, others = "abc"[: a.ndim], list("xyz"[: b.ndim])
        for place, size in enumerate(b.sizes):
            equal = [
                letter for letter, own in zip(letters, a.sizes, strict=True) if own == size and letter not in others
            ]
            if equal and self.draw.random() < 0.7:
                others[place] = self.draw.choice(equal)
        found = dict(zip([*letters, *others], [*a.sizes, *b.sizes], strict=True))
        kept = [
            letter for letter in found if self.draw.random() < (0.3 if letter in letters and letter in others else 0.9)
        ]
        self.draw.shuffle(kept)
        spec = f"{letters},{''.join(others)}->{''.join(kept)}"
        return Step(f"einsum({spec!r}, v{first}, v{second})", (first, second), lambda v, w: T.einsum(spec, v, w),
                    lambda v, w: B.contraction(spec, v, w), dtype, tuple(found[letter] for letter in kept),
                    a.exact and b.exact and dtype not in FLOATS)  # fmt: skip

    def matrix_product(self) -> Step | None:
        """A product of a matrix with a vector, a matrix or itself transposed, scaled and added to."""
        first = self.pick(lambda step: step.ndim == 2 and step.is_float)
        if first is None:
            return None
        a = self.steps[first]
        second = self.pick(lambda step: step.is_float and step.ndim in (1, 2) and step.sizes[0] == a.sizes[1])
        if second is None:
            return Step(f"dot(v{first}, v{first}.T)", (first,), lambda v: T.dot(v, v.T),
                        lambda v: B.contraction("ij,kj->ik", v, v), a.dtype, (a.sizes[0], a.sizes[0]))  # fmt: skip
        b = self.steps[second]
        spec = "ij,jk->ik" if b.ndim == 2 else "ij,j->i"
        factor, inner = self.draw.choice([1.0, 0.5, -2.0]), self.draw.choice([1.0, 1.0, 2.0**100, 2.0**-100])
        return Step(
            f"dot(v{first} * {inner}, v{second}) * {factor}",
            (first, second),
            lambda v, w: T.dot(v * inner, w) * factor,
            lambda v, w: B.scaled(B.contraction(spec, B.scaled(v, inner), w), factor),
            np.result_type(a.dtype, b.dtype).name,
            (a.sizes[0], *b.sizes[1:]),
        )


MAKERS: Sequence[Callable[[Builder], Step | None]] = (
    *(Builder.one,) * 4, *(Builder.two,) * 5, *(Builder.reduce,) * 5, *(Builder.normalise,) * 6, *(Builder.move,) * 5,
    Builder.compare, Builder.choose, Builder.convert, *(Builder.join,) * 2, *(Builder.write,) * 2, Builder.gather,
    Builder.product, Builder.matrix_product,
)  # fmt: skip
