"""The functions of `scipy.special` of real arguments, of arrays and of tensors.

In: what SciPy's functions of these names take. Out: SciPy's values; of tensors those of the same functions, which
kernels call by address (graphc/ops/custom.py) or which are composed of others, with derivatives. A derivative that has
no formula is an error that names the function and the argument.

    special.gammaln(np.array([1.0, 5.0]))       array([0.        , 3.17805383])
    graphc.grad(special.gammaln)(5.0)           digamma(5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.scipy.named import offer
from graphc.scipy.special import addressed, composed
from graphc.startup.hooks import lazily, nearest
from graphc.tensor import elementary, special as _special

if TYPE_CHECKING:
    from graphc.scipy.special.names import *  # noqa: F403

_OTHERS = {
    elementary: "cbrt digamma erf erfc erfcx exp2 expit expm1 gammaln log1p logit psi softplus xlog1py xlogy",
    _special: """
        betainc betaincinv betaln erfcinv erfinv gamma gammainc gammaincc gammainccinv gammaincinv hyp2f1 i0 i0e i1 i1e
        iv ive j0 j1 jv k0 k0e k1 k1e kv kve log_ndtr ndtr ndtri owens_t polygamma sinc stdtr y0 y1 yv
    """,
    addressed: """
        agm bei beip ber berp besselpoly beta betaincc betainccinv binom boxcox boxcox1p cosdg cosm1 cotdg dawsn ellipe
        ellipeinc ellipk ellipkinc ellipkm1 elliprc elliprd elliprf elliprg elliprj erfi exp1 expi expn exprel gammasgn
        hyp0f1 hyp1f1 hyperu inv_boxcox inv_boxcox1p it2struve0 itmodstruve0 itstruve0 jve kei keip ker kerp kn kolmogi
        kolmogorov log_wright_bessel loggamma lpmv mathieu_a mathieu_b modstruve ndtri_exp  poch powm1
        pseudo_huber rgamma sindg spence stdtrit struve tandg tklmbda voigt_profile wright_bessel
        wrightomega
        yn yve zetac
    """
    + " ".join(addressed.VALUES_ALONE),
    composed: """
        airy airye bdtr bdtrc bdtri chdtr chdtrc chdtri comb diric ellipj entr exp10 factorial fdtr fdtrc fdtri
        fresnel gdtr gdtrc huber it2i0k0 it2j0y0 itairy iti0k0 itj0y0 ivp jvp kl_div kvp lambertw log_expit
        log_softmax logsumexp multigammaln nbdtr nbdtrc nbdtri pbdv pbvv pbwa pdtr pdtrc pdtri perm radian
        rel_entr round shichi sici softmax spherical_in spherical_jn spherical_kn spherical_yn yvp zeta
        assoc_laguerre eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite
        eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi
        eval_sh_legendre
    """,
}
"""The modules that have the functions, and the names of each."""

__all__ = sorted(name for names in _OTHERS.values() for name in names.split())  # noqa: PLE0605 - the names are SciPy's

if not TYPE_CHECKING:  # which know the names
    globals().update({name: getattr(home, name) for home, names in _OTHERS.items() for name in names.split()})
    jn = _special.jv
    __all__ += ["jn"]

_COMPLEX = "its values are complex, and nobody has written it for complex numbers"
_INTEGERS = "it is a function of integers, without derivatives: SciPy's own serves"
_MODES = "its values belong to the number of a mode, and their derivatives have no formula"
_INSTEAD = {
    **dict.fromkeys(
        "h1vp h2vp hankel1 hankel1e hankel2 hankel2e kelvin modfresnelm modfresnelp sph_harm_y "
        "sph_harm_y_all wofz".split(),
        _COMPLEX,
    ),
    "bessel_jn": "jv(n, x) has the values of one order",
    **dict.fromkeys("bernoulli euler factorial2 factorialk stirling2".split(), _INTEGERS),
    **dict.fromkeys("geterr seterr errstate SpecialFunctionError SpecialFunctionWarning".split(), "SciPy's own serves"),
}
"""Functions of `scipy.special` that do not exist here, with the reason."""


def _missing(name: str) -> str:
    """The reason why there is no such name."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    if name.endswith(("_zeros", "_roots")) or name.startswith("roots_"):
        return _INTEGERS
    if name.startswith(("mathieu_", "obl_", "pro_", "ellip_")):
        return _MODES
    if name.startswith(("lq", "pbdn", "pbvv_", "pbdv_", "riccati", "lmbda")) or name.endswith(("_p", "_p_all")):
        return "graphc has eval_legendre and lpmv of single degrees"
    if f"eval_{name}" in __all__:
        return f"it makes a polynomial of NumPy's; eval_{name}(n, x) has its values"
    return nearest(name, __all__)


if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, {}, _missing)


offer(globals())
