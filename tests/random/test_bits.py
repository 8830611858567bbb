"""The generator: published answers, the same in every mode; keys of keys; bits of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.arrays import numerics
from graphc.arrays.numerics import philox_low
from graphc.errors import GraphTypeError
from graphc.ops.elementwise import elementwise

ANSWERS = (
    # counter, key, block: those that the authors of the generator publish with their code (Random123, kat_vectors)
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
)


def words(text: str) -> list[np.uint64]:
    parts = [int(part, 16) for part in text.split()]
    return [np.uint64(low | high << 32) for low, high in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_published_answers(mode: str) -> None:
    leaves = [T.vector(name, dtype="uint64") for name in ("index", "draw", "key")]
    f = graphc.function(leaves, [elementwise("philox_low", *leaves), elementwise("philox_high", *leaves)], mode)
    for counter, key, block in ANSWERS:
        for size in (1, 9):  # a number, and vectors with what is left of them
            given = [np.full(size, word) for word in (*words(counter), *words(key))]
            for found, want in zip(f(*given), words(block), strict=True):
                np.testing.assert_array_equal(found, np.full(size, want))


@pytest.mark.slow
def test_the_words_of_blocks_in_order() -> None:
    """Counters that follow on one another, from even and odd ones on, in rows, and any others: the same numbers."""
    index, rows = T.vector("index", dtype="uint64"), T.matrix("rows")
    begin, n, key = T.lscalar("begin"), T.lscalar("n"), T.scalar("key", dtype="uint64")
    functions: dict[str, Any] = {"philox": numerics.philox}
    functions |= {f"philox_{name}": numerics.DRAWN[name] for name in ("unit", "normal", "gumbel", "cauchy")}
    draw = T.constant(np.uint64(3))

    def all_of(counter: Any) -> list[Any]:
        return [elementwise(name, T.cast(counter, "uint64"), draw, key) for name in functions]

    in_order = graphc.function([begin, n, key], all_of(begin + T.arange(n)))
    anywhere = graphc.function([index, key], all_of(index))
    in_rows = graphc.function(
        [rows, key], [rows + each for each in (R.uniform(key, rows.shape), R.normal(key, rows.shape))]
    )
    number = np.uint64(2**63 + 12345)
    for first in (0, 1, 2**33 + 1):
        for size in (0, 1, 2, 3, 7, 8, 63, 64, 65, 200):
            places = np.arange(first, first + size, dtype=np.uint64)
            wanted = [function(places, np.uint64(3), number) for function in functions.values()]
            for found in (in_order(first, size, number), anywhere(places, number)):
                for value, want in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(value, want)
    for shape in ((3, 5), (4, 64), (7, 67), (1, 1), (2, 0)):
        places = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
        for found, name in zip(in_rows(np.zeros(shape), number), ("unit", "normal"), strict=True):
            np.testing.assert_array_equal(found, numerics.DRAWN[name](places, np.uint64(0), number))
        transposed = in_rows(np.zeros(shape[::-1]).T, number)  # read across: not in the order of counters
        np.testing.assert_array_equal(transposed[0], found * 0 + in_rows(np.zeros(shape), number)[0])


@pytest.mark.slow
def test_one_block_is_made_for_both_halves() -> None:
    n, key = T.lscalar("n"), T.scalar("key", dtype="uint64")
    place = T.cast(T.arange(n), "uint64")
    zero = T.constant(np.uint64(0))
    halves = [elementwise(name, place, zero, key) for name in ("philox_low", "philox_high")]
    both = graphc.function([n, key], halves).assembly.count("vpmuludq")
    one = graphc.function([n, key], halves[0]).assembly.count("vpmuludq")
    assert both <= one + 4


def bits_of(seed: int, count: int) -> Any:
    return graphc.function([], R.bits(R.key(seed), (count,)), mode="interpreted")()


def test_keys_of_keys() -> None:
    key = T.scalar("key", dtype="uint64")
    f = graphc.function([key], [R.split(key, 3), R.fold_in(key, 0), R.fold_in(key, 1), R.bits(key, (2,))])
    made = np.concatenate([np.ravel(each) for each in (*f(np.uint64(1)), *f(np.uint64(2)))])
    assert len(np.unique(made)) == made.size
    assert not set(bits_of(0, 100)) & set(bits_of(1, 100))
    np.testing.assert_array_equal(bits_of(7, 100)[:10], bits_of(7, 10))
    with pytest.raises(GraphTypeError, match=r"a key is a uint64 scalar.*seed"):
        R.normal(T.iscalar("seed"), (2,))
    with pytest.raises(GraphTypeError, match="whole number"):
        R.key(1.5)


@pytest.mark.parametrize("stride", [1, 2, 64])
def test_bits_look_random(stride: int) -> None:
    """Of the tests of NIST SP 800-22: monobit, runs, and the frequencies of bytes; of one sequence, of every second and
    64th number, and of the first numbers of many keys. Each is within five standard deviations of its mean."""
    index = np.arange(40_000 * stride, step=stride, dtype=np.uint64)
    zero, one = np.zeros(1, np.uint64), np.ones(1, np.uint64)
    for numbers in (
        philox_low(index, zero, one),
        philox_low(zero, zero, index),
        philox_low(zero, index, zero),
    ):
        bits = np.unpackbits(numbers.view(np.uint8), bitorder="little").astype(np.int64)
        n = bits.size
        assert abs(bits.sum() - n / 2) < 5 * np.sqrt(n / 4)
        runs = 1 + np.count_nonzero(bits[1:] != bits[:-1])
        assert abs(runs - n / 2) < 5 * np.sqrt(n / 4)
        counts = np.bincount(numbers.view(np.uint8), minlength=256)
        expected = counts.sum() / 256
        assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 5 * np.sqrt(2 * 255)
        columns = np.unpackbits(numbers.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0)
        assert (abs(columns - index.size / 2) < 5 * np.sqrt(index.size / 4)).all()
        for lag in (1, 2, 3, 8):
            same = np.count_nonzero(bits[lag * 64 :] == bits[: -lag * 64])
            assert abs(same - (n - lag * 64) / 2) < 5 * np.sqrt(n / 4)


def test_more_of_nists_tests() -> None:
    """Of SP 800-22, of 2**20 bits of the words in order: frequency within blocks, the longest run of ones in blocks,
    the rank of matrices, the spectrum, serial and approximate entropy, cumulative sums. No p-value is below 1e-4."""
    numbers = numerics.philox(np.arange(2**14, dtype=np.uint64), *(np.array(each, np.uint64) for each in (0, 99)))
    bits = np.unpackbits(numbers.view(np.uint8), bitorder="little").astype(np.int64)
    n, chances = bits.size, {}
    shares = bits.reshape(-1, 128).mean(axis=1)
    chances["block frequency"] = special.gammaincc(shares.size / 2, 4 * 128 * ((shares - 0.5) ** 2).sum() / 2)
    blocks, longest = bits[: n // 10_000 * 10_000].reshape(-1, 10_000), []
    for block in blocks:
        ends = np.flatnonzero(np.diff(np.concatenate([[0], block, [0]])))
        longest.append((ends[1::2] - ends[::2]).max())
    classes = np.bincount(np.clip(longest, 10, 16) - 10, minlength=7)
    expected = len(blocks) * np.array([0.0882, 0.2092, 0.2483, 0.1933, 0.1208, 0.0675, 0.0727])
    chances["longest run"] = stats.chi2.sf(((classes - expected) ** 2 / expected).sum(), 6)
    ranks = [binary_rank(rows) for rows in numbers.view(np.uint32)[: 32 * 300].reshape(-1, 32)]
    classes = np.array([ranks.count(32), ranks.count(31), sum(rank < 31 for rank in ranks)])
    expected = len(ranks) * np.array([0.2888, 0.5776, 0.1336])
    chances["rank"] = stats.chi2.sf(((classes - expected) ** 2 / expected).sum(), 2)
    low = np.count_nonzero(abs(np.fft.rfft(2 * bits - 1)[: n // 2]) < np.sqrt(n * np.log(20)))
    chances["spectrum"] = 2 * stats.norm.sf(abs(low - 0.475 * n) / np.sqrt(n * 0.95 * 0.05 / 4))
    squares = {}
    entropy = {}
    for size in (9, 10, 11):
        words_of = sum(np.roll(bits, -shift) << (size - 1 - shift) for shift in range(size))
        counts = np.bincount(words_of, minlength=2**size)
        squares[size] = 2**size / n * (counts.astype(float) ** 2).sum() - n
        entropy[size] = (counts / n * np.log(counts / n)).sum()
    chances["serial"] = special.gammaincc(2**9, (squares[11] - squares[10]) / 2)
    second = squares[11] - 2 * squares[10] + squares[9]
    chances["serial again"] = special.gammaincc(2**8, second / 2)
    gain = entropy[10] - entropy[11]
    chances["entropy"] = special.gammaincc(2**9, n * (np.log(2) - gain))
    most = abs(np.cumsum(2 * bits - 1)).max() / np.sqrt(n)
    chances["sums"] = (
        1
        - sum(stats.norm.cdf((4 * k + 1) * most) - stats.norm.cdf((4 * k - 1) * most) for k in range(-20, 21))
        + sum(stats.norm.cdf((4 * k + 3) * most) - stats.norm.cdf((4 * k + 1) * most) for k in range(-20, 21))
    )
    assert all(chance > 1e-4 for chance in chances.values()), chances


def binary_rank(rows: Any) -> int:
    """The rank of a matrix over two elements, its rows as numbers."""
    left, rank = [int(row) for row in rows], 0
    while left:
        pivot = left.pop()
        if pivot:
            rank += 1
            lowest = pivot & -pivot
            left = [row ^ pivot if row & lowest else row for row in left]
    return rank
