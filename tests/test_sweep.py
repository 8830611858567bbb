"""The sweep: each kind's text in graphc and in NumPy, and its loops by hand say the same; a seed gives programs.

Loops run in Python here, and graphc interprets: what numba and the compiled mode make of them is compared where the
sweep runs. Gradients by hand are compared with graphc's.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sweep import __main__ as command
from benchmarks.sweep.kinds import KINDS
from benchmarks.sweep.libraries import GraphcLibrary, NumpyLibrary, flat
from benchmarks.sweep.measure import difference
from benchmarks.sweep.program import Kind, Program, arguments, draw
from benchmarks.sweep.report import MEASURES, write

SMALLEST = 6


def small(kind: Kind, way: str, gradient: bool) -> Program:
    """The program in sizes near the least, not all equal, so that axes cannot be mistaken for each other."""
    sizes = {
        name: min(most, max(least, SMALLEST + place)) if least < SMALLEST else least
        for place, (name, (least, most)) in enumerate(kind.sizes.items())
    }
    return Program(kind.name, way, "float64", sizes, "jit", gradient, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_way_and_the_loops_by_hand_agree(name: str) -> None:
    kind = KINDS[name]
    ours, plain = GraphcLibrary(), NumpyLibrary()
    for way in kind.ways:
        for gradient in [False, True] if kind.wrt else [False]:
            program = small(kind, way, gradient)
            inputs = arguments(kind, program)
            compiled = ours.compiled(kind, program, inputs, mode="interpreted")
            loops = kind.by_hand(gradient)
            others = [plain.compiled(kind, program, inputs), loops]
            if compiled is None or not any(others):
                continue  # a gradient that nobody wrote by hand
            found = flat(compiled(*inputs))
            for other in filter(None, others):
                expected = flat(other(*[array.copy() for array in inputs]))
                assert difference(found, expected) < 1e-9, (way, gradient)


def test_programs_are_drawn_alike_from_one_seed_and_all_kinds_equally_often() -> None:
    first = draw(5, 2 * len(KINDS), KINDS)
    assert first == draw(5, 2 * len(KINDS), KINDS) != draw(6, 2 * len(KINDS), KINDS)
    assert sorted(program.kind for program in first) == sorted([*KINDS, *KINDS])
    assert {program.front for program in first} == {"jit", "function", "static"}
    again = [Program(**json.loads(json.dumps(program.as_json()))) for program in first]
    assert again == first
    for program in first:
        assert program.way in KINDS[program.kind].ways
        assert all(least <= program.sizes[name] <= most for name, (least, most) in KINDS[program.kind].sizes.items())


def test_a_difference_is_relative_to_each_result() -> None:
    small_and_large = [np.array([1.0, 2.0]), np.array(1e6)]
    assert difference([np.array([1.0, 2.0, 1e6])], small_and_large) == 0
    assert difference([np.array([1.0, 2.2]), np.array(1e6)], small_and_large) == pytest.approx(0.1)
    assert difference([np.array([1.0, np.nan]), np.array(1e6)], small_and_large) == np.inf
    assert difference([np.array(1.0)], small_and_large) == np.inf


def record(name: str, graphc: float, jax: float, numba: float) -> dict[str, object]:
    program = Program(name, "way", "float64", {"n": 3}, "jit", False)
    call = {"graphc": graphc, "jax": jax, "numba": numba}
    return {"program": program.as_json(), "compile": {"graphc": 0.5, "jax": 1.0}, "call": call, "failed": {}}


def test_the_report_puts_the_worst_first_and_counts_programs_within_bounds(tmp_path: Path) -> None:
    records = [record("fast", 1.0, 4.0, 2.0), record("slow", 3.0, 1.5, 1.0), record("middle", 1.0, 1.0, 0.9)]
    assert [value for value, _ in MEASURES[0].ranked(records)] == [0.5, 1.0, 4.0]
    assert [value for value, _ in MEASURES[1].ranked(records)] == pytest.approx([3.0, 1 / 0.9, 0.5])
    records[0]["failed"] = {"numpy": "has no such name"}
    text = write(records)
    assert "| best framework / graphc, time of a call | at least 1 | 66.7 % | 3 |" in text
    assert text.index("slow (way)") < text.index("fast (way)")
    assert "numpy failed: has no such name" in text
    results, docs = tmp_path / "sweep.json", tmp_path / "sweep.md"
    results.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    command.main(["--report", "--results", str(results), "--docs", str(docs)])
    assert docs.read_text(encoding="utf-8").endswith(text)


@pytest.mark.slow
def test_a_program_is_measured_in_processes(tmp_path: Path) -> None:
    results = tmp_path / "sweep.json"
    asked = ["--programs", "1", "--kinds", "blur", "--libraries", "graphc,numpy", "--rounds", "2"]
    command.main([*asked, "--results", str(results)])
    (found,) = command.read(results)
    assert found["failed"] == {} and found["differs"] == []
    assert all(found["call"][name] > 0 for name in ("graphc", "numpy"))
    command.main([*asked, "--results", str(results)])  # measured already
    assert len(command.read(results)) == 1


def test_a_kind_that_is_unknown_is_an_error_that_lists_the_kinds() -> None:
    with pytest.raises(SystemExit, match="there is no kind blurr; there are hmm, "):
        command.main(["--kinds", "blurr"])
