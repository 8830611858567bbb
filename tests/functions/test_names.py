"""Any string is a name: of functions, inputs and shared variables."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import ShapeError

NAMES = [
    "a\0b", "a b", "'", '"', '"""', "new\nline", "\r", "\\", "{x}", "%s", "ü日本", "\ud800", "def", "exp", "kernel",
    "sizes", "entry", "accumulate", "../up", "#", "n" * 5000,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_any_string_is_a_name(mode: str) -> None:
    for name in NAMES:
        x, w = T.dvector(name), graphc.shared(np.ones(2), name=name)
        step = graphc.function([x], T.exp(x * 2 + w), updates=[(w, w + x)], name=name, mode=mode)
        np.testing.assert_allclose(step(np.ones(2)), np.exp(3.0))
        np.testing.assert_allclose(step(**{name: [0, 0]}), np.exp(2.0))
        assert step.name == name and w.name == name and name in repr(step)
        assert step.text and step.explain() and (mode == "interpreted" or step.source)
        with pytest.raises(ShapeError):
            step(np.ones(3))
