"""Programs for arrays that ask, branch and write: traced functions give what NumPy does, for several sizes, or an error
with the line. What asks for sizes and dtypes alone is no error."""

from __future__ import annotations

import os
from collections import Counter

import pytest

import graphc
from tests.support.plain_trials import ALLOWED, trial

PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "1000"))
"""How many programs are tried; ten thousand were, when a kind of question or write was added."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_random_programs_give_what_numpy_gives_or_say_why_not() -> None:
    told: Counter[str] = Counter()
    with graphc.options.change(mode="interpreted"):
        for seed in range(PROGRAMS):
            text, way, found = trial(seed)
            assert ALLOWED.issuperset(found), f"{seed} by {way}: {found}\n{text}"
            told.update(found)
    assert told["same"] > PROGRAMS and told["refused"] > PROGRAMS // 5, told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_asks_for_sizes_and_dtypes_gives_what_numpy_gives() -> None:
    told: Counter[str] = Counter()
    with graphc.options.change(mode="interpreted"):
        for seed in range(PROGRAMS // 2):
            text, way, found = trial(seed, of_sizes=True)
            assert {"same", "refused by NumPy"}.issuperset(found), f"{seed} by {way}: {found}\n{text}"
            told.update(found)
    assert told["same"] > PROGRAMS, told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_share_of_them_is_compiled() -> None:
    for seed in range(30):
        text, way, found = trial(seed, of_sizes=seed % 2 == 0)
        assert ALLOWED.issuperset(found), f"{seed} by {way}: {found}\n{text}"
