"""What holds for all tests: a cache of their own, verified passes, independent iterations that are such, no clock for
hypothesis, fixed seeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from graphc.options import options
from tests.support.generated_once import generated_once
from tests.support.independence import watched

settings.register_profile("graphc", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("graphc")

SEED = os.environ.setdefault("CORNERS_SEED", "2026-11-27")
"""Fixed, so that a failure tells of a change in the code and not of the day; `make fuzz` draws new programs."""


def pytest_report_header() -> str:
    return f"random programs: CORNERS_SEED={SEED}"


os.environ["GRAPHC_VERIFY"] = "1"  # for processes that tests start
options.verify = True
os.environ["GRAPHC_PROGRESS"] = "0"  # what is slow depends on the machine
options.progress = False


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache folder, for this process and those that tests start."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    before = os.environ.get("GRAPHC_CACHE_DIR")
    os.environ["GRAPHC_CACHE_DIR"] = str(folder)
    with options.change(cache_dir=folder):
        yield folder
    if before is None:
        del os.environ["GRAPHC_CACHE_DIR"]
    else:
        os.environ["GRAPHC_CACHE_DIR"] = before


@pytest.fixture(scope="session", autouse=True)
def loops_say_the_truth() -> Iterator[None]:
    """Functions of mode `python` check that iterations are independent where their source says so. They run the program
    that was compiled of the same graph, if one was."""
    with watched(), generated_once():
        yield


@pytest.fixture(autouse=True)
def numpy_is_left_as_found() -> Iterator[None]:
    """A test that changed how NumPy prints or warns would change what a later test sees, in some orders alone."""
    before = np.get_printoptions(), np.geterr()
    yield
    assert (np.get_printoptions(), np.geterr()) == before
