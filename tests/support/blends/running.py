"""Programs made of a name, run in a setting, and held to the interpreted mode.

In: a name. Out: what is wrong, or "". A difference counts where no change of the arguments by a few roundings makes
one of its size.
"""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.functions.native import Compiled
from graphc.ir.node import Node
from graphc.options import options
from tests.support.blends.growing import REFUSALS, Array, Grower, Late, within
from tests.support.blends.inner import MAKERS


@dataclass(frozen=True, slots=True)
class Setting:
    """How a program is compiled and called."""

    mode: str = "compiled"
    poison: str = "off"
    outline: str = "auto"
    threads: int | None = None


@dataclass(slots=True)
class Program:
    """Inputs, shared variables, what is computed and updated; arguments of several calls, and values of the shared."""

    inputs: list[Node]
    shared: list[Any]
    outputs: list[Node]
    updates: list[tuple[Any, Node]]
    calls: list[list[Array]]
    begin: list[Array]
    mutable: frozenset[int] = frozenset()
    trouble: list[str] = field(default_factory=list)


SHAPES = ("n", "m", "nm", "mn", "nn", "3", "3n", "n2", "22", "", "n1m", "2nm", "33", "nk", "1n", "4", "n4")
DTYPES = ("float64",) * 6 + ("float32", "float32", "int64", "int64", "int8", "uint8", "bool", "int32", "uint32")


def random_program(name: str, large: bool = False) -> Program:
    draw = random.Random(name)
    sizes = {"n": draw.choice([1, 2, 3, 5, 8]), "m": draw.choice([2, 3, 4, 7]), "k": draw.choice([0, 1, 3])}
    if large:
        sizes["n"], sizes["m"] = draw.choice([60, 400]), draw.choice([5, 9])
    other = {"n": draw.choice([1, 2, 4, 6, 9, 17]), "m": draw.choice([1, 3, 5, 6]), "k": draw.choice([0, 2])}
    inputs, shared, arrays, begin, seconds = [], [], [], [], []
    for number in range(draw.randrange(2, 6)):
        letters, dtype = draw.choice(SHAPES), draw.choice(DTYPES) if number else "float64"
        array = values_of(draw, dtype, shape_of(letters, sizes))
        if draw.random() < 0.2:
            shared.append(graphc.shared(array.copy(), f"s{number}"))
            begin.append(array)
        else:
            static = draw.random() < 0.3
            known = tuple(
                (size if static or not letter.isalpha() else None)
                for letter, size in zip(letters, array.shape, strict=True)
            )
            inputs.append(T.tensor(dtype, known, f"x{number}"))
            arrays.append(array)
            seconds.append(values_of(draw, dtype, shape_of(letters, sizes if static else other)))
    if shared and draw.random() < 0.5:
        shared.append(graphc.shared(begin[-1][::-1].copy() if begin[-1].ndim else begin[-1] * 2, "twin"))
        begin.append(np.array(shared[-1].get_value()))
    leaves = dict(zip([*inputs, *shared], [*arrays, *begin], strict=True))
    grower = Grower(draw, MAKERS, leaves, list(leaves.items()))
    grower.grow(draw.randrange(5, 40))
    made = [node for node, _ in grower.values[len(leaves) :]] or inputs
    outputs = draw.sample(made, min(len(made), draw.randrange(1, 6)))
    if made[-1] not in outputs:
        outputs.append(made[-1])
    if draw.random() < 0.3:
        costs = [node for node in outputs if node.dtype.startswith("float")]
        variables = [leaf for leaf in leaves if leaf.dtype.startswith("float")]
        if costs and variables:
            cost = sum((T.cast(T.sin(node), "float64")).sum() for node in costs)
            try:
                outputs += graphc.grad(cost, variables, disconnected_inputs="ignore")
            except REFUSALS as error:
                if "while_loop" not in str(error) and "loop" not in str(error):
                    grower.trouble.append(f"grad: {type(error).__name__}: {error}")
    updates = []
    for variable in shared:
        found = [
            node
            for node, array in grower.values
            if (node.dtype, array.shape) == (variable.dtype, np.shape(leaves[variable]))
        ]
        node = draw.choice(found[-3:] if draw.random() < 0.7 else found)
        if node is not variable and draw.random() < 0.8:
            updates.append((variable, node))
    calls = [arrays, seconds, arrays]
    mutable = frozenset(k for k in range(len(inputs)) if draw.random() < 0.15)
    return Program(inputs, shared, outputs, updates, calls, begin, mutable, grower.trouble)


def shape_of(letters: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[letter] if letter.isalpha() else int(letter) for letter in letters)


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-300, 3e38)


def values_of(draw: random.Random, dtype: str, shape: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(draw.getrandbits(32))
    if dtype.startswith("float"):
        numbers = rng.normal(size=shape)
        if rng.random() < 0.1:
            numbers = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), numbers)
        return np.asarray(numbers, dtype)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape) > 0)
    info = np.iinfo(dtype)
    low, high = (max(info.min, -6), 9) if draw.random() < 0.8 else (max(info.min, -(2**40)), min(info.max, 2**40))
    return np.asarray(rng.integers(low, high, shape, endpoint=True), dtype)


def perturbed(array: Array, seed: int, size: float = 1.0) -> Array:
    if array.dtype.kind != "f":
        return array
    rng = np.random.default_rng(seed)
    factor = 1 + size * 4 * np.finfo(array.dtype).eps * rng.uniform(-1, 1, array.shape)
    return np.asarray(array * factor, array.dtype)


LAYOUTS: Sequence[Callable[[Array], Array]] = (
    *[lambda a: a.copy()] * 3, lambda a: a.copy(order="F"), lambda a: a[::-1].copy()[::-1],
    lambda a: a[..., ::-1].copy()[..., ::-1], lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    lambda a: np.pad(a, 2)[(slice(2, -2),) * a.ndim],
)  # fmt: skip


def laid_out(draw: random.Random, array: Array) -> Array:
    value: Array = draw.choice(LAYOUTS)(array) if array.ndim else array.copy()
    if draw.random() < 0.2:
        value.flags.writeable = False
    return value


def ran(
    function: Any, program: Program, arrays: Sequence[Array], begin: Sequence[Array]
) -> list[Array] | BaseException:
    """Results and what the shared variables are afterwards, or what was raised."""
    for variable, value in zip(program.shared, begin, strict=True):
        variable.set_value(np.array(value))
    try:
        results = [np.array(each) for each in function(*arrays)]
    except REFUSALS as error:
        return error
    return results + [np.array(variable.get_value()) for variable in program.shared]


def compiled(program: Program, setting: Setting) -> Any:
    given = [graphc.In(leaf, mutable=k in program.mutable) for k, leaf in enumerate(program.inputs)]
    with options.change(poison=setting.poison, outline=setting.outline):
        call = graphc.function(given, program.outputs, setting.mode, updates=program.updates, on_unused_input="ignore",
                               threads=setting.threads)  # fmt: skip
    if setting.threads and isinstance(call, Compiled) and call.library.settings is not None:
        call.library.settings[:] = [setting.threads, 2, 3, 0, 1]  # chunks of three iterations
    return call


def wrong(program: Program, setting: Setting, seed: int = 0) -> str:
    """How the program in this setting differs from the interpreted one; "" where it does not."""
    draw = random.Random(seed)
    right = compiled(program, Setting("interpreted"))
    with options.change(poison=setting.poison, outline=setting.outline):
        call = compiled(program, setting)
        for turn, arrays in enumerate(program.calls):
            want = ran(right, program, arrays, program.begin)
            given = [laid_out(draw, array) for array in arrays]
            before = [array.tobytes() for array in given]
            got = ran(call, program, given, program.begin)
            for k, (array, old) in enumerate(zip(given, before, strict=True)):
                if array.tobytes() != old and k not in program.mutable:
                    return f"call {turn}: input {k} was written"
            text = differing(program, right, arrays, want, got)
            if text:
                return f"call {turn}: {text}"
    return ""


def wrong_slope(program: Program, seed: int = 0) -> str:
    """How the gradient of the interpreted program, of first and second order, differs from difference quotients."""
    variables = [leaf for leaf in program.inputs if leaf.dtype == "float64"]
    costs = [node for node in program.outputs if node.dtype == "float64"]
    text = graphc.print_graph(program.outputs)
    if not variables or not costs or "float32" in text or any(word in text for word in ("stop_gradient", "overridden")):
        return ""
    cost = sum(T.sin(node + 0.3).sum() for node in costs)
    rng = np.random.default_rng(seed)
    arrays = program.calls[0]
    along = [
        rng.normal(size=array.shape) if leaf in variables else None
        for leaf, array in zip(program.inputs, arrays, strict=True)
    ]
    try:
        first = sum(
            (g * d).sum()
            for g, d in zip(
                graphc.grad(cost, variables, disconnected_inputs="ignore"),
                [d for d in along if d is not None],
                strict=True,
            )
        )
        second = sum(
            (g * d).sum()
            for g, d in zip(
                graphc.grad(first, variables, disconnected_inputs="ignore"),
                [d for d in along if d is not None],
                strict=True,
            )
        )
    except GraphcError as error:
        return "" if "loop" in str(error) or "has no derivative" in str(error) else f"{type(error).__name__}: {error}"
    function = graphc.function(program.inputs, [cost, first, second], "interpreted", on_unused_input="ignore")

    def at(h: float) -> list[float]:
        for variable, value in zip(program.shared, program.begin, strict=True):
            variable.set_value(np.array(value))
        return [
            float(v) for v in function(*(a if d is None else a + h * d for a, d in zip(arrays, along, strict=True)))
        ]

    middle = at(0.0)
    for order in (0, 1):
        quotients = []
        for h in (2e-3, 1e-3, 5e-4, 1e-5):
            a, b, c, d = (at(k * h)[order] for k in (-2, -1, 1, 2))
            quotients.append((a - 8 * b + 8 * c - d) / (12 * h))
        want, got = quotients[-1], middle[order + 1]
        if not np.isfinite([*quotients, got]).all():
            return ""
        scale = max(abs(want), abs(middle[order]), 1e-2)
        spread = max(abs(q - want) for q in quotients)
        if abs(got - want) > 1e-3 * scale + 3 * spread:
            return f"slope of order {order + 1}: {got} instead of {want} ({quotients})"
    return ""


def differing(program: Program, right: Any, arrays: Sequence[Array], want: Any, got: Any) -> str:
    if isinstance(want, BaseException) or isinstance(got, BaseException):
        if isinstance(want, BaseException) and isinstance(got, BaseException):
            alike = type(want) is type(got) or (isinstance(want, GraphcError) and isinstance(got, GraphcError))
            return "" if alike else f"{got!r} instead of {want!r}"
        if isinstance(want, GraphcError | np.linalg.LinAlgError) and not isinstance(got, BaseException):
            return f"a result instead of {want!r}"
        return "" if isinstance(want, BaseException) else f"raised {got!r}"
    others: list[Any] | None = None
    for number, (a, b) in enumerate(zip(want, got, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}"
        off = deviation(a, b)
        if off <= (1e-9 if a.dtype == np.float64 else 1e-4 if a.dtype == np.float32 else 0):
            continue
        if others is None:
            others = [
                ran(
                    right,
                    program,
                    [perturbed(x, s, 1e3 if s > 5 else 1) for x in arrays],
                    [perturbed(x, s + 9) for x in program.begin],
                )
                for s in range(8)
            ]
        spread = max(
            (
                np.inf
                if isinstance(other, BaseException) or other[number].shape != a.shape
                else deviation(a, other[number])
                for other in others
            ),
            default=0,
        )
        narrow = "float32" in graphc.print_graph(program.outputs + [node for _, node in program.updates])
        if off > 1e4 * spread and not (narrow and off < 1e-3):
            at = np.unravel_index(np.argmax(distances(a, b)), a.shape) if a.shape else ()
            off_by = f"off by {off:.3g} where roundings make {spread:.3g}"
            return f"result {number} at {tuple(map(int, at))}: {b[at]!r} instead of {a[at]!r}, {off_by}"
    return ""


def distances(a: Array, b: Array) -> Array:
    """Of elements, in units of the largest; nothing where the right one is no number."""
    if a.dtype.kind != "f":
        return np.asarray(a != b, "float64")
    with np.errstate(all="ignore"):
        finite = np.isfinite(a)
        scale = max(float(np.max(np.abs(a[finite]), initial=0)), 1e-3)
        off = np.where(finite, np.abs(np.asarray(b, "float64") - a) / scale, 0)
        return np.where(np.isnan(off) | np.isinf(off), 1e300, off)


def deviation(a: Array, b: Array) -> float:
    return float(np.max(distances(a, b), initial=0.0))


def smaller(program: Program, setting: Setting, text: str) -> tuple[Program, str]:
    """Fewer results and updates, fewer calls, as long as it fails; then values from within in place of results."""
    changed, begun = True, time.time()
    while changed and time.time() < begun + 120:
        changed = False
        for candidate in candidates(program):
            try:
                found = wrong_slope(candidate) if setting.mode == "slopes" else wrong(candidate, setting)
            except Exception as error:
                found = (
                    f"{type(error).__name__}: {error}"[:300] if text[:9] in f"{type(error).__name__}: {error}" else ""
                )
            if found:
                program, text, changed = candidate, found, True
                break
    return program, text


def candidates(program: Program) -> list[Program]:
    found = []
    if len(program.calls) > 1:
        found += [replace(program, calls=[call]) for call in program.calls[:2]]
    found += [
        replace(program, updates=program.updates[:k] + program.updates[k + 1 :]) for k in range(len(program.updates))
    ]
    if len(program.outputs) > 1:
        found += [replace(program, outputs=[node]) for node in program.outputs]
        found += [
            replace(program, outputs=program.outputs[:k] + program.outputs[k + 1 :])
            for k in range(len(program.outputs))
        ]
    if program.mutable:
        found.append(replace(program, mutable=frozenset()))
    if len(program.outputs) == 1:
        args = [arg for arg in program.outputs[0].args if not arg.is_tuple and arg.args]
        for tupled in [arg for arg in program.outputs[0].args if arg.is_tuple]:
            args += [arg for arg in tupled.args if not arg.is_tuple and arg.args]
        found += [
            replace(program, outputs=[arg])
            for arg in args
            if arg.op.name != "item" or arg.args[0].op.name in ("scan", "branch", "cond")
        ]
    return found


SETTINGS = (
    *[Setting()] * 4,
    *[Setting("python")] * 12,
    *[Setting("slopes")] * 8,
    *[Setting(poison="on")] * 2,
    *[Setting(threads=threads) for threads in (2, 2, 3)],
    *[Setting(outline=outline) for outline in ("always", "never")],
    Setting(poison="guard"),
)


def outcome(name: str, setting: Setting | None = None, shrink: bool = True) -> tuple[str, str, list[str], int]:
    """What is wrong with the program of this name, how it was run, and what the makers did not expect."""
    draw = random.Random(name + "!")
    setting = setting or draw.choice(SETTINGS)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        program = random_program(name, large=draw.random() < 0.1 and setting.mode != "python")
        try:
            with within(12.0):
                text = wrong_slope(program) if setting.mode == "slopes" else wrong(program, setting)
        except Late:
            return "", f"{setting} late", program.trouble, 0
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:400] + traceback.format_exc()[-600:]
        if text and shrink:
            program, text = smaller(program, setting, text)
            text += "\n" + described(program)
    return text, str(setting), program.trouble, len(program.outputs)


def described(program: Program) -> str:
    text = graphc.print_graph(program.outputs + [node for _, node in program.updates])
    arrays = [(x.shape, str(x.dtype)) if x.size > 12 else x for x in program.calls[0]]
    shared = f"shared {program.shared} {program.begin} updates {program.updates} mutable {program.mutable}"
    return f"{text}\n{program.inputs} {arrays}\n{shared}"
