"""The protocol of the pool of threads (threads/pool.py) in all orders of its steps.

The functions are the pool's own, as LLVM gets them, on the machine of pool_machine.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external, function, module_text
from graphc.codegen.llvm.typed import I64, NULL, Ptr
from graphc.codegen.threads import pool
from tests.support.pool_machine import Broken, Machine, State

pytestmark = pytest.mark.skipif(not pool.has_threads(), reason="there are no workers here")

tell = external("tell", None, Ptr, I64)
returned = external("returned", None, Ptr, I64, I64)
fork = external("fork", I64)


@function()
def body(code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """A chunk that tells that it is run."""
    tell(code, context, begin)


def launch(code: Code, what: Function[[Ptr, I64, I64], None], context: Ptr, chunks: int, settings: Ptr) -> None:
    """A launch, and a look at what it did."""
    count, size = I64.of(2 * chunks - 1), I64.of(2)
    pool.gc_parallel(code, what.pointer(code), context, count, size, settings)
    returned(code, context, count, size)


def caller(name: str, *chunks: int) -> Function[[Ptr], Ptr]:
    """A thread that launches these numbers of chunks, one after the other."""

    @function(name=name)
    def calling(code: Code, settings: Ptr) -> Ptr:
        for number, each in enumerate(chunks):
            launch(code, body, settings.at(1024 * len(name) + 64 * number), each, settings)
        return NULL

    return calling


@function()
def nest(code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """A chunk that launches others."""
    tell(code, context, begin)
    settings = context.load(Ptr)
    launch(code, body, context.at(4096).at(begin, I64), 2, settings)


@function()
def nesting(code: Code, settings: Ptr) -> Ptr:
    context = settings.at(4096)
    context.store(settings)
    launch(code, nest, context, 2, settings)
    return NULL


@function()
def forking(code: Code, settings: Ptr) -> Ptr:
    """A thread that forks at any time; the child launches too."""
    with code.when(fork(code) != 0):
        launch(code, body, settings.at(8192), 2, settings)
    return NULL


def machine(
    *functions: Function[[Ptr], Ptr],
    words: Mapping[str, int] | None = None,
    threads: int = 2,
    is_whole: bool = True,
    wakes: bool = True,
) -> tuple[Machine, State]:
    made = Machine(module_text(functions), (threads, 2, 1, 0, 0), is_whole=is_whole, wakes=wakes)
    return made, made.begin(*(each.name for each in functions), **{"process": 1, **(words or {})})


one, two, other = caller("one", 3), caller("two", 2, 2), caller("other", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ((one,), {}),
        ((two,), {}),
        ((one,), {"process": 0}),
        ((one,), {"resume": 2}),
        ((nesting,), {}),
        ((other, forking), {}),
    ],
    ids=["a launch", "two launches", "a new process", "a pause", "launches within launches", "a fork"],
)
def test_all_orders_of_steps(functions: tuple[Function[[Ptr], Ptr], ...], words: dict[str, int]) -> None:
    made, state = machine(*functions, words=words)
    assert made.explore(state) > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("functions", "threads", "words"),
    [
        ((one, other), 2, {}),
        ((one, other), 2, {"process": 0}),
        ((two,), 3, {}),
        ((two, nesting), 3, {}),
        ((two, forking), 3, {"process": 0}),
    ],
    ids=["two callers", "two callers of a new process", "two workers", "nested and beside", "a fork of three"],
)
def test_many_orders_of_steps(functions: tuple[Function[[Ptr], Ptr], ...], threads: int, words: dict[str, int]) -> None:
    made, state = machine(*functions, threads=threads, words=words)
    for seed in range(40):
        made.wander(state, seed)


def test_a_claim_in_two_steps_is_noticed() -> None:
    made, state = machine(one, is_whole=False)
    with pytest.raises(Broken, match="were run so often|a caller waits for good"):
        made.explore(state)


def test_a_system_that_wakes_nobody_is_noticed() -> None:
    made, state = machine(one, wakes=False)
    with pytest.raises(Broken, match="a caller waits for good|a worker sleeps through a launch"):
        made.explore(state)
