"""Which documents have a term or a phrase, as marks: one byte for each document."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import (
    block_documents,
    block_frequencies,
    block_positions,
    block_size,
    blocks_of,
    seek_block,
)
from rankwell.kernels.postings.packing import find_number
from rankwell.kernels.postings.rules import BLOCK


@kernel
def count_live(arrays, list_number, live):
    """How many live documents a list has, and how often the term occurs in them; live : uint8 (n_docs,)"""
    documents, frequencies = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    doc_freq, occurrences = np.int64(0), np.int64(0)
    first, stop = blocks_of(arrays, list_number)
    for block in range(first, stop):
        count = block_documents(arrays, list_number, block, documents, 0)
        block_frequencies(arrays, block, count, frequencies)
        for j in range(count):
            if live[documents[j]]:
                doc_freq += 1
                occurrences += np.int64(frequencies[j])
    return doc_freq, occurrences


@kernel
def mark_documents(arrays, first, stop, step, marks):
    """marks[d] = 1 for every document of the lists first, first + step, ... before stop; marks : uint8 (n_docs,)"""
    documents = np.empty(BLOCK, np.uint32)
    for list_number in range(first, stop, step):
        first_block, stop_block = blocks_of(arrays, list_number)
        for block in range(first_block, stop_block):
            for j in range(block_documents(arrays, list_number, block, documents, 0)):
                marks[documents[j]] = 1


@kernel
def mark_near_phrase(arrays, numbers, places, slop, marks):
    """marks[d] = 1 for every document in which the lists' terms occur nearly at these distances.

    numbers : int64 (n,), lists of one stream; places : int64 (n,), the place of each term in the phrase, ascending
    slop : int64, by how much the terms' distances from their places may differ
    """
    n = len(numbers)
    rarest, cursors = 0, np.empty(n, np.int64)
    for i in range(n):
        cursors[i], _ = blocks_of(arrays, numbers[i])
        if arrays.doc_freq[numbers[i]] < arrays.doc_freq[numbers[rarest]]:
            rarest = i
    documents, found = np.empty(BLOCK, np.uint32), np.empty(n, np.int64)
    decoded, held = np.empty(n * BLOCK, np.uint32), np.full(n, -1, np.int64)
    first, stop = blocks_of(arrays, numbers[rarest])
    for block in range(first, stop):
        for j in range(block_documents(arrays, numbers[rarest], block, documents, 0)):
            doc = np.int64(documents[j])
            if not find_all(arrays, numbers, doc, cursors, found, decoded, held):
                continue
            if _stand_near(arrays, numbers, places, slop, cursors, found):
                marks[doc] = 1


@kernel
def find_all(arrays, numbers, doc, cursors, found, decoded, held):
    """Whether all lists have a document; moves the cursors to its blocks and stores its places there in `found`.

    decoded : uint32 (n * 128,), the documents of the block of each list that was read last; held : int64 (n,), which
    block that was, -1 at first
    """
    for i in range(len(numbers)):
        _, stop = blocks_of(arrays, numbers[i])
        cursors[i] = seek_block(arrays.last_doc, cursors[i], stop, doc)
        if cursors[i] == stop:
            return False
        if held[i] != cursors[i]:
            held[i] = cursors[i]
            block_documents(arrays, numbers[i], cursors[i], decoded, i * BLOCK)
        found[i] = find_number(decoded, i * BLOCK, np.uint32(doc))
        if found[i] >= block_size(arrays, numbers[i], cursors[i]):
            return False
    return True


@kernel
def _stand_near(arrays, numbers, places, slop, cursors, found):
    """Whether some occurrences, one for each term, have distances from their places that differ by `slop` at most.

    The smallest distance is that of some occurrence: with each of them as the smallest, the other terms take their
    first occurrences that are not before it. A term that the phrase repeats takes another occurrence each time.
    """
    n = len(numbers)
    frequencies = np.empty(BLOCK, np.uint32)
    first = np.zeros(n + 1, np.int64)
    for i in range(n):
        count = block_size(arrays, numbers[i], cursors[i])
        block_frequencies(arrays, cursors[i], count, frequencies)
        first[i + 1] = first[i] + np.int64(frequencies[found[i]])
    distances = np.empty(first[n], np.int64)
    for i in range(n):
        count = block_size(arrays, numbers[i], cursors[i])
        block_frequencies(arrays, cursors[i], count, frequencies)
        own = distances[first[i] : first[i + 1]]
        block_positions(arrays, cursors[i], count, frequencies, found[i], own)
        for k in range(len(own)):
            own[k] -= places[i]
    fits = False
    for smallest in distances:
        fits = fits or _fits(distances, first, numbers, places, smallest, slop)
    return fits


@kernel
def _fits(distances, first, numbers, places, smallest, slop):
    """Whether every term has its own occurrence with a distance in [smallest, smallest + slop]."""
    taken = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        least = smallest
        for earlier in range(i):
            if numbers[earlier] == numbers[i]:
                # As positions ascend: after the occurrence that the same term has taken for an earlier place.
                least = max(least, taken[earlier] + 1 - places[i])
        k, stop = first[i], first[i + 1]
        while k < stop:
            middle = (k + stop) >> 1
            if distances[middle] < least:
                k = middle + 1
            else:
                stop = middle
        if k == first[i + 1] or distances[k] > smallest + slop:
            return False
        taken[i] = distances[k] + places[i]
    return True
