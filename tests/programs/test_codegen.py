"""What the code generator has to get right beyond single ops: compiled = generated source under CPython = interpreted.

A case is a row: its arguments by dtype and sizes ("x:float64[n,m]"; "W=float32[n]" is a shared variable), and a
function from these to its outputs, or to outputs and updates. Every case runs in all modes over SIZES, updates and
errors included.
"""

# ruff: noqa: N803, RUF001 - weights are called W, and some names are meant to be ambiguous
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES
from graphc.ir.node import Node, Type, variable
from graphc.ops.custom import custom_op
from graphc.options import options
from graphc.rewrite import PIPELINE
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_specified
from tests.support.thorough import some, those

Array = NDArray[Any]
Outcome = tuple[Any, list[Array]]
"""What a call gives, or the kind of error it raises, and the values of the shared variables after it."""
MODES = ("interpreted", "python", "compiled")
SIZES = (
    {"n": 3, "m": 4, "k": 2},
    {"n": 9, "m": 5, "k": 3},
    {"n": 1, "m": 1, "k": 1},
    {"n": 0, "m": 3, "k": 2},
    {"n": 2, "m": 0, "k": 1},
    {"n": 5, "m": 2, "k": 0},
)
ARGUMENT = re.compile(r"(\w+)([:=])(\w+)\[(.*?)\]")


@dataclass(frozen=True)
class Case:
    name: str
    args: str
    build: Callable[..., Any]


CASES: list[Case] = []


REPEATED = {f"structure of {dtype}" for dtype in ("int8", "int16", "int32", "uint16", "uint32", "uint64")}
"""Cases for dtypes that take the same ways through the generator as others."""


def case(name: str, args: str, build: Callable[..., Any]) -> None:
    CASES.append(Case(name, args, build))


# --- running a case -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    node: Any
    dtype: str
    sizes: tuple[str, ...]
    shared: bool

    def draw(self, sizes: dict[str, int], rng: np.random.Generator) -> Array:
        shape = tuple(sizes[size] if size in sizes else int(size) for size in self.sizes)
        if self.dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if self.dtype.startswith("float"):
            return rng.normal(size=shape).astype(self.dtype)
        return rng.integers(0 if self.dtype.startswith("u") else -3, 4, shape).astype(self.dtype)


def read_arguments(text: str) -> list[Argument]:
    arguments = []
    for name, kind, dtype, inside in ARGUMENT.findall(text):
        sizes = tuple(size.strip() for size in inside.split(",") if size.strip())
        static = [int(size) if size.isdigit() else None for size in sizes]
        start = np.zeros([size or 0 for size in static], dtype)
        node = variable(dtype, static, name) if kind == ":" else graphc.shared(start, name=name, shape=static)
        arguments.append(Argument(node, dtype, sizes, kind == "="))
    return arguments


def outcome(
    call: Callable[..., Any], values: Sequence[Array], shared: Sequence[Any], start: Sequence[Array]
) -> Outcome:
    for node, value in zip(shared, start, strict=True):
        node.set_value(value)
    try:
        found = call(*[value.copy() for value in values])
    except (graphc.GraphcError, ArithmeticError) as error:
        found = type(error)
    return found, [node.get_value() for node in shared]


def agree(
    call: graphc.Function, found: Outcome, want: Outcome, values: Sequence[Array], start: Mapping[Any, Array], what: str
) -> None:
    """A call fails as the interpreter does, or its results and variables are within the bounds of the arithmetic."""
    updated = [leaf for leaf, _ in call.kernel.updates]
    after = dict(zip(start, found[1], strict=True))
    kept = [node for node in start if isinstance(want[0], type) or node not in updated]
    for node in kept:
        np.testing.assert_array_equal(after[node], start[node], err_msg=what)
    if isinstance(want[0], type) or isinstance(found[0], type):
        assert found[0] is want[0], what
        return
    given = [start[node] for node in call.shared]
    assert_specified(call, [*found[0], *(after[node] for node in updated)], values, given, least=0.0)


def run_case(spec: Case, modes: Sequence[str] = MODES) -> None:
    arguments = read_arguments(spec.args)
    built = spec.build(*[argument.node for argument in arguments])
    outputs, updates = built if isinstance(built, tuple) else (built, None)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    inputs = [argument.node for argument in arguments if not argument.shared]
    shared = [argument.node for argument in arguments if argument.shared]
    calls = {
        mode: graphc.function(inputs, outputs, updates=updates, mode=mode, on_unused_input="ignore") for mode in modes
    }
    compiled = PROCESS.compilations
    rng = np.random.default_rng(5)
    for sizes in SIZES:
        drawn = [(argument.shared, argument.draw(sizes, rng)) for argument in arguments]
        values, start = ([value for is_shared, value in drawn if is_shared is wanted] for wanted in (False, True))
        want = outcome(calls["interpreted"], values, shared, start)
        for mode in modes[1:]:
            what = f"{spec.name}, {mode}, {sizes}\n{calls[mode].source}"
            known = dict(zip(shared, start, strict=True))
            agree(calls[mode], outcome(calls[mode], values, shared, start), want, values, known, what)
    assert PROCESS.compilations == compiled


# --- the cases ------------------------------------------------------------------------------------------------------

# fmt: off
for d in DTYPES:
    case(f"structure of {d}", f"x:{d}[n,m] v:{d}[m]", lambda x, v: [
        x.T, x[::-1], x[:, ::-1].flatten(), T.stack([x, x]), x.reshape((x.shape[1], x.shape[0])), T.tile(v, 2),
        T.concatenate([x, x[::-1]]), T.concatenate([x.T, x.T], axis=1), x.dimshuffle(1, "x", 0), T.zeros_like(x),
        T.set_subtensor(x[:1], v), T.inc_subtensor(x[:, ::-1], x), T.inc_subtensor(x[::-2], x[::2]), T.ones_like(v),
        T.broadcast_to(v, (3, 2, v.shape[0])), T.where(x == v, x, v), T.maximum(x, v), T.minimum(x, v),
        x.sum(axis=0), x.sum(axis=1), x.prod(), x.any(axis=0), x.all(axis=1), x.astype("bool"), x.astype("int16"),
        x.astype("uint64").astype("float32"),
    ])
    case(f"extremes of {d}", f"x:{d}[n,m] y:{d}[n,m]", lambda x, y: [
        x.max(axis=1), x.min(axis=0), x.argmax(axis=0), x.argmin(axis=1), x.max(), y.argmin(),
        T.maximum(x, y).max(axis=0),
    ])
    case(f"gathers of {d}", f"x:{d}[5,m] i:int8[k] j:int64[n,k]", lambda x, i, j: [
        x[i], x[j], x[i].sum(axis=0), x[i][::-1], x.T[:, i], T.inc_subtensor(x[i], x[i]), T.set_subtensor(x[j], x[j]),
    ])
    case(f"updates of {d}", f"W={d}[n,m] s={d}[] x:{d}[n,m] v:{d}[m]", lambda W, s, x, v: (
        [W.sum(), s], {W: T.where(x == s, W, T.maximum(W, v)), s: T.where(x.any(), s, s + T.ones_like(s))}))

# updates: W and V are read and written in one call
MATRICES = "W=float64[n,m] V=float64[n,m]"
SQUARES = "W=float64[3,3] a:float64[3,3]"
VECTORS = "W=float64[n] V=float64[n]"
PRODUCT = "W=float64[n,m] a:float64[n,k] b:float64[k,m]"


def everywhere(value: Node, W: Node, V: Node) -> Any:
    return [value, value, value * 2], {W: value, V: value}


for name, args, update in (
    ("momentum", MATRICES, lambda W, V: ([(W * V).sum()], {V: 0.9 * V + W, W: W - 0.1 * (0.9 * V + W)})),
    ("each other", MATRICES, lambda W, V: ([W + V], {W: V + 1, V: W - 1})),
    ("swapped", VECTORS, lambda W, V: ([W, V], {W: V, V: W})),
    ("swapped, of other sizes", "W=float64[n] V=float64[m]", lambda W, V: ([W[:1]], {W: V, V: W})),
    ("swapped scalars", "s=float64[] t=float64[] x:float64[n]", lambda s, t, x: ([s, x * s + t], {s: t, t: s})),
    ("swapped by views", "W=float64[n,m] V=float64[m,n]", lambda W, V: ([], {W: V.T, V: W.T})),
    ("reduced of each other", MATRICES, lambda W, V: ([], {W: V.sum(axis=0) + W, V: W.sum(axis=1)[:, None] + V})),
    ("a ring", f"{MATRICES} U=float64[n,m]", lambda W, V, U: ([], {W: V[::-1], V: U * W, U: W[:, ::-1]})),
    ("reversed", "W=float64[n,m]", lambda W: ([W], {W: W[::-1]})),
    ("reversed and itself", "W=float64[n,m]", lambda W: ([W], {W: W[:, ::-1] + W})),
    ("transposed", "W=float64[3,3]", lambda W: ([], {W: W.T + 1})),
    ("transposed, of any size", "W=float64[n,m]", lambda W: ([W], {W: W.T})),
    ("less its sum", "W=float64[n,m]", lambda W: ([], {W: W - W.sum()})),
    ("less its means", "W=float64[n,m]", lambda W: ([W.mean(axis=1)], {W: W - W.mean(axis=0)})),
    ("less its row means", "W=float64[n,m]", lambda W: ([], {W: W - W.mean(axis=1, keepdims=True)})),
    ("less its first", "W=float64[3]", lambda W: ([], {W: W - W[0]})),
    ("softmax", "W=float64[n,3]", lambda W: ([], {W: T.nnet.softmax(W)})),
    ("exponentials over their sum", "W=float64[n]", lambda W: ([], {W: T.exp(W) / T.exp(W).sum()})),
    ("cumsum", "W=float64[n,m]", lambda W: ([], {W: T.cumsum(W, axis=0)})),
    ("reduction", "W=float64[m] x:float64[n,m]", lambda W, x: ([W], {W: (x * W).sum(axis=0)})),
    ("nested reduction", "W=float64[3]", lambda W: ([], {W: (W[:, None] * W[None, :]).sum(axis=1)})),
    ("row", "W=float64[1,m] x:float64[n,m]", lambda W, x: ([], {W: W + x.sum(axis=0) + W[0, ::-1]})),
    ("product", SQUARES, lambda W, a: ([W], {W: T.dot(W, a)})),
    ("product with itself", SQUARES, lambda W, a: ([], {W: T.dot(W, W.T) + W})),
    ("gemm", PRODUCT, lambda W, a, b: ([], {W: W - 0.1 * T.dot(a, b)})),
    ("gemm of an expression", PRODUCT, lambda W, a, b: ([], {W: 2 * T.tanh(W) - 0.1 * T.dot(a, b)})),
    ("gemm of a transpose", SQUARES, lambda W, a: ([], {W: W.T - 0.1 * T.dot(a, a)})),
    ("gemm with itself", SQUARES, lambda W, a: ([], {W: W - 0.1 * T.dot(W, a)})),
    ("rows added", "W=float64[5] i:int64[k]", lambda W, i: ([W[i]], {W: T.inc_subtensor(W[i], 2.0)})),
    ("rows added of itself", "W=float64[5] i:int64[k]", lambda W, i: ([], {W: T.inc_subtensor(W[i], W[i][::-1])})),
    ("slice of itself", "W=float64[5,m]", lambda W: ([], {W: T.set_subtensor(W[1:], W[:-1])})),
    ("two slices", "W=float64[5]", lambda W: ([W], {W: T.inc_subtensor(T.inc_subtensor(W[1:3], 1.0)[:1], 2.0)})),
    ("indexed by itself", "W=int64[3]", lambda W: ([], {W: T.set_subtensor(W[abs(W) % 3], W)})),
    ("indexed by the new value", "W=float64[3] V=int64[3]", lambda W, V: ([], {V: V + 2, W: W[V + 2] + W})),
    ("out of bounds", f"{VECTORS} i:int64[k]", lambda W, V, i: ([W.sum()], {W: W * 2, V: V + W[i + 1].sum()})),
    ("out of bounds in place", "W=float64[n] i:int64[k]", lambda W, i: ([W], {W: T.inc_subtensor(W[i], 1.0)})),
    ("wrong sizes", f"{VECTORS} y:float64[m]", lambda W, V, y: ([], {W: W + 1, V: V + y})),
    ("one value in many places", VECTORS, lambda W, V: everywhere(W * V + 1, W, V)),
    ("one product in many places", "W=float64[3,3] V=float64[3,3]", lambda W, V: everywhere(T.dot(W, V), W, V)),
    ("a counter", "s=int64[] W=float64[n]", lambda s, W: ([s], {s: s + 1, W: W / (s * s + 2)})),
    ("grown", f"{VECTORS} x:float64[m]", lambda W, V, x: ([W], {W: T.concatenate([W, x]), V: V + W})),
    ("of other sizes", "W=float64[n] x:float64[m]", lambda W, x: ([W], {W: x})),
    ("sizes from data", "W=int64[3] x:float64[m]", lambda W, x: ([T.zeros(abs(W).sum())], {W: W * 0 + x.argmax()})),
    ("sizes equal to data", "W=int64[m] V=float64[n]", lambda W, V: ([V], {W: W * 0, V: V + T.ones(abs(W).sum())})),
):
    case(f"update: {name}", args, update)

# reductions
case("variance", "x:float64[n,m]", lambda x: [x.var(), x.var(axis=0), x.var(axis=1), x.std(axis=0)])
case("nested softmax", "x:float64[3,4]", lambda x: [T.nnet.softmax(T.nnet.softmax(y).T) for y in (x, x.T)])
case("logsumexp", "x:float64[3,4,2]", lambda x: [
    T.logsumexp(x), T.logsumexp(T.logsumexp(x, axis=2), axis=0), *(T.logsumexp(x, axis=axis) for axis in range(3)),
])
case("rows of one element", "x:float64[1,m]", lambda x: [T.logsumexp(x, axis=0), T.nnet.log_softmax(x.T)])
case("nested argmax", "x:float64[3,4]", lambda x: [
    x[x.argmax(axis=0)].argmax(axis=1), x[x.argmax(axis=0), T.arange(4)], T.argmax(x - x.max(axis=0), axis=1),
])
case("inner axes", "x:float64[n,m,k]", lambda x: [
    x.sum(axis=1) * 2, (x - x.mean(axis=1, keepdims=True)).sum(axis=0), x.sum(axis=(0, 2)), x.sum(axis=0).sum(axis=0),
    T.exp(x.sum(axis=1)).sum(axis=1), x.sum(axis=(0, 1)) + x.sum(axis=(1, 2)).sum(),
])
case("rank five", "x:float64[n,1,m,2,k]", lambda x: [
    x.sum(axis=(1, 3)), x.dimshuffle(4, 2, 0, 3, 1), x.sum(axis=2), x.max(axis=1), x[::-1, :, ::2, 0],
    (x + x.sum(axis=2, keepdims=True)).flatten(), x.reshape((x.shape[0], x.shape[2] * 2, x.shape[4])),
])
case("reductions of broadcasts", "x:float64[n] y:float64[m]", lambda x, y: [
    (x[:, None] + y).sum(axis=0), (x[:, None] + y).sum(axis=1), (x[:, None] * y).sum(), T.ones((3, 4)).sum(axis=0),
    T.broadcast_to(y, (3, y.shape[0])).sum(axis=0), T.zeros((2, x.shape[0])).max(axis=0),
])
case("reductions used often", "x:float64[n,m]", lambda x: [
    x.sum(axis=1), x.sum(axis=1) * 2, x.sum(axis=1)[::-1], x / x.sum(axis=1, keepdims=True), x.sum(axis=1).sum(),
    (x * x).sum(axis=1) - x.sum(axis=1) ** 2,
])
case("reductions over no axes", "s:float64[] x:int32[]", lambda s, x: [
    s.sum(axis=()) * 2, T.zeros(abs(x.sum(axis=()))),
])
case("reductions of float32", "x:float32[n,m] v:float32[n]", lambda x, v: [
    x.sum(axis=0), x.sum(axis=1), x.sum(), x.mean(axis=0), x.prod(axis=0), T.dot(x, x.T), T.dot(x.T, v), T.dot(v, x),
])
case("products of ints", "x:int32[n,m] y:int32[m,k] z:int8[n,m]", lambda x, y, z: [
    T.dot(x, y), T.dot(x.sum(axis=0), y), T.dot(z, z.T), T.dot(x, y.sum(axis=1)), z.sum(axis=0), z.prod(axis=1),
])

# views, joins, and loops over all elements
case("reshapes", "x:float64[n,m]", lambda x: [
    x.sum(axis=0).reshape((1, -1)), x.T.flatten(), x.T.reshape((x.shape[0], x.shape[1])), (x.T + 1).flatten().sum(),
    T.broadcast_to(x, (2, x.shape[0], x.shape[1])).flatten(), x.flatten()[::-1].reshape((x.shape[1], x.shape[0])),
])
case("flat loops", "x:float64[n,m] y:float64[n,m] v:float64[m] s:float64[]", lambda x, y, v, s: [
    x + y, x + v, x * s, x.reshape((x.shape[1], x.shape[0])) * 2, x.T + y.T, x + y.sum(), x[:, ::-1].flatten(),
    (x + y.reshape((x.shape[0], x.shape[1]))).flatten(), T.zeros_like(x) + s,
])
case("sizes that must be equal", "x:float64[n,m] y:float64[n,m] z:float64[n,m]", lambda x, y, z: [
    x + y.reshape((z.shape[0], z.shape[1])), (x + y).reshape(z.shape).T * z.T,
    (x.flatten() + z.flatten()).reshape(y.shape),
])
case("nested joins", "x:float64[n,m] y:float64[n,m]", lambda x, y: [
    T.concatenate([T.set_subtensor(x[:1], 2.0), T.stack([x, y]).sum(axis=0)]), T.stack([x.T, y.T], axis=1)[::-1],
    T.inc_subtensor(T.concatenate([x, y])[1:], T.concatenate([y, x])[1:]), T.concatenate([x.sum(axis=0), [1.0]]),
    T.set_subtensor(T.inc_subtensor(x[:, :1], y[:, :1])[:1], y[:1]),
])
case("symbolic slices", "x:float64[n,m] i:int64[] j:int64[]", lambda x, i, j: [
    x[i:j], x[i::-1], x[:j:2], x[::-2, i:], x[i:j, j:i], T.set_subtensor(x[i:j], 1.0),
    T.inc_subtensor(x[:, i:], x[:, i:]),
])
for name, args, build in (
    ("add", "x:float64[n] y:float64[m]", lambda x, y: x + y),
    ("set", "x:float64[n] y:float64[m]", lambda x, y: T.set_subtensor(x[1:], y)),
    ("dot", "x:float64[n,m] y:float64[n,k]", T.dot),
    ("concatenate", "x:float64[n,m] y:float64[k,n]", lambda x, y: T.concatenate([x, y])),
    ("reshape", "x:float64[n,m] y:float64[k,2]", lambda x, y: x.reshape(y.shape)),
):
    case(f"wrong sizes: {name}", args, build)

# products of matrices
case("transposed operands", "a:float64[n,m] b:float64[k,m]", lambda a, b: [
    T.dot(a, b.T), T.dot(b, a.T), T.dot(a.T.T, b.T), T.dot(a.T, a), T.dot(a, a.T).T, T.dot(T.dot(a.T, a), b.T),
    T.dot((a * 2).T, a),
])
case("parts as operands", "a:float64[5,4] b:float64[4,6]", lambda a, b: [
    T.dot(a[1:], b), T.dot(a[::2, 1:], b[:-1, ::-1]), T.dot(a[:, :2].T, a[:, 2:]), T.dot(a[:0], b),
    T.dot(a[:, :0], b[:0]),
    T.dot(a.reshape((2, 10)), b.flatten()[:20].reshape((10, 2))),
])
case("constants as operands", "a:float64[n,m]", lambda a: [
    T.dot(a, T.ones((a.shape[1], 3))), T.dot(T.constant(np.ones((2, 3))), T.ones((3, a.shape[0]))),
    T.dot(a, T.eye(a.shape[1])),
    T.dot(a.sum(axis=1)[:, None], T.constant([[2.0]])), T.dot(T.constant([[2.0]]), T.constant([[5.0]])) + a.sum(),
])
case("batches", "a:float64[2,n,m] b:float64[2,m,k] c:float64[m,k]", lambda a, b, c: [
    T.matmul(a, b), T.matmul(a, c), T.matmul(a.dimshuffle(0, 2, 1), a), T.matmul(a[:1], b),
    T.matmul(a[:, None], b[None]),
    T.matmul(b.dimshuffle(0, 2, 1), a.dimshuffle(0, 2, 1)), T.matmul(a[::-1] * 2, b).sum(axis=0),
])
case("batches on another axis", "a:float64[n,2,m] b:float64[m,2,k]", lambda a, b: [
    T.matmul(a.dimshuffle(1, 0, 2), b.dimshuffle(1, 0, 2)).dimshuffle(1, 0, 2),
])
case("vectors", "x:float64[n] a:float64[n,m] y:float64[m]", lambda x, a, y: [
    T.dot(x, a), T.dot(a, y), T.dot(x, T.dot(a, y)), T.dot(x, x), T.outer(x, y), T.dot(y, a.T) * x, T.dot(x[None], a),
    T.dot(a, y[:, None]), T.dot(x[:, None], y[None]), T.dot(T.dot(x, a), T.dot(a.T, a)),
])

# gathers
case("gathers", "x:float64[5,m] i:int64[k]", lambda x, i: [
    x[i][:, ::-1], x[i % 5 - 5], x[i][T.zeros_like(i)], x[T.arange(5)[::-1]], x[T.arange(5) // 2], x[[0, -1]],
    x[T.constant(np.zeros((0, 2), int))], (x[i] * x[i]).sum(axis=0), x[i] + x[0], x[2, :][T.zeros_like(i)],
])
case("gathers of gathers", "x:float64[5] i:int64[5] j:int32[n,k]", lambda x, i, j: [
    x[i[j]], x[i][j], x[i[j]].sum(axis=0), x[abs(i[i % 5]) % 5], T.inc_subtensor(x[i[j]], 1.0),
    T.set_subtensor(T.zeros_like(x)[i], x)[i],
])
case("gathers that broadcast", "x:float64[4,5] i:int64[n]", lambda x, i: [
    x[i[:, None], i], x[T.arange(4)[:, None], i], x[i][:, i], x[i].sum(axis=1) + x[i, i], x[:, i].T,
])
case("gathers by one number", "x:float64[n] i:int64[k]", lambda x, i: x[T.clip(T.zeros_like(i) + i.sum(), 0, 0)])
case("gathers out of bounds", "x:float64[n,m] i:int64[k]", lambda x, i: [x[i + 1], x[:, i].sum(), x[i, i]])
case("gathers by any integers", "x:float64[4] i:int64[k] j:uint8[k]", lambda x, i, j: [x[i.astype("uint64")], x[i + j]])
case("elements", "x:float64[n,m] i:int64[] j:int64[]", lambda x, i, j: [x[i], x[i, j], x[:, j], x[::-1][i], x[j - 1]])

# sizes that depend on data
case("sizes from data", "x:float64[m] i:int64[] v:int64[3]", lambda x, i, v: [
    T.zeros(abs(i)), T.ones((abs(i), 2)) + x[:2].sum(), x[:x.argmax()], x[x.argmax():], T.arange(abs(v).sum()),
    T.arange(i, i + 3), T.zeros((abs(v[0]), abs(v[1]))), T.repeat(x, abs(i)),
])
case("sizes from gathers", "v:int64[3] j:int64[k]", lambda v, j: [T.zeros(abs(v[j].sum())), T.arange(abs(v[j]).sum())])
case("sizes from gathers far out of bounds", "v:int64[n] j:int64[k]", lambda v, j: T.zeros(abs(v[j * 10**12].sum())))
case("sizes from reductions", "x:int64[n,m]", lambda x: [T.zeros(x.max()), T.ones(abs(x).sum(axis=0).max())])
case("sizes from constants", "x:float64[n]", lambda x: [T.zeros(T.constant([1, 2])[x.argmax() % 2])])
case("sizes equal to data", "x:float64[n] v:int64[m]", lambda x, v: [x + T.ones(abs(v).sum()), x * 2])
case("sizes of what is unequal", "x:int64[3] y:int64[n]", lambda x, y: [T.zeros(abs(y.sum())), x + y])
case("sizes that are negative", "i:int64[]", T.zeros)

# leaves and numbers
case("leaves as outputs", "x:float64[n,m] s:float64[] W=float64[n]", lambda x, s, W: (
    [x, x, s, W, W, T.constant(3.0), T.constant([1, 2]), T.constant([5]), x.shape[0], x.shape, x.size], {W: W * 2}))
for d in ("float32", "float64"):
    case(f"special constants of {d}", f"x:{d}[n]", lambda x: [f(x, T.constant(np.asarray(value, x.dtype))) for f in (
        T.mul, T.add, T.minimum, T.copysign, T.eq, lambda x, c: T.zeros_like(x) * c, lambda x, c: T.where(x > 0, c, x),
    ) for value in (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40)])
case("quotients of constants", "x:float64[n]", lambda x: [
    T.zeros_like(x) / T.zeros_like(x), T.ones_like(x) / T.zeros_like(x), T.zeros(3) / 0.0, T.arange(3) / T.zeros(3),
    T.arange(4) / 0, T.arange(5) // 0, T.arange(5) % 0,
])
case("integers that wrap", "x:int64[n] y:uint8[n] z:int8[n]", lambda x, y, z: [
    T.arange(5) * 2**62, (T.arange(5) + 2**62) * 3, T.arange(5) ** 40, x * 2**62, y - np.uint8(250), z * np.int8(100),
    y << 7, z << 7, x << 63, x >> 70, T.arange(3) << 63, T.arange(3) * 2**62 // 7, T.arange(3) * 2**62 % 5, x // -1,
    ~y, -y, abs(z - np.int8(127)), T.arange(3).astype("uint8") - 1, T.arange(300).astype("int8"),
    x.astype("uint64") // 3,
])
case("literals of other dtypes", "x:float32[n] y:int8[n] b:bool[n]", lambda x, y, b: [
    x * 0.1, x + 1, y + 1, y * 2.5, b + 1, b * 2.0, x**2, abs(x) ** 0.5, 2**x, 1 / (x + 10), x // 0.3, T.where(b, 1, 2),
    T.where(b, x, 0.1), T.where(b, 1.5, y), b & True, b ^ b, x == 0.1, T.clip(x, -0.1, 0.1), T.exp(y), T.maximum(y, 0),
    b.astype("float32") * x, x.astype("int8"), (x * 1000).astype("int64") // 7,
])
case("positions as numbers", "x:float64[n]", lambda x: [
    T.arange(x.shape[0]) * x, T.arange(x.shape[0]) / x.shape[0], x[T.arange(x.shape[0])[::-1]],
    T.arange(x.shape[0]).sum(),
    T.eye(x.shape[0]), T.tri(x.shape[0]), T.arange(0.0, 1.0, 0.25), -T.arange(x.shape[0]), abs(T.arange(3) - 2),
    T.maximum(T.arange(3), 1), T.sqrt(T.arange(3)), T.arange(3) & 1, ~T.arange(3), T.arange(3) == T.arange(3)[::-1],
])
case("bools", "x:float64[n,m] b:bool[n,m]", lambda x, b: [
    x > 0, b, ~b, b & (x > 0), (x > 0).any(axis=0), b.all(axis=1), b.sum(axis=0), T.isnan(x), b.T, b[::-1], b.any(),
    T.concatenate([b, x > 0]), T.where(b, b, ~b), T.cast(x, "bool"),
])

# ops of the user
square = custom_op("codegen_square", lambda x: x * x, vjp=lambda node, g: 2 * node.args[0] * g)
rows = custom_op("codegen_rows", lambda x: x.sum(axis=1), infer=lambda t: Type(t.dtype, t.shape[:1]))
total = custom_op("codegen_total", lambda x: np.asarray(x.sum()), infer=lambda t: Type(t.dtype, ()))
count = custom_op("codegen_count", lambda n: np.arange(3.0) * n, infer=lambda t: Type("float64", (3,)))


def below_one(x: Array) -> Array:
    if (x > 1.0).any():
        raise ArithmeticError("too large")
    return x + 1


refuse = custom_op("codegen_refuse", below_one)

case("ops of the user", "x:float64[n,m] s:float64[]", lambda x, s: [
    square(x), square(x.T + 1), rows(x), rows(x.T), total(x) * s, total(x.T), square(s), square(x.shape[0]),
    square(x).sum(axis=0), total(T.constant([[1.0]])), count(x.shape[0]), count(T.constant(2)), square(2.0),
    square(square(x) + 1)[::-1],
])
case("ops of the user in turn", "x:float64[n]", lambda x: [
    total(x) + total(x * 2) * total(x * 3) - total(x * 4), total(square(x)) * total(square(x * 2)),
    (square(x) * square(x + 1)).sum() * square(square(x)[::-1]), T.grad(square(T.sin(x)).sum(), x),
])
for name, args, update in (
    ("midway", "W=float64[n] V=float64[n] x:float64[n]", lambda W, V, x: ([W], {W: W + 1, V: V + refuse(x * 2)})),
    ("on the new value", "W=float64[n] x:float64[n]", lambda W, x: ([refuse(W + x)], {W: W + x})),
    ("of another size", "W=float64[n] x:float64[m]", lambda W, x: ([], {W: T.concatenate([W, refuse(x)])})),
    ("itself", "W=float64[n]", lambda W: ([W * 2], {W: refuse(W)})),
):
    case(f"updates that a user's op refuses: {name}", args, update)


# large graphs
def chain(length: int, *steps: Callable[[Node], Node]) -> Callable[[Node], Node]:
    def build(x: Node) -> Node:
        for number in range(length):
            x = steps[number % len(steps)](x)
        return x

    return build


def network(depth: int) -> Callable[[Node, Node, Node], Any]:
    def build(x: Node, W: Node, b: Node) -> Any:
        for _ in range(depth):
            x = T.tanh(T.dot(x, W) + b)
        cost = T.sqr(x).sum()
        slopes = T.grad(cost, [W, b])
        return [cost], {node: node - 0.1 * slope for node, slope in zip((W, b), slopes, strict=True)}

    return build


case("a long chain", "x:float64[n]", chain(500, T.sin, lambda a: a * 0.5 + 0.1, abs))
case("a long chain of scalars", "s:float64[]", chain(1000, T.sin, lambda a: a * 0.5 + 0.1, abs))
case("a chain of reductions", "x:float64[n,3]", chain(
    40, lambda a: a - a.mean(axis=1, keepdims=True), T.tanh, lambda a: a / (1 + (a * a).sum(axis=0)), lambda a: a * 2))
case("a chain of softmaxes", "x:float64[3,4]", chain(30, T.nnet.softmax, lambda a: a.T, T.tanh))
case("a chain of views", "x:float64[4,4]", chain(
    120, lambda a: a.T, lambda a: a[::-1], lambda a: a + 1, lambda a: a.reshape((2, 8)).reshape((4, 4))))
case("a chain of writes", "x:float64[4,4]", chain(
    40, lambda a: T.inc_subtensor(a[1:], a[:-1]), lambda a: T.set_subtensor(a[:, 0], a[:, 1]), lambda a: a * 0.5))
case("a chain of diamonds", "x:float64[n]", chain(60, lambda a: a * 0.3 + T.sin(a) * 0.2 + abs(a[::-1]) * 0.1))
case("a network", "x:float64[n,3] W=float64[3,3] b=float64[3]", network(6))
case("a network of float32", "x:float32[n,3] W=float32[3,3] b=float32[3]", network(3))

# names
NAMES = [
    *"i j k l r i4 S t0 t1 out out1 row count x_0 x_1 kernel sizes range callback0 inf nan None lambda def 1x".split(),
    *"_ __ _0 _1 x x x2 ﬁ fi x² 𝒳 X β ① sum float64 exp advance gc_gemm_f64 new_W async match term len".split(),
    *("a b", "a\nimport os", "a'b", 'a"""b', "a\\b", "x" * 300, ""),
]


def named(*xs: Node) -> list[Node]:
    values = [x + 1 for x in xs]
    for x, value, name, other in zip(xs, values, NAMES, NAMES[::-1], strict=True):
        x.name, value.name = name, other
    y = sum(values[1:], start=values[0])
    product = T.dot(T.dot(y[:, None], y[None]), y[:, None])
    product.name = "i"
    return [product, y.sum(axis=0), y[T.arange(y.shape[0])[::-1]], square(y)]


case("names", " ".join(f"x{number}:float64[n]" for number in range(len(NAMES))), named)
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize("spec", those(lambda spec: spec.name not in REPEATED, CASES), ids=lambda spec: spec.name)
def test_modes_agree(spec: Case) -> None:
    run_case(spec)


@pytest.mark.slow
@pytest.mark.parametrize("spec", some(CASES), ids=lambda spec: spec.name)
def test_without_rewriting(spec: Case) -> None:
    """The same where code is generated for the graph as it was written."""
    with options.change(excluding=[step.name for step in PIPELINE]):
        run_case(spec, ("interpreted", "python"))
