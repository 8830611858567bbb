"""`function`: from a graph to a callable.

In: inputs, outputs, updates and the rest of Theano's arguments, which are checked here. Out: a `Function` of the mode
that was asked for.

    x, w = T.dvector("x"), graphc.shared(2.0, "w")
    f = graphc.function([x], [x * w], updates=[(w, w + 1)], givens={x: x + 1})
    f([0, 1])         [array([2., 4.])]: givens are replaced first, results use w before its update
    w.get_value()     array(3.)

`function` runs in this order: givens are replaced (`_givens`, `_resolve`); inputs that are computed values become new
variables (`_free_inputs`); default updates of shared variables join (`default_updates`); two variables over one value
become one (`_one_for_each_value`); inputs are checked (`_check_inputs`). The rest makes a `Kernel` and a `Convention`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from graphc import errors
from graphc.arrays.dtypes import fits, is_float
from graphc.codegen.pipeline.kernel import Kernel, shared_of
from graphc.codegen.server.prestart import why_not_compiled
from graphc.functions.callables import MODES, Function, Mode
from graphc.functions.convention import Convention, In, Out, from_tuple, name_positions
from graphc.functions.factory import class_of_mode, make_function
from graphc.ir.node import FUNCTIONS, INPUT, LEAVES, SHARED, SIZE, Array, Node, describe, size_owner, variable
from graphc.ir.source_lines import traced_hint, user_line, warn_user
from graphc.ir.walk import as_size_node, node_set, nodes_of, substitute, toposort
from graphc.ops.branch import sink_into_branches
from graphc.ops.derivative import without_overrides
from graphc.ops.elementwise import as_node, cast, cast_safely
from graphc.ops.shape import with_static_sizes
from graphc.options import check_threads, options
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.startup.record import replace
from graphc.trees import is_nested, leaves, up_to


def function(
    inputs: Sequence[Any] | Mapping[str, Any] | Node = (),
    outputs: Any = None,
    mode: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: bool | Sequence[Node] = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: Any = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
    threads: int | str | None = None,
    fast_math: bool | None = None,
) -> Function:
    """Return a callable that computes `outputs` from `inputs` and then makes `updates`.

    inputs: variables or `In` records, or a dict of them by the keywords of calls. An input may be a tree of variables
    (dict, tuple, list or dataclass, at any depth): a call gives a tree of values for it. outputs: a node (calls return
    an array), a list or tuple (a list), a dict (a dict), a deeper tree (such a tree), or None (an empty list).
    updates: a dict or pairs of shared variable and new value. Outputs use the values before the updates, which are all
    made at once. givens: a dict or pairs of variable and replacement, replaced before anything else.
    mode: "compiled", "interpreted" or "python", Theano's names for them, a `Mode`, or NanGuardMode(...) or DebugMode(),
    which check every value; None means options.mode. no_default_updates: True leaves out the default updates of all
    shared variables, a list those of its variables. name: for messages and profiles.
    allow_input_downcast: True converts arguments with loss, False never, None only Python numbers to floats.
    on_unused_input: "raise", "warn" or "ignore", for an input that the graph does not need, of which no derivative was
    taken and no size was asked; None means options.on_unused_input. profile: count and time calls (`f.profile`).
    threads: the most threads of a call, or "auto"; None means options.threads. fast_math: allow rewrites and arithmetic
    that hold for real numbers only; None means options.fast_math. accept_inplace, rebuild_strict: accepted for Theano's
    sake. trust_input: kept as `f.trust_input`; changes nothing.

    A call takes arguments by position or keyword. `out=` gives arrays for the results: one for a single output, else a
    tuple of arrays and None, or a dict where the function returns one. Each must have the dtype and shape of its
    result. Any layout and any overlap with arguments is allowed; a C-contiguous array without overlap is written
    directly, others by a copy. An input called `out` takes that keyword.

    Raises ArgumentError, GraphTypeError, MissingInputError, UnusedInputError or UpdateError, which name the variable
    and the line that made it. Calls raise ArgumentError, GraphTypeError, ShapeError or IndexOutOfBounds.

        >>> x, y = T.dvector("x"), T.dvector("y")
        >>> f = graphc.function([x, graphc.In(y, value=[1.0, 1.0])], x * y)
        >>> f([1, 2]), f(x=[1, 2], y=[3, 4])
        (array([1., 2.]), array([3., 8.]))
    """
    if isinstance(inputs, list | tuple):
        inputs = [*map(from_tuple, inputs)]
    if _is_nested(inputs, outputs):
        given = {name: value for name, value in locals().items() if name not in ("inputs", "outputs")}
        return import_module("graphc.functions.wrappers").nested_function(function, inputs, outputs, given)
    records = [item if isinstance(item, In) else In(item) for item in _listed(inputs)]
    if any(record.is_state for record in records):
        rest = {name: value for name, value in locals().items() if name not in ("inputs", "records")}
        return import_module("graphc.functions.states").make_stateful(function, records, **rest)
    values, keys, returns = _outputs(outputs)
    unused = on_unused_input or options.on_unused_input
    records, values, pairs = _graph_of(records, values, updates, givens, no_default_updates, unused)
    kernel = _kernel(name, records, values, pairs, returns, threads, fast_math)
    if allow_input_downcast is not None:
        records = [replace(r, allow_downcast=allow_input_downcast) if r.allow_downcast is None else r for r in records]
    call = Convention(tuple(records), name_positions(records), keys)
    made = _made(kernel, call, mode, bool(HOOKS.default_profile if profile is None else profile))
    made.name, made.trust_input = name or "function", trust_input
    return made


def _kernel(
    name: str | None,
    records: list[In],
    values: list[Node],
    pairs: list[tuple[Node, Node]],
    returns: str,
    threads: int | str | None,
    fast_math: object,
) -> Kernel:
    """The kernel that is compiled: inputs, outputs and updates, with the settings of this function alone."""
    if fast_math is not None and not isinstance(fast_math, bool):
        raise errors.GraphValueError(f"fast_math={fast_math!r}: must be True, False or None")
    if name is not None and not isinstance(name, str):
        raise errors.ArgumentError(f"a function's name is a string, not {name!r}")
    return Kernel(
        "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in name or "function"),
        tuple(record.variable for record in records),
        shared_of(values, pairs),
        tuple(values),
        tuple(pairs),
        returns,
        None if threads is None else check_threads("threads", threads),
        tuple(number for number, record in enumerate(records) if record.may_be_written),
        options.fast_math if fast_math is None else fast_math,  # as it is now: all kernels of the function agree
    )


def _graph_of(
    records: list[In], values: list[Node], updates: Any, givens: Any, no_default_updates: Any, unused: str
) -> tuple[list[In], list[Node], list[tuple[Node, Node]]]:
    """Return inputs, outputs and updates after givens and default updates. Raises for missing or unused inputs."""
    pairs = updates_of(updates)
    replaced = _givens(givens)
    records, replaced = _free_inputs(records, replaced)
    replacements = _with_sizes(_resolve(replaced), {record.variable for record in records})
    values, pairs = _replace(values, pairs, replacements)
    pairs = default_updates(values, pairs, no_default_updates, replacements)
    values, pairs = _one_for_each_value(values, pairs)
    forgotten = _check_inputs(records, values, pairs, unused)
    if forgotten:
        values, pairs = _replace(values, pairs, _implied(forgotten, values, pairs))
        for size in _check_inputs(records, values, pairs, unused):
            owner = size_owner(size)
            whose = f", but {describe(owner)} is not an input" if owner is not None else ", which is not an input"
            raise errors.MissingInputError(
                f"the graph needs {describe(size)}{whose}{traced_hint(size if owner is None else owner)}"
            )
    return (records, *_sunk(values, pairs))


def _made(kernel: Kernel, call: Convention, mode: Any, profiled: bool) -> Function:
    """Make the function of a kernel in a mode as users name it."""
    checks = checking_mode(mode or HOOKS.default_mode or options.mode)
    chosen, excluding = ("interpreted", ()) if checks is not None else _mode(mode)
    if chosen == "compiled" and why_not_compiled():
        chosen = _interpreted_instead(why_not_compiled())
    if checks is not None:
        return checks.make_function(kernel, call, profiled)
    with options.change(excluding={*options.excluding, *excluding}) if excluding else nullcontext():
        return make_function(class_of_mode(chosen), kernel, call, profiled)


def checking_mode(mode: Any) -> Any:
    """Return the mode object where `mode` is, or names, a mode that checks values (debug_modes.py); else None."""
    if isinstance(mode, str) and mode not in MODES:
        make = import_module("graphc.functions.debug_modes").MODES.get(mode)
        return make and make()
    return mode if hasattr(mode, "make_function") else None


def _mode(mode: Any) -> tuple[Mode, tuple[str, ...]]:
    """Return the name of a mode, and the rules that it excludes. Raises GraphValueError for an unknown mode."""
    excluding: tuple[str, ...] = ()
    if mode is not None and not isinstance(mode, str):
        settings = getattr(mode, "settings", None)
        if settings is None:
            raise errors.GraphValueError(f"mode {mode!r}: must be a Mode, or one of {', '.join(MODES)}")
        mode, excluding = settings()
    name = mode or HOOKS.default_mode or options.mode
    chosen = MODES.get(name)
    if chosen is None:
        checking = import_module("graphc.functions.debug_modes").MODES
        raise errors.GraphValueError(f"mode {name!r}: must be one of {', '.join([*MODES, *checking])}")
    return chosen, excluding


@cache
def _interpreted_instead(why: str) -> Mode:
    """Return "interpreted", and warn once for each reason."""
    warn_user(f"{why}: they run in the interpreted mode", RuntimeWarning)
    return "interpreted"


def _is_nested(inputs: Any, outputs: Any) -> bool:
    """True where an input or an output is a tree of nodes, more deeply nested than `function` handles itself."""

    def is_tree(item: Any) -> bool:
        item = item.variable if isinstance(item, In | Out) else item
        return is_nested(item) and any(isinstance(leaf, Node | In | Out) for leaf in leaves(item))

    several = isinstance(inputs, list | tuple) and any(map(is_tree, inputs))
    if several or (isinstance(inputs, Mapping) and is_tree(inputs)):
        return True
    items = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list | tuple) else ()
    return any(map(is_tree, items)) or (is_tree(outputs) and not isinstance(outputs, dict | list | tuple))


# The arguments of `function` ----------------------------------------------------------------------------------------


def _listed(inputs: Any) -> list[Any]:
    if isinstance(inputs, str) or not isinstance(inputs, Iterable | In):
        raise errors.GraphTypeError(f"inputs must be a list of variables; got {inputs!r}")
    items = [inputs] if isinstance(inputs, Node | In) else list(inputs)
    for item in items:
        variable = item.variable if isinstance(item, In) else item
        if not isinstance(variable, Node):
            raise errors.GraphTypeError(f"inputs must be variables; got {variable!r}")
    return items


def _outputs(outputs: Any) -> tuple[list[Node], tuple[str, ...] | None, str]:
    def node(value: Any) -> Node:
        return as_node(value.variable if isinstance(value, Out) else value)

    if outputs is None:
        return [], None, "list"
    if isinstance(outputs, Mapping):
        if not all(isinstance(key, str) for key in outputs):
            raise errors.GraphTypeError("the keys of a dict of outputs must be strings")
        return [node(value) for value in outputs.values()], tuple(outputs), "list"
    if isinstance(outputs, list | tuple):
        return [node(value) for value in outputs], None, "list"
    return [node(outputs)], None, "one"


def _pairs(what: str, items: Any) -> list[tuple[Any, Any]]:
    if items is None:
        return []
    if isinstance(items, Node | str) or not isinstance(items, Iterable):
        raise errors.GraphTypeError(f"{what} must be a dict or pairs; got {items!r}")
    found = list(items.items()) if isinstance(items, Mapping) else list(items)
    pairs: list[tuple[Any, Any]] = []
    for pair in found:
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            raise errors.GraphTypeError(f"{what} must be a dict or pairs; got {pair!r} among them")
        left, right = pair
        pairs += zip(leaves(left), up_to(left, right), strict=True) if hasattr(left, "__taken__") else [(left, right)]
    return pairs


def updates_of(updates: Any) -> list[tuple[Node, Node]]:
    """Return pairs of shared variable and cast new value. Raises UpdateError for what cannot be updated so."""
    result: dict[Node, Node] = {}
    cells: dict[int, Node] = {}
    for shared, new in _pairs("updates", updates):
        if not isinstance(shared, SharedVariable):
            what = describe(shared) if isinstance(shared, Node) else repr(shared)
            raise errors.UpdateError(f"only a shared variable can be updated; got {what}")
        if shared in result:
            raise errors.UpdateError(f"{describe(shared)} is updated twice")
        other = cells.setdefault(id(shared.cell), shared)
        if other is not shared:
            raise errors.UpdateError(f"{describe(other)} and {describe(shared)} share a value, which is updated twice")
        result[shared] = _update_value(shared, new)
    return list(result.items())


def _update_value(shared: SharedVariable, new: Any) -> Node:
    value = as_node(new)
    if isinstance(new, bool | int) or (isinstance(new, float) and is_float(shared.type.dtype)):
        value = cast(value, shared.type.dtype) if fits(new, shared.type.dtype) else value
    value = cast_safely(value, shared.type.dtype)
    if value.type.dtype != shared.type.dtype or value.ndim != shared.ndim:
        raise errors.UpdateError(
            f"the update of {describe(shared)} must have its type {shared.type}; "
            f"{describe(value)} has type {value.type}"
        )
    axis = _differing_axis(shared, value)
    if axis is not None:
        raise errors.UpdateError(
            f"the update of {describe(shared)} must have size {shared.type.shape[axis]} along axis {axis}; "
            f"{describe(value)} has type {value.type}"
        )
    return with_static_sizes(shared, value, "update")


def _differing_axis(variable_: Node, value: Node) -> int | None:
    """The first axis along which two nodes have different static sizes; None where there is none."""
    for axis, (size, new_size) in enumerate(zip(variable_.type.shape, value.type.shape, strict=True)):
        if isinstance(size, int) and isinstance(new_size, int) and size != new_size:
            return axis
    return None


def _givens(givens: Any) -> dict[Node, Node]:
    result: dict[Node, Node] = {}
    for variable_, value in _pairs("givens", givens):
        if not isinstance(variable_, Node):
            raise errors.GraphTypeError(f"givens replace variables; got {variable_!r}")
        node = cast_safely(as_node(value), variable_.type.dtype)
        same = node.type.dtype == variable_.type.dtype and node.ndim == variable_.ndim
        if not same or _differing_axis(variable_, node) is not None:
            raise errors.GraphTypeError(
                f"function, called at {user_line()}: givens: {describe(node)} of rank {node.ndim} and type {node.type} "
                f"cannot replace {describe(variable_)} of rank {variable_.ndim} and type {variable_.type}"
            )
        result[variable_] = with_static_sizes(variable_, node, "given value")
    return result


def _resolve(replaced: Mapping[Node, Node]) -> dict[Node, Node]:
    """Apply the replacements to each other, so that one substitution makes them all. A variable in its own replacement
    stays. Raises CycleError where variables replace each other.
    """
    needs = {
        node: [other for other in nodes_of([value]) if other in replaced and other is not node]
        for node, value in replaced.items()
    }
    done: dict[Node, Node] = {}
    for node in toposort(replaced, needs.__getitem__, describe):
        (done[node],) = substitute([replaced[node]], {other: done[other] for other in needs[node]})
    return done


def _with_sizes(replaced: Mapping[Node, Node], inputs: set[Node]) -> dict[Node, Node]:
    """Return `replaced` with replacements for sizes: those of a replaced computed value that depend on leaves which are
    no inputs become the sizes of the replacement."""

    def is_known(size: Node) -> bool:
        owners = [size_owner(leaf) for leaf in node_set([size]) if leaf.op is SIZE]
        return all(owner is not None and (owner.op is SHARED or owner in inputs) for owner in owners)

    result = dict(replaced)
    for before, after in replaced.items():
        for old, new in zip(before.type.shape, after.type.shape, strict=True):
            if before.args and isinstance(old, Node) and old is not new and not is_known(old):
                result.setdefault(old, as_size_node(new))
    return result


def _free_inputs(records: list[In], replaced: dict[Node, Node]) -> tuple[list[In], dict[Node, Node]]:
    """Replace each input that is a computed value of the graph by a new variable."""
    free = []
    for item in records:
        node = item.variable
        if node.op is SHARED:
            raise errors.GraphTypeError(f"{describe(node)} is shared and cannot be an input; use givens or set_value")
        if node.op is not INPUT:
            if node.op in LEAVES:
                raise errors.GraphTypeError(f"{describe(node)} cannot be an input")
            sizes = tuple(size if isinstance(size, int) else None for size in node.type.shape)
            fresh = variable(node.dtype, sizes, node.name)
            fresh.mentioned = node.mentioned
            replaced = {**replaced, node: fresh}
            item = replace(item, variable=fresh)
        free.append(item)
    return free, replaced


def _replace(
    values: list[Node], pairs: list[tuple[Node, Node]], replaced: Mapping[Node, Node]
) -> tuple[list[Node], list[tuple[Node, Node]]]:
    if not replaced:
        return values, pairs
    new = substitute([*values, *(value for _, value in pairs)], replaced)
    return new[: len(values)], [(leaf, value) for (leaf, _), value in zip(pairs, new[len(values) :], strict=True)]


def _sunk(values: list[Node], pairs: list[tuple[Node, Node]]) -> tuple[list[Node], list[tuple[Node, Node]]]:
    """Move values that only one branch of a conditional needs into that branch."""
    roots = [*values, *(value for _, value in pairs)]
    if any(node.is_tuple for node in node_set(roots)):
        roots = sink_into_branches(without_overrides(roots))
    return roots[: len(values)], [(leaf, value) for (leaf, _), value in zip(pairs, roots[len(values) :], strict=True)]


def default_updates(
    values: list[Node], pairs: list[tuple[Node, Node]], excluded: bool | Sequence[Node], replaced: Mapping[Node, Node]
) -> list[tuple[Node, Node]]:
    """Return the updates with the default updates of shared variables in the graph, in which `replaced` is substituted.

    excluded: True for no default updates, or the variables without. Of several variables over one value, the last of
    the graph counts. Default updates may bring further variables with default updates into the graph.
    """
    if not isinstance(excluded, bool | list | tuple | set | frozenset):
        raise errors.ArgumentError(
            f"no_default_updates={excluded!r}: must be True, False or a list of shared variables"
        )
    if excluded is True:
        return pairs
    skip = set(() if isinstance(excluded, bool) else excluded)
    while True:
        roots = [*values, *(value for _, value in pairs)]
        known = {id(leaf.cell) for leaf, _ in pairs if isinstance(leaf, SharedVariable)}
        found = {
            id(node.cell): node
            for node in nodes_of(roots)
            if isinstance(node, SharedVariable) and node not in skip and node.default_update is not None
        }
        extra: list[tuple[Node, Node]] = [
            (node, _update_value(node, node.default_update)) for cell, node in found.items() if cell not in known
        ]
        if not extra:
            return pairs
        pairs = [*pairs, *_replace([], extra, replaced)[1]]


def _one_for_each_value(
    values: list[Node], pairs: list[tuple[Node, Node]]
) -> tuple[list[Node], list[tuple[Node, Node]]]:
    """Merge shared variables over one value into the first, so that all reads see the value before its update."""
    first: dict[int, SharedVariable] = {}
    others: dict[Node, Node] = {}
    for leaf in shared_of(values, pairs):
        assert isinstance(leaf, SharedVariable)
        kept = first.setdefault(id(leaf.cell), leaf)
        if kept is not leaf:
            others[leaf] = with_static_sizes(leaf, kept, "shared value")
    if not others:
        return values, pairs
    values, pairs = _replace(values, pairs, others)
    news = {leaf: value for leaf, value in pairs if isinstance(leaf, SharedVariable)}
    return values, [(first[id(leaf.cell)], with_static_sizes(leaf, value, "update")) for leaf, value in news.items()]


def _check_inputs(
    records: Sequence[In], values: Sequence[Node], pairs: Sequence[tuple[Node, Node]], on_unused: str
) -> list[Node]:
    """Raise for inputs that are doubled, missing or unused. Returns the sizes needed of variables that are none."""
    if on_unused not in ("raise", "warn", "ignore"):
        raise errors.GraphValueError(f"on_unused_input={on_unused!r}: must be 'raise', 'warn' or 'ignore'")
    inputs = [record.variable for record in records]
    if len(known := set(inputs)) < len(inputs):
        twice = next(node for node, count in Counter(inputs).items() if count > 1)
        raise errors.UnusedInputError(f"{describe(twice)} is an input twice")
    nodes = nodes_of([*values, *(new for _, new in pairs)])
    sizes = {node: leaf for leaf in inputs for node in leaf.type.shape if isinstance(node, Node)}
    owned = {size for node in nodes if node.op in (INPUT, SHARED) for size in node.type.shape}
    forgotten: list[Node] = []
    for node in nodes:
        if node.op is INPUT and node not in known:
            what = f"{describe(node)} of type {node.type}"
            raise errors.MissingInputError(f"the graph needs {what}, which is not an input{traced_hint(node)}")
        if node.op is SIZE and node not in sizes and node not in owned:
            owner = size_owner(node)
            if owner is None or owner.op is not SHARED:
                forgotten.append(node)
    used = set(nodes) | {sizes[node] for node in nodes if node in sizes}
    unused = [node for node in inputs if node not in used and not node.mentioned]
    if unused and on_unused != "ignore":
        message = f"the outputs and updates do not use {', '.join(map(describe, unused))}, given as input"
        if on_unused == "raise":
            raise errors.UnusedInputError(f"{message}; on_unused_input='ignore' allows it")
        warn_user(message)
    return forgotten


def _implied(forgotten: Sequence[Node], values: Sequence[Node], pairs: Sequence[tuple[Node, Node]]) -> dict[Node, Node]:
    """Return values for sizes of variables that are no inputs, from the equality checks of derivatives.

    `Lop(dot(x, w), w, v)` does not need w, only checks that its sizes fit: they are then taken to be those that fit.
    """
    found: dict[Node, Node] = {}
    for node in nodes_of([*values, *(new for _, new in pairs)]):
        if node.where is None or node.where.words is None:
            continue
        for guard in node.op.guards(node):
            for size, other in ((guard.left, guard.right), (guard.right, guard.left)):
                if guard.relation == "==" and isinstance(size, Node) and size in forgotten and size not in found:
                    implied = as_size_node(other)
                    if not node_set([implied]) & set(forgotten):
                        found[size] = implied
    return found


def evaluate(node: Node, inputs_to_values: Mapping[Node, Any] | None = None, mode: str | None = None) -> Array:
    """Return the value of a node for values of the inputs it needs: make a function, call it once and drop it.

    x = T.dvector("x")
    (x * 2).eval({x: [1, 2]})     # array([2., 4.])
    """
    given = dict(inputs_to_values or {})
    return function(list(given), node, mode=mode, on_unused_input="ignore")(*given.values())


FUNCTIONS["eval"] = evaluate
