"""Random programs over everything (tests/support/blends), a few of them: `python -m tests.support.blends` runs more."""

from __future__ import annotations

import pytest

from tests.support.blends.running import Setting, outcome


@pytest.mark.slow
@pytest.mark.parametrize("setting", [Setting("python"), Setting("slopes"), Setting(poison="on", threads=3)], ids=str)
@pytest.mark.parametrize("number", range(2))
def test_programs_of_everything(setting: Setting, number: int) -> None:
    text, _, trouble, _ = outcome(f"suite {setting.mode}:{number}", setting, shrink=False)
    assert not text and not trouble
