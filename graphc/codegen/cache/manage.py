"""`graphc.cache`: what the cache of compiled graphs holds, why a graph is not in it, bundles for other machines.

In: the folders that the options name, a key, a bundle. Out: summaries, counts, explanations, bundles.

    graphc.cache.list_entries()          [Summary(key="8a0c...", size=9123, used=1.7e9, folder=..., metadata=...), ...]
    graphc.cache.prune(older=30)         3: entries were removed that nobody had used for 30 days
    graphc.cache.export("all.zip")       14: the entries in the bundle
    graphc.cache.import_("all.zip")      14 on another machine: the entries that it had not

Entries are for one target (the option `target`). One for a named target, "haswell" or another, serves every machine
whose processor runs it; one for "native" serves processors alike. A bundle may have entries for several targets. The
file `targets` of a folder lists the named ones that were imported or compiled ahead: where an entry for "native" is
missing, the best of these that the processor runs is taken (store.py).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from graphc.codegen.cache import files
from graphc.codegen.cache.files import Damaged, Untrusted
from graphc.codegen.cache.key import Key, cache_key, difference, distance, fingerprint_parts, package_fingerprint
from graphc.codegen.cache.store import (
    FILES,
    TARGETS_FILE,
    TEXTS,
    Entry,
    Loaded,
    Metadata,
    counts_of,
    discard,
    entries,
    find,
    is_key,
    place_of,
    read_entry,
    read_header,
    roots,
    size_of,
    store,
    write,
)
from graphc.errors import CacheMissError, GraphcError
from graphc.ir.call_errors import explain_all
from graphc.options import NATIVE, TARGETS, options
from graphc.startup.record import record

__all__ = [
    "Entry", "Key", "Loaded", "Statistics", "Summary", "cache_key", "clear", "explain_miss", "export", "find",
    "import_", "list_entries", "package_fingerprint", "prune", "size", "statistics", "store", "verify",
]  # fmt: skip

DAY = 86400.0
"""Seconds."""


def __dir__() -> list[str]:
    return __all__


@record()
class Summary:
    """An item of `list_entries`. size: in bytes. used: the time of the last use in seconds since the epoch. target: the
    processor that its code is for, as the option `target` has it."""

    key: str
    size: int
    used: float
    folder: str
    metadata: Metadata
    target: str = NATIVE


@record()
class Statistics:
    """The figures of `statistics`. entries, bytes: of the user's folder. limit: the bytes above which the least
    recently used go. hits, misses: lookups of all processes since the figures were begun. oldest, newest: seconds since
    the epoch of the last uses, 0.0 for an empty folder. targets: the number of entries for each target."""

    entries: int
    bytes: int
    limit: int
    hits: int
    misses: int
    oldest: float
    newest: float
    targets: dict[str, int]

    def __str__(self) -> str:
        looked = self.hits + self.misses
        share = f" ({100 * self.hits / looked:.0f} %)" if looked else ""
        lines = [
            f"folder    {options.cache_dir}",
            f"entries   {self.entries}",
            f"bytes     {self.bytes} of at most {self.limit} (option cache_megabytes)",
            f"lookups   {looked}: {self.hits} hits{share}, {self.misses} misses",
        ]
        if self.entries:
            lines.append(f"last use  {_when(self.oldest)} to {_when(self.newest)}")
            lines.append(f"targets   {', '.join(f'{name} {count}' for name, count in sorted(self.targets.items()))}")
        return "\n".join(lines)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


# Looking after the folder


def list_entries() -> list[Summary]:
    """Return all entries that can be loaded, of the user's and the shared folders, the most recently used first. Raises
    no error: a folder that is not there has no entries."""
    summaries = []
    for root in roots():
        if not files.is_trusted(root):
            continue
        for entry in entries(root):
            try:
                digest = os.path.basename(entry)
                header = read_header(entry, digest, files.owners_of(root))
                used, target = os.stat(entry).st_mtime, fingerprint_parts(header["fingerprint"]).get("target", NATIVE)
                summaries.append(Summary(digest, size_of(entry), used, entry, header["metadata"], target))
            except (OSError, Damaged):
                continue
    return sorted(summaries, key=lambda summary: -summary.used)


def own_entries() -> list[Summary]:
    """Return the entries of the user's folder, which may be removed; the most recently used first."""
    return [entry for entry in list_entries() if entry.folder.startswith(f"{options.cache_dir}{os.sep}")]


def size() -> int:
    """Return the bytes of all entries in the user's folder. Raises no error: a missing folder has no entries."""
    return sum(map(size_of, entries(options.cache_dir)))


def clear() -> int:
    """Remove all entries from the user's folder, and return their number. Shared folders are never changed. A folder
    that is not there has no entries. Raises GraphcError where entries cannot be removed."""
    return _remove(list(entries(options.cache_dir)))


def _remove(folders: Sequence[str]) -> int:
    """Remove entries, and return their number. Raises GraphcError where some stay in a folder that is read only."""
    for folder in folders:
        discard(folder)
    left = sum(os.path.exists(folder) and not os.access(os.path.dirname(folder), os.W_OK) for folder in folders)
    if left:
        raise GraphcError(f"{left} of {len(folders)} entries cannot be removed: {options.cache_dir} cannot be written")
    return len(folders)


def prune(older: float | None = None, larger: int | None = None, name: str | None = None) -> int:
    """Remove the entries of the user's folder that meet all conditions given, and return their number.

    older: in days since the last use. larger: in bytes. name: of the function, as a pattern of the shell ("train*").
    Raises GraphcError where no condition is given: that is `clear`. It does so too where entries cannot be removed.

        graphc.cache.prune(older=30, name="fit*")
    """
    if older is None and larger is None and name is None:
        raise GraphcError("prune wants a condition: older=days, larger=bytes or name=pattern; `clear` removes all")
    now, matches = time.time(), import_module("fnmatch").fnmatchcase
    found: list[str] = []
    for entry in own_entries():
        is_old = older is None or now - entry.used > older * DAY
        is_large = larger is None or entry.size > larger
        if is_old and is_large and (name is None or matches(str(entry.metadata.get("name", "")), name)):
            found.append(entry.folder)
    return _remove(found)


def verify() -> list[str]:
    """Check every file of every entry of the user's folder. Remove those that are damaged, and return a sentence on
    each; [] where all is well. Entries that another user could have written are named, not removed. Raises no error:
    what it finds are sentences."""
    problems = []
    for entry in entries(options.cache_dir):
        try:
            check(entry, os.path.basename(entry), files.readable())
        except FileNotFoundError:
            continue  # another process has just removed it
        except Untrusted as problem:
            problems.append(f"not used: {problem}")
        except (Damaged, OSError) as problem:
            what = "cannot be removed" if os.path.exists(entry) else "removed"
            problems.append(f"{what}: {entry} is damaged ({problem})")
    return problems


def statistics() -> Statistics:
    """Return the figures of the user's folder: entries, bytes, lookups, times of use. Raises no error: the figures of a
    folder that is not there are 0."""
    entries = own_entries()
    hits, misses = counts_of(options.cache_dir)
    uses = [entry.used for entry in entries] or [0.0]
    limit = options.cache_megabytes * 2**20
    targets = dict(Counter(entry.target for entry in entries))
    return Statistics(
        len(entries), sum(entry.size for entry in entries), limit, hits, misses, min(uses), max(uses), targets
    )


def check(entry: str, digest: str, owners: files.Owners) -> None:
    """Check every file of an entry, which is removed where one is wrong; raises Damaged."""
    try:
        loaded = read_entry(entry, digest, owners)
        for kind, name in TEXTS.items():
            if loaded.text(kind) is None:
                raise Damaged(f"the checksum of {name} is wrong")
    except Untrusted:
        raise
    except Damaged:
        discard(entry)
        raise


# Bundles


def export(path: str | os.PathLike[str]) -> int:
    """Write all entries of the user's folder to a zip file, for `import_` on other machines. Returns their number.
    Raises OSError where the file cannot be written.

    Entries for a named target (`options.target`) serve every machine that runs it, those for "native" processors alike;
    all of them want the same sources of graphc, versions of NumPy, numba and llvmlite, and minor version of Python.
    """
    exported, zipfile = 0, import_module("zipfile")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for entry in sorted(entries(options.cache_dir)):
            try:
                contents = {name: files.read(f"{entry}{os.sep}{name}", files.readable()) for name in FILES}
            except (FileNotFoundError, Untrusted):
                continue  # another process has just removed it, or somebody else could have written it
            for name, content in contents.items():
                bundle.writestr(f"{os.path.basename(entry)}/{name}", content)
            exported += 1
    return exported


def import_(path: str | os.PathLike[str]) -> int:
    """Add the entries of a bundle to the user's folder. Returns the number of those that were not there.

    Entries for named targets are then used by functions of the target "native" too where those have none of their own:
    the best that the processor runs. A bundle holds machine code that will be run: take it from people you trust.
    Raises GraphcError for a file that is no bundle.
    """
    added, zipfile, root = 0, import_module("zipfile"), options.cache_dir
    files.make_folder(root)
    problem = files.objection_to(root)
    if problem:
        raise GraphcError(f"nothing is imported: {root} {problem}")
    targets = set()
    try:
        with zipfile.ZipFile(path) as bundle:
            for digest in sorted({name.partition("/")[0] for name in bundle.namelist()}):
                place = place_of(root, digest)
                if not is_key(digest):
                    raise GraphcError(f"{path} is not a bundle of cache entries: it holds {digest!r}")
                if not os.path.exists(place):
                    write(root, digest, {name: bundle.read(f"{digest}/{name}") for name in FILES})
                    check(place, digest, files.own())
                    added += 1
                header = read_header(place, digest, files.readable())
                targets.add(fingerprint_parts(header["fingerprint"]).get("target", NATIVE))
    except (zipfile.BadZipFile, KeyError, Damaged) as error:
        raise GraphcError(f"{path} is not a bundle of cache entries: {error}") from error
    note_targets(root, targets)
    return added


def note_targets(root: str, targets: set[str]) -> None:
    """Add named targets to those whose entries serve the target "native" of processors that run them."""
    place = f"{root}{os.sep}{TARGETS_FILE}"
    try:
        known = set(files.read(place, files.readable()).decode().split())
    except (OSError, Damaged):
        known = set()
    named = (known | targets) & set(TARGETS) - {NATIVE}
    if named - known:
        files.replace(place, "\n".join(sorted(named)).encode())


# Why a lookup missed


def refuse_miss(key: Key, name: str) -> NoReturn:
    """Raise CacheMissError, which names the function, and tells the difference from the most similar stored entry."""
    problem = f"{name} is not in the cache, which the option cache_require demands"
    raise CacheMissError(f"{problem}\n{explain_miss(key)}")


def explain_miss(key: Key) -> str:
    """Return the difference of `key` from the most similar stored key: lines of the graph, options, versions. Raises
    ArgumentError for what is no `Key`."""
    candidates = [stored for root in roots() for entry in entries(root) if (stored := _stored_key(root, entry))]
    if not candidates:
        return f"the cache is empty: {', '.join(roots()) or 'it is switched off'}"
    differences = difference(key, min(candidates, key=lambda stored: distance(key, stored)))
    if not differences:
        return "the graph is in the cache"
    return f"differences from the most similar of {len(candidates)} stored graphs:\n" + "\n".join(differences)


def _stored_key(root: str, entry: str) -> Key | None:
    """The key of a stored graph; None of a part that graphs share, which has no options, and of what is damaged."""
    try:
        owners = files.owners_of(root)
        header = read_header(entry, os.path.basename(entry), owners)
        if "fast_math" not in header["settings"]:
            return None
        graph = files.read(f"{entry}{os.sep}{TEXTS['graph']}", owners).decode()
        return Key(graph, header["settings"], header["fingerprint"])
    except (OSError, ValueError, Damaged):
        return None


explain_all(globals())
