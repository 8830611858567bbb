"""Complex tensors, which are pairs of real ones: against NumPy, in the interpreted mode and compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
import scipy.linalg

import graphc
import graphc.numpy as jnp
from graphc import lax, tensor as T
from graphc.errors import CostError, GradientError, GraphTypeError
from graphc.trees import leaves
from tests.support import complex_programs

RNG = np.random.default_rng(20)
Z = RNG.normal(size=5) + 1j * RNG.normal(size=5)
W = RNG.normal(size=(5, 5)) + 1j * RNG.normal(size=(5, 5))
X = RNG.normal(size=5)
HERMITIAN = W @ W.conj().T + np.eye(5)


def same(found: Any, wanted: Any, rounding: float = 1.0) -> None:
    """Dtypes, shapes and values agree up to rounding: some hundred units in the last place of the largest part."""
    for left, right in zip(leaves(found), leaves(wanted), strict=True):
        right = np.asarray(right)
        assert left.dtype == right.dtype and left.shape == right.shape
        if right.size:
            unit = np.finfo(right.dtype).eps if right.dtype.kind in "fc" else 0
            scale = np.nanmax(np.where(np.isfinite(right), abs(right), 1))
            np.testing.assert_allclose(left, right, rtol=0, atol=512 * rounding * unit * max(scale, 1.0))


ELEMENTS = (
    "exp expm1 log log1p log2 log10 exp2 sqrt square sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh "
    "arctanh abs sign reciprocal negative conj real imag angle isnan isinf isfinite iscomplex isreal rint sinc"
).split()
PAIRS = (
    "add subtract multiply divide power equal not_equal less less_equal greater greater_equal maximum minimum".split()
)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_elements(name: str, dtype: str) -> None:
    corners = np.array([0, 1, -1, 1j, -1j, 2.5, -2.5, 0.5 + 1e-3j, 1e-9, 30 + 1j, -30 - 1j])
    z = np.concatenate([Z, W.ravel(), 1e-4 * Z, 20 * Z[:2], corners]).astype(dtype)
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        wanted = function(z)
    held = np.isfinite(wanted) | (wanted.dtype == bool)
    found = graphc.jit(function, mode="interpreted")(z)
    assert found.dtype == wanted.dtype
    unit = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found[held], wanted[held], rtol=64 * unit, atol=64 * unit)


@pytest.mark.parametrize("name", "arcsin arccos arctan arcsinh arccosh arctanh sign".split())
def test_functions_at_infinity(name: str) -> None:
    parts = (np.inf, -np.inf, 0.0, -0.0, 2.0)
    z = np.array([complex(a, b) for a in parts for b in parts if np.isinf([a, b]).any()])
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(z)
    found = graphc.jit(getattr(np, name), mode="interpreted")(z)
    for left, right in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_allclose(left, right, rtol=1e-14, atol=1e-14)
        held = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(left)[held], np.signbit(right)[held])


def test_orders_of_nan() -> None:
    parts = [np.nan, np.inf, -np.inf, 1.0, 2.0, 1.0]
    z = np.array([complex(a, b) for a in parts for b in parts])
    order = graphc.jit(lambda z: np.argsort(z, kind="stable"), mode="interpreted")(z)
    np.testing.assert_array_equal(order, np.argsort(z, kind="stable"))
    first = graphc.jit(lambda z: (np.argmax(z), np.argmin(z[7:])), mode="interpreted")(z)
    assert first == (np.argmax(z), np.argmin(z[7:]))


@pytest.mark.parametrize("by", [graphc.jacfwd, graphc.jacrev])
def test_jacobians_of_analytic_functions(by: Callable[..., Any]) -> None:
    jacobian = by(lambda z: (z**2 * z.sum(), {"exp": np.exp(z).sum()}), holomorphic=True, mode="interpreted")
    square, others = jacobian(Z)
    same(square, np.diag(2 * Z * Z.sum()) + np.outer(Z**2, np.ones(5)), 4)
    same(others["exp"], np.exp(Z))


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(name: str) -> None:
    function = getattr(np, name)
    f = graphc.jit(function, mode="interpreted")
    for left, right in ((W, Z), (Z, X), (X, Z), (Z, 2), (2.0, Z), (Z, 1j), (Z.astype("complex64"), 1j), (W, W)):
        same(f(left, right), function(left, right))


def test_powers_by_whole_numbers_are_products() -> None:
    for number in (0, 1, 2, 3, -1, -2, 7, 0.5):
        same(graphc.jit(lambda z: z**number, mode="interpreted")(Z), Z**number)  # noqa: B023
    same(graphc.jit(lambda z: z**2)(np.zeros(2, complex)), np.zeros(2, complex))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums": lambda z, w, x: (z.sum(), w.mean(0), w.std(), w.var(1), np.cumsum(w, 1), np.trace(w), z @ z),
    "products": lambda z, w, x: (w @ z, x @ w, np.vdot(z, z), np.dot(z, x), np.einsum("ij,kj->ik", w, w.conj())),
    "shapes": lambda z, w, x: (w.T, w[1:, ::2], z[[3, 0]], np.concatenate([z, x]), np.stack([z, z]), w.reshape(-1)[7]),
    "factors": lambda z, w, x: (
        z.prod(),
        np.cumprod(w, 0),
        np.prod(w, axis=1, keepdims=True),
        np.linalg.det(w),
        np.linalg.slogdet(w),
    ),
    "choices": lambda z, w, x: (np.where(x > 0, z, x), np.select([x > 0], [z], 1j), z[z.real > 0], np.tril(w)),
    "numbers": lambda z, w, x: (np.linspace(0, 1j, 4), np.full(2, 1j) * z[:2], np.eye(5, dtype=complex) @ w, 1j * x),
    "solve": lambda z, w, x: (np.linalg.solve(w, z), np.linalg.inv(w), np.linalg.norm(w), np.linalg.matrix_power(w, 3)),
    "values": lambda z, w, x: (np.linalg.eigvalsh(w + w.conj().T), np.linalg.svd(w, compute_uv=False)),
    "gone": lambda z, w, x: (np.nansum(np.where(x > 0, z, np.nan)), np.nan_to_num(z * np.nan), np.round(w, 1)),
    "transforms": lambda z, w, x: (np.fft.fft(z), np.fft.ifft2(w), np.fft.irfft(np.fft.rfft(x), n=5), np.fft.fftn(w)),
    "polynomials": lambda z, w, x: (np.polyval(z, x), np.polyval(x, w), np.polyval([1, 2j], z), np.convolve(z, x)),
    "orders": lambda z, w, x: (
        np.sort(w, 0),
        np.argsort(np.round(w), 1, kind="stable"),
        w.max(1),
        w.min((0, 1), keepdims=True),
        np.argmax(np.round(z)),
        np.argmin(w, 0),
        np.searchsorted(np.sort(z), z, side="right"),
        np.unique(np.round(w)),
    ),
    "functions": lambda z, w, x: (
        scipy.linalg.expm(w),
        np.linalg.pinv(w[:, :3]),
        scipy.linalg.pinvh(w + w.conj().T),
        np.vecmat(z, w),
        scipy.linalg.orthogonal_procrustes(w, w.T),
        np.linalg.det(w.astype(np.complex64)).astype(complex).real.round(-1),
    ),
    "statistics": lambda z, w, x: (
        np.median(w, 0),
        np.median([complex(1, np.nan), z[0], 1j]),
        np.median(z[:4]),
        np.clip(z, -0.5, 0.5 + 1j),
        np.clip(w, None, z),
        np.cov(w),
        np.corrcoef(w[:2], rowvar=False),
        np.fmax(np.where(x > 0, z, np.nan), 1j),
    ),
    "fits": lambda z, w, x: (
        *np.linalg.lstsq(w[:, :3], z, rcond=None),
        np.linalg.lstsq(w[:2], w[:2], rcond=None)[0],
        np.polyfit(x, z, 2),
    ),
    "dtypes": lambda z, w, x: (
        z.astype(np.complex64) * 2,
        x.astype(np.float32) * 1j,
        x.astype(complex),
        z * np.int8(2),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_programs(name: str, mode: str) -> None:
    program = PROGRAMS[name]
    same(graphc.jit(program, mode=mode)(Z, W, X), program(Z, W, X))


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_eigenvalues_and_singular_values(mode: str) -> None:
    def program(w: Any) -> Any:
        h = w + np.swapaxes(w, -1, -2).conj()
        several = [*np.linalg.eigh(h), *np.linalg.eigh(h, UPLO="U"), *np.linalg.eig(w), np.linalg.eigvals(w)]
        tall = w[..., :3]
        return [*several, *np.linalg.svd(tall), *np.linalg.svd(tall, full_matrices=False), *np.linalg.qr(tall)]

    same(graphc.jit(program, mode=mode)(W), program(W))
    pair = np.stack([W, 2 * W.T])
    same(graphc.jit(program, mode=mode)(pair), program(pair))
    same(graphc.vmap(lambda w: jnp.linalg.eigh(w + w.conj().T)[1])(pair), program(pair)[1])


def test_the_derivative_of_eigenvectors() -> None:
    def cost(w: Any) -> Any:
        values, vectors = np.linalg.eigh(w)
        return (values**3).sum() + values[1] * abs(vectors[1, 2]) ** 2 + (abs(vectors[0]) ** 2 * np.arange(5)).sum()

    found, wanted = graphc.grad(cost)(HERMITIAN), slope(cost, HERMITIAN)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * abs(wanted).max())


FACTORED: dict[str, Callable[[Any], Any]] = {
    "eig": lambda w: abs(np.linalg.eig(w)[1] + np.linalg.eig(w)[0]).sum() + abs(np.linalg.eigvals(w) + 1).sum(),
    "svd": lambda w: abs(np.linalg.svd(w, full_matrices=False)[0] * W[:, :3]).sum()
    + (abs(np.linalg.svd(w)[0][:, 3:] * W[:, :1]) ** 2).sum() + abs(np.linalg.svd(w)[2] * W[:3, :3]).sum(),
    "svd of more columns": lambda w: abs(np.linalg.svd(w.T, full_matrices=False)[0] * W[:3, :3]).sum()
    + abs((np.linalg.svd(w.T)[0] * np.linalg.svd(w.T)[1]) @ np.linalg.svd(w.T, full_matrices=False)[2] + 1).sum(),
    "lu": lambda w: abs(scipy.linalg.lu(w)[1] + 1).sum() + abs(scipy.linalg.lu(w)[2] + 1j).sum(),
    "lstsq": lambda w: abs(np.linalg.lstsq(w, W[:, 3:], rcond=None)[0] + 1).sum() + abs(np.cov(w.T) + 1).sum(),
    "qr": lambda w: abs(np.linalg.qr(w)[0] + 1).sum() + abs(np.linalg.qr(w)[1] + 1j).sum(),
    "qr of more columns": lambda w: abs(np.linalg.qr(w.T)[0] + 1).sum() + abs(np.linalg.qr(w.T)[1] + 1j).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORED)
def test_derivatives_of_factors(name: str) -> None:
    cost, at = FACTORED[name], W[:, :3] if "eig" not in name else W
    first = graphc.grad(cost, mode="interpreted")
    found, wanted = first(at), slope(cost, at)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * abs(wanted).max())
    if name == "qr":
        bent = graphc.grad(lambda w: (abs(graphc.grad(cost)(w)) ** 2).sum(), mode="interpreted")
        wanted = slope(lambda w: (abs(first(w)) ** 2).sum(), at)
        np.testing.assert_allclose(bent(at), wanted, rtol=0, atol=1e-4 * abs(wanted).max())


def test_triangular_factors_of_permuted_rows() -> None:
    la = scipy.linalg

    def program(w: Any, b: Any) -> Any:
        factors = la.lu_factor(w)
        parts = la.lu(w), la.lu(w[:, :2], permute_l=True), la.lu(np.stack([w[:2], w[3:]]), p_indices=True)[1:]
        solved = [la.lu_solve(factors, each, trans) for each in (b, w) for trans in (0, 1, 2)]
        return *parts, factors[0], la.lu_factor(np.round(w))[0], solved

    same(graphc.jit(program, mode="interpreted")(W, Z), program(W, Z), 1e3)


def test_triangles_and_factors() -> None:
    la = scipy.linalg

    def program(w: Any, h: Any, b: Any) -> Any:
        solved = [la.solve_triangular(w, b, trans=how, lower=low) for how in "NTC" for low in (True, False)]
        unit = la.solve_triangular(w, b, unit_diagonal=True)
        factors = [la.cho_solve(la.cho_factor(h, lower=low), b) for low in (True, False)]
        return solved, unit, factors, la.cholesky(h), np.linalg.cholesky(h), la.solve(h, b, assume_a="pos")

    same(graphc.jit(program, mode="interpreted")(W, HERMITIAN, Z), program(W, HERMITIAN, Z), 1e3)


@pytest.mark.parametrize(
    "name", "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split()
)
def test_transforms(name: str) -> None:
    function = getattr(np.fft, name)
    several = name[-1] in "2n"
    for size in (2, 5, 8, 17):
        given = RNG.normal(size=(3, size))
        if not (name.startswith("rfft") or name == "ihfft"):
            given = given + 1j * RNG.normal(size=(3, size))
        for options in (
            {},
            {"norm": "ortho"},
            {"norm": "forward"},
            {"s": (4, 6), "axes": (0, 1)} if several else {"n": 6},
        ):
            found = graphc.jit(lambda x: function(x, **options), mode="interpreted")(given)  # noqa: B023
            same(found, function(given, **options))
    with pytest.raises(GraphTypeError if several or name == "rfft" else graphc.errors.GraphcError):
        graphc.jit(lambda x: function(x, norm="none"))(np.ones(()))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_and_sine_transforms(name: str, kind: int) -> None:
    function = getattr(scipy.fft, name)
    ways: list[dict[str, Any]] = [{}, {"norm": "ortho"}, {"norm": "forward"}, {"axis": 0}, {"n": 6}]
    for size in (2, 5, 8):
        given = RNG.normal(size=(3, size))
        for options in (*ways, {"norm": "ortho", "orthogonalize": False}):
            found = graphc.jit(lambda x: function(x, kind, **options), mode="interpreted")(given)  # noqa: B023
            same(found, function(given, kind, **options))


def test_transforms_along_several_axes() -> None:
    def program(x: Any) -> Any:
        names = ("dctn", "idctn", "dstn", "idstn")
        return [getattr(scipy.fft, name)(x, norm="ortho", axes=(0, 1)) for name in names], scipy.fft.dctn(x, s=(3, 3))

    same(graphc.jit(program)(W.real), program(W.real))
    with pytest.raises(graphc.errors.GraphcError, match="types are 1, 2, 3 and 4"):
        graphc.jit(lambda x: scipy.fft.dct(x, 5))(X)
    old = scipy.fftpack

    def older(x: Any) -> Any:
        return old.dct(x, norm="ortho"), old.idct(x, 2, axis=0), old.dctn(x, shape=(2, 2)), old.fft(x, 8, 0, True).imag

    same(graphc.jit(older, mode="interpreted")(W.real), older(W.real))
    with pytest.raises(graphc.errors.GraphcError, match=r"scipy.fftpack.hilbert of x"):
        graphc.jit(lambda x: old.hilbert(x) + 1)(W.real)


def writes(z: Any) -> Any:
    a = np.zeros((2, 2), complex)
    a[0] = z[:2]
    a.imag[1] = 3
    a.real = z.real[:2]
    b = z.copy()
    b[1:] *= 2j
    np.add(b, 1j, out=b)
    np.add.at(b, [0, 0], z[:2])
    return {"a": a, "b": (b, a.real.sum())}


def test_writes() -> None:
    same(graphc.jit(writes)(Z), writes(Z))


def test_questions() -> None:
    def program(z: Any) -> Any:
        assert z.dtype == complex and z.dtype.kind == "c" and np.iscomplexobj(z) and z.ndim == 1
        return z * np.finfo(z.dtype).eps if len(z) == 5 else z

    same(graphc.jit(program)(Z), program(Z))
    with pytest.raises(GraphTypeError, match="symbolic"):
        graphc.jit(lambda z: z * complex(z[0]))(Z)


def test_loops_and_maps() -> None:
    same(graphc.jit(lambda z: lax.scan(lambda c, x: (c * x, c + x), 1j * z[0], z)[0])(Z), 1j * Z[0] * Z.prod())
    same(graphc.jit(lambda z: lax.scan(lambda c, x: (c * x, None), 1j, z)[0])(Z), 1j * Z.prod())
    for axis in (0, -1):
        same(lax.associative_scan(lambda a, b: a * b, W, axis=axis), np.cumprod(W, axis))
    same(graphc.jit(lambda z: lax.fori_loop(0, 3, lambda i, c: c * z + i, z))(Z), (Z * Z * Z + 1) * Z + 2, 8)
    same(graphc.jit(lambda z: lax.cond(z.real[0] > 9, lambda q: q, lambda q: q * 1j, z))(Z), Z * 1j)
    for axes in (0, 1, -1):
        rows = graphc.vmap(lambda r: (r * r).sum(), in_axes=axes)
        same(rows(W), (W * W).sum(1 if axes == 0 else 0))
    same(graphc.vmap(lambda r: r * 2, out_axes=-1)(W), (W * 2).T)
    with pytest.raises(graphc.errors.GraphcError, match="no axis 2"):
        graphc.vmap(lambda r: r, in_axes=2)(W)


def test_trees_hold_complex_leaves() -> None:
    def program(z: Any) -> Any:
        assert len(graphc.tree.leaves({"a": z, "b": [z.real]})) == 2
        return graphc.tree.map(lambda a, b: abs(a) + b, {"a": z}, {"a": z.real})

    same(graphc.jit(program)(Z), {"a": abs(Z) + Z.real})
    struct = graphc.eval_shape(lambda z: (z * 2, z.real), Z)
    assert [(each.shape, str(each.dtype)) for each in struct] == [((5,), "complex128"), ((5,), "float64")]
    same(graphc.jit(lambda z: graphc.pure_callback(np.sort, z, z))(Z), np.sort(Z))


def slope(f: Callable[[Any], float], z: Any) -> Any:
    """df/dx - i df/dy of a real function, by central differences."""
    step, found = 1e-6, np.zeros(z.shape, complex)
    for place in np.ndindex(z.shape):
        for unit, share in ((1, 1), (1j, -1j)):
            moved = np.zeros(z.shape, complex)
            moved[place] = step * unit
            found[place] += share * (f(z + moved) - f(z - moved)) / (2 * step)
    return found


COSTS: dict[str, Callable[[Any], Any]] = {
    "squares": lambda z: (abs(z) ** 2).sum(),
    "analytic": lambda z: np.real(np.exp(z) * z**3).sum(),
    "quotients": lambda z: np.imag((z + 1) / (z * z.conj() + 2j)).sum(),
    "angles": lambda z: (np.angle(z) * np.cos(z.real)).sum(),
    "transform": lambda z: (abs(np.fft.fft(z)) ** 4).sum(),
    "roots": lambda z: np.real(np.sqrt(z) + np.log(z) + np.tanh(z)).sum(),
}


@pytest.mark.parametrize("name", COSTS)
def test_gradients(name: str) -> None:
    cost = COSTS[name]
    found = graphc.grad(cost)(Z)
    wanted = slope(cost, Z)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * abs(wanted).max())


def test_derivatives_follow_the_conventions_of_jax() -> None:
    same(graphc.grad(lambda z: (jnp.abs(z) ** 2).sum())(Z), 2 * Z.conj())
    same(graphc.grad(lambda z: jnp.real(jnp.exp(z)).sum())(Z), np.exp(Z))
    same(graphc.jvp(lambda z: z**3, (Z,), (Z,)), (Z**3, 3 * Z**3))
    value, pull = graphc.vjp(lambda z: z**3, Z)
    same((value, pull(Z)[0]), (Z**3, 3 * Z**3))
    same(graphc.grad(lambda x: jnp.real(jnp.exp(1j * x)).sum())(X), -np.sin(X))
    hessian = graphc.hvp(lambda z: (jnp.abs(z) ** 2).sum(), (Z,), (Z,))
    same(hessian, 2 * Z.conj())


def test_graphs() -> None:
    z, w, s = T.zvector("z"), T.cvector("w"), T.zscalar("s")
    assert (z.dtype, w.dtype, s.ndim, (z * w).dtype) == ("complex128", "complex64", 0, "complex128")
    f = graphc.function([z, graphc.In(s, value=2j)], {"product": z * s, "size": abs(z)})
    same(f(Z), {"product": Z * 2j, "size": abs(Z)})
    same(f(np.ones(3), 1), {"product": np.ones(3, complex), "size": np.ones(3)})
    same((z * 2).eval({z: Z}), Z * 2)
    single = Z.astype("complex64")
    same(graphc.function([w], z * 2, givens={z: w + 1})(single), ((single + np.complex64(1)).astype(complex) * 2))
    gradient = graphc.grad((abs(z) ** 2).sum(), z)
    same(gradient.eval({z: Z}), 2 * Z.conj())
    same(graphc.function([z], T.set_subtensor(z[0], 1j))(Z)[:1], np.array([1j]))
    same(graphc.ifelse(s.real > 0, z, z * 2).eval({s: -1.0, z: Z}), 2 * Z)


def test_shared_variables() -> None:
    s = graphc.shared(Z, "s")
    step = graphc.function([], abs(s), updates=[(s, s * 1j)])
    same(step(), abs(Z))
    same(s.get_value(), Z * 1j)
    s.set_value(W[0])
    same(step(), abs(W[0]))


def test_files(tmp_path: Path) -> None:
    z = T.zvector("z")
    graphc.function([z], [z * 1j, abs(z)]).save(tmp_path / "f.graphc")
    same(graphc.load(tmp_path / "f.graphc")(Z), [Z * 1j, abs(Z)])
    double = graphc.jit(lambda z: {"twice": z * 2})
    same(double(Z), {"twice": Z * 2})
    double.save(tmp_path / "g.graphc")
    again = graphc.load(tmp_path / "g.graphc")
    same(again(Z), {"twice": Z * 2})
    with pytest.raises(graphc.errors.GraphcError):
        again(np.ones((5, 2)))  # the parts of a complex vector are no argument


def test_arguments() -> None:
    f = graphc.jit(lambda z: z * 2 + z.sum())
    for given in (Z[::-1], W[:, 1], np.zeros(0, complex), Z.astype("complex64"), np.asfortranarray(W)):
        same(f(given), given * 2 + given.sum())
    assert f(1j) == 3j and graphc.jit(lambda z, c: z * c)(Z.astype("complex64"), 1j).dtype == "complex64"
    assert type(f(np.complex128(1j))) is np.complex128
    same(f(Z, out=np.empty(5, complex)), Z * 2 + Z.sum())
    assert len(f.functions) == 5  # by dtype and rank, and one for a number of Python
    same(graphc.jit(lambda z, c: z * c, static_argnums=1)(Z, 2j), Z * 2j)
    same(graphc.jit(lambda a, b: a * b)(W, W[:1]), W * W[:1])


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "floor": (np.floor, GraphTypeError, "floor is not defined for x .* of dtype complex128"),
    "cast": (lambda z: z.astype(float), GraphTypeError, "without the loss of its imaginary part"),
    "roots": (lambda z: scipy.linalg.sqrtm(np.outer(z, z)), GraphTypeError, "sqrtm of .*: it takes real matrices"),
    "quantile": (lambda z: np.quantile(z, 0.3), GraphTypeError, "quantile of .*: there is none of complex numbers"),
    "pairs": (lambda z: scipy.linalg.eigh(np.outer(z, z), np.eye(5)), GraphTypeError, "it takes real matrices"),
    "cost": (graphc.grad(lambda q: q.sum()), GradientError, "complex128.*, not a floating scalar"),
    "jacobian": (graphc.jacrev(lambda q: q * q), GradientError, "with holomorphic=True"),
    "analytic": (
        graphc.jacfwd(abs, holomorphic=True),
        GradientError,
        "complex arguments and values alone",
    ),
    "random": (lambda z: graphc.random.normal(graphc.random.key(0), (3,), "complex64"), GraphTypeError, "complex64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    program, kind, told = REFUSED[name]
    with pytest.raises(kind, match=told):
        graphc.jit(program)(Z)


def test_a_complex_cost_is_told() -> None:
    z = T.zvector("z")
    with pytest.raises(CostError, match="complex128"):
        graphc.grad(z.sum(), z)
    with pytest.raises(GraphTypeError, match="cannot become float64 without loss"):
        graphc.function([T.dvector("x")], 1, on_unused_input="ignore")(Z)


@pytest.mark.parametrize("seed", range(48))
def test_random_programs(seed: int) -> None:
    assert complex_programs.tried(seed, "compiled" if seed % 8 == 0 else "interpreted") is None


def test_views_of_complex_arrays_see_writes() -> None:
    def program(z: Any) -> Any:
        a = z.copy()
        views = np.flip(a), a[::-1], a.reshape(5, 1), np.atleast_2d(a), a.real, a.T, np.real(a), np.conj(a), a.conj()
        a[1:] *= 2
        np.imag(a)[0] = 7
        views[6][1] = -1
        turned = np.conj(z)
        turned[0] = 1
        return views, a, turned

    same(graphc.jit(program)(Z), program(Z))
