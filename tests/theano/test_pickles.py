"""Objects in zip files, as Theano's `misc.pkl_utils` writes them."""

from __future__ import annotations

import pickle
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.errors import GraphValueError

pkl_utils: Any = import_module("graphc.misc.pkl_utils")


def test_arrays_stand_beside_the_pickle() -> None:
    w, b, again = theano.shared(np.arange(6.0).reshape(2, 3), "w"), theano.shared([1.0, 2.0]), theano.shared(3.0, "w")
    x = T.dvector("x")
    f = theano.function([x], T.dot(w, x) + b, mode="interpreted")
    own = np.ones(2, "int8")
    file = BytesIO()
    pkl_utils.dump({"w": w, "b": b, "again": again, "f": f, "own": [own, own]}, file)
    file.seek(0)
    assert sorted(np.load(file).files) == ["array_0", "array_1", "pkl", "w", "w_2"]
    np.testing.assert_array_equal(np.load(file)["w"], w.get_value())
    file.seek(0)
    found = pkl_utils.load(file)
    assert found["own"][0] is found["own"][1] and found["own"][0].dtype == "int8" and found["again"].get_value() == 3.0
    np.testing.assert_array_equal(found["f"](np.ones(3)), [4.0, 14.0])
    found["w"].set_value(np.zeros((2, 3)))
    np.testing.assert_array_equal(found["f"](np.ones(3)), [1.0, 2.0])
    assert w.get_value().any()


def test_names_that_a_file_cannot_have() -> None:
    for variables, how in (
        ([theano.shared(1.0, "pkl")], {}),
        ([theano.shared(1.0)], {"allow_unnamed": False}),
        ([theano.shared(1.0, "w"), theano.shared(2.0, "w")], {"allow_duplicates": False}),
    ):
        with pytest.raises(GraphValueError, match="dump"):
            pkl_utils.dump(
                variables, BytesIO(), persistent_id=lambda file, h=how: pkl_utils.PersistentSharedVariableID(file, **h)
            )


def test_tags_are_left_out() -> None:
    x = T.dvector("x")
    x.tag.test_value, x.tag.kept, x.tag.big = np.ones(3), 5, np.ones(4)
    file = BytesIO()
    pkl_utils.StripPickler(file, 2, extra_tag_to_remove="big").dump(x)
    assert vars(pickle.loads(file.getvalue()).tag) == {"kept": 5}
    file.seek(0)
    assert pkl_utils.CompatUnpickler(file).load().tag.kept == 5
    assert pkl_utils.CompatUnpickler(BytesIO(b"S'\\xe9'\n.")).load() == "\xe9", "a byte of Python 2's"
