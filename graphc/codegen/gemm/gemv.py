"""Products of a matrix with a vector by rows or by columns, in pieces that threads share.

In: the suffix of a dtype (f64, f32, i64, i32). Out: internal functions of LLVM IR:

    dots     c = alpha a b + beta c, an inner product for each element of c, for any layout
    vector   y = alpha a x + beta y, for any layout

The matrix is read once, where it stands. Where its rows are contiguous each element of y is an inner
product; where its columns are, they are added to y. A reversed one is read forwards, its vector backwards.

A large product falls into pieces of y, and where y is short into parts of the sum too, whose results are added up in
order. Both follow from the sizes and the layout alone, so that the bits of a result are the same for every number of
threads. A vector with a step is copied where it is read along rows, and a y with a step is computed beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, TypeAlias

from graphc.codegen.gemm import ARGUMENTS, tiles
from graphc.codegen.llvm.builder import Code, Variable
from graphc.codegen.llvm.functions import Function, Global, external, poison
from graphc.codegen.llvm.target import has_avx512
from graphc.codegen.llvm.typed import F64, I8, I32, I64, NULL, Bool, Elements, NoAlias, Ptr, Value, elements, vector
from graphc.startup.record import record, replace

# --- a few rows or columns --------------------------------------------------------------------------------------------
# A few rows or columns of a matrix read at a time, at the speed of memory.
#
# In: the suffix of a dtype (f64, f32, i64, i32), and how many. Out: internal functions of LLVM IR:
#
#     dots_of_rows_<count>_<t>(n, a, a_row, x)                    the inner products of <count> contiguous rows with x
#     add_columns_<count>_<t>(m, alpha, x0, ..., a, a_col, y)     y plus alpha times the sum of <count> contiguous
#                                                                 columns, each times a number
#     add_short_<count>_<t>(m, n, alpha, a, a_col, x, x_step, y)  y plus alpha a x, whose columns fill <count> registers
#
# What is read next is asked for ahead: with several streams that is a tenth to a quarter faster than what the
# processor sees for itself. An inner product has the same bits whatever the count.

SUMS = {False: 2, True: 4}
"""Registers with partial sums of a row: for four rows half of those that there are, without AVX-512 and with it."""
AHEAD = 1024
"""Bytes ahead of what is read that are asked for. Past the end of a matrix that does nothing."""
LINE_BYTES = 64
SHORT_SUMS = 8
"""Registers with sums of columns that are short."""


prefetch = external("llvm.prefetch.p0", None, Ptr, I32, I32, I32)
most = external("llvm.smax.i64", I64, I64, I64)


def rows(count: int, suffix: str) -> Function[..., Any]:
    """dots_of_rows: 1 or 4 of them, as a vector. Each element of x is loaded once for all."""
    scalar, lanes, parts = tiles.ARITHMETIC[suffix], tiles.lanes_of(suffix), SUMS[has_avx512()]
    register, width = vector(scalar.element, lanes), lanes * parts

    def write(code: Code, n: I64, a: NoAlias, a_row: I64, x: NoAlias) -> Any:
        whole, vectors = n - n % width, n - n % lanes
        streams = [a.at(a_row * row) for row in range(count)]
        totals = [code.variable(register.of(0)) for _ in streams]
        with code.when(whole > 0):
            sums = [[code.variable(register.of(0)) for _ in streams] for _ in range(parts)]
            with code.count(0, whole, width, sure=True) as j:
                for stream in streams:
                    ask(code, stream.at(j), width * scalar.align)
                for part, several in enumerate(sums):
                    add_rows(code, streams, x, j.apply("add nsw", part * lanes), several, tiles.Columns(suffix, lanes))
            for total, *several in zip(totals, *sums, strict=True):
                total.value = join([part.value for part in several], suffix)
        with code.count(whole, vectors, lanes) as q:
            add_rows(code, streams, x, q, totals, tiles.Columns(suffix, lanes))
        with code.count(vectors, n, lanes) as r:
            add_rows(code, streams, x, r, totals, within(code, n, r, suffix))
        return add_lanes([total.value for total in totals], suffix)

    noalias = elements(scalar.element, "noalias")
    params: dict[str, type[Value]] = {"n": I64, "a": noalias, "a_row": I64, "x": noalias}
    return Function(
        f"dots_of_rows_{count}_{suffix}", vector(scalar.element, count), params, write, "noinline", is_internal=True
    )


def add_rows(
    code: Code, streams: Sequence[Elements], x: Elements, place: I64, sums: Sequence[Variable[Any]],
    columns: tiles.Columns,
) -> None:  # fmt: skip
    """Adds, for each row, a vector of it at a place times that of x to a sum."""
    scalar = columns.scalar
    factor = columns.read(code, x.at(place))
    for stream, total in zip(streams, sums, strict=True):
        product = columns.read(code, stream.at(place)).apply(scalar.times, factor)
        total.value = total.value.apply(scalar.plus, product)


def join(vectors: Sequence[Any], suffix: str) -> Any:
    """The sum of vectors, in order."""
    total, *others = vectors
    for each in others:
        total = total.apply(tiles.ARITHMETIC[suffix].join, each)
    return total


def columns(count: int, suffix: str) -> Function[..., None]:
    """add_columns: any number of them."""
    scalar, lanes = tiles.ARITHMETIC[suffix], tiles.lanes_of(suffix)
    numbers = [f"x{column}" for column in range(count)]

    def write(code: Code, m: I64, alpha: Any, *rest: Any) -> None:
        *numbers, a, a_col, y = rest
        whole = m - m % lanes
        streams = [a.at(a_col * column) for column in range(count)]
        factor, *factors = [number.spread(lanes) for number in (alpha, *numbers)]
        with code.count(0, whole, lanes) as i:
            some, at = tiles.Columns(suffix, lanes), y.at(i)
            old, vectors = some.read(code, at), []
            for stream in streams:
                ask(code, here := stream.at(i))
                vectors.append(some.read(code, here))
            some.write(code, add_products(old, vectors, factors, factor, suffix), at)
        with code.count(whole, m, lanes) as r:
            some, at = within(code, m, r, suffix), y.at(r)
            old = some.read(code, at)
            vectors = [some.read(code, stream.at(r)) for stream in streams]
            some.write(code, add_products(old, vectors, factors, factor, suffix), at)

    noalias = elements(scalar.element, "noalias")
    params: dict[str, type[Value]] = {"m": I64, **dict.fromkeys(("alpha", *numbers), scalar.element)}
    params |= {"a": noalias, "a_col": I64, "y": noalias}
    return Function(f"add_columns_{count}_{suffix}", None, params, write, "noinline", is_internal=True)


def add_products(start: Any, vectors: Sequence[Any], factors: Sequence[Any], alpha: Any, suffix: str) -> Any:
    """A vector plus alpha times the sum of vectors, each times a number. The products come first, since what they are
    added to was just written; alpha comes last, since a number times it may be more or less than the dtype holds."""
    scalar = tiles.ARITHMETIC[suffix]
    total = vectors[0].apply(scalar.times, factors[0])
    for each, factor in zip(vectors[1:], factors[1:], strict=True):
        total = total.apply(scalar.plus, each.apply(scalar.times, factor))
    return start.apply(scalar.join, total.apply(scalar.scale, alpha))


def short(vectors: int, suffix: str) -> Function[..., None]:
    """add_short: m is at most what `vectors` registers hold. y stays there, as several sums, while columns go by."""
    scalar, lanes = tiles.ARITHMETIC[suffix], tiles.lanes_of(suffix)
    register, count = vector(scalar.element, lanes), SHORT_SUMS // vectors
    noalias = elements(scalar.element, "noalias")

    def write(
        code: Code, m: I64, n: I64, alpha: Any, a: NoAlias, a_col: I64, x: NoAlias, x_step: I64, y: NoAlias
    ) -> None:
        parts = [within(code, m, I64.of(place * lanes), suffix) for place in range(vectors)]
        whole = n - n % count
        sums = [[code.variable(register.of(0)) for _ in parts] for _ in range(count)]

        def add(column: I64, totals: Sequence[Variable[Any]]) -> None:
            factor = x[column * x_step].spread(lanes)
            for place, (part, total) in enumerate(zip(parts, totals, strict=True)):
                here = part.read(code, a.at(column * a_col + place * lanes))
                total.value = total.value.apply(scalar.plus, here.apply(scalar.times, factor))

        with code.count(0, whole, count) as j:
            for place, totals in enumerate(sums):
                add(j.apply("add nsw", place), totals)
        with code.count(whole, n) as j:
            add(j, sums[0])
        factor = alpha.spread(lanes)
        for place, part in enumerate(parts):
            at = y.at(place * lanes)
            total = join([totals[place].value for totals in sums], suffix)
            part.write(code, part.read(code, at).apply(scalar.join, total.apply(scalar.scale, factor)), at)

    params: dict[str, type[Value]] = {"m": I64, "n": I64, "alpha": scalar.element, "a": noalias, "a_col": I64}
    params |= {"x": noalias, "x_step": I64, "y": noalias}
    return Function(f"add_short_{vectors}_{suffix}", None, params, write, "noinline", is_internal=True)


def ask(code: Code, at: Ptr, length: int = LINE_BYTES) -> None:
    """Asks for as many bytes as an iteration reads there, some iterations ahead."""
    for distance in range(0, length, LINE_BYTES):
        prefetch(code, at.at(AHEAD + distance, I8), I32.of(0), I32.of(3), I32.of(1))


def within(code: Code, size: I64, place: I64, suffix: str) -> tiles.Columns:
    """Return the columns from a place on that are within the size."""
    lanes = tiles.lanes_of(suffix)
    return tiles.Columns(suffix, lanes, tiles.first_lanes(most(code, size - place, I64.of(0)).to(I32), lanes))


def add_lanes(vectors: Sequence[Any], suffix: str) -> Any:
    """The sums of the lanes of each of 1 or 4 vectors, as a vector. Of each they are added in the same order:
    neighbours, then neighbouring pairs, then halves."""
    scalar, size, left = tiles.ARITHMETIC[suffix], tiles.lanes_of(suffix), [*vectors]

    def add(first: Any, other: Any, low: Sequence[int], high: Sequence[int]) -> Any:
        return first.pick(other, low).apply(scalar.join, first.pick(other, high))

    def alone(one: Any) -> Any:
        return type(one)(None, "poison")

    for distance in (1, 2):
        if len(vectors) > 1:
            # those of two vectors beside each other, so that the sums of all come to be neighbours
            places = [(lane & ~distance) + (size if lane & distance else 0) for lane in range(size)]
            pairs = zip(left[::2], left[1::2], strict=True)
            left = [add(first, other, places, [place + distance for place in places]) for first, other in pairs]
        else:
            left = [add(left[0], alone(left[0]), range(0, size, 2), range(1, size, 2))]
            size //= 2
    while size > len(vectors):
        size //= 2
        left = [add(left[0], alone(left[0]), range(size), range(size, 2 * size))]
    return left[0]


# --- gemv -------------------------------------------------------------------------------------------------------------


ROWS = 4
"""Rows of a matrix whose inner products with a vector are computed at a time."""
COLUMNS = (8, 4, 1)
"""Columns of a matrix that are added to a vector at a time: the larger numbers while they last."""
SHORT = (1, 2)
"""Registers that the short columns fill which go by other loops."""
SMALL = 2**16
"""Elements of a matrix up to which a product is one piece."""
PIECE = 2**16
"""Elements of a piece, about: some microseconds."""
MOST_PIECES = 64
TALL = 2**13
"""Elements of y in a piece by columns at most: they stay in the second cache, and a column is read on for long."""
MOST_PARTIAL = 2**17
"""Numbers that the parts of a sum may give between them."""
PART = 128
"""The length of a part, and the height of a piece by columns, are multiples of this."""
BYTE_WORK = 0.25
"""The cost of a byte of a matrix, in units of work (threads/settings.py)."""

PIECES = "m n alpha a a_row a_col x x_step beta y y_part height pieces length".split()
"""The words that threads read of a product. A piece has `height` elements of y, a part `length` terms of their sums.
Each part has `pieces` pieces; its results begin `y_part` elements behind those of the part before."""

Element: TypeAlias = Any
"""A number of the dtype that a function is made for."""

set_memory = external("llvm.memset.p0.i64", None, Ptr, I8, I64, Bool)
malloc = external("malloc", Ptr, I64)
free = external("free", None, Ptr)


@record(eq=False)
class VectorProduct:
    """The operands of a product with a vector: y = alpha a x + beta y, of m elements, each a sum of n terms. A function
    is told what it needs of that; `size` is m n, `by_rows` whether the rows of a are contiguous."""

    m: Any
    n: Any
    alpha: Any
    a: Any
    a_row: Any
    a_col: Any
    x: Any
    x_step: Any
    beta: Any
    y: Any
    y_step: Any
    size: Any = None
    by_rows: Any = None

    def call(self, code: Code, function: Function[..., Any]) -> Any:
        """Calls a function that is told of the product."""
        return function(code, *(getattr(self, name) for name in function.params))


def vector_function(
    name: str,
    words: str = ARGUMENTS["gemv"],
    attributes: str = "noinline optsize",
    returns: type[Value] | None = None,
    *,
    is_internal: bool = True,
) -> Callable[[Callable[[Code, str, VectorProduct], Any]], Callable[[str], Function[..., Any]]]:
    """Makes functions of a product with a vector, one for each suffix of a dtype, that are told these words of it;
    distances that are left out are 1."""

    def make(body: Callable[[Code, str, VectorProduct], Any]) -> Callable[[str], Function[..., Any]]:
        @cache
        @wraps(body)
        def of(suffix: str) -> Function[..., Any]:
            element = tiles.ARITHMETIC[suffix].element
            types = dict.fromkeys(("alpha", "beta"), element) | dict.fromkeys("axy", elements(element, "noalias"))
            params = {word: (types | {"size": F64, "by_rows": Bool}).get(word, I64) for word in words.split()}

            def write(code: Code, *values: Any) -> Any:
                word = dict.fromkeys(("a_row", "a_col", "x_step", "y_step"), I64.of(1))
                return body(code, suffix, VectorProduct(**word | dict(zip(params, values, strict=True))))

            return Function(f"{name}_{suffix}", returns, params, write, attributes, is_internal=is_internal)

        return of

    return make


@tiles.element_function("dot", "noinline")
def dot(code: Code, suffix: str, k: I64, a: NoAlias, a_step: I64, b: NoAlias, b_step: I64) -> Element:
    """One inner product."""
    scalar = tiles.ARITHMETIC[suffix]
    with code.when((a_step == 1) & (b_step == 1)):
        code.ret(rows(1, suffix)(code, k, a, I64.of(0), b).lane(0))
    total = code.variable(scalar.element.of(0))
    with code.count(0, k) as p:
        left, right = (at[p * step] for at, step in ((a, a_step), (b, b_step)))
        total.value = total.value.apply(scalar.plus, left.apply(scalar.times, right))
    return total.value


@tiles.product_function("dots")
def dots(code: Code, suffix: str, p: tiles.Product) -> None:
    """The product of any layout, an inner product for each element of c."""
    scalar = tiles.ARITHMETIC[suffix]
    is_fresh = p.beta.compare(scalar.equal, 0)
    with code.count(0, p.m) as i:
        a, c = p.a.part(i, 0), p.c.part(i, 0)
        with code.count(0, p.n) as j:
            b = p.b.part(0, j)
            total = dot(suffix)(code, p.k, a.at, a.column, b.at, b.row)
            value, at = code.variable(total.apply(scalar.scale, p.alpha)), c.part(0, j).at
            with code.when(~is_fresh):
                kept = at.value.apply(scalar.scale, p.beta)
                value.value = value.value.apply(scalar.join, kept)
            at.store(value.value)


def by_dots(code: Code, suffix: str, p: VectorProduct) -> None:
    """A product with a vector of any layout, an inner product for each element of y."""
    one, none = I64.of(1), I64.of(0)
    x, y = (p.x, p.x_step, none), (p.y, p.y_step, none)
    dots(suffix)(code, p.m, one, p.n, p.alpha, p.a, p.a_row, p.a_col, *x, p.beta, *y)


@vector_function("row_vector", "m n alpha a a_row x beta y")
def row_vector(code: Code, suffix: str, p: VectorProduct) -> None:
    """y = alpha a x + beta y where the rows of a, x and y are contiguous."""
    scalar = tiles.ARITHMETIC[suffix]
    register = vector(scalar.element, ROWS)
    is_fresh = p.beta.compare(scalar.equal, 0)
    factor, keep = p.alpha.spread(ROWS), p.beta.spread(ROWS)
    i, end = code.variable(I64.of(0)), p.m - (ROWS - 1)
    with code.loop() as iteration:
        iteration.leave.unless(i.value < end)
        at = p.y.at(i.value)
        sums = rows(ROWS, suffix)(code, p.n, p.a.at(i.value * p.a_row), p.a_row, p.x)
        value = code.variable(sums.apply(scalar.scale, factor))
        with code.when(~is_fresh):
            kept = at.load(register, align=scalar.align).apply(scalar.scale, keep)
            value.value = value.value.apply(scalar.join, kept)
        at.store(value.value, align=scalar.align)
        i.value = i.value.apply("add nsw", ROWS)
    a, y = p.a.at(i.value * p.a_row), p.y.at(i.value)
    by_dots(code, suffix, replace(p, m=p.m - i.value, a=a, y=y))


@tiles.element_function("begin", "noinline")
def begin(code: Code, suffix: str, m: I64, beta: Element, y: NoAlias) -> None:
    """y = beta y for a contiguous y, whose old values do not count where beta is 0."""
    scalar, lanes = tiles.ARITHMETIC[suffix], tiles.lanes_of(suffix)
    register = vector(scalar.element, lanes)
    with code.when(beta.compare(scalar.equal, 0)):
        set_memory(code, y, I8.of(0), m * scalar.align, Bool.of(False))
        code.ret()
    with code.when(beta.compare(scalar.equal, 1)):
        code.ret()
    whole, keep = m - m % lanes, beta.spread(lanes)
    with code.count(0, whole, lanes) as i:
        at = y.at(i)
        at.store(at.load(register, align=scalar.align).apply(scalar.scale, keep), align=scalar.align)
    with code.count(whole, m) as i:
        at = y.at(i)
        at.store(at.value.apply(scalar.scale, beta))


@vector_function("column_vector", "m n alpha a a_col x x_step beta y")
def column_vector(code: Code, suffix: str, p: VectorProduct) -> None:
    """y = alpha a x + beta y where the columns of a, and y, are contiguous: some columns at a time, the larger numbers
    first."""
    lanes = tiles.lanes_of(suffix)
    begin(suffix)(code, p.m, p.beta, p.y)
    for registers in SHORT:
        with code.when(p.m <= registers * lanes):
            short(registers, suffix)(code, p.m, p.n, p.alpha, p.a, p.a_col, p.x, p.x_step, p.y)
            code.ret()
    j = code.variable(I64.of(0))
    for count in COLUMNS:
        end = p.n - (count - 1)
        with code.loop() as iteration:
            iteration.leave.unless(j.value < end)
            places = [j.value.apply("add nsw", place) * p.x_step for place in range(count)]
            numbers = [p.x[place] for place in places]
            columns(count, suffix)(code, p.m, p.alpha, *numbers, p.a.at(j.value * p.a_col), p.a_col, p.y)
            j.value = j.value.apply("add nsw", count)


@vector_function("piece", "m n alpha a a_row a_col x x_step beta y")
def piece(code: Code, suffix: str, p: VectorProduct) -> None:
    """y = alpha a x + beta y for a contiguous y, and an x that is contiguous or not read along rows."""
    with code.when((p.a_col == 1) & (p.x_step == 1)):
        p.call(code, row_vector(suffix))
        code.ret()
    with code.when(p.a_row == 1):
        p.call(code, column_vector(suffix))
        code.ret()
    by_dots(code, suffix, p)


def context_of(suffix: str) -> tiles.Words:
    element = tiles.ARITHMETIC[suffix].element
    types = dict.fromkeys(("alpha", "beta"), element) | dict.fromkeys("axy", elements(element))
    return tiles.Words({name: types.get(name, I64) for name in PIECES})


@tiles.element_function("pieces", "noinline optsize")
def pieces_of(code: Code, suffix: str, context: Ptr, begin: I64, end: I64) -> None:
    """The pieces from begin to end, those of the first part first."""
    p = context_of(suffix).read(context)
    pieces, height, length = p.pop("pieces"), p.pop("height"), p.pop("length")
    y_part, whole = p.pop("y_part"), VectorProduct(**p, y_step=None)
    with code.count(begin, end) as task:
        part = task // pieces
        i, j = task % pieces * height, part * length
        i_left, j_left = whole.m - i, whole.n - j
        m, n = i_left.minimum(height), j_left.minimum(length)
        a, x = whole.a.at(i * whole.a_row + j * whole.a_col), whole.x.at(j * whole.x_step)
        here = replace(whole, m=m, n=n, a=a, x=x, y=whole.y.at(part * y_part + i))
        here.call(code, piece(suffix))


@tiles.element_function("combine", "noinline optsize")
def combine(
    code: Code, suffix: str, m: I64, parts: I64, partial: NoAlias, beta: Element, y: NoAlias, y_step: I64
) -> None:
    """y = beta y + the results of parts that follow each other."""
    scalar = tiles.ARITHMETIC[suffix]
    ones = Global(f"one_{suffix}", f"internal constant {scalar.element.of(1)}")
    number, unit, none = scalar.element.of(1), I64.of(1), I64.of(0)
    p = VectorProduct(m, parts, number, partial, unit, m, ones(code), none, beta, y, y_step)
    with code.when(y_step == 1):
        p.call(code, column_vector(suffix))
        code.ret()
    second = replace(p, a=partial.at(m), n=parts - 1, beta=number, y=partial)
    second.call(code, column_vector(suffix))
    by_dots(code, suffix, replace(p, n=unit, a_col=none))


def whole(number: I64, unit: int) -> I64:
    """The next multiple of a power of two."""
    return (number + (unit - 1)) & -unit


@vector_function("piecewise", "m n size alpha a a_row a_col by_rows x x_step beta y y_step")
def piecewise(code: Code, suffix: str, p: VectorProduct) -> None:
    """y = alpha a x + beta y without BLAS, m > 0: in pieces, with memory for what is not used in place."""
    scalar = tiles.ARITHMETIC[suffix]
    m, n, by_rows = p.m, p.n, p.by_rows
    exact = p.size / float(PIECE)
    most = (exact > float(MOST_PIECES)).choose(F64.of(MOST_PIECES), exact).to(I64)
    wanted = (most < 1).choose(I64.of(1), most)
    # Whole groups of rows; as few pieces by columns as there can be; one part where neither is contiguous.
    by_columns = (p.a_row == 1) & ~by_rows
    tall = whole(tiles.panels(m, tiles.panels(m, TALL)), PART)
    height = by_columns.choose(tall, whole(tiles.panels(m, wanted), ROWS))
    pieces = tiles.panels(m, height)
    parts_exact, parts_room = wanted // pieces, MOST_PARTIAL // m
    parts_most = (parts_exact > parts_room).choose(parts_room, parts_exact)
    is_divided = (by_rows | by_columns) & (parts_most > 1)
    length_whole = whole(tiles.panels(n, is_divided.choose(parts_most, 1)), PART)
    length = (n == 0).choose(I64.of(PART), length_whole)
    parts = (n == 0).choose(I64.of(1), tiles.panels(n, length))
    # Memory for the parts, and for x.
    is_beside, is_copied = (p.y_step != 1) | (parts > 1), by_rows & (p.x_step != 1)
    partial_numbers = is_beside.choose(parts * m, 0)
    x_numbers = is_copied.choose(n, 0)
    numbers = partial_numbers + x_numbers
    partial = code.variable(NULL)
    with code.when(numbers > 0):
        room = numbers * scalar.align
        partial.value = malloc(code, room)
        if code.poison:
            poison(code, partial.value, room)
        with code.when(partial.value == NULL):
            by_dots(code, suffix, p)
            code.ret()
    x_copy = partial.value.numbers(scalar.element).at(partial_numbers)
    with code.count(0, x_numbers) as j:
        x_copy[j] = p.x[j * p.x_step]
    fields = {
        "x": is_copied.choose(x_copy, p.x),
        "x_step": is_copied.choose(I64.of(1), p.x_step),
        "y": is_beside.choose(partial.value, p.y),
        "y_part": is_beside.choose(m, 0),
        "beta": is_beside.choose(scalar.element.of(0), p.beta),
        **{name: getattr(p, name) for name in ("m", "n", "alpha", "a", "a_row", "a_col")},
        "height": height,
        "pieces": pieces,
        "length": length,
    }
    context = context_of(suffix).write(code, fields)
    work = p.size * (scalar.align * BYTE_WORK)
    tiles.share(code, pieces_of(suffix).pointer(code), context, pieces * parts, I64.of(1), work)
    with code.when(is_beside):
        combine(suffix)(code, m, parts, partial.value, p.beta, p.y, p.y_step)
    free(code, partial.value)


@vector_function("vector", attributes="alwaysinline")
def vector_product(code: Code, suffix: str, p: VectorProduct) -> None:
    """y = alpha a x + beta y without BLAS, m > 0."""
    # Rows and columns that are contiguous backwards, from their other ends.
    is_back, is_up = p.a_col == -1, p.a_row == -1
    column, row = is_back.choose(p.n - 1, 0), is_up.choose(p.m - 1, 0)
    a = p.a.at(row * p.a_row + column * p.a_col)
    x, y = p.x.at(column * p.x_step), p.y.at(row * p.y_step)
    one = I64.of(1)
    # Steps between no two elements do not count.
    a_row = (p.m == 1).choose(I64.of(0), is_up.choose(one, p.a_row))
    a_col = (p.n <= 1).choose(I64.of(0), is_back.choose(one, p.a_col))
    x_step = (p.n <= 1).choose(one, is_back.choose(0 - p.x_step, p.x_step))
    y_step = (p.m == 1).choose(one, is_up.choose(0 - p.y_step, p.y_step))
    by_rows = a_col == 1
    is_fit = ((x_step == 1) | ~by_rows) & (y_step == 1)
    size = p.m.to(F64) * p.n.to(F64)
    product = VectorProduct(p.m, p.n, p.alpha, a, a_row, a_col, x, x_step, p.beta, y, y_step, size, by_rows)
    with code.when(is_fit & (size <= float(SMALL))):
        product.call(code, piece(suffix))
        code.ret()
    product.call(code, piecewise(suffix))
