"""Lines of elements: sorted, their places in order, the first of them; one line, and all lines of an array.

In: a dtype. Out: functions of LLVM IR; those of PROTOTYPES.

NumPy sorts numbers several times faster than it finds the places of sorted ones. So an order is that of whole numbers
of 64 bits, its keys, that hold a number in their upper part and its place in the lower one. Where the upper part cannot
hold all of it, those that are alike there are put in order by keys of what they did not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from graphc.arrays.dtypes import UNSIGNED, itemsize
from graphc.codegen.gemm.tiles import SETTING, Words, share
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, R, external, functions as by_dtype, gathered
from graphc.codegen.llvm.typed import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    NULL,
    Bool,
    Elements,
    Indices,
    Ptr,
    Real,
    Value,
    elements,
    vector,
)
from graphc.codegen.sort import ALONG, ENTRIES, FUNCTIONS, ROWS, SEARCHED, result_dtype
from graphc.codegen.threads.settings import LEAST_WORK

NUMBERS: dict[str, type[Any]] = {
    "bool": I8, "int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": I8, "uint16": I16, "uint32": I32,
    "uint64": I64, "float32": F32, "float64": F64,
}  # fmt: skip
WITHOUT_SIGN = ("bool", *UNSIGNED)
TABLE = Global("gc_order", f"external global [{len(ENTRIES)} x ptr]")
FEW = 4
"""Elements of a line up to which it is sorted here."""
NARROW, DIGITS = 2, 512
"""Bytes of the numbers whose places NumPy sorts by their digits, and elements from which on that takes less."""
SAMPLED, LEAST_SAMPLED = 2048, 32
"""Elements that tell where about the last of the first stands, at most, and at least where that is asked."""
LANES = 16
"""Elements that are compared at a time."""
COPY = external("llvm.memcpy.p0.p0.i64", None, Ptr, Ptr, I64, Bool)
HIGHEST = 2**63 - 1


def line_function(name: str) -> Callable[[Callable[..., R]], Callable[[str], Function[..., R]]]:
    """Makes functions of lines, one for each dtype."""
    return by_dtype(name, "noinline", NUMBERS.__getitem__)


def is_less(dtype: str, left: Any, right: Any) -> Bool:
    """The order of elements, in which NaN is the last."""
    if dtype in WITHOUT_SIGN:
        below: Bool = left.below(right)
        return below
    less: Bool = left < right
    if issubclass(NUMBERS[dtype], Real):
        less |= right.compare("fcmp uno", right) & ~left.compare("fcmp uno", left)
    return less


def encoded(dtype: str, elements: Any, lanes: int = 1) -> Any:
    """Whole numbers that stand among those of other elements where the elements stand among these."""
    if not issubclass(NUMBERS[dtype], Real):
        wide = elements.to(vector(I64, lanes) if lanes > 1 else I64, signed=dtype not in WITHOUT_SIGN)
        return wide.apply("xor", -(2**63)) if dtype == "uint64" else wide
    whole = I64 if dtype == "float64" else I32
    highest, integers = 2 ** (whole.bits - 1) - 1, vector(whole, lanes) if lanes > 1 else whole
    bits = (elements + 0.0)._cast("bitcast", integers)  # -0 is 0 before
    # of a negative one all bits but the sign are turned
    ranked = bits.apply("xor", bits.apply("ashr", whole.bits - 1) & highest)
    ranked = elements.compare("fcmp uno", elements).choose(integers.of(highest), ranked)
    return ranked.to(vector(I64, lanes) if lanes > 1 else I64)


def numpys(code: Code, dtype: str, order: str) -> Ptr:
    """A function of NumPy's, or null."""
    return TABLE(code).at(ENTRIES.index((dtype, order)), Ptr).load(Ptr)


# --- elements ---------------------------------------------------------------------------------------------------------


@line_function("sort_line")
def sort_line(code: Code, dtype: str, a: Elements, n: I64) -> None:
    """Contiguous elements sorted where they stand."""
    with code.when(n > FEW):
        sort = numpys(code, dtype, "sort")
        with code.when(sort != NULL):
            sort.call(I32, a, n, NULL)
            code.ret()
    shell_sort(dtype)(code, a, n)


def insert_by_steps(code: Code, a: Elements, n: I64, comes_before: Callable[[Any, Any], Bool]) -> None:
    """Write Shell's method, whose steps are 1, 4, 13, …: the elements of `a` in the order that `comes_before` tells."""
    step = code.variable(I64.of(1))
    with code.loop() as widening:
        widening.leave.unless(step.value * 9 < n)
        step.value = step.value * 3 + 1
    with code.loop() as narrowing:
        distance = step.value
        with code.count(distance, n) as i:
            value, place = a[i], code.variable(i)
            with code.loop() as moving:
                moving.leave.when(place.value < distance)
                before = a[place.value - distance]
                moving.leave.unless(comes_before(value, before))
                a[place.value] = before
                place.value = place.value - distance
            a[place.value] = value
        narrowing.leave.when(distance == 1)
        step.value = distance // 3


@line_function("shell_sort")
def shell_sort(code: Code, dtype: str, a: Elements, n: I64) -> None:
    """The same by Shell's method."""
    insert_by_steps(code, a, n, lambda value, before: is_less(dtype, value, before))


# --- places among sorted elements -------------------------------------------------------------------------------------


TOGETHER = (32, 8)
"""Values that are searched together: while some wait for memory, the others go on. Of 32, of which a processor takes
eight at a time, each takes half as long as of eight."""


@cache
def search(side: str, lanes: int) -> Callable[[str], Function[..., None]]:
    """Of so many values the number of sorted elements before each, or for the side "right" of those that it is not
    before."""

    def counts(dtype: str, element: Any, value: Any) -> Bool:
        return is_less(dtype, element, value) if side == "left" else ~is_less(dtype, value, element)

    @line_function(f"search_{side}_{lanes}")
    def write(
        code: Code, dtype: str, x: Elements, step: I64, n: I64, values: Elements, along: I64, places: Indices
    ) -> None:
        """Those elements come first. The half that is left is chosen without a branch."""
        several, wide = vector(NUMBERS[dtype], lanes), vector(I64, lanes)

        def gather(at: Ptr, step: I64, place: Any) -> Any:
            return gathered(code, several, at, place * step.spread(lanes), itemsize(dtype))

        value = gather(values, along, wide.each(range(lanes)))
        first, left = code.variable(wide.of(0)), code.variable(n)

        def advance(by: I64) -> None:
            """Skip as many elements where the last of them counts."""
            ahead = first.value + by.spread(lanes)
            first.value = counts(dtype, gather(x, step, ahead - 1), value).choose(ahead, first.value)

        with code.loop() as halving:
            halving.leave.unless(left.value > 1)
            half = left.value.apply("lshr", 1)
            advance(half)
            left.value = left.value - half
        with code.when(left.value > 0):
            advance(left.value)
        places.store(first.value, align=8)

    return write


# --- places -----------------------------------------------------------------------------------------------------------


@line_function("argsort_line")
def argsort_line(code: Code, dtype: str, x: Elements, step: I64, n: I64, keys: Indices) -> None:
    """The places of elements, which stand that far apart, in rising order."""
    element = NUMBERS[dtype]
    if itemsize(dtype) <= NARROW:
        with code.when((n > DIGITS) & (step == 1)):
            sort = numpys(code, dtype, "argsort")
            with code.when(sort != NULL):
                with code.count(0, n) as i:
                    keys[i] = i
                status = sort.call(I32, x, keys, n, NULL)
                with code.when(status == 0):  # else it had no memory
                    code.ret()
    with code.when(is_rising(dtype)(code, x, step, n)):
        with code.count(0, n) as i:
            keys[i] = i
        code.ret()
    bits = bits_of(code, n)
    base, is_exact = code.variable(I64.of(0)), code.variable(Bool.of(itemsize(dtype) < 8))
    if element is I64:
        bounds = code.local(I64, 2).numbers(I64)
        find_extremes(dtype)(code, x, step, n, bounds)
        lowest = bounds.value
        is_exact.value = (bounds[1] - lowest).below(I64.of(HIGHEST) >> bits)
        base.value = is_exact.value.choose(lowest, 0)
    make_keys(dtype)(code, x, step, n, I64.of(0), base.value, bits, is_exact.value, keys)
    sort_line("int64")(code, keys, n)
    order_alike(dtype)(code, x, step, n, I64.of(0), bits, is_exact.value, keys)


@line_function("is_rising")
def is_rising(code: Code, dtype: str, x: Elements, step: I64, n: I64) -> Bool:
    """Tell whether the elements are in order."""
    with code.count(1, n) as i:
        before, here = (x[(i - back) * step] for back in (1, 0))
        with code.when(is_less(dtype, here, before)):
            code.ret(Bool.of(False))
    return Bool.of(True)


def bits_of(code: Code, n: I64) -> I64:
    """The bits of places in a line."""
    leading = external("llvm.ctlz.i64", I64, I64, Bool)(code, n.apply("or", 1), Bool.of(False))
    return 64 - leading


def key_of(dtype: str, x: Elements, step: I64, place: I64, flip: I64) -> Any:
    """The encoded element at a place, turned around where the order is (`flip` is -1, else 0)."""
    return encoded(dtype, x[place * step]).apply("xor", flip)


@line_function("find_extremes")
def find_extremes(code: Code, dtype: str, x: Elements, step: I64, n: I64, bounds: Indices) -> None:
    """The least and the greatest of the encoded elements."""
    lowest, highest = code.variable(I64.of(HIGHEST)), code.variable(I64.of(-HIGHEST - 1))
    with code.count(0, n) as i:
        each = key_of(dtype, x, step, i, I64.of(0))
        lowest.value = each.minimum(lowest.value)
        highest.value = (each > highest.value).choose(each, highest.value)
    bounds.value = lowest.value
    bounds[1] = highest.value


@line_function("make_keys")
def make_keys(
    code: Code, dtype: str, x: Elements, step: I64, n: I64, flip: I64, base: I64, bits: I64, is_exact: Bool,
    keys: Indices,
) -> None:  # fmt: skip
    """Exact ones hold all of a number above `base`."""
    element, wide = NUMBERS[dtype], vector(I64, LANES)
    words = flip, base, is_exact.choose(bits, 0), is_exact.choose(I64.of(-1), 0 - (1 << bits))

    def key(element: Any, place: Any, flip: Any, base: Any, shift: Any, mask: Any) -> Any:
        return (element.apply("xor", flip) - base << shift) & mask | place

    whole = code.variable(I64.of(0))
    with code.when(step == 1):
        whole.value = n & -LANES
        spread = [word.spread(LANES) for word in words]
        with code.count(0, whole.value, LANES) as i:
            elements = x.at(i).load(vector(element, LANES), align=itemsize(dtype))
            places = i.spread(LANES) + wide.each(range(LANES))
            keys.at(i).store(key(encoded(dtype, elements, LANES), places, *spread), align=8)
    with code.count(whole.value, n) as i:
        keys[i] = key(key_of(dtype, x, step, i, I64.of(0)), i, *words)


@line_function("order_alike")
def order_alike(
    code: Code, dtype: str, x: Elements, step: I64, n: I64, flip: I64, bits: I64, is_exact: Bool, keys: Indices
) -> None:
    """Sorted keys become places. Where they did not hold all of the numbers, those that are alike so far are sorted by
    the rest."""
    wide = vector(I64, LANES)
    low = (1 << bits) - 1
    if itemsize(dtype) == 8:
        with code.when(~is_exact):
            order_runs(dtype)(code, x, step, n, flip, bits, keys)
    whole, lows = n & -LANES, low.spread(LANES)
    with code.count(0, whole, LANES) as i:
        at = keys.at(i)
        at.store(at.load(wide, align=8) & lows, align=8)
    with code.count(whole, n) as i:
        at = keys.at(i)
        at.value &= low


@line_function("order_runs")
def order_runs(code: Code, dtype: str, x: Elements, step: I64, n: I64, flip: I64, bits: I64, keys: Indices) -> None:
    """Runs of keys with one upper part are sorted by the rest."""
    wide = vector(I64, LANES)
    first, shifts = code.variable(I64.of(0)), bits.spread(LANES)
    with code.loop() as runs:
        runs.leave.unless(first.value + 1 < n)
        with code.when(first.value + LANES < n):
            here, next_ = (keys.at(first.value + ahead).load(wide, align=8) for ahead in (0, 1))
            alike = (here.apply("xor", next_) >> shifts) == 0
            with code.when(alike._cast("bitcast", I16 if LANES == 16 else I8) == 0):
                first.value = first.value + LANES
                runs.again.go()
        begin = first.value
        upper, end = keys[begin] >> bits, code.variable(begin + 1)
        with code.loop() as run:
            run.leave.unless(end.value < n)
            run.leave.unless(keys[end.value] >> bits == upper)
            end.value = end.value + 1
        with code.when(end.value - begin > 1):
            order_run(dtype)(code, x, step, end.value - begin, flip, bits, keys.at(begin))
        first.value = end.value


@line_function("order_run")
def order_run(code: Code, dtype: str, x: Elements, step: I64, n: I64, flip: I64, bits: I64, keys: Indices) -> None:
    """Keys of one upper part, so in the order of their places, are sorted by the rest, unless that is their order."""
    low, before = (1 << bits) - 1, code.variable(I64.of(-1))
    falls = code.variable(Bool.of(False))
    with code.count(0, n) as i:
        at = keys.at(i)
        place = at.value & low
        key = (key_of(dtype, x, step, place, flip) & low) << bits | place
        falls.value = falls.value | (key < before.value)
        before.value = key
        at.value = key
    with code.when(falls.value):
        sort_line("int64")(code, keys, n)


# --- the first --------------------------------------------------------------------------------------------------------


@line_function("find_limit")
def find_limit(
    code: Code, dtype: str, x: Elements, step: I64, n: I64, k: I64, flip: I64, space: Elements, limit: Elements
) -> Bool:
    """By a sample, an element up to which there are likely a few more than k in the order; false where these would be
    most of all. space: memory for SAMPLED elements."""
    eighth = n // 8
    count = eighth.minimum(SAMPLED)
    with code.when(count < LEAST_SAMPLED):
        code.ret(Bool.of(False))
    distance, share = n // count * step, k * count // n
    rank = share + share // 4 + 8
    with code.when(rank * 4 > count * 3):
        code.ret(Bool.of(False))
    with code.count(0, count) as i:
        space[i] = x[i * distance]
    sort_line(dtype)(code, space, count)
    place = (flip == 0).choose(rank, count - 1 - rank)
    limit.value = space[place]
    return Bool.of(True)


def within(dtype: str, elements: Any, limit: Any, is_falling: bool) -> Bool:
    """A mask of the elements that are not beyond a limit."""
    if issubclass(NUMBERS[dtype], Real):
        relation = "fcmp uge" if is_falling else "fcmp ole"
    else:
        relation = f"icmp {'u' if dtype in WITHOUT_SIGN else 's'}{'ge' if is_falling else 'le'}"
    is_within: Bool = elements.compare(relation, limit)
    return is_within


@cache
def collect(name: str, dtype: str, is_falling: bool) -> Function[..., I64]:
    """The elements up to a limit, or their keys; how many there are."""
    element = NUMBERS[dtype]
    flip = I64.of(-1 if is_falling else 0)

    @line_function(f"collect_{name}_{'falling' if is_falling else 'rising'}")
    def write(code: Code, dtype: str, x: Elements, step: I64, n: I64, at_limit: Elements, bits: I64, out: Ptr) -> I64:
        count, limit = code.variable(I64.of(0)), at_limit.value

        def take(place: I64) -> None:
            value = x[place * step]
            entry: Value = value
            if name == "argtop":
                key = encoded(dtype, value).apply("xor", flip)
                exact = itemsize(dtype) < 8
                entry = (key << bits if exact else key & 0 - (1 << bits)) | place
            out.at(count.value, type(entry)).store(entry)
            count.value = count.value + within(dtype, value, limit, is_falling).to(I64, signed=False)

        whole = code.variable(I64.of(0))
        with code.when(step == 1):
            lines = vector(element, LANES)
            limits = limit.spread(LANES)
            whole.value = n & -LANES
            with code.count(0, whole.value, LANES) as first:
                elements = x.at(first).load(lines, align=itemsize(dtype))
                some = within(dtype, elements, limits, is_falling)._cast("bitcast", I16)
                with code.when(some != 0), code.count(first, first + LANES) as place:
                    take(place)
        with code.count(whole.value, n) as place:
            take(place)
        return count.value

    return write(dtype)


@cache
def first_of_line(name: str, dtype: str) -> Function[..., None]:
    """The first k, or their places; of the largest where `flip` is -1. space: memory for n elements of the result."""
    element, is_exact = NUMBERS[dtype], Bool.of(itemsize(dtype) < 8)

    @line_function(f"{name}_line")
    def write(
        code: Code, dtype: str, x: Elements, step: I64, n: I64, k: I64, flip: I64, result: Ptr, space: Ptr
    ) -> None:
        bits, limit = bits_of(code, n), code.local(element)
        count = code.variable(I64.of(0))
        with code.when(find_limit(dtype)(code, x, step, n, k, flip, space, limit)):
            with code.when(flip == 0):
                count.value = collect(name, dtype, False)(code, x, step, n, limit, bits, space)
            with code.otherwise():
                count.value = collect(name, dtype, True)(code, x, step, n, limit, bits, space)
        with code.when(count.value < k):
            count.value = n
            if name == "argtop":
                make_keys(dtype)(code, x, step, n, flip, I64.of(0), bits, is_exact, space)
            else:
                copy_line(dtype)(code, x, step, n, space)
        some = count.value
        if name == "top":
            sort_line(dtype)(code, space, some)
            with code.count(0, k) as i:
                place = (flip == 0).choose(i, some - 1 - i)
                result.at(i, element).store(space.at(place, element).load(element))
        else:
            sort_line("int64")(code, space, some)
            order_alike(dtype)(code, x, step, some, flip, bits, is_exact, space)
            COPY(code, result, space, k * 8, Bool.of(False))

    return write(dtype)


@line_function("copy_line")
def copy_line(code: Code, dtype: str, x: Elements, step: I64, n: I64, to: Elements) -> None:
    """Elements that stand that far apart, made contiguous."""
    with code.when(step == 1), code.when(x != to):
        COPY(code, to, x, n * itemsize(dtype), Bool.of(False))
    with code.when(step != 1), code.count(0, n) as i:
        to[i] = x[i * step]


# --- all lines of an array, shared by threads -------------------------------------------------------------------------
# Columns are taken some at a time, which are whole lines of the caches, and put in order as rows of a workspace. The
# order of the rows of a matrix is by their first elements, of equal ones by the second, and so on.


@line_function("lexorder_rows")
def lexorder_rows(code: Code, dtype: str, x: Elements, row: I64, column: I64, n: I64, m: I64, places: Indices) -> None:
    """Sorted by the first elements, what is equal there by the rest."""
    with code.when(m == 0):
        with code.count(0, n) as i:
            places[i] = i
        code.ret()
    argsort_line(dtype)(code, x, row, n, places)

    def element(place: I64) -> object:
        return x[places[place] * row]

    first = code.variable(I64.of(0))
    with code.loop() as runs:
        runs.leave.unless(first.value < n)
        begin, end = first.value, code.variable(first.value + 1)
        with code.loop() as run:
            run.leave.unless(end.value < n)
            run.leave.when(is_less(dtype, element(begin), element(end.value)))
            end.value = end.value + 1
        with code.when(end.value - begin > 1):
            sort_run(dtype)(code, x, row, column, end.value - begin, m, places.at(begin))
        first.value = end.value


@line_function("sort_run")
def sort_run(code: Code, dtype: str, x: Elements, row: I64, column: I64, n: I64, m: I64, places: Indices) -> None:
    """Places of rows sorted where they stand, by Shell's method."""

    def comes_before(i: I64, j: I64) -> Bool:
        return is_row_less(dtype)(code, x, row, column, m, i, j)

    insert_by_steps(code, places, n, comes_before)


@line_function("is_row_less")
def is_row_less(code: Code, dtype: str, x: Elements, row: I64, column: I64, m: I64, i: I64, j: I64) -> Bool:
    """Tell whether row i comes before row j; equal ones are in the order of places."""
    left, right = x.at(i * row), x.at(j * row)
    with code.count(1, m) as number:
        one, other = (each[number * column] for each in (left, right))
        with code.when(is_less(dtype, one, other)):
            code.ret(Bool.of(True))
        with code.when(is_less(dtype, other, one)):
            code.ret(Bool.of(False))
    return i < j


# --- batch ------------------------------------------------------------------------------------------------------------


COLUMNS = 16
"""The columns that are taken at a time."""
ELEMENT_WORK, FIXED_WORK = 20.0, 100.0
"""The cost of an element of a line, and of a line besides, in units of work (threads/settings.py)."""
ALONG_ARGUMENTS = ("count", "n", "across", "x", "outer", "step", "inner", "result", "space")
FIRST_ARGUMENTS = ("count", "n", "k", "x", "outer", "step", "wanted", "result", "space")
SEARCHED_ARGUMENTS = ("n", "count", "x", "step", "values", "along", "result")
SEARCH_WORK = 60.0
"""The cost of a search."""


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of the room's PROTOTYPES."""
    return [
        rows(name, FUNCTIONS[name][1]) if FUNCTIONS[name][0] in ROWS else lines(name, *FUNCTIONS[name])
        for name in sorted(names)
    ]


def rows(symbol: str, dtype: str) -> Function[..., I64]:
    """The function for the rows of a matrix."""

    def write(code: Code, n: I64, m: I64, x: Ptr, row: I64, column: I64, result: Ptr) -> I64:
        lexorder_rows(dtype)(code, x, row, column, n, m, result)
        return I64.of(0)

    params = {"n": I64, "m": I64, "x": Ptr, "row": I64, "column": I64, "result": Ptr}
    return Function(symbol, I64, params, write, "noinline optsize")


def lines(symbol: str, name: str, dtype: str) -> Function[..., I64]:
    """The function of an op: its lines, or groups of columns, are shared out."""
    names = ALONG_ARGUMENTS if name in ALONG else SEARCHED_ARGUMENTS if name in SEARCHED else FIRST_ARGUMENTS
    result_type = result_dtype(name, dtype)
    types = {"x": dtype, "values": dtype, "wanted": "int64", "result": result_type, "space": result_type}
    params = {each: elements(NUMBERS[types[each]]) if each in types else I64 for each in names}
    words = Words(params)
    write = _write_along if name in ALONG else _write_searched if name in SEARCHED else _write_first
    range_: Function[..., None] = Function(
        f"{name}_range_{dtype}",
        None,
        {"context": Ptr, "begin": I64, "end": I64},
        partial(write, name, dtype, words),
        "noinline",
        is_internal=True,
    )
    return Function(symbol, I64, params, partial(_share, words, range_), "noinline optsize")


def _groups(words: dict[str, Any]) -> I64:
    """In how many groups of columns each matrix is taken."""
    groups: I64 = (words["across"] + (COLUMNS - 1)) // COLUMNS
    return groups


def _share(words: Words, range_: Function[..., None], code: Code, *values: Any) -> I64:
    args = dict(zip(words.types, values, strict=True))
    context = words.write(code, args)
    work, tasks = args["n"].to(F64) * ELEMENT_WORK + FIXED_WORK, args["count"]
    if "across" in args:
        tasks = tasks * _groups(args)
        across = args["across"]
        work = work * across.minimum(COLUMNS).to(F64)
    elif "values" in args:
        work = F64.of(SEARCH_WORK)
    else:
        with code.when(args["k"] == 0):
            code.ret(I64.of(0))
    worth = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / work
    few = (worth < tasks.to(F64)).choose(worth, tasks.to(F64)).to(I64)
    share(code, range_.pointer(code), context, tasks, (few > 1).choose(few, 1), work * tasks.to(F64))
    return I64.of(0)


def _write_first(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    args = words.read(context)
    flip = (args["wanted"].value < 0).choose(I64.of(0), -1)
    n, k, line = args["n"], args["k"], first_of_line(name, dtype)
    with code.count(begin, end) as number:
        row = args["x"].at(number * args["outer"])
        result, space = args["result"].at(number * k), args["space"].at(number * n)
        line(code, row, args["step"], n, k, flip, result, space)


def _write_searched(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    """Some values at a time; the last of these searches may take values again that one before has taken."""
    args = words.read(context)
    element, (many, few) = NUMBERS[dtype], TOGETHER
    x, step, n, along = (args[each] for each in ("x", "step", "n", "along"))
    searches = {lanes: search(name.rpartition("_")[2], lanes)(dtype) for lanes in TOGETHER}

    with code.when(begin == end):
        code.ret()
    with code.when(end - begin < few):
        copies, ranks = code.local(element, few).numbers(element), code.local(I64, few).numbers(I64)
        with code.count(0, few) as i:
            value = args["values"][(begin + i.minimum(end - begin - 1)) * along]
            copies[i] = value
        searches[few](code, x, step, n, copies, I64.of(1), ranks)
        with code.count(begin, end) as i:
            args["result"][i] = ranks[i - begin]
        code.ret()
    whole = end - (end - begin) % many
    for lanes, first, last in ((many, begin, whole), (few, whole, end)):
        with code.count(first, last, lanes) as i:
            here = i.minimum(end - lanes)
            values, result = args["values"].at(here * along), args["result"].at(here)
            searches[lanes](code, x, step, n, values, along, result)


def _write_along(name: str, dtype: str, words: Words, code: Code, context: Ptr, begin: I64, end: I64) -> None:
    args = words.read(context)
    result_type, n, across, step = result_dtype(name, dtype), args["n"], args["across"], args["step"]
    groups = _groups(args)
    with code.count(begin, end) as task:
        number, first = task // groups, task % groups * COLUMNS
        result = args["result"].at(number * n * across + first)
        x = args["x"].at(number * args["outer"] + first * args["inner"])
        with code.when(across == 1):
            if name == "sort":
                copy_line(dtype)(code, x, step, n, result)
                sort_line(dtype)(code, result, n)
            else:
                argsort_line(dtype)(code, x, step, n, result)
        with code.otherwise():
            left = across - first
            width = left.minimum(COLUMNS)
            space = args["space"].at((number * across + first) * n)
            if name == "sort":
                transposed(dtype)(code, n, width, x, step, args["inner"], space, I64.of(1), n)
            with code.count(0, width) as column:
                line = space.at(column * n)
                if name == "sort":
                    sort_line(dtype)(code, line, n)
                else:
                    argsort_line(dtype)(code, x.at(column * args["inner"]), step, n, line)
            transposed(result_type)(code, n, width, space, I64.of(1), n, result, across, I64.of(1))


@line_function("transposed")
def transposed(
    code: Code, dtype: str, m: I64, n: I64, a: Elements, a_row: I64, a_column: I64, c: Elements, c_row: I64,
    c_column: I64,
) -> None:  # fmt: skip
    """A matrix copied, row by row."""
    with code.count(0, m) as i:
        source, target = a.at(i * a_row), c.at(i * c_row)
        with code.count(0, n) as j:
            target[j * c_column] = source[j * a_column]
