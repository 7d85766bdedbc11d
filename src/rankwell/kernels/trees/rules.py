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

Value of a leaf. float32(−((t(G) / (H + l2))·2^(b − a))·learning_rate), and 0 if H + l2 is 0. Scores of training
documents are float32 sums of these, in the order of the trees.
"""

from __future__ import annotations

import math

GRADIENT_BITS = 31
HESSIAN_BITS = 32
LOWER_HALF = 0xFFFFFFFF
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


def split_gain(g1: float, h1: float, g2: float, h2: float, l1: float, l2: float) -> float:
    """The gain of a cut into two sides, both of them with H + l2 above 0."""
    t1, t2, a, b = max(abs(g1) - l1, 0.0), max(abs(g2) - l1, 0.0), h1 + l2, h2 + l2
    return ((t1 * t1) * b + (t2 * t2) * a) / (a * b) - objective(g1 + g2, h1 + h2, l1, l2)


def least_hessian(hessian: int, n_docs: int, min_docs_leaf: int, min_hessian_leaf: int) -> int:
    """The least H of a side of a leaf's cut.

    A side has at least min_docs_leaf documents if its number of documents, estimated by its share of the Hessian and
    rounded, is that (as in LightGBM): H1·n/H >= min_docs_leaf − 1/2. min_hessian_leaf is in units.
    """
    by_docs = -((-hessian * (2 * min_docs_leaf - 1)) // (2 * n_docs))
    least = by_docs if by_docs > min_hessian_leaf else min_hessian_leaf
    return least if least > 1 else 1


def leaf_value(gradient: float, hessian: float, l1: float, l2: float, scale: float, learning_rate: float) -> float:
    """The value of a leaf, before it is rounded to float32; `scale` is 2^(b − a)."""
    size = abs(gradient) - l1
    below = hessian + l2
    if size <= 0.0 or below <= 0.0:
        return 0.0
    value = ((size / below) * scale) * learning_rate
    return -value if gradient > 0.0 else value
