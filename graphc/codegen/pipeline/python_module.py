"""A kernel as the text of a module for NumPy or numba alone: what `f.export(path, language="python")` writes.

In: a kernel without Python functions, the values of its shared variables, the name of the function. Out: the text.

    def _calls():                   call/alone.py
    def _numpy_routines():          products, sorts and the like, as the python mode has them,
    def _numba_routines(_compiled): and as loops (python_operators.py)
    def _source(_compiled, ...):    the generated source in words for both (python_source.py), with its operators
    def use_numba():                makes the functions anew, compiled by numba
    def model(x, y):                a call of it

Definitions are copied from graphc's own sources with all that they name (`Carried`), so they mean the same. Types are
left out: a call runs without NumPy's warnings as a whole. What would import more than NumPy and Python's own modules is
refused by name.
"""

from __future__ import annotations

import ast
import base64
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat
from typing import Any

import numpy as np

from graphc.codegen.call.c_interface import Values
from graphc.codegen.call.callback import SAFEPOINT_CALLS
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.codegen.pipeline.program import Program, generate_program
from graphc.codegen.pipeline.python_source import function_text, meaning, own, portable_text, routine_of
from graphc.codegen.pipeline.standalone import check_text
from graphc.codegen.routines import routine_shims
from graphc.codegen.special.plain_source import is_plain, plain_source
from graphc.errors import GraphcError
from graphc.loopir import ir, operators
from graphc.loopir.syntax import emit_source
from graphc.startup.record import replace

OPERATORS = "graphc.codegen.pipeline.python_operators"
MODULES = {"np": "import numpy as np", "partial": "from functools import partial"}
"""The modules that expressions below may name."""


class Unwritten(GraphcError):
    """A definition that cannot stand alone; the text is its name."""


def python_module(kernel: Kernel, values: Values, name: str, notes: str) -> str:
    """Return the text of a module with a function of this name. values: of the shared variables. notes: a sentence for
    the docstring. Raises GraphcError for a kernel that needs more than NumPy."""
    kernel = replace(kernel, mutable=())
    program = generate_program(kernel, Report(kernel.name))
    if program.calls:
        ops = ", ".join(dict.fromkeys(node.op.name for node in program.calls))
        raise GraphcError(f"{kernel.name} cannot be exported: the program's own Python functions compute {ops}")
    routines = [each for each in program.externals if not is_plain(each) and each not in SAFEPOINT_CALLS]
    plain = [each for each in program.externals if is_plain(each)]
    source, names = with_quotients(plain_source(plain)[0] + emit_source(map(function_text, program.functions)))
    try:
        operators = operators_text(names - {*plain})
        tables = routines_text(routines)
    except Unwritten as missing:
        raise GraphcError(
            f"{kernel.name} cannot be exported for Python: it needs {missing}, which cannot be written out"
        ) from None
    body = f"{operators}\n\n\n{decorated(source)}\nreturn sizes, kernel"
    calls = Carried()
    calls.name("graphc.codegen.call.alone", "run")
    facts = facts_of(program, len(values), name)
    parameters = ", ".join(facts["parameters"])
    call = "_call"
    while call in facts["parameters"]:
        call += "_"
    parts = [
        f'"""{name}({parameters}): {notes}\n\n{usage(facts)}"""',
        "from base64 import b85decode\n\nimport numpy as np",
        f"def _calls():\n{indented(calls.text())}\n\n    return run",
        *tables,
        f"def _source(_compiled, _routines):\n{indented(body)}",
        f"_facts = {pformat(facts, width=110, sort_dicts=False)}",
        ARRAY.strip(),
        f"state = {{{', '.join(map(literal_entry, facts['shared'], values))}}}",
        f"_constants = [{', '.join(map(literal, program.constants))}]",
        f"_run, _functions = _calls(), _source(lambda function: function, {'_numpy_routines()' if routines else {}})",
        USE_NUMBA.strip().replace("ROUTINES", "_numba_routines(compiled)" if routines else "{}"),
        f"def {call}(*values):\n    return _run(_facts, _functions, values, state, _constants)",
        f"def {name}({parameters}):\n    return {call}({parameters})",
    ]
    return "\n\n\n".join(parts) + "\n"


def usage(facts: Mapping[str, Any]) -> str:
    """The lines of the docstring."""
    lines = [f"{name}: {dtype}{shown(shape)}" for name, dtype, shape in facts["inputs"]]
    outputs = [each for place, each in enumerate(facts["outputs"]) if place not in facts["replaces"]]
    results = ", ".join(f"{dtype}{shown((None,) * rank)}" for dtype, rank in outputs)
    lines.append(f"returns {'a list of ' if facts['returns'] == 'list' else ''}{results or 'None'}")
    if facts["shared"]:
        names = ", ".join(f"{name}: {dtype}{shown(shape)}" for name, dtype, shape in facts["shared"])
        lines.append(f"state: the shared variables, a dict of {names}; one thread at a time may update it")
    return "\n".join(lines) + "\n\nIt needs NumPy alone; use_numba() compiles it with numba.\n"


def shown(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]" if shape else ""


USE_NUMBA = '''
def use_numba(**options):
    """Compile with numba from now on, at the first call. options: of numba.njit, as cache=True."""
    global _functions
    from numba import njit

    compiled = njit(**{"error_model": "numpy", **options})
    _functions = _source(compiled, ROUTINES)
'''


def operators_text(names: set[str]) -> str:
    """The definitions of the operators that a source names."""
    carried, entries, texts = Carried(), list[str](), list[str]()
    for name in sorted(names):
        if name in ir.CONSTANTS:
            entries.append(f"{name} = float({name!r})")
        elif text := portable_text(name):
            texts.append(text)
            for primitive in ("philox", "philox_words"):
                if f"{primitive}(" in text:
                    carried.name(OPERATORS, primitive)
        elif stem := own(name):
            entries += [f"{name} = {stem}"] * (carried.name(OPERATORS, stem) != name)
        elif text := meaning(name):
            entries.append(f"{name} = {text}")
        elif name in routine_shims():
            entries.append(f"{name} = _routines[{name!r}]")
        else:
            raise Unwritten(name)
    return "\n".join((decorated(carried.text()), *map(decorated, texts), *entries))


def routines_text(routines: Sequence[str]) -> list[str]:
    """The tables of routines, for NumPy and for numba."""
    missing = [name for name in routines if not routine_of(name)]
    if missing:
        raise Unwritten(", ".join(missing))
    shims, loops = Carried(), Carried()
    known = [(name, shims.value(routine_shims()[name]), routine_of(name)) for name in routines]
    for _, _, stem in known:
        loops.name(OPERATORS, stem)
    parts = []
    for place, (head, text) in enumerate(
        (("_numpy_routines()", shims.text()), ("_numba_routines(_compiled)", decorated(loops.text()))), 1
    ):
        rows = "".join(f"        {each[0]!r}: {each[place]},\n" for each in known)
        parts.append(f"def {head}:\n{indented(text)}\n\n    return {{\n{rows}    }}")
    return parts if known else []


def decorated(text: str) -> str:
    """Definitions that `_compiled` may compile."""
    return re.sub(r"^def ", "@_compiled\ndef ", text, flags=re.MULTILINE)


def indented(text: str) -> str:
    return textwrap.indent(text.rstrip(), "    ")


def facts_of(program: Program, shared: int, name: str) -> dict[str, Any]:
    """The dict that `alone.run` takes, and the names of the parameters."""
    signature = program.signature
    variables = signature.shared[:shared]
    return {
        "name": name,
        "parameters": [each.name for each in signature.inputs],
        "inputs": [(each.name, each.dtype, each.shape) for each in signature.inputs],
        "shared": [(each.name, each.dtype, each.shape) for each in variables],
        "changed": [number for number, each in enumerate(variables) if each.written],
        "outputs": [(each.dtype, len(each.shape)) for each in signature.outputs],
        "replaces": {n: each.replaces for n, each in enumerate(signature.outputs) if each.replaces is not None},
        "temps": [(temp.dtype, temp.values) for temp in signature.temps],
        "dims": [*signature.sizes],
        "words": signature.extents,
        "checks": [*map(check_text, program.checks), "an array has other sizes than its type says"],
        "returns": signature.returns,
    }


# --- values -----------------------------------------------------------------------------------------------------------

ARRAY = """
def _array(dtype, shape, *lines):
    return np.frombuffer(b85decode("".join(lines)), np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(shape)
"""


def literal(value: np.ndarray[Any, Any]) -> str:
    """An array as an expression: its little-endian bytes as text."""
    text = base64.b85encode(value.astype(value.dtype.newbyteorder("<")).tobytes()).decode()
    lines = [text[at : at + 100] for at in range(0, len(text), 100)]
    return f"_array({', '.join(map(repr, (value.dtype.name, value.shape)))}, {', '.join(map(repr, lines))})".replace(
        ", )", ")"
    )


def literal_entry(known: tuple[str, str, Any], value: np.ndarray[Any, Any]) -> str:
    return f"\n    {known[0]!r}: {literal(value)}"


# --- the generated source ---------------------------------------------------------------------------------------------

QUOTIENT = "_divide"


def with_quotients(source: str) -> tuple[str, set[str]]:
    """Return a source in which `_divide(a, b)` stands for `a / b`, which raises for Python's own 0.0; and all names
    that it has from outside."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    text = source.encode()
    for node in sorted(outermost_quotients(tree), key=lambda each: (each.lineno, each.col_offset), reverse=True):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        text = text[:begin] + ast.unparse(Quotients().visit(node)).encode() + text[end:]
    known = {*operators.CALLS, *ir.CONSTANTS, *routine_shims(), "advance"}
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return text.decode(), {each for each in used if each in known or (each[0] == "_" and (own(each) or meaning(each)))}


def outermost_quotients(node: ast.AST) -> Iterator[ast.BinOp]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from outermost_quotients(child)


class Quotients(ast.NodeTransformer):
    """Makes `a / b` a call."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.Call(ast.Name(QUOTIENT), [node.left, node.right], []) if isinstance(node.op, ast.Div) else node


# --- definitions of graphc --------------------------------------------------------------------------------------------


class Carried:
    """Definitions that are copied from modules of graphc, each after all that it names. A name is that in its module:
    two of one name cannot both be carried."""

    def __init__(self) -> None:
        self.statements: dict[str, str] = {}
        self.imports: set[str] = set()
        self.origins: dict[str, str] = {}
        self.parsed: dict[str, dict[str, ast.stmt]] = {}

    def text(self) -> str:
        """All that was carried."""
        return "\n".join(sorted(self.imports)) + "\n\n" + "\n\n".join(dict.fromkeys(self.statements.values()))

    def module(self, name: str) -> str:
        self.imports.add(MODULES[name])
        return name

    def value(self, value: Any) -> str:
        """A function of a module, a `partial` of one, a scalar type of NumPy or a string as an expression."""
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, partial):
            arguments = ", ".join(map(self.value, (value.func, *value.args)))
            return f"{self.module('partial')}({arguments})"
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"{self.module('np')}.{value.__name__}"
        module, name = getattr(value, "__module__", ""), getattr(value, "__name__", repr(value))
        if getattr(sys.modules.get(module), name, None) is not value:
            raise Unwritten(name)
        return self.name(module, name)

    def name(self, module: str, name: str) -> str:
        """Carry a definition and what it names; the name."""
        statement = self.definitions(module).get(name)
        if statement is None:
            raise Unwritten(name)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return self.imported(statement, name)
        if self.origins.setdefault(name, module) != module:
            raise Unwritten(f"two definitions of {name}")
        if name in self.statements:
            return name
        self.statements[name] = ""  # a definition may name itself
        plain = ast.fix_missing_locations(Plain(partial(self.attribute, module)).visit(statement))
        for node in ast.walk(plain):
            if isinstance(node, ast.Name) and node.id != name and node.id in self.definitions(module):
                self.name(module, node.id)
        del self.statements[name]
        self.statements[name] = ast.unparse(plain)
        return name

    def imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> str:
        source = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        if source.partition(".")[0] == "graphc":
            return self.name(source, name)
        roots = {source or alias.name for alias in statement.names if (alias.asname or alias.name) == name}
        if name == "import_module" or {root.partition(".")[0] for root in roots} - sys.stdlib_module_names - {"numpy"}:
            raise Unwritten("a late import or another package")
        only = [alias for alias in statement.names if (alias.asname or alias.name) == name]
        fields = {**dict(ast.iter_fields(statement)), "names": only}
        text = ast.unparse(type(statement)(**fields))
        if self.origins.setdefault(name, text) != text:
            raise Unwritten(f"two definitions of {name}")
        self.imports.add(text)
        return name

    def definitions(self, module: str) -> dict[str, ast.stmt]:
        """The statements of a module by the names that they bind."""
        if module not in self.parsed:
            spec = find_spec(module) if module.startswith("graphc") else None
            path = spec.origin if spec else None
            if not path or not path.endswith(".py"):
                raise Unwritten(module)
            statements: dict[str, ast.stmt] = {}
            for statement in ast.parse(Path(path).read_text("utf-8")).body:
                statements |= dict.fromkeys(bound(statement), statement)
            self.parsed[module] = statements
        return self.parsed[module]

    def attribute(self, module: str, node: ast.Attribute) -> ast.expr:
        """`numerics.convert` as `convert`, where the module is graphc's."""
        if not isinstance(node.value, ast.Name):
            return node
        statement = self.definitions(module).get(node.value.id)
        if not isinstance(statement, ast.ImportFrom) or not (statement.module or "").startswith("graphc"):
            return node
        return ast.Name(self.name(f"{statement.module}.{node.value.id}", node.attr))


def bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name))


class Plain(ast.NodeTransformer):
    """Leaves out types, and asks `attribute` about each `a.b`."""

    def __init__(self, attribute: Callable[[ast.Attribute], ast.expr]) -> None:
        self.attribute = attribute

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            raise Unwritten(f"a class with {ast.unparse(node.target)}")
        assign = ast.Assign([node.target], node.value, lineno=node.lineno)
        self.generic_visit(assign)
        return assign

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return self.attribute(node)
