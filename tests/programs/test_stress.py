"""All kinds of calls from eight threads at once, while others compile: no crash, no wrong number."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import faulthandler, sys, threading, time
    import numpy as np
    import graphc
    import graphc.session as ts
    import graphc.tensor as T

    faulthandler.dump_traceback_later(300, exit=True)
    sys.setswitchinterval(1e-5)
    SIZES = (3, 300, 60_000)
    x, y, m = T.dvector("x"), T.dvector("y"), T.dmatrix("m")
    total, counts = graphc.shared(np.zeros(60_000), "total"), [0] * 8

    @graphc.op(infer=lambda kind: kind)
    def doubled(a):
        return a * 2

    plain = graphc.function([x, y], [x + y, T.exp(x - x).sum()])
    mutable = graphc.function([graphc.In(x, mutable=True)], x * 3)
    called = graphc.function([x], doubled(x) + total[0] * 0)
    count = graphc.function([], updates=[(total, total + 1.0)])
    count_slowly = graphc.function([], updates=[(total, total + 1.0)], mode="interpreted")
    spread = graphc.function([], total.max() - total.min())
    columns = graphc.function([m], m.sum(axis=1))
    gemm = graphc.function([m], T.dot(m, m.T))
    checked = graphc.function([x, y], (x * y).sum(), updates=[(total, total + (x * y).sum() * 0)])
    fed = ts.placeholder("float64")
    variable = ts.Variable(np.ones(3))
    product = ts.multiply(fed, variable)
    session = ts.Session()
    ORDER = np.ones((400, 300)).T.copy().T

    def calls(seed):
        rng = np.random.default_rng(seed)
        for iteration in range(10**9):
            if iteration and time.monotonic() > end:
                return
            a = rng.normal(size=SIZES[iteration % 3])
            both, ones = plain(a, a)
            assert (both == 2 * a).all() and ones == len(a)
            given = np.empty_like(a), np.empty(())
            assert plain(a, y=a, out=given)[0] is given[0] and (given[0] == 2 * a).all()
            assert (plain(a[::-1], list(a[:0]) or a)[0] == a[::-1] + a).all()
            assert (mutable(a.copy()) == 3 * a).all()
            assert (called(a) == 2 * a).all()
            (count if iteration % 7 else count_slowly)()
            counts[seed] += 1
            assert spread() == 0 and np.ptp(total.get_value()) == 0
            assert (columns(ORDER) == 300).all()
            assert (gemm(np.ones((40, 30))) == 30).all()
            try:
                checked(a, np.ones(len(a) + 1))
            except ValueError as error:
                assert "differ" in str(error)
            else:
                raise AssertionError("sizes that differ")
            assert (session.run(product, {fed: a[:3]}) == a[:3]).all()

    def compiles(seed):
        iteration = 0
        while time.monotonic() < end:
            iteration += 1
            k = 100 * seed + iteration % 5
            mode = ("compiled", "python", "interpreted")[iteration % 3]
            f = graphc.function([x], T.tanh(x) * k + total.sum() * 0, mode=mode)
            np.testing.assert_allclose(f(np.ones(4)), np.tanh(1.0) * k)
            f.free()

    problems = []
    def guarded(work, seed):
        try:
            work(seed)
        except BaseException as error:
            problems.append(repr(error))

    end = time.monotonic() + float(sys.argv[1])
    threads = [threading.Thread(target=guarded, args=(calls, seed)) for seed in range(8)]
    threads += [threading.Thread(target=guarded, args=(compiles, seed)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(total.get_value()) == {float(sum(counts))}, (total.get_value(), counts)
    assert problems or all(counts)
    print(problems[:3] or "done")
"""


@pytest.mark.slow
def test_calls_of_all_kinds_while_others_compile() -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), "4"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
