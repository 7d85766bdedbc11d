"""Where a phrase occurs: a posting list made of those of its words."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import (
    block_documents,
    block_frequencies,
    block_positions,
    block_size,
    blocks_of,
)
from rankwell.kernels.postings.rules import BLOCK
from rankwell.kernels.selection.filters import find_all


@kernel
def find_phrase(arrays, numbers, places, docs, frequencies, starts):
    """Write the documents of a phrase, how often each has it, and where its first word is each time.

    numbers : int64 (n,), lists of one stream; places : int64 (n,), the place of each term in the phrase, ascending
    docs, frequencies : int32, room for the rarest list's documents; starts : int32, room for the fewest occurrences

    Returns
    -------
    How many documents there are, and how many occurrences.
    """
    rarest, cursors = 0, np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        cursors[i], _ = blocks_of(arrays, numbers[i])
        if arrays.doc_freq[numbers[i]] < arrays.doc_freq[numbers[rarest]]:
            rarest = i
    documents, found = np.empty(BLOCK, np.uint32), np.empty(len(numbers), np.int64)
    decoded, held = np.empty(len(numbers) * BLOCK, np.uint32), np.full(len(numbers), -1, np.int64)
    n_docs, n_starts = 0, 0
    first, stop = blocks_of(arrays, numbers[rarest])
    for block in range(first, stop):
        for j in range(block_documents(arrays, numbers[rarest], block, documents, 0)):
            doc = np.int64(documents[j])
            if find_all(arrays, numbers, doc, cursors, found, decoded, held):
                own = _common_starts(arrays, numbers, places, cursors, found)
                if len(own) > 0:
                    docs[n_docs], frequencies[n_docs] = doc, len(own)
                    n_docs += 1
                    for k in range(len(own)):
                        starts[n_starts] = own[k]
                        n_starts += 1
    return n_docs, n_starts


@kernel
def _common_starts(arrays, numbers, places, cursors, found):
    """The places p of a document at which the phrase is: term i is at p + places[i], for every i."""
    frequencies = np.empty(BLOCK, np.uint32)
    starts, n_starts = np.empty(0, np.int64), 0
    for i in range(len(numbers)):
        block, count = cursors[i], block_size(arrays, numbers[i], cursors[i])
        block_frequencies(arrays, block, count, frequencies)
        own = np.empty(frequencies[found[i]], np.int64)
        block_positions(arrays, block, count, frequencies, found[i], own)
        for k in range(len(own)):
            own[k] -= places[i]
        if i == 0:
            starts, n_starts = own, len(own)
            continue
        kept, k = 0, 0
        for s in range(n_starts):
            while k < len(own) and own[k] < starts[s]:
                k += 1
            if k < len(own) and own[k] == starts[s]:
                starts[kept] = starts[s]
                kept += 1
        n_starts = kept
        if n_starts == 0:
            break
    return starts[:n_starts]
