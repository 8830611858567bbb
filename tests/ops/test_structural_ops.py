"""The structural op records: what their samples compute, their derivatives, and that their loops mean the same.

Every sample of every record is evaluated by `eval` and by its lowering (a small machine in this file runs `View`,
`Fold`, `Writes` and `Iota` element by element, as the code generator would); where it is differentiable, its `vjp` is
compared with finite differences, to second order.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from ast import Name, unparse
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.arrays.dtypes import highest, lowest
from graphc.autodiff import grad
from graphc.codegen.frontend.language import PRELUDE
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.ir.interpret import interpret
from graphc.ir.lowering import Call, Fold, Iota, View, Write, Writes
from graphc.ir.node import OPS, Argument, Array, Node, Sample, Size, literal, variable
from graphc.ir.walk import Graph, as_size_node
from graphc.loopir import ir as loops
from graphc.loopir.syntax import node_of
from graphc.ops import LATER, index, reduce, shape
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg import products as linalg

STRUCTURAL = (
    "broadcast_to checked dimshuffle reshape concatenate iota subtensor set_subtensor inc_subtensor "
    "gather set_gather inc_gather sum prod max min any all argmax argmin matmul gemm windows inc_windows join_windows "
    "conv"
).split()
DTYPES = {"float": "float64", "int": "int64", "index": "int64", "bool": "bool"}
SAMPLES = [
    pytest.param(sample, static, id=f"{name}: {sample.name} ({'static' if static else 'open'})")
    for name in STRUCTURAL
    for sample in OPS[name].samples
    for static in (True, False)
]


def draw(argument: Argument, generator: np.random.Generator) -> Array:
    """An array for an argument of a sample."""
    if argument.category == "float":
        return generator.uniform(argument.low, argument.high, argument.shape)
    if argument.category == "bool":
        return generator.random(argument.shape) < 0.5
    return generator.integers(int(argument.low), int(argument.high) + 1, argument.shape)


def drawn(sample: Sample, static: bool) -> tuple[dict[Node, Array], Node]:
    """The inputs of a sample with their values, and its node."""
    generator = np.random.default_rng(zlib.crc32(sample.name.encode()))
    inputs = {}
    for position, argument in enumerate(sample.args):
        sizes = [size if static or size == 1 else None for size in argument.shape]
        inputs[variable(DTYPES[argument.category], sizes, f"v{position}")] = draw(argument, generator)
    return inputs, sample.build(*inputs)


def run(nodes: Sequence[Node], inputs: dict[Node, Array]) -> list[Array]:
    return interpret(Graph(tuple(inputs), tuple(nodes)), inputs)


# --- lowering -------------------------------------------------------------------------------------------------------


class Machine:
    """Runs one node's lowering on the values of its arguments."""

    def __init__(self, node: Node, inputs: dict[Node, Array]) -> None:
        self.node = node
        self.inputs = inputs
        self.args = run(node.args, inputs) if node.args else []

    def element(self, node: Node, position: tuple[loops.Expr, ...]) -> loops.Expr:
        """An element of an argument, or of a size, as a literal."""
        if node in self.node.args:
            value = self.args[self.node.args.index(node)]
        else:
            (value,) = run([node], self.inputs)
        found = value[tuple(self.number(expr) for expr in position)]
        return loops.Const(repr(found.item()), node.dtype)

    def number(self, expr: loops.Expr) -> Any:
        match expr:
            case loops.Const(text, dtype):
                names = {"inf": np.inf, "-inf": -np.inf, "True": True, "False": False}
                return np.dtype(dtype).type(
                    names[text] if text in names else float(text) if "float" in dtype else int(text)
                )
            case loops.Apply(op, args, dtype):
                source = unparse(node_of(op, [Name(f"_{hole}") for hole in range(op.arity)]))
                return np.dtype(dtype).type(self.compute(source, [self.number(arg) for arg in args]))
        raise AssertionError(expr)

    def compute(self, template: str, values: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return eval(template, dict(PRELUDE), {f"_{k}": value for k, value in enumerate(values)})

    def sizes(self, shape: Sequence[Size]) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else int(run([size], self.inputs)[0]) for size in shape)

    def read(self, argument: int, position: tuple[loops.Expr, ...]) -> Any:
        return self.args[argument][tuple(self.number(expr) for expr in position)]

    def run(self, result: Array) -> Array:
        """`result` filled by the lowering."""
        lowering = self.node.op.lower(self.node)
        if isinstance(lowering, Writes):
            for region in lowering.regions(self.node):
                self.write(region, result)
            return result
        for place in np.ndindex(result.shape):
            position = tuple(map(loops.integer, place))
            match lowering:
                case View(where):
                    result[place] = self.read(*where(self.node, position, self.element))
                case Iota(axis):
                    result[place] = place[axis]
                case Fold():
                    result[place] = self.fold(lowering, position)
                case _:
                    raise AssertionError(lowering)
        return result

    def fold(self, fold: Fold, position: tuple[loops.Expr, ...]) -> Any:
        state = [self.number(loops.Const(text, dtype)) for text, dtype in zip(fold.start, fold.dtypes, strict=True)]
        for flat, inner in enumerate(np.ndindex(self.sizes(fold.sizes(self.node)))):
            operands = fold.operands(self.node, position, tuple(map(loops.integer, inner)))
            term = self.compute(fold.term, [self.read(*operand) for operand in operands])
            for k, step in enumerate(fold.step):
                state[k] = np.dtype(fold.dtypes[k]).type(self.compute(step, [*state, term, flat]))
        return state[fold.result]

    def write(self, region: Write, result: Array) -> None:
        for place in np.ndindex(self.sizes(region.sizes)):
            position = tuple(map(loops.integer, place))
            target = tuple(self.number(expr) for expr in region.target(position, self.element))
            assert all(0 <= k < n for k, n in zip(target, result.shape, strict=True))
            value = self.read(*region.value(position))
            result[target] = result[target] + value if region.accumulate else value


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "static"), SAMPLES)
def test_eval_gives_the_declared_type(sample: Sample, static: bool) -> None:
    inputs, node = drawn(sample, static)
    (value,) = run([node], inputs)
    assert value.dtype == node.dtype
    assert all(not isinstance(n, int) or n == m for n, m in zip(node.type.shape, value.shape, strict=True))


def is_call(sample: Sample, static: bool) -> bool:
    """Whether a sample is computed by BLAS, which the machine has not."""
    _, node = drawn(sample, static)
    return isinstance(node.op.lower(node), Call)


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "static"), [case for case in SAMPLES if not is_call(*case.values)])  # type: ignore[arg-type]
def test_lowering_means_what_eval_means(sample: Sample, static: bool) -> None:
    inputs, node = drawn(sample, static)
    (expected,) = run([node], inputs)
    found = Machine(node, inputs).run(np.zeros(expected.shape, expected.dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-13, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "static"), [case for case in SAMPLES if case.values[0].differentiable])  # type: ignore[union-attr]
def test_vjp_to_second_order(sample: Sample, static: bool) -> None:
    inputs, node = drawn(sample, static)
    generator = np.random.default_rng(5)
    floats = [variable for variable in inputs if variable.dtype == "float64"]
    (value,) = run([node], inputs)
    cost = total(elementwise("mul", elementwise("sqr", node), literal(generator.uniform(0.5, 1.5, value.shape))))
    for order in (1, 2):
        gradients = grad(cost, floats, disconnected_inputs="ignore")
        directions = [generator.normal(size=inputs[variable].shape) for variable in floats]
        slopes = [total(elementwise("mul", g, literal(d))) for g, d in zip(gradients, directions, strict=True)]
        slope = slopes[0]
        for more in slopes[1:]:
            slope = elementwise("add", slope, more)
        step = 1e-5
        moved = []
        for sign in (1, -1):
            shifted = {v: inputs[v] + sign * step * d for v, d in zip(floats, directions, strict=True)}
            moved.append(run([cost], inputs | shifted)[0])
        found = run([slope], inputs)[0]
        wanted = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=f"order {order}")
        cost = slope


def total(node: Node) -> Node:
    return reduce.reduce_sum(node, range(node.ndim)) if node.ndim else node


# --- values that samples do not draw --------------------------------------------------------------------------------

NAN = np.nan
INF = np.inf


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize(
    "values",
    [
        [1.0, 3.0, 3.0, 2.0],
        [-INF, -INF],
        [INF, INF],
        [1.0, NAN, 3.0, NAN],
        [NAN, NAN],
        [-INF, NAN, INF],
        [-0.0, 0.0],
    ],
)
def test_extremes_of_special_values(name: str, values: list[float]) -> None:
    data = np.array(values)
    x = variable("float64", [None], "x")
    node = reduce.reduction(name, x, (0,))
    (expected,) = run([node], {x: data})
    np.testing.assert_array_equal(expected, getattr(np, name)(data))
    np.testing.assert_array_equal(Machine(node, {x: data}).run(np.zeros((), node.dtype)), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool", "float32"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_the_least_and_greatest(name: str, dtype: str) -> None:
    """The accumulator's start must not hide an element as extreme as itself."""
    for text in (lowest(dtype), highest(dtype)):
        number = {"inf": np.inf, "-inf": -np.inf, "True": True, "False": False}.get(text)
        data = np.full(3, int(text) if number is None else number, dtype)
        x = variable(dtype, [3], "x")
        node = reduce.reduction(name, x, (0,))
        found = Machine(node, {x: data}).run(np.zeros((), node.dtype))
        np.testing.assert_array_equal(found, getattr(np, name)(data), strict=True)


def test_float32_sums_are_carried_in_float64() -> None:
    x = variable("float32", [None], "x")
    data = np.full(100_000, 0.1, "float32")
    node = reduce.reduce_sum(x, (0,))
    (value,) = run([node], {x: data})
    assert value.dtype == "float32"
    assert value == np.float32(data.astype("float64").sum())
    lowering = OPS["sum"].lower(node)
    assert isinstance(lowering, Fold)
    assert lowering.dtypes == ("float64",)


def test_equal_maxima_share_the_derivative() -> None:
    x = variable("float64", [None], "x")
    gradient = grad(reduce.reduce_max(x, (0,)), x)
    np.testing.assert_array_equal(run([gradient], {x: np.array([1.0, 3.0, 3.0])})[0], [0, 0.5, 0.5])


def test_the_last_of_repeated_writes_gets_the_derivative() -> None:
    x, y = variable("float64", [None], "x"), variable("float64", [None], "y")
    node = index.set_gather(x, y, (literal([1, 1, -2], "int64"),), 0)
    cost = total(elementwise("mul", node, literal([10.0, 20.0, 30.0])))
    values = run(list(grad(cost, [x, y])), {x: np.zeros(3), y: np.ones(3)})
    np.testing.assert_array_equal(values[0], [10, 0, 30])
    np.testing.assert_array_equal(values[1], [0, 0, 20])


def test_results_do_not_alias_arguments_that_are_written() -> None:
    x, y = variable("float64", [3], "x"), variable("float64", [1], "y")
    data = np.arange(3.0)
    for update in (index.set_subtensor, index.inc_subtensor):
        (value,) = run([update(x, y, (0,), (1,))], {x: data, y: np.array([9.0])})
        assert value[0] == 9
        np.testing.assert_array_equal(data, [0, 1, 2])


# --- makers that have nothing to do ---------------------------------------------------------------------------------


def test_makers_return_the_argument_where_there_is_nothing_to_do() -> None:
    x = variable("float64", [None, 3], "x")
    assert shape.broadcast_to(x, x.type.shape) is x
    assert shape.dimshuffle(x, (0, 1)) is x
    assert shape.reshape(x, x.type.shape) is x
    assert shape.concatenate([x], 0) is x
    assert index.subtensor(x, (0, 0), x.type.shape, (1, 1)) is x


def test_axes_that_become_others_by_themselves_need_no_division() -> None:
    """The blocks of an image that is cut to a multiple of their size, of any size or a known one."""
    for known in (None, 9):
        image = variable("float64", (known, known), "image")
        height, width = (image.shape[axis] // 2 for axis in (0, 1))
        blocks = image[: 2 * height, : 2 * width].reshape((height, 2, width, 2)).max((1, 3))
        f = graphc.function([image], blocks, mode="python")
        body = f.source.partition("def kernel")[2] if known else f.source.partition("def sizes")[0]
        assert "//" not in body and "%" not in body
        given = np.arange(81.0).reshape(9, 9) % 7
        np.testing.assert_array_equal(f(given), given[:8, :8].reshape(4, 2, 4, 2).max((1, 3)))


def test_sizes_known_to_agree_are_not_guarded() -> None:
    x = variable("float64", [None, None], "x")
    rows, columns = x.type.shape
    flat = shape.reshape(x, (sizes_product(rows, columns),))
    assert not OPS["reshape"].guards(flat)
    assert not OPS["reshape"].guards(shape.reshape(flat, (columns, rows)))
    assert not OPS["matmul"].guards(linalg.matmul(x, shape.transpose(x)))
    assert OPS["matmul"].guards(linalg.matmul(x, x))


def sizes_product(left: Size, right: Size) -> Node:
    return elementwise("mul", as_size_node(left), as_size_node(right))


# --- sizes that only a call tells ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("is_known", [True, False], ids=["a known start", "any start"])
def test_regions_of_fixed_size_are_held_to_their_axis(step: int, is_known: bool) -> None:
    x, begin = variable("float64", [None], "x"), variable("int64", [], "begin")
    for start, length in product(range(7), range(1, 7)):
        part = index.subtensor(x, (start if is_known else begin,), (3,), (step,))
        places = np.arange(3) * step + start
        if places.min() >= 0 and places.max() < length:
            np.testing.assert_array_equal(run([part], {x: np.arange(float(length)), begin: np.array(start)})[0], places)
        else:
            with pytest.raises(IndexOutOfBounds, match="axis 0"):
                run([part], {x: np.arange(float(length)), begin: np.array(start)})


@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (2, 3)])
def test_indices_of_a_gather_are_of_one_size(sizes: tuple[int, int]) -> None:
    rows, columns = (variable("int64", [None], name) for name in ("rows", "columns"))
    points = index.gather(variable("float64", [4, 4], "table"), (rows, columns), 0)
    values = dict(zip((points.args[0], rows, columns), (np.zeros((4, 4)), *map(np.zeros, sizes)), strict=True))
    with pytest.raises(ShapeError, match=f"table.*{sizes[0]} and {sizes[1]}"):
        run([points], {leaf: value.astype(leaf.dtype) for leaf, value in values.items()})


@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (2, 3)])
def test_batches_of_matrices_are_of_one_size(sizes: tuple[int, int]) -> None:
    left, right = (variable("float64", [None, 2, 2], name) for name in ("left", "right"))
    with pytest.raises(ShapeError, match=f"left.*axis 0.*{sizes[0]} and {sizes[1]}"):
        run([linalg.matmul(left, right)], {left: np.zeros((sizes[0], 2, 2)), right: np.zeros((sizes[1], 2, 2))})


# --- types that cannot be -------------------------------------------------------------------------------------------

X = variable("float64", [3, 4], "weights")
I = variable("int64", [2], "rows")  # noqa: E741
B = variable("bool", [3], "mask")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shape.broadcast_to(X, (3, 5)), ShapeError, "weights.*axis 1.*4 and 5"),
        (lambda: shape.broadcast_to(X, (3,)), GraphTypeError, "weights.*1 sizes for 2 axes"),
        (lambda: shape.dimshuffle(X, (0,)), GraphTypeError, "weights.*axis 1"),
        (lambda: shape.dimshuffle(X, (0, 0, 1)), GraphTypeError, "weights.*twice"),
        (lambda: shape.dimshuffle(X, (0, 2)), GraphTypeError, "weights.*2"),
        (lambda: shape.reshape(X, (5,)), ShapeError, "weights.*12 elements"),
        (lambda: shape.reshape(X, (-3, -4)), ShapeError, "weights.*negative"),
        (lambda: shape.concatenate((X, variable("float64", [3, 4], "v")), 2), GraphTypeError, "weights.*axis 2"),
        (lambda: shape.concatenate((X, I), 0), GraphTypeError, "weights.*rows"),
        (lambda: shape.concatenate((), 0), GraphTypeError, "at least one"),
        (lambda: shape.iota(-1), ShapeError, "negative"),
        (lambda: reduce.reduce_sum(B, (0,)), GraphTypeError, "mask.*int64"),
        (lambda: reduce.reduce_any(X, (0,)), GraphTypeError, "weights.*bool"),
        (lambda: reduce.reduce_sum(X, (1, 0)), GraphTypeError, "weights.*ascending"),
        (lambda: reduce.reduce_max(variable("float64", [0], "none"), (0,)), ShapeError, "none.*zero-size"),
        (lambda: index.subtensor(X, (0, 0), (4, 4), (1, 1)), IndexOutOfBounds, "weights.*index 3"),
        (lambda: index.subtensor(X, (0, 0), (2, 2), (1, 0)), GraphTypeError, "weights.*step"),
        (lambda: index.subtensor(X, (0,), (2,), (1,)), GraphTypeError, "weights.*2 axes"),
        (lambda: index.set_subtensor(X, I, (0, 0), (1, 1)), GraphTypeError, "weights.*rows"),
        (lambda: index.gather(X, (B,), 0), GraphTypeError, "weights.*mask.*bool"),
        (lambda: index.gather(X, (I, I, I), 0), GraphTypeError, "weights.*3 indices"),
        (lambda: index.inc_gather(X, X, (I,), 0), ShapeError, "axis 0.*3 and 2"),
        (lambda: linalg.matmul(X, X), ShapeError, "weights.*4 and 3"),
        (lambda: linalg.matmul(X, I), GraphTypeError, "weights.*rows.*one dtype"),
        (lambda: linalg.gemm(X, X, X, X, X), GraphTypeError, "not float matrices"),
    ],
)
def test_bad_types_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises((error, GraphValueError), match=message):
        call()


DEFINED = """
from importlib import import_module
from graphc.ir.node import OPS
from graphc.ops import LATER
for module in LATER:
    before = set(dict.keys(OPS))
    import_module(f"graphc.ops.{module}")
    print(module, *sorted(set(dict.keys(OPS)) - before))
assert not OPS.later and len(OPS) == len(list(OPS.values()))
"""


@pytest.mark.slow
def test_ops_that_are_imported_late_are_those_that_their_modules_define() -> None:
    done = subprocess.run([sys.executable, "-c", DEFINED], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{module} {names}" for module, names in LATER.items()]
