"""Inputs and codes of functions as rows of files (saved.py, loaded.py).

In: an `In`, blobs. Out: a row; from such a row and a variable the `In`.

    input_row(In(x, value=2.0), blobs)     {"name": None, "variable": "x", "type": ["float64", []], "default": ..., ...}
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, made_of
from graphc.codegen.pipeline.restore import codes
from graphc.codegen.pipeline.runtime import part_code
from graphc.codegen.threads.chunking import PARALLEL
from graphc.functions.archive import Blobs, Opened
from graphc.functions.convention import REQUIRED, In
from graphc.ir.node import Node, size_owner


def input_row(item: In, blobs: Blobs) -> dict[str, Any]:
    """Return what a header says of an input with a value or none."""
    default = None if item.value is REQUIRED else blobs.add_array(np.asarray(item.value, item.variable.type.dtype))
    return {
        "name": item.name,
        "variable": item.variable.name,
        "type": _type_row(item.variable),
        "default": default,
        "mutable": bool(item.mutable),
        "strict": item.strict,
        "allow_downcast": item.allow_downcast,
    }


def _type_row(leaf: Node) -> list[Any] | None:
    """Return the dtype of an input, and its sizes with None for those of its own; None where a size is of others."""
    sizes = [(axis, size) for axis, size in enumerate(leaf.type.shape) if isinstance(size, Node)]
    own = all(size_owner(size) is leaf and size.attrs["axis"] == axis for axis, size in sizes)
    return [leaf.type.dtype, [size if isinstance(size, int) else None for size in leaf.type.shape]] if own else None


def record_of(opened: Opened, variable: Any, row: Mapping[str, Any]) -> In:
    """Return the input of a row."""
    return In(
        variable,
        name=row["name"],
        value=REQUIRED if row["default"] is None else opened.array(row["default"]).copy(),
        mutable=row["mutable"],
        strict=row["strict"],
        allow_downcast=row["allow_downcast"],
    )


def code_row(key: Key, blobs: Blobs) -> dict[str, Any] | None:
    """Return what the header says of the machine code under a key; None where it is no longer to be had."""
    entry, living = store.find(key), codes().get(key.digest)
    metadata = entry.metadata if entry is not None else living.metadata if living is not None else None
    code = entry.object if entry is not None else living.object if living is not None else b""
    if metadata is None or not code:
        return None
    products = metadata["products"]
    names = [PARALLEL] if metadata["parallel"] else []
    if products:
        names = import_module("graphc.codegen.pipeline.products").product_parts(products)
    return {
        "fingerprint": made_of(key.fingerprint),
        "settings": dict(key.settings),
        "metadata": blobs.add(marshal.dumps(dict(metadata), store.MARSHAL_VERSION)),
        "object": blobs.add(code),
        "parts": {name: blobs.add(part_code(name)) for name in dict.fromkeys(names)},
    }
