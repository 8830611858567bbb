"""Functions that are found again by more than their graph: by a text that tells what the graph is made from.

In: a text that decides a graph, and how to make it. Out: the function that an earlier process kept under that text,
whose graph is made only where somebody asks for it. Where writing a graph down takes longer than loading its code, as
it does for a model of PyMC's, most of a warm start goes so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, key_of_text
from graphc.codegen.pipeline.build import Lookup, look_up
from graphc.codegen.pipeline.kernel import Kernel
from graphc.functions.callables import MODES, Function
from graphc.functions.convention import Convention, In, name_positions
from graphc.functions.making import kind_of
from graphc.functions.native import Compiled
from graphc.ir.node import Node
from graphc.options import options
from graphc.startup.record import record

NOTE = "note"
"""Where an entry of the cache keeps what is said with it."""


@record(eq=False)
class Found:
    """What the cache has under a text: the function's name, what `keep` was told with it, the code."""

    name: str
    note: Any
    lookup: Lookup


class Later(Sequence[Node]):
    """Nodes that are made when somebody looks at one."""

    def __init__(self, make: Callable[[], Sequence[Node]]) -> None:
        self.make = make

    @cached_property
    def made(self) -> tuple[Node, ...]:
        return tuple(self.make())

    def __len__(self) -> int:
        return len(self.made)

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Node]: ...
    def __getitem__(self, place: int | slice) -> Node | Sequence[Node]:
        return self.made[place]


def recall(text: str) -> Found | None:
    """What was kept under a text, by this process or another with these options; None where nothing was, where no code
    is compiled now, or where `options.cache` is off."""
    if not compiles():
        return None
    lookup = look_up(Kernel("", (), (), (), (), ""), key_of(text))
    if lookup.entry is None:
        return None
    lookup.report.name = lookup.entry.metadata["name"]
    return Found(lookup.report.name, lookup.entry.metadata[NOTE], lookup)


def function_of(
    found: Found, inputs: Sequence[Node], make: Callable[[], Sequence[Node]], returns: str, threads: int | str | None
) -> Function:
    """The function that was kept, of these inputs. make: gives the outputs, which must be those that the text decides.
    returns: "one" or "list", as it was kept."""
    records = [In(node) for node in inputs]
    outputs: Any = Later(make)
    kernel = Kernel(found.name, tuple(inputs), (), outputs, (), returns, threads, (), options.fast_math)
    return Compiled(kernel, Convention(tuple(records), name_positions(records), None), False, found.lookup)


def keep(text: str, function: Function, note: Any) -> None:
    """Keep a function under a text too, with a note of plain data, for `recall`; nothing where the function is not one
    kernel that the cache has, or has shared variables."""
    if not isinstance(function, Compiled) or function.kernel.shared or not compiles():
        return
    stored = store.find(function.key)
    if stored is not None:
        texts = stored.text("plan") or "", stored.text("source") or ""
        store.store(store.Entry(key_of(text), *texts, {**stored.metadata, NOTE: note}, stored.object))


def compiles() -> bool:
    """Whether functions are compiled, and kept, under the options as they are."""
    return options.cache and MODES[options.mode] == "compiled" and kind_of("compiled") is Compiled


def key_of(text: str) -> Key:
    """The key of a text, which no graph has, under the options that decide which graph is made from it."""
    return key_of_text(text, {"recalled": "True", "fast_math": str(options.fast_math), "floatX": options.floatX})
