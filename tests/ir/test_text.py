"""The printed form of graphs: it reads back, it says everything, and it does not depend on how a graph was built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import graphc.ops  # noqa: F401 - fills the table
from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphTypeError, MissingInputError, ParseError
from graphc.ir.interpret import interpret
from graphc.ir.lowering import Scalar
from graphc.ir.node import OPS, SHARED, Node, Op, Type, literal, make, size_leaf, variable
from graphc.ir.parse import parse_graph
from graphc.ir.text import graph_key_text, print_graph
from graphc.ir.verify import verify
from graphc.ir.walk import Graph
from graphc.ops.elementwise import as_node, cast, elementwise
from tests.support.counting import assert_linear


def shared(dtype: str, ndim: int, name: str) -> Node:
    kind = Type(dtype, tuple(size_leaf(name, axis) for axis in range(ndim)))
    return Node(SHARED, (), {"type": kind}, kind, name)


def roundtrip(graph: Graph) -> Graph:
    text = print_graph(graph)
    again = parse_graph(text)
    assert print_graph(again) == text
    verify(again)
    return again


def total(node: Node, *axes: int) -> Node:
    return make(OPS["sum"], (node,), {"axes": axes})


def size_of(leaf: Node, axis: int = 0) -> Node:
    size = leaf.type.shape[axis]
    assert isinstance(size, Node)
    return size


def identity_op(name: str, version: str = "") -> Op:
    return Op(name, lambda args, attrs: args[0].type, lambda node, x: x, lambda node: Scalar("_0"), version=version)


def test_the_form() -> None:
    x, y = variable("float64", (None, 3), "x"), variable("float64", (3,), "y")
    weights = shared("float64", 2, "W")
    outputs = (total(elementwise("add", x, y), 1), elementwise("mul", weights, 1.5), as_node([1.0, 2.5]), x)
    assert print_graph(Graph((x, y), outputs)).splitlines() == [
        "inputs x: float64[x.0, 3], y: float64[3]",
        "shared W: float64[W.0, W.1]",
        "%0 = dimshuffle(y; order=('x', 0))  # float64[1, 3]",
        "%1 = broadcast_to(%0, x.0, 3:int64)  # float64[x.0, 3]",
        "%2 = add(x, %1)  # float64[x.0, 3]",
        "%3 = sum(%2; axes=(1,))  # float64[x.0]",
        "%4 = dimshuffle(1.5:float64; order=('x', 'x'))  # float64[1, 1]",
        "%5 = broadcast_to(%4, W.0, W.1)  # float64[W.0, W.1]",
        "%6 = mul(W, %5)  # float64[W.0, W.1]",
        "%7 = constant(float64[2] [1.0, 2.5])",
        "outputs %3, %6, %7, x",
    ]


def test_reading_back_gives_the_same_function() -> None:
    x, weights = variable("float64", (None, None), "x"), shared("float64", 2, "W")
    graph = Graph((x,), (total(elementwise("tanh", elementwise("mul", x, weights)), 0), size_of(weights)))
    again = roundtrip(graph)
    values = np.arange(6.0).reshape(2, 3)
    inner = next(n for n in (again.outputs[0].args[0].args[0].args) if n.op is SHARED)
    before = interpret(graph, {x: values, weights: values + 1})
    after = interpret(again, {again.inputs[0]: values, inner: values + 1})
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_keep_their_bits(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((), (1,), (0,), (2, 0, 3), (2, 3), (4, 4), (17,), (3, 50)):
        # all bit patterns, so that NaNs with payloads, subnormals and -0.0 are among them
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        data = rng.integers(0, 2 if dtype == "bool" else 256, size, dtype="uint8").tobytes()
        value = np.frombuffer(data, dtype).reshape(shape)
        check_constant(value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_floats_keep_their_bits(dtype: str) -> None:
    info = np.finfo(dtype)
    bits = {"float32": "uint32", "float64": "uint64"}[dtype]
    quiet = np.array(np.nan, dtype).view(bits)
    payloads = np.array([quiet, quiet + 5, quiet | (1 << (8 * quiet.itemsize - 1))], bits).view(dtype)
    for item in [0.0, -0.0, np.inf, -np.inf, info.max, info.tiny, info.smallest_subnormal, 0.1, 1 / 3, *payloads]:
        value = np.array(item, dtype) if isinstance(item, float) else np.asarray(item)
        check_constant(value)
        check_constant(value.reshape(1))


def check_constant(value: np.ndarray[Any, Any]) -> None:
    node = literal(value)
    assert roundtrip(Graph((), (node, elementwise("logical_not", node)))).outputs[0] is node


def test_attributes_of_any_literal_kind() -> None:
    name = "test_text_attributes"
    OPS[name] = identity_op(name)
    x = variable("float64", (), "x")
    attrs = {"a": 1, "b": -2.5, "c": "s; )  # t', %0", "d": (1, ("x", None), ()), "e": True, "f": -np.inf}
    try:
        graph = Graph((x,), (make(OPS[name], (x,), attrs), make(OPS[name], (x,))))
        assert roundtrip(graph).outputs[0].attrs == attrs
        for bad in (np.int64(1), float("nan"), object()):
            with pytest.raises(GraphTypeError, match="attribute"):
                print_graph(Graph((x,), (make(OPS[name], (x,), {"bad": bad}),)))
    finally:
        del OPS[name]


def test_the_version_of_an_op_is_part_of_the_text() -> None:
    name, texts = "test_text_versioned", []
    x = variable("float64", (), "x")
    try:
        for version in ("one", "two"):
            OPS[name] = identity_op(name, version)
            texts.append(print_graph(Graph((x,), (make(OPS[name], (x,)),))))
        assert texts[0] != texts[1] and parse_graph(texts[1])
        with pytest.raises(ParseError, match="two"):
            parse_graph(texts[0])
    finally:
        del OPS[name]


def test_names_become_unique_identifiers() -> None:
    names = ["x", "x", None, "a b", "1", "x_1", "input2", "lambda", "é", ""]
    inputs = tuple(variable("float64", (), name) for name in names)
    again = roundtrip(Graph(inputs, inputs))
    assert len({leaf.name for leaf in again.inputs}) == len(names)
    assert all(leaf.name and leaf.name.isidentifier() for leaf in again.inputs)


def test_sizes_may_be_shared_or_computed() -> None:
    x = variable("float64", (None, None), "x")
    n = variable("int64", (), "n")
    square = variable("float64", (x.type.shape[0], x.type.shape[0]), "square")
    double = variable("float64", (elementwise("mul", n, 2),), "double")
    sized = variable("float64", (n,), "sized")
    again = roundtrip(Graph((x, n, square, double, sized), (elementwise("neg", double), square, sized, x)))
    xs, ns, squares, doubles, sizeds = again.inputs
    assert squares.type.shape == (xs.type.shape[0],) * 2
    assert sizeds.type.shape == (ns,) and doubles.type.shape == (elementwise("mul", ns, 2),)


def test_forgotten_leaves_are_shown() -> None:
    x, y = variable("float64", (None,), "x"), variable("float64", (None,), "y")
    text = print_graph(Graph((x,), (elementwise("add", x, y),)))
    assert "free y: float64[y.0]" in text and print_graph(parse_graph(text)) == text
    lost = print_graph(Graph((), (elementwise("add", y.type.shape[0], 1),)))
    assert "sizes y.0" in lost and print_graph(parse_graph(lost)) == lost


def test_the_text_does_not_depend_on_the_order_of_building() -> None:
    def build(first: str) -> Graph:
        names = ("x", "y") if first == "x" else ("y", "x")
        leaves = {name: variable("float64", (None, None), name) for name in names}
        x, y = leaves["x"], leaves["y"]
        if first == "x":
            left, right = elementwise("sin", x), elementwise("cos", y)
        else:
            right, left = elementwise("cos", y), elementwise("sin", x)
        joined = make(OPS["concatenate"], (left, right), {"axis": 0})
        return Graph((x, y), (elementwise("add", left, right), elementwise("exp", joined)))

    assert print_graph(build("x")) == print_graph(build("y"))


def test_what_differs_has_another_text() -> None:
    x = variable("float64", (None,), "x")
    graphs = [
        Graph((x,), (elementwise("add", x, 1.0),)),
        Graph((x,), (elementwise("add", x, -1.0),)),
        Graph((x,), (elementwise("add", x, np.nan),)),
        Graph((x,), (elementwise("add", cast(x, "float32"), 1.0),)),
        Graph((x,), (elementwise("add", x, 1.0), x)),
        Graph((x,), (x, elementwise("add", x, 1.0))),
        Graph((x,), (total(x, 0),)),
        Graph((x,), (total(x),)),
    ]
    for shape in ((3,), ()):
        other = variable("float64", shape, "x")
        graphs.append(Graph((other,), (elementwise("add", other, 1.0),)))
    texts = [graph_key_text(graph) for graph in graphs]
    assert len(set(texts)) == len(texts)


# --- random graphs ---------------------------------------------------------------------------------------------------

UNARY = ["exp", "neg", "abs", "sqr", "floor", "isnan", "sin"]
BINARY = ["add", "mul", "sub", "maximum", "less", "logical_or", "true_div"]
SIZES = st.sampled_from([None, 1, 2, 3])


@st.composite
def graphs(draw: Any) -> Graph:
    """Scalar ops, broadcasts, casts, sums and constants over a few leaves of one shape or of scalars."""
    shape = draw(st.lists(SIZES, max_size=2))
    leaf = variable("float64", shape, draw(st.sampled_from(["x", "the x", None])))
    single = variable("float32", (), "s")
    weights = Node(SHARED, (), {"type": leaf.type}, leaf.type, "w") if draw(st.booleans()) else leaf
    pool: list[Node] = [leaf, single, weights, cast(leaf, "int32")]
    pool += [size for size in leaf.type.shape if isinstance(size, Node)]
    pool.append(literal(draw(st.floats(width=64))))
    pool.append(literal(np.arange(draw(st.sampled_from([1, 3, 40])))))
    for _ in range(draw(st.integers(0, 15))):
        kind = draw(st.sampled_from(["unary", "binary", "cast", "sum", "weak"]))
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        try:
            match kind:
                case "unary":
                    pool.append(elementwise(draw(st.sampled_from(UNARY)), a))
                case "binary":
                    pool.append(elementwise(draw(st.sampled_from(BINARY)), a, b))
                case "weak":
                    number = draw(st.sampled_from([1, 2.5, -0.0, True]))
                    pool.append(elementwise(draw(st.sampled_from(BINARY)), a, number))
                case "cast":
                    pool.append(cast(a, draw(st.sampled_from(DTYPES))))
                case "sum":
                    pool.append(total(a, *range(a.ndim)))
        except (GraphTypeError, ValueError):  # a dtype or a size that the op does not take
            pass
    outputs = draw(st.lists(st.sampled_from(pool), max_size=4))
    return Graph((leaf, single), (*outputs, weights))


@pytest.mark.slow
@given(graphs())
def test_random_graphs_read_back(graph: Graph) -> None:
    again = roundtrip(graph)
    assert len(again.inputs) == len(graph.inputs)
    assert [str(o.dtype) for o in again.outputs] == [str(o.dtype) for o in graph.outputs]


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_work_of_a_node_does_not_grow_with_the_graph() -> None:
    def printing(length: int) -> Callable[[], object]:
        x = variable("float64", (None,), "x")
        chain = x
        for _ in range(length):
            chain = elementwise("add", chain, x)
        return lambda: parse_graph(print_graph(Graph((x,), (chain,))))

    assert_linear(printing, 2_000)


@pytest.mark.slow
def test_long_chains_and_deep_diamonds() -> None:
    x = variable("float64", (None,), "x")
    chain = diamond = x
    for _ in range(20_000):
        chain = elementwise("add", chain, x)
    for _ in range(1_000):
        diamond = elementwise("mul", diamond, diamond)
    text = print_graph(Graph((x,), (chain, diamond)))
    assert text.count("\n") == 21_002
    again = parse_graph(text)
    verify(again)
    assert print_graph(again) == text
    assert hash(text) == hash(graph_key_text(Graph((x,), (chain, diamond))))


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inputs x: float64[x.0]", "no line of outputs"),
        ("inputs x: float64[x.0\noutputs x", "line 1"),
        ("inputs x: float16[]\noutputs x", "float16 is not a dtype"),
        ("inputs x: float64[], x: float64[]\noutputs x", "two leaves x"),
        ("inputs x: float64[y.0]\noutputs x", r"y.0.* is not the size of a leaf"),
        ("inputs x: float64[]\n%0 = frobnicate(x)\noutputs %0", "line 2.*no op 'frobnicate'"),
        ("inputs x: float64[]\n%0 = input(x)\noutputs %0", "no op 'input'"),
        ("inputs x: float64[]\n%0 = exp(%1)\n%1 = exp(x)\noutputs %0", "'%1' is not defined above"),
        ("inputs x: float64[]\n%0 = exp(x)\n%0 = sin(x)\noutputs %0", "defined twice"),
        ("inputs x: float64[]\n%0 = exp(x, x)\noutputs %0", "line 2.*exp takes 1"),
        ("inputs x: int64[]\n%0 = exp(x)\noutputs %0", "line 2.*exp has no loop"),
        ("inputs x: float64[]\n%0 = sum(x; axes=f())\noutputs %0", "line 2"),
        ("inputs x: float64[]\n%0 = sum(x; axes=(1\noutputs %0", "line 2"),
        ("inputs\n%0 = constant(float64[2] [1.0])\noutputs %0", "line 2"),
        ("inputs\n%0 = constant(float64[17] hex '???')\noutputs %0", "line 2"),
        ("inputs\n%0 = constant(float64[1] [zero])\noutputs %0", "line 2"),
        ("inputs\noutputs 1.5:float16", "float16"),
        ("inputs\noutputs 300:int8", "line 2.*300"),
        ("inputs\noutputs y", "'y' is not defined"),
        ("inputs n: int64[m], m: int64[n]\noutputs n", "the type of n depends on n"),
        ("inputs x: float64[two]\noutputs x", "'two' is not defined"),
        ("nonsense", "line 1"),
        ("inputs\noutputs\ninputs", "follows the outputs"),
    ],
)
def test_bad_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_graph(text)


# --- verify ----------------------------------------------------------------------------------------------------------


def test_verify_accepts_what_is_right() -> None:
    x, weights = variable("float64", (None,), "x"), shared("float64", 1, "W")
    verify(Graph((x,), (elementwise("add", x, weights), size_of(x), literal(1))))
    verify(Graph((), ()))
    size = size_of(weights)
    with pytest.raises(MissingInputError, match="size of W"):
        verify(Graph((), (size,)))
    verify(Graph((), (size,)), shared=[weights])


def test_verify_names_a_missing_input_and_its_line() -> None:
    x, y = variable("float64", (), "x"), variable("float64", (), "y")
    with pytest.raises(MissingInputError, match=r"y \(test_text.py:\d+\)"):
        verify(Graph((x,), (elementwise("add", x, y),)))
    with pytest.raises(MissingInputError, match="size of lost along axis 0"):
        verify(Graph((), (size_of(variable("float64", (None,), "lost")),)))


def test_verify_finds_wrong_types_and_wrong_members() -> None:
    x = variable("float64", (None,), "x")
    wrong = Node(OPS["exp"], (x,), {}, Type("float32", x.type.shape))
    with pytest.raises(GraphTypeError, match=r"float32\[x.0\].*infers float64\[x.0\]"):
        verify(Graph((x,), (wrong,)))
    invalid = Node(OPS["exp"], (x, x), {}, x.type)
    with pytest.raises(GraphTypeError, match="does not infer"):
        verify(Graph((x,), (invalid,)))
    with pytest.raises(GraphTypeError, match="output 0 is None"):
        verify(Graph((x,), (None,)))  # type: ignore[arg-type]
    with pytest.raises(GraphTypeError, match="not a leaf"):
        verify(Graph((elementwise("exp", x),), (x,)))
