"""Histograms of a leaf: of every column, the packed sums of gradient and Hessian by the column's value.

Documents of a leaf are anywhere in memory, each a line of the cache. A block of them is added word by word (eight
columns) to eight histograms of 256 sums, 16 KB, which stay in the first-level cache; the block's lines stay in the
second-level one, from which those of the next documents are fetched. While a block is added, the lines of the next
block are fetched into it. Processors write one sum a cycle, which is what limits this; so nothing else is written: to
copy the words side by side first took an eighth longer.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.lean_compilation import inlined_kernel, inner_kernel
from rankwell.kernels.cpu.vectors import prefetch, prefetch_near
from rankwell.kernels.trees.cpu.workspace import BLOCK, HALF_VALUES, NEAR
from rankwell.kernels.trees.slabs import MOST_WORDS

# Indices of hot loops are unsigned: a signed one could count from the end.
U = np.uint64
_BYTE = U(255)
_WORDS = U(MOST_WORDS)
# The words of a block during which the next block is fetched, a part of it with each.
_FETCHING_WORDS = 4
_NEAR = U(NEAR)
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
def _near_word(slab, rows, place, k):
    """Word k of the document rows[place]; fetches the line of the document `NEAR` places after it."""
    prefetch_near(slab, U(rows[place + _NEAR]) * _WORDS + k)
    return slab[U(rows[place]) * _WORDS + k]


@inlined_kernel
def _add_columns(column, n_columns, shifts, first, last, histogram, slab, rows, block, k, values):
    """Add the columns of word k that begin at the bits shifts[column:n_columns], of a block's documents first, ...,
    last − 1."""
    while n_columns - column >= 4:
        a, b, c, d = shifts[column], shifts[column + 1], shifts[column + 2], shifts[column + 3]
        for place in range(first, last):
            word, value = _near_word(slab, rows, block + place, k), values[place]
            histogram[a * U(32) + ((word >> a) & _BYTE)] += value
            histogram[b * U(32) + ((word >> b) & _BYTE)] += value
            histogram[c * U(32) + ((word >> c) & _BYTE)] += value
            histogram[d * U(32) + ((word >> d) & _BYTE)] += value
        column += 4
    if n_columns - column >= 2:
        a, b = shifts[column], shifts[column + 1]
        for place in range(first, last):
            word, value = _near_word(slab, rows, block + place, k), values[place]
            histogram[a * U(32) + ((word >> a) & _BYTE)] += value
            histogram[b * U(32) + ((word >> b) & _BYTE)] += value
        column += 2
    if column < n_columns:
        a = shifts[column]
        for place in range(first, last):
            histogram[a * U(32) + ((_near_word(slab, rows, block + place, k) >> a) & _BYTE)] += values[place]


@inner_kernel
def _add_block(
    block, n_docs, first, n_words, n_counted, shifts, values, histograms, first_word, slab, packed, rows, following,
    n_ahead,
):  # fmt: skip
    """Add whole words of the documents rows[block : block + n_docs], and fetch the lines of the `n_ahead` from
    rows[following] on meanwhile."""
    share = n_docs // _FETCHING_WORDS
    for k in range(n_words):
        histogram, word = histograms[first_word + k], U(first + k)
        ahead = U(following + k * share)
        n_fetched = share if share < n_ahead - k * share else n_ahead - k * share
        n_fetched = U(n_fetched) if n_fetched > 0 and k < _FETCHING_WORDS else U(0)
        if n_counted[first_word + k, 1] >= _NEARLY_WHOLE:
            for c in range(n_fetched):
                row = U(rows[ahead + c])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
                for u in range(U(4)):
                    place = U(4) * c + u
                    _add(histogram, _near_word(slab, rows, U(block) + place, word), values[place])
            for place in range(U(4) * n_fetched, U(n_docs)):
                _add(histogram, _near_word(slab, rows, U(block) + place, word), values[place])
            continue
        for begin in range(0, n_docs, _TILE):
            for c in range(U(begin // 4), min(U((begin + _TILE) // 4), n_fetched)):
                row = U(rows[ahead + c])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
            end = U(min(begin + _TILE, n_docs))
            n_columns, own = n_counted[first_word + k, 1], shifts[first_word + k]
            _add_columns(0, n_columns, own, U(begin), end, histogram, slab, rows, U(block), word, values)


@inner_kernel
def _add_half(block, n_docs, word, half, n_counted, shifts, values, histograms, slab, rows):
    """Add half a word, which is `word` of the slab, of the documents rows[block : block + n_docs]."""
    histogram, own, n_first = histograms[half // 2], shifts[half // 2], n_counted[half // 2, 0]
    first, last = (0, n_first) if half % 2 == 0 else (n_first, n_counted[half // 2, 1])
    for begin in range(0, n_docs, _TILE):
        end = U(min(begin + _TILE, n_docs))
        _add_columns(first, last, own, U(begin), end, histogram, slab, rows, U(block), U(word), values)


@inner_kernel
def count_documents(
    slab, first, first_half, last_half, n_counted, shifts, rows, start, end, following, n_following, packed, histograms,
    values, is_new,
):  # fmt: skip
    """Add the documents rows[start:end] to the histograms of the half words first_half, ..., last_half − 1, which are 0
    first if new. The `n_following` documents from rows[following] on are probably counted next by the same thread:
    their lines are fetched, as those of the first ones are if the histograms are new.

    slab : uint64 (n_docs · 8,), of which word `first` of each document has the first of these halves
    packed : int64 (n_docs,)
    n_counted, shifts : int64 (any, 2) and uint64 (any, 8), by word: see `Workspace`
    rows : uint32, with `NEAR` documents, whichever, after the last; histograms : int64 (any, 2048)
    values : int64 (BLOCK,), written
    """
    if first_half == last_half:
        return
    for half in range(first_half, last_half if is_new else first_half):
        histogram, begin = histograms[half // 2], U(half % 2 * HALF_VALUES)
        for place in range(begin, begin + U(HALF_VALUES)):
            histogram[place] = 0
    for block in range(start, end, BLOCK):
        n_docs = end - block if end - block < BLOCK else BLOCK
        if block == start and is_new:
            for place in range(U(n_docs)):
                row = U(rows[U(block) + place])
                prefetch(slab, row * _WORDS)
                prefetch(packed, row)
        for place in range(U(n_docs)):
            values[place] = packed[U(rows[U(block) + place])]
        next_block, n_ahead = (
            (block + n_docs, end - block - n_docs) if block + n_docs < end else (following, n_following)
        )
        n_ahead = n_ahead if n_ahead < BLOCK else BLOCK
        if first_half % 2 == 1:
            _add_half(block, n_docs, first, first_half, n_counted, shifts, values, histograms, slab, rows)
        first_word, last_word = (first_half + 1) // 2, last_half // 2
        _add_block(
            block,
            n_docs,
            first + first_half % 2,
            last_word - first_word,
            n_counted,
            shifts,
            values,
            histograms,
            first_word,
            slab,
            packed,
            rows,
            next_block,
            n_ahead,
        )
        if last_half % 2 == 1:
            word = first + last_word - first_half // 2
            _add_half(block, n_docs, word, last_half - 1, n_counted, shifts, values, histograms, slab, rows)
