"""`install_as_theano`, and modules of graphc under second names: the same modules, never second copies."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import graphc
from graphc.errors import GraphcError
from graphc.theano.paths import Finder


@pytest.fixture
def _installed() -> Iterator[None]:
    graphc.install_as_theano()
    graphc.install_as_theano()
    yield
    sys.meta_path.remove(Finder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "theano"]:
        del sys.modules[name]


LIBRARY = """
import theano
import theano.tensor as T
import theano.tensor.nnet.nnet, theano.gof.graph, theano.sandbox.rng_mrg
from theano import config, gof, shared, tensor
from theano.compile.nanguardmode import NanGuardMode
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.nnet import sigmoid
from theano.tensor.shared_randomstreams import RandomStreams
from theano.tensor.signal.pool import pool_2d
from theano.tensor.type import TensorType
from theano.ifelse import ifelse
y = theano.function([x := T.dvector("x")], sigmoid(x), mode="interpreted")([0.0])
"""


@pytest.mark.usefixtures("_installed")
def test_imports_below_theano_find_graphc() -> None:
    before = set(sys.modules)
    names: dict[str, Any] = {}
    exec(LIBRARY, names)
    assert names["theano"] is graphc and names["T"] is names["tensor"] is graphc.tensor and names["y"] == 0.5
    assert names["sigmoid"] is graphc.tensor.nnet.sigmoid and names["shared"] is graphc.shared
    found = [name for name in sys.modules if name.startswith("theano.")]
    assert len(found) > 10
    assert all(sys.modules[name] is sys.modules[f"graphc.{name.partition('.')[2]}"] for name in found)
    assert all(sys.modules[name].__name__ == name for name in set(sys.modules) - before if name.startswith("graphc"))
    assert graphc.tensor.__spec__.name == "graphc.tensor"  # which a reload, and `python -m`, go by
    assert pickle.loads(b"ctheano.tensor.nnet\nsigmoid\n.") is names["sigmoid"]


@pytest.mark.usefixtures("_installed")
def test_what_is_not_there_is_told() -> None:
    for name, words in (
        ("theano.nonsense", "No module named 'theano.nonsense'"),
        ("theano.tensor.io.more", "no communic"),
    ):
        with pytest.raises(ModuleNotFoundError, match=words):
            import_module(name)


def test_theano_itself_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "theano", pickle)
    with pytest.raises(GraphcError, match="Theano is imported already"):
        graphc.install_as_theano()
    assert Finder not in sys.meta_path


def test_modules_under_second_names() -> None:
    for name, own in (("nnet", "tensor.nnet"), ("cache", "codegen.cache.manage"), ("scan_utils", "control.scan")):
        module = import_module(f"graphc.{name}")
        assert module is getattr(graphc, name) is import_module(f"graphc.{own}")
        assert module.__name__ == module.__spec__.name == f"graphc.{own}"
    assert import_module("graphc.lax") is graphc.lax and graphc.lax.__name__ == "graphc.lax"
