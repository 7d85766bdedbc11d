"""The best cut of a leaf by a categorical feature: codes in the order of their gradients (`rules`)."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.trees import rules
from rankwell.kernels.trees.contract import BIN_SET_WORDS
from rankwell.kernels.trees.cpu.workspace import (
    FOUND_CODE,
    FOUND_FEATURE,
    FOUND_LEFT,
    FOUND_MISSING_LEFT,
    FOUND_SET,
    RUNNING,
)

_LOWER_HALF = np.int64(rules.LOWER_HALF)
_sides_objective = inlined_kernel(rules.sides_objective)
_bounded_step = inlined_kernel(rules.bounded_step)
_bounded_objective = inlined_kernel(rules.bounded_objective)


@inlined_kernel
def category_l2(hessian, n_docs, n_codes, limits):
    """l2 of the sides of a cut by categories, and of their values."""
    return limits.l2 if n_codes <= rules.FEW_CODES else limits.l2 + limits.category_l2 * (hessian / n_docs)


@inlined_kernel
def _order_codes(values, first, n_codes, smoothing, sums):
    """Write the codes that are usual enough, ordered by their gradients, to sums[RUNNING:]; returns their number."""
    n_usual = 0
    for code in range(n_codes):
        packed = values[first + code]
        hessian = np.float64(packed & _LOWER_HALF)
        if hessian <= 0.0 or hessian < smoothing:
            continue
        key = np.float64(packed >> 32) / (hessian + smoothing)
        place = n_usual
        while place > 0:
            before = values[first + sums[RUNNING + place - 1]]
            if np.float64(before >> 32) / (np.float64(before & _LOWER_HALF) + smoothing) <= key:
                break
            sums[RUNNING + place] = sums[RUNNING + place - 1]
            place -= 1
        sums[RUNNING + place] = code
        n_usual += 1
    return n_usual


@inlined_kernel
def _gain(left, leaf, l2, limits):
    """The gain of a cut with the packed sums `left` on its left side; 0 if it is not allowed."""
    g1, h1 = np.float64(left >> 32), np.float64(left & _LOWER_HALF)
    g2, h2 = leaf.gradient - g1, leaf.hessian - h1
    if h1 < leaf.smallest or h2 < leaf.smallest:
        return 0.0
    if limits.is_bounded == 0:
        return _sides_objective(g1, h1, g2, h2, limits.l1, l2) - leaf.objective
    step1 = _bounded_step(g1, h1, limits.l1, l2, leaf.low, leaf.high)
    step2 = _bounded_step(g2, h2, limits.l1, l2, leaf.low, leaf.high)
    objective1 = _bounded_objective(g1, h1, limits.l1, l2, step1)
    return (objective1 + _bounded_objective(g2, h2, limits.l1, l2, step2)) - leaf.objective


@inner_kernel
def search_categories(values, first, n_codes, has_missing, leaf, limits, to_beat, beaten_feature, feature, sums, found):
    """The best cut by sets of the first `n_codes` codes, whose packed sums are values[first:].

    It must gain more than `to_beat`; as much if `feature` comes before the feature that gains that.
    found : int64 (9,), written. Returns the gain, −1 if there is no such cut.
    """
    alone = n_codes <= rules.FEW_CODES
    n_usual, most, n_orders = n_codes, 1, n_codes
    if not alone:
        n_usual = _order_codes(values, first, n_codes, limits.category_smoothing * (leaf.hessian / leaf.n_docs), sums)
        most, n_orders = min((n_usual + 1) // 2, limits.max_category_set), 2
    l2 = category_l2(leaf.hessian, leaf.n_docs, n_codes, limits)
    best, best_order, best_size, best_left = to_beat, -1, 0, np.int64(0)
    for order in range(n_orders):
        left = np.int64(0)
        for size in range(1, most + 1):
            code = order if alone else sums[RUNNING + (size - 1 if order == 0 else n_usual - size)]
            left += values[first + code]
            gain = _gain(left, leaf, l2, limits)
            is_first = best_order < 0 and beaten_feature > feature
            if gain > best or (gain == best and is_first):
                best, best_order, best_size, best_left = gain, order, size, left
    if best_order < 0:
        return -1.0
    found[FOUND_FEATURE], found[FOUND_CODE], found[FOUND_LEFT] = feature, -1, best_left
    for word in range(BIN_SET_WORDS):
        found[FOUND_SET + word] = 0
    for k in range(best_size):
        code = best_order if alone else sums[RUNNING + (k if best_order == 0 else n_usual - 1 - k)]
        found[FOUND_SET + (code >> 6)] |= np.int64(1) << (code & 63)
    found[FOUND_MISSING_LEFT] = found[FOUND_SET] & 1 if has_missing != 0 else 0
    return best
