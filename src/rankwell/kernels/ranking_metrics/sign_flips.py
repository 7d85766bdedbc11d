"""Sums of numbers with random signs, for Fisher's randomisation test.

Eight numbers at a time: a table holds their sum under each of the 256 choices of signs, so a resample of n numbers
costs n / 8 additions. The signs of a resample are the bits of SplitMix64 at a counter, so that they do not depend on
which thread draws them.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.threads import run_parts

_BLOCK = 1024
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_BYTE, _LOWEST_BYTE = np.uint64(8), np.uint64(255)


@inner_kernel
def _random_bits(seed, counter):
    """SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)."""
    bits = np.uint64(seed) + (np.uint64(counter) + np.uint64(1)) * _GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@kernel
def tables_of_sums(numbers):
    """tables[g, signs] = Σ of the eight numbers of group g, those whose bit is set with a minus."""
    n_groups = 8 * ((len(numbers) + 63) // 64)
    tables = np.zeros((n_groups, 256))
    for place in range(len(numbers)):
        group, bit = place // 8, place % 8
        for signs in range(256):
            tables[group, signs] += -numbers[place] if (signs >> bit) & 1 else numbers[place]
    return tables


def count_extreme_sums(
    numbers: np.ndarray, threshold: float, n_resamples: int, seed: np.uint64, enumerate_all: bool
) -> int:
    """How many of the resampled sums are at least `threshold` in absolute value.

    Parameters
    ----------
    numbers : float64 array (n,)
    threshold : float
    n_resamples : int
    seed : uint64
    enumerate_all : bool
        Resample r takes the bits of r as its signs instead of random ones; for n < 64.
    """
    tables = tables_of_sums(numbers)
    counts = np.zeros(-(-n_resamples // _BLOCK), np.int64)

    def count(block: int) -> None:
        first = block * _BLOCK
        last = min(first + _BLOCK, n_resamples)
        counts[block] = count_extreme(tables, threshold, first, last, seed, enumerate_all)

    run_parts(count, len(counts))
    return int(counts.sum())


@kernel
def count_extreme(tables, threshold, first, last, seed, enumerate_all):
    """How many of the sums of the resamples first, ..., last − 1 are extreme."""
    n_words = len(tables) // 8
    sums = np.zeros(last - first)
    for word in range(n_words):
        for resample in range(first, last):
            bits = np.uint64(resample) if enumerate_all else _random_bits(seed, resample * n_words + word)
            total = sums[resample - first]
            for group in range(8 * word, 8 * word + 8):
                total += tables[group, np.int64(bits & _LOWEST_BYTE)]
                bits >>= _BYTE
            sums[resample - first] = total
    n_extreme = 0
    for place in range(last - first):
        n_extreme += abs(sums[place]) >= threshold
    return n_extreme
