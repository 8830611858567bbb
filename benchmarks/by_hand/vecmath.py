"""Vectorisable exp, log, log1p, tanh, sine, cosine and normal distribution by hand, 1 to 3 ulp on ordinary numbers.

In: numbers of one dtype. Out: the same. Straight-line code, inlined by LLVM, without reassociation: multiplications and
additions may be contracted, nothing else. PyPI's llvmlite has no vector math library, so this is what an expert has to
write. Infinite and NaN arguments are not cared for: a kernel by hand knows its data. The coefficients are those of
`graphc.codegen.vecmath.coefficients`, so that kernels differ in all but the polynomials.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from benchmarks.by_hand.compile import inlined

f32 = np.float32

# --- bits -------------------------------------------------------------------------------------------------------------


def reinterpret(target: Any, llvm_type: Any) -> Any:
    """A function from a number to the one with the same bits."""

    def typed(context: Any, value: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], llvm_type)

        return target(value), lower

    return intrinsic(typed)


bits64 = reinterpret(types.int64, ir.IntType(64))
real64 = reinterpret(types.float64, ir.DoubleType())
bits32 = reinterpret(types.int32, ir.IntType(32))
real32 = reinterpret(types.float32, ir.FloatType())

# --- float64 ----------------------------------------------------------------------------------------------------------

ROUNDER = 6755399441055744.0
"""1.5 * 2**52: adding it rounds to an integer, which then stands in the low bits."""
LN2_HIGH, LN2_LOW, LOG2E = 0.6931471805598903, 5.497923018708371e-14, 1.4426950408889634
ANCHOR = 0x3FE6A09E667F3BCC
"""The bits of a number just below sqrt(1/2)."""
ONE = 0x3FF0000000000000
MANTISSA = (1 << 52) - 1
EXPONENT = (1075 << 52, 2.0**52 + 1023.0)

EXP = (
    0.5000000000000011,
    0.16666666666666408,
    0.0416666666665281,
    0.008333333333496928,
    0.0013888888944249083,
    0.00019841269502731754,
    2.4801492388356134e-05,
    2.7557588429976853e-06,
    2.7630523454243115e-07,
    2.4999855407296043e-08,
)
TANH = (
    -0.333333333333333,
    0.133333333333266,
    -0.05396825396374831,
    0.021869488385493376,
    -0.008863232595328653,
    0.0035920919669286955,
    -0.0014555424254863727,
    0.0005884427106225165,
    -0.00023337692979917473,
    8.330963572048939e-05,
    -1.9490379558072954e-05,
)
LOG = (
    0.6666666666666735,
    0.3999999999941109,
    0.28571428743262905,
    0.2222219847596087,
    0.18183569741208633,
    0.15313903208789387,
    0.147975081086297,
)
SIN = (
    -0.1666666666666663,
    0.00833333333332211,
    -0.0001984126982958002,
    2.75573136172787e-06,
    -2.505074700580061e-08,
    1.5896180447333903e-10,
)
COS = (
    0.041666666666666595,
    -0.0013888888888873032,
    2.4801587288834102e-05,
    -2.7557314173796913e-07,
    2.0875700047862383e-09,
    -1.1358493369060934e-11,
)
TURNS, HALF_PI_HIGH, HALF_PI_LOW = 0.6366197723675814, 1.5707963267948966, 6.123233995736766e-17
ERFCX = (
    1.2329951186255526,
    -0.1396211168405628,
    0.015379652102619662,
    0.06809705425472803,
    -0.10103906603629655,
    0.0937328349971201,
    -0.06633036581260401,
    0.037167515557124796,
    -0.016197734049142598,
    0.005031969805215488,
    -0.0007577733886743435,
    -0.00019925578195085716,
    0.00015062233928023728,
    -2.44022131321124e-05,
    -1.122469900331013e-05,
    5.715809102981294e-06,
    3.004372971159039e-07,
    -8.324901994933264e-07,
    6.471937613573479e-08,
    1.1363910554803016e-07,
    -9.731904632692161e-09,
    -1.3497308573502059e-08,
    -1.0271880332074292e-09,
    2.4006908297157e-10,
)


@inlined
def exp_polynomial(x: Any) -> Any:
    return EXP[0] + x * (
        EXP[1]
        + x
        * (
            EXP[2]
            + x * (EXP[3] + x * (EXP[4] + x * (EXP[5] + x * (EXP[6] + x * (EXP[7] + x * (EXP[8] + x * (EXP[9])))))))
        )
    )


@inlined
def tanh_polynomial(x: Any) -> Any:
    return TANH[0] + x * (
        TANH[1]
        + x
        * (
            TANH[2]
            + x
            * (
                TANH[3]
                + x
                * (
                    TANH[4]
                    + x * (TANH[5] + x * (TANH[6] + x * (TANH[7] + x * (TANH[8] + x * (TANH[9] + x * (TANH[10]))))))
                )
            )
        )
    )


@inlined
def log_polynomial(x: Any) -> Any:
    return LOG[0] + x * (LOG[1] + x * (LOG[2] + x * (LOG[3] + x * (LOG[4] + x * (LOG[5] + x * (LOG[6]))))))


@inlined
def erfcx_polynomial(x: Any) -> Any:
    return ERFCX[0] + x * (
        ERFCX[1]
        + x
        * (
            ERFCX[2]
            + x
            * (
                ERFCX[3]
                + x
                * (
                    ERFCX[4]
                    + x
                    * (
                        ERFCX[5]
                        + x
                        * (
                            ERFCX[6]
                            + x
                            * (
                                ERFCX[7]
                                + x
                                * (
                                    ERFCX[8]
                                    + x
                                    * (
                                        ERFCX[9]
                                        + x
                                        * (
                                            ERFCX[10]
                                            + x
                                            * (
                                                ERFCX[11]
                                                + x
                                                * (
                                                    ERFCX[12]
                                                    + x
                                                    * (
                                                        ERFCX[13]
                                                        + x
                                                        * (
                                                            ERFCX[14]
                                                            + x
                                                            * (
                                                                ERFCX[15]
                                                                + x
                                                                * (
                                                                    ERFCX[16]
                                                                    + x
                                                                    * (
                                                                        ERFCX[17]
                                                                        + x
                                                                        * (
                                                                            ERFCX[18]
                                                                            + x
                                                                            * (
                                                                                ERFCX[19]
                                                                                + x
                                                                                * (
                                                                                    ERFCX[20]
                                                                                    + x
                                                                                    * (
                                                                                        ERFCX[21]
                                                                                        + x
                                                                                        * (ERFCX[22] + x * (ERFCX[23]))
                                                                                    )
                                                                                )
                                                                            )
                                                                        )
                                                                    )
                                                                )
                                                            )
                                                        )
                                                    )
                                                )
                                            )
                                        )
                                    )
                                )
                            )
                        )
                    )
                )
            )
        )
    )


@inlined
def expm1_parts(x: Any) -> Any:
    """2**k and exp(r) - 1 with exp(x) their product and power, for x between -708 and 709."""
    shifted = x * LOG2E + ROUNDER
    k = shifted - ROUNDER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return real64((bits64(shifted) + 1023) << 52), r + r * r * exp_polynomial(r)


@inlined
def exp(x: Any) -> Any:
    x = x if x > -708.0 else -708.0
    power, growth = expm1_parts(x if x < 709.0 else 709.0)
    return power + power * growth


@inlined
def tanh(x: Any) -> Any:
    size = abs(x)
    size = size if size < 20.0 else 20.0
    z = x * x
    small = x + x * z * tanh_polynomial(z)
    power, growth = expm1_parts(size + size)
    large = 1.0 - 2.0 / (power + power * growth + 1.0)
    large = large if x > 0.0 else -large
    return small if size < 0.55 else large


@inlined
def log_parts(x: Any) -> Any:
    """k and f with x = 2**k * (1 + f), and 2**-k, for normal x > 0."""
    moved = bits64(x) + (ONE - ANCHOR)
    k = real64((moved >> 52) | EXPONENT[0]) - EXPONENT[1]
    f = real64((moved & MANTISSA) + ANCHOR) - 1.0
    return k, f, real64((2046 << 52) - (moved & ~MANTISSA))


@inlined
def log_sum(k: Any, f: Any) -> Any:
    """k * ln(2) + log(1 + f)."""
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    return k * LN2_HIGH + (f - (half - (s * (half + z * log_polynomial(z)) + k * LN2_LOW)))


@inlined
def log(x: Any) -> Any:
    k, f, _ = log_parts(x)
    return log_sum(k, f)


@inlined
def log1p(x: Any) -> Any:
    """For x >= 0."""
    u = 1.0 + x
    lost = (x - (u - 1.0)) if x < 1.0 else (1.0 - (u - x))
    k, f, scale = log_parts(u)
    return log_sum(k, f + lost * scale)


@inlined
def normal(x: Any) -> Any:
    """The distribution function of the standard normal and its density, which share their exponential."""
    size = abs(x)
    size = size if size < 37.0 else 37.0
    bell = exp(-0.5 * size * size)
    z = size * 0.7071067811865476
    inverse = 1.0 / ((1.0 + z + z) * (z + 4.0))
    tail = 0.5 * bell * erfcx_polynomial((z - 4.0) * inverse * (1.0 + z + z)) * (inverse * (z + 4.0))
    return (1.0 - tail if x > 0.0 else tail), 0.3989422804014327 * bell


@inlined
def sine_and_cosine(x: Any) -> Any:
    """For |x| below some thousands: both for what is left of quarter turns, then exchanged and negated."""
    shifted = x * TURNS + ROUNDER
    k = shifted - ROUNDER
    r = (x - k * HALF_PI_HIGH) - k * HALF_PI_LOW
    z = r * r
    sine = r + r * z * (SIN[0] + z * (SIN[1] + z * (SIN[2] + z * (SIN[3] + z * (SIN[4] + z * SIN[5])))))
    cosine = z * (COS[0] + z * (COS[1] + z * (COS[2] + z * (COS[3] + z * (COS[4] + z * COS[5])))))
    cosine = 1.0 - z * (0.5 - cosine)
    quarters = bits64(shifted)
    odd = (quarters & 1) != 0
    first, second = (cosine if odd else sine), (sine if odd else cosine)
    return real64(bits64(first) ^ ((quarters & 2) << 62)), real64(bits64(second) ^ (((quarters + 1) & 2) << 62))


@inlined
def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + exp(-x))


# --- float32 ----------------------------------------------------------------------------------------------------------

ROUNDER32, HALF32, ONE32, TWO32 = f32(12582912.0), f32(0.5), f32(1.0), f32(2.0)
LN2_HIGH32, LN2_LOW32, LOG2E32 = f32(0.693145751953125), f32(1.428606765330187e-06), f32(1.4426950408889634)
EXP_LOW32, EXP_HIGH32, TANH_HIGH32, TANH_SPLIT32 = f32(-87.0), f32(88.0), f32(10.0), f32(0.55)
ANCHOR32, ONE_BITS32, MANTISSA32 = 0x3F3504F3, 0x3F800000, (1 << 23) - 1
EXPONENT32 = (150 << 23, f32(2.0**23 + 127.0))
EXP32 = tuple(
    np.float32(c)
    for c in (
        0.4999999403953552,
        0.1666651964187622,
        0.041668400168418884,
        0.00836885068565607,
        0.0013814320554956794,
    )
)
TANH32 = tuple(
    np.float32(c)
    for c in (
        -0.33333316445350647,
        0.13332585990428925,
        -0.053852252662181854,
        0.021071355789899826,
        -0.006273678969591856,
    )
)
LOG32 = tuple(
    np.float32(c)
    for c in (
        0.3333331346511841,
        -0.25000008940696716,
        0.20002125203609467,
        -0.16668002307415009,
        0.1421939879655838,
        -0.12405349314212799,
        0.11889179795980453,
        -0.11677753925323486,
        0.06746872514486313,
    )
)


@inlined
def exp_polynomial32(x: Any) -> Any:
    return EXP32[0] + x * (EXP32[1] + x * (EXP32[2] + x * (EXP32[3] + x * (EXP32[4]))))


@inlined
def tanh_polynomial32(x: Any) -> Any:
    return TANH32[0] + x * (TANH32[1] + x * (TANH32[2] + x * (TANH32[3] + x * (TANH32[4]))))


@inlined
def log_polynomial32(x: Any) -> Any:
    return LOG32[0] + x * (
        LOG32[1]
        + x
        * (
            LOG32[2]
            + x * (LOG32[3] + x * (LOG32[4] + x * (LOG32[5] + x * (LOG32[6] + x * (LOG32[7] + x * (LOG32[8]))))))
        )
    )


@inlined
def expm1_parts32(x: Any) -> Any:
    shifted = x * LOG2E32 + ROUNDER32
    k = shifted - ROUNDER32
    r = (x - k * LN2_HIGH32) - k * LN2_LOW32
    return real32(types.int32((bits32(shifted) + types.int32(127)) << types.int32(23))), r + r * r * exp_polynomial32(r)


@inlined
def exp32(x: Any) -> Any:
    x = x if x > EXP_LOW32 else EXP_LOW32
    power, growth = expm1_parts32(x if x < EXP_HIGH32 else EXP_HIGH32)
    return power + power * growth


@inlined
def tanh32(x: Any) -> Any:
    size = abs(x)
    size = size if size < TANH_HIGH32 else TANH_HIGH32
    z = x * x
    small = x + x * z * tanh_polynomial32(z)
    power, growth = expm1_parts32(size + size)
    large = ONE32 - TWO32 / (power + power * growth + ONE32)
    large = large if x > f32(0.0) else -large
    return small if size < TANH_SPLIT32 else large


@inlined
def log1p32(x: Any) -> Any:
    """For x >= 0."""
    u = ONE32 + x
    lost = (x - (u - ONE32)) if x < ONE32 else (ONE32 - (u - x))
    moved = types.int32(bits32(u) + types.int32(ONE_BITS32 - ANCHOR32))
    k = types.float32(moved >> types.int32(23)) - f32(127.0)
    mantissa = real32(types.int32((moved & types.int32(MANTISSA32)) + types.int32(ANCHOR32)))
    scale = real32(types.int32(types.int32(254 << 23) - (moved & types.int32(~MANTISSA32))))
    f = (mantissa - ONE32) + lost * scale
    square = f * f
    return k * LN2_HIGH32 + (f - (HALF32 * square - (square * f * log_polynomial32(f) + k * LN2_LOW32)))
