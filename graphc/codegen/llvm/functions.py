"""Functions of LLVM IR, and modules of them.

In: Python functions that write a body (builder.py), whose annotations are LLVM's types (typed.py). Out: functions that
such functions call by calling them, and text of modules, with what is called defined or declared.

    @function("noinline")
    def total(code: Code, numbers: Ptr, count: I64) -> I64:
        sum = code.variable(I64.of(0))
        with code.count(0, count) as i:
            sum.value += numbers.at(i, I64).load(I64)
        return sum.value

Importing this is cheap, which importing llvmlite.ir is not: entry points are written in the user's process, while it
waits for a first call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, cast

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.typed import Ptr, Value

P = ParamSpec("P")
R = TypeVar("R")


class Function(Generic[P, R]):
    """A function of a module. body: what writes it, None where it is defined elsewhere. is_apart: a module may declare
    it, and another one define it for all."""

    __slots__ = (
        "attributes",
        "body",
        "call_attributes",
        "is_apart",
        "is_internal",
        "kept",
        "name",
        "params",
        "returns",
    )

    def __init__(
        self,
        name: str,
        returns: type[Value] | None,
        params: Mapping[str, type[Value]],
        body: Callable[Concatenate[Code, P], R] | None = None,
        attributes: str = "",
        *,
        is_internal: bool = False,
        is_apart: bool = False,
        call_attributes: str = "",
    ) -> None:
        self.name = name
        self.returns = returns
        self.params = params
        self.body = body
        self.attributes = attributes
        self.is_internal = is_internal
        self.is_apart = is_apart
        self.call_attributes = call_attributes
        self.kept: dict[bool, Definition] = {}

    def __call__(self, code: Code, *args: P.args, **kwargs: P.kwargs) -> R:
        given = cast("Sequence[Value]", args)
        if [arg.spelling for arg in given] != [kind.spelling for kind in self.params.values()]:
            raise TypeError(f"@{self.name}({', '.join(map(str, given))}), where {self.head()} is meant")
        code.called[self.name] = self
        return cast("R", code.call(self.returns, f"@{self.name}", given, self.call_attributes))

    def pointer(self, code: Code) -> Ptr:
        """Its address."""
        code.called[self.name] = self
        return Ptr(code, f"@{self.name}")

    def head(self, names: bool = False) -> str:
        """Its result, name and parameters, as they are declared or, with names, defined."""
        params = [
            " ".join(filter(None, (kind.spelling, kind.attributes, f"%{name}" if names else "")))
            for name, kind in self.params.items()
        ]
        return f"{'void' if self.returns is None else self.returns.spelling} @{self.name}({', '.join(params)})"

    def definition(self, poison: bool = False) -> Definition:
        """Its text, written once for a process."""
        made = self.kept.get(poison)
        if made is None:
            assert self.body is not None, self.name
            code = Code(poison)
            write = cast("Callable[..., Value | None]", self.body)
            result = write(code, *(kind(code, f"%{name}") for name, kind in self.params.items()))
            if code.block:
                code.ret(result)
            made = self.kept[poison] = Definition(self, "\n".join(["start:", *code.locals, *code.lines]), code.called)
        return made


class Definition(NamedTuple):
    """A function as it was written: its blocks, and the functions that it calls."""

    function: Function[Any, Any]
    blocks: str
    called: Mapping[str, Function[Any, Any]]

    def text(self, linkage: str = "") -> str:
        """It defined. linkage: beside that of a function that all may call."""
        attributes = f" {self.function.attributes}" if self.function.attributes else ""
        return f"define {linkage}{self.function.head(names=True)}{attributes} {{\n{self.blocks}\n}}\n"


def function(
    attributes: str = "",
    *,
    name: str = "",
    kinds: Mapping[str, type[Value]] | None = None,
    is_apart: bool = False,
    is_internal: bool = True,
) -> Callable[[Callable[Concatenate[Code, P], R]], Function[P, R]]:
    """Makes a Python function that writes one of LLVM's into that: its name and its annotations are those of both.
    kinds: types by the names that annotations have for them, before those of the function's module."""

    def make(body: Callable[Concatenate[Code, P], R]) -> Function[P, R]:
        found = {**body.__globals__, **(kinds or {}), "None": None}
        _, *annotations = body.__annotations__.items()
        types = {param: found[annotation] for param, annotation in annotations}
        returns = types.pop("return")
        return Function(
            name or body.__name__, returns, types, body, attributes, is_internal=is_internal, is_apart=is_apart
        )

    return make


def external(name: str, returns: type[R] | None, *params: type[Value], call_attributes: str = "") -> Function[..., R]:
    """A function that is defined elsewhere."""
    types = {str(number): kind for number, kind in enumerate(params)}
    result = cast("type[Value] | None", returns)
    return Function(name, result, types, call_attributes=call_attributes)


def module_text(
    functions: Sequence[Function[Any, Any]],
    data: Sequence[str] = (),
    *,
    declares: Collection[str] = (),
    exports: Collection[str] = (),
    poison: bool = False,
) -> str:
    """A module of these functions and all that they call, with lines for its data. declares: functions that another
    module exports; what only they call is left out. exports: functions that are internal elsewhere."""
    names = frozenset(declares)
    found = {function.name: function for function in functions}
    texts: list[str] = [*data]
    waiting = [*functions]
    for each in waiting:
        if each.body is None or each.name in names:
            texts.append(f"declare {each.head()}\n")
            continue
        definition = each.definition(poison)
        internal = each.is_internal and each.name not in exports
        texts.append(definition.text("internal " if internal else ""))
        waiting += [function for name, function in definition.called.items() if name not in found]
        found.update(definition.called)
    return "\n".join([*texts, "!0 = !{}", ""])
