"""External functions as data: what one is given, in its order, and what its status means.

In: nodes and sizes. Out: records of what is passed, of which the `Call` of an op lists those that its function takes.
Whoever plans and writes calls knows of these records only; what there are for functions the ops tell.
"""

from __future__ import annotations

from graphc.ir.lowering import Passed
from graphc.ir.node import Node, Size
from graphc.startup.record import record

SUFFIXES = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32"}
"""What the names of functions end with, by the dtype that they compute in."""


@record()
class Extent(Passed):
    """A size, as an int64."""

    size: Size


@record()
class Number(Passed):
    """A number that is known, of a dtype."""

    value: float
    dtype: str


@record()
class Given(Passed):
    """A scalar, by value."""

    node: Node


@record()
class Whole(Passed):
    """A contiguous array: its address."""

    node: Node


@record()
class Strided(Passed):
    """A part of what lies in memory: the address of its first element, then for each of `axes` how many elements one
    stands after the other along it; 0 for None."""

    node: Node
    axes: tuple[int | None, ...]


@record()
class Result(Passed):
    """Where the result at a position goes, which is contiguous: its address, then the strides of `axes`; 0 for None."""

    position: int = 0
    axes: tuple[int | None, ...] = ()


@record()
class Workspace(Passed):
    """Memory that the function uses while it runs: its address. `shape` are its sizes."""

    dtype: str
    shape: tuple[Size, ...]


@record()
class Factor(Passed):
    """What the old elements of the result are multiplied by, to which the function adds."""
