"""Every module of Theano's is there, or its import says why not; the page of names has the table."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.theano import paths

MODULES = Path(__file__).with_name("theano_modules.txt").read_text("utf-8").split()
ELSEWHERE = (
    "sparse",
    "tensor.signal",
    "tensor.nnet",
    "tensor.nlinalg",
    "tensor.slinalg",
    "tensor.fft",
    "tensor.fourier",
)
"""Modules that are being written, or whose names `theano/paths.py` lists."""


def test_every_module_is_there_or_has_a_reason() -> None:
    unsaid = []
    for place in MODULES:
        try:
            importlib.import_module(f"graphc.{place}")
        except ModuleNotFoundError as error:
            if "is not in graphc: " not in str(error) and not place.startswith(ELSEWHERE):
                unsaid.append(place)
    assert unsaid == []


def test_paths_have_names_of_others() -> None:
    program = (
        "from graphc.compile.function import function\n"
        "from graphc.gof.utils import MethodNotDefined\n"
        "from graphc.scan_module.scan_op import Scan\n"
        "from graphc.scan_module.scan_utils import until\n"
        "from graphc.tensor.inplace import exp_inplace\n"
        "from graphc.tensor.sort import argsort\n"
        "import graphc.tensor.type, graphc.misc.safe_asarray as safe\n"
        "assert graphc.tensor.type.TensorType is graphc.tensor.TensorType\n"
        "assert safe._asarray([1], 'int8').dtype == 'int8'\n"
    )
    found: dict[str, object] = {}
    exec(program, found)
    plain = [vars(public)["__wrapped__"] for public in (graphc.function, T.argsort)]
    assert [found["function"], found["argsort"], found["exp_inplace"]] == [*plain, T.exp]
    importlib.import_module("graphc.tensor.var")
    spread: Any = np.var(T.constant([[1.0, 3.0]]), axis=1, ddof=1)
    assert spread.eval() == 2.0, "which has its own arguments"
    assert T.var(T.constant([1.0, 3.0])).eval() == 1.0 and T.sort([3, 1]).eval().tolist() == [1, 3], "still functions"
    assert "rising order" in (T.sort.__doc__ or ""), "with their documentation"
    with pytest.raises(AttributeError, match=r"'graphc.tensor.type' has no attribute 'nothing'"):
        _ = sys.modules["graphc.tensor.type"].nothing
    assert "TensorType" in dir(sys.modules["graphc.tensor.type"])


def test_paths_of_theano_pymc() -> None:
    program = (
        "from graphc.graph.basic import Apply, Constant, ancestors, graph_inputs, vars_between, walk\n"
        "from graphc.graph.op import Op, get_test_value, get_test_values\n"
        "from graphc.graph.utils import MethodNotDefined, TestValueError\n"
        "from graphc.graph.fg import FunctionGraph, MissingInputError\n"
        "from graphc.scan import until\n"
        "from graphc.scan.op import Scan\n"
        "from graphc.scan.utils import map_variables\n"
        "from graphc.compile.function.types import FunctionMaker\n"
        "from graphc.sandbox.rng_mrg import MRG_RandomStream\n"
        "from graphc.raise_op import Assert\n"
        "from graphc.scalar.basic_scipy import GammaLn\n"
    )
    found: dict[str, Any] = {}
    exec(program, found)
    x, y = T.dscalars("xy")
    total = T.exp(x) + y
    assert list(found["graph_inputs"]([total])) == [x, y]

    def operands(node: Any) -> Any:
        return node.owner and node.owner.inputs

    assert list(found["walk"]([total, total], operands)) == [total, T.exp(x), y, x]
    assert list(found["walk"]([total], operands, bfs=False)) == [total, y, T.exp(x), x]
    assert list(found["walk"]([x], operands, return_children=True)) == [(x, None)]
    assert list(found["walk"]([3, -3, 4], lambda each: (), hash_fn=abs)) == [3, 4]
    log_gamma = T.Elemwise(found["GammaLn"](graphc.scalar.upgrade_to_float, name="log_gamma"))
    assert log_gamma(x) is T.gammaln(x)
    loop, _ = graphc.scan(lambda before: before + 1, outputs_info=[T.zeros(())], n_steps=2)
    assert loop.eval().tolist() == [1, 2], "a function still"


def test_programs_ask_whether_there_are_cards() -> None:
    for place in ("gpuarray", "sandbox.cuda"):
        cards = importlib.import_module(f"graphc.{place}")
        assert not getattr(cards, "pygpu_activated" if place == "gpuarray" else "cuda_enabled")
        assert not cards.dnn.dnn_available() and not cards.dnn.dnn_available(None) and not cards.dnn.dnn_present()
        assert "no GPUs" in cards.dnn.dnn_available.msg


def test_what_is_missing_says_why() -> None:
    for place, why in {
        "gpuarray.basic_ops": "no GPUs",
        "typed_list.basic": "lists of tensors",
        "tests.unittest_tools": "graphc.testing",
    }.items():
        with pytest.raises(ModuleNotFoundError, match=f"is not in graphc: .*{why}"):
            importlib.import_module(f"graphc.{place}")
    with pytest.raises(AttributeError, match=r"graphc.gpuarray.*GpuArrayType.*no GPUs"):
        _ = importlib.import_module("graphc.gpuarray").GpuArrayType
    with pytest.raises(AttributeError, match=r"scan_checkpoints.*graphc\.scan\(checkpoint=\.\.\.\) keeps less"):
        _ = getattr(graphc, "scan_checkpoints")  # noqa: B009 - no type checker knows it
    with pytest.raises(ModuleNotFoundError, match="No module named 'graphc.nowhere'"):
        importlib.import_module("graphc.nowhere")


PAGE = Path(graphc.__file__ or "").parent.parent / "docs" / "names.md"
HEAD = "\n## Modules\n\nWritten from `graphc/theano/paths.py` by `GRAPHC_UPDATE=1 pytest tests/theano/test_theano_paths.py`.\n\n"  # noqa: E501


def page() -> str:
    rows = [
        f"| `{place}` | {' '.join(f'`{name}`' for name in homes.split()) or 'what is below'} |"
        for place, homes in paths.PATHS.items()
    ]
    why = [f"| {reason} | {' '.join(f'`{name}`' for name in names.split())} |" for reason, names in paths.REASONS]
    there = "| path | has the names of |\n|---|---|\n" + "\n".join(rows)
    return f"{HEAD}{there}\n\n| why it is not there | with all that is below |\n|---|---|\n" + "\n".join(why) + "\n"


def test_the_page_is_that_of_the_table() -> None:
    text = PAGE.read_text("utf-8")
    before = text.partition(HEAD)[0]
    if os.environ.get("GRAPHC_UPDATE"):
        PAGE.write_text(before + page(), "utf-8")
    assert PAGE.read_text("utf-8") == before + page()


def test_pickles_find_what_has_moved() -> None:
    """Protocol 0 names a class by its module, as pickles of earlier versions have it."""
    for place in paths.FORMER:
        importlib.import_module(f"graphc.{place}")
    for place, name in {
        "ir.where": "Where",
        "ir.kind": "Scratchpad",
        "gof.fft": "RFFTOp",
        "ir.apply": "Apply",
        "functions.making": "restored",
    }.items():
        assert pickle.loads(f"cgraphc.{place}\n{name}\n.".encode()).__name__ == name


@pytest.mark.slow
def test_a_function_stays_one_when_its_module_is_imported_first() -> None:
    """In a process that has not asked for `graphc.ifelse` yet, whose module would hide the function."""
    program = (
        "import graphc; from graphc.ifelse import ifelse; assert graphc.ifelse.ifelse is ifelse; graphc.ifelse(1, 2, 3)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
