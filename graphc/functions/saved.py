"""Functions as files: the graph, the values, and the machine code, for `f.save(path)`.

In: a compiled function. Out: a file from which any process makes the function again (loaded.py), without its source,
and without the compiler where the code in the file fits.

    f.save("model.graphc")
    f.save("model.graphc", targets=["haswell"])    another process for each target compiles the functions of the file

archive.py has the format. A function is a row of the header: name, convention, the blob of the printed graph, rows of
defaults and large constants, the numbers of its shared variables, and codes. A function of trees or of states has the
row of the function within it, "whole", and the trees or the states.

    plain_row(f, blobs)     {"name": "f", "graph": 0, "inputs": [...], "shared": [0], "codes": [...], ...}

A code has a fingerprint of what it depends on (codegen/cache/key.py): the target or processor, graphc's version, and
the sources by which code and the process that loads it agree. It is not that of an entry of the cache: a file keeps its
code through an edit or an upgrade of what compiles.
"""

from __future__ import annotations

import marshal
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from os.path import basename
from typing import Any

import numpy as np

from graphc.codegen.cache import files, store
from graphc.codegen.cache.key import Key, made_of
from graphc.codegen.llvm.cpu import NAMED
from graphc.codegen.pipeline.background import apply_options, command, complaint, settings_for
from graphc.codegen.pipeline.build import build_native, look_up
from graphc.codegen.pipeline.restore import codes, large_constants
from graphc.codegen.pipeline.runtime import part_code
from graphc.codegen.threads.settings import PARALLEL
from graphc.errors import CompileError, GraphcError
from graphc.functions.archive import Blobs, Opened, Place, blobs_for, encoded, is_open, open_file, path_of, write_file
from graphc.functions.callables import Function
from graphc.functions.convention import REQUIRED, In
from graphc.functions.loaded import kernel_of
from graphc.functions.native import Compiled
from graphc.functions.states import Stateful
from graphc.functions.wrappers import Nested
from graphc.ir.body import nodes_within
from graphc.ir.node import Node, size_owner
from graphc.ir.text import all_in_order, graph_key_text
from graphc.ir.walk import Graph, node_set
from graphc.ops.custom import OWN
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.startup.record import replace


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
        add_targets(path_of(path), header, blobs, targets)


def function_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function, whose blobs are added."""
    function = function.finished()
    return wrapper_row(function, blobs) if hasattr(function, "whole") else plain_row(function, blobs)


def plain_row(function: Function, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function of one kernel or of several stages, whose blobs are added."""
    is_plain = function.kind is type(function) or isinstance(function, Compiled) or hasattr(function, "stages")
    if type(function).graph is not Function.graph or not is_plain:
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
    return marshal.dumps(([*files], rows), store.MARSHAL_VERSION)


def input_row(item: In, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of an input with a value or none."""
    default = None if item.value is REQUIRED else blobs.add_array(np.asarray(item.value, item.variable.type.dtype))
    return {
        "name": item.name,
        "variable": item.variable.name,
        "type": _type_row(item.variable),
        "default": default,
        "mutable": bool(item.mutable),
        "strict": item.strict,
        "allow_downcast": item.allow_downcast,
    }


def _type_row(leaf: Node) -> list[Any] | None:
    """Return the dtype of an input, and its sizes with None for those of its own; None where a size is of others."""
    sizes = [(axis, size) for axis, size in enumerate(leaf.type.shape) if isinstance(size, Node)]
    own = all(size_owner(size) is leaf and size.attrs["axis"] == axis for axis, size in sizes)
    return [leaf.type.dtype, [size if isinstance(size, int) else None for size in leaf.type.shape]] if own else None


def wrapper_row(function: Any, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of a function that delegates to another, whose row is in it as "whole"."""
    if isinstance(function, Nested):
        what = function.label
        return {
            "whole": function_row(function.whole, blobs),
            "trees": [encoded(tree, f"{what}, its arguments") for tree in function.trees],
            "names": list(function.names),
            "form": encoded(function.form, f"{what}, its results"),
        }
    if isinstance(function, Stateful):
        numbers = {place: blobs.add_variable(leaf) for place, leaf in function.states.items()}
        return {
            "whole": function_row(function.whole, blobs),
            "name": function.name,
            "inputs": [_input(item, place in numbers, blobs) for place, item in enumerate(function.call.inputs)],
            "states": list(numbers.items()),
        }
    raise GraphcError(f"{function.label}: a function with a profile of its loops cannot be saved; make it without")


def _input(item: In, is_state: bool, blobs: Blobs) -> dict[str, Any]:
    """Return what the header says of an input of a function with states, which gets containers of its own."""
    holds = hasattr(item.value, "storage")
    row = input_row(replace(item, value=REQUIRED) if holds else item, blobs)
    kind = item.variable.type
    return {
        **row,
        "autoname": item.autoname,
        "implicit": item.implicit,
        "is_updated": item.update is not None,
        "holds": holds,
        "type": [kind.dtype, [size if isinstance(size, int) else None for size in kind.shape]] if is_state else None,
    }


def code_row(key: Key, blobs: Blobs) -> dict[str, Any] | None:
    """Return what the header says of the machine code under a key; None where it is no longer to be had."""
    entry, living = store.find(key), codes().get(key.digest)
    metadata = entry.metadata if entry is not None else living.metadata if living is not None else None
    code = entry.object if entry is not None else living.object if living is not None else b""
    if metadata is None or not code:
        return None
    products = metadata["products"]
    names = [PARALLEL] if metadata["parallel"] else []
    if products:
        names = import_module("graphc.codegen.pipeline.runtime").product_parts(products)
    return {
        "fingerprint": made_of(key.fingerprint),
        "settings": dict(key.settings),
        "metadata": blobs.add(marshal.dumps(dict(metadata), store.MARSHAL_VERSION)),
        "object": blobs.add(code),
        "parts": {name: blobs.add(part_code(name)) for name in dict.fromkeys(names)},
    }


# --- code for several targets -----------------------------------------------------------------------------------------


def add_targets(path: str, header: Mapping[str, Any], blobs: Blobs, targets: Sequence[str]) -> None:
    """Compile the functions of a file for targets, and write it anew with their code. Raises GraphcError for a name
    that is no target, CompileError where a process fails."""
    for target in targets:
        if target not in NAMED:
            raise GraphcError(f"targets: {target!r} is no target; these are {', '.join(NAMED)}")
    for target in targets:
        made = files.aside(path)
        try:
            done = subprocess.run(
                command(__name__),
                input=pickle.dumps((settings_for(target), path, made)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
            if done.returncode:
                said = complaint(done.stderr) or done.returncode
                raise CompileError(f"{path} cannot be compiled for {target}: {said}")
            opened = open_file(made)
            for row, code in zip(rows_of(header), opened.header["codes"], strict=True):
                if code is not None:
                    row["codes"].append(_moved(code, opened, blobs))
        finally:
            if os.path.exists(made):
                os.unlink(made)
    write_file(path, header, blobs)


def _moved(code: Mapping[str, Any], opened: Opened, blobs: Blobs) -> dict[str, Any]:
    """Add the blobs of a code, and return its row with their new numbers."""

    def moved(number: int) -> int:
        return blobs.add(bytes(opened.blob(number)))

    parts = {name: moved(number) for name, number in code["parts"].items()}
    return {**code, "metadata": moved(code["metadata"]), "object": moved(code["object"]), "parts": parts}


def rows_of(header: Any) -> Iterator[Any]:
    """Yield the rows of functions in a header, in order."""
    if isinstance(header, Mapping):
        if "codes" in header and "graph" in header:
            yield header
        else:
            for value in header.values():
                yield from rows_of(value)
    elif isinstance(header, list):
        for value in header:
            yield from rows_of(value)


def main() -> None:
    """In the process: compile the functions of a file for the target, and write their code to another one."""
    settings, path, made = pickle.load(sys.stdin.buffer)
    apply_options(settings)
    opened, blobs = open_file(path), Blobs()
    codes = []
    for row in rows_of(opened.header):
        code = None
        if row["mode"] == "compiled" and row["codes"]:
            kernel = kernel_of(opened, row)
            found = look_up(kernel)
            kept = build_native(kernel, found)  # which lives until its code is in the file
            code = code_row(found.key, blobs)
            del kept
        codes.append(code)
    write_file(made, {"kind": "codes", "codes": codes}, blobs)


HOOKS.save = save
