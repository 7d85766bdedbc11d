"""Checks every byte of posting lists.

`rankwell.index.checking` calls this after the checksums were right and the offsets ascend, so what it finds is a fault
of the program that wrote the index, not of the disk. Nothing is read before it is known to be inside its array.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import load_value
from rankwell.kernels.postings.rules import BLOCK

LARGEST_POSITION = 2**31 - 1

# What may be wrong; 0 means that nothing is.
BLOCK_COUNT, WIDTH_CODE, POSTING_BYTES, POSITION_BYTES, DOCUMENT_ORDER, DOCUMENT_RANGE = 1, 2, 3, 4, 5, 6
LAST_DOCUMENT, OCCURRENCES, POSITION_ORDER, POSITION_RANGE, IMPACT_ORDER, IMPACT_BOUND, IMPACT_EXACT = (
    7, 8, 9, 10, 11, 12, 13,
)  # fmt: skip


@kernel
def check_lists(
    first_block, doc_freq, occurrences, last_doc, data, position_starts, widths, first_impact, impact_frequency,
    impact_length, postings, positions, lengths, lists_per_term, n_streams, n_docs, total, distinct,
):  # fmt: skip
    """Check every list; returns (what is wrong, list number, block), (0, -1, -1) if nothing is.

    Arrays as in `rankwell.index.segment.ARRAYS`. Adds each posting to its document and list column in
    total (int64 [n_docs · lists_per_term], its frequency) and distinct (int32, 1).
    """
    for list_number in range(len(doc_freq)):
        column = list_number % lists_per_term
        has_positions = column < n_streams
        first, stop = first_block[list_number], first_block[list_number + 1]
        if stop - first != (np.int64(doc_freq[list_number]) + BLOCK - 1) // BLOCK:
            return BLOCK_COUNT, list_number, first
        base, occurred = np.int64(0), np.int64(0)
        for block in range(first, stop):
            count = min(BLOCK, np.int64(doc_freq[list_number]) - BLOCK * (block - first))
            wrong, sum_of_block = _check_block(
                block, count, base, column, last_doc, data, position_starts, widths, postings, positions, lengths,
                lists_per_term, has_positions, n_docs, total, distinct,
            )  # fmt: skip
            if wrong == 0:
                wrong = _check_impacts(
                    block, count, base, column, data, widths, first_impact, impact_frequency, impact_length, postings,
                    lengths, lists_per_term,
                )  # fmt: skip
            if wrong != 0:
                return wrong, list_number, block
            occurred += sum_of_block
            base = np.int64(last_doc[block]) + 1
        if occurred != occurrences[list_number]:
            return OCCURRENCES, list_number, first
    return 0, -1, -1


@kernel
def _check_block(
    block, count, base, column, last_doc, data, position_starts, widths, postings, positions, lengths, lists_per_term,
    has_positions, n_docs, total, distinct,
):  # fmt: skip
    """Check a block except its impacts; returns (what is wrong, sum of frequencies)."""
    width = np.int64(widths[block])
    doc_code, frequency_code, position_code = width & 3, width >> 2 & 3, width >> 4 & 3
    if width >> 6 != 0 or doc_code > 2 or frequency_code > 2 or position_code > 2:
        return WIDTH_CODE, np.int64(0)
    is_last = block + 1 == len(data)
    end = len(postings) if is_last else data[block + 1]
    if data[block] + (count << doc_code) + (count << frequency_code) != end:
        return POSTING_BYTES, np.int64(0)
    before = np.int64(-1)
    occurred = np.int64(0)
    for j in range(count):
        difference = load_value(postings, data[block], doc_code, j)
        doc = base + difference
        frequency = load_value(postings, data[block] + (count << doc_code), frequency_code, j) + 1
        if difference <= before:
            return DOCUMENT_ORDER, occurred
        if doc >= n_docs:
            return DOCUMENT_RANGE, occurred
        before = difference
        occurred += frequency
        total[doc * lists_per_term + column] += frequency
        distinct[doc * lists_per_term + column] += 1
    if base + before != last_doc[block]:
        return LAST_DOCUMENT, occurred
    end = len(positions) if is_last else position_starts[block + 1]
    n_positions = occurred if has_positions else np.int64(0)
    if position_starts[block] + (n_positions << position_code) != end:
        return POSITION_BYTES, occurred
    if has_positions:
        return _check_positions(block, count, data, position_starts, widths, postings, positions), occurred
    return 0, occurred


@kernel
def _check_positions(block, count, data, position_starts, widths, postings, positions):
    """Whether each posting's positions ascend and fit in 31 bits."""
    width = np.int64(widths[block])
    doc_code, frequency_code, position_code = width & 3, width >> 2 & 3, width >> 4 & 3
    place = np.int64(0)
    for j in range(count):
        frequency = load_value(postings, data[block] + (count << doc_code), frequency_code, j) + 1
        position = np.int64(0)
        for i in range(frequency):
            difference = load_value(positions, position_starts[block], position_code, place)
            if i > 0 and difference == 0:
                return POSITION_ORDER
            position += difference
            place += 1
        if position > LARGEST_POSITION:
            return POSITION_RANGE
    return 0


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
