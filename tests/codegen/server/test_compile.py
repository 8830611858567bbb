"""Generated source to machine code: each name of the prelude on each dtype against CPython and NumPy, and the compile
process.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import textwrap
import threading
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import graphc
from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS, SIGNED
from graphc.codegen.frontend.intrinsics import INTRINSICS, OPERATORS, InferenceError
from graphc.codegen.frontend.language import PRELUDE, bind_source
from graphc.codegen.link.elf import link
from graphc.codegen.llvm import cpu
from graphc.codegen.llvm.cpu import target_fingerprint
from graphc.codegen.llvm.module import Module
from graphc.codegen.llvm.target import emit_object, has_fma, optimize, target_machine
from graphc.codegen.server import client as compiler, process as child
from graphc.codegen.server.client import CompileServer, Prototype, Request
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import (
    CHUNK,
    CHUNK_WORK,
    COLUMNS,
    POOL_EXPORTS,
    SETTINGS,
    chunk_size,
    columns_size,
    load_pool,
)
from graphc.errors import CompileError
from graphc.loopir.operators import CALLS, result_dtype
from graphc.loopir.syntax import read_operator
from graphc.options import options
from graphc.startup.record import replace
from tests.support.compiled_source import Loaded, compile_source, link_in_process, load

Array = np.ndarray[Any, np.dtype[Any]]

REPOSITORY = Path(compiler.__file__).parents[3]

TOLERANCE = {"float32": 6e-7, "float64": 2e-15}


# --- the prelude ----------------------------------------------------------------------------------------------------


def samples(dtype: str) -> Array:
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        info = np.finfo(dtype)
        plain = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.5,
            -2.5,
            3.0,
            -7.0,
            0.1,
            1e-3,
            20.25,
            -90.5,
            700.0,
            2.0**31,
            -(2.0**40),
        ]
        special = [
            np.nan,
            np.inf,
            -np.inf,
            info.tiny,
            -info.tiny / 4,
            info.eps,
            info.max,
            -info.max,
            2.0**63,
            -(2.0**63),
            1e19,
        ]
        return np.array(plain + special).astype(dtype)
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 8, 31, 63, 64, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
    return np.array(values + ([-1, -2, -3, -8, -100] if dtype in SIGNED else []), dtype=dtype)


def operand_dtypes(infer: Any, dtype: str) -> tuple[tuple[str, ...], str] | None:
    """The operands and the result of an intrinsic at `dtype`, or None where it does not take it."""
    for count in (1, 2):
        try:
            operands, result = infer((dtype,) * count)
        except InferenceError:
            continue
        return (operands, result) if operands == (dtype,) * count else None
    return None


def cases() -> list[tuple[str, str, str, tuple[str, ...], str]]:
    """Label, expression of the operands a and b, NumPy's name or "", operand dtypes, result dtype."""
    found = []
    for name, intrinsic in INTRINSICS.items():
        for dtype in DTYPES:
            fit = operand_dtypes(intrinsic.infer, dtype)
            if fit is not None:
                operands, result = fit
                found.append((name, f"{name}({', '.join('ab'[: len(operands)])})", name, operands, result))
    symbols = {
        "add": "a + b", "sub": "a - b", "mul": "a * b", "truediv": "a / b", "floordiv": "a // b", "mod": "a % b",
        "lshift": "a << b", "rshift": "a >> b", "and_": "a & b", "or_": "a | b", "xor": "a ^ b",
        "invert": "~a", "neg": "-a", "pos": "+a", "not_": "not a", "lt": "a < b",
        "le": "a <= b", "gt": "a > b", "ge": "a >= b", "eq": "a == b", "ne": "a != b",
    }  # fmt: skip
    for intrinsic in {row.name: row for row in OPERATORS.values()}.values():
        for dtype in DTYPES:
            fit = operand_dtypes(intrinsic.infer, dtype)
            if fit is not None:
                found.append((f"operator {intrinsic.name}", symbols[intrinsic.name], intrinsic.name, *fit))
    return found


CASES = cases()


def case_kernels() -> tuple[str, list[Prototype]]:
    lines, prototypes = [], []
    for index, (_, expression, _, operands, result) in enumerate(CASES):
        pointers = ", ".join("xy"[: len(operands)])
        lines.append(f"def case{index}({pointers}, out, n):")
        lines.append("    for i in independent(n):")
        lines += [
            f"        {value} = {pointer}[i]" for value, pointer in zip("ab"[: len(operands)], "xy", strict=False)
        ]
        lines.append(f"        out[i] = {expression}")
        lines.append("    return 0")
        prototypes.append(Prototype(f"case{index}", (*(f"{o}*" for o in operands), f"{result}*", "int64")))
    return "\n".join(lines), prototypes


@pytest.fixture(scope="module")
def compiled_cases() -> Loaded:
    source, prototypes = case_kernels()
    return load(source, *prototypes)


@pytest.fixture(scope="module")
def python_cases() -> dict[str, Any]:
    return bind_source(case_kernels()[0])


def operands_of(dtypes: tuple[str, ...]) -> list[Array]:
    sample = samples(dtypes[0])
    if len(dtypes) == 1:
        return [sample]
    left, right = np.meshgrid(sample, sample)
    return [np.ascontiguousarray(left.ravel()), np.ascontiguousarray(right.ravel())]


def assert_close(got: Array, wanted: Array, tolerance: float, absolute: float = 0.0) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted))
    finite = np.isfinite(wanted)
    tiny = np.finfo(wanted.dtype).tiny
    np.testing.assert_allclose(got[finite], wanted[finite], rtol=tolerance, atol=absolute + tiny)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{c[0]}-{c[3][0]}" for c in CASES])
def test_name_means_the_same_compiled_and_in_python(
    index: int, compiled_cases: Loaded, python_cases: dict[str, Any]
) -> None:
    name, _, _, dtypes, result = CASES[index]
    args = operands_of(dtypes)
    got, wanted = np.zeros(len(args[0]), result), np.zeros(len(args[0]), result)
    compiled_cases.call(f"case{index}", *args, got, len(got))
    python_cases[f"case{index}"](*args, wanted, len(wanted))
    if result in FLOATS:
        # The compiled functions and NumPy's may each be wrong in their last bits, and math.lgamma beside its zeros.
        assert_close(got, wanted, 4 * TOLERANCE[result], TOLERANCE[result] if name == "gammaln" else 0.0)
    else:
        np.testing.assert_array_equal(got, wanted)


NUMPY_NAMES = {
    "abs_": "absolute", "floordiv": "floor_divide", "mod": "remainder", "shift_left": "left_shift",
    "shift_right": "right_shift", "pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "accumulate": "add", "accumulate_product": "multiply", "accumulate_minimum": "minimum",
    "accumulate_maximum": "maximum", "accumulate_lowest": "minimum", "accumulate_highest": "maximum",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "index", [i for i, c in enumerate(CASES) if hasattr(np, NUMPY_NAMES.get(c[2], c[2])) and c[0] == c[2]]
)
def test_prelude_is_numpy(index: int) -> None:
    name, _, _, dtypes, result = CASES[index]
    args = operands_of(dtypes)
    with np.errstate(all="ignore"):
        if name.rstrip("_") in DTYPES:
            if dtypes[0] in FLOATS and result in INTEGERS:
                # Outside the range NumPy's own answers differ between one element and many.
                info = np.iinfo(result)
                args = [args[0][(args[0] > info.min - 1.0) & (args[0] < info.max / 2)]]
            wanted = args[0].astype(name.rstrip("_"))
        else:
            wanted = getattr(np, NUMPY_NAMES.get(name, name))(*args)
    got = [PRELUDE[name](*(arg[i] for arg in args)) for i in range(len(args[0]))]
    assert {np.dtype(type(value)).name for value in got} == {result} == {wanted.dtype.name}
    if result in FLOATS:
        assert_close(np.array(got), wanted, TOLERANCE[result])
    else:
        np.testing.assert_array_equal(np.array(got), wanted)


def test_every_name_has_both_meanings() -> None:
    no_scalars = {"abreast", "advance", "chunk", "columns", "independent", "parallel", "fills", "reads"}
    assert set(PRELUDE) == set(INTRINSICS) | no_scalars
    assert set(PRELUDE) == set(CALLS) | {"abreast", "advance", "independent", "parallel"}


def test_the_table_of_operators_says_what_each_gives() -> None:
    unused = {f"operator {name}" for name in ("lshift", "rshift", "pos", "not_")}
    told = [case for case in CASES if case[0] not in unused]
    for _, expression, _, operands, result in told:
        op, _ = read_operator(ast.parse(expression, mode="eval").body)
        assert result_dtype(op, operands) == result, expression
    assert {name for name, *_ in told} >= {"operator add", "operator invert", "operator eq", "exp", "bool_"}


@pytest.mark.parametrize("settings", [(1, 4, CHUNK_WORK, 0), (2, 4, CHUNK_WORK, 0), (7, 2, 500, 0), (3, 16, 10**9, 0)])
def test_chunks_and_columns_are_those_of_the_module_chunks(settings: tuple[int, ...]) -> None:
    """Compiled, they call the pool's functions with the settings of the kernel."""
    stores = "S[0] = chunk(count, work); S[1] = columns(count, work)"
    source = f"def kernel(count, work, S):\n    {stores}\n    return 0\n"
    binary = compile_source(source, [Prototype("kernel", ("int64", "int64", "int64*"))])
    words, least = np.array(settings, np.int64), settings[2]
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3, ctypes.c_void_p)
    pool = load_pool(link([emit_object([pool_ir()], 0)], POOL_EXPORTS))
    builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol("kernel")
    for symbol, address in ((SETTINGS, words.ctypes.data), (CHUNK, pool.chunk), (COLUMNS, pool.columns)):
        builder.import_symbol(symbol, address)
    library = link_in_process(builder)
    kernel = kind(library["kernel"])
    found = np.zeros(2, np.int64)
    for count, work in itertools.product((0, 1, 255, 256, 700, 1030, 2048, 5000, 10**6), (1, 30, 10**5)):
        kernel(count, work, found.ctypes.data)
        sizes = chunk_size(count, work, least), columns_size(count, work, max(settings[:2]), least)
        assert [min(size, count) for size in found] == [min(size, count) for size in sizes]


# --- pointers, statements, literals ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_pointers_of_every_dtype(dtype: str) -> None:
    source = """
def reverse(x, out, n):
    for i in range(n):
        out[n - 1 - i] = x[i]
    return n
"""
    loaded = load(source, Prototype("reverse", (f"{dtype}*", f"{dtype}*", "int64")))
    x = samples(dtype)
    out = np.zeros(len(x) + 1, dtype)
    assert loaded.call("reverse", x, out, len(x)) == len(x)
    np.testing.assert_array_equal(out[:-1], x[::-1])
    assert out[-1] == 0


STATEMENTS = """
def ranges(out, n):
    k = 0
    for i in range(n):
        for j in range(i, n):
            out[k] = out[k] + 1
        k = k + 1
    for i in range(n - 1, -1, -1):
        out[i] = out[i] * 10 + i
    for i in range(0, n, 2):
        out[i] = -out[i]
    for i in range(n, 0, 0 - n):
        out[0] = out[0] + 1000 * i
    return k


def branches(out, n):
    for i in range(1, 10 * n):
        if (i > 7) & (n > 0):
            break
        if (i == 3) | (i == 5):
            out[i] = 0
        else:
            if i % 2 == 0:
                out[i] = 1
            else:
                out[i] = 2
    if not n < 0:
        return i
    return -i
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranges", "branches"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_statements(name: str, n: int) -> None:
    args = ("int64*", "int64")
    loaded = load(STATEMENTS, Prototype("ranges", args), Prototype("branches", args))
    got, wanted = np.zeros(20, np.int64), np.zeros(20, np.int64)
    assert loaded.call(name, got, n) == bind_source(STATEMENTS)[name](wanted, n)
    np.testing.assert_array_equal(got, wanted)


def test_operators_keep_the_dtype_and_literals_adapt() -> None:
    source = """
def kernel(x, y, out, n):
    for i in range(n):
        s = 0.0
        k = 1
        s = accumulate(s, x[i] * 0.1)
        k = k * y[i] + 3
        out[i] = s + 1 + float32(k)
    return 0
"""
    x, y = np.array([0.3, 1e8], np.float32), np.array([2**31 - 1, -5], np.int32)
    got, wanted = np.zeros(2, np.float64), np.zeros(2, np.float64)
    load(source, Prototype("kernel", ("float32*", "int32*", "float64*", "int64"))).call("kernel", x, y, got, 2)
    bind_source(source)["kernel"](x, y, wanted, 2)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(got, got.astype(np.float32))


def test_names_and_literals_that_a_block_reads_again() -> None:
    source = """
def kernel(x, out, n):
    a = 2.0
    out[0] = x[0] + 2.0
    a = a * 2.0
    b = 2.0
    for i in range(n):
        c = 2.0
        out[i] = exp(x[i]) * 2.0 + exp(c) + a * b
        b = select(x[i] > 2.0, 2.0, exp(2.0))
        c = 3.0
        out[i] = out[i] + c * 2.0
    return 0
"""
    x = np.array([0.5, 2.5, 1.0])
    got, wanted = np.zeros(3), np.zeros(3)
    load(source, Prototype("kernel", ("float64*", "float64*", "int64"))).call("kernel", x, got, 3)
    bind_source(source)["kernel"](x, wanted, 3)
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_calls_between_functions_and_to_extra_ir_and_libm() -> None:
    source = """
def row(x, out, n):
    for i in range(n):
        out[i] = cube(x[i]) + fdim(x[i], 1.0)
    return n

def kernel(x, out, n):
    half = n // 2
    done = row(x, out, half)
    return done + row(advance(x, half), advance(out, half), n - half)
"""
    extra_ir = """
define double @cube(double %x) alwaysinline {
  %square = fmul double %x, %x
  %cube = fmul double %square, %x
  ret double %cube
}
define i64 @entry(ptr %x, ptr %out, i64 %n) {
  %done = call i64 @kernel(ptr %x, ptr %out, i64 %n)
  %more = add i64 %done, 100
  ret i64 %more
}
declare i64 @kernel(ptr, ptr, i64)
"""
    args = ("float64*", "float64*", "int64")
    externals = {
        "cube": Prototype("cube", ("float64",), "float64"),
        "fdim": Prototype("fdim", ("float64",) * 2, "float64"),
    }
    binary = compile_source(
        source, [Prototype("row", args), Prototype("kernel", args)], modules=[extra_ir], externals=externals
    )
    x = np.linspace(-2, 2, 7)
    out = np.zeros(7)
    loaded = Loaded(binary, ["row", "kernel", "entry"])
    assert loaded.call("entry", x, out, 7) == 107
    np.testing.assert_allclose(out, x**3 + np.maximum(x - 1, 0))


def test_calls_with_many_arguments() -> None:
    names = [f"x{i}" for i in range(60)]
    source = f"""
def part({", ".join(names)}):
    x0[0] = {" + ".join(f"{name}[0]" for name in names)}
    return 0

def kernel({", ".join(names)}):
    return part({", ".join(names)})
"""
    args = ("float64*",) * len(names)
    arrays = [np.array([float(i)]) for i in range(len(names))]
    load(source, Prototype("part", args), Prototype("kernel", args)).call("kernel", *arrays)
    assert arrays[0][0] == sum(range(60))


def test_bool_and_small_arguments_by_value() -> None:
    source = """
def kernel(flag, small, scale, out):
    out[0] = select(flag, float64(small) * scale, -1.0)
    return 0
"""
    loaded = load(source, Prototype("kernel", ("bool", "int8", "float64", "float64*")))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_bool, ctypes.c_int8, ctypes.c_double, ctypes.c_void_p)(
        loaded.library["kernel"]
    )
    out = np.zeros(1)
    call(True, -3, 1.5, out.ctypes.data)
    assert out[0] == -4.5
    call(False, -3, 1.5, out.ctypes.data)
    assert out[0] == -1.0


# --- the object -----------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": "s = accumulate(s, x[i])",
    "product": "s = accumulate_product(s, x[i])",
    "maximum": "s = accumulate_maximum(s, x[i])",
    "minimum": "s = accumulate_minimum(s, x[i])",
    "dot": "s = accumulate(s, x[i] * x[i])",
}


def reduction(name: str) -> str:
    return f"""
def kernel(x, out, n):
    s = x[0]
    for i in range(1, n):
        {REDUCTIONS[name]}
    out[0] = s
    return 0
"""


PACKED = {"float32": ("addps", "mulps", "maxps", "minps"), "float64": ("addpd", "mulpd", "maxpd", "minpd")}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_vectorise_and_are_right(name: str, dtype: str) -> None:
    prototype = Prototype("kernel", (f"{dtype}*", f"{dtype}*", "int64"))
    text = compiler.compile_assembly(reduction(name), [prototype])
    assert any(instruction in text for instruction in PACKED[dtype])
    x = np.linspace(0.99, 1.01, 1001, dtype=dtype)
    loaded = load(reduction(name), prototype)
    for position in (None, 0, 500, 1000):
        values = x.copy()
        if position is not None:
            values[position] = np.nan
        got, wanted = np.zeros(1, dtype), np.zeros(1, dtype)
        loaded.call("kernel", values, got, len(values))
        bind_source(reduction(name))["kernel"](values, wanted, len(values))
        np.testing.assert_allclose(got, wanted, rtol=1e-4 if dtype == "float32" else 1e-12)


def test_loops_over_several_pointers_need_no_overlap_check() -> None:
    source = """
def kernel(x, y, z, out, n):
    for i in range(n):
        out[i] = x[i] * y[i] + z[i]
    return 0
"""
    text = compiler.compile_assembly(source, [Prototype("kernel", ("float64*",) * 4 + ("int64",))])
    assert "mulpd" in text
    # Overlap checks compare the ends of the arrays: one `set` or branch "above or equal" per pair.
    assert not [
        line for line in text.splitlines() if line.split() and line.split()[0] in ("setb", "setae", "setbe", "seta")
    ]


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_loop_vectorises(dtype: str) -> None:
    source = "def kernel(x, out, n):\n    for i in independent(n):\n        out[i] = exp(x[i])\n    return 0\n"
    text = compiler.compile_assembly(source, [Prototype("kernel", (f"{dtype}*", f"{dtype}*", "int64"))])
    assert any(instruction in text for instruction in PACKED[dtype])
    assert "call" not in text


ELEMENTWISE = """
def elementwise(x, out, n):
    for i in range(n):
        out[i] = float32(exp(x[i]) + tanh(x[i]) * cbrt(x[i]) + float64(ipow(int32(x[i]), 3)))
    return 0
"""


@pytest.mark.slow
def test_same_text_same_object() -> None:
    source, prototypes = (
        STATEMENTS + ELEMENTWISE,
        [
            *(Prototype(name, ("int64*", "int64")) for name in ("ranges", "branches")),
            Prototype("elementwise", ("float64*", "float32*", "int64")),
        ],
    )
    first = compile_source(source, prototypes)
    assert compile_source(source, prototypes) == first
    with options.change(compile="inline"):
        assert compile_source(source, prototypes) == first
    other = CompileServer()
    try:
        request = Request(source, tuple(prototypes))
        assert other.compile(request) == first
    finally:
        other.close()
    assert str(REPOSITORY).encode() not in first


def test_fast_math_contracts_and_keeps_nan() -> None:
    source = """
def kernel(x, out, n):
    for i in range(n):
        out[i] = select(isnan(x[i]), 5.0, x[i] * x[i] + 0.5)
    return 0
"""
    prototype = Prototype("kernel", ("float64*", "float64*", "int64"))
    x, out = np.array([np.nan, 2.0, np.inf]), np.zeros(3)
    load(source, prototype, fast_math=True).call("kernel", x, out, 3)
    np.testing.assert_array_equal(out, [5.0, 4.5, np.inf])
    if has_fma():
        assert "vfmadd" in compiler.compile_assembly(source, [prototype], fast_math=True)
        assert "vfmadd" not in compiler.compile_assembly(source, [prototype])


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_every_optimisation_level_gives_the_same_results(opt: int) -> None:
    x, out = np.arange(20.0), np.zeros(1)
    load(reduction("sum"), Prototype("kernel", ("float64*", "float64*", "int64")), opt=opt).call("kernel", x, out, 20)
    assert out[0] == 190.0


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
def test_object_loads_in_a_process_without_numba(tmp_path: Path, compiled_cases: Loaded) -> None:
    names = compiled_cases.names
    (tmp_path / "cases.o").write_bytes(compiled_cases.binary)
    done = run_python(f"""
        import ctypes, sys
        import llvmlite.binding as llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
        binary = open({str(tmp_path / "cases.o")!r}, "rb").read()
        builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process()
        for name in {names!r}:
            builder.export_symbol(name)
        jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        library = builder.link(jit, "cases")
        assert all(library[name] for name in {names!r})
        assert "numba" not in sys.modules and "scipy" not in sys.modules
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_modules_end_before_their_context_when_an_error_is_kept() -> None:
    """The garbage collector ends the objects of a cycle in any order, and the frames of an error hold both."""
    done = run_python("""
        import gc
        from graphc.codegen.llvm.target import emit_object
        from graphc.errors import CompileError
        gc.disable()
        for _ in range(50):
            try:
                emit_object(["define i64 @f() { ret i64 1 }"] * 2)
            except CompileError as error:
                held = [error]
                held.append(held)
                assert "multiply defined" in str(error)
        del held
        gc.collect()
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_lowest_divided_by_minus_one_does_not_trap() -> None:
    done = run_python("""
        import ctypes, sys
        import numpy as np
        import llvmlite.binding as llvm
        from graphc.codegen.server.client import Prototype, Request, compile_request
        lines, prototypes = [], []
        for bits in (8, 16, 32, 64):
            for name in ("floordiv", "mod", "fmod"):
                lines.append(f"def {name}{bits}(x, out):")
                lines.append(f"    out[0] = {name}(x[0], x[1])")
                lines.append("    return 0")
                prototypes.append(Prototype(f"{name}{bits}", (f"int{bits}*",) * 2))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        binary = compile_request(Request("\\n".join(lines), tuple(prototypes)))
        builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process()
        for prototype in prototypes:
            builder.export_symbol(prototype.name)
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
        jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        library = builder.link(jit, "traps")
        call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        for prototype in prototypes:
            dtype = prototype.args[0][:-1]
            lowest = np.iinfo(dtype).min
            for divisor, wanted in ((-1, lowest if "floor" in prototype.name else 0), (0, 0)):
                x, out = np.array([lowest, divisor], dtype), np.ones(1, dtype)
                call(library[prototype.name])(x.ctypes.data, out.ctypes.data)
                assert out[0] == wanted, (prototype, divisor, out)
    """)
    assert done.returncode == 0, done.stderr


# --- errors ---------------------------------------------------------------------------------------------------------

BAD = {
    "syntax": ("def kernel(x):\n    return (\n", "line"),
    "missing function": ("def other(x):\n    return 0\n", "kernel"),
    "unknown name": ("def kernel(x):\n    x[0] = frobnicate(x[0])\n    return 0\n", "frobnicate"),
    "mixed dtypes": ("def kernel(x):\n    x[0] = x[0] * int32(2)\n    return 0\n", "int32"),
    "argument count": ("def kernel(x, y):\n    return 0\n", "2 arguments"),
    "two types of one variable": (
        "def kernel(x):\n    a = x[0]\n    if a > 0.0:\n        a = a > 1.0\n    return 0\n",
        "unify",
    ),
    "an index of floats": ("def kernel(x):\n    return int64(x[x[0]])\n", "index"),
    "a condition that is no bool": ("def kernel(x):\n    if x[0]:\n        return 1\n    return 0\n", "bool"),
    "exception": ("def kernel(x):\n    raise ValueError\n", "kernel"),
    "list": ("def kernel(x):\n    y = [x[0]]\n    return 0\n", "kernel"),
    "keyword": ("def kernel(x):\n    x[0] = exp(x=x[0])\n    return 0\n", "not a kernel's expression"),
    "step of zero": ("def kernel(x):\n    for i in range(0, 3, 0):\n        x[i] = 1.0\n    return 0\n", "step"),
    "iterating a pointer": ("def kernel(x):\n    for i in x:\n        x[0] = i\n    return 0\n", "range"),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["process", "inline"])
@pytest.mark.parametrize("name", BAD)
def test_bad_source_is_a_compile_error(name: str, way: str) -> None:
    source, word = BAD[name]
    with options.change(compile=way), pytest.raises(CompileError, match=word) as caught:
        compile_source(source, [Prototype("kernel", ("float64*",))])
    assert "Traceback" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(("args", "extra_ir"), [(("float65*",), ""), (("float64*",), "define nonsense")])
def test_bad_prototypes_and_ir_are_compile_errors(args: tuple[str, ...], extra_ir: str) -> None:
    with pytest.raises(CompileError):
        compile_source("def kernel(x):\n    return 0\n", [Prototype("kernel", args)], modules=[extra_ir])


# --- the compile process --------------------------------------------------------------------------------------------

RETURN_SEVEN = Request("def kernel(x):\n    return 7\n", (Prototype("kernel", ("float64*",)),))


@pytest.mark.slow
def test_server_is_reused_restarts_and_leaves_no_zombie() -> None:
    server = CompileServer()
    request = RETURN_SEVEN
    try:
        assert server.start()
        first = server._process
        assert first is not None
        binary = server.compile(request)
        assert server.compile(request) == binary
        assert server._process is first
        first.kill()
        first.wait()
        assert server.compile(request) == binary
        assert server._process is not first
    finally:
        last = server._process
        server.close()
    assert last is not None and last.returncode == 0
    assert not Path(f"/proc/{last.pid}").exists()


SUM = """
define double @sum(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %s = phi double [0.0, %entry], [%t, %loop]
  %k = mul i64 %i, 24
  %p = getelementptr i8, ptr %x, i64 %k
  %v = load double, ptr %p
  %t = fadd double %s, %v
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  ret double %t
}
"""


def test_switches_of_llvm_hold_for_one_object() -> None:
    machine = target_machine("native", 3)
    before = machine.emit_object(optimize([SUM]))
    assert emit_object([SUM]) != before
    assert emit_object([Module(SUM, is_straight=True)]) not in (before, emit_object([SUM]))
    assert machine.emit_object(optimize([SUM])) == before
    with pytest.raises(CompileError):
        emit_object(["no IR"])
    assert machine.emit_object(optimize([SUM])) == before


@pytest.mark.slow
def test_compiling_often_does_not_fill_the_memory() -> None:
    done = run_python("""
        from pathlib import Path
        from graphc.codegen.llvm.module import Module
        from graphc.codegen.llvm.target import emit_object
        text = "define i64 @seven() {\\n  ret i64 7\\n}"

        def resident() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4

        for _ in range(50):
            emit_object([text])
        before = resident()
        for _ in range(200):
            emit_object([text])
        print((resident() - before) / 200)
    """)
    assert float(done.stdout) < 10.0, done.stderr  # kB an object


@pytest.mark.slow
def test_an_interrupted_request_does_not_answer_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(stream: Any) -> bytes:
        raise KeyboardInterrupt

    server = CompileServer()
    request = RETURN_SEVEN
    try:
        binary = server.compile(request)
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "read_message", interrupt)
            with pytest.raises(KeyboardInterrupt):
                server.compile(Request("def other(x):\n    return 1\n", (Prototype("other", ("int8*",)),)))
        assert server.compile(request) == binary
    finally:
        server.close()


def test_server_answers_threads() -> None:
    wanted = compile_source("def kernel(x):\n    return 7\n", [Prototype("kernel", ("float64*",))])
    answers: list[bytes] = []
    request = RETURN_SEVEN
    threads = [threading.Thread(target=lambda: answers.append(compiler.SERVER.compile(request))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [wanted] * 4


@pytest.mark.slow
def test_a_fork_waits_for_no_thread_that_compiles() -> None:
    """One thread waits for a compile process, which never answers, and one is within LLVM when this process forks."""
    done = run_python("""
        import os, threading, time
        from graphc.codegen.llvm.module import Module
        from graphc.codegen.llvm.target import emit_object, llvm
        from graphc.codegen.server import process
        process.BOOT = "import sys; sys.stdin.buffer.read(); print({path!r}, {package!r}, {lean})"
        from graphc.codegen.server.client import SERVER, Request
        SERVER._lean = False  # none that was started ahead
        inside = threading.Event()

        def compile_there():
            try:
                SERVER.compile(Request())
            except Exception:
                pass

        def compile_here():
            with llvm.ffi.lib._lock:
                inside.set()
                time.sleep(0.3)

        threads = [threading.Thread(target=each) for each in (compile_there, compile_here)]
        for thread in threads:
            thread.start()
        assert inside.wait(60)
        until = time.monotonic() + 60.0
        while not (SERVER._process and SERVER._process.stdin.closed is False and SERVER._lock.locked()):
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.1)
        child = os.fork()
        if child == 0:
            assert emit_object(["define i64 @seven() {\\n  ret i64 7\\n}"]) and not SERVER.inline.locked()
            os._exit(0)
        until = time.monotonic() + 60.0
        ended = 0, 1
        while ended[0] == 0 and time.monotonic() < until:
            time.sleep(0.01)
            ended = os.waitpid(child, os.WNOHANG)
        if ended[0] == 0:
            os.kill(child, 9)
        print(ended[1], flush=True)
        SERVER._process.kill()
        os._exit(0)
    """)
    assert done.stdout == "0\n", done.stderr


@pytest.mark.slow
def test_a_fork_starts_its_own_server_and_the_process_ends_with_its_parent() -> None:
    done = run_python("""
        import os, sys, time
        from graphc.codegen.server.client import SERVER, Prototype, Request, compile_request
        source, prototypes = "def kernel(x):\\n    return 7\\n", [Prototype("kernel", ("float64*",))]
        binary = compile_request(Request(source, tuple(prototypes)))
        parent = SERVER._process.pid
        child = os.fork()
        if child == 0:
            assert SERVER._process is None
            assert compile_request(Request(source, tuple(prototypes))) == binary
            assert SERVER._process.pid != parent
            SERVER.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert compile_request(Request(source, tuple(prototypes))) == binary
        assert SERVER._process.pid == parent
        assert "numba" not in sys.modules
        print(parent)
    """)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_without_an_interpreter_to_start_it_compiles_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = compile_source("def kernel(x):\n    return 7\n", [Prototype("kernel", ("float64*",))])
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setattr(compiler, "SERVER", CompileServer())
    assert compile_source("def kernel(x):\n    return 7\n", [Prototype("kernel", ("float64*",))]) == wanted


@pytest.mark.slow
def test_idle_process_leaves_and_the_next_request_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        child,
        "BOOT",
        child.BOOT.replace("import_worker(lean={lean})", "w = import_worker(); w.IDLE_SECONDS = 0.05; w"),
    )
    server = CompileServer()
    request = RETURN_SEVEN
    try:
        binary = server.compile(request)
        process = server._process
        assert process is not None
        assert process.wait(timeout=20) == 0
        process.returncode = None  # as if nobody had looked: the request finds the closed pipe
        assert server.compile(request) == binary
    finally:
        server.close()


BREAK_LEAN = {
    "at the request": "lowering.Lower.lower_inst = lambda *statement: missing",
    "with the process": "lowering.Lower.lower_inst = lambda *statement: __import__('os').abort()",
}


@pytest.mark.slow
def test_a_compile_process_has_the_lean_numba() -> None:
    """Where it could not be imported, each compilation would wait for the whole of it, and nothing else would tell."""
    boot = child.BOOT.format(path=sys.path, package=str(Path(graphc.__file__ or "").parent), lean=True)
    text = boot.replace(
        "import_worker(lean=True).main()", "import_worker(lean=True)\nprint(type(sys.modules['numpy']))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=True)
    assert "Unused" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("change", BREAK_LEAN.values(), ids=BREAK_LEAN)
def test_what_the_lean_numba_fails_at_the_whole_compiles(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    wanted = compile_source("def kernel(x):\n    return 7\n", [Prototype("kernel", ("float64*",))])
    broken = f"w = import_worker({{lean}})\nif {{lean}}:\n    from numba.core import lowering\n    {change}\nw"
    monkeypatch.setattr(child, "BOOT", child.BOOT.replace("import_worker(lean={lean})", broken))
    server = CompileServer()
    try:
        assert server.start()
        first = server._process
        assert server.compile(RETURN_SEVEN) == wanted
        second = server._process
        assert second is not None and second is not first
        with pytest.raises(CompileError, match="no function"):
            server.compile(replace(RETURN_SEVEN, source=""))
        assert server._process is second  # it has the whole already
    finally:
        server.close()


# --- numba's internals ----------------------------------------------------------------------------------------------

# Everything of numba that graphc relies on; pyproject.toml declares the versions it was tried with.
INTERNALS = {
    "numba.core.typeinfer": ["TypeInferer"],
    "numba.core.lowering": ["Lower", "new_error_context"],
    "numba.core.base": ["BaseContext"],
    "numba.core.typing.context": ["BaseContext"],
    "numba.core.typing.templates": ["Signature", "signature"],
    "numba.core.funcdesc": ["FunctionDescriptor"],
    "numba.core.targetconfig": ["ConfigStack", "Option", "TargetConfig"],
    "numba.core.datamodel.models": ["PrimitiveModel"],
    "numba.core.datamodel.registry": ["register_default"],
    "numba.core.cgutils": ["alloca_once"],
    "numba.core.errors": ["LoweringError", "NumbaError", "TypingError", "UnsupportedError", "NumbaTypeError"],
    "numba.core.types": [],
    "numba.core.ir": [
        "Arg",
        "Assign",
        "Block",
        "Branch",
        "Const",
        "Expr",
        "FunctionIR",
        "Global",
        "Jump",
        "Loc",
        "Return",
        "Scope",
        "SetItem",
        "Var",
    ],
}


@pytest.mark.parametrize("user", ["frontend/lowering", "frontend/parse", "frontend/primitives"])
def test_numba_internals_in_use_are_these(user: str) -> None:
    tree = ast.parse((REPOSITORY / f"graphc/codegen/{user}.py").read_text())
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("numba"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in INTERNALS or node.module == "numba.core":
                    modules[alias.asname or alias.name] = full
                    continue
                assert alias.name in INTERNALS[node.module]
    used = {
        (modules[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }
    for module, attribute in used:
        assert module == "numba.core.types" or attribute in INTERNALS[module], (module, attribute)
    for module, names in INTERNALS.items():
        loaded = importlib.import_module(module)
        assert all(hasattr(loaded, name) for name in names)


LEAN = """
    import sys
    from types import ModuleType
    sys.modules["scipy"] = None
    package = sys.modules["graphc"] = ModuleType("graphc")
    package.__path__ = [sys.argv[1]]
    from graphc.codegen.server import numba_subset
    numba_subset.UNUSED += tuple(sys.argv[2:])
    worker = numba_subset.import_worker()
    assert ("numpy.linalg" in sys.modules) == ("numba.core.compiler" in sys.modules)
    print("numba.core.compiler" in sys.modules, worker.compile_request(worker.WARM_UP).hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("missed", [(), ("numba.core.utils",), ("numba.core.types",)])
def test_the_compile_process_takes_what_it_needs_of_numba(missed: tuple[str, ...]) -> None:
    """Where a module is left out without which the others cannot be imported, it takes the whole."""
    program = [sys.executable, "-c", textwrap.dedent(LEAN), str(REPOSITORY / "graphc"), *missed]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    whole, code = done.stdout.split()
    worker = importlib.import_module("graphc.codegen.server.worker")
    assert (whole == "True") == bool(missed) and bytes.fromhex(code) == worker.compile_request(worker.WARM_UP)


SIGNATURES = [
    ("numba.core.lowering", "Lower", "context library fndesc func_ir"),
    ("numba.core.lowering", "Lower.storevar", "self value name argidx"),
    ("numba.core.lowering", "Lower.alloca_lltype", "self name lltype datamodel"),
    ("numba.core.typeinfer", "TypeInferer", "context func_ir warnings"),
    ("numba.core.typeinfer", "TypeInferer.typeof_call", "self inst target call"),
    ("numba.core.typeinfer", "TypeInferer.typeof_intrinsic_call", "self inst target func args"),
    ("numba.core.typeinfer", "TypeInferer.typeof_setitem", "self inst"),
    ("numba.core.typeinfer", "TypeInferer.resolve_call", "self fnty pos_args kw_args"),
    ("numba.core.ir", "FunctionIR", "blocks is_generator func_id loc definitions arg_count arg_names"),
    ("numba.core.typing.context", "BaseContext.unify_pairs", "self first second"),
    ("numba.core.typing.context", "BaseContext.can_convert", "self fromty toty"),
    ("numba.core.typing.context", "BaseContext.resolve_value_type", "self val"),
    ("numba.core.typing.context", "BaseContext.resolve_function_type", "self func args kws"),
    ("numba.core.lowering", "Lower.lower_block", "self block"),
    ("numba.core.lowering", "Lower.lower_inst", "self inst"),
    ("numba.core.lowering", "Lower.lower_binop", "self resty expr op"),
    ("numba.core.lowering", "Lower._find_singly_assigned_variable", "self"),
    ("numba.core.base", "BaseContext.cast", "self builder val fromty toty"),
    ("numba.core.base", "BaseContext.get_function", "self fn sig _firstcall"),
    ("numba.core.base", "BaseContext.get_constant_generic", "self builder ty val"),
]


@pytest.mark.parametrize(("module", "path", "names"), SIGNATURES)
def test_numba_internals_have_the_signatures_in_use(module: str, path: str, names: str) -> None:
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    assert list(inspect.signature(found).parameters)[: len(names.split())] == names.split()


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_installed_version_is_in_the_declared_range(package: str) -> None:
    dependencies = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    (declared,) = (text for text in dependencies if text.startswith(package))
    bounds = re.fullmatch(rf"{package}>=([\d.]+),<([\d.]+)", declared)
    assert bounds is not None, f"{declared}: no range; graphc uses internals of {package}"
    lowest, installed, limit = (tuple(map(int, text.split("."))) for text in (bounds[1], version(package), bounds[2]))
    assert lowest <= installed < limit


@pytest.mark.slow
def test_fingerprint_names_versions_and_cpu_without_the_compiler() -> None:
    text = target_fingerprint()
    name, features = cpu.processor()
    for part in (f"llvmlite {version('llvmlite')}", f"numba {version('numba')}", name, features):
        assert part in text
    done = run_python(
        "import sys; from graphc.codegen.llvm.cpu import target_fingerprint\n"
        "print(target_fingerprint()); assert not {'numba', 'llvmlite'} & set(sys.modules)"
    )
    assert done.stdout.strip() == text, done.stderr


def test_a_system_that_does_not_tell_its_processor_asks_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for said in (None, b"", b"processor : 0\nBogoMIPS : 1\n\n", b"\xff\xfe"):
        place = tmp_path / "cpuinfo"
        if said is not None:
            place.write_bytes(said)
        monkeypatch.setattr(cpu, "PROCESSOR", str(place))
        name, features = cpu.processor()
        assert name == llvm.get_host_cpu_name()
        assert set(features.split(",")) == {each for each, has in llvm.get_host_cpu_features().items() if has}


def test_a_processor_is_known_by_its_kind_and_not_by_its_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arm = "processor\t: 0\nBogoMIPS\t: {}\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n\n"
    place = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu, "PROCESSOR", str(place))
    found = []
    for clock in (100, 200):
        place.write_text(arm.format(clock) * 300)
        found.append(cpu.processor())
    assert found == [("0x41 0xd40", "fp,asimd,sve")] * 2


FUSED = """
define double @fused(double %x, double %y, double %z) {
  %product = fmul contract double %x, %y
  %sum = fadd contract double %product, %z
  ret double %sum
}
"""


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_machine_code_does_not_depend_on_what_was_made_before(opt: int) -> None:
    """Straight code is selected in another way, of which LLVM keeps a note in its record of the target."""
    before = emit_object([Module(FUSED)], opt)
    emit_object([Module("define i64 @seven() {\n  ret i64 7\n}", is_straight=True)], opt)
    assert emit_object([Module(FUSED)], opt) == before
    assert emit_object([Module(FUSED, is_straight=True)], 3) == emit_object([Module(FUSED)], 3)
