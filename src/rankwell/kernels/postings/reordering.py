"""A posting list under new document numbers: its occurrences, sorted again."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.cpu.sorting import sort_keys
from rankwell.kernels.postings.blocks import block_documents, block_frequencies, load_values
from rankwell.kernels.postings.rules import BLOCK


@kernel
def place_lists(arrays, block_starts, positions, numbers, new_number, starts, occurrences):
    """Write the occurrences (document << 32 | position) of lists of streams, sorted by their new documents.

    arrays : PostingArrays; block_starts, positions : the segment's ``blocks.positions`` and ``positions``
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
        for block in range(arrays.first_block[numbers[i]], arrays.first_block[numbers[i] + 1]):
            count = block_documents(arrays, numbers[i], block, documents)
            block_frequencies(arrays, block, count, frequencies)
            begin = first[n]
            for j in range(count):
                keys[n] = new_number[documents[j]]
                first[n + 1] = first[n] + frequencies[j]
                n += 1
            code = arrays.widths[block] >> 4 & 3
            load_values(positions, block_starts[block], code, 0, first[n] - begin, gaps[begin:])
        sort_keys(keys[:n], order, scratch)
        place = starts[i]
        for k in range(n):
            document, position = keys[order[k]] << 32, np.int64(0)
            for one in range(first[order[k]], first[order[k] + 1]):
                position += gaps[one]
                occurrences[place] = document | position
                place += 1
