"""Derivatives and optimisers under the names of HIPS autograd, for programs that are written with it.

    from graphc.autograd import elementwise_grad, grad            in place of autograd's import
    import graphc.numpy as np

In: functions of arrays and trees; `argnum` is the position of the argument to differentiate by, or a tuple. Out: what
autograd's functions return. They are made of `graphc.grad`, `graphc.jvp` and `graphc.vjp`, whose errors they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from graphc import numpy as jnp, tracing
from graphc.tracing import checkpoint, jvp, vjp
from graphc.tree import ravel_pytree

__all__ = [
    "adam", "checkpoint", "deriv", "elementwise_grad", "flatten", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "jacobian", "make_hvp", "make_jvp", "make_vjp",
    "multigrad_dict", "rmsprop", "sgd", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

Function = Callable[..., Any]
Argnum = int | Sequence[int]


def grad(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the gradient of a function that returns a number.

    >>> grad(lambda x: (x**2).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return tracing.grad(fun, argnum)


def value_and_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """Return a function that computes the value and the gradient."""
    return tracing.value_and_grad(fun, argnum)


def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the gradient of the first of two results, with the second one."""
    return tracing.grad(fun, argnum, has_aux=True)


def grad_named(fun: Function, argname: str) -> Any:
    """Return the gradient by the argument of a name."""
    return grad(fun, list(signature(fun).parameters).index(argname))


def jacobian(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the derivatives of all results: the shape of the result, followed by that of the argument."""
    return tracing.jacrev(fun, argnum)


def hessian(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the second derivatives of a function."""
    return tracing.hessian(fun, argnum)


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the gradient of the sum of all results: of a function of each element, its derivative at each.

    >>> elementwise_grad(np.tanh)(np.array([0.0, 1.0])).round(2)
    array([1.  , 0.42])
    """
    return tracing.grad(lambda *args, **kwargs: jnp.sum(fun(*args, **kwargs)), argnum)


def deriv(fun: Function, argnum: int = 0) -> Function:
    """Return the derivative along a vector of ones, in forward mode."""
    return lambda *args: make_jvp(fun, argnum)(*args)(jnp.ones_like(args[argnum]))[1]


def make_vjp(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments that gives (pull, value); `pull(g)` is the cotangent of the argument.

    >>> pull, value = make_vjp(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> pull(np.ones(2))
    array([2., 4.])
    """

    def at(*args: Any) -> tuple[Function, Any]:
        value, pull = vjp(_of_one(fun, args, argnum), args[argnum])
        return lambda cotangent: pull(cotangent)[0], value

    return at


def make_jvp(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments that gives a function of a tangent, whose results are (value, tangent).

    >>> make_jvp(lambda x: x**2)(3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """
    return lambda *args: lambda tangent: jvp(_of_one(fun, args, argnum), (args[argnum],), (tangent,))


def make_hvp(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments that gives (product, gradient); `product(v)` is the Hessian times v."""
    return make_vjp(grad(fun, argnum), argnum)


def hessian_vector_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments and a vector: the Hessian times the vector.

    >>> hessian_vector_product(lambda x: (x**3).sum())(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    return lambda *args: make_jvp(grad(fun, argnum), argnum)(*args[:-1])(args[-1])[1]


hessian_tensor_product = hessian_vector_product


def vector_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments and a vector: the vector times the Jacobian."""
    return lambda *args: make_vjp(fun, argnum)(*args[:-1])[0](args[-1])


def multigrad_dict(fun: Function) -> Function:
    """Return a function that gives the gradients by all arguments, in a dict by the names of the parameters."""
    names = [*signature(fun).parameters]

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        whole = {**dict(zip(names, args, strict=False)), **kwargs}
        found: dict[str, Any] = tracing.grad(lambda given: fun(**given))(whole)
        return found

    return gradients


def flatten(value: Any) -> tuple[Any, Function]:
    """Return a vector of all numbers in a tree, and the function that restores the tree."""
    return ravel_pytree(value)


def _of_one(fun: Function, args: tuple[Any, ...], argnum: int) -> Function:
    """The function of one argument, with the others as they are."""
    return lambda value: fun(*args[:argnum], value, *args[argnum + 1 :])


# --- optimisers: each calls `gradient(x, iteration)`, and `callback(x, iteration, gradient)` before a step ------------


def sgd(
    gradient: Function,
    x0: Any,
    callback: Function | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Return the parameters after steps of gradient descent with momentum.

    >>> float(sgd(lambda x, i: 2 * x, np.array([1.0])).round(3)[0]) + 0.0
    0.0
    """
    velocity: Any = 0.0

    def step(g: Any, number: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _descend(gradient, x0, callback, num_iters, step)


def rmsprop(
    gradient: Function,
    x0: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after steps that are divided by a running mean of squared gradients."""
    square: Any = 1.0

    def step(g: Any, number: int) -> Any:
        nonlocal square
        square = square * gamma + g**2 * (1 - gamma)
        return -step_size * g / (np.sqrt(square) + eps)

    return _descend(gradient, x0, callback, num_iters, step)


def adam(
    gradient: Function,
    x0: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after steps of Adam."""
    mean: Any = 0.0
    square: Any = 0.0

    def step(g: Any, number: int) -> Any:
        nonlocal mean, square
        mean = (1 - b1) * g + b1 * mean
        square = (1 - b2) * g**2 + b2 * square
        whole = mean / (1 - b1 ** (number + 1)), square / (1 - b2 ** (number + 1))
        return -step_size * whole[0] / (np.sqrt(whole[1]) + eps)

    return _descend(gradient, x0, callback, num_iters, step)


def _descend(gradient: Function, x0: Any, callback: Function | None, count: int, step: Function) -> Any:
    x, restored = ravel_pytree(x0)
    for number in range(count):
        slopes = gradient(restored(x), number)
        if callback is not None:
            callback(restored(x), number, slopes)
        x = x + step(ravel_pytree(slopes)[0], number)
    return restored(x)
