"""LETOR / SVMlight text in bulk: the plain lines, at the speed of the machine.

The kernel reads lines that are plainly good and stops in front of any other: a bad one, or one with a number whose
rounding it cannot settle. The caller hands that line to the reference (`kernels/letor_text/reference.py`), which
defines what is right, and goes on behind it. So errors are found and worded in one place, and the kernel only has to
be certain of what it accepts.

A block of text is whole lines, the last one ended by a line feed as well: every loop over bytes stops there at the
latest, so none checks for the end of the block. Functions that return a position return -1 where they give up.

The functions of the inner loop are inlined by Numba itself: left to LLVM the same code ran at 60 % of the speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.compilation import kernel
from rankwell.kernels.letor_text.decimal_numbers import MINUS, ZERO, is_digit, read_number

TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, HASH, COLON = 9, 10, 13, 32, 35, 58
LETTER_D, LETTER_I, LETTER_Q = 100, 105, 113
# Every integer of so many digits is one of int64.
DIGITS_OF_INT64 = 18

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
