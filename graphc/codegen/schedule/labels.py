"""What values are called and where they come from, for the reader of plans and of generated source.

In: the nodes of a graph. Out: `Labels`: a word for each node, and the line of the user's program that made it.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping

from graphc.ir.node import LEAVES, Node, Where
from graphc.startup.record import fresh, record

ASSIGNMENT = re.compile(r"([^\W\d]\w*)\s*(?::[^=]*)?[-+*/@]?=(?!=)(?!.*\bfunction\()")
LONGEST_LINE = 96


@record()
class Labels:
    """`assigned`: for nodes that a line of the program makes last, the name that it gives them."""

    assigned: Mapping[Node, str] = fresh(factory=dict)

    def __call__(self, node: Node) -> str:
        """The user's name of a node, or that of its op; of one of several results, that of what gives them."""
        named = node.name or self.assigned.get(node)
        if named is None and node.op.name == "item":
            return self(node.args[0])
        return named or node.op.name

    def joined(self, nodes: Iterable[Node]) -> str:
        """One word for several nodes, in which each name stands once."""
        return "_".join(dict.fromkeys(map(self, nodes)))

    def origin(self, nodes: Iterable[Node]) -> str:
        """The lines that made nodes, as they stand in the program."""
        return "\n".join(dict.fromkeys(self.line(node) for node in nodes))

    def line(self, node: Node) -> str:
        if node.where is None:
            return self(node)
        text = _source(node.where)
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE]} ..."
        return f"{node.where}: {text or self(node)}"


UNLABELLED = Labels()


def labels_of(order: Iterable[Node]) -> Labels:
    """The labels of nodes that are given in the order in which they are computed."""
    last = {(node.where.file, node.where.line): node for node in order if node.where and node.op not in LEAVES}
    found = ((node, ASSIGNMENT.match(_source(node.where))) for node in last.values() if node.where is not None)
    return Labels({node: match[1] for node, match in found if match is not None})


def _source(where: Where) -> str:
    """A line of a program, "" where it is not to be had."""
    return linecache.getline(where.file, where.line).strip()
