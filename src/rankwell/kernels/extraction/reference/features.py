"""Feature extraction by its formulas, one candidate and one stream at a time, in float64: every backend must equal it
up to the last bit or two of a float32.

Vocabulary. m distinct terms; tf, a term's occurrences in the stream; len, the stream's words; N, documents of the
collection; df, documents with the term in this stream; cf, its occurrences there; p = cf / (words of all documents in
this stream); avg, the stream's mean length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.kernels.extraction.rules import (
    DELTA,
    K1,
    LAMBDA,
    MU,
    PAIR_WINDOW,
    SEQUENCE_WORDS,
    B,
    FeatureColumns,
    HitArrays,
    Kind,
)


@dataclass(frozen=True)
class StreamHits:
    """A query's terms in one stream of one candidate.

    frequencies : tf of each term; positions : the places of each term, None for the whole document
    length, distinct : words of the stream, and different terms among them
    doc_freq, occurrences, query_frequency : of each term
    words, word_places : the query's words in order, as numbers of its terms, and their places in the query
    parameters : k1, b, mu, lambda, delta
    """

    frequencies: Sequence[int]
    positions: Sequence[Sequence[int]] | None
    length: int
    distinct: int
    doc_freq: Sequence[int]
    occurrences: Sequence[int]
    query_frequency: Sequence[int]
    words: Sequence[int]
    word_places: Sequence[int]
    n_docs: int
    tokens: int
    parameters: Sequence[float]

    @property
    def n_words(self) -> int:
        """How many of the terms are words; those after them are phrases, whose places do not count."""
        return max(self.words, default=-1) + 1

    @property
    def relative_length(self) -> float:
        """len / avg; 0 if no document has a word in this stream."""
        return self.length * self.n_docs / self.tokens if self.tokens else 0.0


def idf(doc_freq: int, n_docs: int) -> float:
    return math.log(1.0 + (n_docs - doc_freq + 0.5) / (doc_freq + 0.5))


def saturated(frequency: float, k1: float, normaliser: float) -> float:
    """BM25's tf · (k1 + 1) / (tf + k1 · normaliser); 0 for 0."""
    return frequency * (k1 + 1.0) / (frequency + k1 * normaliser) if frequency > 0 else 0.0


def stream_features(hits: StreamHits) -> dict[Kind, float]:
    """Every feature of one stream; those that need places only if there are places."""
    features = _count_features(hits) | _model_features(hits)
    if hits.positions is not None:
        features |= _coverage_features(hits) | _window_features(hits) | _sequence_features(hits) | _pair_features(hits)
    return features


def _count_features(hits: StreamHits) -> dict[Kind, float]:
    m, tf = len(hits.frequencies), [float(frequency) for frequency in hits.frequencies]
    idfs = [idf(doc_freq, hits.n_docs) for doc_freq in hits.doc_freq]
    covered = sum(1 for frequency in tf if frequency > 0)
    features = {
        Kind.COVERED_TERMS: float(covered),
        Kind.COVERED_RATIO: covered / m if m else 0.0,
        Kind.LENGTH: float(hits.length),
        Kind.IDF: math.fsum(idfs),
        Kind.BOOLEAN: 1.0 if m and covered == m else 0.0,
    }
    normalised = [frequency / hits.length if hits.length else 0.0 for frequency in tf]
    tfidf = [frequency * weight for frequency, weight in zip(tf, idfs, strict=True)]
    for first, values in (
        (Kind.TF_SUM, tf),
        (Kind.NORMALISED_TF_SUM, normalised),
        (Kind.TFIDF_SUM, tfidf),
    ):
        for offset, value in enumerate(five_figures(values)):
            features[Kind(first + offset)] = value
    return features


def five_figures(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Sum, smallest, largest, mean and (population) variance; all 0 for no values."""
    if not values:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return math.fsum(values), min(values), max(values), mean, variance


def _model_features(hits: StreamHits) -> dict[Kind, float]:
    k1, b = hits.parameters[K1], hits.parameters[B]
    normaliser = 1.0 - b + b * hits.relative_length
    dot = query_square = document_square = bm25 = 0.0
    for tf, qtf, df in zip(hits.frequencies, hits.query_frequency, hits.doc_freq, strict=True):
        weight = idf(df, hits.n_docs)
        dot += qtf * weight * tf * weight
        query_square += (qtf * weight) ** 2
        document_square += (tf * weight) ** 2
        bm25 += qtf * weight * saturated(tf, k1, normaliser)
    return {
        Kind.VECTOR_SPACE: dot / math.sqrt(query_square * document_square) if dot else 0.0,
        Kind.BM25: bm25,
        Kind.LM_ABSOLUTE: _log_likelihood(hits, _absolute_discounting),
        Kind.LM_DIRICHLET: _log_likelihood(hits, _dirichlet),
        Kind.LM_JELINEK_MERCER: _log_likelihood(hits, _jelinek_mercer),
    }


def _log_likelihood(hits: StreamHits, model: Callable[[StreamHits, int, float], float]) -> float:
    """The log of the query's probability; terms that no document has in this stream are left out."""
    total = 0.0
    for tf, qtf, occurrences in zip(hits.frequencies, hits.query_frequency, hits.occurrences, strict=True):
        if occurrences > 0:
            p = occurrences / hits.tokens
            total += qtf * math.log(model(hits, tf, p) if hits.length else p)
    return total


def _absolute_discounting(hits: StreamHits, tf: int, p: float) -> float:
    delta = hits.parameters[DELTA]
    return (max(tf - delta, 0.0) + delta * hits.distinct * p) / hits.length


def _dirichlet(hits: StreamHits, tf: int, p: float) -> float:
    mu = hits.parameters[MU]
    return (tf + mu * p) / (hits.length + mu)


def _jelinek_mercer(hits: StreamHits, tf: int, p: float) -> float:
    weight = hits.parameters[LAMBDA]
    return (1.0 - weight) * tf / hits.length + weight * p


def merged_hits(positions: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """All hits of a stream as (place, term), in the order of places, then of terms."""
    return sorted((place, term) for term, places in enumerate(positions) for place in places)


def _coverage_features(hits: StreamHits) -> dict[Kind, float]:
    weights = [qtf * idf(df, hits.n_docs) for qtf, df in zip(hits.query_frequency, hits.doc_freq, strict=True)]
    matched = [weight for weight, tf in zip(weights, hits.frequencies, strict=True) if tf > 0]
    places = [place for own in (hits.positions or ())[: hits.n_words] for place in own]
    n_matched = sum(1 for tf in hits.frequencies[: hits.n_words] if tf > 0)
    first, last = (min(places), max(places)) if places else (0, 0)
    return {
        Kind.QUERY_COMPLETENESS: math.fsum(matched) / math.fsum(weights) if matched else 0.0,
        Kind.FIELD_COMPLETENESS: min(1.0, n_matched / hits.length) if hits.length else 0.0,
        Kind.FIRST_PLACE: float(first + 1) if places else 0.0,
        Kind.LAST_PLACE: float(last + 1) if places else 0.0,
        Kind.EARLINESS: 1.0 - first / max(hits.length, last + 1) if places else 0.0,
    }


def _window_features(hits: StreamHits) -> dict[Kind, float]:
    assert hits.positions is not None
    positions = hits.positions[: hits.n_words]
    merged = merged_hits(positions)
    matched = sum(1 for places in positions if len(places))
    start, end = _smallest_window(merged, matched)
    size = float(end - start + 1) if matched else 0.0
    last_places = [max(p for p in places if start <= p <= end) for places in positions if len(places)]
    in_order = sum(1 for a, b in itertools.pairwise(last_places) if a < b)
    distances = [max(1, q - p) for (p, a), (q, b) in itertools.pairwise(merged) if a != b]
    return {
        Kind.WINDOW_ALL: size if matched == hits.n_words else 0.0,
        Kind.WINDOW_MATCHED: size,
        Kind.WINDOW_DENSITY: min(1.0, matched / size) if matched else 0.0,
        Kind.WINDOW_ORDER: in_order / (matched - 1) if matched > 1 else float(matched),
        Kind.PAIR_DISTANCE: float(min(distances, default=0)),
        Kind.BM25_PROXIMITY: _bm25_proximity(hits, merged),
    }


def _smallest_window(merged: Sequence[tuple[int, int]], matched: int) -> tuple[int, int]:
    """The first of the shortest windows that contain all matched terms."""
    best = (0, math.inf)
    for i, (start, _) in enumerate(merged):
        seen: set[int] = set()
        for end, term in merged[i:]:
            seen.add(term)
            if len(seen) == matched:
                if end - start < best[1] - best[0]:
                    best = (start, end)
                break
    return (best[0], int(best[1])) if matched else (0, 0)


def _bm25_proximity(hits: StreamHits, merged: Sequence[tuple[int, int]]) -> float:
    """Büttcher, Clarke and Lushman (2006): neighbouring hits of different terms add idf / distance² to each other."""
    k1, b = hits.parameters[K1], hits.parameters[B]
    gathered = [0.0] * len(hits.frequencies)
    weights = [idf(doc_freq, hits.n_docs) for doc_freq in hits.doc_freq]
    for (p, a), (q, other) in itertools.pairwise(merged):
        if a != other:
            closeness = 1.0 / max(1, q - p) ** 2
            gathered[a] += weights[other] * closeness
            gathered[other] += weights[a] * closeness
    normaliser = 1.0 - b + b * hits.relative_length
    return math.fsum(
        min(1.0, weight) * saturated(near, k1, normaliser) for weight, near in zip(weights, gathered, strict=True)
    )


def _sequence_features(hits: StreamHits) -> dict[Kind, float]:
    """Runs of neighbouring query words that occur in the stream as in the query, stop words as gaps."""
    assert hits.positions is not None
    words, places = hits.words[:SEQUENCE_WORDS], hits.word_places[:SEQUENCE_WORDS]
    standing = [{int(place) for place in own} for own in hits.positions]

    def stands(j: int, place: int) -> bool:
        return 0 <= j < len(words) and place in standing[words[j]]

    runs = []
    for j, word in enumerate(words):
        for place in standing[word]:
            begin = place - int(places[j])
            if j and stands(j - 1, begin + int(places[j - 1])):
                continue
            length = 1
            while j + length < len(words) and stands(j + length, begin + int(places[j + length])):
                length += 1
            runs.append(length)
    longest = max(runs, default=0)
    phrases = sum(1 for run in runs if run == len(hits.words))
    return {
        Kind.LONGEST_SEQUENCE: float(longest),
        Kind.SEQUENCE_RATIO: longest / len(words) if words else 0.0,
        Kind.PHRASE_COUNT: float(phrases),
        Kind.EXACT_MATCH: 1.0 if phrases and hits.length == len(hits.words) else 0.0,
        Kind.ORDERED_PAIRS: float(sum(run - 1 for run in runs)),
    }


def _pair_features(hits: StreamHits) -> dict[Kind, float]:
    """Neighbouring words of the query that are different terms."""
    assert hits.positions is not None
    words = hits.words[:SEQUENCE_WORDS]
    pairs = [(a, b) for a, b in itertools.pairwise(words) if a != b]
    near, forward, reverse = 0, [], []
    for a, b in pairs:
        differences = [int(q) - int(p) for p in hits.positions[a] for q in hits.positions[b]]
        near += sum(1 for d in differences if 0 < abs(d) < PAIR_WINDOW)
        forward.append(min((d for d in differences if d > 0), default=0))
        reverse.append(min((-d for d in differences if d < 0), default=0))
    return {
        Kind.UNORDERED_PAIRS: float(near),
        Kind.FORWARD_DISTANCE: float(min((d for d in forward if d), default=0)),
        Kind.REVERSE_DISTANCE: float(min((d for d in reverse if d), default=0)),
        Kind.FORWARD_PROXIMITY: math.fsum(1.0 / d for d in forward if d) / len(pairs) if pairs else 0.0,
        Kind.REVERSE_PROXIMITY: math.fsum(1.0 / d for d in reverse if d) / len(pairs) if pairs else 0.0,
    }


def bm25f(streams: Sequence[StreamHits], whole: StreamHits, k1: float, b: np.ndarray, weights: np.ndarray) -> float:
    """Normalised frequencies are summed over the streams before they saturate (Robertson, Zaragoza, Taylor, 2004)."""
    total = 0.0
    for term, (qtf, df) in enumerate(zip(whole.query_frequency, whole.doc_freq, strict=True)):
        frequency = 0.0
        for s, stream in enumerate(streams):
            if stream.frequencies[term] > 0:
                frequency += weights[s] * stream.frequencies[term] / (1.0 - b[s] + b[s] * stream.relative_length)
        total += qtf * idf(df, whole.n_docs) * saturated(frequency, k1, 1.0)
    return total


def streams_of(
    hits: HitArrays, n_docs: int, query: int, candidate: int, parameters: np.ndarray
) -> tuple[list[StreamHits], StreamHits]:
    """The streams of one candidate (counted over all queries), and its whole document."""
    n_streams = len(hits.stream_tokens) - 1
    terms = range(int(hits.term_ptr[query]), int(hits.term_ptr[query + 1]))
    words = slice(int(hits.word_ptr[query]), int(hits.word_ptr[query + 1]))
    row = candidate - int(hits.query_ptr[query])

    def column(s: int, frequencies: list[int], positions: list[list[int]] | None, length: int) -> StreamHits:
        return StreamHits(
            frequencies=frequencies,
            positions=positions,
            length=length,
            distinct=int(hits.distinct[candidate * (n_streams + 1) + s]),
            doc_freq=[int(hits.doc_freq[t * (n_streams + 1) + s]) for t in terms],
            occurrences=[int(hits.occurrences[t * (n_streams + 1) + s]) for t in terms],
            query_frequency=hits.query_frequency[terms.start : terms.stop].tolist(),
            words=hits.words[words].tolist(),
            word_places=hits.word_places[words].tolist(),
            n_docs=n_docs,
            tokens=int(hits.stream_tokens[s]),
            parameters=parameters[s].tolist(),
        )

    streams = []
    for s in range(n_streams):
        cells = [int(hits.cell_base[query]) + (row * len(terms) + t) * n_streams + s for t in range(len(terms))]
        positions = [hits.positions[hits.cell_ptr[cell] : hits.cell_ptr[cell + 1]].tolist() for cell in cells]
        length = int(hits.lengths[candidate * n_streams + s])
        streams.append(column(s, [len(places) for places in positions], positions, length))
    together = [sum(stream.frequencies[t] for stream in streams) for t in range(len(terms))]
    return streams, column(n_streams, together, None, sum(stream.length for stream in streams))


def extract_features(hits: HitArrays, n_docs: int, columns: FeatureColumns, n_features: int) -> np.ndarray:
    """The wanted features of every candidate: float64 (n_candidates, n_features); columns not filled are NaN."""
    out = np.full((int(hits.query_ptr[-1]), n_features), math.nan)
    n_statics = len(columns.static_column)
    for query in range(len(hits.query_ptr) - 1):
        for candidate in range(int(hits.query_ptr[query]), int(hits.query_ptr[query + 1])):
            streams, whole = streams_of(hits, n_docs, query, candidate, columns.parameters)
            for s, stream in enumerate([*streams, whole]):
                for kind, value in stream_features(stream).items():
                    if columns.column_of[s, kind] >= 0:
                        out[candidate, columns.column_of[s, kind]] = value
            if columns.bm25f_column[0] >= 0:
                b, weights = columns.bm25f[1:].reshape(2, -1)
                out[candidate, columns.bm25f_column[0]] = bm25f(streams, whole, float(columns.bm25f[0]), b, weights)
            for number, column in enumerate(columns.static_column):
                if column >= 0:
                    out[candidate, column] = hits.statics[candidate * n_statics + number]
    return out
