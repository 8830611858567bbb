"""Graphs as Theano's programs walk them: variables, and the applications of ops between them.

    inputs([T.dot(x, w).sum()])                  [x, w]
    io_toposort([x], [T.exp(x) + 1])             [exp(x), add(exp(x), 1)]
    clone_replace(T.exp(x), {x: 2 * x})          exp(2 * x)

In: variables. Out: lists of what they are computed from, copies with replacements; `FunctionGraph`, a graph with its
inputs and outputs, to look at. A size that is known only at a call stands for the variable whose size it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import is_
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.control.derivative import step_of
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, GraphValueError, MissingInputError
from graphc.functions.convention import Out
from graphc.functions.function import default_updates, function, updates_of
from graphc.ir import walk
from graphc.ir.body import close, opened
from graphc.ir.call_errors import explain_all
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    NODES,
    SHARED,
    SIZE,
    Constant,
    Node,
    describe,
    next_serial,
    size_owner,
)
from graphc.ir.text import print_graph
from graphc.ops.branch import COND, cond_node
from graphc.ops.elementwise import as_node
from graphc.ops.scan import SCAN, loop_of, make_scan, with_body
from graphc.shared import SharedVariable
from graphc.startup.record import replace
from graphc.tensor.variables import Variable
from graphc.theano.owners import Apply, Composed, apply_of


def _listed(variables: Any) -> list[Node]:
    return [as_node(variables)] if isinstance(variables, Node) else [as_node(each) for each in variables]


def parents(variable: Node) -> list[Node]:
    """The inputs of the op that makes a variable."""
    return [] if variable.owner is None else variable.owner.get_parents()


def stack_search(
    start: Iterable[Any], expand: Callable[[Any], Iterable[Any] | None], mode: str = "bfs", build_inv: bool = False
) -> Any:
    """Everything that `expand` leads to from `start`, breadth first ("bfs") or depth first ("dfs"). `build_inv`: and a
    dict of what each was reached from. Raises GraphTypeError for another mode."""
    if mode not in ("bfs", "dfs"):
        raise GraphValueError(f"stack_search: mode {mode!r} is neither 'bfs' nor 'dfs'")
    pending = deque(start)
    found: dict[Any, None] = {}
    inverse: dict[Any, list[Any]] = {}
    while pending:
        item = pending.popleft() if mode == "bfs" else pending.pop()
        if item in found:
            continue
        found[item] = None
        for following in expand(item) or ():
            pending.append(following)
            if build_inv:
                inverse.setdefault(following, []).append(item)
    return (list(found), inverse) if build_inv else list(found)


def ancestors(variable_list: Any, blockers: Iterable[Node] | None = None) -> list[Node]:
    """The variables that some variables are computed from, themselves included; not what is behind `blockers`. The
    order is that of a walk in depth, from the last variable of the list to the first, along the inputs of each op from
    its first to its last."""
    stop = set(blockers or ())

    def expand(variable: Node) -> list[Node]:
        return [] if variable in stop else parents(variable)[::-1]

    found: list[Node] = stack_search(_listed(variable_list), expand, "dfs")
    return found


def inputs(variable_list: Any, blockers: Iterable[Node] | None = None) -> list[Node]:
    """The leaves that some variables are computed from, in the order of `ancestors`: inputs, shared variables and
    constants. Programs that save parameters by this order find it as it was.

        >>> inputs(reversed([w, b]))
        [w, b]
    """
    return [each for each in ancestors(variable_list, blockers) if each.owner is None]


def variables_and_orphans(i: Any, o: Any) -> tuple[list[Node], list[Node]]:
    """The variables between inputs and outputs, and those among them that are neither computed nor inputs, both in the
    order of a walk in depth from the last output to the first."""
    given = set(_listed(i))

    def expand(variable: Node) -> list[Node]:
        owner = None if variable in given else variable.owner
        return [] if owner is None else [*owner.get_parents(), *owner.outputs][::-1]

    found: list[Node] = stack_search(_listed(o), expand, "dfs")
    return found, [each for each in found if each.owner is None and each not in given]


def variables(i: Any, o: Any) -> list[Node]:
    """The variables between inputs and outputs, both included where the outputs need them."""
    return variables_and_orphans(i, o)[0]


def orphans(i: Any, o: Any) -> list[Node]:
    """The variables between inputs and outputs that are neither computed nor inputs."""
    return variables_and_orphans(i, o)[1]


def io_toposort(
    inputs: Any,
    outputs: Any,
    orderings: Mapping[Apply, Sequence[Apply]] | None = None,
    clients: dict[Any, list[Any]] | None = None,
) -> list[Apply]:
    """The applications of ops between inputs and outputs, each after all whose outputs it takes, and after those that
    `orderings` lists for it. Of what could come in several orders, the last input's op comes first. clients: a dict
    that is filled with who takes each variable and application."""
    given = set(_listed(inputs))
    if orderings or clients is not None:

        def needs(item: Any) -> list[Any]:
            made = [item.owner] if isinstance(item, Node) and item.owner is not None else []
            before = [] if item in given else made if isinstance(item, Node) else item.inputs
            return [*before, *(orderings or {}).get(item, ())]

        everything = general_toposort(_listed(outputs), needs, clients=clients)
        return [item for item in everything if isinstance(item, Apply)]
    done, pending, order = given, _owners(_listed(outputs)[::-1]), list[Apply]()
    while pending:
        apply = pending.pop()
        if apply.outputs[0] in done:
            continue
        missing = _owners(each for each in apply.inputs if each not in done)
        if missing:
            pending += [apply, *missing]
        else:
            done.update(apply.outputs)
            order.append(apply)
    return order


def _owners(variables: Iterable[Node]) -> list[Apply]:
    """The applications that computed variables come from, in their order."""
    return [owner for owner in (each.owner for each in variables) if owner is not None]


def general_toposort(
    outputs: Iterable[Any],
    deps: Callable[[Any], Iterable[Any] | None],
    debug_print: bool = False,
    compute_deps_cache: Callable[[Any], Iterable[Any] | None] | None = None,
    deps_cache: Any = None,
    clients: dict[Any, list[Any]] | None = None,
) -> list[Any]:
    """Everything that `outputs` need by `deps`, each after what it needs: first what needs nothing, as a walk in depth
    from the last output finds it, then what that makes ready. clients: a dict that is filled with who needs each.
    compute_deps_cache takes the place of `deps`; the others are for Theano's sake. Raises CycleError (a ValueError)."""
    ask, left, roots = compute_deps_cache or deps, dict[Any, dict[Any, None]](), list(outputs)

    def expand(item: Any) -> list[Any]:
        before = list(ask(item) or ())
        left[item] = dict.fromkeys(before)
        return before

    found, users = stack_search(roots, expand, "dfs", build_inv=True)
    if clients is not None:
        clients.update(users)
    order = [item for item in found if not left[item]]
    for item in order:  # which grows
        for user in dict.fromkeys(users.get(item, ())):
            del left[user][item]
            if not left[user]:
                order.append(user)
    return order if len(order) == len(found) else walk.toposort(roots, lambda item: list(ask(item) or ()))


def ops(i: Any, o: Any) -> set[Apply]:
    """The applications of ops between inputs and outputs."""
    return set(io_toposort(i, o))


graph_inputs, vars_between, orphans_between, applys_between = inputs, variables, orphans, ops
"""Theano-PyMC's names."""


def list_of_nodes(inputs: Any, outputs: Any) -> list[Apply]:
    """The applications of ops between inputs and outputs, in the order of a walk in breadth from the outputs."""
    given = set(_listed(inputs))

    def within(apply: Apply) -> list[Apply]:
        return [owner for owner in _owners(apply.inputs) if given.isdisjoint(owner.outputs)]

    found: list[Apply] = stack_search(_owners(_listed(outputs)), within)
    return found


def is_in_ancestors(l_node: Apply, f_node: Apply) -> bool:
    """True where `l_node` needs a result of `f_node`."""
    return f_node in io_toposort([], l_node.outputs)


def _told(apply: Apply, parts: Sequence[str]) -> str:
    return f"{apply.op}({', '.join(parts)})"


def as_string(
    i: Any,
    o: Any,
    leaf_formatter: Callable[[Node], str] = str,
    node_formatter: Callable[[Apply, list[str]], str] = _told,
) -> list[str]:
    """The computation of each output from inputs in text. An application that is used several times is written where it
    comes first, as "*n -> text", and after that "*n" stands for it, with "::k" for result k of several.

    leaf_formatter: the text of a variable. node_formatter: that of an application, given the texts of its inputs.

        >>> as_string([x], [T.exp(x) + x])
        ['add(exp(x), x)']
    """
    outputs, given = _listed(o), set(_listed(i))
    uses = _uses(given, outputs)
    numbers = {apply: n for n, apply in enumerate((each for each, places in uses.items() if len(places) > 1), 1)}
    texts: dict[Apply, str] = {}

    def text_of(variable: Node, place: tuple[Apply | None, int]) -> str:
        owner = None if variable in given else variable.owner
        if owner is None:
            return leaf_formatter(variable)
        if uses[owner][0] == place:
            return f"*{numbers[owner]} -> {texts[owner]}" if owner in numbers else texts[owner]
        results = owner.outputs
        which = f"::{[id(each) for each in results].index(id(variable))}" if len(results) > 1 else ""
        return f"*{numbers[owner]}{which}"

    for apply in io_toposort(given, outputs):
        if apply in uses:
            texts[apply] = node_formatter(apply, [text_of(each, (apply, k)) for k, each in enumerate(apply.inputs)])
    return [text_of(each, (None, k)) for k, each in enumerate(outputs)]


def _uses(given: set[Node], outputs: Sequence[Node]) -> dict[Apply, list[tuple[Apply | None, int]]]:
    """The users of the results of each application between inputs and outputs, and as which argument (None: the
    graph itself), in the order in which a text of the graph has them."""
    found: dict[Apply, list[tuple[Apply | None, int]]] = {}
    pending: list[tuple[Apply | None, int, Node]] = [(None, k, outputs[k]) for k in reversed(range(len(outputs)))]
    while pending:
        user, place, variable = pending.pop()
        owner = None if variable in given else variable.owner
        if owner is None:
            continue
        if owner not in found:
            pending += [(owner, k, each) for k, each in enumerate(owner.inputs)][::-1]
        found.setdefault(owner, []).append((user, place))
    return found


def op_as_string(
    i: Any,
    op: Apply,
    leaf_formatter: Callable[[Node], str] = str,
    node_formatter: Callable[[Apply, list[str]], str] = _told,
) -> str:
    """One application in text, as in `as_string`."""
    return node_formatter(op, as_string(i, op.inputs, leaf_formatter, node_formatter))


def io_connection_pattern(inputs: Any, outputs: Any) -> list[list[bool]]:
    """For each input, for each output, whether a derivative of this by that goes through the graph: through every op,
    but for what an op's own `connection_pattern` excludes. Sizes and what `disconnected_grad` gives depend on
    nothing."""
    given, results = _listed(inputs), _listed(outputs)
    reached: dict[Node, set[Node]] = {each: {each} for each in given}
    for apply in io_toposort(given, results):
        pattern = getattr(apply.op, "connection_pattern", None)
        told = pattern(apply) if pattern is not None else None
        for place, result in enumerate(apply.outputs):
            ways = [each for k, each in enumerate(apply.inputs) if told is None or told[k][place]]
            ways = [] if getattr(apply.op, "name", "") == "stop_gradient" else ways
            reached[result] = set().union(*(reached.get(each, ()) for each in ways))
    return [[each in reached.get(result, ()) for result in results] for each in given]


@contextmanager
def nodes_constructed() -> Iterator[list[Node]]:
    """A list of the values that are computed while a `with` block runs, each once, to which they are added as they are
    made; one that there was before counts where it is written again."""
    new: dict[Node, None] = {}
    listed: list[Node] = []

    def note(node: Node) -> None:
        if node not in new:
            new[node] = None
            listed.append(node)
        if before is not None:
            before(node)

    before = NODES.watch(note)
    try:
        yield listed
    finally:
        NODES.watch(before)


def view_roots(r: Node) -> list[Node]:
    """The variable itself: no value of graphc is a view of another one."""
    return [r]


def is_same_graph(var1: Any, var2: Any, givens: Any = None, debug: bool = False) -> bool:
    """True where two variables are the same computation of the same inputs, once those in `givens` (a dict or pairs)
    have been replaced. Equal graphs are one object, so that without `givens` this is `var1 is var2`."""
    left, right = replaced([as_node(var1), as_node(var2)], _pairs(givens))
    return left is right


def equal_computations(xs: Any, ys: Any, in_xs: Any = None, in_ys: Any = None) -> bool:
    """True where each of `xs` is the same computation as the one of `ys` at its place, those of `in_xs` standing for
    those of `in_ys`. Raises GraphTypeError for lists of two lengths."""
    left, right = _listed(xs), _listed(ys)
    stands, held = _listed(in_xs or ()), _listed(in_ys or ())
    if len(left) != len(right):
        raise GraphTypeError(f"equal_computations: {len(left)} variables and {len(right)} to compare them with")
    if len(stands) != len(held) or any(x.type != y.type for x, y in zip(stands, held, strict=True)):
        return False
    both = replaced([*left, *right], dict(zip(stands, held, strict=True)))
    return all(x is y for x, y in zip(both[: len(left)], both[len(left) :], strict=True))


def _pairs(replace: Any) -> dict[Node, Node]:
    items = replace.items() if isinstance(replace, Mapping) else replace or ()
    return {as_node(old): as_node(new) for old, new in items}


def checked(replace: Any, strict: bool) -> dict[Node, Node]:
    """Replacements that have the types of what they replace, or more static sizes, or in other dtypes unless `strict`;
    others are an error."""
    pairs = _pairs(replace)
    for old, new in pairs.items():
        sizes = zip(old.type.shape, new.type.shape, strict=False)
        is_less = any(isinstance(before, int) and before != after for before, after in sizes)
        if new.ndim != old.ndim or (strict and (is_less or new.type.dtype != old.type.dtype)):
            raise GraphTypeError(
                f"{describe(new)} of type {new.type} cannot replace {describe(old)} of type {old.type}; strict=False "
                "allows another dtype"
            )
    return pairs


def replaced(nodes: Sequence[Node], pairs: Mapping[Node, Node]) -> list[Node]:
    """Nodes with some replaced, tags kept; the sizes of a computed one that is replaced too, where they came from
    variables that nothing needs any more."""
    new = walk.with_tags(nodes, pairs)
    sizes = {
        size: walk.as_size_node(after)
        for old, value in pairs.items()
        for size, after in zip(old.type.shape, value.type.shape, strict=False)
        if old.args and isinstance(size, Node) and size is not after
    }
    if not sizes:
        return new
    left = walk.node_set(new)
    lost = {
        size: after
        for size, after in sizes.items()
        if not any(size_owner(leaf) in left for leaf in walk.node_set([size]) if leaf.op is SIZE)
    }
    return walk.with_tags(nodes, {**lost, **pairs}) if lost else new


def _like(outputs: Any, nodes: Sequence[Node]) -> Any:
    if isinstance(outputs, Mapping):
        return dict(zip(outputs, nodes, strict=True))
    return type(outputs)(nodes) if isinstance(outputs, list | tuple) else nodes[0]


def clone_replace(
    output: Any, replace: Any = None, strict: bool = True, share_inputs: bool = True, copy_inputs: Any = None
) -> Any:
    """Return `output` with the variables in `replace` replaced: `theano.clone`.

    output: a variable, or a list, tuple or dict of them; the result has its form. replace: a dict, or pairs.
    strict: replacements must have the type of what they replace. share_inputs=False: the inputs that are left are fresh
    variables. copy_inputs: Theano's old name for share_inputs. Raises GraphTypeError for a replacement of another type.

        >>> x = T.dvector("x")
        >>> graphc.clone(x**2, replace={x: T.constant([1.0, 3.0])}).eval()
        array([1., 9.])
    """
    items = list(output.values()) if isinstance(output, Mapping) else output
    nodes = _listed(items) if isinstance(items, Node | list | tuple) else [as_node(items)]
    pairs = checked(replace, strict)
    if not (share_inputs if copy_inputs is None else copy_inputs):
        nodes = replaced(nodes, pairs)
        pairs = {leaf: leaf.clone() for leaf in inputs(nodes) if leaf.op in (INPUT, SHARED)}
    return _like(output, replaced(nodes, pairs))


def graph_replace(outputs: Any, replace: Any = None, *, strict: bool = True) -> Any:
    """`outputs` with the variables in `replace` replaced. Raises GraphTypeError for a variable that they do not need,
    unless strict=False."""
    pairs = checked(replace, strict=False)
    items = list(outputs.values()) if isinstance(outputs, Mapping) else outputs
    known = set(ancestors(items))
    for old in pairs:
        if strict and old not in known:
            raise GraphValueError(f"{describe(old)} is to be replaced, and the outputs do not need it")
    return _like(outputs, replaced(_listed(items), pairs))


def clone(i: Any, o: Any, copy_inputs: bool = True, copy_orphans: bool | None = None) -> tuple[list[Node], list[Node]]:
    """Inputs and outputs over fresh inputs (`copy_inputs`)."""
    equivalent = clone_get_equiv(i, o, copy_inputs)
    return [equivalent[each] for each in _listed(i)], [equivalent[each] for each in _listed(o)]


def clone_get_equiv(
    inputs: Any, outputs: Any, copy_inputs: bool = True, copy_orphans: bool = True, memo: Any = None
) -> dict[Any, Any]:
    """Every variable and application between inputs and outputs, with what it becomes over fresh inputs."""
    given = _listed(inputs)
    fresh = {each: each.clone() if copy_inputs else each for each in given} | dict(memo or {})
    between = [each for each in variables(given, outputs) if each not in fresh]
    equivalent: dict[Any, Any] = dict(fresh) | dict(zip(between, walk.with_tags(between, fresh), strict=True))
    for old, new in list(equivalent.items()):
        if old.owner is not None and new.owner is not None and old not in given:
            equivalent[apply_of(old)] = apply_of(new)
    return equivalent


# a graph with inputs and outputs --------------------------------------------------------------------------------------


class Clients(dict[Node, list[tuple[Any, int]]]):
    """The users of each value, and as which argument: `clients[x]`, or Theano's `clients(x)`."""

    def __call__(self, value: Node) -> list[tuple[Any, int]]:
        """The users of a value."""
        return self[value]


def _parents(node: Node) -> Sequence[Node]:
    """The inputs of a value, as its owner shows it."""
    owner = None if node.op in LEAVES else node.owner
    return owner.inputs if isinstance(owner, Composed) else node.args


class FunctionGraph:
    """inputs, outputs: variables and values. Graphs never change: a rewritten graph is another one.

    Raises MissingInputError where the outputs need a variable that is not among the inputs.
    """

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node], clone: bool = True, **kwargs: Any) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.name: str | None = None
        for node in walk.nodes_of(self.outputs):
            if node.op in LEAVES and node.op not in (CONSTANT, SIZE) and node not in set(self.inputs):
                raise MissingInputError(f"the graph needs {describe(node)}, which is not among its inputs")

    def toposort(self) -> list[Any]:
        """The applications of ops, each after those that it needs, in the order of `graph.io_toposort`."""
        return io_toposort(self.inputs, self.outputs)

    def _nodes(self) -> list[Node]:
        """The values, but for those within an op of Theano's that is put together from several."""
        seen = set(walk.reachable(self.outputs, _parents))
        return [node for node in walk.nodes_of(self.outputs) if node in seen]

    @property
    def apply_nodes(self) -> set[Any]:
        """The applications of ops, in no order."""
        return set(self.toposort())

    @property
    def variables(self) -> set[Node]:
        """All values of the graph."""
        return {*self.inputs, *self._nodes()}

    @property
    def clients(self) -> Clients:
        """For each value, who uses it and as which argument; "output" for the graph itself."""
        nodes = self._nodes()
        found = Clients({node: [] for node in [*self.inputs, *nodes]})
        for node in nodes:
            hidden = getattr(node.op.eval, "hidden", 0)  # what a user's op computes, before its inputs
            for place, arg in enumerate(_parents(node)[hidden:]):
                found[arg].append((node.owner, place))
        for place, node in enumerate(self.outputs):
            found[node].append(("output", place))
        return found

    def clone(self) -> FunctionGraph:
        """The graph: it never changes."""
        return self

    def replace(self, *args: Any, **kwargs: Any) -> None:
        """Not there: graphs never change; `graphc.clone(output, replace={...})` makes another one."""
        raise GraphcError("a FunctionGraph never changes; graphc.clone(output, replace={...}) makes another graph")

    def __len__(self) -> int:
        return len(self.toposort())

    def __str__(self) -> str:
        return print_graph(walk.Graph(tuple(self.inputs), tuple(self.outputs)))


__all__ = [
    "Apply", "Constant", "FunctionGraph", "Variable", "ancestors", "as_string", "clone", "clone_get_equiv",
    "clone_replace", "equal_computations", "general_toposort", "graph_replace", "inputs", "io_connection_pattern",
    "io_toposort", "is_in_ancestors", "is_same_graph", "list_of_nodes", "map_variables", "nodes_constructed",
    "op_as_string", "ops", "orphans", "rebuild_collect_shared", "shape_of_variables", "stack_search", "variables",
    "variables_and_orphans", "view_roots",
]  # fmt: skip


# --- graphs rebuilt ---------------------------------------------------------------------------------------------------


def map_variables(
    replacer: Callable[[Node], Any], graphs: Iterable[Any], additional_inputs: Sequence[Node] = ()
) -> list[Node]:
    """`graphs` with `replacer(variable)` in place of each variable that they are computed from, and of themselves. What
    a replacement brings along stays, but the variables that it has in common with the graphs are replaced in it too,
    other than its own. Those of loops and branches are asked for as well: a step's are over variables of its own, and
    have the tags that the program gave them when it wrote the step. additional_inputs: for Theano's sake.

    Raises GraphTypeError for a replacement of another type.

        >>> a, b, c = T.dscalars("abc")
        >>> ab = a + b
        >>> graphc.map_variables(lambda each: a * b if each is ab else each, [ab + c])
        [<a * b + c: float64[]>]
    """
    return _mapped(replacer, [as_node(each) for each in graphs], set())


def _mapped(replacer: Callable[[Node], Any], roots: Sequence[Node], outside: Container[Node]) -> list[Node]:
    """`map_variables` of what is not outside."""
    known, done = set(ancestors(roots)), dict[Node, Node]()
    for each in walk.nodes_of(roots):
        if each in outside:
            continue
        if each.op in (SCAN, COND):
            new = _mapped_within(replacer, each)
            if new is not each:
                done[each] = walk.with_tags([new], done)[0]
        elif each in known and (new := replacer(each)) is not each:
            (pair,) = checked({each: new}, strict=True).values()
            done[each] = replaced([pair], done)[0] if each.args else pair  # leaves may stand for each other
    return replaced(roots, done)


def _mapped_within(replacer: Callable[[Node], Any], node: Node) -> Node:
    """A loop or a branch over the same operands, with what its bodies compute of these replaced."""
    since, outside = next_serial(), set(walk.nodes_of(node.args))
    if node.op is COND:
        sides = [opened(node.attrs[name], node.args[1:]) for name in ("then", "orelse")]
        then, orelse = (_mapped(replacer, side, outside) for side in sides)
        if all(map(is_, [*then, *orelse], [*sides[0], *sides[1]])):
            return node
        return walk.renamed(cond_node(node.args[0], then, orelse, {*outside}, node.attrs["state"]), node)
    loop = loop_of(node.args, node.attrs)
    step = step_of(loop, ())
    before = walk.substitute(step.results, step.operands)
    walk.restore_step_tags(node, dict(zip(loop.body.params, (*step.varying, *loop.constants), strict=True)), since)
    results = _mapped(replacer, before, outside)
    if all(map(is_, results, before)):
        return node
    body, captured = close(step.varying, results, since)
    new = walk.renamed(make_scan(with_body(replace(loop, constants=captured), body)), node)
    walk.store_step_tags(new, results, body)
    return new


def rebuild_collect_shared(
    outputs: Any,
    inputs: Sequence[Node] | None = None,
    replace: Any = None,
    updates: Any = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: bool | Sequence[Node] = False,
) -> tuple[list[Node], Any, list[Any]]:
    """The parts of a function: its inputs, its outputs with `replace` (a dict or pairs) carried out, and a list of a
    dict from each variable to the new one, a dict of the new values of shared variables, default ones among them, the
    same as pairs, and the shared variables.

    rebuild_strict: replacements must have the type of what they replace. copy_inputs_over=False: the inputs are fresh
    variables. no_default_updates: as in `function`. Raises GraphTypeError for an input that is shared, UpdateError for
    an update of what is not.
    """
    given = list(inputs or ())
    for each in given:
        if isinstance(each, SharedVariable):
            raise GraphTypeError(f"{describe(each)} is shared and cannot be an input; `givens` can replace it")
    items = list(outputs) if isinstance(outputs, list | tuple) else [] if outputs is None else [outputs]
    before = [as_node(each.variable if isinstance(each, Out) else each) for each in items]
    pairs = checked(replace, rebuild_strict)
    if not copy_inputs_over:
        leaves = {leaf for leaf in walk.nodes_of([*before, *pairs.values(), *given]) if leaf.op is INPUT}
        fresh = {leaf: leaf.clone() for leaf in leaves}
        pairs = {**fresh, **{old: replaced([new], fresh)[0] for old, new in pairs.items()}}
    after = replaced(before, pairs)
    written = updates_of(updates)
    news = [*zip((leaf for leaf, _ in written), replaced([new for _, new in written], pairs), strict=True)]
    news = default_updates(after, news, no_default_updates, pairs)
    roots = [*after, *(new for _, new in news)]
    shared = [leaf for leaf in dict.fromkeys([*walk.nodes_of(roots), *(leaf for leaf, _ in news)]) if leaf.op is SHARED]
    every = ancestors([*before, *given])
    made: Mapping[Node, Node] = dict(zip(every, replaced(every, pairs), strict=True))
    cloned = [
        Out(new, borrow=old.borrow) if isinstance(old, Out) else new for old, new in zip(items, after, strict=True)
    ]
    results = cloned if outputs is None or isinstance(outputs, list | tuple) else cloned[0]
    return [pairs.get(each, each) for each in given], results, [made, dict(news), news, shared]


# shapes ---------------------------------------------------------------------------------------------------------------


def shape_of_variables(fgraph: FunctionGraph, input_shapes: Mapping[Node, Sequence[int]]) -> dict[Node, Any]:
    """The shape of each variable of a graph, a tuple of 0-d arrays, for inputs of these shapes. Nothing is computed but
    sizes; those that follow from values are taken of inputs that are 0.

    Raises ArgumentError for an input without a shape.
    """
    missing = [each for each in fgraph.inputs if each not in input_shapes]
    if missing:
        raise ArgumentError(f"shape_of_variables: no shape is given for {', '.join(map(describe, missing))}")
    nodes = [each for each in fgraph.variables if not each.is_tuple]
    sizes = [walk.as_size_node(size) for each in nodes for size in each.type.shape]
    find = function(fgraph.inputs, sizes, mode="interpreted", on_unused_input="ignore")
    values: list[Array] = [
        np.broadcast_to(np.zeros((), each.type.dtype), tuple(input_shapes[each])) for each in fgraph.inputs
    ]
    found = iter(find(*values))
    return {each: tuple(next(found) for _ in each.type.shape) for each in nodes}


explain_all(globals())
