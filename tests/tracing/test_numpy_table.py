"""NumPy's functions and methods in the lines of `numpy_lines.txt`: traced functions give the values, dtypes and shapes
that NumPy gives, by `np.` and by `jnp.`, and the derivatives of its values.

A line is an expression of arrays, or after "!" the body of a function that writes to arrays of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc import tree

LINES = (Path(__file__).parent / "numpy_lines.txt").read_text("utf-8").splitlines()


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(3, 4)), "v": rng.normal(size=5), "w": np.abs(rng.normal(size=5)) + 0.1,
        "f": rng.normal(size=(3, 4)).astype("f4"), "i": rng.integers(-5, 9, (3, 4)),
        "u": rng.integers(0, 9, 6).astype(np.uint8), "b": rng.random((3, 4)) > 0.5,
        "n": np.where(rng.random((3, 4)) > 0.7, np.nan, rng.normal(size=(3, 4))), "s": np.sort(rng.normal(size=6)),
        "m": rng.normal(size=(3, 3)) + 3 * np.eye(3), "t": rng.normal(size=(2, 3, 4)), "k": np.array([2, 0, 1]),
        "h": np.array([1, 0, 1, 1], bool), "c": np.array([4, 1, 1, 3, 0]),
    }  # fmt: skip


NAMES = ", ".join(arrays())


def functions(xp: Any) -> list[Callable[..., Any]]:
    """The lines as functions of the arrays."""
    made = []
    for line in LINES:
        body = line[1:] if line[0] == "!" else f"return {line}"
        scope: dict[str, Any] = {"np": xp}
        exec(f"def f({NAMES}): {body}", scope)
        made.append(scope["f"])
    return made


def containers(value: Any) -> Any:
    """The lists and tuples of a result, one within the other."""
    return [isinstance(value, list), *map(containers, value)] if isinstance(value, tuple | list) else None


def leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in leaves(each)]
    return [np.asarray(value)]


def by_numpy(given: dict[str, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        return [f(**{name: each.copy() for name, each in given.items()}) for f in functions(np)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("xp", [np, jnp], ids=["np", "jnp"])
def test_values(xp: Any) -> None:
    ours = functions(xp)
    found = graphc.jit(lambda given: [f(**given) for f in ours], mode="interpreted")(arrays())
    for line, wanted, got in zip(LINES, by_numpy(arrays()), found, strict=True):
        assert containers(got) == containers(wanted), line
        for a, b in zip(leaves(wanted), leaves(got), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), line
            # Sums of a dozen numbers in another order, and factors of matrices whose condition is below a thousand.
            rtol, atol = (0, 0) if a.dtype.kind != "f" else (1e-9, 1e-11) if a.dtype == "f8" else (1e-5, 1e-6)
            np.testing.assert_allclose(b, a, rtol, atol, equal_nan=True, err_msg=line)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_derivatives() -> None:
    given, rng, ours = arrays(), np.random.default_rng(1), functions(np)
    along = {name: rng.normal(size=given[name].shape) for name in "xvwsmt"}
    others = {name: each for name, each in given.items() if name not in along}

    def slopes(floats: Any, others: Any, along: Any) -> Any:
        return graphc.jvp(lambda floats: [tree.leaves(f(**floats, **others)) for f in ours], (floats,), (along,))[1]

    found = graphc.jit(slopes, mode="interpreted")({name: given[name] for name in along}, others, along)
    step = 1e-5
    before, after = (
        by_numpy({**given, **{name: given[name] + sign * step * along[name] for name in along}}) for sign in (-1, 1)
    )
    for line, low, high, got in zip(LINES, before, after, found, strict=True):
        for a, b, slope in zip(leaves(low), leaves(high), got, strict=True):
            if a.dtype != "f8":
                continue
            wanted = (b - a) / (2 * step)
            # Its error is step**2 times a third derivative, and the rounding of values over the step.
            bound = 1e-6 * (1 + np.abs(wanted) + np.abs(a))
            assert np.all((np.abs(slope - wanted) < bound) | np.isnan(wanted)), (line, slope, wanted)
