"""Dot products and cosines, slow and plain: what every device must give, but for the order of sums."""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.vectors.rules import VectorPlace


def stored_vector(row: np.ndarray, place: VectorPlace) -> np.ndarray | None:
    """The numbers of a document's vector, float64; None if it has none. row : int32 words"""
    words = np.ascontiguousarray(row[place.start : place.start + place.n_words])
    first = float(words[:1].view(np.float32)[0])
    if math.isnan(first):
        return None
    if not place.is_int8:
        return words.view(np.float32).astype(np.float64)
    return first * words[1:].view(np.int8)[: place.dimension].astype(np.float64)


def vector_products(rows: np.ndarray, docs: np.ndarray, place: VectorPlace, query: np.ndarray) -> np.ndarray:
    """Dot product and cosine of documents and a query, float64 (n, 2); NaN for documents without a vector."""
    values = np.full((len(docs), 2), np.nan)
    own = query.astype(np.float64)
    for number, doc in enumerate(docs.tolist()):
        vector = stored_vector(rows[doc], place)
        if vector is not None:
            dot = math.fsum(own * vector)
            length = math.sqrt(math.fsum(own * own) * math.fsum(vector * vector))
            values[number] = dot, dot / length if length > 0.0 else 0.0
    return values
