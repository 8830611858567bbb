"""Programs as notebooks and textbooks have them: NumPy's text, unchanged, compiled."""
# ruff: noqa: E501, NPY002 - programs as people write them

from __future__ import annotations

import math
import os
import random
import secrets
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import log10  # noqa: F401 - for PROGRAMS
from os import urandom
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from numpy.random import rand
from scipy.integrate import odeint

import graphc
import graphc.scipy.integrate
from graphc.errors import GraphTypeError, GraphValueError
from graphc.trees import leaves

SQUARE = np.vectorize(lambda a: a * a)


@np.vectorize
def larger(a: Any, b: Any = 1) -> Any:
    return np.where(a > b, a, b)


PROGRAMS = """
np.c_[x, x], np.c_[x[0], x[0][::-1]], np.c_[np.ones(len(x)), x, x**2], np.c_[x[0], np.arange(x.shape[1])], np.c_[x[:, 0], 1:len(x) + 1]
np.r_[w, 1], np.r_[w, 1.5], np.r_[1, w[0]], np.r_[w[0], w[1]], np.r_[True, w > 0], np.r_[[w[0], 2], w], np.r_[w[:2], np.zeros(2, "f4")], np.r_[x, x]
np.r_["0,2", w, w], np.r_["0,2,0", w, w], np.r_["1,2,0", w, w], np.r_["-1", x, x], np.r_["1", x, x], np.r_["0,3", x, x]
np.r_[0 : len(w)], np.r_[0 : len(w), len(w)], np.r_[0:1:5j, w], w[np.r_[0:2, len(w) - 1]], np.r_[-1:1:0.5, w], np.r_[w[::2], 0:3]
np.vectorize(lambda a, b: a * b + 1)(x, 2), np.vectorize(lambda a: (a, 2 * a))(x), SQUARE(x), larger(x), larger(x, 0), np.vectorize(lambda a: 0.0)(w)
np.vectorize(lambda a, b: a * b)(x, w), np.vectorize(lambda a, b: a - b)(x[:, 0][:, None], w), np.vectorize(math.exp)(w), np.vectorize(math.atan2)(w, x), np.vectorize(lambda a: a + 1, otypes=[float])(x)
np.vectorize(lambda k: w[int(k)] * 2)(np.arange(3)), np.vectorize(lambda k: 2 * k)(np.zeros(3)), np.vectorize(lambda k: 2 * k)([w[0], w[1]])
np.apply_along_axis(np.sum, 1, x), np.apply_along_axis(lambda r: r - r.mean(), 0, x), np.apply_along_axis(lambda r, k: r[0] * k, -1, x, 3), np.apply_along_axis(np.sort, 1, x)
np.apply_along_axis(lambda r: np.outer(r, r), 0, x), np.apply_along_axis(np.cumsum, 0, x), np.apply_along_axis(lambda r: 1.0, 0, x), np.apply_along_axis(np.argmax, 0, w)
np.array([sum(k) * e for k, e in np.ndenumerate(x)]), [k for k, _ in np.ndenumerate(x)], sum(e for _, e in np.ndenumerate(w))
np.fromiter((r.sum() for r in x), float), np.fromiter((k for k in range(3)), int), np.fromiter((w[0] * k for k in range(5)), "f4", 3)
np.min([w[0], w[1]]), np.max([w[0], 1]), np.mean([w, w]), np.std([w[0], w[2]]), np.argmax([w[0], w[1]]), np.median([w[0], w[1], w[2]]), np.max([w, w + 1], axis=0)
np.dot([w[0], w[1]], [1, 2]), np.cumsum([w[0], 1]), np.sort([w[1], w[0]]), np.any([w[0] > 0, w[1] > 0]), np.average([w[0], w[1]], weights=[1, 3]), np.diff([w[0], w[1], 3])
np.where([w[0] > 0, True], 1, 2), np.reshape([w[0], 1], (2, 1)), np.tile([w[0], w[1]], 2), np.diag([w[0], 1]), np.outer([w[0], 1], [w[1], 2]), np.round([w[0], 1.5])
np.linalg.norm([w[0], w[1]]), np.linalg.det([[w[0], 1.0], [2.0, w[1]]]), np.linalg.solve([[3.0, 1.0], [2.0, w[1] ** 2 + 5]], [1.0, w[0]])
np.array([w[0], 1]), np.array([[w[0], 1], [2, 3]]), np.array([w[0], 1.0]), np.asarray([w, w]), w + [w[0], *w[1:] * 0], np.array([True, w[0] > 0])
np.lib.stride_tricks.sliding_window_view(x, (2, 2)), np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1).max(axis=-1), np.lib.stride_tricks.sliding_window_view(w, 2)
x[:, :1] * w, x[:, :1] - x, np.maximum(x[:, -1:], x[:1]), np.where(x[:1] > 0, x, x[:, :1]), *np.broadcast_arrays(x[:, :1], w), x[:, 0:1] + x[0:1]
np.vectorize(lambda a, b: a * b)(x[:, :1], w), x - x[: len(x) - len(x) + 1], np.hypot(x[:, 1:2], w)
np.add.reduceat(x, np.arange(0, len(x), 2)), np.maximum.reduceat(x, np.arange(0, x.shape[1], 2), axis=1), np.add.reduceat(w, [0, 2])
np.minimum(x.shape, 3).tolist(), (np.array(x.shape) * 2).tolist(), [w[k] for k in np.arange(len(w)).tolist()[1:]], np.maximum(len(w), 2).item()
(q := np.poly1d(w[:3]))(x), q.deriv()(2.0), (q * q)(w), (q**2)(x), (q + 1)(0.5), (q - q.deriv())(w), q.integ()(1.0), q.coeffs, q.order, q[0], q[5], [c for c in q], (-q / 2)(w), np.poly1d([w[0], 2.0, 1])(x), np.poly1d(w[:1]).deriv()(1.0), np.poly1d(w[:2], True)(x)
np.polyder(q := np.poly1d(w[:3]))(x), np.polyder(q, 2)(0.5), np.polyint(q)(1.0), np.polyadd(q, q)(0.5), np.polysub(q, 1)(0.5), np.polymul(q, q)(0.5), np.polyval(q, x), np.polyval(q, 2.0)
w - np.poly1d(np.polyfit(np.arange(len(w)), w, 1))(np.arange(len(w))), (q := np.polynomial.Polynomial(w[:3]))(x), q.deriv()(w), (q * q)(x), (q**3)(0.5), (q - 1).integ()(1.0), q.coef, q.degree(), np.polynomial.Chebyshev(w)(x), np.polynomial.polynomial.polymul(w[:2], w), np.polynomial.Polynomial.fit(np.arange(len(w)), w, 1)(0.5), np.polynomial.polynomial.polyfit(np.arange(len(w)), w, 1, w=w**2 + 1)
np.add(x, 1, dtype="f8"), np.add(x, 1, dtype="i4", casting="unsafe"), np.multiply(w > 0, 2, dtype="f4"), np.greater(x, 0, dtype=bool), np.power(2, w.clip(0, 3), dtype="f8"), np.add(x.astype("u1"), 1, dtype="u2"), x.astype("f8", order="F")
(lambda a, b: (np.divmod(w, 2, out=(a, b)), np.modf(w * 0.5, out=(None, b)), a, b))(np.zeros(len(w)), np.zeros(len(w))), np.array([w[0].item(), w.item(1) * 2, x.sum().item() + 1])
max(w[0], w[1]), min(w[0], w[1], w[2]), max(w), min(x[0]), max([w[0], w[2], w[1]]), max(a * b for a, b in zip(w, w[::-1])), min(map(max, x[0], w)), *map(np.array, (w, x)), max(len(w), 3) * w
math.sqrt(w[0] ** 2), x * math.cos(w[1]), math.atan2(w[0], w[1]), math.floor(w[0] * 1.5), math.hypot(*w), math.log(abs(w[0]) + 1, 2), math.copysign(2, w[0]), math.isnan(w[0]), log10(w[0] ** 2 + 1), x[math.ceil(abs(w[0])) * 0]
np.fft.fftshift(x), np.fft.ifftshift(x, axes=0), np.fft.fftshift(w), np.fft.ifftshift(x, axes=(0, 1)), np.fft.fftshift(np.fft.fftfreq(len(w))) * w
"""
"""Results of one function of a matrix and a vector of as many columns, in each line."""


def compare(function: Callable[..., Any], compiled: Callable[..., Any], *args: Any) -> None:
    wanted, found = leaves(function(*args)), leaves(compiled(*args))
    assert len(wanted) == len(found)
    for want, got in zip(wanted, found, strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype and np.shape(got) == np.shape(want)
        exact = 1e-5 if np.asarray(want).dtype == np.float32 or args[0].dtype == np.float32 else 1e-12
        npt.assert_allclose(got, want, rtol=exact, atol=exact)


@pytest.mark.parametrize("text", PROGRAMS.strip().split("\n"))
def test_programs_give_what_numpy_gives(text: str) -> None:
    function = eval(f"lambda x, w: ({text},)", {**globals(), "math": math})
    compiled = graphc.jit(function, mode="interpreted")
    for shape, dtype in (((3, 4), "float64"), ((5, 3), "float64"), ((2, 3), "float32"), ((3, 4), "int64")):
        x = np.random.default_rng(shape[0]).normal(size=shape) * 4
        compare(function, compiled, x.astype(dtype), x[0].astype(dtype))


def test_numbers_of_python_have_no_dtype_in_rows() -> None:
    def function(x: Any, a: Any, n: Any) -> Any:
        return np.r_[x, a], np.r_[x, n], np.c_[a, n], np.array([x[0], a]), np.array([x[0], n])

    compiled = graphc.jit(function, mode="interpreted")
    for dtype in ("float64", "float32", "int32"):
        compare(function, compiled, np.arange(3).astype(dtype), 0.5, 7)


def test_axes_that_are_computed_to_have_one_element_broadcast_for_all_sizes() -> None:
    compiled = graphc.jit(lambda x: (x / x[:, :1]).sum() + (x[:1] * x[:, -1:]).sum(), mode="interpreted")
    for shape in ((3, 4), (2, 6), (5, 1), (1, 5), (1, 1)):
        x = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
        npt.assert_allclose(compiled(x), (x / x[:, :1]).sum() + (x[:1] * x[:, -1:]).sum())
    assert len(compiled.variants()) == 1
    rest = graphc.jit(lambda x: x[:-1] / x[-1:], mode="interpreted")
    for n in (2, 3, 2, 4):  # of two elements both have one
        npt.assert_array_equal(rest(np.arange(1.0, n + 1)), np.arange(1.0, n) / n)
    assert len(rest.variants()) == 2


def test_pythons_functions_of_numbers_of_special_values() -> None:
    compiled = graphc.jit(lambda a, b: (max(a, b), min(a, b), max(np.array([a, b])), a * b), mode="interpreted")
    for a, b in ((np.nan, 1.0), (1.0, np.nan), (np.inf, -np.inf), (2.0, 2.0)):
        npt.assert_equal(compiled(a, b)[:3], (max(a, b), min(a, b), max(a, b)))
    domain = graphc.jit(lambda a: (math.log(a), math.sqrt(a - 1), math.exp(1000 + a)), mode="interpreted")
    npt.assert_equal(domain(0.0), (-np.inf, np.nan, np.inf))  # NumPy's values, where Python raises an error
    whole = graphc.jit(lambda a: math.floor(a), mode="interpreted")  # noqa: PLW0108 - math.floor is another in a trace
    assert whole(-2.5) == -3
    with pytest.raises(GraphValueError, match=r"math.floor\(a\) is no whole number of 64 bits .*test_notebook"):
        whole(np.nan)
    assert "max" not in globals() and math.log is _LOG
    halves = np.array([1, 2], np.float32)
    assert graphc.jit(lambda x: x * math.sqrt(x[0]) * max(x[0], 0.5), mode="interpreted")(halves).dtype == np.float32
    npt.assert_array_equal(graphc.lax.fori_loop(0, 3, lambda i, s: max(s, i * 2.0), 1.0), 4.0)


_LOG = math.log


def test_elements_and_rows_have_derivatives() -> None:
    def cost(w: Any) -> Any:
        a = np.c_[w, w**2]
        b = np.apply_along_axis(lambda r: r / (1 + (r**2).sum()), 1, a)
        return (
            np.vectorize(lambda u: u * np.sin(u))(b).sum()
            + np.max([w[0], w[1]]) * np.r_[w, 1].prod()
            + max(w[1], w[2]) * math.exp(w[0])
        )

    w = np.array([0.3, -1.2, 0.7])
    slopes = graphc.grad(cost)(w)
    step = np.eye(3) * 1e-6
    npt.assert_allclose(slopes, [(cost(w + e) - cost(w - e)) / 2e-6 for e in step], rtol=1e-6)
    rows = np.stack([w, 2 * w])
    npt.assert_allclose(graphc.vmap(cost)(rows), [cost(row) for row in rows], rtol=1e-12)


def test_numpys_classes_are_its_own_outside() -> None:
    compiled = graphc.jit(lambda x: np.r_[x, 1], mode="interpreted")
    before = type(np.r_).__getitem__, np.vectorize.__call__, np.min, np.linalg.norm
    compiled(np.ones(2))
    assert before == (type(np.r_).__getitem__, np.vectorize.__call__, np.min, np.linalg.norm)


def _raising(x: Any) -> Any:
    with np.errstate(divide="raise"):
        return 1 / x


def _flat_written(a: Any) -> Any:
    a.reshape(-1)[0] = 9.0
    return a


def _tried(a: Any) -> Any:
    try:
        return math.sqrt(a)
    except ValueError:
        return 0.0


WRONG: list[tuple[Callable[..., Any], str]] = [
    (lambda x: np.r_["c", x, x], r"np.r_\['c', …\] makes a matrix"),
    (lambda x: np.float64(x.sum()), r"as np.float64\(x\) asks for; x.astype\('float64'\)"),
    (lambda x: np.sqrt([x[0], x[1]]), r"as np.sqrt asks for of a list; np.array"),
    (lambda x: np.random.default_rng(0).permutation(x), r"x\[rng.permutation\(len\(x\)\)\]"),
    (lambda x: np.ma.array(x, mask=x < 0), r"np.ma.array asks for; .* np.where\(mask, x, 0\)"),
    (lambda x: max(x[0], x[1], key=abs), r"use np.maximum\(a, b\) or x.max\(\) in place of max, jnp.where"),
    (
        lambda x: max(x[0], np.arange(3)[1]),
        r"max of x\[0\], float64, and .*dtype of the one that it is.* np.maximum\(a, b\)",
    ),
    (lambda x: min(np.inf, x.astype(int)[0]), r"min of inf and .*, int64, has the dtype of the one that it is"),
    (lambda x: _tried(x[0]), r"math.sqrt raises an error for some values, which the `try` around it would catch"),
    (lambda x: float(x[:1]), r"leave out float\(…\)"),
    (lambda x: sorted(x)[0], r"use np.sort\(x\) in place of sorted"),
    (lambda x: x + np.random.normal(size=3), r"np.random.normal draws once, while the function is traced"),
    (lambda x: x[np.random.permutation(3)], r"np.random.permutation draws once"),
    (lambda x: x + np.random.default_rng().normal(size=3), r"np.random.default_rng draws once"),
    (lambda x: x + np.random.Generator(np.random.PCG64()).normal(), r"np.random.PCG64 draws once"),
    (
        lambda x: x * np.random.Generator(np.random.MT19937(np.random.SeedSequence())).normal(),
        r"SeedSequence draws once",
    ),
    (
        lambda x: x * os.urandom(1)[0],
        r"random bytes of the system .*os.urandom.* are drawn once.*test_notebook_programs",
    ),
    (lambda x: x * secrets.randbelow(9), r"random bytes of the system"),
    (lambda x: x * random.SystemRandom().random(), r"random bytes of the system"),
    (lambda x: x * urandom(1)[0], r"random bytes of the system"),
    (lambda x: x * (uuid.uuid4().int % 7), r"random bytes of the system"),
    (lambda x: np.add(x, 1, dtype=np.int32), r"Cannot cast ufunc 'add' input 0 .* with casting rule 'same_kind'"),
    (lambda x: np.sqrt(x.astype(int), dtype=int), r"No loop matching the specified signature and casting was found"),
    (_raising, r"np.errstate\(divide='raise'\): a traced function raises no FloatingPointError"),
    (lambda x: _flat_written(np.array(x[None])), r"which depends on the order of elements in memory"),
    (lambda x: _flat_written((x[None] * 1).copy("F")), r"which depends on the order of elements in memory"),
    (lambda x: np.ravel(x[None].T, "K"), r"ravel of .*order='K' takes the elements as they lie in memory"),
    (lambda x: (x[None] + 1).T.reshape((1, -1), order="A"), r"reshape of .*order='A' takes the elements as they lie"),
    (lambda x: graphc.tree.all([x > 0]), r"the truth value of x > 0 \(.*\) of type bool.* is ambiguous"),
    (lambda x: odeint(lambda y, t: -y, x, np.arange(3.0), full_output=True)[0], r"has no full_output= \(called at "),
    (lambda x: graphc.scipy.integrate.quad(lambda t: t, 0.0, x), r"a limit is a number, and b is an array"),
]


@pytest.mark.parametrize(("function", "told"), WRONG)
def test_what_has_no_answer_is_refused_with_what_to_write(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(GraphTypeError, match=told) as error:
        graphc.jit(function, mode="interpreted").lower(np.ones(3))
    assert "test_notebook_programs.py:" in str(error.value)


def test_a_polynomial_of_which_numpy_would_drop_coefficients_is_refused() -> None:
    order = graphc.jit(lambda c: np.poly1d(c).order, mode="interpreted")
    assert order(np.array([1.0, 0.0])) == 1 and order(np.zeros(1)) == 0
    for function in (order, graphc.jit(lambda c: (np.polynomial.Polynomial(c) * 2.0).coef, mode="interpreted")):
        with pytest.raises(GraphValueError, match=r"the coefficient of its highest power is 0, so NumPy drops it"):
            function(np.array([0.0, 1.0, 0.0]))
    slopes = graphc.hessian(lambda c: (np.polynomial.Polynomial(c) ** 2)(0.5))(np.array([1.0, 2.0, 3.0]))
    npt.assert_allclose(slopes, 2 * np.outer([1, 0.5, 0.25], [1, 0.5, 0.25]))


def test_odeint_takes_arguments_as_scipys() -> None:
    def decay(y: Any, t: Any, a: Any, b: Any = 1.0) -> Any:
        return -a * b * y

    times = np.linspace(0, 1, 3)
    programs: list[Callable[..., Any]] = [
        lambda y, a: odeint(decay, y, times, args=(a,), rtol=1e-9, atol=1e-9),
        lambda y, a: odeint(decay, y, times, (a, 2.0), hmax=0.1, mxstep=500),
        lambda y, a: odeint(lambda t, y: -a * t * y, y[0], times, tfirst=True),
        lambda y, a: odeint(lambda y, t, a: [y[1], -a * y[0]], [y[0], y[1]], times, args=(a,)),
    ]
    for program in programs:
        wanted, found = (
            program(np.array([1.0, 2.0]), 0.7),
            graphc.jit(program, mode="interpreted")(np.arange(1.0, 3), 0.7),
        )
        npt.assert_allclose(found, wanted, rtol=1e-6)
    straight = graphc.scipy.integrate.odeint(decay, np.ones(2), times, (0.5, 2.0))
    npt.assert_allclose(straight[:, 0], np.exp(-times), rtol=1e-6)
    tree = graphc.scipy.integrate.odeint(lambda y, t, p: -p[0] * y, np.ones(2), times, [1.0, 2.0])
    npt.assert_allclose(tree[:, 0], np.exp(-times), rtol=1e-6)


def test_all_of_a_tree_is_computed_of_tensors() -> None:
    both = graphc.jit(lambda x, y: graphc.tree.all({"a": x > 0, "b": [y, True]}), mode="interpreted")
    assert [bool(both(x, y)) for x in (1.0, -1.0) for y in (0, 2)] == [False, True, False, False]


OUTSIDE = np.random.default_rng(0)
SEEDED = np.random.RandomState(0)


class Noisy:
    def __init__(self) -> None:
        self.rng = random.Random(0)

    def __call__(self, x: Any) -> Any:
        return x * self.rng.random()


def _drawn(n: int) -> Any:
    return SEEDED.randn(n)


def test_clocks_are_read_once_with_a_warning() -> None:
    function = graphc.jit(lambda x: x + 0 * time.perf_counter(), mode="interpreted")
    with pytest.warns(RuntimeWarning, match=r"time.perf_counter is called once, while the function is traced") as told:
        function(np.ones(2))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(np.ones(2))
        before = time.time, os.urandom
        graphc.jit(lambda x: x + len(tempfile.mktemp()), mode="interpreted")(np.ones(2))
        assert before == (time.time, os.urandom) and len(os.urandom(3)) == 3
        graphc.jit(lambda x: x * (datetime(2020, 1, 2) - datetime(2020, 1, 1)).days, mode="interpreted")(np.ones(2))
    for read, name in (
        (lambda: datetime.now().year, "datetime.now"),
        (lambda: int(time.strftime("%Y")), "time.strftime"),
    ):
        with pytest.warns(RuntimeWarning, match=f"^{name} is called once") as told:
            graphc.jit(lambda x, read=read: x * read(), mode="interpreted")(np.ones(2))
        assert told[0].filename == __file__


DRAWN: list[tuple[Any, str]] = [
    (lambda x: x + OUTSIDE.normal(size=3), r"^OUTSIDE drew random numbers while .* was traced"),
    (lambda x: x * _drawn(3), r"^SEEDED drew"),
    (lambda x: x * random.random(), r"^random drew"),
    (lambda x: x * rand(3), r"rand draws once|^rand drew"),
    (lambda x, rng=OUTSIDE: x * rng.normal(), r"^a default argument drew"),
    (partial(lambda rng, x: x * rng.normal(), OUTSIDE), "drew random numbers"),
    (Noisy(), r"\.rng drew"),
    (Noisy().__call__, r"^self.rng drew"),
    (graphc.grad(lambda x: (x * OUTSIDE.normal(size=3)).sum()), "^OUTSIDE drew"),
]


@pytest.mark.parametrize(("function", "told"), DRAWN)
def test_a_generator_from_outside_that_draws_is_told(function: Any, told: str) -> None:
    with pytest.raises(GraphTypeError, match=told):
        graphc.jit(function, mode="interpreted")(np.ones(3))


COUNTS, WIDE, NESTED = np.zeros(3), np.zeros(200_000), {"sums": np.zeros((2, 2)).T}


class Counting:
    def __init__(self) -> None:
        self.calls = np.zeros(1, int)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x


def _writes(x: Any) -> Any:
    y = x + COUNTS.sum()
    COUNTS[0] += 1
    return y


def _fills(x: Any) -> Any:
    COUNTS.fill(2)
    np.copyto(COUNTS, 3)
    return x


def _changes_a_large_one(x: Any) -> Any:
    WIDE[5] = 1
    WIDE.sort()
    return x


def _changes_within(x: Any) -> Any:
    np.add.at(NESTED["sums"], 0, 1)
    return np.multiply(x, 2)


WRITTEN: list[tuple[Any, str]] = [
    (_writes, r"^COUNTS was written to while _writes .* was traced \(test_notebook_programs.py:\d+\)"),
    (_fills, "^COUNTS was written to"),
    (_changes_a_large_one, "^WIDE was written to"),
    (_changes_within, "^NESTED"),
    (Counting(), r"calls was written to"),
    (graphc.grad(lambda x: (_writes(x) ** 2).sum()), "^COUNTS was written to"),
]


@pytest.mark.parametrize(("function", "told"), WRITTEN)
def test_an_array_from_outside_that_is_written_to_is_told(function: Any, told: str) -> None:
    with pytest.raises(GraphTypeError, match=told):
        graphc.jit(function, mode="interpreted")(np.ones(3))


def test_the_line_that_is_told_is_the_one_that_writes() -> None:
    with pytest.raises(GraphTypeError) as caught:
        graphc.jit(_writes, mode="interpreted")(np.ones(3))
    assert f"py:{_writes.__code__.co_firstlineno + 2})" in str(caught.value)


def test_generators_of_the_function_s_own_draw_as_in_numpy() -> None:
    def function(x: Any) -> Any:
        random.seed(1)
        own = np.random.Generator(np.random.PCG64(np.random.SeedSequence(4)))
        drawn = np.random.RandomState(2).rand(3) + np.random.default_rng(3).normal(size=3) + own.random(3)
        return x * random.random() + drawn

    compare(function, graphc.jit(function, mode="interpreted"), np.ones(3))


def test_draws_with_a_seed_are_what_they_are_in_each_call() -> None:
    def function(x: Any) -> Any:
        np.random.seed(3)
        return x + np.random.rand(3), np.random.default_rng(1).choice(3, 2) * x[:2]

    state = np.random.get_state()
    compare(function, graphc.jit(function, mode="interpreted"), np.ones(3))
    np.random.set_state(state)
