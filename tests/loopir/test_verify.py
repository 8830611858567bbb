"""The printed form of loops, and what the verifiers refuse between passes."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import program
from graphc.codegen.transform.passes import KERNEL_PASSES
from graphc.errors import GraphTypeError, ParseError, VerifyError
from graphc.ir.node import Node
from graphc.ir.verify import Step, on_pass
from graphc.loopir.ir import (
    Apply,
    Break,
    Buffer,
    Const,
    Function,
    If,
    Let,
    Load,
    Loop,
    Note,
    Set,
    Stmt,
    Store,
    Target,
    Var,
    apply,
    integer,
)
from graphc.loopir.operators import CALLS, LT, NEG, OR, SUB
from graphc.loopir.syntax import print_function
from graphc.loopir.verify import verify_functions
from graphc.options import options
from graphc.rewrite.engine import Transformation, apply_in_turn
from graphc.startup.record import replace
from tests.support.loop_text import parse_function, parse_functions

X, N = Var("x", "float32"), Var("n", "int64")
UNKNOWN = Buffer("unknown", "float64")
ODD = (
    Let(X, Const("-1e-05", "float32")),
    Let(Var("y", "int8"), X),
    Set(Var("let", "float64"), Const("-inf", "float64")),
    Set(Var("let", "float64"), Const("1.50", "float64")),
    Let(Var("z", "float64"), apply(NEG, Const("2.0", "float64"))),
    Let(Var("w", "float64"), apply(NEG, Var("z", "float64"))),
    Set(N, apply(SUB, apply(SUB, N, apply(SUB, N, N)), integer(-3))),
    Let(Var("v", "bool"), apply(OR, apply(LT, X, X), Apply(CALLS["pow"], (X, N), "bool"))),
    Store(UNKNOWN, Const("7", "uint8"), Load(UNKNOWN, Var("i", "float64"))),
    Loop(Var("i", "float32"), N, (Note('it\'s\na "remark"', "of 'subjects'"),), begin=Const("0", "int8")),
    Let(Var("t", "bool"), Const("True", "bool")),
    Let(Var("u", "float64"), Const("True", "float64")),
    If(Var("b", "float32"), (Break(), If(N, (), (Break(),))), (If(N, (Let(Var("b", "int8"), X),)), Break())),
    If(N, (Loop(Var("i", "int8"), N, (Break(),)),), (Let(Var("j", "int64"), Var("i", "int8")),)),
    If(N, ()),
    Loop(Var("i", "int64"), N, (If(N, (Note("else:"),)), Break()), conflicts=()),
)
"""What no pass would write, and reads back nevertheless."""


KNOWN = (
    Buffer("b", "float32"),
    Buffer("t", "float64", True, N),
    Buffer("s", "float64", target=Target(apply(SUB, N, integer(1)), integer(8))),
    Buffer("p", "int8", True, integer(3), Target(N, apply(CALLS["maximum"], N, N), is_table=True)),
)


@pytest.mark.parametrize("stmt", ODD, ids=range(len(ODD)))
def test_whatever_is_printed_reads_back(stmt: Stmt) -> None:
    function = Function("f", (N, *KNOWN), (stmt,), 'it\'s "what"\nit does')
    text = print_function(function)
    assert parse_function(text) == function
    assert print_function(parse_function(text)) == text


@pytest.mark.parametrize(
    "line",
    [
        *("out[0] = ", "for i in n:", "x + 1", "check one: n < 2", "call f", "let a = b c", "n = power(n, n)"),
        *("if n <:", "if:", "else:", "break n", "else:\n        n = 1"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(ParseError, match="line 3"):
        parse_functions(f"def f(n: int64, out: float64*):\n    n = 1\n    {line}")


GOOD = """
def f(x: float64*, i: int32*, out: float64*, n: int64, begin: int64):
    let a = x[0]
    s = 0.0
    for j in range(begin, n):
        s = accumulate(s, x[j])
    for j in range(n):
        let b = a + s
        check 2: b < 1.0
        out[j] = b
    for j in range(n):
        if x[j] < s:
            s = s + x[j]
            c = 0
            c = c + 1
            let d = c * c
        else:
            let f = s > 2.0
            if f:
                break
            let d = j * 2
            c = d
            out[c] = 0.0
    out[n] = float64(i[0])
"""
BAD = {
    "out[0] = b": "b is read where it has no value",
    "out[0] = a @ float32": "float32 where float64 belongs",
    "out[0] = n": "int64 where float64 belongs",
    "let a = x[1]": "a is a name already",
    "let n = 3": "n is a parameter already",
    "a = x[1]": "a is a name already",
    "for n in range(3):": "n is a parameter already",
    "let x = 3": "x is",
    "let j = 1.0": "j is int64 elsewhere, float64 here",
    "s = n": "int64 where float64 belongs",
    "out[0] = y[0]": "there is no buffer y",
    "y[0] = a": "there is no buffer y",
    "out[0] = x[a]": "float64 where int64 belongs",
    "out[0] = x[j]": "j is read where it has no value",
    "for k in range(a):": "float64 where int64 belongs",
    "for k in range(k, n):": "k is read where it has no value",
    "for k in range(i[0], n):": "int32 where int64 belongs",
    "out[0] = a * n": "[*] of float64 and int64",
    "out[0] = pow(a)": "pow takes 2 operands, not 1",
    "out[0] = select(a, a, a)": "truth of float64",
    "let e: float32 = a": "float64 where float32 belongs",
    "out[0] = (a < a) @ float64": "is bool, not float64",
    "check 0: a < 1.0": "would say that all is well",
    "check 1: a": "float64 where bool belongs",
    "call g(n)": "there is no function g",
    "call h(out[0:], a)": "h takes float64[*], int64, and is given float64[*], float64",
    "launch h(n, 4, out[0:])": "h takes float64[*], int64, and is given int64, int64, float64[*]",
    "call h(out, n)": "out is read where it has no value",
    "let e = out[n:]": "the address of out is no value",
    "if a:": "float64 where bool belongs",
    "if n < j:": "j is read where it has no value",
    "break": "there is no loop to leave",
    "if n < 3:\n        break": "there is no loop to leave",
    "for k in independent(n):\n        break": "iterations of a loop that is left have an order",
    "for k in independent(n, but=[out]):\n        if n < 3:\n            break": "a loop that is left have an order",
    "out[0] = float64(c)": "c is read where it has no value",
    "if n < 3:\n        let e = 1\n    out[e] = a": "e is read where it has no value",
    "if n < 3:\n        e = 1\n    out[e] = a": "e is read where it has no value",
    "if n < 3:\n        let e = 1\n    else:\n        out[e] = a": "e is read where it has no value",
    "if n < 3:\n        let a = 1.0": "a is a name already",
    "if n < 3:\n        out[0] = n": "int64 where float64 belongs",
    "if n < 3:\n        s = a\n    else:\n        s = n": "int64 where float64 belongs",
}


def test_a_good_function_is_accepted() -> None:
    verify_functions(parse_functions(GOOD))


@pytest.mark.parametrize("line", BAD)
def test_a_bad_statement_is_named(line: str) -> None:
    inner = "\n        let unused = n" if line.endswith(":") else ""
    functions = parse_functions(f"{GOOD}    {line}{inner}")
    with pytest.raises(VerifyError, match=BAD[line]) as caught:
        verify_functions(functions, {"h": ("float64*", "int64")})
    assert str(caught.value).startswith("f, ")


def test_names_that_are_none() -> None:
    for name in ("place of both", "lambda"):
        body = (Let(Var(name, "int64"), integer(1)),)
        with pytest.raises(VerifyError, match="is no name"):
            verify_functions([Function("f", (), body, "")])
    twice = parse_function(GOOD)
    with pytest.raises(VerifyError, match="two functions f"):
        verify_functions([twice, twice])
    with pytest.raises(VerifyError, match="two parameters n"):
        verify_functions([replace(twice, params=(*twice.params, N))])


def test_a_pass_that_breaks_the_loops_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_names(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(replace(s, body=tuple(x for x in s.body if not isinstance(x, Let))) if isinstance(s, Loop) else s
                     for s in body)  # fmt: skip

    changed = [
        replace(each, change=lambda body, subject: lose_names(body)) if each.name == "merge_rows" else each
        for each in KERNEL_PASSES
    ]
    monkeypatch.setattr(program, "KERNEL_PASSES", changed)
    x = T.dmatrix("x")
    with pytest.raises(VerifyError, match="after the pass merge_rows: kernel, .* is read where it has no value"):
        graphc.function([x], T.softmax(x), "python")
    with options.change(verify=False):
        graphc.function([x], T.softmax(x), "python")


def test_a_rule_that_breaks_the_graph_is_named() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    broken = Transformation("broken", ("exp",), lambda node, uses: y, "exact")
    with pytest.raises(VerifyError, match="after the pass rules: the graph needs y"):
        apply_in_turn(graphc.ir.walk.Graph((x,), (T.exp(x),)), [("rules", [broken])])


def test_a_graph_is_verified_before_it_is_compiled() -> None:
    x = T.dvector("x")
    wrong = Node(T.exp(x).op, (x,), {}, T.fvector("z").type)
    with pytest.raises(GraphTypeError, match="its op infers"):
        graphc.function([x], wrong, "python")


def test_watchers_see_each_pass_that_changes_something() -> None:
    x = T.dmatrix("x")
    steps: list[Step] = []
    with on_pass(steps.append):
        graphc.function([x], T.softmax(x) * 1.0, "python")
    names = [step.name for step in steps]
    assert {"prune", "lower", "inline_once", "merge_rows", "assemble"} <= set(names)
    assert all(step.before != step.after for step in steps)
    forms = [step for step in steps if isinstance(step.after, tuple) and step.after[-1].name == "kernel"]
    assert all(one.after == other.before for one, other in pairwise(forms))


@pytest.mark.slow
def test_no_verifier_is_imported_unless_it_is_asked_for() -> None:
    script = (
        "import sys, graphc, graphc.tensor as T; x = T.dvector('x'); graphc.function([x], x + 1, 'python');"
        "print('graphc.loopir.verify' in sys.modules)"
    )
    for wanted in ("1", ""):
        environment = {"GRAPHC_VERIFY": wanted, "PATH": ""}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(bool(wanted))
