"""Computed before training: missing values, the dense ranks of labels within queries, and the number of pairs."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.threads import run_ranges


def label_levels(labels: np.ndarray, query_ptr: np.ndarray, levels: np.ndarray, n_levels: np.ndarray) -> None:
    """Fill `levels` (n_docs,) and `n_levels` (n_queries,) with the ranks within each query and their number."""

    def rank(first: int, last: int) -> None:
        longest = int(np.diff(query_ptr[first : last + 1]).max(initial=0))
        order, merged = np.empty((2, longest), dtype=np.int32)
        _rank_labels(labels, query_ptr, first, last, order, merged, levels, n_levels)

    run_ranges(rank, len(query_ptr) - 1, ranges_per_thread=2)


@kernel
def _rank_labels(labels, query_ptr, first, last, order, merged, levels, n_levels):
    for query in range(first, last):
        start, end = query_ptr[query], query_ptr[query + 1]
        own = labels[start:end]
        sort_keys(own, order, merged)
        level = -1
        for place in range(end - start):
            if place == 0 or own[order[place]] != own[order[place - 1]]:
                level += 1
            levels[start + order[place]] = level
        n_levels[query] = level + 1


def count_pairs(
    levels: np.ndarray,
    n_levels: np.ndarray,
    query_ptr: np.ndarray,
    query_weights: np.ndarray,
    document_weights: np.ndarray,
) -> int:
    """How many pairs of different levels have a weight above 0; an empty array of weights means that all are 1."""
    # A query of n documents, c of them at each level, has (n² − Σ c²)/2 pairs.
    sizes, offsets = np.diff(query_ptr), np.concatenate(([0], np.cumsum(n_levels, dtype=np.int64)))
    keys = np.repeat(offsets[:-1], sizes) + levels
    counted = np.ones(len(sizes), dtype=bool) if len(query_weights) == 0 else query_weights != 0.0
    if len(document_weights) > 0:
        keys = keys[document_weights > 0.0]
    counts = np.bincount(keys, minlength=int(offsets[-1]))
    sums = np.concatenate(([0], np.cumsum(counts))), np.concatenate(([0], np.cumsum(counts * counts)))
    documents, squares = (np.diff(total[offsets]) for total in sums)
    return int((documents * documents - squares)[counted].sum()) // 2


def has_missing(values: np.ndarray) -> bool:
    """Whether any value is NaN."""
    found = np.zeros(1, dtype=bool)

    def look(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):
            if np.isnan(values[first:last].min()):  # NaN if there is one
                found[0] = True

    run_ranges(look, len(values), ranges_per_thread=1)
    return bool(found[0])
