"""A range of a file as a byte stream: as if the file began and ended there."""

from __future__ import annotations

import io
from typing import Any

from rankwell.streams.decompression import ByteStream


class FileRange(ByteStream):
    """The bytes start, ..., end − 1 of a file that is not compressed."""

    def __init__(self, path: str, start: int, end: int) -> None:
        super().__init__(path)
        self._start = start
        self._opened.seek(start)
        self._source = _Limited(self._opened, end - start)
        self.size, self.is_plain_file = end - start, False

    def bytes_taken(self) -> int:
        return int(self._opened.tell()) - self._start


class _Limited(io.RawIOBase):
    """The next `n_bytes` of a file."""

    def __init__(self, file: Any, n_bytes: int) -> None:
        super().__init__()
        self._file, self._left = file, n_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes = int(self._file.readinto(memoryview(buffer)[: min(len(buffer), self._left)]))
        self._left -= n_bytes
        return n_bytes
