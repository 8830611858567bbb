"""Digests of cache contents and cache keys.

In: bytes. Out: 64 hexadecimal digits (BLAKE2b of 256 bits). hashlib is avoided where possible because it loads OpenSSL:
2 ms of a warm start.
"""

from __future__ import annotations

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
