"""Random loops written over vectors, against their scalar forms, on each processor that this machine can be."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.cpu import NAMED
from graphc.codegen.llvm.target import processor
from graphc.codegen.vectorize import vectorizer
from graphc.errors import GraphcError
from graphc.options import NATIVE, options
from tests.support.thorough import some
from tests.support.vector_loops import check_loops

SEEDS = 3
TARGETS = (*NAMED, NATIVE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(SEEDS)))
@pytest.mark.parametrize("target", TARGETS)
def test_random_loops(target: str, seed: int) -> None:
    try:
        processor(target)
    except GraphcError as error:
        pytest.skip(str(error))
    with options.change(target=target):
        check_loops(1000 * [*TARGETS].index(target) + seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_loops_under_masks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On any processor: LLVM writes masks out where no register holds them."""
    monkeypatch.setattr(vectorizer, "has_avx512", lambda: True)
    check_loops(9000 + seed)
