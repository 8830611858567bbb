"""The documents say what is so: programs print what is said, the changes of the first day work as written.

With GRAPHC_UPDATE=1 in the environment, outputs and the generated source are brought up to date instead.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from benchmarks.front import PANELS, ratios, with_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
FIRST_DAY = ROOT / "docs" / "first_day.md"
SOURCE = ROOT / "docs" / "source.md"
PAGES = "how_it_works.md loops.md branches.md jit.md numpy.md nets.md random.md complex.md scipy.md sparse.md layers.md"
PROGRAMS = [ROOT / "docs" / name for name in PAGES.split()]
CHAPTERS = [
    ROOT / "docs" / "tutorial" / f"{name}.md" for name in "curve likelihood network equation kalman numpy ship".split()
]
"""Of the tutorial; tests/bridge has the one of PyMC."""
ROOMS = [ROOT / "docs" / "rooms" / f"{name}.md" for name in "functions graph loopir lower ops random schedule".split()]


def find_block(document: Path, label: str) -> re.Match[str]:
    """The code block below the comment `<!-- label -->`: group 2 is its content."""
    found = re.search(rf"(<!-- {label} -->\n```\w+\n)(.*?)```", document.read_text("utf-8"), re.DOTALL)
    assert found, f"{document.name} has no block {label!r}"
    return found


def block(document: Path, label: str) -> str:
    return find_block(document, label)[2]


def check_block(document: Path, label: str, content: str) -> None:
    found = find_block(document, label)
    if os.environ.get("GRAPHC_UPDATE"):
        text = document.read_text("utf-8")
        document.write_text(text[: found.start(2)] + content + text[found.end(2) :], "utf-8")
    else:
        assert content == found[2]


@pytest.fixture(scope="module")
def program() -> tuple[str, dict[str, Any]]:
    """What README's program prints, and its variables at the end."""
    variables: dict[str, Any] = {"__name__": "readme"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found = find_block(README, "program")
        before = README.read_text("utf-8")[: found.start(2)].count("\n")
        exec(compile("\n" * before + found[2], str(README), "exec"), variables)
    return printed.getvalue(), variables


def test_the_program_prints_what_is_said(program: tuple[str, dict[str, Any]]) -> None:
    check_block(README, "output", program[0])


def test_the_program_of_plain_functions_prints_what_is_said(program: tuple[str, dict[str, Any]]) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block(README, "plain"), f"{README} (plain)", "exec"), program[1])
    check_block(README, "plain output", printed.getvalue())


def test_the_source_is_the_one_generated(program: tuple[str, dict[str, Any]]) -> None:
    check_block(SOURCE, "source", program[1]["step"].source)


def test_readme_is_short_and_has_the_figures_of_the_last_run() -> None:
    readme = README.read_text("utf-8")
    assert readme.count("\n") <= 120
    assert with_table(readme, (ROOT / "docs" / "benchmarks.md").read_text("utf-8")) == readme


def test_the_picture_has_every_peer_of_the_report() -> None:
    report = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for table, _ in PANELS:
        found = ratios(report, table)
        assert {"numpy", "jax", "pytensor", "torch"} <= set(found)
        assert all(len(values) > 20 and min(values) > 0 for values in found.values())
    assert ratios(report, "Empty cache") != ratios(report, "Warm cache")


def test_the_program_learns_what_it_was_given(program: tuple[str, dict[str, Any]]) -> None:
    variables = program[1]
    guessed = np.sign(variables["data"] @ variables["w"].get_value() + variables["b"].get_value())
    assert (guessed == variables["labels"]).mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_the_programs_of_a_page_print_what_is_said(page: Path, mode: str) -> None:
    check_programs(page, mode)


@pytest.mark.slow
@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_the_programs_of_a_chapter_print_what_is_said(page: Path) -> None:
    """Compiled alone: interpreted, a sampler and a solver take ten times as long."""
    check_programs(page, "compiled")


@pytest.mark.parametrize("page", ROOMS, ids=lambda page: page.stem)
def test_the_example_of_a_room_prints_what_is_said(page: Path) -> None:
    check_programs(page, "interpreted")


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "howto").glob("*.md")), ids=lambda page: page.stem)
def test_the_programs_of_a_problem_print_what_is_said(page: Path) -> None:
    finders = [*sys.meta_path]
    try:
        check_programs(page, "interpreted")
    finally:  # one installs graphc as Theano
        sys.meta_path[:] = finders
        for name in [name for name in sys.modules if name.partition(".")[0] == "theano"]:
            del sys.modules[name]


@pytest.mark.slow
def test_the_program_for_other_callers_prints_what_is_said() -> None:
    """Compiled alone: an interpreted function has no address."""
    check_programs(ROOT / "docs" / "callers.md", "compiled")


WITH_SOURCE = "insertion"
"""The program whose source is read, as that of a file is."""


def check_programs(page: Path, mode: str) -> None:
    variables: dict[str, Any] = {}
    for label in re.findall(r"<!-- (\w+) -->\n```python", page.read_text("utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed, graphc.options.change(mode=mode):
            source = block(page, label)
            if label == WITH_SOURCE:
                linecache.cache[page.name] = len(source), None, source.splitlines(keepends=True), page.name
            exec(compile(source, page.name, "exec"), variables)
            linecache.cache.pop(page.name, None)
        check_block(page, f"{label} output", printed.getvalue())


def test_every_file_that_is_linked_exists() -> None:
    for document in (README, CONTRIBUTING, ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"


def test_the_line_names_functions_where_they_are() -> None:
    lines = [line for mark in ("line", "where") for line in block(ROOT / "docs" / "design.md", mark).splitlines()]
    named = [found.groups() for line in lines if (found := re.search(r"(\w+) +([a-z_/]+\.py)", line))]
    assert len(named) > 50
    for name, file in named:
        text = (ROOT / "graphc" / file).read_text("utf-8")
        assert re.search(rf"^ *(def|class) {name}\b", text, re.MULTILINE), f"{file} has no {name}"


def insert_before(path: Path, mark: str, text: str) -> None:
    content = path.read_text("utf-8")
    assert content.count(mark) == 1, f"{path.name} has no unique line {mark!r}"
    path.write_text(content.replace(mark, text + mark), "utf-8")


USE = """
import numpy as np
import graphc
import graphc.tensor as T
from graphc.ir.node import FUNCTIONS

x = T.dvector("x")
y = FUNCTIONS["exp10"](x)
f = graphc.function([x], [y, graphc.grad(y.sum(), x), T.logaddexp(x, 0)])
values = np.array([0.5, 2.0])
power, slope, softplus = f(values)
np.testing.assert_allclose(power, 10**values, rtol=1e-12)
np.testing.assert_allclose(slope, np.log(10) * 10**values, rtol=1e-12)
np.testing.assert_allclose(softplus, np.log1p(np.exp(values)), rtol=1e-12)
assert "logaddexp_of_zero" in f.explain()
"""


OPS, CODEGEN = "graphc/ops", "graphc/codegen"
PLACES = (
    ("op", f"{OPS}/scalar.py", '_unary("expm1", '),
    ("rule", "graphc/rewrite/stable.py", "    # sigmoids\n"),
    ("pass", f"{CODEGEN}/transform/simplify.py", "def name_once("),
    ("step", f"{CODEGEN}/transform/simplify.py", '    ("unroll_once", '),
    ("routine", f"{OPS}/linalg/equations.py", "# --- constant diagonals"),
    ("native routine", f"{CODEGEN}/lapack/equations.py", "# --- constant diagonals"),
    ("native row", f"{CODEGEN}/lapack/equations.py", '    "toeplitz_solve": '),
)
"""The blocks of the page, each with the file and the line before which it goes."""


@pytest.mark.slow
def test_the_changes_of_the_first_day_work_as_written(tmp_path: Path) -> None:
    """In a copy of the sources, where the tests that the page promises run."""
    for name in ("graphc", "tests", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for label, file, mark in PLACES:
        gap = "" if label in ("op", "rule", "step", "native row") else "\n\n"
        insert_before(tmp_path / file, mark, block(FIRST_DAY, label) + gap)
    insert_before(tmp_path / OPS / "__init__.py", ' triangular_sylvester"', " tridiagonal_solve")
    cases = tmp_path / "tests/codegen/transform/passes/drop_empty_loops.txt"
    cases.write_text(block(FIRST_DAY, "cases"), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, env=environment, check=True)
    tests = ["ops/test_scalar_ops.py", "programs/test_modes.py", "rewrite/test_rewrite.py", "test_autodiff.py"]
    tests += ["codegen/transform/test_loop_passes.py", "codegen/transform/test_executed_passes.py"]
    words = "exp10 or logaddexp_of_zero or drop_empty_loops or tridiagonal"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", words]
    command += [f"tests/{name}" for name in tests]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout
    assert passed and int(passed[1]) >= 20


def test_every_file_that_is_named_exists() -> None:
    """In documents from the root, from graphc or from its code generator; in docstrings beside the file as well."""
    for text in (README, CONTRIBUTING, *(ROOT / "docs").rglob("*.md"), *(ROOT / "graphc").rglob("*.py")):
        places = (ROOT, ROOT / "graphc", ROOT / "graphc" / "codegen")
        for name in re.findall(r"(?:[a-z_]+/)+[a-z_]+\.pyi?\b", text.read_text("utf-8")):
            assert any((place / name).exists() for place in places), f"{text.name} names {name}"


def test_every_module_that_a_docstring_names_exists() -> None:
    """A package's docstring names modules of its own folder; other modules, any of graphc. Listings are no names."""
    files = sorted((ROOT / "graphc").rglob("*.py"))
    names = {path.name for path in files}
    missing = []
    for path in files:
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        docstring = "\n".join(line for line in docstring.splitlines() if not line.startswith("    "))
        for name in re.findall(r"(?<![\w/.`(])[a-z_]{2,}\.py\b(?!:\d)", docstring):
            inside = (path.parent / name).exists()
            if not inside and (path.name == "__init__.py" or name not in names):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []
