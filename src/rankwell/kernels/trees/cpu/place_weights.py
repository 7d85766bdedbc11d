"""What a place of a ranking weighs in the pairs of a loss: X and Y of `losses`."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel
from rankwell.kernels.trees.losses import LAMBDALOSS, MAP, PAIRWISE

# Rows of the table of places.
SCORE, EXPONENTIAL, GAIN, ROW_WEIGHT, COLUMN_WEIGHT, INVERSE = range(6)


@inlined_kernel
def weigh_places(kind, n_docs, discount, table):
    """X and Y of each place (see `losses`)."""
    if kind <= LAMBDALOSS:
        for k in range(n_docs):
            table[ROW_WEIGHT, k] = discount[k]
            table[COLUMN_WEIGHT, k] = discount[k]
    elif kind == PAIRWISE:
        for k in range(n_docs):
            table[ROW_WEIGHT, k] = 1.0
            table[COLUMN_WEIGHT, k] = 0.0
    elif kind == MAP:
        # Precision at a relevant place, and Σ of 1/place over the relevant places so far.
        n_relevant, harmonic = 0.0, 0.0
        for k in range(n_docs):
            relevant = np.float64(table[GAIN, k])
            n_relevant += relevant
            table[COLUMN_WEIGHT, k] = n_relevant / (k + 1.0) - harmonic
            harmonic += relevant / (k + 1.0)
            table[ROW_WEIGHT, k] = (n_relevant + (1.0 - relevant)) / (k + 1.0) - harmonic
    else:
        first = n_docs
        second = n_docs
        for k in range(n_docs - 1, -1, -1):
            if table[GAIN, k] > 0:
                second, first = first, k
        for k in range(n_docs):
            # A swap matters only if it moves the first relevant document, or puts another one before it.
            table[ROW_WEIGHT, k] = 1.0 / (k + 1.0) if k <= first else -1.0
            relevant_now = 1.0 / (first + 1.0)
            alone = 1.0 / (min(k, second) + 1.0)
            table[COLUMN_WEIGHT, k] = relevant_now if table[GAIN, k] > 0 else alone
