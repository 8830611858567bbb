"""Capabilities of `graphc.numpy`, as the array API standard asks a namespace.

    info = graphc.numpy.__array_namespace_info__()
    info.dtypes(kind="real floating")      {"float32": dtype("float32"), "float64": dtype("float64")}

In: nothing. Out: `Info`. Reference: array API standard 2024.12, "Inspection APIs".
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Info"]


class Info(type(np.__array_namespace_info__())):  # type: ignore[misc]
    """NumPy's answers, but for complex dtypes, which graphc has not."""

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by name: of a kind ("bool", "integral", "real floating" ...) or a tuple of kinds."""
        found = super().dtypes(device=device, kind=kind)
        return {name: dtype for name, dtype in found.items() if np.dtype(dtype).kind != "c"}

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind."""
        found = super().default_dtypes(device=device)
        return {kind: dtype for kind, dtype in found.items() if np.dtype(dtype).kind != "c"}
