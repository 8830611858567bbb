"""Operators and routines of generated source for modules that CPython runs with NumPy, or that numba compiles.

In: numbers; for routines flat arrays, sizes and strides in elements, as codegen/routines.py has them. Out: a number; 0
from routines. python_module.py copies the text of these functions, so that they name only each other, NumPy and `math`.
numba compiles them as they stand. Where the types of Python's numbers would decide that of the result, `one` is 1 of
the dtype.

Operators are those of the interpreter to the bit, but for elementary functions, in which libraries differ.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

Number: TypeAlias = Any
Array: TypeAlias = Any

# --- orders, signs, roundings -----------------------------------------------------------------------------------------


def minimum(a: Number, b: Number) -> Number:
    """The lesser of two floats, NaN where one is; 0.0 > -0.0."""
    if a < b or np.isnan(a):
        return a
    return -(-a - b) if a == b and a == 0 else b


def maximum(a: Number, b: Number) -> Number:
    """The greater of two floats, NaN where one is; 0.0 > -0.0."""
    if a > b or np.isnan(a):
        return a
    return a + b if a == b and a == 0 else b


def fmin(a: Number, b: Number) -> Number:
    """The lesser of two floats, the other one where one is NaN."""
    return a if np.isnan(b) else b if np.isnan(a) else minimum(a, b)


def fmax(a: Number, b: Number) -> Number:
    """The greater of two floats, the other one where one is NaN."""
    return a if np.isnan(b) else b if np.isnan(a) else maximum(a, b)


def select(c: Number, a: Number, b: Number) -> Number:
    """a where c, else b."""
    return a if c else b


def sign(a: Number) -> Number:
    """-1, 0 or 1; NaN of NaN."""
    if np.isnan(a):
        return np.nan
    return 1.0 if a > 0 else -1.0 if a < 0 else 0.0


def heaviside(a: Number, b: Number) -> Number:
    """0 below 0, 1 above, b at 0."""
    if np.isnan(a):
        return np.nan
    return b if a == 0 else 1.0 if a > 0 else 0.0


# --- sums -------------------------------------------------------------------------------------------------------------


def sum_error(a: Number, b: Number) -> Number:
    """The error of a + b: Knuth's two-sum."""
    total = a + b
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


def add_error(total: Number, error: Number) -> Number:
    """total + error, where the total is finite."""
    return total + error if np.isfinite(total) else total


# --- quotients, powers, shifts ----------------------------------------------------------------------------------------


def divide(a: Number, b: Number) -> Number:
    """a / b, where Python's own floats would raise."""
    return a / b if b else np.divide(a, b)


def modulo(a: Number, b: Number) -> Number:
    """The rest of a quotient of floats, with the sign of b."""
    rest = np.fmod(a, b)
    if b == 0:
        return rest
    if rest == 0:
        return np.copysign(rest, b)
    return rest + b if (b < 0) != (rest < 0) else rest


def floor_divide(a: Number, b: Number, one: Number) -> Number:
    """The quotient of floats, rounded down."""
    if b == 0:
        return divide(a, b)
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        quotient = quotient - one
    if quotient == 0:
        return np.copysign(quotient, a / b)
    whole = np.floor(quotient)
    return whole + one if quotient - whole > 0.5 else whole


def whole_divide(a: Number, b: Number) -> Number:
    """The quotient of integers, rounded down; 0 where b is."""
    if b == 0:
        return b
    return -a if b == -1 else a // b


def whole_modulo(a: Number, b: Number) -> Number:
    """The rest of it, with the sign of b."""
    return b ^ b if b in (0, -1) else a % b


def whole_fmod(a: Number, b: Number) -> Number:
    """The rest of a quotient of integers that is rounded to 0."""
    rest = whole_modulo(a, b)
    return rest - b if rest != 0 and (rest < 0) != (a < 0) else rest


def natural_divide(a: Number, b: Number) -> Number:
    """The quotient of integers without a sign, 0 where b is."""
    return a // b if b else b


def natural_modulo(a: Number, b: Number) -> Number:
    """The rest of it."""
    return a % b if b else b


def power(a: Number, b: Number) -> Number:
    """a ** b of floats. NumPy computes a square root of scalars, which has other signs."""
    return a * a if b == 0.5 and a in (0.0, -np.inf) else np.power(a, b)


def whole_power(a: Number, b: Number, one: Number) -> Number:
    """a ** b of integers, wrapping; 0 for a negative b, but for the powers of 1 and -1."""
    if b < 0:
        if a not in (1, -1):
            return a ^ a
        b = b & one
    result = one
    while b != 0:
        if b & one != 0:
            result = result * a
        a = a * a
        b = b >> one
    return result


def lcm(a: Number, b: Number) -> Number:
    """The least common multiple of two int64, wrapping; 0 where either is 0. numba's own takes the magnitude last."""
    divisor = np.gcd(a, b)
    return abs(a) // divisor * abs(b) if divisor else divisor


def shift_left(a: Number, b: Number, last: Number) -> Number:
    """a << b, 0 for counts above the last bit of the integer, and negative ones."""
    return a << b if b >= 0 and b <= last else a ^ a


def shift_right(a: Number, b: Number, last: Number) -> Number:
    """a >> b, of such counts as if all bits but the sign were gone."""
    if b >= 0 and b <= last:
        return a >> b
    return a >> last if a < 0 else a ^ a


# --- casts of floats --------------------------------------------------------------------------------------------------


def to_int64(x: Number) -> Number:
    """The integer of a float, the least one where there is none."""
    return np.int64(x) if x >= -9223372036854775808.0 and x < 9223372036854775808.0 else np.int64(-9223372036854775808)


def to_int32(x: Number) -> Number:
    """The integer of 32 bits of a float, as one of 64."""
    return np.int64(x) if x > -2147483649.0 and x < 2147483648.0 else np.int64(-2147483648)


def to_uint64(x: Number) -> Number:
    """The integer without a sign of a float."""
    if x >= 9223372036854775808.0:
        return np.uint64(to_int64(x - 9223372036854775808.0)) ^ np.uint64(9223372036854775808)
    return np.uint64(to_int64(x))


# --- special functions ------------------------------------------------------------------------------------------------


def erf(x: Number) -> Number:
    return math.erf(np.float64(x))


def erfc(x: Number) -> Number:
    return math.erfc(np.float64(x))


def gammaln(x: Number) -> Number:
    """log|gamma(x)|, infinite at the poles."""
    y = np.float64(x)
    if not np.isfinite(y):
        return y
    return np.inf if (y <= 0 and y == np.floor(y)) or y > 2.55634e305 else math.lgamma(y)


def erfcx(x: Number) -> Number:
    """exp(x**2) erfc(x): the square is split in two, so that the exponential of its rounding error is made up for. The
    asymptotic series beyond 10 (DLMF 7.12.1)."""
    y = np.float64(x)
    if y < 10.0:
        if y < -26.7:
            return np.inf
        scaled = y * 134217729.0
        high = scaled - (scaled - y)
        low = y - high
        square = y * y
        error = ((high * high - square) + 2.0 * high * low) + low * low
        grown = np.exp(square)
        return (grown + grown * error) * math.erfc(y)
    term = 1.0
    total = 1.0
    inverse = 0.5 / y / y
    for n in range(1, 15):
        term = -term * (2.0 * n - 1.0) * inverse
        total = total + term
    return total / (y * 1.7724538509055159)


def digamma(x: Number) -> Number:
    """The derivative of log(gamma(x)), as graphc.arrays.numerics has it."""
    y = np.float64(x)
    z = y if y > 0 else 1 - y
    shift = 0.0
    while z < 8:
        shift = shift - 1 / z
        z = z + 1
    square = 1 / (z * z)
    series = square * -0.4432598039215686
    series = square * (0.08333333333333334 + series)
    series = square * (-0.02109279609279609 + series)
    series = square * (0.007575757575757576 + series)
    series = square * (-0.004166666666666667 + series)
    series = square * (0.003968253968253968 + series)
    series = square * (-0.008333333333333333 + series)
    series = square * (0.08333333333333333 + series)
    positive = shift + np.log(z) - 0.5 / z - series
    if y > 0 or np.isnan(y):
        return positive
    if y == np.rint(y):
        return -np.copysign(np.inf, y) if y == 0 else np.nan
    return positive - np.pi / np.tan(np.pi * (y - np.rint(y)))


def trigamma(x: Number) -> Number:
    """The derivative of digamma, as graphc.arrays.numerics has it."""
    y = np.float64(x)
    z = y if y > 0 else 1 - y
    shift = 0.0
    while z < 8:
        shift = shift + 1 / (z * z)
        z = z + 1
    square = 1 / (z * z)
    series = square * -7.092156862745098
    series = square * (1.1666666666666667 + series)
    series = square * (-0.2531135531135531 + series)
    series = square * (0.07575757575757576 + series)
    series = square * (-0.03333333333333333 + series)
    series = square * (0.023809523809523808 + series)
    series = square * (-0.03333333333333333 + series)
    series = square * (0.16666666666666666 + series)
    positive = shift + (1 + series) / z + 0.5 * square
    if y > 0 or np.isnan(y):
        return positive
    if y == np.rint(y):
        return np.inf
    sine = np.sin(np.pi * (y - np.rint(y)))
    return (np.pi / sine) * (np.pi / sine) - positive


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), without overflow."""
    decay = np.exp(-np.abs(x))
    one = np.exp(decay - decay)
    return (one if x >= 0 else decay) / (one + decay)


def softplus(x: Number) -> Number:
    """log(1 + exp(x)), without overflow."""
    decay = np.exp(-np.abs(x))
    return maximum(x, decay - decay) + np.log1p(decay)


# --- random words -----------------------------------------------------------------------------------------------------


def philox_low(index: Number, draw: Number, key: Number) -> Number:
    """The first two words of a block of Philox 4x32-10, as one number of 64 bits."""
    return philox_words(index, draw, key)[0]


def philox_high(index: Number, draw: Number, key: Number) -> Number:
    """The last two words."""
    return philox_words(index, draw, key)[1]


def philox(index: Number, draw: Number, key: Number) -> Number:
    """Word number `index` of a sequence: half index % 2 of block index // 2."""
    words = philox_words(index >> np.uint64(1), draw, key)
    return words[1] if index & np.uint64(1) else words[0]


def philox_words(index: Number, draw: Number, key: Number) -> Any:
    """Both halves of a block."""
    half, low = np.uint64(32), np.uint64(4294967295)
    a, b, c, d = index & low, index >> half, draw & low, draw >> half
    first, second = key & low, key >> half
    for _ in range(10):
        left, right = a * np.uint64(3528531795), c * np.uint64(3449720151)
        a, b, c, d = (right >> half) ^ b ^ first, right & low, (left >> half) ^ d ^ second, left & low
        first, second = (first + np.uint64(2654435769)) & low, (second + np.uint64(3144134277)) & low
    return a | (b << half), c | (d << half)


# --- pointers, chunks -------------------------------------------------------------------------------------------------


def advance(pointer: Array, count: int) -> Array:
    """The pointer to element `count`."""
    return pointer[count:]


def chunk(count: int, work: int) -> int:
    """The number of iterations, of `count` of this work each, whose results are combined at a time."""
    chunks = min(max(count * work // 131072, 1), 256)
    size = -(-count // chunks)
    return max(-(-size // 64) * 64 if size >= 1024 else size, 1)


def columns(count: int, work: int) -> int:
    """The number of columns, of `count` of this work each, that are taken at a time."""
    return max(chunk(count, work), min(-(-count // 64) * 64, 1024), 256)


# --- routines for numba -----------------------------------------------------------------------------------------------


def multiply(alpha: Number, left: Array, right: Array, beta: Number, result: Array) -> None:
    """result = alpha * left @ right + beta * result, of matrices; the old result does not count where beta is 0."""
    scales = np.zeros(2, result.dtype)
    scales[0], scales[1] = alpha, beta
    for i in range(left.shape[0]):
        row = np.zeros(right.shape[1], result.dtype)
        for p in range(left.shape[1]):
            factor = left[i, p]
            for j in range(right.shape[1]):
                row[j] += factor * right[p, j]
        for j in range(right.shape[1]):
            result[i, j] = scales[0] * row[j] if beta == 0 else scales[0] * row[j] + scales[1] * result[i, j]


def gemm(
    m: int, n: int, k: int, alpha: Number, a: Array, a_row: int, a_col: int, b: Array, b_row: int, b_col: int,
    beta: Number, c: Array, c_row: int, c_col: int,
) -> int:  # fmt: skip
    """The product of two matrices."""
    size = a.itemsize
    left = as_strided(a, (m, k), (a_row * size, a_col * size))
    right = as_strided(b, (k, n), (b_row * size, b_col * size))
    multiply(alpha, left, right, beta, as_strided(c, (m, n), (c_row * size, c_col * size)))
    return 0


def gemv(
    m: int, n: int, alpha: Number, a: Array, a_row: int, a_col: int, x: Array, x_step: int, beta: Number, y: Array,
    y_step: int,
) -> int:  # fmt: skip
    """The product of a matrix and a vector."""
    size = a.itemsize
    left, right = as_strided(a, (m, n), (a_row * size, a_col * size)), as_strided(x, (n, 1), (x_step * size, size))
    multiply(alpha, left, right, beta, as_strided(y, (m, 1), (y_step * size, size)))
    return 0


def batched_gemm(
    count: int, m: int, n: int, k: int, alpha: Number, a: Array, a_batch: int, a_row: int, a_col: int, b: Array,
    b_batch: int, b_row: int, b_col: int, beta: Number, c: Array, c_batch: int, c_row: int, c_col: int,
) -> int:  # fmt: skip
    """Products of as many pairs of matrices."""
    size = a.itemsize
    left = as_strided(a, (count, m, k), (a_batch * size, a_row * size, a_col * size))
    right = as_strided(b, (count, k, n), (b_batch * size, b_row * size, b_col * size))
    result = as_strided(c, (count, m, n), (c_batch * size, c_row * size, c_col * size))
    for number in range(count):
        multiply(alpha, left[number], right[number], beta, result[number])
    return 0


def is_less(a: Number, b: Number) -> bool:
    """The order of NumPy's sorts: NaN comes last."""
    return a < b or (np.isnan(b) and not np.isnan(a))


def places_in_order(line: Array, places: Array) -> Array:
    """Places, so that the elements there do not decrease; those of equal elements stay as they are."""
    count, width = len(places), 1
    other = np.empty_like(places)
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            i, j = begin, middle
            for at in range(begin, end):
                if i < middle and (j >= end or not is_less(line[places[j]], line[places[i]])):
                    other[at] = places[i]
                    i += 1
                else:
                    other[at] = places[j]
                    j += 1
        places, other = other, places
        width = 2 * width
    return places


def order_along(
    outer: int, count: int, inner: int, x: Array, x_0: int, x_1: int, x_2: int, result: Array, room: Array,
    is_sort: bool,
) -> int:  # fmt: skip
    """The elements in order, or their places, along the second of three axes."""
    lines = as_strided(x, (outer, count, inner), (x_0 * x.itemsize, x_1 * x.itemsize, x_2 * x.itemsize))
    for i in range(outer):
        for j in range(inner):
            line = lines[i, :, j]
            places = places_in_order(line, np.arange(count))
            for k in range(count):
                at = (i * count + k) * inner + j
                if is_sort:
                    result[at] = line[places[k]]
                else:
                    result[at] = places[k]
    return 0


def sort(outer: int, count: int, inner: int, x: Array, x_0: int, x_1: int, x_2: int, result: Array, room: Array) -> int:
    return order_along(outer, count, inner, x, x_0, x_1, x_2, result, room, True)


def argsort(
    outer: int, count: int, inner: int, x: Array, x_0: int, x_1: int, x_2: int, result: Array, room: Array
) -> int:
    return order_along(outer, count, inner, x, x_0, x_1, x_2, result, room, False)


def first_along(
    count: int, size: int, wanted: int, x: Array, x_0: int, x_1: int, which: Array, result: Array, is_top: bool
) -> int:
    """The first elements of each row in order, or their places: the least where the first of `which` is negative, else
    the greatest."""
    rows = as_strided(x, (count, size), (x_0 * x.itemsize, x_1 * x.itemsize))
    for i in range(count):
        if wanted == 0:
            break
        if which[0] < 0:
            places = places_in_order(rows[i], np.arange(size))
        else:
            places = places_in_order(rows[i], np.arange(size)[::-1].copy())[::-1].copy()
        for k in range(wanted):
            if is_top:
                result[i * wanted + k] = rows[i, places[k]]
            else:
                result[i * wanted + k] = places[k]
    return 0


def top(
    count: int, size: int, wanted: int, x: Array, x_0: int, x_1: int, which: Array, result: Array, room: Array
) -> int:
    return first_along(count, size, wanted, x, x_0, x_1, which, result, True)


def argtop(
    count: int, size: int, wanted: int, x: Array, x_0: int, x_1: int, which: Array, result: Array, room: Array
) -> int:
    return first_along(count, size, wanted, x, x_0, x_1, which, result, False)


def lexorder(count: int, size: int, x: Array, x_0: int, x_1: int, result: Array) -> int:
    """The places of rows in the order of words."""
    rows = as_strided(x, (count, size), (x_0 * x.itemsize, x_1 * x.itemsize))
    places = np.arange(count)
    for column in range(size - 1, -1, -1):
        places = places_in_order(rows[:, column], places)
    for i in range(count):
        result[i] = places[i]
    return 0


def search(n: int, count: int, x: Array, x_0: int, y: Array, y_0: int, result: Array, is_right: bool) -> int:
    """The places among sorted elements at which values would stand, before or after equal ones."""
    known, wanted = as_strided(x, (n,), (x_0 * x.itemsize,)), as_strided(y, (count,), (y_0 * y.itemsize,))
    for i in range(count):
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            goes_on = not is_less(wanted[i], known[middle]) if is_right else is_less(known[middle], wanted[i])
            if goes_on:
                low = middle + 1
            else:
                high = middle
        result[i] = low
    return 0


def searchsorted_left(n: int, count: int, x: Array, x_0: int, y: Array, y_0: int, result: Array) -> int:
    return search(n, count, x, x_0, y, y_0, result, False)


def searchsorted_right(n: int, count: int, x: Array, x_0: int, y: Array, y_0: int, result: Array) -> int:
    return search(n, count, x, x_0, y, y_0, result, True)


def fourier(lines: int, n: int, x: Array, x_0: int, x_1: int, x_2: int, result: Array, room: Array) -> int:
    """The discrete Fourier transform of lines of complex numbers, by the prime factors of their length."""
    pairs = as_strided(x, (lines, n, 2), (x_0 * x.itemsize, x_1 * x.itemsize, x_2 * x.itemsize))
    roots = np.empty(n, np.complex128)
    for k in range(n):
        angle = 2.0 * np.pi * min(k, n - k) / n
        roots[k] = complex(np.cos(angle), -np.sin(angle) if 2 * k <= n else np.sin(angle))
    for line in range(lines):
        now = np.empty(n, np.complex128)
        for k in range(n):
            now[k] = complex(np.float64(pairs[line, k, 0]), np.float64(pairs[line, k, 1]))
        done, radix = 1, 2
        while done < n:
            while (n // done) % radix != 0:
                radix += 1
            left = n // (done * radix)
            following = np.zeros(n, np.complex128)
            for begin in range(left):
                for k in range(done * radix):
                    total = complex(0.0, 0.0)
                    for p in range(radix):
                        place = (begin + p * left) * done + k % done
                        total = total + roots[p * k % (done * radix) * left] * now[place]
                    following[begin * done * radix + k] = total
            now = following
            done = done * radix
        for k in range(n):
            result[2 * (line * n + k)] = now[k].real
            result[2 * (line * n + k) + 1] = now[k].imag
    return 0


def fourier_real(lines: int, n: int, x: Array, x_0: int, x_1: int, result: Array, room: Array) -> int:
    """The first halves of the spectra of real lines."""
    rows = as_strided(x, (lines, n), (x_0 * x.itemsize, x_1 * x.itemsize))
    pairs = np.zeros((lines, n, 2), np.float64)
    pairs[:, :, 0] = rows
    spectrum = np.empty(2 * lines * n, np.float64)
    fourier(lines, n, pairs.reshape(-1), 2 * n, 2, 1, spectrum, room)
    half = n // 2 + 1
    for line in range(lines):
        for k in range(2 * half):
            is_end = k == 1 or (k == n + 1 and n % 2 == 0)
            result[2 * half * line + k] = 0.0 if is_end else spectrum[2 * n * line + k]
    return 0


def fourier_back(lines: int, n: int, x: Array, x_0: int, x_1: int, x_2: int, result: Array, room: Array) -> int:
    """The real lines, times n, of whose spectra these are the first halves: the transform of the conjugates."""
    halves = as_strided(x, (lines, n // 2 + 1, 2), (x_0 * x.itemsize, x_1 * x.itemsize, x_2 * x.itemsize))
    pairs = np.zeros((lines, n, 2), np.float64)
    pairs[:, 0, 0] = halves[:, 0, 0]
    for k in range(1, n // 2 + 1):
        pairs[:, n - k, 0] = halves[:, k, 0]
        pairs[:, k, 0] = halves[:, k, 0]
        if 2 * k != n:
            pairs[:, n - k, 1] = halves[:, k, 1]
            pairs[:, k, 1] = -halves[:, k, 1]
    values = np.empty(2 * lines * n, np.float64)
    fourier(lines, n, pairs.reshape(-1), 2 * n, 2, 1, values, room)
    for place in range(lines * n):
        result[place] = values[2 * place]
    return 0


def conv(  # noqa: C901, PLR0912 - a loop for each axis
    images: int, groups: int, outs: int, channels: int, x: Array, x_n: int, x_g: int, x_c: int, x_0: int, x_1: int,
    x_2: int, w: Array, w_g: int, w_o: int, w_c: int, w_0: int, w_1: int, w_2: int, y: Array, y_n: int, y_g: int,
    y_o: int, y_0: int, y_1: int, y_2: int, size_0: int, taps_0: int, count_0: int, stride_0: int, dilation_0: int,
    spread_0: int, low_0: int, size_1: int, taps_1: int, count_1: int, stride_1: int, dilation_1: int, spread_1: int,
    low_1: int, size_2: int, taps_2: int, count_2: int, stride_2: int, dilation_2: int, spread_2: int, low_2: int,
) -> int:  # fmt: skip
    """A convolution over three axes, as the op of graphc/ops/conv.py says."""
    item = x.itemsize
    wanted = as_strided(
        y,
        (images, groups, outs, count_0, count_1, count_2),
        (y_n * item, y_g * item, y_o * item, y_0 * item, y_1 * item, y_2 * item),
    )
    weights = as_strided(
        w,
        (groups, outs, channels, taps_0, taps_1, taps_2),
        (w_g * item, w_o * item, w_c * item, w_0 * item, w_1 * item, w_2 * item),
    )
    given = as_strided(
        x,
        (images, groups, channels, size_0, size_1, size_2),
        (x_n * item, x_g * item, x_c * item, x_0 * item, x_1 * item, x_2 * item),
    )
    for image in range(images):
        for group in range(groups):
            for out in range(outs):
                for i in range(count_0):
                    for j in range(count_1):
                        for k in range(count_2):
                            total = y[:1].copy()
                            total[0] = 0
                            for a in range(taps_0):
                                at_0 = i * stride_0 + a * dilation_0 - low_0
                                if at_0 < 0 or at_0 >= size_0 * spread_0 or at_0 % spread_0 != 0:
                                    continue
                                for b in range(taps_1):
                                    at_1 = j * stride_1 + b * dilation_1 - low_1
                                    if at_1 < 0 or at_1 >= size_1 * spread_1 or at_1 % spread_1 != 0:
                                        continue
                                    for c in range(taps_2):
                                        at_2 = k * stride_2 + c * dilation_2 - low_2
                                        if at_2 < 0 or at_2 >= size_2 * spread_2 or at_2 % spread_2 != 0:
                                            continue
                                        for channel in range(channels):
                                            total[0] += (
                                                given[
                                                    image, group, channel, at_0 // spread_0, at_1 // spread_1,
                                                    at_2 // spread_2,
                                                ]
                                                * weights[group, out, channel, a, b, c]
                                            )  # fmt: skip
                            wanted[image, group, out, i, j, k] = total[0]
    return 0
