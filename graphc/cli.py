"""The command line: `graphc bench|cache|show|options`, or `python -m graphc` with the same arguments.

In: arguments. Out: text on standard output and an exit code: 0, 1 where modes disagree, 2 for arguments that are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from graphc import bench
from graphc.codegen.cache import manage, store
from graphc.errors import GraphcError
from graphc.options import options
from graphc.startup.versions import VERSION

TOLERANCE = 1e-9
"""The difference allowed between modes, relative to the largest element: they add in different orders."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.command(parsed)
    except GraphcError as error:
        print(f"graphc: {error}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="graphc", description="Compiles symbolic tensor graphs to native CPU kernels."
    )
    parser.add_argument("--version", action="version", version=f"graphc {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="command")

    timing = commands.add_parser("bench", help="run named graphs in all modes and print a table")
    timing.add_argument("names", nargs="*", help=f"graphs, all where none is named: {', '.join(bench.WORKLOADS)}")
    timing.add_argument("--repeat", type=int, default=7, metavar="N", help="rounds of which the median counts (7)")
    timing.set_defaults(command=run_bench)

    folder = commands.add_parser("cache", help="the compiled graphs on disk")
    folder.add_argument("action", choices=["list", "size", "clear"])
    folder.set_defaults(command=run_cache)

    showing = commands.add_parser("show", help="print what the cache holds of a compiled graph")
    showing.add_argument("key", help="first digits of a key, as `graphc cache list` prints them")
    showing.add_argument("text", nargs="?", choices=list(store.TEXTS), default="source")
    showing.set_defaults(command=run_show)

    settings = commands.add_parser(
        "options", help="print the options, their values here, and their environment variables"
    )
    settings.set_defaults(command=run_options)
    return parser


def run_bench(parsed: argparse.Namespace) -> int:
    """Print the table of `graphc.bench`, each line as soon as it is measured."""
    if parsed.repeat < 1:
        raise GraphcError(f"--repeat {parsed.repeat}: at least one round is needed")
    print(bench.HEADER, flush=True)
    agree = True
    for result in bench.measure(parsed.names, parsed.repeat):
        print(bench.show(result), flush=True)
        agree &= 0 <= result.difference <= TOLERANCE
    if not agree:
        print("graphc: modes disagree", file=sys.stderr)
    return 0 if agree else 1


def run_cache(parsed: argparse.Namespace) -> int:
    """List, measure or empty the user's cache folder."""
    if parsed.action == "list":
        for entry in manage.list_entries():
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            print(f"{entry.key[:12]}  {used}  {entry.size:>8} bytes  {entry.metadata.get('name', '')}")
    elif parsed.action == "size":
        print(f"{manage.size()} bytes in {options.cache_dir}")
    else:
        print(f"{manage.clear()} entries removed from {options.cache_dir}")
    return 0


def run_show(parsed: argparse.Namespace) -> int:
    """Print the graph, plan or source of one entry."""
    found = [entry for entry in manage.list_entries() if entry.key.startswith(parsed.key)]
    if len(found) != 1:
        raise GraphcError(f"{len(found) or 'no'} entries have a key that begins with {parsed.key!r}")
    with open(os.path.join(found[0].folder, store.TEXTS[parsed.text]), encoding="utf-8") as file:
        print(file.read(), end="")
    return 0


def run_options(parsed: argparse.Namespace) -> int:
    """Print every option."""
    for line in repr(options).splitlines():
        print(f"{line:60}  GRAPHC_{line.partition(' ')[0].upper()}")
    return 0
