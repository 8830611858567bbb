"""The table of kinds, by name; a file for each subject."""

from __future__ import annotations

from benchmarks.sweep.kinds import algebra, arrays, images, models, pairs, recurrences, regressions, systems
from benchmarks.sweep.program import Kind

SUBJECTS = (recurrences, systems, regressions, models, pairs, images, arrays, algebra)
KINDS: dict[str, Kind] = {kind.name: kind for subject in SUBJECTS for kind in subject.KINDS}
