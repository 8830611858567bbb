"""Ranges against NumPy: dtypes, lengths and every bit of arange, array ends of linspace and its kin, uint64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as gnp
import graphc.tensor as T
from graphc.errors import GraphcError

DTYPES = ("int8", "int64", "uint8", "uint32", "uint64", "float32", "float64")
MODES = ("interpreted", "compiled", "python")
SHAPES = ((), (3,), (1,), (0,), (2, 1), (2, 3))


def same(found: Any, wanted: Any, exactly: bool = True) -> bool:
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if exactly:
        return np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f")
    limit = 1e-6 if wanted.dtype == np.float32 else 1e-13
    return bool(np.allclose(found, wanted, rtol=limit, atol=0, equal_nan=True))


def ranges() -> Iterator[tuple[list[Any], str | None, Any]]:
    """Arguments of arange, a dtype, and NumPy's range."""
    rng = np.random.default_rng(3)
    for kinds in itertools.product(DTYPES, DTYPES, (None, *DTYPES)):
        if rng.random() > 0.25:
            continue
        dtype = (None, None, "float32", "int32", "uint64")[rng.integers(5)]
        start = rng.normal() * 5 if "f" in kinds[0] else rng.integers(0, 9)
        stop = start + rng.normal() * 9 if "f" in kinds[1] else int(start) + rng.integers(0, 12)
        step = rng.choice([1, 2, 3.5, 0.3]) if "f" in (kinds[2] or "") else rng.integers(1, 4)
        numbers = [np.dtype(kind).type(n) for kind, n in zip(kinds, (start, stop, step), strict=True) if kind]
        try:
            with np.errstate(all="ignore"):
                wanted = np.arange(*numbers, dtype=dtype)
        except (ValueError, OverflowError):
            continue  # of unsigned numbers that wrap around
        if wanted.size < 1000:
            yield numbers, dtype, wanted


def test_arange_counts_and_computes_as_numpy() -> None:
    cases = list(ranges())
    assert len(cases) > 60
    for numbers, dtype, wanted in cases:
        variables = [T.scalar(dtype=n.dtype.name) for n in numbers]
        found = graphc.function(variables, gnp.arange(*variables, dtype=dtype), mode="interpreted")(*numbers)
        assert same(found, wanted), (numbers, dtype, found, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_arange_of_float32_counts_in_float32(mode: str) -> None:
    s = T.scalar("s", dtype="float32")
    f = graphc.function([s], gnp.arange(s, s + 3), mode=mode)
    for start in np.random.default_rng(0).normal(size=60).astype("float32"):
        assert same(f(start), np.arange(start, start + np.float32(3)))


@pytest.mark.parametrize("mode", MODES)
def test_arange_of_sizes_as_floats_is_counted_as_integers(mode: str) -> None:
    x = T.dvector("x")
    n: Any = x.shape[0]

    def every(numpy: Any, n: Any) -> list[Any]:
        return [
            numpy.arange(n + 1.0), numpy.arange(0.0, n), numpy.arange(2.0, n - 1.0, 3.0),
            numpy.arange(n * 1.0, -2.0, -2), numpy.arange(0, n + 0.5),
            numpy.arange(1.0, (n + 2.0) - 1, 0.5), numpy.arange(n, 3.0),
        ]  # fmt: skip

    f = graphc.function([x], every(gnp, n), mode=mode)
    g = graphc.function([x], [gnp.arange(n + 1.0), gnp.arange(2.0, n - 1.0, 3.0)], mode=mode)
    assert "ceil" not in g.text
    for size in (0, 1, 2, 7, 20):
        for found, wanted in zip(f(np.zeros(size)), every(np, size), strict=True):
            assert same(found, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_arange_of_uint64_is_exact(mode: str) -> None:
    a, b = T.scalar("a", dtype="uint64"), T.scalar("b", dtype="uint64")
    d = T.scalar("d", dtype="int64")
    every = [
        T.arange(a, b), T.arange(a, b, 1, dtype="uint64"), T.arange(a, b, 2), T.arange(b, a, -1), T.arange(b, a, d),
        T.arange(a, b, d),
    ]  # fmt: skip
    f = graphc.function([a, b, d], every, mode=mode)
    for low in (2**53 + 1, 10536076561662227, 2**63 - 1, 2**63, 2**64 - 4, 0):
        for count in (0, 1, 3):
            high = low + count
            found = f(np.uint64(low), np.uint64(high), max(-2, low - 2**63) if low < 2**53 else -2)
            wanted: list[Any] = [range(low, high), range(low, high), range(low, high, 2), range(high, low, -1)]
            wanted += [range(high, low, -2), range(low, high, -2)]
            for value, each in zip(found, wanted, strict=True):
                assert value.dtype == np.uint64
                assert value.tolist() == list(each)


def test_arange_of_what_cannot_be_counted_is_an_error() -> None:
    s, d = T.dscalars("s", "d")
    for mode in MODES:
        f = graphc.function([s, d], T.arange(0.0, s, d), mode=mode)
        for ends in ((np.nan, 1.0), (1.0, 0.0), (np.inf, 1.0)):
            with pytest.raises(GraphcError, match=r"arange of s .*, d .*: \(stop - start\) / step is not finite"):
                f(*ends)
        assert f(5e-324, 1e100).tolist() == [0.0]
        assert f(-1.0, 1.0).tolist() == []
    for ends in ((0.0, np.nan), (0.0, np.inf)):
        with pytest.raises(GraphcError, match="is (nan|inf)"):
            T.arange(*ends)
    assert T.arange(0.0, 5.0, np.inf).eval().tolist() == [0.0]


def spaced() -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    rng = np.random.default_rng(4)
    for name, *kinds in itertools.product(("linspace", "logspace", "geomspace"), DTYPES, DTYPES):
        low = 1 if name == "geomspace" else 0
        ends = []
        for kind in kinds:
            shape = SHAPES[rng.integers(len(SHAPES))]
            drawn = rng.uniform(low, 4, shape) if "f" in kind else rng.integers(low, 4, shape)
            ends.append(np.asarray(drawn, kind))
        more: dict[str, Any] = {"endpoint": bool(rng.random() < 0.6), "axis": int(rng.choice([0, -1]))}
        if rng.random() < 0.4:
            more["dtype"] = str(rng.choice(["int32", "float32", "float64"]))
        if name == "logspace" and rng.random() < 0.5:
            more["base"] = 2.0 if rng.random() < 0.5 else np.array([2, 3, 4], "float32")
        if name == "linspace" and rng.random() < 0.4:
            more["retstep"] = True
        yield name, [*ends, int(rng.choice([0, 1, 2, 5]))], more


@pytest.mark.slow
def test_spaced_numbers_between_arrays_are_numpys() -> None:
    seen = 0
    for name, (start, stop, num), more in spaced():
        try:
            with np.errstate(all="ignore"):
                wanted = getattr(np, name)(start, stop, num, **more)
        except (ValueError, IndexError):
            continue  # shapes that do not broadcast
        seen += 1
        variables = [T.tensor(end.dtype.name, end.shape) for end in (start, stop)]
        made = getattr(gnp, name)(*variables, num, **more)
        parts = list(made) if more.get("retstep") else [made]
        found = graphc.function(variables, parts, mode="interpreted")(start, stop)
        for value, each in zip(found, wanted if more.get("retstep") else [wanted], strict=True):
            assert same(value, each, exactly=False), (name, start, stop, num, more, value, each)
    assert seen > 50


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_spaced_numbers_are_the_same_in_all_modes(mode: str) -> None:
    v, n = T.dvector("v"), T.iscalar("n")
    line, step = T.linspace(v, 2.0, n, retstep=True, axis=-1)
    f = graphc.function([v, n], [line, step, T.geomspace(v + 1, 8.0, n), T.logspace(0, v, n, base=2.0)], mode=mode)
    for size, count in ((3, 3), (1, 4), (0, 2), (2, 1)):
        at = np.arange(float(size))
        wanted = [*np.linspace(at, 2.0, count, retstep=True, axis=-1), np.geomspace(at + 1, 8.0, count)]
        wanted.append(np.logspace(0, at, count, base=2.0))
        for place, (value, each) in enumerate(zip(f(at, count), wanted, strict=True)):
            if place != 1 or count > 1:
                assert same(value, each, exactly=False)
            else:
                assert np.isnan(value).all()


def test_zero_has_no_place_in_a_geometric_range() -> None:
    with pytest.raises(GraphcError, match="never 0"):
        T.geomspace(0, 1)


def test_derivatives_of_ranges() -> None:
    a, b, s = T.dvector("a"), T.dvector("b"), T.dscalar("s")
    weights = T.arange(4.0)
    by_ends = graphc.grad((T.linspace(a, b, 4, axis=-1) * weights).sum(), [a, b])
    first, last = graphc.function([a, b], by_ends, mode="interpreted")([1.0, 2.0], [3.0, 5.0])
    np.testing.assert_allclose([first, last], [[4 / 3] * 2, [14 / 3] * 2], rtol=1e-15)
    by_start = graphc.grad(T.arange(s, s + 3.0, 0.5).sum(), s)
    assert graphc.function([s], by_start, mode="interpreted")(0.3) == 6
    by_factor = graphc.grad(T.geomspace(s, 8.0, 4).sum(), s)
    np.testing.assert_allclose(graphc.function([s], by_factor, mode="interpreted")(1.0), 11 / 3, rtol=1e-14)
