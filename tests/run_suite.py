"""The suite once more, under other conditions, and a table of what ran, how long it took and what failed.

    python tests/run_suite.py all                           everything below, some hours
    python tests/run_suite.py plain poison                  as it is; with memory that begins as NaN
    python tests/run_suite.py targets --only "haswell"      code for other processors, and more random programs
    python tests/run_suite.py pythons numbas bridge         other Pythons and numbas; with PyTensor and PyMC

In: kinds of suites, `--only` with names of those wanted (else all that are known), and arguments of pytest. Out: what
pytest prints, then the table; the exit code is 1 where a suite failed. A processor or Python that this machine does
not have is a line of the table and no failure; the Python that runs this must be there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = {
    "x86-64": "Prescott",
    "nehalem": "Nehalem",
    "haswell": "Haswell",
    "skylake-avx512": "SkylakeX",
    "native": "",
}
"""Values of the option `target`, and what OpenBLAS calls them, so that NumPy multiplies as it does there."""
NUMBAS = ("0.62.1", "0.65.1")
"""The oldest that is admitted, and the newest that PyTensor takes; `make test` has the newest."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAMS = "200"
"""Random programs of a kind for each target, where the environment does not say GRAPHC_PROGRAMS: more than usual."""


@dataclass(frozen=True)
class Outcome:
    """What became of a suite: its exit code (0 also where it was not run), the last line of pytest or the reason, the
    tests that failed, and seconds by the clock."""

    name: str
    code: int
    line: str
    failed: tuple[str, ...] = ()
    seconds: float = 0.0


def run(name: str, python: str, arguments: Sequence[str], **environment: str) -> Outcome:
    """Run a suite, whose output is shown."""
    print(f"--- {name}", flush=True)
    last, failed, begun = "nothing was run", [], time.monotonic()
    command = [python, "-m", "pytest", "--thorough", *arguments]
    own = {**os.environ, **environment}
    with subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip("= \n") or last
            if line.startswith(("FAILED ", "ERROR ")):
                failed.append(line.split()[1])
    return Outcome(name, process.returncode, last, tuple(failed), time.monotonic() - begun)


def run_plain(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    yield run("plain", sys.executable, arguments)


def run_poisoned(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    yield run("poison", sys.executable, arguments, GRAPHC_POISON="1")


def why_not(target: str) -> str:
    """Why this machine does not run a target; "" where it does."""
    code = f"from graphc.codegen.llvm.target import processor\nprocessor({target!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


def run_targets(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    for name in names:
        if why := why_not(name):
            yield Outcome(f"target {name}", 0, why)
            continue
        own = {"GRAPHC_TARGET": name, "GRAPHC_PROGRAMS": os.environ.get("GRAPHC_PROGRAMS", PROGRAMS)}
        if core := TARGETS.get(name):
            own["OPENBLAS_CORETYPE"] = core
        yield run(f"target {name}", sys.executable, arguments, **own)


def find_python(version: str) -> str | None:
    """An interpreter of a version: this one, one on the path, or one of pyenv's."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), key=str)
    for candidate in (sys.executable, shutil.which(f"python{version}"), *map(str, kept)):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        if candidate is not None:
            done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                return candidate
    return None


def prepare(python: str, folder: Path, *more: str, extra: str = "test") -> str:
    """Install graphc and what its tests need into an environment, and requirements more; what went wrong, or ""."""
    commands = []
    if not (folder / "bin" / "python").exists():
        commands.append([python, "-m", "venv", str(folder)])
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands.append([*install, "--only-binary", "numpy,scipy,numba,llvmlite", *more, "--editable", f".[{extra}]"])
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip().rpartition("\n")[2] or "no environment could be made"
    return ""


def run_pythons(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    for version in names:
        name, python, folder = f"Python {version}", find_python(version), ROOT / f".venv-{version}"
        why = "not found" if python is None else prepare(python, folder)
        if why:
            yield Outcome(name, int(version == "{}.{}".format(*sys.version_info[:2])), why)
        else:
            yield run(name, str(folder / "bin" / "python"), arguments)


def run_numbas(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    for version in names:
        name, folder = f"numba {version}", ROOT / f".venv-numba-{version}"
        why = prepare(sys.executable, folder, f"numba=={version}")
        yield Outcome(name, 1, why) if why else run(name, str(folder / "bin" / "python"), arguments)


def run_bridges(names: Sequence[str], arguments: Sequence[str]) -> Iterator[Outcome]:
    for package in names:
        name, folder = f"with {package}", ROOT / f".venv-{package}"
        why = prepare(sys.executable, folder, extra=f"test,{package}")
        chosen = any((ROOT / each.partition("::")[0]).exists() for each in arguments)
        # What these packages warn of is theirs.
        own = ["-W", "default", *arguments, *([] if chosen else ["tests/bridge"])]
        yield Outcome(name, 1, why) if why else run(name, str(folder / "bin" / "python"), own)


Run = Callable[[Sequence[str], Sequence[str]], Iterator[Outcome]]
KINDS: dict[str, tuple[Sequence[str], Run]] = {
    "plain": (("plain",), run_plain),
    "poison": (("poison",), run_poisoned),
    "targets": (tuple(TARGETS), run_targets),
    "pythons": (PYTHONS, run_pythons),
    "numbas": (NUMBAS, run_numbas),
    "bridge": (("pymc",), run_bridges),
}
"""The names of each kind that are known, and how they are run."""


def table(outcomes: Sequence[Outcome]) -> str:
    """What ran, how long, what pytest said; below it every test that failed, with the suites in which it did."""
    width = max(len(each.name) for each in outcomes)
    lines = [f"{'suite':{width}} minutes  result"]
    for each in outcomes:
        minutes = f"{each.seconds / 60:8.1f}" if each.seconds else f"{'-':>8}"
        lines.append(f"{each.name:{width}}{minutes}  {'FAILED: ' if each.code else ''}{each.line}")
    where: dict[str, list[str]] = {}
    for each in outcomes:
        for test in each.failed:
            where.setdefault(test, []).append(each.name)
    return "\n".join([*lines, *(f"{test}: {', '.join(suites)}" for test, suites in where.items())])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=["all", *KINDS])
    parser.add_argument("--only", default="", help="names, separated by spaces")
    chosen, arguments = parser.parse_known_args()
    outcomes: list[Outcome] = []
    for kind in KINDS if "all" in chosen.kinds else chosen.kinds:
        known, suites = KINDS[kind]
        outcomes += suites(chosen.only.split() or known, arguments)
    print("---", table(outcomes), sep="\n")
    return int(any(each.code for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
