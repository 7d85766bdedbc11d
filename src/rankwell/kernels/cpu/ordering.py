"""Ranks the documents of queries: stable, the best score first.

Queries are flat arrays and int64 `query_ptr`; the places of a query in `order` hold its documents, numbered over all
queries.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel

# Unsigned, so that a place is not taken for one that counts from the end.
U = np.uint64
# Runs this short are sorted by insertion before they are merged.
_RUN = 16
# Up to this depth the best documents are picked one by one; deeper, sorting everything is as fast.
_SHALLOW = 32
# Labels that are whole numbers below this are ranked by counting.
_GRADES = 32


@kernel
def rank_queries(scores, query_ptr, depth, later_first, through_ties, is_begun, order, ranked_end):
    """Fill the first places of each query with its documents, best score first.

    Parameters
    ----------
    scores : float64 array (n_docs,), without NaN
    query_ptr : int64 array (n_queries + 1,)
    depth : int
        How many places are needed, 0 for all of them; the places after them are left undefined.
    later_first : bool
        Of equal scores the later document comes first, otherwise the earlier one.
    through_ties : bool
        Fill also the places of documents whose score is that of the last place needed.
    is_begun : bool
        `order` is what the same call filled for other scores. It changes nothing but the time, which is less where the
        two rankings are alike.
    order : int64 array (n_docs,), filled
    ranked_end : int64 array (n_queries,), filled
        The place after the last one that was filled.
    """
    spare, is_kept = np.empty(len(order), np.int64), np.zeros(len(order), np.uint8)
    for query in range(len(query_ptr) - 1):
        start, end = query_ptr[query], query_ptr[query + 1]
        if 0 < depth <= _SHALLOW and depth < end - start:
            if is_begun:
                _pick_again(scores, U(start), U(end), U(depth), later_first, order, is_kept)
            else:
                _pick_best(scores, U(start), U(end), U(depth), later_first, order)
            ranked_end[query] = start + depth
            if through_ties:
                ranked_end[query] = _append_ties(scores, U(start), U(end), U(depth), later_first, order)
            continue
        for place in range(start, end):
            order[place] = start + end - 1 - place if later_first else place
        _sort_descending(scores, order, start, end, spare)
        ranked_end[query] = end


@kernel
def rank_again(scores, query_ptr, order):
    """Rank by another score: documents with equal scores keep the order that they have in `order`."""
    spare = np.empty(len(order), np.int64)
    for query in range(len(query_ptr) - 1):
        _sort_descending(scores, order, query_ptr[query], query_ptr[query + 1], spare)


@inner_kernel(allocates=False)
def _pick_best(scores, start, end, depth, later_first, order):
    """The best `depth` documents by insertion: most documents fail the first comparison."""
    filled = start
    for step in range(end - start):
        doc = end - U(1) - step if later_first else start + step
        if filled == start + depth:
            # Not better than the worst one kept: of equal ones the first stays ahead.
            if scores[doc] <= scores[U(order[filled - U(1)])]:
                continue
        else:
            filled += U(1)
        place = filled - U(1)
        while place > start and scores[U(order[place - U(1)])] < scores[doc]:
            order[place] = order[place - U(1)]
            place -= U(1)
        order[place] = doc


@inner_kernel(allocates=False)
def _insert(doc, scores, start, place, later_first, order):
    """Put a document into order[start:place + 1], of which the last place is free."""
    score = scores[doc]
    while place > start:
        other = U(order[place - U(1)])
        if scores[other] > score or (scores[other] == score and (other > doc) == later_first):
            break
        order[place] = other
        place -= U(1)
    order[place] = doc


@inner_kernel(allocates=False)
def _pick_again(scores, start, end, depth, later_first, order, is_kept):
    """As `_pick_best`, from the best of another ranking; often no other document is better than the last of them.

    is_kept : uint8 (n_docs,), 0 before and after
    """
    last_place = start + depth - U(1)
    for place in range(start, last_place + U(1)):
        _insert(U(order[place]), scores, start, place, later_first, order)
    last, n_reaching = U(order[last_place]), 0
    for doc in range(start, end):
        n_reaching += np.int64(scores[doc] >= scores[last])
    if n_reaching == np.int64(depth):
        return
    for place in range(start, last_place + U(1)):
        is_kept[U(order[place])] = 1
    for doc in range(start, end):
        if scores[doc] < scores[last] or is_kept[doc] != 0:
            continue
        if scores[doc] == scores[last] and (doc > last) != later_first:
            continue
        is_kept[last], is_kept[doc] = 0, 1
        _insert(doc, scores, start, last_place, later_first, order)
        last = U(order[last_place])
    for place in range(start, last_place + U(1)):
        is_kept[U(order[place])] = 0


@inner_kernel(allocates=False)
def _append_ties(scores, start, end, depth, later_first, order):
    """After the best `depth` documents, those with the score of the last of them; returns the place after them.

    In `_pick_best` the first of equal documents win, so these are the ones that come after the last one kept.
    """
    filled = start + depth
    last = U(order[filled - U(1)])
    n_after = last - start if later_first else end - last - U(1)
    for step in range(U(1), n_after + U(1)):
        doc = last - step if later_first else last + step
        if scores[doc] == scores[last]:
            order[filled] = doc
            filled += U(1)
    return filled


@inner_kernel
def _sort_descending(keys, order, first, last, spare):
    """Merge sort of order[first:last] by descending key; equal keys keep their order."""
    for start in range(first, last, _RUN):
        for place in range(start + 1, min(start + _RUN, last)):
            doc = order[place]
            key = keys[doc]
            hole = place
            while hole > start and keys[order[hole - 1]] < key:
                order[hole] = order[hole - 1]
                hole -= 1
            order[hole] = doc
    width = _RUN
    while width < last - first:
        for start in range(first, last - width, 2 * width):
            _merge(keys, order, spare, start, start + width, min(start + 2 * width, last))
        width *= 2


@inner_kernel
def _merge(keys, order, spare, start, middle, end):
    """Merge two sorted neighbours, neither of them empty; only the left one is moved aside."""
    if keys[order[middle - 1]] >= keys[order[middle]]:
        return
    n_left = middle - start
    for place in range(n_left):
        spare[place] = order[start + place]
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


def rank_labels(labels: np.ndarray, query_ptr: np.ndarray, order: np.ndarray) -> None:
    """Fill `order` with the documents of each query, the highest label first; of equal labels the earlier document.

    Grades are nearly always small whole numbers: counting them takes a sixth of the time that sorting does. Other
    labels are counted, too, as long as a query has few different ones.
    """
    counted = count_grades(labels, query_ptr, order, np.empty(_GRADES + 1, np.int64)) or count_values(
        labels, query_ptr, order, np.empty(len(labels), np.int64)
    )
    if not counted:
        rank_queries(labels, query_ptr, 0, False, False, False, order, np.empty(len(query_ptr) - 1, np.int64))


@kernel
def count_grades(labels, query_ptr, order, starts):
    """Like `rank_labels`; returns False if that was not possible, because a label is not a small whole number."""
    for query in range(len(query_ptr) - 1):
        first, last = query_ptr[query], query_ptr[query + 1]
        for grade in range(_GRADES + 1):
            starts[grade] = 0
        for doc in range(first, last):
            label = labels[doc]
            if not 0.0 <= label < _GRADES or np.int64(label) != label:
                return False
            starts[np.int64(label)] += 1
        # From counts to the place after each grade's last document, the highest grade first.
        starts[_GRADES] = first
        for grade in range(_GRADES - 1, -1, -1):
            starts[grade] += starts[grade + 1]
        for doc in range(last - 1, first - 1, -1):
            grade = np.int64(labels[doc])
            starts[grade] -= 1
            order[starts[grade]] = doc
    return True


@kernel
def count_values(labels, query_ptr, order, places):
    """Like `rank_labels`; returns False if that was not possible, because a query has many different labels.

    `places` (n_docs,) is scratch: each document's label among the query's `values`, in the order they were met.
    """
    values, counts, ends = np.empty(_GRADES), np.empty(_GRADES, np.int64), np.empty(_GRADES, np.int64)
    for query in range(len(query_ptr) - 1):
        first, last = query_ptr[query], query_ptr[query + 1]
        n_values = 0
        for doc in range(first, last):
            place = 0
            while place < n_values and values[place] != labels[doc]:
                place += 1
            if place == _GRADES:
                return False
            if place == n_values:
                values[place], counts[place] = labels[doc], 0
                n_values += 1
            places[doc] = place
            counts[place] += 1
        # The place after each value's last document, the highest value first.
        for place in range(n_values):
            ends[place] = first
            for other in range(n_values):
                ends[place] += counts[other] if values[other] >= values[place] else 0
        for doc in range(last - 1, first - 1, -1):
            ends[places[doc]] -= 1
            order[ends[places[doc]]] = doc
    return True
