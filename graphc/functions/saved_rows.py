"""Functions of one kernel as rows of files (saved.py): the graph, the values and the machine code.

In: a function without trees and states, blobs. Out: a row of the header; from such a row the function, with the best
code that the file has for this process.

    plain_row(f, blobs)     {"name": "f", "graph": 0, "inputs": [...], "shared": [0], "codes": [...], ...}
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, difference, for_target
from graphc.codegen.llvm.cpu import runnable
from graphc.codegen.pipeline.build import Lookup, codes, key_of, large_constants, product_parts
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.runtime import part_code
from graphc.codegen.threads.chunking import PARALLEL
from graphc.errors import CacheMissError, GraphcError
from graphc.functions.archive import Blobs, Opened
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
from graphc.options import NATIVE, options
from graphc.shared import SharedVariable
from graphc.startup.process import PROCESS

# Writing


def plain_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function of one kernel or of several stages, whose blobs are added."""
    if type(function).graph is not Function.graph or not _is_plain(function):
        raise GraphcError(f"{function.label}: a function of a checking mode cannot be saved; pickle it")
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
        "inputs": [input_row(item, blobs) for item in function.call.inputs],
        "keys": None if function.call.keys is None else list(function.call.keys),
        "shared": [blobs.add_variable(leaf) for leaf in variables],
        "updated": [places[leaf] for leaf, _ in kernel.updates],
        "constants": {digest: blobs.add_value(value) for digest, value in large_constants(kernel).items()},
        "codes": [code] if isinstance(function, Compiled) and (code := code_row(function.key, blobs)) else [],
    }


def _is_plain(function: Function) -> bool:
    return function.kind is type(function) or isinstance(function, Compiled) or hasattr(function, "stages")


def input_row(item: In, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of an input with a value or none."""
    default = None if item.value is REQUIRED else blobs.add_array(np.asarray(item.value, item.variable.type.dtype))
    return {
        "name": item.name,
        "variable": item.variable.name,
        "default": default,
        "mutable": bool(item.mutable),
        "strict": item.strict,
        "allow_downcast": item.allow_downcast,
    }


def code_row(key: Key, blobs: Blobs) -> dict[str, Any] | None:
    """Return what the header says of the machine code under a key; None where it is no longer to be had."""
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
    }


# Reading


def restored_plain(opened: Opened, header: Mapping[str, Any], recompile: bool) -> Function:
    """Return the function of such a row."""
    kernel = kernel_of(opened, header)
    records = [record_of(opened, node, row) for node, row in zip(kernel.inputs, header["inputs"], strict=True)]
    keys = None if header["keys"] is None else tuple(header["keys"])
    call = Convention(tuple(records), name_positions(records), keys)
    kind = class_of_mode(header["mode"])
    found = _lookup(opened, header, kernel, recompile) if kind is Compiled else None
    made = Compiled(kernel, call, False, found) if found is not None else make_function(kind, kernel, call, False)
    made.name = header["name"]
    return made


def record_of(opened: Opened, variable: Any, row: Mapping[str, Any]) -> In:
    """Return the input of a row."""
    return In(
        variable,
        name=row["name"],
        value=REQUIRED if row["default"] is None else opened.array(row["default"]).copy(),
        mutable=row["mutable"],
        strict=row["strict"],
        allow_downcast=row["allow_downcast"],
    )


def kernel_of(opened: Opened, header: Mapping[str, Any]) -> Kernel:
    """Return the graph of a row over new leaves, and shared variables of the saved values."""
    constants: dict[str, Array] = {digest: opened.array(row) for digest, row in header["constants"].items()}
    frozen = {
        digest: FrozenArray(value, (value.dtype.name, value.shape, digest.encode()))
        for digest, value in constants.items()
    }
    text = bytes(opened.blob(header["graph"])).decode()
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text, frozen)
    numbers, updated = header["shared"], header["updated"]
    results = len(graph.outputs) - len(updated) - len(numbers)
    leaves, news = graph.outputs[results : results + len(numbers)], graph.outputs[results + len(numbers) :]
    variables = [opened.variable(number) for number in numbers]
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
    """The best code in the file for this process, None where there is none. Which one is known before any is read."""
    key = key_of(kernel)
    rows = [row for row in header["codes"] if row["settings"] == dict(key.settings)]
    for fitting in _fingerprints(key):
        for row in rows:
            if row["fingerprint"] == fitting:
                return _taken(opened, row, key)
    if not recompile:
        raise CacheMissError(f"{opened.path} has no code for this process\n{_differences(header, key)}")
    return None


def _fingerprints(key: Key) -> Iterator[str]:
    """The fingerprints of code that this process runs, the best first."""
    yield key.fingerprint
    if options.target == NATIVE:
        yield from (for_target(key, target).fingerprint for target in runnable())


def _taken(opened: Opened, row: Mapping[str, Any], key: Key) -> Lookup:
    """The code of a row, as if the cache had it."""
    for name, blob in row["parts"].items():
        PROCESS.parts.setdefault(name, bytes(opened.blob(blob)))
    metadata = marshal.loads(opened.blob(row["metadata"]))
    entry = store.Loaded("", metadata, bytes(opened.blob(row["object"])), {}, None)
    report = Report(key.settings["name"])
    report.key = key.digest
    return Lookup(key, report, entry)


def _differences(header: Mapping[str, Any], own: Key) -> str:
    rows: Sequence[Any] = header["codes"]
    lines = [line for row in rows for line in difference(own, Key(own.graph, row["settings"], row["fingerprint"]))]
    return "\n".join(lines) or "  it was saved without code"
