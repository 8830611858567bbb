"""Loops written over vectors: which they are and how, that no element is another for it, and that nothing beside a
loop's own elements is touched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.frontend import lowering
from graphc.codegen.frontend.language import bind_source
from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Module, Prototype
from graphc.codegen.llvm.target import optimize
from graphc.codegen.vectorize import vectorizer
from graphc.options import options
from tests.support.compiled_source import Loaded, load

Array = NDArray[Any]
OPERANDS = ("x", "y", "z")

# Which and how --------------------------------------------------------------------------------------------------------

FLAT = """
    for i in independent(n):
        x[i] = exp(x[i]) + 1.0
"""
UNKNOWN = """
    for i in range(n):
        x[i] = exp(x[i]) + 1.0
"""
"""Of whose iterations nothing is said."""
LONG = "    for i in independent(n):\n        v = x[i]\n" + "        v = exp(v) * 0.5 + v\n" * 60 + "        x[i] = v\n"
"""CPython's jump out of a loop this long takes two instructions, and two blocks."""
PAIR = """
    for i in independent(n):
        x[i] = exp(x[i] + 1.0) + log(x[i])
"""
"""Two functions of which none waits for the other."""
APART = """
    for i in independent(n):
        v = x[i]
        w = exp(v)
        x[i] = log(w) + exp(v * w) * exp(v + 1.0)
"""
"""Four functions, of which one waits for another."""
BRANCHED = """
    for i in independent(n):
        if x[i] > 0.0:
            x[i] = exp(x[i])
"""
PLAIN = """
    for i in independent(n):
        x[i] = x[i] * x[i] + 1.0
"""
MUCH = "    for i in independent(n):\n        x[i] = " + " * ".join(f"(x[i] + {each}.0)" for each in range(20)) + "\n"
SUM = """
    total = 0.0
    for i in independent(n):
        total = accumulate(total, exp(x[i]))
    x[0] = total
"""
PLAIN_SUMS = """
    total = 0.0
    most = x[0]
    for i in independent(n):
        total = accumulate(total, x[i])
        most = accumulate_maximum(most, x[i])
    x[0] = total + most
"""
SUM_AND_STORE = """
    total = 0.0
    for i in independent(n):
        y[i] = x[i] * 2.0
        total = accumulate(total, x[i])
    x[0] = total
"""
ROWS = """
    for i in independent(n):
        for j in independent(n):
            x[i * n + j] = exp(x[i * n + j])
"""
CARRY = """
    last = 0.0
    for i in range(n):
        last = exp(last) * x[i]
        x[i] = last
"""
RUNNING = """
    total = 0.0
    for i in range(n):
        total = accumulate(total, x[i])
        x[i] = total
"""
"""Whose order cannot be changed, though the addition says it can: so it does of all additions with fast_math."""
COPY = """
    for i in independent(n):
        x[i] = y[i]
"""
CLEAR = """
    for i in independent(n):
        x[i] = 0.0
        y[i] = 0.0
"""
ROWS_OF_ANY = """
    for i in independent(n):
        for j in independent(n):
            x[i * n + j] = x[i * n + j] + y[j]
"""
SHORT = """
    for i in independent(5):
        x[i] = x[i] + 1.0
"""
STRIDED = """
    for i in independent(n):
        x[i] = y[i * n] + 1.0
"""
GATHERED = """
    for i in independent(n):
        x[i] = y[int64(z[i])] + 1.0
"""
SCATTERED = """
    for i in range(n):
        x[int64(z[i])] = x[int64(z[i])] + y[i]
"""
BACKWARDS = """
    for i in independent(n):
        x[i] = y[n - 1 - i] * 2.0
"""
STORED_BACKWARDS = """
    for i in independent(n):
        x[n - 1 - i] = y[i] * 2.0
"""
STORED_BY_STEPS = """
    for i in independent(n):
        x[i * 2] = y[i] * 2.0
"""
SEARCH = """
    for i in range(n):
        if x[i] > 3.0:
            return i
"""
EITHER = """
    for i in independent(n):
        if x[i] > 0.0:
            x[i] = y[i] * 2.0
        else:
            x[i] = z[i] + 1.0
"""
LEFT = """
    for i in independent(n):
        x[i] = y[i] * 2.0
        if x[i] > 3.0:
            break
"""
"""Which the loop IR never says of a loop that is left."""
LEFT_AT_ONCE = """
    for i in independent(n):
        x[i] = y[i] * 2.0
        break
"""
LEFT_AROUND = """
    for j in range(n):
        if y[j] > 0.0:
            break
        for i in independent(n):
            x[i] = exp(x[i]) + 1.0
        if x[j] > 3.0:
            break
"""
IN_BRANCHES = """
    if n > 100:
        for i in independent(n):
            x[i] = exp(x[i]) + 1.0
    else:
        total = 0.0
        for i in independent(n):
            total = accumulate(total, exp(x[i]))
        x[0] = total
"""
MASKED = {"masked": 8}
BY_ONE = {"vector": 8, "remainder": 1}
SUMS = {"interleaved": 32, "remainder": 1}
OF_ROWS = {"interleaved": 32, "narrow": 4}
CASES: dict[str, tuple[str, list[dict[str, int]], list[dict[str, int]], bool]] = {
    "flat": (FLAT, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32} | MASKED], True),
    "two": (FLAT + FLAT, [{"interleaved": 32} | BY_ONE] * 2, [{"interleaved": 32} | MASKED] * 2, True),
    "pair": (PAIR, [{"interleaved": 16} | BY_ONE], [{"interleaved": 16} | MASKED], True),
    "apart": (APART, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32, "interleaved_masked": 32} | MASKED], True),
    "long": (LONG, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32, "interleaved_masked": 32} | MASKED], True),
    "branched": (BRANCHED, [], [], False),
    "plain": (PLAIN, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32} | BY_ONE], True),
    "much": (MUCH, [BY_ONE], [BY_ONE], True),
    "sum": (SUM, [{"interleaved": 16} | BY_ONE], [{"interleaved": 16} | MASKED], True),
    "plain sums": (PLAIN_SUMS, [SUMS | BY_ONE], [SUMS | {"vector": 8} | MASKED], True),
    "sum and store": (SUM_AND_STORE, [SUMS | BY_ONE], [SUMS | BY_ONE], True),
    "rows": (ROWS, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32} | MASKED], True),
    "rows of any": (ROWS_OF_ANY, [OF_ROWS | BY_ONE], [OF_ROWS | BY_ONE], True),
    "copy": (COPY, [{"remainder": 1}], [{"remainder": 1}], True),
    "clear": (CLEAR, [{"remainder": 1}], [{"remainder": 1}], True),
    "carry": (CARRY, [], [], False),
    "running sum": (RUNNING, [], [], False),
    "short": (SHORT, [], [], False),
    "strided": (STRIDED, [], [], False),
    "gathered": (GATHERED, [{"interleaved": 16} | BY_ONE], [{"interleaved": 16} | BY_ONE], True),
    "scattered": (SCATTERED, [], [], True),
    "backwards": (BACKWARDS, [], [], False),
    "stored backwards": (STORED_BACKWARDS, [], [], False),
    "stored by steps": (STORED_BY_STEPS, [], [], False),
    "search": (SEARCH, [], [], True),
    "unknown": (UNKNOWN, [], [], False),
    "either": (EITHER, [], [], False),
    "left": (LEFT, [], [], True),
    "left at once": (LEFT_AT_ONCE, [], [], True),
    "left around": (LEFT_AROUND, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32} | MASKED], True),
    "in branches": (
        IN_BRANCHES,
        [{"interleaved": 32} | BY_ONE, {"interleaved": 16} | BY_ONE],
        [{"interleaved": 32} | MASKED, {"interleaved": 16} | MASKED],
        True,
    ),
    "short beside long": (SHORT + FLAT, [{"interleaved": 32} | BY_ONE], [{"interleaved": 32} | MASKED], False),
}
"""The loops that become of each, with the numbers they take at a time: without masks, and with them; and whether none
is left to LLVM."""


def lower(body: str, fast_math: bool = False, dtype: str = "float64") -> Module:
    source = f"def f({', '.join(OPERANDS)}, n):\n{body}\n    return 0\n"
    return lower_source(source, [Prototype("f", (*[f"{dtype}*"] * len(OPERANDS), "int64"))], {}, fast_math)


def lowered(body: str, dtype: str = "float64") -> str:
    return lower(body, dtype=dtype).ir


def loops(text: str) -> list[dict[str, int]]:
    """By the block of each loop that was written: its parts, and the numbers that each takes at a time."""
    found: dict[str, dict[str, int]] = {}
    for name, part, rest in re.findall(r"^\"?(B\d+)\.([a-z_]+)\"?:\n(.*?)(?=^\S)", text, re.M | re.S):
        if ", !llvm.loop !" not in rest:
            continue
        step = re.search(r"add i64 %\"[.\d]+\", (\d+)\n.*\n  br i1", rest)
        assert step is not None
        found.setdefault(name, {})[part] = int(step[1])
    return list(found.values())


@pytest.fixture(params=[False, True], ids=["without masks", "with masks"])
def masks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A CPU with vectors of 64 bytes, which can mask them or cannot."""
    for name, answer in (("has_avx512", bool(request.param)), ("has_fma", True), ("usual_width", 512)):
        monkeypatch.setattr(vectorizer, name, lambda answer=answer: answer)
    monkeypatch.setattr(vectorizer, "one_vector", lambda format: 512 // format.width)
    return bool(request.param)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fast_math", [False, True])
def test_written_loops(name: str, fast_math: bool, masks: bool) -> None:
    body, without, with_masks, done = CASES[name]
    module = lower(body, fast_math)
    assert loops(module.ir + "}") == (with_masks if masks else without)
    assert module.is_vectorized == done
    numbers = re.findall(r"^  br .*, !llvm\.loop !(\d+)$", module.ir, re.MULTILINE)
    assert len(set(numbers)) == len(numbers)


def test_additions_that_have_an_order_keep_it() -> None:
    body = "    total = 0.0\n    for i in independent(n):\n        total = total + x[i]\n    x[0] = total\n"
    assert not loops(lowered(body) + "}")
    assert loops(lower(body, fast_math=True).ir + "}")


def test_only_zeros_of_all_bits_are_cleared() -> None:
    """An array is cleared as memory is; the sign of a negative zero is a bit."""
    zeros, negative = (f"    for i in independent(n):\n        x[i] = {zero}\n" for zero in ("0.0", "-0.0"))
    assert "llvm.memset" in lowered(zeros)
    assert "llvm.memset" not in lowered(negative)


def test_without_fused_arithmetic_one_chain_takes_one_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorizer, "has_fma", lambda: False)
    for body, several in ((FLAT, False), (PAIR, True), (SUM, True), (PLAIN, True)):
        (loop,) = loops(lowered(body) + "}")
        assert ("interleaved" in loop) == several


def test_the_widest_number_decides_how_many_are_in_a_vector(masks: bool) -> None:
    wide = "    for i in independent(n):\n        x[i] = float32(float64(x[i]) * 3.0)\n"
    narrow = "    for i in independent(n):\n        x[i] = x[i] * float32(3.0)\n"
    (of_wide,), (of_narrow,) = (loops(lowered(body, dtype="float32") + "}") for body in (wide, narrow))
    assert of_wide["vector"] == 8 and of_narrow["vector"] == 16


def test_loops_that_wait_for_themselves_are_not_unrolled() -> None:
    """Where they stand in a function does not matter."""
    loop = "    last = 0.0\n    for i in range(n):\n        last = last * 0.5 + x[i]\n        x[i] = last\n"
    for body in (loop, "    if n > 3:\n        x[0] = 1.0\n" + loop):
        text = lowered(body)
        assert len(re.findall(r"^  br .*, !llvm\.loop", text, re.MULTILINE)) == 1
        assert str(optimize([text])).count(" = fadd ") == 1
        assert str(optimize([text.replace("unroll.disable", "unknown")])).count(" = fadd ") > 1


@pytest.mark.slow
def test_several_sums_give_the_same_text_again() -> None:
    sums = [f"total{number}" for number in range(8)]
    start = "".join(f"    {name} = 0.0\n" for name in sums)
    iteration = "".join(f"        {name} = accumulate({name}, x[i] * {number}.0)\n" for number, name in enumerate(sums))
    end = f"    x[0] = {' + '.join(sums)}\n"
    assert len({lowered(f"{start}    for i in independent(n):\n{iteration}{end}") for _ in range(20)}) == 1


# What they compute ----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def inline() -> Iterator[None]:
    with options.change(compile="inline"):
        yield


def kernel(body: str, dtypes: dict[str, str]) -> tuple[str, Prototype]:
    source = f"def f({', '.join(dtypes)}, n, m):\n{body}\n    return 0\n"
    return source, Prototype("f", (*(f"{dtype}*" for dtype in dtypes.values()), "int64", "int64"))


def as_it_stands(source: str, prototype: Prototype, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """Compiled element by element."""
    with monkeypatch.context() as patch:
        patch.setattr(lowering, "vectorize", lambda module: True)
        return load(source, prototype)


NAMES = {
    "read after": ("v = 0.0", "v = y[i] * 2.0; x[i] = v", "z[0] = v"),
    "index after": ("i = -1", "x[i] = y[i] + 1.0", "z[0] = float64(i)"),
    "what the last iteration left": ("v = 1.0", "x[i] = v; v = y[i]", ""),
    "sum used": ("s = 0.0", "s = accumulate(s, y[i]); x[i] = s * 2.0", ""),
    "sum used under another name": ("s = 0.0", "t = accumulate(s, y[i]); s = t; x[i] = t * 2.0", ""),
    "two steps": ("s = 0.0", "s = accumulate(accumulate(s, y[i]), 3.0)", "x[0] = s"),
    "sum of itself": ("s = 1.0", "s = accumulate(s, s)", "x[0] = s"),
    "in place": ("", "x[i] = x[i] * y[i]; x[i] = x[i] + z[i]", ""),
    "names that change": ("", "v = y[i]; x[i] = v; v = v + 1.0; z[i] = v", ""),
    "nothing": ("", "v = x[i] + 1.0", ""),
    "the same sum": ("s = 0.0", "s = accumulate(s, 2.0)", "x[0] = s"),
    "a size in the place": ("", "x[i + m // 2 * 2 - m // 2 * 2] = y[i]", ""),
}
"""Loops whose iterations are independent in memory, though names go from one to the next: what comes before, an
iteration, what comes after."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_names_that_go_from_one_iteration_to_the_next(name: str) -> None:
    before, iteration, after = NAMES[name]
    body = f"    {before or 'i = 0'}\n    for i in independent(n):\n        {iteration}\n    {after or 'i = 0'}\n"
    source, prototype = kernel(body, dict.fromkeys(OPERANDS, "float64"))
    loaded, python = load(source, prototype), bind_source(source)["f"]
    for n in (0, 1, 2, 5, 31, 32, 33, 40, 64, 100):
        rng = np.random.default_rng(n)
        given = [rng.integers(0, max(n, 1), n + 8).astype(float) for _ in OPERANDS]
        wanted = [each.copy() for each in given]
        for m in (1, 3, 8):
            loaded.call("f", *given, n, m)
            python(*wanted, n, m)
            for got, right in zip(given, wanted, strict=True):
                np.testing.assert_array_equal(got, right)


STEPS = {
    "accumulate_maximum(s, x[i])": ("float64", "float32", "int64", "int8", "uint64", "uint8"),
    "accumulate_minimum(s, x[i])": ("float64", "float32", "int64", "int8", "uint64", "uint8"),
    "fmax(s, x[i])": ("int32", "uint16"),
    "fmin(s, x[i])": ("int32", "uint16"),
    "s & x[i]": ("int64", "uint8", "bool"),
    "s | x[i]": ("int64", "uint8", "bool"),
    "s ^ x[i]": ("int64", "uint8", "bool"),
    "s + x[i]": ("int64", "uint8", "int16"),
    "s * x[i]": ("int64", "uint8", "int16"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("step", "dtype"), [(step, dtype) for step, dtypes in STEPS.items() for dtype in dtypes])
def test_what_has_no_order(step: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all numbers that there are, NaN and infinities among them, and of many that are alike."""
    source, prototype = kernel(
        f"    s = x[0]\n    for i in independent(1, n):\n        s = {step}\n    y[0] = s\n", {"x": dtype, "y": dtype}
    )
    assert "interleaved" in str(loops(lower_source(source, [prototype], {}, False).ir + "}")) or dtype == "bool"
    written, plain = load(source, prototype), as_it_stands(source, prototype, monkeypatch)
    rng = np.random.default_rng(0)
    for n in (*range(1, 80), 127, 128, 129, 300, 1000):
        for draw in range(4):
            if dtype == "bool":
                x = rng.random(n) < (0.0, 0.02, 0.98, 1.0)[draw]
            elif dtype.startswith("float"):
                x = (rng.normal(size=n) * (-1.0, 1e30, 1e-30, 0.0)[draw]).astype(dtype)
                x[rng.random(n) < (0.0, 0.05, 0.5, 1.0)[draw]] = rng.choice([np.nan, np.inf, -np.inf])
            else:
                limits = np.iinfo(dtype)
                x = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
                x[rng.random(n) < 0.9] = (limits.min, limits.max, x[0], 1)[draw]
            got, right = np.zeros(1, dtype), np.zeros(1, dtype)
            for loaded, result in ((written, got), (plain, right)):
                loaded.call("f", x, result, n, 0)
            np.testing.assert_array_equal(got, right, err_msg=f"{n} {draw}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int8", "uint64", "uint8", "bool"])
def test_reductions_of_every_length(dtype: str) -> None:
    """Of whole numbers, so that no order of additions is another."""
    x = T.tensor(dtype, (None, None), "x")
    outputs = [x.sum(axis=1), T.max(x, axis=1), T.min(x, axis=1), T.any(x, axis=1), T.all(x, axis=1)]
    if dtype != "bool":
        outputs.append(T.prod(x, axis=1))
    f = graphc.function([x], outputs)
    rng = np.random.default_rng(0)
    for n in range(1, 140):
        value = rng.integers(0, 3, (3, n)).astype(dtype)
        value[0] = 1
        wanted = [value.sum(1), value.max(1), value.min(1), value.any(1), value.all(1), value.prod(1)]
        for got, right in zip(f(value), wanted, strict=False):
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elements_do_not_depend_on_how_many_there_are(dtype: str) -> None:
    x = T.vector("x", dtype=dtype)
    y = T.tanh(T.exp(-x * x) + T.log1p(x * x))
    f = graphc.function([x], [y, y + x])
    values = np.random.default_rng(3).normal(size=300).astype(dtype)
    whole = f(values)
    for length in (*range(200), 255, 256, 257):
        for result, all_of_them in zip(f(values[:length]), whole, strict=True):
            np.testing.assert_array_equal(result, all_of_them[:length])
    np.testing.assert_allclose(whole[0], np.tanh(np.exp(-values * values) + np.log1p(values * values)), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_masks_cover_the_elements_that_fill_no_vector(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On any CPU: LLVM writes masks out where no register holds them."""
    iteration = "        v = exp(x[i])\n        y[i] = v\n        s = accumulate(s, v)\n"
    body = f"    s = 0.0\n    for i in independent(n):\n{iteration}"
    source, prototype = kernel(f"{body}    z[0] = s\n", {"x": dtype, "y": dtype, "z": "float64"})
    plain = as_it_stands(source, prototype, monkeypatch)
    monkeypatch.setattr(vectorizer, "has_avx512", lambda: True)
    assert "masked" in str(loops(lower_source(source, [prototype], {}, False).ir + "}"))
    written = load(source, prototype)
    for n in (*range(70), 127, 128, 129):
        x = np.linspace(0.0, 1.0, n + 8).astype(dtype)
        got, wanted = ((np.full(n + 8, -1.0, dtype), np.zeros(1)) for _ in range(2))
        for loaded, results in ((written, got), (plain, wanted)):
            loaded.call("f", x, *results, n, 0)
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-6)


@pytest.mark.slow
def test_nothing_beside_the_elements_is_touched() -> None:
    """Operands that end where memory does, or begin there."""
    code = """
        import ctypes, mmap
        import numpy as np
        from tests.support.compiled_source import load
        from test_vectorize import kernel
        from graphc.options import options

        options.compile = "inline"
        libc = ctypes.CDLL(None, use_errno=True)
        PAGE = mmap.PAGESIZE

        def at_the_edge(values, end):
            room = mmap.mmap(-1, 3 * PAGE)
            start = ctypes.addressof(ctypes.c_char.from_buffer(room))
            for page in (0, 2):
                assert libc.mprotect(ctypes.c_void_p(start + page * PAGE), PAGE, 0) == 0
            place = PAGE - values.nbytes if end else 0
            array = np.frombuffer(room, values.dtype, values.size, PAGE + place)
            array[:] = values
            return array

        bodies = {
            "map": "y[i] = x[i] + one",
            "map of one place": "y[i] = x[i] + x[0]",
            "functions": "y[i] = exp(x[i])",
            "apart": "y[i] = exp(x[i]) * tanh(x[i]) + log1p(x[i])",
            "plain sum": "s = accumulate(s, x[i])",
            "gather": "y[i] = x[int64(x[i])]",
            "gather of a function": "y[i] = exp(x[int64(x[i])])",
            "copy": "y[i] = x[i]",
            "clear": "y[i] = nothing",
        }
        for dtype in ("float64", "float32", "int8"):
            for name, iteration in bodies.items():
                if dtype == "int8" and name not in ("map", "map of one place", "gather", "copy", "clear"):
                    continue
                start = f"    one = {dtype}(1)\\n    s = {dtype}(0)\\n    nothing = {dtype}(0)\\n"
                end = "    if n > 0:\\n        y[0] = s\\n" if "s =" in iteration else "    m = m\\n"
                body = f"{start}    for i in independent(n):\\n        {iteration}\\n{end}"
                loaded = load(*kernel(body, {"x": dtype, "y": dtype}))
                for n in range(200):
                    for end in (False, True):
                        values = (np.arange(n) % 3 == 1).astype(dtype)
                        x, y = at_the_edge(values, end), at_the_edge(values, end)
                        loaded.call("f", x, y, n, 0)
        print("done")
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    folders = os.pathsep.join(sys.path)
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folders}, check=False
    )
    assert done.stdout == "done\n", done.stderr
