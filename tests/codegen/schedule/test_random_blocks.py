"""Random programs of products and convolutions that are read a block of rows at a time, against the interpreter."""

import pytest

import graphc
from graphc.codegen.schedule import fusion
from tests.support.random_blocks import Program, differences


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, and no entry of the cache that knows others."""
    monkeypatch.setattr(fusion, "BLOCK_BYTES", 256)
    monkeypatch.setattr(fusion, "OVERHEAD_RATIO", 0)
    monkeypatch.setattr(fusion, "SHORT_ROW", 1)
    monkeypatch.setattr(graphc.options, "cache", False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(14))
def test_the_source_of_random_programs(seed: int) -> None:
    assert not differences(Program(seed), "python")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 30))
def test_random_programs_that_are_compiled(seed: int) -> None:
    assert not differences(Program(seed), "compiled")
