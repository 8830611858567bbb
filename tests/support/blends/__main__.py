"""`python -m tests.support.blends --programs 2000 --seed 7 --jobs 2`: random programs in processes of their own."""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK, LONGEST = 12, 900
ROOT = Path(__file__).parents[3]
TARGETS = ("native",) * 6 + ("nehalem", "haswell", "x86-64", "skylake-avx512")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.blends", description="random programs of everything, held to the interpreted mode"
    )
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default=secrets.token_hex(4), help="any text; drawn where it is not given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", metavar="SEED:NUMBER", help="run one program and print what is wrong with it")
    parser.add_argument("--chunk", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        from tests.support.blends.running import outcome  # noqa: PLC0415

        print(*outcome(asked.only)[:3], sep="\n")
        return 0
    if asked.chunk:
        return _chunk(asked)
    print(f"seed {asked.seed}", flush=True)
    settings: dict[str, int] = {}
    failed, begun = 0, time.time()
    pieces = range(asked.first, asked.first + asked.programs, CHUNK)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done in pool.map(lambda first: _in_a_process(asked, first, CHUNK), pieces):
            for name, setting, text in done:
                settings[setting] = settings.get(setting, 0) + 1
                if text:
                    failed += 1
                    print(f"\n=== {name} {setting}\n{text}", flush=True)
            print(f"{sum(settings.values())} programs, {failed} differences, {time.time() - begun:.0f} s", flush=True)
    print(settings)
    return int(bool(failed))


def _in_a_process(asked: argparse.Namespace, first: int, count: int) -> list[list[str]]:
    command = [
        sys.executable,
        "-m",
        "tests.support.blends",
        "--chunk",
        "--seed",
        asked.seed,
        "--first",
        str(first),
        "--programs",
        str(count),
    ]
    target = random.Random(f"{asked.seed}:{first}").choice(TARGETS)
    environment = {**os.environ, "GRAPHC_TARGET": target}
    with tempfile.TemporaryFile("w+") as output:  # no pipe: a compile process may outlive its parent
        done = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=environment)
        try:
            how = f"ended with {done.returncode}" if done.wait(LONGEST) else ""
        except subprocess.TimeoutExpired:
            done.kill()
            how = "did not end"
        output.seek(0)
        text = output.read()
    lines = text.splitlines()
    how = how and f"{how} {target} {text[-800:]}"
    reports: list[list[str]] = [json.loads(line) for line in lines if line.startswith("[")]
    if how:  # the program after the last report
        reports.append([f"{asked.seed}:{first + len(reports)}", "", how])
        if len(reports) < count:
            reports += _in_a_process(asked, first + len(reports), count - len(reports))
    return reports


def _chunk(asked: argparse.Namespace) -> int:
    from tests.support.blends.running import outcome  # noqa: PLC0415

    for number in range(asked.first, asked.first + asked.programs):
        text, setting, trouble, _ = outcome(f"{asked.seed}:{number}")
        print(
            json.dumps(
                [
                    f"{asked.seed}:{number}",
                    f"{setting} {os.environ.get('GRAPHC_TARGET')}",
                    "\n".join([text, *trouble]).strip(),
                ]
            ),
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
