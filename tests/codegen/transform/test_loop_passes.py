"""Passes over loops, as text before and after, in `passes/`: one file for a pass.

A case begins with `== what it shows`; then come functions before the pass, and after `--` the functions after it. Cases
that a pass leaves as they are begin with `== kept:`. `GRAPHC_UPDATE=1 pytest
tests/codegen/transform/test_loop_passes.py` writes what comes after anew: read the difference before you commit it.
Both forms are run, and leave the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.call.interrupt import KINDS
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.gemm.prototypes import PROTOTYPES
from graphc.codegen.transform.copies import write_where_copied
from graphc.codegen.transform.double_buffers import double_buffer
from graphc.codegen.transform.forwarding import forward_stores
from graphc.codegen.transform.fuse import merge_rows
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.jam import jam_rows
from graphc.codegen.transform.outline import outline
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.partial_sums import narrow_sums
from graphc.codegen.transform.passes import Change
from graphc.codegen.transform.polls import ask_in_nests, place_polls
from graphc.codegen.transform.registers import keep_in_registers
from graphc.codegen.transform.simplify import STEPS
from graphc.loopir.ir import INDEX, Buffer, Function, Let, Loop, Set
from graphc.loopir.names import Names
from graphc.loopir.text import print_functions
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.startup.record import replace
from tests.support.loop_machine import run
from tests.support.loop_text import parse_functions
from tests.support.watched import differs

FOLDER = Path(__file__).parent / "passes"
Functions = tuple[Function, ...]
Pass = Callable[[Function], Functions]
LENGTH = 512
"""Of each buffer: there is room for two scalars of every chunk."""
NUMBERS = {"n": 3, "m": 4, "given": 2}
"""What cases may have for parameters that are no buffers."""


def fresh_names(function: Function) -> Names:
    own = {stmt.var.name for stmt in statements(function.body) if isinstance(stmt, Let | Set | Loop)}
    return Names({*own, *(param.name for param in function.params), *FIXED_NAMES, *PRELUDE})


def changed(change: Change, function: Function) -> Functions:
    return (replace(function, body=change(function.body)),)


def forwarded(function: Function) -> Functions:
    return (replace(function, body=forward_stores(function.body, fresh_names(function).fresh)),)


def kept_in_registers(function: Function) -> Functions:
    return (replace(function, body=keep_in_registers(function.body, fresh_names(function).fresh)),)


def narrowed(function: Function) -> Functions:
    found = narrow_sums(function.body, fresh_names(function).fresh)
    params = (found.changed.get(param, param) if isinstance(param, Buffer) else param for param in function.params)
    return (replace(function, params=(*params, *found.narrow), body=found.body),)


def polled(function: Function) -> Functions:
    return (replace(function, body=place_polls(function.body, fresh_names(function).fresh)),)


def outlined(function: Function) -> Functions:
    """All that may be a function becomes one."""
    found = outline(function.body, fresh_names(function), "always")
    kernel = replace(function, params=(*function.params, *found.scalars, *found.copies), body=found.body)
    return (*found.functions, kernel)


PASSES: dict[str, Pass] = {
    **{name: partial(changed, step) for name, step in STEPS},
    "merge_rows": partial(changed, merge_rows),
    "write_where_copied": partial(changed, write_where_copied),
    "double_buffer": lambda function: (
        replace(function, body=double_buffer(function.body, fresh_names(function).fresh)),
    ),
    "forward_stores": forwarded,
    "keep_in_registers": kept_in_registers,
    "narrow_sums": narrowed,
    "mark_independent": partial(changed, mark_independent),
    "ask_in_nests": partial(changed, partial(ask_in_nests, kept=("kept",))),
    "place_polls": polled,
    "jam_rows": lambda function: (replace(function, body=jam_rows(function.body, fresh_names(function).fresh)),),
    "outline": outlined,
}
REORDERING = ("narrow_sums", "mark_independent", "outline")
EXTERNALS = {name: kinds for name, (kinds, _) in PROTOTYPES.items()} | KINDS
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
    after = PASSES[name](before[-1])
    verify_functions(after, EXTERNALS)
    assert (after == before) == title.startswith("kept: ")
    if not os.environ.get("GRAPHC_UPDATE"):
        assert print_functions(after).strip("\n") == (wanted or text)
        assert parse_functions(wanted or text) == after
    assert not differs(left_by(after, name), left_by(before, name))


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
    for name, change in PASSES.items():
        lines = []
        for title, (before, _) in read_cases(name).items():
            (function,) = parse_functions(before)
            after = print_functions(change(function)).strip("\n")
            lines += [f"== {title}", before, *(["--", after] if after != before else []), ""]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines), "utf-8")
