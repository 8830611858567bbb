"""Theano's place for settings: `config`, `change_flags`, and settings of the program's own (`AddConfigVar`).

In: names, what they may be set to. Out: attributes of `config`, which THEANO_FLAGS may set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.configdefaults import ADDED, change_flags, config, read_added


class ConfigParam:
    """A setting: what it is at first, and what makes a value of what it is set to (ValueError where nothing can)."""

    def __init__(self, default: Any, filter: Callable[[Any], Any] | None = None, allow_override: bool = True) -> None:
        self.default = default
        self.filter = filter or (lambda value: value)


def BoolParam(default: Any, is_valid: Any = None, allow_override: bool = True) -> ConfigParam:  # noqa: N802
    """A setting that is true or false, also as words or numbers."""
    words = {"false": False, "0": False, "true": True, "1": True}

    def convert(value: Any) -> bool:
        if str(value).lower() not in words:
            raise ValueError(f"{value!r} is neither true nor false")
        return words[str(value).lower()]

    return ConfigParam(default, convert)


def IntParam(default: Any, is_valid: Any = None, allow_override: bool = True) -> ConfigParam:  # noqa: N802
    """A whole number."""
    return ConfigParam(default, int)


def FloatParam(default: Any, is_valid: Any = None, allow_override: bool = True) -> ConfigParam:  # noqa: N802
    """A number."""
    return ConfigParam(default, float)


def StrParam(default: Any, is_valid: Any = None, allow_override: bool = True) -> ConfigParam:  # noqa: N802
    """A text."""
    return ConfigParam(default, str)


def EnumStr(default: str, *options: str, **kwargs: Any) -> ConfigParam:  # noqa: N802
    """One of some words."""

    def convert(value: Any) -> Any:
        if value not in (default, *options):
            raise ValueError(f"{value!r} is none of {', '.join((default, *options))}")
        return value

    return ConfigParam(default, convert)


def AddConfigVar(  # noqa: N802
    name: str, doc: str, configparam: ConfigParam, root: Any = None, in_c_key: bool = True
) -> None:
    """A setting of the program's own: an attribute of `config`, a name of two words one of `config.word`. Raises
    AttributeError where there is one of that name."""
    if name in ADDED or hasattr(config, name):
        raise AttributeError(f"there is an option {name!r} already")
    ADDED[name] = configparam
    read_added(name)


__all__ = [
    "AddConfigVar", "BoolParam", "ConfigParam", "EnumStr", "FloatParam", "IntParam", "StrParam", "change_flags",
    "config",
]  # fmt: skip
