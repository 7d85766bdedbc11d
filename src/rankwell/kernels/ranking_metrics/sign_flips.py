"""Sums of numbers with random signs, for Fisher's randomisation test.

Eight numbers at a time: a table holds their sum under each of the 256 choices of signs, so a resample of n numbers
costs n / 8 additions. The signs of a resample are the bits of SplitMix64 at a counter, so that they do not depend on
which thread draws them.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel

_BLOCK = 256
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def _random_bits(seed, counter):
    """SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)."""
    bits = np.uint64(seed) + (np.uint64(counter) + np.uint64(1)) * _GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@kernel
def _tables_of_sums(numbers):
    """tables[g, signs] = Σ of the eight numbers of group g, those whose bit is set with a minus."""
    n_groups = 8 * ((len(numbers) + 63) // 64)
    tables = np.zeros((n_groups, 256))
    for place in range(len(numbers)):
        group, bit = place // 8, place % 8
        for signs in range(256):
            tables[group, signs] += -numbers[place] if (signs >> bit) & 1 else numbers[place]
    return tables


@kernel(parallel=True)
def count_extreme_sums(numbers, threshold, n_resamples, seed, enumerate_all):
    """How many of the resampled sums are at least `threshold` in absolute value.

    Parameters
    ----------
    numbers : float64 array (n,)
    n_resamples : int
    seed : int
    enumerate_all : bool
        Resample r takes the bits of r as its signs instead of random ones; for n < 64.
    """
    tables = _tables_of_sums(numbers)
    n_words = len(tables) // 8
    n_blocks = (n_resamples + _BLOCK - 1) // _BLOCK
    counts = np.zeros(n_blocks, np.int64)
    for block in prange(n_blocks):
        first = block * _BLOCK
        size = min(_BLOCK, n_resamples - first)
        sums = np.zeros(size)
        for word in range(n_words):
            for place in range(size):
                resample = first + place
                bits = np.uint64(resample) if enumerate_all else _random_bits(seed, resample * n_words + word)
                for group in range(8 * word, 8 * word + 8):
                    sums[place] += tables[group, np.int64(bits & np.uint64(255))]
                    bits >>= np.uint64(8)
        for place in range(size):
            counts[block] += abs(sums[place]) >= threshold
    return counts.sum()
