"""The plan of a kernel as data: nests in order, where materialised values live and why.

In: nodes, sizes, loop variables. Out: records, and what they say of a node's loops and indices. `schedule` makes plans,
`lower` and `program` read them, listing.py writes them for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from graphc.arrays.dtypes import can_cast_safely
from graphc.codegen.call.interrupt import POLLED
from graphc.codegen.schedule.labels import Labels, labels_of
from graphc.codegen.schedule.memory import Slot
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.body import ITEM
from graphc.ir.lowering import Call, Fold, Scalar, SegmentNumber
from graphc.ir.node import LEAVES, PARAM, SIZE, Guard, Index, Laws, Node, Op, Size, constant_value
from graphc.ir.walk import nodes_of
from graphc.loopir.ir import INDEX, ZERO, Buffer, Const, Expr, Opaque, Var, subexpressions
from graphc.ops.index import never_negative
from graphc.ops.scan import Loop
from graphc.startup.record import fresh, record, replace

COPY = Op(
    "copy",
    infer=lambda args, attrs: args[0].type,
    eval=lambda node, value: value.copy(),
    lower=lambda node: Scalar("_0"),
    laws=Laws(),
    cost=0.0,
    doc="A second copy of a value, made by the scheduler for a second place it goes to.",
)


MOST_AXES = 64
"""Loop variables reserved: NumPy has no arrays of more axes."""


Kind: TypeAlias = Literal[
    "loops",
    "column reduction",
    "full reduction",
    "recurrence",
    "segments",
    "writes",
    "call",
    "check",
    "guard",
    "steps",
    "branch",
]
"""How a nest is carried out: elementwise; a reduction that adds rows into its result; one of all elements, to a scalar;
a recurrence; sums of segments; several writes; an external function; a check of indices; one of two numbers; the steps
of a loop; one of two bodies."""


@record()
class Use:
    """An element wanted of a node: in which nest, at which index, inside which loops (outermost first)."""

    nest: int
    index: Index
    path: tuple[Var, ...]


@record()
class Place:
    """Where a materialised value lives: a buffer, or a local name (`buffer` None) for a scalar. `reason` says why."""

    buffer: Buffer | None
    reason: str


def index_of(variables: Sequence[Var], space: Sequence[Size]) -> Index:
    """The index of the element at hand: the loops' variables, 0 where a loop has one iteration."""
    return tuple(ZERO if size == 1 else var for var, size in zip(variables, space, strict=True))


@record()
class Nest:
    """One loop nest, or one external call. `roots` are the values it stores, `space` the sizes of its loops."""

    number: int
    kind: Kind
    space: tuple[Size, ...]
    vars: tuple[Var, ...]
    roots: tuple[Node, ...]
    in_place: bool = False
    """An operand's buffer, the first of writes and products, is the result's: it is changed in place, not copied."""
    ops: int = 0
    """Ops of an iteration of the innermost loop."""
    segments: Node | None = None
    """The numbers of segments that are known where its first loop is one over segments and the positions of each."""

    @property
    def index(self) -> Index:
        return index_of(self.vars, self.space)


@record()
class Rows:
    """A loop that several nests share, with `depth` others around it: each iteration carries out the parts one by
    one. It may go by blocks of `block` iterations, before each of which a function makes the rows that they read."""

    depth: int
    var: Var
    size: Size
    body: tuple[Part, ...]
    makes: Nest | None = None
    block: Size = 1


Part: TypeAlias = "Nest | Rows"


@record(frozen=False)
class Draft:
    """A nest while it is being planned."""

    number: int
    kind: Kind
    space: tuple[Size, ...]
    vars: tuple[Var, ...]
    roots: list[Node] = fresh(factory=list)
    ops: int = 0
    cost: float = 0.0
    in_place: bool = False
    scattered: bool = False
    """Whether elements are written to places that do not follow one another."""
    segments: Node | None = None
    """The numbers of segments that its first loop goes over."""
    open: set[Node] = fresh(factory=set)
    """What it needs of values that are yet to be computed, in it or in another nest."""
    index: Index = ()
    path: tuple[Var, ...] = ()
    """The loops of more than one iteration."""

    def __post_init__(self) -> None:
        self.index = index_of(self.vars, self.space)
        self.path = tuple(part for part in self.index if isinstance(part, Var))

    def nest(self) -> Nest:
        """The nest as it is planned so far."""
        roots = tuple(sorted(self.roots, key=lambda node: node.serial))
        return Nest(self.number, self.kind, self.space, self.vars, roots, self.in_place, self.ops, self.segments)


@record()
class Bound:
    """An index array whose elements must lie within an axis: checked before the nest that gathers."""

    index: Node
    size: Size
    gather: Node


@record()
class StepGraph:
    """One step of a loop as a graph over variables that stand for what it is given.

    `number`: the size leaf that is the number of the step; `most`: how many steps there are at most. `sources`: for
    variables that stand for what lies in memory, the value that has the buffer; `scalars`: for others the scalars;
    `states`: the variables that stand for states. `results`: the next states, an element of each output, whether it is
    the last step where the loop says so. `guarded`: what must hold in every step, by the node it is needed for. `work`:
    of a step (work.py).
    """

    node: Node
    loop: Loop
    number: Node
    most: Size
    row: Size
    sources: Mapping[Node, Node]
    scalars: Mapping[Node, Node]
    states: tuple[Node, ...]
    results: tuple[Node, ...]
    guarded: Mapping[Node, tuple[Guard, ...]]
    work: Size

    @property
    def is_short(self) -> bool:
        """Whether all steps together are known to take little time."""
        count = sizes.as_size(self.loop.count)
        return isinstance(count, int) and isinstance(self.work, int) and count * self.work < POLLED

    @property
    def interval(self) -> Size:
        """After how many steps a loop asks whether its call must end."""
        if isinstance(self.work, int):
            return 1 << max(POLLED // self.work, 1).bit_length() - 1
        return sizes.maximum(sizes.floor_divide(POLLED, self.work), 1)


@record()
class Steps:
    """A loop: the plan of one step, its variable, and the values whose rows the steps write. `stop` is the buffer for
    whether a step is the last."""

    graph: StepGraph
    plan: Plan
    var: Var
    rows: Mapping[Node, Node]
    stop: Buffer | None


@record()
class Purpose:
    """What a plan is for: a "kernel", a "step" of a loop, or a "branch". `guarded`: what must hold before a value may
    be computed; `checks`: what else is checked."""

    of: str
    guarded: Mapping[Node, Sequence[Guard]] = fresh(factory=dict)
    checks: Sequence[Guard] = ()


Range: TypeAlias = "tuple[Size | None, Size | None]"
"""The least and the most of some values; None where it is not known."""
Ranges: TypeAlias = Mapping[Node, Range]


@record()
class Around:
    """What a kernel and the bodies within it are planned with. `leaves`, `size_names`: what buffers of leaves and sizes
    are called in the source. `fresh` gives names to temporaries, `labels` to values. `ranges`: what is known of leaves
    (extremes.py). `free`: memory of bodies that never run at the same time."""

    sizing: Sizing
    leaves: Mapping[Node, str]
    size_names: Mapping[Node, str]
    fresh: Callable[[str], str]
    labels: Labels
    ranges: Ranges
    free: Sequence[Slot] = ()

    def within(self, results: Sequence[Node], leaves: Mapping[Node, str], sizes: Mapping[Node, str] = {}) -> Around:
        """The same for a body that has these results, over these variables and sizes besides."""
        assigned = {**self.labels.assigned, **labels_of(nodes_of(results)).assigned}
        return replace(
            self,
            leaves={**self.leaves, **leaves},
            size_names={**self.size_names, **sizes},
            labels=replace(self.labels, assigned=assigned),
        )


@record()
class Side:
    """One body of a branch over the variables that stand for what both are given: its results, and what must hold
    before anything is computed, in order."""

    results: tuple[Node, ...]
    checks: tuple[Guard, ...]


@record()
class BranchGraph:
    """Both bodies of a branch; `sources` and `scalars` are those of a `StepGraph`."""

    node: Node
    sources: Mapping[Node, Node]
    scalars: Mapping[Node, Node]
    sides: tuple[Side, Side]


@record()
class Branches:
    """A branch, with the plans of its two bodies: of each those of checks in turn, then of what it computes."""

    graph: BranchGraph
    plans: tuple[tuple[Plan, ...], tuple[Plan, ...]]


@record()
class Plan:
    """`parts` in the order in which they run."""

    parts: tuple[Part, ...]
    places: Mapping[Node, Place]
    leaves: Mapping[Node, Buffer]
    arena: tuple[Slot, ...]
    """Where temporaries lie, and which of them share memory."""
    iterations: Mapping[Buffer, Size]
    """How many iterations the loops have at most that add into a buffer."""
    bounds: Mapping[int, Bound]
    """For each nest of kind check: what it checks."""
    depths: Mapping[Node, int]
    """For a value that is made and read in the same iterations of its first loops: how many these are. Its buffer holds
    the rest, one row."""
    apart: Mapping[int, tuple[int, str]]
    """For a nest: another before it over the same sizes, and why they share no loop."""
    workspaces: Mapping[Node, tuple[Buffer, ...]]
    """What the functions that compute nodes use while they run."""
    accumulators: Mapping[Node, Buffer]
    """The temporary in which a reduction is carried whose result has a narrower dtype, and a row of a recurrence over
    other than the last axis."""
    in_place: Mapping[str, str]
    """Buffers of shared variables and inputs that are written -> how."""
    deferred: frozenset[str]
    """Those of them whose new value is computed elsewhere first, and copied at the end."""
    sizing: Sizing
    labels: Labels
    guards: Mapping[int, Guard]
    """For each nest of kind guard: what must hold."""
    loops: Mapping[int, Steps]
    """For each nest of kind steps: the loop."""
    branches: Mapping[int, Branches]
    """For each nest of kind branch: its bodies."""
    readers: Mapping[Node, frozenset[int]]
    """For each result of a loop the nests that read it."""
    blocks: Mapping[Node, Size]
    """For each result of a function of which there is memory for some rows only: for how many."""
    lines: tuple[str, ...]
    """The plan as a person reads it."""

    @property
    def nests(self) -> tuple[Nest, ...]:
        return tuple(nest for part in self.parts for nest in nests_of(part))


def nests_of(part: Part) -> tuple[Nest, ...]:
    """The nests of a part, in order."""
    if isinstance(part, Nest):
        return (part,)
    made = () if part.makes is None else (part.makes,)
    return (*made, *(nest for inner in part.body for nest in nests_of(inner)))


def lowering_of(node: Node) -> object:
    """How a node becomes loops; None of a leaf."""
    return None if node.op in LEAVES else node.op.lower(node)


def called(node: Node) -> Node:
    """What a call computes all results of: the node itself, or the one whose item it is."""
    return node.args[0] if node.op is ITEM else node


def call_of(node: Node) -> Call | None:
    """The external function that computes a node."""
    lowering = lowering_of(called(node))
    return lowering if isinstance(lowering, Call) else None


def is_product(node: Node) -> bool:
    """Whether a function computes a node that may add to its result."""
    call = call_of(node)
    return call is not None and call.is_product


def call_fails(node: Node) -> bool:
    """Whether a function computes a node that may say that it failed."""
    call = call_of(node)
    return call is not None and call.may_fail


def is_bufferless(leaf: Node) -> bool:
    """Whether a leaf is written into the source: a size, a scalar that a body is given, or a constant of one
    element."""
    value = constant_value(leaf)
    return leaf.op in (SIZE, PARAM) if value is None else value.size == 1


def variables_of(exprs: Iterable[Expr]) -> set[Var]:
    found: set[Var] = set()
    for expr in exprs:
        if isinstance(expr, Var):  # as most indices are
            found.add(expr)
        elif not isinstance(expr, Const):
            found.update(part for part in subexpressions(expr) if isinstance(part, Var))
    return found


def loop_vars(count: int) -> tuple[Var, ...]:
    """i, j, k, l for up to four loops, numbered beyond."""
    return tuple(Var("ijkl"[n] if n < 4 else f"i{n}", INDEX) for n in range(count))


def fold_vars(node: Node, fold: Fold) -> tuple[Var, ...]:
    """The loop variables of an inline reduction: the same ones whenever the node is asked."""
    return tuple(Var(f"r{node.serial}_{axis}", INDEX) for axis in range(len(fold.sizes(node))))


def segment_count(starts: Node) -> Size:
    """The number of segments that begin and end at the elements of a vector."""
    return sizes.subtract(starts.type.shape[0], 1)


def segment_var(node: Node) -> Var:
    """The loop variable over the rows of a segment."""
    return Var(f"r{node.serial}", INDEX)


def is_by_segment(place: Expr) -> bool:
    """Whether a place follows from the number of a segment."""
    nodes = (part.of for part in subexpressions(place) if isinstance(part, Opaque) and isinstance(part.of, Node))
    return any(isinstance(lowering_of(node), SegmentNumber) for node in nodes)


def first_reduced(node: Node) -> int:
    """The outermost loop over a reduction's operand that is reduced."""
    fold = lowering_of(node)
    assert isinstance(fold, Fold)
    return fold.axes[0] if node.ndim else 0


MOST_UNROLLED = 4
"""Iterations of a loop that is written out one by one, where their number is known."""


def unrolls(iterations: Sequence[Size | None]) -> bool:
    """Whether loops of these numbers of iterations, where they are known, are written out one by one."""
    count = 1
    for size in iterations:
        if not isinstance(size, int):
            return False
        count *= size
    return 0 < count <= MOST_UNROLLED


def split_axes(loops: Index, reduced: Sequence[int]) -> tuple[Index, Index]:
    """The loops over an operand as (kept axes, reduced axes)."""
    return (
        tuple(var for axis, var in enumerate(loops) if axis not in reduced),
        tuple(var for axis, var in enumerate(loops) if axis in reduced),
    )


def reach(index: Index, path: tuple[Var, ...]) -> tuple[Var, ...]:
    """The loops that enclose the computation of an element at `index`: those down to the innermost it depends on."""
    wanted = variables_of(index)
    inside = [position for position, var in enumerate(path) if var in wanted]
    return path[: inside[-1] + 1] if inside else ()


def nowhere(count: int) -> Index:
    """An index of `count` axes that stands for any."""
    return tuple(ZERO for _ in range(count))


def gathered(node: Node) -> list[tuple[Node, Size]]:
    """The index arrays of a gather or scatter, each with the size of the axis it indexes."""
    if node.op.name not in ("gather", "set_gather", "inc_gather"):
        return []
    axis = node.attrs["axis"]
    indices = node.args[1:] if node.op.name == "gather" else node.args[2:]
    return [(index, node.args[0].type.shape[axis + n]) for n, index in enumerate(indices)]


def in_range(index: Node, size: Size, sizing: Sizing) -> bool:
    """Whether every element of an index array is known to lie within an axis."""
    while index.op.name in ("dimshuffle", "broadcast_to", "reshape", "stop_gradient") or (
        index.op.name == "cast" and can_cast_safely(index.args[0].dtype, index.dtype)
    ):
        index = index.args[0]
    value = constant_value(index)
    if value is not None and isinstance(size, int):
        return bool(((value >= -size) & (value < size)).all())
    if index.op.name == "iota" and sizes.equal(sizing.of(sizes.as_size(index.args[0])), size):
        return True
    if index.op.name == "segment_of" and sizes.equal(sizing.of(segment_count(index.args[0])), size):
        return True
    most = _most(index, sizing)
    return most is not None and never_negative(index) and sizes.known_at_least(size, sizes.add(most, 1))


def _most(index: Node, sizing: Sizing) -> Size | None:
    """What no element of a sum of positions and sizes is above; None where that is not known."""
    total: Size = 0
    pending = [index]
    while pending:
        node = pending.pop()
        value = constant_value(node)
        if value is not None:
            total = sizes.add(total, int(value.max()) if value.size else 0)
        elif node.dtype != "int64":
            return None
        elif node.op.name == "add":
            pending.extend(node.args)
        elif node.op.name in ("dimshuffle", "broadcast_to", "reshape"):
            pending.append(node.args[0])
        elif node.op.name == "iota":
            total = sizes.add(total, sizes.add(sizing.of(sizes.as_size(node.args[0])), -1))
        elif node.ndim == 0 and sizes.known_nonnegative(node):
            total = sizes.add(total, sizing.of(node))
        else:
            return None
    return total
