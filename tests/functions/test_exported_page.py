"""The page on deployment says truly what can be exported for C."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import standalone
from graphc.codegen.pipeline.kernel import Report
from graphc.codegen.pipeline.program import generate_program
from graphc.codegen.special import FUNCTIONS
from graphc.codegen.special.plain_source import is_plain
from graphc.errors import GraphcError, StepSizeError
from graphc.ops.custom import SOURCES
from graphc.startup.record import replace
from graphc.tensor.shared_randomstreams import RandomStreams

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text("utf-8")


def test_the_table_of_what_c_has_is_true() -> None:
    names: dict[str, Any] = {
        "T": T, "graphc": graphc, "np": np, "special": graphc.scipy.special, "stats": graphc.scipy.stats,
        "x": T.dvector("x"), "m": T.dmatrix("m"), "images": T.dtensor4("images"), "streams": RandomStreams(1),
    }  # fmt: skip
    table = PAGE[PAGE.index("What C has, for") :]
    rows = re.findall(r"^\| [^|]+ \| (`.*) \| (yes|with|no: \w+)", table, re.MULTILINE)
    assert len(rows) == 9
    for examples, answer in rows:
        for example in re.findall("`([^`]+)`", examples):
            inputs = [names[name] for name in ("x", "m", "images")]
            function = graphc.function(inputs, eval(example, names), mode="interpreted", on_unused_input="ignore")
            kernel = replace(function.kernel, mutable=(), returns="list")
            if answer == "no: several":
                with pytest.raises(StepSizeError):
                    generate_program(kernel, Report(kernel.name))
                continue
            program = generate_program(kernel, Report(kernel.name))
            factors = any(each.startswith("gc_lapack_") for each in program.externals)
            assert factors == (answer == "with"), example
            if answer in ("no: SciPy", "no: Python"):
                with pytest.raises(GraphcError, match=f"{answer[4:]} computes"):
                    standalone.refuse(kernel, program)
            else:
                standalone.refuse(kernel, program)


def test_the_list_of_special_functions_is_whole() -> None:
    said = re.search(r"Special functions of graphc's own: ([^.]*)\.", PAGE)
    assert said is not None
    own = {SOURCES[name].name for routine, (name, _) in FUNCTIONS.items() if is_plain(routine)}
    assert sorted(re.findall("`(\\w+)`", said[1])) == sorted(own)
