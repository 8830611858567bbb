"""Signatures for the reference: the parameters of a public name as a reader writes them, with defaults and no types.

In: an item of the inventory. Out: `(x, axis=None)`. Python does not know the parameters of some callables: functions of
a table, records and distributions tell theirs in another way.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from book.inventory import Item
from graphc.startup.record import Fresh


def signature(item: Item) -> str:
    """The parameters of an item, in brackets."""
    value = item.value
    if isinstance(count := getattr(value, "nin", None), int):
        return "(" + ", ".join("xyzuvw"[:count]) + ", /, out=None, *, where=True, dtype=None)"
    if item.is_class and hasattr(value.__init__, "takes"):
        return of_record(*value.__init__.takes)
    if (law := getattr(value, "law", None)) is not None:
        names = law.shapes.split()
        return "(" + ", ".join([*names, "loc=0", *([] if law.discrete else ["scale=1"])]) + ")"
    if count := operands(value):
        return "(" + ", ".join(operand_names(item, count)) + ")"
    try:
        parameters = [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):  # a function of C that does not tell
        return "(...)"
    plain = [each.replace(annotation=each.empty, default=default(each)) for each in parameters]
    plain = plain[1:] if item.is_class and plain and plain[0].name == "self" else plain
    return str(inspect.Signature(plain))


def of_record(fields: tuple[str, ...], defaults: dict[str, Any]) -> str:
    """The parameters of a record: its fields."""
    given = {name: "..." if type(value) is Fresh else repr(value) for name, value in defaults.items()}
    return "(" + ", ".join(f"{name}={given[name]}" if name in given else name for name in fields) + ")"


def operands(value: Any) -> int:
    """The number of operands of a function that is made of a row of a table; 0 for any other."""
    inner = inspect.unwrap(value) if callable(value) else value
    if not inspect.isfunction(inner):
        return 0
    kept = inspect.getclosurevars(inner).nonlocals
    return getattr(kept.get("row"), "arity", 0) or (len(kept["partials"]) if "partials" in kept else 0)


def operand_names(item: Item, count: int) -> list[str]:
    """Names of operands: those of SciPy's function of that name where its documentation has them, else x, y and z."""
    doc = getattr(importlib.import_module("scipy.special"), item.name, None).__doc__ or ""
    called = re.findall(rf"^{item.name}\(([^)\[]*)", doc, re.MULTILINE)
    described = re.findall(r"^([\w, ]+) : (?:array_like|float|int)", doc, re.MULTILINE)
    for names in ([part.strip() for part in text.split(",")][:count] for text in (*called, ", ".join(described))):
        if len(names) == count and all(re.fullmatch(r"[a-zA-Z]+", name) for name in names):
            return names
    return [*"xyzuvw"[:count]]


class _Text(str):
    __slots__ = ()
    __repr__ = str.__str__


def default(parameter: inspect.Parameter) -> Any:
    """A default as it is written."""
    value = parameter.default
    if value is parameter.empty or value is None or isinstance(value, bool | int | float | str | tuple):
        return value
    return _Text(getattr(value, "__name__", None) or "...")
