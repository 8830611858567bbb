"""Processor time of each test, with that of its compile processes: the cost by which tests are marked slow.

In: `-p tests.support.costs --costs FILE` of pytest, with any number of workers. Out: a line for each test at the end of
FILE, "seconds id", which `sort -rn` sorts. Unlike time by the clock it hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

TICK = 1 / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, metavar="FILE", help="add the processor time of each test to a file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    path: Path | None = item.config.getoption("--costs")
    before = processor_time()
    yield
    if path is not None:
        with path.open("a") as file:
            file.write(f"{processor_time() - before:9.2f} {item.nodeid}\n")


def processor_time(process: str = "self") -> float:
    """Seconds of a process and of all that it has started, those that have ended among them."""
    fields = read(f"/proc/{process}/stat").rpartition(")")[2].split()
    threads = os.listdir(f"/proc/{process}/task") if fields else []
    children = [child for thread in threads for child in read(f"/proc/{process}/task/{thread}/children").split()]
    return TICK * sum(map(int, fields[11:15])) + sum(map(processor_time, children))


def read(path: str) -> str:
    """What the system says of a process or a thread; nothing of one that has just ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
