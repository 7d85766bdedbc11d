"""The input of the metric kernels: which metric, and the rules of a convention.

Plain numbers in tuples, so that the compiled kernels and the reference read the same thing. Importing this compiles
nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Kinds of metric.
NDCG = 0
MEAN_NDCG = 1
AVERAGE_PRECISION = 2
RECIPROCAL_RANK = 3
PRECISION = 4
RECALL = 5
ERR = 6
PAIRWISE_ACCURACY = 7
KENDALL_TAU = 8

# Kinds that compare pairs of documents.
PAIR_KINDS = (PAIRWISE_ACCURACY, KENDALL_TAU)

# Documents with equal scores.
TIES_FILE_ORDER = 0
TIES_REVERSE_FILE_ORDER = 1
TIES_AVERAGE = 2
TIES_LOWEST_LABEL_FIRST = 3


class MetricRules(NamedTuple):
    """How queries are counted.

    Attributes
    ----------
    exponential_gain : bool
        A document's gain is 2^label − 1, otherwise the label itself. A negative label has no gain.
    short_list_is_zero : bool
        NDCG@k of a query with fewer than k documents is 0.
    precision_pads : bool
        P@k divides by k, otherwise by the smaller of k and the query's documents.
    cut_by_reachable : bool
        AP@k divides by the smallest of k, the relevant documents and the query's documents, otherwise by the relevant
        ones.
    relevance_level : float
        The smallest label that counts as relevant.
    ties : int
        One of the TIES_ codes.
    ratio_without_relevant : float
        What a metric that divides by the ideal (NDCG, recall) gives a query without relevant documents; NaN leaves it
        out.
    average_precision_without_relevant : float
        The same for AP.
    count_without_relevant : float
        The same for metrics that do not (P@k, reciprocal rank, ERR): 0 or NaN.
    """

    exponential_gain: bool
    short_list_is_zero: bool
    precision_pads: bool
    cut_by_reachable: bool
    relevance_level: float
    ties: int
    ratio_without_relevant: float
    average_precision_without_relevant: float
    count_without_relevant: float


class Judgments(NamedTuple):
    """What depends on the labels only, computed once for many rankings.

    Attributes
    ----------
    labels, gains : float64 arrays (n_docs,)
        Gains may be scaled within a query; a metric only uses their ratios.
    stops : float64 array (n_docs,)
        The probability that a document satisfies the user (ERR); empty if no metric needs it.
    levels : int64 array (n_docs,)
        The number of each document's label among the labels of its query, 0 for the highest; empty if no metric
        compares pairs.
    ideal_dcg : float64 array (n_docs,)
        At place r of a query, the largest DCG that r + 1 of its documents can have.
    query_ptr : int64 array (n_queries + 1,)
    n_relevant, n_pairs : int64 arrays (n_queries,)
        Relevant documents, and pairs of documents with different labels; the latter undefined without levels.
    discounts : float64 array (documents of the largest query,)
        The factor of each place, the first place first.
    """

    labels: np.ndarray
    gains: np.ndarray
    stops: np.ndarray
    levels: np.ndarray
    ideal_dcg: np.ndarray
    query_ptr: np.ndarray
    n_relevant: np.ndarray
    n_pairs: np.ndarray
    discounts: np.ndarray


# About how many documents are ranked at a time: few enough for their rankings to stay in the cache.
_DOCUMENTS_AT_A_TIME = 2**15


def query_ranges(query_ptr: np.ndarray) -> list[tuple[int, int]]:
    """Ranges (first, last + 1) that cover all queries, each of about this many documents: parts for threads."""
    n_queries, n_docs = len(query_ptr) - 1, int(query_ptr[-1])
    if n_queries <= 1 or n_docs <= _DOCUMENTS_AT_A_TIME:
        return [(0, n_queries)] if n_queries > 0 else []
    n_ranges = min(n_queries, -(-n_docs // _DOCUMENTS_AT_A_TIME))
    aims = np.arange(1, n_ranges) * (n_docs / n_ranges)
    cuts = np.unique(np.concatenate(([0], np.searchsorted(query_ptr, aims), [n_queries])))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
