"""Matrix products that a graph is likely to need are compiled while it is rewritten, by the compile process."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline.build import likely_products
from graphc.codegen.pipeline.compilation import Ahead, emit_here, part_ir
from graphc.codegen.pipeline.kernel import Kernel
from graphc.ir.node import Node
from graphc.startup.process import PROCESS

X, F, J = T.dmatrix("x"), T.fmatrix("f"), T.lmatrix("i")
PRODUCTS: dict[str, tuple[Node, list[str]]] = {
    "float64": (T.dot(X, X.T), ["gc_gemm_f64"]),
    "float32, in a loop": (graphc.scan(lambda h: T.tanh(T.dot(h, F)), outputs_info=F, n_steps=3)[0], ["gc_gemm_f32"]),
    "two": (T.dot(F, F) + T.dot(X, X), ["gc_gemm_f32", "gc_gemm_f64"]),
    "with a vector": (T.dot(X, X[0]), []),
    "integers": (T.dot(J, J), []),
    "tiny": (T.dot(T.ones((2, 2)) * X[0, 0], T.ones((2, 2))), []),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_which_are_likely(name: str) -> None:
    result, names = PRODUCTS[name]
    leaves = (X, F, J)
    assert sorted(likely_products(Kernel("f", leaves, (), (result,), (), "one"))) == names


@pytest.mark.slow
def test_what_was_begun_is_what_would_be_made() -> None:
    name = "gc_gemv_i32"
    with graphc.options.change(compile="process"):
        ahead = Ahead([name])
        until = time.monotonic() + 60.0
        while not ahead.made and time.monotonic() < until:
            time.sleep(0.01)
        made = ahead.finish()
    texts, opt = part_ir(name)
    assert made and all(code == emit_here(texts[number], opt) for (_, number), code in made.items())
    assert ahead.finish() == made and not Ahead([]).finish()


@pytest.mark.slow
def test_a_first_product(tmp_path: Path) -> None:
    """Nothing is there yet, and what was begun goes into the cache with the rest."""
    with graphc.options.change(cache_dir=str(tmp_path), compile="process"):
        PROCESS.start_afresh()
        call = graphc.function([X], T.dot(X, X.T).sum(0))
        value = np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(call(value), (value @ value.T).sum(0))
    PROCESS.start_afresh()
