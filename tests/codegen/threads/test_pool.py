"""The pool of threads: every chunk once, whoever launches, forks, leaves or interrupts; and how many threads there
are."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from graphc import GraphcError
from graphc.codegen.cache import shipped
from graphc.codegen.threads import settings as pool_settings
from graphc.codegen.threads.pool import has_threads
from graphc.codegen.threads.settings import LEAST_COLUMNS, MOST_CHUNKS, MOST_COLUMNS, PARALLEL, chunk_size, columns_size
from graphc.options import MOST_THREADS, options

pytestmark = pytest.mark.skipif(not has_threads(), reason="every launch is serial on this system")


def run(code: str, seconds: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that runs `code` after importing the bodies; it must end by itself and in order."""
    start = "import os, sys, threading, time\nimport numpy as np\nfrom tests.support.pool_bodies import launch\n"
    folders = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "PYTHONPATH": folders, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_every_chunk_runs_once() -> None:
    run("""
        rng = np.random.default_rng(0)
        for iteration in range(3000):
            count, size, threads = int(rng.integers(0, 300)), int(rng.integers(1, 40)), int(rng.integers(1, 9))
            data = np.zeros(count + 1, np.int64)
            launch("count", data, count, size, threads)
            assert (data[:count] == 1).all() and data[count] == 0, (count, size, threads)
    """)


@pytest.mark.slow
def test_several_threads_take_part_and_no_more_than_asked_for() -> None:
    run("""
        before = len(os.listdir("/proc/self/task"))
        for threads in (1, 2, 5, 3):
            names = []
            for iteration in range(20):
                data = np.zeros(16, np.int64)
                launch("name", data, 16, 1, threads)
                names.append(len(set(data.tolist())))
            assert max(names) <= threads and (threads == 1 or max(names) > 1), (threads, names)
        assert len(os.listdir("/proc/self/task")) == before + 4, "workers are kept"
    """)


@pytest.mark.slow
def test_one_thread_or_few_chunks_start_no_worker() -> None:
    run("""
        before = len(os.listdir("/proc/self/task"))
        launch("count", np.zeros(64, np.int64), 64, 1, 1)
        launch("count", np.zeros(64, np.int64), 64, 1, 8, least=65)
        launch("count", np.zeros(70000, np.int64), 70000, 1, 8)
        assert len(os.listdir("/proc/self/task")) == before
    """)


@pytest.mark.slow
def test_after_launches_that_lost_time_there_are_no_workers_for_a_while() -> None:
    run("""
        def users(back_off):
            data = np.zeros(16, np.int64)
            launch("name", data, 16, 1, 4, back_off=back_off)
            return len(set(data.tolist()))
        assert max(users(0) for iteration in range(5)) > 1
        launch("doze", np.zeros(4, np.int64), 4, 1, 4, back_off=10**7)  # sleep is no work: it is lost
        assert users(0) == 1
    """)


@pytest.mark.slow
def test_a_loop_that_outlasts_the_pause_has_workers_for_the_rest() -> None:
    run("""
        def late():
            # whether the caller ran the first chunk of another's share, and others ran some in the end
            names = np.zeros(200, np.int64)
            launch("doze", np.zeros(4, np.int64), 4, 1, 4, back_off=75)  # loses two milliseconds, and a pause of 150
            launch("name", names, 200, 1, 4)
            return len(set(names[:52].tolist())) == 1 and len(set(names.tolist())) > 1
        assert any(late() for iteration in range(50))
    """)


@pytest.mark.slow
def test_a_launch_within_a_chunk_is_serial() -> None:
    run("""
        for iteration in range(500):
            data = np.zeros(8 * 32, np.int64)
            launch("nest", data, 32, 1, 4)
            assert (data == 1).all()
    """)


@pytest.mark.slow
def test_eight_threads_launch_at_once() -> None:
    run("""
        def use():
            for iteration in range(1000):
                data = np.zeros(100, np.int64)
                launch("count", data, 100, 7, 3)
                if not (data == 1).all():
                    wrong.append(data)
        wrong = []
        users = [threading.Thread(target=use) for _ in range(8)]
        for user in users: user.start()
        for user in users: user.join()
        assert not wrong
    """)


FORK = """
        def work_in_child():
            others = len(os.listdir("/proc/self/task"))  # an emulator has threads of its own
            for iteration in range(50):
                data = np.zeros(100, np.int64)
                launch("count", data, 100, 3, 3)
                if not (data == 1).all():
                    os._exit(1)
            os._exit(0 if len(os.listdir("/proc/self/task")) == others + 2 else 2)

        def fork():
            child = os.fork()
            if child == 0:
                work_in_child()
            assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
def test_a_fork_while_workers_sleep() -> None:
    run(
        FORK
        + """
        launch("count", np.zeros(100, np.int64), 100, 3, 4)
        for iteration in range(20):
            time.sleep(0.002 * (iteration % 2))
            fork()
            launch("count", np.zeros(100, np.int64), 100, 3, 4)
    """
    )


@pytest.mark.slow
def test_a_fork_while_another_thread_is_inside_a_launch() -> None:
    run(
        FORK
        + """
        running = True
        def use():
            while running:
                launch("doze", np.zeros(6, np.int64), 6, 1, 3)
        user = threading.Thread(target=use)
        user.start()
        for iteration in range(20):
            time.sleep(0.001)
            fork()
        running = False
        user.join()
    """
    )


@pytest.mark.slow
def test_processes_of_multiprocessing_that_are_forked() -> None:
    run("""
        import multiprocessing
        def work(n):
            data = np.zeros(100, np.int64)
            launch("count", data, 100, 3, 3)
            return int(data.sum())
        launch("count", np.zeros(100, np.int64), 100, 3, 4)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(work, range(50)) == [100] * 50
    """)


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)", "pass"])
def test_the_process_ends_while_a_launch_runs(leave: str) -> None:
    run(f"""
        def use():
            while True:
                launch("doze", data, 6, 1, 3)
        data = np.zeros(6, np.int64)
        threading.Thread(target=use, daemon=True).start()
        time.sleep(0.05)
        {leave}
    """)


@pytest.mark.slow
def test_workers_take_no_signals() -> None:
    run("""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
        before = set(os.listdir("/proc/self/task"))
        launch("doze", np.zeros(6, np.int64), 6, 1, 4)
        workers = set(os.listdir("/proc/self/task")) - before
        assert len(workers) == 3
        for task in workers:
            blocked = next(line for line in open(f"/proc/self/task/{task}/status") if line.startswith("SigBlk"))
            assert int(blocked.split()[1], 16) & (1 << signal.SIGINT - 1)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        done = 0
        try:
            while True:
                data = np.zeros(6, np.int64)
                launch("doze", data, 6, 1, 4)
                assert (data == 1).all()
                done += 1
        except KeyboardInterrupt:
            assert done
        launch("doze", np.zeros(6, np.int64), 6, 1, 4)
    """)


@pytest.mark.slow
@given(count=st.integers(0, 10**7), work=st.integers(1, 10**6), least=st.integers(1, 2**16))
@settings(max_examples=300)
def test_chunks_cover_all_iterations_and_are_few(count: int, work: int, least: int) -> None:
    size = chunk_size(count, work, least)
    chunks = -(-count // size)
    assert size >= 1 and chunks <= MOST_CHUNKS
    assert chunks <= 1 or count * work >= 2 * least


@pytest.mark.parametrize("parts", [1, 2, 4, 16, 64])
def test_columns_are_shared_evenly_in_long_parts(parts: int) -> None:
    """In as many parts as are wanted where there are columns for them: fewer would start no thread."""
    for count in (1, 255, 256, 700, 1030, 2048, 5000, 10**6):
        size = columns_size(count, 10**6, parts)
        assert size >= LEAST_COLUMNS
        assert size <= max(MOST_COLUMNS, chunk_size(count, 10**6))
        assert -(-count // size) >= parts or count < parts * LEAST_COLUMNS
    assert columns_size(2048, 10**6, parts) == {1: 1024, 2: 1024, 4: 512, 16: 256, 64: 256}[parts]
    assert columns_size(2048, 1, parts) == 2048


def test_threads_default_to_the_processors_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    pool_settings.available_processors.cache_clear()
    assert 1 <= pool_settings.available_processors() <= len(os.sched_getaffinity(0))
    assert pool_settings.thread_count() == pool_settings.available_processors() and pool_settings.thread_count(7) == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    pool_settings.available_processors.cache_clear()
    assert pool_settings.available_processors() == 3
    pool_settings.available_processors.cache_clear()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"groups": "0::/a/b\n", "mount/a/b/cpu.max": "max 100000\n", "mount/a/cpu.max": "150000 100000\n"}, [2]),
        ({"groups": "0::/elsewhere\n", "mount/cpu.max": "400000 100000\n"}, [4]),
        (
            {
                "groups": "3:cpu,cpuacct:/x\n2:memory:/y\n0::/\n",
                "mount/cpu/x/cpu.cfs_quota_us": "50000\n",
                "mount/cpu/x/cpu.cfs_period_us": "100000\n",
                "mount/cpu/cpu.cfs_quota_us": "-1\n",
                "mount/cpu/cpu.cfs_period_us": "100000\n",
            },
            [1],
        ),
        ({}, []),
    ],
)
def test_control_groups_limit_the_processors(tmp_path: Path, files: dict[str, str], expected: list[int]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(pool_settings.quotas(str(tmp_path / "groups"), str(tmp_path / "mount"))) == expected


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1.5", "²", str(MOST_THREADS + 1), True, None])
def test_a_wrong_number_of_threads_is_an_error(threads: Any) -> None:
    with pytest.raises(GraphcError, match="threads.*must be a whole number from 1"), options.change(threads=threads):
        pass


@pytest.mark.slow
def test_the_number_of_threads_is_an_environment_variable() -> None:
    code = "from graphc.options import options; print(options.threads)"
    for given_, expected in (("3", "3"), ("auto", "auto"), ("", "auto")):
        assert run(code, GRAPHC_THREADS=given_).stdout.strip() == expected
    with pytest.raises(AssertionError, match="option threads='many': must be a whole number"):
        run(code, GRAPHC_THREADS="many")


@pytest.mark.slow
def test_the_pool_is_compiled_and_measured_once(tmp_path: Path) -> None:
    code = """
        from graphc.codegen.pipeline.runtime import ready_pool
        pool, crossover = ready_pool()
        assert 2 <= crossover <= 256
        print(crossover, "graphc.codegen.threads.pool" in sys.modules)
    """
    first, second, third = (
        subprocess.run(
            [sys.executable, "-c", "import sys\n" + textwrap.dedent(code)],
            capture_output=True,
            text=True,
            env={**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path / "cache")},
            check=True,
        ).stdout.split()
        for _ in range(3)
    )
    compiled = str(not shipped.has_part(PARALLEL))
    assert first == [str(pool_settings.DEFAULT_CROSSOVER), compiled], "measured when that process ended"
    assert second == third and second[1] == "False"
