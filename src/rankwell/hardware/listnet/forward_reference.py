"""The forward pass and the loss gradient in the accelerator's integers: the slow twin that its kernels must equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwell.hardware.listnet.forward_format import (
    BITS,
    EXPONENTIAL_POINT,
    FIRST_POINT,
    GRADIENT_BITS,
    GRADIENT_POINT,
    ODDS_BITS,
    OTHERS_POINT,
    OUTPUT_POINT,
    PAIR_POINT,
    ROW_POINT,
    SIGMOID_LIMIT,
    SIGMOID_POINT,
    SUM_POINT,
    WEIGHT_POINT,
    exponential_table,
    sigmoid_table,
)
from rankwell.kernels.lists.fixed_point_format import BATCH, DIRECT, INTEGER_BITS


def fixed(values: np.ndarray, point: int, bits: int = BITS) -> np.ndarray:
    """Numbers with `point` bits after the point, rounded half up, limited to `bits` signed bits, int64."""
    scaled = np.floor(np.asarray(values, dtype=np.float64) * 2.0**point + 0.5)
    return np.clip(scaled, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(np.int64)


def fixed_features(values: np.ndarray) -> np.ndarray:
    return fixed(values, OUTPUT_POINT)


def fixed_weights(values: np.ndarray) -> np.ndarray:
    return fixed(values, WEIGHT_POINT)


def _sigmoid(sums: np.ndarray) -> np.ndarray:
    shift, limit = SUM_POINT - SIGMOID_POINT, SIGMOID_LIMIT << SIGMOID_POINT
    places = ((sums + (1 << shift - 1)) >> shift) + limit
    return sigmoid_table()(np.clip(places, 0, 2 * limit - 1))


def forward(
    features: np.ndarray, weights: np.ndarray, biases: np.ndarray, output_weights: np.ndarray, output_bias: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hidden outputs (n_docs, hidden) and scores (n_docs,), int64.

    features : (n_docs, features); weights : (hidden, features); biases, output_weights : (hidden,)
    """
    hidden = _sigmoid(features @ weights.T + (biases << OUTPUT_POINT))
    return hidden, _sigmoid(hidden @ output_weights + (output_bias << OUTPUT_POINT))


@dataclass(frozen=True)
class ListTruth:
    """The truth of a list in the loss gradient's integers, int64 (n_docs,).

    first : P_y(first); membership : P_y(in the top k); odds : of `first`, for Top-3
    """

    first: np.ndarray
    membership: np.ndarray
    odds: np.ndarray

    @property
    def n_candidates(self) -> int:
        """The documents that form pairs."""
        return int(np.count_nonzero(self.first))


def fixed_truth(k: int, first: np.ndarray, membership: np.ndarray) -> ListTruth:
    """The rows FIRST and MEMBERSHIP of the truth (`kernels/lists/cpu/two_places.py`) as whole numbers."""
    with np.errstate(divide="ignore"):
        odds = np.minimum(np.floor(first / (1.0 - first) * 2.0**GRADIENT_POINT + 0.5), 2.0**ODDS_BITS - 1)
    point = GRADIENT_POINT if k == 3 else FIRST_POINT
    return ListTruth(
        np.floor(first * 2.0**point + 0.5).astype(np.int64),
        np.floor(membership * 2.0**GRADIENT_POINT + 0.5).astype(np.int64),
        odds.astype(np.int64),
    )


def list_gradient(k: int, scores: np.ndarray, truth: ListTruth) -> np.ndarray:
    """∂L/∂s of a list, `GRADIENT_POINT` bits after the point; k is 1, 2 or 3."""
    exponentials = exponential_table()(scores)
    total = int(exponentials.sum())
    quotients = (exponentials << GRADIENT_POINT) // total
    gradient = quotients - truth.membership
    if k >= 2:
        first = truth.first >> GRADIENT_POINT - FIRST_POINT if k == 3 else truth.first
        ratios = (first << GRADIENT_POINT) // (total - exponentials)
        gradient += (exponentials * (int(ratios.sum()) - ratios)) >> EXPONENTIAL_POINT
    if k == 3:
        rows = _pair_rows(exponentials, truth)
        others = (int(rows.sum()) - 2 * rows) >> ROW_POINT - OTHERS_POINT
        gradient += (quotients * others) >> OTHERS_POINT - 2
    return gradient


def _pair_rows(exponentials: np.ndarray, truth: ListTruth) -> np.ndarray:
    """row_a of every document (`third_place.py`)."""
    total = int(exponentials.sum())
    candidates = np.flatnonzero(truth.first)
    rows = np.zeros(len(exponentials), dtype=np.int64)
    down = 2 * GRADIENT_POINT - PAIR_POINT
    fewer = ROW_POINT - (ODDS_BITS - GRADIENT_POINT)
    for a in candidates.tolist():
        b = candidates[candidates != a]
        ratios = (total << GRADIENT_POINT) // (8 * (total - exponentials[a] - exponentials[b]))
        of_shares = int((truth.first[b] * ratios >> down).sum()) >> PAIR_POINT - ROW_POINT
        of_odds = int((truth.odds[b] * ratios >> down).sum()) >> PAIR_POINT - fewer
        rows[a] = (int(truth.odds[a]) * of_shares >> GRADIENT_POINT) + (
            int(truth.first[a]) * of_odds >> GRADIENT_POINT + fewer - ROW_POINT
        )
    return rows


def scaled_gradient(gradient: np.ndarray, bits: int, batches: int, method: int) -> tuple[np.ndarray, np.ndarray]:
    """u and B of every document."""
    lengths = np.array([int(abs(value)).bit_length() for value in gradient])
    longest = int(lengths.max())
    batch = np.minimum(longest - lengths, batches - 1) if method == BATCH else np.zeros_like(lengths)
    if method == DIRECT:
        down, shifted = GRADIENT_POINT + INTEGER_BITS + 1 - bits, gradient
    else:
        down, shifted = GRADIENT_BITS - bits, gradient << (GRADIENT_BITS - 1 - longest + batch)
    rounded = (shifted + (1 << down - 1)) >> down if down > 0 else shifted << -down
    return np.minimum(rounded, 2 ** (bits - 1) - 1), batch
