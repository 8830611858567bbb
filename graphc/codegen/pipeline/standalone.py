"""A kernel as one object that needs nothing of Python's: what `f.export` writes files around.

In: a kernel without Python functions, the values of its shared variables, the name of the C function, what it is for.
Out: a `Standalone`: the bytes of an ELF object, its C interface, and the symbols of others that it needs.

    standalone(kernel, values, "model", "haswell", blas=False)
        the object defines model, model_workspace_size, model_error_text; needs memcpy

All parts are one module of LLVM: the kernel, elementary functions, products and factorisations, the checks of a call
(call/c_ir.py), and in place of the pool of threads and of signals functions that do without. What products and
convolutions allocate is taken from the workspace of the call. All but the C functions is internal to the object. For
another target than this process's, another process makes it.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any

from graphc.codegen import gemm, lapack
from graphc.codegen.call.c_interface import CFunction, Values
from graphc.codegen.call.c_ir import ROOM_NAME, c_ir
from graphc.codegen.call.callback import INTERRUPTED, SAFEPOINT_CALLS, STOPPED
from graphc.codegen.call.signature import ALIGNMENT
from graphc.codegen.gemm.blocked import KEPT_USED, blocks_ir
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.cpu import OTHERS
from graphc.codegen.llvm.functions import Global, function, module_text
from graphc.codegen.llvm.module import IR, Module
from graphc.codegen.llvm.target import optimize, target_machine
from graphc.codegen.llvm.typed import I32, I64, NULL, Ptr
from graphc.codegen.pipeline.background import apply_options, command, complaint, describe, read_kernel, settings_for
from graphc.codegen.pipeline.compilation import KERNEL_OPT, PRODUCTS_OPT, products_of
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.program import Program, generate_program
from graphc.codegen.pipeline.runtime import with_all_callees
from graphc.codegen.routines import routine_functions
from graphc.codegen.server.client import lower_source
from graphc.codegen.server.protocol import ELEMENTARY_OPT
from graphc.codegen.sort import ENTRIES as SORTS
from graphc.codegen.special import FUNCTIONS as SPECIAL
from graphc.codegen.special.plain_source import is_plain, plain_source
from graphc.codegen.threads.pool import gc_chunk, gc_columns, gc_parallel_alone
from graphc.codegen.threads.settings import CHUNK_WORK, PARALLEL, SETTINGS, SETTINGS_WORDS, STREAM
from graphc.codegen.vecmath.table import math_ir
from graphc.errors import GraphcError
from graphc.ir.node import Guard, Node, describe as describe_node
from graphc.ir.walk import node_set
from graphc.ops.custom import PREFIX
from graphc.options import NATIVE, options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record, replace

CONVOLUTIONS = ("gc_conv_", "gc_grouped_conv_")
C_LIBRARY = frozenset("memcpy memmove memset memcmp fmod fmodf".split())
"""Symbols that an object may need without BLAS."""
EXAMPLE = 4
"""The size of axes in examples."""


@record(eq=False)
class Standalone:
    """An object and its C interface. needs: the symbols that others define, without those of C's own library."""

    object: bytes
    function: CFunction
    needs: tuple[str, ...]


def standalone(
    kernel: Kernel,
    values: Values,
    name: str,
    target: str,
    blas: bool = False,
    strided: Collection[str] | bool = (),
    results: Sequence[str] = (),
) -> Standalone:
    """Return the object of a kernel. values: of its shared variables. blas: whether it may call BLAS and LAPACK.
    strided: the names of arrays that have strides, True for all. results: their names, "" for the usual one. Raises
    GraphcError for a kernel that cannot do without Python, one that needs LAPACK where it may not be called, and a name
    of no array."""
    if target == options.target:
        return make(kernel, values, name, blas, strided, results)
    triple, _ = OTHERS.get(target, ("", ""))
    settings = settings_for(NATIVE if triple else target)
    request = settings, triple, describe(kernel), values, name, blas, strided, results
    done = subprocess.run(command(__name__), input=pickle.dumps(request), capture_output=True, check=False)
    if done.returncode:
        raise GraphcError(f"{kernel.name} cannot be exported for {target}: {complaint(done.stderr) or 'no answer'}")
    result: Standalone | str = pickle.loads(done.stdout)
    if isinstance(result, str):
        raise GraphcError(result)
    return result


def main() -> None:
    """In the process for another target: make the object that standard input tells of."""
    settings, triple, described, *asked = pickle.load(sys.stdin.buffer)
    apply_options(settings, triple)
    try:
        result: Standalone | str = make(read_kernel(*described), *asked)
    except GraphcError as error:
        result = str(error)
    sys.stdout.buffer.write(pickle.dumps(result))


def make(
    kernel: Kernel, values: Values, name: str, blas: bool, strided: Collection[str] | bool, results: Sequence[str]
) -> Standalone:
    """The object of a kernel, for the target of this process."""
    kernel = replace(kernel, mutable=(), returns="list" if kernel.outputs else "none")
    program = generate_program(kernel, Report(kernel.name))
    refuse(kernel, program)
    checks = (*map(check_text, program.checks), "an array has other sizes than its type says")
    sizes = example_sizes(kernel, values, program.checks)
    function = CFunction(name, program.signature, values, program.constants, checks, sizes, room=room_of(program))
    function = function.with_names(results).with_strides(strided)
    jobs = [*lowered(program, kernel.is_fast), *routines(program)]
    jobs += [(c_ir(function), PRODUCTS_OPT), (support(program, blas), PRODUCTS_OPT)]
    # Each is optimised as it is for functions of Python, then all become one.
    texts = [Module(_optimized_text(ir, opt), is_vectorized=True) for ir, opt in jobs]
    with optimize(texts, KERNEL_OPT, frozenset(function.exports())) as module:
        every = (*module.functions, *module.global_variables)
        needs = [each.name for each in every if each.is_declaration and not each.name.startswith("llvm.")]
        needs = [each for each in needs if each not in C_LIBRARY]
        if needs and not blas:
            raise GraphcError(
                f"{kernel.name} cannot be exported without BLAS and LAPACK, of which it calls {', '.join(needs)}: "
                "export it with blas=True, and give them to the linker"
            )
        content = bytes(target_machine(options.target, KERNEL_OPT).emit_object(module))
    return Standalone(content, function, tuple(needs))


def _optimized_text(ir: IR, opt: int) -> str:
    """The text of a module that is optimised as it is for functions of Python, with our memory in place of C's."""
    with optimize([ir], opt) as module:
        return re.sub(r"@(malloc|free|aligned_alloc|madvise)\b", r"@gc_\1", str(module))


def refuse(kernel: Kernel, program: Program) -> None:
    """Raise GraphcError for what no object can have, with names and lines."""
    names = {f"{PREFIX}{SPECIAL[each][0]}" for each in program.externals if each in SPECIAL and not is_plain(each)}
    special = [node for node in node_set(kernel.results) if node.op.name in names]
    for foreign, who in ((program.calls, "Python"), (special, "SciPy")):
        if foreign:
            nodes = ", ".join(dict.fromkeys(map(describe_node, foreign)))
            raise GraphcError(f"{kernel.name} cannot be exported: {who} computes {nodes}")


def check_text(guard: Guard) -> str:
    """The sentence of a check: its sizes are named, as their values are known at a call only."""
    left, right = (each if isinstance(each, int) else HOOKS.expression(each) for each in (guard.left, guard.right))
    return str(guard.message).format(left=left, right=right)


def example_sizes(kernel: Kernel, values: Values, checks: Sequence[Guard]) -> dict[tuple[int, int], int]:
    """Sizes of the inputs that a call may have, by input and axis: where checks say so those of shared variables and
    constants, else EXAMPLE."""
    known: dict[Node, int] = {}
    for leaf, value in zip(kernel.shared, values, strict=True):
        pairs = zip(leaf.type.shape, value.shape, strict=True)
        known |= {size: number for size, number in pairs if isinstance(size, Node)}
    for _ in checks:  # each round may tell of one more
        for guard in checks:
            sides = [each if isinstance(each, int) else known.get(each) for each in (guard.left, guard.right)]
            if guard.relation == "==" and sides.count(None) == 1:
                new = guard.left if sides[0] is None else guard.right
                known[new] = sides[0] if sides[0] is not None else sides[1]  # type: ignore[assignment]
    return {
        (number, axis): known.get(size, EXAMPLE)
        for number, leaf in enumerate(kernel.inputs)
        for axis, size in enumerate(leaf.type.shape)
        if isinstance(size, Node)
    }


def lowered(program: Program, fast_math: bool) -> list[tuple[IR, int]]:
    """The modules of the kernel, of special functions in the place of SciPy's, and of the elementary functions that
    these call, with LLVM's levels."""
    parts = [(program.source, program.prototypes, program.externals, fast_math)]
    if plain := [each for each in program.externals if is_plain(each)]:
        source, prototypes = plain_source(plain)
        parts.append((source, tuple(prototypes), {}, False))
    modules: list[Module] = []
    for source, functions, externals, is_fast in parts:
        by_number: dict[int, Module] = {}
        lower_source(source, functions, by_number.__setitem__, externals=externals, fast_math=is_fast)
        modules += [by_number[number] for number in range(max(by_number) + 1)]
    elementary = dict.fromkeys(name for module in modules for name in module.calls)
    return [*((module, KERNEL_OPT) for module in modules), *((math_ir(name), ELEMENTARY_OPT) for name in elementary)]


def products(program: Program) -> list[str]:
    """The external routines that a program needs: those that it calls, and those that these do."""
    callees = [each for each in with_all_callees(products_of(program)) if not is_plain(each)]
    suffixes = [each.removeprefix("gc_gemm_") for each in callees if each.startswith("gc_gemm_")]
    return list(dict.fromkeys([*callees, *map(gemm.vector_name, suffixes)]))


def routines(program: Program) -> list[tuple[IR, int]]:
    """The modules of these routines and of large products, with LLVM's levels. None keeps memory from call to call: it
    is as if another call used it."""
    texts = [module_text(routine_functions([name])) for name in products(program)]
    texts += map(blocks_ir, blocks_of(program))
    free, used = (f"@{KEPT_USED.name} = {text}" for text in (KEPT_USED.text, KEPT_USED.text[:-1] + "1"))
    gives, internal = "define void @gc_blocks_free", "define internal void @gc_blocks_free"  # one in each module
    return [(text.replace(free, used).replace(gives, internal), PRODUCTS_OPT) for text in texts]


def blocks_of(program: Program) -> list[str]:
    """The suffixes of the dtypes of large products."""
    called_routines = products(program)
    return [
        suffix
        for suffix in gemm.SUFFIXES
        if any(each.startswith(gemm.LARGE_USERS) and each.endswith(suffix) for each in called_routines)
    ]


def room_of(program: Program) -> int:
    """The bytes that products and convolutions may need for each byte of all arrays, 0 without them. Panels copy
    the operands of a product; tables of a convolution have four words for each place of a result."""
    if any(each.startswith(CONVOLUTIONS) for each in program.externals):
        return 8
    return 2 if blocks_of(program) else 0


# --- in place of what a process has -----------------------------------------------------------------------------------


@function(name=STREAM, is_internal=False)
def stream(code: Code, body: Ptr, context: Ptr, count: I64, size: I64, settings: Ptr, stream_words: Ptr) -> None:
    """Without stores that go past the caches."""
    gc_parallel_alone(code, body, context, count, size, settings)


@function(name=INTERRUPTED, is_internal=False)
def interrupted(code: Code) -> I64:
    """No signal ends a call."""
    return I64.of(0)


@function(name=STOPPED, is_internal=False)
def stopped(code: Code, flag: Ptr) -> I64:
    return I64.of(0)


ROOM = Global(ROOM_NAME, "thread_local global [2 x i64] zeroinitializer")


@function(name="gc_malloc", is_internal=False)
def take(code: Code, length: I64) -> Ptr:
    """Memory of the workspace, null where so much is not left: products and convolutions go on without."""
    place = ROOM(code)
    begin = (place.load(I64) + (ALIGNMENT - 1)) & -ALIGNMENT
    left = place.at(1, I64).load(I64) - begin
    with code.when((begin == 0) | (left < length)):
        code.ret(NULL)
    place.store(begin + length)
    return begin.address()


@function(name="gc_free", is_internal=False)
def give_back(code: Code, memory: Ptr) -> None:
    """Give memory back: what was taken last comes first."""
    with code.when(memory != NULL):
        ROOM(code).store(memory)


@function(name="gc_malloc", is_internal=False)
def take_nothing(code: Code, length: I64) -> Ptr:
    """Products with vectors go on without memory: no variable of the thread is needed."""
    return NULL


@function(name="gc_free", is_internal=False)
def give_nothing(code: Code, memory: Ptr) -> None:
    code.ret()


@function(name="gc_aligned_alloc", is_internal=False)
def take_pages(code: Code, alignment: I64, length: I64) -> Ptr:
    """No call has memory that is kept."""
    return NULL


@function(name="gc_madvise", is_internal=False)
def advise(code: Code, memory: Ptr, length: I64, advice: I32) -> I32:
    return I32.of(0)


def support(program: Program, blas: bool) -> str:
    """The module of what kernels and products find in a process: settings for one thread, tables of addresses."""
    names, large = products(program), [] if blas else blocks_of(program)  # beside a BLAS, large ones would not call it
    words = [1, 2**40, CHUNK_WORK, 0, 2**62]
    assert len(words) == SETTINGS_WORDS
    settings = [f"i64 {word}" for word in words] + ["i64 0"] * (gemm.PRODUCT_WORDS - len(words))
    declared: dict[str, str] = {}
    for suffix, word in gemm.VECTORS.items():
        if gemm.vector_name(suffix) in names:
            settings[word] = f"i64 ptrtoint (ptr @{gemm.vector_name(suffix)} to i64)"
            declared[gemm.vector_name(suffix)] = "i64 "
    fortran = {name: f"{name}_" for name in (*gemm.ROUTINES, *lapack.BLAS, *lapack.LAPACK)}
    declared |= dict.fromkeys(fortran.values(), "void ")
    addresses = {f"blocks {suffix}": gemm.blocks_name(suffix) for suffix in large}
    declared |= dict.fromkeys(addresses.values(), "i64 ")
    addresses |= {each: fortran[each] for each in gemm.ROUTINES} if blas else {}
    table = [f"ptr @{addresses[each]}" if each in addresses else "ptr null" for each in gemm.ENTRIES]
    factors = [f"ptr @{fortran[each]}" for each in lapack.ENTRIES if each != lapack.WIDTH]
    data = [
        f"@{SETTINGS} = constant [{gemm.PRODUCT_WORDS} x i64] [{', '.join(settings)}]",
        f"@gc_blas = constant [{len(table)} x ptr] [{', '.join(table)}]",
        f"@gc_lapack = constant [{len(lapack.ENTRIES)} x ptr] [{', '.join(factors)}, ptr inttoptr (i64 4 to ptr)]",
        f"@gc_alone = constant [{len(lapack.ALONE)} x ptr] zeroinitializer",
        f"@gc_order = constant [{len(SORTS)} x ptr] zeroinitializer",
        *(f"declare {kind}@{symbol}(...)" for symbol, kind in declared.items()),
    ]
    assert not set(gemm.DEFERRED) & set(gemm.ROUTINES) and set(SAFEPOINT_CALLS) == {INTERRUPTED, STOPPED}
    memory = [*((take, give_back) if room_of(program) else (take_nothing, give_nothing)), take_pages, advise]
    functions: Sequence[Any] = [gc_parallel_alone, gc_chunk, gc_columns, stream, interrupted, stopped, *memory]
    assert gc_parallel_alone.name == PARALLEL
    return module_text(functions, data)
