"""Guards of traced functions: which variants there are, what is said of them, and that a kernel runs for no other sizes
than those that its guards allow."""
# ruff: noqa: E501, PLW0108 - programs as people write them

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.errors import GraphcError, ShapeError


def jit(f: Callable[..., Any], **more: Any) -> Any:
    return graphc.jit(f, mode="interpreted", **more)


def guards(f: Any) -> list[list[str]]:
    """The guards of each variant, without their lines."""
    return [[each.partition(" (test_")[0] for each in variant.guards] for variant in f.variants()]


def called(f: Callable[..., Any], *counts: int) -> Any:
    """`f` after calls with vectors of these sizes, each of which gave what it gives under NumPy."""
    traced = jit(f)
    for count in counts:
        x = np.arange(1.0, count + 1)
        npt.assert_array_equal(traced(x), f(x))
    return traced


def test_who_asks_nothing_has_one_variant() -> None:
    assert guards(called(lambda x: x * x.shape[0] + x[:2].sum() + len(x.shape), 3, 5, 1, 0)) == [[]]
    assert guards(
        called(lambda x: x[: x.shape[0] // 2].sum() + x * (x.size + 2) + np.maximum(x, x.shape[0]), 3, 5)
    ) == [[]]
    assert guards(called(lambda x: x * (x.shape[0] >= 0) * 1.0 if x.shape[0] != -1 else 0.0, 3, 5)) == [[]]


def test_answers_become_guards_of_variants() -> None:
    def by_length(x: Any) -> Any:
        return x[:100] if x.shape[0] > 100 else x * 2

    traced = called(by_length, 200, 300, 3, 4, 150)
    assert guards(traced) == [["x.shape[0] > 100"], ["x.shape[0] <= 100"]]
    assert len(traced.functions) == 2

    def three(p: Any) -> Any:
        a, b, c = p
        return a * b + c

    traced = jit(three)
    for count in range(4):
        npt.assert_array_equal(traced(np.ones(3) * count), three(np.ones(3) * count))
    assert guards(traced) == [["p.shape[0] == 3"]] and traced.functions[0].kernel.inputs[0].type.shape == (3,)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        traced(np.ones(2))
    assert len(traced.variants()) == 1


ASKED: list[tuple[Callable[..., Any], list[list[str]]]] = [
    (lambda x: x * len(x), [["x.shape[0] == 3"], ["x.shape[0] == 5"]]),
    (lambda x: x * 2 if x.shape[0] + 1 == 4 else x, [["x.shape[0] == 3"], ["x.shape[0] + 1 != 4"]]),
    (lambda x: x * 2 if x.shape[0] in (2, 3) else x, [["x.shape[0] == 3"], ["x.shape[0] != 2", "x.shape[0] != 3"]]),
    (lambda x: x * 2 if (x.shape[0] > 1) & (x.shape[0] < 4) else x, [["(x.shape[0] > 1) & (x.shape[0] < 4)"], ["!"]]),
    (lambda x: x * 2 if x.shape[0] % 2 else x, [["x.shape[0] % 2 != 0"]]),
    (lambda x: sum(x[:2]) * x, [["minimum(x.shape[0], 2) == 2"]]),
    (lambda x: x * 2 if x.shape[0] < 3.5 else x, [["!"], ["!"]]),
    (lambda x: x * 2 if x.shape[0] / 2 > 2 else x, [["x.shape[0] == 3"], ["x.shape[0] == 5"]]),
    (lambda x: x * 2 if x.shape[0] > 1 and x.shape[0] == 3 else x, [["x.shape[0] == 3"], ["x.shape[0] > 1", "x.shape[0] != 3"]]),
    (lambda x: x * 2 if x.shape[0] // 2 == 1 else x, [["x.shape[0] // 2 == 1"], ["x.shape[0] // 2 != 1"]]),
    (lambda x: sum(x[k] for k in range(4) if k < x.shape[0]), [["x.shape[0] == 3"], ["x.shape[0] > 3"]]),
    (lambda x: x * 2 if x.shape[0] > 1 and x.shape[0] > 2 and x.shape[0] < 9 else x, [["x.shape[0] > 2", "x.shape[0] < 9"]]),
    (lambda x: x * 2 if 4 - x.shape[0] > 0 and x.shape[0] > 1 else x, [["4 - x.shape[0] > 0", "x.shape[0] > 1"], ["4 - x.shape[0] <= 0"]]),
    (lambda x: x * 2 if x.shape[0] * 0.5 > 2 else x, [["x.shape[0] == 3"], ["x.shape[0] == 5"]]),
    (lambda x: x * (7 // len(x)) if x.size > 2 else x, [["x.shape[0] == 3"], ["x.shape[0] == 5"]]),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(ASKED)))
def test_what_is_asked_is_guarded_and_no_more(place: int) -> None:
    f, wanted = ASKED[place]
    traced = called(f, 3, 5, 3)
    for found, expected in zip(guards(traced), wanted, strict=True):
        assert expected in (found, ["!"])
    for count in (4, 7, 2, 1, 8):
        x = np.arange(1.0, count + 1)
        if f not in (ASKED[5][0],) or count > 1:
            npt.assert_array_equal(traced(x), f(x))


def test_sizes_that_are_told_are_static() -> None:
    """So that loops over them unroll, and so are those of derivatives and bodies."""

    def f(w: Any, x: Any) -> Any:
        total = x * 0
        for k in range(w.shape[0]):
            total = total + w[k] * x
        return total.sum()

    traced = graphc.grad(f)
    with graphc.options.change(mode="interpreted"):
        npt.assert_array_equal(traced(np.ones(3), np.arange(4.0)), [6, 6, 6])
        npt.assert_array_equal(traced(np.ones(3), np.arange(5.0)), [10, 10, 10])
    assert guards(traced) == [["w.shape[0] == 3"]]
    assert traced.functions[0].kernel.outputs[0].type.shape == (3,)


def test_axes_of_one_element_and_guards() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y if x.shape[0] > 2 else x * y

    traced = jit(f)
    a, b, one = np.arange(3.0), np.ones(3), np.ones(1)
    for _ in range(2):
        for x, y in ((a, b), (a, one), (one, a), (one, one), (a[:2], b[:2]), (a[:2], one)):
            npt.assert_array_equal(traced(x, y), f(x, y))
        with pytest.raises(ShapeError, match="differ along axis 0: sizes 3 and 2"):
            traced(a, b[:2])
    told = guards(traced)
    assert ["y.shape[0] == 1", "x.shape[0] > 2"] in told and ["x.shape[0] > 2"] in told and ["x.shape[0] <= 2"] in told


def test_sizes_that_contradict_each_other_are_an_error_of_the_call() -> None:
    def f(x: Any, y: Any) -> Any:
        assert len(x) and len(y)
        return x + y

    traced = jit(f)
    npt.assert_array_equal(traced(np.ones(3), np.ones(3)), 2 * np.ones(3))
    npt.assert_array_equal(traced(np.ones(3), np.ones(1)), 2 * np.ones(3))
    with pytest.raises(ShapeError, match=r"test_guards.py:\d+.* differ along axis 0: sizes 3 and 2"):
        traced(np.ones(3), np.ones(2))


def test_a_function_of_a_variant_refuses_other_sizes() -> None:
    traced = jit(lambda x: x * 2 if x.shape[0] > 2 else x)
    traced(np.ones(3))
    with pytest.raises(
        ShapeError, match=r"traced for arrays with x\.shape\[0\] > 2, and is called.*test_guards.py:\d+"
    ):
        traced.functions[0](np.ones(2))
    fixed = jit(lambda x: x * len(x))
    fixed(np.ones(3))
    with pytest.raises(ShapeError, match="must have size 3 along axis 0"):
        fixed.functions[0](np.ones(2))
    assert traced.function_for(np.ones(9)) is traced.functions[0]
    assert traced.function_for(np.ones(1)) is traced.functions[1]


def test_a_function_without_results_has_guards_too() -> None:
    traced = jit(lambda x: {"a": None} if x.shape[0] == 3 else [None])
    assert [traced(np.ones(n)) for n in (3, 2, 3, 4)] == [{"a": None}, [None], {"a": None}, [None]]
    assert len(traced.variants()) == 2 and traced.functions == []
    trees = jit(lambda x: {"a": x, "b": [x[0]]} if x.shape[0] == 3 else x)
    assert isinstance(trees(np.ones(3)), dict) and trees(np.ones(2)).shape == (2,) and trees(np.ones(3))["b"][0] == 1


def test_a_trace_within_a_trace_asks_the_outer_one() -> None:
    inner = jit(lambda y: y * 2 if y.shape[0] == 3 else y)
    two = np.ones(2)
    outer = jit(lambda x: inner(x) + inner(two).sum())
    for count in (3, 4, 3):
        npt.assert_array_equal(outer(np.ones(count)), np.ones(count) * (2 if count == 3 else 1) + 2)
    assert guards(outer) == [["x.shape[0] == 3"], ["x.shape[0] != 3"]] and guards(inner) == [["y.shape[0] != 3"]]

    def both(x: Any) -> Any:
        own = jit(lambda y: y.sum() + (x * 10 if x.shape[0] == y.shape[0] else x))
        return own(three)

    three = np.ones(3)

    traced = jit(both)
    for count in (3, 4, 3):
        npt.assert_array_equal(traced(np.ones(count)), 3 + np.ones(count) * (10 if count == 3 else 1))

    def by_size_alone(x: Any) -> Any:
        own = jit(lambda y: y * 10 if x.shape[0] == y.shape[0] else y)
        return x + own(three).sum()

    traced = jit(by_size_alone)
    for count in (3, 4, 3):
        npt.assert_array_equal(traced(np.ones(count)), np.ones(count) + (30 if count == 3 else 3))
    assert guards(traced) == [["x.shape[0] == 3"], ["x.shape[0] == 4"]]


def test_what_fails_is_not_kept() -> None:
    def f(a: Any, b: Any) -> Any:
        assert a.shape == b.shape, "shapes differ"
        return a + b

    traced = jit(f)
    for _ in range(2):
        with pytest.raises(AssertionError, match="shapes differ"):
            traced(np.ones(2), np.ones(3))
        npt.assert_array_equal(traced(np.ones(3), np.ones(3)), 2 * np.ones(3))
        npt.assert_array_equal(traced(np.ones(4), np.ones(4)), 2 * np.ones(4))
    assert guards(traced) == [["a.shape[0] == b.shape[0]"]]


def test_what_is_no_size_of_an_argument_is_refused() -> None:
    w = graphc.shared(np.ones(3), "w")
    for f in (
        lambda x: x if x[x > 0].shape[0] == 3 else -x,
        lambda x: x if jnp.unique(x).shape[0] == 3 else -x,
        lambda x: x if x.shape[0] == x.sum() else -x,
        lambda x: x * w.sum() if w.shape[0] == 3 else -x,
        lambda x: x if int(x.shape[0] * x[0]) == 3 else -x,
    ):
        with pytest.raises(GraphcError, match=r"test_guards.py:\d+"):
            jit(f).lower(np.ones(3))
    leaked: list[Any] = []

    def leaking(x: Any) -> Any:
        leaked.append(x.shape[0])
        return x

    jit(leaking)(np.ones(3))
    with pytest.raises(GraphcError, match="has no truth value"):
        bool(leaked[0] == 3)
    x = T.dvector("x")
    with pytest.raises(GraphcError, match=r"T\.eq"):
        jit(lambda x: x if x.shape[0] == 3 else -x)(x)


def test_a_shape_that_does_not_fit_is_an_error_that_the_program_may_catch() -> None:
    def of_numbers(x: Any, *shape: int) -> Any:
        try:
            return x.reshape(*shape)
        except ValueError:
            return -x

    for shape in ((5, -1), (5, 2), (-1, 3)):
        traced = graphc.jit(lambda x, m, n: of_numbers(x, m, n), static_argnums=(1, 2), mode="interpreted")
        for size in (6, 10, 15, 7, 12):
            wanted = of_numbers(np.arange(size), *shape)
            npt.assert_array_equal(traced(np.arange(size), *shape), wanted)
        assert len(traced.variants()) == 2
    with pytest.raises(ShapeError, match=r"7 elements cannot become \(-1, 3\) \(asked at test_guards\.py:"):
        graphc.jit(lambda x: x.reshape(-1, 3), mode="interpreted")(np.ones(7))


def test_functions_that_need_a_size_ask_for_it() -> None:
    programs: list[Callable[..., Any]] = [
        lambda x: np.cross(x, x[::-1]), lambda x: np.squeeze(x[None]), lambda x: np.squeeze(x[:1]),
        lambda x: np.stack(list(x)), lambda x: np.stack([*x, x.sum()]), lambda x: np.concatenate([row[None] for row in x]),
        lambda x: np.array_equal(x, x[1:]), lambda x: np.array_equal(x, x * 1), lambda x: np.insert(x, [-1], 5.0),
        lambda x: np.insert(x, slice(0, 2), 5.0), lambda x: np.polydiv(x, x[:2])[0], lambda x: np.lexsort(np.stack([x, -x])),
        lambda x: np.cov(np.stack([x])), lambda x: np.cov(x[None]), lambda x: np.cov(np.stack([x, -x])), lambda x: x.reshape(len(x), 1),
        lambda x: np.logaddexp.reduce(x), lambda x: np.reshape(x, (1, x.shape[0])), lambda x: np.zeros(x.shape) + x, lambda x: np.eye(len(x)) @ x,
        lambda x: np.split(x, x.shape[0])[0], lambda x: np.tile(x, len(x)), lambda x: np.linspace(0, 1, len(x)) * x,
    ]  # fmt: skip
    for f in programs:
        traced = jit(f)
        for count in (3, 3):
            x = np.array([3.0, 1.0, 2.0])[:count]
            npt.assert_allclose(traced(x), f(x), atol=1e-12, err_msg=str(programs.index(f)))
    assert guards(called(lambda x: np.squeeze(x), 3, 1, 4)) == [["x.shape[0] != 1"], ["x.shape[0] == 1"]]
    with pytest.raises(ShapeError, match="has not 2 or 3 elements"):
        jit(lambda x: np.cross(x, x))(np.ones(4))


def test_the_text_of_a_graph_has_its_guards() -> None:
    def f(x: Any) -> Any:
        return x * len(x) if x.shape[1] > 2 else x[:1]

    text = graphc.make_graph(f)(np.ones((2, 3)))
    assert text.startswith("inputs x: float64[2, x.1]\n") and "greater(x.1, 2:int64)" in text and "checked(" in text
    assert "less_equal(x.1, 2:int64)" in graphc.make_graph(f)(graphc.ShapeDtypeStruct((2, 2), "float64"))
    assert graphc.eval_shape(f, np.ones((2, 2))).shape == (1, 2) and graphc.eval_shape(f, np.ones((2, 3))).shape == (
        2,
        3,
    )
    with pytest.raises(GraphcError, match=r"test_guards.py:\d+"):
        graphc.make_graph(f)(T.dmatrix("x"))


def test_variants_say_what_they_are_for() -> None:
    traced = jit(lambda x, y: x[:100] if x.shape[0] > 100 else x + y)
    traced(np.ones(200), 1.0)
    (variant,) = traced.variants()
    line = r"test_guards.py:\d+"
    assert variant.types == "x: float64[x.0], y: float64[]"
    powers = jit(lambda x, k: x**k, static_argnames="k")
    assert (powers(np.ones(2), 2), powers(np.ones(2), k=3)) and [each.types for each in powers.variants()] == [
        "x: float64[x.0], k=2",
        "x: float64[x.0], k=3",
    ]
    assert __import__("re").fullmatch(rf"x: .*, y: .* where x\.shape\[0\] > 100 \({line}\)", repr(variant))


def test_a_new_trace_is_logged(caplog: Any) -> None:
    traced = jit(lambda x: x * 2 if x.shape[0] > 100 else x)
    with caplog.at_level(logging.INFO, "graphc.recompiles"):
        traced(np.ones(200))
        assert not caplog.messages
        traced(np.ones(3))
        traced(np.ones(4))
    (message,) = caplog.messages
    assert "<lambda> (test_guards.py" in message and "shapes (3,)" in message
    assert "x.shape[0] > 100 (test_guards.py" in message and message.endswith("does not hold")
    wide = jit(lambda x, y: x + y)
    with caplog.at_level(logging.INFO, "graphc.recompiles"):
        wide(np.ones(3), np.ones(1))
    assert caplog.messages[-1].endswith("shapes (3,), (1,): axes of one element broadcast")


def test_sizes_that_broadcast_are_traced_once() -> None:
    for order in ((3, 1, 3, 1, 1, 3), (1, 3, 1, 3, 3, 1)):
        traced = jit(lambda x, y: x * 2 + y)  # interpreted: it looks for a variant at each call
        for size in order:
            npt.assert_array_equal(traced(np.ones(3), np.full(size, 2.0)), np.full(3, 4.0))
        assert len(traced.functions) == 2


def test_many_variants_are_warned_of_once() -> None:
    traced = jit(lambda x: x * len(x), max_variants=3)
    for count in range(2, 5):
        traced(np.ones(count))
    with pytest.warns(RuntimeWarning, match=r"compiled for the 4th time .* 3 times at test_guards.py:\d+: x\.shape"):
        traced(np.ones(7))
    for count in (8, 9, 2):
        npt.assert_array_equal(traced(np.ones(count)), count * np.ones(count))
    assert len(traced.variants()) == 6


@pytest.mark.slow
def test_a_variable_of_the_environment_shows_why() -> None:
    text = "import graphc, numpy as np; f = graphc.jit(lambda x: x * len(x), mode='interpreted'); f(np.ones(2)); f(np.ones(3))"
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "GRAPHC_LOG": "recompiles"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "is traced anew for arguments of shapes (3,): x.shape[0] == 2" in done.stderr
    with pytest.raises(GraphcError, match="log='nonsense': must be one of recompiles"):
        graphc.options.log = "nonsense"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_native_code_runs_for_no_other_sizes(mode: str) -> None:
    """Variants change from call to call; what a failed guard leaves alone is an array that may be written, too."""

    def f(x: Any, y: Any) -> Any:
        if x.shape[0] > 4:
            return x * y + 1
        if x.shape[0] == y.shape[0] == 2:
            return x[0] * y + x
        return x - y

    traced, donated = graphc.jit(f, mode=mode), graphc.jit(f, mode=mode, donate_argnums=0)
    for count in (5, 3, 2, 6, 2, 4, 9, 1, 3, 5, 5):
        x, y = np.arange(1.0, count + 1), np.linspace(0.5, 2, count)
        npt.assert_array_equal(traced(x, y), f(x, y))
        z = x.copy()
        npt.assert_array_equal(donated(z, y), f(x, y))
        for wide in (y[:1], np.stack([y, y])):
            npt.assert_array_equal(traced(x, wide), f(x, wide))
    assert len({id(each) for each in traced.functions}) == len(traced.functions) == len(traced.variants())
    with pytest.raises(ShapeError, match="differ along axis 0: sizes 5 and 3"):
        traced(np.ones(5), np.ones(3))


@pytest.mark.slow
def test_a_kernel_has_no_loops_of_its_guards() -> None:
    """A result that is guarded is made where it would be without."""
    plain, guarded = graphc.jit(lambda x, y: x @ y), graphc.jit(lambda x, y: x @ y if x.shape[0] > 2 else x)
    x = np.ones((4, 4))
    npt.assert_array_equal(guarded(x, x), plain(x, x))
    (one,), (two,) = plain.functions, guarded.functions
    lines = [each.source.partition("def kernel")[2].splitlines()[3:] for each in (one, two)]
    assert lines[0] == lines[1] and "x_0 > 2" in two.source

    def dot(w: Any, x: Any) -> Any:
        total = 0.0
        for a, b in zip(w, x, strict=True):
            total += a * b
        return total

    unrolled = graphc.jit(dot)
    assert (
        unrolled(np.arange(3.0), np.ones(3)) == 3 and "for " not in unrolled.functions[0].source.partition("kernel")[2]
    )


def test_loops_and_branches_of_lax_ask() -> None:
    def f(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            a, b = row[:2]
            return carry + (a * b if row.shape[0] > 2 else a), len(row) * carry

        total, rows = lax.scan(step, 0.0, x)
        low = lax.fori_loop(0, x.shape[0], lambda i, c: c + (x[i].sum() if len(x) == 3 else 1.0), 0.0)
        return total, rows, low, lax.cond(low > 2, lambda: x * len(x), lambda: x)

    def wanted(x: Any) -> Any:
        total, rows = 0.0, []
        for row in x:
            rows.append(len(row) * total)
            total += row[0] * row[1] if row.shape[0] > 2 else row[0]
        low = sum(row.sum() if len(x) == 3 else 1.0 for row in x)
        return total, rows, low, x * len(x) if low > 2 else x

    traced = jit(f)
    for shape in ((3, 3), (2, 2), (4, 3), (3, 2)):
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        for found, expected in zip(traced(x), wanted(x), strict=True):
            npt.assert_allclose(found, expected)


def test_a_function_that_asks_nothing_is_compiled_once() -> None:
    """Whatever the sizes of its calls: long and short rows alike."""
    call: Any = graphc.jit(lambda x, y: ((x[:, None] - y) ** 2).sum(axis=2).argmin(axis=1))
    for rows, centres, axes in ((500, 3, 2), (500, 4, 2), (200, 4, 3), (7, 2, 16)):
        x, y = np.ones((rows, axes)), np.zeros((centres, axes))
        assert call(x, y).shape == (rows,)
    assert len(call.variants()) == 1


def test_sizes_that_disagree_in_the_trace_broadcast_where_an_axis_has_one_element() -> None:
    f: Any = graphc.jit(
        lambda m, s: np.where(m, s, -1.0).reshape(s.shape[0] * s.shape[1], -1).sum(1), mode="interpreted"
    )
    s = np.arange(24.0).reshape(2, 3, 4)
    for shape in ((2, 1, 4), (2, 3, 4), (1, 1, 1), (2, 1, 4)):
        m = np.arange(np.prod(shape)).reshape(shape) % 2 == 0
        np.testing.assert_array_equal(f(m, s), np.where(m, s, -1.0).reshape(6, -1).sum(1))
    assert len(f.functions) == 3
    with pytest.raises(graphc.errors.ShapeError, match="sizes 2 and 3"):
        f(np.ones((2, 2, 4), bool), s)
