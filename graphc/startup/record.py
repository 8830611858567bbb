"""Small immutable records that are cheap to define.

In: a class with annotated fields, some with defaults. Out: a slotted, frozen class with `__init__`, `__eq__`,
`__hash__`, `__repr__` and `__match_args__`, like `dataclass(frozen=True, slots=True)`:

    @record()
    class Guard:
        left: Size
        message: str = ""

A dataclass compiles these methods from source text, a third of a millisecond for each class at every start; here they
are shared closures over the field names. A class may have a `__post_init__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class Fresh:
    """A field default made anew for each instance."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def fresh(*, factory: Callable[[], T]) -> T:
    """A default that `factory` makes for each instance, for fields that hold a list or a dict."""
    default: Any = Fresh(factory)
    return default


@dataclass_transform(frozen_default=True, field_specifiers=(fresh,))
def record(*, eq: bool = True, deep: bool = False, frozen: bool = True) -> Callable[[type[T]], type[T]]:
    """A class decorator. eq=False: compare and hash by identity. deep: cache the hash, for records that nest records of
    their kind, as trees do. frozen=False: fields can be set; a record compared by value then has no hash. Defaults must
    be immutable, or `fresh`."""

    def define(cls: type[T]) -> type[T]:
        fields = tuple(vars(cls).get("__annotations__", {}))  # in order, unevaluated
        defaults = {name: cls.__dict__[name] for name in fields if name in cls.__dict__}
        setters: list[Callable[[Any, Any], None]] = []
        # What the class says itself comes last: it goes before what is made here.
        body: dict[str, Any] = {
            "__init__": _initializer(cls.__name__, fields, setters, defaults, cls.__dict__.get("__post_init__")),
            "__repr__": _representation(fields),
            "__reduce__": _reducer(fields),
            **(_comparison(fields, deep, frozen) if eq and "__eq__" not in cls.__dict__ else {}),
            **{name: value for name, value in cls.__dict__.items() if name not in (*fields, "__dict__", "__weakref__")},
            **({"__setattr__": _refuse, "__delattr__": _refuse} if frozen else {}),
            "__slots__": (*fields, "kept_hash") if deep else fields,
            "__match_args__": fields,
        }
        class_: Any = type(cls.__name__, cls.__bases__, body)
        setters += [getattr(class_, name).__set__ for name in fields]
        if cls.__dict__.keys().isdisjoint(("__init__", "__post_init__")):
            class_.__init__ = _short_initializer(class_, fields, setters, defaults) or class_.__init__
        return class_

    return define


def _initializer(
    name: str,
    fields: tuple[str, ...],
    setters: Sequence[Callable[[Any, Any], None]],
    defaults: dict[str, Any],
    check: Callable[[Any], None] | None,
) -> Callable[..., None]:
    """The general `__init__`. `setters` is filled in once the class exists."""
    count = len(fields)
    last = tuple(defaults[name] for name in fields if name in defaults)
    needed = count - len(last) if fields[count - len(last) :] == tuple(defaults) else count
    any_fresh = any(type(default) is Fresh for default in last)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method of that name
        given = len(args)
        if kwargs or given > count or given < needed:
            args = _complete(name, fields, defaults, args, kwargs)
        elif given != count:
            args += last[given - needed :]
        if any_fresh:
            args = tuple([value.factory() if type(value) is Fresh else value for value in args])
        for setter, value in zip(setters, args):  # noqa: B905 - there are as many: strict costs
            setter(self, value)
        if check is not None:
            check(self)

    vars(__init__)["takes"] = fields, defaults  # for messages
    return __init__


def _short_initializer(
    cls: type, fields: tuple[str, ...], setters: Sequence[Callable[[Any, Any], None]], defaults: dict[str, Any]
) -> Callable[..., None] | None:
    """A faster `__init__` with one parameter for each field, for records of up to three fields, which graphs make in
    large numbers: it takes half the time. None for other records and for `fresh` defaults."""
    last = tuple(defaults.values())
    if len(fields) not in _SHORT or any(type(default) is Fresh for default in last):
        return None
    if fields[len(fields) - len(last) :] != tuple(defaults):
        return None
    initializer: Any = _SHORT[len(fields)](*setters)
    initializer.__code__ = initializer.__code__.replace(co_varnames=("self", *fields))
    initializer.__defaults__ = last
    initializer.__qualname__ = f"{cls.__qualname__}.__init__"
    return initializer


def _of_one(set_a: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, a: Any) -> None:  # noqa: N807 - it becomes the method of that name
        set_a(self, a)

    return __init__


def _of_two(set_a: Callable[..., None], set_b: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, a: Any, b: Any) -> None:  # noqa: N807
        set_a(self, a)
        set_b(self, b)

    return __init__


def _of_three(
    set_a: Callable[..., None], set_b: Callable[..., None], set_c: Callable[..., None]
) -> Callable[..., None]:
    def __init__(self: Any, a: Any, b: Any, c: Any) -> None:  # noqa: N807
        set_a(self, a)
        set_b(self, b)
        set_c(self, c)

    return __init__


_SHORT: dict[int, Callable[..., Callable[..., None]]] = {1: _of_one, 2: _of_two, 3: _of_three}


def _complete(
    name: str, fields: tuple[str, ...], defaults: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The values of all fields, from positional and keyword arguments and defaults."""
    values = {**defaults, **dict(zip(fields, args, strict=False)), **kwargs}
    if len(values) == len(fields) >= len(args) and kwargs.keys().isdisjoint(fields[: len(args)]):
        try:
            return tuple([values[field] for field in fields])
        except KeyError:
            pass
    if kwargs.keys() - set(fields[len(args) :]) or len(args) > len(fields):
        by_name = ", ".join(kwargs) or "none by name"
        raise TypeError(f"{name}() has fields {', '.join(fields)}; got {len(args)} values and {by_name}")
    raise TypeError(f"{name}() lacks {', '.join(field for field in fields if field not in values)}")


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise AttributeError(f"{type(self).__name__}.{name}: a record cannot be changed")


def _representation(fields: tuple[str, ...]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:  # noqa: N807 - it becomes the method of that name
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"

    return __repr__


def _reducer(fields: tuple[str, ...]) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
    def __reduce__(self: Any) -> tuple[type, tuple[Any, ...]]:  # noqa: N807 - it becomes the method of that name
        return type(self), tuple(getattr(self, name) for name in fields)

    return __reduce__


def _comparison(fields: tuple[str, ...], deep: bool, frozen: bool) -> dict[str, Callable[..., Any] | None]:
    values: Callable[[Any], Any] = attrgetter(*fields) if fields else lambda self: ()

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807 - it becomes the method of that name
        return values(self) == values(other) if type(self) is type(other) else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807 - it becomes the method of that name
        return hash((type(self), values(self)))

    def kept_hash(self: Any) -> int:
        try:
            value: int = self.kept_hash
        except AttributeError:
            value = __hash__(self)
            type(self).kept_hash.__set__(self, value)
        return value

    return {"__eq__": __eq__, "__hash__": (kept_hash if deep else __hash__) if frozen else None}


def replace(item: T, **changes: Any) -> T:
    """A copy of `item` with `changes`."""
    values = [changes.pop(name) if name in changes else getattr(item, name) for name in item.__match_args__]  # type: ignore[attr-defined]
    return type(item)(*values, **changes)
