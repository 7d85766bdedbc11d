"""Ranks the documents of one query: stable, the best score first."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

# Runs this short are sorted by insertion before they are merged.
_RUN = 16
# Up to this depth the best documents are picked one by one; deeper, sorting everything is as fast.
_SHALLOW = 32
# Labels that are whole numbers below this are ranked by counting.
_GRADES = 32


@kernel
def rank_documents(scores, depth, later_first, order, spare):
    """Fill the first places of `order` with documents, best score first.

    Parameters
    ----------
    scores : float array (n_docs,), without NaN
    depth : int
        How many places are needed; the places behind them are left undefined.
    later_first : bool
        Of equal scores the later document comes first, else the earlier one.
    order, spare : int64 arrays (n_docs,)
        The answer and room to work.
    """
    n_docs = len(scores)
    if depth <= _SHALLOW and depth < n_docs:
        _pick_best(scores, depth, later_first, order)
        return
    for place in range(n_docs):
        order[place] = n_docs - 1 - place if later_first else place
    _sort_descending(scores, order, spare)


@kernel
def _pick_best(scores, depth, later_first, order):
    """The best `depth` documents by insertion: most documents fail the first comparison."""
    n_docs = len(scores)
    filled = 0
    for step in range(n_docs):
        doc = n_docs - 1 - step if later_first else step
        score = scores[doc]
        if filled == depth:
            # Not better than the worst one kept: of equals the one seen first stays ahead.
            if score <= scores[order[depth - 1]]:
                continue
        else:
            filled += 1
        place = filled - 1
        while place > 0 and scores[order[place - 1]] < score:
            order[place] = order[place - 1]
            place -= 1
        order[place] = doc


@kernel
def _sort_descending(keys, order, spare):
    """Merge sort of `order` by descending key; equal keys keep their order."""
    n_docs = len(order)
    for start in range(0, n_docs, _RUN):
        for place in range(start + 1, min(start + _RUN, n_docs)):
            doc = order[place]
            key = keys[doc]
            hole = place
            while hole > start and keys[order[hole - 1]] < key:
                order[hole] = order[hole - 1]
                hole -= 1
            order[hole] = doc
    width = _RUN
    while width < n_docs:
        for start in range(0, n_docs, 2 * width):
            _merge(keys, order, spare, start, min(start + width, n_docs), min(start + 2 * width, n_docs))
        width *= 2


@kernel
def _merge(keys, order, spare, start, middle, end):
    """Merge two sorted neighbours; only the left one is moved aside."""
    if middle >= end or keys[order[middle - 1]] >= keys[order[middle]]:
        return
    n_left = middle - start
    spare[:n_left] = order[start:middle]
    left, right, place = 0, middle, start
    while left < n_left and right < end:
        if keys[spare[left]] >= keys[order[right]]:
            order[place] = spare[left]
            left += 1
        else:
            order[place] = order[right]
            right += 1
        place += 1
    while left < n_left:
        order[place] = spare[left]
        left += 1
        place += 1


@kernel
def rank_by_label(labels, order, spare):
    """Fill `order` with documents, the highest label first; of equal labels the earlier document.

    Grades are nearly always small whole numbers: counting them takes a sixth of the time that sorting does.
    """
    starts = np.zeros(_GRADES + 1, np.int64)
    for label in labels:
        if not 0.0 <= label < _GRADES or np.int64(label) != label:
            rank_documents(labels, len(labels), False, order, spare)
            return
        starts[np.int64(label)] += 1
    # From counts to the place behind each grade's last document, the highest grade first.
    for grade in range(_GRADES - 1, -1, -1):
        starts[grade] += starts[grade + 1]
    for doc in range(len(labels) - 1, -1, -1):
        grade = np.int64(labels[doc])
        starts[grade] -= 1
        order[starts[grade]] = doc


@kernel
def query_blocks(n_queries):
    """How many blocks of queries the parallel loops run over: a fixed partition, whatever the number of threads."""
    return np.int64(min(n_queries, 256))


@kernel
def largest_query(query_ptr, first, last):
    """The most documents that one of the queries first, ..., last − 1 has."""
    largest = np.int64(0)
    for query in range(first, last):
        largest = max(largest, query_ptr[query + 1] - query_ptr[query])
    return largest
