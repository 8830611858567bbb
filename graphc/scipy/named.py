"""Functions under SciPy's names, as programs call them, and their results.

In: a module of functions of tensors, in `__all__`. Out: the same functions, which give what SciPy's function of that
name gives where no argument is a tensor and no function is traced.

    offer(globals())                      at the end of graphc/scipy/special
    special.erf(np.ones(3))               scipy.special.erf(np.ones(3))
    special.erf(T.dvector("x"))           a tensor

    found = Result({"x": x, "status": 0}, {0: "It converged."})
    found.x, found["status"], found.message         message: "It converged."

A traced function may return a `Result`, whose leaves are the values; the message is looked up when it is asked for,
since the status of a traced call is not known before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.ir.at_once import at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node, cast
from graphc.trees import REGISTERED, Registered


def as_float(value: Any, other: str = "float64") -> Node:
    """Return a value as a tensor of floats. other: the dtype of what has none."""
    node = as_node(value)
    return node if is_float(node.type.dtype) else cast(node, other)


def found_in(module: str, name: str) -> Any:
    """Return the member of a module of SciPy's by its name; the module is imported."""
    return getattr(import_module(module), name)


def scipys(module: str, name: str, parts: int = 3) -> Callable[..., Any]:
    """The function of SciPy of that name, by the name of graphc's module, of which the first parts are those of
    SciPy's; SciPy is imported when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return found_in(".".join(module.split(".")[1:parts]), name)(*args, **kwargs)

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


# --- results ----------------------------------------------------------------------------------------------------------


class Result(dict[str, Any]):
    """Values of a solver by name. messages: the text for each value of `status`."""

    messages: Mapping[int, str]

    def __init__(self, values: Mapping[str, Any], messages: Mapping[int, str]) -> None:
        super().__init__(values)
        self.__dict__["messages"] = messages

    def __missing__(self, name: str) -> Any:
        if name == "message":
            return self.messages[int(self["status"])]
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __dir__(self) -> list[str]:
        return [*self, "message"]

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:>{width}}: {value}" for name, value in self.items())

    def __reduce__(self) -> Any:
        return type(self), (dict(self), self.messages)


def _children(found: Result) -> tuple[dict[str, Any], Any]:
    return {f".{name}": value for name, value in found.items()}, (tuple(found), tuple(found.messages.items()))


def _restored(rest: Any, parts: list[Any]) -> Result:
    names, messages = rest
    return Result(dict(zip(names, parts, strict=True)), dict(messages))


REGISTERED[Result] = Registered(_children, _restored)
