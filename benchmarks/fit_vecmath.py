"""Fit the polynomials of the vector math and write graphc/codegen/vecmath/coefficients.py.

    python benchmarks/fit_vecmath.py

Minimax fits by Remez's exchange (Cheney, Introduction to Approximation Theory, 1966, ch. 3) on a grid, in 60 digits. A
`row` names a function, its interval and number of coefficients for float32 and float64, and the weight that turns the
error of the polynomial into the relative error of the result.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

Number = Any
Function = Callable[[Number], Number]

TARGET = Path(__file__).parent.parent / "graphc" / "codegen" / "vecmath" / "coefficients.py"
POINT = 1200
# The last integer n with a zero of log|gamma| in the table: further on the reflection formula is exact enough.
GAMMALN_POLES = 22
# Closer to zero the quotients that are fitted lose their digits.
TINY = mp.mpf("1e-18")

HEAD = '''"""Coefficients of the vector math, for float32 and float64, written by benchmarks/fit_vecmath.py.

Each table gives the function it stands for, its interval and the largest relative error of the result before the
coefficients were rounded, float32's first.
"""

from __future__ import annotations

# fmt: off

Table = dict[str, tuple[float, ...]]
'''


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of ascending powers, unrounded, and the largest weighted error."""

    coefficients: list[Number]
    error: float


@dataclass(frozen=True, slots=True)
class Row:
    """A table: its text for the two formats."""

    name: str
    story: str
    f32: tuple[float, ...]
    f64: tuple[float, ...]


def fit(
    function: Function, weight: Function, low: Number, high: Number, powers: Sequence[int], grid: int = 1500
) -> Fit:
    """The polynomial of these powers with the least largest weight * |polynomial - function| over [low, high]."""
    low, high, count = mp.mpf(low), mp.mpf(high), len(powers)
    angles = [mp.pi * (grid - i) / grid for i in range(grid + 1)]
    points = [x for x in ((low + high) / 2 + (high - low) / 2 * mp.cos(angle) for angle in angles) if abs(x) > TINY]
    values, weights = [function(x) for x in points], [weight(x) for x in points]
    monomials = [[x**power for power in powers] for x in points]
    chosen = [round((len(points) - 1) * i / count) for i in range(count + 1)]
    best = Fit([], math.inf)
    for _ in range(12):
        solution = _solve(chosen, monomials, values, weights)
        coefficients = [solution[i] for i in range(count)]
        errors = [
            w * (mp.fdot(coefficients, row) - value) for w, row, value in zip(weights, monomials, values, strict=True)
        ]
        largest = float(max(map(abs, errors)))
        if largest < best.error:
            best = Fit(coefficients, largest)
        peaks = _peaks(errors, count + 1)
        if len(peaks) < count + 1 or peaks == chosen or largest < 1.01 * abs(float(solution[count])):
            break
        chosen = peaks
    return best


def _solve(chosen: list[int], monomials: list[list[Number]], values: list[Number], weights: list[Number]) -> Number:
    """The coefficients, and last the error, whose weighted deviation alternates over the chosen points."""
    size = len(chosen)
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, point in enumerate(chosen):
        for column, monomial in enumerate(monomials[point]):
            matrix[row, column] = weights[point] * monomial
        matrix[row, size - 1] = (-1) ** row
        right[row] = weights[point] * values[point]
    return mp.lu_solve(matrix, right)


def _peaks(errors: list[Number], count: int) -> list[int]:
    """The place of the largest error in each run of one sign, at most `count` of them."""
    runs: list[list[int]] = [[0]]
    for i in range(1, len(errors)):
        if (errors[i] > 0) == (errors[runs[-1][-1]] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    peaks = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def round_to(value: Number, format: str) -> float:
    """The nearest number of the format."""
    return float(np.float32(float(value))) if format == "f32" else float(value)


def fit_rounded(
    function: Function, weight: Function, domain: tuple[Number, Number], count: int, format: str, exact: int, grid: int
) -> tuple[tuple[float, ...], float]:
    """Rounded coefficients; the first `exact` are rounded one after another, the rest fitted anew to make up for it."""
    fixed: list[float] = []

    def rest(x: Number) -> Number:
        return function(x) - sum(mp.mpf(value) * x**power for power, value in enumerate(fixed))

    while True:
        found = fit(rest, weight, *domain, range(len(fixed), count), grid)
        if len(fixed) == exact:
            return tuple(fixed) + tuple(round_to(c, format) for c in found.coefficients), found.error
        fixed.append(round_to(found.coefficients[0], format))


def row(
    name: str,
    story: str,
    function: Function,
    weight: Function,
    counts: tuple[int, int],
    domains: tuple[tuple[Number, Number], tuple[Number, Number]],
    exact: int = 0,
    grid: int = 1500,
) -> Row:
    """A fit for both formats; a count of 0 leaves a format out."""
    results = [
        fit_rounded(function, weight, domain, count, format, exact, grid) if count else ((), 0.0)
        for format, count, domain in zip(("f32", "f64"), counts, domains, strict=True)
    ]
    errors = " and ".join(f"2**{math.log2(error):.1f}" for _, error in results if error)
    return Row(name, f"{story}; relative error {errors}", results[0][0], results[1][0])


def split(value: Number, lengths: Sequence[int], rounded: Function = mp.nint) -> tuple[float, ...]:
    """Parts of these numbers of bits, whose sum is close to the value."""
    parts = []
    for length in lengths:
        fraction, exponent = mp.frexp(value)
        part = mp.ldexp(rounded(mp.ldexp(fraction, length)), exponent - length)
        parts.append(float(part))
        value -= part
    return tuple(parts)


def constants() -> Iterator[Row]:
    """The constants in several parts."""
    short = "in two parts; the product of the first with an exponent is exact"
    yield Row("LN2", f"ln 2 {short}", split(mp.log(2), (15, 24)), split(mp.log(2), (42, 53)))
    whole = [split(mp.pi / 2, (bits,) * 3, mp.floor) for bits in (24, 53)]
    yield Row("PIO2_FMA", "pi/2 in full parts, for a fused multiply-add; all are positive", *whole)
    story = "pi/2 in parts whose products with integers below 2**20 are exact; float32 is computed in float64"
    yield Row("PIO2_SHORT", story, (), split(mp.pi / 2, (33, 33, 33, 53)))
    for name, story, value in (("LOG2E", "1/ln 2", 1 / mp.log(2)), ("LOG10E", "1/ln 10", 1 / mp.log(10))):
        yield Row(name, f"{story} in two parts", split(value, (24, 24)), split(value, (53, 53)))
    yield Row("LOG10_2", f"log10(2) {short}", split(mp.log10(2), (15, 24)), split(mp.log10(2), (42, 53)))


def exponentials() -> Iterator[Row]:
    """Exponentials and logarithms."""
    half = mp.log(2) / 2 * mp.mpf("1.002")
    same = ((-half, half), (-half, half))
    yield row(
        "EXP", "(exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2",
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r * r / mp.exp(r), (5, 10), same,
    )  # fmt: skip
    yield row(
        "EXPM1", "(exp(r) - 1 - r - r**2/2) / r**3 for |r| <= ln(2)/2",
        lambda r: (mp.expm1(r) - r - r * r / 2) / r**3, lambda r: abs(r**3 / mp.expm1(r)), (4, 9), same,
    )  # fmt: skip
    yield row(
        "EXP2", "(2**r - 1) / r for |r| <= 1/2",
        lambda r: mp.expm1(r * mp.log(2)) / r, lambda r: abs(r) / mp.mpf(2) ** r,
        (6, 11), ((-0.5, 0.5), (-0.5, 0.5)),
    )  # fmt: skip
    low, high = (mp.sqrt(0.5) - 1) * mp.mpf("1.0005"), (mp.sqrt(2) - 1) * mp.mpf("1.0005")
    square = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0005")) ** 2
    single = row(
        "LOG", "", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: abs(f**3 / mp.log1p(f)),
        (9, 0), ((low, high), (0, 0)),
    )  # fmt: skip
    double = row(
        "LOG", "", lambda z: _odd(z, lambda s: 2 * mp.atanh(s), 2), lambda z: z,
        (0, 7), ((0, 0), (0, square)),
    )  # fmt: skip
    story = (
        "float32: (log(1+f) - f + f**2/2) / f**3 for sqrt(1/2) <= 1+f <= sqrt(2)" + single.story
        + "; float64: (log((1+s)/(1-s))/s - 2) / s**2 in s**2, s = f/(2+f)" + double.story
    )  # fmt: skip
    yield Row("LOG", story, single.f32, double.f64)
    yield row(
        "LOG_TAIL", "(log((1+s)/(1-s))/s - 2 - 2/3 s**2) / s**4 in s**2, s as for LOG",
        lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z**2, lambda z: z**2 / 2,
        (0, 7), ((0, 0), (0, square)),
    )  # fmt: skip
    yield row(
        "POW_LOG2", "for float32's pow: log2((1+s)/(1-s)) / s in s**2, s as for LOG",
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2),
        lambda z: mp.sqrt(z) * mp.log(2) / mp.atanh(mp.sqrt(z)) / 2, (0, 5), ((0, 0), (0, square)),
    )  # fmt: skip
    yield row(
        "POW_EXP2", "for float32's pow: (2**r - 1) / r for |r| <= 1/2",
        lambda r: mp.expm1(r * mp.log(2)) / r, lambda r: abs(r) / mp.mpf(2) ** r,
        (0, 7), ((0, 0), (-0.5, 0.5)),
    )  # fmt: skip


def _odd(z: Number, function: Function, slope: Number) -> Number:
    """(f(x)/x - slope) / x**2 of an odd function at x = sqrt(z)."""
    x = mp.sqrt(z)
    return (function(x) / x - slope) / z


def odd_row(
    name: str, story: str, reach: str, function: Function, counts: tuple[int, int], bound: Number, exact: int = 0
) -> Row:
    """The row of (f(x) - x) / x**3 in x**2 for x**2 <= bound, where |x| <= `reach`."""
    return row(
        name, f"({story}) / x**3 in x**2 for |x| <= {reach}", lambda z: _odd(z, function, 1),
        lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)), counts, ((0, bound), (0, bound)), exact,
    )  # fmt: skip


def odd_functions() -> Iterator[Row]:
    """Circular and hyperbolic functions and the cube root."""
    eighth = (mp.pi / 4 * mp.mpf("1.0002")) ** 2
    yield odd_row("SIN", "sin(x) - x", "pi/4", mp.sin, (3, 6), eighth)
    yield row(
        "COS", "(cos(r) - 1 + r**2/2) / r**4 in r**2 for |r| <= pi/4",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)), (3, 6), ((0, eighth), (0, eighth)),
    )  # fmt: skip
    yield odd_row("TANH", "tanh(x) - x", "0.55", mp.tanh, (5, 11), mp.mpf("0.3026"))
    yield odd_row("ASIN", "asin(x) - x", "0.545", mp.asin, (6, 14), mp.mpf("0.298"))
    yield odd_row("ATAN", "atan(x) - x", "1", mp.atan, (9, 20), 1, exact=6)
    yield odd_row("SINH", "sinh(x) - x", "1", mp.sinh, (4, 7), 1)
    reach = (mp.mpf("-0.103"), mp.mpf("0.103"))
    yield row(
        "CBRT", "((1-e)**(-1/3) - 1) / e for |e| <= 0.103",
        lambda e: ((1 - e) ** (-mp.mpf(1) / 3) - 1) / e, lambda e: abs(e) * mp.cbrt(1 - e), (3, 6), (reach, reach),
    )  # fmt: skip


def error_functions() -> Iterator[Row]:
    """The error function, near zero, further out, and scaled."""
    yield row(
        "ERF", "erf(x)/x - 1 in x**2 for |x| <= 1",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        (7, 12), ((0, 1), (0, 1)),
    )  # fmt: skip
    yield row(
        "LOG_ERFC", "log(erfc(x)) for 1 <= x <= 6 (float32: 4.2); the error is erf's",
        lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), (8, 19), ((1, "4.2"), (1, 6)),
    )  # fmt: skip

    def scaled(t: Number) -> Number:
        x = 4 * (1 + t) / (1 - t)
        return mp.exp(x * x) * mp.erfc(x) * (1 + 2 * x)

    tables: list[tuple[float, ...]] = []
    errors = []
    for format, count, top in (("f32", 12, mp.mpf("10.5")), ("f64", 24, mp.mpf(28))):
        domain = (-1, (top - 4) / (top + 4))
        first = fit(scaled, lambda t: 1 / scaled(t), *domain, range(count), 600).coefficients[0]
        head = round_to(first, format)
        low = round_to(first - mp.mpf(head), format)
        rest = partial(_less, scaled, mp.mpf(head) + mp.mpf(low))
        found = fit(rest, lambda t: 1 / scaled(t), *domain, range(1, count), 600)
        tables.append((head, low, *(round_to(c, format) for c in found.coefficients)))
        errors.append(f"2**{math.log2(found.error):.1f}")
    story = (
        "exp(x**2) erfc(x) (1+2x) in t = (x-4)/(x+4) for 0 <= x <= 28 (float32: 10.5), the first coefficient in two "
        f"parts; relative error {' and '.join(errors)}"
    )
    yield Row("ERFCX", story, tables[0], tables[1])
    tails = [_erfcx_tail(format, count) for format, count in (("f32", 5), ("f64", 7))]
    yield Row(
        "ERFCX_TAIL",
        "the terms of x exp(x**2) erfc(x) in 1/x**2, of which the first is in two parts",
        tails[0],
        tails[1],
    )


def _erfcx_tail(format: str, count: int) -> tuple[float, ...]:
    terms = [(-1) ** k * mp.fac2(2 * k - 1) / 2**k / mp.sqrt(mp.pi) for k in range(count)]
    head = round_to(terms[0], format)
    return (head, round_to(terms[0] - mp.mpf(head), format), *(round_to(term, format) for term in terms[1:]))


def _less(function: Function, constant: Number, x: Number) -> Number:
    return function(x) - constant


def gamma_functions() -> Iterator[Row]:
    """log(gamma(x)) between 1 and 3, and Stirling's remainder."""

    def middle(t: Number) -> Number:
        return mp.log(mp.gamma(t + 2)) / ((t + 1) * t) if abs(t + 1) > TINY else mp.euler

    yield row(
        "GAMMALN", "log(gamma(y)) / ((y-1) (y-2)) in y-2 for 1 <= y <= 3",
        middle, lambda t: 1 / middle(t), (0, 28), ((0, 0), (-1, 1)), grid=500,
    )  # fmt: skip

    def stirling(w: Number) -> Number:
        x = 1 / mp.sqrt(w)
        return (mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x

    yield row(
        "STIRLING", "x (log(gamma(x)) - (x-1/2) log(x) + x - log(2 pi)/2) in 1/x**2 for x >= 8",
        stirling, lambda w: mp.sqrt(w) / mp.loggamma(1 / mp.sqrt(w)),
        (0, 6), ((0, 0), (0, mp.mpf(1) / 64)), grid=500,
    )  # fmt: skip
    yield from gammaln_zeros()
    root = mp.findroot(mp.digamma, mp.mpf("1.4616321449683623"))
    yield Row("DIGAMMA_ROOT", "the zero of digamma between 1 and 2 in two parts", (), split(root, (53, 53)))

    def slope(t: Number) -> Number:
        x = t + mp.mpf("1.5")
        return mp.digamma(x) / (x - root) if abs(x - root) > TINY else mp.psi(1, root)

    yield row(
        "DIGAMMA", "digamma(x) / (x - root) in x-3/2 for 1 <= x <= 2",
        slope, lambda t: 1 / slope(t), (0, 24), ((0, 0), (-0.5, 0.5)), grid=500,
    )  # fmt: skip

    def digamma_tail(w: Number) -> Number:
        x = 1 / mp.sqrt(w)
        return (mp.log(x) - mp.digamma(x) - 1 / (2 * x)) * x * x

    yield row(
        "DIGAMMA_TAIL", "x**2 (log(x) - digamma(x)) - x/2 in 1/x**2 for x >= 8",
        digamma_tail, lambda w: w / mp.digamma(1 / mp.sqrt(w)),
        (0, 6), ((0, 0), (0, mp.mpf(1) / 64)), grid=500,
    )  # fmt: skip

    def trigamma_tail(w: Number) -> Number:
        x = 1 / mp.sqrt(w)
        return (mp.psi(1, x) - 1 / x - 1 / (2 * x * x)) * x**3

    yield row(
        "TRIGAMMA_TAIL", "x**3 (trigamma(x) - 1/x) - x/2 in 1/x**2 for x >= 8",
        trigamma_tail, lambda w: w, (0, 7), ((0, 0), (0, mp.mpf(1) / 64)), grid=500,
    )  # fmt: skip


def gammaln_zeros() -> Iterator[Row]:
    """The zeros of log|gamma(-s)| beside the integers n up to GAMMALN_POLES, in two parts."""
    zeros = [_gammaln_zero(n, sign) for n in range(GAMMALN_POLES + 1) for sign in (1, -1)]
    story = (
        "the zeros s = n + e of log|gamma(-s)|, of each n from 0 that with e > 0, then that with e < 0; 0 where there "
        "is none"
    )
    yield Row("GAMMALN_ZERO", story, (), tuple(high for high, _ in zeros))
    yield Row("GAMMALN_ZERO_REST", "what GAMMALN_ZERO lacks", (), tuple(low for _, low in zeros))


def _gammaln_zero(n: int, sign: int) -> tuple[float, ...]:
    if n < 2 or (n, sign) == (2, -1):
        return 0.0, 0.0
    nearly = -mp.log(mp.factorial(n))
    distance = mp.exp(mp.findroot(lambda d: mp.log(abs(mp.gamma(-n - sign * mp.exp(d)))), nearly))
    return split(n + sign * distance, (53, 53))


def render(table: Row) -> str:
    """The table as Python source."""
    lines = textwrap.wrap(table.story, 116, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    lines.append(f"{table.name}: Table = {{")
    for format, values in (("f32", table.f32), ("f64", table.f64)):
        text = textwrap.wrap(", ".join(map(repr, values)) + ",", 112) if values else []
        lines += (
            [f'    "{format}": (', *(f"        {line}" for line in text), "    ),"]
            if text
            else [f'    "{format}": (),']
        )
    return "\n".join([*lines, "}", ""])


def render_two_over_pi() -> str:
    """The bits of 2/pi as an integer."""
    with mp.workprec(POINT + 100):
        digits = f"{int(mp.floor(mp.ldexp(2 / mp.pi, POINT))):x}"
    rows = "\n".join(f'    "{line}"' for line in textwrap.wrap(digits, 100))
    story = "# 2/pi in binary, and how many of its bits stand after the point\n"
    return f"{story}TWO_OVER_PI_POINT = {POINT}\nTWO_OVER_PI = int(\n{rows},\n    16,\n)\n"


def main() -> None:
    with mp.workdps(60):
        tables = [*constants(), *exponentials(), *odd_functions(), *error_functions(), *gamma_functions()]
    TARGET.write_text("\n".join([HEAD, render_two_over_pi(), *map(render, tables)]))


if __name__ == "__main__":
    main()
