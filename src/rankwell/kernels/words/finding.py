"""Finds words in UTF-8 text by the rule of `kernels.words.character_kinds`; `reference.py` is its slow definition.

Text is valid UTF-8. A character is decoded only up to the end of its field, so damaged bytes can give wrong words
but no reads outside the field.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.words.character_kinds import LETTER, MARK, N_KINDS, PAIRED, SEPARATOR, VARIATION_SELECTORS

FIRST_SELECTOR, LAST_SELECTOR = VARIATION_SELECTORS.start, VARIATION_SELECTORS.stop - 1


@kernel
def character_at(text, place, end, kinds):
    """The kind of the non-ASCII character that starts at `place`, and the place after it."""
    byte = np.int64(text[place])
    width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    stop = min(place + width, end)
    code = byte & (0x7F >> width)
    for follow in range(place + 1, stop):
        code = code << 6 | (np.int64(text[follow]) & 0x3F)
    if code < N_KINDS:
        return np.int64(kinds[code]), stop
    return MARK if FIRST_SELECTOR <= code <= LAST_SELECTOR else SEPARATOR, stop


@kernel
def kind_at(text, place, end, kinds):
    """The kind of the character that starts at `place`, and the place after it; a separator at the end."""
    if place >= end:
        return np.int64(SEPARATOR), end
    if text[place] < 128:
        return np.int64(kinds[text[place]]), place + 1
    return character_at(text, place, end, kinds)


@kernel
def end_of_pair(text, second, end, kinds):
    """Where the word ends that a paired character begins, and where the next one starts.

    second : the place after the first character and its marks
    """
    kind, place = kind_at(text, second, end, kinds)
    if kind != PAIRED:
        return second, second
    stop = place
    kind, place = kind_at(text, stop, end, kinds)
    while kind == MARK:
        stop = place
        kind, place = kind_at(text, stop, end, kinds)
    return stop, second if kind == PAIRED else stop


@kernel(for_any_constant=True)
def next_word(text, place, end, kinds):
    """Start and stop of the first word that starts at `place` or after it, and where to look for the next one.

    All are `end` if there is no word. Words overlap only where characters are paired.

    text : uint8, UTF-8; the field ends before `end`
    kinds : uint8 (N_KINDS,), of `character_kinds.kind_table`
    """
    start = end
    first_kind = LETTER
    while place < end:
        if text[place] < 128:
            if kinds[text[place]] == LETTER:
                start = place
                place += 1
                break
            place += 1
        else:
            kind, behind = character_at(text, place, end, kinds)
            if kind not in (SEPARATOR, MARK):
                start = place
                first_kind = kind
                place = behind
                break
            place = behind
    while place < end:
        if text[place] < 128:
            if kinds[text[place]] != LETTER or first_kind != LETTER:
                break
            place += 1
        else:
            kind, behind = character_at(text, place, end, kinds)
            if kind != MARK and (kind != LETTER or first_kind != LETTER):
                break
            place = behind
    if first_kind == PAIRED:
        stop, resume = end_of_pair(text, place, end, kinds)
        return start, stop, resume
    return start, place, place


@kernel
def find_words(text, kinds, spans):
    """Write start and stop of every word of a text to `spans`, int64 (n, 2), and return how many there are.

    A text of b bytes has at most (b + 1) // 2 words.
    """
    n_words = 0
    start, stop, place = next_word(text, 0, len(text), kinds)
    while start < stop:
        spans[n_words, 0] = start
        spans[n_words, 1] = stop
        n_words += 1
        start, stop, place = next_word(text, place, len(text), kinds)
    return n_words
