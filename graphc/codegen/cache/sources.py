"""The digest of a package's sources, which is part of every key.

In: the folder of the package, a file to keep digests in. Out: 16 digits that differ where the content of a source or
its place in the package does; times do not matter, because they differ between installations of the same version.

Hashing all sources would be a millisecond of every start. So the digest is kept beside what the system says of the
files: where, how large, which, when last changed. The time of change (ctime) is the system's own: no program sets it,
and every write moves it, but for two within one tick of its clock. Therefore nothing is kept while a file is younger
than SETTLED_SECONDS, and nothing where that time means something else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from graphc.codegen.cache import files
from graphc.startup.digest import Digest, digest_of

SETTLED_SECONDS = 5.0
"""More than the coarsest clock of a file system has between two ticks."""
MOST_KEPT = 8
"""Installations whose digests are kept in one file."""
SHOWN = 16


def sources_digest(package: str, kept: str | None) -> str:
    """The digest of the sources in folder `package`; `kept` is the file of digests, None for none."""
    if kept is None or os.name != "posix":
        return _digest(package)
    now, entries = time.time(), sorted(_sources(package), key=lambda entry: entry.path)
    states = [(entry.path, entry.stat()) for entry in entries]
    text = "\n".join(
        f"{path} {state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"
        for path, state in states
    )
    stamp = digest_of(text.encode()).encode()
    lines = _read(kept)
    for line in lines:
        digest = line[len(stamp) + 1 : len(stamp) + 1 + SHOWN]
        if line == _line(stamp, digest):
            return digest.decode()
    found = _digest(package)
    if max((state.st_ctime for _, state in states), default=now) < now - SETTLED_SECONDS:
        with suppress(OSError):
            files.replace(kept, b"\n".join([_line(stamp, found.encode()), *lines[: MOST_KEPT - 1]]))
    return found


def _line(stamp: bytes, digest: bytes) -> bytes:
    """The line of a digest, which vouches for itself."""
    return b"%s %s %s" % (stamp, digest, digest_of(stamp + digest).encode())


def _digest(package: str) -> str:
    digest = Digest()
    for path in sorted(entry.path for entry in _sources(package)):
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        digest.add(f"{path[len(package) :]}:{len(content)}:".encode())
        digest.add(content)
    return digest.digits()[:SHOWN]


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        for item in found:
            if item.name.endswith(".py"):
                yield item
            elif item.is_dir() and item.name != "__pycache__":
                yield from _sources(item.path)


def _read(path: str) -> list[bytes]:
    try:
        return files.read(path, files.own()).split(b"\n")
    except (OSError, files.Damaged):
        return []
