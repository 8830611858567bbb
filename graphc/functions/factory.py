"""Construction of functions: from a kernel in a mode, and from a pickle.

In: a `Kernel`, a `Convention` and the class of the mode. Out: a `Function`: of that class, or a wrapper of several
(wrappers.py).

    class_of_mode("compiled")               Compiled
    make_function(Compiled, kernel, ...)    Compiled; Staged where sizes follow from values; Counted with a profile
                                            where there are loops; Interpreted, with a warning, where neither can be
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from graphc.codegen.pipeline.build import look_up, stages_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.codegen.pipeline.restore import codes
from graphc.errors import StepSizeError
from graphc.functions.callables import Function, FunctionRequest, Interpreted, Mode
from graphc.functions.convention import Convention
from graphc.functions.lowered import Generated, Lowered
from graphc.functions.native import Compiled, Guarded
from graphc.ir.source_lines import warn_user
from graphc.ir.walk import node_set
from graphc.ops.scan import SCAN
from graphc.options import BACKGROUND, options
from graphc.startup.process import PROCESS


def make_function(
    kind: Callable[[Kernel, Convention, bool], Function], kernel: Kernel, call: Convention, profile: bool
) -> Function:
    """Return the function of a kernel.

    kind: the class of a mode, or the constructor of a mode that looks at values (debug_modes.py), which is called as it
    is. Of a class: a function of several stages where sizes follow from values that must be computed first; with a
    profile, one that counts the iterations of its loops, where it has loops.
    """
    if not isinstance(kind, type):
        return kind(kernel, call, profile)
    if profile and any(node.op is SCAN for node in node_set(kernel.results)):
        counted: Function = import_module("graphc.functions.wrappers").Counted(kernel, call, kind, make_function)
        return counted
    try:
        return _construct(kind, kernel, call, profile)
    except StepSizeError as error:
        warn_user(f"{error}: {kernel.name} runs in the interpreted mode", RuntimeWarning)
        return Interpreted(kernel, call, profile)


def _construct(
    kind: type[Function], kernel: Kernel, call: Convention, profile: bool, is_asked: bool = True
) -> Function:
    """Return the function of a kernel. is_asked: others may make it instead, interpreted until it is compiled."""
    stages: tuple[Kernel, ...] = (kernel,)
    if issubclass(kind, Compiled):
        found = look_up(kernel)
        if found.entry is None:
            stages = stages_of(kernel)
        if kind is Compiled and (PROCESS.planner is not None or options.compile == BACKGROUND):
            make = partial(_construct, kind, kernel, call, False, is_asked=False)
            wanted = FunctionRequest(kernel, call, profile, stages, found.key, found.entry is not None, make)
            instead = _instead(wanted) if is_asked else None
            if instead is not None:
                return instead
        if stages[0] is kernel:
            return kind(kernel, call, profile, found)
    elif not issubclass(kind, Lowered) or (stages := stages_of(kernel))[0] is kernel:
        return kind(kernel, call, profile)
    made: Function = import_module("graphc.functions.wrappers").Staged(kernel, call, profile, stages, kind)
    return made


def _instead(wanted: FunctionRequest) -> Function | None:
    """Return a function that is not compiled here and now; None where the usual one is to be made."""
    if PROCESS.planner is not None:
        planned: Function | None = PROCESS.planner(wanted)
        return planned
    if wanted.is_cached or wanted.key.digest in codes():
        return None
    made: Function | None = import_module("graphc.functions.background").begun(wanted)
    return made


def packed(kernel: Kernel) -> tuple[Any, ...]:
    """Return a kernel as values that can be pickled. The graph is one of them, so that shared nodes stay shared."""
    graph = import_module("graphc.ir.pickling").pack([*kernel.inputs, *kernel.shared, *kernel.results])
    counts = (len(kernel.inputs), len(kernel.shared), len(kernel.outputs))
    updated = tuple(kernel.shared.index(leaf) for leaf, _ in kernel.updates)
    return kernel.name, graph, counts, updated, kernel.returns, kernel.threads, kernel.mutable


def restored(
    mode: Mode, fields: tuple[Any, ...], call: Convention, profile: bool, name: str, trust_input: bool = False
) -> Function:
    """Rebuild a function from its pickle; `fields` are those of `packed`."""
    function = make_function(class_of_mode(mode), restored_kernel(fields), call, profile)
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
    kinds: dict[Mode, type[Function]] = {"compiled": native, "interpreted": Interpreted, "python": Generated}
    return kinds[mode]
