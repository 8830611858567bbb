"""SciPy's `spatial`: `distance`, with derivatives.

In: arrays, tensors. Out: SciPy's own results of arrays; tensors of tensors.

    graphc.scipy.spatial.distance.cdist(x, y)           SciPy's matrix of arrays
"""

from __future__ import annotations

from graphc.startup.hooks import lazy_package

LAZY = {"distance": ""}
INSTEAD = dict.fromkeys(
    "KDTree cKDTree ConvexHull Delaunay Voronoi SphericalVoronoi HalfspaceIntersection Rectangle procrustes "
    "distance_matrix minkowski_distance minkowski_distance_p geometric_slerp".split(),
    "distance.cdist has distances; trees and hulls depend on values by cases",
)
INSTEAD["transform"] = "products of matrices and quaternions turn points: jnp.einsum, jnp.cross"
"""Names of `scipy.spatial` that do not exist here, with what to use instead."""

__getattr__, __dir__ = lazy_package(__name__, LAZY, INSTEAD)
