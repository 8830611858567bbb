"""Files and folders of the cache: read where only the user can have written them, and replaced at once.

In: paths. Out: contents, or an error that says what is wrong with a file or folder. Whoever could write the cache could
have any code run, so that owner and mode are looked at on the way to each file, and of the open file itself.
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

Owners = frozenset[int] | None
"""The users who may own what is read; None where the system has no such notion."""


class Damaged(Exception):
    """What is not what its name and checksums say."""


class Untrusted(Damaged):
    """What another user could have written."""


def own() -> Owners:
    """This user alone."""
    return frozenset([os.geteuid()]) if hasattr(os, "geteuid") else None


def objection(status: os.stat_result, owners: Owners) -> str:
    """Why a file or folder is not to be trusted, as the end of a sentence; "" where it is."""
    if owners is None:
        return ""
    if status.st_uid not in owners:
        return "belongs to another user, who could have put any machine code there; delete it"
    if status.st_mode & OTHERS:
        return "can be written by other users, who could have put any machine code there; delete it"
    return ""


def check_folder(path: str, owners: Owners) -> None:
    """Raises Untrusted for a folder (a link is none) that another user could write, OSError where there is none."""
    problem = objection(os.lstat(path), owners)
    if problem:
        raise Untrusted(f"{path} {problem}")


def make_folder(root: str) -> None:
    """Make the user's folder, for nobody else to look into."""
    os.makedirs(os.path.dirname(root) or os.curdir, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(root, 0o700)


def owners_of(root: str) -> Owners:
    """Who may own what is in a folder: the user; in a shared one the system's, or who owns it, whom the user named."""
    user = own()
    return user if user is None or root == options.cache_dir else user | {0, os.stat(root).st_uid}


def is_trusted(root: str) -> bool:
    """Whether nobody else can have put entries here; else there is a warning."""
    problem = objection_to(root)
    if problem:
        warn_once(root, f"{root} {problem}")
    return not problem


def objection_to(root: str) -> str:
    """Why a folder cannot be trusted, "" where it can."""
    try:
        return objection(os.stat(root), owners_of(root))
    except OSError:
        return ""  # nothing can be loaded from it; storing will say why


def warn_once(about: str, problem: str, what: str = "the compile cache is not used") -> None:
    if about not in PROCESS.warned:
        PROCESS.warned.add(about)
        warnings.warn(f"{what}: {problem}", CacheWarning, stacklevel=3)


def read(path: str, owners: Owners) -> bytes:
    """The content of a file; raises Untrusted, Damaged for what is no file, or OSError."""
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
    """No link is followed, and no pipe waited for."""
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
    return descriptor


def write(path: str, content: bytes) -> None:
    """Write a file that nobody else may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def replace(path: str, content: bytes) -> None:
    """Put a file in its place at once. Where that fails, OSError and no trace of it."""
    unfinished = aside(path)
    try:
        write(unfinished, content)
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def aside(place: str) -> str:
    """A name of its own beside `place`, for what is not or no longer there."""
    return f"{place}.{os.urandom(8).hex()}"
