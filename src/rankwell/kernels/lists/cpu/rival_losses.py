"""RankNet, LambdaRank, ListMLE and XE-NDCG on the CPU, one list at a time: the loss, and its gradient by the scores.

The ground truth is a table `truth`, float64 (5, n_docs), made once from the labels by `rival_truth`, a list's from its
place `start` on:

    LEVEL   the rank of the label among the list's distinct labels, 0 for the lowest
    GAIN    (2^y − 1) / ideal DCG, y less the list's lowest label and at most 31
    ORDER   the documents by label, best first, equal labels in their order
    SHARE   1 / number of pairs with different labels (0 if there are none)
    POWER   2^y, y less the list's lowest label if that is below 0, and at most 31

Pairs are visited as rows of the full square, so that a row is one vector loop: document i has a negative gradient from
those with a lower label and a positive one from those with a higher label. Sums of a row are float32 in vector lanes
(`reassoc`), sums over rows float64.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.elementary_functions import exp32, log32
from rankwell.kernels.cpu.random_numbers import random_unit
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.threads import run_ranges
from rankwell.kernels.trees.cpu.place_weights import COLUMN_WEIGHT, ROW_WEIGHT, weigh_places
from rankwell.kernels.trees.cpu.place_weights import GAIN as PLACE_GAIN
from rankwell.kernels.trees.losses import LAMBDALOSS

LEVEL, GAIN, ORDER, SHARE, POWER = range(5)
TRUTH_ROWS = 5
LIST_ROWS = 6
MOST_GAIN_BITS = 31.0
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@kernel(error_model="numpy", inline="always")
def _differences(scores, i, difference, exponentials):
    for j in range(len(scores)):
        difference[j] = scores[i] - scores[j]
        exponentials[j] = exp32(-abs(difference[j]))


@inner_kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def _row(own_level, levels, weights, difference, exponentials):
    """One document i against all: ∂L/∂s_i, and the loss of the pairs in which it is the better one.

    difference[j] = s_i − s_j, exponentials[j] = e^−|difference[j]|, weights[j] is the pair's weight.
    """
    slope = loss = _ZERO
    for j in range(len(levels)):
        large = _ONE / (_ONE + exponentials[j])
        small = exponentials[j] * large
        positive = difference[j] > _ZERO
        lower = small if positive else large  # σ(s_j − s_i)
        upper = large if positive else small  # σ(s_i − s_j)
        softplus = max(-difference[j], _ZERO) + log32(_ONE + exponentials[j])
        better = weights[j] if own_level > levels[j] else _ZERO
        worse = weights[j] if own_level < levels[j] else _ZERO
        slope += worse * upper - better * lower
        loss += better * softplus
    return slope, loss


@kernel(error_model="numpy", inline="always")
def ranknet_loss(scores, truth, start, lists, gradient):
    """The mean of log(1 + e^(s_j − s_i)) over pairs y_i > y_j. lists : float32 (6, ≥ n_docs), scratch."""
    n = len(scores)
    difference, exponentials, levels, weights = lists[0, :n], lists[1, :n], lists[2, :n], lists[3, :n]
    total = 0.0
    for i in range(n):
        levels[i] = truth[LEVEL, start + i]
        weights[i] = truth[SHARE, start + i]
    for i in range(n):
        _differences(scores, i, difference, exponentials)
        gradient[i], loss = _row(levels[i], levels, weights, difference, exponentials)
        total += loss
    return total


@inner_kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def _exchange_weights(i, gains, places, of_places, distances, weights):
    """What the pair of document i and each other one weighs (`kernels/trees/losses`); returns the sum.

    places : float32 (n_docs,); of_places : float32 (5, n_docs), X and Y by document; distances : float32, D by distance
    """
    total = _ZERO
    for j in range(len(weights)):
        is_first = places[i] < places[j]
        before = of_places[ROW_WEIGHT, i] if is_first else of_places[ROW_WEIGHT, j]
        after = of_places[COLUMN_WEIGHT, j] if is_first else of_places[COLUMN_WEIGHT, i]
        apart = np.int32(abs(places[i] - places[j]))
        weights[j] = abs(gains[i] - gains[j]) * (max(before - after, _ZERO) + distances[apart])
        total += weights[j]
    return total


@kernel(error_model="numpy", inline="always")
def lambdarank_loss(weighting, scores, truth, start, scratch, lists, table, discounts, distances, gradient):
    """The mean of RankNet's pairs, weighted by |ΔNDCG| of exchanging the two documents at the current ranks.

    weighting : another weight instead, of `WEIGHTINGS`
    table : float32 (2, 5, most_docs), scratch; discounts, distances : float32 (most_docs,), by place and by distance
    """
    n = len(scores)
    difference, exponentials, levels, weights = lists[0, :n], lists[1, :n], lists[2, :n], lists[3, :n]
    gains, places = lists[4, :n], lists[5, :n]
    by_place, by_document = table[0], table[1]
    keys, order = scratch[0, :n], np.empty(n, np.int32)
    is_graded = weighting <= LAMBDALOSS
    for i in range(n):
        keys[i] = -float(scores[i])
        gains[i] = truth[GAIN, start + i] if is_graded else np.float32(truth[POWER, start + i] > 1.0)
        levels[i] = truth[LEVEL, start + i] if is_graded else gains[i]
    sort_keys(keys, order, np.empty(n, np.int32))
    for rank in range(n):
        places[order[rank]] = rank
        by_place[PLACE_GAIN, rank] = gains[order[rank]]
    weigh_places(weighting, n, discounts, by_place)
    for rank in range(n):
        by_document[ROW_WEIGHT, order[rank]] = by_place[ROW_WEIGHT, rank]
        by_document[COLUMN_WEIGHT, order[rank]] = by_place[COLUMN_WEIGHT, rank]
    total, all_weights = 0.0, 0.0
    for i in range(n):
        all_weights += _exchange_weights(i, gains, places, by_document, distances, weights)
        _differences(scores, i, difference, exponentials)
        gradient[i], loss = _row(levels[i], levels, weights, difference, exponentials)
        total += loss
    # Every pair was counted from both its sides, and equal labels have no weight.
    scale = 2.0 / all_weights if all_weights > 0.0 else 0.0
    for i in range(n):
        gradient[i] *= scale
    return total * scale


@kernel(error_model="numpy", inline="always")
def xendcg_loss(scores, truth, start, seed, scratch, gradient):
    """The cross entropy of the softmax of scores with the shares of 2^y − u, u in (0, 1) drawn by `seed`.

    Equal labels say nothing: their list counts as learnt.
    """
    n = len(scores)
    if truth[SHARE, start] == 0.0:
        for i in range(n):
            gradient[i] = 0.0
        return 0.0
    targets = scratch[0, :n]
    best, all_targets, total = float(scores[0]), 0.0, 0.0
    for i in range(n):
        best = max(best, float(scores[i]))
        targets[i] = truth[POWER, start + i] - random_unit(seed, 1, i)
        all_targets += targets[i]
    for i in range(n):
        gradient[i] = math.exp(float(scores[i]) - best)
        total += gradient[i]
    log_total, loss = math.log(total), 0.0
    for i in range(n):
        share = targets[i] / all_targets
        loss += share * (log_total - (float(scores[i]) - best))
        gradient[i] = gradient[i] / total - share
    return loss


@inner_kernel(error_model="numpy")
def _add_logarithms(a, b):
    """log(e^a + e^b)"""
    higher = max(a, b)
    return higher + math.log1p(math.exp(-abs(a - b))) if higher > -np.inf else -np.inf


@kernel(error_model="numpy", inline="always")
def _order_by_label(documents, levels, seed, order):
    """The documents by label, equal labels shuffled by `seed`; 0 leaves them in their order."""
    n = len(order)
    for place in range(n):
        order[place] = documents[place]
    if seed == np.uint64(0):
        return
    start = 0
    for place in range(1, n + 1):
        if place == n or levels[int(order[place])] != levels[int(order[start])]:
            for last in range(place - 1, start, -1):
                other = start + int(random_unit(seed, 1, last) * (last - start + 1))
                order[last], order[other] = order[other], order[last]
            start = place


@kernel(error_model="numpy", inline="always")
def listmle_loss(scores, truth, start, seed, scratch, gradient):
    """−log P(s, π_y)/n in O(n): remaining sums from the last place up, their inverse sums from the first place down."""
    n = len(scores)
    log_sums, order = scratch[0, :n], scratch[1, :n]
    _order_by_label(truth[ORDER, start : start + n], truth[LEVEL, start : start + n], seed, order)
    below = -np.inf
    loss = 0.0
    for place in range(n - 1, -1, -1):
        score = float(scores[int(order[place])])
        below = _add_logarithms(below, score)
        log_sums[place] = below
        loss += below - score
    inverse = -np.inf
    for place in range(n):
        document = int(order[place])
        inverse = _add_logarithms(inverse, -log_sums[place])
        gradient[document] = (math.exp(float(scores[document]) + inverse) - 1.0) / n
    return loss / n


@kernel(error_model="numpy", inline="always")
def _list_truth(labels, order, levels, gains, documents, shares, powers):
    """One list's rows of the table, from its labels and the documents in `order`, best label first."""
    n = len(labels)
    lowest = labels[order[n - 1]]
    level, pairs, same, ideal = 0, 0, 0, 0.0
    for place in range(n - 1, -1, -1):
        document = order[place]
        if place < n - 1 and labels[document] > labels[order[place + 1]]:
            level += 1
            same = 0
        same += 1
        # Documents already visited have this label or a lower one; those with a lower one form a pair with this one.
        pairs += (n - place) - same
        levels[document] = level
        gains[document] = 2.0 ** min(labels[document] - lowest, MOST_GAIN_BITS) - 1.0
        documents[place] = document
        ideal += gains[document] / math.log2(place + 2.0)
    for i in range(n):
        powers[i] = 2.0 ** min(labels[i] - min(lowest, 0.0), MOST_GAIN_BITS)
        gains[i] /= ideal if ideal > 0.0 else 1.0
        shares[i] = 1.0 / pairs if pairs > 0 else 0.0


@kernel(error_model="numpy")
def _lists_truth(labels, query_ptr, first, last, keys, order, merged, truth):
    for query in range(first, last):
        start, end = query_ptr[query], query_ptr[query + 1]
        if end > start:
            for i in range(end - start):
                keys[i] = -labels[start + i]
            sort_keys(keys[: end - start], order, merged)
            _list_truth(
                labels[start:end], order, truth[LEVEL, start:end], truth[GAIN, start:end], truth[ORDER, start:end],
                truth[SHARE, start:end], truth[POWER, start:end],
            )  # fmt: skip


def rival_truth(labels: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """The ground truth of every list: float64 (5, n_docs)."""
    truth = np.empty((TRUTH_ROWS, len(labels)))
    most_docs = int(np.diff(query_ptr).max(initial=0))

    def fill(first: int, last: int) -> None:
        order, merged = np.empty((2, most_docs), dtype=np.int32)
        _lists_truth(labels, query_ptr, first, last, np.empty(most_docs), order, merged, truth)

    run_ranges(fill, len(query_ptr) - 1)
    return truth
