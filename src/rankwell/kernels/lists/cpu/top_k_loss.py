"""Exact Top-1, Top-2 and Top-3 ListNet without permutations: a list's loss, and the lists' ground truth.

`two_places` and `third_place` describe the truth table and how the sums over permutations collapse.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.lists.cpu.pair_sums import row_sums
from rankwell.kernels.lists.cpu.score_levels import score_levels
from rankwell.kernels.lists.cpu.third_place import pairs_without_best, third_after_best, third_without_best
from rankwell.kernels.lists.cpu.two_places import (
    AFTER_BEST,
    EXPONENTIAL,
    FIRST,
    MEMBERSHIP,
    MOST_EXACT_PLACES,
    RATIO,
    REMOVED,
    SCRATCH_ROWS,
    TRUTH_ROWS,
    compare_with_truth,
    expect_two_places,
    places_that_count,
)
from rankwell.kernels.threads import run_ranges


def top_k_truth(k: int, labels: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The ground truth of every list: float64 (5, n_docs). Computed once; it depends on the labels alone."""
    truth = np.zeros((TRUTH_ROWS, len(labels)))
    most_docs = int(np.diff(query_ptr).max(initial=0))

    def fill(first: int, last: int) -> None:
        scratch = np.empty((SCRATCH_ROWS, most_docs))
        if k == MOST_EXACT_PLACES:
            _three_places_truth(labels, query_ptr, first, last, scratch, np.empty((5, most_docs)), truth)
            return
        _first_place_truth(labels, query_ptr, first, last, scratch, truth)
        if k == 2:
            _two_places_truth(labels, query_ptr, first, last, scratch, truth)

    run_ranges(fill, len(query_ptr) - 1)
    return truth


@kernel(error_model="numpy")
def _first_place_truth(labels, query_ptr, first_query, last_query, scratch, truth):
    top, sums = np.empty(3, np.int64), np.empty(3)
    for query in range(first_query, last_query):
        start, end = query_ptr[query], query_ptr[query + 1]
        if end - start > 1:
            score_levels(labels[start:end], 1, top, scratch, sums)
            for i in range(end - start):
                truth[FIRST, start + i] = truth[MEMBERSHIP, start + i] = scratch[0, i] / sums[0]


@kernel(error_model="numpy")
def _two_places_truth(labels, query_ptr, first_query, last_query, scratch, truth):
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    for query in range(first_query, last_query):
        start, end = query_ptr[query], query_ptr[query + 1]
        if end - start > 2:  # with two documents, the first place determines the second
            first, membership = truth[FIRST, start:end], truth[MEMBERSHIP, start:end]
            expect_two_places(2, labels[start:end], first, scratch, top, sums, depth, membership)


@kernel(error_model="numpy")
def _three_places_truth(labels, query_ptr, first_query, last_query, scratch, lists, truth):
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    for query in range(first_query, last_query):
        start, end = query_ptr[query], query_ptr[query + 1]
        if end - start < 2:
            continue
        values, expected, first = labels[start:end], truth[MEMBERSHIP, start:end], truth[FIRST, start:end]
        ratio, exponential = truth[RATIO, start:end], truth[EXPONENTIAL, start:end]
        after_best = truth[AFTER_BEST, start:end]
        score_levels(values, 2, top, scratch, sums)
        best = top[0]
        for i in range(end - start):
            first[i] = scratch[0, i] / sums[0]
        for i in range(end - start):
            if i != best:
                ratio[i] = first[i] / (sums[0] - scratch[0, i])
                exponential[i] = scratch[0, i]
                after_best[i] = first[best] * scratch[1, i] / sums[1] + ratio[i]
        places = places_that_count(3, end - start)
        expect_two_places(places, values, first, scratch, top, sums, depth, expected)
        if places == 3:
            third_after_best(depth, ratio, exponential, after_best, best, top, scratch, sums, expected)
            count = pairs_without_best(ratio, exponential, best, scratch[0], sums[0], lists)
            row_sums(lists[3, 0], lists[0, :count], lists[1, :count], lists[2, :count], scratch[REMOVED])
            third_without_best(after_best, best, best, scratch, sums[0], lists, count, expected)


@kernel(error_model="numpy", inline="always")
def top_two_loss(k, scores, truth, start, scratch, gradient):
    """The exact Top-1 or Top-2 loss of a list of at least two; its gradient by the scores is written to `gradient`.

    scores : float32 (n_docs,); truth : float64 (5, all documents), the list's from `start` on; gradient : float64
    (n_docs,), written; scratch : float64 (SCRATCH_ROWS, ≥ n_docs)
    """
    n = len(scores)
    top, sums, depth = np.empty(3, np.int64), np.empty(3), np.empty(3)
    first = truth[FIRST, start : start + n]
    loss = expect_two_places(places_that_count(k, n), scores, first, scratch, top, sums, depth, gradient)
    return loss + compare_with_truth(scores, truth[MEMBERSHIP, start : start + n], gradient)


@kernel(error_model="numpy", inline="always")
def top_three_loss(scores, truth, start, scratch, lists, parts, losses, gradient, pair_sums):
    """The exact Top-3 loss of a list of at least two; its gradient by the scores is written to `gradient`.

    lists : float32 (≥ 5, ≥ n_docs); parts : float32 (2, PARTS, ≥ n_docs), losses : float64 (PARTS,), scratch.
    pair_sums : the kernel of that name, or `added_pair_sums` if parts and losses are computed already.
    """
    n = len(scores)
    end = start + n
    top, sums = np.empty(3, np.int64), np.empty(3)
    loss, count = before_pairs(scores, truth, start, scratch, lists, top, sums, gradient)
    if places_that_count(3, n) == 3:
        after_best, best_label = truth[AFTER_BEST, start:end], np.argmax(truth[FIRST, start:end])
        e, r, big = lists[0, :count], lists[1, :count], lists[2, :count]
        loss += pair_sums(lists[3, 0], e, r, big, parts, losses, scratch[REMOVED])
        loss += third_without_best(after_best, best_label, top[0], scratch, sums[0], lists, count, gradient)
    return loss + compare_with_truth(scores, truth[MEMBERSHIP, start:end], gradient)


@inner_kernel(error_model="numpy")
def before_pairs(scores, truth, start, scratch, lists, top, sums, gradient):
    """Everything of the Top-3 loss that comes before the sums over pairs; returns its part of the loss, and how many
    documents count in pairs, whose values are then in `lists`.

    top : int64 (3,), sums : float64 (3,), filled; the rest as in `top_three_loss`
    """
    end, places = start + len(scores), places_that_count(3, len(scores))
    first, depth, count = truth[FIRST, start:end], np.empty(3), 0
    loss = expect_two_places(places, scores, first, scratch, top, sums, depth, gradient)
    if places == 3:
        ratio, exponential = truth[RATIO, start:end], truth[EXPONENTIAL, start:end]
        after_best = truth[AFTER_BEST, start:end]
        loss += third_after_best(depth, ratio, exponential, after_best, np.argmax(first), top, scratch, sums, gradient)
        count = pairs_without_best(ratio, exponential, top[0], scratch[0], sums[0], lists)
    return loss, count
