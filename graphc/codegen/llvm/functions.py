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
from functools import cache, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.module import POISON
from graphc.codegen.llvm.typed import ELEMENTS, I8, I32, I64, NULL, Bool, N, Number, Ptr, Value, elements, truth
from graphc.startup.record import record

P = ParamSpec("P")
R = TypeVar("R")


class Function(Generic[P, R]):
    """A function of a module. body: what writes it, None where it is defined elsewhere."""

    __slots__ = (
        "attributes",
        "body",
        "call_attributes",
        "is_internal",
        "is_variadic",
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
        is_variadic: bool = False,
        call_attributes: str = "",
    ) -> None:
        self.name = name
        self.returns = returns
        self.params = params
        self.body = body
        self.attributes = attributes
        self.is_internal = is_internal
        self.is_variadic = is_variadic
        self.call_attributes = call_attributes
        self.kept: dict[bool, Definition] = {}

    def __call__(self, code: Code, *args: P.args, **kwargs: P.kwargs) -> R:
        operands = cast("Sequence[Value]", args)
        taken = [param.spelling for param in self.params.values()]
        known = operands[: len(taken)] if self.is_variadic else operands
        if [arg.spelling for arg in known] != taken:
            raise TypeError(f"@{self.name}({', '.join(map(str, operands))}), where {self.head()} is meant")
        code.called[self.name] = self
        callee = f"({', '.join(taken)}, ...) @{self.name}" if self.is_variadic else f"@{self.name}"
        return cast("R", code.call(self.returns, callee, operands, self.call_attributes))

    def pointer(self, code: Code) -> Ptr:
        """Its address."""
        code.called[self.name] = self
        return Ptr(code, f"@{self.name}")

    def head(self, names: bool = False) -> str:
        """Its result, name and parameters, as they are declared or, with names, defined."""
        params = [
            " ".join(filter(None, (type_.spelling, type_.attributes, f"%{name}" if names else "")))
            for name, type_ in self.params.items()
        ]
        params += ["..."] * self.is_variadic
        return f"{'void' if self.returns is None else self.returns.spelling} @{self.name}({', '.join(params)})"

    def definition(self, poison: bool = False) -> Definition:
        """Its text, written once for a process."""
        definition = self.kept.get(poison)
        if definition is None:
            assert self.body is not None, self.name
            code = Code(poison)
            write = cast("Callable[..., Value | None]", self.body)
            result = write(code, *(type_(code, f"%{name}") for name, type_ in self.params.items()))
            if code.block:
                code.ret(result)
            blocks = "\n".join(["start:", *code.locals, *code.lines])
            definition = self.kept[poison] = Definition(self, blocks, code.called, code.data)
        return definition


@record(eq=False)
class Definition:
    """A function as it was written: its blocks, the functions that it calls, and the globals that it names."""

    function: Function[Any, Any]
    blocks: str
    called: Mapping[str, Function[Any, Any]]
    data: Mapping[str, str]

    def text(self, linkage: str = "") -> str:
        """It defined. linkage: besides that of a function that all may call."""
        attributes = f" {self.function.attributes}" if self.function.attributes else ""
        return f"define {linkage}{self.function.head(names=True)}{attributes} {{\n{self.blocks}\n}}\n"


def function(
    attributes: str = "", *, name: str = "", is_internal: bool = True
) -> Callable[[Callable[Concatenate[Code, P], R]], Function[P, R]]:
    """Makes a Python function that writes one of LLVM's into that: its name and its annotations are those of both."""

    def make(body: Callable[Concatenate[Code, P], R]) -> Function[P, R]:
        returns, types = _types(body, 1, {})
        return Function(name or body.__name__, returns, types, body, attributes, is_internal=is_internal)

    return make


def functions(
    name: str, attributes: str, element_of: Callable[[str], type[Value]], *, is_internal: bool = True
) -> Callable[[Callable[..., R]], Callable[[str], Function[..., R]]]:
    """Makes a Python function that writes one of LLVM's for any dtype into a table of these by dtype, of the names
    `{name}_{dtype}`. It takes the code and the dtype before its parameters, in whose annotations `Element` is the
    dtype's type, and `Elements` and `NoAlias` those of addresses of such numbers.

        @functions("clear", "noinline", NUMBERS.__getitem__)
        def clear(code: Code, dtype: str, place: Ptr, value: Element) -> None:
            place.store(value)

        clear("float32")(code, place, value)
    """

    def make(body: Callable[..., R]) -> Callable[[str], Function[..., R]]:
        @cache
        @wraps(body)
        def of(dtype: str) -> Function[..., R]:
            def write(code: Code, *args: Value) -> R:
                return body(code, dtype, *args)

            element = element_of(dtype)
            named = {"Element": element, "Elements": elements(element), "NoAlias": elements(element, "noalias")}
            returns, types = _types(body, 2, named)
            return Function(f"{name}_{dtype}", returns, types, write, attributes, is_internal=is_internal)

        return of

    return make


def _types(body: Callable[..., Any], skipped: int, words: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The type of the result of a function and those of its parameters behind the first few, from its annotations."""
    words, known = {"None": None, **words}, body.__globals__
    annotations = [*body.__annotations__.items()][skipped:]
    types = {param: words[word] if word in words else known[word] for param, word in annotations}
    return types.pop("return"), types


@overload
def external(name: str, returns: None, *params: type[Value], is_variadic: bool = False) -> Function[..., None]: ...
@overload
def external(
    name: str, returns: type[R], *params: type[Value], is_variadic: bool = False, call_attributes: str = ""
) -> Function[..., R]: ...
def external(
    name: str, returns: type[R] | None, *params: type[Value], is_variadic: bool = False, call_attributes: str = ""
) -> Function[..., Any]:
    """A function that is defined elsewhere."""
    types = {str(number): param for number, param in enumerate(params)}
    result = cast("type[Value] | None", returns)
    return Function(name, result, types, is_variadic=is_variadic, call_attributes=call_attributes)


def gathered(code: Code, type_: type[N], at: Ptr, places: Number, align: int, there: Bool | None = None) -> N:
    """The elements at a vector of places from an address on; 0 where `there` says that a lane has none. type_: the
    vector of them."""
    lanes, element = type_.lanes, ELEMENTS[type_].spelling
    addresses, mask = _addresses(lanes), truth(lanes)
    name = f"llvm.masked.gather.{type_.vectors}.v{lanes}p0"
    pointers = code.emit(addresses, f"getelementptr {element}, {at}, {places}")
    gather = external(name, type_, addresses, I32, mask, type_)
    return gather(code, pointers, I32.of(align), mask.of(True) if there is None else there, type_.of(0))


@cache
def _addresses(lanes: int) -> type[Ptr]:
    """The type of vectors of addresses."""
    return type(f"V{lanes}Ptr", (Ptr,), {"__slots__": (), "spelling": f"<{lanes} x ptr>"})


class Global:
    """Memory of a module: its name, and its definition or declaration."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __call__(self, code: Code) -> Ptr:
        """Its address."""
        code.data[self.name] = f"@{self.name} = {self.text}"
        return Ptr(code, f"@{self.name}")


def table(name: str, words: Sequence[int]) -> Global:
    """Constant words."""
    return Global(name, f"private constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]")


def module_text(
    functions: Sequence[Function[Any, Any]],
    data: Sequence[str] = (),
    *,
    declares: Collection[str] = (),
    exports: Collection[str] = (),
    poison: bool = False,
) -> str:
    """A module of these functions, all that they call and all globals that these name, and lines for more data.
    declares: functions that another module exports; what only they call is left out. exports: functions that are
    internal elsewhere."""
    every = reached(functions, declares, poison)
    defined = {each.name for each in every if each.body is not None} - set(declares)
    linkage = {each.name: "internal " for each in every if each.is_internal and each.name in defined - set(exports)}
    return write_module(every, defined, linkage, poison, data)


def reached(
    functions: Sequence[Function[Any, Any]], declares: Collection[str] = (), poison: bool = False
) -> list[Function[Any, Any]]:
    """These functions and all that they call, but for what only those call that are declared."""
    names = frozenset(declares)
    by_name = {function.name: function for function in functions}
    waiting = [*functions]
    for each in waiting:
        if each.body is not None and each.name not in names:
            new = [function for name, function in each.definition(poison).called.items() if name not in by_name]
            by_name.update((function.name, function) for function in new)
            waiting += new
    return waiting


def write_module(
    functions: Sequence[Function[Any, Any]],
    defined: Collection[str],
    linkage: Mapping[str, str],
    poison: bool = False,
    data: Sequence[str] = (),
) -> str:
    """A module that defines some of the functions and declares the others, which may be hidden elsewhere."""
    lines, texts = dict.fromkeys(data), []
    for each in functions:
        how = linkage.get(each.name, "")
        if each.name in defined:
            definition = each.definition(poison)
            texts.append(definition.text(how))
            lines |= dict.fromkeys(definition.data.values())
        else:
            texts.append(f"declare {how}{each.head()}\n")
    return "\n".join([*lines, *texts, METADATA])


METADATA = "!0 = !{}\n!1 = !{i32 1}\n"
"""The metadata that instructions' notes name: nothing, as invariant loads have it, and 1, as non-temporal stores do."""


# --- split ------------------------------------------------------------------------------------------------------------
# Functions of LLVM IR as several modules, so that two processes can compile them.
#
# In: functions (functions.py). Out: texts whose objects, linked, are that of the whole. A function that was internal
# is hidden instead: nothing beyond the link sees it. What is always inlined is in every module.


def split(functions: Sequence[Function[Any, Any]], count: int, poison: bool = False) -> list[str]:
    """`count` modules, of about the same length, or fewer where there are fewer functions."""
    every = reached(functions, poison=poison)
    written = [each for each in every if each.body is not None]
    inlined = [each for each in written if each.attributes == "alwaysinline"]
    others = [each for each in written if each.attributes != "alwaysinline"]
    count = min(count, max(len(others), 1))
    if count == 1:
        return [module_text(functions, poison=poison)]
    groups = balanced([len(each.definition(poison).blocks) for each in others], count)
    linkage = {each.name: "hidden " for each in others if each.is_internal}
    linkage |= {each.name: "internal " for each in inlined}
    modules = []
    for group in groups:
        defined = [*inlined, *(others[place] for place in sorted(group))]
        modules.append(write_module(every, {each.name for each in defined}, linkage, poison))
    return modules


def balanced(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The places of sizes in `count` groups of about the same sum: the largest first, each to the smallest group."""
    groups: list[list[int]] = [[] for _ in range(count)]
    sums = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        smallest = sums.index(min(sums))
        groups[smallest].append(place)
        sums[smallest] += sizes[place]
    return groups


# --- poison -----------------------------------------------------------------------------------------------------------
# Memory filled with a pattern before it is used, so that what is read before it is written shows.
#
# In: an address and a length. Out: `poison`, the function that fills: code that takes memory calls it where
# `Code.poison` says so.


@function("noinline")
def poison(code: Code, memory: Ptr, length: I64) -> None:
    """Fills memory with the words of a pattern; nothing where there is none."""
    with code.when(memory == NULL):
        code.ret()
    with code.count(0, length >> 2) as i:
        memory.at(i, I32).store(I32.of(POISON), align=1)
    pattern = code.variable(I32.of(POISON))
    with code.count(length & -4, length) as i:
        memory.at(i).store(pattern.value.to(I8))
        pattern.value >>= 8
