"""Ranking metrics over many queries: each query is ranked once for all metrics, and threads take ranges of queries, or
of the rankings if there are several.

Each metric is its own kernel, so that only those in use are compiled; a range of queries is small enough for
its ranking to stay in the processor's cache from one metric to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.ordering import rank_again, rank_queries
from rankwell.kernels.ranking_metrics import query_metrics
from rankwell.kernels.ranking_metrics.rules import (
    AVERAGE_PRECISION,
    ERR,
    KENDALL_TAU,
    MEAN_NDCG,
    NDCG,
    PAIRWISE_ACCURACY,
    PRECISION,
    RECALL,
    RECIPROCAL_RANK,
    TIES_AVERAGE,
    TIES_LOWEST_LABEL_FIRST,
    TIES_REVERSE_FILE_ORDER,
    Judgments,
    MetricRules,
    query_ranges,
)
from rankwell.kernels.threads import current_threads, run_parts


def evaluate_rankings(
    judgments: Judgments,
    rankings: Sequence[np.ndarray],
    kinds: np.ndarray,
    cutoffs: np.ndarray,
    depth: int,
    rules: MetricRules,
    values: np.ndarray,
) -> None:
    """Every metric of every query, in each of some rankings of the same documents.

    Parameters
    ----------
    judgments : Judgments
    rankings : sequence of float arrays (n_docs,), without NaN
        The scores that documents are ranked by. A ranking takes less time where the one before is like it.
    kinds, cutoffs : int64 arrays (n_metrics,)
        Codes of `rankwell.kernels.ranking_metrics.rules`; cutoff 0 is the whole list.
    depth : int
        The deepest place that any of the metrics reads, 0 for all of them: no more is ranked, except for documents
        that are tied with the one at that place, if ties are averaged.
    rules : MetricRules
    values : float64 array (n_rankings, n_metrics, n_queries), filled
        NaN where the query is left out.
    """
    ranges, n_chunks = query_ranges(judgments.query_ptr), min(len(rankings), current_threads())
    metrics = list(zip(kinds.tolist(), cutoffs.tolist(), strict=True))

    def evaluate(part: int) -> None:
        number, chunk = divmod(part, n_chunks)
        first, last = ranges[number]
        order, is_begun = np.empty(judgments.query_ptr[last] - judgments.query_ptr[first], np.int64), False
        for ranking in range(len(rankings) * chunk // n_chunks, len(rankings) * (chunk + 1) // n_chunks):
            ranked = _RankedQueries(judgments, rankings[ranking], first, last, depth, rules, order, is_begun=is_begun)
            for metric, (kind, cutoff) in enumerate(metrics):
                ranked.evaluate(kind, cutoff, values[ranking, metric, first:last])
            is_begun = True

    run_parts(evaluate, len(ranges) * n_chunks)


class _RankedQueries:
    """The queries first, ..., last − 1 in the order of their rankings; what a metric needs is computed on first use.

    order, is_begun : see `rank_queries`
    """

    def __init__(
        self,
        judgments: Judgments,
        scores: np.ndarray,
        first: int,
        last: int,
        depth: int,
        rules: MetricRules,
        order: np.ndarray,
        *,
        is_begun: bool,
    ) -> None:
        start, end = judgments.query_ptr[first], judgments.query_ptr[last]
        self._judgments = judgments
        self._rows = slice(start, end)
        self._rules = rules
        self._scores = scores[start:end]
        self.query_ptr = judgments.query_ptr[first : last + 1] - start
        self.ideal_dcg = judgments.ideal_dcg[start:end]
        self.n_relevant = judgments.n_relevant[first:last]
        self.n_pairs = judgments.n_pairs[first:last]
        self._order = order
        self._ranked_end = np.empty(last - first, np.int64)
        places = (order, self._ranked_end)
        if rules.ties == TIES_LOWEST_LABEL_FIRST:
            rank_queries(-judgments.labels[start:end], self.query_ptr, 0, False, False, False, *places)
            rank_again(self._scores, self.query_ptr, order)
        else:
            later_first, through_ties = rules.ties == TIES_REVERSE_FILE_ORDER, rules.ties == TIES_AVERAGE
            rank_queries(self._scores, self.query_ptr, depth, later_first, through_ties, is_begun, *places)

    @cached_property
    def labels(self) -> np.ndarray:
        return self._taken(self._judgments.labels)

    @cached_property
    def stops(self) -> np.ndarray:
        return self._taken(self._judgments.stops)

    @cached_property
    def gains(self) -> np.ndarray:
        """Gains by place; documents with one score have their mean gain if ties are averaged."""
        gains = self._taken(self._judgments.gains)
        if self._rules.ties == TIES_AVERAGE:
            average_over_ties(self.query_ptr, self._ranked_end, self.tie_end, gains)
        return gains

    @cached_property
    def tie_end(self) -> np.ndarray:
        """The place after the last document with the same score; empty if ties are not averaged."""
        if self._rules.ties != TIES_AVERAGE:
            return np.empty(0, np.int64)
        tie_end = np.empty(len(self._order), np.int64)
        find_ties(self._scores, self.query_ptr, self._ranked_end, self._order, tie_end)
        return tie_end

    @cached_property
    def pair_counts(self) -> np.ndarray:
        from rankwell.kernels.ranking_metrics.pair_counts import count_pairs

        counts = np.empty((len(self.n_pairs), 3), np.int64)
        levels = self._judgments.levels[self._rows]
        tree = np.empty(int(levels.max(initial=0)) + 2, np.int64)
        count_pairs(self.query_ptr, levels, self._scores, self._order, tree, counts)
        return counts

    def _taken(self, numbers: np.ndarray) -> np.ndarray:
        taken = np.empty(len(self._order))
        take_ranked(numbers[self._rows], self.query_ptr, self._ranked_end, self._order, taken)
        return taken

    def evaluate(self, kind: int, cutoff: int, values: np.ndarray) -> None:
        """One metric of every query."""
        rules, query_ptr = self._rules, self.query_ptr
        no_ratio, no_count = rules.ratio_without_relevant, rules.count_without_relevant
        if kind == NDCG:
            query_metrics.ndcg(
                *(query_ptr, self.gains, self.ideal_dcg, self._judgments.discounts, cutoff),
                *(rules.short_list_is_zero, no_ratio, values),
            )
        elif kind == MEAN_NDCG:
            query_metrics.mean_ndcg(query_ptr, self.gains, self.ideal_dcg, self._judgments.discounts, no_ratio, values)
        elif kind == AVERAGE_PRECISION:
            query_metrics.average_precision(
                *(query_ptr, self.labels, self.tie_end, self.n_relevant, cutoff),
                *(rules.relevance_level, rules.cut_by_reachable, rules.average_precision_without_relevant, values),
            )
        elif kind == RECIPROCAL_RANK:
            query_metrics.reciprocal_rank(
                query_ptr, self.labels, self.n_relevant, cutoff, rules.relevance_level, no_count, values
            )
        elif kind in (PRECISION, RECALL):
            self._evaluate_share(kind, cutoff, values)
        elif kind == ERR:
            query_metrics.err(query_ptr, self.stops, self.ideal_dcg, cutoff, no_count, values)
        elif kind == PAIRWISE_ACCURACY:
            query_metrics.pairwise_accuracy(self.n_pairs, self.pair_counts, values)
        elif kind == KENDALL_TAU:
            query_metrics.kendall_tau(query_ptr, self.n_pairs, self.pair_counts, values)

    def _evaluate_share(self, kind: int, cutoff: int, values: np.ndarray) -> None:
        """Precision: the share of relevant documents among the first k. Recall: the share of all relevant ones."""
        n_found = np.empty(len(values), np.int64)
        query_metrics.count_relevant(self.query_ptr, self.labels, cutoff, self._rules.relevance_level, n_found)
        without = self._rules.ratio_without_relevant if kind == RECALL else self._rules.count_without_relevant
        n_all = self.n_relevant
        if kind == PRECISION:
            sizes = np.diff(self.query_ptr)
            n_all = np.full(len(values), cutoff) if self._rules.precision_pads else np.minimum(sizes, cutoff or sizes)
        values[:] = without
        np.divide(n_found, n_all, out=values, where=self.n_relevant > 0)


@kernel
def take_ranked(numbers, query_ptr, ranked_end, order, taken):
    """The numbers of the documents of each query in the order of their ranking."""
    for query in range(len(query_ptr) - 1):
        for place in range(query_ptr[query], ranked_end[query]):
            taken[place] = numbers[order[place]]


@kernel
def find_ties(scores, query_ptr, ranked_end, order, tie_end):
    """tie_end[place] = the place after the last document of the query with the same score."""
    for query in range(len(query_ptr) - 1):
        end = ranked_end[query]
        run_end = end
        for place in range(end - 1, query_ptr[query] - 1, -1):
            if place + 1 < end and scores[order[place]] != scores[order[place + 1]]:
                run_end = place + 1
            tie_end[place] = run_end


@kernel
def average_over_ties(query_ptr, ranked_end, tie_end, ranked_gains):
    """Give documents with one score their mean gain: the expectation over their orders."""
    for query in range(len(query_ptr) - 1):
        place = query_ptr[query]
        while place < ranked_end[query]:
            end = tie_end[place]
            total = 0.0
            for tied in range(place, end):
                total += ranked_gains[tied]
            mean = total / (end - place)
            while place < end:
                ranked_gains[place] = mean
                place += 1
