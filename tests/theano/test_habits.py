"""What programs for Theano do besides calling its functions: applications and types of their own handed on, parts of
arrays updated through another layout, inputs that count as used as the graph is written."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc import gof
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, GraphValueError
from graphc.ir.types import UserType
from graphc.theano.gradient import verify_grad


def test_an_application_stands_for_its_one_result() -> None:
    x = T.dvector("x")
    node, split = (x * 2).owner, theano.ifelse(x.sum() > 0, [x, x], [x, x])[0].owner
    assert (
        T.as_tensor_variable(node) is x * 2
        and T.exp(node) is T.exp(x * 2)
        and T.maximum(x, node) is T.maximum(x, x * 2)
    )
    with pytest.raises(GraphValueError, match="has 2 results: say which one"):
        T.as_tensor_variable(split)


def test_the_path_of_tensor_is_a_function() -> None:
    tensor = import_module("graphc.tensor.basic").tensor
    x = tensor("float64", [False, True], name="x")
    assert (x.name, x.type.broadcastable) == ("x", (False, True)) and tensor is T.tensor


def test_an_array_of_no_axes_is_a_size() -> None:
    three = np.array(3)
    made = [T.full(three, 1.0), T.zeros(three), T.ones(three), T.arange(3.0).reshape(three), T.dvector().reshape(three)]
    assert [node.type.shape for node in made] == [(3,)] * 5
    with pytest.raises(GraphTypeError, match="should be a whole number"):
        T.zeros(np.array(3.0))


def test_all_elements_of_a_stack_count_as_used() -> None:
    for read in (
        lambda v: v[0],
        lambda v: v[1:],
        lambda v: T.prod(v[:2]),
        lambda v: T.zeros(v[:1]),
        lambda v: v[-1] * 1,
    ):
        x, y, z = T.lscalars("x", "y", "z")
        theano.function([x, y, z], read(T.stack([x, y, z])), mode="interpreted")(1, 2, 3)


def test_one_tensor_is_stacked_along_a_new_axis() -> None:
    rows = T.matrix()
    assert T.stack(rows).eval({rows: np.ones((2, 3))}).shape == T.stack(np.ones((2, 3))[None]).eval().shape == (1, 2, 3)
    assert theano.jit(lambda x: np.stack(x) + 0, mode="interpreted")(np.ones((2, 3))).shape == (2, 3)


VARIABLE: Any = T.TensorVariable
Distributed = type("Distributed", (VARIABLE,), {})
"""A class of variables with attributes of a program's own."""


def test_a_variable_of_an_own_class_keeps_its_attributes() -> None:
    x: Any = Distributed(T.dvector().type)
    x.distribution = "normal"
    (found,) = np.atleast_1d(x)  # PyMC3 chooses the steps of a sampler by it
    assert found is x and found.distribution == "normal"
    assert np.atleast_1d(T.dscalar()).ndim == 1


class Pair(UserType):
    """A type of no arrays."""

    def filter(self, value: Any, strict: bool = False, allow_downcast: Any = None) -> Any:
        return value


class Paired(theano.Op):
    """An op whose result is none."""

    def make_node(self, x: Any) -> Any:
        return theano.Apply(self, [x], [Pair()()])


@pytest.mark.parametrize(
    "use",
    [lambda: Pair()(name=None), lambda: Pair()("p"), lambda: Pair().make_variable(), lambda: Paired()(T.dvector())],
)
def test_a_type_of_the_programs_own_makes_no_variables(use: Any) -> None:
    with pytest.raises(GraphcError, match="type Pair has no dtype and no shape"):
        use()


def test_a_type_of_the_programs_own_is_compared_and_handed_on() -> None:
    pair, x = Pair(), T.dvector("x")
    assert pair in [pair] and pair != Pair() and pair != x.type != pair and len({pair, Pair(), x.type}) == 3
    variable: Any = gof.Variable
    assert variable(pair).type is pair and isinstance(pair, gof.Type)
    with pytest.raises(AttributeError, match="no attribute 'broadcastable': type Pair has no dtype"):
        _ = pair.broadcastable


W, PLACES, Y = np.arange(24.0).reshape(4, 6), np.array([[1, 2], [1, 0]]), np.arange(24.0) * 10


def layouts(w: Any, i: Any, y: Any) -> list[Any]:
    """Updates of parts of `w` that are reshaped or transposed."""
    return [
        T.inc_subtensor(w[i].reshape((8, 3)), y.reshape((8, 3))),
        T.inc_subtensor(w[i.flatten()].T.reshape((8, 3)), y.reshape((8, 3))),
        T.set_subtensor(w[1:3].T.dimshuffle(0, "x", 1), y[:12].reshape((6, 1, 2))),
        T.inc_subtensor(w[:2].flatten(), 1.0),
        T.set_subtensor(w[1].dimshuffle("x", 0).T, y[:6].reshape((6, 1))),
    ]


def wanted() -> list[Any]:
    """The same in NumPy."""
    found = [W.copy() for _ in range(5)]
    np.add.at(found[0], PLACES.ravel(), Y.reshape(4, 6))
    np.add.at(found[1], PLACES.ravel(), Y.reshape(6, 4).T)
    found[2][1:3] = Y[:12].reshape(6, 2).T
    found[3][:2] += 1
    found[4][1] = Y[:6]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_parts_are_updated_through_another_layout(mode: str) -> None:
    w, i, y = T.dmatrix("w"), T.lmatrix("i"), T.dvector("y")
    for got, want in zip(theano.function([w, i, y], layouts(w, i, y), mode=mode)(W, PLACES, Y), wanted(), strict=True):
        np.testing.assert_array_equal(got, want)


def test_derivatives_of_updates_through_another_layout() -> None:
    verify_grad(
        lambda w, y: sum(map(T.sqr, layouts(w, PLACES, y))),
        [W / 24, Y / 240],
        rng=np.random.RandomState(3),
        mode="interpreted",
    )
    w = T.dmatrix("w")
    for no_part in (w.T, w.reshape((8, 3)), (w[1] * 2).dimshuffle("x", 0)):
        with pytest.raises(GraphTypeError, match="must be an indexing such as"):
            T.inc_subtensor(no_part, 1.0)


def test_softmaxes_are_recognised() -> None:
    """The owner of a softmax over the last axis is Theano's op, of the scores, in graphs as written and rewritten."""
    names: Any = import_module("graphc.gof.opclasses")
    x, v = T.dmatrix("x"), T.dvector("v")
    for made, kind, scores in (
        (T.nnet.softmax(x), names.Softmax, x),
        (T.nnet.softmax(v), names.Softmax, v.dimshuffle("x", 0)),
        (T.exp(x) / T.exp(x).sum(axis=1, keepdims=True), names.Softmax, x),
        (T.nnet.logsoftmax(x * 2), names.LogSoftmax, x * 2),
    ):
        assert isinstance(made.owner.op, kind) and made.owner.inputs == [scores] and made.owner.outputs == [made]
        again = made.owner.clone_with_new_inputs([scores])
        assert again.op == made.owner.op and again.inputs == [scores]
        function = theano.function([x, v], made * 2, mode="python", on_unused_input="ignore")
        for graph in (gof.FunctionGraph([x, v], [made * 2]), function.maker.fgraph):
            (found,) = [node for node in graph.apply_nodes if isinstance(node.op, kind)]
            assert not any(node.op.name in ("exp", "sum", "log") for node in graph.apply_nodes)
            assert graph.clients[found.inputs[0]] == [(found, 0)] and found.outputs[0] in graph.variables
    others = [
        T.nnet.sigmoid(x),
        T.nnet.softmax(x, axis=0),
        x / x.sum(axis=1, keepdims=True),
        T.exp(x) / 2,
        x - T.log(x),
    ]
    others += [T.exp(x) / T.exp(x * 2).sum(axis=1, keepdims=True), x - T.log(T.exp(v).sum())]
    assert not any(isinstance(each.owner.op, (names.Softmax, names.LogSoftmax)) for each in others)
    assert isinstance(T.topk(x, 2).owner.op, names.TopKOp)


def test_leaves_are_made_of_types() -> None:
    """`Constant(type, data)` and `SharedVariable(name, type, value, strict)`, as in Theano."""
    constant: Any = gof.Constant
    made = constant(T.fvector, [1, 2], name="c")
    assert made.type.dtype == "float32" and made.name == "c" and made.data.tolist() == [1.0, 2.0]
    assert isinstance(constant(T.iscalar, 3), T.TensorConstant) and constant(T.dscalar, 2.0).eval() == 2.0
    shared: Any = import_module("graphc.compile").SharedVariable
    start = np.array([[1.0, 2.0]])
    w = shared(name="w", type=T.drow, value=start, strict=True)
    start[:] = 0.0
    assert w.broadcastable == (True, False) and w.get_value().tolist() == [[1.0, 2.0]] and w.strict
    twin = shared("twin", T.drow, None, False, container=w.container)
    theano.function([], updates={w: w + 1}, mode="interpreted")()
    assert twin.get_value().tolist() == [[2.0, 3.0]]
    wrong: list[tuple[Any, type[Exception], str]] = [
        (constant, ArgumentError, r"Constant, called .*called as Constant\(type, data, name=None\)"),
        (lambda: constant(3, 2.0), GraphTypeError, "the type is one of arrays"),
        (lambda: constant(T.dscalar, [1.0]), TypeError, r"its shape is \(1,\)"),
        (lambda: constant(T.lscalar, 1.5), GraphTypeError, "cannot become int64"),
        (lambda: shared("w"), ArgumentError, "SharedVariable, called"),
        (lambda: shared("w", 1, 2.0, False), GraphTypeError, "shared variable w: the type is one of arrays"),
        (lambda: shared("w", T.lvector, [0.5], False), GraphTypeError, "cannot become int64"),
        (lambda: shared("w", T.dscalar, None, False), GraphValueError, "a value or a container"),
        (lambda: shared("w", T.drow, None, False, container=theano.shared(1.0).container), TypeError, "its shape is"),
    ]
    for call, kind, said in wrong:
        with pytest.raises(kind, match=said):
            call()


class FirstAlone(theano.Op):
    """Two results: the first input, which the second does not reach, and the sum of both."""

    __props__ = ()
    itypes, otypes = (T.dscalar, T.dscalar), (T.dscalar, T.dscalar)

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        return [[True, True], [False, True]]

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0], output_storage[1][0] = inputs[0], inputs[0] + inputs[1]


def test_graphs_are_told_and_watched() -> None:
    graph = gof.graph
    x, y, z = T.dscalars("x", "y", "z")
    once = x * y
    twice = once + once * z
    assert graph.as_string([x, y, z], [twice]) == ["add(*1 -> mul(x, y), mul(*1, z))"]
    assert graph.as_string([once, z], [twice, once]) == [f"add({once}, mul({once}, z))", str(once)]
    told = graph.as_string([x, y, z], [twice], lambda leaf: str(leaf).upper(), lambda node, parts: "|".join(parts))
    assert told == ["*1 -> X|Y|*1|Z"]
    first, second = FirstAlone()(x, y)
    assert graph.as_string([x, y], [second, first]) == ["*1 -> FirstAlone(x, y)", "*1::0"]
    assert graph.op_as_string([x, y], second.owner) == "FirstAlone(x, y)"
    assert graph.io_connection_pattern([x, y, z], [first, second * z, theano.gradient.disconnected_grad(x) + z, z]) == [
        [True, True, False, False], [False, True, False, False], [False, True, True, True],
    ]  # fmt: skip
    m = T.dmatrix("m")
    assert graph.io_connection_pattern([m], [m.shape[0], m.sum()]) == [[False, True]]
    with graph.nodes_constructed() as new:
        made = [x * 3, T.exp(z) + y]
    T.sqr(x)
    assert made[0] in set(new) and made[1] in set(new) and T.sqr(x) not in set(new)
