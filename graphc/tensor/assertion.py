"""Checks of values that a graph makes when it runs.

In: a message, then a tensor and conditions. Out: the tensor, held to them.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ops.checked import checked
from graphc.ops.elementwise import as_node, cast
from graphc.tensor.reductions import all

__all__ = ["Assert", "assert_", "assert_op"]


class Assert:
    """`Assert(msg)(x, cond, …)` is `x`; a call whose conditions are not all true raises AssertionFailed with `msg`.

    Conditions are checked before anything is computed, wherever the result is needed.
    """

    def __init__(self, msg: str = "an assertion failed") -> None:
        self.msg = msg

    def __call__(self, x: Any, *conds: Any) -> Node:
        """`x`, held to conditions, of which all elements must be true."""
        return checked(as_node(x), [cast(all(cond), "int64") for cond in conds], self.msg)


assert_ = assert_op = Assert()


explain_all(globals())
