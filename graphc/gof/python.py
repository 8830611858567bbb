"""Theano's names for what differs between Python 2 and 3, and for modules that moved: Python 3's own are behind them.

In: import statements of Theano's programs. Out: functions and classes of the standard library.
"""

import configparser
import operator
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, ValuesView
from functools import partial
from importlib import reload
from io import BytesIO
from typing import Any

__all__ = [
    "PY3", "BytesIO", "Callable", "Counter", "DefaultOrderedDict", "Iterable", "Mapping", "OrderedDict", "ValuesView",
    "cmp", "configparser", "decode", "decode_iter", "decode_with", "defaultdict", "exc_message", "get_unbound_function",
    "ifilter", "imap", "izip", "operator_div", "partial", "reload",
]  # fmt: skip

PY3 = True
izip, imap, ifilter = zip, map, filter
operator_div = operator.truediv


class DefaultOrderedDict(OrderedDict[Any, Any]):
    """A dict that keeps its order and makes what it misses."""

    def __init__(self, default_factory: Callable[[], Any] | None = None, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.default_factory = default_factory

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = made = self.default_factory()
        return made


def cmp(x: Any, y: Any) -> int:
    """-1, 0 or 1, as x is below, equal to or above y."""
    return int(x > y) - int(x < y)


def exc_message(error: BaseException) -> Any:
    """What an exception was raised with."""
    return error.args[0]


def get_unbound_function(method: Any) -> Any:
    """The function behind a method."""
    return getattr(method, "__func__", method)


def decode(text: Any) -> Any:
    """The text itself."""
    return text


def decode_iter(texts: Iterable[Any]) -> Iterable[Any]:
    """The texts themselves."""
    return texts


def decode_with(text: Any, encoding: str) -> Any:
    """Bytes as text; text itself."""
    return text.decode(encoding) if isinstance(text, bytes) else text
