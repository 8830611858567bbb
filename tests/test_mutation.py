"""The list of breakages fits the sources: each is of a text that stands there once, and is Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutation.mutant import Mutant
from mutation.mutants import AREAS, SIEVE

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = [mutant for area in AREAS for mutant in area.mutants]


@pytest.mark.slow
def test_each_breaks_one_place() -> None:
    misfits = [misfit for mutant in MUTANTS if (misfit := misfit_of(mutant))]
    assert not misfits, "\n".join(misfits)


def misfit_of(mutant: Mutant) -> str:
    """What is wrong with a breakage; nothing where it fits."""
    text = (ROOT / "graphc" / mutant.file).read_text("utf-8")
    try:
        broken = mutant.broken(text)
        ast.parse(broken)
    except (ValueError, SyntaxError) as error:
        return str(error)
    return "" if broken != text else f"{mutant.what}: changes nothing"


def test_there_are_many_and_each_says_something_else() -> None:
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS) >= 200
    for name in (*SIEVE, *(name for area in AREAS for name in area.tests)):
        assert (ROOT / "tests" / name).exists(), name
