"""A graph to everything that is known of its kernel before it is compiled: the compiler's line on one screen.

In: a function's graph as the user wrote it, and as rewriting left it. Out: a `Program`: generated source, signature,
plan, constants. Deterministic: equal graphs give equal programs.
"""

from __future__ import annotations

import keyword
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

from graphc.codegen.call.bind import Array as Parameter
from graphc.codegen.call.bind import Signature, Temp
from graphc.codegen.call.callback import CALLBACK
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.gemm.api import PROTOTYPES
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.lower.calls import lower_call
from graphc.codegen.lower.fused import lower_rows
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.recurrences import lower_recur
from graphc.codegen.lower.reductions import lower_fold
from graphc.codegen.pipeline.kernel import Kernel
from graphc.codegen.schedule.accumulators import Target, most_copies, row_length, stride_size, target_of, target_of_both
from graphc.codegen.schedule.memory import Slot
from graphc.codegen.schedule.plan import COPY, MOST_AXES, Nest, Plan, Rows, is_bufferless, loop_vars, lowering_of
from graphc.codegen.schedule.scheduler import schedule
from graphc.codegen.schedule.sizes import Sizing, all_nodes, size_up
from graphc.codegen.transform.forwarding import forward_stores
from graphc.codegen.transform.fuse import merge_rows
from graphc.codegen.transform.outline import Copies, outline
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.partial_sums import narrow_sums
from graphc.codegen.transform.passes import Passes
from graphc.codegen.transform.simplify import simplify
from graphc.ir import sizes
from graphc.ir.node import CONSTANT, LEAVES, SIZE, Array, Call, Node, Scalar, Size
from graphc.ir.walk import as_size_node, reachable
from graphc.loops.ir import (
    CONSTANTS,
    INDEX,
    Check,
    Expr,
    Function,
    Invoke,
    Note,
    Param,
    Stmt,
    Store,
    Var,
    apply,
    integer,
)
from graphc.loops.names import Names
from graphc.loops.operators import EQ, INFIX
from graphc.loops.printer import emit_function
from graphc.loops.visit import all_expressions, read_buffers, statements, stored_buffers
from graphc.startup.record import record


@record()
class Program:
    """`constants` are passed as shared variables after the real ones; `calls` are nodes that call back into Python;
    `parallel` says whether the kernel launches threads."""

    source: str
    signature: Signature
    plan: str
    prototypes: tuple[Prototype, ...]
    externals: Mapping[str, Prototype]
    constants: tuple[Array, ...]
    calls: tuple[Node, ...]
    parallel: bool


def generate(written: Kernel, kernel: Kernel, outlining: str = "auto") -> Program:
    """The program of `kernel`; `written` is the same before rewriting, whose guards are the ones a user expects.

    `outlining` says when nests become functions of their own (transform/outline.py).
    """
    nodes = all_nodes(kernel.results)
    sizing = size_up(all_nodes(written.results), nodes)
    names = Names(reserved_names(nodes))
    constants = stored_constants(kernel, sizing)
    leaves = (*kernel.inputs, *kernel.shared, *constants)
    buffers = {leaf: names.fresh(leaf.name or ("const" if leaf.op is CONSTANT else "x")) for leaf in leaves}
    dims = [
        Dim(number, axis, size, names.fresh(f"{buffers[leaf]}_{axis}"))
        for number, leaf in enumerate(leaves)
        for axis, size in enumerate(leaf.type.shape)
        if isinstance(size, Node)
    ]
    size_names = {dim.size: dim.name for dim in reversed(dims) if dim.size.op is SIZE}
    results, plan = plan_results(kernel, sizing, buffers, size_names, names)
    sizes_lowerer = Lowerer(buffers, size_names, sizing, Names(names.taken))
    inputs = tuple(parameter(buffers[n], n, buffers[n] in results.owned) for n in kernel.inputs)
    shared = tuple(parameter(buffers[n], n, buffers[n] in results.owned) for n in (*kernel.shared, *constants))
    stored = {node: place.buffer for node, place in plan.places.items() if place.buffer is not None}
    lowerer = Lowerer({**buffers, **stored}, size_names, sizing, names, plan.accumulators, plan.depths)
    dtypes = {array.name: array.dtype for array in (*inputs, *shared, *results.outputs)}
    dtypes |= {slot.name: slot.dtype for slot in plan.arena.slots}
    passes = Passes("kernel", dtypes, [dim.name for dim in dims], lambda: external_kinds(lowerer.callbacks))
    rows = row_buffers(plan)
    narrowed = narrow_sums(lower_kernel(plan, lowerer, passes), copy_targets(plan, size_names), names.fresh)
    lengths = row_lengths(plan, size_names)
    for name, buffer in narrowed.narrow.items():
        target = narrowed.targets[buffer]
        rows[name], lengths[name], dtypes[name] = target.turns, target.length, "float32"
    passes.ran("narrow_sums", narrowed.body)
    kernel_part = outline(narrowed.body, names, dtypes, outlining, lengths, narrowed.targets)
    dtypes |= {name: dtype for name, (dtype, _) in (*kernel_part.scalars.items(), *kernel_part.copies.items())}
    passes.ran("outline", kernel_part.body, kernel_part.functions)
    scalars = (Slot(name, dtype, ((dtype, (count,)),)) for name, (dtype, count) in kernel_part.scalars.items())
    chunks = {name: sizing.of(sizes.minimum(rows[name], most)) for name, most in sorted(kernel_part.private.items())}
    copies = (copies_slot(name, *held, sizing) for name, held in kernel_part.copies.items())
    narrow = (Slot(n, "float32", (("float32", (narrowed.targets[b].size,)),)) for n, b in narrowed.narrow.items())
    held = read_buffers(narrowed.body) | stored_buffers(narrowed.body)
    kept = (*(slot for slot in plan.arena.slots if slot.name in held), *narrow)
    own = (in_chunks(slot, chunks.get(slot.name, 1)) for slot in kept)
    slots = (*own, *scalars, *copies)
    bodies = lower_sizes(results, slots, sizing, dims, sizes_lowerer), kernel_part.body
    used = {part for body in bodies for part in all_expressions(body) if isinstance(part, Var)}
    passed = [dim for dim in dims if Var(dim.name, INDEX) in used]
    signature = Signature(
        name=kernel.name,
        inputs=inputs,
        shared=shared,
        outputs=results.outputs,
        temps=tuple(Temp(slot.name, slot.dtype, tuple((t, len(shape)) for t, shape in slot.rooms)) for slot in slots),
        sizes=tuple((dim.number, dim.axis) for dim in passed),
        returns=kernel.returns,  # type: ignore[arg-type]
        reads=operands_read(bodies[0], (*inputs, *shared)),
        taken=tuple(sorted(results.taken.items())),
    )
    functions = (*kernel_part.functions, *assemble(signature, bodies, [dim.name for dim in passed]))
    passes.made("assemble", functions)
    return Program(
        source="\n\n".join(map(emit_function, functions)),
        signature=signature,
        plan="\n".join((*plan.lines, *(f"threads may share {line}" for line in kernel_part.launches))),
        prototypes=tuple(Prototype(f.name, tuple(param.kind for param in f.params)) for f in functions),
        externals=used_externals(functions, lowerer.callbacks),
        constants=tuple(c.attrs["value"].value for c in constants),
        calls=tuple(lowerer.callbacks.values()),
        parallel=bool(kernel_part.launches),
    )


def row_buffers(plan: Plan) -> dict[str, Size]:
    """The temporaries that hold one row at a time, each with the number of rows."""
    slots = {slot.name for slot in plan.arena.slots}
    buffers: dict[str, Size] = {}
    for node, depth in plan.depths.items():
        for name in (plan.places[node].buffer, plan.accumulators.get(node)):
            if depth and name is not None and name in slots:
                buffers[name] = plan.sizing.shape(node)[0]
    return buffers


def row_lengths(plan: Plan, size_names: Mapping[Node, str]) -> dict[str, Expr]:
    """The lengths of the temporaries that hold a row along one axis, where these are arguments of the kernel."""
    rows, lengths = row_buffers(plan), {}
    for node, depth in plan.depths.items():
        sides = [size for size in plan.sizing.shape(node)[depth:] if size != 1]
        if not depth or len(sides) != 1:
            continue
        length = row_length(sides, size_names)
        for buffer in (plan.places[node].buffer, plan.accumulators.get(node)):
            if buffer in rows and length is not None:
                lengths[buffer] = length
    return lengths


def copy_targets(plan: Plan, size_names: Mapping[Node, str]) -> dict[str, Target]:
    """The buffers that loops over rows add into; none that a loop changes in another way, for statements tell by the
    names of buffers only."""
    targets: dict[str, Target | None] = {}
    for nest in plan.nests:
        for node in nest.roots:
            own, carried = plan.places[node].buffer, plan.accumulators.get(node)
            target = target_of(node, nest, size_names, plan.sizing)
            changed = {own: target} if carried is None else {carried: target, own: None}
            for buffer, each in changed.items():
                if buffer is not None:
                    targets[buffer] = target_of_both(targets[buffer], each) if buffer in targets else each
    return {buffer: target for buffer, target in targets.items() if target is not None}


def copies_slot(name: str, dtype: str, held: Sequence[Copies], sizing: Sizing) -> Slot:
    """The temporary that holds the copies of one dtype, of all loops in turn."""
    rooms = []
    for each in held:
        length: Size = 0
        for target in each.held:
            length = sizes.add(length, stride_size(target.size))
        rooms.append((dtype, (sizing.of(most_copies(each.targets)), sizing.of(length))))
    return Slot(name, dtype, tuple(dict.fromkeys(rooms)))


def in_chunks(slot: Slot, chunks: Size) -> Slot:
    """A slot for as many rows as there may be chunks."""
    if chunks == 1:
        return slot
    return Slot(slot.name, slot.dtype, tuple((dtype, (chunks, *shape)) for dtype, shape in slot.rooms))


@record()
class Dim:
    """The size of leaf `number` along `axis`, under the name of its parameter. Its node may be another leaf's, or
    computed: then the two must be equal."""

    number: int
    axis: int
    size: Node
    name: str


def reserved_names(nodes: Iterable[Node]) -> set[str]:
    """Identifiers that mean something in generated source, or are given without asking: loop variables."""
    calls = sum(node.op not in LEAVES and isinstance(node.op.lower(node), Call) for node in nodes)
    own = {"range", "S", "kernel", "sizes", *FIXED_NAMES}
    own |= {f"{CALLBACK}{number}" for number in range(calls)}
    return {*PRELUDE, *CONSTANTS, *PROTOTYPES, *keyword.kwlist, *own, *(var.name for var in loop_vars(MOST_AXES))}


def stored_constants(kernel: Kernel, sizing: Sizing) -> list[Node]:
    """The constants that are arrays, of the results and of what sizes are computed from."""
    roots = list(kernel.results)
    roots += [size for node in all_nodes(roots) for size in sizing.shape(node) if isinstance(size, Node)]
    roots += [as_size_node(side) for guard in sizing.checks for side in (guard.left, guard.right)]
    return [node for node in all_nodes(roots) if node.op is CONSTANT and not is_bufferless(node)]


@record()
class Results:
    """Where results go. `owned`: buffers of shared variables and inputs that are written in place; `shapes`: sizes of
    the fresh arrays, in order; `taken`: the outputs, by number, that are made in the array of an input, and of which.
    """

    targets: dict[Node, str]
    owned: dict[str, Node]
    outputs: tuple[Parameter, ...]
    shapes: tuple[tuple[Size, ...], ...]
    taken: dict[int, int]


MOST_PLANS = 4
"""How many plans are made to find which results can be made in the arrays of mutable inputs."""


def plan_results(
    kernel: Kernel, sizing: Sizing, buffers: Mapping[Node, str], size_names: Mapping[Node, str], names: Names
) -> tuple[Results, Plan]:
    """A buffer for every result, and the plan that computes them.

    A result takes the array of a mutable input where every read of that comes before, or is of the element at hand;
    where a plan finds that it cannot, the next is made without.
    """
    refused: set[tuple[int, int]] = set()
    mark = len(names.given)
    for attempt in range(MOST_PLANS):
        taken = takers(kernel, sizing, refused) if attempt < MOST_PLANS - 1 else {}
        results = place_results(kernel, sizing, buffers, names, taken)
        plan = schedule(results.targets, results.owned, sizing, size_names, names.fresh)
        wrong = {(place, number) for place, number in taken.items() if buffers[kernel.inputs[number]] in plan.staged}
        if not wrong:
            break
        refused |= wrong
        names.take_back(mark)
    return results, plan


def takers(kernel: Kernel, sizing: Sizing, refused: Container[tuple[int, int]]) -> dict[int, int]:
    """For outputs, by number, the mutable input whose array each may take: one that it is computed from element by
    element if there is one, else any of its dtype and sizes."""
    alike: dict[tuple[str, tuple[Size, ...]], list[int]] = {}
    for number in kernel.mutable:
        leaf = kernel.inputs[number]
        alike.setdefault((leaf.dtype, sizing.shape(leaf)), []).append(number)
    taken: dict[int, int] = {}
    made: set[Node] = set()
    for place, output in enumerate(kernel.outputs):
        if output.op in LEAVES or output in made or not output.ndim:
            continue
        made.add(output)
        free = [
            number
            for number in alike.get((output.dtype, sizing.shape(output)), ())
            if number not in taken.values() and (place, number) not in refused
        ]
        if free:
            near = leaves_of_element(output) if len(free) > 1 else ()
            taken[place] = next((number for number in free if kernel.inputs[number] in near), free[0])
    return taken


def leaves_of_element(node: Node) -> set[Node]:
    """The leaves of which an element of `node` needs the element at the same index, as far as scalar ops tell."""
    found = reachable([node], lambda each: each.args if isinstance(lowering_of(each), Scalar) else ())
    return {each for each in found if each.op in LEAVES}


def place_results(
    kernel: Kernel, sizing: Sizing, buffers: Mapping[Node, str], names: Names, taken: Mapping[int, int]
) -> Results:
    """A buffer for every result, of an input for those that are `taken`. A value that goes to two places, and a leaf,
    is copied there."""
    targets: dict[Node, str] = {}
    owned: dict[str, Node] = {}
    outputs: list[Parameter] = []
    shapes: list[tuple[Size, ...]] = []

    def goal(node: Node, buffer: str) -> None:
        if buffer not in owned:
            node = beneath_reshapes(node)
        first = node.op not in LEAVES and node not in targets
        targets[node if first else Node(COPY, (node,), {"to": buffer}, node.type, node.name)] = buffer

    for number, node in enumerate(kernel.outputs):
        if number in taken:
            leaf = kernel.inputs[taken[number]]
            owned[buffers[leaf]] = leaf
            goal(node, buffers[leaf])
            continue
        buffer = names.fresh(node.name if node.name and node not in buffers else f"out{number}" if number else "out")
        outputs.append(parameter(buffer, node))
        shapes.append(sizing.shape(node))
        goal(node, buffer)
    for leaf, new in kernel.updates:
        if new is leaf:
            continue
        if sizing.shape(new) == sizing.shape(leaf):
            owned[buffers[leaf]] = leaf
            goal(new, buffers[leaf])
            continue
        buffer = names.fresh(f"new_{buffers[leaf]}")
        outputs.append(parameter(buffer, new, replaces=kernel.shared.index(leaf)))
        shapes.append(sizing.shape(new))
        goal(new, buffer)
    return Results(targets, owned, tuple(outputs), tuple(shapes), dict(taken))


def beneath_reshapes(node: Node) -> Node:
    """What a result is a reshape of: a contiguous buffer holds the same elements in the same order either way."""
    while node.op.name == "reshape" and node.args[0].op not in LEAVES:
        node = node.args[0]
    return node


def parameter(name: str, node: Node, written: bool = False, replaces: int | None = None) -> Parameter:
    shape = tuple(size if isinstance(size, int) else None for size in node.type.shape)
    return Parameter(name, node.dtype, shape, written, replaces)


def lower_sizes(
    results: Results, slots: Sequence[Slot], sizing: Sizing, dims: Sequence[Dim], lowerer: Lowerer
) -> tuple[Stmt, ...]:
    """The function that checks sizes, then writes those of the results, and of all that temporaries have to hold."""
    lowerer.unchecked = len(sizing.checks) + 1
    for dim in dims:
        declared, actual = lowerer.element(dim.size, ()), Var(dim.name, INDEX)
        if declared != actual:
            lowerer.top.body.append(Check(apply(EQ, actual, declared), lowerer.unchecked))
    for number, guard in enumerate(sizing.checks, 1):
        sides = tuple(lowerer.element(as_size_node(side), ()) for side in (guard.left, guard.right))
        lowerer.top.body.append(Check(apply(INFIX[guard.relation], *sides), number))
    wanted: list[Size] = [size for shape in results.shapes for size in shape]
    wanted += [size for slot in slots for _, shape in slot.rooms for size in shape]
    for place, size in enumerate(wanted):
        lowerer.top.body.append(Store("S", integer(place), lowerer.size(size)))
    buffers = {name: node.dtype for node, name in lowerer.buffers.items()} | {"S": INDEX}
    passes = Passes("sizes", buffers, [dim.name for dim in dims], dict)
    lowered = tuple(lowerer.top.body)
    passes.ran("lower", lowered)
    return simplify(lowered, passes.run)


def operands_read(body: Sequence[Stmt], operands: Sequence[Parameter]) -> tuple[int, ...]:
    """The operands whose elements statements read, by number."""
    read = read_buffers(body)
    return tuple(number for number, operand in enumerate(operands) if operand.name in read)


def lower_kernel(plan: Plan, lowerer: Lowerer, passes: Passes) -> tuple[Stmt, ...]:
    for part in plan.parts:
        if isinstance(part, Rows):
            lower_rows(lowerer, part, partial(remarks, plan))
            continue
        lowerer.top.body.extend(remarks(plan, part))
        match part.kind:
            case "call":
                lower_call(lowerer, part)
            case "recur":
                lower_recur(lowerer, part)
            case "fold":
                lower_fold(lowerer, part)
            case _:
                lowerer.nest(part, plan)
    lowered = tuple(lowerer.top.body)
    passes.ran("lower", lowered)
    body = simplify(lowered, passes.run)
    merged = passes.run("merge_rows", merge_rows, body)
    if merged == body:
        return body
    slots = {slot.name for slot in plan.arena.slots}
    forward = partial(forward_stores, temporaries=slots, fresh=lowerer.names.fresh)
    return simplify(passes.run("forward_stores", forward, merged), passes.run)


def remarks(plan: Plan, nest: Nest) -> list[Note]:
    """What a nest is for, for the reader of the source: the user's names and lines, and the plan's reasons."""
    if nest.kind == "check":
        bound = plan.bounds[nest.number]
        text = f"the indices of {titled(bound.gather)} must lie within their axis"
        return [Note(text, f"check_{bound.gather.name or bound.gather.op.name}")]
    subject = "_".join(root.name or root.op.name for root in nest.roots)
    return [Note(f"{titled(root)}: {plan.places[root].reason}", subject) for root in nest.roots]


def titled(node: Node) -> str:
    return (node.name or node.op.name) + (f" ({node.where})" if node.where else "")


def assemble(
    signature: Signature, bodies: tuple[tuple[Stmt, ...], tuple[Stmt, ...]], size_params: Sequence[str]
) -> tuple[Function, Function]:
    """The functions that the entry point calls: `sizes` and `kernel`."""
    known = (*signature.inputs, *signature.shared)
    made: tuple[Parameter | Temp, ...] = (*signature.outputs, *signature.temps)
    operands = ", ".join(f"{a.name} {a.dtype}[{len(a.shape)}]" for a in (*known, *signature.outputs))
    given = tuple(Param(array.name, f"{array.dtype}*") for array in known)
    buffers = tuple(Param(array.name, f"{array.dtype}*") for array in made)
    lengths = tuple(Param(name, INDEX) for name in size_params)
    wanted = Param("S", f"{INDEX}*")
    return (
        Function("sizes", (*given, *lengths, wanted), bodies[0], "Check sizes; write those of results."),
        Function("kernel", (*given, *buffers, *lengths), bodies[1], f"{signature.name}: {operands}"),
    )


def used_externals(functions: Sequence[Function], callbacks: Mapping[str, Node]) -> dict[str, Prototype]:
    """The external functions that the source calls."""
    calls = (stmt for function in functions for stmt in statements(function.body) if isinstance(stmt, Invoke))
    products = {call.function for call in calls} & PROTOTYPES.keys()
    result = {name: Prototype(name, *PROTOTYPES[name]) for name in products}
    result |= {name: Prototype(name, callback_kinds(node)) for name, node in callbacks.items()}
    return dict(sorted(result.items()))


def callback_kinds(node: Node) -> tuple[str, ...]:
    """What the function that calls back into Python for a node takes."""
    operands = (*node.args, node)
    return (*(f"{n.dtype}*" for n in operands), *(INDEX for n in operands for _ in range(n.ndim)))


def external_kinds(callbacks: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    """What all functions take that a source may call from outside."""
    products = {name: kinds for name, (kinds, _) in PROTOTYPES.items()}
    return products | {name: callback_kinds(node) for name, node in callbacks.items()}
