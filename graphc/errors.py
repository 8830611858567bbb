"""Every error that graphc raises, one class for each thing that can be wrong.

In: a message that names the variable and, where one is known, the line of the user's program that made it.
Out: exceptions. All derive from `GraphcError`; each also derives from the built-in class that a user of NumPy would
catch.
"""

from __future__ import annotations


class GraphcError(Exception):
    """The root of all errors raised by graphc."""


class GraphTypeError(GraphcError, TypeError):
    """A wrong dtype, rank or kind of argument."""


class GraphAttributeError(GraphcError, AttributeError):
    """An attribute or method that a tensor does not have, or that cannot be set."""


class GraphValueError(GraphcError, ValueError):
    """A value that an argument cannot have, where its kind is right: a mode that is none, axes that do not pair."""


class StepSizeError(GraphTypeError):
    """A size that follows from a selection within a loop's step: compiled loops cannot have it."""


class ShapeError(GraphcError, ValueError):
    """Sizes that do not agree, or a size that cannot be."""


class RankError(GraphTypeError, ShapeError):
    """A tensor of a wrong number of axes: ranks are of the type, as in Theano, and a ValueError in NumPy."""


class IntegerTooLarge(GraphTypeError, OverflowError):
    """A Python integer that the dtype cannot hold."""


class IndexOutOfBounds(GraphcError, IndexError):
    """An index outside its axis."""


class IndexKindError(GraphTypeError, IndexError):
    """An index of a wrong kind: a TypeError in Theano, an IndexError in NumPy."""


class AssertionFailed(GraphcError, AssertionError):
    """An assertion of the program about values does not hold for those of a call."""


class MissingInputError(GraphcError, ValueError):
    """A graph needs a variable that is neither an input nor shared nor given."""


class UnusedInputError(GraphcError, ValueError):
    """An input of a function that none of its outputs or updates uses."""


class ArgumentError(GraphcError, TypeError):
    """A call with a missing, repeated or unknown argument."""


class UpdateError(GraphTypeError, ValueError):
    """An update that cannot be carried out: not a shared variable or another type, a TypeError in Theano; or given
    twice, a ValueError."""


class DisconnectedInputError(GraphcError, ValueError):
    """A gradient is asked for with respect to a variable that the cost does not depend on."""


class GradientError(GraphcError, ValueError):
    """A gradient that does not exist: a cost that is not a floating scalar, an op without a derivative."""


class CostError(GradientError, GraphTypeError):
    """A cost that is no scalar: a TypeError in Theano, a ValueError as other gradients that do not exist."""


class NanGuardError(GraphcError, AssertionError):
    """A NaN, an infinity or a value too large, which a function in NanGuardMode has met."""


class DebugModeError(GraphcError, AssertionError):
    """A function in DebugMode found a value that is not finite, or values that differ where they must not."""


class NullTypeGradError(GradientError, TypeError):
    """A gradient that an op says is undefined, or not implemented."""


class CycleError(GraphcError, ValueError):
    """A graph that should be acyclic has a cycle."""


class ParseError(GraphcError, ValueError):
    """A printed graph that cannot be read back."""


class CompileError(GraphcError, RuntimeError):
    """Generated source that could not be compiled: always a defect of graphc or of a user's own op."""


class VerifyError(GraphcError, RuntimeError):
    """The result of a pass violates the rules of its form: always a defect of graphc. The message names the pass."""


class CacheMissError(GraphcError, LookupError):
    """A graph that is not in the compile cache, where the option cache_require demands it."""


class CacheWarning(UserWarning):
    """The compile cache could not be used; the result is right, only slower to come by."""


def plural(count: int, one: str, several: str) -> str:
    """A count with its noun: `no argument`, `1 argument`, `2 arguments`."""
    return f"{count or 'no'} {one if count == 1 else several}"
