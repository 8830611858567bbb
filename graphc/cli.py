"""The command line: `graphc bench|cache|compile|docs|export|info|options|show`, also as `python -m graphc`.

In: arguments. Out: text on standard output and an exit code: 0, 1 where modes disagree, 2 for arguments that are wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from graphc import bench
from graphc.codegen.cache import manage, store
from graphc.codegen.llvm import cpu
from graphc.errors import GraphcError
from graphc.options import NATIVE, OPTIONS, TARGETS, options
from graphc.startup.versions import TESTED, VERSION, version_of

TOLERANCE = 1e-9
"""The difference allowed between modes, relative to the largest element: they add in different orders."""


WIDE = ("sse", "ssse", "avx", "fma", "f16c", "bmi", "asimd", "sve", "neon")
"""Prefixes of the processor features on which the speed of loops depends."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.command(parsed)
    except (GraphcError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # whoever reads the text, `head` for instance, has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
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

    _add_cache(commands)

    filling = commands.add_parser(
        "compile",
        help="run a program, and compile all its functions into the cache",
        description="Runs a program to its end, and compiles all functions that it makes into the cache, several at a "
        "time. They run in the interpreted mode until their code is there.",
    )
    filling.add_argument("--target", default="", metavar="NAMES", help=f"for what: some of {', '.join(TARGETS)}")
    filling.add_argument("program", help="the path of a Python program")
    filling.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    filling.set_defaults(command=run_compile)

    reading = commands.add_parser("docs", help="list the pages of the documentation, or print one")
    reading.add_argument("page", nargs="?", help='the name of a page: "jit"')
    reading.set_defaults(command=run_docs)

    _add_export(commands)

    about = commands.add_parser("info", help="print what a report of a fault should say: versions, processor, cache")
    about.set_defaults(command=run_info)

    showing = commands.add_parser("show", help="the same as `graphc cache show`")
    _show_arguments(showing)

    settings = commands.add_parser(
        "options", help="print the options, their values here, and their environment variables"
    )
    settings.set_defaults(command=run_options)
    return parser


def _add_export(commands: Any) -> None:
    """The command `graphc export`."""
    exporting = commands.add_parser(
        "export",
        help="write a saved function as a C library, or as a Python module that needs NumPy alone",
        description="Writes a function of a file, which f.save wrote, as a C library or as a Python module.",
    )
    exporting.add_argument("model", help="the path of a file of f.save")
    exporting.add_argument("path", help='a folder and the name of the new function, as in "lib/model"')
    exporting.add_argument("--language", choices=("c", "python"), default="c", help="of what is written (c)")
    exporting.add_argument("--target", metavar="NAME", help=f"for c: one of {', '.join(cpu.EXPORTED)}")
    exporting.add_argument("--blas", action="store_true", help="for c: call the BLAS and LAPACK of the linker")
    exporting.add_argument(
        "--strided", metavar="NAMES", type=lambda names: names == "all" or names.split(","), default=(),
        help="for c: the arrays that have strides, as in x,out, or all",
    )  # fmt: skip
    exporting.add_argument(
        "--part", metavar="NAME", help="of a network: predict (the default) or probabilities; of a jitted function: a "
        "variant's number, from 0",
    )  # fmt: skip
    exporting.set_defaults(command=run_export_function)


def _add_cache(commands: Any) -> None:
    """The commands of `graphc cache`."""
    folder = commands.add_parser("cache", help="look at and after the compiled graphs on disk")
    actions = folder.add_subparsers(required=True, metavar="action")

    def add(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=f"{about.capitalize()}.")
        parser.set_defaults(command=run)
        return parser

    add("list", run_list, "list all entries: key, last use, bytes, target, name; the last used first")
    _show_arguments(add("show", run_show, "print what the cache holds of a compiled graph"))
    why = add("why", run_why, "run a program without compiling, and tell why the cache lacks which of its functions")
    why.add_argument("program", help="the path of a Python program")
    why.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    pruning = add("prune", run_prune, "remove the entries that meet all conditions")
    pruning.add_argument("--older", type=float, metavar="DAYS", help="not used for so many days")
    pruning.add_argument("--larger", type=int, metavar="BYTES", help="larger than so many bytes")
    pruning.add_argument("--name", metavar="PATTERN", help='of functions of such a name, as in "train*"')
    add("clear", run_clear, "remove all entries of the user's folder")
    add("export", run_export, "write all entries to a bundle").add_argument("bundle", help="the path of a zip file")
    adding = add("import", run_import, "add the entries of a bundle, which is machine code: from those you trust")
    adding.add_argument("bundle", help="the path of a zip file")
    add("verify", run_verify, "check every file of every entry, and remove those that are damaged")
    add("stats", run_stats, "print entries, bytes, hits and misses, last uses, targets")
    add("size", run_size, "print the bytes of all entries")


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", help="first digits of a key, as `graphc cache list` prints them")
    parser.add_argument("text", nargs="?", choices=list(store.TEXTS), default="source")
    parser.set_defaults(command=run_show)


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


def run_list(parsed: argparse.Namespace) -> int:
    """List all entries."""
    for entry in manage.list_entries():
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print(f"{entry.key[:12]}  {used}  {entry.size:>8} bytes  {entry.target:8}  {entry.metadata.get('name', '')}")
    return 0


def run_why(parsed: argparse.Namespace) -> int:
    """Tell why the cache lacks functions of a program; 1 where it does."""
    ahead = import_module("graphc.ahead")
    hits, missing = ahead.explain_program(parsed.program, parsed.arguments)
    for each in missing:
        print(f"{each.name} ({each.where}) is not in the cache: {each.why}")
    print(f"{hits} of {hits + len(missing)} kernels are in the cache")
    return 1 if missing else 0


def run_prune(parsed: argparse.Namespace) -> int:
    """Remove entries by age, size and name."""
    print(f"{manage.prune(parsed.older, parsed.larger, parsed.name)} entries removed from {options.cache_dir}")
    return 0


def run_clear(parsed: argparse.Namespace) -> int:
    """Empty the user's folder."""
    print(f"{manage.clear()} entries removed from {options.cache_dir}")
    return 0


def run_export(parsed: argparse.Namespace) -> int:
    """Write a bundle."""
    print(f"{manage.export(parsed.bundle)} entries written to {parsed.bundle}")
    return 0


def run_export_function(parsed: argparse.Namespace) -> int:
    """Write a saved function for C or Python."""
    loaded = import_module("graphc.functions.loaded").load(parsed.model)
    export_part = import_module("graphc.functions.exported").export_part
    options_ = parsed.language, parsed.target, parsed.blas, parsed.strided
    print("\n".join(export_part(loaded, parsed.part, parsed.path, *options_)))
    return 0


def run_import(parsed: argparse.Namespace) -> int:
    """Read a bundle."""
    print(f"{manage.import_(parsed.bundle)} entries added to {options.cache_dir}")
    return 0


def run_verify(parsed: argparse.Namespace) -> int:
    """Check all entries; 1 where one is damaged or cannot be trusted."""
    problems = manage.verify()
    print("\n".join(problems) if problems else f"all entries in {options.cache_dir} are in order")
    return 1 if problems else 0


def run_stats(parsed: argparse.Namespace) -> int:
    """Print the figures of the cache."""
    print(manage.statistics())
    return 0


def run_size(parsed: argparse.Namespace) -> int:
    """Print the bytes of the cache."""
    print(f"{manage.size()} bytes in {options.cache_dir}")
    return 0


def run_compile(parsed: argparse.Namespace) -> int:
    """Compile the functions of a program; 1 where one could not be, or the program raised."""
    ahead = import_module("graphc.ahead")
    targets = [target.strip() for target in parsed.target.split(",") if target.strip()] or [options.target]
    problem = ""
    try:
        outcomes = ahead.compile_program(parsed.program, parsed.arguments, targets)
    except ahead.ProgramError as error:
        outcomes, problem = error.outcomes, str(error)
    for each in outcomes:
        how = each.error or (f"compiled in {each.seconds:.1f} s" if each.seconds else "was in the cache")
        print(f"{each.name} ({each.where})  {each.target}  {how}")
    made = sum(not each.error for each in outcomes)
    print(f"{made} of {len(outcomes)} kernels are in {options.cache_dir}")
    if problem:
        print(f"graphc: {problem}", file=sys.stderr)
    return 1 if problem or made < len(outcomes) else 0


def run_docs(parsed: argparse.Namespace) -> int:
    """List the pages with their paths, or print one."""
    found = import_module("graphc.pages")
    if parsed.page is not None:
        print(found.page(parsed.page), end="")
        return 0
    for name, path in found.pages().items():
        print(f"{name:20} {path}")
    return 0


def run_info(parsed: argparse.Namespace) -> int:
    """Print versions, system, processor, threads and cache."""
    platform, settings = import_module("platform"), import_module("graphc.codegen.threads.settings")
    name, features = cpu.processor()
    versions = ", ".join(f"{package} {version_of(package)}" for package in (*TESTED, "scipy"))
    changed = [line for line in repr(options).splitlines() if line != _default_line(line)]
    print(f"graphc     {VERSION}, sources {manage.package_fingerprint().split()[1].rstrip(';')}")
    print(f"python     {platform.python_version()} ({platform.python_implementation()}), {sys.executable}")
    print(f"packages   {versions}")
    print(f"system     {platform.platform()}")
    print(f"processor  {name}")
    print(f"features   {' '.join(each for each in features.split(',') if each.startswith(WIDE)) or 'none of vectors'}")
    print(f"targets    {', '.join((NATIVE, *cpu.runnable()))}")
    print(f"threads    {settings.available_processors()} of {os.cpu_count()} processors")
    print(f"blas       {_blas()}")
    print(f"options    {'; '.join(changed) or 'all as by default'}")
    print(manage.statistics())
    return 0


def _default_line(line: str) -> str:
    name = line.partition(" ")[0]
    default = OPTIONS[name]
    return f"{name} = {default.check(name, default.default)!r}"


def _blas() -> str:
    """The library that NumPy's products come from, as NumPy tells."""
    told: Any = import_module("numpy").show_config(mode="dicts")
    found = told["Build Dependencies"]["blas"]
    return f"{found.get('name', 'unknown')} {found.get('version', '')} (NumPy's)"


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
