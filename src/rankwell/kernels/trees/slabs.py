"""Documents' columns in slabs of 64 bytes: one cache line of a document.

slabs[s, d] holds columns 64·s' ... of document d, where every slab has the same number of *words* of eight columns, as
few as the number of slabs allows: 14 words are two slabs of 7, not one of 8 and one of 6, so that two threads that work
on a slab each have equal work. A gathered document costs one cache line per slab.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwell.kernels.disk_arrays import give_back, zeros_beside
from rankwell.kernels.trees.columns import Columns

SLAB_BYTES = 64
WORD = 8
# Columns of which one thread at a time finds the best cut.
HALF_WORD = WORD // 2
# How much of slabs on disk may be in memory.
SLAB_MEMORY = 2**26
MOST_WORDS = SLAB_BYTES // WORD


def slab_shape(n_columns: int) -> tuple[int, int, int]:
    """The number of slabs, words per slab, and words."""
    n_words = max(1, -(-n_columns // WORD))
    n_slabs = -(-n_words // MOST_WORDS)
    return n_slabs, -(-n_words // n_slabs), n_words


def count_half_words(n_columns: int) -> int:
    return max(1, -(-n_columns // HALF_WORD))


def fill_slabs(
    columns: Columns, n_docs: int, parts: Iterator[tuple[int, np.ndarray]], beside: np.ndarray | None = None
) -> np.ndarray:
    """The slabs of documents whose bins come in parts.

    parts : the number of a part's first document, and its bins, uint8 (n_part_docs, n_features)
    beside : where the slabs are: in memory, or on disk if this array is
    Returns uint8 (n_slabs, n_docs, 64), whose lines begin at multiples of 64 bytes.
    """
    from rankwell.kernels.trees.cpu.slab_filling import fill_part

    n_slabs, words_per_slab, _ = slab_shape(len(columns.sizes))
    memory = zeros_beside(beside, (n_slabs * n_docs * SLAB_BYTES + SLAB_BYTES,), np.uint8)
    shift = -memory.ctypes.data % SLAB_BYTES
    slabs = memory[shift : shift + n_slabs * n_docs * SLAB_BYTES].reshape(n_slabs, n_docs, SLAB_BYTES)
    for first, bins in parts:
        fill_part(bins, columns, words_per_slab * WORD, first, slabs)
        give_back(memory)
    return slabs
