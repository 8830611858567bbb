"""Pairs of points: forces, energies, kernels, the nearest centre."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

# --- gravity of n bodies ----------------------------------------------------------------------------------------------


def bodies_data(rng: Numbers, bodies: int) -> tuple[Any, ...]:
    return rng.normal(size=(bodies, 3)), rng.uniform(size=bodies)


def bodies_broadcast(lib: Any, x: Any, mass: Any) -> Any:
    apart = x[None, :, :] - x[:, None, :]
    squares = lib.np.sum(apart * apart, axis=-1) + 1e-3
    return lib.np.sum(apart * (mass * squares**-1.5)[:, :, None], axis=1)


def bodies_einsum(lib: Any, x: Any, mass: Any) -> Any:
    apart = x - x[:, None]
    distance = lib.np.sqrt((apart**2).sum(2) + 1e-3)
    return lib.np.einsum("ij,ijk->ik", mass / distance**3, apart)


def bodies_axes(lib: Any, x: Any, mass: Any) -> Any:
    apart = [x[:, k] - x[:, k][:, None] for k in range(3)]
    squares = apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2 + 1e-3
    weight = mass[None, :] / (squares * lib.np.sqrt(squares))
    return lib.np.stack([lib.np.sum(weight * along, axis=1) for along in apart], axis=1)


def bodies_loops(x: Any, mass: Any) -> Any:
    force = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, b, c = 0.0, 0.0, 0.0
        for j in range(x.shape[0]):
            u, v, w = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            squares = u * u + v * v + w * w + 1e-3
            weight = mass[j] / (squares * np.sqrt(squares))
            a += u * weight
            b += v * weight
            c += w * weight
        force[i, 0], force[i, 1], force[i, 2] = a, b, c
    return force


# --- the energy of a soft fluid, and its forces -----------------------------------------------------------------------


def fluid_data(rng: Numbers, atoms: int, axes: int) -> tuple[Any, ...]:
    return (rng.uniform(0, atoms ** (1 / axes), size=(atoms, axes)),)


def fluid_sum(lib: Any, x: Any) -> Any:
    squares = lib.np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2) + 0.5
    cubes = 1 / squares**3
    return 2 * lib.np.sum(cubes**2 - cubes)


def fluid_powers(lib: Any, x: Any) -> Any:
    apart = x[:, None] - x
    distance = lib.np.sqrt(lib.np.einsum("ijk,ijk->ij", apart, apart) + 0.5)
    return 2 * (distance**-12 - distance**-6).sum()


def fluid_loops(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            squares = 0.5
            for k in range(x.shape[1]):
                squares += (x[i, k] - x[j, k]) ** 2
            cubes = 1 / (squares * squares * squares)
            total += cubes * cubes - cubes
    return 2 * total


def fluid_slopes(x: Any) -> Any:
    total, slopes = 0.0, np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            squares = 0.5
            for k in range(x.shape[1]):
                squares += (x[i, k] - x[j, k]) ** 2
            inverse = 1 / squares
            cubes = inverse * inverse * inverse
            total += cubes * cubes - cubes
            outer = -24 * (2 * cubes - 1) * cubes * inverse
            for k in range(x.shape[1]):
                slopes[i, k] += outer * (x[i, k] - x[j, k])
    return 2 * total, slopes


# --- a matrix of a kernel ---------------------------------------------------------------------------------------------


def kernel_data(rng: Numbers, points: int, others: int, axes: int) -> tuple[Any, ...]:
    return rng.normal(size=(points, axes)), rng.normal(size=(others, axes)), np.array(0.7)


def kernel_broadcast(lib: Any, x: Any, z: Any, scale: Any) -> Any:
    return lib.np.exp(-0.5 * lib.np.sum(((x[:, None, :] - z[None, :, :]) / scale) ** 2, axis=-1))


def kernel_scaled(lib: Any, x: Any, z: Any, scale: Any) -> Any:
    x, z = x / scale, z / scale
    return lib.np.exp(-((x[:, None] - z) ** 2).sum(-1) / 2)


def kernel_expanded(lib: Any, x: Any, z: Any, scale: Any) -> Any:
    squares = lib.np.sum(x**2, axis=1)[:, None] + lib.np.sum(z**2, axis=1) - 2 * x @ z.T
    return lib.np.exp(-0.5 * lib.np.maximum(squares, 0) / scale**2)


def kernel_loops(x: Any, z: Any, scale: Any) -> Any:
    out, s = np.empty((x.shape[0], z.shape[0]), x.dtype), scale[()]
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            squares = 0.0
            for k in range(x.shape[1]):
                apart = (x[i, k] - z[j, k]) / s
                squares += apart * apart
            out[i, j] = np.exp(-0.5 * squares)
    return out


# --- a sum over a kernel: a density at points -------------------------------------------------------------------------


def density_data(rng: Numbers, points: int, others: int) -> tuple[Any, ...]:
    return np.array(0.4), rng.normal(size=points), rng.normal(size=others)


def density_exp(lib: Any, width: Any, x: Any, z: Any) -> Any:
    near = lib.np.exp(-0.5 * ((x[:, None] - z[None, :]) / width) ** 2)
    return lib.np.sum(lib.np.log(lib.np.mean(near, axis=1) / width))


def density_logsumexp(lib: Any, width: Any, x: Any, z: Any) -> Any:
    apart = (x[:, None] - z) / width
    return lib.np.sum(lib.special.logsumexp(-0.5 * apart * apart, axis=1) - lib.np.log(z.shape[0] * width))


def density_loops(width: Any, x: Any, z: Any) -> Any:
    total, w = 0.0, width[()]
    for i in range(x.shape[0]):
        near = 0.0
        for j in range(z.shape[0]):
            apart = (x[i] - z[j]) / w
            near += np.exp(-0.5 * apart * apart)
        total += np.log(near / z.shape[0] / w)
    return total


def density_slopes(width: Any, x: Any, z: Any) -> Any:
    total, w, to_width = 0.0, width[()], 0.0
    for i in range(x.shape[0]):
        near, far = 0.0, 0.0
        for j in range(z.shape[0]):
            apart = (x[i] - z[j]) / w
            each = np.exp(-0.5 * apart * apart)
            near += each
            far += each * apart * apart
        total += np.log(near / z.shape[0] / w)
        to_width += (far / near - 1) / w
    return total, to_width


# --- the nearest centre -----------------------------------------------------------------------------------------------


def nearest_data(rng: Numbers, points: int, centres: int, axes: int) -> tuple[Any, ...]:
    return rng.normal(size=(points, axes)), rng.normal(size=(centres, axes))


def nearest_broadcast(lib: Any, x: Any, centres: Any) -> Any:
    squares = lib.np.sum((x[:, None, :] - centres[None, :, :]) ** 2, axis=2)
    return lib.np.argmin(squares, axis=1), lib.np.min(squares, axis=1)


def nearest_columns(lib: Any, x: Any, centres: Any) -> Any:
    squares = ((x - centres[:, None]) ** 2).sum(axis=-1)
    return lib.np.argmin(squares, axis=0), squares.min(axis=0)


def nearest_taken(lib: Any, x: Any, centres: Any) -> Any:
    squares = lib.np.sum((x[:, None] - centres) ** 2, axis=-1)
    which = lib.np.argmin(squares, axis=1)
    return which, lib.np.take_along_axis(squares, which[:, None], axis=1)[:, 0]


def nearest_loops(x: Any, centres: Any) -> Any:
    which, least = np.empty(x.shape[0], np.int64), np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        best, place = np.inf, 0
        for c in range(centres.shape[0]):
            squares = 0.0
            for k in range(x.shape[1]):
                apart = x[i, k] - centres[c, k]
                squares += apart * apart
            if squares < best:
                best, place = squares, c
        which[i], least[i] = place, best
    return which, least


KINDS = (
    Kind(
        "bodies",
        {"bodies": (10, 800)},
        bodies_data,
        {"broadcast": bodies_broadcast, "einsum": bodies_einsum, "axes": bodies_axes},
        bodies_loops,
    ),
    Kind(
        "fluid",
        {"atoms": (10, 400), "axes": (2, 3)},
        fluid_data,
        {"sum": fluid_sum, "powers": fluid_powers},
        fluid_loops,
        fluid_slopes,
        wrt=(0,),
    ),
    Kind(
        "kernel",
        {"points": (10, 600), "others": (10, 600), "axes": (1, 10)},
        kernel_data,
        {"broadcast": kernel_broadcast, "scaled": kernel_scaled, "expanded": kernel_expanded},
        kernel_loops,
    ),
    Kind(
        "density",
        {"points": (10, 1000), "others": (10, 1000)},
        density_data,
        {"exp": density_exp, "logsumexp": density_logsumexp},
        density_loops,
        density_slopes,
        wrt=(0,),
    ),
    Kind(
        "nearest",
        {"points": (100, 20000), "centres": (2, 30), "axes": (1, 8)},
        nearest_data,
        {"broadcast": nearest_broadcast, "columns": nearest_columns, "taken": nearest_taken},
        nearest_loops,
        dtypes=("float64",),
    ),
)
