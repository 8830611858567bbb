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
from graphc.loopir import ir, operators, visit
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

    var: ir.Var
    size: ir.Expr
    value: ir.Expr


@record()
class Joined:
    """A temporary that is made of two pieces, the second from `joint` on."""

    buffer: ir.Buffer
    joint: ir.Expr
    pieces: tuple[Piece, Piece]


@record()
class Step:
    """A step: the names of places, the loop over the row, the state's buffer, and what is joined."""

    names: tuple[ir.Stmt, ...]
    row: ir.Loop
    state: ir.Buffer
    joined: tuple[Joined, ...]


def double_buffer(body: Sequence[ir.Stmt], fresh: Fresh) -> tuple[ir.Stmt, ...]:
    """Statements whose loops over such steps have two buffers; `fresh` gives names."""
    reads = Counter(part.buffer for part in visit.all_expressions(body) if isinstance(part, ir.Load | ir.Pointer))
    return tuple(_double_buffered(body, {}, reads, fresh))


def _double_buffered(
    body: Sequence[ir.Stmt], outer: Mapping[ir.Var, ir.Expr], reads: Mapping[ir.Buffer, int], fresh: Fresh
) -> Iterator[ir.Stmt]:
    """`outer`: places that have names around the statements."""
    values = dict(outer)
    for stmt in body:
        if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX:
            values[stmt.var] = stmt.value
        step = _read_step(stmt, values, reads) if isinstance(stmt, ir.Loop) else None
        if step is not None and isinstance(stmt, ir.Loop):
            yield from _in_pairs(stmt, step, fresh)
        else:
            yield visit.map_bodies(stmt, lambda inner: tuple(_double_buffered(inner, values, reads, fresh)))


def _read_step(loop: ir.Loop, outer: Mapping[ir.Var, ir.Expr], reads: Mapping[ir.Buffer, int]) -> Step | None:
    """The step of a loop, if it has this form."""
    before, row = loop.body[:-1], loop.body[-1] if loop.body else None
    if loop.begin != ir.ZERO or not isinstance(row, ir.Loop) or not _is_plain(row):
        return None
    copies = [stmt for stmt in before if isinstance(stmt, ir.Loop)]
    names = tuple(stmt for stmt in before if not isinstance(stmt, ir.Loop))
    if not all(map(_names_position, names)) or any(map(_reads_memory, (each.size for each in (*copies, row)))):
        return None
    values = {**outer, **{stmt.var: stmt.value for stmt in names if isinstance(stmt, ir.Let)}}
    joined = _read_joined(copies, row.size, values)
    if joined is None or not all(_is_read_in_order(row, each.buffer, reads) for each in joined):
        return None
    state = _find_state(loop, row, joined)
    return None if state is None else Step(names, row, state, joined)


def _is_plain(row: ir.Loop) -> bool:
    """True for a loop from 0 on without loops or branches inside, with few operators."""
    if row.begin != ir.ZERO or not all(isinstance(stmt, ir.Let | ir.Store) for stmt in row.body):
        return False
    return sum(visit.op_count(expr) for stmt in row.body for expr in visit.expressions(stmt)) <= MOST_OPS


def _names_position(stmt: ir.Stmt) -> bool:
    """True for a statement that computes a position from positions, and for notes."""
    if isinstance(stmt, ir.Let):
        return stmt.var.dtype == ir.INDEX and not _reads_memory(stmt.value)
    return isinstance(stmt, ir.Note)


def _reads_memory(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Load) for part in ir.subexpressions(expr))


def _find_state(loop: ir.Loop, row: ir.Loop, joined: Sequence[Joined]) -> ir.Buffer | None:
    """The state of a step: the one buffer that pieces are copied from and that the row writes, each iteration its own
    element. None where there is no such buffer, or where the row writes others that are many or that are read."""
    parts = (part for each in joined for piece in each.pieces for part in ir.subexpressions(piece.value))
    copied = {part.buffer for part in parts if isinstance(part, ir.Load)}
    stores = [stmt for stmt in row.body if isinstance(stmt, ir.Store)]
    states = [store for store in stores if store.buffer in copied]
    others = [store.buffer for store in stores if store.buffer not in copied]
    if len(states) != 1 or len(others) > MOST_OTHERS or not visit.read_buffers(loop.body).isdisjoint(others):
        return None
    (store,) = states
    is_swappable = store.index == row.var and store.buffer.dtype == joined[0].buffer.dtype
    return store.buffer if is_swappable else None


def _read_joined(
    loops: Sequence[ir.Loop], size: ir.Expr, values: Mapping[ir.Var, ir.Expr]
) -> tuple[Joined, ...] | None:
    """The pairs of pieces that copies make, as long as the row."""
    pieces: dict[ir.Buffer, list[tuple[ir.Expr, Piece]]] = {}
    for loop in loops:
        store = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(store, ir.Store) or loop.begin != ir.ZERO or not store.buffer.is_temporary:
            return None
        match store.index:
            case ir.Apply(operators.ADD, (start, var)) if var == loop.var:
                pass
            case _ if store.index == loop.var:
                start = ir.ZERO
            case _:
                return None
        pieces.setdefault(store.buffer, []).append((start, Piece(loop.var, loop.size, store.value)))
    joints = []
    for buffer, parts in pieces.items():
        if [start for start, _ in parts] != [ir.ZERO, parts[0][1].size]:
            return None
        (_, first), (_, second) = parts
        if not _is_sum(first.size, second.size, size, values):
            return None
        joints.append(Joined(buffer, first.size, (first, second)))
    return tuple(joints) if 0 < len(joints) <= MOST_JOINTS else None


def _is_sum(first: ir.Expr, second: ir.Expr, total: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> bool:
    """True where two sizes are known to be a third together."""

    def value(size: ir.Expr) -> ir.Expr:
        return values.get(size, size) if isinstance(size, ir.Var) else size

    numbers = [ir.int_value(size) for size in (first, second, total)]
    if None not in numbers:
        return numbers[0] + numbers[1] == numbers[2]  # type: ignore[operator]
    return value(first) == ir.subtract(total, second) or value(second) == ir.subtract(total, first)


def _is_read_in_order(row: ir.Loop, buffer: ir.Buffer, reads: Mapping[ir.Buffer, int]) -> bool:
    """True where nothing reads a temporary but the loop over the row, at its own element."""
    parts = [part for stmt in row.body for expr in visit.expressions(stmt) for part in ir.subexpressions(expr)]
    own = [part for part in parts if isinstance(part, ir.Load | ir.Pointer) and part.buffer == buffer]
    return len(own) == reads[buffer] and all(isinstance(part, ir.Load) and part.index == row.var for part in own)


def _in_pairs(loop: ir.Loop, step: Step, fresh: Fresh) -> Iterator[ir.Stmt]:
    """The loop over pairs of steps, and the last step of an odd number."""
    other = step.joined[0].buffer

    def name(hint: str) -> ir.Var:
        return ir.Var(fresh(hint), ir.INDEX)

    pair, last = name("pair"), name("last")
    count = loop.size
    if not isinstance(count, ir.Var | ir.Const):
        count = name("steps")
        yield ir.Let(count, loop.size)
    twice = ir.multiply(pair, ir.integer(2))
    both = (
        *_one_step(step, {loop.var: twice}, step.state, other, fresh),
        *_one_step(step, {loop.var: ir.add(twice, ir.ONE)}, other, step.state, fresh),
    )
    yield ir.Loop(pair, ir.quotient(count, ir.integer(2)), both, safepoint=ir.safepoint_in_blocks(loop.safepoint, 2))
    i = name("i")
    copy = ir.Loop(i, step.row.size, (ir.Store(step.state, i, ir.Load(other, i)),))
    rest = _one_step(step, {loop.var: ir.subtract(count, ir.ONE)}, step.state, other, fresh)
    yield ir.Loop(last, ir.remainder(count, ir.integer(2)), (*rest, copy))


def _one_step(
    step: Step, positions: Mapping[ir.Var, ir.Expr], source: ir.Buffer, target: ir.Buffer, fresh: Fresh
) -> Iterator[ir.Stmt]:
    """A step that reads the state from `source` and writes it to `target`; `positions`: values of loop variables."""
    values = dict(positions)
    for stmt in step.names:
        if isinstance(stmt, ir.Let):
            name = ir.Var(fresh(stmt.var.name), ir.INDEX)
            yield ir.Let(name, visit.replace_vars(stmt.value, values))
            values[stmt.var] = name
        elif source == step.state:
            yield stmt
    joints = [visit.replace_vars(temporary.joint, values) for temporary in step.joined]
    size = visit.replace_vars(step.row.size, values)
    for begin, length, numbers in _parts(joints, size):
        if ir.int_value(length) == 0:
            continue
        if not isinstance(begin, ir.Var) and ir.int_value(begin) is None:
            name = ir.Var(fresh("begin"), ir.INDEX)
            yield ir.Let(name, begin)
            begin = name
        i = ir.Var(fresh("i"), ir.INDEX)
        position = ir.add(begin, i)
        elements: dict[ir.Buffer, ir.Expr] = {}
        for temporary, number, joint in zip(step.joined, numbers, joints, strict=True):
            first = ir.ZERO if number == 0 else joint
            index = i if begin == first else ir.add(ir.subtract(begin, first), i)
            piece = temporary.pieces[number]
            elements[temporary.buffer] = visit.replace_vars(piece.value, {**values, piece.var: index})
        body = [_moved(stmt, step, elements, source, target) for stmt in step.row.body]
        yield ir.Loop(i, length, tuple(iteration(body, {**values, step.row.var: position}, fresh, with_notes=True)))


def _parts(joints: Sequence[ir.Expr], size: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Expr, tuple[int, ...]]]:
    """The parts of a row between joints: its begin, its length, and of each temporary the number of the piece there."""
    if len(joints) == 1:
        yield ir.ZERO, joints[0], (0,)
        yield joints[0], ir.subtract(size, joints[0]), (1,)
        return
    first, second = joints
    low, high = ir.apply(operators.MINIMUM, first, second), ir.apply(operators.MAXIMUM, first, second)
    yield ir.ZERO, low, (0, 0)
    yield first, ir.apply(operators.MAXIMUM, ir.subtract(second, first), ir.ZERO), (1, 0)
    yield second, ir.apply(operators.MAXIMUM, ir.subtract(first, second), ir.ZERO), (0, 1)
    yield high, ir.subtract(size, high), (1, 1)


def _moved(
    stmt: ir.Stmt, step: Step, elements: Mapping[ir.Buffer, ir.Expr], source: ir.Buffer, target: ir.Buffer
) -> ir.Stmt:
    """A statement of the loop over the row that reads the state from `source` and writes it to `target`. elements: the
    values that stand for elements of temporaries."""

    def from_source(part: ir.Expr) -> ir.Expr | None:
        return ir.Load(source, part.index) if isinstance(part, ir.Load) and part.buffer == step.state else None

    def without_temporaries(part: ir.Expr) -> ir.Expr | None:
        if isinstance(part, ir.Load) and part.buffer in elements:
            return ir.rebuild(elements[part.buffer], from_source)
        return from_source(part)

    stmt = visit.map_own_expressions(stmt, lambda expr: ir.rebuild(expr, without_temporaries))
    return replace(stmt, buffer=target) if isinstance(stmt, ir.Store) and stmt.buffer == step.state else stmt
