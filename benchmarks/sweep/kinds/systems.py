"""Differential equations and dynamic programming: pendulums, epidemics, springs, the distance of two words."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

# --- predator and prey: the misfit to a series, midpoint rule ---------------------------------------------------------

STEP = 0.02


def ode_data(rng: Numbers, steps: int) -> tuple[Any, ...]:
    return np.array([1.1, 0.4, 0.1, 0.4]), np.array([5.0, 3.0]), rng.uniform(1, 10, size=(steps, 2))


def ode_stack(lib: Any, p: Any, start: Any, seen: Any) -> Any:
    def slope(y: Any) -> Any:
        return lib.np.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])

    def step(y: Any, _: Any) -> Any:
        y = y + STEP * slope(y + STEP / 2 * slope(y))
        return y, y

    path = lib.lax.scan(step, start, None, length=seen.shape[0])[1]
    return lib.np.mean((path - seen) ** 2)


def ode_pair(lib: Any, p: Any, start: Any, seen: Any) -> Any:
    def slope(prey: Any, hunters: Any) -> Any:
        met = prey * hunters
        return p[0] * prey - p[1] * met, p[2] * met - p[3] * hunters

    def step(carry: Any, row: Any) -> Any:
        prey, hunters, total = carry
        one, other = slope(prey, hunters)
        one, other = slope(prey + STEP / 2 * one, hunters + STEP / 2 * other)
        prey, hunters = prey + STEP * one, hunters + STEP * other
        return (prey, hunters, total + (prey - row[0]) ** 2 + (hunters - row[1]) ** 2), None

    carry = (start[0], start[1], lib.np.zeros((), p.dtype))
    return lib.lax.scan(step, carry, seen)[0][2] / (2 * seen.shape[0])


def ode_loops(p: Any, start: Any, seen: Any) -> Any:
    x, y, total = start[0], start[1], 0.0
    for t in range(seen.shape[0]):
        u = x + STEP / 2 * (p[0] * x - p[1] * x * y)
        v = y + STEP / 2 * (p[2] * x * y - p[3] * y)
        x += STEP * (p[0] * u - p[1] * u * v)
        y += STEP * (p[2] * u * v - p[3] * v)
        total += (x - seen[t, 0]) ** 2 + (y - seen[t, 1]) ** 2
    return total / (2 * seen.shape[0])


def ode_slopes(p: Any, start: Any, seen: Any) -> Any:
    steps = seen.shape[0]
    path, middle, total = np.empty((steps + 1, 2)), np.empty((steps, 2)), 0.0
    path[0] = start
    for t in range(steps):
        x, y = path[t]
        u = x + STEP / 2 * (p[0] * x - p[1] * x * y)
        v = y + STEP / 2 * (p[2] * x * y - p[3] * y)
        middle[t, 0], middle[t, 1] = u, v
        path[t + 1, 0] = x + STEP * (p[0] * u - p[1] * u * v)
        path[t + 1, 1] = y + STEP * (p[2] * u * v - p[3] * v)
        total += (path[t + 1, 0] - seen[t, 0]) ** 2 + (path[t + 1, 1] - seen[t, 1]) ** 2
    slopes, gx, gy = np.zeros(4), 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        gx += (path[t + 1, 0] - seen[t, 0]) / steps
        gy += (path[t + 1, 1] - seen[t, 1]) / steps
        u, v = middle[t]
        a, b = STEP * gx, STEP * gy
        slopes[0] += a * u
        slopes[1] -= a * u * v
        slopes[2] += b * u * v
        slopes[3] -= b * v
        gu = a * (p[0] - p[1] * v) + b * p[2] * v
        gv = -a * p[1] * u + b * (p[2] * u - p[3])
        x, y = path[t]
        a, b = STEP / 2 * gu, STEP / 2 * gv
        slopes[0] += a * x
        slopes[1] -= a * x * y
        slopes[2] += b * x * y
        slopes[3] -= b * y
        gx += gu + a * (p[0] - p[1] * y) + b * p[2] * y
        gy += gv - a * p[1] * x + b * (p[2] * x - p[3])
    return total / (2 * steps), slopes


# --- a pendulum, Runge and Kutta's rule -------------------------------------------------------------------------------

TICK = 0.01


def pendulum_data(rng: Numbers, steps: int) -> tuple[Any, ...]:
    return np.array([1.0, 0.1]), np.array(0.1), np.zeros(steps)


def pendulum_stack(lib: Any, start: Any, damping: Any, force: Any) -> Any:
    def slope(y: Any) -> Any:
        return lib.np.stack([y[1], -9.81 * lib.np.sin(y[0]) - damping * y[1]])

    def step(y: Any, _: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + TICK / 2 * k1)
        k3 = slope(y + TICK / 2 * k2)
        k4 = slope(y + TICK * k3)
        return y + TICK / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lib.np.sum(lib.lax.scan(step, start, None, length=force.shape[0])[0] ** 2)


def pendulum_list(lib: Any, start: Any, damping: Any, force: Any) -> Any:
    def slope(y: Any) -> Any:
        angle, speed = y[0], y[1]
        return lib.np.array([speed, -9.81 * lib.np.sin(angle) - damping * speed])

    def step(i: Any, y: Any) -> Any:
        total, k = 0.0 * y, 0.0 * y
        for share, ahead in ((1, 0.0), (2, 0.5), (2, 0.5), (1, 1.0)):
            k = slope(y + ahead * TICK * k)
            total = total + share * k
        return y + TICK / 6 * total

    return lib.np.sum(lib.lax.fori_loop(0, force.shape[0], step, start) ** 2)


def pendulum_pair(lib: Any, start: Any, damping: Any, force: Any) -> Any:
    def pull(angle: Any, speed: Any) -> Any:
        return -9.81 * lib.np.sin(angle) - damping * speed

    def step(carry: Any, _: Any) -> Any:
        angle, speed = carry
        a1, s1 = speed, pull(angle, speed)
        a2, s2 = speed + TICK / 2 * s1, pull(angle + TICK / 2 * a1, speed + TICK / 2 * s1)
        a3, s3 = speed + TICK / 2 * s2, pull(angle + TICK / 2 * a2, speed + TICK / 2 * s2)
        a4, s4 = speed + TICK * s3, pull(angle + TICK * a3, speed + TICK * s3)
        return (angle + TICK / 6 * (a1 + 2 * a2 + 2 * a3 + a4), speed + TICK / 6 * (s1 + 2 * s2 + 2 * s3 + s4)), None

    angle, speed = lib.lax.scan(step, (start[0], start[1]), None, length=force.shape[0])[0]
    return angle**2 + speed**2


def pendulum_loops(start: Any, damping: Any, force: Any) -> Any:
    angle, speed, d = start[0], start[1], damping[()]
    for _ in range(force.shape[0]):
        a1, s1 = speed, -9.81 * np.sin(angle) - d * speed
        a2, s2 = speed + TICK / 2 * s1, -9.81 * np.sin(angle + TICK / 2 * a1) - d * (speed + TICK / 2 * s1)
        a3, s3 = speed + TICK / 2 * s2, -9.81 * np.sin(angle + TICK / 2 * a2) - d * (speed + TICK / 2 * s2)
        a4, s4 = speed + TICK * s3, -9.81 * np.sin(angle + TICK * a3) - d * (speed + TICK * s3)
        angle += TICK / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        speed += TICK / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
    return angle * angle + speed * speed


# --- an epidemic: the misfit to the infected --------------------------------------------------------------------------


def epidemic_data(rng: Numbers, steps: int) -> tuple[Any, ...]:
    return np.array(2.0), np.array(0.5), rng.uniform(0, 0.3, size=steps)


def epidemic_tuple(lib: Any, rate: Any, cure: Any, seen: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        well, ill, total = carry
        new, healed = 0.01 * rate * well * ill, 0.01 * cure * ill
        well, ill = well - new, ill + new - healed
        return (well, ill, total + (ill - row) ** 2), None

    start = [lib.np.full((), value, seen.dtype) for value in (0.99, 0.01, 0.0)]
    return lib.lax.scan(step, tuple(start), seen)[0][2]


def epidemic_array(lib: Any, rate: Any, cure: Any, seen: Any) -> Any:
    def step(y: Any, _: Any) -> Any:
        new, healed = rate * y[0] * y[1], cure * y[1]
        y = y + 0.01 * lib.np.stack([-new, new - healed, healed])
        return y, y[1]

    path = lib.lax.scan(step, lib.np.array([0.99, 0.01, 0.0], seen.dtype), None, length=seen.shape[0])[1]
    return lib.np.sum((path - seen) ** 2)


def epidemic_loops(rate: Any, cure: Any, seen: Any) -> Any:
    well, ill, total, b, c = 0.99, 0.01, 0.0, rate[()], cure[()]
    for row in seen:
        new, healed = 0.01 * b * well * ill, 0.01 * c * ill
        well, ill = well - new, ill + new - healed
        total += (ill - row) ** 2
    return total


def epidemic_slopes(rate: Any, cure: Any, seen: Any) -> Any:
    well, ill, total, b, c = 0.99, 0.01, 0.0, rate[()], cure[()]
    well_b, ill_b, well_c, ill_c, to_b, to_c = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for row in seen:
        new, healed = 0.01 * b * well * ill, 0.01 * c * ill
        new_b = 0.01 * (well * ill + b * (well_b * ill + well * ill_b))
        new_c = 0.01 * b * (well_c * ill + well * ill_c)
        healed_b, healed_c = 0.01 * c * ill_b, 0.01 * (ill + c * ill_c)
        well, ill = well - new, ill + new - healed
        well_b, ill_b = well_b - new_b, ill_b + new_b - healed_b
        well_c, ill_c = well_c - new_c, ill_c + new_c - healed_c
        total += (ill - row) ** 2
        to_b += 2 * (ill - row) * ill_b
        to_c += 2 * (ill - row) * ill_c
    return total, to_b, to_c


# --- a chain of springs -----------------------------------------------------------------------------------------------


def springs_data(rng: Numbers, masses: int, steps: int) -> tuple[Any, ...]:
    return np.arange(masses) + 0.1 * rng.normal(size=masses), np.zeros(masses), np.zeros(steps)


def springs_concatenate(lib: Any, x: Any, v: Any, ticks: Any) -> Any:
    end = lib.np.zeros(1, x.dtype)

    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        pull = x[1:] - x[:-1] - 1.0
        v = v + 0.01 * (lib.np.concatenate([pull, end]) - lib.np.concatenate([end, pull]))
        return (x + 0.01 * v, v), None

    return lib.lax.scan(step, (x, v), None, length=ticks.shape[0])[0]


def springs_diff(lib: Any, x: Any, v: Any, ticks: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        v = v + 0.01 * lib.np.diff(lib.np.pad(lib.np.diff(x) - 1.0, 1))
        return (x + 0.01 * v, v), None

    return lib.lax.scan(step, (x, v), None, length=ticks.shape[0])[0]


def springs_loops(x: Any, v: Any, ticks: Any) -> Any:
    x, v, n = x.copy(), v.copy(), x.shape[0]
    for _ in range(ticks.shape[0]):
        for i in range(n):
            pull = 0.0
            if i < n - 1:
                pull += x[i + 1] - x[i] - 1.0
            if i > 0:
                pull -= x[i] - x[i - 1] - 1.0
            v[i] += 0.01 * pull
        for i in range(n):
            x[i] += 0.01 * v[i]
    return x, v


# --- the edit distance of two words -----------------------------------------------------------------------------------


def edit_data(rng: Numbers, first: int, second: int) -> tuple[Any, ...]:
    return rng.integers(0, 4, first), rng.integers(0, 4, second)


def edit_nested(lib: Any, a: Any, b: Any) -> Any:
    def row(before: Any, letter: Any) -> Any:
        least = lib.np.minimum(before[:-1] + (b != letter), before[1:] + 1)

        def cell(left: Any, up: Any) -> Any:
            left = lib.np.minimum(left + 1, up)
            return left, left

        rest = lib.lax.scan(cell, before[0] + 1, least)[1]
        return lib.np.concatenate([before[:1] + 1, rest]), None

    return lib.lax.scan(row, lib.np.arange(b.shape[0] + 1), a)[0][-1]


def edit_running(lib: Any, a: Any, b: Any) -> Any:
    places = lib.np.arange(b.shape[0] + 1)

    def row(before: Any, letter: Any) -> Any:
        least = lib.np.minimum(before[:-1] + (b != letter), before[1:] + 1)
        all_cells = lib.np.concatenate([before[:1] + 1, least])
        return lib.np.minimum.accumulate(all_cells - places) + places, None

    return lib.lax.scan(row, places, a)[0][-1]


def edit_loops(a: Any, b: Any) -> Any:
    n = b.shape[0]
    before, row = np.arange(n + 1), np.arange(n + 1)
    for i in range(a.shape[0]):
        row[0] = i + 1
        for j in range(n):
            row[j + 1] = min(before[j] + (b[j] != a[i]), before[j + 1] + 1, row[j] + 1)
        before, row = row, before
    return before[n]


KINDS = (
    Kind(
        "ode",
        {"steps": (50, 2000)},
        ode_data,
        {"stack": ode_stack, "pair": ode_pair},
        ode_loops,
        ode_slopes,
        wrt=(0,),
        dtypes=("float64",),
    ),
    Kind(
        "pendulum",
        {"steps": (100, 2000)},
        pendulum_data,
        {"stack": pendulum_stack, "list": pendulum_list, "pair": pendulum_pair},
        pendulum_loops,
        wrt=(0, 1),
        dtypes=("float64",),
    ),
    Kind(
        "epidemic",
        {"steps": (100, 2000)},
        epidemic_data,
        {"tuple": epidemic_tuple, "array": epidemic_array},
        epidemic_loops,
        epidemic_slopes,
        wrt=(0, 1),
    ),
    Kind(
        "springs",
        {"masses": (5, 300), "steps": (50, 500)},
        springs_data,
        {"concatenate": springs_concatenate, "diff": springs_diff},
        springs_loops,
        dtypes=("float64",),
    ),
    Kind(
        "edit",
        {"first": (20, 300), "second": (20, 300)},
        edit_data,
        {"nested": edit_nested, "running": edit_running},
        edit_loops,
        dtypes=("float64",),
    ),
)
