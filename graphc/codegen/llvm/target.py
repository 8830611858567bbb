"""The processor that kernels are compiled for: this machine's, or an older one that `options.target` names; and LLVM.

In: LLVM IR as text. Out: a relocatable object. What decides its bytes besides the text is said by `cpu.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from graphc.codegen.llvm.binding import ModulePassManager, NewPassManager, llvm
from graphc.codegen.llvm.cpu import NAMED, check_target, has_slow_wide_vectors
from graphc.codegen.llvm.module import IR, Module
from graphc.errors import CompileError
from graphc.options import NATIVE, options
from graphc.startup.process import PROCESS

__all__ = ["llvm"]  # what others import from here though it is not defined here

# --- the processor ----------------------------------------------------------------------------------------------------


BASE = frozenset("64bit cmov cx8 fxsr mmx sse sse2 x87".split())
"""The features of the first x86-64."""


LONG_VECTORS = "evex512"
"""A feature of every processor with AVX-512, which LLVM has a name for up to version 20: without it vectors of 64 bytes
are no longer one register."""


@cache
def processor(target: str = NATIVE) -> tuple[str, frozenset[str], str]:
    """Return LLVM's name of a target, the features that its code has, and what LLVM is told of features.

    Code for a named target is the same on every machine: LLVM is told to use nothing beyond `NAMED`, whatever else it
    knows of that processor. Raises GraphcError where this machine lacks what such code needs, unless all code of the
    process is for others (`PROCESS.is_foreign`).
    """
    if PROCESS.triple:
        return "generic", frozenset(), ""
    detected: dict[str, bool] = llvm.get_host_cpu_features()
    if target == NATIVE:
        features = frozenset(name for name, present in detected.items() if present)
        return llvm.get_host_cpu_name(), features, llvm.get_host_cpu_features().flatten()
    if not PROCESS.is_foreign:
        check_target(target)
    named = NAMED[target]
    kept = named | BASE | ({LONG_VECTORS} if "avx512f" in named else set())
    return target, named, ",".join(f"-{name}" for name in sorted(detected) if name not in kept)


def triple() -> str:
    """LLVM's name of the kind of processors and the system that code is for: this machine's, but for code of a process
    that is for others."""
    return PROCESS.triple or _process_triple()


@cache
def _process_triple() -> str:
    # llvmlite holds its lock for each question, which waits while another thread compiles.
    return str(llvm.get_process_triple())


def _has(feature: str) -> bool:
    return feature in processor(options.target)[1]


def has_fma() -> bool:
    """True if the target multiplies and adds with one rounding."""
    return is_arm() or _has("fma")


def is_arm() -> bool:
    """True if the target is a 64-bit Arm, all of which multiply and add with one rounding, and have 32 registers of
    16 bytes."""
    return triple().startswith(("aarch64", "arm64"))


def has_avx512() -> bool:
    """True if the target has 32 registers of 64 bytes."""
    return _has("avx512vl")


def has_vector_products() -> bool:
    """True if the target has registers that make our large products as fast as any BLAS (gemm/blocked.py)."""
    return _has("avx2") and _has("fma")


def vector_widths() -> tuple[int, ...]:
    """The bits of the vectors that a loop may have on the target: its longest; and those of half the length, which
    LLVM takes for loops over float32 and float64 at once, and for all on most CPUs that have 512 bits.
    """
    if has_avx512():
        return 256, 512
    return (128, 256) if _has("avx") else (128,)


def usual_width() -> int:
    """The bits of the vectors that a loop is given on the target: the longest, but for the first processors with 512
    bits, which are slower for a while after each use. Measured where LLVM itself gives loops 256 (Emerald Rapids):
    loops within the caches take 0.7 to 0.8 of the time, others as long as before."""
    longest = max(vector_widths())
    return 256 if longest == 512 and _has_slow_wide_vectors(options.target) else longest


@cache
def _has_slow_wide_vectors(target: str) -> bool:
    return has_slow_wide_vectors(target)  # which asks the system


SHORT = 1
"""The level up to which `short_pipeline` is run instead of LLVM's."""


@cache
def _initialize() -> None:
    for switch in (STRAIGHT, QUICK_REGISTERS):  # as `switched` leaves them: functions at level 0 depend on both
        turn(switch, False)
    if PROCESS.triple:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def target_machine(target: str, opt: int = 3, is_straight: bool = False) -> llvm.TargetMachine:
    """LLVM's record of a target: position-independent code, so that an object can be loaded at any address. That for
    straight code is another one: LLVM notes in it how instructions are selected, for all that is made with it later."""
    _initialize()
    cpu, _, features = processor(target)
    return llvm.Target.from_triple(triple()).create_target_machine(
        cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="default"
    )


def optimize(modules: Sequence[IR], opt: int = 3, exported: frozenset[str] = frozenset()) -> llvm.ModuleRef:
    """One optimised module of several, linked in order; functions and data not in `exported` become internal where any
    are named. The caller closes it (`with`): the garbage collector may end its context first, which LLVM does not bear.

    Raises CompileError where one does not parse or verify.
    """
    machine = target_machine(options.target, opt)
    texts = [each if isinstance(each, Module) else Module(each) for each in modules]
    context = llvm.create_context()  # the names of its types go with it
    with ExitStack() as opened:
        try:
            module, *others = [opened.enter_context(llvm.parse_assembly(each.ir, context)) for each in texts]
            for other in others:
                module.link_in(other)
            module.triple = triple()
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM refuses the IR: {error}") from error
        for symbol in (*module.functions, *module.global_variables) if exported else ():
            if not symbol.is_declaration and symbol.name not in exported:
                symbol.linkage = "internal"
        if not all(each.is_rare or (opt == 0 and each.is_straight) for each in texts):  # else it stays as it is written
            _run_passes(module, machine, opt, opt <= SHORT or all(each.is_vectorized for each in texts))
            if not is_arm() and any(name in each.ir for each in texts for name in EXTREMES):
                before = str(module)
                if (after := with_short_extremes(before)) != before:
                    return llvm.parse_assembly(after, context)
        opened.pop_all()
        return module


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt: int, is_short: bool) -> None:
    """Optimise a module by LLVM's pipeline for a level, or by the short one."""
    # All that level 3 adds here is a copy of an outer loop for each way that a condition in it may go.
    tuning = llvm.create_pipeline_tuning_options(speed_level=min(opt, 2))
    tuning.loop_vectorization = opt > 1
    tuning.slp_vectorization = opt > 1
    tuning.loop_unrolling = opt > 1
    builder = llvm.create_pass_builder(machine, tuning)
    passes = short_pipeline() if is_short else builder.getModulePassManager()
    passes.run(module, builder)
    # llvmlite 0.50 never frees a module pass manager: its class inherits the empty `_dispose` before the real one.
    if ModulePassManager._dispose is llvm.ffi.ObjectRef._dispose:
        NewPassManager._dispose(passes)


def short_pipeline() -> ModulePassManager:
    """The passes for IR that was written by hand, or whose loops were: inlining, variables in registers, no dead
    code. It takes a fifth of the time of LLVM's own pipeline for level 1; what is common to
    several blocks, or moves out of loops, is found when machine code is made."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    return passes


# --- machine code -----------------------------------------------------------------------------------------------------


LOOPS = "disable-lsr"
"""LLVM's switch for kernels: loop strength reduction rewrites the addresses of loops, whose forms are chosen already
(vectorize/). It takes half of the time that machine code of a loop takes, and no loop that was measured gains by it."""
LAST = "disable-post-ra"
"""LLVM's switch for kernels too: nothing is put into another order once registers are given. Processors that reorder
instructions gain nothing by it. It takes a tenth of the time of machine code, and the sweep's kernels are as fast."""
STRAIGHT = "fast-isel"
"""LLVM's switch for code without loops: instructions are selected one by one. Such code is also made at level 1, for
at level 3 blocks that many others lead to are copied to each of them. Half of the time, and the code is as fast."""
ORDER = "enable-misched=false"
"""LLVM's switch for products of matrices, whose instructions stay in the order in which they are written. With `LOOPS`
this takes two fifths off the time of their machine code, and they are as fast."""
QUICK_REGISTERS = "optimize-regalloc=false"
"""LLVM's switch for code at level 0 that runs seldom: every value lies in memory. It is off for entry points, whose
machine code at level 0 then takes half of the time that it takes at level 1, and calls are as fast."""
FUSED = " contract "
"""In the IR of a product or sum that may be one instruction with another. Such code is made as loops are: a step has
the same bits within a loop and written out, so the same products must be one with a sum."""


@contextmanager
def switched(switches: Sequence[str]) -> Iterator[None]:
    """Turn LLVM's switches on, and off again. They belong to the whole process: the lock of llvmlite is held meanwhile,
    so that nothing else is compiled with them."""
    with llvm.ffi.lib._lock:
        for switch in switches:
            turn(switch, True)
        try:
            yield
        finally:
            for switch in switches:
                turn(switch, False)


def turn(switch: str, on: bool) -> None:
    """Turn a switch on, or give it the other value."""
    name, _, value = switch.partition("=")
    llvm.set_option("", f"-{name}={'true' if on == (value != 'false') else 'false'}")


@contextmanager
def compiler(modules: Sequence[IR], opt: int, exported: frozenset[str]) -> Iterator[tuple[Any, llvm.ModuleRef]]:
    """Give the record of the target, for machine code of modules, and one module of all, optimised."""
    is_straight = opt == 0 or all(
        isinstance(each, Module) and each.is_straight and FUSED not in each.ir for each in modules
    )
    is_ordered = all(isinstance(each, Module) and each.is_ordered for each in modules)
    in_registers = opt > 0 or all(isinstance(each, Module) and each.in_registers for each in modules)
    straight = [STRAIGHT] if in_registers else [STRAIGHT, QUICK_REGISTERS]
    loops = [LOOPS, LAST, ORDER] if is_ordered else [LOOPS, LAST] if opt > SHORT else []
    with optimize(modules, opt, exported) as module, switched(straight if is_straight else loops):
        machine = target_machine(options.target, min(opt, SHORT) if is_straight else opt, is_straight)
        yield machine, module


def emit_object(modules: Sequence[IR], opt: int = 3, exported: frozenset[str] = frozenset()) -> bytes:
    """The relocatable object (ELF) of modules, optimised at level `opt` (0 to 3); raises CompileError for wrong IR."""
    with compiler(modules, opt, exported) as (machine, module):
        return bytes(machine.emit_object(module))


def emit_assembly(modules: Sequence[IR], opt: int = 3) -> str:
    """The same as assembly text, for a reader."""
    with compiler(modules, opt, frozenset()) as (machine, module):
        return str(machine.emit_assembly(module))


# --- the smaller and the larger of two floats -------------------------------------------------------------------------
# The smaller and the larger of two floats in few instructions of x86-64, and of the numbers of two vectors.
#
#     %c = call double @llvm.minimum.f64(double %a, double %b)      in; out:
#     %c.l = fcmp olt double %a, %b          minsd %a, %b           %b where they are equal, or one is NaN
#     %c.m = select i1 %c.l, ...
#     %c.r = fcmp olt double %b, %a          minsd %b, %a           %a there
#     %c.n = select i1 %c.r, ...
#     %c   = the bits of both, by `or`
#
# In: optimised LLVM IR as text, in which loops of such calls are vectors already. Out: the same with such instructions
# in place of the calls, for operands that are not constants. Where the numbers differ, both halves are the smaller one.
# Of 0.0 and -0.0 the bits together are -0.0; of a NaN and a number they are a NaN. The larger number is the negative of
# the smaller one of both negatives. LLVM's own code for these calls moves signs through integer or mask registers, and
# takes three times as long from a number to the result.

CALL = re.compile(
    r'^( *)(%"?)([\w.]+)("?) = (?:tail )?call (double|float|<\d+ x (?:double|float)>)'
    r' @"?llvm\.(minimum|maximum)\.\w+"?\(\5 (%[\w."]+), \5 (%[\w."]+)\)(?: #\d+)?(.*)$',
    re.MULTILINE,
)
EXTREMES = ("llvm.minimum.", "llvm.maximum.")
"""The beginnings of the names of the functions that are called."""
INTEGERS = {"double": "i64", "float": "i32"}


def with_short_extremes(ir: str) -> str:
    """Return the module with the instructions in place of the calls."""
    return CALL.sub(_instructions, ir)


def _instructions(match: re.Match[str]) -> str:
    """The instructions in place of one call."""
    space, begin, name, end, type_, which, first, second, rest = match.groups()
    whole, truth = (re.sub("double|float", name, type_) for name in (INTEGERS[type_.strip("<>").split()[-1]], "i1"))

    def own(part: str) -> str:
        return f"{begin}{name}.{part}{end}" if begin == '%"' or not name.isdigit() else f'%"{name}.{part}"'

    lines, result = list[str](), f"{begin}{name}{end}"
    if which == "maximum":
        lines += [f"{own('x')} = fneg {type_} {first}", f"{own('y')} = fneg {type_} {second}"]
        first, second = own("x"), own("y")
    for less, one, bits, left, right in (("l", "m", "p", first, second), ("r", "n", "q", second, first)):
        lines += [
            f"{own(less)} = fcmp olt {type_} {left}, {right}",
            f"{own(one)} = select {truth} {own(less)}, {type_} {left}, {type_} {right}",
            f"{own(bits)} = bitcast {type_} {own(one)} to {whole}",
        ]
    lines.append(f"{own('o')} = or {whole} {own('p')}, {own('q')}")
    if which == "maximum":
        lines += [f"{own('s')} = bitcast {whole} {own('o')} to {type_}", f"{result} = fneg {type_} {own('s')}{rest}"]
    else:
        lines.append(f"{result} = bitcast {whole} {own('o')} to {type_}{rest}")
    return "\n".join(space + line for line in lines)
