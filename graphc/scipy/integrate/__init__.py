"""SciPy's `integrate`: initial value problems, integrals of functions and of samples, with derivatives.

In: functions, arrays, tensors. Out: arrays, where no argument is a tensor and no function is traced; else tensors.
initial_values.py has `solve_ivp` and JAX's `odeint`, steps.py their loop and the methods, quadrature.py integrals of
functions, samples.py those of values.

    solve_ivp(lambda t, y: -y, (0, 1), [1.0]).y[0, -1]
    graphc.grad(lambda a: quad(lambda x: jnp.exp(-a * x), 0, 1)[0])(1.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.startup.hooks import lazy_package

if TYPE_CHECKING:
    from graphc.scipy.integrate.initial_values import *  # noqa: F403
    from graphc.scipy.integrate.quadrature import *  # noqa: F403
    from graphc.scipy.integrate.samples import *  # noqa: F403

LAZY = {
    "initial_values": "odeint solve_ivp",
    "quadrature": "fixed_quad quad",
    "samples": "cumulative_trapezoid romb simpson trapezoid",
}
INSTEAD = {
    **dict.fromkeys(
        ("BDF", "DOP853", "DenseOutput", "LSODA", "OdeSolver", "RK23", "RK45", "Radau", "OdeSolution"),
        'solve_ivp makes all steps in one loop; there are no objects that make one; method="Radau" '
        "is the one for stiff problems",
    ),
    **dict.fromkeys(("ode", "complex_ode"), "solve_ivp makes all steps in one loop"),
    **dict.fromkeys("dblquad tplquad nquad".split(), "call quad in the function that quad is given"),
    **dict.fromkeys("quad_vec cubature qmc_quad".split(), "quad and fixed_quad are here, and graphc.vmap of them"),
    **dict.fromkeys(("cumulative_simpson", "newton_cotes"), "cumulative_trapezoid and simpson are here"),
    **dict.fromkeys(("nsum", "tanhsinh", "lebedev_rule"), "quad is here; sums are loops, lax.while_loop"),
    "solve_bvp": "its mesh grows with what it finds; optimize.root of a collocation on a fixed mesh has derivatives",
}
"""Names of `scipy.integrate` that do not exist here, with the reason and what to use instead."""

if not TYPE_CHECKING:  # which know the names
    __getattr__, __dir__ = lazy_package(__name__, LAZY, INSTEAD)
