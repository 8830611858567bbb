"""The store of compiled graphs on disk: a process loads the code that an earlier one compiled.

In: a key, and an `Entry` to store under it. Out: a `Loaded` entry with verified checksums, or None. A folder that
cannot be used gives a CacheWarning, and counts as empty.

    store(Entry(key, plan, source, metadata, object))     True: written to the user's folder
    find(key)                                             Loaded(folder, metadata, object, ...), in any process
    find(other)                                           None; explain_miss(other) tells how the keys differ

Each entry is a folder named by its key:

    <folder>/<first two digits of the key>/<key>/
        metadata                           line 1: the digest of what follows; then, by Python's marshal, the parts of
                                           the key, the digests of the other files, and the caller's metadata
        kernel.o                           the machine code
        graph.txt  plan.txt  source.py     for people

The file `usage`, beside these folders, holds the bytes of all entries at the last count, and a line for each entry
stored since. The folder is scanned only where their sum is above the limit. The file `sources` holds digests (key.py).

An entry is written beside its place and renamed into it, so that other processes find it whole or not at all. The
modification time of its folder is the time of its last use. Entries hold machine code: a folder, entry or file that
another user could have written is refused (files.py).
"""

from __future__ import annotations

import atexit
import errno
import marshal
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Literal

from graphc.codegen.cache import files
from graphc.codegen.cache.files import Damaged, Owners, Untrusted, aside
from graphc.codegen.cache.key import SOURCES, Key, fingerprint_parts, for_target
from graphc.codegen.llvm.cpu import runnable
from graphc.codegen.server.prestart import USAGE
from graphc.options import NATIVE, options
from graphc.startup.process import PROCESS
from graphc.startup.record import record
from graphc.startup.versions import DIGITS, digest_of

Metadata = dict[str, Any]
Text = Literal["graph", "plan", "source"]

METADATA, OBJECT = "metadata", "kernel.o"
TEXTS: dict[Text, str] = {"graph": "graph.txt", "plan": "plan.txt", "source": "source.py"}
FILES = (METADATA, OBJECT, *TEXTS.values())
MARSHAL_VERSION = 2
"""A version that every Python reads and in which equal metadata give equal bytes; in later ones the bytes depend on
reference counts. json would cost a warm start a millisecond."""
TARGETS_FILE = "targets"
"""The file of a folder that lists the named targets of entries that were imported or compiled ahead."""
LOOKUPS = "lookups"
"""The file that counts lookups: for each process a line with its hits and misses."""
MOST_LOOKUPS = 4096
"""The bytes of that file from which its lines are added up to one."""
COUNTED = b"bytes"
SPARE = 0.1
"""The part of a full folder that is cleared at a time, so that not every store has to scan it."""
TRIM_AFTER = 256
"""The number of stores after which the folder is scanned again, though it seems to have room."""
READS = 3
"""The number of attempts to read a file that is missing in an entry."""
STALE_SECONDS = 3600.0
"""The age at which an unfinished folder must belong to a process that died."""


@record()
class Entry:
    """The data stored for a graph: three texts (the graph is in the key), the object code, and plain data for
    binding."""

    key: Key
    plan: str
    source: str
    metadata: Metadata
    object: bytes


@record()
class Loaded:
    """An entry as loaded, with verified code and metadata. The texts stay on disk until `text` reads one."""

    folder: str
    metadata: Metadata
    object: bytes
    checksums: Mapping[str, str]
    owners: Owners

    def text(self, kind: Text) -> str | None:
        """Return a stored text; None where the entry has been removed or damaged since it was loaded."""
        try:
            content = files.read(f"{self.folder}{os.sep}{TEXTS[kind]}", self.owners)
        except (OSError, Damaged):
            return None
        return content.decode() if digest_of(content) == self.checksums[TEXTS[kind]] else None


# Loading and storing


def find(key: Key) -> Loaded | None:
    """Return the entry for `key` in the user's folder, else in the shared ones; None where there is none, and where
    `options.cache` is off. Where that is for this machine alone, an imported one for a named target does as well. A
    damaged entry is removed with a CacheWarning.
    """
    digest = key.digest
    for root in roots():
        loaded = _find_in(root, digest)
        if loaded is not None:
            return loaded
    return next((loaded for root, other in _portable(key) if (loaded := _find_in(root, other)) is not None), None)


def _portable(key: Key) -> Iterator[tuple[str, str]]:
    """The folders and digests of entries for named targets that serve a key for "native": those that were imported and
    that this processor runs, the best first."""
    imported: dict[str, str] = {}
    for root in roots():
        with suppress(OSError, Damaged):
            for target in files.read(f"{root}{os.sep}{TARGETS_FILE}", files.owners_of(root)).decode().split():
                imported.setdefault(target, root)
    if imported and fingerprint_parts(key.fingerprint).get("target") == NATIVE:
        for target in runnable():
            if target in imported:
                digest = for_target(key, target).digest
                yield from ((root, digest) for root in roots())


def _find_in(root: str, digest: str) -> Loaded | None:
    """The entry in one folder, None where it has none that can be used."""
    if files.is_trusted(root):
        entry = place_of(root, digest)
        try:
            loaded = read_entry(entry, digest, files.owners_of(root))
            _mark_used(entry)
            return loaded
        except FileNotFoundError:
            pass
        except Untrusted as problem:
            files.warn_once(root, str(problem), "an entry of the compile cache is not used")
        except OSError as error:
            hint = "; its owner lets others read it by `chmod -R go+rX`" if isinstance(error, PermissionError) else ""
            files.warn_once(root, f"{root} cannot be read ({error.strerror}){hint}")
        except Damaged as damage:
            discard(entry)
            files.warn_once(f"damaged in {root}", f"cache entry {entry} is damaged ({damage})", "compiling again")
    return None


def holds(key: Key) -> bool:
    """True where there is an entry for `key`; it may be damaged."""
    places = ((root, key.digest) for root in roots())
    return any(os.path.isdir(place_of(*place)) for place in chain(places, _portable(key)))


# How often graphs were found


def count_lookup(hit: bool) -> None:
    """Count a lookup of a graph. The counts of this process are written to the user's folder when it ends."""
    if not PROCESS.lookups:
        PROCESS.lookups = [0, 0]
        atexit.register(_write_lookups)
        PROCESS.forgetting.append(PROCESS.lookups.clear)
    PROCESS.lookups[not hit] += 1


def _write_lookups() -> None:
    if PROCESS.lookups and options.cache and files.is_trusted(options.cache_dir):
        place, (hits, misses) = f"{options.cache_dir}{os.sep}{LOOKUPS}", PROCESS.lookups
        PROCESS.lookups = []
        with suppress(OSError):
            with open(place, "a+b", buffering=0) as file:
                file.write(b"%d %d\n" % (hits, misses))
                is_long = file.tell() > MOST_LOOKUPS
            if is_long:
                files.replace(place, b"%d %d\n" % counts_of(options.cache_dir))


def counts_of(root: str) -> tuple[int, int]:
    """Return the hits and misses that processes counted in a folder, this one included where it is the user's."""
    hits, misses = PROCESS.lookups if PROCESS.lookups and root == options.cache_dir else (0, 0)
    with suppress(OSError, Damaged, ValueError):
        for line in files.read(f"{root}{os.sep}{LOOKUPS}", files.owners_of(root)).splitlines():
            new_hits, others = map(int, line.split())
            hits, misses = hits + new_hits, misses + others
    return hits, misses


def store(entry: Entry, quiet: bool = False) -> bool:
    """Write `entry` to the user's folder, then remove the least recently used ones above `options.cache_megabytes`.

    Returns True where it is stored; False, with one CacheWarning a process, where the folder cannot be written or is
    not trusted. quiet: without a warning. Raises ArgumentError for what is no `Entry`."""
    root = options.cache_dir
    if not options.cache:
        return False
    try:
        files.make_folder(root)
        if not files.is_trusted(root):
            return False
        contents = _files(entry)
        write(root, entry.key.digest, contents)
        limit = options.cache_megabytes * 2**20
        if not _has_room(root, sum(map(len, contents.values())), limit):
            _trim(root, limit, keep=entry.key.digest)
    except OSError as error:
        if not quiet:
            problem = f"{root} cannot be written ({error.strerror or error}); GRAPHC_CACHE_DIR names another folder"
            files.warn_once(root, problem, "compiled code is not kept")
        return False
    return True


def roots() -> tuple[str, ...]:
    return (options.cache_dir, *options.cache_shared) if options.cache else ()


def place_of(root: str, digest: str) -> str:
    """The folder of an entry."""
    return f"{root}{os.sep}{digest[:2]}{os.sep}{digest}"


def _mark_used(entry: str) -> None:
    try:
        os.utime(entry)
    except OSError:
        return  # a read-only folder keeps no order of use


def read_entry(entry: str, digest: str, owners: Owners) -> Loaded:
    """Load the entry in a folder. Raises FileNotFoundError where there is none, Damaged where it fails a check."""
    header = read_header(entry, digest, owners)
    content = _read_file(entry, OBJECT, owners)
    checksums = header["files"]
    if digest_of(content) != checksums[OBJECT]:
        raise Damaged(f"the checksum of {OBJECT} is wrong")
    return Loaded(entry, header["metadata"], content, checksums, owners)


def read_header(entry: str, digest: str, owners: Owners) -> Metadata:
    files.check_folder(os.path.dirname(entry), owners)
    files.check_folder(entry, owners)
    content = _read_file(entry, METADATA, owners)
    first, _, rest = content.partition(b"\n")
    if first != _seal(rest):
        raise Damaged(f"the checksum of {METADATA} is wrong")
    header: Metadata = marshal.loads(rest)
    if header["key"] != digest:
        raise Damaged("it is the entry of another key")
    return header


def _read_file(entry: str, name: str, owners: Owners) -> bytes:
    """Read a file of an entry. Another process may remove the entry meanwhile, and a third may store it again."""
    for _ in range(READS):
        try:
            return files.read(f"{entry}{os.sep}{name}", owners)
        except FileNotFoundError:
            if not os.path.exists(entry):
                raise
    raise Damaged(f"{name} is missing")


def _seal(rest: bytes) -> bytes:
    """The first line of the metadata file: the checksum of the rest."""
    return digest_of(rest).encode()


def _files(entry: Entry) -> dict[str, bytes]:
    """The content of every file of an entry."""
    contents = {
        OBJECT: entry.object,
        TEXTS["graph"]: entry.key.graph.encode(),
        TEXTS["plan"]: entry.plan.encode(),
        TEXTS["source"]: entry.source.encode(),
    }
    header = {
        "key": entry.key.digest,
        "settings": dict(entry.key.settings),
        "fingerprint": entry.key.fingerprint,
        "files": {name: digest_of(content) for name, content in contents.items()},
        "metadata": entry.metadata,
    }
    rest = marshal.dumps(header, MARSHAL_VERSION)
    return {METADATA: _seal(rest) + b"\n" + rest, **contents}


def write(root: str, digest: str, contents: Mapping[str, bytes]) -> None:
    """Write an entry atomically. Where another process was first, its entry stays."""
    place = place_of(root, digest)
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(place), 0o700)
    unfinished = aside(place)
    os.mkdir(unfinished, 0o700)
    try:
        for name, content in contents.items():
            files.write(f"{unfinished}{os.sep}{name}", content)
        os.rename(unfinished, place)
    except OSError as error:
        _remove(unfinished)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise


def discard(entry: str) -> None:
    """Remove an entry. It is renamed first, so that no process reads half of it; without permission it stays."""
    gone = aside(entry)
    try:
        os.rename(entry, gone)
    except OSError:
        return
    _remove(gone)


def _remove(folder: str) -> None:
    """Remove a folder and its content, as far as permissions allow."""
    for item in _scan(folder):
        if item.is_dir(follow_symlinks=False):
            _remove(item.path)
        else:
            with suppress(OSError):
                os.unlink(item.path)
    with suppress(OSError):
        os.rmdir(folder)


# The folder


def is_key(name: str) -> bool:
    return len(name) == DIGITS and set(name) <= set("0123456789abcdef")


def _folders(root: str) -> Iterator[os.DirEntry[str]]:
    """The folders of entries, and of those that are being written or removed."""
    for bucket in _scan(root):
        if len(bucket.name) == 2 and bucket.is_dir():
            yield from (item for item in _scan(bucket.path) if item.name.startswith(bucket.name))


def entries(root: str) -> Iterator[str]:
    """The folders of all entries."""
    return (folder.path for folder in _folders(root) if is_key(folder.name))


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []


def size_of(entry: str) -> int:
    try:
        return sum(item.stat().st_size for item in _scan(entry))
    except OSError:
        return 0  # it is being removed


def _has_room(root: str, added: int, limit: int) -> bool:
    """Add a line for `added` bytes to the usage file. Returns True where the folder certainly has no more than `limit`
    bytes; False where its size is unknown, or was counted more than TRIM_AFTER stores ago."""
    try:
        with open(f"{root}{os.sep}{USAGE}", "a+b", buffering=0) as file:
            file.write(b"%d\n" % added)
            file.seek(0)
            first, *sizes = file.read().split()
        return first == COUNTED and len(sizes) <= TRIM_AFTER and sum(map(int, sizes)) <= limit
    except (OSError, ValueError):
        return False


def _trim(root: str, limit: int, keep: str) -> None:
    """Count the bytes of the folder, and note them in the usage file. Above `limit` bytes, remove the least recently
    used entries but `keep` until SPARE is free. Remove unfinished folders of processes that died.
    """
    ages: list[tuple[float, int, str, str]] = []
    for folder in _folders(root):
        try:
            used = folder.stat().st_mtime
        except OSError:
            continue
        if is_key(folder.name):
            ages.append((used, size_of(folder.path), folder.name, folder.path))
        elif used < time.time() - STALE_SECONDS:
            _remove(folder.path)
    total = sum(size for _, size, _, _ in ages)
    enough = limit if total <= limit else limit * (1 - SPARE)
    for _, size, digest, path in sorted(ages):
        if total <= enough:
            break
        if digest != keep:
            discard(path)
            total -= size
    for item in _scan(root):
        name, dot, _ = item.name.partition(".")
        with suppress(OSError):
            if dot and name in (USAGE, SOURCES) and item.stat().st_mtime < time.time() - STALE_SECONDS:
                os.unlink(item.path)
    with suppress(OSError):  # the next store then scans the folder again
        files.replace(f"{root}{os.sep}{USAGE}", b"%s\n%d\n" % (COUNTED, total))


# --- compile times of graphs: a record in the cache's folder, and the forecast that it gives for another graph --------
# In: the work of a graph, which is the number of its nodes, and the seconds that compiling it took. Out: the seconds
# that a graph of some work will take, from those of similar work; None where too few are known.
#
#     note(1200, 3.1)        after a compilation: a line "1200 3.1" in the file `durations`
#     expected(1500)         3.9, where three graphs of about as many nodes took 2.6 ms a node

DURATIONS = "durations"
"""The file: for each compilation a line with its work and its seconds, the latest last."""
MOST_BYTES = 4096
"""The size from which the older half of its lines is dropped."""
FEWEST, SIMILAR = 3, 4.0
"""The number of compilations that a forecast needs; the factor by which their work may differ from that of the graph.
The seconds of a node differ less between graphs of similar size than between small and large ones."""

Durations = Iterable[tuple[int, float]]


def note(work: int, seconds: float) -> None:
    """Add a compilation to the record. Does nothing where the folder cannot be written."""
    place = f"{options.cache_dir}{os.sep}{DURATIONS}"
    if options.cache and files.is_trusted(options.cache_dir):
        with suppress(OSError):
            if files.append(place, b"%d %.3f\n" % (work, seconds)) > MOST_BYTES:
                lines = files.read(place, files.own()).splitlines(keepends=True)
                files.replace(place, b"".join(lines[len(lines) // 2 :]))


def expected(work: int) -> float | None:
    """Return the seconds that a graph of `work` nodes is likely to take, from those compiled earlier."""
    samples: list[tuple[int, float]] = []
    with suppress(OSError, files.Damaged, ValueError):
        if options.cache:
            content = files.read(f"{options.cache_dir}{os.sep}{DURATIONS}", files.readable())
            samples = [(int(nodes), float(seconds)) for nodes, seconds in map(bytes.split, content.splitlines())]
    return forecast(work, samples)


def forecast(work: int, known: Durations) -> float | None:
    """Return the seconds for `work` at the mean pace of similar graphs; None where there are fewer than FEWEST."""
    near = [(nodes, seconds) for nodes, seconds in known if work / SIMILAR <= nodes <= work * SIMILAR and seconds > 0]
    if len(near) < FEWEST:
        return None
    return work * sum(seconds for _, seconds in near) / sum(nodes for nodes, _ in near)
