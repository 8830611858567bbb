"""Every function of floats, by every argument, at ordinary and at hard points: its derivative is that of differences,
never NaN where these are numbers; where there is none, asking is an error. Functions are found, not listed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy
import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import GradientError, NullTypeGradError
from graphc.ir.node import Node
from graphc.ops.elementwise import ROWS, elementwise
from graphc.tensor import nnet, special

HARD = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-3, 0.3, 3.7, -2.6, 30.0, -30.0]
MOST_ARGUMENTS = 4
POINTS = 90
STEP = 1e-5
CONSTANT = ("stop_gradient", "consider_constant", "disconnected_grad", "zero_grad")
"""Functions whose derivative is said to be 0."""
POLES: dict[str, Callable[..., Any]] = {
    "T.betaln, 2": lambda a, b: (a <= 0) | (b <= 0),
    "T.hyp2f1, 4": lambda a, b, c, x: c <= 0,
    "op floor_div, 2": lambda x, y: abs(y) < 0.01,
    "T.ceil_intdiv, 2": lambda x, y: abs(y) < 0.01,
    "nnet.celu, 2": lambda x, y: abs(y) < 0.01,
    "nnet.get_conv_shape_1axis, 4": lambda a, b, c, d: abs(d) < 0.01,
}
"""Where the parts of a derivative are infinite and cancel: it is NaN there; and where steps are too long."""


def candidates() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public functions and the rows of scalar ops, by name."""
    for name in sorted(ROWS):
        yield f"op {name}", lambda *args, name=name: elementwise(name, *args)
    for label, module in (("T", T), ("special", special), ("nnet", nnet), ("numpy", graphc.numpy)):
        for name in sorted(getattr(module, "__all__", None) or vars(module)):
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type) and not name.startswith("_"):
                yield f"{label}.{name}", value


def built(function: Callable[..., Any], args: list[Node]) -> Node | None:
    """What a function makes of vectors, where that is floats element by element."""
    try:
        made = function(*args)
    except Exception:  # it takes other arguments
        return None
    is_alike = isinstance(made, Node) and made.dtype == "float64" and made.ndim == 1
    return made if is_alike and not made.broadcastable[0] else None


@cache
def swept() -> dict[str, tuple[list[Node], Node]]:
    """The functions with their arguments and values, each function once for each number of arguments."""
    found: dict[str, tuple[list[Node], Node]] = {}
    seen = set()
    for name, function in candidates():
        for count in range(1, MOST_ARGUMENTS + 1):
            args = variables()[:count]
            value = built(function, args)
            is_constant = name.split(".")[-1] in CONSTANT or name.removeprefix("op ") in CONSTANT
            if (
                value is not None
                and not is_constant
                and value not in seen
                and value not in args
                and is_elementwise(value, args)
            ):
                seen.add(value)
                found[f"{name}, {count}"] = (args, value)
    return found


@cache
def variables() -> list[Node]:
    return [T.dvector(f"x{place}") for place in range(MOST_ARGUMENTS)]


def points(count: int) -> list[Any]:
    """All combinations of hard numbers, or some of them, and ordinary ones."""
    rng = np.random.default_rng(5)
    grid = np.array(list(itertools.product(HARD, repeat=count)))
    chosen = grid if len(grid) <= 2 * POINTS else rng.permutation(grid)[:POINTS]
    return list(np.concatenate([chosen, rng.uniform(0.1, 3.0, (20, count)), rng.uniform(-2.0, 2.0, (20, count))]).T)


def run(args: list[Node], outputs: list[Node], values: list[Any]) -> Any:
    f = graphc.function(args, outputs, mode="interpreted", on_unused_input="ignore")
    with np.errstate(all="ignore"):
        return f(*values)


def is_elementwise(value: Node, args: list[Node]) -> bool:
    """Whether elements of the result come of those at their place, and of nothing else."""
    given = [np.array([0.6, 0.3, 0.9]) + 0.01 * place for place in range(len(args))]
    try:
        (whole,) = run(args, [value], given)
        parts = [run(args, [value], [each[n : n + 1] for each in given])[0] for n in range(3)]
        (twice,) = run(args, [value], given)
        (all_points,) = run(args, [value], points(len(args)))
    except Exception:  # it takes other arguments
        return False
    same = np.array_equal(np.concatenate(parts), whole, equal_nan=True) and np.array_equal(whole, twice, equal_nan=True)
    return same and whole.shape == (3,) and all_points.shape == points(len(args))[0].shape


def by_differences(args: list[Node], value: Node, given: list[Any], place: int) -> tuple[Any, Any]:
    """Difference quotients in the middle, and whether they can be told to be derivatives."""
    quotients = []
    for size in (STEP, STEP / 2):
        step = size * np.maximum(1.0, abs(given[place]))
        moved = [[each + sign * step * (n == place) for n, each in enumerate(given)] for sign in (1, 0, -1)]
        above, here, below = (run(args, [value], each)[0] for each in moved)
        with np.errstate(all="ignore"):
            quotients.append([(above - below) / (2 * step), (above - here) / step, (here - below) / step])
    (wide, right, left), (narrow, *_) = quotients
    with np.errstate(all="ignore"):
        apart = np.maximum(abs(right - left), abs(wide - narrow))
        smooth = np.isfinite(here) & (apart <= 1e-2 * (1e-3 + abs(narrow))) & (abs(here) < 1e4)
        return narrow + (narrow - wide) / 3, smooth


def derivatives(args: list[Node], value: Node, cost: Node) -> list[Node | None]:
    """The derivatives of a cost, None where there is an error that says that there is none."""
    found: list[Node | None] = []
    told: list[tuple[Node, Exception]] = []
    for arg in args:
        try:
            found.append(grad(cost, arg, disconnected_inputs="ignore", null_gradients="raise"))
        except GradientError as error:
            found.append(None)
            told.append((arg, error))
    for arg, why in told:
        named = isinstance(why, NullTypeGradError) and arg.name is not None and arg.name in str(why)
        assert named or "has no derivative" in str(why)
    return found


@pytest.mark.slow
def test_many_functions_are_found() -> None:
    assert len(swept()) > 150
    names = " ".join(swept())
    for name in ("op sqrt", "betainc", "gammaincinv", "softplus", "clip", "arctan2", "logaddexp"):
        assert name in names


@pytest.mark.slow
def test_derivatives_are_those_of_differences_and_never_nan() -> None:
    wrong = []
    for name, (args, value) in swept().items():
        given = points(len(args))
        found = derivatives(args, value, value.sum())
        for place, derivative in enumerate(found):
            if derivative is None:
                continue
            (mine,) = run(args, [derivative], given)
            wanted, smooth = by_differences(args, value, given, place)
            smooth &= ~POLES[name](*given) if name in POLES else True
            bad = smooth & ~(abs(mine - wanted) <= 1e-5 + 1e-4 * abs(wanted))
            if bad.any():
                first = int(np.argmax(bad))
                wrong.append((name, place, [each[first] for each in given], mine[first], wanted[first]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.slow
def test_what_does_not_count_has_derivative_zero() -> None:
    weight = T.dvector("weight")
    wrong = []
    for name, (args, value) in swept().items():
        given = points(len(args))
        found = derivatives(args, value, (weight * value).sum())
        for place, derivative in enumerate(found):
            if derivative is None:
                continue
            values, mine = run([weight, *args], [value, derivative], [0.0 * given[0], *given])
            bad = (mine != 0) & np.isfinite(values)
            if bad.any():
                first = int(np.argmax(bad))
                wrong.append((name, place, [each[first] for each in given], mine[first], values[first]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.slow
def test_a_share_of_them_is_the_same_compiled() -> None:
    weight = T.dvector("weight")
    share = [each for n, each in enumerate(swept().values()) if n % 12 == 5 and len(each[0]) <= 2]
    costs = [(weight * value).sum() for _, value in share]
    outputs = [
        each
        for (args, value), cost in zip(share, costs, strict=True)
        for each in derivatives(args, value, cost)
        if each is not None
    ]
    given = [np.arange(len(points(2)[0])) % 3 - 1.0, *points(2)]
    inputs = [weight, *variables()[:2]]
    f = graphc.function(inputs, outputs, on_unused_input="ignore")
    for mine, wanted in zip(f(*given), run(inputs, outputs, given), strict=True):
        npt.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)
