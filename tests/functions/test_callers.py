"""Compiled functions called by ctypes, SciPy, Cython's consumers, numba and NumPy's ufunc machinery."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.extending import get_cython_function_address
from scipy import integrate, ndimage

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.codegen.call.c_interface import FAILED, REFUSED
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.pointer import read

x, y, vector, matrix = T.dscalar("x"), T.dscalar("y"), T.dvector("v"), T.dmatrix("w")


def at(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def mixed() -> Any:
    return graphc.function([vector, matrix], [T.dot(matrix, vector), T.exp(vector).sum()], name="mixed")


def test_variants_of_jitted_functions_are_called_like_functions() -> None:
    bell = graphc.jit(lambda x: {"bell": jnp.exp(-x * x)})
    with pytest.raises(GraphcError, match="was not called yet"):
        bell.pointer()
    bell(0.0)
    assert integrate.quad(bell.pointer("double (double)").scipy, 0, 2)[0] == pytest.approx(0.8820813907624215)
    g = bell.as_numba()
    assert numba.njit(lambda x: g(x)[0] + 1.0)(0.0) == 2.0
    np.testing.assert_array_equal(bell.as_ufunc()(np.zeros((2, 1))), np.ones((2, 1)))
    bell(np.ones(3))
    with pytest.raises(GraphcError, match="there are the parts 0: .*; 1: "):
        bell.pointer()
    long = graphc.jit(lambda x: x[:2] if x.shape[0] > 2 else x)
    long(np.ones(3))
    call, values, found = long.pointer().ctypes, np.ones(3), np.zeros(2)
    assert call(3, 2, at(values), at(found)) == 0 and found.tolist() == [1.0, 1.0]
    assert call(2, 2, at(values), at(found)) == FAILED  # no variant of this one
    signs = graphc.jit(lambda x: x if x > 0 else -x)
    signs(1.0)
    with pytest.raises(GraphcError, match=r"x > 0 .* follows from values that a program asks for"):
        signs.as_ufunc()


@pytest.mark.slow
def test_sizes_of_a_call_in_threads() -> None:
    f = mixed()
    p = f.pointer("int f(int64_t n, int m, const double v[n], const double w[m][n], double out[m], double *total)")
    problems: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for n in [3, 40, 700, 3]:
            v, w = rng.normal(size=n), rng.normal(size=(5, n))
            out, total = np.zeros(5), np.zeros(())
            status = p.ctypes(n, 5, at(v), at(w), at(out), at(total))
            want = f(v, w)
            if status or not np.array_equal(out, want[0]) or total != want[1]:
                problems.append((n, status))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems


def test_what_does_not_fit_is_a_status() -> None:
    p = mixed().pointer()
    v, w, out, total = np.ones(3), np.ones((2, 3)), np.full(2, 7.0), np.full((), 7.0)
    arrays = at(v), at(w), at(out), at(total)
    assert [param.spelling for param in p.declaration.params[-2:]] == ["double *", "double *"]
    assert read(str(p.declaration)) == p.declaration and str(p.declaration) in repr(p)
    assert p.ctypes(3, 2, 4, 2, *arrays) == FAILED
    for sizes, given in (
        ((3, 2, 3, 3), arrays),
        ((-3, 2, -3, 2), arrays),
        ((3, 2, 3, 2), (at(v), at(w), at(v), at(total))),
        ((3, 2, 3, 2), (None, *arrays[1:])),
    ):
        assert p.ctypes(*sizes, *given) == REFUSED
    assert out[0] == total == 7.0
    assert p.ctypes(3, 2, 3, 2, *arrays) == 0
    assert out[0] == 3.0


def test_sizes_that_follow_from_values() -> None:
    q = T.tensor("float64", (3,), name="q")
    f = graphc.function([q], q[: T.cast(q[0], "int64")])
    p = f.pointer("int64_t f(int64_t m, const double q[3], double out[m])")
    out = np.full(3, 7.0)
    assert p.ctypes(2, at(np.full(3, 2.0)), at(out)) == 0
    assert out.tolist() == [2.0, 2.0, 7.0]
    assert p.ctypes(2, at(np.full(3, 3.0)), at(out)) == REFUSED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("double f", "is no declaration"),
        ("void f(double x)", "returns double, float, int or int64_t, not void"),
        ("double f(quad x)", "the parameter 'quad x' is of no type"),
        ("int f(double x[n])", "the size n is no parameter"),
        ("double f(int n, const double v[n])", "no parameter for w .test_callers.py:[0-9]+"),
        ("int f(float *v)", "v .test_callers.py:[0-9]+., which is float64"),
        ("int f(double *v, double *w, double *a, double *b)", "sizes of v .test_callers.py:[0-9]+. are known"),
        ("int f(int n, double v[n], double w[n])", "w has 1 sizes; w .test_callers.py:[0-9]+. has 2 axes"),
        ("double f(int n, double v[n], double w[n][n])", "it returns one double; the function gives"),
        ("int f(int n, double v[n], double w[n][n])", "0 parameters are left for 2 results"),
        ("int f(int n, double v[n], double w[n][n], double *a, double *b)", "sizes of result 0 are known at the call"),
        ("int f(double v, double *w)", "v .test_callers.py:[0-9]+. is float64.* passed by address"),
    ],
)  # fmt: skip
def test_declarations_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mixed().pointer(text)


def test_spellings() -> None:
    for text in ("double f(double x, void *data)", "double (double, void *)", "double f(const double x, void* p);"):
        assert read(text).types == "double (double, void *)"
    assert read("int(uint8_t *a, size_t n)").types == "int (uint8_t *, size_t)"


@pytest.mark.slow
def test_scipy_integrates() -> None:
    f = graphc.function([x], T.exp(-x * x), name="bell")
    for text in (
        "double (double)",
        "double (double, void *)",
        "double (int, double *)",
        "double (int, double *, void *)",
    ):
        value, bound = integrate.quad(f.pointer(text).scipy, 0.0, 2.0)
        assert abs(value - 0.8820813907624215) <= bound
    area = graphc.function([x, y], x * y).pointer("double (int, double *)").scipy
    value, bound = integrate.nquad(area, [[0, 2], [0, 3]])
    assert abs(value - 9.0) <= bound
    bad = graphc.function([x], T.opt.assert_op(x, x < 0.5), name="halved").pointer("double (double)")
    with pytest.raises(SystemError) as error:
        integrate.quad(bad.scipy, 0, 1)
    assert "halved: a check failed" in str(error.value.__cause__)


@pytest.mark.slow
def test_scipy_filters_images() -> None:
    image = np.random.default_rng(3).normal(size=(9, 11))
    spread = graphc.function([vector], vector.max() - vector.min(), name="spread")
    filtered = ndimage.generic_filter(image, spread.pointer("int (double *, npy_intp, double *, void *)").scipy, size=3)
    np.testing.assert_array_equal(filtered, ndimage.generic_filter(image, np.ptp, size=3))
    line = graphc.function([vector], vector[1:-1] - vector[2:], name="line")
    shifted = line.pointer("int (double *, npy_intp, double *, npy_intp, void *)").scipy
    found = ndimage.generic_filter1d(image, shifted, filter_size=3)
    padded = np.pad(image, ((0, 0), (1, 1)), "symmetric")
    np.testing.assert_array_equal(found, padded[:, 1:-1] - padded[:, 2:])
    place = T.tensor("int64", (2,), name="place")
    moved = graphc.function([place], T.cast(place, "float64")[::-1], name="moved")
    turn = moved.pointer("int (npy_intp *, double *, int, int, void *)").scipy
    np.testing.assert_array_equal(ndimage.geometric_transform(image, turn, output_shape=(11, 9), order=0), image.T)
    short = T.tensor("float64", (4,), name="short")
    wrong = graphc.function([short], short.sum(), name="wrong").pointer("int (double *, npy_intp, double *, void *)")
    with pytest.raises((RuntimeError, SystemError), match="wrong: a size does not fit"):
        ndimage.generic_filter(image, wrong.scipy, size=3)


def test_capsules_as_cython_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_by_graphc")
    module.__dict__["__pyx_capi__"] = {"cube": graphc.function([x], x**3).pointer("double f(double x)").capsule}
    monkeypatch.setitem(sys.modules, "made_by_graphc", module)
    gc.collect()
    address = get_cython_function_address("made_by_graphc", "cube")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0) == 27.0
    assert 'capsule object "double (double)"' in repr(module.__pyx_capi__["cube"])


@pytest.mark.slow
def test_the_page_on_cffi_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cffi")
    page = (Path(__file__).parents[2] / "docs" / "callers.md").read_text("utf-8")
    section = page[page.index("## cffi") :]
    program, printed = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[:2]
    exec(program, {})
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_inside_numba() -> None:
    f = mixed()
    g = f.as_numba()
    small = graphc.function([x], T.opt.assert_op(T.exp(x), x < 0.5), name="small")
    raising, told = small.as_numba(), small.as_numba(status=True)

    @numba.njit(parallel=True)
    def loops(v: Any, w: Any, n: int) -> Any:
        out, total = g(v, w)
        values, states = np.zeros(n), np.zeros(n, np.int64)
        for i in numba.prange(n):
            states[i], values[i] = told(i / n)
        return out, total, states, values

    v, w = np.arange(6.0)[::2], np.arange(12.0).reshape(3, 4).T
    v.flags.writeable = False
    out, total, states, values = loops(v, w, 100)
    want = f(v, w)
    np.testing.assert_array_equal(out, want[0])
    assert total == want[1]
    assert states.tolist() == [0] * 50 + [FAILED] * 50
    np.testing.assert_array_equal(values[:50], [small(i / 100) for i in range(50)])
    assert raising(0) == 1.0
    with pytest.raises(RuntimeError, match="small: a check failed"):
        raising(0.75)
    sizes = "mixed: matmul .test_callers.py:[0-9]+. .* the summed axis has sizes w.shape.1. and v.shape.0."
    with pytest.raises(ValueError, match=sizes):
        g(np.ones(5), w)
    with pytest.raises(numba.TypingError, match="argument v .test_callers.py:[0-9]+. is float64 with 1 axes"):
        g(np.ones(3, "float32"), w)


@pytest.mark.slow
def test_numba_takes_all_dtypes_and_sizes() -> None:
    q, flag, byte = T.tensor("float64", (3,), name="q"), T.tensor("bool", (), name="flag"), T.bscalar("byte")
    f = graphc.function([q, flag, byte], [q[: T.cast(q[0], "int64")], ~flag, byte + byte, T.concatenate([q, q])])
    g = f.as_numba()
    found = g(np.array([2.0, 1.0, 0.0]), True, np.int8(4))
    assert [np.asarray(each).tolist() for each in found] == [[2.0, 1.0], False, 8, [2.0, 1.0, 0.0] * 2]
    with pytest.raises(ValueError, match="argument q .test_callers.py:[0-9]+. must have size 3 along axis 0"):
        g(np.ones(4), True, np.int8(4))
    both = graphc.function([q, vector], [q * vector, T.concatenate([vector, vector])], name="both").as_numba()
    assert [each.tolist() for each in both(np.ones(3), np.ones(3))] == [[1.0] * 3, [1.0] * 6]
    with pytest.raises(ValueError, match="both: mul .* q .* and v .* differ along axis 0: sizes 3 and v.shape.0."):
        both(np.ones(3), np.ones(4))
    told = graphc.function([q], q + 1.0).as_numba(status=True)
    assert (told(np.ones(3))[0], told(np.ones(4))[0]) == (0, REFUSED)


def test_ufuncs_broadcast_cast_and_reduce() -> None:
    u = graphc.function([x, y], x * T.exp(y), name="scaled").as_ufunc()
    a = np.random.default_rng(0).normal(size=(7, 1300))
    b = a[::-1, ::-1]
    want = a * np.exp(b)
    close: Callable[..., Any] = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-13)  # noqa: E731
    close(u(a, b), want)
    close(u(a, 2), a * np.exp(2.0))
    close(u(a[:, :1], a[0]), a[:, :1] * np.exp(a[0]))
    out = a.copy()
    close(u(out, b, out=out), want)
    line = a[0].copy()
    u(line[1:], line[:-1], out=line[:-1])
    close(line[:-1], a[0, 1:] * np.exp(a[0, :-1]))
    close(u(a, b, where=a > 0, out=np.zeros_like(a)), np.where(a > 0, want, 0.0))
    close(u([1, 2], np.float32(3)), np.array([1, 2]) * np.exp(3.0))
    with pytest.raises(TypeError):
        u(1j, 2.0)
    add = graphc.function([x, y], x + y, name="plus").as_ufunc(identity=0)
    whole = np.arange(3000.0).reshape(3, 1000)[:, ::2]
    for axis in (0, 1, None):
        np.testing.assert_array_equal(add.reduce(whole, axis), whole.sum(axis))
    np.testing.assert_array_equal(add.accumulate(whole, 1), np.cumsum(whole, 1))
    np.testing.assert_array_equal(add.outer(whole[0], whole[1]), np.add.outer(whole[0], whole[1]))
    assert add.reduce(np.zeros(0)) == 0.0
    assert add.reduce(whole, None, where=whole > 5.0) == whole.sum(where=whole > 5.0)


def test_ufuncs_of_several_loops_results_and_errors() -> None:
    single = T.fscalar("s")
    u = graphc.function([x], [T.sqrt(x), T.cast(T.floor(x), "int32")], name="parts").as_ufunc(
        graphc.function([single], [T.sqrt(single), T.cast(T.floor(single), "int32")], name="parts")
    )
    found = u(np.array([4.0, 9.0], "float32"))
    assert [each.dtype for each in found] == ["float32", "int32"]
    assert [each.tolist() for each in u([[4, 9]])] == [[[2.0, 3.0]], [[4, 9]]]
    root = graphc.function([x], T.opt.assert_op(T.sqrt(x), x >= 0), name="root").as_ufunc()
    assert root([4.0, 9.0]).tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="root: a check failed"):
        root([4.0, -1.0])
    with np.errstate(all="raise"):
        assert graphc.function([x], 1 / x).as_ufunc()(np.zeros(2)).tolist() == [np.inf, np.inf]
    with pytest.raises(ArgumentError, match="is a function of scalars; v .test_callers.py:[0-9]+. is float64"):
        graphc.function([vector], vector + 1).as_ufunc()
    with pytest.raises(ArgumentError, match="compiled as one kernel"):
        graphc.function([x], x + 1, mode="interpreted").pointer()
