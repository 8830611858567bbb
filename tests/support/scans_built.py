"""Programs of `random_scans.py`, built: as a graph of graphc, and carried out in NumPy, step by step.

In: a program, and values of its leaves. Out: what its consumers make of its results, a cost, and what its shared
variables become. The NumPy side knows nothing of graphc. It takes complex numbers, for derivatives along the imaginary
axis, may be told to round more than it does, and remembers what it has decided, so that what is a little beside takes
the same way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import graphc
import graphc.tensor as T
from graphc.startup.record import fresh, record
from tests.support.random_scans import FLOAT, Consumer, Expr, Leaf, Loop, Program, State, kind_of

Values: TypeAlias = dict[str, Any]


def _put(_: Any, value: Any, index: Any, part: Any) -> Any:
    found = np.array(value, np.result_type(value, part))
    found[index] = part
    return found


def _more(_: Any, value: Any, index: Any, part: Any) -> Any:
    found = np.array(value, np.result_type(value, part))
    found[index] += part
    return found


def _share(_: Any, value: Any) -> Any:
    powers = np.exp(value)
    return powers / powers.sum()


OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (lambda _, a: T.tanh(a), lambda _, a: np.tanh(a)),
    "sin": (lambda _, a: T.sin(a), lambda _, a: np.sin(a)),
    "cos": (lambda _, a: T.cos(a), lambda _, a: np.cos(a)),
    "sigmoid": (lambda _, a: T.nnet.sigmoid(a), lambda _, a: 1 / (1 + np.exp(-a))),
    "gauss": (lambda _, a: T.exp(-T.sqr(a)), lambda _, a: np.exp(-(a**2))),
    "scale": (lambda at, a: a * at, lambda at, a: a * at),
    "shift": (lambda at, a: a + at, lambda at, a: a + at),
    "add": (lambda _, a, b: a + b, lambda _, a, b: a + b),
    "sub": (lambda _, a, b: a - b, lambda _, a, b: a - b),
    "mul": (lambda _, a, b: a * b, lambda _, a, b: a * b),
    "dot": (lambda _, a, b: T.dot(a, b), lambda _, a, b: np.dot(a, b)),
    "total": (lambda _, a: 0.5 * a.sum(axis=0), lambda _, a: 0.5 * a.sum(axis=0)),
    "mean": (lambda _, a: a.mean(), lambda _, a: np.mean(a)),
    "flip": (lambda _, a: a[::-1], lambda _, a: a[::-1]),
    "transpose": (lambda _, a: a.T, lambda _, a: a.T),
    "outer": (lambda _, a, b: a[:, None] * b, lambda _, a, b: a[:, None] * b),
    "row": (lambda at, a: a[at], lambda at, a: a[at]),
    "from": (lambda at, a: a[at:], lambda at, a: a[at:]),
    "pick": (lambda _, a, i: a[i], lambda _, a, i: a[int(i)]),
    "put": (lambda _, a, i, b: T.set_subtensor(a[i], b), lambda _, a, i, b: _put(_, a, int(i), b)),
    "more": (lambda _, a, i, b: T.inc_subtensor(a[i], b), lambda _, a, i, b: _more(_, a, int(i), b)),
    "share": (lambda _, a: T.exp(a) / T.exp(a).sum(), _share),
    "cumsum": (lambda _, a: 0.5 * T.cumsum(a, axis=0), lambda _, a: 0.5 * np.cumsum(a, axis=0)),
    "cast": (lambda at, a: T.cast(a, at), lambda _, a: a * 1.0),
    "wrapped": (lambda at, a: a % at[0] - at[1], lambda at, a: a % at[0] - at[1]),
    "where": (lambda _, c, a, b: T.switch(c, a, b), lambda _, c, a, b: np.where(c, a, b)),
    "ifelse": (lambda _, c, a, b: graphc.ifelse(c, a, b), lambda _, c, a, b: a if c else b),
    "reached": (lambda at, a: T.ge(a, at), lambda at, a: a >= at),
    "length": (lambda _, a: a.shape[0], lambda _, a: len(a)),
    "whole": (T.constant, np.asarray),
    "arange": (T.arange, np.arange),
}
"""What an operation is in a graph, and in NumPy."""

CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda rows: rows,
    "last": lambda rows: rows[-1],
    "first": lambda rows: rows[0],
    "sum": lambda rows: rows.sum(axis=0),
    "mean": lambda rows: rows.mean(axis=0),
    "squares": lambda rows: (rows * rows).sum(axis=0),
    "count": lambda rows: rows.shape[0],
    "reversed": lambda rows: rows[::-1],
    "tail": lambda rows: rows[1:],
}
"""What becomes of rows, the same in both."""

WEIGHTS = np.cos(1.0 + np.arange(200.0)) + 0.2
"""Of the elements of what is added up to a cost."""


def weights(shape: Sequence[int], place: int) -> Any:
    return np.roll(WEIGHTS, 7 * place)[: int(np.prod(shape))].reshape(shape)


# --- as a graph -------------------------------------------------------------------------------------------------------


@record()
class Built:
    """A program as a graph: its inputs, all its leaves by name, what it computes, and updates."""

    inputs: list[Any]
    leaves: dict[str, Any]
    results: list[Any]
    cost: Any
    updates: Any


def built(program: Program, values: Values) -> Built:
    leaves = {leaf.name: _variable(leaf, values[leaf.name]) for leaf in program.leaves}
    stacked, updates = _scan(program.loop, leaves, {})
    results = [CONSUMERS[each.how](stacked[each.place]) for each in program.consumers]
    cost = T.constant(np.zeros((), program.dtype))
    for place, (consumer, result) in enumerate(zip(program.consumers, results, strict=True)):
        if _is_smooth(program, consumer):
            cost = cost + _weighed(result, T.sin(result) if consumer.bent else result, consumer, program, place)
    for place, name in enumerate(program.finals):
        if updates[leaves[name]].dtype == program.dtype:
            final = updates[leaves[name]]
            factors = weights(np.shape(values[name]), place).astype(program.dtype)
            cost = cost + (final * factors).sum()
    inputs = [leaves[leaf.name] for leaf in program.leaves if not leaf.is_shared]
    return Built(inputs, leaves, results, cost, updates)


def _is_smooth(program: Program, consumer: Consumer) -> bool:
    return consumer.how != "count" and kind_of(program.loop.results[consumer.place]).sort == FLOAT


def _weighed(result: Any, bent: Any, consumer: Consumer, program: Program, place: int) -> Any:
    shape = kind_of(program.loop.results[consumer.place]).shape
    if consumer.how not in {"rows", "reversed", "tail"}:
        return (bent * weights(shape, place).astype(program.dtype)).sum()
    return (bent * T.constant(weights((8, *shape), place).astype(program.dtype))[: result.shape[0]]).sum()


def _variable(leaf: Leaf, value: Any) -> Any:
    if leaf.is_shared:
        return graphc.shared(value, name=leaf.name)
    sizes = tuple(size if known else None for size, known in zip(leaf.shape, leaf.sizes, strict=True))
    return T.tensor(leaf.dtype, sizes, leaf.name)


def _node(expr: Expr, env: Mapping[str, Any], made: dict[Any, Any]) -> Any:
    """The node of a value; `made`: those that are there."""
    if expr.op == "name":
        return env[expr.at]
    if expr in made:
        return made[expr]
    if expr.op == "loop":
        loop, place, how = expr.at
        if loop not in made:
            made[loop] = _scan(loop, env, made)
        node = CONSUMERS[how](made[loop][0][place])
    elif expr.op == "number":
        node = T.constant(np.full(expr.kind.shape, *expr.at))
    else:
        args = [_node(arg, env, made) for arg in expr.args]
        if expr.op == "above":
            node = T.gt(args[0], expr.at)
        elif expr.op == "held":
            node = T.disconnected_grad(args[0])
        else:
            node = OPS[expr.op][0](expr.at, *args)
    made[expr] = node
    return node


def _scan(loop: Loop, env: Mapping[str, Any], made: dict[Any, Any]) -> tuple[list[Any], Any]:
    """The stacked results of a loop, and its updates."""

    def outside(value: Any) -> Any:
        return _node(value, env, made) if isinstance(value, Expr) else value

    states = [each for each in loop.results if isinstance(each, State)]
    names = [name for sequence in loop.sequences for name in sequence.names]
    names += [name for state in states for name in state.names]
    names += [name for name, _ in loop.given]
    seen = {name: outside(value) for name, value in loop.seen}
    bare = loop.bare and len(loop.results) == 1

    def step(*args: Any) -> Any:
        own = {**env, **seen, **dict(zip(names, args, strict=True))}
        inside = dict(made)
        outputs: Any = [_result(each, own, inside) for each in loop.results]
        returned: list[Any] = [outputs[0] if bare else outputs] if outputs else []
        if loop.updates:
            returned.append(_written(loop, {env[name]: _node(value, own, inside) for name, value in loop.updates}))
        if loop.until is not None:
            returned.append(graphc.until(_node(loop.until, own, inside)))
        return returned[0] if len(returned) == 1 else tuple(returned)

    sequences = []
    for each in loop.sequences:
        told = {"taps": each.taps and [*each.taps], "go_backwards": each.backwards}
        told = {key: value for key, value in told.items() if value is not None}
        sequences.append({"input": outside(each.value), **told} if told else outside(each.value))
    info: list[Any] = []
    for result in loop.results:
        if isinstance(result, Expr):
            info.append(None)
        elif result.taps is None:
            info.append(outside(result.initial))
        else:
            info.append({"initial": outside(result.initial), "taps": [*result.taps]})
    stacked, updates = graphc.scan(
        step,
        sequences[0] if loop.bare and len(sequences) == 1 else sequences,
        (info[0] if bare else info) if states else None,
        [outside(value) for _, value in loop.given],
        _told(loop.n_steps, outside),
        truncate_gradient=-1 if loop.truncate is None else loop.truncate,
        go_backwards=loop.go_backwards,
        strict=loop.strict,
        return_list=True,
        checkpoint=loop.checkpoint,
    )
    return stacked, updates


def _result(result: State | Expr, env: Mapping[str, Any], made: dict[Any, Any]) -> Any:
    if isinstance(result, Expr):
        return _node(result, env, made)
    after = _node(result.after, env, made)
    whole = result.after.kind.sort != FLOAT and isinstance(result.initial, Expr)
    return T.cast(after, env[result.names[0]].dtype) if whole else after


def _written(loop: Loop, updates: dict[Any, Any]) -> Any:
    pairs = [*updates.items()]
    forms = {"dict": updates, "pairs": pairs, "ordered": OrderedDict(pairs), "lists": [list(pair) for pair in pairs]}
    return forms[loop.form]


def _told(n_steps: Any, outside: Callable[[Any], Any]) -> Any:
    if n_steps is None or isinstance(n_steps, Expr):
        return outside(n_steps)
    form, steps = n_steps
    return {"int": int, "float": float, "int32": np.int32}[form](steps)


# --- in NumPy ---------------------------------------------------------------------------------------------------------


class Run:
    """Arithmetic that remembers what was decided, and what does not move with the inputs. `noise`: by how much an
    operation is wrong at most, relative to its result. What another run has `decided` and `held` is taken."""

    def __init__(
        self, noise: float = 0.0, seed: int = 0, decided: list[Any] | None = None, held: list[Any] | None = None
    ) -> None:
        self.noise, self.rng = noise, np.random.default_rng(seed)
        self.decided, self.held = decided, held
        self.decisions: list[Any] = []
        self.holds: list[Any] = []
        self.margin = np.inf

    def decide(self, value: Any, limit: float) -> Any:
        distance = np.real(value) - limit
        self.margin = min(self.margin, np.min(np.abs(distance)))
        self.decisions.append(distance > 0 if self.decided is None else self.decided[len(self.decisions)])
        return self.decisions[-1]

    def hold(self, value: Any) -> Any:
        self.holds.append(np.real(value) if self.held is None else self.held[len(self.holds)])
        return self.holds[-1]

    def rounded(self, value: Any) -> Any:
        if not self.noise:
            return value
        return value * (1.0 + self.noise * self.rng.uniform(-1.0, 1.0, np.shape(value)))


@record()
class Done:
    """What a program leaves: its results, its cost, and what its shared variables become."""

    results: list[Any]
    cost: Any
    after: Values = fresh(factory=dict)


def carried_out(program: Program, values: Values, run: Run) -> Done:
    """The program on these values."""
    rows, after = _loop(program.loop, values, run, {})
    results = [CONSUMERS[each.how](rows[each.place]) for each in program.consumers]
    cost = 0.0
    for place, (consumer, result) in enumerate(zip(program.consumers, results, strict=True)):
        if _is_smooth(program, consumer):
            bent = run.rounded(np.sin(result) if consumer.bent else result)
            shape = kind_of(program.loop.results[consumer.place]).shape
            whole = consumer.how in {"rows", "reversed", "tail"}
            factors = weights((8, *shape), place)[: len(result)] if whole else weights(shape, place)
            cost = cost + (bent * factors).sum()
    for place, name in enumerate(program.finals):
        if np.result_type(values[name]).kind in "fc":
            cost = cost + (after[name] * weights(np.shape(values[name]), place)).sum()
    return Done(results, cost, after)


def _value(expr: Expr, env: Values, run: Run, made: dict[Any, Any]) -> Any:
    if expr.op == "name":
        return env[expr.at]
    if expr in made:
        return made[expr]
    if expr.op == "loop":
        loop, place, how = expr.at
        if loop not in made:
            made[loop] = _loop(loop, env, run, made)
        value = run.rounded(CONSUMERS[how](made[loop][0][place]))
    elif expr.op == "number":
        value = np.full(expr.kind.shape, expr.at[0])
    else:
        args = [_value(arg, env, run, made) for arg in expr.args]
        if expr.op == "above":
            value = run.decide(args[0], expr.at)
        elif expr.op == "held":
            value = run.hold(args[0])
        else:
            value = OPS[expr.op][1](expr.at, *args)
            value = run.rounded(value) if expr.kind.sort == FLOAT else value
    made[expr] = value
    return value


def _loop(loop: Loop, env: Values, run: Run, made: dict[Any, Any]) -> tuple[list[Any], Values]:
    """The rows of all results, and what shared variables become."""
    if loop.truncate is None:
        return _steps(loop, env, run, made, 0, None)
    # The steps that no derivative goes through are the first: how many there are must be known, as when the loop ends.
    count = len(_steps(loop, env, run, made, 0, None, counted=True)[0][-1])
    return _steps(loop, env, run, made, max(count - loop.truncate, 0), count)


def _steps(
    loop: Loop, env: Values, run: Run, made: dict[Any, Any], fixed: int, known: int | None, counted: bool = False
) -> tuple[list[Any], Values]:
    """The loop, `known` steps of it where that is given; nothing that the first `fixed` steps make moves."""
    reads = _reads(loop, env, run, made)
    count = _count(loop, reads, env, run, made) if known is None else known
    histories = [_history(each, env, run, made) if isinstance(each, State) else [] for each in loop.results]
    outside = {name: _value(value, env, run, made) for name, value in (*loop.given, *loop.seen)}
    shared = {name: env[name] for name, _ in loop.updates}
    rows: list[list[Any]] = [[] for _ in loop.results]
    taken: list[int] = []
    for step in range(count):
        if fixed and step == fixed:  # values before the first step, too, that taps still reach
            histories = [[run.hold(value) for value in history] for history in histories]
        own = {**env, **outside, **shared, **{name: elements[step] for name, elements in reads.items()}}
        for result, history in zip(loop.results, histories, strict=True):
            if isinstance(result, State):
                own |= {name: history[tap] for tap, name in zip(result.taps or (-1,), result.names, strict=True)}
        inside = dict(made)
        found = [_value(each.after if isinstance(each, State) else each, own, run, inside) for each in loop.results]
        shared = {name: _value(value, own, run, inside) for name, value in loop.updates}
        if step < fixed:
            found = [run.hold(each) for each in found]
            shared = {name: run.hold(each) for name, each in shared.items()}
        for row, history, value in zip(rows, histories, found, strict=True):
            row.append(value)
            history.append(value)
        taken.append(step)
        if loop.until is not None and known is None and _value(loop.until, own, run, inside):
            break
    if counted:
        return [taken], {}
    kinds = [kind_of(each) for each in loop.results]
    dtypes = ["float64" if kind.sort == FLOAT else "int64" for kind in kinds]
    stacked = [
        np.array(row) if row else np.zeros((0, *kind.shape), dtype)
        for row, kind, dtype in zip(rows, kinds, dtypes, strict=True)
    ]
    return stacked, shared


def _reads(loop: Loop, env: Values, run: Run, made: dict[Any, Any]) -> dict[str, list[Any]]:
    """The elements that steps are given, one after the other, by name."""
    found: dict[str, list[Any]] = {}
    for each in loop.sequences:
        value = _value(each.value, env, run, made)
        taps = each.taps or (0,)
        places = range(-min(0, *taps), len(value) - max(0, *taps))
        backwards = loop.go_backwards if each.backwards is None else each.backwards
        for tap, name in zip(taps, each.names, strict=True):
            found[name] = [value[place + tap] for place in (reversed(places) if backwards else places)]
    return found


def _count(loop: Loop, reads: Mapping[str, list[Any]], env: Values, run: Run, made: dict[Any, Any]) -> int:
    """How many steps there are at most."""
    if isinstance(loop.n_steps, Expr):
        return int(_value(loop.n_steps, env, run, made))
    if loop.n_steps is not None:
        return int(loop.n_steps[1])
    return min(map(len, reads.values()))


def _history(state: State, env: Values, run: Run, made: dict[Any, Any]) -> list[Any]:
    """The values before the first step, the oldest first."""
    if not isinstance(state.initial, Expr):
        return [np.asarray(state.initial)]
    initial = _value(state.initial, env, run, made)
    depth = -min(state.taps or (-1,))
    return [initial] if (state.taps or (-1,)) == (-1,) else [initial[place] for place in range(depth)]


def draw(leaf: Leaf, rng: np.random.Generator) -> Any:
    """A value of a leaf."""
    if leaf.dtype.startswith("float"):
        return np.asarray(rng.uniform(-1.0, 1.0, leaf.shape), leaf.dtype)
    return np.asarray(rng.integers(leaf.low, leaf.high, leaf.shape), leaf.dtype)
