"""Exponential, logarithm and relatives, written so that the compiler can vectorise loops over them.

The library's `math.exp` and `math.log` are calls, one number at a time. These are polynomials after range reduction.
The kernel that calls them has `error_model="numpy"`: checks of divisors would prevent it.

In float32 (the coefficients of Cephes' single-precision functions) the relative error is below 3e-7 over the whole
range where the result is a normal number, and there is never a NaN for a finite argument. In float64 (those of
FreeBSD's logarithm and of Cephes) it is below 5e-16, and infinities, NaN and subnormal numbers are as in the library.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# Adding and subtracting 1.5 · 2^23 rounds a float32 below 2^22 to the nearest whole number.
_ROUNDING = np.float32(12582912.0)
_LOWEST = np.float32(-87.3)
_HIGHEST = np.float32(88.3)
_ONE = np.float32(1.0)
_HALF = np.float32(0.5)
_SQRT_HALF_BITS = np.int32(0x3F3504F3)

_LN2_HIGH_64, _LN2_LOW_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SMALLEST_NORMAL_64, _TWO_TO_54 = 2.0**-1022, 2.0**54
# 1.5 · 2^52 + k has k in its lowest bits: a whole number becomes a float, or a float a whole number, by one addition.
_ROUNDING_64 = 6755399441055744.0
_ROUNDING_BITS_64 = np.int64(0x4338000000000000)
_SQRT_HALF_BITS_64 = np.int64(0x3FE6A09E667F3BCD)
_BIAS_64, _MANTISSA_64 = np.int64(1023), np.int64(52)
_INFINITY = np.inf


@kernel(error_model="numpy", inline="always")
def exp32(x):
    """e^x for float32 x; below −87.3 it stays at e^−87.3 (1.2e-38), above 88.3 at e^88.3."""
    x = min(max(x, _LOWEST), _HIGHEST)
    power = (x * _LOG2_E + _ROUNDING) - _ROUNDING
    r = x - power * _LN2_HIGH
    r = r - power * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    mantissa = p * (r * r) + r + _ONE
    scale = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return mantissa * scale


@kernel(error_model="numpy", inline="always")
def log32(x):
    """ln x for a positive normal float32 x."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32((bits - _SQRT_HALF_BITS) >> np.int32(23))
    f = np.int32(bits - np.int32(exponent << np.int32(23))).view(np.float32) - _ONE
    z = f * f
    p = np.float32(7.0376836292e-2)
    p = p * f + np.float32(-1.1514610310e-1)
    p = p * f + np.float32(1.1676998740e-1)
    p = p * f + np.float32(-1.2420140846e-1)
    p = p * f + np.float32(1.4249322787e-1)
    p = p * f + np.float32(-1.6668057665e-1)
    p = p * f + np.float32(2.0000714765e-1)
    p = p * f + np.float32(-2.4999993993e-1)
    p = p * f + np.float32(3.3333331174e-1)
    power = np.float32(exponent)
    y = p * f * z + power * _LN2_LOW - _HALF * z
    return (f + y) + power * _LN2_HIGH


@kernel(error_model="numpy", inline="always")
def sigmoid32(x):
    """1 / (1 + e^−x) for float32 x."""
    return _ONE / (_ONE + exp32(-x))


@kernel(error_model="numpy", inline="always")
def log64(x):
    """ln x for float64 x ≥ 0; −∞ for 0."""
    is_tiny = x < _SMALLEST_NORMAL_64
    scaled = x * _TWO_TO_54 if is_tiny else x
    bits = np.float64(scaled).view(np.int64) - _SQRT_HALF_BITS_64
    exponent = np.int64(bits >> _MANTISSA_64)
    power = np.int64(exponent + _ROUNDING_BITS_64).view(np.float64) - _ROUNDING_64
    power = power - 54.0 if is_tiny else power
    f = np.int64(bits - (exponent << _MANTISSA_64) + _SQRT_HALF_BITS_64).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * odd))
    half = 0.5 * f * f
    y = power * _LN2_HIGH_64 - ((half - (s * (half + (even + odd)) + power * _LN2_LOW_64)) - f)
    return (x if x == _INFINITY else y) if x > 0.0 else -_INFINITY


@kernel(error_model="numpy", inline="always")
def log1p64(x):
    """ln(1 + x) for float64 x ≥ −1; −∞ for −1."""
    u = 1.0 + x
    # What rounding 1 + x lost, to first order.
    lost = (x - (u - 1.0)) / u
    return log64(u) + (lost if -1.0 < x < _INFINITY else 0.0)


@kernel(error_model="numpy", inline="always")
def exp64(x):
    """e^x for float64 x."""
    limited = min(max(x, -746.0), 710.0)
    shifted = limited * 1.4426950408889634073599 + _ROUNDING_64
    power = shifted - _ROUNDING_64
    r = limited - power * 6.93145751953125e-1
    r = r - power * 1.42860682030941723212e-6
    z = r * r
    p = r * (9.99999999999999999910e-1 + z * (3.02994407707441961300e-2 + z * 1.26177193074810590878e-4))
    q = 2.52448340349684104192e-3 + z * 3.00198505138664455042e-6
    q = 2.00000000000000000009 + z * (2.27265548208155028766e-1 + z * q)
    mantissa = 1.0 + 2.0 * (p / (q - p))
    # Two factors: 2^power itself may be too large or too small for a normal number.
    whole = np.int64(np.float64(shifted).view(np.int64) - _ROUNDING_BITS_64)
    half = np.int64(whole >> np.int64(1))
    first = np.int64((half + _BIAS_64) << _MANTISSA_64).view(np.float64)
    second = np.int64((whole - half + _BIAS_64) << _MANTISSA_64).view(np.float64)
    return mantissa * first * second if x == x else x


@kernel(error_model="numpy", inline="always")
def tanh64(x):
    """The hyperbolic tangent of float64 x."""
    size = abs(x)
    z = x * x
    p = -1.61468768441708447952e3 + z * (-9.92877231001918586564e1 + z * -9.64399179425052238628e-1)
    q = 4.84406305325125486048e3 + z * (2.23548839060100448583e3 + z * (1.12811678491632931402e2 + z))
    near = x + x * (z * (p / q))
    far = 1.0 - 2.0 / (exp64(2.0 * size) + 1.0)
    return near if size < 0.625 else (far if x > 0.0 else -far)
