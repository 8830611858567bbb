"""On a processor that nothing is linked for there is an answer, said to be slower; what is no image, LLVM loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import warnings
import numpy as np
import graphc
import graphc.tensor as T
from graphc.codegen.link import image
from graphc.codegen.link import elf

{change}
x, w = T.dmatrix("x"), graphc.shared(np.ones(3), name="w")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    first, second = (
        graphc.function([x], [(x % 0.7).sum(), T.exp(T.dot(x, w)), x.T * 2], updates=[(w, w + 1)])
        for name in "ab"
    )
for f in (first, second):
    given, weights = np.random.default_rng(0).uniform(1, 2, (400, 3)), w.get_value()
    wanted = graphc.function([x], [(x % 0.7).sum(), T.exp(T.dot(x, w)), x.T * 2], mode="interpreted")(given)
    for found, right in zip(f(given), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-13)
    assert (w.get_value() == weights + 1).all()
"""
RISC = """
import os
os.uname = lambda: os.uname_result(("Linux", "host", "6", "1", "riscv64"))
"""
INTERPRETED = """
assert [str(warning.message) for warning in said] == [
    "functions are compiled for x86_64 and aarch64 only, not riscv64: they run in the interpreted mode"
], said
assert said[0].filename == __file__ and said[0].category is RuntimeWarning
assert first.mode == second.mode == "interpreted"
assert "graphc.codegen.server.process" not in sys.modules
assert graphc.function([x], x + 1, mode="python")(np.ones((1, 1))) == 2
"""
FORGOTTEN = """
elf.ARCHITECTURES = {}
contents, split = [], image.split
image.split = lambda content: contents.append(content) or split(content)
"""
LOADED = """
assert not said and first.mode == "compiled"
assert contents and not any(content.startswith(image.MAGIC) for content in contents)
"""


def run(program: str, folder: Path) -> None:
    file = folder / "program.py"
    file.write_text("import sys\n" + program)
    own = {"GRAPHC_COMPILE": "inline", "GRAPHC_CACHE_DIR": str(folder / "cache"), "GRAPHC_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **own},
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="another system is another reason")
def test_an_unknown_processor_interprets_and_says_so_once(tmp_path: Path) -> None:
    run(RISC + PROGRAM.replace("{change}", "") + INTERPRETED, tmp_path)


@pytest.mark.slow
def test_what_cannot_be_linked_is_loaded_by_llvm(tmp_path: Path) -> None:
    """By the linker of LLVM's that says what is wrong, instead of ending the process; on every processor."""
    run(PROGRAM.replace("{change}", FORGOTTEN) + LOADED, tmp_path)
