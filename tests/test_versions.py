"""Versions of NumPy, numba and llvmlite beyond those that graphc was tested with, faked: what importing and compiling
say, and that what can be computed is right.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphc
from graphc.startup import versions
from graphc.startup.hooks import ALIASES
from graphc.startup.versions import TESTED, version_of

PROJECT = Path(graphc.__file__).parent.parent / "pyproject.toml"
PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import graphc
for warning in said:
    print(warning.category.__name__, warning.filename == __file__, warning.message)
import graphc.tensor as T
x = T.dvector("x")
try:
    print(graphc.function([x], T.exp(x).sum())([0.0, 0.0, 0.0]))
except graphc.errors.CompileError as error:
    print("CompileError", error)
"""


def fake(folder: Path, package: str, version: str, without: str = "") -> None:
    """A package in a folder that is the one installed, but for its version; `without`: a file of it that is empty."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    real = Path(spec.origin).parent
    wanted = [Path(name) for name in versions.VERSION_FILES if (real / name).exists()][:1]
    changed = [*wanted, *([Path(without)] if without else [])]
    for path in real.iterdir():
        if path.name in {change.parts[0] for change in changed if len(change.parts) > 1}:
            (folder / package / path.name).mkdir(parents=True, exist_ok=True)
            for inner in path.iterdir():
                (folder / package / path.name / inner.name).symlink_to(inner)
        elif path.name not in {str(change) for change in changed}:
            (folder / package).mkdir(parents=True, exist_ok=True)
            (folder / package / path.name).symlink_to(path)
    text = (real / wanted[0]).read_text()
    (folder / package / wanted[0]).write_text(text.replace(version_of(package), version))
    if without:
        (folder / package / without).unlink(missing_ok=True)
        (folder / package / without).write_text("")


def run(folder: Path) -> list[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT.parent)])}
    environment |= {"GRAPHC_CACHE_DIR": str(folder / "cache"), "GRAPHC_PROGRESS": "0"}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_versions_are_those_that_the_package_declares() -> None:
    declared = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    ranges = {package: f"{package}>={first},<{end}" for package, (first, end) in TESTED.items()}
    assert {each for each in declared if re.split("[<>=]", each)[0] in ranges} == set(ranges.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "version"),
    [("numba", "0.59.1"), ("numba", "0.69.0rc1"), ("llvmlite", "0.44.0"), ("llvmlite", "0.51.0"), ("numpy", "3.0.0")],
)
def test_a_version_beyond_is_said_once_and_computes(package: str, version: str, tmp_path: Path) -> None:
    fake(tmp_path, package, version)
    wanted = "{}>={},<{}".format(package, *TESTED[package])
    command = f"{sys.executable} -m pip install '{wanted}'"
    assert run(tmp_path) == [
        f"RuntimeWarning True {package} {version} installed, but graphc works with {wanted}: {command}",
        "3.0",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "version", "without"),
    [("numba", "0.70.0", "core/typeinfer.py"), ("llvmlite", "0.40.1", "binding/newpassmanagers.py")],
)
def test_what_a_version_beyond_lacks_is_one_error(package: str, version: str, without: str, tmp_path: Path) -> None:
    fake(tmp_path, package, version, without)
    wanted = "{}>={},<{}".format(package, *TESTED[package])
    warning, error, *_ = run(tmp_path)
    sentence = warning.removeprefix("RuntimeWarning True ")
    assert sentence.startswith(f"{package} {version} installed") and wanted in sentence
    assert error.startswith("CompileError") and f": {sentence} (" in error


def test_versions_within_say_nothing() -> None:
    assert versions.wrong_versions() == ""


@pytest.mark.parametrize(
    "name",
    [
        "ir.frozen.FrozenArray", "layers.layer.Layer", "scipy.interpolate.bsplines.BSpline",
        "scipy.interpolate.grids.interp1d", "scipy.interpolate.piecewise.PPoly", "scipy.optimize.constraints.Bounds",
        "scipy.results.Result", "scipy.stats.multivariate.Vectors", "theano.made_ops.OpFromGraph",
    ],
)  # fmt: skip
def test_pickles_find_classes_where_they_were(name: str) -> None:
    module, _, member = name.rpartition(".")
    found = pickle.loads(f"cgraphc.{module}\n{member}\n.".encode())
    assert found.__module__ == f"graphc.{ALIASES[module]}" and found.__name__ == member
