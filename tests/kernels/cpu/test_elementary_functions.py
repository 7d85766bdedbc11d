"""The vector functions against NumPy in float64."""

import numpy as np
from numba import njit

from rankwell.kernels.cpu.elementary_functions import exp32, log32, sigmoid32


@njit
def apply_all(values, exponentials, logarithms, sigmoids):
    for i in range(len(values)):
        exponentials[i] = exp32(values[i])
        logarithms[i] = log32(exponentials[i])
        sigmoids[i] = sigmoid32(values[i])


def test_relative_errors_are_below_what_the_file_says():
    values = np.linspace(-87.0, 88.0, 100_001).astype(np.float32)
    exponentials, logarithms, sigmoids = (np.empty_like(values) for _ in range(3))
    apply_all(values, exponentials, logarithms, sigmoids)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(exponentials, np.exp(exact), rtol=3e-7)
    np.testing.assert_allclose(logarithms, np.log(exponentials.astype(np.float64)), rtol=3e-7, atol=1e-7)
    np.testing.assert_allclose(sigmoids, 1 / (1 + np.exp(-exact)), rtol=1e-6)


def test_extremes_stay_finite():
    values = np.array([-1e30, -1000.0, 0.0, 1000.0, 1e30], dtype=np.float32)
    exponentials, logarithms, sigmoids = (np.empty_like(values) for _ in range(3))
    apply_all(values, exponentials, logarithms, sigmoids)
    assert np.isfinite(exponentials).all()
    assert exponentials[2] == 1.0
    np.testing.assert_allclose(sigmoids, [0, 0, 0.5, 1, 1], atol=1e-30)
