"""The first two places' part of the expected gradient, for exact Top-k ListNet (docs/algorithms/listnet.md).

A list's ground truth is five rows of a table `truth`, float64 (5, n_docs), made once from the labels by `top_k_truth`:

    MEMBERSHIP  m_i = P_y(i is in the top k)
    FIRST       P_i = P_y(i is first)
    RATIO       r_a, EXPONENTIAL E_b   with P_y(a, b) = r_a·E_b for the first two places; both 0 for y1, the best one
    AFTER_BEST  c_b = P_y(y1, b) + P_y(b, y1); 0 for y1

Top-1 and Top-2 read the first two rows; the others are filled for Top-3 only.

The gradient of the loss by score i is `expected_i − m_i`, where expected_i = Σ_{beginnings} P_y(beginning)·P_s(i comes
next). Beginnings that leave the same best document share a level (`score_levels`), so nothing cancels for scores that
differ by 1e4; the ground truth uses the same code on the labels.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.lists.cpu.score_levels import score_levels

MEMBERSHIP, FIRST, RATIO, EXPONENTIAL, AFTER_BEST = range(5)
TRUTH_ROWS = 5
MOST_EXACT_PLACES = 3
# Rows of the scratch, float64 (SCRATCH_ROWS, ≥ n_docs): the levels come first.
REMOVED = MOST_EXACT_PLACES
SCRATCH_ROWS = MOST_EXACT_PLACES + 1


@kernel(error_model="numpy", inline="always")
def places_that_count(k, n):
    """The last document of a list is determined by the others: Top-n equals Top-(n − 1)."""
    return max(min(k, n - 1), 1)


@kernel(error_model="numpy", inline="always")
def _second_place(depth, first, best, scratch, sums, expected):
    """Add the second place's part; returns its log part."""
    best_level, next_level, removed = scratch[0], scratch[1], scratch[REMOVED]
    loss = first[best] * (np.log(sums[1]) + depth[1])
    everywhere = 0.0
    for a in range(len(expected)):
        removed[a] = 0.0
        if a != best:
            remaining = sums[0] - best_level[a]
            removed[a] = first[a] / remaining
            everywhere += removed[a]
            loss += first[a] * np.log(remaining)
    share = first[best] / sums[1]
    for i in range(len(expected)):
        expected[i] += best_level[i] * (everywhere - removed[i]) + share * next_level[i]
    return loss


@inner_kernel(error_model="numpy", for_any_constant=True)
def expect_two_places(k, scores, first, scratch, top, sums, depth, expected):
    """The first two places' part of `expected`, of the k places that count; returns its log part.

    The log part is Σ P_y·log Σ e^{s − max s}. The levels of all k places are filled for the third.

    scores : float32, or the labels, float64 (n_docs,); first : float64 (n_docs,), the truth's row FIRST; expected :
    float64 (n_docs,), written; top : int64 (3,); sums, depth : float64 (3,)
    """
    n = len(scores)
    score_levels(scores, k, top, scratch, sums)
    for p in range(k):
        depth[p] = scores[top[p]] - scores[top[0]]
    best_level = scratch[0]
    for i in range(n):
        expected[i] = best_level[i] / sums[0]
    loss = np.log(sums[0])
    if k >= 2:
        loss += _second_place(depth, first, top[0], scratch, sums, expected)
    return loss


@kernel(error_model="numpy", inline="always")
def compare_with_truth(scores, membership, gradient):
    """gradient (so far `expected`) −= m; returns −Σ m·(s − max s)."""
    loss = 0.0
    highest = scores[0]
    for i in range(1, len(scores)):
        highest = max(highest, scores[i])
    for i in range(len(scores)):
        gradient[i] -= membership[i]
        loss -= membership[i] * (scores[i] - highest)
    return loss
