"""SciPy's `optimize`: roots, minima, least squares. Of arrays SciPy's algorithms, with derivatives of the graph; of
tensors native loops, with derivatives by the implicit function theorem.

In: functions, guesses, arrays, tensors. Out: SciPy's results, of arrays, where no argument is a tensor and no function
is traced; else of tensors. Native loops: roots.py, minima.py, fits.py, of equations.py's functions and derivatives of
solutions. SciPy's algorithms: driven.py, on kernels.py's compiled functions. parameters.py makes vectors of trees, and
has what goes in and comes out by name.

    brentq(lambda x: x**2 - 2, 0.0, 2.0)                               1.414...
    graphc.grad(lambda a: brentq(lambda x: x**2 - a, 0.0, 9.0))(4.0)   0.25
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.startup.hooks import lazy_package

if TYPE_CHECKING:
    from graphc.scipy.optimize.fits import *  # noqa: F403
    from graphc.scipy.optimize.minima import *  # noqa: F403
    from graphc.scipy.optimize.parameters import *  # noqa: F403
    from graphc.scipy.optimize.roots import *  # noqa: F403

LAZY = {
    "fits": "curve_fit least_squares",
    "minima": "line_search minimize minimize_scalar",
    "parameters": "Bounds Covariance LinearConstraint NonlinearConstraint",
    "roots": "bisect brentq fixed_point newton root root_scalar",
}
INSTEAD = {
    **dict.fromkeys(
        "brute basinhopping differential_evolution direct dual_annealing shgo".split(),
        "SciPy's global searches take a jitted function as it is; minimize is here for what they find",
    ),
    **dict.fromkeys("brenth ridder toms748".split(), "brentq is here"),
    **dict.fromkeys("fsolve broyden1 broyden2 anderson newton_krylov leastsq".split(), "root and least_squares are"),
    **dict.fromkeys(
        "fmin fmin_bfgs fmin_cg fmin_l_bfgs_b fmin_ncg fmin_powell fmin_tnc fmin_cobyla fmin_slsqp".split(),
        "minimize is here",
    ),
    **dict.fromkeys("brent fminbound golden bracket".split(), "minimize_scalar is here"),
    **dict.fromkeys(
        "nnls linear_sum_assignment quadratic_assignment linprog milp lsq_linear isotonic_regression".split(),
        "call SciPy's own with values: what it computes depends on them by cases",
    ),
    "OptimizeResults": "results are SciPy's: scipy.optimize.OptimizeResult",
    **dict.fromkeys("check_grad approx_fprime".split(), "graphc.grad has the exact derivative"),
    **dict.fromkeys("rosen rosen_der rosen_hess rosen_hess_prod".split(), "it is a test problem: write it out"),
}
"""Names of `scipy.optimize` that do not exist here, with the reason and what to use instead."""

if not TYPE_CHECKING:  # which know the names
    __getattr__, __dir__ = lazy_package(__name__, LAZY, INSTEAD)
