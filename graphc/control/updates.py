"""Updates of shared variables, which may be added up: what `scan` returns with its outputs.

In: pairs of shared variables and their new values. Out: a dict of them, in order, that holds nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from graphc.errors import UpdateError
from graphc.ir.called import explain_all
from graphc.ir.node import SHARED, Node, describe


class OrderedUpdates(OrderedDict[Any, Any]):
    """New values of shared variables, in order; two may be added up where they agree. Raises UpdateError for a key that
    is no shared variable, and for two values of one variable.

        >>> updates = OrderedUpdates([(w, w - 0.1 * gw)])
        >>> updates += OrderedUpdates({b: b - 0.1 * gb})
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if not (isinstance(key, Node) and key.op is SHARED):
            what = describe(key) if isinstance(key, Node) else repr(key)
            raise UpdateError(f"the keys of updates are shared variables; got {what}")
        super().__setitem__(key, value)

    def update(self, other: Any = (), /, **others: Any) -> None:
        """Take over pairs of a mapping or a list."""
        for key, value in [*(other.items() if isinstance(other, Mapping) else other), *others.items()]:
            if key in self and self[key] is not value:
                raise UpdateError(f"{describe(key)} has two new values")
            self[key] = value

    def __add__(self, other: Any) -> OrderedUpdates:
        made = OrderedUpdates()
        made.update(self)
        made.update(other)
        return made

    def __radd__(self, other: Any) -> OrderedUpdates:
        made = OrderedUpdates()
        made.update(other)
        made.update(self)
        return made

    def __iadd__(self, other: Any) -> OrderedUpdates:
        self.update(other)
        return self


__all__ = ["OrderedUpdates"]

explain_all(globals())
