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
from rankwell.kernels.trees.slabs import MOST_WORDS

# Indices of hot loops are unsigned: a signed one could count from the end.
U = np.uint64
_BYTE = U(255)
_WORDS = U(MOST_WORDS)
# The words of a block during which the next block is fetched, a part of it with each.
_FETCHING_WORDS = 4
# Of a word with as many columns to count, all are counted; of others only those, so many documents at a time.
_NEARLY_WHOLE = 7
_TILE = 128


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
def _add_columns(n_columns, shifts, first, last, histogram, scratch, base, values):
    """Add some of a word's columns, `n_columns` whose bits are from shifts[0], shifts[1], ... on."""
    column = 0
    while n_columns - column >= 4:
        a, b, c, d = shifts[column], shifts[column + 1], shifts[column + 2], shifts[column + 3]
        for place in range(first, last):
            word, value = scratch[base + place], values[place]
            histogram[a * U(32) + ((word >> a) & _BYTE)] += value
            histogram[b * U(32) + ((word >> b) & _BYTE)] += value
            histogram[c * U(32) + ((word >> c) & _BYTE)] += value
            histogram[d * U(32) + ((word >> d) & _BYTE)] += value
        column += 4
    if n_columns - column >= 2:
        a, b = shifts[column], shifts[column + 1]
        for place in range(first, last):
            word, value = scratch[base + place], values[place]
            histogram[a * U(32) + ((word >> a) & _BYTE)] += value
            histogram[b * U(32) + ((word >> b) & _BYTE)] += value
        column += 2
    if column < n_columns:
        a = shifts[column]
        for place in range(first, last):
            histogram[a * U(32) + ((scratch[base + place] >> a) & _BYTE)] += values[place]


@inner_kernel
def _add_block(
    n_docs, n_words, n_counted, shifts, scratch, values, histograms, first_word, slab, packed, rows, ahead, n_ahead
):
    """Add a block's documents, and fetch the lines of rows[ahead : ahead + n_ahead] meanwhile."""
    share = n_docs // _FETCHING_WORDS
    for k in range(n_words):
        histogram = histograms[first_word + k]
        base = U(k * STRIDE)
        first = U(ahead + k * share)
        n_fetched = share if share < n_ahead - k * share else n_ahead - k * share
        n_fetched = U(n_fetched) if n_fetched > 0 and k < _FETCHING_WORDS else U(0)
        if n_counted[first_word + k] >= _NEARLY_WHOLE:
            for c in range(n_fetched):
                row = U(rows[first + c])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
                for u in range(U(4)):
                    place = U(4) * c + u
                    _add(histogram, scratch[base + place], values[place])
            for place in range(U(4) * n_fetched, U(n_docs)):
                _add(histogram, scratch[base + place], values[place])
            continue
        for begin in range(0, n_docs, _TILE):
            for c in range(U(begin // 4), min(U((begin + _TILE) // 4), n_fetched)):
                row = U(rows[first + c])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
            end = U(min(begin + _TILE, n_docs))
            own = shifts[first_word + k]
            _add_columns(n_counted[first_word + k], own, U(begin), end, histogram, scratch, base, values)


@inner_kernel
def count_documents(
    slab, n_words, n_counted, shifts, rows, start, end, packed, histograms, first_word, scratch, values
):
    """Set histograms[first_word : first_word + n_words] to those of the documents rows[start:end].

    slab : uint64 (n_docs · 8,), of which each document's first `n_words` words count; packed : int64 (n_docs,)
    n_counted, shifts : int64 (any,) and uint64 (any, 8), by word, how many of its columns are counted, and where
    histograms : int64 (any, 2048); scratch : uint64 (8 · STRIDE,); values : int64 (BLOCK,)
    """
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
            n_docs,
            n_words,
            n_counted,
            shifts,
            scratch,
            values,
            histograms,
            first_word,
            slab,
            packed,
            rows,
            block + n_docs,
            n_ahead,
        )
