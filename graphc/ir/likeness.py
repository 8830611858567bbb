"""What a traced program learns of a tensor by its class and by `hasattr`: of a number other things than of an array.

    isinstance(x.sum(), float)       True, as of NumPy's number (`ops/questions.py: class_of`)
    hasattr(x.sum(), "__len__")      False: numbers have no length
    isinstance(x.sum(), Iterable)    False

In: the class of tensors that stand for numbers. Out: a metaclass and descriptors that hide from it what arrays have.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.traced import TRACE, asked_by_user, called_names


class Numbers(type):
    """The metaclass of tensors that stand for numbers. Python's abstract classes look for methods in `__mro__`, and
    find none of a tensor's."""

    @property
    def __mro__(cls) -> tuple[type, ...]:
        return (object,)


class OfArrays:
    """A method or attribute that a number lacks: `hasattr` and `getattr` of a traced program do not find it. Uses of it
    are told what is wrong by the method itself."""

    def __init__(self, inherited: Any) -> None:
        self.inherited = inherited

    def __get__(self, node: Any, owner: type | None = None) -> Any:
        if node is not None and TRACE.depth and asked_by_user() and called_names()[:1] in (["hasattr"], ["getattr"]):
            raise AttributeError("a number has no attribute of this name")
        return self.inherited.__get__(node, owner)

    def __set__(self, node: Any, value: Any) -> None:
        self.inherited.__set__(node, value)
