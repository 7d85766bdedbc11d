"""Merges several segments into one, as if their live documents had been added one after another.

Everything is read from its first to its last byte in parts, so memory does not grow with the text: it is a few
megabytes per segment, and for each document its lengths (4 bytes per list) and, in segments with deletions, its new
number; with a forward index also the new numbers of all terms (4 bytes per term and segment).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwell.index.merging.document_merging import DocumentMerge
from rankwell.index.merging.list_merging import ListMerge
from rankwell.index.segments.forward_writing import merge_forward, merged_streams
from rankwell.index.segments.segment import ARRAYS, Segment
from rankwell.index.segments.sink import SegmentSink
from rankwell.kernels.postings.rules import lists_per_term


def merge_segments(segments: Sequence[Segment], live: Sequence[np.ndarray | None], sink: SegmentSink) -> dict[str, Any]:
    """Write the live documents of some segments as one segment, and return its meta data.

    Parameters
    ----------
    segments : in the order of their documents
    live : for each segment uint8 [n_docs], 1 for a live document; None where nothing is deleted
    """
    for name, dtype in ARRAYS.items():
        sink.append(name, np.empty(0, dtype=dtype))
    n_streams = max((segment.n_streams for segment in segments), default=0)
    documents = DocumentMerge(segments, live, lists_per_term(n_streams))
    documents.write(sink)
    lists, forward = ListMerge(segments, documents, n_streams), merged_streams(segments)
    numbers = lists.number_terms() if forward else []
    n_terms = lists.write(sink)
    if forward:
        merge_forward(segments, documents.live, numbers, sink)
    meta = {
        "n_docs": documents.n_docs,
        "n_terms": n_terms,
        "n_streams": n_streams,
        "n_statics": documents.n_statics,
        "n_keywords": documents.n_keywords,
        "tokens": documents.tokens(),
        **({"forward": forward} if forward else {}),
        **({"vector_words": documents.vector_words} if documents.vector_words else {}),
    }
    sink.finish(meta)
    return meta
