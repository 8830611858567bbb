"""Theano's `sandbox.multinomial`: categories of uniform numbers that are given.

In: chances, and numbers from 0 to below 1. Out: how often each category comes up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.errors import RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.shape import reshape
from graphc.tensor.ranges import arange

__all__ = ["MultinomialFromUniform"]


class MultinomialFromUniform:
    """A function of chances, uniform numbers and how many of these each row has: counts of the categories.

    odtype: the dtype of the counts; "auto" for that of the chances. Called with pvals (rows, categories), unis
    (n * rows), the numbers of one draw after those of the other, and n = 1. A draw is the first category at which the
    sum of the chances is above its number; none where no sum is. Raises RankError for other ranks, ShapeError at a call
    for another count of numbers.
    """

    def __init__(self, odtype: str = "auto") -> None:
        self.odtype = odtype

    def __call__(self, pvals: Any, unis: Any, n: Any = 1) -> Node:
        chances, numbers, draws = as_node(pvals), as_node(unis), as_node(n)
        if (chances.ndim, numbers.ndim, draws.ndim) != (2, 1, 0):
            shown = ", ".join(f"{describe(each)} of type {each.type}" for each in (chances, numbers, draws))
            raise RankError(f"{self}: a matrix of chances, a vector of numbers and how many are wanted, not {shown}")
        rows, categories = chances.type.shape
        of_draws = reshape(numbers, (cast(draws, "int64"), rows, 1))
        above = chances.cumsum(axis=1) > of_draws
        first = above.argmax(axis=2).dimshuffle(0, 1, "x")
        counts = (elementwise("equal", first, arange(categories)) & above).sum(axis=0)
        return cast(counts, chances.type.dtype if self.odtype == "auto" else np.dtype(self.odtype).name)

    def __str__(self) -> str:
        return f"MultinomialFromUniform{{{self.odtype}}}"


explain_all(globals())
