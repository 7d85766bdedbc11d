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


def search_documents(
    documents: Sequence[Document], matches: Sequence[bool], scored: Sequence[Scored], model: Model, k: int
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
    found = []
    for doc in range(len(documents)):
        if matches[doc]:
            own = [column[doc] for column in columns]
            score = 0.0
            for weight, term in weighted:
                share = _share(term, own, averages, model)
                if share > 0.0:
                    score += weight * share
            found.append((doc, score))
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
