"""The report: `docs/benchmarks.md`.

In: `Results`. Out: Markdown. Ratios are to graphc: 2 means that a peer needs twice what graphc needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.figures import (
    FRAMEWORKS,
    LOOPLESS,
    Target,
    by_round,
    compile_cost,
    copy_bandwidth,
    figure,
    loop_targets,
    nest_cost,
    number_targets,
    ratio,
    targets,
    work_rate,
    write_targets,
)
from benchmarks.libraries import PEERS
from benchmarks.reasons import LEFT_OUT, reason
from benchmarks.runner import Results
from benchmarks.suite import LOOPS, NUMBERS, WORKLOADS, WRITES

INTRODUCTION = """# Benchmarks

Written by `make bench` (`python -m benchmarks --help` tells what can be chosen). Ratios are to graphc: 2.0 means that a
peer takes twice as long as graphc, a figure below 1 that it is ahead. A dash: not measured, or the peer has no such
program, and its workload in `benchmarks/` says why.

Every peer runs in processes of its own, one for each workload and round; rounds of the peers take turns, and medians
over rounds are compared. The first rounds have an empty persistent cache (cold), later ones find what the last of those
left (warm); steady times and memory are those of the warm rounds. Each peer's first three answers and the state after
them are compared with NumPy's in float64. JAX and PyTorch get arrays of their own, and a call counts as done when its
result is there; only in the overhead workloads NumPy's arrays go in and come out. All peers may use all cores.

| peer | what it is |
|---|---|
| graphc, interpreted | the compiled mode, and the mode of one NumPy call for each node |
| numpy | eager NumPy, gradients written by hand |
| numba | loops by hand, as an expert writes them: vectorised polynomials for exp, tanh, log; threads where they pay |
| jax | `jax.jit` on the CPU, x64, state donated |
| pytensor | its default mode, `trust_input` |
| torch, torch-compiled | eager, and `torch.compile` where it was asked for: it takes half a minute for each workload |
"""


@dataclass(frozen=True)
class Section:
    """Workloads that are measured alone, with targets of their own."""

    heading: str
    introduction: str
    workloads: Sequence[str]
    targets: Callable[[Results], list[Target]]


SECTIONS = {
    "loops": Section(
        "## Loops",
        "Programs of many steps, written by `make bench-loops`, which measures them alone.",
        LOOPS,
        loop_targets,
    ),
    "writes": Section(
        "## Writes",
        "NumPy programs that write into arrays, as `graphc.jit` takes them, written by `make bench-writes`, which "
        "measures them alone; by hand they are loops over elements.",
        WRITES,
        write_targets,
    ),
    "numbers": Section(
        "## Nets and numbers",
        "Nets, random numbers, factorisations and order, written by `make bench-numbers`, which measures them alone.",
        NUMBERS,
        number_targets,
    ),
}
COLUMNS = """`graphc` is the time of a call, of each round the fastest batch of calls; `spread` the slowest of graphc's
rounds over its fastest; `cold` the time from the start of a process to its first result with an empty cache. The
columns of peers are ratios to graphc.
"""
SECTION_FIGURES = (("best", "warm"), ("process", "cold"))


def write_report(results: Results) -> str:
    """The whole document."""
    parts = [
        INTRODUCTION,
        describe(results),
        target_table(results),
        "![time of a call, relative to graphc](benchmarks.png)\n",
        behind_table(results),
        steady_table(results),
        process_tables(results),
        compile_table(results),
        memory_table(results),
        bandwidth_table(results),
        *(write_section(results, section) for section in SECTIONS.values()),
        "## Cost against size\n\n![seconds of a call against the number of elements](benchmarks_sizes.png)\n",
        failures(results),
        "## Left out\n\n" + "".join(f"- {name}: {why}.\n" for name, why in LEFT_OUT.items()),
    ]
    return "\n".join(part for part in parts if part)


# --- words ------------------------------------------------------------------------------------------------------------


def duration(seconds: float | None) -> str:
    """Seconds in the unit that suits them."""
    if seconds is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def times(value: float | None) -> str:
    """A ratio, with two significant digits; bold where graphc is behind."""
    if value is None:
        return "-"
    text = f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return f"**{text}**" if value < 1 else text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, all but its first column to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def taking_part(results: Results) -> list[str]:
    """The peers but graphc that were measured, in the order of PEERS."""
    seen = {peer for peers in results.samples.values() for peer in peers}
    return [peer for peer in PEERS if peer in seen and peer != "graphc"]


def measured(results: Results) -> list[str]:
    return [name for name in WORKLOADS if name in results.samples]


# --- parts ------------------------------------------------------------------------------------------------------------


def describe(results: Results) -> str:
    """Machine and versions."""
    return "## Machine and versions\n\n" + machine_lines(results)


def machine_lines(results: Results) -> str:
    machine = results.machine
    lines = []
    if machine:
        lines.append(
            f"- {machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}, "
            f"Python {machine['python']}" + (f", {machine['date']}" if "date" in machine else "")
        )
    for where, text in (("own", "graphc, NumPy and numba"), ("peers", "the others")):
        versions = results.versions.get(where, {})
        if versions:
            lines.append(f"- {text} ran with " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    return "\n".join(lines) + "\n"


def target_table(results: Results) -> str:
    return "## Targets\n\n" + table_of(targets(results))


def table_of(made: Iterable[Target]) -> str:
    def cells(target: Target) -> tuple[str, ...]:
        goal = f"{'at most' if target.below else 'at least'} {target.goal:g}"
        value = "-" if target.value is None else f"{target.value:.2f}"
        reached = {True: "reached", False: "not reached", None: "not measured"}[target.reached]
        return target.text, value, goal, reached, target.note

    return table(("what", "measured", "target", "", "where"), map(cells, made))


def behind_table(results: Results) -> str:
    """Every workload and peer that is ahead of graphc in steady time, with the reason."""
    rows = []
    for name in measured(results):
        for peer in taking_part(results):
            value = ratio(results, name, peer, "steady")
            if value is not None and value < 1:
                kind = "framework" if peer in FRAMEWORKS else "limit" if peer == "numba" else "library"
                rows.append((name, f"{peer} ({kind})", f"{1 / value:.2f}", reason(name, peer)))
    text = "## Where graphc is not first\n\n"
    if not rows:
        return text + "Nowhere.\n"
    return text + table(("workload", "who is ahead", "graphc / peer", "why"), rows)


def ratio_table(results: Results, title: str, name: str, rounds: str) -> str:
    peers = taking_part(results)
    rows = [
        [
            workload,
            duration(figure(results, workload, "graphc", name, rounds)),
            *(times(ratio(results, workload, peer, name, rounds)) for peer in peers),
        ]
        for workload in measured(results)
    ]
    return f"{title}\n\n" + table(("workload", "graphc", *peers), rows)


def steady_table(results: Results) -> str:
    titles = "".join(f"- {name}: {WORKLOADS[name].title}\n" for name in measured(results))
    return ratio_table(results, "## Time of a call", "steady", "warm") + "\n" + titles


def process_tables(results: Results) -> str:
    """Starts, of whole processes and without the import."""
    imports = [(peer, duration(median_over(results, peer, "import"))) for peer in ["graphc", *taking_part(results)]]
    parts = [
        "## From the start of a process to the first result\n",
        ratio_table(results, "### Empty cache", "process", "cold"),
        ratio_table(results, "### Warm cache", "process", "warm"),
        ratio_table(results, "### Empty cache, without the import", "first", "cold"),
        ratio_table(results, "### Warm cache, without the import", "first", "warm"),
        "### Import\n",
        table(("peer", "import, NumPy's included"), imports),
    ]
    return "\n".join(parts)


def median_over(results: Results, peer: str, name: str) -> float | None:
    """The middle of a figure over all workloads."""
    values = sorted(value for workload in results.samples if (value := figure(results, workload, peer, name)))
    return values[len(values) // 2] if values else None


def compile_table(results: Results) -> str:
    """What graphc compiles, and how long that takes."""
    costs = {name: cost for name in measured(results) if (cost := compile_cost(results, name))}
    rows = [
        (name, duration(seconds), str(nests), duration(nest_cost(results, name)))
        for name, (seconds, nests) in costs.items()
    ]
    text = (
        "## Compiling\n\nSeconds in `graphc.function` for all functions of a workload, beside a compile process that\n"
        "is there, and with what is compiled once for a machine; nothing of the workload's own is in the cache. What\n"
        f"a nest takes is beyond the time of {LOOPLESS}, which has no loop.\n\n"
    )
    return text + table(("workload", "compiled in", "nests", "a nest"), rows) if rows else ""


def memory_table(results: Results) -> str:
    """Megabytes, not ratios: some need none."""
    peers = ["graphc", *taking_part(results)]

    def megabytes(workload: str, peer: str) -> str:
        value = figure(results, workload, peer, "peak")
        return "-" if value is None else f"{value / 1e6:.1f}"

    rows = [[workload, *(megabytes(workload, peer) for peer in peers)] for workload in measured(results)]
    text = (
        "## Peak memory\n\nMegabytes above what the process held before the build, in a warm round: results,\n"
        "temporaries and what the peer loads to run them.\n\n"
    )
    return text + table(("workload", *peers), rows)


def bandwidth_table(results: Results) -> str:
    """GB/s of the traffic that any program needs, and GFLOP/s of products."""
    peers = ["graphc", *taking_part(results)]

    def rates(name: str) -> list[str]:
        found = [work_rate(results, name, peer) for peer in peers]
        return [name, *("-" if value is None else f"{value / 1e9:.1f}" for value in found)]

    rows = [rates(name) for name in measured(results) if WORKLOADS[name].traffic or WORKLOADS[name].flops]
    copy = copy_bandwidth(results)
    text = "## Traffic and products\n\nGB/s of inputs read and outputs written once; GFLOP/s of products of matrices."
    if copy:
        text += f" A copy of 64 MB, on one thread or all, whichever is faster: {copy / 1e9:.1f} GB/s."
    return text + "\n\n" + table(("workload", *peers), rows) if rows else ""


def write_section(results: Results, section: Section) -> str:
    """A section of workloads that are measured alone; nothing where none was measured."""
    names = [name for name in section.workloads if figure(results, name, "graphc", "best")]
    if not names:
        return ""
    peers = [peer for peer in taking_part(results) if any(ratio(results, name, peer, "best") for name in names)]
    rows = []
    for name in names:
        rounds = by_round(results, name, "graphc", "best")
        steady = (times(ratio(results, name, peer, "best")) for peer in peers)
        cold = [times(ratio(results, name, peer, "process", "cold")) for peer in peers]
        call, start = (duration(figure(results, name, "graphc", each, when)) for each, when in SECTION_FIGURES)
        rows.append((name, call, f"{max(rounds) / min(rounds):.2f}", *steady, start, *cold))
    head = ("workload", "graphc", "spread", *peers, "cold", *(f"{peer}, cold" for peer in peers))
    titles = "".join(f"- {name}: {WORKLOADS[name].title}\n" for name in names)
    about = f"{section.introduction}\n{COLUMNS}"
    parts = about, machine_lines(results), table(head, rows), titles, table_of(section.targets(results))
    return f"{section.heading}\n\n" + "\n".join(parts)


def with_section(document: str, section: str) -> str:
    """A document with a section anew: in the place of that of its heading, or at the end."""
    heading = section.partition("\n")[0]
    whole = re.compile(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if not whole.search(document):
        return f"{document.rstrip()}\n\n{section}" if document else section
    return whole.sub(lambda _: f"{section}\n", document, count=1).rstrip() + "\n"


def failures(results: Results) -> str:
    """What did not run or was wrong."""
    lines = [
        f"- {peer}, {workload}: {record['failed'].splitlines()[-1]}\n"
        for workload, peers in results.samples.items()
        for peer, record in peers.items()
        if "failed" in record
    ]
    return "## Failed\n\n" + "".join(lines) if lines else ""
