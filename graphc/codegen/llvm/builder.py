"""The body of a function in LLVM IR, written as a program: variables and structured control flow.

In: typed values (typed.py). Out: blocks, as text.

    total = code.variable(I64.of(0))
    with code.count(0, count) as i:
        with code.when(numbers.at(i, I64).load(I64) > total.value):
            ...

A `Variable` is a value that changes. It lies in no memory: where paths meet on which it has several values, and where a
loop begins, there is a phi node (Braun et al., Simple and Efficient Construction of Static Single Assignment Form,
2013, for control flow that is structured). A variable that is not set on all paths to a place does not exist there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar, cast

from graphc.codegen.llvm.typed import I64, Bool, Ptr, Value, size_text

V = TypeVar("V", bound=Value)


class Variable(Generic[V]):
    """A value that changes."""

    __slots__ = ("code", "number", "type_")

    def __init__(self, code: Code, type_: type[V], number: int) -> None:
        self.code = code
        self.type_ = type_
        self.number = number

    @property
    def value(self) -> V:
        text = self.code.values[self]
        if text in self.code.pending:
            self.code.pending[text] = True
        return self.type_(self.code, text)

    @value.setter
    def value(self, value: V) -> None:
        if value.spelling != self.type_.spelling:
            raise TypeError(f"{value} is set where a {self.type_.spelling} stood")
        self.code.values[self] = value.text


Values: TypeAlias = dict[Variable[Any], str]


class Edge:
    """A way to a label: the block that it leaves, and the values of the variables there."""

    __slots__ = ("block", "values")

    def __init__(self, block: str, values: Values) -> None:
        self.block = block
        self.values = values


class Label:
    """A place further on in a function, to which code may go before it is written: `Code.place` writes it."""

    __slots__ = ("code", "edges", "name")

    def __init__(self, code: Code, name: str) -> None:
        self.code = code
        self.name = name
        self.edges: list[Edge] = []

    def go(self) -> None:
        """Go there."""
        self.code.do(f"br label %{self.name}")
        self.come()
        self.code.block = ""

    def come(self) -> None:
        """There is a way from here."""
        self.edges.append(Edge(self.code.block, dict(self.code.values)))

    def when(self, condition: Bool) -> None:
        """Go there where a condition holds, else on."""
        self.code.branch(condition, self.name, following := self.code.name("on"))
        self.come()
        self.code.begin(following)

    def unless(self, condition: Bool) -> None:
        """Go there where a condition does not hold, else on."""
        self.code.branch(condition, following := self.code.name("on"), self.name)
        self.come()
        self.code.begin(following)


class Iteration:
    """An iteration of a loop: `leave` is what follows the loop, `again` its next iteration."""

    __slots__ = ("again", "leave")

    def __init__(self, again: Label, leave: Label) -> None:
        self.again = again
        self.leave = leave


class Code:
    """A function that is being written: instructions come one after the other. poison: memory is filled with a
    pattern where the function takes it."""

    def __init__(self, poison: bool = False) -> None:
        self.poison = poison
        self.lines: list[str] = []
        self.locals: list[str] = []
        self.called: dict[str, Any] = {}
        """The functions that it calls, and the lines of the globals that it names."""
        self.data: dict[str, str] = {}
        self.block = "start"
        """The block that is being written; "" behind one that has ended, where nothing may follow."""
        self.values: Values = {}
        """The values of variables here."""
        self.pending: dict[str, bool] = {}
        """The phi nodes of loops that have no end yet, and whether anything reads them."""
        self.same: dict[str, str] = {}
        """The phi nodes that were not needed: what they would have been."""
        self.serial = 0
        self.choice: tuple[Label, Edge, int, int] | None = None
        """The last `when`: its end, the way past it, and the lines of its jump to the end and behind that."""

    def name(self, stem: str) -> str:
        """A name that is new in the function."""
        self.serial += 1
        return f"{stem}.{self.serial}"

    def emit(self, type_: type[V], text: str) -> V:
        """An instruction with a result."""
        if not self.block:
            raise ValueError(f"nothing leads to: {text}")
        self.serial += 1
        name = f"%v{self.serial}"
        self.lines.append(f"  {name} = {text}")
        return type_(self, name)

    def do(self, text: str) -> None:
        """An instruction without a result."""
        if not self.block:
            raise ValueError(f"nothing leads to: {text}")
        self.lines.append(f"  {text}")

    def variable(self, value: V) -> Variable[V]:
        """A variable with its first value."""
        self.serial += 1
        variable = Variable(self, type(value), self.serial)
        self.values[variable] = value.text
        return variable

    def local(self, type_: type[Value], count: int | None = None, *, align: int = 0) -> Ptr:
        """Memory on the stack for a value, or for an array of `count`."""
        name = f"%{self.name('local')}"
        allocated = type_.spelling if count is None else f"[{count} x {type_.spelling}]"
        self.locals.append(f"  {name} = alloca {allocated}{f', align {align}' if align else ''}")
        return Ptr(self, name)

    def address(self, value: Value) -> Ptr:
        """The value itself if it is an address, else that of a copy on the stack, as Fortran takes its arguments."""
        if isinstance(value, Ptr):
            return value
        place = self.local(type(value))
        place.store(value)
        return place

    def call(self, type_: type[V] | None, callee: str, args: Sequence[Value], attributes: str = "") -> V:
        text = f"{callee}({', '.join([f'{arg.spelling} {arg.text}' for arg in args])}){attributes}"
        if type_ is None:
            self.do(f"call void {text}")
            return cast("V", None)
        return self.emit(type_, f"call {type_.spelling} {text}")

    def fence(self) -> None:
        """All that was stored before is seen before all that comes after."""
        self.do("fence seq_cst")

    # Control flow. ---------------------------------------------------------------------------------------------------

    def label(self, stem: str) -> Label:
        """A place further on."""
        return Label(self, self.name(stem))

    def branch(self, condition: Bool, yes: str, no: str) -> None:
        if condition.spelling != "i1":
            raise TypeError(f"{condition} is no condition")
        self.do(f"br i1 {condition.text}, label %{yes}, label %{no}")

    def begin(self, block: str) -> None:
        """Write the next block; the variables are as they were."""
        self.lines.append(f"{block}:")
        self.block = block

    def place(self, label: Label) -> None:
        """Write the label here: what was written last goes on there too, if it has not ended."""
        if self.block:
            label.go()
        edges = label.edges
        self.block = ""
        if not edges:
            return
        self.begin(label.name)
        blocks = [edge.block for edge in edges]
        self.values = {}
        for variable in edges[0].values:
            texts = [edge.values.get(variable, "") for edge in edges]
            if self.same:
                texts = [self.resolved(text) for text in texts]
            if texts.count(texts[0]) == len(texts):
                self.values[variable] = texts[0]
            elif "" not in texts:
                self.values[variable] = self._phi(variable, list(zip(texts, blocks, strict=True)))

    def _phi(self, variable: Variable[Any], ways: Sequence[tuple[str, str]], name: str = "") -> str:
        for text, _ in ways:
            if text in self.pending:
                self.pending[text] = True
        name = name or f"%{self.name('phi')}"
        arms = ", ".join([f"[{text}, %{block}]" for text, block in ways])
        self.lines.append(f"  {name} = phi {variable.type_.spelling} {arms}")
        return name

    def resolved(self, text: str) -> str:
        """A value, where it was thought to be a phi node and is none."""
        while text in self.same:
            text = self.same[text]
        return text

    @contextmanager
    def when(self, condition: Bool) -> Iterator[None]:
        """A context for code that runs where a condition holds. `otherwise` may follow."""
        then, end = self.name("then"), self.label("end")
        self.branch(condition, then, end.name)
        past = Edge(self.block, dict(self.values))
        self.begin(then)
        yield
        jump = len(self.lines) if self.block else -1
        if self.block:
            end.go()
        end.edges.append(past)
        behind = len(self.lines)
        self.place(end)
        self.choice = (end, past, jump, behind)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """A context for code that runs where the condition of the `when` just before does not hold."""
        assert self.choice is not None, "it follows a `when`"
        end, past, jump, behind = self.choice
        assert all("= phi " in line for line in self.lines[behind + 1 :]), "it follows a `when` at once"
        del self.lines[behind:]
        after = self.label("end")
        if jump >= 0:
            self.lines[jump] = f"  br label %{after.name}"
            after.edges.append(end.edges[0])
        self.values = dict(past.values)
        self.begin(end.name)
        yield
        self.place(after)

    @contextmanager
    def loop(self) -> Iterator[Iteration]:
        """A context for code that runs again and again, until it goes to `leave` or returns."""
        iteration = Iteration(self.label("again"), self.label("done"))
        head = self.name("loop")
        self.do(f"br label %{head}")
        before = Edge(self.block, dict(self.values))
        self.begin(head)
        place = len(self.lines)
        phis = {variable: f"%{self.name('phi')}" for variable in before.values}
        self.pending.update(dict.fromkeys(phis.values(), False))
        self.values = dict(phis)
        yield iteration
        self._close(iteration, head, before, phis, place)
        self.place(iteration.leave)

    def _close(self, iteration: Iteration, head: str, before: Edge, phis: Values, place: int) -> None:
        """Go back to the head of a loop, and write the phi nodes that it needs there."""
        if iteration.again.edges:  # one way back, whatever leads there
            self.place(iteration.again)
        backs = []
        if self.block:
            self.do(f"br label %{head}")
            backs.append(Edge(self.block, dict(self.values)))
        self.block = ""
        body = self.lines[place:]
        del self.lines[place:]
        for variable, name in phis.items():
            is_read = self.pending.pop(name)
            ways = [(self.resolved(edge.values[variable]), edge.block) for edge in backs]
            if is_read or any(text != name for text, _ in ways):
                self._phi(variable, [(self.resolved(before.values[variable]), before.block), *ways], name)
            else:
                self.same[name] = before.values[variable]
        self.lines += body

    @contextmanager
    def count(self, begin: I64 | int, end: I64 | int, step: I64 | int = 1, *, sure: bool = False) -> Iterator[I64]:
        """A loop over the numbers from `begin` on that are less than `end`. sure: there is one, which is not asked."""
        first = begin if isinstance(begin, I64) else I64.of(begin)
        counter = self.variable(first)
        with self.loop() as iteration:
            now = counter.value
            if not sure:
                iteration.leave.unless(now < end)
            yield now
            if iteration.again.edges:
                self.place(iteration.again)
                iteration.again.edges.clear()
            following = self.emit(I64, f"add nsw i64 {now.text}, {size_text(step)[4:]}")
            counter.value = following
            if sure:
                iteration.leave.unless(following < end)
        self.values.pop(counter, None)

    def ret(self, value: Value | float | None = None) -> None:
        """Return from the function."""
        if isinstance(value, bool):
            value = Bool.of(value)
        self.do("ret void" if value is None else f"ret {value}")
        self.block = ""
