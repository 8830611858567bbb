"""Compile the parts of kernels that come with graphc: `python -m release.parts`, or with `--targets all` for a release.

In: the checkout. Out: a file for each target in graphc/codegen/parts (graphc/codegen/cache/shipped.py). By default that
is the target whose code does as this machine's own. A file that the sources as they are have made stays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from graphc.codegen.cache import shipped
from graphc.codegen.llvm.cpu import NAMED, equivalent
from graphc.codegen.pipeline import compilation
from graphc.codegen.pipeline.background import apply_options, settings_for

OWN, ALL = "own", "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files that are missing or of other sources."""
    parser = argparse.ArgumentParser(prog="python -m release.parts", description="Compiles parts ahead of time.")
    parser.add_argument("--targets", nargs="*", default=[OWN], help=f"{OWN}, {ALL}, or some of {', '.join(NAMED)}")
    parser.add_argument("--jobs", type=int, default=2, help="the number of processes")
    chosen = parser.parse_args(arguments)
    targets = list(NAMED) if chosen.targets == [ALL] else [equivalent()] if chosen.targets == [OWN] else chosen.targets
    for target in filter(None, targets):
        if not shipped.read_table(target):
            compile_parts(target, chosen.jobs)
    return 0


def compile_parts(target: str, jobs: int) -> None:
    """Compile all parts for a target in other processes, whose code is for it alone, and write its file."""
    begun = time.monotonic()
    settings = settings_for(target) | {"poison": "off", "cache": False}
    names = compilation.part_names()
    with ProcessPoolExecutor(jobs, get_context("spawn"), apply_options, (settings,)) as processes:
        parts = dict(zip(names, processes.map(compilation.compile_part, names, chunksize=4), strict=True))
    shipped.write(shipped.place_of(target), target, parts)
    size = sum(map(len, parts.values()))
    print(f"{len(parts)} parts for {target}: {size / 1e6:.2f} MB in {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
