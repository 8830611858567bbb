"""The user's attributes of variables (`x.tag`), where graphs are rebuilt and where they become bodies of loops.

In: nodes, of which some have tags. Out: nodes made anew with the tags of what they stand for. A body is one object for
all loops that are equal, so the tags within it are kept with the node of each loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.ir.node import Body, Node
from graphc.ir.walk import nodes_of, substitute

WITHIN = "_tags_within"
"""Where the node of a loop has the attributes of the nodes of its body."""


def tags_of(node: Node) -> dict[str, Any]:
    """What the program has said of a node, but for its test value, which follows from what it is made of now."""
    kept = vars(node.tag) if "tag" in node.__dict__ else {}
    return {name: value for name, value in kept.items() if name != "test_value"}


def _carry(old: Node, new: Node) -> None:
    """Give a node the tags of what it stands for, where it has none of the same name."""
    if kept := tags_of(old):
        vars(new.tag).update({**kept, **vars(new.tag)})
    if WITHIN in old.__dict__:
        new.__dict__.setdefault(WITHIN, old.__dict__[WITHIN])


def with_tags(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """`outputs` with nodes replaced. What is made anew has the tags of what it stands for."""
    order = nodes_of(outputs)
    made = dict(zip(order, substitute(order, replacements), strict=True))
    for old, new in made.items():
        if new is not old and old not in replacements:
            _carry(old, new)
    return [made[node] for node in outputs]


def keep_within(loop: Node, results: Sequence[Node], body: Body) -> None:
    """Keep with the node of a loop the tags of its step as the program wrote it: of `results`, which became those of
    the body."""
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
    """Give the nodes of a step, over `operands` in place of the body's parameters, the tags that the loop keeps: those
    that were made for it, whose serial numbers are `since` or more."""
    kept = loop.__dict__.get(WITHIN, {})
    for new, (tags, within) in zip(substitute([*kept], operands), kept.values(), strict=True):
        if new.serial < since:
            continue
        vars(new.tag).update({**tags, **vars(new.tag)})
        if within is not None:
            new.__dict__.setdefault(WITHIN, within)
