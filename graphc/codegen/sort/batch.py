"""All lines of an array, shared by threads.

In: functions of one line (lines.py). Out: those of api.PROTOTYPES in LLVM IR. Columns are taken some at a time, which
are whole lines of the caches, and put in order as rows of a workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphc.codegen.gemm.context import SETTING, Words, share
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function
from graphc.codegen.llvm.typed import F64, I64, Bool, Ptr
from graphc.codegen.sort.api import ALONG, FUNCTIONS, PROTOTYPES, ROWS, SEARCHED, result_dtype
from graphc.codegen.sort.lines import (
    KINDS,
    TOGETHER,
    argsort_line,
    copy_line,
    first_of_line,
    insert_by_steps,
    is_less,
    line_function,
    search,
    sort_line,
)
from graphc.codegen.threads.chunking import LEAST_WORK

# --- rows -------------------------------------------------------------------------------------------------------------
# The order of the rows of a matrix: by their first elements, of equal ones by the second, and so on.
#
# In: a dtype. Out: a function of LLVM IR.


@line_function("lexorder_rows")
def lexorder_rows(code: Code, dtype: str, x: Ptr, row: I64, column: I64, n: I64, m: I64, places: Ptr) -> None:
    """Sorted by the first elements, what is equal there by the rest."""
    kind = KINDS[dtype]
    with code.when(m == 0):
        with code.count(0, n) as i:
            places.at(i, I64).store(i)
        code.ret()
    argsort_line(dtype)(code, x, row, n, places)

    def element(place: I64) -> object:
        return x.at(places.at(place, I64).load(I64) * row, kind).load(kind)

    first = code.variable(I64.of(0))
    with code.loop() as runs:
        runs.leave.unless(first.value < n)
        begin, end = first.value, code.variable(first.value + 1)
        with code.loop() as run:
            run.leave.unless(end.value < n)
            run.leave.when(is_less(dtype, element(begin), element(end.value)))
            end.value = end.value + 1
        with code.when(end.value - begin > 1):
            sort_run(dtype)(code, x, row, column, end.value - begin, m, places.at(begin, I64))
        first.value = end.value


@line_function("sort_run")
def sort_run(code: Code, dtype: str, x: Ptr, row: I64, column: I64, n: I64, m: I64, places: Ptr) -> None:
    """Places of rows sorted where they stand, by Shell's method."""

    def comes_before(i: I64, j: I64) -> Bool:
        return is_row_less(dtype)(code, x, row, column, m, i, j)

    insert_by_steps(code, places, I64, n, comes_before)


@line_function("is_row_less")
def is_row_less(code: Code, dtype: str, x: Ptr, row: I64, column: I64, m: I64, i: I64, j: I64) -> Bool:
    """Tell whether row i comes before row j; equal ones are in the order of places."""
    kind = KINDS[dtype]
    left, right = x.at(i * row, kind), x.at(j * row, kind)
    with code.count(1, m) as number:
        one, other = (each.at(number * column, kind).load(kind) for each in (left, right))
        with code.when(is_less(dtype, one, other)):
            code.ret(Bool.of(True))
        with code.when(is_less(dtype, other, one)):
            code.ret(Bool.of(False))
    return i < j


# --- batch ------------------------------------------------------------------------------------------------------------


COLUMNS = 16
"""The columns that are taken at a time."""
ELEMENT_WORK, FIXED_WORK = 20.0, 100.0
"""The cost of an element of a line, and of a line besides, in units of work (threads/chunking.py)."""
ALONG_ARGUMENTS = ("count", "n", "across", "x", "outer", "step", "inner", "result", "space")
FIRST_ARGUMENTS = ("count", "n", "k", "x", "outer", "step", "wanted", "result", "space")
SEARCHED_ARGUMENTS = ("n", "count", "x", "step", "values", "along", "result")
SEARCH_WORK = 60.0
"""The cost of a search."""


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of api.PROTOTYPES."""
    return [
        rows(name, FUNCTIONS[name][1]) if FUNCTIONS[name][0] in ROWS else lines(name, *FUNCTIONS[name])
        for name in sorted(names)
    ]


def rows(symbol: str, dtype: str) -> Function[..., I64]:
    """The function for the rows of a matrix."""

    def write(code: Code, n: I64, m: I64, x: Ptr, row: I64, column: I64, result: Ptr) -> I64:
        lexorder_rows(dtype)(code, x, row, column, n, m, result)
        return I64.of(0)

    kinds = {"n": I64, "m": I64, "x": Ptr, "row": I64, "column": I64, "result": Ptr}
    return Function(symbol, I64, kinds, write, "noinline optsize")


def lines(symbol: str, name: str, dtype: str) -> Function[..., I64]:
    """The function of an op: its lines, or groups of columns, are shared out."""
    names = ALONG_ARGUMENTS if name in ALONG else SEARCHED_ARGUMENTS if name in SEARCHED else FIRST_ARGUMENTS
    kinds = {each: Ptr if spelt.endswith("*") else I64 for each, spelt in zip(names, PROTOTYPES[symbol], strict=True)}
    words = Words(kinds)
    write = _write_along if name in ALONG else _write_searched if name in SEARCHED else _write_first
    range_: Function[..., None] = Function(
        f"{name}_range_{dtype}",
        None,
        {"context": Ptr, "begin": I64, "end": I64},
        partial(write, name, dtype, words),
        "noinline",
        is_internal=True,
    )
    return Function(symbol, I64, kinds, partial(_share, words, range_), "noinline optsize")


def _groups(words: dict[str, Any]) -> I64:
    """In how many groups of columns each matrix is taken."""
    groups: I64 = (words["across"] + (COLUMNS - 1)) // COLUMNS
    return groups


def _share(words: Words, range_: Function[..., None], code: Code, *values: Any) -> I64:
    given = dict(zip(words.kinds, values, strict=True))
    context = words.write(code, given)
    work, tasks = given["n"].to(F64) * ELEMENT_WORK + FIXED_WORK, given["count"]
    if "across" in given:
        tasks = tasks * _groups(given)
        across = given["across"]
        work = work * across.minimum(COLUMNS).to(F64)
    elif "values" in given:
        work = F64.of(SEARCH_WORK)
    else:
        with code.when(given["k"] == 0):
            code.ret(I64.of(0))
    worth = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work
    few = (worth < tasks.to(F64)).choose(worth, tasks.to(F64)).to(I64)
    share(code, range_.pointer(code), context, tasks, (few > 1).choose(few, 1), work * tasks.to(F64))
    return I64.of(0)


def _write_first(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    given = words.read(context)
    kind = KINDS[result_dtype(name, dtype)]
    flip = (given["wanted"].load(I64) < 0).choose(I64.of(0), -1)
    n, k, line = given["n"], given["k"], first_of_line(name, dtype)
    with code.count(begin, end) as number:
        row = given["x"].at(number * given["outer"], KINDS[dtype])
        result, space = given["result"].at(number * k, kind), given["space"].at(number * n, kind)
        line(code, row, given["step"], n, k, flip, result, space)


def _write_searched(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """Some values at a time; the last of these searches may take values again that one before has taken."""
    given = words.read(context)
    kind, (many, few) = KINDS[dtype], TOGETHER
    x, step, n, along = (given[each] for each in ("x", "step", "n", "along"))
    searches = {lanes: search(name.rpartition("_")[2], lanes)(dtype) for lanes in TOGETHER}

    with code.when(begin == end):
        code.ret()
    with code.when(end - begin < few):
        copies, found = code.local(kind, few), code.local(I64, few)
        with code.count(0, few) as i:
            value = given["values"].at((begin + i.minimum(end - begin - 1)) * along, kind).load(kind)
            copies.at(i, kind).store(value)
        searches[few](code, x, step, n, copies, I64.of(1), found)
        with code.count(begin, end) as i:
            given["result"].at(i, I64).store(found.at(i - begin, I64).load(I64))
        code.ret()
    whole = end - (end - begin) % many
    for lanes, first, last in ((many, begin, whole), (few, whole, end)):
        with code.count(first, last, lanes) as i:
            here = i.minimum(end - lanes)
            values, result = given["values"].at(here * along, kind), given["result"].at(here, I64)
            searches[lanes](code, x, step, n, values, along, result)


def _write_along(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    given = words.read(context)
    element, made = KINDS[dtype], result_dtype(name, dtype)
    kind, n, across, step = KINDS[made], given["n"], given["across"], given["step"]
    groups = _groups(given)
    with code.count(begin, end) as task:
        number, first = task // groups, task % groups * COLUMNS
        result = given["result"].at(number * n * across + first, kind)
        x = given["x"].at(number * given["outer"] + first * given["inner"], element)
        with code.when(across == 1):
            if name == "sort":
                copy_line(dtype)(code, x, step, n, result)
                sort_line(dtype)(code, result, n)
            else:
                argsort_line(dtype)(code, x, step, n, result)
        with code.otherwise():
            left = across - first
            width = left.minimum(COLUMNS)
            space = given["space"].at((number * across + first) * n, kind)
            if name == "sort":
                transposed(dtype)(code, n, width, x, step, given["inner"], space, I64.of(1), n)
            with code.count(0, width) as column:
                line = space.at(column * n, kind)
                if name == "sort":
                    sort_line(dtype)(code, line, n)
                else:
                    argsort_line(dtype)(code, x.at(column * given["inner"], element), step, n, line)
            transposed(made)(code, n, width, space, I64.of(1), n, result, across, I64.of(1))


@line_function("transposed")
def transposed(
    code: Code, dtype: str, m: I64, n: I64, a: Ptr, a_row: I64, a_column: I64, c: Ptr, c_row: I64, c_column: I64,
) -> None:  # fmt: skip
    """A matrix copied, row by row."""
    kind = KINDS[dtype]
    with code.count(0, m) as i:
        source, target = a.at(i * a_row, kind), c.at(i * c_row, kind)
        with code.count(0, n) as j:
            target.at(j * c_column, kind).store(source.at(j * a_column, kind).load(kind))
