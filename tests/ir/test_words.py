"""Parameters by the names that Theano and NumPy have for them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import ArgumentError
from graphc.tensor.nnet.scores import softmax as row_softmax

x: Any = T.dmatrix("x")
Call: Any = T  # keywords that stubs do not know
CALLS: list[tuple[Any, Any]] = [
    (lambda: Call.sum(input=x, axis=0), lambda: x.sum(0)),
    (lambda: Call.mean(a=x, axis=1), lambda: x.mean(1)),
    (lambda: Call.prod(input=x, acc_dtype="float64"), lambda: x.prod(acc_dtype="float64")),
    (lambda: Call.sort(a=x, axis=0), lambda: T.sort(x, 0)),
    (lambda: Call.argsort(a=x), lambda: T.argsort(x)),
    (lambda: Call.take(a=x, indices=[0], axis=1), lambda: T.take(x, [0], axis=1)),
    (lambda: Call.zeros_like(model=x), lambda: T.zeros_like(x)),
    (lambda: Call.concatenate(tensor_list=[x, x], axis=1), lambda: T.concatenate([x, x], 1)),
    (lambda: Call.diag(v=x), lambda: T.diag(x)),
    (lambda: Call.tril(m=x, k=1), lambda: T.tril(x, 1)),
    (lambda: Call.tri(N=2, M=3), lambda: T.tri(2, 3)),
    (lambda: Call.shape_padleft(t=x, n_ones=2), lambda: T.shape_padleft(x, 2)),
    (lambda: Call.swapaxes(y=x, axis1=0, axis2=1), lambda: T.swapaxes(x, 0, 1)),
    (lambda: Call.outer(x=x[0], y=x[1]), lambda: T.outer(x[0], x[1])),
    (lambda: Call.outer(x[0], y=x[1]), lambda: T.outer(x[0], x[1])),
    (lambda: Call.dot(l=x, r=x), lambda: T.dot(x, x)),
    (lambda: Call.nnet.softmax(c=x), lambda: row_softmax(x)),
    (lambda: Call.nlinalg.trace(X=x), lambda: T.nlinalg.trace(x)),
    (lambda: x.clip(a_min=0, a_max=1), lambda: x.clip(0, 1)),
    (lambda: x.dot(right=x), lambda: x.dot(x)),
    (lambda: Call.transpose(x, axes=(1, 0)), lambda: x.T),
    (lambda: Call.transpose(a=x), lambda: x.T),
    (lambda: Call.transpose(x, 0, 1), lambda: x),
]


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_a_call_by_other_names_is_the_same(place: int) -> None:
    other, own = CALLS[place]
    assert other() is own()


def test_what_is_given_twice_or_not_known() -> None:
    wrong: Any
    for wrong in (
        lambda: Call.sum(x, input=x),
        lambda: Call.sum(x=x, input=x),
        lambda: Call.sum(input=x, axes=0),
        lambda: Call.sum(a=x, input=x),
    ):
        with pytest.raises(ArgumentError, match="sum"):
            wrong()
    assert graphc.function([x], Call.sum(input=x))(np.ones((2, 2))) == 4.0


def test_a_function_by_its_first_name() -> None:
    made: Any = importlib.import_module("graphc.compile.pfunc")
    f = made.pfunc(params=[x], outputs=x * 2)
    assert f(np.ones((1, 1))) == 2.0
