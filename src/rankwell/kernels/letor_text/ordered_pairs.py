"""The pairs that most lines begin with, and many consist of: features numbered one after another, with plain values.

    1:0.25 2:0 3:-117.5 ...     up to seven digits on each side of a dot, then one blank or the end of the line

A name is compared as a whole, and digits are read eight bytes at a time without a branch: a loop over digits ends where
the processor did not expect it. Digits are added up in pairs, in fours, and all of them (as in "Faster integer
parsing" by Johnny Lee and by Daniel Lemire). Whatever is not of this form is left to `lines.read_features`.
"""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.bits import load_word, lowest_bit
from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel
from rankwell.kernels.letor_text.decimal_numbers import CODE_OF_ZERO, DOT, EXACT_POWERS, MINUS, ONE, TEN

# By index: its digits and a colon as a word, which of the word's bits these are, and how many bytes.
N_NAMES = 1000
_NAMES = [f"{index}:".encode() for index in range(N_NAMES)]
NAMES = np.array([int.from_bytes(name, "little") for name in _NAMES], dtype=np.uint64)
NAME_MASKS = np.array([2 ** (8 * len(name)) - 1 for name in _NAMES], dtype=np.uint64)
NAME_BYTES = np.array([len(name) for name in _NAMES], dtype=np.uint64)
# So many bytes are read of a pair at most, a word on each side of the dot included.
_MOST_BYTES = 24

_LINE_FEED, _BLANK = 10, 32
_CODES_OF_ZERO = np.uint64(0x3030303030303030)
# Added to a byte, it sets the upper bit if the byte is more than 9; a carry only reaches bytes after one that is.
_TO_UPPER_BIT, _UPPER_BITS = np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
_UPPER_BIT = np.uint64(2**63)
_THREE, _EIGHT, _SIXTEEN, _HALF, _WORD = (np.uint64(n) for n in (3, 8, 16, 32, 64))
_PAIRS = np.uint64(0x000000FF000000FF)
# The first and third pair count 10^6 and 10^2, the second and fourth 10^4 and 1.
_ODD_PAIRS, _EVEN_PAIRS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))


@inlined_kernel
def _digits_before(word):
    """How many of a word's bytes are digits, the first ones, up to seven; and the word with digits for their codes."""
    digits = word ^ _CODES_OF_ZERO
    others = ((digits + _TO_UPPER_BIT) | digits) & _UPPER_BITS
    return np.uint64(lowest_bit(others | _UPPER_BIT)) >> _THREE, digits


@inlined_kernel
def _number_of(digits, n_digits):
    """The number of the first `n_digits` bytes, 1 to 7."""
    # The last digit becomes the last byte, and what comes before the first one is 0.
    digits <<= _WORD - _EIGHT * n_digits
    pairs = digits * TEN + (digits >> _EIGHT)
    return ((pairs & _PAIRS) * _ODD_PAIRS + ((pairs >> _SIXTEEN) & _PAIRS) * _EVEN_PAIRS) >> _HALF


@inner_kernel
def read_ordered_pairs(text, position, features, first, base, end):
    """Store the values of features base, base + 1, ... as long as pairs are of this form and below `end`.

    position : int64, of the first byte of a pair or of what comes instead
    features : float32, flat; feature `base` is stored at `first`

    Returns
    -------
    following : int64
        The feature after the last one that was stored.
    position : int64
        Of what was not read.
    """
    following = np.int64(base)
    if len(text) < _MOST_BYTES:
        return following, position
    last, at = np.uint64(len(text) - _MOST_BYTES), np.uint64(position)
    while at <= last and following < end:
        if load_word(text, at) & NAME_MASKS[following] != NAMES[following]:
            break
        start = at + NAME_BYTES[following]
        is_negative = text[start] == MINUS
        start += np.uint64(is_negative)
        number = np.uint64(text[start]) - CODE_OF_ZERO
        if number >= TEN:
            break
        place = start + ONE
        if text[place] == _BLANK:
            value = np.float32(np.int64(number))
            features[first + following - base] = -value if is_negative else value
            following += 1
            at = place + ONE
            continue
        if np.uint64(text[place]) - CODE_OF_ZERO < TEN:
            n_digits, digits = _digits_before(load_word(text, start))
            number, place = _number_of(digits, n_digits), start + n_digits
        value = np.float64(np.int64(number))
        if text[place] == DOT:
            n_digits, digits = _digits_before(load_word(text, place + ONE))
            if n_digits == 0:
                break
            # Up to 14 digits in all: both are whole numbers that float64 holds, and the quotient rounds once.
            power = EXACT_POWERS[n_digits]
            value = (value * power + np.float64(np.int64(_number_of(digits, n_digits)))) / power
            place += ONE + n_digits
        ends_with = text[place]
        if ends_with != _BLANK and ends_with != _LINE_FEED:
            break
        features[first + following - base] = np.float32(-value if is_negative else value)
        following += 1
        at = place
        if ends_with == _LINE_FEED:
            break
        at += ONE
    return following, np.int64(at)
