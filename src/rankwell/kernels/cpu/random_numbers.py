"""Random numbers from counters: the number for (seed, a, b) is a hash of them, the same in any order of calls."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel(error_model="numpy", inline="always")
def _mix(x):
    """SplitMix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@inner_kernel(error_model="numpy", for_any_constant=True)
def random_bits(seed, a, b):
    """64 random bits, uint64, for the counter (a, b) of the stream `seed` (uint64)."""
    x = _mix(np.uint64(seed) + _GOLDEN * (np.uint64(a) + np.uint64(1)))
    return _mix(x + _GOLDEN * (np.uint64(b) + np.uint64(1)))


@inner_kernel(error_model="numpy", for_any_constant=True)
def random_unit(seed, a, b):
    """A random float64 in (0, 1)."""
    return (float(random_bits(seed, a, b) >> np.uint64(11)) + 0.5) * 2.0**-53
