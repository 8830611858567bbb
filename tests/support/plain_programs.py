"""Random small programs for arrays that ask, branch and write, as NumPy's users write them.

In: a random generator. Out: the text of a function `f(x, y, v)` of two matrices of one shape and a vector of as many
columns, whose questions are of sizes, dtypes and values; `xp` stands for NumPy or for graphc's functions of its names.
"""
# ruff: noqa: E501, SIM, PLR2004 - programs as people write them

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from tests.support.plain_forms import lines_of

T = TypeVar("T")
Kind = str
"""m: a matrix, v: a vector of its columns, w: of its rows, s: a scalar of NumPy's, i: a size, d: a dtype."""

ARRAYS = ("m", "v", "w")


class Writer:
    """Writes one program: `lines`, and the names that are bound so far by their kinds. of_sizes: it asks for nothing
    but sizes and dtypes, and writes to no array."""

    def __init__(self, rng: random.Random, of_sizes: bool = False) -> None:
        self.rng = rng
        self.of_sizes = of_sizes
        self.names: dict[Kind, list[str]] = {"m": ["x", "y"], "v": ["v"], "w": [], "s": [], "i": []}
        self.lines: list[str] = []
        self.fresh = count()
        self.changed: list[str] = []

    def value(self, kind: Kind, depth: int = 2) -> str:
        """An expression of a kind."""
        known = self.names.get(kind, [])
        if known and (depth <= 0 or self.rng.random() < 0.35):
            return self.rng.choice(known)
        return str(getattr(self, f"{kind}_value")(depth - 1))

    def m_value(self, depth: int) -> str:
        def m() -> str:
            return self.value("m", depth)

        def s() -> str:
            return self.value("s", depth)

        def v() -> str:
            return self.value("v", depth)

        return self.pick(
            lambda: f"({m()} + {m()})", lambda: f"({m()} * {self.number()})", lambda: f"xp.exp(-{m()} ** 2)",
            lambda: f"({m()} * {s()})", lambda: f"({m()} + {v()})", lambda: f"xp.where({m()} > 0.5, {m()}, 0.0)",
            lambda: f"xp.zeros_like({m()})", lambda: f"{m()}.copy()", lambda: f"{m()}[::-1]",
            lambda: f"{m()}.reshape({m()}.shape)", lambda: f"({m()} * {self.value('i', depth)})",
            lambda: f"{m()}.astype({self.value('d', depth)})", lambda: f"xp.ones({m()}.shape[:1] + {m()}.shape[1:])",
            lambda: f"(np.zeros({m()}.shape) + {m()})", lambda: f"(np.ones(len({m()}))[:, None] * {m()})",
            lambda: f"xp.stack([row * 2 for row in {m()}])", lambda: f"xp.stack(list({m()}))",
        )  # fmt: skip

    def v_value(self, depth: int) -> str:
        return self.pick(
            lambda: f"{self.value('m', depth)}.sum(axis=0)", lambda: f"{self.value('m', depth)}[0]",
            lambda: f"({self.value('v', depth)} * {self.number()})", lambda: f"xp.sort({self.value('v', depth)})",
            lambda: f"({self.value('m', depth)}[-1] + {self.value('v', depth)})",
        )  # fmt: skip

    def w_value(self, depth: int) -> str:
        return self.pick(
            lambda: f"{self.value('m', depth)}.mean(axis=1)", lambda: f"{self.value('m', depth)}[:, 0]",
            lambda: f"({self.value('m', depth)} @ {self.value('v', depth)})",
        )  # fmt: skip

    def s_value(self, depth: int) -> str:
        array = self.value(self.rng.choice(ARRAYS), depth)

        def s() -> str:
            return self.value("s", depth) if depth > 0 else f"{array}.sum()"

        of_python = [
            lambda: f"max({s()}, {s()})", lambda: f"min({s()}, {array}.max(), {s()})", lambda: f"max({self.value('v', depth)})",
            lambda: f"({array}.sum() * math.sqrt(abs({s()})))", lambda: f"(math.atan2({s()}, 2) + {array}.mean())",
            lambda: f"({array}.mean() * math.exp(-abs({s()})))", lambda: f"min(map(max, {self.value('v', depth)}, {self.value('v', depth)}))",
        ]  # fmt: skip
        return self.pick(
            lambda: f"{array}.sum()", lambda: f"{array}.max()", lambda: f"{self.value('v', depth)}[0]",
            lambda: f"{array}.mean() / {self.value('i', depth)}", lambda: f"({self.value('s', depth)} + 1)",
            *([] if self.of_sizes else of_python),
        )  # fmt: skip

    def i_value(self, depth: int) -> str:
        array, m = self.value(self.rng.choice(ARRAYS), depth), self.value("m", depth)

        def i() -> str:
            return self.value("i", depth) if depth > 0 else f"{m}.shape[0]"

        return self.pick(
            lambda: f"{array}.shape[0]", lambda: f"{m}.shape[1]", lambda: f"{array}.size", lambda: f"{array}.ndim",
            lambda: f"len({array}.shape)", lambda: f"({i()} + {self.rng.randint(0, 3)})", lambda: f"({i()} * 2)",
            lambda: f"len({array})", lambda: f"max({i()}, 3)", lambda: f"min({m}.shape)", lambda: f"({i()} // 2)",
            lambda: f"{m}.shape[::-1][0]", lambda: f"len({array}.shape + (1, 2))", lambda: f"sum({m}.shape)",
            lambda: f"{m}.shape.index({self.rng.randint(2, 4)})", lambda: f"{m}.shape.count({self.rng.randint(2, 4)})",
            lambda: f"({m}.shape * 2)[3]", lambda: f"sorted({m}.shape)[0]", lambda: f"int({i()})",
            lambda: f"{{2: 5, 3: 7, 4: 11}}.get({i()}, 13)", lambda: f"{{True: 2, False: 3}}[{self.question(depth)}]",
            lambda: f"(5 if {self.question(depth)} else 6)", lambda: f"len({{{m}.shape[0], {m}.shape[1]}})",
            lambda: f"{{np.dtype('float32'): 2, np.dtype('float64'): 3}}.get({m}.dtype, 4)",
            lambda: f"{m}.dtype.itemsize", lambda: f"{{'f': 4, 'i': 5}}[{m}.dtype.kind]",
            lambda: f"int(np.prod({m}.shape) > 0)", lambda: f"(({i()} == {i()}) + 1)", lambda: f"xp.shape({m})[0]",
            lambda: f"len([0] * {i()})", lambda: f"divmod({i()}, 2)[0]", lambda: f"int({i()} / 2)", lambda: f"len('abcd'[:{i()}])",
            lambda: f"int(np.sqrt({i()}))", lambda: f"max(range({i()} + 1))", lambda: f"int(format({i()}, '03d'))",
            lambda: f"len(xp.squeeze({m}[None]).shape)", lambda: f"sum(1 for a, b in zip({m}, {m}[1:]))",
            lambda: f"abs({i()} - 3)", lambda: f"int(np.finfo({m}.dtype).bits)", lambda: f"[2, 3, 4].index({i()})",
        )  # fmt: skip

    def d_value(self, depth: int) -> str:
        return self.pick(
            lambda: f"{self.value('m', depth)}.dtype", lambda: "np.float64", lambda: "'float64'",
            lambda: f"np.result_type({self.value('m', depth)}.dtype, np.float32)",
        )  # fmt: skip

    def question(self, depth: int) -> str:
        """What has a truth."""
        array, m = self.value(self.rng.choice(ARRAYS), depth), self.value("m", depth)
        i, s = self.value("i", depth), self.value("s", depth)
        relation = self.rng.choice("== != < <= > >=".split())
        size = self.rng.randint(-1, 5)
        of_sizes = [
            lambda: f"{i} {relation} {size}", lambda: f"{i} {relation} {self.value('i', depth)}",
            lambda: f"{i} in (2, 3)", lambda: f"{i} not in [3, 4]", lambda: f"{i} in {{2, 5}}", lambda: f"not {i}",
            lambda: f"{m}.shape == ({size}, 3)", lambda: f"{m}.shape != {self.value('m', depth)}.shape",
            lambda: f"{array}.shape == (3,)", lambda: f"1 < {i} <= {size}",
            lambda: f"{m}.dtype {self.rng.choice(['==', '!='])} {self.value('d', depth)}",
            lambda: f"{m}.dtype in (np.float32, np.int64)", lambda: f"np.issubdtype({m}.dtype, np.floating)",
            lambda: f"{array}.ndim == 2", lambda: f"{m}.dtype.kind in 'iu'", lambda: f"isinstance({m}.shape, tuple)",
            lambda: f"any(n == 3 for n in {m}.shape)", lambda: f"all(n >= 0 for n in {m}.shape)",
            lambda: f"{i} == -1 or {i} >= 0", lambda: f"{m}.shape[0] == {m}.shape[0]",
            lambda: f"{m}.dtype is np.dtype('float64')", lambda: f"{i} is None", lambda: f"{i} / 2 > 1.5",
            lambda: f"{i} % 2 == 0", lambda: f"hash({i}) == 3", lambda: f"{i} == 2.5", lambda: f"{m}.dtype == 'float32'",
            lambda: f"({i} > 1) & ({self.value('i', depth)} < 4)", lambda: f"{i} < 2.5", lambda: f"({i} > 2) == ({i} < 4)",
        ]  # fmt: skip
        of_values = [
            lambda: f"{s} {relation} 0.5", lambda: f"{s} in (0.0, 1.0)", lambda: f"({array} > 0).any()",
            lambda: f"np.allclose({array}, {array})", lambda: f"bool({s} > 1)", lambda: f"{s} == {s}",
        ]  # fmt: skip
        return self.pick(*of_sizes, *([] if self.of_sizes else of_values))

    def number(self) -> str:
        return self.rng.choice(["2", "0.5", "-1", "1.5"])

    def pick(self, *ways: Callable[[], T]) -> T:
        return self.rng.choice(ways)()

    def statement(self, indent: str, depth: int) -> None:
        """Write a statement."""
        kind = self.rng.choice(("m", "m", "v", "w", "s", "i"))
        roll = self.rng.random()
        if roll < 0.4:
            self.bind(indent, kind, self.value(kind))
        elif roll < 0.48:  # another name of one array, or a view of it
            name = self.rng.choice(self.names["m"])
            self.bind(indent, *self.rng.choice([("m", name), ("m", f"{name}[:]"), ("v", f"{name}[0]")]))
        elif roll < 0.6:
            self.form(indent)
        elif roll < 0.7 and depth:
            self.branch(indent, depth)
        elif roll < 0.78 and depth:
            self.loop(indent)
        elif roll < 0.9 and not self.of_sizes:
            self.accumulate(indent)
        elif not self.of_sizes:
            self.write(indent)
        else:
            self.bind(indent, kind, self.value(kind))

    def form(self, indent: str) -> None:
        """Write a statement of several lines (`plain_forms.py`)."""

        def draw(kind: str) -> str:
            return (
                self.number() if kind == "number" else self.question(1) if kind == "question" else self.value(kind, 1)
            )

        made = lines_of(
            self.rng, draw, self.rng.choice(self.names["m"]), lambda a: f"{a}{next(self.fresh)}", not self.of_sizes
        )
        self.lines += [f"{indent}    {line}" for line in made]

    def accumulate(self, indent: str) -> None:
        """Change an array in place, which may have another name, a view, a container or a function that holds it."""
        kind = self.rng.choice(ARRAYS)
        name, operator = f"{kind}{next(self.fresh)}", self.rng.choice("+ - * / ** // % @ & | ^ << >>".split())
        given = "({} > 0.5)" if operator in "&|^" else "({} * 4).astype(int)" if operator in ("<<", ">>") else "{}"
        made = self.pick(
            lambda: self.value(kind), lambda: f"{self.value(kind)} + 1", lambda: f"xp.zeros_like({self.value(kind)})",
            lambda: f"xp.abs({self.value(kind)})", lambda: f"xp.stack([{self.value('v')}, {self.value('v')}])",
            lambda: "xp.ones((3, 2))", lambda: "xp.full(3, 1.5)", lambda: "xp.arange(4)", lambda: f"{self.value(kind)}.copy()",
            lambda: f"{self.value('m')} @ {self.value('v')}", lambda: f"{self.value('m')}[[0, 1]]", lambda: f"{self.value(kind)}.T",
            lambda: f"{self.value(kind)}.astype('float32')", lambda: f"{self.value('m')}.max(axis=1)", lambda: f"{self.value(kind)}[:1] * 2",
        )  # fmt: skip
        by = self.pick(
            self.number, self.number, lambda: "2", lambda: self.value(kind, 1), lambda: self.value("s", 1), lambda: name,
            lambda: self.value(self.rng.choice(ARRAYS), 1), lambda: f"{name}.sum()", lambda: f"{name}.max(axis=0)", lambda: f"{name}.T",
            lambda: "np.array([1.0, 2.0])", lambda: f"{name}[0]", lambda: f"{self.value('m', 1)}.T @ {self.value('m', 1)}",
        )  # fmt: skip
        if given != "{}":
            by = self.pick(lambda: "True" if operator in "&|^" else "1", lambda: given.format(by), lambda: name)
        change = f"{name} {operator}= {by}"
        other = f"o{next(self.fresh)}"
        lines = self.pick(
            lambda: [change], lambda: [change], lambda: [change], lambda: [change, change],
            lambda: [f"for k in range(3): {name} {operator}= {by if name in by else self.rng.choice([by, f'{by} + k'])}"],
            lambda: [f"{other} = {name}", change], lambda: [f"{other} = {name}[0]", change], lambda: [f"{other} = [{name}]", change],
            lambda: [f"{other} = {name}.T", change], lambda: [f"{other} = xp.ravel({name})", change], lambda: [f"{other} = {name}.sum()", change],
            lambda: [f"{other} = xp.asarray({name})", change], lambda: [f"{other} = {name} * 1", change], lambda: [f"{other} = {name}.copy()", change],
            lambda: [f"{other} = lambda q={name}: q", change, f"{other} = {other}()"],
            lambda: [f"{other} = lambda: {name}", change, f"{other} = {other}()"],
            lambda: [f"{other} = {{'k': {name}}}", f"{other}['k'] {operator}= {by}", f"{other} = {other}['k']"],
            lambda: [f"for {other} in [{name}]: {other} {operator}= {by}"], lambda: [f"for {other} in {name}: {other} += 1"],
            lambda: [f"{other} = xp.stack([{name}, {name}])", f"{name} = {other}[0]", change],
            lambda: [f"{other} = xp.stack([{name}, {name}])", f"{name} = {other}[0]", f"{other} *= 2"],
            lambda: [f"{other} = [q for q in [{name}] if q is not None][0]", change],
            lambda: [f"{other} = (lambda q: q)({name})", change], lambda: [f"def {other}(q): q {operator}= 2; return q", f"{other} = {other}({name})"],
            lambda: [f"def {other}(q): q += 2; return q", f"{other} = {other}({name} * 1)"],
            lambda: [f"{other} = xp.squeeze({name})", change], lambda: [f"{other} = xp.where({name} > 0, {name}, 0)", change],
            lambda: [f"{other} = {name}.real", change], lambda: [f"{other}, *_ = {name}", change], lambda: [f"{other} = xp.broadcast_to({name}, (2, *{name}.shape))", change],
            lambda: [f"{other} = xp.diagonal({name}) if {name}.ndim == 2 else {name}[:2]", change],
            lambda: [f"{other} = {name}.reshape(-1)", f"{other} *= 2"], lambda: [f"{other} = {name}; del {name}; {name} = {other} + 0; {name} -= 1"],
            lambda: [f"{other} = xp.swapaxes({name}, 0, -1)", f"{other}.sum()", change], lambda: [f"{name}[0] + 0; {other} = {name}[0]; {other} += 1"],
            lambda: [f"{other} = xp.split({name}, 1)[0]", change], lambda: [f"{other} = __import__('operator').iadd({name}, 1)"],
            lambda: [f"{other} = {name}[None][0]", change], lambda: [f"{other} = {name}[[0]]", change], lambda: [f"{other} = xp.expand_dims({name}, 0)[0]", change],
            lambda: [f"{other} = xp.einsum('i...->i...', {name})", change], lambda: [f"{other} = xp.flip(xp.flip({name}, 0), 0)", change],
            lambda: [f"{other} = type('C', (), {{}})(); {other}.x = {name}; {other}.x += 1; {other} = {other}.x"],
            lambda: [f"{other} = {name}.T.T", f"{other} += 1"], lambda: [f"{other} = (q for q in [{name}])", change, f"{other} = next({other})"],
            lambda: [f"{other} = xp.concatenate([{name}, {name}])", f"{name} = {other}[:1]", f"{other} += 1"],
        )  # fmt: skip
        self.lines.append(f"{indent}    {name} = {given.format(f'({made})')}")
        self.lines += [f"{indent}    {line}" for line in lines]
        if not indent:
            self.changed += [
                each
                for each in (name, other)
                if any(f"{each} =" in line or f"{each} {operator}=" in line for line in self.lines[-len(lines) - 1 :])
            ]

    def bind(self, indent: str, kind: Kind, text: str) -> None:
        if self.rng.random() < 0.25 and self.names[kind] and not indent:
            name = self.rng.choice(self.names[kind])
        else:
            name = f"{kind}{next(self.fresh)}"
        self.lines.append(f"{indent}    {name} = {text}")
        if not indent and name not in self.names[kind]:
            self.names[kind].append(name)

    def branch(self, indent: str, depth: int) -> None:
        form = self.rng.choice(("if", "if", "assert", "match"))
        if form == "assert":
            self.lines.append(f"{indent}    assert {self.question(1)} or True")
            return
        name = self.rng.choice(self.names["m"])
        if form == "match":
            self.lines.append(f"{indent}    match {name}.{self.rng.choice(['shape', 'dtype.kind', 'ndim'])}:")
            pattern = self.rng.choice(["(3, _)", "(a, 3)", "2", "'f'", "(a, b) if a == b"])
            self.lines.append(f"{indent}        case {pattern}: {name} = {name} * 2")
            self.lines.append(f"{indent}        case _: {name} = {name} - 1")
            return
        self.lines.append(f"{indent}    if {self.question(1)}:")
        self.lines.append(f"{indent}        {name} = {self.value('m', 1)}")
        if self.rng.random() < 0.5:
            self.lines.append(f"{indent}    else:")
            self.statement(indent + "    ", depth - 1)

    def loop(self, indent: str) -> None:
        name = self.rng.choice(self.names["m"])
        self.lines.append(
            indent + "    " + self.pick(
                lambda: f"for row in {name}: {name} = {name} + row",
                lambda: f"for n in {name}.shape: {name} = {name} * n",
                lambda: f"for k in range({name}.ndim): {name} = {name} + k",
                lambda: f"for k in range({name}.shape[0]): {name} = {name} * 2",
                lambda: f"a, b = {name}.shape; {name} = {name} * a - b",
                lambda: f"for row, other in zip({name}, x): {name} = {name} + other",
                lambda: f"a, *b = {name}; {name} = {name} + a",
                lambda: f"{name} = sum([{name}] * {name}.ndim)",
                lambda: f"for k, row in enumerate({name}): {name} = {name} + row * k",
                lambda: f"a, b = {name}[:2]; {name} = {name} + a - b",
                lambda: f"{name} = {name} + sum({name}[k, 0] for k in range(len({name})))",
                lambda: f"first, *_ = zip(*{name}, strict=True); {name} = {name} + xp.stack(first)[0]",
                lambda: f"def g(*rows): return rows[-1]\n{indent}    {name} = {name} * g(*{name})",
            )
        )  # fmt: skip

    def write(self, indent: str) -> None:
        kind = self.rng.choice(("m", "m", "v"))
        name = self.rng.choice(self.names[kind])
        number = self.number()
        self.lines.append(
            indent + "    " + self.pick(
                lambda: f"{name}[0] = {number}", lambda: f"{name} += {number}", lambda: f"{name} *= {self.value(kind, 1)}",
                lambda: f"{name}.sort()", lambda: f"{name}.fill({number})", lambda: f"{name}[..., 0] += 1",
                lambda: f"np.add({name}, 1, out={name})", lambda: f"{name}.shape = (-1,)", lambda: f"{name}.flat[0] = 9",
                lambda: f"np.copyto({name}, 3)", lambda: f"np.add.at({name}, 0, 1)", lambda: f"np.subtract.at({name}, [0, 1, 0], 1)",
                lambda: f"{name}.put([0], [5])", lambda: f"np.put({name}, [0], [5])", lambda: f"{name}.real = 2",
                lambda: f"{name}.T[0] = 7", lambda: f"np.negative({name}, {name})", lambda: f"{name}.clip(0, 1, out={name})",
                lambda: f"b = np.zeros(3); b[0] = {name}.sum(); {name} = {name} * b[0]", lambda: f"{name}.real[0] = 4",
                lambda: f"{name}.resize((2, 2), refcheck=False)", lambda: f"np.fill_diagonal({name}, 1)",
                lambda: f"{name}[{name} > 0] = 0", lambda: f"{name} = {name}.copy(); {name} -= 1",
                lambda: f"b = [{name}]; b[0] = b[0] + 1; {name} = b[0]", lambda: f"b = {name}; b -= 1",
                lambda: f"b = {{'k': {name}}}; b['k'] *= 2", lambda: f"np.sort({name})", lambda: f"np.random.default_rng(0).shuffle({name})",
                lambda: f"{name}.dtype = 'int64'", lambda: f"{name}.swapaxes(0, -1)[0] += 1", lambda: f"{name}.ravel()[0] = 3",
                lambda: self.through_views(name, kind), lambda: self.through_views(name, kind), lambda: self.through_views(name, kind),
            )
        )  # fmt: skip

    def through_views(self, name: str, kind: Kind) -> str:
        """Write to an array by a view, another name, a function or a loop; or to a new one."""
        b, c, number, s = f"b{next(self.fresh)}", f"c{next(self.fresh)}", self.number(), self.value("s", 0)
        view = self.pick(
            lambda: "[1:]", lambda: "[::-1]", lambda: "[::2]", lambda: ".T", lambda: "[:]", lambda: ".reshape(-1)", lambda: ".ravel()",
            lambda: ".reshape(-1, 1)", lambda: "[None]", lambda: "[..., -1]", lambda: "[[0, 1]]", lambda: ".real", lambda: ".swapaxes(0, -1)",
            lambda: ".flat", lambda: ".copy()", lambda: ".squeeze()", lambda: "[0]", lambda: ".T.T[1:]", lambda: "[1:][::-1]", lambda: ".T.reshape(-1)",
            lambda: "[..., None]", lambda: ".flatten()", lambda: ".astype('float32')", lambda: "[...]", lambda: "[:1, ...]",
        )  # fmt: skip
        made = self.pick(
            lambda: f"{name}{view}", lambda: f"{name}{view}", lambda: f"xp.flip({name}, 0)", lambda: f"xp.transpose({name})",
            lambda: f"xp.split({name}, 1)[0]", lambda: f"xp.asarray({name})", lambda: f"xp.atleast_2d({name})", lambda: f"xp.moveaxis({name}, 0, -1)",
            lambda: f"xp.expand_dims({name}, 0)", lambda: f"xp.squeeze({name})", lambda: f"xp.array({name})", lambda: f"xp.rot90(xp.atleast_2d({name}))",
            lambda: f"xp.broadcast_to({name}, (2, *{name}.shape))", lambda: f"xp.diag(xp.atleast_2d({name}))", lambda: f"xp.asarray({name}, dtype='float32')",
        )  # fmt: skip
        change = self.pick(
            lambda: f"{b}[0] = {number}", lambda: f"{b} += {number}", lambda: f"{b} *= {b}", lambda: f"{b}[...] = {s}", lambda: f"{b}[1:] += {b}[:-1]",
            lambda: f"{b}[{b} > 0] = {number}", lambda: f"{b}[-1] -= {s}", lambda: f"{b}.fill({number})", lambda: f"np.negative({b}, out={b})",
            lambda: f"{b}[0], {b}[1] = {b}[1], {b}[0]", lambda: f"{b}[[0, 0, 1]] += 1", lambda: f"xp.exp(-{b} ** 2, out={b})", lambda: f"{b}.sort()",
            lambda: f"{name}[0] = {number}", lambda: f"{name} += 1", lambda: f"{b}[:2] = {b}[::-1][:2]",
        )  # fmt: skip
        return self.pick(
            lambda: f"{b} = {made}; {change}; {name} = {name} + {b}.sum()",
            lambda: f"{b} = {made}; {change}; {name} = {name} * {b}.mean()",
            lambda: f"{b} = {made}; {c} = {b} * 1; {change}; {name} = {name} + {b}.max() - {c}.sum()",
            lambda: f"{b} = {made}; {c} = {b}[1:]; {change}; {c}[0] = 9; {name} = {name} + {c}.sum()",
            lambda: f"{name}[1:] += {name}[:-1]", lambda: f"{name}[0], {name}[1] = {name}[1], {name}[0]", lambda: f"{name}[[0, 1]] = {name}[[1, 0]]",
            lambda: f"for k in range(2): {name}[k] = {name}[k] * k + {name}[k - 1]", lambda: f"for k in range(2): {name}[..., k] += {name}[0].sum()",
            lambda: f"{b} = xp.zeros(4); {b}[0] = {s}; {b}[2:] += {b}[0] + 1; {name} = {name} + {b}.sum()",
            lambda: f"{b} = xp.zeros((2, 3)); {b}[0, 1] = {s}; {b}.T[2] = 5; {c} = {b}.ravel(); {c}[-1] = {s}; {name} = {name} * {b}.sum()",
            lambda: f"{b} = xp.ones(5); {b}[1:] = {b}[:-1] * {s}; {b}[1:] = {b}[:-1] + {s}; {name} = {name} + {b}[-1]",
            lambda: f"{b} = {name} > 0; {b}[0] = True; {name} = xp.where({b}, {name}, 1.5)",
            lambda: f"{b} = ({name} * 3).astype('int64'); {b}[0] = {s}; {b} += 1; {b}[1:] = 2.9; {name} = {name} + {b}",
            lambda: f"xp.multiply({name}, 2, out={name})", lambda: f"np.exp({name}, out={name}, where={name} < 0)", lambda: f"xp.clip({name}, 0, 1, out={name})",
            lambda: f"np.place({name}, {name} > 0, [1, 2, 3])", lambda: f"np.putmask({name}, {name} > 0, [1.5, 2.5])", lambda: f"np.copyto({name}, 2, where={name} > 1)",
            lambda: f"np.put_along_axis({name}, xp.argmax({name}, axis=-1, keepdims=True), 9, axis=-1)", lambda: f"{name}.flat[1:] = {number}",
            lambda: f"{b} = np.add({name}, 1, out={name}); {b}[0] = 3", lambda: f"np.cumsum({name}, axis=0, out={name})", lambda: f"{name}[{name} < 0] += 1",
            lambda: f"{b} = lambda q: q.fill({number}); {b}({name}[0])", lambda: f"{b} = [{name}, {name}]; {b}[0][0] = 2; {b}[1] *= 2",
            lambda: f"{b}, {c} = {name}[:1], {name}[1:]; {b} += 1; {c} *= {b}[0]", lambda: f"{name}.real[0] = 2; {name}.flat = 1",
        )  # fmt: skip


def program(rng: random.Random, of_sizes: bool = False) -> str:
    """The text of one program. of_sizes: as of `Writer`."""
    writer = Writer(rng, of_sizes)
    if not of_sizes and rng.random() < 0.6:
        writer.lines.append(
            f"    x, y, v = {rng.choice(['x.copy(), y.copy(), v.copy()', 'x * 1, xp.array(y), v + 0', '1 * x, y.copy(), v * 1'])}"
        )
    for _ in range(rng.randint(1, 4)):
        writer.statement("", 2)
    results = [rng.choice(writer.names[kind]) for kind in ("m", "v", "s", "i", "w") if writer.names[kind]]
    results = rng.sample(results, min(len(results), 3)) + writer.changed
    writer.lines.append(f"    return {', '.join(results)},")
    text = "def f(x, y, v):\n" + "\n".join(writer.lines) + "\n"
    return text.replace("xp.", "np.") if rng.random() < 0.5 else text
