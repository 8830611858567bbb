"""Where Linux's calls are missing, simulated: graphc is imported, and the interpreted and python modes are right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = """
# what is imported here asks what the system really is
import os, select, sys
import ctypes, mmap, multiprocessing, platform, subprocess, tempfile
import hypothesis, llvmlite.binding, mpmath, numpy.testing, pytest

for name in {names!r}.split():
    delattr(os, name)
for name in {modules!r}.split():
    sys.modules[name] = None
for name in ("PROT_READ", "PROT_WRITE", "PROT_EXEC", "MAP_PRIVATE", "MAP_ANONYMOUS"):
    delattr(mmap, name)
def refuse(*arguments):
    raise OSError(10038, "an operation was attempted on something that is not a socket")
select.select = refuse
subprocess.Popen = ctypes.CDLL = ctypes.PyDLL = refuse
sys.platform, os.name = {platform!r}, {name!r}
platform.machine = lambda: {machine!r}
for place in ("/proc", "/sys"):
    sys.addaudithook(lambda event, given: refuse() if event == "open" and str(given[0]).startswith(place) else None)
"""
UNIX = "sched_getaffinity memfd_create"
FOREIGN = {
    "win32": {
        "names": f"{UNIX} register_at_fork fork getuid geteuid uname getpgid killpg fchmod getloadavg O_NOFOLLOW",
        "modules": "fcntl resource pwd grp",
        "name": "nt",
        "machine": "AMD64",
    },
    "darwin": {"names": UNIX, "modules": "", "name": "posix", "machine": "arm64"},
}
PROGRAM = """
import warnings
import graphc
import graphc.tensor as T
import numpy as np

x, w = T.dmatrix("x"), graphc.shared(np.ones(3), name="w")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    step, again = (graphc.function([x], T.exp(T.dot(x, w)).sum(), updates=[(w, w + 1)]) for _ in "ab")
(warning,) = said
assert warning.filename == __file__, warning
assert str(warning.message) == (
    "functions are compiled on Linux only, and this is {platform}: they run in the interpreted mode"
)
assert step(np.zeros((2, 3))) == again(np.zeros((2, 3))) == 2.0 and w.get_value().tolist() == [3.0] * 3
import graphc.cli
assert graphc.cli.main(["options"]) == 0
warnings.simplefilter("error")
graphc.function([x], T.exp(x).sum(), mode="python").explain()

from tests.programs import test_modes

test_modes.MODES = ("interpreted", "python")
for dtype, samples in (case.values for case in test_modes.BATCHES[::4]):
    test_modes.test_modes_and_layouts_agree(dtype, samples)
for op in filter(test_modes.is_of_one_vector, test_modes.OPS.values()):
    test_modes.test_special_values(op, "float32")
"""


@pytest.mark.slow
@pytest.mark.parametrize("platform", FOREIGN)
def test_where_nothing_is_compiled_the_other_modes_are_right(platform: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(MISSING.format(**FOREIGN[platform], platform=platform) + PROGRAM.replace("{platform}", platform))
    folders = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": folders},
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
