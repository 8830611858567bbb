"""Arrays that a function writes to: each name and view sees it, as in NumPy; what cannot be known is refused."""
# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.errors import GraphcError, GraphTypeError, RankError, ShapeError
from graphc.ir.walk import nodes_of

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
a = x * 2; b = a; a += 1; return a, b | a = x * 2; b = a[0]; a += 1; return b | a = x * 2; b = a[0]; b += 1; return a
a = xp.exp(x).T; a += 1; return a | a = x * 2; b = [a]; a += 1; return b[0] | a = x * 2; b = lambda q=a: q; a += 1; return b()
d = {'k': x * 2}; a = d['k']; d['k'] += 1; return a, d['k'] | a = x * 2; b = a.T; a += w; return b | a = x * 2; b = a.T; b += w; return a
p = x * 2; a = xp.stack([p, p]); r = a[0]; a += 1; r -= w; return p, a, r | a = xp.zeros((2, 2)); b, c = a; b += 1; a *= 3; c -= 1; return a, b, c
a = xp.zeros((2, 2)); for b in a: > b += 1; b[0] = 5; return a | a = xp.zeros((2, 3)); b = xp.reshape(a, 6); b[4] = x[0, 0]; a += 1; return a, b
a = x * 2; b = xp.asarray(a); a += 1; return b | a = x * 2; b = a.real; a += 1; b.real = a * 2; return b, a | a = x * 2; b = np.transpose(a); a += w; return b
import operator; a = x * 2; b = operator.iadd(a, 1); return a, b | a = x * 2; for b in [a]: > b += 1; return a | a = x * 2; b = xp.squeeze(a); a += 1; return b
a = x * 2; b = a.reshape(9); del b; a += 1; return a | a = x * 2; d = xp.diagonal(a); a += 1; return d | a, b = xp.split(x * 2, [1]); a += 1; b -= w; return a, b
a = x * 2; p, q, r = xp.split(a, 3); p += 1; q[:] = p; r[0, 1] = 9; return a | a = x * 2; def g(): > nonlocal a;     a += 1; g(); return a
a = x.copy(); a[0] = 1; a[1:, 1] = w[:2]; a[..., 2] += a[..., 0]; a[-1, -1] = 7; return a | a = x.copy(); a[0], a[1] = a[1], a[0]; return a
a = x.copy(); a[[0, 1]] = a[[1, 0]]; a[[2, 2]] += 1; a[a > 1] = 0; a[a < 0] *= 2; return a | a = x.copy(); a[1:] += a[:-1]; return a
a = x.copy(); t = a[a > 0]; v = t[1:]; v += 1; a[a > 0] = t; return a | a = x.copy(); m = a > 0; t = a[m]; t *= 2; a[0] = 5; a[m] = t; t += 1; return a, t
a = x.copy(); b = a[1:][:, ::2]; b[0] = [7, 8]; b[:, 1] -= 1; c = b.T; c[0] = 5; a[2] = w; return a, b, c | a = x.copy(); a[:] = w; a[...] += 1; return a
a = x.copy(); a.T[0] = 7; a.swapaxes(0, 1)[1] += w; xp.moveaxis(a, 0, 1)[2, 1] = 0; return a | a = x.copy(); b = a.flat; b[1] = 9; b[3:5] = 2; c = b[0:2]; a += 1; return a, c
a = x.copy(); a.ravel()[4] = 9; a.reshape(-1)[::4] = w; a.flat = 3; return a | a = x.copy(); b = xp.rot90(a); b[0] = w; xp.flip(a, 1)[1] = w; return a, b
a = x.copy(); b = a[None]; b[0, 1] = 3; xp.expand_dims(a, 2)[0] = 4; xp.atleast_2d(w * 1)[0] += 1; return a | a = w.copy(); b = a[..., 1]; b += 5; b[...] += 1; return a, b
a = x.copy(); np.add(a, w, out=a); np.multiply(a[1], 2, out=a[1]); b = np.negative(a, out=a); b[0] = 5; return a | a = xp.zeros(3); b = np.sum(x, axis=0, out=a); b += 1; return a
a = xp.ones_like(x); np.divide(x, w, out=a, where=w > 0); return a | a = x.copy(); a.clip(0, 1, out=a); xp.exp(a, out=a); np.cumsum(a, axis=1, out=a); return a
a = x.copy()[::-1]; a.sort(); a.T.sort(axis=0); a[0].fill(w[0]); return a | a = x.copy(); np.fill_diagonal(a, w[0]); xp.fill_diagonal(a[:2], 5); return a
a = x.copy(); np.copyto(a, w); np.copyto(a, 3, where=x > 1); np.copyto(a[0], x[1]); return a | a = x.copy(); np.put(a, [0, 4, -1], [1, 2]); a.put([1], 5); np.put(a, [10], 3, mode='wrap'); return a
a = x.copy(); np.place(a, a > 0, [1, 2]); np.putmask(a, a < 0, [7, 8, 9]); return a | a = x.copy(); np.put_along_axis(a, xp.argsort(x, axis=1)[:, :1], 9.0, axis=1); return a
a = x.copy(); np.add.at(a, [0, 0, 1], 1); np.subtract.at(a, ([0, 0], [1, 1]), w[:2]); xp.add.at(a, 2, w); return a | a = (x * 3).astype('int8'); a[0] = 2.9; a[1] = w; a[2] += 1; return a
a = xp.zeros(()); b = a; b += 2; a[...] = a + x[0, 0]; return a, b | a = xp.array([x[0, 0], 2]); b = xp.array(a); c = xp.array(a, copy=False); a[0] = 5; return a, b, c
a = x.copy(); b = xp.nan_to_num(a, copy=False); b += 1; return a | a = x * 1; b = a.astype(a.dtype, copy=False); c = a.astype(a.dtype); a += 1; return b, c
a = x > 0; b = a[0]; b[1] = True; a |= x == 2; return a, b | a = (x == 2); a[0] = True; a &= x < 5; return a | a = x * 1; c = x * 1 == a; a[0] = 9; c[0, 0] = False; return c
a = x.copy(); a[x.argmax(axis=1), 1] = 0; a[xp.arange(3), xp.arange(3)] += 1; return a | a = x.copy(); k = (x > 0).sum() % 3; a[k] = 1; a[k:] += 2; b = a[k]; b *= 3; return a
a = x.copy(); a[0] = w[None]; a[1:2] = 4; a[:, :1] = w[:, None]; return a | def g(q): > q[0] = 5;     return q; a = x * 2; b = g(a[1]); return a, b
"""
"""Programs, as NumPy has them."""


@pytest.mark.parametrize("text", [each.strip() for each in ANSWERED.strip().replace("\n", " | ").split(" | ")])
def test_all_names_and_views_see_a_write(text: str) -> None:
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


ARGUMENTS = """
x += 1 | x[0] = 1 | b = x; b += 1 | a = x[0]; a += 1 | x.T[0] = 1 | xp.broadcast_to(w, (3, 3))[0] = 1 | a = x.reshape(-1); a[0] = 1 | x[0][1] += 1
np.add(x, 1, out=x) | x.sort() | x.fill(0) | np.copyto(x, 1) | np.add.at(x, 0, 1) | a = xp.asarray(x); a += 1 | x.flat[0] = 1 | np.fill_diagonal(x, 1)
for row in x[:1]: > row += 1 | a = x[..., 0, 0]; a += 1 | a = xp.squeeze(x[:1, :1]); a += 1 | a = x.real; a += 1 | a, b = xp.split(x, [1]); a[0] = 1 | x.clip(0, 1, out=x) | np.nan_to_num(x, copy=False) | np.random.shuffle(x) | a = x.conj(); a += 1
"""


@pytest.mark.parametrize("text", [each.strip() for each in ARGUMENTS.strip().replace("\n", " | ").split(" | ")])
def test_an_argument_is_not_written_to(text: str) -> None:
    with pytest.raises(GraphcError, match=r"changed\.py:\d+"):
        traced(f"{text}; return x")(X, W)


def test_the_message_says_what_the_array_is() -> None:
    said = r"x \(.*\) cannot be written to by `x\[key\] = value`: it is x, an argument of f .*x = x\.copy\(\) first.*changed\.py:2"
    with pytest.raises(GraphTypeError, match=said):
        traced("x[0] = 1; return x")(X, W)
    with pytest.raises(GraphTypeError, match=r"`x \+= y`: it is w, an argument of f"):
        traced("b = w[1:]; b += 1; return w")(X, W)
    for text in ("a = np.diagonal(x * 2); a += 1", "a = xp.broadcast_to(w * 2, (3,)); a[0] = 1"):
        with pytest.raises(GraphTypeError, match=r"read-only.*changed\.py:\d"):
            traced(f"{text}; return a")(X, W)
    with pytest.raises(GraphTypeError, match=r"`np\.add\(out=x\)`: an array of NumPy's.*changed\.py:\d"):
        traced("a = np.fft.fftfreq(3); np.add(w, 1, out=a); return a")(X, W)


def test_a_donated_argument_of_complex_numbers() -> None:
    def f(z: Any, x: Any) -> Any:
        z[1:] *= 2j
        z.real += x
        return z

    z = X * (1 + 2j)
    for chosen in (z, z.T, z[::-1], z.astype("complex64")):
        f(wanted := chosen.copy(), 3.0)
        donated = graphc.jit(f, donate="z", mode="interpreted")
        npt.assert_array_equal(donated(chosen.copy(), 3.0), wanted)
        assert donated(chosen.copy(), 3.0).dtype == wanted.dtype


def test_a_donated_argument_is_written_to() -> None:
    def f(x: Any, w: Any) -> Any:
        x[0] += w
        x.T[1] *= 2
        return x

    x = X.copy()
    npt.assert_array_equal(graphc.jit(f, donate_argnums=0, mode="interpreted")(x, W), f(X.copy(), W))
    for chosen in ({"donate": "x"}, {"donate": 0}, {"donate": ["x"]}, {"donate_argnames": "x"}, {"donate": (1, "x")}):
        donated: Any = graphc.jit(f, **chosen, mode="interpreted")
        for found in (donated(X.copy(), W), donated(x=X.copy(), w=W)):
            npt.assert_array_equal(found, f(X.copy(), W))
    with pytest.raises(GraphTypeError, match="it is x, an argument of f"):
        graphc.jit(f, donate_argnums=1, mode="interpreted")(x, W)
    with pytest.raises(GraphcError, match="has no parameter 'q', which donate_argnames lists"):
        graphc.jit(f, donate="q")


UNKNOWN = """
a = x * 2; b = xp.reshape(a, 9); {}; return {} | a = x * 2; b = a.ravel(); {}; return {} | a = xp.zeros_like(x); b = a.reshape(-1); {}; return {}
a = x * 2; b = xp.einsum('ij->ji', a); {}; return {} | a = x.copy().T; b = a.reshape(9); {}; return {} | a = x * 2; b = xp.ascontiguousarray(a); {}; return {} | a = x * 2; b = xp.asarray(a, order='C'); {}; return {}
a = xp.zeros((4, 3))[::2]; b = a.reshape(6); {}; return {} | a = xp.zeros((3, 4))[:, 1:3]; b = a.reshape(6); {}; return {}
a = (x * 1) * 2; b = a.reshape(9); {}; return {} | a = xp.swapaxes(x.copy(), 0, 1); b = a.reshape(9); {}; return {}
"""


@pytest.mark.parametrize("text", [each.strip() for each in UNKNOWN.strip().replace("\n", " | ").split(" | ")])
def test_what_depends_on_the_order_in_memory_is_not_guessed(text: str) -> None:
    for change, read in (("a += 1", "b"), ("b += 1", "a"), ("c = b[1:]; a[0] = 1", "c"), ("c = a[1:]; b[0] = 1", "c")):
        with pytest.raises(GraphTypeError, match=r"order of elements in memory.*x\.copy\(\)"):
            traced(text.format(change, read))(X, W)
    for change, read in (("a += 1", "a"), ("b += 1", "b"), ("c = b + 0; a += 1", "c"), ("del a; b[0] = 5", "b")):
        filled = text.format(change, read)
        npt.assert_allclose(traced(filled)(X, W), function_of(filled, np)(X.copy(), W), rtol=1e-14)


def test_an_array_is_written_to_where_it_was_made() -> None:
    def by_scan(x: Any) -> Any:
        a = x * 1

        def step(total: Any, row: Any) -> Any:
            a[0] = row
            return total, row

        return lax.scan(step, 0.0, x)[1]

    def by_cond(x: Any) -> Any:
        a = x * 1
        return lax.cond(x.sum() > 0, lambda: a.fill(0) or a, lambda: a)

    def by_grad(x: Any) -> Any:
        a = x * 1
        return graphc.grad(lambda y: a.__iadd__(y).sum())(x)

    for f in (by_scan, by_cond, by_grad):
        with pytest.raises(
            GraphTypeError, match=r"belongs outside of the function, loop or branch .*test_in_place\.py:\d"
        ):
            graphc.jit(f, mode="interpreted")(np.ones(3))
    kept: list[Any] = []
    graphc.jit(lambda x: kept.__iadd__([x * 2]) and x, mode="interpreted")(np.ones(3))
    with pytest.raises(GraphTypeError, match=r"the function that made it has returned"):
        kept[0][0] = 1


def test_a_carry_is_the_steps_own() -> None:
    def body(k: Any, a: Any) -> Any:
        a[k] = a[k - 1] + k
        a[:1] += 1
        return a

    def loop(x: Any) -> Any:
        return lax.fori_loop(1, 4, body, x), lax.cond(x[0] > 0, lambda a: a.sort() or a, lambda a: a, x)

    x = np.array([3.0, 1.0, 2.0, 0.0])
    wanted = x.copy()
    for k in range(1, 4):
        wanted = body(k, wanted)
    for found, want in zip(graphc.jit(loop, mode="interpreted")(x), (wanted, np.sort(x)), strict=True):
        npt.assert_array_equal(found, want)


def test_a_function_within_gives_an_array_that_may_be_written_to() -> None:
    inner = graphc.jit(lambda x: x * 2)

    def outer(x: Any) -> Any:
        a = inner(x)
        a[0] = 5
        slope = graphc.grad(lambda y: (y**2).sum())(a)
        slope[1] += 1
        return a, slope

    for found, want in zip(graphc.jit(outer, mode="interpreted")(np.ones(3)), ([5.0, 2, 2], [10.0, 5, 4]), strict=True):
        npt.assert_array_equal(found, want)


def test_writes_cost_a_few_nodes_each() -> None:
    def f(x: Any, count: int) -> Any:
        a, b = jnp.zeros(200), jnp.zeros((2, 200)).T
        for k in range(count):
            a[k] = x[k] * 2
            b[k, 1] += a[k]
        return a, b

    counts = []
    for count in (50, 100, 200):
        traced_once = graphc.jit(f, static_argnames="count", mode="interpreted")
        x = np.arange(200.0)
        npt.assert_array_equal(traced_once(x, count=count)[0][:count], 2 * x[:count])
        counts.append(len(nodes_of([out.variable for out in traced_once.functions[0].outputs])))
    assert counts[2] - counts[1] < 2.2 * (counts[1] - counts[0])


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
    with pytest.raises(RankError, match="cannot take a y of 1 axes"):
        traced("a = x * 2; a @= w; return a")(X, W)


def test_derivatives_go_through_what_is_written() -> None:
    def power_sum(x: Any) -> Any:
        total = jnp.zeros_like(x)
        for power in range(1, 4):
            total += x**power
        total *= total
        return total.sum()

    def views(x: Any) -> Any:
        a = jnp.zeros((2, 3))
        a[0, :2] = x
        a.T[2] = a[0, 0] * a[0, 1]
        b = a.ravel()
        b[1:] += b[:-1] ** 2
        a[a > 1] *= 2
        np.multiply(a, x[0], out=a)
        np.add.at(b, [0, 0, 3], x[1])
        c = jnp.cos(a)
        c[0], c[1] = c[1], c[0]
        return (c * a).sum()

    def steps(x: Any) -> Any:
        def step(a: Any, k: Any) -> Any:
            a[0] = a[1] * x[0] + k
            a[1] -= a[0] ** 2
            return a, a[0]

        last, rows = lax.scan(step, x * 1, jnp.linspace(0.0, 1.0, 3))
        return last.sum() + (rows**2).sum()

    x, ways = np.array([0.5, -0.7]), np.random.default_rng(0).normal(size=(3, 2))
    with graphc.options.change(mode="interpreted"):
        for f in (power_sum, views, steps):
            value = graphc.jit(f)
            for way in ways:
                rise = sum(
                    weight * (value(x + h * way) - value(x - h * way))
                    for h, weight in ((1e-3, 2 / 3e-3), (2e-3, -1 / 12e-3))
                )
                npt.assert_allclose(graphc.grad(f)(x) @ way, rise, rtol=1e-8, atol=1e-8)
            npt.assert_allclose(graphc.vmap(f)(np.stack([x, 2 * x])), [value(x), value(2 * x)], rtol=1e-12)


@pytest.mark.slow
def test_writes_are_in_place_in_compiled_code() -> None:
    def relax(u: Any) -> Any:
        u = u.copy()
        u[1:-1] += u[1:-1] * 0.5
        u[0] = 0
        u[-1] = 1
        return u

    x = np.arange(12.0).reshape(4, 3)
    compiled = graphc.jit(relax)
    npt.assert_allclose(compiled(x), relax(x), rtol=1e-14)
    assert "t0" not in compiled.functions[0].source


def test_a_part_that_is_changed_in_place_is_written_once() -> None:
    """`u[1:-1] += v` writes the view, and then the view into the array, where it is."""

    def changed(u: Any) -> Any:
        u = u.copy()
        u[1:-1] += u[2:]
        u[:, 1] *= 2.0
        return u

    text = graphc.make_graph(changed)(np.ones((4, 3)))
    assert text.count("set_subtensor") == 2
    values = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(graphc.jit(changed, mode="interpreted")(values), changed(values))
