"""The plan of a kernel as data: nests of loops in order, where values lie, and the reason of every decision.

In: nodes, sizes, loop variables. Out: records. `schedule` makes plans, verify.py checks them, `lower` writes them as
loops, and listing.py prints them. As an example, of `out = (x - x.mean(axis=1, keepdims=True)).sum(axis=0)` for a
matrix `x` the plan has one part, a loop over the rows of `x` that two nests share:

    SharedLoop(depth=0, var=i, size=x_0, body=(
        Nest(0, "loops", space=(x_0, 1), roots=(mean,)),
        Nest(1, "column reduction", space=(x_0, x_1), roots=(out,)),
    ))

`plan.memory.buffers[out]` is the buffer `out`; `mean` is made and read in one iteration of the shared loop
(`plan.memory.row_depths[mean] == 2`), so it is a local name without a buffer; `plan.reasons.materialised[mean]` says
"used inside loops it does not depend on".
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from graphc.codegen.call.callback import POLLED
from graphc.codegen.schedule.memory import Slot
from graphc.codegen.schedule.nodes import index_of
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.lowering import Scalar
from graphc.ir.node import LEAVES, Guard, Index, Laws, Node, Op, Size, Where
from graphc.ir.walk import nodes_of
from graphc.loopir.ir import Buffer, Var
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


# What values are called -----------------------------------------------------------------------------------------------

ASSIGNMENT = re.compile(r"([^\W\d]\w*)\s*(?::[^=]*)?[-+*/@]?=(?!=)(?!.*\bfunction\()")
LONGEST_LINE = 96


@record()
class Labels:
    """The names of values and the lines that made them, for the reader of plans and of generated source. `assigned`:
    the name that the user's program gives to a node, for the last node that its line makes."""

    assigned: Mapping[Node, str] = fresh(factory=dict)

    def __call__(self, node: Node) -> str:
        """The user's name of a node, or that of its op; of one of several results, that of what gives them."""
        named = node.name or self.assigned.get(node)
        if named is None and node.op.name == "item":
            return self(node.args[0])
        return named or node.op.name

    def joined(self, nodes: Iterable[Node]) -> str:
        """One word for several nodes, in which each name stands once."""
        return "_".join(dict.fromkeys(map(self, nodes)))

    def origin(self, nodes: Iterable[Node]) -> str:
        """The lines that made nodes, as they stand in the program."""
        return "\n".join(dict.fromkeys(self.line(node) for node in nodes))

    def line(self, node: Node) -> str:
        """The line that made a node, as it stands in the program; its label where no line is known."""
        if node.where is None:
            return self(node)
        text = _source(node.where)
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE]} ..."
        return f"{node.where}: {text or self(node)}"


UNLABELLED = Labels()


def labels_of(order: Iterable[Node]) -> Labels:
    """The labels of nodes that come in the order in which they are computed."""
    last = {(node.where.file, node.where.line): node for node in order if node.where and node.op not in LEAVES}
    found = ((node, ASSIGNMENT.match(_source(node.where))) for node in last.values() if node.where is not None)
    return Labels({node: match[1] for node, match in found if match is not None})


def _source(where: Where) -> str:
    """A line of a program, "" where it is not to be had."""
    return linecache.getline(where.file, where.line).strip()


# Nests ----------------------------------------------------------------------------------------------------------------

NestKind: TypeAlias = Literal[
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
"""The way in which a nest is carried out: elementwise; a reduction that adds rows into its result; one of all elements,
to a scalar; a recurrence; sums of segments; several writes; an external function; a check of indices; one of two
numbers; the steps of a scan; one of two bodies."""


@record()
class Use:
    """An element of a value that a nest needs: the nest, the index, and the loops around it (outermost first)."""

    nest: int
    index: Index
    path: tuple[Var, ...]


@record()
class Nest:
    """One loop nest, or one external call. `roots` are the values it stores, `space` the sizes of its loops."""

    number: int
    kind: NestKind
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
        """The index of the element that an iteration of all loops computes."""
        return index_of(self.vars, self.space)


@record()
class SharedLoop:
    """A loop that several nests share, with `depth` others around it: each iteration carries out the parts of `body`
    in order. Where it has a `producer`, it goes by blocks of `block` iterations: before each block that nest, a call,
    computes the rows that the block reads."""

    depth: int
    var: Var
    size: Size
    body: tuple[Part, ...]
    producer: Nest | None = None
    block: Size = 1


Part: TypeAlias = "Nest | SharedLoop"


def nests_of(part: Part) -> tuple[Nest, ...]:
    """The nests of a part, in order."""
    if isinstance(part, Nest):
        return (part,)
    producer = () if part.producer is None else (part.producer,)
    return (*producer, *(nest for inner in part.body for nest in nests_of(inner)))


@record(frozen=False)
class NestDraft:
    """A nest while it is being planned."""

    number: int
    kind: NestKind
    space: tuple[Size, ...]
    vars: tuple[Var, ...]
    roots: list[Node] = fresh(factory=list)
    ops: int = 0
    cost: float = 0.0
    in_place: bool = False
    scattered: bool = False
    """Elements are written to positions that do not follow one another."""
    segments: Node | None = None
    """The numbers of segments that its first loop goes over."""
    undecided: set[Node] = fresh(factory=set)
    """The values that it needs of which it is not decided yet whether it computes them or reads them."""
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


# What nests of some kinds carry out -----------------------------------------------------------------------------------


@record()
class IndexCheck:
    """An index array whose elements must lie within an axis of `size`: checked before `gather` is computed. bounds: of
    the elements; where they lie within the axis no element is looked at."""

    index: Node
    size: Size
    gather: Node
    bounds: tuple[Size, Size] | None = None


@record()
class ScanGraph:
    """One step of a scan as a graph over variables that stand for what it takes from outside.

    `number`: the size leaf that is the number of the step; `most`: how many steps there are at most. `sources`: for
    variables that stand for what lies in memory, the value that has the buffer; `scalars`: for others the scalars;
    `states`: the variables that stand for states. `results`: the next states, an element of each output, whether it is
    the last step where the scan says so. `guarded`: what must hold in every step, by the node it is needed for.
    `work`: of a step (cost.py).
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
        """Tell whether all steps together are known to take little time."""
        count = sizes.as_size(self.loop.count)
        return isinstance(count, int) and isinstance(self.work, int) and count * self.work < POLLED

    @property
    def interval(self) -> Size:
        """The number of steps after which a scan asks whether its call must end."""
        if isinstance(self.work, int):
            return 1 << max(POLLED // self.work, 1).bit_length() - 1
        return sizes.maximum(sizes.floor_divide(POLLED, self.work), 1)


@record()
class ScanPlan:
    """A scan: the plan of one step, its loop variable, and for values of the body whose row a step writes the output.
    `stop` is the buffer for whether a step is the last."""

    graph: ScanGraph
    plan: Plan
    var: Var
    rows: Mapping[Node, Node]
    stop: Buffer | None


@record()
class BranchBody:
    """One body of a branch over the variables that stand for what both take from outside: its results, and what must
    hold before anything is computed, in order."""

    results: tuple[Node, ...]
    checks: tuple[Guard, ...]


@record()
class BranchGraph:
    """Both bodies of a branch; `sources` and `scalars` are those of a `ScanGraph`."""

    node: Node
    sources: Mapping[Node, Node]
    scalars: Mapping[Node, Node]
    sides: tuple[BranchBody, BranchBody]


@record()
class BranchPlan:
    """A branch, with the plans of its two bodies: of each those of checks in turn, then of what it computes."""

    graph: BranchGraph
    plans: tuple[tuple[Plan, ...], tuple[Plan, ...]]


# Plans ----------------------------------------------------------------------------------------------------------------


@record()
class Purpose:
    """The purpose of a plan: a "kernel", a "step" of a scan, or a "branch". `guarded`: what must hold before a value
    may be computed; `checks`: what else is checked."""

    of: str
    guarded: Mapping[Node, Sequence[Guard]] = fresh(factory=dict)
    checks: Sequence[Guard] = ()


Range: TypeAlias = "tuple[Size | None, Size | None]"
"""The least and the most of some values; None where it is not known."""
Ranges: TypeAlias = Mapping[Node, Range]


@record()
class Context:
    """The surroundings in which a kernel, or a body within it, is planned. `leaves`, `size_names`: the names in the
    source of the buffers of leaves, and of sizes. `fresh` gives names to temporaries, `labels` to values. `ranges`: the
    ranges of leaves (bodies.py). `free`: memory of bodies that never run at the same time."""

    sizing: Sizing
    leaves: Mapping[Node, str]
    size_names: Mapping[Node, str]
    fresh: Callable[[str], str]
    labels: Labels
    ranges: Ranges
    free: Sequence[Slot] = ()

    def within(self, results: Sequence[Node], leaves: Mapping[Node, str], sizes: Mapping[Node, str] = {}) -> Context:
        """The same for a body that has these results, over these variables and sizes besides."""
        assigned = {**self.labels.assigned, **labels_of(nodes_of(results)).assigned}
        return replace(
            self,
            leaves={**self.leaves, **leaves},
            size_names={**self.size_names, **sizes},
            labels=replace(self.labels, assigned=assigned),
        )


@record()
class PlanMemory:
    """The memory of values. `buffers`: of materialised values; one that has none is a local name. `leaves`: the buffers
    of inputs, shared variables, constants, and of what a body takes from outside."""

    buffers: Mapping[Node, Buffer]
    leaves: Mapping[Node, Buffer]
    arena: tuple[Slot, ...]
    """The memory of temporaries, which those share that never live at the same time."""
    iterations: Mapping[Buffer, Size]
    """For a buffer that loops add into: how many iterations these have at most."""
    row_depths: Mapping[Node, int]
    """For a value that is made and read in the same iteration of its first loops: how many these are. Its buffer holds
    the rest, one row."""
    block_rows: Mapping[Node, Size]
    """For a result of a call of which there is memory for some rows only: for how many."""
    accumulators: Mapping[Node, Buffer]
    """The temporary in which a reduction is carried whose result has a narrower dtype, and a row of a recurrence over
    other than the last axis."""
    workspaces: Mapping[Node, tuple[Buffer, ...]]
    """The memory that a call needs while it runs, by the node that it computes."""
    overwritten: Mapping[str, Node]
    """Buffers of shared variables and inputs to which results go, with the leaf whose value is there before."""
    deferred: frozenset[str]
    """Updated variables whose new value is computed elsewhere first, and copied at the end."""

    @property
    def all_buffers(self) -> tuple[Buffer, ...]:
        """The buffers of leaves, of values, and of the arena."""
        return (*self.leaves.values(), *self.buffers.values(), *(slot.buffer for slot in self.arena))


@record()
class NestContents:
    """The tasks of nests of some kinds, by their number: index checks of those of kind "check", comparisons of kind
    "guard", scans of kind "steps", branches of kind "branch"."""

    checks: Mapping[int, IndexCheck]
    guards: Mapping[int, Guard]
    scans: Mapping[int, ScanPlan]
    branches: Mapping[int, BranchPlan]


@record()
class Reasons:
    """The reason of each decision, for the reader of a plan."""

    materialised: Mapping[Node, str]
    """For every value that a nest stores: why it is not recomputed at each use."""
    not_shared: Mapping[int, tuple[int, str]]
    """For a nest: another before it over the same sizes, and why the two share no loop."""
    written: Mapping[str, str]
    """For a buffer that is there before the call, or the body: how it gets its new value."""
    readers: Mapping[Node, frozenset[int]]
    """For each result of a scan or branch the nests that read it: why it is kept."""


@record()
class Plan:
    """The plan of a kernel or of a body. `of`: which of these, as in `Purpose`; `parts`: in the order in which they
    run; `size_names`: of sizes, in the source."""

    of: str
    parts: tuple[Part, ...]
    memory: PlanMemory
    contents: NestContents
    sizing: Sizing
    labels: Labels
    size_names: Mapping[Node, str]
    reasons: Reasons

    @property
    def nests(self) -> tuple[Nest, ...]:
        """All nests in the order in which an iteration of the loops around them carries them out."""
        return tuple(nest for part in self.parts for nest in nests_of(part))
