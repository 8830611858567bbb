"""Files and folders of the cache: read only where nobody but the user can have written them, and replaced atomically.

In: paths. Out: contents, or an error that tells what is wrong with a file or folder. Whoever can write the cache can
have any machine code run. So owner and mode are checked of the folders on the way, and of the open file itself.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from contextlib import suppress

from graphc.errors import CacheWarning
from graphc.options import options
from graphc.startup.process import PROCESS

OTHERS = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
PRIVATE, PUBLIC = 0o600, 0o666
"""The modes of a file that nobody else may read, and of one that others may use, less what the user's umask takes."""

Owners = frozenset[int] | None
"""The users who may own a file of the cache; None where the system has no owners."""


class Damaged(Exception):
    """A file or entry does not agree with its name or its checksums."""


class Untrusted(Damaged):
    """A file or folder could have been written by another user."""


def own() -> Owners:
    """Return the set of this user alone, whose files may be changed."""
    return frozenset([os.geteuid()]) if hasattr(os, "geteuid") else None


def readable() -> Owners:
    """Return the users whose entries of the user's own folder are loaded: the user, and root, who may do anything."""
    user = own()
    return None if user is None else user | {ROOT}


def objection(status: os.stat_result, owners: Owners) -> str:
    """Return the reason why a file or folder is not trusted and what to do, as the end of a sentence; "" for a trusted
    one."""
    if owners is None:
        return ""
    if status.st_uid not in owners:
        return (
            f"belongs to another user ({status.st_uid}), who could have put any machine code there: set "
            "GRAPHC_CACHE_DIR to a folder of your own, and where you trust that user name this one in "
            "GRAPHC_CACHE_SHARED"
        )
    if status.st_mode & OTHERS:
        return (
            "can be written by other users, who could have put any machine code there: delete it, and make it anew "
            "without their permission to write (chmod go-w)"
        )
    return ""


def check_folder(path: str, owners: Owners) -> None:
    """Raise Untrusted for a folder, or a link to one, that another user could write; OSError where there is none."""
    problem = objection(os.lstat(path), owners)
    if problem:
        raise Untrusted(f"{path} {problem}")


def make_folder(root: str) -> None:
    """Make the user's folder, which nobody else may read."""
    os.makedirs(os.path.dirname(root) or os.curdir, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(root, 0o700)


def owners_of(root: str) -> Owners:
    """Return the users who may own entries of a folder: the user and root; of a shared folder also its owner, whom the
    user trusts by naming the folder."""
    users = readable()
    return users if users is None or root == options.cache_dir else users | {os.stat(root).st_uid}


def is_trusted(root: str) -> bool:
    """True where nobody else can have put entries into a folder. Warns once where somebody could."""
    problem = objection_to(root)
    if problem:
        warn_once(root, f"{root} {problem}")
    return not problem


def objection_to(root: str) -> str:
    """Return the reason why a folder is not trusted, "" for a trusted one or none."""
    try:
        return objection(os.stat(root), owners_of(root))
    except OSError:
        return ""  # nothing can be loaded from it; storing will say why


def warn_once(about: str, problem: str, what: str = "the compile cache is not used") -> None:
    if about not in PROCESS.warned:
        PROCESS.warned.add(about)
        warnings.warn(f"{what}: {problem}", CacheWarning, stacklevel=3)


def read(path: str, owners: Owners) -> bytes:
    """Return the content of a file. Raises Untrusted, Damaged where the path is no regular file, or OSError."""
    try:
        with open(path, "rb", buffering=0, opener=_open) as file:
            problem = objection(os.fstat(file.fileno()), owners)
            if problem:
                raise Untrusted(f"{path} {problem}")
            return file.read()
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise Damaged(f"{os.path.basename(path)} is no file") from error
        raise


def _open(path: str, flags: int) -> int:
    """Open a file without following a link or waiting for a pipe. Nobody else may read one that is made."""
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), PRIVATE)
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
    return descriptor


def append(path: str, content: bytes) -> int:
    """Add to the end of a file, made where there is none, and return its length. Raises OSError, also where the path is
    a link or a pipe."""
    with open(path, "ab", buffering=0, opener=_open) as file:
        file.write(content)
        return file.tell()


def write(path: str, *parts: bytes | memoryview, mode: int = PRIVATE) -> None:
    """Write a file of these parts."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, mode), "wb") as file:
        file.writelines(parts)


def replace(path: str, *parts: bytes | memoryview, mode: int = PRIVATE) -> None:
    """Write a file atomically. Raises OSError where that fails, and leaves no trace then."""
    unfinished = aside(path)
    try:
        write(unfinished, *parts, mode=mode)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def aside(place: str) -> str:
    """Return a unique path beside `place`, for a file or folder that is not yet, or no longer, in its place."""
    return f"{place}.{os.urandom(8).hex()}"
