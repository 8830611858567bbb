"""One breakage, tried: a copy of the tree is broken, tests run on it until one fails.

In: a mutant, test files in the order in which they are tried, a folder for the copy. Out: an `Outcome`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutant import Mutant

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
COPIED = ("graphc", "tests", "benchmarks", "examples", "docs", *PAGES, "Makefile")
PATIENCE = 600.0
"""Seconds for the tests of one step. A breakage that makes the compiler run for ever is noticed, too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended: what noticed the breakage (a test, or a hang), nothing where none did; and after how long."""

    mutant: Mutant
    noticed_by: str
    seconds: float


def copy_tree(target: Path) -> None:
    """What tests need, into an empty folder."""
    for name in (*COPIED, "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", ".venv", "*.png"))
        elif source.exists():
            shutil.copy2(source, target / name)


def attempt(mutant: Mutant, steps: Sequence[Sequence[str]], folder: Path) -> Outcome:
    """Run the steps, each a list of test files, on a broken copy in `folder` until one notices."""
    begun = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copy_tree(folder)
    mutant.apply(folder)
    noticed = ""
    for files in steps:
        noticed = run_tests(files, folder)
        if noticed:
            break
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(mutant, noticed, time.monotonic() - begun)


def run_tests(files: Sequence[str], folder: Path) -> str:
    """The first test that fails in a tree, or what else went wrong; empty where all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *files]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    # A session of its own: what tests have started goes with them.
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"more than {PATIENCE:.0f} s in {' '.join(files)}"
    if process.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return failed[1] if failed else f"pytest ended with {process.returncode}: {output.strip()[-200:]}"
