"""Fixed point: the numbers of the thesis's low-precision back propagation, defined to the bit.

A number v in the range [−2^e, 2^e) is stored as a signed integer of b bits: ⌊v·2^(b−1−e) + 1/2⌋, saturated to
[−2^(b−1), 2^(b−1) − 1]. All rounding is half up (towards +∞); nothing wraps around.

    product     (p·q + 2^(b−2)) >> (b−1), exact before the shift, saturated to b bits; the ranges' exponents add up
    sum         exact, saturated to the accumulator's bits after every addition, documents in their order

The inputs of back propagation (forward pass and loss stay float32), b = `bits` (the thesis's bw1):

    u           ∂L/∂s·F·2^B      e = INTEGER_BITS      F: the loss scale, B: the document's batch
    a           outputs of sigmoids       e = 0
    slope       a·(1 − a) ≤ 1/4           e = −2: (a·(2^(b−1) − a) + 2^(b−4)) >> (b−3), saturated
    x           features                  e = the smallest that fits the training data's largest |x|
    w           a layer's weights         e = the smallest that fits the layer's largest |w| before the step

Products: ds = u·slope(s) (sigmoid output only); Δw_out += ds·a; δ = (ds·w)·slope(a); Δw += δ·x; a deeper layer's δ sums
δ·w over the layer above in an accumulator and is saturated to b bits. Accumulators have `accumulator_bits` (bw2) bits,
one per parameter and batch. The update is Σ_B accumulator·2^(e−b+1)/(F·2^B), in float32.

| method     | F                                  | B                                                     |
| ---------- | ---------------------------------- | ----------------------------------------------------- |
| `direct`   | 1                                  | 0                                                     |
| `adaptive` | 2^(13 + ⌊epoch/30⌋), epoch from 0  | 0                                                     |
| `batch`    | the same                           | clip(⌊−log2 max(P_y(d), |∂L/∂s_d|)⌋, 0, M − 1)        |

The thesis sorts permutations into batches by P(y, π); the collapsed loss has none, so a document is sorted by its
probability to be in the top k (under the exact losses) or its gradient, whichever is larger: the scaled value fits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rankwell.errors import ParameterError

DIRECT, ADAPTIVE, BATCH = range(3)
METHODS = ("direct", "adaptive", "batch")
INTEGER_BITS = 13
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


def loss_scale_exponent(method: int, epoch: int) -> int:
    """log2 F for an epoch counted from 0 (Algorithm 6, line 5)."""
    return 0 if method == DIRECT else 13 + epoch // 30
