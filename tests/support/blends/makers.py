"""What a value may be made of others by: one function for each kind of operation.

In: a `Grower`. Out: a node, several, or None where no operands are there. Functions of floats are tame: no small
change of an operand becomes a large one, as far as can be helped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

import graphc.random as R
import graphc.tensor as T
from graphc import sparse
from graphc.ir.node import Node
from graphc.ops.recur import linear_recurrence
from graphc.tensor import linalg as L
from graphc.tensor.signal import pool
from tests.support.blends.growing import Grower, Maker

UNARY: Sequence[Callable[[Node], Node]] = (
    T.tanh, T.sin, T.cos, T.sigmoid, T.softplus, T.erf, T.arctan, abs, T.neg, T.cbrt, T.log1pexp,
    lambda a: T.exp(-T.sqr(a)), lambda a: T.log1p(T.sqr(a)), lambda a: T.sqrt(1.5 + T.sqr(a)), lambda a: a * 0.5 + 1.0,
    lambda a: 1.0 / (1.5 + T.cos(a)), lambda a: T.maximum(a, 0.137), lambda a: T.clip(a, -0.513, 0.791),
    lambda a: (1.0 + T.sqr(a)) ** 0.3, lambda a: T.tanh(a) ** 3, lambda a: T.stop_gradient(a) * 0.5, lambda a: a * a,
    lambda a: T.gammaln(1.2 + T.sqr(a)), lambda a: T.digamma(1.2 + abs(a)), lambda a: T.where(a > 0.2171, a, -a),
    T.arcsinh, lambda a: T.expm1(T.minimum(a, 1.013)), lambda a: T.switch(T.isnan(a), 0.0, a) - 0.3,
    lambda a: T.floor(a * 1.7 + 0.1931), lambda a: a - T.mean(a), T.nnet.gelu, lambda a: T.erfcx(abs(a)),
    lambda a: T.cast(T.cast(a, "float32"), "float64"), lambda a: T.cast(a, "float32"), lambda a: a / 3,
    lambda a: T.xlogx(abs(a) + 0.1), lambda a: T.logit(T.sigmoid(a)), lambda a: T.sgn(a - 0.0713),
    lambda a: T.log(T.exp(T.tanh(a))),
    lambda a: T.sqr(T.sqrt(abs(a) + 0.3)), lambda a: a - (a - 0.25), lambda a: T.mod(a, 1.3713),
    lambda a: T.trunc(a * 2.31 + 0.0517),
)  # fmt: skip
BINARY: Sequence[Callable[[Any, Any], Any]] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (1.5 + b * b), T.maximum, T.minimum,
    T.arctan2, T.hypot, T.logaddexp, lambda a, b: T.where(a > b + 0.1133, a, b), lambda a, b: a * T.sigmoid(b),
    lambda a, b: (0.5 + a * a) ** T.tanh(b), T.xlogy0, lambda a, b: T.switch(T.lt(a, 0.3131), b, 1.0), T.copysign,
    lambda a, b: T.mod(a, 0.7 + abs(b)),
)  # fmt: skip
INT_UNARY: Sequence[Callable[[Node], Node]] = (
    T.neg, abs, lambda a: a + 1, lambda a: a * 3, lambda a: a // 3, lambda a: a % 5, lambda a: -a // 4,
    lambda a: a % -3, T.sqr,
    lambda a: a ** 2, lambda a: ~a, lambda a: a & 6, lambda a: a | 9, lambda a: a ^ 5, lambda a: a << 2,
    lambda a: a >> 1,
    lambda a: T.clip(a, -3, 4), lambda a: T.maximum(a, 2), T.sgn, lambda a: T.cast(a, "int8"),
    lambda a: T.cast(a, "uint8"), lambda a: T.cast(a, "int32"), lambda a: T.cast(a, "float32"),
    lambda a: T.cast(a, "uint16"),
    lambda a: T.cast(a, "float64") * 0.1, lambda a: T.cast(a, "bool"), lambda a: a > 1, lambda a: T.eq(a, 2),
    lambda a: a / 4,
    lambda a: T.cast(a, "int64"), lambda a: T.cast(a, "uint64"), T.bitwise_count, lambda a: a * 100,
    lambda a: a - 7, lambda a: T.cast(a, "uint32"), lambda a: T.sqrt(abs(a) + 1), lambda a: 1 - a,
    lambda a: 17 // (a + 1), lambda a: 5 % a,
)  # fmt: skip
INT_BINARY: Sequence[Callable[[Any, Any], Any]] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a % b, T.maximum,
    T.minimum,
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: a < b, T.eq, lambda a, b: a >= b,
    lambda a, b: T.where(a > b, a, b), lambda a, b: a << (b % 5), T.gcd, lambda a, b: a / (b * b + 1), T.fmod,
    lambda a, b: a >> (b % 7), T.neq,
)  # fmt: skip


def drawn(g: Grower, functions: Sequence[Any]) -> Any:
    """One of the functions; typed so that anything may be among them."""
    return g.draw.choice(functions)


def unary(g: Grower) -> Any:
    x = g.pick("f")
    return None if x is None else g.draw.choice(UNARY)(x)


def unary_of_integers(g: Grower) -> Any:
    x = g.pick("iu")
    return None if x is None else g.draw.choice(INT_UNARY)(x)


def binary_of_integers(g: Grower) -> Any:
    x = g.pick("iub")
    y = None if x is None else g.fits(x, "iub")
    return None if x is None or y is None else g.draw.choice(INT_BINARY)(x, y)


def truth(g: Grower) -> Any:
    x = g.pick("f") if g.draw.random() < 0.5 else g.pick("b")
    if x is None:
        return None
    if x.dtype == "bool":
        y = g.fits(x, "b")
        way = drawn(g, [T.logical_and, T.logical_or, T.logical_xor, lambda a, b: ~a, lambda a, b: a.sum(),
                             lambda a, b: T.where(a, 2.5, -0.5), lambda a, b: a * 1.5, lambda a, b: T.all(a, axis=-1),
                             lambda a, b: a.mean(), lambda a, b: T.cast(a, "int8") + b])  # fmt: skip
        return way(x, y)
    return drawn(g, [lambda a: a > 0.1171, lambda a: a <= -0.213, T.isfinite, lambda a: abs(a) > 0.5137])(x)


def binary(g: Grower) -> Any:
    x = g.pick("f")
    y = None if x is None else g.fits(x, "fi" if g.draw.random() < 0.8 else "fiub")
    if x is None or y is None:
        return None
    if g.draw.random() < 0.5:
        x, y = y, x
    return g.draw.choice(BINARY)(x, y)


def broadcast(g: Grower) -> Any:
    """A value with one that is reduced, a number, a row or a column."""
    x = g.pick("f", least=1)
    if x is None:
        return None
    way = g.draw.randrange(6)
    axis = g.draw.randrange(x.ndim)
    f = g.draw.choice(BINARY)
    if way == 0:
        return f(x, T.sum(T.tanh(x), axis=axis, keepdims=True))
    if way == 1:
        y = g.pick("f", ndim=0)
        return None if y is None else f(x, y)
    if way == 2 and x.ndim == 1:
        y = g.pick("f", ndim=1)
        return None if y is None else f(x[:, None], y[None, :])
    if way == 3:
        y = g.pick("f", ndim=x.ndim - 1)
        return None if y is None else f(x, T.expand_dims(y, axis))
    if way == 4 and x.ndim >= 2:
        y = g.pick("f", ndim=1)
        return f(x, y)
    return f(x, drawn(g, [T.mean, T.max, T.min])(x, axis=axis, keepdims=True))


def choose(g: Grower) -> Any:
    c = g.pick("b")
    if c is None:
        return None
    a, b = g.fits(c, "f"), g.fits(c, "f")
    return None if a is None or b is None else T.where(c, a, b)


REDUCTIONS: Sequence[Callable[..., Node]] = (
    T.sum, T.mean, T.max, T.min, T.logsumexp, lambda x, axis: T.prod(T.cos(x) + 0.1, axis=axis), T.var,
    lambda x, axis: T.std(x, axis=axis) + 1, lambda x, axis: T.any(x > 0.3317, axis=axis),
    lambda x, axis: T.argmax(x, axis=axis),
    lambda x, axis: T.argmin(x, axis=axis), lambda x, axis: T.norm(x + 0.01, axis=axis),
    lambda x, axis: T.nansum(x, axis=axis),
    lambda x, axis: T.ptp(x, axis=axis), lambda x, axis: T.median(x, axis=axis),
    lambda x, axis: T.quantile(x, 0.3, axis=axis),
    lambda x, axis: abs(x).sum(axis=axis), lambda x, axis: T.sqr(x).sum(axis=axis),
    lambda x, axis: T.count_nonzero(x, axis=axis),
    lambda x, axis: T.average(x, weights=T.exp(T.tanh(x)), axis=axis), lambda x, axis: T.nanmean(x, axis=axis),
)  # fmt: skip


def reduce(g: Grower) -> Any:
    x = g.pick("f", least=1)
    if x is None:
        return None
    axis: Any = g.draw.choice([None, *range(x.ndim), -1])
    if x.ndim > 2 and g.draw.random() < 0.3:
        axis = tuple(sorted(g.draw.sample(range(x.ndim), 2)))
    return g.draw.choice(REDUCTIONS)(x, axis=axis)


def reduce_integers(g: Grower) -> Any:
    x = g.pick("iub", least=1)
    if x is None:
        return None
    what = drawn(
        g, [T.sum, T.prod, T.max, T.min, T.any, T.all, T.argmax, T.mean, T.cumsum, T.cumprod, T.sort, T.argsort]
    )
    return what(x, axis=g.draw.randrange(x.ndim))


def along(g: Grower) -> Any:
    x = g.pick("f", least=1)
    if x is None:
        return None
    axis = g.draw.randrange(x.ndim)
    what = drawn(g, [
        T.softmax, T.log_softmax, T.cumsum, lambda x, axis: T.cumprod(T.tanh(x) + 0.3, axis=axis), T.sort,
        lambda x, axis: T.argsort(x, axis=axis), lambda x, axis: T.topk(x, 1, axis=axis), T.diff, T.nnet.standardize,
        lambda x, axis: T.take_along_axis(x, T.argsort(x, axis=axis), axis=axis), T.nnet.normalize, T.flip,
        lambda x, axis: T.partition(x, 0, axis=axis),
        lambda x, axis: T.flip(T.cumsum(T.flip(x, axis), axis=axis), axis),
        lambda x, axis: linear_recurrence(T.tanh(x), x, axis),
        lambda x, axis: x - T.logsumexp(x, axis=axis, keepdims=True),
        lambda x, axis: T.topk_and_argtopk(x, 1, axis=axis), lambda x, axis: T.gradient(x, axis=axis), T.trapezoid,
        lambda x, axis: T.nnet.layer_norm(x), lambda x, axis: T.nancumsum(x, axis=axis),
        lambda x, axis: x / T.sqrt(T.sqr(x).sum(axis=axis, keepdims=True) + 1),
    ])  # fmt: skip
    return what(x, axis=axis)


def a_slice(g: Grower, size: int) -> Any:
    bounds = (None, None, 0, 1, 2, -1, -2, 4)
    return slice(g.draw.choice(bounds), g.draw.choice(bounds), g.draw.choice((None, None, 1, 2, -1, -1, 3, -2)))


def a_key(g: Grower, x: Node, computed: bool = True) -> tuple[Any, ...]:
    """Slices, numbers, masks, integer arrays: constant, or values of the program brought into bounds."""
    array = g.value(x)
    key: list[Any] = []
    advanced = 0
    for size in array.shape[: g.draw.randrange(1, x.ndim + 1)]:
        way = g.draw.random()
        if way < 0.15 and size:
            key.append(g.draw.randrange(-size, size))
        elif way < 0.3 and size and advanced < 2:
            advanced += 1
            key.append(np.array([g.draw.randrange(-size, size) for _ in range(3)]))
        elif way < 0.5 and size and advanced < 2:
            index = g.pick("i", least=0)
            if index is None or index.ndim > 1:
                key.append(slice(None))
            else:
                advanced += index.ndim
                axis = len(key)
                key.append(index % x.shape[axis])
        elif way < 0.55:
            key.append(slice(None))
        else:
            key.append(a_slice(g, size))
    if g.draw.random() < 0.1:
        key.insert(0, None)
    return tuple(key)


def part(g: Grower) -> Any:
    x = g.pick("fiub", least=1)
    return None if x is None else x[a_key(g, x)]


def masked(g: Grower) -> Any:
    x = g.pick("f", least=1)
    c = None if x is None else g.fits(x, "b")
    if x is None or c is None:
        return None
    way = g.draw.randrange(4)
    if way == 0:
        return T.set_subtensor(x[c], g.draw.choice([0.5, 0]))
    if way == 1:
        return T.inc_subtensor(x[c], 0.25)
    if way == 2:
        return T.set_subtensor(x[c], T.tanh(x[c]) * 2)
    return x[c].sum()


def write(g: Grower) -> Any:
    x = g.pick("fi" if g.draw.random() < 0.8 else "fiu", least=1)
    if x is None:
        return None
    key = a_key(g, x)
    key = tuple(k for k in key if k is not None)
    old = x[key]
    update = g.draw.choice([T.set_subtensor, T.inc_subtensor])
    same = g.pick(np.dtype(x.dtype).kind, like=old) if old.ndim else None
    ways: list[Any] = [1, old * 2, old]
    if old.ndim:
        ways.append(old[..., ::-1])
        ways.append(T.cumsum(old, axis=0))
    if same is not None:
        ways += [same, same]
    scalar = g.pick(np.dtype(x.dtype).kind, ndim=0)
    if scalar is not None and scalar.dtype == x.dtype:
        ways.append(scalar)
    again = update(old, T.cast(g.draw.choice(ways), x.dtype))
    if g.draw.random() < 0.3:
        second = tuple(k for k in a_key(g, x) if k is not None)
        again = g.draw.choice([T.set_subtensor, T.inc_subtensor])(
            again[second], x[second] if g.draw.random() < 0.5 else 2
        )
    return again


def gather_rows(g: Grower) -> Any:
    i, x = g.pick("i", ndim=g.draw.choice([1, 1, 2])), g.pick("f", least=1)
    if i is None or x is None:
        return None
    axis = g.draw.randrange(x.ndim)
    index = i % x.shape[axis]
    way = g.draw.randrange(4)
    if way < 2:
        return T.take(x, index, axis=axis)
    key = (*(slice(None) for _ in range(axis)), index)
    if way == 2:
        return T.inc_subtensor(x[key], T.sin(x[key]))
    return T.inc_subtensor(T.zeros_like(x)[key], x[key])


MOVES: Sequence[Callable[[Grower, Node], Any]] = (
    lambda g, x: x.transpose(g.draw.sample(range(x.ndim), x.ndim)),
    lambda g, x: x.transpose(g.draw.sample(range(x.ndim), x.ndim)),
    lambda g, x: x.reshape((x.shape[0] * x.shape[1], *(x.shape[k] for k in range(2, x.ndim)))),
    lambda g, x: x.flatten(),
    lambda g, x: x.reshape((x.shape[1], x.shape[0], *(x.shape[k] for k in range(2, x.ndim)))),
    lambda g, x: x.reshape((-1, x.shape[-1])),
    lambda g, x: T.roll(x, g.draw.randrange(-3, 4), g.draw.randrange(x.ndim)),
    lambda g, x: T.repeat(x, 2, g.draw.randrange(x.ndim)),
    lambda g, x: T.tile(x, (2,) * x.ndim), lambda g, x: T.pad(x, [(g.draw.randrange(2), g.draw.randrange(3))] * x.ndim),
    lambda g, x: T.pad(x, 1, mode=g.draw.choice(["edge", "wrap", "reflect", "symmetric"])),
    lambda g, x: T.tril(x, 0), lambda g, x: T.triu(x, 1),
    lambda g, x: T.diagonal(x), lambda g, x: T.diag(x), lambda g, x: T.trace(x),
    lambda g, x: T.expand_dims(x, g.draw.randrange(x.ndim + 1)),
    lambda g, x: x[::-1], lambda g, x: x[..., ::-1], lambda g, x: x[1:] + x[:-1],
    lambda g, x: x[..., 1:] * x[..., :-1], lambda g, x: T.rot90(x),
    lambda g, x: T.broadcast_to(x, (2, *(x.shape[k] for k in range(x.ndim)))), lambda g, x: x[..., None],
    lambda g, x: T.squeeze(x[None], 0),
    lambda g, x: T.fill_diagonal(x, 0.5), lambda g, x: T.insert(x, 1, 0.5, axis=0),
    lambda g, x: T.delete(x, 0, axis=0), lambda g, x: T.moveaxis(x, 0, -1),
    lambda g, x: T.swapaxes(x, 0, -1) + 1, lambda g, x: x + x.T, lambda g, x: T.copy(x),
    lambda g, x: T.zeros_like(x) + T.arange(x.shape[-1]),
    lambda g, x: x[: x.shape[0] // 2], lambda g, x: x[x.shape[0] // 2 :], lambda g, x: x[x.shape[0] - 1 :: -2],
    lambda g, x: T.ones((x.shape[0], 3)) * x[:, :1],
)  # fmt: skip


def move(g: Grower) -> Any:
    x = g.pick("fiub", least=1)
    return None if x is None else g.draw.choice(MOVES)(g, x)


def join(g: Grower) -> Any:
    x = g.pick("fi", least=1)
    if x is None:
        return None
    axis = g.draw.randrange(x.ndim)
    y = g.fits(x, "fi") if g.draw.random() < 0.5 else g.pick("f", ndim=x.ndim)
    way = g.draw.randrange(7)
    if y is None:
        return None
    if way == 0:
        return T.stack([x, y], axis=axis)
    if way == 1:
        return T.concatenate([x, y, x[..., ::-1]], axis=axis)
    if way == 2:
        return T.concatenate([x[1:], y, x[:1]], axis=0)
    if way == 3:
        return T.stack([x, x * 2, y], axis=axis).sum(axis=g.draw.randrange(x.ndim + 1))
    if way == 4:
        return list(T.array_split(x, 2, axis=axis))
    if way == 5:
        return T.concatenate([x, T.concatenate([y, x], axis=axis)], axis=axis)
    return T.concatenate([x, y], axis=axis)


PRODUCTS: Sequence[Callable[[Node, Node, Node], Any]] = (
    lambda x, y, same: T.dot(x, y), lambda x, y, same: T.dot(x, same.T), lambda x, y, same: T.dot(x.T, same),
    lambda x, y, same: T.matmul(x, T.swapaxes(same, -1, -2)), lambda x, y, same: T.tensordot(x, same, axes=[[0], [0]]),
    lambda x, y, same: T.outer(x, y), lambda x, y, same: T.inner(x, same), lambda x, y, same: T.kron(x, y),
    lambda x, y, same: T.batched_dot(x, T.swapaxes(same, -1, -2)), lambda x, y, same: T.matmul(x, y),
    lambda x, y, same: T.dot(x, x.T) + T.eye(x.shape[0]), lambda x, y, same: T.vecdot(x, same),
    lambda x, y, same: T.einsum("...i,...i->...", x, same),
)  # fmt: skip
SUMS = {
    2: ("ij,ij->i", "ij,kj->ik", "ij,ij->", "ij,ik->jk", "ij,jk->ik", "ij,ij->ji"),
    3: ("bij,bij->b", "bij,bkj->bik", "bij,bkj->ik", "bij,cij->bc", "bij,bjk->bki"),
}


def products(g: Grower) -> Any:
    x, y = g.pick("f", least=1), g.pick("f", least=1)
    same = None if x is None else g.fits(x)
    if x is None or y is None or same is None:
        return None
    if x.ndim in SUMS and g.draw.random() < 0.2:
        return T.einsum(g.draw.choice(SUMS[x.ndim]), T.tanh(x), same)
    return g.draw.choice(PRODUCTS)(T.tanh(x), T.tanh(y), same)


def spd(x: Node) -> Node:
    return T.matmul(T.tanh(x), T.swapaxes(T.tanh(x), -1, -2)) + T.eye(x.shape[-2]) * 2.0


def algebra(g: Grower) -> Any:
    x = g.pick("f", least=2)
    if x is None:
        return None
    a = spd(x)
    b = T.tanh(x)
    way = drawn(g, [
        lambda a, b: L.cholesky(a), lambda a, b: L.inv(a), lambda a, b: L.det(a / 3.0),
        lambda a, b: L.slogdet(a)[1], L.solve,
        lambda a, b: L.solve_triangular(L.cholesky(a), b, lower=True), lambda a, b: L.eigvalsh(a),
        lambda a, b: L.svd(b, compute_uv=False),
        lambda a, b: T.dot(*L.qr(a)), lambda a, b: abs(L.qr(a)[1]), lambda a, b: L.matrix_power(a / 5.0, 3),
        lambda a, b: L.pinv(a),
        lambda a, b: T.log(T.diagonal(L.cholesky(a), axis1=-2, axis2=-1)).sum(),
        lambda a, b: T.matmul(L.inv(a), b), lambda a, b: L.eigh(a)[0],
        lambda a, b: L.expm(a / 8.0), lambda a, b: L.solve(a, b[..., 0]),
        lambda a, b: T.matmul(T.swapaxes(b, -1, -2), L.solve(a, b)),
        lambda a, b: L.solve(a + T.triu(b[..., : 1]), b), lambda a, b: L.norm(a), lambda a, b: L.trace(L.inv(a)),
    ])  # fmt: skip
    return way(a, b)


def convolved(g: Grower) -> Any:
    x = g.pick("f", least=1)
    if x is None:
        return None
    x = T.tanh(x)
    y = g.pick("f", ndim=x.ndim)
    if x.ndim == 1:
        return T.convolve(x, T.tanh(y), mode=g.draw.choice(["full", "valid", "same"]))
    if x.ndim < 3:
        x, w = x[None, None], T.tanh(y)[None, None, :2, :2]
    elif x.ndim == 3:
        x, w = x[None], T.stack([T.tanh(x[:, :2, :1]), T.sin(x[:, :2, :1])])
    else:
        w = T.tanh(x[:, :, :2, :2])
    if g.draw.random() < 0.4:
        mode = g.draw.choice(["max", "average_exc_pad", "sum"])
        stride = g.draw.choice([None, (1, 1), (1, 2)])
        return pool.pool_2d(x, (2, 2), ignore_border=g.draw.random() < 0.5, mode=mode, stride=stride)
    border = g.draw.choice(["valid", "full", "half", (1, 0)])
    steps, flip = g.draw.choice([(1, 1), (2, 1)]), g.draw.random() < 0.5
    return T.nnet.conv2d(x, w, border_mode=border, subsample=steps, filter_flip=flip)


def random_numbers(g: Grower) -> Any:
    key = T.constant(R.fold_in(R.key(g.draw.randrange(100)), g.draw.randrange(9)))
    x = g.pick("f")
    if x is None:
        return None
    shape = tuple(x.shape[k] for k in range(x.ndim))
    way = drawn(g, [
        lambda k: R.uniform(k, shape) * x, lambda k: R.normal(k, shape) + x, lambda k: x * R.bernoulli(k, 0.7, shape),
        lambda k: R.randint(k, shape, 0, 7), lambda k: R.permutation(k, x),
        lambda k: T.tanh(R.gamma(k, abs(x) + 0.6)), lambda k: R.poisson(k, abs(T.tanh(x)) * 3, shape),
        lambda k: R.uniform(k, (x.shape[0],))[:, None] + R.normal(R.split(k)[0], (1, 3)),
        lambda k: R.choice(k, 5, (4,)),
    ])  # fmt: skip
    return way(key)


def sparse_products(g: Grower) -> Any:
    x = g.pick("f", ndim=g.draw.choice([1, 2]))
    if x is None:
        return None
    rows = g.value(x).shape[0]
    matrix = scipy.sparse.random(4, rows, 0.5, random_state=g.draw.randrange(100), format=g.draw.choice(["csr", "csc"]))
    if not matrix.nnz:
        return None
    return sparse.dot(sparse.as_sparse(matrix), x)


COMMON: tuple[Maker, ...] = (
    unary, unary, binary, binary, broadcast, broadcast, reduce, along, along, part, part, write, write, move, move,
    join, products,
    unary_of_integers, binary_of_integers, truth, choose, masked, gather_rows, reduce_integers,
)  # fmt: skip
