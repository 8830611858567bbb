"""Kernels broken on purpose, to see that a poisoned or guarded call tells.

In: a graph, a text of its generated source and what stands in its place. Out: a function whose machine code is wrong.
Run with names of KERNELS, it says what ends a process that calls them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import program
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.program import Program
from graphc.ir.node import Node
from graphc.startup.record import replace
from tests.support.generated import code


@dataclass(frozen=True, slots=True)
class Broken:
    """`right` stands in the source for `graph` of a matrix, and becomes `wrong`."""

    graph: Callable[[Node], Node]
    right: str
    wrong: str
    dtype: str = "float64"


def product(x: Node) -> Node:
    """One with two operands that are stored for it."""
    return T.dot(T.exp(x), T.tanh(x).T)


KERNELS = {
    "sum begun with anything": Broken(lambda x: T.exp(x).sum(axis=0), "out[i] = 0.0", "out[i] = out[i]"),
    "element left out": Broken(T.exp, "in independent(begin, end)", "in independent(begin + 1, end)"),
    "float32 left out": Broken(T.exp, "in independent(begin, end)", "in independent(begin + 1, end)", "float32"),
    "int64 left out": Broken(T.neg, "in independent(begin, end)", "in independent(begin + 1, end)", "int64"),
    "int8 left out": Broken(T.neg, "in independent(begin, end)", "in independent(begin + 1, end)", "int8"),
    "bool left out": Broken(lambda x: x > 0, "in independent(begin, end)", "in independent(begin + 1, end)"),
    "operand not stored": Broken(product, "t0[i] = exp(x2)", "t1[i] = exp(x2)"),
    "NaN that does not show": Broken(T.exp, "= exp(x[i])", "= select(out[i] == 0.0, 1.0, 2.0)"),
    "temporary too short": Broken(product, "S[2] = x_0", "S[2] = x_0 - 1"),
    "read after the last": Broken(T.exp, "exp(x[i])", "exp(x[i + 1])"),
    "read before the first": Broken(T.exp, "exp(x[i])", "exp(x[i - 1])"),
    "read an array further": Broken(T.exp, "exp(x[i])", "exp(x[i + end])"),
    "write after the last": Broken(T.exp, "out[i]", "out[i + 1]"),
    "write before the first": Broken(T.exp, "out[i]", "out[i - 1]"),
}


def right_result(name: str) -> Any:
    """What the kernel would compute if it were not broken."""
    x = T.matrix("x", dtype=KERNELS[name].dtype)
    return graphc.function([x], KERNELS[name].graph(x), "interpreted")(argument(name))


def compile_broken(name: str) -> graphc.Function:
    """The function of a broken kernel. Its name is its own, as is its entry in the cache."""
    broken = KERNELS[name]
    x = T.matrix("x", dtype=broken.dtype)

    def generate(kernel: Kernel, report: Report) -> Program:
        program = GENERATE(kernel, report)
        source = code(program.source)
        assert source.count(broken.right) == 1, program.source
        return replace(program, source=source.replace(broken.right, broken.wrong))

    with patch.object(program, "generate_program", generate):
        return graphc.function([x], broken.graph(x), "compiled", name=f"broken: {name}")


GENERATE = program.generate_program


def argument(name: str) -> NDArray[Any]:
    """A matrix for a broken kernel."""
    return np.arange(1, 16).reshape(3, 5).astype(KERNELS[name].dtype)


def end_of_call(name: str) -> int:
    """The number of the signal that ends a process which calls a broken kernel, 0 for none."""
    function, value = compile_broken(name), argument(name)
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        function(value)
        os._exit(0)
    return os.WTERMSIG(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(end_of_call(each))
