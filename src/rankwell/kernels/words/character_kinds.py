"""The role of each Unicode character in words: the rules that the kernel, its reference and queries share.

A letter or digit (categories L and N) belongs to a word together with the adjacent letters and digits. A combining mark
(category M), and a character that only joins (soft hyphen, zero-width joiners, word joiner), belongs to the word before
it and does not start one. Everything else separates words.

Some scripts do not separate words by spaces, or (Hangul) separate more than words. Their characters are *paired*: each
two neighbours are a word, so that a text of n of them is n - 1 overlapping words; one without a paired neighbour is a
word by itself. This is rule unicode-2. Under rule unicode-1, which older indexes were built with, a character of Han,
Hiragana or Katakana is always a word by itself, and those of Hangul, Thai, Lao, Khmer and Myanmar are plain letters.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

SEPARATOR, LETTER, ALONE, MARK, PAIRED = 0, 1, 2, 3, 4
OLD_RULE, RULE = "unicode-1", "unicode-2"
LONGEST_WORD = 255  # bytes; what is longer is not indexed

# There are no letters after these planes; other characters there are separators, except the variation selectors of
# plane 14.
N_KINDS = 0x34000
VARIATION_SELECTORS = range(0xE0100, 0xE01F0)

JOINERS = frozenset("\u00ad\u034f\u200c\u200d\u2060\ufeff")
HALF_WIDTH_MARKS = frozenset("\uff9e\uff9f")
HAN_AND_KANA = (
    range(0x3005, 0x3008),
    range(0x3021, 0x302A),
    range(0x3031, 0x3036),
    range(0x3038, 0x3100),
    range(0x31F0, 0x3200),
    range(0x3400, 0xA000),
    range(0xF900, 0xFB00),
    range(0xFF66, 0xFF9E),
    range(0x1AFF0, 0x1B170),
    range(0x20000, 0x40000),
)
# Syllables of Hangul, then Thai, Lao, Myanmar and Khmer without their digits.
OTHERS_PAIRED = (
    range(0xAC00, 0xD7A4),
    range(0x0E01, 0x0E50),
    range(0x0E81, 0x0ED0),
    range(0x0EDC, 0x0EE0),
    range(0x1000, 0x1040),
    range(0x1050, 0x1090),
    range(0x1780, 0x17DE),
)


def kind_of(character: str, rule: str = RULE) -> int:
    """`LETTER`, `ALONE`, `MARK`, `PAIRED` or `SEPARATOR`."""
    category = unicodedata.category(character)[0]
    if category == "M" or character in JOINERS or character in HALF_WIDTH_MARKS:
        return MARK
    if category not in "LN":
        return SEPARATOR
    code = ord(character)
    return next((kind for scripts, kind in _kinds_by_script(rule) if any(code in script for script in scripts)), LETTER)


@cache
def kind_table(rule: str = RULE) -> np.ndarray:
    """The kind of every character before `N_KINDS`, uint8 (N_KINDS,)."""
    # Two letters per category, of which the first is its class.
    categories = "".join(map(unicodedata.category, map(chr, range(N_KINDS))))
    classes = np.frombuffer(categories.encode("ascii"), dtype=np.uint8)[::2]
    table = np.full(N_KINDS, SEPARATOR, dtype=np.uint8)
    for letter, kind in _KIND_OF_CLASS.items():
        table[classes == ord(letter)] = kind
    for scripts, kind in _kinds_by_script(rule):
        for script in scripts:
            part = table[script.start : script.stop]
            part[part == LETTER] = kind
    for character in JOINERS | HALF_WIDTH_MARKS:
        table[ord(character)] = MARK
    table.flags.writeable = False
    return table


def _kinds_by_script(rule: str) -> list[tuple[tuple[range, ...], int]]:
    """The scripts whose letters are of another kind."""
    if rule == OLD_RULE:
        return [(HAN_AND_KANA, ALONE)]
    return [(HAN_AND_KANA, PAIRED), (OTHERS_PAIRED, PAIRED)]


_KIND_OF_CLASS = {"L": LETTER, "N": LETTER, "M": MARK}
