"""What the holders of parts of one dataset must agree on before they train: the largest value, sums, ranges.

Code that prepares training data asks an `Agreement` wherever it needs a number of all of the data. One process that has
everything agrees with itself; processes of a cluster ask each other (`rankwell.cluster.agreement`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class Agreement:
    """Of one process, which has all of the data: every answer is its own."""

    is_alone: bool = True

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Of each place the largest value."""
        return values

    def smallest(self, values: np.ndarray) -> np.ndarray:
        """Of each place the smallest value."""
        return -self.largest(-values)

    def added(self, values: np.ndarray) -> np.ndarray:
        """Of each place the sum, added in the order of the parts."""
        return values

    def total(self, values: np.ndarray) -> float:
        """The sum of the values of all parts, put one after another: `values.sum()` of one process, bit for bit."""
        return float(values.sum())

    def joined(self, values: np.ndarray) -> np.ndarray:
        """The arrays of all parts, one after another."""
        return values

    def settled(self, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """The result of a computation in which parts agree on much to find little: only the result is kept."""
        return compute()


ALONE = Agreement()
