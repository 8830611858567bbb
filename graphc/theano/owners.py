"""An op with its inputs and outputs, as Theano's programs walk graphs: `x.owner`.

    T.exp(x).owner                    op exp, inputs [x]
    T.nnet.softmax(x).owner           op Softmax, inputs [x]: a division of exponentials by their sums here

In: a node. Out: the one `Apply` that stands for its op's application for as long as anybody holds it; where Theano has
one op for several here, that op on its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, ClassVar
from weakref import ref

from graphc.errors import GraphcError
from graphc.ir.body import ITEM, items_of
from graphc.ir.node import CONSTANT, NODES, SIZE, Node, Where, constant_value, literal, make, plain, size_owner
from graphc.ir.walk import reachable, tags_of
from graphc.startup.hooks import HOOKS


class Apply:
    """An op applied to inputs. Several results of one op have one owner."""

    __slots__ = ("__weakref__", "node")

    applied: ClassVar[type[Apply]]
    """The class of the applications that a program makes of an op of its own (`user_ops.Application`)."""

    def __new__(cls, op: Any, inputs: Sequence[Any] | None = None, outputs: Sequence[Any] = ()) -> Apply:
        """`Apply(op, inputs, outputs)` applies an op of the user's, as its `make_node` does."""
        return object.__new__(cls if inputs is None else Apply.applied)

    def __init__(self, op: Any, inputs: Sequence[Any] | None = None, outputs: Sequence[Any] = ()) -> None:
        self.node: Node = op

    @property
    def op(self) -> Any:
        """An op of graphc, or of the user."""
        return getattr(self.node.op.eval, "user", self.node.op)

    @property
    def inputs(self) -> list[Node]:
        """The nodes that the op takes."""
        return list(self.node.args[getattr(self.node.op.eval, "hidden", 0) :])

    @property
    def outputs(self) -> list[Node]:
        """The nodes that the op makes."""
        return items_of(self.node) if self.node.is_tuple else [self.node]

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Node:
        """The only output, or the first."""
        return self.outputs[0]

    def default_output(self) -> Node:
        """The only output, or the first."""
        return self.outputs[0]

    def get_parents(self) -> list[Node]:
        """The inputs, as walks through variables and applications ask for them: a size stands for what it is of."""
        owners = [size_owner(node) if node.op is SIZE else None for node in self.inputs]
        return [node if owner is None else owner for node, owner in zip(self.inputs, owners, strict=True)]

    @property
    def tag(self) -> Any:
        """A place for the user's attributes."""
        return self.node.tag

    @property
    def where(self) -> Where | None:
        """The line of the program that made it."""
        return self.node.where

    def clone_with_new_inputs(self, inputs: Sequence[Node], strict: bool = True) -> Apply:
        """The same op on other inputs. Raises GraphTypeError where it does not take them."""
        if self.op is not self.node.op:
            made: Apply = self.op.make_node(*inputs)
            return made
        return apply_of(make(self.node.op, inputs, self.node.attrs))

    def clone(self) -> Apply:
        """This application itself: equal ones are one object."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Apply) and self.node is other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __reduce__(self) -> Any:
        return apply_of, (self.node,)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"


class Composed(Apply):
    """An op of Theano that is put together from several here, with its inputs and its outputs."""

    __slots__ = ("composed_op", "given", "results")

    composed_op: Any
    given: list[Node]
    results: list[Node]

    @property
    def op(self) -> Any:
        """Theano's op."""
        return self.composed_op

    @property
    def inputs(self) -> list[Node]:
        """The inputs that Theano's op takes."""
        return list(self.given)

    @property
    def outputs(self) -> list[Node]:
        """The nodes that the op makes."""
        return list(self.results)


LAST = frozenset(
    "cast checked concatenate floor_div gather inc_gather mod neg reshape set_gather sub true_div where".split()
)
"""The ops that are the last of several which are one of Theano's (recognised.py)."""


def owner_of(node: Node) -> Apply:
    """`apply_of` as programs see it: what the last of several ops makes that are one op of Theano's is that op's."""
    kept: Any = node.__dict__.get("_owner") if node.op.name in LAST else False
    made: Composed | None = kept() if kept else None
    if kept is False or made is not None:  # it was found to be none, or the one that somebody has
        return made or apply_of(node)
    found = recognised(node)
    if found is None:
        node.__dict__["_owner"] = False
        return apply_of(node)
    made = Composed(found[2][0])
    made.composed_op, made.given, made.results = found
    node.__dict__["_owner"] = ref(made)
    return made


def apply_of(node: Node) -> Apply:
    """The application that a node, or the one it is a result of, stands for; the existing one where somebody has it."""
    whole = node.args[0] if node.op is ITEM else plain(node)
    kept = whole.__dict__.get("_apply")
    found: Apply | None = kept() if kept is not None else None
    if found is None:
        found = Apply(whole)
        whole.__dict__["_apply"] = ref(found)
    return found


HOOKS.owner = owner_of


# --- ops that are put together ----------------------------------------------------------------------------------------


Proposal = tuple[str, tuple[Any, ...], list[Any]]
"""The name of a class, its parameters, and the inputs."""
Rule = Callable[[Node], Iterator[Proposal]]

AROUND = ("broadcast_to", "dimshuffle", "isfinite", "stop_gradient", "where")
"""Ops around the maximum that scores are shifted by."""
SHAPED = ("broadcast_to", "cast", "checked", "dimshuffle", "reshape")
"""Ops that an operand may be given to fit the others, or to be checked."""
MOST = 40
"""Nodes that are looked through for an operand."""


def recognised(node: Node) -> tuple[Any, list[Node], list[Node]] | None:
    """The op of Theano whose first or other result a node is, its inputs, and its results; None where it stands for
    itself."""
    before = NODES.watch(None)  # what is made to compare is no part of the program's graph
    try:
        return _first_right(node)
    finally:
        NODES.watch(before)


def _op(name: str, *parameters: Any) -> Any:
    """Theano's op of a name and parameters."""
    return getattr(import_module("graphc.theano.opclasses"), name)(*parameters)


def _first_right(node: Node) -> tuple[Any, list[Node], list[Node]] | None:
    if node.op.name in ("sub", "true_div") and (found := _softmax(node)) is not None:
        return *found, [node]
    for rule in RULES.get(node.op.name, ()):
        for name, parameters, inputs in rule(node):
            op = _op(name, *parameters)
            try:
                made = op(*inputs, return_list=True)
            except (GraphcError, TypeError, ValueError, IndexError):
                continue  # such inputs it does not take
            if any(each is node for each in made):
                given = [each if isinstance(each, Node) else literal(each) for each in inputs]
                return None if _knows_parts(node, given) else (op, given, made)
    return None


def _knows_parts(node: Node, inputs: Sequence[Node]) -> bool:
    """True where the program has named or tagged what lies between an op's inputs and a result: it wrote the parts
    then, and looks for them. What is made of constants alone is shared with all other graphs, and is no such part."""
    between = reachable([node], lambda each: () if each in inputs else each.args)
    parts = [each for each in between if each.args and each is not node and each not in inputs]
    known = [each for each in parts if each.name is not None or tags_of(each)]
    leaves = (leaf for leaf in reachable(known, lambda each: each.args) if not leaf.args)
    return any(leaf.op is not CONSTANT for leaf in leaves)


def stages(node: Node) -> list[Node]:
    """A node, and what it was before it was given its shape and dtype, one by one."""
    found = [node]
    while found[-1].op.name in SHAPED:
        found.append(found[-1].args[0])
    return found


def within(node: Node, ndim: int) -> list[Node]:
    """Integers of a rank that a node is computed from, those nearest first that are leaves."""
    near = [node]
    for each in near:  # which grows
        near += [arg for arg in each.args if arg not in near][: MOST - len(near)]
    found = [each for each in near if each.ndim == ndim and each.dtype.startswith("int") and each.op is not SIZE]
    return sorted(found, key=lambda each: bool(each.args))


# softmax --------------------------------------------------------------------------------------------------------------


def _softmax(node: Node) -> tuple[Any, list[Node]] | None:
    """The softmax over the last axis, or its logarithm, also of scores that rewriting has changed: no comparison tells
    then."""
    first, last = node.args
    if node.op.name == "true_div" and first.op.name == "exp" and _is_total(last, first):
        return _op("Softmax"), [_softmax_input(first.args[0])]
    before = _without_axes(last)[-1]
    if node.op.name != "sub" or before.op.name != "log":
        return None
    powers = next((n for n in reachable([before.args[0]], _around_total) if n.op.name == "exp"), None)
    if powers is None or powers.args[0] is not first or not _is_total(before.args[0], powers):
        return None
    return _op("LogSoftmax"), [_softmax_input(first)]


def _without_axes(node: Node) -> list[Node]:
    """A node and what it is without the axes that are added to it, one by one."""
    found = [node]
    while found[-1].op.name in ("broadcast_to", "dimshuffle"):
        found.append(found[-1].args[0])
    return found


def _around_total(node: Node) -> tuple[Node, ...]:
    return node.args[:1] if node.op.name in ("broadcast_to", "dimshuffle", "sum") else ()


def _is_total(node: Node, powers: Node) -> bool:
    """True for the sum of powers over their last axis."""
    total = _without_axes(node)[-1]
    return total.op.name == "sum" and total.args[0] is powers and total.attrs["axes"] == (powers.ndim - 1,)


def _softmax_input(shifted: Node) -> Node:
    """The scores of which the maximum may have been subtracted."""
    if shifted.op.name != "sub":
        return shifted
    scores, shift = shifted.args
    parts = reachable([shift], lambda n: n.args if n.op.name in AROUND else ())
    return scores if any(n.op.name == "supremum" and n.args[0] is scores for n in parts) else shifted


# rules ----------------------------------------------------------------------------------------------------------------


def _repeated(node: Node) -> Iterator[Proposal]:
    """reshape(broadcast_to(dimshuffle(x, (0, "x", 1)), ..., times, ...)): each row, or element, as often as `times`."""
    wide = node.args[0]
    if wide.op.name == "argtop":
        yield from _largest(node, stages(wide.args[0])[-1], (False, True))
    if wide.op.name != "broadcast_to" or wide.args[0].op.name != "dimshuffle":
        return
    order, x = wide.args[0].attrs["order"], wide.args[0].args[0]
    if order.count("x") == 1:
        place = order.index("x")
        for each in stages(x)[::-1] if x.ndim == 1 else ():
            yield "RepeatOp", (None,), [each, wide.args[1 + place]]
        yield "RepeatOp", (place - 1,), [x, wide.args[1 + place]]


def _largest(places: Node, x: Node, wanted: tuple[bool, bool]) -> Iterator[Proposal]:
    """reshape(argtop(x, k), minimum(size, abs(k))) of a vector, and the elements at these places."""
    size = places.args[1]
    if size.op.name == "minimum" and (value := constant_value(stages(size.args[1])[-1].args[0])) is not None:
        yield "TopKOp", (-1, True, "int64", *wanted), [x, int(value)]


def _gathered(node: Node) -> Iterator[Proposal]:
    """gather(x, index, ...): rows as often as a vector says, different elements, the largest, diagonals, choices."""
    x, *index = node.args
    first, last = index[0], index[-1]
    if last.op.name == "running_sum":
        for times in within(last, 1):
            for each in stages(x)[::-1] if x.ndim == 1 else ():
                yield "RepeatOp", (None,), [each, times]
            yield "RepeatOp", (node.attrs["axis"],), [x, times]
    elif last.op.name == "subtensor" and x.op.name == "gather":
        for each in stages(x.args[0])[::-1]:
            yield "Unique", (), [each]
        yield "Unique", (False, False, False, 0), [x.args[0]]
    elif last.op.name == "reshape" and last.args[0].op.name == "argtop":
        yield from _largest(last, x, (True, True))
    elif len(index) == 2 and stages(first)[-1].op.name == "iota" and first.op.name in SHAPED:
        for each in stages(last)[::-1]:
            yield "PermuteRowElements", (), [x, each]
    elif stages(first)[-1].op.name == "where":
        yield "Choose", (), [stages(first)[-1].args[2], x]
    elif len(index) == 2:
        yield "ExtractDiag", (_start(last) - _start(first),), [x]


def _start(index: Node) -> int:
    """The constant that is added to the positions of a range; 0 where there is none."""
    value = constant_value(stages(index.args[1])[-1]) if index.op.name == "add" else None
    return 0 if value is None or value.ndim else int(value)


def _differences(node: Node) -> Iterator[Proposal]:
    """sub(x[1:], x[:-1]), maybe several times; dy * sm - sum(dy * sm) * sm."""
    chain = [node]
    while chain[-1].op.name == "sub" and all(arg.op.name == "subtensor" for arg in chain[-1].args):
        left, right = (arg.args[0] for arg in chain[-1].args)
        if left is not right:
            break
        chain.append(left)
    for times in range(len(chain) - 1, 0, -1):
        for axis in range(node.ndim):
            yield "DiffOp", (times, axis), [chain[times]]
    if node.args[0].op.name == "mul":
        yield "SoftmaxGrad", (), [*node.args[0].args]


def _written(node: Node) -> Iterator[Proposal]:
    """set_gather(x, values, rows, columns): a diagonal with a number in it, a vector as the diagonal of zeros."""
    x, values, *index = node.args
    if len(index) == 2:
        for each in stages(values)[::-1]:
            yield "FillDiagonal", (), [x, each]
        yield "AllocDiag", (_start(index[1]) - _start(index[0]),), [values]


def _chosen(node: Node) -> Iterator[Proposal]:
    """where(column == row + offset, value, x); where(n <= 1, 1, 1 - abs(...))."""
    condition, value, x = node.args
    if condition.op.name == "equal":
        offsets = [stages(part)[-1] for arg in condition.args if arg.op.name == "add" for part in arg.args]
        for offset in offsets:
            for each in stages(value)[::-1]:
                yield "FillDiagonalOffset", (), [x, each, offset]
    elif (test := stages(condition)[-1]).op.name == "less_equal":
        yield "Bartlett", (), [test.args[0]]


def _positions(node: Node) -> Iterator[Proposal]:
    """checked(i0 * size1 + i1, 0 <= i1 < size1, 0 <= i0 < size0)."""
    if not node.attrs["message"].startswith("ravel_multi_index"):
        return
    bounds = [stages(check)[-1].args[0].args[1] for check in node.args[:0:-1]]
    shape = _vector([stages(bound.args[1])[-1] for bound in bounds])
    if shape is not None:
        for order in ("C", "F"):
            yield "RavelMultiIndex", ("raise", order), [*(bound.args[0] for bound in bounds), shape]


def _vector(elements: Sequence[Node]) -> Node | None:
    """The vector that numbers are constants or elements of."""
    values = [constant_value(each) for each in elements]
    if all(value is not None for value in values):
        return literal([int(value) for value in values if value is not None], "int64")
    return elements[0].args[0] if elements[0].op.name == "subtensor" else None


def _coordinates(node: Node) -> Iterator[Proposal]:
    """mod(floor_div(checked(i, 0 <= i < size0 * size1), size1), size0); the places of elements that are not 0."""
    before = node.args[0].args[0] if node.args[0].op.name == "floor_div" else node.args[0]
    if before.op.name == "checked" and node.op.name == "mod":
        own = stages(node.args[1])[-1]
        if own.op.name == "subtensor":
            count = own.args[0].type.shape[0]
            for ndim in (count,) if isinstance(count, int) else range(1, 5):
                yield "UnravelIndex", (ndim,), [before.args[0], own.args[0]]
        bound = stages(stages(before.args[1])[-1].args[0].args[1].args[1])[-1]
        total, size = constant_value(bound), constant_value(own)
        if total is not None and size is not None and size:
            for shape in ([total // size, size], [size, total // size], [size]):
                yield "UnravelIndex", (len(shape),), [before.args[0], literal([int(n) for n in shape], "int64")]
    elif before.op.name == "subtensor" and before.args[0].op.name == "set_gather":
        for each in stages(before.args[0].args[2].args[0])[::-1]:
            yield "Nonzero", (), [each]


def _of_ones(node: Node) -> Iterator[Proposal]:
    """cast(column == row + k), cast(column <= row + k)."""
    test = node.args[0]
    if test.op.name in ("equal", "less_equal") and test.args[0].op.name == "broadcast_to":
        moved = stages(test.args[1])[-1]
        if moved.op.name == "add":
            name = "Eye" if test.op.name == "equal" else "Tri"
            yield name, (node.dtype,), [*test.args[0].args[1:], stages(moved.args[1])[-1]]


def _losses(node: Node) -> Iterator[Proposal]:
    """neg(log(coding[range, index])); neg(logsoftmax(x + b)[range, index])."""
    picked = node.args[0].args[0] if node.args[0].op.name == "log" else node.args[0]
    if picked.op.name != "gather":
        return
    for index in stages(picked.args[-1])[::-1]:
        if picked is not node.args[0]:
            yield "CrossentropyCategorical1Hot", (), [picked.args[0], index]
            continue
        scores = picked.args[0]
        while scores.op.name == "sub":
            scores = scores.args[0]
        if scores.op.name == "add":
            for b in stages(scores.args[1])[::-1]:
                yield "CrossentropySoftmaxArgmax1HotWithBias", (), [scores.args[0], b, index]


def _loss_slopes(node: Node) -> Iterator[Proposal]:
    """inc_gather(dy * sm, -dy, range, index); inc_gather(0, -g / coding[range, index], range, index)."""
    whole, part, *_, index = node.args
    if whole.op.name == "mul":
        yield "CrossentropySoftmax1HotWithBiasDx", (), [stages(whole.args[0])[-1], whole.args[1], index]
    elif part.op.name == "neg" and part.args[0].op.name == "true_div":
        g, picked = part.args[0].args
        yield "CrossentropyCategorical1HotGrad", (), [g, picked.args[0], index] if picked.args else [g, picked, index]


def _joined(node: Node) -> Iterator[Proposal]:
    """concatenate(a column of a number, rows); the sizes of a variable."""
    first = stages(node.args[0])[-1]
    if first.op is SIZE:
        yield "Shape", (), [size_owner(first)]
    elif len(node.args) == 2 and node.attrs["axis"] == 1:
        value = constant_value(first)
        if value is not None and not value.ndim:
            yield "Prepend_scalar_constant_to_each_row", (value.item(),), [node.args[1]]
        yield "Prepend_scalar_to_each_row", (), [first, node.args[1]]


RULES: dict[str, tuple[Rule, ...]] = {
    "cast": (_of_ones,),
    "checked": (_positions,),
    "concatenate": (_joined,),
    "floor_div": (_coordinates,),
    "gather": (_gathered,),
    "inc_gather": (_loss_slopes,),
    "mod": (_coordinates,),
    "neg": (_losses,),
    "reshape": (_repeated,),
    "set_gather": (_written,),
    "sub": (_differences,),
    "where": (_chosen,),
}
"""The rules by the op that is the last of those put together."""
