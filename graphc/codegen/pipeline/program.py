"""A graph to everything that is known of its kernel before it is compiled: the compiler's line on one screen.

In: a function's graph as the user wrote it, and as rewriting left it (`generate`); or the first alone
(`generate_program`, which rewrites it). Out: a `Program`: generated source, signature, plan, constants; for the
`python` mode the functions of its source. Deterministic: equal graphs give equal programs. Nothing is compiled, and no
compiler imported.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from graphc.codegen.call.bind import Failures
from graphc.codegen.call.callback import CALLBACK, SAFEPOINT_CALLS, answer_no, python_callback
from graphc.codegen.call.signature import Array as Parameter, Signature, Temp
from graphc.codegen.frontend.language import PRELUDE, bind_source
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.lower.elements import KnownSizes, Lowerer, Storage, storage_of
from graphc.codegen.lower.parts import lower_parts
from graphc.codegen.lower.scopes import Scopes
from graphc.codegen.pipeline.kernel import Built, Kernel, Report
from graphc.codegen.routines import routine_prototypes, routine_shims
from graphc.codegen.schedule.cost import work_of_loops
from graphc.codegen.schedule.inplace import donations
from graphc.codegen.schedule.nodes import MOST_AXES, Sizing, all_nodes, is_bufferless, loop_vars, size_up
from graphc.codegen.schedule.plan import COPY, Context, Labels, Plan, Purpose, labels_of, lines_of
from graphc.codegen.schedule.scheduler import schedule
from graphc.codegen.transform.outline import Copies
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.parallelize import copy_stride, most_copies
from graphc.codegen.transform.passes import KERNEL_PASSES, SIMPLIFY, Subject
from graphc.ir import sizes
from graphc.ir.body import nodes_within, outputs_of
from graphc.ir.lowering import Call
from graphc.ir.node import CONSTANT, LEAVES, SIZE, Array, Guard, Node, Size
from graphc.ir.verify import verify
from graphc.ir.walk import Graph, as_size_node
from graphc.loopir import ir, operators, visit
from graphc.loopir.syntax import Names, emit_source
from graphc.options import options
from graphc.rewrite import rewrite, tell_of
from graphc.startup.process import uncollected
from graphc.startup.record import record, replace

Extents: TypeAlias = "tuple[tuple[str, tuple[Size | ir.Expr, ...]], ...]"
"""Dtypes and sizes, in the graph's terms or those of the function that computes sizes."""


@record()
class Program:
    """`constants` are passed as shared variables after the real ones; `calls` are nodes that call back into Python;
    `parallel` says whether the kernel launches threads; `checks` are those of `sizes`, by their numbers from 1 on;
    `functions` are what the source says."""

    source: str
    signature: Signature
    plan: str
    prototypes: tuple[Prototype, ...]
    externals: Mapping[str, Prototype]
    constants: tuple[Array, ...]
    calls: tuple[Node, ...]
    parallel: bool
    checks: tuple[Guard, ...]
    functions: tuple[ir.Function, ...]


def generate(written: Kernel, kernel: Kernel, outlining: str = "auto") -> Program:
    """The program of `kernel`; `written` is the same before rewriting, whose guards are the ones a user expects.

    `outlining` says when nests become functions of their own (transform/outline.py).
    """
    nodes = all_nodes(kernel.results)
    sizing = size_up(all_nodes(written.results), nodes)
    names = Names(reserved_names(nodes))
    constants = materialised_constants(kernel, sizing)
    leaves = (*kernel.inputs, *kernel.shared, *constants)
    buffer_names = {leaf: names.fresh(leaf.name or ("const" if leaf.op is CONSTANT else "x")) for leaf in leaves}
    dims = dims_of(leaves, buffer_names, names)
    size_names = {dim.size: dim.name for dim in reversed(dims) if dim.size.op is SIZE}
    labels = labels_of(nodes)
    results, plan, names = plan_results(kernel, sizing, buffer_names, size_names, names, labels)
    failure = len(sizing.checks) + 1
    sizes_lowerer = Lowerer(
        scopes=Scopes(Names(names.taken)),
        storage=Storage(plan.memory.leaves),
        sizes=KnownSizes(size_names, sizing, failure),
    )
    inputs, shared = (
        tuple(parameter(buffer_names[n], n, buffer_names[n] in results.overwritten) for n in group)
        for group in (kernel.inputs, (*kernel.shared, *constants))
    )
    known = KnownSizes(size_names, sizing)
    lowerer = Lowerer(scopes=Scopes(names), storage=storage_of(plan.memory), sizes=known, labels=labels)
    subject = lower_kernel(plan, lowerer, results, [ir.Var(dim.name, ir.INDEX) for dim in dims], outlining)
    marked = subject.after["mark_independent"]
    has_safepoints = subject.after["place_safepoints"] != marked
    check_sizes(sizing, dims, sizes_lowerer, failure)
    temporaries = arena(plan, subject, marked, sizes_lowerer)
    with_nests = subject.after["request_safepoints"] != marked
    loops = work_of_loops(kernel.results, nests=with_nests) if has_safepoints else None
    work = [] if loops is None else [sizing.of(loops)]
    bodies = write_sizes(results, temporaries, work, dims, sizes_lowerer), subject.body
    used = {part for body in bodies for part in visit.all_expressions(body) if isinstance(part, ir.Var)}
    passed = [dim for dim in dims if ir.Var(dim.name, ir.INDEX) in used]
    signature = Signature(
        name=kernel.name,
        inputs=inputs,
        shared=shared,
        outputs=results.outputs,
        temps=tuple(
            Temp(b.name, b.dtype, tuple((t, len(shape)) for t, shape in extents)) for b, extents in temporaries
        ),
        sizes=tuple((dim.number, dim.axis) for dim in passed),
        returns=kernel.returns,  # type: ignore[arg-type]
        reads=operands_read(bodies[0], (*inputs, *shared)),
        donated=tuple(sorted(results.donated.items())),
        has_safepoints=has_safepoints,
    )
    functions = (
        *subject.functions,
        *assemble(signature, bodies, [*plan.memory.leaves.values()], subject.buffers, [dim.name for dim in passed]),
    )
    subject.tell_of("assemble", functions)
    return Program(
        source=emit_source(functions),
        signature=signature,
        plan="\n".join((*lines_of(plan), *(f"threads may share {line}" for line in subject.outlined.launches))),
        prototypes=tuple(Prototype(f.name, tuple(param.kind for param in f.params)) for f in functions),
        externals=used_externals(functions, lowerer.callbacks),
        constants=tuple(c.attrs["value"].value for c in constants),
        calls=tuple(lowerer.callbacks.values()),
        parallel=bool(subject.outlined.launches),
        checks=sizing.checks,
        functions=functions,
    )


def lower_kernel(plan: Plan, lowerer: Lowerer, results: Results, sizes: Sequence[ir.Var], outlining: str) -> Subject:
    """The statements of a kernel, after all passes."""
    lower_parts(lowerer, plan, plan.parts, lowerer.scopes.top)
    subject = Subject(
        "kernel",
        lowerer.scopes.top.body,
        plan.memory.all_buffers,
        lowerer.scopes.names,
        scalars=sizes,
        externals=lambda: external_params(lowerer.callbacks),
        results={output.name for output in results.outputs},
        steps=lowerer.step_loops,
        kept=results.overwritten,
        branches=bool(plan.contents.scans or plan.contents.branches),
        outlining=outlining,
    )
    subject.tell("lower")
    subject.run(KERNEL_PASSES)
    return subject


def dims_of(leaves: Sequence[Node], buffer_names: Mapping[Node, str], names: Names) -> list[Dim]:
    """The sizes that are told at each call, under the names that they have in the source."""
    return [
        Dim(number, axis, size, names.fresh(f"{buffer_names[leaf]}_{axis}"))
        for number, leaf in enumerate(leaves)
        for axis, size in enumerate(leaf.type.shape)
        if isinstance(size, Node)
    ]


def arena(plan: Plan, subject: Subject, body: Sequence[ir.Stmt], lowerer: Lowerer) -> list[tuple[ir.Buffer, Extents]]:
    """The temporaries of a kernel whose statements were `body` before parts of it became functions, each with the
    dtypes and sizes of what it has to hold in turn. `lowerer` writes the function that computes sizes."""
    sizing, narrowed, outlined = plan.sizing, subject.narrowed, subject.outlined
    slots = {narrowed.changed.get(slot.buffer, slot.buffer): slot for slot in plan.memory.arena}
    rows = {buffer: slot.rows for buffer, slot in slots.items() if slot.rows is not None}
    extents: dict[ir.Buffer, Extents] = {buffer: slot.extents for buffer, slot in slots.items()}
    iterations = dict(plan.memory.iterations)
    for old, new in narrowed.changed.items():
        iterations[new] = sizes.floor_divide(sizes.add(iterations[old], ir.ROWS - 1), ir.ROWS)
    for few, target in narrowed.narrow.items():
        assert few.row is not None
        extents[few], rows[few] = ((few.dtype, (few.row,)),), iterations[target]
    used = visit.read_buffers(body) | visit.stored_buffers(body)
    chunks = {buffer: sizing.of(sizes.minimum(rows[buffer], most)) for buffer, most in outlined.private.items()}
    temps = [(buffer, in_chunks(extent, chunks.get(buffer, 1))) for buffer, extent in extents.items() if buffer in used]
    temps += [(buffer, ((buffer.dtype, (count,)),)) for buffer, count in outlined.scalars.items()]

    def extent(copies: Copies) -> tuple[ir.Expr, ir.Expr]:
        counts = {buffer: lowerer.size(sizing.of(iterations[buffer])) for buffer in copies.targets}
        at_once = ir.integer(copies.at_once)
        most = most_copies((target, ir.quotient(counts[buffer], at_once)) for buffer, target in copies.targets.items())
        return most, ir.sum_of(Counter(copy_stride(copies.targets[buffer].length) for buffer in copies.copied))

    for buffer, launches in outlined.copies.items():
        temps.append((buffer, tuple(dict.fromkeys((buffer.dtype, extent(each)) for each in launches))))
    return temps


def in_chunks(extents: Extents, chunks: Size) -> Extents:
    """Memory for as many rows as there may be chunks."""
    return extents if chunks == 1 else tuple((dtype, (chunks, *shape)) for dtype, shape in extents)


SIZES = ir.Buffer("S", ir.INDEX)
"""The buffer that the function that computes sizes writes."""


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
    known = list(nodes)
    calls = sum(
        node.op not in LEAVES and isinstance(node.op.lower(node), Call) for node in (*known, *nodes_within(known))
    )
    fixed = {"range", "S", "kernel", "sizes", *FIXED_NAMES}
    fixed |= {f"{CALLBACK}{number}" for number in range(calls)} | {*routine_prototypes(), *SAFEPOINT_CALLS}
    return {*PRELUDE, *ir.CONSTANTS, *keyword.kwlist, *fixed, *(var.name for var in loop_vars(MOST_AXES))}


def materialised_constants(kernel: Kernel, sizing: Sizing) -> list[Node]:
    """The constants that are arrays, of the results and of what sizes are computed from."""
    roots = list(kernel.results)
    roots += [size for node in all_nodes(roots) for size in sizing.shape(node) if isinstance(size, Node)]
    roots += [as_size_node(side) for guard in sizing.checks for side in (guard.left, guard.right)]
    nodes = all_nodes(roots)
    every_node = dict.fromkeys((*nodes, *nodes_within(nodes)))
    return [node for node in every_node if node.op is CONSTANT and not is_bufferless(node)]


@record()
class Results:
    """The places of results. `overwritten`: buffers of shared variables and inputs that are written in place; `shapes`:
    sizes of the fresh arrays, in order; `donated`: the outputs, by number, that are made in an input's array, and in
    which.
    """

    targets: dict[Node, str]
    overwritten: dict[str, Node]
    outputs: tuple[Parameter, ...]
    shapes: tuple[tuple[Size, ...], ...]
    donated: dict[int, int]


MOST_PLANS = 4
"""The most plans that are made to find which results can be made in the arrays of mutable inputs."""


def plan_results(
    kernel: Kernel,
    sizing: Sizing,
    buffers: Mapping[Node, str],
    size_names: Mapping[Node, str],
    names: Names,
    labels: Labels,
) -> tuple[Results, Plan, Names]:
    """Choose a buffer for every result and plan the computation. Returns the buffers, the plan and the names in use. A
    result takes the array of a mutable input if all reads of that array come before, or are of the element being
    written. If a plan finds that it cannot, a further plan does without."""
    refused: set[tuple[int, int]] = set()
    for attempt in range(MOST_PLANS):
        mutable = kernel.mutable if attempt < MOST_PLANS - 1 else ()
        donated = donations(kernel.outputs, kernel.inputs, mutable, sizing, refused)
        taken = names.copy()
        results = place_results(kernel, sizing, buffers, taken, donated)
        context = Context(sizing, buffers, size_names, taken.fresh, labels, {})
        plan = schedule(results.targets, results.overwritten, context, Purpose("kernel"))
        wrong = {(place, n) for place, n in donated.items() if buffers[kernel.inputs[n]] in plan.memory.deferred}
        if not wrong:
            break
        refused |= wrong
    return results, plan, taken


def place_results(
    kernel: Kernel, sizing: Sizing, buffers: Mapping[Node, str], names: Names, donated: Mapping[int, int]
) -> Results:
    """Choose the buffer of every result: that of an input for results in `donated`, else a fresh one. A value with two
    places, and a leaf, is copied to its place."""
    targets: dict[Node, str] = {}
    overwritten: dict[str, Node] = {}
    outputs: list[Parameter] = []
    shapes: list[tuple[Size, ...]] = []

    def goal(node: Node, buffer: str) -> None:
        if buffer not in overwritten:
            node = beneath_reshapes(node)
        first = node.op not in LEAVES and node not in targets
        targets[node if first else Node(COPY, (node,), {"to": buffer}, node.type, node.name)] = buffer

    for number, node in enumerate(kernel.outputs):
        if number in donated:
            leaf = kernel.inputs[donated[number]]
            overwritten[buffers[leaf]] = leaf
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
            overwritten[buffers[leaf]] = leaf
            goal(new, buffers[leaf])
            continue
        buffer = names.fresh(f"new_{buffers[leaf]}")
        outputs.append(parameter(buffer, new, replaces=kernel.shared.index(leaf)))
        shapes.append(sizing.shape(new))
        goal(new, buffer)
    return Results(targets, overwritten, tuple(outputs), tuple(shapes), dict(donated))


def beneath_reshapes(node: Node) -> Node:
    """The node of which a result has the elements in the same order: a contiguous buffer holds them alike, whatever
    axes of one element there are."""
    while _has_same_order(node) and node.args[0].op not in LEAVES:
        node = node.args[0]
    return node


def _has_same_order(node: Node) -> bool:
    axes = [axis for axis in node.attrs["order"] if axis != "x"] if node.op.name == "dimshuffle" else None
    return node.op.name == "reshape" or (axes is not None and axes == sorted(axes))


def parameter(name: str, node: Node, written: bool = False, replaces: int | None = None) -> Parameter:
    shape = tuple(size if isinstance(size, int) else None for size in node.type.shape)
    return Parameter(name, node.type.dtype, shape, written, replaces)


def check_sizes(sizing: Sizing, dims: Sequence[Dim], lowerer: Lowerer, failure: int) -> None:
    """Write the start of the function that computes sizes: the checks of declared sizes. failure: the code for an
    argument with another size."""
    body = lowerer.scopes.top.body
    for dim in dims:
        declared, actual = lowerer.element(dim.size, ()), ir.Var(dim.name, ir.INDEX)
        if declared != actual:
            body.append(ir.Check(ir.apply(operators.EQ, actual, declared), failure))
    for number, guard in enumerate(sizing.checks, 1):
        sides = tuple(lowerer.element(as_size_node(side), ()) for side in (guard.left, guard.right))
        body.append(ir.Check(ir.apply(operators.INFIX[guard.relation], *sides), number))


def write_sizes(
    results: Results,
    temporaries: Iterable[tuple[ir.Buffer, Extents]],
    work: Sequence[Size],
    dims: Sequence[Dim],
    lowerer: Lowerer,
) -> tuple[ir.Stmt, ...]:
    """The function that computes sizes: those of results, then of all that temporaries have to hold, then `work`."""
    wanted: list[Size | ir.Expr] = [size for shape in results.shapes for size in shape]
    wanted += [size for _, extents in temporaries for _, shape in extents for size in shape]
    wanted += work
    for place, size in enumerate(wanted):
        value = lowerer.size(size) if isinstance(size, int | Node) else size
        lowerer.scopes.top.body.append(ir.Store(SIZES, ir.integer(place), value))
    buffers = (*lowerer.storage.buffers.values(), SIZES)
    scalars = [ir.Var(dim.name, ir.INDEX) for dim in dims]
    subject = Subject(
        "sizes", lowerer.scopes.top.body, buffers, lowerer.scopes.names, scalars=scalars, results=(SIZES.name,)
    )
    subject.tell("lower")
    subject.run(SIMPLIFY)
    return subject.body


def operands_read(body: Sequence[ir.Stmt], operands: Sequence[Parameter]) -> tuple[int, ...]:
    """The operands whose elements statements read, by number."""
    read = {buffer.name for buffer in visit.read_buffers(body)}
    return tuple(number for number, operand in enumerate(operands) if operand.name in read)


def assemble(
    signature: Signature,
    bodies: tuple[tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]],
    leaves: Sequence[ir.Buffer],
    buffers: Iterable[ir.Buffer],
    size_params: Sequence[str],
) -> tuple[ir.Function, ir.Function]:
    """The functions that the entry point calls: `sizes` and `kernel`."""
    known = (*signature.inputs, *signature.shared)
    allocated: tuple[Parameter | Temp, ...] = (*signature.outputs, *signature.temps)
    operands = ", ".join(f"{a.name} {a.dtype}[{len(a.shape)}]" for a in (*known, *signature.outputs))
    named = {buffer.name: buffer for buffer in buffers}
    lengths = tuple(ir.Var(name, ir.INDEX) for name in size_params)
    return (
        ir.Function("sizes", (*leaves, *lengths, SIZES), bodies[0], "Check sizes; write those of results."),
        ir.Function(
            "kernel",
            (*(named[array.name] for array in (*known, *allocated)), *lengths),
            bodies[1],
            f"{signature.name}: {operands}",
        ),
    )


def used_externals(functions: Sequence[ir.Function], callbacks: Mapping[str, Node]) -> dict[str, Prototype]:
    """The external functions that the source calls."""
    calls = (stmt for function in functions for stmt in visit.statements(function.body) if isinstance(stmt, ir.Invoke))
    callees = {call.function for call in calls}
    params = external_params(callbacks)
    return {name: Prototype(name, params[name]) for name in sorted(callees & params.keys() | callbacks.keys())}


def callback_params(node: Node) -> tuple[str, ...]:
    """The types of the arguments of the function that calls back into Python for a node."""
    operands = (*node.args, *outputs_of(node))
    return (*(f"{n.type.dtype}*" for n in operands), *(ir.INDEX for n in operands for _ in range(n.ndim)))


def external_params(callbacks: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    """The types of the arguments of all functions that a source may call from outside."""
    return {**routine_prototypes(), **SAFEPOINT_CALLS} | {
        name: callback_params(node) for name, node in callbacks.items()
    }


# --- from the graph as it was written ---------------------------------------------------------------------------------


def rewrite_kernel(kernel: Kernel, report: Report) -> Kernel:
    graph, fired = rewrite(Graph(kernel.inputs, kernel.results), fast_math=kernel.is_fast, excluding=options.excluding)
    report.fired = tell_of(fired)
    count = len(kernel.outputs)
    news = graph.outputs[count:]
    updates = tuple((leaf, new) for (leaf, _), new in zip(kernel.updates, news, strict=True))
    return replace(kernel, outputs=graph.outputs[:count], updates=updates)


def generate_program(kernel: Kernel, report: Report) -> Program:
    if options.verify:
        verify(Graph(kernel.inputs, kernel.results), kernel.shared)
    with uncollected():
        with report.phase("rewrite"):
            rewritten = rewrite_kernel(kernel, report)
        with report.phase("generate"):
            program = generate(kernel, rewritten, options.outline)
    report.plan = program.plan
    return program


def build_python(kernel: Kernel) -> Built:
    """The generated source, for the `python` mode; nothing is compiled."""
    report = Report(kernel.name, "generated")
    program = generate_program(kernel, report)
    return Built(program.signature, program.source, program.constants, program.calls, report)


def bind_python(built: Built, failures: Failures) -> dict[str, Callable[..., Any]]:
    """The functions of a generated source, run by CPython; what the user's ops raise goes to `failures`."""
    callbacks = {f"{CALLBACK}{n}": python_callback(node, failures) for n, node in enumerate(built.calls)}
    name = f"<generated source of {built.signature.name}>"
    shims = {**routine_shims(), **dict.fromkeys(SAFEPOINT_CALLS, answer_no), **callbacks}
    return bind_source(built.source, name, shims)
