"""The arrays of a segment that kernels read posting lists from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rankwell.index.segments.segment import Segment

if TYPE_CHECKING:
    from rankwell.kernels.postings.blocks import PostingArrays

_NAMES = (
    "lists.first_block",
    "lists.doc_freq",
    "blocks.last_doc",
    "blocks.data",
    "blocks.widths",
    "postings",
    "blocks.first_impact",
    "impacts.frequency",
    "impacts.length",
)


_arrays: WeakKeyDictionary[Segment, PostingArrays] = WeakKeyDictionary()


def posting_arrays(segment: Segment) -> PostingArrays:
    """The arrays, not verified: call `segment.verify_list` before a list is read."""
    known = _arrays.get(segment)
    if known is None:
        from rankwell.kernels.postings.blocks import PostingArrays

        known = _arrays[segment] = PostingArrays(*(segment.unverified(name) for name in _NAMES))
    return known


def segment_column(segment: Segment, column: int) -> int | None:
    """The list column of a stream (by number) or of the whole document (-1) in a segment; None if it has none."""
    if column < 0:
        return segment.lists_per_term - 1
    return column if column < segment.n_streams else None
