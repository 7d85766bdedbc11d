"""Ranking metrics by their definitions: one query at a time, no shortcut, exact fractions until the last division.

The definition that `rankings.py` is checked against. Gains of whole labels are exact integers of any
size, ties are averaged by trying every order, and pairs are counted one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations

import numpy as np

from rankwell.kernels.ranking_metrics import rules as kinds
from rankwell.kernels.ranking_metrics.rules import MetricRules


def evaluate_rankings(
    labels: np.ndarray,
    scores: np.ndarray,
    query_ptr: np.ndarray,
    metrics: Sequence[tuple[int, int]],
    discounts: np.ndarray,
    rules: MetricRules,
    highest_grade: float,
) -> np.ndarray:
    """Every metric, a pair (kind, cutoff), of every query: float64 (n_metrics, n_queries)."""
    values = np.empty((len(metrics), len(query_ptr) - 1))
    for query, (start, end) in enumerate(pairwise(query_ptr.tolist())):
        own_labels, own_scores = labels[start:end].tolist(), scores[start:end].tolist()
        for row, (kind, cutoff) in enumerate(metrics):
            limit = len(own_labels) if cutoff == 0 else cutoff
            values[row, query] = _metric(kind, limit, own_labels, own_scores, discounts, rules, highest_grade)
    return values


def _metric(
    kind: int,
    limit: int,
    labels: list[float],
    scores: list[float],
    discounts: np.ndarray,
    rules: MetricRules,
    highest_grade: float,
) -> float:
    ranked = [labels[doc] for doc in _ranking(labels, scores, rules)]
    n_relevant = sum(label >= rules.relevance_level for label in labels)
    found = [label >= rules.relevance_level for label in ranked[:limit]]
    if kind == kinds.NDCG:
        return _ndcg(labels, scores, limit, discounts, rules)
    if kind == kinds.MEAN_NDCG:
        if not labels:
            return rules.ratio_without_relevant
        each = [_ndcg(labels, scores, depth, discounts, rules) for depth in range(1, len(labels) + 1)]
        return math.fsum(each) / len(each)
    if kind == kinds.PAIRWISE_ACCURACY:
        return _pairwise_accuracy(labels, scores)
    if kind == kinds.KENDALL_TAU:
        return _kendall_tau(labels, scores)
    if kind == kinds.ERR:
        return _err(ranked[:limit], highest_grade) if max(labels, default=0.0) > 0 else rules.count_without_relevant
    if n_relevant == 0:
        if kind == kinds.AVERAGE_PRECISION:
            return rules.average_precision_without_relevant
        return rules.ratio_without_relevant if kind == kinds.RECALL else rules.count_without_relevant
    if kind == kinds.AVERAGE_PRECISION:
        return _average_precision(labels, scores, limit, n_relevant, rules)
    if kind == kinds.RECIPROCAL_RANK:
        return 1.0 / (found.index(True) + 1) if any(found) else 0.0
    if kind == kinds.PRECISION:
        return sum(found) / (limit if rules.precision_pads else min(limit, len(labels)))
    if kind == kinds.RECALL:
        return sum(found) / n_relevant
    raise ValueError(f"no metric has the code {kind}.")


def _ranking(labels: list[float], scores: list[float], rules: MetricRules) -> list[int]:
    """Documents by descending score; of equal scores the first or the last row first, or the lowest label."""
    if rules.ties == kinds.TIES_LOWEST_LABEL_FIRST:
        return sorted(range(len(scores)), key=lambda doc: (-scores[doc], labels[doc]))
    direction = -1 if rules.ties == kinds.TIES_REVERSE_FILE_ORDER else 1
    return sorted(range(len(scores)), key=lambda doc: (-scores[doc], direction * doc))


def _gain(label: float, rules: MetricRules) -> Fraction:
    if label <= 0:
        return Fraction(0)
    if not rules.exponential_gain:
        return Fraction(label)
    return _power_of_two(label) - 1 if label >= 1 else Fraction(math.expm1(label * math.log(2.0)))


def _power_of_two(exponent: float) -> Fraction:
    whole = math.floor(exponent)
    return Fraction(2) ** whole * Fraction(2.0 ** (exponent - whole))


def _ndcg(labels: list[float], scores: list[float], limit: int, discounts: np.ndarray, rules: MetricRules) -> float:
    gains = [_gain(label, rules) for label in labels]
    if sum(gains) == 0:
        return rules.ratio_without_relevant
    if limit > len(labels) and rules.short_list_is_zero:
        return 0.0
    ideal = _dcg(sorted(gains, reverse=True)[:limit], discounts)
    if rules.ties != kinds.TIES_AVERAGE:
        return float(_dcg([gains[doc] for doc in _ranking(labels, scores, rules)][:limit], discounts) / ideal)
    orders = [
        order
        for order in permutations(range(len(labels)))
        if all(scores[above] >= scores[below] for above, below in pairwise(order))
    ]
    return float(sum(_dcg([gains[doc] for doc in order][:limit], discounts) for order in orders) / len(orders) / ideal)


def _dcg(ranked_gains: list[Fraction], discounts: np.ndarray) -> Fraction:
    return sum(
        (gain * Fraction(float(discount)) for gain, discount in zip(ranked_gains, discounts, strict=False)), Fraction(0)
    )


def _average_precision(
    labels: list[float], scores: list[float], limit: int, n_relevant: int, rules: MetricRules
) -> float:
    order = _ranking(labels, scores, rules)[:limit]
    total = 0.0
    for place, doc in enumerate(order):
        if labels[doc] >= rules.relevance_level:
            if rules.ties == kinds.TIES_AVERAGE:
                above = [other for other in order if scores[other] >= scores[doc]]
            else:
                above = order[: place + 1]
            total += sum(labels[other] >= rules.relevance_level for other in above) / len(above)
    return total / (min(n_relevant, limit, len(labels)) if rules.cut_by_reachable else n_relevant)


def _err(ranked: list[float], highest_grade: float) -> float:
    total, still_looking = Fraction(0), Fraction(1)
    for rank, label in enumerate(ranked, start=1):
        gain = _power_of_two(label) - 1 if label >= 1 else Fraction(math.expm1(max(label, 0.0) * math.log(2.0)))
        stop = gain / _power_of_two(highest_grade)
        total += still_looking * stop / rank
        still_looking *= 1 - stop
    return float(total)


def _pairwise_accuracy(labels: list[float], scores: list[float]) -> float:
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]
    return sum(scores[i] > scores[j] for i, j in pairs) / len(pairs) if pairs else math.nan


def _kendall_tau(labels: list[float], scores: list[float]) -> float:
    by_label, by_score, both = 0, 0, 0
    for i, j in combinations(range(len(labels)), 2):
        of_labels = (labels[i] > labels[j]) - (labels[i] < labels[j])
        of_scores = (scores[i] > scores[j]) - (scores[i] < scores[j])
        by_label += of_labels != 0
        by_score += of_scores != 0
        both += of_labels * of_scores
    return both / math.sqrt(by_label * by_score) if by_label and by_score else math.nan
