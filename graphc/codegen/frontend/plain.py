"""Generated functions straight from their syntax to LLVM IR, without numba's front end.

In: the syntax of one function of a generated source, its prototype, the names that it may use. Out: the same function
in a module of LLVM IR. By way of numba (`lowering.py`), whose analysis of bytecode and inference of types are for all
of Python, it takes four to eight times as long. As an example:

    def kernel(x, out, n):              define i64 @kernel(double* x, double* out, i64 n):
        half = n // 2                       %half = ...
        if nest(half, x, out) != 0:         %1 = call i64 @nest(i64 %half, double* x, double* out)
            return 1                        ...
        return 0

Types follow from the operands, bottom up, by the signatures of `primitives.py`, which write the values, too. A name
that is given once, at the top, is a value; any other is a slot on the stack, of the one type that fits all its values,
which LLVM turns into registers. Loops have the form that `vectorize/loopinfo.py` reads. `analyse` gives None where a
function is not in the language, or wrong: numba then says what is the matter, at which line.
"""

# mypy: allow-untyped-calls
# numba has hardly any annotations.

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from numba.core import cgutils, errors, types

from graphc.codegen.frontend.intrinsics import InferenceError
from graphc.codegen.frontend.primitives import LITERAL_FLOAT, PRIMITIVES, Primitive, numba_type
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.llvm.values import Builder, Value

OPERATORS: dict[type[ast.AST], Any] = {
    getattr(ast, name): getattr(operator, function)
    for name, function in (
        *(("Add", "add"), ("Sub", "sub"), ("Mult", "mul"), ("Div", "truediv"), ("FloorDiv", "floordiv")),
        *(("Mod", "mod"), ("Pow", "pow"), ("LShift", "lshift"), ("RShift", "rshift"), ("USub", "neg")),
        *(("BitAnd", "and_"), ("BitOr", "or_"), ("BitXor", "xor"), ("Invert", "invert")),
        *(("Lt", "lt"), ("LtE", "le"), ("Gt", "gt"), ("GtE", "ge"), ("Eq", "eq"), ("NotEq", "ne")),
    )
}
MOST_ROUNDS = 4
"""Walks over a function until the types of its names stay the same."""


class _Beyond(Exception):
    """Raised for what is left to numba."""


def analyse(tree: ast.FunctionDef, prototype: Prototype, scope: Mapping[str, Any], typing: Any) -> Types | None:
    """The types of all names and calls of a function; None where it is left to numba."""
    if prototype.returns != "int64" or len(tree.args.args) != len(prototype.args):
        return None
    try:
        found = Types(tree, prototype, scope, typing)
        for _ in range(MOST_ROUNDS):
            before = dict(found.names)
            found.body(tree.body)
            if found.names == before:
                return found
    except (_Beyond, InferenceError, errors.NumbaError):
        pass
    return None


class Types:
    """The types of a function's names and expressions, and for each that calls something what, with which types."""

    def __init__(self, tree: ast.FunctionDef, prototype: Prototype, scope: Mapping[str, Any], typing: Any) -> None:
        self.tree, self.scope, self.typing = tree, scope, typing
        self.parameters = [each.arg for each in tree.args.args]
        self.names: dict[str, Any] = dict(zip(self.parameters, map(numba_type, prototype.args), strict=True))
        self.kinds: dict[ast.expr, Any] = {}
        self.calls: dict[ast.AST, tuple[Primitive, Any, list[ast.expr]]] = {}
        given = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _is_given(node))
        top = {
            each.id
            for stmt in tree.body
            if isinstance(stmt, ast.Assign)
            for each in stmt.targets
            if isinstance(each, ast.Name)
        }
        self.slots = {name for name, count in given.items() if count > 1 or name not in top}
        if not self.slots.isdisjoint(self.parameters) or not given.keys().isdisjoint(scope):
            raise _Beyond

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for stmt in statements:
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.give(name, self.of(value))
                case ast.Assign(targets=[ast.Subscript() as place], value=value):
                    self.call(stmt, PRIMITIVES[operator.setitem], [place.value, place.slice, value])
                case ast.Expr(value=ast.Constant(value=str())) | ast.Pass() | ast.Break():
                    pass
                case ast.Expr(value=ast.Call() as value):
                    self.of(value)
                case ast.Return(value=ast.Constant(value=int())):
                    pass
                case ast.If(test=test, body=then, orelse=orelse):
                    self.call(stmt, PRIMITIVES[bool], [_positive(test)])
                    self.body(then)
                    self.body(orelse)
                case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=counts), args=bounds)):
                    if counts not in ("range", "independent"):
                        raise _Beyond
                    self.call(stmt, PRIMITIVES[range] if counts == "range" else self.called(counts), bounds)
                    self.give(name, types.int64)
                    self.body(stmt.body)
                case _:
                    raise _Beyond

    def give(self, name: str, kind: Any) -> None:
        """Note that a name is given a value of a type."""
        known = self.names.get(name, kind)
        together = self.typing.unify_pairs(known, kind)
        if together is None:
            raise _Beyond
        self.names[name] = together

    def of(self, expr: ast.expr) -> Any:
        """The type of an expression, which is noted."""
        found = self.kinds[expr] = self._of(expr)
        return found

    def _of(self, expr: ast.expr) -> Any:
        match expr:
            case ast.Name(id=name):
                return self.names[name] if name in self.names else self.of_global(name)
            case ast.Constant(value=bool() | int() as value):
                return types.literal(value)
            case ast.Constant(value=float()):
                return LITERAL_FLOAT
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if type(value) is int:
                return types.literal(-value)
            case ast.UnaryOp(op=op, operand=operand):
                return self.call(expr, self.operator(op), [operand])
            case ast.BinOp(left=left, op=op, right=right):
                return self.call(expr, self.operator(op), [left, right])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.call(expr, self.operator(op), [left, right])
            case ast.Subscript(value=pointer, slice=index):
                return self.call(expr, PRIMITIVES[operator.getitem], [pointer, index])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name not in self.names:
                return self.call(expr, self.called(name), args)
        raise _Beyond

    def of_global(self, name: str) -> Any:
        value = self.scope.get(name)
        if isinstance(value, Primitive):
            return value
        if type(value) is float:
            return LITERAL_FLOAT
        raise _Beyond

    def operator(self, op: ast.AST) -> Primitive:
        found = PRIMITIVES.get(OPERATORS.get(type(op)))
        if found is None:
            raise _Beyond
        return found

    def called(self, name: str) -> Primitive:
        value = self.scope.get(name)
        if not isinstance(value, Primitive):
            raise _Beyond
        return value

    def call(self, node: ast.AST, primitive: Primitive, args: list[ast.expr]) -> Any:
        kinds = [self.of(arg) for arg in args]
        signature = primitive.get_call_type(self.typing, kinds, {})
        self.calls[node] = primitive, signature, args
        return signature.return_type


def _is_given(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _positive(test: ast.expr) -> ast.expr:
    """A condition without the `not` before it."""
    return test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test


class Writer:
    """Writes a function whose types are known into the blocks of one in LLVM IR."""

    def __init__(self, known: Types, context: Any, builder: Builder, arguments: Sequence[Value]) -> None:
        self.known, self.context, self.builder = known, context, builder
        self.values: dict[str, Value] = dict(zip(known.parameters, arguments, strict=True))
        self.ends: list[Any] = []
        """The blocks behind the loops that are open."""
        for name in sorted(known.slots):
            kind = context.get_value_type(known.names[name])
            self.values[name] = cgutils.alloca_once(builder, kind, name=name)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for stmt in statements:
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.give(name, self.cast(value, self.known.names[name]))
                case ast.Assign():
                    self.call(stmt)
                case ast.Expr(value=ast.Call() as value):
                    self.call(value)
                case ast.Return(value=ast.Constant(value=number)):
                    self.builder.ret(self.context.get_constant(types.int64, number))
                case ast.If():
                    self.branch(stmt)
                case ast.For():
                    self.loop(stmt)
                case ast.Break():
                    self.builder.branch(self.ends[-1])
            if self.builder.block.is_terminated:
                return

    def blocks(self) -> list[Any]:
        """Three blocks, each named after its number."""
        function = self.builder.function
        return [function.append_basic_block(f"B{len(function.blocks)}") for _ in range(3)]

    def give(self, name: str, value: Value) -> None:
        if name in self.known.slots:
            self.builder.store(value, self.values[name])
        else:
            self.values[name] = value

    def branch(self, stmt: ast.If) -> None:
        condition = self.call(stmt)
        then, orelse, after = self.blocks()
        sides = (then, orelse) if _positive(stmt.test) is stmt.test else (orelse, then)
        self.builder.cbranch(condition, *sides)
        for block, statements in ((then, stmt.body), (orelse, stmt.orelse)):
            self.builder.position_at_end(block)
            self.body(statements)
            if not self.builder.block.is_terminated:
                self.builder.branch(after)
        self.builder.position_at_end(after)

    def loop(self, stmt: ast.For) -> None:
        """Write a loop in the form in which `loopinfo.py` of the vectorizer reads it."""
        assert isinstance(stmt.target, ast.Name)
        _, signature, _ = self.known.calls[stmt]
        begun, counter = self.apply("getiter", signature.return_type, self.call(stmt))
        slot = cgutils.alloca_once(self.builder, counter.type)
        self.builder.store(counter, slot)
        head, inside, after = self.blocks()
        self.builder.branch(head)
        self.builder.position_at_end(head)
        _, pair = self.apply("iternext", begun, self.builder.load(slot))
        self.give(stmt.target.id, self.builder.extract_value(pair, 0))
        self.builder.cbranch(self.builder.extract_value(pair, 1), inside, after)
        self.builder.position_at_end(inside)
        self.ends.append(after)
        self.body(stmt.body)
        self.ends.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(head)
        self.builder.position_at_end(after)

    def apply(self, name: str, kind: Any, value: Value) -> tuple[Any, Value]:
        """The type and the value that a primitive makes of a value of some type."""
        signature = PRIMITIVES[name].get_call_type(self.known.typing, [kind], {})
        return signature.return_type, PRIMITIVES[name].emit(self.builder, signature, [value])

    def call(self, node: ast.AST) -> Value:
        primitive, signature, args = self.known.calls[node]
        values = [self.cast(arg, kind) for arg, kind in zip(args, signature.args, strict=True)]
        return primitive.emit(self.builder, signature, values)

    def cast(self, expr: ast.expr, kind: Any) -> Value:
        """The value of an expression, of a type."""
        return self.context.cast(self.builder, self.value(expr), self.known.kinds[expr], kind)

    def value(self, expr: ast.expr) -> Value:
        match expr:
            case ast.Name(id=name) if name in self.values:
                value = self.values[name]
                return self.builder.load(value) if name in self.known.slots else value
            case ast.Name(id=name):
                return self.constant(self.known.kinds[expr], self.known.scope[name])
            case ast.Constant(value=number):
                return self.constant(self.known.kinds[expr], number)
            case ast.UnaryOp(operand=ast.Constant(value=int() as number)) if expr not in self.known.calls:
                return self.constant(self.known.kinds[expr], -number)
        return self.call(expr)

    def constant(self, kind: Any, value: Any) -> Value:
        return self.context.get_constant_generic(self.builder, kind, value)
