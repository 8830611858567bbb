"""The errors that graphc raises: one class for each kind of fault.

All classes derive from `GraphcError`. Each also derives from the built-in class that NumPy or Theano raises in the same
case. The message names the variable and, if it is known, the line of the user's program that made it.

    try:
        graphc.function([], T.dvector("x"))
    except graphc.GraphcError as error:      # MissingInputError, which is also a ValueError
        print(error)
"""

from __future__ import annotations


class GraphcError(Exception):
    """The base class of all errors of graphc."""


class GraphTypeError(GraphcError, TypeError):
    """An argument has a wrong dtype, rank or kind."""

    drew = False
    """True if the error is about numbers that a traced function draws."""
    asked = False
    """True if the error is about the truth or the whole number of a traced value."""


def drawn_error(message: str) -> GraphTypeError:
    """The error for random numbers that are drawn while a function is traced, and would be the same in each call."""
    error = GraphTypeError(message)
    error.drew = True
    return error


class GraphAttributeError(GraphcError, AttributeError):
    """A tensor has no such attribute or method, or the attribute cannot be set."""


class GraphValueError(GraphcError, ValueError):
    """An argument of the right kind has an invalid value, such as an unknown mode or axes that do not pair."""


class StepSizeError(GraphTypeError):
    """A size depends on a selection within the step of a loop. Compiled loops cannot have such sizes."""


class ShapeError(GraphcError, ValueError):
    """Sizes do not agree, or a size is invalid."""


class RankError(GraphTypeError, ShapeError):
    """A tensor has a wrong number of axes. Theano raises TypeError here, and NumPy ValueError; this is both."""


class IntegerTooLarge(GraphTypeError, OverflowError):
    """The dtype cannot hold a Python integer."""


class IndexOutOfBounds(GraphcError, IndexError):
    """An index is outside of its axis."""


class IndexKindError(GraphTypeError, IndexError):
    """An index has a wrong kind. Theano raises TypeError here, and NumPy IndexError; this is both."""


class AssertionFailed(GraphcError, AssertionError):
    """An assertion of the program does not hold for the values of a call."""


class MissingInputError(GraphcError, ValueError):
    """A graph needs a variable that is no input, not shared and not given."""


class UnusedInputError(GraphcError, ValueError):
    """No output or update of a function uses one of its inputs."""


class ArgumentError(GraphcError, TypeError):
    """An argument of a call is missing, repeated, unknown or unsuitable."""


class UpdateError(GraphTypeError, ValueError):
    """An update is impossible. Its variable is not shared or has another type (a TypeError in Theano), or it has two
    updates (a ValueError)."""


class DisconnectedInputError(GraphcError, ValueError):
    """The cost does not depend on a variable for which a gradient was requested."""


class GradientError(GraphcError, ValueError):
    """A gradient does not exist: the cost is not a floating-point scalar, or an op has no derivative."""


class CostError(GradientError, GraphTypeError):
    """A cost is not a scalar. Theano raises TypeError here; other missing gradients are a ValueError; this is both."""


class NanGuardError(GraphcError, AssertionError):
    """A function in NanGuardMode found a NaN, an infinity or a value that is too large."""


class DebugModeError(GraphcError, AssertionError):
    """A function in DebugMode found a value that is not finite, or two values that must be equal and differ."""


class NullTypeGradError(GradientError, TypeError):
    """An op declares that its gradient is undefined or not implemented."""


class CycleError(GraphcError, ValueError):
    """A graph has a cycle."""


class ParseError(GraphcError, ValueError):
    """A printed graph cannot be read."""


class CompileError(GraphcError, RuntimeError):
    """Generated source could not be compiled. This is a defect of graphc or of an op that the user wrote."""


class VerifyError(GraphcError, RuntimeError):
    """The result of a pass violates the rules of its form. This is a defect of graphc. The message names the pass."""


class CacheMissError(GraphcError, LookupError):
    """No compiled code is there, and compilation is forbidden: a graph is not in the cache under the option
    `cache_require`, or no code in a file fits under `graphc.load(path, recompile=False)`."""


class CacheWarning(UserWarning):
    """The compile cache could not be used. The result is correct, but it takes longer."""


def plural(count: int, one: str, several: str) -> str:
    """A count with its noun: `no argument`, `1 argument`, `2 arguments`."""
    return f"{count or 'no'} {one if count == 1 else several}"
