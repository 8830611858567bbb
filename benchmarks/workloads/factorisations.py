"""Factorisations: many small matrices, one of some size, and one in each step of a filter, with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- Cholesky ---------------------------------------------------------------------------------------------------------


def positive(rng: np.random.Generator, count: int, rows: int) -> Array:
    x: Array = rng.normal(size=(count, rows, rows))
    return x @ x.swapaxes(-1, -2) + rows * np.eye(rows)


def systems(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: systems, rows. Matrices and right sides."""
    return Data((positive(rng, *size), rng.normal(size=(*size, 1))))


def system(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: rows. A matrix and a right side."""
    return Data((positive(rng, 1, *size)[0], rng.normal(size=(*size, 1))))


def solve_numpy(library: Any, data: Data) -> Program:
    return Program(np.linalg.solve)


def solve_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    a, b = T.dtensor3("a"), T.dtensor3("b")
    return Program(library.function([a, b], T.linalg.cho_solve((T.linalg.cholesky(a), True), b)))


def solve_jax(library: Any, data: Data) -> Program:
    linalg = library.jax.scipy.linalg
    return Program(library.jit(lambda a, b: linalg.cho_solve((linalg.cholesky(a, lower=True), True), b)))


def solve_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    return Program(library.compile(lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a))))


def whiten_numpy(library: Any, data: Data) -> Program:
    def call(a: Array, b: Array) -> Any:
        factor = np.linalg.cholesky(a)
        return np.log(np.diagonal(factor)).sum(), np.linalg.solve(factor, b)

    return Program(call)


def whiten_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    a, b = T.dmatrix("a"), T.dmatrix("b")
    factor = T.linalg.cholesky(a)
    outputs = [T.log(T.diagonal(factor)).sum(), T.linalg.solve_triangular(factor, b, lower=True)]
    return Program(library.function([a, b], outputs))


def whiten_jax(library: Any, data: Data) -> Program:
    linalg, np_ = library.jax.scipy.linalg, library.numpy

    def call(a: Any, b: Any) -> Any:
        factor = linalg.cholesky(a, lower=True)
        return np_.log(np_.diagonal(factor)).sum(), linalg.solve_triangular(factor, b, lower=True)

    return Program(library.jit(call))


def whiten_torch(library: Any, data: Data) -> Program:
    torch = library.torch

    def call(a: Any, b: Any) -> Any:
        factor = torch.linalg.cholesky(a)
        return torch.log(torch.diagonal(factor)).sum(), torch.linalg.solve_triangular(factor, b, upper=False)

    return Program(library.compile(call))


# --- recursive least squares ------------------------------------------------------------------------------------------


def observations(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: steps, weights. Features, targets, how fast the past is forgotten, and what is known before."""
    steps, weights = size
    features = rng.normal(size=size)
    targets = features @ rng.normal(size=weights) + 0.1 * rng.normal(size=steps)
    return Data((features, targets, np.array(0.98), positive(rng, 1, weights)[0]))


def filter_numpy(library: Any, data: Data) -> Program:
    def call(features: Array, targets: Array, keep: Array, first: Array) -> Any:
        steps, weights = features.shape
        matrices, sides = [first], [np.zeros(weights, first.dtype)]
        found, errors = [], []
        for phi, target in zip(features, targets, strict=True):
            found.append(np.linalg.solve(matrices[-1], sides[-1]))
            errors.append(target - phi @ found[-1])
            matrices.append(keep * matrices[-1] + np.outer(phi, phi))
            sides.append(keep * sides[-1] + target * phi)
        of_matrix, of_side = np.zeros_like(first), np.zeros(weights, first.dtype)
        of_keep = 0.0 * keep
        for t in reversed(range(steps)):
            of_keep = of_keep + (of_matrix * matrices[t]).sum() + of_side @ sides[t]
            pull = np.linalg.solve(matrices[t].T, -2 * errors[t] * features[t])
            of_side = keep * of_side + pull
            of_matrix = keep * of_matrix - np.outer(pull, found[t])
        return np.square(errors).sum(), of_keep, of_matrix

    return Program(call)


def filter_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    features, targets, keep, first = T.dmatrix("features"), T.dvector("targets"), T.dscalar("keep"), T.dmatrix("first")

    def step(phi: Any, target: Any, matrix: Any, side: Any, keep: Any) -> Any:
        error = target - T.dot(phi, T.linalg.solve(matrix, side))
        return [keep * matrix + T.outer(phi, phi), keep * side + target * phi, error * error]

    starts = [first, T.zeros((data.arguments[0].shape[1],)), None]
    *_, squares = library.scan(step, sequences=[features, targets], outputs_info=starts, non_sequences=[keep])
    cost = squares.sum()
    inputs = [features, targets, keep, first]
    return Program(library.function(inputs, [cost, *library.grad(cost, [keep, first])]))


def filter_jax(library: Any, data: Data) -> Program:
    np_ = library.numpy

    def cost(keep: Any, first: Any, features: Any, targets: Any) -> Any:
        def step(state: Any, given: Any) -> Any:
            (matrix, side), (phi, target) = state, given
            error = target - phi @ np_.linalg.solve(matrix, side)
            return (keep * matrix + np_.outer(phi, phi), keep * side + target * phi), error * error

        return library.jax.lax.scan(step, (first, np_.zeros(first.shape[0])), (features, targets))[1].sum()

    def call(features: Any, targets: Any, keep: Any, first: Any) -> Any:
        value, gradients = library.jax.value_and_grad(cost, (0, 1))(keep, first, features, targets)
        return value, *gradients

    return Program(library.jit(call))


def filter_torch(library: Any, data: Data) -> Program:
    torch = library.torch

    def step(matrix: Any, side: Any, phi: Any, target: Any, keep: Any) -> Any:
        error = target - phi @ torch.linalg.solve(matrix, side)
        return keep * matrix + torch.outer(phi, phi), keep * side + target * phi, error * error

    step = library.compile(step)

    def call(features: Any, targets: Any, *given: Any) -> Any:
        keep, first = (x.requires_grad_() for x in given)
        matrix, side = first, torch.zeros(len(first), dtype=first.dtype)
        cost = torch.zeros((), dtype=first.dtype)
        for phi, target in zip(features, targets, strict=True):
            matrix, side, square = step(matrix, side, phi, target, keep)
            cost = cost + square
        return cost.detach(), *torch.autograd.grad(cost, (keep, first))

    return Program(call)


WORKLOADS = (
    Workload(
        "cholesky-solves",
        "10,000 systems of 4 equations by Cholesky's factors, float64",
        systems,
        (10_000, 4),
        (7, 3),
        {"numpy": solve_numpy, "symbolic": solve_symbolic, "jax": solve_jax, "torch": solve_torch},
    ),
    Workload(
        "cholesky-200",
        "logarithm of the determinant and one triangular system by Cholesky's factor of 200 rows, float64",
        system,
        (200,),
        (20,),
        {"numpy": whiten_numpy, "symbolic": whiten_symbolic, "jax": whiten_jax, "torch": whiten_torch},
    ),
    Workload(
        "least-squares-gradient",
        "recursive least squares, 6 weights solved for in each of 500 steps, with gradient, float64",
        observations,
        (500, 6),
        (9, 3),
        {"numpy": filter_numpy, "symbolic": filter_symbolic, "jax": filter_jax, "torch": filter_torch},
    ),
)
