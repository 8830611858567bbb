"""The identities that cache keys are made of: digests, and versions of graphc and of its dependencies.

In: bytes. Out: 64 hexadecimal digits (BLAKE2b of 256 bits). hashlib is avoided where possible because it loads OpenSSL:
2 ms of a warm start. In: nothing. Out: `VERSION`, `version_of`, and a sentence on unsupported versions, shown when
graphc is imported and again when a compilation fails. No package is imported for it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module

VERSION = "0.2.0"
"""`graphc.__version__`; the package metadata takes it from here."""
TESTED = {"numpy": ("2.2", "3"), "numba": ("0.62.1", "0.69"), "llvmlite": ("0.45.1", "0.51")}
"""For each package the first version that works and the first untested one, as in pyproject.toml."""
VERSION_FILES = ("_version.py", "version.py")
VERSION_MARKS = ('"version": "', "version_version = '", 'version = "')
"""Text before the version number in numba's, llvmlite's and NumPy's files. A regular expression would add a third of a
millisecond to a warm start."""


@cache
def version_of(package: str) -> str:
    """The version of an installed package, from its version file: importlib.metadata would add 10 ms to a start."""
    specs = (finder.find_spec(package, None) for finder in sys.meta_path)
    spec = next((spec for spec in specs if spec is not None), None)
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
    """A sentence on packages outside the tested range, with the command that fixes them; "" if there are none."""
    wrong = [package for package, (first, end) in TESTED.items() if not _lies_in(version_of(package), first, end)]
    if not wrong:
        return ""
    here = ", ".join(f"{package} {version_of(package)}" for package in wrong)
    ranges = ["{}>={},<{}".format(package, *TESTED[package]) for package in wrong]
    needed = " ".join(f"'{wanted}'" for wanted in ranges)
    return f"{here} installed, but graphc works with {', '.join(ranges)}: {sys.executable} -m pip install {needed}"


def warn_of_versions() -> None:
    """Warn with the sentence of `wrong_versions`, if any."""
    if wrong_versions():
        import_module("warnings").warn(wrong_versions(), RuntimeWarning, stacklevel=3)


def _lies_in(version: str, first: str, end: str) -> bool:
    return version == "unknown" or _numbers(first) <= _numbers(version) < _numbers(end)


def _numbers(version: str) -> list[int]:
    """The numeric parts of a version, up to the first part that begins with no digit."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return numbers


# --- digests ----------------------------------------------------------------------------------------------------------


try:
    from _blake2 import blake2b
except ImportError:  # a Python built without it
    from hashlib import blake2b

DIGITS = 64


class Digest:
    """A digest of parts that are added one after the other."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = blake2b(digest_size=DIGITS // 2)

    def add(self, content: bytes) -> None:
        self._state.update(content)

    def digits(self) -> str:
        return self._state.hexdigest()


def digest_of(content: bytes | memoryview) -> str:
    """The digest of one piece."""
    return blake2b(content, digest_size=DIGITS // 2).hexdigest()
