"""A finder for modules of graphc that have no file: Theano's paths, which a hook finds.

In: an import statement. Out: the module that the hook `find_spec` (hooks.py) makes of it.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import Any

from graphc.startup.hooks import HOOKS


class Finder:
    """The last of Python's finders."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A module of graphc that has no file; None for the modules of others."""
        found: ModuleSpec | None = HOOKS.find_spec(name) if name.startswith("graphc.") else None
        return found


def install() -> None:
    """Let Python ask."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)
