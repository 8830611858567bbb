"""What the code generator has to get right beyond single ops: compiled = generated source under CPython = interpreted.

A case is a row: the arguments by their types over the sizes n, m, k ("x:float64[n,m]"; "W=float32[n]" is a shared
variable), and a function from these to outputs, or to outputs and updates. Each runs in all modes over SIZES.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.build import Counter
from graphc.ir.node import Node, variable

Array = NDArray[Any]
MODES = ("interpreted", "python", "compiled")
SIZES = ({"n": 3, "m": 4, "k": 2}, {"n": 1, "m": 1, "k": 1}, {"n": 0, "m": 3, "k": 2}, {"n": 2, "m": 0, "k": 1}, {"n": 5, "m": 2, "k": 0})
ARGUMENT = re.compile(r"(\w*)([:=])(\w+)\[(.*)\]")


@dataclass(frozen=True)
class Case:
    name: str
    args: str
    build: Callable[..., Any]
    scale: float = 1.0


CASES: list[Case] = []


def case(name: str, args: str, build: Callable[..., Any], scale: float = 1.0) -> None:
    CASES.append(Case(name, args, build, scale))


def shape_of(text: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[size] if size in sizes else int(size) for size in text.replace(" ", "").split(",") if size)


def draw(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, scale: float) -> Array:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return (rng.normal(size=shape) * scale).astype(dtype)
    low = 0 if dtype.startswith("u") else -3
    return rng.integers(low, 4, shape).astype(dtype)


@dataclass
class Program:
    """A case's variables: inputs first, then shared, each with its dtype and sizes as text."""

    inputs: list[tuple[Node, str, str]]
    shared: list[tuple[Any, str, str]]
    outputs: Any
    updates: Any


def make_program(spec: Case) -> Program:
    inputs, shared, args = [], [], []
    for number, (name, kind, dtype, sizes) in enumerate(m.groups() for m in ARGUMENT.finditer(spec.args.replace("; ", "\n"))):
        static = [int(s) if s.strip().isdigit() else None for s in sizes.split(",") if s.strip()]
        if kind == ":":
            node: Any = variable(dtype, static, name or f"x{number}")
            inputs.append((node, dtype, sizes))
        else:
            start = np.zeros(shape_of(sizes, SIZES[0]), dtype)
            node = graphc.shared(start, name=name, shape=static)
            shared.append((node, dtype, sizes))
        args.append(node)
    built = spec.build(*args)
    outputs, updates = built if isinstance(built, tuple) else (built, None)
    outputs = outputs if isinstance(outputs, list) or outputs is None else [outputs]
    return Program(inputs, shared, outputs or [], updates)


def outcome(call: Callable[..., Any], values: Sequence[Array], shared: Sequence[Any], start: Sequence[Array]) -> tuple[Any, list[Array]]:
    for variable_, value in zip(shared, start, strict=True):
        variable_.set_value(value)
    try:
        found = call(*[value.copy() for value in values])
    except (graphc.GraphcError, ZeroDivisionError, ValueError) as error:
        found = type(error)
    return found, [variable_.get_value() for variable_ in shared]


TOLERANCE = {"float32": 2e-5, "float64": 1e-10}


def agree(found: tuple[Any, list[Array]], want: tuple[Any, list[Array]], what: str) -> None:
    if isinstance(want[0], type) or isinstance(found[0], type):
        assert found[0] is want[0], what
        groups = [(found[1], want[1])]
    else:
        groups = [(found[0], want[0]), (found[1], want[1])]
    for have, expected in groups:
        for got, value in zip(have, expected, strict=True):
            assert (got.dtype, got.shape) == (value.dtype, value.shape), what
            if value.dtype.kind == "f":
                tolerance = TOLERANCE[value.dtype.name]
                scale = np.abs(value[np.isfinite(value)]).max(initial=1.0)
                np.testing.assert_allclose(got, value, rtol=tolerance, atol=tolerance * scale, err_msg=what)
            else:
                np.testing.assert_array_equal(got, value, err_msg=what)


def run_case(spec: Case, modes: Sequence[str] = MODES) -> None:
    program = make_program(spec)
    shared = [node for node, *_ in program.shared]
    calls = {
        mode: graphc.function([node for node, *_ in program.inputs], program.outputs, updates=program.updates, mode=mode, on_unused_input="ignore")
        for mode in modes
    }
    compiled = Counter.compilations
    rng = np.random.default_rng(5)
    for sizes in SIZES:
        values = [draw(dtype, shape_of(text, sizes), rng, spec.scale) for _, dtype, text in program.inputs]
        start = [draw(dtype, shape_of(text, sizes), rng, spec.scale) for _, dtype, text in program.shared]
        want = outcome(calls["interpreted"], values, shared, start)
        for mode in modes[1:]:
            found = outcome(calls[mode], values, shared, start)
            agree(found, want, f"{spec.name}, {mode}, {sizes}\n{calls['python'].source if 'python' in calls else ''}")
    assert Counter.compilations == compiled
