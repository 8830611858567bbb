"""Functions under SciPy's names, as programs call them.

In: a module of functions of tensors, in `__all__`. Out: the same functions, which give what SciPy's function of that
name gives where no argument is a tensor and no function is traced.

    offer(globals())                      at the end of graphc/scipy/special
    special.erf(np.ones(3))               scipy.special.erf(np.ones(3))
    special.erf(T.dvector("x"))           a tensor
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

from graphc.ir.at_once import at_once
from graphc.ir.call_errors import explain_all


def found_in(module: str, name: str) -> Any:
    """Return the member of a module of SciPy's by its name; the module is imported."""
    return getattr(import_module(module), name)


def scipys(module: str, name: str) -> Callable[..., Any]:
    """The function of SciPy of that name, by the name of graphc's module; SciPy is imported when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return found_in(".".join(module.split(".")[1:3]), name)(*args, **kwargs)

    return call


def offer(namespace: dict[str, Any]) -> None:
    """Let the functions that a module offers give SciPy's results of arrays, and explain wrong calls. The value of the
    attribute `of_arrays` of a function is called in place of SciPy's."""
    for name in namespace["__all__"]:
        function = namespace[name]
        if isinstance(function, FunctionType):
            own = vars(function)["__wrapped__"] if "explained" in vars(function) else function
            plain = getattr(own, "of_arrays", None) or scipys(namespace["__name__"], name)
            namespace[name] = at_once(own, plain)
            vars(namespace[name]).pop("documentation", None)  # which would compute an example at every import
    explain_all(namespace)
