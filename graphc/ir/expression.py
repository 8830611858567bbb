"""A tensor as the expression that a person wrote.

In: a node. Out: text:

    str((x ** 2).mean(axis=0))   ->  'sqr(x).mean(axis=0)'
    str(T.nnet.softmax(x)[:, 0]) ->  'softmax(x)[:, 0]'

Casts, broadcasts and sizes that an operator implies are left out. Functions that the graph holds as several nodes
(`mean`, `softmax`) are recognised by pattern. Named nodes and leaves are shown by name; parts of a text that is too
long become `…`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.ir import sizes
from graphc.ir.node import CONSTANT, INPUT, OPS, PARAM, SHARED, SIZE, Node, Size, constant_value, size_owner
from graphc.ir.walk import as_size_node
from graphc.startup.hooks import HOOKS

INFIX = {
    "or": (1, "|"), "bitwise_or": (1, "|"), "bitwise_xor": (2, "^"), "bitwise_and": (3, "&"),
    "equal": (0, "=="), "not_equal": (0, "!="), "less": (0, "<"), "less_equal": (0, "<="), "greater": (0, ">"),
    "greater_equal": (0, ">="), "left_shift": (4, "<<"), "right_shift": (4, ">>"), "add": (5, "+"), "sub": (5, "-"),
    "mul": (6, "*"), "true_div": (6, "/"), "floor_div": (6, "//"), "mod": (6, "%"), "matmul": (6, "@"),
}  # fmt: skip
"""Operators: precedence and symbol."""
PREFIX = {"neg": "-", "invert": "~"}
BINDS_PREFIX, BINDS_POWER, BINDS_ATTRIBUTE, ATOM = 7, 8, 9, 10
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
RENAMED = {"running_sum": "cumsum", "running_prod": "cumprod", "supremum": "max"}
RENAMED |= {"max_or_lowest": "max", "min_or_highest": "min"}
ELIDED = "…"
LONGEST, DEEPEST, NESTED = 60, 4, 60
"""Limits of a text in a message: its length, and its nesting depth. NESTED: the nesting depth of any text."""
MOST = 20_000
"""After this many characters, only names are written."""

Part = tuple[str, int]
"""A text and the precedence of its outermost operator."""


def label(node: Node) -> str:
    """A text for messages, as deep as the length limit permits."""
    for depth in range(DEEPEST, 1, -1):
        text = expression(node, depth)
        if len(text) <= LONGEST:
            return text
    return expression(node, 1)


def expression(node: Node, depth: int = NESTED) -> str:
    """The text of a node, with `…` below `depth` levels. The node's own name is not used."""
    return Writer().write(node, depth, own=True)[0]


class Writer:
    """Writes one expression."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, node: Node, depth: int, own: bool = False) -> Part:
        """The text of a node. own: expand the node even if it has a name."""
        if node.name is not None and not own:
            return node.name, ATOM
        leaf = leaf_text(node)
        if leaf is not None:
            return leaf, ATOM
        if depth <= 0 or self.written > MOST:
            return ELIDED, ATOM
        text, binding = self.compute(node, depth - 1)
        self.written += len(text)
        return text, binding

    def operand(self, node: Node, depth: int, least: int) -> str:
        """An operand, in brackets if its precedence is below `least`."""
        text, binding = self.write(node, depth)
        return text if binding >= least else f"({text})"

    def base(self, node: Node, depth: int) -> str:
        """The object before an attribute or index, bracketed where needed."""
        return self.operand(node, depth, BINDS_ATTRIBUTE)

    def compute(self, node: Node, depth: int) -> Part:
        written = node.__dict__.get("_written")
        if written is not None:
            base, key = written
            return f"{self.base(base, depth + 1)}[{self.key(key, depth)}]", BINDS_ATTRIBUTE
        known = self.composed(node, depth)
        if known is not None:
            return known
        name = node.op.name
        if name in INFIX and len(node.args) == 2:
            strength, symbol = INFIX[name]
            left = self.operand(implied(node, node.args[0]), depth, strength)
            right = self.operand(implied(node, node.args[1]), depth, strength + 1)
            if symbol == "+" and right.startswith("-"):
                symbol, right = "-", right[1:]
            return f"{left} {symbol} {right}", strength
        if name == "pow":
            base, power = (implied(node, arg) for arg in node.args)
            raised = self.operand(base, depth, BINDS_ATTRIBUTE)
            return f"{raised} ** {self.operand(power, depth, BINDS_PREFIX)}", BINDS_POWER
        if name in PREFIX:
            return f"{PREFIX[name]}{self.operand(node.args[0], depth, BINDS_PREFIX)}", BINDS_PREFIX
        special = SPECIAL.get(name)
        if special is not None:
            return special(self, node, depth)
        return self.call(RENAMED.get(name, name), node, depth)

    def call(self, name: str, node: Node, depth: int) -> Part:
        """A function call; arguments that exist only to carry sizes are left out."""
        args = [implied(node, arg) for arg in node.args]
        return f"{name}({', '.join(self.write(arg, depth)[0] for arg in args)})", ATOM

    def key(self, key: Any, depth: int) -> str:
        """The text between the brackets of `x[key]`."""
        if isinstance(key, tuple):
            return ", ".join(self.key(item, depth) for item in key) + ("," if len(key) == 1 else "")
        if isinstance(key, slice):
            first, last = ("" if end is None else self.key(end, depth) for end in (key.start, key.stop))
            return f"{first}:{last}" + ("" if key.step is None else f":{self.key(key.step, depth)}")
        if isinstance(key, Node):
            return self.write(key, depth)[0]
        if getattr(key, "size", 1) > LONGEST or (isinstance(key, list) and len(key) > LONGEST):
            return ELIDED
        text = "..." if key is Ellipsis else " ".join(repr(getattr(key, "tolist", lambda: key)()).split())
        return text if len(text) <= LONGEST else ELIDED

    def composed(self, node: Node, depth: int) -> Part | None:
        """The text of `mean`, `var`, `std`, `softmax` or `log_softmax`; None if the node is none of these patterns."""
        composition = find_spread(node) or find_mean(node) or find_softmax(node)
        if composition is None:
            return None
        name, base, axes, keepdims = composition
        if name in ("mean", "var", "std"):
            return f"{self.base(base, depth + 1)}.{name}({options(base, axes, keepdims)})", BINDS_ATTRIBUTE
        last = axes == (base.ndim - 1,)
        return f"{name}({self.write(base, depth)[0]}{'' if last else f', axis={axis_text(axes)}'})", ATOM

    def reduction(self, node: Node, depth: int, keepdims: bool = False) -> Part:
        name = RENAMED.get(node.op.name, node.op.name)
        base = node.args[0]
        if base.op.name == "cast" and name in ("sum", "prod", "any", "all"):
            base = base.args[0]
        return f"{self.base(base, depth + 1)}.{name}({options(base, node.attrs['axes'], keepdims)})", BINDS_ATTRIBUTE

    def dimshuffle(self, node: Node, depth: int) -> Part:
        (base,), order = node.args, node.attrs["order"]
        kept = tuple(axis for axis in order if axis != "x")
        if base.op.name in REDUCTIONS and kept == tuple(range(base.ndim)):
            axes = base.attrs["axes"]
            if all(order[axis] == "x" for axis in axes if axis < len(order)) and len(order) == base.args[0].ndim:
                return self.reduction(base, depth + 1, keepdims=True)
        if base.ndim > 1 and order == tuple(range(base.ndim))[::-1]:
            return f"{self.base(base, depth + 1)}.T", BINDS_ATTRIBUTE
        if kept == order and len(order) == base.ndim:
            return f"{self.base(base, depth + 1)}.transpose({', '.join(map(str, order))})", BINDS_ATTRIBUTE
        if base.ndim and kept == tuple(range(base.ndim)):
            marks = ["None" if axis == "x" else ":" for axis in order]
            while len(marks) > 1 and marks[-1] == ":":
                marks.pop()
            return f"{self.base(base, depth + 1)}[{', '.join(marks)}]", BINDS_ATTRIBUTE
        if base.op.name == "subtensor" and kept == order:
            dropped = [axis for axis in range(base.ndim) if axis not in order]
            return self.subtensor(base, depth, dropped)
        if not base.ndim:
            return self.write(base, depth + 1)
        shown = ", ".join(repr(axis) for axis in order)
        return f"{self.base(base, depth + 1)}.dimshuffle({shown})", BINDS_ATTRIBUTE

    def subtensor(self, node: Node, depth: int, dropped: Sequence[int] = ()) -> Part:
        return f"{self.base(node.args[0], depth + 1)}[{self.cuts(node, depth, dropped)}]", BINDS_ATTRIBUTE

    def cuts(self, node: Node, depth: int, dropped: Sequence[int] = ()) -> str:
        """The index text of a subtensor: one slice or position for each axis."""
        base, rank = node.args[0], node.args[0].ndim
        starts, counts, steps = node.args[1 : rank + 1], node.args[rank + 1 :], node.attrs["steps"]
        key = [
            self.write(start, depth)[0]
            if axis in dropped
            else self.cut(start, count, step, base.type.shape[axis], depth)
            for axis, (start, count, step) in enumerate(zip(starts, counts, steps, strict=True))
        ]
        while len(key) > 1 and key[-1] == ":":
            key.pop()
        return ", ".join(key)

    def cut(self, start: Node, count: Node, step: int, size: Size, depth: int) -> str:
        """The slice of one axis, from its start, count and step."""
        whole = as_size_node(size)
        first, number = constant_value(start), constant_value(count)
        if step == -1 and count is whole:
            return "::-1"
        begin = "" if first is not None and first == 0 else self.write(start, depth)[0]
        rest = sizes.subtract(size, as_number(start))
        if step == 1 and count in (whole, as_size_node(rest), as_size_node(sizes.maximum(rest, 0))):
            return f"{begin}:"
        if first is not None and number is not None and step > 0:
            return f"{begin}:{int(first) + int(number) * step}" + ("" if step == 1 else f":{step}")
        return f"{begin}:{ELIDED}" + ("" if step == 1 else f":{step}")

    def broadcast(self, node: Node, depth: int) -> Part:
        inner = node.args[0]
        while inner.op.name in ("dimshuffle", "cast") and inner.args[0].ndim == 0:
            inner = inner.args[0]
        value = constant_value(inner)
        shape = self.shape(node.args[1:], depth)
        if value is not None and value.ndim == 0 and not inner.name:
            if value in (0, 1):
                return f"{'ones' if value else 'zeros'}({shape})", ATOM
            return f"full({shape}, {value})", ATOM
        return f"broadcast_to({self.write(inner, depth)[0]}, {shape})", ATOM

    def cast(self, node: Node, depth: int) -> Part:
        return f"{self.base(node.args[0], depth + 1)}.astype({node.type.dtype!r})", BINDS_ATTRIBUTE

    def reshape(self, node: Node, depth: int) -> Part:
        base, shape = node.args[0], node.args[1:]
        if len(shape) == 1 and as_size_node(sizes.product(base.type.shape)) is shape[0]:
            return f"{self.base(base, depth + 1)}.flatten()", BINDS_ATTRIBUTE
        return f"{self.base(base, depth + 1)}.reshape({self.shape(shape, depth)})", BINDS_ATTRIBUTE

    def shape(self, wanted: Sequence[Node], depth: int) -> str:
        """Sizes as a tuple, or `x.shape` if they are all the sizes of one variable."""
        owner = size_owner(wanted[0]) if wanted and wanted[0].op is SIZE else None
        if owner is not None and [as_size_node(size) for size in owner.type.shape] == list(wanted):
            return f"{self.base(owner, depth + 1)}.shape"
        return f"({self.key(tuple(wanted), depth)})"

    def concatenate(self, node: Node, depth: int) -> Part:
        axis, args = node.attrs["axis"], list(node.args)
        inner = [arg.args[0] for arg in args if arg.op.name == "dimshuffle"]
        stacked = len(inner) == len(args) and all(
            arg.attrs["order"] == (*range(axis), "x", *range(axis, arg.args[0].ndim)) for arg in args
        )
        if stacked and self.shape(inner, depth).endswith(".shape"):
            return self.shape(inner, depth), BINDS_ATTRIBUTE
        listed = ", ".join(self.write(part, depth)[0] for part in (inner if stacked else args))
        along = f", axis={axis}" if axis else ""
        return f"{'stack' if stacked else 'concatenate'}([{listed}]{along})", ATOM

    def gather(self, node: Node, depth: int) -> Part:
        marks = [":"] * node.attrs["axis"] + [self.write(index, depth)[0] for index in node.args[1:]]
        return f"{self.base(node.args[0], depth + 1)}[{', '.join(marks)}]", BINDS_ATTRIBUTE

    def changed(self, node: Node, depth: int) -> Part:
        """set_subtensor, inc_subtensor and their gather variants."""
        base, value, rest = node.args[0], node.args[1], node.args[2:]
        if node.op.name.endswith("subtensor"):
            rank = base.ndim
            new = value.attrs["order"] if value.op.name == "dimshuffle" else ()
            key = [
                self.write(rest[axis], depth)[0]
                if len(new) == rank and new[axis] == "x"
                else self.cut(rest[axis], as_size_node(value.type.shape[axis]), step, base.type.shape[axis], depth)
                for axis, step in enumerate(node.attrs["steps"][:rank])
            ]
            while len(key) > 1 and key[-1] == ":":
                key.pop()
        else:
            key = [":"] * node.attrs["axis"] + [self.write(index, depth)[0] for index in rest]
        name = f"{node.op.name[:3]}_subtensor"
        inner = stripped(value)
        shown = self.write(inner if not inner.ndim else implied(node, value), depth)[0]
        return f"{name}({self.base(base, depth)}[{', '.join(key)}], {shown})", ATOM

    def running(self, node: Node, depth: int) -> Part:
        """cumsum and cumprod."""
        along = f", axis={node.attrs['axis']}" if node.ndim > 1 else ""
        return f"{RENAMED[node.op.name]}({self.write(implied(node, node.args[0]), depth)[0]}{along})", ATOM

    def arange(self, node: Node, depth: int) -> Part:
        (count,) = node.args
        least = constant_value(count.args[1]) if count.op.name == "maximum" else None
        return f"arange({self.write(count if least is None or least != 0 else count.args[0], depth)[0]})", ATOM

    def item(self, node: Node, depth: int) -> Part:
        return f"{self.write(node.args[0], depth + 1)[0]}[{node.attrs['index']}]", BINDS_ATTRIBUTE

    def checked(self, node: Node, depth: int) -> Part:
        """The checked value; the check itself is not shown."""
        return self.write(node.args[0], depth)

    def several(self, node: Node, depth: int) -> Part:
        return f"{node.op.name}({ELIDED})", ATOM


SPECIAL: dict[str, Callable[[Writer, Node, int], Part]] = {
    **dict.fromkeys(REDUCTIONS, Writer.reduction),
    **dict.fromkeys(("set_subtensor", "inc_subtensor", "set_gather", "inc_gather"), Writer.changed),
    **dict.fromkeys(("running_sum", "running_prod"), Writer.running),
    **dict.fromkeys(("scan", "cond"), Writer.several),
    "dimshuffle": Writer.dimshuffle,
    "subtensor": Writer.subtensor,
    "broadcast_to": Writer.broadcast,
    "checked": Writer.checked,
    "cast": Writer.cast,
    "reshape": Writer.reshape,
    "gather": Writer.gather,
    "concatenate": Writer.concatenate,
    "iota": Writer.arange,
    "item": Writer.item,
}
"""Ops that are not written as a plain call of their arguments."""


def leaf_text(node: Node) -> str | None:
    """The text of a leaf; None for a computed node."""
    if node.op is CONSTANT:
        value = node.attrs["value"].value
        if node.name is not None:
            return node.name
        if value.size > LONGEST:  # it is not made into text for its length
            return f"<constant {node.type}>"
        text = str(value).removesuffix(".0") if not value.ndim else " ".join(str(value.tolist()).split())
        return text if len(text) <= LONGEST else f"<constant {node.type}>"
    if node.op is SIZE:
        owner = size_owner(node)
        return f"{(owner.name if owner is not None else node.attrs['owner']) or 'x'}.shape[{node.attrs['axis']}]"
    if node.op in (INPUT, PARAM, SHARED):
        return node.name or f"<{node.type.dtype} {node.op.name}>"
    return None


def stripped(node: Node) -> Node:
    """The node beneath unnamed casts and broadcasts."""
    while node.name is None and node.args and "_written" not in node.__dict__:
        raised = node.op.name == "dimshuffle" and node.ndim > node.args[0].ndim
        if not (node.op.name in ("broadcast_to", "cast") or raised):
            break
        node = node.args[0]
    return node


def implied(parent: Node, arg: Node) -> Node:
    """An argument as the user wrote it, without the cast and broadcast that the operator of `parent` implies."""
    if arg.op.name == "broadcast_to" and arg.name is None and "_written" not in arg.__dict__:
        inner = arg.args[0]
        if inner.op.name == "dimshuffle" and inner.name is None and leads(inner):
            inner = inner.args[0]
        arg = inner
    elif arg.op.name == "dimshuffle" and arg.name is None and leads(arg) and parent.op.name not in SPECIAL:
        arg = arg.args[0]
    if arg.op.name == "cast" and arg.name is None and len(parent.args) > 1:
        others = [stripped(other) for other in parent.args]
        wide = any(other.type.dtype == arg.type.dtype for other in others if other is not stripped(arg))
        if wide or constant_value(arg.args[0]) is not None:
            arg = arg.args[0]
    return arg


def leads(node: Node) -> bool:
    """True if a dimshuffle only adds leading axes, as broadcasting does."""
    order = node.attrs["order"]
    count = order.count("x")
    return bool(count) and order == ("x",) * count + tuple(range(len(order) - count))


def as_number(node: Node) -> Size:
    value = constant_value(node)
    return node if value is None else int(value)


def axis_text(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def options(base: Node, axes: Sequence[int], keepdims: bool) -> str:
    """The keyword arguments of a reduction, as text."""
    along = "" if tuple(axes) == tuple(range(base.ndim)) else f"axis={axis_text(axes)}"
    return ", ".join(part for part in (along, "keepdims=True" if keepdims else "") if part)


Found = tuple[str, Node, tuple[int, ...], bool]
"""A function, its argument, its axes, and `keepdims`."""


def find_total(node: Node) -> tuple[Node, tuple[int, ...], bool] | None:
    """Match a sum, possibly with kept axes: its argument, axes and `keepdims`."""
    keepdims = node.op.name == "dimshuffle" and node.args[0].op.name == "sum"
    total = node.args[0] if keepdims else node
    if total.op.name != "sum" or (keepdims and len(node.attrs["order"]) != total.args[0].ndim):
        return None
    return total.args[0], total.attrs["axes"], keepdims


def find_mean(node: Node) -> Found | None:
    """Match a sum divided by its element count."""
    if node.op.name != "true_div":
        return None
    total = find_total(node.args[0])
    if total is None:
        return None
    base, axes, keepdims = total
    count = as_size_node(sizes.product(base.type.shape[axis] for axis in axes))
    divisor = stripped(node.args[1])
    known, wanted = constant_value(divisor), constant_value(count)
    if divisor is not count and not (known is not None and wanted is not None and known.ndim == 0 and known == wanted):
        return None
    return "mean", base.args[0] if base.op.name == "cast" else base, axes, keepdims


def find_spread(node: Node) -> Found | None:
    """Match `var` (the mean square of x - mean(x)) and `std` (its square root)."""
    if node.op.name == "sqrt":
        variance = find_spread(node.args[0]) if node.args[0].op.name == "true_div" else None
        return None if variance is None else ("std", *variance[1:])
    mean = find_mean(node)
    if mean is None or mean[1].op.name != "sqr" or mean[1].args[0].op.name != "sub":
        return None
    base, centre = mean[1].args[0].args
    inner = find_mean(centre.args[0] if centre.op.name == "broadcast_to" else centre)
    return ("var", base, mean[2], mean[3]) if inner is not None and inner[1] is base and inner[2] == mean[2] else None


def find_softmax(node: Node) -> Found | None:
    """Match exp(x - max) / sum (softmax) and x - max - log(sum) (log_softmax)."""
    name = node.op.name
    if name not in ("true_div", "sub"):
        return None
    whole, part = node.args
    if name == "sub":  # x - shift - log(sum(exp(x - shift)))
        part = stripped(part)
        if part.op.name != "log" or whole.op.name != "sub":
            return None
        total, powers, shifted = find_total(stripped(part.args[0])), OPS["exp"], whole
    else:
        total, powers, shifted = find_total(stripped(part)), OPS["exp"], whole.args[0] if whole.args else whole
    if total is None or total[0].op is not powers or total[0].args[0] is not shifted or shifted.op.name != "sub":
        return None
    if name == "true_div" and whole is not total[0]:
        return None
    if stripped(shifted.args[1]).op.name != "stop_gradient":
        return None
    return "softmax" if name == "true_div" else "log_softmax", shifted.args[0], total[1], False


HOOKS.expression, HOOKS.label = expression, label
