"""Programs of equal steps, as they come from loops that are unrolled where a graph is written: every pass over them is
run, and compiled they have the bits that they have when the steps are written out."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from generated import code
from unrolled_programs import PROGRAMS, bits, random_steps, values_for
from watched import check_passes, watch

import graphc
from graphc.codegen.pipeline import program
from graphc.options import options

ROLLED = set(PROGRAMS) - {"layers"}
"""Of a step that has a number of its own, and of arrays of unknown sizes, nothing is said."""
GRAPHS = "equal_steps"
"""The pass that finds equal steps in graphs, and leaves none to find here."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_pass_over_equal_steps(name: str) -> None:
    steps = 9
    inputs, results = PROGRAMS[name](steps)
    with options.change(excluding=GRAPHS):
        found = watch(lambda: graphc.function(inputs, results, "python"))
    check_passes(found, values_for(inputs, steps, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_steps_written_out(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps = 40
    inputs, results = PROGRAMS[name](steps)
    with options.change(excluding=GRAPHS):
        rolled = graphc.function(inputs, results)
    interpreted = graphc.function(inputs, results, mode="interpreted")
    monkeypatch.setattr(program, "LONG", 2**62)
    with options.change(cache_dir=str(tmp_path), excluding=GRAPHS):
        plain = graphc.function(inputs, results)
        assert "step" not in code(plain.source)
        monkeypatch.undo()
        assert ("for step in" in code(rolled.source)) == (name in ROLLED)
        for seed in range(3):
            values = values_for(inputs, steps, seed)
            if seed == 2 and inputs[0].ndim:
                values[0][steps // 2] = np.nan
            with np.errstate(all="ignore"):
                outcomes = [list(map(np.asarray, f(*values))) for f in (rolled, plain, interpreted)]
            for got, want, near in zip(*outcomes, strict=True):
                assert bits(got) == bits(want)
                np.testing.assert_allclose(got, near, rtol=1e-4 if got.dtype == np.float32 else 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_pass_over_random_steps(seed: int) -> None:
    steps = 10
    inputs, results = random_steps(seed, steps)
    outline = random.Random(seed).choice(["auto", "auto", "always", "never"])
    with options.change(outline=outline, excluding=GRAPHS):
        found = watch(lambda: graphc.function(inputs, results, "python", on_unused_input="ignore"))
    rng = np.random.default_rng(seed)
    check_passes(found, [rng.normal(size=steps), rng.normal(size=3)])
