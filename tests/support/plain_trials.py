"""Trials of random programs for arrays: traced functions against the same text on NumPy.

In: a seed. Out: the program, how it was traced (`jit`, `vmap`, in a loop, a branch, differentiated), and for each of
some arrays what came of it: the same, refused with the line, or what is wrong.

    python -m tests.support.plain_trials --programs 10000 --seed 7
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.errors import GraphcError
from graphc.trees import leaves
from tests.support.plain_programs import program


def function_of(text: str, xp: Any) -> Callable[..., Any]:
    scope: dict[str, Any] = {"np": np, "xp": xp, "math": math, "jit": graphc.jit if xp is jnp else lambda f: f}
    exec(compile(text, "plain.py", "exec"), scope)
    return scope["f"]


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


def by_slopes(f: Any) -> Any:
    """The derivative along a direction, by the gradient."""
    made = graphc.jit(graphc.grad(lambda x, y, v: total(f, x, y, v), argnums=(0, 1, 2)))
    return lambda *given: sum((g * direction(a)).sum() for g, a in zip(made(*given), given, strict=True))


def by_pushed(f: Any) -> Any:
    """The derivative along a direction, forwards."""
    cost = graphc.jit(lambda x, y, v: total(f, x, y, v))
    return lambda *given: graphc.jvp(cost, given, tuple(map(direction, given)))[1]


def direction(a: Any) -> Any:
    return np.cos(np.arange(1.0, 1 + a.size)).reshape(a.shape).astype(a.dtype)


def slope(f: Any, *given: Any) -> Any:
    """The derivative along a direction, by differences. Raises ArithmeticError where those of several steps do not
    agree: at a kink or a jump, beside a pole, and for what is rounded to float32 on the way."""
    found = []
    for step in (1e-4, 2e-5, -1e-4):
        ends = [total(f, *(np.copy(a) + sign * step * direction(a) for a in given)) for sign in (1, -1)]
        found.append((ends[0] - ends[1]) / (2 * step))
    ahead = (total(f, *(np.copy(a) + 1e-4 * direction(a) for a in given)) - total(f, *map(np.copy, given))) / 1e-4
    agree = np.allclose(found, found[1], rtol=1e-5, atol=1e-5) and abs(ahead - found[1]) < 1e-2 * (1 + abs(found[1]))
    if not (agree and np.isfinite(found).all() and abs(found[1]) < 1e5):
        raise ArithmeticError
    return found[1]


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "jit": (graphc.jit, one),
    "jit in jit": (by_jit_within, lambda f, x, y, v: f(y, x, v)),
    "grad": (by_grad, total),
    "vmap": (by_vmap, each),
    "scan": (by_scan, each),
    "cond": (by_cond, lambda f, x, y, v: f(x + 1, y, v)),
    "slopes": (by_slopes, slope),
    "pushed": (by_pushed, slope),
}
SMOOTH = ("slopes", "pushed")
"""By name: what makes a function of arrays of a program, once for all sizes, and what it should give."""


DTYPES = ("float64", "float64", "float64", "float32", "float32", "int64", "int32", "int16")


def arrays(seed: int, shape: tuple[int, int], dtype: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    scale = 1 if dtype[0] == "f" else 4
    return tuple((rng.normal(size=size) * scale).astype(dtype) for size in (shape, shape, shape[1:]))


def differs(way: str, got: Any, want: Any) -> bool:
    if way in SMOOTH:
        return bool(abs(got - want) > 1e-3 * (1 + abs(want)))
    made, wanted = np.asarray(got), np.asarray(want)
    halved = wanted.dtype == np.float16  # what NumPy makes of int8, and graphc has no dtype for
    close = made.shape == wanted.shape and np.allclose(
        made, wanted, rtol=2e-3 if halved else 1e-4, atol=1e-4 if wanted.dtype == np.float32 else 1e-5, equal_nan=True
    )
    return not close or (way == "jit" and not halved and made.dtype != wanted.dtype)


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
        if differs(way, got, want) and not rounds(way, function_of(text, np), before, place, got):
            return f"silent: {got!r}, not {want!r}"
    return "same"


def rounds(way: str, f: Any, given: list[Any], place: int, got: Any) -> bool:
    """True where the elements of a result are those that NumPy gives of arguments one bit away: `a.mean() // b.mean()`
    of equal numbers is 1 or 0 by the rounding of the sums, for graphc adds up float32 more exactly than NumPy."""
    if way in SMOOTH or given[0].dtype.kind != "f":
        return False
    rng, near = np.random.default_rng(0), np.zeros(np.shape(got), bool)
    with np.errstate(all="ignore"):
        for _ in range(20):
            moved = [np.nextafter(each, rng.choice([-np.inf, np.inf], each.shape), dtype=each.dtype) for each in given]
            want = leaves(WAYS[way][1](f, *moved))[place]
            if np.shape(got) != np.shape(want) or (way == "jit" and np.asarray(got).dtype != np.asarray(want).dtype):
                return False
            near |= np.isclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
    return bool(near.all())


def trial(seed: int, of_sizes: bool = False) -> tuple[str, str, list[str]]:
    """A random program, how it is traced, and what came of it for arrays of three shapes, the last one as the first."""
    rng = random.Random(seed)
    text, way = program(rng, of_sizes), rng.choice([*WAYS, *["jit"] * 5])
    shapes = [(rng.randint(1, 4), rng.randint(1, 4)) for _ in range(2)]
    dtype = "float64" if way in SMOOTH or way == "grad" else rng.choice(DTYPES)
    ours = WAYS[way][0](function_of(text, jnp))
    found = [outcome(text, way, ours, arrays(seed, shape, dtype)) for shape in (*shapes, shapes[0])]
    return text, way, found


ALLOWED = {"same", "refused", "refused by NumPy"}
"""What may come of a program. Programs that ask for sizes and dtypes alone must not be refused."""


def main() -> int:
    """Try programs of one seed after the other; tell what is wrong, and how many came out how."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--mode", default="interpreted", help="graphc's mode")
    chosen, _ = parser.parse_known_args()
    print(f"programs of plain Python: --seed {chosen.seed}", flush=True)
    warnings.simplefilter("ignore")
    told: Counter[str] = Counter()
    wrong = 0
    with graphc.options.change(mode=chosen.mode):
        for seed in range(chosen.seed, chosen.seed + chosen.programs):
            of_sizes = seed % 3 == 0
            text, way, found = trial(seed, of_sizes)
            told.update(each.partition(":")[0] for each in found)
            if not (ALLOWED - {"refused"} if of_sizes else ALLOWED).issuperset(found):
                wrong += 1
                print(f"{seed} by {way}{' of sizes' * of_sizes}: {found}\n{text}", flush=True)
    print(dict(told), flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
