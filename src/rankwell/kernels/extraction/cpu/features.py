"""Feature extraction on the CPU: one task per candidate, in ranges of candidates that share scratch memory.

Sums are float64 and in the order of the query's terms; results are rounded once, to float32. A candidate's features
depend neither on its batch nor on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.extraction.cpu.proximity import (
    ProximityScratch,
    merged_hits,
    neighbour_features,
    pair_features,
    place_features,
    sequence_features,
    window_features,
)
from rankwell.kernels.extraction.rules import (
    DELTA,
    K1,
    LAMBDA,
    MU,
    N_KINDS,
    N_WHOLE_KINDS,
    B,
    FeatureColumns,
    HitArrays,
    HitQueries,
    Kind,
)
from rankwell.kernels.threads import run_ranges

# Numba supports plain integers, not enumerations.
_COVERED_TERMS, _COVERED_RATIO = int(Kind.COVERED_TERMS), int(Kind.COVERED_RATIO)
_LENGTH, _IDF, _BOOLEAN = int(Kind.LENGTH), int(Kind.IDF), int(Kind.BOOLEAN)
_TF, _NORMALISED_TF, _TFIDF = int(Kind.TF_SUM), int(Kind.NORMALISED_TF_SUM), int(Kind.TFIDF_SUM)
_VECTOR_SPACE, _BM25 = int(Kind.VECTOR_SPACE), int(Kind.BM25)
_LM_ABSOLUTE, _LM_DIRICHLET = int(Kind.LM_ABSOLUTE), int(Kind.LM_DIRICHLET)
_LM_JELINEK_MERCER = int(Kind.LM_JELINEK_MERCER)
_QUERY_COMPLETENESS, _FIELD_COMPLETENESS = int(Kind.QUERY_COMPLETENESS), int(Kind.FIELD_COMPLETENESS)
_FIRST_OF_SEQUENCES = int(Kind.LONGEST_SEQUENCE)
# Families of kinds: what is computed together for a stream, if one of them is wanted.
_FIGURES, _MATCHED, _MODELS, _PLACES, _SEQUENCES, _ANY, _N_FAMILIES = range(7)

# Candidates that are worth a thread: the features of the set `mslr` take about 0.6 µs each, those of `full` 1.4.
_LEAST_CANDIDATES = 256


class TermWeights(NamedTuple):
    """Values that do not depend on a candidate; the columns are the streams and the whole document.

    idf, background : float64 (T · (S + 1),), ln(1 + (N − df + ½) / (df + ½)), and cf / words of the collection
    idf_sum, squares, importance, likelihood : float64 (Q · (S + 1),), sums over a query's terms of idf, (qtf · idf)²,
        qtf · idf, and qtf · ln(background) of the terms that have one
    relative_length : float64 (S + 1,), the factor that makes a length relative to the stream's mean
    """

    idf: np.ndarray
    background: np.ndarray
    idf_sum: np.ndarray
    squares: np.ndarray
    importance: np.ndarray
    likelihood: np.ndarray
    relative_length: np.ndarray


def extract_features(hits: HitArrays, n_docs: int, columns: FeatureColumns, out: np.ndarray) -> None:
    """The wanted features of every candidate; out : float32 (n_candidates, n_features)"""
    weights = weigh_terms(hits, n_docs)
    run_ranges(
        lambda start, stop: extract_candidates(start, stop, hits, weights, columns, out),
        len(out),
        least_items=_LEAST_CANDIDATES,
    )


def weigh_terms(hits: HitArrays | HitQueries, n_docs: int) -> TermWeights:
    """The weights of a batch's terms; n_docs : the live documents of the collection"""
    n_columns = len(hits.stream_tokens)
    n_terms, n_queries = len(hits.query_frequency), len(hits.term_ptr) - 1
    of_terms, of_queries = np.empty((2, n_terms * n_columns)), np.empty((4, n_queries * n_columns))
    relative_length = np.empty(n_columns)
    fill_weights(
        *(hits.stream_tokens, hits.term_ptr, hits.query_frequency, hits.doc_freq, hits.occurrences, n_docs),
        *(of_terms, of_queries, relative_length),
    )
    return TermWeights._make((*of_terms, *of_queries, relative_length))


@kernel(error_model="numpy")
def fill_weights(
    stream_tokens, term_ptr, query_frequency, doc_freq, occurrences, n_docs, of_terms, of_queries, relative_length
):
    """Fill the arrays of TermWeights: idf and background are rows of `of_terms`, the sums rows of `of_queries`."""
    n_columns = len(stream_tokens)
    for s in range(n_columns):
        relative_length[s] = n_docs / stream_tokens[s] if stream_tokens[s] > 0 else 0.0
    for row in range(4):
        for to in range((len(term_ptr) - 1) * n_columns):
            of_queries[row, to] = 0.0
    for query in range(len(term_ptr) - 1):
        for term in range(term_ptr[query], term_ptr[query + 1]):
            qtf = query_frequency[term]
            for s in range(n_columns):
                at, to = term * n_columns + s, query * n_columns + s
                weight = math.log(1.0 + (n_docs - doc_freq[at] + 0.5) / (doc_freq[at] + 0.5))
                background = occurrences[at] / stream_tokens[s] if occurrences[at] > 0 else 0.0
                of_terms[0, at], of_terms[1, at] = weight, background
                of_queries[0, to] += weight
                of_queries[1, to] += (qtf * weight) * (qtf * weight)
                of_queries[2, to] += qtf * weight
                if background > 0.0:
                    of_queries[3, to] += qtf * math.log(background)


@inlined_kernel
def _five_figures(tf, idf, length, values):
    """Sum, smallest, largest, mean and variance of tf, of tf / length and of tf · idf."""
    m = len(tf)
    total, smallest, largest = 0.0, tf[0], tf[0]
    weighted, smallest_weighted, largest_weighted = 0.0, tf[0] * idf[0], tf[0] * idf[0]
    for t in range(m):
        total += tf[t]
        smallest, largest = min(smallest, tf[t]), max(largest, tf[t])
        value = tf[t] * idf[t]
        weighted += value
        smallest_weighted, largest_weighted = min(smallest_weighted, value), max(largest_weighted, value)
    mean, mean_weighted = total / m, weighted / m
    variance, variance_weighted = 0.0, 0.0
    for t in range(m):
        variance += (tf[t] - mean) ** 2
        variance_weighted += (tf[t] * idf[t] - mean_weighted) ** 2
    values[_TF], values[_TF + 1], values[_TF + 2], values[_TF + 3] = total, smallest, largest, mean
    values[_TF + 4] = variance / m
    values[_TFIDF], values[_TFIDF + 1], values[_TFIDF + 2] = weighted, smallest_weighted, largest_weighted
    values[_TFIDF + 3], values[_TFIDF + 4] = mean_weighted, variance_weighted / m
    if length > 0:
        shrink = float(length)
        values[_NORMALISED_TF] = total / shrink
        values[_NORMALISED_TF + 1] = smallest / shrink
        values[_NORMALISED_TF + 2] = largest / shrink
        values[_NORMALISED_TF + 3] = mean / shrink
        values[_NORMALISED_TF + 4] = variance / m / (shrink * shrink)


@inlined_kernel
def _matching(tf, qtf, idf, squares, relative_length, parameters, values):
    """The number of matched terms, the cosine, and BM25."""
    k1 = parameters[K1]
    normaliser = k1 * (1.0 - parameters[B] + parameters[B] * relative_length)
    covered, dot, square, bm25 = 0, 0.0, 0.0, 0.0
    for t in range(len(tf)):
        if tf[t] > 0.0:
            covered += 1
            dot += qtf[t] * idf[t] * tf[t] * idf[t]
            square += (tf[t] * idf[t]) ** 2
            bm25 += qtf[t] * idf[t] * (tf[t] * (k1 + 1.0) / (tf[t] + normaliser))
    values[_COVERED_TERMS] = covered
    values[_COVERED_RATIO] = covered / len(tf)
    values[_BOOLEAN] = 1.0 if covered == len(tf) else 0.0
    values[_VECTOR_SPACE] = dot / math.sqrt(squares * square) if dot > 0.0 else 0.0
    values[_BM25] = bm25
    return covered


@inlined_kernel
def _language_models(tf, qtf, background, likelihood, length, distinct, parameters, values):
    """The log of the query's probability under three models; an empty stream has the collection's."""
    absolute, dirichlet, jelinek_mercer = likelihood, likelihood, likelihood
    if length > 0:
        delta, mu, weight = parameters[DELTA], parameters[MU], parameters[LAMBDA]
        absolute, dirichlet, jelinek_mercer = 0.0, 0.0, 0.0
        for t in range(len(tf)):
            p = background[t]
            if p > 0.0:
                absolute += qtf[t] * math.log((max(tf[t] - delta, 0.0) + delta * distinct * p) / length)
                dirichlet += qtf[t] * math.log((tf[t] + mu * p) / (length + mu))
                jelinek_mercer += qtf[t] * math.log((1.0 - weight) * tf[t] / length + weight * p)
    values[_LM_ABSOLUTE] = absolute
    values[_LM_DIRICHLET] = dirichlet
    values[_LM_JELINEK_MERCER] = jelinek_mercer


@inlined_kernel
def _any_wanted(columns, start, stop):
    """Whether one of the columns start:stop is requested."""
    wanted = False
    for kind in range(start, stop):
        wanted |= columns[kind] >= 0
    return wanted


@inner_kernel
def wanted_families(column_of):
    """Which families of kinds each stream needs: bool (S + 1, _N_FAMILIES)."""
    wanted = np.zeros((len(column_of), _N_FAMILIES), np.bool_)
    for s in range(len(column_of)):
        wants, families = column_of[s], wanted[s]
        families[_FIGURES] = _any_wanted(wants, _TF, _BOOLEAN)
        families[_MODELS] = _any_wanted(wants, _LM_ABSOLUTE, N_WHOLE_KINDS)
        # The whole document, the last column, has no places.
        families[_PLACES] = s < len(column_of) - 1 and _any_wanted(wants, N_WHOLE_KINDS, N_KINDS)
        families[_SEQUENCES] = families[_PLACES] and _any_wanted(wants, _FIRST_OF_SEQUENCES, N_KINDS)
        families[_MATCHED] = (
            families[_PLACES] or _any_wanted(wants, 0, _LENGTH) or _any_wanted(wants, _BOOLEAN, _LM_ABSOLUTE)
        )
        families[_ANY] = _any_wanted(wants, 0, N_KINDS)
    return wanted


@inlined_kernel
def _term_features(tf, query, s, hits, weights, length, distinct, columns, wanted, values):
    """The 25 kinds that every stream and the whole document have; returns the matched terms if they are wanted."""
    n_columns = len(hits.stream_tokens)
    first, stop = hits.term_ptr[query], hits.term_ptr[query + 1]
    of_query = query * n_columns + s
    values[_LENGTH] = length
    values[_IDF] = weights.idf_sum[of_query]
    if first == stop:
        return 0
    qtf = hits.query_frequency[first:stop]
    idf = weights.idf[first * n_columns + s : (stop - 1) * n_columns + s + 1 : n_columns]
    background = weights.background[first * n_columns + s : (stop - 1) * n_columns + s + 1 : n_columns]
    parameters, relative_length = columns.parameters[s], length * weights.relative_length[s]
    covered = 0
    if wanted[s, _FIGURES]:
        _five_figures(tf, idf, length, values)
    if wanted[s, _MATCHED]:
        covered = _matching(tf, qtf, idf, weights.squares[of_query], relative_length, parameters, values)
    if wanted[s, _MODELS]:
        likelihood = weights.likelihood[of_query]
        _language_models(tf, qtf, background, likelihood, length, distinct, parameters, values)
    return covered


@inlined_kernel
def n_word_terms(words):
    """How many of a query's terms are words; those after them are phrases. words : the query's, as numbers of terms"""
    n_words = 0
    for word in range(len(words)):
        n_words = max(n_words, words[word] + 1)
    return n_words


@inlined_kernel
def _place_features(tf, query, s, first_cell, hits, weights, length, columns, wanted, scratch, values):
    """The kinds that read places; a stream without hits keeps its zeros. Places are those of words, not of phrases."""
    n_columns = len(hits.stream_tokens)
    n_streams = n_columns - 1
    first, stop = hits.term_ptr[query], hits.term_ptr[query + 1]
    of_query = query * n_columns + s
    words = hits.words[hits.word_ptr[query] : hits.word_ptr[query + 1]]
    n_words, n_matched = n_word_terms(words), 0
    idf = weights.idf[first * n_columns + s : (stop - 1) * n_columns + s + 1 : n_columns]
    importance = 0.0
    for t in range(stop - first):
        if tf[t] > 0.0:
            importance += hits.query_frequency[first + t] * idf[t]
            n_matched += t < n_words
    values[_QUERY_COMPLETENESS] = importance / weights.importance[of_query]
    values[_FIELD_COMPLETENESS] = min(1.0, n_matched / length) if length > 0 else 0.0
    keys, matched = merged_hits(hits.cell_ptr, hits.positions, first_cell, n_words, n_streams, scratch)
    place_features(keys, length, values)
    window_features(keys, matched, n_words, scratch, values)
    relative_length = length * weights.relative_length[s]
    neighbour_features(keys, idf, n_words, relative_length, columns.parameters[s], scratch, values)
    if wanted[s, _SEQUENCES]:
        places = hits.word_places[hits.word_ptr[query] : hits.word_ptr[query + 1]]
        sequence_features(hits.cell_ptr, hits.positions, first_cell, n_streams, words, places, length, values)
        pair_features(hits.cell_ptr, hits.positions, first_cell, n_streams, words, values)


@inlined_kernel
def _bm25f(query, first_cell, candidate, hits, weights, bm25f):
    """Normalised frequencies are summed over the streams before they saturate."""
    n_streams = len(hits.stream_tokens) - 1
    first, total = hits.term_ptr[query], 0.0
    for term in range(first, hits.term_ptr[query + 1]):
        frequency = 0.0
        for s in range(n_streams):
            cell = first_cell + (term - first) * n_streams + s
            tf = hits.cell_ptr[cell + 1] - hits.cell_ptr[cell]
            if tf > 0:
                b = bm25f[1 + s]
                relative_length = hits.lengths[candidate * n_streams + s] * weights.relative_length[s]
                frequency += bm25f[1 + n_streams + s] * tf / (1.0 - b + b * relative_length)
        if frequency > 0.0:
            idf = weights.idf[term * (n_streams + 1) + n_streams]
            total += hits.query_frequency[term] * idf * (frequency * (bm25f[0] + 1.0) / (frequency + bm25f[0]))
    return total


@inlined_kernel
def extract_candidate(query, candidate, hits, weights, columns, wanted, tf, whole_tf, scratch, values, row):
    """All wanted features of one candidate: the task that a backend gives to a worker.

    query : its number; candidate : its number in the batch; wanted : what `wanted_families` says
    tf, whole_tf : float64 (terms of the query,), scratch; values : float64 (N_KINDS,), scratch
    row : float32 (n_features,)
    """
    n_streams = len(hits.stream_tokens) - 1
    n_terms = hits.term_ptr[query + 1] - hits.term_ptr[query]
    first_cell = hits.cell_base[query] + (candidate - hits.query_ptr[query]) * n_terms * n_streams
    for t in range(n_terms):
        whole_tf[t] = 0.0
    whole_length = 0
    for s in range(n_streams + 1):
        wants = columns.column_of[s]
        if s < n_streams:
            length = hits.lengths[candidate * n_streams + s]
            whole_length += length
            for t in range(n_terms):
                cell = first_cell + t * n_streams + s
                tf[t] = hits.cell_ptr[cell + 1] - hits.cell_ptr[cell]
                whole_tf[t] += tf[t]
        else:
            length = whole_length
            for t in range(n_terms):
                tf[t] = whole_tf[t]
        if not wanted[s, _ANY]:
            continue
        for kind in range(N_KINDS):
            values[kind] = 0.0
        distinct = hits.distinct[candidate * (n_streams + 1) + s]
        covered = _term_features(tf, query, s, hits, weights, length, distinct, columns, wanted, values)
        if covered and wanted[s, _PLACES]:
            _place_features(tf, query, s, first_cell + s, hits, weights, length, columns, wanted, scratch, values)
        for kind in range(N_KINDS):
            if wants[kind] >= 0:
                row[wants[kind]] = values[kind]
    if columns.bm25f_column[0] >= 0:
        row[columns.bm25f_column[0]] = _bm25f(query, first_cell, candidate, hits, weights, columns.bm25f)
    n_statics = len(columns.static_column)
    for number in range(n_statics):
        if columns.static_column[number] >= 0:
            row[columns.static_column[number]] = hits.statics[candidate * n_statics + number]


@inlined_kernel
def _most_hits(hits, first_cell, n_terms, n_streams):
    """The most hits that a stream of this candidate has."""
    most = 0
    for s in range(n_streams):
        total = 0
        for t in range(n_terms):
            cell = first_cell + t * n_streams + s
            total += hits.cell_ptr[cell + 1] - hits.cell_ptr[cell]
        most = max(most, total)
    return most


@inlined_kernel
def _make_scratch(hits, query, start, stop):
    """Scratch for the candidates start:stop, the first of which belongs to `query`."""
    n_streams, n_terms, n_hits = len(hits.stream_tokens) - 1, 0, 0
    for candidate in range(start, stop):
        while hits.query_ptr[query + 1] <= candidate:
            query += 1
        own = hits.term_ptr[query + 1] - hits.term_ptr[query]
        first_cell = hits.cell_base[query] + (candidate - hits.query_ptr[query]) * own * n_streams
        n_terms, n_hits = max(n_terms, own), max(n_hits, _most_hits(hits, first_cell, own, n_streams))
    return n_terms, ProximityScratch(
        np.empty(n_hits, np.int64),
        np.empty(n_hits, np.int64),
        np.empty(n_terms + 1, np.int64),
        np.empty(n_terms, np.int32),
        np.empty(n_terms, np.int32),
        np.empty(n_terms),
    )


@kernel(error_model="numpy")
def extract_candidates(start, stop, hits, weights, columns, out):
    """The candidates start:stop, one after another.

    hits : HitArrays; weights : TermWeights; columns : FeatureColumns; out : float32 (n_candidates, n_features)
    """
    query = 0
    while hits.query_ptr[query + 1] <= start:
        query += 1
    most_terms, scratch = _make_scratch(hits, query, start, stop)
    tf, whole_tf, values = np.empty(most_terms), np.empty(most_terms), np.empty(N_KINDS)
    wanted = wanted_families(columns.column_of)
    _extract_in_turn(query, start, stop, hits, weights, columns, wanted, tf, whole_tf, scratch, values, out)


@inner_kernel(error_model="numpy", allocates=False)
def _extract_in_turn(query, start, stop, hits, weights, columns, wanted, tf, whole_tf, scratch, values, out):
    """The candidates start:stop, the first of which belongs to `query`; the rest as in `extract_candidate`."""
    for candidate in range(start, stop):
        while hits.query_ptr[query + 1] <= candidate:
            query += 1
        m = hits.term_ptr[query + 1] - hits.term_ptr[query]
        extract_candidate(
            query, candidate, hits, weights, columns, wanted, tf[:m], whole_tf[:m], scratch, values, out[candidate]
        )
