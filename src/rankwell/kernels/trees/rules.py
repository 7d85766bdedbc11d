"""The arithmetic of boosted trees' decisions, the same on every device.

Every decision follows from whole numbers, and from float64 operations in a fixed order, none of them fused: addition,
subtraction, multiplication and division, which IEEE 754 rounds in one way. So the order of additions, the number of
threads, the width of vectors and atomics on a GPU cannot change a tree.

Gradient and Hessian as whole numbers. A document's float32 gradient g and Hessian h >= 0 are multiplied by powers of
two, 2^a and 2^b, and rounded to the nearest whole number, half to even. The powers are the largest for which the sums
over all documents certainly fit: Σ|g| in 31 bits, Σh in 32. Both are in one int64, g in the upper half and h in the
lower one, so that one addition adds both; subtraction is exact too. A rounding error is at most half a unit, so the
error of a sum over n documents is about √(n/12) units of 2^31.

Gain. A leaf with the sums G and H, in units, has the objective t(G)²/(H + l2), where t(G) = sign(G)·max(|G| − l1, 0)
(l1 and l2 in units too: l1·2^a and l2·2^b). Of a cut into G = G1 + G2, H = H1 + H2, with A = H1 + l2 and B = H2 + l2:

    gain = ((t1·t1)·B + (t2·t2)·A) / (A·B) − (t·t) / (H + l2)

A cut is allowed if H1 and H2 are both at least `least_hessian`, a whole number. It takes place if its gain, in units,
exceeds min_gain in units (min_gain·2^(2a − b)) and 0. Of cuts with equal gain, that of the feature with the lowest
number is taken, then the one with missing values on the left, then the lowest bin. The leaf with the largest gain is
cut next; of equals the one with the lowest number. The left child keeps its parent's number, the right one gets the
next free one.

Missing values. Bin 0 holds them; a cut after bin b is tried with bin 0 on the left and, if documents of the leaf have
missing values (their sums are not both 0), on the right as well. If there are none in the leaf, missing values that are
seen later go to the side with the larger Hessian, the left one if they are equal.

Value of a leaf. Its step is w = −t(G) / (H + l2), in units, and 0 if H + l2 is 0; its value is
float32((w·2^(b − a))·learning_rate). Scores of training documents are float32 sums of these, in the order of the trees.

Rising and falling features (as LightGBM's "basic" method). Every leaf has bounds, none at first, and its step is
brought between them. In a tree with such features, all gains are those of bounded steps: a side with the step w has the
objective −w·(2·t(G) + (H + l2)·w). A cut by a rising feature is allowed if the left side's step is not above the right
one's. The mean of the two is then the upper bound of everything on the left and the lower bound of everything on the
right; with a falling feature it is the other way round. Sides of other cuts have their leaf's bounds. Values are
rounded and added up in ways that keep the order, so the sum of all trees rises exactly, too. Missing values are outside
of this order.

Groups of features. If there are any, the features on the way from the root to a leaf are all in one group, at least.

Categories. The bins of a categorical feature have no order; a cut has a set of them on the left. What is counted in
documents is multiplied by u = H / n, the mean Hessian of the leaf's n documents (LightGBM takes it for 1). With up to
`FEW_CODES` codes each of them is tried alone. Otherwise, codes whose Hessian is at least smoothing·u are ordered by
G / (H + smoothing·u), of equals the lowest code first; tried are the first 1, 2, ... of them, then the last 1, 2, ...,
up to half of them (rounded up) and to `max_category_set`, with l2 + category_l2·u in the objective of both sides, and
then in the values of the two leaves. Of equal gains the first is taken. Missing values are a category. Categories that
training did not have, or that are too rare for a bin of their own, go right.

Symmetric trees. A level has one cut for all its leaves. A leaf is divided by it if it could be, and if that gains more
than min_gain and 0; otherwise it stays whole. The cut with the largest sum of the gains of the leaves that it divides,
added in the order of their numbers, is taken; of equals as above. If a leaf has missing values they are tried on both
sides; if none has, they go to the side with the larger Hessian of all leaves. New leaves get the next free numbers in
the order of the leaves they come from.
"""

from __future__ import annotations

import math

GRADIENT_BITS = 31
HESSIAN_BITS = 32
LOWER_HALF = 0xFFFFFFFF
# Categorical features with more codes are ordered by their gradients.
FEW_CODES = 4
# Before the sum is known, the largest value is between 2^29 and 2^30 units.
_FIRST_BITS = 30


def first_exponent(largest: float) -> int:
    """The power of two that brings the largest |value|, above 0, between 2^29 and 2^30."""
    return _FIRST_BITS - math.frexp(largest)[1]


def final_exponent(exponent: int, total: int, n_docs: int, bits: int) -> int:
    """The power of two for which sums fit, given the sum of all |values| rounded at `exponent`.

    A rounded value is off by half a unit at most, at either exponent.
    """
    shift = 0
    while ((total + n_docs) >> shift) + n_docs >= 1 << bits:
        shift += 1
    return exponent - shift


def objective(gradient: float, hessian: float, l1: float, l2: float) -> float:
    """t(G)²/(H + l2); 0 if H + l2 is 0."""
    size = abs(gradient) - l1
    below = hessian + l2
    return (size * size) / below if size > 0.0 and below > 0.0 else 0.0


def sides_objective(g1: float, h1: float, g2: float, h2: float, l1: float, l2: float) -> float:
    """The objective of two sides together, both of them with H + l2 above 0."""
    t1, t2, a, b = max(abs(g1) - l1, 0.0), max(abs(g2) - l1, 0.0), h1 + l2, h2 + l2
    return ((t1 * t1) * b + (t2 * t2) * a) / (a * b)


def bounded_step(gradient: float, hessian: float, l1: float, l2: float, low: float, high: float) -> float:
    """−t(G)/(H + l2), 0 if H + l2 is 0, brought between `low` and `high`."""
    size = abs(gradient) - l1
    below = hessian + l2
    step = 0.0
    if size > 0.0 and below > 0.0:
        step = size / below
        if gradient > 0.0:
            step = -step
    return low if step < low else (high if step > high else step)


def bounded_objective(gradient: float, hessian: float, l1: float, l2: float, step: float) -> float:
    """How much this step lowers the loss, times two: t(G)²/(H + l2) if it is not bounded."""
    size = max(abs(gradient) - l1, 0.0)
    t = size if gradient > 0.0 else -size
    return -(step * (2.0 * t + (hessian + l2) * step))


def least_hessian(hessian: int, n_docs: int, min_docs_leaf: int, min_hessian_leaf: int) -> int:
    """The least H of a side of a leaf's cut.

    A side has at least min_docs_leaf documents if its number of documents, estimated by its share of the Hessian and
    rounded, is that (as in LightGBM): H1·n/H >= min_docs_leaf − 1/2. min_hessian_leaf is in units.
    """
    by_docs = -((-hessian * (2 * min_docs_leaf - 1)) // (2 * n_docs))
    least = by_docs if by_docs > min_hessian_leaf else min_hessian_leaf
    return least if least > 1 else 1


def leaf_value(step: float, scale: float, learning_rate: float) -> float:
    """The value of a leaf with this step, before it is rounded to float32; `scale` is 2^(b − a)."""
    return (step * scale) * learning_rate
