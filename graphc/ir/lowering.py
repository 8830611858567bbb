"""Lowering of ops to loops, as data: an op's `lower(node)` returns one of these records.

In: nodes, sizes, bodies. Out: records whose functions take the node and the index of the wanted element:

    add             Scalar("_0 + _1")                   an element from the arguments' elements at the same index
    dimshuffle      View(index=...)                     one argument's element at another index
    sum             Fold(start=("0.0",), step=("_0 + _1",), ...)      a reduction
    matmul          Call(symbol=..., passed=[...])      an external function that fills whole results
    scan, cond      Repeat(body, ...), Branch(then, orelse)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from graphc.ir.node import Body, Index, Lowering, Node, Size
from graphc.startup.record import record

if TYPE_CHECKING:
    from graphc.loopir.ir import Expr


Element: TypeAlias = "Callable[[Node, Index], Expr]"


@record()
class Scalar(Lowering):
    """The element is a Python expression of the arguments' elements at the same index: holes `_0`, `_1`, …"""

    template: str


@record()
class View(Lowering):
    """The element is one argument's element at another index.

    `index(node, index, element)` returns the argument's position and index. `element(node, index)` is an element of
    another argument, for an index that is data (a gather) or a computed start.
    """

    index: Callable[[Node, Index, Element], tuple[int, Index]]


@record()
class Fold(Lowering):
    """The element is a reduction over `axes`, whose sizes are `sizes(node)`.

    `operands(node, index, reduced)` lists the elements of the arguments that form a term; `term` is its template. Each
    accumulator starts as a literal and is updated by `step` over (`_0` on: the accumulators, then the term, then the
    flat position within the reduced axes). Updates are simultaneous in order: each sees those before it. The result is
    accumulator number `result`. The term has the dtype of the last accumulator.
    """

    sizes: Callable[[Node], tuple[Size, ...]]
    operands: Callable[[Node, Index, Index], Sequence[tuple[int, Index]]]
    term: str
    start: tuple[str, ...]
    step: tuple[str, ...]
    dtypes: tuple[str, ...]
    result: int = 0
    axes: tuple[int, ...] = ()
    """Positions of the reduced axes among the axes of the first operand; they decide the loop order."""
    search: str = ""
    """For argmax and argmin, whose accumulators are (position, extreme): the update of the extreme alone. A block of
    terms may then be searched as one term, its extreme."""


@record()
class Recur(Lowering):
    """A recurrence along `axis`: each element is computed from a carry that the previous ones leave.

    The arguments have the result's sizes, or are scalars. The carry has `dtype` and starts as `start`, over the scalars
    (`_0` the first). In every iteration `value` is the result's element, over (`_0` the carry, then the arguments'
    elements), and `carry` the next carry, over (`_0` the carry, `_1` that value in the carry's dtype, then the
    arguments' elements). reverse: from the last element to the first. materialises: the iteration is so
    short that the arguments are materialised first, by vector loops.
    """

    axis: int
    start: str
    value: str
    carry: str
    dtype: str
    reverse: bool = False
    materialises: bool = False


@record()
class Write:
    """One region of a stored result: for every index within `sizes`, result[target(index)] = (or +=) a value.

    `value` is (argument position, its index). `is_copy` marks the region that copies an argument of the result's own
    shape; copy elision drops it when the result reuses that argument's buffer.
    """

    sizes: tuple[Size, ...]
    target: Callable[[Index, Element], Index]
    value: Callable[[Index], tuple[int, Index]]
    accumulate: bool = False
    is_copy: bool = False


@record()
class Writes(Lowering):
    """The result is stored by these regions, in order."""

    regions: Callable[[Node], Sequence[Write]]


class Passed:
    """One argument of an external function: one of the records below (Extent, Number, ByValue, Whole, Strided, Result,
    Workspace, Factor)."""

    __slots__ = ()


@record()
class ByRows:
    """A function that may compute some rows of its result at a time. moving: the operands of which it then needs the
    same rows. besides: the number of elements it reads on every call, for the cost of splitting."""

    moving: tuple[Node, ...]
    besides: Size


@record()
class Segments(Lowering):
    """The element at (i, ...) is the sum of the first argument's elements at (p, ...) for starts[i] <= p < starts[i +
    1], where `starts` is the second argument. The sum is accumulated in `dtype`."""

    dtype: str


@record()
class SegmentNumber(Lowering):
    """The element at p is the number of the segment that contains p; the first argument holds the segments' starts. A
    loop over all p becomes a loop over segments and, within it, over the positions of each."""


@record()
class Call(Lowering):
    """An external function, `symbol(node)`, stores the results. Its arguments are `passed(node)`. It returns a status:
    0, or a failure that `statuses` describes to the user (1, 2, …).

    loops(node): the number of leading axes of the results that loops go over, around the call. work(node): sizes whose
    product is the number of additions. overwritten: positions of an operand and a result that may alias. is_product: it
    adds to the result, times `Factor`; added(node): the operand to initialise the result with, and its factor.
    is_python: it calls back into Python, the writer of the call names it, and it may raise anything. by_rows(node): a
    `ByRows` if it may compute some rows at a time, whose number is then its first argument.
    """

    symbol: Callable[[Node], str]
    passed: Callable[[Node], Sequence[Passed]]
    work: Callable[[Node], Sequence[Size]]
    statuses: tuple[str, ...] = ()
    loops: Callable[[Node], int] = lambda node: 0
    overwritten: tuple[int, int] | None = None
    is_product: bool = False
    added: Callable[[Node], tuple[Node, Node] | None] = lambda node: None
    is_python: bool = False
    by_rows: Callable[[Node], ByRows | None] = lambda node: None

    @property
    def may_fail(self) -> bool:
        """True if the call may fail: it has statuses or runs Python."""
        return self.is_python or bool(self.statuses)


@record()
class Iota(Lowering):
    """The element is its own index along `axis`."""

    axis: int = 0


@record()
class Part(Lowering):
    """One result of an op that has several; the node of that op stores it."""

    position: int


@record()
class Repeat(Lowering):
    """The results come from a body that runs step by step (ops/scan.py documents the fields)."""

    body: Body
    sequences: int
    carries: int
    reverse: bool
    until: bool
    limited: bool


@record()
class Branch(Lowering):
    """The results come from one of two bodies over the same parameters; a condition selects it (ops/branch.py)."""

    then: Body
    orelse: Body


# --- arguments of external functions ----------------------------------------------------------------------------------
# `Call.passed` lists them in the order of the C signature. Planner and writer of calls know these records only.


SUFFIXES = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32"}
"""Suffixes of function names, by the dtype they compute in."""


@record()
class Extent(Passed):
    """A size, passed as int64."""

    size: Size


@record()
class Number(Passed):
    """A constant number of a dtype."""

    value: float
    dtype: str


@record()
class ByValue(Passed):
    """A scalar, passed by value."""

    node: Node


@record()
class Whole(Passed):
    """A contiguous array, passed by address."""

    node: Node


@record()
class Strided(Passed):
    """An array in memory: its address, then its stride in elements along each of `axes` (0 for None)."""

    node: Node
    axes: tuple[int | None, ...]


@record()
class Result(Passed):
    """Result number `position`, which is contiguous: its address, then its stride along each of `axes` (0 for None)."""

    position: int = 0
    axes: tuple[int | None, ...] = ()


@record()
class Workspace(Passed):
    """Scratch memory for the function's run: its address. `shape` gives its sizes."""

    dtype: str
    shape: tuple[Size, ...]


@record()
class Factor(Passed):
    """The factor of the old elements of the result, to which the function adds its product."""
