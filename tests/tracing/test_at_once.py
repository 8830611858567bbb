"""Outside of traced functions nothing is symbolic: `graphc.numpy`, `lax` and `random` of arrays and numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax, random
from graphc.errors import GraphcError, GraphTypeError
from graphc.ir.node import Node
from graphc.tracing.identity import identity
from graphc.tracing.plain_calls import PlainCalls

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


# --- NumPy's functions ------------------------------------------------------------------------------------------------

CALLS = """
xp.sum(x)
xp.sum(x, axis=0, dtype="float32")
xp.zeros((3,))
xp.array([1, 2], dtype="int8", ndmin=2)
xp.array([[1.0], [2.0]], order="F").flags.f_contiguous
xp.shares_memory(xp.asarray(x), x)
xp.ascontiguousarray(1.0)
xp.arange(3)
xp.r_[1:3, 0, 5.0]
xp.c_[x, x]
xp.mgrid[0:2, 0:3]
xp.ogrid[0:1:5j]
xp.add(x, 1, where=x > 2, out=xp.zeros_like(x))
xp.add.reduceat(x[0], [0, 1])
xp.add.nin
xp.subtract.outer(x[0], x[1])
xp.maximum.accumulate(x, axis=1)
xp.exp(xp.array([1], "float16"))
xp.equal("a", "a")
xp.not_equal(x, 0)
xp.linalg.norm(x, ord=2)
xp.linalg.eigvals(xp.array([[0.0, 1.0], [-1.0, 0.0]]))
xp.where(x > 2)
xp.stack([x, x]).shape
xp.concatenate([[1, 2], [3.5]])
xp.sort([3, 1, 2])
""".strip().splitlines()


@pytest.mark.parametrize("expression", CALLS)
def test_arrays_are_numpys_own_business(expression: str) -> None:
    wanted, found = (eval(expression, {"xp": module, "x": X.copy()}) for module in (np, jnp))
    assert type(found) is (jnp.ndarray if type(wanted) is np.ndarray else type(wanted))
    npt.assert_equal(found, wanted)


def test_errors_of_arrays_are_numpys_own() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda xp: xp.sum(X, axis=7),
        lambda xp: xp.reshape(X, (4, 4)),
        lambda xp: xp.add(X, np.ones(7)),
    ]
    for call in calls:
        with pytest.raises(Exception) as theirs:  # noqa: PT011 - of whatever class
            call(np)
        with pytest.raises(type(theirs.value)) as ours:
            call(jnp)
        assert str(ours.value) == str(theirs.value)


def test_one_tensor_makes_a_graph() -> None:
    x, n = T.dvector("x"), T.lscalar("n")
    made = [
        jnp.sum(x), jnp.add(X, x), jnp.array([1.0, x[0]]), jnp.stack([np.ones(2), x]), jnp.r_[x, 1.0], jnp.zeros((n,)),
        jnp.mgrid[0:n, 0:2], jnp.where(True, x, 0.0), jnp.full((2,), fill_value=x[0]), jnp.equal(x, 1.0),
        random.normal(random.key(0), (n,)), random.normal(T.constant(random.key(0)), (2,)),
        random.split(random.key(0), n),
        lax.cond(n > 1, lambda: 1.0, lambda: 2.0), lax.map(lambda row: row + 1.0, x),
    ]  # fmt: skip
    assert all(isinstance(each, Node) for each in made)


def test_in_a_traced_function_all_is_symbolic() -> None:
    seen: list[Any] = []

    def program(x: Any) -> Any:
        seen[:] = [jnp.zeros((3,)), jnp.sum(np.ones(3)), random.key(0), lax.fori_loop(0, 3, lambda i, c: c + i, 0)]
        return x + seen[0] + seen[1] + random.normal(seen[2], (3,)) + seen[3]

    found = graphc.jit(program)(np.ones(3))
    assert all(isinstance(each, Node) for each in seen)
    npt.assert_allclose(found, 1.0 + 3.0 + random.normal(random.key(0), (3,)) + 3)


# --- scans, loops and branches ----------------------------------------------------------------------------------------


def test_loops_and_branches_of_arrays() -> None:
    total, rows = lax.scan(lambda c, x: (c + x, c), 0.0, X[0])
    assert (type(total), total, rows.tolist()) == (np.float64, 3.0, [0.0, 0.0, 1.0])
    assert lax.scan(lambda c, _: (c + 1, c), 0, None, length=4)[1].tolist() == [0, 1, 2, 3]
    assert lax.scan(lambda c, x: (c, x + c), 1, np.arange(3), reverse=True)[1].tolist() == [1, 2, 3]
    assert (lax.fori_loop(1, 5, lambda i, c: c * i, 1), lax.while_loop(lambda c: c < 10, lambda c: 2 * c, 1)) == (
        24,
        16,
    )
    assert (lax.cond(True, lambda a: a + 1, lambda a: a, 2.0), lax.switch(5, [abs, lambda a: -a], 3.0)) == (3.0, -3.0)
    assert lax.map(lambda x: {"twice": 2 * x}, X)["twice"].tolist() == (2 * X).tolist()


LAX = """
lax.dynamic_slice(x, (0, 1), (2, 2))
lax.dynamic_update_slice(x, np.zeros((1, 1)), (0, 0))
lax.associative_scan(lambda a, b: a + b, v)
lax.select(v > 1, v, -v)
lax.top_k(v, 2)[1]
lax.cumsum(x, axis=1)
lax.expand_dims(v, (0,))
lax.broadcast_in_dim(v, (2, 3), (1,))
lax.pad(v, 0.0, [(1, 1, 0)])
lax.sort_key_val(v, v)[0]
lax.argmax(v, 0, np.int32)
lax.clamp(0.0, v, 2.0)
lax.dot_general(x, v, (((1,), (0,)), ((), ())))
lax.iota(np.int32, 4)
lax.integer_pow(v, 3)
lax.erf_inv(v / 4)
lax.reduce_window(v, 0.0, lax.add, (2,), (1,), "VALID")
lax.concatenate([v, v], 0)
lax.full((2,), 1.0)
""".strip().splitlines()


@pytest.mark.parametrize("expression", LAX)
def test_functions_of_lax_give_what_they_give_when_traced(expression: str) -> None:
    """Whatever of their arguments has to be known: sizes, axes, dtypes, functions, which are told apart by trying."""
    names = {"lax": lax, "np": np, "v": np.array([3.0, 1.0, 2.0])}
    found = eval(expression, {**names, "x": X})
    wanted = graphc.jit(lambda x, v: eval(expression, {**names, "x": x, "v": v}))(X, names["v"])
    npt.assert_array_equal(found, wanted, strict=True)


def test_a_loop_is_compiled_once_for_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh functions and other sizes make no new function; a function of things that change is traced again."""
    calls, traces = PlainCalls(vars(lax.scan)["__wrapped__"].__wrapped__), []
    matrix = np.eye(2)

    def once(x: Any, rate: float) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return carry * rate + row, carry

        return calls(step, 0.0, x)[0]

    def anew(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            traces.append(1)
            return matrix @ carry + row, carry

        return calls(step, np.zeros(2), x)[0]

    for size in (3, 4, 5):
        assert once(np.ones(size), 1.0) == size
    assert once(np.ones(3), 2.0) == 7.0
    (kept,) = calls.kept.values()
    assert len(kept.functions) == 2 and calls.graphs == {}
    npt.assert_array_equal(anew(np.ones((2, 2))), [2, 2])
    matrix[0, 0] = 3.0
    npt.assert_array_equal(anew(np.ones((3, 2))), [13, 3])
    assert len(calls.graphs) == 1 and len(traces) == 2


SCALE = 2.0


def scaled(x: Any) -> Any:
    return SCALE * x


def test_a_loop_sees_what_its_function_reaches_now(monkeypatch: pytest.MonkeyPatch) -> None:
    for scale in (2.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert lax.map(lambda x: scaled(x) + 1, np.ones(2)).tolist() == [scale + 1] * 2
    table = [1.0]
    assert lax.map(lambda x: x + table[0], np.zeros(1)).tolist() == [1.0]
    table[0] = 5.0
    assert lax.map(lambda x: x + table[0], np.zeros(1)).tolist() == [5.0]


def test_variables_from_outside_make_a_graph() -> None:
    x, w = T.dvector("x"), graphc.shared(2.0)
    of_input, of_shared = (lax.map(lambda row, by=by: row * by, np.ones(2)) for by in (x.sum(), w))
    assert of_input.eval({x: [1.0, 2.0]}).tolist() == [3.0, 3.0]
    w.set_value(5.0)
    assert of_shared.eval().tolist() == [5.0, 5.0]


def test_errors_tell_of_values() -> None:
    wrongs: list[tuple[Callable[[], Any], str]] = [
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, 2.5), r"scan, called at .*: length is 2.5 .* not an integer"),
        (lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 1.0), "must return a carry of the structure"),
        (lambda: random.normal("key", (3,)), "normal, called at .*'key' of type str is not a tensor"),
        (lambda: random.choice(random.key(0), 3, (5,), replace=False), "fewer categories than draws"),
        (lambda: lax.map(lambda x: x if x > 0 else -x, np.ones(2)), "is symbolic: it has no truth value"),
    ]
    for call, words in wrongs:
        with pytest.raises(GraphcError, match=words):
            call()


# --- random numbers ---------------------------------------------------------------------------------------------------


def test_keys_and_numbers_are_arrays() -> None:
    key = random.key(7)
    assert type(key) is np.uint64 and random.split(key, 3).dtype == np.uint64
    symbolic = random.key(T.constant(7))
    for shape in ((3,), (2, 4), 5, ()):
        found = random.normal(key, shape)
        npt.assert_array_equal(found, random.normal(symbolic, shape).eval(), strict=True)
    draws: list[Callable[[Any], Any]] = [
        lambda k: random.uniform(k, (3,), minval=-1.0, maxval=2),
        lambda k: random.randint(k, (3,), 0, 6),
        lambda k: random.gamma(k, np.ones((2, 3)), (-1, 3)),
        lambda k: random.permutation(k, np.arange(5)),
        lambda k: random.choice(k, 7, (3,), replace=False),
        lambda k: random.normal(k, (2,), "float32"),
        lambda k: random.fold_in(k, 3),
    ]
    for draw in draws:
        npt.assert_array_equal(draw(key), draw(symbolic).eval(), strict=True)
    assert graphc.jit(lambda k, x: x + random.normal(k, x.shape))(key, np.zeros(3)).shape == (3,)


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["interpreted", "python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_results_without_axes_are_scalars(mode: str) -> None:
    def program(x: Any) -> Any:
        return x.sum(), {"f": x.sum().astype("float32"), "any": (x > 0).any(), "n": x.shape[0]}, x + 1

    f, g, h = (
        graphc.jit(program, mode=mode),
        graphc.jit(lambda x: x.sum(), mode=mode),
        graphc.jit(lambda x: -x, mode=mode),
    )
    for _ in range(3):  # the second call is the first that goes to the entry point for arrays alone
        total, rest, more = f(np.ones(3))
        kinds = [type(total), *map(type, rest.values()), type(more)]
        assert kinds == [np.float64, np.float32, np.bool, np.int64, np.ndarray] and rest["any"] is np.True_
        assert isinstance(total, float) and json.dumps(g(np.ones(3))) == "3.0" and f"{total:.1f}" == "3.0"
        assert (g(np.zeros(0)), type(g(np.ones(2)))) == (0.0, np.float64)
        assert (type(h(2.0)), h(np.array(2)).dtype, h(np.ones(1)).shape) == (np.float64, np.int64, (1,))


# --- keys of functions ------------------------------------------------------------------------------------------------


def test_keys_of_functions() -> None:
    def made(rate: Any) -> Any:
        return lambda x: jnp.exp(x) * rate + np.pi

    same = [(made(1.0), made(1.0)), (partial(made(2), 1), partial(made(2), 1)), (jnp.sum, jnp.sum), (np.exp, np.exp)]
    same.append((graphc.jit(made(1.0)), graphc.jit(made(1.0))))
    for one, other in same:
        assert identity(one) == identity(other) is not None
    others = [
        made(1.0),
        made(1),
        made(True),
        made(-1.0),
        made(np.float32(1)),
        made(None),
        made("1"),
        made((1.0,)),
        scaled,
    ]
    keys = [identity(each) for each in others]
    assert None not in keys and len(set(keys)) == len(keys)

    def importing(x: Any) -> Any:
        from math import tau  # noqa: PLC0415 - which is what it is about

        return x * tau

    weights = [1.0]
    for changing in (
        made(np.ones(2)), made([1.0]), lambda x: x + weights[0], np.vectorize(abs), weights.append, importing,
        lambda x: eval("x"), lambda x: random.normal(x, ()), test_keys_of_functions, graphc.grad(made(1.0)),
    ):  # fmt: skip
        assert identity(changing) is None


def test_a_misplaced_value_is_told() -> None:
    with pytest.raises(GraphTypeError, match="cannot be hashed|is not a tensor"):
        lax.cond(True, lambda a: a, lambda a: a, {"x": object()})


def test_loops_and_branches_take_jaxs_arguments() -> None:
    loops: Any = lax  # type checkers know graphc's names
    assert loops.while_loop(cond_fun=lambda n: n < 3, body_fun=lambda n: n + 1, init_val=0) == 3
    assert loops.fori_loop(0, 4, body_fun=lambda i, n: n + i, init_val=0, unroll=2) == 6
    assert loops.cond(True, lambda x: x + 1, lambda x: x, operand=2) == 3
    assert loops.cond(pred=False, true_fun=lambda x: 1, false_fun=lambda x: 2, operand=None) == 2
    assert loops.switch(1, [lambda x: x, lambda x: -x], operand=3) == -3
    assert loops.scan(lambda total, x: (total + x, None), 0.0, np.ones(3), unroll=True)[0] == 3.0
    npt.assert_array_equal(loops.map(lambda x: 2 * x, np.arange(3), batch_size=2), [0, 2, 4])


def test_keys_of_two_words() -> None:
    """JAX's older keys are vectors of uint32."""
    words = np.array([[1, 2], [1, 3]], np.uint32)
    draw = graphc.vmap(lambda key: random.normal(key, (2,)))
    npt.assert_array_equal(draw(words), [random.normal(np.uint64((1 << 32) + low), (2,)) for low in (2, 3)])
    assert random.split(words[0]).dtype == np.uint64
