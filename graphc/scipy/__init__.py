"""SciPy's functions under SciPy's names: `from graphc.scipy import linalg, special, stats`.

In: tensors, arrays and numbers, as SciPy's function of that name takes them. Out: what SciPy's own function gives,
where no argument is a tensor and no function is traced; else tensors, with derivatives. Each module is imported when it
is first asked for, and SciPy when a function of arrays is called.

    graphc.scipy.special.gammainc(2.0, np.ones(3))       SciPy's array
    graphc.scipy.special.gammainc(2.0, T.dvector("x"))   a tensor
    graphc.grad(graphc.scipy.stats.norm.logpdf)(0.5)     np.float64(-0.5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.startup.hooks import lazy_package

if TYPE_CHECKING:
    from graphc.scipy import linalg as linalg, special as special, stats as stats

LAZY = dict.fromkeys("fft integrate interpolate linalg optimize signal spatial special stats".split(), "")
"""The modules, each under the name of SciPy's."""

INSTEAD = {
    "cluster": "SciPy's own serves: which cluster a point is of depends on values by cases",
    "constants": "scipy.constants has numbers, which tensors take as they are",
    "ndimage": "graphc.tensor.nnet and graphc.scipy.signal have convolutions",
    "sparse": "graphc.sparse has sparse matrices",
}
"""Modules of SciPy's that are not here, with the reason or what to use instead."""

if not TYPE_CHECKING:  # which know the names
    __getattr__, __dir__ = lazy_package(__name__, LAZY, INSTEAD)
