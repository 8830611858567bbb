"""The key of a graph, from the records of ops: nodes that differ in one attribute, operand or constant have keys of
their own, and nodes that are equal one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import graphc.tensor as T  # noqa: F401 - the ops
from graphc.errors import GraphcError
from graphc.ir.node import CONSTANT, INPUT, OPS, SIZE, Body, Node, literal, make, variable
from graphc.ir.text import graph_key_text, graph_of
from graphc.ir.types import FrozenArray
from graphc.ir.walk import nodes_of
from graphc.testing import draw, leaf_like

NAMES = sorted(name for name, op in OPS.items() if op.samples)


def nodes(name: str) -> Iterator[Node]:
    """The nodes of an op in its samples, each with other attributes."""
    seen = set()
    for sample in OPS[name].samples:
        rng = np.random.default_rng(0)
        leaves = [leaf_like(draw(argument, rng), f"x{k}") for k, argument in enumerate(sample.args)]
        built = sample.build(*leaves)
        for node in nodes_of(built if isinstance(built, list | tuple) else [built]):
            if node.op.name == name and repr(node.attrs) not in seen:
                seen.add(repr(node.attrs))
                yield node


def others(value: Any) -> Iterator[Any]:
    """Values that are not `value`, though Python may take one for it."""
    match value:
        case bool():
            yield from (not value, int(value), float(value))
        case int():
            yield from (value + 1, value - 1, float(value), str(value), (value,))
            if value in (0, 1):
                yield bool(value)
        case float():
            yield from (value + 1.0, -value, np.nextafter(value, 9e9).item(), *([int(value)] if value % 1 == 0 else []))
        case str():
            yield from (value + "x", value.encode(), (value,))
        case None:
            yield from (0, False, "None", ())
        case tuple():
            yield from ((*value, value[-1]) if value else (0,), list(value))
            for place, each in enumerate(value):
                yield from ((*value[:place], other, *value[place + 1 :]) for other in others(each))


def text(node: Node) -> str:
    return graph_key_text(graph_of((node,)))


def with_attribute(node: Node, name: str, value: Any) -> Node | None:
    """The node with another attribute, None where the op refuses it."""
    try:
        other = make(node.op, node.args, {**node.attrs, name: value})
        text(other)
        return other
    except (GraphcError, TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
        return None


@pytest.mark.parametrize("name", NAMES)
def test_one_attribute_tells_nodes_apart(name: str) -> None:
    for node in nodes(name):
        plain = {each: value for each, value in node.attrs.items() if not isinstance(value, Body)}
        for attribute, value in plain.items():
            for other in others(value):
                made = with_attribute(node, attribute, other)
                assert made is not node, f"{attribute}: {value!r} and {other!r}"
                assert made is None or text(made) != text(node), f"{attribute}: {value!r} and {other!r}"
        assert make(node.op, node.args, dict(reversed(list(node.attrs.items())))) is node


@pytest.mark.parametrize("name", NAMES)
def test_operands_and_their_order_tell_nodes_apart(name: str) -> None:
    for node in nodes(name):
        for first, second in combinations(range(len(node.args)), 2):
            args = list(node.args)
            args[first], args[second] = args[second], args[first]
            try:
                turned = make(node.op, args, node.attrs)
            except GraphcError:
                continue
            assert (turned is node) == (node.args[first] is node.args[second])
            if turned is not node and not {INPUT, SIZE, CONSTANT} >= {arg.op for arg in node.args}:
                assert text(turned) != text(node)


def test_bits_and_dtypes_and_shapes_tell_constants_apart() -> None:
    values: list[Any] = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 5e-324, [0.0], [[0.0]], [-0.0], [], [[]], [0.0, 0.0]]
    values += [np.nextafter(1.0, 2.0), np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\x7f")[0], np.zeros(300)]
    values += [np.concatenate([np.zeros(299), [-0.0]]), np.zeros((300, 1)), [np.zeros(300)]]
    made = [literal(value, dtype) for value in values for dtype in ("float64", "float32")]
    made += [literal(value, dtype) for value in (0, 1) for dtype in ("bool", "int8", "int64", "uint64")]
    distinct = list(dict.fromkeys(made))
    assert len(distinct) >= len(made) - 3  # float32 has neither the least double, nor the next one, nor that NaN
    assert len({text(node) for node in distinct}) == len(distinct)
    for node in distinct:
        assert literal(node.attrs["value"].value.copy()) is node


def test_types_tell_variables_apart() -> None:
    shapes: list[list[int | None]] = [[], [None], [1], [2], [None, None], [1, None], [None, 1], [2, None], [12], [1, 2]]
    kinds = [(dtype, shape) for dtype in ("float64", "float32", "int64", "uint64", "bool") for shape in shapes]
    texts = {text(make(OPS["stop_gradient"], (variable(dtype, shape, "x"),))) for dtype, shape in kinds}
    assert len(texts) == len(kinds)


def test_names_tell_nothing_but_who_is_who() -> None:
    """Which of two variables stands where is in the key; how they are called is not what tells graphs apart."""
    x, y = variable("float64", [None], "x"), variable("float64", [None], "y")
    assert text(make(OPS["mul"], (x, x))) != text(make(OPS["mul"], (x, variable("float64", x.type.shape, "z"))))
    assert text(make(OPS["sqr"], (x,))) != text(make(OPS["neg"], (x,)))
    assert y is not x


def test_constants_have_numpys_own_dtypes() -> None:
    """Native code knows a dtype by its address; a pickled array, or one with metadata, has another object."""
    plain = np.arange(4.0)
    odd = [
        pickle.loads(pickle.dumps(plain)),
        plain.astype(">f8"),
        plain.astype(np.dtype("f8", metadata={"of": "a file"})),
    ]
    for array in odd:
        assert array.dtype is not np.dtype("float64")
        assert FrozenArray.of(array).value.dtype is np.dtype("float64")
        assert FrozenArray.of(array) == FrozenArray.of(plain)
