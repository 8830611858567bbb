"""Build and check a release: `make release`, or `python -m release --pythons 3.11 3.13`.

In: the checkout. Out: a source distribution and a wheel in dist/, and SHA256SUMS beside them. Both are built
twice, from two copies of what is committed, with the parts of kernels compiled in each (parts.py), and must be the same
to the byte. The wheel is installed into a new
environment of each Python that is found, away from the checkout, and the programs of README and of the tutorial run
there. The source distribution is installed in the same way into one more.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from graphc.codegen.llvm.cpu import equivalent
from graphc.startup.versions import VERSION
from tests.run_suite import find_python

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that a wheel is checked with, where they are found."""
PAGES = ("README.md", "docs/tutorial/*.md")
"""The pages whose programs run from the installed wheel."""
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = re.compile(r"^import pymc\b", re.MULTILINE)
"""Programs that want packages which are not dependencies: `make test-bridge` runs them."""
TOOLS = ("build>=1.2", "twine>=6", "hatchling>=1.27")
DEADLINE = 1200
"""Seconds that one command may take: to install the dependencies is the slowest."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, compare, check, and write the digests."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Builds and checks a release.")
    parser.add_argument("--pythons", nargs="*", default=PYTHONS, help=f"some of {', '.join(PYTHONS)}")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the distributions go")
    chosen = parser.parse_args(arguments)
    check_texts()
    interpreters = {version: python for version in chosen.pythons if (python := find_python(version))}
    if not interpreters:
        parser.error(f"no Python of {', '.join(chosen.pythons)} is on the path: the wheel cannot be checked")
    with tempfile.TemporaryDirectory(prefix="graphc-release-") as work:
        wheel, source = build(Path(work))
        for version, python in interpreters.items():
            check_installed(python, wheel, Path(work) / f"wheel-{version}")
        check_installed(next(iter(interpreters.values())), source, Path(work) / "source")
        shutil.rmtree(chosen.out, ignore_errors=True)
        chosen.out.mkdir(parents=True)
        kept = [Path(shutil.copy(path, chosen.out)) for path in (source, wheel)]
    digests = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in kept)
    (chosen.out / "SHA256SUMS").write_text(digests)
    print(f"graphc {VERSION}, checked with Python {', '.join(interpreters)}\n{digests}", end="")
    return 0


def check_texts() -> None:
    """CHANGELOG.md and CITATION.cff are of the version that is built."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    dated = re.search(rf"^## {re.escape(VERSION)} \((\d{{4}}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    if dated is None:
        raise SystemExit(f"CHANGELOG.md has no heading '## {VERSION} (YEAR-MONTH-DAY)'")
    citation = (ROOT / "CITATION.cff").read_text()
    for line in (f"version: {VERSION}", f"date-released: {dated[1]}"):
        if line not in citation.splitlines():
            raise SystemExit(f"CITATION.cff has no line {line!r}")


def build(work: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, built twice and compared."""
    tools = environment(sys.executable, work / "tools", *TOOLS, str(ROOT))
    moment = run(["git", "log", "-1", "--format=%ct"], ROOT).strip()
    found = []
    for copy in (work / "one", work / "another" / "folder"):
        run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(copy)], work)
        run([tools, "-m", "release.parts", "--targets", "all"], copy)
        run([tools, "-m", "build", "--no-isolation"], copy, SOURCE_DATE_EPOCH=moment)
        found.append(sorted((copy / "dist").iterdir()))
    for one, another in zip(*found, strict=True):
        if one.read_bytes() != another.read_bytes():
            raise SystemExit(f"{one.name} differs when it is built twice")
    run([tools, "-m", "twine", "check", "--strict", *map(str, found[0])], work)
    wheel, source = sorted(found[0], key=lambda path: path.suffix != ".whl")
    return wheel, source


def check_installed(python: str, distribution: Path, folder: Path) -> None:
    """Install a distribution into a new environment, and use it as a reader of its pages would."""
    inside = environment(python, folder / "environment", str(distribution))
    command = Path(inside).with_name("graphc")
    if (told := run([str(command), "--version"], folder).split()[-1]) != VERSION:
        raise SystemExit(f"{distribution.name} calls itself {told}")
    if equivalent() and " compiled before, for " not in run([str(command), "info"], folder):
        raise SystemExit(f"{distribution.name} has no parts for {equivalent()} that it takes")
    for arguments in (["docs", "jit"], ["cache", "stats"]):
        run([str(command), *arguments], folder)
    for pattern in PAGES:
        for page in sorted(ROOT.glob(pattern)):
            text = "\n".join(PROGRAM.findall(page.read_text()))
            if ELSEWHERE.search(text):
                continue
            program = folder / "program.py"
            program.write_text(text)
            run([inside, str(program)], folder, GRAPHC_CACHE_DIR=str(folder / "cache"), MPLBACKEND="agg")


def environment(python: str, folder: Path, *packages: str) -> str:
    """The Python of a new environment with some packages."""
    run([python, "-m", "venv", str(folder)], ROOT)
    inside = str(folder / "bin" / "python")
    run([inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder)
    return inside


def run(command: list[str], folder: Path, **settings: str) -> str:
    """What a command prints. Its first failure ends the release with all that it has said."""
    print("+", " ".join(command), flush=True)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}{command[0]} failed with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
