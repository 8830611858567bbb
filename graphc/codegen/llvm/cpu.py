"""The facts that decide the code made on this machine, found without the compiler.

In: the system, the option `target`. Out: a fingerprint: versions of the compiler's packages, what code is made for, and
for this machine's own code the processor and its features; and what a named target needs that the processor lacks.

    target_fingerprint()     with target="haswell": "llvmlite 0.47.0; numba 0.65.1; target haswell; system linux x86_64"
    lacking("skylake-avx512")     on a processor without it: ("avx512bw", "avx512cd", ...)
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib import import_module

from graphc.errors import GraphcError
from graphc.options import NATIVE, TARGETS, options
from graphc.startup.process import PROCESS
from graphc.startup.versions import version_of

PROCESSOR = "/proc/cpuinfo"
IDENTITY = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
)
"""Lines of PROCESSOR that tell one kind from another, for x86 and for Arm; the rest are counters and clocks."""
FEATURES = ("flags", "Features")
FIRST_BYTES = 16384
"""More than what PROCESSOR says of the first processor, and much less than it says of many."""

_SECOND = frozenset("cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2".split())
_THIRD = _SECOND | frozenset("avx avx2 bmi bmi2 f16c fma lzcnt movbe".split())
_FOURTH = _THIRD | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())
NAMED: dict[str, frozenset[str]] = {
    "x86-64": frozenset(),
    "nehalem": _SECOND,
    "haswell": _THIRD,
    "skylake-avx512": _FOURTH,
    "x86-64-v4": _FOURTH,
}
"""The features, by LLVM's names, that code for each of `options.TARGETS` may use besides those of the first x86-64: the
four levels of its binary interface (the psABI's x86-64-v1 to v4), each a superset of the one before. Two have the last
level: loops for the first processors that have it are given vectors of 32 bytes (`has_slow_wide_vectors`)."""
VECTORS = frozenset("avx avx2 avx512vl fma".split())
"""Features that code asks for (llvm/target.py): the length of its vectors, and products and sums in one rounding."""
WIDE = "x86-64-v4"
SLOW_WIDE = ("GenuineIntel 6 85 ", "skylake-avx512", "cascadelake", "cooperlake")
"""Processors with 512 bits that are slower for a while after each use of them: how the system's name begins, which is
that of three models, and LLVM's names, which stand for targets too."""
OTHERS = {"aarch64": ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc")}
"""Other kinds of processors, for which libraries are made and no functions: LLVM's name of each, and the C compiler
that links for it, as Debian and others call it."""
EXPORTED = (*TARGETS, *OTHERS)
"""The targets of libraries."""
SYSTEM_NAMES = {"bmi": "bmi1", "lzcnt": "abm", "sahf": "lahf_lm", "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
"""Linux's names of features where they are not LLVM's."""
X86 = ("x86_64", "amd64")


def target_fingerprint(target: str | None = None) -> str:
    """Return what decides the code for a target, by default `options.target`: an object fits where this string is the
    same. It has parts "name value" joined by "; ".

    A named target determines its code wholly. That of "native" depends on the processor's name and its features, which
    follow, a few kB at most. No package is imported for it. Raises GraphcError for a target that is not the one that
    the process began with, since its functions share code, and for one that this processor cannot run.
    """
    if target is not None:
        return _fingerprint(target)
    first = PROCESS.target or options.target
    if first != options.target:
        already = f"functions of this process are compiled for {first!r} already; it is set before"
        raise GraphcError(f"option target={options.target!r}: {already}")
    if not PROCESS.is_foreign:
        check_target(options.target)
    return _fingerprint(options.target)


def keep_target() -> None:
    """Hold the process to its target, for which code is there now."""
    PROCESS.target = options.target


def check_target(target: str) -> None:
    """Raise GraphcError for a target whose code this processor cannot run."""
    missing = lacking(target)
    if missing:
        machine = platform.machine()
        reason = f"it has no {', '.join(missing)}" if machine.lower() in X86 else f"it is {machine}"
        raise GraphcError(f"option target={target!r}: this machine cannot run such code: {reason}")


@cache
def lacking(target: str) -> tuple[str, ...]:
    """Return the features, by LLVM's names, that code for a target uses and this processor lacks; () where it runs."""
    if target == NATIVE:
        return ()
    if platform.machine().lower() not in X86:
        return ("x86-64",)
    features = set(processor()[1].split(","))
    return tuple(sorted(name for name in NAMED[target] if not {name, SYSTEM_NAMES.get(name, name)} & features))


@cache
def runnable() -> tuple[str, ...]:
    """Return the named targets whose code this processor runs, the best first."""
    supported = [target for target in reversed(TARGETS) if target != NATIVE and not lacking(target)]
    return tuple(sorted(supported, key=lambda target: target == WIDE and has_slow_wide_vectors(NATIVE)))


@cache
def equivalent() -> str:
    """Return the named target whose code has the same vectors and the same arithmetic as that for "native", and thus
    computes the same bits; "" where there is none, as for a processor with AVX and without AVX2."""
    best = next(iter(runnable()), "")
    present = set(processor()[1].split(","))
    return best if best and present & VECTORS == NAMED[best] & VECTORS else ""


def has_slow_wide_vectors(target: str) -> bool:
    """True if loops for a target have vectors of 32 bytes though 64 are there, since those slow the processor down."""
    name = processor()[0] if target == NATIVE else target
    return f"{name} ".startswith(SLOW_WIDE)


@cache
def _fingerprint(target: str) -> str:
    parts = [
        f"llvmlite {version_of('llvmlite')}",
        f"numba {version_of('numba')}",
        f"target {target}",
        f"system {sys.platform} {os.uname().machine if hasattr(os, 'uname') else platform.machine()}",
    ]
    if target == NATIVE:
        name, features = processor()
        parts += [f"processor {name}", f"features {features}"]
    return "; ".join(parts)


def processor() -> tuple[str, str]:
    """Return the processor's name and its features, joined by commas, as the system names them; where it does not, the
    compiler is asked."""
    try:
        with open(PROCESSOR, "rb", buffering=0) as file:
            first = file.read(FIRST_BYTES).partition(b"\n\n")[0].decode()
    except (OSError, UnicodeDecodeError):
        first = ""
    said = dict(line.replace("\t", "").split(": ", 1) for line in first.splitlines() if ": " in line)
    name = " ".join(said[word].strip() for word in IDENTITY if word in said and word not in FEATURES)
    features = ",".join(said[word].strip().replace(" ", ",") for word in FEATURES if word in said)
    if name and features:
        return name.replace(";", ","), features
    llvm = import_module("graphc.codegen.llvm.binding").llvm
    has = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), ",".join(sorted(name for name, there in has.items() if there))
