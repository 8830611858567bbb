"""Calls of exported functions from C beside the kernels alone: what the checks of a call take.

In: nothing. Out: a line for each function, in nanoseconds for a call: through its C function, and of its kernel alone.
The C function takes contiguous arrays, or strides: of such arrays, and of every other element, which it copies.

    python -m benchmarks.exported
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import graphc
import graphc.tensor as T
from graphc.codegen.call.c_interface import CFunction
from graphc.functions import exported

CALLS = 2_000_000
ROUNDS = 15

PROGRAM = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"
int64_t kernel();
static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }}
int main(void) {{
    static double x[2 * {n}], cost[1], grad[2 * {n}];
    static double room[1 << 16], temps[{temps} + 1][1 << 12];
    double best[2] = {{1e18, 1e18}};
    for (int i = 0; i < 2 * {n}; i++) x[i] = 0.5 + 0.01 * i;
    for (int round = 0; round < {rounds}; round++) {{
        double begin = now();
        for (int i = 0; i < {calls}; i++) {{ x[0] += 1e-9; if (model({given}, room, sizeof room)) abort(); }}
        double middle = now();
        for (int i = 0; i < {calls}; i++) {{ x[0] += 1e-9; if (kernel({bare})) abort(); }}
        double end = now();
        if (middle - begin < best[0]) best[0] = middle - begin;
        if (end - middle < best[1]) best[1] = end - middle;
    }}
    printf("%.2f %.2f\\n", best[0] / {calls}, best[1] / {calls});
    (void)temps;
    return 0;
}}
"""


def functions() -> Iterator[tuple[str, Any, int]]:
    """Values with their gradients, of vectors whose length is known and unknown."""
    for n in (4, 32):
        for kind, x in (("known", T.TensorType("float64", (n,))("x")), ("unknown", T.dvector("x"))):
            cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
            yield f"Rosenbrock, {n} of {kind} length", graphc.function([x], [cost, graphc.grad(cost, x)]), n


def measure(function: Any, n: int, folder: Path, stride: int = 0) -> tuple[float, float]:
    """Nanoseconds for a call, and for its kernel: the best of ROUNDS. stride: of x and its gradient, in bytes, 0 where
    the C function takes none."""
    shown = CFunction.exports
    with patch.object(CFunction, "exports", lambda self: (*shown(self), "kernel")):
        exported.export(function, folder / "model", strided=["x", "out1"] if stride else ())
    signature = function.built.signature
    is_known = signature.inputs[0].shape[0] is not None
    assert not signature.sizes or not is_known
    numbers = "".join([f", {n}"] * (not is_known) + [f", {stride}"] * (stride > 0))
    given = f"x{numbers}, cost, grad{numbers}"
    temps = [f"temps[{number}]" for number in range(len(signature.temps))]
    bare = ", ".join(["x", "cost", "grad", *temps, *[f"(int64_t){n}" for _ in signature.sizes]])
    text = PROGRAM.format(n=n, temps=len(temps), rounds=ROUNDS, calls=CALLS // n, given=given, bare=bare)
    (folder / "loop.c").write_text(text)
    run = partial(subprocess.run, shell=True, cwd=folder, check=True, capture_output=True, text=True)
    run("cc -O2 loop.c libmodel.a -lm -o loop")
    whole, alone = map(float, run("./loop").stdout.split())
    return whole, alone


def main() -> None:
    """Print the table."""
    print(f"{'nanoseconds':54}{'C function':>12}{'kernel':>10}{'checks':>10}")
    for name, function, n in functions():
        for how, stride in (("", 0), (", contiguous strides", 8), (", copied", 16)):
            with TemporaryDirectory() as folder:
                whole, alone = measure(function, n, Path(folder), stride)
            print(f"{name + how:54}{whole:12.1f}{alone:10.1f}{whole - alone:10.1f}")


if __name__ == "__main__":
    main()
