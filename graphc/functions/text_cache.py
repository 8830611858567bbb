"""Compiled functions in the cache under a text that identifies the source of their graph.

The usual key of the cache is the printed graph, so that the graph must be built before its code is found. For a PyMC
model that takes most of a warm start. Here the key is a text that determines the graph (pymc/identity.py), and the
graph is built only when somebody looks at it.

    store("model 1", f, note={"size": 3})     in one process: the code of f, under the text
    found = find("model 1")                   in another: the name of f, the note, the code; None where there is none
    load(found, inputs, make_outputs, "list", None)      a function; make_outputs() runs when f.graph is asked for
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.codegen.cache import store as entries
from graphc.codegen.cache.key import Key, key_of_text
from graphc.codegen.pipeline.build import look_up
from graphc.codegen.pipeline.kernel import Kernel, LazySequence
from graphc.codegen.pipeline.restore import Lookup
from graphc.functions.callables import MODES, Function
from graphc.functions.convention import Convention, In, name_positions
from graphc.functions.factory import class_of_mode
from graphc.functions.native import Compiled
from graphc.ir.node import Node
from graphc.options import options
from graphc.startup.record import record

NOTE = "note"
"""The key of the note in the metadata of an entry."""


@record(eq=False)
class CachedCode:
    """An entry of the cache under a text: the function's name, the note given to `store`, the code."""

    name: str
    note: Any
    lookup: Lookup


def find(text: str) -> CachedCode | None:
    """Return the entry that any process stored under a text with the same options. None where there is none, where
    functions are not compiled, and where `options.cache` is off."""
    if not _uses_cache():
        return None
    lookup = look_up(Kernel("", (), (), (), (), ""), key_of(text))
    if lookup.entry is None:
        return None
    lookup.report.name = lookup.entry.metadata["name"]
    return CachedCode(lookup.report.name, lookup.entry.metadata[NOTE], lookup)


def load(
    found: CachedCode,
    inputs: Sequence[Node],
    make: Callable[[], Sequence[Node]],
    returns: str,
    threads: int | str | None,
) -> Function:
    """Return the function of an entry over new inputs. make: builds the outputs, which must be those that the text
    identifies. returns: "one" or "list", as in the function that was stored."""
    records = [In(node) for node in inputs]
    outputs: Any = LazySequence(make)
    kernel = Kernel(found.name, tuple(inputs), (), outputs, (), returns, threads, (), options.fast_math)
    return Compiled(kernel, Convention(tuple(records), name_positions(records), None), False, found.lookup)


def store(text: str, function: Function, note: Any) -> None:
    """Store the code of a function under a text too, with a note of plain data. Does nothing for a function of several
    kernels or of shared variables, and for one that is not in the cache."""
    if not isinstance(function, Compiled) or function.kernel.shared or not _uses_cache():
        return
    stored = entries.find(function.key)
    if stored is not None:
        texts = stored.text("plan") or "", stored.text("source") or ""
        entries.store(entries.Entry(key_of(text), *texts, {**stored.metadata, NOTE: note}, stored.object))


def _uses_cache() -> bool:
    """True where the options let functions be compiled and cached."""
    return options.cache and MODES[options.mode] == "compiled" and class_of_mode("compiled") is Compiled


def key_of(text: str) -> Key:
    """The key of a text, with the options that influence the building of graphs. No printed graph has this key."""
    return key_of_text(text, {"recalled": "True", "fast_math": str(options.fast_math), "floatX": options.floatX})
