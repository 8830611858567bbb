"""Construction of functions: from a kernel in a mode, from a pickle, and from code in the cache under a text.

In: a `Kernel`, a `Convention` and the class of the mode. Out: a `Function`: of that class, or a wrapper of several
(wrappers.py).

    class_of_mode("compiled")               Compiled
    make_function(Compiled, kernel, ...)    Compiled; Staged where sizes follow from values; Counted with a profile
                                            where there are loops; Interpreted, with a warning, where neither can be

The usual key of the cache is the printed graph, so that the graph must be built before its code is found. For a PyMC
model that takes most of a warm start. There the key is a text that determines the graph (pymc/model.py), and the
graph is built only when somebody looks at it:

    store_code("model 1", f, note={"size": 3})     in one process: the code of f, under the text
    found = find_code("model 1")                   in another: the name of f, the note, the code; None without
    load_code(found, inputs, make_outputs, "list", None)     a function; make_outputs() runs when f.graph is asked for
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from graphc.codegen.cache import store as entries
from graphc.codegen.cache.key import Key, key_of_text
from graphc.codegen.pipeline.build import look_up, stages_of
from graphc.codegen.pipeline.kernel import Kernel, LazySequence
from graphc.codegen.pipeline.restore import Lookup, codes
from graphc.errors import StepSizeError
from graphc.functions.callables import MODES, Function, FunctionRequest, Interpreted, Mode
from graphc.functions.convention import Convention, In, name_positions
from graphc.functions.native import Compiled, Generated, Guarded, Lowered
from graphc.ir.node import Node
from graphc.ir.source_lines import warn_user
from graphc.ir.walk import node_set
from graphc.ops.scan import SCAN
from graphc.options import BACKGROUND, options
from graphc.startup.process import PROCESS
from graphc.startup.record import record


def make_function(
    class_: Callable[[Kernel, Convention, bool], Function], kernel: Kernel, call: Convention, profile: bool
) -> Function:
    """Return the function of a kernel.

    kind: the class of a mode, or the constructor of a mode that looks at values (debug_modes.py), which is called as it
    is. Of a class: a function of several stages where sizes follow from values that must be computed first; with a
    profile, one that counts the iterations of its loops, where it has loops.
    """
    if not isinstance(class_, type):
        return class_(kernel, call, profile)
    if profile and any(node.op is SCAN for node in node_set(kernel.results)):
        return import_module("graphc.functions.wrappers").Counted(kernel, call, class_, make_function)
    try:
        return _construct(class_, kernel, call, profile)
    except StepSizeError as error:
        warn_user(f"{error}: {kernel.name} runs in the interpreted mode", RuntimeWarning)
        return Interpreted(kernel, call, profile)


def _construct(
    class_: type[Function], kernel: Kernel, call: Convention, profile: bool, is_asked: bool = True
) -> Function:
    """Return the function of a kernel. is_asked: others may make it instead, interpreted until it is compiled."""
    stages: tuple[Kernel, ...] = (kernel,)
    if issubclass(class_, Compiled):
        found = look_up(kernel)
        if found.entry is None:
            stages = stages_of(kernel)
        if class_ is Compiled and (PROCESS.planner is not None or options.compile == BACKGROUND):
            make = partial(_construct, class_, kernel, call, False, is_asked=False)
            wanted = FunctionRequest(kernel, call, profile, stages, found.key, found.entry is not None, make)
            instead = _instead(wanted) if is_asked else None
            if instead is not None:
                return instead
        if stages[0] is kernel:
            return class_(kernel, call, profile, found)
    elif not issubclass(class_, Lowered) or (stages := stages_of(kernel))[0] is kernel:
        return class_(kernel, call, profile)
    return import_module("graphc.functions.wrappers").Staged(kernel, call, profile, stages, class_)


def _instead(wanted: FunctionRequest) -> Function | None:
    """Return a function that is not compiled here and now; None where the usual one is to be made."""
    if PROCESS.planner is not None:
        return PROCESS.planner(wanted)
    if wanted.is_cached or wanted.key.digest in codes():
        return None
    return import_module("graphc.functions.background").begun(wanted)


def packed(kernel: Kernel) -> tuple[Any, ...]:
    """Return a kernel as values that can be pickled. The graph is one of them, so that shared nodes stay shared."""
    graph = import_module("graphc.ir.pickling").pack([*kernel.inputs, *kernel.shared, *kernel.results])
    counts = (len(kernel.inputs), len(kernel.shared), len(kernel.outputs))
    updated = tuple(kernel.shared.index(leaf) for leaf, _ in kernel.updates)
    return kernel.name, graph, counts, updated, kernel.returns, kernel.threads, kernel.mutable


def restored(
    mode: Any, fields: tuple[Any, ...], call: Convention, profile: bool, name: str, trust_input: bool = False
) -> Function:
    """Rebuild a function from its pickle. mode: its name, or a mode that checks values. fields: those of `packed`."""
    class_ = class_of_mode(mode) if isinstance(mode, str) else mode.make_function  # type: ignore[arg-type]
    function = make_function(class_, restored_kernel(fields), call, profile)
    function.name, function.trust_input = name, trust_input
    return function


def restored_kernel(fields: tuple[Any, ...]) -> Kernel:
    """The inverse of `packed`."""
    shown, graph, (inputs, shared, outputs), updated, returns, threads, mutable = fields
    nodes = tuple(import_module("graphc.ir.pickling").unpack(graph))
    leaves, variables, results = nodes[:inputs], nodes[inputs : inputs + shared], nodes[inputs + shared :]
    updates = tuple(zip((variables[number] for number in updated), results[outputs:], strict=True))
    return Kernel(shown, leaves, variables, results[:outputs], updates, returns, threads, mutable)


def class_of_mode(mode: Mode) -> type[Function]:
    """The class of functions in a mode."""
    native = Guarded if options.poison == "guard" else Compiled
    classes: dict[Mode, type[Function]] = {"compiled": native, "interpreted": Interpreted, "python": Generated}
    return classes[mode]


# --- functions of cached code -----------------------------------------------------------------------------------------


NOTE = "note"
"""The key of the note in the metadata of an entry."""


@record(eq=False)
class CachedCode:
    """An entry of the cache under a text: the function's name, the note given to `store`, the code."""

    name: str
    note: Any
    lookup: Lookup


def find_code(text: str) -> CachedCode | None:
    """Return the entry that any process stored under a text with the same options. None where there is none, where
    functions are not compiled, and where `options.cache` is off."""
    if not _uses_cache():
        return None
    lookup = look_up(Kernel("", (), (), (), (), ""), key_of(text))
    if lookup.entry is None:
        return None
    lookup.report.name = lookup.entry.metadata["name"]
    return CachedCode(lookup.report.name, lookup.entry.metadata[NOTE], lookup)


def load_code(
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


def store_code(text: str, function: Function, note: Any) -> None:
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
    return options.cache and MODES.get(options.mode) == "compiled" and class_of_mode("compiled") is Compiled


def key_of(text: str) -> Key:
    """The key of a text, with the options that influence the building of graphs. No printed graph has this key."""
    return key_of_text(text, {"recalled": "True", "fast_math": str(options.fast_math), "floatX": options.floatX})
