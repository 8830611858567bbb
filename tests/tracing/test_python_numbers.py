"""Python's numbers and lists among the operands of a traced function: NumPy's dtypes, values and errors."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from numpy.lib.stride_tricks import as_strided

import graphc
import graphc.numpy as jnp

U, F = np.array([1, 2, 3], "uint8"), np.array([1, 2, 3], "float32")
MASK = np.array([True, False, True])


def of(text: str) -> Callable[..., Any]:
    """A function of u, f and n: an expression, or a statement that changes `a`, a copy of u."""
    body = f"a = u.copy(); {text}; return a" if re.search(r"\ba\b", text) else f"return {text}"
    scope: dict[str, Any] = {"np": np, "MASK": MASK}
    exec(compile(f"def traced(u, f, n): {body}", "numbers.py", "exec"), scope)
    return scope["traced"]


SAME = """
np.where(MASK, u, -1)|np.where(MASK, 300, u)|np.where(MASK, u, n)|np.where(MASK, u, u.shape[0] * 100)
np.where(MASK, u, [-1, 2, 3])|np.where(MASK, u, 1.5)|np.select([u > 1], [u], -1)|np.choose([0, 1, 0], [u, -1])
u + [1, 2, 3]|np.maximum(u, [1, 2, 300])|f * [0.5, 1, 2]|f * [1, 2, 3]|u * [True, False, True]|u < 300|u == -1
np.clip(u, -1, 300)|np.pad(u, 1, constant_values=300)|np.append(u, -1)|np.array([u[0], -1])
"""
"""NumPy's values and dtypes; `where` and its kin wrap Python's integers."""

REFUSED = """
u + 300|u + n|np.full_like(u, 300)|np.full_like(u, n)|np.full(3, u.shape[0] * 100, "uint8")|np.insert(u, 1, -1)
np.piecewise(u, [u > 1], [-1, 3])|a[0] = -1|a[0] = n|a[0] = u.shape[0] * 100|a[:] = [1, 2, 300]|a.fill(300)
np.put(a, 0, 300)|np.putmask(a, a > 1, 300)|np.place(a, a > 1, [300])|np.copyto(a, 300)|a += 300
"""
"""Integers that uint8 cannot hold, which NumPy refuses."""


def test_pythons_numbers_and_lists_have_numpys_dtypes() -> None:
    for text in SAME.replace("\n", "|").strip("|").split("|"):
        wanted = of(text)(U, F, 300)
        found = graphc.jit(of(text), mode="interpreted")(U, F, 300)
        npt.assert_array_equal(found, wanted, text)
        assert found.dtype == wanted.dtype, text


def test_integers_that_the_dtype_cannot_hold_are_refused_with_the_line() -> None:
    for text in REFUSED.replace("\n", "|").strip("|").split("|"):
        with pytest.raises(OverflowError):
            of(text)(U, F, 300)
        with pytest.raises((OverflowError, ValueError), match=r"out of bounds for uint8|numbers\.py:1") as caught:
            graphc.jit(of(text), mode="interpreted")(U, F, 300)
        assert "numbers.py:1" in str(caught.value) and "out of bounds for uint8" in str(caught.value), text


def test_changed_copies_refuse_integers_that_the_dtype_cannot_hold() -> None:
    for change in ("set", "add", "multiply", "max"):
        with pytest.raises(OverflowError, match="300 is out of bounds for uint8"):
            graphc.jit(lambda u, c=change: getattr(u.at[:2], c)(300), mode="interpreted")(U)


def test_where_of_python_numbers_compiled() -> None:
    both = graphc.jit(lambda mask, u, n: (jnp.where(mask, u, -1), jnp.where(mask, n, u), np.add(u, [1, 2, 300])))
    for found, wanted in zip(both(MASK, U, 300), ([1, 255, 3], [44, 2, 44], [2, 4, 303]), strict=True):
        npt.assert_array_equal(found, wanted)


def test_bits_of_a_bool() -> None:
    for value in (True, False):
        found: Any = graphc.jit(operator.invert)(value)
        assert (found, found.dtype) == (~int(value), "int64")


ATTRIBUTES = ("n * 2 if n.shape == () else n", "n * 2 if not n.shape else n", "n * 2 if n.dtype == np.float64 else n")


def test_a_number_of_pythons_has_the_shape_and_dtype_of_an_array_without_axes() -> None:
    for text in ATTRIBUTES:
        function = of(text)
        assert graphc.jit(function, mode="interpreted")(U, F, 3.0) == 6, text
        assert graphc.grad(function, 2)(U, F, 3.0) == 2, text
    assert graphc.jit(of(ATTRIBUTES[2]), mode="interpreted")(U, F, 3) == 3


APART: dict[str, Any] = {}
exec(compile("def kind(x): return x if type(2.0) is float else -x", "apart.py", "exec"), APART)
"""A module that tells `float` from what stands for it."""

CONVERTED: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: float(x.mean()), U),
    (lambda x: {"mean": float(x.mean()), "place": int(np.argmax(x)), "whole": int(-1.5 * x[2])}, F),
    (lambda x: float(x[0]) * x, F),  # a Python number takes the array's dtype
    (lambda x: int(x[0]) * x, U),
    (lambda x: np.array([float(each) for each in x], dtype=float).astype(int), F),
    (lambda x: x[int(x[0]) :][: int(x.shape[0] / 2)], F),
    (
        lambda x: (
            isinstance(x[0], float),
            isinstance(x[0], int),
            isinstance(1.0, float),
            type(operator.add(1, 1)) in (int, str),
        ),
        F,
    ),
    (lambda x: sum(map(float, x)) + float.fromhex("0x1p1") + int("12"), F),
    (lambda x: x * np.issubdtype(x.dtype, float) + np.finfo(float).eps + np.iinfo(int).max, F),
    (lambda x: -float(x), np.float32(0)),
    (lambda x: int(x) + float(x), 2.5),
    (APART["kind"], 2.5),
]


@pytest.mark.parametrize(("function", "value"), CONVERTED)
def test_numbers_are_converted(function: Callable[..., Any], value: Any) -> None:
    wanted, found = function(value), graphc.jit(function, mode="interpreted")(value)
    assert type(found) is type(wanted) or not isinstance(wanted, (dict, tuple))
    pairs = [(wanted, found)]
    if isinstance(wanted, (dict, tuple)):
        pairs = [(wanted[key], found[key]) for key in (wanted if isinstance(wanted, dict) else range(len(wanted)))]
    for want, got in pairs:
        assert np.asarray(got).dtype == np.asarray(want).dtype
        npt.assert_array_equal(got, want)
        npt.assert_array_equal(np.signbit(got), np.signbit(want))
    assert "float" not in globals() and "int" not in globals()


def test_conversions_have_derivatives_and_bounds() -> None:
    assert graphc.grad(lambda x: float(x) * x)(2.0) == 4.0
    assert graphc.grad(lambda x: int(x) * x)(2.5) == 2.0
    with pytest.raises(graphc.errors.GraphValueError, match=r"int\(x\) is no whole number of 64 bits"):
        graphc.jit(lambda x: int(x) + 1, mode="interpreted")(np.nan)


def windows(a: Any, width: int) -> Any:
    shape = (*a.shape[:-1], a.shape[-1] - width + 1, width)
    return np.lib.stride_tricks.as_strided(a, shape=shape, strides=(*a.strides, a.strides[-1]))


STRIDED: list[Callable[..., Any]] = [
    lambda m: windows(m, 3).mean(-1),
    lambda m: windows(m.T, 2),
    lambda m: windows(m[::2, ::-1], 2),
    lambda m: as_strided(m, (2, 2, 2, 3), (2 * m.strides[0], 3 * m.strides[1], *m.strides)),
    lambda m: as_strided(m, (min(m.shape),), (sum(m.strides),)),
    lambda m: as_strided(m[0], (4, m.shape[1]), (0, m[0].strides[0])).sum(0),
    lambda m: as_strided(m[0], (2, 3), m[0].strides * 2) if m.ndim == 3 else m,
]


@pytest.mark.parametrize("function", STRIDED)
def test_strides_are_steps_along_axes(function: Callable[..., Any]) -> None:
    m = np.arange(30.0).reshape(5, 6)
    compiled = graphc.jit(function, mode="interpreted")
    for value in (m, m[:4].astype("float32"), np.asfortranarray(m)):
        npt.assert_array_equal(compiled(value), function(value))
