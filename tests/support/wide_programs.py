"""Random programs over all dtypes and most ops: a program is built of values whose axes are known by letters.

In: a seed. Out: a `Program`: inputs, outputs, updates; arguments for it of given sizes and layouts; and how far two
results may be apart.

Axes: `n` and `m` are sizes that a call tells, `k` is 3 and `p` is 5 by type. A value is `exact` if it is the same to
the bit however it is computed: elements of inputs, moved, compared and counted. Only such values are rounded to
integers and searched for the place of an extreme, where the last bit of a sum would decide otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import is_float
from graphc.errors import GraphcError
from graphc.ir.node import Node
from graphc.ir.walk import nodes_of
from graphc.ops.recur import linear_recurrence

Array = NDArray[Any]
SIZES = {"k": 3, "p": 5}


@dataclass(frozen=True, slots=True)
class Value:
    """A node, a letter for each of its axes, and whether its bits do not depend on the order of additions."""

    node: Node
    axes: str
    exact: bool = False

    @property
    def is_float(self) -> bool:
        return is_float(self.node.dtype)


@dataclass(slots=True)
class Program:
    """Inputs with the letters of their axes, shared variables with theirs, what is computed, and what is updated."""

    inputs: list[tuple[Node, str]]
    shared: list[tuple[Any, str]]
    outputs: list[Node]
    updates: list[tuple[Any, Node]]
    mutable: frozenset[int] = frozenset()

    def compile(self, mode: str, threads: int | None = None) -> graphc.Function:
        """The program as a function; those of its inputs may be written that it says so of."""
        given = [graphc.In(leaf, mutable=number in self.mutable) for number, (leaf, _) in enumerate(self.inputs)]
        return graphc.function(
            given, self.outputs, mode, updates=self.updates, on_unused_input="ignore", threads=threads
        )


# Ops -----------------------------------------------------------------------------------------------------------------

OF_FLOATS: Sequence[Callable[[Node], Node]] = (
    T.tanh, T.sigmoid, T.neg, T.sin, T.softplus, abs, T.erf, T.arctan, T.log1pexp, T.cbrt,
    lambda a: T.exp(-T.sqr(a)),
    lambda a: T.log1p(T.sqr(a)),
    lambda a: T.sqrt(1.0 + T.sqr(a)),
    lambda a: a * 0.5 + 1.0,
    lambda a: 1.0 / (1.5 + T.cos(a)),
    lambda a: T.maximum(a, 0.0),
    lambda a: T.clip(a, -0.5, 0.5),
    lambda a: T.expm1(T.minimum(a, 1.0)),
    lambda a: T.pow(1.0 + T.sqr(a), 0.3),
    lambda a: a ** 3 * 0.1,
    lambda a: T.stop_gradient(a) * 0.5,
    lambda a: T.cast(T.cast(a, "float32"), "float64"),
    lambda a: T.nan_to_num(a) * 0.25,
)  # fmt: skip
OF_INTEGERS: Sequence[Callable[[Node], Node]] = (
    T.neg,
    abs,
    lambda a: a % 5,
    lambda a: a // 3,
    lambda a: a * 2 + 1,
    lambda a: a & 6,
    lambda a: T.maximum(a, 1),
    lambda a: T.sqr(a % 7),
    lambda a: T.cast(a % 100, "int8"),
    lambda a: T.cast(a, "int32"),
)
OF_TWO: Sequence[Callable[[Node, Node], Node]] = (
    T.add,
    T.sub,
    T.mul,
    T.maximum,
    T.minimum,
    lambda a, b: a / (1.0 + T.sqr(b)),
    lambda a, b: T.where(a < 0.3, a, b),
    lambda a, b: a * 0.5 - b * 2.0,
    lambda a, b: T.tanh(a) * b,
)
OF_TWO_INTEGERS: Sequence[Callable[[Node, Node], Node]] = (
    T.add,
    T.sub,
    T.mul,
    T.maximum,
    lambda a, b: a % (abs(b) + 1),
    lambda a, b: a | b,
    lambda a, b: T.where(a < b, a, b),
)
MOVES: Sequence[Callable[[Node], Node]] = (
    lambda a: a[::-1],
    lambda a: a[..., ::-1],
    lambda a: T.concatenate([a[1:], a[:1]]),
    lambda a: T.roll(a, 1, axis=-1),
    lambda a: T.repeat(a, 2, axis=0)[::2],
    lambda a: T.concatenate([a, a], axis=-1)[..., : a.shape[-1]],
    lambda a: T.set_subtensor(a[:1], 0),
    lambda a: T.set_subtensor(a[1:], a[:-1]),
    lambda a: T.set_subtensor(a[..., ::2], a[..., ::2] * 2),
    lambda a: a.reshape((a.size,)).reshape(a.shape),
    lambda a: T.zeros_like(a) + a,
)
INCREMENTS: Sequence[Callable[[Node], Node]] = (
    lambda a: T.inc_subtensor(a[::-1], a),
    lambda a: T.inc_subtensor(a[1:], a[:-1] * 2),
    lambda a: T.inc_subtensor(T.zeros_like(a)[..., ::-1], a),
    lambda a: T.inc_subtensor(a[..., ::2], 1),
)
SUMS: Sequence[Callable[..., Node]] = (T.sum, T.sum, T.sum, T.mean, T.var, T.std, T.norm, T.logsumexp)
EXTREMES: Sequence[Callable[..., Node]] = (T.max, T.min)
OF_TRUTHS: Sequence[Callable[..., Node]] = (T.any, T.all, T.sum)
SHAPED: Sequence[Callable[[Node], Node]] = (
    lambda a: T.softmax(a, axis=-1),
    lambda a: T.log_softmax(a, axis=-1),
    lambda a: a - a.mean(axis=-1, keepdims=True),
    lambda a: a / T.sqrt(1.0 + T.sqr(a).sum(axis=0, keepdims=True)),
    lambda a: a / (1.0 + abs(a).max(axis=-1, keepdims=True)),
)


@graphc.op("test_half_sine", vjp=lambda node, cotangent: cotangent * 0.5 * T.cos(node.args[0]))
def half_sine(x: Array) -> Array:
    """A function of Python's in the middle of a kernel."""
    with np.errstate(all="ignore"):
        return np.asarray(0.5 * np.sin(x), x.dtype)


# Programs ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Builder:
    """A pool of values, grown one by one."""

    draw: random.Random
    pool: list[Value] = field(default_factory=list)

    def pick(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the last values, mostly, of those that are wanted."""
        found = [value for value in self.pool if wanted(value)]
        if not found:
            return None
        return self.draw.choice(found[-5:] if self.draw.random() < 0.7 else found)

    def floats(self, rank: int = 0) -> Value | None:
        return self.pick(lambda value: value.is_float and len(value.axes) >= rank)

    def grow(self) -> None:
        """One more value; nothing where what was drawn has no operands."""
        new = self.draw.choice(MAKERS)(self)
        if new is not None:
            self.pool.append(new)

    # each of what follows makes a value of those there are

    def one(self) -> Value | None:
        a = self.pick()
        if a is None:
            return None
        if a.node.dtype == "bool":
            return Value(T.cast(a.node, self.draw.choice(["int64", "float64", "float32", "int8"])), a.axes, a.exact)
        functions = OF_FLOATS if a.is_float else OF_INTEGERS
        return Value(self.draw.choice(functions)(a.node), a.axes, a.exact and not a.is_float)

    def two(self) -> Value | None:
        a = self.pick(lambda value: value.node.dtype != "bool")
        b = self.pick(lambda value: value.node.dtype != "bool")
        if a is None or b is None or len(set(a.axes + b.axes)) > 3:
            return None
        left, right, axes = aligned(a, b)
        is_exact = not (a.is_float or b.is_float)
        functions = OF_TWO_INTEGERS if is_exact else OF_TWO
        return Value(self.draw.choice(functions)(left, right), axes, is_exact)

    def compared(self) -> Value | None:
        a = self.pick(lambda value: value.exact)
        if a is None:
            return None
        return Value(self.draw.choice([a.node > 0, T.isnan(a.node * 1.0), a.node <= 1]), a.axes, True)

    def chosen(self) -> Value | None:
        a, b = self.pick(lambda value: value.node.dtype == "bool"), self.floats()
        if a is None or b is None or len(set(a.axes + b.axes)) > 3:
            return None
        left, right, axes = aligned(a, b)
        return Value(T.where(left, right, right * 0.5), axes)

    def rounded(self) -> Value | None:
        a = self.pick(lambda value: value.exact and value.is_float)
        if a is None:
            return None
        return Value(T.cast(T.clip(T.nan_to_num(T.floor(a.node * 3)), -9, 9), "int64"), a.axes, True)

    def cast(self) -> Value | None:
        a = self.pick()
        if a is None:
            return None
        dtypes = ["float64", "float32"] if a.is_float else ["float64", "float32", "int64"]
        return Value(T.cast(a.node, self.draw.choice(dtypes)), a.axes, a.exact)

    def turned(self) -> Value | None:
        a = self.pick(lambda value: len(value.axes) > 1)
        if a is None:
            return None
        order = self.draw.sample(range(len(a.axes)), len(a.axes))
        return Value(a.node.dimshuffle(*order), "".join(a.axes[axis] for axis in order), a.exact)

    def moved(self) -> Value | None:
        a = self.pick(lambda value: bool(value.axes) and value.node.dtype != "bool")
        return None if a is None else Value(self.draw.choice(MOVES)(a.node), a.axes, a.exact)

    def incremented(self) -> Value | None:
        a = self.pick(lambda value: bool(value.axes) and value.node.dtype != "bool")
        return None if a is None else Value(self.draw.choice(INCREMENTS)(a.node), a.axes, not a.is_float)

    def reduced(self) -> Value | None:
        a = self.pick(lambda value: bool(value.axes))
        if a is None:
            return None
        axes = self.draw.sample(range(len(a.axes)), self.draw.randrange(1, len(a.axes) + 1))
        left = "".join(letter for axis, letter in enumerate(a.axes) if axis not in axes)
        if a.node.dtype == "bool":
            return Value(self.draw.choice(OF_TRUTHS)(a.node, axis=axes), left, True)
        if self.draw.random() < 0.2:
            return Value(self.draw.choice(EXTREMES)(a.node, axis=axes), left, a.exact)
        if a.is_float:
            function = self.draw.choice(SUMS)
            return Value(function(a.node, axis=axes), left)
        return Value(self.draw.choice([T.sum, T.prod])(a.node, axis=axes), left, True)

    def multiplied(self) -> Value | None:
        a = self.floats(1)
        if a is None:
            return None
        left, axis = without(a, self.draw)
        return Value(T.prod(T.tanh(a.node) + 0.5, axis=axis), left)

    def placed(self) -> Value | None:
        """The position of an extreme."""
        a = self.pick(lambda value: value.exact and bool(value.axes))
        if a is None or a.node.dtype == "bool":
            return None
        left, axis = without(a, self.draw)
        return Value(self.draw.choice([T.argmax, T.argmin])(a.node, axis=axis), left, True)

    def running(self) -> Value | None:
        a = self.floats(1)
        if a is None:
            return None
        axis = self.draw.randrange(len(a.axes))
        match self.draw.randrange(3):
            case 0:
                return Value(T.cumsum(a.node, axis=axis), a.axes)
            case 1:
                return Value(T.cumprod(T.tanh(a.node) + 0.25, axis=axis), a.axes)
            case _:
                form = self.draw.choice(["own", "before", "late"])
                back = self.draw.random() < 0.5
                return Value(linear_recurrence(T.tanh(a.node), T.sin(a.node), axis, back, form), a.axes)

    def shaped(self) -> Value | None:
        a = self.floats(1)
        return None if a is None else Value(self.draw.choice(SHAPED)(a.node), a.axes)

    def gathered(self) -> Value | None:
        a = self.pick(lambda value: bool(value.axes))
        keys = self.keys()
        if a is None or keys is None or keys.axes in a.axes[1:]:
            return None
        return Value(a.node[keys.node % a.node.shape[0]], keys.axes + a.axes[1:], a.exact)

    def keys(self) -> Value | None:
        """A vector of positions."""
        return self.pick(lambda value: value.node.dtype in ("int64", "int32") and len(value.axes) == 1)

    def scattered(self) -> Value | None:
        """Rows added to a small table, or to rows of a table of their own sizes; or put there."""
        keys = self.keys()
        if keys is None:
            return None
        a = self.pick(lambda value: value.axes[:1] == keys.axes and "p" not in value.axes)
        if a is None or a.node.dtype == "bool":
            return None
        dtype = a.node.dtype
        if self.draw.random() < 0.6:
            table = T.zeros((5, *a.node.shape[1:]), dtype=dtype)
            return Value(T.inc_subtensor(table[keys.node % 5], a.node), "p" + a.axes[1:], not a.is_float)
        function = self.draw.choice([T.inc_subtensor, T.set_subtensor])
        whole = a.node * 2
        return Value(function(whole[keys.node % whole.shape[0]], a.node), a.axes, not a.is_float)

    def product(self) -> Value | None:
        """A product of two values over an axis that both have, with others, scaled and added to."""
        a = self.pick(lambda value: value.is_float and 1 <= len(value.axes) <= 2)
        if a is None:
            return None
        b = self.pick(lambda value: value.is_float and len(value.axes) <= 2 and bool(set(value.axes) & set(a.axes)))
        if b is None:
            return None
        common = self.draw.choice(sorted(set(a.axes) & set(b.axes)))
        left = a.node if a.axes[-1] == common else a.node.T
        right = b.node if b.axes[0] == common else b.node.T
        rest_a, rest_b = a.axes.replace(common, ""), b.axes.replace(common, "")
        result = T.dot(left, right) * 0.25
        if rest_a and rest_a == rest_b:
            result, rest_b = T.diagonal(result), ""
        axes = rest_a + rest_b
        c = self.pick(lambda value: value.axes == axes and value.is_float)
        if c is not None and self.draw.random() < 0.5:
            result = result * self.draw.choice([1.0, -1.0, 0.5]) + c.node * self.draw.choice([1.0, 2.0])
        return Value(result, axes)

    def contracted(self) -> Value | None:
        """A product of stacks of matrices."""
        a = self.pick(lambda value: value.is_float and len(value.axes) == 3)
        b = self.floats(1)
        if a is None or b is None or not set(b.axes) <= set(a.axes):
            return None
        kept = "".join(letter for letter in a.axes if letter != b.axes[-1])
        return Value(T.einsum(f"{a.axes},{b.axes}->{kept}", a.node, b.node) * 0.25, kept)

    def outer(self) -> Value | None:
        a, b = (self.pick(lambda value: value.is_float and len(value.axes) == 1) for _ in "ab")
        return None if a is None or b is None or a.axes == b.axes else Value(T.outer(a.node, b.node), a.axes + b.axes)

    def counted(self) -> Value | None:
        """Positions and sizes as values, and constants."""
        a = self.pick(lambda value: bool(value.axes))
        if a is None:
            return None
        size = a.node.shape[0]
        return self.draw.choice([
            Value(T.arange(size), a.axes[0], True),
            Value(T.cast(T.arange(size), "float64") * 0.25, a.axes[0], True),
            Value(T.as_tensor(np.linspace(-1, 1, 3)), "k", True),
            Value(T.as_tensor(np.arange(3)), "k", True),
            Value(T.as_tensor(size), "", True),
        ])  # fmt: skip

    def called(self) -> Value | None:
        a = self.floats()
        return None if a is None or self.draw.random() < 0.7 else Value(half_sine(a.node), a.axes)


MAKERS: Sequence[Callable[[Builder], Value | None]] = (
    *(Builder.one,) * 4, *(Builder.two,) * 5, *(Builder.reduced,) * 4, *(Builder.moved,) * 2, *(Builder.shaped,) * 2,
    Builder.compared, Builder.chosen, Builder.rounded, Builder.cast, Builder.turned, Builder.incremented,
    Builder.multiplied, Builder.placed, Builder.running, Builder.gathered, Builder.scattered, Builder.product,
    Builder.product, Builder.contracted, Builder.outer, Builder.counted, Builder.called,
)  # fmt: skip


def without(a: Value, draw: random.Random) -> tuple[str, int]:
    """The axes of a value without one of them, and that axis."""
    axis = draw.randrange(len(a.axes))
    return a.axes[:axis] + a.axes[axis + 1 :], axis


def aligned(a: Value, b: Value) -> tuple[Node, Node, str]:
    """Two values with axes of size 1 where the other has one of its own, in one order of axes."""
    axes = max(a.axes, b.axes, key=len)
    axes += "".join(letter for letter in (a.axes + b.axes) if letter not in axes)
    nodes = [
        value.node.dimshuffle(*(value.axes.index(letter) if letter in value.axes else "x" for letter in axes))
        for value in (a, b)
    ]
    return nodes[0], nodes[1], axes


def random_program(seed: int, steps: int | None = None) -> Program:
    """A random program; what cannot be built is drawn again."""
    for attempt in range(20):
        try:
            return _program(random.Random(1000 * seed + attempt), steps)
        except GraphcError:
            continue
    raise AssertionError(f"seed {seed}: no program can be built")


def _program(draw: random.Random, steps: int | None) -> Program:
    kinds = ["float64", "float32"]
    dtypes = [draw.choice(kinds) for _ in range(5)]
    inputs = [
        (T.matrix("x", dtype=dtypes[0]), "nm"),
        (T.matrix("y", dtype=dtypes[1]), "nm"),
        (T.vector("u", dtype=dtypes[2]), "n"),
        (T.vector("v", dtype=dtypes[3]), "m"),
        (T.tensor(dtypes[4], shape=(None, 3), name="c"), "nk"),
        (T.lvector("i"), "n"),
        (T.matrix("b", dtype=draw.choice(["bool", "int8", "uint8", "int32"])), "nm"),
        (T.dscalar("s"), ""),
    ]
    shared: list[tuple[Any, str]] = [
        (graphc.shared(np.zeros((0, 0)), "w1"), "nm"),
        (graphc.shared(np.zeros((0, 0)), "w2"), "nm"),
        (graphc.shared(np.zeros(0, "float32"), "w3"), "m"),
    ]
    builder = Builder(draw, [Value(node, axes, True) for node, axes in (*inputs, *shared)])
    builder.pool[0] = Value(T.tanh(inputs[0][0]), "nm")
    first = len(builder.pool)
    for _ in range(steps or draw.randrange(4, 24)):
        builder.grow()
    made = builder.pool[first:] or builder.pool
    outputs = [draw.choice(made).node for _ in range(draw.randrange(1, 5))]
    if draw.random() < 0.15:
        outputs.append(draw.choice([inputs[0][0], inputs[0][0].T, inputs[2][0], shared[0][0], inputs[1][0][::-1]]))
    outputs += _derivatives(draw, made, [node for node, _ in (*inputs, *shared) if is_float(node.dtype)])
    return Program(inputs, shared, outputs, _updates(draw, builder, shared), _mutable(draw, inputs))


def _derivatives(draw: random.Random, made: Sequence[Value], leaves: Sequence[Node]) -> list[Node]:
    """A cost with some of its derivatives, and some of their own."""
    terms = [T.cast(T.log1p(T.sqr(value.node)).sum(), "float64") for value in made[-4:] if value.is_float]
    if not terms or draw.random() < 0.4:
        return []
    cost = sum(terms[1:], start=terms[0])
    wanted = draw.sample(leaves, 3)
    gradients = graphc.grad(cost, wanted, disconnected_inputs="ignore")
    if draw.random() < 0.3:
        norm = sum((T.cast(T.sqr(gradient).sum(), "float64") for gradient in gradients), start=cost)
        gradients += graphc.grad(norm, wanted[:2], disconnected_inputs="ignore")
    return [cost, *gradients]


def _updates(draw: random.Random, builder: Builder, shared: Sequence[tuple[Any, str]]) -> list[tuple[Any, Node]]:
    """New values of shared variables: of the same sizes, or of each other."""
    (first, _), (second, _), (third, _) = shared
    updates: list[tuple[Any, Node]] = []
    match draw.randrange(4):
        case 0:
            updates = [(first, second), (second, first)]
        case 1:
            updates = [(first, second + first * 0.5), (second, first[::-1])]
        case 2:
            for leaf in (first, second):
                value = builder.pick(lambda value: value.axes == "nm" and value.is_float)
                if value is not None:
                    updates.append((leaf, T.cast(leaf * 0.5 + value.node, "float64")))
    value = builder.pick(lambda value: value.axes == "m" and value.is_float)
    if value is not None and draw.random() < 0.6:
        updates.append((third, T.cast(draw.choice([value.node, third - 0.1 * value.node]), "float32")))
    return updates


def _mutable(draw: random.Random, inputs: Sequence[Any]) -> frozenset[int]:
    some = draw.random() < 0.3
    return frozenset(number for number in range(len(inputs) - 1) if some and draw.random() < 0.5)


# Arguments -----------------------------------------------------------------------------------------------------------

LAYOUTS: Sequence[Callable[[Array], Array]] = (
    lambda a: a,
    np.asfortranarray,
    lambda a: a[::-1].copy()[::-1],
    lambda a: a[..., ::-1].copy()[..., ::-1],
    lambda a: np.repeat(a, 2, axis=0)[::2],
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    lambda a: np.pad(a, 2)[(slice(2, -2),) * a.ndim],
    lambda a: a.astype(a.dtype.newbyteorder()),
    lambda a: np.frombuffer(b"-" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
)
"""The same elements in other places of memory."""


def arguments(program: Program, rows: int, columns: int, seed: int, special: bool) -> tuple[list[Array], list[Array]]:
    """Values of the inputs and of the shared variables, for these numbers of rows and columns."""
    rng = np.random.default_rng(seed)
    sizes = {"n": rows, "m": columns, **SIZES}

    def array(node: Any, axes: str) -> Array:
        shape = tuple(sizes[letter] for letter in axes)
        if not is_float(node.dtype):
            low = 0 if node.dtype in ("bool", "uint8") else -4
            return np.asarray(rng.integers(low, 5, shape)).astype(node.dtype)
        values = np.asarray(rng.normal(size=shape), node.dtype)
        if special and values.size and rng.random() < 0.7:
            spots = rng.integers(0, values.size, 1 + values.size // 20)
            values.reshape(-1)[spots] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], spots.size)
        return values

    inputs, shared = ([array(node, axes) for node, axes in group] for group in (program.inputs, program.shared))
    return inputs, shared


def laid_out(values: Sequence[Array], draw: random.Random) -> list[Array]:
    """The same arrays in random layouts."""
    return [value if not value.ndim or draw.random() < 0.3 else draw.choice(LAYOUTS)(value) for value in values]


def outcome(call: graphc.Function, program: Program, inputs: Sequence[Any], shared: Sequence[Array]) -> Any:
    """Results and new values of the shared variables, or the kind of error and the old ones."""
    for (leaf, _), value in zip(program.shared, shared, strict=True):
        leaf.set_value(value)
    try:
        results: Any = [np.array(result) for result in call(*inputs)]
    except GraphcError as error:
        results = type(error)
    return results, [leaf.get_value() for leaf, _ in program.shared]


def difference(found: Any, want: Any, near: Sequence[Any], narrow: bool) -> str:
    """How two outcomes differ by more than rounding; "" where they do not.

    `near` are outcomes of the specification for inputs that differ by roundings: what they differ by is how much
    rounding may do. `narrow`: there is float32 in the program.
    """
    if isinstance(found[0], type) or isinstance(want[0], type):
        return "" if found[0] is want[0] else f"{found[0]} instead of {want[0]}"
    if any(isinstance(other[0], type) for other in near):
        return ""
    tolerance = 2e-6 if narrow else 1e-12
    others = [[*other[0], *other[1]] for other in near]
    pairs = zip([*found[0], *found[1]], [*want[0], *want[1]], *others, strict=True)
    for number, (got, right, *apart) in enumerate(pairs):
        if (got.dtype, got.shape) != (right.dtype, right.shape):
            return f"result {number}: {got.dtype}{got.shape} instead of {right.dtype}{right.shape}"
        if not is_float(got.dtype.name):
            if not np.array_equal(got, right) and all(np.array_equal(right, other) for other in apart):
                return f"result {number}: {got} instead of {right}"
            continue
        with np.errstate(all="ignore"):
            finite = np.isfinite(right)
            scale = np.abs(right[finite]).max(initial=1.0)
            spread = np.max([np.abs(other - right) for other in apart], axis=0, initial=0.0)
            steady = ~(spread > scale) if apart else np.ones(right.shape, bool)  # a jump, or no number
            allowed = 100 * np.where(np.isfinite(spread), spread, 0).max(initial=0.0) + tolerance * scale
            wrong = steady & ~((got == right) | (np.isnan(got) & np.isnan(right)) | (np.abs(got - right) <= allowed))
        if wrong.any():
            return f"result {number}: {got[wrong][:4]} instead of {right[wrong][:4]}, allowed {allowed:.2g}"
    return ""


def rounded(values: Sequence[Array], narrow: bool, rng: np.random.Generator) -> list[Array]:
    """Inputs that differ from `values` by roundings."""
    step = 1e-7 if narrow else 1e-15

    def near(value: Array) -> Array:
        return np.asarray(value * (1 + step * rng.uniform(-1, 1, value.shape)), value.dtype)

    return [near(value) if is_float(value.dtype.name) else value for value in values]


def has_float32(program: Program) -> bool:
    """Whether anything is computed in float32."""
    values = nodes_of([*program.outputs, *(value for _, value in program.updates)])
    return any(node.dtype == "float32" for node in values)
