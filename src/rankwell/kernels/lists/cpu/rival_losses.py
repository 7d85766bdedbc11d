"""RankNet, LambdaRank and ListMLE on the CPU, one list at a time: the loss, and its gradient by the scores.

A list's ground truth is a table `truth`, float64 (4, n_docs), made once from the labels by `rival_truth`:

    LEVEL   the label's place among the list's different labels, 0 for the lowest
    GAIN    (2^y − 1) / ideal DCG, y less the list's lowest label and at most 31
    ORDER   the documents by label, best first, equal labels in their order
    SHARE   1 / number of pairs with different labels (0 without any)

Pairs are visited as rows of the full square, so that a row is one vector loop: document i gains from those below its
label and pays to those above. Sums of a row are float32 in vector lanes (`reassoc`), sums over rows float64.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.elementary_functions import exp32, log32
from rankwell.kernels.cpu.random_numbers import random_unit

LEVEL, GAIN, ORDER, SHARE = range(4)
TRUTH_ROWS = 4
LIST_ROWS = 6
MOST_GAIN_BITS = 31.0
_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@kernel(error_model="numpy")
def _differences(scores, i, difference, exponentials):
    for j in range(len(scores)):
        difference[j] = scores[i] - scores[j]
        exponentials[j] = exp32(-abs(difference[j]))


@kernel(error_model="numpy", fastmath={"reassoc", "contract"})
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


@kernel(error_model="numpy")
def ranknet_loss(scores, truth, lists, gradient):
    """The mean of log(1 + e^(s_j − s_i)) over pairs y_i > y_j. lists : float32 (6, ≥ n_docs), scratch."""
    n = len(scores)
    difference, exponentials, levels, weights = lists[0, :n], lists[1, :n], lists[2, :n], lists[3, :n]
    total = 0.0
    for i in range(n):
        levels[i] = truth[LEVEL, i]
        weights[i] = truth[SHARE, i]
    for i in range(n):
        _differences(scores, i, difference, exponentials)
        gradient[i], loss = _row(levels[i], levels, weights, difference, exponentials)
        total += loss
    return total


@kernel(error_model="numpy")
def lambdarank_loss(scores, truth, lists, gradient):
    """RankNet's pairs times |ΔNDCG| of exchanging the two documents; the ranks of this moment are taken as given."""
    n = len(scores)
    difference, exponentials, levels, weights = lists[0, :n], lists[1, :n], lists[2, :n], lists[3, :n]
    gains, discounts = lists[4, :n], lists[5, :n]
    order = np.argsort(-scores, kind="mergesort")
    for rank in range(n):
        discounts[order[rank]] = 1.0 / math.log2(rank + 2.0)
    for i in range(n):
        levels[i] = truth[LEVEL, i]
        gains[i] = truth[GAIN, i]
    total = 0.0
    for i in range(n):
        for j in range(n):
            weights[j] = abs((gains[i] - gains[j]) * (discounts[i] - discounts[j]))
        _differences(scores, i, difference, exponentials)
        gradient[i], loss = _row(levels[i], levels, weights, difference, exponentials)
        total += loss
    return total


@kernel(error_model="numpy")
def _add_logarithms(a, b):
    """log(e^a + e^b)"""
    higher = max(a, b)
    return higher + math.log1p(math.exp(-abs(a - b))) if higher > -np.inf else -np.inf


@kernel(error_model="numpy")
def _order_by_label(truth, seed, order):
    """The documents by label, equal labels shuffled by `seed`; 0 leaves them in their order."""
    n = len(order)
    for place in range(n):
        order[place] = truth[ORDER, place]
    if seed == np.uint64(0):
        return
    start = 0
    for place in range(1, n + 1):
        if place == n or truth[LEVEL, int(order[place])] != truth[LEVEL, int(order[start])]:
            for last in range(place - 1, start, -1):
                other = start + int(random_unit(seed, 1, last) * (last - start + 1))
                order[last], order[other] = order[other], order[last]
            start = place


@kernel(error_model="numpy")
def listmle_loss(scores, truth, seed, scratch, gradient):
    """−log P(s, π_y)/n in O(n): remaining sums from the last place up, their inverse sums from the first place down."""
    n = len(scores)
    log_sums, order = scratch[0, :n], scratch[1, :n]
    _order_by_label(truth, seed, order)
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


@kernel(error_model="numpy")
def _list_truth(labels, truth):
    n = len(labels)
    order = np.argsort(-labels, kind="mergesort")
    lowest = labels[order[n - 1]]
    level, pairs, same, ideal = 0, 0, 0, 0.0
    for place in range(n - 1, -1, -1):
        document = order[place]
        if place < n - 1 and labels[document] > labels[order[place + 1]]:
            level += 1
            same = 0
        same += 1
        # Documents already passed are at this label or below it; those below make a pair with this one.
        pairs += (n - place) - same
        truth[LEVEL, document] = level
        truth[GAIN, document] = 2.0 ** min(labels[document] - lowest, MOST_GAIN_BITS) - 1.0
        truth[ORDER, place] = document
        ideal += truth[GAIN, document] / math.log2(place + 2.0)
    for i in range(n):
        truth[GAIN, i] /= ideal if ideal > 0.0 else 1.0
        truth[SHARE, i] = 1.0 / pairs if pairs > 0 else 0.0


@kernel(error_model="numpy", parallel=True)
def rival_truth(labels, query_ptr):
    """The ground truth of every list: float64 (4, n_docs)."""
    truth = np.empty((TRUTH_ROWS, len(labels)))
    for q in prange(len(query_ptr) - 1):
        start, end = query_ptr[q], query_ptr[q + 1]
        if end > start:
            _list_truth(labels[start:end], truth[:, start:end])
    return truth
