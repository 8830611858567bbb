"""Generated source to numba's IR.

In: the text of a function. Out: numba's IR of it, which numba types and lowers (lowering.py).

    def f(x, n):                        0:  x = arg 0; n = arg 1; !one = 1.0; !zero = 0; !range = range
        for i in range(n):                  $0 = call !range(n); $1 = getiter($0); jump to 1
            x[i] = x[i] + 1.0           1:  $2 = iternext($1); $3 = first of $2; $4 = second of $2
        return 0                            branch on $4 to 2 or 3
                                        2:  i = $3; $5 = x[i]; $6 = $5 + !one; x[i] = $6; jump to 1
                                        3:  $7 = cast(!zero); return $7

numba itself reads bytecode, one instruction of a stack machine after the other. The tree of a kernel has a dozen kinds
of nodes, is the same in every version of Python, and is read in a quarter of the time. A name of the language and a
literal are read once, in the first block.
"""

# mypy: allow-untyped-calls
# numba has hardly any annotations.

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

import numba.core.types  # noqa: F401 - before what it imports in a circle
from numba.core import ir

from graphc.errors import CompileError
from graphc.startup.record import record

SOURCE_NAME = "<graphc kernel>"

BINARY: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARED: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
UNARY: dict[type[ast.unaryop], Any] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


@record(eq=False)
class Identity:
    """The names under which numba knows a function."""

    func_name: str
    func: None = None


@record(eq=False)
class Parsed:
    """A function in numba's IR. `values`: the names that are assigned once, before all their uses on every way."""

    ir: ir.FunctionIR
    values: set[str]

    @property
    def size(self) -> int:
        """The number of statements."""
        return sum(len(block.body) for block in self.ir.blocks.values())


def definitions_of(source: str) -> dict[str, ast.FunctionDef]:
    """The functions that a text defines, by name. Raises CompileError where it does not parse."""
    try:
        tree = ast.parse(source, SOURCE_NAME)
    except SyntaxError as error:
        raise CompileError(f"{error.msg}, line {error.lineno}: {error.text}") from error
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


def parsed(definition: ast.FunctionDef, names: Mapping[str, Any]) -> Parsed:
    """A function in numba's IR. names: the meanings of the names of the language, none of which a function assigns.
    Raises CompileError for a statement or an expression that a kernel may not have."""
    return _Function(definition, names).read()


class _Function:
    """The blocks of one function, as its statements are read."""

    def __init__(self, definition: ast.FunctionDef, names: Mapping[str, Any]) -> None:
        self.definition, self.names = definition, names
        self.args = [each.arg for each in definition.args.args]
        self.loc = ir.Loc(SOURCE_NAME, definition.lineno)
        self.scope = ir.Scope(None, self.loc)
        self.variables: dict[str, ir.Var] = {}
        self.places: dict[str, tuple[int, ...]] = {}
        """The loops and branches around the only assignment to each."""
        self.several: set[str] = set()
        """The names that are assigned again, or used where the assignment may not have been."""
        self.within: tuple[int, ...] = ()
        """The first blocks of the loops and branches around a statement."""
        self.meanings: dict[str, ir.Const | ir.Global] = {}
        """The names of the language and literals that variables of the first block hold, by the names of these."""
        self.facts: list[Any] = []
        """The statements that assign to these variables."""
        self.blocks: dict[int, ir.Block] = {}
        self.body: list[Any] = []
        self.temporaries = 0
        self.exits: list[list[ir.Jump]] = []
        """For each loop around a statement the jumps to its end."""

    def read(self) -> Parsed:
        self.start_block()
        first = self.body
        for position, name in enumerate(self.args):
            self.assign(name, ir.Arg(name=name, index=position, loc=self.loc))
        self.statements(self.definition.body)
        if not self.is_ended():
            raise self.failure(self.definition, "a function without a return at its end")
        first[len(self.args) : len(self.args)] = self.facts
        function = ir.FunctionIR(
            blocks=self.blocks,
            is_generator=False,
            func_id=Identity(self.definition.name),
            loc=ir.Loc(SOURCE_NAME, self.definition.lineno),
            definitions={},
            arg_count=len(self.args),
            arg_names=self.args,
        )
        return Parsed(function, self.variables.keys() - self.several)

    # --- statements ---------------------------------------------------------------------------------------------------

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.loc = ir.Loc(SOURCE_NAME, statement.lineno)
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    self.assign_value(name, statement.value)
                case ast.Assign(targets=[ast.Subscript(value=base, slice=index)]):
                    value = self.value(statement.value)
                    self.body.append(ir.SetItem(self.value(base), self.value(index), value, self.loc))
                case ast.Expr(value=ast.Call()):
                    self.value(statement.value)
                case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                    pass
                case ast.Return(value=ast.expr() as result):
                    value = self.named(ir.Expr.cast(value=self.passed_on(self.value(result)), loc=self.loc))
                    self.body.append(ir.Return(value, self.loc))
                case ast.If():
                    self.branch(statement)
                case ast.For(target=ast.Name(), orelse=[]):
                    self.loop(statement)
                case ast.While(orelse=[]):
                    self.repeat(statement)
                case ast.Break() if self.exits:
                    self.exits[-1].append(self.jump())
                case _:
                    raise self.failure(statement, "not a kernel's statement")

    def branch(self, statement: ast.If) -> None:
        fork = self.fork(self.value(statement.test))
        ends: list[ir.Jump] = []
        fork.truebr = self.start_block()
        self.inside(statement.body)
        if not self.is_ended():
            ends.append(self.jump())
        fork.falsebr = self.start_block()
        if statement.orelse:
            self.inside(statement.orelse)
            if not self.is_ended():
                ends.append(self.jump())
            if not ends:
                return  # nothing follows
            self.start_block()
        for each in ends:
            each.target = self.here

    def fork(self, condition: ir.Var) -> ir.Branch:
        """A branch whose targets are set later."""
        truth = self.call(self.fact(("truth",), ir.Global("bool", bool, self.loc)), [condition])
        branch = ir.Branch(self.named(truth), 0, 0, self.loc)
        self.body.append(branch)
        return branch

    def loop(self, statement: ast.For) -> None:
        assert isinstance(statement.target, ast.Name)
        counter = self.named(ir.Expr.getiter(value=self.value(statement.iter), loc=self.loc))
        self.several.add(counter.name)  # what loops count by is on the stack (vectorize/loopinfo.py)
        entry = self.jump()
        entry.target = header = self.start_block()
        pair = self.named(ir.Expr.iternext(value=counter, loc=self.loc))
        index = self.named(ir.Expr.pair_first(value=pair, loc=self.loc))
        self.several.add(index.name)
        fork = ir.Branch(self.named(ir.Expr.pair_second(value=pair, loc=self.loc)), 0, 0, self.loc)
        self.body.append(fork)
        self.iteration(fork, header, statement.body, statement.target.id, index)

    def repeat(self, statement: ast.While) -> None:
        entry = self.jump()
        entry.target = header = self.start_block()
        self.iteration(self.fork(self.value(statement.test)), header, statement.body)

    def iteration(
        self, fork: ir.Branch, header: int, body: list[ast.stmt], name: str = "", index: ir.Var | None = None
    ) -> None:
        """The body of a loop, from the branch that ends its header on, and the block after the loop."""
        fork.truebr = self.start_block()
        self.exits.append([])
        self.inside(body, name, index)
        if not self.is_ended():
            self.jump().target = header
        fork.falsebr = self.start_block()
        for each in self.exits.pop():
            each.target = self.here

    def inside(self, body: list[ast.stmt], name: str = "", value: ir.Var | None = None) -> None:
        """The statements of a loop or branch, whose first block has begun; a loop assigns its index before them."""
        self.within = (*self.within, self.here)
        if value is not None:
            self.assign(name, value)
        self.statements(body)
        self.within = self.within[:-1]

    def start_block(self) -> int:
        self.here = len(self.blocks)
        self.blocks[self.here] = block = ir.Block(self.scope, self.loc)
        self.body = block.body
        return self.here

    def is_ended(self) -> bool:
        return bool(self.body) and bool(self.body[-1].is_terminator)

    def jump(self) -> ir.Jump:
        """A jump whose target is set later."""
        jump = ir.Jump(0, self.loc)
        self.body.append(jump)
        return jump

    def assign(self, name: str, value: Any) -> ir.Var:
        if name not in self.variables:
            self.variables[name] = self.scope.define(name, self.loc)
            self.places[name] = self.within
        else:
            self.several.add(name)
        self.body.append(ir.Assign(value, self.variables[name], self.loc))
        return self.variables[name]

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> ir.Var:
        """The variable that holds a value."""
        value = self.computed(node)
        return value if isinstance(value, ir.Var) else self.named(value)

    def named(self, value: ir.Expr | ir.Const | ir.Global) -> ir.Var:
        """A variable of its own for the value of an expression."""
        return self.assign(self.fresh(), value)

    def fresh(self) -> str:
        self.temporaries += 1
        return f"${self.temporaries}"

    def computed(self, node: ast.expr) -> ir.Expr | ir.Var:
        match node:
            case ast.Name(id=name):
                return self.read_name(node, name)
            case ast.Constant(value=bool() | int() | float() as value):
                return self.literal(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self.literal(-value)
            case ast.BinOp(left, op, right) if type(op) in BINARY:
                return self.binary(BINARY[type(op)], left, right)
            case ast.Compare(left, [comparison], [right]) if type(comparison) in COMPARED:
                return self.binary(COMPARED[type(comparison)], left, right)
            case ast.UnaryOp(sign, operand) if type(sign) in UNARY:
                return ir.Expr.unary(fn=UNARY[type(sign)], value=self.value(operand), loc=self.loc)
            case ast.Subscript(value, index):
                return ir.Expr.getitem(value=self.value(value), index=self.value(index), loc=self.loc)
            case ast.IfExp():
                return self.choice(node)
            case ast.BoolOp():
                return self.decision(node)
            case ast.Call(function, args, []):
                return self.call(self.value(function), [self.value(each) for each in args])
            case _:
                raise self.failure(node, "not a kernel's expression")

    def read_name(self, node: ast.expr, name: str) -> ir.Var:
        if name in self.variables:
            place = self.places[name]
            if place != self.within[: len(place)]:
                self.several.add(name)
            return self.variables[name]
        if name not in self.names:
            raise self.failure(node, f"the name {name!r} is not defined")
        return self.fact((name,), ir.Global(name, self.names[name], self.loc))

    def choice(self, node: ast.IfExp) -> ir.Var:
        """`first if condition else second`: a variable that both ways assign."""
        name = self.fresh()
        fork = self.fork(self.value(node.test))
        fork.truebr = self.start_block()
        self.assign_value(name, node.body)
        first = self.jump()
        fork.falsebr = self.start_block()
        self.assign_value(name, node.orelse)
        second = self.jump()
        first.target = second.target = self.start_block()
        return self.variables[name]

    def decision(self, node: ast.BoolOp) -> ir.Var:
        """`first and second and ...`, or `or`: a variable that is assigned until one of them decides."""
        name, forks = self.fresh(), []
        self.assign_value(name, node.values[0])
        self.several.add(name)
        for value in node.values[1:]:
            forks.append(self.fork(self.variables[name]))
            begin = self.start_block()
            forks[-1].truebr = forks[-1].falsebr = begin
            self.assign_value(name, value)
        last = self.jump()
        last.target = end = self.start_block()
        for fork in forks:
            if isinstance(node.op, ast.And):
                fork.falsebr = end
            else:
                fork.truebr = end
        return self.variables[name]

    def binary(self, function: Any, left: ast.expr, right: ast.expr) -> ir.Expr:
        return ir.Expr.binop(fn=function, lhs=self.value(left), rhs=self.value(right), loc=self.loc)

    def call(self, function: ir.Var, args: list[ir.Var]) -> ir.Expr:
        return ir.Expr.call(func=function, args=args, kws=(), loc=self.loc)

    def literal(self, value: float) -> ir.Var:
        return self.fact((type(value).__name__, repr(value)), ir.Const(value, self.loc))

    def fact(self, key: tuple[str, ...], value: ir.Const | ir.Global) -> ir.Var:
        """The variable of the first block that holds a name of the language, or a literal."""
        name = "!" + " ".join(key)
        if name not in self.meanings:
            self.meanings[name] = value
            self.variables[name] = self.scope.define(name, self.loc)
            self.facts.append(ir.Assign(value, self.variables[name], self.loc))
        return self.variables[name]

    def assign_value(self, name: str, node: ast.expr) -> None:
        self.assign(name, self.passed_on(self.computed(node)))

    def passed_on(self, value: ir.Expr | ir.Var) -> ir.Expr | ir.Var:
        """A value that another variable takes as it is. numba gives both variables one type, so a name of the language
        or a literal is read again."""
        known = self.meanings.get(value.name) if isinstance(value, ir.Var) else None
        return value if known is None else self.named(known)

    def failure(self, node: ast.stmt | ast.expr, problem: str) -> CompileError:
        shown = ast.unparse(node).splitlines()[0]
        return CompileError(f"{self.definition.name}, line {node.lineno}: {problem}: {shown}")
