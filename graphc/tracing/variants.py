"""Variants: what a traced function was compiled to for arguments of the same types, each for its guards.

In: the shapes of a call's arguments. Out: the variant whose guards hold; or None, and the caller traces the function
anew, which is told here: in the log "graphc.recompiles", and in one warning where there are many.

    f = graphc.jit(lambda x: x[:100] if x.shape[0] > 100 else x)
    f(np.ones(200)), f(np.ones(3)), f(np.ones(300))       two variants
    f.variants()     [float64[x.0] where x.shape[0] > 100 (p.py:1), float64[x.0] where x.shape[0] <= 100 (p.py:1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.array import OWN
from graphc.arrays.dtypes import COMPLEX
from graphc.codegen.call.recipes import Call, Outside, exact_keywords, refused
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.ir.node import CONSTANT, SIZE, Complex, Node, constant_value, literal, variable
from graphc.ir.pairs import extra_axes, tree_of
from graphc.ir.source_lines import GIVEN, TRACED, Where, warn_user
from graphc.ir.walk import node_set, nodes_of, substitute
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.identity import checked
from graphc.ops.questions import Note, line_of
from graphc.options import options
from graphc.startup.record import record, replace
from graphc.tracing.answers import Question, failing as first_failing
from graphc.tracing.arguments import NUMBERS, Parts, parameters_of
from graphc.trees import LEAF, has_kind, leaves, like, structure, up_to

# --- guards: what a traced function was told of sizes, as conditions that each call must meet -------------------------
# In: the results of a trace, the variables of its arguments, the notes of its questions (ops/questions.py). Out: the
# graph with the conditions in it, which native code checks before it writes anything, and the same conditions in
# Python, by which a call chooses among variants:
#
#     def f(x, y):                             f(np.ones((3, 200)), np.ones(7))
#         a, b, c = x                          a guard x.shape[0] == 3: the axis is static, its loops unroll
#         return a + b if x.shape[1] > 100 else c
#                                              a guard x.shape[1] > 100: its result is checked(a + b, x.shape[1] > 100)
#
#     f(np.ones((3, 300)), np.ones(8))         the same kernel: it answers every guard alike
#     f(np.ones((3, 10)), np.ones(8))          traced anew: a second variant, with the guard x.shape[1] <= 100

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
    if node in GIVEN:
        GIVEN.add(made)
    return made


# --- variants ---------------------------------------------------------------------------------------------------------

Rebuild = Callable[[Any], Any]

LOG = "graphc.recompiles"
"""The name of the log."""


@record(eq=False)
class Form:
    """The form of the arguments of a variant. arguments: (by position, by name) without the static ones, a tree whose
    leaves are numbers. kinds: what each leaf is (`kinds_of`, by class). static: the static arguments by position;
    fixed: those by name, with it."""

    arguments: Any
    kinds: tuple[Any, ...]
    static: tuple[Any, ...]
    fixed: tuple[tuple[str, Any], ...]


def form_of(parts: Parts, kinds: tuple[Any, ...]) -> Form:
    """Return the form of arguments."""
    given = parts.left, dict(parts.named)
    return Form(like(given, range(len(leaves(given)))), kinds, parts.values, parts.fixed)


class Variant:
    """A compiled function for arguments of some types and sizes.

    types: those of the arguments, as text. function: None where there are no arrays among the results. call: takes the
    leaves of the arguments. made: the tree of results that the function returned. has_axes: all results have. rebuild:
    makes such a tree of what `call` gives (`finishing`). asked: what must hold of sizes; holds: tells it of shapes.
    watched: values from outside that must not have changed. questions: what must hold of values. ones: for each leaf,
    the axes of static size 1. shortcut: a native entry point for calls of exactly these types and this form
    (codegen/call/recipes.py), which gives `REFUSED` for others. fast: the same, but it leaves other calls to the jitted
    function. Both are None where the form has no recipe, and where there are questions. form: of its arguments. short:
    the axes whose sizes are fixed although nothing asked; example: arguments that it was traced for, without their
    elements. is_late: True while other processes compile the function, after which the two are made.
    """

    __slots__ = (
        "asked", "call", "example", "fast", "form", "function", "has_axes", "holds", "is_late", "made", "ones",
        "questions", "rebuild", "short", "shortcut", "types", "watched",
    )  # fmt: skip

    def __init__(
        self,
        types: str,
        function: Function | None,
        call: Callable[..., Any],
        made: Any,
        results: Sequence[Node],
        asked: Guards,
        ones: Sequence[Sequence[int]],
        watched: Sequence[Outside] = (),
        questions: Sequence[Question] = (),
    ) -> None:
        self.watched = watched
        self.questions = questions
        self.types = types
        self.function = function
        self.call = call
        self.made = made
        self.has_axes = all(node.ndim for node in results)
        self.rebuild = None if function is None else finishing(made, results)
        self.asked = asked
        self.holds = asked.test()
        self.ones = ones
        self.example: Sequence[Any] = ()
        self.fast: Callable[..., Any] | None = None
        self.form: Form | None = None
        self.is_late = False
        self.short: Axes = frozenset()
        self.shortcut: Callable[..., Any] | None = None

    @property
    def guards(self) -> list[str]:
        """The conditions on sizes and on values, each with the line that asked: "x.shape[0] > 100 (model.py:1)"."""
        return [str(each) for each in (*self.asked.conditions, *self.questions)]

    def changed(self) -> str | None:
        """The name of a value from outside that has changed since the trace; None without one."""
        return next((found for each in self.watched if (found := each.difference()) is not None), None)

    def __repr__(self) -> str:
        return f"{self.types} where {' and '.join(self.guards)}" if self.guards else self.types

    def run(self, given: Sequence[Any], out: Any = None) -> Any:
        """Call with the leaves of the arguments. out: arrays for the results, in a tree like theirs, None for what is
        to be new. Raises ArgumentError for another tree, and as calls with `out=` do."""
        if out is None:
            results = self.call(*given)
            return results if self.rebuild is None else self.rebuild(results)
        single = structure(self.made) == LEAF
        try:
            arrays = [out] if single else up_to(self.made, out)
        except ValueError as error:
            raise ArgumentError(f"out= must be like the results: {error}") from None
        results = self.call(*given, out=out if single else tuple(arrays))
        made = [results] if single else results
        return like(self.made, [new[()] if old is None else old for old, new in zip(arrays, made, strict=True)])

    def make_fast(
        self,
        call: Call,
        leaves: Sequence[Any],
        names: Sequence[str],
        again: Callable[[tuple[Any, ...], Any], Any],
        has_out: bool,
    ) -> None:
        """Make the native entry points for calls like this one, where the function has any.

        leaves: those of the arguments. names: of the parameters that the leaves are given for, () where these may not
        be given by name. `again(args, kwargs)` takes the calls that the entry point refuses, and those of sizes for
        which another variant may be right. has_out: `out` is a parameter of the function.
        """
        function = self.function
        if function is not None and not function.is_ready:
            self.is_late = True
            function.when_ready(lambda whole: self.become(whole, call, leaves, names, again, has_out))
            return
        leaves = plain_arrays(leaves)
        if not isinstance(function, Compiled) or not function.has_exact_entry or not all(map(is_taken_exactly, leaves)):
            return
        taken = exact_keywords(call, leaves, names, self.made, self.watched)
        if taken is None:
            return
        if not has_out and self.has_axes and taken.arguments is None and taken.results is None:
            taken = replace(taken, out=True)
        self.fast = function.exact_entry(lambda *args, **kwargs: again(args, kwargs), taken)
        self.shortcut = function.exact_entry(refused, taken)

    def make_slow(self) -> None:
        """Let all calls be dispatched."""
        self.fast, self.shortcut, self.is_late = None, None, False

    def become(self, whole: Function, *how: Any) -> None:
        """Run the code that other processes have compiled. how: the arguments of `make_fast`."""
        self.function = self.call = whole
        if self.is_late:
            self.is_late = False
            self.make_fast(*how)


def plain_arrays(leaves: Sequence[Any]) -> list[Any]:
    """The leaves of arguments, with arrays of floats in place of `Pairs`, the parts of complex arrays."""
    return [np.asarray(leaf) if hasattr(leaf, "of_complex") else leaf for leaf in leaves]


def is_taken_exactly(leaf: Any) -> bool:
    """True for an array, and for a number of Python's or NumPy's."""
    return type(leaf) in OWN or type(leaf) in NUMBERS or isinstance(leaf, np.generic)


def finishing(made: Any, results: Sequence[Node]) -> Rebuild | None:
    """Return a function from what a compiled function gives, one array where `made` is a leaf and else a list, to a
    tree like `made`; None where there is nothing to do. Those of `results` that have no axes are arrays, and become
    NumPy's scalars."""
    known = structure(made)
    if has_kind(Complex, known):
        return _with_complex(made)
    places = [place for place, node in enumerate(results) if not node.ndim]
    if known == LEAF:
        return itemgetter(()) if places else None
    kind, *parts = known
    whole: Rebuild = partial(like, made)
    if kind in (tuple, list) and all(part == LEAF for part in parts):
        whole = kind
    elif kind is dict and all(part == LEAF and type(key) is str for key, part in zip(made, parts[1:], strict=True)):
        whole = partial(_filled, dict.fromkeys(made), parts[0])
    if not places:
        return whole

    def rebuild(arrays: list[Any]) -> Any:
        for place in places:
            arrays[place] = arrays[place][()]
        return whole(arrays)

    return rebuild


def _with_complex(made: Any) -> Rebuild:
    """`finishing` of a tree with complex tensors in it."""
    pairs = zip(leaves(made), extra_axes(made), strict=True)
    dtypes = [DOUBLED[leaf.type.dtype] if extra else None for leaf, extra in pairs]
    form = tree_of(made, [0] * len(dtypes))  # whose leaves do not matter

    def rebuild(arrays: list[Any]) -> Any:
        halves = zip(arrays, dtypes, strict=True)
        found = [array if dtype is None else array.view(dtype)[..., 0] for array, dtype in halves]
        numbers = [array if array.ndim else array[()] for array in found]
        return numbers[0] if form == 0 else like(form, numbers)

    return rebuild


DOUBLED = {part: np.dtype(whole) for whole, part in COMPLEX.items()}
"""The dtypes of complex numbers by those of their parts."""


def _filled(empty: dict[str, None], keys: Sequence[str], arrays: Sequence[Any]) -> dict[str, Any]:
    """A dict with the keys of another one in its order, and arrays in the order of `keys`."""
    return {**empty, **dict(zip(keys, arrays, strict=True))}


def shapes_of(leaves: Sequence[Any]) -> Shapes:
    """The shapes of arrays and numbers."""
    return [leaf.shape if type(leaf) in OWN else () if type(leaf) in NUMBERS else np.shape(leaf) for leaf in leaves]


def choose(variants: Sequence[Variant], leaves: Sequence[Any]) -> Variant | None:
    """The first variant whose guards hold for these arguments, and for which nothing outside has changed."""
    shapes: Shapes | None = None
    given: Sequence[Any] | None = None
    answers: dict[Any, Any] = {}
    for variant in variants:
        if variant.changed() is not None:
            continue
        if variant.holds is not None:
            if shapes is None:
                shapes = shapes_of(leaves)
            if not variant.holds(shapes):
                continue
        if not variant.questions:
            return variant
        if given is None:
            given = plain_arrays(leaves)
        if all(each.holds(given, answers) for each in variant.questions):
            return variant
    return None


def tell_of_retrace(title: str, variants: Sequence[Variant], leaves: Sequence[Any], most: int) -> None:
    """Log which guard of each variant these arguments do not meet. Where there are `most` variants already, warn once,
    with the guard that failed most often."""
    shapes, given = shapes_of(leaves), plain_arrays(leaves)
    found = [each.asked.failing(shapes) for each in variants]
    for variant, condition in zip(variants, found, strict=True):
        question = None if condition is not None else first_failing(variant.questions, given)
        if question is not None:
            log_retrace(title, leaves, f"{question} does not hold")
    failing = [each for each in found if each is not None]
    for condition in failing:
        log_retrace(title, leaves, f"{condition} does not hold")
    changed = [name for each in variants if (name := each.changed()) is not None]
    for name in dict.fromkeys(changed):
        log_retrace(title, leaves, f"{name} has changed")
    if len(variants) == most and len(changed) > len(failing):
        warn_user(
            f"{title} is compiled for the {most + 1}th time for arguments of the same types, since {changed[-1]}, "
            "which it takes from outside, has changed; an argument may change without a compilation",
            RuntimeWarning,
        )
        return
    if len(variants) == most and failing:
        ((often, count),) = Counter(str(each.where) for each in failing).most_common(1)
        example = next(each for each in failing if str(each.where) == often)
        warn_user(
            f"{title} is compiled for the {most + 1}th time for arguments of the same types, since it asks for sizes, "
            f"{count} times at {often}: {example.holds}; ask for less, or jit(max_variants=…) allows more",
            RuntimeWarning,
        )


def tell_of_values(title: str, names: Sequence[str], asked_at: str, count: int, most: int) -> None:
    """Warn, once, where arguments of the same types are compiled for more than `most` values of static ones: `names`,
    which Python asked for at the line `asked_at`, where it did."""
    if count != most + 1:
        return
    why = f", since Python asks for it at {asked_at}" if asked_at else ""
    what = ", ".join(names) or "a static argument"
    warn_user(
        f"{title} is compiled for more than {most} values of {what}, which is static{why}; a loop of "
        "graphc.lax and arrays in place of numbers compile once",
        RuntimeWarning,
    )


def log_retrace(title: str, leaves: Sequence[Any], why: str) -> None:
    """Log that a function is traced anew for these arguments."""
    logging = import_module("logging")
    log = logging.getLogger(LOG)
    if "recompiles" in options.log and not log.handlers:
        log.addHandler(logging.StreamHandler())
        log.setLevel(logging.INFO)
    given = ", ".join(map(str, shapes_of(leaves)))
    log.info("%s is traced anew for arguments of shapes %s: %s", title, given, why)


def types_of(function: Any, variables: Sequence[Node], parts: Parts, static: Sequence[int]) -> str:
    """The types of arguments as text, and the values of those that are static."""
    known = parameters_of(function)
    names = [known[place] if place < len(known) else f"argument {place}" for place in static]
    fixed = [f"{name}={value!r}" for name, value in (*zip(names, parts.values, strict=True), *parts.fixed)]
    return ", ".join([*(f"{node.name}: {node.type}" for node in variables), *fixed])


# --- short axes -------------------------------------------------------------------------------------------------------
#     assign(x, centres)         x has 5,000 rows of 3, there are 10 centres: 3 and 10 are numbers, 5,000 is open
#     assign(x[:100], centres)   the same code
#     assign(x, centres[:8])     compiled once more, with all sizes open: for every later call of other sizes
#
# In: the leaves of a call's arguments. Out: the axes whose sizes are fixed, as notes that become guards. A
# loop over three elements whose number is known is written out, and the loop around it runs over vectors: of 5,000
# rows the nearest of ten centres takes a tenth of the time. Sizes of up to SHORT elements are such, where another axis
# is long. A number that is the first size of a larger array counts rows, of which the next call may have any number.

SHORT, LONG = 16, 64
"""The most elements of a short axis, and the fewest of a long one."""

Axes: TypeAlias = "frozenset[tuple[int, int, int]]"
"""Axes as (number of the leaf, axis, size)."""


def short_axes(leaves: Sequence[Any]) -> Axes:
    """Return the short axes of arguments of which one is long."""
    shapes = [leaf.shape if isinstance(leaf, np.ndarray) else () for leaf in leaves]
    if max(map(max, filter(None, shapes)), default=0) < LONG:
        return frozenset()
    rows = {shape[0] for shape in shapes if shape and max(shape) > SHORT}
    return frozenset(
        (number, axis, size)
        for number, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
        if 1 < size <= SHORT and size not in rows
    )


def without_elements(leaf: Any) -> Any:
    """An array like an argument that has one element in memory; other arguments as they are."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if isinstance(leaf, np.ndarray) else leaf


def notes_of(axes: Iterable[tuple[int, int, int]], variables: Sequence[Node]) -> list[Note]:
    """Return a note for each axis of these variables whose size is open: it is the number."""
    pairs = [(variables[number].type.shape[axis], size) for number, axis, size in sorted(axes)]
    return [Note(node, "equal", size, {node: size}, None) for node, size in pairs if isinstance(node, Node)]
