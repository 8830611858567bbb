"""What plain Python asks of a traced function, line by line: questions about sizes and dtypes, writes, values outside of
traces, names. Each line gives what NumPy gives, or is refused in a sentence that names the line."""
# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

import inspect
import json
import logging
import pickle
import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.trees import leaves

jit = graphc.jit
o = np.ones
SQUARE = np.arange(6.0).reshape(2, 3) + 0.5
X, SHORT = np.array([1.0, -2.0, 3.0]), np.ones(3, np.float32)

QUESTIONS: list[tuple[str, list[tuple[Any, ...]], int]] = [
    ("x * 10 if x.shape[0] == 3 else x", [(o(3),), (o(4),), (o(5),)], 2),
    ("x * 10 if x.shape[0] != 3 else x", [(o(3),), (o(4),)], 2),
    ("x * 10 if x.shape[0] in (2, 3) else x", [(o(3),), (o(4),), (o(2),)], 0),
    ("x * 10 if x.size == 3 else x", [(o(3),), (o((3, 1)),)], 0),
    ("1.0 if not x.shape[0] else x", [(o(3),), (o(0),)], 2),
    ("x * {3: 5.0}.get(x.shape[0], 2.0)", [(o(3),), (o(4),)], 0),
    ("x * 10 if x.shape == (3,) else x", [(o(3),), (o(4),)], 2),
    ("x * 10 if x.shape == y.shape else x * 1", [(o(3), o(3)), (o(4), o(1))], 0),
    ("0 if x.shape[0] == 0 else x.mean()", [(o(0),), (o(3),)], 2),
    ("sum(a * b for a, b in zip(x, y))", [(X, X * 2)], 1),
    ("(lambda a, b, c: a * b - c)(*x)", [(X,), (X + 1,)], 1),
    ("sum(i * a for i, a in enumerate(x))", [(X,)], 1),
    ("sum(x[i] for i in range(x.shape[0]))", [(X,), (o(5),)], 2),
    ("[row * 2 for row in x]", [(SQUARE,), (o((4, 3)),)], 2),
    ("np.cross(x, y)", [(X, X[::-1].copy())], 1),
    ("(x * x).sum()", [(o(3),), (o(40),)], 1),
    ("x[:100] if x.shape[0] > 100 else x", [(o(3),), (o(400),), (o(40),), (o(101),)], 2),
    ("x * len(x) + hash(x.shape[0]) + [0, 1, 2, 3][x.shape[0]] + int(x.shape[0])", [(o(3),), (o(2),)], 2),
    ("x if bool(x.shape[0]) else 1.0", [(o(3),), (o(0),)], 2),
    ("x * (2 if x.dtype == np.float32 else 3)", [(SHORT,), (o(3),)], 2),
    ("x * (2 if x.dtype is np.dtype('f4') else 3)", [(SHORT,), (o(3),)], 2),
    ("x * (2 if x.dtype.kind == 'f' else 3) * x.dtype.itemsize", [(SHORT,), (o(3, int),)], 2),
    ("x * (2 if np.issubdtype(x.dtype, np.floating) else 3)", [(SHORT,), (o(3, int),)], 2),
    ("x * np.finfo(x.dtype).eps + x.astype(np.result_type(x.dtype, np.float32))", [(SHORT,), (o(3),)], 2),
    ("scipy.special.beta(x, 2.0) + scipy.special.exp1(x)", [(X + 3,)], 1),
    ("scipy.stats.norm.logpdf(x, 1.0, 2.0) + scipy.special.logsumexp(x)", [(X,)], 1),
    ("scipy.linalg.cho_solve(scipy.linalg.cho_factor(x), o(3))", [(np.eye(3) * 3 + 0.1,)], 1),
    ("np.c_[x, y], np.r_[0, x], np.mgrid[0 : x.shape[0]] * x, x[np.s_[1:]]", [(X, X)], 1),
    ("np.apply_along_axis(lambda r: r.sum() * r, 1, x)", [(SQUARE,)], 1),
]  # fmt: skip
"""Expressions, arguments of calls, and the number of variants (0: as many as it takes)."""


@pytest.mark.parametrize(("text", "calls", "count"), QUESTIONS)
def test_a_question_is_answered_as_by_numpy(text: str, calls: list[tuple[Any, ...]], count: int) -> None:
    names = ", ".join("xy"[: len(calls[0])])
    scope: dict[str, Any] = {"np": np, "o": o, "scipy": scipy}
    exec(f"def f({names}):\n    return {text}", scope)
    traced = jit(scope["f"], mode="interpreted")
    for args in calls:
        for got, want in zip(leaves(traced(*args)), leaves(scope["f"](*args)), strict=True):
            npt.assert_allclose(got, want, rtol=1e-6 if args[0].dtype == "float32" else 1e-12)
            assert np.shape(got) == np.shape(want)
    assert count in (0, len(traced.functions))


def test_sizes_of_declared_variables_have_no_answers_and_are_looked_up() -> None:
    x = T.dvector("x")
    with pytest.raises(TypeError, match=r"test_plain_python.*ifelse.*T\.eq.*x\.type"):
        assert x.shape[0] == 3
    a, b, c = T.dscalars("abc")
    assert a in [b, a] and c not in [a, b] and {a: 1, b: 2}[b] == 2 and [a, b].index(b) == 1
    v = T.fvector("v")
    assert v.dtype == np.float32 and v.dtype.startswith("float") and v.dtype + "" == "float32"
    assert v.dtype.kind == "f" and v.dtype.itemsize == 4 and np.issubdtype(v.dtype, np.floating)
    assert np.finfo(v.dtype).eps == np.finfo("f4").eps and np.result_type(v, np.float64) == "float64"


def test_variants_are_listed_logged_and_warned_of(caplog: Any) -> None:
    traced = jit(lambda x: x * len(x), mode="interpreted", max_variants=2)
    with caplog.at_level(logging.INFO, "graphc.recompiles"):
        traced(o(1))
        traced(o(2))
    assert "test_plain_python.py:" in caplog.messages[0] and "test_plain_python.py:" in str(traced.variants())
    with pytest.warns(RuntimeWarning, match="test_plain_python.py:") as told:
        for n in range(3, 8):
            traced(o(n))
    assert len(told) == 1


def written(n: Any, v: Any) -> Any:
    a, c = np.zeros(4), np.zeros(3)
    a[1] = v[0] * n
    a[1:] += v
    b = a[::2]
    b[0] = 1
    np.add(v, a[1:], out=c)
    d = c.copy()
    d.sort()
    e = np.zeros((3, 3))
    np.fill_diagonal(e, v.sum())
    e[0].fill(2)
    for i in range(3):
        c[i] = c[i - 1] * 2 if i else v[1]
    return a, b, c, d, e


def in_loops(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        a[i] = x[i] * 2
        a[1:] += 1
        return a

    def first(a: Any) -> Any:
        a[0] = 9
        return a

    return lax.fori_loop(0, 3, body, jnp.zeros(3)), lax.cond(x[1] < 0, first, lambda a: a, x.copy())


def test_writes_are_numpys_and_have_derivatives() -> None:
    for got, want in zip(jit(written, mode="interpreted")(2.0, X), written(2.0, X), strict=True):
        npt.assert_allclose(got, want)
    loop, branch = jit(in_loops, mode="interpreted")(X)
    npt.assert_array_equal(loop, [2.0, -2.0, 7.0])
    npt.assert_array_equal(branch, [9.0, -2.0, 3.0])

    def cost(v: Any) -> Any:
        return sum((each**2).sum() for each in written(2.0, v))

    slope = graphc.grad(cost, mode="interpreted")(X)
    for k, along in enumerate(np.eye(3)):
        npt.assert_allclose(slope[k], (cost(X + 1e-6 * along) - cost(X - 1e-6 * along)) / 2e-6, rtol=1e-6)


LEAKED, REAL = list[Any](), np.zeros((2, 2))


def set_argument(x: Any) -> Any:
    x[0] = 1
    return x


def write_real(x: Any) -> Any:
    REAL[0, 0] = x[0]
    return x


def leak(x: Any) -> Any:
    a = np.zeros(3)
    a[0] = x[0]
    LEAKED.append(a)
    return a


def set_leaked(x: Any) -> Any:
    LEAKED[0][0] = 1
    return x


def failing(a: Any, b: Any) -> Any:
    assert a.shape == b.shape
    return a + b


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: jit(set_argument)(o(3)), r"cannot be (assigned|written) to"),
    (lambda: jit(lambda x: (x.sort(), x)[1])(o(3)), r"jnp.sort\(x\) is a sorted copy"),
    (lambda: jit(lambda x: (x.fill(0), x)[1])(o(3)), "jnp.full_like"),
    (lambda: jit(write_real)(o(3)), "cannot be written into an array of NumPy's; jnp.stack"),
    (lambda: (jit(leak, mode="interpreted")(o(3)), jit(set_leaked)(o(3))), "made it has returned|is traced by itself"),
    (lambda: jit(lambda x: x + LEAKED[0])(o(3)), "what is used outside it must be among its results"),
    (lambda: jit(lambda a, b: np.einsum("ij,jk->ik", a, b))(o((2, 3)), o((4, 5))), "subscript j: operand 2, b"),
    (lambda: jit(lambda x: float(x) + 1)(o(3)), "cannot become a float"),
    (lambda: jit(lambda x: np.maximum.reduce([x[0], x[1]]))(o(3)), "np.maximum.reduce asks for"),
    (lambda: jit(lambda x: np._core.multiarray.array([x]))(o(3)), "has no elements while the function is traced"),
]


@pytest.mark.parametrize(("call", "told"), REFUSED)
def test_what_cannot_be_is_refused_with_its_line(call: Callable[[], Any], told: str) -> None:
    with pytest.raises((graphc.GraphcError, TypeError), match=told) as caught:
        call()
    assert "test_plain_python.py:" in str(caught.value)


def test_an_assertion_about_sizes_holds_or_fails() -> None:
    npt.assert_array_equal(jit(failing, mode="interpreted")(o(3), o(3)), 2 * o(3))
    with pytest.raises(AssertionError):
        jit(failing, mode="interpreted")(o(3), o(2))


def test_outside_of_traces_nothing_is_symbolic() -> None:
    assert float(jnp.sum(o(3))) == 3.0 and lax.scan(lambda c, x: (c + x, c), 0.0, o(3))[0] == 3.0
    noisy = jit(lambda key, x: graphc.random.normal(key, (3,)) + x, mode="interpreted")
    assert noisy(graphc.random.key(0), o(3)).shape == (3,)
    total = jit(lambda x: x.sum(), mode="interpreted")(o(3))
    assert json.dumps(total) == "3.0" and isinstance(total, float) and f"{total:.2f}" == "3.00"
    assert not isinstance(jnp.sum(T.dvector()), np.ndarray)


UPDATES: list[tuple[str, list[float] | float]] = [
    ("x.at[0].set(5.0)", [5, -2, 3]), ("x.at[0].add(5.0)", [6, -2, 3]), ("x.at[0].multiply(5.0)", [5, -2, 3]),
    ("x.at[0].divide(5.0)", [0.2, -2, 3]), ("x.at[1].power(2)", [1, 4, 3]), ("x.at[:].min(0.0)", [0, -2, 0]),
    ("x.at[:].max(0.0)", [1, 0, 3]), ("x.at[1].apply(np.abs)", [1, 2, 3]), ("x.at[0].subtract(1)", [0, -2, 3]),
    ("x.at[7].get(mode='fill', fill_value=8.0)", 8), ("x.at[7].set(1.0, mode='drop')", [1, -2, 3]),
    ("x.at[7].set(1.0, mode='clip')", [1, -2, 1]), ("x.astype('uint8').at[0].subtract(2)[0]", 255),
]  # fmt: skip


def test_changed_copies() -> None:
    functions = [eval(f"lambda x: {text}", {"np": np}) for text, _ in UPDATES]
    found = jit(lambda x: [f(x) for f in functions], mode="interpreted")(X)
    for got, (text, want) in zip(found, UPDATES, strict=True):
        npt.assert_allclose(got, want, err_msg=text)


SCALARS = [
    ("jnp.float32(x), jnp.int32(x), jnp.bool_(x), jnp.complex64(x)", "x.astype(np.float32), x.astype(np.int32), x.astype(bool), x.astype(np.complex64)"),
    ("jnp.float32([x[0], 2]), jnp.int8(x[1]), jnp.float32(2.5), jnp.single is jnp.float32", "np.float32([x[0], 2]), np.int8(x[1]), np.float32(2.5), True"),
    ("x.astype(jnp.float32), jnp.zeros(2, jnp.int32), np.zeros(2, jnp.bool_)", "x.astype(np.float32), np.zeros(2, np.int32), np.zeros(2, bool)"),
    ("x.dtype == jnp.float64, jnp.float64 == x.dtype, {np.float64: 1}[jnp.double], isinstance(x.sum(), jnp.float64)", "True, True, 1, True"),
    ("np.issubdtype(jnp.int8, np.integer), isinstance(np.float32(1), jnp.float32), np.finfo(jnp.float32).bits", "True, True, 32"),
]  # fmt: skip


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["plain", "traced"])
def test_types_of_scalars_convert_and_are_dtypes(how: Callable[..., Any]) -> None:
    for text, wanted in SCALARS:
        scope = {"np": np, "jnp": jnp}
        found, expected = how(eval(f"lambda x: ({text})", scope))(X), eval(f"lambda x: ({wanted})", scope)(X)
        for one, other in zip(found, expected, strict=True):
            npt.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype, text
    assert pickle.loads(pickle.dumps(jnp.float32)) is jnp.float32


NAMES = {
    graphc: """custom_vjp custom_jvp jvp vjp linearize hvp stop_gradient checkpoint value_and_grad grad jacfwd jacrev hessian
        vmap eval_shape make_graph pure_callback disable_jit debug tree scipy optimizers install_as_theano lax cache nnet nn""",
    graphc.tree: """map flatten unflatten leaves structure reduce register_dataclass register_pytree_node ravel_pytree""",
    lax: """dynamic_slice dynamic_update_slice associative_scan select top_k cumsum cumprod cummax cummin gather scatter
        fori_loop while_loop scan cond switch map""",
    jnp: " ".join(np.__all__),
}
FOREIGN = [
    (graphc.random, "key_data", "a number of uint64"),
    (graphc.ops, "segment_sum", r"\.at\[segments\]\.add"), (graphc, "make_jaxpr", "graphc.make_graph"),
    (import_module("graphc.scipy.integrate"), "BDF", 'method="Radau"'), (graphc, "tree_map", "graphc.tree.map"),
    (lax, "psum", "no axes of devices"),
]  # fmt: skip


def test_names_are_there_or_say_what_stands_for_them() -> None:
    for module, names in NAMES.items():
        assert not [name for name in names.split() if not hasattr(module, name)], module
        assert not [name for name in dir(module) if name[0] == "_" and name[:2] != "__"]
    for module, name, told in FOREIGN:
        with pytest.raises(AttributeError, match=told):
            getattr(module, name)
    namespace: Any = jnp
    info = namespace.__array_namespace_info__()
    assert {"float32", "complex128"} <= {*info.dtypes()}
    assert namespace.__version__ == np.__version__


@jit
def scaled(x: float, scale: float = 2.0) -> Any:
    """Return a multiple."""
    return x * scale


def test_a_jitted_function_is_a_function() -> None:
    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Return a multiple."
    assert inspect.signature(scaled) == inspect.signature(scaled.__wrapped__)
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    lazily = jit(scaled.__wrapped__, mode="interpreted")
    out = np.zeros(3)
    assert lazily(o(3), out=out) is out and out[0] == 2
    assert lazily.lower(o(3)).text and lazily.explain(o(3)) and graphc.printing.pp(lazily)


HELPERS = """
from numpy import array, zeros


def clipped(x):
    return max(0.0, min(1.0, x))


def table(x):
    out = zeros(2)
    out[0], out[1] = x, max(x, 2 * x)
    return out


class Model:
    def __init__(self, low):
        self.low = max(low, 0.0)

    def run(self, x):
        return array([max(self.low, each) for each in x])
"""


def test_helpers_of_other_modules_are_traced_like_those_of_the_functions_own() -> None:
    helpers = ModuleType("helpers_of_a_program")
    exec(compile(HELPERS, "helpers_of_a_program.py", "exec"), vars(helpers))
    before, model, clipped = dict(vars(helpers)), helpers.Model(0.3), helpers.clipped
    calls: list[Callable[[Any], Any]] = [
        lambda x: clipped(x[0]) * x, lambda x: helpers.table(x[1]), model.run,
        lambda x: helpers.Model(x[2]).run(x), lambda x: np.array([*map(helpers.clipped, x)]),
    ]  # fmt: skip
    x = np.array([0.5, -2.0, 0.7])
    for place, call in enumerate(calls):
        npt.assert_array_equal(jit(call, mode="interpreted")(x), call(x), err_msg=str(place))
    assert vars(helpers) == before
    with graphc.options.change(mode="interpreted"):
        npt.assert_array_equal(graphc.grad(lambda x: helpers.table(x[0])[1])(x), [2, 0, 0])


def test_every_public_name_of_jax_is_here_or_says_why() -> None:
    listed = tomllib.loads((Path(__file__).parents[2] / "book" / "jax_names.toml").read_text("utf-8"))
    del listed["jax.experimental.sparse"]
    said = []
    for module, names in listed.items():
        own = import_module(module.replace("jax", "graphc", 1))
        for name in names.split():
            try:
                getattr(own, name)
            except AttributeError as error:
                said.append(str(error))
    assert said
    reasons = [re.split(r": |; ", text, maxsplit=1)[-1] for text in said]
    assert not [text for text in reasons if len(text.split()) < 3 or "meant" in text or "dir(lax)" in text]
