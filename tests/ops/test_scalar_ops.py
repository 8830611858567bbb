"""The table of scalar ops against NumPy and SciPy: values, dtypes, promotion, derivatives, errors."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc
import graphc.ops
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS
from graphc.autodiff import grad
from graphc.codegen.frontend.language import PRELUDE
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, ShapeError
from graphc.ir.interpret import interpret
from graphc.ir.lowering import Scalar
from graphc.ir.node import FUNCTIONS, OPS, Node, Sample, make, variable
from graphc.ir.walk import Graph
from graphc.loopir.syntax import Part, Tree, parse
from graphc.ops.elementwise import ROWS, as_node, cast, elementwise
from graphc.ops.scalar import stop_gradient
from graphc.options import options

NUMPY_NAMES = {
    "sub": "subtract", "mul": "multiply", "neg": "negative", "pow": "power", "sqr": "square", "true_div": "true_divide",
    "floor_div": "floor_divide",
}  # fmt: skip
SCIPY_NAMES = {"sigmoid": "expit", "digamma": "psi"}
NAMES = sorted(ROWS)
SPECIAL_VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-300, 1e300, 88.0, -745.0]


def meaning(name: str) -> Any:
    """NumPy's or SciPy's own function of this name."""
    match name:
        case "softplus":
            return lambda x: np.logaddexp(x, np.zeros_like(x))
        case "strong_mul":
            return lambda g, d: np.where(g == 0, g, g * d).astype(np.hypot(g, d).dtype)
        case "trigamma":
            return lambda x: scipy.special.polygamma(1, x).astype(x.dtype)
    name = NUMPY_NAMES.get(name, name).removeprefix("portable_")
    return getattr(np, name, None) or getattr(scipy.special, SCIPY_NAMES.get(name, name))


def run(node: Node, values: dict[Node, Any]) -> np.ndarray[Any, Any]:
    return interpret(Graph(tuple(values), (node,)), values)[0]


def numpy_result(name: str, *operands: Any) -> Any:
    """What NumPy gives, or None where it refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.asarray(meaning(name)(*operands))
        except (TypeError, OverflowError):
            return None


def numpy_dtype(name: str, *operands: Any) -> str | None:
    """NumPy's result dtype, None where it refuses; where it has float16 graphc has float32.

    Functions that NumPy lacks promote as its own float functions do.
    """
    if not hasattr(np, NUMPY_NAMES.get(name, name)):
        name = "sqrt" if ROWS[name].arity == 1 else "arctan2"
    result = numpy_result(name, *operands)
    if result is None:
        return None
    return "float32" if result.dtype == "float16" else str(result.dtype)


def draw(name: str, dtype: str, size: int = 40) -> list[np.ndarray[Any, Any]]:
    """Arguments from the row's domain in `dtype`."""
    row, rng = ROWS[name], np.random.default_rng(7)
    values: list[np.ndarray[Any, Any]]
    if dtype == "bool":
        values = [rng.integers(0, 2, size) for _ in range(row.arity)]
    elif dtype in FLOATS:
        values = [rng.uniform(low, high, size) for low, high in row.domain or ((-2.0, 2.0),) * row.arity]
    else:
        lowest = 0 if dtype.startswith("u") else -100
        bounds = row.integers or ((-7, 7),) * row.arity
        values = [rng.integers(max(low, lowest), high, size) for low, high in bounds]
        if name == "pow":
            values[1] = np.abs(values[1])
    return [value.astype(dtype) for value in values]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if ROWS[n].arity < 3])
def test_value_and_dtype_are_numpys(name: str) -> None:
    for dtype in DTYPES:
        arrays = draw(name, dtype)
        expected_dtype = numpy_dtype(name, *arrays)
        variables = [variable(dtype, (None,)) for _ in arrays]
        if expected_dtype is None:
            with pytest.raises(GraphTypeError, match=name):
                elementwise(name, *variables)
            continue
        node = elementwise(name, *variables)
        assert node.dtype == expected_dtype, (name, dtype)
        expected = numpy_result(name, *arrays)
        if expected is None or expected.dtype.kind != np.dtype(node.dtype).kind:
            expected = numpy_result(name, *(array.astype(node.dtype) for array in arrays))
        result = run(node, dict(zip(variables, arrays, strict=True)))
        assert result.dtype == node.dtype
        if name == "nextafter" and expected.dtype == "float16":
            continue
        half = expected.dtype == "float16"
        tolerance = 2e-3 if half else 1e-5 if node.dtype == "float32" else 1e-12
        # beside its zeros log_gamma is a difference of numbers of about 1, each with a rounding
        least = 8 * np.finfo(np.float64).eps if name == "gammaln" else 1e-30
        np.testing.assert_allclose(result, expected.astype(node.dtype), rtol=tolerance, atol=least)


ORDERED = ("maximum", "minimum", "fmax", "fmin", "clip")
"""To these 0.0 is above -0.0; which of them NumPy's give depends on the order of the operands, and on the processor."""


@pytest.mark.parametrize("name", [n for n in NAMES if n != "where" and "float64" in ROWS[n].rule.accepts])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_infinity_and_signed_zero(name: str, dtype: str) -> None:
    row = ROWS[name]
    with np.errstate(over="ignore", under="ignore"):
        pairs = np.array(list(product(SPECIAL_VALUES, repeat=row.arity))).T.astype(dtype)
    variables = [variable(dtype, (None,)) for _ in range(row.arity)]
    result = run(elementwise(name, *variables), dict(zip(variables, pairs, strict=True)))
    expected = numpy_result(name, *pairs)
    if name == "trigamma":  # SciPy's is NaN at -inf and has no sign rule at the poles
        keep = np.isfinite(pairs[0]) & (np.abs(pairs[0]) > 1e-200)
        result, expected = result[keep], expected[keep]
    np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-323)
    if result.dtype != bool and name not in ("xlogy", "xlog1py"):
        zeros = result == 0
        with np.errstate(all="ignore"):
            signed = row.function(*pairs) if name in ORDERED else expected
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(signed[zeros]))


@pytest.mark.parametrize("name", ["digamma", "trigamma", "gammaln", "erf", "erfc", "erfcx"])
def test_special_functions_are_scipys(name: str) -> None:
    x = np.concatenate([np.linspace(-20.3, 30.1, 997), np.geomspace(1e-8, 1e8, 200)])
    v = variable("float64", (None,))
    np.testing.assert_allclose(run(elementwise(name, v), {v: x}), meaning(name)(x), rtol=1e-11, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "cast"])
def test_source_means_what_numpy_means(name: str) -> None:
    """The Python source of each row, run by CPython over all pairs of edge cases, against the row's NumPy function."""
    numbers: dict[str, list[Any]] = {
        "f": SPECIAL_VALUES,
        "i": [0, 1, -1, -3, 7, 127, -128],
        "u": [0, 1, 7, 255],
        "b": [0, 1],
    }
    for dtype in DTYPES if name == "cast" else ROWS[name].rule.accepts:
        if name == "cast":
            variables = [variable(dtype, (None,))]
            nodes = [node for target in DTYPES if (node := cast(variables[0], target)) is not variables[0]]
        else:
            leading = ROWS[name].rule.leading
            dtypes = (*leading, *(dtype,) * (ROWS[name].arity - len(leading)))
            variables = [variable(d, (None,)) for d in dtypes]
            nodes = [elementwise(name, *variables)]
        columns = zip(*product(*(numbers[np.dtype(v.dtype).kind] for v in variables)), strict=True)
        with np.errstate(all="ignore"):
            arrays = [np.array(column).astype(v.dtype) for column, v in zip(columns, variables, strict=True)]
        for node in nodes:
            check_source(node, arrays)


def check_source(node: Node, arrays: list[np.ndarray[Any, Any]]) -> None:
    lowering = node.op.lower(node)
    assert isinstance(lowering, Scalar)
    expected = node.op.eval(node, *arrays)
    code = compile(lowering.template, node.op.name, "eval")
    for position, wanted in enumerate(expected):
        holes = {f"_{k}": array[position] for k, array in enumerate(arrays)}
        with np.errstate(all="ignore"):
            result = np.asarray(eval(code, dict(PRELUDE), holes))
        assert result.dtype == node.dtype
        tolerance = 1e-6 if node.dtype == "float32" else 1e-14
        np.testing.assert_allclose(result, wanted, rtol=tolerance, err_msg=f"{lowering.template} of {holes}")


# --- promotion -------------------------------------------------------------------------------------------------------


def operands_for(kind: str) -> list[tuple[Any, Any]]:
    """(graphc's operand, NumPy's operand) for each dtype, as a variable, and for each Python number."""
    if kind == "weak":
        return [(number, number) for number in (True, 1, 1.5)]
    return [(variable(dtype, (None,)), np.ones(2, dtype)) for dtype in DTYPES]


BINARY = [n for n in NAMES if ROWS[n].arity == 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", BINARY)
def test_promotion_is_numpys_for_all_pairs(name: str) -> None:
    strong, weak = operands_for("strong"), operands_for("weak")
    for (a, x), (b, y) in [*product(strong, strong), *product(strong, weak), *product(weak, strong)]:
        expected = numpy_dtype(name, x, y)
        where = (name, getattr(x, "dtype", x), getattr(y, "dtype", y))
        if expected is None:
            with pytest.raises(GraphcError):
                elementwise(name, a, b)
            continue
        assert elementwise(name, a, b).dtype == expected, where


@pytest.mark.parametrize("name", ["where", "clip"])
def test_promotion_of_three_operands(name: str) -> None:
    pairs = product(operands_for("strong"), operands_for("strong") + operands_for("weak"))
    for (a, x), (b, y) in pairs:
        if name == "where":
            assert elementwise("where", variable("bool", (None,)), a, b).dtype == np.where([True, False], x, y).dtype
        else:
            assert elementwise("clip", a, b, b).dtype == np.clip(x, y, y).dtype


def test_python_floats_become_floatx_where_no_operand_is_a_float() -> None:
    small, wide, single = variable("int8", ()), variable("int64", ()), variable("float32", ())
    assert as_node(1.5).dtype == "float64"
    assert (single * 1.5).dtype == "float32"
    with options.change(floatX="float32"):
        assert as_node(1.5).dtype == "float32"
        assert as_node([1.5, 2]).dtype == "float32"
        assert elementwise("mul", small, 1.5).dtype == "float32"
        assert elementwise("mul", wide, 1.5).dtype == "float64"
        assert elementwise("sin", 1).dtype == "float32"
    assert elementwise("mul", small, 1.5).dtype == "float64"


def test_lists_are_weak_and_arrays_strong() -> None:
    x = variable("float32", (3,))
    assert elementwise("add", x, [1.0, 2.0, 3.0]).dtype == "float32"
    assert elementwise("add", x, np.array([1.0, 2.0, 3.0])).dtype == "float64"
    assert elementwise("add", x, np.float64(1.0)).dtype == "float64"
    assert elementwise("add", [np.float64(1.0), 1.0, 1.0], x).dtype == "float64"


def test_lists_that_hold_nodes_are_stacked() -> None:
    x, y = variable("float32", (2,), "x"), variable("float64", (2,), "y")
    stacked = as_node([[x, y], [y, [1, 2]]])
    assert stacked.type.shape == (2, 2, 2) and stacked.dtype == "float64"
    values = {x: np.array([1, 2], "float32"), y: np.array([3.0, 4.0])}
    np.testing.assert_array_equal(run(stacked, values), [[[1, 2], [3, 4]], [[3, 4], [1, 2]]])
    with pytest.raises(ShapeError, match="rank"):
        as_node([x, 1.0])


@pytest.mark.parametrize("value", [None, "text", object(), np.array(["a"]), [[1], [1, 2]], {}, np.float16(1.0), 2**70])
def test_what_is_no_tensor_is_refused(value: Any) -> None:
    with pytest.raises((GraphTypeError, GraphValueError)):
        as_node(value)


def test_as_node_passes_nodes_and_casts() -> None:
    x = variable("float32", (2,), "x")
    assert as_node(x) is x
    assert as_node(x, "float64") is cast(x, "float64")
    assert as_node(3, "float32", name="three").name == "three"
    assert as_node(np.uint8(3)).dtype == "uint8" and as_node(True).dtype == "bool" and as_node(2**63).dtype == "uint64"


# --- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_integers_compare_exactly(name: str) -> None:
    signed = np.array([-1, 0, 1, 2**62, 2**63 - 1, -(2**63)], "int64")
    unsigned = np.array([2**64 - 1, 0, 1, 2**62 + 1, 2**63 - 1, 2**63], "uint64")
    a, b = variable("int64", (None,)), variable("uint64", (None,))
    ufunc = meaning(name)
    np.testing.assert_array_equal(run(elementwise(name, a, b), {a: signed, b: unsigned}), ufunc(signed, unsigned))
    np.testing.assert_array_equal(run(elementwise(name, b, a), {a: signed, b: unsigned}), ufunc(unsigned, signed))
    for number in (300, -1, 2**70):
        small = variable("uint8", (None,))
        values = np.array([0, 255], "uint8")
        np.testing.assert_array_equal(run(elementwise(name, small, number), {small: values}), ufunc(values, number))
        np.testing.assert_array_equal(run(elementwise(name, number, small), {small: values}), ufunc(number, values))


def test_python_integers_must_fit() -> None:
    x = variable("int8", (None,), "x")
    for name in ("add", "maximum", "bitwise_and"):
        with pytest.raises(GraphTypeError, match="300 is out of bounds for int8"):
            elementwise(name, x, 300)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_edges(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, 2, info.max], dtype)
    pairs = np.array(list(product(values, values)), dtype).T
    x, y = variable(dtype, (None,)), variable(dtype, (None,))
    for name in ("add", "sub", "mul", "floor_div", "mod", "fmod", "left_shift", "right_shift", "gcd", "maximum"):
        result = run(elementwise(name, x, y), dict(zip((x, y), pairs, strict=True)))
        np.testing.assert_array_equal(result, numpy_result(name, *pairs), err_msg=name)


def test_integer_powers() -> None:
    x, y = variable("int64", (None,)), variable("int64", (None,))
    base, exponent = np.array([-1, 0, -3, 7]), np.array([3, 0, 3, 2])
    np.testing.assert_array_equal(run(elementwise("pow", x, y), {x: base, y: exponent}), [-1, 1, -27, 49])
    with pytest.raises(GraphValueError, match="negative integer powers"):
        run(elementwise("pow", x, y), {x: base, y: -exponent})
    for bad in (-1, [2, -1], np.int8(-2), as_node(-3)):
        with pytest.raises(GraphValueError, match="negative integer powers"):
            elementwise("pow", x, bad)
    assert elementwise("pow", x, -1.0).dtype == "float64"


# --- casts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), list(product(DTYPES, DTYPES)))
def test_cast_is_astype(source: str, target: str) -> None:
    values = np.array([0, 1, 2, 100], "float64").astype(source)
    x = variable(source, (None,))
    result = run(cast(x, target), {x: values})
    np.testing.assert_array_equal(result, values.astype(target))
    assert result.dtype == target and (cast(x, target) is x) == (source == target)


# What a float is as int8, int32, uint32 and uint64: by C's conversions on x86-64.
BEYOND = {
    -1.5: (-1, -1, 2**32 - 1, 2**64 - 1),
    300.7: (44, 300, 300, 300),
    3e9: (0, -(2**31), 3 * 10**9, 3 * 10**9),
    -3e9: (0, -(2**31), 2**32 - 3 * 10**9, 2**64 - 3 * 10**9),
    2.0**31: (0, -(2**31), 2**31, 2**31),
    2.0**63: (0, -(2**31), 0, 2**63),
    2.0**64: (0, -(2**31), 0, 0),
    math.inf: (0, -(2**31), 0, 0),
    -math.inf: (0, -(2**31), 0, 2**63),
    math.nan: (0, -(2**31), 0, 2**63),
}


@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
@pytest.mark.parametrize("source", FLOATS)
def test_floats_beyond_integers_are_the_same_everywhere(source: str, mode: str) -> None:
    x = variable(source, (None,))
    targets = ("int8", "int32", "uint32", "uint64")
    results = graphc.function([x], [cast(x, target) for target in targets], mode)(np.array([*BEYOND], source))
    for position, target in enumerate(targets):
        wanted = [row[position] for row in BEYOND.values()]
        assert results[position].tolist() == wanted, target


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_only_static_ones_broadcast() -> None:
    matrix, vector = variable("float64", (None, None), "matrix"), variable("float64", (None,), "vector")
    row, column = variable("float64", (1, None), "row"), variable("float64", (None, 1), "column")
    m, v = np.ones((3, 2)), np.array([1.0, 2.0])
    np.testing.assert_array_equal(run(elementwise("add", matrix, vector), {matrix: m, vector: v}), m + v)
    table = run(elementwise("add", row, column), {row: v[None], column: np.ones((3, 1))})
    np.testing.assert_array_equal(table, v + np.ones((3, 1)))
    with pytest.raises(ShapeError, match=r"vector.*1.*broadcasts"):
        run(elementwise("add", matrix, vector), {matrix: m, vector: np.ones(1)})
    with pytest.raises(ShapeError, match=r"matrix.*vector.*2.*5"):
        run(elementwise("add", matrix, vector), {matrix: m, vector: np.ones(5)})


def test_static_sizes_that_differ_name_both() -> None:
    x, y = variable("float64", (2, 3), "x"), variable("float64", (4,), "y")
    with pytest.raises(ShapeError, match=r"x \(test_scalar_ops.py:\d+\) of type float64\[2, 3\] and y .*float64\[4\]"):
        elementwise("add", x, y)
    with pytest.raises(ShapeError, match="sizes 3 and 5 differ along axis 0"):
        make(OPS["add"], (variable("float64", (3,)), variable("float64", (5,))))
    with pytest.raises(ShapeError, match="ranks differ"):
        make(OPS["add"], (x, y))


def test_guards_name_each_pair_of_sizes_once() -> None:
    x, y, z = (variable("float64", (None,), name) for name in "xyz")
    node = elementwise("clip", x, y, z)
    assert [(g.left, g.right) for g in node.op.guards(node)] == [(x.type.shape[0], s.type.shape[0]) for s in (y, z)]
    again = elementwise("clip", x, y, y)
    assert len(again.op.guards(again)) == 1
    assert not (product_ := elementwise("mul", x, x)).op.guards(product_)
    braces = elementwise("add", variable("float64", (None,), "{odd}"), y)
    assert "{odd}" in str(braces.op.guards(braces)[0].message).format(left=1, right=2)


def test_empty_and_scalar_arrays() -> None:
    for name in NAMES:
        row = ROWS[name]
        dtype = "float64" if "float64" in row.rule.accepts else row.rule.accepts[-1]
        for shape in ((), (0,), (2, 0)):
            dtypes = (*row.rule.leading, *(dtype,) * (row.arity - len(row.rule.leading)))
            variables = [variable(d, (None,) * len(shape)) for d in dtypes]
            values = {v: np.ones(shape, v.dtype) for v in variables}
            result = run(elementwise(name, *variables), values)
            assert result.shape == shape


# --- ops at the level of nodes ---------------------------------------------------------------------------------------


def test_ops_take_only_the_dtypes_they_compute_in() -> None:
    integer, single, double = (variable(dtype, ()) for dtype in ("int64", "float32", "float64"))
    refused = (("sin", (integer,)), ("add", (single, double)), ("bitwise_and", (double, double)), ("add", (double,)))
    for name, args in refused:
        with pytest.raises(GraphTypeError, match=name):
            make(OPS[name], args)


def test_operators_and_methods_reach_the_table() -> None:
    x, n = variable("float64", (None,), "x"), variable("int64", (), "n")
    assert (x + 1) is elementwise("add", x, 1)
    assert (2 - x) is elementwise("sub", 2, x)
    assert str((np.ones(3) * x).dtype) == "float64"
    assert (n << 2).op is OPS["left_shift"]
    assert abs(x).op is OPS["abs"]
    assert (x > 0).dtype == "bool"
    assert x.exp() is elementwise("exp", x)
    assert FUNCTIONS["exp"].__doc__


def test_an_op_costs_what_its_operators_cost() -> None:
    """The plan reckons with ops, the sharing out of loops with operators: two tables of one quantity."""

    def cost(part: Tree) -> float:
        return part.op.cost + sum(map(cost, part.parts)) if isinstance(part, Part) else 0.0

    for row in ROWS.values():
        template = row.template if isinstance(row.template, str) else row.template("float64")
        free = {"positive": -1, "xlogy": 3, "xlog1py": 3}.get(
            row.name, 0
        )  # the argument itself; comparisons beside a log
        assert cost(parse(template)) == row.cost + free, row.name


def test_samples_cover_every_op_and_build() -> None:
    kinds = {"float": "float64", "int": "int64", "bool": "bool", "index": "int64"}
    for name in [*NAMES, "cast", "stop_gradient"]:
        assert OPS[name].samples, name
        for sample in OPS[name].samples:
            variables = [variable(kinds[a.category], a.shape) for a in sample.args]
            assert sample.build(*variables).ndim == 2


# --- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMES if ROWS[n].laws != type(ROWS[n].laws)()])
def test_laws_hold_on_samples(name: str) -> None:
    laws = ROWS[name].laws
    for dtype in ("float64", "int64", "bool"):
        if dtype not in ROWS[name].rule.accepts:
            continue

        def f(*values: Any, dtype: str = dtype, op: str = name) -> Any:
            variables = [variable(dtype, (None,)) for _ in values]
            node = elementwise(op, *variables)
            return run(node, dict(zip(variables, values, strict=True)))

        x, *rest = draw(name, dtype)
        y = rest[0] if rest else x
        same = np.testing.assert_allclose
        if laws.identity is not None and not (dtype == "bool" and name in ("maximum", "minimum")):
            same(f(x, np.full_like(x, laws.identity)), x)
        if laws.zero is not None:
            same(f(x, np.full_like(x, laws.zero)), np.full_like(x, laws.zero))
        if laws.commutative:
            same(f(x, y), f(y, x))
        if laws.involution and not (name == "reciprocal" and dtype == "int64"):
            same(f(f(x)), x)
        if laws.idempotent:
            same(f(f(x)), f(x))
        if laws.inverse is not None:
            same(f(f(x), op=laws.inverse), x, rtol=1e-9)


# --- derivatives -----------------------------------------------------------------------------------------------------

DIFFERENTIABLE = [
    pytest.param(sample, id=sample.name) for name in NAMES for sample in OPS[name].samples if sample.differentiable
]


@pytest.mark.parametrize("sample", DIFFERENTIABLE)
def test_derivative_to_second_order(sample: Sample) -> None:
    rng = np.random.default_rng(3)
    variables, values = [], {}
    for argument in sample.args:
        dtype = "bool" if argument.category == "bool" else "float64"
        v = variable(dtype, argument.shape)
        drawn = rng.uniform(argument.low, argument.high, argument.shape)
        variables.append(v)
        values[v] = drawn > 0 if dtype == "bool" else drawn
    floats = [v for v in variables if v.dtype == "float64"]
    node = sample.build(*variables)
    if node.dtype != "float64":
        return
    weights = rng.uniform(0.5, 1.5, [size for size in node.type.shape if isinstance(size, int)])
    cost = total(elementwise("mul", node, weights))
    order = 1 if sample.name == "digamma" else 2
    check_gradient(cost, floats, values, order, rng)


def total(node: Node) -> Node:
    return make(OPS["sum"], (node,), {"axes": tuple(range(node.ndim))})


def check_gradient(cost: Node, wrt: list[Node], values: dict[Node, Any], order: int, rng: Any) -> None:
    """The gradient along a random direction against central differences; then the same for that product."""
    gradients = grad(cost, wrt, disconnected_inputs="ignore")
    directions = [rng.uniform(-1, 1, v.type.shape) for v in wrt]
    terms = [total(elementwise("mul", g, d)) for g, d in zip(gradients, directions, strict=True)]
    slope = terms[0]
    for term in terms[1:]:
        slope = elementwise("add", slope, term)
    step = 1e-5

    def shifted(sign: float) -> float:
        moved = dict(values)
        for v, direction in zip(wrt, directions, strict=True):
            moved[v] = values[v] + sign * step * direction
        return float(run(cost, moved))

    expected = (shifted(1.0) - shifted(-1.0)) / (2 * step)
    np.testing.assert_allclose(run(slope, values), expected, rtol=1e-6, atol=1e-7)
    if order > 1:
        check_gradient(slope, wrt, values, order - 1, rng)


def gradient_at(name: str, *point: float) -> list[float]:
    variables = [variable("float64", ()) for _ in point]
    values = {v: np.float64(p) for v, p in zip(variables, point, strict=True)}
    gradients = grad(elementwise(name, *variables), variables, disconnected_inputs="ignore")
    return [float(run(g, values)) for g in gradients]


def test_derivatives_at_kinks_and_poles() -> None:
    assert gradient_at("maximum", 1.0, 1.0) == [0.5, 0.5]
    assert gradient_at("minimum", 1.0, 1.0) == [0.5, 0.5]
    assert gradient_at("fmax", 1.0, np.nan) == [1.0, 0.0]
    assert gradient_at("fmin", np.nan, 1.0) == [0.0, 1.0]
    assert gradient_at("abs", 0.0) == [0.0]
    assert gradient_at("pow", 0.0, 2.0) == [0.0, 0.0]
    assert gradient_at("pow", 0.0, 0.0) == [0.0, 0.0]
    assert gradient_at("hypot", 0.0, 0.0) == [0.0, 0.0]
    assert gradient_at("xlogy", 0.0, 0.0)[1] == 0.0
    assert gradient_at("clip", 2.0, -1.0, 1.0) == [0.0, 0.0, 1.0]
    assert gradient_at("clip", 0.0, 1.0, -1.0) == [0.0, 0.0, 1.0]
    assert gradient_at("clip", 1.0, 1.0, 1.0) == [0.0, 0.0, 1.0]
    assert gradient_at("clip", 1.0, 1.0, 2.0) == gradient_at("clip", 2.0, 1.0, 2.0) == [1.0, 0.0, 0.0]
    assert gradient_at("softplus", 1000.0) == [1.0]
    assert gradient_at("sigmoid", -1000.0) == [0.0]
    assert gradient_at("logaddexp", 1000.0, -1000.0) == [1.0, 0.0]


def test_literal_exponents_have_plain_derivatives() -> None:
    x = variable("float64", ())
    for exponent, expected in ((0, 0.0), (1, 1.0), (2, 6.0), (3, 27.0), (0.5, 0.5 / np.sqrt(3.0)), (-1, -1 / 9.0)):
        gradient = grad(elementwise("pow", x, exponent), x, disconnected_inputs="ignore")
        np.testing.assert_allclose(run(gradient, {x: np.float64(3.0)}), expected)


def test_stop_gradient_holds_its_argument_constant() -> None:
    x = variable("float64", ())
    gradient = grad(elementwise("mul", x, stop_gradient(x)), x)
    assert float(run(gradient, {x: np.float64(3.0)})) == 3.0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_by_powers_of_two_round_down(dtype: str) -> None:
    """They are shifts, of negative numbers too."""
    x = T.tensor(dtype, (None,), "x")
    limits = np.iinfo(dtype)
    numbers = [0, 1, 7, 8, 9, limits.max, limits.min, *([-1, -7, -8, -9] if limits.min else [])]
    values = np.array(numbers, dtype)
    for divisor in (1, 2, 8, 64, 3, *([-8] if limits.min else [])):
        f = graphc.function([x], [x // divisor, x % divisor])
        for result, expected in zip(f(values), (values // divisor, values % divisor), strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_of_floats_by_powers_of_two_are_numpys(dtype: str) -> None:
    """No call of fmod; the same bits, of numbers near 0 and near the largest too."""
    x = T.tensor(dtype, (None,), "x")
    limits, whole = np.finfo(dtype), f"i{np.dtype(dtype).itemsize}"
    small = [limits.eps / 4, limits.tiny, limits.smallest_subnormal]
    near = np.array([0.0, 0.5, 1.0, 63.999, 64.0, *small, limits.max, np.inf], dtype)
    rng = np.random.default_rng(0)
    bits = rng.integers(np.iinfo(whole).min, np.iinfo(whole).max, 5000, whole).view(dtype)
    values = np.concatenate([near, -near, np.round(rng.normal(size=99) * 500).astype(dtype), bits])
    divisors = (1.0, 64.0, 2.0**64)
    f = graphc.function([x], [x % divisor for divisor in divisors])
    assert "fmod" not in f.assembly
    with np.errstate(all="ignore"):
        for result, divisor in zip(f(values), divisors, strict=True):
            wanted = values % np.array(divisor, dtype)
            np.testing.assert_array_equal(result, wanted)
            np.testing.assert_array_equal(result[~np.isnan(wanted)].view(whole), wanted[~np.isnan(wanted)].view(whole))
