"""Fixed point: the numbers of the thesis's low-precision back propagation, defined to the bit.

A number v in the range [−2^e, 2^e) is stored as a signed integer of b bits: ⌊v·2^(b−1−e) + 1/2⌋, saturated to
[−2^(b−1), 2^(b−1) − 1]. All rounding is half up (towards +∞); nothing wraps around.

    product     (p·q + 2^(b−2)) >> (b−1), exact before the shift, saturated to b bits; the ranges' exponents add up
    sum         exact, saturated to the accumulator's bits after every addition, documents in their order

The inputs of back propagation (forward pass and loss stay float32), b = `bits` (the thesis's bw1):

    u           ∂L/∂s·F·2^B      e = INTEGER_BITS      F: the query's loss scale, B: the document's batch
    a           outputs of sigmoids       e = 0
    slope       a·(1 − a) ≤ 1/4           e = −2: (a·(2^(b−1) − a) + 2^(b−4)) >> (b−3), saturated
    x           features                  e = the smallest that fits the training data's largest |x|
    w           a layer's weights         e = the smallest that fits the layer's largest |w| before the step

Products: ds = u·slope(s) (sigmoid output only); Δw_out += ds·a; δ = (ds·w)·slope(a); Δw += δ·x. A deeper layer's δ sums
δ·w over the U units of the layer above: (sum + 2^(g−1)) >> g with g = ⌈log2 U⌉, whose exponent is g higher.
Accumulators have `accumulator_bits` (bw2) bits, one per parameter and batch. The update is
Σ_B accumulator·2^(e−b+1)/(F·2^B), in float32.

F and B come from the gradients themselves. E_d is the least exponent with |∂L/∂s_d| < 2^E_d (∂L/∂s rounded to float32;
at least LEAST_EXPONENT, which zeros have), and E_q the largest E_d of the query:

| method     | F                      | B                      |
| ---------- | ---------------------- | ---------------------- |
| `direct`   | 1                      | 0                      |
| `adaptive` | 2^(INTEGER_BITS − E_q) | 0                      |
| `batch`    | 2^(INTEGER_BITS − E_q) | min(E_q − E_d, M − 1)  |

So |u| < 2^INTEGER_BITS for every document: u never saturates (`direct` does for |∂L/∂s| ≥ 2^13 only), and the document
with the largest gradient uses the highest bit. A product of two numbers in range is in range, and n terms fit in
b + ⌈log2 n⌉ accumulator bits: if the accumulators have them for the longest list, nothing overflows anywhere, and
saturation only turns 2^(b−1) into 2^(b−1) − 1. In hardware E_d is float32's exponent field less 126, E_q a running
maximum of it while the loss writes the query's gradients, and the scaling an addition to the exponent.

The thesis scales by one F for a whole epoch, 2^(13 + ⌊epoch/30⌋), which follows how far the gradients of single
permutations fall (its figure 4.7), and sorts permutations into batches by P(y, π). The gradients of documents, which
are sums over permutations, do not fall like that: that F saturates most of them by epoch 100.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rankwell.errors import ParameterError

DIRECT, ADAPTIVE, BATCH = range(3)
METHODS = ("direct", "adaptive", "batch")
INTEGER_BITS = 13
LEAST_EXPONENT = -126
SLOPE_BITS = -2
FEWEST_BITS, MOST_BITS = 4, 31
MOST_ACCUMULATOR_BITS = 62


class FixedPointFormat(NamedTuple):
    """bits : bw1; accumulator_bits : bw2; method : DIRECT, ADAPTIVE, BATCH; batches : M; feature_bits : of x."""

    bits: int
    accumulator_bits: int
    method: int
    batches: int
    feature_bits: int


def bits_of_precision(precision: str) -> int | None:
    """8 for ``"fixed8"``, None for ``"float32"``."""
    if precision == "float32":
        return None
    match = re.fullmatch(r"fixed(\d+)", precision) if isinstance(precision, str) else None
    if match is None or not FEWEST_BITS <= int(match[1]) <= MOST_BITS:
        raise ParameterError(
            f"must be 'float32' or 'fixedN' with {FEWEST_BITS} ≤ N ≤ {MOST_BITS} (as 'fixed8'), got {precision!r}.",
            parameter="precision",
        )
    return int(match[1])


def sufficient_accumulator_bits(bits: int, most_docs: int) -> int:
    """The thesis's 10 bits more than `bits`, or as many more as a list of `most_docs` documents can need."""
    return min(bits + max(10, (most_docs - 1).bit_length()), MOST_ACCUMULATOR_BITS)
