"""Calls of functions: by name, with `out=`, of every layout; what they keep alive; and that they leak nothing."""

from __future__ import annotations

import copy
import gc
import resource
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import ArgumentError, GraphcError, ShapeError
from graphc.functions import variants
from graphc.functions.convention import write_results

MODES = ("compiled", "interpreted", "python")


def power(mode: str, **options: Any) -> graphc.Function:
    """x*y and x + y of two matrices, in a list."""
    x, y = T.dmatrix("x"), T.dmatrix("y")
    return graphc.function([x, y], [x * y, x + y], mode, **options)


A, B = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_out_is_written_and_returned(mode: str) -> None:
    f = power(mode)
    product, total = np.empty((2, 3)), np.empty((2, 3))
    results = f(A, B, out=(product, total))
    assert results[0] is product and results[1] is total
    np.testing.assert_array_equal(product, A * B)
    np.testing.assert_array_equal(total, A + B)
    results = f(A, y=B, out=[None, total])
    assert results[1] is total
    np.testing.assert_array_equal(results[0], A * B)
    x = T.dmatrix("x")
    single = graphc.function([x], x.sum(axis=0), mode)
    row = np.empty(3)
    assert single(A, out=row) is row and single(A, out=(row,)) is row
    np.testing.assert_array_equal(row, A.sum(axis=0))
    named = graphc.function([x], {"twice": x * 2, "half": x / 2}, mode)
    results = named(A, out={"half": product})
    assert results["half"] is product
    np.testing.assert_array_equal(product, A / 2)
    np.testing.assert_array_equal(results["twice"], A * 2)
    zero = np.empty(())
    assert graphc.function([x], x.sum(), mode)(A, out=zero) is zero and zero == A.sum()


@pytest.mark.parametrize("mode", MODES)
def test_out_of_any_layout_and_any_overlap(mode: str) -> None:
    f = power(mode)
    for make in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a[::-1, ::-1]):
        product, total = make(np.empty((2, 3))), make(np.empty((2, 3)))
        results = f(A, B, out=(product, total))
        assert results[0] is product and results[1] is total
        np.testing.assert_array_equal(product, A * B)
        np.testing.assert_array_equal(total, A + B)
    a, b = A.copy(), B.copy()
    f(a, b, out=(b, a))
    np.testing.assert_array_equal(a, A + B)
    np.testing.assert_array_equal(b, A * B)
    wide = np.zeros(9)
    wide[:6] = A.reshape(-1)
    f(wide[:6].reshape(2, 3), B, out=(wide[3:].reshape(2, 3), None))
    np.testing.assert_array_equal(wide[3:].reshape(2, 3), A * B)
    x = T.dmatrix("x")
    same = graphc.function([x], [x, x.T, x * 1], mode)
    square = np.arange(4.0).reshape(2, 2)
    results = same(square, out=(None, square, None))
    np.testing.assert_array_equal(results[0], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(results[1], [[0, 2], [1, 3]])
    np.testing.assert_array_equal(results[2], [[0, 1], [2, 3]])


@pytest.mark.slow
def test_results_given_the_array_of_an_argument_are_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "COPIED_FIRST", 0)
    monkeypatch.setattr(variants.background(), "build_in_background", lambda kernel: None)
    x, y = T.dmatrix("x"), T.dmatrix("y")
    outputs = [T.exp(-x) * y + x, x[::-1] * y]
    f, want = (graphc.function([x, y], outputs, mode) for mode in ("compiled", "interpreted"))
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(2, 90, 100))
    for given in ((0, None), (1, None), (None, 0), (None, 1), (0, 1), (1, 0)):
        arrays = [first.copy(), second.copy()]
        expected = want(*arrays)
        references = [sys.getrefcount(array) for array in arrays]
        out = tuple(None if number is None else arrays[number] for number in given)
        results = f(*arrays, out=out)
        for place, number in enumerate(given):
            assert number is None or results[place] is arrays[number]
        assert all(np.allclose(got, right, rtol=1e-12) for got, right in zip(results, expected, strict=True))
        del results, out
        assert [sys.getrefcount(array) for array in arrays] == references
    plain = graphc.function([x, y], outputs[0])
    a = first.copy()
    assert plain(a, second, out=a) is a and "not copied: result 0, made in x" in plain.explain()
    np.testing.assert_allclose(a, np.exp(-first) * second + first, rtol=1e-12)
    a = first.copy()
    with pytest.raises(ShapeError):
        plain(a, second[:2], out=a)
    np.testing.assert_array_equal(a, first)
    np.testing.assert_allclose(plain(a, a, out=a), np.exp(-first) * first + first, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_wrong_out_changes_nothing(mode: str) -> None:
    w = graphc.shared(np.zeros((2, 3)), "w")
    x, y = T.dmatrix("x"), T.dmatrix("y")
    f = graphc.function([x, y], [x * y, x + y], mode, updates=[(w, w + x)])
    frozen = np.empty((2, 3))
    frozen.flags.writeable = False
    good = np.empty((2, 3))
    wrong: list[tuple[Any, type[Exception], str]] = [
        (good, ArgumentError, "tuple of 2"),
        ((good,), ArgumentError, "tuple of 2"),
        ((good, np.empty((2, 3)), good), ArgumentError, "tuple of 2"),
        ((good, [1.0]), ArgumentError, r"out\[1\].*array"),
        ((good.astype("float32"), good), ArgumentError, r"out\[0\].*float64"),
        ((good, frozen), ArgumentError, r"out\[1\].*read-only"),
        ((np.empty((3, 2)), good), ShapeError, r"out\[0\].*\(2, 3\)"),
        ((good, np.empty((2, 3, 1))), ShapeError, r"out\[1\]"),
        ((good, good), ArgumentError, r"out\[1\].*shares memory with out\[0\]"),
        ((good, good[::-1]), ArgumentError, r"out\[1\].*shares memory with out\[0\]"),
        ((A, A), ArgumentError, r"out\[1\].*shares memory with out\[0\]"),
    ]
    for out, error, message in wrong:
        with pytest.raises(error, match=message):
            f(A, B, out=out)
        assert not w.get_value().any()
    named = graphc.function([x], {"twice": x * 2}, mode)
    with pytest.raises(ArgumentError, match="twice"):
        named(A, out={"thrice": good})


def test_results_are_copied_as_if_none_overlapped() -> None:
    first, second = np.zeros(3), np.ones(3)
    for got, given, value in zip(write_results([first, second], [second, first]), (first, second), (1, 0), strict=True):
        assert got is given
        np.testing.assert_array_equal(got, np.full(3, value))


def test_the_default_of_an_input_that_may_be_written_is_the_same_at_the_next_call() -> None:
    x, default = T.dvector("x"), np.arange(3.0)
    f = graphc.function([graphc.In(x, value=default, mutable=True)], x * 0.5)
    for _ in range(2):
        np.testing.assert_array_equal(f(), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(default, [0.0, 1.0, 2.0])


def test_a_result_that_is_made_in_an_argument_is_given_there_or_copied() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    f = graphc.function([graphc.In(x, mutable=True), y], [x * 0.5 + y, x.sum()])
    own, other = A.copy(), np.empty((2, 3))
    assert f(own, B)[0] is own, "it is made in the argument"
    for given in (own, other):
        own[...] = A
        result, total = f(own, B, out=(given, None))
        assert result is given and float(total) == A.sum()
        np.testing.assert_array_equal(given, A * 0.5 + B)


@pytest.mark.parametrize("mode", MODES)
def test_out_in_turns_in_one_array(mode: str) -> None:
    both = np.empty((2, 6))
    power(mode)(A, B, out=(both[:, ::2], both[:, 1::2]))
    np.testing.assert_array_equal(both[:, ::2], A * B)
    np.testing.assert_array_equal(both[:, 1::2], A + B)


@pytest.mark.parametrize("mode", MODES)
def test_out_with_updates_and_failures(mode: str) -> None:
    w = graphc.shared(np.zeros(3), "w")
    x, i = T.dvector("x"), T.lvector("i")
    f = graphc.function([x, i], x[i] + w, mode, updates=[(w, w + 1)])
    out = np.full(3, 7.0)
    with pytest.raises(GraphcError):
        f(np.ones(3), np.array([0, 1, 9]), out=out)
    assert not w.get_value().any()
    assert f(np.ones(3), np.array([0, 1, 2]), out=out) is out
    np.testing.assert_array_equal(out, 1.0)
    own = w.get_value(borrow=True)
    want = np.ones(3) + own
    assert f(np.ones(3), np.array([0, 1, 2]), out=own) is own, "a variable's own value is given"
    assert np.array_equal(own, want) or np.array_equal(w.get_value(), want)


@pytest.mark.parametrize("mode", MODES)
def test_out_in_the_memory_of_a_variable_that_is_updated(mode: str) -> None:
    """The results are written there, and the variable has its new value elsewhere."""
    x, memory, value = T.dmatrix("x"), np.arange(12.0).reshape(4, 3), np.ones((4, 3))
    w = graphc.shared(memory, "w", borrow=True)
    f = graphc.function([x], x * 2 + w, mode, updates=[(w, w - x)])
    for target in (memory, memory[::-1]):
        memory[...] = np.arange(12.0).reshape(4, 3)
        w.set_value(memory, borrow=True)
        before = memory.copy()
        assert f(value, out=target) is target
        np.testing.assert_array_equal(target, 2 * value + before)
        np.testing.assert_array_equal(w.get_value(), before - value)


@pytest.mark.parametrize("mode", MODES)
def test_an_input_called_out_keeps_its_keyword(mode: str) -> None:
    out, x = T.dvector("out"), T.dvector("x")
    for outputs in (x - out, {"difference": x - out}):
        f = graphc.function([x, out], outputs, mode)
        result = f(np.ones(2), out=np.zeros(2))
        np.testing.assert_array_equal(result["difference"] if isinstance(result, dict) else result, 1.0)


@pytest.mark.parametrize("mode", MODES)
def test_names_and_defaults(mode: str) -> None:
    x, y, z = T.dvector("x"), T.dscalar("y"), T.dvector("z")
    default = np.ones(2)
    f = graphc.function([x, graphc.In(y, value=2), graphc.In(z, value=default)], x * y + z, mode)
    a = np.arange(2.0)
    np.testing.assert_array_equal(f(a), a * 2 + 1)
    np.testing.assert_array_equal(f(a, z=a), a * 3)
    np.testing.assert_array_equal(f(y=3, x=a), a * 3 + 1)
    np.testing.assert_array_equal(f(**{str(b"z", "ascii"): a, "x": a, "y": np.float32(1)}), a * 2)
    default[:] = 5
    np.testing.assert_array_equal(f(a), a * 2 + 5)
    with pytest.raises(ArgumentError, match="argument x .* is missing"):
        f(y=1)
    with pytest.raises(ArgumentError, match="twice"):
        f(a, x=a)
    with pytest.raises(ArgumentError, match="called 'q'"):
        f(a, q=a)


def test_a_compiled_function_is_an_object_like_any() -> None:
    f = power("compiled", name="power")
    assert isinstance(f, graphc.Function) and "power" in repr(f) and callable(f)
    f.note = "mine"  # type: ignore[attr-defined]
    assert f.source and f.explain() and f.name == "power" and vars(f)["note"] == "mine"
    results = list(map(f, [A], [B]))
    np.testing.assert_array_equal(results[0][0], A * B)
    np.testing.assert_array_equal(f.__call__(A, B)[0], A * B)
    np.testing.assert_array_equal(f(*(A,), y=B)[0], A * B)
    np.testing.assert_array_equal(copy.copy(f)(A, B)[0], A * B)
    with pytest.raises((TypeError, AttributeError)):
        object.__new__(type(f))(A, B)


@pytest.mark.slow
def test_a_function_in_a_cycle_is_collected() -> None:
    f: Any = power("compiled")
    f.me = f
    gone = weakref.ref(f), weakref.ref(f.library.owner[0])
    del f
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


@pytest.mark.slow
def test_calls_leak_nothing() -> None:
    x, y, s = T.dmatrix("x"), T.dmatrix("y"), T.fscalar("s")
    w = graphc.shared(np.zeros((20, 20)), "w")
    f = graphc.function([x, graphc.In(s, value=1.0)], [x * s, (T.dot(x, x) + w).sum(axis=0)], updates=[(w, w + x)])
    taking = graphc.function([graphc.In(x, mutable=True), y], [x * 0.5 + y, x.sum()])
    a, own, out = np.ones((20, 20)), np.ones((20, 20)), (np.empty((20, 20)), np.empty(20))
    spread = np.ones((20, 40))[:, ::2]
    calls: list[Callable[[], Any]] = [
        lambda: f(a),
        lambda: f(a, s=2),
        lambda: f(x=spread, s=np.float32(2)),
        lambda: f(a, out=out),
        lambda: f(spread, 1.5, out=(out[0].T, None)),
        lambda: f(a.tolist(), np.array(2, "float32")),
        lambda: taking(own, a),
        lambda: taking(own, a, out=(own, None)),
        lambda: taking(own, own),
        lambda: taking(spread, a),
    ]

    def run() -> None:
        for call in calls * 500:
            call()

    run()
    gc.collect()
    watched = [a, own, spread, *out, np.dtype("float64"), f]
    before = [sys.getrefcount(item) for item in watched], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    run()
    after = [sys.getrefcount(item) for item in watched], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after[0] == before[0]
    assert after[1] - before[1] < 2_000


def test_threads_call_one_function() -> None:
    f = power("compiled")
    rng = np.random.default_rng(0)
    problems = []

    def work(value: float) -> None:
        x, out = np.full((40, 50), value), (np.empty((40, 50)), np.empty((40, 50)))
        for _ in range(300):
            f(x, y=x, out=out)
            if not (out[0] == value * value).all() or not (f(x[:, ::2], x[:, ::2])[1] == 2 * value).all():
                problems.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in rng.normal(size=4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


PROGRAMS = {
    "a function that is finalized late": """
        class Last:
            def __del__(self):
                try:
                    self.f(a)
                except SystemError:
                    pass
        f.me = f
        f.last = Last()
        f.last.f = f
        del f
        gc.collect()
        print("done")
    """,
    "many functions": """
        for n in range(50):
            f = graphc.function([x], x + n)
            f.me = f
            f(a)
        del f
        gc.collect()
        print("done")
    """,
    "sizes that are huge": """
        from graphc.errors import GraphcError
        n = T.lscalar("n")
        g = graphc.function([n], [T.zeros((n, 4)), T.ones((n,))])
        for size in (2**62, 2**61 + 1, 2**50, -1, -2**63):
            for out in (None, (np.empty((2, 4)), np.empty(2))):
                try:
                    g(size, out=out) if out else g(size)
                except (MemoryError, GraphcError, ValueError):
                    pass
                else:
                    raise AssertionError(size)
        print("done")
    """,
    "exit with a function in a module": """
        import builtins
        builtins.kept = f
        print("done")
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_processes(program: str) -> None:
    prologue = """
    import gc
    import numpy as np
    import graphc
    import graphc.tensor as T
    x, a = T.dvector("x"), np.ones(3)
    f = graphc.function([x], x * 2)
    """
    text = textwrap.dedent(prologue) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
def test_a_call_without_memory_names_what_needs_it(mode: str) -> None:
    """For results, and for temporaries; the function goes on to work, as do functions whose calls ask for handlers."""
    n, v = T.lscalar("n"), T.dvector("v")
    total = graphc.shared(np.zeros(2), "total")
    squares = T.arange(n)[:, None] * T.arange(n)
    square = graphc.function([n], squares, mode=mode, name="square", updates=[(total, total + 1)])
    ranks = graphc.function([v], T.cumsum(T.sort(v[:, None] * v, axis=0), axis=0).sum(), mode=mode, name="ranks")
    huge = np.broadcast_to(np.ones(()), 10**7)
    for call, value, names in ((square, 10**7, ("n (", "square")), (ranks, huge, ("v (", "ranks"))):
        with pytest.raises(MemoryError) as caught:
            call(value)
        said = str(caught.value)
        assert "(test_calls.py:" in said
        assert mode == "interpreted" or all(name in said for name in names)
        assert "10000000" in said or "TiB" in said
    assert total.get_value().tolist() == [0, 0]
    assert square(3).tolist() == [[0, 0, 0], [0, 1, 2], [0, 2, 4]]
    assert ranks(np.ones(3)) == 18
    assert total.get_value().tolist() == [1, 1]
