"""Guards: what a traced function was told of sizes, as conditions that each call must meet; variants of a function.

In: the results of a trace, the variables of its arguments, the notes of its questions (ops/questions.py). Out: the
graph with the conditions in it, which native code checks before it writes anything, and the same conditions in Python,
by which a call chooses among variants:

    def f(x, y):                             f(np.ones((3, 200)), np.ones(7))
        a, b, c = x                          a guard x.shape[0] == 3: the axis is static, its loops unroll
        return a + b if x.shape[1] > 100 else c
                                             a guard x.shape[1] > 100: its result is checked(a + b, x.shape[1] > 100)

    f(np.ones((3, 300)), np.ones(8))         the same kernel: it answers every guard alike
    f(np.ones((3, 10)), np.ones(8))          traced anew: a second variant, with the guard x.shape[1] <= 100
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.errors import GraphcError
from graphc.ir.node import CONSTANT, SIZE, Node, constant_value, literal, variable
from graphc.ir.source_lines import TRACED, Where
from graphc.ir.walk import node_set, nodes_of, substitute
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.questions import Note, line_of
from graphc.startup.record import record

Shapes = Sequence[tuple[int, ...]]

CODES = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "floor_div": "({} // {})", "mod": "({} % {})",
    "minimum": "min({}, {})", "maximum": "max({}, {})", "neg": "(-{})", "abs": "abs({})",
    "where": "({1} if {0} else {2})", "equal": "({} == {})", "not_equal": "({} != {})", "less": "({} < {})",
    "less_equal": "({} <= {})", "greater": "({} > {})", "greater_equal": "({} >= {})", "logical_not": "(not {})",
    "logical_and": "(bool({}) and bool({}))", "logical_or": "(bool({}) or bool({}))", "bitwise_and": "({} & {})",
    "bitwise_or": "({} | {})", "bitwise_xor": "({} ^ {})",
}  # fmt: skip
"""Ops that Python and native code compute to the same bits, of whole numbers; comparisons of floats too."""
OF_INTEGERS = frozenset({"add", "sub", "mul", "floor_div", "mod", "neg", "abs"})
"""Ops of CODES that mean something else of bools."""
CASTS = {"int64": "int({})", "bool": "bool({})", "float64": "float({})"}
LONGEST = 2000
"""Letters of a condition in Python. For a longer one, each of its sizes is a guard."""


@record(eq=False)
class Condition:
    """A guard. holds: a bool scalar of sizes, or its text where the types of variables say it. code: the same of `s`,
    the shapes of a call's arguments, in Python. where: the line that asked."""

    holds: Node | str
    code: str
    where: Where | None

    def __str__(self) -> str:
        return f"{self.holds} ({self.where})" if self.where else str(self.holds)


@record(eq=False)
class Guards:
    """The guards of a trace. conditions: all of them. fixed: the sizes that are numbers. open: the conditions that are
    not of those alone."""

    conditions: tuple[Condition, ...]
    fixed: Mapping[Node, int]
    open: tuple[Condition, ...]

    def test(self) -> Callable[[Shapes], bool] | None:
        """Return a function of the shapes of arguments that tells whether all guards hold; None without any."""
        if not self.conditions:
            return None
        made: Callable[[Shapes], bool] = eval("lambda s: " + " and ".join(each.code for each in self.conditions))
        return made

    def failing(self, shapes: Shapes) -> Condition | None:
        """The first guard that does not hold for these shapes."""
        return next((each for each in self.conditions if not eval(each.code, {"s": shapes})), None)


def guards_of(notes: Iterable[Note], variables: Sequence[Node], ones: Sequence[Sequence[int]]) -> Guards:
    """Return what the notes of a trace say as guards, each once: a size that is told as a number is fixed; others are
    conditions, without those that others imply. ones: for each variable the axes that are static, of size 1."""
    codes = {
        size: f"s[{number}][{axis}]"
        for number, node in enumerate(variables)
        for axis, size in enumerate(node.type.shape)
        if isinstance(size, Node)
    }
    facts = Facts({}, {}, {})
    for note in notes:
        facts.take(note, codes)
    static = [
        Condition(f"{variables[number].name}.shape[{axis}] == 1", f"(s[{number}][{axis}] == 1)", None)
        for number, axes in enumerate(ones)
        for axis in axes
    ]
    pinned = [
        Condition(elementwise("equal", size, number), f"({codes[size]} == {number})", where)
        for size, (number, where) in facts.fixed.items()
    ]
    free = [
        Condition(holds, code, where)
        for holds, (code, where) in facts.others.items()
        if any(leaf.op is SIZE and leaf not in facts.fixed for leaf in node_set([holds]))
    ]
    return Guards((*static, *pinned, *free), {size: number for size, (number, _) in facts.fixed.items()}, tuple(free))


@record(eq=False)
class Facts:
    """The facts of several notes: numbers that sizes are, and other conditions with their code, both with the line; and
    the least and the most that each size may be, with the conditions that say so."""

    fixed: dict[Node, tuple[int, Where | None]]
    others: dict[Node, tuple[str, Where | None]]
    bounds: dict[tuple[Node, bool], tuple[int, Node]]

    def take(self, note: Note, codes: Mapping[Node, str]) -> None:
        line = line_of(note)
        if line is not None and note.relation == "equal":
            self.fixed.setdefault(line[0], (line[1], note.where))
            return
        holds = condition_of(note)
        code = code_of(holds, codes)
        if code is None:
            for size, number in note.sizes.items():
                self.fixed.setdefault(size, (number, note.where))
        elif line is None or note.relation == "not_equal":
            self.others.setdefault(holds, (code, note.where))
        else:
            size, number, up = line
            self.bound(size, number, up, holds, code, note)

    def bound(self, size: Node, number: int, up: bool, holds: Node, code: str, note: Note) -> None:
        """Take a condition that bounds a size, in place of one that bounds it less. up: from below."""
        before = self.bounds.get((size, up))
        if before is not None and (before[0] >= number if up else before[0] <= number):
            return
        if before is not None:
            del self.others[before[1]]
        self.bounds[size, up] = number, holds
        self.others[holds] = code, note.where
        opposite = self.bounds.get((size, not up))
        if number == (opposite[0] if opposite is not None else None if up else 0):
            self.fixed.setdefault(size, (number, note.where))


def condition_of(note: Note) -> Node:
    """The fact of a note, as a bool scalar."""
    if note.left.type.dtype == "bool" and note.right in (0, 1) and note.relation in ("equal", "not_equal"):
        return note.left if (note.relation == "equal") == bool(note.right) else elementwise("logical_not", note.left)
    return elementwise(note.relation, note.left, note.right)


def code_of(root: Node, codes: Mapping[Node, str]) -> str | None:
    """A scalar of sizes in Python; None where it has an op that native code may compute to other bits, or is long."""
    known = dict(codes)
    for node in nodes_of([root]):
        if node in known:
            continue
        made = _code(node, [known[arg] for arg in node.args])
        if made is None or len(made) > LONGEST:
            return None
        known[node] = made
    return known[root]


def _code(node: Node, args: Sequence[str]) -> str | None:
    name, dtype = node.op.name, node.type.dtype
    if node.type.shape or dtype not in CASTS:
        return None
    if node.op is CONSTANT:
        return repr(node.attrs["value"].value.item())
    if name == "cast":
        return CASTS[dtype].format(*args) if dtype == "float64" or node.args[0].type.dtype[0] != "f" else None
    if name not in CODES or dtype == "float64" or (name in OF_INTEGERS and dtype == "bool"):
        return None
    if name in ("floor_div", "mod") and not constant_value(node.args[1]):
        return None
    return CODES[name].format(*args)


def guarded(results: Sequence[Node], variables: Sequence[Node], guards: Guards) -> tuple[list[Node], list[Node]]:
    """Return the results and variables of a trace with its guards: fixed sizes are static, and the first result has the
    conditions. Where static sizes contradict each other, all are conditions, so that a call says which and where."""
    conditions = [(each.holds, each.where) for each in guards.open if isinstance(each.holds, Node)]
    made, own = list(results), list(variables)
    if guards.fixed:
        own = [with_static_sizes(node, guards.fixed) for node in variables]
        replaced = {old: new for old, new in zip(variables, own, strict=True) if old is not new}
        replaced |= {size: literal(number, "int64") for size, number in guards.fixed.items()}
        try:
            made = substitute([*results, *(holds for holds, _ in conditions)], replaced)
        except GraphcError:
            made, own = list(results), list(variables)
            conditions = [(each.holds, each.where) for each in guards.conditions if isinstance(each.holds, Node)]
    held = made[len(results) :] or [holds for holds, _ in conditions]
    made = made[: len(results)]
    for (written, where), holds in zip(conditions, held, strict=True):
        told = f"the function was traced for arrays with {written}, and is called with others"
        made[0] = checked(made[0], [cast(holds, "int64")], told, "shape")
        made[0].where = where or made[0].where
    return made, own


def with_static_sizes(node: Node, fixed: Mapping[Node, int]) -> Node:
    """A variable like `node` with fixed sizes as its static ones; `node` where it has none of them."""
    if fixed.keys().isdisjoint(size for size in node.type.shape if isinstance(size, Node)):
        return node
    shape = [fixed.get(size) if isinstance(size, Node) else size for size in node.type.shape]
    made = variable(node.type.dtype, shape, node.name)
    TRACED[made] = TRACED[node]
    return made
