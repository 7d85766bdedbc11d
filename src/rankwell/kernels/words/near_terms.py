"""Terms of a sorted dictionary that are few edits away from a word.

An edit inserts, removes or replaces a character, or swaps two neighbours (optimal string alignment). Row d of the table
holds the distances between the first d characters of a term and every beginning of the word. Terms are sorted, so a
term shares the rows of its common beginning with the one before it; if all distances of two rows are too large, every
term that begins so is skipped.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel


@kernel(inline="always")
def _character(text, place):
    """The character (UTF-8) that begins at a byte, and how many bytes it has."""
    first = np.int64(text[place])
    if first < 0x80:
        return first, 1
    # Never past the end, whatever the bytes are.
    size = min(2 if first < 0xE0 else 3 if first < 0xF0 else 4, len(text) - place)
    code = first & (0x3F >> (size - 1))
    for i in range(1, size):
        code = (code << 6) | (np.int64(text[place + i]) & 0x3F)
    return code, size


@kernel(inline="always")
def _fill_row(rows, depth, characters, word):
    """Compute row `depth` for characters[depth - 1]; returns the smallest distance in it."""
    rows[depth, 0] = depth
    smallest = rows[depth, 0]
    for j in range(1, len(word) + 1):
        same = characters[depth - 1] == word[j - 1]
        distance = min(rows[depth - 1, j] + 1, rows[depth, j - 1] + 1, rows[depth - 1, j - 1] + (0 if same else 1))
        swapped = depth > 1 and j > 1 and characters[depth - 1] == word[j - 2] and characters[depth - 2] == word[j - 1]
        if swapped:
            distance = min(distance, rows[depth - 2, j - 2] + 1)
        rows[depth, j] = distance
        smallest = min(smallest, distance)
    return smallest


@kernel
def near_terms(text, offsets, word, most, numbers, distances):
    """Write the numbers of the terms within `most` edits of the word, and their distances; returns how many there are.

    text, offsets : a segment's ``terms.text`` and ``terms.offsets``; word : int64, its characters, 255 or fewer
    numbers : int64, distances : int64, with room for every term
    """
    rows = np.zeros((257, len(word) + 1), np.int64)
    for j in range(len(word) + 1):
        rows[0, j] = j
    smallest = np.zeros(257, np.int64)
    characters, ends = np.zeros(257, np.int64), np.zeros(257, np.int64)
    n, depth, before, number = 0, 0, np.int64(0), np.int64(0)
    while number < len(offsets) - 1:
        start, stop = offsets[number], offsets[number + 1]
        # Characters that the term shares with the last one whose rows are there.
        shared, place = 0, start
        while shared < depth:
            size = ends[shared] - (ends[shared - 1] if shared else 0)
            if place + size > stop or not _same(text, before + (place - start), place, size):
                break
            place += size
            shared += 1
        depth, before = shared, start
        is_far = False
        while place < stop and depth < 256 and not is_far:
            code, size = _character(text, place)
            characters[depth] = code
            place += size
            ends[depth] = place - start
            depth += 1
            smallest[depth] = _fill_row(rows, depth, characters, word)
            # A swap reads the row before the last.
            is_far = smallest[depth] > most and smallest[depth - 1] > most
        if is_far:
            number = _after_prefix(text, offsets, number, place - start)
            continue
        if place == stop and rows[depth, len(word)] <= most:
            numbers[n], distances[n] = number, rows[depth, len(word)]
            n += 1
        number += 1
    return n


@kernel(inline="always")
def _same(text, one, other, size):
    same = True
    for i in range(size):
        same = same and text[one + i] == text[other + i]
    return same


@kernel(inline="always")
def _after_prefix(text, offsets, number, size):
    """The first term after `number` that does not begin with its first `size` bytes: by doubling, then halving."""
    low, step, last = number, np.int64(1), len(offsets) - 1
    while low + step < last and _begins_as(text, offsets, low + step, number, size):
        low += step
        step += step
    high = min(low + step, last)
    while low + 1 < high:
        middle = (low + high) >> 1
        if _begins_as(text, offsets, middle, number, size):
            low = middle
        else:
            high = middle
    return high


@kernel(inline="always")
def _begins_as(text, offsets, one, other, size):
    begins = offsets[one + 1] - offsets[one] >= size
    return begins and _same(text, offsets[other], offsets[one], size if begins else 0)
