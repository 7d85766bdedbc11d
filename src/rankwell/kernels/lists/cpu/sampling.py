"""Sampled Top-k ListNet for any k: the loss over some of the permutations' beginnings instead of all.

Both samplers minimise −Σ_π w_π·log P(s, π) / Σ_π w_π over sampled k-tuples π of one list.

`stochastic` (Algorithm 2; Luo et al. 2015) draws tuples from a distribution q: *uniform* over documents, *fixed* (P_y
of the labels) or *adaptive* (P_s of the current scores), and weighs each by w_π = P_y(π)/q(π), so that all three
estimate the exact loss. `position-aware` (Algorithm 6) draws f_j·n documents for place j, by P_y without replacement,
and takes every tuple of different documents from these sets with w_π = P_y(π). Its last place costs no logarithms: the
remaining sum before it is shared by all its documents.

Weights are relative to the largest one so far, so that labels up to 2,000 neither overflow nor vanish.
Scratch is float64: `scratch[:k]` levels of the scores, `[k:2k]` their removed parts, `[2k:3k]` levels of the labels,
`[3k]` the chosen weights, `[3k + 1]` sampling keys.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel
from rankwell.kernels.cpu.random_numbers import random_bits, random_unit
from rankwell.kernels.lists.cpu.score_levels import score_levels
from rankwell.kernels.lists.cpu.two_places import places_that_count

UNIFORM, FIXED, ADAPTIVE = range(3)


def scratch_rows(k: int) -> int:
    return 3 * k + 2


@inner_kernel(error_model="numpy")
def remaining_sum(top, levels, sums, prefix, length):
    """The level that removing prefix[:length] leaves, and the sum that remains at that level."""
    level = 0
    while level < length:
        taken = False
        for j in range(length):
            taken |= prefix[j] == top[level]
        if not taken:
            break
        level += 1
    total = sums[level]
    for j in range(length):
        total -= levels[level, prefix[j]]  # 0 for the documents better than this level's
    return level, total


@inner_kernel(error_model="numpy")
def prefix_log_probability(values, top, levels, sums, prefix, length):
    """log P(values, π) for permutations that begin with prefix[:length]."""
    total = 0.0
    for j in range(length):
        level, remaining = remaining_sum(top, levels, sums, prefix, j)
        total += float(values[prefix[j]]) - float(values[top[level]]) - math.log(remaining)
    return total


@inner_kernel(error_model="numpy")
def _weight_on_scale(log_weight, state, everywhere, removed, chosen):
    """e^(log_weight − scale) after raising the scale to it if necessary; state = [scale, total weight, loss]."""
    if log_weight > state[0]:
        factor = math.exp(state[0] - log_weight)
        state[0] = log_weight
        state[1] *= factor
        state[2] *= factor
        everywhere *= factor
        removed *= factor
        chosen *= factor
    return math.exp(log_weight - state[0])


@inner_kernel(error_model="numpy")
def _add_stages(scores, top, levels, sums, prefix, stages, weight, state, everywhere, removed):
    """Add weight·log(remaining sum) and its gradient for the first `stages` places of a tuple."""
    for j in range(stages):
        level, remaining = remaining_sum(top, levels, sums, prefix, j)
        share = weight / remaining
        everywhere[level] += share
        for earlier in range(j):
            removed[level, prefix[earlier]] += share
        state[2] += weight * (math.log(remaining) + float(scores[top[level]]))


@inner_kernel(error_model="numpy")
def _choose(scores, document, weight, state, chosen):
    chosen[document] += weight
    state[2] -= weight * float(scores[document])


@inner_kernel(error_model="numpy")
def _finish(levels, state, everywhere, removed, chosen, gradient):
    """The gradient over all tuples that were added; returns the loss."""
    if not state[1] > 0.0:
        gradient[:] = 0.0
        return 0.0
    for i in range(len(gradient)):
        total = -chosen[i]
        for level in range(len(everywhere)):
            total += levels[level, i] * (everywhere[level] - removed[level, i])
        gradient[i] = total / state[1]
    return state[2] / state[1]


@inner_kernel(error_model="numpy")
def draw_documents(values, spread, count, seed, draw, keys, drawn):
    """drawn[:count] = documents without replacement, P ∝ e^(spread · value): the largest of value + Gumbel noise."""
    for i in range(len(values)):
        keys[i] = spread * float(values[i]) - math.log(-math.log(random_unit(seed, draw, i)))
    if count * 8 > len(values):
        order = np.argsort(-keys[: len(values)])
        drawn[:count] = order[:count]
        return
    for place in range(count):
        best = np.argmax(keys[: len(values)])
        drawn[place] = best
        keys[best] = -np.inf


@inner_kernel(error_model="numpy")
def _draw_uniform(n, count, seed, draw, drawn):
    """drawn[:count] = different documents, all tuples equally likely: repeated documents are drawn again."""
    attempt = 0
    for place in range(count):
        found = True
        while found:
            drawn[place] = np.int64(random_bits(seed, draw, attempt) % np.uint64(n))
            attempt += 1
            found = False
            for earlier in range(place):
                found |= drawn[earlier] == drawn[place]


@inner_kernel(error_model="numpy")
def stochastic_loss(k, n_samples, distribution, scores, labels, seed, scratch, gradient):
    """Algorithm 2 on one list of at least two documents: the loss and, in `gradient`, its gradient."""
    n = len(scores)
    k = places_that_count(k, n)
    levels, removed, label_levels = scratch[:k, :n], scratch[k : 2 * k, :n], scratch[2 * k : 3 * k, :n]
    chosen, keys = scratch[3 * k, :n], scratch[3 * k + 1]
    top, label_top, prefix = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    sums, label_sums, everywhere, state = np.empty(k), np.empty(k), np.zeros(k), np.array([-np.inf, 0.0, 0.0])
    score_levels(scores, k, top, levels, sums)
    score_levels(labels, k, label_top, label_levels, label_sums)
    removed[:] = 0.0
    chosen[:] = 0.0
    for draw in range(n_samples):
        log_weight = 0.0
        if distribution == UNIFORM:
            _draw_uniform(n, k, seed, draw, prefix)
        elif distribution == FIXED:
            draw_documents(labels, 1.0, k, seed, draw, keys, prefix)
        else:
            draw_documents(scores, 1.0, k, seed, draw, keys, prefix)
            log_weight = -prefix_log_probability(scores, top, levels, sums, prefix, k)
        if distribution != FIXED:
            log_weight += prefix_log_probability(labels, label_top, label_levels, label_sums, prefix, k)
        weight = _weight_on_scale(log_weight, state, everywhere, removed, chosen)
        state[1] += weight
        _add_stages(scores, top, levels, sums, prefix, k, weight, state, everywhere, removed)
        for j in range(k):
            _choose(scores, prefix[j], weight, state, chosen)
    return _finish(levels, state, everywhere, removed, chosen, gradient)


@inner_kernel(error_model="numpy")
def _next_beginning(places, sizes, length):
    """Advance a tuple of set indices by one, the last place fastest; False at the end."""
    for j in range(length - 1, -1, -1):
        places[j] += 1
        if places[j] < sizes[j]:
            return True
        places[j] = 0
    return False


@inner_kernel(error_model="numpy")
def _fill_beginning(candidates, places, length, prefix):
    """prefix[:length] = the documents at `places`; False if one occurs twice."""
    for j in range(length):
        prefix[j] = candidates[j, places[j]]
        for earlier in range(j):
            if prefix[earlier] == prefix[j]:
                return False
    return True


@inner_kernel(error_model="numpy")
def _last_place(labels, candidates, size, prefix, length, weights):
    """weights[c] = e^(y − max) of the last place's candidates outside `prefix`; returns their max and their sum."""
    highest, total = -np.inf, 0.0
    for c in range(size):
        weights[c] = 1.0
        for j in range(length):
            if prefix[j] == candidates[c]:
                weights[c] = 0.0
        if weights[c] > 0.0:
            highest = max(highest, float(labels[candidates[c]]))
    for c in range(size):
        if weights[c] > 0.0:
            weights[c] = math.exp(float(labels[candidates[c]]) - highest)
            total += weights[c]
    return highest, total


@inner_kernel(error_model="numpy")
def position_aware_loss(factors, scores, labels, seed, scratch, gradient):
    """Algorithm 6 on one list of at least two documents: the loss and, in `gradient`, its gradient. factors : (k,)"""
    n = len(scores)
    k = places_that_count(len(factors), n)
    levels, removed, label_levels = scratch[:k, :n], scratch[k : 2 * k, :n], scratch[2 * k : 3 * k, :n]
    chosen, keys = scratch[3 * k, :n], scratch[3 * k + 1]
    top, label_top, prefix = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    sums, label_sums, everywhere, state = np.empty(k), np.empty(k), np.zeros(k), np.array([-np.inf, 0.0, 0.0])
    score_levels(scores, k, top, levels, sums)
    score_levels(labels, k, label_top, label_levels, label_sums)
    removed[:] = 0.0
    chosen[:] = 0.0
    sizes, places, candidates = np.empty(k, np.int64), np.zeros(k, np.int64), np.empty((k, n), np.int64)
    for j in range(k):
        sizes[j] = min(max(math.ceil(factors[j] * n), j + 1), n)
        draw_documents(labels, 1.0, sizes[j], seed, j, keys, candidates[j])
    last, weights = candidates[k - 1], np.empty(n)
    more = True
    while more:
        if _fill_beginning(candidates, places, k - 1, prefix):
            highest, total = _last_place(labels, last, sizes[k - 1], prefix, k - 1, weights)
            if total > 0.0:
                level, remaining = remaining_sum(label_top, label_levels, label_sums, prefix, k - 1)
                log_weight = prefix_log_probability(labels, label_top, label_levels, label_sums, prefix, k - 1)
                log_weight += highest - float(labels[label_top[level]]) - math.log(remaining)
                scale = _weight_on_scale(log_weight, state, everywhere, removed, chosen)
                state[1] += scale * total
                _add_stages(scores, top, levels, sums, prefix, k, scale * total, state, everywhere, removed)
                for j in range(k - 1):
                    _choose(scores, prefix[j], scale * total, state, chosen)
                for c in range(sizes[k - 1]):
                    if weights[c] > 0.0:
                        _choose(scores, last[c], scale * weights[c], state, chosen)
        more = _next_beginning(places, sizes, k - 1)
    return _finish(levels, state, everywhere, removed, chosen, gradient)
