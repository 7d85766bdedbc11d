"""Histograms of a leaf: of every column, the packed sums of gradient and Hessian by the column's value.

Documents of a leaf are anywhere in memory. A block of them is copied into a scratch area, word by word (eight columns),
and each word is then added to eight histograms of 256 sums, 16 KB, which stay in the first-level cache. While a block
is added, the lines of the next one are fetched.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.vectors import prefetch
from rankwell.kernels.trees.cpu.workspace import BLOCK, STRIDE, WORD_VALUES
from rankwell.kernels.trees.slabs import MOST_WORDS, WORD

# Indices of hot loops are unsigned: a signed one could count from the end.
U = np.uint64
_BYTE = U(255)
_WORDS = U(MOST_WORDS)
# The words of a block during which the next block is fetched, a part of it with each.
_FETCHING_WORDS = 4


@inlined_kernel
def _add(histogram, word, value):
    histogram[word & _BYTE] += value
    histogram[U(256) + ((word >> U(8)) & _BYTE)] += value
    histogram[U(512) + ((word >> U(16)) & _BYTE)] += value
    histogram[U(768) + ((word >> U(24)) & _BYTE)] += value
    histogram[U(1024) + ((word >> U(32)) & _BYTE)] += value
    histogram[U(1280) + ((word >> U(40)) & _BYTE)] += value
    histogram[U(1536) + ((word >> U(48)) & _BYTE)] += value
    histogram[U(1792) + (word >> U(56))] += value


@inlined_kernel
def _add_half(histogram, word, value):
    histogram[word & _BYTE] += value
    histogram[U(256) + ((word >> U(8)) & _BYTE)] += value
    histogram[U(512) + ((word >> U(16)) & _BYTE)] += value
    histogram[U(768) + ((word >> U(24)) & _BYTE)] += value


@inner_kernel
def _add_block(n_docs, n_columns, scratch, values, histograms, first_word, slab, packed, rows, ahead, n_ahead):
    """Add a block's documents, and fetch the lines of rows[ahead : ahead + n_ahead] meanwhile."""
    share = n_docs // _FETCHING_WORDS
    for k in range((n_columns + WORD - 1) // WORD):
        histogram = histograms[first_word + k]
        base = U(k * STRIDE)
        done = U(0)
        if k < _FETCHING_WORDS:
            first = k * share
            n_fetched = share if share < n_ahead - first else n_ahead - first
            n_fetched = n_fetched if n_fetched > 0 else 0
            for c in range(U(n_fetched)):
                row = U(rows[U(ahead + first) + c])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
                for u in range(U(4)):
                    place = U(4) * c + u
                    _add(histogram, scratch[base + place], values[place])
            done = U(4 * n_fetched)
        if n_columns - k * WORD <= WORD // 2:
            for place in range(done, U(n_docs)):
                _add_half(histogram, scratch[base + place], values[place])
        else:
            for place in range(done, U(n_docs)):
                _add(histogram, scratch[base + place], values[place])


@inner_kernel
def count_documents(slab, n_columns, rows, start, end, packed, histograms, first_word, scratch, values):
    """Set the histograms from `first_word` on to those of the documents rows[start:end].

    slab : uint64 (n_docs · 8,), of which each document's first `n_columns` bytes count; packed : int64 (n_docs,)
    histograms : int64 (any, 2048); scratch : uint64 (8 · STRIDE,); values : int64 (BLOCK,)
    """
    n_words = (n_columns + WORD - 1) // WORD
    for k in range(n_words):
        histogram = histograms[first_word + k]
        for place in range(U(WORD_VALUES)):
            histogram[place] = 0
    for block in range(start, end, BLOCK):
        n_docs = end - block if end - block < BLOCK else BLOCK
        if block == start:
            for place in range(U(n_docs)):
                row = U(rows[U(block) + place])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
        for place in range(U(n_docs)):
            row = U(rows[U(block) + place])
            values[place] = packed[row]
            for k in range(U(n_words)):
                scratch[k * U(STRIDE) + place] = slab[row * _WORDS + k]
        n_ahead = end - block - n_docs
        n_ahead = n_ahead if n_ahead < BLOCK else BLOCK
        _add_block(
            n_docs, n_columns, scratch, values, histograms, first_word, slab, packed, rows, block + n_docs, n_ahead
        )
