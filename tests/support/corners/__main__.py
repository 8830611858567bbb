"""`python -m tests.support.corners --programs 20000 --seed 7 --jobs 2`: many programs in processes of their own.

A chunk of programs that crashes or does not end is run again one by one, so that the program is known. What fails is
printed with its name and as small as it could be made; `--only NAME` runs one again. `--pairs` runs all pairs of static
sizes instead. The exit status says whether anything failed.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.corners.batches import run_one, run_pairs, run_random

CHUNK, PAIRS_CHUNK, LONGEST = 160, 640, 900
ROOT = Path(__file__).parents[3]


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.support.corners", description="random programs, held to NumPy")
    parser.add_argument("--programs", type=int, default=2000, help="how many")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="any text; drawn where it is not given")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--pairs", action="store_true", help="all pairs of static sizes instead of random programs")
    parser.add_argument("--only", metavar="SEED:NUMBER", help="run one program, in all modes, and print it")
    parser.add_argument("--chunk", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.chunk:
        return _chunk(asked)
    if asked.only:
        return _only(asked.only)
    print(f"seed {asked.seed}", flush=True)
    begun, total, better, failed = time.time(), Counter[str](), Counter[str](), []
    pieces = range(asked.first, asked.first + asked.programs, PAIRS_CHUNK if asked.pairs else CHUNK)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for report in pool.map(lambda first: _in_a_process(asked, first), pieces):
            better.update(report["tally"].pop("better_of", {}))
            total.update(report["tally"])
            for failure in report["failures"]:
                failed.append(failure["name"])
                print(f"\n{failure['name']} {failure['setting']}\n{failure['text']}\n{failure['program']}", flush=True)
            print(f"{total['programs']} programs, {len(failed)} differences, {time.time() - begun:.0f} s", flush=True)
    print(f"numbers where NumPy has none, by the last step: {dict(better.most_common(30))}")
    print(f"seed {asked.seed}: {dict(total)}; differences: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def _in_a_process(asked: argparse.Namespace, first: int, count: int = 0) -> Any:
    """The report of a chunk; one that ends without a report is done again program by program."""
    count = count or min(PAIRS_CHUNK if asked.pairs else CHUNK, asked.first + asked.programs - first)
    command = [sys.executable, "-m", "tests.support.corners", "--chunk", "--seed", asked.seed, "--first", str(first)]
    command += ["--programs", str(count), *(["--pairs"] if asked.pairs else [])]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST if count > 1 else LONGEST / 3,
        )
        how = f"ended with {done.returncode}: {done.stderr[-500:]}"
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        how = "did not end"
    if count == 1:
        failure = {"name": f"{asked.seed}:{first}", "setting": "", "text": how, "program": ""}
        return {"tally": {}, "failures": [failure]}
    reports = [_in_a_process(asked, number, 1) for number in range(first, first + count)]
    tally: Counter[str] = Counter()
    for report in reports:
        tally.update({key: value for key, value in report["tally"].items() if key != "better_of"})
    found = [failure for report in reports for failure in report["failures"]]
    if not found:  # only together
        found = [{"name": f"{asked.seed}:{first}+{count}", "setting": "", "text": how, "program": ""}]
    return {"tally": dict(tally), "failures": found}


def _chunk(asked: argparse.Namespace) -> int:
    run = run_pairs if asked.pairs else run_random
    tally, failures = run(asked.seed, asked.first, asked.programs)
    print(json.dumps({"tally": asdict(tally), "failures": [asdict(one) for one in failures]}))
    return 0


def _only(name: str) -> int:
    print(run_one(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
