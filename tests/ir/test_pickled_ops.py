"""Pickles and deep copies of what users' ops, and rules of derivatives, make: by names, never by code."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import tensor
from graphc.errors import GraphTypeError
from graphc.ops.derivative import overridden
from graphc.theano.user_ops import Apply, Op

T: Any = tensor


class Double(Op):
    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = 2 * inputs[0]

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [2 * output_grads[0]]


class Scaled(Op):
    """Two results, sizes that are told, both derivatives."""

    __props__ = ("by",)

    def __init__(self, by: float) -> None:
        self.by = by

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [T.dvector(), T.dscalar()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.by * inputs[0]
        output_storage[1][0] = np.asarray(inputs[0].sum())

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return [shapes[0], ()]

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [self.by * output_grads[0] + output_grads[1]]

    def R_op(self, inputs: Any, eval_points: Any) -> Any:  # noqa: N802
        return [self.by * eval_points[0], eval_points[0].sum()]


class Unequal(Op):
    """No __props__, no sizes told."""

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [T.dvector()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] + 1


@graphc.as_op(itypes=[T.dvector], otypes=[T.dvector])
def plus_one(x: Any) -> Any:
    return x + 1


def multiplied(one: Any, other: Any) -> Any:
    return one * other


X, M = T.dvector("x"), T.dmatrix("m")
CASES: dict[str, Callable[[], Any]] = {
    "an op": lambda: Double()(X),
    "its derivative": lambda: graphc.grad((Double()(X) ** 2).sum(), X),
    "two results": lambda: multiplied(*Scaled(3.0)(X)),
    "a forward product": lambda: graphc.Rop(multiplied(*Scaled(3.0)(X)), X, X),
    "no equality": lambda: Unequal()(X),
    "a decorated function": lambda: plus_one(X),
    "expm": lambda: T.linalg.expm(M),
    "pinv": lambda: T.linalg.pinv(M),
    "polar": lambda: T.linalg.polar(M)[0],
    "gamma": lambda: graphc.random.gamma(graphc.random.key(3), X),
    "a scaled derivative": lambda: graphc.gradient.grad_scale(X, X.sum()),
    "attention": lambda: T.nnet.scaled_dot_product_attention(M[None], M[None], M[None]),
    "batch normalisation": lambda: T.nnet.bn.batch_normalization_train(M, T.ones(3), T.zeros(3))[0],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_pickle_computes_the_same(case: str) -> None:
    """So do its derivatives, and a deep copy."""
    made = CASES[case]()
    x, m, read = pickle.loads(pickle.dumps((X, M, made)))
    values = np.array([0.5, 1.0, 2.0]), np.array([[2.0, 0.3, 0.1], [0.2, 3.0, 0.4], [0.1, 0.5, 4.0]])
    results = []
    for output, leaves in ((made, [X, M]), (read, [x, m]), (copy.deepcopy(made), [X, M])):
        outputs = [output]
        if case not in ("no equality", "a decorated function"):
            outputs += graphc.grad(output.sum(), leaves, disconnected_inputs="ignore")
        f = graphc.function(leaves, outputs, mode="interpreted", on_unused_input="ignore")
        results.append(f(*values))
    for own, other, copied in zip(*results, strict=True):
        np.testing.assert_array_equal(own, other)
        np.testing.assert_array_equal(own, copied)


def test_a_rule_that_no_name_finds() -> None:
    """A function that was made of text has no place."""
    scope: dict[str, Any] = {}
    exec("def outer():\n    def inner(inputs, outputs, given, wanted):\n        return given\n    return inner", scope)
    rule = scope["outer"]()
    rule.__module__ = __name__
    node = overridden([X * 1], [X], rule)[0]
    with pytest.raises(GraphTypeError, match="cannot be pickled: define it in a module"):
        pickle.dumps(node)


def test_owners_of_twins_have_the_users_op() -> None:
    """A clone and what a pickle gives tell of the op, its inputs and its outputs as the first result does."""
    x, y = T.dvector("x"), T.dvector("y")
    first, total = Scaled(3.0)(x)
    read, read_first, read_total = pickle.loads(pickle.dumps((x, first, total)))
    cloned = graphc.clone(first, replace={x: y + 1})
    for leaf, owner in ((x, first.owner), (read, read_first.owner), (y + 1, cloned.owner)):
        assert isinstance(owner.op, Scaled) and owner.op.by == 3.0 and owner.inputs == [leaf] and owner.nin == 1
    assert read_total.owner == read_first.owner and read_first.owner.outputs == [read_first, read_total]
    other = read_first.owner.clone_with_new_inputs([y])
    assert isinstance(other.op, Scaled) and other.inputs == [y]
    assert other.outputs[1].eval({y: [1.0, 2.0]}) == 3.0
