"""The losses of boosted trees, for every device.

Most are sums over pairs of documents. A pair of the places i < j of a query's ranking, with labels that differ, weighs

    w = |G_i − G_j|·(max(X_i − Y_j, 0) + D[j − i]) / t,    t = 0.01 + |s_i − s_j| or 1

and pulls the better document up by λ = w·σ / (1 + e^{σ·(s_better − s_worse)}). What differs is gain G, X, Y and D:

    lambdarank   G = gains, X = Y = discounts: the change of NDCG if the two were swapped (Burges 2010)
    lambdaloss   and D: the change of the discount at the distance of the two (NDCG-Loss2++, Wang et al. 2018)
    pairwise     every pair the same: the logistic loss of RankNet (Burges et al. 2005)
    map, mrr     the change of average precision, or of the reciprocal rank, if the two were swapped

A query's gradients are multiplied by the inverse of its best DCG (lambdarank, lambdaloss) or of its number of relevant
documents (map). With noise, documents are ranked, and pairs weighed, by scores plus noise·Gumbel(0, 1), drawn anew in
each round: the gradients are then those of rankings that the scores make likely, as in YetiRank (Gulin et al. 2011).

xendcg is the cross entropy of the softmax of scores and of randomised gains G + 1 − u, u uniform in (0, 1), anew in
each round (Bruch 2021); its gradient has two correcting terms, as LightGBM's:

    ρ = softmax(s),  l1_i = ρ_i − (G_i + 1 − u_i) / Σ,  g_i = l1_i + l2_i + l3_i,  h_i = ρ_i·(1 − ρ_i)
    l2_i = ρ_i·Σ_{j ≠ i} l1_j / (1 − ρ_j),  l3_i = ρ_i·Σ_{j ≠ i} l2_j / (1 − ρ_j)

Random numbers are hashes of seed, round and document, so that they are the same on any device.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LAMBDARANK, LAMBDALOSS, PAIRWISE, MAP, MRR, XENDCG = range(6)
PAIR_LOSSES = {"lambdarank": LAMBDARANK, "lambdaloss": LAMBDALOSS, "pairwise": PAIRWISE, "map": MAP, "mrr": MRR}
LOSSES = {**PAIR_LOSSES, "xendcg": XENDCG}
# The part of the distance's weight in lambdaloss, as in the paper.
DISTANCE_WEIGHT = 10.0
# A document whose score is further below its query's best than this, over σ, counts as that far below.
FARTHEST = 80.0
# The least 1 − ρ that xendcg divides by.
LEAST_REST = 1e-15
# Gains of a query whose largest is within 2^±this are not scaled: squares of them are far from float32's limits.
_ORDINARY_EXPONENT = 60
# What is added to the distance of two scores before a pair's weight is divided by it.
NEAREST = 0.01


class RankingLoss(NamedTuple):
    """A loss of this module and its settings. xendcg has only `kind` and `seed`.

    kind : one of the numbers above
    truncation : pairs count if the higher ranked document is among so many
    sigma : σ
    normalize : 1 if weights are divided by the distance of scores and a query's sum is brought to log2(1 + Σ|λ|)
    noise : the scale of the noise on scores; seed : of random numbers
    """

    kind: int
    truncation: int
    sigma: float
    normalize: int
    noise: float = 0.0
    seed: int = 0

    @property
    def is_random(self) -> bool:
        """Whether anything is drawn anew in each round."""
        return self.kind == XENDCG or self.noise > 0.0


class JudgedQueries(NamedTuple):
    """What losses learn from.

    query_ptr : int64 (n_queries + 1,)
    gain : float32 (n_docs,), of each document's label; of a query with huge or tiny gains, times a power of two
    inverse : float64 (n_queries,), what a query's gradients are multiplied by; 0 for a query without pairs
    discount : float32 (longest,), by place
    weight : float32 (n_docs,), of each document's gradient; empty if all are 1
    """

    query_ptr: np.ndarray
    gain: np.ndarray
    inverse: np.ndarray
    discount: np.ndarray
    weight: np.ndarray


def judged_queries(
    loss: RankingLoss, query_ptr: np.ndarray, gains: np.ndarray, weights: np.ndarray | None = None
) -> JudgedQueries:
    """The queries with documents of these gains (float64) and weights; see `JudgedQueries`."""
    sizes = np.diff(query_ptr)
    longest = int(sizes.max(initial=0))
    discount = 1.0 / np.log2(np.arange(longest) + 2.0)
    if loss.kind in (MAP, MRR):
        gain = (gains > 0).astype(np.float32)
    else:
        gain = (gains if loss.kind == XENDCG else _in_single_precision(gains, query_ptr)).astype(np.float32)
    inverse = np.zeros(len(sizes))
    for size in np.unique(sizes[sizes > 1]).tolist():
        of_size = np.flatnonzero(sizes == size)
        ordered = np.sort(gain[query_ptr[of_size, None] + np.arange(size)], axis=1)[:, ::-1]
        has_pairs = ordered[:, 0] > ordered[:, -1]
        inverse[of_size[has_pairs]] = _inverse_of(loss, ordered[has_pairs], discount)
    return JudgedQueries(
        query_ptr=np.ascontiguousarray(query_ptr, np.int64),
        gain=gain,
        inverse=inverse,
        discount=discount.astype(np.float32),
        weight=np.zeros(0, np.float32) if weights is None else weights.astype(np.float32),
    )


def _in_single_precision(gains: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Gains whose sums and products over a query float32 holds, float64; those of ordinary labels as they are.

    Pair losses are the same, to the bit, if a query's gains are multiplied by a power of two: its factor, the inverse
    of its best DCG, is divided by it.
    """
    # An empty query has no largest gain, and no document of which it would count.
    queries = np.flatnonzero(np.diff(query_ptr))
    largest = np.zeros(len(query_ptr) - 1)
    largest[queries] = np.maximum.reduceat(gains, query_ptr[queries]) if len(queries) else 0.0
    exponent = np.frexp(largest)[1]
    shift = np.where(np.abs(exponent) > _ORDINARY_EXPONENT, -exponent, 0)
    shift[largest == 0.0] = 0
    return np.ldexp(gains, np.repeat(shift, np.diff(query_ptr))) if shift.any() else gains


def _inverse_of(loss: RankingLoss, ordered: np.ndarray, discount: np.ndarray) -> np.ndarray | float:
    """What the gradients of queries are multiplied by, each a row of falling gains that are not all equal."""
    if loss.kind in (LAMBDARANK, LAMBDALOSS):
        best = ordered[:, : loss.truncation].astype(np.float64)
        return 1.0 / np.add.reduce(np.ascontiguousarray(best * discount[: best.shape[1]]), axis=1)
    if loss.kind == MAP:
        return 1.0 / np.add.reduce(np.ascontiguousarray(ordered), axis=1).astype(np.float64)
    return 1.0


def distance_weights(loss: RankingLoss, longest: int, first: int) -> np.ndarray:
    """D by distance, float32, that of distance 0 at place `first`; enough for rankings of `longest` documents."""
    return weights_by_distance(loss.kind, longest, first)


def weights_by_distance(kind: int, longest: int, first: int = 0) -> np.ndarray:
    """As `distance_weights`, of the loss with this number."""
    weights = np.zeros(first + longest + first, np.float32)
    if kind == LAMBDALOSS:
        distance = np.arange(1, longest + first)
        change = 1.0 / np.log2(distance + 1.0) - 1.0 / np.log2(distance + 2.0)
        weights[first + 1 :] = DISTANCE_WEIGHT * change[: len(weights) - first - 1]
    return weights
