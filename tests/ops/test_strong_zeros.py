"""A cotangent that is 0 meets a derivative that is infinite: 0, of first and second order, backwards and forwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc.autodiff import grad, jvp
from graphc.ir.facts import is_never_zero, is_positive
from graphc.ir.walk import nodes_of
from graphc.ops.elementwise import elementwise

UNARY: dict[str, list[Any]] = {
    "sqrt": [0.0], "cbrt": [0.0], "log": [0.0], "log2": [0.0], "log10": [0.0], "log1p": [-1.0], "reciprocal": [0.0],
    "arcsin": [1.0, -1.0], "arccos": [1.0, -1.0], "arccosh": [1.0], "arctanh": [1.0, -1.0], "gammaln": [0.0, -1.0],
    "digamma": [0.0], "trigamma": [0.0],
}  # fmt: skip
BINARY: dict[str, list[Any]] = {
    "true_div": [(1.0, 0.0), (0.0, 0.0)], "pow": [(0.0, 0.5), (0.0, -1.0), (0.0, 0.0)], "arctan2": [(0.0, 0.0)],
    "xlogy": [(0.0, 0.0), (1.0, 0.0)], "xlog1py": [(1.0, -1.0)], "mod": [(1.0, 0.0)], "fmod": [(1.0, 0.0)],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_poles_that_do_not_count_have_derivative_zero(mode: str) -> None:
    """The first element counts, the second, at the pole, does not; the direction of forward products is 0 there."""
    s, t = T.dvector("s"), T.dvector("t")
    inputs, outputs, values = [s, t], [], []
    for name, poles in [*UNARY.items(), *BINARY.items()]:
        for pole in poles:
            at = np.atleast_1d(np.array(pole))
            xs = [T.dvector() for _ in at]
            value = elementwise(name, *xs)
            first = grad(value[0], xs)
            second = grad(
                sum((g * d).sum() for g, d in zip(first, (s, t), strict=False)), xs, disconnected_inputs="ignore"
            )
            inputs += xs
            outputs += [*first, jvp(value, xs, [s, t][: len(xs)]), *second]
            values += [np.array([1.3 if name == "arccosh" else 0.3, each]) for each in at]
    found = graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")([1.0, 0.0], [1.0, 0.0], *values)
    for each in found:
        assert each[1] == 0.0
        assert np.isfinite(each[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_examples(dtype: str) -> None:
    v, a = T.vector("v", dtype=dtype), T.scalar("a", dtype=dtype)
    m = np.array([[4.0, 9.0], [0.0, 0.0]], dtype)

    def at(cost: Any, variable: Any, value: Any) -> Any:
        return graphc.function([variable], grad(cost, variable), mode="interpreted")(np.asarray(value, dtype))

    npt.assert_array_equal(at(T.linalg.norm(v) ** 2, v, np.zeros(3)), 0.0)
    npt.assert_array_equal(at(T.sqrt(v)[0], v, [4.0, 0.0]), [0.25, 0.0])
    npt.assert_array_equal(at(T.sqrt(a * m)[0, 0], a, 1.0), 1.0)
    npt.assert_array_equal(at((T.log(v) * T.gt(v, 0)).sum(), v, [2.0, 0.0]), [0.5, 0.0])
    batched = graphc.vmap(graphc.grad(lambda x: T.sqrt(x)[0]))
    npt.assert_array_equal(batched(np.array([[4.0, 0.0], [1.0, 0.0]])), [[0.25, 0.0], [0.5, 0.0]])


def test_values_keep_their_meaning_and_products_by_infinite_values_too() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    f = graphc.function([x, y], [x * y, grad((x * y)[0], x)], mode="interpreted")
    value, slope = f([0.0, 0.0], [np.inf, np.inf])
    assert np.isnan(value).all()
    npt.assert_array_equal(slope, [np.inf, np.nan])


def test_third_derivatives_where_a_cotangent_vanishes() -> None:
    """The cotangent is 0 at the point, its derivatives are not."""
    x = T.dscalar("x")
    d: Any = T.log(x) ** 2
    for _ in range(3):
        d = grad(d, x)
    assert graphc.function([x], d, mode="interpreted")(1.0) == pytest.approx(-6.0)


def test_products_are_plain_where_no_cotangent_is_zero() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    plain = [
        T.log(x).sum(), T.sqrt(x).mean(), -0.5 * T.log(x).sum(), (y * T.log(T.exp(x) + 1)).sum(),
        (y / (1 + x**2)).sum(), (y * T.sqrt(T.var(x) + 1e-5)).sum(),
        (y * T.log(1 - T.sigmoid(x))).sum(), (y * x**3).sum(),
    ]  # fmt: skip
    for cost in plain:
        assert not any(node.op.name == "strong_mul" for node in nodes_of([grad(cost, x)]))
    assert any(node.op.name == "strong_mul" for node in nodes_of([grad((y * T.log(x)).sum(), x)]))


def test_signs() -> None:
    x = T.dvector("x")
    for node in (T.exp(x), 1 + x**2, T.maximum(x, 0.1), T.exp(x).sum(), T.sigmoid(x), 1 - T.sigmoid(x), abs(x) + 1):
        assert is_positive(node)
    for node in (x, x + 1, abs(x), x**2, T.exp(x) - 1, T.minimum(x, 1.0), T.log(x), 1 - T.exp(x)):
        assert not is_positive(node)
    assert is_never_zero(-(T.ones_like(x) * -0.5) / x.shape[0])
    for node in (x, T.ones_like(x) * 0.0, T.ones_like(x) * np.inf, T.ones_like(x) / x):
        assert not is_never_zero(node)
