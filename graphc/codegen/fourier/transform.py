"""Fourier transforms in LLVM IR.

In: dtypes. Out: the functions of PROTOTYPES.

A length that is a product of RADICES is transformed radix by radix, from one array to another and back (Stockham). Any
other length n is a convolution with the chirp e**(i pi j**2 / n), by transforms of a length M of at least 2 n - 1
(Bluestein). All is float64. LANES lines go together, number by number, and the lines that are left go one by one: each
line has the same operations in the same order.

Let u = 2**-53. A root of unity errs by 4 u at most: 2.4 u from its angle of at most pi / 4, and the rest from the
polynomials. A product with it errs by 4 u + 2 sqrt(2) u < 7 u. A radix of 2 or 4 has one or two sums more. A number of
an odd radix p is a sum of (p + 13) / 2 roundings, relative to the sum of what it adds, which may be sqrt(p) times the
result in the 2-norm, for both parts. So of a length that is a product of radices

    |found - exact| <= E |exact|    in the 2-norm of a line,
    E = u * sum of 8 for 2, 9 for 4, sqrt(2 p) (p + 13) / 2 + 7 for p

up to squares of u (Higham, Accuracy and Stability of Numerical Algorithms, 2002, theorem 24.2, for other radices). A
convolution has three such sums of M, times 4: that bounds the transformed chirp, an incomplete sum of Gauss, over
sqrt(n). This holds if the errors of that transform are spread over its numbers. The bound that needs no such assumption
is sqrt(M) times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from math import factorial, pi
from typing import Any

from graphc.codegen.fourier import DTYPES
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, function
from graphc.codegen.llvm.typed import F32, F64, I64, Ptr, vector
from graphc.ops.lines import LANES, RADICES

KINDS: dict[str, Any] = {"float64": F64, "float32": F32}
CONVOLVED = (15, 12, 10, 9)
"""Lengths of convolutions are 16 times a power of two, or so many times, if that is enough."""


class Complex:
    """A complex number, or a vector of them."""

    __slots__ = ("im", "re")

    def __init__(self, re: Any, im: Any) -> None:
        self.re = re
        self.im = im

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def times(self, number: Any) -> Complex:
        """Times a real number."""
        return Complex(self.re * number, self.im * number)

    def around(self, other: Complex) -> tuple[Complex, Complex]:
        """self + i other, self - i other."""
        return (Complex(self.re - other.im, self.im + other.re), Complex(self.re + other.im, self.im - other.re))

    def spread(self, lanes: int) -> Complex:
        """The same in each lane."""
        return self if lanes == 1 else Complex(self.re.spread(lanes), self.im.spread(lanes))


def get(array: Ptr, place: I64, lanes: int = 1) -> Complex:
    """A number of each line."""
    kind = vector(F64, lanes) if lanes > 1 else F64
    at = array.at(place * (2 * lanes), F64)
    return Complex(at.load(kind, align=8), at.at(lanes, F64).load(kind, align=8))


def put(array: Ptr, place: I64, number: Complex, lanes: int = 1) -> None:
    at = array.at(place * (2 * lanes), F64)
    at.store(number.re, align=8)
    at.at(lanes, F64).store(number.im, align=8)


# --- roots of unity ---------------------------------------------------------------------------------------------------


@function("noinline")
def fourier_roots(code: Code, order: I64, roots: Ptr) -> None:
    """Write e**(-2 pi i k / order) for the numbers k below the order. One of them gives others: eight where quarters
    are whole numbers of places, else two."""
    quarter = order // 4
    with code.when(order == quarter * 4):
        with code.count(0, order // 8 + 1) as k:
            cosine, sine = cosine_and_sine((k * 4).to(F64), order)
            left, below = cosine * -1.0, sine * -1.0
            put(roots, (k == 0).choose(k, order - k), Complex(cosine, sine))
            put(roots, k, Complex(cosine, below))
            put(roots, quarter - k, Complex(sine, left))
            put(roots, quarter + k, Complex(below, left))
            put(roots, quarter * 2 - k, Complex(left, below))
            put(roots, quarter * 2 + k, Complex(left, sine))
            put(roots, quarter * 3 - k, Complex(below, cosine))
            put(roots, quarter * 3 + k, Complex(sine, cosine))
        code.ret()
    with code.count(0, order // 2 + 1) as k:
        one = root(k, order)
        put(roots, (k == 0).choose(k, order - k), Complex(one.re, one.im * -1.0))
        put(roots, k, one)


def root(k: I64, order: I64) -> Complex:
    """e**(-2 pi i k / order), by the angle to the next axis."""
    quarter = (k * 8 + order) // (order * 2)
    cosine, sine = cosine_and_sine((k * 4 - quarter * order).to(F64), order)
    is_odd = (quarter & 1) != 0
    re, im = is_odd.choose(sine, cosine), is_odd.choose(cosine, sine)
    is_left, is_below = ((quarter + 1) & 2) != 0, (quarter & 2) == 0
    return Complex(is_left.choose(re * -1.0, re), is_below.choose(im * -1.0, im))


def cosine_and_sine(quarters: F64, order: I64) -> tuple[F64, F64]:
    """Of (pi / 2) quarters / order, which is an eighth of the circle at most."""
    x = quarters * (pi / 2) / order.to(F64)
    square = x * x
    sine = x + x * square * series(square, [(-1) ** n / factorial(2 * n + 1) for n in range(1, 10)])
    cosine = square * series(square, [(-1) ** n / factorial(2 * n) for n in range(1, 10)]) + 1.0
    return cosine, sine


def series(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, the constant one first."""
    total = x * coefficients[-1] + coefficients[-2]
    for each in coefficients[-3::-1]:
        total = total * x + each
    return total


# --- products of radices ----------------------------------------------------------------------------------------------


def small_transform(x: Sequence[Complex], roots: Sequence[Complex]) -> list[Complex]:
    """The transform of as many numbers as the radix. roots: of unity, of this order."""
    radix, middle = len(x), len(x) // 2
    if radix == 2:
        return [x[0] + x[1], x[0] - x[1]]
    if radix == 4:
        even, odd, turned = x[0] + x[2], x[1] + x[3], x[1] - x[3]
        last, first = (x[0] - x[2]).around(turned)
        return [even + odd, first, even - odd, last]
    sums = [x[j] + x[radix - j] for j in range(1, middle + 1)]
    gaps = [x[j] - x[radix - j] for j in range(1, middle + 1)]
    spectrum = [sum(sums, x[0])] * radix
    for k in range(1, middle + 1):
        turns = [roots[j * k % radix] for j in range(1, middle + 1)]
        mean = sum((each.times(root.re) for each, root in zip(sums, turns, strict=True)), x[0])
        first, *rest = (each.times(root.im) for each, root in zip(gaps, turns, strict=True))
        spectrum[k], spectrum[radix - k] = mean.around(sum(rest, first))
    return spectrum


@cache
def stage(radix: int, lanes: int) -> Function[..., None]:
    """One radix of a transform of a length: `done` are behind, `left` before it, and their product is the length. The
    lanes are of as many lines, or of `width` numbers that follow each other in one."""

    @function("noinline", name=f"fourier_stage_{radix}_{lanes}")
    def write(code: Code, x: Ptr, y: Ptr, roots: Ptr, left: I64, done: I64, width: I64) -> None:
        own = [get(roots, left * done * j).spread(lanes) for j in range(radix)]
        run = done // width
        with code.count(0, left) as j:
            turns = [get(roots, done * j * k).spread(lanes) for k in range(1, radix)]
            with code.count(0, run) as q:
                inputs = [get(x, run * (left * r + j) + q, lanes) for r in range(radix)]
                first, *rest = small_transform(inputs, own)
                put(y, run * j * radix + q, first, lanes)
                for k, (number, turn) in enumerate(zip(rest, turns, strict=True), 1):
                    put(y, run * (j * radix + k) + q, number * turn, lanes)

    return write


@cache
def stages(lanes: int) -> Function[..., Ptr]:
    """Finish a transform of a product of RADICES, from an array with the help of another; the result is the array that
    has it."""

    @function("noinline", name=f"fourier_stages_{lanes}")
    def write(code: Code, n: I64, roots: Ptr, x: Ptr, y: Ptr, first: I64, width: I64) -> Ptr:
        here, there, left, done = code.variable(x), code.variable(y), code.variable(n // first), code.variable(first)
        for radix in RADICES:
            with code.loop() as going:
                going.leave.when(left.value % radix != 0)
                left.value = left.value // radix
                stage(radix, lanes)(code, here.value, there.value, roots, left.value, done.value, width)
                done.value = done.value * radix
                here.value, there.value = there.value, here.value
        return here.value

    return write


@function("noinline")
def fourier_alone(code: Code, n: I64, roots: Ptr, x: Ptr, y: Ptr) -> Ptr:
    """The transform of a line. Behind a first radix of LANES, as many numbers have the same roots, and go together."""
    with code.when((n % LANES != 0) | (n < LANES * LANES)):
        code.ret(stages(1)(code, n, roots, x, y, I64.of(1), I64.of(1)))
    left = n // LANES
    with code.count(0, left) as j:
        first, *rest = small_transform([get(x, left * r + j) for r in range(LANES)], [])
        turned = [first, *(number * get(roots, j * k) for k, number in enumerate(rest, 1))]
        for k, number in enumerate(turned):
            y.at(j * (2 * LANES) + k, F64).store(number.re)
            y.at(j * (2 * LANES) + (LANES + k), F64).store(number.im)
    spectrum = stages(LANES)(code, n, roots, y, x, I64.of(LANES), I64.of(LANES))
    other = (spectrum == x).choose(y, x)
    with code.count(0, left) as j:
        for k in range(LANES):
            at = spectrum.at(j * (2 * LANES) + k, F64)
            put(other, j * LANES + k, Complex(at.load(F64), at.at(LANES, F64).load(F64)))
    return other


def transform_of(code: Code, lanes: int, n: I64, roots: Ptr, x: Ptr, y: Ptr) -> Ptr:
    """The transform of lines, in one of both arrays."""
    if lanes == 1:
        return fourier_alone(code, n, roots, x, y)
    return stages(lanes)(code, n, roots, x, y, I64.of(1), I64.of(1))


# --- lines ------------------------------------------------------------------------------------------------------------


@function("noinline optsize")
def fourier_length(code: Code, n: I64) -> I64:
    """The length to transform: n where it is a product of RADICES, else that of a convolution."""
    left = code.variable(n)
    for radix in RADICES:
        with code.loop() as going:
            going.leave.when(left.value % radix != 0)
            left.value = left.value // radix
    with code.when(left.value == 1):
        code.ret(n)
    least, unit = n * 2 - 1, code.variable(I64.of(1))
    with code.loop() as widening:
        widening.leave.when(unit.value * 16 >= least)
        unit.value = unit.value * 2
    length = unit.value * 16
    for each in CONVOLVED:
        length = (unit.value * each >= least).choose(unit.value * each, length)
    return length


@function("noinline optsize")
def fourier_chirp(code: Code, n: I64, length: I64, chirp: Ptr, roots: Ptr, image: Ptr, x: Ptr, y: Ptr) -> None:
    """Write the chirp, and the transform of its conjugate, around 0, over the length."""
    with code.count(0, n) as k:
        put(chirp, k, root(k * k % (n * 2), n * 2))
    with code.count(0, length * 2) as place:
        x.at(place, F64).store(F64.of(0.0))
    with code.count(0, n) as k:
        one = get(chirp, k)
        conjugate = Complex(one.re, one.im * -1.0)
        put(x, k, conjugate)
        with code.when(k > 0):
            put(x, length - k, conjugate)
    product, scale = fourier_alone(code, length, roots, x, y), F64.of(1.0) / length.to(F64)
    with code.count(0, length) as k:
        put(image, k, get(product, k).times(scale))


@cache
def lines(dtype: str, lanes: int) -> Function[..., None]:
    """So many lines, from `x` to `result`."""
    kind = KINDS[dtype]

    @function("noinline", name=f"fourier_lines_{dtype}_{lanes}")
    def write(
        code: Code, n: I64, length: I64, chirp: Ptr, roots: Ptr, image: Ptr, here: Ptr, there: Ptr, x: Ptr, row: I64,
        step: I64, part: I64, result: Ptr,
    ) -> None:  # fmt: skip
        with code.count(0, n) as k:
            for lane in range(lanes):
                for place in range(2):
                    number = x.at(row * lane + step * k + part * place, kind).load(kind).to(F64)
                    here.at(k * (2 * lanes) + (lanes * place + lane), F64).store(number)
        is_convolved = length != n
        with code.when(is_convolved):
            with code.count(0, n) as k:
                put(here, k, get(here, k, lanes) * get(chirp, k).spread(lanes), lanes)
            with code.count(n * (2 * lanes), length * (2 * lanes)) as k:
                here.at(k, F64).store(F64.of(0.0))
        spectrum = code.variable(transform_of(code, lanes, length, roots, here, there))
        with code.when(is_convolved):
            other = (spectrum.value == here).choose(there, here)
            with code.count(0, length) as k:
                product = get(spectrum.value, k, lanes) * get(image, k).spread(lanes)
                put(spectrum.value, k, Complex(product.re, product.im * -1.0), lanes)
            spectrum.value = transform_of(code, lanes, length, roots, spectrum.value, other)
            with code.count(0, n) as k:
                one = get(spectrum.value, k, lanes)
                put(spectrum.value, k, Complex(one.re, one.im * -1.0) * get(chirp, k).spread(lanes), lanes)
        with code.count(0, n) as k:
            for lane in range(lanes):
                for place in range(2):
                    number = spectrum.value.at(k * (2 * lanes) + (lanes * place + lane), F64).load(F64)
                    result.at((n * lane + k) * 2 + place, kind).store(number.to(kind))

    return write


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of the room's PROTOTYPES."""
    words = {"count": I64, "n": I64, "x": Ptr, "row": I64, "step": I64, "part": I64, "result": Ptr, "space": Ptr}
    return [Function(name, I64, words, partial(_write, DTYPES[name]), "noinline optsize") for name in sorted(names)]


def _write(
    dtype: str, code: Code, count: I64, n: I64, x: Ptr, row: I64, step: I64, part: I64, result: Ptr, space: Ptr
) -> I64:
    kind = KINDS[dtype]
    with code.when((count == 0) | (n == 0)):
        code.ret(I64.of(0))
    length = fourier_length(code, n)
    is_many = count >= LANES
    roots = space
    here = roots.at(length * 2, F64)
    there = here.at(is_many.choose(length * (2 * LANES), length * 2), F64)
    image = there.at(is_many.choose(length * (2 * LANES), length * 2), F64)
    chirp = image.at(length * 2, F64)
    fourier_roots(code, length, roots)
    with code.when(length != n):
        fourier_chirp(code, n, length, chirp, roots, image, here, there)
    whole = count - count % LANES
    for lanes, first, last in ((LANES, I64.of(0), whole), (1, whole, count)):
        with code.count(first, last, lanes) as line:
            place = x.at(line * row, kind), row, step, part, result.at(line * n * 2, kind)
            lines(dtype, lanes)(code, n, length, chirp, roots, image, here, there, *place)
    return I64.of(0)
