"""RankBoost, slow and plain: pairs in a list, every sum as in appendices A and B of the FAR paper, in float64."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankwell.kernels.boosting.precision import LARGEST_R, PI_UNIT, tolerance


def pairs_of_labels(labels: np.ndarray, query_ptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of documents of one query with different labels: int64 (n_pairs,) lower and higher rows."""
    lower, higher = [], []
    for start, end in pairwise(query_ptr):
        for x0 in range(start, end):
            for x1 in range(start, end):
                if labels[x0] < labels[x1]:
                    lower.append(x0)
                    higher.append(x1)
    return np.array(lower, dtype=np.int64), np.array(higher, dtype=np.int64)


def pair_distribution(initial: np.ndarray, scores: np.ndarray, lower: np.ndarray, higher: np.ndarray) -> np.ndarray:
    """D(x0, x1) ∝ D_1(x0, x1)·exp(H(x0) − H(x1)), float64 (n_pairs,), sum 1."""
    exponent = scores[lower] - scores[higher]
    weight = initial * np.exp(exponent - exponent.max())
    return weight / weight.sum()


def document_potentials(distribution: np.ndarray, lower: np.ndarray, higher: np.ndarray, n_docs: int) -> np.ndarray:
    """π(d) = Σ_d' (D(d', d) − D(d, d')), float64 (n_docs,)."""
    return np.bincount(higher, distribution, n_docs) - np.bincount(lower, distribution, n_docs)


def correctness_table(bins: np.ndarray, potentials: np.ndarray, n_bins: int) -> np.ndarray:
    """r(f, b) = Σ_{d: bin_f(d) > b} π(d), float64 (n_features, n_bins − 1). bins : uint8 (n_docs, n_features)"""
    table = np.zeros((bins.shape[1], n_bins - 1))
    for feature in range(bins.shape[1]):
        for threshold in range(n_bins - 1):
            table[feature, threshold] = potentials[bins[:, feature] > threshold].sum()
    return table


def first_of_the_best(table: np.ndarray, margin: float) -> tuple[int, int] | None:
    """The lowest feature, then threshold, within `margin` of the largest |r|; None if that does not help."""
    size = np.abs(table)
    if size.max() <= margin:
        return None
    feature, threshold = np.argwhere(size >= size.max() - margin)[0]
    return int(feature), int(threshold)


def boost_reference(
    bins: np.ndarray,
    n_bins: int,
    lower: np.ndarray,
    higher: np.ndarray,
    initial: np.ndarray,
    n_rounds: int,
    learning_rate: float = 1.0,
) -> list[tuple[int, int, float, float]]:
    """The rounds as (feature, bin, r, loss), the loss after the round."""
    n_docs = len(bins)
    margin = tolerance(len(np.union1d(lower, higher))) * PI_UNIT
    largest = LARGEST_R * PI_UNIT
    initial = initial / initial.sum()
    scores = np.zeros(n_docs)
    rounds = []
    for _ in range(n_rounds):
        distribution = pair_distribution(initial, scores, lower, higher)
        table = correctness_table(bins, document_potentials(distribution, lower, higher, n_docs), n_bins)
        best = first_of_the_best(table, margin)
        if best is None:
            break
        feature, threshold = best
        r = float(np.clip(table[feature, threshold], -largest, largest))
        scores += learning_rate * 0.5 * np.log((1 + r) / (1 - r)) * (bins[:, feature] > threshold)
        loss = float((initial * np.exp(scores[lower] - scores[higher])).sum())
        rounds.append((feature, threshold, r, loss))
        if abs(r) >= largest:
            break
    return rounds
