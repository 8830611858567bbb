"""Arrays that a function changes in place: as in NumPy where nothing but one name sees them, else refused."""
# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc.errors import GraphcError, GraphTypeError, RankError, ShapeError

OPERATORS = "+ - * / ** // % @ & | ^ << >>".split()


def function_of(text: str, xp: Any) -> Any:
    scope: dict[str, Any] = {"np": np, "xp": xp}
    body = text.replace("; ", "\n    ").replace(": > ", ":\n        ")
    exec(compile(f"def f(x, w):\n    {body}", "changed.py", "exec"), scope)
    return scope["f"]


def traced(text: str) -> Any:
    return graphc.jit(function_of(text, jnp), mode="interpreted")


X, W = np.linspace(-1.0, 2.0, 9).reshape(3, 3), np.array([0.5, 2.0, -1.0])

ANSWERED = """
t = xp.zeros_like(x); for k in range(3): > t += x * k; return t | h = x @ w; h += w; return h | a = x * w; a -= x; return a
a = xp.zeros((3, 3)); b = xp.zeros((3, 3)); a += 1; b += x; return a, b | e = xp.exp(x - x.max()); e /= e.sum(); return e
a = x * 2; s = a.sum(axis=0); a += 1; return a, s | a = x + 1; a *= a; return a | a = x[[0, 2]]; a += 1; return a
a = x.astype('float32'); a += x; a -= np.float64(0.1); return a | m = x > 0; m &= x < 1; m |= x == 2; return m
a = xp.arange(3); a += np.int8(2); a **= 2; return a | a = np.exp(x); a += 1; return a | a = xp.where(x > 0, x, 0); a -= w; return a
a = x.sum(axis=0); a /= 3; return a | a = xp.full((2, 3), 0.5); a += w; return a | a = x * 1; b = lambda: a; a += 1; return b()
a = xp.stack([w, w]); b = a.mean(axis=1); a *= 2; a -= b[:, None]; return a, b | a = abs(x); a @= x; return a
"""


@pytest.mark.parametrize("text", [each.strip() for each in ANSWERED.strip().replace("\n", " | ").split(" | ")])
def test_an_array_that_one_name_sees_is_changed(text: str) -> None:
    with np.errstate(all="ignore"):
        wanted = function_of(text, np)(X.copy(), W.copy())
    found = traced(text)(X, W)
    for got, want in zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]:
        npt.assert_allclose(got, want, rtol=1e-6 if want.dtype == "float32" else 1e-14)
        assert got.dtype == want.dtype and got.shape == want.shape


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "bool"])
def test_every_operator_keeps_the_dtype_or_is_refused_as_in_numpy(dtype: str) -> None:
    for symbol in OPERATORS:
        for other in (
            "np.full((3, 3), 2, 'int64')",
            "np.full((3, 3), 2.0)",
            "np.ones((3, 3), 'uint8')",
            "2",
            "1.5",
            "True",
        ):
            text = f"a = xp.abs(x).astype('{dtype}'); a {symbol}= {other}; return a"
            try:
                with np.errstate(all="ignore"):
                    wanted = function_of(text, np)(X, W)
            except (TypeError, ValueError):
                with pytest.raises(GraphcError, match=r"changed\.py:\d+"):
                    traced(text)(X, W)
                continue
            found = traced(text)(X, W)
            npt.assert_allclose(found, wanted, rtol=1e-6, err_msg=text)
            assert found.dtype == wanted.dtype, text


SEEN = """
x += 1 | b = x; b += 1 | a = x * 2; b = a; a += 1 | a = x * 2; b = a[0]; a += 1 | a = x[0]; a += 1 | a = xp.exp(x).T; a += 1
a = x * 2; b = [a]; a += 1 | a = x * 2; b = lambda q=a: q; a += 1 | d = {'k': x * 2}; d['k'] += 1 | a = x * 2; b = a.T; a += 1
a = xp.zeros((3, 3)); b = a[0]; a += 1 | p = x * 2; a = xp.stack([p, p]); r = a[0]; a += 1 | a = xp.zeros((2, 2)); b, c = a; a += 1
p = x * 2; a = xp.stack([p, x]); r = a[0]; del p; r += 1 | a = xp.zeros((2, 2)); for b in a: > b += 1 | a = xp.broadcast_to(w, (3, 3)); a += 1
a = x * 2; b = xp.reshape(a, 9); a += 1 | a = x * 2; b = xp.asarray(a); a += 1 | a = x * 2; b = xp.einsum('ij->ji', a); a += 1
a = x * 2; b = np.transpose(a); a += 1 | a = x * 2; b = a.real; a += 1 | a = x * 2; b = a.conj(); a += 1
import operator; a = x * 2; b = operator.iadd(a, 1) | a = x[0]; a + 0; a += 1 | a = x * 2; for b in [a]: > b += 1 | a = x * 2; b = (q for q in [a]); a += 1
a = x * 2; b = xp.squeeze(a); a += 1 | a = x * 2; b = a.reshape(9); del b; a += 1 | a = xp.diagonal(x); a += 1 | a = xp.split(x * 2, 1)[0]; a += 1
"""


@pytest.mark.parametrize("text", [each.strip() for each in SEEN.strip().replace("\n", " | ").split(" | ")])
def test_an_array_that_may_be_seen_otherwise_is_not_changed(text: str) -> None:
    with pytest.raises(GraphTypeError, match=r"writes to an array.*one local name holds.*changed\.py:\d+"):
        traced(f"{text}; return x")(X, W)


def test_what_is_added_broadcasts_to_the_array_alone() -> None:
    with pytest.raises(RankError, match=r"keeps its shape.*changed\.py:\d+"):
        traced("a = w * 2; a += x; return a")(X, W)
    with pytest.raises(ShapeError, match=r"keeps its 1.*changed\.py:\d+"):
        traced("a = xp.zeros((1, 3)); a += np.ones((2, 3)); return a")(X, W)
    rows = traced("a = xp.zeros((1, 3)); a += x; return a")
    npt.assert_array_equal(rows(X[:1], W), X[:1])
    with pytest.raises(ShapeError, match="keeps its 1"):
        rows(X, W)
    with pytest.raises(ShapeError):
        traced("a = x * 2; a @= xp.ones((3, 2)); return a")(X, W)
    with pytest.raises(RankError, match="keeps its shape"):
        traced("a = x * 2; a @= w; return a")(X, W)


def test_names_in_an_enclosing_function_are_not_changed() -> None:
    text = "a = x * 2; def g(): > nonlocal a;     a += 1; g(); return a"
    with pytest.raises(GraphTypeError, match=r"changed\.py:\d+"):
        traced(text)(X, W)


def test_derivatives_go_through_what_is_changed() -> None:
    def loss(x: Any) -> Any:
        total = jnp.zeros_like(x)
        for power in range(1, 4):
            total += x**power
        total *= total
        return total.sum()

    x = np.array([0.5, -2.0])
    total, slope = x + x**2 + x**3, 1 + 2 * x + 3 * x**2
    with graphc.options.change(mode="interpreted"):
        npt.assert_allclose(graphc.grad(loss)(x), 2 * total * slope, rtol=1e-14)
        npt.assert_allclose(graphc.vmap(loss)(np.stack([x, x])), [total @ total] * 2, rtol=1e-14)
