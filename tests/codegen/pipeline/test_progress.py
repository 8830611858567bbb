"""A line on standard error where a build takes long."""

from __future__ import annotations

import sys

import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import kernel
from graphc.codegen.pipeline.kernel import Report, told_when_slow


def built(value: float) -> None:
    with graphc.options.change(progress="auto", cache=False):
        graphc.function([], T.constant(value) * 2, name="slow")()


def test_a_slow_build_is_told_of_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernel, "PATIENCE", 1000.0)
    built(1.0)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(kernel, "PATIENCE", 0.001)
    built(2.0)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("graphc: slow is being built, 0 s so far (") and "GRAPHC_PROGRESS=0" in line
    with graphc.options.change(progress=False, cache=False):
        graphc.function([], T.constant(3.0) * 2, name="slow")()
    assert capfd.readouterr().err == ""


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(kernel, "write_error", written.append)
    monkeypatch.setattr(sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(kernel, "PATIENCE", 0.01)
    monkeypatch.setattr(kernel, "TICK", 0.01)
    report = Report("slow")
    with graphc.options.change(progress="auto"), told_when_slow(report), report.phase("compile"):
        while len(written) < 3:
            pass
    while written[-1].strip():
        pass
    assert all(text.startswith("\rgraphc: slow is being built, ") and "(compile)" in text for text in written[:3])


def test_the_option_says_what_it_takes() -> None:
    with pytest.raises(graphc.GraphcError, match="progress='often': must be true, false or 'auto'"):
        graphc.options.progress = "often"
