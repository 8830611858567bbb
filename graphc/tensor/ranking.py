"""Orders of rows, by the fastest of NumPy's sorts: the values of the ops behind `order.py`.

In: arrays, and where the result goes. NaN is the largest of all numbers; equal elements stay in order.

NumPy sorts numbers several times faster than it finds the places of sorted ones. So an order is that of whole numbers
of 64 bits that hold a number in their upper part and its place in the lower one (`_keys`). Where the upper part cannot
hold all of it, numbers that differ further down come out in the order of their places; these few are put right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphc.ir.node import Array

NARROW = 2
"""Bytes of the numbers that NumPy sorts by their digits, which takes less."""
SHORT, FEW = 16, 512
"""Up to so many elements of a row, or in all, NumPy's own order takes less."""
LONG = 16_384
"""Elements of a row from which on its largest are looked for by comparing all with the last of them."""
BLOCK = 16_384
"""Numbers whose keys are made at a time, in the nearest caches."""
LINE = 16
"""Columns of which at least so many are taken at a time."""


def sort_rows(rows: Array) -> Array:
    """Each row in rising order. Equal numbers are one as good as another."""
    return np.sort(rows, axis=-1)


def sort_rows_into(rows: Array, result: Array) -> None:
    result[...] = rows
    result.sort(axis=-1)


def order_rows(rows: Array) -> Array:
    """The places of the elements of each row in rising order."""
    result = np.empty(rows.shape, np.int64)
    order_rows_into(rows, result)
    return result


def order_rows_into(rows: Array, result: Array) -> None:
    size = rows.shape[-1]
    if size <= SHORT or rows.size <= FEW or rows.dtype.itemsize <= NARROW:
        result[...] = np.argsort(rows, axis=-1, kind="stable")
        return
    flat, orders = rows.reshape(-1, size), result.reshape(-1, size)
    for some in _groups(flat):
        _order_group(flat[some], orders[some])


def _groups(flat: Array) -> list[slice]:
    """Rows that the nearest caches hold."""
    count = max(BLOCK // max(flat.shape[-1], 1), 1)
    return [slice(first, first + count) for first in range(0, len(flat), count)]


def _order_group(flat: Array, orders: Array) -> None:
    made = _keys(flat, orders)
    if made is None:
        orders[...] = np.argsort(flat, axis=-1, kind="stable")
        return
    bits, is_exact = made
    orders.sort(axis=-1)
    kept: list[tuple[int, Array]] = []
    if not is_exact:
        uppers = orders >> bits
        kept = [(int(row), uppers[row]) for row in np.flatnonzero((uppers[:, 1:] == uppers[:, :-1]).any(axis=-1))]
    orders &= (1 << bits) - 1
    for row, own in kept:
        _put_right(flat[row], orders[row], own)


def _put_right(row: Array, order: Array, uppers: Array) -> None:
    """Order those of equal upper parts by all of them."""
    alike = uppers[1:] == uppers[:-1]
    ties = np.flatnonzero(alike)
    fall = row[order[ties + 1]] < row[order[ties]]
    if not fall.any():
        return
    if 8 * ties.size > row.size:
        order[:] = np.argsort(row, kind="stable")
        return
    among = np.zeros(row.size, bool)
    among[ties] = among[ties + 1] = True
    places = order[among]
    order[among] = places[np.lexsort((places, row[places], uppers[among]))]


def _keys(flat: Array, keys: Array, is_falling: bool = False) -> tuple[int, bool] | None:
    """Make for each element of some rows a number that stands where it does among the others, and in the lower bits its
    place (counted from the end where `is_falling`). How many bits these are, and whether the upper ones tell all
    numbers apart; None where there is no room for them."""
    size = flat.shape[-1]
    bits = int(size - 1).bit_length()
    if flat.dtype.kind == "b":
        flat = flat.view(np.uint8)
    kind, width = flat.dtype.kind, 8 * flat.dtype.itemsize
    lowest: Any = 0
    shift = bits
    if kind == "f":
        is_exact, has_nan = width < 64, bool(np.isnan(flat.min()))
        shift = 64 - width if is_exact else 0
    else:
        lowest, has_nan, is_exact = int(flat.min()), False, True
        if int(flat.max()) - lowest >= 2 ** (63 - bits):
            return None
        lowest = np.array(lowest % 2**64, np.uint64).view(np.int64)
    places = np.arange(size)
    if is_falling:
        places = places[::-1]
    for left in range(0, size, BLOCK):
        part = slice(None), slice(left, left + BLOCK)
        key = keys[part]
        if kind == "f":
            _as_whole(flat[part], key, width, has_nan)
        else:
            key[...] = flat[part]  # of 64 bits without a sign it wraps, and back
            key -= lowest
        if is_exact:
            key <<= shift
        else:
            key &= -1 << bits
        key |= places[part[1]]
    return bits, is_exact


def _as_whole(numbers: Array, key: Array, width: int, has_nan: bool) -> None:
    """Whole numbers in the order of floats: of a negative one all bits but the sign are turned. -0 is 0 before."""
    encoded = (numbers + numbers.dtype.type(0)).view(f"i{width // 8}")
    sign = encoded >> (width - 1)
    sign &= 2 ** (width - 1) - 1
    np.bitwise_xor(encoded, sign, out=key)
    if has_nan:
        key[np.isnan(numbers)] = 2 ** (width - 1) - 1


# --- along another axis -----------------------------------------------------------------------------------------------


def sort_columns_into(x: Array, result: Array) -> None:
    """Sort along the second of three axes."""
    for block, place in _columns(x):
        block.sort(axis=-1)
        result[place] = block.T


def order_columns_into(x: Array, result: Array) -> None:
    """The places of the elements along the second of three axes in rising order."""
    for block, place in _columns(x):
        result[place] = order_rows(block).T


def _columns(x: Array) -> Iterator[tuple[Array, Any]]:
    """Some columns at a time, as rows of their own, and where they stand: whole lines of the caches."""
    size, across = x.shape[1:]
    some = -(-max(BLOCK // max(size, 1), LINE) // LINE) * LINE
    for number in range(len(x)):
        for first in range(0, across, some):
            place = number, slice(None), slice(first, first + some)
            yield x[place].T.copy(order="C"), place


def made_by(into: Callable[[Array, Array], None], dtype: str = "") -> Callable[[Array], Array]:
    """The function that gives what another one stores: of the argument's dtype unless one is named."""

    def made(x: Array) -> Array:
        result = np.empty(x.shape, dtype or x.dtype)
        into(x, result)
        return result

    return made


# --- the largest ------------------------------------------------------------------------------------------------------


def top_of_rows(rows: Array, wanted: Array) -> Array:
    """As many elements as `wanted` has of each row: the largest, the largest first, or where that is negative the
    smallest."""
    count, size = wanted.size, rows.shape[-1]
    if not count:
        return np.zeros((*rows.shape[:-1], 0), rows.dtype)
    if wanted[0] < 0:
        return np.sort(np.partition(rows, count - 1, axis=-1)[..., :count], axis=-1)
    return np.sort(np.partition(rows, size - count, axis=-1)[..., size - count :], axis=-1)[..., ::-1]


def first_of_rows(rows: Array, wanted: Array) -> Array:
    """The places of these; of equal elements the first come first."""
    count, size = wanted.size, rows.shape[-1]
    shape = (*rows.shape[:-1], count)
    if not count or not rows.size:
        return np.zeros(shape, np.int64)
    largest = bool(wanted[0] > 0)
    flat = rows.reshape(-1, size)
    result = np.empty((len(flat), count), np.int64)
    by_keys = size < LONG and 4 * count < size
    for some in _groups(flat):
        if not (by_keys and _first_by_keys(flat[some], largest, result[some])):
            for row, places in zip(flat[some], result[some], strict=True):
                places[...] = _first_of_row(row, count, largest)
    return result.reshape(shape)


def _first_by_keys(flat: Array, largest: bool, places: Array) -> bool:
    """Find the first of some rows by their keys; whether there are any."""
    count, size = places.shape[-1], flat.shape[-1]
    keys = np.empty(flat.shape, np.int64)
    made = _keys(flat, keys, is_falling=largest)
    if made is None:
        return False
    bits, is_exact = made
    if largest:
        np.invert(keys, out=keys)
    keys.partition([count - 1, count], axis=-1)
    ranked = np.sort(keys[:, : count + 1], axis=-1)
    if largest:
        np.invert(ranked, out=ranked)
    np.bitwise_and(ranked[:, :count], (1 << bits) - 1, out=places)
    if largest:
        np.subtract(size - 1, places, out=places)
    if not is_exact:
        ranked >>= bits
        for number in np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=-1)):
            places[number] = _first_of_row(flat[number], count, largest)
    return True


def _first_of_row(row: Array, count: int, largest: bool) -> Array:
    places = _candidates(row, count, largest) if row.size >= FEW and 4 * count <= row.size else np.arange(row.size)
    values = row[places]
    # where the largest are wanted, of equal ones the first are found from behind
    order = values.size - 1 - order_rows(values[::-1])[::-1] if largest else order_rows(values)
    found: Array = places[order[:count]]
    return found


def _candidates(row: Array, count: int, largest: bool) -> Array:
    """The places of the elements that are no further from the end than the last one wanted."""
    at = row.size - count if largest else count - 1
    last: Any = np.partition(row, at)[at]
    if np.isnan(last):
        return np.flatnonzero(np.isnan(row)) if largest else np.arange(row.size)
    within: Array = ~(row < last) if largest else row <= last
    return np.flatnonzero(within)
