"""What people read: expressions, trees and pictures of graphs, and values while a function runs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError
from graphc.printing import Print, debugprint, min_informative_str, pp, pydotprint
from graphc.printing.drawing import Arrow, NodePicture, draw

x, y, t = T.dmatrix("x"), T.dvector("y"), T.dtensor3("t")
f, i, v = T.fvector("f"), T.lscalar("i"), T.lvector("v")
w, b = graphc.shared(np.ones((3, 2)), "w"), graphc.shared(np.zeros(2), "b")

AS_WRITTEN = """
x[:, 0]; x.T; x[1:, ::-1]; x[i]; x[v]; x[i:i + 3]; x[..., None, 1:3]; x[-1]; x[::2]; y[-3:]; x[i, 1:]; x[[0, 1]]
x + 1; x * y; -(x + 1) * 2; (x + y) ** 2; 2 ** -x; x - (y - x); x - y - x; x % 2 // 3; y * f; y + v; x / (y * 2)
x.sum(axis=1); x.mean(); x.mean(axis=0); x.mean(axis=1, keepdims=True); x.var(); x.var(axis=0); x.std(axis=1)
x.max(axis=0, keepdims=True); x.argmax(axis=1); (x > 0).mean(); (x ** 2).sum(); x.prod(axis=(0, 1)) ;
x.reshape((3, i)); x.flatten(); t.transpose(2, 0, 1); y[:, None]; x.dimshuffle(1, 'x', 0); x.astype('float32')
x.shape; x.shape[0]; x.shape[0] * 2; x > 0; (x > 0) & (x < 1); ~(x > 0); x == 0; abs(x); x @ w; x.T @ x
T.exp(x)[:, 0].sum(); x + v.astype('float64')[0]
T.softmax(x); T.softmax(x, axis=0); T.log_softmax(x); T.log(1 + T.exp(-x)).mean(); T.zeros((i, 3)); T.ones(x.shape)
T.concatenate([x, x], axis=1); T.stack([y, y]); T.arange(i); T.set_subtensor(x[0], 1); T.inc_subtensor(x[v], y)
T.set_subtensor(x[:, 1:], 0); T.where(x > 0, x, 0); T.maximum(x, 0); T.sqrt(T.sqr(x).sum()); T.cumsum(x, axis=1)
T.sigmoid(x @ w + b); T.tanh(x) * 0.5
"""
"""Expressions that are printed as they stand here, but for `T.` and for sums over all axes."""


def test_a_tensor_is_the_expression_that_a_person_wrote() -> None:
    for text in (part.strip() for part in AS_WRITTEN.replace("\n", ";").split(";")):
        if text:
            wanted = text.replace("T.", "", 0 if text.startswith("x.T") else -1) if "T." in text else text
            wanted = re.sub(r"(?<![.\w])T\.", "", text).replace("axis=(0, 1)", "")
            assert str(eval(text)) == wanted


def test_names_stand_for_what_they_name() -> None:
    hidden = T.tanh(x @ w)
    hidden.name = "hidden"
    assert str(hidden) == "hidden" and str(hidden * 2) == "hidden * 2" and pp(hidden) == "tanh(x @ w)"
    assert f"{x.T}" == "x.T" and repr(x.T).startswith("<x.T (test_printing.py:")
    deep = x
    for _ in range(3000):
        deep = T.exp(deep) + deep
    assert len(str(deep)) < 50_000 and len(repr(deep)) < 200
    assert str(T.dscalar()) == "<float64 input>" and str(graphc.grad((x**2).sum(), x)) == "1 * (2 * x)"


def test_errors_show_expressions() -> None:
    with pytest.raises(graphc.GraphcError, match=r"x\[:, 0\] \(test_printing.py:\d+\)"):
        x[:, 0].sum(axis=3)
    with pytest.raises(graphc.GraphcError, match=r"x\.T \+ 1 \(test_printing.py:\d+\).*axis 5"):
        (x.T + 1).sum(axis=5)


def test_graphs_of_variables_are_printed() -> None:
    z = T.exp(x) + y
    text = graphc.print_graph(z)
    assert text.startswith("inputs x: float64[x.0, x.1], y: float64[y.0]\n") and "exp(x)" in text
    assert graphc.print_graph([z, x]).endswith(", x\n") and graphc.print_graph(x.shape[0]).startswith("inputs x")
    assert graphc.print_graph(graphc.parse_graph(text)) == text
    with pytest.raises(GraphTypeError, match="not 3"):
        graphc.print_graph([3])  # type: ignore[list-item]


TREE = """\
mul [id A] ''
 |sum{axes=(0,)} [id B] ''
 | |exp [id C] ''
 |   |add [id D] ''
 |     |dimshuffle{0} [id E] ''
 |     | |subtensor{:, :1} [id F] ''
 |     |   |x [id G]
 |     |constant{1} [id H]
 |constant{2} [id I]
"""


def test_trees_are_theanos() -> None:
    z = T.exp(x[:, 0] + 1).sum() * 2
    assert debugprint(z, file="str") == TREE == debugprint(z.owner, file="str")
    assert debugprint(z, file="str", depth=2).splitlines() == [*TREE.splitlines()[:2], " |constant{2} [id C]"]
    assert debugprint(z, file="str", ids="int").startswith("mul [id 0] ''\n |sum{axes=(0,)} [id 1]")
    assert debugprint(z, file="str", ids="").startswith("mul ''\n")
    assert f"[id {id(z)}]" in debugprint(z, file="str", ids="id")
    assert debugprint(x, file="str", print_type=True) == "x [id A] <float64[x.0, x.1]>\n"
    total = x.sum()
    total.name = "S"
    assert debugprint([total + 1], file="str", stop_on_name=True).splitlines()[1] == " |sum{axes=(0, 1)} [id B] 'S'"
    shared = T.exp(x)
    text = debugprint(shared * shared.sum() + shared, file="str", print_clients=True)
    assert text.count("···") == 2 and "clients:['sum#0', 'mul#0', 'add#1']" in text
    assert "[array([0., 0.])]" in debugprint(b + 1, file="str", print_storage=True)
    with pytest.raises(GraphValueError):
        debugprint(z, ids="roman")
    with pytest.raises(GraphTypeError):
        debugprint("text")


def test_a_function_is_printed_as_it_was_rewritten(capsys: pytest.CaptureFixture[str]) -> None:
    z = T.log(1 + T.exp(y)).sum()
    debugprint(graphc.function([y], z, mode="python"))
    assert capsys.readouterr().out == "sum{axes=(0,)} [id A] ''   1\n |softplus [id B] ''   0\n   |y [id C]\n"
    text = debugprint(graphc.function([y], z, mode="interpreted"), file="str")
    assert "log [id B] ''   2" in text and "softplus" not in text


def test_as_little_as_says_what_it_is() -> None:
    named = T.dot(x, w)
    named.name = "product"
    assert min_informative_str(T.exp(named) + T.exp(named) * y) == (
        "A. add\n B. exp\n  C. product\n D. mul\n  <B>\n  E. y"
    )


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_values_are_printed_while_a_function_runs(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Print(f"y in {mode}", attrs=("shape", "__str__"))(y)
    call = graphc.function([y], [shown * 2, graphc.grad((shown**2).sum(), y)], mode=mode)
    double, slope = call(np.arange(3.0))
    assert capsys.readouterr().out == f"y in {mode} shape = (3,)\ny in {mode} __str__ = [0. 1. 2.]\n"
    np.testing.assert_array_equal(double, [0, 2, 4])
    np.testing.assert_array_equal(slope, [0, 2, 4])
    seen: list[float] = []
    graphc.function([y], Print(global_fn=lambda op, value: seen.append(value.sum()))(y), mode=mode)([1.0, 2.0])
    assert seen == [3.0]


def test_a_picture_shows_every_op_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = T.nnet.sigmoid(x @ w + b)
    cost = (hidden**2).sum() + 0.01 * (w**2).sum() + (x.T < 1).sum()
    cost.name = "cost & more"
    path = pydotprint(cost, tmp_path / "graph.png", with_ids=True)
    assert path == tmp_path / "graph.svg" and str(path) in capsys.readouterr().out
    root = ET.fromstring(path.read_text("utf-8"))
    name = "{http://www.w3.org/2000/svg}"
    texts = [item.text or "" for item in root.iter(f"{name}text")]
    assert texts.count("cost & more") == 2 and {"x", "w", "b"} <= set(texts)
    assert sum(bool(re.fullmatch(r"\d+ matmul", text)) for text in texts) == 1
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [item.attrib for item in root.iter(f"{name}rect") if "rx" in item.attrib]
    for box in boxes:
        assert float(box["x"]) >= 0 and float(box["x"]) + float(box["width"]) <= width
        assert float(box["y"]) >= 0 and float(box["y"]) + float(box["height"]) <= height
    for one in boxes:
        for other in boxes:
            apart = abs(float(one["x"]) - float(other["x"])) >= min(float(one["width"]), float(other["width"]))
            assert one is other or one["y"] != other["y"] or apart
    call = graphc.function([x], hidden, mode="python", name="forward")
    for given in (call, [hidden, cost]):
        for compact in (True, False):
            text = pydotprint(given, return_image=True, compact=compact, var_with_name_simple=True)
            assert ET.fromstring(text).tag == f"{name}svg"


def test_long_arrows_go_around_boxes() -> None:
    boxes = {n: NodePicture((str(n),)) for n in range(40)}
    arrows = [Arrow(n, n + 1) for n in range(39)] + [Arrow(0, n) for n in range(2, 40, 7)]
    assert draw(boxes, arrows).count("<path d=") == len(arrows) + 1
    assert "<svg" in draw({}, []) and "<svg" in draw({"a": NodePicture(("only",))}, [])


def test_the_name_of_a_constant_is_its_own() -> None:
    """Equal constants without a name are one node, which others use too."""
    zero, named = T.constant(0.0), T.constant(0.0, name="nothing")
    assert (zero.name, named.name, T.constant(0.0) is zero) == (None, "nothing", True)
    x = T.dscalar("x")
    assert str(x + named) == "x + nothing" and str(x + 0.0) == "x + 0"
    assert graphc.print_graph([x + named]) == graphc.print_graph([x + zero])
