"""What Theano's programs ask of variables: types, owners, tags, copies with replacements, pickles."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError, MissingInputError
from graphc.ir.node import OPS

X = T.dmatrix("x")
W = graphc.shared(np.ones((3, 2)), name="w")
H = T.tanh(T.dot(X, W))
C = (H**2).sum()
ONES = np.ones((4, 3))


def test_types_are_equal_by_dtype_and_broadcasting() -> None:
    same = [X.type, T.dmatrix, T.TensorType("float64", (False, False)), T.dmatrix("y").type, W.type, T.dot(X, X).type]
    other = [T.fmatrix, T.dvector, T.drow, T.TensorType("float64", (True, False)), (X > 0).type]
    for kind in same:
        assert kind == X.type and hash(kind) == hash(X.type) and isinstance(kind, T.TensorType)
    assert all(kind != X.type and X.type != kind for kind in other)
    assert T.row().type == T.drow and X.type != "float64" and len({X.type, T.dmatrix, T.drow}) == 2
    assert not X.type.is_same(T.dmatrix().type) and T.dmatrix(shape=(2, 3)).type == T.dmatrix
    with graphc.options.change(floatX="float32"):
        assert T.matrix == T.fmatrix


def test_a_type_makes_variables_and_checks_values() -> None:
    fresh = X.type("fresh")
    assert fresh.type == X.type and fresh.name == "fresh" and fresh is not X.type("fresh")
    assert X.type.clone(dtype="int8").dtype == "int8" and X.type.clone(broadcastable=(True, False)) == T.drow
    assert T.TensorType("int8", (True, False), "bits").name == "bits" and X.type.numpy_dtype == np.float64
    assert X.type.filter([[1, 2]]).dtype == np.float64 and not X.type.is_valid_value([1.0])
    assert X.type.values_eq_approx(ONES, ONES + 1e-9) and not X.type.values_eq(ONES, ONES + 1e-9)
    for wrong in ([1.0], "text", np.ones(3)):
        with pytest.raises(TypeError):
            X.type.filter(wrong)


def test_a_letter_or_a_word_for_each_variable() -> None:
    assert [v.name for v in T.vectors("xyz")] == ["x", "y", "z"]
    assert [v.name for v in T.dmatrices("left right")] == ["left", "right"]
    assert [v.name for v in T.iscalars("a", "b")] == ["a", "b"] and len(T.rows(3)) == 3
    assert T.scalars("x").name == "x" and T.scalars(["a", "b"])[1].name == "b"


def test_owners_say_what_made_a_value() -> None:
    assert X.owner is None and W.owner is None and T.constant(1.0).owner is None and X.index is None
    assert C.owner.op is OPS["sum"] and C.owner.outputs == [C] and C.owner.nin == C.owner.nout == 1
    tanh = H.owner
    assert tanh.inputs == [T.dot(X, W)] and tanh is H.owner and tanh.out is H and tanh.default_output() is H
    assert {H.owner: 1}[T.tanh(T.dot(X, W)).owner] == 1 and isinstance(tanh, graphc.Apply)
    other = T.dmatrix("other")
    assert tanh.clone_with_new_inputs([other]).out is T.tanh(other) and str(tanh.op) == "tanh"
    looped, _ = graphc.scan(lambda a, s: (a + s, a), sequences=X, outputs_info=[T.zeros((3,)), None])
    owners = {part.owner for part in looped[0].owner.inputs if part.owner} | {looped[1].owner}
    (loop,) = (owner for owner in owners if owner and owner.op.name == "scan")
    assert loop.nout > 1 and [out.index for out in loop.outputs] == list(range(loop.nout))
    assert all(out.owner is loop for out in loop.outputs)


def test_tags_and_attributes_are_kept_with_a_value() -> None:
    y: Any = T.exp(X)
    y.tag.test_value, y.mark = ONES, "mine"
    assert T.exp(X).tag.test_value is ONES and vars(T.exp(X))["mark"] == "mine"  # equal expressions are one object
    assert not hasattr(T.exp(X + 1), "mark") and not hasattr(T.log(X).tag, "test_value")
    x, z = T.dvector("x"), T.dvector("x")
    x.tag.role = "weights"
    assert not hasattr(z.tag, "role") and x.clone().tag.role == "weights" and x.clone().tag is not x.tag
    equal = x == z
    assert equal.tag is T.eq(x, z).tag
    with pytest.raises(AttributeError):
        setattr(x, "dtype", "int8")  # noqa: B010


def test_clones() -> None:
    assert X.clone() is not X and X.clone().name == "x" and X.clone().type == X.type
    assert H.clone().owner is None and T.constant(2.0).clone() is T.constant(2.0)
    twin = W.clone()
    twin.set_value(np.zeros((3, 2)))
    assert not W.get_value().any()
    W.set_value(np.ones((3, 2)))
    data: Any = getattr(T.constant([1, 2]), "data")  # noqa: B009
    assert isinstance(T.constant(1), graphc.Constant) and data.tolist() == [1, 2] and not data.flags.writeable
    assert isinstance(X, graphc.Variable) and isinstance(X, T.TensorVariable) and not isinstance(X, T.TensorConstant)


def test_graphs_with_replacements() -> None:
    y = T.dmatrix("y")
    moved = graphc.clone(C, replace={X: y})
    assert graphc.is_same_graph(C, moved, {y: X}) and not graphc.is_same_graph(C, moved)
    assert graphc.clone_replace([C, H], [(H, y)])[0] is (y**2).sum() and graphc.graph_replace([C], {X: y})[0] is moved
    assert graphc.clone({"cost": C}, replace={X: y}) == {"cost": moved} and graphc.clone(C) is C
    apart = graphc.clone(C, share_inputs=False)
    leaves = [leaf for leaf in graphc.gof.graph.inputs([apart]) if not isinstance(leaf, graphc.Constant)]
    assert {leaf.name for leaf in leaves} == {"x", "w"} and X not in leaves and W not in leaves
    with pytest.raises(GraphTypeError, match="y .*cannot replace x"):
        graphc.clone(C, replace={X: T.fmatrix("y")})
    assert graphc.clone(T.exp(X), replace={X: T.fmatrix("y")}, strict=False).dtype == "float32"
    row = T.dvector("v")[None]
    assert graphc.clone(T.exp(X).sum(), replace={X: row}).eval({row.owner.inputs[0]: [0.0, 0.0]}) == 2.0
    narrow = T.drow("r")
    with pytest.raises(GraphTypeError, match="x .*cannot replace r"):
        graphc.clone(T.exp(narrow), replace={narrow: X})
    constant: Any = T.constant([1.0, 2.0])
    assert constant.value.tolist() == [1.0, 2.0], "as data"
    with pytest.raises(GraphValueError, match="y .*do not need it"):
        graphc.graph_replace([C], {y: X})
    assert graphc.graph_replace(C, {y: X}, strict=False) is C


def test_graphs_are_walked_as_in_theano() -> None:
    graph = graphc.gof.graph
    product = T.dot(X, W)
    assert graph.inputs([H]) == [X, W] and graph.inputs(H, blockers=[product]) == [product][:0]
    assert graph.ancestors([H]) == [H, product, X, W] and graph.ancestors([H], blockers=[product]) == [H, product]
    assert graph.variables([X], [H]) == [H, product, X, W] and graph.orphans([X], [H]) == [W]
    assert graph.ops([X], [H]) == {product.owner, H.owner}
    assert graph.io_toposort([X], [H]) == [product.owner, H.owner] == graph.list_of_nodes([X], [H])[::-1]
    assert graph.is_in_ancestors(H.owner, product.owner) and not graph.is_in_ancestors(product.owner, H.owner)
    assert graph.general_toposort(["a"], {"a": ["b"], "b": []}.__getitem__) == ["b", "a"]
    assert graph.stack_search(["a"], {"a": "bc", "b": "", "c": ""}.get, "bfs") == ["a", "b", "c"]
    assert graph.inputs([X.shape[0] + 1])[0] is X and graph.view_roots(H) == [H]
    (x,), (h,) = graph.clone([X], [H])
    assert x is not X and graphc.is_same_graph(h, H, {x: X})
    assert graph.clone_get_equiv([X], [H], copy_inputs=False)[H.owner] is H.owner


def test_types_are_made_by_their_class() -> None:
    """`type(x.type)(dtype, broadcastable)`, as an op's make_node has it that gives a result of the same kind."""
    constructor: Any = type(T.dmatrix)
    for variable in (T.dvector("v"), X + 1.0, graphc.shared(np.zeros(3)), T.constant([1.0]), T.iscalar()):
        for kind in (
            type(variable.type)(dtype="int8", broadcastable=(True, False)),
            type(variable.type)("int8", (True, False)),
            constructor(dtype="int8", broadcastable=(True, False)),
        ):
            assert kind == T.TensorType("int8", (True, False)) == kind("made").type and kind.ndim == 2
            assert kind.broadcastable == kind().broadcastable == (True, False) and kind.shape[0] == 1
        assert type(variable.type)(dtype="float32", broadcastable=()) == T.fscalar
    with pytest.raises(GraphTypeError, match="float16"):
        type(X.type)(dtype="float16", broadcastable=())


def test_a_type_of_ones_own_says_why_it_makes_no_variable() -> None:
    class Pair(graphc.gof.Type):  # type: ignore[misc]
        def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
            return value

    pair = Pair()
    for make in (pair, pair.make_variable):
        with pytest.raises(GraphTypeError, match=r"type Pair has no dtype .* other types than arrays .* not in graphc"):
            make()
    assert pair != Pair() and pair != T.dvector and len({pair, Pair()}) == 2
    assert pair.is_valid_value((1, 2)) and pair.values_eq((1, 2), (1, 2)) and not pair.values_eq_approx((1, 2), 3)


def test_walks_have_theanos_order() -> None:
    """From the last variable to the first, along the inputs of each op: what is saved in this order is found again."""
    graph = graphc.gof.graph
    w, b, c = (graphc.shared(float(place), name) for place, name in enumerate("wbc"))
    left, right = w * b, T.exp(c)
    whole = left + right
    assert graph.inputs(reversed([w, b, c])) == [w, b, c] and graph.inputs([w, b, c]) == [c, b, w]
    assert graph.inputs([whole]) == [w, b, c] and graph.inputs([left, right]) == [c, w, b]
    assert graph.ancestors([whole, b]) == [b, whole, left, w, right, c]
    assert graph.variables([w], [left, right]) == [right, c, left, w, b] and graph.orphans([w], [whole]) == [b, c]
    assert graph.variables([w, X], [left]) == [left, w, b], "inputs that nothing needs are not between"
    order = [right.owner, left.owner, whole.owner]
    assert graph.io_toposort([], [whole]) == order == graphc.gof.FunctionGraph([w, b, c], [whole]).toposort()
    assert graph.list_of_nodes([], [whole]) == [whole.owner, left.owner, right.owner]
    assert graph.list_of_nodes([left], [whole]) == [whole.owner, right.owner]
    users: dict[Any, list[Any]] = {}
    assert graph.io_toposort([], [whole], clients=users) == order and users[left] == [whole.owner]
    assert graph.io_toposort([], [left, right], {right.owner: [left.owner]}) == [left.owner, right.owner]
    needs = {"a": ["b", "c"], "b": ["c", "d", "c"], "c": [], "d": None}
    assert graph.general_toposort(["a"], needs.get) == ["c", "d", "b", "a"]
    with pytest.raises(ValueError, match="cycle"):
        graph.general_toposort(["a"], {"a": ["b"], "b": ["a"]}.get)


def test_a_graph_with_values_is_looked_at_from_both_sides() -> None:
    b = graphc.shared(np.zeros(2), "b")
    hidden = T.tanh(T.dot(X, W) + b)
    cost = (hidden**2).mean() + hidden.sum()
    view = graphc.inspect(cost, {X: ONES})
    assert {entry.op.name for entry, _ in view[hidden].consumers} == {"pow", "sum"}
    assert [entry.variable for entry in view[T.dot(X, W)].inputs] == [X, W]
    assert [(entry.op.name, position) for entry, position in view[b].consumers] == [("add", 1)]
    assert [entry.op.name for entry in view][-1] == "add" and len(view) == len(list(view)) and X in view
    gradients = graphc.grad(cost, [X, W, b, hidden])
    wanted = graphc.function([X], [hidden, *gradients], mode="interpreted")(ONES)
    np.testing.assert_array_equal(view[hidden].value, wanted[0])
    for variable, gradient in zip([X, W, b, hidden], wanted[1:], strict=True):
        np.testing.assert_allclose(np.asarray(view[variable].gradient), gradient)
    assert graphc.inspect([H, C])[H].value is None and graphc.inspect(H, {X: ONES})[H].gradient is None
    assert graphc.inspect([H, C], {X: ONES}, cost=C)[H].gradient is not None and "x" in str(view)
    with pytest.raises(MissingInputError, match="x "):
        graphc.inspect(C, {})
    with pytest.raises(GraphValueError, match="x .*not in the graph"):
        _ = graphc.inspect(W)[X]


def reread(value: Any, protocol: int) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickles(protocol: int) -> None:
    y = T.exp(X[:, 0] + X.shape[0]).sum()
    y.name, y.tag.role = "y", "cost"
    again, x, sizes = reread((y, X, X.shape), protocol)
    assert x is not X and again.name == "y" and again.tag.role == "cost" and x.where == X.where
    assert again.eval({x: ONES}) == y.eval({X: ONES}) and sizes.eval({x: ONES}).tolist() == [4, 3]
    assert reread([X, X], protocol)[0] is not X and len(set(map(id, reread([X, X], protocol)))) == 1
    assert reread(T.constant(2.0), protocol) is T.constant(2.0) and reread(H.owner.op, protocol) is OPS["tanh"]
    for kind in (T.dmatrix, X.type, T.TensorType("int8", (True, False), "bits")):
        assert reread(kind, protocol) == kind
    assert reread((X == 0).owner, protocol).op.name == "equal"
    summed, _ = graphc.scan(lambda a, s: a + s, sequences=X, outputs_info=T.zeros((3,)))
    summed, x = reread((summed, X), protocol)
    np.testing.assert_array_equal(summed.eval({x: ONES}), np.cumsum(ONES, 0))


def test_a_shared_variable_is_pickled_with_its_value() -> None:
    v = graphc.shared(np.arange(3.0), "v", shape=(3,))
    v.default_update = v + 1
    again = reread(v, 2)
    assert again.get_value().tolist() == [0, 1, 2] and again.type.shape == (3,) and again.name == "v"
    f = graphc.function([], again * 2)
    assert f().tolist() == [0, 2, 4] and again.get_value().tolist() == [1, 2, 3] and v.get_value().tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_a_function_is_pickled_as_its_graph(mode: str) -> None:
    v = graphc.shared(1.0, "v")
    f = graphc.function(
        [X, graphc.In(T.dscalar("s"), value=2.0)], {"y": X * v}, updates=[(v, v + 1)], mode=mode, name="scale",
        on_unused_input="ignore",
    )  # fmt: skip
    f(ONES)
    g = reread(f, 2)
    assert g.name == "scale" and g.mode == mode and g.text == f.text and g.shared[0] is not v
    assert g(ONES)["y"].sum() == 24 and g(x=ONES, s=3.0)["y"].sum() == 36 and v.get_value() == 2
    assert copy.deepcopy(f)(ONES)["y"].sum() == 24


@pytest.mark.slow
def test_a_long_chain_is_pickled() -> None:
    y = X
    for _ in range(5000):
        y = T.exp(y)
    again, x = reread((y, X), 2)
    assert graphc.is_same_graph(y, again, {x: X})


USER = """
import pickle, sys
import graphc
import graphc.tensor as T
if sys.argv[1] == "define":
    graphc.op("twice_in_a_pickle")(lambda a: 2 * a)
y, x = pickle.loads(bytes.fromhex(sys.argv[2]))
print(y.eval({x: [1.0]}, mode="interpreted"))
"""


@pytest.mark.slow
def test_an_op_of_the_user_is_pickled_by_its_name() -> None:
    twice = graphc.op("twice_in_a_pickle")(lambda a: 2 * a)
    v = T.dvector("v")
    text = pickle.dumps((twice(v), v)).hex()
    for word, found in (("define", "[2.]"), ("forget", "no op 'twice_in_a_pickle' in this process: import the module")):
        done = subprocess.run([sys.executable, "-c", USER, word, text], capture_output=True, text=True, check=False)
        assert found in done.stdout + done.stderr


def test_a_function_of_trees_is_pickled() -> None:
    f = graphc.function(
        {"p": {"a": X, "b": T.dscalar("b")}}, {"sum": X.sum()}, mode="interpreted", on_unused_input="ignore"
    )
    assert reread(f, 2)(p={"a": ONES, "b": 1.0})["sum"] == 12


def test_an_index_that_gives_what_the_tensor_was_made_of_is_written() -> None:
    count = T.dmatrix("x").flatten().shape
    assert str(count[0] + 1).startswith("x.shape[0] * x.shape[1] + 1")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ((), "scalar"), ((False,), "vector"), ((True,), "(True,)"), ((True, False), "row"), ((False, True), "col"),
        ((False, False), "matrix"), ((True, True), "(True, True)"), ((False,) * 3, "3D"), ((False,) * 7, "7D"),
        ((False, True, False), "(False, True, False)"),
    ],
)  # fmt: skip
def test_types_are_shown_in_theanos_words(pattern: tuple[bool, ...], words: str) -> None:
    assert str(T.TensorType("int8", pattern)) == f"TensorType(int8, {words})"


def test_constructors_and_scalar_types_are_shown() -> None:
    assert str(T.dmatrix) == "TensorType(float64, matrix)" and str(graphc.scalar.float32) == "float32"
    assert str(T.TensorType("int8", (None, 3))) == "TensorType(int8, (None, 3))"


def test_a_type_takes_variables_and_values() -> None:
    row, values = T.drow("r"), np.ones((2, 3))
    assert X.type.filter_variable(X) is X and X.type.filter_variable(row) is row
    np.testing.assert_array_equal(X.type.filter_variable(values).eval(), values)
    for kind, other in ((T.drow, X), (T.dvector, X), (T.fmatrix, X), (X.type, "x")):
        with pytest.raises(TypeError):
            kind.filter_variable(other)
    with pytest.raises(TypeError, match="is no tensor of type"):
        X.type.filter_variable(row, allow_convert=False)
