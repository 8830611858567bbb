"""Arrays that a traced function makes by NumPy itself: known until something traced is written to them; and programs as
people write them for NumPy, of which the same text is compiled."""
# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc.errors import GraphcError, GraphTypeError
from graphc.trees import leaves

X, W = np.linspace(-1.0, 2.0, 9).reshape(3, 3), np.array([0.5, 2.0, -1.0])


def check(function: Callable[..., Any], *args: Any, mode: str = "interpreted", **settings: Any) -> None:
    """A function gives under `jit` what it gives under NumPy, in values, dtypes and shapes."""
    wanted = leaves(function(*(np.array(each) if isinstance(each, np.ndarray) else each for each in args)))
    found = leaves(graphc.jit(function, mode=mode, **settings)(*args))
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        npt.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        assert np.asarray(got).dtype == np.asarray(want).dtype and np.shape(got) == np.shape(want)


def of_text(text: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {"np": np}
    exec(
        compile("def f(x, w):\n    " + text.replace("; ", "\n    ").replace(": > ", ":\n        "), "own.py", "exec"),
        scope,
    )
    return scope["f"]


PROGRAMS = """
a = np.zeros(3); a[0] = x.sum(); b = a[::2]; b[0] += 1; b[1] = 7; return a, b | return np.array([x[0, 1], -x[0, 0]]), np.array([[x[0, 0], 1], [2, 3]])
s = np.ones(30, bool); s[:2] = False; for k in range(2, 6): > s[k * k :: k] = not s[k] and s[k * k :: k]; return np.flatnonzero(s), x[s[:3]], len(s)
a = np.eye(3); v = a[1]; v[0] = 2; f = a.ravel(); f[8] = w[0]; c = a.T; a += 1; c[0] *= w; return a, v, f, c
a = np.eye(3); d = np.asarray(a); d[2, 2] = 5; e = np.array(a); e[0] = x[0]; d[0] = 1; return a, d, e | a = np.empty((3, 2)); a[:, 0] = w; a[:, 1] = 1; return a
i = np.arange(3); a = np.zeros((3, 2)); a[:, 0] = x[i, i]; a[:, 1] = w[i[::-1]]; return a, i | h = np.zeros(4); np.add.at(h, [0, 1, 1], w); return h
n = np.full((2, 2), x[0, 1]); n[0] = 1; return n | l = np.linspace(0, 1, 4); l[1] = x.max(); t = np.zeros_like(l); t[0] = l[1]; return l, t
q = np.full(3, 2); q[0] = x[1, 1] * 3; q[1] += 2; return q | return np.zeros(x.shape) + x, np.zeros(x.shape[0]), np.arange(x.shape[0]) * w
a = np.zeros((2, 3)); for r in a: > r[:] = w; return a | a = np.zeros((2, 3)); for k, r in enumerate(a): > r += k; a[0] = w; r[1] = 5; return a, r
a = np.zeros((2, 3)); np.fill_diagonal(a, 9); np.multiply(a, 2, out=a); a.sort(); a = a.reshape(3, 2); a[0] = 1; return a + x[0, 0]
b = np.arange(6).reshape(2, 3); b[0] = b[1]; b.flat[5] = w[1]; b.T[0] = 7; return b | z = np.zeros(()); y = z; z += 3; y[...] = x[0, 1] + y; return y, z
k = np.array(5.0); e = k == 5; k += 1; m = k == w[0] * 12; k[...] = 0; return k, e, m, 3 if e else 4 | k = np.array(5.0); return k + w, np.float32(1) * k, float(np.zeros(2)[0]), np.outer(np.ones(2), w), np.ones(3) @ x, w.dot(np.ones(3))
a = np.array([3, 1, 2]); a.sort(); return a, x[a - 1], a.tolist(), [int(k) for k in a], a.max(), f"{a[0]:03d}", list(a)[1] * w, 2 in a, -1 in a
a = np.zeros(3); b = a; a = a + 1; b[0] = x[0, 0]; return a, b | a = np.ones(3); b = a * 2; a[0] = w[1]; b[1] = w[0]; c = np.negative(b); c[2] = 0; return a, b, c
a = np.zeros((3, 3)); a[x > 0] = 1; a[np.eye(3, dtype=bool)] = 5; return a | a = np.ones(4); a[1:] = np.cumsum(w); b = np.cumprod(a); b[0] = 0; return a, b
a = np.arange(12.0).reshape(3, 4); b = a[1:, ::2]; b *= 2; c = b.copy(); b[0, 0] = w[0]; return a, b, c | a = np.zeros(3); np.copyto(a, w); np.put(a, [0], 7); return a
a = np.zeros(3); np.add(w, 1, out=a); b = np.add(a, 1, out=a); b[0] = 1; return a | a = np.ones(3); np.add(a, 1, out=a); a.clip(0, 1.5, out=a); a[0] += w[0]; return a
a = np.tri(3); a[0] = a[1] + w; return a, np.linalg.det(np.eye(3) * 2), np.linalg.inv(np.eye(2) * 4)[0, 0] * w | a = np.zeros(3, 'int8'); a[0] = 2.7; a[1] = w[1]; return a
a = np.zeros((2, 2)); p, q = a; p[0] = w[0]; q[:] = p; return a, p, q | a = np.zeros(3); a[:] = [1, 2, 3]; b = np.asarray(a, dtype='float32'); b[0] = 9; a[1] = w[0]; return a, b
m = {}; a = np.zeros(3); for k in range(3): > m[k] = a[k : k + 1]; m[1][0] = w[0]; m[2] += 1; return a, m[1] | a = np.copy(W0 := np.ones(3)); a[0] = w[0]; return a, W0
a = np.zeros(3); i = int(a[0]) + 1; j = np.argmax(np.array([1, 5, 2])); a[i] = w[j]; return a if a.ndim == 1 else x | a = np.ones((2, 2)); return a.shape, a.size * w, a.T.shape, a.nbytes, a.astype(int), a.mean()
"""


@pytest.mark.parametrize("text", [each.strip() for each in PROGRAMS.strip().replace("\n", " | ").split(" | ")])
def test_an_array_of_numpys_takes_what_is_traced(text: str) -> None:
    def shown(f: Callable[..., Any]) -> Callable[..., Any]:  # texts are no results
        return lambda x, w: [each for each in leaves(f(x, w)) if not isinstance(each, str)]

    check(shown(of_text(text)), X, W)


def test_an_array_of_a_python_number_has_a_dtype() -> None:
    for k in (2.0, 3, True):
        check(lambda k, x: (np.asarray(k) * x, np.array(k) + x[0], np.array([k, 1]) * x[:2]), k, W.astype("float32"))


def test_what_is_no_array_of_the_program_is_told() -> None:
    for text in (
        "a = w.copy(); np.random.default_rng(0).shuffle(a); return a",
        "return w * np.random.RandomState().normal(size=3)",
        "a = np.zeros(3); b = np.lib.stride_tricks.as_strided(a, (2,), (8,)); a[0] = 1; return b",
        "a = np.zeros(3); k = [v.fill(1) for v in np.nditer(a, op_flags=['readwrite'])]; return a",
        "a = np.zeros(3); return w if np.shares_memory(a, a[1:]) else x",
    ):
        with pytest.raises(GraphcError, match=r"own\.py:\d"):
            graphc.jit(of_text(text), mode="interpreted")(X, W)


DRAWS = (
    """
a = np.random.default_rng(0).normal(size=3); a[0] = w[0]; return a | a = np.arange(3.0); np.random.default_rng(0).shuffle(a.reshape(3, 1)); return a * w
r = np.random.RandomState(0); a = r.randn(3, 3) * 0.5; b = a[0]; a -= x; r.shuffle(i := np.arange(len(w))); return a, b, w[i], r.randint(9), r.permutation(3)
np.random.seed(1); a = np.random.uniform(-1, 1, (3,)); a += w; i = np.arange(3); np.random.shuffle(i); return a, x[i], np.random.rand()
r = np.random.Generator(np.random.PCG64(3)); a = np.zeros(3); b = a[:2]; r.random(out=a); b[0] = w[1]; l = [1, 2, 3]; r.shuffle(l); return a, np.array(l), r.choice([1.0, 2.0], 3)
r = np.random.RandomState(5); s = r.get_state(); a = r.rand(3); r.set_state(s); b = r.rand(3); b *= w; return a, b, isinstance(r, np.random.RandomState) * 1.0
""".strip()
    .replace("\n", " | ")
    .split(" | ")
)


OF_NUMBERS = """
a = np.diag([1.0, 2.0, 3.0]); a[0, 1] = x[0, 0]; b = np.repeat(0.0, 3); b += w; return a, b | a = np.tile([1.0, 2.0], (3, 2)); a[:, 1] *= w; return a
a = np.hanning(3); a += x[0]; i, j = np.indices((3, 3)); return a, x[j, i], np.where(i > j, x, 0) | a, b = np.meshgrid([1.0, 2.0], [3.0, 4.0, 5.0]); a[:, 0] += w; return a, b
a = np.outer([1, 2], [3, 4]); a[0] = w[:2]; n = np.repeat(0.0, len(w)); n += w; t = np.tile(0.0, x.shape); t[0] = w; h = np.hamming(x.shape[0]); h *= w; return n, t, h | a = np.outer([1, 2], [3, 4]); k = np.cumsum([1, 2]); return a, k[0] + (5 if k[1] > 2 else 0) | v = np.linalg.eigh([[2.0, 0.0], [0.0, 3.0]])[0]; v[1] -= w[0]; return v
"""


def test_what_numpy_makes_of_numbers_takes_what_is_traced() -> None:
    for text in OF_NUMBERS.strip().replace("\n", " | ").split(" | "):
        check(of_text(text), X, W)
    outer = np.arange(3.0)

    def view(w: Any) -> Any:
        part = np.reshape([*outer, outer[0]], -1)
        part[1:] += w
        return part

    def write(w: Any) -> Any:
        np.ravel(outer)[0] = 7.0  # written to the array from outside, as in NumPy
        return w

    npt.assert_array_equal(graphc.jit(view, mode="interpreted")(W), [0.0, 1.5, 4.0, -1.0])
    with pytest.raises(GraphTypeError, match="outer was written to"):
        graphc.jit(write, mode="interpreted")(W)
    with pytest.raises(GraphTypeError, match=r"read-only|cannot take a value"):
        graphc.jit(of_text("a = np.broadcast_to([1.0], (3,)); a += w; return a"), mode="interpreted")(X, W)


def test_what_a_program_draws_takes_what_is_traced() -> None:
    for text in DRAWS:
        check(of_text(text), X, W)
    check(of_text(DRAWS[2]), X, W, mode="compiled")
    outer = np.random.RandomState(0)
    assert graphc.jit(lambda x: x + isinstance(outer, np.random.RandomState), mode="interpreted")(1) == 2


def test_numpys_functions_are_its_own_afterwards_and_elsewhere() -> None:
    own: Any = np.zeros
    seen: list[Any] = []

    def f(x: Any) -> Any:
        def other() -> None:
            a = np.zeros(3)
            seen.append(type(a))
            a[0] = 1

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert np.zeros is not own
        inner = graphc.jit(lambda y: y + np.ones(3))(x)
        seen.append(type(np.fft.fftfreq(4)))
        return inner + np.zeros(3)

    npt.assert_array_equal(graphc.jit(f, mode="interpreted")(np.ones(3)), 2 * np.ones(3))
    assert seen == [np.ndarray, np.ndarray] and np.zeros is own
    with pytest.raises(ZeroDivisionError):
        graphc.jit(lambda x: 1 // 0, mode="interpreted")(np.ones(3))
    assert np.zeros is own


def test_an_array_is_known_until_something_traced_is_written() -> None:
    kinds = []

    def f(x: Any) -> Any:
        a = np.zeros(3)
        part = a[1:]
        a[0] = 2
        kinds.append(bool(a[0] == 2) and float(part[0]) == 0.0 and np.asarray(a).sum() == 2 and [*a] == [2.0, 0.0, 0.0])
        part[0] = x[0]
        with pytest.raises(GraphTypeError, match="no truth value"):
            bool(a[1] == 2)
        with pytest.raises(GraphTypeError, match="no truth value"):
            bool(a.tolist()[1] == 2)
        return a

    graphc.jit(f, mode="interpreted").lower(np.ones(3))
    assert kinds == [True]


IN_MODULE = """
return np.exp([x[0, 0], 2.0]), np.add.reduce([w, x[0], [1, 2, 3]]), np.maximum.accumulate((w[0], w[1], 0.5)), np.arctan2([w[0]], w), np.hypot(*[w[0], w[1]])
a = np.zeros(3); np.multiply(a, [w[0], 1, 2], out=a); np.add.at(a, [0, 0], [w[0], 1]); return a, np.divmod([w[0], w[1]], 2), np.multiply.outer([w[0], 1], w)
return np.float64(w[0]) * w.astype(np.float32), np.float32(w) * 2, np.int64(w[1] * 4), np.bool_(w[0]), np.float64([w[0], 1]), np.float64(len(w)) / 2, np.float64(3)
return isinstance(w[0], np.float64), issubclass(np.float64, np.floating), np.issubdtype(w.dtype, np.float64), w.dtype.type == np.float64, {np.float64: 1, np.exp: 2}[np.exp], isinstance(np.exp, np.ufunc)
import math; a = np.zeros(2, np.float64); a[0] = math.sqrt(w[1]); b = [1.0, 2.0] / a[0]; return a[0] * w.astype(np.float32), b, a, np.finfo(np.float32).eps * w.astype(np.float32)
import functools; return getattr(np, "exp")(w), functools.reduce(np.add, [w, w]), [*map(np.sin, w)], np.logical_or.reduce([w > 0, w > 2]), np.add.nin, hasattr(np, "nothing"), np.vectorize(np.exp)(w)
"""


def test_the_module_takes_what_is_traced_in_lists_and_as_numbers() -> None:
    for text in IN_MODULE.strip().splitlines():
        check(of_text(text), X, W)
    own, kind = np.exp, np.float64

    seen: list[Any] = []
    space: dict[str, Any] = {"np": np, "seen": seen}
    exec("def f(x):\n    seen.extend((np, np.exp, np.float64))\n    return np.exp([x[0], 1])", space)
    npt.assert_array_equal(graphc.jit(space["f"], mode="interpreted")(W), np.exp([W[0], 1]))
    assert space["np"] is np and np.exp is own and np.float64 is kind
    space["jnp"] = graphc.numpy
    exec("def h(x):\n    return jnp.float32(x[0]) * 2, jnp.int64(x), jnp.dtype(jnp.float32) == x.dtype", space)
    found = graphc.jit(space["h"], mode="interpreted")(W)
    assert found[0].dtype == np.float32 and found[1].dtype == np.int64 and not found[2]
    assert seen[0] == np and seen[1] == own and seen[2] == kind and hash(seen[1]) == hash(own)
    exec("def g(x, other=None):\n    return x if np is other else np.exp([x[0], 1])", space)
    assert graphc.jit(space["g"], static_argnames="other", mode="interpreted")(W, other=np).shape == (3,)
    with pytest.raises(GraphTypeError, match=r"np.exp asks for of a list"):
        graphc.jit(space["g"], mode="interpreted")(W)


# --- snippets ---

SNIPPETS = {
    "block": "n = x.shape[0]; A = np.zeros((2*n, 2*n)); A[:n,:n] = x; A[n:, n:] = x.T; A[n:, :n] += 1; return A",
    "masked": "out = np.zeros(x.shape); out[x > 0] = x[x > 0]; out[x <= 0] = -x[x <= 0] * 2; return out",
    "append": "r = []\n    for k in range(3): r.append(x[k] * k)\n    r[0][1] = 5\n    return np.array(r), np.stack(r), np.array([v.sum() for v in r])",
    "enum": "s = 0\n    for k, v in enumerate(np.linspace(0, 1, 5)): s = s + v * x\n    return s",
    "mesh": "a, b = np.meshgrid(np.arange(3), np.arange(3)); a[0] = 7; return a * x + b",
    "interp": "return np.interp(w, np.linspace(-1, 2, 4), np.array([0., 1, 4, 9]))",
    "lookup": "t = np.array([10., 20, 30]); i = (x > 0).astype(int).sum(axis=0) % 3; return t[i], np.array([[1,2],[3,4]])[i[:2] % 2]",
    "fft": "return np.fft.fft(np.ones(4)).real * 1.0, x + np.random.default_rng(0).normal(size=3)",
    "class": "class C:\n        def __init__(self): self.h = np.zeros(3)\n        def add(self, v): self.h += v; self.h[0] = 1; return self\n    c = C(); c.add(w).add(w * 2)\n    return c.h",
    "isclose": "return np.isclose(np.zeros(3), w), np.allclose(np.zeros(3), np.zeros(3)), np.array_equal(np.ones(2), np.ones(2))",
    "like": "a = np.empty_like(x); a[:] = 1; a[0] = w; b = np.zeros_like(x, dtype=int); b[1] = 3; c = np.full_like(w, 2); c[1:] = w[:2]; return a, b, c",
    "asarr": "y = np.asarray(x, dtype=float); z = np.atleast_2d(w); q = np.array(x, dtype='float32'); q[0] = 0; return y, z, q",
    "nested": "def inner(a, k):\n        if k == 0: return\n        a[k] = a[k-1] + w[k-1]; inner(a, k - 1)\n    a = np.zeros(4); inner(a, 3); return a",
    "swap": "a = x.copy(); a[[0, 2]] = a[[2, 0]]; a[:, [0, 1]] = a[:, [1, 0]]; return a",
    "cum": "a = np.zeros(4); a[1:] = np.cumsum(w); a[:-1] += a[1:]; return a, np.diff(a), np.trapezoid(a)",
    "outer": "a = np.zeros((3, 3)); a += np.outer(w, w); a -= a.mean(axis=0); a /= a.std() + 1; return a",
    "einsum": "a = np.ones((2, 3)); return np.einsum('ij,j->i', a, w), np.tensordot(a, x, 1), np.kron(np.eye(2), w[None])",
    "try": "a = np.zeros(2)\n    try:\n        a[5] = 1\n    except IndexError:\n        a[0] = w[0]\n    return a",
    "while": "a = np.array([1.0, 10]); k = 0\n    while a[1] > 1: a /= 2; k += 1\n    return a * w[0], k",
    "sort": "a = w.copy(); a.sort(); b = np.argsort(np.array([3, 1, 2])); return a[b], np.unique(np.array([1, 1, 2]))* w[0]",
    "det": "J = np.zeros((2, 2)); J[0, 0] = w[0]; J[0, 1] = -w[1]; J[1] = [w[2], 1]; return np.linalg.det(J), np.linalg.inv(J), np.linalg.solve(J, np.array([1., 2]))",
    "strings": "names = np.array(['a', 'b']); return w * len(names)",
    "bools": "m = np.zeros(3, dtype=bool); m[w > 0] = True; m[0] ^= True; return m, ~m, m.sum(), np.count_nonzero(m)",
    "tri": "L = np.tril(x); L[np.diag_indices(3)] = 1; i, j = np.triu_indices(3, 1); L[i, j] = 7; return L",
    "hist": "e = np.linspace(0, 1, 4); h = np.zeros(3); i = np.searchsorted(e, np.array([.1, .5, .6])) - 1; np.add.at(h, i, w); return h",
    "rolls": "a = np.arange(5.); a[::2] = np.roll(a, 1)[::2]; a[1] = w[0]; return a, a[::-1]",
    "setcol": "a = np.zeros((3, 2)); a[:, 0], a[:, 1] = w, w ** 2; return a, a.T @ a",
    "newax": "a = np.zeros(3); a[:, None][1] = w[0]; b = a[None, :]; b[0, 2] = 4; return a, b",
    "where": "a = np.where(w > 0, w, 0.0); a[0] = 9; i = np.where(np.array([0, 1, 1]))[0]; a[i] += 1; return a",
    "clip": "a = np.clip(w, 0, 1); a[a == 1] = 0.5; return np.round(a, 1), np.sign(a)",
    "loopfill": "out = np.empty((3, 3))\n    for i in range(3):\n        for j in range(i + 1): out[i, j] = out[j, i] = x[i] @ x[j]\n    return out",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets(name: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile(f"def f(x, w):\n    {SNIPPETS[name]}", f"{name}.py", "exec"), scope)
    check(scope["f"], X, W)


# --- programs of strangers --------------------------------------------------------------------------------------------


def heat(u: Any, steps: int) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u[0, :] = u[-1, :] = 0
        u[:, 0] = 1
    return u


def sieve(x: Any, n: int) -> Any:
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    primes = np.nonzero(prime)[0]
    return primes, x[primes].sum()


def lu(a: Any, n: int) -> Any:
    lower, upper = np.eye(n), a.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            lower[i, k] = upper[i, k] / upper[k, k]
            upper[i, k:] -= lower[i, k] * upper[k, k:]
    return lower, upper


def edit_distance(s: Any, t: Any, n: int, m: int) -> Any:
    d = np.zeros((n + 1, m + 1), dtype=int)
    d[:, 0] = np.arange(n + 1)
    d[0] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = min_(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (s[i - 1] != t[j - 1]))
    return d[n, m]


def min_(a: Any, b: Any, c: Any) -> Any:
    return np.minimum(np.minimum(a, b), c)


def particle_in_cell(x: Any, v: Any, cells: int) -> Any:
    density = np.zeros(cells)
    cell = np.floor(x * cells).astype(int) % cells
    share = x * cells - np.floor(x * cells)
    np.add.at(density, cell, 1 - share)
    np.add.at(density, (cell + 1) % cells, share)
    field = np.zeros_like(density)
    field[1:-1] = (density[:-2] - density[2:]) / 2
    field[0] = (density[-1] - density[1]) / 2
    field[-1] = (density[-2] - density[0]) / 2
    v = v + 0.01 * field[cell]
    x = (x + 0.1 * v) % 1.0
    return x, v, density


def floyd_warshall(d: Any, n: int) -> Any:
    d = d.copy()
    for k in range(n):
        np.minimum(d, d[:, k, None] + d[None, k, :], out=d)
    return d


def histogram(x: Any, bins: int) -> Any:
    counts = np.zeros(bins, dtype=int)
    places = np.clip((x * bins).astype(int), 0, bins - 1)
    np.add.at(counts, places, 1)
    return counts


def running(x: Any, n: int) -> Any:
    most, product = np.empty(n), np.ones(n + 1)
    most[0] = x[0]
    for k in range(1, n):
        most[k] = np.maximum(most[k - 1], x[k])
    for k in range(n):
        product[k + 1] = product[k] * x[k]
    return most, product[1:]


def gram_schmidt(a: Any, n: int) -> Any:
    q = np.zeros((n, n))
    for k in range(n):
        q[:, k] = a[:, k]
        for j in range(k):
            q[:, k] -= (q[:, j] @ a[:, k]) * q[:, j]
        q[:, k] /= np.sqrt((q[:, k] ** 2).sum())
    return q


def life(board: Any) -> Any:
    count = np.zeros(board.shape, dtype=int)
    count[1:-1, 1:-1] = (
        board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2] + board[1:-1, 2:] + board[2:, :-2]
        + board[2:, 1:-1] + board[2:, 2:]
    )  # fmt: skip
    after = np.zeros_like(board)
    after[(count == 3) | ((board == 1) & (count == 2))] = 1
    return after


def knapsack(values: Any, weights: tuple[int, ...], capacity: int) -> Any:
    best = np.zeros(capacity + 1)
    for k, weight in enumerate(weights):
        best[weight:] = np.maximum(best[weight:], best[: capacity + 1 - weight] + values[k])
    return best


def thomas(a: Any, b: Any, c: Any, d: Any, n: int) -> Any:
    b, d = b.copy(), d.copy()
    for i in range(1, n):
        m = a[i] / b[i - 1]
        b[i] -= m * c[i - 1]
        d[i] -= m * d[i - 1]
    x = np.zeros(n)
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def one_hot(labels: Any, n: int, classes: int) -> Any:
    y = np.zeros((n, classes))
    y[np.arange(n), labels] = 1
    return y


def rotation(angle: Any) -> Any:
    r = np.eye(3)
    r[:2, :2] = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return r


RNG = np.random.default_rng(0)
STRANGERS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (heat, (RNG.random((6, 5)), 3)), (sieve, (RNG.random(40), 40)), (lu, (RNG.random((4, 4)) + 4 * np.eye(4), 4)),
    (edit_distance, (np.array([1, 2, 3, 4]), np.array([2, 3, 3]), 4, 3)), (histogram, (RNG.random(20), 5)),
    (particle_in_cell, (RNG.random(9), RNG.normal(size=9), 6)), (floyd_warshall, (RNG.random((5, 5)), 5)),
    (running, (RNG.random(6), 6)), (gram_schmidt, (RNG.random((4, 4)), 4)), (life, ((RNG.random((6, 7)) > 0.5).astype(int),)),
    (knapsack, (RNG.random(3), (2, 3, 1), 7)), (thomas, (*RNG.random((4, 5)) + 1, 5)), (rotation, (0.3,)),
    (one_hot, (np.array([0, 2, 1]), 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STRANGERS)))
def test_programs_of_strangers(place: int) -> None:
    function, args = STRANGERS[place]
    static = [number for number, each in enumerate(args) if isinstance(each, int | tuple)]
    check(function, *args, static_argnums=static)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(STRANGERS)))
def test_programs_of_strangers_compiled(place: int) -> None:
    function, args = STRANGERS[place]
    static = [number for number, each in enumerate(args) if isinstance(each, int | tuple)]
    check(function, *args, mode="compiled", static_argnums=static)


def cholesky(a: Any) -> Any:
    n = len(a)
    factor = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    return factor


def bubble(x: Any) -> Any:
    x = x.copy()
    for last in range(len(x) - 1, 0, -1):
        for k in range(last):
            x[k], x[k + 1] = np.minimum(x[k], x[k + 1]), np.maximum(x[k], x[k + 1])
    return x


def normalized(a: Any) -> Any:
    out = np.empty(a.shape)
    for row, goal in zip(a, out, strict=True):
        goal[:] = row / np.abs(row).sum()
    for column in out.T:
        column -= column.mean()
    return out


def padded(a: Any) -> Any:
    n, m = a.shape
    out = np.zeros((n + 2, m + 2))
    out[1:-1, 1:-1] = a
    out[0], out[-1] = out[1], out[-2]
    if n > 3:
        out[:, 0] = n
    return out


@pytest.mark.parametrize("function", [cholesky, bubble, normalized, padded], ids=lambda each: each.__name__)
def test_programs_that_ask_for_sizes_and_write(function: Callable[..., Any]) -> None:
    traced = graphc.jit(function, mode="interpreted")
    for n in (3, 4, 3):
        x = np.random.default_rng(n).random((n, n))
        x = x[0] if function is bubble else x @ x.T + np.eye(n)
        npt.assert_allclose(traced(x), function(x), rtol=1e-12, atol=1e-12)
    assert len(traced.functions) == 2


def test_their_derivatives() -> None:
    rng = np.random.default_rng(1)
    cases: list[tuple[Callable[..., Any], Any]] = [
        (lambda u: (heat(u, 2) ** 2).sum(), rng.random((4, 4))),
        (lambda a: (lu(a, 3)[1] ** 2).sum(), rng.random((3, 3)) + 3 * np.eye(3)),
        (lambda a: gram_schmidt(a, 3)[0, 2], rng.random((3, 3)) + np.eye(3)),
        (lambda x: running(x, 4)[1].sum(), rng.random(4)), (lambda x: (rotation(x[0]) @ x).sum(), rng.random(3)),
        (lambda b: (thomas(b, b + 2, b, b + 1, 4) ** 2).sum(), rng.random(4)),
        (lambda x: (particle_in_cell(x, x, 5)[0] ** 2).sum(), rng.random(4) * 0.1 + np.arange(4) * 0.2 + 0.02),
    ]  # fmt: skip
    with graphc.options.change(mode="interpreted"):
        for f, x in cases:
            way, h = rng.normal(size=x.shape), 1e-4
            rise = (8 * (f(x + h * way) - f(x - h * way)) - (f(x + 2 * h * way) - f(x - 2 * h * way))) / (12 * h)
            npt.assert_allclose((graphc.grad(f)(x) * way).sum(), rise, rtol=1e-7, atol=1e-8)


def test_every_transformation_goes_through_writes() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x[0] * x[1]
        a[1:] = x[1:] ** 2
        b = a[::2]
        b *= x[0]
        return a

    x, way, h = np.array([0.5, 2.0, -1.0]), np.array([1.0, 0.5, 2.0]), 1e-5
    rise = (f(x + h * way) - f(x - h * way)) / (2 * h)

    @graphc.custom_vjp
    def doubled(x: Any) -> Any:
        y = np.empty(3)
        y[:] = x * 2
        return y

    doubled.defvjp(lambda x: (doubled(x), None), lambda _, slope: (slope * 3,))

    def changed(x: Any) -> Any:
        a = doubled(x)
        a[0] = x[0]
        b: Any = np.zeros(3)
        b[1] = x[2]
        c = b.at[0].set(x[1])
        c[2] = a[1]
        return a, b, c

    with graphc.options.change(mode="interpreted"):
        for found in (
            graphc.jvp(f, (x,), (way,))[1],
            graphc.linearize(f, x)[1](way),
            graphc.jacfwd(f)(x) @ way,
            graphc.jacrev(f)(x) @ way,
            graphc.vjp(f, x)[1](np.ones(3))[0] @ way * np.array(rise) / rise.sum(),
        ):
            npt.assert_allclose(found, rise, rtol=1e-8)
        for found, want in zip(graphc.jit(changed)(x), ([0.5, 4, -2], [0, -1, 0], [2, -1, 4]), strict=True):
            npt.assert_array_equal(found, want)
        npt.assert_array_equal(graphc.grad(lambda x: changed(x)[2].sum())(x), [0, 4, 1])


def test_names_that_a_module_has_from_numpy() -> None:
    text = (
        "from numpy import zeros, array as a, min as least, linalg\nfrom numpy.linalg import norm\n"
        "def f(x):\n    from numpy import ones\n    made = np.linspace\n"
        "    b, c, d = zeros(3), ones(3), made(0, 1, 3)\n    b[0] = x[0]\n    c[1:] *= x[1:]\n    d += x\n"
        "    return b, c, d, a([x[0], 2]), least([x[0], x[1]]), norm([x[0], x[1]]), list(map(zeros, [2]))\n"
    )
    scope: dict[str, Any] = {"np": np}
    exec(compile(text, "user.py", "exec"), scope)
    x = np.array([3.0, 4.0, 5.0])
    for found, want in zip(leaves(graphc.jit(scope["f"], mode="interpreted")(x)), leaves(scope["f"](x)), strict=True):
        npt.assert_array_equal(found, want)
    assert scope["zeros"] is np.zeros and scope["least"] is np.min  # put back


def test_what_is_imported_meanwhile_keeps_numpys_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import numpy as np\nOF_MODULE = np.ones(2)\nclass A:\n    of_class = np.zeros(2)\n"
    (tmp_path / "imported_meanwhile.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x: Any) -> Any:
        import_module("imported_meanwhile")
        return x

    graphc.jit(f, mode="interpreted")(np.ones(2))
    module = import_module("imported_meanwhile")
    assert type(module.OF_MODULE) is np.ndarray and type(module.A.of_class) is np.ndarray


FIRST_IMPORT = """
import sys, numpy as np, graphc
def imported(x):
    from numpy.random import normal
    return x * normal()
traced = lambda f: graphc.jit(f, mode="interpreted")(np.ones(2))
start, _ = set(sys.modules), traced(lambda x: 2 * x)
print("numpy.random" in set(sys.modules) - start)
for function in (imported, lambda x: x * np.random.normal(), lambda x: x * np.random.default_rng(1).normal()):
    try:
        print(traced(function).shape)
    except TypeError as error:
        print(str(error)[:27])
print(np.random.normal.__self__ is not None)
"""


@pytest.mark.slow
def test_numpys_random_numbers_are_imported_by_the_program_and_refused_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_IMPORT], capture_output=True, text=True, timeout=300, check=True)
    refused = "np.random.normal draws once"
    assert done.stdout.split("\n") == ["False", refused, refused, "(2,)", "True", ""]
