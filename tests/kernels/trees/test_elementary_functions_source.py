"""Exponential and logarithm of the CUDA sources, compiled for the host: the same bits as the CPU's."""

from __future__ import annotations

import ctypes

import numpy as np
from tests.kernels.trees.gradient_source import compile_source, needs_compiler

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.elementary_functions import exp64, log64

pytestmark = needs_compiler
HOST = """
extern "C" void values(int n, const double* x, double* exponentials, double* logarithms) {
  for (int i = 0; i < n; ++i) {
    exponentials[i] = exponential(x[i]);
    logarithms[i] = logarithm(std::fabs(x[i]));
  }
}
"""


@kernel(error_model="numpy")
def values(x, exponentials, logarithms):
    for i in range(len(x)):
        exponentials[i] = exp64(x[i])
        logarithms[i] = log64(abs(x[i]))


def test_float64_functions_have_the_bits_of_the_cpu(tmp_path):
    library = compile_source(tmp_path, "elementary_functions.cuh", HOST)
    generator = np.random.default_rng(0)
    edges = [0.0, -0.0, 1.0, 1.0 - 2.0**-53, 2.0**-54, 0.5**0.5, 2.0**-1022, 1e308, 709.8, 710.5]
    edges += [-708.4, -708.5, -745.1, -745.2, -746.0, -747.0, -1e308]
    x = np.concatenate(
        [edges, generator.uniform(-750, 712, 2000), generator.random(2000), 10 ** generator.normal(size=9)]
    )
    own, expected = np.full((2, len(x)), np.nan), np.full((2, len(x)), np.nan)
    library.values(len(x), *(ctypes.c_void_p(array.ctypes.data) for array in (x, *own)))
    values(x, *expected)
    assert np.isneginf(expected[1, :2]).all()
    np.testing.assert_array_equal(own.view(np.int64), expected.view(np.int64))
