"""Arguments and results of elementary functions that C99's Annex F names, or that must come out exactly."""

from __future__ import annotations

import math

INF, NAN = math.inf, math.nan
PORTABLE = {f"portable_{name}": name for name in ("log", "exp")} | {"portable_arccos": "acos"}
"""Functions of the same bits on every machine, held to what those named here are held to."""
SPECIALS: dict[str, list[tuple[float, ...]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-126.0, 2.0**-126), (-149.0, 2.0**-149), (1e9, INF)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF)],
    "log2": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1024.0, 10.0), (2.0**-149, -149.0)],
    "log10": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (10.0, 1.0), (1000.0, 3.0)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (-INF, NAN), (INF, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e4, 1.0)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (1e4, 1.0), (-1e4, 0.0)],
    "softplus": [(INF, INF), (-INF, 0.0), (1e4, 1e4), (-1e4, 0.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (1e-30, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e4, 1.0)],
    "erfcx": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, INF), (-1e4, INF), (NAN, NAN)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (1e4, 0.0), (-1e4, 2.0)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0), (1.0, 1.0)],
    "atan": [(0.0, 0.0), (-0.0, -0.0)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-1.0, NAN), (-INF, NAN), (INF, INF)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "gammaln": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-1.0, INF), (-7.0, INF), (INF, INF), (-INF, -INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "trigamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (-7.0, INF), (INF, 0.0)],
    "pow": [
        *((x, 0.0, 1.0) for x in (0.0, -0.0, 2.0, -2.0, INF, -INF, NAN)),
        *((1.0, y, 1.0) for y in (0.0, 0.5, -3.0, INF, -INF, NAN)),
        (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF), (0.0, -INF, INF), (-0.0, -INF, INF),
        (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0), (-0.0, INF, 0.0),
        (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (-2.0, 0.5, NAN), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, -1.0, -0.5),
        (0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0), (2.0, INF, INF), (-0.5, INF, 0.0), (-2.0, -INF, 0.0),
        (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 0.5, INF),
        (INF, -2.0, 0.0), (INF, 0.5, INF), (2.0, NAN, NAN), (NAN, 1.0, NAN), (10.0, 3.0, 1000.0),
        (2.0, -149.0, 2.0**-149),
        (2.0, 1e9, INF), (2.0, -1e9, 0.0), (-2.0, 1e9, INF), (0.99, 1e30, 0.0), (3.0, 2.0, 9.0),
    ],
    "hypot": [(3.0, 4.0, 5.0), (INF, NAN, INF), (NAN, -INF, INF), (0.0, -0.0, 0.0), (-3.0, 0.0, 3.0), (NAN, 1.0, NAN)],
    "atan2": [
        (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (INF, NAN, NAN), (1.0, NAN, NAN),
        (1.0, INF, 0.0), (-1.0, INF, -0.0),
    ],
}  # fmt: skip
SPECIALS |= {name: SPECIALS[other] for name, other in PORTABLE.items()}
