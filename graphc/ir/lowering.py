"""How ops become loops: the kinds of which an op's `lower` gives one for a node.

In: nodes, sizes, bodies. Out: records of functions, which take the node, then the index of the wanted element.
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

    `index(node, index, element)` gives the argument's position and index; `element(node, index)` gives an element of
    another argument, for an index that is data (a gather) or a start that is computed.
    """

    index: Callable[[Node, Index, Element], tuple[int, Index]]


@record()
class Fold(Lowering):
    """The element is an accumulation over `axes` of size `sizes(node)`.

    `operands(node, index, reduced)` lists the arguments' elements that make a term; `term` is its template. Each
    accumulator starts as a literal and goes on as `step` over (`_0` the accumulators first, then the term, then the
    flat position within the reduced axes); the result is accumulator number `result`. The term has the dtype of the
    last accumulator. Steps are taken in iteration: each sees what the ones before it have set.
    """

    sizes: Callable[[Node], tuple[Size, ...]]
    operands: Callable[[Node, Index, Index], Sequence[tuple[int, Index]]]
    term: str
    start: tuple[str, ...]
    step: tuple[str, ...]
    dtypes: tuple[str, ...]
    result: int = 0
    axes: tuple[int, ...] = ()
    """Positions of the reduced axes among the axes of the first operand: decides the order of the loops."""
    search: str = ""
    """Of a search for the first position of an extreme, whose accumulators are that position and that extreme: the step
    of the extreme alone. A block of terms may then be searched as if it were one term, its extreme."""


@record()
class Recur(Lowering):
    """The elements along `axis` come one after the other, each from a carry that the ones before have left.

    The arguments have the result's sizes, or are scalars, over which (`_0` the first) the carry starts as `start`. It
    has `dtype`. In every iteration `value` is the result's element, over (`_0` the carry, then the arguments'
    elements), and `carry` the next carry, over (`_0` the carry, `_1` that value in the carry's dtype, then the
    arguments' elements). `reverse`: from the last element to the first. `apart`: an iteration is so short that the
    arguments are computed before, by vectors.
    """

    axis: int
    start: str
    value: str
    carry: str
    dtype: str
    reverse: bool = False
    apart: bool = False


@record()
class Write:
    """One region of a stored result: for every index within `sizes`, result[target(index)] = (or +=) a value.

    `value` is (argument position, its index). `copies` marks the region that only copies an argument of the result's
    own shape: it is left out where that argument's buffer is taken over.
    """

    sizes: tuple[Size, ...]
    target: Callable[[Index, Element], Index]
    value: Callable[[Index], tuple[int, Index]]
    accumulate: bool = False
    copies: bool = False


@record()
class Writes(Lowering):
    """The result is stored by these regions in turn."""

    regions: Callable[[Node], Sequence[Write]]


class Passed:
    """What an external function is given: one of the records of call.py."""

    __slots__ = ()


def _no_loops(node: Node) -> int:
    return 0


@record()
class ByRows:
    """A function that may compute some rows of its result at a time: `moving` are the operands of which each row of
    the result needs the same row, `besides` how many elements it handles besides, as often as it is called."""

    moving: tuple[Node, ...]
    besides: Size


def _all_rows(node: Node) -> ByRows | None:
    return None


@record()
class Segments(Lowering):
    """The element at (i, ...) is the sum of the first argument's at (p, ...) for p from starts[i] up to starts[i + 1],
    elements of the second one, carried in `dtype`."""

    dtype: str


@record()
class SegmentNumber(Lowering):
    """The element at p is the number of the segment that p lies in: these begin at the elements of the first argument.
    A loop over all p in order goes over the segments, and over the positions of each."""


@record()
class Call(Lowering):
    """The results are stored by an external function, `symbol(node)`, which is given what `passed(node)` lists. Its
    status is 0, or says that it failed: `statuses` tells what 1, 2, … mean to the user.

    loops(node): over how many of the first axes of the results loops go around the call, which is then given what is
    behind the first elements of these. work(node): sizes whose product is the number of additions. overwritten: the
    positions of an operand and of a result that may lie in the same place. is_product: it adds to what stands
    in the result, times `Factor`; added(node): the operand that is to be brought there first, and what that is
    multiplied by. is_python: it calls back into Python, is named by whoever writes the call, and may raise anything.
    by_rows(node): whether it may compute some rows at a time; what is passed first is then how many.
    """

    symbol: Callable[[Node], str]
    passed: Callable[[Node], Sequence[Passed]]
    work: Callable[[Node], Sequence[Size]]
    statuses: tuple[str, ...] = ()
    loops: Callable[[Node], int] = _no_loops
    overwritten: tuple[int, int] | None = None
    is_product: bool = False
    added: Callable[[Node], tuple[Node, Node] | None] = lambda node: None
    is_python: bool = False
    by_rows: Callable[[Node], ByRows | None] = _all_rows

    @property
    def may_fail(self) -> bool:
        """Whether it may say that it failed."""
        return self.is_python or bool(self.statuses)


@record()
class Iota(Lowering):
    """The element is its own index along `axis`."""

    axis: int = 0


@record()
class Part(Lowering):
    """A result of an op that has several: it is stored by what carries out that op."""

    position: int


@record()
class Repeat(Lowering):
    """The results come from a body that is carried out step by step (ops/scan.py has the meaning of the fields)."""

    body: Body
    sequences: int
    carries: int
    reverse: bool
    until: bool
    limited: bool


@record()
class Branch(Lowering):
    """The results come from one of two bodies over the same parameters, which a condition chooses
    (ops/branch.py)."""

    then: Body
    orelse: Body


# --- call -------------------------------------------------------------------------------------------------------------
# External functions as data: what one is given, in its order, and what its status means.
#
# In: nodes and sizes. Out: records of what is passed, of which the `Call` of an op lists those that its function
# takes. Whoever plans and writes calls knows of these records only; what there are for functions the ops tell.


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
