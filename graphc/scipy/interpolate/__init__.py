"""SciPy's `interpolate`: curves through points, splines, grids, with derivatives by queries and values.

In: places and values, arrays or tensors. Out: objects that are called with queries. splines.py has them all.

    CubicSpline(x, y)(0.5)                    a number, by SciPy
    graphc.grad(CubicSpline(x, y))(0.5)       the slope there
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.startup.hooks import lazy_package

if TYPE_CHECKING:
    from graphc.scipy.interpolate.splines import *  # noqa: F403

LAZY = {
    "splines": """
        Akima1DInterpolator BSpline CubicHermiteSpline CubicSpline PPoly PchipInterpolator RegularGridInterpolator
        interp1d make_interp_spline splev
    """,
}
INSTEAD = {
    **dict.fromkeys(
        "BarycentricInterpolator KroghInterpolator barycentric_interpolate krogh_interpolate lagrange".split(),
        "one polynomial through many points is ill-conditioned; CubicSpline and make_interp_spline are here",
    ),
    **dict.fromkeys(
        "griddata NearestNDInterpolator LinearNDInterpolator CloughTocher2DInterpolator RBFInterpolator Rbf".split(),
        "RegularGridInterpolator has grids; scattered points need a triangulation, which depends on values by cases",
    ),
    **dict.fromkeys(
        "UnivariateSpline InterpolatedUnivariateSpline LSQUnivariateSpline splrep make_splrep "
        "make_smoothing_spline".split(),
        "make_interp_spline is here; smoothing chooses knots by values",
    ),
    **dict.fromkeys("interpn RectBivariateSpline NdPPoly NdBSpline".split(), "RegularGridInterpolator is here"),
    "pchip_interpolate": "PchipInterpolator(x, y)(queries)",
    "BPoly": "PPoly is here",
}
"""Names of `scipy.interpolate` that do not exist here, with the reason and what to use instead."""

if not TYPE_CHECKING:  # which know the names
    __getattr__, __dir__ = lazy_package(__name__, LAZY, INSTEAD)
