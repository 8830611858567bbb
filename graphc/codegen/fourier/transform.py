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

A real line of an even length n is n / 2 complex numbers, its pairs of neighbours. Their transform is an isometry away
from the first half of the spectrum, and each number of this is a sum of two, of which one is a product with a root:
u for the sum, u and 8 u for what it adds. So its error is E of n / 2 and 10 u, relative to the 2-norm of the whole
spectrum; backward, which takes the same steps in reverse, to that of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from math import factorial, pi
from typing import Any

from graphc.codegen.fourier import DTYPES, FORMS
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

    def conjugate(self) -> Complex:
        return Complex(self.re, self.im * -1.0)

    def spread(self, lanes: int) -> Complex:
        """The same in each lane."""
        return self if lanes == 1 else Complex(self.re.spread(lanes), self.im.spread(lanes))


def get(array: Ptr, place: I64, lanes: int = 1) -> Complex:
    """A number of each line."""
    vector_type = vector(F64, lanes) if lanes > 1 else F64
    at = array.at(place * (2 * lanes), F64)
    return Complex(at.load(vector_type, align=8), at.at(lanes, F64).load(vector_type, align=8))


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
    """One radix of a transform of a length: `left` times as many transforms become `left` ones. `turn` is the place of
    the root of unity of order `left` times the radix, `run` how many vectors of numbers have the same roots."""

    @function("noinline", name=f"fourier_stage_{radix}_{lanes}")
    def write(code: Code, x: Ptr, y: Ptr, roots: Ptr, left: I64, turn: I64, run: I64) -> None:
        roots_of_turn = [get(roots, left * turn * j).spread(lanes) for j in range(radix)]
        with code.count(0, left) as j:
            turns = [get(roots, turn * j * k).spread(lanes) for k in range(1, radix)]
            with code.count(0, run) as q:
                inputs = [get(x, run * (left * r + j) + q, lanes) for r in range(radix)]
                first, *rest = small_transform(inputs, roots_of_turn)
                put(y, run * j * radix + q, first, lanes)
                for k, number in enumerate(rest, 1):
                    put(y, run * (j * radix + k) + q, number * turns[k - 1], lanes)

    return write


@cache
def stages(lanes: int) -> Function[..., Ptr]:
    """Finish a transform of a product of RADICES, from an array with the help of another; the result is the array that
    has it. `first` numbers were transformed before, which lie in vectors of `width`."""

    @function("noinline", name=f"fourier_stages_{lanes}")
    def write(code: Code, n: I64, roots: Ptr, every: I64, x: Ptr, y: Ptr, first: I64, width: I64) -> Ptr:
        here, there, left, done = code.variable(x), code.variable(y), code.variable(n // first), code.variable(first)
        for radix in RADICES:
            with code.loop() as going:
                going.leave.when(left.value % radix != 0)
                left.value = left.value // radix
                turn, run = done.value * every, done.value // width
                stage(radix, lanes)(code, here.value, there.value, roots, left.value, turn, run)
                done.value = done.value * radix
                here.value, there.value = there.value, here.value
        return here.value

    return write


@function("noinline")
def fourier_alone(code: Code, n: I64, roots: Ptr, every: I64, x: Ptr, y: Ptr) -> Ptr:
    """The transform of a line. Behind a first radix of LANES, as many numbers have the same roots, and go together."""
    with code.when((n % LANES != 0) | (n < LANES * LANES)):
        code.ret(stages(1)(code, n, roots, every, x, y, I64.of(1), I64.of(1)))
    left = n // LANES
    with code.count(0, left) as j:
        first, *rest = small_transform([get(x, left * r + j) for r in range(LANES)], [])
        turned = [first, *(number * get(roots, j * k * every) for k, number in enumerate(rest, 1))]
        for k, number in enumerate(turned):
            y.at(j * (2 * LANES) + k, F64).store(number.re)
            y.at(j * (2 * LANES) + (LANES + k), F64).store(number.im)
    spectrum = stages(LANES)(code, n, roots, every, y, x, I64.of(LANES), I64.of(LANES))
    other = (spectrum == x).choose(y, x)
    with code.count(0, left) as j:
        for k in range(LANES):
            at = spectrum.at(j * (2 * LANES) + k, F64)
            put(other, j * LANES + k, Complex(at.load(F64), at.at(LANES, F64).load(F64)))
    return other


def transform_of(code: Code, lanes: int, n: I64, roots: Ptr, every: I64, x: Ptr, y: Ptr) -> Ptr:
    """The transform of lines, in one of both arrays. The roots of unity are those at every so manieth place."""
    if lanes == 1:
        return fourier_alone(code, n, roots, every, x, y)
    return stages(lanes)(code, n, roots, every, x, y, I64.of(1), I64.of(1))


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
        one = get(chirp, k).conjugate()
        put(x, k, one)
        with code.when(k > 0):
            put(x, length - k, one)
    product, scale = fourier_alone(code, length, roots, I64.of(1), x, y), F64.of(1.0) / length.to(F64)
    with code.count(0, length) as k:
        put(image, k, get(product, k).times(scale))


@cache
def spectra(lanes: int) -> Function[..., Ptr]:
    """The transform of lines of n numbers that stand in one of two arrays; the result is the array that has it."""

    @function("noinline", name=f"fourier_spectra_{lanes}")
    def write(
        code: Code, n: I64, length: I64, chirp: Ptr, roots: Ptr, every: I64, image: Ptr, here: Ptr, there: Ptr
    ) -> Ptr:
        with code.when(length == n):
            code.ret(transform_of(code, lanes, n, roots, every, here, there))
        with code.count(0, n) as k:
            put(here, k, get(here, k, lanes) * get(chirp, k).spread(lanes), lanes)
        with code.count(n * (2 * lanes), length * (2 * lanes)) as k:
            here.at(k, F64).store(F64.of(0.0))
        spectrum_place = transform_of(code, lanes, length, roots, every, here, there)
        other = (spectrum_place == here).choose(there, here)
        with code.count(0, length) as k:
            put(spectrum_place, k, (get(spectrum_place, k, lanes) * get(image, k).spread(lanes)).conjugate(), lanes)
        spectrum = transform_of(code, lanes, length, roots, every, spectrum_place, other)
        with code.count(0, n) as k:
            put(spectrum, k, get(spectrum, k, lanes).conjugate() * get(chirp, k).spread(lanes), lanes)
        return spectrum

    return write


class Lines:
    """Lines that go together: where they are read, where they are written, and two arrays for numbers of all of them.

    x, row, step, part: the first number of the first line, and the strides of lines, numbers and parts. Of real lines
    `turns` has the roots of unity of order n, if that is even; then n / 2 complex numbers are transformed.
    """

    def __init__(self, dtype: str, lanes: int, n: I64, here: Ptr, result: Ptr, *x: Any) -> None:
        self.kind, self.lanes, self.n = KINDS[dtype], lanes, n
        self.here, self.result = here, result
        self.x, self.row, self.step, self.part = x

    def load(self, lane: int, place: I64 | int, part: int) -> F64:
        """A part of a number of a line."""
        return self.x.at(self.row * lane + self.step * place + self.part * part, self.kind).load(self.kind).to(F64)

    def give(self, place: I64, number: F64) -> None:
        """Write a part of a result."""
        self.result.at(place, self.kind).store(number.to(self.kind))

    def give_zero(self, place: I64) -> None:
        """Write an imaginary part that is 0 for real lines, whatever their numbers are."""
        self.result.at(place, self.kind).store(self.kind.of(0.0))

    def put(self, lane: int, place: I64 | int, number: Complex) -> None:
        """Write a number of a line where its transform begins."""
        at = self.here.at(place * (2 * self.lanes) + lane, F64)
        at.store(number.re)
        at.at(self.lanes, F64).store(number.im)

    def number(self, array: Ptr, lane: int, place: I64 | int) -> Complex:
        """A number of a line."""
        at = array.at(place * (2 * self.lanes) + lane, F64)
        return Complex(at.load(F64), at.at(self.lanes, F64).load(F64))


def read_all(code: Code, of: Lines, count: I64) -> None:
    """Read complex numbers."""
    with code.count(0, count) as k:
        for lane in range(of.lanes):
            of.put(lane, k, Complex(of.load(lane, k, 0), of.load(lane, k, 1)))


def write_first(code: Code, of: Lines, spectrum: Ptr, count: I64) -> None:
    """Write the first so many numbers of each spectrum."""
    with code.count(0, count) as k:
        for lane in range(of.lanes):
            one = of.number(spectrum, lane, k)
            of.give((count * lane + k) * 2, one.re)
            of.give((count * lane + k) * 2 + 1, one.im)


def write_halves(code: Code, of: Lines, turns: Ptr, spectrum: Ptr) -> None:
    """Write the first half of the spectra of real lines, whose pairs of neighbours were transformed as n / 2 complex
    numbers.

    Let z be this transform, e and o those of the values at even and at odd places: z = e + i o, and e[-k] is the
    conjugate of e[k]. So z[k] and z[-k] give e and o, and the spectrum is e + w**k o, w the root of unity.
    """
    half = of.n // 2
    for lane in range(of.lanes):
        one, row = of.number(spectrum, lane, 0), (half + 1) * lane * 2
        for place, number in ((row, one.re + one.im), (row + half * 2, one.re - one.im)):
            of.give(place, number)
            of.give_zero(place + 1)
    with code.count(1, half // 2 + 1) as k:
        turn = get(turns, k)
        for lane in range(of.lanes):
            one, other = of.number(spectrum, lane, k), of.number(spectrum, lane, half - k).conjugate()
            even, gap = (one + other).times(0.5), (one - other).times(0.5)
            odd = Complex(gap.im, gap.re * -1.0) * turn
            for place, number in ((half - k, (even - odd).conjugate()), (k, even + odd)):
                of.give(((half + 1) * lane + place) * 2, number.re)
                of.give(((half + 1) * lane + place) * 2 + 1, number.im)


def read_halves(code: Code, of: Lines, turns: Ptr) -> None:
    """Read the first halves of the spectra of real lines: the inverse of `write_halves`, step by step, times n. The
    parts change places, so that a transform forward is one backward."""
    half = of.n // 2
    for lane in range(of.lanes):
        first, last = of.load(lane, 0, 0), of.load(lane, half, 0)
        of.put(lane, 0, Complex(first - last, first + last))
    with code.count(1, half // 2 + 1) as k:
        turn = get(turns, k).conjugate()
        for lane in range(of.lanes):
            one = Complex(of.load(lane, k, 0), of.load(lane, k, 1))
            other = Complex(of.load(lane, half - k, 0), of.load(lane, half - k, 1) * -1.0)
            z, mirrored = (one + other).around((one - other) * turn)
            of.put(lane, half - k, Complex(mirrored.im * -1.0, mirrored.re))
            of.put(lane, k, Complex(z.im, z.re))


def read_completed(code: Code, of: Lines) -> None:
    """Read the first halves of the spectra of real lines, and complete them by conjugates; the parts change places."""
    for lane in range(of.lanes):
        of.put(lane, 0, Complex(F64.of(0.0), of.load(lane, 0, 0)))
    with code.count(1, of.n // 2 + 1) as k:
        for lane in range(of.lanes):
            re, im = of.load(lane, k, 0), of.load(lane, k, 1)
            of.put(lane, k, Complex(im, re))
            of.put(lane, of.n - k, Complex(im * -1.0, re))


@cache
def lines(dtype: str, lanes: int, form: str) -> Function[..., None]:
    """So many lines, from `x` to `result`."""

    @function("noinline", name=f"fourier_lines_{form}{dtype}_{lanes}")
    def write(
        code: Code, n: I64, count: I64, length: I64, chirp: Ptr, roots: Ptr, every: I64, turns: Ptr, image: Ptr,
        here: Ptr, there: Ptr, x: Ptr, row: I64, step: I64, part: I64, result: Ptr,
    ) -> None:  # fmt: skip
        def transformed() -> Ptr:
            return spectra(lanes)(code, count, length, chirp, roots, every, image, here, there)

        of = Lines(dtype, lanes, n, here, result, x, row, step, part)
        if form == "":
            read_all(code, of, n)
            write_first(code, of, transformed(), n)
        elif form == "real_":
            with code.when(count != n):
                read_all(code, Lines(dtype, lanes, n, here, result, x, row, step * 2, step), count)
                write_halves(code, of, turns, transformed())
                code.ret()
            with code.count(0, n) as k:
                for lane in range(lanes):
                    of.put(lane, k, Complex(of.load(lane, k, 0), F64.of(0.0)))
            write_first(code, of, transformed(), n // 2 + 1)
            for lane in range(lanes):
                of.give_zero((n // 2 + 1) * lane * 2 + 1)
        else:
            with code.when(count != n):
                read_halves(code, of, turns)
                spectrum = transformed()
                with code.count(0, count) as k:
                    for lane in range(lanes):
                        one = of.number(spectrum, lane, k)
                        of.give(n * lane + k * 2, one.im)
                        of.give(n * lane + k * 2 + 1, one.re)
                code.ret()
            read_completed(code, of)
            spectrum = transformed()
            with code.count(0, n) as k:
                for lane in range(lanes):
                    of.give(n * lane + k, of.number(spectrum, lane, k).im)

    return write


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of the room's PROTOTYPES."""
    return [
        Function(name, I64, _words(FORMS[name]), partial(_write, name), "noinline optsize") for name in sorted(names)
    ]


def _words(form: str) -> dict[str, Any]:
    """The parameters of a function of a form: real values have no stride of parts."""
    parts = {} if form == "real_" else {"part": I64}
    first = {"count": I64, "n": I64, "x": Ptr, "row": I64, "step": I64}
    return {**first, **parts, "result": Ptr, "space": Ptr}


def _write(name: str, code: Code, count: I64, n: I64, x: Ptr, row: I64, step: I64, *others: Any) -> I64:
    form, dtype = FORMS[name], DTYPES[name]
    part, result, space = others if len(others) == 3 else (I64.of(0), *others)
    element = KINDS[dtype]
    with code.when((count == 0) | (n == 0)):
        code.ret(I64.of(0))
    is_halved = (n & 1) == (0 if form else -1)
    numbers = is_halved.choose(n // 2, n)
    length = fourier_length(code, numbers)
    is_convolved = length != numbers
    is_many = count >= LANES
    every = (is_halved & ~is_convolved).choose(I64.of(2), I64.of(1))
    roots = space
    here = roots.at(length * every * 2, F64)
    there = here.at(is_many.choose(length * (2 * LANES), length * 2), F64)
    image = there.at(is_many.choose(length * (2 * LANES), length * 2), F64)
    chirp = image.at(length * 2, F64)
    turns = is_convolved.choose(chirp.at(numbers * 2, F64), roots)
    fourier_roots(code, length * every, roots)
    with code.when(is_convolved):
        fourier_chirp(code, numbers, length, chirp, roots, image, here, there)
        with code.when(is_halved):
            fourier_roots(code, n, turns)
    whole, size = count - count % LANES, {"": n * 2, "real_": (n // 2 + 1) * 2}.get(form, n)
    for lanes, first, last in ((LANES, I64.of(0), whole), (1, whole, count)):
        with code.count(first, last, lanes) as line:
            place = x.at(line * row, element), row, step, part, result.at(line * size, element)
            lines(dtype, lanes, form)(code, n, numbers, length, chirp, roots, every, turns, image, here, there, *place)
    return I64.of(0)
