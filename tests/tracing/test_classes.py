"""Questions about the class of a traced array or number, and the first lines of functions that take whatever comes:
answers are those for NumPy's arrays and numbers, and for Python's."""

from __future__ import annotations

import numbers
from collections import abc
from functools import singledispatch
from typing import Any

import numpy as np
import pytest

import graphc

CLASSES: tuple[Any, ...] = (
    np.ndarray, int, float, bool, list, np.generic, np.floating, np.integer, np.bool_, abc.Iterable, abc.Sized,
    abc.Sequence, abc.Container, abc.Mapping, abc.Callable, numbers.Number, numbers.Integral,
)  # fmt: skip
NAMES = "__len__ __iter__ __array__ __getitem__ __call__ shape dtype ndim size T".split()
VALUES = (
    np.ones(3), np.ones((2, 1), np.float32), np.arange(4), np.array(2.0), np.array(True), np.float64(2.0), np.int32(3),
    np.bool_(True), 2.0, 3, True,
)  # fmt: skip


@singledispatch
def by_class(x: Any) -> str:
    return "other"


by_class.register(np.ndarray)(lambda x: "array")
by_class.register(float)(lambda x: "float")
by_class.register(int)(lambda x: "int")


def answers(x: Any) -> list[Any]:
    match x:
        case np.ndarray():
            matched = "array"
        case float():
            matched = "float"
        case _:
            matched = "other"
    return [
        [kind.__name__ for kind in CLASSES if isinstance(x, kind)], [name for name in NAMES if hasattr(x, name)],
        np.isscalar(x), np.iterable(x), np.ndim(x), callable(x), x.__class__, by_class(x), matched,
        getattr(x, "ndim", None),
    ]  # fmt: skip


def parts(x: Any) -> list[Any]:
    if not np.ndim(x):
        return [x + 1, x * np.float32(1), np.asarray(x)]
    return [
        x, x.sum(), x[0], x.mean() * 2, x.shape[0], x.shape[0] * 2.5, x.shape[0] // 2, len(x), x.size, x > 0,
        x.max() > 0, x.astype(int).sum(), x.T, x[:1], np.zeros(3), np.zeros(()), np.array(x.sum()), np.sqrt(x.sum()),
        x.astype("f"), x.reshape(()) if x.size == 1 else x[...],
    ]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_classes(value: Any) -> None:
    seen: list[Any] = []

    def ask(x: Any) -> Any:
        seen.append([answers(each) for each in (x, *parts(x))])
        return x * 1.0

    ask(value)
    with graphc.options.change(mode="interpreted"):
        graphc.jit(ask)(value)
        graphc.jit(lambda x: 0 + graphc.jit(ask)(x))(value)
        if np.result_type(value).kind == "f":
            graphc.grad(lambda x: np.sum(ask(x)))(value)
    for found in seen[1:]:
        assert found == seen[0]


def test_classes_of_elements() -> None:
    seen: list[Any] = []

    def ask(x: Any) -> Any:
        seen.append(answers(x))
        return x

    ask(np.float64(1))
    graphc.vmap(ask, mode="interpreted")(np.ones(3))
    assert seen[0] == seen[1]


def test_an_array_and_a_number_of_one_type() -> None:
    def f(x: Any) -> Any:
        return 10 * x if isinstance(x, np.ndarray) else x

    asks = graphc.jit(f)
    array, number = np.array(1.0), np.float64(2.0)
    given = [array, number, array, array + 1, number, 1.0, np.ones(1), array]
    assert [float(np.sum(asks(x))) for x in given] == [float(np.sum(f(x))) for x in given]


def test_outside_of_traces_tensors_are_tensors() -> None:
    x = graphc.tensor.vector()
    assert not isinstance(x, np.ndarray) and not isinstance(x.sum(), float) and x.__class__ is type(x)


STARTS = """
np.asarray(x, dtype=float)
np.atleast_1d(x)
np.array(x, copy=True)
np.array(x, dtype=np.float64, copy=True, ndmin=1)
np.array(x, float, order="F")
np.ascontiguousarray(x)
np.asfortranarray(x)
np.require(x, float, "C")
np.asanyarray(x)
np.atleast_2d(x)
np.asarray(x, float)
np.array([x])
np.ravel(np.asarray(x))
np.squeeze(np.asarray(x))
np.copy(x)
np.asarray(x).astype(np.float32)
np.asarray(x).astype(float, copy=False)
np.asarray(x, dtype=np.result_type(x, np.float32))
np.asarray(x, dtype=np.result_type(x, np.float32, 1))
np.asarray(x).reshape(-1)
np.asarray(x).view()
x if isinstance(x, np.ndarray) else np.array([x])
np.array([x]) if np.isscalar(x) else np.array(x)
np.array(x) if hasattr(x, "__len__") else np.array([x])
np.asarray(x) if getattr(x, "shape", None) else np.full(2, x)
np.array([x], dtype=float) if isinstance(x, (int, float)) else np.asarray(x, dtype=float)
""".strip().splitlines()


def test_first_lines_of_functions() -> None:
    scope: dict[str, Any] = {"np": np}
    exec("f = lambda x: [\n" + ",\n".join(STARTS) + "]", scope)
    f = scope["f"]
    ours = graphc.jit(f, mode="interpreted")
    for value in VALUES:
        for start, wanted, found in zip(STARTS, f(value), ours(value), strict=True):
            assert np.shape(found) == np.shape(wanted) and found.dtype == wanted.dtype, (start, value)
            np.testing.assert_array_equal(found, wanted)
