"""Checks every byte of posting lists.

Kernels that search trust what they read. So a list that comes from a file is checked when it is first used
(`check_documents`, `check_positions`: a forged index with right checksums must not make them read or write outside
their arrays), and `rankwell.index.checking` checks all lists against the documents (`check_lists`). Nothing is read
before it is known to be inside its array.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, kernel
from rankwell.kernels.postings.blocks import load_block, load_value
from rankwell.kernels.postings.rules import BLOCK

LARGEST_POSITION = 2**31 - 1
LARGEST_FREQUENCY = 2**31 - 1

# What may be wrong; 0 means that nothing is.
BLOCK_COUNT, WIDTH_CODE, POSTING_BYTES, POSITION_BYTES, DOCUMENT_ORDER, DOCUMENT_RANGE = 1, 2, 3, 4, 5, 6
LAST_DOCUMENT, OCCURRENCES, POSITION_ORDER, POSITION_RANGE, IMPACT_ORDER, IMPACT_BOUND, IMPACT_EXACT = (
    7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip
IMPACT_RANGE, FREQUENCY_RANGE = 14, 15


@kernel
def check_documents(
    list_number, first_block, doc_freq, occurrences, last_doc, data, widths, first_impact, n_impacts, postings, n_docs
):
    """Check a list except its positions, so that kernels can read it; returns (what is wrong, block), (0, -1) if
    nothing is.

    Arrays as in `rankwell.index.segment.ARRAYS`.
    """
    first, stop, n_postings = first_block[list_number], first_block[list_number + 1], np.int64(doc_freq[list_number])
    if not (first >= 0 and first <= stop and stop <= len(last_doc) and n_postings >= 0):
        return BLOCK_COUNT, first
    if stop - first != (n_postings + BLOCK - 1) // BLOCK:
        return BLOCK_COUNT, first
    values = np.empty(BLOCK, np.uint32)
    base, occurred = np.int64(0), np.int64(0)
    for block in range(first, stop):
        count = min(BLOCK, n_postings - BLOCK * (block - first))
        wrong, sum_of_block = _check_block(block, count, base, last_doc, data, widths, postings, n_docs, values)
        if wrong == 0 and not (0 <= first_impact[block] <= first_impact[block + 1] <= n_impacts):
            wrong = IMPACT_RANGE
        if wrong != 0:
            return wrong, block
        occurred += sum_of_block
        base = np.int64(last_doc[block]) + 1
    if occurred != occurrences[list_number]:
        return OCCURRENCES, first
    return 0, np.int64(-1)


@kernel
def _check_block(block, count, base, last_doc, data, widths, postings, n_docs, values):
    """Check the documents and frequencies of a block; returns (what is wrong, sum of frequencies).

    values : uint32 (128,), scratch
    """
    width = np.int64(widths[block])
    doc_code, frequency_code, position_code = width & 3, width >> 2 & 3, width >> 4 & 3
    if width >> 6 != 0 or doc_code > 2 or frequency_code > 2 or position_code > 2:
        return WIDTH_CODE, np.int64(0)
    place, end = data[block], _end(data, block, len(postings))
    if not (place >= 0 and place <= end and end <= len(postings)):
        return POSTING_BYTES, np.int64(0)
    if end - place != (count << doc_code) + (count << frequency_code):
        return POSTING_BYTES, np.int64(0)
    load_block(postings, place, doc_code, 0, count, values, 0)
    n_unordered = np.uint32(0)
    for j in range(np.uint64(1), np.uint64(count)):
        # Without a branch, and unsigned: so the compiler makes vectors of it.
        n_unordered += np.uint32(values[j] <= values[j - np.uint64(1)])
    if n_unordered > 0:
        return DOCUMENT_ORDER, np.int64(0)
    last = base + np.int64(values[count - 1])
    if last >= n_docs:
        return DOCUMENT_RANGE, np.int64(0)
    if last != last_doc[block]:
        return LAST_DOCUMENT, np.int64(0)
    load_block(postings, place + (count << doc_code), frequency_code, 0, count, values, 0)
    occurred, largest = np.int64(count), np.uint32(0)
    for j in range(np.uint64(count)):
        occurred += np.int64(values[j])
        largest = max(largest, values[j])
    return FREQUENCY_RANGE if largest >= LARGEST_FREQUENCY else 0, occurred


@kernel
def check_positions(
    list_number, first_block, doc_freq, data, position_starts, widths, postings, positions, has_positions
):
    """Check the positions of a list whose documents are sound; returns (what is wrong, block), (0, -1) if nothing is.

    Each posting's positions ascend and fit in 31 bits; a list without positions (of the whole document) has no bytes.
    """
    first, stop, n_postings = first_block[list_number], first_block[list_number + 1], np.int64(doc_freq[list_number])
    for block in range(first, stop):
        count = min(BLOCK, n_postings - BLOCK * (block - first))
        wrong = _check_positions_of_block(
            block, count, data, position_starts, widths, postings, positions, has_positions
        )
        if wrong != 0:
            return wrong, block
    return 0, np.int64(-1)


@kernel
def _check_positions_of_block(block, count, data, position_starts, widths, postings, positions, has_positions):
    width = np.int64(widths[block])
    doc_code, frequency_code, position_code = width & 3, width >> 2 & 3, width >> 4 & 3
    frequencies = data[block] + (count << doc_code)
    n_positions = np.int64(0)
    if has_positions:
        for j in range(count):
            n_positions += load_value(postings, frequencies, frequency_code, j) + 1
    place, end = position_starts[block], _end(position_starts, block, len(positions))
    if not (place >= 0 and place <= end and end <= len(positions)):
        return POSITION_BYTES
    if end - place != n_positions << position_code:
        return POSITION_BYTES
    if not has_positions:
        return 0
    number = np.int64(0)
    for j in range(count):
        frequency = load_value(postings, frequencies, frequency_code, j) + 1
        position = load_value(positions, place, position_code, number)
        for i in range(number + 1, number + frequency):
            difference = load_value(positions, place, position_code, i)
            if difference == 0:
                return POSITION_ORDER
            position += difference
        number += frequency
        if position > LARGEST_POSITION:
            return POSITION_RANGE
    return 0


@inlined_kernel
def _end(starts, block, n_bytes):
    """Where the bytes of a block end: where the next block's begin."""
    return np.int64(n_bytes) if block + 1 == len(starts) else starts[block + 1]


@kernel
def check_every_list(
    first_block, doc_freq, occurrences, last_doc, data, position_starts, widths, first_impact, n_impacts, postings,
    positions, lists_per_term, n_streams, n_docs,
):  # fmt: skip
    """`check_documents` and `check_positions` of all lists; returns (what is wrong, list number, block)."""
    for list_number in range(len(doc_freq)):
        wrong, block = check_documents(
            list_number, first_block, doc_freq, occurrences, last_doc, data, widths, first_impact, n_impacts, postings,
            n_docs,
        )  # fmt: skip
        if wrong == 0:
            wrong, block = check_positions(
                list_number, first_block, doc_freq, data, position_starts, widths, postings, positions,
                list_number % lists_per_term < n_streams,
            )  # fmt: skip
        if wrong != 0:
            return wrong, list_number, block
    return 0, -1, np.int64(-1)


@kernel
def check_lists(
    first_block, doc_freq, last_doc, data, widths, first_impact, impact_frequency, impact_length, postings, lengths,
    lists_per_term, total, distinct,
):  # fmt: skip
    """Check the impacts of every list, after `check_every_list`; returns (what is wrong, list number, block).

    Adds each posting to its document and list column in total (int64 [n_docs · lists_per_term], its frequency) and
    distinct (int32, 1). lengths : of the documents, in the same order
    """
    for list_number in range(len(doc_freq)):
        column = list_number % lists_per_term
        base, first = np.int64(0), first_block[list_number]
        for block in range(first, first_block[list_number + 1]):
            count = min(BLOCK, np.int64(doc_freq[list_number]) - BLOCK * (block - first))
            _count_postings(block, count, base, column, data, widths, postings, lists_per_term, total, distinct)
            wrong = _check_impacts(
                block, count, base, column, data, widths, first_impact, impact_frequency, impact_length, postings,
                lengths, lists_per_term,
            )  # fmt: skip
            if wrong != 0:
                return wrong, list_number, block
            base = np.int64(last_doc[block]) + 1
    return 0, -1, np.int64(-1)


@kernel
def _count_postings(block, count, base, column, data, widths, postings, lists_per_term, total, distinct):
    doc_code, frequency_code = widths[block] & 3, widths[block] >> 2 & 3
    for j in range(count):
        doc = base + load_value(postings, data[block], doc_code, j)
        frequency = load_value(postings, data[block] + (count << doc_code), frequency_code, j) + 1
        total[doc * lists_per_term + column] += frequency
        distinct[doc * lists_per_term + column] += 1


@kernel
def _check_impacts(
    block, count, base, column, data, widths, first_impact, impact_frequency, impact_length, postings, lengths,
    lists_per_term,
):  # fmt: skip
    """Whether a block's impacts ascend, bound every posting, and are postings themselves."""
    first, stop = first_impact[block], first_impact[block + 1]
    for impact in range(first + 1, stop):
        ascends = (
            impact_frequency[impact] > impact_frequency[impact - 1]
            and impact_length[impact] > impact_length[impact - 1]
        )
        if not ascends:
            return IMPACT_ORDER
    width = np.int64(widths[block])
    doc_code, frequency_code = width & 3, width >> 2 & 3
    met = np.int64(0)
    seen = np.zeros(stop - first, dtype=np.bool_)
    for j in range(count):
        doc = base + load_value(postings, data[block], doc_code, j)
        frequency = load_value(postings, data[block] + (count << doc_code), frequency_code, j) + 1
        length = lengths[doc * lists_per_term + column]
        # The first impact of at least this frequency is the shortest of those.
        impact = first
        while impact < stop and impact_frequency[impact] < frequency:
            impact += 1
        if impact == stop or impact_length[impact] > length:
            return IMPACT_BOUND
        if impact_frequency[impact] == frequency and impact_length[impact] == length and not seen[impact - first]:
            seen[impact - first] = True
            met += 1
    return 0 if met == stop - first else IMPACT_EXACT
