"""The verifier of the loop IR: it runs between passes, in tests and with the option `verify`.

In: functions that stand in one source, and what they call from outside. Out: nothing, or a VerifyError that says what
is wrong with which statement of which function.

    names       are identifiers of one dtype each, defined before they are read, in a scope that is still open
    let         names a value once: not a parameter, a loop's variable, an accumulator, or what has a name already
    loops       have int64 variables, sizes and beginnings; so have indices
    conditions  are bool; what is named in a branch is not known after it; a loop is left inside it, and is then not one
                of independent iterations
    buffers     are parameters of which one thing is known, and elements have their dtype; so are those in which
                iterations conflict
    operators   have operands of the dtypes they take, and give the dtype that is said
    calls       have arguments of the kinds that their functions take
    memory      is stored before it is read (assigned.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import NoReturn

from graphc.arrays.dtypes import DTYPES
from graphc.errors import VerifyError
from graphc.loopir import ir
from graphc.loopir.assigned import verify_assigned
from graphc.loopir.operators import FILLS, READS, OperandError, Operator, result_dtype
from graphc.loopir.syntax import print_statement
from graphc.loopir.visit import is_left

Kinds = Sequence[str]
"""The kinds of a function's parameters, as `Param` has them."""


def verify_functions(
    functions: Sequence[ir.Function], externals: Mapping[str, Kinds] = {}, unwritten: Iterable[str] = ()
) -> None:
    """Check functions that stand in one source; `externals` are those they call from outside. `unwritten`: the buffers
    that hold nothing when the first function begins. Raises VerifyError."""
    callees = dict(externals) | {each.name: [param.kind for param in each.params] for each in functions}
    names = [each.name for each in functions]
    for function in functions:
        if names.count(function.name) > 1:
            raise VerifyError(f"there are two functions {function.name}")
        _Function(function, callees).verify()
    verify_assigned(functions, frozenset(unwritten))


class _Function:
    """The check of one function: `dtypes` of all names it has had, `open` names with how they were made, and how many
    loops are around the statement at hand."""

    def __init__(self, function: ir.Function, callees: Mapping[str, Kinds]) -> None:
        self.function, self.callees = function, callees
        self.buffers = {param.name: param for param in function.params if isinstance(param, ir.Buffer)}
        self.dtypes = {param.name: param.dtype for param in function.params if isinstance(param, ir.Var)}
        self.open: dict[str, str] = dict.fromkeys(self.dtypes, "parameter")
        self.stmt: ir.Stmt | None = None
        self.loops = 0

    def fail(self, problem: str) -> NoReturn:
        where = f", {print_statement(self.stmt)!r}" if self.stmt is not None else ""
        raise VerifyError(f"{self.function.name}{where}: {problem}")

    def verify(self) -> None:
        names = [param.name for param in self.function.params]
        for param in self.function.params:
            if names.count(param.name) > 1:
                self.fail(f"there are two parameters {param.name}")
            if param.dtype not in DTYPES:
                self.fail(f"parameter {param.name} is of kind {param.kind}")
            self.identify(param.name)
        self.body(self.function.body)

    def body(self, body: Sequence[ir.Stmt]) -> None:
        before = dict(self.open)
        for stmt in body:
            self.stmt = stmt
            match stmt:
                case ir.Let(var, value):
                    self.value(value)
                    self.same(var.dtype, value.dtype)
                    self.define(var, "name")
                case ir.Set(var, value):
                    self.value(value)
                    self.same(var.dtype, value.dtype)
                    self.accumulator(var)
                case ir.Store(buffer, index, value):
                    self.value(index, ir.INDEX)
                    self.value(value)
                    self.buffer(buffer)
                    self.same(buffer.dtype, value.dtype)
                case ir.Loop():
                    self.loop(stmt)
                case ir.If(condition, then, orelse):
                    self.value(condition, "bool")
                    self.body(then)
                    self.body(orelse)
                case ir.Break():
                    self.leave()
                case ir.Check(condition, code):
                    self.check(condition, code)
                case ir.Invoke(function, args, code):
                    self.call(function, [self.argument(arg) for arg in args], code)
                case ir.Launch(function, count, size, args):
                    self.value(count, ir.INDEX)
                    self.value(size, ir.INDEX)
                    self.call(function, [ir.INDEX, ir.INDEX, *map(self.argument, args)])
                case ir.Note():
                    pass
        self.open = before

    def loop(self, loop: ir.Loop) -> None:
        for buffer in loop.conflicts or ():
            self.buffer(buffer)
        if loop.conflicts is not None and is_left(loop):
            self.fail("the iterations of a loop that is left have an order")
        self.value(loop.begin, ir.INDEX)
        self.value(loop.size, ir.INDEX)
        if loop.safepoint is not None:
            self.value(loop.safepoint, ir.INDEX)
        before = self.open.get(loop.var.name)
        self.same(loop.var.dtype, ir.INDEX)
        self.define(loop.var, "loop variable")
        self.loops += 1
        self.body(loop.body)
        self.loops -= 1
        if before is None:
            del self.open[loop.var.name]

    def leave(self) -> None:
        if not self.loops:
            self.fail("there is no loop to leave")

    def check(self, condition: ir.Expr, code: int) -> None:
        if code < 1:
            self.fail(f"code {code} would say that all is well")
        self.value(condition, "bool")

    def call(self, function: str, kinds: Kinds, code: int = 0) -> None:
        if code < 0:
            self.fail(f"{code} is no code")
        wanted = self.callees.get(function)
        if wanted is None:
            self.fail(f"there is no function {function}")
        if list(kinds) != list(wanted):
            self.fail(f"{function} takes {', '.join(wanted)}, and is given {', '.join(kinds)}")

    def argument(self, arg: ir.Expr) -> str:
        """The kind of an argument of a call."""
        match arg:
            case ir.Pointer(buffer, index):
                self.value(index, ir.INDEX)
                self.buffer(buffer)
                return buffer.kind
            case ir.Apply(op, (ir.Pointer() as pointer,), dtype) if op in (FILLS, READS):
                kind = self.argument(pointer)
                self.same(kind[:-1], dtype)
                return kind
        self.value(arg)
        return arg.dtype

    # names

    def identify(self, name: str) -> None:
        if not name.isidentifier() or iskeyword(name):
            self.fail(f"{name!r} is no name")

    def define(self, var: ir.Var, how: str) -> None:
        self.identify(var.name)
        if var.name in self.open:
            self.fail(f"{var.name} is a {self.open[var.name]} already")
        if self.dtypes.setdefault(var.name, var.dtype) != var.dtype or var.name in self.buffers:
            self.fail(f"{var.name} is {self.dtypes.get(var.name, 'a buffer')} elsewhere, {var.dtype} here")
        self.open[var.name] = how

    def accumulator(self, var: ir.Var) -> None:
        if self.open.get(var.name) != "accumulator":
            self.define(var, "accumulator")
        self.same(self.dtypes[var.name], var.dtype)

    def buffer(self, buffer: ir.Buffer) -> None:
        if buffer.name not in self.buffers:
            self.fail(f"there is no buffer {buffer.name}")
        if buffer != self.buffers[buffer.name]:
            self.fail(f"{buffer} is known as {self.buffers[buffer.name]}")

    # expressions

    def same(self, wanted: str, found: str) -> None:
        if wanted != found:
            self.fail(f"{found} where {wanted} belongs")

    def value(self, expr: ir.Expr, dtype: str | None = None) -> None:
        """Check an expression, which is of a dtype if that is said."""
        if dtype is not None:
            self.same(dtype, expr.dtype)
        for part in ir.subexpressions(expr):
            match part:
                case ir.Var(name, known):
                    if name not in self.open:
                        self.fail(f"{name} is read where it has no value")
                    self.same(self.dtypes[name], known)
                case ir.Load(buffer, index):
                    self.buffer(buffer)
                    self.same(ir.INDEX, index.dtype)
                case ir.Apply(op, args, known):
                    self.applied(op, [arg.dtype for arg in args], known)
                case ir.Const(text, known):
                    if known not in DTYPES or not text:
                        self.fail(f"{text!r} is no literal of {known}")
                case ir.Pointer(buffer):
                    self.fail(f"the address of {buffer.name} is no value")
                case ir.Opaque(of):
                    self.fail(f"{of} has no value here")

    def applied(self, op: Operator, operands: Sequence[str], dtype: str) -> None:
        try:
            known = result_dtype(op, operands)
        except OperandError as error:
            self.fail(str(error))
        if known != dtype:
            self.fail(f"{op.name} of {', '.join(operands)} is {known}, not {dtype}")
