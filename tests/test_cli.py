"""The command line, and that all modes agree on every graph of the bench list."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import bench, cli
from graphc.options import options
from release import __main__ as release

ROOT = Path(__file__).parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A compile cache with one entry."""
    folder = tmp_path / "cache"
    x = T.dvector("x")
    graphc.function([x], T.exp(x) * 3)  # what every function needs is compiled, and kept elsewhere
    with options.change(cache_dir=folder):
        graphc.function([x], T.exp(x) * 2, name="twice_exp")
    return folder


@pytest.mark.slow
def test_the_module_runs_the_command() -> None:
    command = [sys.executable, "-m", "graphc", "options"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "floatX = 'float64'" in done.stdout
    assert "GRAPHC_FLOATX" in done.stdout


@pytest.mark.slow
def test_the_version_is_one_everywhere() -> None:
    """On the command line, in the package and in what the package is built of."""
    command = [sys.executable, "-m", "graphc", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert said == f"graphc {graphc.__version__}\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    source = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text("utf-8")
    assert "version" in project["project"]["dynamic"]
    assert re.findall(r'(?m)^VERSION = "(.+)"$', source) == [graphc.__version__]
    assert re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"))[1] == graphc.__version__  # type: ignore[index]


def test_recipes_say_what_the_project_says() -> None:
    """The conda recipe requires what pyproject does, and the container copies what the wheel is made of."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    project, recipe = tomllib.loads(text)["project"], (ROOT / "release" / "conda" / "meta.yaml").read_text("utf-8")
    run = re.findall(r"(?m)^    - (.+)$", recipe[recipe.index("  run:") : recipe.index("\ntest:")])
    python, *others = (each.replace(" ", "") for each in run)
    assert python == f"python{project['requires-python']}" and others == project["dependencies"]
    assert f"name: {project['name']}\n" in recipe and f"graphc = {project['scripts']['graphc']}\n" in recipe
    assert f"license: {project['license']}\n" in recipe and project["description"] in recipe
    source = re.search(r'load_file="(.+?)", from_recipe_dir=True', recipe)
    pattern = re.search(r"regex_pattern='(.+?)'", recipe)
    assert source is not None and pattern is not None
    version = re.search(pattern[1], (ROOT / "release" / "conda" / source[1]).read_text("utf-8"))
    cited = re.search(r"(?m)^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"))
    assert version is not None and cited is not None and version[1] == cited[1] == graphc.__version__
    kept = re.findall(r"(?m)^!(.+)$", (ROOT / "release" / "Dockerfile.dockerignore").read_text("utf-8"))
    shared = tomllib.loads(text)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert set(kept) == {"graphc", "pyproject.toml", *project["license-files"], *shared}


def test_the_pages_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs"]) == 0
    listed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert {"jit", "glossary", "rooms/cache"} <= listed.keys()
    for name in ("rooms/cache", "docs/rooms/cache.md"):
        assert cli.main(["docs", name]) == 0
        assert capsys.readouterr().out == Path(listed["rooms/cache"]).read_text("utf-8")
    assert cli.main(["docs", "rooms/cash"]) == 2
    assert "no page is called 'rooms/cash'; there are benchmarks, branches" in capsys.readouterr().err


def test_help_names_pages_that_are_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """All pages that docstrings and messages name are there; a wheel takes all of docs/."""
    assert cli.main(["docs"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    sources = [path.read_text("utf-8") for path in (ROOT / "graphc").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"docs/([\w/]+)\.md", text)}
    assert named >= {"jit", "numerics"}
    assert named <= listed
    shared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert shared["shared-data"]["docs"] == "share/doc/graphc/docs"


def test_the_texts_of_a_release_are_of_one_version() -> None:
    release.check_texts()


def test_cache_is_listed_shown_measured_and_emptied(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with options.change(cache_dir=folder):
        assert cli.main(["cache", "list"]) == 0
        key, *_, name = capsys.readouterr().out.split()
        assert name == "twice_exp"
        assert cli.main(["cache", "size"]) == 0
        assert int(capsys.readouterr().out.split()[0]) > 1000
        assert cli.main(["show", key]) == 0
        assert "def kernel(x" in capsys.readouterr().out
        assert cli.main(["show", name, "graph"]) == 0
        assert "exp" in capsys.readouterr().out
        assert cli.main(["cache", "prune", "--older", "1h", "--larger", "5M"]) == 0
        assert capsys.readouterr().out.startswith("0 entries removed")
        assert cli.main(["cache", "prune"]) == 2 and "wants --older" in capsys.readouterr().err
        program = folder.parent / "ends.py"
        program.write_text("import graphc\n\ngraphc.jit(lambda x: x + 41)(1.0)\nraise SystemExit(3)\n")
        assert cli.main(["cache", "why", str(program)]) == 1
        told = capsys.readouterr()
        assert "0 of 1 kernels" in told.out and "ends.py ended with code 3" in told.err
        program.write_text("import graphc\n\n\ndef fail():\n    raise KeyError(7)\n\n\nfail()\n")
        assert cli.main(["cache", "why", str(program)]) == 1
        assert "ends.py:5: KeyError: 7" in capsys.readouterr().err
        assert (cli.days("12h"), cli.days("30d"), cli.days("2"), cli.amount("1.5k"), cli.amount("7")) == (
            0.5,
            30,
            2,
            1536,
            7,
        )
        assert cli.main(["cache", "clear"]) == 0
        assert capsys.readouterr().out.startswith("1 entries removed")
        assert cli.main(["show", key]) == 2
        assert "no entries have the name" in capsys.readouterr().err


@pytest.mark.slow
def test_bench_prints_a_line_for_each_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "chain-100", "--repeat", "1"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["graph", "build", "cold", "warm", "compiled"]
    assert line.startswith("chain-100 ")
    assert "x" in line


def test_bench_says_when_modes_disagree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    times = {"compiled": 1e-6, "interpreted": 2e-3}
    peaks = {"compiled": 1e6, "interpreted": 3e6}
    results = [bench.Result("one", 0.001, 0.3, 0.002, times, peaks, 1e-3)]
    monkeypatch.setattr(bench, "measure", lambda names, repeat: results)
    assert cli.main(["bench"]) == 1
    captured = capsys.readouterr()
    assert "modes disagree" in captured.err
    assert captured.out.splitlines()[1].split() == (
        "one 1 ms 300 ms 2 ms 1 us 2 ms - 2000.0x 1.0 MB 3.0 MB 1e-03".split()
    )


@pytest.mark.parametrize(
    ("arguments", "message"), [(["nothing"], "no workload nothing"), (["--repeat", "0"], "one round")]
)
def test_bench_refuses_what_it_cannot_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_failing_workload_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = bench.Workload("broken", bench.WORKLOADS["chain-100"].build, bench.WORKLOADS["chain-100"].arguments)
    monkeypatch.setitem(bench.WORKLOADS, "broken", broken)
    assert cli.main(["bench", "broken"]) == 2  # its process does not know it
    assert "workload broken failed" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", bench.WORKLOADS)
def test_modes_agree_on_every_graph(name: str) -> None:
    workload = bench.WORKLOADS[name]
    arguments = workload.arguments(np.random.default_rng(2))
    modes = ["interpreted", "compiled", *(["python"] if workload.small else [])]
    answers = [[call(*arguments) for _ in range(2)] for call, *_ in (bench.make(workload, mode) for mode in modes)]
    for other in answers[1:]:
        assert 0 <= bench.compare(other, answers[0]) <= cli.TOLERANCE


def test_compare_sees_every_difference() -> None:
    one = np.array([1.0, -4.0])
    assert bench.compare([[one]], [[one]]) == 0
    assert bench.compare([[one]], [[np.array([1.0, -4.001])]]) == pytest.approx(1e-3 / 4, rel=1e-3)
    assert bench.compare([[one]], [[one.astype("float32")]]) == -1
    assert bench.compare([[one]], [[one[:1]]]) == -1
    nan = np.array([1.0, np.nan])
    assert bench.compare([[nan]], [[nan]]) == 0
    assert bench.compare([[one]], [[nan]]) == np.inf


@pytest.mark.slow
def test_peak_memory_counts_what_is_held_for_a_moment() -> None:
    before = bench.peak_memory(reset=True)
    np.ones(20_000_000).sum()
    assert 150e6 < bench.peak_memory() - before < 170e6


def test_saved_functions_are_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For Python, of each kind of file; C's files are test_exported.py's."""
    x = T.dvector("x")
    path, place = str(tmp_path / "f.graphc"), str(tmp_path / "out" / "twice")
    graphc.function([x], x * 2, mode="interpreted").save(path)
    assert cli.main(["export", path, place, "--language", "python"]) == 0
    assert capsys.readouterr().out == f"{place}.py\n"
    made = runpy.run_path(f"{place}.py")
    assert made["twice"]([1, 2.5]).tolist() == [2.0, 5.0]

    jitted = graphc.jit(lambda x: x + 1, mode="interpreted")
    jitted(np.ones(2))
    jitted(np.ones((2, 2)))
    jitted.save(str(tmp_path / "j.graphc"))
    command = ["export", str(tmp_path / "j.graphc"), place, "--language", "python"]
    assert cli.main([*command, "--part", "1"]) == 0
    assert runpy.run_path(f"{place}.py")["twice"](np.ones((1, 2))).tolist() == [[2.0, 2.0]]
    wrong = [
        (command, "there are the parts 0: "),
        ([*command, "--part", "2"], "name one of them, not '2'"),
        (["export", path, place, "--target", "pdp11"], "target='pdp11': must be one of"),
        (["export", path, place, "--language", "python", "--blas"], "target, blas and strided are for language='c'"),
        (["export", str(tmp_path / "none"), place], "No such file"),
    ]
    capsys.readouterr()
    for arguments, words in wrong:
        assert cli.main(arguments) == 2
        assert words in capsys.readouterr().err
