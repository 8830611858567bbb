"""`python -m mutation`: break the compiler in every listed place, run the suite on each, say what it overlooks.

In: arguments, see --help. Out: a line for each breakage as it is done, and a report.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mutation.mutant import Area, Mutant
from mutation.mutants import AREAS, SIEVE
from mutation.trial import ROOT, Outcome, attempt


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    made.add_argument("words", nargs="*", help="only breakages whose area, file or description holds one of these")
    made.add_argument("--jobs", type=int, default=2, help="trials side by side (2)")
    made.add_argument("--near", action="store_true", help="run the nearest tests only, and report what they notice")
    made.add_argument("--whole", action="store_true", help="run all tests on what the nearest ones do not notice")
    made.add_argument("--list", action="store_true", help="name the breakages, try none")
    made.add_argument("--results", type=Path, help="a file of outcomes: those in it are not tried again")
    return made


def chosen(words: Sequence[str]) -> Iterator[tuple[Area, Mutant]]:
    for area in AREAS:
        for mutant in area.mutants:
            text = f"{area.name} {mutant.file} {mutant.what}"
            if not words or any(word in text for word in words):
                yield area, mutant


def steps_of(area: Area, near_only: bool, whole: bool) -> list[list[str]]:
    """The test files to run on a mutant, the likely ones first."""
    near = [f"tests/{name}" for name in area.tests]
    if near_only:
        return [near]
    sieve = [path for name in SIEVE if (path := f"tests/{name}") not in near]
    steps = [near, sieve]
    if whole:
        known = {*near, *sieve}
        steps.append([str(path) for file in sorted((ROOT / "tests").rglob("test_*.py"))
                      if (path := file.relative_to(ROOT).as_posix()) not in known])  # fmt: skip
    return [step for step in steps if step]


def describe(outcome: Outcome) -> str:
    mutant = outcome.mutant
    ending = f"noticed by {outcome.noticed_by}" if outcome.noticed_by else "NOT NOTICED"
    return f"{ending}: {mutant.what} ({mutant.file}), {outcome.seconds:.0f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    plan = list(chosen(given.words))
    if given.list:
        for area, mutant in plan:
            print(f"{area.name}: {mutant.what} ({mutant.file})")
        print(f"{len(plan)} breakages")
        return 0
    known: dict[str, str] = {}
    if given.results and given.results.exists():
        known = json.loads(given.results.read_text("utf-8"))
    final = dict(known)  # the nearest tests alone do not show that nothing notices
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(given.jobs) as pool:
        waiting = [
            pool.submit(attempt, mutant, steps_of(area, given.near, given.whole), Path(temporary) / str(number))
            for number, (area, mutant) in enumerate(plan)
            if mutant.what not in known
        ]
        for future in as_completed(waiting):
            outcome = future.result()
            print(describe(outcome), flush=True)
            known[outcome.mutant.what] = outcome.noticed_by
            if given.results and (outcome.noticed_by or not given.near):
                final[outcome.mutant.what] = outcome.noticed_by
                given.results.write_text(json.dumps(final, indent=1), "utf-8")
    return report([mutant for _, mutant in plan], known)


def report(mutants: Sequence[Mutant], known: dict[str, str]) -> int:
    """Print what was not noticed and why; the number of breakages that nobody has explained."""
    unnoticed = [mutant for mutant in mutants if not known[mutant.what]]
    share = 100 * (1 - len(unnoticed) / max(len(mutants), 1))
    print(f"\n{len(mutants) - len(unnoticed)} of {len(mutants)} breakages are noticed ({share:.1f} %)")
    for mutant in unnoticed:
        print(f"  {mutant.file}: {mutant.what}: {mutant.excuse or 'not explained'}")
    return sum(not mutant.excuse for mutant in unnoticed)


if __name__ == "__main__":
    raise SystemExit(main())
