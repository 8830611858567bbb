"""Theano's settings: obeyed, kept or told in one sentence; test values; modes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc import config
from graphc.errors import ArgumentError, GraphcError, GraphValueError
from graphc.startup.hooks import HOOKS
from graphc.theano.compile import Mode, get_default_mode, get_mode, predefined_modes, register_mode
from graphc.theano.flags import (
    ADDED,
    HARMLESS,
    OBEYED,
    SECTIONS,
    SENTENCES,
    TAKEN,
    VALUES,
    AddConfigVar,
    BoolParam,
    EnumStr,
    IntParam,
    StrParam,
)


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    with theano.change_flags(compute_test_value="off"), config.change(mode="compiled", excluding=()):
        yield
    VALUES.clear()
    HOOKS.default_mode, HOOKS.default_profile = None, False


def test_all_settings_are_kept() -> None:
    names = [*HARMLESS, *OBEYED, *(f"{section}.{name}" for section in SECTIONS for name in SECTIONS[section].split())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in names:
            before = getattr(config, name)
            setattr(config, name, before)
            assert getattr(config, name) == before
    config.warn.round = True
    assert config.warn.round is True and "round" in dir(config.warn)
    config.warn__round = False  # the spelling of Theano-PyMC
    with theano.change_flags(warn__round=True, unittests__rseed=3):
        assert config.warn.round is config.warn__round is True and config.unittests.rseed == 3
    assert config.warn.round is False and not hasattr(config, "warned__round")
    config.exception_verbosity = "high"
    assert config.exception_verbosity == "high" and config.device == "cpu" and config.traceback.limit == 8


@pytest.mark.parametrize("name", SENTENCES)
def test_what_cannot_be_followed_is_told(name: str) -> None:
    with pytest.warns(UserWarning, match="'other'") as caught:
        setattr(config, name, "other")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert getattr(config, name) == TAKEN.get(name, "other")


def test_unknown_settings() -> None:
    assert not hasattr(config, "nope")
    for name, value in (("nope", 1), ("floatX", "float16")):
        with pytest.raises(GraphcError):
            setattr(config, name, value)
    with pytest.raises(AttributeError, match="no option 'nope'"):
        _ = config.nope


def test_settings_change_for_a_while() -> None:
    @theano.change_flags({"warn.round": True}, floatX="float32")
    def inside() -> tuple[str, bool]:
        return T.scalar().dtype, config.warn.round

    assert inside() == ("float32", True) and config.floatX == "float64" and config.warn.round is False
    with theano.change_flags([("conv.assert_shape", True), ("floatX", "float32")]):
        assert config.conv.assert_shape is True and config.floatX == "float32"
    wrong: list[Any] = ["floatX", [1], [("a", 1, 2)], [(1, 2)]]
    for neither in wrong:
        with pytest.raises(TypeError, match="settings are a dict, or pairs"):
            theano.change_flags(neither)
    with theano.config.change_flags(floatX="float32"), theano.configparser.change_flags(optimizer="None"):
        assert config.floatX == "float32" and get_default_mode() == predefined_modes["FAST_COMPILE"]
    assert config.optimizer == "o4"


def test_settings_of_the_program(monkeypatch: Any) -> None:
    monkeypatch.setenv("THEANO_FLAGS", "mine.depth=3, floatX=float64")
    try:
        AddConfigVar("mine.depth", "How deep.", IntParam(1))
        AddConfigVar("mine.kind", "Which.", EnumStr("first", "second"))
        AddConfigVar("loud", "Whether.", BoolParam(False))
        assert (config.mine.depth, config.mine.kind, config.loud) == (3, "first", False)
        config.mine.kind, config.loud = "second", "True"
        assert (config.mine.kind, config.loud) == ("second", True)
        for name, value in (("mine.kind", "third"), ("mine.depth", "deep"), ("loud", "perhaps")):
            with pytest.raises(ValueError, match="third|deep|perhaps"):
                setattr(config, name, value)
        for taken in ("mine.depth", "floatX", "optimizer"):
            with pytest.raises(AttributeError, match="already"):
                AddConfigVar(taken, "", StrParam(""))
    finally:
        ADDED.clear()


X = T.dvector("x")


def test_settings_that_decide_how_functions_run() -> None:
    def mode(**given: Any) -> str:
        return theano.function([X], X * 2, **given).mode

    assert mode() == mode(mode="FAST_RUN") == mode(mode="Mode") == mode(mode=Mode("cvm")) == "compiled"
    for name, value in (("optimizer", "fast_compile"), ("optimizer", "None"), ("linker", "py")):
        with theano.change_flags(**{name: value}):
            assert mode() == "interpreted" and mode(mode="FAST_RUN") == "compiled"
    with theano.change_flags(mode="FAST_COMPILE"):
        assert mode() == "interpreted" and config.mode == "FAST_COMPILE"
    with theano.change_flags(profile=True):
        assert theano.function([X], X * 2).profile is not None
    with theano.change_flags(optimizer_excluding="softplus:fusion:nothing"):
        assert config.excluding == ("softplus",)


def test_modes() -> None:
    fast = get_mode("FAST_RUN")
    less = fast.excluding("log1p", "fusion", "inplace")
    y = T.log(1 + X)
    f = theano.function([X], y, mode=less)
    assert "log1p:" not in f.explain() and "log1p:" in theano.function([X], y, mode=less.including("log1p")).explain()
    np.testing.assert_allclose(f([1.0]), np.log(2.0))
    assert fast == fast.requiring("fusion") == fast.clone() != less and str(less).endswith("fusion, inplace, log1p)")
    for slow in (Mode("py"), Mode(optimizer=None), Mode(optimizer="fast_compile"), get_mode("FAST_COMPILE")):
        assert theano.function([X], y, mode=slow).mode == "interpreted"
    assert theano.function([X], y, mode=Mode("c|py", None)).mode == "compiled"
    assert get_default_mode() == fast and get_mode(None) == fast and get_mode(less) is less
    register_mode("mine_for_test", less)
    assert get_mode("mine_for_test") is less
    del predefined_modes["mine_for_test"]
    bad = (
        lambda: Mode("jit"),
        lambda: Mode(optimizer="best"),
        lambda: get_mode("best"),
        lambda: theano.function([X], y, mode="best"),
        lambda: theano.function([X], y, mode=3),
        lambda: register_mode("FAST_RUN", less),
    )
    for act in bad:
        with pytest.raises((ArgumentError, GraphValueError)):
            act()


FLAGGED = """
import graphc
print(graphc.config.floatX, graphc.config.mode, graphc.config.optimizer, graphc.config.warn.round)
"""


@pytest.mark.slow
def test_theano_flags_of_the_environment() -> None:
    flags = "floatX=float32,mode=FAST_COMPILE, optimizer=fast_run,warn.round=False,nothing=1,device=cpu"
    done = subprocess.run(
        [sys.executable, "-c", FLAGGED],
        env={**os.environ, "THEANO_FLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["float32", "FAST_COMPILE", "fast_run", "False"], done.stderr
    assert "no option 'nothing'" in done.stderr


def test_a_block_that_is_dropped_or_left_twice() -> None:
    """PyMC3 enters a model within itself: the block of the outer entry is dropped, that of the inner one left twice."""
    outer, inner = (theano.change_flags(compute_test_value=how) for how in ("raise", "warn"))
    try:
        outer.__enter__()
        del outer
        assert config.compute_test_value == "raise"
        with inner:
            assert config.compute_test_value == "warn"
        assert config.compute_test_value == "raise"
        inner.__exit__()
        assert config.compute_test_value == "raise"
    finally:
        theano.config.compute_test_value = "off"
