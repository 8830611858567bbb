"""Processor time of each test, with that of its compile processes: the cost by which tests are marked slow.

In: `-p tests.support.costs --costs FILE` of pytest, with any number of workers. Out: a line for each test, "seconds
id", the dearest first, then the sum. Unlike time by the clock it hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

TICK = 1 / os.sysconf("SC_CLK_TCK")
COSTS = pytest.StashKey[dict[str, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write the processor time of each test")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COSTS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = processor_time()
    yield
    item.config.stash[COSTS][item.nodeid] = processor_time() - before


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["costs"] = session.config.stash[COSTS]
    elif (path := session.config.getoption("--costs")) is not None:
        write(Path(path), session.config.stash[COSTS])


def pytest_testnodedown(node: object) -> None:
    """A worker of xdist has ended."""
    own = node.config.stash[COSTS]  # type: ignore[attr-defined]
    own.update(getattr(node, "workeroutput", {}).get("costs", {}))


def write(path: Path, costs: dict[str, float]) -> None:
    lines = [f"{seconds:9.2f} {test}" for test, seconds in sorted(costs.items(), key=lambda cost: -cost[1])]
    path.write_text("\n".join([*lines, f"{sum(costs.values()):9.2f} all", ""]))


def processor_time(process: str = "self") -> float:
    """Seconds of a process and of all that it has started, those that have ended among them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        threads = os.listdir(f"/proc/{process}/task")
        children = [child for each in threads for child in children_of(process, each)]
    except OSError:  # it has just ended
        return 0.0
    return TICK * sum(map(int, fields[11:15])) + sum(map(processor_time, children))


def children_of(process: str, thread: str) -> list[str]:
    return Path(f"/proc/{process}/task/{thread}/children").read_text().split()
