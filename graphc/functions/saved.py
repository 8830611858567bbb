"""Functions as files: the graph, the values, and the machine code, for `f.save(path)`.

In: a compiled function. Out: a file from which any process makes the function again (loaded.py), without its source,
and without the compiler where the code in the file fits.

    f.save("model.graphc")

archive.py has the format. A function is a row of the header: name, convention, the blob of the printed graph, rows of
defaults and large constants, the numbers of its shared variables, and codes. A function of trees or of states has the
row of the function within it (saved_wrappers.py).

    plain_row(f, blobs)     {"name": "f", "graph": 0, "inputs": [...], "shared": [0], "codes": [...], ...}

A code has a fingerprint of what it depends on (codegen/cache/key.py): the target or processor, graphc's version, and
the sources by which code and the process that loads it agree. It is not that of an entry of the cache: a file keeps its
code through an edit or an upgrade of what compiles.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from importlib import import_module
from os.path import basename
from typing import Any

from graphc.codegen.cache.store import MARSHAL_VERSION
from graphc.codegen.pipeline.restore import large_constants
from graphc.errors import GraphcError
from graphc.functions.archive import Blobs, Place, blobs_for, is_open, path_of, write_file
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.functions.saved_rows import code_row, input_row
from graphc.ir.body import nodes_within
from graphc.ir.text import all_in_order, graph_key_text
from graphc.ir.walk import Graph, node_set
from graphc.ops.custom import OWN
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS


def save(function: Function, path: Place, values: str, targets: Sequence[str]) -> None:
    """Write a function to a file, atomically. `Function.save` tells more."""
    blobs = blobs_for(values)
    write(path, {"kind": "function", "function": function_row(function, blobs)}, blobs, targets)


def write(path: Place, header: Mapping[str, Any], blobs: Blobs, targets: Sequence[str]) -> None:
    """Write a file whose header has rows of functions, with code also for named targets."""
    if targets and is_open(path):
        raise GraphcError("targets: other processes compile from the file: give its path")
    write_file(path, header, blobs)
    if targets:
        import_module("graphc.functions.saved_targets").add_targets(path_of(path), header, blobs, targets)


def function_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function, whose blobs are added."""
    function = function.finished()
    if hasattr(function, "whole"):
        row: dict[str, Any] = import_module("graphc.functions.saved_wrappers").row_of(function, blobs, function_row)
        return row
    return plain_row(function, blobs)


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
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    return {
        "name": function.name,
        "kernel": kernel.name,
        "mode": function.mode,
        "graph": blobs.add(graph_key_text(kernel.whole).encode()),
        "lines": blobs.add(lines_of(kernel.whole)),
        "results": len(kernel.outputs),
        "returns": kernel.returns,
        "threads": kernel.threads,
        "mutable": list(kernel.mutable),
        "fast_math": kernel.is_fast,
        "inputs": [input_row(item, blobs) for item in function.call.inputs],
        "keys": None if function.call.keys is None else list(function.call.keys),
        "shared": [blobs.add_variable(leaf) for leaf in variables],
        "updated": [places[leaf] for leaf in kernel.updated],
        "constants": {digest: blobs.add_value(value) for digest, value in large_constants(kernel).items()},
        "codes": [code] if isinstance(function, Compiled) and (code := code_row(function.key, blobs)) else [],
    }


def lines_of(graph: Graph) -> bytes:
    """Return what messages say of the nodes of a graph, in order: the names of files, and for each node its name, the
    number of its file, its line, whether a derivative was taken there, and the wording of a check; the name alone where
    no line is known."""
    nodes = [*all_in_order(graph)]
    files = {name: n for n, name in enumerate(dict.fromkeys(basename(each.where.file) for each in nodes if each.where))}
    rows: list[tuple[Any, ...]] = []
    for node in nodes:
        where, words = node.where, node.where and node.where.words
        place = (files[basename(where.file)], where.line, where.derivative) if where else ()
        rows.append((node.name, *place, *((str(words.message), words.turned) if words else ())))
    return marshal.dumps(([*files], rows), MARSHAL_VERSION)


def _is_plain(function: Function) -> bool:
    return function.kind is type(function) or isinstance(function, Compiled) or hasattr(function, "stages")


HOOKS.save = save
