"""The version of graphc, those of other packages that it was tested with, and those that are installed.

In: nothing. Out: `VERSION`, `version_of`, and what is wrong with the versions here, which is said when graphc is
imported and again where a compilation fails. No package is imported to be asked.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module

VERSION = "0.1.0"
"""What `graphc.__version__` is; the package takes its version from here."""
TESTED = {"numpy": ("2.2", "3"), "numba": ("0.62.1", "0.69"), "llvmlite": ("0.45.1", "0.51")}
"""The first version of each package that works and the first that was not tested, as pyproject.toml has them."""
VERSION_FILES = ("_version.py", "version.py")
VERSION_MARKS = ('"version": "', "version_version = '", 'version = "')
"""What stands before the version of numba, of llvmlite, and of NumPy; a regular expression would cost a warm start a
third of a millisecond."""


@cache
def version_of(package: str) -> str:
    """The version of an installed package, which is not imported: from its version file, since importlib.metadata would
    cost a warm start 10 ms."""
    found = (finder.find_spec(package, None) for finder in sys.meta_path)
    spec = next((spec for spec in found if spec is not None), None)
    if spec is None or spec.origin is None:
        return "absent"
    for name in VERSION_FILES:
        with suppress(OSError), open(os.path.join(os.path.dirname(spec.origin), name), encoding="utf-8") as file:
            text = file.read()
            for before in VERSION_MARKS:
                if before in text:
                    return text.partition(before)[2].partition(before[-1])[0]
    return "unknown"


@cache
def wrong_versions() -> str:
    """A sentence on packages of versions that graphc was not tested with, and the command that mends it; "" where all
    are as they should be, or cannot be told."""
    wrong = [package for package, (first, end) in TESTED.items() if not _lies_in(version_of(package), first, end)]
    if not wrong:
        return ""
    here = ", ".join(f"{package} {version_of(package)}" for package in wrong)
    ranges = ["{}>={},<{}".format(package, *TESTED[package]) for package in wrong]
    needed = " ".join(f"'{wanted}'" for wanted in ranges)
    return f"{here} installed, but graphc works with {', '.join(ranges)}: {sys.executable} -m pip install {needed}"


def warn_of_versions() -> None:
    """A warning that says so, where there is something to say."""
    if wrong_versions():
        import_module("warnings").warn(wrong_versions(), RuntimeWarning, stacklevel=3)


def _lies_in(version: str, first: str, end: str) -> bool:
    return version == "unknown" or _numbers(first) <= _numbers(version) < _numbers(end)


def _numbers(version: str) -> list[int]:
    """The numbers of a version; a part that begins with no digit, and what comes after it, do not count."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return numbers
