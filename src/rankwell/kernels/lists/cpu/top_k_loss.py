"""Exact Top-1, Top-2 and Top-3 ListNet without permutations (docs/algorithms/listnet.md).

A list's ground truth is a table `truth`, float64 (5, n_docs), made once from the labels by `top_k_truth`:

    MEMBERSHIP  m_i = P_y(i is in the top k)
    FIRST       P_i = P_y(i is first)
    RATIO       r_a, EXPONENTIAL E_b   with P_y(a, b) = r_a·E_b for the first two places; both 0 for y1, the best one
    AFTER_BEST  c_b = P_y(y1, b) + P_y(b, y1); 0 for y1

The gradient of the loss by score i is `expected_i − m_i`, where expected_i = Σ_{beginnings} P_y(beginning)·P_s(i comes
next). Beginnings that leave the same best document behind share a level (`score_levels`), so nothing cancels for scores
that differ by 1e4; the ground truth uses the same code on the labels.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.lists.cpu.pair_sums import pair_sums, pair_sums_parallel, row_sums
from rankwell.kernels.lists.cpu.score_levels import score_levels

MEMBERSHIP, FIRST, RATIO, EXPONENTIAL, AFTER_BEST = range(5)
TRUTH_ROWS = 5
MOST_EXACT_PLACES = 3
# A document of this probability cannot change a float32 gradient.
NEGLIGIBLE = 1e-30


@kernel(error_model="numpy")
def places_that_count(k, n):
    """A list's last document is no choice: Top-n equals Top-(n − 1)."""
    return max(min(k, n - 1), 1)


@kernel(error_model="numpy")
def _second_place(depth, truth, top, levels, sums, removed, expected):
    """Add the second place's part; returns its log part."""
    best = top[0]
    first = truth[FIRST]
    loss = first[best] * (np.log(sums[1]) + depth[1])
    everywhere = 0.0
    for a in range(len(expected)):
        removed[a] = 0.0
        if a != best:
            remaining = sums[0] - levels[0, a]
            removed[a] = first[a] / remaining
            everywhere += removed[a]
            loss += first[a] * np.log(remaining)
    share = first[best] / sums[1]
    for i in range(len(expected)):
        expected[i] += levels[0, i] * (everywhere - removed[i]) + share * levels[1, i]
    return loss


@kernel(error_model="numpy")
def _pair_weight(truth, best_label, a, b):
    """P_y({a, b} hold the first two places)."""
    if a == best_label:
        return truth[AFTER_BEST, b]
    if b == best_label:
        return truth[AFTER_BEST, a]
    return truth[RATIO, a] * truth[EXPONENTIAL, b] + truth[RATIO, b] * truth[EXPONENTIAL, a]


@kernel(error_model="numpy")
def _third_after_best(depth, truth, best_label, top, levels, sums, removed, expected):
    """Pairs with the best-scored document: level 1, and level 2 for the two best; returns their log part."""
    best, second = top[0], top[1]
    loss = everywhere = 0.0
    for b in range(len(expected)):
        removed[b] = 0.0
        if b != best and b != second:
            weight = _pair_weight(truth, best_label, best, b)
            remaining = sums[1] - levels[1, b]
            removed[b] = weight / remaining
            everywhere += removed[b]
            loss += weight * (np.log(remaining) + depth[1])
    weight = _pair_weight(truth, best_label, best, second)
    share = weight / sums[2]
    for i in range(len(expected)):
        expected[i] += levels[1, i] * (everywhere - removed[i]) + share * levels[2, i]
    return loss + weight * (np.log(sums[2]) + depth[2])


@kernel(error_model="numpy")
def _pairs_of_best_label(truth, best_label, best, levels, sums, removed):
    """Level 0's pairs with y1, whose weights do not factorise: adds to `removed`, returns their log part."""
    loss = 0.0
    for b in range(len(removed)):
        if b != best and b != best_label:
            weight = truth[AFTER_BEST, b]
            remaining = (sums[0] - levels[0, best_label]) - levels[0, b]
            removed[b] += weight / remaining
            removed[best_label] += weight / remaining
            loss += weight * np.log(remaining)
    return loss


@kernel(error_model="numpy")
def _without_best(truth, top, levels, sums, lists):
    """lists[:3] = e, r, E of the documents that count in a pair; returns how many.

    The best-scored document's pairs are another level's. A document whose E is negligible has no pair above that
    probability: where every document has a label of its own, that is all but the best hundred.
    lists[3, 0] = S and lists[4] = the documents' numbers, in the lists' own type.
    """
    place = 0
    for i in range(levels.shape[1]):
        if i != top[0] and truth[EXPONENTIAL, i] > NEGLIGIBLE:
            lists[0, place], lists[1, place], lists[2, place] = levels[0, i], truth[RATIO, i], truth[EXPONENTIAL, i]
            lists[4, place] = i
            place += 1
    lists[3, 0] = sums[0]
    return place


@kernel(error_model="numpy")
def _third_without_best(truth, best_label, top, levels, sums, lists, count, removed, expected):
    """Pairs without the best-scored document: level 0, from the row sums at removed[:count]; returns y1's log part."""
    n, best = len(expected), top[0]
    place = count - 1
    for i in range(n - 1, -1, -1):
        if place >= 0 and lists[4, place] == i:
            removed[i] = removed[place]
            place -= 1
        else:
            removed[i] = 0.0
    loss = 0.0
    if best_label != best:
        loss = _pairs_of_best_label(truth, best_label, best, levels, sums, removed)
    everywhere = 0.0
    for i in range(n):
        everywhere += 0.5 * removed[i]
    for i in range(n):
        expected[i] += levels[0, i] * (everywhere - removed[i])
    return loss


@kernel(error_model="numpy")
def _two_places(k, scores, truth, scratch, top, sums, depth, expected):
    """The first two places' part of `expected`, and the levels for more; returns its log part.

    expected[i] = Σ_{beginnings} P_y(beginning)·P_s(i comes next). The log part is Σ P_y·log Σ e^{s − max s}.
    """
    n = len(scores)
    levels = scratch[:MOST_EXACT_PLACES, :n]
    score_levels(scores, k, top, levels, sums)
    for p in range(k):
        depth[p] = float(scores[top[p]]) - float(scores[top[0]])
    for i in range(n):
        expected[i] = levels[0, i] / sums[0]
    loss = np.log(sums[0])
    if k >= 2:
        loss += _second_place(depth, truth, top, levels, sums, scratch[MOST_EXACT_PLACES, :n], expected)
    return loss


@kernel(error_model="numpy")
def _against_truth(scores, truth, gradient):
    """gradient (so far `expected`) −= m; returns −Σ m·(s − max s)."""
    loss = 0.0
    highest = float(scores[0])
    for i in range(1, len(scores)):
        highest = max(highest, float(scores[i]))
    for i in range(len(scores)):
        gradient[i] -= truth[MEMBERSHIP, i]
        loss -= truth[MEMBERSHIP, i] * (float(scores[i]) - highest)
    return loss


@kernel(error_model="numpy")
def top_two_loss(k, scores, truth, scratch, gradient):
    """The exact Top-1 or Top-2 loss of a list of at least two; its gradient by the scores goes to `gradient`.

    scores : float32 (n_docs,); truth : float64 (5, n_docs); gradient : float64 (n_docs,), written; scratch : float64
    (4, ≥ n_docs)
    """
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    places = places_that_count(k, len(scores))
    loss = _two_places(places, scores, truth, scratch, top, sums, depth, gradient)
    return loss + _against_truth(scores, truth, gradient)


@kernel(error_model="numpy")
def top_three_loss(scores, truth, scratch, lists, parts, gradient, parallel):
    """The exact Top-3 loss of a list of at least two; its gradient by the scores goes to `gradient`.

    lists : float32 (≥ 5, ≥ n_docs); parts : float32 (2, PARTS, ≥ n_docs), both scratch. parallel : whether the O(n²)
    part may use all threads; the result is the same.
    """
    n = len(scores)
    places = places_that_count(3, n)
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    loss = _two_places(places, scores, truth, scratch, top, sums, depth, gradient)
    if places == 3:
        levels, removed = scratch[:MOST_EXACT_PLACES, :n], scratch[MOST_EXACT_PLACES, :n]
        best_label = np.argmax(truth[FIRST])
        loss += _third_after_best(depth, truth, best_label, top, levels, sums, removed, gradient)
        count = _without_best(truth, top, levels, sums, lists)
        e, r, big = lists[0, :count], lists[1, :count], lists[2, :count]
        if parallel:
            loss += pair_sums_parallel(lists[3, 0], e, r, big, parts[0], parts[1], removed)
        else:
            loss += pair_sums(lists[3, 0], e, r, big, parts[0], parts[1], removed)
        loss += _third_without_best(truth, best_label, top, levels, sums, lists, count, removed, gradient)
    return loss + _against_truth(scores, truth, gradient)


@kernel(error_model="numpy")
def _list_truth(k, labels, truth):
    """One list's ground truth; see the head of this file. The same expectation, at scores equal to the labels."""
    n = len(labels)
    truth[:] = 0.0
    if n < 2:
        return
    scratch, lists = np.empty((4, n)), np.empty((5, n))
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    levels, removed = scratch[:MOST_EXACT_PLACES, :n], scratch[MOST_EXACT_PLACES, :n]
    score_levels(labels, 2, top, levels, sums)
    for i in range(n):
        truth[FIRST, i] = levels[0, i] / sums[0]
    for i in range(n):
        if i != top[0]:
            truth[RATIO, i] = truth[FIRST, i] / (sums[0] - levels[0, i])
            truth[EXPONENTIAL, i] = levels[0, i]
            truth[AFTER_BEST, i] = truth[FIRST, top[0]] * levels[1, i] / sums[1] + truth[RATIO, i]
    places = places_that_count(k, n)
    expected = truth[MEMBERSHIP]
    _two_places(places, labels, truth, scratch, top, sums, depth, expected)
    if places == 3:
        _third_after_best(depth, truth, top[0], top, levels, sums, removed, expected)
        count = _without_best(truth, top, levels, sums, lists)
        row_sums(lists[3, 0], lists[0, :count], lists[1, :count], lists[2, :count], removed)
        _third_without_best(truth, top[0], top, levels, sums, lists, count, removed, expected)


@kernel(error_model="numpy", parallel=True)
def top_k_truth(k, labels, query_ptr):
    """The ground truth of every list: float64 (5, n_docs). Computed once; it depends on the labels alone."""
    truth = np.empty((TRUTH_ROWS, len(labels)))
    for q in prange(len(query_ptr) - 1):
        _list_truth(k, labels[query_ptr[q] : query_ptr[q + 1]], truth[:, query_ptr[q] : query_ptr[q + 1]])
    return truth
