"""Double buffering of a state that each step reads shifted, as a field on a ring.

In: the statements of a kernel. Out: the same values with fewer copies. A step reads its state shifted by k: elements k
to n, then 0 to k. Lowering copies these two pieces to a temporary, and computes the new state over the old one:

    for step in range(count):                       for pair in range(count // 2):
        for i in range(n - k):                          for i in range(n - k):
            t[i] = state[k + i]                             t[i] = f(state[i], state[k + i])
        for i in range(k):                              for i in range(k):
            t[n - k + i] = state[i]                         t[n - k + i] = f(state[n - k + i], state[i])
        for i in range(n):                              ...                  # the same from t to state
            state[i] = f(state[i], t[i])            ...                      # the last of an odd number of steps

On the right nothing is copied. The temporary is the second buffer: a step reads one buffer and writes the other, the
next step the other way round, so two steps are written one after the other. The loop over the row is split at the
joint, n - k, into one loop for each piece. The last step of an odd number is written by itself, and its row copied to
the state.

A step has this form where the loop over the row is its last statement, and all others are names of positions and the
copies. That loop reads a temporary at its own element only. Where a step reads its state in two shifts, two joints
split the row into three; which joint comes first is known when the kernel runs, so there are four loops, of which one
at least has no iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from graphc.codegen.transform.unroll import iteration
from graphc.loopir import operators
from graphc.loopir.ir import (
    INDEX,
    ONE,
    ZERO,
    Apply,
    Buffer,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Note,
    Pointer,
    Stmt,
    Store,
    Var,
    add,
    apply,
    int_value,
    integer,
    multiply,
    quotient,
    rebuild,
    remainder,
    safepoint_in_blocks,
    subexpressions,
    subtract,
)
from graphc.loopir.operators import MAXIMUM, MINIMUM
from graphc.loopir.visit import all_expressions, expressions, map_bodies, map_own_expressions, op_count, read_buffers
from graphc.startup.record import record, replace

MOST_JOINTS = 2
MOST_OTHERS = 1
"""Buffers that the loop over the row writes besides: its parts do not begin where lines of memory do, and writing more
they would lose what is gained."""
MOST_OPS = 60
"""Operators of an iteration of the loop over the row, which is written down a dozen times."""

Fresh = Callable[[str], str]


@record()
class Piece:
    """Some elements of a temporary: `value`, in terms of `var`, the number of the element."""

    var: Var
    size: Expr
    value: Expr


@record()
class Joined:
    """A temporary that is made of two pieces, the second from `joint` on."""

    buffer: Buffer
    joint: Expr
    pieces: tuple[Piece, Piece]


@record()
class Step:
    """A step: the names of places, the loop over the row, the state's buffer, and what is joined."""

    names: tuple[Stmt, ...]
    row: Loop
    state: Buffer
    joined: tuple[Joined, ...]


def double_buffer(body: Sequence[Stmt], fresh: Fresh) -> tuple[Stmt, ...]:
    """Statements whose loops over such steps have two buffers; `fresh` gives names."""
    reads = Counter(part.buffer for part in all_expressions(body) if isinstance(part, Load | Pointer))
    return tuple(_double_buffered(body, {}, reads, fresh))


def _double_buffered(
    body: Sequence[Stmt], outer: Mapping[Var, Expr], reads: Mapping[Buffer, int], fresh: Fresh
) -> Iterator[Stmt]:
    """`outer`: places that have names around the statements."""
    values = dict(outer)
    for stmt in body:
        if isinstance(stmt, Let) and stmt.var.dtype == INDEX:
            values[stmt.var] = stmt.value
        step = _read_step(stmt, values, reads) if isinstance(stmt, Loop) else None
        if step is not None and isinstance(stmt, Loop):
            yield from _in_pairs(stmt, step, fresh)
        else:
            yield map_bodies(stmt, lambda inner: tuple(_double_buffered(inner, values, reads, fresh)))


def _read_step(loop: Loop, outer: Mapping[Var, Expr], reads: Mapping[Buffer, int]) -> Step | None:
    """The step of a loop, if it has this form."""
    before, row = loop.body[:-1], loop.body[-1] if loop.body else None
    if loop.begin != ZERO or not isinstance(row, Loop):
        return None
    simple = all(isinstance(stmt, Let | Store) for stmt in row.body) and row.begin == ZERO
    if not simple or sum(op_count(expr) for stmt in row.body for expr in expressions(stmt)) > MOST_OPS:
        return None
    names = tuple(stmt for stmt in before if not isinstance(stmt, Loop))
    if not all(isinstance(stmt, Note) or (isinstance(stmt, Let) and stmt.var.dtype == INDEX) for stmt in names):
        return None
    inner = [stmt for stmt in before if isinstance(stmt, Loop)]
    if read_buffers(names) or any(
        isinstance(part, Load) for each in (*inner, row) for part in subexpressions(each.size)
    ):
        return None
    values = {**outer, **{stmt.var: stmt.value for stmt in names if isinstance(stmt, Let)}}
    joined = _read_joined(inner, row.size, values)
    if joined is None or not all(_is_read_in_order(row, each.buffer, reads) for each in joined):
        return None
    states = {part.buffer for each in joined for piece in each.pieces for part in subexpressions(piece.value)
              if isinstance(part, Load)}  # fmt: skip
    stores = [stmt for stmt in row.body if isinstance(stmt, Store)]
    own = [store for store in stores if store.buffer in states]
    others = [store.buffer for store in stores if store.buffer not in states]
    if len(own) != 1 or len(others) > MOST_OTHERS or not read_buffers(loop.body).isdisjoint(others):
        return None
    (store,) = own
    if store.index != row.var or store.buffer.dtype != joined[0].buffer.dtype:
        return None
    return Step(names, row, store.buffer, joined)


def _read_joined(loops: Sequence[Loop], size: Expr, values: Mapping[Var, Expr]) -> tuple[Joined, ...] | None:
    """The pairs of pieces that copies make, as long as the row."""
    pieces: dict[Buffer, list[tuple[Expr, Piece]]] = {}
    for loop in loops:
        store = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(store, Store) or loop.begin != ZERO or not store.buffer.is_temporary:
            return None
        match store.index:
            case Apply(operators.ADD, (start, var)) if var == loop.var:
                pass
            case _ if store.index == loop.var:
                start = ZERO
            case _:
                return None
        pieces.setdefault(store.buffer, []).append((start, Piece(loop.var, loop.size, store.value)))
    found = []
    for buffer, parts in pieces.items():
        if [start for start, _ in parts] != [ZERO, parts[0][1].size]:
            return None
        (_, first), (_, second) = parts
        if not _is_sum(first.size, second.size, size, values):
            return None
        found.append(Joined(buffer, first.size, (first, second)))
    return tuple(found) if 0 < len(found) <= MOST_JOINTS else None


def _is_sum(first: Expr, second: Expr, total: Expr, values: Mapping[Var, Expr]) -> bool:
    """True where two sizes are known to be a third together."""

    def value(size: Expr) -> Expr:
        return values.get(size, size) if isinstance(size, Var) else size

    numbers = [int_value(size) for size in (first, second, total)]
    if None not in numbers:
        return numbers[0] + numbers[1] == numbers[2]  # type: ignore[operator]
    return value(first) == subtract(total, second) or value(second) == subtract(total, first)


def _is_read_in_order(row: Loop, buffer: Buffer, reads: Mapping[Buffer, int]) -> bool:
    """True where nothing reads a temporary but the loop over the row, at its own element."""
    parts = [part for stmt in row.body for expr in expressions(stmt) for part in subexpressions(expr)]
    own = [part for part in parts if isinstance(part, Load | Pointer) and part.buffer == buffer]
    return len(own) == reads[buffer] and all(isinstance(part, Load) and part.index == row.var for part in own)


def _in_pairs(loop: Loop, step: Step, fresh: Fresh) -> Iterator[Stmt]:
    """The loop over pairs of steps, and the last step of an odd number."""
    other = step.joined[0].buffer

    def name(hint: str) -> Var:
        return Var(fresh(hint), INDEX)

    pair, one = name("pair"), name("last")
    count = loop.size
    if not isinstance(count, Var | Const):
        count = name("steps")
        yield Let(count, loop.size)
    twice = multiply(pair, integer(2))
    both = (
        *_one_step(step, {loop.var: twice}, step.state, other, fresh),
        *_one_step(step, {loop.var: add(twice, ONE)}, other, step.state, fresh),
    )
    yield Loop(pair, quotient(count, integer(2)), both, safepoint=safepoint_in_blocks(loop.safepoint, 2))
    place = name("i")
    copy = Loop(place, step.row.size, (Store(step.state, place, Load(other, place)),))
    rest = _one_step(step, {loop.var: subtract(count, ONE)}, step.state, other, fresh)
    yield Loop(one, remainder(count, integer(2)), (*rest, copy))


def _one_step(
    step: Step, positions: Mapping[Var, Expr], source: Buffer, target: Buffer, fresh: Fresh
) -> Iterator[Stmt]:
    """A step that reads the state from `source` and writes it to `target`; `positions`: values of loop variables."""
    values = dict(positions)
    for stmt in step.names:
        if isinstance(stmt, Let):
            name = Var(fresh(stmt.var.name), INDEX)
            yield Let(name, _with(stmt.value, values))
            values[stmt.var] = name
        elif source == step.state:
            yield stmt
    bounds = [_with(each.joint, values) for each in step.joined]
    size = _with(step.row.size, values)
    for begin, length, numbers in _parts(bounds, size):
        if int_value(length) == 0:
            continue
        if not isinstance(begin, Var) and int_value(begin) is None:
            name = Var(fresh("begin"), INDEX)
            yield Let(name, begin)
            begin = name
        var = Var(fresh("i"), INDEX)
        place = add(begin, var)
        pieces: dict[Buffer, Expr] = {}
        for each, number, bound in zip(step.joined, numbers, bounds, strict=True):
            element = place if number == 0 else var if begin == bound else add(subtract(begin, bound), var)
            piece = each.pieces[number]
            pieces[each.buffer] = _with(piece.value, {**values, piece.var: element})
        body = [_moved(stmt, step, pieces, source, target) for stmt in step.row.body]
        yield Loop(var, length, tuple(iteration(body, {**values, step.row.var: place}, fresh, with_notes=True)))


def _parts(bounds: Sequence[Expr], size: Expr) -> Iterator[tuple[Expr, Expr, tuple[int, ...]]]:
    """The parts of a row between joints: its begin, its length, and of each temporary the number of the piece there."""
    if len(bounds) == 1:
        yield ZERO, bounds[0], (0,)
        yield bounds[0], subtract(size, bounds[0]), (1,)
        return
    first, second = bounds
    low, high = apply(MINIMUM, first, second), apply(MAXIMUM, first, second)
    yield ZERO, low, (0, 0)
    yield first, apply(MAXIMUM, subtract(second, first), ZERO), (1, 0)
    yield second, apply(MAXIMUM, subtract(first, second), ZERO), (0, 1)
    yield high, subtract(size, high), (1, 1)


def _with(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    return rebuild(expr, lambda part: values.get(part) if isinstance(part, Var) else None)


def _moved(stmt: Stmt, step: Step, pieces: Mapping[Buffer, Expr], source: Buffer, target: Buffer) -> Stmt:
    """A statement of the loop over the row with pieces in place of temporaries, and `target` in place of the state."""

    def found(part: Expr) -> Expr | None:
        if not isinstance(part, Load):
            return None
        if part.buffer in pieces:
            return rebuild(pieces[part.buffer], row)
        return Load(source, part.index) if part.buffer == step.state else None

    def row(part: Expr) -> Expr | None:
        return Load(source, part.index) if isinstance(part, Load) and part.buffer == step.state else None

    stmt = map_own_expressions(stmt, lambda expr: rebuild(expr, found))
    return replace(stmt, buffer=target) if isinstance(stmt, Store) and stmt.buffer == step.state else stmt
