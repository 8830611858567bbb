"""What stands for a derivative that does not exist, or that nobody has written.

In: an op, the argument that is differentiated by, and a reason. Out: a variable of `NullType`, of which `grad` makes an
error that names both, or of `DisconnectedType`.
"""

from __future__ import annotations

from graphc.ir.node import Node, describe
from graphc.startup.record import record


@record(eq=False)
class NullType:
    """The type of a derivative that is not defined, or not implemented. why_null: the reason, for messages."""

    why_null: str = "(no explanation given)"

    def __call__(self, name: str | None = None) -> Absent:
        """A variable of this type."""
        return Absent(self, name)

    def __str__(self) -> str:
        return "NullType"


@record(eq=False)
class DisconnectedType:
    """The type of a derivative by what a value does not depend on."""

    def __call__(self, name: str | None = None) -> Absent:
        """A variable of this type."""
        return Absent(self, name)

    def __str__(self) -> str:
        return "DisconnectedType"


@record(eq=False)
class Absent:
    """What stands for a derivative that does not exist: Theano's variables of the types above."""

    type: NullType | DisconnectedType
    name: str | None = None

    def __str__(self) -> str:
        return self.name or f"<{self.type}>"

    @property
    def is_null(self) -> bool:
        """Whether it is undefined, and not merely zero."""
        return isinstance(self.type, NullType)


def undefined(op: object, position: int, node: object, comment: str = "") -> Absent:
    """The derivative of an op by its argument at a position, where it has none."""
    return _null("mathematically undefined", op, position, node, comment)


def not_implemented(op: object, position: int, node: object, comment: str = "") -> Absent:
    """The derivative of an op by its argument at a position, where nobody has written it."""
    return _null("not implemented", op, position, node, comment)


def _null(what: str, op: object, position: int, node: object, comment: str) -> Absent:
    label = describe(node) if isinstance(node, Node) else str(node)
    return NullType(f"the derivative of op {op} by argument {position}, {label}, is {what}. {comment}".rstrip(" ."))()
