"""Features that selection has already computed, or that only look up a document: no posting list is read for them.

They are the score of the model that selected the documents (BM25 of a stream or of the whole document), lengths and
statics, and expressions over those. Values are those of extraction, to the bit, at a hundredth of the cost: enough for
the first pass of a cascade.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankwell.features.catalogue import STATIC
from rankwell.features.extraction import fill_expressions
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hits import WHOLE
from rankwell.features.names import Feature
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import SearchResult
from rankwell.index.segments.columns import number_column
from rankwell.index.segments.segment import Segment
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
    rows = np.empty((len(docs), len(feature_set)), np.float32)
    for column, feature in enumerate(feature_set.features):
        if feature.kind == _BM25:
            rows[:, column] = scores
    for own, local, segment in _parts(index, docs):
        for column, feature in enumerate(feature_set.features):
            if feature.kind == STATIC:
                rows[own, column] = _static(segment, index.schema.statics.index(feature.stream), local)
            elif feature.kind == _LENGTH:
                stream = -1 if feature.stream == WHOLE else index.schema.streams.index(feature.stream)
                rows[own, column] = _length(segment, stream, local)
    with kernel_threads(1):
        for level in feature_set.expressions:
            fill_expressions(rows, level)
    return rows


def _is_score(feature: Feature, model: BM25 | BM25F) -> bool:
    if feature.kind != _BM25 or not isinstance(model, BM25):
        return False
    stream = WHOLE if model.stream is None else model.stream
    return (feature.stream, feature.settings["k1"], feature.settings["b"]) == (stream, model.k1, model.b)


def _parts(index: Index, docs: np.ndarray) -> Iterator[tuple[np.ndarray | slice, np.ndarray, Segment]]:
    """Documents by segment: their rows, their numbers there, and the segment."""
    if len(index.segments) == 1:
        yield slice(None), docs, index.segments[0]
        return
    segment_of_row = np.searchsorted(index.bases, docs, side="right") - 1
    for number in np.unique(segment_of_row).tolist():
        rows = np.flatnonzero(segment_of_row == number)
        yield rows, docs[rows] - int(index.bases[number]), index.segments[number]


def _length(segment: Segment, stream: int, docs: np.ndarray) -> np.ndarray | int:
    """The words of a stream, or of the whole document (-1)."""
    if stream >= segment.n_streams:
        return 0
    column = stream if stream >= 0 else segment.lists_per_term - 1
    lengths: np.ndarray = segment["documents.lengths"][docs * segment.lists_per_term + column]
    return lengths


def _static(segment: Segment, static: int, docs: np.ndarray) -> np.ndarray | float:
    column = number_column(segment, static)
    return np.nan if column is None else column[docs]
