"""LETOR / SVMlight text in bulk: the plain lines, at the speed of the machine.

The kernel reads lines that are plainly good and stops in front of any other: a bad one, or one with a number whose
rounding it cannot settle. The caller hands that line to the reference (`kernels/reference/letor_text.py`), which
defines what is right, and goes on behind it. So errors are found and worded in one place, and the kernel only has to
be certain of what it accepts.

A block of text is whole lines, the last one ended by a line feed as well: every loop over bytes stops there at the
latest, so none checks for the end of the block. Functions that return a position return -1 where they give up.

Decimal numbers are rounded to float64 as C's `strtod` and Python's `float` do, bit for bit, in one of three ways:

- at most 15 digits and no exponent: one division of two numbers that float64 holds, which rounds once (Clinger, 1990);
- else the product of the digits with a 128-bit power of five, whose upper bits nearly always decide the rounding
  (Lemire, "Number parsing at a gigabyte per second", 2021);
- else the kernel gives up: subnormal, overflowing, or too close to the middle of two float64 numbers.

The functions of the inner loop are inlined by Numba itself: left to LLVM the same code ran at 60 % of the speed. All of
them live in this file, because Numba's cache on disk notices a change in the file of the compiled function, but not in
files that it calls into.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel

TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, HASH, PLUS, MINUS, DOT, ZERO, COLON = 9, 10, 13, 32, 35, 43, 45, 46, 48, 58
LETTER_A, LETTER_D, LETTER_E, LETTER_I, LETTER_N, LETTER_Q = 97, 100, 101, 105, 110, 113
LOWER_CASE = 32

# Every integer of so many digits is one of int64, of uint64, and of float64 without rounding.
DIGITS_OF_INT64, DIGITS_OF_UINT64, DIGITS_OF_FLOAT64 = 18, 19, 15
EXACT_POWERS = 10.0 ** np.arange(DIGITS_OF_FLOAT64 + 1)
SMALLEST_POWER, LARGEST_POWER = -342, 308
UNSETTLED = -1.0

NO_QID, INTEGER_QID, TEXT_QID = 0, 1, 2

# What the kernel reports, and where it goes on when it is called again: slots of an int64 array.
POSITION = 0  # the first byte that was not taken: the end of the block, or the start of a line left to the caller
ROW = 1  # the row of the next line
LARGEST_INDEX = 2  # of a feature in the lines taken; -1 before there is one
WIDEST_LINE = 3  # where the line with that index starts
HAS_ZERO_INDEX = 4  # whether feature index 0 stood in one of them
HAS_QID = 5  # whether rows carry a query id: 1 or 0, as the first one does; -1 before it
N_TEXT_QIDS = 6  # how many query ids were no integers
REPORT_SIZE = 7


class Destination(NamedTuple):
    """Where a block's values go.

    An index that has no column yet is not stored but reported, so that the block can be read again with more columns.
    """

    features: np.ndarray  # float32, flat: a row starts at row * stride and has `width` numbers
    stride: int
    width: int
    base: int  # feature index i goes to column i - base
    limit: int  # an index above this is left to the caller
    labels: np.ndarray  # float64, by row
    qids: np.ndarray  # int64, by row
    first_row: int  # the row of the block's first line
    qid_spans: np.ndarray  # int32 (n_lines, 3): row - first_row, start and end of each query id that is no integer
    comment_spans: np.ndarray  # int32 (n_lines, 2): start and end, by row - first_row; empty to keep no comments
    stamps: np.ndarray  # int32 (limit + 1,), by index: start of the last line that named it, plus 1; zeros at first


@kernel
def count_lines(text):
    """How many line feeds stand in uint8 `text`."""
    total = 0
    for i in range(len(text)):
        total += text[i] == LINE_FEED
    return total


@kernel
def count_rows(text, previous):
    """At most how many rows start in uint8 `text`, which follows the byte `previous`.

    Lines that start with a line feed or `#` hold none; other lines without a row are rare enough to be counted.
    """
    if len(text) == 0:
        return 0
    total = int((previous == LINE_FEED) & (text[0] != LINE_FEED) & (text[0] != HASH))
    for i in range(1, len(text)):
        total += (text[i - 1] == LINE_FEED) & (text[i] != LINE_FEED) & (text[i] != HASH)
    return total


@kernel
def read_lines(text, to, report):
    """Read lines of uint8 `text` from the reported position until its end, or up to a line that is not plainly good."""
    position = report[POSITION]
    while position < len(text):
        start = position
        position = skip_blanks(text, start)
        if text[position] == LINE_FEED or text[position] == HASH:
            position = end_of_line(text, position) + 1
        else:
            position = read_line(text, position, start, to, report)
        if position < 0:
            position = start
            break
    report[POSITION] = position


@kernel(inline="always")
def read_line(text, position, start, to, report):
    """Read one line, whose label starts at `position`; only a line that is good to its end changes the report."""
    row = report[ROW]
    label, position = read_number(text, position)
    if position < 0 or not np.isfinite(label) or not ends_token(text[position]):
        return -1
    kind, position = read_qid(text, skip_blanks(text, position), row, to, report[N_TEXT_QIDS])
    if position < 0 or (report[HAS_QID] >= 0 and (report[HAS_QID] == 1) != (kind != NO_QID)):
        return -1
    largest, has_zero, position = read_features(text, position, start + 1, row, to)
    if position < 0:
        return -1
    to.labels[row] = label
    if len(to.comment_spans) > 0:
        position = read_comment(text, position, to.comment_spans[row - to.first_row])
    else:
        position = end_of_line(text, position)
    report[ROW] = row + 1
    report[HAS_QID] = kind != NO_QID
    report[N_TEXT_QIDS] += kind == TEXT_QID
    report[HAS_ZERO_INDEX] |= has_zero
    if largest > report[LARGEST_INDEX]:
        report[LARGEST_INDEX] = largest
        report[WIDEST_LINE] = start
    return position + 1


@kernel
def read_qid(text, position, row, to, n_text_qids):
    """The query id, if there is one: an integer if its text is just how that integer is written, else a span of text.

    Returns
    -------
    kind : NO_QID, INTEGER_QID or TEXT_QID
    position : int64
        Of the token behind it.
    """
    if not (
        text[position] == LETTER_Q
        and text[position + 1] == LETTER_I
        and text[position + 2] == LETTER_D
        and text[position + 3] == COLON
    ):
        return NO_QID, position
    start = position + 4
    negative = text[start] == MINUS
    first_digit = start + negative
    position = first_digit
    number = 0
    while is_digit(text[position]):
        number = number * 10 + (text[position] - ZERO)
        position += 1
    n_digits = position - first_digit
    is_canonical = text[first_digit] != ZERO or (n_digits == 1 and not negative)
    if is_canonical and 0 < n_digits <= DIGITS_OF_INT64 and ends_token(text[position]):
        to.qids[row] = -number if negative else number
        return INTEGER_QID, skip_blanks(text, position)
    while not ends_token(text[position]):
        position += 1
    if position == start:
        return NO_QID, -1
    span = to.qid_spans[n_text_qids]
    span[0], span[1], span[2] = row - to.first_row, start, position
    return TEXT_QID, skip_blanks(text, position)


@kernel(inline="always")
def read_features(text, position, stamp, row, to):
    """All `index:value` up to the comment or the end of the line.

    Returns
    -------
    largest : int64
        The largest index, -1 where there is none.
    has_zero : bool
        Whether index 0 is among them.
    position : int64
        Of the `#` or of the line feed.
    """
    width, base, limit, stamps = to.width, to.base, to.limit, to.stamps
    values = to.features[row * to.stride : row * to.stride + width]
    values[:] = 0
    largest = -1
    has_zero = False
    while text[position] != LINE_FEED and text[position] != HASH:
        start = position
        index = 0
        while is_digit(text[position]):
            index = index * 10 + (text[position] - ZERO)
            position += 1
        n_digits = position - start
        if text[position] != COLON or n_digits == 0 or n_digits > DIGITS_OF_INT64 or index > limit:
            return largest, has_zero, -1
        number, position = read_number(text, position + 1)
        value = np.float32(number)
        if position < 0 or np.isinf(value) or not ends_token(text[position]):
            return largest, has_zero, -1
        if stamps[index] == stamp:
            return largest, has_zero, -1
        stamps[index] = stamp
        column = index - base
        if 0 <= column < width:
            values[column] = value
        largest = max(largest, index)
        has_zero = has_zero or index == 0
        position = skip_blanks(text, position)
    return largest, has_zero, position


@kernel
def read_comment(text, position, span):
    """Note where the text behind `#` starts and ends, without blanks around it; return where the line ends."""
    end = end_of_line(text, position)
    start, stop = min(position + 1, end), end
    while start < stop and is_blank(text[start]):
        start += 1
    while start < stop and is_blank(text[stop - 1]):
        stop -= 1
    span[0], span[1] = start, stop
    return end


@kernel(inline="always")
def is_digit(byte):
    return np.uint8(byte - ZERO) < 10


@kernel(inline="always")
def is_blank(byte):
    return byte == SPACE or (TAB <= byte <= CARRIAGE_RETURN and byte != LINE_FEED)


@kernel(inline="always")
def ends_token(byte):
    return byte <= HASH and (byte in (SPACE, HASH) or TAB <= byte <= CARRIAGE_RETURN)


@kernel(inline="always")
def skip_blanks(text, position):
    while text[position] <= SPACE and is_blank(text[position]):
        position += 1
    return position


@kernel
def end_of_line(text, position):
    """Where the line feed stands that ends the line of `position`."""
    while text[position] != LINE_FEED:
        position += 1
    return position


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
