"""The best cut of a leaf, from its histograms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.random_numbers import random_unit
from rankwell.kernels.trees import rules
from rankwell.kernels.trees.columns import COLUMN_VALUES, DIVISOR, HAS_MISSING, N_CODES
from rankwell.kernels.trees.cpu.histograms import U
from rankwell.kernels.trees.cpu.vector_code import GAIN_LANES, cut_gains
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
_objective = inlined_kernel(rules.objective)
_least_hessian = inlined_kernel(rules.least_hessian)


class Limits(NamedTuple):
    """What a cut must satisfy, in units (`rules`).

    l1, l2, min_gain : float64; min_docs_leaf, min_hessian_leaf : int64
    """

    l1: float
    l2: float
    min_gain: float
    min_docs_leaf: int
    min_hessian_leaf: int


@inlined_kernel
def _running_sums(histogram, base, divisor, n_codes, size, sums):
    """Write the packed sums of the codes up to each to sums[RUNNING:], from the histogram of the feature's column."""
    total = np.int64(0)
    if size == n_codes:
        for code in range(U(n_codes)):
            total += histogram[U(base) + code]
            sums[U(RUNNING) + code] = total
        return
    for code in range(U(n_codes)):
        sums[U(MARGINAL) + code] = 0
    code, first = U(0), U(0)
    while first < U(size):
        part = np.int64(0)
        for value in range(first, first + U(divisor)):
            part += histogram[U(base) + value]
        sums[U(MARGINAL) + code] += part
        code = code + U(1) if code + U(1) < U(n_codes) else U(0)
        first += U(divisor)
    for code in range(U(n_codes)):
        total += sums[U(MARGINAL) + code]
        sums[U(RUNNING) + code] = total


@inner_kernel
def search_word(histogram, word, total, n_docs, limits, draw, columns, allowed, sums, gains, found, child, found_gain):
    """The best cut by a feature of one word's columns, of a leaf with the packed sums `total` and `n_docs` documents.

    draw : share of the features allowed in the leaf, seed, number of the leaf over all trees (`sampling`)
    histogram : int64 (2048,), of the word; found : int64 (2, 4), found_gain : float64 (2,), written at `child`
    """
    gradient, hessian = np.float64(total >> 32), np.float64(total & LOWER_HALF)
    parent = _objective(gradient, hessian, limits.l1, limits.l2)
    smallest = np.float64(_least_hessian(total & LOWER_HALF, n_docs, limits.min_docs_leaf, limits.min_hessian_leaf))
    found_gain[child] = 0.0
    best, best_feature = limits.min_gain, -1
    last_column = min(word * WORD + WORD, len(columns.sizes))
    for column in range(word * WORD, last_column):
        for place in range(columns.column_ptr[column], columns.column_ptr[column + 1]):
            feature = columns.features[place]
            if allowed[feature] == 0:
                continue
            if draw[0] < 1.0 and random_unit(np.uint64(draw[1]), draw[2], feature) >= draw[0]:
                continue
            n_codes, divisor = columns.by_feature[feature, N_CODES], columns.by_feature[feature, DIVISOR]
            base = (column - word * WORD) * COLUMN_VALUES
            _running_sums(histogram, base, divisor, n_codes, columns.sizes[column], sums)
            # The cut after the last code is none: its right side is empty.
            n_padded = (n_codes + GAIN_LANES - 2) // GAIN_LANES * GAIN_LANES
            for code in range(n_codes - 1, n_padded):
                sums[RUNNING + code] = total
            missing = sums[RUNNING] if columns.by_feature[feature, HAS_MISSING] != 0 else np.int64(0)
            for side in range(2 if missing != 0 else 1):
                first = RUNNING
                if side == 1:
                    first = SHIFTED
                    for code in range(U(n_padded)):
                        sums[U(SHIFTED) + code] = sums[U(RUNNING) + code] - missing
                gain = cut_gains(
                    sums, first, n_padded, gradient, hessian, limits.l1, limits.l2, smallest, parent, best, gains
                )
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


@inlined_kernel
def best_word(found, found_gain, child):
    """The word with the best cut; −1 if there is none."""
    best = -1
    for word in range(len(found_gain)):
        gain = found_gain[word, child]
        if gain <= 0.0:
            continue
        if (
            best < 0
            or gain > found_gain[best, child]
            or (
                gain == found_gain[best, child]
                and found[word, child, FOUND_FEATURE] < found[best, child, FOUND_FEATURE]
            )
        ):
            best = word
    return best
