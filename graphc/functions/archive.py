"""Files of graphc: a header and blobs, each checked against its digest before it is used.

In: a header that JSON can hold, and arrays, texts and codes as blobs. Out: a file; from a file the header, and blobs as
memory that is mapped.

    blobs = Blobs()
    write_file("a.graphc", {"kind": "example", "weights": blobs.add_array(np.ones(3))}, blobs)
    opened = open_file("a.graphc")
    opened.array(opened.header["weights"])     array([1., 1., 1.]), read-only, in the file's memory

The format:

    first line    "graphc 3", the digest of the header (64 digits), the number of its bytes
    header        JSON: "kind", what the kind needs, and "blobs": for each its place, length and digest
    blobs         each begins at a multiple of 64 bytes, counted from the first one, which begins at such a multiple of
                  the file. An array is its bytes in C order, in this machine's order of bytes

Values of shared variables and large constants may be in a second file of the same format, beside the first and named
after it, whose header's digest stands in the header of the first.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import IO, Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.codegen.cache import files
from graphc.errors import GraphcError, GraphTypeError
from graphc.ir.node import Array
from graphc.ir.pairs import OF_PAIRS
from graphc.shared import SharedVariable, own_variable, shared
from graphc.startup.hooks import HOOKS
from graphc.startup.versions import DIGITS, digest_of
from graphc.trees import REGISTERED, leaves

FIRST = b"graphc 3 "
"""The first bytes of a file: the name, and the version of the format."""
MOST_HEADER = 2**28
"""The largest header in bytes."""
ALIGNMENT = 64
"""Of blobs, in bytes: a cache line, and the widest vector register."""
VALUES = ".values"
"""The end of the name of a file of values beside another."""


def aligned(size: int) -> int:
    """Return a number of bytes, rounded up."""
    return -(-size // ALIGNMENT) * ALIGNMENT


# Writing


class Blobs:
    """The blobs of a file that is to be written, and its shared variables. values: the blobs of the file beside it that
    has the values; by default they are in the file itself."""

    def __init__(self, values: Blobs | None = None) -> None:
        self.contents: list[bytes | memoryview] = []
        self.rows: list[tuple[int, str]] = []
        self.values = values or self
        self.variables: list[dict[str, Any]] = []
        self.known: dict[int, int] = {}

    def add(self, content: bytes | memoryview) -> int:
        """Add a blob, and return its number."""
        self.contents.append(content)
        self.rows.append((memoryview(content).nbytes, digest_of(content)))
        return len(self.rows) - 1

    def add_array(self, value: Array) -> dict[str, Any]:
        """Add an array, and return what the header says of it."""
        array = np.ascontiguousarray(value)
        blob = self.add(array.reshape(-1).view(np.uint8).data)
        return {"dtype": value.dtype.name, "shape": list(value.shape), "blob": blob}

    def add_value(self, value: Array) -> dict[str, Any]:
        """Add an array to where values are."""
        row = self.values.add_array(value)
        return row if self.values is self else {**row, "beside": True}

    def add_variable(self, leaf: SharedVariable) -> int:
        """Add a shared variable, and return its number: one for all variables over one value."""
        is_stream = type(leaf) is not SharedVariable and type(leaf) is HOOKS.shared_generator
        if type(leaf) is not SharedVariable and not is_stream:
            raise GraphcError(
                f"shared variable {leaf.name or leaf.type} is a {type(leaf).__name__}: it cannot be saved"
            )
        if id(leaf.cell) not in self.known:
            self.known[id(leaf.cell)] = len(self.variables)
            self.variables.append(
                {
                    **self.add_value(leaf.get_value(borrow=True)),
                    "name": leaf.name,
                    "sizes": list(leaf.sizes),
                    "strict": leaf.strict,
                    "allow_downcast": leaf.allow_downcast,
                    "is_stream": is_stream,
                }
            )
        return self.known[id(leaf.cell)]


def blobs_for(values: str) -> Blobs:
    """Return the blobs of a new file. values: "inside", or "beside" for a file of their own."""
    if values not in ("inside", "beside"):
        raise GraphcError(f"values={values!r}: must be 'inside' or 'beside'")
    return Blobs(Blobs() if values == "beside" else None)


Place = str | bytes | os.PathLike[str] | IO[bytes]
"""A path, or a file that is open for bytes, as Python has it."""


def is_open(place: Place) -> bool:
    """True for an open file, or an object with its methods."""
    return hasattr(place, "write") or hasattr(place, "read")


def path_of(place: Any) -> str:
    """Return a path as text."""
    return os.fsdecode(place)


def write_file(place: Place, header: Mapping[str, Any], blobs: Blobs) -> None:
    """Write a file atomically, after that of the values beside it. An open file is written from where it stands."""
    if blobs.values is not blobs:
        if is_open(place):
            raise GraphcError("values='beside': the second file is named after the first one: give a path")
        header = {**header, "beside": _write(path_of(place) + VALUES, {"kind": "values"}, blobs.values)}
    _write(place, {**header, "variables": blobs.variables}, blobs)


def _write(place: Place, header: Mapping[str, Any], blobs: Blobs) -> str:
    """Write a file, and return the digest of its header."""
    places: list[tuple[int, int, str]] = []
    position = 0
    for size, digest in blobs.rows:
        places.append((position, size, digest))
        position = aligned(position + size)
    content = import_module("json").dumps({**header, "blobs": places, "bytes": position}).encode()
    digest = digest_of(content)
    first = b"%s%s %d\n" % (FIRST, digest.encode(), len(content))
    parts = [part for blob in blobs.contents for part in _padded(blob)]
    _write_parts(place, [*_padded(first + content), *parts])
    return digest


def _write_parts(place: Any, parts: Sequence[bytes | memoryview]) -> None:
    if is_open(place):
        try:
            for part in parts:
                place.write(part)
        except TypeError:
            raise GraphTypeError(f"{place!r} does not take bytes: open it with mode 'wb'") from None
        return
    path = os.path.realpath(path_of(place))  # what a link leads to is written, not the link
    if os.path.exists(path) and not os.path.isfile(path):
        what = "is a folder: name a file in it" if os.path.isdir(path) else "is no regular file: give an open file"
        raise OSError(errno.EISDIR if os.path.isdir(path) else errno.EINVAL, what, path)
    try:
        files.replace(path, *parts, mode=files.PUBLIC)
    except OSError as error:
        told = f"cannot be written, and is as it was: {error.strerror}"
        if error.errno == errno.ENOENT:
            told = f"cannot be written: there is no folder {os.path.dirname(path)}"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            told += f"; in {os.path.dirname(path)} a new file must be made, which is then renamed"
        raise type(error)(error.errno, told, path) from error


def _padded(content: bytes | memoryview) -> Iterator[bytes | memoryview]:
    size = memoryview(content).nbytes
    yield content
    yield b"\0" * (aligned(size) - size)


# Reading


class Damaged(GraphcError):
    """A file that is no saved function, or is not as it was written."""


class Opened:
    """A file that was opened: its header, verified, and its bytes, mapped."""

    def __init__(self, path: str, header: Mapping[str, Any], content: memoryview, start: int, digest: str) -> None:
        self.path, self.header, self.content, self.start, self.digest = path, header, content, start, digest
        self.beside: Opened | None = None
        self.variables: dict[int, SharedVariable] = {}

    def blob(self, number: int) -> memoryview:
        """Return a blob after its digest was checked."""
        place, size, digest = self.header["blobs"][number]
        content = self.content[self.start + place : self.start + place + size]
        if content.nbytes != size or digest_of(content) != digest:
            raise Damaged(f"{self.path} is damaged: blob {number} is not what was written")
        return content

    def array(self, row: Mapping[str, Any]) -> Array:
        """Return a read-only array over the bytes of the file, or of the one beside it."""
        if row["dtype"] not in DTYPES:
            raise Damaged(f"{self.path} is damaged: {row['dtype']!r} is no dtype")
        content = self.values().blob(row["blob"]) if row.get("beside") else self.blob(row["blob"])
        return np.frombuffer(content, row["dtype"]).reshape(row["shape"])

    def values(self) -> Opened:
        """Return the file of the values beside this one."""
        if self.beside is None:
            place = self.path + VALUES
            if not os.path.exists(place):
                raise GraphcError(f"{self.path} was saved with its values beside it, and {place} is not there")
            self.beside = open_file(place)
            if self.beside.digest != self.header["beside"]:
                raise Damaged(f"{place} has not the values that {self.path} was saved with")
        return self.beside

    def variable(self, number: int) -> SharedVariable:
        """Return a shared variable with a copy of its value: one for each number."""
        if number not in self.variables:
            row = self.header["variables"][number]
            value, sizes = self.array(row).copy(), tuple(row["sizes"])
            how = {"strict": row["strict"], "allow_downcast": row["allow_downcast"]}
            if row["is_stream"]:
                self.variables[number] = own_variable(value, sizes, row["name"], made=HOOKS.shared_generator)
            else:
                self.variables[number] = shared(value, row["name"], shape=sizes, **how)
        return self.variables[number]


def open_file(place: Place) -> Opened:
    """Open a file, check its header, and map it; an open one is read to its end. Raises Damaged, or OSError."""
    if is_open(place):
        content = place.read()  # type: ignore[union-attr] # of a file
        if isinstance(content, str):
            raise GraphTypeError(f"{place!r} gives text: open it with mode 'rb'")
        return _opened(str(getattr(place, "name", place)), BytesIO(content), memoryview(content))
    path = path_of(place)
    with open(path, "rb") as file:
        return _opened(path, file)


def _opened(path: str, file: Any, content: memoryview | None = None) -> Opened:
    """Return what a file is. content: all of it, where it is not to be mapped."""
    first = file.readline(len(FIRST) + DIGITS + 16)
    digest, _, length = first[len(FIRST) :].strip().partition(b" ")
    if not first.startswith(b"graphc "):
        raise Damaged(f"{path} is no function that was saved")
    if not first.startswith(FIRST):
        raise Damaged(f"{path} {_other_format(first)}")
    if not (first.endswith(b"\n") and length.isdigit() and int(length) <= MOST_HEADER):
        raise Damaged(f"{path} is damaged: its first line is not what was written")
    head = file.read(int(length))
    known = digest.decode("ascii", "replace")
    if len(head) != int(length) or digest_of(head) != known:
        raise Damaged(f"{path} is damaged: its header is not what was written")
    with telling(path):
        header = header_of(head.decode())
        start = aligned(len(first) + len(head))
        size = os.fstat(file.fileno()).st_size if content is None else content.nbytes
        if size != start + header["bytes"]:
            raise Damaged(f"{path} is damaged: it is not as long as it was written")
        if content is None:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return Opened(path, header, content, start, known)


def _other_format(first: bytes) -> str:
    """Return the end of a sentence about a file with another first line."""
    number, own = first.split(b" ")[1].decode("ascii", "replace").strip(), int(FIRST.split()[1])
    if not number.isdecimal():
        return "is damaged: its first line is not what was written"
    if int(number) > own:
        return f"was written by a newer graphc, in another version of the format ({number}, this one reads {own})"
    return f"was written by an older graphc, in another version of the format ({number}, not {own}): save it again"


@contextmanager
def telling(path: str) -> Iterator[None]:
    """Tell of a header that is not as it should be by Damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, StopIteration, SyntaxError) as error:
        if isinstance(error, GraphcError):
            raise
        raise Damaged(f"{path} is damaged: {type(error).__name__}: {error}") from error


class Numbers:
    """The settings of Python's own scanner of JSON, as `json.loads` has them."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float
    memo: Mapping[str, str] = {}


def header_of(text: str) -> Any:
    """Read what `json.dumps` wrote, by Python's scanner alone: importing the package around it takes 2 ms."""
    try:
        scanner = import_module("_json").make_scanner(Numbers())
    except ImportError:  # a Python built without it
        return import_module("json").loads(text)
    return scanner(text, 0)[0]


# Trees in headers


def encoded(tree: Any, what: str) -> Any:
    """Return a tree in JSON, without its leaves. Raises GraphcError for other nodes than tuples, lists and dicts."""
    kind = type(tree)
    if tree is None:
        return ["none"]
    if kind in (tuple, list):
        return [kind.__name__, *(encoded(each, what) for each in tree)]
    if kind is dict:
        wrong = next((key for key in tree if type(key) not in (str, int)), None)
        if wrong is not None:
            raise GraphcError(f"{what}: the key {wrong!r} of a dict is neither text nor a whole number")
        return ["dict", *([key, encoded(value, what)] for key, value in tree.items())]
    if REGISTERED.get(kind) is OF_PAIRS:
        return ["complex"]
    if leaves(tree) == [tree]:
        return ["leaf"]
    raise GraphcError(f"{what}: a {kind.__name__} cannot be saved; tuples, lists and dicts can")


def decoded(row: Sequence[Any]) -> Any:
    """Return the tree of `encoded`, whose leaves are 0."""
    kind, *parts = row
    if kind == "dict":
        return {key: decoded(value) for key, value in parts}
    if kind in ("tuple", "list"):
        return {"tuple": tuple, "list": list}[kind](map(decoded, parts))
    if kind == "complex":
        return HOOKS.pairs.value_of(0j)
    return {"none": None, "leaf": 0}[kind]
