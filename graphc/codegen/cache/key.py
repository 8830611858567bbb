"""The key of the cache: everything that determines the machine code of a graph.

In: a graph and the settings of its function. Out: a `Key` of three parts, whose digest names the entry: the printed
graph before any rewrite, the settings, and a fingerprint of this machine (llvm/cpu.py), NumPy, Python and the sources
of graphc. So no entry is ever stale: what would change its code gives another key. `difference` tells in words how
two keys differ.

    fingerprint()          "llvmlite 0.47.0; numba 0.65.1; target native; ...; graphc 1b6e...; numpy 2.4.0; ..."
    made_fingerprint()     "target native; ...; version 0.2.0; sources 90f1...; numpy 2.4.0; ..."

The first is of code that is to be compiled: all sources may change it. The second is of code that is there, in a file:
it depends on graphc's version, and on the sources that it shares an interface with (`BOUND`).

Hashing all sources would take a millisecond of every start. So their digest is kept with a stamp of the files: path,
size, inode, times. The time of change (ctime) belongs to the system: no program sets it, and every write moves it,
unless two writes fall into one tick of its clock. Therefore nothing is kept while a file is younger than
SETTLED_SECONDS, nor on systems where ctime means something else.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

import numpy as np

from graphc.codegen.cache import files
from graphc.codegen.llvm.cpu import target_fingerprint
from graphc.ir.source_lines import PACKAGE
from graphc.options import options
from graphc.startup.record import record
from graphc.startup.versions import VERSION, Digest, digest_of

FORMAT = "graphc cache 3"
SOURCES = "sources"
"""The name of the file of digests in the cache's folder."""
SETTLED_SECONDS = 5.0
"""Longer than a tick of the coarsest clock of a file system."""
MOST_KEPT = 16
"""The number of digests that one file keeps: two for each installation."""
BOUND = (
    *("arrays/dtypes.py", "codegen/llvm/module.py", "codegen/routines.py", "ops/custom.py"),
    *(f"codegen/{room}" for room in "call convolution gemm lapack link pipeline sort special threads".split()),
)
"""The sources that machine code and the process that loads it agree by: how a call enters it and what it finds there,
what its metadata mean, how it is linked, and how kernels, products, routines and the pool of threads call each other.
No other source has a say in what code does that is there."""
MADE_FOR = ("target", "system", "processor", "features")
"""The parts of a fingerprint that tell of the machine."""
SHOWN = 16
LONGEST_SHOWN = 60
"""The number of characters of a value that a message shows."""


@record()
class Key:
    """Everything that determines the machine code of a graph.

    graph: the printed graph before any rewrite. settings: the options that matter, as text. fingerprint: versions,
    target and processor, as parts "name value" joined by "; ".
    """

    graph: str
    settings: Mapping[str, str]
    fingerprint: str

    @property
    def digest(self) -> str:
        return cache_key(self.graph, self.settings, self.fingerprint)


def key_of_text(text: str, settings: Mapping[str, str]) -> Key:
    """Return the key of a printed graph, or of another text that identifies one (functions/function.py), under the
    options as they are now. settings: those of its function."""
    return Key(text, chosen_settings(settings), fingerprint())


def chosen_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a function with the options that decide its code too."""
    chosen = {
        "excluding": ",".join(options.excluding),
        "outline": options.outline,
        "poison": str(options.poison != "off"),
    }
    return {**settings, **chosen}


def fingerprint(target: str | None = None) -> str:
    """Return the versions that code is compiled by and the target that it is compiled for, by default that of the
    options."""
    return f"{target_fingerprint(target)}; {package_fingerprint()}"


def for_target(key: Key, target: str) -> Key:
    """Return the key of the same graph with code for a named target."""
    return Key(key.graph, key.settings, fingerprint(target))


def fingerprint_parts(fingerprint: str) -> dict[str, str]:
    """Return the parts of a fingerprint by name: "target" and "graphc" among them."""
    return {part.partition(" ")[0]: part.partition(" ")[2] for part in fingerprint.split("; ")}


def cache_key(graph_text: str, settings: Mapping[str, str], fingerprint: str) -> str:
    """Return 64 hexadecimal digits, the digest of the arguments."""
    digest = Digest()
    for part in (FORMAT, graph_text, fingerprint, *(f"{name}={settings[name]}" for name in sorted(settings))):
        content = part.encode()
        digest.add(b"%d:" % len(content))
        digest.add(content)
    return digest.digits()


@cache
def package_fingerprint() -> str:
    """Return the versions that do not depend on the target: graphc's sources, NumPy, Python's binary interface. Raises
    no error."""
    return f"graphc {_kept_digest()}; {_interface()}"


def made_fingerprint(target: str | None = None) -> str:
    """Return what code for a target, by default that of the options, depends on once it is there."""
    return made_of(target_fingerprint(target))


def made_of(fingerprint: str) -> str:
    """Return the same for the code of a fingerprint, which this process has compiled or found."""
    machine = (part for part in fingerprint.split("; ") if part.partition(" ")[0] in MADE_FOR)
    return "; ".join([*machine, _bound_versions()])


@cache
def _bound_versions() -> str:
    return f"version {VERSION}; sources {_kept_digest(BOUND)}; {_interface()}"


def _interface() -> str:
    interface = f"{sys.implementation.cache_tag}{sys.abiflags} {8 * np.dtype(np.intp).itemsize}-bit {sys.byteorder}"
    return f"numpy {np.__version__}; interface {interface}"


def _kept_digest(parts: tuple[str, ...] = ("",)) -> str:
    root = options.cache_dir
    if not options.cache or not files.is_trusted(root):
        return sources_digest(PACKAGE, None, parts)
    with suppress(OSError):
        files.make_folder(root)
    return sources_digest(PACKAGE, f"{root}{os.sep}{SOURCES}", parts)


# The digest of the sources


def sources_digest(package: str, kept: str | None, parts: tuple[str, ...] = ("",)) -> str:
    """Return the digest of the sources in folder `package`. kept: the path of the file of digests, None for none.
    parts: the paths of files and folders in the package, by default all of it."""
    paths = sorted(path for part in parts for path in _sources(os.path.join(package, part)))
    if kept is None or os.name != "posix":
        return _digest(package, paths)
    now, states = time.time(), [os.stat(path) for path in paths]
    stamps = [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in states]
    stamp = digest_of(f"{paths}{stamps}".encode()).encode()
    lines = _read(kept)
    for line in lines:
        digest = line[len(stamp) + 1 : len(stamp) + 1 + SHOWN]
        if line == _line(stamp, digest):
            return digest.decode()
    new_digest = _digest(package, paths)
    if max((each.st_ctime for each in states), default=now) < now - SETTLED_SECONDS:
        with suppress(OSError):
            files.replace(kept, b"\n".join([_line(stamp, new_digest.encode()), *lines[: MOST_KEPT - 1]]))
    return new_digest


def _line(stamp: bytes, digest: bytes) -> bytes:
    """The line of a digest, with a checksum of itself."""
    return b"%s %s %s" % (stamp, digest, digest_of(stamp + digest).encode())


def _digest(package: str, paths: list[str]) -> str:
    digest = Digest()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        digest.add(f"{path[len(package) :]}:{len(content)}:".encode())
        digest.add(content)
    return digest.digits()[:SHOWN]


def _sources(path: str) -> list[str]:
    """The paths of the sources in a folder; of a source its own."""
    if path.endswith(".py"):
        return [path]
    paths, folders = [], [path]
    for folder in folders:  # which grows
        with os.scandir(folder) as items:
            for item in items:
                name = item.name
                if name.endswith(".py"):
                    paths.append(item.path)
                elif "." not in name and name != "__pycache__" and item.is_dir():
                    folders.append(item.path)
    return paths


def _read(path: str) -> list[bytes]:
    try:
        return files.read(path, files.own()).split(b"\n")
    except (OSError, files.Damaged):
        return []


# How two keys differ


def distance(key: Key, other: Key) -> tuple[int, int]:
    """Return a distance of two keys for sorting: the number of lines that only one of the graphs has, then the number
    of other differences."""
    lines, others = Counter(key.graph.splitlines()), Counter(other.graph.splitlines())
    apart = (lines - others).total() + (others - lines).total()
    return apart, len(_setting_differences(key, other)) + len(_version_differences(key, other))


def difference(key: Key, other: Key) -> list[str]:
    """Return the differences of two keys as lines of text: the graph, options, versions and CPU."""
    return [*_graph_difference(key, other), *_setting_differences(key, other), *_version_differences(key, other)]


def _graph_difference(key: Key, other: Key) -> list[str]:
    """The first difference of two printed graphs."""
    lines, others = key.graph.splitlines(), other.graph.splitlines()
    for number in range(max(len(lines), len(others))):
        here, there = (text[number].strip() if number < len(text) else "(end)" for text in (lines, others))
        if here != there:
            return [f"  the graph, from line {number + 1}:", f"    here    {here}", f"    stored  {there}"]
    return []


def _setting_differences(key: Key, other: Key) -> list[str]:
    names = sorted({*key.settings, *other.settings})
    pairs = ((name, key.settings.get(name, "(none)"), other.settings.get(name, "(none)")) for name in names)
    return [f"  option {name}: here {here}, stored {there}" for name, here, there in pairs if here != there]


def _version_differences(key: Key, other: Key) -> list[str]:
    """The parts of the fingerprint that differ, a line for each. Of the processor's features, those that only one has;
    of graphc's sources, no digests."""
    here, there = fingerprint_parts(key.fingerprint), fingerprint_parts(other.fingerprint)
    names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    return [_part_difference(name, here.get(name, "(none)"), there.get(name, "(none)")) for name in names]


def _part_difference(name: str, here: str, there: str) -> str:
    if name in ("graphc", "sources"):
        return "  graphc: the stored code was made by other sources of graphc"
    if name != "features" or "(none)" in (here, there):
        return f"  {name}: here {_short(here)}, stored {_short(there)}"
    features, others = here.split(","), there.split(",")
    only_here = ", ".join(each for each in features if each not in others) or "none"
    less = ", ".join(each for each in others if each not in features) or "none"
    return f"  features of the processor: here alone {only_here}; stored alone {less}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
