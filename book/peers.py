"""The names that a function has in NumPy, SciPy, JAX and Theano.

In: an item of graphc. Out: full names, `numpy.cumsum, jax.numpy.cumsum, theano.tensor.cumsum`. NumPy and SciPy are
asked; JAX's names stand in jax_names.toml, Theano's in tests/tensor/theano_names.txt.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module

from book.inventory import Item
from book.navigation import ROOT

SCIPY = "special linalg stats optimize integrate signal"
SAME = {
    "graphc": "jax",
    "graphc.tensor": "numpy jax.numpy jax.nn",
    "graphc.tensor.linalg": "numpy.linalg scipy.linalg jax.numpy.linalg",
    "graphc.nnet": "scipy.special jax.nn",
    "graphc.numpy": "numpy jax.numpy",
    "graphc.numpy.linalg": "numpy.linalg jax.numpy.linalg",
    "graphc.numpy.fft": "numpy.fft jax.numpy.fft",
    "graphc.lax": "jax.lax",
    "graphc.random": "jax.random",
    "graphc.tree": "jax.tree",
    "graphc.scipy.interpolate": "scipy.interpolate",
}
SAME |= {f"graphc.scipy.{name}": f"scipy.{name} jax.scipy.{name}" for name in SCIPY.split()}
"""The modules of others that have functions of the same names, which mean the same."""
OTHERWISE = {
    "graphc.function": "theano.function", "graphc.shared": "theano.shared", "graphc.scan": "theano.scan jax.lax.scan",
    "graphc.grad": "theano.grad", "graphc.for_loop": "jax.lax.fori_loop", "graphc.while_loop": "jax.lax.while_loop",
    "graphc.cond": "jax.lax.cond", "graphc.switch_case": "jax.lax.switch", "graphc.ifelse": "theano.ifelse.ifelse",
    "graphc.clone": "theano.clone", "graphc.map": "theano.map jax.lax.map", "graphc.reduce": "theano.reduce",
    "graphc.foldl": "theano.foldl", "graphc.foldr": "theano.foldr", "graphc.Op": "theano.Op", "graphc.In": "theano.In",
    "graphc.Out": "theano.Out", "graphc.Rop": "theano.tensor.Rop", "graphc.Lop": "theano.tensor.Lop",
    "graphc.jacobian": "theano.gradient.jacobian", "graphc.hessian": "theano.gradient.hessian jax.hessian",
    "graphc.tensor.sqr": "numpy.square jax.numpy.square", "graphc.tensor.sgn": "numpy.sign jax.numpy.sign",
    "graphc.tensor.neq": "numpy.not_equal", "graphc.tensor.eq": "numpy.equal", "graphc.printing.pp": "theano.pp",
    "graphc.tensor.set_subtensor": "jax.numpy.ndarray.at", "graphc.printing.debugprint": "theano.printing.debugprint",
}  # fmt: skip
"""Names that differ."""
THEANO = {"graphc.tensor": "tensor", "graphc.nnet": "tensor.nnet", "graphc.sparse": "sparse"}
SPARSE = """
CSC CSM CSR SparseType SparseVariable add add_s_d add_s_s arcsin arcsinh arctan arctanh as_sparse as_sparse_variable
as_sparse_or_tensor_variable cast ceil clean col_scale construct_sparse_from_list csc_dmatrix csc_fmatrix csc_from_dense
csc_matrix csm_data csm_indices csm_indptr csm_properties csm_shape csr_dmatrix csr_fmatrix csr_from_dense csr_matrix
deg2rad dense_from_sparse diag dot ensure_sorted_indices eq equal_s_d equal_s_s expm1 floor ge greater_equal_s_d
greater_equal_s_s greater_than_s_d greater_than_s_s gt hstack le less_equal_s_d less_equal_s_s less_than_s_d
less_than_s_s log1p lt matrix mul mul_s_d mul_s_s mul_s_v neg neq not_equal_s_d not_equal_s_s rad2deg remove0 rint
row_scale sampling_dot sgn shared sin sinh sp_ones_like sp_sum sp_zeros_like sqr sqrt square_diagonal structured_add
structured_add_s_v structured_dot structured_exp structured_log structured_maximum structured_minimum structured_monoid
structured_pow structured_sigmoid sub tan tanh transpose true_dot trunc usmm vstack
"""
"""The names of theano.sparse."""


@cache
def jax_names(module: str) -> frozenset[str]:
    """The public names of one of JAX's modules."""
    listed = tomllib.loads((ROOT / "book" / "jax_names.toml").read_text("utf-8"))
    return frozenset(listed.get(module, "").split())


@cache
def theano_names(module: str) -> frozenset[str]:
    """The public names of one of Theano's modules."""
    if module == "sparse":
        return frozenset(SPARSE.split())
    text = (ROOT / "tests" / "tensor" / "theano_names.txt").read_text("utf-8")
    parts = text.split(f"[{module}]\n", 1)
    return frozenset(parts[1].partition("\n[")[0].split()) if len(parts) == 2 else frozenset()


def has(module: str, name: str) -> bool:
    """True if a module of another library has a function of this name."""
    if module.startswith("jax"):
        return name in jax_names(module)
    found = getattr(import_module(module), name, None)
    return callable(found) or (module == "scipy.stats" and found is not None)


def elsewhere(item: Item) -> list[str]:
    """Return the full names that an item has elsewhere."""
    found = OTHERWISE.get(item.path, "").split()
    for name in (item.name, *item.aliases):
        found += [f"{module}.{name}" for module in SAME.get(item.home, "").split() if has(module, name)]
        if item.home in THEANO and name in theano_names(THEANO[item.home]):
            found.append(f"theano.{THEANO[item.home]}.{name}")
    return list(dict.fromkeys(found))
