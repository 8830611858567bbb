"""PyTensor's graphs under the mode "GRAPHC" against PyTensor's own Python code (`make test-bridge`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="make test-bridge has PyTensor")

import pytensor.scalar as ps  # noqa: E402 - where there is one
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402
from pytensor.graph.replace import vectorize_graph  # noqa: E402
from pytensor.ifelse import ifelse  # noqa: E402
from pytensor.link.c.type import Generic  # noqa: E402
from pytensor.raise_op import Assert  # noqa: E402
from pytensor.scalar.loop import ScalarLoop  # noqa: E402
from pytensor.scan.utils import until  # noqa: E402
from pytensor.tensor._linalg.solve.linear_control import TRSYL  # noqa: E402
from pytensor.tensor.basic import permute_row_elements  # noqa: E402
from pytensor.tensor.elemwise import Elemwise  # noqa: E402
from pytensor.tensor.extra_ops import fill_diagonal_offset  # noqa: E402
from pytensor.tensor.fft import irfft, rfft  # noqa: E402
from pytensor.tensor.random.utils import RandomStream  # noqa: E402
from pytensor.tensor.slinalg import Eigvalsh, pivot_to_permutation  # noqa: E402
from pytensor.tensor.type_other import NoneConst  # noqa: E402

from graphc.errors import ArgumentError  # noqa: E402
from graphc.pytensor import GraphcLinker, explain  # noqa: E402
from graphc.pytensor.table import Unknown  # noqa: E402

STRICT = Mode(GraphcLinker(strict=True), optimizer=None)
OWN = Mode("py", optimizer=None)
X, Y, V, W = pt.dmatrix("X"), pt.dmatrix("Y"), pt.dvector("v"), pt.fvector("w")
K, J = pt.lvector("i"), pt.lscalar("j")
INPUTS = [X, Y, V, W, K, J]
VALUES = [
    np.array([[0.3, -1.2, 0.0, 2.0], [1.1, 0.4, -0.2, 0.9], [0.5, 0.1, -0.7, 1.3]]),
    np.array([[1.3, 0.2, 0.6, 1.0], [0.1, 1.4, 0.2, 0.3], [0.8, 0.5, 1.7, 0.3]]),
    np.array([0.5, 1.5, 2.5, 3.5]),
    np.array([0.25, 0.5, 1.0, 2.0], "float32"),
    np.array([2, 0, -1]),
    np.array(1),
]


def check(outputs: list[Any]) -> None:
    """Equal values, dtypes and shapes, and no part computed by PyTensor."""
    found = pytensor.function(INPUTS, outputs, mode=STRICT, on_unused_input="ignore")(*VALUES)
    with np.errstate(all="ignore"):
        wanted = pytensor.function(INPUTS, outputs, mode=OWN, on_unused_input="ignore")(*VALUES)
    for number, (mine, own) in enumerate(zip(found, wanted, strict=True)):
        own = np.asarray(own)
        assert (mine.dtype, mine.shape) == (own.dtype, own.shape), outputs[number]
        single = own.dtype == "float32"
        np.testing.assert_allclose(mine, own, rtol=1e-5 if single else 1e-10, atol=1e-6 if single else 1e-12)


UNARY = (
    "abs neg exp log1p expm1 sin cos tan sinh cosh tanh arctan arcsinh sqr sign floor ceil trunc sigmoid softplus erf "
    "erfc deg2rad rad2deg isnan isinf exp2"
).split()
POSITIVE = "log log2 log10 sqrt gammaln psi tri_gamma reciprocal gamma erfcx i0 i1 j0 j1".split()
BINARY = "add sub mul true_div maximum minimum eq neq lt le gt ge arctan2".split()


def test_elementwise_ops_in_the_dtypes_that_pytensor_gives_them() -> None:
    outputs = [getattr(pt, name)(x) for name in UNARY for x in (X, W)]
    outputs += [getattr(pt, name)(x) for name in POSITIVE for x in (Y, W)]
    outputs += [getattr(pt, name)(a, b) for name in BINARY for a, b in ((X, Y), (V, W), (W, K[:1][0]), (K, J))]
    outputs += [V**2, V**W, 2.0**W, K // 2, K % 2, V // 0.4, -V % 0.4, pt.switch(X > 0, X, 0), pt.clip(X, -1, W)]
    outputs += [pt.clip(X, Y, 0.5)]
    outputs += [pt.and_(X > 0, Y > 0.5), pt.or_(X > 0, Y > 0.5), pt.xor(K, J), ~(X > 0), pt.cast(X, "int8")]
    half = pt.sigmoid(X)
    outputs += [
        pt.betainc(2.5, Y, half),
        pt.gammaincinv(Y, half),
        pt.gammainccinv(Y, half),
        pt.betaincinv(2.0, Y, half),
    ]
    outputs += [pt.hyp2f1(1.5, 0.5, 2.5, half), pt.owens_t(X, Y), pt.ive(1.5, Y)]
    outputs += [pt.kve(0.5, Y), pt.kv(1.5, Y), pytensor.grad(pt.sum(pt.hyp2f1(1.5, 0.5, 2.5, half)), X)]
    outputs += [pt.round(X), pt.log1mexp(-Y), pt.xlogx.xlogx(Y), pt.add(X, Y, V, W), pt.mul(X, Y, V)]
    check(outputs)


REDUCTIONS: list[Callable[..., Any]] = [pt.sum, pt.prod, pt.max, pt.min, pt.mean, pt.var, pt.argmax, pt.any, pt.all]


def test_reductions_along_any_axes() -> None:
    outputs = [f(X, axis=axis) for f in REDUCTIONS for axis in (None, 0, 1, -1)]
    outputs += [
        pt.sum(W),
        pt.sum(K),
        pt.sum(X, axis=(0, 1), keepdims=True),
        pt.cumsum(X, axis=1),
        pt.cumprod(Y, axis=0),
    ]
    outputs += [
        pt.logsumexp(X, axis=1),
        pt.special.softmax(X, axis=1),
        pt.special.log_softmax(X, axis=0),
        pt.sum(X > 0),
    ]
    check(outputs)


def test_shapes_joins_and_indices() -> None:
    outputs = [X.T, X.dimshuffle(1, "x", 0), X.shape, X.shape[1] + J, X.reshape((2, 6)), X.flatten(), X.ravel()]
    outputs += [
        pt.concatenate([X, Y], axis=1),
        pt.stack([V, V * 2]),
        pt.alloc(V, 3, 4),
        pt.zeros_like(X),
        pt.ones(J + 2),
    ]
    outputs += [
        *pt.split(V, [1, 3], n_splits=2),
        pt.arange(J, 10, 2),
        pt.eye(3, 4, 1),
        pt.diag(V),
        pt.diagonal(X),
        pt.tril(X),
    ]
    outputs += [X[J], X[:, 1:3], X[::-1, None], X[K], X[:, K], X[K, K], X[..., 0], X[X > 0], V[-J], pt.repeat(V, 2)]
    outputs += [pt.set_subtensor(X[1:, :2], 9.0), pt.inc_subtensor(X[K], 1.0), pt.set_subtensor(X[K, 1], V[:3])]
    outputs += [pt.tile(V, 2), pt.swapaxes(X, 0, 1), pt.squeeze(V[None]), pt.outer(V, W), pt.broadcast_to(V, (2, 4))]
    check(outputs)


def test_products_and_batches_of_them() -> None:
    stack = pt.stack([X, Y])
    outputs = [X @ Y.T, X @ V, V @ V, pt.dot(X, W), pt.tensordot(X, Y, 2), stack @ stack.transpose(0, 2, 1)]
    outputs += [pt.einsum("ij,kj->ik", X, Y), pt.matmul(stack, V[:, None])]
    check(outputs)


def test_sums_over_the_axis_of_a_scalar() -> None:
    """PyMC's `CAR` has some. PyTensor's Python code does not compute them, its numba does."""
    f = pytensor.function([J], [pt.sum(pt.exp(J), axis=-1), pt.prod(J, axis=0)], mode=STRICT)
    np.testing.assert_allclose(f(3), [np.exp(3.0), 3])


def spd(x: Any) -> Any:
    return x @ x.T + 2.0 * pt.eye(3)


def test_linear_algebra() -> None:
    a = spd(X)
    low = pt.linalg.cholesky(a)
    outputs = [low, pt.linalg.solve(a, X), pt.linalg.solve_triangular(low, X, lower=True), pt.linalg.inv(a)]
    outputs += [pt.linalg.det(a), *pt.linalg.slogdet(a), pt.linalg.eigh(a)[0], pt.linalg.svd(X, compute_uv=False)]
    outputs += [pt.linalg.cholesky(pt.stack([a, 2.0 * a])), pt.linalg.solve(a, V[:3]), pt.linalg.pinv(X)]
    outputs += [pt.linalg.cho_solve((low, True), X), pytensor.grad(pt.log(pt.linalg.det(a)), X)]
    outputs += [pytensor.grad(pt.sum(pt.linalg.solve_triangular(low, X, lower=True) ** 2), X)]
    check(outputs)


def test_orders_and_orthogonal_factors() -> None:
    outputs = [pt.sort(X, axis=1), pt.sort(X, axis=0), pt.argsort(X, axis=1), pt.sort(X, axis=None), pt.sort(-V)]
    outputs += [pt.extra_ops.searchsorted(V, Y), pt.extra_ops.searchsorted(V, V, side="right"), pt.sort(K)]
    outputs += [*pt.linalg.qr(X.T), *pt.linalg.qr(X, mode="full"), pt.linalg.qr(X.T, mode="r")]
    outputs += [*pt.linalg.qr(X, pivoting=True), *pt.linalg.qr(X.T, mode="r", pivoting=True)]
    outputs += [pt.xlogx.xlogy0(pt.zeros(4), V * np.nan), pytensor.grad(pt.sum(pt.sort(X, axis=1)[:, 0] ** 2), X)]
    check(outputs)


def test_matrices_that_are_solved_and_taken_apart() -> None:
    a, b = spd(X), spd(Y)
    values = pt.linalg.eigh(a)
    outputs = [
        pt.linalg.eigvalsh(a, NoneConst),
        pt.linalg.eigvalsh(a, b, lower=False),
        pytensor.grad(pt.sum(values[0] ** 3), X),
    ]
    outputs += [pytensor.grad(pt.sum(abs(values[1]) * pt.arange(9).reshape((3, 3))), X)]
    outputs += [pytensor.grad(pt.sum(Eigvalsh()(a, b) ** 2), wrt) for wrt in (X, Y)]
    outputs += [*pt.linalg.lu(Y[:, :3]), *pt.linalg.lu(Y[:, :3], permute_l=True), *pt.linalg.lu(a, p_indices=True)]
    outputs += [*pt.linalg.lstsq(X.T, Y.T, -1.0)[:1], TRSYL()(pt.triu(a), pt.triu(b), X[:, :3])]
    outputs += [
        pt.linalg.tensorinv((X @ Y.T).reshape((3, 1, 3)), 2),
        pt.linalg.tensorsolve(a.reshape((3, 3, 1)), V[:3]),
    ]
    check(outputs)


def test_loops_over_scalars() -> None:
    """Each element takes steps of its own. Of none, PyTensor's languages differ in whether the condition held."""
    x, a = ps.float64("x"), ps.float64("a")
    doubled = Elemwise(ScalarLoop([x], [x * a], [a]))
    above = Elemwise(ScalarLoop([x], [x * a], [a], until=ps.gt(x * a, 10.0)))
    outputs = [*above(pt.switch(X > 0.4, 5, 1), Y, 3.0), above(K, V[:3], 3.0)[0], doubled(abs(K), V[:3], X[:, 0])]
    check([*outputs, doubled(3, V[:0], V[:0]), doubled(3, V[0] * np.nan, 2.0), doubled(0, V, V)])


@pytest.mark.slow
def test_derivatives_that_are_loops_over_scalars() -> None:
    half, p = pt.sigmoid(X), pt.exp(X)
    values = [pt.gammainc(p, 3.0 * Y), pt.gammaincc(p, 30.0 * Y), pt.betainc(p, 2.0 * Y, half)]
    values += [pt.hyp2f1(p, Y, 2.5, 0.5 * half)]
    single = pt.gammainc(W, pt.cast(V, "float32"))
    gradients = [pytensor.grad(pt.sum(value), [X, Y]) for value in values]
    check([*chain(*gradients), pt.cast(pytensor.grad(pt.sum(single), W), "float32")])


def test_packed_triangular_factors_and_schurs_form() -> None:
    a = X[:, :3]
    packed, pivots = pt.linalg.lu_factor(a)
    solved = pt.linalg.lu_solve((packed, pivots), V[:3])
    outputs = [packed, pivots, *(pivot_to_permutation(pivots, inverse=inverse) for inverse in (False, True)), solved]
    outputs += [pytensor.grad(pt.sum(value**2), X) for value in (packed, solved)]
    outputs += [*pt.linalg.lu_factor(pt.zeros((3, 3))), *pt.linalg.lu_factor(X[:0, :0])]
    outputs += pt.linalg.lu_factor(pt.stack([a, 2.0 * a.T]))
    for matrix in (a, a * np.nan, pt.cast(a, "float32"), pt.stack([a, a.T]), X[:0, :0]):
        outputs += pt.linalg.schur(matrix)
    check(outputs)
    with pytest.raises(Unknown, match="complex or sorted Schur forms"):
        pytensor.function([X], pt.linalg.schur(X, sort="lhp"), mode=STRICT)


def test_fourier_transforms() -> None:
    even, odd = rfft(X), rfft(X[:, :3])
    outputs = [even, odd, irfft(even), irfft(odd, is_odd=True), rfft(X, norm="ortho"), rfft(pt.stack([X, Y]))]
    outputs += [rfft(W[None]), rfft(X[:0])]
    check([*outputs, *(pytensor.grad(pt.sum(y**2), X) for y in (even, odd, irfft(even**2), irfft(odd, is_odd=True)))])


def test_what_is_chosen_convolved_and_filled() -> None:
    order, flat = pt.constant([2, 0, 3, 1]), pt.constant([3, 11, 0])
    outputs = [pt.choose(pt.constant([0, 1, 1, 0]), X[:2]), pt.choose(K, X[:, :3], mode="wrap")]
    outputs += [pt.signal.convolve1d(V, X[0], mode) for mode in ("full", "valid", "same")]
    outputs += [pt.signal.convolve2d(X, Y[:2, :2], mode) for mode in ("full", "valid", "same")]
    outputs += [permute_row_elements(X, order), permute_row_elements(X, order, inverse=True), pt.bartlett(J + 6)]
    outputs += [pt.fill_diagonal(X, V[0]), fill_diagonal_offset(X, V[1], 1), fill_diagonal_offset(X.T, 2.0, -2)]
    outputs += [*pt.unravel_index(flat, (3, 4)), *pt.unravel_index(flat, X.shape, order="F")]
    outputs += [pt.ravel_multi_index((K, abs(K)), (3, 4), mode="wrap"), pt.polygamma(2, Y), pt.polygamma(J, Y)]
    outputs += [*pt.unique(K % 2, return_index=True, return_inverse=True, return_counts=True), pt.unique(X, axis=0)]
    check(outputs)


def test_pytensors_gradients_graphs_within_ops_and_branches() -> None:
    cost = pt.sum(pt.tanh(X @ Y.T) ** 2) + pt.sum(pt.exp(-V) * W) + pt.sum(X[K] ** 3)
    a, b = pt.dvectors("ab")
    inner = OpFromGraph([a, b], [pt.exp(a) * b, a - b])
    outputs = [*pytensor.grad(cost, [X, Y, V, W]), *inner(V, V * 2), *pytensor.grad(pt.sum(inner(V, V)[0]), [V])]
    outputs += [ifelse(J > 0, V, 2.0 * V), *ifelse(J < 0, [V, X], [V + 1.0, X + 1.0])]
    check(outputs)


def test_loops_and_their_gradients() -> None:
    power = pytensor.scan(
        lambda prior, a: prior * a, outputs_info=pt.ones_like(V), non_sequences=V, n_steps=J + 2, return_updates=False
    )
    states = pytensor.scan(
        lambda x, h: pt.tanh(x[:3] + h @ X[:, :3]), sequences=X, outputs_info=V[:3], return_updates=False
    )
    taps = pytensor.scan(
        lambda a, b: 0.5 * a + 0.3 * b,
        outputs_info=[{"initial": V[:2], "taps": [-2, -1]}],
        n_steps=5,
        return_updates=False,
    )
    ended = pytensor.scan(lambda p: (p * 2.0, until(p > 20.0)), outputs_info=[V[1]], n_steps=50, return_updates=False)
    mapped = pytensor.scan(lambda x, w: pt.sum(x * w), sequences=[X, W], return_updates=False)
    outputs = [power, states, taps, ended, mapped, pytensor.grad(power[-1].sum(), V)]
    outputs += [*pytensor.grad(pt.sum(states**2), [X, V]), pytensor.grad(pt.sum(taps**2), V)]
    check(outputs)


@pytest.mark.parametrize("most", [1, 2, 9])
def test_gradients_that_go_back_through_some_steps(most: int) -> None:
    states = pytensor.scan(
        lambda x, h: pt.tanh(x[:3] * h + V[:3]),
        sequences=X,
        outputs_info=V[1:],
        truncate_gradient=most,
        return_updates=False,
    )
    sums = pytensor.scan(
        lambda a, b, c: pt.sin(a + b * c),
        sequences=V,
        outputs_info=[{"initial": V[:2], "taps": [-2, -1]}],
        truncate_gradient=most,
        return_updates=False,
    )
    check([*pytensor.grad(pt.sum(states**2), [X, V]), pytensor.grad(sums[-1], V)])


def test_rows_of_what_is_written_for_one() -> None:
    """PyTensor repeats sizes of triangles for every element of a batch, and constants such as an axis."""
    stack = pt.stack([spd(X), 2.0 * spd(X)])
    x = pt.dvector("x")
    rows = [pt.argsort(x), pt.concatenate([x, V]), pt.tril(pt.outer(x, x)), x[::-2]]
    outputs = [pytensor.grad(pt.sum(pt.linalg.cholesky(stack) ** 2), X), *vectorize_graph(rows, {x: X})]
    check([*outputs, pytensor.grad(pt.sum(vectorize_graph(pt.tril(pt.outer(x, x)), {x: X}) ** 2), X)])


def test_ranges_of_a_batch_have_one_size() -> None:
    start, stop = pt.lscalars("start", "stop")
    ranges = vectorize_graph(pt.arange(start, stop, 2), {start: K, stop: K + J})
    f = pytensor.function([K, J], ranges, mode=STRICT)
    np.testing.assert_array_equal(f([2, 0, -1], 5), [[2, 4, 6], [0, 2, 4], [-1, 1, 3]])
    uneven = pytensor.function([K], vectorize_graph(pt.arange(0, stop, 2), {stop: K}), mode=STRICT)
    with pytest.raises(AssertionError, match="ranges of a batch have different sizes"):
        uneven([2, 9])


def test_updates_of_shared_variables() -> None:
    weights = pytensor.shared(np.ones(4), "weights")
    step = pytensor.function([V], weights.sum(), updates={weights: weights - 0.5 * V}, mode="GRAPHC")
    assert step(VALUES[2]) == 4.0 and step(np.zeros(4)) == 0.0
    np.testing.assert_array_equal(weights.get_value(), 1.0 - 0.5 * VALUES[2])


def test_the_mode_may_be_pytensors_default() -> None:
    before = pytensor.config.mode
    with pytensor.config.change_flags(mode="GRAPHC"):
        f = pytensor.function([V], V * 2.0)
    assert isinstance(f.maker.linker, GraphcLinker) and pytensor.config.mode == before
    np.testing.assert_array_equal(f(VALUES[2]), 2.0 * VALUES[2])
    with pytest.raises(ValueError, match="Expected one of"):
        pytensor.config.mode = "GRAPHICS"


def test_random_variables_are_pytensors_own_draws() -> None:
    def draws(mode: Any) -> list[Any]:
        stream = RandomStream(7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = pytensor.function([V], [stream.normal(V, 1.0) * 2.0, stream.uniform(size=3) + V[:3]], mode=mode)
        return [value for _ in range(2) for value in f(VALUES[2])]

    for mine, own in zip(draws("GRAPHC"), draws(OWN), strict=True):
        np.testing.assert_array_equal(mine, own)


class Doubled(Op):  # type: ignore[misc]
    """An op that graphc has not."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = 2.0 * inputs[0]


def test_an_unknown_op_is_computed_by_its_own_code_and_said_once() -> None:
    outputs = [pt.exp(Doubled()(pt.sin(V))) + V, V * 2.0, Doubled()(Doubled()(V))]
    with pytest.warns(UserWarning, match="graphc has no Doubled of PyTensor's"):
        f = pytensor.function([V], outputs, mode="GRAPHC")
    assert explain(f).startswith("PyTensor computes Doubled: Doubled\n") and "rules that fired" in explain(f)
    assert "graphc computes all of it" in explain(pytensor.function([V], V * 2.0, mode="GRAPHC"))
    with pytest.raises(ArgumentError, match="not compiled in the mode 'GRAPHC'"):
        explain(pytensor.function([V], V * 2.0, mode=OWN))
    v = VALUES[2]
    for mine, own in zip(f(v), [np.exp(2.0 * np.sin(v)) + v, 2.0 * v, 4.0 * v], strict=True):
        np.testing.assert_allclose(mine, own, rtol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pytensor.function([V], Doubled()(V), mode="GRAPHC")
    with pytest.raises(Exception, match="Doubled"):
        pytensor.function([V], Doubled()(V), mode=STRICT)


def test_a_branch_of_what_is_no_tensor() -> None:
    a, b = Generic()("a"), Generic()("b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = pytensor.function([J, a, b], ifelse(J, a, b), mode="GRAPHC")
    assert f(1, ["a"], ["b"]) == ["a"] and f(0, ["a"], ["b"]) == ["b"]


def test_a_failed_check_raises_what_the_op_says() -> None:
    f = pytensor.function([V], Assert("they should be positive")(V, pt.all(V > 0)) * 2.0, mode="GRAPHC")
    np.testing.assert_array_equal(f(VALUES[2]), 2.0 * VALUES[2])
    with pytest.raises(AssertionError, match="they should be positive"):
        f(-VALUES[2])
