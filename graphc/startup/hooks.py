"""Hooks: functions that a lower module calls without importing the higher module that defines them.

    HOOKS.expression(node)               in ir/node.py
    HOOKS.expression = expression        in ir/expression.py, when it is imported
    "expression": "graphc.ir.expression" in graphc/__init__.py, the table of defining modules

In: functions of higher modules. Out: the same, for lower modules. The defining module is imported when its hook is
first used, so few programs import it. `Finder` asks a hook for modules without a file: Theano's paths. `alias` loads a
module under a second name, never a second copy of its code: `import graphc.nnet` gives graphc.tensor.nnet itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Alias:
    """A loader of the module of another name."""

    def __init__(self, of: str) -> None:
        self.of = of
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, imported where it is not yet."""
        module = import_module(self.of)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing but to give it back its own spec, in whose place Python has put the one of the other name."""
        module.__spec__ = self.spec


def alias(name: str, of: str) -> ModuleSpec:
    """The spec by which `import name` gives the module `of`."""
    return ModuleSpec(name, Alias(of), is_package=True)  # type: ignore[arg-type]


# --- hooks ------------------------------------------------------------------------------------------------------------


class Hooks:
    """One attribute for each hook. `modules`: the full name of the module that fills it, by the name of the hook."""

    # Of the graph and its functions ----------------------------------------------------------------------------------
    expression: Callable[[Any], str]
    """The text of a node, as a program would write it."""
    late_op: Callable[[str], Any]
    """An op of graphc's that is defined when it is first asked for, by its name; None for an unknown one."""
    label: Callable[[Any], str]
    """A short text of a node that is computed, for messages."""
    reduced: Callable[[Any], tuple[Any, ...]]
    """The `__reduce__` value of a node, an op or a body, for pickles."""
    of_functions: Any
    """`graphc.tracing`, which has the derivatives of functions of arrays."""
    shared_matrix: Callable[..., Any]
    """The shared variable of a sparse matrix: (value, name, strict, allow_downcast, borrow)."""
    shared_generator: type[Any]
    """The class of shared variables that hold the state of a generator of random numbers."""
    plain_calls: Callable[[Any], Callable[..., Any]]
    """The computation of a function of tensors for arrays and numbers, by the function."""
    redrawn: Callable[[Any], Any]
    """The function that is traced at every call, of a derivative whose function draws random numbers."""
    at: Callable[[Any], Any]
    """`x.at` of a tensor, which makes changed copies."""
    ufunc: Callable[..., Any]
    """A function of NumPy's applied to tensors, as `__array_ufunc__` is called: (ufunc, method, inputs, kwargs)."""
    array_function: Callable[..., Any]
    """The same of functions that are none of elements: (function, args, kwargs)."""
    handles: Any
    """`graphc.tensor.boundary`: what goes between a traced program and graphc, arrays that may be written to."""
    creations: Any
    """`graphc.tensor.creations`: NumPy's functions that make arrays, while a function is traced."""
    scipys: Any
    """`graphc.scipy.exchange`: SciPy's functions, while a function is traced."""
    compiled_part: Callable[[str], bytes]
    """The machine code of a part that all functions share, compiled in this process: of its name."""
    export: Callable[..., list[str]]
    """Writes the C library of a function: (function, path, language, target, blas)."""
    pointer: Callable[..., Any]
    """Makes the C function of a compiled function (functions/pointer.py): (function, signature, values)."""
    as_numba: Callable[..., Any]
    """Makes a function of numba's of it (functions/numba_calls.py): (function, status)."""
    as_ufunc: Callable[..., Any]
    """Makes a ufunc of it (functions/ufuncs.py): (function, others, identity)."""
    save: Callable[[Any, Any, str, Any], None]
    """Writes a function to a file: (function, path, values, targets)."""
    restored_jitted: Callable[[Any, Any], Any]
    """Makes the jitted function of an opened file (functions/saved.py)."""
    restored_network: Callable[[Any, bool], Any]
    """Makes the trained network or estimator of an opened file."""
    restored_trainer: Callable[[Any, bool], Any]
    """Makes the trainer of an opened file, with the state of its training (functions/saved_networks.py)."""
    resumed_trainer: Callable[..., Any]
    """Makes a trainer from what a file has: (model, state, parts), in train/trainer.py."""
    states: Any
    """`graphc.functions.states`: values and states of functions by name, copies, pickles."""

    # Theano's names, which `graphc.theano` has -----------------------------------------------------------------------
    absent: Callable[[str, str], tuple[Any, str]]
    """(value, reason) for a name that a package, given by its full name, does not define: the value, or None and the
    known reason."""
    names: Callable[[str], list[str]]
    """The names that a package has by `absent` and lists in its `__all__`."""
    find_spec: Callable[[str], Any]
    """The import spec of a module without a file, by its full name; None if it is unknown."""
    owner: Callable[[Any], Any]
    """The application of an op that makes a node."""
    maker: Callable[[Any], Any]
    """`f.maker`: the inputs, outputs and mode that a function was made from."""
    get_setting: Callable[[str], Any]
    """The value of a setting that is no option of graphc's. AttributeError for what is none."""
    set_setting: Callable[[str, Any], None]
    """Set one. GraphcError for what is none."""
    default_mode: str | None = None
    """The mode of functions that are not told one, where it is not `options.mode`."""
    default_profile: bool = False
    """True if functions profile their calls unless told otherwise."""

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}

    if not TYPE_CHECKING:  # which know the hooks

        def __getattr__(self, name: str) -> Any:
            module = vars(self).get("modules", {}).get(name)
            if module is None:
                raise AttributeError(f"there is no hook {name!r}")
            import_module(module)
            return vars(self)[name]


HOOKS = Hooks()


ALIASES = {"cache": "codegen.cache.manage", "nnet": "tensor.nnet", "scan_utils": "control.scan"}
"""Names of modules in graphc, and where they are."""


class Finder:
    """The last of Python's finders, for modules of graphc that no other one knows."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A module of graphc that has no file of this name; None for the modules of others."""
        if not name.startswith("graphc."):
            return None
        own = ALIASES.get(name.removeprefix("graphc."))
        found: ModuleSpec | None = HOOKS.find_spec(name) if own is None else alias(name, f"graphc.{own}")
        return found


def install() -> None:
    """Let Python ask."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)
