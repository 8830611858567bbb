"""Random programs between pages that nobody may touch: run with seeds, it compares each program with the interpreter.

A process of its own, since an access that is out of bounds ends it. The last seed it has printed is then the one.
"""

from __future__ import annotations

import faulthandler
import random
import sys

import numpy as np

from graphc.functions.native import Guarded
from graphc.options import options
from tests.support.wide_programs import arguments, difference, has_float32, outcome, random_program, rounded

SIZES = ((3, 4), (1, 1), (0, 3), (5, 0), (1, 7), (40, 33), (300, 5), (2, 600))


def run(seed: int) -> None:
    """Compare a program with the interpreter, for all sizes, on threads with small chunks."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    program = random_program(seed)
    specification = program.compile("interpreted")
    with options.change(outline=draw.choice(["auto", "auto", "always", "never"]), poison="guard"):
        call = program.compile("compiled")
    assert isinstance(call, Guarded)
    if call.library.settings is not None:
        call.library.settings[:] = [draw.choice([1, 2, 3]), 2, draw.choice([1, 20, 500]), 0, draw.choice([1, 2**40])]
    narrow = has_float32(program)
    for rows, columns in SIZES:
        inputs, shared = arguments(program, rows, columns, seed, special=draw.random() < 0.25)
        want = outcome(specification, program, inputs, shared)
        near = [
            outcome(specification, program, rounded(inputs, narrow, rng), rounded(shared, narrow, rng)) for _ in "ab"
        ]
        found = outcome(call, program, [value.copy() for value in inputs], shared)
        assert not difference(found, want, near, narrow), call.explain() + call.source


if __name__ == "__main__":
    faulthandler.enable()
    for each in map(int, sys.argv[1:]):
        print("seed", each, flush=True)
        run(each)
