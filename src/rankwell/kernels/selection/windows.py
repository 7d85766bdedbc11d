"""The best k documents of a segment, one window of documents at a time.

Vocabulary. A *term* reads one list (BM25) or several that are summed before they saturate (BM25F): a word's lists in
several streams, or those of words that count as one. Terms are in order of descending weight, and every score is the
sum of its terms' shares in that order, so that a document's score is the same to the last bit regardless of how it was
found. The *threshold* is the k-th best score so far: a document must be above it, because of
equal scores the earlier one is kept.

In each window of documents the lists' bounds limit the score of a document. A window below the threshold is
skipped. Otherwise the last terms whose bounds together stay below the threshold are *optional* (MaxScore): the other
terms alone make candidates, summed in a dense array, and optional terms are looked up for the candidates that can
still be among the best. If terms are required, candidates are the documents of the rarest of them instead; if only few
documents are allowed, those are the candidates.

A bound that was summed in the same order as a score is exact. One that was not is compared with a threshold lowered by
`SLACK`, which is more than the rounding of 1,024 additions.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.bits import lowest_bit
from rankwell.kernels.cpu.compilation import inlined_kernel, kernel
from rankwell.kernels.postings.blocks import load_documents
from rankwell.kernels.postings.rules import BLOCK
from rankwell.kernels.selection.best import offer
from rankwell.kernels.selection.lanes import LANES, lanes_above
from rankwell.kernels.selection.lists import (
    CHUNK,
    CURSOR,
    DECODED,
    FIELDS,
    REACH,
    ROW,
    SIZE,
    STOP,
    WINDOW,
    add_list,
    base_of,
    bound_in_window,
    decode,
    look_up_list,
    open_list,
    size_of,
)
from rankwell.kernels.selection.parts import MARGIN, saturated

SLACK = 1.0 - 1e-12
DRIFT = 7
# A term is added to all documents of a window, not looked up for the candidates, from this many of them per block on.
CANDIDATES_PER_BLOCK = 16


class QueryArrays(NamedTuple):
    """A query as its terms, by descending weight.

    numbers : int64 (n_lists,), lists in the segment, -1 if it has none
    list_ptr : int64 (n_terms + 1,), the lists of each term; BM25: one each
    rows : int64 (n_lists,), the row of `norms` that each list is scored with
    list_weights : float64 (n_lists,) for BM25F, (0,) for BM25
    weights : float64 (n_terms,), query frequency · idf · (k1 + 1)
    required : uint8 (n_terms,), 1 if a document must have the term
    allowed : uint8 (n_docs,), 0 if a document may not be found; (0,) if all may be
    chosen : int32, the allowed documents, ascending, if they are few; (0,) if they are not
    """

    numbers: np.ndarray
    list_ptr: np.ndarray
    rows: np.ndarray
    list_weights: np.ndarray
    weights: np.ndarray
    required: np.ndarray
    allowed: np.ndarray
    chosen: np.ndarray


class SearchRoom(NamedTuple):
    """Scratch memory. Searches do not depend on what earlier ones left in it, so it is made once per thread.

    totals, stream_totals : float64 (WINDOW,), a document's score and a term's sum over streams; zero between windows
    touched, stream_touched : uint8 (WINDOW / CHUNK,), which chunks of them are not zero
    candidates : int32 (WINDOW,); reached, shares : float64 (WINDOW,), what each has reached and what a term adds
    lists : int64 (n, FIELDS); documents : uint32 (n · BLOCK,), parts : float64 (n · BLOCK,), see `lists.py`
    driver, driven : the same for the list that makes candidates if terms are required; frequencies : uint32 (BLOCK,)
    most, rest : float64 (n + 1,), the bounds of terms in a window, and of all terms from one on
    """

    totals: np.ndarray
    stream_totals: np.ndarray
    touched: np.ndarray
    stream_touched: np.ndarray
    candidates: np.ndarray
    reached: np.ndarray
    shares: np.ndarray
    lists: np.ndarray
    documents: np.ndarray
    parts: np.ndarray
    driver: np.ndarray
    driven: np.ndarray
    frequencies: np.ndarray
    most: np.ndarray
    rest: np.ndarray


_rooms = threading.local()


def room_for(n_lists: int) -> SearchRoom:
    """This thread's scratch for a query with this many lists."""
    room: SearchRoom | None = getattr(_rooms, "room", None)
    if room is None or len(room.lists) < n_lists:
        n = 1 << (n_lists - 1).bit_length()
        room = _rooms.room = SearchRoom(
            totals=np.zeros(WINDOW),
            stream_totals=np.zeros(WINDOW),
            touched=np.zeros(WINDOW // CHUNK, np.uint8),
            stream_touched=np.zeros(WINDOW // CHUNK, np.uint8),
            candidates=np.empty(WINDOW, np.int32),
            reached=np.empty(WINDOW),
            shares=np.empty(WINDOW),
            lists=np.empty((n, FIELDS), np.int64),
            documents=np.zeros(n * BLOCK, np.uint32),
            parts=np.ones(n * BLOCK),
            driver=np.empty((1, FIELDS), np.int64),
            driven=np.zeros(BLOCK, np.uint32),
            frequencies=np.ones(BLOCK, np.uint32),
            most=np.zeros(n + 1),
            rest=np.zeros(n + 1),
        )
    return room


@inlined_kernel
def _bound_terms(
    last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, required, k1, lists,
    documents, parts, frequencies, start, stop, most,
):  # fmt: skip
    """most[t] = the most that term t adds in the window; returns the most for a document, -1 if none qualifies."""
    fielded, total = len(list_weights) > 0, 0.0
    for term in range(len(weights)):
        x = 0.0
        for i in range(list_ptr[term], list_ptr[term + 1]):
            part = bound_in_window(
                last_doc, data, widths, postings, norms, bounds, lists[i, ROW], fielded, lists, documents, parts,
                frequencies, i, start, stop,
            )  # fmt: skip
            x += list_weights[i] * part if fielded else part
        if x == 0.0 and required[term]:
            return -1.0
        if fielded and x > 0.0:
            x = saturated(x, k1) * MARGIN
        most[term] = weights[term] * x
        total += most[term]
    return total


@inlined_kernel
def _essential_terms(n_terms, most, threshold, prune, rest):
    """How many terms make candidates; the others together stay below the threshold. rest[t] = all bounds from t on."""
    essential = n_terms
    rest[n_terms] = 0.0
    for term in range(n_terms - 1, -1, -1):
        rest[term] = rest[term + 1] + most[term]
        if prune and essential == term + 1 and rest[term] <= threshold * SLACK:
            essential = term
    return essential


@inlined_kernel
def _scan_list(
    last_doc, data, widths, postings, norms, bounds, weight, allowed, lists, documents, parts, frequencies, term, start,
    stop, cut, candidates, reached, shares,
):  # fmt: skip
    """Candidates from the only term that makes any: its postings above `cut`; returns how many."""
    n, row = 0, term * BLOCK
    anyone, least = len(allowed) == 0, max(cut, 0.0)
    block, end = lists[term, CURSOR], lists[term, STOP]
    base = base_of(last_doc, lists, term, block)
    while block < end and base < stop:
        if weight * bounds[block] > cut:
            decode(last_doc, data, widths, postings, norms, 0, False, lists, documents, parts, frequencies, term, block)
            for j in range(BLOCK):
                shares[j] = weight * parts[row + j] if j < lists[term, SIZE] else 0.0
            for low in range(0, BLOCK, LANES):
                above = lanes_above(shares, low, least)
                while above:
                    j = low + lowest_bit(above)
                    above &= above - np.uint64(1)
                    doc = np.int64(documents[row + j])
                    if start <= doc and doc < stop and (anyone or allowed[doc]):
                        candidates[n], reached[n] = doc, shares[j]
                        n += 1
        base = np.int64(last_doc[block]) + 1
        block += 1
    return n


@inlined_kernel
def _saturate(weight, k1, stream_totals, stream_touched, totals, touched):
    """Add BM25F's share of a term to the totals, from its sum over streams, which is cleared."""
    for chunk in range(len(touched)):
        if stream_touched[chunk]:
            stream_touched[chunk], touched[chunk] = 0, 1
            for i in range(np.uint64(chunk * CHUNK), np.uint64((chunk + 1) * CHUNK)):
                if stream_totals[i] > 0.0:
                    totals[i] += weight * saturated(stream_totals[i], k1)
                    stream_totals[i] = 0.0


@inlined_kernel
def _gather_candidates(totals, touched, allowed, start, cut, candidates, reached):
    """Candidates from the totals: those above `cut`; clears the totals, returns how many."""
    n, anyone, least = 0, len(allowed) == 0, max(cut, 0.0)
    for chunk in range(len(touched)):
        if touched[chunk]:
            touched[chunk] = 0
            low = chunk * CHUNK
            above = lanes_above(totals, low, least)
            while above:
                place = low + lowest_bit(above)
                above &= above - np.uint64(1)
                if anyone or allowed[start + place]:
                    candidates[n], reached[n] = start + place, totals[place]
                    n += 1
            for i in range(np.uint64(low), np.uint64(low + CHUNK)):
                totals[i] = 0.0
    return n


@inlined_kernel
def _take_driver(last_doc, data, widths, postings, driver, documents, allowed, start, stop, candidates, reached):
    """Candidates from the list of a required term: its documents in the window; returns how many.

    driver : int64 (1, FIELDS), the numbers of that list
    """
    n, block, anyone = 0, driver[0, CURSOR], len(allowed) == 0
    while block < driver[0, STOP] and last_doc[block] < start:
        block += 1
    driver[0, CURSOR] = block
    while block < driver[0, STOP] and base_of(last_doc, driver, 0, block) < stop:
        size = size_of(driver, 0, block)
        if driver[0, DECODED] != block:
            driver[0, DECODED] = block
            base = base_of(last_doc, driver, 0, block)
            load_documents(postings, data[block], widths[block], base, size, documents, 0)
        for j in range(size):
            doc = np.int64(documents[j])
            if start <= doc and doc < stop and (anyone or allowed[doc]):
                candidates[n], reached[n] = doc, 0.0
                n += 1
        block += 1
    return n


@inlined_kernel
def _take_chosen(chosen, place, start, stop, candidates, reached):
    """Candidates from the documents that are allowed, from chosen[place] on: returns how many, and the next place."""
    n = 0
    while place < len(chosen) and chosen[place] < start:
        place += 1
    while place < len(chosen) and chosen[place] < stop:
        candidates[n], reached[n] = chosen[place], 0.0
        n += 1
        place += 1
    return n, place


@inlined_kernel
def _keep_candidates(shares, must, fielded, weight, k1, least, n, candidates, reached):
    """Add a term's shares to the candidates and drop those with at most `least`; returns how many are left."""
    kept = 0
    for c in range(n):
        total = reached[c]
        if shares[c] > 0.0:
            total += weight * saturated(shares[c], k1) if fielded else shares[c]
        elif must:
            continue
        if total > least:
            candidates[kept], reached[kept] = candidates[c], total
            kept += 1
    return kept


@inlined_kernel
def _find_candidates(
    last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, allowed, k1, prune, lists,
    documents, parts, frequencies, start, stop, most, total, essential, threshold, cut, totals, stream_totals, touched,
    stream_touched, candidates, reached, shares,
):  # fmt: skip
    """Candidates from the first `essential` terms; returns how many. A single list needs no sums."""
    fielded = len(list_weights) > 0
    present, only = 0, 0
    for term in range(essential):
        if most[term] > 0.0:
            present, only = present + 1, term
    if present == 1 and not fielded:
        n = _scan_list(
            last_doc, data, widths, postings, norms, bounds, weights[only], allowed, lists, documents, parts,
            frequencies, only, start, stop, cut, candidates, reached, shares,
        )  # fmt: skip
    else:
        term = 0
        for i in range(list_ptr[essential]):
            term += i == list_ptr[term + 1]
            factor, least = weights[term], -1.0
            if fielded:
                factor = list_weights[i]
            elif prune:
                least = (threshold * SLACK - (total - most[term])) / weights[term]
            if most[term] > 0.0:
                add_list(
                    last_doc, data, widths, postings, norms, bounds, lists[i, ROW], fielded, lists, documents, parts,
                    frequencies, i, start, stop, factor, least,
                    stream_totals if fielded else totals, stream_touched if fielded else touched,
                )  # fmt: skip
            if fielded and i + 1 == list_ptr[term + 1]:
                _saturate(weights[term], k1, stream_totals, stream_touched, totals, touched)
        n = _gather_candidates(totals, touched, allowed, start, cut, candidates, reached)
    return n


@inlined_kernel
def _take_shares(totals, touched, start, candidates, n, shares):
    """shares[c] = the total of each candidate; clears the totals."""
    for c in range(n):
        shares[c] = totals[candidates[c] - start]
    for chunk in range(len(touched)):
        if touched[chunk]:
            touched[chunk] = 0
            for i in range(np.uint64(chunk * CHUNK), np.uint64((chunk + 1) * CHUNK)):
                totals[i] = 0.0


@inlined_kernel
def _look_up_terms(
    last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, required, k1, lists, documents,
    parts, frequencies, start, stop, most, rest, essential, threshold, totals, touched, candidates, reached, shares, n,
):  # fmt: skip
    """Add the terms from `essential` on to the candidates; returns how many of them can still beat the threshold."""
    fielded = len(list_weights) > 0
    for term in range(essential, len(weights)):
        if n == 0 or most[term] == 0.0:
            continue
        least, n_blocks = threshold * SLACK - rest[term + 1], 0
        for i in range(list_ptr[term], list_ptr[term + 1]):
            n_blocks += lists[i, REACH]
        is_added = n > CANDIDATES_PER_BLOCK * n_blocks
        for c in range(n):
            shares[c] = 0.0
        for i in range(list_ptr[term], list_ptr[term + 1]):
            factor = list_weights[i] if fielded else weights[term]
            if is_added:
                if lists[i, REACH] > 0:
                    add_list(
                        last_doc, data, widths, postings, norms, bounds, lists[i, ROW], fielded, lists, documents,
                        parts, frequencies, i, start, stop, factor, -1.0, totals, touched,
                    )  # fmt: skip
            else:
                look_up_list(
                    last_doc, data, widths, postings, norms, bounds, lists[i, ROW], fielded, lists, documents, i,
                    candidates, n, factor, reached, -1.0 if fielded or required[term] else least, shares,
                )  # fmt: skip
        if is_added:
            _take_shares(totals, touched, start, candidates, n, shares)
        n = _keep_candidates(shares, required[term], fielded, weights[term], k1, least, n, candidates, reached)
    return n


@kernel(error_model="numpy", allocates=False)
def search_windows(
    arrays, scoring, query, k1, driver_number, n_docs, step, prune, best, room, size, threshold, doc_base
):  # fmt: skip
    """Offer the documents of one of each `step` windows of a segment to `best`, in ascending order.

    arrays : PostingArrays; scoring : ScoringArrays; query : QueryArrays; best : BestArrays with `size` documents so far
    room : SearchRoom for as many lists as the query has
    k1 : float64; driver_number : a list that has every document that may be found, the shortest one, or -1
    n_docs : int64, how many of the segment's documents, from the first on, are searched
    prune : bool, whether to skip documents that cannot be among the best; the result is the same
    threshold : float64, only higher scores are wanted; doc_base : int64, number of the segment's first document

    Returns
    -------
    size, threshold : how many documents `best` has now, and the score that later ones must beat
    """
    first_block, doc_freq, last_doc, data, widths, postings = arrays[:6]
    norms, bounds, _ = scoring
    numbers, list_ptr, rows, list_weights, weights, required, allowed, chosen = query
    best_scores, best_docs, best_room, k = best
    totals, stream_totals, touched, stream_touched, candidates, reached, shares = room[:7]
    lists, documents, parts, driver, driven, frequencies, most, rest = room[7:]
    n_terms, place = len(weights), 0
    for i in range(len(numbers)):
        open_list(numbers[i], rows[i], first_block, doc_freq, n_docs, lists, i)
    open_list(driver_number, 0, first_block, doc_freq, n_docs, driver, 0)
    for number in range(0, -(-n_docs // WINDOW), step):
        # The place within each `step` windows varies, so that the sample is not biased by periodic collections.
        start = (number + number // step * DRIFT % step) * WINDOW
        if start >= n_docs:
            break
        stop = min(start + WINDOW, n_docs)
        total = _bound_terms(
            last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, required, k1,
            lists, documents, parts, frequencies, start, stop, most,
        )  # fmt: skip
        if total < 0.0 or (prune and total <= threshold):
            continue
        essential = _essential_terms(n_terms, most, threshold, prune, rest)
        cut = threshold if essential == n_terms else threshold * SLACK - rest[essential]
        if len(chosen) > 0:
            essential = 0
            n, place = _take_chosen(chosen, place, start, stop, candidates, reached)
        elif driver_number >= 0:
            essential = 0
            n = _take_driver(
                last_doc, data, widths, postings, driver, driven, allowed, start, stop, candidates, reached
            )
        else:
            n = _find_candidates(
                last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, allowed, k1,
                prune, lists, documents, parts, frequencies, start, stop, most, total, essential, threshold, cut,
                totals, stream_totals, touched, stream_touched, candidates, reached, shares,
            )  # fmt: skip
        n = _look_up_terms(
            last_doc, data, widths, postings, norms, bounds, list_ptr, list_weights, weights, required, k1,
            lists, documents, parts, frequencies, start, stop, most, rest, essential, threshold, totals, touched,
            candidates, reached, shares, n,
        )  # fmt: skip
        size, threshold = offer(best_scores, best_docs, best_room, k, candidates, reached, n, doc_base, size, threshold)
    return size, threshold
