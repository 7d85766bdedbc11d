"""Feedback features by their formulas, one term and one document at a time, in float64.

A document is, for each of its streams, the list of its terms in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rankwell.kernels.extraction.reference.features import idf, saturated

Document = Mapping[str, Sequence[bytes]]


def whole(document: Document) -> list[bytes]:
    """The terms of all streams together."""
    return [term for words in document.values() for term in words]


def term_weights(
    query: Sequence[bytes],
    collection: Sequence[Document],
    feedback: Sequence[tuple[int, float]],
    n_terms: int,
    original: float,
) -> dict[bytes, float]:
    """w(t) = original · qtf / Σ qtf + (1 − original) · r(t), r over the n_terms most probable terms.

    feedback : number in the collection and score s(d) of each feedback document
    """
    everything = [whole(document) for document in collection]
    likelihood: dict[bytes, float] = {}
    for term in sorted({term for number, _ in feedback for term in everything[number]}):
        if 10 * sum(term in words for words in everything) <= len(everything):
            likelihood[term] = sum(
                score * everything[number].count(term) / len(everything[number])
                for number, score in feedback
                if everything[number]
            )
    likeliest = sorted(likelihood, key=lambda term: -likelihood[term])[:n_terms]
    total = math.fsum(likelihood[term] for term in likeliest)
    weights = {term: original * query.count(term) / len(query) for term in query}
    for term in likeliest:
        weights[term] = weights.get(term, 0.0) + (1.0 - original) * likelihood[term] / total
    return weights


def relevance_model_feature(
    weights: Mapping[bytes, float], texts: Sequence[Sequence[bytes]], candidate: int, k1: float, b: float
) -> float:
    """Σ w · idf · tf · (k1 + 1) / (tf + k1 · (1 − b + b · len / avg)) of one candidate.

    texts : the terms of one stream, or of the whole document, of every document of the collection
    """
    n_docs, mean = len(texts), sum(len(words) for words in texts) / len(texts)
    normaliser = 1.0 - b + b * (len(texts[candidate]) / mean if mean else 0.0)
    return math.fsum(
        weight
        * idf(sum(term in words for words in texts), n_docs)
        * saturated(texts[candidate].count(term), k1, normaliser)
        for term, weight in weights.items()
    )
