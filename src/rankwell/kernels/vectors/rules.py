"""Vectors of documents: how they are stored, and what is computed from one and a query's vector.

A document's vectors are one row of 32-bit words. A vector of float32 has a word for each number. A vector of int8 has
its scale (float32) in the first word, then four numbers in each: a number is scale · int8. NaN in the first word: the
document has no such vector.

    dot     = Σ q · d
    cosine  = dot / √(Σ q² · Σ d²), 0 if a vector is 0

Sums are float64. Lane l of 32 adds the numbers l, l + 32, ... in this order, then lanes are added in pairs (l and
l + 16, then l and l + 8, ...). The product of two float32 is exact in float64: every device has the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

LANES = 32
DOT, COSINE = 0, 1
N_PRODUCTS = 2
"""Columns of what is computed: DOT and COSINE."""


class VectorPlace(NamedTuple):
    """Where a vector is in a row: its first word, how many numbers it has, and whether they are int8."""

    start: int
    dimension: int
    is_int8: bool

    @property
    def n_words(self) -> int:
        """How many words of a row it takes."""
        return 1 + -(-self.dimension // 4) if self.is_int8 else self.dimension
