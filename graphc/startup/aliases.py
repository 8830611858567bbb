"""Modules under a second name: the same module, never a second copy of its code.

In: the name of a module. Out: a loader by which Python's import finds it under another.

    import graphc.nnet                    graphc.tensor.nnet itself
    import theano.tensor                  graphc.tensor itself, after graphc.install_as_theano()
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


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
