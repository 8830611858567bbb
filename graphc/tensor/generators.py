"""Random numbers that NumPy draws for a traced program: their arrays take what is traced, as those of np.zeros do.

    rng = np.random.RandomState(0)      in the program: a class under NumPy's
    w = rng.randn(3)                    a handle, whose value is known
    w -= x                              from here on it is not
    order = np.arange(3)
    rng.shuffle(order)                  written through the handle

In: a function of `numpy.random` or a method of a generator, with its arguments. Out: what it draws, with a handle for
each array. `creations` says which calls are a program's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir.source_lines import program_line
from graphc.ir.traced import TRACE
from graphc.tensor import boundary
from graphc.tensor.handles import UNKNOWN, Handle, known


def drawn(draw: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return what a function draws from a generator, for a traced program.

    Raises GraphTypeError where `shuffle` is to put elements in another order that are not known.
    """
    if draw.__name__ == "shuffle":
        return shuffle(draw, *args, **kwargs)
    out = kwargs.get("out")
    if isinstance(out, Handle):
        kwargs["out"] = np.array(out.content())
    made = draw(*boundary.given(args), **boundary.given(kwargs))
    if isinstance(out, Handle):
        out[...] = made
        return out
    return boundary.computed(made)


def shuffle(draw: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> None:
    """`rng.shuffle(x)`, of a list or of an array whose elements are known."""
    values = known(x) if isinstance(x, Handle) else x
    if values is UNKNOWN:
        raise GraphTypeError(
            "np.random's shuffle puts known elements in another order; x = x[rng.permutation(len(x))] does so of any, "
            f"or use graphc.random (at {program_line()})"
        )
    if values is x:
        draw(x, *args, **kwargs)
    else:
        order = values.copy()
        draw(order, *args, **kwargs)
        x[...] = order


class Drawing:
    """The methods of a generator as a traced program calls them; outside of traced functions they are NumPy's."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(drawn, found) if TRACE.depth and name[0] != "_" and callable(found) else found
