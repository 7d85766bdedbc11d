"""The role of each Unicode character in words: the rule that the kernel, its reference and queries share.

A letter or digit (categories L and N) belongs to a word together with the adjacent letters and digits. A character of
Han, Hiragana or Katakana, which are written without spaces, is a word by itself. A combining mark (category M), and a
character that only joins (soft hyphen, zero-width joiners, word joiner), belongs to the word before it and does not
start one. Everything else separates words.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

SEPARATOR, LETTER, ALONE, MARK = 0, 1, 2, 3
LONGEST_WORD = 255  # bytes; what is longer is not indexed

# There are no letters after these planes; other characters there are separators, except the variation selectors of
# plane 14.
N_KINDS = 0x34000
VARIATION_SELECTORS = range(0xE0100, 0xE01F0)

JOINERS = frozenset("\u00ad\u034f\u200c\u200d\u2060\ufeff")
HALF_WIDTH_MARKS = frozenset("\uff9e\uff9f")
SCRIPTS_WITHOUT_SPACES = (
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


def kind_of(character: str) -> int:
    """`LETTER`, `ALONE`, `MARK` or `SEPARATOR`."""
    category = unicodedata.category(character)[0]
    if category == "M" or character in JOINERS or character in HALF_WIDTH_MARKS:
        return MARK
    if category not in "LN":
        return SEPARATOR
    code = ord(character)
    return ALONE if any(code in script for script in SCRIPTS_WITHOUT_SPACES) else LETTER


@cache
def kind_table() -> np.ndarray:
    """The kind of every character before `N_KINDS`, uint8 (N_KINDS,)."""
    # Two letters per category, of which the first is its class.
    categories = "".join(map(unicodedata.category, map(chr, range(N_KINDS))))
    classes = np.frombuffer(categories.encode("ascii"), dtype=np.uint8)[::2]
    table = np.full(N_KINDS, SEPARATOR, dtype=np.uint8)
    for letter, kind in _KIND_OF_CLASS.items():
        table[classes == ord(letter)] = kind
    for script in SCRIPTS_WITHOUT_SPACES:
        part = table[script.start : script.stop]
        part[part == LETTER] = ALONE
    for character in JOINERS | HALF_WIDTH_MARKS:
        table[ord(character)] = MARK
    table.flags.writeable = False
    return table


_KIND_OF_CLASS = {"L": LETTER, "N": LETTER, "M": MARK}
