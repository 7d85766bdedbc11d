"""A query's floats as the integers that back propagation takes (`kernels/lists/fixed_point_format.py`)."""

from __future__ import annotations

import numpy as np

from rankwell.hardware.listnet.gradient import QueryIntegers
from rankwell.kernels.lists.fixed_point_format import BATCH, DIRECT, INTEGER_BITS, LEAST_EXPONENT, FixedPointFormat


def quantised(values: np.ndarray, exponent: int, bits: int) -> np.ndarray:
    """Numbers of the range [−2^exponent, 2^exponent) as integers of `bits` bits, int64."""
    limit = 1 << bits - 1
    scaled = np.floor(values.astype(np.float64) * 2.0 ** (bits - 1 - exponent) + 0.5)
    return np.clip(scaled, -limit, limit - 1).astype(np.int64)


def quantised_query(
    fmt: FixedPointFormat,
    weights: np.ndarray,
    features: np.ndarray,
    hidden: np.ndarray,
    scores: np.ndarray,
    slopes: np.ndarray,
) -> tuple[QueryIntegers, int]:
    """The integers of a query, and log2 of its loss scale F.

    weights : the output unit's, integers already, as are `features`; hidden, scores : outputs of the units, float32
    (n_docs, hidden) and (n_docs,); slopes : ∂L/∂score, float64 (n_docs,)
    """
    gradient = slopes.astype(np.float32).astype(np.float64)
    exponents = np.maximum(np.frexp(gradient)[1], LEAST_EXPONENT)
    exponents[gradient == 0.0] = LEAST_EXPONENT
    largest = int(exponents.max(initial=LEAST_EXPONENT))
    scale = 0 if fmt.method == DIRECT else INTEGER_BITS - largest
    batch = np.minimum(largest - exponents, fmt.batches - 1) if fmt.method == BATCH else np.zeros_like(exponents)
    integers = QueryIntegers(
        weights=weights,
        gradient=quantised(np.ldexp(gradient, scale + batch), INTEGER_BITS, fmt.bits),
        score=quantised(scores, 0, fmt.bits),
        hidden=quantised(hidden, 0, fmt.bits),
        features=features,
        batch=batch,
    )
    return integers, scale
