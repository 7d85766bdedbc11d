"""Fast reading of the plain lines of LETOR / SVMlight text.

The kernel reads lines that are clearly valid and stops before any other: a bad one, or one with a number whose rounding
it cannot decide. The caller passes that line to the reference (`kernels/letor_text/reference.py`), which defines the
format, and continues after it. So errors are found and reported in one place, and the kernel only has to be certain of
what it accepts.

A block of text is whole lines, the last one ended by a line feed as well: every loop over bytes stops there at the
latest, so no loop checks for the end of the block. Functions that return a position return -1 if they give up.

The loop over features is written inline, without functions for bytes or numbers: with functions that LLVM inlines the
same code ran at 60 % of the speed, and with functions that Numba inlines it took three times as long to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import inlined_kernel, inner_kernel, kernel
from rankwell.kernels.letor_text.decimal_numbers import (
    CODE_OF_ZERO,
    DIGITS_OF_FLOAT64,
    DOT,
    EXACT_POWERS,
    LETTER_E,
    LOWER_CASE,
    MINUS,
    TEN,
    ZERO,
    read_number,
)
from rankwell.kernels.letor_text.ordered_pairs import N_NAMES, read_ordered_pairs

LINE_FEED, HASH, COLON = 10, 35, 58
QID = np.frombuffer(b"qid:", dtype=np.uint8)
# Indices of loops that are to be vectorised: a signed one could count from the end.
U = np.uint64
# Positions whose count fits a byte, so that the compiler counts 64 of them by an instruction.
_COUNTED_AT_ONCE = 128
# Every integer of this many digits fits in int64.
DIGITS_OF_INT64 = 18

# By byte: whether it is a blank, and whether a token ends before it.
IS_BLANK = np.isin(np.arange(256), [ord(blank) for blank in " \t\v\f\r"])
ENDS_TOKEN = IS_BLANK | np.isin(np.arange(256), [LINE_FEED, HASH])

NO_QID, INTEGER_QID, TEXT_QID = 0, 1, 2

# What the kernel reports, and where it continues when it is called again: slots of an int64 array.
POSITION = 0  # the first byte that was not taken: the end of the block, or the start of a line left to the caller
ROW = 1  # the row of the next line
LARGEST_INDEX = 2  # of a feature in the lines taken; -1 before there is one
WIDEST_LINE = 3  # where the line with that index starts
HAS_ZERO_INDEX = 4  # whether feature index 0 is in one of them
HAS_QID = 5  # whether rows have a query id: 1 or 0, as for the first row; -1 before it
N_TEXT_QIDS = 6  # how many query ids were not integers
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
    qid_spans: np.ndarray  # int32 (n_lines, 3): row - first_row, start and end of each query id that is not an integer
    comment_spans: np.ndarray  # int32 (n_lines, 2): start and end, by row - first_row; empty to keep no comments
    stamps: np.ndarray  # int32 (limit + 1,), by index: start of the last line that named it, plus 1; zeros at first


@kernel(allocates=False)
def count_lines_without_row(text):
    """How many lines of a block begin with a line feed or `#`: others without a row are rare enough to reserve room."""
    n_found = np.int64(text[0] == LINE_FEED or text[0] == HASH)
    for start in range(U(1), U(len(text)), _COUNTED_AT_ONCE):
        n_own = np.uint8(0)
        for position in range(start, min(start + U(_COUNTED_AT_ONCE), U(len(text)))):
            begins = (text[position] == LINE_FEED) | (text[position] == HASH)
            n_own = np.uint8(n_own + np.uint8(begins & (text[position - U(1)] == LINE_FEED)))
        n_found += np.int64(n_own)
    return n_found


@kernel
def read_lines(text, to, report):
    """Read lines of uint8 `text` from the reported position to its end, or to a line that is not clearly valid."""
    position = report[POSITION]
    while position < len(text):
        start = position
        while IS_BLANK[text[position]]:
            position += 1
        if text[position] == LINE_FEED or text[position] == HASH:
            while text[position] != LINE_FEED:
                position += 1
            position += 1
            continue
        position = read_line(text, position, start, to, report)
        if position < 0:
            position = start
            break
    report[POSITION] = position


@inlined_kernel
def read_line(text, position, start, to, report):
    """Read one line, whose label starts at `position`; only a line that is valid to its end changes the report."""
    row = report[ROW]
    label, position = read_number(text, position)
    if position < 0 or not math.isfinite(label) or not ENDS_TOKEN[text[position]]:
        return -1
    kind, position = read_qid(text, position, row, to, report[N_TEXT_QIDS])
    if position < 0 or (report[HAS_QID] >= 0 and report[HAS_QID] != (kind != NO_QID)):
        return -1
    largest, has_zero, position = read_features(text, position, start + 1, row, to)
    if position < 0:
        return -1
    to.labels[row] = label
    position = read_comment(text, position, row - to.first_row, to.comment_spans)
    report[ROW] = row + 1
    report[HAS_QID] = kind != NO_QID
    report[N_TEXT_QIDS] += kind == TEXT_QID
    report[HAS_ZERO_INDEX] |= has_zero
    if largest > report[LARGEST_INDEX]:
        report[LARGEST_INDEX] = largest
        report[WIDEST_LINE] = start
    return position


@inner_kernel
def read_qid(text, position, row, to, n_text_qids):
    """The query id, if there is one: an integer if its text is the usual form of one, otherwise a span of text.

    Returns
    -------
    kind : NO_QID, INTEGER_QID or TEXT_QID
    position : int64
        Of the token after it.
    """
    while IS_BLANK[text[position]]:
        position += 1
    for place in range(len(QID)):
        # A line feed, which QID does not contain, ends the comparison before the end of the block.
        if text[position + place] != QID[place]:
            return NO_QID, position
    start = position + len(QID)
    negative = text[start] == MINUS
    first_digit = start + negative
    position = first_digit
    number = ZERO
    digit = text[position] - CODE_OF_ZERO
    while digit < TEN:
        number = number * TEN + digit
        position += 1
        digit = text[position] - CODE_OF_ZERO
    n_digits = position - first_digit
    is_canonical = text[first_digit] != CODE_OF_ZERO or (n_digits == 1 and not negative)
    kind = INTEGER_QID
    if not (is_canonical and 0 < n_digits <= DIGITS_OF_INT64 and ENDS_TOKEN[text[position]]):
        kind = TEXT_QID
        while not ENDS_TOKEN[text[position]]:
            position += 1
        if position == start:
            return NO_QID, -1
        to.qid_spans[n_text_qids, 0] = row - to.first_row
        to.qid_spans[n_text_qids, 1] = start
        to.qid_spans[n_text_qids, 2] = position
    else:
        to.qids[row] = -np.int64(number) if negative else np.int64(number)
    while IS_BLANK[text[position]]:
        position += 1
    return kind, position


@inlined_kernel
def read_features(text, position, stamp, row, to):
    """All `index:value` up to the comment or the end of the line.

    Returns
    -------
    largest : int64
        The largest index, -1 if there is none.
    has_zero : bool
        Whether index 0 is among them.
    position : int64
        Of the `#` or of the line feed.
    """
    features, stamps, limit, width, base = to.features, to.stamps, to.limit, to.width, to.base
    first = row * to.stride
    following, position = read_ordered_pairs(
        text, position, features, first, base, min(limit + 1, base + width, N_NAMES)
    )
    for column in range(following - base, width):
        features[first + column] = 0
    largest = following - 1 if following > base else -1
    has_zero = following > base and base == 0
    while IS_BLANK[text[position]]:
        position += 1
    if text[position] != LINE_FEED and text[position] != HASH:
        for index in range(base, following):
            stamps[index] = stamp
    while text[position] != LINE_FEED and text[position] != HASH:
        start = position
        number = ZERO
        digit = text[position] - CODE_OF_ZERO
        while digit < TEN:
            number = number * TEN + digit
            position += 1
            digit = text[position] - CODE_OF_ZERO
        n_digits = position - start
        index = np.int64(number)
        if text[position] != COLON or n_digits == 0 or n_digits > DIGITS_OF_INT64 or index > limit:
            return largest, has_zero, -1
        if stamps[index] == stamp:
            return largest, has_zero, -1
        stamps[index] = stamp

        start = position + 1
        negative = text[start] == MINUS
        position = start + negative
        n_decimals = 0
        number = ZERO
        n_digits = -position
        digit = text[position] - CODE_OF_ZERO
        while digit < TEN:
            number = number * TEN + digit
            position += 1
            digit = text[position] - CODE_OF_ZERO
        n_digits += position
        if text[position] == DOT:
            position += 1
            n_decimals = -position
            digit = text[position] - CODE_OF_ZERO
            while digit < TEN:
                number = number * TEN + digit
                position += 1
                digit = text[position] - CODE_OF_ZERO
            n_decimals += position
            n_digits += n_decimals
        if n_digits == 0 or n_digits > DIGITS_OF_FLOAT64 or text[position] | LOWER_CASE == LETTER_E:
            value, position = read_number(text, start)
        else:
            value = np.int64(number) / EXACT_POWERS[n_decimals]
            if negative:
                value = -value
        rounded = np.float32(value)
        if position < 0 or math.isinf(rounded) or not ENDS_TOKEN[text[position]]:
            return largest, has_zero, -1
        column = index - base
        if 0 <= column < width:
            features[first + column] = rounded
        largest = max(largest, index)
        has_zero = has_zero or index == 0
        while IS_BLANK[text[position]]:
            position += 1
    return largest, has_zero, position


@inlined_kernel
def read_comment(text, position, place, spans):
    """Note where the text after `#` starts and ends, without blanks around it; return where the next line starts."""
    end = position
    while text[end] != LINE_FEED:
        end += 1
    if len(spans) > 0:
        start, stop = min(position + 1, end), end
        while start < stop and IS_BLANK[text[start]]:
            start += 1
        while start < stop and IS_BLANK[text[stop - 1]]:
            stop -= 1
        spans[place, 0], spans[place, 1] = start, stop
    return end + 1
