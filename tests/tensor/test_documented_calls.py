"""The calls in NumPy's and SciPy's own documentation of linear algebra and of order, as installed: each is carried out
by NumPy or SciPy as its documentation says, and again by the function of that name here, with the same arguments.

What is refused is refused for a reason that stands in a table.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.ir.node import Node

Call = tuple[tuple[Any, ...], dict[str, Any], Any]
"""Arguments, keywords, and the result."""

ORDER = (
    "argsort bincount digitize histogram histogram2d histogram_bin_edges histogramdd intersect1d isin lexsort median "
    "nanmedian nanpercentile nanquantile partition percentile quantile searchsorted setdiff1d setxor1d sort union1d "
    "unique unique_all unique_counts unique_inverse unique_values"
).split()
OTHERS_IN_SCIPY = {
    "qr": "modes are NumPy's",
    "lstsq": "results are NumPy's",
    "lu_factor": "a permutation stands for pivots",
    "matmul_toeplitz": "the matrix is made, of a million rows in the documentation",
}
"""Functions that mean NumPy's, or more."""
NAMES: Mapping[str, tuple[Any, Any, list[str]]] = {
    "numpy": (np, T, ORDER),
    "numpy.linalg": (np.linalg, T.linalg, [name for name in np.linalg.__all__ if name != "LinAlgError"]),
    "scipy.linalg": (
        scipy.linalg,
        T.linalg,
        [name for name in scipy.linalg.__all__ if hasattr(T.linalg, name) and name not in OTHERS_IN_SCIPY],
    ),
}
NO_KEYWORDS = {
    "baxis", "eigvals_only", "homogeneous_eigvals", "left", "order", "out", "overwrite_input", "return_indices",
    "singular", "subset_by_index", "subset_by_value",
}  # fmt: skip
REFUSED = {
    "circulant": "rows of vectors",
    "eig": "complex values, which eig_parts has",
    "eigvals": "complex values, which eigvals_parts has, and pairs of matrices",
    "histogram_bin_edges": "bins by a rule",
    "isin": "a set",
    "lu": "matrices that are not square",
}
"""Functions that do not take all that NumPy's or SciPy's take."""
COMPARED: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "partition": lambda found: [np.sort(found[0])],  # more is in order here
    "unique_values": lambda found: [np.sort(found[0])],  # NumPy promises no order
    "cho_factor": lambda found: [np.triu(found[0])],  # the other triangle is anything
    **dict.fromkeys(("eig", "eigh", "qr", "svd"), lambda found: [abs(np.asarray(each)) for each in found]),
}
"""What is compared, where results are not determined."""


def calls_in(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls of a function that its documentation makes."""
    original, found, depth = getattr(module, name), list[Call](), [0]

    def recorder(*args: Any, **named: Any) -> Any:
        depth[0] += 1
        try:
            result = original(*args, **named)
        finally:
            depth[0] -= 1
        if not depth[0]:
            found.append((args, named, result))
        return result

    names: dict[str, Any] = {"np": np}
    generator = np.random.default_rng
    with monkeypatch.context() as patched, warnings.catch_warnings(), np.printoptions(), np.errstate():
        warnings.simplefilter("ignore")
        patched.setattr(module, name, recorder)
        patched.setattr(np.random, "default_rng", lambda seed=7: generator(seed))
        for example in doctest.DocTestParser().get_examples(original.__doc__):
            if "plt" not in example.source:
                with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(example.source, name, "single"), names)
    return found


def parts(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from parts(each)
    elif value is not None:
        yield value


def is_refused_for_a_reason(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    kinds = [np.asarray(each).dtype.kind for each in args]
    return name in REFUSED or not NO_KEYWORDS.isdisjoint(named) or not set(kinds) <= set("biuf")


@pytest.mark.slow
@pytest.mark.parametrize("where", NAMES)
def test_documented_calls(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, here, names = NAMES[where]
    np.random.seed(7)  # noqa: NPY002 - what the documentation draws with
    replayed, unexplained = set[str](), list[str]()
    for name in names:
        for args, named, want in calls_in(module, name, monkeypatch):
            try:
                found = getattr(here, name)(*args, **named)
                nodes = [found] if isinstance(found, Node) else [*parts(tuple(found))]
                values = graphc.function([], nodes, mode="interpreted")()
            except GraphcError as error:
                if not is_refused_for_a_reason(name, args, named):
                    unexplained.append(f"{name}{args}{named}: {error}")
                continue
            wanted = [*parts(want)]
            compared: Callable[[list[Any]], list[Any]] = COMPARED.get(name, list)
            assert len(values) == len(wanted), name
            for one, other in zip(compared(list(values)), compared(wanted), strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-12, err_msg=f"{name}{args}{named}")
            replayed.add(name)
    assert not unexplained
    assert len(replayed) > len(names) / 2, sorted(set(names) - replayed)
