"""Graphs for people to read, under Theano's names.

In: variables, owners, functions. Out: trees (`debugprint`, `min_informative_str`), expressions (`pp`), pictures
(`pydotprint`), and values while a function runs (`Print`). What graphc puts between what a person writes, sizes and
broadcasts, is left out of trees and pictures. A compiled function is shown as it was rewritten.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphc.codegen.pipeline.build import generation
from graphc.codegen.pipeline.kernel import Report
from graphc.errors import GraphTypeError, GraphValueError
from graphc.functions.callables import Function
from graphc.functions.convention import In, Out
from graphc.functions.debug_modes import Checked
from graphc.ir.call_errors import explain_all
from graphc.ir.expression import BINDS_ATTRIBUTE, NESTED, Writer, expression, implied
from graphc.ir.node import CONSTANT, INPUT, SHARED, SIZE, Node, Op, constant_value
from graphc.ir.walk import node_set, nodes_of, reachable
from graphc.ops.custom import custom_op
from graphc.ops.elementwise import as_node
from graphc.printing.drawing import Arrow, NodePicture, draw
from graphc.startup.versions import Digest
from graphc.theano.owners import Apply
from graphc.tracing.traced import Jitted

__all__ = ["Print", "d3viz", "debugprint", "min_informative_str", "pp", "pprint", "pydot_imported", "pydotprint"]

pydot_imported = True
"""Pictures can be drawn: no program is needed for them."""

SIZED = {"subtensor", "broadcast_to", "reshape", "set_subtensor", "inc_subtensor", "iota"}
"""Ops some of whose arguments are sizes or positions."""
IDS = ("CHAR", "int", "id", "")


# --- what is shown --------------------------------------------------------------------------------------------------


def roots_of(item: Any) -> list[Node]:
    """The variables that a variable, an owner, a function, or a list of these stands for. A jitted function stands for
    those that are compiled."""
    if isinstance(item, Jitted):
        if not item.functions:
            raise GraphValueError(f"{item.title} is not compiled yet: call it, or give function_for(*args)")
        return roots_of(item.functions)
    if isinstance(item, Node):
        return [as_node(item)]
    if isinstance(item, Apply):
        return list(item.outputs)
    if isinstance(item, In | Out):
        return roots_of(item.variable)
    if isinstance(item, Function):
        if isinstance(item, Checked):
            return list(item.rewritten.outputs)
        if item.mode == "interpreted":
            return list(item.kernel.results)
        done = generation().rewrite_kernel(item.kernel, Report(item.kernel.name))
        return list(done.results)
    outputs = getattr(item, "outputs", None)
    if outputs is not None:
        return roots_of(list(outputs))
    if isinstance(item, list | tuple):
        return [root for each in item for root in roots_of(each)]
    raise GraphTypeError(f"{item!r} is no variable, owner or function that could be printed")


def inputs_of(node: Node) -> list[Node]:
    """The arguments of a node that a person has written: no sizes, and nothing that fits an operand to others."""
    shown = []
    for position, arg in enumerate(node.args):
        inner = implied(node, arg)
        number = node.op.name in SIZED and position > 0 and not inner.ndim and inner.type.dtype == "int64"
        if not number or not (inner.op is SIZE or inner.op is CONSTANT or is_size(inner)):
            shown.append(inner)
    return shown


def is_size(node: Node) -> bool:
    """True for a node that is computed of sizes and numbers alone."""
    return all(leaf.op in (SIZE, CONSTANT) for leaf in node_set([node]) if not leaf.args)


def op_text(node: Node) -> str:
    """An op with what it is told besides its arguments."""
    if node.op.name == "dimshuffle":
        details = ", ".join(str(axis) for axis in node.attrs["order"])
    elif node.op.name == "subtensor":
        details = Writer().cuts(node, 2)
    else:
        shown = (f"{key}={value!r}" for key, value in sorted(node.attrs.items()) if not hasattr(value, "results"))
        details = ", ".join(shown)
    return f"{node.op.name}{{{details}}}" if details else node.op.name


def leaf_text(node: Node) -> str:
    """A variable without an owner."""
    if node.op is CONSTANT and node.name is None:
        value = constant_value(node)
        assert value is not None
        return f"constant{{{expression(node)}}}" if value.size <= 16 else f"constant{{{node.type}}}"
    return node.name or (expression(node) if node.op is SIZE else f"<{node.type}>")


# --- trees ----------------------------------------------------------------------------------------------------------


class Names:
    """The identifiers of variables in one printing: letters, numbers, their addresses, or none."""

    def __init__(self, ids: str, known: dict[Node, str]) -> None:
        if ids not in IDS:
            raise GraphValueError(f"ids={ids!r}: must be one of {', '.join(map(repr, IDS))}")
        self.ids = ids
        self.known = known

    def of(self, node: Node) -> str:
        if node not in self.known:
            number = len(self.known)
            forms = {"CHAR": letters(number), "int": str(number), "id": str(id(node)), "": ""}
            self.known[node] = forms[self.ids] and f"[id {forms[self.ids]}]"
        return self.known[node]


def letters(number: int) -> str:
    """A, B, …, Z, BA, BB, …"""
    text = ""
    while number or not text:
        number, digit = divmod(number, 26)
        text = chr(ord("A") + digit) + text
    return text


def debugprint(
    obj: Any,
    depth: int = -1,
    print_type: bool = False,
    file: Any = None,
    ids: str = "CHAR",
    stop_on_name: bool = False,
    done: dict[Any, Any] | None = None,
    print_storage: bool = False,
    print_clients: bool = False,
    used_ids: dict[Node, str] | None = None,
) -> Any:
    """Print the graph of `obj` (a variable, an owner, a function, or a list) as a tree, a line for each variable.

    A line has the op, or the name of a leaf, an identifier, the type with `print_type`, and the name in quotes; for a
    function also the place in the order of computation. What was printed before has only its line, ended by `···`.
    depth: how deep, -1 for all. file: None for standard output, "str" for a string that is returned, or a file. ids:
    "CHAR", "int", "id" or "". stop_on_name: nothing below what has a name. print_storage: the values of shared
    variables. print_clients: what takes a variable that several take. done, used_ids: identifiers to go on with.
    """
    if not isinstance(depth, int):
        raise GraphTypeError(f"debugprint: depth must be an int, not {depth!r}")
    if isinstance(obj, Jitted) and len(obj.functions) == 1:
        obj = obj.functions[0]
    roots = roots_of(obj)
    names = Names(ids, used_ids if used_ids is not None else {})
    seen: dict[Any, Any] = done if done is not None else {}
    order: dict[Node, int] = {}
    if isinstance(obj, Function):
        order = {node: number for number, node in enumerate(node for node in visible(roots) if node.args)}
    clients = takers(roots) if print_clients else {}
    lines: list[str] = []
    pending: list[tuple[Node, str, str, int]] = [(root, "", "", depth) for root in reversed(roots)]
    while pending:
        node, prefix, below, left = pending.pop()
        if not left:
            continue
        text = line_of(node, names, print_type)
        if node in order:
            text += f"   {order[node]}"
        if print_storage and node.op is SHARED:
            text += f"   [{node.cell[0]!r}]"  # type: ignore[attr-defined]
        if len(clients.get(node, ())) > 1:
            text += f"   clients:{clients[node]}"
        inner = inputs_of(node)
        stops = bool(stop_on_name and node.name and below)
        repeated = node in seen and bool(inner)
        lines.append(f"{prefix}{text}" + ("   ···" if repeated and not stops else ""))
        if repeated or stops:
            continue
        seen[node] = names.of(node)
        for position, each in reversed(list(enumerate(inner))):
            mark = " |" if position < len(inner) - 1 else "  "
            pending.append((each, f"{below} |", below + mark, left - 1))
    printed = "\n".join(lines) + "\n"
    if file == "str":
        return printed
    (sys.stdout if file is None else file).write(printed)
    return file


def line_of(node: Node, names: Names, print_type: bool) -> str:
    parts = [op_text(node) if node.args else leaf_text(node), names.of(node)]
    if print_type:
        parts.append(f"<{node.type}>")
    if node.args:
        parts.append(f"'{node.name or ''}'")
    return " ".join(part for part in parts if part)


def takers(roots: Sequence[Node]) -> dict[Node, list[str]]:
    """The users of each variable of a graph, as a person sees it."""
    found: dict[Node, list[str]] = {}
    for node in visible(roots):
        for position, arg in enumerate(inputs_of(node)):
            found.setdefault(arg, []).append(f"{node.op.name}#{position}")
    return found


def visible(roots: Sequence[Node]) -> list[Node]:
    """The nodes that a person sees, in the order of computation."""
    seen = set(reachable(roots, inputs_of))
    return [node for node in nodes_of(roots) if node in seen]


def pp(obj: Any) -> str:
    """A variable as an expression, in brackets where it is an operator's, as Theano's: `((x ** 2).sum() + 1)`; its own
    name is not used, those of its parts are. Of several outputs, or of a function, a line for each."""
    written = (Writer().write(root, NESTED, own=True) for root in roots_of(obj))
    return "\n".join(text if binding >= BINDS_ATTRIBUTE else f"({text})" for text, binding in written)


pprint = pp


def min_informative_str(obj: Any, indent_level: int = 0) -> str:
    """A variable as a tree, as far as it takes to tell it by named variables and constants.

    >>> x, y = T.dvectors("x", "y")
    >>> print(printing.min_informative_str(T.exp(x) + y))
    A. add
     B. exp
      C. x
     D. y
    """
    tags: dict[Node, str] = {}

    def lines(node: Node, depth: int) -> Iterator[str]:
        indent = " " * depth
        if node in tags:
            yield f"{indent}<{tags[node]}>"
            return
        tags[node] = letters(len(tags))
        leaf = node.name is not None or not node.args
        yield f"{indent}{tags[node]}. {node.name or (leaf_text(node) if leaf else op_text(node))}"
        if not leaf:
            for each in inputs_of(node):
                yield from lines(each, depth + 1)

    return "\n".join(line for root in roots_of(obj) for line in lines(root, indent_level))


# --- values while a function runs -----------------------------------------------------------------------------------


def print_value(op: Print, value: Any) -> None:
    """Print a value as `Print` does: a line for each attribute, or for what a method gives."""
    for attribute in op.attrs:
        found = getattr(value, attribute)
        print(op.message, attribute, "=", found() if callable(found) else found)


class Print:
    """An identity that prints: `Print("message", attrs=("__str__",))(x)` is `x`, and each call that computes it prints
    the message with these attributes, or what these methods give, of the value. `global_fn(op, value)` is called
    instead of printing. Derivatives go through. What is printed is computed as it stands: rewriting does not see
    through it. Applying it raises GraphTypeError to what is no tensor. A call raises AttributeError for an attribute
    that arrays do not have."""

    def __init__(
        self, message: str = "", attrs: Sequence[str] = ("__str__",), global_fn: Callable[[Any, Any], Any] = print_value
    ) -> None:
        self.message = message
        self.attrs = tuple(attrs)
        self.global_fn = global_fn

    def op(self) -> Callable[..., Node]:
        """The function that makes the node: one op for each message, attributes and function."""
        digest = Digest()
        digest.add(repr((self.message, self.attrs, id(self.global_fn))).encode())
        say, own = self.global_fn, self

        def show(value: Any) -> Any:
            say(own, value)
            return value

        return custom_op(f"print_{digest.digits()[:12]}", show, lambda kind: kind, lambda node, cotangent: cotangent)

    def __call__(self, x: Any) -> Node:
        """`x`, which is printed when it is computed."""
        return self.op()(as_node(x))

    def __repr__(self) -> str:
        return f"Print({self.message!r}, {self.attrs!r})"


# --- pictures -------------------------------------------------------------------------------------------------------

COLOURS = {"input": "#d9f2d9", "shared": "#cfe8f7", "constant": "#f2f2f2", "output": "#f9d9d9", "op": "#ffffff"}
"""Fillings of leaves by their kind, of outputs, and of ops."""


def pydotprint(
    fct: Any,
    outfile: str | os.PathLike[str] | None = None,
    compact: bool = True,
    format: str = "svg",
    with_ids: bool = False,
    high_contrast: bool = True,
    cond_highlight: Any = None,
    colorCodes: Mapping[str, str] | None = None,  # noqa: N803 - Theano's name
    max_label_size: int = 70,
    scan_graphs: bool = False,
    var_with_name_simple: bool = False,
    print_output_file: bool = True,
    assert_nb_all_strings: int = -1,
    return_image: bool = False,
) -> Any:
    """Draw the graph of a variable, a function, or a list of variables, to an SVG file; no program is needed for it.

    Inputs are green, shared variables blue, constants grey, outputs red. outfile: the file, whose ending becomes
    `.svg`; "graphc.svg" where None. compact: values that are computed have a picture of their own only where they are
    outputs. with_ids: numbers of the order of computation. colorCodes: colours by the name of an op. max_label_size:
    letters of a text. var_with_name_simple: named variables without their types. return_image: return the text of the
    file, and write none. The other arguments are Theano's, and change nothing. Returns the path of the file.
    Raises OSError where it cannot be written.
    """
    roots = roots_of(fct)
    boxes, arrows = picture(roots, compact, with_ids, colorCodes or {}, max_label_size, var_with_name_simple)
    title = fct.name if isinstance(fct, Function) else fct.__name__ if isinstance(fct, Jitted) else ""
    text = draw(boxes, arrows, title)
    if return_image:
        return text
    path = Path(outfile or "graphc.svg").with_suffix(".svg")
    path.write_text(text, "utf-8")
    if print_output_file:
        print(f"The output file is available at {path}")
    return path


def d3viz(fct: Any, outfile: str | os.PathLike[str], copy_deps: bool = True, *_args: Any, **_kwargs: Any) -> None:
    """Draw the graph of a variable, a function, or a list of variables, as a page for a browser: the file `outfile`,
    which needs nothing else. The other arguments are Theano's, and change nothing."""
    drawn = pydotprint(fct, return_image=True)
    Path(outfile).write_text(f'<!DOCTYPE html>\n<meta charset="utf-8">\n{drawn}', "utf-8")


def picture(
    roots: Sequence[Node], compact: bool, with_ids: bool, colours: Mapping[str, str], longest: int, simple: bool
) -> tuple[dict[Any, NodePicture], list[Arrow]]:
    """The boxes and arrows of a graph."""
    boxes: dict[Any, NodePicture] = {}
    arrows: list[Arrow] = []
    for number, node in enumerate(visible(roots)):
        key: Any = node
        boxes[key] = box_of(node, number if with_ids else None, colours, longest, simple)
        inner = inputs_of(node)
        for position, arg in enumerate(inner):
            place = str(position) if len(inner) > 1 else ""
            arrows.append(
                Arrow(source_of(arg, roots, compact), node, place if compact else f"{place} {arg.type}".strip())
            )
        if node.args and (node in roots or not compact):
            label = clipped(node.name or str(node.type), longest)
            fill = COLOURS["output"] if node in roots else "#ffffff"
            boxes["value", node] = NodePicture((label,), "ellipse", fill, hint=str(node.type))
            arrows.append(Arrow(node, ("value", node)))
    return boxes, arrows


def source_of(arg: Node, roots: Sequence[Node], compact: bool) -> Any:
    """The box from which an arrow of a value begins."""
    return ("value", arg) if arg.args and (arg in roots or not compact) else arg


def box_of(node: Node, number: int | None, colours: Mapping[str, str], longest: int, simple: bool) -> NodePicture:
    """The box of a leaf or an op."""
    where = f" ({node.where})" if node.where else ""
    if node.args:
        label = op_text(node) if number is None else f"{number} {op_text(node)}"
        lines = (clipped(label, longest), *((node.name,) if node.name else ()))
        return NodePicture(lines, "box", colours.get(node.op.name, COLOURS["op"]), hint=f"{expression(node, 3)}{where}")
    kinds: dict[Op, str] = {INPUT: "input", SHARED: "shared"}
    text = leaf_text(node)
    typed = node.op is not CONSTANT and not (simple and node.name)
    lines = (clipped(text, longest), *((str(node.type),) if typed else ()))
    return NodePicture(lines, "ellipse", COLOURS[kinds.get(node.op, "constant")], hint=f"{text}: {node.type}{where}")


def clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


explain_all(globals())
