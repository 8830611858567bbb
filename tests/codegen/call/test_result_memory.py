"""The memory of a large result is used again once nobody holds the result, and never before."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import options
from graphc.codegen.call import bind
from graphc.codegen.call.bind import LARGE, block
from graphc.startup.process import PROCESS

COUNT = LARGE // 8 + 1000
"""Elements of float64 that make a large result."""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    bind.free()
    yield
    bind.free()


@pytest.fixture(scope="module")
def doubled() -> graphc.Function:
    x = T.dvector("x")
    return graphc.function([x], x * 2.0)


def where(array: Any) -> int:
    address: int = array.ctypes.data
    return address


@pytest.mark.slow
def test_a_dropped_result_gives_its_memory_to_the_next(doubled: graphc.Function) -> None:
    x = np.arange(float(COUNT))
    first = doubled(x)
    place = where(first)
    assert first.base is not None and first.flags.c_contiguous and first.flags.aligned and first.flags.writeable
    np.testing.assert_array_equal(first, 2 * x)
    del first
    second = doubled(x + 1)
    assert where(second) == place
    np.testing.assert_array_equal(second, 2 * x + 2)


@pytest.mark.slow
def test_a_result_that_is_held_keeps_its_memory(doubled: graphc.Function) -> None:
    x = np.ones(COUNT)
    held = [doubled(x * number) for number in range(1, 6)]
    assert len({where(array) for array in held}) == len(held)
    for number, array in enumerate(held, 1):
        assert np.all(array == 2 * number)


@pytest.mark.slow
@pytest.mark.parametrize("hold", [lambda a: a[5:9], memoryview, lambda a: a.view("u8"), lambda a: a.base])
def test_a_view_of_a_dropped_result_keeps_its_memory(doubled: graphc.Function, hold: Any) -> None:
    first = doubled(np.ones(COUNT))
    place, view = where(first), hold(first)
    del first
    gc.collect()
    second = doubled(np.full(COUNT, 3.0))
    assert where(second) != place
    del view
    third = doubled(np.full(COUNT, 4.0))
    assert where(third) == place
    assert np.all(second == 6)


def test_results_up_to_the_limit_are_arrays_of_their_own(doubled: graphc.Function) -> None:
    assert doubled(np.ones(LARGE // 8)).base is None
    assert doubled(np.ones(LARGE // 8 + 1)).base is not None


@pytest.mark.slow
def test_a_result_is_never_laid_over_an_argument_or_another_result() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    f = graphc.function([x, y], [x + y, x - y, x * y])
    a = np.arange(float(COUNT))
    b = a
    for _ in range(4):
        total, difference, product = f(a, b)
        np.testing.assert_array_equal(total, a + b)
        np.testing.assert_array_equal(difference, a - b)
        np.testing.assert_array_equal(product, a * b)
        a, b = total, difference
        del total, difference, product


def test_new_values_of_shared_variables_keep_their_memory(doubled: graphc.Function) -> None:
    s, x = graphc.shared(np.zeros(1), "s"), T.dvector("x")
    renew = graphc.function([x], updates=[(s, x + 1.0)])
    renew(np.ones(COUNT))
    for _ in range(3):
        doubled(np.full(COUNT, 7.0))
    assert np.all(s.get_value() == 2)


def test_blocks_fit_by_size() -> None:
    place = where(block(1000))
    assert where(block(800)) == place
    assert where(block(799)) != place


def test_no_more_than_the_option_allows_is_kept() -> None:
    with options.change(results_megabytes=3):
        sizes = (1_000_000, 1_500_000, 2_500_000)
        for size in sizes:
            block(size)
            kept = [each.nbytes for each in PROCESS.blocks]
            assert sum(kept) <= 3_000_000 and size in kept
        block(3_000_001)
        assert not PROCESS.blocks
    with options.change(results_megabytes=0):
        block(10)
        assert not PROCESS.blocks
    with pytest.raises(graphc.GraphcError, match="results_megabytes=-1: must be a whole number, 0 or more"):
        options.results_megabytes = -1


def test_free_gives_idle_memory_back(doubled: graphc.Function) -> None:
    doubled(np.ones(COUNT))
    assert PROCESS.blocks
    doubled.free()
    assert not PROCESS.blocks


@pytest.mark.slow
def test_threads_never_share_a_block(doubled: graphc.Function) -> None:
    right: list[bool] = []

    def work(number: int) -> None:
        x = np.full(COUNT, float(number))
        right.extend(bool(np.all(doubled(x) == 2 * number)) for _ in range(8))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 32 and all(right)


def test_idle_blocks_are_told_from_held_ones_by_many_threads() -> None:
    """Small blocks, so that threads meet often: one that two of them held at once would have two names in it."""
    clashes: list[int] = []

    def work(number: int) -> None:
        for _ in range(3000):
            mine = block(64)
            mine[:] = number
            if not np.all(mine == number):
                clashes.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
