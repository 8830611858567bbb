"""The source of the special functions of plain.py and plain_shares.py, for objects that have nothing of SciPy's.

In: names of routines of PROTOTYPES. Out: text in the generated language, and the prototypes of its functions: the
routines under the same names, which call functions of numbers.

    plain_source(["gc_special_gammainc_f32"])

    def gc_special_gammainc_f32(count, x0, x1, result):
        for element in range(count):
            result[element] = float32(gc_plain_gammainc(float64(x0[element]), float64(x1[element])))
        return 0
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from graphc.codegen.llvm.module import Prototype
from graphc.codegen.special import FUNCTIONS, PROTOTYPES

PREFIX = "gc_plain_"


@cache
def definitions() -> dict[str, ast.FunctionDef]:
    """The functions of both files by name."""
    trees = [ast.parse(Path(__file__).with_name(f"{name}.py").read_text("utf-8")) for name in ("plain_shares", "plain")]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_plain(routine: str) -> bool:
    """True if a routine of PROTOTYPES can be written without SciPy."""
    return routine in FUNCTIONS and FUNCTIONS[routine][0] in definitions()


def plain_source(routines: Iterable[str]) -> tuple[str, list[Prototype]]:
    """The source of these routines and its functions."""
    wanted = sorted(routines)
    names = list(dict.fromkeys(each for routine in wanted for each in with_callees(FUNCTIONS[routine][0])))
    texts = [ast.unparse(Renamed().visit(ast.parse(ast.unparse(definitions()[name])))) for name in names]
    prototypes = [prototype(definitions()[name]) for name in names]
    for routine in wanted:
        texts.append(over_elements(routine))
        prototypes.append(Prototype(routine, PROTOTYPES[routine]))
    return "\n\n".join(texts) + "\n", prototypes


def with_callees(name: str) -> Iterator[str]:
    """A function after those that it calls."""
    for node in ast.walk(definitions()[name]):
        if isinstance(node, ast.Name) and node.id in definitions() and node.id != name:
            yield from with_callees(node.id)
    yield name


class Renamed(ast.NodeTransformer):
    """Functions under names of their own in the object, without annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name, node.returns = f"{PREFIX}{node.name}", None
        for arg in node.args.args:
            arg.annotation = None
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(f"{PREFIX}{node.id}") if node.id in definitions() else node


def prototype(node: ast.FunctionDef) -> Prototype:
    kinds = ["bool" if ast.unparse(arg.annotation or arg) == "bool" else "float64" for arg in node.args.args]
    return Prototype(f"{PREFIX}{node.name}", tuple(kinds), "float64")


def over_elements(routine: str) -> str:
    """A routine of all elements."""
    name, dtype = FUNCTIONS[routine]
    places = [arg for arg, kind in zip("x0 x1 x2 x3".split(), PROTOTYPES[routine][1:-1], strict=False) if kind]
    arguments = ", ".join(f"float64({place}[element])" for place in places)
    return (
        f"def {routine}(count, {', '.join(places)}, result):\n    for element in range(count):\n"
        f"        result[element] = {dtype}({PREFIX}{name}({arguments}))\n    return 0"
    )
