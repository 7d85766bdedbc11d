"""Exponential, logarithm and sigmoid in float32, written so that the compiler can vectorise loops over them.

The library's `math.exp` and `math.log` are calls, one number at a time. These are polynomials after range reduction
(the coefficients of Cephes' single-precision functions): relative error below 3e-7 over the whole float32 range
where the result is a normal number, and never a NaN for a finite argument.
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
