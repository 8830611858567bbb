"""The package `graphc.scipy`: what is there under which import, values of arrays and of tensors."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError

special: Any = importlib.import_module("graphc.scipy.special")

LATE = """
import sys
import graphc.scipy.special
from graphc.scipy import special
assert special is graphc.scipy.special
print("scipy" in sys.modules, special.erf(0.5))
"""


@pytest.mark.slow
def test_scipy_is_imported_when_a_function_of_arrays_is_called() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", str(scipy.special.erf(0.5))]


def test_names_that_are_missing_say_why() -> None:
    with pytest.raises(AttributeError, match=r"'graphc.scipy.special' has no attribute 'gamm': is 'gamma' meant"):
        getattr(special, "gamm")  # noqa: B009
    with pytest.raises(AttributeError, match="graphc.sparse has sparse matrices"):
        getattr(importlib.import_module("graphc.scipy"), "sparse")  # noqa: B009


def test_arrays_are_given_to_scipy_and_tensors_make_a_graph() -> None:
    x = np.array([0.5, 2.0])
    assert special.gammainc(2, x).tolist() == scipy.special.gammainc(2, x).tolist()
    assert type(special.gammainc(2, 0.5)) is np.float64
    assert isinstance(special.gammainc(2, T.dvector("x")), graphc.Node)
    with pytest.raises(GraphTypeError, match="gammainc of x"):
        special.gammainc(T.dvector("x"))
    with graphc.options.change(mode="interpreted"):
        np.testing.assert_allclose(graphc.grad(special.gammaln)(5.0), scipy.special.digamma(5.0), rtol=1e-14)
        log = graphc.jit(lambda a, b: special.logsumexp(a, axis=0, b=b, return_sign=True))
        for b in (np.array([0.0, -1.0, -2.0]), np.array([1.0, -1.0, 3.0]), np.zeros(3)):
            np.testing.assert_allclose(
                log(np.arange(3.0), b), scipy.special.logsumexp(np.arange(3.0), 0, b, False, True)
            )


def test_python_numbers_take_the_dtype_of_arrays() -> None:
    x = T.fvector("x")
    calls = {
        "jv": (1, x),
        "betainc": (1, 2, x),
        "huber": (1.0, x),
        "chdtr": (2.0, x),
        "rel_entr": (x, 2.0),
        "exp1": (x,),
    }
    for name, args in calls.items():
        given = [np.ones(2, "float32") if arg is x else arg for arg in args]
        assert getattr(special, name)(*args).dtype == getattr(scipy.special, name)(*given).dtype == "float32", name
