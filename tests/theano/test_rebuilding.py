"""Theano's ways to rebuild a graph and to ask for its shapes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, UpdateError
from graphc.theano.compile import rebuild_collect_shared
from graphc.theano.graphs import is_same_graph

shape_of_variables: Any = import_module("graphc.tensor.utils").shape_of_variables
A, B, C = T.dscalars("abc")
X, Y, M = T.dvector("x"), T.dvector("y"), T.dmatrix("m")


def test_map_variables() -> None:
    ab = A + B
    ab.tag.replacement = A * B
    (v,) = theano.map_variables(lambda graph: getattr(graph.tag, "replacement", graph), [ab + C])
    assert v is A * B + C

    def doubled(each: Any) -> Any:
        return each * 2 if each.owner and each.owner.op.name == "exp" else each

    found = theano.map_variables(doubled, [T.exp(T.exp(X)), T.exp(X), X + 1])
    assert found == [T.exp(T.exp(X) * 2) * 2, T.exp(X) * 2, X + 1], "what a replacement has of the graph is replaced"
    (swapped,) = theano.map_variables(lambda each: {X: Y, Y: X}.get(each, each), [X / Y])
    assert swapped is Y / X
    with pytest.raises(GraphTypeError, match=r"m .* cannot replace x "):
        theano.map_variables(lambda each: M if each is X else each, [X + 1])


def test_tags_are_kept() -> None:
    """Those of what is made anew, but for its test value, which belongs to other inputs; not those of what goes."""
    x, y = T.dvectors("x", "y")
    x.tag.role, hidden = "input", T.tanh(x)
    hidden.tag.role, hidden.tag.test_value = "hidden", np.ones(3)
    twin = theano.clone(hidden * 2, replace={x: y})
    made = twin.owner.inputs[0]
    assert vars(made.tag) == {"role": "hidden"} and not vars(y.tag) and made is T.tanh(y)
    made.tag.role = "twin"
    assert theano.clone(hidden * 3, {x: y}).owner.inputs[0].tag.role == "twin", "it is the same value"
    (mapped,) = theano.map_variables(lambda each: y if each is x else each, [hidden + 1])
    assert mapped.owner.inputs[0].tag.role == "twin" and hidden.tag.role == "hidden"


def test_map_variables_within_loops_and_branches() -> None:
    """What steps and branches compute is replaced too, once; what is replaced outside is what they get."""
    asked = []

    def bent(each: Any) -> Any:
        asked.append(each)
        return T.sin(each.owner.inputs[0]) * A if each.owner and each.owner.op.name == "tanh" else each

    def program(bend: Any) -> list[Any]:
        outer = bend(A)

        def step(x: Any, s: Any, w: Any) -> Any:
            inner = theano.scan(lambda t: bend(t) + w, outputs_info=[s], n_steps=2)[0][-1]
            return x + bend(inner), theano.lax.cond(x > 1.0, bend, lambda x: x * 2.0, x), theano.until(s > 9.0)

        (states, chosen), _ = theano.scan(step, X, [0.0, None], non_sequences=outer)
        return [states, chosen, states[-1] * outer, theano.ifelse(A > 0.0, bend(A + 1.0), B)]

    written = program(T.tanh)
    found = theano.map_variables(bent, written)
    wanted = program(lambda x: T.sin(x) * A)
    f = theano.function([X, A, B], [*found, *wanted], mode="interpreted")
    values = f([0.5, 1.5, 3.0], 0.7, 0.0)
    for got, expected in zip(values[:4], values[4:], strict=True):
        np.testing.assert_allclose(got, expected)
    assert [each is T.tanh(A) for each in asked].count(True) == 1
    same = theano.map_variables(lambda each: each, written)
    assert all(new is old for new, old in zip(same, written, strict=True))


@pytest.mark.parametrize("settings", [{}, {"checkpoint": 2}, {"truncate_gradient": 2}])
def test_steps_keep_their_tags(settings: dict[str, Any]) -> None:
    """What a step's variables were told is known within the loop, also of loops in loops and of copies, and not of a
    loop of equal steps that were told nothing."""

    def negated(each: Any) -> Any:
        return -each if getattr(each.tag, "negate", False) else each

    def running(v: Any, a: Any, is_told: bool, sign: float) -> Any:
        def inner(t: Any, w: Any) -> Any:
            scaled = t * w
            scaled.tag.negate = is_told
            return sign * scaled

        def step(x: Any, total: Any) -> Any:
            y = x * a + total
            y.tag.negate = is_told
            y = sign * y
            return y + theano.scan(inner, outputs_info=[y], non_sequences=a, n_steps=2)[0][-1]

        return theano.scan(step, v, T.constant(0.0), **settings)[0]

    (v, a), (v2, a2), u = T.dvectors("v", "a"), T.dvectors("v2", "a2"), T.dvector("u")
    told, other = running(v, a[0], True, 1.0), running(v2, a2[0], False, 1.0)
    changed, same = theano.map_variables(negated, [told, other])
    (of_copy,) = theano.map_variables(negated, [theano.clone(told, {v: u * 2.0})])
    wanted = running(v, a[0], False, -1.0)
    f = theano.function([v, a, v2, a2, u], [changed, wanted, of_copy, same, other], mode="interpreted")
    got = f([1.0, 2.0, 3.0], [0.5], [1.0, 2.0, 3.0], [0.5], [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], got[2])
    assert same is other and not np.array_equal(got[0], got[3])


def test_inner_graphs_keep_their_tags() -> None:
    hidden = T.exp(X)
    hidden.tag.replacement = X * 3.0
    within = theano.OpFromGraph([X], [hidden + 1.0])
    (v,) = theano.map_variables(lambda each: T.tanh(each) if hasattr(each.tag, "replacement") else each, [within(Y)])
    assert v is T.tanh(T.exp(Y)) + 1.0


def test_rebuild_collect_shared() -> None:
    w, n = theano.shared(2.0, "w"), theano.shared(0, "n")
    n.default_update = n + 1
    inputs, outputs, (made, updates, pairs, shared) = rebuild_collect_shared(
        [X * w + n, theano.Out(X + 1)], inputs=[X, Y], replace={X: Y}, updates=[(w, w + X.sum())]
    )
    assert (inputs, outputs[0], outputs[1].variable) == ([Y, Y], Y * w + n, Y + 1)
    assert made[X * w + n] is Y * w + n and updates == {w: w + Y.sum(), n: n + 1} == dict(pairs)
    assert set(shared) == {w, n}
    (fresh,), output, _ = rebuild_collect_shared(X * 2, [X], copy_inputs_over=False)
    assert fresh is not X and fresh.type == X.type and is_same_graph(output, fresh * 2)
    assert rebuild_collect_shared(None)[1] == [] and rebuild_collect_shared(n, no_default_updates=True)[2][1] == {}
    with pytest.raises(GraphTypeError, match="w .* is shared and cannot be an input"):
        rebuild_collect_shared(w, [w])
    with pytest.raises(UpdateError, match="x .*only a shared|only a shared.* x"):
        rebuild_collect_shared(w, updates={X: Y})


def test_shape_of_variables() -> None:
    """As Theano's documentation has it."""
    y = M[512:]
    graph = theano.gof.FunctionGraph([M], [y], clone=False)
    found: Any = shape_of_variables(graph, {M: (1024, 10)})
    assert found[y] == (512, 10) and found[M] == (1024, 10)
    with pytest.raises(ArgumentError, match="no shape is given for m"):
        shape_of_variables(graph, {})


def test_own_rewriting_is_refused() -> None:
    class Mine(theano.gof.Optimizer):  # type: ignore[misc]
        pass

    with pytest.raises(GraphcError, match=r"Mine, called at .*graphc applies no rewriting"):
        Mine()
    for name in ("EquilibriumDB", "Feature"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': Theano's rewriting has no counterpart"):
            getattr(theano.gof, name)
    with pytest.raises(AttributeError, match="'generic' is not in graphc; variables hold arrays of numbers"):
        getattr(theano, "generic")  # noqa: B009 - which has no such name
    with pytest.raises(AttributeError, match="local_useless_fill': Theano's rewriting"):
        import_module("graphc.tensor.opt").local_useless_fill  # noqa: B018


def test_keywords_that_change_nothing() -> None:
    assert T.mean(M, axis=0, op=True) is T.mean(M, axis=0) and T.prod(M, 0, no_zeros_in_input=True) is T.prod(M, 0)
    assert import_module("graphc.compile").rebuild_collect_shared.__name__ == rebuild_collect_shared.__name__
