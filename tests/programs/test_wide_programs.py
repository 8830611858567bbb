"""Random programs over all dtypes and most ops, ranks and layouts: every mode gives what the interpreter gives.

More of them with GRAPHC_PROGRAMS; each is run in one of the modes beside the interpreter, compiled ones on threads with
small chunks, and with nests in one function or as functions.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from graphc.functions.native import Compiled
from graphc.options import options
from tests.support.wide_programs import arguments, difference, has_float32, laid_out, outcome, random_program, rounded

PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "40"))
SIZES = ((3, 4), (1, 1), (0, 3), (5, 0), (1, 7), (40, 33), (300, 5), (2, 600))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_modes_agree(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    program = random_program(seed)
    is_compiled = seed % 3 == 0
    specification = program.compile("interpreted")
    with options.change(outline=draw.choice(["auto", "auto", "always", "never"])):
        call = program.compile("compiled" if is_compiled else "python")
    if isinstance(call, Compiled) and call.library.settings is not None:
        call.library.settings[:] = [draw.choice([1, 2, 3]), 2, draw.choice([1, 20, 500]), 0, draw.choice([1, 2**40])]
    narrow = has_float32(program)
    for rows, columns in SIZES if is_compiled else SIZES[:5]:
        inputs, shared = arguments(program, rows, columns, seed, special=draw.random() < 0.25)
        want = outcome(specification, program, inputs, shared)
        near = [
            outcome(specification, program, rounded(inputs, narrow, rng), rounded(shared, narrow, rng)) for _ in "ab"
        ]
        for iteration in range(3):
            values = [value.copy() for value in inputs]
            given = laid_out(values, draw) if iteration else values
            before = [value.tobytes() for value in given]
            found = outcome(call, program, given, shared)
            assert not difference(found, want, near, narrow), call.explain() + call.source
            changed = {number for number, value in enumerate(given) if value.tobytes() != before[number]}
            assert changed <= program.mutable, call.source


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, PROGRAMS, 3))
def test_fast_math_agrees_on_numbers(seed: int) -> None:
    """What is finite: real numbers have no 0 / 0 that a rule could keep."""
    rng = np.random.default_rng(seed)
    with options.change(fast_math=True):
        program = random_program(seed)
        specification, call = program.compile("interpreted"), program.compile("compiled")
    narrow = has_float32(program)
    for rows, columns in SIZES[:1] + SIZES[5:]:
        inputs, shared = arguments(program, rows, columns, seed, special=False)
        want = outcome(specification, program, inputs, shared)
        near = [
            outcome(specification, program, rounded(inputs, narrow, rng), rounded(shared, narrow, rng)) for _ in "ab"
        ]
        found = outcome(call, program, [value.copy() for value in inputs], shared)
        if not isinstance(want[0], type) and not isinstance(found[0], type):
            for got, right in zip([*found[0], *found[1]], [*want[0], *want[1]], strict=True):
                if got.dtype.kind == "f":
                    np.copyto(got, right, where=~np.isfinite(right))
        assert not difference(found, want, near, narrow), call.explain() + call.source
