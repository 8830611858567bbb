"""Layouts: arrays as views of contiguous arrays (variants.py).

In: an array that is not contiguous. Out: a `LayoutView`: a layout, and the base.

A `Layout` shows an array as a view of a contiguous array of the same rank, the *base*, which is the variant's input. It
has the order of axes in the base and, for each axis, a step, negative where it goes backwards. This covers transposes,
Fortran order, reversed axes and all slices with steps. Order and steps are constants of the kernel; sizes are not, so
that all transposed matrices share one kernel.

    array                     base B      layout                                  in the kernel
    B.T                       B           order (1, 0), steps (1, 1), whole       x = B.T
    B[::-1]                   B           order (0, 1), steps (-1, 1)             x = B[n-1::-1]
    B[:, 0 : 2*n : 2]         B           order (0, 1), steps (1, 2)              x = B[:, 0 : 2*n : 2], n an argument
"""

from __future__ import annotations

from itertools import accumulate
from math import gcd

from numpy.lib.stride_tricks import as_strided

from graphc.ir.node import Array
from graphc.startup.record import record


@record()
class Layout:
    """An array as a view of its base. order: the array's axes in the order of the base, outermost first. steps: along
    each axis of the base. whole: the array covers that axis of the base."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    whole: tuple[bool, ...]

    @property
    def is_permuted(self) -> bool:
        """True where the array is the whole base with its axes in another order."""
        return all(self.whole) and set(self.steps) <= {1}


@record(eq=False)
class LayoutView:
    """An array as a layout, its base, and the array's sizes along the axes that are not whole."""

    layout: Layout
    base: Array
    sizes: tuple[int, ...]


def find_base(array: Array) -> LayoutView | None:
    """Return the base of an array with elements; None where the array is no view of a contiguous array of its rank.

    The base may reach beyond the memory of the array, by less than a row of the base. A kernel may take it, for it
    reads the elements of the array alone.
    """
    item = array.itemsize
    if not array.flags.aligned or any(stride % item or (not stride and n > 1) for stride, n in _axes(array)):
        return None
    strides = [stride // item for stride in array.strides]
    # Along an axis of one element the stride says nothing: such axes come first.
    order = sorted(range(array.ndim), key=lambda axis: (array.shape[axis] > 1, -abs(strides[axis])))
    long = [axis for axis in order if array.shape[axis] > 1]
    # The unit of each axis in elements: 1 for the last, for an outer one the divisor of all strides from there
    # outwards.
    divisors = [*accumulate((abs(strides[axis]) for axis in long), gcd)]
    units = [*divisors[:-1], 1][: len(long)]
    steps, lengths, whole = [1] * (array.ndim - len(long)), [1] * (array.ndim - len(long)), [True] * array.ndim
    for place, (axis, unit) in enumerate(zip(long, units, strict=True)):
        step = abs(strides[axis]) // unit
        extent = (array.shape[axis] - 1) * step + 1
        length = units[place - 1] // unit if place else extent
        if length < extent:
            return None
        whole[len(steps)] = length == extent and step == 1
        steps.append(step if strides[axis] > 0 else -step)
        lengths.append(length)
    forward = array[tuple(slice(None, None, -1 if stride < 0 and n > 1 else None) for stride, n in _axes(array))]
    own = [*accumulate((item, *lengths[:0:-1]), lambda stride, length: stride * length)][::-1]
    base = as_strided(forward, lengths, own)
    layout = Layout(tuple(order), tuple(steps), tuple(whole))
    return LayoutView(
        layout, base, tuple(array.shape[axis] for axis, all_ in zip(order, whole, strict=True) if not all_)
    )


def _axes(array: Array) -> list[tuple[int, int]]:
    return list(zip(array.strides, array.shape, strict=True))
