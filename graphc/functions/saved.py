"""Functions as files: the graph, the values, and the machine code, for `f.save(path)` and `graphc.load(path)`.

In: a compiled function. Out: a file from which any process makes the function again, without its source, and without
the compiler where the code in the file fits.

    f.save("model.graphc")
    f = graphc.load("model.graphc")

archive.py has the format. A function is a row of the header: name, convention, the blob of the printed graph, rows of
defaults and large constants, the numbers of its shared variables, and codes. A function of trees or of states has the
row of the function within it (saved_wrappers.py).

A code has the fingerprint that entries of the cache have (codegen/cache/key.py): versions, target, processor. The one
for this processor is loaded, else the best for a named target that it runs; without one the function is compiled from
the graph. Every byte is covered by a digest that is checked before the byte is used. So a damaged file is an error. A
file that somebody made on purpose runs what they want: it holds machine code, as a library does.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, difference, for_target
from graphc.codegen.llvm.cpu import runnable
from graphc.codegen.pipeline.build import Lookup, codes, key_of, large_constants, product_parts
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.runtime import available, part_code
from graphc.codegen.threads.chunking import PARALLEL
from graphc.errors import CacheMissError, GraphcError
from graphc.functions.archive import Blobs, Damaged, Opened, blobs_for, open_file, write_file
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
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS

WRAPPERS = "graphc.functions.saved_wrappers"
"""The module of functions of trees and of states, which few files have."""


# Writing


def save(function: Function, path: str | os.PathLike[str], values: str, targets: Sequence[str]) -> None:
    """Write a function to a file, atomically. `Function.save` tells more."""
    blobs = blobs_for(values)
    write(path, {"kind": "function", "function": function_row(function, blobs)}, blobs, targets)


def write(path: str | os.PathLike[str], header: Mapping[str, Any], blobs: Blobs, targets: Sequence[str]) -> None:
    """Write a file whose header has rows of functions, with code also for named targets."""
    place = os.fspath(path)
    write_file(place, header, blobs)
    if targets:
        import_module("graphc.functions.saved_targets").add_targets(place, header, blobs, targets)


def function_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function, whose blobs are added."""
    function = function.finished()
    if hasattr(function, "whole"):
        row: dict[str, Any] = import_module(WRAPPERS).row_of(function, blobs)
        return row
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
        "processors": available(),
    }


# Reading


def load(path: str | os.PathLike[str], recompile: bool = True) -> Any:
    """Return what was saved: a compiled function, a jitted one with all its variants, a trained network or estimator.

    Shared variables are new ones with the values that they had; large constants stay in the file, which is mapped into
    memory. Where no code in the file fits this processor and these versions, the function is compiled from its graph;
    with recompile=False that is a CacheMissError, which says what differs. Raises GraphcError for a file that is
    damaged or no saved function, OSError for one that cannot be read. A file holds machine code that will be run: take
    it from people you trust.

        f.save("model.graphc")
        g = graphc.load("model.graphc")
    """
    opened = open_file(os.fspath(path))
    try:
        return restored(opened, recompile)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, GraphcError):
            raise
        raise Damaged(f"{opened.path} is damaged: {type(error).__name__}: {error}") from error


def restored(opened: Opened, recompile: bool) -> Any:
    """Return what a file holds, by its kind."""
    kind = opened.header["kind"]
    if kind == "function":
        return restored_function(opened, opened.header["function"], recompile)
    if kind == "jitted":
        return HOOKS.restored_jitted(opened, recompile)
    if kind in ("network", "estimator"):
        return HOOKS.restored_network(opened, recompile)
    raise Damaged(f"{opened.path} is a file of {kind}, not of a function")


def restored_function(opened: Opened, header: Mapping[str, Any], recompile: bool) -> Function:
    """Return the function of a row of a file."""
    if "whole" in header:
        wrapper: Function = import_module(WRAPPERS).restored(opened, header, recompile)
        return wrapper
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
        if name != PARALLEL or row["processors"] == available():
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


HOOKS.save = save
