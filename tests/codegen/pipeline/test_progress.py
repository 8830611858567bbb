"""A line on standard error where a build takes long."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.cache import store
from graphc.codegen.pipeline import kernel
from graphc.codegen.pipeline.kernel import Report, progress, report_when_slow


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


def test_a_slow_build_names_the_line_of_an_unrolled_loop(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    x = T.dvector("x")
    value = x
    for step in range(kernel.OFTEN):
        value = T.sin(value) + step * x
    few, many = (
        kernel.Kernel("slow", (x,), (), (result, graphc.grad(result.sum(), x)), (), "list")
        for result in (T.sin(x) * x, value)
    )
    assert kernel.repeated_line(few) == ""
    line = r"test_progress\.py:\d+ \(value = T\.sin\(value\) .*\) has made 1\d\d values of one kind; .*`scan`"
    assert re.match(line, kernel.repeated_line(many))
    monkeypatch.setattr(kernel, "PATIENCE", 0.001)
    said: list[str] = []

    def told() -> bool:
        said.append(capfd.readouterr().err)
        return "being built" in "".join(said)

    with (
        graphc.options.change(progress="auto"),
        report_when_slow(Report("slow"), 1, partial(kernel.repeated_line, many)),
    ):
        until(told)
    hint, line = "".join(said).splitlines()
    assert hint.startswith("graphc: slow: test_progress.py:") and "is being built" in line


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(kernel, "write_error", written.append)
    monkeypatch.setattr(sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(kernel, "PATIENCE", 0.01)
    monkeypatch.setattr(kernel, "TICK", 0.01)
    report = Report("slow")
    with graphc.options.change(progress="auto"), report_when_slow(report, 10**9), report.phase("compile"):
        until(lambda: len(written) >= 3)
    until(lambda: not written[-1].strip())
    assert all(text.startswith("\rgraphc: slow is being built, ") and "(compile)" in text for text in written[:3])


def test_the_option_says_what_it_takes() -> None:
    with pytest.raises(graphc.GraphcError, match="progress='often': must be true, false or 'auto'"):
        graphc.options.progress = "often"


def test_graphs_of_similar_size_tell_how_long_one_takes() -> None:
    known = [(100, 1.0), (200, 2.0), (300, 3.0), (5000, 100.0), (6000, 120.0)]
    assert store.forecast(200, known) == pytest.approx(2.0)
    assert store.forecast(400, known) == pytest.approx(4.0)
    assert store.forecast(5000, known) is None, "two are too few"
    assert store.forecast(5000, [*known, (20000, 200.0)]) == pytest.approx(5000 * 420 / 31000)
    assert store.forecast(20001, [(5000, 1.0)] * 3) is None, "more than four times as many nodes"
    assert store.forecast(7, []) is None


def test_the_record_is_kept_short_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with graphc.options.change(cache_dir=tmp_path):
        tmp_path.chmod(0o700)
        assert store.expected(500) is None and progress(3.0, 500) == "3 s so far"
        for _ in range(3):
            store.note(500, 12.0)
        assert progress(3.0, 500) == "3 s so far of about 12 s" and progress(3.0, 50) == "3 s so far"
        assert progress(31.0, 250) == "31 s so far, while graphs of its size took 6 s"
        monkeypatch.setattr(store, "MOST_BYTES", 400)
        for _ in range(200):
            store.note(1000, 8.0)
        place = tmp_path / store.DURATIONS
        assert place.stat().st_size <= 400 and store.expected(1000) == pytest.approx(8.0)
        assert [each.name for each in tmp_path.iterdir()] == [store.DURATIONS]
        place.write_bytes(b"no numbers\n")
        assert store.expected(1000) is None
        with graphc.options.change(cache=False):
            store.note(1, 1.0)
        assert place.read_bytes() == b"no numbers\n"
        monkeypatch.setattr(kernel, "PATIENCE", 1000.0)
        place.unlink()
        graphc.function([], graphc.tensor.constant(4.25) * 2, name="noted")
        work, seconds = place.read_text().split()
        assert int(work) == 3 and float(seconds) >= 0.0
