"""Differential equations, step by step: a small system with the gradient of its parameters, an ensemble of which the
end is wanted, a field over many steps, and the gradient of its parameters with few of its states kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- Lotka and Volterra's equations, by Runge and Kutta ---------------------------------------------------------------

STEP = 0.01


def populations(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: steps. Four rates, what there is at first of each kind, and what was seen of both after each step."""
    seen = np.array([[2.0], [1.0]]) + 0.1 * rng.normal(size=(2, size[0]))
    return Data((np.array([1.1, 0.4, 0.1, 0.4]), np.array(2.0), np.array(1.0), *seen))


def field(rates: Any, x: Any, y: Any) -> tuple[Any, Any]:
    a, b, c, d = rates
    return a * x - b * x * y, c * x * y - d * y


def runge_kutta(rates: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """One step, written alike for every library."""
    p1, q1 = field(rates, x, y)
    p2, q2 = field(rates, x + STEP / 2 * p1, y + STEP / 2 * q1)
    p3, q3 = field(rates, x + STEP / 2 * p2, y + STEP / 2 * q2)
    p4, q4 = field(rates, x + STEP * p3, y + STEP * q3)
    return x + STEP / 6 * (p1 + 2 * p2 + 2 * p3 + p4), y + STEP / 6 * (q1 + 2 * q2 + 2 * q3 + q4)


def lotka_numpy(library: Any, data: Data) -> Program:
    def pull(rates: Any, at: Any, slopes: Any, to_rates: Array) -> Any:
        """The cotangents of a field's arguments."""
        (a, b, c, d), (x, y), (to_p, to_q) = rates, at, slopes
        to_rates += np.array([to_p * x, -to_p * x * y, to_q * x * y, -to_q * y])
        return to_p * (a - b * y) + to_q * c * y, -to_p * b * x + to_q * (c * x - d)

    def call(rates: Any, x: Array, y: Array, seen_x: Array, seen_y: Array) -> Any:
        n, states = len(seen_x), []
        for _ in range(n):
            states.append((x, y))
            x, y = runge_kutta(rates, x, y)
        xs, ys = (np.array([state[k] for state in (*states[1:], (x, y))]) for k in range(2))
        to_xs, to_ys = 2 / n * (xs - seen_x), 2 / n * (ys - seen_y)
        to_x, to_y, to_rates = 0.0, 0.0, np.zeros(4)
        for (x, y), more_x, more_y in zip(reversed(states), to_xs[::-1], to_ys[::-1], strict=True):
            to_x, to_y = to_x + more_x, to_y + more_y
            at = [(x, y)]
            for size in (STEP / 2, STEP / 2, STEP):
                p, q = field(rates, *at[-1])
                at.append((x + size * p, y + size * q))
            end, ends = (to_x, to_y), (0.0, 0.0)
            for k, (weight, size) in enumerate(zip((1, 2, 2, 1), (0, STEP, STEP / 2, STEP / 2), strict=True)):
                slopes = [STEP / 6 * weight * e + size * z for e, z in zip(end, ends, strict=True)]
                ends = pull(rates, at[3 - k], slopes, to_rates)
                to_x, to_y = to_x + ends[0], to_y + ends[1]
        return ((xs - seen_x) ** 2).mean() + ((ys - seen_y) ** 2).mean(), to_rates

    return Program(call)


def lotka_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    rates, x, y = T.dvector("rates"), T.dscalar("x"), T.dscalar("y")
    seen_x, seen_y = T.dvector("seen_x"), T.dvector("seen_y")
    abcd = [rates[k] for k in range(4)]
    xs, ys = library.scan(lambda x, y: runge_kutta(abcd, x, y), outputs_info=[x, y], n_steps=seen_x.shape[0])
    cost = ((xs - seen_x) ** 2).mean() + ((ys - seen_y) ** 2).mean()
    return Program(library.function([rates, x, y, seen_x, seen_y], [cost, library.grad(cost, rates)]))


def lotka_jax(library: Any, data: Data) -> Program:
    def cost(rates: Any, x: Any, y: Any, seen_x: Any, seen_y: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            state = runge_kutta(rates, *state)
            return state, state

        _, (xs, ys) = library.jax.lax.scan(step, (x, y), length=len(seen_x))
        return ((xs - seen_x) ** 2).mean() + ((ys - seen_y) ** 2).mean()

    return Program(library.jit(library.jax.value_and_grad(cost)))


def lotka_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    step = library.compile(runge_kutta)

    def call(rates: Any, x: Any, y: Any, seen_x: Any, seen_y: Any) -> Any:
        rates.requires_grad_()
        states = []
        for _ in range(len(seen_x)):
            x, y = step(rates, x, y)
            states.append((x, y))
        xs, ys = (torch.stack(kind) for kind in zip(*states, strict=True))
        cost = ((xs - seen_x) ** 2).mean() + ((ys - seen_y) ** 2).mean()
        return cost.detach(), *torch.autograd.grad(cost, [rates])

    return Program(call)


# --- double pendulums, by leapfrog ------------------------------------------------------------------------------------

PENDULUM_STEP = 0.002
GRAVITY = 9.81


def pendulums(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: pendulums, steps. Two angles and two angular velocities, half a step ahead, and the number of steps."""
    angles = rng.uniform(-1.5, 1.5, size=(2, size[0]))
    return Data((*angles, *np.zeros((2, size[0])), np.array(size[1])))


def leapfrog(sin: Any, cos: Any, a: Any, b: Any, v: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """One step of two equal masses on two rods of length 1, written alike for every library."""
    apart, v2, w2 = a - b, v * v, w * w
    turn, fall = sin(apart), cos(apart)
    below = 2 + 2 * turn * turn
    up = (-3 * GRAVITY * sin(a) - GRAVITY * sin(a - 2 * b) - 2 * turn * (w2 + v2 * fall)) / below
    down = 2 * turn * (2 * v2 + 2 * GRAVITY * cos(a) + w2 * fall) / below
    v, w = v + PENDULUM_STEP * up, w + PENDULUM_STEP * down
    return a + PENDULUM_STEP * v, b + PENDULUM_STEP * w, v, w


def pendulums_numpy(library: Any, data: Data) -> Program:
    def call(a: Array, b: Array, v: Array, w: Array, steps: Array) -> Any:
        for _ in range(steps):
            a, b, v, w = leapfrog(np.sin, np.cos, a, b, v, w)
        return a, b, v, w

    return Program(call)


def pendulums_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    inputs, steps = [T.dvector(name) for name in "abvw"], T.lscalar("steps")
    states = library.scan(lambda *state: leapfrog(T.sin, T.cos, *state), outputs_info=inputs, n_steps=steps)
    return Program(library.function([*inputs, steps], [state[-1] for state in states]))


def pendulums_jax(library: Any, data: Data) -> Program:
    jnp = library.numpy

    def call(*inputs: Any) -> Any:
        *state, steps = inputs
        step = lambda _, state: leapfrog(jnp.sin, jnp.cos, *state)  # noqa: E731
        return library.jax.lax.fori_loop(0, steps, step, tuple(state))

    return Program(library.jit(call))


def pendulums_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    step = library.compile(lambda *state: leapfrog(torch.sin, torch.cos, *state))

    def call(*inputs: Any) -> Any:
        *state, steps = inputs
        for _ in range(int(steps)):
            state = step(*state)
        return state

    return Program(call)


# --- a front that spreads by diffusion (Fisher 1937) ------------------------------------------------------------------


def front(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: cells, steps. How fast it spreads and grows, the first state, the number of steps."""
    cells, steps = size
    first = np.exp(-(np.linspace(-3, 3, cells) ** 2)) * 0.5 + 0.01 * rng.random(cells)
    return Data((np.array(0.2), np.array(0.001), first, np.array(steps)))


def spread(roll: Any, rate: Any, growth: Any, u: Any) -> Any:
    """One step on a ring, written alike for every library."""
    return u + rate * (roll(u, 1) + roll(u, -1) - 2 * u) + growth * u * (1 - u)


def front_numpy(library: Any, data: Data) -> Program:
    def call(rate: Array, growth: Array, u: Array, steps: Array) -> Any:
        for _ in range(steps):
            u = spread(np.roll, rate, growth, u)
        return u

    return Program(call)


def front_inputs(library: Any) -> list[Any]:
    T = library.tensor  # noqa: N806 - as users write it
    return [T.dscalar("rate"), T.dscalar("growth"), T.dvector("u"), T.lscalar("steps")]


def front_symbolic(library: Any, data: Data) -> Program:
    inputs = [rate, growth, u, steps] = front_inputs(library)
    roll = library.tensor.roll
    states = library.scan(lambda u: spread(roll, rate, growth, u), outputs_info=u, n_steps=steps)
    return Program(library.function(inputs, states[-1]))


def front_jax(library: Any, data: Data) -> Program:
    def call(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
        step = lambda _, u: spread(library.numpy.roll, rate, growth, u)  # noqa: E731
        return library.jax.lax.fori_loop(0, steps, step, u)

    return Program(library.jit(call))


def front_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    step = library.compile(lambda rate, growth, u: spread(torch.roll, rate, growth, u))

    def call(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
        for _ in range(int(steps)):
            u = step(rate, growth, u)
        return u

    return Program(call)


# --- the gradient of its two parameters, with the square root of its states kept --------------------------------------


def checkpoint_numpy(library: Any, data: Data) -> Program:
    def call(rate: Array, growth: Array, u: Array, steps: Array) -> Any:
        states = []
        for _ in range(steps):
            states.append(u)
            u = spread(np.roll, rate, growth, u)
        cost, to_u, to_rate, to_growth = (u * u).mean(), 2 / len(u) * u, 0.0, 0.0
        for u in reversed(states):
            around = np.roll(u, 1) + np.roll(u, -1) - 2 * u
            to_rate, to_growth = to_rate + to_u @ around, to_growth + to_u @ (u * (1 - u))
            pull = rate * to_u
            to_u = to_u * (1 - 2 * rate + growth * (1 - 2 * u)) + np.roll(pull, 1) + np.roll(pull, -1)
        return cost, to_rate, to_growth

    return Program(call)


def checkpoint_symbolic(library: Any, data: Data) -> Program:
    inputs = [rate, growth, u, steps] = front_inputs(library)
    roll = library.tensor.roll
    last = library.last_of(lambda u, rate, growth: spread(roll, rate, growth, u), u, [rate, growth], steps)
    cost = (last**2).mean()
    return Program(library.function(inputs, [cost, *library.grad(cost, [rate, growth])]))


def checkpoint_jax(library: Any, data: Data) -> Program:
    """Steps in blocks of which each is carried out again; their number has to be known."""
    jax, roll, steps = library.jax, library.numpy.roll, int(data.arguments[3])
    block = next(size for size in range(int(steps**0.5), 0, -1) if steps % size == 0)

    def cost(rate: Any, growth: Any, u: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            return spread(roll, rate, growth, u), None

        def steps_of_block(u: Any, _: Any) -> Any:
            return jax.lax.scan(step, u, length=block)

        u, _ = jax.lax.scan(jax.checkpoint(steps_of_block), u, length=steps // block)
        return (u**2).mean()

    def call(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
        value, gradients = jax.value_and_grad(cost, range(2))(rate, growth, u)
        return value, *gradients

    return Program(library.jit(call))


def checkpoint_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    checkpoint = library.checkpoint
    step = library.compile(lambda rate, growth, u: spread(torch.roll, rate, growth, u))

    def block(rate: Any, growth: Any, u: Any, count: int) -> Any:
        for _ in range(count):
            u = step(rate, growth, u)
        return u

    def call(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
        params, left = [rate.requires_grad_(), growth.requires_grad_()], int(steps)
        size = max(1, int(left**0.5))
        while left:
            count = min(size, left)
            u, left = checkpoint(block, *params, u, count), left - count
        cost = (u**2).mean()
        return cost.detach(), *torch.autograd.grad(cost, params)

    return Program(call)


WORKLOADS = (
    Workload(
        "lotka-volterra-gradient",
        "1,000 steps of Lotka-Volterra by Runge-Kutta, compared with data, with the gradient of the rates, float64",
        populations,
        (1000,),
        (5,),
        {"numpy": lotka_numpy, "symbolic": lotka_symbolic, "jax": lotka_jax, "torch": lotka_torch},
    ),
    Workload(
        "double-pendulums",
        "where 1,000 double pendulums are after 1,000 steps of leapfrog, float64",
        pendulums,
        (1000, 1000),
        (7, 5),
        {"numpy": pendulums_numpy, "symbolic": pendulums_symbolic, "jax": pendulums_jax, "torch": pendulums_torch},
    ),
    Workload(
        "front-last",
        "a front of 256 cells after 10,000 steps of diffusion and growth, float64",
        front,
        (256, 10_000),
        (6, 9),
        {"numpy": front_numpy, "symbolic": front_symbolic, "jax": front_jax, "torch": front_torch},
    ),
    Workload(
        "front-checkpoint",
        "the gradient of both rates of the front through 10,000 steps, of which the square root is kept, float64",
        front,
        (256, 10_000),
        (6, 9),
        {"numpy": checkpoint_numpy, "symbolic": checkpoint_symbolic, "jax": checkpoint_jax, "torch": checkpoint_torch},
    ),
)
