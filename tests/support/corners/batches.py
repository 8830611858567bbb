"""Runs of programs with neighbouring numbers.

In: a seed and numbers. Out: what was looked at, and what failed, as small as it could be made.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from tests.support.corners import pairs_of_sizes
from tests.support.corners.checks import Setting, Tally, failures, random_setting
from tests.support.corners.programs import Program, arguments, random_program
from tests.support.corners.shrinking import shrunk
from tests.support.corners.slopes import Case, case

TOGETHER, CASES = 8, 2


@dataclass(frozen=True, slots=True)
class Failure:
    """A program's name, how it was run, what is wrong, and a smaller one that fails too."""

    name: str
    setting: str
    text: str
    program: str


def cases_of(program: Program, name: str) -> list[Case]:
    return [case(program, arguments(program, f"{name}:{turn}"), turn) for turn in range(CASES)]


def run_random(seed: str, first: int, count: int) -> tuple[Tally, list[Failure]]:
    """The programs of these numbers, some together."""
    return _run(
        seed, range(first, first + count), TOGETHER, random_program, lambda name: random_setting(random.Random(name))
    )


def run_pairs(seed: str, first: int, count: int) -> tuple[Tally, list[Failure]]:
    """Some of the programs over pairs of sizes, compiled, and some in the other modes."""
    programs = dict(enumerate(islice(pairs_of_sizes.programs(), first, first + count), first))

    def setting(name: str) -> Setting:
        return Setting(random.Random(name).choice(["compiled", "compiled", "python"]))

    return _run(seed, list(programs), pairs_of_sizes.BATCH, lambda name: programs[int(name.rsplit(":")[-1])], setting)


def _run(
    seed: str,
    numbers: Sequence[int],
    together: int,
    program_of: Callable[[str], Program],
    setting_of: Callable[[str], Setting],
) -> tuple[Tally, list[Failure]]:
    tally, found = Tally(), []
    for begin in range(0, len(numbers), together):
        names = [f"{seed}:{number}" for number in numbers[begin : begin + together]]
        programs, setting = [program_of(name) for name in names], setting_of(names[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of casts and of empty slices
            cases = [cases_of(program, name) for program, name in zip(programs, names, strict=True)]
            texts = failures(programs, cases, setting, tally)
            for name, program, turns, text in zip(names, programs, cases, texts, strict=True):
                if text:
                    found.append(_failure(name, program, turns, setting, text))
    return tally, found


def _failure(name: str, program: Program, turns: Sequence[Case], setting: Setting, text: str) -> Failure:
    for turn in turns:
        smaller, its, smaller_text = shrunk(program, turn, setting)
        if smaller_text:
            values = [repr(value) if value.size < 20 else f"shape {value.shape}" for value in its.arrays]
            return Failure(name, str(setting), f"{text}\nsmaller: {smaller_text}", f"{smaller}\n{values}")
    return Failure(name, str(setting), f"{text}\nfails together with its neighbours only", str(program))


def run_one(name: str) -> str:
    """A program and what is wrong with it in each mode."""
    program = random_program(name)
    lines = [str(program)]
    for mode in ("interpreted", "python", "compiled"):
        for outline in ("auto", "always"):
            text = failures([program], [cases_of(program, name)], Setting(mode, outline), Tally())[0]
            lines.append(f"{mode}, outline {outline}: {text or 'right'}")
    return "\n".join(lines)
