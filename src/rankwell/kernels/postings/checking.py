"""Checks every byte of posting lists.

Kernels that search trust what they read. So a list that comes from a file is checked when it is first used
(`check_documents`, `check_positions`: a forged index with right checksums must not make them read or write outside
their arrays), and `rankwell.index.checking` checks all lists against the documents (`check_lists`). Nothing is read
before it is known to be inside its array.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.postings.blocks import load_documents, load_frequencies, position_place, position_width
from rankwell.kernels.postings.packing import load_at_bit, run_bytes
from rankwell.kernels.postings.rules import BLOCK, MOST_OCCURRENCES, PADDING

LARGEST_POSITION = 2**31 - 1
LARGEST_FREQUENCY = 2**31 - 1

# What may be wrong; 0 means that nothing is.
BLOCK_COUNT, WIDTH_CODE, POSTING_BYTES, DOCUMENT_RANGE, LAST_DOCUMENT, OCCURRENCES = 1, 2, 3, 4, 5, 6
POSITION_ORDER, POSITION_RANGE, IMPACT_ORDER, IMPACT_BOUND, IMPACT_EXACT, IMPACT_RANGE = 7, 8, 9, 10, 11, 12
FREQUENCY_RANGE = 13


@kernel
def check_documents(
    list_number, first_block, doc_freq, occurrences, last_doc, data, widths, first_impact, n_impacts, postings, n_docs,
    has_positions,
):  # fmt: skip
    """Check a list except its positions, so that kernels can read it; returns (what is wrong, block), (0, -1) if
    nothing is.

    Arrays as in `rankwell.index.segments.segment.ARRAYS`.
    """
    first, stop = np.int64(first_block[list_number]), np.int64(first_block[list_number + 1])
    n_postings = np.int64(doc_freq[list_number])
    if not (first >= 0 and first <= stop and stop <= len(last_doc) and n_postings >= 0):
        return BLOCK_COUNT, first
    if stop - first != (n_postings + BLOCK - 1) // BLOCK:
        return BLOCK_COUNT, first
    values = np.empty(BLOCK, np.uint32)
    base, occurred = np.int64(0), np.int64(0)
    for block in range(first, stop):
        count = min(BLOCK, n_postings - BLOCK * (block - first))
        wrong, sum_of_block = _check_block(
            block, count, base, last_doc, data, widths, postings, n_docs, has_positions, values
        )
        if wrong == 0 and not (0 <= first_impact[block] <= first_impact[block + 1] <= n_impacts):
            wrong = IMPACT_RANGE
        if wrong != 0:
            return wrong, block
        occurred += sum_of_block
        base = np.int64(last_doc[block]) + 1
    if min(occurred, MOST_OCCURRENCES) != occurrences[list_number]:
        return OCCURRENCES, first
    return 0, np.int64(-1)


@kernel
def _check_block(block, count, base, last_doc, data, widths, postings, n_docs, has_positions, values):
    """Check the documents and frequencies of a block, and how many bytes it has; returns (what is wrong, sum of
    frequencies).

    values : uint32 (128,), scratch
    """
    width = widths[block]
    if width >> 15 != 0:
        return WIDTH_CODE, np.int64(0)
    place, end = data[block], np.int64(len(postings)) - PADDING
    if block + 1 < len(data):
        end = min(end, data[block + 1])
    if not (place >= 0 and position_place(place, width, count) <= end):
        return POSTING_BYTES, np.int64(0)
    load_documents(postings, place, width, base, count, values, 0)
    n_unordered = np.uint32(values[0] < base)
    for j in range(np.uint64(1), np.uint64(count)):
        # Without a branch, and unsigned: so the compiler makes vectors of it.
        n_unordered += np.uint32(values[j] <= values[j - np.uint64(1)])
    last = np.int64(values[count - 1])
    if n_unordered > 0 or last >= n_docs:
        return DOCUMENT_RANGE, np.int64(0)
    if last != last_doc[block]:
        return LAST_DOCUMENT, np.int64(0)
    load_frequencies(postings, place, width, count, values, 0)
    occurred, largest = np.int64(0), np.uint32(0)
    for j in range(np.uint64(count)):
        occurred += np.int64(values[j])
        largest = max(largest, values[j])
    if largest > LARGEST_FREQUENCY:
        return FREQUENCY_RANGE, np.int64(0)
    n_positions = occurred if has_positions else np.int64(0)
    if position_place(place, width, count) + run_bytes(n_positions, position_width(width)) != end:
        return POSTING_BYTES, np.int64(0)
    return 0, occurred


@kernel
def check_positions(list_number, first_block, doc_freq, data, widths, postings):
    """Check the positions of a list whose documents are sound; returns (what is wrong, block), (0, -1) if nothing is.

    Each posting's positions ascend and fit in 31 bits.
    """
    first, stop = np.int64(first_block[list_number]), np.int64(first_block[list_number + 1])
    frequencies = np.empty(BLOCK, np.uint32)
    for block in range(first, stop):
        count = min(BLOCK, np.int64(doc_freq[list_number]) - BLOCK * (block - first))
        wrong = _check_positions_of_block(count, data[block], widths[block], postings, frequencies)
        if wrong != 0:
            return wrong, block
    return 0, np.int64(-1)


@kernel
def _check_positions_of_block(count, place, widths, postings, frequencies):
    load_frequencies(postings, place, widths, count, frequencies, 0)
    width, bit = position_width(widths), 8 * position_place(place, widths, count)
    for j in range(count):
        position = load_at_bit(postings, bit, width)
        for i in range(1, frequencies[j]):
            difference = load_at_bit(postings, bit + i * width, width)
            if difference == 0:
                return POSITION_ORDER
            position += difference
        bit += np.int64(frequencies[j]) * width
        if position > LARGEST_POSITION:
            return POSITION_RANGE
    return 0


@kernel
def check_every_list(
    first_block, doc_freq, occurrences, last_doc, data, widths, first_impact, n_impacts, postings, lists_per_term,
    n_streams, n_docs,
):  # fmt: skip
    """`check_documents` and `check_positions` of all lists; returns (what is wrong, list number, block)."""
    for list_number in range(len(doc_freq)):
        has_positions = list_number % lists_per_term < n_streams
        wrong, block = check_documents(
            list_number, first_block, doc_freq, occurrences, last_doc, data, widths, first_impact, n_impacts, postings,
            n_docs, has_positions,
        )  # fmt: skip
        if wrong == 0 and has_positions:
            wrong, block = check_positions(list_number, first_block, doc_freq, data, widths, postings)
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
    cells, frequencies = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32)
    documents = np.empty(BLOCK, np.uint32)
    for list_number in range(len(doc_freq)):
        base, first = np.int64(0), np.int64(first_block[list_number])
        for block in range(first, np.int64(first_block[list_number + 1])):
            count = min(BLOCK, np.int64(doc_freq[list_number]) - BLOCK * (block - first))
            load_documents(postings, data[block], widths[block], base, count, documents, 0)
            load_frequencies(postings, data[block], widths[block], count, frequencies, 0)
            for j in range(count):
                cells[j] = np.int64(documents[j]) * lists_per_term + list_number % lists_per_term
                total[cells[j]] += np.int64(frequencies[j])
                distinct[cells[j]] += 1
            has_impacts = doc_freq[list_number] > BLOCK
            wrong = _check_impacts(
                block, count, has_impacts, first_impact, impact_frequency, impact_length, frequencies, cells, lengths
            )
            if wrong != 0:
                return wrong, list_number, block
            base = np.int64(last_doc[block]) + 1
    return 0, -1, np.int64(-1)


@kernel
def _check_impacts(
    block, count, has_impacts, first_impact, impact_frequency, impact_length, frequencies, cells, lengths
):
    """Whether a block's impacts ascend, bound every posting, and are postings themselves; the only block of a list has
    none.
    """
    first, stop = np.int64(first_impact[block]), np.int64(first_impact[block + 1])
    if not has_impacts:
        return 0 if first == stop else IMPACT_EXACT
    for impact in range(first + 1, stop):
        ascends = (
            impact_frequency[impact] > impact_frequency[impact - 1]
            and impact_length[impact] > impact_length[impact - 1]
        )
        if not ascends:
            return IMPACT_ORDER
    met = np.int64(0)
    seen = np.zeros(stop - first, dtype=np.bool_)
    for j in range(count):
        frequency, length = np.int64(frequencies[j]), lengths[cells[j]]
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
