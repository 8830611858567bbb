"""Theano's `compile`: how functions take their inputs, their modes, and what they were made of.

In: names of linkers and optimizers; variables; a `Function`. Out: a `Mode`, which `function` takes, with the mode of
graphc that it means; `In` under its old name; `f.maker`. `graphc.theano.made_ops` has the ops of that module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from warnings import warn

from graphc.errors import ArgumentError, DebugModeError, GraphValueError, UnusedInputError
from graphc.functions.callables import MODES, Function
from graphc.functions.convention import In, Out
from graphc.functions.debug_modes import DebugMode, NanGuardMode
from graphc.functions.function import function
from graphc.functions.states import states_of
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ir.walk import Graph
from graphc.ops.custom import DisconnectedType, NullType
from graphc.options import options
from graphc.rewrite.pipeline import rewrite
from graphc.shared import Container, SharedVariable, shared
from graphc.startup.hooks import HOOKS
from graphc.tensor.shaping import shape, specify_shape
from graphc.tensor.variables import Variable
from graphc.theano.flags import known_rules
from graphc.theano.graphs import FunctionGraph, is_same_graph
from graphc.theano.made_ops import DeepCopyOp, FromFunctionOp, OpFromGraph, ViewOp, as_op, deep_copy_op, view_op
from graphc.theano.optdb import optdb
from graphc.theano.rebuilding import rebuild_collect_shared

pfunc, config = function, options

# inputs and outputs ---------------------------------------------------------------------------------------------------

SymbolicInput = In
SymbolicOutput = Out


def Param(  # noqa: N802 - Theano's name
    variable: Node,
    default: Any = None,
    name: str | None = None,
    mutable: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    implicit: bool | None = None,
    borrow: bool | None = None,
) -> In:
    """`In` under its old name, with `default` for its value; it says once that it is old."""
    warn("Param is Theano's old name: In(variable, value=...) says the same", DeprecationWarning, stacklevel=2)
    return In(
        variable, name, default, None, mutable, strict, allow_downcast=allow_downcast, implicit=implicit, borrow=borrow
    )


# modes ----------------------------------------------------------------------------------------------------------------

INTERPRETED = ("py", "FAST_COMPILE", "interpreted")
"""Linkers that run one NumPy call for each node."""
LINKERS = ("c", "py", "c|py", "c|py_nogc", "c&py", "vm", "cvm", "vm_nogc", "cvm_nogc", "jax", "numba", *MODES)
OFF = ("fast_compile", "none", "merge")
"""Optimizers that make functions as they were written: what is interpreted is not rewritten."""
OPTIMIZERS = ("default", "fast_run", "fast_run_stable", "o1", "o2", "o3", "o4", "unsafe", "stabilize", *OFF)


class Mode:
    """A way to run functions. linker: "py" interprets, all others compile. optimizer: "fast_compile", "None" (or None)
    and "merge" interpret too, where the linker is not given, for that is the mode that rewrites nothing; all others are
    graphc's whole pipeline.

    `including` and `requiring` change nothing, since all rules are on; `excluding` switches off those of the named
    rules that graphc has, and ignores Theano's others. Raises ArgumentError for unknown linkers and optimizers.

        >>> graphc.function([x], T.exp(x), mode=graphc.Mode("py"))([0.0])
        array([1.])
        >>> mode = graphc.Mode("cvm").excluding("softplus")
    """

    def __init__(self, linker: Any = None, optimizer: Any = "default", tags: Iterable[str] = ()) -> None:
        self.linker = "vm" if linker is None else linker
        self.optimizer = "None" if optimizer is None else optimizer
        self.given = linker is not None
        self.excluded = tuple(tags)
        if isinstance(self.linker, str) and self.linker not in LINKERS:
            raise GraphValueError(f"there is no linker {linker!r}; linkers are {', '.join(LINKERS)}")
        if isinstance(self.optimizer, str) and self.optimizer.lower() not in OPTIMIZERS:
            raise GraphValueError(f"there is no optimizer {optimizer!r}; optimizers are {', '.join(OPTIMIZERS)}")

    def settings(self) -> tuple[str, tuple[str, ...]]:
        """The mode of graphc that is meant, and the rules that are off."""
        slow = self.linker in INTERPRETED or (not self.given and str(self.optimizer).lower() in OFF)
        own = self.linker if self.linker in MODES else "compiled"
        return ("interpreted" if slow else str(own)), tuple(known_rules(list(self.excluded)))

    def including(self, *tags: str) -> Mode:
        """The mode with rules switched on; those of `excluding` again."""
        return self._with(set(self.excluded) - set(tags))

    def excluding(self, *tags: str) -> Mode:
        """The mode without some rules."""
        return self._with({*self.excluded, *tags})

    def requiring(self, *tags: str) -> Mode:
        """The mode itself: all rules are on."""
        return self._with(self.excluded)

    def clone(self, link_kwargs: Any = None, optimizer: Any = "", **kwargs: Any) -> Mode:
        """The mode, or one of another optimizer."""
        return Mode(self.linker if self.given else None, optimizer or self.optimizer, self.excluded)

    def _with(self, tags: Iterable[str]) -> Mode:
        return Mode(self.linker if self.given else None, self.optimizer, sorted(tags))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mode) and self.settings() == other.settings()

    def __hash__(self) -> int:
        return hash(self.settings())

    def __str__(self) -> str:
        off = f", excluding = {', '.join(self.excluded)}" if self.excluded else ""
        return f"{type(self).__name__}(linker = {self.linker}, optimizer = {self.optimizer}{off})"

    __repr__ = __str__


FAST_RUN = Mode("cvm", "fast_run")
FAST_COMPILE = Mode("py", "fast_compile")
JIT = FAST_RUN
predefined_modes = {"FAST_RUN": FAST_RUN, "FAST_COMPILE": FAST_COMPILE, "JIT": JIT}
predefined_linkers = {name: name for name in LINKERS}
predefined_optimizers = {name: name for name in OPTIMIZERS}


def get_mode(mode: Any) -> Any:
    """The mode of a name, of None (the default mode), or a mode itself. ArgumentError for an unknown name."""
    if mode is None:
        return get_default_mode()
    if not isinstance(mode, str):
        return mode
    if mode in predefined_modes:
        return predefined_modes[mode]
    if mode in MODES:
        return Mode(MODES[mode] if mode != "Mode" else None)
    raise GraphValueError(f"there is no mode {mode!r}; modes are {', '.join(MODES)}")


def get_default_mode() -> Any:
    """The mode of functions that are not told one: `config.mode`, unless `config.linker` or `config.optimizer` says
    that they are interpreted."""
    return FAST_COMPILE if HOOKS.default_mode else get_mode(options.mode)


def register_mode(name: str, mode: Mode) -> None:
    """Give a mode a name that `get_mode` knows. Raises ArgumentError where the name is taken."""
    if name in predefined_modes or name in MODES:
        raise GraphValueError(f"there is a mode {name!r} already")
    predefined_modes[name] = mode


# what a function was made of ------------------------------------------------------------------------------------------


class FunctionMaker:
    """inputs: an `In` for each argument, then for each shared variable. outputs: an `Out` for each. mode, function."""

    def __init__(self, function: Function) -> None:
        if not isinstance(function, Function):
            raise ArgumentError(f"FunctionMaker describes a function that graphc.function has made, not {function!r}")
        self.function = function
        news = dict(function.kernel.updates)
        own = [leaf for leaf in function.shared if leaf not in states_of(function).values()]
        shared = [In(leaf, update=news.get(leaf), implicit=True, value=leaf.container, shared=True) for leaf in own]
        self.inputs = [*function.call.inputs, *shared]
        self.outputs = [Out(node) for node in function.kernel.outputs]
        self.expanded_inputs = self.inputs
        self.mode = getattr(function, "checks", None) or Mode(function.mode)
        self.name = function.name

    @property
    def fgraph(self) -> FunctionGraph:
        """The graph: inputs and shared variables, outputs and the new values of those. As rewriting leaves it, or of an
        interpreted function as it was written; what rules and passes did is `function.explain()`."""
        kernel = self.function.kernel
        graph = Graph((*kernel.inputs, *kernel.shared), kernel.results)
        if self.function.mode != "interpreted":
            graph, _ = rewrite(graph, options.fast_math, options.excluding)
        made = FunctionGraph(graph.inputs, graph.outputs)
        made.name = self.name
        return made


__all__ = [
    "FAST_COMPILE", "FAST_RUN", "JIT", "Container", "DebugMode", "DebugModeError", "DeepCopyOp", "DisconnectedType",
    "FromFunctionOp", "Function", "FunctionMaker", "In", "Mode", "NanGuardMode", "NullType", "OpFromGraph", "Out",
    "Param", "SharedVariable", "SymbolicInput", "SymbolicOutput", "UnusedInputError", "Variable", "ViewOp", "as_op",
    "config", "deep_copy_op", "function", "get_default_mode", "get_mode", "is_same_graph", "optdb", "pfunc",
    "predefined_linkers", "predefined_modes", "predefined_optimizers", "rebuild_collect_shared", "register_mode",
    "shape", "shared", "specify_shape", "view_op",
]  # fmt: skip

explain_all(globals())
HOOKS.maker = FunctionMaker
