"""Decimal numbers in text as float64, rounded as C's `strtod` and Python's `float` round them, bit for bit.

A number is `[+-] digits [. digits] [e [+-] digits]`, with a digit before or after the dot, or `[+-] nan`, or `null`. It
is read in one of three ways:

- at most 15 digits and no exponent: one division of two numbers that float64 holds, which rounds once (Clinger, 1990);
  this is written out in the loop over features in `lines.py`, because nearly all numbers are of this form;
- otherwise the product of the digits with a 128-bit power of five, whose upper bits nearly always decide the rounding
  (Lemire, "Number parsing at a gigabyte per second", 2021);
- otherwise it is left to the caller: subnormal, overflowing, or too close to the middle between two float64 numbers.

`text` is a uint8 array in which the number is followed by a byte that cannot be part of one, such as a line feed.
Functions that return a position return -1 if they give up. Digits are uint64 throughout: their constants are uint64 as
well, because Numba converts a uint64 and an int64 to float64.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import inner_kernel, kernel

PLUS, MINUS, DOT, LETTER_A, LETTER_E, LETTER_N = 43, 45, 46, 97, 101, 110
LOWER_CASE = 32
NULL = np.frombuffer(b"null", dtype=np.uint8)
# A byte minus this is its digit, or 10 and more if it is not a digit: the difference is unsigned.
CODE_OF_ZERO = np.uint64(48)
ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)

# Every integer of this many digits fits in uint64, or in float64 without rounding.
DIGITS_OF_UINT64, DIGITS_OF_FLOAT64 = 19, 15
EXACT_POWERS = 10.0 ** np.arange(DIGITS_OF_FLOAT64 + 1)
LARGEST_EXACT = np.uint64(2**53)
SMALLEST_POWER, LARGEST_POWER = -342, 308
UNSETTLED = -1.0

_HALF, _LOWER_HALF = np.uint64(32), np.uint64(2**32 - 1)
_UPPER_BIT, _ALL_BITS = np.uint64(2**63), np.uint64(2**64 - 1)
_SHIFT_TO_LOWEST, _THREE, _NINE, _NINE_BITS = np.uint64(63), np.uint64(3), np.uint64(9), np.uint64(0x1FF)


@kernel
def read_number(text, position):
    """The number that starts at `position`, in any form.

    Returns
    -------
    value : float64
    position : int64
        After the number.
    """
    sign = -1.0 if text[position] == MINUS else 1.0
    is_signed = text[position] == MINUS or text[position] == PLUS
    position += is_signed
    if text[position] | LOWER_CASE == LETTER_N:
        return read_missing(text, position, sign, is_signed)
    digits, exponent, is_cut, position = read_digits(text, position)
    if position >= 0 and text[position] | LOWER_CASE == LETTER_E:
        written, position = read_exponent(text, position + 1)
        exponent += written
    value = round_decimal(digits, exponent)
    # The exact number is between the digits that were kept and these plus one.
    if value == UNSETTLED or (is_cut and value != round_decimal(digits + ONE, exponent)):
        position = -1
    return sign * value, position


@inner_kernel
def read_missing(text, position, sign, is_signed):
    """A missing value, which starts with an n at `position`: nan with or without a sign, or null without one."""
    # Letter by letter: a line feed ends the comparison before the end of the text.
    if text[position + 1] | LOWER_CASE == LETTER_A and text[position + 2] | LOWER_CASE == LETTER_N:
        # The sign of nan is kept, as Python's `float` keeps it.
        return math.copysign(math.nan, sign), position + 3
    n_letters = 1
    while n_letters < len(NULL) and text[position + n_letters] | LOWER_CASE == NULL[n_letters]:
        n_letters += 1
    if n_letters == len(NULL) and not is_signed:
        return math.nan, position + n_letters
    return 0.0, -1


@inner_kernel
def read_digits(text, position):
    """Digits with or without a dot, as an integer of the first 19 that count and a power of ten.

    Returns
    -------
    digits : uint64
    exponent : int64
    is_cut : bool
        Whether a digit other than 0 follows the first 19.
    position : int64
        After the digits, or -1 if there are none.
    """
    start = position
    digits = ZERO
    n_kept = 0
    exponent = 0
    is_cut = False
    n_dots = 0
    while True:
        digit = text[position] - CODE_OF_ZERO
        if digit < TEN:
            if n_kept < DIGITS_OF_UINT64:
                digits = digits * TEN + digit
                n_kept += digits > ZERO
                exponent -= n_dots
            else:
                is_cut = is_cut or digit > ZERO
                exponent += 1 - n_dots
        elif text[position] == DOT and n_dots == 0:
            n_dots = 1
        else:
            break
        position += 1
    if position - start == n_dots:
        position = -1
    return digits, exponent, is_cut, position


@inner_kernel
def read_exponent(text, position):
    """The power of ten after an `e`; gives up on one of more digits than a float64 can need."""
    negative = text[position] == MINUS
    if negative or text[position] == PLUS:
        position += 1
    start = position
    exponent = ZERO
    digit = text[position] - CODE_OF_ZERO
    while digit < TEN and position - start < 6:
        exponent = exponent * TEN + digit
        position += 1
        digit = text[position] - CODE_OF_ZERO
    if position == start or position - start > 5:
        return 0, -1
    return -np.int64(exponent) if negative else np.int64(exponent), position


def _powers_of_five() -> np.ndarray:
    """5^q for q from -342 to 308 as 128 significant bits, uint64 (651, 2): upper and lower half.

    Truncated where q >= 0 and rounded up where q < 0, as the proof of the method requires.
    """
    table = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            scaled = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            scaled = (1 << (bits + 127)) // power + 1
            scaled >>= scaled.bit_length() - 128
        table[q - SMALLEST_POWER] = scaled >> 64, scaled & (2**64 - 1)
    return table


POWERS_OF_FIVE = _powers_of_five()


@inner_kernel
def round_decimal(digits, exponent):
    """The float64 nearest to uint64 `digits` times ten to the `exponent`, or UNSETTLED.

    The names follow Lemire (2021), algorithm 1: w is the digits shifted up to 64 bits, and w * 5^q, of which 128 bits
    are known, has the bits of the answer on top.
    """
    if digits == ZERO or (exponent == 0 and digits <= LARGEST_EXACT):
        return np.float64(digits)
    if exponent < SMALLEST_POWER or exponent > LARGEST_POWER:
        return UNSETTLED
    shift = 0
    w = digits
    while w < _UPPER_BIT:
        w <<= ONE
        shift += 1
    high, low = multiply_to_128(w, POWERS_OF_FIVE[exponent - SMALLEST_POWER, 0])
    # Nine bits are dropped below. Only if all are set can the lower half of the power of five carry into the answer.
    if high & _NINE_BITS == _NINE_BITS:
        carry, _ = multiply_to_128(w, POWERS_OF_FIVE[exponent - SMALLEST_POWER, 1])
        low += carry
        if low < carry:
            high += ONE
        if low == _ALL_BITS and (exponent < -27 or exponent > 55):
            return UNSETTLED
    upper_bit = high >> _SHIFT_TO_LOWEST
    drop = upper_bit + _NINE
    mantissa = high >> drop
    # floor(log2(10^q)) in integers: 217706 / 2^16 is close enough to log2(10) for these q.
    power_of_two = ((217706 * exponent) >> 16) + 63 - shift + np.int64(upper_bit)
    if power_of_two < -1022 or power_of_two > 1022:
        return UNSETTLED
    # Exactly in the middle of two float64 numbers: to the even one, so the bit that would round up is cleared.
    if low <= ONE and -4 <= exponent <= 23 and mantissa & _THREE == ONE and mantissa << drop == high:
        mantissa -= ONE
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    return math.ldexp(np.float64(mantissa), power_of_two - 52)


@inner_kernel
def multiply_to_128(a, b):
    """The upper and lower half of the product of two uint64."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOWER_HALF, b >> _HALF, b & _LOWER_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOWER_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOWER_HALF)
