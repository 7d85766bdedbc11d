"""Checksums of columns in Feather files: an Arrow file has none of its own, and a flipped bit is another number.

A CRC-32 for each column is kept in the metadata that Rankwell writes. It begins with that of the other metadata, so
that a name that was altered is found too. Files of other programs have no such metadata and are read as they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow

from rankwell.errors import DataError


def column_checksums(metadata: Mapping[str, Any], columns: Mapping[str, pyarrow.Array]) -> dict[str, int]:
    """The CRC-32 of each column; metadata : what the file says about the columns, as JSON values"""
    return {name: _checksum(metadata, name, column) for name, column in columns.items()}


def marked_schema(columns: Mapping[str, pyarrow.Array], metadata: Mapping[bytes, bytes]) -> pyarrow.Schema:
    """The schema of a file with checksums. Each field says so as well: metadata that was lost is found by that."""
    fields = [pyarrow.field(name, column.type, metadata=_MARK) for name, column in columns.items()]
    return pyarrow.schema(fields, metadata=dict(metadata))


def verify_columns(
    file: str,
    schema: pyarrow.Schema,
    metadata: Mapping[str, Any],
    batches: Sequence[pyarrow.RecordBatch],
    after_block: Callable[[], None] = lambda: None,
) -> None:
    """Refuse columns that are not as they were written.

    metadata : what Rankwell wrote, with the checksums under ``crc32``; empty for a file of another program
    after_block : called whenever some megabytes were read
    """
    is_marked = any((field.metadata or {}).items() >= _MARK.items() for field in schema)
    if "crc32" not in metadata and not is_marked:
        return
    noted = metadata.get("crc32", {})
    others = {key: value for key, value in metadata.items() if key != "crc32"}
    if len(batches) != 1 or list(noted) != schema.names:
        raise DataError(
            f"{file} was altered after it was written: its metadata is missing, or it has other columns or parts. "
            f"{_REMEDY}"
        )
    for name in schema.names:
        if _checksum(others, name, batches[0].column(name), after_block) != noted[name]:
            raise DataError(
                f"{file} was altered after it was written: column {name!r} does not match its checksum. {_REMEDY}"
            )


_BLOCK_BYTES = 2**24
_MARK = {b"rankwell": b"checksum"}
_REMEDY = (
    "Restore it from a copy, or convert the data again; a program that changes such a file on purpose must drop its "
    "metadata, that of its fields included."
)


def _checksum(
    metadata: Mapping[str, Any], name: str, column: pyarrow.Array, after_block: Callable[[], None] = lambda: None
) -> int:
    about = [dict(metadata), name, str(column.type), len(column)]
    value = zlib.crc32(json.dumps(about, sort_keys=True).encode())
    for piece in _pieces(column):
        content = np.ascontiguousarray(piece).view(np.uint8)
        for first in range(0, len(content), _BLOCK_BYTES):
            value = zlib.crc32(content[first : first + _BLOCK_BYTES].data, value)
            after_block()
    return value


def _pieces(column: pyarrow.Array) -> Iterator[np.ndarray]:
    """The content of a column as arrays, without a copy of its values; padding and offsets of slices do not count."""
    if column.null_count:
        yield column.is_valid().to_numpy(zero_copy_only=False)
    if pyarrow.types.is_null(column.type):
        return
    if pyarrow.types.is_fixed_size_list(column.type):
        yield from _pieces(column.flatten())
        return
    buffers = column.buffers()
    if len(buffers) == 3:
        is_large = pyarrow.types.is_large_string(column.type) or pyarrow.types.is_large_binary(column.type)
        offsets = _values(buffers[1], np.dtype(np.int64 if is_large else np.int32), column.offset, len(column) + 1)
        if len(offsets):
            yield np.diff(offsets)
            yield _values(buffers[2], np.dtype(np.uint8), int(offsets[0]), int(offsets[-1] - offsets[0]))
        return
    width = np.dtype(f"V{column.type.bit_width // 8}")
    yield _values(buffers[1], width, column.offset, len(column))


def _values(buffer: pyarrow.Buffer | None, dtype: np.dtype, start: int, count: int) -> np.ndarray:
    if buffer is None or buffer.size == 0:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count, start * dtype.itemsize)
