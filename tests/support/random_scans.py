"""Random programs of `graphc.scan`, as data.

In: a seed. Out: a program: leaves, which are inputs and shared variables, a loop over them, whose steps may have loops
of their own, and what becomes of its results. `scans_built.py` makes a graph of it, and carries it out in NumPy.

Sizes are two or three, and differ, so that what is exchanged does not fit; numbers stay about one, so that derivatives
of a few steps do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from graphc.startup.record import record

Shape: TypeAlias = tuple[int, ...]
FLOAT, INTEGER, COUNT = "float", "integer", "count"
SHAPES: tuple[Shape, ...] = ((), (), (2,), (3,), (2, 3), (3, 3))
MOST = 3
"""Integers that index are from -MOST to MOST - 1."""
SEQUENCE_TAPS = (None, None, None, (0,), (-1,), (1,), (-1, 1), (0, -2), (2, 0, -1), (-3, -1), (1, 2), (-2, 0))
STATE_TAPS = (None, None, None, (-1,), (-2,), (-2, -1), (-1, -2), (-3, -1), (-3, -2, -1), (-1, -3))


@record()
class Kind:
    """What stands for a value: its shape, and whether it is a float, an integer that indexes, or one that counts."""

    shape: Shape
    sort: str = FLOAT


@record(eq=False)
class Expr:
    """A value: an operation on others, `at` what else it is told. Equal by identity: what is used twice is shared."""

    op: str
    args: tuple[Expr, ...]
    kind: Kind
    at: Any = None


@record()
class Leaf:
    """What the program is given: an input, or a shared variable. `sizes`: which of its sizes the type tells."""

    name: str
    shape: Shape
    dtype: str
    sizes: tuple[bool, ...]
    is_shared: bool = False
    low: int = 0
    high: int = 0


@record(eq=False)
class Sequence:
    """What steps take elements of, `names` in the order of `taps`; None where the program does not say."""

    value: Expr
    taps: tuple[int, ...] | None
    backwards: bool | None
    names: tuple[str, ...]


@record(eq=False)
class State:
    """What is handed on; a number begins without a dtype of its own."""

    initial: Expr | float
    taps: tuple[int, ...] | None
    names: tuple[str, ...]
    after: Expr


@record(eq=False)
class Loop:
    """A scan. `results`: for each a state, or what no step reads. `given` goes to non_sequences, `seen` is used as it
    is. `form`: how updates are written; `bare`: one result stands without a list."""

    sequences: tuple[Sequence, ...]
    results: tuple[State | Expr, ...]
    given: tuple[tuple[str, Expr], ...]
    seen: tuple[tuple[str, Expr], ...]
    updates: tuple[tuple[str, Expr], ...]
    form: str
    until: Expr | None
    n_steps: Any
    go_backwards: bool
    truncate: int | None
    checkpoint: Any
    strict: bool
    bare: bool


@record()
class Consumer:
    """What becomes of a result; `bent`: the cost takes its sine."""

    place: int
    how: str
    bent: bool


@record(eq=False)
class Program:
    """All of it. `dtype`: of its floats; `finals`: the updated variables whose last values are in the cost."""

    seed: int
    dtype: str
    leaves: tuple[Leaf, ...]
    loop: Loop
    consumers: tuple[Consumer, ...]
    finals: tuple[str, ...]


class Scope:
    """The names that a step knows, and what it has computed."""

    def __init__(self, kinds: Mapping[str, Kind], made: list[Expr]) -> None:
        self.kinds = dict(kinds)
        self.made = made

    def named(self, kind: Kind) -> list[str]:
        return [name for name, known in self.kinds.items() if known == kind]


class Writer:
    """Writes a program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.leaves: list[Leaf] = []
        self.names = 0
        self.dtype = "float32" if self.chance(0.12) else "float64"
        self.loops = 0
        self.updated: dict[str, Kind] = {}
        self.narrow: set[str] = set()

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def number(self) -> float:
        return round(self.random.uniform(-0.9, 0.9), 3)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # --- the whole ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            shape = self.random.choice(SHAPES)
            self.updated[self.leaf(shape, is_shared=True).at] = Kind(shape)
        if self.chance(0.15):
            self.updated[self.leaf((), COUNT, is_shared=True).at] = Kind((), COUNT)
        steps = self.random.choice([0, 1, 1, 2, 3, 4, 4, 5, 6, 7])
        loop = self.outermost(steps)
        consumers = [self.consumer(place, steps) for place in range(len(loop.results)) if self.chance(0.9)]
        consumers += [self.consumer(place, steps) for place in range(len(loop.results)) if self.chance(0.2)]
        finals = tuple(name for name, _ in loop.updates if self.chance(0.7))
        return Program(self.seed, self.dtype, tuple(self.leaves), loop, tuple(consumers), finals)

    def consumer(self, place: int, steps: int) -> Consumer:
        ways = ["rows", "rows", "sum", "squares", "count", "reversed", "tail"]
        if steps:
            ways += ["last", "last", "last", "first"]
        return Consumer(place, self.random.choice(ways), self.chance(0.5))

    def leaf(self, shape: Shape, sort: str = FLOAT, is_shared: bool = False, low: int = 0, high: int = MOST) -> Expr:
        """A new leaf, by its name."""
        name = self.fresh("v")
        dtype = self.random.choice(["int64", "int64", "int32", "int8"]) if sort != FLOAT else self.dtype
        if dtype == "float64" and not is_shared and self.chance(0.02):
            dtype = "float32"
            self.narrow.add(name)
        known = self.chance(0.4)
        sizes = tuple(known and self.chance(0.8) for _ in shape)
        self.leaves.append(Leaf(name, shape, dtype, sizes, is_shared, low, high))
        return self.name_of(name, Kind(shape, sort))

    @staticmethod
    def name_of(name: str, kind: Kind) -> Expr:
        return Expr("name", (), kind, name)

    def outside(self, shape: Shape, sort: str = FLOAT, whole: bool = False) -> Expr:
        """A value of the program outside of its loop: a leaf, or what is computed of some."""
        if sort == INTEGER:
            if shape and self.chance(0.2) and shape == (MOST,):
                return Expr("arange", (), Kind(shape, sort), MOST)
            return self.leaf(shape, sort, low=self.random.choice([0, -MOST]))
        updated = [name for name, kind in self.updated.items() if kind == Kind(shape)]
        if updated and self.chance(0.2):
            return Expr("scale", (self.name_of(updated[0], Kind(shape)),), Kind(shape), 0.5)
        if self.chance(0.7):
            given = self.leaf(shape, is_shared=self.chance(0.15))
            return self.cast(given) if whole else given
        if self.chance(0.25):
            return Expr("number", (), Kind(shape), (self.random.choice([0.0, 1.0, self.number()]), self.dtype))
        if shape and self.chance(0.3):
            return Expr("from", (self.cast(self.leaf((shape[0] + 1, *shape[1:]))),), Kind(shape), 1)
        if shape and self.chance(0.3):
            return Expr("flip", (self.cast(self.leaf(shape)),), Kind(shape))
        if len(shape) == 2 and self.chance(0.5):
            return Expr("transpose", (self.cast(self.leaf(shape[::-1])),), Kind(shape))
        if shape in SHAPES and self.chance(0.5):
            some = Scope({}, [])
            for each in [shape, *self.random.choices(SHAPES, k=3)]:
                leaf = self.leaf(each)
                some.kinds[leaf.at] = leaf.kind
            return self.cast(self.tree(some, shape, 2, 1))
        return Expr("tanh", (self.cast(self.leaf(shape)),), Kind(shape))

    def is_narrow(self, value: Expr) -> bool:
        return value.op == "name" and value.at in self.narrow

    def cast(self, value: Expr) -> Expr:
        """In the dtype of the program: some leaves are narrower, and what begins a state must not be."""
        if self.is_narrow(value):
            return Expr("cast", (value,), Kind(value.kind.shape), self.dtype)
        return value

    # --- loops --------------------------------------------------------------------------------------------------------

    def outermost(self, steps: int) -> Loop:
        sequences = []
        count = self.random.choice([0, 1, 1, 1, 2, 3])
        tells = count > 0 and self.chance(0.5)
        extras = [self.random.choice([0, 0, 1, 2]) for _ in range(count)]
        if tells:
            extras[self.random.randrange(count)] = 0
        for extra in extras:
            taps = self.random.choice(SEQUENCE_TAPS)
            reach = max(0, *taps) - min(0, *taps) if taps else 0
            sort = INTEGER if self.chance(0.2) else FLOAT
            shape = () if sort == INTEGER else self.random.choice(SHAPES)
            value = self.outside((steps + extra + reach, *shape), sort)
            sequences.append(self.sequence(value, taps))
        given = self.constants()
        seen = [(name, value) for name, value in self.constants() if not _mentions(value, self.updated)]
        n_steps = None if tells else self.told(steps)
        return self.loop(Scope({}, []), sequences, given, seen, n_steps, self.outside, 3, 0, steps)

    def told(self, steps: int) -> Any:
        """How a program says how many steps there are."""
        form = self.random.choice(["int", "int", "float", "int32", "leaf", "leaf", "sum", "length"])
        if form == "leaf":
            return self.leaf((), COUNT, low=steps, high=steps + 1)
        if form == "sum":
            return Expr("shift", (self.leaf((), COUNT, low=steps + 1, high=steps + 2),), Kind((), COUNT), -1)
        if form == "length":
            return Expr("length", (self.leaf((steps, 2)),), Kind((), COUNT))
        return form, steps

    def constants(self) -> list[tuple[str, Expr]]:
        found = []
        for _ in range(self.random.choice([0, 1, 1, 2])):
            sort = INTEGER if self.chance(0.1) else FLOAT
            found.append((self.fresh("c"), self.outside((() if sort == INTEGER else self.random.choice(SHAPES)), sort)))
        return found

    def sequence(self, value: Expr, taps: tuple[int, ...] | None) -> Sequence:
        names = tuple(self.fresh("x") for _ in taps or (0,))
        return Sequence(value, taps, self.random.choice([None, None, None, True, False]), names)

    def nested(self, scope: Scope, depth: int, nesting: int) -> Loop:
        """A loop of a step, over what the step knows."""

        def of(shape: Shape, sort: str = FLOAT, whole: bool = False) -> Expr:
            if sort == INTEGER:
                return self.integer(scope)
            return self.tree(scope, shape, depth - 1, nesting + 1)

        self.loops += 1
        sequences = []
        steps: int | None = None
        for _ in range(self.random.choice([0, 1, 1, 2])):
            if self.chance(0.15):
                value = Expr("arange", (), Kind((MOST,), INTEGER), MOST)
            else:
                value = of(self.random.choice([(2,), (3,), (2, 3), (3, 3)]))
            taps = self.random.choice([None, None, None, (-1, 0), (1,), (0, -1)])
            reach = max(0, *taps) - min(0, *taps) if taps else 0
            length = value.kind.shape[0] - reach
            steps = length if steps is None else min(steps, length)
            sequences.append(self.sequence(value, taps))
        told = None
        if steps is None or self.chance(0.2):
            steps = self.random.randint(1, 3 if steps is None else steps)
            told = (self.random.choice(["int", "int32"]), steps)
        seen = [(self.fresh("c"), of(self.random.choice(SHAPES))) for _ in range(self.random.choice([0, 0, 1]))]
        given = [(self.fresh("c"), of(self.random.choice(SHAPES))) for _ in range(self.random.choice([0, 0, 1]))]
        return self.loop(scope, sequences, given, seen, told, of, depth - 1, nesting + 1, steps)

    def loop(
        self,
        outer: Scope,
        sequences: list[Sequence],
        given: list[tuple[str, Expr]],
        seen: list[tuple[str, Expr]],
        n_steps: Any,
        of: Callable[..., Expr],
        depth: int,
        nesting: int,
        steps: int,
    ) -> Loop:
        """A loop of these; `of` makes what states begin with."""
        scope = Scope(outer.kinds, [*outer.made])
        if nesting == 0:
            scope.kinds |= self.updated
        for sequence in sequences:
            kind = Kind(sequence.value.kind.shape[1:], sequence.value.kind.sort)
            scope.kinds |= dict.fromkeys(sequence.names, kind)
            if self.is_narrow(sequence.value):
                self.narrow.update(sequence.names)
        scope.kinds |= {name: value.kind for name, value in (*given, *seen)}
        self.narrow.update(name for name, value in (*given, *seen) if self.is_narrow(value))
        begun = [self.begun(of, nesting) for _ in range(self.random.choice([0, 1, 1, 2, 3] if not nesting else [1, 2]))]
        for _, _, names, kind in begun:
            scope.kinds |= dict.fromkeys(names, kind)
        results: list[State | Expr] = [
            State(initial, taps, names, self.after(scope, names, kind, depth, nesting))
            for initial, taps, names, kind in begun
        ]
        for _ in range(self.random.choice([0, 0, 1, 2]) if begun else self.random.choice([1, 1, 2])):
            among = [result for result in results if isinstance(result, State)]
            if among and self.chance(0.15):
                results.append(self.random.choice(among).after)
            elif self.chance(0.1):
                results.append(self.integer(scope))
            else:
                results.append(self.tree(scope, self.random.choice(SHAPES), depth, nesting))
        updates = self.updates(scope, depth, nesting) if nesting == 0 else []
        if not begun and updates and nesting == 0 and self.chance(0.15):
            results = []
        self.random.shuffle(results)
        until = self.until(scope, depth, nesting) if self.chance(0.2) else None
        if until is not None and until.op == "reached" and isinstance(until.args[0].at, State):
            results.append(until.args[0].at)
            until = Expr("reached", (until.args[0].at.after,), until.kind, until.at)
        strict = not seen and nesting == 0 and self.chance(0.3)
        return Loop(
            tuple(sequences),
            tuple(results),
            tuple(given),
            tuple(seen),
            tuple(updates),
            self.random.choice(["dict", "pairs", "ordered", "lists"]),
            until,
            n_steps,
            self.chance(0.15),
            self.random.choice([0, 1, 2, 3, 5]) if self.chance(0.12) else None,
            self.random.choice([1, 2, 3, "sqrt"]) if self.chance(0.25 if nesting == 0 else 0.1) else None,
            strict,
            self.chance(0.7),
        )

    def begun(self, of: Callable[..., Expr], nesting: int) -> tuple[Any, Any, tuple[str, ...], Kind]:
        """What a state begins with, its taps, its names, and what it is."""
        sort = INTEGER if self.chance(0.2) else FLOAT
        shape = () if sort == INTEGER else self.random.choice(SHAPES)
        taps = self.random.choice(STATE_TAPS)
        rows = -min(taps or (-1,))
        if nesting and (taps or (-1,)) != (-1,) and (sort == INTEGER or (rows, *shape) not in SHAPES):
            taps, rows = None, 1
        names = tuple(self.fresh("h") for _ in taps or (-1,))
        alone = (taps or (-1,)) == (-1,)
        if alone and not shape and self.chance(0.25) and self.dtype == "float64":
            return (0 if sort == INTEGER else self.random.choice([0.0, 0.5])), taps, names, Kind(shape, sort)
        more = self.random.choice([0, 0, 0, 1]) if not nesting and not alone else 0
        initial = of(shape if alone else (rows + more, *shape), sort, whole=True)
        return initial, taps, names, Kind(shape, sort)

    def after(self, scope: Scope, names: tuple[str, ...], kind: Kind, depth: int, nesting: int) -> Expr:
        """What a state is next."""
        if kind.sort == INTEGER:
            own = self.name_of(self.random.choice(names), kind)
            added = self.integer(scope) if self.chance(0.4) else Expr("whole", (), kind, self.random.randint(1, 2))
            return Expr("wrapped", (Expr("add", (own, added), kind),), kind, (MOST, self.random.choice([0, 0, MOST])))
        if self.chance(0.05):
            return self.name_of(self.random.choice(names), kind)
        new = self.tree(scope, kind.shape, depth, nesting)
        for name in names:
            if self.chance(0.7):
                past = Expr("scale", (self.name_of(name, kind),), kind, self.number())
                new = Expr("add", (new, past) if self.chance(0.5) else (past, new), kind)
        if self.chance(0.3):
            return new if self.chance(0.3) else Expr("scale", (new,), kind, 0.6)
        return Expr(self.random.choice(["tanh", "sin", "sigmoid"]), (new,), kind)

    def updates(self, scope: Scope, depth: int, nesting: int) -> list[tuple[str, Expr]]:
        found = []
        for name, kind in self.updated.items():
            own = self.name_of(name, kind)
            if kind.sort == COUNT:
                found.append((name, Expr("shift", (own,), kind, 1)))
            else:
                past = Expr("scale", (own,), kind, 0.7)
                new = Expr("add", (past, self.tree(scope, kind.shape, depth, nesting)), kind)
                found.append((name, Expr("tanh", (new,), kind)))
        return found

    def until(self, scope: Scope, depth: int, nesting: int) -> Expr:
        """When a loop ends: after as many steps as a state counts, or by a value."""
        counts = scope.named(Kind((), COUNT))
        if self.chance(0.4):
            kind = Kind((), COUNT)
            name = self.fresh("h")
            after = Expr("shift", (self.name_of(name, kind),), kind, 1)
            state = State(0, None, (name,), after)
            return Expr("reached", (Expr("counter", (), kind, state),), Kind((), "bool"), self.random.randint(1, 5))
        if counts and self.chance(0.5):
            counter = self.name_of(counts[0], Kind((), COUNT))
            return Expr("reached", (counter,), Kind((), "bool"), self.random.randint(1, 5))
        return self.above(scope, (), min(depth, 2), nesting)

    # --- expressions --------------------------------------------------------------------------------------------------

    def integer(self, scope: Scope) -> Expr:
        """A number that indexes what has MOST rows."""
        kind = Kind((), INTEGER)
        names = scope.named(kind)
        if not names:
            return Expr("whole", (), kind, self.random.randrange(-MOST, MOST))
        own = self.name_of(self.random.choice(names), kind)
        if self.chance(0.7):
            return own
        return Expr("wrapped", (Expr("add", (own, self.integer(scope)), kind),), kind, (MOST, 0))

    def above(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        """Whether a value is above a number that it is not likely to be."""
        value = self.tree(scope, shape, depth, nesting)
        return Expr("above", (value,), Kind(shape, "bool"), self.number() * 0.8 + 0.0007)

    def tree(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        """A float of this shape."""
        kind = Kind(shape)
        again = [made for made in scope.made if made.kind == kind]
        if again and self.chance(0.15):
            return self.random.choice(again)
        names = scope.named(kind)
        if depth <= 0 or (names and self.chance(0.15)):
            return self.end(scope, shape, names)
        ways: list[Callable[[Scope, Shape, int, int], Expr]] = [self.unary, self.unary, self.binary, self.binary]
        ways += [self.chosen, {0: self.to_scalar, 1: self.to_vector, 2: self.to_matrix}[len(shape)]]
        ways.append(ways[-1])
        if nesting < 2 and self.loops < 3:
            ways.append(self.looped)
        found = self.random.choice(ways)(scope, shape, depth - 1, nesting)
        if not _mentions(found, self.updated):
            scope.made.append(found)
        return found

    def end(self, scope: Scope, shape: Shape, names: list[str]) -> Expr:
        kind = Kind(shape)
        if names:
            return self.cast(self.name_of(self.random.choice(names), kind))
        if not shape and self.chance(0.5):
            whole = [name for sort in (INTEGER, COUNT) for name in scope.named(Kind((), sort))]
            if whole:
                name = self.random.choice(whole)
                number = Expr("cast", (self.name_of(name, scope.kinds[name]),), kind, self.dtype)
                return Expr("scale", (number,), kind, 0.1)
        number = Expr("number", (), kind, (self.number(), self.dtype))
        smaller = [name for n in range(1, len(shape) + 1) for name in scope.named(Kind(shape[n:]))]
        if smaller and shape and self.chance(0.8):
            name = self.random.choice(smaller)
            return Expr("mul", (number, self.cast(self.name_of(name, scope.kinds[name]))), kind)
        return number

    def unary(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        op = self.random.choice(["tanh", "sin", "cos", "sigmoid", "scale", "shift", "held", "gauss"])
        if op == "held" and self.chance(0.6):
            op = "tanh"
        at = self.number() if op in {"scale", "shift"} else None
        return Expr(op, (self.tree(scope, shape, depth, nesting),), Kind(shape), at)

    def binary(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        one = self.tree(scope, shape, depth, nesting)
        other = self.tree(scope, shape[self.random.choice([0, 0, *range(len(shape) + 1)]) :], depth, nesting)
        op = self.random.choice(["add", "sub", "mul", "mul"])
        made = Expr(op, (one, other) if self.chance(0.6) else (other, one), Kind(shape))
        return made if op == "mul" else Expr("scale", (made,), Kind(shape), 0.7)

    def chosen(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        lazily = self.chance(0.4)
        condition = self.above(scope, () if lazily else shape[self.random.randint(0, len(shape)) :], depth, nesting)
        sides = [self.tree(scope, shape, depth, nesting) for _ in range(2)]
        return Expr("ifelse" if lazily else "where", (condition, *sides), Kind(shape))

    def to_scalar(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        size = self.random.choice([2, 3])
        way = self.random.choice(["dot", "dot", "mean", "total", "pick", "pick", "row"])
        if way == "pick":
            return Expr("pick", (self.tree(scope, (MOST,), depth, nesting), self.integer(scope)), Kind(()))
        one = self.tree(scope, (size,), depth, nesting)
        if way == "dot":
            return Expr("dot", (one, self.tree(scope, (size,), depth, nesting)), Kind(()))
        return Expr(way, (one,), Kind(()), self.random.choice([0, 1, -1]) if way == "row" else None)

    def to_vector(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        (size,) = shape

        def tree(*sizes: int) -> Expr:
            return self.tree(scope, sizes, depth, nesting)

        def index() -> Expr:
            own = self.integer(scope)
            return own if size == MOST else Expr("wrapped", (own,), own.kind, (size, self.random.choice([0, size])))

        rows = self.random.choice([2, 3])
        ways: list[Callable[[], tuple[str, tuple[Expr, ...]]]] = [
            lambda: ("dot", (tree(size, 3), tree(3))),
            lambda: ("put", (tree(size), index(), tree())),
            lambda: ("more", (tree(size), index(), tree())),
            lambda: (self.random.choice(["flip", "share", "cumsum"]), (tree(size),)),
        ]
        if size == 3:
            ways += [
                lambda: ("dot", (tree(rows), tree(rows, 3))),
                lambda: ("total", (tree(rows, 3),)),
                lambda: ("pick", (tree(MOST, 3), self.integer(scope))),
            ]
        else:
            ways.append(lambda: ("from", (tree(3),)))
        op, args = self.random.choice(ways)()
        return Expr(op, args, Kind(shape), 1 if op == "from" else None)

    def to_matrix(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        kind = Kind(shape)
        way = self.random.choice(["outer", "dot", "dot", "flip", "transpose", "put"])
        if way == "outer":
            return Expr("outer", tuple(self.tree(scope, (size,), depth, nesting) for size in shape), kind)
        if way == "dot":
            sides = self.tree(scope, (shape[0], 3), depth, nesting), self.tree(scope, (3, shape[1]), depth, nesting)
            return Expr("dot", sides, kind)
        if way == "put" and shape[0] == MOST:
            row = self.tree(scope, shape[1:], depth, nesting)
            return Expr("put", (self.tree(scope, shape, depth, nesting), self.integer(scope), row), kind)
        op = "transpose" if way == "transpose" and shape[0] == shape[1] else "flip"
        return Expr(op, (self.tree(scope, shape, depth, nesting),), kind)

    def looped(self, scope: Scope, shape: Shape, depth: int, nesting: int) -> Expr:
        """What a loop makes of what the step knows."""
        loop = self.nested(scope, depth, nesting)
        places = [n for n, result in enumerate(loop.results) if kind_of(result).sort == FLOAT]
        if not places:
            return self.end(scope, shape, scope.named(Kind(shape)))
        place = self.random.choice(places)
        own = kind_of(loop.results[place])
        how = self.random.choice(["last", "last", "first", "sum", "squares", "mean"])
        value = Expr("loop", (), Kind(own.shape), (loop, place, how))
        if own.shape == shape[len(shape) - len(own.shape) :]:
            if own.shape == shape:
                return Expr("scale", (value,), Kind(shape), 0.6)
            return Expr("mul", (self.end(scope, shape, scope.named(Kind(shape))), value), Kind(shape))
        number = Expr("scale", (Expr("mean", (value,), Kind(())),), Kind(()), 0.6)
        return Expr("add", (self.end(scope, shape, scope.named(Kind(shape))), number), Kind(shape))


def kind_of(result: State | Expr) -> Kind:
    return (result.after if isinstance(result, State) else result).kind


def _mentions(value: Expr, names: Mapping[str, Any]) -> bool:
    """Whether a value depends on one of these, or may."""
    if value.op in {"loop"} and names:
        return True
    return value.at in names if value.op == "name" else any(_mentions(arg, names) for arg in value.args)


def program_of(seed: int) -> Program:
    """The program of a seed."""
    return Writer(seed).program()
