"""The numbers of the forward pass and the loss on the accelerator, where the thesis has float32.

    x, w, a     16 bits, signed: features in [−1, 1), weights and biases in [−8, 8), outputs of sigmoids in [0, 1)
    z           exact sums of products, 27 bits after the point; a table of 512 entries of [−8, 8) gives the sigmoid
    E           e^s, 16 bits after the point, by a table of 512 entries of [0, 1); S = Σ E is exact
    P, m        the truth: 16 and 24 bits after the point
    quotients   24 bits after the point, rounded down, as the gradient is
    Top-3       P and its odds P/(1 − P), limited to 64: 24 bits after the point; sums of a row of pairs 40, rows 32,
                what remains without a row 26

The output unit is a sigmoid, so 1 ≤ E < e and nothing cancels or overflows: no largest score is looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BITS = 16
OUTPUT_POINT = BITS - 1
WEIGHT_POINT = BITS - 1 - 3
SUM_POINT = OUTPUT_POINT + WEIGHT_POINT
EXPONENTIAL_POINT, EXPONENTIAL_BITS = 16, 18
FIRST_POINT, FIRST_BITS = 16, 17
GRADIENT_POINT, GRADIENT_BITS = 24, 27
SHARE_BITS, ODDS_BITS = GRADIENT_POINT + 1, GRADIENT_POINT + 6
PAIR_POINT, ROW_POINT, OTHERS_POINT = 40, 32, 26
_INDEX_BITS = 9
# The sigmoid's table has its entries at multiples of 1/32 from −8 on.
SIGMOID_FRACTION, SIGMOID_POINT, SIGMOID_LIMIT = 8, 13, 8
EXPONENTIAL_FRACTION = OUTPUT_POINT - _INDEX_BITS


@dataclass(frozen=True)
class Interpolation:
    """A growing function as a table: with f = `fraction_bits`, value + difference·fraction/2^f at index·2^f + fraction.

    values, differences : tuples of 512; fraction_bits : int; bits : of the result
    """

    values: tuple[int, ...]
    differences: tuple[int, ...]
    fraction_bits: int
    bits: int

    @classmethod
    def of(
        cls, function: Callable[[float], float], low: float, high: float, point: int, bits: int, fraction_bits: int
    ) -> Interpolation:
        """`function` between `low` and `high`, with `point` bits after the point."""
        n = 1 << _INDEX_BITS
        places = [low + (high - low) * place / n for place in range(n + 1)]
        values = [min(round(function(place) * 2**point), 2**bits - 1) for place in places]
        differences = [values[i + 1] - values[i] for i in range(n)]
        return cls(tuple(values[:n]), tuple(differences), fraction_bits, bits)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The function at int64 x, as the hardware computes it."""
        index, fraction = x >> self.fraction_bits, x & ((1 << self.fraction_bits) - 1)
        half = 1 << self.fraction_bits - 1
        risen = (np.array(self.differences)[index] * fraction + half) >> self.fraction_bits
        return np.array(self.values)[index] + risen


def sigmoid_table() -> Interpolation:
    return Interpolation.of(
        lambda z: 1.0 / (1.0 + math.exp(-z)),
        -SIGMOID_LIMIT,
        SIGMOID_LIMIT,
        OUTPUT_POINT,
        OUTPUT_POINT,
        SIGMOID_FRACTION,
    )


def exponential_table() -> Interpolation:
    return Interpolation.of(math.exp, 0.0, 1.0, EXPONENTIAL_POINT, EXPONENTIAL_BITS, EXPONENTIAL_FRACTION)
