"""Every public function and class, called with a keyword that it does not have: one ArgumentError that names it."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import graphc as plain
import graphc.tensor as plain_tensor
from graphc.errors import ArgumentError, GraphTypeError

graphc: Any = plain  # type checkers would see what is wrong
T: Any = plain_tensor

MODULES = """graphc graphc.tensor graphc.tensor.nnet graphc.tensor.signal graphc.tensor.signal.pool graphc.tensor.linalg
graphc.tensor.slinalg graphc.tensor.nnet.normalization graphc.tensor.nnet.abstract_conv
graphc.tensor.nnet.neighbours graphc.random graphc.random.raw graphc.optim graphc.layers graphc.preprocess
graphc.sparse graphc.gradient
graphc.printing graphc.compile.io graphc.compile.mode graphc.gof.graph graphc.numpy graphc.numpy.linalg
graphc.updates""".split()

OTHERWISE = {
    "CAReduce", "Elemwise", "Constant", "Function", "Graph", "Node", "SharedVariable", "Variable", "TensorConstant",
    "TensorVariable", "ndarray", "change_flags", "on_phase", "Apply",
}  # fmt: skip
"""What programs do not make themselves, or what looks at its keywords when it is used."""


@pytest.mark.parametrize("name", MODULES)
def test_a_wrong_keyword_is_named(name: str) -> None:
    module: Any = import_module(name)
    silent = []
    for each in getattr(module, "__all__", None) or dir(module):
        item = getattr(module, each)
        if not callable(item) or isinstance(item, ModuleType) or each in OTHERWISE or each[0] == "_":
            continue
        own = (getattr(item, "__module__", None) or "").startswith("graphc")
        if not own or (inspect.isclass(item) and (issubclass(item, BaseException) or "__init__" not in vars(item))):
            continue
        try:
            item(frobnicate=3)
        except (ArgumentError, GraphTypeError) as error:
            if "frobnicate" in str(error) or "missing" in str(error) or "there to ask" in str(error):
                continue
            silent.append(f"{each}: {error}")
        except Exception as error:
            if name == "graphc.numpy" and not type(error).__module__.startswith("graphc"):
                continue  # NumPy's own function, which no tensor was given to
            silent.append(f"{each}: {type(error).__name__}: {error}")
        else:
            silent.append(f"{each}: no error")
    assert silent == []


def test_methods_and_objects() -> None:
    w, rng = graphc.shared([1.0], name="w"), import_module("graphc.random.streams").RandomStreams(1)
    for call, words in (
        (lambda: w.set_value(nwe_value=3), r"set_value of w .*'nwe_value'; is 'new_value' meant"),
        (lambda: rng.uniform((3,), hihg=2.0, lwo=1), "uniform.*there is no argument"),
        (lambda: graphc.In(T.dvector("v"), vlaue=3), r"In of v .*is 'value' meant"),
        (lambda: graphc.compile.Mode(linkr="py"), "Mode, called at .*is 'linker' meant"),
        (lambda: T.dmatrix("x", nam="y"), "dmatrix, .*is 'name' meant"),
        (lambda: T.TensorType("int8", shpae=()), "TensorType, .*is 'shape' meant"),
        (lambda: graphc.layers.Dense(3, n_inn=4), "n_inn.*is 'n_in' meant"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()  # type: ignore[no-untyped-call]


def test_errors_of_the_user_are_their_own() -> None:
    """A TypeError within a step, or within a function of a user's op, is not graphc's to tell."""

    def step(row: Any) -> Any:
        return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="object of type 'int' has no len") as caught:
        graphc.scan(step, sequences=T.dmatrix("m"))
    assert type(caught.value) is TypeError


def test_a_line_is_told_once_of_files_with_spaces_in_their_names() -> None:
    """What names a line of the user's does not get another, whatever the file is called."""
    called = import_module("graphc.ir.call_errors")
    called.explained_class(type(graphc.jit(lambda x: x)))
    names: dict[str, Any] = {"graphc": graphc, "ones": np.ones(3)}
    text = "@graphc.jit\ndef positive(x):\n    return x if x.sum() > 0 else -x\n\n\npositive.lower(ones)"
    with pytest.raises(TypeError) as caught:
        exec(compile(text, "my program (new).py", "exec"), names)
    assert str(caught.value).startswith("x.sum() > 0 (my program (new).py:3) is symbolic")


def test_functions_show_their_parameters() -> None:
    """`inspect` tells of a function what its definition says, by both of its ways."""
    spec = inspect.getfullargspec(T.nnet.conv2d)
    assert spec.args[:2] == ["input", "filters"] and "filter_dilation" in spec.args and spec.varargs is None
    signature = inspect.signature(T.dot)
    assert list(signature.parameters) == ["a", "b"] and signature == inspect.signature(T.dot)
    assert signature.bind(1, b=2).arguments == {"a": 1, "b": 2} and str(signature).startswith("(a: ")


def test_jitted_functions_are_left_alone_when_a_program_asks_for_their_class() -> None:
    assert isinstance(graphc.jit(abs), graphc.Jitted)
    assert not hasattr(graphc.Jitted.__call__, "explained") and not hasattr(graphc.Jitted.dispatch, "explained")
