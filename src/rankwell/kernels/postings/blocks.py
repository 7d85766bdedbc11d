"""Reading posting lists: blocks of up to 128 postings.

A block has three runs of numbers (`packing`): the distances of its documents, less one, from the document before
(the first one's from the block's base, the document after the previous block's last one); its frequencies, less one;
and, in the lists of streams, the differences of the positions of each posting, one posting after another. ``widths``
has five bits for the width of each run. `rankwell.kernels.postings.reference` is the slow definition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, kernel
from rankwell.kernels.postings.packing import load_ascending, load_at_bit, load_number, load_run, run_bytes
from rankwell.kernels.postings.rules import BLOCK


class PostingArrays(NamedTuple):
    """A segment's arrays that posting lists consist of; the comments are their names in a segment."""

    first_block: np.ndarray  # int32, lists.first_block
    doc_freq: np.ndarray  # int32, lists.doc_freq
    last_doc: np.ndarray  # int32, blocks.last_doc
    data: np.ndarray  # int64, blocks.data
    widths: np.ndarray  # uint16, blocks.widths
    postings: np.ndarray  # uint8, postings
    first_impact: np.ndarray  # int32, blocks.first_impact
    impact_frequency: np.ndarray  # int32, impacts.frequency
    impact_length: np.ndarray  # int32, impacts.length


@inlined_kernel
def document_width(widths):
    """The width of a block's distances between documents."""
    return np.int64(widths) & 31


@inlined_kernel
def frequency_width(widths):
    """The width of a block's frequencies."""
    return np.int64(widths) >> 5 & 31


@inlined_kernel
def position_width(widths):
    """The width of the differences of a block's positions."""
    return np.int64(widths) >> 10 & 31


@inlined_kernel
def frequency_place(place, widths, count):
    """Where the frequencies of a block of `count` postings begin, which begins at byte `place`."""
    return place + run_bytes(count, document_width(widths))


@inlined_kernel
def position_place(place, widths, count):
    """Where its positions begin."""
    return frequency_place(place, widths, count) + run_bytes(count, frequency_width(widths))


@inlined_kernel
def load_documents(postings, place, widths, base, count, out, at):
    """Write a block's documents, ascending, from out[at] on (uint32 or int32, room for 128)."""
    load_ascending(postings, place, document_width(widths), base, count, out, at)


@inlined_kernel
def load_frequencies(postings, place, widths, count, out, at):
    """Write a block's frequencies from out[at] on (uint32 or int32, room for 128)."""
    load_run(postings, frequency_place(place, widths, count), frequency_width(widths), 1, count, out, at)


@inlined_kernel
def load_frequency(postings, place, widths, count, j):
    """The frequency of posting `j` of a block."""
    return load_number(postings, frequency_place(place, widths, count), frequency_width(widths), count, j) + 1


@inlined_kernel
def block_size(arrays, list_number, block):
    """How many postings a block of a list holds: 128, or the rest for the last one."""
    return min(BLOCK, np.int64(arrays.doc_freq[list_number]) - BLOCK * (block - arrays.first_block[list_number]))


@inlined_kernel
def block_base(arrays, list_number, block):
    """The document that a block's documents count from."""
    return np.int64(0) if block == arrays.first_block[list_number] else np.int64(arrays.last_doc[block - 1]) + 1


@inlined_kernel
def blocks_of(arrays, list_number):
    """The first block of a list and the one after its last, int64."""
    return np.int64(arrays.first_block[list_number]), np.int64(arrays.first_block[list_number + 1])


@inlined_kernel
def block_documents(arrays, list_number, block, out, at):
    """Write a block's documents, ascending, from out[at] on (uint32 or int32, room for 128); returns how many."""
    count, base = block_size(arrays, list_number, block), block_base(arrays, list_number, block)
    load_documents(arrays.postings, arrays.data[block], arrays.widths[block], base, count, out, at)
    return count


@inlined_kernel
def block_frequencies(arrays, block, count, out):
    """Write a block's `count` frequencies to out (uint32 or int32, 128 or more)."""
    load_frequencies(arrays.postings, arrays.data[block], arrays.widths[block], count, out, 0)


@kernel(forceinline=True)
def seek_block(last_doc, block, stop, doc):
    """The first block in [block, stop) whose last document is `doc` or a later one; `stop` if there is none.

    By doubling steps, then halving: a few steps if the document is near.
    """
    if block >= stop or last_doc[block] >= doc:
        return block
    step = np.int64(1)
    while block + step < stop and last_doc[block + step] < doc:
        block += step
        step += step
    low, high = block + 1, min(block + step, stop)
    while low < high:
        middle = (low + high) >> 1
        if last_doc[middle] < doc:
            low = middle + 1
        else:
            high = middle
    return low


@inlined_kernel
def block_positions(arrays, block, count, frequencies, j, out):
    """Write the positions of posting `j` of a block of `count`, ascending, to out (long enough); returns how many.

    frequencies : of the whole block
    """
    before = np.int64(0)
    for i in range(j):
        before += frequencies[i]
    widths = arrays.widths[block]
    width = position_width(widths)
    bit = 8 * position_place(arrays.data[block], widths, count) + before * width
    position, n_positions = np.int64(0), np.int64(frequencies[j])
    for i in range(n_positions):
        position += load_at_bit(arrays.postings, bit + i * width, width)
        out[i] = position
    return n_positions
