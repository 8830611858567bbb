"""What type checkers know of `graphc.numpy`, `linalg` and `random`: stubs, which are written from the functions.

In: a module. Out: the text of its stub. Every argument and every result may be an array or a tensor, so that both are
`Any`; names and keywords are checked.

    def cumsum(a: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
    exp: Unary
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np

from graphc.numpy.named import has_function

NUMPY = ".".join(np.__version__.split(".")[:2])
"""The NumPy whose names are written down; another has others."""
HEAD = '''"""The functions of `{module}`{version}.

Written by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, for editors and type checkers alone.
"""

from typing import Any

'''


class Anything(str):
    """Text that stands for itself in a signature."""

    __slots__ = ()
    __repr__ = str.__str__


def stub_of(module: Any, theirs: Any) -> str:
    """The text of the stub of a module whose names are those of `theirs`."""
    written = {node.name for node in ast.parse(inspect.getsource(module)).body if hasattr(node, "name")}
    known = {name: getattr(theirs, name, None) for name in module.__all__ if name not in {*written, *WRITTEN}}
    found = {name: item for name, item in known.items() if callable(item)}
    is_own = module is theirs
    types = [name for name, item in known.items() if hasattr(theirs, name) and name not in LEFT and not is_typed(item)]
    old = [f"{name} = {new}" for name, new in getattr(module, "OLD", {}).items() if not hasattr(theirs, name)]
    functions = [
        line(name, item)
        for name, item in found.items()
        if is_own or (is_typed(item) and not isinstance(item, np.ufunc))
    ]
    elements = [f"{name}: {kind(item)}" for name, item in found.items() if isinstance(item, np.ufunc)]
    head = HEAD.format(module=module.__name__, version="" if is_own else f" that are those of NumPy {NUMPY}")
    if module.__name__ != "graphc.numpy":
        imports = "" if is_own or not types else imported(theirs.__name__, types)
        return head.replace("from typing import Any\n", f"from typing import Any\n{imports and chr(10)}{imports}") + (
            "\n".join([*functions, ""])
        )
    imports = "".join(f"    {name} as {name},\n" for name in sorted(types, key=in_order))
    return f"{head}from numpy import (\n{imports})\n{CLASSES}" + "\n".join([*elements, "", *functions, "", *old, ""])


def imported(module: str, names: list[str]) -> str:
    """The import of names, as ruff writes it."""
    parts = [f"{name} as {name}" for name in names]
    wide = "".join(f"    {part},\n" for part in parts)
    return f"from {module} import {parts[0]}\n" if len(parts) == 1 else f"from {module} import (\n{wide})\n"


WRITTEN = {"equal", "ndarray", "not_equal"}
"""Names that the module defines by assignments."""
LEFT = {"c_", "index_exp", "linalg", "fft", "mgrid", "ogrid", "r_", "random", "s_", "vectorize"}
"""Names that the module imports or makes."""


def is_typed(item: Any) -> bool:
    """True for a function that takes tensors, which the stub gives a signature to. Others are typed by NumPy."""
    return isinstance(item, np.ufunc) or has_function(item)


def in_order(name: str) -> tuple[str, int]:
    """The key by which imports are sorted: numbers in names count."""
    digits = "".join(filter(str.isdigit, name))
    return name.rstrip("0123456789"), int(digits or 0)


def kind(ufunc: np.ufunc) -> str:
    """The class of a ufunc in the stub: by its operands; one of whole axes takes other keywords."""
    return "Ufunc" if ufunc.signature else {1: "Unary", 2: "Binary"}.get(ufunc.nin, "Ufunc")


OPTIONS = ", ".join(f"{name}: Any = ..." for name in "out where casting order dtype subok signature".split())
CLASSES = f"""
from graphc.numpy.named import Ufunc

class Unary(Ufunc):
    def __call__(self, x: Any, /, {OPTIONS}) -> Any: ...

class Binary(Ufunc):
    def __call__(self, x: Any, y: Any, /, {OPTIONS}) -> Any: ...

"""


def line(name: str, function: Any) -> str:
    """The signature of one of NumPy's functions."""
    parameters = [
        each.replace(annotation=Anything("Any"), default=each.empty if each.default is each.empty else Anything("..."))
        for each in inspect.signature(function).parameters.values()
    ]
    return f"def {name}{inspect.Signature(parameters, return_annotation=Anything('Any'))}: ..."
