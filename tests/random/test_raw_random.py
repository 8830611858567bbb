"""Theano's `raw_random`: numbers of a state that is handed on."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError
from graphc.random import raw
from graphc.random.raw import RandomFunction, RandomStreamsBase, random_state_type

DRAWS: dict[str, Any] = {
    "uniform": ((3,), 1.0, 2.0),
    "normal": ((2, 2), 1.0, 0.1),
    "binomial": ((4,), 10, 0.5),
    "random_integers": ((5,), 1, 3),
    "choice": ((4,), 5),
    "poisson": ((3,), 4.0),
    "permutation": ((), 5),
    "multinomial": ((2,), 10, [0.2, 0.3, 0.5]),
    "shuffle_row_elements": (np.arange(12.0).reshape(3, 4),),
}


def test_every_draw_hands_the_state_on() -> None:
    """All of them one after the other: other numbers at each call, the same from the same state."""
    rng = graphc.shared(np.random.RandomState(123), name="rng")
    state, draws = rng, []
    for name, args in DRAWS.items():
        state, drawn = getattr(raw, name)(state, *args)
        draws.append(drawn)
    f = graphc.function([], draws, updates=[(rng, state)], mode="interpreted")
    begin = rng.get_value()
    first, second = f(), f()
    rng.set_value(begin)
    for one, other, again in zip(first, second, f(), strict=True):
        np.testing.assert_array_equal(one, again)
        assert (one != other).any()
    numbers = dict(zip(DRAWS, first, strict=True))
    assert ((numbers["uniform"] >= 1) & (numbers["uniform"] < 2)).all()
    assert sorted(numbers["permutation"]) == [0, 1, 2, 3, 4] and (numbers["multinomial"].sum(1) == 10).all()
    assert ((numbers["random_integers"] >= 1) & (numbers["random_integers"] <= 3)).all()


def test_a_state_is_an_input() -> None:
    """As Theano's own tests have it: a generator of NumPy's is the value of an input with an update."""
    rng = random_state_type("rng")
    following, drawn = RandomFunction("uniform", T.dmatrix)(rng, (2, 2), -2.0, 2.0)
    state = graphc.In(rng, value=np.random.RandomState(42), update=following, mutable=True)
    f = graphc.function([state], drawn, accept_inplace=True, mode="interpreted")
    assert f().shape == (2, 2) and (f() != f()).all()
    g = graphc.function([rng], drawn, mode="interpreted")
    np.testing.assert_array_equal(g(np.random.default_rng(3)), g(np.random.default_rng(3)))
    assert RandomFunction("normal", T.dvector) == RandomFunction(np.random.RandomState.normal, T.dvector)


class Streams(RandomStreamsBase):
    def __init__(self) -> None:
        self.state = graphc.shared(np.random.RandomState(1))
        self.updates: list[Any] = []

    def gen(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        following, drawn = op(self.state, *args, **kwargs)
        self.updates.append((self.state, following))
        return drawn


def test_streams_of_a_subclass() -> None:
    for name, args in DRAWS.items():
        streams = Streams()
        drawn = getattr(streams, name)(*args)
        f = graphc.function([], drawn, updates=streams.updates, mode="interpreted")
        assert f().shape == f().shape


def test_what_is_refused() -> None:
    with pytest.raises(GraphTypeError, match=r"normal: a random state has type random_state_type, not q \("):
        raw.normal(T.dvector("q"), (2,))
    with pytest.raises(GraphValueError, match="'cauchy' is not one of uniform, normal"):
        RandomFunction("cauchy", T.dvector)


def test_the_type_of_a_state() -> None:
    kind = raw.RandomStateType()
    assert kind == raw.random_state_type and isinstance(kind, T.TensorType)
    assert not isinstance(T.dvector, raw.RandomStateType)
    assert isinstance(pickle.loads(pickle.dumps(kind)), raw.RandomStateType)
