"""Large arrays that a traced function closes over: their elements are read once, for a copy and its digest, on every
path from the program to its kernel, and no message prints them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.ir import types
from graphc.ir.types import LARGE_BYTES, FrozenArray

MATRIX = np.random.default_rng(0).normal(size=(90, 100))  # 72 kB
VECTOR = MATRIX.reshape(-1)
ROW = np.ones(100)

PATHS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda w: MATRIX @ w,
    "dot": lambda w: jnp.dot(MATRIX, w),
    "tensordot": lambda w: jnp.tensordot(MATRIX, w, 1),
    "reshape": lambda w: jnp.reshape(MATRIX, (100, 90)).T @ w,
    "transpose": lambda w: jnp.asarray(MATRIX).T.sum(1) + w,
    "norm": lambda w: jnp.linalg.norm(MATRIX * w),
    "scan": lambda w: lax.scan(lambda s, row: (s + (row * w).sum(), None), 0.0, MATRIX)[0],
    "interp": lambda w: jnp.interp(w, VECTOR, VECTOR),
    "convolve": lambda w: jnp.convolve(VECTOR, w[:9]),
    "vmap": lambda w: graphc.vmap(lambda row: (row * w).sum())(MATRIX),
    "gradient": graphc.grad(lambda w: ((MATRIX @ w) ** 2).sum()),
    "index": lambda w: jnp.asarray(MATRIX)[(w > 0).sum() % 90],
    "twice": lambda w: MATRIX @ w + (MATRIX * 2.0).sum(1),
}


class Touched(np.ndarray[Any, Any]):
    """An array that notes what reads its elements."""

    by: list[str] = []  # noqa: RUF012 - one list for all, which a test empties

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        Touched.by.append(ufunc.__name__)
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **more)

    def __getattribute__(self, name: str) -> Any:
        if name in ("tobytes", "tolist", "astype", "copy", "any", "all", "min", "max", "sum", "item", "data"):
            Touched.by.append(name)
        return super().__getattribute__(name)

    def __repr__(self) -> str:
        Touched.by.append("repr")
        return "an array"

    __str__ = __repr__


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of large constants whose digests were made; what else reads elements goes to `Touched.by`."""
    Touched.by.clear()
    made: list[int] = []
    of, digest_of = FrozenArray.of.__func__, types.digest_of  # type: ignore[attr-defined]

    def noted(content: Any) -> str:
        made.append(len(content))
        return str(digest_of(content))

    def watched(cls: type[FrozenArray], value: Any) -> FrozenArray:
        array = of(cls, value)
        large = array.value.nbytes > LARGE_BYTES
        return FrozenArray(array.value.view(Touched), array.key) if large else array

    monkeypatch.setattr(types, "digest_of", noted)
    monkeypatch.setattr(FrozenArray, "of", classmethod(watched))
    return made


USES = {"interp": 2}
"""How often a path names the array, where not once: a program may change it in between."""


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_elements_are_read_once_for_a_copy_and_its_digest(path: str, read: list[int]) -> None:
    graphc.jit(PATHS[path], mode="python")(ROW)
    assert read == [MATRIX.nbytes] * USES.get(path, 1) and Touched.by == []


@pytest.mark.slow
def test_memory_for_a_constant_is_its_copy() -> None:
    large = np.ones((300, 1000))
    for program in (lambda w: large @ w, lambda w: jnp.reshape(large, (1000, 300)).T @ w):
        tracemalloc.start()
        try:
            graphc.jit(program, mode="interpreted")(np.ones(1000))
            assert tracemalloc.get_traced_memory()[1] < 1.3 * large.nbytes
        finally:
            tracemalloc.stop()


def test_no_message_prints_a_constant() -> None:
    with pytest.raises(graphc.GraphcError) as error:
        graphc.jit(lambda w: MATRIX @ w[:10])(ROW)
    assert len(str(error.value)) < 300
    assert len(repr(FrozenArray.of(MATRIX))) < 1000


def test_functions_share_a_constant() -> None:
    first, second = (graphc.tensor.as_tensor_variable(MATRIX.copy()) for _ in range(2))
    assert first is second and np.shares_memory(first.attrs["value"].value, second.attrs["value"].value)
