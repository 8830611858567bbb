"""Results of solvers, as SciPy returns them: dicts whose items are attributes too.

    found = Result({"x": x, "status": 0}, {0: "It converged."})
    found.x, found["status"], found.message         message: "It converged."

In: values, and what each status means. Out: a tree whose leaves are the values: a traced function may return it. The
message is looked up when it is asked for, since the status of a traced call is not known before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphc.trees import REGISTERED, Registered


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
