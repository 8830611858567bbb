"""The loops and branches of a function while they are written, and where each name is known.

In: values, and loops and branches to enter and leave. Out: statements in the bodies of `Scope`s. A value gets its name
in its scope, the outermost loop in which all is known that it is made of, though not outside of the branch that is
written; what was named inside a loop or branch is forgotten with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.ir.node import Index
from graphc.loopir.ir import INDEX, ZERO, Apply, Buffer, Const, Expr, Let, Loop, Stmt, Var, subexpressions
from graphc.loopir.names import Names
from graphc.startup.record import fresh, record


@record(frozen=False, eq=False)
class Scope:
    """The body of a loop (or of a branch, or of the function) while it is written."""

    parent: Scope | None
    var: Var | None = None
    size: Expr = ZERO
    asks: Expr | None = None
    apart: tuple[Buffer, ...] = ()
    body: list[Stmt] = fresh(factory=list)
    depth: int = 0
    place: Var | None = None
    """In a loop over one tile of an axis, the index into the axis."""
    known: dict[int, tuple[MutableMapping[Any, Any], list[Any]]] = fresh(factory=dict)
    """What is known here and not outside: tables by their identity, and keys in them."""


class Scopes:
    """The scopes of one function; `top` is its body, and nothing is named further out than in `base`."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.top = self.base = Scope(None)
        self.scopes: dict[Var, Scope] = {}
        self.positions: dict[Expr, Var] = {}
        self.of_blocks: Scope | None = None

    def scope_of(self, expr: Expr) -> Scope:
        """The outermost scope in which everything that `expr` names is known."""
        deepest = self.base
        for part in subexpressions(expr):
            if isinstance(part, Var) and (scope := self.scopes.get(part, self.top)).depth > deepest.depth:
                deepest = scope
        return deepest

    def scope_of_all(self, exprs: Iterable[Expr]) -> Scope:
        """The outermost scope in which all of several expressions are known."""
        return max(map(self.scope_of, exprs), key=lambda scope: scope.depth, default=self.base)

    def depth(self, scope: Scope) -> int:
        """How many loops there are around a scope, inside `base`, which is the innermost branch. One over blocks of the
        rows that the next one goes over does not count."""
        around = self.of_blocks is not None and self.base.depth < self.of_blocks.depth < scope.depth
        return scope.depth - self.base.depth - around

    def enter(self, parent: Scope, var: Var, size: Expr) -> Scope:
        scope = Scope(parent, var, size, depth=parent.depth + 1)
        self.scopes[var] = scope
        return scope

    def enter_all(self, scope: Scope, variables: Sequence[Var], extents: Sequence[Expr]) -> Scope:
        for var, size in zip(variables, extents, strict=True):
            scope = self.enter(scope, var, size)
        return scope

    def leave(self, scope: Scope, outer: Scope) -> None:
        """Close the loops from `scope` out to `outer`."""
        while scope is not outer:
            assert scope.parent is not None and scope.var is not None
            loop = Loop(scope.var, scope.size, tuple(scope.body), asks=scope.asks, apart=scope.apart)
            scope.parent.body.append(loop)
            self.close(scope)
            scope = scope.parent

    @contextmanager
    def branch(self, scope: Scope) -> Iterator[Scope]:
        """The scope of a branch in `scope`, in which all that is asked for meanwhile is computed. Its body belongs in
        an `If` at the end of that of `scope`, after which nothing is known of what was named in it:

            with scopes.branch(scope) as then:
                then.body.append(Set(result, ...))
            scope.body.append(If(condition, tuple(then.body)))
        """
        inner = Scope(scope, depth=scope.depth + 1)
        base, self.base = self.base, inner
        yield inner
        self.base = base
        self.close(inner)

    def close(self, scope: Scope) -> None:
        """Forget what is known in a scope only."""
        for table, _ in tuple(scope.known.values()):
            self.forget(table, scope)

    def remember(self, table: MutableMapping[Any, Any], key: Any, value: Expr, *others: Expr) -> Expr:
        """Put a value into a table, for as long as it and `others` are known."""
        table[key] = value
        self.scope_of_all((value, *others)).known.setdefault(id(table), (table, []))[1].append(key)
        return value

    def forget(self, table: MutableMapping[Any, Any], scope: Scope) -> None:
        """Drop what a table holds of what is known in `scope`, and not outside."""
        _, keys = scope.known.pop(id(table), (table, ()))
        for key in keys:
            table.pop(key, None)

    def bind(self, expr: Expr, hint: str, iteration: Index = ()) -> Expr:
        """A name for a value, in its scope, no further out than that of `iteration`. Names and literals need none."""
        if isinstance(expr, Var | Const):
            return expr
        scope = self.scope_of_all((expr, *iteration))
        var = Var(self.names.fresh(hint), expr.dtype)
        self.scopes[var] = scope
        scope.body.append(Let(var, expr))
        return var

    def name_once(self, expr: Expr, hint: str) -> Expr:
        """A name for a position or a number of elements, the same one wherever that is needed."""
        if isinstance(expr, Var | Const):
            return expr
        return self.positions.get(expr) or self.remember(self.positions, expr, self.bind(expr, hint))

    def hoist(self, expr: Expr) -> Expr:
        """A position with the parts that do not change in an inner loop named outside it."""
        if not isinstance(expr, Apply) or expr.dtype != INDEX:
            return expr
        scope = self.scope_of(expr)
        args = []
        for arg in expr.args:
            placed = self.hoist(arg)
            if isinstance(placed, Apply) and self.scope_of(placed) is not scope:
                placed = self.name_once(placed, "row")
            args.append(placed)
        return Apply(expr.op, tuple(args), INDEX)
