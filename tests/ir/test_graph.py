"""Nodes, interning, sizes and the walks over graphs."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import CycleError, GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import CONSTANT, OPS, SIZE, FrozenArray, Node, constant_value, describe, literal, make, variable
from graphc.ir.walk import consumers, nodes_of, reachable, substitute, toposort
from graphc.ops.elementwise import as_node, elementwise
from tests.support.counting import assert_linear

# --- nodes -----------------------------------------------------------------------------------------------------------


def test_equal_values_are_one_node() -> None:
    x, y = variable("float64", (None,), "x"), variable("float64", (None,), "x")
    assert x is not y and x.type.shape[0] is not y.type.shape[0]
    assert elementwise("add", x, 1.0) is elementwise("add", x, 1.0)
    assert elementwise("add", x, 1.0) is not elementwise("add", x, 2.0)
    assert literal(1.0) is literal(1.0)
    assert literal(1.0) is not literal(1) and literal(0.0) is not literal(-0.0)
    assert make(OPS["sum"], (x,), {"axes": (0,)}) is make(OPS["sum"], (x,), {"axes": (0,)})
    assert make(OPS["sum"], (x,), {"axes": (0,)}) is not make(OPS["sum"], (x,), {"axes": ()})


def test_constants_are_compared_by_bits_and_cannot_be_written() -> None:
    source = np.array([1.0, np.nan])
    node = literal(source)
    assert node is literal(np.array([1.0, np.nan]))
    source[0] = 5.0
    value = constant_value(node)
    assert value is not None and value[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 2.0
    assert FrozenArray.of(np.zeros((2, 0))) != FrozenArray.of(np.zeros((0, 2)))


@pytest.mark.slow
def test_unused_nodes_are_given_back() -> None:
    x = variable("float64", (), "x")
    gc.collect()
    before = len([o for o in gc.get_objects() if issubclass(type(o), Node)])
    node = elementwise("exp", elementwise("sin", x))
    assert node.op is OPS["exp"]
    del node
    gc.collect()
    assert len([o for o in gc.get_objects() if issubclass(type(o), Node)]) <= before  # others' may be gone by now


def test_equality_builds_a_comparison_whose_truth_is_identity() -> None:
    x, y = variable("float64", (None,), "x"), variable("float64", (None,), "y")
    assert [bool(x == other) for other in (x, y, 0, None, "x")] == [True, False, False, False, False]
    assert [bool(x != other) for other in (x, y, 0, None, "x")] == [False, True, True, True, True]
    assert as_node(x == 0) is elementwise("equal", x, 0) and as_node(x != 0) is elementwise("not_equal", x, 0)
    assert (x == 0).type == elementwise("equal", x, 0).type
    assert as_node(np.zeros(3) == x) is elementwise("equal", x, np.zeros(3))
    assert elementwise("logical_not", x == y).args == (elementwise("equal", x, y),)


def test_containers_of_nodes_go_by_identity_whatever_the_types() -> None:
    nodes = [variable("float64", (2,), "x"), variable("float64", (3,), "y"), variable("bool", (), "b")]
    for position, node in enumerate(nodes):
        assert nodes.index(node) == position and nodes.count(node) == 1
        assert node in nodes and node not in nodes[:position] and node not in {None, 0, "x"}
        assert {node: position}[node] == position and (node,) == (node,) and (node,) != (nodes[position - 1],)
    with pytest.raises(ShapeError, match="equal.*2.*3"):
        as_node(nodes[0] == nodes[1])
    with pytest.raises(GraphTypeError, match="None"):
        elementwise("logical_not", nodes[0] == None)  # noqa: E711


@pytest.mark.parametrize("take", [np.asarray, np.array, np.ones((2, 3)).dot])
def test_numpy_takes_no_node_apart(take: Callable[[Node], object]) -> None:
    with pytest.raises(GraphTypeError, match=r"beta \(test_graph.py:\d+\) is symbolic.*np\.dot"):
        take(variable("float64", (None,), "beta"))


def test_copies_are_the_node_itself() -> None:
    x = variable("float64", (), "x")
    assert copy.copy(x) is x and copy.deepcopy([x])[0] is x


def test_a_node_has_no_truth_value_and_no_unknown_length() -> None:
    x = variable("float64", (None,), "x")
    with pytest.raises(GraphTypeError, match=r"x > 0 \(test_graph.py:\d+\) is symbolic"):
        bool(x > 0)
    with pytest.raises(GraphTypeError, match="no length"):
        len(x)
    assert len(variable("float64", (3, None))) == 3
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = x.frobnicate  # type: ignore[attr-defined]


def test_a_condition_on_a_size_of_a_shared_variable_is_answered_with_a_warning() -> None:
    w, x = graphc.shared(np.ones((3, 1)), "w"), T.dmatrix("x")
    rows, columns = T.dot(x, w).shape
    with pytest.warns(UserWarning, match=r"the size of w along axis 1 == 1 is True of the values"):
        assert columns == 1
    with pytest.warns(UserWarning, match="!= the size of w along axis 1 is True"):
        assert w.shape[0] != w.shape[1]
    with pytest.raises(GraphTypeError, match="is symbolic"):
        bool(rows == 3)


def test_descriptions_name_the_variable_and_the_users_line() -> None:
    x = variable("float64", (None, 2), "x")
    assert describe(x).startswith("x (test_graph.py:")
    assert describe(elementwise("exp", x)).startswith("exp(x) (test_graph.py:")
    assert describe(literal(2.5)) == "2.5"
    assert str(x.type) == "float64[x.0, 2]"
    assert x.broadcastable == (False, False) and variable("float64", (1,)).broadcastable == (True,)
    y = elementwise("exp", x)
    assert x.owner is None and y.owner is elementwise("exp", x).owner and y.owner.outputs == [y]


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_arithmetic_of_sizes_folds() -> None:
    n, m = (variable("float64", (None,), name).type.shape[0] for name in "nm")
    assert isinstance(n, Node) and n.op is SIZE
    assert sizes.add(2, 3) == 5 and sizes.multiply(2, 3) == 6 and sizes.product([2, 3, 4]) == 24
    assert sizes.add(n, 0) is n and sizes.multiply(1, n) is n and sizes.multiply(n, 0) == 0
    assert sizes.add(sizes.add(n, 2), -2) is n and sizes.subtract(n, n) == 0
    assert sizes.add(n, m) is sizes.add(m, n) and sizes.multiply(n, m) is sizes.multiply(m, n)
    assert sizes.floor_divide(7, 2) == 3 and sizes.floor_divide(n, 1) is n
    assert sizes.minimum(n, n) is n and sizes.maximum(3, 5) == 5
    multiple = sizes.multiply(sizes.floor_divide(n, 3), 3)
    assert sizes.minimum(n, multiple) is multiple and sizes.maximum(multiple, n) is n
    assert not sizes.known_at_least(n, sizes.multiply(sizes.floor_divide(n, 3), 4))
    assert not sizes.known_at_least(n, sizes.multiply(sizes.floor_divide(n, -3), -3))
    assert sizes.equal(n, n) and sizes.equal(3, 3) and not sizes.equal(n, m) and not sizes.equal(n, 3)
    assert sizes.common(n, 3, "x and y") == 3 and sizes.common(n, m, "x and y") is n
    with pytest.raises(ShapeError, match="x and y: sizes 3 and 4 differ"):
        sizes.common(3, 4, "x and y")
    assert sizes.as_size(literal(3)) == 3 and sizes.as_size(n) is n


# --- walks -----------------------------------------------------------------------------------------------------------


def test_toposort_puts_needs_first_and_depends_on_the_graph_alone() -> None:
    needs = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}
    order = toposort(["d"], needs.__getitem__)
    assert order == toposort(["d"], needs.__getitem__)
    assert all(order.index(need) < order.index(item) for item in needs for need in needs[item])
    assert reachable(["b"], needs.__getitem__) == ["b", "a"]


def test_toposort_names_the_members_of_a_cycle() -> None:
    needs = {"out": ["a", "free"], "a": ["b"], "b": ["c"], "c": ["a"], "free": []}
    with pytest.raises(CycleError) as caught:
        toposort(["out"], needs.__getitem__)
    message = str(caught.value)
    members = message.rsplit(": ", 1)[1].split(" -> ")
    assert members[0] == members[-1] and set(members) == {"a", "b", "c"}
    assert all(before in needs[after] for before, after in pairwise(members))
    with pytest.raises(CycleError, match="A -> A"):
        toposort(["a"], lambda item: [item], str.upper)


def test_consumers_lists_who_takes_a_node_and_where() -> None:
    x, y = variable("float64", (), "x"), variable("float64", (), "y")
    product, total = elementwise("mul", x, y), elementwise("add", x, x)
    taken = consumers([product, total])
    assert sorted((n.op.name, k) for n, k in taken[x]) == [("add", 0), ("add", 1), ("mul", 0)]
    assert taken[y] == [(product, 1)] and taken[total] == []


def test_substitute_rebuilds_what_depends_and_keeps_the_rest() -> None:
    x, y, z = (variable("float64", (None,), name) for name in "xyz")
    kept, changed = elementwise("exp", y), elementwise("mul", x, elementwise("exp", y))
    changed.name = "product"
    new_kept, new = substitute([kept, changed], {x: z})
    assert new_kept is kept and new is elementwise("mul", z, kept) and new.name == "product"
    ones = elementwise("add", x, 1.0)
    (moved,) = substitute([ones], {x: z})
    assert moved is elementwise("add", z, 1.0) and moved.type.shape == z.type.shape
    fixed = variable("float64", (3,), "fixed")
    assert substitute([elementwise("exp", x)], {x: fixed})[0].type.shape == (3,)


@pytest.mark.slow
def test_the_work_of_a_node_does_not_grow_with_the_graph() -> None:
    def build_and_move(length: int) -> Callable[[], object]:
        x, y = variable("float64", (None,)), variable("float64", (None,))

        def work() -> None:
            chain = x
            for _ in range(length):
                chain = elementwise("add", chain, x)
            nodes_of([chain])
            substitute([chain], {x: y})

        return work

    assert_linear(build_and_move, 2_000)


@pytest.mark.slow
def test_twenty_thousand_nodes_and_a_thousand_diamonds() -> None:
    x = variable("float64", (None,), "x")
    chain = diamond = x
    for _ in range(20_000):
        chain = elementwise("add", chain, x)
    for _ in range(1_000):
        diamond = elementwise("mul", diamond, diamond)
    order = nodes_of([chain, diamond])
    (moved,) = substitute([chain], {x: variable("float64", (None,), "y")})
    assert len(order) == 21_001 and len(nodes_of([moved])) == 20_001
    assert hash(chain) != hash(moved) and not [n for n in order if n.op is CONSTANT]


def test_items_cannot_be_assigned() -> None:
    x = variable("float64", (None,), "x")
    with pytest.raises(GraphTypeError, match=r"^x \(test_graph.py:\d+\) is symbolic .* set_subtensor"):
        x[0] = 1.0
