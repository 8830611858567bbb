"""What editors and type checkers know of a user's program: what is wrong in it, and what is right.

The stubs of tensors are written from the tables, by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, and are never behind.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import tensor
from graphc.ir.symbol import FUNCTIONS, METHODS
from graphc.ops.elementwise import ROWS
from graphc.options import OPTIONS, options
from graphc.tensor import elementary
from tests.support.array_stubs import NUMPY, stub_of

PACKAGE = Path(graphc.__file__ or "").parent
HEAD = '''"""{doc}

Written from the tables by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, for editors and type checkers alone.
"""

{imports}

'''
LONGEST = 120


class Text(str):
    """Text that stands for itself in a signature."""

    __slots__ = ()
    __repr__ = str.__str__


def shown(value: Any) -> Any:
    return Text(f'"{value}"') if isinstance(value, str) else value


def is_row(function: Callable[..., Any]) -> bool:
    """Whether a function is what the table makes of a row, which takes any operands and counts them itself."""
    return "operands" in inspect.signature(function).parameters


def stub(name: str, function: Callable[..., Any], indent: str = "", first: str | None = None) -> str:
    """The signature of a function and the first line of its docstring; `first` is the name of its first parameter."""
    signature = inspect.signature(function)
    parameters = [
        p.replace(annotation=Text(p.annotation), default=shown(p.default)) for p in signature.parameters.values()
    ]
    if is_row(function):
        kind = inspect.Parameter.POSITIONAL_ONLY
        arity = ROWS[function.__name__].arity
        parameters = [inspect.Parameter(x, kind, annotation=Text("Any")) for x in "xyz"[:arity]]
    if first is not None:
        parameters[0] = inspect.Parameter(first, parameters[0].kind)
    written = signature.replace(parameters=parameters, return_annotation=Text(signature.return_annotation))
    head = f"{indent}def {name}{written}:"
    if len(head) > LONGEST:
        taken, _, result = str(written)[1:].rpartition(") -> ")
        if len(indent) + 4 + len(taken) > LONGEST:
            taken = ",".join(f"\n{indent}    {each}" for each in taken.split(", ")).strip() + ","
        head = f"{indent}def {name}(\n{indent}    {taken}\n{indent}) -> {result}:"
    line, _, _ = (function.__doc__ or "").partition("\n")
    return f'{head}\n{indent}    """{line}"""\n'


def methods() -> str:
    """graphc/ir/methods.pyi"""
    doc = "The methods of tensors, from `METHODS` and `FUNCTIONS` (node.py)."
    imports = "from collections.abc import Mapping\nfrom typing import Any\n\nfrom graphc.ir.node import Array, Node"
    listed = (
        stub(name, FUNCTIONS.get(METHODS[name]) or getattr(tensor, METHODS[name]), "    ", "self")
        for name in sorted(METHODS)
    )
    described = 'class Methods:\n    """Methods of tensors."""\n\n'
    return HEAD.format(doc=doc, imports=imports) + described + "\n".join(listed)


def rows() -> str:
    """graphc/tensor/rows.pyi"""
    doc = "The functions that rows of the table `ops/scalar.py` make (elementary.py)."
    imports = "from typing import Any\n\nfrom graphc.ir.node import Node"
    listed = (stub(name, FUNCTIONS[name]) for name in sorted(ROWS) if is_row(getattr(elementary, name)))
    return HEAD.format(doc=doc, imports=imports) + "\n".join(listed)


def numpy_names() -> str:
    """graphc/numpy/names.pyi"""
    return stub_of(graphc.numpy, np)


def linalg_names() -> str:
    """graphc/numpy/linalg_names.pyi"""
    return stub_of(graphc.numpy.linalg, np.linalg)


def fft_names() -> str:
    """graphc/numpy/fft_names.pyi"""
    return stub_of(graphc.numpy.fft, np.fft)


def random_names() -> str:
    """graphc/random/names.pyi"""
    return stub_of(graphc.random, graphc.random)


def scipy_names(module: str) -> Callable[[], str]:
    """The stub of a module of graphc/scipy."""
    found = importlib.import_module(f"graphc.scipy.{module}")
    return lambda: stub_of(found, found)


STUBS: dict[str, Callable[[], str]] = {
    "ir/methods.pyi": methods,
    "tensor/rows.pyi": rows,
    "numpy/names.pyi": numpy_names,
    "numpy/linalg_names.pyi": linalg_names,
    "numpy/fft_names.pyi": fft_names,
    "random/names.pyi": random_names,
    "scipy/special/names.pyi": scipy_names("special"),
    "scipy/linalg_names.pyi": scipy_names("linalg"),
}


@pytest.mark.parametrize("file", STUBS)
def test_the_stubs_are_those_of_the_tables(file: str) -> None:
    path, write = PACKAGE / file, STUBS[file]
    said = path.read_text("utf-8") if path.exists() else ""
    if file.startswith("numpy/") and f"NumPy {NUMPY}." not in said and not os.environ.get("GRAPHC_UPDATE"):
        pytest.skip("the stub is of another NumPy's names")
    if os.environ.get("GRAPHC_UPDATE"):
        path.write_text(write(), "utf-8")
    assert path.read_text("utf-8") == write()


GOOD = """
import numpy as np

import graphc
import graphc.lax
import graphc.nnet
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax, optim
from graphc.scipy import linalg, special, stats

x, y = T.dmatrix("x"), T.dvector("y")
w = graphc.shared(np.zeros(3), name="w", shape=(3,))
z = (x - x.mean(axis=0, keepdims=True)) ** 2 + 1 - 2 / (1 + abs(-x))
a = x.T @ x + 1 % x[0, :, None] - x[1:].sum(0)
b = T.where((x == 0) | (x > 1), T.exp(x), x.clip(0, 1)).astype("float32").reshape((-1,)).max()
c = x.dimshuffle("x", 0, 1)[0].set(1.0).std().sqrt() + x[1:].inc(x[1:]).shape[0] + x.size + x.ndim
q, r = divmod(x, 2)
for row in T.ones((2, 3)):
    b = b + row.sum()
values = x.eval({x: np.ones((2, 2))}).tolist()
cost = T.sqr(T.dot(x, w) - y).mean()
updates = optim.adam(cost, w, learning_rate=0.1)
f = graphc.function([x, graphc.In(y, mutable=True)], [cost, b], updates=updates, threads=2)
density = stats.norm(0.0, 1.0).logpdf(y).sum() + special.logsumexp(y, axis=0) + linalg.norm(y, ord=2)
print(f(np.ones((2, 3)), y=np.ones(2)), f.text, f.source, f.assembly, f.explain(), f.memory((2, 3), (2,)).total)
print(f.name, f.mode, f.profile, f.shared[0].get_value(borrow=True), w.default_update)
f.free()


@graphc.jit
def scaled(values: np.ndarray, factor: float = 2.0) -> np.ndarray:
    norms = jnp.linalg.norm(values, axis=-1, keepdims=True)
    found: np.ndarray = jnp.where(values > 0, jnp.tanh(values) * factor + jnp.add.reduce(values, axis=0), norms)
    return found


@graphc.jit(static_argnames="n")
def power(values: np.ndarray, n: int) -> np.ndarray:
    return values**n


class Model:
    @graphc.jit(static_argnums=0)
    def sized(self, values: np.ndarray, factor: float = 2.0) -> np.ndarray:
        return values * factor

    @classmethod
    @graphc.jit(static_argnums=0)
    def made(cls, value: float) -> float:
        return value

    @staticmethod
    @graphc.jit
    def alone(value: float) -> float:
        return value


model = Model()
print(model.sized(np.ones(2), factor=3.0).sum(), Model.sized(model, np.ones(2)).sum(), model.sized.variants())
print(Model.made(1.0).is_integer(), model.made(2.0).is_integer(), Model.alone(1.0), model.alone(value=2.0))


def plain(value: float) -> float:
    return value**2


@graphc.custom_vjp
def own(value: float) -> float:
    return value * 2


@graphc.custom_jvp
def forward(value: float) -> float:
    return value * 2


own.defvjp(lambda value: (value, None), lambda kept, cotangent: (cotangent,))
forward.defjvps(lambda tangent, found, value: 2 * tangent)
print(own(1.0).is_integer(), forward(1.0).is_integer(), graphc.grad(own)(1.0), graphc.grad(forward).explain(1.0))
print(graphc.value_and_grad(graphc.checkpoint(own))(1.0)[0].is_integer(), graphc.grad(cost, w).name)
a0 = scaled(np.ones((2, 2)), factor=3.0) + graphc.random.normal(graphc.random.key(0), (2, 2))
scaled(np.ones((2, 2)), out=np.empty((2, 2)))
a1 = power(np.ones(2), n=3).sum() + jnp.zeros((2,), dtype=jnp.float32) + jnp.asarray([1, 2])
slope = graphc.vmap(scaled, in_axes=(0, None))(np.ones((2, 2, 2)), 1.0)
last, rows = lax.scan(lambda c, v: (c + v, c), 0.0, np.ones(3))
print(scaled.explain(np.ones((2, 2))), scaled.lower(np.ones((2, 2))).text, graphc.nnet.relu(x), graphc.lax.map)
graphc.options.threads = 2
graphc.options.excluding = "softplus"
with graphc.options.change(floatX="float32", excluding=["softplus"], poison=True):
    print(graphc.config.floatX.upper(), *graphc.options.excluding)
"""

BAD = """
x.meen()
x.mean(axs=0)
x.sum().sqroot()
(x + 1).meen()
(x == 0).anny()
x.shpe
x.T.dott(x)
x.sum(1, None, True, None, 5)
T.exq(x)
T.exp(x, x)
T.where(x, x, x, x)
graphc.options.treads
graphc.options.treads = 2
graphc.options.threads = 2.5
graphc.options.change(treads=2)
graphc.options.change(threads=[])
graphc.function([x], x, thread=2)
f.sorce
f.explain(1)
w.get_valeu()
w.set_value(1.0, borow=True)
jnp.sinn(1.0)
jnp.sum(1.0, axes=0)
jnp.exp(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
jnp.linalg.nrm(1.0)
lax.scann
special.gama(1.0)
special.logsumexp(x, axes=0)
linalg.cho_factor(x, lowr=True)
graphc.random.normal(1, shap=(2,))
scaled(1.0, 2.0, 3.0)
scaled("text")
scaled(np.ones(2), factr=1.0)
power(np.ones(2), n=1.5)
scaled.explian()
model.sized("text")
model.sized(np.ones(2), factr=1.0)
model.sized(np.ones(2), 1.0, 2.0)
model.sized.explian()
Model.made("text")
model.made(1.0, 2.0, 3.0)
model.alone(1.0, 2.0)
graphc.nnet.rel(x)
graphc.vmap(scaled)("text")
graphc.grad(plain)("text")
graphc.value_and_grad(plain)(1.0, 2.0, 3.0)
graphc.grad(plain, argnum=0)
graphc.checkpoint(plain)("text")
own("text")
forward("text")
"""


def errors(folder: Path, *programs: str) -> list[dict[int, str]]:
    """What mypy says of programs: errors by line, for each. It goes on from what the linters have left of graphc."""
    paths = [folder / f"program{number}.py" for number in range(len(programs))]
    for path, program in zip(paths, programs, strict=True):
        path.write_text(program)
    command = [sys.executable, "-m", "mypy", *map(str, paths)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    found = re.findall(r"program(\d+)\.py:(\d+): error: (.*)", done.stdout)
    return [{int(line): text for file, line, text in found if int(file) == n} for n in range(len(programs))]


@pytest.mark.slow
def test_the_program_that_is_right_runs() -> None:
    with options.change(threads=options.threads, excluding=options.excluding):
        exec(GOOD, {})


@pytest.mark.slow
def test_a_type_checker_knows_right_from_wrong(tmp_path: Path) -> None:
    setup, bad = GOOD[: GOOD.index("graphc.options.threads")], BAD.strip().splitlines()
    settings = "".join(f"graphc.options.change({name}=graphc.options.{name})\n" for name in OPTIONS)
    of_good, of_bad = errors(tmp_path, GOOD + settings, setup + BAD.strip())
    assert of_good == {}
    assert [line - setup.count("\n") - 1 for line in sorted(of_bad)] == list(range(len(bad))), of_bad
