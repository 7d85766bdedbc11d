"""Decimal numbers in text as float64, rounded as C's `strtod` and Python's `float` round them, bit for bit.

A number is `[+-] digits [. digits] [e [+-] digits]`, with a digit before or behind the dot, or `[+-] nan`. It is read
in one of three ways:

- at most 15 digits and no exponent: one division of two numbers that float64 holds, which rounds once (Clinger, 1990);
- else the product of the digits with a 128-bit power of five, whose upper bits nearly always decide the rounding
  (Lemire, "Number parsing at a gigabyte per second", 2021);
- else it is left to the caller: subnormal, overflowing, or too close to the middle of two float64 numbers.

`text` is a uint8 array in which a byte that is part of no number follows, such as a line feed. Functions that return a
position return -1 where they give up.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

PLUS, MINUS, DOT, ZERO, LETTER_A, LETTER_E, LETTER_N = 43, 45, 46, 48, 97, 101, 110
LOWER_CASE = 32

# Every integer of so many digits is one of uint64, and of float64 without rounding.
DIGITS_OF_UINT64, DIGITS_OF_FLOAT64 = 19, 15
EXACT_POWERS = 10.0 ** np.arange(DIGITS_OF_FLOAT64 + 1)
SMALLEST_POWER, LARGEST_POWER = -342, 308
UNSETTLED = -1.0


@kernel(inline="always")
def is_digit(byte):
    return np.uint8(byte - ZERO) < 10


@kernel(inline="always")
def read_number(text, position):
    """The number that starts at `position`: the usual short form here, any other by `read_unusual_number`.

    Returns
    -------
    value : float64
    position : int64
        Behind the number.
    """
    start = position
    negative = text[position] == MINUS
    if negative:
        position += 1
    first = position
    digits = 0
    while is_digit(text[position]):
        digits = digits * 10 + (text[position] - ZERO)
        position += 1
    n_digits = position - first
    n_decimals = 0
    if text[position] == DOT:
        position += 1
        first = position
        while is_digit(text[position]):
            digits = digits * 10 + (text[position] - ZERO)
            position += 1
        n_decimals = position - first
        n_digits += n_decimals
    if n_digits == 0 or n_digits > DIGITS_OF_FLOAT64 or text[position] | LOWER_CASE == LETTER_E:
        return read_unusual_number(text, start)
    value = digits / EXACT_POWERS[n_decimals]
    return -value if negative else value, position


@kernel
def read_unusual_number(text, position):
    """As `read_number`, for every form: with `+`, an exponent or many digits, and nan."""
    negative = text[position] == MINUS
    if negative or text[position] == PLUS:
        position += 1
    if text[position] | LOWER_CASE == LETTER_N:
        return read_nan(text, position, negative)
    digits, exponent, is_cut, position = read_digits(text, position)
    if position >= 0 and text[position] | LOWER_CASE == LETTER_E:
        written, position = read_exponent(text, position + 1)
        exponent += written
    value = round_decimal(digits, exponent)
    # What was cut off lies between the digits that were kept and these plus one.
    if value == UNSETTLED or (is_cut and value != round_decimal(digits + np.uint64(1), exponent)):
        position = -1
    return -value if negative else value, position


@kernel
def read_nan(text, position, negative):
    """`nan` in any case; its sign is kept, as Python's `float` keeps it."""
    if text[position + 1] | LOWER_CASE == LETTER_A and text[position + 2] | LOWER_CASE == LETTER_N:
        return math.copysign(math.nan, -1.0 if negative else 1.0), position + 3
    return 0.0, -1


@kernel
def read_digits(text, position):
    """Digits with or without a dot, as an integer of the first 19 that count and a power of ten.

    Returns
    -------
    digits : uint64
    exponent : int64
    is_cut : bool
        Whether a digit other than 0 follows the first 19.
    position : int64
        Behind the digits, or -1 where there are none.
    """
    start = position
    digits = np.uint64(0)
    n_kept = 0
    exponent = 0
    is_cut = False
    has_dot = False
    while is_digit(text[position]) or (text[position] == DOT and not has_dot):
        if text[position] == DOT:
            has_dot = True
        elif n_kept < DIGITS_OF_UINT64:
            digits = digits * np.uint64(10) + np.uint64(text[position] - ZERO)
            n_kept += digits > 0
            exponent -= has_dot
        else:
            is_cut = is_cut or text[position] != ZERO
            exponent += not has_dot
        position += 1
    if position - start == has_dot:
        position = -1
    return digits, exponent, is_cut, position


@kernel
def read_exponent(text, position):
    """The power of ten behind an `e`; gives up on one of more digits than a float64 can need."""
    negative = text[position] == MINUS
    if negative or text[position] == PLUS:
        position += 1
    start = position
    exponent = 0
    while is_digit(text[position]) and position - start < 5:
        exponent = exponent * 10 + (text[position] - ZERO)
        position += 1
    if position == start or is_digit(text[position]):
        return 0, -1
    return -exponent if negative else exponent, position


def _powers_of_five() -> np.ndarray:
    """5^q for q from -342 to 308 as 128 significant bits, uint64 (651, 2): upper and lower half.

    Truncated where q >= 0 and rounded up where q < 0, as the proof of the method demands.
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


@kernel
def round_decimal(digits, exponent):
    """The float64 nearest to uint64 `digits` times ten to the `exponent`, or UNSETTLED.

    The names follow Lemire (2021), algorithm 1: w is the digits shifted up to 64 bits, and w * 5^q, of which 128 bits
    are known, has the bits of the answer on top.
    """
    if digits == 0:
        return 0.0
    if exponent < SMALLEST_POWER or exponent > LARGEST_POWER:
        return UNSETTLED
    one = np.uint64(1)
    shift = 0
    w = digits
    while w >> np.uint64(63) == 0:
        w <<= one
        shift += 1
    high, low = multiply_to_128(w, POWERS_OF_FIVE[exponent - SMALLEST_POWER, 0])
    # Nine bits are dropped below. Only if all are set can the lower half of the power of five carry into the answer.
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = multiply_to_128(w, POWERS_OF_FIVE[exponent - SMALLEST_POWER, 1])
        low += carry
        high += np.uint64(low < carry)
        if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (exponent < -27 or exponent > 55):
            return UNSETTLED
    upper_bit = high >> np.uint64(63)
    drop = upper_bit + np.uint64(9)
    mantissa = high >> drop
    # floor(log2(10^q)) in integers: 217706 / 2^16 is close enough to log2(10) for these q.
    power_of_two = ((217706 * exponent) >> 16) + 63 - shift + np.int64(upper_bit)
    if power_of_two < -1022 or power_of_two > 1022:
        return UNSETTLED
    # Exactly in the middle of two float64 numbers: to the even one, so the bit that would round up is cleared.
    if low <= one and -4 <= exponent <= 23 and mantissa & np.uint64(3) == one and mantissa << drop == high:
        mantissa &= ~one
    mantissa = (mantissa + (mantissa & one)) >> one
    return math.ldexp(np.float64(mantissa), power_of_two - 52)


@kernel
def multiply_to_128(a, b):
    """The upper and lower half of the product of two uint64."""
    half = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), (other << half) | (low & mask)
