"""Which documents of a segment a query allows: live, with every phrase, with nothing that is excluded."""

from __future__ import annotations

import numpy as np

from rankwell.index.bm25 import WHOLE, ModelColumns
from rankwell.index.posting_arrays import posting_arrays
from rankwell.index.query import Phrase, Query
from rankwell.index.segment import Segment


def allowed_documents(
    segment: Segment, live: np.ndarray | None, query: Query, model: ModelColumns
) -> np.ndarray | None:
    """uint8 (n_docs,), read-only: 1 where a document may be found; None where all may be.

    Words and phrases are looked for in the streams that the model reads; a phrase must occur in one of them.
    """
    if not (query.phrases or query.excluded or query.excluded_phrases):
        return live
    from rankwell.kernels.selection.filters import mark_documents

    allowed = np.ones(segment.n_docs, np.uint8) if live is None else live.copy()
    for phrase in query.phrases:
        found = np.zeros(segment.n_docs, np.uint8)
        _mark_phrase(segment, phrase, model, 1, found)
        allowed &= found
    for term in query.excluded:
        for number in _lists(segment, term, model, positions=False):
            mark_documents(posting_arrays(segment), number, 0, allowed)
    for phrase in query.excluded_phrases:
        _mark_phrase(segment, phrase, model, 0, allowed)
    allowed.flags.writeable = False
    return allowed


def _lists(segment: Segment, term: bytes, model: ModelColumns, *, positions: bool) -> list[int]:
    """A term's lists in the streams that the model reads, checked; by stream where positions are wanted."""
    number = segment.term_number(term)
    if number < 0:
        return []
    if model.columns == (WHOLE,):
        columns = list(range(segment.n_streams)) if positions else [segment.lists_per_term - 1]
    else:
        columns = [column for column in model.columns if column < segment.n_streams]
    lists = [number * segment.lists_per_term + column for column in columns]
    for one in lists:
        segment.verify_list(one, positions=positions)
    return lists


def _mark_phrase(segment: Segment, phrase: Phrase, model: ModelColumns, value: int, marks: np.ndarray) -> None:
    from rankwell.kernels.selection.filters import mark_phrase

    by_term = [_lists(segment, term, model, positions=True) for term in phrase.terms]
    for numbers in zip(*by_term, strict=False):
        mark_phrase(
            posting_arrays(segment),
            segment.unverified("blocks.positions"),
            segment.unverified("positions"),
            np.array(numbers, np.int64),
            np.array(phrase.places, np.int64),
            value,
            marks,
        )
