"""Derivatives and optimisers under the names of HIPS autograd, for programs that are written with it.

    from graphc.autograd import elementwise_grad, grad            in place of autograd's import
    import graphc.numpy as np

In: functions of arrays and trees; `argnum` is the position of the argument to differentiate by, or a tuple. Out: what
autograd's functions return. They are made of `graphc.grad`, `graphc.jvp` and `graphc.vjp`, whose errors they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from inspect import signature
from typing import Any

import numpy as np

from graphc import lax, numpy as jnp, tracing, tree
from graphc.errors import GraphValueError
from graphc.ir.node import Node
from graphc.tracing import checkpoint, hvp, jvp, linearize, vjp
from graphc.tracing.derivatives import retraceable
from graphc.tree import ravel_pytree

__all__ = [
    "adam", "check_grads", "checkpoint", "convolve", "defjvp", "defvjp", "deriv", "elementwise_grad", "fixed_point",
    "flatten", "flatten_func", "grad", "grad_and_aux", "grad_named", "hessian", "hessian_tensor_product",
    "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp", "make_hvp", "make_jvp", "make_vjp",
    "multigrad_dict", "primitive", "rmsprop", "sgd", "tensor_jacobian_product", "value_and_grad",
    "vector_jacobian_product",
]  # fmt: skip

Function = Callable[..., Any]
Argnum = int | Sequence[int]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    why = ""
    if name in ("trace", "Node"):
        why = ": graphc.make_graph(f)(x) gives the graph as text, graphc.printing.debugprint that of a jitted function"
    elif name in ("Box", "VSpace", "new_box", "getval", "isbox"):
        why = ": autograd's boxes are not there; graphc.tree.register_pytree_node takes classes that hold arrays"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")


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


def holomorphic_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """Return the derivative of an analytic function of a complex number: the gradient of the real part of its value.

    >>> holomorphic_grad(lambda z: z**2)(1 + 2j)
    np.complex128(2+4j)
    """
    return tracing.grad(lambda *args, **kwargs: jnp.real(fun(*args, **kwargs)), argnum)


def deriv(fun: Function, argnum: int = 0) -> Function:
    """Return the derivative along a vector of ones, in forward mode."""

    def along_ones(*args: Any, **kwargs: Any) -> Any:
        return make_jvp(fun, argnum)(*args, **kwargs)(jnp.ones_like(args[argnum]))[1]

    return retraceable(fun, along_ones)


def make_vjp(fun: Function, argnum: Argnum = 0) -> Function:
    """Return a function of the arguments that gives (pull, value); `pull(g)` is the cotangent of the argument.

    >>> pull, value = make_vjp(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> pull(np.ones(2))
    array([2., 4.])
    """

    def at(*args: Any, **kwargs: Any) -> tuple[Function, Any]:
        value, pull = vjp(*_of_one(fun, args, kwargs, argnum))
        return lambda cotangent: pull(cotangent)[0], value

    return at


def make_jvp(fun: Function, argnum: Argnum = 0) -> Function:
    """Return a function of the arguments that gives a function of a tangent, whose results are (value, tangent).

    >>> make_jvp(lambda x: x**2)(3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """

    def at(*args: Any, **kwargs: Any) -> Function:
        one, value = _of_one(fun, args, kwargs, argnum)
        return lambda tangent: jvp(one, (value,), (tangent,))

    return at


def make_hvp(fun: Function, argnum: Argnum = 0) -> Function:
    """Return a function of the arguments that gives (product, gradient); `product(v)` is the Hessian times v."""
    return make_vjp(grad(fun, argnum), argnum)


def _half_square(x: Any) -> Any:
    return 0.5 * jnp.sum(x**2, axis=-1)


def make_ggnvp(f: Function, g: Function = _half_square, f_argnum: Argnum = 0) -> Function:
    """Return a function of the arguments that gives a function of a vector v: the transposed Jacobian of `f`, times the
    Hessian of `g` at the value, times the Jacobian, times v (the generalized Gauss-Newton matrix of `g` of `f`).

    g: returns a number; by default half the sum of squares.

    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([ 4., 16.])
    """

    def at(*args: Any, **kwargs: Any) -> Function:
        one, x = _of_one(f, args, kwargs, f_argnum)
        value, push = linearize(one, x)
        pull = vjp(one, x)[1]
        return lambda v: pull(hvp(g, (value,), (push(v),)))[0]

    return at


def hessian_vector_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments and a vector: the Hessian times the vector.

    >>> hessian_vector_product(lambda x: (x**3).sum())(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    slope = grad(fun, argnum)
    return retraceable(fun, lambda *args, **kwargs: make_jvp(slope, argnum)(*args[:-1], **kwargs)(args[-1])[1])


hessian_tensor_product = hessian_vector_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function of the arguments and an array: the array times the Jacobian, summed over all axes of the array,
    which are the first ones of the value.

    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    array([2., 2.])
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        *own, array = args
        return jacobian(lambda *x: jnp.tensordot(array, fun(*x, **kwargs), jnp.ndim(array)), argnum)(*own)

    return retraceable(fun, product)


vector_jacobian_product = tensor_jacobian_product


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


def flatten_func(fun: Function, example: Any) -> tuple[Function, Function, Any]:
    """Return the function of a vector in place of its first argument, a tree like `example`; the function that restores
    the tree; and the vector of the example. The results of the function are vectors too.

    >>> squares, restore, vector = flatten_func(lambda p: {"a": p["a"] ** 2}, {"a": np.array([1.0, 2.0])})
    >>> squares(vector)
    array([1., 4.])
    """
    vector, restore = ravel_pytree(example)
    return lambda flat, *args: ravel_pytree(fun(restore(flat), *args))[0], restore, vector


def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """Return x with `f(a)(x) = x`, and its derivative by `a`.

    f: a function of `a` that returns a function of arrays like `x0`, which is repeated from `x0` until `distance(x,
    former x)`, a number, is at most `tol`. The derivative follows from the implicit function theorem: it is that of the
    exact solution. It raises LinAlgError where `x - f(a)(x)` has a singular Jacobian.

    >>> root = lambda a: fixed_point(lambda a: lambda x: (x + a / x) / 2, a, 3.0, lambda x, y: abs(x - y), 1e-9)
    >>> root(4.0).round(6), grad(root)(4.0).round(6)
    (np.float64(2.0), np.float64(0.25))
    """
    step = f(a)

    def repeated(_: Function, start: Any) -> Any:
        start = jnp.asarray(start) * 1.0
        pair = lax.while_loop(
            lambda two: distance(*two) > tol, lambda two: (step(two[0]), two[0]), (step(start), start)
        )
        return pair[0]

    def along(slope: Function, y: Any) -> Any:
        flat, restore = ravel_pytree(y)
        columns = tracing.vmap(lambda row: ravel_pytree(slope(restore(row)))[0])(jnp.eye(flat.shape[0]))
        return restore(jnp.linalg.solve(columns.T, flat))

    return lax.custom_root(lambda x: x - step(x), jnp.asarray(x0) * 1.0, repeated, along)


class Primitive:
    """A function whose derivative `defvjp` or `defjvp` may give."""

    def __init__(self, fun: Function) -> None:
        update_wrapper(self, fun)
        self.fun, self.ruled = fun, fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_plain = not any(isinstance(leaf, Node) for leaf in tree.leaves(args))
        return (self.fun if is_plain else self.ruled)(*args, **kwargs)

    def rule(self, makers: Mapping[int, Any], made: Callable[..., Function]) -> None:
        """Give the function its derivative. made: gives a function of some arguments a derivative, from the function,
        their positions, and the function that adds the others."""

        def ruled(*args: Any, **kwargs: Any) -> Any:
            places = [place for place, each in enumerate(args) if place in makers or isinstance(each, Node)]

            def completed(moved: Sequence[Any]) -> list[Any]:
                given = dict(zip(places, moved, strict=True))
                return [given.get(place, each) for place, each in enumerate(args)]

            own = made(lambda *moved: self.fun(*completed(moved), **kwargs), places, completed, kwargs)
            return own(*(args[place] for place in places))

        self.ruled = ruled


def primitive(fun: Function) -> Primitive:
    """Return the function with room for a derivative, which `defvjp` or `defjvp` gives.

    The function is traced as others are. For code that cannot be traced, use `graphc.pure_callback` in it.
    """
    return Primitive(fun)


def defvjp(fun: Primitive, *vjpmakers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """Give a `primitive` its derivative. vjpmakers: for each argument, a function of the value and the arguments that
    returns the function from the cotangent of the value to that of the argument; None for an argument without a
    derivative. argnums: the positions of these arguments, if they are not the first ones.

    >>> @primitive
    ... def square(x):
    ...     return x * x
    >>> defvjp(square, lambda value, x: lambda g: 2 * x * g)
    >>> grad(square)(3.0)
    np.float64(6.0)
    """
    makers = dict(zip(argnums or range(len(vjpmakers)), vjpmakers, strict=False))

    def made(own: Function, places: Sequence[int], completed: Function, kwargs: dict[str, Any]) -> Function:
        def forward(*moved: Any) -> Any:
            value = own(*moved)
            return value, (value, moved)

        def backward(kept: Any, cotangent: Any) -> tuple[Any, ...]:
            value, moved = kept
            chosen = [makers.get(place) for place in places]
            return tuple(make and make(value, *completed(moved), **kwargs)(cotangent) for make in chosen)

        ruled: Any = tracing.custom_vjp(own)
        ruled.defvjp(forward, backward)
        return ruled

    fun.rule(makers, made)


def defjvp(fun: Primitive, *jvpmakers: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """Give a `primitive` its derivative in forward mode. The other direction is derived from it.

    jvpmakers: for each argument, a function of its tangent, the value and the arguments that returns the tangent of
    the value; "same" for the function itself, with the tangent in place of the argument; None for an argument without a
    derivative. argnums: the positions of these arguments, if they are not the first ones.

    >>> @primitive
    ... def square(x):
    ...     return x * x
    >>> defjvp(square, lambda t, value, x: 2 * x * t)
    >>> grad(square)(3.0)
    np.float64(6.0)
    """
    makers = dict(zip(argnums or range(len(jvpmakers)), jvpmakers, strict=False))

    def made(own: Function, places: Sequence[int], completed: Function, kwargs: dict[str, Any]) -> Function:
        def along(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            value, args = own(*primals), completed(primals)
            tangent: Any = jnp.zeros_like(value)
            for place, t in zip(places, tangents, strict=True):
                make = makers.get(place)
                if make == "same":
                    tangent = tangent + fun.fun(*args[:place], t, *args[place + 1 :], **kwargs)
                elif callable(make):
                    tangent = tangent + make(t, value, *args, **kwargs)
            return value, tangent

        ruled: Any = tracing.custom_jvp(own)
        ruled.defjvp(along)
        return ruled

    fun.rule(makers, made)


def check_grads(fun: Function, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> Function:
    """Return a function of arguments that compares the derivatives of `fun` by its first argument with differences.

    modes: of "fwd" and "rev". order: up to which derivative. Raises AssertionError where they differ by more than 1e-6,
    or 1e-6 of the value.

    >>> check_grads(lambda x: x**3)(2.0)
    """

    def check(x: Any, *args: Any) -> None:
        vector, restore = ravel_pytree(x)
        way = np.cos(np.arange(vector.size) + 1.0)  # fixed, so that a check gives the same answer each time
        flat: Function = lambda v: ravel_pytree(fun(restore(v), *args))[0]  # noqa: E731
        step = 1e-6
        differences = (flat(vector + step / 2 * way) - flat(vector - step / 2 * way)) / step
        found = []
        if "fwd" in modes:
            found.append(make_jvp(flat)(vector)(way)[1])
        if "rev" in modes:
            found.append(jacobian(flat)(vector) @ way)
        for slopes in found:
            np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-6)
        if order > 1:
            check_grads(lambda v: make_jvp(flat)(v)(way)[1], modes, order - 1)(vector)

    return check


def _of_one(fun: Function, args: Sequence[Any], kwargs: dict[str, Any], argnum: Argnum) -> tuple[Function, Any]:
    """Return the function of one argument, or of a tuple of several, with the others as they are; and this argument."""
    places = [argnum] if isinstance(argnum, int) else list(argnum)

    def one(value: Any) -> Any:
        given = list(args)
        for place, each in zip(places, [value] if isinstance(argnum, int) else value, strict=True):
            given[place] = each
        return fun(*given, **kwargs)

    return one, args[argnum] if isinstance(argnum, int) else tuple(args[place] for place in places)


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


def convolve(
    A: Any,  # noqa: N803 - autograd's names
    B: Any,  # noqa: N803
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """Return the convolution of autograd's `scipy.signal`: along one to three `axes` of each array, with products
    summed along `dot_axes`. The axes of the result are the other ones of `A`, those of `B`, and the convolved ones.
    mode: "full", "same" (of the sizes of `A`) or "valid". Raises GraphValueError for another mode.

    >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([1., 3., 2.])
    """
    if mode not in ("full", "same", "valid"):
        raise GraphValueError(f"convolve: the mode is 'full', 'same' or 'valid', not {mode!r}")
    images, kernels = jnp.asarray(A), jnp.asarray(B)
    along = [*axes] if axes is not None else [range(images.ndim), range(kernels.ndim)]
    if mode == "valid" and any(images.shape[k] < kernels.shape[m] for k, m in zip(*along, strict=True)):
        swapped = convolve(kernels, images, along[::-1], dot_axes[::-1], mode)
        count, others = len(along[0]), kernels.ndim - len(along[1]) - len(dot_axes[1])
        return jnp.moveaxis(swapped, range(others), range(-count - others, -count)) if others else swapped
    (images, outer), (kernels, inner) = (
        _in_order(each, *places) for each, *places in zip((images, kernels), along, dot_axes, strict=True)
    )
    sizes = kernels.shape[2:]
    ends = [(n - 1, n - 1) if mode == "full" else (n - 1 - (n - 1) // 2, (n - 1) // 2) for n in sizes]
    turned = jnp.flip(kernels, range(2, kernels.ndim))
    made = lax.conv_general_dilated(images, turned, (1,) * len(sizes), "VALID" if mode == "valid" else ends)
    return made.reshape((*outer, *inner, *made.shape[2:]))


def _in_order(x: Any, along: Sequence[int], summed: Sequence[int]) -> tuple[Any, list[Any]]:
    """An array with its other axes as one, its summed axes as one, and then those of the convolution; and the sizes of
    the other ones."""
    others = [axis for axis in range(x.ndim) if axis not in (*along, *summed)]
    sizes = [[x.shape[axis] for axis in axes] for axes in (others, summed, along)]
    merged = [math.prod(sizes[0]), math.prod(sizes[1]), *sizes[2]]
    return jnp.transpose(x, (*others, *summed, *along)).reshape(merged), sizes[0]


def _descend(gradient: Function, x0: Any, callback: Function | None, count: int, step: Function) -> Any:
    x, restored = ravel_pytree(x0)
    for number in range(count):
        slopes = gradient(restored(x), number)
        if callback is not None:
            callback(restored(x), number, slopes)
        x = x + step(ravel_pytree(slopes)[0], number)
    return restored(x)
