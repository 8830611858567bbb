"""Programs for arrays that ask, branch and write: traced functions give what NumPy does, for several sizes, or an error
with the line. What asks for sizes and dtypes alone is no error."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.errors import GraphcError
from graphc.trees import leaves
from tests.support.plain_programs import program

PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "1000"))
"""How many programs are tried; ten thousand were, when a kind of question or write was added."""


def function_of(text: str, xp: Any) -> Callable[..., Any]:
    scope: dict[str, Any] = {"np": np, "xp": xp}
    exec(compile(text, "plain.py", "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def one(f: Any, x: Any, y: Any, v: Any) -> Any:
    return f(x, y, v)


def total(f: Any, x: Any, y: Any, v: Any) -> Any:
    return sum(1.0 * leaf.sum() if getattr(leaf, "ndim", 0) else 1.0 * leaf for leaf in leaves(f(x, y, v)))


def by_grad(f: Any) -> Any:
    made = graphc.value_and_grad(lambda x, y, v: total(f, x, y, v))
    return lambda x, y, v: made(x, y, v)[0]


def by_vmap(f: Any) -> Any:
    made = graphc.vmap(f, in_axes=(0, None, None))
    return lambda x, y, v: made(np.stack([x, x + 1]), y, v)


def by_scan(f: Any) -> Any:
    made = graphc.jit(lambda rows, y, v: lax.scan(lambda c, x: (c, f(x, y, v)), 0.0, rows)[1])
    return lambda x, y, v: made(np.stack([x, x + 1]), y, v)


def by_cond(f: Any) -> Any:
    made = graphc.jit(lambda p, x, y, v: lax.cond(p, f, lambda x, y, v: f(x + 1, y, v), x, y, v))
    return lambda x, y, v: made(False, x, y, v)


def by_jit_within(f: Any) -> Any:
    inner = graphc.jit(f)
    return graphc.jit(lambda x, y, v: inner(y, x, v))


def each(f: Any, x: Any, y: Any, v: Any) -> Any:
    """What `vmap` and `scan` give, element by element; each is given arrays of its own."""
    found = [f(np.copy(row), np.copy(y), np.copy(v)) for row in (x, x + 1)]
    return tuple(np.stack([np.asarray(a), np.asarray(b)]) for a, b in zip(*map(leaves, found), strict=True))


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "jit": (graphc.jit, one),
    "jit in jit": (by_jit_within, lambda f, x, y, v: f(y, x, v)),
    "grad": (by_grad, total),
    "vmap": (by_vmap, each),
    "scan": (by_scan, each),
    "cond": (by_cond, lambda f, x, y, v: f(x + 1, y, v)),
}
"""By name: what makes a function of arrays of a program, once for all sizes, and what it should give."""


def arrays(seed: int, shape: tuple[int, int], dtype: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=size).astype(dtype) for size in (shape, shape, shape[1:]))


def outcome(text: str, way: str, ours: Any, given: tuple[Any, ...]) -> str:
    """What came of a program: `same`, `refused`, or what is wrong. Programs that NumPy refuses are `refused by
    NumPy`."""
    before, changed = [np.copy(each) for each in given], [np.copy(each) for each in given]
    try:
        with np.errstate(all="ignore"):
            wanted = leaves(WAYS[way][1](function_of(text, np), *changed))
    except Exception:
        wanted = None
    try:
        found = leaves(ours(*given))
    except GraphcError as error:
        if wanted is None:
            return "refused by NumPy"
        return "refused" if re.search(r"plain\.py:\d+", str(error)) else f"no line: {error!r}"
    except Exception as error:
        return "refused by NumPy" if wanted is None else f"raw: {error!r}"
    if wanted is None:
        return "refused by NumPy"
    if way == "jit" and not all(map(np.array_equal, before, changed)):
        return "an argument was changed"
    if len(found) != len(wanted):
        return f"silent: {found!r}, not {wanted!r}"
    for place, (got, want) in enumerate(zip(found, wanted, strict=True)):
        close = np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
        if not close and np.shape(got) == np.shape(want):
            close = rounds(WAYS[way][1], function_of(text, np), before, place, got)
        if not close or (way == "jit" and np.asarray(got).dtype != np.asarray(want).dtype):
            return f"silent: {got!r}, not {want!r}"
    return "same"


def rounds(run: Any, f: Any, given: list[Any], place: int, got: Any) -> bool:
    """True where the elements of a result are those that NumPy gives of arguments one bit away: `a.mean() // b.mean()`
    of equal numbers is 1 or 0 by the rounding of the sums, for graphc adds up float32 more exactly than NumPy."""
    rng, near = np.random.default_rng(0), np.zeros(np.shape(got), bool)
    with np.errstate(all="ignore"):
        for _ in range(20):
            moved = [np.nextafter(each, rng.choice([-np.inf, np.inf], each.shape), dtype=each.dtype) for each in given]
            near |= np.isclose(got, leaves(run(f, *moved))[place], rtol=1e-4, atol=1e-5, equal_nan=True)
    return bool(near.all())


def trial(seed: int, of_sizes: bool = False) -> tuple[str, str, list[str]]:
    """A random program, how it is traced, and what came of it for arrays of three shapes, the last one as the first."""
    rng = random.Random(seed)
    text, way = program(rng, of_sizes), rng.choice([*WAYS, *["jit"] * 5])
    shapes, dtype = (
        [(rng.randint(1, 4), rng.randint(1, 4)) for _ in range(2)],
        rng.choice(("float64", "float64", "float32")),
    )
    ours = WAYS[way][0](function_of(text, jnp))
    found = [outcome(text, way, ours, arrays(seed, shape, dtype)) for shape in (*shapes, shapes[0])]
    return text, way, found


ALLOWED = {"same", "refused", "refused by NumPy"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_random_programs_give_what_numpy_gives_or_say_why_not() -> None:
    told: Counter[str] = Counter()
    with graphc.options.change(mode="interpreted"):
        for seed in range(PROGRAMS):
            text, way, found = trial(seed)
            assert ALLOWED.issuperset(found), f"{seed} by {way}: {found}\n{text}"
            told.update(found)
    assert told["same"] > PROGRAMS // 3 and told["refused"] > PROGRAMS // 3, told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_asks_for_sizes_and_dtypes_gives_what_numpy_gives() -> None:
    told: Counter[str] = Counter()
    with graphc.options.change(mode="interpreted"):
        for seed in range(PROGRAMS // 2):
            text, way, found = trial(seed, of_sizes=True)
            assert {"same", "refused by NumPy"}.issuperset(found), f"{seed} by {way}: {found}\n{text}"
            told.update(found)
    assert told["same"] > PROGRAMS, told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_share_of_them_is_compiled() -> None:
    for seed in range(30):
        text, way, found = trial(seed, of_sizes=seed % 2 == 0)
        assert ALLOWED.issuperset(found), f"{seed} by {way}: {found}\n{text}"
