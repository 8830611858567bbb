"""What a user is shown: `dir` gives what is public and nothing else, all with a docstring, and `help` reads well."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import pydoc
import types
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet, optim
from graphc.functions.callables import PUBLIC
from graphc.ir.symbol import METHODS
from graphc.options import OPTIONS, options
from graphc.startup.hooks import HOOKS


def public(item: object) -> list[str]:
    return sorted(name for name in dir(item) if not name.startswith("_"))


@pytest.mark.parametrize("module", [graphc, T, nnet, optim, graphc.cache])
def test_a_module_shows_what_it_offers(module: types.ModuleType) -> None:
    assert dir(module) == sorted({*module.__all__, *vars(module).get("_LATE", ()), *HOOKS.names(module.__name__)})
    items = {name: getattr(module, name) for name in dir(module)}
    assert [name for name, item in items.items() if item is not None and not item.__doc__] == []
    foreign = [
        name
        for name, item in items.items()
        if item is not graphc  # which is `theano` to `from theano import *`
        and (
            (isinstance(item, types.ModuleType) and not item.__name__.startswith("graphc."))
            or not (getattr(item, "__module__", None) or "graphc").startswith("graphc")
        )
    ]
    assert [name for name in foreign if name not in T.LAZY["inspection"].split()] == []


@pytest.mark.parametrize(
    "name", "autograd lax nn numpy numpy.linalg printing random session tensor.linalg scan_utils".split()
)
def test_a_module_shows_nothing_that_it_imports(name: str) -> None:
    module = importlib.import_module(f"graphc.{name}")
    assert not {"annotations", "Any", "TYPE_CHECKING", "explain_all", "np"} & {*dir(module)}
    assert all(hasattr(module, shown) and shown[0] != "_" for shown in dir(module)) and len(dir(module)) > 5


def test_the_tensor_functions_are_all_there() -> None:
    assert {"exp", "mean", "dmatrix", "bvectors", "grad", "nnet", "softmax", "set_subtensor", "as_tensor"} <= {*dir(T)}
    assert {"sgd", "momentum", "adam"} < {*dir(optim)} < {*dir(optim), *vars(optim)}


def test_options_show_themselves() -> None:
    assert public(options) == sorted([*OPTIONS, "change"])
    assert all(inspect.getdoc(getattr(type(options), name)) for name in public(options))


OWN = """T args at attrs broadcastable clone dtype get_parents imag index mT name ndim op owner real shape size tag type
view where device itemsize nbytes"""
KEPT = "allow_downcast container default_update get_value set_value strict zero"


@pytest.mark.parametrize(
    ("tensor", "names"),
    [(T.dmatrix("x"), OWN), (T.dmatrix("x") == 1.0, OWN), (graphc.shared(1.0), f"{OWN} {KEPT}")],
)
def test_a_tensor_shows_its_methods(tensor: graphc.Node, names: str) -> None:
    assert public(tensor) == sorted([*METHODS, *names.split()])
    assert all(inspect.getdoc(getattr(type(tensor), name, None) or getattr(tensor, name)) for name in public(tensor))
    assert inspect.getdoc(type(tensor).op) == "The op that is applied."


def example(mode: str, **given: Any) -> graphc.Function:
    x, n = T.dmatrix("x"), T.lvector("n")
    w = graphc.shared(np.zeros(3), name="w")
    inputs, result = ([x, n], x[: T.cumsum(n)[-1]]) if mode == "staged" else ([x], T.dot(x, w))
    return graphc.function(
        inputs, result, updates=[(w, w + 1.0)], mode="compiled" if mode == "staged" else mode, **given
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python", "staged", "profiled"])
def test_a_function_shows_what_it_can_be_asked(mode: str) -> None:
    f = example("compiled", profile=True) if mode == "profiled" else example(mode)
    assert public(f) == sorted(PUBLIC)
    assert all(hasattr(f, name) for name in PUBLIC)
    shown = pydoc.plain(pydoc.render_doc(f))
    assert "function function(x: float64[x.0, x.1]" in shown
    assert f"A {f.mode} function, made at test_public.py:" in shown and "and updates w." in shown
    assert "explain(): Return a report of the compilation" in shown and "source: The generated" in shown
    assert "run_values" not in shown and len(shown.splitlines()) < 30
    assert "A compiled, interpreted" in (graphc.Function.__doc__ or "") and isinstance(type(f).__doc__, str)


def test_help_lists_the_functions_of_tensors() -> None:
    shown = "".join(pydoc.plain(pydoc.render_doc(T)).split())  # from Python 3.13 on lines are wrapped
    assert "mean(x:'Any',axis:'Any'=None" in shown and "Themean" in shown
    assert "import_module" not in pydoc.plain(pydoc.render_doc(graphc))


@pytest.mark.parametrize("package", [graphc, T, nnet])
def test_no_name_that_is_found_later_is_also_a_modules(package: types.ModuleType) -> None:
    """Whoever imported the module would put it in the place of what the name stands for."""
    modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    tables = vars(package).get("LAZY", {}), vars(package).get("_NAMES", {})
    assert not modules & {name for table in tables for names in table.values() for name in names.split()}
