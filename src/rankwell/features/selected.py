"""Features that selection has already computed, or that only look up a document: no posting list is read for them.

They are the score of the model that selected the documents (BM25 of a stream or of the whole document), lengths and
statics, and expressions over those. Values are those of extraction, to the bit, at a hundredth of the cost: enough for
the first pass of a cascade.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwell.features.catalogue import STATIC
from rankwell.features.extraction import fill_expressions
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hits import WHOLE
from rankwell.features.names import Feature
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import SearchResult
from rankwell.kernels.threads import kernel_threads

_BM25, _LENGTH = "bm25", "length"


def is_selected(feature_set: FeatureSet, model: BM25 | BM25F | None) -> bool:
    """Whether every feature is known after a selection by `model` (None is BM25 over the whole document)."""
    model = BM25() if model is None else model
    return all(
        feature.kind in (STATIC, _LENGTH) or feature.expression is not None or _is_score(feature, model)
        for feature in feature_set.features
    )


def selected_features(
    index: Index, feature_set: FeatureSet, found: Sequence[SearchResult], candidates: Sequence[np.ndarray]
) -> np.ndarray:
    """The features of candidates, which are the documents that were found, in this order.

    Returns
    -------
    float32 array (n_candidates, n_features), C order
    """
    docs = np.concatenate([np.empty(0, np.int64), *candidates])
    scores = np.concatenate([np.empty(0), *(result.scores for result in found)])
    lengths, statics = _documents(index, docs)
    rows = np.empty((len(docs), len(feature_set)), np.float32)
    for column, feature in enumerate(feature_set.features):
        if feature.kind == _BM25:
            rows[:, column] = scores
        elif feature.kind == STATIC:
            rows[:, column] = statics[:, index.schema.statics.index(feature.stream)]
        elif feature.kind == _LENGTH:
            whole = feature.stream == WHOLE
            rows[:, column] = lengths.sum(axis=1) if whole else lengths[:, index.schema.streams.index(feature.stream)]
    with kernel_threads(1):
        for level in feature_set.expressions:
            fill_expressions(rows, level)
    return rows


def _is_score(feature: Feature, model: BM25 | BM25F) -> bool:
    if feature.kind != _BM25 or not isinstance(model, BM25):
        return False
    stream = WHOLE if model.stream is None else model.stream
    return (feature.stream, feature.settings["k1"], feature.settings["b"]) == (stream, model.k1, model.b)


def _documents(index: Index, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lengths of streams, int64 (n, n_streams), and the statics, float32 (n, n_statics), of documents."""
    lengths = np.zeros((len(docs), len(index.schema.streams)), np.int64)
    statics = np.full((len(docs), len(index.schema.statics)), np.nan, np.float32)
    segment_of_row = np.searchsorted(index.bases, docs, side="right") - 1
    for number in np.unique(segment_of_row).tolist():
        segment = index.segments[number]
        rows = np.flatnonzero(segment_of_row == number)
        own = docs[rows] - int(index.bases[number])
        by_list = segment["documents.lengths"].reshape(segment.n_docs, segment.lists_per_term)
        lengths[rows, : segment.n_streams] = by_list[own, : segment.n_streams]
        if segment.n_statics:
            statics[rows, : segment.n_statics] = segment["documents.statics"].reshape(segment.n_docs, -1)[own]
    return lengths, statics
