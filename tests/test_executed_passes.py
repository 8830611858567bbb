"""Every pass of the compiler, by running what it was given and what it made of that, on the same arguments."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_modes import NAMES, SAMPLES, draw, inputs_for
from watched import check_passes, check_text, watch
from wide_programs import arguments, random_program

import graphc
from graphc.ir.node import Op, Sample
from graphc.options import options

PROGRAMS = 40
SIZES = ((3, 4), (1, 1), (5, 2), (0, 3), (2, 0), (1, 7))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_passes_over_random_programs(seed: int) -> None:
    choice = random.Random(seed)
    program = random_program(seed)
    with options.change(outline=choice.choice(["auto", "auto", "always", "never"])):
        found = watch(lambda: program.compile("python"))
    check_text(found)
    for rows, columns in choice.sample(SIZES, 2):
        inputs, shared = arguments(program, rows, columns, seed, special=choice.random() < 0.25)
        for (leaf, _), value in zip(program.shared, shared, strict=True):
            leaf.set_value(value)
        check_passes(found, inputs)


@pytest.mark.parametrize(("op", "sample"), SAMPLES, ids=NAMES)
def test_passes_over_every_op(op: Op, sample: Sample) -> None:
    rng = np.random.default_rng(9)
    values = [draw(argument, rng) for argument in sample.args]
    inputs = inputs_for(sample, values)
    found = watch(lambda: graphc.function(inputs, sample.build(*inputs), "python", on_unused_input="ignore"))
    check_text(found)
    check_passes(found, values)
