"""NanGuardMode and DebugMode: the first value that is bad, or that differs, with its line and what went in."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.errors import DebugModeError, GraphValueError, NanGuardError
from graphc.functions import debug_modes
from graphc.functions.function import checking_mode
from graphc.ir.lowering import Scalar
from graphc.ir.node import OPS
from graphc.ir.walk import Graph
from graphc.options import CHECKING
from graphc.printing.monitormode import MonitorMode, detect_nan
from graphc.startup.record import replace
from graphc.theano.compile import DebugMode, NanGuardMode, get_default_mode

compiling: Any = import_module("graphc.compile")
X, Y = T.dvector("x"), T.dvector("y")
HERE = r"\(test_debug_modes\.py:\d+\)"
ZERO, ONE = np.zeros(2), np.ones(2)

BAD: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "the root of a negative": (
        lambda: T.sqrt(X - 2), ONE, f"NaN in sqrt\\(x - 2\\) {HERE}.*, forward; .*x - 2 .*\\[-1",
    ),
    "a quotient": (lambda: Y / X, ZERO, f"Inf in y / x {HERE} = float64\\[2\\] \\[inf inf\\], forward; .*x .*y"),
    "a large value": (lambda: (X * 1e6).sum() * 1e6, ONE, f"a big value in .* {HERE}.*forward"),
    "an input": (lambda: X + Y, np.array([1.0, np.nan]), f"NaN in the input x {HERE} = float64\\[2\\] \\[ 1. nan\\]"),
    "a derivative": (lambda: graphc.grad(T.sqrt(X).sum(), X), ZERO, f"Inf in .*{HERE}.*backward, in the derivative"),
    "a step": (
        lambda: graphc.scan(lambda s: T.log(s) * 2, outputs_info=X.sum(), n_steps=5)[0][-1], ONE, f"NaN in log.*{HERE}",
    ),
}  # fmt: skip
"""What is computed of x and y = x + 1, the value of x, what is said."""


@pytest.mark.parametrize("name", BAD)
def test_the_first_bad_value_is_named(name: str) -> None:
    build, value, said = BAD[name]
    f = graphc.function([X, Y], build(), mode=NanGuardMode(), on_unused_input="ignore", name="guarded")
    with pytest.raises(NanGuardError, match=f"(?s)guarded {HERE}: {said}") as caught:
        f(value, value + 1)
    assert isinstance(caught.value, AssertionError)


def test_what_is_asked_for_is_what_is_found() -> None:
    build = [X / Y, T.log(X - 1), X * 1e12]
    for given, raises in (("nan_is_error", [0, 1, 0]), ("inf_is_error", [1, 0, 0]), ("big_is_error", [1, 0, 1])):
        switches = dict.fromkeys(("nan_is_error", "inf_is_error", "big_is_error"), False) | {given: True}
        for result, wanted in zip(build, raises, strict=True):
            f = graphc.function([X, Y], result, mode=NanGuardMode(**switches), on_unused_input="ignore")
            if wanted:
                with pytest.raises(NanGuardError):
                    f(ONE * 0.5, ZERO)
            else:
                f(ONE * 0.5, ZERO)
    with pytest.raises(GraphValueError):
        NanGuardMode(False, False, False)


def test_settings_say_what_is_not_asked_for() -> None:
    switches = {"NanGuardMode.inf_is_error": False, "NanGuardMode.big_is_error": False}
    with graphc.change_flags(switches):
        f = graphc.function([X, Y], X / Y, mode=NanGuardMode())
        assert np.isinf(f(ONE, ZERO)).all()
        with pytest.raises(NanGuardError):
            f(ZERO, ZERO)
        with pytest.raises(NanGuardError):
            graphc.function([X, Y], X / Y, mode=NanGuardMode(inf_is_error=True))(ONE, ZERO)
    with graphc.change_flags({"NanGuardMode.action": "warn"}):
        f = graphc.function([X, Y], X / Y, mode=NanGuardMode())
    with pytest.warns(UserWarning, match=f"{HERE}: Inf in x / y ") as seen:
        assert np.isinf(f(ONE, ZERO)).all()
    assert seen[0].filename == __file__
    with graphc.change_flags({"NanGuardMode.action": "pdb"}), pytest.raises(GraphValueError, match="not 'pdb'"):
        NanGuardMode()


def test_what_the_compiler_makes_stable_is_no_fault() -> None:
    softplus = graphc.function([X], T.log(1 + T.exp(X)), mode="NanGuardMode")
    np.testing.assert_array_equal(softplus([1000.0]), [1000.0])
    masked = graphc.function([X], T.max(T.where(X > 0, X, 0.0)) + T.constant([-np.inf, 0.0])[1], mode=NanGuardMode())
    assert masked(ONE) == 1
    y = X / Y
    y.tag.nan_guard_mode_check = False
    assert np.isinf(graphc.function([X, Y], y, mode=NanGuardMode())(ONE, ZERO)).all()


@pytest.mark.parametrize("mode", [NanGuardMode(), DebugMode(), "DebugMode"])
def test_good_values_are_those_of_other_modes(mode: Any) -> None:
    w = graphc.shared(np.ones(2), "w")
    c = (T.tanh(X * w) ** 2).sum()
    f = graphc.function([X], {"c": c}, updates=[(w, w - 0.1 * graphc.grad(c, w))], mode=mode, name="step")
    g = pickle.loads(pickle.dumps(f))
    v = graphc.shared(np.ones(2), "v")
    h = graphc.clone(c, {w: v})
    plain = graphc.function([X], h, updates=[(v, v - 0.1 * graphc.grad(h, v))], mode="interpreted")
    for value in (ONE, ONE * 2):
        wanted = plain(value)
        np.testing.assert_allclose([f(value)["c"], g(value)["c"]], [wanted, wanted])
    np.testing.assert_allclose(w.get_value(), v.get_value())
    assert f.mode == g.mode == (mode if isinstance(mode, str) else mode.name) and "node by node" in f.explain()
    out = np.empty(())
    assert graphc.function([X], X.sum(), mode=mode)(ONE, out=out) is out and out == 2


def test_debug_mode_finds_values_that_are_not_finite() -> None:
    f = graphc.function([X, Y], (X / Y).sum(), mode=DebugMode())
    with pytest.raises(DebugModeError, match=f"not finite: x / y {HERE} = .*inf.*what went in: x .*; y "):
        f(ONE, ZERO)
    assert np.isinf(graphc.function([X, Y], (X / Y).sum(), mode=DebugMode(check_isfinite=False))(ONE, ZERO))


@pytest.mark.slow
def test_debug_mode_finds_the_node_that_is_compiled_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace_op("sinh", lower=lambda node: Scalar("cosh(_0)"), version="wrong")
    monkeypatch.setitem(OPS, "sinh", wrong)
    result = (T.cosh(T.sinh(X + 1)) * 2).sum()
    with graphc.options.change(cache=False):
        f = graphc.function([X], result, mode=DebugMode())
        with pytest.raises(
            DebugModeError, match=f"compiled code gives .*the interpreter sinh\\(.*\\) {HERE} .*went in: "
        ):
            f(ONE)


def replace_op(name: str, **changes: Any) -> Any:
    return replace(OPS[name], **changes)


def test_debug_mode_finds_the_rule_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = debug_modes.rewritten

    def wrong(kernel: Kernel, report: Report) -> Graph:
        graph = right(kernel, report)
        is_on = "softplus" not in graphc.options.excluding
        return Graph(graph.inputs, tuple(2 * each for each in graph.outputs)) if is_on else graph

    monkeypatch.setattr(debug_modes, "rewritten", wrong)
    f = graphc.function([X], T.log(1 + T.exp(X)).sum(), mode=DebugMode())
    with pytest.raises(DebugModeError, match="as written, .* as rewritten: the rewrite rule softplus changes it"):
        f(ONE)


def test_other_modes_are_refused() -> None:
    with pytest.raises(GraphValueError, match=re.escape("mode 'NanGard': must be one of")):
        graphc.function([X], X, mode="NanGard")


@pytest.mark.parametrize("loops", [False, True])
def test_monitors_see_each_node_before_and_after(loops: bool) -> None:
    assert import_module("graphc.compile.monitormode").MonitorMode is MonitorMode is compiling.MonitorMode
    told: list[tuple[str, int, str, Any, Any]] = []

    def monitor(when: str) -> Callable[..., None]:
        return lambda i, node, fn: told.append((when, i, str(node.op), fn.inputs[0][0], fn.outputs[0][0]))

    mode = MonitorMode(monitor("before"), monitor("after")).excluding("fusion", "inplace")
    state = graphc.shared(2.0)
    built = graphc.scan(lambda s: T.sin(s) * 2, outputs_info=X.sum(), n_steps=3)[0] if loops else T.exp(X) / Y
    f = graphc.function([X, Y], built, updates=[(state, state * 3)], mode=mode, on_unused_input="ignore")
    plain = graphc.function([X, Y], built, on_unused_input="ignore")
    np.testing.assert_allclose(f(ONE, ONE + 1), plain(ONE, ONE + 1))
    assert state.get_value() == 6.0 and [each[0] for each in told] == ["before", "after"] * (len(told) // 2)
    assert all(each[4] is None for each in told[::2]) and not any(each[4] is None for each in told[1::2])
    if not loops:
        (after,) = (each for each in told[1::2] if each[2] == "exp")
        np.testing.assert_allclose([*after[3], *after[4]], [1.0, 1.0, np.e, np.e])


def test_detect_nan(capsys: pytest.CaptureFixture[str]) -> None:
    f = graphc.function([X], X - T.log(X), mode=MonitorMode(post_func=detect_nan))
    f(ONE)
    assert capsys.readouterr().out == ""
    f(-ONE)
    shown = capsys.readouterr().out
    assert shown.startswith("*** NaN detected ***\nlog") and "Inputs : [array([-1., -1.])]" in shown


@pytest.mark.parametrize("mode", [NanGuardMode(), DebugMode(), MonitorMode()])
def test_a_maker_has_the_mode(mode: Any) -> None:
    made = graphc.function([X], X * 2, mode=mode)
    assert made.maker.mode is mode and made.maker.fgraph.toposort()[-1].op.name == "mul"


@pytest.mark.parametrize("name", CHECKING)
def test_modes_of_a_setting(name: str) -> None:
    with graphc.options.change(mode=name):
        f: Any = graphc.function([X], T.log(X), name="guarded")
        g: Any = graphc.jit(T.log)
        assert repr(get_default_mode()) == repr(checking_mode(name))
        assert graphc.function([X], X + 1, mode="interpreted")(ONE).tolist() == [2, 2]
        if "nan" in name.lower():
            for call in f, g:
                with pytest.raises(NanGuardError, match="NaN in log"):
                    call(-ONE)
        assert f(ONE).tolist() == g(ONE).tolist() == [0, 0]
    assert np.isnan(graphc.function([X], T.log(X), mode="interpreted")(-ONE)).all()
