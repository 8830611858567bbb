"""The benchmark suite: every workload is right in graphc, interpreted and NumPy, and results become a report.

Nothing here needs the peers or measures time; the numba kernels are compared where the benchmarks run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.dom import minidom

import numpy as np
import pytest

from benchmarks import __main__ as command, against, fits
from benchmarks.bridge import __main__ as bridge
from benchmarks.figures import Target, best_framework, copy_bandwidth, figure, ratio, share_of_copy, targets, work_rate
from benchmarks.libraries import PEERS, load
from benchmarks.plots import draw_ratios, draw_sizes
from benchmarks.report import SECTIONS, times, with_section, write_report, write_section
from benchmarks.runner import ROOT, Plan, Results, Samples, groups, is_wanted, run, run_compiled, run_process
from benchmarks.sampling import sample
from benchmarks.suite import COMPILED_FIRST, QUICK, SIZED, SIZED_WORKLOAD, SMALL, WORKLOADS, builder, family
from benchmarks.workload import Data, Program, answers, difference, reference
from graphc.options import options

NUMPY = load(PEERS["numpy"])

# --- the workloads ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["graphc", "interpreted", "numpy"])
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "copy"])
def test_every_workload_is_right_in_small(name: str, peer: str) -> None:
    workload, library = WORKLOADS[name], load(PEERS[peer])
    data = workload.make(workload.small)
    program = builder(workload, PEERS[peer].kind)(library, data)
    found = answers(program, data.arguments, program.call(*data.arguments), workload.summary)
    expected = reference(workload, NUMPY, workload.small)
    assert difference(found, expected) <= workload.allowed
    assert all(np.any(array != 0) for results in expected[:3] for array in results)


@pytest.mark.parametrize("name", WORKLOADS)
def test_inputs_are_seeded_and_of_the_dtype(name: str) -> None:
    workload = WORKLOADS[name]
    first, second = workload.make(workload.small), workload.make(workload.small)
    for one, other in zip([*first.arguments, *first.state], [*second.arguments, *second.state], strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype in (workload.dtype, "int64")


def test_every_kind_of_peer_builds_a_workload_or_is_said_to_be_absent() -> None:
    for workload in WORKLOADS.values():
        told = set(workload.builders) | set(workload.absent) - {"numba", "pytensor"}
        assert {"numpy", "symbolic", "jax", "torch"} == told
        assert family(workload.name) in builder(workload, "numpy").__module__
    chosen = {*QUICK, *SMALL, *COMPILED_FIRST, SIZED_WORKLOAD}
    assert chosen <= set(WORKLOADS)
    assert set(SIZED) <= set(PEERS)


def test_a_wrong_answer_is_told_from_a_right_one() -> None:
    right = [[np.array([1.0, 2.0]), np.array(3.0)]]
    assert difference(right, right) == 0
    assert difference([[np.array([1.0, 2.002]), np.array(3.0)]], right) == pytest.approx(1e-3)
    assert difference([[np.array([1.0, np.nan]), np.array(3.0)]], right) == np.inf
    assert difference([[np.array([1.0]), np.array(3.0)]], right) == np.inf
    assert difference([[np.array([1.0, 2.0])]], right) == np.inf


def test_answers_tell_whether_the_state_changed() -> None:
    state = np.zeros(2)

    def call(x: np.ndarray) -> np.ndarray:
        np.add(state, x, out=state)
        return state

    found = answers(Program(call, lambda: (state,)), [np.ones(2)], call(np.ones(2)))
    assert [results[0][0] for results in found] == [1, 2, 3, 3]


# --- measuring --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_measures_and_its_answers_are_checked(tmp_path: Path) -> None:
    found = run_process(PEERS["graphc"], "xor-step", Plan("", seconds=0.01), str(tmp_path), True)
    figures = {"first", "steady", "best", "peak", "difference", "import", "process"}
    assert figures | {"compile", "nests"} == set(found)
    assert 0 < found["best"] <= found["steady"] < found["first"] < found["process"]
    assert found["import"] < found["process"]
    assert any(tmp_path.iterdir())  # what was compiled
    assert set(run_process(PEERS["graphc"], "xor-step", Plan("", seconds=0.01), str(tmp_path), True)) == figures


def test_a_process_that_fails_leaves_a_message_and_takes_no_more_turns(tmp_path: Path) -> None:
    samples: Samples = {}
    said: list[str] = []
    missing = Plan(str(tmp_path / "no-python"))
    with pytest.raises(FileNotFoundError):
        run(["jax"], ["xor-step"], missing, samples, said.append)
    samples = {}
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho here is why >&2\nexit 3\n", encoding="utf-8")
    script.chmod(0o755)
    run(["jax"], ["xor-step"], Plan(str(script)), samples, said.append)
    assert samples["xor-step"]["jax"] == {"cold": [], "warm": [], "failed": "here is why"}
    assert said == ["xor-step                 us: jax failed"]


@pytest.mark.slow
def test_a_sample_can_be_of_another_size() -> None:
    found = sample("numpy", SIZED_WORKLOAD, 0.001, True, (10,))
    assert found["difference"] == 0
    assert found["best"] > 0


def test_only_what_is_missing_is_measured() -> None:
    plan = Plan("", warms=2)
    assert is_wanted(None, plan)
    assert is_wanted({"cold": [{}], "warm": [{}]}, plan)
    assert is_wanted({"cold": [], "warm": [], "failed": "why"}, plan)
    assert not is_wanted({"cold": [{}], "warm": [{}, {}]}, plan)
    assert is_wanted({"cold": [{}], "warm": [{}, {}]}, Plan("", warms=2, again=True))


@pytest.mark.slow
def test_what_is_measured_again_replaces_what_was_there(tmp_path: Path) -> None:
    old = {"steady": 1e9, "process": 1e9}
    samples: Samples = {"overhead-two": {"numpy": {"cold": [old], "warm": [old, old]}}}
    plan = Plan("", colds=2, warms=1, seconds=0.001, again=True)
    run(["numpy"], ["overhead-two"], plan, samples, lambda line: None)
    record = samples["overhead-two"]["numpy"]
    assert (len(record["cold"]), len(record["warm"])) == (2, 1)
    assert all(one["steady"] < 1e9 for rounds in record.values() for one in rounds)


def test_every_cold_round_has_an_empty_cache_and_warm_rounds_the_last_of_them(tmp_path: Path) -> None:
    """The peer's Python is a script that notes what it finds in its cache and leaves a file there."""
    notes, script = tmp_path / "notes", tmp_path / "python"
    script.write_text(
        f"""#!/bin/sh
ls "$JAX_COMPILATION_CACHE_DIR" | wc -l >> {notes}
touch "$JAX_COMPILATION_CACHE_DIR/$$"
echo '{{"steady": 1.0}}'
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    run(["jax"], ["xor-step"], Plan(str(script), colds=2, warms=3), {}, lambda line: None)
    assert notes.read_text(encoding="utf-8").split() == ["0", "0", "1", "2", "3"]


def test_rounds_of_what_is_compared_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer's Python is a script that notes what it is asked for."""
    notes, script = tmp_path / "notes", tmp_path / "python"
    script.write_text(f"""#!/bin/sh\necho $5 >> {notes}\necho '{{"steady": 1.0}}'\n""", encoding="utf-8")
    script.chmod(0o755)
    names = ["overhead-two", "memory-chain", "xor-step"]
    assert groups([*names, "copy"]) == [("overhead-two",), ("memory-chain", "copy"), ("xor-step",)]
    samples: Samples = {}
    monkeypatch.setattr("benchmarks.runner.TOGETHER", ("memory-chain", "xor-step"))
    run(["jax"], names, Plan(str(script), colds=1, warms=1), samples, lambda line: None)
    assert notes.read_text(encoding="utf-8").split() == ["overhead-two"] * 2 + ["memory-chain", "xor-step"] * 2
    assert all(len(record["jax"]["warm"]) == 1 for record in samples.values())


def test_the_share_of_a_copy_is_that_of_rounds_in_turn() -> None:
    """A machine whose memory is twice as fast in one round: the same share in both."""
    fast, slow = ({"cold": [], "warm": [{"steady": time}, {"steady": 2 * time}]} for time in (0.002, 0.001))
    results = Results(samples={"memory-chain": {"graphc": fast}, "copy": {"numpy": slow, "numba": {"failed": "why"}}})
    found = share_of_copy(results)
    assert found is not None and found[2] == pytest.approx(192e6 / 128e6 / 2)
    assert share_of_copy(Results()) is None


def test_out_of_time_no_workload_begins() -> None:
    samples: Samples = {}
    said: list[str] = []
    run(["graphc"], ["xor-step"], Plan("", end=0.0), samples, said.append)
    assert (samples, said) == ({}, ["out of time before xor-step"])


def test_what_torch_compiles_best_comes_first_within_its_budget() -> None:
    said: list[str] = []
    run_compiled(["dot-256", "xor-step", "black-scholes"], Plan("", end=0.0), 9.0, {}, said.append)
    assert said == ["out of time before black-scholes"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="there is no workload nonsense; there are overhead-scalar, "):
        command.chosen("workload", ["nonsense"], list(WORKLOADS))
    assert command.available(["graphc", "jax"], Path("no/such/python")) == ["graphc"]


# --- the report -------------------------------------------------------------------------------------------------------


def made_up(steady: dict[str, dict[str, float]]) -> Results:
    """Results with these steady times; a cold start takes 10 times its peer's number, a warm one that number."""
    samples: Samples = {}
    for name, peers in steady.items():
        for peer, seconds in peers.items():
            number = 1.0 + list(PEERS).index(peer)
            one = {"steady": seconds, "best": seconds, "peak": 8e6, "import": 0.1}
            one |= {"first": number / 2, "process": number}
            cold = {**one, "first": 5 * number, "process": 10 * number}
            samples.setdefault(name, {})[peer] = {
                "cold": [cold],
                "warm": [one, {**one, "steady": 9 * seconds}, {**one, "steady": seconds / 9}],
            }
    machine = {"processor": "a processor", "cores": "2", "memory": "8 GiB", "system": "Linux", "python": "3.11"}
    return Results(machine, {"own": {"numpy": "2.4"}}, samples, {"graphc": {"10": 1e-6, "100": 2e-6}})


RESULTS = made_up(
    {
        "overhead-two": {"graphc": 1e-7, "numpy": 4e-7},
        "overhead-three": {"graphc": 1e-7, "numpy": 8e-7},
        "memory-chain": {"graphc": 0.020, "numpy": 0.1, "jax": 0.06, "torch": 0.2},
        "copy": {"numpy": 0.016, "numba": 0.0128},
        "xor-step": {"graphc": 1e-6, "numba": 5e-7, "jax": 4e-6, "pytensor": 3e-6},
        "dot-256": {"graphc": 0.001, "numpy": 0.00096, "jax": 0.0008},
    }
)


def target(text: str) -> Target:
    return next(target for target in targets(RESULTS) if target.text.startswith(text))


def test_figures_are_medians_and_ratios_to_graphc() -> None:
    assert figure(RESULTS, "xor-step", "jax", "steady") == 4e-6
    assert figure(RESULTS, "xor-step", "torch", "steady") is None
    assert ratio(RESULTS, "xor-step", "jax", "steady") == pytest.approx(4)
    assert ratio(RESULTS, "xor-step", "jax", "process", "cold") == pytest.approx(5)
    best = best_framework(RESULTS, "xor-step")
    assert best is not None
    assert best[0] == pytest.approx(3)
    assert best[1] == "pytensor"
    assert best_framework(RESULTS, "copy") is None
    assert copy_bandwidth(RESULTS) == pytest.approx(128e6 / 0.0128)
    assert work_rate(RESULTS, "dot-256", "graphc") == pytest.approx(2 * 256**3 / 0.001)


def test_targets_are_reached_or_not() -> None:
    least = target("best framework / graphc, least")
    assert least.value == pytest.approx(0.8)
    assert (least.reached, least.note) == (False, "dot-256 (jax 0.80)")
    mean = target("best framework / graphc, geometric")
    assert mean.value == pytest.approx((3 * 3 * 0.8) ** (1 / 3))
    assert target("graphc / numba").value == pytest.approx(2)
    assert target("graphc / numba").note == "xor-step 2.00"
    assert target("memory chain").value == pytest.approx((192e6 / 0.020) / (128e6 / 0.0128))
    assert target("np.dot / graphc, dot-256").reached
    assert target("np.dot / graphc, dot-1024").reached is None
    assert target("three vectors").value == pytest.approx(0.25)
    assert target("XOR step").value == pytest.approx(2.5)
    assert target("cold start, JAX").value == pytest.approx(5)
    assert target("warm start, PyTensor").reached


def test_the_cost_of_a_nest_is_beyond_that_of_a_function() -> None:
    results = made_up({name: {"graphc": 1e-6} for name in ("dot-256", "xor-step", "memory-chain")})
    for name, seconds, nests in (("dot-256", 0.02, 1.0), ("xor-step", 0.14, 12.0), ("memory-chain", 0.06, 1.0)):
        results.samples[name]["graphc"]["cold"][0] |= {"compile": seconds, "nests": nests}
    found = next(target for target in targets(results) if target.text.startswith("compiling"))
    assert found.value == pytest.approx(40)
    assert (found.reached, found.note) == (False, "memory-chain 40")
    assert "| xor-step | 140 ms | 12 | 10 ms |" in write_report(results)
    assert target("compiling").reached is None


@pytest.mark.slow
def test_what_was_compiled_is_compiled_again_to_see_how_long_that_takes() -> None:
    with options.change(cache=False):
        found = sample("graphc", SIZED_WORKLOAD, 0.001, False, (10,))
    assert found["nests"] == 1 and 0 < found["compile"] < 60
    assert "compile" not in sample("numpy", SIZED_WORKLOAD, 0.001, False, (10,))


def test_the_report_names_every_workload_where_graphc_is_not_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.reasons.REASONS", {("xor-step", "numba"): "a made-up reason"})
    text = write_report(RESULTS)
    assert "| xor-step | numba (limit) | 2.00 | a made-up reason |" in text
    assert "| dot-256 | jax (framework) | 1.25 | no reason found yet |" in text
    assert "| dot-256 | numpy (library) | 1.04 | no reason found yet |" in text
    assert "| memory-chain | 20 ms | 5.00 | - | 3.00 | - | 10 |" in text
    assert "a processor, 2 cores, 8 GiB, Linux, Python 3.11" in text
    assert "- Gaussian process: " in text
    assert "## Failed" not in text


def test_what_failed_is_in_the_report_and_in_no_ratio() -> None:
    results = made_up({"xor-step": {"graphc": 1e-6, "jax": 1e-7}})
    results.samples["xor-step"]["jax"]["failed"] = "wrong: differs by 1e-3"
    text = write_report(results)
    assert "- jax, xor-step: wrong: differs by 1e-3" in text
    assert "Nowhere.\n" in text


def test_a_report_of_nothing_is_made() -> None:
    assert "not measured" in write_report(Results())


def test_ratios_below_one_stand_out() -> None:
    assert [times(value) for value in (None, 0.5, 1.234, 56.7)] == ["-", "**0.50**", "1.23", "57"]


@pytest.mark.slow
@pytest.mark.parametrize("results", [RESULTS, Results()], ids=["some", "none"])
def test_plots_are_drawn(results: Results, tmp_path: Path) -> None:
    draw_ratios(results, tmp_path / "ratios.png")
    draw_sizes(results, tmp_path / "sizes.png")
    assert all((tmp_path / name).read_bytes()[:4] == b"\x89PNG" for name in ("ratios.png", "sizes.png"))


@pytest.mark.slow
def test_the_command_writes_a_report_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps(RESULTS.as_json()), encoding="utf-8")
    command.main(["--report", "--results", str(file), "--docs", str(tmp_path)])
    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8") == write_report(RESULTS)


LOOPS = made_up({"garch-gradient": {"graphc": 1e-5, "numba": 8e-6, "jax": 4e-5}, "xor-step": {"graphc": 1e-6}})


def test_loops_have_a_section() -> None:
    text = write_section(LOOPS, SECTIONS["loops"])
    assert "| garch-gradient | 10 us | 1.00 | **0.80** | 4.00 |" in text and "xor-step" not in text
    assert "| short steps: JAX and PyTensor / graphc, least | 4.00 | at least 5 | not reached |" in text
    assert text in write_report(LOOPS)
    assert not write_section(RESULTS, SECTIONS["loops"])


@pytest.mark.slow
def test_the_section_of_loops_is_written_alone(tmp_path: Path) -> None:
    file, report = tmp_path / "results.json", tmp_path / "benchmarks.md"
    file.write_text(json.dumps(LOOPS.as_json()), encoding="utf-8")
    report.write_text("# Title\n\n## One\n\na\n\n## Loops\n\nold\n\n### Part\n\n## Last\n\nb\n", encoding="utf-8")
    command.main(["--report", "--section", "loops", "--results", str(file), "--docs", str(tmp_path)])
    section = write_section(LOOPS, SECTIONS["loops"])
    written = f"# Title\n\n## One\n\na\n\n{section}\n## Last\n\nb\n"
    assert report.read_text(encoding="utf-8") == written
    assert with_section(written, section) == written
    assert with_section("# Title\n", "## New\n\nc\n") == "# Title\n\n## New\n\nc\n"


@pytest.mark.slow
def test_two_checkouts_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    against.main([str(ROOT), "overhead-two", "--rounds", "1", "--seconds", "0.01"])
    name, here, there, ratio, *_ = capsys.readouterr().out.splitlines()[1].split()
    assert name == "overhead-two" and float(ratio) == pytest.approx(float(here) / float(there), rel=0.1)


def test_what_is_slower_than_in_the_other_checkout_is_marked() -> None:
    fast, slow = ([{"best": 9.0, "first": 1.0}, {"best": best, "first": 9.0}] for best in (1e-6, 2e-6))
    assert against.line("w", (slow, fast)).split() == ["w", "2.000", "1.000", "2.000", "cold", "1.00", "<"]
    assert "<" not in against.line("w", (fast, slow))
    assert against.line("w", ([{"failed": "no memory"}], fast)).endswith("failed: no memory")


def test_data_is_converted_array_by_array() -> None:
    data = Data((np.ones(2),), (np.zeros(3),)).map(lambda array: array + 1)
    assert [array.tolist() for array in (*data.arguments, *data.state)] == [[2, 2], [1, 1, 1]]


def test_the_table_and_the_picture_of_pymcs_models(tmp_path: Path) -> None:
    one = {"density cold graphc": {"first": 0.5}, "density cold pytensor": {"first": 10.0}}
    figures: Any = {
        "radon": {**one, "sample cold graphc": {"sample": 2.0}, "sample cold pytensor": {"failed": "no memory"}}
    }
    lines = bridge.table(figures).splitlines()
    assert "| radon | 0.50 s / 10.00 s = 20.0 | - | - | - |" in lines and "| mixture | - | - | - | - |" in lines
    picture = bridge.picture(figures)
    root = minidom.parseString(picture).documentElement
    assert root is not None and root.tagName == "svg"
    assert picture.count("radon") == 1 and "nutpie" not in picture
    page = tmp_path / "pymc.md"
    page.write_text(f"before\n{bridge.BEGIN}old\n{bridge.END}after\n", encoding="utf-8")
    bridge.write(figures, tmp_path)
    bridge.write(figures, tmp_path)
    assert page.read_text(encoding="utf-8") == f"before\n{bridge.BEGIN}{bridge.table(figures)}{bridge.END}after\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", fits.FITS)
def test_gradients_by_hand_are_those_of_the_fits(name: str) -> None:
    """By differences of 1e-5, whose error is about 1e-10 of the third derivative and 1e-11 of the value."""
    fit = fits.FITS[name]
    data = fit.make()
    start = fits.flattened(fit.start) + 0.1
    way = np.cos(np.arange(start.size))
    up, down = (fit.by_hand(start + step * way, *data)[0] for step in (1e-5, -1e-5))
    value, slope = fit.by_hand(start, *data)
    np.testing.assert_allclose(slope @ way, (up - down) / 2e-5, rtol=1e-5, atol=1e-9 * abs(value))
    alone = fits.value_alone(fit, data)(start)
    np.testing.assert_allclose(value, alone, rtol=1e-10)
