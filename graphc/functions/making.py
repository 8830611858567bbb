"""How functions are made: in a mode, of one stage or several, anew from a pickle.

In: a `Kernel`, a `Convention` and a mode. Out: a `Function` of the class that the mode has.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from graphc.codegen.pipeline.build import look_up, stages_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import StepSizeError
from graphc.functions.callables import Function, Interpreted, Mode
from graphc.functions.convention import Convention
from graphc.functions.lowered import Generated, Lowered
from graphc.functions.native import Compiled, Guarded
from graphc.ir.source_lines import warn_user
from graphc.ir.walk import node_set
from graphc.ops.scan import SCAN
from graphc.options import options


def make_function(
    kind: Callable[[Kernel, Convention, bool], Function], kernel: Kernel, call: Convention, profile: bool
) -> Function:
    """A function of this kind; of several stages where sizes follow from values that have to be computed. With a
    profile one that counts the steps of its loops, where it has any. What is no class makes the function itself."""
    if not isinstance(kind, type):
        return kind(kernel, call, profile)
    if profile and any(node.op is SCAN for node in node_set(kernel.results)):
        counted: Function = import_module("graphc.functions.wrapped").Counted(kernel, call, kind, make_function)
        return counted
    try:
        return _made(kind, kernel, call, profile)
    except StepSizeError as error:
        warn_user(f"{error}: {kernel.name} runs in the interpreted mode", RuntimeWarning)
        return Interpreted(kernel, call, profile)


def _made(kind: type[Function], kernel: Kernel, call: Convention, profile: bool) -> Function:
    stages: tuple[Kernel, ...] = (kernel,)
    if issubclass(kind, Compiled):
        found = look_up(kernel)
        if found.entry is not None or (stages := stages_of(kernel))[0] is kernel:
            return kind(kernel, call, profile, found)
    elif not issubclass(kind, Lowered) or (stages := stages_of(kernel))[0] is kernel:
        return kind(kernel, call, profile)
    made: Function = import_module("graphc.functions.wrapped").Staged(kernel, call, profile, stages, kind)
    return made


def packed(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel as values that can be pickled, its graph in one piece."""
    graph = import_module("graphc.ir.pickling").pack([*kernel.inputs, *kernel.shared, *kernel.results])
    counts = (len(kernel.inputs), len(kernel.shared), len(kernel.outputs))
    updated = tuple(kernel.shared.index(leaf) for leaf, _ in kernel.updates)
    return kernel.name, graph, counts, updated, kernel.returns, kernel.threads, kernel.mutable


def restored(
    mode: Mode, fields: tuple[Any, ...], call: Convention, profile: bool, name: str, trust_input: bool = False
) -> Function:
    """The function of a pickle."""
    function = make_function(kind_of(mode), restored_kernel(fields), call, profile)
    function.name, function.trust_input = name, trust_input
    return function


def restored_kernel(fields: tuple[Any, ...]) -> Kernel:
    """What `packed` was given."""
    shown, graph, (inputs, shared, outputs), updated, returns, threads, mutable = fields
    nodes = tuple(import_module("graphc.ir.pickling").unpack(graph))
    leaves, variables, results = nodes[:inputs], nodes[inputs : inputs + shared], nodes[inputs + shared :]
    updates = tuple(zip((variables[number] for number in updated), results[outputs:], strict=True))
    return Kernel(shown, leaves, variables, results[:outputs], updates, returns, threads, mutable)


def kind_of(mode: Mode) -> type[Function]:
    """The class of the functions of a mode."""
    native = Guarded if options.poison == "guard" else Compiled
    kinds: dict[Mode, type[Function]] = {"compiled": native, "interpreted": Interpreted, "python": Generated}
    return kinds[mode]
