"""Ops of Theano that are several here: their results have owners of the class, with the inputs that were given."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.theano import opclasses
from graphc.theano.graphs import inputs, io_toposort
from graphc.theano.owners import LAST, RULES

M, X, Y = T.dmatrix("M"), T.dvector("X"), T.dvector("Y")
K, J = T.lvector("K"), T.lmatrix("J")
N, S = T.lscalar("N"), T.dscalar("S")
SIZES: Any = T.TensorType("int64", (2,))("SIZES")

CASES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "AllocDiag": [((), (X,)), ((2,), (X,)), ((-1,), (X,))],
    "Bartlett": [((), (N,))],
    "Choose": [((), (K, M))],
    "CrossentropyCategorical1Hot": [((), (M, K))],
    "CrossentropyCategorical1HotGrad": [((), (X, M, K))],
    "CrossentropySoftmax1HotWithBiasDx": [((), (X, M, K))],
    "CrossentropySoftmaxArgmax1HotWithBias": [((), (M, X, K))],
    "DiffOp": [((), (M,)), ((2, 0), (M,)), ((1, 0), (X,))],
    "ExtractDiag": [((), (M,)), ((1,), (M,)), ((-2,), (M,))],
    "Eye": [(("float64",), (N, N, N)), (("float32",), (3, 4, 1))],
    "FillDiagonal": [((), (M, S)), ((), (M, 1.0))],
    "FillDiagonalOffset": [((), (M, S, N)), ((), (M, S, -1))],
    "GradClip": [((-1, 1), (M,))],
    "GradScale": [((2.0,), (M,))],
    "LogSoftmax": [((), (M,))],
    "Nonzero": [((), (M,))],
    "PermuteRowElements": [((), (M, K)), ((), (M, J))],
    "Prepend_scalar_constant_to_each_row": [((2.0,), (M,))],
    "Prepend_scalar_to_each_row": [((), (S, M))],
    "RavelMultiIndex": [((), (K, K, SIZES)), (("raise", "F"), (K, J[0], T.as_tensor([3, 4])))],
    "RepeatOp": [((0,), (M, 2)), ((), (M, N)), ((1,), (M, K)), ((), (X, K)), ((), (X, 3))],
    "SearchsortedOp": [(("right",), (X, X + 1))],
    "Shape": [((), (M,))],
    "Softmax": [((), (M,))],
    "SoftmaxGrad": [((), (M, T.exp(M)))],
    "TopKOp": [((), (X, 2))],
    "Tri": [(("float64",), (N, N, N))],
    "Unique": [((), (X,)), ((), (M,)), ((True, True, True, 0), (M,))],
    "UnravelIndex": [((2,), (K, SIZES)), ((2,), (K, T.as_tensor([3, 4])))],
    "ZeroGrad": [((), (M,))],
}
"""For each class parameters and inputs."""
OTHERS = {"Unique": 1, "CrossentropySoftmaxArgmax1HotWithBias": 1}
"""How many of the results are told, where that is not all: the others are ops of their own, too."""


@pytest.mark.parametrize("name", CASES)
def test_the_owner_is_the_op_of_the_inputs(name: str) -> None:
    for parameters, given in CASES[name]:
        op = getattr(opclasses, name)(*parameters)
        made = op(*given, return_list=True)
        for result in made[: OTHERS.get(name)]:
            owner = result.owner
            assert isinstance(owner.op, getattr(opclasses, name)) and owner is result.owner and owner == result.owner
            if isinstance(owner.op, opclasses.Parametrised):
                assert any(each is result for each in owner.outputs) and len(owner.inputs) == len(given)
                assert any(each is result for each in owner.op(*owner.inputs, return_list=True))
                leaves = [each for each in given if isinstance(each, graphc.Node) and each.op is M.op]
                assert set(leaves) <= {*owner.inputs, *inputs(owner.inputs)}


def test_what_theano_programs_ask() -> None:
    classes: Any = importlib.import_module("graphc.tensor.extra_ops")
    repeated = T.repeat(M, 2, axis=0)
    assert isinstance(repeated.owner.op, classes.RepeatOp) and repeated.owner.op == classes.RepeatOp(0)
    assert repeated.owner.inputs[0] is M and repeated.owner.op.axis == 0
    assert [apply.op for apply in io_toposort([M], [repeated])] == [classes.RepeatOp(0)]
    other = repeated.owner.clone_with_new_inputs([T.exp(M), repeated.owner.inputs[1]])
    assert isinstance(other.op, classes.RepeatOp) and other.outputs[0] is T.repeat(T.exp(M), 2, axis=0)
    np.testing.assert_array_equal(other.outputs[0].eval({M: [[0.0]]}), [[1.0], [1.0]])


def test_what_a_program_has_written_in_parts_stays_in_parts() -> None:
    later, before = X[1:], X[:-1]
    later.name = "later"
    difference = later - before
    assert difference.owner.op.name == "sub" and difference.owner.inputs == [later, before]
    assert (M - 1.0).owner.op.name == "sub" and T.reshape(M, (-1,)).owner.op.name == "reshape"


def test_rules_are_looked_up_for_what_they_are_of() -> None:
    assert {*RULES, "sub", "true_div"} == LAST
