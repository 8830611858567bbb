"""Jitted functions as files: all variants of a function, for `f.save(path)` and `graphc.load(path)`.

In: a function of `jit`, `grad`, `vmap` and kin that was called. Out: a file as functions/saved.py writes it, with a row
for each variant: the form of its arguments, its guards, the compiled function, the form of its results. Questions about
values are functions of the file too. What is loaded is a jitted function whose program is not there: it runs the
variants, and an argument for which there is none is an error that lists those that there are.

    f = graphc.jit(lambda x, scale: {"sum": (x * scale).sum()})
    f(np.ones(3), 2.0)
    f.save("f.graphc")
    g = graphc.load("f.graphc")
    g(np.ones(7), 3.0)           {'sum': np.float64(21.0)}
    g(np.ones((2, 2)), 3.0)      ArgumentError: f was loaded without its program; ... x: float64[x.0], scale: float64
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.errors import ArgumentError, GraphcError
from graphc.functions.archive import Blobs, Opened, blobs_for, decoded, encoded
from graphc.functions.callables import Function
from graphc.functions.loaded import ASKING, arguments_of
from graphc.functions.saved import function_row, write
from graphc.startup.hooks import HOOKS
from graphc.tracing.answers import Question
from graphc.tracing.arguments import Settings, Static, keywords_in_order, kinds_of, with_parts
from graphc.tracing.traced import Jitted
from graphc.tracing.variants import Condition, Guards, Variant, choose, form_of
from graphc.trees import like

# Writing


def save(
    function: Jitted[..., Any], path: str | os.PathLike[str], values: str = "inside", targets: Sequence[str] = ()
) -> None:
    """Write the variants of a function to a file. `Jitted.save` tells more."""
    blobs = blobs_for(values)
    open_sizes(function)
    asked: dict[Any, int] = {}
    variants = [_variant_row(function, each, blobs, asked) for each in function.current_variants()]
    inspect = import_module("inspect")
    parameters = inspect.signature(function).parameters.values()
    header = {
        "kind": ASKING if asked else "jitted",
        "name": function.__name__,
        "doc": function.__doc__,
        "parameters": [[each.name, each.kind.name, each.default is not each.empty] for each in parameters],
        "static": [list(function.static.numbers), list(function.static.names)],
        "by_class": function.by_class,
        "variants": variants,
        "asked": [function_row(each, blobs) for each in asked],
    }
    write(path, header, blobs, targets)


def open_sizes(function: Jitted[..., Any]) -> None:
    """Compile a variant without fixed sizes beside each that has some although the program asks for none: there is no
    program where the function is loaded, and its arguments may have other sizes."""
    for variants in function.entries.values():
        for each in [each for each in variants if each.short and not each.questions and each.changed() is None]:
            if not any(other.short < each.short and choose([other], each.example) for other in variants):
                variants.append(_opened(function, each))


def _opened(function: Jitted[..., Any], variant: Variant) -> Variant:
    """A variant for the same arguments without fixed short axes."""
    form, given = variant.form, variant.example
    assert form is not None, "of every variant that was traced"
    placed, named = like(form.arguments, given)
    args = list(placed)
    for place, value in zip(function.static.places(len(args) + len(form.static))[0], form.static, strict=True):
        args.insert(place, value)
    made: Variant = function.trace(tuple(args), {**named, **dict(form.fixed)}, given, variant.ones)
    return made


def _variant_row(function: Jitted[..., Any], variant: Variant, blobs: Blobs, asked: dict[Any, int]) -> dict[str, Any]:
    """What a header says of a variant. asked: the functions of questions, by number, to which its own are added."""
    if variant.function is None or variant.call is not variant.function:
        raise GraphcError(f"{function.title} gives no arrays for {variant!r}: that cannot be saved")
    form, title = variant.form, function.title
    assert form is not None, "of every variant that was traced"
    return {
        "types": variant.types,
        "arguments": encoded(form.arguments, f"{title}, its arguments"),
        "leaves": [_kind(leaf) for leaf in form.kinds],
        "static": [_plain(value, title) for value in form.static],
        "fixed": [[name, _plain(value, title)] for name, value in form.fixed],
        "results": encoded(variant.made, f"{title}, its results"),
        "guards": [[each.code, str(each.holds), _where(each)] for each in variant.asked.conditions],
        "ones": [list(axes) for axes in variant.ones],
        "questions": [[asked.setdefault(each.ask, len(asked)), each.answer, each.text] for each in variant.questions],
        "function": function_row(variant.function, blobs),
    }


def _kind(kind: Any) -> Any:
    """A leaf of arguments in JSON: [dtype, rank] of an array, the name of the class of a number, a flag."""
    if isinstance(kind, bool):
        return kind
    return kind.__name__ if isinstance(kind, type) else [kind[0].name, kind[1]]


def _where(each: Condition) -> str | None:
    return None if each.where is None else str(each.where)


def _plain(value: Any, title: str) -> Any:
    """A static argument in JSON, which must give back an equal one."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise GraphcError(f"{title}: a static argument {value!r} is neither a number nor text: it cannot be saved")


# Reading


def restored_jitted(opened: Opened, functions: Sequence[Function], asked: Sequence[Function]) -> Jitted[..., Any]:
    """Return the jitted function of a file. functions: those of its variants. asked: those of questions."""
    header = opened.header
    name = str(header["name"])

    def absent(*args: Any, **kwargs: Any) -> Any:
        known = "; ".join(map(repr, made.variants()))
        raise ArgumentError(f"{name} was loaded without its program, and has no variant for these arguments: {known}")

    absent.__name__ = absent.__qualname__ = name
    absent.__doc__ = header["doc"]
    inspect = import_module("inspect")
    absent.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                each, inspect._ParameterKind[kind], default=... if has_default else inspect.Parameter.empty
            )
            for each, kind, has_default in header["parameters"]
        ]
    )
    numbers, names = header["static"]
    made: Jitted[..., Any] = Jitted(absent, absent, Static(tuple(numbers), tuple(names)), Settings(), name)
    made.by_class = header["by_class"]
    for row, function in zip(header["variants"], functions, strict=True):
        _add_variant(made, header, row, function, asked)
    return made


def _add_variant(
    made: Jitted[..., Any],
    header: Mapping[str, Any],
    row: Mapping[str, Any],
    function: Function,
    asked: Sequence[Function],
) -> None:
    args, kwargs, static, _ = arguments_of(header, row)
    conditions = tuple(Condition(holds, code, where) for code, holds, where in row["guards"])
    ones = tuple(map(tuple, row["ones"]))
    results = function.kernel.outputs
    tree = like(decoded(row["results"]), results)
    questions = [Question(asked[number], answer, text) for number, answer, text in row.get("questions", ())]
    guards = Guards(conditions, {}, conditions)
    variant = Variant(row["types"], function, function, tree, results, guards, ones, questions=questions)
    whole, named = with_parts(tuple(args), kwargs, made.static)
    key, found = made.keyed(whole, named)
    parts = made.static.split(whole, named)
    variant.form = form_of(parts, kinds_of(found, by_class=True))
    if not questions:
        names = keywords_in_order(made.build, parts)
        variant.make_fast((whole, named, static, made.static.names), found, names, made.again, made.has_out)
    made.entries.setdefault(key, []).append(variant)


HOOKS.restored_jitted = restored_jitted
