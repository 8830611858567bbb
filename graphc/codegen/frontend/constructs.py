"""Constructs of the generated language: functions that a source defines for itself and that are no code of their own.

In: the text of a source. Out: the definitions it needs; or its syntax tree with every call of one replaced by what the
definition says, which is what numba compiles. CPython runs the calls as they are. The emitter (emit.py) writes
the calls in place of the statements that they stand for; a test expands what it prints, and finds those statements.

A definition is assignments and loops, then one `return` of expressions. A parameter that it calls is given a `lambda`,
or the name of a function that is defined just before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

Node = TypeVar("Node", bound=ast.AST)

DEFINITIONS = '''
def blocks(count, size):
    """The number of blocks that some elements fall into."""
    return (count + (size - 1)) // size

def compensated(total, comp):
    """A sum, with what its additions have rounded away."""
    return select(isfinite(total), total + comp, total)

def add(total, comp, term):
    """total + term, with what the addition rounds away added to comp."""
    return accumulate_in_order(total, term), accumulate(comp, rounding(total, term))

def sum_blocks(begin, end, n, term):
    """The sum of term(i) for i < n in blocks begin .. end of 256, and what adding them up has rounded away."""
    comp, total = 0.0, 0.0
    for block in independent(begin, end):
        row, part = block * 256, 0.0
        for i in independent(minimum(256, n - 256 * block)):
            part = accumulate(part, term(row + i))
        total, comp = add(total, comp, part)
    return total, comp

def sum_blocks_float32(begin, end, n, term):
    """The same of float32: a block is summed in float32, the blocks in float64."""
    total = 0.0
    for block in independent(begin, end):
        row, part = block * 256, float32(0.0)
        for i in independent(minimum(256, n - 256 * block)):
            part = accumulate(part, term(row + i))
        total = accumulate(total, float64(part))
    return total

def sum_parts(parts, count):
    """The sum of what chunks of a loop have left: 256 places for what they have rounded away, then their sums."""
    comp, total = 0.0, 0.0
    for part in independent(count):
        comp = accumulate(comp, rounding(total, parts[part + 256]))
        comp = accumulate(comp, parts[part])
        total = accumulate_in_order(total, parts[part + 256])
    return total, comp

def parallel_sum(nest, count, work, parts, *args):
    """The sum of what a nest leaves for each chunk of a loop that threads share."""
    size = chunk(count, work)
    parallel(nest, count, size, *args, size, parts, advance(parts, 256))
    total, comp = sum_parts(parts, blocks(count, size))
    return total, comp

def chunks_with_copies(count, work, copies):
    """The most copies, the size of chunks so that there are no more, and how many iterations chunks share: one chunk
    needs no copy."""
    most = maximum(copies, 1)
    size = maximum(chunk(count, work), blocks(count, most))
    shared = select(count > size, count, 0)
    return most, size, shared

def add_copies(target, copies, n, count):
    """Add to each of n elements those of its copies."""
    for part in range(count):
        for c in independent(n):
            target[c] = accumulate(target[c], copies[part * ((n + 15) // 16 * 16) + c])
'''


def _parse() -> Iterator[tuple[str, ast.FunctionDef]]:
    for each in ast.parse(DEFINITIONS).body:
        assert isinstance(each, ast.FunctionDef)
        yield each.name, each


TREES: Mapping[str, ast.FunctionDef] = dict(_parse())
TEXTS = {text.partition("(")[0]: f"def {text}" for text in re.split(r"^def ", DEFINITIONS, flags=re.MULTILINE)[1:]}
"""The definition of each, as it is printed."""


DEFINITIONS_BEGIN = """
# What the functions above call that is no code of its own: the compiler writes it out where it is called.
"""


def needed_by(source: str) -> str:
    """The definitions of the constructs that a source calls, and of those that these call."""
    found: dict[str, None] = {}
    pending = [source]
    while pending:
        text = pending.pop()
        for name in TEXTS:
            if name not in found and re.search(rf"\b{name}\(", text):
                found[name] = None
                pending.append(TEXTS[name].partition("\n")[2])
    definitions = (f"\n{TEXTS[name].rstrip()}\n" for name in TEXTS if name in found)
    return "".join([DEFINITIONS_BEGIN, *definitions]) if found else ""


def expand(tree: ast.Module) -> ast.Module:
    """A source without constructs: their calls are written out, and a function that ends without a word returns 0."""
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name not in TREES]
    return ast.Module([_Expansion(each).function() for each in functions], [])


class _Substitution:
    """Copies in which names are replaced by expressions, and the name of several arguments by these."""

    def __init__(self, values: Mapping[str, ast.expr], several: Sequence[ast.expr] = ()) -> None:
        self.values = values
        self.several = several

    def copy(self, node: Node) -> Node:
        made: Any
        match node:
            case ast.Name(name):
                value = self.values.get(name, node)
                made = ast.Name(value.id, node.ctx) if isinstance(value, ast.Name) else _UNCHANGED.copy(value)
            case ast.Call(function, args):
                made = ast.Call(self.copy(function), [each for arg in args for each in self.arguments(arg)], [])
            case _:
                made = type(node)(*(self.field(getattr(node, name, None)) for name in node._fields))
        return cast(Node, made)

    def arguments(self, arg: ast.expr) -> Sequence[ast.expr]:
        return self.several if isinstance(arg, ast.Starred) else [self.copy(arg)]

    def field(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.field(each) for each in value]
        return self.copy(value) if isinstance(value, ast.AST) else value


_UNCHANGED = _Substitution({})


class _Expansion(ast.NodeTransformer):
    """One function of a source with its constructs written out."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.of = function
        self.taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        self.terms: dict[str, ast.FunctionDef] = {}
        self.before: list[ast.stmt] = []
        self.at: ast.AST = function

    def function(self) -> ast.FunctionDef:
        body = self.statements(self.of.body)
        if not isinstance(body[-1], ast.Return):
            body.append(ast.Return(ast.Constant(0)))
        made = ast.FunctionDef(self.of.name, self.of.args, body, [])
        return ast.fix_missing_locations(ast.copy_location(made, self.of))

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for stmt in body:
            self.at = stmt if hasattr(stmt, "lineno") else self.at
            outer, self.before = self.before, []
            made = list(self.statement(stmt))
            result += (ast.copy_location(each, self.at) for each in (*self.before, *made))
            self.before = outer
        return result

    def statement(self, stmt: ast.stmt) -> Iterator[ast.stmt]:
        match stmt:
            case ast.FunctionDef():
                self.terms[stmt.name] = stmt
            case ast.For():
                match self.visit(stmt.iter):
                    case ast.Call(counted, [ast.Constant(0), end]):
                        bounds = ast.Call(counted, [end], [])
                    case other:
                        bounds = other
                yield ast.For(stmt.target, bounds, self.statements(stmt.body), [])
            case ast.If():
                yield ast.If(self.visit(stmt.test), self.statements(stmt.body), self.statements(stmt.orelse))
            case ast.Assign([target], ast.Call(ast.Name(name), args)) if _is_code(name):
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from self.written_out(TREES[name], args, [each for each in targets if isinstance(each, ast.Name)])
            case ast.Expr(ast.Call(ast.Name(name), args)) if _is_code(name):
                yield from self.written_out(TREES[name], args, ())
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                yield from self.assignments(targets, [self.visit(value) for value in values])
            case _:
                yield self.visit(stmt)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Lambda() as term:
                return self.applied(term.args, [], term.body, node.args)
            case ast.Name(name) if name in self.terms:
                *body, result = self.terms[name].body
                assert isinstance(result, ast.Return) and result.value is not None
                return self.applied(self.terms[name].args, body, result.value, node.args)
            case ast.Name(name) if name in TREES:
                result = TREES[name].body[-1]
                assert isinstance(result, ast.Return) and result.value is not None
                return self.applied(TREES[name].args, [], result.value, node.args)
        node.args = [self.visit(arg) for arg in node.args]
        return node

    def applied(
        self, params: ast.arguments, body: Sequence[ast.stmt], result: ast.expr, args: Sequence[ast.expr]
    ) -> ast.expr:
        """The result of a function of which the statements go before the statement at hand."""
        names = _Substitution(dict(zip((param.arg for param in params.args), args, strict=True)))
        self.before.extend(self.statements([names.copy(stmt) for stmt in body]))
        expr: ast.expr = self.visit(names.copy(result))
        return expr

    def written_out(
        self, definition: ast.FunctionDef, args: Sequence[ast.expr], targets: Sequence[ast.Name]
    ) -> Iterator[ast.stmt]:
        """What a construct does, its results in `targets`."""
        *body, last = definition.body[1:]
        results: list[ast.expr] = []
        if isinstance(last, ast.Return):
            results = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value or ast.Constant(0)]
        else:
            body.append(last)
        params = [param.arg for param in definition.args.args]
        values: dict[str, ast.expr] = dict(zip(params, args, strict=False))
        for target, result in zip(targets, results, strict=True):
            if isinstance(result, ast.Name) and result.id not in values:
                values[result.id] = target
        for stmt in body:
            for node in ast.walk(stmt):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in values:
                    values[node.id] = ast.Name(self.fresh(node.id), ast.Load())
        names = _Substitution(values, args[len(params) :])
        yield from self.statements([names.copy(stmt) for stmt in body])
        left = [(t, names.copy(r)) for t, r in zip(targets, results, strict=True)]
        left = [(t, r) for t, r in left if not (isinstance(r, ast.Name) and r.id == t.id)]
        yield from self.assignments([t for t, _ in left], [self.visit(r) for _, r in left])

    def assignments(self, targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> Iterator[ast.stmt]:
        """Assignments that mean the same one after the other: a name is given its value when no other needs the old."""
        pending = list(zip(targets, values, strict=True))
        while pending:
            for target, value in pending:  # noqa: B007
                others = [expr for other, expr in pending if other is not target]
                read = {node.id for expr in others for node in ast.walk(expr) if isinstance(node, ast.Name)}
                if not isinstance(target, ast.Name) or target.id not in read:
                    break
            else:
                raise AssertionError("each needs what the others were before")
            pending.remove((target, value))
            yield ast.Assign([target], value)

    def fresh(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{name}_{number}")
        return f"{name}_{number}"


def _is_code(name: str) -> bool:
    """Whether a name is that of a construct of more than one expression."""
    if name not in TREES:
        return False
    *body, last = TREES[name].body[1:]
    return bool(body) or not isinstance(last, ast.Return) or isinstance(last.value, ast.Tuple)
