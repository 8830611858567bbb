"""Modules for Python: with NumPy or numba alone a process computes what the interpreter does; the rest is refused."""

from __future__ import annotations

import operator
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
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
from graphc.codegen.pipeline.python_module import decorated, operators_text, with_quotients
from graphc.codegen.pipeline.python_source import function_text
from graphc.errors import GraphcError
from graphc.loopir import ir
from graphc.loopir.operators import CALLS, INFIX, PREFIX
from graphc.loopir.syntax import emit_source
from graphc.tensor.shared_randomstreams import RandomStreams
from graphc.theano.fft import rfft

ALONE = """
import importlib, pickle, sys
folder, packages, way = sys.argv[1:]
sys.path[:0], sys.modules["graphc"], sys.modules["scipy"] = [folder, packages], None, None
with open(folder + "/calls", "rb") as file:
    calls = pickle.load(file)
made = {}
for name, given in calls.items():
    module = importlib.import_module(name)
    if way == "numba":
        module.use_numba()
    found = []
    for values in given:
        try:
            found.append(getattr(module, name)(*values))
        except (TypeError, ValueError) as error:
            found.append(f"{type(error).__name__}: {error}")
    made[name] = found, module.state
others = {each.partition(".")[0] for each in sys.modules} & {"numba", "llvmlite"}
assert others == ({"numba", "llvmlite"} if way == "numba" else set()), others
with open(folder + "/made", "wb") as file:
    pickle.dump(made, file)
"""


def alone(
    folder: Path, functions: dict[str, Any], calls: dict[str, list[list[Any]]], way: str = "numpy"
) -> dict[str, Any]:
    """The results of exported functions in a process without graphc, and their state afterwards."""
    for name, function in functions.items():
        assert function.export(folder / name, language="python") == [str(folder / f"{name}.py")]
    (folder / "calls").write_bytes(pickle.dumps(calls))
    packages = str(Path(np.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, str(folder), packages, way],
        capture_output=True, text=True, timeout=300, check=False,
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


def of_routines() -> tuple[Any, list[list[Any]]]:
    """Products of all layouts, convolutions, transforms, orders."""
    a, b, d, v = T.fmatrix("a"), T.lmatrix("b"), T.dmatrix("d"), T.dvector("v")
    cube, images, taps, bytes_ = T.dtensor3("cube"), T.dtensor4("images"), T.dtensor4("taps"), T.bvector("bytes")
    outputs = [
        T.dot(a, a.T), T.dot(b, b[::-1].T), T.dot(d[:, ::-1], d.T), T.dot(d.T, d), T.dot(d, d[0]),
        T.nnet.conv2d(images, taps), T.dot(d.T[::-1], d[:, 0]), T.matmul(cube, T.transpose(cube, (0, 2, 1))), rfft(d),
        np.convolve(v[:9], v[:3]),
        T.sort(v), T.argsort(v), T.searchsorted(T.sort(v), v), T.searchsorted(T.sort(v), v, side="right"),
        T.sort(bytes_), T.argsort(bytes_), T.sort(d, axis=0), T.argsort(d[:, ::-1], axis=1),
        *import_module("graphc.lax").top_k(d, 1),
    ]  # fmt: skip
    rng, calls = np.random.default_rng(2), []
    for n, m, count in ((40, 50, 3), (1, 7, 1), (70, 35, 2)):
        matrices = [rng.normal(size=(n, m)).astype("float32"), rng.integers(-9, 9, (n, m)), rng.normal(size=(n, m))]
        line = np.array([3, np.nan, -1, np.inf, np.nan, 3, -2, 0.0, 5, -np.inf, *rng.normal(size=n)])
        stacks = rng.normal(size=(count, n, m)), rng.normal(size=(2, 3, 8, 9)), rng.normal(size=(4, 3, 3, 2))
        calls.append([*matrices, line, *stacks, rng.integers(-3, 3, m).astype("int8")])
    return graphc.function([a, b, d, v, cube, images, taps, bytes_], outputs, mode="interpreted"), calls


def of_plain_functions() -> tuple[Any, list[list[Any]]]:
    """Special functions whose text the module has."""
    x, s = T.dvector("x"), graphc.scipy.special
    outputs = [
        s.erfinv(x), s.ndtri(x), s.erfcx(x * 9 - 3), T.grad(s.erfcinv(x).sum(), x), s.j0(x), s.y1(x),
        s.gamma(x * 9 - 4), s.ellipk(x), s.expi(x), s.stdtr(x, x), s.exp1(x), s.i1e(x), s.boxcox(x, 0.5), s.k0(x),
    ]  # fmt: skip
    return graphc.function([x], outputs, mode="interpreted"), [[np.linspace(0.01, 0.99, 9)], [[0.0, 1.0, np.nan, 0.5]]]


def of_narrow_numbers() -> tuple[Any, list[list[Any]]]:
    """Arithmetic that numba would do in wider numbers, and a gradient."""
    x, n, is_there = T.fvector("x"), T.bvector("n"), T.vector("is_there", dtype="bool")
    cost = T.switch(is_there, T.sqr(x * 0.1 + 1), T.tanh(x)).sum()
    outputs = [cost, graphc.grad(cost, x), (n + n) * n - 100, n // 7 % 3, x / (x - x), T.cast(x * 100, "int8")]
    whole, there = np.array([100, -128, 7], "int8"), np.array([True, False, True])
    calls = [[np.array(each, "float32"), whole, there] for each in ([1, np.nan, -np.inf], [3, 1e38, -0.0])]
    calls.append([np.zeros(0, "float32"), np.zeros(0, "int8"), np.zeros(0, "bool")])
    return graphc.function([x, n, is_there], outputs, mode="interpreted"), calls


LONG = {"states": of_states, "dtypes": of_all_dtypes, "draws": of_draws, "chances": of_chances}
LONGER = {"routines": of_routines, "plain": of_plain_functions}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["numpy", "numba"])
def test_numpy_or_numba_alone_computes_what_the_interpreter_does(tmp_path: Path, way: str, request: Any) -> None:
    is_thorough = request.config.getoption("--thorough")
    x, n = T.fvector("state"), T.lscalar("_call")
    one = graphc.function([x, n], x[::-1] * n, mode="interpreted")
    pair, number = {"a": T.dvector("a"), "b": T.dvector("b")}, T.dscalar("number")
    cases: dict[str, tuple[Any, list[list[Any]]]] = {
        "narrow": of_narrow_numbers(),
        "sigmoid": (one, [[[1, 2.5], 2], [np.arange(9, dtype="float32")[::2], np.int8(3)], [[], 1]]),
        "nothing": (graphc.function([x], [], mode="interpreted", on_unused_input="ignore"), [[np.ones(2, "float32")]]),
        "tree": (graphc.function([pair], pair["a"] - pair["b"], mode="interpreted"), [[np.ones(2), np.arange(2.0)]]),
    }
    more = {**LONG, **LONGER} if is_thorough else LONG if way == "numpy" else {}
    cases |= {name: make() for name, make in more.items()}
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
    if "states" in cases:
        calls["states"] = [*calls["states"], *(given for given, _ in wrong)]
    made = alone(tmp_path, {**functions, "own": own}, {**calls, "own": [[], []]}, way)
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
    errors = made["states"][0][len(cases["states"][1]) :] if "states" in cases else []
    for (_, text), error in zip(wrong, errors, strict=bool(errors)):
        assert re.match(text, error), error
    assert [float(each) for each in made["own"][0]] == [3.0, 7.0]


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 7.0, 1e-300, 3e9, -1e19, np.inf, -np.inf, np.nan, 1e-8, 100.0, -3.0]
WHOLE = [0, 1, 2, 3, 7, -1, -2, 5, 63, 64, 100, -128, 127, 2**31, -(2**31), 2**63 - 1, -(2**63)]


def edges_of(dtype: str, fewer: bool) -> list[Any]:
    """Numbers at which something changes."""
    values = EDGES if dtype[:5] == "float" else [0, 1] if dtype == "bool" else WHOLE
    with np.errstate(all="ignore"):
        made = [np.array(each).astype(dtype)[()] for each in (values[::3] if fewer else values)]
    return list({each.tobytes(): each for each in made}.values())


def of_operators(dtype: str) -> Iterator[tuple[str, ir.Apply, list[tuple[Any, ...]]]]:
    """Every operator of operands of a dtype, with operands to try."""
    index, skipped = ir.Var("i", ir.INDEX), ("fills", "reads", "chunk", "columns", "blocks", "block_length")
    for op in (*INFIX.values(), *PREFIX.values(), *CALLS.values()):
        if dtype not in op.takes or op.name in skipped or (op.name == "/" and dtype[:5] != "float"):
            continue
        kinds = [*op.leading, *[dtype] * (op.arity - len(op.leading))]
        args = tuple(ir.Load(ir.Buffer(f"x{n}", kind), index) for n, kind in enumerate(kinds))
        tried = [*product(*(edges_of(kind, op.arity > 2) for kind in kinds))]
        if op.name == "ipow":  # CPython would compute large powers
            tried = [each for each in tried if int(each[1]) < 99]
        yield f"{op.arity}{op.name}", ir.Apply(op, args, op.result or dtype), tried


def run_operators(dtype: str, compiled: Any) -> dict[str, tuple[Any, list[Any]]]:
    """By operator what the written source gives, and what the python mode does."""
    cases = [*of_operators(dtype)]
    functions, index = [], ir.Var("i", ir.INDEX)
    for number, (_, value, _) in enumerate(cases):
        buffers = [load.buffer for load in value.args if isinstance(load, ir.Load)]
        out, count = ir.Buffer("out", value.dtype), ir.Var("n", ir.INDEX)
        body = (ir.Loop(index, count, (ir.Store(out, index, value),)),)
        functions.append(function_text(ir.Function(f"case{number}", (*buffers, out, count), body, "")))
    source, names = with_quotients(emit_source(functions))
    scope: dict[str, Any] = {"_compiled": compiled, "_routines": {}}
    exec(f"import math\nimport numpy as np\n{operators_text(names)}\n{decorated(source)}", scope)
    found: dict[str, tuple[Any, list[Any]]] = {}
    with np.errstate(all="ignore"):
        for number, (name, value, tried) in enumerate(cases):
            columns = [np.array(column) for column in zip(*tried, strict=True)]
            result = np.zeros(len(tried), value.dtype)
            scope[f"case{number}"](*columns, result, len(tried))
            meant = PRELUDE.get(value.op.name) or getattr(operator, value.op.python)
            found[name] = result, [np.asarray(meant(*each))[()] for each in tried]
    return found


LIBRARIES = frozenset(
    "cbrt exp exp2 expm1 log log2 log10 log1p sin cos sinh cosh tanh tan asin acos atan asinh acosh atanh sigmoid erf "
    "erfc erfcx gammaln softplus digamma trigamma atan2 logaddexp logaddexp2 hypot pow deg2rad rad2deg".split()
)
"""Functions that differ between libraries."""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operator_is_written_as_the_python_mode_has_it(dtype: str, way: str, request: Any) -> None:
    if way == "numba" and not request.config.getoption("--thorough"):
        pytest.skip("numba compiles for long")
    compiled = import_module("numba").njit(error_model="numpy") if way == "numba" else lambda function: function
    wrong = []
    for name, (result, wanted) in run_operators(dtype, compiled).items():
        right = np.array(wanted)
        assert result.dtype == right.dtype, name
        tolerance = (1e-6 if dtype == "float32" else 4e-15) if name[1:] in LIBRARIES else 0.0
        same = np.isclose(result, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        if right.dtype.kind == "f" and not tolerance and name[1:] not in ("accumulate_lowest", "accumulate_highest"):
            same &= (right != 0) | (np.signbit(result) == np.signbit(right))
        if not same.all():
            wrong.append((name, result[~same][:3], right[~same][:3]))
    assert not wrong


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
        "gc_special_struve": ([x], graphc.scipy.special.struve(1.5, x)),
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
