"""Habits of public programs: paths and classes that they name, and what they expect of them."""

from __future__ import annotations

import importlib
import io
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError, GraphTypeError, GraphValueError
from graphc.random.streams import RandomStreams
from graphc.theano.graphs import equal_computations


def test_paths_of_older_programs() -> None:
    namespace: dict[str, Any] = {}
    exec(
        """
from graphc import theano, tensor as tt
from graphc.compat.python2x import OrderedDict
from graphc.compat import DefaultOrderedDict, cmp, decode_with, exc_message, get_unbound_function, imap, izip
from graphc.sandbox.linalg.ops import Det, MatrixInverse, alloc_diag, extract_diag, matrix_inverse, psd
from graphc.sandbox.linalg import cholesky, det, spectral_radius_bound
from graphc.sandbox.neighbours import images2neibs
from graphc.sandbox.solve import solve
from graphc.sandbox import cuda
import graphc.sandbox.linalg as sT
from graphc.scan_module.scan_utils import equal_computations
""",
        namespace,
    )
    assert (
        namespace["theano"].function is graphc.function
        and namespace["tt"] is T
        and namespace["OrderedDict"] is OrderedDict
    )
    assert namespace["cmp"](2, 1) == 1 and list(namespace["izip"]([1], [2])) == [(1, 2)]
    assert namespace["decode_with"](b"a", "utf-8") == "a" and namespace["exc_message"](ValueError("b")) == "b"
    made = namespace["DefaultOrderedDict"](list)
    made["a"].append(1)
    assert dict(made) == {"a": [1]} and not namespace["cuda"].cuda_available
    with pytest.raises(KeyError):
        namespace["DefaultOrderedDict"]()["a"]
    assert namespace["get_unbound_function"](made.__missing__) is type(made).__missing__
    x = T.dmatrix("x")
    value = np.array([[2.0, 0.5], [0.5, 1.0]])
    bound = namespace["spectral_radius_bound"](x, 5)
    f = graphc.function([x], [namespace["psd"](x), namespace["sT"].det(x), bound], mode="interpreted")
    same, determinant, above = f(value)
    assert (same == value).all() and np.isclose(determinant, 1.75)
    assert 0 <= above - np.linalg.eigvalsh(value).max() < 0.01
    for wrong, error in (((T.dvector("v"), 2), TypeError), ((x, 0), ValueError), ((x, 0.5), TypeError)):
        with pytest.raises(error):
            namespace["spectral_radius_bound"](*wrong)
    assert graphc.function([], T.xlogx.xlogy0([0.0, 2.0], [0.0, np.e]))().tolist() == [0.0, 2.0]  # type: ignore[attr-defined]


Plain: Any = T.TensorVariable


class Owned(Plain):  # type: ignore[misc]
    """A variable with a mark, as the random variables of PyMC3 are."""

    def __init__(self, type: Any = None, owner: Any = None, index: Any = None, name: str | None = None) -> None:
        super().__init__(type, owner, index, name)
        self.mark = 3


def test_classes_of_variables() -> None:
    x, w, c = T.dvector("x"), graphc.shared(np.ones(2)), T.constant(1.0)
    values = x, x + w, x == w, w, c
    asked = [(isinstance(v, T.TensorVariable), isinstance(v, graphc.Variable)) for v in values]
    assert asked == [(True, True), (True, True), (True, True), (False, True), (False, True)]
    assert all(isinstance(v, graphc.gof.graph.Variable) for v in values) and not isinstance(2, graphc.Variable)
    owned: Any = Owned(T.dvector, name="r")
    assert isinstance(owned, Owned) and not isinstance(x, Owned)
    assert isinstance(owned, T.TensorVariable)
    assert vars(owned)["mark"] == 3 and owned.name == "r"
    assert graphc.function([owned], owned * 2)([1.0, 2.0]).tolist() == [2.0, 4.0]
    plain: Any = graphc.Variable
    assert plain("no tensor").type == "no tensor" and isinstance(plain("no tensor"), graphc.Variable)
    assert plain(T.dmatrix, name="m").ndim == 2
    with pytest.raises(GraphTypeError, match="owner"):
        Owned(T.dvector, owner=x)


def test_equal_computations() -> None:
    a, b, i = T.dmatrix("a"), T.dmatrix("b"), T.imatrix("i")
    assert equal_computations([a + 1, a], [a + 1, a]) and not equal_computations([a + 1], [b + 1])
    assert equal_computations([a + b], [b + b], [a], [b]) and not equal_computations([a], [i], [a], [i])
    with pytest.raises(GraphTypeError):
        equal_computations([a], [a, b])


def test_a_border_mode_for_each_axis() -> None:
    x, w = T.dtensor4("x"), T.dtensor4("w")
    mixed = T.nnet.conv2d(x, w, border_mode=("full", "half"))
    alike = T.nnet.conv2d(x, w, border_mode=(2, 1))
    rng = np.random.default_rng(0)
    f = graphc.function([x, w], [mixed, alike], mode="interpreted")
    left, right = f(rng.normal(size=(1, 2, 4, 5)), rng.normal(size=(2, 2, 3, 3)))
    np.testing.assert_array_equal(left, right)
    with pytest.raises(GraphValueError, match="'some'"):
        T.nnet.conv2d(x, w, border_mode=("valid", "some"))


def test_modules_that_are_functions_here() -> None:
    x = T.dmatrix("x")
    branch: Any = graphc.ifelse
    made = [branch.ifelse(x.sum() > 0, x * 2, x), x[[slice(None, None, -1), slice(1, None)]]]
    made.append(T.set_subtensor(x[[slice(0, 1), slice(None)]], 0.0))
    value = np.arange(6.0).reshape(2, 3)
    twice, turned, emptied = graphc.function([x], made, mode="interpreted")(value)
    assert (twice == value * 2).all() and (turned == value[::-1, 1:]).all() and emptied.tolist() == [[0] * 3, [3, 4, 5]]


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_a_size_that_a_step_selects_is_interpreted(mode: str) -> None:
    x, z = T.dmatrix("x"), T.dvector("z")
    kept, _ = graphc.scan(lambda row: row[row > 1].sum(), sequences=x)
    rising, _ = graphc.scan(lambda row, last: last + z[(row > last).nonzero()].sum(), sequences=x, outputs_info=[z])
    single, _ = graphc.scan(lambda row: T.unique(row).sum(), sequences=x)
    values = np.array([[0.0, 2.0, 2.0], [3.0, 3.0, 1.0]]), np.arange(3.0)
    with pytest.warns(RuntimeWarning, match="step of a loop: function runs in the interpreted mode"):
        f = graphc.function([x, z], [kept, rising, single], mode=mode)
    assert [made.tolist() for made in f(*values)] == [[4.0, 6.0], [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], [2.0, 4.0]]


@pytest.mark.slow
def test_what_a_loop_is_given_is_drawn_once() -> None:
    stream = RandomStreams(3)
    x = T.dvector("x")
    once = stream.normal(x.shape)
    kept, first = graphc.scan(lambda a: a, non_sequences=once, n_steps=3)
    added, second = graphc.scan(lambda row, a: row + 0 * a, sequences=kept, non_sequences=once, strict=True)
    anew, third = graphc.scan(lambda: stream.normal(x.shape), n_steps=3)
    cost = graphc.scan(lambda s, a: s + (a * x).sum(), outputs_info=[0.0], non_sequences=once, n_steps=3)[0][-1]
    outputs = [once, kept, added, anew, graphc.grad(cost, x)]
    for mode in ("compiled", "interpreted"):
        f = graphc.function([x], outputs, updates=[*first.items(), *second.items(), *third.items()], mode=mode)
        before = None
        for _ in range(2):
            drawn, rows, sums, others, slope = f(np.ones(4))
            assert (rows == drawn).all() and (sums == drawn).all() and np.allclose(slope, 3 * drawn)
            assert len({*map(tuple, others)}) == 3 and (before is None or (before != drawn).all())
            before = drawn


def test_models_are_pickled_with_variables() -> None:
    x = T.dvector("x")
    w = graphc.shared(np.ones(2), name="w")
    model = {"input": x, "output": x * w, "params": [w]}
    again = pickle.loads(pickle.dumps(model))
    assert graphc.function([again["input"]], again["output"])([1.0, 2.0]).tolist() == [1.0, 2.0]


def test_a_view_whose_derivative_is_the_users() -> None:
    class Clipped(graphc.compile.ViewOp):
        def __init__(self, bound: float) -> None:
            self.bound = bound

        def grad(self, args: Any, g_outs: Any) -> Any:
            return [T.clip(g, -self.bound, self.bound) for g in g_outs]

    seen = []

    class Looked(graphc.compile.ViewOp):
        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            seen.append(inputs[0].copy())
            output_storage[0][0] = inputs[0].copy()

    x, clipped = T.dvector("x"), Clipped(1.0)
    rows, _ = graphc.scan(lambda h: clipped(h) * 2, outputs_info=[x], n_steps=3)
    slopes = [graphc.grad((op(x) ** 2).sum(), x) for op in (clipped, graphc.compile.view_op, Looked())]
    outputs = [clipped(x), *slopes, graphc.grad(rows[-1].sum(), x), graphc.compile.deep_copy_op(x)]
    value = np.array([0.25, 3.0, -2.0])
    for mode in ("compiled", "interpreted"):
        kept, held, plain, looked, through, copied = graphc.function([x], outputs, mode=mode)(value)
        assert (kept == value).all() and (copied == value).all() and held.tolist() == [0.5, 1.0, -1.0]
        assert (plain == 2 * value).all() and (looked == plain).all() and through.tolist() == [1.0] * 3
    assert seen and (seen[-1] == value).all()


def test_rewriting_that_is_registered_is_refused() -> None:
    """To import the names is no error, nor is a rule that the program calls itself."""
    namespace: dict[str, Any] = {}
    exec(
        """
from graphc.compile import optdb
from graphc.gof import OpRemove, PatternSub, local_optimizer
from graphc.gof.opt import OpSub, in2out
from graphc.tensor.opt import register_canonicalize, register_specialize, register_stabilize
import graphc.tensor as T

@local_optimizer([T.Dot])
def local_nothing(node):
    return [node.inputs[0]] if len(node.inputs) == 1 else False
""",
        namespace,
    )
    rule, x = namespace["local_nothing"], T.dmatrix("x")
    tracked: Any = T
    assert rule.tracks() == [tracked.Dot] and rule(T.exp(x).owner) == [x] and rule.transform(T.dot(x, x).owner) is False
    for call in (
        "register_specialize('later')",
        "register_canonicalize(local_nothing, name='mine')",
        "optdb.register('mine', local_nothing, 'fast_run')",
        "OpRemove(T.exp)",
        "PatternSub((T.exp, 'x'), 'x')",
        "OpSub(T.exp, T.log)",
        "in2out(local_nothing)",
    ):
        with pytest.raises(GraphcError, match=r"called at <string>:1: graphc applies no rewriting .*graphc\.clone"):
            exec(call, namespace)
    assert "mine" not in namespace["optdb"]


def test_walks_through_parents() -> None:
    x, w = T.dvector("x"), graphc.shared(np.ones(2), name="w")
    todo, found = [(x * w + 2.0).sum()], []
    while todo:
        node = todo.pop()
        todo += node.get_parents()
        found += [node] if isinstance(node, graphc.Variable) and not node.get_parents() else []
    basic: Any = T
    assert {node for node in found if not isinstance(node, basic.Constant)} == {x, w}
    assert basic.Tensor is T.TensorType and basic.Op is graphc.gof.Op and basic.Apply is graphc.gof.Apply
    assert basic.hashtype(basic.Op()) == basic.hashtype(basic.Op()) != basic.hashtype(x)


def test_updates_of_loops_are_added() -> None:
    w, b, x = graphc.shared(1.0), graphc.shared(0.0), T.dscalar("x")
    _, up = graphc.scan(lambda s: (s * 2, {w: s}), outputs_info=[x], n_steps=3)
    _, down = graphc.scan(lambda s: (s / 2, [(b, s)]), outputs_info=[x], n_steps=2)
    both = up + down
    both[b] = both[b] + 1.0
    graphc.function([x], [], updates=both, mode="interpreted")(3.0)
    assert float(w.get_value()) == 12.0 and float(b.get_value()) == 2.5 and list(up) == [w] and list(both) == [w, b]


def test_classes_of_convolutions() -> None:
    kinds: Any = T.nnet.abstract_conv
    x, w, top = T.dtensor4("x"), T.dtensor4("w"), T.dtensor4("top")
    how: Any = {"border_mode": (1, 1), "subsample": (2, 2), "filter_flip": False}
    made = kinds.AbstractConv2d(kshp=(3, 2, 3, 3), **how)(x, w)
    plain = T.nnet.conv2d(x, w, **how)
    cost = (plain * top).sum()
    by_image = kinds.AbstractConv2d_gradInputs(imshp=(None, 2, None, None), kshp=(3, 2, 3, 3), **how)
    by_filter = kinds.AbstractConv2d_gradWeights(imshp=(1, 2, 7, 6), **how)
    outputs = [made, plain, by_image(w, top, x.shape[2:]), by_image(w, top, (7, 6)), graphc.grad(cost, x)]
    outputs += [by_filter(x, top, (3, 3)), graphc.grad(cost, w)]
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 2, 7, 6)), rng.normal(size=(3, 2, 3, 3)), rng.normal(size=(1, 3, 4, 3))
    got = graphc.function([x, w, top], outputs, mode="interpreted")(*values)
    for one, other in ((0, 1), (2, 4), (3, 4), (5, 6)):
        np.testing.assert_allclose(got[one], got[other], rtol=1e-12, atol=1e-13)
    volumes = T.tensor5("v"), T.tensor5("k")
    assert kinds.AbstractConv3d(subsample=(1, 2, 1))(*volumes).ndim == 5
    with pytest.raises(AttributeError, match="AbstractNothing"):
        _ = kinds.AbstractNothing


def test_modules_that_programs_import_and_never_use() -> None:
    namespace: dict[str, Any] = {}
    exec("import graphc.typed_list, graphc.gpuarray\nfrom graphc import typed_list", namespace)
    assert not hasattr(namespace["typed_list"], "TypedListType")
    with pytest.raises(AttributeError, match="'graphc.typed_list' has no attribute 'append': inputs and outputs of"):
        _ = namespace["typed_list"].append
    with pytest.raises(ModuleNotFoundError, match="'graphc.typed_list.TypedListType' is not in graphc: inputs and"):
        exec("from graphc.typed_list import TypedListType")


def test_modules_that_are_there_without_an_import() -> None:
    found: Any = graphc
    assert found.misc.pkl_utils.dump.__module__.startswith("graphc.") and "OrderedDict" in dir(found.compat.python2x)
    assert found.get_scalar_constant_value(T.constant(3.0)) == 3.0
    assert graphc.map.__name__ == "map"  # the name of a built-in function, which the message must not call
    with pytest.raises(AttributeError, match="'miscc' is not in graphc"):
        _ = found.miscc


def test_star_imports() -> None:
    namespace: dict[str, Any] = {}
    exec("from graphc import *", namespace)
    wanted = {"theano", "tensor", "function", "shared", "config", "gof", "Op", "Apply", "Param", "clone", "printing"}
    assert wanted < namespace.keys() and namespace["theano"].gof is graphc.gof
    assert not {"numpy", "random", "layers", "session"} & namespace.keys(), "which are other modules to the program"
    assert T.theano is graphc and T.config is graphc.config and T.gof is graphc.gof  # type: ignore[attr-defined]


class Longer(graphc.Op):
    """A result whose type is that of the argument and whose size is another."""

    def make_node(self, x: Any) -> Any:
        x = T.as_tensor_variable(x)
        return graphc.Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.concatenate([inputs[0], inputs[0]])

    def grad(self, inputs: Any, output_grads: Any) -> list[Any]:
        size = inputs[0].shape[0]
        return [output_grads[0][:size] + output_grads[0][size:]]


def test_an_op_of_the_type_of_an_argument_of_known_size() -> None:
    a, b, c = T.dscalars("abc")
    result = Longer()(T.stack([a, b, c])).reshape((2, 3))
    cost = (result**2).sum()
    f = graphc.function([a, b, c], [result, *T.grad(cost, [a, b, c])], mode="interpreted")
    values = f(1.0, 2.0, 3.0)
    assert values[0].tolist() == [[1, 2, 3], [1, 2, 3]] and values[1:] == [4.0, 8.0, 12.0]
    row = T.as_tensor([[1.0, 2.0]])
    assert row.type().broadcastable == (True, False), "axes of size 1 are part of the type"


def test_an_op_that_asks_for_its_properties() -> None:
    class Scaled(graphc.Op):
        __props__ = ("factor",)

        def __init__(self, factor: float) -> None:
            self.factor = factor

        def make_node(self, x: Any) -> Any:
            assert hasattr(self, "_props"), "as in Theano's documentation of ops"
            return graphc.Apply(self, [x], [x.type()])

    op = Scaled(2.0)
    assert op._props() == (2.0,) and op._props_dict() == {"factor": 2.0} and str(op) == "Scaled{factor=2.0}"
    assert op(T.dvector()).owner.op == op == Scaled(2.0) != Scaled(3.0)


def test_what_functions_are_asked_for() -> None:
    count = graphc.shared(0)
    f = graphc.function([], count + 1, updates=[(count, count + 1)], mode="interpreted")
    f.fn()
    f.fn(n_calls=3)
    assert count.get_value() == 4 and [out.variable for out in f.outputs] == [count + 1]


def test_ops_of_branches_and_products() -> None:
    ifelse_module: Any = importlib.import_module("graphc.ifelse")
    IfElse = ifelse_module.IfElse  # noqa: N806 - a class

    flag, a, b = T.lscalar("flag"), T.dvector("a"), T.dvector("b")
    f = graphc.function([flag, a, b], [IfElse(1)(flag, a, b), *IfElse(2)(flag, a, b, b, a)], mode="interpreted")
    assert [value.tolist() for value in f(0, [1.0], [2.0])] == [[2.0], [2.0], [1.0]]
    gemm = graphc.tensor.blas.gemm  # type: ignore[attr-defined]
    assert gemm(np.ones((2, 2)), 2.0, np.eye(2), np.eye(2), 3.0).eval().tolist() == [[5, 3], [3, 5]]


def test_pages_of_graphs(tmp_path: Any) -> None:
    namespace: dict[str, Any] = {}
    exec("import graphc.d3viz as d3v\nfrom graphc.d3viz.d3viz import d3viz", namespace)
    x = T.dvector("x")
    for draw, name in ((namespace["d3v"].d3viz, "a.html"), (namespace["d3viz"], "b.html")):
        draw(x * 2, tmp_path / name, copy_deps=False)
        page = (tmp_path / name).read_text("utf-8")
        assert page.startswith("<!DOCTYPE html>") and "<svg" in page and "mul" in page


def test_updates_of_what_is_no_shared_variable() -> None:
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="the keys of updates"):
            graphc.OrderedUpdates({"d": 3})


def test_programs_that_ask_for_cards_and_times() -> None:
    """What the tutorials' programs print of the device and of the time that calls took."""
    w = graphc.shared(np.ones(3), "w")
    cuda: Any = importlib.import_module("graphc.sandbox.cuda")
    assert not isinstance(w.type, cuda.CudaNdarrayType)
    f = graphc.function([], w * 2, profile=True)
    assert not any(isinstance(node.op, cuda.GpuOp) for node in f.maker.fgraph.toposort())
    f()
    said = io.StringIO()
    assert f.profile is not None
    f.profile.summary(file=said, n_ops_to_print=10)
    assert said.getvalue().startswith("1 calls")
    vars(graphc).pop("version", None)  # an import in another test puts an empty module there
    with pytest.raises(AttributeError, match="'version' is not in graphc; graphc.__version__ says it"):
        getattr(graphc, "version")  # noqa: B009 - which has no such name


@pytest.mark.slow
def test_pretraining_with_defaults_that_are_set() -> None:
    """Rates that are inputs with defaults, given by name or set for a call, and data that is given by a slice."""
    data, w = graphc.shared(np.ones((6, 2))), graphc.shared(np.zeros(2), "w")
    index, x, rate = T.lscalar("index"), T.dmatrix("x"), T.dscalar("lr")
    cost = T.sqr(1 - T.dot(x, w)).mean()
    train = graphc.function(
        [index, graphc.In(rate, value=0.1)],
        cost,
        updates=[(w, w - rate * T.grad(cost, w))],
        givens={x: data[index * 2 : (index + 1) * 2]},
    )
    assert train(index=0, lr=0.25) == 1.0 and w.get_value().tolist() == [0.5, 0.5]
    w.set_value(np.zeros(2))
    train[rate] = 0.0
    assert (train(1), train(2), train["lr"]) == (1.0, 1.0, 0.1) and w.get_value().tolist() == [0.2, 0.2]
