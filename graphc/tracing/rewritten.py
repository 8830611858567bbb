"""The code of a program's functions with calls in place of loops and choices, so that a trace can compile them.

    def root(a):                                def root(a):
        x = a                                       x = a
        while abs(x * x - a) > 1e-9:                def body():
            x = (x + a / x) / 2                         nonlocal x
        return x                                        x = (x + a / x) / 2
                                                    FLOW.loop(…, lambda: abs(x * x - a) > 1e-9, body, …)
                                                    return x

In: a function of the program, whose source is at hand. Out: another code object for it, with the lines of the source
(`rewritten_code`), and the loops around a place in it (`loops_around`). `FLOW` is the one of `control_flow.py`; outside
of a trace it does what Python does.

A body is a function of its own, whose result says how it ended: None at its end or by `continue`, `FLOW.BREAK`,
`FLOW.Returned(value)`. Where a statement may end the block around it, the statements behind it are a function too,
which the choice calls in the branches that go on:

    if x > top:                                 def rest(): …
        break                                   return FLOW.branch(x > top, lambda: FLOW.BREAK, rest, …)
    …
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from graphc.startup.record import record
from graphc.tensor.python_functions import tried

FLOW = "\0graphc: loops and choices"
"""The constant of a code object in whose place `FLOW` comes."""
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BINDING = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    ast.MatchMapping,
)  # fmt: skip
"""Nodes with a name that they bind, or the name of the rest of a mapping."""
ITERATIONS = "range", "enumerate", "zip"
OPEN_SCOPES = {"locals", "vars", "eval", "exec", "dir"}
"""Functions that look at the names of the function that calls them."""


class UnsupportedSource(Exception):
    """The source of a function cannot be written with calls in place of its loops."""


# --- the source of a code ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a file; None where it is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def tree_of(code: CodeType, scope: dict[str, Any] | None = None) -> ast.Module | None:
    """The syntax tree of the file of a code object; None where there is none."""
    lines = linecache.getlines(code.co_filename, scope)
    return parsed("".join(lines)) if lines else None


def first_line(function: ast.AST) -> int:
    """The line that Python has for the first one of a function: that of its first decorator."""
    return min([function.lineno, *(each.lineno for each in getattr(function, "decorator_list", ()))])  # type: ignore[attr-defined]


def source_of(code: CodeType, tree: ast.Module) -> ast.FunctionDef | ast.Lambda | None:
    """The syntax tree of a function in that of its file, if compiling it gives the code that the function has."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and first_line(node) == code.co_firstlineno:
            try:
                made = compiled_in_place(node, code, imports_of(tree))
            except (SyntaxError, ValueError):
                continue
            if is_same(made, code):
                return node
    return None


def is_same(made: CodeType, code: CodeType) -> bool:
    """True if two code objects do the same."""
    names = "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_name"
    if any(getattr(made, name) != getattr(code, name) for name in names) or len(made.co_consts) != len(code.co_consts):
        return False
    pairs = zip(made.co_consts, code.co_consts, strict=True)
    return all(
        is_same(*pair)
        if isinstance(pair[0], CodeType) and isinstance(pair[1], CodeType)
        else repr(pair[0]) == repr(pair[1])
        for pair in pairs
    )


@lru_cache(maxsize=64)
def imports_of(tree: ast.Module) -> list[ast.stmt]:
    """The imports of a module, of whose names Python reads attributes in another way."""
    return [each for each in own_nodes(tree) if isinstance(each, (ast.Import, ast.ImportFrom)) and is_plain(each)]


def is_plain(statement: ast.Import | ast.ImportFrom) -> bool:
    """True for an import that may stand before a function."""
    return getattr(statement, "module", None) != "__future__" and statement.names[0].name != "*"


def compiled_in_place(node: ast.FunctionDef | ast.Lambda, code: CodeType, imports: Sequence[ast.stmt]) -> CodeType:
    """The code object of a function, whose variables from outside are those of `code`. imports: of its module."""
    given = node.args
    arguments = no_arguments()
    for kind in ("posonlyargs", "args", "kwonlyargs"):
        setattr(arguments, kind, [ast.arg(each.arg) for each in getattr(given, kind)])
    arguments.vararg = given.vararg and ast.arg(given.vararg.arg)
    arguments.kwarg = given.kwarg and ast.arg(given.kwarg.arg)
    arguments.kw_defaults = [None] * len(given.kwonlyargs)
    plain: ast.stmt
    if isinstance(node, ast.Lambda):
        plain = ast.Expr(ast.copy_location(ast.Lambda(arguments, node.body), node))
    else:
        plain = ast.copy_location(function_of(node.name, arguments, node.body), node)
    names = no_arguments()
    names.args = [ast.arg(each) for each in code.co_freevars]
    around = ast.copy_location(function_of("around", names, [plain]), node)
    module = ast.fix_missing_locations(ast.Module([*imports, around], []))
    (outer,) = (each for each in compile(module, code.co_filename, "exec").co_consts if isinstance(each, CodeType))
    made = next(each for each in outer.co_consts if isinstance(each, CodeType))
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)


def has_try(code: CodeType) -> bool:
    """True if a code object, or a function written in it, has a `try`."""
    return bool(tried(code)) or any(has_try(each) for each in code.co_consts if isinstance(each, CodeType))


def loops_around(code: CodeType, place: int) -> list[tuple[int, int]]:
    """The lines and columns of the loops around an instruction of a code object, outermost first, that are in the same
    function. What a `for` loop goes over is not in it."""
    line, _, column, _ = tuple(code.co_positions())[place // 2]
    tree = tree_of(code)
    if tree is None or line is None or column is None:
        return []
    found, pending = list[tuple[int, int]](), [*ast.iter_child_nodes(tree)]
    while pending:
        node = pending.pop()
        begin = getattr(node, "lineno", line), getattr(node, "col_offset", 0)
        end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column + 1)
        if not begin <= (line, column) < end:
            continue
        if isinstance(node, FUNCTIONS):
            found = []
        if isinstance(node, (ast.For, ast.While)):
            found.append((node.lineno, node.col_offset))
            pending = [*node.body, *([node.test] if isinstance(node, ast.While) else ())]
            continue
        pending = [*ast.iter_child_nodes(node)]
    return found


# --- the other code ---------------------------------------------------------------------------------------------------


REWRITTEN: dict[tuple[CodeType, str], CodeType | None] = {}
"""The other codes, by code and file: codes of two files may be equal."""


def rewritten_code(code: CodeType, scope: dict[str, Any], flow: Any) -> CodeType | None:
    """The code of a function with calls of `flow` in place of its loops and choices; None if it has none, and where its
    source is not at hand or cannot be written so. scope: the names of its module."""
    key = code, code.co_filename
    if key not in REWRITTEN:
        REWRITTEN[key] = _rewritten(code, scope, flow)
    return REWRITTEN[key]


def _rewritten(code: CodeType, scope: dict[str, Any], flow: Any) -> CodeType | None:
    tree = tree_of(code, scope)
    node = None if tree is None else source_of(code, tree)
    if tree is None or node is None:
        return None
    copied = parsed_again(node)
    try:
        rewriter = Rewriter(copied, None)
        if not rewriter.has_flow(copied):
            return None
        rewriter.rewrite(copied)
        made = compiled_in_place(copied, code, imports_of(tree))
    except (UnsupportedSource, SyntaxError, ValueError):
        return None
    made = with_flow(made, flow)
    return made if made.co_freevars == code.co_freevars else None


def parsed_again(node: Any) -> Any:
    """A copy of a syntax tree."""
    if isinstance(node, list):
        return [parsed_again(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    return ast.copy_location(type(node)(**{name: parsed_again(value) for name, value in ast.iter_fields(node)}), node)


def with_flow(code: CodeType, flow: Any) -> CodeType:
    """A code object with `flow` for its constant `FLOW`."""
    consts = (
        flow if each == FLOW else with_flow(each, flow) if isinstance(each, CodeType) else each
        for each in code.co_consts
    )
    return code.replace(co_consts=tuple(consts))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that belong to the function it is in: not those within other functions."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        if each is node or not isinstance(each, SCOPES):
            pending += ast.iter_child_nodes(each)


def names_bound(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that statements bind, and those that a function binds to which they go on."""
    found = dict[str, None]()
    for each in statements:
        found |= dict.fromkeys(getattr(each, "names", ()))
        for node in own_nodes(each):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found[node.id] = None
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found |= dict.fromkeys((name.asname or name.name).partition(".")[0] for name in node.names)
            elif isinstance(node, BINDING):
                found |= dict.fromkeys(
                    each for each in (getattr(node, "name", None) or getattr(node, "rest", None),) if each
                )
    return list(found)


def bound_first(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind before they read them, whatever choices they take."""
    bound, read = set[str](), set[str]()
    for each in statements:
        if may_end(each):
            break
        loaded = {n.id for n in ast.walk(each) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            loaded.add(each.target.id)
        read |= loaded - bound
        if isinstance(each, (ast.Assign, ast.AnnAssign)):
            bound |= set(names_bound([each])) - read
        elif not isinstance(each, (ast.Expr, ast.AugAssign, ast.For, ast.While, ast.If, ast.Pass)):
            break
    return bound


ENDS = ast.Return, ast.Break, ast.Continue, ast.Raise
"""Statements that end a block."""


def may_end(statement: ast.stmt, kinds: tuple[type[ast.stmt], ...] = ENDS) -> bool:
    """True if a statement may end the block around it: by `return`, `raise`, `break` or `continue` of its loop."""
    if isinstance(statement, kinds):
        return True
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    inner = kinds
    if isinstance(statement, (ast.For, ast.While)):
        if any(may_end(each, kinds) for each in statement.orelse):
            return True
        inner = tuple(each for each in kinds if each in (ast.Return, ast.Raise))
    if isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
        inner = tuple(each for each in inner if each is not ast.Raise)  # which `except` may catch
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [each.body for name in ("handlers", "cases") for each in getattr(statement, name, [])]
    return any(may_end(each, inner) for block in blocks for each in block)


@record()
class Block:
    """Where statements are. nested: in a function of its own, whose result says how it ended. splits: statements behind
    one that may end the block can be a function. loop: a `break` is that of a loop of which the block is the body."""

    nested: bool
    splits: bool
    loop: bool = False


class Rewriter(ast.NodeTransformer):
    """Rewrites one function. around: the rewriter of the function that it is written in."""

    def __init__(self, function: Any, around: Rewriter | None) -> None:
        self.function = function
        self.serial = 0
        self.bound: dict[str, None] = {}
        self.around = around

    def has_flow(self, node: ast.AST) -> bool:
        """True if there is a loop or a choice in a function."""
        kinds = ast.For, ast.While, ast.If, ast.IfExp, ast.BoolOp
        return any(isinstance(each, kinds) for each in ast.walk(node))

    # --- functions ---

    def rewrite(self, function: Any) -> None:
        """Rewrite a function in place."""
        check_supported(function)
        if isinstance(function, ast.Lambda):
            function.body = self.visit(function.body)
            return
        body = self.block(function.body, Block(nested=False, splits=True))
        arguments = function.args
        given = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        given |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
        if bound := [name for name in self.bound if name not in given]:
            # the statement is never executed: it makes the names those of the function
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in bound]
            body.insert(0, ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        function.body = body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function within the function."""
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own_nodes(node)):
            return node
        Rewriter(node, self).rewrite(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        """A coroutine stays as it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """A class stays as it is."""
        return node

    # --- statements ---

    def block(self, statements: Sequence[ast.stmt], where: Block) -> list[ast.stmt]:
        """The statements of a block, rewritten."""
        made = list[ast.stmt]()
        statements = [asserted(each) if isinstance(each, ast.Assert) and where.splits else each for each in statements]
        for place, each in enumerate(statements):
            rest = statements[place + 1 :]
            if isinstance(each, ast.If):
                if not may_end(each):
                    made += self.choice(each)
                elif where.splits:
                    return made + self.choice_and_rest(each, rest, where)
                else:
                    made.append(self.plain(each, where, where.loop))
            elif isinstance(each, (ast.While, ast.For)) and not each.orelse and can_be_function(each):
                body, call = self.loop(each)
                made.append(body)
                if not may_end(each):
                    made.append(located(ast.Expr(call), each))
                elif where.splits:
                    return made + self.after(call, each, rest, where)
                else:
                    made += self.ended(call, each, where)
            else:
                made.append(self.other(each, where))
        return made

    def other(self, statement: ast.stmt, where: Block) -> ast.stmt:
        """A statement that is no choice, and no loop that could be a node."""
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
            return self.end(statement, where)
        if isinstance(statement, ast.Raise) and where.nested and statement.exc is not None and where.splits:
            return self.raised(statement)
        if isinstance(statement, (ast.While, ast.For)):
            return self.plain(statement, where, False)
        if isinstance(statement, (ast.With, ast.Try, ast.Match)) or type(statement).__name__ == "TryStar":
            return self.plain(statement, where, where.loop)
        made: ast.stmt = self.visit(statement)
        return made

    def plain(self, statement: Any, where: Block, loop: bool) -> Any:
        """A statement of Python's, with rewritten blocks in it."""
        inner = Block(where.nested, False, loop)
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse", "finalbody"):
                setattr(statement, name, self.block(value, inner))
            elif name in ("handlers", "cases"):
                for each in value:
                    each.body = self.block(each.body, inner)
            elif isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif name == "items":
                statement.items = [self.visit(each) for each in value]
        return statement

    def raised(self, statement: ast.Raise) -> ast.stmt:
        """`raise`: in a branch of a node it is what that branch ends with."""
        made: ast.Raise = self.visit(statement)
        error = ast.Lambda(no_arguments(), parsed_again(made.exc))
        end = ast.Return(flow("raised", [error], asks=False))
        return located(ast.If(flow("is_node", [], asks=False), [end], [made]), statement)

    def end(self, statement: Any, where: Block) -> ast.stmt:
        """A statement that ends a block."""
        if isinstance(statement, ast.Return):
            if statement.value is not None:
                statement.value = self.visit(statement.value)
            if not where.nested or hasattr(statement, "names"):
                return statement
            value = statement.value or ast.Constant(None)
            return located(ast.Return(flow("Returned", [value], asks=False)), statement)
        if not (where.nested and where.loop):
            unchanged: ast.stmt = statement
            return unchanged
        result = flow_name("BREAK") if isinstance(statement, ast.Break) else ast.Constant(None)
        return located(ast.Return(result), statement)

    def choice(self, statement: ast.If) -> list[ast.stmt]:
        """An `if` that does not end the block around it."""
        names = names_bound([*statement.body, *statement.orelse])
        test = self.visit(statement.test)
        sides = [self.nested(side, statement, Block(True, True)) for side in (statement.body, statement.orelse)]
        call = flow("branch", [test, *(name(each.name) for each in sides), text(names)])
        return [*sides, located(ast.Expr(call), statement)]

    def choice_and_rest(self, statement: ast.If, rest: Sequence[ast.stmt], where: Block) -> list[ast.stmt]:
        """An `if` that may end the block around it, with the statements behind it."""
        names = names_bound([*statement.body, *statement.orelse, *rest])
        test = self.visit(statement.test)
        inside = Block(True, True, where.loop)
        later = self.nested(rest, statement, inside)
        go_on: Any = located(ast.Return(ast.Call(name(later.name), [], [])), statement)
        go_on.names = names_bound(rest)
        sides = [self.nested([*side, go_on], statement, inside) for side in (statement.body, statement.orelse)]
        call = flow("branch", [test, *(name(each.name) for each in sides), text(names)])
        return [later, *sides, self.result(call, statement, where)]

    def loop(self, statement: Any) -> tuple[ast.FunctionDef, ast.expr]:
        """The function that is the body of a loop, and the call that goes through it."""
        is_for = isinstance(statement, ast.For)
        body = statement.body
        head: list[ast.stmt] = []
        parameters: list[str] = []
        if is_for:
            parameters = [self.fresh("element")]
            head = [located(ast.Assign([statement.target], name(parameters[0])), statement)]
        names = names_bound([*head, *body])
        first = sorted(bound_first([*head, *body]))
        ends = any(may_end(each) for each in body)
        used = self.used_outside(statement, names)
        made = self.nested([*head, *body], statement, Block(True, True, True), parameters)
        place = ast.Tuple([ast.Constant(statement.lineno), ast.Constant(statement.col_offset)], ast.Load())
        told = [place, name(made.name), text(names), text(first), text(used), ast.Constant(ends)]
        if is_for:
            return made, located(flow("each", [self.iterated(statement.iter), *told]), statement)
        test = ast.Lambda(no_arguments(), self.visit(statement.test))
        return made, located(flow("loop", [test, *told]), statement)

    def after(self, call: ast.expr, statement: ast.stmt, rest: Sequence[ast.stmt], where: Block) -> list[ast.stmt]:
        """What comes after a loop that may end the block around it."""
        later = self.nested(rest, statement, Block(True, True, where.loop))
        is_short = len(rest) == 1 and isinstance(rest[0], ast.Return)
        call = flow("after", [call, name(later.name), text(names_bound(rest)), ast.Constant(is_short)])
        return [later, self.result(call, statement, where)]

    def ended(self, call: ast.expr, statement: ast.stmt, where: Block) -> list[ast.stmt]:
        """Leave the function where a loop has."""
        status = self.fresh("status")
        kept = ast.Assign([ast.Name(status, ast.Store())], flow("decided", [call]))
        left = ast.Compare(name(status), [ast.IsNot()], [ast.Constant(None)])
        leave = ast.If(left, [self.result(name(status), statement, where)], [])
        return [located(kept, statement), located(leave, statement)]

    def result(self, status: ast.expr, statement: ast.stmt, where: Block) -> ast.stmt:
        """The end of a block with this status."""
        return located(ast.Return(status if where.nested else flow("result", [status], asks=False)), statement)

    def nested(
        self, statements: Sequence[ast.stmt], near: ast.stmt, where: Block, parameters: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """The function of statements."""
        names = names_bound(statements)
        self.bound |= dict.fromkeys(names)
        made = self.block(parsed_again_marked(statements), where) or [ast.Pass()]
        if names:
            made.insert(0, ast.Nonlocal(list(names)))
        arguments = no_arguments()
        arguments.args = [ast.arg(each) for each in parameters]
        function: ast.FunctionDef = located(function_of(self.fresh("block"), arguments, made), near)
        return function

    def used_outside(self, loop: ast.stmt, names: Sequence[str]) -> list[str]:
        """Those of the names bound in a loop that the function reads elsewhere."""
        inside = {id(each) for each in ast.walk(loop)}
        place = loop.lineno, loop.col_offset
        within = loop.end_lineno, loop.end_col_offset
        read = {
            each.id
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name)
            and isinstance(each.ctx, ast.Load)
            and id(each) not in inside
            and not place <= (each.lineno, each.col_offset) < within
        }
        return [each for each in names if each in read]

    def fresh(self, what: str) -> str:
        self.serial += 1
        return f"{what} {self.serial}"

    # --- expressions ---

    def iterated(self, value: ast.expr) -> ast.expr:
        """What a `for` loop goes over."""
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id in ITERATIONS
            and not value.keywords
            and not any(isinstance(each, ast.Starred) for each in value.args)
        ):
            return located(flow("elements", [value.func, *map(self.iterated, value.args)], asks=False), value)
        return self.visit(value)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and`, `or`."""
        self.generic_visit(node)
        if not can_be_function(node):
            return node
        sides = [ast.Lambda(no_arguments(), each) for each in node.values]
        return located(flow("both" if isinstance(node.op, ast.And) else "either", sides), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`not`."""
        self.generic_visit(node)
        return located(flow("negated", [node.operand]), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """`a if test else b`."""
        self.generic_visit(node)
        if not can_be_function(node):
            return node
        sides = [ast.Lambda(no_arguments(), each) for each in (node.body, node.orelse)]
        return located(flow("chosen", [node.test, *sides]), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """`a < b < c`, where b is a name or a number."""
        middle = node.comparators[:-1]
        if not middle or not all(isinstance(each, (ast.Name, ast.Constant)) for each in middle):
            return self.generic_visit(node)
        left, pairs = node.left, list[ast.expr]()
        for op, right in zip(node.ops, node.comparators, strict=True):
            pairs.append(located(ast.Compare(left, [op], [right]), node))
            left = parsed_again(right)
        return self.visit_BoolOp(located(ast.BoolOp(ast.And(), pairs), node))

    def visit_Call(self, node: ast.Call) -> Any:
        """`len(x)`, and `super()`, which needs its arguments in a function of its own."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1 and not node.keywords:
            return located(flow("length", [node.func, *node.args], asks=False), node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            own = self.function.args
            if not isinstance(self.function, ast.FunctionDef) or self.around or not (own.posonlyargs or own.args):
                raise UnsupportedSource
            node.args = [name("__class__"), name((own.posonlyargs or own.args)[0].arg)]
        return node


def asserted(statement: ast.Assert) -> ast.If:
    """`assert` as a choice."""
    error = ast.Call(name("AssertionError"), [] if statement.msg is None else [statement.msg], [])
    test = ast.UnaryOp(ast.Not(), statement.test)
    return located(ast.If(test, [ast.Raise(error, None)], []), statement)


def check_supported(function: Any) -> None:
    """Raise UnsupportedSource for a function that cannot be taken apart."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            raise UnsupportedSource
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OPEN_SCOPES:
            raise UnsupportedSource
    if any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in own_nodes(function)):
        raise UnsupportedSource


def can_be_function(node: ast.AST) -> bool:
    """True if a part of a function can be one of its own: it binds no name in an expression."""
    kinds = ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await
    return not any(isinstance(each, kinds) for each in ast.walk(node))


def parsed_again_marked(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Copies of statements, which keep the mark of a result."""
    made = list[ast.stmt]()
    for each in statements:
        copied = each if hasattr(each, "names") else parsed_again(each)
        made.append(copied)
    return made


def located(node: Any, near: ast.AST) -> Any:
    """A node with the place of another one."""
    return ast.fix_missing_locations(ast.copy_location(node, near))


def name(of: str) -> ast.expr:
    return ast.Name(of, ast.Load())


def text(names: Sequence[str]) -> ast.expr:
    values: Any = tuple(names)
    return ast.Constant(values)


def flow_name(attribute: str) -> ast.expr:
    return ast.Attribute(ast.Constant(FLOW), attribute, ast.Load())


def flow(attribute: str, arguments: Sequence[ast.expr], asks: bool = True) -> ast.expr:
    """A call of `FLOW`. asks: it takes a function that asks for the truth of a value, in the program's name."""
    parameters = no_arguments()
    parameters.args = [ast.arg("value")]
    answer = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), name("value")))
    ask: list[ast.expr] = [ast.Lambda(parameters, answer)] if asks else []
    return ast.Call(flow_name(attribute), [*ask, *arguments], [])


def no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def function_of(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """A function without decorators and annotations."""
    more: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    return ast.FunctionDef(name, arguments, body, [], None, **more)


__all__ = ["has_try", "loops_around", "rewritten_code"]
