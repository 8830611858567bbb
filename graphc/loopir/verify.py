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
    memory      is stored before it is read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import NoReturn, TypeAlias

from graphc.arrays.dtypes import DTYPES
from graphc.errors import VerifyError
from graphc.loopir import ir, operators, visit
from graphc.loopir.syntax import print_statement
from graphc.startup.record import record

# --- every element is stored before it is read, on every path ---------------------------------------------------------
# In: functions that stand in one source, and the buffers of which nothing is stored when the first one begins: results
# and temporaries. Out: nothing, or a VerifyError that names the load.
#
# Statements are followed from the first function on, through the functions that they call, and all stores so far are
# kept with the conditions under which they are carried out. A load is in order where the conditions of a store hold,
# whatever the conditions are that are not known there:
#
#     element  a store to the same constant position, or to positions that only a loop tells
#     branch   a condition holds inside its branch, and the contrary in the other; what both store is stored after them
#     loop     its body is followed once, as its first iteration, so that nothing is read which only a later statement
#              of it stores. What it stores at a constant position is stored where a loop over as many iterations is
#              entered, or where these are known to be some; at other positions it counts as stored, for where there
#              are no iterations there are no elements
#     leaving  after a `Break` that is not taken its condition does not hold; after a branch with one somewhere within,
#              a condition holds of which nothing is known
#
# A function from outside counts as one that stores whatever it is given the address of: what it reads is not said in
# the program. Of a temporary that holds several values in turn, the first to be stored counts for all. Both are held
# by the lowering, which reads no value of a plan from memory before the part that stores it.

Number: TypeAlias = int
"""A value: equal numbers are equal values."""
Condition: TypeAlias = "tuple[Number, bool | None]"
"""A condition: a value is true, or false; of the trip count of a loop, with None: there are iterations."""
Conditions: TypeAlias = "frozenset[Condition]"
Element: TypeAlias = "int | None"
"""A constant position; None for any other."""
NONE: Conditions = frozenset()


@record()
class Place:
    """The buffer of the first function that a parameter stands for, from an element on."""

    name: str
    begin: Element


def verify_assigned(functions: Sequence[ir.Function], unwritten: frozenset[str]) -> None:
    """Check the functions that none of the others calls. Raises VerifyError."""
    by_name = {function.name: function for function in functions}
    callees: set[str] = set()
    for function in functions:
        callees |= _callees(function.body)
    for function in functions:
        if function.name not in callees:
            _Paths(by_name, unwritten).enter(function)


def _callees(body: Sequence[ir.Stmt]) -> set[str]:
    names: set[str] = set()
    pending = [*body]
    while pending:
        match pending.pop():
            case ir.Loop() as loop:
                pending += loop.body
            case ir.If(_, then, orelse):
                pending += (*then, *orelse)
            case ir.Invoke(function) | ir.Launch(function):
                names.add(function)
    return names


def _covered(ways: Sequence[Conditions], here: Conditions) -> bool:
    """True where all conditions of one of the ways hold where those of `here` do, the others being as they may."""
    if any(way <= here for way in ways):
        return True
    left, count = [way - here for way in ways], 0
    while len(left) != count:  # without those that some condition rules out: its contrary holds, or has no way
        count, asked = len(left), frozenset().union(*left)
        left = [way for way in left if all((one := _contrary(each)) in asked and one not in here for each in way)]
    if not left:
        return False
    condition = min(left[0])
    return all(_covered(left, frozenset({each})) for each in (condition, _contrary(condition)))


def _contrary(condition: Condition) -> Condition:
    """The condition that holds where this one does not; that there are no iterations is nobody's condition."""
    number, holds = condition
    return (-1, None) if holds is None else (number, not holds)


class _Values:
    """Numbers of values, each with how many loops are around the innermost one in which it changes."""

    def __init__(self) -> None:
        self.numbers: dict[object, Number] = {}
        self.terms: list[object] = []
        self.depths: list[int] = []

    def number(self, term: object, depth: int) -> Number:
        """The number of a term, whose operands are numbers."""
        known = self.numbers.get(term)
        if known is None:
            known = self.numbers[term] = len(self.terms)
            self.terms.append(term)
            self.depths.append(depth)
        return known

    def new(self, depth: int) -> Number:
        """The number of a value of which nothing is known."""
        return self.number(("value", len(self.terms)), depth)

    def constant(self, number: Number) -> int | None:
        match self.terms[number]:
            case ir.Const() as const:
                return ir.int_value(const)
        return None

    def factors(self, size: Number) -> Iterator[Number]:
        """The values all of which are above 0 where a loop of this size has iterations."""
        match self.terms[size]:
            case (op, int() as one, int() as other) if op is operators.MUL:
                yield from self.factors(one)
                yield from self.factors(other)
            case (op, int() as length, _) if op is operators.BLOCKS:
                yield from self.factors(length)
            case _:
                if (self.constant(size) or 0) <= 0:
                    yield size


class _Paths:
    """The way through the statements of a function and of those it calls: `stored` under which conditions, and those
    that hold `here`. `latest`: what was stored, in order, so that the end of a loop looks at its own stores only."""

    def __init__(self, own: Mapping[str, ir.Function], unwritten: frozenset[str]) -> None:
        self.own, self.unwritten = own, unwritten
        self.values = _Values()
        self.stored: dict[tuple[str, Element], list[Conditions]] = {}
        self.elements: dict[str, set[Element]] = {}
        self.latest: list[tuple[str, Element]] = []
        self.here = NONE
        self.loops = 0
        self.names: dict[str, Number] = {}
        self.places: dict[str, Place] = {}
        self.function: ir.Function | None = None
        self.stmt: ir.Stmt | None = None
        self.chunk: tuple[Number, Number] | None = None

    def enter(self, function: ir.Function) -> None:
        """Follow a function that nobody calls."""
        places = {each.name: Place(each.name, 0) for each in function.params if isinstance(each, ir.Buffer)}
        names = {each.name: self.values.new(0) for each in function.params if isinstance(each, ir.Var)}
        self.follow(function, places, names, None)

    def follow(
        self,
        function: ir.Function,
        places: dict[str, Place],
        names: dict[str, Number],
        chunk: tuple[Number, Number] | None,
    ) -> None:
        """Follow a function whose parameters stand for these places and values. chunk: its first two, where they are
        the beginning and the end of some iterations."""
        before = self.function, self.stmt, self.places, self.names, self.chunk
        self.function, self.places, self.names, self.chunk = function, places, names, chunk
        self.body(function.body)
        self.function, self.stmt, self.places, self.names, self.chunk = before

    def fail(self, buffer: ir.Buffer) -> NoReturn:
        assert self.function is not None
        where = f", {print_statement(self.stmt)!r}" if self.stmt is not None else ""
        raise VerifyError(f"{self.function.name}{where}: {buffer.name} is read before it is stored")

    # Statements

    def body(self, body: Sequence[ir.Stmt]) -> bool | None:
        """Follow statements; whether they end with the loop left, or, with None, may leave it within."""
        here, left = self.here, False
        for stmt in body:
            self.stmt = stmt
            match stmt:
                case ir.Let(var, value) | ir.Set(var, value):
                    self.names[var.name] = self.value(value)
                case ir.Store(buffer, index, value):
                    self.value(value)
                    self.store(buffer, self.element(buffer, self.value(index)))
                case ir.Loop():
                    self.loop(stmt)
                case ir.If(condition, then, orelse):
                    left |= self.branch(self.value(condition), then, orelse)
                case ir.Check(condition):
                    self.value(condition)
                case ir.Invoke(function, args):
                    self.call(function, args)
                case ir.Launch(function, count, size, args):
                    self.value(size)
                    self.launch(function, self.value(count), args)
                case ir.Break():
                    self.here = here
                    return True
        self.here = here
        return None if left else False

    def loop(self, loop: ir.Loop) -> None:
        begin, size = self.value(loop.begin), self.value(loop.size)
        here = self.here
        if (begin, size) != self.chunk:
            first, end = self.values.constant(begin), self.values.constant(size)
            if first == 0:
                self.here |= {(factor, None) for factor in self.values.factors(size)}
            elif first is None or end is None or first >= end:
                self.here |= {(self.values.number(("range", begin, size), self.loops), None)}
        changing, before = {var.name for var in visit.defined(loop.body)} & self.names.keys(), len(self.latest)
        self.loops += 1
        for name in (*changing, loop.var.name):
            self.names[name] = self.values.new(self.loops)
        self.body(loop.body)
        self.loops -= 1
        for name in changing:
            self.names[name] = self.values.new(self.loops)
        self.here = here
        for key in self.since(before):
            if key[1] is None:
                self.stored[key] = [self.outside(way) for way in self.stored[key]]

    def since(self, before: int) -> list[tuple[str, Element]]:
        """The stores after the first `before`, each once from here on."""
        accesses = [*dict.fromkeys(self.latest[before:])]
        self.latest[before:] = accesses
        return accesses

    def outside(self, way: Conditions) -> Conditions:
        """The conditions that do not change in a loop that ends here."""
        if all(self.values.depths[number] <= self.loops for number, _ in way):
            return way
        return frozenset(each for each in way if self.values.depths[each[0]] <= self.loops)

    def branch(self, condition: Number, then: Sequence[ir.Stmt], orelse: Sequence[ir.Stmt]) -> bool:
        """Follow both branches; whether one of them may leave the loop."""
        here, before = self.here, len(self.latest)
        left: list[bool | None] = []
        for holds, body in ((True, then), (False, orelse)):
            self.here = here | {(condition, holds)}
            left.append(self.body(body))
        for var in visit.defined((*then, *orelse)):
            self.names[var.name] = self.values.new(self.loops)
        self.here = here
        for key in self.since(before):
            if _covered(self.stored[key], here):
                self.keep(key)
        for holds, leaves in zip((True, False), left, strict=True):
            if leaves:
                self.here |= {(condition, not holds)}
            elif leaves is None:
                self.here |= {(self.values.new(self.loops), True)}
        return left != [False, False]

    def call(self, function: str, args: Sequence[ir.Expr], chunk: tuple[Number, Number] | None = None) -> None:
        """A call of a function of the same source, or of one from outside."""
        callee = self.own.get(function)
        places: dict[str, Place] = {}
        names: dict[str, Number] = {}
        params = [None] * len(args) if callee is None else callee.params[2 * (chunk is not None) :]
        for param, arg in zip(params, args, strict=True):
            pointer = arg.args[0] if isinstance(arg, ir.Apply) and arg.op in (operators.FILLS, operators.READS) else arg
            if isinstance(pointer, ir.Pointer):
                begin = self.element(pointer.buffer, self.value(pointer.index))
                if param is None:
                    self.store(pointer.buffer, None)
                else:
                    places[param.name] = Place(self.places[pointer.buffer.name].name, begin)
            elif param is None:
                self.value(arg)
            else:
                names[param.name] = self.value(arg)
        if callee is None:
            return
        if chunk is not None:
            names |= {param.name: number for param, number in zip(callee.params, chunk, strict=False)}
        self.follow(callee, places, names, chunk)

    def launch(self, function: str, count: Number, args: Sequence[ir.Expr]) -> None:
        """A call for every chunk: as the first one."""
        here = self.here
        self.here |= {(factor, None) for factor in self.values.factors(count)}
        self.loops += 1
        self.call(function, args, (self.values.new(self.loops), self.values.new(self.loops)))
        self.loops -= 1
        self.here = here

    # Memory

    def element(self, buffer: ir.Buffer, index: Number) -> Element:
        """The position in the first function's buffer."""
        begin, position = self.places[buffer.name].begin, self.values.constant(index)
        return None if begin is None or position is None else begin + position

    def store(self, buffer: ir.Buffer, element: Element) -> None:
        name = self.places[buffer.name].name
        if name in self.unwritten:
            self.keep((name, element))
            self.elements.setdefault(name, set()).add(element)

    def keep(self, key: tuple[str, Element]) -> None:
        """Note that an element is stored where what holds here does."""
        ways, here = self.stored.setdefault(key, []), self.here
        if key[1] is None:
            here = frozenset(each for each in here if each[1] is not None)
        if not any(way <= here for way in ways):
            ways[:] = [*(way for way in ways if not here <= way), here]
            self.latest.append(key)

    def load(self, buffer: ir.Buffer, element: Element) -> None:
        name = self.places[buffer.name].name
        if name not in self.unwritten:
            return
        wanted = self.elements.get(name, ()) if element is None else (element, None)
        if not _covered([way for each in wanted for way in self.stored.get((name, each), ())], self.here):
            self.fail(buffer)

    # Expressions

    def value(self, expr: ir.Expr) -> Number:
        """The number of an expression, whose loads are looked at."""
        stack: list[Number] = []
        for part in reversed([*ir.subexpressions(expr)]):  # operands first, the last one first
            match part:
                case ir.Var(name):
                    stack.append(self.names[name])
                case ir.Const():
                    stack.append(self.values.number(part, 0))
                case ir.Load(buffer):
                    self.load(buffer, self.element(buffer, stack.pop()))
                    stack.append(self.values.new(self.loops))
                case ir.Apply(op, args):
                    operands = [stack.pop() for _ in args]
                    depth = max((self.values.depths[each] for each in operands), default=0)
                    stack.append(self.values.number((op, *operands), depth))
                case _:
                    stack.append(self.values.new(self.loops))
        return stack[-1]


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
        if loop.conflicts is not None and visit.is_left(loop):
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
            case ir.Apply(op, (ir.Pointer() as pointer,), dtype) if op in (operators.FILLS, operators.READS):
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

    def same(self, wanted: str, actual: str) -> None:
        if wanted != actual:
            self.fail(f"{actual} where {wanted} belongs")

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

    def applied(self, op: operators.Operator, operands: Sequence[str], dtype: str) -> None:
        try:
            known = operators.result_dtype(op, operands)
        except operators.OperandError as error:
            self.fail(str(error))
        if known != dtype:
            self.fail(f"{op.name} of {', '.join(operands)} is {known}, not {dtype}")
