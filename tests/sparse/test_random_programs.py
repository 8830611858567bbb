"""Random programs of sparse matrices with sizes among their results, in all modes and between forbidden pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparse_programs import wrong

from graphc.options import options

TESTS = Path(__file__).parent.parent
PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "60"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
def test_random_programs_of_sparse_matrices(mode: str) -> None:
    count = {"interpreted": PROGRAMS // 3, "python": PROGRAMS // 6, "compiled": PROGRAMS // 20}[mode]
    with options.change(poison="off" if mode == "interpreted" else "on"):
        assert not [problem for number in range(count) if (problem := wrong(number, mode))]


@pytest.mark.slow
def test_random_programs_of_sparse_matrices_stay_within_their_arrays() -> None:
    command = [sys.executable, str(TESTS / "sparse_programs.py"), "guard", *map(str, range(20, 20 + PROGRAMS // 20))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-4000:]}"
