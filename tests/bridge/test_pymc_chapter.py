"""The tutorial's chapter on PyMC prints what it says (`make test-bridge`)."""

from __future__ import annotations

import pytest

pytest.importorskip("nutpie", reason="make test-bridge has PyMC")

from tests.test_documents import ROOT, check_programs


def test_the_chapter_on_pymc_prints_what_is_said() -> None:
    check_programs(ROOT / "docs" / "tutorial" / "pymc.md", "compiled")
