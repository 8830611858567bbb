"""The loop IR: typed expressions over flat buffers, and statements that nest; a kernel between plan and source.

In: records that lowering makes (ir.py), and the templates of scalar ops (syntax.py). Out: Python source, and a printed
form for tests and those who debug (syntax.py). operators.py is the table of all that is known of an operator, visit.py
tells what statements read and write, verify.py checks a program. Read operators.py, then ir.py.

Ops make expressions when they are lowered, which a graph that is in the cache never is: `loopir.add` and what else
ir.py has may be asked of the package, which then imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphc.loopir.ir import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        value = globals()[name] = getattr(import_module("graphc.loopir.ir"), name)
        return value
