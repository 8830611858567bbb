"""Theano's modes: a linker, which says how functions run, and an optimizer, which says which rules are on.

In: names of both, tags. Out: a `Mode`, which `function` takes, with the mode of graphc that it means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphc.configdefaults import known_rules
from graphc.errors import GraphValueError
from graphc.functions.callables import MODES
from graphc.gof.optdb import optdb
from graphc.ir.call_errors import explain_all
from graphc.options import flag, options

INTERPRETED = ("py", "FAST_COMPILE", "interpreted")
"""Linkers that run one NumPy call for each node."""
LINKERS = ("c", "py", "c|py", "c|py_nogc", "c&py", "vm", "cvm", "vm_nogc", "cvm_nogc", "jax", "numba", *MODES)
OFF = ("fast_compile", "none", "merge")
"""Optimizers that make functions as they were written: what is interpreted is not rewritten."""
OPTIMIZERS = ("default", "fast_run", "fast_run_stable", "o1", "o2", "o3", "o4", "unsafe", "stabilize", *OFF)


class Mode:
    """How a function runs. linker: "py" interprets, all others compile. optimizer: "fast_compile", "None" (or None) and
    "merge" interpret too, where the linker is not given, for that is the mode that rewrites nothing; all others are
    graphc's whole pipeline.

    `including` and `requiring` change nothing, since all rules are on; `excluding` switches off those of the named
    rules that graphc has, and ignores Theano's others. Raises ArgumentError for unknown linkers and optimizers.

        >>> f = function([x], y, mode=Mode("py"))
        >>> f = function([x], y, mode=get_mode("FAST_RUN").excluding("softplus"))
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
    return FAST_COMPILE if flag("slow") else get_mode(options.mode)


def register_mode(name: str, mode: Mode) -> None:
    """Give a mode a name that `get_mode` knows. Raises ArgumentError where the name is taken."""
    if name in predefined_modes or name in MODES:
        raise GraphValueError(f"there is a mode {name!r} already")
    predefined_modes[name] = mode


__all__ = [
    "FAST_COMPILE",
    "FAST_RUN",
    "JIT",
    "Mode",
    "get_default_mode",
    "get_mode",
    "optdb",
    "predefined_linkers",
    "predefined_modes",
    "predefined_optimizers",
    "register_mode",
]  # fmt: skip

explain_all(globals())
