"""`python -m benchmarks`: measure peers, write the report.

In: arguments, see --help. Out: a file of results, which is extended when it is there, `docs/benchmarks.md` and plots;
of a whole report README's figures and picture too.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from benchmarks.front import write_front
from benchmarks.libraries import PEERS
from benchmarks.machine import describe_machine, read_versions
from benchmarks.plots import draw_ratios, draw_sizes
from benchmarks.report import SECTIONS, with_section, write_report, write_section
from benchmarks.runner import ROOT, Plan, Results, run, run_compiled, run_sizes
from benchmarks.suite import QUICK, SIZED, WORKLOADS

DEFAULT = [name for name in PEERS if name != "torch-compiled"]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("workloads", nargs="*", help=f"all where none is named: {', '.join(WORKLOADS)}")
    made.add_argument("--peers", default=",".join(DEFAULT), help=f"of {', '.join(PEERS)} (all but torch-compiled)")
    made.add_argument("--python", default="benchmarks/.venv/bin/python", help="the peers' Python (of make bench-env)")
    made.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results.json", help="file to extend")
    made.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the report and its plots")
    made.add_argument("--colds", type=int, default=2, help="processes of each pair with an empty cache (2)")
    made.add_argument("--warms", type=int, default=3, help="processes of each pair with what those left (3)")
    made.add_argument("--seconds", type=float, default=0.3, help="to spend on calls in each process (0.3)")
    made.add_argument("--compiled-budget", type=float, default=0, help="seconds for all of torch.compile (0)")
    made.add_argument("--minutes", type=float, default=math.inf, help="after these, no further workload begins")
    made.add_argument("--again", action="store_true", help="measure what is in the file already anew")
    made.add_argument("--fresh", action="store_true", help="forget what is in the file")
    made.add_argument("--no-sizes", action="store_true", help="leave out the cost against size")
    made.add_argument("--quick", action="store_true", help="a few workloads, a cold and a warm round, within 3 minutes")
    made.add_argument("--section", choices=SECTIONS, help="its programs alone, and of the report that section alone")
    made.add_argument("--report", action="store_true", help="measure nothing, write the report")
    return made


def chosen(what: str, names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names, which must be known."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return list(names)


def available(peers: Sequence[str], python: Path) -> list[str]:
    """The peers that can run: without the peers' Python only those of graphc's own environment."""
    if python.exists():
        return list(peers)
    print(f"there is no {python}: only graphc, NumPy and numba take part (make bench-env makes it)")
    return [name for name in peers if PEERS[name].own]


def measure(parsed: argparse.Namespace, results: Results) -> None:
    """Extend the results as the arguments say, keeping the file up to date."""
    peers = available(chosen("peer", parsed.peers.split(","), list(PEERS)), Path(parsed.python))
    whole = QUICK if parsed.quick else SECTIONS[parsed.section].workloads if parsed.section else WORKLOADS
    names = chosen("workload", parsed.workloads, list(WORKLOADS)) or list(whole)
    colds, warms, seconds = (1, 1, 0.1) if parsed.quick else (parsed.colds, parsed.warms, parsed.seconds)
    end = monotonic() + 60 * min(parsed.minutes, 2.5 if parsed.quick else math.inf)
    plan = Plan(parsed.python, colds, warms, seconds, parsed.again, end=end)
    results.machine, results.versions = describe_machine(), read_versions(peers, parsed.python)

    def keep(line: str) -> None:
        print(line, flush=True)
        parsed.results.write_text(json.dumps(results.as_json()), encoding="utf-8")

    run(peers, names, plan, results.samples, keep)
    if not (parsed.no_sizes or parsed.quick or parsed.section or parsed.workloads):
        run_sizes([peer for peer in SIZED if peer in peers], plan, results.sizes, keep)
    if parsed.compiled_budget and Path(parsed.python).exists():
        run_compiled(names, plan, parsed.compiled_budget, results.samples, keep)


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = parser().parse_args(arguments)
    results = Results()
    if parsed.results.exists() and not parsed.fresh:
        results = Results(**json.loads(parsed.results.read_text(encoding="utf-8")))
    if not parsed.report:
        measure(parsed, results)
    parsed.docs.mkdir(exist_ok=True)
    if parsed.section:
        report = parsed.docs / "benchmarks.md"
        before = report.read_text(encoding="utf-8") if report.exists() else ""
        section = write_section(results, SECTIONS[parsed.section])
        report.write_text(with_section(before, section), encoding="utf-8")
        print(f"wrote the {parsed.section} of {report}")
        return
    draw_ratios(results, parsed.docs / "benchmarks.png")
    draw_sizes(results, parsed.docs / "benchmarks_sizes.png")
    (parsed.docs / "benchmarks.md").write_text(write_report(results), encoding="utf-8")
    print(f"wrote {parsed.docs / 'benchmarks.md'}")
    if parsed.docs == ROOT / "docs":
        write_front()
        print("wrote the figures of README.md and docs/front.svg")


if __name__ == "__main__":
    main()
