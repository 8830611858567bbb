"""`python -m benchmarks.sweep --programs 300 --seed 1`: measure programs drawn at random, print the distribution.

In: arguments, see --help. Out: a line for each program, a file of records, one line each, which a next run extends, and
the report of `report.py`; with --docs, `docs/sweep.md`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.sweep.kinds import KINDS
from benchmarks.sweep.measure import ROOT, default_pythons, measure
from benchmarks.sweep.program import Program, draw
from benchmarks.sweep.report import MEASURES, Record, write

HEAD = """# Programs drawn at random

Written by `make bench-sweep`. {count} programs, of {kinds} kinds. Sizes, dtypes, the way a program is written and the
way graphc is called are drawn at random (`benchmarks/sweep`). Each program is run by graphc, by JAX, by NumPy where it
has no gradient, and as plain loops under `numba.njit(fastmath=False)`, its gradient by hand, where such loops exist.
All run on one processor. Seconds are those that the processor spends: medians over {rounds} rounds in which libraries
take turns. Time to compile is what the first call takes in a process that has compiled another program, with no cache.

{machine}

"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    made.add_argument("--programs", type=int, default=300, help="how many (300)")
    made.add_argument("--seed", type=int, default=1, help="other programs (1)")
    made.add_argument("--rounds", type=int, default=9, help="rounds of calls of each program (9)")
    made.add_argument("--kinds", default="", help=f"some kinds alone, of {', '.join(KINDS)}")
    made.add_argument("--libraries", default="graphc,jax,numba,numpy", help="which to run (all)")
    made.add_argument("--python", default="benchmarks/.venv/bin/python", help="JAX's Python (of make bench-env)")
    made.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "sweep.json", help="records, to extend")
    made.add_argument("--fresh", action="store_true", help="forget the records that are there")
    made.add_argument("--report", action="store_true", help="measure nothing, print the report")
    made.add_argument("--docs", type=Path, help="file to write the report to")
    return made


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def line(record: Record) -> str:
    """A program and its ratios in one line."""
    values = [measure.of(record) for measure in MEASURES[:3]]
    figures = " ".join("     -" if value is None else f"{value:6.2f}" for value in values)
    wrong = [*record["failed"], *record.get("differs", ())]
    return f"{figures}  {Program(**record['program']).title}{'  WRONG: ' + ', '.join(wrong) if wrong else ''}"


def sweep(parsed: argparse.Namespace) -> None:
    """Measure what is not in the file of records yet."""
    names = parsed.kinds.split(",") if parsed.kinds else list(KINDS)
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise SystemExit(f"there is no kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if parsed.fresh:
        parsed.results.unlink(missing_ok=True)
    known = [record["program"] for record in read(parsed.results)]
    pythons = default_pythons(parsed.python, parsed.libraries.split(","))
    print("framework/graphc, graphc/loops, compile graphc/JAX")
    for program in draw(parsed.seed, parsed.programs, {name: KINDS[name] for name in names}):
        if program.as_json() in known:
            continue
        record = measure(program, pythons, parsed.rounds)
        with parsed.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(line(record), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = parser().parse_args(arguments)
    if not parsed.report:
        sweep(parsed)
    records = read(parsed.results)
    text = write(records)
    print(text)
    if parsed.docs:
        machine = ("{processor}, {cores} cores, {memory}, {system}, Python {python}, measured on {date}").format(
            **describe_machine()
        )
        kinds = len({record["program"]["kind"] for record in records})
        head = HEAD.format(count=len(records), kinds=kinds, rounds=parsed.rounds, machine=machine)
        parsed.docs.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
