"""Settings of the process, each with its environment variable, default and allowed values.

In: environment variables GRAPHC_*, or assignments to attributes of `options`. Out: validated values.
`with options.change(floatX="float32"):` sets for a block. Other names than those of options are the business of a hook.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

from graphc.errors import GraphcError
from graphc.startup.hooks import HOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:  # the first modules of all wait for no others (codegen/server/prestart.py)
    from typing import Any, Generic, TypedDict, TypeVar, Unpack

    Accepted = TypeVar("Accepted")
    Kept = TypeVar("Kept")
    Path = str | os.PathLike[str]

    class Setting(Generic[Accepted, Kept]):
        """An `Option` for type checkers: the type of values it takes (Accepted), and of its value (Kept)."""

        def __get__(self, options: Options, kind: object = None) -> Kept: ...
        def __set__(self, options: Options, value: Accepted) -> None: ...

    class Changes(TypedDict, total=False):
        """The types of the values that each option takes."""

        floatX: str
        mode: str
        compile: str
        target: str
        threads: int | str
        fast_math: bool
        excluding: str | Iterable[str]
        outline: str
        on_unused_input: str
        cache: bool
        cache_dir: Path
        cache_shared: Path | Iterable[Path]
        cache_megabytes: int
        cache_require: bool
        results_megabytes: int
        poison: bool | str
        progress: bool | str
        log: str | Iterable[str]
        verify: bool


PREFIX = "GRAPHC_"
ELSEWHERE = ("GRAPHC_PROGRAMS", "GRAPHC_UPDATE")
"""Environment variables that the tests read."""

MODES = ("compiled", "interpreted", "python", "FAST_RUN", "FAST_COMPILE", "JIT", "Mode")
CHECKING = ("NanGuardMode", "NANGUARD_MODE", "DebugMode", "DEBUG_MODE")
"""Names of modes that check every value (functions/debug_modes.py)."""
MOST_THREADS = 1024
BACKGROUND = "background"
NATIVE = "native"
TARGETS = (NATIVE, "x86-64", "nehalem", "haswell", "skylake-avx512", "x86-64-v4")
"""Processors that code can be compiled for: this machine's, and named ones by LLVM's names (codegen/llvm/target.py)."""


def _choice(*allowed: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value not in allowed:
            raise GraphcError(f"option {name}={value!r}: must be one of {', '.join(allowed)}")
        return str(value)

    return check


def _switch(name: str, value: bool | str) -> bool:
    if isinstance(value, str) and value.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
        return value.lower() in ("1", "true", "yes", "on")
    if isinstance(value, bool):
        return value
    raise GraphcError(f"option {name}={value!r}: must be true or false")


def _switch_or(word: str) -> Callable[[str, bool | str], bool | str]:
    def check(name: str, value: bool | str) -> bool | str:
        try:
            return word if value == word else _switch(name, value)
        except GraphcError:
            raise GraphcError(f"option {name}={value!r}: must be true, false or {word!r}") from None

    return check


def _poison(name: str, value: bool | str) -> str:
    chosen = _switch_or("guard")(name, value)
    return "guard" if chosen == "guard" else "on" if chosen else "off"


def _count(least: int) -> Callable[[str, int], int]:
    def check(name: str, value: int) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = -1
        if number < least:
            raise GraphcError(f"option {name}={value!r}: must be a whole number, {least} or more")
        return number

    return check


def check_threads(name: str, value: int | str) -> int | str:
    """A number of threads, or "auto"; GraphcError for anything else."""
    if value == "auto":
        return "auto"
    number = int(value) if str(value).isascii() and str(value).isdigit() else 0
    if isinstance(value, bool) or not 1 <= number <= MOST_THREADS:
        raise GraphcError(f"option {name}={value!r}: must be a whole number from 1 to {MOST_THREADS}, or 'auto'")
    return number


def _names(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(sorted(part.strip() for part in parts if part.strip()))


def _told(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(_choice("recompiles")(name, part) for part in _names(name, value))


def _folder(name: str, value: Path) -> str:
    path = str(os.path.expanduser(os.fspath(value)))
    return path.rstrip(os.sep) or path


def _folders(name: str, value: Path | Iterable[Path]) -> tuple[str, ...]:
    several: str | Iterable[Path] = [value] if isinstance(value, os.PathLike) else value
    parts = several.split(os.pathsep) if isinstance(several, str) else several
    return tuple(_folder(name, part) for part in parts if str(part))


class Option:
    """An option: what it takes, what it is at first, what it is for. It is read as any attribute of `options` is."""

    def __init__(self, check: Callable[[str, Any], Any], default: Any, doc: str) -> None:
        self.check = check
        self.default = default
        self.__doc__ = doc

    def __set_name__(self, kind: object, name: str) -> None:
        self.name = name

    def __set__(self, options: Options, value: Any) -> None:
        vars(options)[self.name] = self.check(self.name, value)


def option(check: Callable[[str, Accepted], Kept], default: Any, doc: str) -> Setting[Accepted, Kept]:
    """An `Option`, of the types of its check."""
    made: Any = Option(check, default, doc)
    return made


class Options:
    """The settings of graphc, one attribute for each.

    At the start, an environment variable sets an option: `GRAPHC_` and the name of the option in capitals. An
    assignment sets it later, and `change` sets it for the time of a with-block. `print(graphc.options)` shows all
    options with their values. An unknown name, and a value that an option does not take, raise GraphcError; the
    message lists the names, or says what the option takes.

        >>> with graphc.options.change(floatX="float32"):
        ...     graphc.shared(1.0).dtype
        'float32'
    """

    floatX = option(  # noqa: N815 - Theano's name
        _choice("float32", "float64"), "float64", "The dtype of Python floats and of the typeless constructors."
    )
    mode = option(
        _choice(*MODES, *CHECKING),
        "compiled",
        "How functions run; Theano's names mean one of the first three, or a mode that checks every value.",
    )
    compile = option(
        _choice("process", "inline", BACKGROUND),
        "process",
        'Compile in a helper process or in this one; "background": in other processes, while functions run in the '
        "interpreted mode until their code is there.",
    )
    target = option(
        _choice(*TARGETS),
        NATIVE,
        "The processor that code is made for, which this machine must be able to run; it is chosen before the first "
        "function is compiled.",
    )
    threads = option(
        check_threads,
        "auto",
        'How many threads a call may use, where `function` is not told; "auto": as many as OMP_NUM_THREADS says, else '
        "as this process has processors.",
    )
    fast_math = option(
        _switch,
        False,
        "Allow rewrites that are true of real numbers only, arithmetic in any order, and elementary functions of 4 ulp "
        "that promise neither subnormal numbers nor the sign of zero, and give NaN for sin, cos and tan of huge "
        "angles; other NaN and infinities stay.",
    )
    excluding = option(_names, (), "Names of rewrite rules that are off.")
    outline = option(
        _choice("auto", "always", "never"),
        "auto",
        "When loops become functions of their own: where there are many or threads may share them, always, never: no "
        "threads.",
    )
    on_unused_input = option(_choice("raise", "warn", "ignore"), "raise", "What `function` does about one.")
    cache = option(_switch, True, "Keep compiled graphs on disk.")
    cache_dir = option(
        _folder, os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "graphc"), "Where, as text."
    )
    cache_shared = option(
        _folders, (), "Folders that are read as well, never written (GRAPHC_CACHE_SHARED separates them as PATH does)."
    )
    cache_megabytes = option(_count(1), 512, "The size above which the least recently used entries go.")
    cache_require = option(_switch, False, "A graph that is not in the cache is an error.")
    results_megabytes = option(
        _count(0), 256, "How much memory of dropped results above 32 MiB is kept for the next ones."
    )
    poison = option(
        _poison,
        "off",
        "Fill results and temporaries with a pattern, which is NaN as a float, before each call, so that an element "
        'shows which is read before it is written; "guard": put each array of a call between pages that nobody may '
        "touch, besides.",
    )
    progress = option(
        _switch_or("auto"),
        "auto",
        'Print each phase of making a function to standard error as it begins, and the time that it took; "auto": '
        "one line where compiling takes more than two seconds; false: nothing.",
    )
    log = option(_told, (), 'What is written to standard error: "recompiles", why a traced function is traced anew.')
    verify = option(_switch, False, "Check the graph and the loops after every pass of the compiler.")

    def __init__(self) -> None:
        for name, each in OPTIONS.items():
            setattr(self, name, os.environ.get(PREFIX + name.upper()) or each.default)

    if not TYPE_CHECKING:  # which know the names

        def __setattr__(self, name: str, value: Any) -> None:
            if name in OPTIONS:
                object.__setattr__(self, name, value)
            else:
                HOOKS.set_setting(name, value)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return HOOKS.get_setting(name)

    @contextmanager
    def change(self, **values: Unpack[Changes]) -> Iterator[None]:
        """Set options for the time of a with-block. Afterwards they are as before, also where the block raises.

        Raises AttributeError for an option that is not there, GraphcError for a value that the option does not take.

            >>> with graphc.options.change(floatX="float32"):
            ...     T.scalar().dtype
            'float32'
        """
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {getattr(self, name)!r}" for name in OPTIONS)


OPTIONS: dict[str, Option] = {name: item for name, item in vars(Options).items() if isinstance(item, Option)}
"""All options by name."""


def warn_of_unknown(variables: Iterable[str]) -> None:
    """Warn once of environment variables that look like options and are none."""
    known = [name.upper() for name in OPTIONS]
    ours = (name.removeprefix(PREFIX) for name in variables if name.startswith(PREFIX))
    unknown = sorted(name for name in ours if name not in known)
    if unknown:
        find = import_module("difflib").get_close_matches
        nearest = [(name, find(name, known, 1)) for name in unknown]
        texts = [PREFIX + name + "".join(f" (is {PREFIX}{other} meant?)" for other in near) for name, near in nearest]
        text = f"these are no options of graphc: {', '.join(texts)}; `python -m graphc options` lists them"
        import_module("warnings").warn(text, stacklevel=2)


options = Options()
warn_of_unknown(name for name in os.environ if name not in ELSEWHERE)
