"""Random programs of sparse matrices with sizes among their results, in all modes and between forbidden pages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import graphc
import graphc.tensor as T
from graphc import sparse
from graphc.options import options
from tests.support.sparse_programs import FOUND, dense, wrong

ROOT = Path(__file__).parents[2]
PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "60"))


A = scipy.sparse.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0], [4, 5, 0], [0, 0, 6]]))
B = scipy.sparse.csr_matrix(np.array([[5.0, 0, 6], [0, 7, 0], [0, 8, 0], [1, 0, 0]]))
V = np.arange(1.0, 5.0)
BESIDE_SIZES: dict[str, tuple[str, Callable[..., Sequence[Any]], Sequence[Any]]] = {
    "loops over rows": (
        "csr",
        lambda a, b, v: [sparse.dense_from_sparse(a), sparse.hstack([a, b]), a.shape[0] * 2],
        [A, scipy.sparse.hstack([A, B]), 8],
    ),
    "loops over columns": ("csc", lambda a, b, v: [sparse.mul(a, b), a.shape[1]], [A.multiply(B), 3]),
    "a size first": ("csr", lambda a, b, v: [a.shape[0], a[1:3]], [4, A[1:3]]),
    "scaled rows": ("csc", lambda a, b, v: [a.shape[1], sparse.row_scale(a, v)], [3, scipy.sparse.diags(V) @ A]),
    "scaled columns": (
        "csr",
        lambda a, b, v: [sparse.col_scale(a, v[:3]), sparse.hstack([a, b])],
        [A @ scipy.sparse.diags(V[:3]), scipy.sparse.hstack([A, B])],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["python", "compiled"])
def test_sizes_beside_what_loops_over_as_many_elements(mode: str) -> None:
    for name, (form, program, wanted) in BESIDE_SIZES.items():
        a, b, v = sparse.matrix(form, "a"), sparse.matrix(form, "b"), T.dvector("v")
        with options.change(poison="on"):
            call = graphc.function([a, b, v], program(a, b, v), mode, on_unused_input="ignore")
            for _ in "ab":
                found = call(A.asformat(form), B.asformat(form), V)
                assert [dense(value).tolist() for value in found] == [dense(value).tolist() for value in wanted], name


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
def test_random_programs_of_sparse_matrices(mode: str) -> None:
    numbers = {"interpreted": (*FOUND, *range(PROGRAMS // 3)), "python": (*FOUND, *range(PROGRAMS // 10))}
    with options.change(poison="off" if mode == "interpreted" else "on"):
        assert not [problem for number in numbers.get(mode, range(PROGRAMS // 30)) if (problem := wrong(number, mode))]


@pytest.mark.slow
def test_random_programs_of_sparse_matrices_stay_within_their_arrays() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.support.sparse_programs",
        "guard",
        *map(str, (*FOUND, *range(20, 20 + PROGRAMS // 20))),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-4000:]}"
