"""Passes over loops, as text before and after, in `passes/`: one file for a pass.

A case begins with `== what it shows`; then come functions before the pass, and after `--` the functions after it. Cases
that a pass leaves as they are begin with `== kept:`. `GRAPHC_UPDATE=1 pytest
tests/codegen/transform/test_loop_passes.py` writes what comes after anew: read the difference before you commit it.
Both forms are run, and leave the same.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.call.callback import SAFEPOINT_CALLS
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.routines import routine_prototypes
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.passes import FORWARD, KERNEL_PASSES, Subject
from graphc.loopir.ir import INDEX, Buffer, Function, Let, Loop, Note, Set, Var
from graphc.loopir.syntax import Names, print_functions
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.startup.record import replace
from tests.support.loop_machine import run
from tests.support.loop_text import parse_functions
from tests.support.watched import differs

FOLDER = Path(__file__).parent / "passes"
Functions = tuple[Function, ...]
LENGTH = 512
"""Of each buffer: there is room for two scalars of every chunk."""
NUMBERS = {"n": 3, "m": 4, "given": 2}
"""What cases may have for parameters that are no buffers."""


def fresh_names(function: Function) -> Names:
    own = {stmt.var.name for stmt in statements(function.body) if isinstance(stmt, Let | Set | Loop)}
    return Names({*own, *(param.name for param in function.params), *FIXED_NAMES, *PRELUDE})


ROWS = {each.name: each for each in (*KERNEL_PASSES, FORWARD)}
PASSES = [name for name in ROWS if name != "unroll_steps"]
"""Those that have a file: steps are written out in test_unroll.py, since a text does not say what is a step."""


def carry_out(name: str, function: Function) -> Functions:
    """What a pass makes of a function: what it then calls, and itself. All that may be a function becomes one."""
    buffers = [param for param in function.params if isinstance(param, Buffer)]
    scalars = [param for param in function.params if isinstance(param, Var)]
    subject = Subject(
        function.name,
        function.body,
        buffers,
        fresh_names(function),
        scalars=scalars,
        externals=lambda: EXTERNALS,
        kept=("kept",),
        outlining="always",
    )
    subject.run([replace(ROWS[name], then=())])
    new = dict(zip(buffers, subject.buffers, strict=False))
    params = (new[param] if isinstance(param, Buffer) else param for param in function.params)
    after = replace(function, params=(*params, *subject.buffers[len(buffers) :]), body=subject.body)
    return (*subject.functions, after)


def test_what_a_pass_needs_is_given_before() -> None:
    holds: set[str] = set()
    for each in KERNEL_PASSES:
        assert holds >= {*each.needs}, f"{each.name} needs {each.needs}"
        holds = holds - {*each.ends} | {*each.gives}
        for after in each.then:
            assert not after.needs and {*after.ends} >= holds & {"marked"}
    assert holds == {"marked", "safe", "outlined"}
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*PASSES}


REORDERING = ("narrow_sums", "mark_independent", "outline")
EXTERNALS = {**routine_prototypes(), **SAFEPOINT_CALLS}
RESULTS = ("out", "sums", "a", "b", "c")
"""Buffers that cases may leave something in, besides temporaries."""


def read_cases(name: str) -> dict[str, tuple[str, str]]:
    """The cases of a pass: what stands before and after it."""
    parts = re.split("^== ", (FOLDER / f"{name}.txt").read_text("utf-8"), flags=re.MULTILINE)[1:]
    cases = {}
    for part in parts:
        title, _, rest = part.partition("\n")
        before, _, after = rest.partition("\n--\n")
        cases[title] = before.strip("\n"), after.strip("\n")
    return cases


CASES = [(name, title) for name in PASSES for title in read_cases(name)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "title"), CASES, ids=[f"{name}: {title}" for name, title in CASES])
def test_a_pass(name: str, title: str) -> None:
    text, wanted = read_cases(name)[title]
    before = parse_functions(text)
    verify_functions(before, EXTERNALS)
    after = carry_out(name, before[-1])
    verify_functions(after, EXTERNALS)
    assert (after == before) == title.startswith("kept: ")
    if not os.environ.get("GRAPHC_UPDATE"):
        assert print_functions(after).strip("\n") == (wanted or text)
        assert parse_functions(wanted or text) == after
    assert not differs(left_by(after, name), left_by(before, name))


def test_loops_that_are_not_fused_keep_their_remarks() -> None:
    (function,) = parse_functions(read_cases("fuse_aligned")["kept: the same part"][0])
    first, second = function.body
    body = (first, Note("a remark"), second, Note("another"))
    assert carry_out("fuse_aligned", replace(function, body=body))[-1].body == body


def left_by(functions: Functions, name: str) -> tuple[int, dict[str, dict[int, object]]]:
    """What a kernel leaves in its buffers, but for temporaries."""
    given = {}
    for buffer in (param for param in functions[-1].params if isinstance(param, Buffer)):
        rng = np.random.default_rng(len(buffer.name))
        values = rng.integers(0, 4, LENGTH) if buffer.dtype == INDEX else rng.normal(size=LENGTH)
        given[buffer.name] = values.astype(buffer.dtype)
    limits = dict.fromkeys(given, LENGTH)
    code, left = run(functions, functions[-1].name, given, NUMBERS, limits, (), name in REORDERING)
    return code, {buffer: left[buffer] for buffer in RESULTS if buffer in left}


@pytest.mark.skipif(not os.environ.get("GRAPHC_UPDATE"), reason="writes the files")
def test_update() -> None:
    for name in PASSES:
        lines = []
        for title, (before, _) in read_cases(name).items():
            (function,) = parse_functions(before)
            after = print_functions(carry_out(name, function)).strip("\n")
            lines += [f"== {title}", before, *(["--", after] if after != before else []), ""]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines), "utf-8")
