"""The plan of a kernel as data: nests of loops in order, where values lie, and the reason of every decision.

In: nodes, sizes, loop variables. Out: records. `schedule` makes plans, verify.py checks them, `lower` writes them as
loops, and `f.explain()` prints them. As an example, of `out = (x - x.mean(axis=1, keepdims=True)).sum(axis=0)` for a
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
from math import prod
from typing import Literal, TypeAlias

from graphc.arrays.dtypes import is_float, itemsize
from graphc.codegen.call.callback import POLLED
from graphc.codegen.schedule.nodes import Sizing, call_node, call_of, index_of, lowering_of
from graphc.ir import sizes
from graphc.ir.body import ITEM, items_of, outputs_of
from graphc.ir.lowering import Iota, Scalar, View
from graphc.ir.node import LEAVES, Guard, Index, Laws, Node, Op, Size, Where, constant_value, describe, describe_size
from graphc.ir.walk import nodes_of
from graphc.loopir import ir
from graphc.loopir.syntax import filled, text_of
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
    assignments = ((node, ASSIGNMENT.match(_source(node.where))) for node in last.values() if node.where is not None)
    return Labels({node: match[1] for node, match in assignments if match is not None})


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
    path: tuple[ir.Var, ...]


@record()
class Nest:
    """One loop nest, or one external call. `roots` are the values it stores, `space` the sizes of its loops."""

    number: int
    kind: NestKind
    space: tuple[Size, ...]
    vars: tuple[ir.Var, ...]
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
    var: ir.Var
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
    vars: tuple[ir.Var, ...]
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
    path: tuple[ir.Var, ...] = ()
    """The loops of more than one iteration."""

    def __post_init__(self) -> None:
        self.index = index_of(self.vars, self.space)
        self.path = tuple(part for part in self.index if isinstance(part, ir.Var))

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
    var: ir.Var
    rows: Mapping[Node, Node]
    stop: ir.Buffer | None


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
    may be computed; `checks`: what else is checked. `in_step`: a step, or a branch in one. What it overwrites are
    states, which end with the call: a check may fail after they have changed."""

    of: str
    guarded: Mapping[Node, Sequence[Guard]] = fresh(factory=dict)
    checks: Sequence[Guard] = ()
    in_step: bool = False


NOMINAL = 128
"""The number that stands for an unknown size when lengths are compared."""
Range: TypeAlias = "tuple[Size | None, Size | None]"
"""The least and the most of some values; None where it is not known."""
Ranges: TypeAlias = Mapping[Node, Range]


@record()
class Slot:
    """Memory of the arena for a buffer; `extents` are the dtypes and sizes that it has to hold, `rows` and `iterations`
    those of the values that it holds one row of at a time, or that loops add into."""

    buffer: ir.Buffer
    extents: tuple[tuple[str, tuple[Size, ...]], ...]
    rows: Size | None = None
    iterations: Size | None = None

    @property
    def is_plain(self) -> bool:
        """Tell whether it holds nothing but elements."""
        return self.rows is None and self.buffer.row is None and self.buffer.target is None

    @property
    def nominal_bytes(self) -> int:
        return max(nominal(*extent) for extent in self.extents)


def nominal(dtype: str, shape: Sequence[Size]) -> int:
    """The bytes of an array of this shape if every size that is not known were NOMINAL."""
    return itemsize(dtype) * prod(size if isinstance(size, int) else NOMINAL for size in shape)


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

    buffers: Mapping[Node, ir.Buffer]
    leaves: Mapping[Node, ir.Buffer]
    arena: tuple[Slot, ...]
    """The memory of temporaries, which those share that never live at the same time."""
    iterations: Mapping[ir.Buffer, Size]
    """For a buffer that loops add into: how many iterations these have at most."""
    row_depths: Mapping[Node, int]
    """For a value that is made and read in the same iteration of its first loops: how many these are. Its buffer holds
    the rest, one row."""
    block_rows: Mapping[Node, Size]
    """For a result of a call of which there is memory for some rows only: for how many."""
    accumulators: Mapping[Node, ir.Buffer]
    """The temporary in which a reduction is carried whose result has a narrower dtype, and a row of a recurrence over
    other than the last axis."""
    workspaces: Mapping[Node, tuple[ir.Buffer, ...]]
    """The memory that a call needs while it runs, by the node that it computes."""
    overwritten: Mapping[str, Node]
    """Buffers of shared variables and inputs to which results go, with the leaf whose value is there before."""
    deferred: frozenset[str]
    """Updated variables whose new value is computed elsewhere first, and copied at the end."""

    @property
    def all_buffers(self) -> tuple[ir.Buffer, ...]:
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


# --- a plan as a person reads it, for `f.explain()` -------------------------------------------------------------------
# In: a plan. Out: its lines. As an example, of `exp(x).sum()`:
#
#     nest 0: full reduction over [x_0]
#       sum: float64[] -> out: a result


def head_lines(plan: Plan, size: Callable[[Size], str]) -> Iterable[str]:
    """The lines of the checks of sizes, and of the temporaries."""
    for guard in plan.sizing.checks:
        yield f"require {size(guard.left)} {guard.relation} {size(guard.right)}"
    for slot in plan.memory.arena:
        extents = (f"{size(plan.sizing.of(sizes.product(shape)))} x {dtype}" for dtype, shape in slot.extents)
        yield f"temporary {slot.buffer.name}: {' or '.join(extents)}"


def bodies_of(plan: Plan, nest: Nest, size: Callable[[Size], str]) -> Iterable[tuple[str, Plan]]:
    """The plans within a nest, each with a name."""
    if nest.number in plan.contents.scans:
        scan = plan.contents.scans[nest.number]
        yield f"each of {size(scan.graph.most)} steps", scan.plan
    if nest.number in plan.contents.branches:
        for name, plans in zip(("then", "else"), plan.contents.branches[nest.number].plans, strict=True):
            yield name, plans[-1]


def lines_of(plan: Plan) -> Iterable[str]:
    """The lines of a plan, sizes under the names they have in the source; of a body without what is checked and laid
    out once."""

    def size(value: Size) -> str:
        return describe_size(value) if isinstance(value, int) else size_text(value, plan.size_names)

    if plan.of == "kernel":
        yield from head_lines(plan, size)
    numbers = {nest.number: count for count, nest in enumerate(plan.nests)}

    def lines(part: Part, pad: str) -> Iterable[str]:
        if isinstance(part, SharedLoop):
            if part.producer is not None:
                yield f"{pad}blocks of {size(part.block)} rows, while they are in cache:"
                pad += "  "
                yield from lines(part.producer, pad)
            yield f"{pad}rows: for each of {size(part.size)} in turn"
            yield from (line for inner in part.body for line in lines(inner, f"{pad}  "))
            return
        by = "" if part.segments is None else f" by segments of {plan.labels(part.segments.args[0])}"
        yield f"{pad}nest {numbers[part.number]}: {part.kind} over [{', '.join(map(size, part.space))}]{by}"
        if part.number in plan.reasons.not_shared:
            other, why = plan.reasons.not_shared[part.number]
            yield f"{pad}  apart from nest {numbers[other]}: {why}"
        if part.kind == "check":
            check = plan.contents.checks[part.number]
            limit = f"must lie within {size(check.size)}: the indices of {plan.labels(check.gather)}"
            yield f"{pad}  {plan.labels(check.index)} {limit}"
        for root in part.roots:
            name = plan.memory.buffers[root].name if root in plan.memory.buffers else ""
            written = plan.reasons.written
            how = f"; {written[name]}" if name in written else over_operand(part, root)
            type_text = f"{root.type.dtype}[{', '.join(map(size, plan.sizing.shape(root)))}]"
            where = name or "a local"
            if name and plan.memory.row_depths.get(root):
                where += f"[{', '.join(map(size, plan.sizing.shape(root)[plan.memory.row_depths[root] :]))}]"
            yield f"{pad}  {plan.labels(root)}: {type_text} -> {where}: {plan.reasons.materialised[root]}{how}"
        yield from (f"{pad}  {line}" for line in loop_lines(plan, part.number, numbers))
        for name, body in bodies_of(plan, part, size):
            yield f"{pad}  {name}:"
            yield from (f"{pad}    {line}" for line in lines_of(body))

    for part in plan.parts:
        yield from lines(part, "")


def over_operand(nest: Nest, root: Node) -> str:
    """The operand over which a result of a nest is computed, in words; "" where it is over none."""
    call = call_of(root)
    if not nest.in_place:
        return ""
    if call is None or call.overwritten is None:
        return "; over its first operand"
    operand, result = call.overwritten
    return f"; over operand {operand}" if outputs_of(call_node(root))[result] is root else ""


def loop_lines(plan: Plan, nest: int, numbers: Mapping[int, int]) -> Iterable[str]:
    """The lines of a scan: the values that are computed before it, and those that are kept of its steps, for whom."""
    if nest not in plan.contents.scans:
        return
    graph = plan.contents.scans[nest].graph

    def computed(nodes: Iterable[Node]) -> str:
        descriptions: dict[str, None] = {}
        for node in nodes:
            while node.args and isinstance(lowering_of(node), View):
                node = node.args[0]
            is_stored = node.args and node.op is not ITEM and not isinstance(lowering_of(node), Iota)
            if is_stored and (node.ndim or is_float(node.type.dtype)):
                descriptions[describe(node)] = None
        return ", ".join(descriptions)

    loop, results = graph.loop, items_of(graph.node)
    if once := computed(loop.constants):
        yield f"computed once, for no step changes it: {once}"
    if rows := computed(loop.sequences):
        yield f"computed before, for all steps at once: {rows}"
    outputs = results[len(loop.initial) : len(loop.initial) + len(loop.outputs)]
    for item, output in zip(outputs, loop.outputs, strict=True):
        nests = sorted({numbers[number] for number in plan.reasons.readers.get(item, ())})
        users = [f"nest {number}" for number in nests] or ["nobody, a result"]
        shown = "the state before it" if output in loop.states else describe(output)
        yield f"of each step {shown} is kept for {' and '.join(users)}"
    if not outputs:
        yield "of the steps nothing is kept but the last states"


def size_text(size: Node, names: Mapping[Node, str]) -> str:
    """A size as an expression over the names of size leaves, cut short where it is long."""
    if size in names:
        return names[size]
    value = constant_value(size)
    if value is not None:
        return str(value)
    lowering = lowering_of(size)
    if isinstance(lowering, Scalar) and len(size.args) <= 2 and all(not arg.args for arg in size.args):
        args = tuple(ir.Var(size_text(arg, names), ir.INDEX) for arg in size.args)
        return f"({text_of(filled(lowering.template, args, ir.INDEX))})"
    return size.name or f"<{size.op.name}>"
