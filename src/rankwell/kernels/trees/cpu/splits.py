"""The best cut of a leaf, from its histograms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.random_numbers import random_unit
from rankwell.kernels.trees import rules
from rankwell.kernels.trees.columns import COLUMN_VALUES, DIVISOR, HAS_MISSING, LOWEST, N_CODES
from rankwell.kernels.trees.cpu.category_splits import search_categories
from rankwell.kernels.trees.cpu.histograms import U
from rankwell.kernels.trees.cpu.vector_code import GAIN_LANES, any_reaches, cut_gains
from rankwell.kernels.trees.cpu.workspace import (
    FOUND_CODE,
    FOUND_FEATURE,
    FOUND_LEFT,
    FOUND_MISSING_LEFT,
    MARGINAL,
    RUNNING,
    SHIFTED,
)
from rankwell.kernels.trees.slabs import WORD

LOWER_HALF = np.int64(rules.LOWER_HALF)
# Comes after every feature.
_NO_FEATURE = np.int64(2**62)
objective = inlined_kernel(rules.objective)
bounded_step = inlined_kernel(rules.bounded_step)
bounded_objective = inlined_kernel(rules.bounded_objective)
least_hessian = inlined_kernel(rules.least_hessian)


class Limits(NamedTuple):
    """What a cut must satisfy, in units (`rules`).

    l1, l2, min_gain : float64; min_docs_leaf, min_hessian_leaf : int64 (the latter float64 before it is in units)
    is_bounded : 1 if steps have bounds, since features rise or fall
    category_smoothing, category_l2 : float64, in documents; max_category_set : int64
    """

    l1: float
    l2: float
    min_gain: float
    min_docs_leaf: int
    min_hessian_leaf: float
    is_bounded: int
    category_smoothing: float
    category_l2: float
    max_category_set: int


@inlined_kernel
def read_limits(numbers):
    """The limits that `Workspace.limits` contains, in their order; whole numbers are below 2^53."""
    return Limits(
        numbers[0],
        numbers[1],
        numbers[2],
        np.int64(numbers[3]),
        np.int64(numbers[4]),
        np.int64(numbers[5]),
        numbers[6],
        numbers[7],
        np.int64(numbers[8]),
    )


class LeafNumbers(NamedTuple):
    """A leaf that is searched.

    gradient, hessian : float64, its sums; objective : float64, of its own step; smallest : float64, the least Hessian
    of a side; low, high : float64, the bounds of its step
    n_docs : its documents; share, seed, number : by what features are drawn for it (`sampling`)
    """

    gradient: float
    hessian: float
    objective: float
    smallest: float
    low: float
    high: float
    n_docs: int
    share: float
    seed: int
    number: int


@inlined_kernel
def leaf_numbers(total, n_docs, low, high, share, seed, number, limits):
    """What a search needs to know of a leaf with the packed sums `total`."""
    gradient, hessian = np.float64(total >> 32), np.float64(total & LOWER_HALF)
    own = objective(gradient, hessian, limits.l1, limits.l2)
    if limits.is_bounded != 0:
        step = bounded_step(gradient, hessian, limits.l1, limits.l2, low, high)
        own = bounded_objective(gradient, hessian, limits.l1, limits.l2, step)
    smallest = least_hessian(total & LOWER_HALF, n_docs, limits.min_docs_leaf, limits.min_hessian_leaf)
    return LeafNumbers(gradient, hessian, own, np.float64(smallest), low, high, n_docs, share, seed, number)


@inlined_kernel
def may_cut(feature, leaf, allowed, groups, live):
    """Whether the feature may cut the leaf; live : uint64 (n_words,), of the leaf."""
    if allowed[feature] == 0:
        return False
    if leaf.share < 1.0 and random_unit(np.uint64(leaf.seed), leaf.number, feature) >= leaf.share:
        return False
    if len(live) == 0:
        return True
    common = np.uint64(0)
    for word in range(len(live)):
        common |= live[word] & groups[feature, word]
    return common != 0


@inlined_kernel
def sum_codes(histogram, base, divisor, n_codes, size, sums):
    """The packed sum of each code, from the histogram of the feature's column: an array, and the place of code 0."""
    if size == n_codes:
        return histogram, base
    for code in range(U(n_codes)):
        sums[U(MARGINAL) + code] = 0
    for first in range(base, base + size, divisor * n_codes):
        if divisor == 1:
            for code in range(U(n_codes)):
                sums[U(MARGINAL) + code] += histogram[U(first) + code]
            continue
        for code in range(U(n_codes)):
            part = np.int64(0)
            begin = U(first) + code * U(divisor)
            for value in range(begin, begin + U(divisor)):
                part += histogram[value]
            sums[U(MARGINAL) + code] += part
    return sums, MARGINAL


@inlined_kernel
def running_sums(values, first, n_codes, total, sums):
    """Write the packed sums of the codes up to each to sums[RUNNING:], from those of each; and `total` after the last
    cut, which is that after the last code but one: the right side is empty there."""
    running = np.int64(0)
    for code in range(U(n_codes)):
        running += values[U(first) + code]
        sums[U(RUNNING) + code] = running
    for code in range(n_codes - 1, (n_codes + GAIN_LANES - 2) // GAIN_LANES * GAIN_LANES):
        sums[RUNNING + code] = total


@inner_kernel
def bounded_gains(sums, first, n_cuts, leaf, direction, limits, gains):
    """As `cut_gains`, of cuts whose sides' steps are bounded; always written."""
    best = 0.0
    for code in range(U(n_cuts)):
        left = sums[U(first) + code]
        g1, h1 = np.float64(left >> 32), np.float64(left & LOWER_HALF)
        g2, h2 = leaf.gradient - g1, leaf.hessian - h1
        step1 = bounded_step(g1, h1, limits.l1, limits.l2, leaf.low, leaf.high)
        step2 = bounded_step(g2, h2, limits.l1, limits.l2, leaf.low, leaf.high)
        objective1 = bounded_objective(g1, h1, limits.l1, limits.l2, step1)
        objective2 = bounded_objective(g2, h2, limits.l1, limits.l2, step2)
        gain = (objective1 + objective2) - leaf.objective
        is_allowed = h1 >= leaf.smallest and h2 >= leaf.smallest and (step2 - step1) * direction >= 0.0
        gain = gain if is_allowed and gain > 0.0 else 0.0
        gains[code] = gain
        best = gain if gain > best else best
    return best


@inlined_kernel
def may_gain(values, first, n_codes, missing, total, leaf, limits, best):
    """Whether a cut by a feature might gain as much as `best`: most features end here."""
    if limits.l1 != 0.0 or limits.is_bounded != 0:
        return True
    if 2.0 * leaf.smallest > leaf.hessian:
        return False
    least, needed = np.int64(leaf.smallest), best + leaf.objective
    if any_reaches(values, first, n_codes, np.int64(0), total, limits.l2, least, needed):
        return True
    return missing != 0 and any_reaches(values, first, n_codes, -missing, total, limits.l2, least, needed)


@inlined_kernel
def ordered_gains(sums, first, n_codes, leaf, direction, limits, best, is_reached, gains):
    """The gain of the cut after each code; returns the largest, or 0 if certainly none reaches `best`.

    is_reached : whether one of them nearly certainly does
    """
    if limits.is_bounded != 0:
        return bounded_gains(sums, first, n_codes - 1, leaf, direction, limits, gains)
    n_padded = (n_codes + GAIN_LANES - 2) // GAIN_LANES * GAIN_LANES
    return cut_gains(
        sums,
        first,
        n_padded,
        leaf.gradient,
        leaf.hessian,
        limits.l1,
        limits.l2,
        leaf.smallest,
        leaf.objective,
        best,
        is_reached,
        gains,
    )


@inlined_kernel
def shift_sums(n_codes, missing, sums):
    """Write the sums without those of missing values to sums[SHIFTED:]."""
    for code in range(U((n_codes + GAIN_LANES - 2) // GAIN_LANES * GAIN_LANES)):
        sums[U(SHIFTED) + code] = sums[U(RUNNING) + code] - missing


@inner_kernel
def search_columns(
    histogram, first_column, last_column, total, leaf, limits, columns, allowed, direction, n_categories, groups, live,
    sums, gains, found, child, found_gain, worker, to_beat, beaten
):  # fmt: skip
    """The best cut by a feature of some columns of a word, of a leaf with the packed sums `total`.

    leaf : LeafNumbers; live : uint64 (n_words of groups,), of the leaf
    histogram : int64 (2048,), of the whole word
    found : int64 (2, 9), found_gain : float64 (2,), written at `child` if there is a better cut than `to_beat`
    to_beat, beaten : float64 and int64 (n_workers, 8), by worker the best gain of what was searched before, and its
        feature; changed at `child`. What does not reach any of them is not even computed.
    """
    best, best_feature = to_beat[worker, child], beaten[worker, child]
    for other in range(len(to_beat)):
        # It may grow meanwhile. Of equal gains both are kept: whoever compares them knows both features.
        if to_beat[other, child] > best:
            best, best_feature = to_beat[other, child], _NO_FEATURE
    for column in range(first_column, last_column):
        for place in range(columns.column_ptr[column], columns.column_ptr[column + 1]):
            feature = columns.features[place]
            if not may_cut(feature, leaf, allowed, groups, live):
                continue
            n_codes, divisor = columns.by_feature[feature, N_CODES], columns.by_feature[feature, DIVISOR]
            base, size = column % WORD * COLUMN_VALUES, columns.sizes[column]
            values, first_value = sum_codes(histogram, base, divisor, n_codes, size, sums)
            has_missing = columns.by_feature[feature, HAS_MISSING]
            if n_categories[feature] > 0:
                n_own = n_categories[feature] + 1 - columns.by_feature[feature, LOWEST]
                gain = search_categories(
                    values,
                    first_value,
                    n_own,
                    has_missing,
                    leaf,
                    limits,
                    best,
                    best_feature,
                    feature,
                    sums,
                    found[child],
                )
                if gain >= 0.0:
                    best, best_feature, found_gain[child] = gain, feature, gain
                continue
            missing = values[first_value] if has_missing != 0 else np.int64(0)
            if not may_gain(values, first_value, n_codes, missing, total, leaf, limits, best):
                continue
            running_sums(values, first_value, n_codes, total, sums)
            # Of two ways, it is not known which of them reaches it.
            is_reached = missing == 0 and limits.l1 == 0.0
            for side in range(2 if missing != 0 else 1):
                first = RUNNING
                if side == 1:
                    first = SHIFTED
                    shift_sums(n_codes, missing, sums)
                gain = ordered_gains(sums, first, n_codes, leaf, direction[feature], limits, best, is_reached, gains)
                if gain < best or (gain == best and (best_feature <= feature or best_feature < 0)):
                    continue
                code = 0
                while gains[code] != gain:
                    code += 1
                best, best_feature = gain, feature
                left = sums[first + code]
                found_gain[child], found[child, FOUND_FEATURE] = gain, feature
                found[child, FOUND_CODE], found[child, FOUND_LEFT] = code, left
                found[child, FOUND_MISSING_LEFT] = 1 - side
                if missing == 0:
                    found[child, FOUND_MISSING_LEFT] = 2 * (left & LOWER_HALF) >= (total & LOWER_HALF)
    to_beat[worker, child], beaten[worker, child] = best, best_feature


@inlined_kernel
def best_half(found, found_gain, child):
    """The half word with the best cut; −1 if there is none."""
    best = -1
    for half in range(len(found_gain)):
        gain = found_gain[half, child]
        if gain <= 0.0:
            continue
        if (
            best < 0
            or gain > found_gain[best, child]
            or (
                gain == found_gain[best, child]
                and found[half, child, FOUND_FEATURE] < found[best, child, FOUND_FEATURE]
            )
        ):
            best = half
    return best
