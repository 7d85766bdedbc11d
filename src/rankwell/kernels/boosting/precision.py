"""The precision of RankBoost's decisions, the same on every device.

π in fixed point. The pair weights D sum to 1, and a pair adds its weight to one document's π and subtracts it from
another's, so over *any* set of documents −1 ≤ Σ π ≤ 1. π is rounded to a multiple of 2^−30 once, before any sum: a sum
over n documents is then within 2^30 + n/2 of zero, which fits in an int32 for every n up to 2^31. So histograms, their
integrals and partial ones never overflow, their sums are exact, and neither the order of additions, the number of
threads, nor atomics on a GPU can change them.

The error of the rounding. Each π is off by at most half a unit, so a sum over n documents is off by about √(n/12)
units: 3·10^−7 of r = 1 for the 1.2 million documents of the FAR paper. Two weak rankers whose r differ by no more than
`tolerance` (about five standard deviations of the difference) count as equal, and of equal ones the first is chosen:
the lowest feature, then the lowest threshold. Exact ties are common (a feature twice, a feature and its complement, an
empty bin), so without this rule rounding would choose between them, and two orders of summation would give two models.
An r within the tolerance of 0 counts as 0.

So that a weak ranker that is constant within every query gets exactly r = 0, the rounding error of a query is
subtracted from its last document: the rounded π of a query sum to exactly 0.

α and e^{±α}. With r exact, e^α = √((1 + r) / (1 − r)) takes only operations that IEEE 754 rounds in one way, so it has
the same bits on every device. |r| is at most 1 − 2^−20, hence |α| ≤ 7.28 and e^|α| < 2^10.51. A learning rate is a
power of two, 2^−k: e^{α·2^−k} is then the square root of e^α taken k times, which every device rounds in the same way.

e^{±H}. A weak ranker changes H by α where h = 1, so e^H is multiplied there by e^α and e^{−H} by e^{−α}: the relative
error is 2^−53 per round, 2·10^−11 after 200,000 rounds at worst. Both are centred by query and label level: each
level has its own power of two (scaling by it is exact), chosen anew every `RECENTRE_ROUNDS` rounds so that the
level's largest is in [0.5, 1). In between the largest grows to at most 2^(32·10.51) = 2^337, products of two of them
stay under 2^700, and nothing overflows, for any number of rounds. A document's weight is at least 2^−1000 of its
level's largest: its H may be up to 693 below the best of its level before its weight is no longer exact.
"""

from __future__ import annotations

import math

MOST_HALVINGS = 10  # of the learning rate
PI_BITS = 30
PI_UNIT = 2.0**-PI_BITS
LARGEST_R = 2**30 - 2**10
RECENTRE_ROUNDS = 32
SMALLEST_WEIGHT = 2.0**-1000
LARGEST_EXPONENT = 900  # of a factor between two levels; real ones stay under 100, and 2^900 cannot overflow a sum
SUM_LANES = 8  # partial sums over a level: lane j takes places j, j + 8, ...
QUERY_LANES = 1024  # partial sums over queries: lane j takes queries j, j + 1024, ...


def tolerance(n_docs: int) -> int:
    """How many units of 2^−30 two r may differ by and still count as equal."""
    return 2 * math.isqrt(n_docs) + 2


def weight_factors(r: int, n_halvings: int) -> tuple[float, float]:
    """e^α and e^−α of a weak ranker with r in units of 2^−30, at the learning rate 2^−n_halvings."""
    value = r * PI_UNIT
    up, down = math.sqrt((1.0 + value) / (1.0 - value)), math.sqrt((1.0 - value) / (1.0 + value))
    for _ in range(n_halvings):
        up, down = math.sqrt(up), math.sqrt(down)
    return up, down
