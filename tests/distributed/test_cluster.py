"""`graphc.distributed` on a cluster of real processes: lost, slow and different workers, and what they are sent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import distributed
from tests.support.deadlines import deadline

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LONGEST = 60
"""Seconds that anything may take: it takes one or two."""


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Hold each test to its time, on a busy machine too."""
    with deadline(5 * LONGEST):
        yield


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of two processes, each with a thread and a cache of its own."""
    folder = tmp_path_factory.mktemp("cluster")
    limits = {
        "distributed.comm.timeouts.connect": LONGEST,
        "distributed.nanny.pre-spawn-environ.GRAPHC_VERIFY": "0",
        "distributed.worker.memory.terminate": False,
    }
    with ExitStack() as stack, dask.config.set(limits):
        with deadline(5 * LONGEST):
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=2,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    local_directory=str(folder),
                )
            )
            found = stack.enter_context(Client(cluster, timeout=LONGEST, set_as_default=False))
            found.run(own_cache, str(folder))
        yield found
        with deadline(5 * LONGEST):
            stack.close()


def own_cache(folder: str) -> None:
    graphc.options.cache_dir = Path(folder) / f"cache-{os.getpid()}"


def on(client: Client, run: Callable[[], Any]) -> Any:
    """What a function gives with the client as that of this process, within the time allowed."""
    with client.as_current(), dask.config.set({"distributed.scheduler.allowed-failures": 5}):
        return run()


def loss(w: Any, x: Any, y: Any) -> Any:
    return jnp.sum(jnp.logaddexp(0.0, (1 - 2 * y) * (x @ w)))


def block(number: int, first: Callable[[], None] | None = None) -> Any:
    """The rows of a shard, and their labels as the last column; `first` is called before."""
    if first is not None:
        first()
    rng = np.random.default_rng(number)
    x = rng.normal(size=(50, 4))
    x[:, 3] = x[:, 0] > 0.3
    return x


def shards(first: Callable[[], None] | None = None) -> tuple[da.Array, da.Array]:
    """Twelve shards; `first` is called before each is made."""
    made = [da.from_delayed(dask.delayed(block)(k, first), (50, 4), float) for k in range(12)]
    rows = da.concatenate(made)
    return rows[:, :3], rows[:, 3]


def gradient(first: Callable[[], None] | None = None) -> Any:
    value, slope = distributed.value_and_grad(loss)(np.array([0.1, 0.2, 0.3]), *shards(first))
    return value, slope.tolist()


def on_threads(run: Callable[[], Any]) -> Any:
    with dask.config.set(scheduler="threads", num_workers=2):
        return run()


def density(x: Any) -> Any:
    return -jnp.sum((x - 1) ** 2) / 2


def everything() -> list[Any]:
    """Values of each function of the room, as plain numbers."""
    x, y = shards()
    w, r = graphc.shared(1.0, name="w"), T.dscalar("r")
    grown = graphc.function([r], w + r, updates=[(w, w * r)])
    samples = distributed.sample(density, np.zeros(2), draws=40, tune=20, chains=2, every=20, temperatures=(1.0, 2.0))
    return [
        distributed.map_blocks(lambda b: jnp.tanh(b) + 1, x.rechunk({1: -1})).sum().compute(),
        distributed.reduction(x, jnp.sum, axis=0).compute().tolist(),
        distributed.fit(loss, np.zeros(3), x, y, method="newton", steps=3).params.tolist(),
        distributed.fit(loss, np.zeros(3), x, y, method=graphc.optimizers.sgd(0.1), batch=4).history,
        (samples.draws.tolist(), samples.swapped.tolist()),
        distributed.minimize(density, [np.zeros(2), np.ones(2)]).values.tolist(),
        [each["w"] for each in distributed.sweep(grown, [2.0, 3.0], calls=2).states],
    ]


def kernels_made() -> tuple[int, int]:
    from graphc.distributed.kernels import _load_program  # noqa: PLC0415 - on a worker

    return graphc.compilations(), _load_program.cache_info().misses


def test_numbers_are_those_of_threads_to_the_bit_and_workers_compile_nothing(client: Client) -> None:
    assert on(client, everything) == on_threads(everything)
    before = client.run(kernels_made)
    assert on(client, gradient) == on_threads(gradient)
    made = client.run(kernels_made)
    assert {compiled for compiled, _ in made.values()} == {0}
    assert all(made[worker][1] - before[worker][1] <= 1 for worker in made)


class DiesOnce:
    """Kills its process the first time, with shards of the sum on it."""

    def __init__(self, place: Path, after: int) -> None:
        self.place, self.after = place, after

    def __call__(self) -> None:
        with open(self.place, "ab", buffering=0) as file:
            file.write(b".")
            if file.tell() == self.after:
                os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_costs_time_and_no_bit(client: Client, tmp_path: Path) -> None:
    want = on_threads(gradient)
    place = tmp_path / "calls"
    assert on(client, lambda: gradient(DiesOnce(place, 7))) == want
    assert place.stat().st_size > 12  # shards that were lost, or not done, were made again
    client.wait_for_workers(2, timeout=LONGEST)


class Slow:
    """Waits on one of the workers."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self) -> None:
        if get_worker().address == self.address:
            time.sleep(0.1)


def test_a_slow_worker_changes_no_bit(client: Client) -> None:
    address = min(client.scheduler_info()["workers"])
    assert on(client, lambda: gradient(Slow(address))) == on_threads(gradient)


def threads_told() -> tuple[int | str, str]:
    from graphc.distributed.kernels import threads_of_a_call  # noqa: PLC0415 - on a worker

    return threads_of_a_call(), graphc.__version__


def test_a_worker_with_another_version_is_told_and_one_of_several_threads_gives_each_call_one(
    client: Client, tmp_path: Path
) -> None:
    package = Path(graphc.__file__ or "").parent
    shutil.copytree(package, tmp_path / "graphc", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "graphc" / "startup" / "versions.py"
    source.write_text(source.read_text("utf-8").replace(f'"{graphc.__version__}"', '"0.0.1"'), "utf-8")
    address = client.scheduler.address
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "2", "--no-dashboard"]
    command += ["--no-nanny", "--name", "other", "--death-timeout", str(LONGEST), "--local-directory", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parent}"}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as worker:
        try:
            client.wait_for_workers(3, timeout=LONGEST)
            workers = client.scheduler_info()["workers"]
            (other,) = (each for each, about in workers.items() if about["name"] == "other")
            told = {each: client.submit(threads_told, workers=[each], pure=False) for each in workers}
            assert told.pop(other).result(timeout=LONGEST) == (1, "0.0.1")
            found = {each.result(timeout=LONGEST) for each in told.values()}
            assert found == {(graphc.options.threads, graphc.__version__)}
            future = client.submit(distributed.kernel_of(density), np.ones(2), workers=[other])
            with pytest.raises(graphc.GraphcError, match=rf"version {graphc.__version__} was sent, version 0\.0\.1 is"):
                future.result(timeout=LONGEST)
        finally:
            worker.kill()
            worker.wait(LONGEST)
