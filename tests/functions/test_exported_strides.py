"""Exported functions whose arrays have strides: C computes what NumPy does of any view, and refuses what it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from tests.support.exported_library import NUMBER, Called

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="it needs a C compiler"),
]
DTYPES = ("bool", "int16", "int32", "float32", "float64")


def laid_out(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, repeats: bool) -> tuple[Any, Any]:
    """An array of small numbers, and the bytes that it lies in: its axes in any order, at steps and an offset of any
    bytes, some axes backwards. repeats: some axes have stride 0."""
    step = np.dtype(dtype).itemsize * int(rng.integers(1, 3)) + int(rng.integers(0, 2))
    strides = [0] * len(shape)
    for axis in rng.permutation(len(shape)):
        strides[axis] = step
        step *= max(shape[axis], 1) + int(rng.integers(0, 2))
    begin = int(rng.integers(0, 9))
    memory = rng.integers(0, 256, begin + step + 16).astype("uint8")
    array: Any = np.ndarray(shape, dtype, memory.data, begin, strides)
    array[...] = rng.integers(0, 2 if dtype == "bool" else 9, shape)
    for axis in range(len(shape)):
        kind = rng.integers(0, 4)
        if kind == 0:
            array = np.flip(array, axis)
        elif kind == 1 and repeats and shape[axis]:
            array = np.broadcast_to(
                array.take([0], axis) if shape[axis] < 2 else array[(slice(None),) * axis + (slice(1, 2),)], shape
            )
    return array, memory


def test_arrays_of_random_strides_agree_with_numpy(tmp_path: Path) -> None:
    inputs = [T.TensorType(dtype, (None,) * rank)(f"x{rank}_{dtype}") for dtype in DTYPES for rank in (1, 2, 3)]
    known = T.TensorType("float64", (2, 1, 3))("known")
    kept = graphc.shared(np.arange(3.0), name="kept")
    outputs = [x[::-1] if x.type.dtype == "bool" else x + x for x in inputs]
    outputs += [known * kept, inputs[-1].sum(axis=0), T.dot(inputs[-2], inputs[-2].T)]
    function = graphc.function([*inputs, known], outputs, updates=[(kept, kept + known.sum())], mode="interpreted")
    called = Called(function, tmp_path, strided=True)
    rng = np.random.default_rng(3)
    copied = 0
    for _ in range(60):
        shapes = [tuple(rng.integers(0, 5, x.ndim).tolist()) for x in inputs]
        cases = [(shape, x.type.dtype) for shape, x in zip(shapes, inputs, strict=True)] + [((2, 1, 3), "float64")]
        values = [laid_out(rng, *case, repeats=True)[0] for case in cases]
        kept.set_value(called.values[0])
        wanted = function(*map(np.ascontiguousarray, values))
        outs = [laid_out(rng, right.shape, right.dtype.name, repeats=False) for right in wanted]
        expected = []
        for right, (out, memory) in zip(wanted, outs, strict=True):
            expected.append(memory.copy())
            offset = out.ctypes.data - memory.ctypes.data
            np.ndarray(out.shape, out.dtype, expected[-1].data, offset, out.strides)[...] = right
        code, _ = called.call(values, outs=[out for out, _ in outs])
        assert code == 0, called.text(code)
        for (_, memory), right in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(memory, right)  # and what lies between the elements is as it was
        np.testing.assert_array_equal(called.values[0], kept.get_value())
        copied += sum(not each.flags.c_contiguous for each in values)
    assert copied > 300


def test_overlaps_repeats_and_absurd_strides_are_codes(tmp_path: Path) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    function = graphc.function([x, y], [x * 2, y + 1, x.sum()], mode="interpreted")
    called = Called(function, tmp_path, strided=True)
    table, free = np.arange(24.0).reshape(4, 6), np.zeros((4, 6))
    empty, cube = np.zeros((4, 0)), np.arange(40.0).reshape(4, 5, 2)
    at = np.lib.stride_tricks.as_strided
    total = np.zeros(())
    fine, line = table[:, :2], np.arange(3.0)
    cases: list[tuple[str, Any, Any, Any, Any]] = [
        ("OK", fine, line, free[:, :2], free[0, 2:5]),
        ("OK", fine, line, table[:, 2:4], free[0, 2:5]),  # fields of the same records
        ("OK", fine, line, free[:, 1::3], free[:3, 0]),
        ("OK", table[:0, :2], line, free[:0, :2], free[0, 2:5]),
        ("OK", empty, line, empty, free[:3, 5]),
        ("OK", fine[::-1, ::-1], line[::-1], free[::-1, 5:3:-1], free[:3, 0]),
        ("OK", cube[:, :, 1], free[0], cube[:, :, 0], free[1]),  # x is read at steps of 80 and 16 bytes
        ("OVERLAP", fine, line, fine, free[0, :3]),
        ("OVERLAP", fine, line, table[:, 1:3], free[0, :3]),
        ("OVERLAP", fine[::-1], line, table[:, 1:3], free[0, :3]),
        ("OVERLAP", fine, line, free[:, :2], free[0, 1:4]),  # of two results
        ("OVERLAP", fine, line, free[:, :2], free[:3, 1]),
        ("OVERLAP", fine, line, free[:, :2], table[0, :3]),
        ("STRIDES", fine, line, at(free, (4, 2), (48, 0)), free[0, 2:5]),
        ("STRIDES", fine, line, at(free, (4, 2), (8, 16)), free[0, 2:5]),
        ("STRIDES", fine, line, free[:, :2], at(free[0, 2:], (3,), (4,))),
        ("STRIDES", fine, line, free[:, :2], at(free[0, 2:], (3,), (2**62,))),
        ("STRIDES", at(table, (4, 2), (48, -(2**63))), line, free[:, :2], free[0, 2:5]),
    ]
    for number, (name, first, second, left, right) in enumerate(cases):
        before, twice = (table.copy(), free.copy()), first * 2 if name == "OK" else None
        code, _ = called.call([first, second], outs=[left, right, total])
        assert code == NUMBER[name], (number, called.text(code))
        if name == "OK":
            np.testing.assert_array_equal(left, twice)
            table[...], free[...] = before
        np.testing.assert_array_equal((table, free), before)
    with_copies = called.sizes([fine, line])[1]
    assert with_copies - called.sizes([np.ascontiguousarray(fine), line])[1] == 64  # of 4 x 2 numbers
    assert (
        called.call([fine, line], room=with_copies - 1, outs=[free[:, :2], free[0, 2:5], total])[0]
        == NUMBER["WORKSPACE"]
    )


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
typedef struct {{ double speed; float mass; double energy; }} {packed} body;
int main(void) {{
    body bodies[3] = {{{{1, 2, 0}}, {{2, 3, 0}}, {{3, 4, 0}}}};
    double work[3] = {{0, 0, 0}};
    model_sizes sizes;
    int64_t step = -(int64_t)sizeof(body);
    int code = model_workspace_size((const double *)&bodies[2].speed, 3, step, &bodies[2].mass, 3, step, &sizes);
    void *workspace = malloc(sizes.workspace);
    if (!code) code = model((const double *)&bodies[2].speed, 3, step, &bodies[2].mass, 3, step,
                            (double *)&bodies[2].energy, 3, step, work, 3, workspace, sizes.workspace);
    if (code) return puts(model_error_text(code)), 1;
    for (int i = 0; i < 3; i++) printf("%g %g ", bodies[i].energy, work[i]);
    free(workspace);
    return 0;
}}
"""


def test_fields_of_structs_are_read_and_written_in_c_and_cpp(tmp_path: Path) -> None:
    """Of packed structs as well, where numbers are at odd addresses. One result of two has strides."""
    v, m = T.dvector("v"), T.fvector("m")
    function = graphc.function([v, m], [0.5 * m * v**2, 2.0 * v], mode="interpreted")
    function.export(tmp_path / "model", strided=["v", "m", "out"], target="x86-64")
    assert (
        "out_stride_0" in (tmp_path / "model.h").read_text() and "out1_stride" not in (tmp_path / "model.h").read_text()
    )
    checked = ["valgrind", "-q", "--error-exitcode=3"] if shutil.which("valgrind") else []
    compilers = [["cc", "-std=c99"], ["g++", "-std=c++11", "-x", "c++"]]
    for compiler in filter(lambda each: shutil.which(each[0]), compilers):
        for packed in ("", "__attribute__((packed))"):
            (tmp_path / "use.c").write_text(PROGRAM.format(packed=packed))
            words = [*compiler, "-Wall", "-Wextra", "-Werror", "-Wno-address-of-packed-member", "use.c"]
            words += ["-x", "none", "model.o", "-o", "use"] if "g++" in compiler else ["model.o", "-o", "use"]
            for command in (words, [*checked, "./use"]):
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
                assert done.returncode == 0 and not done.stderr, (packed, done.stderr)
            assert done.stdout == "1 6 6 4 18 2 "
    strict = ["cc", "-Wall", "-Wextra", "-Werror", "model_example.c", "model.o", "-o", "example"]
    subprocess.run(strict, cwd=tmp_path, check=True, timeout=300)
    done = subprocess.run(
        [*checked, "./example"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "0.5 0.5 0.5 0.5 \n2 2 2 2 \n" and not done.stderr


def test_names_of_no_array_are_refused(tmp_path: Path) -> None:
    x, n = T.dvector("x"), T.lscalar("n")
    function = graphc.function([x, n], x * n, mode="interpreted")
    for names in (["z"], ["x", "n"], "ab"):
        with pytest.raises(GraphcError, match=re.escape("but the arrays are x, out")):
            function.export(tmp_path / "model", strided=names)
    with pytest.raises(GraphcError, match="takes arrays of any strides"):
        function.export(tmp_path / "model", language="python", strided=True)
    shape = T.lvector("shape")
    of_values = graphc.function([shape], T.zeros((shape[0], 2)), mode="interpreted")
    with pytest.raises(GraphcError, match="sizes of results are among its elements"):
        of_values.export(tmp_path / "model", strided=["shape"])
    assert not list(tmp_path.iterdir())
