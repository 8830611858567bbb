"""Options from the environment: those that there are are read, and the others are named."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np, graphc, graphc.tensor as T
x = T.dvector("x")
print(graphc.function([x], T.exp(x) + 1.25, name="shifted")(np.zeros(1)))
"""


def run(**environment: str) -> tuple[str, str]:
    """What a program prints to standard output and to standard error."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.slow
def test_an_unknown_variable_gives_one_warning_with_the_nearest_option() -> None:
    out, err = run(GRAPHC_FAST_MATHS="1", GRAPHC_NTHREADS="2", GRAPHC_THREADS="1", GRAPHC_ZZZ="1")
    assert out == "[2.25]\n"
    assert err.count("Warning") == 1
    assert "GRAPHC_FAST_MATHS (is GRAPHC_FAST_MATH meant?)" in err and "GRAPHC_NTHREADS (is GRAPHC_THREADS" in err
    assert "GRAPHC_ZZZ;" in err


@pytest.mark.slow
def test_known_variables_give_none() -> None:
    assert run(GRAPHC_FLOATX="float32", GRAPHC_CACHE_REQUIRE="0", GRAPHC_UPDATE="1")[1] == ""


@pytest.mark.slow
def test_progress_is_a_line_for_each_phase(tmp_path: object) -> None:
    settings = {"GRAPHC_CACHE_DIR": f"{tmp_path}/cache"}
    out, err = run(GRAPHC_PROGRESS="1", **settings)
    lines = err.splitlines()
    assert out == "[2.25]\n"
    assert all(re.fullmatch(r"graphc: shifted: \w+ … \d+\.\d ms", line) for line in lines)
    assert [line.split()[2] for line in lines] == ["key", "cache", "rewrite", "generate", "compile", "store", "load"]
    again = run(GRAPHC_PROGRESS="1", **settings)[1].splitlines()
    assert [line.split()[2] for line in again] == ["key", "cache", "load"]
    assert run(**settings)[1] == ""
