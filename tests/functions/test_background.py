"""Functions that other processes compile: the same dtypes, shapes and states before the switch to native code and after
it, whoever calls, forks or gives up meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.call.bind import Direct
from graphc.codegen.pipeline import background as processes
from graphc.codegen.pipeline.background import QUEUE
from graphc.errors import RankError
from graphc.functions.background import Background
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.options import options
from tests.support.instruction_programs import KINDS, arrays, build

PATIENCE = 300.0


@pytest.fixture
def background(tmp_path: Path) -> object:
    """An empty cache, and functions that are compiled in the background."""
    with options.change(cache_dir=tmp_path / "cache", compile="background"):
        yield
        QUEUE.wait(PATIENCE)


def made(function: Function) -> Background:
    assert isinstance(function, Background)
    return function


@pytest.mark.slow
@pytest.mark.usefixtures("background")
def test_functions_run_interpreted_until_their_code_is_there() -> None:
    x, lengths = T.dmatrix("x"), T.lvector("lengths")
    state = graphc.shared(np.zeros(3), name="state")
    step = made(graphc.function([x], [T.tanh(x).sum(0), x.max()], updates=[(state, state + x.sum(0))], profile=True))
    zeros = made(graphc.function([lengths], T.zeros((lengths.sum(),))))
    data = np.random.default_rng(0).normal(size=(40, 3))
    before = [step(data), zeros([1, 2])]
    out = np.empty(3), np.empty(())
    assert graphc.wait(PATIENCE) and step.is_ready and zeros.is_ready
    after = [step(data), zeros([1, 2])]
    step(data, out=out)
    assert graphc.function([lengths], lengths * 23 + 1).pointer().ctypes(0, 0, 8, 8) == 0  # the code is waited for
    for old, new in zip([*before[0], before[1], before[0][0]], [*after[0], after[1], out[0]], strict=True):
        assert old.dtype == new.dtype and old.shape == new.shape
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12)  # sums of 40 in another order
    np.testing.assert_allclose(state.get_value(), 3 * data.sum(0), rtol=1e-12, atol=1e-12)
    assert step.profile is not None and step.profile.calls == 3 and "threads may share" in step.explain()
    assert isinstance(graphc.function([lengths], T.zeros((lengths.sum(),))), Compiled), "the code is in the cache"
    made(graphc.function([x], x.sum(), fast_math=True))
    assert graphc.wait(PATIENCE)
    assert isinstance(graphc.function([x], x.sum(), fast_math=True), Compiled), "the key says how it was compiled"


@pytest.mark.slow
@pytest.mark.usefixtures("background")
def test_compiling_can_be_given_up_and_what_cannot_be_compiled_elsewhere_is_compiled_here() -> None:
    x = T.dvector("x")
    given_up = made(graphc.function([x], T.exp(x) - 1.5))
    given_up.cancel()
    assert graphc.wait(PATIENCE) and not given_up.is_ready and "given up" in given_up.explain()
    assert float(given_up([0.0])[0]) == -0.5

    doubled = graphc.custom_op("doubled", lambda a: 2 * a)
    assert not isinstance(graphc.function([x], doubled(x)), Background)


def flat(results: Any) -> list[Any]:
    return results if isinstance(results, list) else [results]


@pytest.mark.slow
@pytest.mark.usefixtures("background")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_programs_go_on_through_the_switch(seed: int) -> None:
    """Two threads call all the while; every result has the dtypes, shapes and classes of the interpreted mode."""
    rng = np.random.default_rng(seed)
    leaves = [T.dmatrix("x"), T.dvector("y"), T.dscalar("s")]
    drawn = rng.integers(0, 100, (10, 4)).tolist()
    pool = build([(kind % len(KINDS), which, first, second) for kind, which, first, second in drawn], leaves)
    count = graphc.shared(np.zeros(2, "int64"), name="count")
    outputs = [*pool[3:], T.argmax(leaves[1]), leaves[0].shape[0] + count.sum()]
    updates = [(count, count + leaves[0].shape[0])]
    made_of: dict[str, Any] = {"updates": updates, "on_unused_input": "ignore"}
    function = made(graphc.function(leaves, outputs, **made_of))
    cases = [arrays(*sizes, rng) for sizes in ((3, 3), (1, 3), (0, 3))]
    with options.change(compile="process"):
        reference = graphc.function(leaves, outputs, "interpreted", **made_of)
        wanted = [reference(*case) for case in cases]
    count.set_value(np.zeros(2, "int64"))
    problems: list[str] = []
    calls = [0, 0]
    end = time.monotonic() + PATIENCE

    def work(number: int) -> None:
        left = 30  # that many go to native code
        while left and time.monotonic() < end:
            left -= function.is_ready
            place = calls[number] % len(cases)
            calls[number] += 1
            for old, new in zip(wanted[place], function(*cases[place]), strict=True):
                if (type(old), old.dtype, old.shape) != (type(new), new.dtype, new.shape):
                    problems.append(f"{type(old)} {old.dtype} {old.shape}: {type(new)} {new.dtype} {new.shape}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert function.is_ready and not problems, problems[:3]
    rows = sum(sum(len(cases[each % len(cases)][0]) for each in range(number)) for number in calls)
    assert count.get_value().tolist() == [rows, rows], "no call was lost or counted twice"


@pytest.mark.slow
@pytest.mark.usefixtures("background")
def test_calls_after_the_switch_are_native() -> None:
    x, n = T.dvector("x"), T.lscalar("n")
    f = made(graphc.function([graphc.In(x, value=np.ones(2)), graphc.In(n, value=3)], T.exp(x * 0) * n, name="f"))
    nested = graphc.function([{"a": x}], x * 3, name="nested")
    jitted = graphc.jit(lambda a: (a * 2).sum() + 1)
    assert jitted(np.ones(3)) == 7.0 and not f.is_ready and not nested.is_ready
    assert "is being compiled, " in f.explain() or "waits for its turn" in f.explain()
    assert graphc.wait(PATIENCE) and f().tolist() == [3, 3] and f.is_ready
    assert isinstance(f, Direct) and isinstance(f.whole, Compiled) and f.binding is f.whole.entry.__self__
    f.value[n] = 5
    assert f().tolist() == [5, 5] and f().tolist() == [3, 3] and f([1, 2, 3], n=1).tolist() == [1, 1, 1]
    with pytest.raises(RankError, match=r"argument x \(test_background.py:\d+\) must have 1 dimensions"):
        f(np.ones((2, 2)))
    assert nested.is_ready and nested({"a": [2.0]}).tolist() == [6.0]
    (variant,) = jitted.variants()
    assert variant.fast is None and jitted(np.ones(4)) == 9.0 and isinstance(variant.function, Compiled)
    assert variant.fast is not None and jitted(np.ones(5)) == 11.0


@pytest.mark.slow
@pytest.mark.usefixtures("background")
def test_a_process_that_is_killed_leaves_the_function_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "available_processors", lambda: 1)
    x = T.dvector("x")
    first, second, third = (made(graphc.function([x], T.exp(x) * k, name=f"f{k}")) for k in (2, 3, 4))
    (running,), (waiting,) = first.jobs, second.jobs
    assert running.process is not None and waiting.process is None
    second.cancel()
    running.process.kill()
    running.process.wait(60)
    with pytest.warns(RuntimeWarning, match="f2 could not be compiled, and runs in the interpreted mode: the process"):
        assert not first.is_ready
    assert first([0.0]).tolist() == [2.0] and second([0.0]).tolist() == [3.0] and waiting.error == "cancelled"
    assert graphc.wait(PATIENCE) and third.is_ready and third([0.0]).tolist() == [4.0]


FORKED = """
    import os, signal, sys, time
    signal.alarm(240)  # ends this process and its child, whatever they wait for
    import graphc, graphc.tensor as T
    from graphc.codegen.pipeline.background import QUEUE
    x = T.dvector("x")
    f = graphc.function([x], T.exp(x) * 2)
    with QUEUE.lock:  # as if another thread held it
        child = os.fork()
    if child == 0:
        signal.alarm(200)
        assert QUEUE.waiting and not QUEUE.running and f([0.0]).tolist() == [2.0]
        os._exit(0 if graphc.wait(150) and f.is_ready and f([0.0]).tolist() == [2.0] else 3)
    assert graphc.wait(150) and f.is_ready
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_compiles_itself_what_the_parent_had_begun(tmp_path: Path) -> None:
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path / "cache"), "GRAPHC_COMPILE": "background"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED)], env=environment, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
