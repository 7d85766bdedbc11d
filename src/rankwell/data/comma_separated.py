"""CSV with a header: columns label, qid and comment, and one per feature.

Every field is first read as text and converted to a number here, so that an error can name the row and column of a
field that is not a number, or its row can be left out.
"""

from __future__ import annotations

import codecs
import csv
import io
import logging
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv

from rankwell.data import arrow_columns
from rankwell.data.arrow_columns import as_numbers
from rankwell.data.columnar import table_batches
from rankwell.data.dataset import RankingDataset
from rankwell.data.row_storage import RowStorage
from rankwell.errors import DataError, Parameter
from rankwell.kernels.letor_text.reference import BYTE_ORDER_MARK
from rankwell.streams.decompression import ByteStream, named_errors

logger = logging.getLogger("rankwell")

# Also the longest line.
BLOCK_BYTES = 2**24
LONGEST_HEADER = 2**22
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
MISSING = pyarrow.array(["", "nan", "NaN", "NAN", "NA", "N/A", "null", "NULL", "None"])


def read_csv(
    stream: ByteStream,
    *,
    label: str = "label",
    qid: str | None = "qid",
    qid_may_lack: bool = False,
    comments: bool = True,
    on_bad_line: str = "error",
    storage: RowStorage | None = None,
) -> RankingDataset:
    """Read CSV; see `rankwell.read` for the parameters.

    qid_may_lack : whether all rows are one query if there is no column `qid`
    storage : an empty one, where rows go; by default in memory
    """
    storage = RowStorage() if storage is None else storage
    if qid_may_lack and qid not in _header(stream):
        qid = None
    return _CsvReader(stream, label, qid, comments, on_bad_line == "skip", storage).read()


def write_csv(dataset: RankingDataset, sink: Any) -> None:
    """Write CSV with a header to an Arrow file."""
    if dataset.candidates is not None and dataset.candidates.outside:
        logger.warning(
            "CSV cannot hold the note that %s rows are from outside the first pass: nothing will warn of it.",
            f"{dataset.candidates.outside:,}",
        )
    schema, batches = table_batches(dataset, weights=False)
    if schema.get_field_index("comment") >= 0 and schema.field("comment").type == pyarrow.large_binary():
        raise DataError("the comments are not valid UTF-8, which CSV needs. Write .feather or .parquet instead.")
    with pyarrow.csv.CSVWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


class _CsvReader:
    """The state of one reading: the rows so far, and how many were left out."""

    def __init__(
        self, stream: ByteStream, label: str, qid: str | None, comments: bool, skip: bool, storage: RowStorage
    ) -> None:
        self.stream = stream
        self.names = _header(stream)
        self.roles = arrow_columns.assign_roles(stream.name, self.names, label=label, qid=qid, comments=comments)
        self.skip_bad_lines = skip
        self.n_rows_seen = 0
        self.n_rows = 0
        self.n_bad_lines = 0
        self.storage = storage
        self.storage.begin(len(self.roles.features))
        self.beside: dict[str, list[pyarrow.Array]] = {name: [] for name in self.roles.others}

    def read(self) -> RankingDataset:
        with named_errors(self.stream.name):
            for batch in self._batches():
                self._take(batch)
        columns = {name: pyarrow.chunked_array(parts) for name, parts in self.beside.items() if parts}
        if self.n_rows == 0:
            raise DataError(f"{self.stream.name} has no rows. {self.n_bad_lines} bad lines were left out.")
        if self.roles.qid is not None and _all_match(columns[self.roles.qid], INTEGER):
            columns[self.roles.qid] = columns[self.roles.qid].cast(pyarrow.int64())
        features = self.storage.finish(self.n_rows)
        names = arrow_columns.names_of_features({}, self.roles.features)
        dataset = arrow_columns.build_dataset(self.stream.name, features, names, self.roles, columns)
        if self.n_bad_lines:
            dataset.skipped_lines = self.n_bad_lines
            logger.warning("%s: left out %d bad lines", self.stream.name, self.n_bad_lines)
        return dataset

    def _batches(self) -> pyarrow.csv.CSVStreamingReader:
        # One thread, so that an error can say in which row it is.
        return pyarrow.csv.open_csv(
            _Utf8Stream(self.stream),
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._bad_row),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pyarrow.string() for name in self.names}, strings_can_be_null=False
            ),
        )

    def _bad_row(self, row: pyarrow.csv.InvalidRow) -> str:
        """Tell Arrow what to do with a row of too many or too few fields."""
        self.n_bad_lines += 1
        return "skip" if self.skip_bad_lines else "error"

    def _take(self, batch: pyarrow.RecordBatch) -> None:
        """Turn a batch of text into rows."""
        is_bad = np.zeros(batch.num_rows, dtype=bool)
        features = np.empty((batch.num_rows, len(self.roles.features)), dtype=np.float32)
        for place, name in enumerate(self.roles.features):
            features[:, place], is_none = _numbers(batch.column(name), pyarrow.float32())
            self._note_bad_fields(batch, name, "a number that float32 can hold, or nothing", is_none, is_bad)
        columns = {name: batch.column(name) for name in self.roles.others}
        if self.roles.label is not None:
            labels, is_none = _numbers(columns[self.roles.label], pyarrow.float64())
            self._note_bad_fields(batch, self.roles.label, "a finite number", is_none | np.isnan(labels), is_bad)
            columns[self.roles.label] = pyarrow.array(labels)
        if self.roles.qid is not None:
            is_empty = np.asarray(pyarrow.compute.equal(columns[self.roles.qid], ""))
            self._note_bad_fields(batch, self.roles.qid, "a query id", is_empty, is_bad)
        self._append(
            features[~is_bad], {name: column.filter(pyarrow.array(~is_bad)) for name, column in columns.items()}
        )
        self.n_rows_seen += batch.num_rows
        self.n_bad_lines += int(is_bad.sum())

    def _append(self, features: np.ndarray, columns: dict[str, pyarrow.Array]) -> None:
        end = self.n_rows + len(features)
        if end > self.storage.capacity:
            self.storage.reserve(max(end, int(1.25 * self.storage.capacity)), self.n_rows)
        width = self.storage.width
        self.storage.features[self.n_rows * width : end * width] = features.reshape(-1)
        self.storage.written(self.n_rows, len(features))
        self.n_rows = end
        for name, column in columns.items():
            self.beside[name].append(column)

    def _note_bad_fields(
        self, batch: pyarrow.RecordBatch, name: str, expected: str, is_wrong: np.ndarray, is_bad: np.ndarray
    ) -> None:
        if is_wrong.any() and not self.skip_bad_lines:
            row = int(np.flatnonzero(is_wrong)[0])
            raise DataError(
                f"{self.stream.name}, row {self.n_rows_seen + row + 1} after the header, column {name!r}: expected "
                f"{expected}, found {batch.column(name)[row].as_py()[:40]!r}. Correct the field, or pass ",
                Parameter("on_bad_line", "skip"),
                " to leave such rows out.",
            )
        is_bad |= is_wrong


class _Utf8Stream(io.RawIOBase):
    """A stream that is checked to be UTF-8 while it is read: Arrow detects it too late to say where it is not."""

    def __init__(self, stream: ByteStream) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_read = self._stream.readinto(buffer)
        begun_character, _ = self._decoder.getstate()
        try:
            self._decoder.decode(memoryview(buffer)[:n_read], final=n_read == 0)
        except UnicodeDecodeError as cause:
            place = self._n_bytes - len(begun_character) + cause.start
            raise DataError(
                f"{self._stream.name} must be UTF-8: {cause.reason} at byte {place}. Save it as UTF-8."
            ) from cause
        self._n_bytes += n_read
        return n_read


def _header(stream: ByteStream) -> list[str]:
    """The names of the columns, from the first line, which remains in the stream."""
    head = stream.peek(LONGEST_HEADER).removeprefix(BYTE_ORDER_MARK).partition(b"\n")[0]
    try:
        names = next(csv.reader([head.decode("utf-8").strip("\r")]), [])
    except (csv.Error, UnicodeDecodeError) as cause:
        raise DataError(f"{stream.name} must start with a line of column names: {cause}.") from cause
    if not names:
        raise DataError(f"{stream.name} must start with a line of column names, and its first line is empty.")
    return names


def _numbers(texts: pyarrow.Array, dtype: pyarrow.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in text, NaN for a missing one, and which of them are not finite numbers of that type."""
    try:
        numbers = texts.cast(dtype).to_numpy(zero_copy_only=False)
        is_wrong = np.zeros(len(texts), dtype=bool)
    except pyarrow.ArrowInvalid:
        trimmed = pyarrow.compute.utf8_trim_whitespace(texts)
        is_missing = pyarrow.compute.is_in(trimmed, MISSING)
        is_number = pyarrow.compute.match_substring_regex(trimmed, NUMBER)
        is_wrong = ~np.asarray(pyarrow.compute.or_(is_missing, is_number))
        plain = pyarrow.compute.utf8_ltrim(trimmed, "+")
        numbers = as_numbers("", "", pyarrow.compute.if_else(is_number, plain, None).cast(dtype), dtype)
    return numbers, is_wrong | np.isinf(numbers)


def _all_match(texts: pyarrow.ChunkedArray, pattern: str) -> bool:
    return bool(pyarrow.compute.all(pyarrow.compute.match_substring_regex(texts, pattern)).as_py())
