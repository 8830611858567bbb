"""Functions as files: the graph, the values, and the machine code, for `f.save(path)` and `graphc.load(path)`.

In: a compiled function. Out: a file from which any process makes the function again, without its source, and without
the compiler where the code in the file fits.

    f.save("model.graphc")
    f = graphc.load("model.graphc")

A file has a first line, a header and blobs:

    first line    "graphc 1", the digest of the header (64 digits), the number of its bytes
    header        JSON: name, convention, and for each blob its place, length and digest
    blobs         each begins at a multiple of 64 bytes: the printed graph; values of shared variables, defaults and
                  large constants, as the bytes of C-contiguous arrays in this machine's order; machine code

A code has the fingerprint that entries of the cache have (codegen/cache/key.py): versions, target, processor. One that
agrees is loaded; without one the function is compiled from the graph. Every byte is covered by a digest that is checked
before the byte is used. So a damaged file is an error. A file that somebody made on purpose runs what they want: it
holds machine code, as a library does.
"""

from __future__ import annotations

import marshal
import mmap
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.codegen.cache import files, store
from graphc.codegen.cache.key import Key, difference
from graphc.codegen.pipeline.build import Lookup, codes, key_of, large_constants, product_parts
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.runtime import available, part_code
from graphc.codegen.threads.chunking import PARALLEL
from graphc.errors import CacheMissError, GraphcError
from graphc.functions.callables import Function
from graphc.functions.convention import REQUIRED, Convention, In, name_positions
from graphc.functions.factory import class_of_mode, make_function
from graphc.functions.native import Compiled
from graphc.ir.body import nodes_within
from graphc.ir.frozen import FrozenArray
from graphc.ir.node import Array
from graphc.ir.text import graph_key_text
from graphc.ir.walk import Graph, node_set, substitute
from graphc.ops.custom import OWN
from graphc.shared import SharedVariable, shared
from graphc.startup.digest import DIGITS, digest_of
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS
from graphc.startup.record import record

FIRST = b"graphc 1 "
"""How a file begins: the version of the format follows the name."""
MOST_HEADER = 2**28
"""The largest header in bytes."""
ALIGNMENT = 64
"""Of blobs, in bytes: a cache line, and the widest vector register."""


class Blobs:
    """The blobs of a file that is to be written."""

    def __init__(self) -> None:
        self.contents: list[bytes | memoryview] = []
        self.rows: list[tuple[int, str]] = []

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


# Writing


def save(function: Function, path: str | os.PathLike[str]) -> None:
    """Write a function to a file, atomically. `Function.save` tells more."""
    blobs = Blobs()
    write_file(os.fspath(path), {"kind": "function", "function": function_row(function, blobs)}, blobs)


def function_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function, whose blobs are added."""
    if type(function).graph is not Function.graph or not _is_plain(function):
        raise GraphcError(
            f"{function.label}: a function of trees, of states (`In(update=...)`) or of a checking mode cannot be "
            "saved; pickle it"
        )
    kernel = function.kernel
    nodes = node_set(kernel.results)
    own = [node.op.name for node in (*nodes, *nodes_within(nodes)) if node.op.version not in ("", OWN)]
    if own:
        raise GraphcError(f"{function.label} calls {own[0]}, a Python function of the program: it cannot be saved")
    variables = [leaf for leaf in kernel.shared if isinstance(leaf, SharedVariable)]
    news = [new for _, new in kernel.updates]
    text = graph_key_text(Graph(kernel.inputs, (*kernel.outputs, *kernel.shared, *news)))
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    return {
        "name": function.name,
        "kernel": kernel.name,
        "mode": function.mode,
        "graph": blobs.add(text.encode()),
        "returns": kernel.returns,
        "threads": kernel.threads,
        "mutable": list(kernel.mutable),
        "fast_math": kernel.is_fast,
        "inputs": [_input(item, blobs) for item in function.call.inputs],
        "keys": None if function.call.keys is None else list(function.call.keys),
        "shared": [_variable(leaf, blobs) for leaf in variables],
        "updated": [places[leaf] for leaf, _ in kernel.updates],
        "constants": {digest: blobs.add_array(value) for digest, value in large_constants(kernel).items()},
        "codes": [code] if isinstance(function, Compiled) and (code := _code(function, blobs)) else [],
    }


def _is_plain(function: Function) -> bool:
    return function.kind is type(function) or isinstance(function, Compiled) or hasattr(function, "stages")


def _input(item: In, blobs: Blobs) -> dict[str, Any]:
    default = None if item.value is REQUIRED else blobs.add_array(np.asarray(item.value, item.variable.type.dtype))
    return {
        "name": item.name,
        "variable": item.variable.name,
        "default": default,
        "mutable": bool(item.mutable),
        "strict": item.strict,
        "allow_downcast": item.allow_downcast,
    }


def _variable(leaf: SharedVariable, blobs: Blobs) -> dict[str, Any]:
    if type(leaf) is not SharedVariable:
        raise GraphcError(f"shared variable {leaf.name or leaf.type} is a {type(leaf).__name__}: it cannot be saved")
    return {
        **blobs.add_array(leaf.get_value(borrow=True)),
        "name": leaf.name,
        "sizes": list(leaf.sizes),
        "strict": leaf.strict,
        "allow_downcast": leaf.allow_downcast,
    }


def _code(function: Compiled, blobs: Blobs) -> dict[str, Any] | None:
    """Return what the header says of a function's machine code; None where it is no longer to be had."""
    key = function.key
    entry, living = store.find(key), codes().get(key.digest)
    metadata = entry.metadata if entry is not None else living.metadata if living is not None else None
    code = entry.object if entry is not None else living.object if living is not None else b""
    if metadata is None or not code:
        return None
    products = metadata["products"]
    names = [*product_parts(products), *([PARALLEL] if metadata["parallel"] and not products else [])]
    return {
        "fingerprint": key.fingerprint,
        "settings": dict(key.settings),
        "metadata": blobs.add(marshal.dumps(dict(metadata), store.MARSHAL_VERSION)),
        "object": blobs.add(code),
        "parts": {name: blobs.add(part_code(name)) for name in dict.fromkeys(names)},
        "processors": available(),
    }


def write_file(path: str, header: dict[str, Any], blobs: Blobs) -> None:
    """Write a file atomically."""
    places: list[tuple[int, int, str]] = []
    position = 0
    for size, digest in blobs.rows:
        places.append((position, size, digest))
        position += -(-size // ALIGNMENT) * ALIGNMENT
    content = import_module("json").dumps({**header, "blobs": places, "bytes": position}).encode()
    first = b"%s%s %d\n" % (FIRST, digest_of(content).encode(), len(content))
    start = -(-(len(first) + len(content)) // ALIGNMENT) * ALIGNMENT
    unfinished = files.aside(path)
    try:
        with open(unfinished, "wb") as file:
            file.write(first + content)
            for (place, _, _), blob in zip(places, blobs.contents, strict=True):
                file.write(b"\0" * (start + place - file.tell()))
                file.write(blob)
            file.write(b"\0" * (start + position - file.tell()))
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


# Reading


class Damaged(GraphcError):
    """A file that is no saved function, or is not as it was written."""


@record(eq=False)
class Opened:
    """A file that was opened: its header, verified, and its bytes, mapped."""

    path: str
    header: Mapping[str, Any]
    content: memoryview
    start: int

    def blob(self, number: int) -> memoryview:
        """Return a blob after its digest was checked."""
        place, size, digest = self.header["blobs"][number]
        content = self.content[self.start + place : self.start + place + size]
        if content.nbytes != size or digest_of(content) != digest:
            raise Damaged(f"{self.path} is damaged: blob {number} is not what was written")
        return content

    def array(self, row: Mapping[str, Any]) -> Array:
        """Return a read-only array over the bytes of the file."""
        if row["dtype"] not in DTYPES:
            raise Damaged(f"{self.path} is damaged: {row['dtype']!r} is no dtype")
        return np.frombuffer(self.blob(row["blob"]), row["dtype"]).reshape(row["shape"])


def load(path: str | os.PathLike[str], recompile: bool = True) -> Any:
    """Return the function that `f.save(path)` wrote: a compiled function, or a jitted one with all its variants.

    Shared variables are new ones with the values that they had; large constants stay in the file, which is mapped into
    memory. Where no code in the file fits this processor and these versions, the function is compiled from its graph;
    with recompile=False that is a CacheMissError, which says what differs. Raises GraphcError for a file that is
    damaged or no saved function, OSError for one that cannot be read. A file holds machine code that will be run: take
    it from people you trust.

        f.save("model.graphc")
        g = graphc.load("model.graphc")
    """
    opened = _open(os.fspath(path))
    try:
        if opened.header["kind"] == "jitted":
            return HOOKS.restored_jitted(opened, recompile)
        return restored_function(opened, opened.header["function"], recompile)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, GraphcError):
            raise
        raise Damaged(f"{opened.path} is damaged: {type(error).__name__}: {error}") from error


def _open(path: str) -> Opened:
    with open(path, "rb") as file:
        first = file.readline(len(FIRST) + DIGITS + 16)
        digest, _, length = first[len(FIRST) :].strip().partition(b" ")
        if not first.startswith(b"graphc "):
            raise Damaged(f"{path} is no function that was saved")
        if not first.startswith(FIRST):
            raise Damaged(f"{path} has another version of the format than {FIRST.decode().strip()!r}")
        if not (first.endswith(b"\n") and length.isdigit() and int(length) <= MOST_HEADER):
            raise Damaged(f"{path} is damaged: its first line is not what was written")
        head = file.read(int(length))
        if len(head) != int(length) or digest_of(head) != digest.decode("ascii", "replace"):
            raise Damaged(f"{path} is damaged: its header is not what was written")
        header = import_module("json").loads(head)
        start = -(-(len(first) + len(head)) // ALIGNMENT) * ALIGNMENT
        if os.fstat(file.fileno()).st_size != start + header["bytes"]:
            raise Damaged(f"{path} is damaged: it is not as long as it was written")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return Opened(path, header, content, start)


def restored_function(opened: Opened, header: Mapping[str, Any], recompile: bool) -> Function:
    """Return the function of a row of a file."""
    constants = {digest: opened.array(row) for digest, row in header["constants"].items()}
    kernel = _kernel(opened, header, constants)
    records = [
        In(
            node,
            name=row["name"],
            value=REQUIRED if row["default"] is None else opened.array(row["default"]).copy(),
            mutable=row["mutable"],
            strict=row["strict"],
            allow_downcast=row["allow_downcast"],
        )
        for node, row in zip(kernel.inputs, header["inputs"], strict=True)
    ]
    keys = None if header["keys"] is None else tuple(header["keys"])
    call = Convention(tuple(records), name_positions(records), keys)
    kind = class_of_mode(header["mode"])
    found = _lookup(opened, header, kernel, recompile) if kind is Compiled else None
    made = Compiled(kernel, call, False, found) if found is not None else make_function(kind, kernel, call, False)
    made.name = header["name"]
    return made


def _kernel(opened: Opened, header: Mapping[str, Any], constants: Mapping[str, Array]) -> Kernel:
    """The graph over new leaves, with shared variables of the saved values."""
    frozen = {
        digest: FrozenArray(value, (value.dtype.name, value.shape, digest.encode()))
        for digest, value in constants.items()
    }
    text = bytes(opened.blob(header["graph"])).decode()
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text, frozen)
    rows, updated = header["shared"], header["updated"]
    results = len(graph.outputs) - len(updated) - len(rows)
    leaves, news = graph.outputs[results : results + len(rows)], graph.outputs[results + len(rows) :]
    variables = [
        shared(
            opened.array(row).copy(),
            row["name"],
            strict=row["strict"],
            allow_downcast=row["allow_downcast"],
            shape=tuple(row["sizes"]),
        )
        for row in rows
    ]
    new = substitute([*graph.outputs[:results], *news], dict(zip(leaves, variables, strict=True)))
    for node, row in zip(graph.inputs, header["inputs"], strict=True):
        node.name = row["variable"]
    pairs = zip((variables[place] for place in updated), new[results:], strict=True)
    return Kernel(
        header["kernel"],
        graph.inputs,
        tuple(variables),
        tuple(new[:results]),
        tuple(pairs),
        header["returns"],
        header["threads"],
        tuple(header["mutable"]),
        header["fast_math"],
    )


def _lookup(opened: Opened, header: Mapping[str, Any], kernel: Kernel, recompile: bool) -> Lookup | None:
    """The code in the file that fits this process; None where there is none."""
    key = key_of(kernel)
    for row in header["codes"]:
        if row["fingerprint"] != key.fingerprint or row["settings"] != dict(key.settings):
            continue
        for name, blob in row["parts"].items():
            if name != PARALLEL or row["processors"] == available():
                PROCESS.parts.setdefault(name, bytes(opened.blob(blob)))
        metadata = marshal.loads(opened.blob(row["metadata"]))
        entry = store.Loaded("", metadata, bytes(opened.blob(row["object"])), {}, None)
        report = Report(kernel.name)
        report.key = key.digest
        return Lookup(key, report, entry)
    if not recompile:
        raise CacheMissError(f"{opened.path} has no code for this process\n{_differences(header, key)}")
    return None


def _differences(header: Mapping[str, Any], own: Key) -> str:
    rows: Sequence[Any] = header["codes"]
    lines = [line for row in rows for line in difference(own, Key(own.graph, row["settings"], row["fingerprint"]))]
    return "\n".join(lines) or "  it was saved without code"


HOOKS.save = save
