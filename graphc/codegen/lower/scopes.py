"""The loops and branches of a function while they are written, and the scope of every name.

In: values, and loops and branches to enter and leave. Out: statements in the bodies of `Scope`s. A value gets its name
in its scope, the outermost loop in which all is known that it is made of, though not outside of the branch that is
written; what was named inside a loop or branch is forgotten with it. As an example:

    i, j = loop_vars(2)
    outer = scopes.enter(scopes.top, i, n)
    inner = scopes.enter(outer, j, m)
    row = scopes.bind(multiply(i, m), "row")                # a statement of outer: j is not in it
    inner.body.append(Store(out, add(row, j), ONE))
    scopes.leave(inner, scopes.top)

leaves in `scopes.top.body` the loop

    for i in range(n):
        let row = i * m
        for j in range(m):
            out[row + j] = 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.ir.node import Index
from graphc.loopir import ir
from graphc.loopir.syntax import Names
from graphc.startup.record import fresh, record


@record(frozen=False, eq=False)
class Scope:
    """The body of a loop (or of a branch, or of the function) while it is written."""

    parent: Scope | None
    var: ir.Var | None = None
    size: ir.Expr = ir.ZERO
    safepoint: ir.Expr | None = None
    disjoint: tuple[ir.Buffer, ...] = ()
    """Buffers of which each iteration of the loop writes a part of its own."""
    body: list[ir.Stmt] = fresh(factory=list)
    depth: int = 0
    """The number of scopes around it."""
    axis_index: ir.Var | None = None
    """In a loop over one tile or block of an axis, the index into the axis."""
    is_over_blocks: bool = False
    """It is a loop over blocks of the rows that the next loop goes over."""
    known: dict[int, tuple[MutableMapping[Any, Any], list[Any]]] = fresh(factory=dict)
    """The entries that are known here and not outside: tables by their identity, and keys in them."""


class Scopes:
    """The scopes of one function; `top` is its body, and nothing is named further out than in `base`."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.top = self.base = Scope(None)
        self._scopes: dict[ir.Var, Scope] = {}
        self._positions: dict[ir.Expr, ir.Var] = {}

    def var(self, hint: str, dtype: str = ir.INDEX) -> ir.Var:
        """A variable with a name that nothing has yet."""
        return ir.Var(self.names.fresh(hint), dtype)

    def know(self, scope: Scope, *variables: ir.Var) -> None:
        """Note that variables have their value in a scope: in a loop that changes them, or after it."""
        self._scopes.update(dict.fromkeys(variables, scope))

    def scope_of(self, expr: ir.Expr) -> Scope:
        """The outermost scope in which every name in `expr` is known."""
        deepest = self.base
        for part in ir.subexpressions(expr):
            if isinstance(part, ir.Var) and (scope := self._scopes.get(part, self.top)).depth > deepest.depth:
                deepest = scope
        return deepest

    def scope_of_all(self, exprs: Iterable[ir.Expr]) -> Scope:
        """The outermost scope in which all of several expressions are known."""
        return max(map(self.scope_of, exprs), key=lambda scope: scope.depth, default=self.base)

    def depth(self, scope: Scope) -> int:
        """The number of loops around a scope, inside `base`. A loop over blocks does not count where the loop over the
        rows of a block does."""
        outer, blocks = scope.parent, 0
        while outer is not None and outer.depth > self.base.depth:
            blocks += outer.is_over_blocks
            outer = outer.parent
        return scope.depth - self.base.depth - blocks

    def is_loop_var(self, expr: ir.Expr) -> bool:
        """Tell whether an expression is the variable of an open loop."""
        scope = self._scopes.get(expr) if isinstance(expr, ir.Var) else None
        return scope is not None and (scope.var is expr or scope.axis_index is expr)

    def row_in_block(self, row: ir.Expr) -> ir.Expr:
        """The number of a row within its block, where loops go by blocks of rows; elsewhere the number of the row."""
        scope = self._scopes.get(row) if isinstance(row, ir.Var) else None
        if scope is None or scope.var is None or scope.parent is None or not scope.parent.is_over_blocks:
            return row
        return scope.var

    def enter(
        self,
        parent: Scope,
        var: ir.Var,
        size: ir.Expr,
        *,
        axis_index: ir.Var | None = None,
        safepoint: ir.Expr | None = None,
        disjoint: tuple[ir.Buffer, ...] = (),
        is_over_blocks: bool = False,
    ) -> Scope:
        """A loop in `parent`, to be left with `leave`. The keywords are fields of `Scope`; the caller defines
        `axis_index`."""
        scope = Scope(
            parent,
            var,
            size,
            safepoint=safepoint,
            disjoint=disjoint,
            depth=parent.depth + 1,
            axis_index=axis_index,
            is_over_blocks=is_over_blocks,
        )
        self.know(scope, var, *([] if axis_index is None else [axis_index]))
        return scope

    def enter_all(self, scope: Scope, variables: Sequence[ir.Var], extents: Sequence[ir.Expr]) -> Scope:
        """Loops in each other, of which the innermost is given."""
        for var, size in zip(variables, extents, strict=True):
            scope = self.enter(scope, var, size)
        return scope

    def leave(self, scope: Scope, outer: Scope) -> None:
        """Close the loops from `scope` out to `outer`."""
        while scope is not outer:
            assert scope.parent is not None and scope.var is not None
            loop = ir.Loop(scope.var, scope.size, tuple(scope.body), safepoint=scope.safepoint, disjoint=scope.disjoint)
            scope.parent.body.append(loop)
            self._close(scope)
            scope = scope.parent

    @contextmanager
    def within(self, scope: Scope) -> Iterator[None]:
        """While this goes on nothing is named further out than in a scope."""
        base, self.base = self.base, scope
        yield
        self.base = base

    @contextmanager
    def branch(self, scope: Scope) -> Iterator[Scope]:
        """The scope of a branch in `scope`, in which all that is asked for meanwhile is computed. Its body belongs in
        an `If` at the end of that of `scope`, after which nothing is known of what was named in it:

            with scopes.branch(scope) as then:
                then.body.append(Set(result, ...))
            scope.body.append(If(condition, tuple(then.body)))
        """
        inner = Scope(scope, depth=scope.depth + 1)
        with self.within(inner):
            yield inner
        self._close(inner)

    def _close(self, scope: Scope) -> None:
        """Forget all that is known in a scope only."""
        for table, _ in tuple(scope.known.values()):
            self.forget(table, scope)

    def remember(self, table: MutableMapping[Any, Any], key: Any, value: ir.Expr, *others: ir.Expr) -> ir.Expr:
        """Put a value into a table, for as long as it and `others` are known."""
        table[key] = value
        self.scope_of_all((value, *others)).known.setdefault(id(table), (table, []))[1].append(key)
        return value

    def forget(self, table: MutableMapping[Any, Any], scope: Scope) -> None:
        """Drop the entries of a table that are known in `scope`, and not outside."""
        _, keys = scope.known.pop(id(table), (table, ()))
        for key in keys:
            table.pop(key, None)

    def bind(self, expr: ir.Expr, hint: str, iteration: Index = ()) -> ir.Expr:
        """A name for a value, in its scope, no further out than that of `iteration`. Names and literals need none."""
        if isinstance(expr, ir.Var | ir.Const):
            return expr
        scope = self.scope_of_all((expr, *iteration))
        return self.bind_in(scope, expr, hint)

    def bind_in(self, scope: Scope, expr: ir.Expr, hint: str) -> ir.Var:
        """A name for a value, in this scope."""
        var = self.var(hint, expr.dtype)
        self.know(scope, var)
        scope.body.append(ir.Let(var, expr))
        return var

    def name_once(self, expr: ir.Expr, hint: str) -> ir.Expr:
        """The name of a position or a size; the same value has the same name wherever it is needed."""
        if isinstance(expr, ir.Var | ir.Const):
            return expr
        return self._positions.get(expr) or self.remember(self._positions, expr, self.bind(expr, hint))

    def hoist(self, expr: ir.Expr) -> ir.Expr:
        """A position whose loop-invariant parts are named outside the inner loop."""
        if not isinstance(expr, ir.Apply) or expr.dtype != ir.INDEX:
            return expr
        scope = self.scope_of(expr)
        args = []
        for arg in expr.args:
            placed = self.hoist(arg)
            if isinstance(placed, ir.Apply) and self.scope_of(placed) is not scope:
                placed = self.name_once(placed, "row")
            args.append(placed)
        return ir.Apply(expr.op, tuple(args), ir.INDEX)
