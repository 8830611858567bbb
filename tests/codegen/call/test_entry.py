"""The native entry point: what it accepts, refuses and returns, whom it keeps alive, and that errors leave nothing
changed.

The kernels are written in LLVM IR here; `probe` is told by its first argument what to do.
"""

from __future__ import annotations

import gc
import marshal
import pickle
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS, as_array
from graphc.codegen.call.bind import ABSENT, EXPORTS, POSITIONAL, Keywords, Library, bind, load
from graphc.codegen.call.entry import entry_ir
from graphc.codegen.call.launch_python import launch_python
from graphc.codegen.call.layout import NO_MEMORY, layout_tag, verify_layout
from graphc.codegen.call.signature import Array, Signature, Temp, overlapping
from graphc.codegen.link.elf import link
from graphc.codegen.link.image import join
from graphc.codegen.llvm.target import emit_object
from graphc.errors import GraphcError, GraphTypeError
from graphc.startup.record import replace

EXPORTED = frozenset(EXPORTS)


def vector(name: str, dtype: str = "float64", **options: Any) -> Array:
    return Array(name, dtype, (None,), **options)


PROBE = Signature(
    name="probe",
    inputs=(Array("command", "int64", (4,)), vector("x")),
    shared=(vector("total", written=True), vector("last")),
    outputs=(Array("y", "float64", (None, None)), vector("new_last", replaces=1)),
    temps=(Temp("tripled", "float64"), Temp("marks", "int8")),
    sizes=((1, 0), (2, 0), (3, 0)),
    returns="one",
)

COPIER_IR = """
define i64 @sizes(ptr %x, i64 %n, i64 %m, ptr %dims) {
  %last = getelementptr i64, ptr %dims, i64 LAST
  store i64 %m, ptr %last
  store i64 %n, ptr %dims
  ret i64 0
}

define i64 @kernel(ptr noalias %x, ptr noalias %y, i64 %n, i64 %m) {
  %columns = select i1 MATRIX, i64 %m, i64 1
  %count = mul i64 %n, %columns
  %bytes = mul i64 %count, ITEMSIZE
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %bytes, i1 false)
  ret i64 0
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def copier(dtype: str, rank: int = 1) -> tuple[Signature, str]:
    """A function that copies an array of one or two axes."""
    shape = (None,) * rank
    array = Array("x", dtype, shape)
    places = ((0, 0), (0, rank - 1))
    signature = Signature("copier", (array,), (), (Array("y", dtype, shape),), (), places, "one")
    words = {"LAST": rank - 1, "MATRIX": int(rank == 2), "ITEMSIZE": np.dtype(dtype).itemsize}
    text = COPIER_IR
    for word, number in words.items():
        text = text.replace(word, str(number))
    return signature, text


# command = (what sizes answers, rows of y, elements of tripled, what kernel answers)
PROBE_IR = """
define i64 @sizes(ptr %command, ptr %x, ptr %total, ptr %last, i64 %n, i64 %m, i64 %k, ptr %dims) {
start:
  %code = load i64, ptr %command
  %rows.at = getelementptr i64, ptr %command, i64 1
  %rows = load i64, ptr %rows.at
  %temp.at = getelementptr i64, ptr %command, i64 2
  %temp = load i64, ptr %temp.at
  store i64 %rows, ptr %dims
  %d1 = getelementptr i64, ptr %dims, i64 1
  store i64 %n, ptr %d1
  %d2 = getelementptr i64, ptr %dims, i64 2
  store i64 %n, ptr %d2
  %d3 = getelementptr i64, ptr %dims, i64 3
  store i64 %temp, ptr %d3
  %d4 = getelementptr i64, ptr %dims, i64 4
  store i64 3, ptr %d4
  %differs = icmp ne i64 %n, %m
  %other = icmp ne i64 %n, %k
  %disagree = or i1 %differs, %other
  %result = select i1 %disagree, i64 7, i64 %code
  ret i64 %result
}

define i64 @kernel(ptr noalias %command, ptr noalias %x, ptr noalias %total, ptr noalias %last, ptr noalias %y,
    ptr noalias %new,
                   ptr noalias %tripled, ptr noalias %marks, i64 %n, i64 %m, i64 %k) {
start:
  %code.at = getelementptr i64, ptr %command, i64 3
  %code = load i64, ptr %code.at
  %rows.at = getelementptr i64, ptr %command, i64 1
  %rows = load i64, ptr %rows.at
  %failing = icmp ne i64 %code, 0
  br i1 %failing, label %fail, label %align
fail:
  ret i64 %code
align:
  %t.address = ptrtoint ptr %tripled to i64
  %m.address = ptrtoint ptr %marks to i64
  %addresses = or i64 %t.address, %m.address
  %low = and i64 %addresses, 63
  %crooked = icmp ne i64 %low, 0
  br i1 %crooked, label %misaligned, label %mark
misaligned:
  ret i64 99
mark:
  store i8 1, ptr %marks
  %some = icmp ne i64 %n, 0
  br i1 %some, label %update, label %done
update:
  %i = phi i64 [0, %mark], [%i.next, %update]
  %x.at = getelementptr double, ptr %x, i64 %i
  %total.at = getelementptr double, ptr %total, i64 %i
  %tripled.at = getelementptr double, ptr %tripled, i64 %i
  %last.at = getelementptr double, ptr %last, i64 %i
  %new.at = getelementptr double, ptr %new, i64 %i
  %xi = load double, ptr %x.at
  %three = fmul double %xi, 3.0
  store double %three, ptr %tripled.at
  %old = load double, ptr %total.at
  %sum = fadd double %old, %xi
  store double %sum, ptr %total.at
  %before = load double, ptr %last.at
  %after = fadd double %before, 1.0
  store double %after, ptr %new.at
  %i.next = add i64 %i, 1
  %i.end = icmp eq i64 %i.next, %n
  br i1 %i.end, label %rows.start, label %update
rows.start:
  %any = icmp ne i64 %rows, 0
  br i1 %any, label %row, label %done
row:
  %r = phi i64 [0, %rows.start], [%r.next, %row.end]
  %r.float = sitofp i64 %r to double
  %r.first = mul i64 %r, %n
  br label %column
column:
  %c = phi i64 [0, %row], [%c.next, %column]
  %source.at = getelementptr double, ptr %tripled, i64 %c
  %source = load double, ptr %source.at
  %value = fadd double %source, %r.float
  %place = add i64 %r.first, %c
  %y.at = getelementptr double, ptr %y, i64 %place
  store double %value, ptr %y.at
  %c.next = add i64 %c, 1
  %c.end = icmp eq i64 %c.next, %n
  br i1 %c.end, label %row.end, label %column
row.end:
  %r.next = add i64 %r, 1
  %r.last = icmp eq i64 %r.next, %rows
  br i1 %r.last, label %done, label %row
done:
  ret i64 0
}
"""


def probe_sizes(command: Any, x: Any, total: Any, last: Any, n: int, m: int, k: int, dims: Any) -> int:
    dims[:] = (command[1], n, n, command[2], 3)
    return 7 if n != m or n != k else int(command[0])


def probe_kernel(
    command: Any, x: Any, total: Any, last: Any, y: Any, new: Any, tripled: Any, marks: Any, n: int, m: int, k: int
) -> int:
    if command[3]:
        return int(command[3])
    marks[0] = 1
    for i in range(n):
        tripled[i] = x[i] * 3.0
        total[i] += x[i]
        new[i] = last[i] + 1.0
    for r in range(command[1]):
        for c in range(n):
            y[r * n + c] = tripled[c] + r
    return 0


def command(code: int = 0, rows: int = 2, temp: int = 1 << 20, fault: int = 0) -> Any:
    return np.array([code, rows, temp, fault])


@cache
def compiled(signature: Signature, ir: str) -> Library:
    return load(link([emit_object([ir, entry_ir(signature)], 2, EXPORTED)], EXPORTS), {})


def refused(*args: Any, **kwargs: Any) -> Any:
    return ("refused", args, kwargs)


def failed(code: int, *args: Any) -> Any:
    return ("failed", code, args)


def probe(
    n: int, refuse: Callable[..., Any] = refused, fail: Callable[..., Any] = failed
) -> tuple[Any, list[list[Any]]]:
    cells: list[list[Any]] = [[np.zeros(n)], [np.zeros(n)]]
    return bind(compiled(PROBE, PROBE_IR), PROBE, cells, refuse, fail), cells


def echo(array: Array, keywords: Keywords = POSITIONAL) -> BuiltinFunctionType:
    """A function of one argument whose result is a copy of its first 8 bytes or of the one element it has."""
    width = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}[np.dtype(array.dtype).itemsize]
    ir = f"""
    define i64 @sizes(ptr %x, ptr %dims) {{
      ret i64 0
    }}
    define i64 @kernel(ptr noalias %x, ptr noalias %y) {{
      %value = load {width}, ptr %x
      store {width} %value, ptr %y
      ret i64 0
    }}
    """
    signature = Signature("echo", (array,), (), (Array("y", array.dtype, ()),), (), (), "one")
    return bind(compiled(signature, ir), signature, [], refused, failed, keywords)


def expect_probe(n: int, rows: int, x: Any) -> Any:
    return 3.0 * x[None, :] + np.arange(rows)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 5, 1000, 100_000])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_values(n: int, rows: int) -> None:
    function, cells = probe(n)
    x = np.arange(n) / 7
    written, last = cells[0][0], cells[1][0]
    for step in range(1, 4):
        y = function(command(rows=rows), x)
        assert type(y) is np.ndarray and y.flags.owndata and y.flags.writeable
        np.testing.assert_array_equal(y, expect_probe(n, rows, x))
        np.testing.assert_allclose(cells[0][0], step * x, rtol=1e-15)
        np.testing.assert_array_equal(cells[1][0], np.full(n, float(step)))
    assert cells[0][0] is written, "a written buffer stays"
    assert cells[1][0] is not last and not last.any(), "a replaced value is left as it was"


@pytest.mark.parametrize("n", [0, 1, 5])
def test_python_mode_is_the_same(n: int) -> None:
    function, cells = probe(n)
    others: list[list[Any]] = [[np.zeros(n)], [np.zeros(n)]]
    x = np.arange(n) / 7
    for order in (
        command(),
        command(rows=0),
        command(code=3),
        command(fault=4),
        command(rows=-1),
        command(temp=-1),
        command(rows=2**62),
    ):
        native = function(order, x)
        plain: Any = launch_python(PROBE, probe_sizes, probe_kernel, [order, x], others, failed)
        plain = plain[0] if isinstance(plain, list) else plain
        assert type(native) is type(plain)
        assert native[:2] == plain[:2] if isinstance(native, tuple) else np.array_equal(native, plain)
        for cell, other in zip(cells, others, strict=True):
            np.testing.assert_array_equal(cell[0], other[0])


def witness_ir(signature: Signature, dims: list[int]) -> str:
    """A `sizes` that writes `dims`, and a kernel that writes the address or value of each of its arguments to the
    first output."""
    operands = len(signature.inputs + signature.shared)
    pointers = [f"ptr %p{k}" for k in range(operands + len(signature.outputs) + len(signature.temps))]
    sizes = [f"i64 %d{k}" for k in range(len(signature.sizes))]
    told = [f"%S{k} = getelementptr i64, ptr %S, i64 {k}\n store i64 {size}, ptr %S{k}" for k, size in enumerate(dims)]
    seen = [f"%a{k} = ptrtoint {pointer} to i64" for k, pointer in enumerate(pointers)]
    values = [f"%a{k}" for k in range(len(pointers))] + [f"%d{k}" for k in range(len(sizes))]
    kept = [
        f"%w{k} = getelementptr i64, ptr %p{operands}, i64 {k}\n store i64 {value}, ptr %w{k}"
        for k, value in enumerate(values)
    ]
    return "\n ".join(
        [
            f"define i64 @sizes({', '.join([*pointers[:operands], *sizes, 'ptr %S'])}) {{",
            *told,
            f"ret i64 0\n}}\ndefine i64 @kernel({', '.join([*pointers, *sizes])}) {{",
            *seen,
            *kept,
            "ret i64 0\n}",
        ]
    )


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_kernel_receives_what_the_signature_says(data: st.DataObject) -> None:
    """Random signatures: each pointer and each dim arrives in its place, and each result goes where it belongs."""

    def draw_arrays(prefix: str, **options: Any) -> list[tuple[Array, tuple[int, ...]]]:
        shapes = data.draw(st.lists(SHAPES, max_size=4))
        return [
            (Array(f"{prefix}{k}", data.draw(st.sampled_from(DTYPES)), hide(data, shape), **options), shape)
            for k, shape in enumerate(shapes)
        ]

    inputs, shared = draw_arrays("x"), draw_arrays("s")
    shared = [(replace(array, written=data.draw(st.booleans())), shape) for array, shape in shared]
    outputs = draw_arrays("y")
    free = [k for k, (array, _) in enumerate(shared) if not array.written]
    targets: list[int | None] = [*data.draw(st.permutations(free))[: len(outputs)]]
    targets += [None] * (len(outputs) - len(targets))
    outputs = [(replace(array, replaces=k), shape) for (array, shape), k in zip(outputs, targets, strict=True)]
    operands = inputs + shared
    axes = [(k, axis) for k, (_, shape) in enumerate(operands) for axis in range(len(shape))]
    sizes = data.draw(st.lists(st.sampled_from(axes), max_size=5)) if axes else []
    temps = data.draw(st.lists(st.tuples(st.sampled_from(DTYPES), st.integers(0, 1000)), max_size=3))
    arguments = len(operands) + 1 + len(outputs) + len(temps) + len(sizes)
    outputs = [(Array("seen", "int64", (None,)), (arguments,)), *outputs]
    signature = Signature(
        name="witness",
        inputs=tuple(array for array, _ in inputs),
        shared=tuple(array for array, _ in shared),
        outputs=tuple(array for array, _ in outputs),
        temps=tuple(Temp(f"t{k}", dtype) for k, (dtype, _) in enumerate(temps)),
        sizes=tuple(sizes),
        returns="list",
    )
    dims = [size for _, shape in outputs for size in shape] + [extent for _, extent in temps]
    code = link([emit_object([witness_ir(signature, dims), entry_ir(signature)], 1, EXPORTED)], EXPORTS)
    library = load(code, {})
    assert Signature.from_fields(signature.to_fields()) == signature
    given_arrays = [np.zeros(shape, array.dtype) for array, shape in inputs]
    cells: list[list[Any]] = [[np.zeros(shape, array.dtype)] for array, shape in shared]
    before = [cell[0] for cell in cells]
    function = bind(library, signature, cells, refused, failed)
    results = function(*given_arrays)
    assert type(results) is list, results
    expected = iter(results)
    made = [next(expected) if array.replaces is None else cells[array.replaces][0] for array, _ in outputs]
    assert [(a.dtype.name, a.shape) for a in made] == [(array.dtype, shape) for array, shape in outputs]
    assert next(expected, None) is None
    changed = {array.replaces for array, _ in outputs}
    assert all((cell[0] is old) == (k not in changed) for k, (cell, old) in enumerate(zip(cells, before, strict=True)))
    seen = results[0].tolist()
    known = [array.__array_interface__["data"][0] for array in (*given_arrays, *before, *made)]
    assert seen[: len(known)] == known
    starts = seen[len(known) : len(known) + len(temps)]
    ends = [start + extent * np.dtype(dtype).itemsize for start, (dtype, extent) in zip(starts, temps, strict=True)]
    assert all(start % 64 == 0 for start in starts)
    assert all(ends[k] <= starts[k + 1] for k in range(len(starts) - 1))
    if temps:
        binding: Any = function.__self__
        arena = binding.arena[0]
        first = arena.__array_interface__["data"][0]
        assert first <= starts[0] and ends[-1] <= first + arena.nbytes
    assert seen[len(known) + len(temps) :] == [operands[k][1][axis] for k, axis in sizes]


def hide(data: st.DataObject, shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """The shape with some sizes left to the call."""
    return tuple(size if data.draw(st.booleans()) else None for size in shape)


def misaligned(n: int) -> Any:
    return np.zeros(8 * n + 1, np.uint8)[1:].view(np.float64)


class Kind(np.ndarray[Any, Any]):
    pass


CONVERTED: dict[str, Any] = {
    "list": [1.0, 2.0],
    "tuple": (1, 2.5),
    "list of its scalars": list(np.ones(2)),
    "float32": np.zeros(2, np.float32),
    "integers": np.zeros(2, np.int64),
    "strided float32": np.arange(4, dtype=np.float32)[::2],
    "unpickled": pickle.loads(pickle.dumps(np.ones(2))),
    "swapped": np.arange(2, dtype=">f8"),
}
"""What becomes a contiguous array in native code, unless the function takes exact arguments."""

REFUSED = {
    "nested list": [[1.0, 2.0]],
    "list of strings": ["1", "2"],
    "large integers": [2**63, 1],
    "list of arrays": [np.zeros(()), np.zeros(())],
    "complex": np.zeros(2, complex),
    "half": np.zeros(2, np.float16),
    "objects": np.array([1.0, 2.0], object),
    "times": np.zeros(2, "m8[s]"),
    "none": None,
    "number": 1.0,
    "matrix": np.zeros((2, 1)),
    "zero rank": np.zeros(()),
    "subclass": np.zeros(2).view(Kind),
    "masked": np.ma.zeros(2),
    "scalar": np.float64(1.0),
}


COPIED = {
    "strided": np.zeros(4)[::2],
    "reversed": np.zeros(2)[::-1],
    "misaligned": misaligned(2),
    "repeated": np.broadcast_to(np.zeros(1), 2),
}


@pytest.mark.parametrize("x", COPIED.values(), ids=COPIED.keys())
def test_copies_small_inputs_but_no_shared_value(x: Any) -> None:
    function, cells = probe(2)
    np.testing.assert_array_equal(function(command(), x), expect_probe(2, 2, np.zeros(2)))
    for cell in (0, 1):
        function, cells = probe(2)
        cells[cell][0] = x
        assert function(command(), np.ones(2))[0] == "refused"
        assert cells[cell][0] is x


@pytest.mark.parametrize("x", CONVERTED.values(), ids=CONVERTED.keys())
def test_converts_inputs_unless_they_are_exact(x: Any) -> None:
    function, _ = probe(2)
    np.testing.assert_array_equal(function(command(), x), expect_probe(2, 2, np.asarray(x, np.float64)))
    cells = [[np.zeros(2)], [np.zeros(2)]]
    exact = Keywords(("command", "x"), exact=True)
    function = bind(compiled(PROBE, PROBE_IR), PROBE, cells, refused, failed, exact)
    assert function(command(), x)[0] == "refused"
    for cell in (0, 1):
        function, cells = probe(2)
        cells[cell][0] = x
        assert function(command(), np.ones(2))[0] == "refused", "a shared variable"


def number_lists() -> list[Any]:
    """Lists of what users write in them, and of numbers about the limits of every dtype."""
    limits = [
        int(edge) + step
        for name in INTEGERS
        for edge in (np.iinfo(name).min, np.iinfo(name).max)
        for step in (-1, 0, 1)
    ]
    kinds = [True, 3, -1, 2.5, 0.1, float("nan"), float("inf"), 1e300, 2**53 + 1, 2**60 + 1, 2**24 + 1]
    scalars = [np.dtype(name).type(1) for name in DTYPES]
    mixed = [[a, b] for a in (True, 1, 1.5, np.float64(0.1), np.int64(7), np.float32(0.1)) for b in (*kinds, *scalars)]
    return [
        [],
        [[]],
        *([limit] for limit in limits),
        *([limit, 0.5] for limit in limits),
        *mixed,
        (1, 2.0),
        [(1,)],
        [None],
    ]


@pytest.mark.slow
def test_lists_become_what_they_become_in_python() -> None:
    """Where native code takes a list at all, its elements are those of values.as_array."""
    taken = 0
    for dtype in DTYPES:
        signature, ir = copier(dtype)
        function = bind(compiled(signature, ir), signature, [], refused, failed)
        for value in number_lists():
            result = function(value)
            if isinstance(result, tuple):
                continue
            taken += 1
            want = as_array(value, dtype, "it")
            np.testing.assert_array_equal(result, want, strict=True)
    assert taken > 400


def test_nested_lists_of_equal_lengths() -> None:
    signature, ir = copier("float32", rank=2)
    function = bind(compiled(signature, ir), signature, [], refused, failed)
    matrices: list[Any] = [[[1.0, 2], (3, 4.5)], ([1], [2]), [[], []], [[1e300, -0.0]]]
    for value in matrices:
        np.testing.assert_array_equal(function(value), as_array(value, "float32", "it"), strict=True)
    cycle: list[Any] = []
    cycle.append(cycle)
    for wrong in ([[1.0], [1.0, 2.0]], [[1.0], 2.0], [1.0], [], [[1.0], [None]], [[[1.0]]], cycle, [cycle]):
        assert function(wrong)[0] == "refused"


@pytest.mark.parametrize("x", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_operand(x: Any) -> None:
    function, cells = probe(2)
    order = command()
    verdict, args, kwargs = function(order, x)
    assert verdict == "refused" and args[0] is order and args[1] is x and not kwargs
    assert not cells[0][0].any()
    for cell in (0, 1):
        function, cells = probe(2)
        cells[cell][0] = x
        assert function(order, np.ones(2))[0] == "refused"
        assert cells[cell][0] is x


def test_refuses_call() -> None:
    function, _ = probe(2)
    order, x = command(), np.ones(2)
    assert function() == ("refused", (), {})
    assert function(order)[0] == "refused"
    assert function(order, x, x)[0] == "refused"
    verdict, args, kwargs = function(order, x=x)
    assert verdict == "refused" and args == (order,) and kwargs == {"x": x}
    assert function(np.zeros(5, np.int64), x)[0] == "refused", "a static size"


def named_probe(n: int, *defaults: Any) -> tuple[BuiltinFunctionType, list[list[Any]]]:
    cells = [[np.zeros(n)], [np.zeros(n)]]
    keywords = Keywords(("command", "x"), defaults, out=True)
    return bind(compiled(PROBE, PROBE_IR), PROBE, cells, refused, failed, keywords), cells


def test_arguments_by_name() -> None:
    order, x, other = command(), np.ones(2), np.full(2, 2.0)
    function, _ = named_probe(2)
    want = expect_probe(2, 2, x)
    for result in (function(order, x=x), function(command=order, x=x), function(x=x, command=order)):
        np.testing.assert_array_equal(result, want)
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((order, x), {"x": x}),
        ((order,), {"y": x}),
        ((), {"x": x}),
        ((order,), {"command": order}),
        ((order, x, x), {}),
        ((order, x), {"z": None}),
    ]
    for args, kwargs in wrong:
        assert function(*args, **kwargs) == ("refused", args, kwargs)
    function, _ = named_probe(2, ABSENT, other)
    np.testing.assert_array_equal(function(order), expect_probe(2, 2, other))
    np.testing.assert_array_equal(function(command=order), expect_probe(2, 2, other))
    np.testing.assert_array_equal(function(order, x), want)
    assert function(x=x)[0] == function()[0] == "refused"
    function, _ = named_probe(2, order, other)
    np.testing.assert_array_equal(function(), expect_probe(2, 2, other))
    np.testing.assert_array_equal(function(x=x), want)


def test_names_that_nobody_interned() -> None:
    order, x = command(), np.ones(2)
    function, _ = named_probe(2)
    parts = ("com", "mand"), ("", "x")
    for names in (parts, parts[::-1]):
        values = {"".join(name): x if name[1] == "x" else order for name in names}
        np.testing.assert_array_equal(function(**values), expect_probe(2, 2, x))
    given = np.empty((2, 2))
    named: dict[str, Any] = {"OUT".lower(): given}
    assert function(order, x, **named) is given
    for number in range(100):
        assert function(order, x, **{f"unknown{number}": x})[0] == "refused"


def test_results_are_written_where_they_are_given() -> None:
    function, cells = named_probe(2)
    order, x = command(), np.ones(2)
    out = np.empty((2, 2))
    assert function(order, x, out=out) is out
    assert function(out=out, x=x, command=order) is out
    np.testing.assert_array_equal(out, expect_probe(2, 2, x))
    frozen = np.empty((2, 2))
    frozen.flags.writeable = False
    buffer = np.zeros(6)
    before = [cell[0].copy() for cell in cells]
    refusals: list[tuple[Any, Any]] = [
        *((x, bad) for bad in (None, (out,), [out], np.empty((2, 3)), np.empty((4,)), np.empty((2, 2), np.float32))),
        *((x, bad) for bad in (frozen, np.empty((2, 4))[:, ::2], np.empty((2, 2)).T[:, ::-1], np.empty((2, 2), ">f8"))),
        (buffer[:2], buffer[1:5].reshape(2, 2)),
        (buffer[3:5], buffer[:4].reshape(2, 2)),
        (x, np.empty((2, 2)).view(Kind)),
    ]
    for argument, bad in refusals:
        verdict, _, kwargs = function(order, argument, out=bad)
        assert verdict == "refused" and kwargs["out"] is bad
    for cell, value in zip(cells, before, strict=True):
        np.testing.assert_array_equal(cell[0], value)
    near = np.zeros(6)
    function(order, near[:2], out=near[2:].reshape(2, 2))
    verdict = function(command(fault=3), x, out=out)
    assert verdict[0] == "failed"
    del refusals, bad, kwargs
    assert sys.getrefcount(out) == 2


def test_references_balance_by_name_and_with_results_given() -> None:
    function, _ = named_probe(2, ABSENT, np.ones(2))
    order, x, out, spread = command(), np.ones(2), np.empty((2, 2)), np.ones(4)[::2]
    watched = [order, x, out, spread, spread.base, np.dtype("float64"), None]

    def run(count: int) -> None:
        for _ in range(count):
            function(order, x=x, out=out)
            function(x=spread, command=order)
            function(order, spread, out=out)
            function(order, spread, y=1)
            function(command(fault=1), spread, out=out)
            function(command(code=1), spread)
            function(command(rows=-1), spread)
            function(order, out=out)
            function(order, x, out=x)

    run(10)
    before = [sys.getrefcount(item) for item in watched]
    run(5_000)
    after = [sys.getrefcount(item) for item in watched]
    assert after[:-1] == before[:-1] and abs(after[-1] - before[-1]) < 100


def test_refuses_overlap() -> None:
    function, cells = probe(4)
    buffer = np.zeros(10)
    for total, x, last in (
        (buffer[:4], buffer[3:7], np.zeros(4)),
        (buffer[3:7], buffer[:4], np.zeros(4)),
        (buffer[:4], np.zeros(4), buffer[:4]),
        (buffer[2:6], np.zeros(4), buffer[5:9]),
    ):
        cells[0][0], cells[1][0] = total, last
        assert function(command(), x)[0] == "refused"
        assert overlapping(PROBE, [command(), x], cells) == ((1,) if np.shares_memory(x, buffer) else (3,))
    cells[0][0], cells[1][0] = buffer[:4], buffer[4:8]
    assert isinstance(function(command(), np.zeros(4)), np.ndarray), "neighbours do not overlap"
    x = np.zeros(4)
    cells[1][0] = x
    assert isinstance(function(command(), x), np.ndarray), "operands that are only read may"
    assert overlapping(PROBE, [command(), x], cells) == ()


def test_refuses_read_only_buffer() -> None:
    function, cells = probe(2)
    x = np.ones(2)
    x.flags.writeable = False
    assert isinstance(function(command(), x), np.ndarray)
    cells[0][0].flags.writeable = False
    assert function(command(), x)[0] == "refused"


def test_refuses_emptied_cell() -> None:
    function, cells = probe(2)
    cells[1].clear()
    assert function(command(), np.ones(2))[0] == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_parameters(dtype: str) -> None:
    function = echo(Array("x", dtype, ()))
    python: list[Any] = [
        True,
        False,
        0,
        1,
        -1,
        2,
        127,
        128,
        255,
        256,
        -128,
        -129,
        2**15,
        2**31,
        2**32 - 1,
        2**53 + 1,
        2**63 - 1,
    ]
    python += [-(2**63), 0.5, -0.0, 1e300, 1e-46, float("inf"), float("nan")]
    scalars = [np.dtype(other).type(value) for other in DTYPES for value in (0, 1, 7)]
    extremes = [limit for other in INTEGERS for limit in (np.iinfo(other).min, np.iinfo(other).max)]
    typed = [*scalars, *(np.dtype(i).type(limit) for i, limit in zip(np.repeat(INTEGERS, 2), extremes, strict=True))]
    for value in [*python, *typed, *map(np.array, typed)]:
        try:
            want = as_array(value, dtype, "x")
        except GraphTypeError:
            assert function(value)[0] == "refused", value
            continue
        y = function(value)
        if isinstance(y, tuple):  # right all the same, in Python
            assert (type(value), dtype in FLOATS) == (float, False) or (type(value), dtype) == (int, "bool"), value
            continue
        assert type(y) is np.ndarray and y.dtype == dtype and y.tobytes() == want.tobytes(), value
    others = (None, "1", [1], 1j, np.array([1], dtype), np.array(1, other_order(dtype)), 2**64, -(2**63) - 1, Number(1))
    for value in others:
        assert function(value) == ("refused", (value,), {})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_parameters_that_are_exact(dtype: str) -> None:
    function = echo(Array("x", dtype, ()), Keywords(exact=True))
    assert isinstance(function(np.ones((), dtype)), np.ndarray)
    for value in (True, 1, 1.0, np.dtype(dtype).type(1), *(np.ones((), other) for other in DTYPES if other != dtype)):
        assert function(value)[0] == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_that_are_scalars(dtype: str) -> None:
    function = echo(Array("x", dtype, ()), Keywords(exact=True, scalars=True))
    for number in (0, 1, 77):
        x = np.array(number, dtype)
        y = function(x)
        assert type(y) is x.dtype.type and y == x and hash(y) == hash(x[()])
        if dtype == "bool":
            assert y is np.bool(number)
    singletons, blocks = [sys.getrefcount(each) for each in (np.True_, np.False_)], sys.getallocatedblocks()
    for _ in range(1000):
        function(x)
    assert sys.getallocatedblocks() < blocks + 100
    assert all(abs(sys.getrefcount(each) - n) < 100 for each, n in zip((np.True_, np.False_), singletons, strict=True))


class Number(int):
    pass


def other_order(dtype: str) -> Any:
    other = np.dtype(dtype).newbyteorder()
    return other if other != np.dtype(dtype) else np.dtype("U1")


def test_returns() -> None:
    ir = """
    define i64 @sizes(ptr %s, ptr %dims) {
      store i64 2, ptr %dims
      ret i64 0
    }
    define i64 @kernel(ptr noalias %s, ptr noalias %a, ptr noalias %b, ptr noalias %c) {
      store double 1.0, ptr %a
      store double 2.0, ptr %b
      store double 3.0, ptr %c
      ret i64 0
    }
    """
    outputs = (Array("a", "float64", (2,)), Array("b", "float64", ()), Array("c", "float64", ()))
    listed = Signature("listed", (), (Array("s", "float64", ()),), outputs, (), (), "list")
    function = bind(compiled(listed, ir), listed, [[np.zeros(())]], refused, failed)
    values = function()
    assert type(values) is list and [value.shape for value in values] == [(2,), (), ()]
    assert values[0][0] == 1.0 and values[1] == 2.0 and values[2] == 3.0

    shared = (Array("s", "float64", ()), Array("t", "float64", ()), Array("u", "float64", (2,)))
    swapped = (
        Array("a", "float64", (2,), replaces=2),
        Array("b", "float64", (), replaces=0),
        Array("c", "float64", (), replaces=1),
    )
    updates = Signature("updates", (), shared, swapped, (), (), "none")
    ir = ir.replace("ptr %s", "ptr %s, ptr %t, ptr %u").replace(
        "ptr noalias %s", "ptr noalias %s, ptr noalias %t, ptr noalias %u"
    )
    cells: list[list[Any]] = [[np.zeros(())], [np.zeros(())], [np.zeros(2)]]
    assert bind(compiled(updates, ir), updates, cells, refused, failed)() is None
    assert cells[0][0] == 2.0 and cells[1][0] == 3.0 and cells[2][0][0] == 1.0

    nothing = Signature("nothing", (), (), (), (), (), "list")
    ir = "define i64 @sizes(ptr %dims) {\n ret i64 0\n}\ndefine i64 @kernel() {\n ret i64 0\n}"
    assert bind(compiled(nothing, ir), nothing, [], refused, failed)() == []


ERRORS = {
    "sizes": (command(code=3), 3),
    "kernel": (command(fault=4), 4),
    "negative check": (command(code=-5), -5),
    "negative size": (command(rows=-1), -1),
    "negative temp": (command(temp=-1), -1),
    "huge output": (command(rows=2**62), -1),
    "overflow": (command(rows=2**61 + 1), -1),
    "huge temp": (command(temp=2**62), -1),
    "smallest": (command(rows=-(2**63)), -1),
}


@pytest.mark.parametrize(("order", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_failures_change_nothing(order: Any, code: int) -> None:
    function, cells = probe(2)
    before = [cell[0] for cell in cells]
    x = np.ones(2)
    verdict, number, args = function(order, x)
    assert verdict == "failed" and number == code and args[0] is order and args[1] is x
    assert [cell[0] for cell in cells] == before or all(
        cell[0] is array for cell, array in zip(cells, before, strict=True)
    )
    assert not any(cell[0].any() for cell in cells)
    assert isinstance(function(command(), x), np.ndarray), "and the next call works"


@pytest.mark.parametrize("order", [command(rows=2**50), command(temp=2**50)], ids=["output", "temp"])
def test_memory_error(order: Any) -> None:
    function, cells = probe(2)
    for _ in range(100):
        verdict, number, args = function(order, x := np.ones(2))
        assert (verdict, number) == ("failed", NO_MEMORY) and args[0] is order and args[1] is x
    assert not cells[0][0].any()
    assert isinstance(function(command(), np.ones(2)), np.ndarray)


def test_exceptions_propagate() -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise LookupError("refuse")

    def fail(code: int, *args: Any) -> Any:
        raise ArithmeticError("fail", code)

    function, _ = probe(2, refuse, fail)
    with pytest.raises(LookupError, match="refuse"):
        function(1)
    for order in (command(code=3), command(fault=3)):
        with pytest.raises(ArithmeticError, match="3"):
            function(order, np.ones(2))


def test_refuse_may_call_again() -> None:
    def refuse(order: Any, x: Any) -> Any:
        return again(order, np.ascontiguousarray(x, np.float64))

    again, _ = probe(2, refuse)
    np.testing.assert_array_equal(again(command(), [1, 2]), expect_probe(2, 2, np.array([1.0, 2.0])))


def test_references_balance() -> None:
    function, cells = probe(2)
    x, order = np.ones(2), command()
    cases = [
        (order, x),
        (command(code=3), x),
        (command(fault=3), x),
        (command(rows=-1), x),
        (order, [1.0]),
        (order,),
        (command(temp=2**21), x),
        (command(rows=0), x),
    ]
    watched = [
        *(
            x,
            order,
            cells[0][0],
            cells[0],
            cells[1],
            cells,
            function,
            function.__self__,
            function.__self__.arena,
            refused,
            failed,
        ),
        *(np.dtype("float64"), np.dtype("uint8"), np.ndarray, case_arguments(cases)),
    ]
    for case in cases:
        function(*case)
    before = [sys.getrefcount(item) for item in watched]
    for case in cases:
        for _ in range(10_000):
            function(*case)
    after = [sys.getrefcount(item) for item in watched]
    assert after == before
    result = function(order, x)
    owned = [sys.getrefcount(cells[1][0]), sys.getrefcount(function.__self__.arena[0]), sys.getrefcount(result)]
    assert owned == [2, 2, 2]


def case_arguments(cases: list[tuple[Any, ...]]) -> list[Any]:
    return [argument for case in cases for argument in case]


@pytest.mark.slow
def test_references_of_lists_balance() -> None:
    ir = """
    define i64 @sizes(ptr %x, ptr %dims) {
      ret i64 0
    }
    define i64 @kernel(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
      %code = load i64, ptr %x
      ret i64 %code
    }
    """
    outputs = (Array("y", "float64", ()), Array("z", "float64", ()))
    signature = Signature("pair", (Array("x", "int64", ()),), (), outputs, (), (), "list")
    function = bind(compiled(signature, ir), signature, [], refused, failed)
    for code in (0, 1):
        function(code)
        gc.collect()
        tracked = len(gc.get_objects())
        before = sys.getrefcount(np.dtype("float64")), sys.getrefcount(None)
        for _ in range(10_000):
            function(code)
        after = sys.getrefcount(np.dtype("float64")), sys.getrefcount(None)
        assert abs(after[0] - before[0]) < 10 and abs(after[1] - before[1]) < 100
        assert len(gc.get_objects()) < tracked + 100
    values = function(0)
    owned = [sys.getrefcount(values), sys.getrefcount(values[0]), sys.getrefcount(values[1])]
    assert owned == [2, 2, 2]


def test_memory_is_flat() -> None:
    function, _ = probe(1000)
    x = np.ones(1000)
    orders = [command(temp=2000), command(temp=3000), command(fault=1), command(code=1), command(temp=-1)]

    def run() -> None:
        for order in orders * 500:
            function(order, x)

    run()
    tracemalloc.start()
    run()
    first = tracemalloc.get_traced_memory()[0]
    run()
    second = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert second - first < 5_000


def test_arena_is_kept_grown_and_given_back() -> None:
    function, _ = probe(2)
    arena = function.__self__.arena
    assert arena == [None]
    x = np.ones(2)
    function(command(temp=1000), x)
    first = arena[0]
    assert first.nbytes >= 8000
    function(command(temp=10), x)
    assert arena[0] is first
    function(command(temp=2000), x)
    assert arena[0] is not first and arena[0].nbytes >= 16000
    arena[0] = None
    assert isinstance(function(command(temp=10), x), np.ndarray)
    assert arena[0].nbytes < 8000


def run_threads(*targets: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 40])
def test_threads_share_a_function(rows: int) -> None:
    n = 5_000
    function, cells = probe(n)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def caller(seed: int) -> Callable[[], None]:
        def call() -> None:
            x = np.random.default_rng(seed).normal(size=n)
            expected = expect_probe(n, rows, x)
            order = command(rows=rows)
            for _ in range(200):
                np.testing.assert_array_equal(function(order, x), expected)

        return call

    def set_values() -> None:
        for value in range(2000):
            cells[1][0] = np.full(n, float(value))
            cells[0][0] = np.zeros(n)

    try:
        run_threads(caller(1), caller(2), set_values)
    finally:
        sys.setswitchinterval(interval)
    owned = [sys.getrefcount(cells[0][0]), sys.getrefcount(cells[1][0]), sys.getrefcount(function.__self__.arena[0])]
    assert owned == [2, 2, 2]
    assert function.__self__.busy[0] == 0


@pytest.mark.slow
def test_collection_of_cycles() -> None:
    class Owner:
        def __init__(self) -> None:
            self.cells = [[np.zeros(2)], [np.zeros(2)]]
            self.function: Any = bind(compiled(PROBE, PROBE_IR), PROBE, self.cells, self.refuse, self.fail)

        def refuse(self, *args: Any, **kwargs: Any) -> Any:
            return self.function

        def fail(self, *args: Any) -> Any:
            return self

    owner = Owner()
    owner.function(command(), np.ones(2))
    gone = [weakref.ref(owner), weakref.ref(owner.function), weakref.ref(owner.cells[0][0])]
    del owner
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]


LINKS: dict[str, Callable[[list[bytes]], bytes]] = {"image": lambda objects: link(objects, EXPORTS), "objects": join}
"""What `load` takes: an image, or, where that cannot be made, the objects for LLVM."""


@pytest.mark.slow
@pytest.mark.parametrize("how", LINKS)
def test_library_is_unloaded_with_its_last_function(how: str) -> None:
    library = load(LINKS[how]([emit_object([PROBE_IR, entry_ir(PROBE)], 1, EXPORTED)]), {})
    tracker = weakref.ref(library.owner[0])
    cells = [[np.zeros(2)], [np.zeros(2)]]
    first = bind(library, PROBE, cells, refused, failed)
    second = bind(library, PROBE, cells, refused, failed)
    del library
    assert isinstance(first(command(), np.ones(2)), np.ndarray)
    del first
    gc.collect()
    assert isinstance(second(command(), np.ones(2)), np.ndarray) and tracker() is not None
    del second
    gc.collect()
    assert tracker() is None


@pytest.mark.slow
@pytest.mark.parametrize("how", LINKS)
def test_many_libraries(how: str) -> None:
    code = LINKS[how]([emit_object([PROBE_IR, entry_ir(PROBE)], 1, EXPORTED)])
    for _ in range(200):
        function = bind(load(code, {}), PROBE, [[np.zeros(2)], [np.zeros(2)]], refused, failed)
        assert isinstance(function(command(), np.ones(2)), np.ndarray)


@pytest.mark.slow
@pytest.mark.parametrize("how", LINKS)
def test_load_errors(how: str) -> None:
    def made(ir: str, entry: str) -> bytes:
        return LINKS[how]([emit_object([ir, entry], 1, EXPORTED)])

    code = made(PROBE_IR, entry_ir(PROBE))
    for wrong in (b"no object at all", code[: len(code) // 2], LINKS[how]([])):
        with pytest.raises(GraphcError, match="cannot be loaded"):
            load(wrong, {})
    wanting = (
        PROBE_IR.replace("ret i64 99", "call void @graphc_missing()\n ret i64 99") + "\ndeclare void @graphc_missing()"
    )
    with pytest.raises(GraphcError, match="cannot be loaded"):
        load(made(wanting, entry_ir(PROBE)), {})
    other = entry_ir(PROBE).replace(str(layout_tag()), str(layout_tag() + 1))
    with pytest.raises(GraphcError, match="another Python"):
        load(made(PROBE_IR, other), {})


def test_bind_wants_its_cells() -> None:
    wrong: list[Any] = [[], [[np.zeros(1)]], [[], []], [(np.zeros(1),), [np.zeros(1)]]]
    for cells in wrong:
        with pytest.raises(GraphcError, match="cells"):
            bind(compiled(PROBE, PROBE_IR), PROBE, cells, refused, failed)


def test_signature_as_tuples() -> None:
    fields = PROBE.to_fields()
    assert Signature.from_fields(marshal.loads(marshal.dumps(fields))) == PROBE
    wrong: list[Any] = [None, "", "{}", (), {}, fields[:-4], (*fields, ()), (*fields[:1], (3,), *fields[2:])]
    for others in wrong:
        with pytest.raises((GraphcError, TypeError, ValueError)):
            Signature.from_fields(others)


def test_signature_is_checked() -> None:
    array = vector("x")
    nothing = Signature("f", (), (), (), (), (), "list")
    wrong: list[dict[str, Any]] = [
        {"returns": "one"},
        {"returns": "none", "outputs": (array,)},
        {"sizes": ((0, 0),)},
        {"inputs": (array,), "sizes": ((0, 1),)},
        {"inputs": (Array("x", "float64", (), written=True),)},
        {"outputs": (vector("y", replaces=0),)},
        {"shared": (array,), "outputs": (vector("y", replaces=0), vector("z", replaces=0))},
    ]
    for fields in wrong:
        with pytest.raises(GraphcError):
            replace(nothing, **fields)


def test_layout_of_this_python() -> None:
    verify_layout()


def python(program: str, object_path: Path) -> subprocess.CompletedProcess[str]:
    prologue = """
    import gc, marshal, os, sys, threading
    import numpy as np
    from graphc.codegen.call.bind import bind, load
    from graphc.codegen.call.signature import Signature
    signature = Signature.from_fields(marshal.load(open(sys.argv[1] + ".fields", "rb")))
    code = open(sys.argv[1], "rb").read()
    def make(n):
        return bind(load(code, {}), signature, [[np.zeros(n)], [np.zeros(n)]], print, print)
    order = np.array([0, 2, 1 << 20, 0])
    """
    text = textwrap.dedent(prologue) + textwrap.dedent(program)
    return subprocess.run(
        [sys.executable, "-c", text, str(object_path)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module", params=LINKS)
def stored(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    path = tmp_path_factory.mktemp("object") / "probe.o"
    path.write_bytes(LINKS[request.param]([emit_object([PROBE_IR, entry_ir(PROBE)], 2, EXPORTED)]))
    Path(f"{path}.fields").write_bytes(marshal.dumps(PROBE.to_fields()))
    return path


PROGRAMS = {
    "another process, without numba": """
        print(make(2)(order, np.ones(2)).tolist(), "numba" in sys.modules)
    """,
    "exit with functions alive": """
        import builtins
        builtins.kept = make(2)
        kept(order, np.ones(2))
        cycle = [make(2)]; cycle.append(cycle)
        print("[[3.0, 3.0], [4.0, 4.0]] False")
    """,
    "exit while a daemon thread runs a kernel": """
        n = 1_000_000
        function = make(n)
        x = np.ones(n)
        started = threading.Event()
        def work():
            started.set()
            while True:
                function(order, x)
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        started.wait()
        import time; time.sleep(0.05)
        print("[[3.0, 3.0], [4.0, 4.0]] False")
    """,
    "fork": """
        function = make(2)
        function(order, np.ones(2))
        child = os.fork()
        if child == 0:
            good = function(order, np.ones(2)).shape == (2, 2) and make(3)(order, np.ones(3)).shape == (2, 3)
            os._exit(0 if good else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        print(function(order, np.ones(2)).tolist(), False)
    """,
    "finalizer calls": """
        class Last:
            def __init__(self): self.function = make(2)
            def __del__(self): self.function(order, ones)
        ones = np.ones(2)
        last = Last(); last.self = last
        del last; gc.collect()
        last = Last(); last.self = last
        print("[[3.0, 3.0], [4.0, 4.0]] False")
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_processes(program: str, stored: Path) -> None:
    result = python(program, stored)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert result.stdout.strip() == "[[3.0, 3.0], [4.0, 4.0]] False"


@pytest.mark.slow
def test_ir_is_the_same_in_every_process() -> None:
    program = """if True:
    import marshal, sys
    from graphc.codegen.call.entry import entry_ir
    from graphc.codegen.call.signature import Signature
    print(entry_ir(Signature.from_fields(marshal.loads(bytes.fromhex(sys.argv[1])))), end="")
    """
    command = [sys.executable, "-c", program, marshal.dumps(PROBE.to_fields()).hex()]
    texts = [subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout for _ in range(2)]
    assert texts == [entry_ir(PROBE)] * 2
