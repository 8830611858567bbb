"""Random programs of NumPy with complex arrays: functions of elements, views, writes in place, sums, transforms.

    python -m tests.support.complex_programs --programs 1000 --seed 7

In: a seed. Out: the text of `program(a, b, x)`, of two complex vectors and a real one, all of 5 elements. Run as a
module it compares each program, traced, with the same text on NumPy, and prints those that differ.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import graphc
from graphc.errors import GraphcError

ONE = """
np.exp({}*0.3) np.conj({}) {}.real {}.imag np.abs({}) -{} np.sin({}*0.5) np.sqrt({}) np.log({}+3) {}*1j np.angle({})
{}**2 1/({}+2.5) np.tanh({}*0.4) np.sign({}) np.round({},1) np.cumsum({},axis=-1) {}[::-1] np.square({}) {}.copy()
{}.astype(np.complex64) np.fft.fft({}) np.fft.ifft({}) np.roll({},1) np.flip({}) {}.conj().T np.arctan({}*0.3+0.1)
np.cos({}) {}[[0,2,1,4,3]]
""".split()
TWO = """
{}+{} {}-{} {}*{} {}/({}+3) np.where(np.abs({})>1,{},0) np.maximum({},{}) np.add({},{}) np.hypot(np.abs({}),np.abs({}))
np.power({}*0.3+2,{}*0.2) np.multiply({},{})
""".split()
NUMBERS = """
{0}.sum() {0}.mean() np.vdot({0},{0}) np.linalg.norm({0}) {0}.std() np.prod({0}*0.5) np.trace(np.outer({0},{0}))
np.var({0}) (np.abs({0})**2).sum() np.nansum({0}) np.mean({0})*2j np.count_nonzero({0}) np.any({0}) np.dot({0},{0})
""".split()
WRITES = (
    "{v}[{i}] = {e}[{j}]*2", "{v}[1:] += {e}[:-1]", "{v} *= 1j", "{v}[{v}.real>0] = 0.5", "{v}.imag[:] = 1.5",
    "{v}.real[1:3] = {e}.real[:2]", "np.add({v},{e},out={v})", "{v}[::2] = {e}[::2].conj()",
    "{v} = {v} if {v}.shape[0]==5 else {v}*2", "np.add.at({v},[0,0,2],{e}[:3])", "{v}[-1] -= {e}.sum()", "{v} /= 2+1j",
)  # fmt: skip
WRITTEN = ("c", "d")


def written(seed: int) -> str:
    """The text of a program."""
    draw = random.Random(seed)
    lines, names = ["    c = a.copy()", "    d = np.zeros(5, complex)"], ["a", "b", "x", *WRITTEN]
    for number in range(draw.randint(3, 7)):
        if draw.random() < 0.35:
            own = {"v": draw.choice(WRITTEN), "e": draw.choice(names), "i": draw.randint(0, 4), "j": draw.randint(0, 4)}
            lines.append("    " + draw.choice(WRITES).format(**own))
            continue
        form = draw.choice(ONE if draw.random() < 0.55 else TWO)
        lines.append(f"    t{number} = " + form.format(*(draw.choice(names) for _ in range(form.count("{}")))))
        names.append(f"t{number}")
    results = [draw.choice(names), draw.choice(names), *(draw.choice(NUMBERS).format(draw.choice(names)) for _ in "12")]
    return "\n".join(["def program(a, b, x):", *lines, f"    return {', '.join([*results, *WRITTEN])}", ""])


def arguments(seed: int) -> tuple[Any, Any, Any]:
    """Two complex vectors, the first sometimes of complex64, and a real one."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=5) + 1j * rng.normal(size=5) for _ in "ab")
    return a.astype("complex64") if seed % 5 == 0 else a, b, rng.normal(size=5)


def difference(found: Any, wanted: Any, precision: float) -> str | None:
    """The first result that differs in dtype, shape or, beyond rounding, value; None where all agree."""
    for place, (left, right) in enumerate(zip(found, map(np.asarray, wanted), strict=True)):
        left = np.asarray(left)
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return f"result {place}: {left.dtype}{left.shape}, not {right.dtype}{right.shape}"
        scale = max(1.0, float(np.abs(np.where(np.isfinite(right), right, 0)).max(initial=0)))
        if not np.allclose(left, right, rtol=precision, atol=precision * scale, equal_nan=True):
            return f"result {place}: {left}, not {right}"
    return None


def tried(seed: int, mode: str) -> str | None:
    """The difference between a traced program and NumPy; None where there is none. Raises what graphc refuses."""
    space: dict[str, Any] = {"np": np}
    exec(compile(written(seed), f"<complex program {seed}>", "exec"), space)
    program: Callable[..., Any] = space["program"]
    given = arguments(seed)
    with np.errstate(all="ignore"):
        wanted = program(*(each.copy() for each in given))
        found = graphc.jit(program, mode=mode)(*given)
    single = any(np.asarray(each).dtype in (np.complex64, np.float32) for each in (*wanted, *given))
    # errors of a few units grow through six statements, quotients and powers among them
    return difference(found, wanted, 2.0**-15 if single else 2.0**-32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    differing = refused = 0
    for seed in range(asked.seed, asked.seed + asked.programs):
        try:
            told = tried(seed, "compiled" if seed % 8 == 0 else "interpreted")
        except GraphcError as error:
            refused += 1
            print(f"{seed}: refused: {error}")
            continue
        if told is not None:
            differing += 1
            print(f"{seed}: {told}\n{written(seed)}")
    print(f"{asked.programs} programs: {differing} differ, {refused} are refused")


if __name__ == "__main__":
    main()
