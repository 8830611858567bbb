"""Programs that Theano's users write with loops: networks, samplers, filters, numerical methods, against NumPy's loops.

They stand as they would be written there; where one draws random numbers, these are arguments. Expected derivatives are
those of the NumPy function along the imaginary axis, f(x + ih)/h, which cancels nothing.
"""

# ruff: noqa: N803, N806 - the names are the field's

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.startup.record import fresh, record

MODES = ("interpreted", "python", "compiled")


@record()
class Program:
    """What `theano.function` is given, arguments, and what must come out: results, and shared variables afterwards."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    given: Sequence[Any]
    expected: Sequence[Any]
    updates: Any = None
    after: dict[Any, Any] = fresh(factory=dict)


Build = Callable[[np.random.Generator], Program]
PROGRAMS: dict[str, Build] = {}


def program(build: Build) -> Build:
    PROGRAMS[build.__name__] = build
    return build


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.real.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def slopes(of: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """The derivatives of a number by all of its arguments."""
    found = []
    for place, value in enumerate(values):
        slope = np.zeros(np.shape(value))
        for index in np.ndindex(slope.shape):
            moved = np.array(value, complex)
            moved[index] += 1e-30j
            slope[index] = of(*values[:place], moved, *values[place + 1 :]).imag / 1e-30
        found.append(slope)
    return found


# --- networks ---------------------------------------------------------------------------------------------------------


@program
def a_recurrent_network_on_minibatches(rng: np.random.Generator) -> Program:
    """A step of gradient descent (in the manner of Taylor's theano-rnn)."""
    n_in, n, n_out = 3, 5, 2
    values = [0.3 * rng.normal(size=s) for s in ((n, n), (n_in, n), (n, n_out), (n,), (n,), (n_out,))]
    W, W_in, W_out, h0, bh, by = params = [theano.shared(value) for value in values]
    x, t, lr = T.tensor3("x"), T.tensor3("t"), T.scalar("lr")

    def step(x_t: Any, h_tm1: Any) -> Any:
        h_t = T.tanh(T.dot(x_t, W_in) + T.dot(h_tm1, W) + bh)
        return h_t, T.dot(h_t, W_out) + by

    [_, y_pred], _ = theano.scan(step, sequences=x, outputs_info=[T.alloc(h0, x.shape[1], n), None])
    cost = T.mean((y_pred - t) ** 2)
    updates = [(p, p - lr * g) for p, g in zip(params, T.grad(cost, params), strict=True)]
    xs, ts = rng.normal(size=(6, 4, n_in)), rng.normal(size=(6, 4, n_out))

    def loss(W: Any, W_in: Any, W_out: Any, h: Any, bh: Any, by: Any) -> Any:
        ys = []
        for x_t in xs:
            h = np.tanh(x_t @ W_in + h @ W + bh)
            ys.append(h @ W_out + by)
        return np.mean((np.array(ys) - ts) ** 2)

    after = {p: v - 0.1 * g for p, v, g in zip(params, values, slopes(loss, values), strict=True)}
    return Program([x, t, lr], [cost], [xs, ts, 0.1], [loss(*values)], updates, after)


@program
def an_elman_network(rng: np.random.Generator) -> Program:
    """Words in windows, their embeddings, and the label of each (in the manner of Mesnil et al., 2013)."""
    words, size, window, n, classes = 9, 4, 3, 5, 3
    sizes = ((words, size), (size * window, n), (n, n), (n, classes), (n,), (classes,), (n,))
    values = [0.2 * rng.uniform(-1, 1, size=shape) for shape in sizes]
    emb, wx, wh, w, bh, b, h0 = params = [theano.shared(value) for value in values]
    idxs, y_sentence, lr = T.imatrix(), T.ivector("y"), T.scalar("lr")
    x = emb[idxs].reshape((idxs.shape[0], size * window))

    def recurrence(x_t: Any, h_tm1: Any) -> Any:
        h_t = T.nnet.sigmoid(T.dot(x_t, wx) + T.dot(h_tm1, wh) + bh)
        return [h_t, T.softmax(T.dot(h_t, w) + b)]

    [_, s], _ = theano.scan(fn=recurrence, sequences=x, outputs_info=[h0, None], n_steps=x.shape[0])
    nll = -T.mean(T.log(s)[T.arange(x.shape[0]), y_sentence])
    updates = {p: p - lr * g for p, g in zip(params, T.grad(nll, params), strict=True)}
    indices, labels = (rng.integers(most, size=s).astype("int32") for most, s in ((words, (5, window)), (classes, 5)))

    def predict(emb: Any, wx: Any, wh: Any, w: Any, bh: Any, b: Any, h: Any) -> Any:
        rows = []
        for x_t in emb[indices].reshape(5, -1):
            h = sigmoid(x_t @ wx + h @ wh + bh)
            rows.append(softmax(h @ w + b))
        return np.array(rows)

    def loss(*params: Any) -> Any:
        return -np.log(predict(*params)[np.arange(5), labels]).mean()

    after = {p: v - 0.5 * g for p, v, g in zip(params, values, slopes(loss, values), strict=True)}
    expected = [loss(*values), predict(*values).argmax(axis=1)]
    return Program([idxs, y_sentence, lr], [nll, T.argmax(s, axis=1)], [indices, labels, 0.5], expected, updates, after)


@program
def a_long_short_term_memory_with_a_mask(rng: np.random.Generator) -> Program:
    """Sentences of different lengths, padded; where one has ended, its states stay (in the manner of Lasagne)."""
    n_in, n = 2, 3
    weights = [0.5 * rng.normal(size=s) for s in ((n_in, 4 * n), (n, 4 * n), (4 * n,))]
    x, mask = T.tensor3("x"), T.matrix("mask")
    W, U, b = T.matrix("W"), T.matrix("U"), T.vector("b")

    def step(m_t: Any, z_t: Any, c_tm1: Any, h_tm1: Any, U: Any) -> Any:
        z = z_t + T.dot(h_tm1, U)
        i, f, o = (T.nnet.sigmoid(z[:, k * n : (k + 1) * n]) for k in range(3))
        c = f * c_tm1 + i * T.tanh(z[:, 3 * n :])
        h = o * T.tanh(c)
        return T.switch(m_t[:, None], c, c_tm1), T.switch(m_t[:, None], h, h_tm1)

    begin = T.zeros((x.shape[1], n))
    (_, hs), _ = theano.scan(step, [mask, T.dot(x, W) + b], [begin, begin], [U], strict=True)
    given = rng.normal(size=(5, 3, n_in)), (np.arange(5)[:, None] < [5, 3, 1]).astype(float)

    def last(W: Any, U: Any, b: Any) -> Any:
        c = h = np.zeros((3, n))
        for x_t, m_t in zip(*given, strict=True):
            z = x_t @ W + b + h @ U
            i, f, o = (sigmoid(z[:, k * n : (k + 1) * n]) for k in range(3))
            new = f * c + i * np.tanh(z[:, 3 * n :])
            running = m_t[:, None] > 0
            c, h = np.where(running, new, c), np.where(running, o * np.tanh(new), h)
        return h

    gradients = T.grad(T.sqr(hs[-1]).sum(), [W, U, b])
    expected = [last(*weights), *slopes(lambda *w: (last(*w) ** 2).sum(), weights)]
    return Program([x, mask, W, U, b], [hs[-1], *gradients], [*given, *weights], expected)


@program
def a_network_in_both_directions(rng: np.random.Generator) -> Program:
    x, W, U = T.matrix("x"), T.matrix("W"), T.matrix("U")

    def direction(backwards: bool) -> Any:
        begin = T.zeros_like(U[0])
        hs, _ = theano.scan(lambda x_t, h: T.tanh(T.dot(x_t, W) + T.dot(h, U)), x, begin, go_backwards=backwards)
        return hs[::-1] if backwards else hs

    both = T.concatenate([direction(False), direction(True)], axis=1)
    values = [rng.normal(size=shape) for shape in ((4, 2), (2, 3), (3, 3))]

    def run(xs: Any, W: Any, U: Any) -> Any:
        rows = []
        for order in (1, -1):
            h, hs = np.zeros(3), []
            for x_t in xs[::order]:
                h = np.tanh(x_t @ W + h @ U)
                hs.append(h)
            rows.append(np.array(hs[::order]))
        return np.concatenate(rows, axis=1)

    expected = [run(*values), *slopes(lambda *v: (run(*v) ** 2).sum(), values)]
    return Program([x, W, U], [both, *T.grad((both**2).sum(), [x, W, U])], values, expected)


@program
def contrastive_divergence(rng: np.random.Generator) -> Program:
    """A restricted Boltzmann machine: k steps of Gibbs sampling, and the update (in the manner of the tutorials)."""
    visible, hidden, rows, k = 4, 3, 5, 3
    values = [0.5 * rng.normal(size=s) for s in ((visible, hidden), (hidden,), (visible,))]
    W, hbias, vbias = params = [theano.shared(value) for value in values]
    v, draws_h, draws_v = T.matrix("v"), T.tensor3("draws_h"), T.tensor3("draws_v")

    def free_energy(sample: Any) -> Any:
        return -T.dot(sample, vbias) - T.sum(T.log(1 + T.exp(T.dot(sample, W) + hbias)), axis=1)

    def gibbs_vhv(draw_h: Any, draw_v: Any, v0: Any) -> Any:
        mean_h = T.nnet.sigmoid(T.dot(v0, W) + hbias)
        sample_h = T.cast(draw_h < mean_h, theano.config.floatX)
        pre = T.dot(sample_h, W.T) + vbias
        mean_v = T.nnet.sigmoid(pre)
        return [pre, mean_v, T.cast(draw_v < mean_v, theano.config.floatX)]

    outputs_info = [None, None, v]
    (pres, _, samples), updates = theano.scan(gibbs_vhv, [draws_h, draws_v], outputs_info, n_steps=k, name="gibbs_vhv")
    end = samples[-1]
    cost = T.mean(free_energy(v)) - T.mean(free_energy(end))
    for param, gradient in zip(params, T.grad(cost, params, consider_constant=[end]), strict=True):
        updates[param] = param - gradient * T.cast(0.1, dtype=theano.config.floatX)
    begin = (rng.uniform(size=(rows, visible)) < 0.5).astype(float)
    chances = rng.uniform(size=(k, rows, hidden)), rng.uniform(size=(k, rows, visible))

    def chain(w: Any, b: Any, a: Any) -> Any:
        sample = begin
        for draw_h, draw_v in zip(*chances, strict=True):
            sample_h = (draw_h < sigmoid(sample @ w + b)).astype(float)
            pre = sample_h @ w.T + a
            sample = (draw_v < sigmoid(pre)).astype(float)
        return pre, sample

    pre, sample = chain(*values)

    def loss(w: Any, b: Any, a: Any) -> Any:
        def energy(v: Any) -> Any:
            return -(v @ a) - np.log(1 + np.exp(v @ w + b)).sum(axis=1)

        return np.mean(energy(begin)) - np.mean(energy(sample))

    after = {p: u - 0.1 * g for p, u, g in zip(params, values, slopes(loss, values), strict=True)}
    entropy = (begin * np.log(sigmoid(pre)) + (1 - begin) * np.log(1 - sigmoid(pre))).sum(axis=1).mean()
    chance = T.nnet.sigmoid(pres[-1])
    measure = T.mean(T.sum(v * T.log(chance) + (1 - v) * T.log(1 - chance), axis=1))
    return Program([v, draws_h, draws_v], [measure, cost], [begin, *chances], [entropy, loss(*values)], updates, after)


@program
def attention(rng: np.random.Generator) -> Program:
    """A decoder that looks at all rows of a context in every step (in the manner of Bahdanau et al., 2014)."""
    context, W, U, v, s0 = T.matrix("context"), T.matrix("W"), T.matrix("U"), T.vector("v"), T.vector("s0")
    projected = T.dot(context, U)

    def step(s: Any, context: Any, projected: Any) -> Any:
        alpha = T.softmax(T.dot(T.tanh(projected + T.dot(s, W)), v))
        return T.tanh(T.dot(alpha, context) + 0.5 * s), alpha

    (ss, alphas), _ = theano.scan(step, outputs_info=[s0, None], non_sequences=[context, projected], n_steps=4)
    wrt = [context, W, U, v, s0]
    values = [rng.normal(size=s) for s in ((5, 3), (3, 4), (3, 4), (4,), (3,))]

    def run(context: Any, W: Any, U: Any, v: Any, s: Any) -> Any:
        rows = []
        for _ in range(4):
            rows.append(softmax(np.tanh(context @ U + s @ W) @ v))
            s = np.tanh(rows[-1] @ context + 0.5 * s)
        return s, np.array(rows)

    gradients = T.grad(T.sum(ss[-1] ** 2), wrt)
    expected = [*run(*values), *slopes(lambda *g: (run(*g)[0] ** 2).sum(), values)]
    return Program(wrt, [ss[-1], alphas, *gradients], values, expected)


@program
def a_neural_autoregressive_distribution(rng: np.random.Generator) -> Program:
    """NADE (Larochelle and Murray, 2011): each variable's chance from those before, whose activations are summed."""
    x, W, V, b, c = T.matrix("x"), T.matrix("W"), T.matrix("V"), T.vector("b"), T.vector("c")

    def one(x_i: Any, W_i: Any, V_i: Any, b_i: Any, p: Any, a: Any) -> Any:
        chance = T.nnet.sigmoid(T.dot(T.nnet.sigmoid(a), V_i) + b_i)
        return p + x_i * T.log(chance) + (1 - x_i) * T.log(1 - chance), a + T.outer(x_i, W_i)

    begin = [T.zeros_like(x[:, 0]), T.zeros((x.shape[0], W.shape[1])) + c]
    ([p, _], _) = theano.scan(one, sequences=[x.T, W, V, b], outputs_info=begin)
    values = [rng.normal(size=s) for s in ((4, 3), (4, 3), (4,), (3,))]
    xs = rng.integers(2, size=(5, 4)).astype(float)

    def run(W: Any, V: Any, b: Any, c: Any) -> Any:
        a, total = np.tile(c, (5, 1)), 0.0
        for i in range(4):
            chance = sigmoid(sigmoid(a) @ V[i] + b[i])
            total = total + np.log(np.where(xs[:, i] > 0, chance, 1 - chance))
            a = a + np.outer(xs[:, i], W[i])
        return total

    gradients = T.grad(p[-1].sum(), [W, V, b, c])
    return Program([x, W, V, b, c], [p[-1], *gradients], [xs, *values], [
        run(*values), *slopes(lambda *g: run(*g).sum(), values)
    ])  # fmt: skip


# --- numerical methods ------------------------------------------------------------------------------------------------


@program
def power_iteration(rng: np.random.Generator) -> Program:
    A, v = T.matrix("A"), T.vector("v")
    vs, _ = theano.scan(lambda v, A: T.dot(A, v) / T.sqrt(T.sum(T.dot(A, v) ** 2)), None, v, A, n_steps=200)
    value = T.dot(vs[-1], T.dot(A, vs[-1]))
    a = rng.uniform(size=(4, 4))
    symmetric = a @ a.T
    values, vectors = np.linalg.eigh(symmetric)
    top = vectors[:, -1] * np.sign(vectors[0, -1])
    gradient = np.outer(top, top)  # of the greatest eigenvalue (Hellmann, Feynman)
    return Program([A, v], [value, vs[-1], T.grad(value, A)], [symmetric, np.ones(4)], [values[-1], top, gradient])


@program
def newton_until_it_stands_still(rng: np.random.Generator) -> Program:
    """Square roots: the loop ends when a step moves little, and the derivative goes through the steps taken."""
    a = T.scalar("a")

    def step(x: Any) -> Any:
        new = 0.5 * (x + a / x)
        return new, theano.scan_module.until(abs(new - x) < 1e-10)

    xs, _ = theano.scan(step, outputs_info=T.constant(1.0), n_steps=100)
    new, x = 1.0, 0.0
    path = []
    while abs(new - x) >= 1e-10:
        x, new = new, 0.5 * (new + 7 / new)
        path.append(new)
    expected = [np.array(path), len(path), 0.5 / np.sqrt(7)]
    return Program([a], [xs, xs.shape[0], T.grad(xs[-1], a)], [7.0], expected)


@program
def products_of_all_before(rng: np.random.Generator) -> Program:
    x = T.vector("x")
    result, _ = theano.scan(lambda v, p: p * v, sequences=x, outputs_info=T.ones_like(x[0]))
    value = rng.normal(size=7)
    value[3] = 0.0
    expected = [np.cumprod(value), slopes(lambda v: np.cumprod(v).sum(), [value])[0]]
    return Program([x], [result, T.grad(result.sum(), x)], [value], expected)


@program
def a_polynomial_by_horner(rng: np.random.Generator) -> Program:
    coefficients, x = T.vector("coefficients"), T.matrix("x")
    value, _ = theano.foldr(lambda c, so_far, x: so_far * x + c, coefficients, T.zeros_like(x), x)
    given = [rng.normal(size=5), rng.normal(size=(2, 3))]
    expected = [np.polynomial.Polynomial(given[0])(given[1]), np.polynomial.Polynomial(given[0]).deriv()(given[1])]
    return Program([coefficients, x], [value, T.grad(value.sum(), x)], given, expected)


@program
def fibonacci_until_it_overflows(rng: np.random.Generator) -> Program:
    def fib(f_m_2: Any, f_m_1: Any) -> Any:
        ret = f_m_1 + f_m_2
        return ret, theano.scan_module.until(ret < 0)

    i, x0 = T.iscalar("i"), T.ivector("x0")
    results, _ = theano.scan(fn=fib, outputs_info=[{"initial": x0, "taps": [-2, -1]}], n_steps=i)
    numbers = [0, 1]
    while numbers[-1] < 2**31:
        numbers.append(numbers[-1] + numbers[-2])
    numbers[-1] -= 2**32
    return Program([i, x0], [results], [100, np.array([0, 1], "int32")], [np.array(numbers[2:], "int32")])


@program
def the_mandelbrot_set(rng: np.random.Generator) -> Program:
    """For each point a loop that ends when it has escaped, in a loop over the points."""
    re, im = T.vector("re"), T.vector("im")

    def escape(c_re: Any, c_im: Any) -> Any:
        def step(z_re: Any, z_im: Any) -> Any:
            new_re, new_im = z_re**2 - z_im**2 + c_re, 2 * z_re * z_im + c_im
            return [new_re, new_im], theano.scan_module.until(new_re**2 + new_im**2 > 4)

        (z, _), _ = theano.scan(step, outputs_info=[T.zeros_like(c_re), T.zeros_like(c_im)], n_steps=30)
        return z.shape[0]

    counts, _ = theano.map(escape, [re, im])
    points = rng.uniform(-2, 1, size=40), rng.uniform(-1, 1, size=40)

    def count(c: complex) -> int:
        z, steps = 0j, 0
        while steps < 30 and abs(z) <= 2:
            z, steps = z**2 + c, steps + 1
        return steps

    return Program([re, im], [counts], points, [[count(complex(*c)) for c in zip(*points, strict=True)]])


@program
def an_image_of_the_mandelbrot_set(rng: np.random.Generator) -> Program:
    """All points in each step, which ends the loop when all have escaped."""
    re, im = T.matrix("re"), T.matrix("im")

    def step(z_re: Any, z_im: Any, count: Any) -> Any:
        new_re, new_im = z_re**2 - z_im**2 + re, 2 * z_re * z_im + im
        inside = new_re**2 + new_im**2 <= 4
        kept = [T.switch(inside, new_re, 9.0), T.switch(inside, new_im, 0.0), count + T.cast(inside, "int32")]
        return kept, theano.scan_module.until(T.all(T.eq(inside, 0)))

    begin = [T.zeros_like(re), T.zeros_like(re), T.zeros_like(re, dtype="int32")]
    (_, _, counts), _ = theano.scan(step, outputs_info=begin, n_steps=1000)
    x, y = np.meshgrid(np.linspace(0.3, 1, 5), np.linspace(0.7, 1, 4))
    z, expected = np.zeros_like(x) + 0j, np.zeros(x.shape, int)
    for _ in range(1000):
        z = z**2 + x + 1j * y
        z[abs(z) > 2] = 9
        expected += abs(z) <= 2
    return Program([re, im], [counts[-1], counts.shape[0]], [x, y], [expected, expected.max() + 1])


@program
def a_power_of_a_matrix_by_loops_in_a_loop(rng: np.random.Generator) -> Program:
    """The product is a loop over rows, in the loop that takes the power."""
    A, k = T.matrix("A"), T.iscalar("k")

    def product(left: Any, right: Any) -> Any:
        rows, _ = theano.map(lambda row, right: (row[:, None] * right).sum(axis=0), left, right)
        return rows

    powers, _ = theano.scan(product, outputs_info=T.eye(A.shape[0]), non_sequences=A, n_steps=k)
    value = 0.5 * rng.normal(size=(3, 3))
    cube = np.linalg.matrix_power(value, 3)
    gradient = sum(
        np.linalg.matrix_power(value, n).T @ np.ones((3, 3)) @ np.linalg.matrix_power(value, 2 - n).T for n in range(3)
    )
    return Program([A, k], [powers[-1], T.grad(powers[-1].sum(), A)], [value, 3], [cube, gradient])


@program
def a_generator_of_random_numbers(rng: np.random.Generator) -> Program:
    """Lehmer's, whose seed is updated by the steps, and Monte Carlo with it."""
    seed = theano.shared(np.int64(1), name="seed")

    def draw() -> Any:
        new = (seed * 48271) % 2147483647
        return T.cast(new, "float64") / 2147483647, {seed: new}

    draws, updates = theano.scan(draw, n_steps=20)
    state, expected = 1, []
    for _ in range(20):
        state = state * 48271 % 2147483647
        expected.append(state / 2147483647)
    return Program([], [draws, draws.mean()], [], [expected, np.mean(expected)], updates, {seed: state})


@program
def a_jacobian_by_rows(rng: np.random.Generator) -> Program:
    """That of where a loop ends, by its beginning: `grad` in a loop, of a loop."""
    x, W = T.vector("x"), T.matrix("W")
    path, _ = theano.scan(lambda x, W: T.tanh(T.dot(W, x)), outputs_info=x, non_sequences=W, n_steps=4)
    end = path[-1]
    J, _ = theano.scan(lambda i, y, x: T.grad(y[i], x), sequences=T.arange(end.shape[0]), non_sequences=[end, x])
    values = [rng.normal(size=3), rng.normal(size=(3, 3))]
    jacobian, at = np.eye(3), values[0]
    for _ in range(4):
        at = np.tanh(values[1] @ at)
        jacobian = (1 - at**2)[:, None] * (values[1] @ jacobian)
    return Program([x, W], [J], values, [jacobian])


@program
def a_hessian_by_rows(rng: np.random.Generator) -> Program:
    """Rosenbrock's function."""
    x = T.vector("x")
    cost = T.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    gy = T.grad(cost, x)
    H, updates = theano.scan(lambda i, gy, x: T.grad(gy[i], x), T.arange(gy.shape[0]), non_sequences=[gy, x])
    v = rng.normal(size=4)
    hessian = np.diag(-400 * v[:-1], 1) + np.diag(-400 * v[:-1], -1)
    hessian += np.diag(np.r_[1200 * v[:-1] ** 2 - 400 * v[1:] + 2, 0] + np.r_[0, 200, 200, 200])
    return Program([x], [H], [v], [hessian], updates)


@program
def an_average_that_forgets(rng: np.random.Generator) -> Program:
    x, alpha = T.matrix("x"), T.scalar("alpha")
    averages, _ = theano.scan(lambda x_t, m, alpha: alpha * x_t + (1 - alpha) * m, x[1:], x[0], alpha)
    values = [rng.normal(size=(8, 3)), np.float64(0.3)]

    def run(x: Any, alpha: Any) -> Any:
        m, rows = x[0], []
        for x_t in x[1:]:
            m = alpha * x_t + (1 - alpha) * m
            rows.append(m)
        return np.array(rows)

    gradients = T.grad((averages**3).sum(), [x, alpha])
    expected = [run(*values), *slopes(lambda *v: (run(*v) ** 3).sum(), values)]
    return Program([x, alpha], [averages, *gradients], values, expected)


@program
def orthogonal_rows(rng: np.random.Generator) -> Program:
    """Gram and Schmidt's: the state is the matrix, of which a step writes a row."""
    A = T.matrix("A")

    def step(i: Any, Q: Any) -> Any:
        rest = A[i] - T.dot(T.dot(Q, A[i]), Q)
        return T.set_subtensor(Q[i], rest / T.sqrt(T.sum(rest**2)))

    Qs, _ = theano.scan(step, sequences=T.arange(A.shape[0]), outputs_info=T.zeros_like(A))
    value = rng.normal(size=(3, 4))

    def run(A: Any) -> Any:
        rows: list[Any] = []
        for row in A:
            rest = row - sum((q @ row * q for q in rows), np.zeros(4))
            rows.append(rest / np.sqrt((rest**2).sum()))
        return np.array(rows)

    weights = rng.normal(size=(3, 4))
    gradient = slopes(lambda a: (run(a) * weights).sum(), [value])[0]
    return Program([A], [Qs[-1], T.grad((Qs[-1] * weights).sum(), A)], [value], [run(value), gradient])


@program
def a_distance_between_words(rng: np.random.Generator) -> Program:
    """Levenshtein's: a row of the table from the one before, by a loop in the loop over rows."""
    a, b = T.lvector("a"), T.lvector("b")

    def row(letter: Any, above: Any) -> Any:
        def cell(other: Any, diagonal: Any, over: Any, left: Any) -> Any:
            return T.minimum(T.minimum(left, over) + 1, diagonal + T.neq(letter, other))

        cells, _ = theano.scan(cell, sequences=[b, above[:-1], above[1:]], outputs_info=above[0] + 1)
        return T.concatenate([above[:1] + 1, cells])

    table, _ = theano.scan(row, sequences=a, outputs_info=T.arange(b.shape[0] + 1))
    words = [np.array([*map(ord, word)]) for word in ("intention", "execution")]
    return Program([a, b], [table[-1, -1]], words, [5])


@program
def triangular_factors(rng: np.random.Generator) -> Program:
    """Those of a matrix: L U by elimination, and Cholesky's by columns; what a step works on becomes smaller."""
    A = T.matrix("A")

    def eliminate(k: Any, A: Any) -> Any:
        column = A[k + 1 :, k] / A[k, k]
        A = T.set_subtensor(A[k + 1 :, k], column)
        return T.inc_subtensor(A[k + 1 :, k + 1 :], -T.outer(column, A[k, k + 1 :]))

    def column(j: Any, L: Any) -> Any:
        s = L[j, :j]
        d = T.sqrt(A[j, j] - T.dot(s, s))
        L = T.set_subtensor(L[j, j], d)
        return T.set_subtensor(L[j + 1 :, j], (A[j + 1 :, j] - T.dot(L[j + 1 :, :j], s)) / d)

    LUs, _ = theano.scan(eliminate, sequences=T.arange(A.shape[0] - 1), outputs_info=A)
    Ls, _ = theano.scan(column, sequences=T.arange(A.shape[0]), outputs_info=T.zeros_like(A))
    a = rng.normal(size=(5, 5))
    symmetric = a @ a.T
    L = np.linalg.cholesky(symmetric)
    LU = np.tril(L / np.diag(L), -1) + (L * np.diag(L)).T
    return Program([A], [LUs[-1], Ls[-1]], [symmetric], [LU, L])


@program
def a_convolution_by_windows(rng: np.random.Generator) -> Program:
    x, W = T.matrix("x"), T.matrix("W")
    ys, _ = theano.map(lambda i: T.tanh(T.dot(x[i : i + 3], W)).sum(axis=0), T.arange(x.shape[0] - 2))
    values = [rng.normal(size=(7, 2)), rng.normal(size=(2, 3))]

    def run(x: Any, W: Any) -> Any:
        return np.array([np.tanh(x[i : i + 3] @ W).sum(axis=0) for i in range(5)])

    return Program([x, W], [ys], values, [run(*values)])


@program
def a_derivative_in_a_step_of_a_loop_that_ends_by_itself(rng: np.random.Generator) -> Program:
    """For each row, how the first sum of squares above 1 changes with its elements."""
    x = T.matrix("x")

    def until_above(row: Any) -> Any:
        step = lambda e, s: (s + e**2, theano.scan_module.until(s + e**2 > 1))  # noqa: E731
        sums, _ = theano.scan(step, row, T.zeros_like(row[0]))
        return sums[-1], T.grad(sums[-1], row), sums.shape[0]

    (ends, slopes_, counts), _ = theano.map(until_above, x)
    value = rng.normal(size=(4, 6))
    totals = np.cumsum(value**2, axis=1)
    counts_ = [min(int((row <= 1).sum()) + 1, 6) for row in totals]
    taken = np.arange(6) < np.array(counts_)[:, None]
    expected = [totals[range(4), np.array(counts_) - 1], 2 * value * taken, counts_]
    return Program([x], [ends, slopes_, counts], [value], expected)


# --- probability ------------------------------------------------------------------------------------------------------


@program
def a_hidden_markov_model(rng: np.random.Generator) -> Program:
    """The forward algorithm in logarithms; its derivative is the chance of each state (Baum and Welch)."""
    log_start, log_move, log_seen = T.vector(), T.matrix(), T.matrix()

    def forward(seen: Any, alpha: Any, log_move: Any) -> Any:
        a = alpha[:, None] + log_move
        top = a.max(axis=0)
        return T.log(T.exp(a - top).sum(axis=0)) + top + seen

    alphas, _ = theano.scan(forward, log_seen[1:], log_start + log_seen[0], log_move)
    total = T.log(T.exp(alphas[-1]).sum())
    start, move, seen = (rng.dirichlet(np.ones(n), size) for n, size in ((3, None), (3, 3), (3, 6)))
    alpha, beta = [start * seen[0]], [np.ones(3)]
    for t in range(1, 6):
        alpha.append(alpha[-1] @ move * seen[t])
        beta.insert(0, move @ (seen[6 - t] * beta[0]))
    chance = alpha[-1].sum()
    states = np.array(alpha) * np.array(beta) / chance
    moves = sum(np.outer(alpha[t], seen[t + 1] * beta[t + 1]) * move for t in range(5)) / chance
    given = [np.log(start), np.log(move), np.log(seen)]
    gradients = T.grad(total, [log_seen, log_move])
    expected = [np.log(chance), states, moves]
    return Program([log_start, log_move, log_seen], [total, *gradients], given, expected)


@program
def viterbi(rng: np.random.Generator) -> Program:
    """The likeliest states: best scores and where they come from, then the way back."""
    log_start, log_move, log_seen = T.vector(), T.matrix(), T.matrix()

    def forward(seen: Any, best: Any) -> Any:
        a = best[:, None] + log_move
        return a.max(axis=0) + seen, T.argmax(a, axis=0)

    (bests, backs), _ = theano.scan(forward, log_seen[1:], [log_start + log_seen[0], None])
    last = T.argmax(bests[-1])
    states, _ = theano.scan(lambda back, state: back[state], backs, last, go_backwards=True)
    path = T.concatenate([states[::-1], last.dimshuffle("x")])
    start, move, seen = (np.log(rng.dirichlet(np.ones(n), size)) for n, size in ((3, None), (3, 3), (3, 6)))
    best, way = -np.inf, None
    for states_ in np.ndindex(*[3] * 6):
        score = start[states_[0]] + seen[range(6), states_].sum() + move[states_[:-1], states_[1:]].sum()
        if score > best:
            best, way = score, states_
    return Program([log_start, log_move, log_seen], [path, bests[-1].max()], [start, move, seen], [way, best])


@program
def a_kalman_filter(rng: np.random.Generator) -> Program:
    """Positions seen with noise, positions and speeds wanted; the likelihood and its derivative by the noises."""
    y, q, r = T.vector("y"), T.scalar("q"), T.scalar("r")
    F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])

    def step(y_t: Any, m: Any, P: Any, likelihood: Any) -> Any:
        m, P = T.dot(F, m), T.dot(T.dot(F, P), F.T) + q * T.eye(2)
        S = T.dot(H, T.dot(P, H)) + r
        K, e = T.dot(P, H) / S, y_t - T.dot(H, m)
        return m + K * e, P - T.outer(K, T.dot(H, P)), likelihood - 0.5 * (T.log(2 * np.pi * S) + e**2 / S)

    begin = [T.zeros(2), T.eye(2), T.constant(0.0)]
    (ms, Ps, likelihoods), _ = theano.scan(step, sequences=y, outputs_info=begin)
    seen = np.arange(10) + rng.normal(size=10)

    def run(q: Any, r: Any) -> Any:
        m, P, total = np.zeros(2), np.eye(2), 0.0
        for y_t in seen:
            m, P = F @ m, F @ P @ F.T + q * np.eye(2)
            S, e = H @ P @ H + r, y_t - H @ m
            K = P @ H / S
            m, P, total = m + K * e, P - np.outer(K, H @ P), total - 0.5 * (np.log(2 * np.pi * S) + e**2 / S)
        return m, P, total

    noises = [np.float64(0.1), np.float64(1.3)]
    gradients = T.grad(likelihoods[-1], [q, r])
    expected = [*run(*noises), *slopes(lambda *n: run(*n)[2], noises)]
    return Program([y, q, r], [ms[-1], Ps[-1], likelihoods[-1], *gradients], [seen, *noises], expected)


@program
def hamiltonian_dynamics(rng: np.random.Generator) -> Program:
    """Leapfrog steps of a sampler, with the derivative of the energy taken within the step (Neal, 2011)."""
    position, momentum, size = T.matrix("q"), T.matrix("p"), T.scalar("size")

    def energy(q: Any) -> Any:
        return (0.5 * q**2 + 0.25 * q**4).sum(axis=1)

    def leapfrog(q: Any, p: Any, step: Any) -> Any:
        p = p - step * T.grad(energy(q).sum(), q)
        return [q + step * p, p], {}

    half = momentum - 0.5 * size * T.grad(energy(position).sum(), position)
    begin = [position + size * half, half]
    (all_q, all_p), updates = theano.scan(leapfrog, outputs_info=begin, non_sequences=[size], n_steps=9)
    final = all_p[-1] - 0.5 * size * T.grad(energy(all_q[-1]).sum(), all_q[-1])
    given = [rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), np.float64(0.1)]

    def run(q: Any, p: Any, step: Any) -> Any:
        p = p - 0.5 * step * (q + q**3)
        q = q + step * p
        for _ in range(9):
            p = p - step * (q + q**3)
            q = q + step * p
        return q, p - 0.5 * step * (q + q**3)

    return Program([position, momentum, size], [all_q[-1], final], given, run(*given), updates)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, mode: str) -> None:
    """A program is called twice where it changes nothing: what the first call leaves must not disturb the second."""
    made = PROGRAMS[name](np.random.default_rng(0))
    call = theano.function(list(made.inputs), list(made.outputs), updates=made.updates, mode=mode)
    for _ in range(1 if made.updates else 2):
        for got, wanted in zip(call(*made.given), made.expected, strict=True):
            npt.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    for shared, value in made.after.items():
        npt.assert_allclose(shared.get_value(), value, rtol=1e-9, atol=1e-12)
