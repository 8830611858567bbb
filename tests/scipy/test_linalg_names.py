"""`graphc.scipy.linalg`: SciPy's results and derivatives, with SciPy's arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from tests.support.numeric_slopes import numeric_slope

linalg: Any = importlib.import_module("graphc.scipy.linalg")

RNG = np.random.default_rng(5)
A, B, V, W = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4)), RNG.normal(size=4), RNG.normal(size=4)
WIDE = RNG.normal(size=(3, 4))
TALL = WIDE.T.copy()
POSITIVE = A @ A.T + 4 * np.eye(4)
SMALL = 0.3 * A
BANDS = np.array([[0, 1.0, 2.0, 1.0], [4.0, 5.0, 6.0, 5.0], [1.0, 1.0, 2.0, 0]])
HALF = np.array([[0, 1.0, 1.0, 1.0], [4.0, 5.0, 6.0, 5.0]])
STABLE = A / 4

Case = tuple[Callable[[Any, Any], Any], Any]


def signless(found: Any) -> Any:
    return tuple(abs(each) for each in found)


CASES: dict[str, Case] = {
    "block_diag": (lambda m, x: m.block_diag(x, B), A),
    "cho_factor": (lambda m, x: m.cho_factor(x, True, False, False)[0] * np.tri(4), POSITIVE),
    "cho_solve": (lambda m, x: m.cho_solve((x, True), V), np.linalg.cholesky(POSITIVE)),
    "cholesky": (lambda m, x: m.cholesky(x, check_finite=False), POSITIVE),
    "circulant": (lambda m, x: m.circulant(x), V),
    "companion": (lambda m, x: m.companion(x), V),
    "coshm": (lambda m, x: m.coshm(x), SMALL),
    "cosm": (lambda m, x: m.cosm(x), SMALL),
    "det": (lambda m, x: m.det(x, False), A),
    "diagsvd": (lambda m, x: m.diagsvd(x, 4, 6), V),
    "diagsvd 2": (lambda m, x: m.diagsvd(x, 6, 4), V),
    "eig": (lambda m, x: sorted_values(m.eig(x)[0].real), POSITIVE),
    "eigh": (lambda m, x: m.eigh(x, subset_by_index=[0, 2])[0], POSITIVE),
    "eigh 2": (lambda m, x: signless(m.eigh(x, POSITIVE, lower=False)), POSITIVE + A + A.T),
    "eigh_tridiagonal": (lambda m, x: signless(m.eigh_tridiagonal(x, V[:3])), W),
    "eigvals": (lambda m, x: sorted_values(m.eigvals(x).real), POSITIVE),
    "eigvalsh": (lambda m, x: m.eigvalsh(x, lower=False), POSITIVE),
    "eigvalsh_tridiagonal": (lambda m, x: m.eigvalsh_tridiagonal(V, x), W[:3]),
    "expm": (lambda m, x: m.expm(x), SMALL),
    "expm_frechet": (lambda m, x: m.expm_frechet(x, B), SMALL),
    "fiedler": (lambda m, x: m.fiedler(x), V),
    "hankel": (lambda m, x: m.hankel(x, W), np.concatenate([V[:3], W[:1]])),
    "inv": (lambda m, x: m.inv(x), A),
    "inv 2": (lambda m, x: m.inv(x, assume_a="pos"), POSITIVE),
    "khatri_rao": (lambda m, x: m.khatri_rao(x, B), WIDE),
    "kron": (lambda m, x: (np if m is scipy.linalg else m).kron(x, B), WIDE),
    "leslie": (lambda m, x: m.leslie(x, W[:3]), V),
    "logm": (lambda m, x: m.logm(x), POSITIVE),
    "lstsq": (lambda m, x: m.lstsq(x, V)[0], TALL),
    "lu": (lambda m, x: m.lu(x), A),
    "lu 2": (lambda m, x: m.lu(x, permute_l=True), A),
    "lu_factor": (lambda m, x: m.lu_factor(x), A),
    "lu_solve": (lambda m, x: m.lu_solve(m.lu_factor(x), V, 1), A),
    "matmul_toeplitz": (lambda m, x: m.matmul_toeplitz(x, W), V),
    "norm": (lambda m, x: m.norm(x, 1), A),
    "null_space": (lambda m, x: abs(m.null_space(x)), WIDE),
    "orth": (lambda m, x: abs(m.orth(x)), TALL),
    "orthogonal_procrustes": (lambda m, x: m.orthogonal_procrustes(x, B), A),
    "pinv": (lambda m, x: m.pinv(x, return_rank=True), WIDE),
    "pinvh": (lambda m, x: m.pinvh(x), POSITIVE),
    "polar": (lambda m, x: m.polar(x, "left"), A),
    "qr": (lambda m, x: signless(m.qr(x, mode="economic")), TALL),
    "qr 2": (lambda m, x: m.qr(x, pivoting=True)[2], A),
    "qr 3": (lambda m, x: abs(m.qr(x, mode="r")[0]), A),
    "rq": (lambda m, x: signless(m.rq(x)), A),
    "rq 2": (lambda m, x: signless(m.rq(x, mode="economic")), WIDE),
    "sinhm": (lambda m, x: m.sinhm(x), SMALL),
    "sinm": (lambda m, x: m.sinm(x), SMALL),
    "solve": (lambda m, x: m.solve(x, V, assume_a="pos"), POSITIVE),
    "solve 2": (lambda m, x: m.solve(x, V, transposed=True), A),
    "solve_banded": (lambda m, x: m.solve_banded((1, 1), x, V), BANDS),
    "solve_continuous_lyapunov": (lambda m, x: m.solve_continuous_lyapunov(x, B), A),
    "solve_discrete_lyapunov": (lambda m, x: m.solve_discrete_lyapunov(x, B), STABLE),
    "solve_lyapunov": (lambda m, x: m.solve_lyapunov(x, B), A),
    "solve_sylvester": (lambda m, x: m.solve_sylvester(x, POSITIVE, B), A),
    "solve_toeplitz": (lambda m, x: m.solve_toeplitz((x, W), V), np.array([4.0, 1.0, 0.5, 0.2])),
    "solve_triangular": (lambda m, x: m.solve_triangular(x, V, "T", True), np.tri(4) * POSITIVE),
    "solveh_banded": (lambda m, x: m.solveh_banded(x, V), HALF),
    "sqrtm": (lambda m, x: m.sqrtm(x), POSITIVE),
    "svd": (lambda m, x: signless(m.svd(x, False)), WIDE),
    "svdvals": (lambda m, x: m.svdvals(x), WIDE),
    "tanhm": (lambda m, x: m.tanhm(x), SMALL),
    "tanm": (lambda m, x: m.tanm(x), SMALL),
    "toeplitz": (lambda m, x: m.toeplitz(x, W), V),
}
"""Calls of functions, which a module and a tensor or an array are given, and the array."""


def sorted_values(x: Any) -> Any:
    return T.sort(x) if isinstance(x, graphc.Node) else np.sort(x)


def flat(found: Any) -> Any:
    """All elements of all results in one vector."""
    parts = found if isinstance(found, tuple) else (found,)
    if any(isinstance(each, graphc.Node) for each in parts):
        return T.concatenate([T.as_tensor(each).astype("float64").flatten() for each in parts])
    return np.concatenate([np.asarray(each, "float64").ravel() for each in parts])


def test_every_name_has_a_case() -> None:
    assert {name.split()[0] for name in CASES} == set(linalg.__all__)


@pytest.mark.slow
def test_values_and_derivatives() -> None:
    """All in one function; a weighted sum of the results is moved in one direction, against SciPy's differences."""
    inputs, given, outputs, wanted = [], [], [], []
    for name, (call, value) in CASES.items():
        x, s = T.tensor("float64", value.shape, name="x"), T.dscalar("s")
        direction = RNG.normal(size=value.shape)
        if name in ("cho_solve", "solve_triangular"):
            direction = np.tril(direction)
        if name in ("pinvh", "logm", "sqrtm", "eig", "eigvals", "inv 2", "solve", "cho_factor") or "eigh" in name:
            direction = direction if direction.ndim == 1 else direction + direction.T
        expected = flat(call(scipy.linalg, value))
        weights = RNG.normal(size=expected.size)
        found = flat(call(linalg, x + s * direction))
        cost = (found * weights).sum()
        inputs += [x, s]
        given += [value, 0.0]
        outputs += [found, graphc.grad(cost, s, disconnected_inputs="ignore")]

        def moved(
            shift: Any, call: Any = call, value: Any = value, direction: Any = direction, w: Any = weights
        ) -> Any:
            return (flat(call(scipy.linalg, value + shift * direction)) * w).sum()

        scale = np.abs(expected).max()
        slope, bound = numeric_slope(moved, [0.0], 0, units=1e4)
        wanted += [(name, expected, 1e-11 * scale), (f"{name}'s derivative", slope, bound + 1e-9 * scale)]
    values = graphc.function(inputs, outputs, mode="interpreted")(*given)
    wrong = [
        f"{label}: {found} for {value}, within {bound}"
        for found, (label, value, bound) in zip(values, wanted, strict=True)
        if not np.all(np.abs(found - value) <= bound)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_not_there_says_why() -> None:
    x = T.dmatrix("x")
    with pytest.raises(AttributeError, match="'graphc.scipy.linalg' has no attribute 'schur': nobody has written"):
        getattr(linalg, "schur")  # noqa: B009
    with pytest.raises(GraphcError, match="pinv of a tensor: atol=1.0 is not supported"):
        linalg.pinv(x, atol=1.0)
    with pytest.raises(GraphcError, match="there is no argument 'lowr'; is 'lower' meant"):
        linalg.cho_factor(x, lowr=True)
    assert linalg.inv(np.eye(2)).tolist() == np.eye(2).tolist()
    missing = [name for name in scipy.linalg.__all__ if not hasattr(linalg, name)]
    assert {"schur", "hadamard", "dft", "cossin"} <= set(missing)
