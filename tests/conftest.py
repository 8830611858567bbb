"""What holds for all tests: a cache of their own, verified passes, independent iterations that are such, no clock for
hypothesis, fixed seeds. `--thorough` runs more of them (`make test-all`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

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


VERIFIED = ("tests/codegen", "tests/ir", "tests/loopir", "tests/rewrite")
"""Tests of passes: there the result of each pass is verified; elsewhere in one test of five."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the cases that are marked thorough too, and verify the result of each pass in every test"
    parser.addoption("--thorough", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


def pytest_report_header() -> str:
    return f"random programs: CORNERS_SEED={SEED}"


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
def passes_are_verified(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share is chosen by the test's name, so that a test always runs in the same way."""
    name = request.node.nodeid
    wanted = request.config.getoption("--thorough") or name.startswith(VERIFIED) or crc32(name.encode()) % 5 == 0
    monkeypatch.setattr(options, "verify", wanted)
    monkeypatch.setenv("GRAPHC_VERIFY", str(int(wanted)))  # for processes that the test starts


@pytest.fixture(autouse=True)
def numpy_is_left_as_found() -> Iterator[None]:
    """A test that changed how NumPy prints or warns would change what a later test sees, in some orders alone."""
    before = np.get_printoptions(), np.geterr()
    yield
    assert (np.get_printoptions(), np.geterr()) == before
