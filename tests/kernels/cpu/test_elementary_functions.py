"""The vector functions against NumPy in float64."""

import numpy as np
import pytest
from numba import njit

from rankwell.kernels.cpu.elementary_functions import exp32, exp64, log1p64, log32, log64, sigmoid32, tanh64


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


@njit(error_model="numpy")
def apply_all_64(values, which, results):
    for i in range(len(values)):
        x = values[i]
        if which == 0:
            results[i] = log64(x)
        elif which == 1:
            results[i] = log1p64(x)
        elif which == 2:
            results[i] = exp64(x)
        else:
            results[i] = tanh64(x)


SPECIAL = [0.0, 5e-324, 1e-310, 2.0**-1022, 1e-20, 0.5, 1.0, 1.7e308, np.inf]
FUNCTIONS = {
    "log": (np.log, [*SPECIAL, *np.geomspace(1e-300, 1e300, 20_001), *np.linspace(0.5, 2.0, 20_001)]),
    "log1p": (np.log1p, [*SPECIAL, -1.0, *-np.geomspace(1e-300, 0.99, 9_999), *np.geomspace(1e-300, 1e300, 9_999)]),
    "exp": (np.exp, [*SPECIAL, -np.inf, np.nan, 709.7, 709.79, -745.1, -745.2, *np.linspace(-745.0, 709.0, 40_001)]),
    "tanh": (np.tanh, [*SPECIAL, -np.inf, np.nan, *np.linspace(-20.0, 20.0, 9_999), *np.geomspace(1e-300, 1.0, 9_999)]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_functions_are_those_of_the_library(name):
    function, numbers = FUNCTIONS[name]
    values = np.array(numbers)
    found = np.empty_like(values)
    apply_all_64(values, list(FUNCTIONS).index(name), found)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        expected = function(values)
    # Subnormal results have fewer digits: they may differ in the last one.
    np.testing.assert_allclose(found, expected, rtol=5e-16, atol=5e-324)
