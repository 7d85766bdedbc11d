"""A posting list under new document numbers: its occurrences, sorted again."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.postings.blocks import (
    block_documents,
    block_frequencies,
    blocks_of,
    position_place,
    position_width,
)
from rankwell.kernels.postings.packing import load_at_bit
from rankwell.kernels.postings.rules import BLOCK


@kernel
def place_lists(arrays, numbers, new_number, starts, occurrences):
    """Write the occurrences (document << 32 | position) of lists of streams, sorted by their new documents.

    arrays : PostingArrays
    numbers : int64 (n,), lists; starts : int64 (n + 1,), where each list's occurrences go in `occurrences`, int64
    new_number : int32 (n_docs,)
    """
    most = 0
    for i in range(len(numbers)):
        most = max(most, np.int64(arrays.doc_freq[numbers[i]]))
    documents, frequencies = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    keys, first = np.empty(most, np.int64), np.empty(most + 1, np.int64)
    order, scratch = np.empty(most, np.int64), np.empty(most, np.int64)
    for i in range(len(numbers)):
        gaps, n = np.empty(starts[i + 1] - starts[i], np.int64), 0
        first[0] = 0
        first_block, stop_block = blocks_of(arrays, numbers[i])
        for block in range(first_block, stop_block):
            count = block_documents(arrays, numbers[i], block, documents, 0)
            block_frequencies(arrays, block, count, frequencies)
            begin = first[n]
            for j in range(count):
                keys[n] = new_number[documents[j]]
                first[n + 1] = first[n] + frequencies[j]
                n += 1
            width = position_width(arrays.widths[block])
            bit = 8 * position_place(arrays.data[block], arrays.widths[block], count)
            for one in range(begin, first[n]):
                gaps[one] = load_at_bit(arrays.postings, bit, width)
                bit += width
        sort_keys(keys[:n], order, scratch)
        place = starts[i]
        for k in range(n):
            document, position = keys[order[k]] << 32, np.int64(0)
            for one in range(first[order[k]], first[order[k] + 1]):
                position += gaps[one]
                occurrences[place] = document | position
                place += 1
