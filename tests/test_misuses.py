"""Misuses, each with the class and the message of its error, as a table that people read: tests/misuses.txt.

A line is an expression, the class, and the message; GRAPHC_UPDATE=1 writes classes and messages anew. What fails is a
difference, a misuse that is none any more, and an error of a class that nobody would catch.
"""

from __future__ import annotations

import math
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc
import graphc.tensor as T
from graphc.random.streams import RandomStreams

TABLE = Path(__file__).parent / "misuses.txt"
CAUGHT = (TypeError, ValueError, IndexError, AttributeError, MemoryError, graphc.GraphcError)
"""What a user of NumPy would catch."""


class OnlyC(graphc.Op):
    """An op of Theano's that computes in C alone."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> graphc.Apply:
        return graphc.Apply(self, [*inputs], [inputs[0].type()])

    def c_code(self, *args: Any) -> str:
        return ""


@cache
def names() -> dict[str, Any]:
    """What the expressions use."""
    x, y, v, s, n = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dscalar("s"), T.lscalar("n")
    i, idx, one, whole = T.lvector("i"), T.lscalar("idx"), T.fvector("one"), T.ivector("whole")
    w = graphc.shared(np.zeros(3), name="w")
    single = graphc.shared(np.zeros(3, "float32"), name="single_precision")
    undefined = graphc.custom_op("op_without_derivative", lambda a: a)

    def made(inputs: list[Any], output: Any) -> Any:
        return graphc.function(inputs, output, mode="interpreted")

    def einsum_of(text: str, operands: list[Any]) -> Any:
        return made(operands, T.einsum(text, *operands))

    return {
        "graphc": graphc,
        "T": T,
        "np": np,
        "math": math,
        "RandomStreams": RandomStreams,
        "x": x,
        "y": y,
        "v": v,
        "s": s,
        "n": n,
        "i": i,
        "w": w,
        "undefined": undefined,
        "single_precision": single,
        "OnlyC": OnlyC,
        "scipy": scipy,
        "vectorized": np.frompyfunc(abs, 1, 1),
        "fixed": T.matrix("fixed", shape=(2, 3), dtype="float64"),
        "f": made([x], x * 2),
        "single": made([one], one),
        "whole": made([whole], whole),
        "pair": made([x, y], x + y),
        "product": made([x, y], T.dot(x, y)),
        "einsum": lambda text, *values: einsum_of(text, [T.dmatrix(name) for name in "xy"[: len(values)]])(*values),
        "tensordot": made([x, y], T.tensordot(x, y, axes=[[1], [0]])),
        "solved": made([x, v], T.linalg.solve(x, v)),
        "factor": made([x], T.linalg.cholesky(x)),
        "inverse": made([x], T.linalg.inv(x)),
        "spectrum": made([x], T.linalg.eigvals(x)),
        "element": made([v, idx], v[idx]),
        "gathered": made([v, i], v[i]),
        "filled": made([n], T.zeros((n, n))),
        "reshaped": made([v, n], v.reshape((n, 4))),
    }


def error_of(expression: str) -> str:
    """The class and the message of the error of an expression, in one line."""
    try:
        result = eval(expression, names())
    except CAUGHT as error:
        message = re.sub(r"0x[0-9a-f]{6,}", "0x…", " ".join(str(error).split()))
        message = re.sub(r"\([^\s()]+( \([^()]+\))?:\d+\)", "(line)", message)
        return f"{type(error).__name__}: {message}"
    return f"no error: {type(result).__name__}"


def rows() -> list[tuple[str, str]]:
    lines = [line for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [(code, said) for code, _, said in (line.partition("  ->  ") for line in lines)]


@pytest.mark.parametrize(("code", "said"), rows(), ids=[code for code, _ in rows()])
def test_a_misuse_is_told_as_the_table_says(code: str, said: str) -> None:
    assert error_of(code) == said


def test_the_table_is_long_and_names_variables() -> None:
    table = rows()
    assert len(table) >= 300
    assert not [code for code, said in table if said.startswith("no error")]


if os.environ.get("GRAPHC_UPDATE"):
    text = TABLE.read_text("utf-8").splitlines()
    written = [line if not line or line[0] == "#" else line.partition("  ->  ")[0] for line in text]
    TABLE.write_text(
        "".join(f"{line}  ->  {error_of(line)}\n" if line and line[0] != "#" else f"{line}\n" for line in written),
        "utf-8",
    )
