"""Settings of the process, each with its environment variable, default and allowed values.

In: environment variables GRAPHC_*, or assignments to attributes of `options`. Out: validated values.
`with options.change(floatX="float32"):` sets for a block; Theano's `config` is this same object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

from graphc.errors import GraphcError

TYPE_CHECKING = False
if TYPE_CHECKING:  # the first modules of all wait for no others (codegen/server/prestart.py)
    from typing import Any

PREFIX = "GRAPHC_"
ELSEWHERE = ("GRAPHC_PROGRAMS", "GRAPHC_UPDATE")
"""Environment variables that the tests read."""

MOST_THREADS = 1024
NATIVE = "native"
TARGETS = (NATIVE, "x86-64", "nehalem", "haswell", "skylake-avx512")
"""Processors that code can be made for: this machine's, and older ones by LLVM's names (codegen/llvm/target.py)."""


def _choice(*allowed: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value not in allowed:
            raise GraphcError(f"option {name}={value!r}: must be one of {', '.join(allowed)}")
        return str(value)

    return check


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
        return value.lower() in ("1", "true", "yes", "on")
    if isinstance(value, bool):
        return value
    raise GraphcError(f"option {name}={value!r}: must be true or false")


def _poison(name: str, value: Any) -> str:
    if value in ("off", "on", "guard"):
        return str(value)
    try:
        return "on" if _switch(name, value) else "off"
    except GraphcError:
        raise GraphcError(f"option {name}={value!r}: must be true, false or 'guard'") from None


def _count(least: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = -1
        if number < least:
            raise GraphcError(f"option {name}={value!r}: must be a whole number, {least} or more")
        return number

    return check


def check_threads(name: str, value: Any) -> int | str:
    """A number of threads, or "auto"; GraphcError for anything else."""
    if value == "auto":
        return "auto"
    number = int(value) if str(value).isascii() and str(value).isdigit() else 0
    if isinstance(value, bool) or not 1 <= number <= MOST_THREADS:
        raise GraphcError(f"option {name}={value!r}: must be a whole number from 1 to {MOST_THREADS}, or 'auto'")
    return number


def _names(name: str, value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(sorted(part.strip() for part in parts if part.strip()))


def _folder(name: str, value: Any) -> str:
    path = str(os.path.expanduser(os.fspath(value)))
    return path.rstrip(os.sep) or path


def _folders(name: str, value: Any) -> tuple[str, ...]:
    several = [value] if isinstance(value, os.PathLike) else value
    parts = several.split(os.pathsep) if isinstance(several, str) else several
    return tuple(_folder(name, part) for part in parts if str(part))


_RULES: dict[str, tuple[Callable[[str, Any], Any], Any]] = {
    "floatX": (_choice("float32", "float64"), "float64"),
    "mode": (_choice("compiled", "interpreted", "python"), "compiled"),
    "compile": (_choice("process", "inline"), "process"),
    "target": (_choice(*TARGETS), NATIVE),
    "threads": (check_threads, "auto"),
    "fast_math": (_switch, False),
    "excluding": (_names, ()),
    "outline": (_choice("auto", "always", "never"), "auto"),
    "on_unused_input": (_choice("raise", "warn", "ignore"), "raise"),
    "cache": (_switch, True),
    "cache_dir": (_folder, os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "graphc")),
    "cache_shared": (_folders, ()),
    "cache_megabytes": (_count(1), 512),
    "cache_require": (_switch, False),
    "results_megabytes": (_count(0), 256),
    "poison": (_poison, "off"),
    "progress": (_switch, False),
    "verify": (_switch, False),
}


class Options:
    """One attribute for each option.

    floatX: dtype of Python floats and of the typeless constructors. mode: how functions run. compile: in a helper
    process or in this one. target: the processor that code is made for, which this machine must be able to run; it is
    chosen before the first function is compiled. threads: how many a call may use, where `function` is not told; "auto"
    for what OMP_NUM_THREADS says, else as many as this process has processors. fast_math: allow rewrites that are true
    of real numbers only, arithmetic in any order, and
    elementary functions of 4 ulp that promise neither subnormal numbers nor the sign of zero, and give NaN for sin, cos
    and tan of huge angles; other NaN and infinities stay. excluding: names of rewrite rules that are off. outline: when
    loops become functions of their own: where there are many or threads may share them, always, never: no threads.
    on_unused_input: what `function` does about one. cache: keep compiled graphs on disk.
    cache_dir: where, as text. cache_shared: folders that are read as well, never written (GRAPHC_CACHE_SHARED separates
    them as PATH does). cache_megabytes: above this size the least recently used entries go. cache_require: a graph that
    is not in the cache is an error. results_megabytes: memory of dropped results above 32 MiB that is kept for the next
    ones. poison: fill results and temporaries with a pattern, which is NaN as a float, before each call, so that an
    element shows which is read before it is written; "guard": put each array of a call between pages that nobody may
    touch, besides. progress: print each phase of making a function to standard error as it begins, and the time that
    it took. verify: check the graph and the loops after every pass of the compiler.
    """

    floatX: str  # noqa: N815 - Theano's name
    mode: str
    compile: str
    target: str
    threads: int | str
    fast_math: bool
    excluding: tuple[str, ...]
    outline: str
    on_unused_input: str
    cache: bool
    cache_dir: str
    cache_shared: tuple[str, ...]
    cache_megabytes: int
    cache_require: bool
    results_megabytes: int
    poison: str
    progress: bool
    verify: bool

    def __init__(self) -> None:
        for name, (_, default) in _RULES.items():
            setattr(self, name, os.environ.get(PREFIX + name.upper()) or default)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _RULES:
            raise GraphcError(f"there is no option {name!r}; options are {', '.join(_RULES)}")
        object.__setattr__(self, name, _RULES[name][0](name, value))

    @contextmanager
    def change(self, **values: Any) -> Iterator[None]:
        """Set options for the time of a with-block."""
        before = {name: getattr(self, name) for name in values if name in _RULES}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {getattr(self, name)!r}" for name in _RULES)


def warn_of_unknown(variables: Iterable[str]) -> None:
    """One warning for the environment variables that look like options and are none."""
    known = [name.upper() for name in _RULES]
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
