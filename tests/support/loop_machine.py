"""A machine for programs of loops, to run them between passes: slow, small, and it misses nothing.

In: functions of loops, and the contents of their buffers. Out: what they leave in them.

Statements are written as Python and run by CPython; every buffer is a `Memory` that knows which of its elements were
written. Errors are: reading an element that was not, or one outside of a buffer; storing a number of another dtype; and
two chunks of a launch, or two iterations of a loop that says that they are independent, that touch one element which
either writes. Chunks are short, and run from the last to the first; so do independent iterations where numbers are
exact.

Numbers are NumPy's, whose bits tell whether a pass kept every operation and their order; or `Exact`: floats are then
integers modulo a prime, where sums in any order are equal, casts between float dtypes change nothing, nothing is
rounded away, and functions that are no arithmetic are polynomials that nobody would compute by accident. Two programs
that differ in more than the order of additions differ there too (Schwartz 1980), whatever is rounded where.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import product as cartesian
from types import CodeType
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES, is_float
from graphc.codegen.call.callback import CALLBACK, SAFEPOINT_CALLS as QUESTIONS, answer_no, split_sizes
from graphc.codegen.fourier import FORMS as TRANSFORMS
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.lapack import FUNCTIONS as FACTORISATIONS, arguments as arguments_of
from graphc.codegen.routines import family_of, routine_prototypes
from graphc.codegen.sort import ALONG, FIRST, FUNCTIONS as ORDERS, ROWS, SEARCHED
from graphc.ir.node import Node
from graphc.loopir.ir import (
    CONSTANTS,
    Apply,
    Break,
    Check,
    Const,
    Expr,
    Function,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Note,
    Pointer,
    Set,
    Stmt,
    Store,
    Var,
)
from graphc.loopir.operators import DIV
from graphc.loopir.syntax import const_text
from graphc.ops.linalg.routine import ROUTINES, Routine
from graphc.ops.lines import real_transformed, transformed, values_transformed

PRIME = 2**61 - 1
CHUNK = 2
"""Iterations of a chunk."""


class Fault(AssertionError):
    """A program touches memory as it must not."""


class Exact:
    """A float as an integer modulo PRIME."""

    __slots__ = ("residue",)

    def __init__(self, residue: int) -> None:
        self.residue = residue % PRIME

    def __add__(self, other: Any) -> Exact:
        return Exact(self.residue + residue(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Exact:
        return Exact(self.residue - residue(other))

    def __rsub__(self, other: Any) -> Exact:
        return Exact(residue(other) - self.residue)

    def __mul__(self, other: Any) -> Exact:
        return Exact(self.residue * residue(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Exact:
        return Exact(self.residue * inverse(residue(other)))

    def __rtruediv__(self, other: Any) -> Exact:
        return Exact(residue(other) * inverse(self.residue))

    def __pow__(self, other: Any) -> Exact:
        return mixed("**", self, other)

    def __rpow__(self, other: Any) -> Exact:
        return mixed("**", other, self)

    def __mod__(self, other: Any) -> Exact:
        return mixed("%", self, other)

    def __floordiv__(self, other: Any) -> Exact:
        return mixed("//", self, other)

    def __neg__(self) -> Exact:
        return Exact(-self.residue)

    def __eq__(self, other: object) -> Any:
        return np.bool_(self.residue == residue(other))

    def __ne__(self, other: object) -> Any:
        return np.bool_(self.residue != residue(other))

    def __lt__(self, other: Any) -> Any:
        return np.bool_(self.residue < residue(other))

    def __le__(self, other: Any) -> Any:
        return np.bool_(self.residue <= residue(other))

    def __gt__(self, other: Any) -> Any:
        return np.bool_(self.residue > residue(other))

    def __ge__(self, other: Any) -> Any:
        return np.bool_(self.residue >= residue(other))

    def __hash__(self) -> int:
        return self.residue

    def __bool__(self) -> bool:
        return True  # where a source divides, it asks whether the divisor is 0: here it may be

    def __repr__(self) -> str:
        return f"Exact({self.residue})"


def residue(value: Any) -> int:
    """A number modulo PRIME. The infinities are the largest and the least, so that extremes may begin with them."""
    if isinstance(value, Exact):
        return value.residue
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return 1234567 if np.isnan(value) else PRIME - 1 if value > 0 else 0
        fraction = Fraction(float(value))
        return fraction.numerator * pow(fraction.denominator, -1, PRIME) % PRIME
    return int(value) % PRIME


def inverse(number: int) -> int:
    return pow(number, -1, PRIME) if number else 98765432123


def mixed(name: str, *values: Any) -> Exact:
    """A function of this name that has nothing to do with the one that is meant, but for being a function."""
    total = zlib.crc32(name.encode())
    for place, value in enumerate(values, 2):
        total = (total + place * 1000003 * residue(value)) % PRIME
    return Exact(pow(total, 5, PRIME))


# The words of the source ----------------------------------------------------------------------------------------------

SUMS = ("accumulate", "accumulate_in_order")
LEAST = ("minimum", "fmin", "accumulate_minimum", "accumulate_lowest")
MOST = ("maximum", "fmax", "accumulate_maximum", "accumulate_highest")


def exact_word(name: str) -> Callable[..., Any]:
    """What a word of the prelude means where floats are `Exact`; of integers and bools it means what it does."""

    def call(*args: Any) -> Any:
        if name in ("float32", "float64"):
            return Exact(residue(args[0]))
        if name == "select":
            has_floats = any(isinstance(arg, Exact | float) for arg in args[1:])
            return Exact(residue(args[1] if args[0] else args[2])) if has_floats else PRELUDE[name](*args)
        if not any(isinstance(arg, Exact | float | np.floating) for arg in args):
            return PRELUDE[name](*args)
        if name in DTYPES:
            return np.dtype(name).type(residue(args[0]) % 5)
        if name == "bool_":
            return np.bool_(residue(args[0]) != 0)
        return of_floats(name, [Exact(residue(arg)) for arg in args])

    return call


def of_floats(name: str, args: Sequence[Exact]) -> Any:
    if name in SUMS:
        return args[0] + args[1]
    if name == "accumulate_product":
        return args[0] * args[1]
    if name in LEAST or name in MOST:
        choose = min if name in LEAST else max
        return Exact(choose(arg.residue for arg in args))
    match name:
        case "sum_error":
            return Exact(0)
        case "add_error":
            return args[0] + args[1]
        case "isfinite":
            return np.bool_(True)
        case "isnan" | "isinf":
            return np.bool_(False)
        case "signbit":
            return np.bool_(args[0].residue & 1)
        case "logical_and" | "logical_or" | "logical_xor" | "logical_not":
            return PRELUDE[name](*[np.bool_(arg.residue != 0) for arg in args])
    return mixed(name, *args)


EXACT_WORDS = {name: exact_word(name) for name in PRELUDE}


# Memory ---------------------------------------------------------------------------------------------------------------


class Memory:
    """A buffer, or what begins at one of its elements. `limit`: how many elements there are, None where any may be
    written. `cells`: those that were. `touched`: by which chunk of a launch, and whether one has written."""

    __slots__ = ("cells", "dtype", "exact", "filled", "launch", "limit", "name", "only_read", "start", "touched")

    def __init__(self, name: str, dtype: str, launch: Launches, exact: bool, limit: int | None = None) -> None:
        self.name, self.dtype, self.launch, self.limit = name, dtype, launch, limit
        self.exact, self.start = exact and is_float(dtype), 0
        self.cells: dict[int, Any] = {}
        self.touched: dict[int, tuple[int, bool]] = {}
        self.filled = self.only_read = False
        launch.memories.append(self)

    def at(self, place: Any, filled: bool = False, only_read: bool = False) -> Memory:
        """What begins at an element; `filled` is not read, `only_read` is not written."""
        other = object.__new__(Memory)
        for slot in Memory.__slots__:
            setattr(other, slot, getattr(self, slot))
        other.start, other.filled, other.only_read = self.start + int(place), filled, only_read
        return other

    def place(self, index: Any, writes: bool) -> int:
        place = self.start + int(index)
        if place < 0 or (self.limit is not None and place >= self.limit):
            raise Fault(f"{self.name}[{place}] is outside of its {self.limit} elements")
        if self.launch.chunk:
            chunk, wrote = self.touched.get(place, (self.launch.chunk, writes))
            if chunk != self.launch.chunk and (wrote or writes):
                raise Fault(f"{self.name}[{place}] is touched by two chunks")
            self.touched[place] = (self.launch.chunk, wrote or writes) if chunk == self.launch.chunk else (-1, False)
        for loop in self.launch.loops:
            loop.touch(self, place, writes)
        return place

    def __getitem__(self, index: Any) -> Any:
        place = self.place(index, writes=False)
        if self.filled:
            raise Fault(f"{self.name}[{place}] is read where it is to be filled")
        if place not in self.cells:
            raise Fault(f"{self.name}[{place}] is read, and was never written")
        return self.cells[place]

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self.place(index, writes=True)
        if self.only_read:
            raise Fault(f"{self.name}[{place}] is written where it is to be read")
        if isinstance(value, np.generic) and value.dtype != self.dtype:
            raise Fault(f"{self.name}[{place}] of {self.dtype} is to hold a {value.dtype}")
        self.cells[place] = Exact(residue(value)) if self.exact else np.dtype(self.dtype).type(value)

    def fill(self, values: Iterable[Any]) -> None:
        for place, value in enumerate(values):
            self.cells[place] = Exact(residue(value)) if self.exact else value


class Iterations:
    """A loop over independent iterations while it runs: the number of the one that runs, and which of them have touched
    what, and whether one has written. `conflicts`: what they may touch all the same."""

    def __init__(self, conflicts: Iterable[Memory]) -> None:
        self.number = 0
        self.conflicts = {id(memory.touched) for memory in conflicts}
        self.touched: dict[tuple[int, int], tuple[int | None, bool]] = {}

    def touch(self, memory: Memory, place: int, writes: bool) -> None:
        key = id(memory.touched), place
        number, wrote = self.touched.get(key, (self.number, writes))
        if number != self.number and (wrote or writes) and key[0] not in self.conflicts:
            raise Fault(f"{memory.name}[{place}] is touched by two iterations")
        self.touched[key] = (number if number == self.number else None, wrote or writes)


class Launches:
    """Which chunk of a launch runs: 0 outside of launches, where what was touched is forgotten; and the loops over
    independent iterations that run."""

    def __init__(self, exact: bool = False) -> None:
        self.memories: list[Memory] = []
        self.chunk = 0
        self.exact = exact
        self.loops: list[Iterations] = []

    def independent(self, begin: int, end: int, *conflicts: Memory) -> Iterator[int]:
        loop = Iterations(conflicts)
        self.loops.append(loop)
        numbers = range(int(begin), int(end))
        for loop.number in reversed(numbers) if self.exact and not conflicts else numbers:
            yield loop.number
        self.loops.remove(loop)

    def parallel(self, function: Callable[..., Any], iterations: int, size: int, *args: Any) -> None:
        for memory in self.memories:
            memory.touched.clear()
        for number, begin in enumerate(reversed(range(0, int(iterations), int(size))), 1):
            self.chunk = number
            function(begin, min(begin + int(size), int(iterations)), *args)
        self.chunk = 0


def chunk(iterations: int, work: int) -> int:
    return CHUNK


def product(rows: int, columns: int, inner: int, alpha: Any, a: Any, b: Any, beta: Any, c: Any) -> None:
    """c = alpha * a @ b + beta * c, operands by functions from (i, j) to (memory, place)."""
    for i in range(rows):
        for j in range(columns):
            memory, place = c(i, j)
            total = memory[place] * beta if beta != 0 else None
            for p in range(inner):
                (left, x), (right, y) = a(i, p), b(p, j)
                term = alpha * (left[x] * right[y])
                total = term if total is None else total + term
            memory[place] = 0 if total is None else total


def steps(memory: Memory, down: int, along: int, start: int = 0) -> Callable[[int, int], tuple[Memory, int]]:
    return lambda i, j: (memory, int(start + i * down + j * along))


def gemm(m: int, n: int, k: int, alpha: Any, a: Memory, a_row: int, a_col: int, b: Memory, b_row: int, b_col: int,
         beta: Any, c: Memory, c_row: int, c_col: int) -> int:  # fmt: skip
    product(m, n, k, alpha, steps(a, a_row, a_col), steps(b, b_row, b_col), beta, steps(c, c_row, c_col))
    return 0


def gemv(m: int, n: int, alpha: Any, a: Memory, a_row: int, a_col: int, x: Memory, x_step: int, beta: Any, y: Memory,
         y_step: int) -> int:  # fmt: skip
    product(m, 1, n, alpha, steps(a, a_row, a_col), steps(x, x_step, 0), beta, steps(y, y_step, 0))
    return 0


def batched_gemm(times: int, m: int, n: int, k: int, alpha: Any, a: Memory, a_batch: int, a_row: int, a_col: int,
                 b: Memory, b_batch: int, b_row: int, b_col: int, beta: Any, c: Memory, c_batch: int, c_row: int,
                 c_col: int) -> int:  # fmt: skip
    for t in range(times):
        product(m, n, k, alpha, steps(a, a_row, a_col, t * a_batch), steps(b, b_row, b_col, t * b_batch), beta,
                steps(c, c_row, c_col, t * c_batch))  # fmt: skip
    return 0


def conv(images: int, groups: int, outs: int, channels: int, *rest: Any) -> int:
    x, *x_steps, w, w_g, w_o, w_c, w_0, w_1, w_2, y, y_n, y_g, y_o, y_0, y_1, y_2 = rest[:21]
    axes = [rest[21 + 7 * axis : 28 + 7 * axis] for axis in range(3)]
    counts, taps = [range(axis[2]) for axis in axes], [range(axis[1]) for axis in axes]
    for n, g, o, *place in cartesian(range(images), range(groups), range(outs), *counts):
        total: Any = 0
        for c, *tap in cartesian(range(channels), *taps):
            at = [p * a[3] + k * a[4] - a[6] for p, k, a in zip(place, tap, axes, strict=True)]
            if all(i % a[5] == 0 and 0 <= i < a[0] * a[5] for i, a in zip(at, axes, strict=True)):
                index = n, g, c, *(i // a[5] for i, a in zip(at, axes, strict=True))
                left = x[int(sum(i * step for i, step in zip(index, x_steps, strict=True)))]
                own = g * w_g + o * w_o + c * w_c + tap[0] * w_0 + tap[1] * w_1 + tap[2] * w_2
                total = total + left * w[int(own)]
        y[int(n * y_n + g * y_g + o * y_o + place[0] * y_0 + place[1] * y_1 + place[2] * y_2)] = total
    return 0


PRODUCT_ROOMS = ("graphc.codegen.gemm", "graphc.codegen.convolution")
PRODUCTS = {"gemm": gemm, "gemv": gemv, "batched_gemm": batched_gemm, "conv": conv, "grouped_conv": conv}
SHIMS = {
    name: PRODUCTS[name.removeprefix("gc_").rpartition("_")[0]]
    for name in routine_prototypes()
    if family_of(name).room in PRODUCT_ROOMS
}


def factorisation(routine: Routine, suffix: str, exact: bool) -> Callable[..., int]:
    """A routine of LAPACK on memory; where numbers are exact, any function of all elements of a matrix."""

    def call(*values: Any) -> int:
        given = {argument.name: value for argument, value in zip(arguments_of(routine, suffix), values, strict=True)}
        letters = {letter: int(given[letter]) for letter in routine.letters}
        letters |= routine.derived(letters)  # type: ignore[arg-type]
        flags = {name: int(given[name]) for name in routine.flags}
        status = 0
        for number in range(int(given["count"])):
            read = []
            for place, axes in enumerate(routine.operands):
                shape = tuple(letters[letter] for letter in axes)
                steps = [int(given[f"a{place}_{axis}"]) for axis in range(len(axes))]
                start = number * int(given[f"a{place}_batch"])
                at = [start + sum(map(int.__mul__, index, steps)) for index in cartesian(*map(range, shape))]
                read.append((shape, [given[f"a{place}"][each] for each in at]))
            if exact:
                elements = [element for _, each in read for element in each]
                made: Any = np.nan
            else:
                try:
                    made = routine.compute(*(np.array(each).reshape(shape) for shape, each in read), **flags)
                except np.linalg.LinAlgError:
                    status, made = status or (0 if given["nan"] else 1), np.nan
            parts = made if isinstance(made, tuple) else (made,) * len(routine.parts)
            for place, ((axes, _), part) in enumerate(zip(routine.parts, parts, strict=True)):
                memory, size = given[f"r{place}"], int(np.prod([letters[letter] for letter in axes]))
                for where in range(size):
                    if not is_float(memory.dtype):  # where numbers are exact, any positions will do
                        value: Any = np.dtype(memory.dtype).type(where if np.ndim(part) == 0 else part.flat[where])
                    elif exact:
                        value = mixed(routine.name, where, *elements)
                    else:
                        value = np.dtype(memory.dtype).type(part if np.ndim(part) == 0 else part.flat[where])
                    memory[number * size + where] = value
        return status

    return call


def search(name: str, exact: bool) -> Callable[..., int]:
    """Places among the elements of memory; where floats are exact, any function of a value and of all elements."""

    def call(n: int, count: int, x: Any, step: int, values: Any, along: int, result: Any) -> int:
        elements = [x[place * step] for place in range(n)]
        for place in range(count):
            value = values[place * along]
            if exact and is_float(x.dtype):
                result[place] = np.int64(mixed(name, 0, value, *elements).residue % (n + 1))
            else:
                result[place] = SEARCHED[name](np.array(elements, x.dtype), value)
        return 0

    return call


def order(name: str, exact: bool) -> Callable[..., int]:
    """An order of NumPy's on memory; where floats are exact, any function of all elements."""
    compute: Any = {**ALONG, **FIRST, **ROWS}[name]
    rank = 3 if name in ALONG else 2
    first = 2 if name in ROWS else 3

    def call(*values: Any) -> int:
        shape, memory, result = [int(each) for each in values[:rank]], values[first], values[-1 if name in ROWS else -2]
        steps = [int(each) for each in values[first + 1 : first + 1 + rank]]
        wanted = [values[6][place] for place in range(int(values[2]))] if name in FIRST else []
        at = [sum(map(int.__mul__, index, steps)) for index in cartesian(*map(range, shape))]
        read = [memory[place] for place in at]
        sizes = [shape[0], len(wanted)] if name in FIRST else shape[:1] if name in ROWS else shape
        if exact and is_float(memory.dtype):
            length = shape[0 if name in ROWS else 1]
            made: list[Any] = [mixed(name, place, *wanted, *read) for place in range(int(np.prod(sizes)))]
            if not is_float(result.dtype):  # any positions will do
                made = [np.int64(value.residue % length) for value in made]
        else:
            given = np.array(read, memory.dtype).reshape(shape)
            made = list(compute(given, *([np.array(wanted, "int64")] if name in FIRST else ())).ravel())
        for place, value in enumerate(made):
            result[place] = value
        return 0

    return call


def fourier(name: str, exact: bool) -> Callable[..., int]:
    """Fourier transforms of lines of memory; where numbers are exact, any function of all elements of a line."""
    form = TRANSFORMS[name]

    def call(lines: int, n: int, x: Any, row: int, *others: Any) -> int:
        *steps, result, _ = others
        shape = (n, 2) if form == "" else (n,) if form == "real_" else (n // 2 + 1, 2)
        places = [sum(map(int.__mul__, index, map(int, steps))) for index in cartesian(*map(range, map(int, shape)))]
        made: list[Any] = []
        for line in range(lines):
            read = [x[line * row + place] for place in places]
            if exact:
                count = {"": 2 * n, "real_": n // 2 * 2 + 2}.get(form, n)
                made += [mixed(f"fourier_{form}", place, *read) for place in range(count)]
            else:
                held = np.array(read, x.dtype).reshape(1, *shape)
                found = {"": transformed, "real_": real_transformed}.get(form, partial(values_transformed, n=int(n)))
                made += [*found(held).flat]
        for place, value in enumerate(made):
            result[place] = value
        return 0

    return call


def callback(node: Node, exact: bool) -> Callable[..., int]:
    """The user's function of a node, on memory; where numbers are exact, any function of all elements."""
    operands = (*node.args, node)

    def call(*args: Any) -> int:
        shapes = split_sizes(operands, [int(size) for size in args[len(operands) :]])
        read = [
            [memory[place] for place in range(int(np.prod(shape)))]
            for memory, shape in zip(args, shapes[:-1], strict=False)
        ]
        result, shape = args[len(operands) - 1], shapes[-1]
        if exact:
            elements = [element for each in read for element in each]
            values: list[Any] = [mixed("callback", place, *elements) for place in range(int(np.prod(shape)))]
            if not is_float(node.dtype):
                values = [np.dtype(node.dtype).type(value.residue % 5) for value in values]
        else:
            arrays = [np.array(v, n.dtype).reshape(s) for v, n, s in zip(read, node.args, shapes, strict=False)]
            values = list(node.op.eval(node, *arrays).ravel())
        for place, value in enumerate(values):
            result[place] = value
        return 0

    return call


# Running --------------------------------------------------------------------------------------------------------------


def divide(a: Any, b: Any) -> Any:
    return a / b if b else np.divide(a, b)


def text_of(expr: Expr) -> str:
    if isinstance(expr, Apply):
        args = [text_of(arg) for arg in expr.args]
        if expr.op.form == "call" or expr.op is DIV:
            return f"{'divide' if expr.op is DIV else expr.op.name}({', '.join(args)})"
        return f"({expr.op.name.join(args)})" if expr.op.form == "infix" else f"({expr.op.name}{args[0]})"
    if isinstance(expr, Var):
        return expr.name
    if isinstance(expr, Load):
        return f"{expr.buffer.name}[{text_of(expr.index)}]"
    if isinstance(expr, Pointer):
        return f"advance({expr.buffer.name}, {text_of(expr.index)})"
    assert isinstance(expr, Const)
    return const_text(expr)


def lines_of(body: Iterable[Stmt], pad: str) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case Let(var, value) | Set(var, value):
                yield f"{pad}{var.name} = {text_of(value)}"
            case Store(buffer, index, value):
                yield f"{pad}{buffer.name}[{text_of(index)}] = {text_of(value)}"
            case Loop(var, size, inner, begin, conflicts):
                bounds = ", ".join([text_of(begin), text_of(size), *(buffer.name for buffer in conflicts or ())])
                yield f"{pad}for {var.name} in {'range' if conflicts is None else 'independent'}({bounds}):"
                yield from lines_of(inner, pad + " ")
                yield f"{pad} pass"
            case If(condition, then, orelse):
                for head, branch in ((f"if {text_of(condition)}", then), ("else", orelse)):
                    yield f"{pad}{head}:"
                    yield from lines_of(branch, pad + " ")
                    yield f"{pad} pass"
            case Break():
                yield f"{pad}break"
            case Check(condition, code):
                yield f"{pad}if not {text_of(condition)}: return {code}"
            case Invoke(function, args, code):
                call = f"{function}({', '.join(map(text_of, args))})"
                yield f"{pad}if {call} != 0: return {code}" if code else f"{pad}{call}"
            case Launch(function, iterations, size, args):
                yield f"{pad}parallel({', '.join([function, *map(text_of, (iterations, size, *args))])})"
            case Note():
                pass


@cache
def code_of(functions: tuple[Function, ...]) -> CodeType:
    heads = [f"def {each.name}({', '.join(param.name for param in each.params)}):" for each in functions]
    parts = [[head, *lines_of(each.body, " "), " return 0"] for head, each in zip(heads, functions, strict=True)]
    return compile("\n".join(line for part in parts for line in part), "<loops>", "exec")


BARE_WORDS = {name: getattr(word, "__wrapped__", word) for name, word in PRELUDE.items()} | CONSTANTS


def run(
    functions: tuple[Function, ...],
    name: str,
    given: Mapping[str, Iterable[Any]],
    numbers: Mapping[str, int],
    limits: Mapping[str, int],
    calls: Sequence[Node],
    exact: bool,
) -> tuple[int, dict[str, dict[int, Any]]]:
    """What the function of this name returns, and what it leaves in its buffers.

    `given`: what buffers hold before; `numbers`: its other parameters; `limits`: the length of each buffer that has
    one; `calls`: the nodes that call back into Python.
    """
    launches = Launches(exact)
    scope: dict[str, Any] = BARE_WORDS | (EXACT_WORDS if exact else {})
    scope |= SHIMS | dict.fromkeys(QUESTIONS, answer_no)
    scope |= {
        name: factorisation(ROUTINES[routine], suffix, exact) for name, (routine, suffix) in FACTORISATIONS.items()
    }
    scope |= {name: (search if op in SEARCHED else order)(op, exact) for name, (op, _) in ORDERS.items()}
    scope |= {name: fourier(name, exact) for name in TRANSFORMS}
    scope |= {f"{CALLBACK}{number}": callback(node, exact) for number, node in enumerate(calls)}
    scope |= {
        "advance": Memory.at,
        "divide": divide,
        "chunk": chunk,
        "columns": chunk,
        "parallel": launches.parallel,
        "independent": launches.independent,
        "fills": lambda memory: memory.at(0, filled=True),
        "reads": lambda memory: memory.at(0, only_read=True),
    }
    (function,) = (each for each in functions if each.name == name)
    memories: dict[str, Memory] = {}
    args: list[Any] = []
    for param in function.params:
        if isinstance(param, Var):
            args.append(numbers[param.name])
            continue
        memory = Memory(param.name, param.dtype, launches, exact, limits.get(param.name))
        memory.fill(given.get(param.name, ()))
        memories[param.name] = memory
        args.append(memory)
    with np.errstate(all="ignore"):
        exec(code_of(functions), scope)
        code = int(scope[name](*args))
    return code, {name: memory.cells for name, memory in memories.items()}
