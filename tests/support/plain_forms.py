"""Statements of several lines for random programs: functions within functions, loops, errors that are caught, views of
views.

In: how to draw expressions, and the names that may be changed. Out: the lines of a statement that changes `name`, a
matrix.
"""
# ruff: noqa: E501 - programs as people write them

from __future__ import annotations

import random
from collections.abc import Callable


def lines_of(
    rng: random.Random, draw: Callable[[str], str], name: str, fresh: Callable[[str], str], writes: bool
) -> list[str]:
    """The lines of one statement. draw: an expression of a kind ("m", "v", "s", "i", "number", "question"); fresh: a
    name that is new, from its first letter; writes: it may write to arrays, and ask for values."""
    a, b, c, g, k = map(fresh, "abcgk")
    number, i, m, size = draw("number"), draw("i"), draw("m"), rng.randint(0, 4)

    def asked() -> str:
        return draw("question")

    of_sizes: list[Callable[[], list[str]]] = [
        lambda: [f"def {g}(q, k={number}):", "    q = q * k", f"    if q.shape[0] > {size}:", "        return q.sum(), q", "    return q.max(), q[::-1]", f"{a}, {b} = {g}({name})", f"{name} = {b} + {a}"],
        lambda: [f"def {g}(q, *, k=None):", f"    k = {m} if k is None else k", "    return q * k", f"{name} = {g}({name}) if {asked()} else {g}({name}, k={number})"],
        lambda: [f"def {g}(*rows, scale=1, **more):", "    return sum(rows[1:], rows[0]) * scale + sum(more.values())", f"{name} = {name} + {g}(*{name}, scale={number}, shift={i})"],
        lambda: [f"def {g}(q):", f"    return q.sum() if q.shape[0] <= {size} else {g}(q[1:]) + q[0].max()", f"{name} = {name} + {g}({name}[1:])"],
        lambda: [f"def {g}(q):", "    for row in q:", "        yield row * 2", f"{name} = xp.stack(list({g}({name})))"],
        lambda: [f"{a} = 0.0", f"def {g}(q):", f"    nonlocal {a}", f"    {a} = {a} + q.sum()", f"for row in {name}:", f"    {g}(row)", f"{name} = {name} * {a}"],
        lambda: [f"{k} = {i}", f"while {k} > 1:", f"    {k} = {k} // 2", f"    {name} = {name} * 0.5 + {k}"],
        lambda: [f"{k} = 0", f"while {k} < len({name}) and {k} < 3:", f"    {name} = {name} + {name}[{k}]", f"    {k} += 1", "    if " + asked() + ":", "        break", "else:", f"    {name} = -{name}"],
        lambda: [f"for {k} in range({name}.ndim, 4):", "    if " + asked() + ":", "        continue", f"    {name} = {name} + {k}"],
        lambda: ["try:", f"    {a}, {b} = {name}", f"    {name} = {name} + {a} * {b}", "except ValueError:", f"    {name} = {name} * 2"],
        lambda: ["try:", f"    {name} = {name} * {{2: 5, 3: 7}}[{i}]", "except KeyError:", f"    {name} = {name} - 1"],
        lambda: ["try:", f"    {name} = {name} * [2, 3, 4][{i}]", "except IndexError:", f"    {name} = {name} - 1"],
        lambda: [f"{a} = {{}}", "for q in (x, y, v):", f"    {a}[q.shape] = {a}.get(q.shape, 0) + 1", f"{name} = {name} * max({a}.values()) + len({a})"],
        lambda: [f"{a} = {{n: k for k, n in enumerate({name}.shape)}}", f"{name} = {name} * sum({a}.values()) + {a}.get({i}, {number})"],
        lambda: [f"{a} = sorted((x, v, {name}), key=lambda q: (q.ndim, q.size))", f"{name} = {name} * {a}[0].sum() + len([q for q in {a} if q.shape[-1] == {size}])"],
        lambda: [f"if ({k} := {i}) > {size}:", f"    {name} = {name} * {k}"],
        lambda: [f"({a}, {b}), {c} = ({name}, {m}), {i}", f"{name} = {b} * {c} + {a}"],
        lambda: [f"{a} = [{number}] * len({name})", f"{name} = {name} * xp.array({a})[:, None]"],
        lambda: [f"{a} = list(map(lambda row: row.sum() * {number}, {name}))", f"{name} = {name} + sum({a})"],
        lambda: [f"{a} = __import__('functools').reduce(lambda p, q: p * 0.5 + q, {name})", f"{name} = {name} + {a}"],
        lambda: [f"{g} = jit(lambda q: q * 2 if q.shape[0] > {size} else q + 1)", f"{name} = {g}({name}) + {g}({m}[:1]).sum()"],
        lambda: [f"{g} = jit(lambda q, n: {{'out': q * n, 'size': q.shape[0]}})", f"{a} = {g}({name}, {i})", f"{name} = {a}['out'] * {a}['size']"],
        lambda: [f"{name} = {name}.astype('int64') if {name}.dtype.kind == 'f' and {asked()} else {name} * 1.5"],
        lambda: [f"{a} = {name} > 0", f"{name} = {name} * ({a}.dtype == bool) + {a}.sum(dtype='int32') + xp.count_nonzero({a})"],
        lambda: [f"{a} = ({name} * 3).astype('int32')", f"{name} = {a} // 2 + {a} % 3 + {a}.sum()"],
    ]  # fmt: skip
    if not writes:
        return rng.choice(of_sizes)()
    view, other, third = (
        rng.choice(
            "[1:] [::-1] [::2] .T [:] .reshape(-1) .ravel() [None] [...,-1] [[0]] .swapaxes(0,-1) [:,:1] [0] [-1:] .real [...]".split()
        )
        for _ in "abc"
    )
    change = rng.choice(
        "{0} += 1|{0}[...] = 2|{0}[0] = 3|{0} *= {0}|{0}.sort()|np.negative({0}, out={0})|{0}[0] -= {1}|{0}.fill({1})|{0}[{0} > 0] = 1|np.add.at({0}, 0, 1)|{0}[:1] = {0}[-1:]|np.add({0}, {1}, {0})".split(
            "|"
        )
    )
    written: list[Callable[[], list[str]]] = [
        lambda: [f"{b} = {name}.copy()", f"{c} = {b}{view}", f"{a} = {c}{other}", change.format(a, number), change.format(c, 2), f"{name} = {name} * {b}.mean() + {a}.sum() - {c}.max()"],
        lambda: [f"{b} = {name}.copy()", f"{c} = {b}{view}", f"if {asked()}:", f"    {change.format(c, number)}", "else:", f"    {b}{other}[0] += 1", f"{name} = {name} + {c}.sum() - {b}.max()"],
        lambda: [f"{b} = {name} * 1", f"{a}, {c} = {b}{view}, {b}{other}", change.format(a, number), f"{name} = {name} + {c}.sum()", change.format(c, 1), f"{name} = {name} + {a}.sum() + {b}[0].sum()"],
        lambda: [f"{b} = {name} + 0", f"for {k} in range({name}.ndim):", f"    {c} = {b}{view}", f"    {change.format(c, k)}", f"{name} = {name} + {b}.sum()"],
        lambda: [f"def {g}(q, to):", f"    to = to{view}", f"    {change.format('to', number)}", "    return q + to.sum()", f"{b} = {name}.copy()", f"{name} = {g}({name}, {b}) + {b}"],
        lambda: [f"{b} = {name}.copy()", f"{g} = lambda: {b}.sum()", change.format(b, number), f"{name} = {name} * {g}()"],
        lambda: [f"{b} = {name}.copy()", f"{a} = iter({b})", change.format(b, number), f"{name} = {name} + next({a})"],
        lambda: [f"{b} = xp.zeros(({i}, 3))", f"for {k}, row in enumerate({b}):", f"    row += {k}", f"    row[{k} % 3] = {number}", f"{name} = {name} + {b}.sum()"],
        lambda: [f"{b} = {name}.copy()", f"np.multiply({b}[1:], 2, out={b}[1:])", f"np.add({b}[:-1], {b}[1:], out={b}[:-1])", f"{name} = {b}"],
        lambda: [f"{b} = {name}.copy()", f"{b}.sort(axis=0)", f"{b}[:, 0].sort()", f"{b}.T[::-1].sort()", f"{name} = {b}"],
        lambda: [f"{b} = xp.zeros(4)", f"np.add.at({b}, xp.arange({name}.shape[1]) % 2, v)", f"np.maximum.at({b}, [0, 3], {draw('s')})", f"{name} = {name} + {b}.sum() * {b}[0]"],
        lambda: [f"{b} = {{'w': {name}.copy(), 'n': 0}}", "for _ in range(2):", f"    {b}['w'][0] += {number}", f"    {b}['n'] += 1", f"{name} = {b}['w'] * {b}['n']"],
        lambda: [f"{b} = {name}.copy()", f"{b}[0], {b}[-1] = {b}[-1] * 1, {b}[0] * 1", f"{b}[:, 0], {b}[:, -1] = {b}[:, -1], {b}[:, 0].copy()", f"{name} = {b}"],
        lambda: [f"{c} = 0", f"while {draw('s')} > 0.5 and {c} < 3:", f"    {c} += 1", f"    {name} = {name} * 0.5"],
        lambda: [f"{g} = jit(lambda q: [q.sort(), q][1])", f"{name} = {g}({name}.copy()) + {name}"],
        lambda: ["@jit", f"def {g}(q):", "    to = xp.zeros_like(q)", f"    {change.format('to', number)}", "    return to + q", f"{name} = {g}({name})"],
        lambda: [f"{b} = {name}.copy()", f"{c} = {b}{view}{other}{third}", change.format(c, number), f"{name} = {b} * 1"],
        lambda: [f"{b} = xp.array([[1, 2, 3], [4, 5, 6]])", f"{b}[{b} % 2 == 0] = {i}", f"{b} //= 2", f"{name} = {name} + {b}.sum()"],
        lambda: [f"{b} = {name} > 0", f"{b} |= {name} < -1", f"{b}[0] ^= True", f"{name} = xp.where({b}, {name}, {number})"],
        lambda: [f"{b} = {name}.copy()", "try:", f"    {a} = {b}{view}", f"    {change.format(a, number)}", "except (ValueError, IndexError):", f"    {b} = {b} - 1", f"{name} = {b}"],
    ]  # fmt: skip
    return rng.choice(of_sizes + 2 * written)()
