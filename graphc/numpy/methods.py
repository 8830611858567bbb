"""Methods of `graphc.numpy`'s arrays that take tensors, or JAX's arguments: the functions of that name.

keys[i]                         in a traced function, where i is a tensor: a tensor
x.take(i, mode="fill")          jnp.take(x, i, mode="fill")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.arrays.array import ndarray
from graphc.ir.source_lines import TRACE
from graphc.ops.elementwise import as_node
from graphc.startup.hooks import HOOKS
from graphc.tensor.indexing import getitem


def item(x: Any, key: Any) -> Any:
    """`x[key]` of an array, where the key holds a tensor."""
    return getitem(as_node(x), key)


def array_method(name: str, array: ndarray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of a method's name."""
    function = item if name == "__getitem__" else getattr(import_module("graphc.numpy"), name)
    if not TRACE.depth:
        return function(array, *args, **kwargs)
    done = HOOKS.handles.Call(function, (array, *args), kwargs)
    return done.finished(function(*done.args, **done.kwargs))


HOOKS.array_method = array_method
