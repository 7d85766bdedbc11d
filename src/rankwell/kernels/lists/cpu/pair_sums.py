"""The O(n²) part of the Top-3 loss: sums over the pairs {a, b} that hold the first two places.

    q_ab = w_ab / d_ab,   w_ab = r_a·E_b + r_b·E_a,   d_ab = S − e_a − e_b

`row[a]` is Σ_b q_ab, and the loss is Σ_{a<b} w_ab·log d_ab. Each unordered pair is visited once, four rows at a time,
so that the other document's values are loaded once for four pairs. The rows are assigned to a fixed number of parts
whose column sums are added in a fixed order: the result is the same on any number of threads.

Divisions and logarithms are float32 vectors, and the compiler may reorder a row's sum (`reassoc`): all terms are
positive, so the relative error of a sum stays below 1e-6.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.elementary_functions import log32

PARTS = 16
ROWS = 4
# Longer lists have these sums on all threads (8 million pairs take about 10 ms on one).
PARALLEL_DOCS = 4096


@inner_kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def _four_rows(total, e, r, big, first, column, row):
    """Rows first..first+3 against all later documents; returns their part of the loss."""
    n = len(e)
    start = first + ROWS
    d0, d1, d2, d3 = total - e[first], total - e[first + 1], total - e[first + 2], total - e[first + 3]
    r0, r1, r2, r3 = r[first], r[first + 1], r[first + 2], r[first + 3]
    b0, b1, b2, b3 = big[first], big[first + 1], big[first + 2], big[first + 3]
    sum0 = sum1 = sum2 = sum3 = loss = np.float32(0.0)
    tail_e, tail_r, tail_big, tail_column = e[start:], r[start:], big[start:], column[start:]
    for b in range(n - start):
        eb, rb, bigb = tail_e[b], tail_r[b], tail_big[b]
        w0, w1, w2, w3 = r0 * bigb + rb * b0, r1 * bigb + rb * b1, r2 * bigb + rb * b2, r3 * bigb + rb * b3
        q0, q1, q2, q3 = w0 / (d0 - eb), w1 / (d1 - eb), w2 / (d2 - eb), w3 / (d3 - eb)
        sum0 += q0
        sum1 += q1
        sum2 += q2
        sum3 += q3
        tail_column[b] += (q0 + q1) + (q2 + q3)
        loss += (w0 * log32(d0 - eb) + w1 * log32(d1 - eb)) + (w2 * log32(d2 - eb) + w3 * log32(d3 - eb))
    row[first] += sum0
    row[first + 1] += sum1
    row[first + 2] += sum2
    row[first + 3] += sum3
    return float(loss)


@inner_kernel(error_model="numpy")
def _corner(total, e, r, big, first, last, row):
    """The pairs among documents first..last−1, both row sums; returns their part of the loss."""
    loss = 0.0
    for a in range(first, last):
        for b in range(a + 1, last):
            weight = r[a] * big[b] + r[b] * big[a]
            d = (total - e[a]) - e[b]
            row[a] += weight / d
            row[b] += weight / d
            loss += weight * np.log(d)
    return loss


@inner_kernel(error_model="numpy")
def _pair_part(part, total, e, r, big, column, row):
    """One part of the rows; `column` and `row` (n_docs,) belong to this part and start at 0."""
    n = len(e)
    for a in range(n):
        column[a] = 0.0
        row[a] = 0.0
    loss = 0.0
    for first in range(part * ROWS, n - n % ROWS, PARTS * ROWS):
        loss += _four_rows(total, e, r, big, first, column, row)
        loss += _corner(total, e, r, big, first, first + ROWS, row)
    if part == 0:
        loss += _corner(total, e, r, big, n - n % ROWS, n, row)
    return loss


@kernel(error_model="numpy", inline="always")
def _add_parts(parts, n, totals):
    for a in range(n):
        totals[a] = 0.0
    for part in range(PARTS):
        for a in range(n):
            totals[a] += float(parts[0, part, a]) + float(parts[1, part, a])


@kernel(error_model="numpy", inline="always")
def _sum_losses(losses):
    total = 0.0
    for part in range(PARTS):
        total += losses[part]
    return total


@inner_kernel(error_model="numpy")
def pair_sums(total, e, r, big, parts, losses, totals):
    """totals[a] = Σ_b q_ab, float64; returns Σ_{a<b} w_ab·log d_ab.

    total : S, float32. e, r, big : float32 (n_docs,). parts : float32 (2, PARTS, ≥ n_docs), column and row sums of each
    part; losses : float64 (PARTS,); both are filled.
    """
    n = len(e)
    for part in range(PARTS):
        losses[part] = _pair_part(part, total, e, r, big, parts[0, part, :n], parts[1, part, :n])
    _add_parts(parts, n, totals)
    return _sum_losses(losses)


@inner_kernel(error_model="numpy")
def added_pair_sums(total, e, r, big, parts, losses, totals):
    """`pair_sums` from parts and losses that `pair_part` has computed: the same to the last bit."""
    _add_parts(parts, len(e), totals)
    return _sum_losses(losses)


@kernel(error_model="numpy")
def pair_part(part, lists, count, parts, losses):
    """One part of the rows, as one of the tasks that threads share; losses[part] is its part of the loss.

    lists : float32 (≥ 4, ≥ count), e, r, E and, first of the last, S; parts : float32 (2, PARTS, ≥ count)
    """
    e, r, big = lists[0, :count], lists[1, :count], lists[2, :count]
    losses[part] = _pair_part(part, lists[3, 0], e, r, big, parts[0, part, :count], parts[1, part, :count])


@kernel(error_model="numpy", inline="always")
def row_sums(total, e, r, big, totals):
    """totals[a] = Σ_b q_ab in float64, without the loss: for the ground truth, which is computed once."""
    for a in range(len(e)):
        totals[a] = _row_sum(total - e[a], e[:a], r[:a], big[:a], r[a], big[a])
        totals[a] += _row_sum(total - e[a], e[a + 1 :], r[a + 1 :], big[a + 1 :], r[a], big[a])


@inner_kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def _row_sum(remaining, e, r, big, own_r, own_big):
    total = 0.0
    for b in range(len(e)):
        total += (own_r * big[b] + r[b] * own_big) / (remaining - e[b])
    return total
