"""What the templates of expressions mean: the dtype of what they compute.

In: a template (loops/ir.py) and the dtypes of its operands. Out: the dtype of its value, or a word on what is wrong.

The language has Python's operators on operands of one dtype, whose result has that dtype; comparisons, whose result is
a bool; and calls. A literal of a template takes the dtype of what stands beside it.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from graphc.dtypes import DTYPES
from graphc.loops.ir import INDEX

CASTS = {**{dtype: dtype for dtype in DTYPES}, "bool_": "bool"}
TRUTHS = frozenset("isnan isinf isfinite signbit logical_and logical_or logical_xor logical_not".split())
"""Functions whose results are bools, whatever they are asked of."""


CALL = re.compile(r"(\w+)\((_\d+(?:, _\d+)*)?\) == 0")
"""A check that calls a function of another source, or of the same, which says whether it failed."""


class TemplateError(ValueError):
    """Operands that a template cannot take."""


@lru_cache(maxsize=1024)
def parsed(template: str) -> ast.expr:
    return ast.parse(template, mode="eval").body


def hole(node: ast.AST) -> int | None:
    """The number of a hole; None of anything else."""
    if isinstance(node, ast.Name) and node.id[0] == "_" and node.id[1:].isdigit():
        return int(node.id[1:])
    return None


@lru_cache(maxsize=4096)
def result_dtype(template: str, operands: tuple[str, ...]) -> str:
    """The dtype of a template's value. Raises TemplateError."""
    if CALL.fullmatch(template):
        return "bool"
    used = {hole(part) for part in ast.walk(parsed(template)) if isinstance(part, ast.Name)}
    if used - {None} != set(range(len(operands))):
        raise TemplateError(f"{template!r} has not the holes of {len(operands)} operands")
    return _dtype(parsed(template), operands) or INDEX


def _dtype(node: ast.expr, operands: tuple[str, ...]) -> str | None:
    """The dtype of a part of a template; None of a number, which takes that of what stands beside it."""
    match node:
        case ast.Name():
            number = hole(node)
            if number is None:
                raise TemplateError(f"{node.id} is no operand")
            return operands[number]
        case ast.Constant(value):
            return "bool" if isinstance(value, bool) else None
        case ast.UnaryOp(_, operand):
            return _dtype(operand, operands)
        case ast.BinOp(left, _, right):
            return _common([_dtype(left, operands), _dtype(right, operands)], node)
        case ast.Compare(left, _, others):
            _common([_dtype(each, operands) for each in (left, *others)], node)
            return "bool"
        case ast.Call(ast.Name(name), args, []):
            return _result(name, [_dtype(arg, operands) for arg in args], node)
    raise TemplateError(f"{ast.unparse(node)!r} is not of the language")


def _common(dtypes: list[str | None], node: ast.expr) -> str | None:
    known = {dtype for dtype in dtypes if dtype is not None}
    if len(known) > 1:
        raise TemplateError(f"{ast.unparse(node)!r} of {' and '.join(sorted(known))}")
    return known.pop() if known else None


def _result(name: str, dtypes: list[str | None], node: ast.Call) -> str | None:
    """The dtype of a call's value: of one that is not known here, that of its first operand."""
    if name in CASTS:
        return CASTS[name]
    if name == "select":
        if dtypes[0] not in ("bool", None):
            raise TemplateError(f"{ast.unparse(node)!r} asks for the truth of {dtypes[0]}")
        return _common(dtypes[1:], node)
    common = _common(dtypes, node)
    return "bool" if name in TRUTHS else common
