"""NumPy's functions that make arrays, as a traced program calls them: the array may take what is traced.

    a = np.zeros(3)             in the program: a handle, whose value is known
    a[0] = x.sum()              from here on it is not
    np.array([x[1], -x[0]])     a handle on a tensor

NumPy asks nobody before it makes an array from nothing. So while a function is traced, in any thread, these functions
of the module `numpy` are others (`replace`, `restore`), which ask whether a traced program calls them: this thread
traces, the caller's file is none of Python's, NumPy's, SciPy's or graphc's, and the call is written there. If not, they
call NumPy's own. So are names that the module of the traced function has imported (`from numpy import zeros`), and
those of the program's functions that it can reach (`tracing/outside.py`); methods of arrays are NumPy's own. Python's
`math`, `max` and `min` are replaced the same way (python_functions.py).

Random numbers and clocks are asked the same: what draws would draw once, while the function is traced.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dis import get_instructions
from functools import lru_cache, partial, wraps
from importlib.machinery import PathFinder
from itertools import islice
from threading import RLock
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

from graphc.arrays.array import take_tensors
from graphc.errors import GraphTypeError, drawn_error
from graphc.ir.node import OPS, Node, literal, make
from graphc.ir.source_lines import NUMPY, OWN_FILES, PACKAGE, TRACE, is_pythons, program_line, warn_user
from graphc.ops.elementwise import as_node
from graphc.ops.questions import Number
from graphc.startup.hooks import HOOKS
from graphc.tensor import boundary
from graphc.tensor.boundary import WRITERS
from graphc.tensor.handles import UNKNOWN, Handle, known
from graphc.tensor.numpy_classes import OF_CLASSES, OF_POLY1D, POLYNOMIALS, of_polynomials
from graphc.tensor.numpy_module import MODULE, STAND_INS
from graphc.tensor.python_functions import PYTHONS, REPLACED as OF_MATH, tells_apart
from graphc.tensor.strided import REPLACED as OF_STRIDES
from graphc.trees import leaves

# --- NumPy's generators -----------------------------------------------------------------------------------------------
# Random numbers that NumPy draws for a traced program: their arrays take what is traced, as those of np.zeros do.
#
#     rng = np.random.RandomState(0)      in the program: a class under NumPy's
#     w = rng.randn(3)                    a handle, whose value is known
#     w -= x                              from here on it is not
#     order = np.arange(3)
#     rng.shuffle(order)                  written through the handle
#
# In: a function of `numpy.random` or a method of a generator, with its arguments. Out: what it draws, with a handle for
# each array. `creations` says which calls are a program's.


def draw_for_program(draw: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return what a function draws from a generator, for a traced program.

    Raises GraphTypeError where `shuffle` is to put elements in another order that are not known.
    """
    if draw.__name__ == "shuffle":
        return shuffle(draw, *args, **kwargs)
    out = kwargs.get("out")
    if isinstance(out, Handle):
        kwargs["out"] = np.array(out.content())
    made = draw(*boundary.given(args), **boundary.given(kwargs))
    if isinstance(out, Handle):
        out[...] = made
        return out
    return boundary.computed(made)


def shuffle(draw: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> None:
    """`rng.shuffle(x)`, of a list or of an array whose elements are known."""
    values = known(x) if isinstance(x, Handle) else x
    if values is UNKNOWN:
        raise GraphTypeError(
            "np.random's shuffle puts known elements in another order; x = x[rng.permutation(len(x))] does so of any, "
            f"or use graphc.random (at {program_line()})"
        )
    if values is x:
        draw(x, *args, **kwargs)
    else:
        order = values.copy()
        draw(order, *args, **kwargs)
        x[...] = order


class Drawing:
    """The methods of a generator as a traced program calls them; outside of traced functions they are NumPy's."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(draw_for_program, found) if TRACE.depth and name[0] != "_" and callable(found) else found


# --- functions that make arrays ---------------------------------------------------------------------------------------

MAKERS = (
    "zeros ones empty full arange linspace logspace geomspace eye identity tri zeros_like ones_like empty_like "
    "full_like copy array asarray asanyarray ascontiguousarray asfortranarray require nditer fromiter".split()
)
"""The functions that are replaced."""

FILLED = "bartlett blackman hamming hanning kaiser indices fromfunction loadtxt genfromtxt".split()
"""Functions that make an array of numbers, and that NumPy asks nobody about."""

OF_LISTS_FILE = f"{NUMPY}<of lists>"
"""The file of functions that are called in place of NumPy's: for those who ask who calls, it is NumPy."""
OWN_FILES[OF_LISTS_FILE] = False

OF_LISTS = {
    (home, name): found
    for home in (np, np.linalg)
    for name, found in vars(home).items()
    if (name in FILLED or hasattr(found, "_implementation"))
    and not (home is np and (name in MAKERS or found in WRITERS or "memory" in name))
}
"""Functions that NumPy asks of arrays, but many not of lists: they are replaced for lists of tensors, as in
`np.min([x[0], x[1]])`, and for lists and numbers of Python's, of which they make an array, as `np.diag([1, 2])`."""

EMPTY = {"empty": "zeros", "empty_like": "zeros_like"}
"""Functions whose elements are whatever the memory holds: here they are zeros."""


def _array(
    object: Any, dtype: Any = None, *, copy: Any = None, order: Any = None, subok: bool = False, ndmin: int = 0,
    like: Any = None, requirements: Any = None,
) -> Node:  # fmt: skip
    """np.array and its kin, of what holds tensors."""
    node = as_node(object, None if dtype is None else str(np.dtype(dtype)))
    if type(node) is Number and node.type.dtype != "bool":  # an array has a dtype, which a Python number has not
        node = make(OPS["mul"], (node, literal(1, node.type.dtype)))
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


def _call_for_program(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of one of the functions for a traced program."""
    first = args[0] if args else next(iter(kwargs.values()), None)
    if name == "nditer":
        if any(isinstance(each, Node) for each in leaves((args, kwargs))):
            raise GraphTypeError(
                f"np.nditer reads and writes memory, which a tensor has not; use for x in a.flat (at {program_line()})"
            )
        return function(*args, **kwargs)
    if name == "fromiter":
        return from_iterator(*args, **kwargs)
    is_kin = name[-5:] == "array" or name == "require"
    if is_kin and isinstance(first, np.ndarray) and name != "array":
        return function(*args, **kwargs)  # an array from outside, or a cast of it
    if known((args, kwargs)) is UNKNOWN and not is_kin:
        return boundary.apply_function(function, args, kwargs)
    if is_kin:

        def symbolic(*args: Any, **kwargs: Any) -> Node:
            kwargs = kwargs | {"ndmin": 1} if name[-15:] == "contiguousarray" or name == "asfortranarray" else kwargs
            return _array(*args[:2], **kwargs) if name == "require" else _array(*args, **kwargs)

        symbolic.__name__ = name
        made = boundary.call(symbolic, function, args, {key: each for key, each in kwargs.items() if each is not None})
        return boundary.computed(made)
    return boundary.computed(function(*boundary.given(args), **boundary.given(kwargs)))


def from_iterator(iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    """np.fromiter, of an iterator that may give tensors."""
    items = list(iter if count < 0 else islice(iter, count))
    if not any(isinstance(each, Node) for each in items):
        return boundary.computed(ORIGINALS["fromiter"](items, dtype, count, **kwargs))
    return boundary.owned(_array(boundary.given(items), dtype), (), True)


VALUES = (int, float, complex, str, bytes, range, np.generic, np.dtype, type(None))
"""Classes of arguments of which NumPy makes an array whose memory nobody else has."""


def has_list(args: Sequence[Any]) -> bool:
    """True if one of the arguments is a list or a tuple."""
    return any(type(each) in (list, tuple) for each in args)


def is_writeable(made: Any) -> bool:
    """True if a program may write to each array that a function of NumPy's gives."""
    return all(each.flags.writeable for each in leaves(made) if isinstance(each, np.ndarray))


def _of_lists(name: str, function: Any) -> Callable[..., Any]:

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        is_asked = has_list(args) or not any(isinstance(each, (Node, np.ndarray)) and each.ndim for each in args)
        if not (TRACE.depth and is_asked and is_programs_call(name, call)):
            return function(*args, **kwargs)
        held = leaves((args, kwargs))
        if has_list(args) and any(isinstance(each, Node) for each in held):
            return boundary.apply_function(function, args, kwargs)
        made = function(*args, **kwargs)
        is_new = all(isinstance(each, (*VALUES, Node)) or callable(each) for each in held)  # no memory of others
        return boundary.computed(made) if is_new and is_writeable(made) else made

    made: Any = call
    made.__code__ = made.__code__.replace(co_filename=OF_LISTS_FILE)
    return call


def _drawing(name: str, function: Any, generator: Kind) -> Callable[..., Any]:
    """One of the functions of `numpy.random`. `generator` is the class of what default_rng makes."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not (TRACE.depth and is_programs_call(name, call)):
            return function(*args, **kwargs)
        if name == "seed":
            TRACE.seeded = TRACE.levels[0]
            return function(*args, **kwargs)
        if name == "default_rng":
            check_seeded(name, args, kwargs)
            return generator.construct(function(*args, **kwargs).bit_generator)
        check_seeded(name)
        return draw_for_program(function, *args, **kwargs)

    return call


def check_seeded(name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Raise GraphTypeError if a traced program draws numbers, or makes a generator, of which nothing says the seed."""
    is_seeded = TRACE.may_draw or TRACE.seeded is TRACE.levels[0]
    if not is_seeded and all(each is None for each in (*args, *kwargs.values())):
        raise drawn_error(
            f"np.random.{name} draws once, while the function is traced, and each call would compute with the "
            "same numbers; give them as an argument, or use graphc.random, whose functions take a key "
            f"(at {program_line()})"
        )


def _random_bytes(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`os.urandom`, from which `secrets`, `uuid.uuid4` and `random.SystemRandom` draw too."""

    @wraps(function)
    def call(size: int, /) -> Any:
        caller = sys._getframe(1)
        while caller.f_code.co_filename in DRAWING_FILES and caller.f_back is not None:
            caller = caller.f_back
        file, is_function = caller.f_code.co_filename, caller.f_code.co_flags & CO_OPTIMIZED
        if TRACE.depth and is_function and is_programs(file) and not file.startswith("<frozen"):  # Python's imports
            raise GraphTypeError(
                "random bytes of the system (os.urandom, secrets, uuid.uuid4, random.SystemRandom) are drawn once, "
                "while the function is traced, and each call would compute with the same ones; give them as an "
                f"argument, or use graphc.random, whose functions take a key (at {program_line()})"
            )
        return function(size)

    return call


def _clock(name: str, function: Callable[..., Any], count: int = 0) -> Callable[..., Any]:
    """A clock of Python's `time`, which it reads where it has no more than `count` arguments."""

    @wraps(function)
    def call(*args: Any) -> Any:
        if TRACE.depth and len(args) <= count and is_programs_call(name, call):
            tell_clock(f"time.{name}")
        return function(*args)

    return call


def tell_clock(name: str) -> None:
    """Warn that a traced program reads a clock."""
    warn_user(
        f"{name} is called once, while the function is traced, and not in each call: a time that is "
        "computed with stays the same; give it as an argument, or measure outside of the function",
        RuntimeWarning,
    )


class Kind(type):
    """A class of generators that stands in place of one of NumPy's: it makes generators of its own where a traced
    program calls it, else NumPy's; and NumPy's are its instances."""

    own: Any = None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.own is not None and not (TRACE.depth and is_programs_call(cls.__name__, cls)):
            return cls.own(*args, **kwargs)
        if cls.own is not None:
            check_seeded(cls.__name__, args, kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.own) if cls.own is not None else super().__instancecheck__(value)

    def construct(cls, *args: Any) -> Any:
        """Return a generator of this class."""
        return super().__call__(*args)


def _dated(own: Any) -> Any:
    """A class that stands in place of `datetime.datetime` or `datetime.date`: it makes objects of these, and tells of
    its methods that read the clock."""

    def method(name: str) -> Any:
        def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if TRACE.depth and is_programs_call(name, call):
                tell_clock(f"{own.__name__}.{name}")
            return getattr(own, name)(*args, **kwargs)

        return classmethod(call)

    reading = {name: method(name) for name in ("now", "utcnow", "today") if hasattr(own, name)}
    return Dates(own.__name__, (own,), {"own": own, "__module__": own.__module__, **reading})


class Dates(type):
    """The class of the classes that `_dated` makes: what they make, and their instances, are those of Python's own."""

    own: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.own(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.own)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.own)


def _replacement(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    maker = getattr(np, EMPTY.get(name, name))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if TRACE.depth and (is_programs_call(name, call) or (args and isinstance(args[0], Node) and is_from_program())):
            return _call_for_program(name, maker, args, kwargs)
        return function(*args, **kwargs)

    return call


def is_from_program() -> bool:
    """True if a function of the program called the calling function, be it by one in C: `map(np.array, rows)`."""
    code = sys._getframe(2).f_code
    return bool(code.co_flags & CO_OPTIMIZED) and is_programs(code.co_filename)


def is_programs_call(name: str, function: Callable[..., Any]) -> bool:
    """True if a program called the calling function, as an attribute of that name (`np.zeros(3)`) or by a name that it
    gave the function (`zeros(3)`), and not a function in C that calls it in turn, which has no frame. It is so in one
    of the program's functions: a module that is imported meanwhile, and its classes, keep NumPy's arrays. NumPy's
    polynomials, which make arrays of what they are given, count as their caller."""
    frame = outer = sys._getframe(2)
    while outer.f_code.co_filename.startswith(POLYNOMIALS) and outer.f_back is not None:
        outer = outer.f_back
    if not frame.f_code.co_flags & CO_OPTIMIZED or not is_programs(outer.f_code.co_filename):
        return False
    attributes, names = called_as(frame.f_code, frame.f_lasti)
    if name in attributes:
        return True
    return any({**frame.f_globals, **frame.f_locals}.get(each) is function for each in names)


def is_programs(file: str) -> bool:
    """True for the file of a program, not of Python, NumPy, SciPy or graphc."""
    return not (file.startswith(PACKAGE) or is_pythons(file) or f"{SCIPY}" in file)


@lru_cache(maxsize=4096)
def called_as(code: CodeType, place: int) -> tuple[list[str], list[str]]:
    """Return the attributes, and the names, that the instruction at a place may call: these and the call begin at one
    place of the text."""
    instructions = [*get_instructions(code)]
    here = [each.positions for each in instructions if each.offset <= place][-1]
    found: tuple[list[str], list[str]] = [], []
    for each in instructions:
        begins = each.positions and here and each.positions[::2] == here[::2]  # the line and the column
        if begins and each.opname.startswith("LOAD_"):
            found[each.opname not in ("LOAD_ATTR", "LOAD_METHOD")].append(str(each.argval))
    return found


DRAWING_FILES = frozenset(f"{os.path.dirname(os.__file__)}{os.sep}{name}.py" for name in ("random", "secrets", "uuid"))
"""The files of functions that draw random bytes for their callers."""
RANDOM_BYTES: tuple[tuple[Any, str], ...] = (os, "urandom"), (random, "_urandom")
CLOCKS = {
    **dict.fromkeys(
        "time perf_counter monotonic process_time thread_time time_ns perf_counter_ns monotonic_ns process_time_ns "
        "thread_time_ns localtime gmtime ctime asctime".split(),
        0,
    ),
    **dict.fromkeys(("strftime", "clock_gettime", "clock_gettime_ns"), 1),
}
"""Functions of Python's `time` that read a clock, if they have no more than so many arguments."""

CO_OPTIMIZED = 1
"""The flag of the code of functions (`inspect`), which the code of modules and of classes lacks."""
SCIPY = "/site-packages/scipy/"

ORIGINALS = {name: getattr(np, name) for name in MAKERS}
REPLACED = [
    *((np, name, original, _replacement(name)) for name, original in ORIGINALS.items()),
    *((home, name, original, _of_lists(name, original)) for (home, name), original in OF_LISTS.items()),
    *OF_CLASSES,
    *OF_POLY1D,
    *OF_MATH,
    *OF_STRIDES,
    *(
        (home, name, os.urandom, _random_bytes(name, os.urandom))
        for home, name in ((os, "urandom"), (random, "_urandom"))
    ),
    *((time, name, own, _clock(name, own, count)) for name, count in CLOCKS.items() if (own := vars(time).get(name))),
]
"""All that is replaced: where it is, its name, NumPy's own and the replacement."""
COUNT, LOCK = [0], RLock()
"""The number of threads that trace."""


BY_ORIGINAL = {id(original): replacement for _, _, original, replacement in REPLACED}
BY_MODULE = {id(np): MODULE, **{place: stand_in for place, (_, stand_in) in STAND_INS.items()}}
"""The same of NumPy's module and what is another in it, where a program's module has it among its names."""
BOUND: list[tuple[dict[str, Any], str, Any]] = []
"""The names of programs' modules that are replaced: the module's names, the name, NumPy's function; None for a name
of Python's, which the module had not."""
KEPT: dict[int, set[str]] = {}
"""The names of Python's that stay as they are in a module, by the identity of its names."""


def replace_in(function: Any) -> None:
    """Put the replacements in place of what the module of a program's function has imported from NumPy, and those of
    Python's `max`, `min`, `float` and `int` among its names."""
    function = getattr(function, "__func__", getattr(function, "func", function))
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    names, code = getattr(function, "__globals__", None), getattr(function, "__code__", None)
    if not COUNT[0] or names is None or code is None or not is_programs(code.co_filename):
        return
    replace_names(names, tells_apart(code))


def codes_of(names: dict[str, Any]) -> Iterator[CodeType]:
    """Yield the codes of the functions of a module, and of the methods of its classes."""
    home = names.get("__name__")
    for value in [*names.values()]:
        own = isinstance(value, type) and value.__module__ == home
        for each in vars(value).values() if own else (value,):
            part = each.fget if isinstance(each, property) else getattr(each, "__func__", each) if own else each
            while (wrapped := getattr(part, "__wrapped__", None)) is not None:
                part = wrapped
            if isinstance(part, FunctionType) and part.__globals__ is names:
                yield part.__code__


def replace_names(names: dict[str, Any], without: Set[str] = frozenset()) -> None:
    """Put the replacements among the names of a program's module, while a function is traced. without: names of
    Python's that a function of the module tells apart from what stands for them."""
    with LOCK:
        if id(names) not in KEPT:
            KEPT[id(names)] = set[str]().union(*map(tells_apart, codes_of(names)))
        kept = KEPT[id(names)]
        for name in without - kept:
            kept.add(name)
            if name in PYTHONS and names.get(name) is PYTHONS[name]:
                del names[name]
            for bound, own, value in BOUND if name == "numpy" else ():
                if bound is names and id(value) in BY_MODULE:
                    names[own] = value
        for name, value in [*names.items()]:
            made = BY_ORIGINAL.get(id(value))
            if made is None and "numpy" not in kept:
                made = BY_MODULE.get(id(value))
            if made is not None:
                names[name] = made
                BOUND.append((names, name, value))
        for name, made in PYTHONS.items():
            if name not in names and name not in kept:
                names[name] = made
                BOUND.append((names, name, None))


def replace() -> None:
    """Put the replacements into the module `numpy`, and those of SciPy's functions (graphc/scipy/exchange.py) into
    theirs, until `restore` has been called as often."""
    with LOCK:
        COUNT[0] += 1
        if COUNT[0] == 1:
            for home, name, _, replacement in REPLACED:
                setattr(home, name, replacement)
            take_tensors(True)
            if "scipy" in sys.modules:
                HOOKS.scipys.replace()


def restore() -> None:
    """Put NumPy's own functions back when no thread traces any more."""
    with LOCK:
        COUNT[0] -= 1
        if not COUNT[0]:
            for home, name, original, _ in REPLACED:
                setattr(home, name, original)
            take_tensors(False)
            if "scipy" in sys.modules:
                HOOKS.scipys.restore()
            KEPT.clear()
            while BOUND:
                names, name, original = BOUND.pop()
                if original is None:
                    if names.get(name) is PYTHONS[name]:
                        del names[name]
                elif names.get(name) is (BY_ORIGINAL.get(id(original)) or BY_MODULE[id(original)]):
                    names[name] = original


def add_drawing(module: Any) -> None:
    """Let the functions of `numpy.random` be replaced that draw from its one generator, `seed`, and what makes
    generators; at once where a function is traced."""
    with LOCK:
        kinds = {
            own.__name__: Kind(own.__name__, (Drawing, own), {"own": own, "__module__": own.__module__})
            for own in (module.RandomState, module.Generator)
        }
        for own in (*module.BitGenerator.__subclasses__(), module.SeedSequence):
            if own is vars(module).get(own.__name__):
                kinds[own.__name__] = Kind(own.__name__, (own,), {"own": own, "__module__": own.__module__})
        for name, own in [*vars(module).items()]:
            draws = isinstance(getattr(own, "__self__", None), module.RandomState) and "state" not in name
            if draws or name in ("seed", "default_rng", *kinds):
                replacement = kinds.get(name) or _drawing(name, own, kinds["Generator"])
                _add(module, name, own, replacement)


def add_polynomials(module: Any) -> None:
    """Let the functions of `numpy.polynomial.polyutils` be replaced that ask which coefficients are 0."""
    with LOCK:
        for entry in of_polynomials(module):
            _add(*entry)


def add_dates(module: Any) -> None:
    """Let the classes of `datetime` be replaced whose methods read the clock."""
    with LOCK:
        for name in ("datetime", "date"):
            _add(module, name, own := vars(module)[name], _dated(own))


def _add(module: Any, name: str, own: Any, replacement: Any) -> None:
    REPLACED.append((module, name, own, replacement))
    BY_ORIGINAL[id(own)] = replacement
    if COUNT[0]:
        setattr(module, name, replacement)


def exchange(module: Any) -> None:
    """Exchange the functions of a module of SciPy's that is imported while a function is traced."""
    with LOCK:
        if COUNT[0]:
            HOOKS.scipys.replace_in(module.__name__.removeprefix("scipy."))


SCIPYS = (
    "fft fftpack integrate interpolate linalg ndimage optimize signal spatial spatial.distance special stats".split()
)
"""The modules of SciPy's whose functions are exchanged; those of `ndimage` for errors."""
LATE = {
    "numpy.random": add_drawing,
    "numpy.polynomial.polyutils": add_polynomials,
    "datetime": add_dates,
    **{f"scipy.{name}": exchange for name in SCIPYS},
}
"""Modules that are imported late, and what adds their functions."""


class WhenImported:
    """A finder of the late modules: a start that uses none of them imports none."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The specification of the module, which when it is executed goes to its function of `LATE` too."""
        found: Any = PathFinder.find_spec(name, path) if name in LATE else None
        if found is not None:
            own = found.loader.exec_module

            def execute(module: Any) -> None:
                own(module)
                LATE[name](module)

            found.loader.exec_module = execute
        return found


for _late, _added in LATE.items():
    if _late in sys.modules:
        _added(sys.modules[_late])
sys.meta_path.insert(0, WhenImported())

HOOKS.creations = sys.modules[__name__]
