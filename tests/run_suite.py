"""The suite for several processors, Pythons or versions of numba, and a line for each at the end.

In: `targets`, `pythons`, `numbas` or `bridge` (with PyTensor and PyMC), which of them (`--only`; else all that are
known), and arguments of pytest. Out: what pytest says; the exit code is not 0 where a suite failed. What this machine
does not run, and a Python that is not there or for which there are no wheels, is a line and no failure; the Python that
runs this must pass.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
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


def run(name: str, command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a suite and the last line that it wrote, while all is shown."""
    print(f"--- {name}", flush=True)
    last = "nothing was run"
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip("= \n") or last
    return process.returncode, last


def pytest(python: str, arguments: Sequence[str]) -> list[str]:
    return [python, "-m", "pytest", *arguments]


def runs_target(name: str) -> str:
    """Why this machine does not run a target; "" where it does."""
    code = f"from graphc.codegen.llvm.target import processor\nprocessor({name!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


def suites_of_targets(names: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for name in names:
        if why := runs_target(name):
            yield name, 0, why
            continue
        own = {"GRAPHC_TARGET": name, "GRAPHC_PROGRAMS": os.environ.get("GRAPHC_PROGRAMS", PROGRAMS)}
        if core := TARGETS.get(name):
            own["OPENBLAS_CORETYPE"] = core
        yield name, *run(name, pytest(sys.executable, arguments), {**os.environ, **own})


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


def suites_of_pythons(names: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for name in names:
        python, folder = find_python(name), ROOT / f".venv-{name}"
        why = "not found" if python is None else prepare(python, folder)
        if why:
            yield name, int(name == "{}.{}".format(*sys.version_info[:2])), why
            continue
        yield name, *run(f"Python {name}", pytest(str(folder / "bin" / "python"), arguments), dict(os.environ))


def suites_of_numbas(names: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for name in names:
        folder = ROOT / f".venv-numba-{name}"
        why = prepare(sys.executable, folder, f"numba=={name}")
        yield (
            (name, 1, why)
            if why
            else (
                name,
                *run(f"numba {name}", pytest(str(folder / "bin" / "python"), arguments), dict(os.environ)),
            )
        )


def suites_of_bridges(names: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for name in names:
        folder = ROOT / f".venv-{name}"
        why = prepare(sys.executable, folder, extra=f"test,{name}")
        # What these packages warn of is theirs.
        command = pytest(str(folder / "bin" / "python"), ["-W", "default", *arguments])
        yield (name, 1, why) if why else (name, *run(name, command, dict(os.environ)))


KINDS = {
    "targets": (tuple(TARGETS), suites_of_targets),
    "pythons": (PYTHONS, suites_of_pythons),
    "numbas": (NUMBAS, suites_of_numbas),
    "bridge": (("pymc",), suites_of_bridges),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--only", default="", help="names, separated by spaces")
    chosen, arguments = parser.parse_known_args()
    known, suites = KINDS[chosen.kind]
    names = chosen.only.split() or list(known)
    found = list(suites(names, arguments))
    print("---")
    for name, code, line in found:
        print(f"{name:16}{'FAILED: ' if code else ''}{line}")
    return int(any(code for _, code, _ in found))


if __name__ == "__main__":
    sys.exit(main())
