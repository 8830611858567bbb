"""Functions of `graphc.scipy.special`: SciPy's values, derivatives by each argument against differences of these."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc
import graphc.tensor as T
from graphc.errors import NullTypeGradError
from tests.support.numeric_slopes import numeric_slope

special: Any = importlib.import_module("graphc.scipy.special")

TABLE = """
agm .3:4 .3:4
airy -4:3
airye .2:4
assoc_laguerre -2:3 i0:5 !.2:2
bdtr i0:4 i5:9 .1:.9
bdtrc i0:4 i5:9 .1:.9
bdtri i0:4 i5:9 .1:.9
bei .3:5
beip .3:5
ber .3:5
berp .3:5
besselpoly !.5:2 !.5:2 !.5:2
beta .3:4 .3:4
betainc .5:3 .5:3 .1:.9
betaincc .5:3 .5:3 .1:.9
betaincinv .5:3 .5:3 .1:.9
betainccinv .5:3 .5:3 .1:.9
betaln .3:4 .3:4
binom 1:5 .2:7
boxcox .2:3 -2:2
boxcox1p -.5:3 -2:2
cbrt .3:4
chdtr .5:4 .3:5
chdtrc .5:4 .3:5
chdtri .5:4 .1:.9
comb 5:9 .5:4.5
cosdg -200:200
cosm1 -3:3
cotdg 10:80
dawsn -3:3
digamma .3:4
ellipe -3:.9
ellipeinc -4:4 -2:.8
ellipj -2:2 !.1:.9
ellipk -3:.9
ellipkinc -4:4 -2:.8
ellipkm1 .05:2
elliprc .3:3 .3:3
elliprd !.3:3 !.3:3 !.3:3
elliprf .3:3 .3:3 .3:3
elliprg .3:3 .3:3 .3:3
elliprj !.3:3 !.3:3 !.3:3 !.3:3
entr .1:3
erf -3:3
erfc -3:3
erfcinv .1:1.9
erfcx -2:4
erfi -2:2
erfinv -.9:.9
eval_chebyc i0:6 -1.5:1.5
eval_chebys i0:6 -1.5:1.5
eval_chebyt i0:6 -.9:.9
eval_chebyt !.3:4 -.9:.9
eval_chebyu i0:6 -.9:.9
eval_chebyu !.3:4 -.9:.9
eval_gegenbauer i0:5 !.3:2 -.9:.9
eval_genlaguerre i0:5 !.3:2 .2:4
eval_genlaguerre !.3:4 !.3:2 .2:4
eval_hermite i0:6 -2:2
eval_hermitenorm i0:6 -2:2
eval_jacobi i0:5 !.3:2 !.3:2 -.9:.9
eval_laguerre i0:5 .2:4
eval_laguerre !.3:4 .2:4
eval_legendre i0:5 -.9:.9
eval_legendre !.3:4 -.9:.9
eval_sh_chebyt i0:6 .1:.9
eval_sh_chebyu i0:6 .1:.9
eval_sh_jacobi i0:5 !2.5:4 !.5:1.5 .1:.9
eval_sh_legendre i0:5 .1:.9
exp1 .2:4
exp10 -2:2
exp2 -2:2
expi .2:4
expit -4:4
expm1 -2:2
expn i0:4 .3:4
exprel -3:3
factorial .2:5
fdtr .5:4 .5:4 .2:3
fdtrc .5:4 .5:4 .2:3
fdtri .5:4 .5:4 .1:.9
fresnel -2:2
gamma .3:4
gammainc .3:4 .3:5
gammaincc .3:4 .3:5
gammainccinv .3:4 .1:.9
gammaincinv .3:4 .1:.9
gammaln .3:5
gammasgn 0.2:3
gdtr .5:2 .5:3 .2:3
gdtrc .5:2 .5:3 .2:3
huber .5:1.5 -2:2
hyp0f1 !.3:3 -2:2
hyp1f1 !.3:3 !.3:3 -2:2
hyp2f1 !.3:2 !.3:2 !.5:3 -.8:.8
hyperu !1.1:3 !.3:.9 .5:3
i0 -3:3
i0e .2:4
i1 -3:3
i1e .2:4
inv_boxcox .1:1 .1:.9
inv_boxcox1p .1:1 .1:.9
it2i0k0 .2:4
it2j0y0 .2:4
it2struve0 .3:4
itairy .3:2
iti0k0 .3:4
itj0y0 .3:4
itmodstruve0 .3:4
itstruve0 .3:4
iv !.3:3 .3:4
ive !.3:3 .3:4
ivp !.3:3 .3:4
j0 -4:4
j1 -4:4
jn !.3:3 .3:5
jv !.3:3 .3:5
jve !.3:3 .3:5
jvp !.3:3 .3:5
k0 .3:4
k0e .3:4
k1 .3:4
k1e .3:4
kei .3:4
keip .3:4
ker .3:4
kerp .3:4
kl_div .3:3 .3:3
kn i0:4 .3:4
kolmogi .1:.9
kolmogorov .4:2
kv !.3:3 .3:4
kve !.3:3 .3:4
kvp !.3:3 .3:4
lambertw -.3:3
log1p -.5:3
log_expit -4:4
log_ndtr -6:3
log_wright_bessel !.3:2 !.3:2 .2:3
loggamma .3:5
logit .1:.9
lpmv i0:2 !2.2:4 -.8:.8
mathieu_a i1:4 !.2:3
mathieu_b i1:4 !.2:3
modstruve !.3:2 .3:4
multigammaln 1.5:5 =2
nbdtr i0:5 i1:4 .1:.9
nbdtrc i0:5 i1:4 .1:.9
nbdtri i0:5 i1:4 .1:.9
ndtr -3:3
ndtri .05:.95
ndtri_exp -5:-.1
owens_t -2:2 -2:2
pbdv !.3:2 -2:2
pbvv !.3:2 -2:2
pbwa !.3:2 -2:2
pdtr i0:5 .3:5
pdtrc i0:5 .3:5
pdtri i0:5 .1:.9
perm 5:9 .5:4.5
poch .3:3 .3:3
polygamma i0:3 .5:4
powm1 .3:3 -2:2
pseudo_huber .3:2 -3:3
psi .3:4
rel_entr .3:3 .3:3
rgamma -3:4
shichi .2:3
sici .2:6
sinc -2:2
sindg -200:200
softplus -4:4
spence .2:3
spherical_in i0:4 .3:4
spherical_in i0:4 -3:-.3
spherical_jn i0:4 .3:4
spherical_kn i0:4 .3:4
spherical_kn i0:4 -3:-.3
spherical_yn i0:4 .3:4
stdtr .5:5 -2:2
stdtrit .5:5 .1:.9
struve !.3:2 .3:4
tandg -80:80
tklmbda -1.5:1.5 !.1:.5
voigt_profile -2:2 .3:2 .3:2
wright_bessel !.3:2 !.3:2 .2:3
wrightomega -2:4
xlog1py .3:2 .3:3
xlogy .3:2 .3:3
y0 .3:5
y1 .3:5
yn i0:4 .3:5
yv !.3:3 .3:5
yve !.3:3 .3:5
yvp !.3:3 .3:5
zeta !1.5:4 .3:4
zetac !1.5:4
"""
"""A function, and for each argument its interval: `i` before that of integers, `!` where it has no derivative, which is
an error by name, `=` before a number that is the same in all calls."""

LOOSE = {
    "binom": 1e3, "fdtri": 1e3, "fresnel": 1e3, "hyperu": 1e4, "it2i0k0": 1e7, "it2j0y0": 1e7, "it2struve0": 1e7,
    "itairy": 1e8, "iti0k0": 1e7, "itj0y0": 1e7, "itmodstruve0": 1e7, "itstruve0": 1e7, "keip": 1e3, "kerp": 1e3,
    "kolmogi": 1e3, "modstruve": 1e3, "pbdv": 1e5, "pbvv": 1e5, "pbwa": 1e7, "stdtrit": 1e3, "struve": 1e3,
}  # fmt: skip
"""Functions whose values SciPy has to fewer digits: how many units in the last place they may be wrong."""


def cases() -> Iterator[tuple[str, list[Any], list[str]]]:
    """Names, points and the marks of the arguments."""
    rng = np.random.default_rng(7)
    for line in TABLE.strip().splitlines():
        name, *intervals = line.split()
        points: list[Any] = []
        for interval in intervals:
            low, _, high = interval.lstrip("i!=").partition(":")
            if interval[0] == "i":
                points.append(np.arange(7) % (int(high) - int(low) + 1) + int(low))
            elif interval[0] == "=":
                points.append(int(low))
            else:
                points.append(rng.uniform(float(low), float(high), 7))
        yield name, points, [each[0] for each in intervals]


CASES = list(cases())


def parts(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def theirs(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(scipy.special, name)
    return (lambda x: found(x).real) if name == "lambertw" else found


def variables(points: list[Any], marks: list[str]) -> list[Any]:
    made = [T.lvector if mark == "i" else T.dvector for mark in marks]
    return [point if mark == "=" else kind("x") for kind, mark, point in zip(made, marks, points, strict=True)]


def test_every_function_is_in_the_table() -> None:
    named = {name for name, _, _ in CASES}
    without = {*addressed_values_alone(), "diric", "log_softmax", "logsumexp", "radian", "round",
               "softmax"}  # fmt: skip
    assert named | without == set(special.__all__)


def addressed_values_alone() -> list[str]:
    found: list[str] = importlib.import_module("graphc.scipy.special.addressed").VALUES_ALONE
    return found


@pytest.mark.slow
def test_values_and_derivatives() -> None:
    """All in one function: values are SciPy's, derivatives within the bound of differences of them."""
    inputs, given, outputs, wanted = [], [], [], []
    for name, points, marks in CASES:
        args = variables(points, marks)
        shown = [arg for arg, mark in zip(args, marks, strict=True) if mark != "="]
        inputs += shown
        given += [point for point, mark in zip(points, marks, strict=True) if mark != "="]
        expected = parts(theirs(name)(*points))
        for place, found in enumerate(parts(getattr(special, name)(*args))):
            outputs.append(found)
            wanted.append((f"{name} {place}", expected[place], 1e-13 * np.abs(expected[place]) + 1e-15))
            for position, mark in enumerate(marks):
                if mark not in "i=":
                    slopes_of(name, place, found, args, points, position, mark, outputs, wanted)
    values = graphc.function(inputs, outputs, mode="interpreted")(*given)
    wrong = [
        f"{label}: {found} for {value}, within {bound}"
        for found, (label, value, bound) in zip(values, wanted, strict=True)
        if not np.all(np.abs(found - value) <= bound)
    ]
    assert not wrong, "\n".join(wrong)


def slopes_of(
    name: str, place: int, found: Any, args: Any, points: Any, position: int, mark: str, outputs: Any, wanted: Any
) -> None:
    if mark == "!":
        with pytest.raises(NullTypeGradError, match=r"not implemented"):
            graphc.grad(found.sum(), args[position])
        return
    outputs.append(graphc.grad(found.sum(), args[position], disconnected_inputs="ignore"))
    slope, bound = numeric_slope(
        lambda *values: parts(theirs(name)(*values))[place], points, position, units=LOOSE.get(name, 64.0)
    )
    wanted.append((f"{name} {place} by {position}", slope, bound))


NO_SECOND = "ellipkinc ellipeinc elliprc elliprf elliprg".split()
"""Functions whose second derivatives are not there, which is an error by name."""


@pytest.mark.slow
def test_second_derivatives() -> None:
    """By the last argument that has a derivative, against differences of the first derivatives."""
    inputs: list[Any] = []
    given: list[Any] = []
    moved, labels, slopes, seconds = [], [], [], []
    for name, points, marks in CASES:
        last = max([position for position, mark in enumerate(marks) if mark not in "i=!"], default=None)
        args = variables(points, marks)
        results = parts(getattr(special, name)(*args))
        if last is None or name in ("cbrt", "gammasgn", "bdtr", "bdtrc"):
            continue
        moved += [position == last for position, mark in enumerate(marks) if mark != "="]
        inputs += [arg for arg, mark in zip(args, marks, strict=True) if mark != "="]
        given += [point for point, mark in zip(points, marks, strict=True) if mark != "="]
        for place, found in enumerate(results):
            slope = graphc.grad(found.sum(), args[last])
            if name in NO_SECOND:
                with pytest.raises(NullTypeGradError, match="elliprd"):
                    graphc.grad(slope.sum(), args[last])
                continue
            labels.append(f"{name} {place}")
            slopes.append(slope)
            seconds.append(graphc.grad(slope.sum(), args[last], disconnected_inputs="ignore"))
    first = graphc.function(inputs, slopes, mode="interpreted")

    def shifted(shift: Any) -> Any:
        return np.array(first(*(x + shift if moves else x for x, moves in zip(given, moved, strict=True))))

    wanted, bounds = numeric_slope(shifted, [0.0], 0, units=1e3)
    values = graphc.function(inputs, seconds, mode="interpreted")(*given)
    bounds *= np.array([[LOOSE.get(label.split()[0], 1.0)] for label in labels])
    wrong = [
        f"{label}: {found} for {value}, within {bound}"
        for label, found, value, bound in zip(labels, values, wanted, bounds, strict=True)
        if not np.all(np.abs(found - value) <= bound)
    ]
    assert not wrong, "\n".join(wrong)


EXACT = """
agm 2 3 | entr 0 | rel_entr 0 1 | kl_div 0 2 | huber 1 0.5 | boxcox 0 2 | exprel 0 | rgamma -2 | binom 3 5 | spence
1 | ellipk 0 | ellipe 0 | ellipkm1 1 | it2struve0 0 | sici 0.5 | berp 0 | beip 0 | ellipeinc 0.5 0 | ellipkinc 0.5 0
| elliprg 0 1 2 | spherical_jn 1 0 | spherical_in 1 0 | kolmogorov 0.01 | expn 0 1 | pseudo_huber 1 0 | diric 0.5 3
| comb 5 7 | perm 3 4 | factorial -1 | boxcox 2 0 | inv_boxcox 0.5 0 | inv_boxcox1p 0.5 0 | log_expit -800 |
logsumexp -1000 | radian 1 2 3 | round 2.5 | multigammaln 3 2 | lambertw 0 | softmax 2 | log_softmax 2
"""
"""Points where formulas divide 0 by 0, or are at an end: values are SciPy's, derivatives finite."""


@pytest.mark.slow
def test_points_where_formulas_meet_their_limits() -> None:
    names, outputs, slopes, wanted = [], [], [], []
    for text in EXACT.replace("\n", " ").split("|"):
        name, *numbers = text.split()
        whole = name in ("diric", "multigammaln", "spherical_jn", "spherical_in", "expn", "perm", "comb")
        values: list[Any] = [int(x) if whole and "." not in x else float(x) for x in numbers]
        free = 0 if name in ("multigammaln", "diric") else len(values) - 1
        x = T.constant(float(values[free])) * 1.0
        found = parts(getattr(special, name)(*values[:free], x, *values[free + 1 :]))[0]
        names.append(text)
        outputs.append(found)
        slopes.append(graphc.grad(found, x, disconnected_inputs="ignore"))
        wanted.append(parts(theirs(name)(*values))[0])
    found, derivatives = graphc.function([], [T.stack(outputs), T.stack(slopes)], mode="interpreted")()
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-16)
    assert [name for name, slope in zip(names, derivatives, strict=True) if not np.isfinite(slope)] == [" entr 0 "]
