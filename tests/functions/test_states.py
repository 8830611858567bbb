"""States of a function, its values by variable or name, its copies, shared code: as Theano 1.0.5 has them."""

from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc import In, function, shared
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError, UpdateError
from graphc.functions.native import Compiled
from graphc.theano.compile import Param

MODES = ["interpreted", "compiled"]
X, Y, INC, STATE = (T.dscalar(name) for name in ("x", "y", "inc", "state"))


@pytest.mark.parametrize("mode", MODES)
def test_an_input_with_an_update_is_a_state(mode: str) -> None:
    f = function([INC, In(STATE, value=7.0, update=STATE + INC)], STATE, mode=mode)
    assert (f(1.0), f[STATE], f["state"], f[1], f(2.0), f[STATE]) == (7.0, 8.0, 8.0, 8.0, 8.0, 10.0)
    f[STATE] = 100.0
    assert (f(1.0), f[STATE], f(1.0, 5.0), f[STATE], f(1.0, state=50), f.value["state"]) == (100, 101, 5, 6, 50, 51)
    assert f[INC] is None and f[0] is None and STATE in f and "inc" in f and X not in f and 7 not in f
    twin = f.copy(name="twin")
    assert (twin[STATE], twin(1.0), twin[STATE], f[STATE], twin.name) == (7.0, 7.0, 8.0, 51.0, "twin")
    out = np.zeros(())
    assert f(inc=1.0, out=out) is out
    assert out == 51.0 and f.kind is twin.kind and "inc" in repr(f) and f.explain()


@pytest.mark.parametrize("mode", MODES)
def test_states_may_be_shared(mode: str) -> None:
    w: Any = shared(10.0, name="w")
    first = function([INC, In(STATE, value=w.container, update=STATE + INC)], STATE, mode=mode)
    assert (first(1.0), w.get_value()) == (10.0, 11.0)
    second = function([INC, In(STATE, value=first.container[STATE], update=STATE - INC)], STATE * w, mode=mode)
    assert (second(1.0), second[STATE], first[STATE], w.get_value()) == (121.0, 10.0, 10.0, 10.0)
    with pytest.raises(ArgumentError, match="state .* is implicit"):
        first(1.0, 2.0)
    given = function([In(STATE, value=w.container, implicit=False)], STATE * 2, mode=mode)
    assert (given(), given(3.0), w.get_value(), given()) == (20.0, 6.0, 3.0, 6.0)
    assert first.copy()[STATE] == 3.0


@pytest.mark.parametrize("mode", MODES)
def test_defaults_and_values(mode: str) -> None:
    w = shared(np.array([1.0, 2.0]), name="w")
    with pytest.warns(DeprecationWarning, match="Param"):
        old = Param(Y, default=2.0)
    f = function([X, old], X * Y * w, mode=mode)
    np.testing.assert_array_equal(f(3.0), [6.0, 12.0])
    assert f[Y] == 2.0 and f[X] is None and w in f
    np.testing.assert_array_equal(f["w"], [1.0, 2.0])
    f[w] = [3.0]
    assert w.get_value() == [3.0] and f(1.0, 1.0) == [3.0]
    f[w][0] = 9.0
    assert w.get_value() == [3.0], "what is read is a copy"
    f.container[w].storage[0][0] = 9.0
    assert w.get_value() == [9.0]


@pytest.mark.parametrize("mode", [*MODES, "python", "DebugMode"])
@pytest.mark.parametrize("given", [{}, {"profile": True}])
@pytest.mark.parametrize("state", [False, True])
def test_a_default_is_set_for_the_next_call(mode: str, given: dict[str, Any], state: bool) -> None:
    own = [In(STATE, value=0.0, update=STATE + 1)] if state else []
    inputs = [X, In(Y, value=2.0), In(INC, value=3.0, name="step"), *own]
    f = function(inputs, {"r": X * Y + INC} if given else X * Y + INC, mode=mode, on_unused_input="ignore", **given)
    read: Any = (lambda value: value["r"]) if given else (lambda value: value)
    f[Y] = 10
    assert (f[Y], f["y"], f[1], f.value[Y], f.input_storage[1].value) == (10.0,) * 5
    assert (read(f(1.0)), f[Y], read(f(1.0))) == (13.0, 2.0, 5.0), "Theano puts the default back after a call"
    f.value["step"], f[1] = 0.0, 5.0
    assert (read(f(1.0, step=1.0)), read(f(1.0))) == (6.0, 5.0), "so it does after one that is given a value"
    f[2] = 100.0
    assert (read(f(1.0, 1.0, 1.0)), read(f(np.float64(1.0)))) == (2.0, 5.0)
    f["step"] = 7.0
    with pytest.raises(ArgumentError, match="x .* is missing"):
        f()
    out = np.zeros(())
    assert read(f(x=1.0, out={"r": out} if given else out)) == out == 9.0 and read(f(x=1.0)) == 5.0


@pytest.mark.parametrize("mode", MODES)
def test_defaults_that_are_set_among_trees_and_stages(mode: str) -> None:
    n, v = T.lscalar("n"), T.dvector("v")
    nested = function([(X, n), In(v, value=[1.0, 2.0])], {"sum": T.zeros((n,)).sum() + X * v.sum()}, mode=mode)
    nested[v] = np.ones(4)
    assert (nested((2.0, 3))["sum"], nested((2.0, 3))["sum"], list(nested[v])) == (8.0, 6.0, [1.0, 2.0])
    values = np.ones(3)
    f = function([n, In(v, value=[1.0])], T.zeros((n.sum() + 1,)).sum() + v.sum(), mode=mode)
    f[v] = values
    values[:] = 0.0
    assert (f(2), f(2)) == (3.0, 1.0), "what is set is copied"


def test_what_is_refused() -> None:
    w = shared(1.0, "w")
    f = function([X, In(Y, value=1.0), In(INC, name="x")], X + Y + INC + w, mode="interpreted")
    for act, error, message in (
        (lambda: f["nope"], ArgumentError, "no input and no shared variable called 'nope'; it has x, y, x, w"),
        (lambda: f["x"], ArgumentError, "several inputs or variables called 'x'"),
        (lambda: f.value.__setitem__(0, 2.0), ArgumentError, "x .* is given at each call; In.* a default"),
        (lambda: f.value.__setitem__(Y, [2.0]), GraphTypeError, "argument y .* must have 0 dimensions"),
        (lambda: f.container.__setitem__(w, 1), ArgumentError, "cannot be replaced"),
        (lambda: In(X, update=T.iscalar("i")), GraphTypeError, r"update of x .* must be float64"),
        (lambda: In(X, implicit=True), GraphTypeError, "implicit input needs a value"),
        (lambda: f.copy(swap={shared(0.0, "other"): w}), GraphValueError, "no shared variable other"),
        (lambda: f.copy(swap={w: shared(0, "n")}), GraphTypeError, "n .* cannot stand for w"),
        (lambda: function([In(X, value=[1.0], update=X)], X), GraphTypeError, "must have 0 axes"),
    ):
        with pytest.raises(error, match=message):
            act()
    needed = function([In(STATE, update=STATE + 1)], STATE, mode="interpreted")
    with pytest.raises(ArgumentError, match="missing"):
        needed()
    assert needed(2.0) == 2.0 and needed[STATE] == 3.0


@pytest.mark.parametrize("mode", [*MODES, "python"])
def test_copies(mode: str) -> None:
    state: Any = shared(0, "state")
    other: Any = shared(0, "other")
    n = T.iscalar("n")
    f: Any = function([n], state * 2, updates=[(state, state + n)], name="accumulate", mode=mode)
    assert f(10) == 0 and state.get_value() == 10
    before = theano.compilations()
    twin = f.copy(swap={state: other})
    assert theano.compilations() == before, "nothing is compiled for a copy"
    assert (twin(100), state.get_value(), other.get_value(), twin.name) == (0, 10, 100, "accumulate copy")
    same = f.copy()
    assert (same(1), state.get_value(), f(1), same[state], twin.shared) == (20, 11, 22, 12, (other,))
    still = f.copy(delete_updates=True)
    assert (still(9000), state.get_value(), still.copy(swap={state: other})(1)) == (24, 12, 200)
    unused = function([n], n * 2, updates=[(state, state + 1)], mode=mode).copy(delete_updates=True)
    assert unused(2) == 4 and unused.shared == ()
    assert f.copy(profile=True).profile is not None


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
def test_equal_graphs_share_their_code(cached: bool, tmp_path: Path) -> None:
    def build(factor: float = 3.0, **given: Any) -> Any:
        x, w = T.dmatrix("x"), shared(np.ones(3), "w")
        return function([x], T.exp(T.dot(x, w)) * factor, updates=[(w, w + 1)], **given)

    gc.collect()
    with theano.options.change(cache=cached, cache_dir=tmp_path):
        before = theano.compilations()
        first = build()
        assert theano.compilations() == before + 1
        second = build()
        copied = first.copy()
        assert theano.compilations() == before + 1
        assert isinstance(first, Compiled) and isinstance(second, Compiled)
        assert first.library.kernel == second.library.kernel == copied.library.kernel
        assert second.built.report.origin == ("cache" if cached else "memory")
        for rows in (0, 2, 1000):
            given = np.ones((rows, 3)) / 3
            np.testing.assert_array_equal(first(given), second(given))
        assert theano.compilations() == before + 1, "another size compiles nothing"
        assert build(threads=1)(np.ones((2, 3))).shape == (2,) and second.source and second.explain()
        del first, second, copied
        gc.collect()
        build()
        build(4.0)
        assert theano.compilations() >= before + 2


@pytest.mark.parametrize("mode", MODES)
def test_what_a_function_was_made_of(mode: str) -> None:
    w = shared(2.0, "w")
    f = function([X, In(Y, value=3.0)], [X * 1 + Y], updates=[(w, w + X)], name="made", mode=mode)
    graph = f.maker.fgraph
    assert graph.inputs == [X, Y, w] and len(graph.outputs) == 2 and graph.name == "made"
    ops = [node.op.name for node in graph.toposort()]
    assert ops == (["add", "add"] if mode == "compiled" else ["mul", "add", "add"])
    assert len(graph.apply_nodes) == len(ops) == len(graph) and X in graph.variables
    users = graph.clients[X]
    assert graph.clients(X) == users
    assert len(users) == 2 and all(node is not None for node, _ in users)
    assert graph.clients[graph.outputs[0]] == [("output", 0)] and "outputs" in str(graph)
    assert [bool(item.value) for item in f.maker.inputs] == [False, True, True], "what Theano's programs ask"
    assert [item.variable for item in f.maker.inputs] == [X, Y, w] and f.maker.outputs[0].variable.ndim == 0
    assert theano.function([X], X, mode=f.maker.mode).mode == mode
    with pytest.raises(theano.GraphcError, match="never changes"):
        graph.replace(X, Y)


def test_states_among_trees() -> None:
    f = function([(X, Y), In(STATE, value=2.0, update=STATE + X)], {"sum": X + Y, "state": STATE}, mode="interpreted")
    assert [f((1.0, 2.0))["state"], f((1.0, 2.0))["state"], f[STATE], f((0.0, 0.0), 9.0)["state"]] == [2, 3, 4, 9]
    for twin in (f.copy(), copy.copy(f)):
        assert twin((1.0, 1.0)) == {"sum": 2.0, "state": 2.0} and f[STATE] == 9.0


def test_no_outputs() -> None:
    w = shared(1.0)
    assert function([], updates=[(w, w * 2)], mode="interpreted")() == [] and w.get_value() == 2.0


def test_what_is_kept_where() -> None:
    """Theano's `finder` and `input_storage`, by variable, name and position."""
    w = shared([1.0, 2.0], "w")
    inputs = [X, In(STATE, value=2.0, update=STATE + 1), In(Y, value=7.0)]
    f = function(inputs, X * STATE * Y + w.sum(), mode="interpreted")
    assert f.container[X].value is None and f.container["y"].value == 7.0
    assert f.finder[X].value is None and f.finder[1].value == 2.0 and f.finder["y"].value == 7.0
    assert [kept.value for kept in f.input_storage] == [None, 2.0, 7.0] and f.unpack_single
    f.finder[w].value = [5.0, 5.0]
    f.container[STATE].data = 1.0
    assert f(1.0) == 17.0 and f.finder[STATE].value == 2.0
    f.finder[Y].value = 3.0
    assert f.input_storage[2].value == f.finder["y"].data == 3.0
    with pytest.raises(ArgumentError, match="given at each call"):
        f.finder[X].value = 3.0
    with pytest.raises(GraphTypeError, match="has 1 axes, not 0"):
        f.finder[w].value = 3.0


def by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("twins_of", [by_pickle, copy.deepcopy])
def test_states_in_pickles_and_copies(mode: str, twins_of: Any) -> None:
    """Twins keep what a call may leave out, have a state of their own, and share it where the originals do."""
    a = T.dscalar("a")
    inputs = [X, In(a, value=1.0), In(STATE, value=0.0, update=STATE + a * X)]
    f = function(inputs, STATE + a * X, mode=mode)
    g = function([X, In(STATE, value=f.container[STATE])], STATE * X, mode=mode)
    assert f(3.0) == 3.0
    first, second = twins_of([f, g])
    assert (first(2.0), first(1.0, 10.0), second(2.0)) == (5.0, 15.0, 30.0)
    assert (f[STATE], g(2.0), first["state"], first.container[2].value) == (3.0, 6.0, 15.0, 15.0)
    second.container["state"].value = 1.0
    assert first(1.0) == 2.0 and f(1.0) == 4.0
    with pytest.raises(ArgumentError, match="implicit"):
        second(1.0, 2.0)


@pytest.mark.parametrize("twins_of", [by_pickle, copy.deepcopy])
def test_a_default_is_shared_with_another_function(twins_of: Any) -> None:
    """Each sees what the other sets, until a call of the first, after which it has its default again."""
    first = function([In(Y, value=3.0)], Y, mode="interpreted")
    f = function([X, In(STATE, value=first.container[Y], update=STATE + X)], STATE, mode="interpreted")
    twin = twins_of(f)
    assert [f(1.0), f(1.0), twin(1.0), twin["state"], first()] == [3.0, 4.0, 3.0, 4.0, 5.0]
    assert (f[STATE], first[Y], twin["state"], first()) == (3.0, 3.0, 4.0, 3.0)


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("flat", [True, False])
def test_what_is_set_of_a_shared_default_is_seen_by_all(mode: str, flat: bool) -> None:
    pair = T.dscalars("p", "q")
    first = function(
        [X, In(Y, value=2)] if flat else [pair, In(Y, value=2)], Y * 1.0, mode=mode, on_unused_input="ignore"
    )
    argument = 0.0 if flat else [0.0, 0.0]
    others = [function([X, In(STATE, value=first.container["y"])], STATE + X, mode=mode) for _ in range(2)]
    first[Y] = 7.0
    assert [f(1.0) for f in others] == [8.0, 8.0] and others[0][STATE] == first[Y] == 7.0
    assert (first(argument), first[Y], others[1](0.0), first(argument, 5.0), first(argument)) == (
        7.0,
        2.0,
        2.0,
        5.0,
        2.0,
    )
    others[0].container[STATE].value = 4.0
    assert (others[1](0.0), first(argument), first(argument)) == (4.0, 4.0, 2.0)
    with pytest.raises(ArgumentError, match="is given at each call, and its container holds no value"):
        function([In(STATE, value=first.container[0])], STATE)


def test_variables_of_one_value_in_pickles() -> None:
    w = shared([1.0, 2.0], "w")
    pair = by_pickle([w, w.clone()])
    pair[0].set_value([5.0, 6.0])
    assert pair[1].get_value().tolist() == [5.0, 6.0] and w.get_value().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("mode", [*MODES, "python"])
def test_variables_of_one_value(mode: str) -> None:
    """A function reads the value from before the update, through whichever of the variables either goes."""
    mean = shared(np.ones(3), "mean")
    running, again = theano.clone(mean, share_inputs=False), mean.clone()
    running.default_update = 0.5 * running + 2.0
    f = function([], [mean * 10.0 + 0.0 * running, again + 1.0], mode=mode)
    assert [value.tolist() for value in f()] == [[10.0] * 3, [2.0] * 3]
    assert len(f.shared) == 1 and f[mean].tolist() == f[running].tolist() == mean.get_value().tolist() == [2.5] * 3
    last = mean.clone()
    last.default_update = 0.5 * last + 3.0
    g = function([], running + last, mode=mode)
    assert (g().tolist(), again.get_value().tolist()) == ([5.0] * 3, [4.25] * 3), "of several, the last"
    h = function([], running + last, updates=[(again, mean * 2.0)], mode=mode)
    assert (h().tolist(), mean.get_value().tolist()) == ([8.5] * 3, [8.5] * 3), "what is told goes first"
    other = shared(np.zeros(2), "other")
    twin = h.copy(swap={last: other})
    assert (twin().tolist(), mean.get_value().tolist()) == ([0.0] * 2, [8.5] * 3)
    kept = function([], running * 1.0, no_default_updates=[running], mode=mode)
    assert (kept().tolist(), mean.get_value().tolist()) == ([8.5] * 3, [8.5] * 3)


def test_variables_of_one_value_are_updated_once() -> None:
    w = shared(1.0, "w")
    with pytest.raises(UpdateError, match="w .* and w .* share a value, which is updated twice"):
        function([], [], updates=[(w, w + 1.0), (w.clone(), w + 2.0)])
    narrow = shared(np.ones((1, 2)), "narrow", broadcastable=(True, False))
    free = T.dmatrix("free")
    f = function([In(free, value=narrow.container, update=free + 1.0)], narrow + free, mode="interpreted")
    assert (f().tolist(), narrow.get_value().tolist()) == ([[2.0] * 2], [[2.0] * 2])


@pytest.mark.parametrize("mode", [*MODES, "python", "NanGuardMode"])
def test_copies_trust_their_input(mode: str) -> None:
    plain = function([X], X * 2.0, mode=mode)
    state = function([X, In(STATE, value=0.0, update=STATE + X)], STATE * X, mode=mode)
    tree = function([{"x": X}], [{"y": X * 2.0}], mode=mode)
    for f in (plain, state, tree):
        for trusts in (True, False):
            f.trust_input = trusts
            twins = f.copy(), copy.copy(f), copy.deepcopy(f), by_pickle(f)
            assert [twin.trust_input for twin in twins] == [trusts] * 4
    assert function([X], X, mode=mode, trust_input=True).trust_input


def test_default_updates_can_be_deleted() -> None:
    n = shared(0)
    n.default_update = n + 1
    function([], n, mode="interpreted")()
    del n.default_update
    function([], n, mode="interpreted")()
    assert n.get_value() == 1 and n.default_update is None
    with pytest.raises(GraphTypeError, match=r"shared .* cannot be an input"):
        function([In(n, update=n + 1)], n)
