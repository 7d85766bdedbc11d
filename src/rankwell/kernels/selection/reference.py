"""Search without an index: every document is read and scored. Slow and simple: the definition of the correct result.

Operations are in the order of the fast kernels, and float64 rounds the same everywhere: scores must agree to the last
bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

# The words of a stream: (term, position).
Words = Sequence[tuple[bytes, int]]
# A document: for each stream its words.
Document = Sequence[Words]
WHOLE = -1


@dataclass(frozen=True)
class Model:
    """BM25 reads one column and has no weights; otherwise the columns are summed before they saturate.

    columns : numbers of streams, or -1 for the whole document; b, weights : one for each column
    n_read : how many of the columns terms without a field are looked for in
    counted : the column whose document frequencies count for them
    """

    k1: float
    columns: Sequence[int]
    b: Sequence[float]
    weights: Sequence[float]
    n_read: int
    counted: int


@dataclass(frozen=True)
class Alternative:
    """A term in one column (by its number, -2: those that the model reads), and what its occurrences count."""

    term: bytes
    column: int
    weight: float


@dataclass(frozen=True)
class Scored:
    """Terms that count as one, and how often the query has it, times its boosts."""

    alternatives: Sequence[Alternative]
    factor: float


@dataclass(frozen=True)
class ScoredPhrase:
    """A phrase in one column (by its number, -2: those that the model reads) that counts as a term; factor as above."""

    terms: Sequence[bytes]
    places: Sequence[int]
    column: int
    factor: float


def search_documents(
    documents: Sequence[Document],
    matches: Sequence[bool],
    scored: Sequence[Scored],
    model: Model,
    k: int,
    phrases: Sequence[ScoredPhrase] = (),
) -> list[tuple[int, float]]:
    """(document, score) of the best k that match, best first, equal scores by document.

    documents : the live ones; matches : which of them the query's conditions allow
    """
    columns = [[_column(document, column) for document in documents] for column in model.columns]
    averages = [_average([len(words) for words in column]) for column in columns]
    weighted = sorted(
        ((_weight(term, documents, model), term) for term in scored),
        key=lambda pair: (-pair[0], [(one.term, one.column) for one in pair[1].alternatives]),
    )
    weighted_phrases = sorted(
        ((_phrase_weight(phrase, documents, model), phrase) for phrase in phrases),
        key=lambda pair: (-pair[0], tuple(pair[1].terms), tuple(pair[1].places), pair[1].column),
    )
    found = []
    for doc in range(len(documents)):
        if matches[doc]:
            own = [column[doc] for column in columns]
            score = 0.0
            for weight, term in weighted:
                share = _share(term, own, averages, model)
                if share > 0.0:
                    score += weight * share
            added = 0.0
            for weight, phrase in weighted_phrases:
                added += weight * _phrase_share(phrase, documents[doc], own, averages, model)
            found.append((doc, score + added))
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def _column(document: Document, column: int) -> Words:
    if column >= 0:
        return document[column]
    return [word for stream in document for word in stream]


def _average(lengths: Sequence[int]) -> float:
    return sum(lengths) / len(lengths) if sum(lengths) else 1.0


def _weight(term: Scored, documents: Sequence[Document], model: Model) -> float:
    """factor · idf · (k1 + 1), with the document frequency of the most frequent alternative; 0 if there is none."""
    doc_freq = 0
    for one in term.alternatives:
        counted = model.counted if one.column == -2 else one.column
        having = sum(any(word == one.term for word, _ in _column(document, counted)) for document in documents)
        doc_freq = max(doc_freq, having)
    if doc_freq == 0:
        return 0.0
    idf = math.log(1.0 + (len(documents) - doc_freq + 0.5) / (doc_freq + 0.5))
    return term.factor * (idf * (model.k1 + 1.0))


def _share(term: Scored, columns: Sequence[Words], averages: Sequence[float], model: Model) -> float:
    """f/(f + k1·B), or x/(x + k1) with x = Σ weight·f/B; B = 1 − b + b·length/average. 0 if the term is absent."""
    x = 0.0
    for one in term.alternatives:
        rows = range(model.n_read) if one.column == -2 else [list(model.columns).index(one.column)]
        for row in rows:
            frequency = sum(word == one.term for word, _ in columns[row])
            if frequency == 0:
                continue
            relative = (1.0 - model.b[row]) + model.b[row] * (len(columns[row]) / averages[row])
            if not model.weights:
                return frequency / (frequency + model.k1 * relative)
            x += (one.weight * model.weights[row]) * (frequency * (1.0 / relative))
    return x / (x + model.k1) if x > 0.0 else 0.0


def phrase_frequency(document: Document, phrase: ScoredPhrase, column: int) -> int:
    """How often a column has a phrase; a phrase is in one stream, not across two."""
    streams = document if column < 0 else [document[column]]
    frequency = 0
    for words in streams:
        standing = set(words)
        starts = {position - phrase.places[0] for term, position in words if term == phrase.terms[0]}
        pairs = list(zip(phrase.terms, phrase.places, strict=True))
        frequency += sum(all((term, start + place) in standing for term, place in pairs) for start in starts)
    return frequency


def _phrase_weight(phrase: ScoredPhrase, documents: Sequence[Document], model: Model) -> float:
    counted = model.counted if phrase.column == -2 else phrase.column
    doc_freq = sum(phrase_frequency(document, phrase, counted) > 0 for document in documents)
    if doc_freq == 0:
        return 0.0
    idf = math.log(1.0 + (len(documents) - doc_freq + 0.5) / (doc_freq + 0.5))
    return phrase.factor * (idf * (model.k1 + 1.0))


def _phrase_share(
    phrase: ScoredPhrase, document: Document, columns: Sequence[Words], averages: Sequence[float], model: Model
) -> float:
    """As `_share`, of a phrase."""
    x = 0.0
    rows = range(model.n_read) if phrase.column == -2 else [list(model.columns).index(phrase.column)]
    for row in rows:
        frequency = phrase_frequency(document, phrase, model.columns[row])
        if frequency:
            relative = (1.0 - model.b[row]) + model.b[row] * (len(columns[row]) / averages[row])
            if not model.weights:
                return frequency / (frequency + model.k1 * relative)
            x += model.weights[row] * (frequency * (1.0 / relative))
    return x / (x + model.k1) if x > 0.0 else 0.0


def has_phrase(words: Words, terms: Sequence[bytes], places: Sequence[int], slop: int = 0) -> bool:
    """Whether a stream contains the terms at these distances, or with distances that differ by `slop` at most.

    A term that the phrase repeats must occur as often.
    """
    choices = [[position for term, position in words if term == wanted] for wanted in terms]
    for chosen in itertools.product(*choices):
        if len(set(chosen)) == len(chosen):
            distances = [position - place for position, place in zip(chosen, places, strict=True)]
            if max(distances) - min(distances) <= slop:
                return True
    return False
