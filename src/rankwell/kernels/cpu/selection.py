"""The best k documents of a segment, a window of documents at a time.

Vocabulary. A *term* reads one list (BM25) or one list a stream (BM25F). Terms come by falling weight, and every score
is the sum of its terms' shares in that order, so that a document's score is the same to the last bit however it was
found. The *threshold* is the k-th best score so far: a document must beat it, because it comes later than its equals.

In each window of documents the lists' bounds say what a document can reach at most. A window below the threshold is
skipped. Otherwise the last terms whose bounds together stay below the threshold are *optional* (MaxScore): the other
terms alone make candidates, summed in a dense array, and optional terms are looked up for the candidates that can
still make it. Where terms are required, candidates are the documents of the rarest of them instead.

A bound that was summed in the same order as a score is exact. One that was not is compared with a threshold lowered by
`SLACK`, which is more than the rounding of 1,024 additions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.posting_blocks import BLOCK, block_base, block_documents
from rankwell.kernels.cpu.selection_best import count_above, finish, offer, open_best
from rankwell.kernels.cpu.selection_lanes import LANES, lanes_above, lowest_bit
from rankwell.kernels.cpu.selection_lists import (
    CHUNK,
    WINDOW,
    add_list,
    bound_in_window,
    decode,
    look_up_list,
    open_lists,
)
from rankwell.kernels.cpu.selection_parts import saturated

SLACK = 1.0 - 1e-12
# Every SAMPLED-th window is searched first to guess the threshold, in segments of SAMPLES windows or more.
SAMPLED = 16
SAMPLES = 48


class QueryArrays(NamedTuple):
    """A query as its terms, by falling weight.

    numbers : int64 (n_terms · n_columns,), lists in the segment, -1 where it has none
    weights : float64 (n_terms,), query frequency · idf · (k1 + 1)
    required : uint8 (n_terms,), 1 where a document must have the term
    column_weights : float64 (n_columns,) for BM25F, (0,) for BM25
    allowed : uint8 (n_docs,), 0 where a document may not be found; (0,) where all may be
    """

    numbers: np.ndarray
    weights: np.ndarray
    required: np.ndarray
    column_weights: np.ndarray
    allowed: np.ndarray


class WindowArrays(NamedTuple):
    """What is known of the window's documents.

    bounds : float64 (n_terms,), what a term adds at most; rest : float64 (n_terms + 1,), all terms from here on
    totals, stream_totals : float64 (WINDOW,), all zero between uses; touched, stream_touched : uint8 (chunks,), too
    candidates : int32 (WINDOW,), documents; reached : float64 (WINDOW,), their sums so far
    shares : float64 (WINDOW,); slots : uint8 (WINDOW,), scratch
    """

    bounds: np.ndarray
    rest: np.ndarray
    totals: np.ndarray
    touched: np.ndarray
    stream_totals: np.ndarray
    stream_touched: np.ndarray
    candidates: np.ndarray
    reached: np.ndarray
    shares: np.ndarray
    slots: np.ndarray


@kernel(forceinline=True)
def _open_window(n_terms):
    chunks = WINDOW // CHUNK
    return WindowArrays(
        np.zeros(n_terms),
        np.zeros(n_terms + 1),
        np.zeros(WINDOW),
        np.zeros(chunks, np.uint8),
        np.zeros(WINDOW),
        np.zeros(chunks, np.uint8),
        np.empty(WINDOW, np.int32),
        np.empty(WINDOW),
        np.empty(WINDOW),
        np.zeros(WINDOW, np.uint8),
    )


@kernel(error_model="numpy", forceinline=True)
def _bound_terms(arrays, scoring, query, k1, lists, window, start, stop):
    """Set the bounds of every term in the window; returns what a document can reach, -1 where none can qualify."""
    n_columns, fielded = scoring.norms.shape[0], len(query.column_weights) > 0
    total = 0.0
    for term in range(len(query.weights)):
        x = 0.0
        for column in range(n_columns):
            i = term * n_columns + column
            part = bound_in_window(arrays, scoring.norms[column], scoring.block_bounds, fielded, lists, i, start, stop)
            x += query.column_weights[column] * part if fielded else part
        if fielded and x > 0.0:
            x = saturated(x, k1)
        if x == 0.0 and query.required[term]:
            return -1.0
        window.bounds[term] = query.weights[term] * x
        total += window.bounds[term]
    return total


@kernel(forceinline=True)
def _essential_terms(window, threshold, prune):
    """How many terms make candidates; the others together stay below the threshold. Fills `window.rest`."""
    n_terms = len(window.bounds)
    essential = n_terms
    window.rest[n_terms] = 0.0
    for term in range(n_terms - 1, -1, -1):
        window.rest[term] = window.rest[term + 1] + window.bounds[term]
        if prune and essential == term + 1 and window.rest[term] <= threshold * SLACK:
            essential = term
    return essential


@kernel(forceinline=True)
def _scan_list(arrays, scoring, query, lists, window, term, start, stop, cut):
    """Candidates from the only term that makes any: its postings above `cut`, in place; returns how many."""
    n, weight = 0, query.weights[term]
    block, end = lists.cursor[term], lists.stop[term]
    documents, parts = lists.documents[term], lists.parts[term]
    anyone, least = len(query.allowed) == 0, max(cut, 0.0)
    while block < end and block_base(arrays, lists.numbers[term], block) < stop:
        if weight * scoring.block_bounds[block] > cut:
            count = decode(arrays, scoring.norms[0], False, lists, term, block)
            for j in range(BLOCK):
                window.shares[j] = weight * parts[j] if j < count else 0.0
            for low in range(0, BLOCK, LANES):
                above = lanes_above(window.shares, low, least)
                while above:
                    j = low + lowest_bit(above)
                    above &= above - np.uint64(1)
                    doc = np.int64(documents[j])
                    if start <= doc and doc < stop and (anyone or query.allowed[doc]):
                        window.candidates[n], window.reached[n] = doc, window.shares[j]
                        n += 1
        block += 1
    return n


@kernel(error_model="numpy", forceinline=True)
def _add_streams(arrays, scoring, query, k1, lists, window, term, start, stop):
    """Add BM25F's share of a term to the totals: its streams are summed first, then saturated."""
    n_columns = scoring.norms.shape[0]
    for column in range(n_columns):
        add_list(
            arrays, scoring.norms[column], scoring.block_bounds, True, lists, term * n_columns + column, start, stop,
            query.column_weights[column], -1.0, window.stream_totals, window.stream_touched,
        )  # fmt: skip
    for chunk in range(len(window.stream_touched)):
        if window.stream_touched[chunk]:
            window.stream_touched[chunk], window.touched[chunk] = 0, 1
            for i in range(chunk * CHUNK, (chunk + 1) * CHUNK):
                x = window.stream_totals[i]
                if x > 0.0:
                    window.totals[i] += query.weights[term] * saturated(x, k1)
                    window.stream_totals[i] = 0.0


@kernel(forceinline=True)
def _gather_candidates(query, window, start, cut):
    """Candidates from the totals: those above `cut`; clears the totals, returns how many."""
    n, anyone, least = 0, len(query.allowed) == 0, max(cut, 0.0)
    for chunk in range(len(window.touched)):
        if window.touched[chunk]:
            window.touched[chunk] = 0
            low = chunk * CHUNK
            above = lanes_above(window.totals, low, least)
            while above:
                place = low + lowest_bit(above)
                above &= above - np.uint64(1)
                if anyone or query.allowed[start + place]:
                    window.candidates[n], window.reached[n] = start + place, window.totals[place]
                    n += 1
            for i in range(np.uint64(low), np.uint64(low + CHUNK)):
                window.totals[i] = 0.0
    return n


@kernel(error_model="numpy", forceinline=True)
def _make_candidates(arrays, scoring, query, k1, lists, window, start, stop, total, essential, threshold, prune):
    """Candidates of a window from the first `essential` terms; returns how many."""
    n_terms, fielded = len(query.weights), len(query.column_weights) > 0
    cut = threshold if essential == n_terms else threshold * SLACK - window.rest[essential]
    present, only = 0, 0
    for term in range(essential):
        if window.bounds[term] > 0.0:
            present, only = present + 1, term
    if present == 1 and not fielded:
        return _scan_list(arrays, scoring, query, lists, window, only, start, stop, cut)
    for term in range(essential):
        if window.bounds[term] == 0.0:
            continue
        if fielded:
            _add_streams(arrays, scoring, query, k1, lists, window, term, start, stop)
            continue
        weight, others = query.weights[term], total - window.bounds[term]
        least = (threshold * SLACK - others) / weight if prune else -1.0
        add_list(
            arrays, scoring.norms[0], scoring.block_bounds, False, lists, term, start, stop,
            weight, least, window.totals, window.touched,
        )  # fmt: skip
    return _gather_candidates(query, window, start, cut)


@kernel(forceinline=True)
def _make_required(arrays, driver, query, window, start, stop):
    """Candidates from a required term's list: its documents in the window; returns how many.

    driver : ListCursors of that one list
    """
    n, block, anyone = 0, driver.cursor[0], len(query.allowed) == 0
    while block < driver.stop[0] and block_base(arrays, driver.numbers[0], block) < stop:
        if arrays.last_doc[block] >= start:
            if driver.decoded[0] != block:
                driver.size[0] = block_documents(arrays, driver.numbers[0], block, driver.documents[0])
                driver.decoded[0] = block
            for j in range(driver.size[0]):
                doc = driver.documents[0, j]
                if start <= doc and doc < stop and (anyone or query.allowed[doc]):
                    window.candidates[n], window.reached[n] = doc, 0.0
                    n += 1
        else:
            driver.cursor[0] = block + 1
        block += 1
    return n


@kernel(error_model="numpy", forceinline=True)
def _look_up_term(arrays, scoring, query, k1, lists, window, term, n, start, threshold):
    """Add a term's share to the candidates and drop those that cannot make it; returns how many are left."""
    n_columns, fielded = scoring.norms.shape[0], len(query.column_weights) > 0
    rest, must = window.rest[term + 1], query.required[term]
    window.shares[:n] = 0.0
    least = threshold * SLACK - rest if not (fielded or must) else -1.0
    for column in range(n_columns):
        factor = query.column_weights[column] if fielded else query.weights[term]
        look_up_list(
            arrays, scoring.norms[column], scoring.block_bounds, fielded, lists, term * n_columns + column, start,
            window.candidates, n, factor, window.reached, least, window.slots, window.shares,
        )  # fmt: skip
    kept = 0
    for c in range(n):
        share = window.shares[c]
        if share > 0.0:
            total = window.reached[c] + (query.weights[term] * saturated(share, k1) if fielded else share)
        elif must:
            continue
        else:
            total = window.reached[c]
        if total + rest > threshold * SLACK:
            window.candidates[kept], window.reached[kept] = window.candidates[c], total
            kept += 1
    return kept


@kernel(forceinline=True)
def _search_windows(arrays, scoring, query, k1, driver_number, step, prune, best, size, threshold, doc_base):
    """Search every `step`-th window; returns the number of documents in `best` and the threshold."""
    n_terms, n_docs = len(query.weights), scoring.norms.shape[1]
    lists, window = open_lists(arrays, query.numbers, n_docs), _open_window(n_terms)
    driver = open_lists(arrays, np.array([driver_number]), n_docs)
    for start in range(0, n_docs, step * WINDOW):
        stop = min(start + WINDOW, n_docs)
        total = _bound_terms(arrays, scoring, query, k1, lists, window, start, stop)
        if total < 0.0 or (prune and total <= threshold):
            continue
        essential = _essential_terms(window, threshold, prune)
        if driver_number >= 0:
            essential = 0
            n = _make_required(arrays, driver, query, window, start, stop)
        else:
            n = _make_candidates(
                arrays, scoring, query, k1, lists, window, start, stop, total, essential, threshold, prune
            )
        for term in range(essential, n_terms):
            if n > 0 and window.bounds[term] > 0.0:
                n = _look_up_term(arrays, scoring, query, k1, lists, window, term, n, start, threshold)
        size, threshold = offer(best, window.candidates, window.reached, n, doc_base, size, threshold)
    return size, threshold


@kernel(forceinline=True)
def _guess_threshold(arrays, scoring, query, k1, driver_number, k):
    """A score that the k-th best document very likely beats: the r-th best of every SAMPLED-th window, 0 for none.

    Of the best k, about k / SAMPLED are in the sample; r lies three standard deviations above that.
    """
    expected = k / SAMPLED
    r = int(np.ceil(expected + 3.0 * np.sqrt(expected) + 1.0))
    best = open_best(r)
    size, threshold = _search_windows(arrays, scoring, query, k1, driver_number, SAMPLED, True, best, 0, 0.0, 0)
    return finish(best, size, threshold)[1] if size >= r else 0.0


@kernel(forceinline=True)
def select(arrays, scoring, query, k1, driver_number, prune, best, size, threshold, doc_base):
    """Offer the documents of a segment to `best`, in ascending order.

    arrays : PostingArrays; scoring : ScoringArrays; query : QueryArrays; best : BestArrays with `size` documents so far
    k1 : float64; driver_number : the shortest list of the required terms (BM25F: of the whole document), or -1
    prune : bool, whether what cannot be among the best is skipped; the result is the same
    doc_base : int64, number of the segment's first document in the index

    Returns
    -------
    size, threshold : how many documents `best` has now, and the score that later ones must beat
    """
    n_docs = scoring.norms.shape[1]
    if prune and n_docs >= SAMPLES * WINDOW and best.k < n_docs // SAMPLED:
        guess = _guess_threshold(arrays, scoring, query, k1, driver_number, best.k)
        if guess > threshold:
            found, beaten = _search_windows(
                arrays, scoring, query, k1, driver_number, 1, True, best, size, guess, doc_base
            )
            # The guess was right if k documents beat it; otherwise the ones that do not are searched for as well.
            if beaten > guess or count_above(best, found, guess) >= best.k:
                return found, beaten
    return _search_windows(arrays, scoring, query, k1, driver_number, 1, prune, best, size, threshold, doc_base)
