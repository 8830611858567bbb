"""That what is read was stored before, on every path: programs of loops in order, and broken ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import graphc
import graphc.tensor as T
from graphc import sparse
from graphc.codegen.lower.elements import Lowerer
from graphc.codegen.pipeline import program
from graphc.codegen.schedule.drafts import Uses
from graphc.codegen.transform.passes import KERNEL_PASSES
from graphc.errors import VerifyError
from graphc.loopir.ir import Loop, Stmt, Store
from graphc.loopir.verify import verify_functions
from graphc.startup.record import replace
from tests.support.loop_text import parse_functions

HEAD = "def f(x: float64*, s: int64*, t: float64* temporary, out: float64*, n: int64, m: int64):\n"
EXTERNALS = {"outside": ("float64*", "int64")}
LINE, DEEPER = "\n", "\n    "
BOTH = "if n < m:\n    s[0] = 1\nelse:\n    s[0] = 2"
GOOD = {
    "a number": "s[0] = n\nlet k = s[0]",
    "an operand": "let a = x[0]",
    "elements of a loop": "for i in range(n):\n    t[i] = x[i]\nfor i in range(m):\n    out[i] = t[i]",
    "both branches": "if n < m:\n    s[0] = n\nelse:\n    s[0] = m\nlet k = s[0]",
    "the same branch twice": "let c = n < m\nif c:\n    s[0] = n\nlet k = 3\nif c:\n    let l = s[0]",
    "the same loop twice": "for i in range(n):\n    s[0] = i\nfor i in range(n):\n    let k = s[0]",
    "as many": "for i in range(n):\n    for j in range(m):\n        s[0] = i\nfor i in range(n * m):\n    let l = s[0]",
    "blocks of as many": "for i in range(blocks(n, 256)):\n    s[0] = i\nfor i in range(n):\n    let k = s[0]",
    "a loop of some": "for i in range(4):\n    s[0] = i\nlet k = s[0]",
    "one of all": "for i in range(n):\n    t[i] = 0.0\nlet a = t[0]",
    "all of some": "t[0] = 0.0\nt[1] = 0.0\nfor i in range(2):\n    out[i] = t[i]",
    "within one iteration": "for i in range(n):\n    s[0] = i\n    let k = s[0]",
    "a branch of a loop": "for i in range(n):\n    if i < m:\n        t[i] = 0.0\nlet a = t[m]",
    "from outside": "call outside(t[0:], n)\nlet a = t[0]",
    "behind what leaves": "for i in range(n):\n    if i < m:\n        break\n    s[0] = i\n    let k = s[0]",
    "a condition asked twice": f"""
if n < 3:
    {BOTH.replace(LINE, DEEPER)}
if m < 3:
    {BOTH.replace(LINE, DEEPER)}
    let k = s[0]
else:
    {BOTH.replace(LINE, DEEPER)}
    let l = s[0]
let k = s[0]""",
    "branches that change in a loop": f"for i in range(4):\n    {BOTH.replace(LINE, DEEPER).replace('m', 'i')}\n"
    "let k = s[0]",
    "the other branch before": "if n < m:\n    s[0] = 1\nif m < 3:\n    if n < m:\n        t[0] = 0.0\n"
    "    else:\n        s[0] = 2\n    let k = s[0]",
    "the other branch behind": "if m < 3:\n    if n < m:\n        t[0] = 0.0\n    else:\n        s[0] = 2\n"
    "if n < m:\n    s[0] = 1\nif m < 3:\n    let k = s[0]",
    "a loop or its elements": "if n < m:\n    t[0] = 0.0\nelse:\n    for i in range(n):\n        t[i] = 0.0\n"
    "for i in range(n):\n    out[i] = t[i]",
    "a loop in a branch of a loop": "for i in range(n):\n    if i < m:\n        for j in range(m):\n"
    "            if j < i:\n                s[0] = j\n            else:\n                s[0] = i\n"
    "            let k = s[0]",
}
BAD = {
    "a number": "let k = s[0]\ns[0] = n",
    "a size": "for i in range(s[0]):\n    t[i] = x[i]\ns[0] = n",
    "a temporary": "let a = t[n]",
    "another number": "s[1] = n\nlet k = s[0]",
    "one branch": "if n < m:\n    s[0] = n\nlet k = s[0]",
    "the other branch": "if n < m:\n    s[0] = n\nelse:\n    let k = s[0]",
    "other branches": "if n < m:\n    s[0] = n\nif m < n:\n    let k = s[0]",
    "a loop of none": "for i in range(n):\n    s[0] = i\nlet k = s[0]",
    "a loop of others": "for i in range(n):\n    s[0] = i\nfor i in range(m):\n    let k = s[0]",
    "of a changed size": "k = n\nfor i in range(k):\n    s[0] = i\nk = m\nfor i in range(k):\n    let l = s[0]",
    "not from 0": "for i in range(m, n):\n    s[0] = i\nfor i in range(n):\n    let k = s[0]",
    "the iteration before": "for i in range(n):\n    out[i] = t[i]\n    t[i] = x[i]",
    "its own element": "t[n] = t[n] + 1.0",
    "behind what leaves": "for i in range(4):\n    if n < m:\n        break\n    s[0] = i\nlet k = s[0]",
    "behind what may leave": "for i in range(4):\n    if n < m:\n        if m < 3:\n            break\n    s[0] = i\n"
    "let k = s[0]",
    "one of four branches": "if n < m:\n    if m < 3:\n        s[0] = 1\nelse:\n    if m < 3:\n        s[0] = 2\n"
    "    else:\n        s[0] = 3\nlet k = s[0]",
    "another branch than before": "if n < m:\n    s[0] = 1\nif m < 3:\n    if m < n:\n        s[0] = 2\n"
    "    let k = s[0]",
    "branches in a loop of none": f"for i in range(n):\n    {BOTH.replace(LINE, DEEPER)}\nlet k = s[0]",
    "a condition of each iteration": "for i in range(4):\n    if i < m:\n        s[0] = i\nfor i in range(4):\n"
    "    if i < m:\n        let k = s[0]",
    "an argument": "call outside(x[0:], s[0])",
    "how long a loop is": "for i in range(n):\n    for j in range(s[0]):\n        t[j] = 0.0\n    s[0] = i",
}
CALLS = """
def make(begin: int64, end: int64, a: float64*):
    for i in range(begin, end):
        a[i] = 0.0

def count(a: int64*, n: int64):
    {count}

def f(x: float64*, s: int64*, t: float64* temporary, out: float64*, n: int64, m: int64):
    {first}
    {then}
    for i in range(n):
        out[i] = t[i + 1]
    let k = s[1]
"""
MAKE, COUNT = "launch make(n, 4, t[0:])", "call count(s[1:], n)"


def functions(lines: str) -> Any:
    return parse_functions(HEAD + "".join(f"    {line}\n" for line in lines.splitlines()))


def verify(made: Any) -> None:
    verify_functions(made, EXTERNALS, ("s", "t", "out"))


@pytest.mark.parametrize("name", GOOD)
def test_what_is_stored_may_be_read(name: str) -> None:
    verify(functions(GOOD[name]))


@pytest.mark.parametrize("name", BAD)
def test_what_may_not_be_stored_is_named(name: str) -> None:
    made = functions(BAD[name])
    with pytest.raises(VerifyError, match=r"^f, '.*': [st] is read before it is stored"):
        verify(made)
    verify_functions(made, EXTERNALS)  # where nothing is said of what memory holds, nothing is wrong


def test_functions_are_followed_with_what_they_are_given() -> None:
    verify(parse_functions(CALLS.format(count="a[0] = n", first=MAKE, then=COUNT)))
    for count, first, then, name in (
        ("a[1] = n", MAKE, COUNT, "f, 'let k = s.1.': s"),
        ("let k = a[0]", MAKE, COUNT, "count, 'let k = a.0.': a"),
        ("a[0] = n", "let l = n", COUNT, "f, .*: t"),
        ("a[0] = n", MAKE, "let l = n", "f, 'let k = s.1.': s"),
    ):
        with pytest.raises(VerifyError, match=f"^{name} is read before"):
            verify(parse_functions(CALLS.format(count=count, first=first, then=then)))


def test_a_pass_that_loses_a_store_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found = [stmt for stmt in body if not (isinstance(stmt, Loop) and _stores(stmt) == {"t0"})]
        assert len(found) < len(body)
        return tuple(found)

    changed = [
        replace(each, change=lambda body, subject: lose(body)) if each.name == "merge_rows" else each
        for each in KERNEL_PASSES
    ]
    monkeypatch.setattr(program, "KERNEL_PASSES", changed)
    x = T.dmatrix("x")
    with pytest.raises(VerifyError, match="after the pass merge_rows: .*: t0 is read before it is stored"):
        graphc.function([x], T.exp(x).sum(0) + T.exp(x).sum(0)[::-1], "python")


def _stores(stmt: Stmt) -> set[str]:
    if isinstance(stmt, Loop):
        return set().union(*map(_stores, stmt.body))
    return {stmt.buffer.name} if isinstance(stmt, Store) else set()


def size_first() -> tuple[list[Any], list[Any]]:
    """A result whose loop goes over the rows of a sparse matrix, and their number beside it."""
    a = sparse.csr_matrix("a")
    return [a], [sparse.dense_from_sparse(a), a.shape[0] * 2, a.shape[0]]


def test_a_size_is_computed_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs = size_first()
    for mode in ("python", "compiled"):
        made = graphc.function(inputs, outputs, mode)
        dense, twice, rows = made(scipy.sparse.csr_matrix(np.eye(4, 3)))
        assert dense.tolist() == np.eye(4, 3).tolist() and (twice, rows) == (8, 4)

    def of_all(self: Lowerer, node: Any) -> Any:
        return self.storage.buffers.get(node) if node.dtype == "int64" and not node.ndim else materialised(self, node)

    materialised = Lowerer.materialised
    monkeypatch.setattr(Lowerer, "materialised", of_all)
    monkeypatch.setattr(Uses, "add_sizes", lambda self, shape, draft: None)
    with pytest.raises(VerifyError, match="after the pass lower: kernel, .*out[12] is read before it is stored"):
        graphc.function(inputs, outputs, "python", name="generated_anew")
