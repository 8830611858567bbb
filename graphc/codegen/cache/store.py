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

import errno
import marshal
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal, NoReturn

from graphc.codegen.cache import files
from graphc.codegen.cache.files import Damaged, Owners, Untrusted, aside
from graphc.codegen.cache.key import SOURCES, Key, cache_key, difference, distance, package_fingerprint
from graphc.codegen.server.prestart import USAGE
from graphc.errors import CacheMissError, GraphcError
from graphc.ir.call_errors import explain_all
from graphc.options import options
from graphc.startup.digest import DIGITS, digest_of
from graphc.startup.record import record

__all__ = [
    "Entry", "Key", "Loaded", "Summary", "cache_key", "clear", "explain_miss", "export", "find", "import_",
    "list_entries", "package_fingerprint", "size", "store",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Metadata = dict[str, Any]
Text = Literal["graph", "plan", "source"]

METADATA, OBJECT = "metadata", "kernel.o"
TEXTS: dict[Text, str] = {"graph": "graph.txt", "plan": "plan.txt", "source": "source.py"}
FILES = (METADATA, OBJECT, *TEXTS.values())
MARSHAL_VERSION = 2
"""A version that every Python reads and in which equal metadata give equal bytes; in later ones the bytes depend on
reference counts. json would cost a warm start a millisecond."""
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


@record()
class Summary:
    """An item of `list_entries`. size: in bytes. used: the time of the last use in seconds since the epoch."""

    key: str
    size: int
    used: float
    folder: str
    metadata: Metadata


# Loading and storing


def refuse_miss(key: Key) -> NoReturn:
    """Raise CacheMissError, which tells the difference from the most similar stored entry."""
    raise CacheMissError(f"the graph is not in the cache, which the option cache_require demands\n{explain_miss(key)}")


def find(key: Key) -> Loaded | None:
    """Return the entry for `key` in the user's folder, else in the shared ones; None where there is none, and where
    `options.cache` is off. A damaged entry is removed with a CacheWarning.
    """
    digest = key.digest
    for root in _roots():
        if not files.is_trusted(root):
            continue
        entry = place_of(root, digest)
        try:
            found = _read(entry, digest, files.owners_of(root))
        except FileNotFoundError:
            continue
        except Untrusted as problem:
            files.warn_once(root, str(problem), "an entry of the compile cache is not used")
            continue
        except OSError as error:
            files.warn_once(root, f"{root} cannot be read ({error.strerror})")
            continue
        except Damaged as damage:
            discard(entry)
            files.warn_once(f"damaged in {root}", f"cache entry {entry} is damaged ({damage})", "compiling again")
            continue
        _mark_used(entry)
        return found
    return None


def holds(key: Key) -> bool:
    """True where there is an entry for `key`; it may be damaged."""
    return any(os.path.isdir(place_of(root, key.digest)) for root in _roots())


def store(entry: Entry) -> bool:
    """Write `entry` to the user's folder, then remove the least recently used ones above `options.cache_megabytes`.

    Returns True where it is stored; False, with one CacheWarning a process, where the folder cannot be written or is
    not trusted.
    """
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
        files.warn_once(root, f"{root} cannot be written ({error.strerror or error})")
        return False
    return True


def _roots() -> tuple[str, ...]:
    return (options.cache_dir, *options.cache_shared) if options.cache else ()


def place_of(root: str, digest: str) -> str:
    """The folder of an entry."""
    return f"{root}{os.sep}{digest[:2]}{os.sep}{digest}"


def _mark_used(entry: str) -> None:
    try:
        os.utime(entry)
    except OSError:
        return  # a read-only folder keeps no order of use


def _read(entry: str, digest: str, owners: Owners) -> Loaded:
    """Load the entry in a folder. Raises FileNotFoundError where there is none, Damaged where it fails a check."""
    header = _read_metadata(entry, digest, owners)
    content = _read_file(entry, OBJECT, owners)
    checksums = header["files"]
    if digest_of(content) != checksums[OBJECT]:
        raise Damaged(f"the checksum of {OBJECT} is wrong")
    return Loaded(entry, header["metadata"], content, checksums, owners)


def _read_metadata(entry: str, digest: str, owners: Owners) -> Metadata:
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


# Looking after the folder


def list_entries() -> list[Summary]:
    """Return all entries that can be loaded, of the user's and the shared folders, the most recently used first."""
    summaries = []
    for root in _roots():
        if not files.is_trusted(root):
            continue
        for entry in entries(root):
            try:
                digest = os.path.basename(entry)
                metadata = _read_metadata(entry, digest, files.owners_of(root))["metadata"]
                summaries.append(Summary(digest, _size_of(entry), os.stat(entry).st_mtime, entry, metadata))
            except (OSError, Damaged):
                continue
    return sorted(summaries, key=lambda summary: -summary.used)


def size() -> int:
    """Return the bytes of all entries in the user's folder."""
    return sum(map(_size_of, entries(options.cache_dir)))


def clear() -> int:
    """Remove all entries from the user's folder, and return their number. Shared folders are never changed."""
    found = list(entries(options.cache_dir))
    for entry in found:
        discard(entry)
    return len(found)


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
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _size_of(entry: str) -> int:
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
            first, *more = file.read().split()
        return first == COUNTED and len(more) <= TRIM_AFTER and sum(map(int, more)) <= limit
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
            ages.append((used, _size_of(folder.path), folder.name, folder.path))
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


# Bundles


def export(path: str | os.PathLike[str]) -> int:
    """Write all entries of the user's folder to a zip file, for `import_` on a machine alike. Returns their number."""
    exported, zipfile = 0, import_module("zipfile")  # a warm start needs none
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for entry in sorted(entries(options.cache_dir)):
            try:
                contents = read_files(entry)
            except (FileNotFoundError, Untrusted):
                continue  # another process has just removed it, or somebody else could have written it
            for name, content in contents.items():
                bundle.writestr(f"{os.path.basename(entry)}/{name}", content)
            exported += 1
    return exported


def import_(path: str | os.PathLike[str]) -> int:
    """Add the entries of a bundle to the user's folder. Returns the number of those that were not there.

    A bundle holds machine code that will be run: take it from people you trust. Raises GraphcError for a file that is
    no bundle.
    """
    added, zipfile, root = 0, import_module("zipfile"), options.cache_dir
    files.make_folder(root)
    problem = files.objection_to(root)
    if problem:
        raise GraphcError(f"nothing is imported: {root} {problem}")
    try:
        with zipfile.ZipFile(path) as bundle:
            for digest in sorted({name.partition("/")[0] for name in bundle.namelist()}):
                place = place_of(root, digest)
                if not is_key(digest):
                    raise GraphcError(f"{path} is not a bundle of cache entries: it holds {digest!r}")
                if not os.path.exists(place):
                    write(root, digest, {name: bundle.read(f"{digest}/{name}") for name in FILES})
                    verify(place, digest)
                    added += 1
    except (zipfile.BadZipFile, KeyError, Damaged) as error:
        raise GraphcError(f"{path} is not a bundle of cache entries: {error}") from error
    return added


def read_files(entry: str) -> dict[str, bytes]:
    """The content of every file of an entry; FileNotFoundError where it is gone."""
    return {name: files.read(f"{entry}{os.sep}{name}", files.own()) for name in FILES}


def verify(entry: str, digest: str) -> None:
    """Check every file of an entry, which is removed where one is wrong; raises Damaged."""
    try:
        loaded = _read(entry, digest, files.own())
        for kind, name in TEXTS.items():
            if loaded.text(kind) is None:
                raise Damaged(f"the checksum of {name} is wrong")
    except Damaged:
        discard(entry)
        raise


# Why a lookup missed


def explain_miss(key: Key) -> str:
    """Return the difference of `key` from the most similar stored key: lines of the graph, options, versions."""
    candidates = [found for root in _roots() for entry in entries(root) if (found := _stored_key(root, entry))]
    if not candidates:
        return f"the cache is empty: {', '.join(_roots()) or 'it is switched off'}"
    differences = difference(key, min(candidates, key=lambda found: distance(key, found)))
    if not differences:
        return "the graph is in the cache"
    return f"differences from the most similar of {len(candidates)} stored graphs:\n" + "\n".join(differences)


def _stored_key(root: str, entry: str) -> Key | None:
    try:
        owners = files.owners_of(root)
        header = _read_metadata(entry, os.path.basename(entry), owners)
        graph = files.read(f"{entry}{os.sep}{TEXTS['graph']}", owners).decode()
        return Key(graph, header["settings"], header["fingerprint"])
    except (OSError, ValueError, Damaged):
        return None


explain_all(globals())
