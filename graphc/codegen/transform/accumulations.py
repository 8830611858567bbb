"""Long sums that are written out, term after term, become loops.

In: the statements of a kernel. Out: the same computation, in which runs of values inside its loops, each computed from
the one before in the same way, from operands that are the same or grow by the same number, are loops that accumulate.
The order of what is carried out does not change, and so no bit of a result does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from graphc.codegen.transform.spelling import Affine, Operand, Respelling, Spelling
from graphc.loops.ir import INDEX, Let, Loop, Set, Stmt, Var, int_value, integer
from graphc.loops.visit import own_expressions, statements, use_counts
from graphc.startup.record import record, replace

LEAST_VALUES = 8
"""Fewer values stay as they are."""


def reroll_sums(body: Sequence[Stmt], name: Callable[[str], str]) -> tuple[Stmt, ...]:
    """Statements with such runs as loops, inside their loops; `name` gives free names."""
    return tuple(replace(stmt, body=within(stmt.body, name)) if isinstance(stmt, Loop) else stmt for stmt in body)


def within(body: Sequence[Stmt], name: Callable[[str], str]) -> tuple[Stmt, ...]:
    """The statements of a loop with runs as loops inside it."""
    body = reroll_sums(body, name)
    if sum(isinstance(stmt, Let) for stmt in body) < LEAST_VALUES:
        return body
    values = [Spelling([stmt], int_value, {}) if isinstance(stmt, Let) else None for stmt in body]
    uses = use_counts(own_expressions(statements(body)))
    result: list[Stmt] = []
    place = 0
    while place < len(body):
        run = run_at(values, place, uses)
        if run is None:
            result.append(body[place])
        else:
            result.extend(as_loop(body[place], body[place + run.count - 1], run, name))
        place += 1 if run is None else run.count
    return tuple(result)


@record()
class Values:
    """`count` values, the first computed from `start`, and each from the one before; `operands` of the first, by number
    those that are the value `before`, and the `numbers` that grow."""

    count: int
    start: Var
    before: Collection[int]
    operands: Sequence[Operand]
    numbers: Mapping[int, Affine]


def run_at(values: Sequence[Spelling | None], place: int, uses: Counter[Var]) -> Values | None:
    """The longest run that begins with a statement, if it is long enough."""
    first, second = (*values[place : place + 2], None, None)[:2]
    if first is None or second is None or first.key != second.key:
        return None
    pairs = list(enumerate(zip(first.operands, second.operands, strict=True)))[1:]
    before = [n for n, (_, other) in pairs if other == first.operands[0]]
    starts = {first.operands[n] for n in before}
    numbers = {
        n: Affine(one, other - one) for n, (one, other) in pairs if isinstance(one, int) and isinstance(other, int)
    }
    same = [n for n, _ in pairs if n not in before and n not in numbers]

    def follows(count: int) -> bool:
        """Whether one more value is as those are, and alone in reading the last of them."""
        last, link = values[place + count - 1], values[place + count] if place + count < len(values) else None
        if last is None or link is None or link.key != first.key:
            return False
        target, operands = last.operands[0], link.operands
        return (
            isinstance(target, Var)
            and uses[target] == len(before)
            and all(operands[n] == target for n in before)
            and all(operands[n] == first.operands[n] for n in same)
            and all(operands[n] == line.first + count * line.by for n, line in numbers.items())
        )

    count = 1
    while follows(count):
        count += 1
    (start,) = starts if len(starts) == 1 else (None,)
    if count < LEAST_VALUES or not isinstance(start, Var):
        return None
    return Values(count, start, before, first.operands, numbers)


def as_loop(first: Stmt, last: Stmt, run: Values, name: Callable[[str], str]) -> Iterator[Stmt]:
    """A run from its first to its last statement as a loop."""
    assert isinstance(first, Let) and isinstance(last, Let)
    total, step = Var(name(first.var.name), first.var.dtype), Var(name("term"), INDEX)
    new = (
        run.numbers[n].at(step) if isinstance(operand, int) else total if n in run.before else operand
        for n, operand in enumerate(run.operands)
    )
    link = Respelling(new, int_value).statement(first)
    assert isinstance(link, Let)
    yield Set(total, run.start)
    yield Loop(step, integer(run.count), (Set(total, link.value),))
    yield Let(last.var, total)
