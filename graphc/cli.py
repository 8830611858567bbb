"""The command line: `graphc bench|cache|compile|docs|export|info|options|show`, also as `python -m graphc`.

In: arguments. Out: text on standard output and an exit code: 0, 1 where modes disagree, 2 for arguments that are wrong.

`graphc compile` and `cache why` run a program to its end as it would alone. Functions that are not in the cache run in
the interpreted mode meanwhile: `compile_program` has other processes compile them, several at a time, for one target or
more, also for processors that this machine cannot run.

    compile_program("model.py", [], ["haswell", "skylake-avx512"])
        [Outcome(name="train", where="model.py:12", target="haswell", seconds=1.4, error=""), ...]
    run_program("model.py", [], asking := Asking())
        asking.hits, asking.missing == 7, [Missing(name="train", where="model.py:12", why="differences from ...")]

`graphc docs` has the pages of the documentation: those of the code have the names of their folders: "rooms/cache". A
checkout has them beside the package, a wheel in share/doc/graphc of the environment.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any

from graphc import bench
from graphc.codegen.cache import manage, shipped, store
from graphc.codegen.cache.files import make_folder
from graphc.codegen.cache.key import for_target
from graphc.codegen.llvm import cpu
from graphc.codegen.pipeline.background import QUEUE, Job, can_build
from graphc.codegen.pipeline.build import key_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.errors import GraphcError
from graphc.functions.background import Background
from graphc.functions.callables import Function, FunctionRequest, Interpreted
from graphc.ir.node import user_line
from graphc.options import NATIVE, OPTIONS, TARGETS, options
from graphc.startup.process import PROCESS
from graphc.startup.record import record
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

    about = commands.add_parser("info", help="print versions, processor and cache, which belong in a report of a fault")
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
        help="write a saved function as a C library, or as a Python module that needs only NumPy",
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


def _telling(text: Callable[[argparse.Namespace], object]) -> Callable[[argparse.Namespace], int]:
    """A command that prints a text."""

    def run(parsed: argparse.Namespace) -> int:
        print(text(parsed))
        return 0

    return run


def _add_cache(commands: Any) -> None:
    """The commands of `graphc cache`."""
    folder = commands.add_parser("cache", help="list, check, copy and remove the compiled graphs on disk")
    actions = folder.add_subparsers(required=True, metavar="action")

    def add(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=f"{about.capitalize()}.")
        parser.set_defaults(command=run)
        return parser

    add("list", run_list, "list all entries: key, last use, bytes, target, name; the last used first")
    _show_arguments(add("show", run_show, "print what the cache holds of a compiled graph"))
    why = add(
        "why", run_why, "run a program without compiling; list its functions that are not in the cache, with reasons"
    )
    why.add_argument("program", help="the path of a Python program")
    why.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")

    def removed(count: int) -> str:
        return f"{count} entries removed from {options.cache_dir}"

    def pruned(parsed: argparse.Namespace) -> str:
        if parsed.older is parsed.larger is parsed.name is None:
            raise GraphcError("prune wants --older, --larger or --name; `graphc cache clear` removes all")
        return removed(manage.prune(parsed.older, parsed.larger, parsed.name))

    prune = _telling(pruned)
    pruning = add("prune", prune, "remove the entries that meet all conditions")
    pruning.add_argument("--older", type=days, metavar="DAYS", help="not used for so many days; 12h: hours")
    pruning.add_argument("--larger", type=amount, metavar="BYTES", help="larger than so many bytes; 10k, 5M, 1G")
    pruning.add_argument("--name", metavar="PATTERN", help='of functions of such a name, as in "train*"')
    add("clear", _telling(lambda parsed: removed(manage.clear())), "remove all entries of the user's folder")
    export = _telling(lambda parsed: f"{manage.export(parsed.bundle)} entries written to {parsed.bundle}")
    add("export", export, "write all entries to a bundle").add_argument("bundle", help="the path of a zip file")
    import_ = _telling(lambda parsed: f"{manage.import_(parsed.bundle)} entries added to {options.cache_dir}")
    adding = add(
        "import", import_, "add the entries of a bundle, which are machine code: import only from people whom you trust"
    )
    adding.add_argument("bundle", help="the path of a zip file")
    add("verify", run_verify, "check every file of every entry, and remove those that are damaged")
    stats = _telling(lambda parsed: manage.statistics())
    add("stats", stats, "print entries, bytes, hits and misses, last uses, targets")
    size = _telling(lambda parsed: f"{manage.size()} bytes in {options.cache_dir}")
    add("size", size, "print the bytes of all entries")


def days(text: str) -> float:
    """A time in days: "30", "30d", "12h"."""
    return float(text[:-1]) / 24 if text.endswith("h") else float(text.removesuffix("d"))


def amount(text: str) -> int:
    """A number of bytes: "2000", "10k", "5M", "1G"."""
    power = "kMG".find(text[-1:].replace("K", "k")) + 1 if text else 0
    return int(float(text[:-1]) * 1024**power) if power else int(text)


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", help="first digits of a key, or a name, as `graphc cache list` prints them")
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
    """Tell why the cache lacks functions of a program; 1 where it does, or the program raised."""
    asking, problem = Asking(), ""
    try:
        run_program(parsed.program, parsed.arguments, asking)
    except ProgramError as error:
        problem = str(error)
    for each in asking.missing:
        print(f"{each.name} ({each.where}) is not in the cache: {each.why}")
    print(f"{asking.hits} of {asking.hits + len(asking.missing)} kernels are in the cache")
    if problem:
        print(f"graphc: {problem}", file=sys.stderr)
    return 1 if problem or asking.missing else 0


def run_export_function(parsed: argparse.Namespace) -> int:
    """Write a saved function for C or Python."""
    loaded = import_module("graphc.functions.loaded").load(parsed.model)
    export_part = import_module("graphc.functions.exported").export_part
    options_ = parsed.language, parsed.target, parsed.blas, parsed.strided
    print("\n".join(export_part(loaded, parsed.part, parsed.path, *options_)))
    return 0


def run_verify(parsed: argparse.Namespace) -> int:
    """Check all entries; 1 where one is damaged or cannot be trusted."""
    problems = manage.verify()
    print("\n".join(problems) if problems else f"all entries in {options.cache_dir} are in order")
    return 1 if problems else 0


def run_compile(parsed: argparse.Namespace) -> int:
    """Compile the functions of a program; 1 where one could not be, or the program raised."""
    targets = [target.strip() for target in parsed.target.split(",") if target.strip()] or [options.target]
    problem = ""
    try:
        outcomes: Sequence[Outcome] = compile_program(parsed.program, parsed.arguments, targets)
    except ProgramError as error:
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
    if parsed.page is not None:
        print(page(parsed.page), end="")
        return 0
    for name, path in pages().items():
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
    print(f"parts      {shipped.describe()}")
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
    known = manage.list_entries()
    named = [entry for entry in known if entry.metadata.get("name") == parsed.key]
    found = named or [entry for entry in known if entry.key.startswith(parsed.key)]
    if len(found) != 1:
        keys = f": {', '.join(entry.key[:12] for entry in found)}" if found else ""
        raise GraphcError(
            f"{len(found) or 'no'} entries have the name {parsed.key!r} or a key that begins with it{keys}"
        )
    with open(os.path.join(found[0].folder, store.TEXTS[parsed.text]), encoding="utf-8") as file:
        text = file.read().rstrip("\n")
    if not text:
        raise GraphcError(f"{parsed.key} is a part that functions share: it has no {parsed.text}")
    print(text)
    return 0


def run_options(parsed: argparse.Namespace) -> int:
    """Print every option."""
    for line in repr(options).splitlines():
        print(f"{line:60}  GRAPHC_{line.partition(' ')[0].upper()}")
    return 0


# --- programs that fill the cache, or ask why it lacks their functions ------------------------------------------------


@record()
class Outcome:
    """A function's kernel and a target. seconds: of the process that compiled it, 0.0 where the cache had it. error:
    why it could not be compiled, else ""."""

    name: str
    where: str
    target: str
    seconds: float
    error: str


@record()
class Missing:
    """A function that the cache lacks. why: the difference from the most similar entry."""

    name: str
    where: str
    why: str


class Filling:
    """The planner of `compile_program`: it has kernels compiled for all targets, and makes functions that run
    interpreted until this machine has code for one of the targets that it runs."""

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = targets
        self.known: list[Outcome] = []
        self.jobs: list[tuple[str, Job]] = []

    def __call__(self, wanted: FunctionRequest) -> Function | None:
        where = str(user_line() or wanted.kernel.name)
        own = [job for stage in wanted.stages for job in self.added(stage, where) if job.target == options.target]
        if wanted.is_cached and options.target in self.targets:
            return None
        return Background(wanted, own) if own else Interpreted(wanted.kernel, wanted.call, wanted.profile)

    def added(self, kernel: Kernel, where: str) -> list[Job]:
        """Have a kernel compiled for those targets for which the cache has no code; return the jobs."""
        jobs, key = [], key_of(kernel)
        for target in self.targets:
            job = None if store.holds(for_target(key, target)) else QUEUE.add(kernel, target)
            if job is not None:
                jobs.append(job)
            elif can_build(kernel):
                self.known.append(Outcome(kernel.name, where, target, 0.0, ""))
            else:
                self.known.append(Outcome(kernel.name, where, target, 0.0, "it calls Python functions of the program"))
        self.jobs += [(where, job) for job in jobs]
        return jobs

    def outcomes(self) -> list[Outcome]:
        """Wait for all, and return what became of them."""
        QUEUE.wait()
        made = [Outcome(job.kernel.name, where, job.target, job.seconds, job.error) for where, job in self.jobs]
        return [*self.known, *made]


class Asking:
    """The planner of `cache why`: it counts the kernels that the cache has, and explains why it lacks others."""

    def __init__(self) -> None:
        self.hits = 0
        self.missing: list[Missing] = []

    def __call__(self, wanted: FunctionRequest) -> Function | None:
        if wanted.is_cached:
            self.hits += 1
            return None
        for stage in wanted.stages:
            key = key_of(stage)
            if store.holds(key):
                self.hits += 1
            else:
                self.missing.append(Missing(stage.name, str(user_line() or stage.name), manage.explain_miss(key)))
        return Interpreted(wanted.kernel, wanted.call, wanted.profile)


def compile_program(path: str, arguments: Sequence[str], targets: Sequence[str]) -> list[Outcome]:
    """Run a program, and compile all functions that it makes for each of `targets` into the cache.

    Code for named targets then serves functions of the target "native" too where there is none for them, as after an
    import. Where code depends on the values of a call (sizes that a traced function asks for), it is compiled for those
    that the program gives. Raises GraphcError for an unknown target, and where the cache is switched off; ProgramError
    where the program raises, when all that it made until then is compiled.
    """
    unknown = [target for target in targets if target not in TARGETS]
    if unknown:
        raise GraphcError(f"--target {unknown[0]}: must be one of {', '.join(TARGETS)}")
    if not options.cache:
        raise GraphcError("the cache is switched off (option cache): nothing can be compiled ahead")
    runs_here = [target for target in targets if not cpu.lacking(target)]
    options.target = runs_here[0] if runs_here else NATIVE
    filling = Filling(targets)
    make_folder(options.cache_dir)
    manage.note_targets(options.cache_dir, set(targets))
    try:
        run_program(path, arguments, filling)
    except ProgramError as error:
        error.outcomes = filling.outcomes()
        raise
    return filling.outcomes()


class ProgramError(GraphcError):
    """A program raised an exception, which is the cause. outcomes: what was compiled before."""

    outcomes: Sequence[Outcome] = ()


def run_program(path: str, arguments: Sequence[str], planner: Any) -> None:
    """Run a program as `python path arguments` does, with a planner in place of the compiler."""
    if not os.path.isfile(path):
        raise GraphcError(f"there is no program {path}")
    before = sys.argv, sys.path[:], PROCESS.planner
    sys.argv, sys.path[0:0], PROCESS.planner = [path, *arguments], [os.path.dirname(os.path.abspath(path))], planner
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise ProgramError(f"{path} ended with code {end.code}") from end
    except Exception as error:
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
        place = ":".join([path, *map(str, lines[-1:])])
        raise ProgramError(f"{place}: {type(error).__name__}: {error}") from error
    finally:
        sys.argv, sys.path[:], PROCESS.planner = before


# --- pages of the documentation ---------------------------------------------------------------------------------------


DISTRIBUTION = "graphc-compiler"
INSTALLED = "share/doc/graphc/docs/"


def pages() -> dict[str, Path]:
    """The names of all pages, in order, and where they are."""
    beside = Path(__file__).parent.parent / "docs"
    if beside.is_dir():
        found = {path.relative_to(beside).as_posix(): path for path in beside.rglob("*.md")}
    else:
        listed = import_module("importlib.metadata").files(DISTRIBUTION) or []
        texts = [(file.as_posix().partition(INSTALLED)[2], file) for file in listed if file.suffix == ".md"]
        found = {name: Path(str(file.locate())).resolve() for name, file in texts if name}
    return {name.removesuffix(".md"): found[name] for name in sorted(found)}


def page(name: str) -> str:
    """The text of a page, as it is written in Markdown. GraphcError if there is no page of that name.

    name: "jit", "jit.md" or "docs/jit.md": as messages and other pages call it.
    """
    found, wanted = pages(), name.removeprefix("docs/").removesuffix(".md")
    if wanted not in found:
        raise GraphcError(f"no page is called {name!r}; there are {', '.join(found)}")
    return found[wanted].read_text("utf-8")
