"""A function as it was after every pass of the compiler, and whether each pass kept what it computes.

In: a function that is built while somebody watches, and arguments. Out: nothing, or an AssertionError that names the
pass. Graphs before and after a rewriting pass are interpreted; loops are run by `loop_machine`: to the bit the same
after passes that keep every operation, in exact arithmetic after those that may add up in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graphc
from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.signature import Array as Operand, Signature
from graphc.errors import GraphcError
from graphc.functions.native import Generated
from graphc.ir.interpret import interpret
from graphc.ir.node import Node
from graphc.ir.verify import Step, on_pass
from graphc.ir.walk import Graph
from graphc.loopir.ir import Function, Var
from graphc.loopir.syntax import print_functions
from tests.support.loop_machine import Exact, run
from tests.support.loop_text import parse_functions

Array = NDArray[Any]
Functions = tuple[Function, ...]
REORDERING = {"narrow_sums", "mark_independent", "outline"}
"""Passes after which sums may be taken in another order."""
WHOLE = {"outline", "assemble"}
"""After these the buffers have their final lengths."""


@dataclass
class Watched:
    """A function of mode `python`, and the passes over its graph, its kernel and its sizes."""

    call: Generated
    graphs: list[Step] = field(default_factory=list)
    kernel: list[Step] = field(default_factory=list)
    sizes: list[Step] = field(default_factory=list)

    @property
    def signature(self) -> Signature:
        return self.call.built.signature

    @property
    def numbers(self) -> dict[str, tuple[int, int]]:
        """The sizes that the passes know, each with the operand and the axis that it belongs to."""
        operands = self.signature.inputs + self.signature.shared
        places = [(n, axis) for n, operand in enumerate(operands) for axis, s in enumerate(operand.shape) if s is None]
        names = [param.name for param in self.sizes[0].after[-1].params if isinstance(param, Var)]  # type: ignore[index]
        return dict(zip(names, places, strict=True))


def watch(build: Callable[[], graphc.Function]) -> Watched:
    """What `build` builds in mode `python`, with its passes."""
    steps: list[Step] = []
    with on_pass(steps.append):
        call = build()
    assert isinstance(call, Generated)
    found = Watched(call)
    for step in steps:
        if isinstance(step.after, Graph):
            found.graphs.append(step)
        else:
            (found.sizes if step.after[-1].name == "sizes" else found.kernel).append(step)
    return found


def check_passes(found: Watched, inputs: Sequence[Array]) -> None:
    """Run what stands between the passes with these arguments, and compare."""
    shared = [cell[0] for cell in found.call.cells]
    operands = [np.ascontiguousarray(value).reshape(value.shape) for value in (*inputs, *shared)]
    results: dict[tuple[Functions, bool], Any] = {}

    def outcome(functions: Functions, exact: bool, whole: bool) -> Any:
        key = functions, exact
        if key not in results:
            results[key] = carry_out(found, functions, operands, exact, whole)
        return results[key]

    for step in (*found.sizes, *found.kernel):
        forms: list[Any] = [form for form in (step.before, step.after) if form]
        exact = step.name in REORDERING or step.name == "assemble"
        try:
            want, *others = (outcome(form, exact, step.name in WHOLE) for form in forms)
            problem = differs(others[0], want) if others else ""
        except Exception as error:
            problem = repr(error)
        assert not problem, f"pass {step.name}: {problem}\n" + "\nbecomes\n".join(map(print_functions, forms))


def carry_out(found: Watched, functions: Functions, operands: Sequence[Array], exact: bool, whole: bool) -> Any:
    """The code that the last function returns, and what results and written operands hold then."""
    signature = found.signature
    known = signature.inputs + signature.shared
    given = {operand.name: value.ravel() for operand, value in zip(known, operands, strict=True)}
    numbers = {name: operands[number].shape[axis] for name, (number, axis) in found.numbers.items()}
    limits = {name: value.size for name, value in given.items()}
    if functions[-1].name == "sizes":
        return run(functions, "sizes", given, numbers, limits, (), exact)
    code, left = run(only(found.sizes[-1].after, "sizes"), "sizes", given, numbers, limits, (), exact)
    if code:
        return code, {}
    extents = [int(left["S"][place]) for place in range(signature.extents)]
    if min(extents, default=0) < 0:
        return -1, {}
    shapes, lengths = places(signature, extents)
    limits |= {output.name: prod(shape) for output, shape in zip(signature.outputs, shapes, strict=True)}
    if whole:
        limits |= lengths
    code, left = run(functions, "kernel", given, numbers, limits, found.call.built.calls, exact)
    if code:
        return code, {}
    wanted: list[Operand] = [*signature.outputs, *(operand for operand in known if operand.written)]
    for operand in wanted:
        unwritten = set(range(limits[operand.name])) - left[operand.name].keys()
        assert not unwritten, f"elements {sorted(unwritten)} of {operand.name} are not written"
    return 0, {operand.name: left[operand.name] for operand in wanted}


def only(form: Any, name: str) -> Functions:
    return tuple(function for function in form if function.name == name)


def places(signature: Signature, extents: Sequence[int]) -> tuple[list[tuple[int, ...]], dict[str, int]]:
    """The shapes of the outputs, and the lengths of the temporaries."""
    left = iter(extents)
    shapes = [tuple(next(left) for _ in output.shape) for output in signature.outputs]
    lengths = {}
    for temp in signature.temps:
        extents = [prod(next(left) for _ in range(rank)) * itemsize(dtype) for dtype, rank in temp.values]
        lengths[temp.name] = max(extents) // itemsize(temp.dtype)
    return shapes, lengths


def differs(got: Any, want: Any) -> str:
    """How two outcomes differ; "" where they do not."""
    if got[0] != want[0]:
        return f"it returns {got[0]}, not {want[0]}"
    for name, cells in want[1].items():
        for place, value in cells.items():
            found = got[1][name][place]
            if not same(found, value):
                return f"{name}[{place}] is {found!r}, not {value!r}"
    return ""


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Exact):
        return bool(one.residue == other.residue)
    return bool(one.tobytes() == other.tobytes()) or bool(np.isnan(one) and np.isnan(other))


def check_text(found: Watched) -> None:
    """The functions of loops read back as they are: those of the first pass, and of the last, which are all."""
    for step in (found.kernel[0], found.kernel[-1]):
        text = print_functions(step.after)  # type: ignore[arg-type]
        assert parse_functions(text) == step.after, text


def interpreted(graph: Graph, values: Mapping[Node, Array]) -> Any:
    """The results of a graph, or the kind of error that it raises."""
    try:
        return interpret(graph, values)
    except GraphcError as error:
        return type(error)
