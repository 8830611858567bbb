"""Functions as files: the graph, the values, and the machine code, for `f.save(path)` and `graphc.load(path)`.

In: a compiled function. Out: a file from which any process makes the function again, without its source, and without
the compiler where the code in the file fits.

    f.save("model.graphc")
    f = graphc.load("model.graphc")

archive.py has the format. A function is a row of the header: name, convention, the blob of the printed graph, rows of
defaults and large constants, the numbers of its shared variables, and codes (saved_rows.py). A function of trees or of
states has the row of the function within it (saved_wrappers.py).

A code has the fingerprint that entries of the cache have (codegen/cache/key.py): versions, target, processor. The one
for this processor is loaded, else the best for a named target that it runs; without one the function is compiled from
the graph. Every byte is covered by a digest that is checked before the byte is used. So a damaged file is an error. A
file that somebody made on purpose runs what they want: it holds machine code, as a library does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.errors import GraphcError
from graphc.functions.archive import Blobs, Damaged, Opened, blobs_for, open_file, write_file
from graphc.functions.callables import Function
from graphc.functions.saved_rows import plain_row, restored_plain
from graphc.startup.hooks import HOOKS

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
        row: dict[str, Any] = import_module("graphc.functions.saved_wrappers").row_of(function, blobs, function_row)
        return row
    return plain_row(function, blobs)


# Reading


def load(path: str | os.PathLike[str], recompile: bool = True) -> Any:
    """Read a file that `save` wrote. Return a compiled function, a jitted function with all its variants, a trained
    network or an estimator.

    recompile: compile the function from its graph if no code in the file fits this processor and these versions.

    Shared variables are new variables with the saved values. Large constants stay in the file, which is mapped into
    memory. A file contains machine code, and the process runs it: load only files from people whom you trust.

    Raises GraphcError if the file is damaged or is no saved function, or if the file with its values is missing;
    CacheMissError if no code fits and `recompile` is False (the message says what differs); OSError if the file cannot
    be read.

        x = T.dvector("x")
        graphc.function([x], x * 2).save("double.graphc")
        graphc.load("double.graphc")([1.0, 2.0])      # array([2., 4.])
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
        wrapper: Function = import_module("graphc.functions.saved_wrappers").restored(
            opened, header, lambda row: restored_function(opened, row, recompile)
        )
        return wrapper
    return restored_plain(opened, header, recompile)


HOOKS.save = save
