"""User attributes of variables (`x.tag`), kept when graphs are rebuilt or become bodies of loops.

In: nodes, some with tags. Out: rebuilt nodes with the tags of the nodes they replace. A body is shared by all equal
loops, so the tags inside it are stored on the node of each loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.ir.node import Body, Node
from graphc.ir.walk import nodes_of, substitute

WITHIN = "_tags_within"
"""The attribute of a loop's node that stores the tags of the nodes in its body."""


def tags_of(node: Node) -> dict[str, Any]:
    """The tags of a node without its test value, which is recomputed."""
    kept = vars(node.tag) if "tag" in node.__dict__ else {}
    return {name: value for name, value in kept.items() if name != "test_value"}


def _carry(old: Node, new: Node) -> None:
    """Copy the tags of the replaced node to its replacement, which keeps its own tags of the same name."""
    if kept := tags_of(old):
        vars(new.tag).update({**kept, **vars(new.tag)})
    if WITHIN in old.__dict__:
        new.__dict__.setdefault(WITHIN, old.__dict__[WITHIN])


def with_tags(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """`outputs` with nodes replaced; rebuilt nodes keep the tags of the nodes they replace."""
    order = nodes_of(outputs)
    made = dict(zip(order, substitute(order, replacements), strict=True))
    for old, new in made.items():
        if new is not old and old not in replacements:
            _carry(old, new)
    return [made[node] for node in outputs]


def keep_within(loop: Node, results: Sequence[Node], body: Body) -> None:
    """Store on a loop's node the tags of its step as the program wrote it. `results` of the step correspond to the
    results of `body`."""
    found: dict[Node, Node] = {}
    seen: set[Node] = set()
    pending = list(zip(results, body.results, strict=True))
    while pending:
        old, new = pending.pop()
        if old in seen or old.op is not new.op or len(old.args) != len(new.args):
            continue
        seen.add(old)
        pending += zip(old.args, new.args, strict=True)
        if tags_of(old) or WITHIN in old.__dict__:
            found[new] = old
    if found:
        loop.__dict__[WITHIN] = {new: (tags_of(old), old.__dict__.get(WITHIN)) for new, old in found.items()}


def tag_step(loop: Node, operands: Mapping[Node, Node], since: int) -> None:
    """Give the nodes of an opened step the tags stored on the loop's node. `operands` replace the body's parameters;
    nodes older than serial number `since` are left alone."""
    kept = loop.__dict__.get(WITHIN, {})
    for new, (tags, within) in zip(substitute([*kept], operands), kept.values(), strict=True):
        if new.serial < since:
            continue
        vars(new.tag).update({**tags, **vars(new.tag)})
        if within is not None:
            new.__dict__.setdefault(WITHIN, within)
