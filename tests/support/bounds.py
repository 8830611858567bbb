"""How far a result may be from the interpreter's, by what arithmetic promises: a bound for every element.

In: nodes, and the arrays of their inputs and shared variables. Out: their values, and for each element how far any
right evaluation may be from them. Each operation rounds; a sum of n terms by n rounding errors of the sum of their
magnitudes, however it is ordered; what its operands were wrong by goes through it to first order. Where a comparison
may fall either way, or a magnitude overflows, there is no bound: it is infinite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphc.functions.callables import Function
from graphc.ir.interpret import interpret
from graphc.ir.lowering import Call, Scalar
from graphc.ir.node import LEAVES, Array, Node
from graphc.ir.walk import Graph, toposort
from graphc.ops.linalg.routine import ROUTINES
from graphc.ops.shape import parts_of

ROUNDED = 4.0
"""Units in the last place that an elementary operation may be wrong by, in any form that a rule gives it."""
ABSOLUTE = {"gammaln": 1e-14}
"""What the interpreter's functions may be wrong by besides, beside their zeros (docs/design.md)."""
SOLVED = {"solve", "inverse", "cofactors", "det", "detsign", "logabsdet"}
"""Ops that are made of factorisations."""
SHAKEN = 8
"""How many times the operands of a factorisation are moved."""
BLOCK = 256
"""Terms of a float32 sum that are added in float32, at most; more are carried in float64."""
MONOTONE = {
    "max", "min", "supremum", "max_or_lowest", "min_or_highest", "any", "all", "sort", "top", "running_extreme",
}  # fmt: skip
LINEAR = {
    "running_sum", "segment_sum", "sum", "set_subtensor", "inc_subtensor", "set_gather", "inc_gather", "inc_windows",
}  # fmt: skip
POLYNOMIAL = {"prod", "running_prod", "linear_recurrence", "matmul", "gemm", "conv"}
VIEWS = {"gather", "subtensor", "broadcast_to", "reshape", "windows", "checked"}
INDEXED = {
    "set_subtensor": 2, "inc_subtensor": 2, "set_gather": 2, "inc_gather": 2, "inc_windows": 2, "segment_sum": 1,
    "conv": 2,
}  # fmt: skip
"""The first arguments of these that are numbers; the others say where."""


def evaluate(nodes: Sequence[Node], values: Mapping[Node, Array]) -> list[tuple[Array, Array]]:
    """The interpreter's value of each node, and how far a right one may be from it."""
    order = toposort(nodes, lambda node: node.args)
    plain = tuple(node for node in order if not node.is_tuple)
    known: dict[Node, Any] = dict(zip(plain, interpret(Graph((), plain), values), strict=True))
    known |= {node: node.op.eval(node, *(known[arg] for arg in node.args)) for node in order if node.is_tuple}
    errors: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in order:
            args = [(known[arg], errors[arg]) for arg in node.args]
            if node.op.name in ROUTINES or node.op.name in SOLVED:
                errors[node] = _of_routine(node, known[node], args)
                continue
            error = np.asarray(_error(node, known[node], args), "float64")
            errors[node] = np.where(np.isnan(error), np.inf, np.broadcast_to(error, known[node].shape))
    return [(known[node], 2 * errors[node]) for node in nodes]  # each of two evaluations may be as wrong


def _of_routine(node: Node, value: Any, args: Sequence[tuple[Array, Array]]) -> Any:
    """Of a factorisation: what comes of operands that are a little off; the algorithms are as good as that."""
    generator, parts = np.random.default_rng(0), value if node.is_tuple else (value,)
    found = [np.zeros(part.shape) for part in parts]
    unit = float(np.finfo(args[0][0].dtype).eps)
    for _ in range(SHAKEN):
        moved = [
            (given + generator.uniform(-1, 1, given.shape) * (error + unit * np.abs(given))).astype(given.dtype)
            for given, error in args
        ]
        made: Any = node.op.eval(node, *moved)
        for error, part, other in zip(found, parts, made if node.is_tuple else (made,), strict=True):
            np.maximum(error, np.abs(other - part), out=error)
    errors = tuple(
        np.where(np.isnan(part), 0.0, ROUNDED * (error.max(initial=0.0) + unit * _magnitude(part).max(initial=0.0)))
        if _rounds(part)
        else error
        for error, part in zip(found, parts, strict=True)
    )
    return errors if node.is_tuple else errors[0]


def _error(node: Node, value: Array, args: Sequence[tuple[Array, Array]]) -> Any:
    name = node.op.name
    if name == "item":
        errors: Any = args[0][1]
        return errors[node.attrs["index"]]
    if node.op in LEAVES or not args or (not any(error.any() for _, error in args) and not _rounds(value)):
        return 0.0
    wide = _wide(node)
    unit = float(np.finfo(value.dtype).eps) if _rounds(value) else 0.0
    if name in LINEAR | POLYNOMIAL:
        return _of_sums(node, wide, value, args, unit / 2)
    if name in ("argmax", "argmin"):
        return _of_positions(node, wide, value, args)
    if name in MONOTONE:
        return _shifted(wide, value, args, together=True)
    if isinstance(node.op.lower(node), Scalar):
        return _shifted(wide, value, args) + ROUNDED * unit * _magnitude(value) + ABSOLUTE.get(name, 0.0)
    if name == "assemble":
        parts = len(parts_of(node.args)[0])
        errors = (error if place < parts else given for place, (given, error) in enumerate(args))
        return wide.op.eval(wide, *errors)
    if name in VIEWS:  # the other arguments say where, or if
        lost = np.inf if any(error.any() for _, error in args[1:]) else 0.0
        return wide.op.eval(wide, args[0][1], *(given for given, _ in args[1:])) + lost
    if isinstance(node.op.lower(node), Call):  # an op of the user: those of the tests add up all elements at most
        known = not any(error.any() for _, error in args)
        added = sum(operand.size * float(_magnitude(operand).sum()) for operand, _ in args)
        return unit * (_magnitude(value) + added) if known else np.inf
    assert name in ("concatenate", "dimshuffle", "iota", "join_windows"), f"no bound is known for {name}"
    return wide.op.eval(wide, *(error for _, error in args))


def _rounds(value: Array) -> bool:
    return value.dtype.kind == "f"


def _wide(node: Node) -> Any:
    """What an op's meaning looks at of a node, with float64 for float32."""
    dtype = "float64" if node.dtype == "float32" else node.dtype
    return SimpleNamespace(op=node.op, attrs=node.attrs, args=node.args, dtype=dtype, type=node.type)


def _magnitude(value: Array) -> Array:
    """Of numbers; what is not finite is the same however it comes about."""
    wide = np.abs(value.astype("float64"))
    return np.where(np.isfinite(wide), wide, 0.0)


def _same(found: Array, value: Array) -> Array:
    alike: Array = (found == value) | (np.isnan(found) & np.isnan(value))
    return alike


def _distance(found: Array, value: Array) -> Array:
    return np.where(_same(found, value), 0.0, np.abs(found.astype("float64") - value.astype("float64")))


def _moved(value: Array, error: Array, sign: int) -> Array:
    if value.dtype.kind == "b":
        return value | (error > 0) if sign > 0 else value & ~(error > 0)
    if value.dtype.kind == "f":
        return np.where(error > 0, value.astype("float64") + sign * error, value)
    return value + (sign * np.ceil(error)).astype(value.dtype) if np.isfinite(error).all() else value


def _shifted(wide: Any, value: Array, args: Sequence[tuple[Array, Array]], together: bool = False) -> Array:
    """By how much the result moves with its operands, one after the other; an op of one operand moves at once."""
    total = np.zeros(value.shape)
    given = [operand.astype("float64") if operand.dtype.kind == "f" else operand for operand, _ in args]
    base = np.asarray(wide.op.eval(wide, *given))
    for place, (operand, error) in enumerate(args):
        if error.any():
            ends = [[*given[:place], _moved(operand, error, sign), *given[place + 1 :]] for sign in (1, -1)]
            total = total + np.max([_distance(np.asarray(wide.op.eval(wide, *end)), base) for end in ends], axis=0)
            if operand.dtype.kind not in "bf" and not np.isfinite(error).all():
                total = total + np.inf
    return total


def _of_sums(node: Node, wide: Any, value: Array, args: Sequence[tuple[Array, Array]], unit: float) -> Any:
    """Sums of products have no more terms and factors than their operands have elements along an axis, or in all."""
    count = INDEXED.get(node.op.name, len(args))
    rest = [operand for operand, _ in args[count:]]
    lost = np.inf if any(error.any() for _, error in args[count:]) else 0.0
    sizes, errors = [_magnitude(operand) for operand, _ in args[:count]], [error for _, error in args[:count]]
    whole = wide.op.eval(wide, *sizes, *rest)
    rounded = (_terms(node, args) + 2) * unit * whole
    if node.op.name in LINEAR:
        return wide.op.eval(wide, *errors, *rest) + rounded + lost
    larger = [size + error for size, error in zip(sizes, errors, strict=True)]
    return wide.op.eval(wide, *larger, *rest) - whole + 2 * rounded + lost


def _terms(node: Node, args: Sequence[tuple[Array, Array]]) -> float:
    shape = args[0][0].shape
    match node.op.name:
        case "sum" | "prod":
            terms = np.prod([shape[axis] for axis in node.attrs["axes"]], dtype="float64")
            return float(min(terms, BLOCK) if node.dtype == "float32" else terms)
        case "running_sum" | "running_prod" | "linear_recurrence":
            return float(2 * shape[node.attrs["axis"]])
        case "segment_sum":
            return float(shape[0])
        case "inc_gather" | "inc_subtensor" | "inc_windows":
            return float(1 + args[1][0].size // max(args[0][0][0].size if args[0][0].size else 1, 1))
        case "set_gather" | "set_subtensor":
            return -2.0
        case "conv":
            return float(np.prod(args[1][0].shape[2:])) + 2
        case _:
            return float(max(operand.shape[-1] for operand, _ in args if operand.ndim)) + 2


def _of_positions(node: Node, wide: Any, value: Array, args: Sequence[tuple[Array, Array]]) -> Any:
    """A position is right only where no other element may be as extreme as the one that was found."""
    ((operand, error),) = args
    axes, sign = node.attrs["axes"], 1 if node.op.name == "argmax" else -1
    higher, lower = (sign * _moved(operand, error, sign * way) for way in (1, -1))
    rivals = (higher >= lower.max(axis=axes, keepdims=True)) & (error > 0)
    return np.where(rivals.sum(axis=axes) > 0, np.inf, 0.0) if rivals.sum() > value.size else 0.0


def assert_within(
    got: Iterable[Any],
    outputs: Sequence[Node],
    values: Mapping[Node, Array],
    wanted: Iterable[Any] | None = None,
    message: str = "",
    least: float = 0.5,
) -> None:
    """Results are as near to the interpreter's, or to what is wanted, as arithmetic promises; of each at least a share
    has a bound. What is wanted is as exact as float64."""
    specified = evaluate(outputs, values)
    rights = [value for value, _ in specified] if wanted is None else [np.asarray(right) for right in wanted]
    results: list[NDArray[Any]] = [np.asarray(result) for result in got]
    for result, right, (value, error) in zip(results, rights, specified, strict=True):
        assert (result.dtype, result.shape) == (value.dtype, value.shape) and right.shape == value.shape, message
        bounded = np.isfinite(error)
        assert np.count_nonzero(bounded) >= least * value.size, f"hardly anything can be compared: {message}"
        with np.errstate(invalid="ignore"):
            near = _same(result, right) | ~bounded | (np.isfinite(right) & (_distance(result, right) <= error))
        if not near.all():
            worst = tuple(np.argwhere(~near)[0])
            what = f"{result[worst]!r} for {right[worst]!r}, which may be wrong by {error[worst]:.3g}"
            raise AssertionError(f"{what}, at {worst}; {np.count_nonzero(~near)} of {near.size}\n{message}")


def assert_specified(
    call: Function, got: Iterable[Any], inputs: Iterable[Any], shared: Iterable[Any] = (), least: float = 0.5
) -> None:
    """The results of a function, and what it has left in its variables after them if it updates any, are as near to
    what its graph says as arithmetic promises. `shared`: what the variables held before."""
    values = dict(zip((*call.graph.inputs, *call.shared), map(np.asarray, (*inputs, *shared)), strict=True))
    assert_within(got, call.graph.outputs, values, message=getattr(call, "source", ""), least=least)


def assert_product(got: Array, alpha: float, a: Array, b: Array, beta: float, c: Array) -> None:
    """alpha a b + beta c, in any order, with a rounding for every term and factor."""
    wide = [operand.astype("float64") for operand in (a, b, c)]
    right = alpha * (wide[0] @ wide[1]) + beta * wide[2]
    size = abs(alpha) * (np.abs(wide[0]) @ np.abs(wide[1])) + abs(beta) * np.abs(wide[2])
    error = (a.shape[-1] + 3) * float(np.finfo(got.dtype).eps) * size
    assert np.all(np.abs(got - right) <= error), np.max(np.abs(got - right) - error)
