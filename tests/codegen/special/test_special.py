"""Special functions by SciPy's addresses: SciPy's values to the bit, in every mode."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
import scipy.special

import graphc
import graphc.tensor as T
from graphc.codegen import special as api
from graphc.errors import GraphcError
from graphc.functions.pointer import Pointer
from graphc.ir.node import OPS, make
from graphc.ops.custom import PREFIX, SOURCES, Source, value_of

EDGES = [0.0, -0.0, 1.0, -1.0, 5.5, np.nan, np.inf, -np.inf]
MOST = max(len(source.operands) for source in SOURCES.values())


def values(dtype: str) -> list[Any]:
    rng = np.random.default_rng(3)
    inside = rng.uniform(0.05, 0.95, (MOST, 40))
    return list(np.concatenate([inside, rng.choice(EDGES, (MOST, 60)), 6.0 * inside], axis=1).astype(dtype))


WARNING = "kn yn expn smirnov".split()
"""Functions of which SciPy warns where the order is no whole number."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mode", [None, "python"])
def test_values_are_scipys(dtype: str, mode: str | None) -> None:
    """Of some functions, and one of each form at least; where SciPy takes an integer, of whole numbers."""
    importlib.import_module("graphc.scipy.special")
    forms = {(source.operands, source.count, source.options): name for name, source in SOURCES.items()}
    names = sorted({*forms.values(), *[*SOURCES][:: 6 if mode is None else 3]})
    xs, ns = ([T.tensor(dtype, (None,), name=f"{letter}{place}") for place in range(MOST)] for letter in "xn")
    results = []
    for name in names:
        is_calm = name.startswith(("pb", "spherical_", *WARNING))
        taken = [ns[k] if kind == "l" or is_calm else xs[k] for k, kind in enumerate(SOURCES[name].operands)]
        results.append(make(OPS[PREFIX + name], taken))
    used = [x for x in [*xs, *ns] if any(x in result.args for result in results)]
    f = graphc.function(used, results, mode=mode)
    for given in (values(dtype), [x[:0] for x in values(dtype)]):
        whole = [np.floor(np.where(np.isfinite(x), np.abs(x), 2.0)).astype(dtype) for x in given]
        of = dict(zip([*xs, *ns], [*given, *whole], strict=True))
        for name, result, found in zip(names, results, f(*(of[x] for x in used)), strict=True):
            wanted = np.asarray(value_of(name, [of[arg] for arg in result.args]))
            assert found.dtype == dtype
            with np.errstate(over="ignore"):
                npt.assert_array_equal(found, wanted.astype(dtype), err_msg=name)


@pytest.mark.slow
def test_operands_broadcast_and_may_be_views() -> None:
    x, v = T.dmatrix("x"), T.dvector("v")
    given = np.random.default_rng(0).uniform(0.1, 3.0, (3, 4))
    y = T.gammainc(x.T[::-1], v) + 2.0 * T.kv(1.5, x.T).sum(axis=0)
    wanted = scipy.special.gammainc(given.T[::-1], given[0, :3]) + 2.0 * scipy.special.kv(1.5, given.T).sum(axis=0)
    for mode in (None, "python"):
        npt.assert_allclose(graphc.function([x, v], y, mode=mode)(given, given[0, :3]), wanted, rtol=1e-14)
    scalar = T.dscalar("scalar")
    assert graphc.function([scalar], T.j0(scalar))(0.5) == scipy.special.j0(0.5)


def test_loops_and_batches_call_them_too() -> None:
    v = T.dvector("v")
    powers = graphc.scan(lambda e, h: T.j1(e + h), [v], [T.zeros(())])[0]
    given = np.linspace(0.1, 2.0, 5)
    wanted = [0.0]
    for e in given:
        wanted.append(scipy.special.j1(e + wanted[-1]))
    npt.assert_array_equal(graphc.function([v], powers)(given), wanted[1:])
    npt.assert_array_equal(graphc.vmap(lambda e: T.i0e(e) * 2.0)(given), 2.0 * scipy.special.i0e(given))


def test_what_calls_them_has_an_address() -> None:
    v = T.tensor("float64", (3,), name="v")
    cost = T.sum(T.log(T.gammaincc(2.0, v)))
    f = graphc.function([v], [cost, graphc.grad(cost, v)])
    pointer = Pointer("density", f)
    call, slopes, value = pointer.ctypes, np.zeros(3), np.zeros(1)
    given = np.array([0.5, 1.0, 4.0])
    assert call(3, given.ctypes.data, slopes.ctypes.data, value.ctypes.data, None) == 0
    above = scipy.special.gammaincc(2.0, given)
    npt.assert_allclose(value[0], np.log(above).sum(), rtol=1e-14)
    npt.assert_allclose(slopes, -given * np.exp(-given) / above, rtol=1e-13)


@pytest.mark.slow
def test_a_warm_start_finds_them(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    code = (
        "import graphc, graphc.tensor as T; x = T.dvector('x'); f = graphc.function([x], T.kve(0.5, x)); "
        "print(f.built.report.origin, f([2.0])[0])"
    )
    lines = [subprocess.check_output([sys.executable, "-c", code], text=True).split() for _ in range(2)]
    assert [origin for origin, _ in lines] == ["compiled", "cache"]
    assert [float(value) for _, value in lines] == [scipy.special.kve(0.5, 2.0)] * 2


def test_a_function_that_scipy_does_not_give_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SOURCES", {"agm": Source("agm", "dd"), "kolmogi": Source("kolmogi", "ddd")})
    with pytest.raises(GraphcError, match="has no kolmogi of float64 for other modules"):
        api.address_of("kolmogi")
    assert api.address_of("agm")
