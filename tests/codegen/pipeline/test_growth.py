"""What a compilation makes grows no faster than its graph: counted, never timed.

Families of programs stand in tests/growth.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import session
from graphc.codegen.call.entry import OUT_OF_LINE, entry_ir, out_of_line_ir
from graphc.codegen.call.signature import Array, Signature
from graphc.codegen.llvm.target import emit_object
from graphc.loopir.syntax import Names
from graphc.options import options
from tests.support.generated import code


def chain(length: int) -> graphc.Function:
    """A dependent chain of vectors with its gradient."""
    x = T.dvector("x")
    value = x
    for step in range(length):
        value = (T.tanh(value), value * 1.01 + 0.1, T.sin(value))[step % 3]
    cost = value.sum()
    return graphc.function([x], [cost, graphc.grad(cost, x)], mode="python")


def reductions(length: int) -> graphc.Function:
    """Nests that cannot be fused, each with a literal of its own."""
    x = T.dvector("x")
    value = x
    for step in range(length):
        value = T.tanh(value / (1.0 + T.sqr(value).sum()) + 0.1 * step) + x
    return graphc.function([x], value, mode="python")


class Asked(set[str]):
    """A set that counts how often it is asked for an item."""

    count = 0

    def __contains__(self, item: object) -> bool:
        self.count += 1
        return super().__contains__(item)


def test_names_are_found_without_a_search() -> None:
    names = Names(())
    names.taken = asked = Asked()
    for _ in range(500):
        assert names.fresh("tanh") != names.fresh("row")
    assert asked.count <= 2 * 1000


def test_what_a_copy_of_names_gives_leaves_no_trace() -> None:
    names = Names(["tanh"])
    assert names.fresh("tanh") == "tanh2"
    assert names.copy().fresh("tanh") == names.copy().fresh("tanh") == names.fresh("tanh") == "tanh3"


def scalars(length: int) -> graphc.Function:
    """A long run of scalars, not found to be equal steps."""
    x = T.dscalar("x")
    value = x
    for step in range(length):
        value = T.tanh(value * 1.1 + x) if step % 2 else value * x - 0.1 * step
    with options.change(excluding="equal_steps"):
        return graphc.function([x], value, mode="python")


def body(length: int) -> graphc.Function:
    """A loop with a long step, and its gradient."""
    x, w = T.dmatrix("x"), T.dscalar("w")

    def step(row: Any, state: Any) -> Any:
        for number in range(length):
            state = (T.tanh(state), state * w + row, T.sin(state))[number % 3]
        return state

    cost = graphc.scan(step, sequences=x, outputs_info=T.zeros_like(x[0]))[0].sum()
    return graphc.function([x, w], [cost, graphc.grad(cost, w)], mode="python")


def branches(length: int) -> graphc.Function:
    """A step that takes one side of a branch after the other."""
    x = T.dvector("x")

    def step(one: Any, state: Any) -> Any:
        for number in range(length // 10):
            state = graphc.ifelse(state > 0.1 * number, T.tanh(state) + one, state * one)
        return state

    return graphc.function([x], graphc.scan(step, sequences=x, outputs_info=0.5)[0], mode="python")


def loops(length: int) -> graphc.Function:
    """Loops of which each goes over what the one before has made, each with a literal of its own."""
    x = T.dvector("x")
    value = x
    for number in range(length // 5):
        value, _ = graphc.scan(lambda one, state: T.sin(state) * one + 0.1 * number, sequences=value, outputs_info=1.0)  # noqa: B023 - called at once
    return graphc.function([x], value, mode="python")


@pytest.mark.slow
@pytest.mark.parametrize("build", [chain, reductions, scalars, body, branches, loops])
def test_generated_source_grows_linearly_with_the_graph(build: Callable[[int], graphc.Function]) -> None:
    small, middle, large = (len(build(length).source.splitlines()) for length in (140, 280, 420))
    assert large - middle <= 1.3 * (middle - small)


@pytest.mark.slow
@pytest.mark.parametrize("build", [reductions, scalars])
def test_equal_parts_of_a_larger_graph_need_no_more_functions(build: Callable[[int], graphc.Function]) -> None:
    middle, large = (len(re.findall("^def ", code(build(length).source), re.MULTILINE)) for length in (200, 400))
    assert large <= middle + 4 < 20


@pytest.mark.slow
@pytest.mark.parametrize("build", [chain, reductions, scalars])
def test_no_generated_function_is_long(build: Callable[[int], graphc.Function]) -> None:
    """But for the kernel, which calls them."""
    functions = re.split("^def ", code(build(300).source), flags=re.MULTILINE)[1:]
    assert len(functions) > 2
    for text in functions:
        if not text.startswith(("kernel", "sizes")):
            assert len(text.splitlines()) <= 260, text.splitlines()[0]


def level(steps: int) -> graphc.Function:
    """A filter over time, unrolled, with its gradient."""
    y, p = T.dvector("y"), T.dvector("p")
    noise, error, phi = T.exp(p[0]), T.exp(p[1]), p[2]
    state, spread, total = [T.as_tensor_variable(value) for value in (0.0, 1.0, 0.0)]
    for t in range(steps):
        state, spread = phi * state, phi * phi * spread + noise
        innovation, expected = y[t] - state, spread + error
        gain = spread / expected
        state, spread = state + gain * innovation, spread * (1 - gain)
        total = total - 0.5 * (T.log(expected) + innovation * innovation / expected)
    return graphc.function([y, p], [total, graphc.grad(total, p)], mode="python")


def kalman(steps: int) -> graphc.Function:
    """The same of two states."""
    y, p = T.dvector("y"), T.dvector("p")
    move = T.as_tensor_variable(np.array([[0.9, 0.1], [0.2, 0.7]])) * p[0]
    noise, seen = T.as_tensor_variable(np.eye(2)) * T.exp(p[1]), T.as_tensor_variable(np.array([1.0, 0.5])) * p[2]
    state, spread, total = [T.as_tensor_variable(value) for value in (np.zeros(2), np.eye(2), 0.0)]
    for t in range(steps):
        state, spread = T.dot(move, state), T.dot(T.dot(move, spread), move.T) + noise
        innovation, shown = y[t] - T.dot(seen, state), T.dot(spread, seen)
        expected = T.dot(seen, shown) + 0.5
        gain = shown / expected
        state, spread = state + gain * innovation, spread - gain[:, None] * shown[None, :]
        total = total - 0.5 * (T.log(expected) + innovation * innovation / expected)
    return graphc.function([y, p], [total, graphc.grad(total, p)], mode="python")


@pytest.mark.slow
@pytest.mark.parametrize("build", [level, kalman])
def test_the_source_hardly_grows_with_equal_steps(build: Callable[[int], graphc.Function]) -> None:
    """But for the checks that there are as many elements as steps read. A step has 20 lines, and 80."""
    small, large = (code(build(steps).source) for steps in (60, 120))
    parts = [re.split("^(?=def )", source, flags=re.MULTILINE) for source in (small, large)]
    lines = [sum(len(part.splitlines()) for part in each if not part.startswith("def sizes")) for each in parts]
    assert lines[1] <= lines[0] + 5
    assert len(parts[1]) <= len(parts[0])


# The entry point -----------------------------------------------------------------------------------------------------


def updated(count: int) -> Signature:
    shared = tuple(Array(f"p{number}", "float64", (None,), written=True) for number in range(count))
    x = Array("x", "float64", (None,))
    return Signature("step", (x,), shared, (), (), tuple((number, 0) for number in range(count + 1)), "none")


def test_the_entry_point_grows_linearly_with_the_updates() -> None:
    small, middle, large = (len(entry_ir(updated(count)).splitlines()) for count in (20, 40, 60))
    assert large - middle == middle - small


def returning(count: int) -> Signature:
    x = Array("x", "float64", (None,))
    return Signature("waves", (x,), (), tuple(Array(f"y{n}", "float64", (None,)) for n in range(count)), (), (), "list")


def replacing(count: int) -> Signature:
    x = Array("x", "float64", (None,))
    shared = tuple(Array(f"p{number}", "float64", (None,)) for number in range(count))
    outputs = tuple(Array(f"new{number}", "float64", (None,), replaces=number) for number in range(count))
    return Signature("step", (x,), shared, outputs, (), (), "none")


@pytest.mark.parametrize("build", [returning, replacing])
def test_no_branch_of_the_entry_point_is_crossed_by_a_variable_for_each_output(
    build: Callable[[int], Signature],
) -> None:
    """As many values as outputs, in registers across as many branches, took LLVM quadratic time."""

    def variables(count: int) -> int:
        return len(re.findall(r"= phi ", entry_ir(build(count), whole=False)))

    def branches(count: int) -> int:
        return len(re.findall(r"^ *br ", entry_ir(build(count), whole=False), re.MULTILINE))

    assert variables(60) == variables(20)
    assert branches(60) - branches(20) == 2 * 40 * len(build(1).shared)


@pytest.mark.slow
def test_three_hundred_results_new_and_given() -> None:
    x = T.dvector("x")
    f = graphc.function([x], [x * float(k) for k in range(300)])
    value = np.arange(3.0)
    results = f(value)
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, value * k)
    given = tuple(None if k % 3 == 2 else np.full(3, np.nan) for k in range(300))
    for k, (result, array) in enumerate(zip(f(value, out=given), given, strict=True)):
        np.testing.assert_array_equal(result, value * k)
        assert array is None or result is array


def test_what_entry_points_share_is_exported_by_one_module() -> None:
    own, shared = entry_ir(updated(2), whole=False), out_of_line_ir()
    for function in OUT_OF_LINE:
        assert not re.search(rf"^define .*@{function.name}\(", own, re.MULTILINE), function.name
        assert re.search(rf"^define (?!internal).*@{function.name}\(", shared, re.MULTILINE), function.name
    assert "declare i1 @overlap(" in own
    assert emit_object([own, shared], 0)


@pytest.mark.slow
@pytest.mark.parametrize("place", [(0, 1), (3, 29), (28, 29)])
def test_two_of_many_updated_variables_may_overlap(place: tuple[int, int]) -> None:
    x = T.dvector("x")
    memory = np.zeros(5)
    values = [np.full(4, float(number)) for number in range(30)]
    for number, part in zip(place, (memory[:4], memory[1:]), strict=True):
        values[number] = part
    params = [graphc.shared(value, name=f"p{n}", borrow=True) for n, value in enumerate(values)]
    call = graphc.function([x], [], updates=[(p, p * 0.5 + x) for p in params])
    call(np.arange(4.0))
    for number, p in enumerate(params):
        start = 0.0 if number in place else float(number)
        np.testing.assert_array_equal(p.get_value(), start * 0.5 + np.arange(4.0))


class Searched(list[Any]):
    """A list that counts the items it may have to compare when it is searched."""

    compared = 0

    def __contains__(self, item: object) -> bool:
        Searched.compared += len(self)
        return super().__contains__(item)

    def index(self, *args: Any) -> int:
        Searched.compared += len(self)
        return super().index(*args)


@pytest.mark.slow
def test_gradients_in_a_session_search_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a variable that a whole chain uses has an input for each link."""

    class Doubled(session.Operation):
        infer = staticmethod(lambda kind: kind)

        def compute(self, *values: Any) -> Any:
            return 2.0 * values[0]

    session.RegisterGradient(Doubled)(lambda operation, gradient: 2.0 * gradient)
    build = session._build
    monkeypatch.setattr(session, "_build", lambda element, args, sample: build(element, Searched(args), sample))

    def compared(length: int) -> int:
        with session.Graph().as_default() as graph:
            graph.operations = Searched()
            x = session.Variable(np.ones(2))
            value: session.Element = x
            for step in range(length):
                value = Doubled([value]) if step % 3 == 2 else session.tanh(value) * x
            gradients = session.compute_gradients(session.reduce_sum(value))
            before = Searched.compared
            session.Session(mode="interpreted").run(gradients[x])
            return Searched.compared - before

    small, large = compared(60), compared(120)
    assert large <= 3 * small


DROPPED = """
import gc, resource
import numpy as np, graphc, graphc.tensor as T
x = T.dvector("x")
kept = graphc.function([x], x * 2.0)
for round in range(8):
    for number in range(100):
        graphc.function([x], x * 3.0)(np.ones(2))
    gc.collect()
    if round == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
assert kept(np.ones(2)).tolist() == [2.0, 2.0]
"""


@pytest.mark.slow
def test_functions_that_are_gone_leave_no_memory_behind() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600, "kB for 600 functions"
