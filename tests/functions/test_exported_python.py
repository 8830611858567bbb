"""Modules for Python: a process with NumPy alone computes what the interpreter does; the rest is refused."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.pipeline.python_module import Carried, Unwritten, with_quotients
from graphc.errors import GraphcError
from graphc.loopir.operators import CALLS
from graphc.tensor.shared_randomstreams import RandomStreams
from graphc.theano.fft import rfft

ALONE = """
import importlib, pickle, sys
folder, packages = sys.argv[1:]
sys.path[:0], sys.modules["graphc"] = [folder, packages], None
with open(folder + "/calls", "rb") as file:
    calls = pickle.load(file)
made = {}
for name, given in calls.items():
    module = importlib.import_module(name)
    found = []
    for values in given:
        try:
            found.append(getattr(module, name)(*values))
        except (TypeError, ValueError) as error:
            found.append(f"{type(error).__name__}: {error}")
    made[name] = found, module.state
assert not {each.partition(".")[0] for each in sys.modules} & {"numba", "llvmlite", "scipy"}
with open(folder + "/made", "wb") as file:
    pickle.dump(made, file)
"""


def alone(folder: Path, functions: dict[str, Any], calls: dict[str, list[list[Any]]]) -> dict[str, Any]:
    """The results of exported functions in a process without graphc, and their state afterwards."""
    for name, function in functions.items():
        assert function.export(folder / name, language="python") == [str(folder / f"{name}.py")]
    (folder / "calls").write_bytes(pickle.dumps(calls))
    packages = str(Path(np.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, str(folder), packages],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    found: dict[str, Any] = pickle.loads((folder / "made").read_bytes())
    return found


def of_all_dtypes() -> tuple[Any, list[list[Any]]]:
    """Dtypes, broadcasts, empty axes, quotients by zero, values out of range."""
    arrays = [T.TensorType(dtype, (None, None))(f"x_{dtype}") for dtype in DTYPES]
    numbers = [T.TensorType(dtype, ())(f"n_{dtype}") for dtype in DTYPES]
    by_name = dict(zip(DTYPES, arrays, strict=True))
    f32, f64, whole = by_name["float32"], by_name["float64"], by_name["int64"]
    row, state = T.drow("row"), T.TensorType("float64", (2, 3))("state")
    outputs = [
        T.switch(x > 0, x * n, n).sum(axis=0)
        for x, n in zip(arrays, numbers, strict=True)
        if x.type.dtype != "bool"
    ]  # fmt: skip
    outputs += [
        T.and_(by_name["bool"], numbers[0]), f64 + row, T.exp(state), state[0], T.sin(f64) * T.log1p(abs(f32)),
        T.tanh(f64).mean(), T.tanh(f64).mean(axis=0), f64.T[::-1], T.erf(row), T.sort(f64, axis=1), T.sigmoid(f32),
        f64.cumsum(axis=0), f64 / (f64 - f64), whole // (whole - whole), whole % 3, T.cast(f64 * 1e12, "int8"),
        T.constant(np.arange(300.0)).sum() + T.constant(np.arange(300.0))[:3] * row, T.gammaln(abs(f64) + 1),
        T.maximum(f64, 0.0), T.dot(f64.T, f64), T.argsort(row, axis=1), whole**2, T.digamma(row), abs(f32) ** 0.5,
    ]  # fmt: skip
    rng, calls = np.random.default_rng(0), []
    for shape in ((2, 3), (0, 3), (1, 3), (9, 3)):
        values: list[Any] = [rng.integers(0, 2 if dtype == "bool" else 99, shape).astype(dtype) for dtype in DTYPES]
        values += [np.dtype(dtype).type(1 if dtype == "bool" else 3) for dtype in DTYPES]
        calls.append([*values, rng.normal(size=(1, 3)), rng.normal(size=(2, 3))])
    return graphc.function([*arrays, *numbers, row, state], outputs, mode="interpreted"), calls


def of_states() -> tuple[Any, list[list[Any]]]:
    """Gradients, products, a scan, indices, updates of shared variables."""
    x, y, steps = T.dmatrix("x"), T.dvector("y"), T.iscalar("steps")
    w, b = graphc.shared(np.linspace(-1, 1, 3), name="w"), graphc.shared(0.5, name="b")
    count, table = graphc.shared(np.int8(3), name="count"), graphc.shared(np.arange(6.0).reshape(2, 3), name="table")
    cost = ((T.tanh(T.dot(x, w) + b) - y) ** 2).mean() + (table[1] ** 2).sum()
    dw, db = graphc.grad(cost, [w, b])
    powers, _ = graphc.scan(lambda s, a: s * a, outputs_info=T.ones_like(y), non_sequences=y, n_steps=steps)
    updates = [(w, w - 0.1 * dw), (b, b - 0.1 * db), (count, count + 1), (table, table[::-1])]
    outputs = [cost, dw, powers, T.dot(x.T, x), T.dot(x, x.T).sum(), x[steps - 1]]
    rng = np.random.default_rng(1)
    calls = [[rng.normal(size=(rows, 3)), rng.normal(size=rows), 1] for rows in (5, 1, 40)]
    return graphc.function([x, y, steps], outputs, updates=updates, mode="interpreted"), calls


def of_draws() -> tuple[Any, list[list[Any]]]:
    """Draws of every kind, whose streams go on from call to call."""
    streams = RandomStreams(3)
    drawn = [
        streams.normal((5,)), streams.uniform((3, 2)), streams.exponential(size=(4,)), streams.gumbel(size=(2,)),
        streams.laplace(size=(2,)), streams.permutation(n=6), streams.choice(a=5, size=(4,)),
        streams.multinomial(size=(2,), n=1, pvals=[0.2, 0.3, 0.5]), streams.gamma(size=(3,), a=2.5),
    ]  # fmt: skip
    return graphc.function([], drawn, mode="interpreted"), [[], [], []]


def of_chances() -> tuple[Any, list[list[Any]]]:
    """Special functions that SciPy computes elsewhere."""
    x, y, special = T.dvector("x"), T.fvector("y"), graphc.scipy.special
    outputs = [special.gammaincc(x, 2.0), special.betainc(x, 1.5, 0.25), special.kv(x, 2.0), special.exprel(y)]
    outputs.append(rfft(T.exp(x[None])))
    given = [np.array([0.0, 0.5, 30.0]), np.array([0.5, 2.0], "float32")]
    return graphc.function([x, y], outputs, mode="interpreted"), [given]


@pytest.mark.slow
def test_numpy_alone_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    x, n = T.fvector("state"), T.lscalar("_call")
    one = graphc.function([x, n], x[::-1] * n, mode="interpreted")
    pair, number = {"a": T.dvector("a"), "b": T.dvector("b")}, T.dscalar("number")
    cases: dict[str, tuple[Any, list[list[Any]]]] = {
        "dtypes": of_all_dtypes(),
        "states": of_states(),
        "draws": of_draws(),
        "sigmoid": (one, [[[1, 2.5], 2], [np.arange(9, dtype="float32")[::2], np.int8(3)], [[], 1]]),
        "nothing": (graphc.function([x], [], mode="interpreted", on_unused_input="ignore"), [[np.ones(2, "float32")]]),
        "chances": of_chances(),
        "tree": (graphc.function([pair], pair["a"] - pair["b"], mode="interpreted"), [[np.ones(2), np.arange(2.0)]]),
    }
    own = graphc.function([graphc.In(number, value=2.0, update=number * 3)], number + 1, mode="interpreted")
    wrong: list[tuple[list[Any], str]] = [
        ([np.ones((5, 4)), np.ones(5), 1], "ValueError: states: .*the summed axis has sizes.*x: \\(5, 4\\)"),
        ([np.ones((5, 3)), np.ones(5), 9], "ValueError: states: "),
        ([np.ones(3), np.ones(5), 1], "TypeError: x: an array of 2 axes is needed, not of 1"),
        ([np.ones((5, 3)), np.ones(5), 1.5], "TypeError: steps: float64 cannot become int32 without loss"),
        ([np.ones((5, 3), complex), np.ones(5), 1], "TypeError: x: complex128"),
        ([np.ones((5, 3)), np.ma.array([1.0]), 1], "TypeError: y: a masked array"),
    ]
    functions = {name: function for name, (function, _) in cases.items()}
    calls = {name: given for name, (_, given) in cases.items()}
    calls["states"] = [*calls["states"], *(given for given, _ in wrong)]
    made = alone(tmp_path, {**functions, "own": own}, {**calls, "own": [[], []]})
    for name, (function, given) in cases.items():
        found, state = made[name]
        for values, results in zip(given, found, strict=False):
            values = [{"a": values[0], "b": values[1]}] if name == "tree" else values
            right = [function(*values)] if name == "tree" else function(*values)
            assert type(results) is type(right) or name == "nothing", results
            for place, (one_result, wanted) in enumerate(
                zip(*(each if isinstance(each, list) else [each] for each in (results, right)), strict=True)
                if name != "nothing" else []
            ):  # fmt: skip
                assert (one_result.dtype, one_result.shape) == (wanted.dtype, wanted.shape)
                tolerance = 1e-5 if wanted.dtype == "float32" else 1e-12
                np.testing.assert_allclose(one_result, wanted, rtol=tolerance, atol=1e-12, err_msg=f"{name} {place}")
        for leaf, left in zip(function.shared, state.values(), strict=True):
            np.testing.assert_allclose(left, leaf.get_value(), rtol=1e-12)
            assert left.dtype == leaf.get_value().dtype
    for (_, text), error in zip(wrong, made["states"][0][len(cases["states"][1]) :], strict=True):
        assert re.match(text, error), error
    assert [float(each) for each in made["own"][0]] == [3.0, 7.0]


@pytest.mark.slow
def test_every_operator_is_written_as_the_python_mode_has_it_or_refused() -> None:
    refused = set()
    for name, op in CALLS.items():
        if name in ("fills", "reads"):
            continue
        carried, scope = Carried(), dict[str, Any]()
        try:
            meaning = carried.meaning(name)
        except Unwritten:
            refused.add(name)
            continue
        exec(f"{carried.text()}\nresult = {meaning}", scope)
        with np.errstate(all="ignore"):
            for dtype in {op.takes[0], op.takes[-1]}:
                for values in product([0, 1, 2, 3, 7] if op.arity < 3 else [0, 1, 7], repeat=op.arity):
                    given: list[Any] = [np.dtype(dtype).type(each) for each in values]
                    given[: len(op.leading)] = [np.bool_(given[0])] * len(op.leading)
                    if name in ("blocks", "block_length", "chunk") and not all(values):
                        continue
                    found, wanted = scope["result"](*given), PRELUDE[name](*given)
                    assert np.array_equal(found, wanted, equal_nan=True) and type(found) is type(wanted), name
    assert refused == {"erfcx"}


def test_quotients_are_calls_wherever_they_stand() -> None:
    source = "def kernel(x):\n    # é / é\n    if x / 2.0 / (x / 3.0) > 1.0: return 1\n    return -(x / x) * 2.0\n"
    text, names = with_quotients(source)
    assert "if _divide(_divide(x, 2.0), _divide(x, 3.0)) > 1.0: return 1" in text and "# é / é" in text
    assert "-(_divide(x, x)) * 2.0" in text and names == {"_divide"}


@pytest.mark.slow
def test_what_needs_more_than_numpy_is_refused_by_name(tmp_path: Path) -> None:
    x, m = T.dvector("x"), T.dmatrix("m")
    as_op: Any = import_module("graphc.compile.ops").as_op
    mine = as_op([T.dvector], [T.dvector], infer_shape=lambda node, shapes: shapes)(lambda value: value + 1)
    cases: dict[str, tuple[Any, Any]] = {
        "own Python functions compute FromFunctionOp": ([x], mine(x)),
        "gc_special_jv": ([x], graphc.scipy.special.jv(1.5, x)),
        "erfcx needs a late import": ([x], T.erfcx(x)),
        "gc_lapack": ([m], T.slinalg.cholesky(m)),
    }
    for words, (inputs, output) in cases.items():
        function = graphc.function(inputs, output, mode="interpreted")
        with pytest.raises(GraphcError, match=re.escape(words)):
            function.export(tmp_path / "model", language="python")
    plain = graphc.function([x], x + 1, mode="interpreted")
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("cannot be the name", "lambda", {}),
        ("cannot be the name", "np", {}),
        ("target, blas and strided are for", "model", {"target": "haswell"}),
    ]
    for words, path, options in wrong:
        with pytest.raises(GraphcError, match=words):
            plain.export(tmp_path / path, language="python", **options)
    staged = graphc.function([x], T.zeros((T.nonzero(x)[0].sum(),)), mode="python")
    with pytest.raises(GraphcError, match="several kernels"):
        staged.export(tmp_path / "model", language="python")
    assert not list(tmp_path.iterdir())
