"""The class of the arrays that `graphc.numpy`, `lax`, `nn` and `random` give outside of traced functions.

In: arrays of NumPy's. Out: the same arrays as `ndarray`, a subclass with what JAX's arrays have besides:

    x = jnp.zeros(3)             ndarray, printed as NumPy's: array([0., 0., 0.])
    x.at[0].set(1.0)             a changed copy
    x.sum(where=None)            of all elements: to NumPy None is a mask that chooses nothing
    x[i]                         a tensor, in a traced function where i is one
    y = jnp.broadcast_to(x, (2, 3)); y += 1       a new array under the name y: that of NumPy's cannot be written to

Everything else is NumPy's own. Ufuncs and slices of such an array give such arrays; results without axes are NumPy's
scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.startup.hooks import HOOKS

PlainArray = np.ndarray[Any, np.dtype[Any]]


class Arrays(type):
    """The class of `ndarray`. others: the classes of what stands for arrays, to which tensors add theirs."""

    others: tuple[type, ...] = ()

    def __instancecheck__(cls, item: Any) -> bool:
        return isinstance(item, (np.ndarray, *cls.others))


class ndarray(PlainArray, metaclass=Arrays):  # noqa: N801 - NumPy's name
    """An array that `graphc.numpy` has made: NumPy's, with JAX's `at` and arguments. For `isinstance` all arrays are of
    this class, and tensors, which stand for arrays.

    >>> x = jnp.zeros(3)
    >>> x.at[1].set(5.0)
    array([0., 5., 0.])
    >>> isinstance(np.ones(2), jnp.ndarray)
    True
    """

    __slots__ = ()
    __module__ = "graphc.numpy"
    __array_priority__ = 0.5  # np.concatenate gives the class of the highest; of np.ndarray it is 0

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if return_scalar:
            return array[()]
        return array.view(ndarray) if type(array) is np.ndarray else array  # what `out=` has given

    def __repr__(self) -> str:
        return repr(np.asarray(self))  # NumPy prints an array of a subclass with the name of the class

    def __reduce_ex__(self, protocol: Any) -> Any:
        return as_own, (np.asarray(self),)

    @property
    def at(self) -> Any:
        """Changed copies: `x.at[key].set(v)`, `.add`, `.multiply`, `.divide`, `.power`, `.min`, `.max`, `.apply(f)`,
        and `.get(mode=...)`."""
        return HOOKS.at(self)

    def block_until_ready(self) -> ndarray:
        """The array itself, which is computed."""
        return self


Array = ndarray
"""The name of JAX."""


def as_own(array: PlainArray) -> ndarray:
    """An array of NumPy's, over the same memory."""
    return array.view(ndarray)


OWN = frozenset((np.ndarray, ndarray))
"""The types of arrays that are looked at without their dtypes' and subclasses' peculiarities."""


def _method(name: str) -> Callable[..., Any]:
    """A method of NumPy's arrays with JAX's arguments."""
    method = getattr(np.ndarray, name)

    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        if kwargs and kwargs.get("where", self) is None:
            del kwargs["where"]
        is_numpys = NUMPYS.issuperset(kwargs) and kwargs.get("mode") not in ("fill", "promise_in_bounds")
        if not is_numpys or any(isinstance(each, Arrays.others) for each in (*args, *kwargs.values())):
            return HOOKS.array_method(name, self, args, kwargs)
        result = method(self, *args, **kwargs)
        return result[()] if type(result) is ndarray and not result.ndim else result

    call.__name__, call.__qualname__, call.__doc__ = name, f"ndarray.{name}", method.__doc__
    return call


def _in_place(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """`x += y`, which gives a new array where `x` cannot be written to."""
    changed = getattr(np.ndarray, f"__{name[3:]}")

    def call(self: ndarray, other: Any) -> Any:
        try:
            return method(self, other)
        except ValueError:
            if self.flags.writeable:
                raise
        return changed(self, other)

    call.__name__, call.__qualname__ = name, f"ndarray.{name}"
    return call


NUMPYS = frozenset(
    "a_max a_min axis axis1 axis2 casting ddof decimals dtype indices initial keepdims kind max mean min mode n offset "
    "order out repeats side sorter subok v where".split()
)
"""The arguments by name that the methods of NumPy's arrays know."""
METHODS = """
    all any argmax argmin argsort choose clip compress cumprod cumsum diagonal dot max mean min nonzero prod repeat
    round searchsorted std sum take trace var
"""
for _name in METHODS.split():
    setattr(ndarray, _name, _method(_name))
for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__", getattr(np.ndarray, f"__i{_name}__")))


def at_key(self: ndarray, key: Any) -> Any:
    """`x[key]` while functions are traced: a tensor where the key has one."""
    return HOOKS.array_method(ITEM, self, (key,), {}) if _has_tensor(key) else PLAIN_ITEM(self, key)


ITEM = "__getitem__"
PLAIN_ITEM = np.ndarray.__getitem__


def _has_tensor(key: Any) -> bool:
    if isinstance(key, tuple | list):
        return any(map(_has_tensor, key))
    if isinstance(key, slice):
        return any(map(_has_tensor, (key.start, key.stop, key.step)))
    return isinstance(key, Arrays.others)


def take_tensors(on: bool) -> None:
    """Let tensors index these arrays, while functions are traced. An index of NumPy's own takes less time without."""
    if on:
        setattr(ndarray, ITEM, at_key)
    elif ITEM in vars(ndarray):
        delattr(ndarray, ITEM)
