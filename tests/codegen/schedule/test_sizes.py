"""What must hold of sizes, and which of them are equal for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import graphc.tensor as T
from graphc.codegen.schedule.nodes import size_up
from graphc.ir.node import Guard, Node


def node_with(*guards: Guard) -> Any:
    """A node whose op asks for this."""
    return SimpleNamespace(op=SimpleNamespace(guards=lambda node: guards))


def guard(left: Node | int, relation: Any, right: Node | int) -> Guard:
    return Guard(left, relation, right, "")


M, N = (T.lscalar(name) for name in "mn")


def test_a_guard_is_checked_once_for_each_relation() -> None:
    wanted = [guard(M, "<=", N), guard(M, "<", N), guard(N, "<=", M)]
    assert list(size_up([node_with(*wanted), node_with(*wanted)]).checks) == wanted


def test_what_is_known_of_numbers_is_not_checked() -> None:
    assert size_up([node_with(guard(1, "<=", 2), guard(2, "==", 2), guard(N, "<=", N))]).checks == ()
    false = [guard(2, "<", 2), guard(3, "<=", 2), guard(N, "<", N)]
    assert list(size_up([node_with(*false)]).checks) == false


def test_a_size_that_must_equal_another_stands_for_it() -> None:
    sizing = size_up([node_with(guard(N, "==", M), guard(N, "<", 7), guard(M, "<", 7))])
    assert len(sizing.checks) == 2 and sizing.of(M) is sizing.of(N)
    assert size_up([node_with(guard(N, "==", 3))]).of(N) == 3


def test_rewritten_nodes_tell_of_equal_sizes_only() -> None:
    assert size_up([], [node_with(guard(M, "<", N))]).checks == ()
    assert size_up([], [node_with(guard(M, "==", N))]).of(M) is size_up([], [node_with(guard(M, "==", N))]).of(N)
