"""Late imports: hooks, packages whose modules are imported when one of their names is first asked for, values that are
made then. A start pays only for what it uses.

A hook is a function that a lower module calls without importing the higher module that defines it:

    HOOKS.expression(node)               in ir/node.py
    HOOKS.expression = expression        in ir/expression.py, when it is imported
    "expression": "graphc.ir.expression" in graphc/__init__.py, the table of defining modules

`Finder` asks a hook for modules without a file: Theano's paths. `alias` loads a module under a second name, never a
second copy of its code: `import graphc.nnet` gives graphc.tensor.nnet itself.

In: a package, and for each module within it the names that it gives the package. Out: the package's `__getattr__`
(`lazily`), or that and its `__dir__` (`lazy_package`). In: a function that makes a value. Out: a function that returns
it, made once (`once`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar


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
    retraced: Callable[[Any], Any]
    """The function that is traced at every call, of a derivative whose function draws random numbers."""
    at: Callable[[Any], Any]
    """`x.at` of an array or a tensor, which makes changed copies."""
    array_method: Callable[..., Any]
    """A method of an array with tensors among its arguments, or arguments of JAX's: (name, array, args, kwargs)."""
    ufunc: Callable[..., Any]
    """A function of NumPy's applied to tensors, as `__array_ufunc__` is called: (ufunc, method, inputs, kwargs)."""
    array_function: Callable[..., Any]
    """The same of functions that are none of elements: (function, args, kwargs)."""
    handles: Any
    """`graphc.tensor.boundary`: what goes between a traced program and graphc, arrays that may be written to."""
    creations: Any
    """`graphc.tensor.creations`: NumPy's functions that make arrays, while a function is traced."""
    pairs: Any
    """`graphc.ops.pairs`: ops of complex tensors, which are pairs of real ones."""
    complexes: Any
    """`graphc.tensor.linalg.complexes`: products along axes and determinants of complex numbers."""
    orders: Any
    """`graphc.tensor.orders`: sorting, extremes and places of complex numbers."""
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
    restored_jitted: Callable[[Any, Any, Any], Any]
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


ALIASES = {
    "cache": "codegen.cache.manage",
    "nnet": "tensor.nnet",
    "scan_utils": "control.scan",
    # modules of 0.1 and 0.2 whose classes pickles name (docs/versions.md)
    "ir.frozen": "ir.types",
    "layers.layer": "layers.standard",
    "scipy.interpolate.bsplines": "scipy.interpolate.splines",
    "scipy.interpolate.grids": "scipy.interpolate.splines",
    "scipy.interpolate.piecewise": "scipy.interpolate.splines",
    "scipy.optimize.constraints": "scipy.optimize.parameters",
    "scipy.results": "scipy.named",
    "scipy.stats.multivariate": "scipy.stats.distribution",
    "theano.made_ops": "theano.compile",
}
"""Names of modules in graphc, and where they are."""


class Finder:
    """The last of Python's finders, for modules of graphc that no other one knows."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A module of graphc that has no file of this name; None for the modules of others."""
        if not name.startswith("graphc."):
            return None
        own = ALIASES.get(name.removeprefix("graphc."))
        return HOOKS.find_spec(name) if own is None else alias(name, f"graphc.{own}")


def install() -> None:
    """Let Python ask."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)


# --- lazy packages and values -----------------------------------------------------------------------------------------


def lazily(
    package: str,
    modules: Mapping[str, str],
    missing: Callable[[str], str] | None = None,
    public: Callable[[Any, str], Any] = lambda found, package: found,
) -> Callable[[str], Any]:
    """The `__getattr__` of `package`: `modules` says which module within it defines which names, in words; a module
    elsewhere by its full name. An empty text stands for a module that gives no names but is there itself.
    `missing(name)` says why there is no such name.
    `public(found, package)` is what users are given.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in homes:
            home = homes[name]
            value = getattr(import_module(home if home.startswith("graphc.") else f"{package}.{home}"), name)
            if isinstance(value, FunctionType | type):
                value = public(value, package)
            setattr(sys.modules[package], name, value)
            return value
        if name in modules:
            return import_module(f"{package}.{name}")
        value, why = HOOKS.absent(package, name)
        if value is not None:
            if isinstance(value, FunctionType | type) and name[0] != "_":
                value = public(value, package)
            setattr(sys.modules[package], name, value)
            return value
        reason = "" if missing is None else missing(name)
        reason = reason or why or nearest(name, [*dir(sys.modules[package]), *homes])
        raise AttributeError(f"module {package!r} has no attribute {name!r}{reason and ': '}{reason}")

    return find


def telling(package: str, *beginnings: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has all its names already: it says what stands for names of other libraries,
    which begin so. What is asked of other names may be a module that is not imported yet, and must take no time."""
    tell = lazily(package, {})

    def find(name: str) -> Any:
        if name.startswith(beginnings):
            return tell(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def lazy_package(
    package: str,
    modules: Mapping[str, str],
    missing: Mapping[str, str] | Callable[[str], str],
    others: Sequence[str] = (),
    public: Callable[[Any, str], Any] = lambda found, package: found,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: those of `lazily`, with an `__all__` that is made when it is asked
    for. Modules that give no names count in it where no module gives one. missing: reasons, by name or as a function.
    others: names of `__all__` that the package itself has.
    """
    find = lazily(package, modules, missing if callable(missing) else lambda name: missing.get(name, ""), public)

    def get(name: str) -> Any:
        if name != "__all__":
            return find(name)
        names = sys.modules[package].__dict__[name] = sorted([*(names_of(modules) or modules), *others])
        return names

    return get, lambda: sys.modules[package].__all__


T = TypeVar("T")
NOTHING: Any = object()


class Table(dict[str, T]):
    """A table that modules fill, some of which are imported when what they define is first asked for: `later` names
    these modules, `rest` the one that fills in all other names. To go through the table imports them all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.later: dict[str, str] = {}
        self.rest = ""

    def __setitem__(self, name: str, value: T) -> None:
        super().__setitem__(name, value)
        self.later.pop(name, None)

    def __missing__(self, name: str) -> T:
        if name not in self.later:
            self.take_rest()
        if name in self.later:
            import_module(self.later[name])
        value: T = dict.get(self, name, NOTHING)
        if value is NOTHING:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or name in self.later:
            return True
        self.take_rest()
        return super().__contains__(name) or name in self.later

    def has(self, name: str) -> bool:
        """True for a name that is there by now."""
        return super().__contains__(name)

    def take_rest(self) -> None:
        """Import the module of the other names; while it is being imported, go without it."""
        if self.rest:
            import_module(self.rest)
            self.rest = ""

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        self.fill()
        return super().__iter__()

    def __len__(self) -> int:
        self.fill()
        return super().__len__()

    def values(self) -> Any:
        """All that it holds."""
        self.fill()
        return super().values()

    def items(self) -> Any:
        """Names with what stands under them."""
        self.fill()
        return super().items()

    def fill(self) -> None:
        """Import what is left."""
        self.take_rest()
        for module in dict.fromkeys(self.later.values()):
            import_module(module)


def nearest(name: str, known: Collection[str]) -> str:
    """A question for a message: which of the known names is meant, where one is near."""
    public = [] if name.startswith("_") else [each for each in known if not each.startswith("_")]
    near = import_module("difflib").get_close_matches(name, public, 1) if public else []
    return f"is {near[0]!r} meant?" if near else ""


def names_of(modules: Mapping[str, str]) -> list[str]:
    """All names that `lazily` finds in modules."""
    return [name for names in modules.values() for name in names.split()]


Value = TypeVar("Value")


def once(make: Callable[[], Value]) -> Callable[[], Value]:
    """A function that returns the value `make` returned first, in all threads. `functools.cache` may let two threads
    make one each and drop one: wrong for objects that machine code refers to by address, and for types.

    >>> @once
    ... def table() -> list[int]:
    ...     return [0] * 8
    >>> table() is table()
    True
    """
    kept: dict[None, Value] = {}

    def value() -> Value:
        return kept[None] if kept else kept.setdefault(None, make())

    value.__name__, value.__qualname__, value.__doc__ = make.__name__, make.__qualname__, make.__doc__
    value.__module__ = make.__module__
    return value
