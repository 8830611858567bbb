"""`install_as_theano`: libraries that import `theano` find graphc.

    graphc.install_as_theano()
    import theano.tensor as T                        graphc.tensor itself
    from theano.tensor.nnet import sigmoid           graphc's own function
    import lasagne                                   which imports theano

In: the import statements of a process. Out: for each module below `theano` that of the same path below `graphc`, never
a second copy. What is not there raises the error of graphc's path.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any

from graphc.errors import GraphcError
from graphc.startup.aliases import alias

THEANO = "theano"


class Finder:
    """The first of Python's finders: others would find the files of graphc, and load them again."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module of graphc for one of Theano's; None for the modules of others, and for what nobody has."""
        if name != THEANO and not name.startswith(f"{THEANO}."):
            return None
        own = f"graphc{name.removeprefix(THEANO)}"
        try:
            import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            return None
        return alias(name, own)


def install_as_theano() -> None:
    """Let every import of `theano`, and of what is below it, find graphc: for libraries that were written for Theano.

    A second call changes nothing. Raises GraphcError where Theano itself has been imported before.

        >>> graphc.install_as_theano()
        >>> import theano.tensor
        >>> theano.tensor is graphc.tensor
        True
    """
    known = sys.modules.get(THEANO)
    if known is not None and known is not sys.modules["graphc"]:
        raise GraphcError("install_as_theano: Theano is imported already; call this before anything imports it")
    sys.modules.setdefault(THEANO, sys.modules["graphc"])
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
