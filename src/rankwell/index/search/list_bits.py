"""How many documents have any of some words: a bit for each document of a segment.

The bits of frequent terms are kept, up to `_BYTES_PER_DOC` for each document of a segment: to read a list that names
one document in ten takes a hundred times as long as to join its bits to others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from rankwell.index.segments.posting_arrays import posting_arrays
from rankwell.index.segments.segment import Segment

# Terms that at least one in this many documents has are frequent.
_FREQUENT = 32
_BYTES_PER_DOC = 64

# Threads share an index.
_lock = Lock()
_kept: WeakKeyDictionary[Segment, OrderedDict[int, np.ndarray]] = WeakKeyDictionary()


def count_documents(segment: Segment, lists: Iterable[int]) -> int:
    """How many documents are in any of these lists, deleted ones included; the lists must be verified."""
    from rankwell.kernels.selection.document_bits import count_bits, mark_bits

    arrays, wanted = posting_arrays(segment), list(dict.fromkeys(lists))
    if len(wanted) < 2:
        return sum(int(arrays.doc_freq[one]) for one in wanted)
    bits, frequencies = _no_bits(segment), arrays.doc_freq[wanted].tolist()
    is_rare = [frequency * _FREQUENT < segment.n_docs for frequency in frequencies]
    # In one call, which takes longer to begin than to read a short list.
    mark_bits(arrays, np.array([one for one, rare in zip(wanted, is_rare, strict=True) if rare], np.int64), bits)
    for one, rare in zip(wanted, is_rare, strict=True):
        if not rare:
            bits |= _frequent(segment, one)
    return int(count_bits(bits))


def _frequent(segment: Segment, list_number: int) -> np.ndarray:
    """The bits of a frequent term's documents, kept for later."""
    from rankwell.kernels.selection.document_bits import mark_bits

    with _lock:
        known = _kept.setdefault(segment, OrderedDict())
        found = known.get(list_number)
        if found is not None:
            known.move_to_end(list_number)
            return found
    found = _no_bits(segment)
    mark_bits(posting_arrays(segment), np.array([list_number], np.int64), found)
    found.flags.writeable = False
    with _lock:
        known[list_number] = found
        while len(known) > 1 and len(known) * found.nbytes > _BYTES_PER_DOC * segment.n_docs:
            known.popitem(last=False)
    return found


def _no_bits(segment: Segment) -> np.ndarray:
    return np.zeros((segment.n_docs + 63) // 64, np.uint64)
