"""Which documents may be found: live ones without excluded terms and with the required phrases."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import (
    BLOCK,
    block_documents,
    block_frequencies,
    block_positions,
    block_size,
    find_in_block,
    seek_block,
)


@kernel
def count_live(arrays, list_number, live):
    """How many live documents a list has, and how often the term occurs in them; live : uint8 (n_docs,)"""
    documents, frequencies = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    doc_freq, occurrences = np.int64(0), np.int64(0)
    for block in range(arrays.first_block[list_number], arrays.first_block[list_number + 1]):
        count = block_documents(arrays, list_number, block, documents)
        block_frequencies(arrays, block, count, frequencies)
        for j in range(count):
            if live[documents[j]]:
                doc_freq += 1
                occurrences += np.int64(frequencies[j])
    return doc_freq, occurrences


@kernel
def mark_documents(arrays, list_number, value, marks):
    """marks[d] = value for every document of a list; marks : uint8 (n_docs,)"""
    documents = np.empty(BLOCK, np.uint32)
    for block in range(arrays.first_block[list_number], arrays.first_block[list_number + 1]):
        for j in range(block_documents(arrays, list_number, block, documents)):
            marks[documents[j]] = value


@kernel
def mark_phrase(arrays, block_starts, positions, numbers, places, value, marks):
    """marks[d] = value for every document in which the lists' terms occur at these distances.

    numbers : int64 (n,), lists of one stream; places : int64 (n,), the place of each term in the phrase
    block_starts, positions : the segment's ``blocks.positions`` and ``positions``
    """
    n = len(numbers)
    rarest, cursors = 0, np.empty(n, np.int64)
    for i in range(n):
        cursors[i] = arrays.first_block[numbers[i]]
        if arrays.doc_freq[numbers[i]] < arrays.doc_freq[numbers[rarest]]:
            rarest = i
    documents = np.empty(BLOCK, np.uint32)
    found = np.empty(n, np.int64)
    for block in range(arrays.first_block[numbers[rarest]], arrays.first_block[numbers[rarest] + 1]):
        for j in range(block_documents(arrays, numbers[rarest], block, documents)):
            doc = np.int64(documents[j])
            if _find_all(arrays, numbers, doc, cursors, found) and _stand_together(
                arrays, block_starts, positions, numbers, places, cursors, found
            ):
                marks[doc] = value


@kernel
def _find_all(arrays, numbers, doc, cursors, found):
    """Whether all lists have a document; moves the cursors to its blocks and stores its places there in `found`."""
    for i in range(len(numbers)):
        stop = arrays.first_block[numbers[i] + 1]
        cursors[i] = seek_block(arrays.last_doc, cursors[i], stop, doc)
        if cursors[i] == stop:
            return False
        found[i] = find_in_block(arrays, numbers[i], cursors[i], doc)
        if found[i] < 0:
            return False
    return True


@kernel
def _stand_together(arrays, block_starts, positions, numbers, places, cursors, found):
    """Whether the phrase occurs in the document: some start p has term i at p + places[i], for every i."""
    frequencies = np.empty(BLOCK, np.uint32)
    starts, n_starts = np.empty(0, np.int64), 0
    for i in range(len(numbers)):
        block = cursors[i]
        block_frequencies(arrays, block, block_size(arrays, numbers[i], block), frequencies)
        own = np.empty(frequencies[found[i]], np.int64)
        block_positions(block_starts, positions, arrays.widths, block, frequencies, found[i], own)
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
            return False
    return True
