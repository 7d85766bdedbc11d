"""Search without an index: every document is read and scored. Slow and simple: the definition of the correct result.

Operations are in the order of the fast kernels, and float64 rounds the same everywhere: scores must agree to the last
bit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

# A document: for each stream its words, (term, position).
Document = Sequence[Sequence[tuple[bytes, int]]]
# A phrase: terms, and the place of each counted from the first.
PhraseTerms = tuple[Sequence[bytes], Sequence[int]]


@dataclass(frozen=True)
class Model:
    """BM25 reads one column and has no weights; BM25F reads several, each with a weight.

    columns : numbers of streams, or (-1,) for the whole document; b, weights : one for each column
    """

    k1: float
    columns: Sequence[int]
    b: Sequence[float]
    weights: Sequence[float] = ()


@dataclass(frozen=True)
class Restrictions:
    """What a document must and must not contain."""

    required: Collection[bytes] = ()
    phrases: Sequence[PhraseTerms] = ()
    excluded: Collection[bytes] = ()
    excluded_phrases: Sequence[PhraseTerms] = ()


def search_documents(
    documents: Sequence[Document],
    terms: Mapping[bytes, int],
    model: Model,
    restrictions: Restrictions,
    k: int,
) -> list[tuple[int, float]]:
    """(document, score) of the best k, best first, equal scores by document; only documents with one of the terms.

    terms : the frequency of each in the query; documents : the live ones
    """
    columns = [[_column(document, column) for document in documents] for column in model.columns]
    averages = [_average([len(words) for words in column]) for column in columns]
    counted = [_column(document, -1) for document in documents] if model.weights else columns[0]
    weights = {}
    for term, frequency in terms.items():
        doc_freq = sum(any(word == term for word, _ in words) for words in counted)
        if doc_freq:
            idf = math.log(1.0 + (len(documents) - doc_freq + 0.5) / (doc_freq + 0.5))
            weights[term] = frequency * (idf * (model.k1 + 1.0))
    found = []
    for doc in range(len(documents)):
        own = [column[doc] for column in columns]
        if _qualifies(documents[doc], own, model, restrictions):
            score = _score(own, averages, weights, model)
            if score > 0.0:
                found.append((doc, score))
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def _column(document: Document, column: int) -> Sequence[tuple[bytes, int]]:
    if column >= 0:
        return document[column]
    return [word for stream in document for word in stream]


def _average(lengths: Sequence[int]) -> float:
    return sum(lengths) / len(lengths) if sum(lengths) else 1.0


def _score(
    columns: Sequence[Sequence[tuple[bytes, int]]],
    averages: Sequence[float],
    weights: Mapping[bytes, float],
    model: Model,
) -> float:
    """The sum over the terms by falling weight, equal weights by the term's bytes."""
    total = 0.0
    for term in sorted(weights, key=lambda term: (-weights[term], term)):
        frequencies = [sum(word == term for word, _ in words) for words in columns]
        if any(frequencies):
            total += weights[term] * _share(frequencies, [len(words) for words in columns], averages, model)
    return total


def _share(frequencies: Sequence[int], lengths: Sequence[int], averages: Sequence[float], model: Model) -> float:
    """f/(f + k1·B), or x/(x + k1) with x = Σ weight·f/B; B = 1 − b + b·length/average."""
    relative = [
        (1.0 - b) + b * (length / average) for b, length, average in zip(model.b, lengths, averages, strict=True)
    ]
    if not model.weights:
        return frequencies[0] / (frequencies[0] + model.k1 * relative[0])
    x = 0.0
    for weight, frequency, one in zip(model.weights, frequencies, relative, strict=True):
        if frequency:
            x += weight * (frequency * (1.0 / one))
    return x / (x + model.k1)


def _qualifies(
    document: Document, columns: Sequence[Sequence[tuple[bytes, int]]], model: Model, restrictions: Restrictions
) -> bool:
    present = {word for words in columns for word, _ in words}
    streams = document if list(model.columns) == [-1] else columns
    return (
        all(term in present for term in restrictions.required)
        and not any(term in present for term in restrictions.excluded)
        and all(any(has_phrase(words, *phrase) for words in streams) for phrase in restrictions.phrases)
        and not any(has_phrase(words, *phrase) for words in streams for phrase in restrictions.excluded_phrases)
    )


def has_phrase(words: Sequence[tuple[bytes, int]], terms: Sequence[bytes], places: Sequence[int]) -> bool:
    """Whether a stream contains the terms at these distances."""
    present = set(words)
    starts = {position - places[0] for term, position in words if term == terms[0]}
    return any(
        all((term, start + place) in present for term, place in zip(terms, places, strict=True)) for start in starts
    )
