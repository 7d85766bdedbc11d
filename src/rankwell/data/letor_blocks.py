"""One block of LETOR text to rows: the kernel for the plain lines, the reference for the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rankwell.data.row_storage import RowStorage
from rankwell.kernels.letor_text.lines import (
    HAS_QID,
    HAS_ZERO_INDEX,
    LARGEST_INDEX,
    N_TEXT_QIDS,
    POSITION,
    REPORT_SIZE,
    ROW,
    WIDEST_LINE,
    Destination,
    read_lines,
)
from rankwell.kernels.letor_text.reference import BLANKS, QID, LineError, Row, parse_line
from rankwell.streams.text_blocks import TextBlock

# How an integer is written, in as many digits as the kernel takes: any other query id is stored as text.
INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class LineRules:
    """What lines may contain, as far as it is known before a block is read."""

    limit: int  # the largest feature index allowed
    has_qid: bool | None  # whether rows have query ids; None before the first row
    keep_comments: bool
    skip_bad_lines: bool


class BlockReading:
    """The reading of one block, of `most_rows` at most, into rows of a storage, from `first_row` on.

    Attributes
    ----------
    report : int64 array
        See `kernels/letor_text/lines.py`.
    qid_spans, comment_spans : int32 arrays
        Where text query ids and comments are in the block.
    n_bad_lines : int
    first_bad_line : (line number, LineError) or None
    """

    def __init__(
        self, block: TextBlock, most_rows: int, storage: RowStorage, first_row: int, base: int, rules: LineRules
    ) -> None:
        self.block = block
        self.most_rows = most_rows
        self.first_row = first_row
        self.rules = rules
        self.n_bad_lines = 0
        self.first_bad_line: tuple[int, LineError] | None = None
        self.qid_spans = np.empty((most_rows, 3), dtype=np.int32)
        self.comment_spans = np.empty((most_rows if rules.keep_comments else 0, 2), dtype=np.int32)
        self.report = np.zeros(REPORT_SIZE, dtype=np.int64)
        self.report[ROW] = first_row
        self.report[LARGEST_INDEX] = -1
        self.report[HAS_QID] = -1 if rules.has_qid is None else rules.has_qid
        self._to = Destination(
            features=storage.features,
            stride=storage.stride,
            width=storage.width,
            base=base,
            limit=rules.limit,
            labels=storage.labels,
            qids=storage.qids,
            first_row=first_row,
            qid_spans=self.qid_spans,
            comment_spans=self.comment_spans,
            stamps=np.zeros(rules.limit + 1, dtype=np.int32),
        )

    @property
    def n_rows(self) -> int:
        return int(self.report[ROW]) - self.first_row

    @property
    def largest_index(self) -> int:
        return int(self.report[LARGEST_INDEX])

    @property
    def has_zero_index(self) -> bool:
        return bool(self.report[HAS_ZERO_INDEX])

    @property
    def has_qid(self) -> bool | None:
        return None if self.report[HAS_QID] < 0 else bool(self.report[HAS_QID])

    @property
    def is_complete(self) -> bool:
        """Whether every feature had a column; if not, the block must be read again into a wider storage."""
        return self.largest_index - self._to.base < self._to.width and not (self.has_zero_index and self._to.base == 1)

    def text_qids(self) -> list[tuple[int, bytes]]:
        """Row and text of each query id that is not an integer."""
        spans = self.qid_spans[: self.report[N_TEXT_QIDS]].tolist()
        return [(self.first_row + row, bytes(self.block.buffer[start:end])) for row, start, end in spans]

    def line_of_largest_index(self) -> int:
        return self._line_number(int(self.report[WIDEST_LINE]))

    def run(self) -> None:
        """Read the block; with `skip_bad_lines` off, up to the first bad line."""
        text = self.block.text
        while True:
            read_lines(text, self._to, self.report)
            start = int(self.report[POSITION])
            if start == self.block.n_bytes:
                return
            end = self.block.buffer.index(b"\n", start)
            try:
                row = parse_line(bytes(self.block.buffer[start:end]), limit=self.rules.limit, has_qid=self.has_qid)
            except LineError as bad:
                self.n_bad_lines += 1
                if self.first_bad_line is None:
                    self.first_bad_line = (self._line_number(start), bad)
                if not self.rules.skip_bad_lines:
                    return
            else:
                if row is not None:
                    self._store(row, start, end)
            self.report[POSITION] = end + 1

    def _store(self, row: Row, start: int, end: int) -> None:
        """What the kernel does for a good line, for a row that the reference read."""
        to, place = self._to, int(self.report[ROW])
        to.labels[place] = row.label
        values = to.features[place * to.stride : place * to.stride + to.width]
        values[:] = 0
        for index, value in row.values.items():
            if 0 <= index - to.base < to.width:
                values[index - to.base] = value
        if row.qid is not None:
            if INTEGER.fullmatch(row.qid):
                to.qids[place] = int(row.qid)
            else:
                qid_start = self.block.buffer.index(QID, start) + len(QID)
                span = (place - self.first_row, qid_start, qid_start + len(row.qid))
                self.qid_spans[self.report[N_TEXT_QIDS]] = span
                self.report[N_TEXT_QIDS] += 1
        if self.rules.keep_comments:
            # Searched from the end: the comment is the end of the line, except for blanks.
            comment_end = start + len(bytes(self.block.buffer[start:end]).rstrip(BLANKS))
            self.comment_spans[place - self.first_row] = comment_end - len(row.comment), comment_end
        largest = max(row.values, default=-1)
        if largest > self.largest_index:
            self.report[LARGEST_INDEX], self.report[WIDEST_LINE] = largest, start
        self.report[HAS_ZERO_INDEX] |= 0 in row.values
        self.report[HAS_QID] = row.qid is not None
        self.report[ROW] = place + 1

    def _line_number(self, position: int) -> int:
        return self.block.first_line + self.block.buffer.count(b"\n", 0, position)
