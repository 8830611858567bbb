"""Theano's names: everything by which a program of Theano's runs on graphc, and nothing that graphc needs itself.

    import graphc.gof.graph as graph        paths.py finds the module, graphs.py has the names
    y.owner.inputs                          owners.py: a node as the application of an op
    class Double(theano.Op): ...            user_ops.py; compile.py has as_op and OpFromGraph
    isinstance(y.owner.op, T.Dot)           opclasses.py
    theano.config.optimizer = "None"        flags.py

In: programs. Out: what graphc has for their names. No module of graphc below imports this room: they call hooks
(startup/hooks.py), which the modules here fill, and which import them when first used. `from theano import theano` is
this package, which has all that graphc has.
"""

import sys
from typing import Any

MODULES = "compile fft flags gradient graphs names opclasses owners paths pickles scalar sparse_ops user_ops".split()
"""The modules of this room, which are imported by their full names."""


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules["graphc"], name)
