"""What a segment's inverted index consists of: the arrays, their types, and how many lists a term has.

`kernels/postings/reference.py` defines what the arrays hold.
"""

from __future__ import annotations

from collections.abc import Mapping

# A list is divided into blocks of this many postings; the last one may be shorter.
BLOCK = 128
# ``postings`` ends with this many bytes of 0: the last block can be read eight bytes at a time.
PADDING = 8
# ``lists.occurrences`` of a list with as many or more: its frequencies have to be added up.
MOST_OCCURRENCES = 2**32 - 1

POSTING_ARRAYS: Mapping[str, str] = {
    "terms.text": "<u1",
    "terms.offsets": "<i8",
    "lists.first_block": "<i4",
    "lists.doc_freq": "<i4",
    "lists.occurrences": "<u4",
    "blocks.last_doc": "<i4",
    "blocks.data": "<i8",
    "blocks.widths": "<u2",
    "blocks.first_impact": "<i4",
    "impacts.frequency": "<i4",
    "impacts.length": "<i4",
    "postings": "<u1",
    "documents.lengths": "<i4",
    "documents.distinct": "<i4",
}

FORWARD_ARRAYS: Mapping[str, str] = {"forward.data": "<u1", "forward.offsets": "<i8"}
"""The forward index, empty if there is none: `kernels/postings/forward.py` says what a record is."""


def lists_per_term(n_streams: int) -> int:
    """Posting lists of a term: one per stream, and one for the whole document if that is not the same."""
    return 1 if n_streams == 1 else n_streams + 1
