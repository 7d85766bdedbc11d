"""LETOR / SVMlight text to a dataset, block by block on every core.

The main thread reads (and decompresses) the next block while workers turn blocks into rows; a block's rows go straight
to their place, so neither the text nor a second copy of the rows is kept. Results are taken in the order of the file:
the first bad line is the first of the file, and nothing depends on the number of workers.

Before the first block nothing is known about a file. The widest row so far gives the number of columns; a block with a
wider row is read again after the storage has been widened. The number of rows is estimated from the first block and the
size of the file; if the estimate was too low, or the size is unknown, the storage grows by a quarter at a time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from rankwell.data.candidates import peek_candidates
from rankwell.data.dataset import RankingDataset
from rankwell.data.letor_blocks import BlockReading, LineRules
from rankwell.data.letor_header import peek_feature_names
from rankwell.data.row_storage import GrowingComments, RowStorage
from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.kernels.letor_text.lines import count_lines_without_row
from rankwell.kernels.letor_text.reference import LineError
from rankwell.kernels.threads import kernel_threads
from rankwell.streams.decompression import ByteStream
from rankwell.streams.text_blocks import BLOCK_BYTES, LONGEST_LINE, TextBlock, TextBlocks

logger = logging.getLogger("rankwell")

# Without n_features, an index above this is treated as damage, not as a feature: rows are dense.
MOST_FEATURES = 2**16
# Query ids that are text are numbered downwards from here, below every integer that is accepted as an id.
FIRST_TEXT_QID = -(2**62)
# How much the storage grows at a time if the size of the file is unknown: it takes memory while reading.
GROWTH = 1.25
# The room to make, as a multiple of the expected rows: rows differ in length, and a decompressor reads ahead. Unused
# room takes no memory.
SLACK = 1.25

Progress = Callable[[int, int | None], None]


class BadLineError(DataError):
    """A line of a file that breaks the format.

    Attributes
    ----------
    file : str
    line, column : int
        Counted from 1, the column in bytes.
    expected, found : str
        What was expected there, and what was found.
    description : str
        All of that except the file, as text.
    """

    def __init__(self, file: str, line: int, bad: LineError) -> None:
        self.description = f"line {line}, {bad}"
        super().__init__(
            f"{file}, {self.description} Correct the line, or pass ",
            Parameter("on_bad_line", "skip"),
            " to leave such lines out.",
        )
        self.file, self.line, self.column = file, line, bad.column
        self.expected, self.found = bad.expected, bad.found


def read_letor(
    stream: ByteStream,
    *,
    n_features: int | None = None,
    on_bad_line: str = "error",
    comments: bool = True,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    storage: RowStorage | None = None,
    block_bytes: int = BLOCK_BYTES,
    longest_line: int = LONGEST_LINE,
) -> RankingDataset:
    """Read LETOR / SVMlight text; see `rankwell.read` for the parameters and the reference parser for the format.

    storage : an empty one, where rows go; by default in memory
    """
    if n_features is not None and n_features < 1:
        raise ParameterError(f"must be at least 1, got {n_features}.", parameter="n_features")
    names, candidates = peek_feature_names(stream), peek_candidates(stream)
    if names is not None and n_features not in (None, len(names)):
        raise DataError(f"{stream.name} names {len(names)} features, not n_features={n_features}.")
    blocks = TextBlocks(stream, block_bytes=block_bytes, longest_line=longest_line)
    n_features = n_features if names is None else len(names)
    storage = RowStorage() if storage is None else storage
    reader = _LetorReader(blocks, n_features, comments, on_bad_line == "skip", storage)
    with kernel_threads(n_jobs) as n_workers, ThreadPoolExecutor(n_workers) as pool:
        reader.run(pool, n_workers, progress)
    dataset = reader.dataset()
    dataset.feature_names, dataset.candidates, dataset.first_index = names, candidates, reader.base
    return dataset


class _LetorReader:
    """The state of one reading: what is known about the file so far, and the blocks in progress."""

    def __init__(
        self, blocks: TextBlocks, n_features: int | None, keep_comments: bool, skip: bool, storage: RowStorage
    ) -> None:
        self.blocks = blocks
        self.stream = blocks.stream
        self.n_features = n_features
        self.keep_comments = keep_comments
        self.skip_bad_lines = skip
        self.has_qid: bool | None = None
        self.base = 1
        self.largest_index = -1
        self.storage = storage
        self.storage.begin(0 if n_features is None else n_features)
        self.next_row = 0
        self.parts: list[tuple[int, int]] = []
        self.comments = GrowingComments()
        self.number_of_text_qid: dict[bytes, int] = {}
        self.under_way: deque[tuple[BlockReading, Future[None]]] = deque()
        self.n_bad_lines = 0
        self.first_bad_line: BadLineError | None = None

    def run(self, pool: Executor, n_workers: int, progress: Progress | None) -> None:
        """Read all blocks."""
        for block in self.blocks.read(self.leave_out_long_line):
            most_rows = block.n_lines - count_lines_without_row(block.text)
            self._make_room(most_rows)
            reading = self._reading(block, self.next_row, most_rows)
            self.next_row += most_rows
            self.under_way.append((reading, pool.submit(reading.run)))
            # The first rows decide whether rows have query ids and how wide they are: other blocks wait for them.
            self._take_results(leave=n_workers if self.has_qid is not None else 0)
            if progress is not None:
                progress(self.stream.bytes_taken(), self.stream.size)
        self._take_results(leave=0)

    def leave_out_long_line(self, line: int, longest: int) -> None:
        """Called for a line that is too long to be read."""
        self._take_results(leave=0)
        self._note_bad_line(line, LineError(longest + 1, f"the end of the line within {longest} bytes", b"more"))
        self.n_bad_lines += 1

    def dataset(self) -> RankingDataset:
        n_rows = self._close_gaps()
        if n_rows == 0:
            raise DataError(
                f"{self.stream.name} has no row of the form 'label qid:ID index:value ...'.{self._left_out()}"
            )
        features = self.storage.finish(n_rows)
        dataset = RankingDataset(
            features,
            self.storage.labels,
            qid=self.storage.qids if self.has_qid else None,
            comments=self.comments.finish(),
        )
        if self.number_of_text_qid:
            dataset.query_ids = self._text_of_qids(dataset.query_ids)
        if self.n_bad_lines:
            dataset.skipped_lines = self.n_bad_lines
            logger.warning("%s:%s", self.stream.name, self._left_out())
        return dataset

    def _left_out(self) -> str:
        if self.first_bad_line is None:
            return ""
        return f" {self.n_bad_lines} bad lines were left out; the first is {self.first_bad_line.description}"

    def _reading(self, block: TextBlock, first_row: int, most_rows: int) -> BlockReading:
        limit = MOST_FEATURES if self.n_features is None else self.n_features
        rules = LineRules(limit, self.has_qid, self.keep_comments, self.skip_bad_lines)
        return BlockReading(block, most_rows, self.storage, first_row, self.base, rules)

    def _make_room(self, most_rows: int) -> None:
        """Make sure that the storage has room for so many further rows."""
        capacity = self.storage.capacity
        if self.next_row + most_rows <= capacity:
            return
        self._take_results(leave=0)
        self._close_gaps()
        needed = self.next_row + most_rows
        # Closing gaps is enough only if it frees a fair amount of room, or gaps would be closed every time.
        if GROWTH * needed <= capacity:
            return
        n_rows = max(needed, int(GROWTH * capacity))
        expected = self._expected_rows(needed)
        # Pages of a fresh array take no memory before they are written, so it may be as long as the estimate.
        if expected >= 2 * capacity and self.storage.fits(expected):
            n_rows = max(needed, expected)
        with self._memory_errors("Read a part of it, or convert it on a machine with more memory."):
            self.storage.reserve(n_rows, self.next_row)

    def _expected_rows(self, n_rows: int) -> int:
        """The estimated number of rows of the file, of which `n_rows` have been read; 0 if its size is unknown."""
        n_bytes = self.stream.bytes_taken()
        if self.stream.size is None or n_bytes == 0:
            return 0
        return int(SLACK * n_rows * self.stream.size / n_bytes)

    def _close_gaps(self) -> int:
        """Bring all rows together: blank and bad lines were given a place too."""
        self.next_row = self.storage.close_gaps(self.parts)
        self.parts = [(0, self.next_row)]
        return self.next_row

    def _take_results(self, *, leave: int) -> None:
        """Wait for the oldest blocks in progress until only `leave` are left, and take their results."""
        while len(self.under_way) > leave:
            reading, future = self.under_way.popleft()
            future.result()
            if reading.first_bad_line is not None:
                self._note_bad_line(*reading.first_bad_line)
            if not reading.is_complete:
                reading = self._read_again(reading)
            self._take(reading)
            self.storage.written(reading.first_row, reading.n_rows)
            self.blocks.release(reading.block)

    def _read_again(self, reading: BlockReading) -> BlockReading:
        """Give every feature of a block a column, and read the block a second time."""
        for _, future in self.under_way:
            future.result()
        base = 0 if reading.has_zero_index else self.base
        shift = self.base - base
        width = max(self.storage.width + shift, reading.largest_index - base + 1)
        if self.n_features is None:
            remedy = "If the index is right, convert the file on a machine with more memory; else correct the line."
            line = reading.line_of_largest_index()
            with self._memory_errors(f"Feature index {reading.largest_index} is in line {line}. {remedy}"):
                self.storage.widen(width, self.next_row, shift=shift)
        else:
            self.storage.widen(self.n_features, self.next_row, shift=shift)
        self.base = base
        again = self._reading(reading.block, reading.first_row, reading.most_rows)
        again.run()
        return again

    def _take(self, reading: BlockReading) -> None:
        self.largest_index = max(self.largest_index, reading.largest_index)
        if self.n_features is not None and self.largest_index - self.base >= self.n_features:
            raise DataError(
                f"{self.stream.name}: feature index 0 is in the file, so its indices count from 0, and index "
                f"{self.largest_index} is one more than n_features={self.n_features} allows. Pass a larger n_features."
            )
        self.n_bad_lines += reading.n_bad_lines
        if reading.n_rows == 0:
            return
        self.has_qid = reading.has_qid
        self.parts.append((reading.first_row, reading.n_rows))
        for row, text in reading.text_qids():
            number = self.number_of_text_qid.setdefault(text, FIRST_TEXT_QID - len(self.number_of_text_qid))
            self.storage.qids[row] = number
        if self.keep_comments:
            self.comments.append(reading.block.text, reading.comment_spans[: reading.n_rows])

    def _note_bad_line(self, line: int, bad: LineError) -> None:
        error = BadLineError(self.stream.name, line, bad)
        if not self.skip_bad_lines:
            raise error
        self.first_bad_line = self.first_bad_line or error

    def _text_of_qids(self, numbers: np.ndarray) -> np.ndarray:
        """Query ids as text: the text for a number, or the integer as it was written."""
        text_of_number = {number: text for text, number in self.number_of_text_qid.items()}
        texts = np.empty(len(numbers), dtype=object)
        for query, number in enumerate(numbers.tolist()):
            text = text_of_number.get(number)
            texts[query] = str(number) if text is None else text.decode("utf-8", "surrogateescape")
        return texts

    @contextmanager
    def _memory_errors(self, remedy: str) -> Iterator[None]:
        try:
            yield
        except DataError as cause:
            raise DataError(f"{self.stream.name}: {cause} {remedy}") from cause
