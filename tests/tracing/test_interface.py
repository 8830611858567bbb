"""Jitted functions as functions: pickles, signatures, `out=`, what they are compiled to, where functions are taken."""

from __future__ import annotations

import copy
import inspect
import io
import multiprocessing
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, GraphValueError, ShapeError
from graphc.printing import debugprint, pp, pydotprint
from graphc.tracing.interface import PUBLIC

XS = np.linspace(0.0, 2.0, 20)


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


def decay(x: Any, height: float = 1.0, *, rate: float = 1.0) -> Any:
    """An exponential."""
    return height * jnp.exp(-rate * x)


@graphc.jit
def norm(x: Any) -> Any:
    """The norm."""
    return (x**2).sum() ** 0.5


fast = graphc.jit(decay, static_argnames="rate", mode="interpreted")
slope = graphc.grad(norm)
rows = graphc.vmap(graphc.grad(norm), in_axes=1)


class Model:
    scale = 2.0

    @graphc.jit
    def norm(self, x: Any) -> Any:
        return (x**2).sum()


def test_pickles() -> None:
    x = np.array([[3.0, 1.0], [4.0, 1.0]])
    for function in (norm, Model.norm):
        assert pickle.loads(pickle.dumps(function)) is function
    again = pickle.loads(pickle.dumps(fast))
    assert again is not fast and again.settings.mode == fast.settings.mode and again(XS, rate=2.0)[-1] == np.exp(-4.0)
    npt.assert_array_equal(pickle.loads(pickle.dumps(slope))(x[:, 0]), slope(x[:, 0]))
    npt.assert_array_equal(pickle.loads(pickle.dumps(rows))(x), rows(x))
    assert copy.copy(fast) is fast and copy.deepcopy({"f": fast})["f"] is fast
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(graphc.jit(lambda x: x))


def apply(job: tuple[Any, Any]) -> Any:
    function, value = job
    with graphc.options.change(mode="interpreted"):
        return function(value)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_pools_take_jitted_functions(way: str) -> None:
    jobs = [(norm, np.array([3.0, 4.0])), (slope, np.array([3.0, 4.0])), (fast, np.zeros(1))]
    with multiprocessing.get_context(way).Pool(1) as pool:
        first, *others = pool.map_async(apply, jobs).get(timeout=300)
    assert type(first) is np.float64 and first == 5.0
    npt.assert_allclose(others[0], [0.6, 0.8])
    assert others[1].tolist() == [1.0]


def test_names_and_signatures() -> None:
    assert (
        fast.__name__ == fast.__qualname__ == "decay"
        and fast.__doc__ == "An exponential."
        and fast.__wrapped__ is decay
    )
    assert fast.__module__ == __name__ and slope.__name__ == "grad_of_norm"
    assert str(inspect.signature(fast)) == str(inspect.signature(decay)) == str(inspect.signature(graphc.jit(fast)))
    assert [*inspect.signature(graphc.jit(np.hypot)).parameters] and inspect.signature(graphc.Jitted)
    assert [name for name in dir(norm) if name[0] != "_"] == [*PUBLIC]

    x, a, b = T.dvector("x"), T.dscalar("a"), T.dscalar("b")
    f = graphc.function([x, a, graphc.In(b, value=2.0)], a * T.exp(-b * x))
    assert str(inspect.signature(f)) == "(x, a, b=2.0)"
    g = graphc.function([T.dvector(), graphc.In(a, value=1.0), b], a + b, on_unused_input="ignore")
    assert str(inspect.signature(g)) == "(argument_0, /, a, b)"
    assert inspect.signature(graphc.Function)


@pytest.mark.slow
def test_fits_take_functions() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    x, a, b = T.dvector("x"), T.dscalar("a"), T.dscalar("b")
    symbolic = graphc.function([x, a, b], a * T.exp(-b * x))
    traced = graphc.jit(lambda x, a, b: decay(x, a, rate=b))
    for function in (symbolic, traced):
        found, _ = optimize.curve_fit(function, XS, 2.5 * np.exp(-1.3 * XS))
        npt.assert_allclose(found, [2.5, 1.3], rtol=1e-6)


class Parts(NamedTuple):
    total: Any
    rest: dict[str, Any]


@pytest.mark.parametrize("mode", ["interpreted", "python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_results_go_to_arrays_that_are_given(mode: str) -> None:
    twice = graphc.jit(lambda x: 2 * x, mode=mode)
    parts = graphc.jit(lambda x: Parts(x.sum(), {"b": x + 1, "a": x.astype("float32")}), mode=mode)
    for size in (3, 3, 5):
        x, out, total, more = np.ones(size), np.empty(size), np.empty(()), np.empty(size, "float32")
        assert twice(x, out=out) is out and out.tolist() == [2.0] * size
        assert twice(x).tolist() == twice(x, out=None).tolist() == [2.0] * size
        found = parts(x, out=Parts(total, {"b": None, "a": more}))
        assert (found.total is total, float(total), found.rest["a"] is more) == (True, size, True)
        assert found.rest["b"].tolist() == [2.0] * size
        assert type(parts(x, out=Parts(None, {"b": out, "a": None})).total) is np.float64
    for out, error in ((np.empty(2), ShapeError), (np.empty(3, "float32"), ArgumentError)):
        with pytest.raises(error, match="out"):
            twice(np.ones(3), out=out)
    with pytest.raises(ArgumentError, match="out= must be like the results"):
        parts(np.ones(3), out=[None, None])
    with pytest.raises(ArgumentError, match="out= takes results of compiled functions"):
        twice(T.dvector("x"), out=np.empty(3))
    assert graphc.jit(lambda x, out: x + out, mode=mode)(1.0, out=2.0) == 3.0


@pytest.mark.slow
def test_what_is_compiled_can_be_looked_at() -> None:
    f = graphc.jit(decay, mode="compiled")
    lowered = f.lower(np.ones(3))
    assert not f.functions and "exp(" in lowered.text == lowered.as_text()
    assert f.lower(np.broadcast_to(np.float32(0), (2, 2))).text != lowered.text
    compiled = lowered.compile()
    assert len(f.functions) == 1 and compiled(np.zeros(5)).tolist() == [1.0] * 5
    for text in (compiled.source, f.source(), f.source(np.ones(2))):
        assert "def kernel" in text
    assert f.explain() == f.explain(np.ones(7)) == compiled.explain()
    assert f.memory(np.ones((4,))).outputs == 32 and len(f.functions) == 1
    with pytest.raises(GraphTypeError, match="compiled for arguments of other types"):
        compiled(np.ones((2, 2)))
    f(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="has 2 compiled functions: give arguments of one"):
        f.explain()


def test_calls_of_lowered_functions_may_leave_out_static_arguments() -> None:
    f = graphc.jit(lambda n, x, b, power=1: (n * x + b) ** power, static_argnums=0, static_argnames="power")
    made = f.lower(3, np.ones(2), 1.0, power=2).compile()
    for given in ((3, np.ones(2), 1.0), (np.ones(2), 1.0)):
        assert made(*given).tolist() == made(*given, power=2).tolist() == [16.0, 16.0]
    for wrong in ({"power": 1}, {"power": 3}):
        with pytest.raises(GraphTypeError, match="other types"):
            made(np.ones(2), 1.0, **wrong)


def test_printers_take_jitted_functions() -> None:
    f = graphc.jit(decay)
    with pytest.raises(GraphValueError, match="decay .* is not compiled yet: call it"):
        debugprint(f)
    f(XS)
    shown = io.StringIO()
    debugprint(f, file=shown)
    assert "exp" in shown.getvalue() and pp(f) == pp(f.functions[0])
    assert "decay" in pydotprint(f, return_image=True)


def test_calls_are_counted() -> None:
    f = graphc.jit(decay, profile=True)
    assert f.profile is not None and (f.profile.calls, norm.profile) == (0, None)
    f(XS), f(XS[:3]), f(1.0)
    assert f.profile.calls == 3 and f.profile.seconds > 0 and "3 calls" in str(f.profile)


def test_what_has_no_array_has_no_function() -> None:
    with pytest.raises(GraphcError, match="there is no compiled function"):
        graphc.jit(lambda: None).explain()
